//! The number, comparison and item slots of `Tensor`, which call dispatch without a lookup by name.

use super::convert::{to_scalar, type_name};
use super::error::{PyResult, guard_object, raised};
use super::heap_type::slot;
use super::object::{borrow, is_tensor, wrap};
use super::{lent, overrides};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use rustgrad::compile::{pass, pass_again, passed};
use rustgrad::dispatch;
use rustgrad::dtype::Category;
use rustgrad::op::tracer;
use rustgrad::op::{Args, Kind, Op, Outputs, Value};
use rustgrad::rt::emplace;
use smallvec::smallvec;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// Python's binary operators: the op, the op for a number on the left (`""`: the same op with the number first), and the
/// methods that `__torch_function__` is handed for a tensor on the left and on the right.
const BINARY: [(&str, &str, [&str; 2]); 12] = [
    ("add", "add~", ["add", "add"]),
    ("sub", "rsub~", ["sub", "__rsub__"]),
    ("mul", "mul~", ["mul", "mul"]),
    ("div", "rdiv", ["div", "__rdiv__"]),
    ("floor_divide", "floor_divide.scalar", ["__floordiv__", "__rfloordiv__"]),
    ("remainder", "remainder.scalar", ["remainder", "__rmod__"]),
    ("matmul", "", ["matmul", "__rmatmul__"]),
    ("bitwise_and", "bitwise_and~", ["__and__", "bitwise_and"]),
    ("bitwise_or", "bitwise_or~", ["__or__", "bitwise_or"]),
    ("bitwise_xor", "bitwise_xor~", ["__xor__", "bitwise_xor"]),
    ("bitwise_left_shift", "bitwise_left_shift.scalar", ["__lshift__", "__rlshift__"]),
    ("bitwise_right_shift", "bitwise_right_shift.scalar", ["__rshift__", "__rrshift__"]),
];
/// The op and the method that is handed on.
const UNARY: [(&str, &str); 4] =
    [("neg", "neg"), ("positive", "positive"), ("abs", "abs"), ("bitwise_not", "__invert__")];
const COMPARE: [(&str, &str); 6] =
    [("lt", "lt"), ("le", "le"), ("eq", "__eq__"), ("ne", "ne"), ("gt", "gt"), ("ge", "ge")];

struct Slots {
    binary: Vec<Option<Operator>>,
    unary: Vec<Option<&'static Op>>,
    compare: Vec<Option<&'static Op>>,
    pow: Option<Operator>,
    reciprocal: Option<&'static Op>,
    mul: Option<&'static Op>,
}

/// The overloads of one operator. A number on the right has its own op if PyTorch's node has a different name.
struct Operator {
    tensor: &'static Op,
    /// `None`: the operator does not accept numbers (`@`).
    number: Option<&'static Op>,
    reflected: Reflected,
}

enum Reflected {
    /// The tensor stays first: a commutative op, or a reversed one (`rsub`).
    Swapped(&'static Op),
    NumberFirst(&'static Op),
    Reciprocal,
}

impl Operator {
    fn of(&self, right: &Value) -> Option<&'static Op> {
        if right.as_tensor().is_some() { Some(self.tensor) } else { self.number }
    }
}

static SLOTS: OnceLock<Slots> = OnceLock::new();

fn find(name: &str) -> Option<&'static Op> {
    rustgrad::ops::all().find(|op| op.name() == name)
}

fn slots() -> &'static Slots {
    SLOTS.get_or_init(|| {
        let binary = |&(name, reflected, _): &(&str, &str, [&str; 2])| {
            let tensor = find(name)?;
            let reflected = match (reflected, reflected.strip_suffix('~')) {
                ("rdiv", _) => Reflected::Reciprocal,
                (_, Some(n)) => Reflected::Swapped(find(n)?),
                ("", _) => Reflected::NumberFirst(tensor),
                (n, _) => Reflected::NumberFirst(find(n)?),
            };
            let also = (tensor.sig.params()[1].kind != Kind::Tensor).then_some(tensor);
            Some(Operator { tensor, number: find(&format!("{name}.number")).or(also), reflected })
        };
        let power = || {
            let reflected = Reflected::NumberFirst(find("pow.scalar")?);
            Some(Operator { tensor: find("pow.tensor")?, number: find("pow"), reflected })
        };
        Slots {
            binary: BINARY.iter().map(binary).collect(),
            unary: UNARY.iter().map(|(n, _)| find(n)).collect(),
            compare: COMPARE.iter().map(|(n, _)| find(n)).collect(),
            pow: power(),
            reciprocal: find("reciprocal"),
            mul: find("mul"),
        }
    })
}

