//! Ops over each tensor of a list: what optimizers and the clipping of gradients call once for all parameters.

use crate::error::Result;
use crate::op::*;
use crate::ops::elementwise::arith::{ADD, MUL};
use crate::ops::elementwise::minmax::{CLAMP_MAX, CLAMP_MIN};
use crate::ops::reduce::norm::VECTOR_NORM;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&FOREACH_ADD_, &FOREACH_MUL_, &FOREACH_CLAMP_MIN_, &FOREACH_CLAMP_MAX_, &FOREACH_NORM];

/// Changes each tensor of the first argument in place.
fn each(c: &Call, change: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Outputs> {
    c.args[0].tensors().try_for_each(|t| change(t).map(drop))?;
    Ok(Outputs::new())
}

pub static FOREACH_ADD_: Op = Op {
    sig: sig("_foreach_add_(Tensor[] self, Scalar scalar) -> ()"),
    doc: "Adds a number to each tensor of a list, in place.",
    forms: HIDDEN,
    body: decompose(|c| {
        let number = c.scalar("scalar")?;
        each(c, |t| ADD.call_inplace((t, number)))
    }),
    vjp: Vjp::Composite,
    samples: &["[f32[], f32[2,3]], 1", "[f64[3], i64[2]], 2"],
    errors: &[("[i64[2]], 0.5", "RuntimeError", "can't be cast")],
    ..OP
};

pub static FOREACH_MUL_: Op = Op {
    sig: sig("_foreach_mul_(Tensor[] self, Tensor other) -> ()"),
    doc: "Multiplies each tensor of a list, in place, by the number in a 0-d tensor, which may be on another device.",
    forms: HIDDEN,
    body: decompose(|c| {
        let other = c.tensor("other")?;
        each(c, |t| match t.device() == other.device() {
            true => MUL.call_inplace((t, other)),
            false => MUL.call_inplace((t, Term::from(other).to_device(t.device()))),
        })
    }),
    vjp: Vjp::Composite,
    samples: &["[f32[3], f32[2,3]], f32[](pos)"],
    errors: &[("[i64[2]], f32[]", "RuntimeError", "can't be cast")],
    ..OP
};

pub static FOREACH_CLAMP_MIN_: Op = Op {
    sig: sig("_foreach_clamp_min_(Tensor[] self, Scalar scalar) -> ()"),
    doc: "Limits each tensor of a list from below, in place.",
    forms: HIDDEN,
    body: decompose(|c| {
        let number = c.scalar("scalar")?;
        each(c, |t| CLAMP_MIN.call_inplace((t, number)))
    }),
    vjp: Vjp::Composite,
    samples: &["[f32[3], f32[2,3]], -0.5"],
    errors: &[("[c64[2]], 0.5", "NotImplementedError", "complex")],
    ..OP
};

pub static FOREACH_CLAMP_MAX_: Op = Op {
    sig: sig("_foreach_clamp_max_(Tensor[] self, Scalar scalar) -> ()"),
    doc: "Limits each tensor of a list from above, in place.",
    forms: HIDDEN,
    body: decompose(|c| {
        let number = c.scalar("scalar")?;
        each(c, |t| CLAMP_MAX.call_inplace((t, number)))
    }),
    vjp: Vjp::Composite,
    samples: &["[f32[3], f32[2,3]], 0.5"],
    errors: &[("[c64[2]], 0.5", "NotImplementedError", "complex")],
    ..OP
};

pub static FOREACH_NORM: Op = Op {
    sig: sig("_foreach_norm(Tensor[] self, Scalar ord=2) -> Tensor[]"),
    doc: "The vector norm of order `ord` of each tensor of a list, over all its elements.",
    forms: HIDDEN,
    body: decompose(|c| {
        let order = c.scalar("ord")?;
        c.args[0].tensors().map(|t| VECTOR_NORM.call((t, order)).ok()).collect()
    }),
    vjp: Vjp::Composite,
    samples: &["[f32[3], f32[2,3]]", "[f32[3], f64[2]], inf", "[f32[4]], 1"],
    errors: &[("[i64[2]]", "RuntimeError", "floating point")],
    ..OP
};
