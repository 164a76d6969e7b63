//! The elements of nested lists: their shape, their common dtype, and PyTorch's errors.
//!
//! The first items at each depth determine the shape, which all others must match. A tensor among the first items
//! counts as a number.

use super::convert::{to_scalar, type_name};
use super::error::{PyResult, Raised, raised};
use super::numpy_arrays::dtype_of;
use super::object::borrow;
use super::warnings::warn_once;
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use rustgrad::device::Device;
use rustgrad::dtype::{Category, DType, Element, Scalar, default_dtype};
use rustgrad::layout::Dims;
use rustgrad::rt::reserve;
use rustgrad::tensor::Tensor;
use rustgrad::with_dtype;

/// The elements of nested data, and their promoted dtype.
struct Leaves {
    values: Vec<Scalar>,
    dtype: Option<DType>,
    /// The requested dtype. If given, an unconvertible item is a TypeError about conversion, not about dtype inference.
    wanted: Option<DType>,
    /// Whether an int beyond 64 bits is among them, kept as a float: right unless the dtype turns out to be an integer one.
    too_large: bool,
}

fn overflow() -> Raised {
    raised::<PyValueError>("Overflow when unpacking long long")
}

fn no_dtype(o: &Bound<PyAny>) -> Raised {
    raised::<PyTypeError>(format!("new(): invalid data type '{}'", type_name(o)))
}

/// A CPU tensor from a number, or from nested lists of numbers.
pub fn from_nested(o: &Bound<PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    if is_text(o) {
        return Err(no_dtype(o));
    }
    let shape = nested_shape(o)?;
    let n = rustgrad::layout::checked_numel(&shape)?;
    let mut leaves = Leaves { values: reserve::room(n.min(1 << 20))?, dtype: None, wanted: dtype, too_large: false };
    collect(o, &shape, 0, &mut leaves)?;
    let dtype = dtype.or(leaves.dtype).unwrap_or_else(default_dtype);
    if leaves.too_large && dtype.is_int() {
        return Err(overflow());
    }
    let out = Tensor::empty(&shape, dtype, Device::Cpu)?;
    check_range(&leaves.values, dtype)?;
    with_dtype!(dtype, T => {
        let p = out.ptr()?.cast::<T>();
        for (i, &s) in leaves.values.iter().enumerate() {
            // SAFETY: the new tensor holds one element for each collected value.
            unsafe { p.add(i).write(<T as Element>::from_scalar(s)) };
        }
    });
    Ok(out)
}

/// Checks that the dtype can hold the integers, as in PyTorch.
fn check_range(values: &[Scalar], dtype: DType) -> PyResult<()> {
    if !dtype.is_complex() && dtype != DType::Bool && values.iter().any(|v| v.category() == Category::Complex) {
        return Err(raised::<PyTypeError>(match dtype.is_int() {
            true => "'complex' object cannot be interpreted as an integer",
            false => "must be real number, not complex",
        }));
    }
    if !dtype.is_int() {
        return Ok(());
    }
    for v in values {
        if matches!(v, Scalar::UInt(_)) && dtype != DType::U64 {
            return Err(overflow());
        }
        if !v.fits(dtype) {
            return Err(raised::<PyRuntimeError>(format!(
                "value cannot be converted to type {} without overflow",
                dtype.name()
            )));
        }
    }
    Ok(())
}

fn is_nested(o: &Bound<PyAny>) -> bool {
    if o.is_instance_of::<PyList>() || o.is_instance_of::<PyTuple>() {
        return true;
    }
    // A tensor in a list counts as a number.
    borrow(o.as_ptr()).is_none()
        && o.hasattr("__getitem__").unwrap_or(false)
        && o.len().is_ok()
        && !is_text(o)
        && !o.is_instance_of::<PyDict>()
}

fn is_text(o: &Bound<PyAny>) -> bool {
    o.is_instance_of::<PyString>() || o.is_instance_of::<PyBytes>()
}

