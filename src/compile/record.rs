//! Watches one call of a function and makes a plan of it.
//!
//! Tensors are identified by the address of their handle. Handles and storages are held weakly: that keeps addresses
//! unique, and what counts owners (a gradient that is taken over instead of copied) sees what it sees without a recorder.

use super::look::Look;
use super::recorded::Recorded;
use super::step::{Arg, Source, Step, Variant};
use crate::autograd::mode::{grad_enabled, inference_enabled};
use crate::autograd::node::Work;
use crate::autograd::{Node, history};
use crate::dtype::{Category, DType, Scalar};
use crate::error::Error;
use crate::observe::Raw;
use crate::op::number::{self, Number, Passed, Question};
use crate::op::tracer::{Change, Form, Traced, Tracer};
use crate::op::{Body, Kind, Op, Value};
use crate::storage::WeakStorage;
use crate::tensor::slot::Creation;
use crate::tensor::{Edge, GradFn, HAS_FN, LEAF_GRAD, Tensor, TensorImpl};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// A call that is running.
struct Frame {
    /// Part of a primitive: that primitive itself, or a call in its body.
    inner: bool,
    grad: bool,
    /// The arguments that are numbers of the recorded function.
    numbers: Vec<(usize, Number)>,
    /// The call is recorded in the graph.
    tracked: bool,
}

/// The numbers among the arguments of a call, by position.
type Positions = Vec<(usize, Number)>;
/// The node of a call with numbers.
type Followed = (Weak<dyn GradFn>, Positions);

/// What a call has done besides what it says.
#[derive(Clone, Copy)]
struct Made<'a> {
    grad: bool,
    draws: bool,
    range: &'a str,
    results: &'a [Tensor],
    numbers: &'a [(usize, Number)],
}

/// What is known of a tensor, by its number.
struct Known {
    handle: Weak<TensorImpl>,
    source: Source,
}

#[derive(Default)]
struct State {
    known: Vec<Known>,
    /// From the address of a handle to its number.
    numbers: HashMap<usize, usize>,
    /// From the identity of a memory to the numbers of tensors on it, one for each version counter.
    memories: HashMap<usize, Vec<(usize, usize)>>,
    storages: Vec<WeakStorage>,
    /// What each known tensor looks like.
    looks: Vec<Look>,
    /// The list of primitives: what reads only values may be given another handle on the same elements.
    of_primitives: bool,
    steps: Vec<Step>,
    /// Numbers that have to stay what they were.
    fixed: Vec<Number>,
    /// Tensors whose gradient was there before the call and has been read.
    read_grads: Vec<usize>,
    problem: Option<String>,
    /// A step read a tensor that requires grad while gradients were recorded.
    recorded: bool,
    /// Such a tensor came from outside with a graph behind it.
    outside_graph: bool,
}

pub struct Recorder {
    stack: RefCell<Vec<Frame>>,
    /// The primitives.
    state: RefCell<State>,
    /// The calls as they were made, whose graph is that of the call.
    calls: RefCell<State>,
    backwards: Cell<usize>,
    /// The flags of the given tensors, to see whether the call changed them.
    given: Vec<(Tensor, bool, bool)>,
    inputs: usize,
    range: RefCell<Vec<String>>,
    /// What the recorder itself does is not reported.
    muted: Cell<bool>,
    /// The primitive that runs has drawn random numbers.
    drew: Cell<bool>,
    /// How many numbers have been read.
    reads: Cell<usize>,
    /// Numbers of the function that have to stay what they were.
    fixed: RefCell<Vec<Number>>,
    questions: RefCell<Vec<(Question, bool)>>,
    /// The nodes of calls with such numbers, by address, which a weak handle keeps theirs.
    nodes: RefCell<HashMap<usize, Followed>>,
}

