//! Tensors over the buffer protocol, over slices of a storage, and the bytes of a storage as a tensor.

use super::convert::type_name;
use super::error::{PyResult, raised};
use super::object::Handle;
use super::py_types::{PyDType, to_dtype};
use super::warnings::warn_once;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use rustgrad::cpu::buffer::CpuBuffer;
use rustgrad::device::Device;
use rustgrad::dtype::DType;
use rustgrad::layout::Layout;
use rustgrad::rt::retire::Frame;
use rustgrad::storage::{Buffer, Storage};
use rustgrad::tensor::{Meta, Tensor};

/// An exported buffer: the exporter keeps the memory alive until this is dropped.
struct Exported(Box<ffi::Py_buffer>);

// SAFETY: the view is plain data, and it is released under the interpreter lock.
unsafe impl Send for Exported {}
// SAFETY: as above; nothing is mutated through a shared reference.
unsafe impl Sync for Exported {}

impl Exported {
    /// The bytes of an object, writable if the object allows it.
    fn of(o: &Bound<PyAny>) -> PyResult<Exported> {
        for flags in [ffi::PyBUF_WRITABLE, ffi::PyBUF_SIMPLE] {
            let mut view = Box::new(ffi::Py_buffer::new());
            // SAFETY: `o` is live and `view` is ours to fill.
            if unsafe { ffi::PyObject_GetBuffer(o.as_ptr(), &raw mut *view, flags) } == 0 {
                return Ok(Exported(view));
            }
            // SAFETY: the interpreter lock is held; a later error replaces this one.
            unsafe { ffi::PyErr_Clear() };
        }
        Err(raised::<PyValueError>("object does not implement Python buffer protocol."))
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        // SAFETY: the view was filled by `PyObject_GetBuffer` and is released once; at process exit it is leaked.
        Python::try_attach(|_| unsafe { ffi::PyBuffer_Release(&raw mut *self.0) });
    }
}

/// A one-dimensional tensor that shares the memory of an object with the buffer protocol.
///
/// Args: `count` elements (-1: all), starting at byte `offset`. Errors: ValueError for an object without the protocol,
/// an empty one, or a range that does not fit. Read-only memory gives a warning and a tensor that cannot be written.
#[pyfunction]
#[pyo3(signature = (buffer, *, dtype, count=-1, offset=0, requires_grad=false))]
pub fn frombuffer(
    buffer: &Bound<PyAny>,
    dtype: &Bound<PyAny>,
    count: i64,
    offset: i64,
    requires_grad: bool,
) -> PyResult<Handle> {
    let kind = to_dtype(dtype)?.ok_or_else(|| {
        raised::<PyTypeError>(format!("frombuffer(): argument 'dtype' must be torch.dtype, not {}", type_name(dtype)))
    })?;
    let exported = Exported::of(buffer)?;
    let (bytes, start, read_only) = (exported.0.len as i64, exported.0.buf, exported.0.readonly != 0);
    let n = elements(bytes, kind.size() as i64, count, offset)?;
    // SAFETY: the offset lies within the exported bytes.
    let first = unsafe { start.cast::<u8>().offset(offset as isize) };
    if !(first as usize).is_multiple_of(kind.size().min(8)) {
        return Err(raised::<PyValueError>(format!(
            "frombuffer: the memory at offset {offset} is not aligned for {kind}. Copy the bytes first."
        )));
    }
    if read_only {
        warn_read_only(buffer.py(), "buffer")?;
    }
    let memory = CpuBuffer::foreign(first, n * kind.size(), Box::new(exported), read_only);
    let storage = Storage::new(Buffer::Cpu(memory), Device::Cpu);
    let t = Tensor::from_meta(Meta { storage, layout: Layout::contiguous(&[n]), dtype: kind });
    super::graph::set_requires_grad(&t, requires_grad)?;
    Ok(Handle(t))
}

/// Number of elements of `size` bytes in a range of a buffer.
fn elements(bytes: i64, size: i64, count: i64, offset: i64) -> PyResult<usize> {
    let refuse = |text: String| Err(raised::<PyValueError>(text));
    if bytes <= 0 || count == 0 {
        return refuse(format!("both buffer length ({bytes}) and count ({count}) must not be 0"));
    }
    if offset < 0 || offset >= bytes {
        return refuse(format!(
            "offset ({offset} bytes) must be non-negative and no greater than buffer length ({bytes} bytes) minus 1"
        ));
    }
    let rest = bytes - offset;
    if count > 0 {
        return match count.checked_mul(size) {
            Some(wanted) if wanted <= rest => Ok(count as usize),
            _ => refuse(format!(
                "requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than \
                 actual buffer length ({bytes} bytes)"
            )),
        };
    }
    if rest % size != 0 {
        return refuse(format!(
            "buffer length ({rest} bytes) after offset ({offset} bytes) must be a multiple of element size ({size})"
        ));
    }
    Ok((rest / size) as usize)
}

/// PyTorch's warning about read-only memory. Here writing raises an error; in PyTorch it is undefined behaviour.
pub fn warn_read_only(py: Python, what: &str) -> PyResult<()> {
    let text = format!(
        "The given {what} is not writable, and writing to the tensor will be refused. You may want to copy it to protect \
         its data or to make it writable."
    );
    warn_once(py, &text, 1)
}

