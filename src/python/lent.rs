//! Numbers that are lent to a call while it is recorded: whoever looks at one is seen.
//!
//! Note [Lent numbers]: a lent number is a float or an int of its own whose type is ours until the recording ends; then it
//! is put back, so that whatever has kept the object holds a plain number. Meanwhile it is no subclass of float or int: C
//! code can learn its value through the slots of its type alone. An op takes it as a number that differs from run to run;
//! simple arithmetic gives another lent number; a comparison is noted with its answer; anything else fixes its value.

use super::error::{PyResult, guard_object};
use super::heap_type::{HeapType, method, slot};
use super::object::is_tensor;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};
use rustgrad::compile::{Arithmetic, Number, Question, Recorder};
use rustgrad::dtype::Scalar;
use rustgrad::tensor::Tensor;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard};

/// A lent number.
struct Lent {
    object: Py<PyAny>,
    /// The same number as an object of a type of Python's.
    plain: Py<PyAny>,
    number: Number,
    /// The recording that it belongs to.
    of: usize,
    /// A plain number, which is known by its address alone and has to be found in the result.
    moved: bool,
}

/// All that are lent, by address; other threads may come upon them too.
struct All {
    lent: HashMap<usize, Lent>,
    /// What each recording has learned.
    learned: HashMap<usize, Learned>,
    recordings: usize,
}

/// What the recorded function has asked of its numbers.
#[derive(Default)]
pub struct Learned {
    pub fixed: Vec<Number>,
    pub questions: Vec<(Question, bool)>,
}

static ALL: Mutex<Option<All>> = Mutex::new(None);

fn all<R>(f: impl FnOnce(&mut All) -> R) -> R {
    let mut all: MutexGuard<Option<All>> = ALL.lock().unwrap_or_else(|e| e.into_inner());
    f(all.get_or_insert_with(|| All { lent: HashMap::new(), learned: HashMap::new(), recordings: 0 }))
}

/// The types that lent numbers have, and the one that makes ints of their own.
struct Types {
    float: usize,
    int: usize,
    fresh_int: usize,
}

static TYPES: PyOnceLock<Types> = PyOnceLock::new();

fn types(py: Python<'_>) -> PyResult<&Types> {
    TYPES.get_or_try_init(py, || {
        let size = size_of::<ffi::PyFloatObject>();
        let mut float = HeapType::new(c"builtins.float", size, 0);
        float.slots = slots(false);
        float.methods = methods();
        let mut int = HeapType::new(c"builtins.int", size, 0);
        int.slots = slots(true);
        int.methods = methods();
        let mut fresh_int = HeapType::new(c"builtins.int", 0, 0);
        fresh_int.base = &raw mut ffi::PyLong_Type;
        Ok(Types {
            float: float.create(py)? as usize,
            int: int.create(py)? as usize,
            fresh_int: fresh_int.create(py)? as usize,
        })
    })
}

/// Whether an object is a lent number.
#[inline]
pub fn is_lent(py: Python, o: *mut PyObject) -> bool {
    // SAFETY: `o` is a live object.
    let class = unsafe { ffi::Py_TYPE(o) } as usize;
    TYPES.get(py).is_some_and(|t| class == t.float || class == t.int)
}

/// A recording that lends numbers.
pub struct Lender {
    id: usize,
    previous: Option<(usize, Rc<Recorder>)>,
}

thread_local! {
    static HERE: RefCell<Option<(usize, Rc<Recorder>)>> = const { RefCell::new(None) };
}

/// What is left of lent numbers when the recording has ended.
#[derive(Default)]
pub struct Returned {
    /// They are plain again, and alive, so that their addresses say which they were.
    numbers: Vec<(Py<PyAny>, Number)>,
    /// The addresses of those that were plain all along and have not been found in the result.
    moved: RefCell<Vec<usize>>,
    pub learned: Learned,
}

