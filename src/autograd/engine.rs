//! Backward: visits nodes in decreasing order of sequence number (Note [Sequence numbers]), sums their gradients, runs
//! their formulas.
//!
//! The traversal is a loop over a heap, so depth costs no stack. It does not need the interpreter lock; Python hooks
//! and custom functions acquire it themselves. Several threads may run backward over one graph: accumulation into a
//! leaf is locked.
//!
//! Note [Complete leaves]: a leaf's turn is its sequence number, which lies below most of the graph. It is visited
//! earlier, as in PyTorch, once a gradient came along every edge that leads to it: its hooks run then, and its pending
//! gradient is freed. A leaf knows how many edges lead to it from all graphs that live; those of other graphs only delay
//! it. If it has hooks, whose order is observable, the edges of this pass are counted, once, by a walk from its roots,
//! which the pass keeps, so that no edge goes.

use super::engine_ops;
use super::mode::{self, GradGuard};
use super::node::{Grads, Node, Work};
use super::{final_callbacks, forward, hooks, opaque, saved};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::layout::{Layout, contiguous_strides, same_dims};
use crate::op::tracer::{self, BackwardGuard, Change};
use crate::tensor::{Edge, HAS_FN, LEAF_GRAD, Tensor};
use smallvec::SmallVec;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Hashes addresses: a multiplication suffices, since they are distinct and aligned.
#[derive(Default)]
pub struct PointerHash(u64);
pub type PointerHasher = BuildHasherDefault<PointerHash>;
impl Hasher for PointerHash {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("only addresses are hashed")
    }
    fn write_usize(&mut self, p: usize) {
        self.0 = (self.0.rotate_left(5) ^ (p as u64 >> 4)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    /// A small integer hashed together with an address.
    fn write_i32(&mut self, i: i32) {
        self.0 = (self.0.rotate_left(5) ^ i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
type NodeMap<T> = HashMap<usize, T, PointerHasher>;
type NodeSet = HashSet<usize, PointerHasher>;

/// One backward pass.
pub struct Request<'a> {
    pub roots: Vec<(Edge, Tensor)>,
    pub keep_graph: bool,
    pub create_graph: bool,
    /// `Some`: only these receive gradients, which are returned or, with `accumulate`, added to their leaves.
    pub inputs: Option<&'a [Edge]>,
    pub accumulate: bool,
}

/// A node or leaf with pending gradients.
enum Target {
    Node(Arc<Node>),
    Leaf(Tensor),
}

type Gradients = SmallVec<[Option<Tensor>; 1]>;

struct Waiting {
    target: Target,
    grads: Gradients,
    /// How many edges delivered.
    came: usize,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Turn(u64, usize);

struct Pass<'a> {
    heap: BinaryHeap<Turn>,
    waiting: NodeMap<Waiting>,
    /// With `inputs`: the nodes on a path to one of them.
    needed: Option<NodeSet>,
    inputs: &'a [Edge],
    /// By key, which of `inputs` lead there.
    positions: NodeMap<SmallVec<[usize; 1]>>,
    accumulate: bool,
    captured: Vec<Option<Tensor>>,
    roots: &'a [Edge],
    /// By key of a leaf, how many edges of this pass lead to it; counted on first need.
    leaf_edges: Option<NodeMap<usize>>,
    /// Leaves whose gradients are complete: Note [Complete leaves].
    complete: SmallVec<[(Tensor, Gradients); 4]>,
}

static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Counts the running backward passes of all threads.
struct Running;
impl Running {
    fn new() -> Running {
        RUNNING.fetch_add(1, Ordering::AcqRel);
        Running
    }
}
impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::AcqRel);
    }
}
/// Whether a backward pass is running in any thread.
pub fn any_runs() -> bool {
    RUNNING.load(Ordering::Acquire) > 0
}

/// Runs backward. Returns the gradients of `request.inputs` in order (empty without inputs).
pub fn run(request: Request) -> Result<Vec<Option<Tensor>>> {
    if final_callbacks::depth() < NESTED { pass(request) } else { on_fresh_stack(request) }
}

