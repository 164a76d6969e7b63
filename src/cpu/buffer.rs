//! A block of host memory, owned by a CPU tensor's storage.
//!
//! A block comes from the pool (`pool.rs`) and returns there when dropped, or it is foreign memory (NumPy, DLPack, a
//! mapped file) that its owner keeps alive. Sharing and versions are the storage's job.

use super::parallel::par_for;
use super::pool::{self, Block};
use super::shared::SharedMapping;
use crate::error::{Error, Result};
use crate::rt::alloc::ALIGN;
use std::any::Any;

/// Blocks of at least this size are zeroed in parallel.
const PARALLEL_ZERO: usize = 8 << 20;

pub struct CpuBuffer {
    ptr: *mut u8,
    bytes: usize,
    /// Bytes to return to the pool; zero for foreign and empty blocks.
    capacity: usize,
    owner: Option<Box<dyn Any + Send + Sync>>,
    read_only: bool,
}

// SAFETY: the block is plain memory owned by this value (or by its `Send + Sync` owner); the storage that holds the
// buffer is responsible for synchronising reads and writes.
unsafe impl Send for CpuBuffer {}
// SAFETY: as above: shared access gives out a raw pointer only.
unsafe impl Sync for CpuBuffer {}

impl CpuBuffer {
    /// Uninitialised memory; an error if the system is out of memory.
    #[inline]
    pub fn alloc(bytes: usize) -> Result<CpuBuffer> {
        match pool::take(bytes) {
            Some(block) => Ok(CpuBuffer::of(block, bytes)),
            None => Err(Error::out_of_memory(bytes, "cpu")),
        }
    }
    /// Zeroed memory; a fresh mapping, which is zero already, is not written.
    pub fn zeroed(bytes: usize) -> Result<CpuBuffer> {
        let Some(block) = pool::take(bytes) else { return Err(Error::out_of_memory(bytes, "cpu")) };
        let buffer = CpuBuffer::of(block, bytes);
        if block.zero {
            return Ok(buffer);
        }
        let base = buffer.ptr as usize;
        par_for(bytes, PARALLEL_ZERO, |r| {
            // SAFETY: the range lies in the block that was just taken, and ranges are disjoint.
            unsafe { std::ptr::write_bytes((base + r.start) as *mut u8, 0, r.len()) }
        });
        Ok(buffer)
    }
    /// Foreign memory, kept alive by `owner`.
    pub fn foreign(ptr: *mut u8, bytes: usize, owner: Box<dyn Any + Send + Sync>, read_only: bool) -> CpuBuffer {
        let ptr = if ptr.is_null() { std::ptr::without_provenance_mut(ALIGN) } else { ptr };
        CpuBuffer { ptr, bytes, capacity: 0, owner: Some(owner), read_only }
    }
    /// Memory that other processes can map.
    pub fn shared(memory: SharedMapping) -> CpuBuffer {
        CpuBuffer::foreign(memory.ptr(), memory.bytes(), Box::new(memory), false)
    }
    #[inline]
    fn of(block: Block, bytes: usize) -> CpuBuffer {
        CpuBuffer { ptr: block.ptr, bytes, capacity: block.capacity, owner: None, read_only: false }
    }
    /// The first byte; never null, aligned to 64 unless the memory is foreign.
    #[inline]
    pub fn ptr(&self) -> *mut u8 {
        self.ptr
    }
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    pub fn is_foreign(&self) -> bool {
        self.owner.is_some()
    }
    /// What keeps foreign memory alive, if it is a `T`.
    pub fn owner<T: 'static>(&self) -> Option<&T> {
        self.owner.as_ref()?.downcast_ref()
    }
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }
}

impl Drop for CpuBuffer {
    #[inline]
    fn drop(&mut self) {
        if self.capacity > 0 {
            // SAFETY: `ptr` and `capacity` are those of a block taken from the pool, returned once.
            unsafe { pool::give(self.ptr, self.capacity) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn blocks_are_aligned_and_zeroed_ones_are_zero() {
        for bytes in [0, 1, 63, 64, 65, 1000, 1025, 4096, 40_000, 1 << 20, (2 << 20) + 1, 9 << 20] {
            for _ in 0..3 {
                let b = CpuBuffer::alloc(bytes).unwrap();
                assert_eq!(b.ptr() as usize % ALIGN, 0);
                assert_eq!(b.bytes(), bytes);
                // SAFETY: the block holds `bytes` bytes.
                unsafe { std::ptr::write_bytes(b.ptr(), 0xAB, bytes) };
                drop(b);
                let z = CpuBuffer::zeroed(bytes).unwrap();
                // SAFETY: as above, and `zeroed` wrote all of them.
                let seen = unsafe { std::slice::from_raw_parts(z.ptr(), bytes) };
                assert!(seen.iter().all(|&x| x == 0), "{bytes}");
            }
        }
    }

    #[test]
    fn absurd_sizes_are_errors() {
        for bytes in [usize::MAX, usize::MAX / 2, isize::MAX as usize, 1 << 60, 1 << 50] {
            assert!(CpuBuffer::alloc(bytes).is_err(), "{bytes}");
            assert!(CpuBuffer::zeroed(bytes).is_err(), "{bytes}");
        }
    }

    #[test]
    fn a_foreign_owner_is_dropped_with_its_buffer() {
        let owner = Arc::new(vec![1u8, 2, 3]);
        let b = CpuBuffer::foreign(owner.as_ptr() as *mut u8, 3, Box::new(owner.clone()), true);
        assert!(b.is_foreign() && b.is_read_only());
        assert_eq!(Arc::strong_count(&owner), 2);
        drop(b);
        assert_eq!(Arc::strong_count(&owner), 1);
    }

    #[test]
    fn blocks_may_be_freed_on_another_thread() {
        let before = pool::memory_allocated();
        let held: Vec<CpuBuffer> = (0..100).map(|i| CpuBuffer::alloc(64 * i).unwrap()).collect();
        std::thread::spawn(move || drop(held)).join().unwrap();
        // Other tests allocate meanwhile; a counter that underflows would be huge.
        assert!(pool::memory_allocated() < before + (1 << 34));
    }
}