impl Returned {
    /// The number that an object was while it was lent.
    pub fn number(&self, o: &Bound<PyAny>) -> Option<&Number> {
        let found = self.numbers.iter().find(|(lent, _)| lent.is(o)).map(|(_, n)| n);
        if found.is_some() {
            self.moved.borrow_mut().retain(|at| *at != o.as_ptr() as usize);
        }
        found
    }
    /// Whether a number was given to something else than the result: `math.sin(t)` takes the float that `t` becomes.
    pub fn is_lost(&self) -> bool {
        !self.moved.borrow().is_empty()
    }
}

impl Lender {
    pub fn new(recorder: &Rc<Recorder>) -> Lender {
        let id = all(|all| {
            all.recordings += 1;
            all.learned.insert(all.recordings, Learned::default());
            all.recordings
        });
        Lender { id, previous: HERE.replace(Some((id, recorder.clone()))) }
    }
    /// Ends the recording: its numbers are plain again.
    pub fn end(self, _py: Python) -> Returned {
        let (lent, learned) = self.take_back();
        let moved = lent.iter().filter(|l| l.moved).map(|l| l.object.as_ptr() as usize).collect();
        let numbers = lent.into_iter().map(|l| (l.object, l.number)).collect();
        Returned { numbers, moved: RefCell::new(moved), learned }
    }
    /// Its numbers, which are plain again, and what it has learned; nothing the second time.
    fn take_back(&self) -> (Vec<Lent>, Learned) {
        let (lent, learned): (Vec<Lent>, _) = all(|all| {
            let mine: Vec<usize> = all.lent.iter().filter(|(_, l)| l.of == self.id).map(|(at, _)| *at).collect();
            let lent = mine.iter().filter_map(|at| all.lent.remove(at)).collect();
            (lent, all.learned.remove(&self.id).unwrap_or_default())
        });
        for l in &lent {
            // SAFETY: the object was made with the layout of its own type, and the lock is held.
            unsafe { give_back(l.object.as_ptr()) };
        }
        (lent, learned)
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        // Where the call has failed, nobody has ended the recording.
        self.take_back();
        HERE.set(self.previous.take());
    }
}

/// Gives a number of Python's to the recorded function as one of ours.
///
/// `value` is an exact float, or an exact int.
pub fn lend<'py>(value: &Bound<'py, PyAny>, number: Number) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    let of = HERE.with_borrow(|here| here.as_ref().map(|(id, _)| *id));
    let Some(of) = of else { return Ok(value.clone()) };
    let types = types(py)?;
    let (object, class) = match value.cast_exact::<PyFloat>() {
        Ok(f) => (fresh_float(py, f.value())?, types.float),
        Err(_) => (fresh_int(value)?, types.int),
    };
    // SAFETY: the object is new, so that nobody else has looked at its type.
    unsafe { set_type(object.as_ptr(), class as *mut ffi::PyTypeObject) };
    let lent = Lent { object: object.clone().unbind(), plain: value.clone().unbind(), number, of, moved: false };
    all(|all| all.lent.insert(object.as_ptr() as usize, lent));
    Ok(object)
}

/// A float that no one else holds.
fn fresh_float(py: Python<'_>, value: f64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: a new reference, or null with an exception set.
    unsafe { Ok(Bound::from_owned_ptr_or_err(py, ffi::PyFloat_FromDouble(value))?) }
}

/// An int that no one else holds: not one of those that the interpreter keeps.
fn fresh_int<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let class = types(value.py())?.fresh_int as *mut PyObject;
    // SAFETY: the class is a subclass of int without anything of its own; the new object, which nobody else has looked at,
    // lets go of it.
    unsafe {
        let o = Bound::from_owned_ptr_or_err(value.py(), ffi::PyObject_CallOneArg(class, value.as_ptr()))?;
        (*o.as_ptr()).ob_type = &raw mut ffi::PyLong_Type;
        ffi::Py_DECREF(class);
        Ok(o)
    }
}

/// # Safety
/// The object has the layout of the type, and nobody else holds it.
unsafe fn set_type(o: *mut PyObject, class: *mut ffi::PyTypeObject) {
    // SAFETY: the caller's promise. Instances of heap types own their type.
    unsafe {
        ffi::Py_INCREF(class.cast());
        (*o).ob_type = class;
    }
}

