//! The type of op objects: a vectorcall object that serves as function and, set on a class, as method.
//!
//! It holds the overloads of a name. A call parses the arguments by the first signature that fits and calls dispatch;
//! `out=`, `requires_grad=` and the in-place form are handled here, once for all ops.

use super::bound_method;
use super::describe::{self, Form};
use super::error::{PyResult, guard_object, raised};
use super::heap_type::{HeapType, member, method, property, slot};
use super::object::{borrow, wrap};
use super::overrides;
use super::parse::{Given, Misfit, explain, parse, show};
use super::warnings::{warn_once, warn_user};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use rustgrad::dispatch;
use rustgrad::error::Show;
use rustgrad::op::{Args, Arguments, Body, Call, Forms, Op, Outputs, Returns, Signature, Value, push_default};
use rustgrad::ops;
use rustgrad::tensor::Tensor;
use smallvec::SmallVec;
use std::ffi::{c_ulong, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Number of elements from which the interpreter lock is released around a call.
const RELEASE_LOCK_FROM: usize = 1 << 14;

pub struct Entry {
    pub name: &'static str,
    /// Module and qualified name of the object (`Tensor.add`), used by pickle.
    home: Home,
    pub ops: Vec<&'static Op>,
    pub form: Form,
    /// Whether it is the in-place form: `add_`.
    pub inplace: bool,
    /// Result classes of overloads that return named tuples, from their first use on.
    named: Vec<PyOnceLock<Py<PyAny>>>,
}

/// Where an op object is found in Python.
#[derive(Clone, Copy)]
pub enum Home {
    /// A function of `rustgrad` or, where the op's name has dots, of that submodule.
    Module(&'static str),
    /// A method.
    Tensor,
}

impl Home {
    fn form(self) -> Form {
        match self {
            Home::Module(_) => Form::Function,
            Home::Tensor => Form::Method,
        }
    }
    fn module(self) -> String {
        match self {
            Home::Module(space) if !space.is_empty() => format!("rustgrad.{space}"),
            _ => "rustgrad".to_string(),
        }
    }
    fn qualified(self, name: &str) -> String {
        match self {
            Home::Module(_) => name.to_string(),
            Home::Tensor => format!("Tensor.{name}"),
        }
    }
}

#[repr(C)]
struct OpObject {
    base: PyObject,
    vectorcall: ffi::vectorcallfunc,
    entry: *const Entry,
    /// What programs note on the function, as they may on a function of Python; null until they do. No collector looks
    /// into it, which is right for objects that never die.
    notes: *mut PyObject,
}

static FUNCTION: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());
static METHOD: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());

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
        match parse(py, &op.sig, &given, skip, &mut args) {
            Ok(()) => return run(py, entry, i, &args, &given),
            Err(Misfit::Raise(e)) => return super::sparse_layout::make(py, entry.name, &given)?.ok_or(e),
            Err(m) => last = m,
        }
    }
    if let Some(answer) = overrides::call(py, o, &given)? {
        return Ok(answer);
    }
    if let Some(answer) = call_deprecated(py, entry, &given)? {
        return Ok(answer);
    }
    let sigs: Vec<&'static Signature> = entry.ops.iter().map(|o| &o.sig).collect();
    Err(explain(entry.name, &sigs, last, &given, entry.form == Form::Method, py))
}

/// The deprecated orders of an op's parameters, for the function and for the method.
fn deprecated_orders(op: &Op) -> Vec<Signature> {
    op.deprecated.iter().flat_map(|s| s.method_first().into_iter().chain([*s])).collect()
}

