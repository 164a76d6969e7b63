//! The Python type `Tensor`: our own heap type, so that creating an object costs an allocation and a pointer.
//!
//! Note [Identity]: a handle knows its live Python object, so a tensor is the same object for as long as Python holds
//! it. When Python drops the object while Rust still holds the handle (a gradient, a graph), the object's class and
//! attributes are stashed with the handle and restored in the next object, so a `Parameter` stays one.

use super::error::{PyResult, Raised, guard_object, raised};
use super::heap_type::{HeapType, member, property, slot};
use super::owned_objects::{Held, clear, track, traverse};
use pyo3::ffi::{self, PyObject, PyTypeObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use rustgrad::tensor::{Foreign, PY_STASH, Tensor, Visit};
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

#[repr(C)]
pub struct TensorObject {
    base: PyObject,
    pub(super) tensor: Option<Tensor>,
    pub(super) dict: *mut PyObject,
    weakrefs: *mut PyObject,
}

static TYPE: AtomicPtr<PyTypeObject> = AtomicPtr::new(null_mut());
/// Free list of dead objects of the exact type, as CPython has for its own small types.
static FREE: FreeList =
    FreeList { objects: UnsafeCell::new([null_mut(); KEPT]), count: Cell::new(0), room: Cell::new(0) };
const KEPT: usize = 64;

struct FreeList {
    objects: UnsafeCell<[*mut PyObject; KEPT]>,
    count: Cell<usize>,
    /// `KEPT`, or zero on an interpreter without the GIL.
    room: Cell<usize>,
}

// SAFETY: only used under the interpreter lock; without one the capacity is zero.
unsafe impl Sync for FreeList {}

impl FreeList {
    /// SAFETY: the caller holds the interpreter lock.
    #[inline]
    unsafe fn pop(&self) -> Option<*mut PyObject> {
        let n = self.count.get().checked_sub(1)?;
        self.count.set(n);
        // SAFETY: the caller's promise; the first `count` entries are set.
        Some(unsafe { (*self.objects.get())[n] })
    }
    /// Returns whether there was room for it.
    ///
    /// SAFETY: the caller holds the interpreter lock; `o` is an untracked object of the exact type without references.
    #[inline]
    unsafe fn push(&self, o: *mut PyObject) -> bool {
        let n = self.count.get();
        if n == self.room.get() {
            return false;
        }
        self.count.set(n + 1);
        // SAFETY: the caller's promise; `n` is in range.
        unsafe { (*self.objects.get())[n] = o };
        true
    }
}
/// Python's `_tensor._new`, which implements `Tensor(2, 3)` and `Tensor([..])`.
static LEGACY_NEW: AtomicPtr<PyObject> = AtomicPtr::new(null_mut());

/// What is kept when the Python object of a tensor dies.
struct Stash {
    class: Held<PyType>,
    dict: Option<Held<PyDict>>,
}

impl Foreign for Stash {
    fn owned(&self, visit: &mut Visit) {
        self.class.owned(visit);
        self.dict.iter().for_each(|d| d.owned(visit));
    }
}

pub fn tensor_type() -> *mut PyTypeObject {
    TYPE.load(Ordering::Relaxed)
}

#[inline]
pub fn is_tensor(o: *mut PyObject) -> bool {
    let t = tensor_type();
    // SAFETY: `o` is a live object of the caller, `t` our type, which is never freed.
    unsafe { ffi::Py_TYPE(o) == t || ffi::PyType_IsSubtype(ffi::Py_TYPE(o), t) != 0 }
}

/// The tensor in an object, borrowed for as long as the caller keeps the object alive.
#[inline]
pub fn borrow<'a>(o: *mut PyObject) -> Option<&'a Tensor> {
    if !is_tensor(o) {
        return None;
    }
    // SAFETY: an instance of our type has this layout; the tensor is set at creation and taken only at deallocation.
    unsafe { (*o.cast::<TensorObject>()).tensor.as_ref() }
}

/// The Python object of a tensor, existing or new. Returns a new reference.
pub fn wrap(py: Python, tensor: Tensor) -> PyResult<*mut PyObject> {
    let live = tensor.py_object().load(Ordering::Acquire).cast::<PyObject>();
    if !live.is_null() {
        // SAFETY: the pointer is cleared before its object dies, under the interpreter lock that we hold.
        unsafe { ffi::Py_INCREF(live) };
        return Ok(live);
    }
    if tensor.flag(PY_STASH) {
        return unstash(py, tensor);
    }
    // SAFETY: our type is a GC type of fixed size; every field is set below. It stays untracked until it has attributes.
    unsafe {
        let o = match FREE.pop() {
            Some(o) => ffi::PyObject_Init(o, tensor_type()).cast::<TensorObject>(),
            None => ffi::PyObject_GC_New::<TensorObject>(tensor_type()),
        };
        if o.is_null() {
            return Err(PyErr::fetch(py).into());
        }
        tensor.py_object().store(o.cast(), Ordering::Release);
        (&raw mut (*o).tensor).write(Some(tensor));
        (*o).dict = null_mut();
        (*o).weakrefs = null_mut();
        Ok(o.cast())
    }
}

pub fn wrap_bound<'py>(py: Python<'py>, tensor: Tensor) -> PyResult<Bound<'py, PyAny>> {
    let p = wrap(py, tensor)?;
    // SAFETY: `wrap` returns a new reference.
    Ok(unsafe { Bound::from_owned_ptr(py, p) })
}

