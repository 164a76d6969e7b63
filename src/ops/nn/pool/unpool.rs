//! The partial inverse of max pooling: each element goes back to the place that it came from, among zeros.

use super::max::{flat, picked};
use super::{planar_format, result};
use crate::cpu::pooling::max;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::indexing::gather_scatter::SCATTER;
use crate::ops::support::promotion::no_kernel;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&MAX_UNPOOL2D, &MAX_UNPOOL3D];

fn infer<const D: usize>(c: &Call) -> Result<Specs> {
    let (x, places, size) = (c.tensor(0)?, c.tensor("indices")?, c.ints("output_size")?);
    if places.dtype() != DType::I64 {
        let name = places.dtype().scalar_type_name();
        return Err(Error::runtime(format!("elements in indices should be type int64 but got: {name}")));
    }
    if size.len() != D {
        let names = ["(height, width)", "(depth, height, width)"][D - 2];
        let count = ["two", "three"][D - 2];
        return Err(Error::runtime(format!(
            "There should be exactly {count} elements {names} in output_size, but got {} elements.",
            size.len()
        )));
    }
    if x.ndim() != D + 1 && x.ndim() != D + 2 {
        return Err(Error::runtime(format!(
            "Input to max_unpooling{D}d should be a {}d or {}d Tensor, but got a tensor with {} dimensions.",
            D + 1,
            D + 2,
            x.ndim()
        )));
    }
    if places.shape() != x.shape() {
        return Err(Error::runtime(format!(
            "Expected shape of indices to be same as that of the input tensor ({}) but got indices tensor with shape: {}",
            Show(x.shape()),
            Show(places.shape())
        )));
    }
    let lead = x.ndim() - D;
    if let Some(i) = (lead - 1..x.ndim()).find(|&i| x.size(i) == 0) {
        return Err(Error::runtime(format!(
            "Expected input to have non-zero size for non-batch dimensions, but got {} with dimension {i} being empty.",
            Show(x.shape())
        )));
    }
    if !x.dtype().is_float() {
        return Err(no_kernel(if D == 2 { "max_unpool2d" } else { "max_unpool3d" }, x.dtype()));
    }
    let mut shape = crate::layout::dims(&x.shape()[..lead]);
    shape.extend(crate::layout::to_shape(size)?);
    crate::layout::checked_numel(&shape)?;
    Ok(smallvec![result(x, &shape, x.dtype(), planar_format(x, D))?])
}

/// Fills the result, or where its channels are last a row-major one that is then copied.
fn row_major(out: &Tensor, fill: impl FnOnce(&Tensor) -> Result<()>) -> Result<()> {
    if out.is_contiguous() {
        return fill(out);
    }
    let plain = Tensor::of_layout(crate::layout::Layout::contiguous(out.shape()), out.dtype(), out.device())?;
    fill(&plain)?;
    out.copy_raw(&plain)
}

/// Operand, places and result as `[planes, elements of a plane]`.
fn matrices(c: &Call, out: &Tensor, dims: usize) -> Result<[Tensor; 3]> {
    let matrix = |t: &Tensor| {
        let shape = flat(&Term::from(t).sizes(), dims);
        Term::from(t).contiguous().reshape(&shape).ok()
    };
    Ok([matrix(c.tensor(0)?)?, matrix(c.tensor("indices")?)?, matrix(out)?])
}

fn forward<const D: usize>(c: &Call, out: &[Tensor]) -> Result<()> {
    row_major(&out[0], |out| {
        let [x, places, to] = matrices(c, out, D)?;
        max::max_unpool(x.cpu_view()?, places.cpu_view()?, to.cpu_view()?, c.ints("output_size")?)
    })
}

fn forward_gpu<const D: usize>(c: &Call, out: &[Tensor]) -> Result<()> {
    row_major(&out[0], |out| {
        let [x, places, to] = matrices(c, out, D)?;
        out.fill_raw(crate::dtype::Scalar::Int(0))?;
        let args: Args = smallvec![to.into(), 1.into(), places.into(), x.into()];
        SCATTER.call_inplace(args).map(drop)
    })
}

const UNPOOL: Op = Op {
    doc: "Zeros of `output_size` in the last dimensions, with each element of the input at its place among them. The gradient is what lies at those places.",
    forms: HIDDEN,
    keeps: Some("indices"),
    ..OP
};

pub static MAX_UNPOOL2D: Op = Op {
    sig: sig("_max_unpool2d(Tensor self, Tensor indices, int[] output_size) -> Tensor"),
    body: kernel(infer::<2>, forward::<2>, Some(forward_gpu::<2>)),
    vjp: Vjp::Each(&[d(0, A1, |c| picked(c.g(), c.arg(1), 2))]),
    samples: &["f32[1,2,2,2], i64[1,2,2,2](= 0, 3, 8, 15, 2, 5, 9, 11), (4, 4)"],
    errors: &[
        ("f32[1,1,2,2], i64[1,1,2,2](9..10), (2, 2)", "RuntimeError", "Found an invalid max index"),
        ("f32[1,1,2,2], i32[1,1,2,2](0..1), (2, 2)", "RuntimeError", "should be type int64 but got: Int"),
        ("f32[1,1,2,2], i64[1,1,2,1](0..1), (2, 2)", "RuntimeError", "Expected shape of indices to be same"),
        ("f32[1,1,2,2], i64[1,1,2,2](0..1), (2,)", "RuntimeError", "exactly two elements (height, width)"),
        ("f32[2,2], i64[2,2](0..1), (2, 2)", "RuntimeError", "should be a 3d or 4d Tensor"),
    ],
    batch: Batching::Fold(4, &[0, 1]),
    ..UNPOOL
};
pub static MAX_UNPOOL3D: Op = Op {
    sig: sig("_max_unpool3d(Tensor self, Tensor indices, int[] output_size) -> Tensor"),
    body: kernel(infer::<3>, forward::<3>, Some(forward_gpu::<3>)),
    vjp: Vjp::Each(&[d(0, A1, |c| picked(c.g(), c.arg(1), 3))]),
    samples: &["f32[2,1,2,2], i64[2,1,2,2](= 0, 3, 8, 15, 2, 5, 9, 11), (2, 2, 4)"],
    errors: &[("f32[1,1,1,2,2], i64[1,1,1,2,2](9..10), (1, 2, 2)", "RuntimeError", "Found an invalid max index")],
    batch: Batching::Fold(5, &[0, 1]),
    ..UNPOOL
};
