//! The tensor: an `Arc` handle to a storage, a layout, a dtype and an autograd slot.
//!
//! Note [Metadata]: what a handle shows (storage, layout, dtype) changes only under `t_()`, `resize_()`, `.data = x`
//! and the like. The old value is retired (Note [Retired values]), so every `&Meta` stays valid, and what is read through
//! one is consistent. Two looks may see two values: who checks a shape and then computes by it holds the interpreter
//! lock, under which every change is made, or pins the tensor: a change waits until it is pinned no more (`pin.rs`).
//! Kernels compare the views that they are given, so there two looks that differ are an error: Note [Views].

mod pin;
pub mod print;
pub mod raw;
pub mod slot;
pub mod tangents;
mod uses;

pub use self::pin::Pinned;
pub use self::slot::{Edge, Foreign, GradFn, LeafEdge, Remake, Replay, Slot, ViewInfo, Visit};
pub use self::tangents::Tangents;

use crate::device::Device;
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout, checked_numel, dims, laid_out_numel};
use crate::observe::{self, Raw};
use crate::rt::emplace;
use crate::storage::Storage;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A handle's metadata: its view of the storage.
#[derive(Clone)]
pub struct Meta {
    pub storage: Storage,
    pub layout: Layout,
    pub dtype: DType,
}

pub const LEAF_GRAD: u8 = 1;
pub const HAS_FN: u8 = 2;
pub const INFERENCE: u8 = 4;
pub const RETAINS: u8 = 8;
/// The gradient may have a different dtype: see `Tensor::grad_dtype`.
pub(crate) const GRAD_DTYPE: u8 = 32;
/// The Python class and attributes are kept in the slot: see Note [Identity] in `python`.
pub const PY_STASH: u8 = 16;
/// This leaf has an `AccumulateGrad`.
const ACCUMULATES: u8 = 64;
/// The recipe that remakes the view from its base has changed: see `Tensor::replay`.
const REPLAYED: u8 = 128;

pub struct TensorImpl {
    first: UnsafeCell<ManuallyDrop<Meta>>,
    /// The current metadata, unless it is `first`.
    replaced: AtomicPtr<pin::Replaced>,
    /// Readers (pins) and writers of the metadata.
    users: AtomicU16,
    flags: AtomicU8,
    /// Edges to this leaf, and when its turn is: see Note [Leaves].
    uses: uses::Uses,
    slot: Mutex<Slot>,
    view: Option<ViewInfo>,
    /// The live Python object of this handle, borrowed; owned by `python`.
    pub py: AtomicPtr<c_void>,
}

// SAFETY: `first` and `replaced` change only as `pin.rs` describes; `py` is dereferenced only by `python` under the
// interpreter lock. All other fields are Sync.
unsafe impl Send for TensorImpl {}
// SAFETY: as above.
unsafe impl Sync for TensorImpl {}

/// A handle to a tensor. Cloning it is another reference to the same tensor, not a copy.
#[derive(Clone)]
pub struct Tensor(pub(crate) Arc<TensorImpl>);