/// A new object of a subclass around a tensor that has no object yet.
pub fn wrap_as(py: Python, tensor: Tensor, class: *mut PyTypeObject) -> PyResult<*mut PyObject> {
    // SAFETY: `class` is our type or a subclass, so its instances start with our layout; the generic allocator zeroes
    // them.
    unsafe {
        let o = ffi::PyType_GenericAlloc(class, 0).cast::<TensorObject>();
        if o.is_null() {
            return Err(PyErr::fetch(py).into());
        }
        tensor.py_object().store(o.cast(), Ordering::Release);
        (&raw mut (*o).tensor).write(Some(tensor));
        super::overrides::note(py, class);
        Ok(o.cast())
    }
}

fn unstash(py: Python, tensor: Tensor) -> PyResult<*mut PyObject> {
    let kept: Option<Box<dyn Any>> = tensor.slot().rare().python.take().map(|k| k as Box<dyn Any>);
    tensor.set_flag(PY_STASH, false);
    let Some(stash) = kept.and_then(|k| k.downcast::<Stash>().ok()) else { return wrap(py, tensor) };
    let t = tensor.clone();
    let o = wrap_as(py, tensor, stash.class.as_ptr().cast())?;
    if let Some(d) = stash.dict {
        // SAFETY: the new object's dict is null; it receives a new reference.
        unsafe { (*o.cast::<TensorObject>()).dict = d.clone_ref(py).into_ptr() };
    }
    track(&t);
    Ok(o)
}

/// Called before the object is freed. Stashes what must outlive it with the handle and unlinks the two: a callback that
/// reaches the tensor by another way gets a new object.
unsafe fn part(this: *mut TensorObject, tracked: bool) {
    // SAFETY: the caller's object has no references left and is not freed yet; the lock is held.
    unsafe {
        let Some(t) = &(*this).tensor else { return };
        let class = ffi::Py_TYPE(this.cast());
        t.py_object().store(null_mut(), Ordering::Release);
        if t.owners() > 1 && (class != tensor_type() || tracked) {
            let py = Python::assume_attached();
            let class = Bound::from_borrowed_ptr(py, class.cast::<PyObject>()).cast_into_unchecked::<PyType>();
            let dict = std::mem::replace(&mut (*this).dict, null_mut());
            let dict = Bound::from_owned_ptr_or_opt(py, dict).map(|d| d.cast_into_unchecked::<PyDict>().unbind());
            let stash = Stash { class: Held::in_graph(class.unbind()), dict: dict.map(Held::in_graph) };
            t.slot().rare().python = Some(Box::new(stash));
            t.set_flag(PY_STASH, true);
        }
    }
}

