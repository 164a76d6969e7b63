//! Tensors from Python data: numbers, nested lists (`nested`), arrays; copied by `tensor`, shared by `from_numpy`.

use super::convert::type_name;
use super::error::{PyResult, raised};
use super::numpy_arrays::share;
use super::object::{Handle, borrow, wrap_bound};
use super::overrides::native;
use super::py_types::{dtype_object, to_device, to_dtype};
use super::sequence_data::{from_nested, is_float_of_numpy, is_numpy_scalar, not_an_integer};
use super::warnings::warn_user;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyBool, PyFloat, PyInt, PyList, PyTuple, PyType};
use rustgrad::autograd::opaque::is_opaque;
use rustgrad::device::Device;
use rustgrad::dtype::DType;
use rustgrad::ops::movement::copy::TO_COPY;
use rustgrad::tensor::Tensor;

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
        None => Err(raised::<PyTypeError>(format!(
            "object __array__ method not producing an array: expected np.ndarray, got {}",
            type_name(&made)
        ))),
    }
}

/// A tensor that shares the memory of an object that exports it only by DLPack.
fn exchanged(o: &Bound<PyAny>) -> PyResult<Option<Tensor>> {
    // Of the class, as methods of protocols are: objects answer for any name, or refuse it in their own way.
    if !o.get_type().hasattr("__dlpack__")? {
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

fn kind_arguments(
    dtype: Option<&Bound<PyAny>>,
    device: Option<&Bound<PyAny>>,
) -> PyResult<(Option<DType>, Option<Device>)> {
    let dtype = match dtype {
        Some(d) => Some(to_dtype(d)?.ok_or_else(|| {
            raised::<PyTypeError>(format!("argument 'dtype' must be torch.dtype, not {}", type_name(d)))
        })?),
        None => None,
    };
    let device = match device {
        Some(d) => Some(to_device(d)?.ok_or_else(|| {
            raised::<PyTypeError>(format!("argument 'device' must be torch.device, not {}", type_name(d)))
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
pub fn tensor<'py>(
    data: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
    requires_grad: bool,
    pin_memory: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let _ = pin_memory;
    let py = data.py();
    let leaf = requires_grad.then(|| PyBool::new(py, true).to_owned().into_any());
    let keywords = [("dtype", dtype), ("device", device), ("requires_grad", leaf.as_ref())];
    if let Some(answer) = native(py, "tensor", &[data], &keywords)? {
        return Ok(answer);
    }
    let source = borrow(data.as_ptr()).map(|t| t.device());
    if source.is_some() {
        let text = c"To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or \
            sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).";
        warn_user(py, text, 1)?;
    }
    if borrow(data.as_ptr()).is_some_and(is_opaque) {
        // Only its class knows the elements.
        let options = [("dtype", dtype), ("device", device)].into_iter().filter(|(_, o)| o.is_some());
        let copy = data.call_method0("detach")?.call_method0("clone")?;
        let copy = copy.call_method("to", (), Some(&options.into_py_dict(py)?))?;
        return Ok(copy.call_method1("requires_grad_", (requires_grad,))?);
    }
    let (dtype, device) = kind_arguments(dtype, device)?;
    let t = from_data(data, dtype, device.or(Device::chosen_default()).or(source).unwrap_or_default())?;
    super::graph::set_requires_grad(&t, requires_grad)?;
    wrap_bound(py, t)
}

/// A tensor from data, sharing memory if no conversion is needed: a tensor of the requested dtype is returned as it is.
#[pyfunction]
#[pyo3(signature = (data, dtype=None, device=None))]
pub fn as_tensor<'py>(
    data: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = data.py();
    if let Some(answer) = native(py, "as_tensor", &[data], &[("dtype", dtype), ("device", device)])? {
        return Ok(answer);
    }
    let (dtype, device) = kind_arguments(dtype, device)?;
    let shared = match borrow(data.as_ptr()) {
        Some(t) => Some(t.clone()),
        None => array(data)?,
    };
    let Some(t) = shared else { return wrap_bound(py, from_data(data, dtype, device.unwrap_or_default())?) };
    let device = device.or(Device::chosen_default()).unwrap_or(t.device());
    let dtype = dtype.unwrap_or(t.dtype());
    if t.dtype() == dtype && t.device() == device {
        warn_if_read_only(data, &t)?;
        return wrap_bound(py, t);
    }
    wrap_bound(py, TO_COPY.call((&t, dtype, device)).ok()?)
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
            Err(raised::<PyTypeError>(format!("expected np.ndarray (got {kind})")))
        }
    }
}