/// A call whose arguments have an order that PyTorch deprecates: `addmm(beta, input, alpha, mat1, mat2)`.
#[cold]
fn call_deprecated(py: Python, entry: &'static Entry, given: &Given) -> PyResult<Option<*mut PyObject>> {
    for (i, op) in entry.ops.iter().enumerate() {
        let out = if op.forms.has(Forms::OUT) && !entry.inplace { "out" } else { "" };
        for old in &deprecated_orders(op) {
            let mut args = Args::new();
            match parse(py, old, given, out, &mut args) {
                Ok(()) => {}
                Err(Misfit::Raise(e)) => return Err(e),
                Err(_) => continue,
            }
            let mut ordered = Args::new();
            for p in op.sig.params() {
                match old.index_of(p.name(&op.sig)) {
                    Some(at) => ordered.push(std::mem::take(&mut args[at])),
                    None if push_default(&mut ordered, &op.sig, p) => {}
                    None => ordered.push(Value::None),
                }
            }
            let (name, new) = (entry.name, &op.sig);
            warn_once(
                py,
                &format!(
                    "This overload of {name} is deprecated:\n\t{name}{}\nConsider using one of the following signatures \
                     instead:\n\t{name}{}",
                    show(old, 0),
                    show(new, 0)
                ),
                1,
            )?;
            return run(py, entry, i, &ordered, given).map(Some);
        }
    }
    Ok(None)
}

fn run(py: Python, entry: &'static Entry, index: usize, args: &Args, given: &Given) -> PyResult<*mut PyObject> {
    let op = entry.ops[index];
    // Where an argument is wrong, the error that dispatch raises is enough.
    let checked = |warns: fn(&Call) -> Option<String>| {
        let call = Call { op, args };
        dispatch::check_facts(&call).ok().and_then(|()| warns(&call))
    };
    if let Some(text) = op.warns.and_then(checked) {
        let level = frames_below(op, args);
        if op.warns_once { warn_once(py, &text, level) } else { warn(py, text, level) }?;
    }
    if entry.inplace || op.forms.has(Forms::ONLY_INPLACE) {
        let t = unlocked(py, op, args, || dispatch::call_inplace(op, args))?;
        return wrap(py, t);
    }
    if given.keyword_count() > 0 {
        if let Some(out) = given.find(py, "out")
            // SAFETY: a live argument of the call.
            && unsafe { out != ffi::Py_None() }
            && op.forms.has(Forms::OUT)
        {
            return into_out(py, entry, index, args, out);
        }
        if given.find(py, "requires_grad").is_some() {
            return with_requires_grad(py, entry, index, args);
        }
    }
    let mut outputs = Outputs::new();
    unlocked(py, op, args, || dispatch::call_into(op, args, &mut outputs))?;
    to_python(py, entry, index, outputs)
}

/// Runs large work without the interpreter lock. Meanwhile the arguments' tensors are owned and keep their metadata
/// (Note [Metadata]). Views do no work, and in-place view ops change metadata, which needs the lock.
pub fn unlocked<T: Send>(
    py: Python,
    op: &Op,
    args: &Args,
    f: impl FnOnce() -> rustgrad::error::Result<T> + Send,
) -> PyResult<T> {
    let large = args.iter().any(|v| v.any_tensor(|t| t.numel() >= RELEASE_LOCK_FROM));
    if !large || matches!(op.body, Body::View(_) | Body::ViewAs(_) | Body::Views(_)) {
        return Ok(f()?);
    }
    let _pinned: SmallVec<[_; 4]> = args.iter().flat_map(|v| v.tensors()).map(Tensor::pin).collect();
    // Through PyO3's API: code that attaches inside (hooks, source locations of writes) must see that the lock is
    // released.
    Ok(py.detach(f)?)
}

fn is_true(v: &Value) -> bool {
    matches!(v, Value::Scalar(s) if s.to_bool())
}

fn with_requires_grad(py: Python, entry: &'static Entry, index: usize, args: &Args) -> PyResult<*mut PyObject> {
    let op = entry.ops[index];
    let at = op.sig.index_of("requires_grad");
    let wanted = at.is_some_and(|i| is_true(&args[i]));
    let outputs = dispatch::call(op, args)?;
    if wanted {
        for t in &outputs {
            super::graph::set_requires_grad(t, true)?;
        }
    }
    to_python(py, entry, index, outputs)
}