/// Maximum nesting depth on one stack: hooks and custom functions may run backward themselves.
const NESTED: usize = 60;

/// Runs a pass on a new thread, with a fresh stack for Rust and for the interpreter; this thread waits for it.
#[cold]
fn on_fresh_stack(request: Request) -> Result<Vec<Option<Tensor>>> {
    let (inference, anomaly, hooks) = (mode::inference_enabled(), mode::anomaly(), saved::Modes::here());
    // Shared, so that the levels of forward mode return to this thread whatever becomes of the other.
    let levels = Mutex::new(Some(forward::Moved::away()));
    let take = || levels.lock().unwrap_or_else(|e| e.into_inner()).take();
    let there = || {
        mode::set_inference_enabled(inference);
        mode::set_anomaly(anomaly);
        hooks.set();
        take().into_iter().for_each(forward::Moved::here);
        let result = pass(request);
        *levels.lock().unwrap_or_else(|e| e.into_inner()) = Some(forward::Moved::away());
        result
    };
    let result = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(16 << 20).spawn_scoped(scope, there);
        let thread = thread.map_err(|e| Error::runtime(format!("backward: no thread for a nested pass: {e}")))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    take().into_iter().for_each(forward::Moved::here);
    result
}

fn pass(request: Request) -> Result<Vec<Option<Tensor>>> {
    let _mode = GradGuard::new(request.create_graph);
    let _reported = BackwardGuard::new();
    let _running = Running::new();
    let _installed = saved::Installed::so_far();
    let running = final_callbacks::Pass::enter(request.inputs.is_some());
    let inputs = request.inputs.unwrap_or(&[]);
    let mut positions = NodeMap::<SmallVec<[usize; 1]>>::default();
    for (i, edge) in inputs.iter().enumerate() {
        positions.entry(edge.key()).or_default().push(i);
    }
    let (roots, grads): (Vec<Edge>, Vec<Tensor>) = request.roots.into_iter().unzip();
    let mut pass = Pass {
        heap: BinaryHeap::new(),
        waiting: NodeMap::default(),
        needed: request.inputs.map(|i| needed(&roots, i)),
        inputs,
        positions,
        accumulate: request.accumulate || request.inputs.is_none(),
        captured: vec![None; inputs.len()],
        roots: &roots,
        leaf_edges: None,
        complete: SmallVec::new(),
    };
    for (i, (edge, grad)) in roots.iter().zip(grads).enumerate() {
        let grad = match_metadata(grad, edge, None, i)?;
        pass.deliver(edge, Some(grad))?;
    }
    pass.visit_complete()?;
    while let Some(Turn(_, key)) = pass.heap.pop() {
        match pass.waiting.remove(&key) {
            Some(Waiting { target: Target::Node(node), grads, .. }) => pass.visit(node, grads, request.keep_graph)?,
            Some(Waiting { target: Target::Leaf(leaf), grads, .. }) => pass.visit_leaf(&leaf, grads)?,
            None => {}
        }
    }
    running.finish()?;
    Ok(pass.captured)
}

