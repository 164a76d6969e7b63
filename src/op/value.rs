//! Arguments of an op, parsed from Python or given from Rust.

use super::Op;
use super::choice::{Choice, Enumerated};
use super::generator::Generator;
use super::scan::Span;
use super::signature::{Default, Param, Signature, digest};
use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::layout::Format;
use crate::rt::emplace;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;

pub type Ints = SmallVec<[i64; 5]>;

/// One parsed argument. Tensors of a Python call are borrowed from their objects.
#[derive(Clone, std::default::Default)]
pub enum Value<'a> {
    #[default]
    None,
    Tensor(&'a Tensor),
    Owned(Tensor),
    Tensors(Vec<Option<Tensor>>),
    Scalar(Scalar),
    Ints(Ints),
    Scalars(Vec<Scalar>),
    DType(DType),
    Device(Device),
    Format(Format),
    Str(Cow<'static, str>),
    /// One of the strings that the signature lists.
    Choice(Choice),
    Generator(Arc<Generator>),
}

pub type Args<'a> = SmallVec<[Value<'a>; 6]>;
/// What an op returns: nearly always one tensor.
pub type Outputs = SmallVec<[Tensor; 1]>;

/// Adds the default of a parameter that was left out; false where it has none.
#[inline]
pub fn push_default(args: &mut Args, sig: &Signature, p: &Param) -> bool {
    match p.default {
        Some(Default::None) => emplace::push(args, || Value::None),
        Some(Default::Int(i)) => emplace::push(args, || Value::Scalar(Scalar::Int(i))),
        Some(Default::Bool(b)) => emplace::push(args, || Value::Scalar(Scalar::Bool(b))),
        Some(Default::Float(f)) => emplace::push(args, || Value::Scalar(Scalar::Float(f))),
        None => return false,
        Some(_) => args.extend(p.default_value(sig)),
    }
    true
}

impl<'a> Value<'a> {
    #[inline]
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Value::Tensor(t) => Some(t),
            Value::Owned(t) => Some(t),
            _ => None,
        }
    }
    pub fn is_none(&self) -> bool {
        matches!(self, Value::None)
    }
    /// The items of a list of tensors.
    pub fn list(&self) -> &[Option<Tensor>] {
        match self {
            Value::Tensors(list) => list,
            _ => &[],
        }
    }
    /// Whether any tensor in this argument satisfies `test`. Hot path: avoids the iterator of `tensors()`.
    #[inline]
    pub fn any_tensor(&self, test: impl FnMut(&Tensor) -> bool) -> bool {
        match self {
            Value::Tensors(list) => list.iter().flatten().any(test),
            v => v.as_tensor().is_some_and(test),
        }
    }
    /// The tensors in this argument, one or a list.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        let (one, many): (Option<&Tensor>, &[Option<Tensor>]) = match self {
            Value::Tensors(v) => (None, v),
            v => (v.as_tensor(), &[]),
        };
        one.into_iter().chain(many.iter().flatten())
    }
    /// Takes ownership of its tensors, so that it can outlive the call.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::None => Value::None,
            Value::Tensor(t) => Value::Owned(t.clone()),
            Value::Owned(t) => Value::Owned(t),
            Value::Tensors(v) => Value::Tensors(v),
            Value::Scalar(s) => Value::Scalar(s),
            Value::Ints(v) => Value::Ints(v),
            Value::Scalars(v) => Value::Scalars(v),
            Value::DType(d) => Value::DType(d),
            Value::Device(d) => Value::Device(d),
            Value::Format(f) => Value::Format(f),
            Value::Str(s) => Value::Str(s),
            Value::Choice(c) => Value::Choice(c),
            Value::Generator(g) => Value::Generator(g),
        }
    }
    /// A value with a shorter lifetime, to pass on.
    pub fn reborrow(&self) -> Value<'_> {
        match self {
            Value::Tensor(t) => Value::Tensor(t),
            Value::Owned(t) => Value::Tensor(t),
            other => other.clone(),
        }
    }
}

