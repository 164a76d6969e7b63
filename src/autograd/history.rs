//! Who made a tensor: gradient edges, and how in-place writes rewrite history.
//!
//! Note [View history]: the base of a family of views owns the history of their storage. Writing in place to a view
//! gives the base a new node, `CopySlices`, which applies the op's backward to the view's part of the gradient; every
//! view whose recorded version is behind the storage's then reads its history off the base anew (`AsStrided`).

use super::node::{Grads, Node, OpState, State, Work};
use super::{grad_enabled, kit};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::op::Value;
use crate::op::gradient::Facts;
use crate::tensor::slot::Creation;
use crate::tensor::{Edge, HAS_FN, INFERENCE, RETAINS, Tensor};
use smallvec::{SmallVec, smallvec};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// The edge that a node using `t` gets: the node that made it, or the accumulator of a leaf. `None`: no gradient.
pub fn grad_edge(t: &Tensor) -> Result<Option<Edge>> {
    refresh_view(t)?;
    if t.flag(HAS_FN) {
        return Ok(t.slot().grad_fn.clone());
    }
    if !t.requires_grad() {
        return Ok(None);
    }
    let mut slot = t.slot();
    if let Some(node) = slot.accumulator.as_ref().and_then(|w| w.upgrade()) {
        return Ok(Some(Edge { node, output: 0 }));
    }
    let node: Arc<Node> =
        Node::new("AccumulateGrad", Work::Accumulate(t.clone()), SmallVec::new(), smallvec![Facts::of(t)]);
    let weak: std::sync::Weak<dyn crate::tensor::GradFn> = Arc::downgrade(&node) as _;
    slot.accumulator = Some(weak);
    Ok(Some(Edge { node, output: 0 }))
}

/// `grad_fn` as Python sees it: none for leaves.
pub fn grad_fn(t: &Tensor) -> Result<Option<Edge>> {
    refresh_view(t)?;
    Ok(t.slot().grad_fn.clone())
}

/// Sets the node that made `t`.
pub fn set_history(t: &Tensor, node: &Arc<Node>, output: usize) {
    let old = t.slot().grad_fn.replace(Edge { node: node.clone(), output: output as u32 });
    t.set_flag(HAS_FN, true);
    drop(old);
}

/// See Note [View history].
fn refresh_view(t: &Tensor) -> Result<()> {
    let Some(view) = t.view_info() else { return Ok(()) };
    let now = t.version();
    if view.version.load(Ordering::Acquire) == now || !view.base.flag(HAS_FN) {
        return Ok(());
    }
    let node = as_strided_node(t, &view.base)?;
    set_history(t, &node, 0);
    view.version.store(now, Ordering::Release);
    if t.flag(RETAINS) {
        super::hooks::attach_retain(t)?;
    }
    Ok(())
}

/// The node of `base.as_strided(geometry of view)`.
fn as_strided_node(view: &Tensor, base: &Tensor) -> Result<Arc<Node>> {
    let l = view.layout();
    let ints = |d: &[usize]| Value::Ints(d.iter().map(|&x| x as i64).collect());
    let mut geometry = base.layout().strides.clone();
    geometry.push(base.layout().offset);
    let state = OpState {
        args: smallvec![Value::None, ints(&l.shape), ints(&l.strides), Value::from(l.offset), ints(&geometry)],
        inputs: SmallVec::new(),
        outputs: SmallVec::new(),
        facts: smallvec![(0, Facts::of(base))],
    };
    let op = kit().as_strided;
    let work = Work::Op { op, state: Mutex::new(State::Ready(Box::new(state))) };
    Ok(Node::new(op.parsed().node, work, smallvec![grad_edge(base)?], smallvec![Facts::of(view)]))
}