impl Pass<'_> {
    /// Adds a gradient to those pending for a node or leaf. An undefined one adds nothing, but the node is still
    /// visited.
    fn deliver(&mut self, edge: &Edge, grad: Option<Tensor>) -> Result<()> {
        let key = edge.key();
        if self.needed.as_ref().is_some_and(|n| !n.contains(&key)) {
            return Ok(());
        }
        let edges = self.edges_to(edge, key);
        let waiting = match self.waiting.entry(key) {
            Entry::Occupied(e) => e.into_mut(),
            Entry::Vacant(_) if edges == 1 => {
                let Edge::Leaf(to) = edge else { unreachable!("only edges to leaves are counted") };
                self.complete.push((to.leaf().clone(), SmallVec::from_elem(grad, 1)));
                return Ok(());
            }
            Entry::Vacant(e) => {
                let (turn, inputs, target) = match edge {
                    Edge::Node(node, _) => {
                        let node = Node::of(node);
                        (node.seq, node.outputs.len(), Target::Node(node))
                    }
                    Edge::Leaf(to) => (to.leaf_seq(), 1, Target::Leaf(to.leaf().clone())),
                };
                self.heap.push(Turn(turn, key));
                let inputs = inputs.max(edge.output() as usize + 1);
                e.insert(Waiting { target, grads: SmallVec::from_elem(None, inputs), came: 0 })
            }
        };
        waiting.came += 1;
        let slot = &mut waiting.grads[edge.output() as usize];
        *slot = match (slot.take(), grad) {
            (Some(old), Some(grad)) => Some(opaque::add(&old, &grad)?),
            (old, grad) => old.or(grad),
        };
        if waiting.came == edges
            && let Some(Waiting { target: Target::Leaf(leaf), grads, .. }) = self.waiting.remove(&key)
        {
            self.complete.push((leaf, grads));
        }
        Ok(())
    }

    /// How many edges lead to a leaf, those that only the pass itself holds left out: Note [Complete leaves]; 0 for a node,
    /// whose edges are not counted.
    fn edges_to(&mut self, edge: &Edge, key: usize) -> usize {
        let Edge::Leaf(to) = edge else { return 0 };
        let own = self.positions.get(&key).map_or(0, |at| at.len());
        let alive = to.edges().saturating_sub(own);
        if alive <= 1 || !hooks::any_of_leaf(to.leaf()) {
            return alive;
        }
        let count = || leaf_edges(self.roots, self.needed.as_ref());
        self.leaf_edges.get_or_insert_with(count).get(&key).copied().unwrap_or(alive)
    }

    fn visit_complete(&mut self) -> Result<()> {
        std::mem::take(&mut self.complete).into_iter().try_for_each(|(leaf, grads)| self.visit_leaf(&leaf, grads))
    }

    fn visit(&mut self, node: Arc<Node>, mut grads: Gradients, keep: bool) -> Result<()> {
        let key = Arc::as_ptr(&node) as usize;
        let hooks = node.hooks_if_any();
        let wanted = self.wanted_edges(&node);
        let runs = self.needed.is_none() || wanted != 0 || self.accumulate && self.is_input(key);
        // If its node runs, an input of `grad` gets the gradient before the node's hooks have seen it, as in PyTorch.
        if runs {
            self.capture(key, &grads);
        }
        if let Some(h) = hooks {
            hooks::run_tensor_hooks(&node, h, &mut grads)?;
        }
        if !runs {
            self.capture(key, &grads);
            return Ok(());
        }
        if let Some(h) = hooks {
            hooks::run_before(h, &mut grads)?;
        }
        let mut results = evaluate(&node, &grads, wanted)?;
        if let Some(h) = node.hooks_if_any() {
            hooks::run_after(h, &mut results, &grads)?;
        }
        if !keep {
            node.release();
        }
        drop(grads);
        for (edge, grad) in node.edges.iter().zip(results) {
            if let Some(e) = edge {
                self.deliver(e, grad)?;
            }
        }
        self.visit_complete()
    }

    fn visit_leaf(&mut self, leaf: &Tensor, mut grads: Gradients) -> Result<()> {
        if let Some(hook) = hooks::own_hook(leaf, false)
            && let Some(new) = hook.gradient(grads[0].as_ref())?
        {
            grads[0] = Some(new);
        }
        if !self.accumulate {
            self.capture(leaf.id(), &grads);
            return Ok(());
        }
        if leaf.flag(HAS_FN) {
            return Err(Error::runtime("leaf variable has been moved into the graph interior"));
        }
        let node = leaf.accumulator().map(|n| Node::of(&n));
        let hooks = node.as_ref().and_then(|n| n.hooks_if_any());
        if let Some(h) = hooks {
            hooks::run_before(h, &mut grads)?;
        }
        let kept = if hooks.is_some() { grads.clone() } else { Gradients::new() };
        // A leaf frozen after its use gets no gradient.
        if let Some(grad) = grads[0].take().filter(|_| leaf.flag(LEAF_GRAD)) {
            accumulate(leaf, grad, !kept.is_empty())?;
        }
        if let Some(hook) = hooks::own_hook(leaf, true) {
            hook.accumulated(leaf)?;
        }
        hooks.map_or(Ok(()), |h| hooks::run_after(h, &mut SmallVec::new(), &kept))
    }

    fn is_input(&self, key: usize) -> bool {
        self.positions.contains_key(&key)
    }

    fn capture(&mut self, key: usize, grads: &[Option<Tensor>]) {
        for &i in self.positions.get(&key).into_iter().flatten() {
            self.captured[i] = grads.get(self.inputs[i].output() as usize).cloned().flatten();
        }
    }

    /// The edges whose gradients are needed.
    fn wanted_edges(&self, node: &Node) -> u64 {
        edge_bits(node, |e| self.needed.as_ref().is_none_or(|n| n.contains(&e.key())))
    }
}

