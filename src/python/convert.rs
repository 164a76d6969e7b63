//! Conversion of a Python value: numbers, lists of numbers, lists of tensors.
//!
//! `None` if the type does not fit, so that the caller can try another conversion or raise; an error if the type fits
//! and the value does not. NumPy scalars count as Python numbers.

use super::error::{PyResult, raised};
use super::object::borrow;
use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use rustgrad::dtype::Scalar;
use rustgrad::op::Ints;
use rustgrad::rt::reserve;

pub fn type_name(o: &Bound<PyAny>) -> String {
    o.get_type().name().map_or_else(|_| "object".into(), |n| n.to_string())
}

/// A Python or NumPy number; `None` for anything else. Integers beyond 64 bits are an error.
pub fn to_scalar(o: &Bound<PyAny>) -> PyResult<Option<Scalar>> {
    match python_scalar(o)? {
        None => match super::lent::fixed(o) {
            Some(plain) => python_scalar(&plain),
            None => numpy_scalar(o),
        },
        found => Ok(found),
    }
}

#[inline]
fn python_scalar(o: &Bound<PyAny>) -> PyResult<Option<Scalar>> {
    let p = o.as_ptr();
    // SAFETY: `p` is a live object; the checks and conversions follow its type.
    unsafe {
        if ffi::PyFloat_Check(p) != 0 {
            return Ok(Some(Scalar::Float(ffi::PyFloat_AS_DOUBLE(p))));
        }
        if ffi::PyBool_Check(p) != 0 {
            return Ok(Some(Scalar::Bool(p == ffi::Py_True())));
        }
        if ffi::PyLong_Check(p) != 0 {
            return long_scalar(o).map(Some);
        }
        if ffi::PyComplex_Check(p) != 0 {
            return Ok(Some(Scalar::Complex(ffi::PyComplex_RealAsDouble(p), ffi::PyComplex_ImagAsDouble(p))));
        }
    }
    Ok(None)
}

fn long_scalar(o: &Bound<PyAny>) -> PyResult<Scalar> {
    let mut overflow = 0;
    // SAFETY: `o` is an int.
    let v = unsafe { ffi::PyLong_AsLongLongAndOverflow(o.as_ptr(), &raw mut overflow) };
    if overflow == 0 {
        return Ok(Scalar::Int(v));
    }
    match o.extract::<u64>() {
        Ok(u) => Ok(Scalar::UInt(u)),
        Err(_) => Err(raised::<PyOverflowError>("Overflow when unpacking long: the number must fit in 64 bits")),
    }
}

/// NumPy scalars are converted by `item()`; arrays and tensors are not handled here.
fn numpy_scalar(o: &Bound<PyAny>) -> PyResult<Option<Scalar>> {
    let t = o.get_type();
    if !t.module().is_ok_and(|m| m == "numpy") || t.name().is_ok_and(|n| n == "ndarray") || !o.hasattr("item")? {
        return Ok(None);
    }
    // Only results of Python's own types: `item()` of some NumPy scalars returns a NumPy scalar again.
    python_scalar(&o.call_method0("item")?)
}

/// A number, or the value of a 0-d tensor that does not require grad.
pub fn to_scalar_or_item(o: &Bound<PyAny>) -> PyResult<Option<Scalar>> {
    if let Some(s) = to_scalar(o)? {
        return Ok(Some(s));
    }
    match borrow(o.as_ptr()) {
        Some(t) if t.ndim() == 0 && !t.requires_grad() => Ok(Some(super::export::item(t)?)),
        _ => Ok(None),
    }
}

/// A tensor with dimensions, which does not count as a number even with one element.
pub fn is_list_like(o: &Bound<PyAny>) -> bool {
    borrow(o.as_ptr()).is_some_and(|t| t.ndim() > 0)
}

