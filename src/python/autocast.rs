//! The state of autocast in Python; `rustgrad.amp` has the context manager.

use super::add_functions;
use super::convert::type_name;
use super::error::{PyResult, raised};
use super::py_types::{dtype_object, to_dtype};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use rustgrad::dispatch::autocast;

fn kind_of(device_type: &str) -> PyResult<usize> {
    autocast::kind(device_type)?.ok_or_else(|| {
        raised::<PyRuntimeError>(format!(
            "autocast: unknown device type for autocast; expected 'cpu' or 'gpu', got '{device_type}'"
        ))
    })
}

/// Whether autocast knows a kind of device; RuntimeError if it is no device.
#[pyfunction]
pub fn _autocast_kind(device_type: &str) -> PyResult<bool> {
    Ok(autocast::kind(device_type)?.is_some())
}
/// (whether autocast is on for the kind of device, its dtype).
#[pyfunction]
pub fn _autocast_state(py: Python, device_type: &str) -> PyResult<(bool, Py<PyAny>)> {
    let kind = kind_of(device_type)?;
    Ok((autocast::enabled(kind), dtype_object(py, autocast::dtype(kind))?))
}
#[pyfunction]
pub fn _set_autocast_enabled(device_type: &str, on: bool) -> PyResult<()> {
    autocast::set_enabled(kind_of(device_type)?, on);
    Ok(())
}
#[pyfunction]
pub fn _set_autocast_dtype(device_type: &str, dtype: &Bound<PyAny>) -> PyResult<()> {
    let kind = kind_of(device_type)?;
    let wrong = || {
        raised::<PyTypeError>(format!(
            "set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not {}",
            type_name(dtype)
        ))
    };
    autocast::set_dtype(kind, to_dtype(dtype)?.ok_or_else(wrong)?);
    Ok(())
}
/// Whether autocast keeps its casts of parameters until the outermost region ends.
#[pyfunction]
pub fn is_autocast_cache_enabled() -> bool {
    autocast::caching()
}
/// Sets whether autocast keeps its casts of parameters until the outermost region ends.
#[pyfunction]
pub fn set_autocast_cache_enabled(enabled: bool) {
    autocast::set_caching(enabled);
}
/// Counts one more enclosing region, and returns their number.
#[pyfunction]
pub fn autocast_increment_nesting() -> i64 {
    autocast::nest(1)
}
/// Counts one enclosing region less, and returns their number.
#[pyfunction]
pub fn autocast_decrement_nesting() -> i64 {
    autocast::nest(-1)
}
/// Forgets the casts of parameters.
#[pyfunction]
pub fn clear_autocast_cache() {
    autocast::clear_cache();
}

/// Adds the functions of this file to the module.
pub fn add(m: &Bound<PyModule>) -> PyResult<()> {
    let list = [
        wrap_pyfunction!(_autocast_kind, m)?,
        wrap_pyfunction!(_autocast_state, m)?,
        wrap_pyfunction!(_set_autocast_enabled, m)?,
        wrap_pyfunction!(_set_autocast_dtype, m)?,
        wrap_pyfunction!(is_autocast_cache_enabled, m)?,
        wrap_pyfunction!(set_autocast_cache_enabled, m)?,
        wrap_pyfunction!(autocast_increment_nesting, m)?,
        wrap_pyfunction!(autocast_decrement_nesting, m)?,
        wrap_pyfunction!(clear_autocast_cache, m)?,
    ];
    add_functions(m, list)
}
