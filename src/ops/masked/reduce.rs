//! Masked sums, products, extremes and norms.

use super::{Identity, asked, dims, greatest, kept, least, one, spread, zero};
use crate::dtype::{Category, DType, Scalar};
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::elementwise::exp;
use crate::ops::elementwise::ternary::WHERE;
use crate::ops::reduce::any_all::ANY;
use crate::ops::reduce::extrema;
use crate::ops::reduce::median::NANMEDIAN_DIM;
use crate::ops::reduce::norm::{self, VECTOR_NORM};
use crate::ops::reduce::sum_prod::{PROD_DIM, SUM_DIM};
use crate::ops::support::host_read::item;

pub static OPS: &[&Op] = &[&SUM, &PROD, &AMAX, &AMIN, &ARGMAX, &ARGMIN, &MEDIAN, &NORM, &LOGSUMEXP, &LOGADDEXP];

/// Integers and bools are summed and multiplied in int64.
fn total_dtype(c: &Call) -> Result<DType> {
    let own = c.tensor(0)?.dtype();
    Ok(asked(c).unwrap_or(if own.category() < Category::Float { DType::I64 } else { own }))
}

/// In the requested dtype, else in the input's.
fn own_dtype(c: &Call, t: Term) -> Result<Outputs> {
    t.to_dtype(asked(c).unwrap_or(c.tensor(0)?.dtype())).outputs()
}

pub(super) const REDUCTION: Op = Op {
    forms: F,
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3]",
        "f32[2,3], 1, mask=b8[2,3](= 1, 0, 1, 0, 1, 1)",
        "f32[2,3,2], (0, 2), keepdim=True, mask=b8[3,2](= 1, 1, 0, 1, 1, 0)",
        "i32[2,3], 0, mask=b8[1,3](= 1, 0, 1)",
        "f32[], mask=b8[](= 1)",
        "f32[2,3], -1, dtype=float64, mask=f32[2,3](ties, nograd)",
    ],
    errors: &[
        ("f32[3], 1", "IndexError", "Dimension out of range"),
        ("f32[3], mask=b8[2,3]", "IndexError", "expected broadcastable mask"),
        ("f32[3], mask=b8[2]", "RuntimeError", "The expanded size of the tensor"),
    ],
    ..OP
};

pub static SUM: Op = Op {
    sig: sig(
        "masked.sum(Tensor input, Dim[1]? dim=None, *, bool? keepdim=False, DType? dtype=None, Tensor? mask=None) -> Tensor",
    ),
    doc: "The sum of the elements that the mask lets through, of all or over the given dimensions; zero of none.",
    body: decompose(|c| {
        let dtype = total_dtype(c)?;
        SUM_DIM.calls((kept(c, zero)?, dims(c)?, c.flag("keepdim"), dtype))
    }),
    reference: "np.sum(x0, axis=dim, keepdims=keepdim, where=True if mask is None else mask != 0)",
    ..REDUCTION
};
pub static PROD: Op = Op {
    sig: sig(
        "masked.prod(Tensor input, Dim[1]? dim=None, *, bool? keepdim=False, DType? dtype=None, Tensor? mask=None) -> Tensor",
    ),
    doc: "The product of the elements that the mask lets through, of all or over the given dimensions; one of none.",
    body: decompose(|c| {
        let whole = kept(c, one)?.to_dtype(total_dtype(c)?);
        // From the last dimension on, so that the remaining dimensions keep their numbers.
        dims(c)?.iter().rev().fold(whole, |x, &dim| PROD_DIM.call((x, dim, c.flag("keepdim")))).outputs()
    }),
    reference: "np.prod(x0, axis=dim, keepdims=keepdim, where=True if mask is None else mask != 0)",
    ..REDUCTION
};

fn bound(c: &Call, op: &'static Op, identity: Identity) -> Result<Outputs> {
    own_dtype(c, op.call((kept(c, identity)?, dims(c)?, c.flag("keepdim"))))
}
pub static AMAX: Op = Op {
    sig: sig(
        "masked.amax(Tensor input, Dim[1]? dim=None, *, bool? keepdim=False, DType? dtype=None, Tensor? mask=None) -> Tensor",
    ),
    doc: "The greatest element that the mask lets through, of all or over the given dimensions.",
    body: decompose(|c| bound(c, &extrema::AMAX, least)),
    errors: &[("b8[3], mask=b8[3]", "NotImplementedError", "identity of amax on torch.bool input")],
    reference: "np.max(x0, axis=dim, keepdims=keepdim) if mask is None else np.max(x0, axis=dim, keepdims=keepdim, where=mask != 0, initial=-np.inf if x0.dtype.kind == 'f' else -2**31)",
    ..REDUCTION
};
pub static AMIN: Op = Op {
    sig: sig(
        "masked.amin(Tensor input, Dim[1]? dim=None, *, bool? keepdim=False, DType? dtype=None, Tensor? mask=None) -> Tensor",
    ),
    doc: "The least element that the mask lets through, of all or over the given dimensions.",
    body: decompose(|c| bound(c, &extrema::AMIN, greatest)),
    errors: &[("c64[3], mask=b8[3]", "NotImplementedError", "identity of amin on torch.complex64 input")],
    reference: "np.min(x0, axis=dim, keepdims=keepdim) if mask is None else np.min(x0, axis=dim, keepdims=keepdim, where=mask != 0, initial=np.inf if x0.dtype.kind == 'f' else 2**31 - 1)",
    ..REDUCTION
};

