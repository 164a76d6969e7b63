//! What a function does with one example, as a list of the calls whose results depend on the example.
//!
//! A call is recorded at the level at which autograd records it: a primitive, or an op with a gradient of its own, whose
//! steps are kept beside it for a batch without a rule. What depends on the batch is known by storage, which views share.

use crate::autograd::grad_enabled;
use crate::error::Error;
use crate::observe::Raw;
use crate::op::tracer::{Change, Form, Read, Traced, Tracer};
use crate::op::{Args, Body, Generator, Op, Value, Vjp};
use crate::ops::movement::copy::CLONE;
use crate::tensor::Tensor;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// What random ops do in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Randomness {
    Error,
    Same,
    Different,
}

/// A function from outside the op table on a whole batch: its tensors, which of them are batched, and how many examples there
/// are, to results with the batch first.
pub type CustomRule = Rc<dyn Fn(&[Tensor], &[bool], usize) -> Result<Vec<Tensor>, Error>>;

/// What runs in a batch.
pub enum Recorded {
    Call(Box<Step>),
    Custom { rule: CustomRule, args: Vec<Tensor>, results: Vec<Tensor>, grad: bool },
}

impl Recorded {
    fn results(&self) -> &[Tensor] {
        match self {
            Recorded::Call(step) => &step.results,
            Recorded::Custom { results, .. } => results,
        }
    }
    /// The tensors that it reads or writes.
    fn reads(&self) -> Vec<&Tensor> {
        match self {
            Recorded::Call(s) => s.args.iter().flat_map(|v| v.tensors()).chain(&s.outs).collect(),
            Recorded::Custom { args, .. } => args.iter().collect(),
        }
    }
    pub fn writes(&self) -> bool {
        matches!(self, Recorded::Call(s) if s.form != Form::Functional || s.op.also_writes() != 0)
    }
}

/// One recorded call.
pub struct Step {
    pub op: &'static Op,
    pub args: Args<'static>,
    pub form: Form,
    pub outs: Vec<Tensor>,
    pub results: Vec<Tensor>,
    /// Whether gradients were recorded.
    pub grad: bool,
    /// The generator's state before a draw that must be the same for every example.
    pub drawn: Option<(u64, u64)>,
    /// The calls in the body of an op with a gradient of its own.
    pub inner: Vec<Step>,
    /// Memory that this call is the first to write examples to, as it was before.
    pub lifted: Option<(Tensor, Tensor)>,
}

type Drawn = (Arc<Generator>, (u64, u64));

/// A call that is running.
struct Frame {
    /// Neither recorded nor looked into: part of a primitive.
    hidden: bool,
    /// Recorded when it ends.
    unit: bool,
    /// The steps in its body, for a unit that decomposes.
    inner: Option<Vec<Step>>,
    args: Args<'static>,
    grad: bool,
    drawn: Option<(u64, u64)>,
    lifted: Option<(Tensor, Tensor)>,
}

pub struct Recorder {
    before: RefCell<Option<Rc<dyn Tracer>>>,
    randomness: Randomness,
    stack: RefCell<Vec<Frame>>,
    steps: RefCell<Vec<Recorded>>,
    /// The storages whose values depend on the example.
    batched: RefCell<HashSet<usize>>,
    /// The storages that calls made which do not.
    made: RefCell<HashMap<usize, Tensor>>,
    /// Passes of the engine that are running.
    passes: Cell<usize>,
    refused: RefCell<Option<Error>>,
    late: RefCell<Option<Error>>,
    /// Generators among the arguments, with their states before the call.
    generators: RefCell<Vec<Drawn>>,
}

fn storage(t: &Tensor) -> usize {
    t.storage().id()
}