fn into_out(
    py: Python,
    entry: &'static Entry,
    index: usize,
    args: &Args,
    out: *mut PyObject,
) -> PyResult<*mut PyObject> {
    let op = entry.ops[index];
    // SAFETY: a live argument of the call.
    let out = unsafe { Bound::from_borrowed_ptr(py, out) };
    let outs = out_tensors(op, &out)?;
    let before: Vec<_> = outs.iter().map(|t| t.meta().layout.shape.clone()).collect();
    dispatch::call_out(op, args, &outs)?;
    for (t, old) in outs.iter().zip(before).filter(|(t, old)| t.shape() != &old[..] && !old.contains(&0)) {
        warn_resized(py, &old, t.shape())?;
    }
    if op.sig.index_of("requires_grad").is_some_and(|i| is_true(&args[i])) {
        outs.iter().try_for_each(|t| super::graph::set_requires_grad(t, true))?;
    }
    Ok(match op.sig.returns {
        Returns::One => out.into_ptr(),
        // As in PyTorch, a list of results is not returned.
        Returns::Many => py.None().into_ptr(),
        Returns::Named => {
            let class = result_class(py, op, "_out")?;
            class.call1((PyTuple::new(py, out.try_iter()?.collect::<pyo3::PyResult<Vec<_>>>()?)?,))?.into_ptr()
        }
    })
}

/// The tensors of `out=`: one, or a tuple or list of them, as the op returns them.
fn out_tensors(op: &'static Op, out: &Bound<PyAny>) -> PyResult<Vec<Tensor>> {
    let one = op.sig.returns == Returns::One;
    let refused = || {
        let expected = if one { "Tensor" } else { "tuple of Tensors" };
        let got = super::convert::type_name(out);
        raised::<PyTypeError>(format!("{}(): argument 'out' must be {expected}, not {got}", op.base()))
    };
    if one {
        return borrow(out.as_ptr()).map(|t| vec![t.clone()]).ok_or_else(refused);
    }
    if !out.is_instance_of::<PyTuple>() && !out.is_instance_of::<PyList>() {
        return Err(refused());
    }
    out.try_iter()?.map(|o| borrow(o?.as_ptr()).cloned().ok_or_else(refused)).collect()
}

/// Resizes an `out` of another shape, with PyTorch's warning unless it was empty.
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
    warn(py, text, 1)
}

/// How far below the caller's frame a warning of the op points: what PyTorch's `_stacklevel` asks for beyond its default.
#[cold]
fn frames_below(op: &'static Op, args: &Args) -> i32 {
    let level = op.sig.index_of("_stacklevel").and_then(|i| Call { op, args }.opt_int(i));
    level.map_or(1, |l| l.clamp(3, 64) as i32 - 2)
}

#[cold]
fn warn(py: Python, text: String, level: i32) -> PyResult<()> {
    warn_user(py, &std::ffi::CString::new(text)?, level)
}

fn to_python(py: Python, entry: &'static Entry, index: usize, mut outputs: Outputs) -> PyResult<*mut PyObject> {
    if entry.ops[index].sig.returns == Returns::One {
        let t = outputs.pop().ok_or_else(|| raised::<PyRuntimeError>("internal: an op returned nothing"))?;
        return wrap(py, t);
    }
    if entry.ops[index].sig.returns_nothing() {
        return Ok(py.None().into_ptr());
    }
    let items = outputs.into_iter().map(|t| super::object::wrap_bound(py, t)).collect::<PyResult<Vec<_>>>()?;
    let tuple = PyTuple::new(py, items)?;
    let op = entry.ops[index];
    if !has_named_results(op) {
        return Ok(tuple.into_ptr());
    }
    let class = entry.named[index].get_or_try_init(py, || result_class(py, op, "").map(Bound::unbind))?;
    Ok(class.bind(py).call1((tuple,))?.into_ptr())
}