/// May `t` be written in place? PyTorch's errors where history forbids it.
pub fn check_inplace(t: &Tensor, name: &str, recorded: bool) -> Result<()> {
    if t.layout().has_internal_overlap() {
        return Err(Error::runtime(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. \
             Please clone() the tensor before performing the operation.",
        ));
    }
    if t.storage().is_read_only() {
        return Err(Error::runtime(
            "the tensor's memory is read-only (it belongs to a read-only array); expected writable memory. Clone it first.",
        ));
    }
    if t.flag(INFERENCE) && !super::mode::inference_enabled() {
        return Err(Error::runtime(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal tensor before doing inplace update.",
        ));
    }
    if !grad_enabled() {
        return Ok(());
    }
    let base_needs = t.view_info().is_some_and(|v| v.base.requires_grad() && v.base.is_leaf());
    if t.is_leaf() && t.requires_grad() {
        return Err(Error::runtime(format!(
            "a leaf Variable that requires grad is being used in an in-place operation. \
             Wrap '{name}' in no_grad(), or write to a clone."
        )));
    }
    if base_needs {
        return Err(Error::runtime(format!(
            "a view of a leaf Variable that requires grad is being used in an in-place operation. \
             Wrap '{name}' in no_grad(), or write to a clone."
        )));
    }
    let Some(view) = t.view_info() else { return Ok(()) };
    let creation = view.creation.load(Ordering::Acquire);
    if (recorded || t.requires_grad()) && creation == Creation::MultiOutput as u8 {
        return Err(Error::runtime(format!(
            "Output {} of {} is a view and is being modified inplace. This view is the output of a function that returns \
             multiple views. Such functions do not allow the output views to be modified inplace. You should replace the \
             inplace operation by an out-of-place one.",
            grad_fn(t)?.map_or(0, |e| e.output),
            grad_fn(t)?.map_or("a function".to_string(), |e| e.node.name().trim_end_matches("Backward0").to_string())
        )));
    }
    if recorded && creation == Creation::NoGrad as u8 {
        return Err(Error::runtime(
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use \
             case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the \
             inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or both outside \
             (if you want the inplace to be tracked).",
        ));
    }
    Ok(())
}

/// After an in-place op on `t` that was recorded as `node`: rewrites the history of `t`, or of its base.
pub fn rebase(t: &Tensor, node: &Arc<Node>) -> Result<()> {
    match t.view_info() {
        None => set_history(t, node, 0),
        Some(view) => {
            let base = &view.base;
            let before = grad_edge(base)?;
            let (geometry, whole) = (t.layout().clone(), Facts::of(base));
            let mut edges: SmallVec<[Option<Edge>; 2]> = smallvec![before];
            edges.extend(node.edges.iter().skip(1).cloned());
            let work =
                Work::CopySlices(CopySlices { inner: node.clone(), geometry, base_offset: base.layout().offset });
            let copy = Node::new("CopySlices", work, edges, smallvec![whole]);
            set_history(base, &copy, 0);
            let fresh = as_strided_node(t, base)?;
            set_history(t, &fresh, 0);
            view.version.store(t.version(), Ordering::Release);
            if base.flag(RETAINS) {
                super::hooks::attach_retain(base)?;
            }
        }
    }
    if t.flag(RETAINS) { super::hooks::attach_retain(t) } else { Ok(()) }
}

/// The backward of an in-place op on a view, seen from the base.
pub struct CopySlices {
    pub inner: Arc<Node>,
    /// Where the view lies in the storage.
    geometry: Layout,
    base_offset: usize,
}

impl CopySlices {
    /// The view's part of the gradient goes through the op's backward; the rest passes unchanged.
    pub fn apply(&self, grads: &[Option<Tensor>], wanted: u64) -> Result<Grads> {
        let k = kit();
        let Some(grad) = &grads[0] else { return Ok(SmallVec::from_elem(None, self.inner.edges.len().max(1))) };
        // A contiguous copy laid out like the base (which is contiguous where autograd made it).
        let result = (k.clone)(grad)?;
        let l = &self.geometry;
        let part = k.as_strided.call((&result, &*l.shape, &*l.strides, l.offset - self.base_offset)).ok()?;
        let inside = (k.clone)(&part)?;
        let mut out = self.inner.apply(&[Some(inside)], wanted | 1)?;
        match out.first_mut() {
            Some(first) => {
                match first.take() {
                    Some(g) => (k.copy_)(&part, &g)?,
                    None => part.fill_raw(crate::dtype::Scalar::Int(0))?,
                }
                *first = Some(result);
            }
            None => out.push(Some(result)),
        }
        Ok(out)
    }
}