unsafe extern "C" fn dealloc(o: *mut PyObject) {
    // SAFETY: called once by the interpreter for an instance of our layout whose last reference was dropped.
    unsafe {
        let this = o.cast::<TensorObject>();
        let tracked = ffi::PyObject_GC_IsTracked(o) != 0 || !(*this).dict.is_null();
        ffi::PyObject_GC_UnTrack(o.cast());
        part(this, tracked);
        if !(*this).weakrefs.is_null() {
            ffi::PyObject_ClearWeakRefs(o);
        }
        let class = ffi::Py_TYPE(o);
        drop((*this).tensor.take());
        ffi::Py_XDECREF(std::mem::replace(&mut (*this).dict, null_mut()));
        let kept = class == tensor_type() && FREE.push(o);
        if let Some(free) = (*class).tp_free.filter(|_| !kept) {
            free(o.cast());
        }
        ffi::Py_DECREF(class.cast());
    }
}

/// Attributes can make an object part of a cycle, so it is tracked from then on.
unsafe extern "C" fn setattr(o: *mut PyObject, name: *mut PyObject, value: *mut PyObject) -> c_int {
    // SAFETY: the interpreter passes live objects (`value` null on deletion, which the generic function knows).
    unsafe {
        let r = ffi::PyObject_GenericSetAttr(o, name, value);
        if r == 0 && !(*o.cast::<TensorObject>()).dict.is_null() && ffi::PyObject_GC_IsTracked(o) == 0 {
            ffi::PyObject_GC_Track(o.cast());
        }
        r
    }
}

unsafe extern "C" fn new(class: *mut PyTypeObject, args: *mut PyObject, kwargs: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        let hook = LEGACY_NEW.load(Ordering::Relaxed);
        // SAFETY: the interpreter passes live objects; the hook is never freed.
        unsafe {
            let hook = Bound::from_borrowed_ptr(py, hook);
            let args = Bound::from_borrowed_ptr(py, args).cast_into_unchecked::<PyTuple>();
            let kwargs = Bound::from_borrowed_ptr_or_opt(py, kwargs).map(|k| k.cast_into_unchecked::<PyDict>());
            let made = super::overrides::unheard(|| hook.call(args, kwargs.as_ref()))?;
            if class == tensor_type() {
                return Ok(made.into_ptr());
            }
            let t = borrow(made.as_ptr())
                .cloned()
                .ok_or_else(|| raised::<pyo3::exceptions::PyTypeError>("Tensor: expected a tensor"))?;
            // The hook's object was the only one, unless a program kept it.
            drop(made);
            let free = t.py_object().load(Ordering::Acquire).is_null();
            wrap_as(py, if free { t } else { t.detach() }, class)
        }
    })
}

/// Creates the type, with the given slots in addition to those of this file.
pub fn create(py: Python, extra: &[ffi::PyType_Slot]) -> PyResult<*mut PyObject> {
    let mut getset = super::properties::table();
    getset.push(ffi::PyGetSetDef {
        set: Some(ffi::PyObject_GenericSetDict),
        ..property(c"__dict__", super::owned_objects::get_dict, 0)
    });
    let mut slots = vec![
        slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        slot(ffi::Py_tp_traverse, traverse as *mut c_void),
        slot(ffi::Py_tp_clear, clear as *mut c_void),
        slot(ffi::Py_tp_setattro, setattr as *mut c_void),
        slot(ffi::Py_tp_new, new as *mut c_void),
    ];
    slots.extend_from_slice(extra);
    let class = HeapType {
        slots,
        members: vec![
            member(c"__dictoffset__", std::mem::offset_of!(TensorObject, dict)),
            member(c"__weaklistoffset__", std::mem::offset_of!(TensorObject, weakrefs)),
        ],
        getset,
        methods: [super::metadata::table(), super::conversions::table(), super::readings::table()].concat(),
        ..HeapType::new(
            c"rustgrad.Tensor",
            size_of::<TensorObject>(),
            ffi::Py_TPFLAGS_BASETYPE | ffi::Py_TPFLAGS_HAVE_GC,
        )
    };
    let t = class.create(py)?;
    TYPE.store(t, Ordering::Release);
    let locked = match py.import("sys")?.getattr("_is_gil_enabled") {
        Ok(f) => f.call0()?.is_truthy()?,
        Err(_) => true,
    };
    FREE.room.set(if locked { KEPT } else { 0 });
    Ok(t.cast())
}

