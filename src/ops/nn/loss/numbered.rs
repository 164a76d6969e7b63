//! Losses of the top namespace, whose reduction is a number: those of `nn.functional` with other arguments.
//!
//! PyTorch declares the mean as their default, and returns the values as they are; so does this.

use super::Reduction;
use super::bce::BCE_LOGITS;
use super::margin::{HINGE_EMBEDDING_LOSS, MARGIN_RANKING_LOSS, POISSON_NLL_LOSS};
use super::metric::{COSINE_EMBEDDING_LOSS, TRIPLET_MARGIN_LOSS};
use super::pointwise::KL_DIV;
use crate::error::Result;
use crate::op::*;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &COSINE_EMBEDDING,
    &HINGE_EMBEDDING,
    &MARGIN_RANKING,
    &TRIPLET_MARGIN,
    &POISSON_NLL,
    &KULLBACK_LEIBLER,
    &BCE_WITH_LOGITS,
];

/// The reduction as `nn.functional` names it.
fn how(c: &Call) -> Result<Value<'static>> {
    Reduction::numbered(c.int("reduction")?).map(|how| how.name().into())
}

/// The first `n` arguments, no `size_average` and `reduce`, and the reduction in the argument after them.
fn and_reduction<'a>(c: &'a Call, n: usize) -> Result<Args<'a>> {
    let first = c.args[..n].iter().map(|v| v.reborrow());
    Ok(first.chain([Value::None, Value::None, how(c)?]).collect())
}

/// What the losses have in common.
const LOSS: Op = Op { forms: F, vjp: Vjp::Composite, ..OP };

pub static COSINE_EMBEDDING: Op = Op {
    sig: sig(
        "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=0) -> Tensor",
    ),
    doc: "See `nn.functional.cosine_embedding_loss`; `reduction` is 0 (none), 1 (mean) or 2 (sum).",
    body: decompose(|c| COSINE_EMBEDDING_LOSS.calls(and_reduction(c, 4)?)),
    samples: &["f32[3,4], f32[3,4], f32[3](= 1, -1, 1, nograd), 0.1, 2"],
    errors: &[("f32[2,3], f32[2,3], f32[2], 0.1, 3", "ValueError", "3 is not a valid value for reduction")],
    ..LOSS
};

pub static HINGE_EMBEDDING: Op = Op {
    sig: sig("hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=0) -> Tensor"),
    doc: "See `nn.functional.hinge_embedding_loss`; `reduction` is 0 (none), 1 (mean) or 2 (sum).",
    body: decompose(|c| HINGE_EMBEDDING_LOSS.calls(and_reduction(c, 3)?)),
    samples: &["f32[2,3], f32[2,3](= 1, -1, 1, -1, -1, 1, nograd), 0.5, 1"],
    errors: &[("f32[2], f32[2], 1.0, -1", "ValueError", "-1 is not a valid value for reduction")],
    ..LOSS
};

pub static MARGIN_RANKING: Op = Op {
    sig: sig(
        "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=0) -> Tensor",
    ),
    doc: "See `nn.functional.margin_ranking_loss`; `reduction` is 0 (none), 1 (mean) or 2 (sum).",
    body: decompose(|c| MARGIN_RANKING_LOSS.calls(and_reduction(c, 4)?)),
    samples: &["f32[3], f32[3], f32[3](= 1, -1, 1, nograd), 0.5, 2"],
    errors: &[("f32[3], f32[3], f32[3], 0.5, 9", "ValueError", "9 is not a valid value for reduction")],
    ..LOSS
};

pub static TRIPLET_MARGIN: Op = Op {
    sig: sig(
        "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06, bool swap=False, int reduction=0) -> Tensor",
    ),
    doc: "See `nn.functional.triplet_margin_loss`; `reduction` is 0 (none), 1 (mean) or 2 (sum).",
    body: decompose(|c| TRIPLET_MARGIN_LOSS.calls(and_reduction(c, 7)?)),
    samples: &["f32[3,4], f32[3,4], f32[3,4], reduction=0"],
    errors: &[("f32[3,4], f32[3,4], f32[3,4], reduction=3", "ValueError", "3 is not a valid value for reduction")],
    ..LOSS
};

pub static POISSON_NLL: Op = Op {
    sig: sig(
        "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
    ),
    doc: "See `nn.functional.poisson_nll_loss`; `reduction` is 0 (none), 1 (mean) or 2 (sum).",
    body: decompose(|c| {
        let a = |i: usize| c.args[i].reborrow();
        let args: Args = smallvec![a(0), a(1), a(2), a(3), Value::None, a(4), Value::None, how(c)?];
        POISSON_NLL_LOSS.calls(args)
    }),
    samples: &["f32[2,3], f32[2,3](pos, nograd), True, False, 1e-08, 1"],
    errors: &[("f32[2], f32[2], True, False, 1e-08, 3", "ValueError", "3 is not a valid value for reduction")],
    ..LOSS
};

pub static KULLBACK_LEIBLER: Op = Op {
    sig: sig("kl_div(Tensor self, Tensor target, int reduction=0, *, bool log_target=False) -> Tensor"),
    doc: "See `nn.functional.kl_div`; `reduction` is 0 (none), 1 (mean) or 2 (sum).",
    body: decompose(|c| {
        let a = |i: usize| c.args[i].reborrow();
        let args: Args = smallvec![a(0), a(1), Value::None, Value::None, how(c)?, a(3)];
        KL_DIV.calls(args)
    }),
    samples: &["f32[2,3], f32[2,3](unit), 2", "f32[2,3], f32[2,3], log_target=True"],
    errors: &[("f32[2], f32[2], 3", "ValueError", "3 is not a valid value for reduction")],
    ..LOSS
};

pub static BCE_WITH_LOGITS: Op = Op {
    sig: sig(
        "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=0) -> Tensor",
    ),
    doc: "See `nn.functional.binary_cross_entropy_with_logits`; `reduction` is 0 (none), 1 (mean) or 2 (sum).",
    body: decompose(|c| {
        let a = |i: usize| c.args[i].reborrow();
        let args: Args = smallvec![a(0), a(1), a(2), Value::None, Value::None, how(c)?, a(3)];
        BCE_LOGITS.calls(args)
    }),
    samples: &["f32[2,3], f32[2,3](unit), None, f32[3](pos, nograd), 2"],
    errors: &[("f32[2], f32[2], None, None, 3", "ValueError", "3 is not a valid value for reduction")],
    ..LOSS
};
