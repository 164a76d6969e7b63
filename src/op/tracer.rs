//! The hook through which `compile` and the profiler observe calls; dispatch knows only this trait.
//!
//! `RUSTGRAD_DEBUG=1` (or more) prints each call behind the same check, so that it costs nothing when off.

use super::Op;
use super::value::{Outputs, Value};
use crate::tensor::Tensor;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Called around each call of this thread.
pub trait Tracer {
    fn begun(&self, _op: &'static Op, _args: &[Value]) {}
    /// The call has succeeded.
    fn traced(&self, op: &'static Op, args: &[Value], outputs: &Outputs);
    /// The last call that has begun is over, with or without success.
    fn ended(&self) {}
}

/// A call that a tracer may watch, until this is dropped.
pub struct Watch(Option<Rc<dyn Tracer>>);

impl Drop for Watch {
    #[inline]
    fn drop(&mut self) {
        if let Some(tracer) = &self.0 {
            tracer.ended();
        }
    }
}

/// Tells this thread's tracer that a call begins.
#[inline]
pub fn watch(op: &'static Op, args: &[Value]) -> Watch {
    if INSTALLED.load(Ordering::Relaxed) == 0 { Watch(None) } else { begin(op, args) }
}

#[cold]
fn begin(op: &'static Op, args: &[Value]) -> Watch {
    let tracer = TRACER.with(|t| t.borrow().clone());
    tracer.iter().for_each(|t| t.begun(op, args));
    Watch(tracer)
}

/// Tracers installed in any thread: zero keeps the hot path at one relaxed load.
static INSTALLED: AtomicUsize = AtomicUsize::new(0);

static PRINTING: AtomicBool = AtomicBool::new(false);

/// If `RUSTGRAD_DEBUG` is set, prints every call from now on; called when the module is loaded.
pub fn print_if_asked() {
    let level = std::env::var("RUSTGRAD_DEBUG").ok().and_then(|v| v.parse::<u8>().ok()).unwrap_or(0);
    if level > 0 && !PRINTING.swap(true, Ordering::Relaxed) {
        INSTALLED.fetch_add(1, Ordering::Relaxed);
    }
}

/// `add(f32[2,3] gpu:0, 1, alpha=2) -> f32[2,3] gpu:0`; arguments equal to their defaults are omitted.
fn describe(op: &'static Op, args: &[Value], outputs: &Outputs) -> String {
    let sig = &op.sig;
    let given = sig.params().iter().zip(args).enumerate();
    let given = given.filter(|(_, (p, v))| p.default_value(sig).as_ref().map(show) != Some(show(v)));
    let texts = given.map(|(i, (p, v))| match p.default.is_some() && i > 0 {
        true => format!("{}={}", p.name(sig), show(v)),
        false => show(v),
    });
    let results: Vec<String> = outputs.iter().map(tensor).collect();
    format!("{}({}) -> {}", op.name(), texts.collect::<Vec<_>>().join(", "), results.join(", "))
}

fn tensor(t: &Tensor) -> String {
    let sizes: Vec<String> = t.shape().iter().map(|d| d.to_string()).collect();
    format!("{}[{}] {}", t.dtype().short(), sizes.join(","), t.device())
}

fn show(v: &Value) -> String {
    match v {
        Value::Tensor(t) => tensor(t),
        Value::Owned(t) => tensor(t),
        Value::Tensors(list) => {
            let all: Vec<String> = list.iter().map(|t| t.as_ref().map_or("None".into(), tensor)).collect();
            format!("[{}]", all.join(", "))
        }
        Value::None => "None".into(),
        Value::Scalar(s) => s.to_string(),
        Value::Ints(v) => format!("{:?}", v.as_slice()),
        Value::Scalars(v) => format!("{v:?}"),
        Value::DType(d) => d.name().into(),
        Value::Device(d) => d.to_string(),
        Value::Str(s) => format!("'{s}'"),
        Value::Choice(c) => format!("'{}'", c.name),
        Value::Format(f) => f.name().into(),
        Value::Generator(_) => "generator".into(),
    }
}

thread_local! {
    static TRACER: RefCell<Option<Rc<dyn Tracer>>> = const { RefCell::new(None) };
}

/// Installs a tracer for this thread, or removes it; returns the previous one.
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
        if PRINTING.load(Ordering::Relaxed) {
            eprintln!("op: {}", describe(op, args, outputs));
        }
        let tracer = TRACER.with(|t| t.borrow().clone());
        if let Some(t) = tracer {
            t.traced(op, args, outputs);
        }
    }
}
