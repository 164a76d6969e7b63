//! Changing a tensor's metadata, and pinning it: Note [Metadata].

use super::{Meta, Tensor, TensorImpl};
use crate::error::{Error, Result};
use crate::rt::retire;
use crate::rt::thread_state::thread_state;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Metadata that replaced an older value in some epoch of `retire`.
pub(super) struct Replaced {
    pub(super) meta: Meta,
    older: *mut Replaced,
    since: u64,
}

/// Bits of `users` above the pin count: a change is in progress; the inline value has been dropped.
const CHANGING: u16 = 1 << 15;
const NO_FIRST: u16 = 1 << 14;
const PINS: u16 = NO_FIRST - 1;

/// A guard that pins a tensor and its metadata.
pub struct Pinned(Tensor);

impl Tensor {
    /// Pins the metadata of the tensor and of its base until the guards are dropped.
    pub fn pin(&self) -> [Option<Pinned>; 2] {
        [Some(Pinned::new(self)), self.view_info().map(|v| Pinned::new(&v.base))]
    }
    /// Replaces the metadata. Waits for threads that have pinned it; an error if this thread has.
    pub fn set_meta(&self, meta: Meta) -> Result<()> {
        let t = &*self.0;
        t.lock(true)?;
        let older = t.replaced.load(Ordering::Acquire);
        t.replaced.store(Box::into_raw(Box::new(Replaced { meta, older, since: retire::epoch() })), Ordering::Release);
        t.unlock(0);
        let owner = Arc::downgrade(&self.0);
        retire::later(Box::new(move |safe| owner.upgrade().is_none_or(|t| t.free_retired(safe))));
        Ok(())
    }
}

impl Pinned {
    fn new(t: &Tensor) -> Pinned {
        while t.0.users.fetch_add(1, Ordering::AcqRel) & CHANGING != 0 {
            t.0.users.fetch_sub(1, Ordering::AcqRel);
            std::thread::yield_now(); // a change takes only a few instructions
        }
        thread_state(|thread| thread.pins.set(thread.pins.get() + 1));
        Pinned(t.clone())
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        thread_state(|thread| thread.pins.set(thread.pins.get().wrapping_sub(1)));
        self.0.0.users.fetch_sub(1, Ordering::AcqRel);
    }
}

impl TensorImpl {
    /// Acquires the right to change the list; with `unpinned`, only when the tensor has no pins.
    fn lock(&self, unpinned: bool) -> Result<()> {
        loop {
            let users = self.users.load(Ordering::Acquire);
            let pinned = unpinned && users & PINS != 0;
            if pinned && thread_state(|thread| thread.pins.get()) > 0 {
                return Err(Error::runtime(
                    "the tensor is used by an op that is running; its shape, strides and data cannot be replaced meanwhile",
                ));
            }
            let (from, to) = (users & !CHANGING, users | CHANGING);
            if !pinned && self.users.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return Ok(());
            }
            retire::pause();
        }
    }
    fn unlock(&self, marks: u16) {
        self.users.fetch_or(marks, Ordering::AcqRel);
        self.users.fetch_and(!CHANGING, Ordering::AcqRel);
    }
    /// Frees what was retired up to an epoch; true when only the current value is left.
    fn free_retired(&self, safe: u64) -> bool {
        if self.lock(false).is_err() {
            return false;
        }
        let mut newer = self.replaced.load(Ordering::Acquire);
        // SAFETY: links are live until they are freed here or in `Drop`, and only this thread changes the list.
        // Everything older than `newer` was retired when `newer` was installed: once that epoch is over nobody reads
        // it.
        let (freed, first, done) = unsafe {
            while !newer.is_null() && (*newer).since > safe {
                newer = (*newer).older;
            }
            if newer.is_null() {
                (null_mut(), None, self.replaced.load(Ordering::Acquire).is_null())
            } else {
                let gone = self.users.load(Ordering::Acquire) & NO_FIRST != 0;
                let first = (!gone).then(|| ManuallyDrop::take(&mut *self.first.get()));
                let done = newer == self.replaced.load(Ordering::Acquire);
                (std::mem::replace(&mut (*newer).older, null_mut()), first, done)
            }
        };
        self.unlock(if first.is_some() { NO_FIRST } else { 0 });
        // After the list is unlocked, since dropping may run Python.
        drop(first);
        free_list(freed);
        done
    }
}

impl Drop for TensorImpl {
    fn drop(&mut self) {
        free_list(*self.replaced.get_mut());
        if *self.users.get_mut() & NO_FIRST == 0 {
            // SAFETY: it has not been dropped, and `drop` has exclusive access.
            unsafe { ManuallyDrop::drop(self.first.get_mut()) };
        }
        super::slot::unchain(self);
    }
}

fn free_list(mut p: *mut Replaced) {
    while !p.is_null() {
        // SAFETY: each link comes from `Box::into_raw` in `set_meta`, and is freed by whoever unlinks it.
        let b = unsafe { Box::from_raw(p) };
        p = b.older;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::dtype::DType;
    use std::time::Duration;

    fn of(n: usize) -> Tensor {
        Tensor::empty(&[n], DType::F32, Device::Cpu).unwrap()
    }

    #[test]
    fn a_shape_that_was_read_outlives_its_replacement() {
        let t = of(3);
        let shape = t.shape();
        t.set_meta(of(5).meta().clone()).unwrap();
        assert_eq!((shape, t.shape()), (&[3][..], &[5][..]));
    }

    #[test]
    fn retired_values_are_freed_when_their_epoch_is_over() {
        let (t, first) = (of(3), of(3));
        let old = first.storage().clone();
        t.set_meta(first.meta().clone()).unwrap();
        drop(first);
        let before = old.owners();
        t.set_meta(of(7).meta().clone()).unwrap();
        assert!(t.0.free_retired(retire::epoch()));
        assert_eq!((old.owners(), t.shape()), (before - 1, &[7][..]));
        t.set_meta(of(9).meta().clone()).unwrap();
        assert!(!t.0.free_retired(retire::epoch() - 1) && t.0.free_retired(retire::epoch()));
        assert_eq!(t.shape(), [9]);
    }

    #[test]
    fn a_change_waits_for_pins_of_other_threads_and_is_refused_under_own_ones() {
        let t = of(3);
        let pins = t.pin();
        assert!(t.set_meta(of(5).meta().clone()).is_err());
        std::thread::scope(|s| {
            let change = s.spawn(|| t.set_meta(of(5).meta().clone()).unwrap());
            std::thread::sleep(Duration::from_millis(5));
            assert!(!change.is_finished() && t.shape() == [3]);
            drop(pins);
        });
        assert_eq!(t.shape(), [5]);
    }
}
