//! A bound op, `x.add` without a call: callable like a method, with a method's attributes.
//!
//! The `repr` of CPython's own bound method prints its object, for a tensor all elements, read back from a GPU.
//! `x.add(y)` creates no bound op: the interpreter looks up the op and passes `x` itself.

use super::error::{PyResult, guard, guard_object, raised};
use super::heap_type::{HeapType, member, method, property, slot};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

#[repr(C)]
struct Bond {
    base: PyObject,
    vectorcall: ffi::vectorcallfunc,
    /// The op object and the tensor: set at creation, cleared only by the collector.
    op: *mut PyObject,
    owner: *mut PyObject,
    weakrefs: *mut PyObject,
}

/// The caller allows the slot before the arguments to be overwritten: `PY_VECTORCALL_ARGUMENTS_OFFSET`.
const ARGUMENTS_OFFSET: usize = 1 << (usize::BITS - 1);

static TYPE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());

/// The op `op` with `owner` as its first argument. Returns a new reference, or null with an exception set.
///
/// # Safety
/// Both are live objects.
pub unsafe fn bind(op: *mut PyObject, owner: *mut PyObject) -> *mut PyObject {
    // SAFETY: our type is a GC type of fixed size; every field is set before the collector starts tracking the object.
    unsafe {
        let o = ffi::PyObject_GC_New::<Bond>(TYPE.load(Ordering::Relaxed));
        if !o.is_null() {
            ffi::Py_INCREF(op);
            ffi::Py_INCREF(owner);
            (*o).vectorcall = vectorcall;
            (*o).op = op;
            (*o).owner = owner;
            (*o).weakrefs = null_mut();
            ffi::PyObject_GC_Track(o.cast());
        }
        o.cast()
    }
}

/// Op and tensor of a bound op; a `TypeError` after the collector cleared it.
fn parts<'py>(py: Python<'py>, o: *mut PyObject) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    // SAFETY: `o` is one of our objects; its fields are null or references that it owns.
    unsafe {
        let (op, owner) = ((*o.cast::<Bond>()).op, (*o.cast::<Bond>()).owner);
        match (Bound::from_borrowed_ptr_or_opt(py, op), Bound::from_borrowed_ptr_or_opt(py, owner)) {
            (Some(op), Some(owner)) => Ok((op, owner)),
            _ => Err(raised::<PyTypeError>("the method's tensor was collected")),
        }
    }
}

unsafe extern "C" fn vectorcall(
    o: *mut PyObject,
    args: *const *mut PyObject,
    nargsf: usize,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: the arguments of a vectorcall in progress: positional values, then one for each keyword name, preceded by
    // a slot that may be overwritten if the flag is set. The caller keeps `o` alive, and so the op and the tensor.
    unsafe {
        let (op, owner) = ((*o.cast::<Bond>()).op, (*o.cast::<Bond>()).owner);
        if op.is_null() || owner.is_null() {
            return guard_object(|py| parts(py, o).map(|_| null_mut()));
        }
        let n = ffi::PyVectorcall_NARGS(nargsf) as usize;
        if nargsf & ARGUMENTS_OFFSET != 0 {
            let first = args.cast_mut().sub(1);
            let before = std::mem::replace(&mut *first, owner);
            let result = ffi::PyObject_Vectorcall(op, first, n + 1, names);
            *first = before;
            return result;
        }
        let k = if names.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(names) as usize };
        let mut all: SmallVec<[*mut PyObject; 8]> = SmallVec::new();
        if all.try_reserve(n + k + 1).is_err() {
            return ffi::PyErr_NoMemory();
        }
        all.push(owner);
        all.extend((0..n + k).map(|i| *args.add(i)));
        ffi::PyObject_Vectorcall(op, all.as_ptr(), n + 1, names)
    }
}

unsafe extern "C" fn repr(o: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        let (op, owner) = parts(py, o)?;
        let text = format!(
            "<built-in method {} of {} object at {:p}>",
            op.getattr("__name__")?,
            owner.get_type().name()?,
            owner.as_ptr()
        );
        Ok(PyString::new(py, &text).into_any().into_ptr())
    })
}

/// An attribute of the op or of the bound op, selected by the closure.
unsafe extern "C" fn describe(o: *mut PyObject, what: *mut c_void) -> *mut PyObject {
    guard_object(|py| {
        let (op, owner) = parts(py, o)?;
        let found = match what as usize {
            0 => owner,
            1 => op,
            2 => op.getattr("__name__")?,
            3 => op.getattr("__doc__")?,
            4 => op.getattr("__module__")?,
            5 => op.getattr("__text_signature__")?,
            6 => PyString::new(py, &format!("Tensor.{}", op.getattr("__name__")?)).into_any(),
            _ => without_first(py, &op)?,
        };
        Ok(found.into_ptr())
    })
}

