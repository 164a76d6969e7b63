//! A node of the backward graph: a name, edges to the nodes that backward visits next, and what its formula needs.
//!
//! Note [Sequence numbers]: a node's number is larger than that of every node it has an edge to. The engine visits
//! nodes in decreasing order, which is a topological order without counting dependencies first. Each thread has its own
//! counter, advanced past every number it has seen (a Lamport clock), so that counting costs no locked instruction.

use super::foreign_refs::Owned;
use super::hooks::Hooks;
use super::saved::hooked;
use super::saved_args::{Kept, Place, State, reshaped};
use crate::error::{Error, Result};
use crate::op::gradient::{Saves, TensorMeta};
use crate::op::tracer::FormulaGuard;
use crate::op::{Call, Grad, OUT0, Op, Value, Vjp, VjpCtx};
use crate::rt::counters;
use crate::rt::counters::Count;
use crate::rt::emplace;
use crate::rt::thread_state::{ThreadState, thread_state};
use crate::tensor::{Edge, Foreign, GradFn, Tangents, Tensor};
use smallvec::SmallVec;
use std::any::Any;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

pub type Grads = SmallVec<[Option<Tensor>; 2]>;
/// One for each differentiable argument.
pub type Edges = SmallVec<[Option<Edge>; 2]>;