/// # Safety
/// A lent number; the interpreter lock is held.
unsafe fn give_back(o: *mut PyObject) {
    // SAFETY: a float was made by `PyFloat_FromDouble`, and an int by the `__new__` of int, so that either has the layout and
    // the memory of its own type.
    unsafe {
        let class = ffi::Py_TYPE(o);
        if !is_lent(Python::assume_attached(), o) {
            return;
        }
        let int = TYPES.get(Python::assume_attached()).is_some_and(|t| class as usize == t.int);
        (*o).ob_type = if int { &raw mut ffi::PyLong_Type } else { &raw mut ffi::PyFloat_Type };
        ffi::Py_DECREF(class.cast());
    }
}

fn scalar(o: &Bound<PyAny>) -> Option<Scalar> {
    match o.cast_exact::<PyFloat>() {
        Ok(f) => Some(Scalar::Float(f.value())),
        Err(_) => o.cast_exact::<PyInt>().ok().and_then(|i| i.extract().ok()).map(Scalar::Int),
    }
}

/// A lent number as what it is in each run, and as an object of a type of Python's.
fn looked_up<'py>(o: &Bound<'py, PyAny>) -> Option<(Number, Bound<'py, PyAny>)> {
    let (at, py) = (o.as_ptr() as usize, o.py());
    all(|all| all.lent.get(&at).map(|l| (l.number.clone(), l.plain.clone_ref(py).into_bound(py))))
}

/// A lent number as what it is in each run, and its value now.
pub fn number(o: &Bound<PyAny>) -> Option<(Number, Scalar)> {
    if !is_lent(o.py(), o.as_ptr()) {
        return None;
    }
    let (number, plain) = looked_up(o)?;
    Some((number, scalar(&plain)?))
}

/// The value of a lent number, which is fixed by that.
pub fn fixed<'py>(o: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    if !is_lent(o.py(), o.as_ptr()) {
        return None;
    }
    all(|all| {
        let l = all.lent.get(&(o.as_ptr() as usize))?;
        let (number, plain) = (l.number.clone(), l.plain.clone_ref(o.py()));
        if let Some(learned) = all.learned.get_mut(&l.of) {
            learned.fixed.push(number);
        }
        Some(plain.into_bound(o.py()))
    })
}

/// The value of the one element of a tensor, or its values in order, as numbers that the recorded function may pass on.
/// `None` where nothing is recorded, or such a read is no step.
pub fn read<'py>(
    py: Python<'py>,
    t: &Tensor,
    values: impl FnOnce() -> PyResult<Vec<Scalar>>,
) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    let Some(recorder) = HERE.with_borrow(|here| here.as_ref().map(|(_, r)| r.clone())) else { return Ok(None) };
    let Some(first) = recorder.read(t) else { return Ok(None) };
    let values = recorder.unseen(values)?;
    let whole = t.dtype().is_int();
    let one =
        |(i, s): (usize, Scalar)| lend(&super::export::scalar_object(py, s)?, Number::Read { at: first + i, whole });
    values.into_iter().enumerate().map(one).collect::<PyResult<_>>().map(Some)
}

// --- the slots ---------------------------------------------------------------------------------
/// An operand as a number: what it is in each run, and a plain object.
fn operand<'py>(o: &Bound<'py, PyAny>) -> Option<(Number, Bound<'py, PyAny>)> {
    if is_lent(o.py(), o.as_ptr()) {
        return looked_up(o);
    }
    Some((Number::Constant(scalar(o)?), o.clone()))
}

fn plain<'py>(o: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    fixed(o).unwrap_or_else(|| o.clone())
}

fn not_implemented(py: Python) -> *mut PyObject {
    py.NotImplemented().into_ptr()
}