/// Which argument: its name in the op's signature, or its position.
///
/// A name is found by its digest, a constant where the name is a literal. `tests/test_argument_names.py` reads every name
/// that an op's functions use; a build with debug assertions checks those that it meets.
pub trait Key: Copy + Display {
    fn position(self, sig: &Signature) -> usize;
}

impl Key for usize {
    #[inline(always)]
    fn position(self, _: &Signature) -> usize {
        self
    }
}

impl Key for &str {
    #[inline(always)]
    fn position(self, sig: &Signature) -> usize {
        let i = sig.position_of(digest(self.as_bytes(), Span::new(0, self.len())));
        debug_assert!(
            sig.params().get(i).is_some_and(|p| p.name(sig) == self),
            "{}: no parameter '{self}'",
            sig.name()
        );
        i
    }
}

/// Access to arguments by name or position. A wrong kind is a mistake in the op's declaration, hence an internal error.
pub trait Arguments {
    fn arguments(&self) -> &[Value<'_>];
    fn op(&self) -> &'static Op;

    /// The value of an argument; of one that the op does not have, `None`.
    #[inline(always)]
    fn argument(&self, key: impl Key) -> &Value<'_> {
        self.arguments().get(key.position(&self.op().sig)).unwrap_or(&Value::None)
    }
    fn tensor(&self, key: impl Key) -> Result<&Tensor> {
        self.argument(key).as_tensor().ok_or_else(|| wrong(self.op(), key, "a tensor"))
    }
    fn opt_tensor(&self, key: impl Key) -> Option<&Tensor> {
        self.argument(key).as_tensor()
    }
    /// A list of tensors; `None` items are skipped.
    fn tensors(&self, key: impl Key) -> Vec<Tensor> {
        self.argument(key).tensors().cloned().collect()
    }
    fn scalar(&self, key: impl Key) -> Result<Scalar> {
        self.opt_scalar(key).ok_or_else(|| wrong(self.op(), key, "a number"))
    }
    fn opt_scalar(&self, key: impl Key) -> Option<Scalar> {
        match self.argument(key) {
            Value::Scalar(s) => Some(*s),
            _ => None,
        }
    }
    fn int(&self, key: impl Key) -> Result<i64> {
        Ok(self.scalar(key)?.to_i64())
    }
    fn opt_int(&self, key: impl Key) -> Option<i64> {
        self.opt_scalar(key).map(Scalar::to_i64)
    }
    fn float(&self, key: impl Key) -> Result<f64> {
        let s = self.scalar(key)?;
        s.check_fits(DType::F64).map(|()| s.to_f64())
    }
    fn opt_float(&self, key: impl Key) -> Option<f64> {
        self.opt_scalar(key).map(Scalar::to_f64)
    }
    fn flag(&self, key: impl Key) -> bool {
        self.opt_scalar(key).is_some_and(Scalar::to_bool)
    }
    fn ints(&self, key: impl Key) -> Result<&[i64]> {
        self.opt_ints(key).ok_or_else(|| wrong(self.op(), key, "a list of ints"))
    }
    fn opt_ints(&self, key: impl Key) -> Option<&[i64]> {
        match self.argument(key) {
            Value::Ints(v) => Some(v),
            _ => None,
        }
    }
    fn dtype(&self, key: impl Key) -> Option<DType> {
        match self.argument(key) {
            Value::DType(d) => Some(*d),
            _ => None,
        }
    }
    fn device(&self, key: impl Key) -> Option<Device> {
        match self.argument(key) {
            Value::Device(d) => Some(*d),
            _ => None,
        }
    }
    fn format(&self, key: impl Key) -> Option<Format> {
        match self.argument(key) {
            Value::Format(f) => Some(*f),
            _ => None,
        }
    }
    fn str(&self, key: impl Key) -> Option<&str> {
        match self.argument(key) {
            Value::Str(s) => Some(s),
            Value::Choice(c) => Some(c.name),
            _ => None,
        }
    }
    /// An enumerated string as a Rust enum.
    fn choice<T: Enumerated>(&self, key: impl Key) -> T {
        self.opt_choice(key).unwrap_or_else(|| mismatch(self.op(), key, "one of the strings that the signature lists"))
    }
    fn opt_choice<T: Enumerated>(&self, key: impl Key) -> Option<T> {
        match self.argument(key) {
            Value::Choice(c) => Some(T::of(*c)),
            _ => None,
        }
    }
    fn generator(&self, key: impl Key) -> Option<&Arc<Generator>> {
        match self.argument(key) {
            Value::Generator(g) => Some(g),
            _ => None,
        }
    }
}