/// A backward written outside the op table: a Python `autograd.Function`.
pub trait Custom: Send + Sync {
    fn apply(&self, node: &Arc<Node>, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>>;
    /// Frees what was saved, after a backward that does not retain the graph.
    fn release(&self);
    fn as_any(&self) -> &dyn Any;
    /// Reports what it owns: objects of another runtime, saved tensors.
    fn owned(&self, _found: &mut Owned) {}
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
    /// The value was changed by an op without a gradient; using it in backward is an error.
    Fails(String),
}

/// What a node is called; that of an op is derived from its declaration when somebody asks.
pub enum Name {
    Text(Cow<'static, str>),
    Op(&'static Op),
    /// The in-place form of an op.
    InPlace(&'static Op),
}

pub struct Node {
    name: Name,
    pub seq: u64,
    pub work: Work,
    pub edges: Edges,
    /// Shape, dtype and device of each output of the forward op.
    pub outputs: SmallVec<[TensorMeta; 1]>,
    pub(super) rare: OnceLock<Box<Rare>>,
}

/// The number of a result, and its tangents.
type SavedTangents = (u32, Arc<Tangents>);

/// State that few nodes need.
#[derive(Default)]
pub(super) struct Rare {
    pub(super) hooks: Mutex<Hooks>,
    pub(super) python: OnceLock<Box<dyn Foreign>>,
    /// Forward-mode tangents of results, by output, for those that are saved.
    tangents: Mutex<SmallVec<[SavedTangents; 1]>>,
}

impl GradFn for Node {
    fn name(&self) -> Cow<'_, str> {
        self.name()
    }
    fn seq(&self) -> u64 {
        self.seq
    }
}

/// The smallest number of this thread's counter above `met`.
#[inline]
pub fn seq_after(thread: &ThreadState, met: u64) -> u64 {
    let seq = thread.clock.get().max(met) + 1;
    thread.clock.set(seq);
    seq
}

fn seq_of(thread: &ThreadState, edges: &Edges) -> u64 {
    seq_after(thread, edges.iter().flatten().map(Edge::seq).fold(0, u64::max))
}

impl Node {
    /// `MulBackward0`.
    pub fn name(&self) -> Cow<'_, str> {
        match &self.name {
            Name::Text(text) => Cow::Borrowed(text),
            Name::Op(op) => op.node_name(),
            Name::InPlace(op) => op.inplace_node_name(),
        }
    }
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        work: Work,
        edges: Edges,
        outputs: SmallVec<[TensorMeta; 1]>,
    ) -> Arc<Node> {
        thread_state(|thread| {
            let (name, seq) = (Name::Text(name.into()), seq_of(thread, &edges));
            counters::add_to(thread, Count::Nodes, 1);
            let node = Arc::new(Node { name, seq, work, edges, outputs, rare: OnceLock::new() });
            node.witnessed(thread);
            node
        })
    }
    fn witnessed(self: &Arc<Node>, thread: &ThreadState) {
        if thread.anomaly.get() > 0 {
            super::diagnostics::made(self);
        }
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
    /// The hooks, created on first use.
    pub fn hooks(&self) -> MutexGuard<'_, Hooks> {
        self.rare().hooks.lock().unwrap_or_else(|e| e.into_inner())
    }
    pub fn hooks_if_any(&self) -> Option<&Mutex<Hooks>> {
        self.rare.get().map(|r| &r.hooks)
    }
    /// The node's `metadata` dict, created by Python.
    pub fn python(&self) -> &OnceLock<Box<dyn Foreign>> {
        &self.rare().python
    }
    /// Keeps the tangents of a result for the saved result, which is another tensor when it is unpacked.
    pub(super) fn keep_tangents(&self, output: u32, cell: &Arc<Tangents>) {
        let saves = match &self.work {
            Work::Op { op, .. } => op.vjp.saves(|_| true) >= OUT0,
            work => matches!(work, Work::Custom(_)),
        };
        if saves {
            let mut list = self.rare().tangents.lock().unwrap_or_else(|e| e.into_inner());
            list.retain(|(i, _)| *i != output);
            list.push((output, cell.clone()));
        }
    }
    /// Gives an unpacked result the tangents that it had.
    pub fn restore_tangents(&self, output: u32, t: &Tensor) {
        let Some(rare) = self.rare.get() else { return };
        let list = rare.tangents.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, cell)) = list.iter().find(|(i, _)| *i == output) {
            t.share_tangents(cell.clone());
        }
    }
    fn rare(&self) -> &Rare {
        self.rare.get_or_init(Default::default)
    }
    /// Saves the outputs when hooks pack them: hooks see tensors with their history, so this runs after the history is
    /// set.
    pub fn pack_outputs(&self, outputs: &[Tensor]) -> Result<()> {
        let (true, Work::Op { op, state }) = (thread_state(hooked), &self.work) else { return Ok(()) };
        let mut packed = Kept::default();
        packed.outputs(wanted_saves(op, &self.edges), outputs)?;
        let mut state = state.lock().unwrap_or_else(|e| e.into_inner());
        state.get_or_insert_default().tensors.extend(packed.tensors);
        Ok(())
    }
    /// Frees saved tensors. A node that saved none can run again, as in PyTorch.
    pub fn release(&self) {
        match &self.work {
            Work::Op { state, .. } => {
                let mut s = state.lock().unwrap_or_else(|e| e.into_inner());
                let saved_any = s.as_ref().is_some_and(|kept| !kept.tensors.is_empty());
                if saved_any {
                    let old = s.take();
                    drop(s);
                    drop(old);
                }
            }
            Work::Custom(c) => c.release(),
            Work::CopySlices(c) => c.inner.release(),
            _ => {}
        }
    }
    /// Whether the node holds values of its call: false after a backward has freed them, or where none were saved.
    pub fn holds_values(&self) -> bool {
        match &self.work {
            Work::Op { state, .. } => {
                let kept = state.lock().unwrap_or_else(|e| e.into_inner());
                kept.as_ref().is_some_and(|kept| !kept.tensors.is_empty())
            }
            _ => true,
        }
    }
    /// Whether what it saved has been freed, so that it cannot run again.
    pub fn is_released(&self) -> bool {
        match &self.work {
            Work::Op { state, .. } => state.lock().unwrap_or_else(|e| e.into_inner()).is_none(),
            _ => false,
        }
    }
    /// Runs the formula: one gradient for each edge.
    pub fn apply(self: &Arc<Node>, grads: &[Option<Tensor>], wanted: u64) -> Result<Grads> {
        self.apply_as(self, grads, wanted)
    }
    /// `apply` with saved outputs that belong to another node: after a write to a view.
    pub fn apply_as(self: &Arc<Node>, owner: &Arc<Node>, grads: &[Option<Tensor>], wanted: u64) -> Result<Grads> {
        match &self.work {
            // Formulas are linear, so undefined gradients result in undefined ones.
            Work::Op { .. } if grads.iter().all(Option::is_none) => Ok(SmallVec::from_elem(None, self.edges.len())),
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
        let Unpacked { args, outputs, metas } = self.unpack(op, state, owner)?;
        // Other threads may own these tensors too, and this one does not hold the interpreter lock.
        let shared = args.iter().flat_map(Value::tensors).filter(|t| t.owners() > 1);
        let _pinned: SmallVec<[_; 2]> = shared.map(Tensor::pin).collect();
        let mut back = VjpCtx {
            call: Call { op, args: &args },
            grads,
            metas: &metas,
            outputs: &outputs,
            output_metas: &self.outputs,
            wanted: 0,
        };
        let _reported = FormulaGuard::new(Arc::as_ptr(self) as usize, op, wanted);
        gradients(&mut back, wanted)
    }

    /// Restores the call: arguments, the outputs that formulas read, and the metadata of its tensors.
    pub(super) fn unpack(
        self: &Arc<Node>,
        op: &'static Op,
        state: &Mutex<State>,
        owner: &Arc<Node>,
    ) -> Result<Unpacked> {
        // Unpack hooks run Python, and an error asks this node where it was created: release the lock first.
        let kept = state.lock().unwrap_or_else(|e| e.into_inner()).clone();
        let Some(kept) = kept else { return Err(freed()) };
        let mut metas: SmallVec<[(usize, TensorMeta); 2]> = SmallVec::new();
        metas.extend(bits(kept.like_output).map(|i| (i, self.outputs[0].clone())));
        metas.extend(kept.metas.into_iter().map(|(i, f)| (i as usize, f)));
        let params = op.sig.params().iter();
        let mut args: SmallVec<[Value; 3]> = params.map(|p| p.default_value(&op.sig).unwrap_or_default()).collect();
        // Tensors that no formula reads.
        metas.iter().for_each(|(i, _)| args[*i] = Value::None);
        for (i, v) in kept.plain {
            args[i as usize] = v;
        }
        let mut outputs: Grads = SmallVec::from_elem(None, self.outputs.len());
        let (mut list, mut nth) = (u32::MAX, 0);
        for (place, saved) in kept.tensors {
            let t = saved.unpack(owner, &self.outputs)?;
            if let Place::Input(i) | Place::Item(i, _) = place {
                (list, nth) = (i, if i == list { nth + 1 } else { 0 });
                let first = metas.iter().position(|(of, _)| *of == i as usize).unwrap_or(metas.len());
                if let Some((_, f)) = metas.get(first + nth).filter(|(_, f)| *f.shape != *t.shape()) {
                    return Err(reshaped(&t, &f.shape));
                }
            }
            match place {
                Place::Input(i) => args[i as usize] = Value::Owned(t),
                Place::Output(i) => {
                    self.restore_tangents(i, &t);
                    outputs[i as usize] = Some(t);
                }
                // `None` items of a list (`Tensor?[]`) keep their positions.
                Place::Item(i, item) => {
                    if let Value::Tensors(list) = &mut args[i as usize] {
                        list.resize(list.len().max(item as usize + 1), None);
                        list[item as usize] = Some(t);
                    }
                }
            }
        }
        Ok(Unpacked { args, outputs, metas })
    }
}