impl Tensor {
    /// Where the extension module keeps the Python object of this handle, borrowed.
    #[doc(hidden)]
    pub fn py_object(&self) -> &AtomicPtr<c_void> {
        &self.0.py
    }
    #[inline]
    pub fn from_meta(meta: Meta) -> Tensor {
        Tensor::build(|| meta, || None)
    }
    /// A tensor from the values that the functions return, constructed in place.
    #[inline(always)]
    pub fn build(meta: impl FnOnce() -> Meta, view: impl FnOnce() -> Option<ViewInfo>) -> Tensor {
        Tensor(emplace::arc(|| TensorImpl {
            first: UnsafeCell::new(ManuallyDrop::new(meta())),
            replaced: AtomicPtr::new(std::ptr::null_mut()),
            users: AtomicU16::new(0),
            flags: AtomicU8::new(0),
            uses: uses::Uses::none(),
            slot: Mutex::new(Slot::default()),
            view: view(),
            py: AtomicPtr::new(std::ptr::null_mut()),
        }))
    }
    /// Uninitialised, contiguous.
    pub fn empty(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::of_shape(dims(shape), dtype, device)
    }
    /// `empty` that consumes a shape.
    pub fn of_shape(shape: Dims, dtype: DType, device: Device) -> Result<Tensor> {
        let bytes = laid_out_numel(&shape)? * dtype.size();
        let storage = Storage::alloc(bytes, device)?;
        Ok(Tensor::from_meta(Meta { storage, layout: Layout::of(shape), dtype }))
    }
    /// Uninitialised memory with this layout.
    pub fn of_layout(layout: Layout, dtype: DType, device: Device) -> Result<Tensor> {
        let n = checked_numel(&layout.shape)?;
        let bytes = if n == 0 { 0 } else { layout.end() * dtype.size() };
        Ok(Tensor::from_meta(Meta { storage: Storage::alloc(bytes, device)?, layout, dtype }))
    }
    pub fn zeros(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        let bytes = laid_out_numel(shape)? * dtype.size();
        let storage = Storage::zeroed(bytes, device)?;
        Ok(Tensor::from_meta(Meta { storage, layout: Layout::contiguous(shape), dtype }))
    }
    /// A CPU tensor that holds a copy of `data`.
    pub fn from_slice<T: Element>(data: &[T], shape: &[usize]) -> Result<Tensor> {
        if checked_numel(shape)? != data.len() {
            return Err(Error::internal("from_slice: the data does not fill the shape"));
        }
        let t = Tensor::empty(shape, T::DTYPE, Device::Cpu)?;
        // SAFETY: the new block holds exactly `data.len()` elements of T and is not shared yet.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), t.ptr()?.cast::<T>(), data.len()) };
        Ok(t)
    }

    /// A number as a 0-d tensor.
    pub fn scalar(s: Scalar, dtype: DType, device: Device) -> Result<Tensor> {
        let t = Tensor::empty(&[], dtype, device)?;
        t.fill_raw(s)?;
        Ok(t)
    }

