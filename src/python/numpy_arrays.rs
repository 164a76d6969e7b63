//! Memory shared with NumPy arrays, both ways, by the struct of NumPy's array interface (`__array_struct__`).
//!
//! The struct is part of NumPy's stable protocol: https://numpy.org/doc/stable/reference/arrays.interface.html. It says what
//! the dict `__array_interface__` says, without a Python object for each number.

use super::error::{PyResult, raised};
use super::object::Handle;
use super::owned_objects::Held;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi::{self, PyObject};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;
use rustgrad::cpu::buffer::CpuBuffer;
use rustgrad::device::Device;
use rustgrad::dtype::DType;
use rustgrad::layout::{Dims, Layout};
use rustgrad::op::tracer::{self, Read};
use rustgrad::storage::{Buffer, Storage};
use rustgrad::tensor::{Meta, Tensor};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// `PyArrayInterface` of NumPy.
#[repr(C)]
struct Interface {
    /// Always 2.
    two: c_int,
    nd: c_int,
    kind: c_char,
    itemsize: c_int,
    flags: c_int,
    /// Both have `nd` numbers; the strides count bytes. Null where `nd` is 0.
    shape: *const isize,
    strides: *const isize,
    data: *mut c_void,
    description: *mut PyObject,
}

const ALIGNED: c_int = 0x100;
const NATIVE_ORDER: c_int = 0x200;
const WRITEABLE: c_int = 0x400;

/// NumPy's letter for a kind of numbers, and the bytes of one.
fn kind_of(dtype: DType) -> Option<(u8, usize)> {
    let kind = match dtype {
        DType::Bool => b'b',
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => b'u',
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => b'i',
        DType::F16 | DType::F32 | DType::F64 => b'f',
        DType::C64 | DType::C128 => b'c',
        _ => return None,
    };
    Some((kind, dtype.size()))
}

/// The dtype of numbers of a kind with so many bytes: as in `f4`.
pub fn dtype_of(kind: u8, bytes: usize) -> Option<DType> {
    DType::ALL.into_iter().find(|d| kind_of(*d) == Some((kind, bytes)))
}

/// A tensor that shares the memory of an array. The struct is read through NumPy's own class, since a subclass may report
/// anything.
pub fn share<'py>(o: &Bound<'py, PyAny>, class: &Bound<'py, PyType>) -> PyResult<Tensor> {
    let py = o.py();
    let getter = class.getattr(intern!(py, "__array_struct__"))?;
    let capsule = getter.call_method1(intern!(py, "__get__"), (o,))?;
    // SAFETY: NumPy's capsule without a name holds its struct, which lives as long as the capsule, with `nd` sizes and strides.
    let (interface, shape, bytes) = unsafe {
        let interface = ffi::PyCapsule_GetPointer(capsule.as_ptr(), null()).cast::<Interface>();
        let Some(interface) = interface.as_ref() else { return Err(PyErr::fetch(py).into()) };
        let n = interface.nd as usize;
        let list = |p: *const isize| if n == 0 { &[][..] } else { std::slice::from_raw_parts(p, n) };
        (interface, list(interface.shape), list(interface.strides))
    };
    if interface.flags & NATIVE_ORDER == 0 {
        return Err(raised::<PyValueError>(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is currently not \
             supported.",
        ));
    }
    let (kind, itemsize) = (interface.kind as u8, interface.itemsize as usize);
    let dtype = dtype_of(kind, itemsize).ok_or_else(|| {
        let name = o.getattr("dtype").and_then(|d| d.getattr("type")?.getattr("__name__"));
        let name = name.map_or(format!("{}{itemsize}", kind as char), |name| format!("numpy.{name}"));
        raised::<PyTypeError>(format!(
            "can't convert np.ndarray of type {name}. The only supported types are: float64, float32, float16, complex64, complex128, \
             int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
        ))
    })?;
    let shape: Dims = shape.iter().map(|&d| d as usize).collect();
    let n = rustgrad::layout::checked_numel(&shape)?;
    let layout = Layout { strides: element_strides(&shape, bytes, dtype)?, shape, offset: 0 };
    let address = interface.data;
    if n > 0 && !(address as usize).is_multiple_of(dtype.size().min(8)) {
        return Err(raised::<PyValueError>(
            "the array's memory is not aligned for its dtype. Make a copy of it with array.copy().",
        ));
    }
    let read_only = interface.flags & WRITEABLE == 0;
    let owner = Box::new(Held::new(o.clone().unbind()));
    let buffer = CpuBuffer::foreign(address.cast(), layout.end() * dtype.size(), owner, read_only);
    Ok(Tensor::from_meta(Meta { storage: Storage::new(Buffer::Cpu(buffer), Device::Cpu), layout, dtype }))
}

