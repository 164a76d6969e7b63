//! Medians: the lower of the two middle elements if the number of elements is even.
//!
//! `median` is NaN if any element is, `nanmedian` ignores NaN. Along a dimension the gradient goes to the selected
//! position; over everything it is shared by equal elements.

use super::extrema::{MAX_DIM, at_position, shared};
use super::sum_prod::{keepdim_form, one_dim, reduced_shape};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::elementwise::logical::RIGHT_SHIFT;
use crate::ops::elementwise::minmax::CLAMP_MIN;
use crate::ops::indexing::along_dim::TAKE_ALONG;
use crate::ops::order::sort::{kth_into, sort_into};
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&MEDIAN, &MEDIAN_DIM, &NANMEDIAN, &NANMEDIAN_DIM];

fn infer_dim(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    if t.dtype().is_complex() || t.dtype() == DType::Bool {
        let (op, name) = (c.op.base(), t.dtype().scalar_type_name());
        return Err(Error::not_implemented(format!("\"{op}_out_impl\" not implemented for '{name}'")));
    }
    let dims = one_dim(c)?;
    if let Some(&d) = dims.iter().find(|&&d| t.size(d) == 0) {
        return Err(Error::index(format!("Expected reduction dim {d} to have non-zero size.")));
    }
    let shape = reduced_shape(t.shape(), &dims, c.flag("keepdim"));
    Ok(smallvec![Spec::new(&shape, t.dtype(), t.device()), Spec::new(&shape, DType::I64, t.device())])
}

/// Values and positions in the keepdim form, of `t` along `dim`.
fn medians(t: &Tensor, dim: usize, skip_nan: bool) -> Result<(Tensor, Tensor)> {
    let t = if t.ndim() == 0 { t.with_layout(t.layout().unsqueeze(0)) } else { t.clone() };
    let new = |shape: &[usize], dtype| Tensor::empty(shape, dtype, t.device());
    let one = reduced_shape(t.shape(), &[dim], true);
    if skip_nan && t.dtype().is_float() {
        let (values, indices) = (new(t.shape(), t.dtype())?, new(t.shape(), DType::I64)?);
        sort_into(&t, dim, false, &values, &indices)?;
        let numbers = Term::from(&t).is_nan().equals(0).sum(&[dim as i64], true);
        let middle = RIGHT_SHIFT.call((CLAMP_MIN.call((numbers - 1, 0)), 1)).ok()?;
        let at = |t: &Tensor| TAKE_ALONG.call((t, &middle, dim)).ok();
        return Ok((at(&values)?, at(&indices)?));
    }
    let (values, indices) = (new(&one, t.dtype())?, new(&one, DType::I64)?);
    kth_into(&t, dim, t.size(dim).div_ceil(2), &values, &indices)?;
    if !t.dtype().is_float() {
        return Ok((values, indices));
    }
    // The largest element is NaN if any element is.
    let top = MAX_DIM.calls((&t, dim as i64, true))?;
    let nan = Term::from(&top[0]).is_nan();
    Ok((nan.clone().choose(&top[0], &values).ok()?, nan.choose(&top[1], &indices).ok()?))
}

fn along<const SKIP: bool>(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, dims) = (c.tensor(0)?, one_dim(c)?);
    if out[0].numel() == 0 {
        return Ok(());
    }
    let (values, indices) = medians(t, dims.first().copied().unwrap_or(0), SKIP)?;
    for (o, r) in out.iter().zip([values, indices]) {
        let kept = keepdim_form(t, &dims, o);
        let seen = if t.ndim() == 0 { r.with_layout(crate::layout::Layout::contiguous(&[])) } else { r };
        kept.copy_raw(&seen)?;
    }
    Ok(())
}

fn of_all<const SKIP: bool>(c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    if t.numel() == 0 {
        return out[0].fill_raw(crate::dtype::Scalar::Float(f64::NAN));
    }
    let (values, _) = medians(&Term::from(t).reshape(&[-1]).ok()?, 0, SKIP)?;
    out[0].copy_raw(&values.with_layout(crate::layout::Layout::contiguous(&[])))
}

fn infer_all(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    if t.dtype().is_complex() || t.dtype() == DType::Bool {
        let (op, name) = (c.op.base(), t.dtype().scalar_type_name());
        return Err(Error::not_implemented(format!("\"{op}_impl\" not implemented for '{name}'")));
    }
    Ok(Spec::one(&[], t.dtype(), t.device()))
}

const SHARED: Vjp = Vjp::Each(&[d(0, A0 | OUT0, |c| shared(c.g(), c.arg(0), c.out(0), &[]))]);
const AT_POSITION: Vjp = Vjp::Each(&[d(0, OUT1, at_position)]);

pub static MEDIAN: Op = Op {
    sig: sig("median(Tensor self) -> Tensor"),
    doc: "The median of all elements, the lower of two; nan if there is one.",
    body: kernel(infer_all, of_all::<false>, Some(of_all::<false>)),
    vjp: SHARED,
    samples: &["f32[5]", "f32[2,3]", "i64[4]", "f32[4](=1,nan,3,2)", "f32[]"],
    errors: &[("c64[2]", "NotImplementedError", "not implemented for")],
    ..OP
};

pub static MEDIAN_DIM: Op = Op {
    sig: sig("median.dim(Tensor self, Dim dim, bool keepdim=False) -> (Tensor values, Tensor indices)"),
    doc: "The medians along a dimension, the lower of two, and their positions; nan where there is one.",
    forms: FMO,
    body: kernel(infer_dim, along::<false>, Some(along::<false>)),
    vjp: AT_POSITION,
    node: "MedianBackward1",
    samples: &["f32[2,3], 0", "f32[2,3,5], -1, True", "i64[2,4](perm), 1", "f32[2,2](=1,nan,3,2), 1", "f32[], 0"],
    errors: &[
        ("f32[0,3], 0", "IndexError", "to have non-zero size"),
        ("f32[2,3], 2", "IndexError", "Dimension out of range"),
    ],
    keeps: Some("dim indices keepdim self_sym_sizes"),
    ..OP
};

pub static NANMEDIAN: Op = Op {
    sig: sig("nanmedian(Tensor self) -> Tensor"),
    doc: "The median of the elements that are not nan, the lower of two.",
    body: kernel(infer_all, of_all::<true>, Some(of_all::<true>)),
    vjp: SHARED,
    samples: &["f32[5]", "f32[4](=1,nan,3,2)", "i64[4]", "f32[2](=nan,nan)"],
    errors: &[("c64[2]", "NotImplementedError", "not implemented for")],
    ..OP
};

pub static NANMEDIAN_DIM: Op = Op {
    sig: sig("nanmedian.dim(Tensor self, Dim dim, bool keepdim=False) -> (Tensor values, Tensor indices)"),
    doc: "The medians along a dimension of the elements that are not nan, and their positions.",
    forms: FMO,
    body: kernel(infer_dim, along::<true>, Some(along::<true>)),
    vjp: AT_POSITION,
    node: "NanmedianBackward1",
    samples: &["f32[2,3], 0", "f32[2,4](=1,nan,3,2,nan,nan,5,4), 1", "i64[2,4](perm), 1", "f32[2,3,5], -1, True"],
    errors: &[("f32[0,3], 0", "IndexError", "to have non-zero size")],
    keeps: Some("dim indices keepdim self_sym_sizes"),
    ..OP
};
