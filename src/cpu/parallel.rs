//! One way to run in parallel: `par_for(n, grain, f)` over a private pool of threads.
//!
//! The caller works too, and helpers take ranges from a shared counter; the caller never waits for a helper
//! that has not started yet, so a busy machine costs nothing but the lost help. Ranges depend on `n`, `grain`
//! and the thread count: a reduction must split by size itself. After a `fork` the child builds a new pool.

use crate::error::Result;
use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Ranges per thread: enough to even out threads of unequal speed.
const RANGES_PER_THREAD: usize = 4;
/// Set in `Job::state` once the caller lets no more helpers in.
const CLOSED: usize = 1 << (usize::BITS - 1);
/// Rounds of spinning before a waiting caller gives its core away.
const SPINS: usize = 20_000;

static THREADS: AtomicUsize = AtomicUsize::new(0);
static POOL: Mutex<Option<Pool>> = Mutex::new(None);

thread_local! {
    /// Inside a range of some `par_for`: inner ones run on the spot.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

struct Pool {
    process: u32,
    size: usize,
    threads: Arc<rayon::ThreadPool>,
}

/// The threads that `par_for` uses: `RUSTGRAD_NUM_THREADS`, or what the machine lends this process.
pub fn num_threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let asked = std::env::var("RUSTGRAD_NUM_THREADS").ok().and_then(|s| s.trim().parse().ok());
            let n = asked.filter(|&n| n > 0).unwrap_or_else(|| {
                std::thread::available_parallelism().map_or(1, |n| n.get()) // one thread where nothing is known
            });
            set_num_threads(n);
            n
        }
        n => n,
    }
}
/// Sets the number of threads, the caller's included; zero counts as one.
pub fn set_num_threads(n: usize) {
    THREADS.store(n.clamp(1, 1024), Ordering::Relaxed);
}

/// Calls `f` on disjoint ranges that cover `0..n`, each of at least `grain` (but the last), on several threads
/// where `n` exceeds `grain`. A panic in `f` reaches the caller after all ranges in progress have ended.
#[inline]
pub fn par_for(n: usize, grain: usize, f: impl Fn(Range<usize>) + Sync) {
    if n <= grain {
        if n > 0 {
            f(0..n);
        }
        return;
    }
    spread(n, grain, &f);
}

/// The same where `f` may fail: one of the errors, after all ranges have ended.
pub fn try_par_for(n: usize, grain: usize, f: impl Fn(Range<usize>) -> Result<()> + Sync) -> Result<()> {
    let failed = Mutex::new(None);
    par_for(n, grain, |range| {
        if let Err(e) = f(range) {
            failed.lock().unwrap_or_else(|e| e.into_inner()).replace(e);
        }
    });
    failed.into_inner().unwrap_or_else(|e| e.into_inner()).map_or(Ok(()), Err)
}

#[inline(never)]
fn spread(n: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
    let threads = num_threads();
    let ranges = (n / grain.max(1)).clamp(1, threads * RANGES_PER_THREAD);
    let helpers = threads.min(ranges) - 1;
    if helpers == 0 || INSIDE.get() {
        return f(0..n);
    }
    let Some(pool) = pool(threads - 1) else { return f(0..n) };
    // SAFETY: only the lifetime is erased; `Guard` waits, before `f` goes out of scope, for every helper that
    // was let in, and helpers that come later are turned away before they look at it.
    let f: &'static (dyn Fn(Range<usize>) + Sync) = unsafe { std::mem::transmute(f) };
    let job =
        Arc::new(Job { f, n, ranges, next: AtomicUsize::new(0), state: AtomicUsize::new(0), panic: Mutex::new(None) });
    for _ in 0..helpers {
        let job = job.clone();
        pool.spawn(move || job.help());
    }
    {
        let _guard = Guard(&job);
        job.work();
    }
    let panic = job.panic.lock().unwrap_or_else(|e| e.into_inner()).take();
    if let Some(p) = panic {
        resume_unwind(p);
    }
}