const POSITION: Op = Op {
    vjp: Vjp::None("a position"),
    samples: &[
        "f32[2,3]",
        "f32[2,3], 1, mask=b8[2,3](= 1, 0, 1, 0, 1, 1)",
        "i32[2,3], 0, keepdim=True, mask=b8[3](= 1, 0, 1)",
        "f32[2,3], dtype=int64",
    ],
    errors: &[
        ("f32[3], 1", "IndexError", "Dimension out of range"),
        ("b8[3], mask=b8[3]", "NotImplementedError", "on torch.bool input"),
    ],
    ..REDUCTION
};
fn position(c: &Call, op: &'static Op, identity: Identity) -> Result<Outputs> {
    own_dtype(c, op.call((kept(c, identity)?, c.opt_int("dim"), c.flag("keepdim"))))
}
pub static ARGMAX: Op = Op {
    sig: sig(
        "masked.argmax(Tensor input, Dim? dim=None, *, bool? keepdim=False, DType? dtype=None, Tensor? mask=None) -> Tensor",
    ),
    doc: "The position of the greatest element that the mask lets through; in the input's dtype unless `dtype` says another one.",
    body: decompose(|c| position(c, &extrema::ARGMAX, least)),
    reference: "np.argmax(x0 if mask is None else np.where(mask, x0, -np.inf), axis=dim, keepdims=keepdim)",
    ..POSITION
};
pub static ARGMIN: Op = Op {
    sig: sig(
        "masked.argmin(Tensor input, Dim? dim=None, *, bool? keepdim=False, DType? dtype=None, Tensor? mask=None) -> Tensor",
    ),
    doc: "The position of the least element that the mask lets through; in the input's dtype unless `dtype` says another one.",
    body: decompose(|c| position(c, &extrema::ARGMIN, greatest)),
    reference: "np.argmin(x0 if mask is None else np.where(mask, x0, np.inf), axis=dim, keepdims=keepdim)",
    ..POSITION
};

fn median(c: &Call) -> Result<Outputs> {
    let t = c.tensor(0)?;
    let (own, dim) = (t.dtype(), c.dim("dim") as i64);
    if own.is_complex() {
        return Err(Error::not_implemented("the median of complex numbers is not defined"));
    }
    let kept = kept(c, |_, _| Ok(Scalar::Float(f64::NAN)))?;
    let float = if own.is_float() { kept } else { kept.to_dtype(DType::F32) };
    let values = Term::from(&NANMEDIAN_DIM.calls((float, dim, c.flag("keepdim")))?[0]);
    if !own.is_float() && item(&ANY.call((values.clone().is_nan(),)).ok()?)?.to_bool() {
        return Err(Error::value("masked median expects no fully masked out rows if dtype is not floating point"));
    }
    own_dtype(c, values)
}
pub static MEDIAN: Op = Op {
    sig: sig(
        "masked.median(Tensor input, Dim dim=-1, *, bool keepdim=False, DType? dtype=None, Tensor? mask=None) -> Tensor",
    ),
    doc: "The median, the lower of two, of the elements along a dimension that the mask lets through; NaN of none, and elements that are NaN do not count. Integers go through float32.",
    body: reads_host(median),
    samples: &[
        "f32[2,3]",
        "f32[2,5], 1, mask=b8[2,5](= 1, 1, 0, 1, 0, 0, 1, 1, 1, 0)",
        "f32[3,4], 0, keepdim=True, mask=b8[4](= 1, 0, 1, 1)",
        "i32[2,3], 0, mask=b8[2,1](= 0, 1)",
    ],
    errors: &[
        ("i64[3], 0, mask=b8[3](= 0, 0, 0)", "ValueError", "expects no fully masked out rows"),
        ("f32[3], 1", "IndexError", "Dimension out of range"),
        ("c64[3]", "NotImplementedError", "not defined"),
    ],
    reference: "np.nanquantile(x0.astype(float) if mask is None else np.where(mask, x0, np.nan), 0.5, axis=dim, keepdims=keepdim, method='lower')",
    ..REDUCTION
};

