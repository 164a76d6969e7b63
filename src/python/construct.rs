//! Tensors from Python data: nested lists, numbers, arrays; copied by `tensor`, shared by `from_numpy`.

use super::kinds::{to_device, to_dtype};
use super::object::{Handle, borrow};
use super::parse::{to_scalar, type_name};
use crate::cpu::buffer::CpuBuffer;
use crate::device::Device;
use crate::dtype::{Category, DType, Element, Scalar, default_dtype};
use crate::layout::{Dims, Layout};
use crate::ops::copy::TO_COPY;
use crate::storage::{Buffer, Storage};
use crate::tensor::{Meta, Tensor};
use crate::with_dtype;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

/// What the elements of nested data have in common.
struct Leaves {
    values: Vec<Scalar>,
    category: Option<Category>,
    /// The dtype of tensors or arrays among the leaves, which outranks the default of their category.
    dtype: Option<DType>,
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

fn from_nested(o: &Bound<PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    let shape = nested_shape(o)?;
    let n = crate::layout::checked_numel(&shape)?;
    let mut leaves = Leaves { values: Vec::with_capacity(n.min(1 << 20)), category: None, dtype: None };
    collect(o, &shape, 0, &mut leaves)?;
    let natural = match leaves.category {
        None => default_dtype(),
        Some(_) if leaves.dtype.is_some() => leaves.dtype.unwrap_or(DType::F32),
        Some(Category::Bool) => DType::Bool,
        Some(Category::Int) => DType::I64,
        Some(Category::Float) => default_dtype(),
        Some(Category::Complex) => default_dtype().to_complex(),
    };
    let dtype = dtype.unwrap_or(natural);
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
    if !dtype.is_int() {
        return Ok(());
    }
    let bits = dtype.size() as u32 * 8;
    let (low, high) =
        if dtype.is_signed() { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    for v in values {
        let wide = match *v {
            Scalar::Int(i) => i128::from(i),
            Scalar::UInt(u) => i128::from(u),
            Scalar::Complex(..) => {
                return Err(PyTypeError::new_err("'complex' object cannot be interpreted as an integer"));
            }
            _ => continue,
        };
        // Negative numbers wrap into unsigned types in PyTorch up to their width.
        if wide > high || wide < low.min(-(1i128 << (bits - 1))) {
            return Err(pyo3::exceptions::PyRuntimeError::new_err(format!(
                "value cannot be converted to type {} without overflow",
                dtype.name()
            )));
        }
    }
    Ok(())
}

fn is_nested(o: &Bound<PyAny>) -> bool {
    o.is_instance_of::<PyList>()
        || o.is_instance_of::<PyTuple>()
        || borrow(o.as_ptr()).is_some_and(|t| t.ndim() > 0)
        || (o.hasattr("__getitem__").unwrap_or(false)
            && o.hasattr("__len__").unwrap_or(false)
            && !o.is_instance_of::<PyString>()
            && !o.is_instance_of::<PyDict>())
}

/// The shape that the first items at each depth suggest; `collect` checks the rest against it.
fn nested_shape(o: &Bound<PyAny>) -> PyResult<Dims> {
    let (mut shape, mut at) = (Dims::new(), o.clone());
    while is_nested(&at) && to_scalar(&at)?.is_none() {
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
        None => match to_scalar(o)? {
            Some(s) => (s, None),
            None if is_nested(o) => {
                return Err(PyValueError::new_err(format!("expected a number, got a sequence of length {}", o.len()?)));
            }
            None if o.is_instance_of::<PyString>() => {
                return Err(PyTypeError::new_err("new(): invalid data type 'str'"));
            }
            None => return Err(PyTypeError::new_err(format!("Could not infer dtype of {}", type_name(o)))),
        },
    };
    if let Some(d) = dtype {
        out.dtype = Some(out.dtype.map_or(d, |p| crate::dtype::promote(p, d)));
    }
    let c = s.category();
    out.category = Some(out.category.map_or(c, |p| p.max(c)));
    out.values.push(s);
    Ok(())
}

/// A tensor that shares the memory of an object with `__array_interface__` (NumPy's arrays and scalars).
fn array(o: &Bound<PyAny>) -> PyResult<Option<Tensor>> {
    if o.is_instance_of::<PyList>() || o.is_instance_of::<PyTuple>() || o.is_instance_of::<pyo3::types::PyFloat>() {
        return Ok(None);
    }
    let Ok(interface) = o.getattr("__array_interface__") else { return Ok(None) };
    share(o, interface.cast::<PyDict>()?).map(Some)
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
    let dtype = typestr_dtype(&typestr).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "can't convert np.ndarray of type {typestr}. The only supported types are: float64, float32, float16, complex64, complex128, \
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
        return Ok(Handle(t));
    }
    Ok(Handle(TO_COPY.call((&t, dtype, device)).ok()?))
}

/// A tensor that shares memory with a NumPy array, both ways. A read-only array gives a tensor that refuses to be written.
#[pyfunction]
pub fn from_numpy(ndarray: &Bound<PyAny>) -> PyResult<Handle> {
    let is_array = ndarray.get_type().name()? == "ndarray" || ndarray.hasattr("__array_interface__")?;
    match if is_array { array(ndarray)? } else { None } {
        Some(t) => Ok(Handle(t)),
        None => Err(PyTypeError::new_err(format!("expected np.ndarray (got {})", type_name(ndarray)))),
    }
}
