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
        let compute = if dtype == DType::Bool { Some(Compute::Bool) } else { Compute::of(dtype) };
        let Some(compute) = compute else {
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
thread_local! {
    static DRY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether this thread only checks kernels: buffers are hollow, launches validate their source. Only in tests.
#[inline(always)]
pub(super) fn dry() -> bool {
    #[cfg(test)]
    return DRY.get();
    #[cfg(not(test))]
    false
}

/// Runs `f` with every launch replaced by the validation of its source.
#[cfg(test)]
pub(super) fn dry_run(f: impl FnOnce() -> Result<()>) -> Result<()> {
    DRY.set(true);
    let result = f();
    DRY.set(false);
    result
}