    #[inline]
    pub fn meta(&self) -> &Meta {
        let p = self.0.replaced.load(Ordering::Acquire);
        // SAFETY: the current value is never freed, and a retired one only when nobody can read it: Note [Retired
        // values].
        if p.is_null() { unsafe { &*self.0.first.get() } } else { unsafe { &(*p).meta } }
    }
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.meta().layout
    }
    /// Where it begins in its storage, in bytes.
    pub fn first_byte(&self) -> isize {
        self.layout().first_byte(self.dtype().size())
    }
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.layout().shape
    }
    #[inline]
    pub fn strides(&self) -> &[usize] {
        &self.layout().strides
    }
    pub fn ndim(&self) -> usize {
        self.shape().len()
    }
    pub fn size(&self, dim: usize) -> usize {
        self.shape()[dim]
    }
    #[inline]
    pub fn numel(&self) -> usize {
        self.layout().numel()
    }
    #[inline]
    pub fn dtype(&self) -> DType {
        self.meta().dtype
    }
    #[inline]
    pub fn storage(&self) -> &Storage {
        &self.meta().storage
    }
    #[inline]
    pub fn device(&self) -> Device {
        self.storage().device()
    }
    pub fn is_contiguous(&self) -> bool {
        self.layout().is_contiguous()
    }
    pub fn version(&self) -> u32 {
        self.storage().version()
    }
    /// The address of the first element; CPU only.
    #[inline]
    pub fn ptr(&self) -> Result<*mut u8> {
        observe::report(Raw::Access);
        let m = self.meta();
        Ok(m.storage.cpu_ptr()?.wrapping_add(m.layout.offset * m.dtype.size()))
    }
    pub fn same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
    /// Number of references to the handle, the caller's included.
    pub fn owners(&self) -> usize {
        Arc::strong_count(&self.0)
    }
    /// The element at a storage position of a CPU tensor.
    pub fn element(&self, position: usize) -> Result<Scalar> {
        observe::report(Raw::Access);
        let m = self.meta();
        let bytes = (position + 1).checked_mul(m.dtype.size()).ok_or_else(|| Error::internal("element: overflow"))?;
        if bytes > m.storage.bytes() {
            return Err(Error::internal("element: position beyond the storage"));
        }
        let base = m.storage.cpu_ptr()?;
        if m.dtype == DType::Bool {
            // SAFETY: the position was checked. A bool from foreign memory may be any byte: all but zero are true.
            return Ok(Scalar::Bool(unsafe { *base.add(position) } != 0));
        }
        Ok(crate::with_dtype!(m.dtype, T => {
            // SAFETY: the position was checked against the storage; the read is unaligned.
            unsafe { base.cast::<T>().add(position).read_unaligned() }.to_scalar()
        }))
    }

    // --- autograd slot -------------------------------------------------------------------------
    #[inline]
    pub fn requires_grad(&self) -> bool {
        // A view made without recording requires grad if its base does, as in PyTorch.
        self.flag(LEAF_GRAD | HAS_FN) || self.view_info().is_some_and(|v| v.base.flag(LEAF_GRAD | HAS_FN))
    }
    #[inline]
    pub fn flag(&self, bits: u8) -> bool {
        self.0.flags.load(Ordering::Acquire) & bits != 0
    }
    #[inline]
    pub fn set_flag(&self, bits: u8, on: bool) {
        // A locked instruction only if something changes.
        if self.0.flags.load(Ordering::Acquire) & bits == if on { bits } else { 0 } {
            return;
        }
        if on {
            self.0.flags.fetch_or(bits, Ordering::AcqRel);
        } else {
            self.0.flags.fetch_and(!bits, Ordering::AcqRel);
        }
    }
    pub fn slot(&self) -> MutexGuard<'_, Slot> {
        // Poisoning only means that a panic occurred; each field is consistent on its own.
        self.0.slot.lock().unwrap_or_else(|e| e.into_inner())
    }
    pub fn view_info(&self) -> Option<&ViewInfo> {
        self.0.view.as_ref()
    }
    /// Makes a view of all of a base to which nobody else refers a tensor that is no view; others stay as they are.
    pub fn leave_base(&mut self) {
        let Some(view) = self.view_info() else { return };
        let alone = view.base.owners() == 1 && self.storage().owners() == 2 && view.base.numel() == self.numel();
        if let Some(t) = Arc::get_mut(&mut self.0).filter(|_| alone) {
            t.view = None;
        }
    }
    pub fn is_leaf(&self) -> bool {
        !self.flag(HAS_FN)
    }
    pub fn grad(&self) -> Option<Tensor> {
        self.slot().grad.clone()
    }
    pub fn set_grad(&self, grad: Option<Tensor>) {
        let old = std::mem::replace(&mut self.slot().grad, grad);
        drop(old); // outside the lock: dropping may walk a graph
    }
    /// A new handle on the same storage without history; shares the version counter.
    pub fn detach(&self) -> Tensor {
        let t = Tensor::from_meta(self.meta().clone());
        t.set_flag(INFERENCE, self.flag(INFERENCE));
        t
    }
    /// A new handle on the same storage with another layout, without history.
    pub fn with_layout(&self, layout: Layout) -> Tensor {
        let m = self.meta();
        Tensor::from_meta(Meta { storage: m.storage.clone(), layout, dtype: m.dtype })
    }
}

/// What the search for exclusively owned objects (`autograd::owned`) sees; holds no handle.
impl TensorImpl {
    pub(crate) fn has_flag(&self, bits: u8) -> bool {
        self.flags.load(Ordering::Acquire) & bits != 0
    }
    pub(crate) fn view_base(&self) -> Option<&Tensor> {
        self.view.as_ref().map(|v| &v.base)
    }
    pub(crate) fn slot_lock(&self) -> &Mutex<Slot> {
        &self.slot
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}@{}", self.dtype().short(), self.shape(), self.device())
    }
}
