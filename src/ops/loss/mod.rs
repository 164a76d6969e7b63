//! Losses of `nn.functional`: what they share is how the values of a batch are reduced to one.

pub mod bce;
pub mod class;
pub mod margin;
pub mod nll;
pub mod pointwise;
pub mod similarity;

use super::reduce::{MEAN, SUM};
use crate::autograd::witness;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::op::*;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reduction {
    None,
    Mean,
    Sum,
}

/// What the deprecated `size_average` and `reduce` mean, where one of them is given.
fn legacy_reduction(c: &Call) -> Option<Reduction> {
    let flag = |name: &str| c.op.signature().index_of(name).and_then(|i| c.opt_scalar(i)).map(|s| s.to_bool());
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
    witness::warn(&format!("size_average and reduce args will be deprecated, please use reduction='{name}' instead."))
}

/// What is warned of where a target has another shape than the input and the two broadcast.
pub(super) fn warn_of_sizes(c: &Call) -> Option<String> {
    let (input, target) = (c.tensor(0).ok()?.shape(), c.tensor(1).ok()?.shape());
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
pub(super) fn reduction(c: &Call) -> Result<Reduction> {
    if let Some(legacy) = legacy_reduction(c) {
        return Ok(legacy);
    }
    match c.op.signature().index_of("reduction").and_then(|i| c.str(i)) {
        Some("none") => Ok(Reduction::None),
        Some("mean") => Ok(Reduction::Mean),
        Some("sum") => Ok(Reduction::Sum),
        other => Err(Error::value(format!("{} is not a valid value for reduction", other.unwrap_or("None")))),
    }
}

/// What PyTorch says of an input or target whose dtype cannot hold the loss.
pub(super) fn not_castable(result: DType, own: DType) -> Error {
    let (result, own) = (result.scalar_type_name(), own.scalar_type_name());
    Error::runtime(format!("result type {result} can't be cast to the desired output type {own}"))
}

/// The values reduced as the call says.
pub(super) fn reduced(c: &Call, values: Term) -> Result<Outputs> {
    let reduction = reduction(c)?;
    warn_of_legacy(c)?;
    match reduction {
        Reduction::None => values.outputs(),
        Reduction::Mean => MEAN.calls((values,)),
        Reduction::Sum => SUM.calls((values,)),
    }
}

/// The gradient of each value before the reduction: arguments 0 and 1 broadcast against each other.
pub(super) fn unreduced(c: &Back) -> Term {
    match reduction(&c.call) {
        Ok(Reduction::Mean) => {
            let n: usize = crate::layout::broadcast(&c.shape(0), &c.shape(1)).map_or(1, |s| s.iter().product());
            c.g() / n as f64
        }
        _ => c.g(),
    }
}
