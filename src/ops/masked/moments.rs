//! Masked mean, variance and standard deviation: sums over counts.

use super::reduce::REDUCTION;
use super::{asked, dims, mask};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::elementwise::minmax::CLAMP_MIN;
use crate::ops::elementwise::ternary::WHERE;
use crate::ops::reduce::sum_prod::SUM_DIM;

pub static OPS: &[&Op] = &[&MEAN, &VAR, &STD];

/// The number of unmasked elements, as int64: per line, or one number without a mask.
fn count(c: &Call, mask: &Option<Term>, dims: &Ints, keepdim: bool) -> Result<Term> {
    let t = c.tensor(0)?;
    Ok(match mask {
        Some(mask) => SUM_DIM.call((mask, dims.clone(), keepdim)),
        None => {
            let n: usize = dims.iter().map(|&d| t.size(d as usize)).product();
            crate::ops::create::like::SCALAR_TENSOR.call((n as i64, DType::I64, t.device()))
        }
    })
}

/// The sum of the unmasked elements of `x` in a dtype.
fn total(x: Term, mask: &Option<Term>, dims: &Ints, keepdim: bool, dtype: DType) -> Term {
    let x = match mask {
        Some(mask) => WHERE.call((mask, x, 0)),
        None => x,
    };
    SUM_DIM.call((x, dims.clone(), keepdim, dtype))
}

fn mean(c: &Call) -> Result<Outputs> {
    let own = c.tensor(0)?.dtype();
    let dtype = asked(c).unwrap_or(own);
    if !dtype.is_differentiable() {
        let source = if asked(c).is_some() { "Optional" } else { "Input" };
        return Err(Error::value(format!(
            "mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. Got: \
             torch.{}",
            dtype.name()
        )));
    }
    let (mask, dims, keepdim) = (mask(c)?, dims(c)?, c.flag("keepdim"));
    let input = Term::from(c.tensor(0)?);
    // The zero that replaces a bool is not a bool.
    let input = if own == DType::Bool { input.to_dtype(dtype) } else { input };
    (total(input, &mask, &dims, keepdim, dtype) / count(c, &mask, &dims, keepdim)?).outputs()
}

pub static MEAN: Op = Op {
    sig: sig(
        "masked.mean(Tensor input, Dim[1]? dim=None, *, bool? keepdim=False, DType? dtype=None, Tensor? mask=None) -> Tensor",
    ),
    doc: "The mean of the elements that the mask lets through, of all or over the given dimensions; NaN of none.",
    body: decompose(mean),
    samples: &[
        "f32[2,3]",
        "f32[2,3], 1, mask=b8[2,3](= 1, 0, 1, 0, 1, 1)",
        "f32[2,3,2], (0, 2), keepdim=True, mask=b8[3,2](= 1, 1, 0, 1, 1, 0)",
        "i32[2,3], 0, dtype=float32, mask=b8[1,3](= 1, 0, 1)",
        "c64[2,3], mask=b8[3](= 1, 0, 1)",
    ],
    errors: &[
        ("f32[3], 1", "IndexError", "Dimension out of range"),
        ("i64[3]", "ValueError", "Could not infer output dtype. Input dtype must be either a floating point"),
        ("f32[3], dtype=int64", "ValueError", "Optional dtype must be either a floating point"),
    ],
    reference: "np.mean(x0, axis=dim, keepdims=keepdim, where=True if mask is None else mask)",
    ..REDUCTION
};

/// The difference between count and divisor: arguments `unbiased` and `correction`.
fn correction(c: &Call) -> Result<f64> {
    match (c.opt_scalar("unbiased"), c.opt_float("correction")) {
        (Some(_), Some(_)) => Err(Error::value("Only one of unbiased and correction may be given")),
        (Some(unbiased), None) => Ok(f64::from(unbiased.to_bool())),
        (None, correction) => Ok(correction.unwrap_or(1.0)),
    }
}

/// The sum of squared deviations from the mean over the count minus the correction.
fn variance(c: &Call) -> Result<Term> {
    let input = c.tensor(0)?;
    let float = |d: DType| if d.is_differentiable() { d } else { DType::F32 };
    let result = asked(c).unwrap_or(float(input.dtype()));
    let (correction, computed) = (correction(c)?, float(result));
    let (mask, dims, keepdim) = (mask(c)?, dims(c)?, c.flag("keepdim"));
    let input = Term::from(input);
    let input = if input.get().is_some_and(|t| t.dtype() == DType::Bool) { input.to_dtype(computed) } else { input };
    let n = count(c, &mask, &dims, true)?;
    // At least one, so that no NaN flows back from a fully masked line.
    let mean = total(input.clone(), &mask, &dims, true, computed) / CLAMP_MIN.call((n.clone(), 1));
    let away = input - mean;
    let sum = total(away.clone() * away.conj(), &mask, &dims, keepdim, computed);
    let n = if mask.is_some() { n.reshape(&sum.sizes()) } else { n };
    let n = if correction == 0.0 { n } else { CLAMP_MIN.call((n.to_dtype(computed.to_real()) - correction, 0)) };
    Ok((sum / n).to_dtype(result))
}

const VARIANCE: Op = Op {
    samples: &[
        "f32[2,3]",
        "f32[2,4], 1, mask=b8[2,4](= 1, 1, 0, 1, 1, 0, 1, 1)",
        "f32[2,3,2], (0, 2), False, keepdim=True, mask=b8[3,2](= 1, 1, 0, 1, 1, 0)",
        "f32[2,4], 1, correction=2, mask=b8[2,4](= 1, 1, 0, 1, 1, 0, 1, 1)",
        "i32[2,3], 0, True, mask=b8[1,3](= 1, 0, 1)",
    ],
    errors: &[
        ("f32[3], 1", "IndexError", "Dimension out of range"),
        ("f32[3], 0, True, correction=1", "ValueError", "Only one of unbiased and correction may be given"),
    ],
    ..REDUCTION
};
pub static VAR: Op = Op {
    sig: sig(
        "masked.var(Tensor input, Dim[1]? dim=None, bool? unbiased=None, *, Scalar? correction=None, bool? keepdim=False, DType? dtype=None, Tensor? mask=None) -> Tensor",
    ),
    doc: "The variance of the elements that the mask lets through: the divisor is their number less `correction`, by default 1, or 0 where not `unbiased`.",
    body: decompose(|c| variance(c)?.outputs()),
    reference: "np.var(x0, axis=dim, ddof=correction if correction is not None else int(unbiased is not False), keepdims=keepdim, where=True if mask is None else mask)",
    ..VARIANCE
};
pub static STD: Op = Op {
    sig: sig(
        "masked.std(Tensor input, Dim[1]? dim=None, bool? unbiased=None, *, Scalar? correction=None, bool? keepdim=False, DType? dtype=None, Tensor? mask=None) -> Tensor",
    ),
    doc: "The standard deviation of the elements that the mask lets through: the square root of `masked.var`.",
    body: decompose(|c| variance(c)?.sqrt().outputs()),
    reference: "np.std(x0, axis=dim, ddof=correction if correction is not None else int(unbiased is not False), keepdims=keepdim, where=True if mask is None else mask)",
    ..VARIANCE
};
