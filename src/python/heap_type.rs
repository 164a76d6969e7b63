//! Heap types of our own: tables of slots, members, properties and methods, turned into a Python type in one place.

use super::error::PyResult;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use std::ffi::{CStr, CString, c_int, c_ulong, c_void};
use std::ptr::{null, null_mut};

/// What a type is made of; the tables have no end marks.
pub struct HeapType {
    pub name: &'static CStr,
    /// Bytes of an instance; 0 where the base says it.
    pub size: usize,
    /// Beside `Py_TPFLAGS_DEFAULT`.
    pub flags: c_ulong,
    /// Null stands for `object`.
    pub base: *mut ffi::PyTypeObject,
    pub slots: Vec<ffi::PyType_Slot>,
    pub members: Vec<ffi::PyMemberDef>,
    pub getset: Vec<ffi::PyGetSetDef>,
    pub methods: Vec<ffi::PyMethodDef>,
}

impl HeapType {
    pub fn new(name: &'static CStr, size: usize, flags: c_ulong) -> HeapType {
        HeapType {
            name,
            size,
            flags,
            base: null_mut(),
            slots: Vec::new(),
            members: Vec::new(),
            getset: Vec::new(),
            methods: Vec::new(),
        }
    }
    /// Makes the type, which lives as long as the process; its tables are leaked.
    pub fn create(mut self, py: Python) -> PyResult<*mut ffi::PyTypeObject> {
        // SAFETY: an all-zero entry ends each kind of table.
        let (members, getset, methods) = unsafe { (ended(self.members), ended(self.getset), ended(self.methods)) };
        for (id, table) in [(ffi::Py_tp_members, members), (ffi::Py_tp_getset, getset), (ffi::Py_tp_methods, methods)] {
            if let Some(table) = table {
                self.slots.push(slot(id, table));
            }
        }
        self.slots.push(slot(0, null_mut()));
        let mut spec = ffi::PyType_Spec {
            name: self.name.as_ptr(),
            basicsize: self.size as c_int,
            itemsize: 0,
            flags: (ffi::Py_TPFLAGS_DEFAULT | self.flags) as u32,
            slots: self.slots.as_mut_ptr(),
        };
        // SAFETY: the spec is valid for the call; tables that the type keeps are leaked.
        let t = unsafe { ffi::PyType_FromSpecWithBases(&raw mut spec, self.base.cast()) };
        if t.is_null() { Err(PyErr::fetch(py).into()) } else { Ok(t.cast()) }
    }
}

/// A table with its end mark; none where it is empty.
///
/// # Safety
/// All zeros is a value of `T`.
unsafe fn ended<T: 'static>(mut table: Vec<T>) -> Option<*mut c_void> {
    if table.is_empty() {
        return None;
    }
    // SAFETY: the caller's promise.
    table.push(unsafe { std::mem::zeroed() });
    Some(table.leak().as_mut_ptr().cast())
}

pub fn slot(id: c_int, f: *mut c_void) -> ffi::PyType_Slot {
    ffi::PyType_Slot { slot: id, pfunc: f }
}

/// An offset that the interpreter looks up under this name, such as `__weaklistoffset__`.
pub fn member(name: &'static CStr, offset: usize) -> ffi::PyMemberDef {
    ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code: ffi::Py_T_PYSSIZET,
        offset: offset as ffi::Py_ssize_t,
        flags: ffi::Py_READONLY,
        doc: null(),
    }
}

/// A property that is only read; `get` learns which one it is from the closure.
pub fn property(name: &'static CStr, get: ffi::getter, closure: usize) -> ffi::PyGetSetDef {
    ffi::PyGetSetDef { name: name.as_ptr(), get: Some(get), set: None, doc: null(), closure: closure as *mut c_void }
}

/// A method without arguments.
pub fn method(
    name: &'static CStr,
    call: unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> *mut PyObject,
) -> ffi::PyMethodDef {
    ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: call },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: null(),
    }
}

/// A method called with positional and named arguments, with its parameters and documentation for `help`.
pub fn keyword_method(
    name: &'static CStr,
    parameters: &str,
    doc: &str,
    call: ffi::PyCFunctionFastWithKeywords,
) -> ffi::PyMethodDef {
    let text = format!("{}({parameters})\n--\n\n{doc}", name.to_string_lossy());
    ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: call },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        // The type keeps the pointer for good.
        ml_doc: CString::new(text).unwrap_or_default().into_raw(),
    }
}
