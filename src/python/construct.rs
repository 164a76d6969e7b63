//! Tensors from Python data: nested lists, numbers, arrays; copied by `tensor`, shared by `from_numpy`.

use super::kinds::{to_device, to_dtype};
use super::object::{Handle, borrow};
use super::values::{to_scalar, type_name};
use crate::cpu::buffer::CpuBuffer;
use crate::device::Device;
use crate::dtype::{Category, DType, Element, Scalar, default_dtype};
use crate::layout::{Dims, Layout};
use crate::ops::copy::TO_COPY;
use crate::storage::{Buffer, Storage};
use crate::tensor::{Meta, Tensor};
use crate::with_dtype;
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyList, PyString, PyTuple};

/// The elements of nested data, and the dtype that they promote to.
struct Leaves {
    values: Vec<Scalar>,
    dtype: Option<DType>,
    /// The caller has a dtype, so that what cannot be converted is a TypeError, not a dtype that cannot be inferred.
    wanted: bool,
}

/// A tensor from data, on the CPU first and moved where it is wanted.
pub fn from_data(o: &Bound<PyAny>, dtype: Option<DType>, device: Device) -> PyResult<Tensor> {
    let host = match borrow(o.as_ptr()) {
        Some(t) => TO_COPY.call((&t.detach(), dtype.unwrap_or(t.dtype()), device)).ok()?,
        None => match array(o)? {
            Some(a) => TO_COPY.call((&a, dtype.unwrap_or(a.dtype()))).ok()?,
            None => from_nested(o, dtype)?,
        },
    };
    if host.device() == device { Ok(host) } else { Ok(TO_COPY.call((&host, host.dtype(), device)).ok()?) }
}

fn no_dtype(o: &Bound<PyAny>) -> PyErr {
    PyTypeError::new_err(format!("new(): invalid data type '{}'", type_name(o)))
}

