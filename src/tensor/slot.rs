//! The autograd slot of a tensor: its gradient, the edge to its node, its hooks, and its base if it is a view.
//!
//! The graph itself lives in `autograd`; this is only what a tensor holds of it, behind the trait `GradFn`.
//!
//! Note [Leaves]: an edge to a leaf points to the leaf itself, without a node in between. Such edges are counted, and
//! the first one assigns `leaf_seq`, a sequence number below that of every node with an edge to it. The
//! `AccumulateGrad` that programs see is created on demand and lives as long as there are edges to the leaf, as
//! PyTorch's does.

use super::tangents::Tangents;
use super::{ACCUMULATES, GRAD_DTYPE, HAS_FN, INFERENCE, Meta, REPLAYED, Tensor};
use crate::dtype::DType;
use crate::error::Result;
use crate::rt::emplace;
use std::any::Any;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Weak};

/// A node of the backward graph, as tensors see it.
pub trait GradFn: Any + Send + Sync {
    /// PyTorch's name: `AddBackward0`.
    fn name(&self) -> std::borrow::Cow<'_, str>;
    /// Its sequence number, above those of all that its edges lead to.
    fn seq(&self) -> u64;
}

/// The target of an edge.
#[derive(Clone)]
pub enum Edge {
    /// Input number `output` of a node: the gradient of the forward op's output with that number.
    Node(Arc<dyn GradFn>, u32),
    Leaf(LeafEdge),
}

impl Edge {
    /// Identifies the target: its address.
    pub fn key(&self) -> usize {
        match self {
            Edge::Node(node, _) => Arc::as_ptr(node).cast::<()>() as usize,
            Edge::Leaf(leaf) => leaf.0.id(),
        }
    }
    pub fn node(&self) -> Option<&Arc<dyn GradFn>> {
        match self {
            Edge::Node(node, _) => Some(node),
            Edge::Leaf(_) => None,
        }
    }
    pub fn output(&self) -> u32 {
        match self {
            Edge::Node(_, output) => *output,
            Edge::Leaf(_) => 0,
        }
    }
    /// The engine visits targets in decreasing order of this number.
    #[inline]
    pub fn seq(&self) -> u64 {
        match self {
            Edge::Node(node, _) => node.seq(),
            Edge::Leaf(leaf) => leaf.leaf_seq(),
        }
    }
    /// The name of the node, which for a leaf need not be there.
    pub fn name(&self) -> std::borrow::Cow<'_, str> {
        self.node().map_or("AccumulateGrad".into(), |n| n.name())
    }
}

/// An edge to a leaf; see Note [Leaves].
pub struct LeafEdge(Tensor);

impl LeafEdge {
    /// `leaf_seq` is called for a sequence number if no other edge to the leaf exists.
    #[inline]
    pub fn new(leaf: &Tensor, leaf_seq: impl Fn() -> u64) -> LeafEdge {
        if leaf.0.uses.enter(leaf_seq) {
            leaf.keep_accumulator();
        }
        LeafEdge(leaf.clone())
    }
    pub fn leaf(&self) -> &Tensor {
        &self.0
    }
    pub fn leaf_seq(&self) -> u64 {
        self.0.0.uses.leaf_seq()
    }
    /// How many edges lead to the leaf, this one among them.
    pub fn edges(&self) -> usize {
        self.0.0.uses.count()
    }
}

impl Clone for LeafEdge {
    fn clone(&self) -> LeafEdge {
        self.0.0.uses.copy();
        LeafEdge(self.0.clone())
    }
}

impl Drop for LeafEdge {
    #[inline]
    fn drop(&mut self) {
        if self.0.0.uses.leave() {
            self.0.keep_accumulator();
        }
    }
}

/// Receives objects of another runtime with a cycle collector.
pub type Visit<'a> = dyn FnMut(*mut c_void) + 'a;

/// A value that belongs to another runtime.
pub trait Foreign: Any + Send + Sync {
    /// Visits each reference that it owns.
    fn owned(&self, visit: &mut Visit);
}

pub type Gradients = Vec<Option<Tensor>>;

