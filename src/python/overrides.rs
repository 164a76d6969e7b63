//! `__torch_function__`: classes that override ops called on their objects.
//!
//! Non-tensor objects are considered only if no signature fits, and subclasses of `Tensor` only once one has an object:
//! an ordinary call pays one load. A class whose `__torch_function__` is `_disabled_torch_function_impl` (`Parameter`)
//! overrides nothing. A mode (`overrides.TorchFunctionMode`) overrides all calls of its thread; one is asked before the classes.

use super::error::{PyResult, raised};
use super::object::{tensor_type, wrap, wrap_as};
use super::parse::Given;
use super::warnings::warn_once;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyObject, PyTypeObject};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple, PyType};
use rustgrad::tensor::Tensor;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Whether an object of an overriding subclass was ever created, or a mode entered.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// The `__torch_function__` of classes that override nothing.
static NOTHING: AtomicPtr<PyObject> = AtomicPtr::new(null_mut());

/// Who overrides calls in a thread.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Enabled,
    ModesOnly,
    Disabled,
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::Enabled) };
    /// The modes this thread is in, innermost last.
    static MODES: RefCell<Vec<Py<PyAny>>> = const { RefCell::new(Vec::new()) };
}

#[inline]
pub fn active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// The `__torch_function__` of a class, if it overrides anything.
fn handler<'py>(class: &Bound<'py, PyType>) -> Option<Bound<'py, PyAny>> {
    // Classes that are written in C override nothing: numbers, strings, lists, arrays.
    // SAFETY: a live class.
    let written_in_c = unsafe { ffi::PyType_GetFlags(class.as_type_ptr()) & ffi::Py_TPFLAGS_HEAPTYPE == 0 };
    if written_in_c || class.as_ptr().cast() == tensor_type() {
        return None;
    }
    let found = class.getattr_opt(intern!(class.py(), "__torch_function__")).ok()??;
    (found.as_ptr() != NOTHING.load(Ordering::Relaxed)).then_some(found)
}

/// Called when an object of a subclass of `Tensor` is created.
pub fn note(py: Python, class: *mut PyTypeObject) {
    if class == tensor_type() || active() {
        return;
    }
    // SAFETY: a live class of the caller.
    let class = unsafe { Bound::from_borrowed_ptr(py, class.cast::<PyObject>()).cast_into_unchecked::<PyType>() };
    if handler(&class).is_some() {
        ACTIVE.store(true, Ordering::Relaxed);
    }
}

/// Whether a class derives from one that overrides nothing, to which its `super().__torch_function__` comes: the results stay plain.
fn derives_from_plain(class: &Bound<PyType>) -> bool {
    let nothing = NOTHING.load(Ordering::Relaxed);
    let name = intern!(class.py(), "__torch_function__");
    class.mro().iter().any(|base| base.getattr(name).is_ok_and(|found| found.as_ptr() == nothing))
}

/// The object of a tensor, with the class of the tensor it was made from.
pub fn wrap_like(py: Python, tensor: Tensor, model: &Tensor) -> PyResult<*mut PyObject> {
    let live = model.py_object().load(Ordering::Acquire).cast::<PyObject>();
    if active() && !live.is_null() {
        // SAFETY: the pointer is cleared before its object dies, under the interpreter lock that we hold.
        let class = unsafe { Bound::from_borrowed_ptr(py, live) }.get_type();
        if handler(&class).is_some() && !derives_from_plain(&class) {
            return wrap_as(py, tensor, class.as_ptr().cast());
        }
    }
    wrap(py, tensor)
}

/// A class and the `__torch_function__` of its object.
type Taker<'py> = (Bound<'py, PyType>, Bound<'py, PyAny>);

/// A plain method overrides too, with a warning. PyTorch's has this category where it is written in C++.
fn warn_of_plain_method(handler: &Bound<PyAny>) -> PyResult<()> {
    let py = handler.py();
    match handler.getattr_opt(intern!(py, "__self__"))? {
        Some(owner) if !owner.is_instance_of::<PyType>() => {
            let text = "Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, please \
                define it as a classmethod.";
            warn_once(py, text, 1)
        }
        _ => Ok(()),
    }
}

