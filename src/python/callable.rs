//! The one type through which ops are called: a vectorcall object that serves as function and, set on a class, as method.
//!
//! It holds the overloads of a name. A call parses the arguments by the first signature that fits and goes to dispatch;
//! `out=`, `requires_grad=` and the in-place form are handled here, once for all ops.

use super::bound;
use super::describe::{self, Form};
use super::error::guard_object;
use super::object::{borrow, slot, wrap};
use super::overrides;
use super::parse::{Given, Misfit, explain, parse};
use crate::dispatch;
use crate::error::Show;
use crate::op::{Args, Call, Forms, Op, Outputs, Returns, Signature, Value};
use crate::tensor::Tensor;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyUserWarning};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Elements from which on the interpreter lock is released around a call.
const RELEASE_LOCK_FROM: usize = 1 << 14;

pub struct Entry {
    pub name: &'static str,
    pub ops: Vec<&'static Op>,
    pub form: Form,
    /// The in-place form: `add_`.
    pub inplace: bool,
    /// Result classes of overloads that return named tuples.
    named: Vec<Option<Py<PyAny>>>,
}

#[repr(C)]
struct OpObject {
    base: PyObject,
    vectorcall: ffi::vectorcallfunc,
    entry: *const Entry,
}

static TYPE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());

unsafe extern "C" fn vectorcall(
    o: *mut PyObject,
    args: *const *mut PyObject,
    nargsf: usize,
    names: *mut PyObject,
) -> *mut PyObject {
    guard_object(|py| {
        // SAFETY: `o` is one of our objects, whose entry is never freed; the rest are the parts of a vectorcall.
        let (entry, given) = unsafe { (&*(*o.cast::<OpObject>()).entry, Given::new(args, nargsf, names)) };
        call(py, o, entry, given)
    })
}

fn call(py: Python, o: *mut PyObject, entry: &'static Entry, given: Given) -> PyResult<*mut PyObject> {
    if overrides::active()
        && let Some(answer) = overrides::call(py, o, &given)?
    {
        return Ok(answer);
    }
    let mut last = Misfit::TooMany;
    let mut args = Args::new();
    for (i, op) in entry.ops.iter().enumerate() {
        let skip = if op.forms.has(Forms::OUT) && !entry.inplace { "out" } else { "" };
        match parse(py, op.signature(), &given, skip, &mut args) {
            Ok(()) => return run(py, entry, i, &args, &given),
            Err(Misfit::Raise(e)) => return Err(e),
            Err(m) => last = m,
        }
    }
    if let Some(answer) = overrides::call(py, o, &given)? {
        return Ok(answer);
    }
    let sigs: Vec<&'static Signature> = entry.ops.iter().map(|o| o.signature()).collect();
    Err(explain(entry.name, &sigs, last, &given, py))
}

fn run(py: Python, entry: &'static Entry, index: usize, args: &Args, given: &Given) -> PyResult<*mut PyObject> {
    let op = entry.ops[index];
    if let Some(text) = op.warns.and_then(|warns| warns(&Call { op, args })) {
        warn(py, text)?;
    }
    if entry.inplace || op.forms.has(Forms::ONLY_INPLACE) {
        let t = unlocked(py, args, || dispatch::call_inplace(op, args))?;
        return wrap(py, t);
    }
    if given.keyword_count() > 0 {
        if let Some(out) = given.find(py, "out")
            // SAFETY: a live argument of the call.
            && unsafe { out != ffi::Py_None() }
            && op.forms.has(Forms::OUT)
        {
            return into_out(py, op, args, out);
        }
        if given.find(py, "requires_grad").is_some() {
            return with_requires_grad(py, entry, index, args);
        }
    }
    let mut outputs = Outputs::new();
    unlocked(py, args, || dispatch::call_into(op, args, &mut outputs))?;
    to_python(py, entry, index, outputs)
}

