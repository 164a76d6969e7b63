//! What a recorded function returned, to be built again of the results of a plan.

use super::convert::type_name;
use super::error::PyResult;
use super::export::scalar_object;
use super::lent::Returned;
use super::object::{borrow, wrap_bound};
use super::values::is_value;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use rustgrad::compile::{Arithmetic, Number, Numbers};
use rustgrad::error::Error;
use rustgrad::tensor::Tensor;

/// What a function returned, with its tensors by number.
pub enum Tree {
    Tensor(usize),
    Value(Py<PyAny>),
    /// A number that differs from run to run.
    Number(Number),
    Tuple(Vec<Tree>),
    List(Vec<Tree>),
    Dict(Vec<(Py<PyAny>, Tree)>),
}

impl Tree {
    /// `lent` are the numbers that the call was given or has read.
    pub fn of(o: &Bound<PyAny>, lent: &Returned, found: &mut Vec<Tensor>) -> Result<Tree, String> {
        if let Some(t) = borrow(o.as_ptr()) {
            found.push(t.clone());
            return Ok(Tree::Tensor(found.len() - 1));
        }
        if let Some(number) = lent.number(o) {
            return Ok(Tree::Number(number.clone()));
        }
        if let Ok(items) = o.cast_exact::<PyTuple>() {
            return Ok(Tree::Tuple(items.iter().map(|i| Tree::of(&i, lent, found)).collect::<Result<_, _>>()?));
        }
        if let Ok(items) = o.cast_exact::<PyList>() {
            return Ok(Tree::List(items.iter().map(|i| Tree::of(&i, lent, found)).collect::<Result<_, _>>()?));
        }
        if let Ok(items) = o.cast_exact::<PyDict>() {
            let one = |(k, v): (Bound<PyAny>, Bound<PyAny>)| match is_value(&k) {
                true => Ok((k.unbind(), Tree::of(&v, lent, found)?)),
                false => Err(format!("it returns a dict with a key of type {}", type_name(&k))),
            };
            return Ok(Tree::Dict(items.iter().map(one).collect::<Result<_, _>>()?));
        }
        match is_value(o) {
            true => Ok(Tree::Value(o.clone().unbind())),
            false => Err(format!("it returns an object of type {}", type_name(o))),
        }
    }
    /// The numbers in it.
    pub fn numbers<'a>(&'a self, each: &mut dyn FnMut(&'a Number)) {
        match self {
            Tree::Number(n) => each(n),
            Tree::Tuple(items) | Tree::List(items) => items.iter().for_each(|i| i.numbers(each)),
            Tree::Dict(items) => items.iter().for_each(|(_, v)| v.numbers(each)),
            Tree::Tensor(_) | Tree::Value(_) => {}
        }
    }
    pub fn build<'py>(&self, py: Python<'py>, tensors: &[Tensor], numbers: Numbers) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Tree::Tensor(i) => wrap_bound(py, tensors[*i].clone())?,
            Tree::Value(v) => v.bind(py).clone(),
            Tree::Number(n) => object(py, n, numbers)?,
            Tree::Tuple(items) => {
                let items = items.iter().map(|i| i.build(py, tensors, numbers)).collect::<PyResult<Vec<_>>>()?;
                PyTuple::new(py, items)?.into_any()
            }
            Tree::List(items) => {
                let items = items.iter().map(|i| i.build(py, tensors, numbers)).collect::<PyResult<Vec<_>>>()?;
                PyList::new(py, items)?.into_any()
            }
            Tree::Dict(items) => {
                let dict = PyDict::new(py);
                for (k, v) in items {
                    dict.set_item(k, v.build(py, tensors, numbers)?)?;
                }
                dict.into_any()
            }
        })
    }
    pub fn visit(&self, visit: &PyVisit) -> Result<(), PyTraverseError> {
        match self {
            Tree::Tensor(_) | Tree::Number(_) => Ok(()),
            Tree::Value(v) => visit.call(v),
            Tree::Tuple(items) | Tree::List(items) => items.iter().try_for_each(|i| i.visit(visit)),
            Tree::Dict(items) => items.iter().try_for_each(|(k, v)| visit.call(k).and_then(|()| v.visit(visit))),
        }
    }
}

/// A number of a run as Python's.
fn object<'py>(py: Python<'py>, number: &Number, numbers: Numbers) -> PyResult<Bound<'py, PyAny>> {
    if let Some(s) = number.now(numbers) {
        return scalar_object(py, s);
    }
    // An int that has left 64 bits.
    let of = |n: &Number| object(py, n, numbers);
    match number {
        Number::Negative(n) => Ok(of(n)?.neg()?),
        Number::Absolute(n) => Ok(of(n)?.abs()?),
        Number::Float(n) => Ok(of(n)?.call_method0("__float__")?),
        Number::Binary(Arithmetic::Add, a, b) => Ok(of(a)?.add(of(b)?)?),
        Number::Binary(Arithmetic::Subtract, a, b) => Ok(of(a)?.sub(of(b)?)?),
        Number::Binary(Arithmetic::Multiply, a, b) => Ok(of(a)?.mul(of(b)?)?),
        Number::Binary(Arithmetic::Divide, a, b) => Ok(of(a)?.div(of(b)?)?),
        _ => Err(Error::internal("a plan lacks one of its numbers").into()),
    }
}
