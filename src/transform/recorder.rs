//! What a function does with one example, as a list of the calls whose results depend on the example.
//!
//! A call is recorded at the level at which autograd records it: a primitive, or an op with a gradient of its own, whose
//! steps are kept beside it for a batch without a rule. What depends on the batch is known by storage, which views share.

use super::recorded::{Custom, CustomRule, Drawn, Recorded, States, Step, drawn_from, each_in, storage, targets};
use crate::autograd::forward::{self, Visible};
use crate::autograd::node::refuse_gradient;
use crate::autograd::{GradGuard, grad_enabled};
use crate::error::Error;
use crate::observe::Raw;
use crate::op::generator::DefaultStates;
use crate::op::tracer::{Change, Form, Read, Traced, Tracer};
use crate::op::{Args, Body, Call, Value, Vjp};
use crate::ops::movement::copy::CLONE;
use crate::ops::view::as_strided::AS_STRIDED;
use crate::ops::view::reshape::ALIAS;
use crate::tensor::Tensor;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// What random ops do in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Randomness {
    Error,
    Same,
    Different,
}

/// A call that is running.
struct Frame {
    /// Neither recorded nor looked into: part of a primitive.
    hidden: bool,
    /// Recorded when it ends.
    unit: bool,
    /// The steps in its body, for a unit that is made of calls.
    inner: Option<Vec<Recorded>>,
    /// Whether the steps hold for this example alone: the host read values of it, or they write to an argument.
    bound: bool,
    /// A function from outside the op table.
    custom: bool,
    args: Args<'static>,
    grad: bool,
    drawn: Option<DefaultStates>,
    /// Generators among the arguments, with their states before the call.
    given: Vec<Drawn>,
    lifted: Option<(Tensor, Tensor)>,
}

impl Frame {
    fn new(hidden: bool, unit: bool, inner: Option<Vec<Recorded>>) -> Frame {
        let (args, grad) = (Args::new(), grad_enabled());
        Frame {
            hidden,
            unit,
            inner,
            bound: false,
            custom: false,
            args,
            grad,
            drawn: None,
            given: Vec::new(),
            lifted: None,
        }
    }
    /// Whether the calls inside are looked at.
    fn is_open(&self) -> bool {
        !self.hidden && (!self.unit || self.inner.is_some())
    }
}

/// Storages by what their values depend on.
pub struct Origins {
    /// On the example.
    pub batched: HashSet<usize>,
    /// Those of tensors that all examples share, of which each shows another part.
    pub shared: HashSet<usize>,
    /// On values of it that the host read.
    pub lost: HashSet<usize>,
}