impl Recorder {
    /// `inputs` are the tensors of the arguments, `outside` all others that the call can reach.
    pub fn new(inputs: &[Tensor], outside: &[Tensor]) -> Recorder {
        let (mut state, mut calls) = (State { of_primitives: true, ..State::default() }, State::default());
        let mut given = Vec::new();
        for (i, t) in inputs.iter().chain(outside).enumerate() {
            if state.numbers.contains_key(&t.id()) {
                continue;
            }
            for state in [&mut state, &mut calls] {
                state.add(t, if i < inputs.len() { Source::Input(i) } else { Source::Outside(t.clone()) });
            }
            given.push((t.clone(), t.flag(LEAF_GRAD), t.flag(HAS_FN)));
        }
        let both = |t: &Tensor| t.slot().grad.as_ref().is_some_and(|g| state.numbers.contains_key(&g.id()));
        if given.iter().any(|(t, ..): &(Tensor, bool, bool)| both(t)) {
            state.problem = Some("a gradient is also a tensor that it reads in another way".into());
        }
        Recorder {
            stack: RefCell::default(),
            state: RefCell::new(state),
            calls: RefCell::new(calls),
            backwards: Cell::new(0),
            given,
            inputs: inputs.len(),
            range: RefCell::default(),
            muted: Cell::new(false),
            drew: Cell::new(false),
            reads: Cell::new(0),
            fixed: RefCell::default(),
            questions: RefCell::default(),
            nodes: RefCell::default(),
        }
    }
    pub fn problem(&self) -> Option<String> {
        self.state.borrow().problem.clone()
    }
    /// The host reads the elements of a tensor outside an op, as numbers that may be other ones in each run: the place of the
    /// first among all that are read. `None` where a plan has no such step.
    pub fn read(&self, t: &Tensor) -> Option<usize> {
        let known = matches!(t.dtype().category(), Category::Float | Category::Int) && t.dtype() != DType::U64;
        if !known || !self.stack.borrow().is_empty() || self.problem().is_some() {
            return None;
        }
        let first = self.reads.get();
        for list in [&self.state, &self.calls] {
            let mut state = list.borrow_mut();
            match self.quietly(|| state.number(t)) {
                Ok(of) => state.steps.push(Step::Read { of, first }),
                Err(problem) => drop(state.problem.get_or_insert(problem)),
            }
        }
        self.reads.set(first + t.numel());
        Some(first)
    }
    /// Remembers the nodes of a call with numbers: a formula may do something else for each of them.
    fn follow(&self, call: &Traced, results: &[Tensor], numbers: &[(usize, Number)]) {
        let node = |t: &Tensor| {
            let edge = history::grad_fn(t).ok().flatten()?;
            let node = edge.node()?.clone();
            let same = matches!(&Node::of_ref(&node).work, Work::Op { op, .. } if std::ptr::eq(*op, call.op));
            same.then_some(node)
        };
        let tracked = results.iter().filter(|t| t.requires_grad());
        let found: Option<Vec<_>> = tracked.map(node).collect();
        match found.filter(|_| call.form == Form::Functional) {
            Some(found) => self.nodes.borrow_mut().extend(found.into_iter().map(|node| {
                let at = Arc::as_ptr(&node).cast::<()>() as usize;
                (at, (Arc::downgrade(&node), numbers.to_vec()))
            })),
            None => self.state.borrow_mut().fixed.extend(numbers.iter().map(|(_, n)| n.clone())),
        }
    }
    /// What `f` does is not part of the recording.
    pub fn unseen<R>(&self, f: impl FnOnce() -> R) -> R {
        self.quietly(f)
    }
    fn refuse(&self, text: impl FnOnce() -> String) {
        self.state.borrow_mut().problem.get_or_insert_with(text);
    }
    /// Adds a call to a list; what the list of primitives cannot hold is a reason for having no plan at all.
    fn note(&self, list: &RefCell<State>, call: &Traced, made: Made, refuse: bool) {
        if let Err(problem) = self.quietly(|| list.borrow_mut().step(call, made)) {
            match refuse {
                true => self.refuse(|| problem),
                false => drop(list.borrow_mut().problem.get_or_insert(problem)),
            }
        }
    }
    fn quietly<R>(&self, f: impl FnOnce() -> R) -> R {
        let before = self.muted.replace(true);
        let result = f();
        self.muted.set(before);
        result
    }