impl Recorder {
    /// The caller keeps `examples` alive.
    pub fn new(examples: &[Tensor], randomness: Randomness) -> Recorder {
        Recorder {
            before: RefCell::new(None),
            randomness,
            stack: RefCell::default(),
            steps: RefCell::default(),
            batched: RefCell::new(examples.iter().map(storage).collect()),
            made: RefCell::default(),
            passes: Cell::new(0),
            refused: RefCell::default(),
            late: RefCell::default(),
            generators: RefCell::default(),
        }
    }
    /// Passes reports on to the tracer that was installed before: a recording inside another is seen by both.
    pub fn forward_to(&self, before: Option<Rc<dyn Tracer>>) {
        *self.before.borrow_mut() = before;
    }
    fn each_before(&self, f: impl FnOnce(&dyn Tracer)) {
        let before = self.before.borrow().clone();
        if let Some(t) = before {
            f(&*t);
        }
    }
    /// Whether the values of a tensor depend on the example.
    pub fn is_batched(&self, t: &Tensor) -> bool {
        self.batched.borrow().contains(&storage(t))
    }
    pub fn late_refusal(&self) -> Option<Error> {
        self.late.borrow_mut().take()
    }
    /// Puts generators that were arguments back to where they were.
    pub fn restore_generators(&self) {
        for (g, state) in self.generators.borrow().iter() {
            g.set_state(state.0, state.1);
        }
    }
    fn refuse(&self, e: Error) {
        self.refused.borrow_mut().get_or_insert(e);
    }

    /// Whether a call is recorded as it is; the calls in the body of another are.
    fn is_unit(traced: &Traced) -> bool {
        match &traced.op.body {
            Body::Decompose(_) => traced.form == Form::Functional && !matches!(traced.op.vjp, Vjp::Composite),
            Body::Opaque(_) => traced.form == Form::Functional,
            _ => true,
        }
    }

    /// The tensors that a call writes to.
    fn targets<'a>(traced: &'a Traced) -> impl Iterator<Item = &'a Tensor> {
        let written = traced.op.also_writes();
        let first = traced.form == Form::InPlace;
        let args = traced.args.iter().enumerate();
        let args = args.filter(move |(i, _)| written & (1 << i) != 0 || (first && *i == 0));
        args.flat_map(|(_, v)| v.tensors()).chain(traced.outs)
    }

    fn reads_batch(&self, traced: &Traced) -> bool {
        let reads = |v: &Value| v.any_tensor(|t| self.is_batched(t));
        traced.args.iter().any(reads) || traced.outs.iter().any(|t| self.is_batched(t))
    }

    /// Checks the writes of a call: what every example shares cannot hold values of one.
    fn writes(&self, traced: &Traced, frame: &mut Frame) {
        let values_differ = match traced.form {
            Form::InPlace => traced.args[1..].iter().any(|v| v.any_tensor(|t| self.is_batched(t))),
            _ => traced.args.iter().any(|v| v.any_tensor(|t| self.is_batched(t))),
        };
        let changes_layout = matches!(traced.op.body, Body::View(_));
        for t in Self::targets(traced).filter(|t| !self.is_batched(t)) {
            if !values_differ {
                if !changes_layout {
                    self.keep_old_values(t);
                }
                continue;
            }
            let own = self.passes.get() > 0 || self.made.borrow().contains_key(&storage(t)) && !t.requires_grad();
            if !own || traced.op.also_writes() != 0 && traced.form == Form::Functional {
                return self.refuse(shared_target(traced));
            }
            self.keep_old_values(t);
            match CLONE.call((t.detach().with_layout(whole(t)),)).ok() {
                Ok(image) => {
                    frame.lifted = Some((t.clone(), image));
                    self.batched.borrow_mut().insert(storage(t));
                }
                Err(e) => self.refuse(e),
            }
        }
    }

    /// A tensor that every example shares is about to change: recorded calls that read it get a copy of what it was.
    fn keep_old_values(&self, t: &Tensor) {
        let (id, mut copies) = (storage(t), HashMap::<usize, Tensor>::new());
        let mut steps = self.steps.borrow_mut();
        let calls = steps.iter_mut().filter_map(|s| match s {
            Recorded::Call(step) => Some(&mut step.args),
            Recorded::Custom { .. } => None,
        });
        for v in calls.flat_map(|args| args.iter_mut()) {
            let mut replace = |t: &mut Tensor| {
                if storage(t) != id {
                    return;
                }
                if let Some(copy) = copies.get(&t.id()) {
                    *t = copy.clone();
                } else if let Ok(copy) = CLONE.call((&*t,)).ok() {
                    copies.insert(t.id(), copy.clone());
                    *t = copy;
                }
            };
            match v {
                Value::Owned(t) => replace(t),
                Value::Tensors(list) => list.iter_mut().flatten().for_each(replace),
                _ => {}
            }
        }
    }

    /// Records a function from outside the op table, of which `run` is a call on the example: its own calls are not recorded.
    pub fn custom<E>(
        &self,
        rule: CustomRule,
        args: Vec<Tensor>,
        run: impl FnOnce() -> Result<Vec<Tensor>, E>,
    ) -> Result<Vec<Tensor>, E> {
        let frame =
            Frame { hidden: true, unit: false, inner: None, args: Args::new(), grad: true, drawn: None, lifted: None };
        self.stack.borrow_mut().push(frame);
        let results = run();
        self.stack.borrow_mut().pop();
        let results = results?;
        self.batched.borrow_mut().extend(results.iter().map(storage));
        let step = Recorded::Custom { rule, args, results: results.clone(), grad: grad_enabled() };
        self.steps.borrow_mut().push(step);
        Ok(results)
    }

    /// The steps that the results need, and those that write; the recording is empty afterwards.
    pub fn into_steps(&self, results: &[Tensor]) -> Vec<Recorded> {
        let steps = self.steps.take();
        let made: HashSet<usize> = steps.iter().flat_map(|s| s.results()).map(Tensor::id).collect();
        let (mut ids, mut storages) = (HashSet::new(), HashSet::new());
        let need = |t: &Tensor, ids: &mut HashSet<usize>, storages: &mut HashSet<usize>| {
            ids.insert(t.id());
            // A handle that no call made shows the memory of one that some call did.
            if !made.contains(&t.id()) {
                storages.insert(storage(t));
            }
        };
        results.iter().for_each(|t| need(t, &mut ids, &mut storages));
        let mut live: Vec<Recorded> = Vec::new();
        let mut rest = steps;
        while let Some(step) = rest.pop() {
            let wanted = |t: &Tensor| ids.contains(&t.id()) || storages.contains(&storage(t));
            rest.extend(step.body_if(wanted).into_iter().map(|s| Recorded::Call(Box::new(s))));
            if step.writes() || step.results().iter().any(wanted) {
                step.reads().into_iter().for_each(|t| need(t, &mut ids, &mut storages));
                live.push(step);
            }
        }
        live.reverse();
        live
    }
}