type BinaryFn = unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> *mut PyObject;
/// The operators, and those that give another number of the function.
const BINARY: [(BinaryFn, Option<Arithmetic>); 12] = [
    (ffi::PyNumber_Add, Some(Arithmetic::Add)),
    (ffi::PyNumber_Subtract, Some(Arithmetic::Subtract)),
    (ffi::PyNumber_Multiply, Some(Arithmetic::Multiply)),
    (ffi::PyNumber_TrueDivide, Some(Arithmetic::Divide)),
    (ffi::PyNumber_FloorDivide, None),
    (ffi::PyNumber_Remainder, None),
    (ffi::PyNumber_Divmod, None),
    (ffi::PyNumber_And, None),
    (ffi::PyNumber_Or, None),
    (ffi::PyNumber_Xor, None),
    (ffi::PyNumber_Lshift, None),
    (ffi::PyNumber_Rshift, None),
];

/// # Safety
/// Live operands of a slot.
unsafe fn both<'py>(py: Python<'py>, a: *mut PyObject, b: *mut PyObject) -> (Bound<'py, PyAny>, Bound<'py, PyAny>) {
    // SAFETY: the caller's promise.
    unsafe { (Bound::from_borrowed_ptr(py, a), Bound::from_borrowed_ptr(py, b)) }
}

unsafe extern "C" fn binary<const I: usize>(a: *mut PyObject, b: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        // A tensor takes the number itself.
        if is_tensor(a) || is_tensor(b) {
            return Ok(not_implemented(py));
        }
        // SAFETY: the operands of a slot.
        let (a, b) = unsafe { both(py, a, b) };
        let (run, arithmetic) = BINARY[I];
        // SAFETY: live objects.
        let of = |x: &Bound<PyAny>, y: &Bound<PyAny>| unsafe {
            Bound::from_owned_ptr_or_err(py, run(x.as_ptr(), y.as_ptr()))
        };
        if let (Some(how), Some((m, x)), Some((n, y))) = (arithmetic, operand(&a), operand(&b)) {
            // What a run may divide by has to be known before it begins.
            let known = how != Arithmetic::Divide || n.is_given();
            let result = if known { of(&x, &y).ok() } else { None };
            if let Some(result) = result.filter(|r| scalar(r).is_some()) {
                return Ok(lend(&result, Number::Binary(how, Box::new(m), Box::new(n)))?.into_ptr());
            }
        }
        Ok(of(&plain(&a), &plain(&b))?.into_ptr())
    })
}

unsafe extern "C" fn power(a: *mut PyObject, b: *mut PyObject, modulo: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        if is_tensor(a) || is_tensor(b) {
            return Ok(not_implemented(py));
        }
        // SAFETY: the operands of a slot.
        unsafe {
            let (a, b) = both(py, a, b);
            let modulo = plain(&Bound::from_borrowed_ptr(py, modulo));
            let result = ffi::PyNumber_Power(plain(&a).as_ptr(), plain(&b).as_ptr(), modulo.as_ptr());
            Ok(Bound::from_owned_ptr_or_err(py, result)?.into_ptr())
        }
    })
}

type UnaryFn = unsafe extern "C" fn(*mut PyObject) -> *mut PyObject;
const UNARY: [UnaryFn; 7] = [
    ffi::PyNumber_Negative,
    ffi::PyNumber_Absolute,
    ffi::PyNumber_Positive,
    ffi::PyNumber_Invert,
    ffi::PyNumber_Long,
    ffi::PyNumber_Float,
    ffi::PyNumber_Index,
];

unsafe extern "C" fn unary<const I: usize>(a: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        // SAFETY: the operand of a slot.
        let a: Bound<PyAny> = unsafe { Bound::from_borrowed_ptr(py, a) };
        // SAFETY: a live object.
        let of = |x: &Bound<PyAny>| unsafe { Bound::from_owned_ptr_or_err(py, UNARY[I](x.as_ptr())) };
        if let (0..=2, Some((n, x))) = (I, operand(&a)) {
            let result = of(&x)?;
            if scalar(&result).is_some() {
                let number = match I {
                    0 => Number::Negative(Box::new(n)),
                    1 => Number::Absolute(Box::new(n)),
                    _ => n,
                };
                return Ok(lend(&result, number)?.into_ptr());
            }
        }
        if let (4 | 5, Some((n, x))) = (I, operand(&a))
            && let Some(moved) = moved(&x, &n, I == 5)?
        {
            return Ok(moved.into_ptr());
        }
        Ok(of(&plain(&a))?.into_ptr())
    })
}

