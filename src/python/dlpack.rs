//! DLPack, both ways: a capsule shares the memory of a CPU tensor with any library that knows the protocol.
//!
//! Source: DLPack 0.8, `DLManagedTensor`. A capsule is named `dltensor` until it is taken and `used_dltensor` after;
//! whoever holds it when it dies calls the deleter, once.

use super::object::Handle;
use crate::cpu::buffer::CpuBuffer;
use crate::device::Device;
use crate::dtype::DType;
use crate::layout::{Dims, Layout, checked_numel, contiguous_strides};
use crate::storage::{Buffer, Storage};
use crate::tensor::{Meta, Tensor};
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_void};

const NAME: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";
const CPU: i32 = 1;

#[repr(C)]
struct DLTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: DLTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// What an exported capsule owns.
struct Exported {
    managed: Managed,
    _owner: Tensor,
    _shape: Vec<i64>,
    _strides: Vec<i64>,
}

fn code_of(d: DType) -> (u8, u8) {
    let code = match d {
        DType::Bool => 6,
        DType::BF16 => 4,
        d if d.is_complex() => 5,
        d if d.is_float() => 2,
        d if d.is_signed() => 0,
        _ => 1,
    };
    (code, (d.size() * 8) as u8)
}

fn dtype_of(code: u8, bits: u8) -> Option<DType> {
    DType::ALL.into_iter().find(|&d| code_of(d) == (code, bits))
}

unsafe extern "C" fn delete(m: *mut Managed) {
    // SAFETY: `context` is the box made by `_to_dlpack`; the protocol calls the deleter once.
    drop(unsafe { Box::from_raw((*m).context.cast::<Exported>()) });
}

unsafe extern "C" fn capsule_died(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter; a capsule under its first name was never taken, so its deleter is ours to call.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) != 0 {
            let m = ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast::<Managed>();
            if let Some(d) = (*m).deleter {
                d(m);
            }
        }
    }
}

/// A capsule that shares the memory of a CPU tensor.
#[pyfunction]
pub fn _to_dlpack<'py>(py: Python<'py>, t: Handle) -> PyResult<Bound<'py, PyAny>> {
    let t = t.0;
    if t.requires_grad() {
        return Err(PyBufferError::new_err("Can't export tensors that require gradient, use tensor.detach()"));
    }
    if t.device() != Device::Cpu {
        return Err(PyBufferError::new_err(format!(
            "__dlpack__: only cpu tensors can be exported, got {}. Copy it with .cpu() first.",
            t.device()
        )));
    }
    let data = t.ptr()?.cast();
    let mut shape: Vec<i64> = t.shape().iter().map(|&d| d as i64).collect();
    let mut strides: Vec<i64> = t.strides().iter().map(|&d| d as i64).collect();
    let (code, bits) = code_of(t.dtype());
    let tensor = DLTensor {
        data,
        device_type: CPU,
        device_id: 0,
        ndim: t.ndim() as i32,
        code,
        bits,
        lanes: 1,
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let managed = Managed { tensor, context: std::ptr::null_mut(), deleter: Some(delete) };
    let raw = Box::into_raw(Box::new(Exported { managed, _owner: t, _shape: shape, _strides: strides }));
    // SAFETY: `raw` was just leaked; the capsule owns it from here on.
    unsafe {
        (*raw).managed.context = raw.cast();
        let capsule = ffi::PyCapsule_New((&raw mut (*raw).managed).cast(), NAME.as_ptr(), Some(capsule_died));
        if capsule.is_null() {
            drop(Box::from_raw(raw));
            return Err(PyErr::fetch(py));
        }
        Ok(Bound::from_owned_ptr(py, capsule))
    }
}

/// Calls the deleter of a capsule that was taken.
struct Taken(*mut Managed);
// SAFETY: the protocol lets any thread call the deleter, once.
unsafe impl Send for Taken {}
// SAFETY: as above; nothing is read through it.
unsafe impl Sync for Taken {}
impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: we own the capsule's content; foreign deleters may touch Python, so the lock is held.
        Python::attach(|_| unsafe {
            if let Some(d) = (*self.0).deleter {
                d(self.0);
            }
        });
    }
}

/// A tensor that shares the memory of a DLPack capsule.
#[pyfunction]
pub fn _from_dlpack(capsule: &Bound<PyAny>) -> PyResult<Handle> {
    let p = capsule.as_ptr();
    // SAFETY: validity under the name is checked before the pointer is read.
    let m = unsafe {
        if ffi::PyCapsule_IsValid(p, NAME.as_ptr()) == 0 {
            ffi::PyErr_Clear();
            return Err(PyRuntimeError::new_err(
                "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might have already constructed a tensor from it once.",
            ));
        }
        ffi::PyCapsule_GetPointer(p, NAME.as_ptr()).cast::<Managed>()
    };
    // SAFETY: the producer's struct lives until its deleter is called.
    let t = unsafe { &(*m).tensor };
    let (dtype, layout) = describe(t)?;
    // SAFETY: the capsule is valid; the new name says that its content has an owner, `Taken`.
    unsafe { ffi::PyCapsule_SetName(p, USED.as_ptr()) };
    let data = t.data.cast::<u8>().wrapping_add(t.byte_offset as usize);
    let buffer = CpuBuffer::foreign(data, layout.end() * dtype.size(), Box::new(Taken(m)), false);
    Ok(Handle(Tensor::from_meta(Meta { storage: Storage::new(Buffer::Cpu(buffer), Device::Cpu), layout, dtype })))
}

fn describe(t: &DLTensor) -> PyResult<(DType, Layout)> {
    if t.device_type != CPU {
        return Err(PyBufferError::new_err(format!(
            "from_dlpack: device type {} is not supported; expected cpu memory",
            t.device_type
        )));
    }
    let dtype = dtype_of(t.code, t.bits).filter(|_| t.lanes == 1);
    let dtype = dtype.ok_or_else(|| {
        PyTypeError::new_err(format!(
            "from_dlpack: unsupported element type (code {}, {} bits, {} lanes)",
            t.code, t.bits, t.lanes
        ))
    })?;
    let n =
        usize::try_from(t.ndim).map_err(|_| PyRuntimeError::new_err("from_dlpack: negative number of dimensions"))?;
    let read = |p: *mut i64| -> PyResult<Dims> {
        // SAFETY: the producer gives `ndim` numbers behind both pointers.
        let all = if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts(p, n) } };
        all.iter()
            .map(|&d| {
                usize::try_from(d)
                    .map_err(|_| PyRuntimeError::new_err("from_dlpack: negative sizes or strides are not supported"))
            })
            .collect()
    };
    let shape = read(t.shape)?;
    checked_numel(&shape)?;
    let strides = if t.strides.is_null() { contiguous_strides(&shape) } else { read(t.strides)? };
    Ok((dtype, Layout { shape, strides, offset: 0 }))
}