/// The shape according to the first items at each depth; `collect` checks the rest.
fn nested_shape(o: &Bound<PyAny>) -> PyResult<Dims> {
    let (mut shape, mut at) = (Dims::new(), o.clone());
    while is_nested(&at) && to_scalar(&at)?.is_none() {
        let n = at.len()?;
        shape.push(n);
        if shape.len() > 64 {
            return Err(raised::<PyValueError>(
                "too many dimensions: the data is nested deeper than 64 levels (or contains itself)",
            ));
        }
        if n == 0 {
            break;
        }
        at = at.get_item(0).map_err(|_| {
            raised::<PyValueError>(format!("could not determine the shape of object type '{}'", type_name(&at)))
        })?;
        if is_array(&at) {
            warn_of_arrays(o.py())?;
        }
    }
    Ok(shape)
}

/// Whether it is a NumPy array; lists and numbers are recognised without attribute look-ups.
fn is_array(o: &Bound<PyAny>) -> bool {
    let plain = o.is_instance_of::<PyList>() || o.is_instance_of::<PyTuple>() || o.is_instance_of::<PyFloat>();
    !plain
        && !o.is_instance_of::<PyInt>()
        && type_name(o) == "ndarray"
        && o.hasattr("__array_interface__").unwrap_or(false)
}

#[cold]
fn warn_of_arrays(py: Python) -> PyResult<()> {
    let text = "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a \
        single numpy.ndarray with numpy.array() before converting to a tensor.";
    warn_once(py, text, 1)
}

/// A number and, where its kind does not tell it, its dtype. A 0-d array holds one, and ints of any size are accepted for a
/// float or bool dtype.
fn number(o: &Bound<PyAny>, out: &mut Leaves) -> PyResult<Option<(Scalar, Option<DType>)>> {
    let found = match to_scalar(o) {
        Ok(None) if is_array(o) && o.len().is_err() => match out.wanted.is_some_and(is_whole) {
            true if numpy_dtype(o).is_some_and(|d| !is_whole(d)) => Err(not_an_integer(o)),
            _ => to_scalar(&o.call_method0("item")?),
        },
        Err(e) if e.0.is_instance_of::<PyOverflowError>(o.py()) => match out.wanted {
            Some(DType::Bool) => Ok(Some(Scalar::Bool(true))),
            Some(DType::U64) => Err(raised::<PyOverflowError>("int too big to convert")),
            Some(d) if !d.is_int() => Ok(Some(Scalar::Float(o.extract()?))),
            Some(_) => Err(overflow()),
            None => {
                out.too_large = true;
                let value = o.extract().map_err(|_| overflow())?;
                return Ok(Some((Scalar::Float(value), Some(DType::I64))));
            }
        },
        other => other,
    };
    Ok(found?.map(|s| (s, numpy_dtype(o))))
}

fn collect(o: &Bound<PyAny>, shape: &[usize], depth: usize, out: &mut Leaves) -> PyResult<()> {
    if depth == shape.len() {
        return leaf(o, out);
    }
    // If the first items are lists, a tensor may take the place of one.
    if !is_nested(o) && borrow(o.as_ptr()).is_none() {
        return Err(raised::<PyTypeError>("not a sequence"));
    }
    let n = o.len()?;
    if n != shape[depth] {
        return Err(raised::<PyValueError>(format!(
            "expected sequence of length {} at dim {depth} (got {n})",
            shape[depth]
        )));
    }
    for item in o.try_iter()? {
        collect(&item?, shape, depth + 1, out)?;
    }
    Ok(())
}

