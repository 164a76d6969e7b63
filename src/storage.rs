//! A device buffer behind an `Arc`, with the version counter that all its views share.
//!
//! Note [Shared memory]: a storage is written through shared handles, as in PyTorch, NumPy and C. Two threads that
//! write the same elements at the same time race on those elements' values. They never access memory out of bounds,
//! because the buffer behind a storage is not freed while it may be in use: `grow` retires the old block (Note [Retired
//! values]), and fails once the block's address has been exported.

use crate::cpu::buffer::CpuBuffer;
use crate::cpu::shared::SharedMapping;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::{self, GpuBuffer};
use crate::observe::{self, Raw};
use crate::rt::counters;
use crate::rt::counters::Count;
use crate::rt::emplace;
use crate::rt::retire;
use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

pub enum Buffer {
    Cpu(CpuBuffer),
    Gpu(GpuBuffer),
    /// The number of bytes of a storage on `meta`, which has none.
    Meta(usize),
}

impl Buffer {
    pub fn bytes(&self) -> usize {
        match self {
            Buffer::Cpu(b) => b.bytes(),
            Buffer::Gpu(b) => b.bytes(),
            Buffer::Meta(bytes) => *bytes,
        }
    }
    #[inline]
    fn alloc(bytes: usize, device: Device, zeroed: bool) -> Result<Buffer> {
        Ok(match (device, zeroed) {
            (Device::Cpu, false) => Buffer::Cpu(CpuBuffer::alloc(bytes)?),
            (Device::Cpu, true) => Buffer::Cpu(CpuBuffer::zeroed(bytes)?),
            (Device::Gpu(i), false) => Buffer::Gpu(GpuBuffer::alloc(i as usize, bytes)?),
            (Device::Gpu(i), true) => Buffer::Gpu(GpuBuffer::zeroed(i as usize, bytes)?),
            (Device::Meta, _) => Buffer::Meta(bytes),
        })
    }
}

/// The memory of a storage: its own, or that of another storage under a different version counter. The counter is
/// either new (`.data`) or, after `x.data = y`, the one that `x` still shares with its views.
enum Memory {
    Own(Buffer),
    Of(Storage, Option<Storage>),
}

/// A block that replaced a smaller one in some epoch of `retire`.
struct Grown {
    buffer: Buffer,
    since: u64,
}

/// The blocks allocated by `grow`, the current one last.
#[derive(Default)]
struct Blocks {
    // Boxed, since `current` points to a buffer, which must not move when the list grows.
    #[allow(clippy::vec_box)]
    grown: Vec<Box<Grown>>,
    /// The first block has been dropped.
    no_first: bool,
}

struct Inner {
    first: UnsafeCell<ManuallyDrop<Memory>>,
    /// Set by `grow`; null means `first`.
    current: AtomicPtr<Buffer>,
    blocks: Mutex<Blocks>,
    device: Device,
    /// The address has been exported (a NumPy array, a slice of the storage), so the memory may neither move nor grow.
    fixed: AtomicBool,
    version: AtomicU32,
    /// A node has saved a tensor on this storage, so the location of writes is recorded.
    saved: AtomicBool,
    /// The location of the last such write; see `autograd::witness`.
    mark: AtomicU32,
}

/// Shared ownership of a buffer; equal when it is the same buffer.
#[derive(Clone)]
pub struct Storage(Arc<Inner>);

/// A storage that is not kept alive; while this exists, no other storage has its identity.
pub struct WeakStorage {
    _counter: Weak<Inner>,
    _memory: Weak<Inner>,
}

// SAFETY: `first` is only read, until it is dropped by `Drop`, or by `free_retired` under the lock of `blocks` once
// nobody can read it. All other fields are Send and Sync.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Inner {
    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// The initial memory; call only if `current` is null or the memory belongs to another storage.
    fn first(&self) -> &Memory {
        // SAFETY: it is dropped only after `current` was set and nobody can read it (Note [Retired values]).
        unsafe { &*self.first.get() }
    }
    /// Frees the blocks retired up to an epoch; true when only the current one is left.
    fn free_retired(&self, safe: u64) -> bool {
        let mut blocks = self.blocks();
        let over = blocks.grown.iter().rposition(|b| b.since <= safe);
        let Some(present) = over else { return blocks.grown.is_empty() };
        let old: Vec<_> = blocks.grown.drain(..present).collect();
        // SAFETY: `grown[present]` replaced it in an epoch that is over, and it is dropped once.
        let first = (!blocks.no_first).then(|| unsafe { ManuallyDrop::take(&mut *self.first.get()) });
        blocks.no_first = true;
        let done = blocks.grown.len() == 1;
        drop(blocks);
        drop((old, first));
        done
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.blocks.get_mut().unwrap_or_else(|e| e.into_inner()).no_first {
            // SAFETY: it has not been dropped, and `drop` has exclusive access.
            unsafe { ManuallyDrop::drop(self.first.get_mut()) };
        }
        counters::add(Count::Storages, -1);
    }
}

