//! Gradient edges of tensors, and how in-place writes rewrite history.
//!
//! Note [View history]: the base of a family of views owns the history of their storage. An in-place write to a view
//! gives the base a new node, `CopySlices`, which applies the op's backward to the view's part of the gradient. A view
//! whose recorded version is older than the storage's then regenerates its history from the base (`AsStrided`, or the
//! same view ops again if the dtype changed on the way).

use super::engine_ops;
use super::node::{Edges, Grads, Node, Work};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::op::gradient::TensorMeta;
use crate::op::{Args, Call, Ints, Op, Value};
use crate::rt::emplace;
use crate::rt::thread_state::{ThreadState, thread_state};
use crate::storage::Storage;
use crate::tensor::slot::Creation;
use crate::tensor::{
    Edge, GradFn, HAS_FN, INFERENCE, LEAF_GRAD, LeafEdge, Meta, RETAINS, Remake, Replay, Tensor, ViewInfo,
};
use smallvec::{SmallVec, smallvec};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The edge from a node that uses `t`: to the node that produced it, or to `t` itself if it is a leaf. `None`: no
/// gradient.
pub fn grad_edge(t: &Tensor) -> Result<Option<Edge>> {
    let mut edges = Edges::new();
    thread_state(|thread| push_edge(thread, t, &mut edges))?;
    Ok(edges.pop().flatten())
}

/// Pushes the `grad_edge` of `t`, constructed in place, since moving it would cost more than making it.
#[inline]
pub fn push_edge(thread: &ThreadState, t: &Tensor, edges: &mut Edges) -> Result<()> {
    refresh_view(t)?;
    if t.flag(HAS_FN) {
        emplace::push(edges, || t.slot().grad_fn.clone());
    } else if t.flag(LEAF_GRAD) {
        emplace::push(edges, || Some(Edge::Leaf(LeafEdge::new(t, || super::node::seq_after(thread, 0)))));
    } else {
        // Also for a view created without recording, although it requires grad if its base does.
        emplace::push(edges, || None);
    }
    Ok(())
}

/// The node an edge leads to, with the input number; for a leaf it is created here (Note [Leaves] in `tensor::slot`).
pub fn target(edge: &Edge) -> (Arc<Node>, u32) {
    match edge {
        Edge::Node(node, output) => (Node::of(node), *output),
        Edge::Leaf(to) => (accumulator(to.leaf()), 0),
    }
}

fn accumulator(leaf: &Tensor) -> Arc<Node> {
    if let Some(known) = leaf.accumulator() {
        return Node::of(&known);
    }
    let work = Work::Accumulate(leaf.clone());
    let node = Node::new("AccumulateGrad", work, SmallVec::new(), smallvec![TensorMeta::of(leaf)]);
    let shared: Arc<dyn GradFn> = node.clone();
    leaf.set_accumulator(Some(&shared));
    node
}

/// `grad_fn` as Python sees it: `None` for leaves.
pub fn grad_fn(t: &Tensor) -> Result<Option<Edge>> {
    refresh_view(t)?;
    Ok(t.slot().grad_fn.clone())
}

/// Makes `node` the `grad_fn` of `t`.
pub fn set_history(t: &Tensor, node: &Arc<Node>, output: usize) {
    t.set_grad_fn(Edge::Node(node.clone(), output as u32));
}

/// See Note [View history].
fn refresh_view(t: &Tensor) -> Result<()> {
    let Some(view) = t.view_info() else { return Ok(()) };
    let now = t.version();
    if view.version.load(Ordering::Acquire) == now || !view.base.requires_grad() {
        return Ok(());
    }
    check_creation(t, view, "its base or another view of its base has been")?;
    t.set_grad_fn(view_edge(t, view)?);
    view.version.store(now, Ordering::Release);
    follow_retained(t)
}

/// The edge of the view, remade from the current base.
fn view_edge(t: &Tensor, view: &ViewInfo) -> Result<Edge> {
    let _recording = super::GradGuard::new(true);
    let fresh = match t.replay() {
        Some(again) => again.remake(&view.base)?,
        None => window(&view.base, t.layout(), t.layout().offset as i64)?,
    };
    let edge = fresh.slot().grad_fn.clone();
    edge.ok_or_else(|| Error::internal("a view of a tensor with history has none"))
}

