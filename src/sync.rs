//! Atomics and locks of the parts that loom models: those of the standard library, but in `make model`.
//!
//! What is written against this module runs unchanged in its models, which try every order of its steps that the memory
//! model allows. Statics stay the standard library's: loom's values live for one run of a model.

#[cfg(not(all(test, loom)))]
mod real {
    pub use std::hint::spin_loop;
    pub use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
    pub use std::sync::{Condvar, Mutex, MutexGuard};
    pub use std::thread::yield_now;
}
#[cfg(not(all(test, loom)))]
pub use real::*;

#[cfg(all(test, loom))]
mod model {
    pub use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
    pub use loom::sync::{Condvar, Mutex, MutexGuard};
    pub use loom::thread::yield_now;
    /// A turn for the others: a loop that waits makes no other progress in a model.
    pub use loom::thread::yield_now as spin_loop;
}
#[cfg(all(test, loom))]
pub use model::*;
