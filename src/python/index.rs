//! `x[index]` and `x[index] = value`: ints, slices, None and Ellipsis become views; tensors, masks and lists go to the
//! ops `index` and `index_put_`. PyTorch's rules, `torch/csrc/autograd/python_variable_indexing.cpp` being their source.

use super::error::{guard, guard_object};
use super::object::{borrow, wrap};
use super::parse::{to_int, to_scalar, type_name};
use crate::device::Device;
use crate::dtype::DType;
use crate::op::{Op, Value};
use crate::ops::{copy, view};
use crate::tensor::Tensor;
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PySlice, PyTuple};
use std::ffi::c_int;
use std::sync::OnceLock;

/// One part of an index.
enum Part {
    Int(i64),
    Slice(Option<i64>, Option<i64>, i64),
    None,
    Ellipsis,
    Bool(bool),
    Tensor(Tensor),
}

fn parts(key: &Bound<PyAny>) -> PyResult<Vec<Part>> {
    match key.cast::<PyTuple>() {
        Ok(t) => t.iter().map(|o| part(&o)).collect(),
        Err(_) => Ok(vec![part(key)?]),
    }
}

fn part(o: &Bound<PyAny>) -> PyResult<Part> {
    if let Some(t) = borrow(o.as_ptr()) {
        let whole = t.ndim() == 0 && t.dtype().is_int();
        return Ok(if whole { Part::Int(super::export::item(t)?.to_i64()) } else { Part::Tensor(t.clone()) });
    }
    if o.is_none() {
        return Ok(Part::None);
    }
    if o.is_instance_of::<PyEllipsis>() {
        return Ok(Part::Ellipsis);
    }
    if let Ok(s) = o.cast::<PySlice>() {
        let bound = |name: &str| -> PyResult<Option<i64>> {
            let v = s.getattr(name)?;
            if v.is_none() {
                return Ok(None);
            }
            to_int(&v)?.map(Some).ok_or_else(|| {
                PyTypeError::new_err("slice indices must be integers or None or have an __index__ method")
            })
        };
        return Ok(Part::Slice(bound("start")?, bound("stop")?, bound("step")?.unwrap_or(1)));
    }
    // SAFETY: a live object.
    if unsafe { ffi::PyBool_Check(o.as_ptr()) } != 0 {
        return Ok(Part::Bool(o.is_truthy()?));
    }
    if let Some(i) = to_int(o)? {
        return Ok(Part::Int(i));
    }
    let sequence = o.hasattr("__len__")? && !o.is_instance_of::<pyo3::types::PyString>();
    if !sequence {
        return Err(PyIndexError::new_err(format!(
            "only integers, slices (`:`), ellipsis (`...`), None and long, int, byte or bool Variables are valid indices (got {})",
            type_name(o)
        )));
    }
    let t = super::construct::from_data(o, None, Device::Cpu)?;
    // An empty list selects nothing; it has no dtype of its own.
    let t = if t.numel() == 0 && t.dtype().is_float() { Tensor::empty(t.shape(), DType::I64, Device::Cpu)? } else { t };
    Ok(Part::Tensor(t))
}

/// How many dimensions a part takes up.
fn taken(p: &Part) -> usize {
    match p {
        Part::Int(_) | Part::Slice(..) => 1,
        Part::Tensor(t) if matches!(t.dtype(), DType::Bool | DType::U8) => t.ndim(),
        Part::Tensor(_) => 1,
        Part::None | Part::Ellipsis | Part::Bool(_) => 0,
    }
}

/// Applies the parts that are views. What is left are index tensors by dimension of the result.
fn slice(t: &Tensor, parts: &[Part]) -> PyResult<(Tensor, Vec<Option<Tensor>>)> {
    let specified: usize = parts.iter().map(taken).sum();
    if specified > t.ndim() {
        return Err(PyIndexError::new_err(format!("too many indices for tensor of dimension {}", t.ndim())));
    }
    let (mut out, mut dim, mut indices) = (t.clone(), 0usize, Vec::new());
    for p in parts {
        match p {
            Part::Int(i) => out = select(&out, dim, *i, t)?,
            Part::Slice(None, None, 1) => dim += 1,
            Part::Slice(start, stop, step) => {
                out = view::SLICE.call((&out, dim, *start, *stop, *step)).ok()?;
                dim += 1;
            }
            Part::None => {
                out = view::UNSQUEEZE.call((&out, dim)).ok()?;
                dim += 1;
            }
            Part::Ellipsis => dim += t.ndim() - specified,
            Part::Bool(b) => {
                out = view::UNSQUEEZE.call((&out, dim)).ok()?;
                let at = if *b {
                    Tensor::zeros(&[1], DType::I64, Device::Cpu)?
                } else {
                    Tensor::empty(&[0], DType::I64, Device::Cpu)?
                };
                put(&mut indices, dim, at);
                dim += 1;
            }
            Part::Tensor(i) => {
                put(&mut indices, dim, i.clone());
                dim += taken(p);
            }
        }
    }
    Ok((out, indices))
}