fn not_implemented() -> *mut PyObject {
    // SAFETY: the interpreter lock is held by the slot's caller.
    unsafe {
        let n = ffi::Py_NotImplemented();
        ffi::Py_INCREF(n);
        n
    }
}

/// Appends a tensor or number to the arguments in place; false for anything else, which is left to the other operand.
#[inline]
fn push<'a>(py: Python<'a>, o: *mut PyObject, args: &mut Args<'a>) -> PyResult<bool> {
    if let Some(t) = borrow(o) {
        emplace::push(args, || Value::Tensor(t));
        return Ok(true);
    }
    // SAFETY: a live operand of the slot's caller.
    let o = unsafe { Borrowed::from_ptr(py, o) };
    let number = match lent::number(&o) {
        Some((number, s)) => {
            pass(args.len(), number, s);
            Some(s)
        }
        None => to_scalar(&o)?,
    };
    if let Some(s) = number {
        emplace::push(args, || Value::Scalar(s));
    }
    Ok(number.is_some())
}

fn both<'a>(py: Python<'a>, a: *mut PyObject, b: *mut PyObject, args: &mut Args<'a>) -> PyResult<bool> {
    if tracer::enabled() {
        passed();
    }
    Ok(push(py, a, args)? && push(py, b, args)?)
}

fn call(py: Python, op: &'static Op, args: &mut Args) -> PyResult<*mut PyObject> {
    dispatch::complete(op, args)?;
    let mut out = Outputs::new();
    super::op_callable::unlocked(py, op, args, || dispatch::call_into(op, args, &mut out))?;
    // Operators have one result.
    wrap(py, out.pop().expect("an operator has a result"))
}

/// Calls the overload for the right operand, if there is one.
fn perform(py: Python, op: Option<&'static Op>, args: &mut Args) -> PyResult<*mut PyObject> {
    op.map_or_else(|| Ok(not_implemented()), |op| call(py, op, args))
}

fn change(py: Python, op: &'static Op, args: &mut Args) -> PyResult<*mut PyObject> {
    dispatch::complete(op, args)?;
    wrap(py, super::op_callable::unlocked(py, op, args, || dispatch::call_inplace(op, args))?)
}

/// The result of a class that overrides the operator, by the methods for a tensor on the left and on the right. The slot is called once where
/// both operands are tensors, so it asks by both methods, as Python asks objects with methods of their own.
#[cold]
fn taken(py: Python, [left, right]: [&str; 2], a: *mut PyObject, b: *mut PyObject) -> PyResult<Option<*mut PyObject>> {
    if !is_tensor(a) {
        return overrides::slot(py, right, &[b, a]);
    }
    let answer = overrides::slot(py, left, &[a, b])?;
    // SAFETY: a singleton that is never freed.
    let refused = answer == Some(unsafe { ffi::Py_NotImplemented() });
    if refused && is_tensor(b) && left != right { overrides::slot(py, right, &[b, a]) } else { Ok(answer) }
}

/// `array / tensor`, as PyTorch computes it: the reciprocal times the array. Other operators leave the array's side to NumPy.
#[cold]
fn quotient_of_array<const I: usize>(py: Python, a: *mut PyObject, b: *mut PyObject) -> PyResult<*mut PyObject> {
    let divides = slots().binary[I].as_ref().is_some_and(|o| matches!(o.reflected, Reflected::Reciprocal));
    // SAFETY: live operands of the slot's caller, and a name that ends with zero.
    let is_array = || unsafe { ffi::PyObject_HasAttrString(a, c"__array__".as_ptr()) } == 1;
    let (true, Some(reciprocal)) = (divides && is_tensor(b) && !is_tensor(a) && is_array(), slots().reciprocal) else {
        return Ok(not_implemented());
    };
    let mut args = Args::new();
    push(py, b, &mut args)?;
    let inverse = call(py, reciprocal, &mut args)?;
    // SAFETY: live objects; the reference to the reciprocal is ours.
    let product = unsafe {
        let product = ffi::PyNumber_Multiply(inverse, a);
        ffi::Py_DECREF(inverse);
        product
    };
    if product.is_null() { Err(PyErr::fetch(py).into()) } else { Ok(product) }
}

