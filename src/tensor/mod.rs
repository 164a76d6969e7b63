//! The tensor: an `Arc`'d handle to a storage, a layout, a dtype and an autograd slot.
//!
//! Note [Metadata]: what a handle shows (storage, layout, dtype) changes only under `t_()`, `resize_()`, `.data = x`
//! and the like. While the handle has other owners the old value is retired, not freed, so that their `&Meta` stay
//! valid; a change that finds no other owner writes in place and frees what was retired. Hence the rule: who uses a
//! tensor without the interpreter lock owns a clone of the handle.

pub mod print;
pub mod raw;
pub mod slot;

pub use slot::{Edge, GradFn, LeafUse, Replay, Slot, ViewInfo};

use crate::device::Device;
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout, checked_numel, dims, laid_out_numel};
use crate::place;
use crate::storage::Storage;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// What a handle shows of its storage.
#[derive(Clone)]
pub struct Meta {
    pub storage: Storage,
    pub layout: Layout,
    pub dtype: DType,
}

struct Replaced {
    meta: Meta,
    older: *mut Replaced,
}

pub(crate) const LEAF_GRAD: u8 = 1;
pub(crate) const HAS_FN: u8 = 2;
pub(crate) const INFERENCE: u8 = 4;
pub(crate) const RETAINS: u8 = 8;
/// The gradient may have another dtype than the tensor: see `Tensor::grad_dtype`.
pub(crate) const GRAD_DTYPE: u8 = 32;
/// The Python class and attributes are kept in the slot: see Note [Identity] in `python`.
#[cfg(feature = "python")]
pub(crate) const PY_STASH: u8 = 16;
/// An `AccumulateGrad` has been made for this leaf.
const ACCUMULATES: u8 = 64;

pub struct TensorImpl {
    first: UnsafeCell<Meta>,
    replaced: AtomicPtr<Replaced>,
    flags: AtomicU8,
    /// Edges to this leaf, and when its turn is: see Note [Leaves].
    uses: AtomicU32,
    turn: AtomicU64,
    slot: Mutex<Slot>,
    view: Option<ViewInfo>,
    /// The live Python object of this handle, borrowed; owned by `python`.
    pub py: AtomicPtr<c_void>,
}

// SAFETY: `replaced` is a list that only `set_meta` and `Drop` change (see Note [Metadata]); `py` is only
// dereferenced by `python` under the interpreter lock. Everything else is Sync by itself.
unsafe impl Send for TensorImpl {}
// SAFETY: as above.
unsafe impl Sync for TensorImpl {}

/// A handle to a tensor. Cloning it is another reference to the same tensor, not a copy.
#[derive(Clone)]
pub struct Tensor(pub(crate) Arc<TensorImpl>);

impl Drop for TensorImpl {
    fn drop(&mut self) {
        free_replaced(*self.replaced.get_mut());
    }
}

fn free_replaced(mut p: *mut Replaced) {
    while !p.is_null() {
        // SAFETY: each link was made by `Box::into_raw` in `set_meta` and is freed once, here.
        let b = unsafe { Box::from_raw(p) };
        p = b.older;
    }
}

impl Tensor {
    #[inline]
    pub fn from_meta(meta: Meta) -> Tensor {
        Tensor::build(|| meta, || None)
    }
    /// A tensor of what the functions return, built where it stays.
    #[inline(always)]
    pub fn build(meta: impl FnOnce() -> Meta, view: impl FnOnce() -> Option<ViewInfo>) -> Tensor {
        Tensor(place::arc(|| TensorImpl {
            first: UnsafeCell::new(meta()),
            replaced: AtomicPtr::new(std::ptr::null_mut()),
            flags: AtomicU8::new(0),
            uses: AtomicU32::new(0),
            turn: AtomicU64::new(0),
            slot: Mutex::new(Slot::default()),
            view: view(),
            py: AtomicPtr::new(std::ptr::null_mut()),
        }))
    }
    /// Uninitialised, contiguous.
    pub fn empty(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::of_shape(dims(shape), dtype, device)
    }
    /// `empty` with a shape that is given away.
    pub fn of_shape(shape: Dims, dtype: DType, device: Device) -> Result<Tensor> {
        let bytes = laid_out_numel(&shape)? * dtype.size();
        let storage = Storage::alloc(bytes, device)?;
        Ok(Tensor::from_meta(Meta { storage, layout: Layout::of(shape), dtype }))
    }
    /// Uninitialised, laid out so in memory of its own.
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

