//! The smallest and the largest element together.

use super::extrema::{AMAX, AMIN, shared};
use crate::error::{Error, Result};
use crate::op::*;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&AMINMAX];

/// The dimension as a list; empty means all.
fn dims(c: &impl Arguments) -> Ints {
    c.opt_int("dim").into_iter().collect()
}

fn aminmax(c: &Call) -> Result<Outputs> {
    let t = c.tensor(0)?;
    if t.dtype().is_complex() {
        return Err(Error::type_(format!("aminmax not implemented for {}", t.dtype().scalar_type_name())));
    }
    if t.numel() == 0 && c.opt_int("dim").is_none() {
        return Err(Error::runtime(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.",
        ));
    }
    let extreme = |op: &'static Op| op.call((t, dims(c), c.flag("keepdim"))).ok();
    Ok(smallvec![extreme(&AMIN)?, extreme(&AMAX)?])
}

/// The gradients of both, each shared evenly by the elements equal to the extreme.
fn both(c: &VjpCtx) -> Result<Vec<Option<Tensor>>> {
    let every: Ints = (0..c.ndim(0) as i64).collect();
    let dims = if dims(c).is_empty() || c.ndim(0) == 0 { every } else { dims(c) };
    let part = |i: usize| {
        let whole = |t: Term| if c.opt_int("dim").is_some() { t.restore_dims(c) } else { t };
        shared(whole(c.gi(i)), c.arg(0), whole(c.out(i)), &dims)
    };
    let sum = match (c.has_grad(0), c.has_grad(1)) {
        (true, true) => part(0) + part(1),
        (true, false) => part(0),
        _ => part(1),
    };
    Ok(vec![Some(sum.ok()?)])
}

pub static AMINMAX: Op = Op {
    sig: sig("aminmax(Tensor self, *, Dim? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)"),
    doc: "The least and the greatest elements, of all or along a dimension. The gradient is shared evenly by equal elements.",
    forms: FMO,
    body: decompose(aminmax),
    vjp: Vjp::Joint(Joint { args: &[0], saves: A0 | OUT0 | OUT1, formula: both }),
    samples: &["f32[2,3]", "f32[2,3], dim=1", "f32[2,3](ties), dim=0, keepdim=True", "i64[4]", "f32[], dim=0"],
    errors: &[
        ("f32[0]", "RuntimeError", "over an empty dimension"),
        ("f32[2,0], dim=1", "IndexError", "to have non-zero size"),
        ("c64[2]", "TypeError", "not implemented for ComplexFloat"),
    ],
    out_dtype: Some(OutDType::Same),
    ..OP
};
