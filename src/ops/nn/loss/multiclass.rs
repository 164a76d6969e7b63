//! Margins between classes: multi_margin, multilabel_margin, multilabel_soft_margin.

use super::reduced;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::op::gradient::Saves;
use crate::op::*;
use crate::ops::activation::smooth::LOGSIGMOID;
use crate::ops::indexing::gather_scatter::{GATHER, SCATTER_VALUE};
use crate::ops::indexing::index_select::INDEX_SELECT;
use crate::ops::reduce::aminmax::AMINMAX;
use crate::ops::support::assertion::ASSERT_ALL;
use crate::ops::support::host_read;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&MULTI_MARGIN_LOSS, &MULTILABEL_SOFT_MARGIN_LOSS];

/// (samples, classes) of an input of one or two dimensions.
pub(crate) fn rows(x: &Tensor) -> Result<[usize; 2]> {
    match *x.shape() {
        [] => Ok([1, 1]),
        [classes] if classes > 0 => Ok([1, classes]),
        [n, classes] if classes > 0 => Ok([n, classes]),
        _ => Err(Error::runtime(format!(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: {}",
            Show(x.shape())
        ))),
    }
}

fn not_long(t: &Tensor) -> Error {
    Error::runtime(format!("expected scalar type Long but found {}", t.dtype().scalar_type_name()))
}

/// Refuses targets that are no int64, or not among `allowed`.
pub(crate) fn check_targets(t: &Tensor, allowed: std::ops::Range<i64>) -> Result<()> {
    if t.dtype() != DType::I64 {
        return Err(not_long(t));
    }
    if t.numel() == 0 {
        return Ok(());
    }
    let ends = AMINMAX.calls((t,))?;
    let (least, greatest) = (host_read::item(&ends[0])?.to_i64(), host_read::item(&ends[1])?.to_i64());
    if least < allowed.start || greatest >= allowed.end {
        let bad = if least < allowed.start { least } else { greatest };
        return Err(Error::runtime(format!(
            "target out of range; expected {} <= target < {}, got {bad}",
            allowed.start, allowed.end
        )));
    }
    Ok(())
}

pub(crate) fn only_floats(x: &Tensor, kernel: &str) -> Result<()> {
    if x.dtype().is_float() {
        return Ok(());
    }
    let own = x.dtype().scalar_type_name();
    Err(Error::not_implemented(format!("\"{kernel}\" not implemented for '{own}'")))
}

/// The class weights are argument 4.
const WEIGHTS: Saves = 1 << 4;

