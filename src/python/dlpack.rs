//! DLPack import and export: a capsule shares the memory of a CPU tensor with any library that supports the protocol.
//!
//! Source: DLPack 0.8, `DLManagedTensor`, and 1.0, `DLManagedTensorVersioned`, which can also mark memory as read-only.
//! A capsule is named `dltensor` until it is consumed and `used_dltensor` afterwards; its owner at the time calls the
//! deleter, once.

use super::error::{PyResult, raised};
use super::object::Handle;
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use rustgrad::cpu::buffer::CpuBuffer;
use rustgrad::device::Device;
use rustgrad::dtype::DType;
use rustgrad::layout::{Dims, Layout, checked_numel, contiguous_strides};
use rustgrad::storage::{Buffer, Storage};
use rustgrad::tensor::{Meta, Tensor};
use std::ffi::{CStr, c_void};

const CPU: i32 = 1;
const READ_ONLY: u64 = 1;
const COPIED: u64 = 2;

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

/// A version of the protocol, with the struct in its capsules.
trait Managed: Sized {
    const NAME: &CStr;
    const USED: &CStr;
    fn new(tensor: DLTensor, flags: u64, deleter: unsafe extern "C" fn(*mut Self)) -> Self;
    fn tensor(&self) -> PyResult<&DLTensor>;
    fn is_read_only(&self) -> bool;
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)>;
}

#[repr(C)]
struct Plain {
    tensor: DLTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Plain)>,
}

impl Managed for Plain {
    const NAME: &CStr = c"dltensor";
    const USED: &CStr = c"used_dltensor";
    fn new(tensor: DLTensor, _flags: u64, deleter: unsafe extern "C" fn(*mut Self)) -> Self {
        Plain { tensor, context: std::ptr::null_mut(), deleter: Some(deleter) }
    }
    fn tensor(&self) -> PyResult<&DLTensor> {
        Ok(&self.tensor)
    }
    fn is_read_only(&self) -> bool {
        false
    }
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
    }
}

#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DLTensor,
}

impl Managed for Versioned {
    const NAME: &CStr = c"dltensor_versioned";
    const USED: &CStr = c"used_dltensor_versioned";
    fn new(tensor: DLTensor, flags: u64, deleter: unsafe extern "C" fn(*mut Self)) -> Self {
        Versioned { major: 1, minor: 0, context: std::ptr::null_mut(), deleter: Some(deleter), flags, tensor }
    }
    fn tensor(&self) -> PyResult<&DLTensor> {
        // Another major version may have a different layout after the deleter.
        match self.major {
            1 => Ok(&self.tensor),
            v => Err(raised::<PyBufferError>(format!("from_dlpack: DLPack version {v} is not supported; expected 1"))),
        }
    }
    fn is_read_only(&self) -> bool {
        self.flags & READ_ONLY != 0
    }
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
    }
}

/// What an exported capsule owns; `managed` is the first field, so that a pointer to it points to the whole.
#[repr(C)]
struct Exported<M> {
    managed: M,
    _owner: Tensor,
    _shape: Vec<i64>,
    _strides: Vec<i64>,
}

fn code_of(d: DType) -> (u8, u8) {
    let code = match d {
        DType::Bool => 6,
        DType::BF16 => 4,
        DType::F8E4M3FN => 10,
        DType::F8E4M3FNUZ => 11,
        DType::F8E5M2 => 12,
        DType::F8E5M2FNUZ => 13,
        DType::F8E8M0FNU => 14,
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

unsafe extern "C" fn delete<M: Managed>(m: *mut M) {
    // SAFETY: `m` is the start of the box made by `export`; the protocol calls the deleter once.
    drop(unsafe { Box::from_raw(m.cast::<Exported<M>>()) });
}

unsafe extern "C" fn capsule_died<M: Managed>(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter; a capsule with its first name was never consumed, so we call its deleter.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, M::NAME.as_ptr()) != 0 {
            let m = ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr()).cast::<M>();
            if let Some(d) = (*m).deleter() {
                d(m);
            }
        }
    }
}

/// A capsule that shares the memory of a CPU tensor; a `versioned` one can be marked read-only.
#[pyfunction]
#[pyo3(signature = (t, versioned=false, copied=false))]
pub fn _to_dlpack<'py>(py: Python<'py>, t: Handle, versioned: bool, copied: bool) -> PyResult<Bound<'py, PyAny>> {
    let t = t.0;
    if t.requires_grad() {
        return Err(raised::<PyBufferError>("Can't export tensors that require gradient, use tensor.detach()"));
    }
    if t.device() != Device::Cpu {
        return Err(raised::<PyBufferError>(format!(
            "__dlpack__: only cpu tensors can be exported, got {}. Copy it with .cpu() first.",
            t.device()
        )));
    }
    let read_only = t.storage().is_read_only();
    if read_only && !versioned {
        return Err(raised::<PyBufferError>(
            "__dlpack__: the memory is read-only, which capsules before version 1.0 cannot say. Export a clone().",
        ));
    }
    let flags = if read_only { READ_ONLY } else { 0 } | if copied { COPIED } else { 0 };
    if versioned { export::<Versioned>(py, t, flags) } else { export::<Plain>(py, t, flags) }
}