impl Recorded {
    /// The steps of a call of which something besides the results is wanted: the batch of a recording inside this one may
    /// read what the body made of tensors that only this one batches.
    fn body_if(&self, wanted: impl Fn(&Tensor) -> bool) -> Vec<Step> {
        let Recorded::Call(step) = self else { return Vec::new() };
        let own = |t: &Tensor| step.results.iter().any(|r| storage(r) == storage(t));
        let inside = step.inner.iter().flat_map(|s| &s.results).any(|t| !own(t) && wanted(t));
        if inside { step.inner.iter().map(Step::deep).collect() } else { Vec::new() }
    }
}

impl Step {
    /// The same call without its steps.
    pub fn shallow(&self) -> Step {
        Step {
            op: self.op,
            args: self.args.clone(),
            form: self.form,
            outs: self.outs.clone(),
            results: self.results.clone(),
            grad: self.grad,
            drawn: self.drawn,
            inner: Vec::new(),
            lifted: None,
        }
    }
    fn deep(&self) -> Step {
        let inner = self.inner.iter().map(Step::deep).collect();
        Step { inner, lifted: self.lifted.clone(), ..self.shallow() }
    }
}

/// All elements of a tensor's storage.
fn whole(t: &Tensor) -> crate::layout::Layout {
    crate::layout::Layout::contiguous(&[t.storage().bytes() / t.dtype().size()])
}

#[cold]
fn shared_target(traced: &Traced) -> Error {
    let base = traced.op.base().trim_end_matches('_');
    let name = if traced.form == Form::Out { format!("aten::{base}.out") } else { format!("aten::{base}_") };
    Error::runtime(format!(
        "vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more \
         elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. \
         Please try to use out-of-place operators instead of {name}."
    ))
}

#[cold]
fn random_in_error_mode() -> Error {
    Error::runtime(
        "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' \
         randomness flags on vmap or perform the randomness operation out of vmap",
    )
}