fn from_nested(o: &Bound<PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    if is_text(o) {
        return Err(no_dtype(o));
    }
    let shape = nested_shape(o)?;
    let n = crate::layout::checked_numel(&shape)?;
    let mut leaves = Leaves { values: Vec::with_capacity(n.min(1 << 20)), dtype: None, wanted: dtype.is_some() };
    collect(o, &shape, 0, &mut leaves)?;
    let dtype = dtype.or(leaves.dtype).unwrap_or_else(default_dtype);
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

/// Integers that the dtype cannot hold are an error, as in PyTorch.
fn check_range(values: &[Scalar], dtype: DType) -> PyResult<()> {
    if !dtype.is_complex() && dtype != DType::Bool && values.iter().any(|v| v.category() == Category::Complex) {
        return Err(PyTypeError::new_err(match dtype.is_int() {
            true => "'complex' object cannot be interpreted as an integer",
            false => "must be real number, not complex",
        }));
    }
    if !dtype.is_int() {
        return Ok(());
    }
    for v in values {
        if matches!(v, Scalar::UInt(_)) && dtype != DType::U64 {
            return Err(PyValueError::new_err("Overflow when unpacking long long"));
        }
        if !v.fits(dtype) {
            return Err(PyRuntimeError::new_err(format!(
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
    if let Some(t) = borrow(o.as_ptr()) {
        return t.ndim() > 0;
    }
    o.hasattr("__getitem__").unwrap_or(false) && o.len().is_ok() && !is_text(o) && !o.is_instance_of::<PyDict>()
}

fn is_text(o: &Bound<PyAny>) -> bool {
    o.is_instance_of::<PyString>() || o.is_instance_of::<PyBytes>()
}

/// The shape that the first items at each depth suggest; `collect` checks the rest against it.
fn nested_shape(o: &Bound<PyAny>) -> PyResult<Dims> {
    let (mut shape, mut at) = (Dims::new(), o.clone());
    while is_nested(&at) && to_scalar(&at).map_err(as_value_error)?.is_none() {
        let n = at.len()?;
        shape.push(n);
        if shape.len() > 64 {
            return Err(PyValueError::new_err(
                "too many dimensions: the data is nested deeper than 64 levels (or contains itself)",
            ));
        }
        if n == 0 {
            break;
        }
        at = at.get_item(0)?;
    }
    Ok(shape)
}

fn collect(o: &Bound<PyAny>, shape: &[usize], depth: usize, out: &mut Leaves) -> PyResult<()> {
    if depth == shape.len() {
        return leaf(o, out);
    }
    if !is_nested(o) {
        return Err(PyTypeError::new_err("not a sequence"));
    }
    let n = o.len()?;
    if n != shape[depth] {
        return Err(PyValueError::new_err(format!(
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
        Some(t) if t.numel() == 1 => (super::export::item(t)?, Some(t.dtype())),
        Some(_) => return Err(PyValueError::new_err("only one element tensors can be converted to Python scalars")),
        None => match to_scalar(o).map_err(as_value_error)? {
            Some(s) => (s, numpy_dtype(o)),
            None if is_nested(o) => {
                return Err(PyTypeError::new_err(format!("expected a number, got a {} of {}", type_name(o), o.len()?)));
            }
            // As in PyTorch: the first text is a level too deep, one that follows numbers is of no dtype.
            None if is_text(o) && !out.wanted && out.dtype.is_some() => return Err(no_dtype(o)),
            None if is_text(o) => {
                return Err(PyValueError::new_err(format!("too many dimensions '{}'", type_name(o))));
            }
            None if out.wanted => {
                return Err(PyTypeError::new_err(format!("must be a number, not {}", type_name(o))));
            }
            None => return Err(PyRuntimeError::new_err(format!("Could not infer dtype of {}", type_name(o)))),
        },
    };
    let d = dtype.unwrap_or_else(|| natural(s));
    if out.dtype != Some(d) {
        out.dtype = Some(out.dtype.map_or(Ok(d), |p| crate::dtype::promote(p, d))?);
    }
    out.values.push(s);
    Ok(())
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

/// The dtype of a NumPy scalar; Python's own numbers have none.
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
    typestr_dtype(&text)
}

/// PyTorch reports numbers beyond 64 bits in data as ValueError.
fn as_value_error(e: PyErr) -> PyErr {
    Python::attach(|py| match e.is_instance_of::<PyOverflowError>(py) {
        true => PyValueError::new_err("Overflow when unpacking long long"),
        false => e,
    })
}

/// A tensor that shares the memory of an object with `__array_interface__` (NumPy's arrays and scalars), or of the array
/// that the object makes of itself (a series, a tensor of another library).
fn array(o: &Bound<PyAny>) -> PyResult<Option<Tensor>> {
    // The commonest types have no such attribute, and asking takes time.
    if o.is_instance_of::<PyList>() || o.is_instance_of::<PyTuple>() || o.is_exact_instance_of::<PyFloat>() {
        return Ok(None);
    }
    if let Ok(interface) = o.getattr("__array_interface__") {
        return share(o, interface.cast::<PyDict>()?).map(Some);
    }
    let Ok(made) = o.call_method0("__array__") else { return Ok(None) };
    share(&made, made.getattr("__array_interface__")?.cast::<PyDict>()?).map(Some)
}

fn typestr_dtype(s: &str) -> Option<DType> {
    Some(match s.trim_start_matches(['<', '|', '=']) {
        "b1" => DType::Bool,
        "u1" => DType::U8,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "c8" => DType::C64,
        "c16" => DType::C128,
        _ => return None,
    })
}

fn share(o: &Bound<PyAny>, interface: &Bound<PyDict>) -> PyResult<Tensor> {
    let need = |k: &str| {
        interface.get_item(k)?.ok_or_else(|| PyValueError::new_err(format!("__array_interface__ lacks '{k}'")))
    };
    let typestr: String = need("typestr")?.extract()?;
    if typestr.starts_with('>') {
        return Err(PyValueError::new_err(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is currently not \
             supported.",
        ));
    }
    let dtype = typestr_dtype(&typestr).ok_or_else(|| {
        let kind = o.getattr("dtype").and_then(|d| d.getattr("type")?.getattr("__name__"));
        let kind = kind.map_or(typestr.clone(), |name| format!("numpy.{name}"));
        PyTypeError::new_err(format!(
            "can't convert np.ndarray of type {kind}. The only supported types are: float64, float32, float16, complex64, complex128, \
             int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
        ))
    })?;
    let shape: Vec<usize> = need("shape")?.extract()?;
    let n = crate::layout::checked_numel(&shape)?;
    let strides: Option<Vec<isize>> = match interface.get_item("strides")? {
        Some(s) if !s.is_none() => Some(s.extract()?),
        _ => None,
    };
    let (address, read_only): (usize, bool) = need("data")?.extract()?;
    let strides = element_strides(&shape, strides, dtype)?;
    let layout = Layout { shape: shape.as_slice().into(), strides, offset: 0 };
    if n > 0 && address % dtype.size().min(8) != 0 {
        return Err(PyValueError::new_err(
            "the array's memory is not aligned for its dtype. Make a copy of it with array.copy().",
        ));
    }
    let owner = Box::new(o.clone().unbind());
    let buffer = CpuBuffer::foreign(address as *mut u8, layout.end() * dtype.size(), owner, read_only);
    Ok(Tensor::from_meta(Meta { storage: Storage::new(Buffer::Cpu(buffer), Device::Cpu), layout, dtype }))
}

fn element_strides(shape: &[usize], bytes: Option<Vec<isize>>, dtype: DType) -> PyResult<Dims> {
    let Some(bytes) = bytes else { return Ok(crate::layout::contiguous_strides(shape)) };
    let size = dtype.size() as isize;
    let one = |(&b, &d): (&isize, &usize)| {
        if b < 0 && d > 1 {
            return Err(PyValueError::new_err(
                "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. \
                 (You can probably work around this by making a copy of your array  with array.copy().) ",
            ));
        }
        if b % size != 0 && d > 1 {
            return Err(PyValueError::new_err(
                "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory.",
            ));
        }
        Ok((b.max(0) / size) as usize)
    };
    bytes.iter().zip(shape).map(one).collect()
}

fn kind_arguments(
    dtype: Option<&Bound<PyAny>>,
    device: Option<&Bound<PyAny>>,
) -> PyResult<(Option<DType>, Option<Device>)> {
    let dtype = match dtype {
        Some(d) => Some(to_dtype(d).ok_or_else(|| {
            PyTypeError::new_err(format!("argument 'dtype' must be torch.dtype, not {}", type_name(d)))
        })?),
        None => None,
    };
    let device = match device {
        Some(d) => Some(to_device(d)?.ok_or_else(|| {
            PyTypeError::new_err(format!("argument 'device' must be torch.device, not {}", type_name(d)))
        })?),
        None => None,
    };
    Ok((dtype, device))
}

/// A tensor that copies `data`: a number, nested lists or tuples, a tensor or an array.
///
/// The dtype follows the data: bool, int64, the default float, complex. Errors: ValueError for ragged data,
/// TypeError for data without a dtype.
#[pyfunction]
#[pyo3(signature = (data, *, dtype=None, device=None, requires_grad=false, pin_memory=false))]
pub fn tensor(
    data: &Bound<PyAny>,
    dtype: Option<&Bound<PyAny>>,
    device: Option<&Bound<PyAny>>,
    requires_grad: bool,
    pin_memory: bool,
) -> PyResult<Handle> {
    let _ = pin_memory;
    let (dtype, device) = kind_arguments(dtype, device)?;
    let source = borrow(data.as_ptr()).map(|t| t.device());
    if source.is_some() {
        let text = c"To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or \
            sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).";
        PyErr::warn(data.py(), &data.py().get_type::<PyUserWarning>(), text, 1)?;
    }
    let t = from_data(data, dtype, device.or(source).unwrap_or_default())?;
    super::graph::set_requires_grad(&t, requires_grad)?;
    Ok(Handle(t))
}

/// A tensor from data, shared where nothing has to be converted: a tensor of the asked dtype is returned as it is.
#[pyfunction]
#[pyo3(signature = (data, dtype=None, device=None))]
pub fn as_tensor(data: &Bound<PyAny>, dtype: Option<&Bound<PyAny>>, device: Option<&Bound<PyAny>>) -> PyResult<Handle> {
    let (dtype, device) = kind_arguments(dtype, device)?;
    let shared = match borrow(data.as_ptr()) {
        Some(t) => Some(t.clone()),
        None => array(data)?,
    };
    let Some(t) = shared else { return Ok(Handle(from_data(data, dtype, device.unwrap_or_default())?)) };
    let (dtype, device) = (dtype.unwrap_or(t.dtype()), device.unwrap_or(t.device()));
    if t.dtype() == dtype && t.device() == device {
        warn_if_read_only(data, &t)?;
        return Ok(Handle(t));
    }
    Ok(Handle(TO_COPY.call((&t, dtype, device)).ok()?))
}

fn warn_if_read_only(source: &Bound<PyAny>, shared: &Tensor) -> PyResult<()> {
    if shared.storage().is_read_only() { super::buffer::warn_read_only(source.py(), "NumPy array") } else { Ok(()) }
}

/// A tensor that shares memory with a NumPy array, both ways. A read-only array gives a tensor that refuses to be written.
#[pyfunction]
pub fn from_numpy(ndarray: &Bound<PyAny>) -> PyResult<Handle> {
    // NumPy's scalars have the attribute too; their common base is `numpy.generic`.
    let is_scalar =
        ndarray.get_type().mro().iter().any(|c| c.getattr("__name__").is_ok_and(|n| n.eq("generic").unwrap_or(false)));
    let is_array = !is_scalar && ndarray.hasattr("__array_interface__")?;
    match if is_array { array(ndarray)? } else { None } {
        Some(t) => {
            warn_if_read_only(ndarray, &t)?;
            Ok(Handle(t))
        }
        None => {
            let kind = ndarray.get_type().fully_qualified_name()?;
            Err(PyTypeError::new_err(format!("expected np.ndarray (got {kind})")))
        }
    }
}