    /// What the call computed, where it can be run again from that; else why not. `outputs` are the tensors that the call returned.
    ///
    /// Where results have a graph that can still run, it is the list of calls as they were made, which record it again;
    /// else that of the primitives, backward's among them.
    pub fn finish(self, outputs: &[Tensor]) -> Result<Recorded, String> {
        let (fixed, questions) = (self.fixed.take(), self.questions.take());
        let mut recorded = self.chosen(outputs)?;
        recorded.fixed.extend(fixed);
        recorded.questions = questions;
        if recorded.fixed.iter().any(|n| !n.is_given()) {
            Err("it reads the values of a tensor".into())
        } else {
            Ok(recorded)
        }
    }
    fn chosen(self, outputs: &[Tensor]) -> Result<Recorded, String> {
        let mut state = self.state.take();
        if let Some(problem) = state.problem.take() {
            return Err(problem);
        }
        for (t, leaf, made) in &self.given {
            if t.flag(LEAF_GRAD) != *leaf || t.flag(HAS_FN) != *made {
                return Err("it changes whether a tensor from outside requires grad".into());
            }
        }
        let results = outputs.iter().map(|t| state.number(t)).collect::<Result<Vec<_>, _>>()?;
        let new = |(t, number): &(&Tensor, &usize)| !state.is_given(**number) && t.flag(LEAF_GRAD);
        if outputs.iter().zip(&results).any(|pair| new(&pair)) {
            return Err("it returns a new leaf".into());
        }
        if !state.recorded {
            state.check_escapes(outputs)?;
            return Ok(state.into_recorded(results, vec![None; outputs.len()], Variant::AsCalled));
        }
        let inputs = &self.given[..self.inputs.min(self.given.len())];
        let graph =
            |(t, &number): (&Tensor, &usize)| if state.is_given(number) { Ok(None) } else { graph_of(t, inputs) };
        let graphs = outputs.iter().zip(&results).map(graph).collect::<Result<Vec<_>, _>>();
        match graphs {
            Ok(_) if state.outside_graph => Err("it uses a tensor from outside that has a graph".into()),
            Ok(graphs) => {
                state.check_escapes(outputs)?;
                state.fixed.extend(graphs.iter().flatten().flat_map(|edge| self.run_again(edge)));
                Ok(state.into_recorded(results, graphs, Variant::Unrecorded))
            }
            Err(_) if self.backwards.get() == 0 => {
                let mut calls = self.calls.take();
                if let Some(problem) = calls.problem.take() {
                    return Err(problem);
                }
                let results = outputs.iter().map(|t| calls.number(t)).collect::<Result<Vec<_>, _>>()?;
                Ok(calls.into_recorded(results, vec![None; outputs.len()], Variant::Recorded))
            }
            Err(problem) => Err(problem),
        }
    }
}

impl Recorder {
    /// Numbers in a graph that results of later calls refer to: it has those of the recorded call. They do not matter where a
    /// second backward is an error before it reaches a leaf.
    fn run_again(&self, edge: &Edge) -> Vec<Number> {
        let nodes = self.nodes.borrow();
        let (mut numbers, mut leaf, mut seen) = (Vec::new(), false, HashSet::new());
        let mut open = vec![edge.clone()];
        while let Some(edge) = open.pop() {
            let Some(node) = edge.node().map(Node::of) else {
                leaf = true;
                continue;
            };
            let at = Arc::as_ptr(&node) as usize;
            if node.is_released() || !seen.insert(at) {
                continue;
            }
            leaf |= !matches!(node.work, Work::Op { .. });
            numbers.extend(nodes.get(&at).iter().flat_map(|(_, list)| list.iter().map(|(_, n)| n.clone())));
            open.extend(node.edges.iter().flatten().cloned());
        }
        if leaf { numbers } else { Vec::new() }
    }
}

/// The released graph behind a result, which the results of later calls refer to: nothing can run through it again.
fn graph_of(t: &Tensor, inputs: &[(Tensor, bool, bool)]) -> Result<Option<Edge>, String> {
    let view = t.view_info().is_some_and(|v| v.creation.load(Ordering::Acquire) != Creation::NoGrad as u8);
    if view {
        return Err("it returns a view of a tensor that was made while gradients were recorded".into());
    }
    let Some(edge) = history::grad_fn(t).map_err(|e| e.to_string())? else {
        return if t.requires_grad() { Err("it returns a new tensor that requires grad".into()) } else { Ok(None) };
    };
    let mut seen = HashSet::new();
    let mut open = vec![edge.clone()];
    while let Some(edge) = open.pop() {
        if let Edge::Leaf(leaf) = &edge {
            if inputs.iter().any(|(input, ..)| input.same(leaf.leaf())) {
                return Err("it returns a tensor whose graph leads to an argument".into());
            }
            continue;
        }
        let Some(node) = edge.node().map(Node::of).filter(|n| seen.insert(Arc::as_ptr(n) as usize)) else { continue };
        if node.holds_values() || node.hooks_if_any().is_some() {
            return Err("it returns a tensor through which backward can still run".into());
        }
        open.extend(node.edges.iter().flatten().cloned());
    }
    Ok(Some(edge))
}