/// User callbacks attached to a tensor or a node. All hooks of one kind are one value, which calls them in order; a
/// returned value replaces the arguments, with the same number and kinds.
pub trait Hook: Foreign {
    /// Called with the gradient of a tensor, which may be undefined.
    fn gradient(&self, grad: Option<&Tensor>) -> Result<Option<Tensor>>;
    /// Called after the gradient of a leaf was accumulated.
    fn accumulated(&self, leaf: &Tensor) -> Result<()>;
    /// Called before a node runs, with the incoming gradients.
    fn before(&self, grads: &[Option<Tensor>]) -> Result<Option<Gradients>>;
    /// Called after a node ran, with the gradients it returned and received.
    fn after(&self, results: &[Option<Tensor>], grads: &[Option<Tensor>]) -> Result<Option<Gradients>>;
}

#[derive(Default)]
pub struct Slot {
    pub grad: Option<Tensor>,
    pub grad_fn: Option<Edge>,
    pub rare: Option<Box<Rare>>,
}

/// State that few tensors need.
#[derive(Default)]
pub struct Rare {
    /// On the tensor's gradient. For a non-leaf they are also registered on its node.
    pub hooks: Option<Arc<dyn Hook>>,
    pub post_accumulate: Option<Arc<dyn Hook>>,
    /// Python attributes and class, kept while the Python object does not exist.
    pub python: Option<Box<dyn Foreign>>,
    pub name: Option<String>,
    /// Of forward mode.
    pub tangents: Option<Arc<Tangents>>,
    /// With the flag `GRAD_DTYPE`: the dtype of the gradient; `None` means any.
    pub grad_dtype: Option<DType>,
    accumulator: Accumulator,
    /// With the flag `REPLAYED`: how to remake the view after `t_()` or a similar op changed it.
    replay: Option<Replay>,
}

/// The `AccumulateGrad` of a leaf. It owns the leaf, so the leaf owns it only while edges exist, which own the leaf
/// too.
#[derive(Default)]
struct Accumulator {
    known: Option<Weak<dyn GradFn>>,
    kept: Option<Arc<dyn GradFn>>,
}

/// Drops the gradients of gradients of a dropped tensor: in a loop, since the chain may be long.
#[inline]
pub(super) fn unchain(t: &mut super::TensorImpl) {
    let mut next = t.slot.get_mut().unwrap_or_else(|e| e.into_inner()).grad.take();
    while let Some(mut grad) = next {
        next = Arc::get_mut(&mut grad.0).and_then(|g| g.slot.get_mut().unwrap_or_else(|e| e.into_inner()).grad.take());
    }
}

impl Slot {
    pub fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_with(Default::default)
    }
}

/// How a view was created, which determines what an in-place write to it may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Creation {
    Default = 0,
    NoGrad = 1,
    MultiOutput = 2,
    Custom = 3,
    Inference = 4,
}

/// Remakes a view from its base where strides alone cannot: the dtype changed on the way.
pub trait Remake: Any + Send + Sync {
    fn remake(&self, base: &Tensor) -> Result<Tensor>;
}
pub type Replay = Arc<dyn Remake>;

/// A view refers to the base, which owns the history of their storage.
pub struct ViewInfo {
    pub base: Tensor,
    pub creation: AtomicU8,
    replay: Option<Replay>,
    /// The storage version up to which the view's own `grad_fn` is current; see Note [View history].
    pub version: AtomicU32,
}

impl Tensor {
    /// The `AccumulateGrad` of this leaf, if it exists.
    pub fn accumulator(&self) -> Option<Arc<dyn GradFn>> {
        if !self.flag(ACCUMULATES) {
            return None;
        }
        self.slot().rare().accumulator.known.as_ref().and_then(Weak::upgrade)
    }
    /// Sets the `AccumulateGrad` of this leaf.
    pub fn set_accumulator(&self, node: Option<&Arc<dyn GradFn>>) {
        self.slot().rare().accumulator.known = node.map(Arc::downgrade);
        self.set_flag(ACCUMULATES, true);
        self.keep_accumulator();
    }
    /// Number of graph edges to this leaf; each owns the handle.
    pub fn leaf_edges(&self) -> usize {
        self.0.uses.count()
    }
    /// Makes the leaf own its node if there are edges to it.
    fn keep_accumulator(&self) {
        if !self.flag(ACCUMULATES) {
            return;
        }
        let mut slot = self.slot();
        let node = &mut slot.rare().accumulator;
        let keep = if self.0.uses.any() { node.known.as_ref().and_then(Weak::upgrade) } else { None };
        let old = std::mem::replace(&mut node.kept, keep);
        drop(slot);
        drop(old); // outside the lock: it owns hooks
    }

