//! All per-thread state, in one struct.
//!
//! In a shared library each thread-local access is a function call, and a recorded op needs a dozen: modes, counters,
//! free lists. Here one access finds all of it, and functions pass the reference on. No field has a destructor, so the
//! struct is accessible until the thread is gone. Each field belongs to the module named beside it.

use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::AtomicIsize;

/// Number of size classes of `heap`.
pub const CLASSES: usize = 21;
/// `tally`: the thread's counters. Only that thread writes, any may read.
pub type Counts = [AtomicIsize; 3];

pub struct ThreadState {
    /// `autograd::mode`.
    pub grad: Cell<bool>,
    pub inference: Cell<bool>,
    pub anomaly: Cell<u8>,
    /// `autograd::forward`: the levels of forward mode that calls see, one bit for each.
    pub forward: Cell<u32>,
    /// `autograd::saved`: whether saved-tensor hooks are installed.
    pub hooked: Cell<bool>,
    /// `autograd::node`: the last sequence number given.
    pub clock: Cell<u64>,
    /// `autograd::dropping`: nesting depth of node drops, and whether any are pending.
    pub drops: Cell<u32>,
    pub drops_wait: Cell<bool>,
    /// `tensor`: number of tensors pinned by this thread.
    pub pins: Cell<u32>,
    /// `tally`: `None` before the first count and after the last.
    pub counts: Cell<Option<&'static Counts>>,
    /// `heap`.
    pub free: FreeLists,
}

thread_local! {
    static STATE: ThreadState = const {
        ThreadState {
            grad: Cell::new(true),
            inference: Cell::new(false),
            anomaly: Cell::new(0),
            forward: Cell::new(0),
            hooked: Cell::new(false),
            clock: Cell::new(0),
            drops: Cell::new(0),
            drops_wait: Cell::new(false),
            pins: Cell::new(0),
            counts: Cell::new(None),
            free: FreeLists {
                heads: [const { Cell::new(null_mut()) }; CLASSES],
                lengths: [const { Cell::new(0) }; CLASSES],
                kept: Cell::new(false),
            },
        }
    };
}

#[inline]
pub fn thread_state<R>(f: impl FnOnce(&ThreadState) -> R) -> R {
    STATE.with(f)
}

/// Free lists by size class. The first word of a free block points to the next one.
pub struct FreeLists {
    heads: [Cell<*mut u8>; CLASSES],
    lengths: [Cell<usize>; CLASSES],
    /// Whether the blocks are released when the thread ends; until that is arranged none are kept.
    pub kept: Cell<bool>,
}

impl FreeLists {
    /// A block of the class, or null.
    #[inline]
    pub fn pop(&self, class: usize) -> *mut u8 {
        let block = self.heads[class].get();
        if !block.is_null() {
            // SAFETY: by the contract of `push` the first word points to the next block.
            self.heads[class].set(unsafe { block.cast::<*mut u8>().read() });
            self.lengths[class].set(self.lengths[class].get() - 1);
        }
        block
    }
    /// # Safety
    /// The block is large enough and aligned for a pointer, and is not used afterwards.
    #[inline]
    pub unsafe fn push(&self, class: usize, block: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { block.cast::<*mut u8>().write(self.heads[class].get()) };
        self.heads[class].set(block);
        self.lengths[class].set(self.lengths[class].get() + 1);
    }
    #[inline]
    pub fn length(&self, class: usize) -> usize {
        self.lengths[class].get()
    }
    /// Empties every list, calling `free` with the class and address of each block.
    pub fn clear(&self, free: impl Fn(usize, *mut u8)) {
        for class in 0..CLASSES {
            while let block = self.pop(class)
                && !block.is_null()
            {
                free(class, block);
            }
        }
    }
}
