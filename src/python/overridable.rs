//! A method of `Tensor` written in Python, as an object that offers each call to `__torch_function__` first.
//!
//! It is the function for everybody who looks at it: attributes that it does not have are the function's. While no class
//! overrides and no mode is entered, a call costs one load more than that of the function.

use super::error::{PyResult, guard_object};
use super::heap_type::{HeapType, member, method, property, slot};
use super::op_callable::is_module;
use super::overrides;
use super::parse::Given;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

#[repr(C)]
struct Overridable {
    base: PyObject,
    vectorcall: ffi::vectorcallfunc,
    /// Set at creation, released with the object.
    function: *mut PyObject,
}

static TYPE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());
/// Python's class of bound methods.
static METHOD: AtomicPtr<PyObject> = AtomicPtr::new(null_mut());

unsafe extern "C" fn vectorcall(
    o: *mut PyObject,
    args: *const *mut PyObject,
    nargsf: usize,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: `o` is one of our objects.
    let function = unsafe { (*o.cast::<Overridable>()).function };
    if overrides::active() {
        return guard_object(|py| {
            // SAFETY: the arguments of a vectorcall in progress, and the object that is called.
            let (given, o) = unsafe { (Given::new(args, nargsf, names), Bound::from_borrowed_ptr(py, o)) };
            match overrides::method(py, || Ok(o), None, &given)? {
                Some(answer) => Ok(answer),
                // SAFETY: as above.
                None => Ok(unsafe { ffi::PyObject_Vectorcall(function, args, nargsf, names) }),
            }
        });
    }
    // SAFETY: as above.
    unsafe { ffi::PyObject_Vectorcall(function, args, nargsf, names) }
}

/// An attribute of the function, where the type has one of that name too.
unsafe extern "C" fn describe(o: *mut PyObject, name: *mut c_void) -> *mut PyObject {
    // SAFETY: `o` is one of our objects; the closure is one of the names below.
    unsafe {
        let function = (*o.cast::<Overridable>()).function;
        if name.is_null() {
            ffi::Py_INCREF(function);
            return function;
        }
        ffi::PyObject_GetAttrString(function, name.cast())
    }
}

unsafe extern "C" fn getattro(o: *mut PyObject, name: *mut PyObject) -> *mut PyObject {
    // SAFETY: a live object of ours and a name, from the interpreter.
    unsafe {
        // The type has its own module under that name.
        if is_module(name) {
            return ffi::PyObject_GetAttr((*o.cast::<Overridable>()).function, name);
        }
        let own = ffi::PyObject_GenericGetAttr(o, name);
        if !own.is_null() || ffi::PyErr_ExceptionMatches(ffi::PyExc_AttributeError) == 0 {
            return own;
        }
        ffi::PyErr_Clear();
        ffi::PyObject_GetAttr((*o.cast::<Overridable>()).function, name)
    }
}

unsafe extern "C" fn repr(o: *mut PyObject) -> *mut PyObject {
    // SAFETY: `o` is one of our objects.
    unsafe { ffi::PyObject_Repr((*o.cast::<Overridable>()).function) }
}

/// The method bound to its tensor.
unsafe extern "C" fn bind(o: *mut PyObject, owner: *mut PyObject, _class: *mut PyObject) -> *mut PyObject {
    // SAFETY: live objects from the interpreter; null stands for an access through the class.
    unsafe {
        if owner.is_null() {
            ffi::Py_INCREF(o);
            return o;
        }
        let parts = [o, owner];
        ffi::PyObject_Vectorcall(METHOD.load(Ordering::Acquire), parts.as_ptr(), 2, null_mut())
    }
}

/// Pickled by its name, as a function is.
unsafe extern "C" fn reduce(o: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: `o` is one of our objects.
    unsafe { describe(o, c"__qualname__".as_ptr().cast_mut().cast()) }
}

unsafe extern "C" fn dealloc(o: *mut PyObject) {
    // SAFETY: called once by the interpreter for an instance of our layout whose last reference was dropped.
    unsafe {
        let class = ffi::Py_TYPE(o);
        ffi::Py_DECREF((*o.cast::<Overridable>()).function);
        if let Some(free) = (*class).tp_free {
            free(o.cast());
        }
        ffi::Py_DECREF(class.cast());
    }
}

/// The overridable form of a method written in Python.
#[pyfunction]
pub fn _overridable_method(function: &Bound<PyAny>) -> PyResult<Py<PyAny>> {
    let py = function.py();
    // SAFETY: our type has a fixed size and no collector; every field is set before anybody sees the object.
    unsafe {
        let class = TYPE.load(Ordering::Acquire);
        let o = ffi::PyType_GenericAlloc(class, 0);
        if o.is_null() {
            return Err(PyErr::fetch(py).into());
        }
        (*o.cast::<Overridable>()).vectorcall = vectorcall;
        (*o.cast::<Overridable>()).function = function.clone().into_ptr();
        Ok(Bound::from_owned_ptr(py, o).unbind())
    }
}

/// Makes the type and adds the function that wraps a method.
pub fn install(m: &Bound<PyModule>) -> PyResult<()> {
    let names = [c"__doc__", c"__name__", c"__qualname__", c"__dict__", c"__text_signature__"];
    let attributes = names.into_iter().map(|name| property(name, describe, name.as_ptr() as usize));
    let class = HeapType {
        slots: vec![
            slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
            slot(ffi::Py_tp_call, ffi::PyVectorcall_Call as *mut c_void),
            slot(ffi::Py_tp_getattro, getattro as *mut c_void),
            slot(ffi::Py_tp_descr_get, bind as *mut c_void),
            slot(ffi::Py_tp_repr, repr as *mut c_void),
        ],
        members: vec![member(c"__vectorcalloffset__", std::mem::offset_of!(Overridable, vectorcall))],
        methods: vec![method(c"__reduce__", reduce)],
        getset: attributes.chain([property(c"__wrapped__", describe, 0)]).collect(),
        ..HeapType::new(
            c"rustgrad._C.OverridableMethod",
            size_of::<Overridable>(),
            ffi::Py_TPFLAGS_HAVE_VECTORCALL | ffi::Py_TPFLAGS_METHOD_DESCRIPTOR,
        )
    };
    let method = m.py().import("types")?.getattr("MethodType")?;
    METHOD.store(method.into_ptr(), Ordering::Release);
    TYPE.store(class.create(m.py())?, Ordering::Release);
    super::add_functions(m, [wrap_pyfunction!(_overridable_method, m)?])
}
