//! Construction in place.
//!
//! `Arc::new` and `push` copy a value that was built on the stack. For values of a few hundred bytes that every call
//! creates, the copy costs as much as the rest: its wide loads span several recent narrow stores, so store-to-load
//! forwarding fails and the processor stalls.

use smallvec::{Array, SmallVec};
use std::sync::Arc;

/// `Arc::new(make())` without the copy.
#[inline(always)]
pub fn arc<T>(make: impl FnOnce() -> T) -> Arc<T> {
    let place = Arc::<T>::new_uninit();
    // SAFETY: the memory is new and not shared, and it is written before it is treated as a `T`.
    unsafe {
        Arc::as_ptr(&place).cast_mut().cast::<T>().write(make());
        place.assume_init()
    }
}

/// `Arc::get_mut` without its locked instructions.
///
/// # Safety
/// No other reference to the allocation exists, as right after its creation.
pub unsafe fn new_mut<T>(new: &mut Arc<T>) -> &mut T {
    debug_assert!(Arc::strong_count(new) == 1 && Arc::weak_count(new) == 0);
    // SAFETY: the caller's promise.
    unsafe { &mut *Arc::as_ptr(new).cast_mut() }
}

/// `push(make())` without the copy.
#[inline(always)]
pub fn push<A: Array>(list: &mut SmallVec<A>, make: impl FnOnce() -> A::Item) {
    let n = list.len();
    if n == list.capacity() {
        list.reserve(1);
    }
    // SAFETY: there is capacity for one more, and the length is raised after the write.
    unsafe {
        list.as_mut_ptr().add(n).write(make());
        list.set_len(n + 1);
    }
}