pub static MULTI_MARGIN_LOSS: Op = Op {
    sig: sig(
        "nn.functional.multi_margin_loss(Tensor input, Tensor target, int p=1, float margin=1.0, Tensor~? weight=None, bool? size_average=None, bool? reduce=None, str{none|mean|sum} reduction='mean') -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "The mean over classes i other than the target t of `weight[t] max(0, margin - x[t] + x[i])^p`; averaged over samples, summed or as it is.\n\nThe input is [n, classes] with a target [n], or [classes] with a target []; `p` is 1 or 2.",
    forms: F,
    body: decompose(multi_margin),
    vjp: Vjp::Joint(Joint { args: &[0], saves: A0 | A1 | WEIGHTS, formula: |c| c.through(multi_margin) }),
    samples: &[
        "f32[3,4](pos), i64[3](0..4)",
        "f32[3,4], i64[3](0..4), 2, 0.5, f32[4](pos, nograd)",
        "f32[4](pos), i64[](0..4), reduction='sum'",
        "f32[3,4](pos), i64[3](0..4), reduction='none'",
    ],
    errors: &[
        ("f32[2,3], i64[2](0..3), reduction='no'", "ValueError", "not a valid value for reduction"),
        ("f32[2,3], i64[2](0..3), 3", "ValueError", "only p == 1 and p == 2 supported"),
        ("f32[2,3], i64[2](0..3), weight=f32[1,3]", "ValueError", "weight must be one-dimensional"),
        ("f32[2,3], i64[2](= 0, 3)", "RuntimeError", "target out of range"),
        ("f32[2,3], i64[3](0..3)", "RuntimeError", "inconsistent target size, expected 2 but got [3]"),
        ("f32[2,3], i64[2](0..3), weight=f32[2]", "RuntimeError", "inconsistent weight size, expected 3 but got [2]"),
        ("f32[2,0], i64[2](0..3)", "RuntimeError", "Expected non-empty vector or matrix"),
    ],
    keeps: Some("margin p reduction self=input target weight"),
    ..OP
};

fn multi_margin(c: &Call) -> Result<Outputs> {
    let (x, target, p, weight) = (c.tensor(0)?, c.tensor("target")?, c.int("p")?, c.opt_tensor("weight"));
    if p != 1 && p != 2 {
        return Err(Error::value("only p == 1 and p == 2 supported"));
    }
    if weight.is_some_and(|w| w.ndim() != 1) {
        return Err(Error::value("weight must be one-dimensional"));
    }
    let [n, classes] = rows(x)?;
    if target.ndim() > 1 || target.numel() != n {
        let own = Show(target.shape());
        return Err(Error::runtime(format!("inconsistent target size, expected {n} but got {own}")));
    }
    if let Some(w) = weight.filter(|w| w.numel() != classes) {
        let own = Show(w.shape());
        return Err(Error::runtime(format!("inconsistent weight size, expected {classes} but got {own}")));
    }
    only_floats(x, "multi_margin_loss_cpu_kernel")?;
    if target.dtype() != DType::I64 {
        return Err(not_long(target));
    }
    let known = Term::from(target).clamp_(0.0, classes as f64 - 1.0).equals(target);
    ASSERT_ALL.calls((known, format!("target out of range; expected 0 <= target < {classes}").as_str()))?;
    let x = Term::from(x).reshape(&[n as i64, classes as i64]);
    let own = Term::from(target).reshape(&[n as i64, 1]);
    let excess = c.float("margin")? - GATHER.call((&x, 1, &own)) + x;
    // Selected, not limited: at a margin of exactly zero there is no gradient, and of NaN no loss.
    let mut excess = excess.clone().greater(0).choose(excess, 0);
    if p == 2 {
        excess = excess.square();
    }
    if let Some(w) = weight {
        excess = excess * INDEX_SELECT.call((w, 0, own.clone().reshape(&[-1]))).unsqueeze(1);
    }
    let sums = SCATTER_VALUE.call((excess, 1, own, 0)).sum(&[1], false) / classes as f64;
    reduced(c, if target.ndim() == 0 { sums.reshape(&[]) } else { sums })
}

pub static MULTILABEL_SOFT_MARGIN_LOSS: Op = Op {
    sig: sig(
        "nn.functional.multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, bool? reduce=None, str{none|mean|sum} reduction='mean') -> Tensor",
    ),
    unknown_choice: |_, given| Error::value(format!("{given} is not valid")),
    doc: "The mean over classes of the binary cross entropy of logits and labels 0 and 1, [.., classes]; averaged over samples, summed or as it is. `weight` multiplies the terms of each class.",
    forms: F,
    body: decompose(|c| {
        let [x, t] = [c.tensor(0)?, c.tensor("target")?];
        let Some(&classes) = x.shape().last() else {
            return Err(Error::index("Dimension specified as -1 but tensor has no dimensions"));
        };
        let likely = LOGSIGMOID.call((x,)) * t;
        let mut loss = -(likely + (1.0 - Term::from(t)) * LOGSIGMOID.call((-Term::from(x),)));
        if let Some(w) = c.opt_tensor("weight") {
            loss = loss * w;
        }
        reduced(c, loss.sum(&[x.ndim() as i64 - 1], false) / classes as f64)
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3], f32[2,3](= 1, 0, 1, 0, 0, 1, nograd)",
        "f32[2,3], f32[2,3](unit, nograd), f32[3](pos, nograd), reduction='sum'",
        "f32[2,4,3], f32[2,4,3](unit, nograd), reduction='none'",
    ],
    errors: &[
        ("f32[2,3], f32[2,3], reduction='no'", "ValueError", "no is not valid"),
        ("f32[2,3], f32[2,4]", "RuntimeError", "must match the size"),
    ],
    ..OP
};
