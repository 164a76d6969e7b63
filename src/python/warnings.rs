//! Warnings for users: each time, or once in a process, as PyTorch gives them.

use super::error::PyResult;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether warnings that are given once in a process are given every time.
static ALWAYS: AtomicBool = AtomicBool::new(false);

#[pyfunction]
pub fn _set_warn_always(on: bool) {
    ALWAYS.store(on, Ordering::Relaxed);
}
#[pyfunction]
pub fn _is_warn_always_enabled() -> bool {
    ALWAYS.load(Ordering::Relaxed)
}

/// Shows a warning, as from `level` frames above.
pub fn warn_user(py: Python, text: &CStr, level: i32) -> PyResult<()> {
    Ok(PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, level)?)
}

/// Shows a warning the first time that it is given in the process.
#[cold]
pub fn warn_once(py: Python, text: &str, level: i32) -> PyResult<()> {
    static TOLD: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    // The lock is not held while Python runs.
    let first = TOLD.lock().map_or(true, |mut told| told.get_or_insert_default().insert(text.into()));
    if first || _is_warn_always_enabled() { warn_user(py, &CString::new(text)?, level) } else { Ok(()) }
}

/// The same for Python code, whose caller's frame has level 1.
#[pyfunction]
pub fn _warn_once(py: Python, text: &str, stacklevel: i32) -> PyResult<()> {
    warn_once(py, text, stacklevel)
}
