//! The methods of `Tensor` that read its values, or leave its history: none takes an argument.

use super::error::PyResult;
use super::export::{_item, _tolist};
use super::graph::_detach;
use super::heap_type::keyword_method;
use super::method_call::{Call, Given, border};
use super::object::Handle;
use super::parse::positional_arguments;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use std::ffi::CStr;

/// That the call has no arguments.
fn nothing<M: Call>(given: &Given) -> PyResult<()> {
    given.only(&M::name().to_string_lossy(), "", || positional_arguments(0)).map(drop)
}

struct Item;
impl Call for Item {
    fn name() -> &'static CStr {
        c"item"
    }
    fn call<'py>(o: Bound<'py, PyAny>, given: Given<'py>) -> PyResult<*mut PyObject> {
        nothing::<Item>(&given)?;
        Ok(_item(o.py(), &o, false)?.into_ptr())
    }
}

struct ToList;
impl Call for ToList {
    fn name() -> &'static CStr {
        c"tolist"
    }
    fn call<'py>(o: Bound<'py, PyAny>, given: Given<'py>) -> PyResult<*mut PyObject> {
        nothing::<ToList>(&given)?;
        Ok(_tolist(o.py(), o.extract::<Handle>()?)?.into_ptr())
    }
}

struct Detach;
impl Call for Detach {
    fn name() -> &'static CStr {
        c"detach"
    }
    fn call<'py>(o: Bound<'py, PyAny>, given: Given<'py>) -> PyResult<*mut PyObject> {
        nothing::<Detach>(&given)?;
        Ok(_detach(o.py(), o.extract::<Handle>()?)?.into_ptr())
    }
}

/// The table for the type, without its end mark.
pub fn table() -> Vec<ffi::PyMethodDef> {
    let item = "The value of a one-element tensor as a Python number.\n\n\
                Raises:\n    RuntimeError: the tensor has more or fewer elements.";
    vec![
        keyword_method(Item::name(), "$self", item, border::<Item>),
        keyword_method(
            ToList::name(),
            "$self",
            "The elements as nested lists; a number for a 0-d tensor.",
            border::<ToList>,
        ),
        keyword_method(
            Detach::name(),
            "$self",
            "The same memory without history; never requires grad.",
            border::<Detach>,
        ),
    ]
}
