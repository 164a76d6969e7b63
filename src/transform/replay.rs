//! Recorded calls on a whole batch: by the batch rule of the op, else by its steps, else example by example.

use super::recorded::{Recorded, States, Step};
use super::recorder::Origins;
use crate::autograd::{GradGuard, diagnostics, forward};
use crate::dispatch;
use crate::error::{Class, Error, Result};
use crate::op::generator::DefaultStates;
use crate::op::tracer::Form;
use crate::op::{Args, BatchedCall, Batching, Body, Call, Ints, Op, Outputs, Value, Vjp};
use crate::ops::create::full::ZEROS;
use crate::ops::movement::cat::STACK;
use crate::ops::movement::copy::{CLONE, COPY_};
use crate::ops::support::batch;
use crate::ops::view::as_strided::AS_STRIDED;
use crate::ops::view::reshape::{EXPAND, PERMUTE, SELECT};
use crate::tensor::Tensor;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The tensors of the example, and what stands for them in the batch.
pub struct Replay {
    size: usize,
    origins: Origins,
    now: HashMap<usize, Tensor>,
    /// By storage: the tensors that show it, with their batches.
    shown: HashMap<usize, Vec<(Tensor, Tensor)>>,
    /// By storage: all its elements for each example, of memory that was one for all before.
    lifted: HashMap<usize, Tensor>,
    /// The storages of copies that stand for views: nothing written to them would reach what they are views of.
    apart: HashSet<usize>,
    /// Whether any step writes.
    writes: bool,
    /// By the generators' states in the example, those in the batch: what is drawn again from one state (a checkpoint) is the same.
    states: HashMap<DefaultStates, DefaultStates>,
}

fn unknown(t: &Tensor) -> Error {
    Error::runtime(format!("vmap: a tensor that depends on the example, but that no call made: {t:?}"))
}

#[cold]
fn only_of_this_example(t: &Tensor) -> Error {
    Error::runtime(format!(
        "vmap: a gradient needs {t:?}, which was computed from values of one example that were read on the host; expected a \
         computation by ops. Give what is read as an argument that is not batched, or differentiate the batch: \
         grad(vmap(f))."
    ))
}

impl Replay {
    pub fn new(size: usize, origins: Origins) -> Replay {
        Replay {
            size,
            origins,
            now: HashMap::new(),
            shown: HashMap::new(),
            lifted: HashMap::new(),
            apart: HashSet::new(),
            writes: false,
            states: HashMap::new(),
        }
    }
    /// `batch` stands for `example` from now on.
    pub fn insert(&mut self, example: &Tensor, batch: Tensor) {
        self.now.insert(example.id(), batch.clone());
        let list = self.shown.entry(example.storage().id()).or_default();
        list.retain(|(e, _)| !e.same(example));
        list.push((example.clone(), batch));
    }
    /// What stands for a tensor of the example, with the batch first.
    pub fn batch_of(&self, t: &Tensor) -> Result<Tensor> {
        self.find(t)?.ok_or_else(|| unknown(t))
    }
    /// The same; `None` if it is one for all examples.
    fn find(&self, t: &Tensor) -> Result<Option<Tensor>> {
        if let Some(batch) = self.now.get(&t.id()) {
            return Ok(Some(batch.clone()));
        }
        let id = t.storage().id();
        let (batch, in_graph) = match (self.lifted.get(&id), self.shown.get(&id)) {
            (Some(whole), _) => (self.part(whole, t)?, true),
            (None, Some(list)) => match another_handle(list, t) {
                Some(found) => found,
                None if self.origins.lost.contains(&id) => return Err(only_of_this_example(t)),
                None => part_without_handle(list, t)?,
            },
            (None, None) if self.origins.lost.contains(&id) => return Err(only_of_this_example(t)),
            (None, None) if self.origins.shared.contains(&id) => return Ok(None),
            (None, None) if self.origins.batched.contains(&id) => return Err(unknown(t)),
            (None, None) => return Ok(None),
        };
        // Outside of the graph, or without the tangent: `detach`, what a formula reads.
        let outside = t.is_leaf() && in_graph && batch.requires_grad() || !is_dual(t) && is_dual(&batch);
        Ok(Some(if outside { batch.detach() } else { batch }))
    }
    fn knows(&self, t: &Tensor) -> bool {
        let id = t.storage().id();
        self.now.contains_key(&t.id()) || self.shown.contains_key(&id) || self.lifted.contains_key(&id)
    }
    /// What `t` shows of its storage, of which `whole` holds all for each example.
    fn part(&self, whole: &Tensor, t: &Tensor) -> Result<Tensor> {
        if whole.dtype() != t.dtype() {
            return Err(unknown(t));
        }
        let l = t.layout();
        let with_batch = |first: usize, rest: &[usize]| -> Ints {
            std::iter::once(first).chain(rest.iter().copied()).map(|d| d as i64).collect()
        };
        let strides = with_batch(whole.layout().strides[0], &l.strides);
        AS_STRIDED.call((whole, with_batch(self.size, &l.shape), strides, l.offset)).ok()
    }