unsafe extern "C" fn binary<const I: usize>(a: *mut PyObject, b: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        let methods = BINARY[I].2;
        if overrides::active()
            && let Some(answer) = taken(py, methods, a, b)?
        {
            return Ok(answer);
        }
        let mut args = Args::new();
        let (true, Some(operator)) = (both(py, a, b, &mut args)?, &slots().binary[I]) else {
            return match taken(py, methods, a, b)? {
                Some(answer) => Ok(answer),
                None => quotient_of_array::<I>(py, a, b),
            };
        };
        if is_tensor(a) {
            return perform(py, operator.of(&args[1]), &mut args);
        }
        match operator.reflected {
            Reflected::Swapped(op) => {
                args.swap(0, 1);
                if tracer::enabled() {
                    pass_again(passed(), true);
                }
                call(py, op, &mut args)
            }
            Reflected::NumberFirst(op) if op.sig.params()[0].kind == Kind::Tensor => Ok(not_implemented()),
            Reflected::NumberFirst(op) => call(py, op, &mut args),
            Reflected::Reciprocal => {
                let (Some(reciprocal), Some(mul)) = (slots().reciprocal, slots().mul) else {
                    return Ok(not_implemented());
                };
                args.swap(0, 1);
                let number = if tracer::enabled() { passed() } else { Vec::new() };
                args[0] = Value::Owned(reciprocal.call((args[0].reborrow(),)).ok()?);
                pass_again(number, true);
                call(py, mul, &mut args)
            }
        }
    })
}

unsafe extern "C" fn inplace<const I: usize>(a: *mut PyObject, b: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        if overrides::active()
            && let Some(answer) = overrides::slot(py, &format!("{}_", BINARY[I].0), &[a, b])?
        {
            return Ok(answer);
        }
        let mut args = Args::new();
        let fits = both(py, a, b, &mut args)?;
        let operator = slots().binary[I].as_ref().filter(|_| fits).and_then(|o| o.of(&args[1]));
        operator.map_or_else(|| Ok(not_implemented()), |op| change(py, op, &mut args))
    })
}

unsafe extern "C" fn power(a: *mut PyObject, b: *mut PyObject, _modulo: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        let methods = ["pow", "__rpow__"];
        if overrides::active()
            && let Some(answer) = taken(py, methods, a, b)?
        {
            return Ok(answer);
        }
        let mut args = Args::new();
        let (true, Some(operator)) = (both(py, a, b, &mut args)?, &slots().pow) else {
            return Ok(taken(py, methods, a, b)?.unwrap_or_else(not_implemented));
        };
        let op = match operator.reflected {
            Reflected::NumberFirst(op) if !is_tensor(a) => Some(op),
            _ => operator.of(&args[1]),
        };
        perform(py, op, &mut args)
    })
}

unsafe extern "C" fn inplace_power(a: *mut PyObject, b: *mut PyObject, _modulo: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        if overrides::active()
            && let Some(answer) = overrides::slot(py, "pow_", &[a, b])?
        {
            return Ok(answer);
        }
        let mut args = Args::new();
        let fits = both(py, a, b, &mut args)?;
        let operator = slots().pow.as_ref().filter(|_| fits).and_then(|o| o.of(&args[1]));
        operator.map_or_else(|| Ok(not_implemented()), |op| change(py, op, &mut args))
    })
}

unsafe extern "C" fn unary<const I: usize>(a: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        if overrides::active()
            && let Some(answer) = overrides::slot(py, UNARY[I].1, &[a])?
        {
            return Ok(answer);
        }
        let (Some(t), Some(op)) = (borrow(a), slots().unary[I]) else { return Ok(not_implemented()) };
        if UNARY[I].0 == "bitwise_not" && t.dtype().category() > Category::Int {
            return Err(raised::<PyTypeError>(
                "~ (operator.invert) is only implemented on integer and Boolean-type tensors",
            ));
        }
        call(py, op, &mut smallvec![Value::Tensor(t)])
    })
}