    /// How to remake the view from its base; `None` if strides over the base suffice.
    pub fn replay(&self) -> Option<Replay> {
        if self.flag(REPLAYED) {
            return self.slot().rare().replay.clone();
        }
        self.view_info()?.replay.clone()
    }
    pub fn set_replay(&self, replay: Replay) {
        let old = self.slot().rare().replay.replace(replay);
        self.set_flag(REPLAYED, true);
        drop(old); // outside the lock: it may own tensors
    }

    /// Sets the tensor's node. Hooks stay with the previous history, for which they were registered.
    pub fn set_grad_fn(&self, edge: Edge) {
        let mut slot = self.slot();
        let old = (slot.grad_fn.replace(edge), slot.rare.as_mut().and_then(|r| r.hooks.take()));
        drop(slot);
        self.set_flag(HAS_FN, true);
        drop(old); // outside the lock: dropping may walk a graph
    }
    /// `set_grad_fn` without locked instructions.
    ///
    /// # Safety
    /// No other handle to the tensor exists, weak ones included: it was just created.
    pub unsafe fn set_first_grad_fn(&mut self, edge: Edge) {
        // SAFETY: the caller's promise.
        let new = unsafe { emplace::new_mut(&mut self.0) };
        *new.flags.get_mut() |= HAS_FN;
        new.slot.get_mut().unwrap_or_else(|e| e.into_inner()).grad_fn = Some(edge);
    }
    /// The dtype of the gradient: the tensor's own unless another was set; `None` means any.
    pub fn grad_dtype(&self) -> Option<DType> {
        if self.flag(GRAD_DTYPE) { self.slot().rare().grad_dtype } else { Some(self.dtype()) }
    }
    pub fn set_grad_dtype(&self, dtype: Option<DType>) {
        self.slot().rare().grad_dtype = dtype;
        self.set_flag(GRAD_DTYPE, dtype != Some(self.dtype()));
    }
    /// Creates a view of `self` (or of the base of `self`) that takes part in view and in-place history.
    #[inline]
    pub fn make_view(&self, meta: Meta, creation: Creation, replay: Option<Replay>) -> Tensor {
        let parent = self.view_info();
        let base = parent.map_or(self, |v| &v.base).clone();
        let version = AtomicU32::new(meta.storage.version());
        // Restrictions on in-place writes to a view also apply to views of it.
        let inherited = parent.map(|v| v.creation.load(Ordering::Acquire)).filter(|_| creation == Creation::Default);
        let creation = AtomicU8::new(inherited.unwrap_or(creation as u8));
        let view = Tensor::build(|| meta, || Some(ViewInfo { base, creation, replay, version }));
        view.set_flag(INFERENCE, self.flag(INFERENCE));
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use std::sync::Barrier;
    use std::thread::{scope, sleep};
    use std::time::Duration;

    #[test]
    fn threads_that_come_first_at_once_see_one_turn() {
        let start = Barrier::new(2);
        for _ in 0..20 {
            let leaf = Tensor::empty(&[1], DType::F32, Device::Cpu).unwrap();
            let first_use = |number: u64| {
                let slow = || {
                    sleep(Duration::from_millis(1));
                    number
                };
                start.wait();
                let used = LeafEdge::new(&leaf, slow);
                let seen = used.leaf_seq();
                start.wait(); // both edges live until both have seen it
                seen
            };
            let (a, b) = scope(|s| {
                let other = s.spawn(|| first_use(1));
                (first_use(2), other.join().unwrap())
            });
            assert!(a == b && a > 0, "{a} and {b}");
        }
    }
}