pub struct Recorder {
    before: RefCell<Option<Rc<dyn Tracer>>>,
    randomness: Randomness,
    stack: RefCell<Vec<Frame>>,
    steps: RefCell<Vec<Recorded>>,
    /// The storages whose values depend on the example.
    batched: RefCell<HashSet<usize>>,
    /// Those of which each example shows another part of what all share.
    shared: RefCell<HashSet<usize>>,
    /// The storages that calls made which do not.
    made: RefCell<HashMap<usize, Tensor>>,
    /// What was made of values that the host read of this example: kept, so that a later read of it is known and refused.
    lost: RefCell<Vec<Tensor>>,
    /// Handles whose layout a call changed, with others that stand for what they were.
    reshaped: RefCell<Vec<(Tensor, Tensor)>>,
    /// Passes of the engine that are running.
    passes: Cell<usize>,
    refused: RefCell<Option<Error>>,
    late: RefCell<Option<Error>>,
    /// Generators among the arguments, with their states before the call.
    generators: RefCell<Vec<Drawn>>,
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
            shared: RefCell::default(),
            made: RefCell::default(),
            lost: RefCell::default(),
            reshaped: RefCell::default(),
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
    pub fn origins(&self) -> Origins {
        Origins {
            batched: self.batched.borrow().clone(),
            shared: self.shared.borrow().clone(),
            lost: self.lost.borrow().iter().map(storage).collect(),
        }
    }
    pub fn late_refusal(&self) -> Option<Error> {
        self.late.borrow_mut().take()
    }
    /// Puts generators that were arguments back to where they were.
    pub fn restore_generators(&self) {
        for (g, state) in self.generators.borrow().iter() {
            g.set_state(state.clone());
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
        if values_differ && moved(traced).any(|t| !self.is_batched(t)) {
            return self.refuse(shared_statistics());
        }
        let changes_layout = matches!(traced.op.body, Body::View(_));
        for t in targets(traced.op, traced.form, traced.args, traced.outs).filter(|t| !self.is_batched(t)) {
            if !values_differ {
                if !changes_layout {
                    self.keep_old_values(t);
                }
                continue;
            }
            let own = self.passes.get() > 0 || self.made.borrow().contains_key(&storage(t));
            if !own || traced.op.also_writes() != 0 && traced.form == Form::Functional {
                return self.refuse(shared_target(traced));
            }
            self.keep_old_values(t);
            match image(t) {
                Ok(image) => {
                    frame.lifted = Some((t.clone(), image));
                    self.batched.borrow_mut().insert(storage(t));
                }
                Err(e) => self.refuse(e),
            }
        }
    }

    /// Memory that one draw for all examples has filled, and that gets one for each: what it is, to be filled again.
    fn lift_drawn(&self, traced: &Traced) -> Result<Option<(Tensor, Tensor)>, Error> {
        let mut shared = targets(traced.op, traced.form, traced.args, traced.outs).filter(|t| !self.is_batched(t));
        let Some(t) = shared.next() else { return Ok(None) };
        if shared.next().is_some() || !self.made.borrow().contains_key(&storage(t)) {
            return Err(Error::runtime(
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same \
                 randomness. If this is necessary for your usage, please file an issue with functorch.",
            ));
        }
        self.stack.borrow_mut().push(Frame::new(true, false, None));
        let image = image(t);
        self.stack.borrow_mut().pop();
        self.batched.borrow_mut().insert(storage(t));
        Ok(Some((t.clone(), image?)))
    }

    /// What stands for a tensor as it was before calls changed its own layout (`t_`).
    pub fn first_form(&self, t: &Tensor) -> Tensor {
        let reshaped = self.reshaped.borrow();
        reshaped.iter().find(|(now, _)| now.same(t)).map_or_else(|| t.clone(), |(_, before)| before.clone())
    }

    /// The layout of `t` itself is about to change: in the calls before and in this one, another handle stands for it.
    fn keep_old_layout(&self, t: &Tensor, frame: &mut Frame) -> Result<(), Error> {
        let before = match self.is_batched(t) {
            true => t.with_layout(t.layout().clone()),
            false => ALIAS.call((t,)).ok()?,
        };
        let mut replace = |x: &mut Tensor| {
            if x.same(t) {
                *x = before.clone();
            }
        };
        each_in(&mut frame.args, &mut replace);
        self.each_recorded(|s| {
            s.each_argument(&mut replace);
            s.each_made(&mut replace);
        });
        self.reshaped.borrow_mut().push((t.clone(), before.clone()));
        Ok(())
    }

    fn each_recorded(&self, mut f: impl FnMut(&mut Recorded)) {
        self.steps.borrow_mut().iter_mut().for_each(&mut f);
        for frame in self.stack.borrow_mut().iter_mut() {
            frame.inner.iter_mut().flatten().for_each(&mut f);
        }
    }

    /// A tensor that every example shares is about to change: recorded calls that read it get a copy of what it was.
    fn keep_old_values(&self, t: &Tensor) {
        let (id, mut copies) = (storage(t), HashMap::<usize, Tensor>::new());
        // The calls before had its gradient, whatever holds for the write.
        let _recording = GradGuard::new(true);
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
        self.each_recorded(|s| s.each_argument(&mut replace));
    }

    /// Records a function from outside the op table, of which `run` is a call on the example. Returns its results and what it
    /// saved for its gradient.
    pub fn custom<E>(
        &self,
        rule: CustomRule,
        args: Vec<Tensor>,
        run: impl FnOnce() -> Result<(Vec<Tensor>, Vec<Tensor>), E>,
    ) -> Result<(), E> {
        self.stack.borrow_mut().push(Frame { custom: true, ..Frame::new(false, false, Some(Vec::new())) });
        let made = run();
        let frame = self.stack.borrow_mut().pop();
        let (results, saved) = made?;
        let mut inner = frame.map_or((Vec::new(), true), |f| (f.inner.unwrap_or_default(), f.bound));
        let writes = |s: &Recorded| s.targets().any(|t| args.iter().any(|a| storage(a) == storage(t)));
        if inner.0.iter().any(writes) {
            inner.1 = true;
        }
        self.batched.borrow_mut().extend(results.iter().map(storage));
        if inner.1 {
            // What it made of values that it read on the host is not known for other examples.
            let own = |t: &&Tensor| !args.iter().any(|a| storage(a) == storage(t));
            self.batched.borrow_mut().extend(saved.iter().filter(own).map(storage));
            self.lost.borrow_mut().extend(inner.0.drain(..).flat_map(Recorded::into_results).chain(saved));
        }
        let step = Custom { rule, args, results, grad: grad_enabled(), inner: inner.0 };
        self.push(Recorded::Custom(Rc::new(step)));
        Ok(())
    }

    fn push(&self, step: Recorded) {
        let mut stack = self.stack.borrow_mut();
        match stack.iter_mut().rev().find_map(|f| f.inner.as_mut()) {
            Some(inner) => inner.push(step),
            None => self.steps.borrow_mut().push(step),
        }
    }

    /// The steps that the results need, and those that write; the recording is empty afterwards.
    pub fn into_steps(&self, results: &[Tensor]) -> Vec<Recorded> {
        let steps = self.steps.take();
        let mut made = HashSet::new();
        steps.iter().for_each(|s| s.each_result(&mut |t| _ = made.insert(t.id())));
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
            let inside = step.is_wanted_inside(&ids, &storages);
            if inside {
                rest.extend(step.inner().iter().cloned());
                if step.is_its_steps() {
                    let mut batched = self.batched.borrow_mut();
                    step.shared_results().for_each(|t| _ = batched.remove(&storage(t)));
                    continue;
                }
            }
            let wanted = |t: &Tensor| ids.contains(&t.id()) || storages.contains(&storage(t));
            if step.writes() || step.results().iter().any(wanted) {
                step.reads().into_iter().for_each(|t| need(t, &mut ids, &mut storages));
                live.push(step);
            }
        }
        live.reverse();
        live
    }
}