impl State {
    fn into_recorded(self, results: Vec<usize>, graphs: Vec<Option<Edge>>, variant: Variant) -> Recorded {
        let sources = self.known.into_iter().map(|k| k.source).collect();
        let State { steps, looks, read_grads, fixed, .. } = self;
        Recorded { sources, steps, looks, results, graphs, read_grads, variant, fixed, questions: Vec::new() }
    }
    fn add(&mut self, t: &Tensor, source: Source) -> usize {
        let number = self.known.len();
        self.known.push(Known { handle: Arc::downgrade(&t.0), source });
        self.numbers.insert(t.id(), number);
        self.looks.push(Look::of(t));
        let (memory, counter) = (t.storage().id(), t.storage().counter_id());
        let on = self.memories.entry(memory).or_default();
        if !on.iter().any(|(c, _)| *c == counter) {
            on.push((counter, number));
            self.storages.push(t.storage().downgrade());
        }
        number
    }
    fn is_given(&self, number: usize) -> bool {
        matches!(self.known[number].source, Source::Input(_) | Source::Outside(_))
    }
    /// The given tensor whose gradient this is.
    fn grad_of(&self, t: &Tensor) -> Option<usize> {
        let is_grad = |k: &Known| {
            let owner = k.handle.upgrade().map(Tensor);
            owner.is_some_and(|o| o.flag(LEAF_GRAD) && o.slot().grad.as_ref().is_some_and(|g| g.same(t)))
        };
        (0..self.known.len()).find(|&i| self.is_given(i) && is_grad(&self.known[i]))
    }
    /// The number of a tensor: known, a gradient from before the call, or another handle on known memory.
    fn number(&mut self, t: &Tensor) -> Result<usize, String> {
        if let Some(&n) = self.numbers.get(&t.id()) {
            return Ok(n);
        }
        if let Some(of) = self.grad_of(t) {
            let n = self.add(t, Source::GradOf(of));
            self.read_grads.push(of);
            return Ok(n);
        }
        let Some(on) = self.memories.get(&t.storage().id()) else {
            return Err("it uses a tensor that no op made and that it does not hold".into());
        };
        let counter = t.storage().counter_id();
        let same = on.iter().find(|(c, _)| *c == counter);
        let (of, counted) = (same.unwrap_or(&on[0]).1, same.is_some());
        if t.flag(LEAF_GRAD) {
            return Err("it makes a tensor that requires grad".into());
        }
        let (layout, dtype) = (t.layout().clone(), t.dtype());
        let base = &self.looks[of];
        let shift = t.first_byte() - base.layout.first_byte(base.dtype.size());
        let n = self.add(t, Source::Made);
        self.steps.push(Step::Alias { of, layout, shift, dtype, counted, result: n });
        Ok(n)
    }
    /// A known tensor with the same elements, for ops that read nothing else.
    fn stand_in(&self, t: &Tensor) -> Option<usize> {
        let on = self.memories.get(&t.storage().id())?;
        let (_, of) = on.iter().find(|(counter, _)| *counter == t.storage().counter_id())?;
        let look = &self.looks[*of];
        (look.layout == *t.layout() && look.dtype == t.dtype()).then_some(*of)
    }
    fn arg(&mut self, v: &Value, only_values: bool) -> Result<Arg, String> {
        let one = |state: &mut State, t: &Tensor| match !only_values
            || state.numbers.contains_key(&t.id())
            || state.grad_of(t).is_some()
        {
            true => state.number(t),
            false => state.stand_in(t).map_or_else(|| state.number(t), Ok),
        };
        Ok(match v {
            Value::Tensor(t) => Arg::Tensor(one(self, t)?),
            Value::Owned(t) => Arg::Tensor(one(self, t)?),
            Value::Tensors(list) => {
                let each = list.iter().map(|t| t.as_ref().map(|t| one(self, t)).transpose());
                Arg::Tensors(each.collect::<Result<_, _>>()?)
            }
            other => Arg::Value(other.clone().into_owned()),
        })
    }
    fn step(&mut self, call: &Traced, Made { grad, draws, range, results, numbers }: Made) -> Result<(), String> {
        let tensors = || call.args.iter().flat_map(|v| v.tensors()).chain(call.outs);
        if grad && tensors().any(|t| t.requires_grad()) {
            self.recorded = true;
            let given = |t: &Tensor| self.numbers.get(&t.id()).is_some_and(|&n| self.is_given(n));
            let from_outside = tensors().any(|t| t.flag(HAS_FN) && given(t));
            if tensors().any(|t| t.flag(LEAF_GRAD) && !given(t)) {
                return Err("it makes a tensor that requires grad".into());
            }
            self.outside_graph |= from_outside;
        }
        let computes = matches!(call.op.body, Body::Elementwise(_) | Body::Kernel(_)) && call.op.sig.written == 0;
        let only_values = self.of_primitives && computes && call.form == Form::Functional;
        let mut args = call.args.iter().map(|v| self.arg(v, only_values)).collect::<Result<Vec<_>, _>>()?;
        for (at, number) in numbers {
            if let Value::Scalar(recorded) = call.args[*at] {
                args[*at] = Arg::Number(number.clone(), recorded);
            }
        }
        let outs = call.outs.iter().map(|t| self.number(t)).collect::<Result<Vec<_>, _>>()?;
        let one = |t: &Tensor| match self.numbers.get(&t.id()) {
            Some(&n) => n,
            None => self.add(t, Source::Made),
        };
        let results = results.iter().map(one).collect();
        let in_step = range.starts_with("Optimizer.step#");
        self.steps.push(Step::Call { op: call.op, form: call.form, args, outs, results, grad, draws, in_step });
        Ok(())
    }
    fn set_grad(&mut self, t: &Tensor) -> Result<(), String> {
        let leaf = self.number(t)?;
        if !self.is_given(leaf) {
            return Err("it sets the gradient of a tensor that it made".to_string());
        }
        let grad = t.grad().map(|g| self.number(&g)).transpose()?;
        self.steps.push(Step::SetGrad { leaf, grad });
        Ok(())
    }
    /// What the call made is gone when it ends, but for what it returned and what it put into `.grad`.
    fn check_escapes(&self, outputs: &[Tensor]) -> Result<(), String> {
        let mut allowed: HashSet<usize> = outputs.iter().map(Tensor::id).collect();
        let bases = |t: &Tensor| t.view_info().map(|v| v.base.id());
        allowed.extend(outputs.iter().filter_map(bases));
        for (_, k) in self.known.iter().enumerate().filter(|(i, _)| self.is_given(*i)) {
            let Some(t) = k.handle.upgrade().map(Tensor) else { continue };
            let Some(grad) = t.grad() else { continue };
            if grad.requires_grad() {
                return Err("it leaves a gradient that requires grad".into());
            }
            allowed.insert(grad.id());
            allowed.extend(bases(&grad));
        }
        for (i, k) in self.known.iter().enumerate().filter(|(i, _)| !self.is_given(*i)) {
            if let Some(t) = k.handle.upgrade().map(Tensor)
                && !allowed.contains(&t.id())
                && !matches!(self.known[i].source, Source::GradOf(_))
            {
                return Err(format!("a tensor that it made is kept by something else: {t:?}"));
            }
        }
        Ok(())
    }
}