/// Runs the formulas of an op: one gradient for each edge.
pub(crate) fn gradients(back: &mut VjpCtx, wanted: u64) -> Result<Grads> {
    match &back.call.op.vjp {
        Vjp::Each(list) => {
            let one = |(i, g): (usize, &Grad)| (wanted & (1 << i) != 0).then(|| (g.formula)(back).ok()).transpose();
            list.iter().enumerate().map(one).collect()
        }
        Vjp::Zero(args) => {
            let zeros = |arg: usize| (super::engine_ops().zeros)(&back.meta_of(arg));
            let one = |(i, &arg): (usize, &usize)| (wanted & (1 << i) != 0).then(|| zeros(arg)).transpose();
            args.iter().enumerate().map(one).collect()
        }
        Vjp::Joint(j) => {
            back.wanted = wanted_args(j.args, back.call.args, back.metas, wanted);
            Ok((j.formula)(back)?.into())
        }
        _ => Err(Error::internal("a node was recorded for an op without a gradient")),
    }
}

/// The inputs of a formula.
pub(super) struct Unpacked {
    pub args: SmallVec<[Value<'static>; 3]>,
    pub outputs: Grads,
    pub metas: SmallVec<[(usize, TensorMeta); 2]>,
}

/// Positions of the set bits.
fn bits(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |i| mask & (1 << i) != 0)
}

