//! The allocator: per-thread free lists for small objects of the crate and the elements of small tensors.
//!
//! A recorded call allocates a tensor, a storage and a node and frees them soon after. The system's allocator takes
//! some 130 instructions for each, since `free` must look up the size of the block; Rust passes the size, and a free
//! list per size class takes 40. A block may be freed by another thread than allocated it: it joins that thread's list.

use super::thread_state::{ThreadState, thread_state};
use std::alloc::{GlobalAlloc, Layout, System};

/// Largest size, in bytes, that is served from the free lists.
pub const SMALL: usize = 32 << 10;
/// Alignment of every block: no object spans more cache lines than necessary.
pub const ALIGN: usize = 64;
/// Built for a sanitizer (`make sanitize`): nothing is kept or rounded up, so that it sees the end of every block.
pub const PLAIN: bool = option_env!("RUSTGRAD_PLAIN_MEMORY").is_some();
/// Free bytes that a thread keeps of each class.
const KEPT: usize = 256 << 10;

/// The allocator of the crate.
pub struct Heap;

/// 16 steps of 64 bytes, then 2, 4, 8, 16 and 32 KiB.
#[inline]
pub fn class_of(bytes: usize) -> usize {
    if bytes <= 1024 { bytes.saturating_sub(1) / 64 } else { 5 + (usize::BITS - (bytes - 1).leading_zeros()) as usize }
}
#[inline]
pub fn class_size(class: usize) -> usize {
    if class < 16 { (class + 1) * 64 } else { 1 << (class - 5) }
}

#[inline]
fn layout_of(class: usize) -> Layout {
    // SAFETY: the size is not zero and small, the alignment a power of two.
    unsafe { Layout::from_size_align_unchecked(class_size(class), ALIGN) }
}

/// A block of the class; null if the system is out of memory.
#[inline]
pub fn take(thread: &ThreadState, class: usize) -> *mut u8 {
    let block = thread.free.pop(class);
    // SAFETY: the layout of a class is not empty.
    if block.is_null() { unsafe { System.alloc(layout_of(class)) } } else { block }
}

/// Frees a block.
///
/// # Safety
/// It was allocated with this class, is freed once, and is not used afterwards.
#[inline]
pub unsafe fn give(thread: &ThreadState, class: usize, block: *mut u8) {
    // SAFETY: the caller's promise; a block is large enough for a pointer, and was allocated with its class's layout.
    unsafe {
        if thread.free.kept.get() && thread.free.length(class) < KEPT / class_size(class) {
            thread.free.push(class, block);
        } else {
            System.dealloc(block, layout_of(class));
        }
    }
}

/// Whether this thread keeps freed blocks: between its first count and its last, see `tally`.
pub fn keep(thread: &ThreadState, on: bool) {
    thread.free.kept.set(on);
    if !on {
        clear(thread);
    }
}

/// Returns this thread's free blocks to the system.
pub fn clear(thread: &ThreadState) {
    // SAFETY: blocks on the lists are unused, and were allocated with the layout of their class.
    thread.free.clear(|class, block| unsafe { System.dealloc(block, layout_of(class)) });
}

#[inline]
fn is_small(layout: Layout) -> bool {
    !PLAIN && layout.size() <= SMALL && layout.align() <= ALIGN
}

// SAFETY: small blocks come from their size class, which is large enough for every layout of the class; the others from
// the system. Nothing here panics, and thread-local state is not allocated.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_small(layout) {
            return thread_state(|thread| take(thread, class_of(layout.size())));
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, here and below.
        if is_small(layout) {
            return thread_state(|thread| unsafe { give(thread, class_of(layout.size()), block) });
        }
        unsafe { System.dealloc(block, layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise, and `alloc` returned as many bytes.
        unsafe {
            if !is_small(layout) {
                return System.alloc_zeroed(layout);
            }
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size, rounded up to the alignment, does not overflow; two blocks do not
        // overlap, and each has at least the bytes that are copied.
        unsafe {
            let new = Layout::from_size_align_unchecked(size, layout.align());
            match (is_small(layout), is_small(new)) {
                (false, false) => System.realloc(block, layout, size),
                (true, true) if class_of(layout.size()) == class_of(size) => block,
                _ => {
                    let to = self.alloc(new);
                    if !to.is_null() {
                        to.copy_from_nonoverlapping(block, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    to
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::thread_state::CLASSES;

    #[test]
    fn classes_hold_what_they_are_asked_for() {
        for bytes in 1..=SMALL {
            let c = class_of(bytes);
            assert!(c < CLASSES && class_size(c) >= bytes && class_of(class_size(c)) == c, "{bytes}");
            assert!(c == 0 || class_size(c - 1) < bytes, "{bytes}");
        }
    }

    #[test]
    fn memory_of_all_sizes_keeps_what_it_holds() {
        thread_state(|thread| keep(thread, true));
        // SAFETY: each block is used within its layout and freed once with its current layout.
        unsafe {
            for size in [1, 8, 63, 64, 65, 400, 1023, 1024, 1025, 5000, SMALL, SMALL + 1] {
                for align in [1, 8, 64, 128] {
                    let layout = Layout::from_size_align(size, align).unwrap();
                    let a = Heap.alloc(layout);
                    assert_eq!(a as usize % align, 0);
                    a.write_bytes(7, size);
                    for wanted in [size / 2 + 1, size + 1, size * 20, 3] {
                        let b = Heap.realloc(Heap.alloc_zeroed(layout), layout, wanted);
                        assert_eq!(b as usize % align, 0);
                        let kept = std::slice::from_raw_parts(b, wanted.min(size));
                        assert!(kept.iter().all(|&x| x == 0), "{size} {align} {wanted}");
                        Heap.dealloc(b, Layout::from_size_align(wanted, align).unwrap());
                    }
                    assert!(std::slice::from_raw_parts(a, size).iter().all(|&x| x == 7), "{size} {align}");
                    Heap.dealloc(a, layout);
                }
            }
        }
        thread_state(|thread| keep(thread, false));
    }
}