/// Runs one node, under the current grad mode, on gradients of its outputs; returns one gradient per edge.
pub fn run_node(node: &Arc<Node>, grads: Vec<Option<Tensor>>) -> Result<Vec<Option<Tensor>>> {
    if let Work::Accumulate(leaf) = &node.work {
        if let Some(grad) = grads.into_iter().next().flatten().filter(|_| leaf.flag(LEAF_GRAD)) {
            accumulate(leaf, grad, false)?;
        }
        return Ok(Vec::new());
    }
    Ok(node.apply(&grads, edge_bits(node, |_| true))?.into_vec())
}

/// One bit for each of the first 64 edges that are needed; all ones beyond.
fn edge_bits(node: &Node, wanted: impl Fn(&Edge) -> bool) -> u64 {
    let mut bits = 0u64;
    for (i, edge) in node.edges.iter().enumerate() {
        if edge.as_ref().is_some_and(&wanted) {
            bits |= if i < 64 { 1 << i } else { u64::MAX };
        }
    }
    bits
}

/// Runs the node and fits its gradients to the targets of its edges.
fn evaluate(node: &Arc<Node>, grads: &[Option<Tensor>], wanted: u64) -> Result<Grads> {
    let mut results = match mode::anomaly() {
        0 => node.apply(grads, wanted)?,
        level => super::diagnostics::watched(node, || {
            let results = node.apply(grads, wanted)?;
            if level >= 2 { check_nan(node, &results) } else { Ok(()) }.map(|()| results)
        })?,
    };
    if results.len() < node.edges.len() {
        return Err(Error::runtime(format!(
            "function {} returned an incorrect number of gradients (expected {}, got {})",
            node.name(),
            node.edges.len(),
            results.len()
        )));
    }
    for (i, (edge, grad)) in node.edges.iter().zip(results.iter_mut()).enumerate() {
        // The node's hooks see gradients without a target too.
        let Some(e) = edge else { continue };
        let Some(g) = grad.take() else { continue };
        *grad = Some(match_metadata(g, e, Some(node), i)?);
    }
    Ok(results)
}

/// The nodes from which one of `inputs` is reachable, including the inputs' own.
fn needed(roots: &[Edge], inputs: &[Edge]) -> NodeSet {
    let mut seen = NodeSet::default();
    let mut all: Vec<Arc<Node>> = Vec::new();
    let mut stack: Vec<Arc<Node>> = roots.iter().filter_map(Edge::node).map(Node::of).collect();
    while let Some(n) = stack.pop() {
        if seen.insert(Arc::as_ptr(&n) as usize) {
            stack.extend(n.edges.iter().flatten().filter_map(Edge::node).map(Node::of));
            all.push(n);
        }
    }
    let mut out: NodeSet = inputs.iter().map(Edge::key).collect();
    all.sort_unstable_by_key(|n| n.seq);
    for n in &all {
        if n.edges.iter().flatten().any(|e| out.contains(&e.key())) {
            out.insert(Arc::as_ptr(n) as usize);
        }
    }
    out
}