#[cold]
fn wrong(op: &Op, key: impl Key, expected: &str) -> Error {
    Error::internal(format!("{}: argument {key}: expected {expected}", op.name()))
}

// --- from Rust values: `SUM.call((&x, dim, keepdim))` ------------------------------------------
impl<'a> From<&'a Tensor> for Value<'a> {
    fn from(t: &'a Tensor) -> Self {
        Value::Tensor(t)
    }
}
impl From<Tensor> for Value<'_> {
    fn from(t: Tensor) -> Self {
        Value::Owned(t)
    }
}
impl From<Scalar> for Value<'_> {
    fn from(s: Scalar) -> Self {
        Value::Scalar(s)
    }
}
impl From<i64> for Value<'_> {
    fn from(i: i64) -> Self {
        Value::Scalar(Scalar::Int(i))
    }
}
impl From<i32> for Value<'_> {
    fn from(i: i32) -> Self {
        Value::Scalar(Scalar::Int(i64::from(i)))
    }
}
impl From<usize> for Value<'_> {
    fn from(i: usize) -> Self {
        Value::Scalar(Scalar::Int(i as i64))
    }
}
impl From<f64> for Value<'_> {
    fn from(f: f64) -> Self {
        Value::Scalar(Scalar::Float(f))
    }
}
impl From<bool> for Value<'_> {
    fn from(b: bool) -> Self {
        Value::Scalar(Scalar::Bool(b))
    }
}
impl From<&[i64]> for Value<'_> {
    fn from(v: &[i64]) -> Self {
        Value::Ints(v.into())
    }
}
impl<const N: usize> From<[i64; N]> for Value<'_> {
    fn from(v: [i64; N]) -> Self {
        Value::Ints(v.as_slice().into())
    }
}
impl From<&[usize]> for Value<'_> {
    fn from(v: &[usize]) -> Self {
        Value::Ints(v.iter().map(|&d| d as i64).collect())
    }
}
impl From<Ints> for Value<'_> {
    fn from(v: Ints) -> Self {
        Value::Ints(v)
    }
}
impl From<Vec<Tensor>> for Value<'_> {
    fn from(v: Vec<Tensor>) -> Self {
        Value::Tensors(v.into_iter().map(Some).collect())
    }
}
impl From<Vec<Option<Tensor>>> for Value<'_> {
    fn from(v: Vec<Option<Tensor>>) -> Self {
        Value::Tensors(v)
    }
}
impl From<DType> for Value<'_> {
    fn from(d: DType) -> Self {
        Value::DType(d)
    }
}
impl From<Device> for Value<'_> {
    fn from(d: Device) -> Self {
        Value::Device(d)
    }
}
impl From<&str> for Value<'_> {
    fn from(s: &str) -> Self {
        Value::Str(s.to_string().into())
    }
}
impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(o: Option<T>) -> Self {
        o.map_or(Value::None, Into::into)
    }
}

/// An argument that is not what its declaration says: a mistake in the op, which no caller can make.
#[cold]
#[track_caller]
pub(super) fn mismatch(op: &Op, key: impl Key, expected: &str) -> ! {
    panic!("{}: argument {key} is not {expected}", op.name())
}