/// Large work runs without the interpreter lock; the arguments' tensors are owned meanwhile (Note [Metadata]).
pub fn unlocked<T: Send>(py: Python, args: &Args, f: impl FnOnce() -> crate::error::Result<T>) -> PyResult<T> {
    if !args.iter().any(|v| v.any_tensor(|t| t.numel() >= RELEASE_LOCK_FROM)) {
        return Ok(f()?);
    }
    let _owned: SmallVec<[Tensor; 4]> = args.iter().flat_map(|v| v.tensors()).cloned().collect();
    let _ = py;
    // SAFETY: the lock is held here and taken back before anything of Python is touched; hooks inside attach themselves.
    let result = unsafe {
        let state = ffi::PyEval_SaveThread();
        let r = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
        ffi::PyEval_RestoreThread(state);
        r
    };
    match result {
        Ok(r) => Ok(r?),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn with_requires_grad(py: Python, entry: &'static Entry, index: usize, args: &Args) -> PyResult<*mut PyObject> {
    let op = entry.ops[index];
    let at = op.signature().index_of("requires_grad");
    let wanted = at.is_some_and(|i| matches!(&args[i], Value::Scalar(s) if s.to_bool()));
    let outputs = dispatch::call(op, args)?;
    if wanted {
        for t in &outputs {
            super::graph::set_requires_grad(t, true)?;
        }
    }
    to_python(py, entry, index, outputs)
}

fn into_out(py: Python, op: &'static Op, args: &Args, out: *mut PyObject) -> PyResult<*mut PyObject> {
    // SAFETY: a live argument of the call.
    let out = unsafe { Bound::from_borrowed_ptr(py, out) };
    let outs: Vec<Tensor> = match borrow(out.as_ptr()) {
        Some(t) => vec![t.clone()],
        None => {
            let items = out.cast::<PyTuple>().map(|t| t.iter().collect::<Vec<_>>()).map_err(|_| {
                PyTypeError::new_err(format!(
                    "{}(): argument 'out' must be Tensor, not {}",
                    op.parsed().base,
                    super::values::type_name(&out)
                ))
            })?;
            let tensors: Option<Vec<Tensor>> = items.iter().map(|o| borrow(o.as_ptr()).cloned()).collect();
            tensors.ok_or_else(|| {
                PyTypeError::new_err(format!("{}(): argument 'out' must be a tuple of Tensors", op.parsed().base))
            })?
        }
    };
    let before: Vec<_> = outs.iter().map(|t| t.meta().layout.shape.clone()).collect();
    dispatch::call_out(op, args, &outs)?;
    for (t, old) in outs.iter().zip(before).filter(|(t, old)| t.shape() != &old[..] && !old.contains(&0)) {
        warn_resized(py, &old, t.shape())?;
    }
    // As in PyTorch a list of results is not handed back.
    Ok(if op.signature().returns == Returns::Many { py.None().into_ptr() } else { out.into_ptr() })
}

/// An `out` of another shape is resized, with PyTorch's warning unless it was empty.
#[cold]
fn warn_resized(py: Python, old: &[usize], new: &[usize]) -> PyResult<()> {
    let text = format!(
        "An output with one or more elements was resized since it had shape {}, which does not match the required output \
         shape {}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they \
         have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with \
         t.resize_(0).",
        Show(old),
        Show(new)
    );
    warn(py, text)
}

#[cold]
fn warn(py: Python, text: String) -> PyResult<()> {
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &std::ffi::CString::new(text)?, 1)
}

fn to_python(py: Python, entry: &'static Entry, index: usize, mut outputs: Outputs) -> PyResult<*mut PyObject> {
    if entry.ops[index].signature().returns == Returns::One {
        let t = outputs.pop().ok_or_else(|| PyRuntimeError::new_err("internal: an op returned nothing"))?;
        return wrap(py, t);
    }
    let items = outputs.into_iter().map(|t| super::object::wrap_bound(py, t)).collect::<PyResult<Vec<_>>>()?;
    let tuple = PyTuple::new(py, items)?;
    match &entry.named[index] {
        Some(class) => Ok(class.bind(py).call1((tuple,))?.into_ptr()),
        None => Ok(tuple.into_ptr()),
    }
}

unsafe extern "C" fn descr_get(o: *mut PyObject, instance: *mut PyObject, _class: *mut PyObject) -> *mut PyObject {
    // SAFETY: the interpreter passes live objects; a null instance means access through the class.
    unsafe {
        if instance.is_null() || instance == ffi::Py_None() {
            ffi::Py_INCREF(o);
            return o;
        }
        bound::bind(o, instance)
    }
}

unsafe extern "C" fn repr(o: *mut PyObject) -> *mut PyObject {
    // SAFETY: `o` is one of our objects.
    let entry = unsafe { &*(*o.cast::<OpObject>()).entry };
    guard_object(|py| {
        let text = match entry.form {
            Form::Function => format!("<built-in method {} of rustgrad>", entry.name),
            Form::Method => format!("<method '{}' of 'Tensor' objects>", entry.name),
        };
        Ok(PyString::new(py, &text).into_any().into_ptr())
    })
}

/// `__name__`, `__doc__` and the like, chosen by the closure.
unsafe extern "C" fn describe(o: *mut PyObject, what: *mut c_void) -> *mut PyObject {
    // SAFETY: `o` is one of our objects.
    let entry = unsafe { &*(*o.cast::<OpObject>()).entry };
    guard_object(|py| {
        let text = match what as usize {
            0 => entry.name.to_string(),
            1 => describe::doc(entry),
            2 => describe::text_signature(entry),
            _ => "rustgrad".to_string(),
        };
        Ok(PyString::new(py, &text).into_any().into_ptr())
    })
}

unsafe extern "C" fn reduce(o: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: `o` is one of our objects.
    unsafe { describe(o, null_mut()) }
}

unsafe extern "C" fn dealloc(_: *mut PyObject) {
    // Op objects live as long as the process: entries are leaked on purpose.
}

/// Makes the type of op objects.
pub fn create_type(py: Python) -> PyResult<()> {
    let text = |name: &'static std::ffi::CStr, what: usize| ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(describe),
        set: None,
        doc: std::ptr::null(),
        closure: what as *mut c_void,
    };
    // SAFETY: all-zero entries end the tables.
    let (end_getset, end_member, end_method) = unsafe { (std::mem::zeroed(), std::mem::zeroed(), std::mem::zeroed()) };
    let getset = Box::leak(Box::new([
        text(c"__name__", 0),
        text(c"__doc__", 1),
        text(c"__text_signature__", 2),
        text(c"__module__", 3),
        text(c"__qualname__", 0),
        end_getset,
    ]));
    let members = Box::leak(Box::new([
        ffi::PyMemberDef {
            name: c"__vectorcalloffset__".as_ptr(),
            type_code: ffi::Py_T_PYSSIZET,
            offset: std::mem::offset_of!(OpObject, vectorcall) as ffi::Py_ssize_t,
            flags: ffi::Py_READONLY,
            doc: std::ptr::null(),
        },
        end_member,
    ]));
    let methods = Box::leak(Box::new([
        ffi::PyMethodDef {
            ml_name: c"__reduce__".as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunction: reduce },
            ml_flags: ffi::METH_NOARGS,
            ml_doc: std::ptr::null(),
        },
        end_method,
    ]));
    let mut slots = [
        slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        slot(ffi::Py_tp_call, ffi::PyVectorcall_Call as *mut c_void),
        slot(ffi::Py_tp_descr_get, descr_get as *mut c_void),
        slot(ffi::Py_tp_repr, repr as *mut c_void),
        slot(ffi::Py_tp_getset, getset.as_mut_ptr().cast()),
        slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
        slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
        slot(0, null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"rustgrad._C.Op".as_ptr(),
        basicsize: size_of::<OpObject>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_HAVE_VECTORCALL | ffi::Py_TPFLAGS_METHOD_DESCRIPTOR) as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec is valid for the call; tables that the type keeps are leaked.
    let t = unsafe { ffi::PyType_FromSpec(&raw mut spec) };
    if t.is_null() {
        return Err(PyErr::fetch(py));
    }
    TYPE.store(t.cast(), Ordering::Release);
    Ok(())
}