/// The arguments of a call that are numbers of the function. Those that were put elsewhere after they were parsed are fixed.
fn numbers_of(call: &Traced, fixed: &mut Vec<Number>) -> Vec<(usize, Number)> {
    let mut numbers = Vec::new();
    for Passed { at, number, value } in number::passed() {
        let bits = |s: &Scalar| (std::mem::discriminant(s), s.to_f64().to_bits(), s.to_i64());
        let there = call.args.get(at).is_some_and(|v| matches!(v, Value::Scalar(s) if bits(s) == bits(&value)));
        match there && takes_any(call) && (number.is_given() || number.is_total()) {
            true => numbers.push((at, number)),
            false => fixed.push(number),
        }
    }
    numbers
}

/// Whether a step may have another number in each run: its results look the same for all of a kind, and what it draws and
/// returns does not depend on them. A composite may do something else for each number; `arange` makes sizes of them.
fn takes_any(call: &Traced) -> bool {
    let on_tensors = || call.args.iter().any(|v| v.tensors().next().is_some());
    let draws = || call.op.sig.params().iter().any(|p| p.kind == Kind::Generator);
    match &call.op.body {
        Body::Elementwise(_) => true,
        Body::Kernel(k) => !k.reads_host && on_tensors() && !draws(),
        _ => false,
    }
}

fn warns(op: &'static Op, call: &Traced) -> bool {
    op.warns.is_some_and(|warns| warns(&crate::op::Call { op, args: call.args }).is_some())
}

