//! Whether calls are observed in this process, and the report of raw memory use: allocations and accesses to bytes.
//!
//! The modules that own memory report here; `op::tracer`, which knows the calls, attributes each report to the innermost
//! one. While nobody observes, each report costs one relaxed load.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What reaches memory below the level of ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raw {
    /// A storage was allocated.
    Allocation,
    /// The bytes of a tensor were addressed, to be read or written.
    Access,
}

static OBSERVERS: AtomicUsize = AtomicUsize::new(0);
static SINK: OnceLock<fn(Raw)> = OnceLock::new();

#[inline(always)]
pub fn enabled() -> bool {
    OBSERVERS.load(Ordering::Relaxed) != 0
}

/// Counts one more observer; `sink` receives the reports (the first one given is kept).
pub fn start(sink: fn(Raw)) {
    SINK.get_or_init(|| sink);
    OBSERVERS.fetch_add(1, Ordering::Relaxed);
}

pub fn stop() {
    OBSERVERS.fetch_sub(1, Ordering::Relaxed);
}

#[inline(always)]
pub fn report(raw: Raw) {
    if enabled() {
        send(raw);
    }
}

#[cold]
#[inline(never)]
fn send(raw: Raw) {
    if let Some(sink) = SINK.get() {
        sink(raw);
    }
}
