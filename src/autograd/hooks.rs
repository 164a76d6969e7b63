//! Hooks on the gradient of a tensor, before and after a node, after accumulation; and `retain_grad`.
//!
//! Note [Order of hooks], as in PyTorch: when a node is visited, the hooks of its output tensors see their gradients
//! first; then tensors with `retain_grad` store theirs; then the node's pre-hooks run, the node, and its post-hooks. A
//! leaf's hooks come before those of its `AccumulateGrad`, its post-accumulate hooks before the node's post-hooks.
//! Hooks of a tensor run whenever its gradient is computed, hooks of a node only if the node runs.

use super::node::Node;
use crate::error::{Error, Result};
use crate::op::tracer;
use crate::tensor::slot::Hook;
use crate::tensor::{Edge, RETAINS, Tensor, TensorImpl};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// The hooks of a node.
#[derive(Default)]
pub struct Hooks {
    /// Hooks of the node's output tensors, with the output number.
    pub tensor: Vec<(u32, Arc<dyn Hook>)>,
    pub retains: Vec<(u32, Weak<TensorImpl>)>,
    pub pre: Option<Arc<dyn Hook>>,
    pub post: Option<Arc<dyn Hook>>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A fresh id for a backward pass.
pub fn next_id() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Replaces the hooks on the gradient of `t`. They belong to its current history: after an in-place write they stay
/// with the node of the previous value.
pub fn set_tensor_hook(t: &Tensor, hook: Option<Arc<dyn Hook>>) -> Result<()> {
    let made_by = super::history::grad_fn(t)?;
    let old = std::mem::replace(&mut t.slot().rare().hooks, hook.clone());
    if let Some(Edge::Node(node, output)) = made_by {
        let mut hooks = Node::of_ref(&node).hooks();
        hooks.tensor.retain(|(_, h)| old.as_ref().is_none_or(|old| !Arc::ptr_eq(h, old)));
        hooks.tensor.extend(hook.map(|h| (output, h)));
    }
    drop(old); // outside the locks: it may run Python
    Ok(())
}

/// Stores the gradient of a non-leaf in `.grad`.
pub fn retain_grad(t: &Tensor) -> Result<()> {
    if !t.requires_grad() {
        return Err(Error::runtime("can't retain_grad on Tensor that has requires_grad=False"));
    }
    if t.is_leaf() || t.flag(RETAINS) {
        return Ok(());
    }
    t.set_flag(RETAINS, true);
    attach_retain(t)
}

/// Attaches `retain_grad` to the current node of `t`; called again when history is rebased.
pub fn attach_retain(t: &Tensor) -> Result<()> {
    if let Some(Edge::Node(node, output)) = super::history::grad_edge(t)? {
        let (weak, mut hooks) = (Arc::downgrade(&t.0), Node::of_ref(&node).hooks());
        // To ask for the edge of a view rebases its history, which comes here before.
        if !hooks.retains.iter().any(|(o, held)| *o == output && held.ptr_eq(&weak)) {
            hooks.retains.push((output, weak));
        }
    }
    Ok(())
}

/// The tensor's own hooks: on its gradient, or after accumulation.
pub fn own_hook(t: &Tensor, accumulated: bool) -> Option<Arc<dyn Hook>> {
    let slot = t.slot();
    let rare = slot.rare.as_ref()?;
    if accumulated { rare.post_accumulate.clone() } else { rare.hooks.clone() }
}

/// Whether hooks observe when the gradient of a leaf is complete.
pub fn any_of_leaf(leaf: &Tensor) -> bool {
    let own = leaf.slot().rare.as_ref().is_some_and(|rare| rare.hooks.is_some() || rare.post_accumulate.is_some());
    own || leaf.accumulator().is_some_and(|node| Node::of(&node).hooks_if_any().is_some())
}

/// Runs the hooks of the node's outputs, then `retain_grad`: see Note [Order of hooks].
pub fn run_tensor_hooks(node: &Arc<Node>, hooks: &Mutex<Hooks>, grads: &mut [Option<Tensor>]) -> Result<()> {
    // Copied out, so that a hook may register or remove hooks.
    let tensor = lock(hooks).tensor.clone();
    for (output, hook) in tensor {
        if let Some(g) = grads.get_mut(output as usize)
            && let Some(new) = hook.gradient(g.as_ref())?
        {
            *g = Some(new);
        }
    }
    let retains = lock(hooks).retains.clone();
    for (output, weak) in retains {
        if let (Some(t), Some(Some(g))) = (weak.upgrade(), grads.get(output as usize)) {
            retain(&Tensor(t), node, g)?;
        }
    }
    Ok(())
}

fn retain(t: &Tensor, node: &Arc<Node>, grad: &Tensor) -> Result<()> {
    // After an in-place write the tensor belongs to another node.
    let moved = t.slot().grad_fn.as_ref().is_none_or(|e| e.key() != Arc::as_ptr(node) as usize);
    if moved {
        return Ok(());
    }
    let total = match t.grad() {
        Some(old) => (super::engine_ops().add)(&old, grad)?,
        // A copy, since the gradient continues through the graph and the user may write to `.grad`.
        None => (super::engine_ops().packed)(grad)?,
    };
    t.set_grad(Some(total));
    tracer::notify(|tracer| tracer.changed(t, tracer::Change::Grad));
    Ok(())
}

/// Runs a node's pre-hooks.
pub fn run_before(hooks: &Mutex<Hooks>, grads: &mut [Option<Tensor>]) -> Result<()> {
    let pre = lock(hooks).pre.clone();
    if let Some(new) = pre.map(|hook| hook.before(grads)).transpose()?.flatten() {
        grads.clone_from_slice(&new);
    }
    Ok(())
}

/// Runs a node's post-hooks, with the gradients it returned and received.
pub fn run_after(hooks: &Mutex<Hooks>, results: &mut super::node::Grads, grads: &[Option<Tensor>]) -> Result<()> {
    let post = lock(hooks).post.clone();
    if let Some(new) = post.map(|hook| hook.after(results, grads)).transpose()?.flatten() {
        *results = new.into();
    }
    Ok(())
}

fn lock(hooks: &Mutex<Hooks>) -> std::sync::MutexGuard<'_, Hooks> {
    hooks.lock().unwrap_or_else(|e| e.into_inner())
}
