//! Errors at the boundary to Python: a Rust error becomes a Python exception, a panic becomes `InternalError`, never a
//! crash.

use pyo3::exceptions::*;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::{CastError, CastIntoError, PyTypeInfo};
use rustgrad::error::{Class, Error};
use rustgrad::rt::retire::Frame;
use std::convert::Infallible;
use std::ffi::NulError;
use std::panic::{AssertUnwindSafe, catch_unwind};

pyo3::create_exception!(rustgrad, InternalError, PyRuntimeError, "A bug in rustgrad itself; please report it.");
pyo3::create_exception!(rustgrad, OutOfMemoryError, PyRuntimeError, "No memory left on a device.");

pyo3::create_exception!(
    rustgrad.linalg,
    LinAlgError,
    PyRuntimeError,
    "A matrix is singular, or a decomposition did not converge."
);

/// What a call raises. A type of its own, because the core's errors and the interpreter's both become one.
#[derive(Debug)]
pub struct Raised(pub PyErr);
pub type PyResult<T> = Result<T, Raised>;

impl From<PyErr> for Raised {
    fn from(e: PyErr) -> Raised {
        Raised(e)
    }
}
impl From<Raised> for PyErr {
    fn from(e: Raised) -> PyErr {
        e.0
    }
}
impl From<CastError<'_, '_>> for Raised {
    fn from(e: CastError) -> Raised {
        Raised(e.into())
    }
}
impl From<CastIntoError<'_>> for Raised {
    fn from(e: CastIntoError) -> Raised {
        Raised(e.into())
    }
}
impl From<NulError> for Raised {
    fn from(e: NulError) -> Raised {
        Raised(e.into())
    }
}
impl From<Infallible> for Raised {
    fn from(e: Infallible) -> Raised {
        match e {}
    }
}
impl From<Error> for Raised {
    fn from(mut e: Error) -> Raised {
        if let Some(p) = e.take_payload()
            && let Ok(err) = p.downcast::<PyErr>()
        {
            return Raised(*err);
        }
        let message = e.to_string();
        match e.class() {
            Class::Runtime => raised::<PyRuntimeError>(message),
            Class::Value => raised::<PyValueError>(message),
            Class::Type => raised::<PyTypeError>(message),
            Class::Index => raised::<PyIndexError>(message),
            Class::NotImplemented => raised::<PyNotImplementedError>(message),
            Class::Memory => raised::<OutOfMemoryError>(message),
            Class::LinAlg => raised::<LinAlgError>(message),
            Class::Buffer => raised::<PyBufferError>(message),
            Class::Internal | Class::Python => raised::<InternalError>(message),
        }
    }
}

/// An exception of a class.
pub fn raised<E: PyTypeInfo>(message: impl Into<String>) -> Raised {
    Raised(PyErr::new::<E, String>(message.into()))
}

/// Carries a Python exception through Rust code.
pub fn carry(e: impl Into<PyErr>) -> Error {
    Error::python(Box::new(e.into()))
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
            e.0.restore(py);
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
