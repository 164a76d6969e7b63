//! Losses of `nn.functional`: shared code for reducing the values of a batch.

pub mod cross_entropy;
pub mod bce;
pub mod chunk;
pub mod ctc;
pub mod likelihood;
pub mod margin;
pub mod metric;
pub mod multiclass;
pub mod multilabel;
pub mod nll;
pub mod numbered;
pub mod pointwise;
pub mod similarity;

use crate::autograd::diagnostics;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::reduce::sum_prod::{MEAN, SUM};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reduction {
    None,
    Mean,
    Sum,
}
impl Enumerated for Reduction {
    const VALUES: &'static [(&'static str, Reduction)] =
        &[("none", Reduction::None), ("mean", Reduction::Mean), ("sum", Reduction::Sum)];
}

impl Reduction {
    /// The reduction that PyTorch's functions of the top namespace call by this number.
    fn numbered(n: i64) -> Result<Reduction> {
        match n {
            0 => Ok(Reduction::None),
            1 => Ok(Reduction::Mean),
            2 => Ok(Reduction::Sum),
            _ => Err(Error::value(format!(
                "{n} is not a valid value for reduction; expected 0 (none), 1 (mean) or 2 (sum)"
            ))),
        }
    }
    fn number(self) -> i64 {
        match self {
            Reduction::None => 0,
            Reduction::Mean => 1,
            Reduction::Sum => 2,
        }
    }
    fn name(self) -> &'static str {
        Reduction::VALUES[self.number() as usize].0
    }
}

/// What the deprecated `size_average` and `reduce` mean, where one of them is given.
fn legacy_reduction(c: &Call) -> Option<Reduction> {
    let flag = |name: &str| c.op.sig.index_of(name).and_then(|i| c.opt_scalar(i)).map(|s| s.to_bool());
    let (average, reduce) = (flag("size_average"), flag("reduce"));
    if average.is_none() && reduce.is_none() {
        return None;
    }
    Some(match (average.unwrap_or(true), reduce.unwrap_or(true)) {
        (true, true) => Reduction::Mean,
        (false, true) => Reduction::Sum,
        _ => Reduction::None,
    })
}

/// PyTorch's warning of the deprecated `size_average` and `reduce`.
fn warn_of_legacy(c: &Call) -> Result<()> {
    let name = match legacy_reduction(c) {
        None => return Ok(()),
        Some(Reduction::None) => "none",
        Some(Reduction::Mean) => "mean",
        Some(Reduction::Sum) => "sum",
    };
    diagnostics::warn(&format!(
        "size_average and reduce args will be deprecated, please use reduction='{name}' instead."
    ))
}

/// What is warned of where a target has another shape than the input and the two broadcast.
pub(crate) fn warn_of_sizes(c: &Call) -> Option<String> {
    let (input, target) = (c.tensor(0).ok()?.shape(), c.tensor("target").ok()?.shape());
    (input != target).then(|| {
        format!(
            "Using a target size (torch.Size({})) that is different to the input size (torch.Size({})). This will likely lead to \
             incorrect results due to broadcasting. Please ensure they have the same size.",
            Show(target),
            Show(input)
        )
    })
}

/// How the call wants its values reduced. The older `size_average` and `reduce` decide where they are given.
pub(crate) fn reduction(c: &Call) -> Reduction {
    if let Some(legacy) = legacy_reduction(c) {
        return legacy;
    }
    let at = c.op.sig.index_of("reduction");
    at.and_then(|i| c.opt_choice(i)).unwrap_or(Reduction::Mean)
}

fn unknown_reduction(_: &Op, given: &str) -> Error {
    Error::value(format!("{given} is not a valid value for reduction"))
}

/// PyTorch's error for an input or target whose dtype cannot hold the loss.
pub(crate) fn not_castable(result: DType, own: DType) -> Error {
    let (result, own) = (result.scalar_type_name(), own.scalar_type_name());
    Error::runtime(format!("result type {result} can't be cast to the desired output type {own}"))
}

/// The values reduced as requested.
pub(crate) fn reduced(c: &Call, values: Term) -> Result<Outputs> {
    warn_of_legacy(c)?;
    match reduction(c) {
        Reduction::None => values.outputs(),
        Reduction::Mean => MEAN.calls((values,)),
        Reduction::Sum => SUM.calls((values,)),
    }
}

/// The gradient of each element before the reduction: arguments 0 and 1 broadcast against each other.
pub(crate) fn unreduced(c: &VjpCtx) -> Term {
    match reduction(&c.call) {
        Reduction::Mean => {
            let n: usize = crate::layout::broadcast(&c.shape(0), &c.shape(1)).map_or(1, |s| s.iter().product());
            c.g() / n as f64
        }
        _ => c.g(),
    }
}
