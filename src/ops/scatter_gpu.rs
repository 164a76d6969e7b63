//! The reductions of scatter_reduce and index_reduce on the GPU, from the shader's plain modes.

use super::division::DIV_MODE;
use super::needs::full_like;
use crate::cpu::index::Mode;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::{self, Input, ScatterMode};
use crate::op::*;
use crate::tensor::Tensor;

/// Combines the source with what stands at the indices, or, not to `include_self`, with each other alone.
pub(super) fn scatter_gpu(
    out: &Tensor,
    dim: usize,
    index: &gpu::View,
    source: &Input,
    mode: Mode,
    include_self: bool,
) -> Result<()> {
    let write = |source: &Input, mode| gpu::scatter(&out.gpu_view()?, dim, index, source, mode);
    let shader = match mode {
        Mode::Set => return write(source, ScatterMode::Set),
        Mode::Add | Mode::Mean => ScatterMode::Add,
        Mode::Mul => ScatterMode::Mul,
        Mode::Max => ScatterMode::Max,
        Mode::Min => ScatterMode::Min,
    };
    if !include_self {
        // What is written to starts anew: with the neutral number, or with one of the elements to choose from.
        let start = match mode {
            Mode::Max | Mode::Min => *source,
            _ => Input::Scalar(Scalar::Int((mode == Mode::Mul) as i64)),
        };
        write(&start, ScatterMode::Set)?;
    }
    write(source, shader)?;
    if mode != Mode::Mean {
        return Ok(());
    }
    let counts = full_like(out, DType::I32, include_self as i64 as f64)?;
    gpu::scatter(&counts.gpu_view()?, dim, index, &Input::Scalar(Scalar::Int(1)), ScatterMode::Add)?;
    let counts = Term::from(&counts).clamp_min_(1.0).to_dtype(DType::I32);
    let rounding = if out.dtype().is_float() { Value::None } else { Value::Str("floor".into()) };
    out.copy_raw(&DIV_MODE.call((out, counts, rounding)).ok()?)
}
