//! Parallel execution: `par_for(n, grain, f)` over our own thread pool.
//!
//! The caller works too. Each thread has a part of the ranges of its own, the same in every call: it finds in its cache
//! what it wrote in the last one. Who is done with it takes ranges of the others. The caller never waits for a helper that
//! has not started yet, so on a busy machine only the help is lost. An idle helper polls for the next job for a while
//! before it sleeps, since waking it costs a short op its gain. Ranges depend on `n`, `grain` and the thread count: a
//! reduction must split by size itself. After a `fork` the child creates a new pool.

use crate::error::Result;
use crate::sync::{AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, spin_loop, yield_now};
use smallvec::SmallVec;
use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{self, Arc};
use std::time::{Duration, Instant};

/// Ranges per thread: enough to balance threads of unequal speed.
const RANGES_PER_THREAD: usize = 4;
/// Set in `Job::state` once no more helpers may join.
const CLOSED: usize = 1 << (usize::BITS - 1);
/// Spins before a waiting caller yields its core.
const SPINS: usize = 20_000;
/// How long a helper looks out for work before it sleeps: longer than what lies between the ops of a program.
const AWAKE: Duration = if cfg!(all(test, loom)) { Duration::ZERO } else { Duration::from_micros(100) };

static THREADS: sync::atomic::AtomicUsize = sync::atomic::AtomicUsize::new(0);
static POOL: sync::Mutex<Option<Pool>> = sync::Mutex::new(None);

thread_local! {
    /// Inside a range of some `par_for`: nested calls run serially.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

struct Pool {
    process: u32,
    size: usize,
    board: Arc<Board>,
}

/// Where callers post their jobs and helpers look for them.
struct Board {
    jobs: Mutex<Vec<Arc<Job>>>,
    /// Changes with every job that is posted.
    posted: AtomicUsize,
    /// Number of sleeping helpers; changes under the lock.
    asleep: AtomicUsize,
    wake: Condvar,
}
impl Board {
    fn new() -> Board {
        let (jobs, wake) = (Mutex::new(Vec::new()), Condvar::new());
        Board { jobs, posted: AtomicUsize::new(0), asleep: AtomicUsize::new(0), wake }
    }
    fn jobs(&self) -> MutexGuard<'_, Vec<Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(|e| e.into_inner())
    }
    fn post(&self, job: Arc<Job>) {
        let wanted = job.helpers;
        let mut jobs = self.jobs();
        jobs.push(job);
        self.posted.fetch_add(1, Ordering::Release);
        let asleep = self.asleep.load(Ordering::Relaxed);
        drop(jobs);
        (0..wanted.min(asleep)).for_each(|_| self.wake.notify_one());
    }
    fn withdraw(&self, job: &Arc<Job>) {
        self.jobs().retain(|j| !Arc::ptr_eq(j, job));
    }
    /// The main loop of the helper with this number.
    fn serve(&self, number: usize) -> ! {
        loop {
            if let Some(job) = self.look() {
                job.help(number);
            }
        }
    }
    /// A job that wants help; none where one may have been posted meanwhile.
    fn look(&self) -> Option<Arc<Job>> {
        let seen = self.posted.load(Ordering::Acquire);
        let job = self.jobs().iter().find(|j| j.wants_help()).cloned();
        if job.is_none() && !self.look_out(seen) {
            let mut jobs = self.jobs();
            while self.posted.load(Ordering::Relaxed) == seen {
                self.asleep.fetch_add(1, Ordering::Relaxed);
                jobs = self.wake.wait(jobs).unwrap_or_else(|e| e.into_inner());
                self.asleep.fetch_sub(1, Ordering::Relaxed);
            }
        }
        job
    }
    /// Whether a job is posted before the helper's patience ends.
    fn look_out(&self, seen: usize) -> bool {
        let start = Instant::now();
        while start.elapsed() < AWAKE {
            for _ in 0..32 {
                if self.posted.load(Ordering::Relaxed) != seen {
                    return true;
                }
                spin_loop();
            }
        }
        false
    }
}

