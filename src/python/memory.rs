//! Memory formats and the keywords of tensor-creating ops that have only one valid value.
//!
//! All tensors are strided and in pageable memory. Ops that create tensors accept `layout` and `pin_memory` with these
//! values, and raise an error for others; `sparse_layout` takes over those that ask for a sparse layout.

use super::error::{PyResult, raised};
use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError};
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use rustgrad::layout::Format;
use rustgrad::op::{Signature, public_name};

/// The format of an object of the Python class `memory_format`.
pub fn format_of(o: &Bound<PyAny>) -> PyResult<Option<Format>> {
    if o.get_type().name()? != "memory_format" {
        return Ok(None);
    }
    let name = o.getattr("_name")?;
    let name = name.extract::<&str>()?;
    Ok(Format::ALL.into_iter().find(|f| f.name() == name))
}

/// Whether an op takes a keyword that is not in its signature; an error where it takes it with other values.
pub fn accepts(py: Python, sig: &Signature, keyword: &str, value: *mut PyObject) -> PyResult<bool> {
    let name = public_name(sig.name());
    let known: &[&str] = match keyword {
        _ if sig.index_of("requires_grad").is_none() => return Ok(false),
        "layout" => &["None", "torch.strided"],
        "pin_memory" => &["None", "False"],
        _ => return Ok(false),
    };
    // SAFETY: a live argument of the call.
    let value = unsafe { Borrowed::from_ptr(py, value) }.repr()?.to_string();
    match known.contains(&value.as_str()) {
        true => Ok(true),
        false if keyword == "pin_memory" => Err(raised::<PyRuntimeError>(format!(
            "{name}: no device needs pinned memory here; expected pin_memory=False"
        ))),
        false => Err(raised::<PyNotImplementedError>(format!(
            "{name}: expected {keyword} {}, got {value}",
            known[1..].join(" or ")
        ))),
    }
}
