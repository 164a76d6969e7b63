//! Further in-place distributions, each a function of uniform or normal numbers.

use super::distributions::{NORMAL_PAIRS_, UNIFORM_};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::create::like::EMPTY_LIKE;
use crate::ops::elementwise::rounding::CEIL;
use crate::ops::elementwise::trig::TAN;
use crate::ops::support::promotion::no_kernel;
use std::f64::consts::PI;

pub static OPS: &[&Op] = &[&GEOMETRIC_, &CAUCHY_, &LOG_NORMAL_];

/// Draws in the shape of self, in a float dtype, on the CPU the widest as in PyTorch.
fn drawn(c: &Call, op: &'static Op, [a, b]: [f64; 2]) -> Result<Term> {
    let t = c.tensor(0)?;
    let wide = t.dtype() == DType::F64 || !t.device().is_gpu();
    let out = EMPTY_LIKE.call((t, if wide { DType::F64 } else { DType::F32 })).ok()?;
    op.call_inplace((&out, a, b, c.argument("generator").reborrow())).map(Term::from)
}
/// Uniform numbers in the open interval (0, 1).
fn uniform(c: &Call) -> Result<Term> {
    let least = if c.tensor(0)?.device().is_gpu() { f64::from(f32::EPSILON) } else { f64::EPSILON } / 4.0;
    Ok(drawn(c, &UNIFORM_, [0.0, 1.0])?.clamp_(least, 1.0))
}

fn finished(c: &Call, values: Result<Term>) -> Result<Outputs> {
    values?.to_dtype(c.tensor(0)?.dtype()).outputs()
}

// A fresh cell for every literal is what taking over its parts must give.
const FILLER: Op = Op { forms: ONLY_INPLACE, vjp: Vjp::Zero(&[0]), keeps: Some(""), reference: "shape", ..OP };

pub static GEOMETRIC_: Op = Op {
    sig: sig("geometric_(Tensor! self, float p, *, Generator? generator=None) -> Tensor"),
    doc: "Fills self with numbers of trials up to the first success, each of probability `p`.",
    body: decompose(|c| {
        let (t, p) = (c.tensor(0)?, c.float("p")?);
        if !(p > 0.0 && p < 1.0) {
            return Err(Error::runtime(format!("geometric_ expects p to be in (0, 1), but got p={p}")));
        }
        if t.dtype().is_complex() || t.dtype() == DType::Bool {
            return Err(no_kernel("geometric_cpu", t.dtype()));
        }
        finished(c, uniform(c).map(|u| CEIL.call((u.log() / (-p).ln_1p(),)).clamp_min_(1.0)))
    }),
    samples: &["f32[2,3], 0.5", "i64[4], 0.25"],
    errors: &[
        ("f32[2], 1.5", "RuntimeError", "expects p to be in (0, 1)"),
        ("b8[2], 0.5", "NotImplementedError", "not implemented for 'Bool'"),
    ],
    ..FILLER
};

pub static CAUCHY_: Op = Op {
    sig: sig("cauchy_(Tensor! self, float median=0.0, float sigma=1.0, *, Generator? generator=None) -> Tensor"),
    doc: "Fills self with numbers of the Cauchy distribution.",
    body: decompose(|c| {
        let (t, median, sigma) = (c.tensor(0)?, c.float("median")?, c.float("sigma")?);
        if sigma <= 0.0 || sigma.is_nan() {
            return Err(Error::runtime(format!("cauchy_ expects sigma > 0.0, but found sigma={sigma}")));
        }
        if !t.dtype().is_float() {
            return Err(Error::runtime(format!(
                "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you specified {}",
                t.dtype().cpp_name()
            )));
        }
        finished(c, uniform(c).map(|u| TAN.call(((u - 0.5) * PI,)) * sigma + median))
    }),
    samples: &["f32[2,3]", "f64[4], 1.0, 2.0"],
    errors: &[
        ("f32[2], 0, -1", "RuntimeError", "expects sigma > 0.0"),
        ("i64[2]", "RuntimeError", "continuous probability distribution"),
    ],
    ..FILLER
};

pub static LOG_NORMAL_: Op = Op {
    sig: sig("log_normal_(Tensor! self, float mean=1.0, float std=2.0, *, Generator? generator=None) -> Tensor"),
    doc: "Fills self with numbers whose logarithms are of the normal distribution.",
    body: decompose(|c| {
        let (t, mean, std) = (c.tensor(0)?, c.float("mean")?, c.float("std")?);
        if std <= 0.0 || std.is_nan() {
            return Err(Error::runtime(format!("log_normal_ expects std > 0.0, but found std={std}")));
        }
        if !t.dtype().is_float() {
            return Err(no_kernel("log_normal_cpu", t.dtype()));
        }
        finished(c, drawn(c, &NORMAL_PAIRS_, [mean, std]).map(Term::exp))
    }),
    samples: &["f32[2,3]", "f64[4], 0.0, 0.5"],
    errors: &[
        ("f32[2], 0, -1", "RuntimeError", "expects std > 0.0"),
        ("i64[2]", "NotImplementedError", "not implemented for 'Long'"),
    ],
    ..FILLER
};