pub static NORM: Op = Op {
    sig: sig(
        "masked.norm(Tensor input, Scalar ord=2.0, Dim[1]? dim=None, *, bool? keepdim=False, DType? dtype=None, Tensor? mask=None) -> Tensor",
    ),
    doc: "The vector norm `sum(|x|^ord)^(1/ord)` of the elements that the mask lets through, of all or over the given dimensions.",
    body: decompose(|c| {
        // For a negative order the identity is infinity, not zero.
        let kept = kept(c, if c.float("ord")? < 0.0 { greatest } else { zero })?;
        VECTOR_NORM.calls((kept, c.scalar("ord")?, dims(c)?, c.flag("keepdim"), asked(c)))
    }),
    samples: &[
        "f32[2,3]",
        "f32[2,3], 1, 1, mask=b8[2,3](= 1, 0, 1, 0, 1, 1)",
        "f32[2,3], 3.0, (0, 1), keepdim=True, mask=b8[3](= 1, 0, 1)",
        "c64[2,3], 2, 0, mask=b8[2,3](= 1, 0, 1, 0, 1, 1)",
    ],
    errors: &[
        ("f32[3], 2, 1", "IndexError", "Dimension out of range"),
        ("i64[3]", "NotImplementedError", "floating point or complex"),
    ],
    reference: "np.sum(np.abs(x0) ** ord, axis=dim, keepdims=keepdim, where=True if mask is None else mask) ** (1 / ord)",
    ..REDUCTION
};

pub static LOGSUMEXP: Op = Op {
    sig: sig(
        "masked.logsumexp(Tensor input, Dim[1]? dim=None, *, bool? keepdim=False, DType? dtype=None, Tensor? mask=None) -> Tensor",
    ),
    doc: "The logarithm of the sum of the exponentials of the elements that the mask lets through; minus infinity of none.",
    body: decompose(|c| {
        let lowest: Identity = |c, d| if d.is_complex() { Ok(Scalar::Float(f64::NEG_INFINITY)) } else { least(c, d) };
        own_dtype(c, norm::LOGSUMEXP.call((kept(c, lowest)?, dims(c)?, c.flag("keepdim"))))
    }),
    samples: &[
        "f32[2,3]",
        "f32[2,3], 1, mask=b8[2,3](= 1, 0, 1, 0, 1, 1)",
        "f32[2,3,2], (0, 2), keepdim=True, mask=b8[3,2](= 1, 1, 0, 1, 1, 0)",
        "i32[2,3], 0, dtype=float32, mask=b8[2,3](= 1, 0, 1, 0, 1, 1)",
    ],
    reference: "np.log(np.sum(np.exp(x0), axis=dim, keepdims=keepdim, where=True if mask is None else mask))",
    ..REDUCTION
};

pub static LOGADDEXP: Op = Op {
    sig: sig(
        "masked.logaddexp(Tensor input, Tensor other, *, DType? dtype=None, Tensor? input_mask=None, Tensor? other_mask=None) -> Tensor",
    ),
    doc: "`log(exp(input) + exp(other))`, where an element that its mask leaves out counts as minus infinity.",
    body: decompose(|c| {
        let side = |t: usize, mask: usize| -> Result<Term> {
            let t = c.tensor(t)?;
            match c.opt_tensor(mask) {
                Some(mask) => Ok(WHERE.call((spread(mask, t)?, t, least(c, t.dtype())?))),
                None => Ok(t.into()),
            }
        };
        let sum = exp::LOGADDEXP.call((side(0, 3)?, side(1, 4)?));
        sum.to_dtype(c.dtype("dtype").unwrap_or(c.tensor(0)?.dtype())).outputs()
    }),
    samples: &[
        "f32[2,3], f32[2,3]",
        "f32[2,3], f32[2,3], input_mask=b8[2,3](= 1, 0, 1, 0, 1, 1), other_mask=b8[3](= 1, 1, 0)",
        "f64[3], f64[2,3], dtype=float32, other_mask=b8[3](= 1, 0, 1)",
    ],
    errors: &[("f32[3], f32[3], input_mask=b8[2,3]", "IndexError", "expected broadcastable mask")],
    reference: "np.logaddexp(x0 if input_mask is None else np.where(input_mask, x0, -np.inf), x1 if other_mask is None else np.where(other_mask, x1, -np.inf))",
    ..REDUCTION
};