/// A function that is an attribute of a class does not bind, as no builtin does. It is a descriptor for `inspect`, which
/// reads the signature of a callable object from there.
unsafe extern "C" fn unbound(o: *mut PyObject, _instance: *mut PyObject, _class: *mut PyObject) -> *mut PyObject {
    // SAFETY: the interpreter passes a live object.
    unsafe { ffi::Py_INCREF(o) };
    o
}

unsafe extern "C" fn bound(o: *mut PyObject, instance: *mut PyObject, _class: *mut PyObject) -> *mut PyObject {
    // SAFETY: the interpreter passes live objects; a null instance means access through the class.
    unsafe {
        if instance.is_null() || instance == ffi::Py_None() {
            ffi::Py_INCREF(o);
            return o;
        }
        bound_method::bind(o, instance)
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

/// The closure of `__qualname__`.
const QUALIFIED: usize = 3;
const MODULE: usize = 4;

/// `__name__`, `__doc__` and other attributes, selected by the closure.
unsafe extern "C" fn describe(o: *mut PyObject, what: *mut c_void) -> *mut PyObject {
    // SAFETY: `o` is one of our objects.
    let entry = unsafe { &*(*o.cast::<OpObject>()).entry };
    guard_object(|py| {
        let text = match what as usize {
            0 => entry.name.to_string(),
            1 => describe::doc(entry),
            2 => describe::text_signature(entry),
            QUALIFIED => entry.home.qualified(entry.name),
            _ => entry.home.module(),
        };
        Ok(PyString::new(py, &text).into_any().into_ptr())
    })
}

/// `__module__` is not described by the type, whose own module is under that name.
unsafe extern "C" fn getattro(o: *mut PyObject, name: *mut PyObject) -> *mut PyObject {
    // SAFETY: one of our objects and a name, from the interpreter; notes are null or a dict.
    unsafe {
        if is_module(name) {
            let notes = (*o.cast::<OpObject>()).notes;
            if notes.is_null() || ffi::PyDict_Contains(notes, name) == 0 {
                return describe(o, MODULE as *mut c_void);
            }
        }
        ffi::PyObject_GenericGetAttr(o, name)
    }
}

/// Whether a name is `__module__`.
///
/// # Safety
/// It is a live object; the interpreter is held.
pub(crate) unsafe fn is_module(name: *mut PyObject) -> bool {
    // SAFETY: the caller's promise; a string is asked.
    unsafe {
        ffi::PyUnicode_Check(name) != 0 && ffi::PyUnicode_CompareWithASCIIString(name, c"__module__".as_ptr()) == 0
    }
}

/// What an op is pickled as: its qualified name, like a Python function; by the table's name where that leads elsewhere.
unsafe extern "C" fn reduce(o: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        // SAFETY: `o` is one of our objects, alive during the call.
        let op = unsafe { Bound::from_borrowed_ptr(py, o) };
        let name = op.getattr("__qualname__")?;
        if !is_reached(&op, name.extract()?)? {
            let module = py.import("rustgrad._C")?;
            let ops = module.getattr("ops")?.cast_into::<PyDict>()?;
            if let Some((key, _)) = ops.iter().find(|(_, other)| other.is(&op)) {
                return Ok((module.getattr("_op")?, (key,)).into_pyobject(py)?.into_any().into_ptr());
            }
        }
        Ok(name.into_ptr())
    })
}

/// Whether a name leads from the op's module to the op: a Python function may stand in front of it.
fn is_reached(op: &Bound<PyAny>, name: &str) -> PyResult<bool> {
    let mut at = op.py().import(op.getattr("__module__")?.extract::<String>()?.as_str())?.into_any();
    for part in name.split('.') {
        let Some(next) = at.getattr_opt(part)? else { return Ok(false) };
        at = next;
    }
    Ok(at.is(op))
}

unsafe extern "C" fn dealloc(_: *mut PyObject) {
    // Op objects are immortal: entries are leaked on purpose.
}

