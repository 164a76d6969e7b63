//! Losses of distances between vectors: pairwise_distance, cosine_embedding, triplet_margin.

use super::reduced;
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::elementwise::minmax::MINIMUM;
use crate::ops::elementwise::power::SQRT;
use crate::ops::reduce::norm::NORM_DIM;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&PAIRWISE_DISTANCE, &COSINE_EMBEDDING_LOSS, &TRIPLET_MARGIN_LOSS];

pub static PAIRWISE_DISTANCE: Op = Op {
    sig: sig("pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False) -> Tensor"),
    doc: "The norm of order `p` of `x1 - x2 + eps` along the last dimension: [.., d] and [.., d], broadcast, give [..].",
    aliases: &["nn.functional.pairwise_distance"],
    forms: F,
    body: decompose(|c| {
        distance(c.tensor("x1")?, c.tensor("x2")?, c.float("p")?, c.float("eps")?, c.flag("keepdim")).outputs()
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3], f32[2,3]",
        "f32[2,3], f32[3], 1.0",
        "f32[3], f32[3]",
        "f32[2,4,3], f32[4,3], p=3.0, eps=0.0, keepdim=True",
    ],
    errors: &[("f32[2,3], f32[2,4]", "RuntimeError", "must match the size")],
    ..OP
};

fn distance(a: &Tensor, b: &Tensor, p: f64, eps: f64, keepdim: bool) -> Term {
    let last = a.ndim().max(b.ndim()) as i64 - 1;
    let order = crate::dtype::Scalar::Float(p);
    NORM_DIM.call((Term::from(a) - b + eps, order, [last], keepdim))
}

pub static COSINE_EMBEDDING_LOSS: Op = Op {
    sig: sig(
        "nn.functional.cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, bool? size_average=None, bool? reduce=None, str{none|mean|sum} reduction='mean') -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "`1 - cos(x1, x2)` where the target is 1, `max(0, cos(x1, x2) - margin)` where it is -1; averaged, summed or as it is.\n\nThe inputs are [n, d] with a target [n], or [d] with a target [].",
    forms: F,
    body: decompose(cosine_embedding),
    vjp: Vjp::Composite,
    samples: &[
        "f32[3,4], f32[3,4], f32[3](= 1, -1, 1, nograd)",
        "f32[4], f32[4], f32[](= -1, nograd), margin=-0.5",
        "f32[3,4], f32[3,4], i64[3](= 1, -1, 1), 0.1, reduction='none'",
        "f32[2,4], f32[2,4], f32[2](= 1, -1, nograd), reduction='sum'",
    ],
    errors: &[
        ("f32[2,3], f32[2,3], f32[2], reduction='no'", "ValueError", "not a valid value for reduction"),
        ("f32[2,3], f32[2,3], f32[2,1]", "RuntimeError", "0D or 1D target tensor expected, multi-target not supported"),
        ("f32[3], f32[3], f32[2]", "RuntimeError", "1D target tensor expects 2D input tensors"),
        ("f32[2,3], f32[2,3], f32[]", "RuntimeError", "0D target tensor expects 1D input tensors"),
    ],
    ..OP
};

/// What keeps the length of a zero vector from being zero.
const SHORTEST: f64 = 1e-12;

fn cosine_embedding(c: &Call) -> Result<Outputs> {
    let [a, b, target] = [c.tensor("input1")?, c.tensor("input2")?, c.tensor("target")?];
    let rank = target.ndim();
    if rank > 1 {
        return Err(Error::runtime("0D or 1D target tensor expected, multi-target not supported"));
    }
    if a.ndim() != rank + 1 || b.ndim() != rank + 1 {
        return Err(Error::runtime(format!(
            "{rank}D target tensor expects {}D input tensors, but found inputs with sizes {} and {}.",
            rank + 1,
            Show(a.shape()),
            Show(b.shape())
        )));
    }
    let dot = |a: &Tensor, b: &Tensor| (Term::from(a) * b).sum(&[rank as i64], false);
    let lengths = SQRT.call(((dot(a, a) + SHORTEST) * (dot(b, b) + SHORTEST),));
    let cos = dot(a, b) / lengths;
    let near = 1.0 - cos.clone();
    let far = (cos - c.float("margin")?).clamp_min_(0.0);
    let is = |label: f64| Term::from(target).ne_(label);
    reduced(c, near.zero_where(is(1.0)) + far.zero_where(is(-1.0)))
}

pub static TRIPLET_MARGIN_LOSS: Op = Op {
    sig: sig(
        "nn.functional.triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, float eps=1e-06, bool swap=False, bool? size_average=None, bool? reduce=None, str{none|mean|sum} reduction='mean') -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "`max(0, d(anchor, positive) - d(anchor, negative) + margin)` with `pairwise_distance`; averaged, summed or as it is.\n\n`swap` takes `d(positive, negative)` for the second distance where that is less (Balntas et al., BMVC 2016).",
    forms: F,
    body: decompose(|c| match c.float("margin")? {
        margin if margin > 0.0 => triplet_margin(c, margin),
        margin => {
            Err(Error::value(format!("margin must be greater than 0, got {}", crate::dtype::Scalar::Float(margin))))
        }
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[3,4], f32[3,4], f32[3,4]",
        "f32[3,4], f32[3,4], f32[3,4], margin=0.5, p=1.0, swap=True, reduction='none'",
        "f32[4], f32[4], f32[4], 2.0, reduction='sum'",
    ],
    errors: &[
        ("f32[2,3], f32[2,3], f32[2,3], reduction='no'", "ValueError", "not a valid value for reduction"),
        ("f32[2,3], f32[2,3], f32[2,3], 0.0", "ValueError", "margin must be greater than 0, got 0"),
        (
            "f32[2,3], f32[2,3], f32[3]",
            "RuntimeError",
            "expected to have the same number of dimensions, but got: anchor 2D, positive 2D, and negative 1D inputs",
        ),
    ],
    ..OP
};

fn triplet_margin(c: &Call, margin: f64) -> Result<Outputs> {
    let [anchor, positive, negative] = [c.tensor("anchor")?, c.tensor("positive")?, c.tensor("negative")?];
    if anchor.ndim() != positive.ndim() || anchor.ndim() != negative.ndim() {
        return Err(Error::runtime(format!(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor {}D, positive {}D, and negative {}D inputs",
            anchor.ndim(),
            positive.ndim(),
            negative.ndim()
        )));
    }
    let (p, eps) = (c.float("p")?, c.float("eps")?);
    let near = distance(anchor, positive, p, eps, false);
    let mut far = distance(anchor, negative, p, eps, false);
    if c.flag("swap") {
        far = MINIMUM.call((far, distance(positive, negative, p, eps, false)));
    }
    reduced(c, (margin + near - far).clamp_min_(0.0))
}