struct Job {
    f: &'static (dyn Fn(Range<usize>) + Sync),
    n: usize,
    ranges: usize,
    next: AtomicUsize,
    /// The number of helpers at work, and `CLOSED`.
    state: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Job {
    fn work(&self) {
        let outer = INSIDE.replace(true);
        let _reset = Reset(outer);
        let (each, extra) = (self.n / self.ranges, self.n % self.ranges);
        loop {
            let i = self.next.fetch_add(1, Ordering::Relaxed);
            if i >= self.ranges {
                return;
            }
            let start = i * each + i.min(extra);
            (self.f)(start..start + each + (i < extra) as usize);
        }
    }
    fn help(&self) {
        let entered =
            self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, |s| (s & CLOSED == 0).then_some(s + 1));
        if entered.is_err() {
            return;
        }
        if let Err(p) = catch_unwind(AssertUnwindSafe(|| self.work())) {
            self.next.store(self.ranges, Ordering::Relaxed);
            *self.panic.lock().unwrap_or_else(|e| e.into_inner()) = Some(p);
        }
        self.state.fetch_sub(1, Ordering::Release);
    }
}

struct Reset(bool);
impl Drop for Reset {
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}

/// Closes the job and waits for the helpers inside, also when the caller's own range panicked.
struct Guard<'a>(&'a Job);
impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.next.store(self.0.ranges, Ordering::Relaxed);
        }
        self.0.state.fetch_or(CLOSED, Ordering::AcqRel);
        let mut rounds = 0;
        while self.0.state.load(Ordering::Acquire) != CLOSED {
            rounds += 1;
            if rounds < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }
}

/// The pool with at least `size` threads; `None` where it cannot be had, then the caller works alone.
fn pool(size: usize) -> Option<Arc<rayon::ThreadPool>> {
    // Another thread may have held the lock when this process was forked off: never wait for it for good.
    let mut slot = (0..1000).find_map(|_| {
        let got = POOL.try_lock().ok();
        if got.is_none() {
            std::thread::yield_now();
        }
        got
    })?;
    let process = std::process::id();
    if let Some(p) = &*slot {
        if p.process == process && p.size >= size {
            return Some(p.threads.clone());
        }
        if p.process != process {
            // The threads of the parent do not exist here; joining or waking them would hang.
            std::mem::forget(slot.take());
        }
    }
    let builder = rayon::ThreadPoolBuilder::new().num_threads(size).thread_name(|i| format!("rustgrad-{i}"));
    let threads = Arc::new(builder.build().ok()?);
    *slot = Some(Pool { process, size, threads: threads.clone() });
    Some(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(n: usize, grain: usize) {
        let seen: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
        par_for(n, grain, |r| {
            r.for_each(|i| {
                seen[i].fetch_add(1, Ordering::Relaxed);
            })
        });
        assert!(seen.iter().all(|s| s.load(Ordering::Relaxed) == 1), "{n} {grain}");
    }

    #[test]
    fn every_index_is_visited_once() {
        for (n, grain) in [(0, 1), (1, 1), (7, 1), (100, 30), (1000, 1), (10_000, 999), (5, 0)] {
            covers(n, grain);
        }
    }

    #[test]
    fn nested_calls_run_on_the_spot() {
        let total = AtomicUsize::new(0);
        par_for(64, 1, |r| {
            for _ in r {
                par_for(10, 1, |q| {
                    total.fetch_add(q.len(), Ordering::Relaxed);
                });
            }
        });
        assert_eq!(total.into_inner(), 640);
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let caught = catch_unwind(|| par_for(1000, 1, |r| assert!(!r.contains(&500))));
        assert!(caught.is_err());
        covers(1000, 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_forked_child_does_not_hang() {
        covers(1000, 1);
        // SAFETY: the child runs `par_for` alone and leaves by `_exit`.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::alarm(20);
                let total = AtomicUsize::new(0);
                par_for(1000, 1, |r| {
                    total.fetch_add(r.len(), Ordering::Relaxed);
                });
                libc::_exit(if total.into_inner() == 1000 { 0 } else { 1 });
            }
            let mut status = 0;
            libc::waitpid(child, &mut status, 0);
            assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
        }
    }
}
