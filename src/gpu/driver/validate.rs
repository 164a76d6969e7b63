//! WGSL through naga, so that no adapter is needed to see that a shader is valid.

use crate::error::{Error, Result};
use wgpu::naga;

/// Parses and validates one WGSL source; the error shows the place in it.
pub(in crate::gpu) fn check(name: &str, source: &str) -> Result<()> {
    let fail = |what: String| Error::internal(format!("GPU kernel '{name}': {what}\n{source}"));
    let module = naga::front::wgsl::parse_str(source).map_err(|e| fail(e.emit_to_string(source)))?;
    let capabilities = naga::valid::Capabilities::FLOAT64 | naga::valid::Capabilities::SHADER_INT64;
    naga::valid::Validator::new(naga::valid::ValidationFlags::all(), capabilities)
        .validate(&module)
        .map_err(|e| fail(e.emit_to_string(source)))?;
    Ok(())
}
