//! The pool of host memory blocks.
//!
//! Small blocks (up to 32 KiB) come from the heap, within a few nanoseconds. Larger ones are kept in one shared cache,
//! searched by best fit with at most 25 % slack; from 2 MiB on they are mapped directly, on huge pages. The cache is
//! what makes large out-of-place operations fast: a fresh mapping costs a page fault per page, several times the
//! arithmetic. It holds at most an eighth of the machine's memory.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, OnceLock};

use crate::rt::alloc;
use crate::rt::alloc::ALIGN;
use crate::rt::counters;
use crate::rt::counters::Count;
use crate::rt::thread_state::thread_state;

const HUGE: usize = 2 << 20;

/// A block from the pool.
#[derive(Clone, Copy)]
pub struct Block {
    pub ptr: *mut u8,
    /// The size to pass to `give`; at least the size asked for.
    pub capacity: usize,
    /// Known to be zeroed.
    pub zero: bool,
}

/// Free larger blocks as (size, address), and the sum of their sizes.
static SHARED: Mutex<(BTreeSet<(usize, usize)>, usize)> = Mutex::new((BTreeSet::new(), 0));

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

/// A block of at least `bytes`; `None` if the system is out of memory.
#[inline]
pub fn take(bytes: usize) -> Option<Block> {
    if bytes == 0 {
        return Some(Block { ptr: std::ptr::without_provenance_mut(ALIGN), capacity: 0, zero: true });
    }
    if alloc::PLAIN {
        return take_fresh(bytes);
    }
    if bytes > alloc::SMALL {
        return take_large(bytes);
    }
    let class = alloc::class_of(bytes);
    let capacity = alloc::class_size(class);
    thread_state(|thread| {
        let ptr = alloc::take(thread, class);
        if ptr.is_null() {
            return take_fresh(capacity);
        }
        counters::add_to(thread, Count::Allocated, capacity as isize);
        Some(Block { ptr, capacity, zero: false })
    })
}

/// Returns a block.
///
/// # Safety
/// `ptr` and `capacity` come from one `take`, are returned once, and the block is not used afterwards.
#[inline]
pub unsafe fn give(ptr: *mut u8, capacity: usize) {
    if alloc::PLAIN {
        counters::add(Count::Allocated, -(capacity as isize));
        // SAFETY: the caller's promise.
        return unsafe { release(ptr, capacity) };
    }
    if capacity > alloc::SMALL {
        // SAFETY: the caller's promise.
        return unsafe { give_large(ptr, capacity) };
    }
    thread_state(|thread| {
        counters::add_to(thread, Count::Allocated, -(capacity as isize));
        // SAFETY: the caller's promise.
        unsafe { alloc::give(thread, alloc::class_of(capacity), ptr) };
    });
}

#[cold]
fn take_fresh(capacity: usize) -> Option<Block> {
    let block = reserve(capacity).or_else(|| {
        empty_cache();
        reserve(capacity)
    })?;
    counters::add(Count::Allocated, capacity as isize);
    Some(block)
}

fn take_large(bytes: usize) -> Option<Block> {
    let size = round_large(bytes)?;
    {
        let mut shared = lock(&SHARED);
        let fit = shared.0.range((size, 0)..).next().copied();
        if let Some((found, address)) = fit.filter(|&(found, _)| found <= size + size / 4) {
            shared.0.remove(&(found, address));
            shared.1 -= found;
            drop(shared);
            counters::add(Count::Allocated, found as isize);
            return Some(Block { ptr: address as *mut u8, capacity: found, zero: false });
        }
    }
    take_fresh(size)
}

/// SAFETY: as `give`.
unsafe fn give_large(ptr: *mut u8, capacity: usize) {
    let limit = cache_limit();
    let mut evicted = Vec::new();
    {
        let mut shared = lock(&SHARED);
        shared.0.insert((capacity, ptr as usize));
        shared.1 += capacity;
        while shared.1 > limit {
            let Some((size, address)) = shared.0.pop_last() else { break };
            shared.1 -= size;
            evicted.push((size, address));
        }
    }
    counters::add(Count::Allocated, -(capacity as isize));
    release_all(evicted);
}