fn export<M: Managed>(py: Python, t: Tensor, flags: u64) -> PyResult<Bound<PyAny>> {
    // A new handle, whose data nobody else can replace, on a block that must not move.
    let t = t.detach();
    t.storage().fix();
    let data = t.ptr()?.cast();
    // From here on the consumer has the address.
    t.storage().fix();
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
    let managed = M::new(tensor, flags, delete::<M>);
    let raw = Box::into_raw(Box::new(Exported { managed, _owner: t, _shape: shape, _strides: strides }));
    // SAFETY: `raw` was just leaked; the capsule owns it from here on.
    unsafe {
        let capsule = ffi::PyCapsule_New(raw.cast(), M::NAME.as_ptr(), Some(capsule_died::<M>));
        if capsule.is_null() {
            drop(Box::from_raw(raw));
            return Err(PyErr::fetch(py).into());
        }
        Ok(Bound::from_owned_ptr(py, capsule))
    }
}

/// Owns a consumed capsule's content and calls its deleter.
struct Taken<M: Managed>(*mut M);
// SAFETY: the protocol lets any thread call the deleter, once.
unsafe impl<M: Managed> Send for Taken<M> {}
// SAFETY: as above; nothing is read through it.
unsafe impl<M: Managed> Sync for Taken<M> {}
impl<M: Managed> Drop for Taken<M> {
    fn drop(&mut self) {
        // SAFETY: we own the capsule's content; foreign deleters may touch Python, so the lock is held.
        Python::try_attach(|_| unsafe {
            if let Some(d) = (*self.0).deleter() {
                d(self.0);
            }
        });
    }
}

/// A tensor that shares the memory of a DLPack capsule.
#[pyfunction]
pub fn _from_dlpack(capsule: &Bound<PyAny>) -> PyResult<Handle> {
    let named = |name: &CStr| {
        // SAFETY: valid for any live object.
        unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) != 0 }
    };
    if named(Versioned::NAME) {
        return import::<Versioned>(capsule);
    }
    if named(Plain::NAME) {
        return import::<Plain>(capsule);
    }
    Err(raised::<PyRuntimeError>(
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might have already constructed a tensor from it once.",
    ))
}

/// Takes the content of a capsule whose name was checked.
fn import<M: Managed + 'static>(capsule: &Bound<PyAny>) -> PyResult<Handle> {
    let p = capsule.as_ptr();
    // SAFETY: a capsule of this name holds an `M`, which lives until its deleter is called.
    let (m, managed) = unsafe {
        let m = ffi::PyCapsule_GetPointer(p, M::NAME.as_ptr()).cast::<M>();
        (m, &*m)
    };
    let (t, read_only) = (managed.tensor()?, managed.is_read_only());
    let (dtype, layout) = describe(t)?;
    // SAFETY: the capsule is valid; the new name marks its content as owned, by `Taken`.
    unsafe { ffi::PyCapsule_SetName(p, M::USED.as_ptr()) };
    let data = t.data.cast::<u8>().wrapping_add(t.byte_offset as usize);
    let buffer = CpuBuffer::foreign(data, layout.end() * dtype.size(), Box::new(Taken(m)), read_only);
    Ok(Handle(Tensor::from_meta(Meta { storage: Storage::new(Buffer::Cpu(buffer), Device::Cpu), layout, dtype })))
}

fn describe(t: &DLTensor) -> PyResult<(DType, Layout)> {
    if t.device_type != CPU {
        return Err(raised::<PyBufferError>(format!(
            "from_dlpack: device type {} is not supported; expected cpu memory",
            t.device_type
        )));
    }
    let dtype = dtype_of(t.code, t.bits).filter(|_| t.lanes == 1);
    let dtype = dtype.ok_or_else(|| {
        raised::<PyTypeError>(format!(
            "from_dlpack: unsupported element type (code {}, {} bits, {} lanes)",
            t.code, t.bits, t.lanes
        ))
    })?;
    let n =
        usize::try_from(t.ndim).map_err(|_| raised::<PyRuntimeError>("from_dlpack: negative number of dimensions"))?;
    let read = |p: *mut i64| -> PyResult<Dims> {
        // SAFETY: the producer provides `ndim` numbers behind both pointers.
        let all = if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts(p, n) } };
        all.iter()
            .map(|&d| {
                usize::try_from(d)
                    .map_err(|_| raised::<PyRuntimeError>("from_dlpack: negative sizes or strides are not supported"))
            })
            .collect()
    };
    let shape = read(t.shape)?;
    checked_numel(&shape)?;
    let strides = if t.strides.is_null() { contiguous_strides(&shape) } else { read(t.strides)? };
    Ok((dtype, Layout { shape, strides, offset: 0 }))
}