/// A tensor over the same storage, with `layout` at another offset.
fn window(of: &Tensor, layout: &Layout, offset: i64) -> Result<Tensor> {
    let geometry = of.layout().strides.iter().chain([&of.layout().offset]).map(|&s| s as i64).collect::<Ints>();
    engine_ops().as_strided.call((of, &*layout.shape, &*layout.strides, offset, geometry)).ok()
}

/// `window` for a tensor at a different offset than the one `layout` was taken from, whose offset was `from`.
fn moved_window(of: &Tensor, layout: &Layout, from: usize) -> Result<Tensor> {
    window(of, layout, of.layout().offset as i64 + layout.offset as i64 - from as i64)
}

/// The part of `of` that the view `t` is of its base; `of` lies in memory as the base does.
pub(super) fn same_view(t: &Tensor, view: &ViewInfo, of: &Tensor) -> Result<Tensor> {
    match t.replay() {
        Some(again) => again.remake(of),
        None => moved_window(of, t.layout(), view.base.layout().offset),
    }
}

/// How to remake a new view of `whole` from its base; `None` if strides over the base suffice.
pub fn replay(call: &Call, whole: &Tensor, layout: &Layout, dtype: DType) -> Option<Replay> {
    let parent = whole.view_info();
    let before = whole.replay();
    let same_type = whole.dtype() == dtype;
    if same_type && before.is_none() {
        return None;
    }
    let before: Option<Arc<dyn Any + Send + Sync>> = before.map(|b| b as _);
    let before = match before.and_then(|b| b.downcast::<Chain>().ok()) {
        None if !same_type && parent.is_some() => {
            let start = parent.map_or(0, |v| v.base.layout().offset);
            Some(Arc::new(Chain { before: None, step: Step::Window { to: whole.layout().clone(), from: start } }))
        }
        known => known,
    };
    let step = match same_type {
        true => Step::Window { to: layout.clone(), from: whole.layout().offset },
        false => Step::Call(call.op, call.args.iter().skip(1).map(|v| v.clone().into_owned()).collect()),
    };
    Some(Arc::new(Chain { before, step }))
}

/// The steps from the base to a view. A chain may be long, so it is applied and dropped in loops.
struct Chain {
    before: Option<Arc<Chain>>,
    step: Step,
}

enum Step {
    /// The window with layout `to`, relative to a tensor whose offset was `from`.
    Window { to: Layout, from: usize },
    /// A view op with its arguments after the first.
    Call(&'static Op, Vec<Value<'static>>),
}

impl Remake for Chain {
    fn remake(&self, base: &Tensor) -> Result<Tensor> {
        let steps: Vec<&Chain> = std::iter::successors(Some(self), |c| c.before.as_deref()).collect();
        steps.iter().rev().try_fold(base.clone(), |whole, chain| match &chain.step {
            Step::Window { to, from } => moved_window(&whole, to, *from),
            Step::Call(op, args) => {
                let all: Args = [Value::Tensor(&whole)].into_iter().chain(args.iter().map(|v| v.reborrow())).collect();
                op.call(all).ok()
            }
        })
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(mut chain) = next {
            next = Arc::get_mut(&mut chain).and_then(|c| c.before.take());
        }
    }
}

/// If strides over the base cannot remake the view `t`: records how to, once `t` itself has another layout.
pub fn replay_as(t: &Tensor, layout: &Layout) {
    let before: Option<Arc<dyn Any + Send + Sync>> = t.replay().map(|r| r as _);
    if let Some(before) = before.and_then(|b| b.downcast::<Chain>().ok()) {
        let step = Step::Window { to: layout.clone(), from: t.layout().offset };
        t.set_replay(Arc::new(Chain { before: Some(before), step }));
    }
}

/// Checks that the memory of `t` may be written.
pub fn check_writable(t: &Tensor) -> Result<()> {
    check_places(t)?;
    check_memory(t)
}

