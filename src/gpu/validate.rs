//! Every kernel is checked by naga in the tests, so that no adapter is needed to see that a shader is valid.

use super::map::{Operand, Variant};
use super::template::Compute;
use crate::dtype::DType;
use crate::error::{Error, Result};
use wgpu::naga;

/// Parses and validates one WGSL source; the error shows the place in it.
pub(super) fn check(name: &str, source: &str) -> Result<()> {
    let fail = |what: String| Error::internal(format!("GPU kernel '{name}': {what}\n{source}"));
    let module = naga::front::wgsl::parse_str(source).map_err(|e| fail(e.emit_to_string(source)))?;
    let capabilities = naga::valid::Capabilities::FLOAT64 | naga::valid::Capabilities::SHADER_INT64;
    naga::valid::Validator::new(naga::valid::ValidationFlags::all(), capabilities)
        .validate(&module)
        .map_err(|e| fail(e.emit_to_string(source)))?;
    Ok(())
}

/// Validates elementwise expressions, each for its compute dtype, in every form that `map` generates: with numbers
/// and buffers as operands, contiguous, strided and in place, with a float, an integer and a bool output.
pub fn validate_all(exprs: &[(&str, DType)]) -> Result<()> {
    for &(expr, dtype) in exprs {
        let Some(compute) = Compute::of(dtype) else {
            return Err(Error::internal(format!("GPU kernels do not compute in {dtype} ('{expr}')")));
        };
        for out in [dtype, DType::Bool] {
            for (rank, out_contiguous) in [(0, true), (3, true), (3, false)] {
                for operands in [[Operand::Buffer(dtype); 4], [Operand::Scalar; 4], [Operand::Output(out); 4]] {
                    let variant = Variant { expr, compute, operands: &operands, out, rank, out_contiguous };
                    check(&variant.key(), &variant.source())?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPUTE: [DType; 4] = [DType::F32, DType::F64, DType::I32, DType::I64];

    /// A copy between any two dtypes, contiguous and strided.
    #[test]
    fn every_cast_validates() {
        let supported = DType::ALL.into_iter().filter(|&d| Compute::of(d).is_some());
        for from in supported.clone() {
            for out in supported.clone() {
                for (rank, out_contiguous) in [(0, true), (2, true), (2, false)] {
                    let compute = Compute::of(from).unwrap();
                    let operands = &[Operand::Buffer(from)];
                    let variant = Variant { expr: "x", compute, operands, out, rank, out_contiguous };
                    check(&variant.key(), &variant.source()).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_broken_expression_is_named() {
        let error = validate_all(&[("x +", DType::F32)]).unwrap_err();
        assert!(error.message().contains("map x + in f32"), "{error}");
        for dtype in COMPUTE {
            validate_all(&[("x + y * z - w", dtype)]).unwrap();
        }
    }
}
