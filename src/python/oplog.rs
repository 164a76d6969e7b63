//! The calls of a thread as text, for `checkpoint(debug=True)`, which shows them where a recomputation differs.

use crate::op::Op;
use crate::op::tracer::{self, Tracer};
use crate::op::value::{Outputs, Value};
use pyo3::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

struct Log {
    lines: RefCell<Vec<String>>,
    /// The tracer that was installed before, which goes on.
    before: Option<Rc<dyn Tracer>>,
}

impl Tracer for Log {
    fn traced(&self, op: &'static Op, args: &[Value], outputs: &Outputs) {
        self.lines.borrow_mut().push(tracer::describe(op, args, outputs));
        if let Some(before) = &self.before {
            before.traced(op, args, outputs);
        }
    }
}

thread_local! {
    /// Logs that have been started and not stopped, innermost last.
    static LOGS: RefCell<Vec<Rc<Log>>> = const { RefCell::new(Vec::new()) };
}

/// Starts to write down the calls of this thread.
#[pyfunction]
pub fn _start_op_log() {
    let log = Rc::new(Log { lines: RefCell::default(), before: tracer::install(None) });
    tracer::install(Some(log.clone()));
    LOGS.with_borrow_mut(|logs| logs.push(log));
}

/// Ends the innermost log, and returns a line for each call: `mul(f32[2] cpu, 2) -> f32[2] cpu`.
#[pyfunction]
pub fn _stop_op_log() -> Vec<String> {
    let Some(log) = LOGS.with_borrow_mut(Vec::pop) else { return Vec::new() };
    tracer::install(log.before.clone());
    log.lines.take()
}
