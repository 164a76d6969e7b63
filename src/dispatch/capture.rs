//! A recording of what a thread computes, as a list of primitives that can be run again on other tensors.
//!
//! It proves two things of the op table: what a primitive infers is what it makes, and decomposing ops are nothing but
//! the primitives that they call. What breaks either is kept as a line of text in `problems`.

use super::{call, call_inplace, call_out, infer};
use crate::error::{Error, Result};
use crate::observe::Raw;
use crate::op::tracer::{Form, Traced, Tracer};
use crate::op::{Args, Op, Spec, Specs, Value};
use crate::tensor::Tensor;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// A call of a primitive. Its tensors are kept alive, so that their identities stay theirs.
struct Step {
    op: &'static Op,
    args: Args<'static>,
    form: Form,
    outs: Vec<Tensor>,
    results: Vec<Tensor>,
}

/// A call that is running.
struct Frame {
    op: &'static Op,
    /// Part of a primitive: that primitive itself, or a call in its body.
    inner: bool,
    /// Of a primitive that makes new tensors, what it infers.
    inferred: Option<Result<Specs>>,
}

#[derive(Default)]
pub struct Capture {
    stack: RefCell<Vec<Frame>>,
    steps: RefCell<Vec<Step>>,
    problems: RefCell<Vec<String>>,
    inferring: Cell<Option<&'static Op>>,
    ranges: RefCell<Vec<Range>>,
    /// The ranges that have not ended, by position in `ranges`.
    open: RefCell<Vec<usize>>,
}

/// A named range: the numbers of its first step, and of the first one after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    pub name: String,
    pub start: usize,
    pub end: usize,
}

impl Capture {
    /// The names of the primitives in the order in which they were called.
    pub fn steps(&self) -> Vec<&'static str> {
        self.steps.borrow().iter().map(|s| s.op.name()).collect()
    }
    /// The named ranges in the order in which they began.
    pub fn ranges(&self) -> Vec<Range> {
        self.ranges.borrow().clone()
    }
    pub fn problems(&self) -> Vec<String> {
        self.problems.borrow().clone()
    }
    fn problem(&self, text: String) {
        let mut problems = self.problems.borrow_mut();
        if !problems.contains(&text) {
            problems.push(text);
        }
    }

    /// Runs the steps again with tensors in the place of others, and returns what then stands for `wanted`.
    ///
    /// Errors: what a step raises; RuntimeError for a tensor that neither `given` nor a step before accounts for.
    pub fn replay(&self, given: &[(Tensor, Tensor)], wanted: &[Tensor]) -> Result<Vec<Tensor>> {
        let mut now: HashMap<usize, Tensor> = given.iter().map(|(old, new)| (old.id(), new.clone())).collect();
        for step in self.steps.borrow().iter() {
            let find = |t: &Tensor| {
                let unknown = || Error::runtime(format!("{} reads a tensor that no step made: {t:?}", step.op.name()));
                now.get(&t.id()).cloned().ok_or_else(unknown)
            };
            let args: Args = step.args.iter().map(|v| replaced(v, &find)).collect::<Result<_>>()?;
            let results: Vec<Tensor> = match step.form {
                Form::Functional => call(step.op, &args)?.into_vec(),
                Form::InPlace => vec![call_inplace(step.op, &args)?],
                Form::Out => {
                    let outs = step.outs.iter().map(&find).collect::<Result<Vec<_>>>()?;
                    call_out(step.op, &args, &outs)?;
                    outs
                }
            };
            for (old, new) in step.results.iter().zip(results) {
                now.insert(old.id(), new);
            }
        }
        let unknown = || Error::runtime("a result that no step made");
        wanted.iter().map(|t| now.get(&t.id()).cloned().ok_or_else(unknown)).collect()
    }

    /// What a primitive infers, which must not run anything.
    fn inferred(&self, traced: &Traced) -> Option<Result<Specs>> {
        if traced.form != Form::Functional || traced.op.reads_host() {
            return None;
        }
        let before = self.inferring.replace(Some(traced.op));
        let specs = infer(traced.op, traced.args);
        self.inferring.set(before);
        Some(specs)
    }
}

fn replaced(v: &Value<'static>, find: &impl Fn(&Tensor) -> Result<Tensor>) -> Result<Value<'static>> {
    Ok(match v {
        Value::Owned(t) => Value::Owned(find(t)?),
        Value::Tensors(list) => {
            let new = list.iter().map(|t| t.as_ref().map(find).transpose());
            Value::Tensors(new.collect::<Result<_>>()?)
        }
        other => other.clone(),
    })
}

impl Tracer for Capture {
    fn enter(&self, traced: &Traced) {
        if let Some(op) = self.inferring.get() {
            self.problem(format!("{} calls {} to infer", op.name(), traced.op.name()));
        }
        let nested = self.stack.borrow().last().is_some_and(|f| f.inner);
        let leaf = !nested && self.inferring.get().is_none() && traced.op.is_primitive();
        let inferred = if leaf { self.inferred(traced) } else { None };
        self.stack.borrow_mut().push(Frame { op: traced.op, inner: nested || leaf, inferred });
    }
    fn exit(&self, traced: &Traced, result: std::result::Result<&[Tensor], &Error>) {
        let frame = self.stack.borrow_mut().pop();
        let nested = self.stack.borrow().last().is_some_and(|f| f.inner);
        let (Some(frame), Ok(results), false) = (frame, result, nested) else { return };
        if !frame.inner {
            return;
        }
        match frame.inferred {
            Some(Err(e)) => self.problem(format!("{} does not infer: {e}", traced.op.name())),
            Some(Ok(specs)) if !specs.iter().map(described).eq(results.iter().map(|t| described(&spec_of(t)))) => {
                let made: Vec<String> = results.iter().map(|t| described(&spec_of(t))).collect();
                let said: Vec<String> = specs.iter().map(described).collect();
                self.problem(format!("{} infers {}, makes {}", traced.op.name(), said.join(", "), made.join(", ")));
            }
            _ => {}
        }
        self.steps.borrow_mut().push(Step {
            op: traced.op,
            args: traced.args.iter().map(|v| v.clone().into_owned()).collect(),
            form: traced.form,
            outs: traced.outs.to_vec(),
            results: results.to_vec(),
        });
    }
    fn range_begins(&self, name: &str) {
        let (start, mut ranges) = (self.steps.borrow().len(), self.ranges.borrow_mut());
        self.open.borrow_mut().push(ranges.len());
        ranges.push(Range { name: name.to_string(), start, end: start });
    }
    fn range_ends(&self) {
        if let Some(i) = self.open.borrow_mut().pop() {
            self.ranges.borrow_mut()[i].end = self.steps.borrow().len();
        }
    }
    fn raw(&self, raw: Raw) {
        if let Some(op) = self.inferring.get() {
            self.problem(format!("{} touches memory to infer: {raw:?}", op.name()));
        } else if let Some(f) = self.stack.borrow().last().filter(|f| !f.inner) {
            self.problem(format!("{} decomposes, but touches memory: {raw:?}", f.op.name()));
        }
    }
}

fn spec_of(t: &Tensor) -> Spec {
    Spec { layout: t.layout().clone(), dtype: t.dtype(), device: t.device() }
}

/// `f32[2, 3] strides [3, 1] + 0 on cpu`.
fn described(s: &Spec) -> String {
    let l = &s.layout;
    let (shape, strides) = (l.shape.as_slice(), l.strides.as_slice());
    format!("{}{shape:?} strides {strides:?} + {} on {}", s.dtype.short(), l.offset, s.device)
}
