//! Calls of ops that create tensors and ask for a sparse layout: the package `sparse` answers them, because its tensors are
//! objects of a subclass.

use super::error::PyResult;
use super::parse::Given;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// The result of a call that asks for a sparse layout; `None` if it asks for none.
#[cold]
pub fn make(py: Python, name: &str, given: &Given) -> PyResult<Option<*mut PyObject>> {
    // SAFETY: live arguments of the call.
    let object = |&p: &*mut PyObject| unsafe { Bound::from_borrowed_ptr(py, p) };
    let kwargs = PyDict::new(py);
    for (k, value) in given.values.iter().enumerate() {
        kwargs.set_item(given.keyword(py, k), object(value))?;
    }
    let Some(layout) = kwargs.get_item("layout")? else { return Ok(None) };
    if !layout.repr()?.to_str()?.starts_with("torch.sparse_") {
        return Ok(None);
    }
    let args = PyTuple::new(py, given.positional.iter().map(object))?;
    let made = py.import("rustgrad.sparse._factories")?.getattr("call")?.call1((name, args, kwargs))?;
    Ok(Some(made.into_ptr()))
}