pub fn is_int(o: &Bound<PyAny>) -> bool {
    // SAFETY: `o` is a live object.
    unsafe {
        ffi::PyLong_Check(o.as_ptr()) != 0 || (ffi::PyIndex_Check(o.as_ptr()) != 0 && borrow(o.as_ptr()).is_none())
    }
}

/// An object of the exact type int that fits 64 bits.
#[inline]
pub fn exact_int(o: &Bound<PyAny>) -> Option<i64> {
    let mut overflow = 0;
    // SAFETY: `o` is a live object, and an int where it is read.
    unsafe {
        if ffi::PyLong_CheckExact(o.as_ptr()) == 0 {
            return None;
        }
        Some(ffi::PyLong_AsLongLongAndOverflow(o.as_ptr(), &raw mut overflow)).filter(|_| overflow == 0)
    }
}

/// An int (not a bool), anything with `__index__`, or a 0-d integer tensor.
pub fn to_int(o: &Bound<PyAny>) -> PyResult<Option<i64>> {
    let p = o.as_ptr();
    // SAFETY: `p` is a live object.
    let (long, boolean) = unsafe { (ffi::PyLong_Check(p) != 0, ffi::PyBool_Check(p) != 0) };
    if boolean {
        return Ok(None);
    }
    if long {
        return match long_scalar(o)? {
            Scalar::Int(i) => Ok(Some(i)),
            _ => Err(raised::<PyOverflowError>("Overflow when unpacking long: the number must fit in 64 bits")),
        };
    }
    if let Some(t) = borrow(p) {
        let whole = t.numel() == 1 && t.dtype().is_int();
        return if whole { Ok(Some(super::export::item(t)?.to_i64())) } else { Ok(None) };
    }
    // SAFETY: as above.
    if unsafe { ffi::PyIndex_Check(p) } != 0 { Ok(Some(o.extract::<i64>()?)) } else { Ok(None) }
}

pub fn to_bool(o: &Bound<PyAny>) -> Option<bool> {
    // SAFETY: `o` is a live object.
    if unsafe { ffi::PyBool_Check(o.as_ptr()) } != 0 {
        return Some(o.is_truthy().unwrap_or(false));
    }
    match numpy_scalar(o) {
        Ok(Some(Scalar::Bool(b))) => Some(b),
        _ => None,
    }
}

/// The items of a list or tuple.
fn sequence<'py>(o: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    if let Ok(list) = o.cast_exact::<PyList>() {
        return Some(list.iter().collect());
    }
    if let Ok(tuple) = o.cast_exact::<PyTuple>() {
        return Some(tuple.iter().collect());
    }
    // SAFETY: `o` is a live object.
    let fits = unsafe { ffi::PyList_Check(o.as_ptr()) != 0 || ffi::PyTuple_Check(o.as_ptr()) != 0 };
    if !fits {
        return None;
    }
    // A subclass may have an order of its own.
    o.try_iter().ok()?.collect::<pyo3::PyResult<Vec<_>>>().ok()
}

pub fn int_list(o: &Bound<PyAny>) -> PyResult<Option<Ints>> {
    let Some(items) = sequence(o) else { return Ok(None) };
    items.iter().map(to_int).collect::<PyResult<Option<Ints>>>()
}
pub fn scalar_list(o: &Bound<PyAny>) -> PyResult<Option<Vec<Scalar>>> {
    let Some(items) = sequence(o) else { return Ok(None) };
    items.iter().map(to_scalar_or_item).collect()
}
pub fn tensor_list(o: &Bound<PyAny>, holes: bool) -> PyResult<Option<Vec<Option<rustgrad::tensor::Tensor>>>> {
    let Some(items) = sequence(o) else { return Ok(None) };
    let mut tensors = reserve::room(items.len())?;
    for item in &items {
        match borrow(item.as_ptr()) {
            None if !(holes && item.is_none()) => return Ok(None),
            t => tensors.push(t.cloned()),
        }
    }
    Ok(Some(tensors))
}
