//! Methods of `Tensor` that sort their own arguments: the border function that they share, and what it hands them.

use super::error::{PyResult, guard_object, raised};
use super::{overrides, parse};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use smallvec::SmallVec;
use std::ffi::CStr;

/// The arguments of a call: positional ones, then those with names.
pub struct Given<'py> {
    pub positional: SmallVec<[Bound<'py, PyAny>; 4]>,
    pub named: SmallVec<[(String, Bound<'py, PyAny>); 2]>,
}

impl<'py> Given<'py> {
    /// # Safety
    /// The parts of a vectorcall in progress.
    pub unsafe fn new(py: Python<'py>, args: *const *mut PyObject, n: usize, names: *mut PyObject) -> Given<'py> {
        // SAFETY: the caller's promise: the values are live objects.
        unsafe {
            let all = parse::Given::new(args, n, names);
            let value = |&o: &*mut PyObject| Bound::from_borrowed_ptr(py, o);
            let named = all.values.iter().enumerate().map(|(i, o)| (all.keyword(py, i).to_owned(), value(o)));
            Given { positional: all.positional.iter().map(value).collect(), named: named.collect() }
        }
    }
    /// The only argument, by position or by its name (`""` where there is none); `most` says in words what may be given.
    pub fn only(
        &self,
        method: &str,
        name: &str,
        most: impl FnOnce() -> String,
    ) -> PyResult<Option<&Bound<'py, PyAny>>> {
        if let Some((unknown, _)) = self.named.iter().find(|(n, _)| n != name) {
            return Err(raised::<PyTypeError>(format!("{method}() got an unexpected keyword argument '{unknown}'")));
        }
        match (&self.positional[..], &self.named[..]) {
            ([], []) => Ok(None),
            ([value], []) | ([], [(_, value)]) if !name.is_empty() => Ok(Some(value)),
            ([_], [_]) => Err(raised::<PyTypeError>(format!("{method}() got multiple values for argument '{name}'"))),
            (many, _) => {
                let (most, got) = (most(), many.len());
                let were = if got == 1 { "was" } else { "were" };
                Err(raised::<PyTypeError>(format!("{method}() takes {most} but {got} {were} given")))
            }
        }
    }
}

/// A method, given its tensor and the arguments of a call; it returns a new reference.
pub trait Call {
    fn name() -> &'static CStr;
    fn call<'py>(o: Bound<'py, PyAny>, given: Given<'py>) -> PyResult<*mut PyObject>;
}

/// What the type's table names for a method.
///
/// # Safety
/// Called by the interpreter with the parts of a vectorcall.
pub unsafe extern "C" fn border<M: Call>(
    o: *mut PyObject,
    args: *const *mut PyObject,
    n: ffi::Py_ssize_t,
    names: *mut PyObject,
) -> *mut PyObject {
    guard_object(|py| {
        if overrides::active() {
            // SAFETY: the interpreter's promise.
            let given = unsafe { parse::Given::new(args, n as usize, names) };
            if let Some(answer) = overrides::method_of(py, M::name(), o, &given)? {
                return Ok(answer);
            }
        }
        // SAFETY: the interpreter's promise.
        let (o, given) = unsafe { (Bound::from_borrowed_ptr(py, o), Given::new(py, args, n as usize, names)) };
        M::call(o, given)
    })
}
