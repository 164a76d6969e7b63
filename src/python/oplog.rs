//! The calls of a thread as text, for `checkpoint(debug=True)`, which shows them where a recomputation differs.

use pyo3::prelude::*;
use rustgrad::error::Error;
use rustgrad::observe::Raw;
use rustgrad::op::Op;
use rustgrad::op::tracer::{self, Change, Traced, Tracer};
use rustgrad::tensor::Tensor;
use std::cell::RefCell;
use std::rc::Rc;

struct Log {
    lines: RefCell<Vec<String>>,
    /// The calls that have begun: a call with `out=` or in place runs its own op inside, which is one line.
    open: RefCell<Vec<*const Op>>,
    /// The tracer that was installed before, which goes on seeing everything.
    before: Option<Rc<dyn Tracer>>,
}

impl Tracer for Log {
    fn enter(&self, call: &Traced) {
        self.open.borrow_mut().push(call.op);
        self.before.iter().for_each(|b| b.enter(call));
    }
    fn exit(&self, call: &Traced, result: Result<&[Tensor], &Error>) {
        let mut open = self.open.borrow_mut();
        open.pop();
        if let Ok(outputs) = result
            && !open.contains(&std::ptr::from_ref(call.op))
        {
            self.lines.borrow_mut().push(tracer::describe(call.op, call.args, outputs));
        }
        drop(open);
        self.before.iter().for_each(|b| b.exit(call, result));
    }
    fn backward_begins(&self) {
        self.before.iter().for_each(|b| b.backward_begins());
    }
    fn backward_ends(&self) {
        self.before.iter().for_each(|b| b.backward_ends());
    }
    fn function_applied(&self, name: &str, inputs: &[Tensor], outputs: &[Tensor]) {
        self.before.iter().for_each(|b| b.function_applied(name, inputs, outputs));
    }
    fn raw(&self, raw: Raw) {
        self.before.iter().for_each(|b| b.raw(raw));
    }
    fn changed(&self, t: &Tensor, change: Change) {
        self.before.iter().for_each(|b| b.changed(t, change));
    }
    fn draws(&self) {
        self.before.iter().for_each(|b| b.draws());
    }
}

thread_local! {
    /// Logs that have been started and not stopped, innermost last.
    static LOGS: RefCell<Vec<Rc<Log>>> = const { RefCell::new(Vec::new()) };
}

/// Starts to write down the calls of this thread.
#[pyfunction]
pub fn _start_op_log() {
    let log = Rc::new(Log { lines: RefCell::default(), open: RefCell::default(), before: tracer::install(None) });
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
