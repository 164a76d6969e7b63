//! The number, comparison and item slots of `Tensor`: straight to dispatch, without a lookup by name.

use super::error::guard_object;
use super::object::{borrow, is_tensor, slot, wrap};
use super::overrides;
use super::values::{to_scalar, type_name};
use crate::dispatch;
use crate::dtype::{Category, Scalar};
use crate::op::{Args, Op, Outputs, Value};
use crate::place;
use crate::tensor::Tensor;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// Python's binary operators: the op, what a number on the left calls (`""`: the same op, number first), and the method
/// for the tensor on the right.
const BINARY: [(&str, &str, &str); 12] = [
    ("add", "add~", "__radd__"),
    ("sub", "rsub~", "__rsub__"),
    ("mul", "mul~", "__rmul__"),
    ("div", "rdiv", "__rtruediv__"),
    ("floor_divide", "floor_divide.scalar", "__rfloordiv__"),
    ("remainder", "remainder.scalar", "__rmod__"),
    ("matmul", "", "__rmatmul__"),
    ("bitwise_and", "bitwise_and~", "__rand__"),
    ("bitwise_or", "bitwise_or~", "__ror__"),
    ("bitwise_xor", "bitwise_xor~", "__rxor__"),
    ("bitwise_left_shift", "bitwise_left_shift.scalar", "__rlshift__"),
    ("bitwise_right_shift", "bitwise_right_shift.scalar", "__rrshift__"),
];
const UNARY: [&str; 4] = ["neg", "positive", "abs", "bitwise_not"];
const COMPARE: [&str; 6] = ["lt", "le", "eq", "ne", "gt", "ge"];

struct Slots {
    binary: Vec<Option<Operator>>,
    unary: Vec<Option<&'static Op>>,
    compare: Vec<Option<&'static Op>>,
    pow: Option<Operator>,
    reciprocal: Option<&'static Op>,
    mul: Option<&'static Op>,
}

/// The overloads behind one operator. A number on the right has its own op where PyTorch names its node differently.
struct Operator {
    tensor: &'static Op,
    number: &'static Op,
    reflected: Reflected,
}

enum Reflected {
    /// The tensor stays first: commutative, or an op made for it (`rsub`).
    Swapped(&'static Op),
    NumberFirst(&'static Op),
    Reciprocal,
}

impl Operator {
    fn of(&self, right: &Operand) -> &'static Op {
        if right.is_tensor() { self.tensor } else { self.number }
    }
}

static SLOTS: OnceLock<Slots> = OnceLock::new();

fn find(name: &str) -> Option<&'static Op> {
    crate::ops::all().find(|op| op.name() == name)
}

fn slots() -> &'static Slots {
    SLOTS.get_or_init(|| {
        let binary = |&(name, reflected, _): &(&str, &str, &str)| {
            let tensor = find(name)?;
            let reflected = match (reflected, reflected.strip_suffix('~')) {
                ("rdiv", _) => Reflected::Reciprocal,
                (_, Some(n)) => Reflected::Swapped(find(n)?),
                ("", _) => Reflected::NumberFirst(tensor),
                (n, _) => Reflected::NumberFirst(find(n)?),
            };
            Some(Operator { tensor, number: find(&format!("{name}.number")).unwrap_or(tensor), reflected })
        };
        let power = || {
            let reflected = Reflected::NumberFirst(find("pow.scalar")?);
            Some(Operator { tensor: find("pow.tensor")?, number: find("pow")?, reflected })
        };
        Slots {
            binary: BINARY.iter().map(binary).collect(),
            unary: UNARY.iter().map(|n| find(n)).collect(),
            compare: COMPARE.iter().map(|n| find(n)).collect(),
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

/// One side of an operator: small, and read as it was written, which a moved `Value` is not (the processor then waits
/// for its own stores).
#[derive(Clone, Copy)]
enum Operand<'a> {
    Tensor(&'a Tensor),
    Number(Scalar),
}

impl Operand<'_> {
    fn is_tensor(&self) -> bool {
        matches!(self, Operand::Tensor(_))
    }
}

/// A tensor or number operand; anything else leaves the operator to the other side.
#[inline]
fn operand<'a>(py: Python<'a>, o: *mut PyObject) -> PyResult<Option<Operand<'a>>> {
    if let Some(t) = borrow(o) {
        return Ok(Some(Operand::Tensor(t)));
    }
    // SAFETY: a live operand of the slot's caller.
    let o = unsafe { Borrowed::from_ptr(py, o) };
    Ok(to_scalar(&o)?.map(Operand::Number))
}

fn fill<'a>(op: &'static Op, operands: &[Operand<'a>], args: &mut Args<'a>) -> PyResult<()> {
    for o in operands {
        match *o {
            Operand::Tensor(t) => place::push(args, || Value::Tensor(t)),
            Operand::Number(s) => place::push(args, || Value::Scalar(s)),
        }
    }
    Ok(dispatch::complete(op, args)?)
}

fn call(py: Python, op: &'static Op, operands: &[Operand]) -> PyResult<*mut PyObject> {
    let mut args = Args::new();
    fill(op, operands, &mut args)?;
    let mut out = Outputs::new();
    super::callable::unlocked(py, &args, || dispatch::call_into(op, &args, &mut out))?;
    wrap(py, out.swap_remove(0))
}

