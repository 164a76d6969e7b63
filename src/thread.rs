//! What each thread has of its own, in one place.
//!
//! Finding a thread's own is a call in a shared library, and a recorded call of an op asks a dozen times: for the modes,
//! the counts, the free blocks. Kept together, it is found once by each function and handed on. Nothing here has a
//! destructor, so it may be asked for until the thread is gone. Each part belongs to the module that is named with it.

use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::AtomicIsize;

/// Classes of sizes that `heap` has.
pub const CLASSES: usize = 21;
/// `tally`: what a thread counts. Only that thread writes, any may read.
pub type Counts = [AtomicIsize; 3];

pub struct Own {
    /// `autograd::mode`.
    pub grad: Cell<bool>,
    pub inference: Cell<bool>,
    pub anomaly: Cell<u8>,
    /// `autograd::saved`: whether hooks pack what is saved.
    pub hooked: Cell<bool>,
    /// `autograd::node`: the sequence number given last.
    pub clock: Cell<u64>,
    /// `autograd::dropping`: how deep drops of nodes nest, and whether some wait.
    pub drops: Cell<u32>,
    pub drops_wait: Cell<bool>,
    /// `tensor`: how many tensors this thread has pinned.
    pub pins: Cell<u32>,
    /// `tally`: none before the first count and after the last.
    pub counts: Cell<Option<&'static Counts>>,
    /// `heap`.
    pub free: FreeLists,
}

thread_local! {
    static OWN: Own = const {
        Own {
            grad: Cell::new(true),
            inference: Cell::new(false),
            anomaly: Cell::new(0),
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
pub fn own<R>(f: impl FnOnce(&Own) -> R) -> R {
    OWN.with(f)
}

/// Lists of free memory by class. The first word of a free block points to the next one.
pub struct FreeLists {
    heads: [Cell<*mut u8>; CLASSES],
    lengths: [Cell<usize>; CLASSES],
    /// Whether somebody takes the blocks back when the thread ends; until then none are kept.
    pub kept: Cell<bool>,
}

impl FreeLists {
    /// A block of the class, or null.
    #[inline]
    pub fn pop(&self, class: usize) -> *mut u8 {
        let block = self.heads[class].get();
        if !block.is_null() {
            // SAFETY: by the contract of `push` its first word points to the next one.
            self.heads[class].set(unsafe { block.cast::<*mut u8>().read() });
            self.lengths[class].set(self.lengths[class].get() - 1);
        }
        block
    }
    /// # Safety
    /// The block has room for a pointer, is aligned for it, and nothing uses it any more.
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
    /// Empties every list: `free` is given each class and block.
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
