//! Live counters: bytes, storages, nodes. Every thread has its own row and a reader sums the rows.
//!
//! A count changes several times per call, so it must not cost a locked instruction: only its thread writes a row, with
//! plain loads and stores. A value allocated on one thread may be freed on another, so a row may be negative; only sums
//! are meaningful. A thread that ends leaves its row, with its counts, to the next thread that starts.

use super::alloc;
use super::thread_state::{Counts, ThreadState, thread_state};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::sync::{Mutex, MutexGuard};

#[derive(Clone, Copy)]
pub enum Count {
    /// Bytes of host memory in use.
    Allocated,
    Storages,
    Nodes,
}

#[derive(Default)]
struct Row {
    counts: Counts,
    vacant: AtomicBool,
}

static ROWS: Mutex<Vec<&'static Row>> = Mutex::new(Vec::new());
/// For counts after a thread has released its row; several threads may write it.
static LATE: Row = Row { counts: [const { AtomicIsize::new(0) }; 3], vacant: AtomicBool::new(false) };

/// Releases the row when its thread ends.
struct Lease(&'static Row);

impl Drop for Lease {
    fn drop(&mut self) {
        thread_state(|thread| {
            thread.counts.set(None);
            alloc::keep(thread, false);
        });
        self.0.vacant.store(true, Ordering::Release);
    }
}

thread_local! {
    static LEASE: Lease = Lease(vacant());
}

fn rows() -> MutexGuard<'static, Vec<&'static Row>> {
    ROWS.lock().unwrap_or_else(|e| e.into_inner())
}

fn vacant() -> &'static Row {
    let mut all = rows();
    if let Some(row) = all.iter().find(|row| row.vacant.swap(false, Ordering::Acquire)) {
        return row;
    }
    let row: &'static Row = Box::leak(Box::default());
    all.push(row);
    row
}

#[inline]
pub fn add(what: Count, n: isize) {
    thread_state(|thread| add_to(thread, what, n))
}

/// `add` for callers that already hold the thread's state.
#[inline]
pub fn add_to(thread: &ThreadState, what: Count, n: isize) {
    match thread.counts.get() {
        Some(counts) => {
            let count = &counts[what as usize];
            count.store(count.load(Ordering::Relaxed) + n, Ordering::Relaxed);
        }
        None => first(thread, what, n),
    }
}

/// The first count of a thread, or one after it released its row.
#[cold]
fn first(thread: &ThreadState, what: Count, n: isize) {
    match LEASE.try_with(|lease| lease.0) {
        Ok(row) => {
            thread.counts.set(Some(&row.counts));
            alloc::keep(thread, true);
            add_to(thread, what, n);
        }
        Err(_) => {
            LATE.counts[what as usize].fetch_add(n, Ordering::Relaxed);
        }
    }
}

/// The sum over all threads. Concurrent changes may be missed; never below zero.
pub fn sum(what: Count) -> usize {
    let all = rows();
    let total: isize = all.iter().map(|row| row.counts[what as usize].load(Ordering::Relaxed)).sum();
    (total + LATE.counts[what as usize].load(Ordering::Relaxed)).max(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_threads_that_ended_stay() {
        // Nodes of concurrent tests are counted too: only differences far above their number are certain.
        const MUCH: isize = 1 << 50;
        let before = sum(Count::Nodes) as isize;
        for _ in 0..3 {
            std::thread::spawn(|| add(Count::Nodes, MUCH)).join().unwrap();
        }
        assert_eq!((sum(Count::Nodes) as isize - before + MUCH / 2) / MUCH, 3);
        add(Count::Nodes, -3 * MUCH);
        assert!((sum(Count::Nodes) as isize - before).abs() < MUCH / 2);
    }
}
