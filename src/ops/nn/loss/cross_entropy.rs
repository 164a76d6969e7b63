//! Losses of class predictions: nll_loss, and cross_entropy, which is log_softmax and nll_loss.
//!
//! The input is `[classes]`, `[batch, classes]` or `[batch, classes, d1, ..]`, the target of class indices the same
//! without the classes. The mean divides the sum by the total weight of the targets that are not ignored.

use super::nll::{MEAN, NLL, NLL_2D, NONE, SUM, Sizes};
use super::{Reduction, reduction};
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::nn::softmax::LOG_SOFTMAX;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&NLL_LOSS, &CROSS_ENTROPY, &DIVIDED];

/// Checks targets and weights against an input of this shape and dtype.
pub(crate) fn check(x: &[usize], dtype: DType, t: &Tensor, weight: Option<&Tensor>) -> Result<()> {
    if x.is_empty() {
        return Err(Error::value("Expected 1 or more dimensions (got 0)"));
    }
    if x.len() > 1 && t.shape().first() != x.first() {
        let n = t.shape().first().copied().unwrap_or(0);
        return Err(Error::value(format!("Expected input batch_size ({}) to match target batch_size ({n}).", x[0])));
    }
    let classes = Sizes::of(x).classes;
    let want: Vec<usize> = if x.len() == 1 { vec![] } else { [&x[..1], &x[2..]].concat() };
    if t.shape() != want {
        return Err(Error::runtime(match x.len() {
            1 | 2 => "0D or 1D target tensor expected, multi-target not supported".to_string(),
            4 => format!("size mismatch (got input: {} , target: {}", Show(x), Show(t.shape())),
            _ => format!("Expected target size {}, got {}", Show(&want), Show(t.shape())),
        }));
    }
    if !matches!(t.dtype(), DType::I64 | DType::U8) {
        return Err(Error::runtime(format!(
            "expected target dtype to be Long or Byte, but got {}",
            t.dtype().scalar_type_name()
        )));
    }
    if !dtype.is_float() {
        return Err(Error::not_implemented(format!(
            "\"nll_loss_out_frame\" not implemented for '{}'",
            dtype.scalar_type_name()
        )));
    }
    match weight {
        Some(w) if w.shape() != [classes] => Err(Error::runtime(format!(
            "weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {}",
            Show(w.shape())
        ))),
        Some(w) if w.dtype() != dtype => Err(Error::runtime(format!(
            "expected scalar type {} but found {}",
            dtype.scalar_type_name(),
            w.dtype().scalar_type_name()
        ))),
        _ => Ok(()),
    }
}

/// (loss, total weight).
fn nll(c: &Call, x: &Tensor, how: Reduction, ignored: i64) -> Result<Outputs> {
    let (t, w) = (c.tensor("target")?, c.opt_tensor("weight"));
    let how = match how {
        Reduction::None => NONE,
        Reduction::Mean => MEAN,
        Reduction::Sum => SUM,
    };
    let op = if x.ndim() > 2 { &NLL_2D } else { &NLL };
    op.calls((x, t, w, how, ignored))
}

/// PyTorch reshapes other ranks to 4-D and views the result, so `grad_fn` must be a view node.
fn as_pytorch_views(loss: Tensor, x: &Tensor, how: Reduction) -> Result<Tensor> {
    let viewed = how == Reduction::None && x.ndim() > 2 && x.ndim() != 4;
    if viewed { crate::ops::view::reshape::VIEW.call((&loss, loss.shape())).ok() } else { Ok(loss) }
}

