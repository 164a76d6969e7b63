//! Creation of constant tensors: zeros, ones, full and related factories.

use crate::device::Device;
use crate::dtype::{DType, Scalar, default_dtype};
use crate::error::Result;
use crate::layout::{Dims, Layout, to_shape};
use crate::op::*;
use crate::ops::support::batch_views;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&ZEROS, &ONES, &FULL];

/// Fills a tensor with a number that its dtype can hold.
pub(crate) fn fill_with(t: &Tensor, value: Scalar) -> Result<()> {
    value.check_fits(t.dtype())?;
    t.fill_raw(value)
}

/// A row-major result of this dtype: its shape is the argument `size`, its device `device`.
pub(crate) fn created(c: &Call, dtype: DType) -> Result<Specs> {
    let layout = Layout::of(to_shape(c.ints("size")?)?);
    Ok(smallvec![Spec { layout, dtype, device: c.device("device").unwrap_or_default() }])
}
/// Shape, dtype and device from arguments (size, dtype, device, ..); the default dtype is the float one.
fn float_parts(c: &Call) -> Result<(Dims, DType, Device)> {
    Ok((
        to_shape(c.ints("size")?)?,
        c.dtype("dtype").unwrap_or_else(default_dtype),
        c.device("device").unwrap_or_default(),
    ))
}
fn floats(c: &Call) -> Result<Specs> {
    let (shape, dtype, device) = float_parts(c)?;
    Ok(smallvec![Spec { layout: Layout::of(shape), dtype, device }])
}

pub static ZEROS: Op = Op {
    sig: sig("zeros(Size size, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor"),
    doc: "A tensor of zeros; float32 by default.",
    forms: FO,
    // Not a kernel, which would have to write what the system gives zeroed.
    body: opaque(floats, |c| {
        let (shape, dtype, device) = float_parts(c)?;
        Ok(smallvec![Tensor::zeros(&shape, dtype, device)?])
    }),
    vjp: Vjp::None("creation"),
    samples: &["(2, 3)", "(0,), dtype=int64", "()"],
    errors: &[("(-1,)", "RuntimeError", "negative dimension")],
    reference: "np.zeros(x0)",
    out_dtype: Some(OutDType::Every),
    batch: Batching::Rule(batch_views::sized),
    ..OP
};

pub static ONES: Op = Op {
    sig: sig("ones(Size size, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor"),
    doc: "A tensor of ones; float32 by default.",
    forms: FO,
    body: factory(floats, |_, out| fill_with(&out[0], Scalar::Int(1))),
    vjp: Vjp::None("creation"),
    samples: &["(2, 3)", "(2,), dtype=int64"],
    errors: &[("(-1,)", "RuntimeError", "negative dimension")],
    reference: "np.ones(x0)",
    out_dtype: Some(OutDType::Every),
    batch: Batching::Rule(batch_views::sized),
    ..OP
};

pub static FULL: Op = Op {
    sig: sig(
        "full(Size size, Scalar fill_value, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "A tensor of one number; the dtype follows the number: bool, int64 or the default float.",
    forms: FO,
    body: factory(
        |c| {
            let value = c.scalar("fill_value")?;
            // As in PyTorch, no complex number of half precision is inferred.
            let inferred = || match scalar_dtype(value) {
                DType::C32 => DType::C64,
                dtype => dtype,
            };
            created(c, c.dtype("dtype").unwrap_or_else(inferred))
        },
        |c, out| fill_with(&out[0], c.scalar("fill_value")?),
    ),
    vjp: Vjp::None("creation"),
    samples: &["(2, 3), 2.5", "(2,), 3", "(2,), True"],
    errors: &[
        ("(-1,), 1", "RuntimeError", "negative dimension"),
        ("(2,), 300, dtype=uint8", "RuntimeError", "value cannot be converted to type uint8_t without overflow"),
    ],
    reference: "np.full(x0, x1)",
    out_dtype: Some(OutDType::Every),
    batch: Batching::Rule(batch_views::sized),
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