/// Checks that no two elements share memory.
fn check_places(t: &Tensor) -> Result<()> {
    if t.layout().has_internal_overlap() {
        return Err(Error::runtime(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. \
             Please clone() the tensor before performing the operation.",
        ));
    }
    Ok(())
}

/// The memory does not belong to a read-only array.
pub fn check_memory(t: &Tensor) -> Result<()> {
    if t.storage().is_read_only() {
        return Err(Error::runtime(
            "the tensor's memory is read-only (it belongs to a read-only array); expected writable memory. Clone it first.",
        ));
    }
    Ok(())
}

/// Inference tensors are not written outside inference mode.
pub fn check_inference(t: &Tensor) -> Result<()> {
    if t.flag(INFERENCE) && !super::mode::inference_enabled() {
        return Err(Error::runtime(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor \
             before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.",
        ));
    }
    Ok(())
}

/// Checks that `t` may be changed in place; PyTorch's errors if its history forbids it.
pub fn check_inplace(t: &Tensor, tracked: bool) -> Result<()> {
    check_inference(t)?;
    if !tracked {
        return Ok(());
    }
    if let Some(view) = t.view_info() {
        check_creation(t, view, "is being")?;
        if t.requires_grad() && view.base.is_leaf() {
            return Err(Error::runtime(
                "a view of a leaf Variable that requires grad is being used in an in-place operation. \
                 Wrap the call in no_grad(), or write to a clone.",
            ));
        }
    }
    if t.is_leaf() && t.requires_grad() {
        return Err(Error::runtime(
            "a leaf Variable that requires grad is being used in an in-place operation. \
             Wrap the call in no_grad(), or write to a clone.",
        ));
    }
    Ok(())
}

/// PyTorch's errors if the way a view was created forbids recorded writes to it or its base.
fn check_creation(t: &Tensor, view: &ViewInfo, what: &str) -> Result<()> {
    let creation = view.creation.load(Ordering::Acquire);
    if creation == Creation::Default as u8 {
        return Ok(());
    }
    let made_by = t.slot().grad_fn.as_ref().map(|e| (e.output(), e.name().to_string()));
    Err(Error::runtime(forbidden_write(creation, made_by, what)))
}

/// A node's name as in PyTorch's messages: `Mul` for `MulBackward0`.
pub fn short_name(node: &str) -> &str {
    node.rfind("Backward").map_or(node, |i| &node[..i])
}

#[cold]
fn forbidden_write(creation: u8, made_by: Option<(u32, String)>, what: &str) -> String {
    let inference = creation == Creation::Inference as u8;
    // A view without a node was created while nothing was recorded, whatever its `creation`.
    let unrecorded = inference || creation == Creation::NoGrad as u8 || made_by.is_none();
    let view = match &made_by {
        Some((i, n)) => format!("Output {i} of {} is a view", short_name(n)),
        None => "A view".into(),
    };
    let of_view = if made_by.is_some() { " of a view which" } else { "" };
    let header = match (unrecorded, inference) {
        (false, _) => format!("{view} and {what} modified inplace."),
        (_, true) => {
            format!("{view}{of_view} was created in inference mode and {what} modified inplace in normal mode.")
        }
        _ => format!("{view}{of_view} was created in no_grad mode and {what} modified inplace with grad mode enabled."),
    };
    let why = if creation == Creation::MultiOutput as u8 {
        "This view is the output of a function that returns multiple views. Such functions do not allow the output views \
         to be modified inplace. You should replace the inplace operation by an out-of-place one."
            .into()
    } else if creation == Creation::Custom as u8 {
        "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic \
         to handle view+inplace would override the custom backward associated with the custom Function, leading to \
         incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
            .into()
    } else {
        let block = if inference { "inference_mode" } else { "no_grad" };
        format!(
            "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving \
             both the view and the inplace either both inside the {block} block (if you don't want the inplace to be \
             tracked) or both outside (if you want the inplace to be tracked)."
        )
    };
    format!("{header} {why}")
}

