//! Losses of margins and rates: poisson_nll, soft_margin, hinge_embedding, margin_ranking.

use super::{reduced, unreduced};
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::create::like::SCALAR_TENSOR;
use crate::ops::elementwise::arith::MUL;
use crate::ops::elementwise::exp::LOGADDEXP;

pub static OPS: &[&Op] = &[&POISSON_NLL_LOSS, &SOFT_MARGIN_LOSS, &HINGE_EMBEDDING_LOSS, &MARGIN_RANKING_LOSS];

pub static POISSON_NLL_LOSS: Op = Op {
    sig: sig(
        "nn.functional.poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool full=False, bool? size_average=None, float eps=1e-08, bool? reduce=None, str{none|mean|sum} reduction='mean') -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "The negative log likelihood of counts under a Poisson distribution: `exp(x) - t x`, or `x - t log(x + eps)` if not `log_input`; averaged, summed or as it is.\n\n`full` adds Stirling's approximation of `log t!` where `t > 1`.",
    forms: F,
    body: decompose(|c| {
        let [x, t] = [Term::from(c.tensor(0)?), Term::from(c.tensor("target")?)];
        let mut loss = if c.flag("log_input") {
            x.clone().exp() - t.clone() * x
        } else {
            x.clone() - t.clone() * (x + c.float("eps")?).log()
        };
        if c.flag("full") {
            let stirling =
                t.clone() * t.clone().log() - t.clone() + 0.5 * (2.0 * std::f64::consts::PI * t.clone()).log();
            loss = loss + stirling.masked_fill(t.at_most(1.0));
        }
        reduced(c, loss)
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3], f32[2,3](pos, nograd)",
        "f32[2,3](pos), f32[2,3](pos, nograd), log_input=False, reduction='sum'",
        "f32[2,3], f32[2,3](gt1, nograd), full=True, reduction='none'",
    ],
    errors: &[
        ("f32[2], f32[2], reduction='no'", "ValueError", "not a valid value for reduction"),
        ("f32[2,3], f32[4]", "RuntimeError", "must match the size"),
    ],
    ..OP
};

fn soft_margin(c: &Call) -> Result<Outputs> {
    // In place, so that the target broadcasts to the input and the values keep the input's strides.
    let margin = Term::from(MUL.call_inplace((-Term::from(c.tensor(0)?), c.tensor("target")?))?);
    let like = margin.clone().ok()?;
    let zero = SCALAR_TENSOR.call((0.0, like.dtype(), like.device()));
    let values = if margin.is_complex() { (1.0 + margin.exp()).log() } else { LOGADDEXP.call((margin, zero)) };
    reduced(c, values)
}

/// The gradient of `log(1 + exp(-t x))` with respect to one of its arguments, `other` being the other one.
fn soft_margin_slope(c: &VjpCtx, other: usize) -> Term {
    let share = (-(c.arg(0) * c.arg(1))).sigmoid_();
    -(unreduced(c) * c.arg(other).conj()) * share.conj()
}

pub static SOFT_MARGIN_LOSS: Op = Op {
    sig: sig(
        "nn.functional.soft_margin_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str{none|mean|sum} reduction='mean') -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "The logistic loss `log(1 + exp(-target * input))` of targets -1 and 1; averaged, summed or as it is.",
    forms: F,
    body: decompose(soft_margin),
    vjp: Vjp::Each(&[d(0, A0 | A1, |c| soft_margin_slope(c, 1)), d(1, A0 | A1, |c| soft_margin_slope(c, 0))]),
    samples: &[
        "f32[2,3], f32[2,3](nograd)",
        "f32[2,3], f32[3](nograd), reduction='none'",
        "f32[4], f32[4](nograd), reduction='sum'",
    ],
    errors: &[
        ("f32[2], f32[2], reduction='no'", "ValueError", "not a valid value for reduction"),
        ("f32[2,3], f32[4]", "RuntimeError", "must match the size"),
    ],
    keeps: Some("reduction self=input target"),
    batch: Batching::Reduced(4),
    ..OP
};

pub static HINGE_EMBEDDING_LOSS: Op = Op {
    sig: sig(
        "nn.functional.hinge_embedding_loss(Tensor input, Tensor target, float margin=1.0, bool? size_average=None, bool? reduce=None, str{none|mean|sum} reduction='mean') -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "The distance `x` where the target is 1, `max(0, margin - x)` where it is -1; averaged, summed or as it is.",
    forms: F,
    body: decompose(|c| {
        let (x, t) = (c.tensor(0)?, Term::from(c.tensor("target")?));
        let below = (c.float("margin")? - Term::from(x)).clamp_min_(0.0);
        let values = below.zero_where(t.clone().equals(1.0)) + Term::from(x).zero_where(t.equals(-1.0));
        reduced(c, values)
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3], f32[2,3](= 1, -1, 1, -1, -1, 1, nograd)",
        "f32[3], f32[3](= 1, -1, 0, nograd), margin=0.5, reduction='none'",
        "f32[2,3], f32[3](= 1, -1, 1, nograd), reduction='sum'",
    ],
    errors: &[
        ("f32[2], f32[2], reduction='no'", "ValueError", "not a valid value for reduction"),
        ("f32[2,3], f32[4]", "RuntimeError", "must match the size"),
    ],
    ..OP
};

pub static MARGIN_RANKING_LOSS: Op = Op {
    sig: sig(
        "nn.functional.margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, bool? size_average=None, bool? reduce=None, str{none|mean|sum} reduction='mean') -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "`max(0, -target * (input1 - input2) + margin)`: target 1 ranks the first input higher, -1 the second; averaged, summed or as it is.",
    forms: F,
    body: decompose(|c| {
        let [a, b, t] = [c.tensor("input1")?, c.tensor("input2")?, c.tensor("target")?];
        if a.ndim() != b.ndim() || a.ndim() != t.ndim() {
            return Err(different_ranks(c));
        }
        reduced(c, (-Term::from(t) * (Term::from(a) - b) + c.float("margin")?).clamp_min_(0.0))
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3], f32[2,3], f32[2,3](= 1, -1, 1, -1, -1, 1, nograd)",
        "f32[3], f32[3], f32[3](= 1, -1, 1, nograd), margin=0.5, reduction='none'",
        "f32[2,3], f32[1,3], f32[1,3](= 1, -1, 1, nograd), reduction='sum'",
    ],
    errors: &[
        ("f32[2], f32[2], f32[2], reduction='no'", "ValueError", "not a valid value for reduction"),
        ("f32[2,3], f32[3], f32[3]", "RuntimeError", "All input tensors should have same dimension"),
    ],
    ..OP
};

fn different_ranks(c: &Call) -> Error {
    let size = |i: usize| c.tensor(i).map_or(String::new(), |t| format!("torch.Size({})", Show(t.shape())));
    Error::runtime(format!(
        "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: {}, input2: {}, target: {} ",
        size(0),
        size(1),
        size(2)
    ))
}