/// `float(x)` or `int(x)` of a value that was read, as a plain number that is known again by its address; `None` unless all
/// that the function does with it is to return it.
fn moved<'py>(x: &Bound<'py, PyAny>, n: &Number, float: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (py, whole) = (x.py(), x.is_exact_instance_of::<PyInt>());
    let Some(of) = HERE.with_borrow(|here| here.as_ref().map(|(id, _)| *id)) else { return Ok(None) };
    let moves = || py.import("rustgrad.compiler._tail")?.call_method0("moves_on")?.is_truthy();
    if n.is_given() || !float && !whole || !moves()? {
        return Ok(None);
    }
    let number = if float && whole { Number::Float(Box::new(n.clone())) } else { n.clone() };
    let object = if float { fresh_float(py, x.extract()?)? } else { fresh_int(x)? };
    let lent = Lent { object: object.clone().unbind(), plain: object.clone().unbind(), number, of, moved: true };
    all(|all| all.lent.insert(object.as_ptr() as usize, lent));
    Ok(Some(object))
}

/// Notes a question and its answer; false where it cannot be asked before a run.
fn noted(o: &Bound<PyAny>, question: Question, answer: bool) -> bool {
    let given = match &question {
        Question::Truth(n) => n.is_given(),
        Question::Compare(_, a, b) => a.is_given() && b.is_given(),
    };
    given
        && all(|all| {
            let learned = all.lent.get(&(o.as_ptr() as usize)).and_then(|l| all.learned.get_mut(&l.of));
            learned.is_some_and(|l| {
                if !l.questions.iter().any(|(q, _)| *q == question) {
                    l.questions.push((question, answer));
                }
                true
            })
        })
}

unsafe extern "C" fn truth(o: *mut PyObject) -> c_int {
    super::error::guard(-1, |py| {
        // SAFETY: the operand of a slot.
        let o: Bound<PyAny> = unsafe { Bound::from_borrowed_ptr(py, o) };
        if let Some((n, x)) = operand(&o) {
            let answer = x.is_truthy()?;
            if noted(&o, Question::Truth(n), answer) {
                return Ok(answer.into());
            }
        }
        Ok(plain(&o).is_truthy()?.into())
    })
}

unsafe extern "C" fn compare(a: *mut PyObject, b: *mut PyObject, how: c_int) -> *mut PyObject {
    guard_object(|py| {
        // SAFETY: the operands of a slot.
        let (a, b) = unsafe { both(py, a, b) };
        // What is no number is not equal to one, whichever it is.
        if is_tensor(b.as_ptr()) || b.is_none() || b.is_exact_instance_of::<PyString>() {
            return Ok(not_implemented(py));
        }
        // SAFETY: live objects.
        let of = |x: &Bound<PyAny>, y: &Bound<PyAny>| unsafe {
            Bound::from_owned_ptr_or_err(py, ffi::PyObject_RichCompare(x.as_ptr(), y.as_ptr(), how))
        };
        if let (Some((m, x)), Some((n, y))) = (operand(&a), operand(&b)) {
            let answer = of(&x, &y)?;
            if let Ok(yes) = answer.cast_exact::<PyBool>()
                && noted(&a, Question::Compare(how as u8, m, n), yes.is_true())
            {
                return Ok(answer.into_ptr());
            }
        }
        Ok(of(&plain(&a), &plain(&b))?.into_ptr())
    })
}

unsafe extern "C" fn hash(o: *mut PyObject) -> ffi::Py_hash_t {
    super::error::guard(-1, |py| {
        // SAFETY: the operand of a slot.
        Ok(plain(&unsafe { Bound::from_borrowed_ptr(py, o) }).hash()?)
    })
}

unsafe extern "C" fn repr(o: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        // SAFETY: the operand of a slot.
        Ok(plain(&unsafe { Bound::from_borrowed_ptr(py, o) }).repr()?.into_any().into_ptr())
    })
}