/// How many edges of the graph behind `roots`, the roots included, lead to each leaf.
fn leaf_edges(roots: &[Edge], needed: Option<&NodeSet>) -> NodeMap<usize> {
    let mut counts = NodeMap::default();
    let mut seen = NodeSet::default();
    let mut open: Vec<Arc<Node>> = Vec::new();
    let mut follow = |edge: &Edge, open: &mut Vec<Arc<Node>>| {
        let key = edge.key();
        match edge.node() {
            None => *counts.entry(key).or_default() += 1,
            Some(node) if needed.is_none_or(|n| n.contains(&key)) && seen.insert(key) => open.push(Node::of(node)),
            Some(_) => {}
        }
    };
    roots.iter().for_each(|edge| follow(edge, &mut open));
    while let Some(node) = open.pop() {
        node.edges.iter().flatten().for_each(|edge| follow(edge, &mut open));
    }
    counts
}

/// Whether the graph behind `roots` leads to a leaf that is none of `inputs`, on a path around them.
pub fn reaches_others(roots: &[Edge], inputs: &[Edge]) -> bool {
    let place = |e: &Edge| (e.key(), e.output() as i32);
    let stops: HashSet<(usize, i32), PointerHasher> = inputs.iter().map(place).collect();
    let mut seen = NodeSet::default();
    let mut open: Vec<Edge> = roots.to_vec();
    while let Some(edge) = open.pop() {
        if stops.contains(&place(&edge)) {
            continue;
        }
        let Some(node) = edge.node().map(Node::of) else { return true };
        if let Work::Accumulate(_) = node.work {
            return true;
        }
        if seen.insert(Arc::as_ptr(&node) as usize) {
            open.extend(node.edges.iter().flatten().cloned());
        }
    }
    false
}

/// Makes a gradient fit what `edge` leads to: sums broadcast dimensions, takes the real part, casts. `maker`: the node that
/// returned it; none where the caller gave it.
fn match_metadata(grad: Tensor, edge: &Edge, maker: Option<&Node>, index: usize) -> Result<Tensor> {
    match edge {
        Edge::Node(target, output) => match Node::of_ref(target).outputs.get(*output as usize) {
            Some(f) => match_shape_dtype(opaque::seen(grad)?, (&f.shape, f.dtype, f.device), maker, index),
            None => Ok(grad),
        },
        Edge::Leaf(to) => {
            let (leaf, own) = (to.leaf(), grad.dtype());
            match_shape_dtype(grad, (leaf.shape(), leaf.grad_dtype().unwrap_or(own), leaf.device()), maker, index)
        }
    }
}

pub(crate) fn match_shape_dtype(
    grad: Tensor,
    wanted: (&[usize], DType, Device),
    maker: Option<&Node>,
    index: usize,
) -> Result<Tensor> {
    let (shape, dtype, device) = wanted;
    if grad.dtype() == dtype && grad.shape() == shape && grad.device() == device {
        return Ok(grad);
    }
    let invalid = |problem: String| {
        let returned = maker.map_or(String::new(), |node| format!("Function {} returned an ", node.name()));
        Error::runtime(format!("{returned}invalid gradient at index {index} - {problem}"))
    };
    let mut g = grad;
    if g.dtype() == dtype && g.shape() == shape && opaque::is_opaque(&g) {
        return Ok(g);
    }
    if g.device() != device {
        return Err(invalid(format!("expected device {device} but got {}", g.device())));
    }
    if g.shape() != shape {
        let fits = crate::layout::broadcast(g.shape(), shape).is_ok_and(|s| s.as_slice() == g.shape());
        if !fits {
            return Err(invalid(format!("got {} but expected shape compatible with {}", Show(g.shape()), Show(shape))));
        }
        g = (engine_ops().sum_to)(&g, shape)?;
    }
    if g.dtype().is_complex() && !dtype.is_complex() {
        g = (engine_ops().real)(&g)?;
    }
    if g.dtype() != dtype { (engine_ops().cast)(&g, dtype) } else { Ok(g) }
}

