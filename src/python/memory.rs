//! Keywords that ask how a new tensor lies in memory: `layout`, `pin_memory`, `memory_format`.
//!
//! Tensors here are strided, row-major where nothing else follows from their operands, and on ordinary memory. The
//! ops that make tensors take these keywords for that, and say so where they ask for something else.

use crate::op::{Signature, public_name};
use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError};
use pyo3::ffi::PyObject;
use pyo3::prelude::*;

/// Whether an op takes a keyword that is not in its signature; an error where it takes it with other values.
pub fn accepts(py: Python, sig: &'static Signature, keyword: &str, value: *mut PyObject) -> PyResult<bool> {
    let name = public_name(sig.name);
    let creates = sig.index_of("requires_grad").is_some();
    let formed = matches!(name, "empty" | "clone" | "contiguous") || name.ends_with("_like");
    let known: &[&str] = match keyword {
        "layout" if creates => &["None", "torch.strided"],
        "pin_memory" if creates => &["None", "False"],
        "memory_format" if formed => &["None", "torch.contiguous_format", "torch.preserve_format"],
        _ => return Ok(false),
    };
    // SAFETY: a live argument of the call.
    let value = unsafe { Borrowed::from_ptr(py, value) }.repr()?.to_string();
    match known.contains(&value.as_str()) {
        true => Ok(true),
        false if keyword == "pin_memory" => Err(PyRuntimeError::new_err(format!(
            "{name}: no device needs pinned memory here; expected pin_memory=False"
        ))),
        false => Err(PyNotImplementedError::new_err(format!(
            "{name}: expected {keyword} {}, got {value}",
            known[1..].join(" or ")
        ))),
    }
}