/// The number of threads of `par_for`: `RUSTGRAD_NUM_THREADS`, or what the system makes available to this process.
pub fn num_threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let asked = std::env::var("RUSTGRAD_NUM_THREADS").ok().and_then(|s| s.trim().parse().ok());
            let n = asked.filter(|&n| n > 0).unwrap_or_else(|| {
                std::thread::available_parallelism().map_or(1, |n| n.get()) // one thread if unknown
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

/// Calls `f` on disjoint ranges that cover `0..n`, each of at least `grain` elements (except the last), on several
/// threads if `n` exceeds `grain`. A panic in `f` propagates to the caller after all running ranges have ended.
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

/// `par_for` with a fallible `f`: returns one of the errors, after all ranges have ended.
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
    let Some(board) = board(threads - 1) else { return f(0..n) };
    share(&board, [n, ranges, helpers], f);
}

/// Works on `f` in so many ranges, together with so many helpers at most.
fn share(board: &Board, [n, ranges, helpers]: [usize; 3], f: &(dyn Fn(Range<usize>) + Sync)) {
    // SAFETY: only the lifetime is erased; `Guard` waits, before `f` goes out of scope, for every helper that
    // was let in, and helpers that come later are turned away before they look at it.
    let f: &'static (dyn Fn(Range<usize>) + Sync) = unsafe { std::mem::transmute(f) };
    let job = Arc::new(Job::new(f, [n, ranges, helpers]));
    board.post(job.clone());
    {
        let _guard = Guard { job: &job, board };
        job.work(0);
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
    /// Maximum number of helpers.
    helpers: usize,
    /// For the caller and each helper, how many ranges of its part are taken.
    taken: SmallVec<[AtomicUsize; 4]>,
    /// The number of active helpers, and `CLOSED`.
    state: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Job {
    fn new(f: &'static (dyn Fn(Range<usize>) + Sync), [n, ranges, helpers]: [usize; 3]) -> Job {
        let taken = (0..=helpers).map(|_| AtomicUsize::new(0)).collect();
        Job { f, n, ranges, helpers, taken, state: AtomicUsize::new(0), panic: Mutex::new(None) }
    }
    /// The ranges of a part.
    fn part(&self, part: usize) -> Range<usize> {
        let edge = |i: usize| self.ranges * i / self.taken.len();
        edge(part)..edge(part + 1)
    }
    /// Works on a part, then on what is left of the others.
    fn work(&self, own: usize) {
        let outer = INSIDE.replace(true);
        let _reset = Reset(outer);
        let (each, extra) = (self.n / self.ranges, self.n % self.ranges);
        for step in 0..self.taken.len() {
            let part = (own + step) % self.taken.len();
            let Range { start, end } = self.part(part);
            loop {
                let i = start + self.taken[part].fetch_add(1, Ordering::Relaxed);
                if i >= end {
                    break;
                }
                let first = i * each + i.min(extra);
                (self.f)(first..first + each + (i < extra) as usize);
            }
        }
    }
    /// Leaves no range to take.
    fn stop(&self) {
        self.taken.iter().for_each(|t| t.store(self.ranges, Ordering::Relaxed));
    }
    fn wants_help(&self) -> bool {
        let left = |(part, taken): (usize, &AtomicUsize)| taken.load(Ordering::Relaxed) < self.part(part).len();
        self.state.load(Ordering::Relaxed) < self.helpers && self.taken.iter().enumerate().any(left)
    }
    fn help(&self, number: usize) {
        let room = |s: usize| (s < self.helpers).then_some(s + 1); // `CLOSED` exceeds any number of helpers
        let entered = self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, room);
        if entered.is_err() {
            return;
        }
        if let Err(p) = catch_unwind(AssertUnwindSafe(|| self.work(1 + number % self.helpers))) {
            self.stop();
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

/// Closes the job and waits for active helpers, even if the caller's own range panicked.
struct Guard<'a> {
    job: &'a Arc<Job>,
    board: &'a Board,
}
impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let job = self.job;
        if std::thread::panicking() {
            job.stop();
        }
        job.state.fetch_or(CLOSED, Ordering::AcqRel);
        let mut rounds = 0;
        while job.state.load(Ordering::Acquire) != CLOSED {
            rounds += 1;
            if rounds < SPINS {
                spin_loop();
            } else {
                yield_now();
            }
        }
        self.board.withdraw(job);
    }
}

/// The board of a pool with at least `size` helpers; `None` if there is none, then the caller works alone.
fn board(size: usize) -> Option<Arc<Board>> {
    // Another thread may have held the lock when this process was forked: never wait forever.
    let mut slot = (0..1000).find_map(|_| {
        let got = POOL.try_lock().ok();
        if got.is_none() {
            std::thread::yield_now();
        }
        got
    })?;
    let process = std::process::id();
    if slot.as_ref().is_some_and(|p| p.process != process) {
        // The parent's threads do not exist here, and its locks may be held forever.
        std::mem::forget(slot.take());
    }
    let pool = slot.get_or_insert_with(|| Pool { process, size: 0, board: Arc::new(Board::new()) });
    while pool.size < size {
        let (board, number) = (pool.board.clone(), pool.size);
        let name = format!("rustgrad-{number}");
        std::thread::Builder::new().name(name).spawn(move || board.serve(number)).ok()?;
        pool.size += 1;
    }
    Some(pool.board.clone())
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::thread::spawn;
    use std::sync::atomic::AtomicBool;

    /// The hand-off: each range is visited once, and nobody calls `f` once its caller has gone on.
    #[test]
    fn model_of_a_shared_job() {
        loom::model(|| {
            let board = Arc::new(Board::new());
            let gone = Arc::new((AtomicBool::new(false), AtomicBool::new(false)));
            let other = board.clone();
            let helper = spawn(move || {
                let job = other.jobs().iter().find(|j| j.wants_help()).cloned();
                job.inspect(|job| job.help(0));
            });
            let visits = [AtomicUsize::new(0), AtomicUsize::new(0)];
            let state = gone.clone();
            share(&board, [2, 2, 1], &|range| {
                state.1.fetch_or(state.0.load(Ordering::SeqCst), Ordering::SeqCst);
                range.for_each(|i| {
                    visits[i].fetch_add(1, Ordering::Relaxed);
                });
            });
            // What the helper wrote is seen without another synchronisation.
            assert!(visits.iter().all(|v| v.load(Ordering::Relaxed) == 1));
            gone.0.store(true, Ordering::SeqCst);
            helper.join().unwrap();
            assert!(!gone.1.load(Ordering::SeqCst) && board.jobs().is_empty());
        });
    }

    /// No job is posted without a helper hearing of it: loom reports a helper that sleeps for good.
    #[test]
    fn model_of_a_helper_that_sleeps() {
        loom::model(|| {
            let board = Arc::new(Board::new());
            let other = board.clone();
            let helper = spawn(move || while other.look().is_none() {});
            let f: &(dyn Fn(Range<usize>) + Sync) = &|_| {};
            board.post(Arc::new(Job::new(f, [1, 2, 1])));
            helper.join().unwrap();
        });
    }
}

#[cfg(all(test, not(loom)))]
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
        // SAFETY: the child only runs `par_for` and leaves by `_exit`.
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
