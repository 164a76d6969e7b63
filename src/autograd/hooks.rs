//! Hooks: on the gradient of a tensor, before and after a node, after accumulation; and `retain_grad`.

use super::node::Node;
use crate::error::{Error, Result};
use crate::tensor::{Edge, RETAINS, Tensor, TensorImpl, Visit};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

type Grads = [Option<Tensor>];

/// Sees a gradient and may put another in its place.
pub trait OnGrad: Send + Sync {
    fn call(&self, grad: &Tensor) -> Result<Option<Tensor>>;
    /// Shows the objects of another runtime that it owns.
    fn owned(&self, _visit: &mut Visit) {}
}
/// Sees the gradients that reach a node.
pub trait BeforeNode: Send + Sync {
    fn call(&self, grads: &Grads) -> Result<Option<Vec<Option<Tensor>>>>;
    fn owned(&self, _visit: &mut Visit) {}
}
/// Sees what a node returned (first) and received (second).
pub trait AfterNode: Send + Sync {
    fn call(&self, results: &Grads, grads: &Grads) -> Result<Option<Vec<Option<Tensor>>>>;
    fn owned(&self, _visit: &mut Visit) {}
}

pub type TensorHook = Arc<dyn OnGrad>;
pub type PreHook = Arc<dyn BeforeNode>;
pub type PostHook = Arc<dyn AfterNode>;

#[derive(Default)]
pub struct Hooks {
    pub tensor: Vec<(u64, u32, TensorHook)>,
    pub retains: Vec<(u32, Weak<TensorImpl>)>,
    pub pre: Vec<(u64, PreHook)>,
    pub post: Vec<(u64, PostHook)>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A number for a removable handle.
pub fn next_id() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Registers a hook on the gradient of `t`; PyTorch's error where it has none.
pub fn register_tensor_hook(t: &Tensor, hook: TensorHook) -> Result<u64> {
    if !t.requires_grad() {
        return Err(Error::runtime("cannot register a hook on a tensor that doesn't require gradient"));
    }
    let id = next_id();
    match super::history::grad_edge(t)? {
        Some(Edge::Node(node, output)) => Node::of_ref(&node).hooks().tensor.push((id, output, hook)),
        _ => t.slot().rare().hooks.push((id, Arc::new(hook))),
    }
    Ok(id)
}

pub fn remove_tensor_hook(t: &Tensor, id: u64) {
    let edge = t.slot().grad_fn.clone();
    if let Some(Edge::Node(node, _)) = edge {
        Node::of_ref(&node).hooks().tensor.retain(|h| h.0 != id);
    }
    let mut slot = t.slot();
    if let Some(r) = &mut slot.rare {
        r.hooks.retain(|h| h.0 != id);
        r.post_accumulate.retain(|h| h.0 != id);
    }
}

/// A hook that sees a leaf after its gradient was accumulated.
pub fn register_post_accumulate(t: &Tensor, hook: TensorHook) -> Result<u64> {
    if !t.is_leaf() || !t.requires_grad() {
        return Err(Error::runtime("post accumulate grad hooks cannot be registered on non-leaf tensors"));
    }
    let id = next_id();
    t.slot().rare().post_accumulate.push((id, Arc::new(hook)));
    Ok(id)
}

/// Keeps the gradient of a non-leaf in `.grad`.
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

/// Ties `retain_grad` to the node that makes `t` now; called again when history is rebased.
pub fn attach_retain(t: &Tensor) -> Result<()> {
    if let Some(Edge::Node(node, output)) = super::history::grad_edge(t)? {
        Node::of_ref(&node).hooks().retains.push((output, Arc::downgrade(&t.0)));
    }
    Ok(())
}

/// Leaf hooks in registration order.
pub fn leaf_hooks(t: &Tensor, post: bool) -> Vec<TensorHook> {
    let slot = t.slot();
    let Some(rare) = &slot.rare else { return Vec::new() };
    let list = if post { &rare.post_accumulate } else { &rare.hooks };
    list.iter().filter_map(|(_, h)| h.downcast_ref::<TensorHook>().cloned()).collect()
}

/// Runs what precedes a node: tensor hooks and node pre-hooks on its incoming gradients, then `retain_grad`.
pub fn run_before(node: &Arc<Node>, hooks: &Mutex<Hooks>, grads: &mut [Option<Tensor>]) -> Result<()> {
    // Copied out, so that a hook may register or remove hooks.
    let (tensor, pre, retains) = {
        let h = hooks.lock().unwrap_or_else(|e| e.into_inner());
        (h.tensor.clone(), h.pre.clone(), h.retains.clone())
    };
    for (_, output, hook) in tensor {
        if let Some(g) = grads.get_mut(output as usize)
            && let Some(old) = g
            && let Some(new) = hook.call(old)?
        {
            *g = Some(new);
        }
    }
    for (_, hook) in pre {
        if let Some(new) = hook.call(grads)? {
            if new.len() != grads.len() {
                return Err(Error::runtime(format!(
                    "hook: wrong number of gradients; expected {}, got {}",
                    grads.len(),
                    new.len()
                )));
            }
            grads.clone_from_slice(&new);
        }
    }
    for (output, weak) in retains {
        if let (Some(t), Some(Some(g))) = (weak.upgrade(), grads.get(output as usize)) {
            let t = Tensor(t);
            // The tensor may have been changed in place since: it waits at another node now.
            let moved = t.slot().grad_fn.as_ref().is_none_or(|e| e.key() != Arc::as_ptr(node) as usize);
            if moved {
                continue;
            }
            let total = match t.grad() {
                Some(old) => (super::kit().add)(&old, g)?,
                None => g.clone(),
            };
            t.set_grad(Some(total));
        }
    }
    Ok(())
}
