//! The hook through which `compile` and the profiler see calls; dispatch knows this trait and nothing else of them.

use super::Op;
use super::value::{Outputs, Value};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Sees each call of this thread after it ran.
pub trait Tracer {
    fn traced(&self, op: &'static Op, args: &[Value], outputs: &Outputs);
}

/// Tracers installed in any thread: zero keeps the hot path at one relaxed load.
static INSTALLED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static TRACER: RefCell<Option<Rc<dyn Tracer>>> = const { RefCell::new(None) };
}

/// Installs a tracer for this thread, or removes it; answers with the one before.
pub fn install(tracer: Option<Rc<dyn Tracer>>) -> Option<Rc<dyn Tracer>> {
    let is_some = tracer.is_some();
    let old = TRACER.with(|t| t.replace(tracer));
    if is_some && old.is_none() {
        INSTALLED.fetch_add(1, Ordering::Relaxed);
    } else if !is_some && old.is_some() {
        INSTALLED.fetch_sub(1, Ordering::Relaxed);
    }
    old
}

#[inline]
pub fn trace(op: &'static Op, args: &[Value], outputs: &Outputs) {
    if INSTALLED.load(Ordering::Relaxed) != 0 {
        let tracer = TRACER.with(|t| t.borrow().clone());
        if let Some(t) = tracer {
            t.traced(op, args, outputs);
        }
    }
}