/// Bits by edge -> bits by argument position (a list argument has one edge per item).
fn wanted_args(list: &[usize], args: &[Value], metas: &[(usize, TensorMeta)], wanted: u64) -> u32 {
    let (mut edge, mut out) = (0, 0u32);
    for &a in list {
        let n = if matches!(args[a], Value::Tensors(_)) { metas.iter().filter(|(i, _)| *i == a).count() } else { 1 };
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
pub fn record(thread: &ThreadState, call: &Call, outputs: &[Tensor]) -> Result<Arc<Node>> {
    if let Vjp::Missing = call.op.vjp {
        return Ok(missing(call, outputs, edges(call)?, ""));
    }
    recorded(thread, Name::Op(call.op), call, outputs, |edges| collect_edges(thread, call, edges))
}

/// Records a call in place, with edges that were collected before it changed its arguments.
pub fn record_inplace(call: &Call, outputs: &[Tensor], edges: Edges) -> Result<Arc<Node>> {
    if let Vjp::Missing = call.op.vjp {
        return Ok(missing(call, outputs, edges, "_"));
    }
    let connect = |place: &mut Edges| {
        *place = edges;
        Ok(())
    };
    thread_state(|thread| recorded(thread, Name::InPlace(call.op), call, outputs, connect))
}

/// The node of a call without a formula; `form` is PyTorch's suffix to the op's name.
fn missing(call: &Call, outputs: &[Tensor], edges: Edges, form: &str) -> Arc<Node> {
    let name = call.op.public().replace('.', "_");
    let refusal = Work::Fails(format!("derivative for aten::{name}{form} is not implemented"));
    Node::new("NotImplemented", refusal, edges, outputs.iter().map(TensorMeta::of).collect())
}

/// From now on a gradient that passes by `t` is an error.
pub fn refuse_gradient(t: &Tensor, message: String) -> Result<()> {
    let edge = super::history::grad_edge(t)?;
    let node =
        Node::new("Refused", Work::Fails(message), smallvec::smallvec![edge], smallvec::smallvec![TensorMeta::of(t)]);
    super::history::set_history(t, &node, 0);
    Ok(())
}

/// Saves exactly the tensors that formulas read. The node is constructed in place: it has some 400 bytes, and moving
/// them would cost as much as making them.
#[inline]
fn recorded(
    thread: &ThreadState,
    name: Name,
    call: &Call,
    outputs: &[Tensor],
    connect: impl FnOnce(&mut Edges) -> Result<()>,
) -> Result<Arc<Node>> {
    counters::add_to(thread, Count::Nodes, 1);
    let mut node = emplace::arc(|| Node {
        name,
        seq: 0,
        work: Work::Op { op: call.op, state: Mutex::new(Some(Kept::default())) },
        edges: Edges::new(),
        outputs: SmallVec::new(),
        rare: OnceLock::new(),
    });
    // SAFETY: it was just created and is not shared.
    let Node { work: Work::Op { state, .. }, outputs: made, edges, seq, .. } = (unsafe { emplace::new_mut(&mut node) })
    else {
        return Ok(node);
    };
    connect(edges)?;
    *seq = seq_of(thread, edges);
    let saves = wanted_saves(call.op, edges);
    outputs.iter().for_each(|t| emplace::push(made, || TensorMeta::of(t)));
    let kept = state.get_mut().unwrap_or_else(|e| e.into_inner()).get_or_insert_default();
    for (i, (v, p)) in call.args.iter().zip(call.op.sig.params()).enumerate() {
        kept.argument((i as u32, p), v, i < 16 && saves & (1 << i) != 0, made.first())?;
    }
    if !hooked(thread) {
        kept.outputs(saves, outputs)?;
    }
    node.witnessed(thread);
    Ok(node)
}

/// Only what the needed gradients read is saved: `w * x` saves only `x` if only `w` requires grad.
fn wanted_saves(op: &Op, edges: &[Option<Edge>]) -> Saves {
    op.vjp.saves(|i| edges.get(i).is_some_and(Option::is_some))
}

/// One edge for each differentiable argument; `None` for a number or a tensor without gradient.
pub fn edges(call: &Call) -> Result<Edges> {
    let mut edges = Edges::new();
    thread_state(|thread| collect_edges(thread, call, &mut edges)).map(|()| edges)
}

#[inline]
fn collect_edges(thread: &ThreadState, call: &Call, edges: &mut Edges) -> Result<()> {
    let connect = |i: usize| match &call.args[i] {
        Value::Tensors(list) => list.iter().flatten().try_for_each(|t| super::history::push_edge(thread, t, edges)),
        v => match v.as_tensor() {
            Some(t) => super::history::push_edge(thread, t, edges),
            None => {
                emplace::push(edges, || None);
                Ok(())
            }
        },
    };
    match &call.op.vjp {
        Vjp::Missing => call.all_tensors().try_for_each(|t| super::history::push_edge(thread, t, edges)),
        vjp => vjp.each_arg(connect),
    }
}
