//! Elementwise expressions checked by naga, in every form that `map` generates of them.

use super::map::{Operand, Variant};
use super::template::Compute;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::driver::{Shader, check};

/// Validates expressions, each for its compute dtype: with numbers and buffers as operands, contiguous, strided and in
/// place, with an output of that dtype and a bool one.
pub fn validate_all(exprs: &[(&'static str, DType)]) -> Result<()> {
    for &(expr, dtype) in exprs {
        let compute = if dtype == DType::Bool { Some(Compute::Bool) } else { Compute::of(dtype) };
        let Some(compute) = compute else {
            return Err(Error::internal(format!("GPU kernels do not compute in {dtype} ('{expr}')")));
        };
        for out in [dtype, DType::Bool] {
            for (rank, out_contiguous, each) in [(0, true, 4), (3, true, 1), (3, false, 1)] {
                for operands in [[Operand::Buffer(dtype); 4], [Operand::Scalar; 4], [Operand::Output(out); 4]] {
                    let variant = Variant { expr, compute, operands: &operands, out, rank, out_contiguous, each };
                    check(&variant.name(), &variant.source())?;
                }
            }
        }
    }
    Ok(())
}
