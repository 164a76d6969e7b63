//! Values built where they stay.
//!
//! `Arc::new` and `push` take a value that was built on the stack and copy it. Of values of some hundred bytes, which
//! every call makes anew, the copy costs as much as the rest: it reads wide what has just been written in small pieces,
//! and the processor waits for its own stores.

use smallvec::{Array, SmallVec};
use std::sync::Arc;

/// `Arc::new` of what `make` returns.
#[inline(always)]
pub fn arc<T>(make: impl FnOnce() -> T) -> Arc<T> {
    let place = Arc::<T>::new_uninit();
    // SAFETY: the memory is new, nobody else sees it, and it is written before it counts as a `T`.
    unsafe {
        Arc::as_ptr(&place).cast_mut().cast::<T>().write(make());
        place.assume_init()
    }
}

/// `Arc::get_mut` without its locked instructions.
///
/// # Safety
/// There is no other reference to what it owns, as where it has just been made.
pub unsafe fn new_mut<T>(new: &mut Arc<T>) -> &mut T {
    debug_assert!(Arc::strong_count(new) == 1 && Arc::weak_count(new) == 0);
    // SAFETY: the caller's promise.
    unsafe { &mut *Arc::as_ptr(new).cast_mut() }
}

/// `push` of what `make` returns.
#[inline(always)]
pub fn push<A: Array>(list: &mut SmallVec<A>, make: impl FnOnce() -> A::Item) {
    let n = list.len();
    if n == list.capacity() {
        list.reserve(1);
    }
    // SAFETY: there is room for one more, and it counts once it is written.
    unsafe {
        list.as_mut_ptr().add(n).write(make());
        list.set_len(n + 1);
    }
}
