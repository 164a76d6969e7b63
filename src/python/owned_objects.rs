//! Python objects owned by Rust: by graphs, tensors, buffers. Every such reference is a `Held`.
//!
//! PyO3 defers dropping a reference if it does not know that the lock is held, and it does not know in functions that
//! the interpreter calls directly. `Held` asks the interpreter, so that an array is freed with its tensor. References
//! owned by a tensor or a graph are reported to the cycle collector (`autograd::owned`).

use super::error::{PyResult, raised};
use super::object::{TensorObject, borrow};
use pyo3::exceptions::PyImportError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};
use rustgrad::autograd::engine::any_runs;
use rustgrad::autograd::foreign_refs;
use rustgrad::rt::retire;
use rustgrad::tensor::{Foreign, HAS_FN, RETAINS, Tensor, Visit};
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether any tensor or graph may own Python objects.
static IN_GRAPHS: AtomicBool = AtomicBool::new(false);

/// A reference owned by Rust.
pub struct Held<T>(ManuallyDrop<Py<T>>);

impl<T> Held<T> {
    /// For references owned only by a buffer.
    pub fn new(object: Py<T>) -> Held<T> {
        Held(ManuallyDrop::new(object))
    }
    /// For references owned by a tensor or a graph.
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
        // SAFETY: it is taken once, here; `PyGILState_Check` has no preconditions.
        let (object, locked) = unsafe { (ManuallyDrop::take(&mut self.0), ffi::PyGILState_Check() != 0) };
        if !locked {
            return drop(object); // deferred until a thread has the lock
        }
        let mut object = Some(object);
        Python::try_attach(|_| drop(object.take()));
        // During interpreter shutdown it accepts no more calls: leak the object, the process is ending.
        std::mem::forget(object);
    }
}

impl<T: 'static> Foreign for Held<T> {
    fn owned(&self, visit: &mut Visit) {
        visit(self.as_ptr().cast());
    }
}

/// Reports objects to the collector until its callback returns non-zero; returns that value.
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

/// `show` for a `#[pyclass]`.
pub fn show_to(visit: &PyVisit, search: impl FnOnce(&mut Visit)) -> Result<(), PyTraverseError> {
    if !IN_GRAPHS.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut answer = Ok(());
    search(&mut |o: *mut c_void| {
        if answer.is_ok() {
            // SAFETY: a `Py` is a non-null pointer, and `o` is one: it is owned by what is searched.
            answer = visit.call(unsafe { &*(&raw const o).cast::<Py<PyAny>>() });
        }
    });
    answer
}

/// Called by the collector as a collection starts and stops: an entry of `gc.callbacks`.
#[pyfunction]
fn _collection(phase: &str, info: &Bound<PyDict>) -> PyResult<()> {
    let generation: Option<u8> = info.get_item("generation")?.map(|g| g.extract()).transpose()?;
    // From 3.14 the middle generation stands for a part of all objects, and no collection is full unless asked for.
    let young = if info.py().version_info() >= (3, 14) { 1 } else { 2 };
    foreign_refs::young_collection(phase == "start" && generation.is_some_and(|g| g < young));
    Ok(())
}

/// Has the collector tell of its collections.
pub fn listen_to_collector(m: &Bound<PyModule>) -> PyResult<()> {
    let callbacks = m.py().import("gc")?.getattr("callbacks")?;
    Ok(callbacks.call_method1("append", (wrap_pyfunction!(_collection, m)?,)).map(drop)?)
}

/// Whether the object is the only owner of its tensor. If a graph or a gradient also owns it, the object is not garbage
/// even without Python references: what it holds is not reported, so it counts as referenced from outside.
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
            (0, Some(t)) => show(visit, arg, |visit| foreign_refs::of_tensor(t, visit)),
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
    // Both are detached from the object before they are dropped, which may run arbitrary code.
    drop(slot);
    // SAFETY: the reference was the object's.
    unsafe { ffi::Py_XDECREF(dict) };
    0
}

/// `t.__dict__` may be filled without the object's knowledge, so the collector tracks the object from now on.
pub unsafe extern "C" fn get_dict(o: *mut PyObject, closure: *mut c_void) -> *mut PyObject {
    if let Some(t) = borrow(o) {
        track(t);
    }
    // SAFETY: the interpreter passes a live instance, which has a dict slot.
    unsafe { ffi::PyObject_GenericGetDict(o, closure) }
}

/// Makes the collector track the object of a tensor that now owns Python objects.
pub fn track(t: &Tensor) {
    let o = t.py_object().load(Ordering::Acquire).cast::<PyObject>();
    // SAFETY: a live object of ours (the lock is held), whose fields are all set.
    unsafe {
        if !o.is_null() && ffi::PyObject_GC_IsTracked(o) == 0 {
            ffi::PyObject_GC_Track(o.cast());
        }
    }
}

/// Tracks `o` if it is a tensor.
pub fn track_object(o: &Bound<PyAny>) {
    if let Some(t) = borrow(o.as_ptr()) {
        track(t);
    }
}

/// Yields to other threads, releasing the interpreter lock if this thread holds it.
pub fn pause() {
    // SAFETY: `PyGILState_Check` has no preconditions.
    match unsafe { ffi::PyGILState_Check() } {
        0 => retire::nap(),
        _ => Python::attach(|py| py.detach(retire::nap)),
    }
}

/// Types and other statics exist once per process, so only one interpreter can use them.
pub fn refuse_subinterpreters() -> PyResult<()> {
    // SAFETY: the lock is held; both are pointers to compare.
    match unsafe { ffi::PyInterpreterState_Get() == ffi::PyInterpreterState_Main() } {
        true => Ok(()),
        false => Err(raised::<PyImportError>("module rustgrad._C does not support loading in subinterpreters")),
    }
}
