//! GPU queries, default devices, and queries on the storage of a tensor.

use super::error::{PyResult, raised};
use super::object::Handle;
use super::py_types::{PyDevice, to_device};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rustgrad::autograd::node::{Edges, Work};
use rustgrad::autograd::{Node, grad_enabled, history};
use rustgrad::device::Device;
use rustgrad::dtype::DType;
use rustgrad::gpu;
use rustgrad::layout::{Format, Layout, dims, to_shape};
use rustgrad::op::gradient::TensorMeta;
use rustgrad::op::tracer::{self, Change};
use rustgrad::rt::retire::Frame;
use rustgrad::tensor::{INFERENCE, Meta, Tensor};
use smallvec::smallvec;

/// The device on which tensors are created by default.
#[pyfunction]
pub fn get_default_device() -> PyDevice {
    PyDevice(Device::default().into())
}
/// Sets the device on which tensors are created by default; None means the CPU.
#[pyfunction]
pub fn set_default_device(device: &Bound<PyAny>) -> PyResult<()> {
    let d = if device.is_none() { Some(Device::Cpu) } else { to_device(device)? };
    rustgrad::device::set_default_device(
        d.ok_or_else(|| raised::<PyTypeError>("set_default_device(): expected a device or a string"))?,
    );
    Ok(())
}

/// Makes `cuda` an alias of the GPU in this process.
#[pyfunction]
pub fn _set_cuda_alias(on: bool) {
    rustgrad::device::set_cuda_alias(on);
}

/// Whether there is a GPU, or a software adapter that `RUSTGRAD_GPU` selects.
#[pyfunction]
pub fn _gpu_is_available() -> bool {
    gpu::is_available() && gpu::unasked_software().is_none()
}
#[pyfunction]
pub fn _gpu_device_count() -> usize {
    gpu::device_count()
}
#[pyfunction]
#[pyo3(signature = (index=0))]
pub fn _gpu_device_name(index: usize) -> PyResult<String> {
    Ok(gpu::device_name(index)?)
}
/// Waits until all submitted work has completed, on every GPU that was used.
#[pyfunction]
pub fn _gpu_synchronize(py: Python) -> PyResult<()> {
    Ok(py.detach(gpu::synchronize)?)
}
/// Of one GPU: bytes held by tensors and the most that they held, bytes held with the pool and the most of these.
#[pyfunction]
#[pyo3(signature = (index=0))]
pub fn _gpu_memory(index: usize) -> (usize, usize, usize, usize) {
    gpu::memory(index).into()
}
#[pyfunction]
#[pyo3(signature = (index=0))]
pub fn _gpu_reset_peak_memory(index: usize) {
    gpu::reset_peak_memory(index)
}
/// The driver's description of the adapter.
#[pyfunction]
#[pyo3(signature = (index=0))]
pub fn _gpu_properties(py: Python, index: usize) -> PyResult<Bound<PyDict>> {
    let d = PyDict::new(py);
    for (k, v) in gpu::properties(index)? {
        d.set_item(k, v)?;
    }
    Ok(d)
}
/// Counters of dispatches, submissions, pipelines, bind groups, buffers and bytes.
#[pyfunction]
#[pyo3(signature = (index=0))]
pub fn _gpu_stats(py: Python, index: usize) -> PyResult<Bound<PyDict>> {
    let d = PyDict::new(py);
    for (k, v) in gpu::stats(index) {
        d.set_item(k, v)?;
    }
    Ok(d)
}

/// (identity of the storage, its bytes, strides, offset in elements, address of the first element). The address is 0 on
/// another device than the CPU and without elements.
#[pyfunction]
pub fn _storage_info(t: Handle) -> (usize, usize, Vec<usize>, usize, usize) {
    let t = t.0;
    let address = if t.device() == Device::Cpu && t.numel() > 0 { t.ptr().map_or(0, |p| p as usize) } else { 0 };
    (t.storage().id(), t.storage().bytes(), t.strides().to_vec(), t.layout().offset, address)
}

/// A number that is equal for tensors that share a storage.
#[pyfunction]
pub fn _storage_key(t: Handle) -> usize {
    t.0.storage().id()
}

/// The bytes of the whole storage of a tensor, copied to the host.
#[pyfunction]
pub fn _storage_bytes<'py>(py: Python<'py>, t: Handle) -> PyResult<Bound<'py, PyBytes>> {
    let t = t.0;
    let size = t.dtype().size();
    let whole = t.with_layout(Layout::contiguous(&[t.storage().bytes() / size])).dense_copy(t.dtype())?;
    // SAFETY: `whole` is contiguous on the CPU and holds these bytes.
    let bytes = unsafe { std::slice::from_raw_parts(whole.ptr()?, whole.numel() * size) };
    Ok(PyBytes::new_with(py, bytes.len(), |new| {
        new.copy_from_slice(bytes);
        Ok(())
    })?)
}