    pub fn run(&mut self, steps: &[Recorded]) -> Result<()> {
        let _as_given = dispatch::autocast::Off::new();
        self.writes = steps.iter().any(Recorded::writes_anywhere);
        steps.iter().try_for_each(|step| self.recorded(step))
    }

    fn recorded(&mut self, step: &Recorded) -> Result<()> {
        let custom = match step {
            Recorded::Call(step) => return self.step(step),
            Recorded::Custom(custom) => custom,
        };
        let _mode = GradGuard::new(custom.grad);
        let found = custom.args.iter().map(|t| self.find(t)).collect::<Result<Vec<_>>>()?;
        let batched: Vec<bool> = found.iter().map(Option::is_some).collect();
        let now: Vec<Tensor> =
            found.into_iter().zip(&custom.args).map(|(b, t)| b.unwrap_or_else(|| t.clone())).collect();
        for (e, t) in custom.results.iter().zip((custom.rule)(&now, &batched, self.size)?) {
            self.insert(e, t);
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        let _mode = GradGuard::new(step.grad);
        if let Some((target, image)) = &step.lifted {
            let shape = [self.size as i64, image.numel() as i64];
            let whole =
                CLONE.call((EXPAND.call((image, shape)), Value::Format(crate::layout::Format::Contiguous))).ok()?;
            self.lifted.insert(target.storage().id(), whole);
        }
        let mut batched: Vec<u64> = Vec::new();
        let mut args = Args::new();
        for v in &step.args {
            let mut bits = 0u64;
            let mut replaced = |i: usize, t: &Tensor| -> Result<Tensor> {
                let found = self.find(t)?;
                bits |= u64::from(found.is_some()) << i.min(63);
                Ok(found.unwrap_or_else(|| t.clone()))
            };
            args.push(match v {
                Value::Owned(t) => Value::Owned(replaced(0, t)?),
                // More tensors than there are bits: all of them get the batch.
                Value::Tensors(list) if list.len() > 63 => {
                    let whole = |t: &Tensor| match self.find(t)? {
                        Some(batch) => Ok(batch),
                        None => EXPAND.call((t, self.sizes(t))).ok(),
                    };
                    bits = u64::MAX;
                    Value::Tensors(list.iter().map(|t| t.as_ref().map(whole).transpose()).collect::<Result<_>>()?)
                }
                Value::Tensors(list) => {
                    let new = list.iter().enumerate().map(|(i, t)| t.as_ref().map(|t| replaced(i, t)).transpose());
                    Value::Tensors(new.collect::<Result<_>>()?)
                }
                other => other.clone(),
            });
            batched.push(bits);
        }
        let call = BatchedCall {
            op: step.op,
            args: &args,
            example: Call { op: step.op, args: &step.args },
            results: &step.results,
            batched: &batched,
            size: self.size,
        };
        match step.form {
            Form::Functional => {
                let outputs = self.functional(step, &call)?;
                for (e, t) in step.results.iter().zip(outputs) {
                    self.result(&call, e, t)?;
                }
            }
            Form::InPlace => self.in_place(step, &call)?,
            Form::Out => {
                let outputs = self.functional(step, &call)?;
                for (e, t) in step.outs.iter().zip(outputs) {
                    let own = self.batch_of(e)?;
                    self.check_writable(&own, step)?;
                    COPY_.call_inplace((own, t))?;
                }
            }
        }
        Ok(())
    }

    fn functional(&mut self, step: &Step, call: &BatchedCall) -> Result<Outputs> {
        // A draw that is to be the same for all examples is a loop.
        if step.drawn.is_none() && step.op.also_writes() == 0 {
            match self.drawing(step, |_| batch::run(call)) {
                Ok(outputs) => return Ok(outputs),
                // A hook has ended the call: it is not that there is no rule.
                Err(e) if e.class() == Class::Python => return Err(e),
                Err(_) if !step.inner.is_empty() && !self.records(step, call) => return self.inner(step),
                Err(_) => {}
            }
        }
        self.drawing(step, |s| s.looped(step, call))
    }

    /// A call that may draw, from the state of an earlier one if the example did.
    fn drawing<R>(&mut self, step: &Step, run: impl FnOnce(&mut Replay) -> Result<R>) -> Result<R> {
        let Some(at) = &step.draws_at else { return run(self) };
        let now = DefaultStates::now();
        if let Some(earlier) = self.states.get(at) {
            earlier.restore();
            let result = run(self);
            now.restore();
            return result;
        }
        let before = States::of(&step.args);
        let result = run(self);
        match result {
            // A rule that did not fit has drawn nothing.
            Err(_) => before.restore(),
            Ok(_) if DefaultStates::now() != before.defaults => drop(self.states.insert(at.clone(), before.defaults)),
            Ok(_) => {}
        }
        result
    }

    /// Whether autograd records the call itself, not its steps.
    fn records(&self, step: &Step, call: &BatchedCall) -> bool {
        !matches!(step.op.vjp, Vjp::Composite)
            && step.grad
            && call.args.iter().any(|v| v.any_tensor(|t| t.requires_grad()))
    }

    /// The steps of an op that decomposes; nothing records its gradient.
    fn inner(&mut self, step: &Step) -> Result<Outputs> {
        step.inner.iter().try_for_each(|s| self.recorded(s))?;
        // A step that reads nothing of the example has run once.
        let result = |t: &Tensor| match self.knows(t) {
            true => self.batch_of(t),
            false => EXPAND.call((t, self.sizes(t))).ok(),
        };
        step.results.iter().map(result).collect()
    }

    fn sizes(&self, t: &Tensor) -> Ints {
        std::iter::once(self.size).chain(t.shape().iter().copied()).map(|d| d as i64).collect()
    }

    fn in_place(&mut self, step: &Step, call: &BatchedCall) -> Result<()> {
        let (target, own) = (&step.results[0], call.args[0].as_tensor().ok_or_else(|| unknown(&step.results[0]))?);
        if let Body::View(_) = step.op.body {
            let changed = self.functional(step, call)?.swap_remove(0);
            self.insert(target, changed);
            return Ok(());
        }
        self.check_writable(own, step)?;
        if step.drawn.is_none() {
            match self.drawing(step, |_| batch::run_inplace(call).unwrap_or_else(|| Err(batch::no_rule()))) {
                Ok(_) => return Ok(()),
                // Errors of the write itself, which the loop would raise too.
                Err(e) if e.class() == Class::Python => return Err(e),
                Err(e) if e.class() != Class::NotImplemented && own.is_leaf() && own.requires_grad() => return Err(e),
                _ => {}
            }
        }
        let by_rule = matches!(step.op.batch_rule(), Batching::Rule(_));
        if step.drawn.is_some() || !by_rule && step.op.forms.has(crate::op::Forms::ONLY_INPLACE) {
            return self.drawing(step, |s| s.looped(step, call)).map(drop);
        }
        let new = self.functional(&Step { form: Form::Functional, ..step.shallow() }, call)?.swap_remove(0);
        COPY_.call_inplace((own, new)).map(drop)
    }

    /// What stands for a result. Where something is written, what shows memory of an argument has to show that of its batch,
    /// and other memory has to lie as that of the example does.
    fn result(&mut self, call: &BatchedCall, example: &Tensor, batch: Tensor) -> Result<()> {
        let shows = |args: &[Value], t: &Tensor| args.iter().any(|v| v.any_tensor(|a| a.storage().same(t.storage())));
        let batch = match self.writes {
            true if !shows(call.example.args, example) => placed(example, batch)?,
            true if !shows(call.args, &batch) => {
                self.apart.insert(batch.storage().id());
                batch
            }
            _ => batch,
        };
        self.insert(example, batch);
        Ok(())
    }

    fn check_writable(&self, batch: &Tensor, step: &Step) -> Result<()> {
        match self.apart.contains(&batch.storage().id()) {
            true => Err(Error::runtime(format!(
                "vmap: {}_ would write to a view that had to be copied in the batch; expected a tensor with memory of its \
                 own. Clone it first.",
                step.op.base().trim_end_matches('_')
            ))),
            false => Ok(()),
        }
    }

    /// One call for each example; for views, if it can be told from the memory, the same views of the batch.
    fn looped(&mut self, step: &Step, call: &BatchedCall) -> Result<Outputs> {
        let views = step.form == Form::Functional && step.results.iter().any(|r| r.view_info().is_some());
        if views && let Some(outputs) = views_of_batch(step, call) {
            return outputs;
        }
        self.examples(step, call)
    }

    fn examples(&self, step: &Step, call: &BatchedCall) -> Result<Outputs> {
        if self.size == 0 {
            let none = |r: &Tensor| ZEROS.call((self.sizes(r), r.dtype(), r.device())).ok();
            return step.results.iter().map(none).collect();
        }
        warn_once(step.op)?;
        let after = step.drawn.as_ref().map(States::now);
        let mut each: Vec<Outputs> = Vec::new();
        for b in 0..self.size {
            let pick = |batched: bool, t: &Tensor| if batched { SELECT.call((t, 0, b)).ok() } else { Ok(t.clone()) };
            let args: Args = call.mapped(|o| pick(o.batched, o.tensor))?;
            if let Some(drawn) = &step.drawn {
                drawn.restore();
            }
            each.push(match step.form {
                Form::InPlace => Outputs::from_elem(dispatch::call_inplace(step.op, &args)?, 1),
                _ => dispatch::call(step.op, &args)?,
            });
        }
        if let Some(after) = after {
            after.restore();
        }
        if step.form == Form::InPlace {
            return Ok(Outputs::new());
        }
        let differ = |e: &Outputs| e.iter().zip(&step.results).any(|(t, r)| t.shape() != r.shape());
        if each.iter().any(differ) {
            return Err(Error::runtime(format!(
                "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::{}.",
                step.op.base()
            )));
        }
        (0..step.results.len())
            .map(|i| STACK.call((each.iter().map(|e| e[i].clone()).collect::<Vec<_>>(), 0)).ok())
            .collect()
    }
}

/// A batch that lies in memory as the example does, example after example: itself, or else a copy.
pub fn placed(example: &Tensor, batch: Tensor) -> Result<Tensor> {
    let (e, b) = (example.layout(), batch.layout());
    let many = |d: &usize| e.shape[*d] > 1;
    let dims: Vec<usize> = (0..e.shape.len()).filter(many).collect();
    let span: usize = dims.iter().map(|&d| (e.shape[d] - 1) * e.strides[d]).sum();
    let alike = dims.iter().all(|&d| e.strides[d] == b.strides[d + 1]) && (b.shape[0] < 2 || b.strides[0] > span);
    if alike || !e.is_dense() || batch.numel() == 0 {
        return Ok(batch);
    }
    let mut order: Vec<usize> = (0..e.shape.len()).collect();
    order.sort_by_key(|&d| std::cmp::Reverse(e.strides[d]));
    let first = |rest: &mut dyn Iterator<Item = usize>| -> Ints {
        std::iter::once(0).chain(rest.map(|d| d as i64 + 1)).collect()
    };
    let back = |d: usize| order.iter().position(|&o| o == d).unwrap_or(d);
    let sorted = PERMUTE.call((batch, first(&mut order.iter().copied())));
    let copy = CLONE.call((sorted, Value::Format(crate::layout::Format::Contiguous)));
    PERMUTE.call((copy, first(&mut (0..order.len()).map(back)))).ok()
}

/// Views of an example as views of the batch: where nothing but the tensor that they show is batched.
fn views_of_batch(step: &Step, call: &BatchedCall) -> Option<Result<Outputs>> {
    let (example, batch) = (step.args[0].as_tensor()?, call.args[0].as_tensor()?);
    if !call.is_batched(0) || (1..call.args.len()).any(|i| call.is_batched(i)) {
        return None;
    }
    step.results.iter().map(|r| same_view(example, batch, r)).collect()
}

/// `t`, which shows memory of `example`, as a view of the batch, if its examples lie in memory as that one does.
fn same_view(example: &Tensor, batch: &Tensor, t: &Tensor) -> Option<Result<Tensor>> {
    let (e, b, l) = (example.layout(), batch.layout(), t.layout());
    let alike = (0..e.shape.len()).all(|d| e.shape[d] == 1 || e.strides[d] == b.strides[d + 1]);
    let within = l.offset >= e.offset && l.end() <= e.end();
    let is_part = within && t.storage().same(example.storage()) && t.dtype() == example.dtype();
    let offset = (b.offset + l.offset).checked_sub(e.offset).filter(|_| alike && is_part)?;
    let with_batch = |first: usize, rest: &[usize]| -> Ints {
        std::iter::once(first).chain(rest.iter().copied()).map(|d| d as i64).collect()
    };
    let (shape, strides) = (with_batch(b.shape[0], &l.shape), with_batch(b.strides[0], &l.strides));
    Some(AS_STRIDED.call((batch, shape, strides, offset)).ok())
}

/// Whether forward mode differentiates a tensor.
fn is_dual(t: &Tensor) -> bool {
    forward::levels(forward::visible()).any(|level| forward::is_dual(t, level))
}

fn stands_as(e: &Tensor, t: &Tensor) -> bool {
    e.is_leaf() == t.is_leaf() && is_dual(e) == is_dual(t)
}

/// The batch of a handle that no call made (`detach`, a saved tensor), from those of other handles on its memory; and whether
/// that is the batch of a tensor with a history.
fn another_handle(list: &[(Tensor, Tensor)], t: &Tensor) -> Option<(Tensor, bool)> {
    let alike = |(e, _): &&(Tensor, Tensor)| e.layout() == t.layout() && e.dtype() == t.dtype();
    let all = || list.iter().rev().filter(alike);
    // A derivative passes only by a handle that has one.
    let (e, batch) =
        all().find(|(e, _)| stands_as(e, t)).or_else(|| all().find(|(e, _)| !e.is_leaf())).or_else(|| all().next())?;
    Some((batch.clone(), !e.is_leaf()))
}

/// The same of a part of what other handles show.
fn part_without_handle(list: &[(Tensor, Tensor)], t: &Tensor) -> Result<(Tensor, bool)> {
    let part = |(e, batch): &(Tensor, Tensor)| Some((same_view(e, batch, t)?, !e.is_leaf()));
    match list.iter().rev().filter(|(e, _)| stands_as(e, t)).chain(list.iter().rev()).find_map(part) {
        Some((view, in_graph)) => Ok((view?, in_graph)),
        None => Err(unknown(t)),
    }
}

static WARNS: AtomicBool = AtomicBool::new(true);
static WARNED: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);

/// Whether a loop over examples is warned of; returns what it was.
pub fn warn_of_loops(on: bool) -> bool {
    WARNS.swap(on, Ordering::Relaxed)
}

fn warn_once(op: &'static Op) -> Result<()> {
    if !WARNS.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut warned = WARNED.lock().unwrap_or_else(|e| e.into_inner());
    if !warned.get_or_insert_default().insert(op.name()) {
        return Ok(());
    }
    drop(warned);
    diagnostics::warn(&format!(
        "There is a performance drop because we have not yet implemented the batching rule for aten::{}. vmap calls it once \
         for each example.",
        op.name()
    ))
}