impl Storage {
    #[inline]
    pub fn new(buffer: Buffer, device: Device) -> Storage {
        Storage::build(Memory::Own(buffer), device, 0)
    }
    /// The same memory with a new version counter: saved tensors do not notice writes through it.
    pub fn unversioned(&self) -> Storage {
        Storage::build(Memory::Of(self.root().clone(), None), self.device(), 0)
    }
    /// The same memory with the version counter of `other`: shared if others use it, else a counter that continues from
    /// it.
    pub fn counted_by(&self, other: &Storage) -> Storage {
        let counter = other.counter();
        let shared = (Arc::strong_count(&counter.0) > 1).then(|| counter.clone());
        Storage::build(Memory::Of(self.root().clone(), shared), self.device(), counter.version())
    }
    #[inline]
    fn counter(&self) -> &Storage {
        match self.0.first() {
            Memory::Of(_, Some(counter)) => counter,
            _ => self,
        }
    }
    #[inline]
    fn build(first: Memory, device: Device, version: u32) -> Storage {
        counters::add(Count::Storages, 1);
        Storage(emplace::arc(|| Inner {
            first: UnsafeCell::new(ManuallyDrop::new(first)),
            current: AtomicPtr::new(std::ptr::null_mut()),
            blocks: Mutex::default(),
            device,
            fixed: AtomicBool::new(false),
            version: AtomicU32::new(version),
            saved: AtomicBool::new(false),
            mark: AtomicU32::new(0),
        }))
    }
    /// Uninitialised memory; the caller must write it before it is read, unless the tensor is documented as
    /// uninitialised (`empty`).
    pub fn alloc(bytes: usize, device: Device) -> Result<Storage> {
        observe::report(Raw::Allocation);
        Ok(Storage::new(Buffer::alloc(bytes, device, false)?, device))
    }
    pub fn zeroed(bytes: usize, device: Device) -> Result<Storage> {
        observe::report(Raw::Allocation);
        Ok(Storage::new(Buffer::alloc(bytes, device, true)?, device))
    }
    #[inline]
    pub fn device(&self) -> Device {
        self.0.device
    }
    fn root(&self) -> &Storage {
        // A storage that has grown owns its memory.
        if !self.0.current.load(Ordering::Acquire).is_null() {
            return self;
        }
        match self.0.first() {
            Memory::Own(_) => self,
            Memory::Of(s, _) => s,
        }
    }
    #[inline]
    pub fn buffer(&self) -> &Buffer {
        let p = self.0.current.load(Ordering::Acquire);
        if !p.is_null() {
            // SAFETY: `current` is null or points into `grown`, whose boxes live while they may be read.
            return unsafe { &*p };
        }
        match self.0.first() {
            Memory::Own(b) => b,
            Memory::Of(s, _) => s.buffer(),
        }
    }
    pub fn bytes(&self) -> usize {
        self.buffer().bytes()
    }
    /// The address of the first byte; CPU only.
    #[inline]
    pub fn cpu_ptr(&self) -> Result<*mut u8> {
        match self.buffer() {
            Buffer::Cpu(b) => Ok(b.ptr()),
            Buffer::Gpu(_) => {
                Err(Error::runtime("the tensor is on the gpu; expected a cpu tensor. Copy it with .cpu() first."))
            }
            Buffer::Meta(_) => Err(no_data()),
        }
    }
    pub fn gpu_buffer(&self) -> Result<&GpuBuffer> {
        match self.buffer() {
            Buffer::Gpu(b) => Ok(b),
            Buffer::Cpu(_) => {
                Err(Error::runtime("the tensor is on the cpu; expected a gpu tensor. Copy it with .gpu() first."))
            }
            Buffer::Meta(_) => Err(no_data()),
        }
    }
    /// Whether the memory belongs to somebody else, who may have given it to other storages too.
    pub fn is_foreign(&self) -> bool {
        matches!(self.buffer(), Buffer::Cpu(b) if b.is_foreign())
    }
    pub fn is_read_only(&self) -> bool {
        matches!(self.buffer(), Buffer::Cpu(b) if b.is_read_only())
    }
    /// Pins the memory from now on, because its address is exported (a NumPy array, a slice of the storage).
    pub fn fix(&self) {
        self.root().0.fixed.store(true, Ordering::Release);
    }
    /// Whether `grow` may replace the memory.
    pub fn is_resizable(&self) -> bool {
        !self.is_foreign() && !self.root().0.fixed.load(Ordering::Acquire)
    }
    #[inline]
    pub fn version(&self) -> u32 {
        self.counter().0.version.load(Ordering::Acquire)
    }
    /// Called only by `dispatch`, once per in-place op.
    pub fn bump(&self) {
        self.counter().0.version.fetch_add(1, Ordering::AcqRel);
    }
    pub fn is_saved(&self) -> bool {
        self.0.saved.load(Ordering::Relaxed)
    }
    pub fn set_saved(&self) {
        self.0.saved.store(true, Ordering::Relaxed);
    }
    pub fn mark(&self) -> u32 {
        self.0.mark.load(Ordering::Relaxed)
    }
    pub fn set_mark(&self, mark: u32) {
        self.0.mark.store(mark, Ordering::Relaxed);
    }
    pub fn same(&self, other: &Storage) -> bool {
        Arc::ptr_eq(&self.root().0, &other.root().0)
    }
    /// Identifies a storage among those alive.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.root().0) as usize
    }
    /// Identifies the version counter among those of the storages alive: `.data` has the memory, but not the counter.
    pub fn counter_id(&self) -> usize {
        Arc::as_ptr(&self.counter().0) as usize
    }
    pub fn downgrade(&self) -> WeakStorage {
        WeakStorage { _counter: Arc::downgrade(&self.counter().0), _memory: Arc::downgrade(&self.root().0) }
    }
    /// How many tensors share the storage.
    pub fn owners(&self) -> usize {
        Arc::strong_count(&self.root().0)
    }
    /// Grows to `bytes`, keeping the contents (`resize_`).
    pub fn grow(&self, bytes: usize) -> Result<()> {
        let root = self.root();
        let old = root.buffer();
        if bytes <= old.bytes() {
            return Ok(());
        }
        if !root.is_resizable() {
            return Err(Error::runtime(
                "Trying to resize storage that is not resizable: another library has its memory or knows where it is. Clone \
                 the tensor first.",
            ));
        }
        let new = Buffer::alloc(bytes, self.device(), matches!(old, Buffer::Gpu(_)))?;
        match (old, &new) {
            // SAFETY: both blocks are live and distinct, and `new` is larger than `old` by the bytes that are zeroed.
            (Buffer::Cpu(a), Buffer::Cpu(b)) => unsafe {
                std::ptr::copy_nonoverlapping(a.ptr(), b.ptr(), a.bytes());
                std::ptr::write_bytes(b.ptr().add(a.bytes()), 0, b.bytes() - a.bytes());
            },
            (Buffer::Gpu(a), Buffer::Gpu(b)) => copy_bytes(a, b)?,
            (Buffer::Meta(_), Buffer::Meta(_)) => {}
            _ => unreachable!("a storage never changes its device"),
        }
        root.install(new, retire::epoch());
        Ok(())
    }
    /// Makes `new` the memory of a storage that owns its memory, from epoch `since` on.
    fn install(&self, new: Buffer, since: u64) {
        let mut blocks = self.0.blocks();
        blocks.grown.push(Box::new(Grown { buffer: new, since }));
        let p: *const Buffer = &blocks.grown.last().expect("just pushed").buffer;
        self.0.current.store(p.cast_mut(), Ordering::Release);
        drop(blocks);
        let owner = Arc::downgrade(&self.0);
        retire::later(Box::new(move |safe| owner.upgrade().is_none_or(|inner| inner.free_retired(safe))));
    }
    /// Moves the contents to `memory`, or to new memory, that other processes can map. Whoever got the address earlier (a
    /// NumPy array, a slice of the storage) keeps the previous memory, which stays as long as the storage.
    pub fn share(&self, memory: Option<&Storage>) -> Result<()> {
        let (root, bytes) = (self.root(), self.bytes());
        let from = root.cpu_ptr()?;
        let buffer = match memory {
            None => CpuBuffer::shared(SharedMapping::new(bytes)?),
            Some(m) if m.bytes() >= bytes && m.shared().is_some() && !m.same(self) => {
                m.fix();
                CpuBuffer::foreign(m.cpu_ptr()?, bytes, Box::new(m.clone()), false)
            }
            Some(m) => {
                let have = m.bytes();
                return Err(Error::runtime(format!(
                    "share: expected {bytes} bytes of other, shared memory, got {have}"
                )));
            }
        };
        // SAFETY: both blocks are live and distinct, and both have at least `bytes` bytes.
        unsafe { std::ptr::copy_nonoverlapping(from, buffer.ptr(), bytes) };
        let since = if root.0.fixed.load(Ordering::Acquire) { u64::MAX } else { retire::epoch() };
        root.install(Buffer::Cpu(buffer), since);
        Ok(())
    }
    /// The shared memory that the storage is, or lies in, and the position of its first byte there.
    pub fn shared(&self) -> Option<(&SharedMapping, usize)> {
        let Buffer::Cpu(buffer) = self.buffer() else { return None };
        let whole = match buffer.owner::<Storage>() {
            Some(storage) => storage.shared()?.0,
            None => buffer.owner::<SharedMapping>()?,
        };
        // The slice of a storage may have been taken before the storage was shared.
        let at = (buffer.ptr() as usize).checked_sub(whole.ptr() as usize)?;
        (at + buffer.bytes() <= whole.bytes()).then_some((whole, at))
    }
}

/// Somebody asks for the memory of a storage on `meta`.
#[cold]
fn no_data() -> Error {
    Error::not_implemented("Cannot copy out of meta tensor; no data! Make the tensor on a device that has memory.")
}

/// Copies all of `from` to the start of `to`.
fn copy_bytes(from: &GpuBuffer, to: &GpuBuffer) -> Result<()> {
    let (shape, strides) = ([from.bytes()], [1]);
    let view = |buffer| gpu::View { buffer, dtype: DType::U8, shape: &shape, strides: &strides, offset: 0 };
    gpu::copy(&gpu::Input::View(view(from)), &view(to))
}
