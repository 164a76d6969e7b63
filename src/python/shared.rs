//! Storages in memory that other processes can map; `rustgrad.multiprocessing` sends their descriptors.

use super::error::PyResult;
use super::object::Handle;
use pyo3::prelude::*;
use rustgrad::cpu::buffer::CpuBuffer;
use rustgrad::cpu::shared::SharedMapping;
use rustgrad::device::Device;
use rustgrad::dtype::DType;
use rustgrad::layout::Layout;
use rustgrad::storage::{Buffer, Storage};
use rustgrad::tensor::{Meta, Tensor};

/// A shared block: its descriptor (None: not kept), its size, the position of a storage in it, and the object it keeps.
type Place = (Option<i32>, usize, usize, Option<Py<PyAny>>);

/// A Python object that is released with the memory, and not when the interpreter is entered next.
struct Keeper(Option<Py<PyAny>>);

impl Drop for Keeper {
    fn drop(&mut self) {
        let object = self.0.take();
        Python::try_attach(|_| drop(object));
    }
}

/// Moves the memory of a CPU tensor's storage to memory that other processes can map: new memory, or that of `memory`.
#[pyfunction]
#[pyo3(signature = (t, memory=None))]
pub fn _share(t: Handle, memory: Option<Handle>) -> PyResult<()> {
    Ok(t.0.storage().share(memory.as_ref().map(|m| m.0.storage()))?)
}

/// New shared memory as a uint8 tensor, zeroed.
#[pyfunction]
pub fn _shared_empty(bytes: usize) -> PyResult<Handle> {
    Ok(Handle(as_bytes(SharedMapping::new(bytes)?)))
}

/// The first bytes of an open file as a uint8 tensor that shares them. With `keep` a duplicate of the descriptor stays
/// open, for sending the memory on. `keeper` is released when the memory was unmapped.
#[pyfunction]
#[pyo3(signature = (fd, bytes, keep, keeper=None))]
pub fn _shared_open(fd: i32, bytes: usize, keep: bool, keeper: Option<Py<PyAny>>) -> PyResult<Handle> {
    let keeper = keeper.map(|k| Box::new(Keeper(Some(k))) as Box<dyn std::any::Any + Send + Sync>);
    Ok(Handle(as_bytes(SharedMapping::open(fd, bytes, keep, keeper)?)))
}

/// The shared memory under a tensor's storage; None if its memory is private.
#[pyfunction]
pub fn _shared_place(py: Python, t: Handle) -> Option<Place> {
    let (whole, at) = t.0.storage().shared()?;
    let keeper = whole.keeper().and_then(|k| k.downcast_ref::<Keeper>()?.0.as_ref()).map(|k| k.clone_ref(py));
    Some((whole.descriptor(), whole.bytes(), at, keeper))
}

fn as_bytes(memory: SharedMapping) -> Tensor {
    let layout = Layout::contiguous(&[memory.bytes()]);
    let storage = Storage::new(Buffer::Cpu(CpuBuffer::shared(memory)), Device::Cpu);
    Tensor::from_meta(Meta { storage, layout, dtype: DType::U8 })
}