/// The `inspect.Signature` of the op without the tensor.
fn without_first<'py>(py: Python<'py>, op: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let signature = py.import("inspect")?.getattr("signature")?.call1((op,))?;
    let rest: Vec<_> =
        signature.getattr("parameters")?.call_method0("values")?.try_iter()?.skip(1).collect::<pyo3::PyResult<_>>()?;
    let kwargs = PyDict::new(py);
    kwargs.set_item("parameters", PyTuple::new(py, rest)?)?;
    Ok(signature.call_method("replace", (), Some(&kwargs))?)
}

/// Pickled and copied as an attribute of its tensor.
unsafe extern "C" fn reduce(o: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        let (op, owner) = parts(py, o)?;
        let getattr = py.import("builtins")?.getattr("getattr")?;
        Ok((getattr, (owner, op.getattr("__name__")?)).into_pyobject(py)?.into_any().into_ptr())
    })
}

unsafe extern "C" fn compare(a: *mut PyObject, b: *mut PyObject, how: c_int) -> *mut PyObject {
    guard_object(|py| {
        // SAFETY: the interpreter passes live objects, the first of which is ours.
        let ours = unsafe { ffi::Py_TYPE(b) } == TYPE.load(Ordering::Relaxed);
        if !ours || !(how == ffi::Py_EQ || how == ffi::Py_NE) {
            return Ok(py.NotImplemented().into_ptr());
        }
        // SAFETY: both are our objects.
        let same = unsafe {
            let (a, b) = (a.cast::<Bond>(), b.cast::<Bond>());
            (*a).op == (*b).op && (*a).owner == (*b).owner
        };
        Ok(pyo3::types::PyBool::new(py, same == (how == ffi::Py_EQ)).to_owned().into_any().into_ptr())
    })
}

unsafe extern "C" fn hash(o: *mut PyObject) -> ffi::Py_hash_t {
    guard(-1, |_| {
        // SAFETY: `o` is one of our objects; only addresses are used.
        let (op, owner) = unsafe { ((*o.cast::<Bond>()).op as usize, (*o.cast::<Bond>()).owner as usize) };
        let mixed = (op >> 4) ^ (owner >> 4).rotate_left(20);
        Ok((mixed >> 1) as ffi::Py_hash_t)
    })
}

unsafe extern "C" fn traverse(o: *mut PyObject, visit: ffi::visitproc, arg: *mut c_void) -> c_int {
    // SAFETY: the collector calls this with a live instance, whose fields are null or owned references.
    unsafe {
        for p in [(*o.cast::<Bond>()).op, (*o.cast::<Bond>()).owner, ffi::Py_TYPE(o).cast()] {
            if !p.is_null() {
                let r = visit(p, arg);
                if r != 0 {
                    return r;
                }
            }
        }
    }
    0
}

unsafe extern "C" fn clear(o: *mut PyObject) -> c_int {
    // SAFETY: as above; each field is taken out before its reference is released.
    unsafe {
        let this = o.cast::<Bond>();
        ffi::Py_XDECREF(std::mem::replace(&mut (*this).owner, null_mut()));
        ffi::Py_XDECREF(std::mem::replace(&mut (*this).op, null_mut()));
    }
    0
}

unsafe extern "C" fn dealloc(o: *mut PyObject) {
    // SAFETY: called once by the interpreter for an instance of our layout whose last reference was dropped.
    unsafe {
        ffi::PyObject_GC_UnTrack(o.cast());
        if !(*o.cast::<Bond>()).weakrefs.is_null() {
            ffi::PyObject_ClearWeakRefs(o);
        }
        clear(o);
        let class = ffi::Py_TYPE(o);
        if let Some(free) = (*class).tp_free {
            free(o.cast());
        }
        ffi::Py_DECREF(class.cast());
    }
}

/// Makes the type of bound ops.
pub fn create_type(py: Python) -> PyResult<()> {
    let names =
        [c"__self__", c"__func__", c"__name__", c"__doc__", c"__module__", c"__text_signature__", c"__qualname__"];
    let names = names.into_iter().chain([c"__signature__"]);
    let class = HeapType {
        slots: vec![
            slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
            slot(ffi::Py_tp_traverse, traverse as *mut c_void),
            slot(ffi::Py_tp_clear, clear as *mut c_void),
            slot(ffi::Py_tp_call, ffi::PyVectorcall_Call as *mut c_void),
            slot(ffi::Py_tp_repr, repr as *mut c_void),
            slot(ffi::Py_tp_richcompare, compare as *mut c_void),
            slot(ffi::Py_tp_hash, hash as *mut c_void),
        ],
        members: vec![
            member(c"__vectorcalloffset__", std::mem::offset_of!(Bond, vectorcall)),
            member(c"__weaklistoffset__", std::mem::offset_of!(Bond, weakrefs)),
        ],
        getset: names.enumerate().map(|(i, name)| property(name, describe, i)).collect(),
        methods: vec![method(c"__reduce__", reduce)],
        ..HeapType::new(
            c"rustgrad._C.BoundOp",
            size_of::<Bond>(),
            ffi::Py_TPFLAGS_HAVE_GC | ffi::Py_TPFLAGS_HAVE_VECTORCALL,
        )
    };
    TYPE.store(class.create(py)?, Ordering::Release);
    Ok(())
}
