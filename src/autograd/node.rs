//! A node of the backward graph: a name, edges to the nodes that come after it in backward, and what it needs.
//!
//! Note [Sequence numbers]: a node is created after every node it has an edge to, so its number is larger. The engine
//! visits nodes by falling number; that is a topological order without counting dependencies first.
//!
//! Note [Iterative drop]: dropping a node hands its edges and saved tensors to a list of the thread that the outermost
//! drop empties, so that a chain of a million nodes neither overflows the stack nor takes more than linear time.

use super::hooks::Hooks;
use super::saved::Saved;
use crate::error::{Error, Result};
use crate::op::gradient::Facts;
use crate::op::{Arguments, Back, Call, OUT0, Op, Term, Value, Vjp};
use crate::tensor::{Edge, GradFn, Tensor};
use smallvec::SmallVec;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

pub type Grads = SmallVec<[Option<Tensor>; 2]>;

/// A backward written outside the op table: a Python `autograd.Function`.
pub trait Custom: Send + Sync {
    fn apply(&self, node: &Arc<Node>, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>>;
    /// Frees what was saved, after a backward that does not retain the graph.
    fn release(&self);
    fn as_any(&self) -> &dyn Any;
}

/// What a node does with the gradients that reach it.
pub enum Work {
    Op {
        op: &'static Op,
        state: Mutex<State>,
    },
    /// Adds to `.grad` of a leaf.
    Accumulate(Tensor),
    /// An in-place write to a view of a tensor with history; see `history`.
    CopySlices(Box<super::history::CopySlices>),
    Custom(Box<dyn Custom>),
    /// The value was changed in a way that has no gradient; using it in backward is an error.
    Fails(String),
}

/// What an op's formula reads.
pub struct OpState {
    pub args: SmallVec<[Value<'static>; 3]>,
    pub inputs: SmallVec<[(usize, Saved); 2]>,
    pub outputs: SmallVec<[(usize, Saved); 1]>,
    pub facts: SmallVec<[(usize, Facts); 2]>,
}

/// A saved item of a list argument has its place in the list above these bits of the argument's position.
const LIST_ITEM: u32 = 8;

pub enum State {
    Ready(Box<OpState>),
    Freed,
}

pub struct Node {
    pub name: Box<str>,
    pub seq: u64,
    pub work: Work,
    pub edges: SmallVec<[Option<Edge>; 2]>,
    /// Shape, dtype and device of each output of the forward op.
    pub outputs: SmallVec<[Facts; 1]>,
    hooks: OnceLock<Box<Mutex<Hooks>>>,
    /// `metadata`: a dict of Python.
    pub python: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl GradFn for Node {
    fn name(&self) -> &str {
        &self.name
    }
}

static SEQ: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// How many nodes are alive, for leak tests.
pub fn live_count() -> usize {
    LIVE.load(Ordering::Relaxed)
}

impl Node {
    pub fn new(name: &str, work: Work, edges: SmallVec<[Option<Edge>; 2]>, outputs: SmallVec<[Facts; 1]>) -> Arc<Node> {
        LIVE.fetch_add(1, Ordering::Relaxed);
        let seq = SEQ.fetch_add(1, Ordering::Relaxed);
        let (hooks, python) = (OnceLock::new(), OnceLock::new());
        let node = Arc::new(Node { name: name.into(), seq, work, edges, outputs, hooks, python });
        if super::mode::anomaly() > 0 {
            super::witness::made(&node);
        }
        node
    }
    /// The node behind an edge. Every `GradFn` of the crate is a `Node`.
    pub fn of(node: &Arc<dyn GradFn>) -> Arc<Node> {
        let any: Arc<dyn Any + Send + Sync> = node.clone();
        any.downcast::<Node>().unwrap_or_else(|_| unreachable!("only Node implements GradFn"))
    }
    pub fn of_ref(node: &Arc<dyn GradFn>) -> &Node {
        let any: &dyn Any = &**node;
        any.downcast_ref::<Node>().unwrap_or_else(|| unreachable!("only Node implements GradFn"))
    }
    /// The hooks, made when first asked for.
    pub fn hooks(&self) -> MutexGuard<'_, Hooks> {
        self.hooks.get_or_init(Default::default).lock().unwrap_or_else(|e| e.into_inner())
    }
    pub fn hooks_if_any(&self) -> Option<&Mutex<Hooks>> {
        self.hooks.get().map(|b| &**b)
    }
    /// Frees what was saved. Nodes that saved no tensor keep working, as in PyTorch.
    pub fn release(&self) {
        match &self.work {
            Work::Op { state, .. } => {
                let mut s = state.lock().unwrap_or_else(|e| e.into_inner());
                let saved_any = matches!(&*s, State::Ready(o) if !o.inputs.is_empty() || !o.outputs.is_empty());
                if saved_any {
                    let old = std::mem::replace(&mut *s, State::Freed);
                    drop(s);
                    drop(old);
                }
            }
            Work::Custom(c) => c.release(),
            Work::CopySlices(c) => c.inner.release(),
            _ => {}
        }
    }
    /// Runs the formula: one gradient for each edge.
    pub fn apply(self: &Arc<Node>, grads: &[Option<Tensor>], wanted: u64) -> Result<Grads> {
        self.apply_as(self, grads, wanted)
    }
    /// As `apply`, where saved outputs belong to another node than this one: after a write to a view.
    pub fn apply_as(self: &Arc<Node>, owner: &Arc<Node>, grads: &[Option<Tensor>], wanted: u64) -> Result<Grads> {
        match &self.work {
            Work::Op { op, state } => self.apply_op(op, state, owner, grads, wanted),
            Work::CopySlices(c) => c.apply(self, grads, wanted),
            Work::Custom(c) => Ok(c.apply(self, grads)?.into()),
            Work::Fails(message) => Err(Error::runtime(message.clone())),
            Work::Accumulate(_) => Err(Error::internal("AccumulateGrad is the engine's own")),
        }
    }

