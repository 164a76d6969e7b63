//! The hook through which `compile` and the profiler observe calls; dispatch knows only this trait.
//!
//! Every call is reported when it begins and when it ends, failing calls too, so calls nest as they were made: a listener
//! takes either the outermost calls or the primitives that they are made of. What happens outside ops (the engine, custom
//! functions, metadata and gradients that are replaced) is reported between them.
//! `RUSTGRAD_DEBUG=1` (or more) prints each call behind the same check, so that it costs nothing when off.

use super::Op;
use super::value::Value;
use crate::error::Error;
use crate::observe::{self, Raw};
use crate::tensor::Tensor;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the results of a call go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// New tensors.
    Functional,
    /// The first argument.
    InPlace,
    /// The tensors of `out=`.
    Out,
}

/// A call as a tracer sees it.
#[derive(Clone, Copy)]
pub struct Traced<'a> {
    pub op: &'static Op,
    pub args: &'a [Value<'a>],
    pub form: Form,
    /// The tensors of `out=`; empty in the other forms.
    pub outs: &'a [Tensor],
}

/// What changes about a tensor without an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Its shape, and its memory where that was too small: `resize_`, an `out=` of another shape.
    Resized,
    /// The memory it shows: `.data = x`, `set_`.
    Data,
    /// `.grad`.
    Grad,
    /// Its bytes, by somebody outside who says so: its version was incremented.
    Written,
}

/// What the host reads the values of a tensor for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// A number: `item()`, `float(t)`, `tolist()`, an array.
    Values,
    /// A branch: `if t:`.
    Truth,
}

/// Sees what the thread does that it is installed in. Every method but the first two does nothing by default.
pub trait Tracer {
    fn enter(&self, call: &Traced);
    fn exit(&self, call: &Traced, result: Result<&[Tensor], &Error>);
    /// Refuses the call that has just begun or ended: it raises this.
    fn refusal(&self) -> Option<Error> {
        None
    }
    /// The host is about to read the values of a tensor outside a call.
    fn reads(&self, _t: &Tensor, _how: Read) -> Result<(), Error> {
        Ok(())
    }
    /// The body of a call reads the values of a tensor on the host.
    fn host_reads(&self, _t: &Tensor) {}
    /// A pass of the autograd engine; the calls of its formulas come before its end, and passes nest.
    fn backward_begins(&self) {}
    fn backward_ends(&self) {}
    /// The formula of a node of `op` begins: for the differentiable arguments that are `wanted`, one bit for each.
    fn formula_begins(&self, _node: usize, _op: &'static Op, _wanted: u64) {}
    fn formula_ends(&self) {}
    /// A named range, an optimizer's step for one: the calls in it come before its end, and ranges nest.
    fn range_begins(&self, _name: &str) {}
    fn range_ends(&self) {}
    /// A `Function` written in Python was applied: its forward, whose calls came before, made `outputs` of `inputs`.
    fn function_applied(&self, _name: &str, _inputs: &[Tensor], _outputs: &[Tensor]) {}
    /// Memory was allocated or addressed: by the kernel of the innermost call, or outside an op.
    fn raw(&self, _raw: Raw) {}
    fn changed(&self, _t: &Tensor, _change: Change) {}
    /// Random numbers are about to be drawn.
    fn draws(&self) {}
}

static PRINTING: AtomicBool = AtomicBool::new(false);

/// If `RUSTGRAD_DEBUG` is set, prints every call from now on; called when the module is loaded.
pub fn print_if_asked() {
    let level = std::env::var("RUSTGRAD_DEBUG").ok().and_then(|v| v.parse::<u8>().ok()).unwrap_or(0);
    if level > 0 && !PRINTING.swap(true, Ordering::Relaxed) {
        observe::start(raw);
    }
}

/// `add(f32[2,3] gpu:0, 1, alpha=2) -> f32[2,3] gpu:0`; arguments equal to their defaults are omitted.
pub fn describe(op: &'static Op, args: &[Value], outputs: &[Tensor]) -> String {
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

/// An argument as `describe` prints it.
pub fn show(v: &Value) -> String {
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
        observe::start(raw);
    } else if !is_some && old.is_some() {
        observe::stop();
    }
    old
}

/// Whether a tracer may be installed in this thread: one relaxed load.
#[inline(always)]
pub fn enabled() -> bool {
    observe::enabled()
}

fn current() -> Option<Rc<dyn Tracer>> {
    TRACER.try_with(|t| t.try_borrow().ok().and_then(|t| t.clone())).ok().flatten()
}

/// Runs a call between the reports of its begin and its end. `outputs` shows the results of a call that succeeded.
#[cold]
#[inline(never)]
pub fn call<R>(
    call: &Traced,
    run: impl FnOnce() -> Result<R, Error>,
    outputs: fn(&R) -> &[Tensor],
) -> Result<R, Error> {
    let tracer = current();
    if let Some(t) = &tracer {
        t.enter(call);
        if let Some(e) = t.refusal() {
            t.exit(call, Err(&e));
            return Err(e);
        }
    }
    let result = run();
    let shown = result.as_ref().map(outputs);
    if let (true, Ok(outputs)) = (PRINTING.load(Ordering::Relaxed), &shown) {
        eprintln!("op: {}", describe(call.op, call.args, outputs));
    }
    if let Some(t) = &tracer {
        t.exit(call, shown);
        if let Some(e) = t.refusal() {
            return Err(e);
        }
    }
    result
}

/// Asks the tracer of this thread, if there is one, whether the host may read the values of a tensor.
#[inline]
pub fn may_read(t: &Tensor, how: Read) -> Result<(), Error> {
    if !enabled() {
        return Ok(());
    }
    current().map_or(Ok(()), |tracer| tracer.reads(t, how))
}

/// Reports to the tracer of this thread, if there is one.
#[inline]
pub fn notify(event: impl FnOnce(&dyn Tracer)) {
    if enabled() {
        notify_current(event);
    }
}

#[cold]
#[inline(never)]
fn notify_current(event: impl FnOnce(&dyn Tracer)) {
    if let Some(t) = current() {
        event(&*t);
    }
}

fn raw(raw: Raw) {
    notify_current(|t| t.raw(raw));
}

/// Reports that a backward pass begins, and that it ends when dropped.
pub struct BackwardGuard(());

impl BackwardGuard {
    #[allow(clippy::new_without_default)]
    pub fn new() -> BackwardGuard {
        notify(|t| t.backward_begins());
        BackwardGuard(())
    }
}
impl Drop for BackwardGuard {
    fn drop(&mut self) {
        notify(|t| t.backward_ends());
    }
}

/// Reports that a formula begins, and that it ends when dropped.
pub struct FormulaGuard(());

impl FormulaGuard {
    #[inline]
    pub fn new(node: usize, op: &'static Op, wanted: u64) -> FormulaGuard {
        notify(|t| t.formula_begins(node, op, wanted));
        FormulaGuard(())
    }
}
impl Drop for FormulaGuard {
    #[inline]
    fn drop(&mut self) {
        notify(|t| t.formula_ends());
    }
}

/// Reports that a named range begins, and that it ends when dropped.
pub struct RangeGuard(());

impl RangeGuard {
    pub fn new(name: &str) -> RangeGuard {
        notify(|t| t.range_begins(name));
        RangeGuard(())
    }
}
impl Drop for RangeGuard {
    fn drop(&mut self) {
        notify(|t| t.range_ends());
    }
}