/// A one-dimensional CPU tensor of a dtype from its bytes.
#[pyfunction]
pub fn _from_storage_bytes(data: &[u8], dtype: PyRef<super::py_types::PyDType>) -> PyResult<Handle> {
    let dtype = dtype.0.dtype()?;
    let size = dtype.size();
    if !data.len().is_multiple_of(size) {
        return Err(raised::<PyRuntimeError>(format!("{} bytes are no whole number of {dtype} elements", data.len())));
    }
    let t = Tensor::empty(&[data.len() / size], dtype, Device::Cpu)?;
    // SAFETY: the new block holds exactly these bytes and is not shared yet.
    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), t.ptr()?, data.len()) };
    if dtype == DType::Bool && data.iter().any(|&b| b > 1) {
        return Err(raised::<PyRuntimeError>("bytes other than 0 and 1 are no bool elements"));
    }
    Ok(Handle(t))
}

/// `resize_`: another shape over the same storage, which grows if necessary.
#[pyfunction]
#[pyo3(signature = (t, sizes, format=None))]
pub fn _resize(t: Handle, sizes: Vec<i64>, format: Option<&Bound<PyAny>>) -> PyResult<()> {
    if t.0.requires_grad() && !t.0.flag(INFERENCE) {
        return Err(raised::<PyRuntimeError>("cannot resize variables that require grad"));
    }
    // SAFETY: the interpreter lock is held here and where the frame is dropped; replaced values may be freed then.
    let _frame = unsafe { Frame::enter() };
    let (tensor, shape) = (t.0, to_shape(&sizes)?);
    let format = format.map(super::memory::format_of).transpose()?.flatten();
    if format == Some(Format::Preserve) {
        return Err(raised::<PyRuntimeError>("Unsupported memory format Preserve"));
    }
    let kept = tensor.storage().bytes() / tensor.dtype().size();
    rustgrad::dispatch::resize(&tensor, &shape, format)?;
    let more = (tensor.storage().bytes() / tensor.dtype().size()).saturating_sub(kept);
    if more > 0 {
        let strides = rustgrad::layout::contiguous_strides(&[more]);
        rustgrad::ops::create::like::leave(&tensor.with_layout(Layout {
            shape: dims(&[more]),
            strides,
            offset: kept,
        }))?;
    }
    Ok(())
}

/// Whether uninitialised memory is filled with NaN or the largest number of its dtype.
#[pyfunction]
pub fn _fill_uninitialized(on: bool) {
    rustgrad::ops::create::like::fill_uninitialized(on);
}

/// Whether the storage of a tensor can grow: it owns its memory, and the address has not been exported.
#[pyfunction]
pub fn _storage_resizable(t: Handle) -> bool {
    t.0.storage().is_resizable()
}

/// Bumps the version of a tensor for a write outside the library; no effect on inference tensors.
#[pyfunction]
pub fn _increment_version(t: Handle) {
    if !t.0.flag(INFERENCE) {
        t.0.storage().bump();
    }
    tracer::notify(|tracer| tracer.changed(&t.0, Change::Written));
}

/// `set_`: the storage, shape and strides of another tensor.
#[pyfunction]
#[pyo3(signature = (t, source, offset=None, sizes=None, strides=None))]
pub fn _set_(
    t: Handle,
    source: Handle,
    offset: Option<i64>,
    sizes: Option<Vec<i64>>,
    strides: Option<Vec<i64>>,
) -> PyResult<()> {
    // SAFETY: as above.
    let _frame = unsafe { Frame::enter() };
    let tracked = grad_enabled() && (t.0.requires_grad() || source.0.requires_grad());
    history::check_inplace(&t.0, tracked)?;
    if tracked && t.0.requires_grad() && t.0.view_info().is_some() {
        return Err(raised::<PyRuntimeError>(
            "set_: a view is part of the graph; expected a tensor of its own. Use detach() or no_grad().",
        ));
    }
    let mut meta: Meta = source.0.meta().clone();
    if let Some(sizes) = sizes {
        let shape = to_shape(&sizes)?;
        let strides =
            strides.unwrap_or_else(|| rustgrad::layout::contiguous_strides(&shape).iter().map(|&s| s as i64).collect());
        let capacity = meta.storage.bytes() / meta.dtype.size();
        meta.layout = Layout::as_strided(&sizes, &strides, offset.unwrap_or(0), capacity)?;
    }
    if meta.dtype != t.0.dtype() {
        return Err(raised::<PyRuntimeError>(format!(
            "Could not set tensor of type {} to a tensor of type {}",
            meta.dtype.cpp_name(),
            t.0.dtype().cpp_name()
        )));
    }
    // The versions go on counting, so that what was saved before is noticed; the next graph has another accumulator.
    let meta = Meta { storage: meta.storage.counted_by(t.0.storage()), ..meta };
    t.0.set_accumulator(None);
    t.0.set_meta(meta)?;
    if tracked {
        let edges: Edges = smallvec![history::grad_edge(&t.0)?, history::grad_edge(&source.0)?];
        let fails = Work::Fails("derivative for set_ is not implemented".into());
        history::set_history(&t.0, &Node::new("NotImplemented", fails, edges, smallvec![TensorMeta::of(&t.0)]), 0);
    }
    tracer::notify(|tracer| tracer.changed(&t.0, Change::Data));
    t.0.storage().bump();
    Ok(())
}