/// A tensor of a dtype over another tensor's storage: sizes, strides and offset in elements, which must lie within the
/// storage.
#[pyfunction]
pub fn _over_storage(
    source: Handle,
    dtype: PyRef<PyDType>,
    offset: i64,
    sizes: Vec<i64>,
    strides: Vec<i64>,
) -> PyResult<Handle> {
    let (storage, dtype) = (source.0.storage().clone(), dtype.0.dtype()?);
    let layout = Layout::as_strided(&sizes, &strides, offset, storage.bytes() / dtype.size())?;
    let aligned = |p: *mut u8| (p as usize).is_multiple_of(dtype.size().min(8));
    if source.0.device() == Device::Cpu && layout.numel() > 0 && !aligned(storage.cpu_ptr()?) {
        return Err(raised::<PyValueError>(format!(
            "the memory of the storage is not aligned for {dtype}. Clone the storage first."
        )));
    }
    Ok(Handle(Tensor::from_meta(Meta { storage, layout, dtype })))
}

/// A range of bytes of a CPU tensor's storage as a separate storage, which shares the memory and keeps the whole alive.
#[pyfunction]
pub fn _storage_slice(t: Handle, start: usize, stop: usize) -> PyResult<Handle> {
    let storage = t.0.storage().clone();
    if start > stop || stop > storage.bytes() {
        return Err(raised::<PyValueError>(format!(
            "storage slice {start}:{stop}: out of range; expected bytes of a storage of {}",
            storage.bytes()
        )));
    }
    // The slice holds the address, so the whole must not move.
    storage.fix();
    let (first, read_only) = (storage.cpu_ptr()?.wrapping_add(start), storage.is_read_only());
    let memory = CpuBuffer::foreign(first, stop - start, Box::new(storage), read_only);
    let storage = Storage::new(Buffer::Cpu(memory), Device::Cpu);
    Ok(Handle(Tensor::from_meta(Meta { storage, layout: Layout::contiguous(&[stop - start]), dtype: DType::U8 })))
}

/// The storage of a tensor as bytes: a uint8 tensor of one dimension over all of it.
#[pyfunction]
pub fn _storage_as_bytes(t: Handle) -> Handle {
    let storage = t.0.storage().clone();
    let layout = Layout::contiguous(&[storage.bytes()]);
    Handle(Tensor::from_meta(Meta { storage, layout, dtype: DType::U8 }))
}

/// The bytes of a CPU storage, for Python's buffer protocol. Views of it keep it, and it keeps the storage.
#[pyclass(module = "rustgrad._C")]
struct StorageBytes {
    storage: Storage,
    writable: bool,
}

#[pymethods]
impl StorageBytes {
    unsafe fn __getbuffer__(slf: PyRef<Self>, view: *mut ffi::Py_buffer, flags: std::ffi::c_int) -> PyResult<()> {
        let (first, n) = (slf.storage.cpu_ptr()?, slf.storage.bytes() as ffi::Py_ssize_t);
        // SAFETY: the interpreter's view is ours to fill; the memory stays while this object lives, see `_lend_storage`.
        let failed = unsafe {
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), first.cast(), n, i32::from(!slf.writable), flags) != 0
        };
        if failed { Err(PyErr::fetch(slf.py()).into()) } else { Ok(()) }
    }
}

/// What `use(view)` returns for a memoryview of the bytes of a CPU tensor's storage: no copy is made.
///
/// Args: `writable`: the view is one to fill. Errors: RuntimeError for a tensor that has no memory here, or has read-only memory.
#[pyfunction]
#[pyo3(signature = (r#use, t, writable=false))]
pub fn _lend_storage<'py>(r#use: &Bound<'py, PyAny>, t: Handle, writable: bool) -> PyResult<Bound<'py, PyAny>> {
    let py = r#use.py();
    // SAFETY: the interpreter lock is held here and at the end. Memory that is replaced meanwhile stays until the frame ends.
    let _frame = unsafe { Frame::enter() };
    let storage = t.0.storage().clone();
    storage.cpu_ptr()?;
    if writable && storage.is_read_only() {
        return Err(raised::<PyRuntimeError>("the storage is read-only memory; expected one that can be written"));
    }
    let lent = Bound::new(py, StorageBytes { storage: storage.clone(), writable })?;
    let view = pyo3::types::PyMemoryView::from(&lent)?;
    let result = r#use.call1((view,));
    // SAFETY: a live object.
    if unsafe { ffi::Py_REFCNT(lent.as_ptr()) } > 1 {
        // Somebody has kept a view: from now on the memory stays where it is.
        storage.fix();
    }
    Ok(result?)
}

/// The CRC-32 of an object's bytes, as in zip archives.
#[pyfunction]
pub fn _crc32(data: &Bound<PyAny>) -> PyResult<u32> {
    let view = Exported::of(data)?;
    if view.0.len <= 0 {
        return Ok(crc32fast::hash(&[]));
    }
    // SAFETY: the exporter keeps as many bytes until the view is released, after this call.
    Ok(crc32fast::hash(unsafe { std::slice::from_raw_parts(view.0.buf.cast(), view.0.len as usize) }))
}
