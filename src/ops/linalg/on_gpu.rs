//! The decompositions that have shaders: their kernels' functions for the GPU.

use super::checks::{epsilon, lead, mt_view, sizes};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu;
use crate::layout::Dims;
use crate::op::*;
use crate::ops::elementwise::ternary::WHERE;
use crate::tensor::Tensor;

/// A dense copy of `t`, to be overwritten.
pub(super) fn copied(t: &Tensor) -> Result<Tensor> {
    let copy = Tensor::empty(t.shape(), t.dtype(), t.device())?;
    copy.copy_raw(t)?;
    Ok(copy)
}

fn int32(t: &Tensor, shape: &[usize]) -> Result<Tensor> {
    Tensor::empty(shape, DType::I32, t.device())
}

/// LU of a copy of square matrices, and its pivots; the number of the first zero pivot goes to `info`.
fn factored(a: &Tensor, info: &Tensor) -> Result<(Tensor, Tensor)> {
    let (lu, pivots) = (copied(a)?, int32(a, &a.shape()[..a.ndim() - 1])?);
    gpu::lu(&lu.gpu_view()?, &pivots.gpu_view()?, &info.gpu_view()?)?;
    Ok((lu, pivots))
}

/// Overwrites `x` with the solutions of systems whose matrices are factored.
fn substitute(lu: &Tensor, pivots: &Tensor, x: &Tensor) -> Result<()> {
    let (lu, x) = (lu.gpu_view()?, x.gpu_view()?);
    gpu::exchange_rows(&x, &pivots.gpu_view()?)?;
    gpu::solve_triangular(&lu, &x, false, true)?;
    gpu::solve_triangular(&lu, &x, true, false)
}

/// Overwrites `x` with identities.
pub(super) fn identity(x: &Tensor) -> Result<()> {
    x.fill_raw(Scalar::Int(0))?;
    let diagonal = x.layout().diagonal(0, -2, -1)?;
    x.with_layout(diagonal).fill_raw(Scalar::Int(1))
}

pub(super) fn inverse(a: &Tensor, out: &[Tensor]) -> Result<()> {
    let (lu, pivots) = factored(a, &out[1])?;
    identity(&out[0])?;
    substitute(&lu, &pivots, &out[0])
}

pub(super) fn solve(c: &Call, out: &[Tensor]) -> Result<()> {
    let (lu, pivots) = factored(c.tensor("A")?, &out[1])?;
    out[0].copy_raw(c.tensor("B")?)?;
    substitute(&lu, &pivots, &out[0])
}

/// The factor of `a`, or, where `upper`, its transpose.
pub(super) fn cholesky(a: &Tensor, upper: bool, out: &[Tensor]) -> Result<()> {
    let (a, l) = if upper { (mt_view(a), mt_view(&out[0])) } else { (a.clone(), out[0].clone()) };
    l.copy_raw(&a)?;
    gpu::cholesky(&l.gpu_view()?, &out[1].gpu_view()?)?;
    gpu::triangle(&l.gpu_view()?, 0, false, &l.gpu_view()?)
}

pub(super) fn triangular(a: &Tensor, b: &Tensor, upper: bool, unit: bool, out: &Tensor) -> Result<()> {
    out.copy_raw(b)?;
    gpu::solve_triangular(&a.gpu_view()?, &out.gpu_view()?, upper, unit)
}

pub(super) fn sign_and_log(c: &Call, out: &[Tensor]) -> Result<()> {
    let (lu, pivots) = factored(c.tensor("A")?, &int32(&out[0], out[0].shape())?)?;
    gpu::determinant(&lu.gpu_view()?, &pivots.gpu_view()?, &out[0].gpu_view()?, Some(&out[1].gpu_view()?))
}

pub(super) fn determinant(a: &Tensor, out: &Tensor) -> Result<()> {
    let (lu, pivots) = factored(a, &int32(a, out.shape())?)?;
    gpu::determinant(&lu.gpu_view()?, &pivots.gpu_view()?, &out.gpu_view()?, None)
}

/// Replaces a zero pivot by a tiny one, which the product with the determinant cancels.
pub(super) fn adjugate(a: &Tensor, out: &Tensor) -> Result<()> {
    let det = Tensor::empty(lead(a), a.dtype(), a.device())?;
    let (lu, pivots) = factored(a, &int32(a, lead(a))?)?;
    let diagonal = lu.with_layout(lu.layout().diagonal(0, -2, -1)?);
    let values = Term::from(&diagonal);
    diagonal.copy_raw(&WHERE.call((values.clone().equals(0), epsilon(a.dtype()), values)).ok()?)?;
    gpu::determinant(&lu.gpu_view()?, &pivots.gpu_view()?, &det.gpu_view()?, None)?;
    let inverse = Tensor::empty(a.shape(), a.dtype(), a.device())?;
    identity(&inverse)?;
    substitute(&lu, &pivots, &inverse)?;
    out.copy_raw(&(Term::from(&inverse) * Term::from(&det).whole()).ok()?)
}

/// Q, where it is wanted, and R.
pub(super) fn qr(a: &Tensor, q: Option<&Tensor>, r: &Tensor) -> Result<()> {
    let ((m, n), a) = (sizes(a), copied(a)?);
    let factors: Dims = lead(&a).iter().copied().chain([m.min(n)]).collect();
    let taus = Tensor::empty(&factors, a.dtype(), a.device())?;
    gpu::qr(&a.gpu_view()?, &taus.gpu_view()?)?;
    let rows = a.with_layout(a.layout().slice(a.ndim() - 2, (0, sizes(r).0, 1)));
    gpu::triangle(&rows.gpu_view()?, 0, true, &r.gpu_view()?)?;
    q.map_or(Ok(()), |q| gpu::reflections(&a.gpu_view()?, &taus.gpu_view()?, &q.gpu_view()?))
}

pub(super) fn reflections(a: &Tensor, taus: &Tensor, out: &Tensor) -> Result<()> {
    gpu::reflections(&a.gpu_view()?, &copied(taus)?.gpu_view()?, &out.gpu_view()?)
}

/// P of `A = P L U`; pivots are rows of it.
pub(super) fn permutation(pivots: &Tensor, out: &Tensor) -> Result<()> {
    identity(out)?;
    gpu::exchange_rows(&mt_view(out).gpu_view()?, &copied(pivots)?.gpu_view()?)
}