/// Serialises accumulation across threads, so that concurrent backward calls lose no gradients.
static ACCUMULATE: Mutex<()> = Mutex::new(());

/// Adds to `.grad`. The object in `.grad` stays the same unless the accumulation itself is recorded, and keeps its own history, as in
/// PyTorch. `kept`: the caller has another handle to `grad`, which post-hooks see as it is in `.grad`.
fn accumulate(leaf: &Tensor, mut grad: Tensor, kept: bool) -> Result<()> {
    let lock = || ACCUMULATE.lock().unwrap_or_else(|e| e.into_inner());
    let (mut _turn, mut old) = (lock(), leaf.grad());
    let on_meta = |t: &Tensor| t.device() == Device::Meta;
    if on_meta(&grad) || old.as_ref().is_some_and(on_meta) {
        // Whose class decides is asked under the interpreter's lock, and under none of ours.
        drop(_turn);
        if opaque::accumulate(leaf, old.as_ref(), &grad)? {
            return Ok(());
        }
        (_turn, old) = (lock(), leaf.grad());
    }
    let recorded = super::grad_enabled();
    match old {
        None => {
            let wanted = grad_layout(leaf);
            let fits = grad.layout().offset == 0 && grad.layout().lies_as(&wanted.strides);
            // Who captures the pass does not see that a view becomes a tensor of its own. A copy has the leaf's strides, in
            // dimensions of size one too.
            let like_a_copy = !tracer::enabled() && grad.layout().strides == wanted.strides;
            let ours = fits && !recorded && grad.owners() == 1 + usize::from(kept);
            if ours && like_a_copy {
                grad.leave_base();
            }
            let grad = if ours && grad.storage().owners() == 1 { grad } else { copied(&grad, wanted)? };
            leaf.set_grad(Some(grad));
            tracer::notify(|t| t.changed(leaf, Change::Grad));
        }
        Some(old) if !recorded => {
            let _pinned = (old.pin(), grad.pin());
            (engine_ops().add_)(&old, &grad)?
        }
        Some(old) => {
            leaf.set_grad(Some((engine_ops().add)(&old, &grad)?));
            tracer::notify(|t| t.changed(leaf, Change::Grad));
        }
    }
    Ok(())
}

/// A gradient has its leaf's strides if those are dense, so that optimisers iterate over both alike; else it is
/// row-major.
fn grad_layout(leaf: &Tensor) -> Layout {
    let l = leaf.layout();
    let strides = if l.is_dense() { same_dims(&l.strides) } else { contiguous_strides(&l.shape) };
    Layout { shape: same_dims(&l.shape), strides, offset: 0 }
}

/// A recorded copy of a gradient in new memory, as in PyTorch's graph.
fn copied(grad: &Tensor, layout: Layout) -> Result<Tensor> {
    // Who captures the pass sees the op that makes the memory; otherwise the memory is enough.
    let fresh = match tracer::enabled() {
        true => (engine_ops().empty)(&layout, grad)?,
        false => Tensor::of_layout(layout, grad.dtype(), grad.device())?,
    };
    (engine_ops().copy_)(&fresh, grad)?;
    Ok(fresh)
}

fn check_nan(node: &Node, results: &[Option<Tensor>]) -> Result<()> {
    for (i, g) in results.iter().enumerate() {
        if let Some(g) = g
            && !opaque::is_opaque(g)
            && (engine_ops().has_nan)(g)?
        {
            return Err(Error::runtime(format!("Function '{}' returned nan values in its {i}th output.", node.name())));
        }
    }
    Ok(())
}