/// A mask takes one place in the list whatever its rank: the op expands it into one index per dimension.
fn put(indices: &mut Vec<Option<Tensor>>, dim: usize, t: Tensor) {
    let masks: usize = indices
        .iter()
        .flatten()
        .filter(|t| matches!(t.dtype(), DType::Bool | DType::U8))
        .map(|t| t.ndim().saturating_sub(1))
        .sum();
    indices.resize((dim - masks.min(dim)).max(indices.len()), None);
    indices.push(Some(t));
}

fn select(out: &Tensor, dim: usize, index: i64, whole: &Tensor) -> PyResult<Tensor> {
    if whole.ndim() == 0 {
        return Err(PyIndexError::new_err(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number",
        ));
    }
    let n = out.size(dim) as i64;
    if index < -n || index >= n {
        return Err(PyIndexError::new_err(format!("index {index} is out of bounds for dimension {dim} with size {n}")));
    }
    Ok(view::SELECT.call((out, dim, index)).ok()?)
}

fn op(cell: &'static OnceLock<Option<&'static Op>>, name: &str) -> PyResult<&'static Op> {
    let found = cell.get_or_init(|| crate::ops::all().find(|o| o.name() == name));
    found.ok_or_else(|| super::error::InternalError::new_err(format!("the op {name} is missing")))
}
static INDEX: OnceLock<Option<&'static Op>> = OnceLock::new();
static INDEX_PUT: OnceLock<Option<&'static Op>> = OnceLock::new();

pub unsafe extern "C" fn get(o: *mut PyObject, key: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        // SAFETY: the slot is called on a tensor with a live key.
        let (t, key) = unsafe { (borrow(o).expect("a tensor's slot"), Borrowed::from_ptr(py, key)) };
        let (out, indices) = slice(t, &parts(&key)?)?;
        if !indices.is_empty() {
            return wrap(py, op(&INDEX, "index")?.call((&out, indices)).ok()?);
        }
        // `x[...]` is a view of x, not x.
        let out = if out.same(t) { view::ALIAS.call((t,)).ok()? } else { out };
        wrap(py, out)
    })
}

pub unsafe extern "C" fn set(o: *mut PyObject, key: *mut PyObject, value: *mut PyObject) -> c_int {
    guard(-1, |py| {
        if value.is_null() {
            return Err(PyTypeError::new_err("Tensor does not support deleting items"));
        }
        // SAFETY: the slot is called on a tensor with a live key and value.
        let (t, key, value) = unsafe {
            (borrow(o).expect("a tensor's slot"), Borrowed::from_ptr(py, key), Borrowed::from_ptr(py, value))
        };
        assign(t, &key, &value)?;
        Ok(0)
    })
}

fn assign(t: &Tensor, key: &Bound<PyAny>, value: &Bound<PyAny>) -> PyResult<()> {
    let (out, indices) = slice(t, &parts(key)?)?;
    let number = to_scalar(value)?;
    let given = borrow(value.as_ptr());
    if number.is_none() && given.is_none() {
        return Err(PyTypeError::new_err(format!(
            "can't assign a {} to a torch.{}Tensor",
            type_name(value),
            t.dtype().scalar_type_name()
        )));
    }
    if indices.is_empty() {
        match (number, given) {
            (Some(s), _) => copy::FILL_.call_inplace((&out, Value::Scalar(s)))?,
            (_, Some(v)) if v.ndim() == 0 => copy::FILL_.call_inplace((&out, v))?,
            (_, Some(v)) => copy::COPY_.call_inplace((&out, strip(v, out.ndim())?))?,
            _ => unreachable!("checked above"),
        };
        return Ok(());
    }
    let value = match (number, given) {
        (Some(s), _) => Tensor::scalar(s, t.dtype(), t.device())?,
        (_, Some(v)) if v.device() == t.device() && v.dtype() == t.dtype() => v.clone(),
        (_, Some(v)) => copy::TO_COPY.call((v, t.dtype(), t.device())).ok()?,
        _ => unreachable!("checked above"),
    };
    op(&INDEX_PUT, "index_put")?.call_inplace((&out, indices, &value))?;
    Ok(())
}

/// A value may have more leading ones than the target: `x[0] = ones(1, 1, 3)`.
fn strip(v: &Tensor, ndim: usize) -> PyResult<Tensor> {
    let extra = v.ndim().saturating_sub(ndim);
    if extra == 0 || v.shape()[..extra].iter().any(|&d| d != 1) {
        return Ok(v.clone());
    }
    let sizes: crate::op::Ints = v.shape()[extra..].iter().map(|&d| d as i64).collect();
    Ok(view::VIEW.call((v, sizes)).ok()?)
}