fn change(py: Python, op: &'static Op, operands: &[Operand]) -> PyResult<*mut PyObject> {
    let mut args = Args::new();
    fill(op, operands, &mut args)?;
    wrap(py, super::callable::unlocked(py, &args, || dispatch::call_inplace(op, &args))?)
}

/// The answer of a class that takes an operator over, by the methods for the tensor on the left and on the right.
#[cold]
fn taken(py: Python, [left, right]: [&str; 2], a: *mut PyObject, b: *mut PyObject) -> PyResult<Option<*mut PyObject>> {
    if is_tensor(a) { overrides::slot(py, left, &[a, b]) } else { overrides::slot(py, right, &[b, a]) }
}

unsafe extern "C" fn binary<const I: usize>(a: *mut PyObject, b: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        let methods = [BINARY[I].0, BINARY[I].2];
        if overrides::active()
            && let Some(answer) = taken(py, methods, a, b)?
        {
            return Ok(answer);
        }
        let (Some(x), Some(y), Some(operator)) = (operand(py, a)?, operand(py, b)?, &slots().binary[I]) else {
            return Ok(taken(py, methods, a, b)?.unwrap_or_else(not_implemented));
        };
        if x.is_tensor() {
            return call(py, operator.of(&y), &[x, y]);
        }
        match operator.reflected {
            Reflected::Swapped(op) => call(py, op, &[y, x]),
            Reflected::NumberFirst(op) if op.signature().params[0].kind == crate::op::Kind::Tensor => {
                Ok(not_implemented())
            }
            Reflected::NumberFirst(op) => call(py, op, &[x, y]),
            Reflected::Reciprocal => {
                let s = slots();
                let (Some(r), Some(mul)) = (s.reciprocal, s.mul) else { return Ok(not_implemented()) };
                let Operand::Tensor(y) = y else { return Ok(not_implemented()) };
                let inverse = r.call((y,)).ok()?;
                call(py, mul, &[Operand::Tensor(&inverse), x])
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
        let (Some(x), Some(y), Some(operator)) = (operand(py, a)?, operand(py, b)?, &slots().binary[I]) else {
            return Ok(not_implemented());
        };
        change(py, operator.of(&y), &[x, y])
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
        let (Some(x), Some(y), Some(operator)) = (operand(py, a)?, operand(py, b)?, &slots().pow) else {
            return Ok(taken(py, methods, a, b)?.unwrap_or_else(not_implemented));
        };
        match operator.reflected {
            Reflected::NumberFirst(op) if !x.is_tensor() => call(py, op, &[x, y]),
            _ => call(py, operator.of(&y), &[x, y]),
        }
    })
}

unsafe extern "C" fn inplace_power(a: *mut PyObject, b: *mut PyObject, _modulo: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        if overrides::active()
            && let Some(answer) = overrides::slot(py, "pow_", &[a, b])?
        {
            return Ok(answer);
        }
        let (Some(x), Some(y), Some(operator)) = (operand(py, a)?, operand(py, b)?, &slots().pow) else {
            return Ok(not_implemented());
        };
        change(py, operator.of(&y), &[x, y])
    })
}

unsafe extern "C" fn unary<const I: usize>(a: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        if overrides::active()
            && let Some(answer) = overrides::slot(py, UNARY[I], &[a])?
        {
            return Ok(answer);
        }
        match (operand(py, a)?, slots().unary[I]) {
            (Some(Operand::Tensor(t)), Some(_))
                if UNARY[I] == "bitwise_not" && t.dtype().category() > Category::Int =>
            {
                Err(PyTypeError::new_err("~ (operator.invert) is only implemented on integer and Boolean-type tensors"))
            }
            (Some(x), Some(op)) => call(py, op, &[x]),
            _ => Ok(not_implemented()),
        }
    })
}

unsafe extern "C" fn compare(a: *mut PyObject, b: *mut PyObject, which: c_int) -> *mut PyObject {
    guard_object(|py| {
        let method = COMPARE[which as usize];
        if overrides::active()
            && let Some(answer) = overrides::slot(py, method, &[a, b])?
        {
            return Ok(answer);
        }
        let (Some(x), Some(op)) = (operand(py, a)?, slots().compare[which as usize]) else {
            return Ok(not_implemented());
        };
        if let Some(y) = operand(py, b)? {
            return call(py, op, &[x, y]);
        }
        // SAFETY: a live operand of the slot's caller.
        let other = unsafe { Bound::from_borrowed_ptr(py, b) };
        // NumPy leaves comparing to the tensor; as in PyTorch only == knows arrays.
        if which == ffi::Py_EQ
            && type_name(&other) == "ndarray"
            && let Ok(array) = super::construct::from_numpy(&other)
        {
            return call(py, op, &[x, Operand::Tensor(&array.0)]);
        }
        Ok(overrides::slot(py, method, &[a, b])?.unwrap_or_else(not_implemented))
    })
}

/// Tensors hash by identity: `==` compares elements, and a dict of parameters must work.
unsafe extern "C" fn hash(o: *mut PyObject) -> ffi::Py_hash_t {
    borrow(o).map_or(0, |t| (t.id() >> 4) as ffi::Py_hash_t)
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