pub static NLL_LOSS: Op = Op {
    sig: sig(
        "nn.functional.nll_loss(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool? reduce=None, str{none|mean|sum} reduction='mean') -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "The negative log likelihood of class indices: `-weight[t] * input[t]`, averaged by weight, summed or as it is.",
    forms: F,
    body: decompose(|c| {
        let (x, how) = (c.tensor(0)?, reduction(c));
        Ok(smallvec![as_pytorch_views(nll(c, x, how, c.int("ignore_index")?)?.swap_remove(0), x, how)?])
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[3,4], i64[3](0..4)",
        "f32[3,4], i64[3](0..4), f32[4](pos, nograd)",
        "f32[2,4,3], i64[2,3](0..4), reduction='none'",
        "f32[4], i64[](0..4)",
        "f32[3,4], i64[3](=0,-100,3), reduction='sum'",
    ],
    errors: &[
        ("f32[1,4], i64[1](=5)", "IndexError", "Target 5 is out of bounds"),
        ("f32[2,4], i64[3](0..4)", "ValueError", "batch_size"),
        ("f32[2,4], f32[2]", "RuntimeError", "expected target dtype"),
    ],
    ..OP
};

pub static CROSS_ENTROPY: Op = Op {
    sig: sig(
        "nn.functional.cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool? reduce=None, str{none|mean|sum} reduction='mean', float label_smoothing=0.0) -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "The cross entropy of the softmax of logits and class indices or class probabilities: `-log(softmax(input))[t]`.",
    forms: F,
    body: decompose(cross_entropy),
    vjp: Vjp::Composite,
    samples: &[
        "f32[3,4], i64[3](0..4)",
        "f32[3,4], f32[3,4](unit)",
        "f32[3,4], i64[3](0..4), label_smoothing=0.1",
        "f32[2,4,3], i64[2,3](0..4), f32[4](pos, nograd), reduction='none'",
        "f32[3,4], f32[3,4](unit), f32[4](pos, nograd), label_smoothing=0.2",
        "f32[3,4], i64[3](=0,-100,3), f32[4](pos, nograd), label_smoothing=0.2",
    ],
    errors: &[
        ("f32[1,4], i64[1](=5)", "IndexError", "Target 5 is out of bounds"),
        ("f32[2,4], i64[2](0..4), label_smoothing=1.5", "RuntimeError", "between 0.0 and 1.0"),
    ],
    ..OP
};

fn cross_entropy(c: &Call) -> Result<Outputs> {
    let (x, t, smoothing) = (c.tensor(0)?, c.tensor("target")?, c.float("label_smoothing")?);
    let class_dim = i64::from(x.ndim() > 1);
    if x.shape() == t.shape() {
        return probabilities(c, class_dim, smoothing);
    }
    let p = LOG_SOFTMAX.call((x, class_dim)).ok()?;
    if !(0.0..=1.0).contains(&smoothing) {
        return Err(Error::runtime(format!("label_smoothing must be between 0.0 and 1.0. Got: {smoothing}")));
    }
    let how = reduction(c);
    let mut parts = nll(c, &p, how, c.int("ignore_index")?)?;
    if smoothing == 0.0 {
        return Ok(smallvec![as_pytorch_views(parts.swap_remove(0), &p, how)?]);
    }
    let weighted = match c.opt_tensor("weight") {
        Some(w) => Term::from(&p) * along_classes(w, x.ndim()),
        None => Term::from(&p),
    };
    let ignored = Term::from(t).equals(c.int("ignore_index").unwrap_or(-100));
    let spread = (-weighted.sum(&[class_dim], false)).zero_where(ignored);
    let spread = match how {
        Reduction::None => spread,
        Reduction::Sum => spread.sum_all(),
        Reduction::Mean => spread.sum_all() / &parts[1],
    };
    let classes = Sizes::of(x.shape()).classes as f64;
    ((1.0 - smoothing) * Term::from(&parts[0]) + spread * (smoothing / classes)).outputs()
}

/// One number per class, shaped to broadcast against `[batch, classes, ..]`.
fn along_classes(w: &Tensor, ndim: usize) -> Term {
    let mut sizes: Ints = smallvec![1; ndim];
    sizes[usize::from(ndim > 1)] = w.numel() as i64;
    Term::from(w).reshape(&sizes)
}

fn probabilities(c: &Call, class_dim: i64, smoothing: f64) -> Result<Outputs> {
    let (x, t) = (c.tensor(0)?, c.tensor("target")?);
    if !t.dtype().is_float() {
        let name = t.dtype().scalar_type_name();
        return Err(Error::runtime(format!(
            "Expected floating point type for target with class probabilities, got {name}"
        )));
    }
    if x.ndim() == 0 {
        return Err(Error::index("Dimension specified as 1 but tensor has no dimensions"));
    }
    if c.int("ignore_index")? >= 0 {
        return Err(Error::runtime("ignore_index is not supported for floating point target"));
    }
    if !(0.0..=1.0).contains(&smoothing) {
        return Err(Error::runtime(format!("label_smoothing must be between 0.0 and 1.0. Got: {smoothing}")));
    }
    let p = LOG_SOFTMAX.call((x, class_dim));
    let classes = Sizes::of(x.shape()).classes.max(1);
    let target =
        if smoothing > 0.0 { Term::from(t) * (1.0 - smoothing) + smoothing / classes as f64 } else { Term::from(t) };
    let values = match c.opt_tensor("weight") {
        Some(w) => p * target * along_classes(w, x.ndim()),
        None => p * target,
    };
    match reduction(c) {
        Reduction::None => (-values.sum(&[class_dim], false)).outputs(),
        Reduction::Sum => (-values.sum_all()).outputs(),
        Reduction::Mean => DIVIDED.calls((-values.sum_all(), (x.numel() / classes) as f64)),
    }
}

/// Division by a number, under the node name that PyTorch gives it.
pub static DIVIDED: Op = Op {
    sig: sig("_div.number(Tensor self, Scalar other) -> Tensor"),
    doc: "Divides by a number.",
    forms: HIDDEN,
    body: decompose(|c| (Term::from(c.tensor(0)?) / c.scalar("other")?).outputs()),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g() / c.argument("other").reborrow())]),
    node: "DivBackward1",
    samples: &["f32[2,3], 2.0"],
    errors: &[("'a', 2.0", "TypeError", "must be Tensor")],
    reference: "x0 / x1",
    batch: Batching::Leading,
    ..OP
};