/// Whether a class has the `__torch_function__` of `Tensor`.
fn is_default(handler: &Bound<PyAny>) -> bool {
    let py = handler.py();
    let function = |o: &Bound<PyAny>| o.getattr(intern!(py, "__func__")).map_or(null_mut(), |f| f.as_ptr());
    of_class(py, "__torch_function__").is_ok_and(|own| function(&own) == function(handler))
}

/// The overriding classes among the arguments and in their lists, subclasses first.
fn takers<'py>(py: Python<'py>, args: impl Iterator<Item = *mut PyObject>) -> Vec<Taker<'py>> {
    let mut found: Vec<Taker> = Vec::new();
    let mut look = |o: &Bound<'py, PyAny>| {
        let number = o.is_exact_instance_of::<PyInt>() || o.is_exact_instance_of::<PyFloat>();
        if number || o.is_none() || o.is_exact_instance_of::<PyBool>() || o.is_exact_instance_of::<PyString>() {
            return;
        }
        let class = o.get_type();
        if found.iter().any(|(c, _)| c.is(&class)) {
            return;
        }
        if handler(&class).is_some()
            && let Ok(bound) = o.getattr(intern!(py, "__torch_function__"))
        {
            let before = found.iter().position(|(c, _)| class.is_subclass(c).unwrap_or(false));
            found.insert(before.unwrap_or(found.len()), (class, bound));
        }
    };
    for p in args {
        // SAFETY: live arguments of a call in progress.
        let o = unsafe { Bound::from_borrowed_ptr(py, p) };
        if o.is_instance_of::<PyTuple>() || o.is_instance_of::<pyo3::types::PyList>() {
            o.try_iter().into_iter().flatten().flatten().for_each(|item| look(&item));
        } else {
            look(&o);
        }
    }
    found
}

/// The innermost mode, left while it handles a call, so that its own calls go to the next one.
struct Asked<'py>(Bound<'py, PyAny>);

fn innermost(py: Python) -> Option<Asked> {
    if STATE.get() == State::Disabled {
        return None;
    }
    MODES.with_borrow_mut(Vec::pop).map(|mode| Asked(mode.into_bound(py)))
}

impl<'py> Asked<'py> {
    fn call(
        &self,
        function: &Bound<'py, PyAny>,
        types: &Bound<'py, PyTuple>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.0.call_method1(intern!(self.0.py(), "__torch_function__"), (function, types, args, kwargs))?)
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        MODES.with_borrow_mut(|modes| modes.push(self.0.clone().unbind()));
    }
}

/// Enters a mode: from now on it is offered the calls of this thread. RuntimeError: its `__torch_function__` is a classmethod.
#[pyfunction]
pub fn _push_torch_function_mode(mode: &Bound<PyAny>) -> PyResult<()> {
    let handler = mode.getattr(intern!(mode.py(), "__torch_function__"))?;
    if handler.getattr_opt(intern!(mode.py(), "__self__"))?.is_some_and(|owner| owner.is_instance_of::<PyType>()) {
        return Err(raised::<PyRuntimeError>(
            "Defining your mode's `__torch_function__` as a classmethod is not supported, please make it a plain method",
        ));
    }
    ACTIVE.store(true, Ordering::Relaxed);
    MODES.with_borrow_mut(|modes| modes.push(mode.clone().unbind()));
    Ok(())
}

/// Leaves the innermost mode and returns it; None if there is none.
#[pyfunction]
pub fn _pop_torch_function_mode() -> Option<Py<PyAny>> {
    MODES.with_borrow_mut(Vec::pop)
}

/// How many modes this thread is in.
#[pyfunction]
pub fn _len_torch_function_stack() -> usize {
    MODES.with_borrow(Vec::len)
}

/// A mode that this thread is in, counted from the outermost. IndexError: there are fewer.
#[pyfunction]
pub fn _get_function_stack_at(py: Python, level: usize) -> PyResult<Py<PyAny>> {
    let found = MODES.with_borrow(|modes| modes.get(level).map(|mode| mode.clone_ref(py)));
    found.ok_or_else(|| raised::<PyIndexError>(format!("no mode at level {level}")))
}

