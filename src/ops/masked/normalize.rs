//! Masked ops with results of the input's shape: softmax, running sums and products, division by a norm.

use super::reduce::NORM;
use super::{Identity, asked, greatest, kept, least, one, zero};
use crate::error::Result;
use crate::op::*;
use crate::ops::elementwise::minmax::CLAMP_MIN;
use crate::ops::nn::softmax;
use crate::ops::reduce::scan;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&SOFTMAX, &LOG_SOFTMAX, &SOFTMIN, &CUMSUM, &CUMPROD, &NORMALIZE];

/// The input with masked-out elements replaced, along the dimension, in the requested dtype.
fn along(c: &Call, op: &'static Op, identity: Identity, negate: bool) -> Result<Term> {
    let t = c.tensor(0)?;
    let dim = c.dim("dim") as i64;
    let kept = kept(c, identity)?;
    let dtype = asked(c).unwrap_or(t.dtype());
    let kept = if negate { -kept } else { kept };
    Ok(op.call((kept, dim, dtype)).to_dtype(dtype))
}

const ALONG: Op = Op {
    forms: F,
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3], 1",
        "f32[2,3], 0, mask=b8[2,3](= 1, 0, 1, 0, 1, 1)",
        "f32[2,3,2], -2, mask=b8[3,1](= 1, 0, 1)",
        "i32[2,3], 1, dtype=float32, mask=b8[2,3](= 1, 0, 1, 0, 1, 1)",
    ],
    errors: &[
        ("f32[2,3], 2", "IndexError", "Dimension out of range"),
        ("f32[3], 0, mask=b8[2,3]", "IndexError", "expected broadcastable mask"),
    ],
    ..OP
};

pub static SOFTMAX: Op = Op {
    sig: sig("masked.softmax(Tensor input, Dim dim, *, DType? dtype=None, Tensor? mask=None) -> Tensor"),
    doc: "`exp(x) / sum(exp(x))` along a dimension over the elements that the mask lets through; zero elsewhere, NaN where none is.",
    body: decompose(|c| along(c, &softmax::SOFTMAX, least, false)?.outputs()),
    reference: "(lambda e: e / np.sum(e, axis=dim, keepdims=True))(np.exp(x0.astype(float)) * (1 if mask is None else mask))",
    ..ALONG
};
pub static LOG_SOFTMAX: Op = Op {
    sig: sig("masked.log_softmax(Tensor input, Dim dim, *, DType? dtype=None, Tensor? mask=None) -> Tensor"),
    doc: "The logarithm of the softmax over the elements that the mask lets through; minus infinity elsewhere, NaN where none is.",
    body: decompose(|c| along(c, &softmax::LOG_SOFTMAX, least, false)?.outputs()),
    samples: &[
        "f32[2,3], 1",
        "f32[2,3], 0, mask=b8[2,3](= 1, 0, 1, 0, 1, 1)",
        "f32[2,3,2], -2, mask=b8[3,1](= 1, 0, 1)",
        "i32[2,3], 1, dtype=float32",
    ],
    reference: "(lambda e: np.log(e / np.sum(e, axis=dim, keepdims=True)))(np.exp(x0.astype(float)) * (1 if mask is None else mask))",
    ..ALONG
};
pub static SOFTMIN: Op = Op {
    sig: sig("masked.softmin(Tensor input, Dim dim, *, DType? dtype=None, Tensor? mask=None) -> Tensor"),
    doc: "The softmax of the negated elements that the mask lets through.",
    body: decompose(|c| along(c, &softmax::SOFTMAX, greatest, true)?.outputs()),
    reference: "(lambda e: e / np.sum(e, axis=dim, keepdims=True))(np.exp(-x0.astype(float)) * (1 if mask is None else mask))",
    ..ALONG
};
pub static CUMSUM: Op = Op {
    sig: sig("masked.cumsum(Tensor input, Dim dim, *, DType? dtype=None, Tensor? mask=None) -> Tensor"),
    doc: "The running sum along a dimension of the elements that the mask lets through.",
    body: decompose(|c| along(c, &scan::CUMSUM, zero, false)?.outputs()),
    reference: "np.cumsum(x0 * (1 if mask is None else mask), axis=dim)",
    ..ALONG
};
pub static CUMPROD: Op = Op {
    sig: sig("masked.cumprod(Tensor input, Dim dim, *, DType? dtype=None, Tensor? mask=None) -> Tensor"),
    doc: "The running product along a dimension of the elements that the mask lets through.",
    body: decompose(|c| along(c, &scan::CUMPROD, one, false)?.outputs()),
    reference: "np.cumprod(x0 if mask is None else np.where(mask, x0, 1), axis=dim)",
    ..ALONG
};

pub static NORMALIZE: Op = Op {
    sig: sig(
        "masked.normalize(Tensor input, Scalar ord, Dim[1]? dim, *, float eps=1e-12, DType? dtype=None, Tensor? mask=None) -> Tensor",
    ),
    doc: "The elements that the mask lets through over their norm along a dimension, which counts as at least `eps`; zero elsewhere.",
    forms: F,
    body: decompose(|c| {
        let (t, mask) = (c.tensor(0)?, c.args.last().map(Value::reborrow).unwrap_or_default());
        let dtype = asked(c).unwrap_or(t.dtype());
        let args: Args =
            smallvec![t.into(), c.scalar("ord")?.into(), c.argument("dim").reborrow(), true.into(), dtype.into(), mask];
        let norm = CLAMP_MIN.call((NORM.call(args), c.float("eps")?));
        (kept(c, zero)? / norm).outputs()
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3], 2.0, 1",
        "f32[2,3], 1, 0, mask=b8[2,3](= 1, 0, 1, 0, 1, 1)",
        "f32[2,3], 2, 1, eps=1.0, dtype=float64, mask=b8[3](= 1, 0, 1)",
        "c64[2,3], 2, 1, mask=b8[2,3](= 1, 0, 1, 0, 1, 1)",
    ],
    errors: &[
        ("f32[3], 2, 1", "IndexError", "Dimension out of range"),
        ("i64[3], 2, 0", "NotImplementedError", "floating point or complex"),
    ],
    reference: "(lambda y: y / np.maximum(np.sum(np.abs(y) ** ord, axis=dim, keepdims=True) ** (1 / ord), eps))(x0 * (1 if mask is None else mask))",
    ..OP
};
