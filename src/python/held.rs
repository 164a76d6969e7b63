//! Objects of Python that Rust owns: graphs, tensors, buffers. What is given to one passes through here.
//!
//! PyO3 puts the release of a reference off where it does not know that the lock is held, and it does not know it in
//! functions that the interpreter calls itself. Here the interpreter is asked, so that an array goes with its tensor.
//! References that a tensor or a graph owns are shown to the collector of cycles (`autograd::owned`).

use super::object::{TensorObject, borrow};
use crate::autograd::engine::any_runs;
use crate::autograd::owned;
use crate::retire;
use crate::tensor::{Foreign, HAS_FN, RETAINS, Tensor, Visit};
use pyo3::exceptions::PyImportError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a tensor or a graph may own objects of Python.
static IN_GRAPHS: AtomicBool = AtomicBool::new(false);

/// A reference that Rust owns.
pub struct Held<T>(ManuallyDrop<Py<T>>);

impl<T> Held<T> {
    /// One that nothing but a buffer owns.
    pub fn new(object: Py<T>) -> Held<T> {
        Held(ManuallyDrop::new(object))
    }
    /// One that a tensor or a graph owns.
    pub fn in_graph(object: Py<T>) -> Held<T> {
        IN_GRAPHS.store(true, Ordering::Relaxed);
        Held::new(object)
    }
}

impl<T> Deref for Held<T> {
    type Target = Py<T>;
    fn deref(&self) -> &Py<T> {
        &self.0
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        // SAFETY: it is taken once, here, and asking for the lock takes nothing.
        let (object, locked) = unsafe { (ManuallyDrop::take(&mut self.0), ffi::PyGILState_Check() != 0) };
        if !locked {
            return drop(object); // put off until somebody has the lock
        }
        let mut object = Some(object);
        Python::try_attach(|_| drop(object.take()));
        // While the interpreter shuts down it takes no more calls: what is left goes with the process.
        std::mem::forget(object);
    }
}

impl<T: 'static> Foreign for Held<T> {
    fn owned(&self, visit: &mut Visit) {
        visit(self.as_ptr().cast());
    }
}

/// Shows objects to the collector until it has seen enough; its answer.
pub fn show(visit: ffi::visitproc, arg: *mut c_void, search: impl FnOnce(&mut Visit)) -> c_int {
    if !IN_GRAPHS.load(Ordering::Relaxed) {
        return 0;
    }
    let mut answer = 0;
    search(&mut |o: *mut c_void| {
        if answer == 0 {
            // SAFETY: the collector's own function and argument; `o` is a live object, owned by what is searched.
            answer = unsafe { visit(o.cast(), arg) };
        }
    });
    answer
}

/// The same for a class of PyO3's.
pub fn show_to(visit: &PyVisit, search: impl FnOnce(&mut Visit)) -> Result<(), PyTraverseError> {
    if !IN_GRAPHS.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut answer = Ok(());
    search(&mut |o: *mut c_void| {
        if answer.is_ok() {
            // SAFETY: a reference is a pointer that is not null, which this is: it is owned by what is searched.
            answer = visit.call(unsafe { &*(&raw const o).cast::<Py<PyAny>>() });
        }
    });
    answer
}

/// Whether the object is all that owns its tensor. Where a graph or a gradient owns it too, the object is not garbage
/// when Python has no reference to it: what it holds is not shown, so it counts as held from outside.
fn is_alone(t: &Tensor) -> bool {
    t.owners() == 1 && !(t.flag(RETAINS) && any_runs())
}

pub unsafe extern "C" fn traverse(o: *mut PyObject, visit: ffi::visitproc, arg: *mut c_void) -> c_int {
    // SAFETY: the collector calls this with a live instance.
    let (class, dict, tensor) =
        unsafe { (ffi::Py_TYPE(o).cast(), (*o.cast::<TensorObject>()).dict, &(*o.cast::<TensorObject>()).tensor) };
    let show_one = |p: *mut PyObject| {
        // SAFETY: the collector's own function and argument, and an object that this one owns.
        if p.is_null() { 0 } else { unsafe { visit(p, arg) } }
    };
    match (show_one(class), tensor) {
        (0, Some(t)) if !is_alone(t) => 0,
        (0, t) => match (show_one(dict), t) {
            (0, Some(t)) => show(visit, arg, |visit| owned::of_tensor(t, visit)),
            (seen, _) => seen,
        },
        (seen, _) => seen,
    }
}

pub unsafe extern "C" fn clear(o: *mut PyObject) -> c_int {
    // SAFETY: the collector calls this with a live instance.
    let this = unsafe { &mut *o.cast::<TensorObject>() };
    if this.tensor.as_ref().is_some_and(|t| !is_alone(t)) {
        return 0;
    }
    let dict = std::mem::replace(&mut this.dict, std::ptr::null_mut());
    let slot = this.tensor.as_ref().map(|t| {
        t.set_flag(HAS_FN, false);
        std::mem::take(&mut *t.slot())
    });
    // Both are off the object before they are released, which may run anything.
    drop(slot);
    // SAFETY: the reference was the object's.
    unsafe { ffi::Py_XDECREF(dict) };
    0
}

/// `t.__dict__`: may be filled without the object's knowledge, so the collector looks at the object from now on.
pub unsafe extern "C" fn get_dict(o: *mut PyObject, closure: *mut c_void) -> *mut PyObject {
    if let Some(t) = borrow(o) {
        track(t);
    }
    // SAFETY: the interpreter passes a live instance, which has a place for a dict.
    unsafe { ffi::PyObject_GenericGetDict(o, closure) }
}

/// Makes the collector look at the object of a tensor, which has come to own objects of Python.
pub fn track(t: &Tensor) {
    let o = t.0.py.load(Ordering::Acquire).cast::<PyObject>();
    // SAFETY: a live object of ours (the lock is held), whose fields are all set.
    unsafe {
        if !o.is_null() && ffi::PyObject_GC_IsTracked(o) == 0 {
            ffi::PyObject_GC_Track(o.cast());
        }
    }
}

/// Has `o` tracked if it is a tensor.
pub fn track_object(o: &Bound<PyAny>) {
    if let Some(t) = borrow(o.as_ptr()) {
        track(t);
    }
}

/// Gives other threads their turn, with the interpreter lock if this one has it.
pub fn pause() {
    // SAFETY: asking for the lock takes nothing.
    match unsafe { ffi::PyGILState_Check() } {
        0 => retire::nap(),
        _ => Python::attach(|py| py.detach(retire::nap)),
    }
}

/// Types and other statics are made once in a process, so only one interpreter can have them.
pub fn refuse_subinterpreters() -> PyResult<()> {
    // SAFETY: the lock is held; both are pointers to compare.
    match unsafe { ffi::PyInterpreterState_Get() == ffi::PyInterpreterState_Main() } {
        true => Ok(()),
        false => Err(PyImportError::new_err("module rustgrad._C does not support loading in subinterpreters")),
    }
}