/// Offers a call to the innermost mode and to the classes of its arguments. Returns their result, possibly `NotImplemented`; `None` if no class
/// overrides.
fn offer<'py>(
    py: Python<'py>,
    function: &Bound<'py, PyAny>,
    positional: &[*mut PyObject],
    keywords: &[(&str, *mut PyObject)],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let takers = asked(py, positional, keywords);
    offer_to(py, &takers, function, positional, keywords)
}

/// The classes that are asked about a call.
fn asked<'py>(py: Python<'py>, positional: &[*mut PyObject], keywords: &[(&str, *mut PyObject)]) -> Vec<Taker<'py>> {
    match STATE.get() {
        State::Enabled => takers(py, positional.iter().copied().chain(keywords.iter().map(|k| k.1))),
        _ => Vec::new(),
    }
}

/// `offer`, to these classes.
fn offer_to<'py>(
    py: Python<'py>,
    takers: &[Taker<'py>],
    function: &Bound<'py, PyAny>,
    positional: &[*mut PyObject],
    keywords: &[(&str, *mut PyObject)],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mode = innermost(py);
    if takers.is_empty() && mode.is_none() {
        return Ok(None);
    }
    // SAFETY: live arguments of a call in progress.
    let object = |&p: &*mut PyObject| unsafe { Bound::from_borrowed_ptr(py, p) };
    let args = PyTuple::new(py, positional.iter().map(object))?;
    let kwargs = PyDict::new(py);
    for (name, value) in keywords {
        kwargs.set_item(name, object(value))?;
    }
    let types = PyTuple::new(py, takers.iter().map(|t| &t.0))?;
    let not = py.NotImplemented().into_bound(py);
    if let Some(mode) = mode {
        let answer = mode.call(function, &types, &args, &kwargs)?;
        if !answer.is(&not) || takers.is_empty() {
            return Ok(Some(answer));
        }
    }
    for (_, handler) in takers {
        warn_of_plain_method(handler)?;
        let answer = handler.call1((function, &types, &args, &kwargs))?;
        if !answer.is(&not) {
            return Ok(Some(answer));
        }
    }
    Ok(Some(not))
}

/// The answer as the result of a call; an error where everybody who was asked declined.
fn accepted(function: &Bound<PyAny>, takers: &[Taker], answer: Bound<PyAny>) -> PyResult<*mut PyObject> {
    if !answer.is(function.py().NotImplemented()) {
        return Ok(answer.into_ptr());
    }
    let classes: String = takers.iter().map(|(class, _)| format!("\n  - {class}")).collect();
    Err(raised::<PyTypeError>(format!(
        "Multiple dispatch failed for '{}'; all __torch_function__ handlers returned NotImplemented:\n{classes}",
        function.getattr("__name__")?
    )))
}

fn named<'a>(py: Python<'a>, given: &Given<'a>) -> SmallVec<[(&'a str, *mut PyObject); 4]> {
    (0..given.keyword_count()).map(|k| (given.keyword(py, k), given.values[k])).collect()
}

/// The result of a class that overrides the call of an op, if any.
pub fn call(py: Python, function: *mut PyObject, given: &Given) -> PyResult<Option<*mut PyObject>> {
    // SAFETY: the op object of a call in progress.
    let function = unsafe { Bound::from_borrowed_ptr(py, function) };
    let keywords = named(py, given);
    let takers = asked(py, given.positional, &keywords);
    let Some(answer) = offer_to(py, &takers, &function, given.positional, &keywords)? else { return Ok(None) };
    accepted(&function, &takers, answer).map(Some)
}

/// The class of sparse tensors, once there are any.
static OWN_METHODS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// From now on objects of this class are not asked about methods and properties of `Tensor`: it has its own.
pub fn leave_methods_to(class: &Bound<PyType>) {
    let _ = OWN_METHODS.set(class.py(), class.clone().unbind());
}

fn has_own_methods(class: &Bound<PyType>) -> bool {
    let py = class.py();
    OWN_METHODS.get(py).is_some_and(|own| class.is_subclass(own.bind(py)).unwrap_or(false))
}

