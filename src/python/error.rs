//! Errors at the boundary to Python: a Rust error becomes a Python exception, a panic becomes `InternalError`, never a
//! crash.

use crate::error::{Class, Error};
use crate::rt::retire::Frame;
use pyo3::exceptions::*;
use pyo3::ffi;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

pyo3::create_exception!(rustgrad, InternalError, PyRuntimeError, "A bug in rustgrad itself; please report it.");
pyo3::create_exception!(rustgrad, OutOfMemoryError, PyRuntimeError, "No memory left on a device.");

pyo3::create_exception!(
    rustgrad.linalg,
    LinAlgError,
    PyRuntimeError,
    "A matrix is singular, or a decomposition did not converge."
);

impl From<Error> for PyErr {
    fn from(mut e: Error) -> PyErr {
        if let Some(p) = e.take_payload()
            && let Ok(err) = p.downcast::<PyErr>()
        {
            return *err;
        }
        let message = e.to_string();
        match e.class() {
            Class::Runtime => PyRuntimeError::new_err(message),
            Class::Value => PyValueError::new_err(message),
            Class::Type => PyTypeError::new_err(message),
            Class::Index => PyIndexError::new_err(message),
            Class::NotImplemented => PyNotImplementedError::new_err(message),
            Class::Memory => OutOfMemoryError::new_err(message),
            Class::LinAlg => LinAlgError::new_err(message),
            Class::Buffer => PyBufferError::new_err(message),
            Class::Internal | Class::Python => InternalError::new_err(message),
        }
    }
}

/// Carries a Python exception through Rust code.
pub fn carry(e: PyErr) -> Error {
    Error::python(Box::new(e))
}

/// Runs an entry point: an error or a panic is set as the Python exception, and `failed` is returned.
pub fn guard<T>(failed: T, f: impl FnOnce(Python) -> PyResult<T>) -> T {
    // SAFETY: entry points are called by the interpreter, which holds its lock.
    let py = unsafe { Python::assume_attached() };
    let result = {
        // SAFETY: as above.
        let _frame = unsafe { Frame::enter() };
        catch_unwind(AssertUnwindSafe(|| f(py)))
    };
    match result {
        Ok(Ok(v)) => v,
        Ok(Err(e)) => {
            e.restore(py);
            failed
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            InternalError::new_err(format!("panicked: {}", text.unwrap_or("unknown"))).restore(py);
            failed
        }
    }
}

/// `guard` for an entry point that returns a new reference.
pub fn guard_object(f: impl FnOnce(Python) -> PyResult<*mut ffi::PyObject>) -> *mut ffi::PyObject {
    guard(std::ptr::null_mut(), f)
}