/// Creates the types of op objects: functions and methods of tensors.
pub fn create_type(py: Python) -> PyResult<()> {
    FUNCTION.store(class_of(py, unbound, 0)?, Ordering::Release);
    METHOD.store(class_of(py, bound, ffi::Py_TPFLAGS_METHOD_DESCRIPTOR)?, Ordering::Release);
    Ok(())
}

fn class_of(py: Python, get: ffi::descrgetfunc, flags: c_ulong) -> PyResult<*mut ffi::PyTypeObject> {
    HeapType {
        slots: vec![
            slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
            slot(ffi::Py_tp_call, ffi::PyVectorcall_Call as *mut c_void),
            slot(ffi::Py_tp_descr_get, get as *mut c_void),
            slot(ffi::Py_tp_getattro, getattro as *mut c_void),
            slot(ffi::Py_tp_repr, repr as *mut c_void),
        ],
        members: vec![
            member(c"__vectorcalloffset__", std::mem::offset_of!(OpObject, vectorcall)),
            member(c"__dictoffset__", std::mem::offset_of!(OpObject, notes)),
        ],
        getset: vec![
            property(c"__dict__", ffi::PyObject_GenericGetDict, 0),
            property(c"__name__", describe, 0),
            property(c"__doc__", describe, 1),
            property(c"__text_signature__", describe, 2),
            property(c"__qualname__", describe, QUALIFIED),
        ],
        methods: vec![method(c"__reduce__", reduce)],
        ..HeapType::new(c"rustgrad._C.Op", size_of::<OpObject>(), ffi::Py_TPFLAGS_HAVE_VECTORCALL | flags)
    }
    .create(py)
}

/// The op object for the overloads of a name.
pub fn make<'py>(
    py: Python<'py>,
    name: &'static str,
    home: Home,
    ops: Vec<&'static Op>,
    inplace: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let named = ops.iter().map(|_| PyOnceLock::new()).collect();
    let entry = Box::leak(Box::new(Entry { name, home, ops, form: home.form(), inplace, named }));
    let class = match entry.form {
        Form::Function => &FUNCTION,
        Form::Method => &METHOD,
    };
    // SAFETY: the generic allocator allocates our layout with zeros; the other fields are set before the object is shared.
    unsafe {
        let o = ffi::PyType_GenericAlloc(class.load(Ordering::Relaxed), 0).cast::<OpObject>();
        if o.is_null() {
            return Err(PyErr::fetch(py).into());
        }
        (*o).vectorcall = vectorcall;
        (*o).entry = entry;
        Ok(Bound::from_owned_ptr(py, o.cast()))
    }
}

fn has_named_results(op: &Op) -> bool {
    op.sig.returns == Returns::Named && !op.sig.returns_nothing()
}

/// The names of the results of each op that returns several, by the name of their class.
#[pyfunction]
pub fn _result_names(py: Python) -> PyResult<Bound<PyDict>> {
    let found = PyDict::new(py);
    for op in ops::all().filter(|op| has_named_results(op)) {
        let name = result_class_name(op);
        if !found.contains(&name)? {
            found.set_item(name, PyTuple::new(py, op.sig.result_names().collect::<Vec<_>>())?)?;
        }
    }
    Ok(found)
}

fn result_class_name(op: &Op) -> String {
    op.public().trim_start_matches('_').replace('.', "_")
}

/// The result class of an op that returns several named tensors: a tuple with attributes, `torch.return_types.max`.
fn result_class<'py>(py: Python<'py>, op: &'static Op, ending: &str) -> PyResult<Bound<'py, PyAny>> {
    let make = py.import("rustgrad.return_types")?.getattr("_make")?;
    let kwargs = PyDict::new(py);
    kwargs.set_item("fields", op.sig.result_names().collect::<Vec<_>>())?;
    Ok(make.call((format!("{}{ending}", result_class_name(op)),), Some(&kwargs))?)
}
