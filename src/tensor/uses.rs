//! How many edges of graphs lead to a leaf, and the leaf's sequence number: Note [Leaves].

use crate::sync::{AtomicU32, AtomicU64, Ordering, spin_loop};

/// In place of the count, while the thread that makes the first edge sets the sequence number: others wait for it.
const SETTING: u32 = u32::MAX;

pub(super) struct Uses {
    count: AtomicU32,
    leaf_seq: AtomicU64,
}

impl Uses {
    #[inline]
    pub(super) fn none() -> Uses {
        Uses { count: AtomicU32::new(0), leaf_seq: AtomicU64::new(0) }
    }
    /// Counts an edge; true where there was no other, whose number `leaf_seq` then gives.
    #[inline]
    pub(super) fn enter(&self, leaf_seq: impl Fn() -> u64) -> bool {
        let count = &self.count;
        loop {
            match count.load(Ordering::Acquire) {
                SETTING => spin_loop(),
                0 if count.compare_exchange(0, SETTING, Ordering::AcqRel, Ordering::Relaxed).is_ok() => {
                    self.leaf_seq.store(leaf_seq(), Ordering::Release);
                    count.store(1, Ordering::Release);
                    return true;
                }
                n @ 1.. if count.compare_exchange_weak(n, n + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() => {
                    return false;
                }
                _ => {}
            }
        }
    }
    /// Counts a copy of an edge that lives.
    #[inline]
    pub(super) fn copy(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
    }
    /// Takes an edge off; true where it was the last.
    #[inline]
    pub(super) fn leave(&self) -> bool {
        self.count.fetch_sub(1, Ordering::AcqRel) == 1
    }
    /// The turn, for those that have an edge.
    #[inline]
    pub(super) fn leaf_seq(&self) -> u64 {
        self.leaf_seq.load(Ordering::Acquire)
    }
    /// Whether there is an edge, or will be at once.
    pub(super) fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }
    pub(super) fn count(&self) -> usize {
        match self.count.load(Ordering::Acquire) {
            SETTING => 0,
            n => n as usize,
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use std::sync::Arc;

    /// A turn stays while there is an edge, and every first edge sets one of its own.
    #[test]
    fn model_of_edges_that_come_and_go() {
        loom::model(|| {
            let uses = Arc::new(Uses::none());
            let edge = |uses: &Uses, number: u64| {
                let first = uses.enter(|| number);
                let leaf_seq = uses.leaf_seq();
                assert!(if first { leaf_seq == number } else { leaf_seq == 3 - number });
                uses.copy();
                assert!(!uses.leave() && uses.leaf_seq() == leaf_seq);
                (first, uses.leave())
            };
            let other = uses.clone();
            let second = loom::thread::spawn(move || edge(&other, 2));
            let (a, b) = (edge(&uses, 1), second.join().unwrap());
            // As many edges were the last one as were the first.
            assert_eq!(a.0 as u8 + b.0 as u8, a.1 as u8 + b.1 as u8);
            assert_eq!(uses.count(), 0);
        });
    }
}
