//! The modes of autograd in Python, each a thread's own: recording, inference, anomaly detection, saved-tensor hooks.

use super::add_functions;
use super::error::PyResult;
use pyo3::prelude::*;
use rustgrad::autograd::{self, mode};

/// Whether ops are recorded in this thread.
#[pyfunction]
pub fn is_grad_enabled() -> bool {
    mode::grad_enabled()
}
#[pyfunction]
pub fn _set_grad_enabled(on: bool) -> bool {
    mode::set_grad_enabled(on)
}
/// Whether inference mode is on in this thread.
#[pyfunction]
pub fn is_inference_mode_enabled() -> bool {
    mode::inference_enabled()
}
#[pyfunction]
pub fn _set_inference_mode(on: bool) -> bool {
    mode::set_inference_enabled(on)
}
#[pyfunction]
#[pyo3(signature = (on, check_nan=true))]
pub fn _set_anomaly_enabled(on: bool, check_nan: bool) {
    mode::set_anomaly(match (on, check_nan) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => 2,
    });
}
/// Whether anomaly detection is on in this thread.
#[pyfunction]
pub fn is_anomaly_enabled() -> bool {
    mode::anomaly() > 0
}
/// Whether anomaly detection looks for NaN in this thread.
#[pyfunction]
pub fn is_anomaly_check_nan_enabled() -> bool {
    mode::anomaly() > 1
}

/// Packs and unpacks saved tensors by Python functions until they are popped.
#[pyfunction]
pub fn _push_saved_tensors_hooks(pack: Py<PyAny>, unpack: Py<PyAny>) -> PyResult<()> {
    Ok(autograd::saved::push_hooks(super::function::saved_hooks(pack, unpack))?)
}
/// Rejects hooks with this message; returns the previous message.
#[pyfunction]
pub fn _disable_saved_tensors_hooks(message: Option<String>) -> Option<String> {
    autograd::saved::disable_hooks(message)
}
#[pyfunction]
pub fn _pop_saved_tensors_hooks() {
    autograd::saved::pop_hooks();
}

/// Adds the functions of this file to the module.
pub fn add(m: &Bound<PyModule>) -> PyResult<()> {
    let list = [
        wrap_pyfunction!(is_grad_enabled, m)?,
        wrap_pyfunction!(_set_grad_enabled, m)?,
        wrap_pyfunction!(is_inference_mode_enabled, m)?,
        wrap_pyfunction!(_set_inference_mode, m)?,
        wrap_pyfunction!(_set_anomaly_enabled, m)?,
        wrap_pyfunction!(is_anomaly_enabled, m)?,
        wrap_pyfunction!(is_anomaly_check_nan_enabled, m)?,
        wrap_pyfunction!(_push_saved_tensors_hooks, m)?,
        wrap_pyfunction!(_pop_saved_tensors_hooks, m)?,
        wrap_pyfunction!(_disable_saved_tensors_hooks, m)?,
    ];
    add_functions(m, list)
}