/// After an in-place op on `t` recorded as `node`: rewrites the history of `t`, or of its base.
pub fn rebase(t: &Tensor, node: &Arc<Node>) -> Result<()> {
    match t.view_info() {
        None => set_history(t, node, 0),
        Some(view) => {
            let base = &view.base;
            let before = grad_edge(base)?;
            let mut edges: Edges = smallvec![before];
            edges.extend(node.edges.iter().skip(1).cloned());
            let part = Part { base: base.layout().clone(), view: t.layout().clone(), replay: t.replay() };
            let work = Work::CopySlices(Box::new(CopySlices { inner: node.clone(), part }));
            let copy = Node::new("CopySlices", work, edges, smallvec![TensorMeta::of(base)]);
            set_history(base, &copy, 0);
            t.set_grad_fn(view_edge(t, view)?);
            view.version.store(t.version(), Ordering::Release);
            follow_retained(base)?;
        }
    }
    follow_retained(t)
}

/// `retain_grad` refers to the tensor's current value: after its history changed, it moves to the new node.
pub fn follow_retained(t: &Tensor) -> Result<()> {
    if t.flag(RETAINS) { super::hooks::attach_retain(t) } else { Ok(()) }
}

/// The layout of a view and of its base at the time of the write.
struct Part {
    base: Layout,
    view: Layout,
    replay: Option<Replay>,
}

impl Part {
    /// Memory with the base's layout, in which the view has the same position as in the base.
    fn like_base(&self, dtype: DType, device: Device) -> Result<Tensor> {
        let layout = Layout { offset: 0, ..self.base.clone() };
        let bytes = layout.end() * dtype.size();
        // Gaps that a view may cover have zero gradient.
        let storage = if layout.is_dense() { Storage::alloc(bytes, device)? } else { Storage::zeroed(bytes, device)? };
        Ok(Tensor::from_meta(Meta { storage, layout, dtype }))
    }
    /// The view's part of a tensor that has the base's layout.
    fn of(&self, base: &Tensor) -> Result<Tensor> {
        match &self.replay {
            Some(again) => again.remake(base),
            None => moved_window(base, &self.view, self.base.offset),
        }
    }
}

/// The backward of an in-place op on a view, seen from the base.
pub struct CopySlices {
    pub inner: Arc<Node>,
    part: Part,
}

impl CopySlices {
    /// The view's part of the gradient goes through the op's backward; the rest passes through unchanged.
    pub fn apply(&self, node: &Arc<Node>, grads: &[Option<Tensor>], wanted: u64) -> Result<Grads> {
        let k = engine_ops();
        let Some(grad) = &grads[0] else { return Ok(SmallVec::from_elem(None, self.inner.edges.len().max(1))) };
        let result = self.part.like_base(grad.dtype(), grad.device())?;
        (k.copy_)(&result, grad)?;
        let part = self.part.of(&result)?;
        let inside = (k.clone)(&part)?;
        let owner = self.view_node(node, &result)?;
        let mut out = self.inner.apply_as(&owner, &[Some(inside)], wanted)?;
        if wanted & 1 == 0 {
            return Ok(out);
        }
        let zero = || Tensor::zeros(&[], part.dtype(), part.device());
        let first = out.first_mut().and_then(Option::take).map_or_else(zero, Ok)?;
        (k.copy_)(&part, &first)?;
        match out.first_mut() {
            Some(slot) => *slot = Some(result),
            None => out.push(Some(result)),
        }
        Ok(out)
    }

    /// The node of the written view, which a saved result must name when gradients are recorded: a view of this node's
    /// output. It is created on demand, since it points to this node and so must not be owned by it.
    fn view_node(&self, node: &Arc<Node>, like: &Tensor) -> Result<Arc<Node>> {
        if !super::grad_enabled() {
            return Ok(self.inner.clone());
        }
        let base = self.part.like_base(like.dtype(), like.device())?;
        set_history(&base, node, 0);
        let edge = self.part.of(&base)?.slot().grad_fn.clone();
        edge.as_ref()
            .and_then(Edge::node)
            .map(Node::of)
            .ok_or_else(|| Error::internal("a view of a tensor with history has none"))
    }
}
