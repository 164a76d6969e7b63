//! The same memory under another handle or dtype: detach, `view(dtype)`, real and imaginary parts.

use super::reshape::SELECT;
use crate::dtype::DType;
use crate::error::{Class, Error, Result};
use crate::layout::Layout;
use crate::op::*;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&DETACH, &VIEW_DTYPE, &REAL, &IMAG, &VIEW_AS_REAL, &VIEW_AS_COMPLEX];

pub static DETACH: Op = Op {
    sig: sig("detach(Tensor self) -> Tensor"),
    doc: "The same memory without history: gradients stop here. Shares the version counter.",
    body: Body::View(|c| Ok(c.tensor(0)?.layout().clone())),
    vjp: Vjp::None("cuts the graph"),
    samples: &["f32[2,3]", "i64[2]"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    reference: "x0",
    ..OP
};

/// The layout of the same bytes as elements of another size; only the last dimension may change.
fn resized(l: &Layout, from: DType, to: DType) -> Result<Layout> {
    let (a, b) = (from.size(), to.size());
    let mut out = l.clone();
    if a == b {
        return Ok(out);
    }
    let Some(last) = l.ndim().checked_sub(1) else {
        return Err(Error::runtime(
            "self.dim() cannot be 0 to view Half as Float (different element sizes)"
                .replace("Half", from.scalar_type_name())
                .replace("Float", to.scalar_type_name()),
        ));
    };
    if l.strides[last] != 1 {
        return Err(Error::runtime(format!(
            "self.stride(-1) must be 1 to view {} as {} (different element sizes), but got {}",
            from.scalar_type_name(),
            to.scalar_type_name(),
            l.strides[last]
        )));
    }
    if a > b {
        let ratio = a / b;
        out.strides.iter_mut().for_each(|s| *s *= ratio);
        out.strides[last] = 1;
        out.shape[last] *= ratio;
        out.offset *= ratio;
        return Ok(out);
    }
    let ratio = b / a;
    let fits = |what: &str, n: usize| match n % ratio {
        0 => Ok(n / ratio),
        _ => Err(Error::runtime(format!(
            "{what} must be divisible by {ratio} to view {} as {} (different element sizes), but got {n}",
            from.scalar_type_name(),
            to.scalar_type_name()
        ))),
    };
    out.shape[last] = fits("self.size(-1)", l.shape[last])?;
    out.offset = fits("self.storage_offset()", l.offset)?;
    for (i, s) in out.strides.iter_mut().enumerate().take(last) {
        *s = fits(&format!("self.stride({i})"), *s)?;
    }
    Ok(out)
}

pub static VIEW_DTYPE: Op = Op {
    sig: sig("view.dtype(Tensor self, DType dtype) -> Tensor"),
    doc: "The same bytes read as another dtype; where element sizes differ the last dimension changes its size.",
    forms: M,
    body: Body::ViewAs(|c| {
        let t = c.tensor(0)?;
        let to = c.dtype("dtype").unwrap_or(t.dtype());
        Ok((resized(t.layout(), t.dtype(), to)?, to))
    }),
    vjp: Vjp::None("bits have no derivative"),
    samples: &["f32[2,4], int32", "f32[2,4], uint8", "f32[2,4], float64"],
    errors: &[
        ("f32[3], float64", "RuntimeError", "self.size(-1) must be divisible by 2"),
        ("f32[], float64", "RuntimeError", "self.dim() cannot be 0"),
    ],
    ..OP
};

/// The real (0) or imaginary (1) parts: a column of the pairs.
fn part(t: &Tensor, which: i64) -> Result<Outputs> {
    SELECT.calls((VIEW_AS_REAL.call((t,)), -1, which))
}

pub static REAL: Op = Op {
    sig: sig("real(Tensor self) -> Tensor"),
    doc: "The real parts, as a view; a real tensor is returned as it is.",
    forms: F,
    body: decompose(|c| {
        let t = c.tensor(0)?;
        if t.dtype().is_complex() { part(t, 0) } else { Ok(smallvec![t.clone()]) }
    }),
    vjp: Vjp::Composite,
    samples: &["c64[2,3]", "f32[2]"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    reference: "np.real(x0)",
    ..OP
};

pub static IMAG: Op = Op {
    sig: sig("imag(Tensor self) -> Tensor"),
    doc: "The imaginary parts of a complex tensor, as a view.",
    forms: F,
    body: decompose(|c| match c.tensor(0)?.dtype().is_complex() {
        true => part(c.tensor(0)?, 1),
        false => Err(Error::type_("imag is not implemented for tensors with non-complex dtypes.")),
    }),
    vjp: Vjp::Composite,
    samples: &["c64[2,3]"],
    errors: &[("f32[2]", "TypeError", "non-complex")],
    reference: "np.imag(x0)",
    ..OP
};

pub static VIEW_AS_REAL: Op = Op {
    sig: sig("view_as_real(Tensor self) -> Tensor"),
    doc: "A complex tensor as pairs of real numbers in a new last dimension of size two, as a view.",
    forms: F,
    body: Body::ViewAs(|c| {
        let t = c.tensor(0)?;
        if !t.dtype().is_complex() {
            return Err(Error::type_("view_as_real is only supported for complex tensors"));
        }
        let mut l = t.layout().clone();
        l.strides.iter_mut().for_each(|s| *s *= 2);
        l.offset *= 2;
        l.shape.push(2);
        l.strides.push(1);
        Ok((l, t.dtype().to_real()))
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| VIEW_AS_COMPLEX.call((c.g().contiguous(),)))]),
    batch: Batching::Leading,
    samples: &["c64[2,3]", "c64[]"],
    errors: &[("f32[2]", "TypeError", "only supported for complex")],
    ..OP
};

pub static VIEW_AS_COMPLEX: Op = Op {
    sig: sig("view_as_complex(Tensor self) -> Tensor"),
    doc: "Pairs of real numbers in the last dimension, of size two, as complex numbers: a view.",
    forms: F,
    body: Body::ViewAs(|c| {
        let t = c.tensor(0)?;
        if !matches!(t.dtype(), DType::F16 | DType::F32 | DType::F64) {
            let class = if t.dtype().is_complex() { Class::Type } else { Class::NotImplemented };
            return Err(Error::new(
                class,
                format!(
                    "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: {}",
                    t.dtype().scalar_type_name()
                ),
            ));
        }
        let l = t.layout();
        let Some(last) = l.ndim().checked_sub(1) else {
            return Err(Error::runtime("Input tensor must have one or more dimensions"));
        };
        if l.shape[last] != 2 {
            return Err(Error::runtime("Tensor must have a last dimension of size 2"));
        }
        if l.strides[last] != 1 {
            return Err(Error::runtime("Tensor must have a last dimension with stride 1"));
        }
        let even = |s: usize| s.is_multiple_of(2);
        if !l.strides[..last].iter().zip(&l.shape).all(|(&s, &d)| even(s) || d == 1) {
            return Err(Error::runtime("Tensor must have a stride divisible by 2 for all but last dimension"));
        }
        if !even(l.offset) {
            return Err(Error::runtime("Tensor must have a storage_offset divisible by 2"));
        }
        let mut out = l.select(last, 0);
        out.strides.iter_mut().for_each(|s| *s /= 2);
        out.offset /= 2;
        Ok((out, t.dtype().to_complex()))
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| VIEW_AS_REAL.call((c.g(),)))]),
    samples: &["f32[2,2]", "f64[3,1,2]"],
    errors: &[("f32[3]", "RuntimeError", "last dimension of size 2")],
    ..OP
};