unsafe extern "C" fn compare(a: *mut PyObject, b: *mut PyObject, which: c_int) -> *mut PyObject {
    guard_object(|py| {
        let method = COMPARE[which as usize].1;
        if overrides::active()
            && let Some(answer) = overrides::slot(py, method, &[a, b])?
        {
            return Ok(answer);
        }
        if tracer::enabled() {
            passed();
        }
        let mut args = Args::new();
        let (true, Some(op)) = (push(py, a, &mut args)?, slots().compare[which as usize]) else {
            return Ok(not_implemented());
        };
        if push(py, b, &mut args)? {
            return call(py, op, &mut args);
        }
        // SAFETY: a live operand of the slot's caller.
        let other = unsafe { Bound::from_borrowed_ptr(py, b) };
        // NumPy defers comparisons to the tensor; as in PyTorch only == accepts arrays.
        if which == ffi::Py_EQ
            && type_name(&other) == "ndarray"
            && let Ok(array) = super::construct::from_numpy(&other)
        {
            args.push(Value::Owned(array.0));
            return call(py, op, &mut args);
        }
        Ok(overrides::slot(py, method, &[a, b])?.unwrap_or_else(not_implemented))
    })
}

/// Tensors hash by identity, as `id()`: `==` compares elements, and a dict of parameters must work.
unsafe extern "C" fn hash(o: *mut PyObject) -> ffi::Py_hash_t {
    o as ffi::Py_hash_t
}

/// The slots, for `object::create`.
pub fn table() -> Vec<ffi::PyType_Slot> {
    let pairs: [(c_int, *mut c_void); 33] = [
        (ffi::Py_nb_add, binary::<0> as *mut c_void),
        (ffi::Py_nb_subtract, binary::<1> as *mut c_void),
        (ffi::Py_nb_multiply, binary::<2> as *mut c_void),
        (ffi::Py_nb_true_divide, binary::<3> as *mut c_void),
        (ffi::Py_nb_floor_divide, binary::<4> as *mut c_void),
        (ffi::Py_nb_remainder, binary::<5> as *mut c_void),
        (ffi::Py_nb_matrix_multiply, binary::<6> as *mut c_void),
        (ffi::Py_nb_and, binary::<7> as *mut c_void),
        (ffi::Py_nb_or, binary::<8> as *mut c_void),
        (ffi::Py_nb_xor, binary::<9> as *mut c_void),
        (ffi::Py_nb_lshift, binary::<10> as *mut c_void),
        (ffi::Py_nb_rshift, binary::<11> as *mut c_void),
        (ffi::Py_nb_inplace_add, inplace::<0> as *mut c_void),
        (ffi::Py_nb_inplace_subtract, inplace::<1> as *mut c_void),
        (ffi::Py_nb_inplace_multiply, inplace::<2> as *mut c_void),
        (ffi::Py_nb_inplace_true_divide, inplace::<3> as *mut c_void),
        (ffi::Py_nb_inplace_floor_divide, inplace::<4> as *mut c_void),
        (ffi::Py_nb_inplace_remainder, inplace::<5> as *mut c_void),
        (ffi::Py_nb_inplace_and, inplace::<7> as *mut c_void),
        (ffi::Py_nb_inplace_or, inplace::<8> as *mut c_void),
        (ffi::Py_nb_inplace_xor, inplace::<9> as *mut c_void),
        (ffi::Py_nb_inplace_lshift, inplace::<10> as *mut c_void),
        (ffi::Py_nb_inplace_rshift, inplace::<11> as *mut c_void),
        (ffi::Py_nb_power, power as *mut c_void),
        (ffi::Py_nb_inplace_power, inplace_power as *mut c_void),
        (ffi::Py_nb_negative, unary::<0> as *mut c_void),
        (ffi::Py_nb_positive, unary::<1> as *mut c_void),
        (ffi::Py_nb_absolute, unary::<2> as *mut c_void),
        (ffi::Py_nb_invert, unary::<3> as *mut c_void),
        (ffi::Py_tp_richcompare, compare as *mut c_void),
        (ffi::Py_tp_hash, hash as *mut c_void),
        (ffi::Py_mp_subscript, super::index::get as *mut c_void),
        (ffi::Py_mp_ass_subscript, super::index::set as *mut c_void),
    ];
    pairs.into_iter().map(|(id, f)| slot(id, f)).collect()
}