    fn apply_op(
        self: &Arc<Node>,
        op: &'static Op,
        state: &Mutex<State>,
        owner: &Arc<Node>,
        grads: &[Option<Tensor>],
        wanted: u64,
    ) -> Result<Grads> {
        let (args, outputs, facts) = self.unpack(state, owner)?;
        let mut back = Back {
            call: Call { op, args: &args },
            grads,
            facts: &facts,
            outputs: &outputs,
            output_facts: &self.outputs,
            wanted: 0,
        };
        match &op.vjp {
            Vjp::Each(list) => {
                let one = |(i, g): (usize, &crate::op::Grad)| -> Result<Option<Tensor>> {
                    if wanted & (1 << i) == 0 {
                        return Ok(None);
                    }
                    let term: Term = (g.formula)(&back);
                    term.ok().map(Some)
                };
                list.iter().enumerate().map(one).collect()
            }
            Vjp::Joint(j) => {
                back.wanted = wanted_args(j.args, &args, &facts, wanted);
                Ok((j.formula)(&back)?.into())
            }
            _ => Err(Error::internal("a node was recorded for an op without a gradient")),
        }
    }

    #[allow(clippy::type_complexity)]
    pub(super) fn unpack(
        self: &Arc<Node>,
        state: &Mutex<State>,
        owner: &Arc<Node>,
    ) -> Result<(SmallVec<[Value<'static>; 3]>, Grads, SmallVec<[(usize, Facts); 2]>)> {
        let guard = state.lock().unwrap_or_else(|e| e.into_inner());
        let State::Ready(s) = &*guard else { return Err(freed()) };
        let mut args = s.args.clone();
        for (at, saved) in &s.inputs {
            let t = saved.unpack(owner)?;
            match &mut args[at & ((1 << LIST_ITEM) - 1)] {
                // Holes in a list (`Tensor?[]`) keep their places.
                Value::Tensors(list) => {
                    let item = at >> LIST_ITEM;
                    list.resize(list.len().max(item + 1), None);
                    list[item] = Some(t);
                }
                slot => *slot = Value::Owned(t),
            }
        }
        let mut outputs: Grads = SmallVec::from_elem(None, self.outputs.len());
        for (i, saved) in &s.outputs {
            outputs[*i] = Some(saved.unpack(owner)?);
        }
        Ok((args, outputs, s.facts.clone()))
    }
}

/// Bits by edge -> bits by argument position (a list argument owns as many edges as it has items).
fn wanted_args(list: &[usize], args: &[Value], facts: &[(usize, Facts)], wanted: u64) -> u32 {
    let (mut edge, mut out) = (0, 0u32);
    for &a in list {
        let n = if matches!(args[a], Value::Tensors(_)) { facts.iter().filter(|(i, _)| *i == a).count() } else { 1 };
        for _ in 0..n {
            if edge < 64 && wanted & (1 << edge) != 0 {
                out |= 1 << a;
            }
            edge += 1;
        }
        if edge > 64 {
            out |= 1 << a;
        }
    }
    out
}

#[cold]
pub fn freed() -> Error {
    Error::runtime(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already \
         been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). \
         Specify retain_graph=True if you need to backward through the graph a second time or if you need to access \
         saved tensors after calling backward.",
    )
}

/// Records a call under the op's name.
pub fn record(call: &Call, outputs: &[Tensor], edges: SmallVec<[Option<Edge>; 2]>) -> Result<Arc<Node>> {
    record_as(call.op.parsed().node, call, outputs, edges)
}

/// Records a call under a name of its own. Which tensors the formulas read is kept, and nothing else.
pub fn record_as(name: &str, call: &Call, outputs: &[Tensor], edges: SmallVec<[Option<Edge>; 2]>) -> Result<Arc<Node>> {
    let op = call.op;
    let saves = wanted_saves(op, &edges);
    let mut state =
        OpState { args: SmallVec::new(), inputs: SmallVec::new(), outputs: SmallVec::new(), facts: SmallVec::new() };
    for (i, v) in call.args.iter().enumerate() {
        let keep = i < 16 && saves & (1 << i) != 0;
        for t in v.tensors() {
            state.facts.push((i, Facts::of(t)));
        }
        match v {
            Value::Tensors(list) if keep => {
                for (k, t) in list.iter().enumerate().filter_map(|(k, t)| Some((k, t.as_ref()?))) {
                    state.inputs.push((i | (k << LIST_ITEM), Saved::input(t)?));
                }
            }
            v if keep => {
                if let Some(t) = v.as_tensor() {
                    state.inputs.push((i, Saved::input(t)?));
                }
            }
            _ => {}
        }
        state.args.push(match v {
            Value::Tensor(_) | Value::Owned(_) => Value::None,
            Value::Tensors(_) => Value::Tensors(Vec::new()),
            other => other.clone().into_owned(),
        });
    }
    for (i, t) in outputs.iter().enumerate() {
        if saves & (OUT0 << i.min(15)) != 0 {
            state.outputs.push((i, Saved::output(t, i)?));
        }
    }
    let facts = outputs.iter().map(Facts::of).collect();
    let work = Work::Op { op, state: Mutex::new(State::Ready(Box::new(state))) };
    Ok(Node::new(name, work, edges, facts))
}

/// Only what the wanted gradients read is saved: `w * x` keeps `x` alone when only `w` requires grad.
fn wanted_saves(op: &Op, edges: &[Option<Edge>]) -> u32 {
    match &op.vjp {
        Vjp::Each(list) => list.iter().zip(edges).filter(|(_, e)| e.is_some()).fold(0, |s, (g, _)| s | g.saves),
        Vjp::Joint(j) => j.saves,
        _ => 0,
    }
}

/// The arguments that have a gradient formula, in edge order.
pub fn differentiable_args(op: &Op) -> SmallVec<[usize; 4]> {
    match &op.vjp {
        Vjp::Each(list) => list.iter().map(|g| g.arg).collect(),
        Vjp::Joint(j) => j.args.into(),
        _ => SmallVec::new(),
    }
}

/// One edge for each differentiable argument; a number or a tensor without gradient has none.
pub fn collect_edges(call: &Call) -> Result<SmallVec<[Option<Edge>; 2]>> {
    let mut edges = SmallVec::new();
    for i in differentiable_args(call.op) {
        match &call.arguments()[i] {
            Value::Tensors(list) => {
                for t in list.iter().flatten() {
                    edges.push(super::history::grad_edge(t)?);
                }
            }
            v => edges.push(match v.as_tensor() {
                Some(t) => super::history::grad_edge(t)?,
                None => None,
            }),
        }
    }
    Ok(edges)
}

/// What a dropped node leaves to be dropped in turn.
type Remains = (SmallVec<[Option<Edge>; 2]>, Option<Box<OpState>>);

thread_local! {
    static PENDING: RefCell<Vec<Remains>> = const { RefCell::new(Vec::new()) };
    static DRAINING: Cell<bool> = const { Cell::new(false) };
}

impl Drop for Node {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
        let edges = std::mem::take(&mut self.edges);
        let state = match &mut self.work {
            Work::Op { state, .. } => {
                match std::mem::replace(state.get_mut().unwrap_or_else(|e| e.into_inner()), State::Freed) {
                    State::Ready(s) => Some(s),
                    State::Freed => None,
                }
            }
            _ => None,
        };
        if edges.iter().all(Option::is_none) && state.is_none() {
            return;
        }
        // During thread teardown the list is gone; what is left then drops in place.
        let queued = PENDING.try_with(|p| p.borrow_mut().push((edges, state))).is_ok();
        if !queued || DRAINING.try_with(|d| d.replace(true)).unwrap_or(true) {
            return;
        }
        while let Ok(Some(item)) = PENDING.try_with(|p| p.borrow_mut().pop()) {
            drop(item);
        }
        let _ = DRAINING.try_with(|d| d.set(false));
    }
}
