//! `Term`: a tensor in a formula, or an error. Operators and methods on terms are op calls, so that a gradient reads
//! like mathematics: `c.g() * (1.0 - c.out(0).square())`. An error propagates to the end.
//!
//! Methods beyond the operators are defined beside their ops (`impl Term` blocks in `ops/`).

use super::value::{Args, Value};
use crate::error::{Error, Result};
use crate::tensor::Tensor;

pub struct Term(pub Result<Tensor>);

impl From<&Tensor> for Term {
    fn from(t: &Tensor) -> Term {
        Term(Ok(t.clone()))
    }
}
impl From<Tensor> for Term {
    fn from(t: Tensor) -> Term {
        Term(Ok(t))
    }
}
impl From<Error> for Term {
    fn from(e: Error) -> Term {
        Term(Err(e))
    }
}

impl Term {
    pub fn ok(self) -> Result<Tensor> {
        self.0
    }
    pub fn get(&self) -> Option<&Tensor> {
        self.0.as_ref().ok()
    }
    pub fn outputs(self) -> Result<super::Outputs> {
        self.0.map(|t| smallvec::smallvec![t])
    }
    pub fn is_complex(&self) -> bool {
        self.get().is_some_and(|t| t.dtype().is_complex())
    }
    pub fn ndim(&self) -> usize {
        self.get().map_or(0, |t| t.ndim())
    }
    pub fn sizes(&self) -> super::Ints {
        self.get().map(|t| t.shape().iter().map(|&d| d as i64).collect()).unwrap_or_default()
    }
}

impl Clone for Term {
    /// A failed term's copy carries the error.
    fn clone(&self) -> Term {
        Term(match &self.0 {
            Ok(t) => Ok(t.clone()),
            Err(e) => Err(Error::new(e.class(), e.to_string())),
        })
    }
}

/// A value that can be an argument of a call from Rust.
pub trait IntoArg<'a> {
    fn into_arg(self) -> Result<Value<'a>>;
}
impl<'a, T: Into<Value<'a>>> IntoArg<'a> for T {
    fn into_arg(self) -> Result<Value<'a>> {
        Ok(self.into())
    }
}
impl<'a> IntoArg<'a> for Term {
    fn into_arg(self) -> Result<Value<'a>> {
        self.0.map(Value::Owned)
    }
}
impl<'a> IntoArg<'a> for &Term {
    fn into_arg(self) -> Result<Value<'a>> {
        self.clone().into_arg()
    }
}

/// A tuple of arguments; omitted trailing ones take their defaults.
pub trait IntoArgs<'a> {
    fn into_args(self) -> Result<Args<'a>>;
}
impl<'a, A: IntoArg<'a>> IntoArgs<'a> for (A,) {
    fn into_args(self) -> Result<Args<'a>> {
        Ok(smallvec::smallvec![self.0.into_arg()?])
    }
}
impl<'a, A: IntoArg<'a>, B: IntoArg<'a>> IntoArgs<'a> for (A, B) {
    fn into_args(self) -> Result<Args<'a>> {
        Ok(smallvec::smallvec![self.0.into_arg()?, self.1.into_arg()?])
    }
}
impl<'a, A: IntoArg<'a>, B: IntoArg<'a>, C: IntoArg<'a>> IntoArgs<'a> for (A, B, C) {
    fn into_args(self) -> Result<Args<'a>> {
        Ok(smallvec::smallvec![self.0.into_arg()?, self.1.into_arg()?, self.2.into_arg()?])
    }
}
impl<'a, A: IntoArg<'a>, B: IntoArg<'a>, C: IntoArg<'a>, D: IntoArg<'a>> IntoArgs<'a> for (A, B, C, D) {
    fn into_args(self) -> Result<Args<'a>> {
        Ok(smallvec::smallvec![self.0.into_arg()?, self.1.into_arg()?, self.2.into_arg()?, self.3.into_arg()?])
    }
}
impl<'a, A: IntoArg<'a>, B: IntoArg<'a>, C: IntoArg<'a>, D: IntoArg<'a>, E: IntoArg<'a>> IntoArgs<'a>
    for (A, B, C, D, E)
{
    fn into_args(self) -> Result<Args<'a>> {
        let (a, b, c, d, e) = self;
        Ok(smallvec::smallvec![a.into_arg()?, b.into_arg()?, c.into_arg()?, d.into_arg()?, e.into_arg()?])
    }
}
impl<'a> IntoArgs<'a> for Args<'a> {
    fn into_args(self) -> Result<Args<'a>> {
        Ok(self)
    }
}
