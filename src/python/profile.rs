//! A recording of the calls of one thread with their times, for `rustgrad.profiler`.

use super::error::{PyResult, raised};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rustgrad::error::Error;
use rustgrad::op::Value;
use rustgrad::op::tracer::{self, Form, Traced, Tracer};
use rustgrad::tensor::Tensor;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

/// Events kept at most: some 500 MB; those that follow are counted only.
const MOST: usize = 5_000_000;

/// A call, or a block that the program has named.
struct Event {
    name: String,
    start: u64,
    end: u64,
    /// The event around it.
    parent: Option<usize>,
    shapes: Vec<Vec<usize>>,
}

struct Recording {
    zero: Instant,
    with_shapes: bool,
    events: RefCell<Vec<Event>>,
    /// The events that have begun and not ended; `None` for one that was not kept.
    open: RefCell<Vec<Option<usize>>>,
    lost: Cell<usize>,
}

impl Recording {
    fn now(&self) -> u64 {
        self.zero.elapsed().as_nanos() as u64
    }
    fn begin(&self, name: impl FnOnce() -> String, shapes: Vec<Vec<usize>>) {
        let (mut events, mut open) = (self.events.borrow_mut(), self.open.borrow_mut());
        if events.len() >= MOST || events.try_reserve(1).is_err() {
            self.lost.set(self.lost.get() + 1);
            open.push(None);
            return;
        }
        let parent = open.iter().rev().find_map(|&i| i);
        open.push(Some(events.len()));
        events.push(Event { name: name(), start: self.now(), end: 0, parent, shapes });
    }
    fn end(&self) {
        let end = self.now();
        if let Some(Some(i)) = self.open.borrow_mut().pop() {
            self.events.borrow_mut()[i].end = end;
        }
    }
}

impl Tracer for Recording {
    fn enter(&self, call: &Traced) {
        let shapes = if self.with_shapes { call.args.iter().map(shape_of).collect() } else { Vec::new() };
        let mark = if call.form == Form::InPlace { "_" } else { "" };
        self.begin(|| format!("aten::{}{mark}", call.op.base()), shapes);
    }
    fn exit(&self, _call: &Traced, _result: Result<&[Tensor], &Error>) {
        self.end();
    }
    fn backward_begins(&self) {
        self.begin(|| "backward".into(), Vec::new());
    }
    fn backward_ends(&self) {
        self.end();
    }
}

fn shape_of(value: &Value) -> Vec<usize> {
    match value {
        Value::Tensor(t) => t.shape().to_vec(),
        Value::Owned(t) => t.shape().to_vec(),
        _ => Vec::new(),
    }
}

thread_local! {
    static RECORDING: RefCell<Option<Rc<Recording>>> = const { RefCell::new(None) };
}

/// Starts to record the calls of this thread; RuntimeError if a recording runs.
#[pyfunction]
pub fn _profile_start(with_shapes: bool) -> PyResult<()> {
    RECORDING.with(|slot| {
        let mut slot = slot.borrow_mut();
        if slot.is_some() {
            return Err(raised::<PyRuntimeError>("profile: another profiler runs in this thread. Stop it first."));
        }
        let made = Rc::new(Recording {
            zero: Instant::now(),
            with_shapes,
            events: RefCell::default(),
            open: RefCell::default(),
            lost: Cell::new(0),
        });
        if let Some(other) = tracer::install(Some(made.clone())) {
            tracer::install(Some(other));
            return Err(raised::<PyRuntimeError>("profile: the calls of this thread are being captured."));
        }
        *slot = Some(made);
        Ok(())
    })
}

/// Begins a named block in the recording; whether there is one.
#[pyfunction]
pub fn _profile_enter(name: String) -> bool {
    let running = RECORDING.with(|slot| slot.borrow().clone());
    running.inspect(|r| r.begin(|| name, Vec::new())).is_some()
}

/// Ends the block that `_profile_enter` began.
#[pyfunction]
pub fn _profile_exit() {
    RECORDING.with(|slot| slot.borrow().clone()).inspect(|r| r.end());
}

/// (name, start and end in nanoseconds, number of the event around it, shapes)
type Row = (String, u64, u64, Option<usize>, Vec<Vec<usize>>);

/// Ends the recording: its events in the order of their starts, and the number of those that were not kept.
#[pyfunction]
pub fn _profile_stop() -> PyResult<(Vec<Row>, usize)> {
    let Some(recording) = RECORDING.with(|slot| slot.borrow_mut().take()) else {
        return Err(raised::<PyRuntimeError>("profile: no profiler runs in this thread."));
    };
    tracer::install(None);
    let now = recording.now();
    let events = std::mem::take(&mut *recording.events.borrow_mut());
    let rows = events.into_iter().map(|e| (e.name, e.start, if e.end == 0 { now } else { e.end }, e.parent, e.shapes));
    Ok((rows.collect(), recording.lost.get()))
}
