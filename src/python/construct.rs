//! Tensors from Python data: numbers, nested lists (`nested`), arrays; copied by `tensor`, shared by `from_numpy`.

use super::convert::type_name;
use super::object::{Handle, borrow};
use super::owned_objects::Held;
use super::py_types::{dtype_object, to_device, to_dtype};
use super::sequence_data::{from_nested, is_float_of_numpy, is_numpy_scalar, not_an_integer};
use crate::cpu::buffer::CpuBuffer;
use crate::device::Device;
use crate::dtype::DType;
use crate::layout::{Dims, Layout};
use crate::ops::movement::copy::TO_COPY;
use crate::storage::{Buffer, Storage};
use crate::tensor::{Meta, Tensor};
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyTuple, PyType};

/// A tensor from data, created on the CPU and then moved to `device`.
pub fn from_data(o: &Bound<PyAny>, dtype: Option<DType>, device: Device) -> PyResult<Tensor> {
    let host = match borrow(o.as_ptr()) {
        Some(t) => TO_COPY.call((&t.detach(), dtype.unwrap_or(t.dtype()), device)).ok()?,
        None if is_float_of_numpy(o, dtype) => return Err(not_an_integer(o)),
        None => match array(o)? {
            Some(a) => TO_COPY.call((&a, dtype.unwrap_or(a.dtype()))).ok()?,
            None => match stored(o, dtype)? {
                Some(s) => TO_COPY.call((&s, s.dtype())).ok()?,
                None => from_nested(o, dtype)?,
            },
        },
    };
    if host.device() == device { Ok(host) } else { Ok(TO_COPY.call((&host, host.dtype(), device)).ok()?) }
}

/// The most common types provide no array interface or DLPack, and looking for those attributes takes time.
fn is_plain(o: &Bound<PyAny>) -> bool {
    let number = o.is_exact_instance_of::<PyFloat>() || o.is_exact_instance_of::<PyInt>();
    number || o.is_instance_of::<PyList>() || o.is_instance_of::<PyTuple>()
}

/// The class `numpy.ndarray`, if NumPy was imported.
fn array_class<'py>(py: Python<'py>) -> Option<Bound<'py, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if let Some(c) = CLASS.get(py) {
        return Some(c.bind(py).clone());
    }
    let modules = py.import(intern!(py, "sys")).ok()?.getattr(intern!(py, "modules")).ok()?;
    let class = modules.get_item("numpy").ok()?.getattr("ndarray").ok()?.cast_into::<PyType>().ok()?;
    Some(CLASS.get_or_init(py, || class.unbind()).bind(py).clone())
}

/// A tensor that shares the memory of a NumPy array, or of the array that an object converts itself to (a series, a
/// tensor of another library). The address that other objects report is not reliable: a NumPy scalar reports that of a
/// temporary copy.
fn array(o: &Bound<PyAny>) -> PyResult<Option<Tensor>> {
    let py = o.py();
    if is_plain(o) {
        return Ok(None);
    }
    // Arrays exist only once NumPy is imported; converting an object may import it.
    if let Some(class) = array_class(py).filter(|c| o.is_instance(c).unwrap_or(false)) {
        return share(o, &class).map(Some);
    }
    if is_numpy_scalar(o) {
        return Ok(None);
    }
    let Ok(made) = o.call_method0(intern!(py, "__array__")) else { return exchanged(o) };
    match array_class(py).filter(|c| made.is_instance(c).unwrap_or(false)) {
        Some(class) => share(&made, &class).map(Some),
        None => Err(PyTypeError::new_err(format!(
            "object __array__ method not producing an array: expected np.ndarray, got {}",
            type_name(&made)
        ))),
    }
}

/// A tensor that shares the memory of an object that exports it only by DLPack.
fn exchanged(o: &Bound<PyAny>) -> PyResult<Option<Tensor>> {
    if !o.hasattr("__dlpack__")? {
        return Ok(None);
    }
    let t = o.py().import("rustgrad")?.getattr("from_dlpack")?.call1((o,))?;
    Ok(borrow(t.as_ptr()).cloned())
}

/// A tensor over all of a storage, in the storage's dtype or, if it has none, in the requested one.
fn stored(o: &Bound<PyAny>, wanted: Option<DType>) -> PyResult<Option<Tensor>> {
    if is_plain(o) {
        return Ok(None);
    }
    let Ok(view) = o.getattr("_as_data") else { return Ok(None) };
    let dtype = wanted.map(|d| dtype_object(o.py(), d)).transpose()?;
    Ok(borrow(view.call1((dtype,))?.as_ptr()).cloned())
}

pub fn typestr_dtype(s: &str) -> Option<DType> {
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

/// Shares the memory of an array. The interface is read through NumPy's own class, since a subclass may report
/// anything.
fn share(o: &Bound<PyAny>, class: &Bound<PyType>) -> PyResult<Tensor> {
    let interface = class.getattr(intern!(o.py(), "__array_interface__"))?.call_method1("__get__", (o,))?;
    let interface = interface.cast::<PyDict>()?;
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
    let owner = Box::new(Held::new(o.clone().unbind()));
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
        Some(d) => Some(to_dtype(d)?.ok_or_else(|| {
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

/// A tensor from data, sharing memory if no conversion is needed: a tensor of the requested dtype is returned as it is.
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

/// A tensor that shares memory with a NumPy array. A read-only array gives a tensor that cannot be written.
#[pyfunction]
pub fn from_numpy(ndarray: &Bound<PyAny>) -> PyResult<Handle> {
    match array_class(ndarray.py()).filter(|c| ndarray.is_instance(c).unwrap_or(false)) {
        Some(class) => {
            let t = share(ndarray, &class)?;
            warn_if_read_only(ndarray, &t)?;
            Ok(Handle(t))
        }
        None => {
            let kind = ndarray.get_type().fully_qualified_name()?;
            Err(PyTypeError::new_err(format!("expected np.ndarray (got {kind})")))
        }
    }
}