/// A copy of all elements of a tensor's storage, with the derivatives of what made them.
fn image(t: &Tensor) -> Result<Tensor, Error> {
    // The values of a dual are written while no level is seen.
    let _all = Visible::only(forward::open());
    if !forward::is_differentiated(t) {
        return CLONE.call((t.detach().with_layout(whole(t)),)).ok();
    }
    let base = t.view_info().map_or(t, |view| &view.base);
    if base.dtype() != t.dtype() {
        return Err(Error::runtime(
            "vmap: memory that is one for all examples, and has a gradient, is written to as another dtype; expected its own. \
             Clone it first.",
        ));
    }
    let size = whole(t).shape[0] as i64;
    CLONE.call((AS_STRIDED.call((base, [size], [1], 0)),)).ok()
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

/// The running statistics that a call moves.
fn moved<'a>(traced: &Traced<'a>) -> impl Iterator<Item = &'a Tensor> {
    let bits = (traced.op.moves)(&Call { op: traced.op, args: traced.args });
    traced.args.iter().enumerate().filter(move |(i, _)| bits & (1 << i) != 0).flat_map(|(_, v)| v.tensors())
}

#[cold]
fn gradient_of_one(traced: &Traced) -> String {
    format!(
        "vmap: a gradient inside of the function passes by {}, which has used values of one example that were read on the host; \
         expected a call whose lengths, indices and statistics are no batch. Differentiate the batch: grad(vmap(f)).",
        traced.op.public()
    )
}