/// Swaps the tensors of two objects, whose Python identities stay.
///
/// # Safety
/// Both are instances of our type, and nothing else owns or borrows their tensors.
pub unsafe fn exchange(a: *mut PyObject, b: *mut PyObject) {
    let (a, b) = (a.cast::<TensorObject>(), b.cast::<TensorObject>());
    // SAFETY: the caller's promise; the interpreter lock keeps other threads from accessing either object meanwhile.
    unsafe {
        std::ptr::swap(&raw mut (*a).tensor, &raw mut (*b).tensor);
        for o in [a, b] {
            (*o).tensor.iter().for_each(|t| t.py_object().store(o.cast(), Ordering::Release));
        }
    }
}

/// Names the Python function behind `Tensor(...)`.
#[pyfunction]
pub fn _set_legacy_new(f: Py<PyAny>) {
    LEGACY_NEW.store(f.into_ptr(), Ordering::Release);
}

/// `Tensor._make_subclass(cls, data, requires_grad)`: a tensor of class `cls` on the memory of `data`.
#[pyfunction]
#[pyo3(signature = (cls, data, requires_grad=false))]
pub fn _make_subclass<'py>(
    py: Python<'py>,
    cls: &Bound<'py, PyType>,
    data: Handle,
    requires_grad: bool,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: both are live type objects.
    if unsafe { ffi::PyType_IsSubtype(cls.as_ptr().cast(), tensor_type()) } == 0 {
        return Err(raised::<pyo3::exceptions::PyTypeError>("_make_subclass: cls must be a subclass of Tensor"));
    }
    let t = data.0.detach();
    super::graph::set_requires_grad(&t, requires_grad)?;
    let o = wrap_as(py, t, cls.as_ptr().cast())?;
    // SAFETY: `wrap_as` returns a new reference.
    Ok(unsafe { Bound::from_owned_ptr(py, o) })
}

/// `t.as_subclass(cls)`: the same memory and history as an instance of `cls`.
#[pyfunction]
pub fn _as_subclass<'py>(py: Python<'py>, t: Handle, cls: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: both are live type objects.
    if unsafe { ffi::PyType_IsSubtype(cls.as_ptr().cast(), tensor_type()) } == 0 {
        return Err(raised::<pyo3::exceptions::PyTypeError>("as_subclass: cls must be a subclass of Tensor"));
    }
    let view = rustgrad::ops::view::reshape::ALIAS.call((&t.0,)).ok()?;
    let o = wrap_as(py, view, cls.as_ptr().cast())?;
    // SAFETY: `wrap_as` returns a new reference.
    Ok(unsafe { Bound::from_owned_ptr(py, o) })
}

/// A tensor argument or result of a `#[pyfunction]`.
pub struct Handle(pub Tensor);

impl<'a, 'py> FromPyObject<'a, 'py> for Handle {
    type Error = Raised;
    fn extract(o: Borrowed<'a, 'py, PyAny>) -> PyResult<Handle> {
        match borrow(o.as_ptr()) {
            Some(t) => Ok(Handle(t.clone())),
            None => {
                Err(raised::<pyo3::exceptions::PyTypeError>(format!("expected a Tensor, got {}", o.get_type().name()?)))
            }
        }
    }
}
impl<'py> IntoPyObject<'py> for Handle {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = Raised;
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        wrap_bound(py, self.0)
    }
}
