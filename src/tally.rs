//! Counts of what is alive: bytes, storages, nodes. Every thread keeps its own and a reader adds them up.
//!
//! A count changes several times in every call, so it may cost no locked instruction: only its thread writes a row, with
//! plain loads and stores. What one thread makes another may free, hence a row may be negative; only sums mean something.
//! A thread that ends leaves its row, sums and all, to the next one that starts.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::sync::{Mutex, MutexGuard};

#[derive(Clone, Copy)]
pub enum Count {
    /// Bytes of host memory in use.
    Allocated,
    /// Bytes of host memory held from the system: in use or cached.
    Reserved,
    Storages,
    Nodes,
}
const COUNTS: usize = 4;

#[derive(Default)]
struct Row {
    counts: [AtomicIsize; COUNTS],
    vacant: AtomicBool,
}

static ROWS: Mutex<Vec<&'static Row>> = Mutex::new(Vec::new());
/// For what runs after a thread has given its row back; several threads may write it.
static LATE: Row = Row { counts: [const { AtomicIsize::new(0) }; COUNTS], vacant: AtomicBool::new(false) };

/// Gives the row back when its thread ends.
struct Lease(&'static Row);

impl Drop for Lease {
    fn drop(&mut self) {
        ROW.set(None);
        self.0.vacant.store(true, Ordering::Release);
    }
}

thread_local! {
    static ROW: Cell<Option<&'static Row>> = const { Cell::new(None) };
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
    match ROW.get() {
        Some(row) => {
            let count = &row.counts[what as usize];
            count.store(count.load(Ordering::Relaxed) + n, Ordering::Relaxed);
        }
        None => first(what, n),
    }
}

/// The first count of a thread, or one after its last.
#[cold]
fn first(what: Count, n: isize) {
    match LEASE.try_with(|lease| lease.0) {
        Ok(row) => {
            ROW.set(Some(row));
            add(what, n);
        }
        Err(_) => {
            LATE.counts[what as usize].fetch_add(n, Ordering::Relaxed);
        }
    }
}

/// The count over all threads. Another thread's change in this moment may be missed; it never falls below zero.
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
        // `Reserved` of this test binary is also counted by the pool: only differences far above it are certain.
        const MUCH: isize = 1 << 50;
        let before = sum(Count::Reserved) as isize;
        for _ in 0..3 {
            std::thread::spawn(|| add(Count::Reserved, MUCH)).join().unwrap();
        }
        assert_eq!((sum(Count::Reserved) as isize - before + MUCH / 2) / MUCH, 3);
        add(Count::Reserved, -3 * MUCH);
        assert!((sum(Count::Reserved) as isize - before).abs() < MUCH / 2);
    }
}
