//! The reductions of scatter_reduce and index_reduce on the GPU, from the shader's plain modes.

use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::{self, Input, ScatterMode};
use crate::op::*;
use crate::ops::elementwise::division::DIV_MODE;
use crate::ops::support::grad_helpers::full_like;
use crate::tensor::Tensor;

/// Combines the source with the existing elements or, without `include_self`, only with each other.
pub(crate) fn scatter_gpu(
    out: &Tensor,
    dim: usize,
    index: &gpu::View,
    source: &Input,
    mode: ScatterMode,
    include_self: bool,
) -> Result<()> {
    let write = |source: &Input, mode| gpu::scatter(&out.gpu_view()?, dim, index, source, mode);
    if mode == ScatterMode::Set {
        return write(source, mode);
    }
    if !include_self {
        // Written elements are reset first: to the neutral number, or to one of the candidates.
        let start = match mode {
            ScatterMode::Max | ScatterMode::Min => *source,
            _ => Input::Scalar(Scalar::Int((mode == ScatterMode::Mul) as i64)),
        };
        write(&start, ScatterMode::Set)?;
    }
    write(source, mode)?;
    if mode != ScatterMode::Mean {
        return Ok(());
    }
    let counts = full_like(out, DType::I32, include_self as i64 as f64)?;
    gpu::scatter(&counts.gpu_view()?, dim, index, &Input::Scalar(Scalar::Int(1)), ScatterMode::Add)?;
    let counts = Term::from(&counts).clamp_min_(1.0).to_dtype(DType::I32);
    let rounding = if out.dtype().is_float() { Value::None } else { Value::from("floor") };
    out.copy_raw(&DIV_MODE.call((out, counts, rounding)).ok()?)
}