/// As `call`, for what is no op: a method or property of `Tensor`. `first`: the tensor, where it is not among the
/// arguments. Classes with the `__torch_function__` of `Tensor` are not asked, which would call the same, nor is that of sparse
/// tensors, which has its own methods.
pub fn method<'py>(
    py: Python<'py>,
    function: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
    first: Option<*mut PyObject>,
    given: &Given,
) -> PyResult<Option<*mut PyObject>> {
    let positional: SmallVec<[*mut PyObject; 6]> = first.into_iter().chain(given.positional.iter().copied()).collect();
    // SAFETY: live arguments of a call in progress.
    let plain = |&p: &*mut PyObject| is_plain(unsafe { Borrowed::from_ptr(py, p) });
    if !_is_torch_function_mode_enabled() && positional.iter().chain(given.values).all(plain) {
        return Ok(None);
    }
    let keywords = named(py, given);
    let mut takers = asked(py, &positional, &keywords);
    takers.retain(|(class, handler)| !is_default(handler) && !has_own_methods(class));
    if takers.is_empty() && !_is_torch_function_mode_enabled() {
        return Ok(None);
    }
    let function = function()?;
    let Some(answer) = offer_to(py, &takers, &function, &positional, &keywords)? else { return Ok(None) };
    accepted(&function, &takers, answer).map(Some)
}

/// `method`, for the method of this name called on the tensor `o`.
pub fn method_of(py: Python, name: &CStr, o: *mut PyObject, given: &Given) -> PyResult<Option<*mut PyObject>> {
    method(py, || of_class(py, &name.to_string_lossy()), Some(o), given)
}

/// An attribute of the class `Tensor`.
pub fn of_class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: our type is never freed.
    let class = unsafe { Bound::from_borrowed_ptr(py, tensor_type().cast::<PyObject>()) };
    Ok(class.getattr(name)?)
}

/// As `call`, for a slot of `Tensor` with its equivalent method's name.
pub fn slot(py: Python, method: &str, args: &[*mut PyObject]) -> PyResult<Option<*mut PyObject>> {
    let answer = offer(py, &of_class(py, method)?, args, &[])?;
    Ok(answer.map(Bound::into_ptr))
}