#[cold]
fn shared_statistics() -> Error {
    Error::runtime(
        "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, \
         were not batched. Set `track_running_stats` to False, use evaluation mode, or give each example statistics of its \
         own.",
    )
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
        let hidden = self.stack.borrow().last().is_some_and(|f| !f.is_open());
        let unit = !hidden && Self::is_unit(traced);
        let made_of_calls = match traced.op.body {
            Body::Decompose(_) => true,
            // Autograd records its steps, so a gradient may read what they make.
            Body::Opaque(_) => matches!(traced.op.vjp, Vjp::Composite),
            _ => false,
        };
        let mut frame = Frame::new(hidden, unit, (unit && made_of_calls).then(Vec::new));
        frame.bound = matches!(traced.op.body, Body::Opaque(_)) && moved(traced).next().is_some();
        if unit {
            frame.given = drawn_from(traced.args);
            self.generators.borrow_mut().extend(frame.given.iter().cloned());
            // The copies that the recording makes are none of the function's calls.
            self.stack.borrow_mut().push(Frame::new(true, false, None));
            self.writes(traced, &mut frame);
            frame.args = traced.args.iter().map(|v| v.clone().into_owned()).collect();
            if let (Form::InPlace, Body::View(_), Some(t)) = (traced.form, &traced.op.body, traced.args[0].as_tensor())
            {
                self.keep_old_layout(t, &mut frame).unwrap_or_else(|e| self.refuse(e));
            }
            self.stack.borrow_mut().pop();
        }
        // After those copies, which a recording outside sees as calls of their own; its own copies are not seen here.
        self.stack.borrow_mut().push(Frame::new(true, false, None));
        self.each_before(|t| t.enter(traced));
        self.stack.borrow_mut().pop();
        self.stack.borrow_mut().push(frame);
    }

    fn exit(&self, traced: &Traced, result: Result<&[Tensor], &Error>) {
        self.each_before(|t| t.exit(traced, result));
        let Some(mut frame) = self.stack.borrow_mut().pop() else { return };
        let (true, Ok(results)) = (frame.unit, result) else { return };
        let random = frame.drawn.is_some();
        let differs = random && self.randomness == Randomness::Different;
        if !differs && !self.reads_batch(traced) {
            let known: HashSet<usize> = traced.args.iter().flat_map(|v| v.tensors()).map(storage).collect();
            let fresh = results.iter().filter(|t| !known.contains(&storage(t)) && t.view_info().is_none());
            self.made.borrow_mut().extend(fresh.map(|t| (storage(t), t.clone())));
            return;
        }
        if differs {
            match self.lift_drawn(traced) {
                Ok(None) => {}
                Ok(lifted) => frame.lifted = lifted,
                Err(e) => return self.refuse(e),
            }
        }
        if traced.form == Form::Functional {
            let args: HashSet<usize> = traced.args.iter().flat_map(|v| v.tensors()).map(storage).collect();
            let parts = results.iter().filter(|t| !self.is_batched(t)).map(storage);
            self.shared.borrow_mut().extend(parts.filter(|id| args.contains(id)));
        }
        self.batched.borrow_mut().extend(results.iter().map(storage));
        let mut inner = frame.inner.unwrap_or_default();
        if frame.bound {
            // The formulas of its steps have numbers of this example.
            for t in results.iter().filter(|t| t.requires_grad() && !t.is_leaf()) {
                refuse_gradient(t, gradient_of_one(traced)).unwrap_or_else(|e| self.refuse(e));
            }
            self.lost.borrow_mut().extend(inner.drain(..).flat_map(Recorded::into_results));
        }
        let step = Step {
            op: traced.op,
            args: frame.args,
            form: traced.form,
            outs: traced.outs.to_vec(),
            results: results.to_vec(),
            grad: frame.grad,
            drawn: frame.drawn.clone().filter(|_| !differs).map(|defaults| States { defaults, given: frame.given }),
            draws_at: frame.drawn.filter(|_| differs),
            inner,
            lifted: frame.lifted,
        };
        self.push(Recorded::Call(Rc::new(step)));
    }

    fn refusal(&self) -> Option<Error> {
        let own = self.refused.borrow_mut().take();
        own.or_else(|| self.before.borrow().clone().and_then(|t| t.refusal()))
    }

    fn reads(&self, t: &Tensor, how: Read) -> Result<(), Error> {
        // A function from outside the op table has its own rule, or calls this again in the batch.
        if let Some(frame) = self.stack.borrow_mut().iter_mut().rev().find(|f| f.custom) {
            frame.bound |= self.is_batched(t);
            return Ok(());
        }
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

    fn host_reads(&self, t: &Tensor) {
        self.each_before(|b| b.host_reads(t));
        let batched = self.is_batched(t);
        if let Some(frame) = self.stack.borrow_mut().last_mut().filter(|f| f.is_open()) {
            frame.bound |= batched;
        }
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
    fn draws(&self) {
        self.each_before(|t| t.draws());
        if self.randomness == Randomness::Error {
            self.late.borrow_mut().get_or_insert_with(random_in_error_mode);
            self.refuse(random_in_error_mode());
        }
        for frame in self.stack.borrow_mut().iter_mut() {
            frame.drawn.get_or_insert_with(DefaultStates::now);
        }
    }
}