    /// One number as a 0-d tensor.
    pub fn scalar(s: Scalar, dtype: DType, device: Device) -> Result<Tensor> {
        let t = Tensor::empty(&[], dtype, device)?;
        t.fill_raw(s)?;
        Ok(t)
    }

    #[inline]
    pub fn meta(&self) -> &Meta {
        let p = self.0.replaced.load(Ordering::Acquire);
        // SAFETY: see Note [Metadata]: a retired value lives as long as any other owner of the handle does.
        if p.is_null() { unsafe { &*self.0.first.get() } } else { unsafe { &(*p).meta } }
    }
    /// Changes what the handle shows.
    ///
    /// # Safety
    /// The caller holds no reference that came from `meta()` of this handle, and the interpreter lock where Python runs.
    pub unsafe fn set_meta(&self, meta: Meta) {
        let older = self.0.replaced.load(Ordering::Acquire);
        if Arc::strong_count(&self.0) == 1 && Arc::weak_count(&self.0) == 0 {
            self.0.replaced.store(std::ptr::null_mut(), Ordering::Release);
            // SAFETY: no other owner, and by contract no reference into the old value.
            drop(unsafe { std::mem::replace(&mut *self.0.first.get(), meta) });
            free_replaced(older);
        } else {
            self.0.replaced.store(Box::into_raw(Box::new(Replaced { meta, older })), Ordering::Release);
        }
    }
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.meta().layout
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
    /// The address of the first element on the CPU.
    #[inline]
    pub fn ptr(&self) -> Result<*mut u8> {
        let m = self.meta();
        Ok(m.storage.cpu_ptr()?.wrapping_add(m.layout.offset * m.dtype.size()))
    }
    pub fn same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
    /// References to the handle, the caller's own included.
    pub fn owners(&self) -> usize {
        Arc::strong_count(&self.0)
    }
    /// The element at a storage position of a CPU tensor.
    pub fn element(&self, position: usize) -> Result<Scalar> {
        let m = self.meta();
        let bytes = (position + 1).checked_mul(m.dtype.size()).ok_or_else(|| Error::internal("element: overflow"))?;
        if bytes > m.storage.bytes() {
            return Err(Error::internal("element: position beyond the storage"));
        }
        let base = m.storage.cpu_ptr()?;
        if m.dtype == DType::Bool {
            // SAFETY: the position was checked. Memory shared as bool may hold any byte: all but zero are true.
            return Ok(Scalar::Bool(unsafe { *base.add(position) } != 0));
        }
        Ok(crate::with_dtype!(m.dtype, T => {
            // SAFETY: the position was checked against the storage; blocks are aligned for every dtype or read unaligned.
            unsafe { base.cast::<T>().add(position).read_unaligned() }.to_scalar()
        }))
    }

    // --- autograd slot -------------------------------------------------------------------------
    #[inline]
    pub fn requires_grad(&self) -> bool {
        // A view made without recording counts by its base, as in PyTorch.
        self.flag(LEAF_GRAD | HAS_FN) || self.view_info().is_some_and(|v| v.base.flag(LEAF_GRAD | HAS_FN))
    }
    #[inline]
    pub fn flag(&self, bits: u8) -> bool {
        self.0.flags.load(Ordering::Acquire) & bits != 0
    }
    #[inline]
    pub fn set_flag(&self, bits: u8, on: bool) {
        // A locked instruction only where something changes.
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
        // A poisoned slot only means that a panic passed through; its fields are each consistent.
        self.0.slot.lock().unwrap_or_else(|e| e.into_inner())
    }
    pub fn view_info(&self) -> Option<&ViewInfo> {
        self.0.view.as_ref()
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

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}@{}", self.dtype().short(), self.shape(), self.device())
    }
}
