//! Arguments of an op, parsed from Python or given from Rust.

use super::choice::{Choice, Enumerated};
use super::generator::Generator;
use super::signature::{Default, Param, Signature};
use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::layout::Format;
use crate::rt::emplace;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::borrow::Cow;
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

/// Access to arguments by position. A wrong kind is a mistake in the op's declaration, hence an internal error.
pub trait Arguments {
    fn arguments(&self) -> &[Value<'_>];

    fn tensor(&self, i: usize) -> Result<&Tensor> {
        self.arguments()[i].as_tensor().ok_or_else(|| wrong(i, "a tensor"))
    }
    fn opt_tensor(&self, i: usize) -> Option<&Tensor> {
        self.arguments()[i].as_tensor()
    }
    /// A list of tensors; `None` items are skipped.
    fn tensors(&self, i: usize) -> Vec<Tensor> {
        self.arguments()[i].tensors().cloned().collect()
    }
    fn scalar(&self, i: usize) -> Result<Scalar> {
        self.opt_scalar(i).ok_or_else(|| wrong(i, "a number"))
    }
    fn opt_scalar(&self, i: usize) -> Option<Scalar> {
        match &self.arguments()[i] {
            Value::Scalar(s) => Some(*s),
            _ => None,
        }
    }
    fn int(&self, i: usize) -> Result<i64> {
        Ok(self.scalar(i)?.to_i64())
    }
    fn opt_int(&self, i: usize) -> Option<i64> {
        self.opt_scalar(i).map(Scalar::to_i64)
    }
    fn float(&self, i: usize) -> Result<f64> {
        let s = self.scalar(i)?;
        s.check_fits(DType::F64).map(|()| s.to_f64())
    }
    fn opt_float(&self, i: usize) -> Option<f64> {
        self.opt_scalar(i).map(Scalar::to_f64)
    }
    fn flag(&self, i: usize) -> bool {
        self.opt_scalar(i).is_some_and(Scalar::to_bool)
    }
    fn ints(&self, i: usize) -> Result<&[i64]> {
        self.opt_ints(i).ok_or_else(|| wrong(i, "a list of ints"))
    }
    fn opt_ints(&self, i: usize) -> Option<&[i64]> {
        match &self.arguments()[i] {
            Value::Ints(v) => Some(v),
            _ => None,
        }
    }
    fn dtype(&self, i: usize) -> Option<DType> {
        match &self.arguments()[i] {
            Value::DType(d) => Some(*d),
            _ => None,
        }
    }
    fn device(&self, i: usize) -> Option<Device> {
        match &self.arguments()[i] {
            Value::Device(d) => Some(*d),
            _ => None,
        }
    }
    fn format(&self, i: usize) -> Option<Format> {
        match &self.arguments()[i] {
            Value::Format(f) => Some(*f),
            _ => None,
        }
    }
    fn str(&self, i: usize) -> Option<&str> {
        match &self.arguments()[i] {
            Value::Str(s) => Some(s),
            Value::Choice(c) => Some(c.name),
            _ => None,
        }
    }
    /// An enumerated string as a Rust enum.
    fn choice<T: Enumerated>(&self, i: usize) -> T
    where
        Self: Sized,
    {
        self.opt_choice(i)
            .unwrap_or_else(|| panic!("argument {i}: expected one of the strings that the signature lists"))
    }
    fn opt_choice<T: Enumerated>(&self, i: usize) -> Option<T>
    where
        Self: Sized,
    {
        match &self.arguments()[i] {
            Value::Choice(c) => Some(T::of(*c)),
            _ => None,
        }
    }
    fn generator(&self, i: usize) -> Option<&Arc<Generator>> {
        match &self.arguments()[i] {
            Value::Generator(g) => Some(g),
            _ => None,
        }
    }
}

#[cold]
fn wrong(i: usize, expected: &str) -> Error {
    Error::internal(format!("argument {i}: expected {expected}"))
}

impl Arguments for [Value<'_>] {
    fn arguments(&self) -> &[Value<'_>] {
        self
    }
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