impl Tracer for Recorder {
    fn enter(&self, traced: &Traced) {
        let stack = self.stack.borrow();
        let hidden = stack.last().is_some_and(|f| f.hidden || f.unit && f.inner.is_none());
        let unit = !hidden && Self::is_unit(traced);
        drop(stack);
        let blank = |hidden: bool, inner: Option<Vec<Step>>| Frame {
            hidden,
            unit: unit && !hidden,
            inner,
            args: Args::new(),
            grad: grad_enabled(),
            drawn: None,
            lifted: None,
        };
        let mut frame = blank(hidden, (unit && matches!(traced.op.body, Body::Decompose(_))).then(Vec::new));
        if unit {
            for v in traced.args {
                if let Value::Generator(g) = v {
                    self.generators.borrow_mut().push((g.clone(), g.state()));
                }
            }
            // The copies that the recording makes are none of the function's calls.
            self.stack.borrow_mut().push(blank(true, None));
            self.writes(traced, &mut frame);
            self.stack.borrow_mut().pop();
            frame.args = traced.args.iter().map(|v| v.clone().into_owned()).collect();
        }
        // After those copies, which a recording outside sees as calls of their own; its own copies are not seen here.
        self.stack.borrow_mut().push(blank(true, None));
        self.each_before(|t| t.enter(traced));
        self.stack.borrow_mut().pop();
        self.stack.borrow_mut().push(frame);
    }

    fn exit(&self, traced: &Traced, result: Result<&[Tensor], &Error>) {
        self.each_before(|t| t.exit(traced, result));
        let Some(frame) = self.stack.borrow_mut().pop() else { return };
        let (true, Ok(results)) = (frame.unit, result) else { return };
        let random = frame.drawn.is_some();
        let differs = random && self.randomness == Randomness::Different;
        if !differs && !self.reads_batch(traced) {
            let known: HashSet<usize> = traced.args.iter().flat_map(|v| v.tensors()).map(storage).collect();
            let fresh = results.iter().filter(|t| !known.contains(&storage(t)) && t.view_info().is_none());
            self.made.borrow_mut().extend(fresh.map(|t| (storage(t), t.clone())));
            return;
        }
        if differs && Self::targets(traced).any(|t| !self.is_batched(t)) {
            return self.refuse(Error::runtime(
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same \
                 randomness. If this is necessary for your usage, please file an issue with functorch.",
            ));
        }
        self.batched.borrow_mut().extend(results.iter().map(storage));
        let step = Step {
            op: traced.op,
            args: frame.args,
            form: traced.form,
            outs: traced.outs.to_vec(),
            results: results.to_vec(),
            grad: frame.grad,
            drawn: frame.drawn.filter(|_| self.randomness == Randomness::Same),
            inner: frame.inner.unwrap_or_default(),
            lifted: frame.lifted,
        };
        let mut stack = self.stack.borrow_mut();
        match stack.iter_mut().rev().find_map(|f| f.inner.as_mut()) {
            Some(inner) => inner.push(step),
            None => self.steps.borrow_mut().push(Recorded::Call(Box::new(step))),
        }
    }

    fn refusal(&self) -> Option<Error> {
        let own = self.refused.borrow_mut().take();
        own.or_else(|| self.before.borrow().clone().and_then(|t| t.refusal()))
    }

    fn reads(&self, t: &Tensor, how: Read) -> Result<(), Error> {
        if self.is_batched(t) {
            return Err(Error::runtime(match how {
                Read::Values => {
                    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a \
                     Tensor, please try to rewrite what you're doing with other operations."
                }
                Read::Truth => {
                    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't \
                     support that yet, please use where() or another operation on tensors instead."
                }
            }));
        }
        self.before.borrow().clone().map_or(Ok(()), |b| b.reads(t, how))
    }

    fn backward_begins(&self) {
        self.each_before(|t| t.backward_begins());
        self.passes.set(self.passes.get() + 1);
    }
    fn backward_ends(&self) {
        self.each_before(|t| t.backward_ends());
        self.passes.set(self.passes.get() - 1);
    }
    fn range_begins(&self, name: &str) {
        self.each_before(|t| t.range_begins(name));
    }
    fn range_ends(&self) {
        self.each_before(|t| t.range_ends());
    }
    fn function_applied(&self, name: &str, inputs: &[Tensor], outputs: &[Tensor]) {
        self.each_before(|t| t.function_applied(name, inputs, outputs));
    }
    fn raw(&self, raw: Raw) {
        self.each_before(|t| t.raw(raw));
    }
    fn changed(&self, t: &Tensor, change: Change) {
        self.each_before(|b| b.changed(t, change));
    }
    fn drew(&self, seed: u64, offset: u64, count: u64) {
        self.each_before(|t| t.drew(seed, offset, count));
        if self.randomness == Randomness::Error {
            self.late.borrow_mut().get_or_insert_with(random_in_error_mode);
            self.refuse(random_in_error_mode());
        }
        for frame in self.stack.borrow_mut().iter_mut() {
            frame.drawn.get_or_insert((seed, offset));
        }
    }
}
