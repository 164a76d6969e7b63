//! Reading and writing at positions along a dimension: each is the other's gradient.
//!
//! Ops that select values (max, median, cummax, nll_loss) compute their gradient with these.

use crate::cpu::index::{Mode, Source, gather, scatter_into};
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::gpu;
use crate::layout::to_shape;
use crate::op::*;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&PUT_ALONG, &TAKE_ALONG];

/// Checks that `index` holds positions along `dim` of a tensor of this shape.
fn fits(index: &Tensor, shape: &[usize], dim: usize) -> Result<()> {
    if index.dtype() != DType::I64 {
        return Err(Error::runtime("the index must be of dtype int64"));
    }
    let within = |d: usize| d == dim || index.size(d) <= shape[d];
    if index.ndim() != shape.len() || !(0..shape.len()).all(within) {
        return Err(Error::runtime(format!(
            "an index of shape {} does not fit a tensor of shape {}",
            Show(index.shape()),
            Show(shape)
        )));
    }
    Ok(())
}

pub static PUT_ALONG: Op = Op {
    sig: sig("_put_along(Tensor self, Tensor index, Dim(index) dim, int[] size) -> Tensor"),
    doc: "Zeros of shape `size` with `self` added at the positions `index` along `dim`.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let (t, index, shape) = (c.tensor(0)?, c.tensor("index")?, to_shape(c.ints("size")?)?);
            if t.shape() != index.shape() {
                return Err(Error::runtime("one index for each element is needed"));
            }
            fits(index, &shape, c.dim("dim"))?;
            Ok(Spec::one(&shape, t.dtype(), t.device()))
        },
        put,
        Some(put_gpu),
    ),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, A1, |c| TAKE_ALONG.call((c.g(), c.arg(1), c.int("dim"))))]),
    samples: &["f32[2,2], i64[2,2](0..3), 1, (2, 3)"],
    errors: &[("f32[2,2], i64[2,2](0..3), 5, (2, 3)", "IndexError", "Dimension out of range")],
    ..OP
};

fn put(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, index, out) = (c.tensor(0)?, c.tensor("index")?, &out[0]);
    let dim = c.dim("dim");
    out.fill_raw(crate::dtype::Scalar::Int(0))?;
    scatter_into(out.cpu_view()?, dim, index.cpu_view()?, Source::View(t.cpu_view()?), Mode::Add, true)
}

fn put_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, index, out) = (c.tensor(0)?, c.tensor("index")?, &out[0]);
    let dim = c.dim("dim");
    out.fill_raw(crate::dtype::Scalar::Int(0))?;
    if out.ndim() == 0 {
        return out.copy_raw(t);
    }
    let source = gpu::Input::View(t.gpu_view()?);
    gpu::scatter(&out.gpu_view()?, dim, &index.gpu_view()?, &source, gpu::ScatterMode::Add)
}

pub static TAKE_ALONG: Op = Op {
    sig: sig("_take_along(Tensor self, Tensor index, Dim dim) -> Tensor"),
    doc: "The elements of `self` at the positions `index` along `dim`.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let (t, index) = (c.tensor(0)?, c.tensor("index")?);
            fits(index, t.shape(), c.dim("dim"))?;
            Ok(Spec::one(index.shape(), t.dtype(), t.device()))
        },
        take,
        Some(take_gpu),
    ),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, A1, |c| PUT_ALONG.call((c.g(), c.arg(1), c.int("dim"), &*c.sizes(0))))]),
    samples: &["f32[2,3], i64[2,2](0..3), 1"],
    errors: &[("f32[2,3], i64[2,2](0..3), 5", "IndexError", "Dimension out of range")],
    ..OP
};

fn take(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, index) = (c.tensor(0)?, c.tensor("index")?);
    let dim = c.dim("dim");
    gather(t.cpu_view()?, dim, index.cpu_view()?, out[0].cpu_view()?)
}

fn take_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, index) = (c.tensor(0)?, c.tensor("index")?);
    let dim = c.dim("dim");
    if t.ndim() == 0 {
        return out[0].copy_raw(t);
    }
    gpu::gather(&t.gpu_view()?, dim, &index.gpu_view()?, &out[0].gpu_view()?)
}
