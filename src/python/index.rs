//! `x[index]` and `x[index] = value`: ints, slices, None and Ellipsis become views; tensors, masks and lists are passed
//! to the ops `index` and `index_put_`. Source of the rules: PyTorch's
//! `torch/csrc/autograd/python_variable_indexing.cpp`.

use super::convert::{to_int, to_scalar, type_name};
use super::error::{PyResult, guard, guard_object, raised};
use super::object::{borrow, wrap};
use super::overrides;
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PySlice, PyTuple};
use rustgrad::device::Device;
use rustgrad::dtype::{DType, Scalar};
use rustgrad::op::Op;
use rustgrad::op::tracer::{Read, may_read};
use rustgrad::ops::indexing::{index_select, mask};
use rustgrad::ops::movement::copy;
use rustgrad::ops::view::reshape;
use rustgrad::tensor::Tensor;
use smallvec::SmallVec;
use std::ffi::c_int;
use std::sync::OnceLock;

/// One item of an index.
enum Part {
    Int(i64),
    /// Start, stop, step, clipped to 64 bits.
    Slice(i64, i64, i64),
    None,
    Ellipsis,
    Bool(bool),
    Tensor(Tensor),
}

type Parts = SmallVec<[Part; 4]>;

fn parts(key: &Bound<PyAny>) -> PyResult<Parts> {
    let mut parts = Parts::new();
    match key.cast::<PyTuple>() {
        Ok(t) => {
            for o in t.iter() {
                parts.push(part(&o)?);
            }
        }
        Err(_) if stands_for_a_tuple(key)? => {
            for o in key.try_iter()? {
                parts.push(part(&o?)?);
            }
        }
        Err(_) => parts.push(part(key)?),
    }
    Ok(parts)
}

