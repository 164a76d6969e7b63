//! Sums and means that skip NaN.

use super::sum_prod::{SUM, SUM_DIM};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::elementwise::ternary::NAN_TO_NUM;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&NANSUM, &NANMEAN];

/// The dimensions in argument 1, if any are given.
fn given(c: &Call) -> Option<Ints> {
    c.opt_ints("dim").filter(|d| !d.is_empty()).map(Ints::from_slice)
}

fn sum(t: Term, dims: Option<Ints>, keepdim: bool, dtype: Option<DType>) -> Term {
    let n = t.ndim() as i64;
    match dims {
        Some(dims) => SUM_DIM.call((t, dims, keepdim, dtype)),
        None if keepdim => SUM_DIM.call((t, (0..n).collect::<Ints>(), true, dtype)),
        None => SUM.call((t, dtype)),
    }
}

fn without_nan(t: &Tensor) -> Term {
    if t.dtype().is_float() { NAN_TO_NUM.call((t, 0.0, f64::INFINITY, f64::NEG_INFINITY)) } else { t.into() }
}

pub static NANSUM: Op = Op {
    sig: sig("nansum(Tensor self, Dim[1]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor"),
    doc: "The sum of the elements that are not nan, of all or over the given dimensions.",
    forms: FMO,
    body: decompose(|c| {
        let t = c.tensor(0)?;
        if t.dtype().is_complex() {
            return Err(Error::not_implemented("nansum does not support complex inputs"));
        }
        sum(without_nan(t), given(c), c.flag("keepdim"), c.dtype("dtype")).outputs()
    }),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g().expand_reduced(c) * c.arg(0).is_nan().equals(0))]),
    samples: &["f32[2,3]", "f32[4](=1,nan,3,nan)", "f32[2,2](=1,nan,3,4), 0", "f32[2,3], (0, 1), True", "i64[4]"],
    errors: &[("f32[2,3], 2", "IndexError", "Dimension out of range"), ("c64[2]", "NotImplementedError", "complex")],
    reference: "np.nansum(x0, axis=dim, keepdims=keepdim)",
    ..OP
};

pub static NANMEAN: Op = Op {
    sig: sig("nanmean(Tensor self, Dim[1]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor"),
    doc: "The mean of the elements that are not nan, of all or over the given dimensions.",
    forms: FMO,
    body: decompose(nanmean),
    vjp: Vjp::Composite,
    samples: &["f32[2,3]", "f32[4](=1,nan,3,nan)", "f32[2,2](=1,nan,3,4), 0", "f32[2,3], (0, 1), True"],
    errors: &[
        ("i64[3]", "NotImplementedError", "floating point or complex"),
        ("f32[2,3], 2", "IndexError", "Dimension out of range"),
    ],
    reference: "np.nanmean(x0, axis=dim, keepdims=keepdim)",
    ..OP
};

fn nanmean(c: &Call) -> Result<Outputs> {
    let t = c.tensor(0)?;
    if !t.dtype().is_differentiable() {
        return Err(Error::not_implemented(format!(
            "expected input to have floating point or complex dtype but got {}",
            t.dtype().scalar_type_name()
        )));
    }
    let count = sum(Term::from(t).is_nan().equals(0), given(c), c.flag("keepdim"), None);
    (NANSUM.call((t, given(c), c.flag("keepdim"), c.dtype("dtype"))) / count).outputs()
}