unsafe extern "C" fn attribute(o: *mut PyObject, name: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        // SAFETY: the operands of a slot.
        let (o, name) = unsafe { both(py, o, name) };
        let name = name.cast::<PyString>()?;
        // `isinstance` asks for it.
        if name == "__class__" {
            let int = operand(&o).is_some_and(|(_, x)| x.is_exact_instance_of::<PyInt>());
            let class = if int { py.get_type::<PyInt>() } else { py.get_type::<PyFloat>() };
            return Ok(class.into_any().into_ptr());
        }
        Ok(plain(&o).getattr(name)?.into_ptr())
    })
}

const SPECIAL: [&str; 3] = ["__trunc__", "__floor__", "__ceil__"];

unsafe extern "C" fn special<const I: usize>(o: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        // SAFETY: the operand of a method.
        Ok(plain(&unsafe { Bound::from_borrowed_ptr(py, o) }).call_method0(SPECIAL[I])?.into_ptr())
    })
}

/// `round(x)`, `round(x, n)` and `format(x, text)`, which the interpreter looks up on the type.
unsafe extern "C" fn with_arguments<const ROUND: bool>(o: *mut PyObject, args: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        // SAFETY: the operand of a method and its arguments.
        let (o, args) = unsafe { both(py, o, args) };
        let name = if ROUND { "__round__" } else { "__format__" };
        Ok(plain(&o).getattr(name)?.call1(args.cast::<pyo3::types::PyTuple>()?.clone())?.into_ptr())
    })
}

fn methods() -> Vec<ffi::PyMethodDef> {
    let with = |name: &'static std::ffi::CStr, f: ffi::PyCFunction| ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: f },
        ml_flags: ffi::METH_VARARGS,
        ml_doc: std::ptr::null(),
    };
    vec![
        method(c"__trunc__", special::<0>),
        method(c"__floor__", special::<1>),
        method(c"__ceil__", special::<2>),
        with(c"__round__", with_arguments::<true>),
        with(c"__format__", with_arguments::<false>),
    ]
}

fn slots(int: bool) -> Vec<ffi::PyType_Slot> {
    let mut pairs: Vec<(c_int, *mut c_void)> = vec![
        (ffi::Py_nb_add, binary::<0> as *mut c_void),
        (ffi::Py_nb_subtract, binary::<1> as *mut c_void),
        (ffi::Py_nb_multiply, binary::<2> as *mut c_void),
        (ffi::Py_nb_true_divide, binary::<3> as *mut c_void),
        (ffi::Py_nb_floor_divide, binary::<4> as *mut c_void),
        (ffi::Py_nb_remainder, binary::<5> as *mut c_void),
        (ffi::Py_nb_divmod, binary::<6> as *mut c_void),
        (ffi::Py_nb_power, power as *mut c_void),
        (ffi::Py_nb_negative, unary::<0> as *mut c_void),
        (ffi::Py_nb_absolute, unary::<1> as *mut c_void),
        (ffi::Py_nb_positive, unary::<2> as *mut c_void),
        (ffi::Py_nb_int, unary::<4> as *mut c_void),
        (ffi::Py_nb_float, unary::<5> as *mut c_void),
        (ffi::Py_nb_bool, truth as *mut c_void),
        (ffi::Py_tp_richcompare, compare as *mut c_void),
        (ffi::Py_tp_hash, hash as *mut c_void),
        (ffi::Py_tp_repr, repr as *mut c_void),
        (ffi::Py_tp_getattro, attribute as *mut c_void),
    ];
    if int {
        pairs.extend([
            (ffi::Py_nb_and, binary::<7> as *mut c_void),
            (ffi::Py_nb_or, binary::<8> as *mut c_void),
            (ffi::Py_nb_xor, binary::<9> as *mut c_void),
            (ffi::Py_nb_lshift, binary::<10> as *mut c_void),
            (ffi::Py_nb_rshift, binary::<11> as *mut c_void),
            (ffi::Py_nb_invert, unary::<3> as *mut c_void),
            (ffi::Py_nb_index, unary::<6> as *mut c_void),
        ]);
    }
    pairs.into_iter().map(|(id, f)| slot(id, f)).collect()
}