/// A callable for the overloads of a name.
pub fn make<'py>(
    py: Python<'py>,
    name: &'static str,
    ops: Vec<&'static Op>,
    form: Form,
    inplace: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let named = ops.iter().map(|op| named_tuple(py, op)).collect::<PyResult<Vec<_>>>()?;
    let entry = Box::leak(Box::new(Entry { name, ops, form, inplace, named }));
    // SAFETY: generic alloc gives room for our layout; both fields are set before anyone sees the object.
    unsafe {
        let o = ffi::PyType_GenericAlloc(TYPE.load(Ordering::Relaxed), 0).cast::<OpObject>();
        if o.is_null() {
            return Err(PyErr::fetch(py));
        }
        (*o).vectorcall = vectorcall;
        (*o).entry = entry;
        Ok(Bound::from_owned_ptr(py, o.cast()))
    }
}

/// The result class of an op that returns several named tensors: a tuple with attributes, `torch.return_types.max`.
fn named_tuple(py: Python, op: &'static Op) -> PyResult<Option<Py<PyAny>>> {
    let Returns::Named(fields) = &op.signature().returns else { return Ok(None) };
    let make = py.import("rustgrad.return_types")?.getattr("_make")?;
    let kwargs = PyDict::new(py);
    kwargs.set_item("fields", fields.clone())?;
    let name = op.public().trim_start_matches('_').replace('.', "_");
    Ok(Some(make.call((name,), Some(&kwargs))?.unbind()))
}
