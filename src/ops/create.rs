//! Creation of constant tensors: zeros, ones, full and related factories.

use crate::dtype::{DType, Scalar, default_dtype};
use crate::error::Result;
use crate::layout::to_shape;
use crate::op::*;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&ZEROS, &ONES, &FULL];

/// Fills a tensor with a number that its dtype can hold.
pub(super) fn fill_with(t: &Tensor, value: Scalar) -> Result<()> {
    value.check_fits(t.dtype())?;
    t.fill_raw(value)
}

/// A tensor with the shape of argument 0, and dtype and device from the given arguments, filled with one number.
fn filled(c: &Call, dtype: DType, device: usize, value: Scalar) -> Result<Outputs> {
    let t = Tensor::empty(&to_shape(c.ints(0)?)?, dtype, c.device(device).unwrap_or_default())?;
    fill_with(&t, value)?;
    Ok(smallvec![t])
}

pub static ZEROS: Op = Op {
    sig: sig("zeros(Size size, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor"),
    doc: "A tensor of zeros; float32 by default.",
    forms: FO,
    body: composite(|c| {
        let shape = to_shape(c.ints(0)?)?;
        Ok(smallvec![Tensor::zeros(&shape, c.dtype(1).unwrap_or_else(default_dtype), c.device(2).unwrap_or_default())?])
    }),
    vjp: Vjp::None("creation"),
    samples: &["(2, 3)", "(0,), dtype=int64", "()"],
    errors: &[("(-1,)", "RuntimeError", "negative dimension")],
    reference: "np.zeros(x0)",
    out_dtype: Some(OutDType::Every),
    ..OP
};

pub static ONES: Op = Op {
    sig: sig("ones(Size size, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor"),
    doc: "A tensor of ones; float32 by default.",
    forms: FO,
    body: composite(|c| filled(c, c.dtype(1).unwrap_or_else(default_dtype), 2, Scalar::Int(1))),
    vjp: Vjp::None("creation"),
    samples: &["(2, 3)", "(2,), dtype=int64"],
    errors: &[("(-1,)", "RuntimeError", "negative dimension")],
    reference: "np.ones(x0)",
    out_dtype: Some(OutDType::Every),
    ..OP
};

pub static FULL: Op = Op {
    sig: sig(
        "full(Size size, Scalar fill_value, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "A tensor of one number; the dtype follows the number: bool, int64 or the default float.",
    forms: FO,
    body: composite(|c| {
        let v = c.scalar(1)?;
        filled(c, c.dtype(2).unwrap_or_else(|| scalar_dtype(v)), 3, v)
    }),
    vjp: Vjp::None("creation"),
    samples: &["(2, 3), 2.5", "(2,), 3", "(2,), True"],
    errors: &[
        ("(-1,), 1", "RuntimeError", "negative dimension"),
        ("(2,), 300, dtype=uint8", "RuntimeError", "value cannot be converted to type uint8_t without overflow"),
    ],
    reference: "np.full(x0, x1)",
    out_dtype: Some(OutDType::Every),
    ..OP
};

/// The dtype of a tensor made of a single number.
pub fn scalar_dtype(s: Scalar) -> DType {
    match s {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::UInt(_) => DType::U64,
        Scalar::Float(_) => default_dtype(),
        Scalar::Complex(..) => default_dtype().to_complex(),
    }
}