fn leaf(o: &Bound<PyAny>, out: &mut Leaves) -> PyResult<()> {
    let (s, dtype) = match borrow(o.as_ptr()) {
        Some(t) => (tensor_item(t, out.wanted)?, Some(t.dtype())),
        None if is_float_of_numpy(o, out.wanted) => return Err(not_an_integer(o)),
        None => match number(o, out)? {
            Some(found) => found,
            None if is_nested(o) => {
                return Err(raised::<PyTypeError>(format!(
                    "expected a number, got a {} of {}",
                    type_name(o),
                    o.len()?
                )));
            }
            // As in PyTorch: a string as first item counts as another level, one after numbers has no dtype.
            None if is_text(o) && out.wanted.is_none() && out.dtype.is_some() => return Err(no_dtype(o)),
            None if o.is_instance_of::<PyBytes>() => return Err(no_dtype(o)),
            None if is_text(o) => {
                return Err(raised::<PyValueError>(format!("too many dimensions '{}'", type_name(o))));
            }
            None if out.wanted.is_some() => {
                return Err(raised::<PyTypeError>(format!("must be a number, not {}", type_name(o))));
            }
            None => return Err(raised::<PyRuntimeError>(format!("Could not infer dtype of {}", type_name(o)))),
        },
    };
    let d = dtype.unwrap_or_else(|| natural(s));
    if out.dtype != Some(d) {
        out.dtype = Some(out.dtype.map_or(Ok(d), |p| rustgrad::dtype::promote(p, d))?);
    }
    if out.values.len() == out.values.capacity() {
        reserve::more(&mut out.values)?;
    }
    out.values.push(s);
    Ok(())
}

/// The number in a tensor that is a list item. For an integer dtype a float is rejected, as in PyTorch.
fn tensor_item(t: &Tensor, wanted: Option<DType>) -> PyResult<Scalar> {
    let refused = wanted.is_some_and(is_whole) && !is_whole(t.dtype());
    if refused || (t.numel() != 1 && is_whole(wanted.unwrap_or(t.dtype()))) {
        return Err(raised::<PyTypeError>("only integer tensors of a single element can be converted to an index"));
    }
    if t.numel() != 1 {
        return Err(raised::<PyValueError>("only one element tensors can be converted to Python scalars"));
    }
    Ok(super::export::item(t)?)
}

fn is_whole(d: DType) -> bool {
    d.category() < Category::Float
}

/// Whether a NumPy scalar other than a Python float is to become an integer, which is rejected.
pub fn is_float_of_numpy(o: &Bound<PyAny>, wanted: Option<DType>) -> bool {
    wanted.is_some_and(is_whole)
        && !o.is_instance_of::<PyFloat>()
        && is_numpy_scalar(o)
        && numpy_dtype(o).is_some_and(|d| !is_whole(d))
}
pub fn not_an_integer(o: &Bound<PyAny>) -> Raised {
    let kind = o.get_type().fully_qualified_name().map_or_else(|_| type_name(o), |name| name.to_string());
    raised::<PyTypeError>(format!("'{kind}' object cannot be interpreted as an integer"))
}

/// Whether it is a NumPy scalar, which has an array's attributes too; the common base class is `numpy.generic`.
pub fn is_numpy_scalar(o: &Bound<PyAny>) -> bool {
    o.get_type().mro().iter().any(|c| c.getattr("__name__").is_ok_and(|n| n.eq("generic").unwrap_or(false)))
}

/// The dtype of a Python number.
fn natural(s: Scalar) -> DType {
    match s.category() {
        Category::Bool => DType::Bool,
        Category::Int => DType::I64,
        Category::Float => default_dtype(),
        Category::Complex => default_dtype().to_complex(),
    }
}

/// The dtype of a NumPy scalar; `None` for Python's numbers.
fn numpy_dtype(o: &Bound<PyAny>) -> Option<DType> {
    // SAFETY: a live object; exact types are compared.
    let own = unsafe {
        let p = o.as_ptr();
        ffi::PyFloat_CheckExact(p) != 0 || ffi::PyLong_CheckExact(p) != 0 || ffi::PyBool_Check(p) != 0
    };
    if own {
        return None;
    }
    let text: String = o.getattr("dtype").ok()?.getattr("str").ok()?.extract().ok()?;
    let (kind, bytes) = text.trim_start_matches(['<', '|', '=']).split_at_checked(1)?;
    dtype_of(kind.as_bytes()[0], bytes.parse().ok()?)
}