fn release_all(blocks: impl IntoIterator<Item = (usize, usize)>) {
    for (size, address) in blocks {
        // SAFETY: the block was free in the cache and has just been removed from it.
        unsafe { release(address as *mut u8, size) };
    }
}

/// Four steps per power of two up to 2 MiB, then whole huge pages.
fn round_large(bytes: usize) -> Option<usize> {
    let step = if bytes >= HUGE { HUGE } else { (bytes - 1).next_power_of_two().max(alloc::SMALL * 2) / 8 };
    bytes.checked_next_multiple_of(step).filter(|&b| b <= isize::MAX as usize / 2)
}

fn cache_limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| (physical_memory() / 8).max(256 << 20))
}

#[cfg(unix)]
fn physical_memory() -> usize {
    // SAFETY: `sysconf` reads system constants.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    if pages > 0 && size > 0 { (pages as usize).saturating_mul(size as usize) } else { 4 << 30 }
}
#[cfg(not(unix))]
fn physical_memory() -> usize {
    4 << 30
}

fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size, if size >= HUGE && !alloc::PLAIN { HUGE } else { ALIGN }).ok()
}

fn reserve(size: usize) -> Option<Block> {
    #[cfg(target_os = "linux")]
    if size >= HUGE && !alloc::PLAIN {
        return map_huge(size).map(|ptr| Block { ptr, capacity: size, zero: true });
    }
    // SAFETY: the size is not zero.
    let ptr = unsafe { alloc(layout(size)?) };
    (!ptr.is_null()).then_some(Block { ptr, capacity: size, zero: false })
}

/// SAFETY: `ptr` came from `reserve(size)` and nothing uses it any more.
unsafe fn release(ptr: *mut u8, size: usize) {
    #[cfg(target_os = "linux")]
    if size >= HUGE && !alloc::PLAIN {
        // SAFETY: exactly the pages that `map_huge` kept.
        unsafe { libc::munmap(ptr.cast(), size) };
        return;
    }
    if let Some(layout) = layout(size) {
        // SAFETY: allocated in `reserve` with this layout.
        unsafe { dealloc(ptr, layout) }
    }
}

/// Maps `size` bytes (whole huge pages) on a huge-page boundary and requests huge pages.
#[cfg(target_os = "linux")]
fn map_huge(size: usize) -> Option<*mut u8> {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new anonymous mapping; the parts before and after the aligned run are unmapped again.
    unsafe {
        let raw = libc::mmap(std::ptr::null_mut(), size.checked_add(HUGE)?, prot, flags, -1, 0);
        if raw == libc::MAP_FAILED {
            return None;
        }
        let head = (raw as usize).next_multiple_of(HUGE) - raw as usize;
        if head > 0 {
            libc::munmap(raw, head);
        }
        let ptr = raw.byte_add(head);
        if head < HUGE {
            libc::munmap(ptr.byte_add(size), HUGE - head);
        }
        libc::madvise(ptr, size, libc::MADV_HUGEPAGE);
        Some(ptr.cast())
    }
}

/// Returns the free blocks of this thread and of the shared cache to the system.
pub fn empty_cache() {
    thread_state(alloc::clear);
    let blocks = {
        let mut shared = lock(&SHARED);
        shared.1 = 0;
        std::mem::take(&mut shared.0)
    };
    release_all(blocks);
}

/// Bytes in blocks that are in use.
pub fn memory_allocated() -> usize {
    counters::sum(Count::Allocated)
}
/// Bytes held from the system: in use or cached.
pub fn memory_reserved() -> usize {
    memory_allocated() + lock(&SHARED).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_hold_what_they_are_asked_for() {
        for bytes in [alloc::SMALL + 1, 100_000, HUGE - 1, HUGE, HUGE + 1, 1 << 30] {
            let r = round_large(bytes).unwrap();
            assert!(r >= bytes && (r <= bytes + bytes / 4 + HUGE), "{bytes} {r}");
        }
    }
}