impl Tracer for Recorder {
    fn enter(&self, call: &Traced) {
        let nested = self.stack.borrow().last().is_some_and(|f| f.inner);
        let leaf = !nested && call.op.is_primitive();
        let outermost = self.stack.borrow().is_empty();
        let numbers = if outermost { numbers_of(call, &mut self.fixed.borrow_mut()) } else { Vec::new() };
        let tracked = grad_enabled() && call.args.iter().any(|v| v.any_tensor(Tensor::requires_grad));
        if leaf && call.op.reads_host() {
            self.refuse(|| format!("what {} returns depends on values", call.op.name()));
        }
        if leaf && matches!((&call.op.body, call.form), (Body::View(_), Form::InPlace)) {
            self.refuse(|| format!("{}_ changes the shape of a tensor", call.op.base()));
        }
        if self.stack.borrow().is_empty() && self.quietly(|| warns(call.op, call)) {
            self.refuse(|| format!("{} warns", call.op.name()));
        }
        self.stack.borrow_mut().push(Frame { inner: nested || leaf, grad: grad_enabled(), numbers, tracked });
    }
    fn exit(&self, call: &Traced, result: Result<&[Tensor], &Error>) {
        let frame = self.stack.borrow_mut().pop();
        let (nested, outermost) = (self.stack.borrow().last().is_some_and(|f| f.inner), self.stack.borrow().is_empty());
        let Some(frame) = frame else { return };
        let primitive = frame.inner && !nested;
        if !primitive && !outermost {
            return;
        }
        let Ok(results) = result else { return self.refuse(|| format!("{} failed", call.op.name())) };
        if frame.tracked && !frame.numbers.is_empty() {
            self.follow(call, results, &frame.numbers);
        }
        let range = self.range.borrow().last().cloned().unwrap_or_default();
        let draws = self.drew.get();
        let grad = frame.grad && !inference_enabled();
        let made = Made { grad, draws, range: &range, results, numbers: &frame.numbers };
        if primitive {
            self.note(&self.state, call, made, true);
            self.drew.set(self.drew.get() && !outermost);
        }
        if outermost {
            self.drew.set(false);
            self.note(&self.calls, call, made, false);
        }
    }
    fn formula_begins(&self, node: usize, op: &'static Op, wanted: u64) {
        let nodes = self.nodes.borrow();
        let Some((_, numbers)) = nodes.get(&node) else { return };
        let any = op.vjp.any_number(|i| i < 64 && wanted & (1 << i) != 0);
        let (taken, read): (Positions, Positions) = numbers.iter().cloned().partition(|(i, _)| any & (1 << i) != 0);
        self.state.borrow_mut().fixed.extend(read.into_iter().map(|(_, n)| n));
        number::set_formula(taken);
    }
    fn formula_ends(&self) {
        number::set_formula(Vec::new());
        for (question, answer) in number::asked() {
            match &question {
                Question::Compare(_, n, _) | Question::Truth(n) if !n.is_given() => {
                    self.fixed.borrow_mut().push(n.clone());
                }
                _ => self.questions.borrow_mut().push((question, answer)),
            }
        }
    }
    fn backward_begins(&self) {
        self.backwards.set(self.backwards.get() + 1);
    }
    fn range_begins(&self, name: &str) {
        self.range.borrow_mut().push(name.to_string());
    }
    fn range_ends(&self) {
        self.range.borrow_mut().pop();
    }
    fn function_applied(&self, name: &str, _inputs: &[Tensor], _outputs: &[Tensor]) {
        self.refuse(|| format!("it applies {name}, a Function written in Python"));
    }
    fn raw(&self, raw: Raw) {
        if self.stack.borrow().is_empty() && !self.muted.get() {
            self.refuse(|| match raw {
                Raw::Access => "it reads the values of a tensor".into(),
                Raw::Allocation => "it makes a tensor of Python values".into(),
            });
        }
    }
    fn changed(&self, t: &Tensor, change: Change) {
        if change != Change::Grad {
            return self.refuse(|| match change {
                Change::Resized => "it resizes a tensor".into(),
                Change::Data => "it gives a tensor other data".into(),
                _ => "bytes of a tensor were written from outside".into(),
            });
        }
        for list in [&self.state, &self.calls] {
            if let Err(problem) = self.quietly(|| list.borrow_mut().set_grad(t)) {
                self.refuse(|| problem);
            }
        }
    }
    fn draws(&self) {
        if self.stack.borrow().is_empty() {
            return self.refuse(|| "it draws random numbers outside an op".into());
        }
        self.drew.set(true);
    }
}