/// As in old NumPy, a short list that contains a sequence, a tensor, a slice, None or Ellipsis is a tuple of indices.
fn stands_for_a_tuple(key: &Bound<PyAny>) -> PyResult<bool> {
    if borrow(key.as_ptr()).is_some() || !is_sequence(key) || key.hasattr("__array_interface__")? || key.len()? >= 32 {
        return Ok(false);
    }
    for o in key.try_iter()? {
        let o = o?;
        let many = borrow(o.as_ptr()).is_some() || is_sequence(&o);
        if many || o.is_none() || o.is_instance_of::<PySlice>() || o.is_instance_of::<PyEllipsis>() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A list, a range, an array with at least one dimension: anything with ordered items. A NumPy scalar has none.
fn is_sequence(o: &Bound<PyAny>) -> bool {
    // SAFETY: a live object. A 0-d array claims to be a sequence, but has no length.
    unsafe { ffi::PySequence_Check(o.as_ptr()) != 0 && o.len().is_ok() }
}

fn part(o: &Bound<PyAny>) -> PyResult<Part> {
    if let Some(t) = borrow(o.as_ptr()) {
        // A number that differs between the examples of a batch stays a tensor.
        let number = |t: &Tensor| may_read(t, Read::Values).is_ok();
        return Ok(match (t.ndim(), t.dtype()) {
            (0, DType::Bool | DType::U8) => Part::Bool(super::export::item(t)?.to_bool()),
            (0, DType::I8 | DType::I16 | DType::I32 | DType::I64) if number(t) => {
                Part::Int(super::export::item(t)?.to_i64())
            }
            _ => Part::Tensor(t.clone()),
        });
    }
    // The most frequent kind first.
    if o.is_exact_instance_of::<PyInt>() {
        return Ok(whole(o)?.map_or(Part::None, Part::Int));
    }
    if o.is_none() {
        return Ok(Part::None);
    }
    if o.is_instance_of::<PyEllipsis>() {
        return Ok(Part::Ellipsis);
    }
    if let Ok(s) = o.cast::<PySlice>() {
        let (mut start, mut stop, mut step) = (0, 0, 0);
        // SAFETY: `s` is a slice and the output pointers are valid.
        if unsafe { ffi::PySlice_Unpack(s.as_ptr(), &raw mut start, &raw mut stop, &raw mut step) } < 0 {
            return Err(PyErr::fetch(o.py()).into());
        }
        if step < 0 {
            return Err(raised::<PyValueError>("step must be greater than zero. Use flip() to reverse a dimension."));
        }
        return Ok(Part::Slice(start as i64, stop as i64, step as i64));
    }
    // SAFETY: a live object.
    if unsafe { ffi::PyBool_Check(o.as_ptr()) } != 0 {
        return Ok(Part::Bool(o.is_truthy()?));
    }
    let sequence = is_sequence(o);
    if !sequence {
        if let Some(i) = whole(o)? {
            return Ok(Part::Int(i));
        }
        return Err(raised::<PyIndexError>(format!(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {})",
            type_name(o)
        )));
    }
    let t = super::construct::from_data(o, None, Device::Cpu)?;
    // Non-integer numbers are truncated, as in PyTorch; an empty list has no dtype.
    Ok(Part::Tensor(if t.dtype().is_float() { copy::TO_COPY.call((&t, DType::I64)).ok()? } else { t }))
}

fn whole(o: &Bound<PyAny>) -> PyResult<Option<i64>> {
    to_int(o).map_err(|e| match e.0.is_instance_of::<PyOverflowError>(o.py()) {
        true => raised::<PyValueError>("Overflow when unpacking long long"),
        false => e,
    })
}

/// Number of dimensions that an item consumes.
fn taken(p: &Part) -> usize {
    match p {
        Part::Int(_) | Part::Slice(..) => 1,
        Part::Tensor(t) if matches!(t.dtype(), DType::Bool | DType::U8) => t.ndim(),
        Part::Tensor(_) => 1,
        Part::None | Part::Ellipsis | Part::Bool(_) => 0,
    }
}

/// Applies the items that are views. The remaining index tensors are returned by dimension of the result.
fn slice(t: &Tensor, parts: &[Part]) -> PyResult<(Tensor, Vec<Option<Tensor>>)> {
    let specified: usize = parts.iter().map(taken).sum();
    if specified > t.ndim() {
        return Err(raised::<PyIndexError>(format!("too many indices for tensor of dimension {}", t.ndim())));
    }
    let (mut out, mut dim, mut indices) = (t.clone(), 0usize, Vec::new());
    for (place, p) in parts.iter().enumerate() {
        match p {
            Part::Int(i) => out = select(&out, dim, *i, (t, place))?,
            Part::Slice(0, stop, 1) if *stop >= out.size(dim) as i64 => dim += 1,
            Part::Slice(start, stop, step) => {
                out = reshape::SLICE.call((&out, dim, Some(*start), Some(*stop), *step)).ok()?;
                dim += 1;
            }
            Part::None => {
                out = reshape::UNSQUEEZE.call((&out, dim)).ok()?;
                dim += 1;
            }
            Part::Ellipsis => dim += t.ndim() - specified,
            Part::Bool(b) => {
                out = reshape::UNSQUEEZE.call((&out, dim)).ok()?;
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

/// A mask occupies one slot of the list, whatever its rank: the op expands it into one index per dimension.
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

/// `place` is the position of the number among the index items; errors report it as the dimension, as PyTorch's do.
fn select(out: &Tensor, dim: usize, index: i64, (whole, place): (&Tensor, usize)) -> PyResult<Tensor> {
    if whole.ndim() == 0 {
        return Err(raised::<PyIndexError>(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number",
        ));
    }
    let n = out.size(dim) as i64;
    if index < -n || index >= n {
        return Err(raised::<PyIndexError>(format!(
            "index {index} is out of bounds for dimension {place} with size {n}"
        )));
    }
    Ok(reshape::SELECT.call((out, dim, index)).ok()?)
}

fn op(cell: &'static OnceLock<Option<&'static Op>>, name: &str) -> PyResult<&'static Op> {
    let found = cell.get_or_init(|| rustgrad::ops::all().find(|o| o.name() == name));
    Ok(found.ok_or_else(|| super::error::InternalError::new_err(format!("the op {name} is missing")))?)
}
static INDEX: OnceLock<Option<&'static Op>> = OnceLock::new();
static INDEX_PUT: OnceLock<Option<&'static Op>> = OnceLock::new();

pub unsafe extern "C" fn get(o: *mut PyObject, key: *mut PyObject) -> *mut PyObject {
    guard_object(|py| {
        if overrides::active()
            && let Some(answer) = overrides::slot(py, "__getitem__", &[o, key])?
        {
            return Ok(answer);
        }
        // SAFETY: the slot is called on a tensor with a live key.
        let (t, key) = unsafe { (borrow(o).expect("a tensor's slot"), Borrowed::from_ptr(py, key)) };
        let parts = parts(&key)?;
        if let [Part::Slice(start, stop, step)] = parts[..]
            && t.ndim() > 0
        {
            // Also for the whole dimension: the graph has a slice node, as in PyTorch.
            return wrap(py, reshape::SLICE.call((t, 0usize, Some(start), Some(stop), step)).ok()?);
        }
        let (out, indices) = slice(t, &parts)?;
        if !indices.is_empty() {
            return wrap(py, op(&INDEX, "index")?.call((&out, indices)).ok()?);
        }
        // `x[...]` is a view of x, not x.
        let out = if out.same(t) { reshape::ALIAS.call((t,)).ok()? } else { out };
        wrap(py, out)
    })
}

pub unsafe extern "C" fn set(o: *mut PyObject, key: *mut PyObject, value: *mut PyObject) -> c_int {
    guard(-1, |py| {
        if value.is_null() {
            return Err(raised::<PyTypeError>("Tensor does not support deleting items"));
        }
        if overrides::active()
            && let Some(answer) = overrides::slot(py, "__setitem__", &[o, key, value])?
        {
            // SAFETY: the result is a new reference, which is not needed.
            unsafe { ffi::Py_DECREF(answer) };
            return Ok(0);
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
    let parts = parts(key)?;
    let number = to_scalar(value)?;
    let given = borrow(value.as_ptr());
    if number.is_none() && given.is_none() {
        return Err(raised::<PyTypeError>(format!(
            "can't assign a {} to a torch.{}Tensor",
            type_name(value),
            t.dtype().scalar_type_name()
        )));
    }
    // A single True or False decides whether anything is written.
    let (out, indices) = match parts.as_slice() {
        [Part::Bool(yes)] if key.is_instance_of::<PyBool>() => match yes {
            true => (reshape::UNSQUEEZE.call((t, 0usize)).ok()?, Vec::new()),
            false => return Ok(()),
        },
        all => slice(t, all)?,
    };
    if indices.is_empty() {
        match (number, given) {
            (Some(s), _) => copy::FILL_.call_inplace((&out, s))?,
            (_, Some(v)) if out.same(t) && v.ndim() == 0 => copy::FILL_TENSOR_.call_inplace((&out, v))?,
            // Of another shape, it is read before anything is written.
            (_, Some(v)) if v.storage().same(t.storage()) && v.shape() != out.shape() => {
                copy::COPY_.call_inplace((&out, &copy::CLONE.call((&strip(v)?,)).ok()?))?
            }
            (_, Some(v)) if v.ndim() > out.ndim() => copy::COPY_.call_inplace((&out, strip(v)?))?,
            (_, Some(v)) => copy::COPY_.call_inplace((&out, v))?,
            _ => unreachable!("checked above"),
        };
        return Ok(());
    }
    if let Some(s) = number
        && fill_at(&out, &indices, s)?
    {
        return Ok(());
    }
    let value = match (number, given) {
        (Some(s), _) => {
            s.check_fits(t.dtype())?;
            Tensor::scalar(s, t.dtype(), t.device())?
        }
        (_, Some(v)) if v.device() != t.device() => copy::TO_COPY.call((&strip(v)?, v.dtype(), t.device())).ok()?,
        // A one-element value is read before anything is written, even if it is one of the elements written.
        (_, Some(v)) if v.numel() == 1 && v.storage().same(t.storage()) => copy::CLONE.call((&strip(v)?,)).ok()?,
        (_, Some(v)) => strip(v)?,
        _ => unreachable!("checked above"),
    };
    op(&INDEX_PUT, "index_put")?.call_inplace((&out, indices, &value))?;
    Ok(())
}

/// Assigns a number: `index_fill_` for one list of positions, `masked_fill_` for a mask, as in PyTorch. False for any
/// other index.
fn fill_at(out: &Tensor, indices: &[Option<Tensor>], number: Scalar) -> PyResult<bool> {
    let dim = indices.len() - 1;
    let (Some(index), true) = (&indices[dim], indices[..dim].iter().all(Option::is_none)) else { return Ok(false) };
    if index.device() != out.device() {
        return Ok(false);
    }
    let covered = out.shape().get(dim..dim + index.ndim());
    match index.dtype() {
        DType::I64 if index.ndim() == 1 && out.ndim() > 0 => {
            index_select::INDEX_FILL.call_inplace((out, dim, index, number))?;
        }
        DType::Bool if index.ndim() > 0 && covered == Some(index.shape()) => {
            let ones = std::iter::repeat_n(1, out.ndim() - dim - index.ndim());
            let sizes: rustgrad::op::Ints = index.shape().iter().map(|&d| d as i64).chain(ones).collect();
            mask::MASKED_FILL.call_inplace((out, reshape::VIEW.call((index, sizes)).ok()?, number))?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The value without leading dimensions of size one; it may have more of them than the target: `x[0] = ones(1, 1, 3)`.
fn strip(v: &Tensor) -> PyResult<Tensor> {
    let extra = v.shape().iter().take_while(|&&d| d == 1).count();
    if extra == 0 {
        return Ok(v.clone());
    }
    let sizes: rustgrad::op::Ints = v.shape()[extra..].iter().map(|&d| d as i64).collect();
    Ok(reshape::VIEW.call((v, sizes)).ok()?)
}