fn element_strides(shape: &[usize], bytes: &[isize], dtype: DType) -> PyResult<Dims> {
    let size = dtype.size() as isize;
    let one = |(&b, &d): (&isize, &usize)| {
        if b < 0 && d > 1 {
            return Err(raised::<PyValueError>(
                "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. \
                 (You can probably work around this by making a copy of your array  with array.copy().) ",
            ));
        }
        if b % size != 0 && d > 1 {
            return Err(raised::<PyValueError>(
                "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory.",
            ));
        }
        Ok((b.max(0) / size) as usize)
    };
    bytes.iter().zip(shape).map(one).collect()
}

/// What `numpy.asarray` makes an array of: the array keeps it, and it keeps the memory.
#[pyclass(module = "rustgrad._C")]
pub struct _ArrayExport {
    // The capsule points to the struct, and the struct into the list and the tensor's memory.
    interface: Box<Interface>,
    _dims: Vec<isize>,
    _owner: Tensor,
}

// SAFETY: the addresses are of memory that the object owns; NumPy reads them under the interpreter lock.
unsafe impl Send for _ArrayExport {}
// SAFETY: as above.
unsafe impl Sync for _ArrayExport {}

#[pymethods]
impl _ArrayExport {
    /// The struct, as a capsule that is valid while this object lives.
    #[getter]
    fn __array_struct__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let interface: *const Interface = &*slf.borrow().interface;
        // SAFETY: NumPy keeps this object beside the capsule.
        unsafe { Ok(Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(interface.cast_mut().cast(), null(), None))?) }
    }
}

/// Shares the memory of a CPU tensor. Errors: TypeError for another device or a dtype that NumPy lacks, RuntimeError for a
/// tensor that requires grad.
#[pyfunction]
pub fn _array_export(t: Handle) -> PyResult<_ArrayExport> {
    let t = t.0;
    tracer::may_read(&t, Read::Values)?;
    if t.device() != Device::Cpu {
        return Err(raised::<PyTypeError>(format!(
            "can't convert {} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
            t.device()
        )));
    }
    let Some((kind, itemsize)) = kind_of(t.dtype()) else {
        let (name, wider) = (t.dtype().scalar_type_name(), if t.dtype().is_complex() { "cfloat" } else { "float" });
        return Err(raised::<PyTypeError>(format!(
            "Got unsupported ScalarType {name}. Convert with .{wider}() first."
        )));
    };
    if t.requires_grad() && rustgrad::autograd::grad_enabled() {
        return Err(raised::<PyRuntimeError>(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        ));
    }
    // A handle owned by the array, whose data nobody else can replace; the block must not move.
    let owner = t.detach();
    owner.storage().fix();
    let strides = owner.strides().iter().map(|&s| s.wrapping_mul(itemsize) as isize);
    let dims: Vec<isize> = owner.shape().iter().map(|&d| d as isize).chain(strides).collect();
    let writeable = if owner.storage().is_read_only() { 0 } else { WRITEABLE };
    let interface = Box::new(Interface {
        two: 2,
        nd: owner.ndim() as c_int,
        kind: kind as c_char,
        itemsize: itemsize as c_int,
        flags: ALIGNED | NATIVE_ORDER | writeable,
        shape: dims.as_ptr(),
        strides: dims[owner.ndim()..].as_ptr(),
        data: owner.ptr()?.cast(),
        description: null_mut(),
    });
    Ok(_ArrayExport { interface, _dims: dims, _owner: owner })
}