/// The answer of a mode to the call of a function of the extension module, of which no class of an argument is asked.
/// Keywords that were not given are `None`.
pub fn native<'py>(
    py: Python<'py>,
    name: &str,
    positional: &[&Bound<'py, PyAny>],
    keywords: &[(&str, Option<&Bound<'py, PyAny>>)],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !active() || !_is_torch_function_mode_enabled() {
        return Ok(None);
    }
    let function = py.import(intern!(py, "rustgrad._C"))?.getattr(name)?;
    let positional: SmallVec<[_; 4]> = positional.iter().map(|value| value.as_ptr()).collect();
    let given = keywords.iter().filter_map(|&(name, value)| Some((name, value?.as_ptr())));
    offer(py, &function, &positional, &given.collect::<SmallVec<[_; 4]>>())
}

/// The states that blocks of one object have left, innermost last.
#[derive(Default)]
struct Left(Vec<State>);

impl Left {
    fn enter(&mut self, state: State) {
        self.0.push(STATE.replace(state));
    }
    fn leave(&mut self) {
        if let Some(state) = self.0.pop() {
            STATE.set(state);
        }
    }
}

/// The state in which at least the subclasses override nothing.
fn without_subclasses() -> State {
    if STATE.get() == State::Disabled { State::Disabled } else { State::ModesOnly }
}

/// A block in which subclasses of `Tensor` override nothing.
#[pyclass(module = "rustgrad._C")]
#[derive(Default)]
pub struct DisableTorchFunctionSubclass(Left);

#[pymethods]
impl DisableTorchFunctionSubclass {
    #[new]
    fn new() -> Self {
        Self::default()
    }
    fn __enter__(&mut self) {
        self.0.enter(without_subclasses());
    }
    #[pyo3(signature = (*_raised))]
    fn __exit__(&mut self, _raised: &Bound<PyTuple>) {
        self.0.leave();
    }
}

/// A block in which neither subclasses of `Tensor` nor modes override anything.
#[pyclass(module = "rustgrad._C")]
#[derive(Default)]
pub struct DisableTorchFunction(Left);

#[pymethods]
impl DisableTorchFunction {
    #[new]
    fn new() -> Self {
        Self::default()
    }
    fn __enter__(&mut self) {
        self.0.enter(State::Disabled);
    }
    #[pyo3(signature = (*_raised))]
    fn __exit__(&mut self, _raised: &Bound<PyTuple>) {
        self.0.leave();
    }
}

/// While the object exists, subclasses and modes override calls again.
#[pyclass(module = "rustgrad._C")]
pub struct _EnableTorchFunction(Left);

#[pymethods]
impl _EnableTorchFunction {
    #[new]
    fn new() -> Self {
        let mut left = Left::default();
        left.enter(State::Enabled);
        _EnableTorchFunction(left)
    }
}

impl Drop for _EnableTorchFunction {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Calls `f` while nothing is overridden.
pub fn unheard<R>(f: impl FnOnce() -> R) -> R {
    let left = STATE.replace(State::Disabled);
    let result = f();
    STATE.set(left);
    result
}

/// Whether classes are asked for `__torch_function__` in this thread.
#[pyfunction]
pub fn _is_torch_function_enabled() -> bool {
    STATE.get() == State::Enabled
}

/// Whether neither classes nor modes are asked in this thread.
#[pyfunction]
pub fn _is_torch_function_all_disabled() -> bool {
    STATE.get() == State::Disabled
}

/// Whether this thread is in a mode that is asked.
#[pyfunction]
pub fn _is_torch_function_mode_enabled() -> bool {
    STATE.get() != State::Disabled && _len_torch_function_stack() > 0
}

/// Whether an object is an exact `Tensor` or of a class written in C, and no list or tuple: it overrides nothing.
fn is_plain(o: Borrowed<PyAny>) -> bool {
    let class = o.get_type_ptr();
    // SAFETY: a live class.
    let flags = unsafe { ffi::PyType_GetFlags(class) };
    let lists = ffi::Py_TPFLAGS_LIST_SUBCLASS | ffi::Py_TPFLAGS_TUPLE_SUBCLASS;
    class == tensor_type() || flags & (ffi::Py_TPFLAGS_HEAPTYPE | lists) == 0
}

/// Whether a call with these arguments goes to a mode, or to the class of an argument or of an item of a list.
#[pyfunction]
pub fn _overridden(py: Python, args: &Bound<PyTuple>, kwargs: &Bound<PyDict>) -> bool {
    if _is_torch_function_mode_enabled() {
        return true;
    }
    if kwargs.is_empty() && args.iter_borrowed().all(is_plain) {
        return false;
    }
    let named = kwargs.iter().map(|(_, value)| value);
    let given: SmallVec<[Bound<PyAny>; 8]> = args.iter().chain(named).collect();
    _is_torch_function_enabled() && !takers(py, given.iter().map(|value| value.as_ptr())).is_empty()
}

/// `__torch_function__` of classes that override nothing: calls the function with overrides disabled.
#[pyfunction]
#[pyo3(signature = (func, types, args=None, kwargs=None))]
pub fn _disabled_torch_function_impl<'py>(
    func: &Bound<'py, PyAny>,
    types: &Bound<'py, PyAny>,
    args: Option<Bound<'py, PyTuple>>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let _ = types;
    let left = STATE.replace(without_subclasses());
    let result = func.call(args.unwrap_or_else(|| PyTuple::empty(func.py())), kwargs);
    STATE.set(left);
    Ok(result?)
}

/// Adds this file's functions and classes to the extension module.
pub fn install(m: &Bound<PyModule>) -> PyResult<()> {
    let nothing = wrap_pyfunction!(_disabled_torch_function_impl, m)?;
    NOTHING.store(nothing.clone().into_any().into_ptr(), Ordering::Relaxed);
    m.add_function(nothing)?;
    m.add_function(wrap_pyfunction!(_overridden, m)?)?;
    m.add_function(wrap_pyfunction!(_is_torch_function_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_is_torch_function_all_disabled, m)?)?;
    m.add_function(wrap_pyfunction!(_is_torch_function_mode_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_push_torch_function_mode, m)?)?;
    m.add_function(wrap_pyfunction!(_pop_torch_function_mode, m)?)?;
    m.add_function(wrap_pyfunction!(_len_torch_function_stack, m)?)?;
    m.add_function(wrap_pyfunction!(_get_function_stack_at, m)?)?;
    m.add_class::<DisableTorchFunctionSubclass>()?;
    m.add_class::<DisableTorchFunction>()?;
    Ok(m.add_class::<_EnableTorchFunction>()?)
}
