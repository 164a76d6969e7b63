//! Objects of another runtime that a tensor or a node keeps alive exclusively, reported to that runtime's cycle
//! collector.
//!
//! Python's collector subtracts from an object's reference count every reference it is shown, and treats objects that
//! reach zero as garbage. So a reference may be reported only by the owner that alone keeps it alive: from the object
//! in question the search continues through handles all of whose owners it has met, and through no others. It runs
//! under the interpreter lock. Other threads cannot reach a handle without further owners, except through the weak
//! handles of `retain_grad`, which only a backward pass follows.
//!
//! A collection of young objects alone runs each few hundred allocations, so a graph under construction would be searched
//! anew and anew: such a search ends after `YOUNG_LIMIT` handles. What it did not reach counts as referenced from
//! outside, and is left for a full collection, whose frequency falls with the number of objects.

use super::engine;
use super::node::{Node, Work};
use super::saved::Saved;
use crate::tensor::slot::Hook;
use crate::tensor::{Edge, GradFn, RETAINS, Tensor, TensorImpl, Visit};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// The most handles that a search looks into in a collection of young objects: more than graphs grow by between two.
const YOUNG_LIMIT: usize = 2048;
static YOUNG: AtomicBool = AtomicBool::new(false);

/// Says that a collection of young objects alone begins, or that a collection ends. Never in the middle of one: all its searches
/// must answer alike.
pub fn young_collection(runs: bool) {
    YOUNG.store(runs, Ordering::Relaxed);
}

/// The search. Pending handles are in a list, since graphs may be deep.
pub struct Owned<'a, 'v> {
    visit: &'a mut Visit<'v>,
    /// Number of owners met so far, for handles with several.
    met: HashMap<usize, usize>,
    waiting: Vec<Found>,
}

/// Handles that cannot be freed or changed during the search, because all of their owners are part of it.
enum Found {
    Tensor(*const TensorImpl),
    Node(*const Node),
}

/// Reports what `t` keeps alive, if the caller is its only owner.
pub fn of_tensor(t: &Tensor, visit: &mut Visit) {
    Owned::start(visit, |o| o.tensor(t));
}
/// Reports what a node keeps alive.
pub fn of_node(node: &Arc<Node>, visit: &mut Visit) {
    let strong = Arc::strong_count(node);
    Owned::start(visit, |o| o.node(Arc::as_ptr(node), strong));
}
/// Reports what those saved tensors keep alive that have a single owner.
pub fn of_saved<'s>(saved: impl Iterator<Item = &'s Saved>, visit: &mut Visit) {
    Owned::start(visit, |o| saved.for_each(|s| o.saved(s)));
}

/// Locks without waiting: a lock that is held is held by this thread further up the stack, and its contents are not
/// searched.
fn open<T>(m: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match m.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(e)) => Some(e.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl<'a, 'v> Owned<'a, 'v> {
    fn start(visit: &'a mut Visit<'v>, from: impl FnOnce(&mut Self)) {
        let mut search = Owned { visit, met: HashMap::new(), waiting: Vec::new() };
        from(&mut search);
        let limit = if YOUNG.load(Ordering::Relaxed) { YOUNG_LIMIT } else { usize::MAX };
        for _ in 0..limit {
            let Some(next) = search.waiting.pop() else { return };
            // SAFETY: see `Found`.
            match next {
                Found::Tensor(t) => search.inside_tensor(unsafe { &*t }),
                Found::Node(n) => search.inside_node(unsafe { &*n }),
            }
        }
    }
    /// Whether this was the last of `owners` to be met.
    fn last(&mut self, address: usize, owners: usize) -> bool {
        if owners == 1 {
            return true;
        }
        let met = self.met.entry(address).or_insert(0);
        *met += 1;
        *met == owners
    }

    /// An object of the other runtime.
    pub fn object(&mut self, show: impl FnOnce(&mut Visit<'v>)) {
        show(self.visit);
    }
    pub fn tensor(&mut self, t: &Tensor) {
        if self.last(t.id(), t.owners()) {
            self.waiting.push(Found::Tensor(Arc::as_ptr(&t.0)));
        }
    }
    fn node(&mut self, node: *const Node, owners: usize) {
        if self.last(node.addr(), owners) {
            self.waiting.push(Found::Node(node));
        }
    }
    fn grad_fn(&mut self, node: &Arc<dyn GradFn>) {
        self.node(Node::of_ref(node), Arc::strong_count(node));
    }
    fn edge(&mut self, edge: &Edge) {
        match edge {
            Edge::Node(node, _) => self.grad_fn(node),
            Edge::Leaf(leaf) => self.tensor(leaf.leaf()),
        }
    }
    pub fn saved(&mut self, saved: &Saved) {
        match saved {
            Saved::Input { tensor, .. } => self.tensor(tensor),
            Saved::Output { .. } => {}
            Saved::Packed(p) => {
                self.alone(&p.unpack, |u, visit| u.owned(visit));
                p.edge.iter().for_each(|e| self.edge(e));
            }
            Saved::PackedOutput(p) => self.alone(&p.0, |u, visit| u.owned(visit)),
        }
    }
    fn alone<T: ?Sized>(&mut self, shared: &Arc<T>, show: impl FnOnce(&T, &mut Visit<'v>)) {
        if Arc::strong_count(shared) == 1 {
            show(shared, self.visit);
        }
    }

    /// The hooks of a non-leaf are owned by the tensor and by its node.
    fn hook(&mut self, hook: &Arc<dyn Hook>) {
        if self.last(Arc::as_ptr(hook).addr(), Arc::strong_count(hook)) {
            hook.owned(self.visit);
        }
    }

    fn inside_tensor(&mut self, t: &TensorImpl) {
        if t.has_flag(RETAINS) && engine::any_runs() {
            return;
        }
        t.view_base().into_iter().for_each(|base| self.tensor(base));
        let Some(slot) = open(t.slot_lock()) else { return };
        slot.grad.iter().for_each(|g| self.tensor(g));
        slot.grad_fn.iter().for_each(|e| self.edge(e));
        let Some(rare) = &slot.rare else { return };
        rare.hooks.iter().chain(&rare.post_accumulate).for_each(|h| self.hook(h));
        rare.python.iter().for_each(|p| p.owned(self.visit));
    }

    fn inside_node(&mut self, node: &Node) {
        node.edges.iter().flatten().for_each(|e| self.edge(e));
        if let Some(rare) = node.rare.get() {
            rare.python.get().into_iter().for_each(|p| p.owned(self.visit));
            if let Some(hooks) = open(&rare.hooks) {
                hooks.tensor.iter().map(|(_, h)| h).chain(&hooks.pre).chain(&hooks.post).for_each(|h| self.hook(h));
            }
        }
        match &node.work {
            Work::Op { state, .. } => {
                if let Some(state) = open(state) {
                    state.iter().flat_map(|kept| &kept.tensors).for_each(|(_, s)| self.saved(s));
                }
            }
            Work::Accumulate(leaf) => self.tensor(leaf),
            Work::CopySlices(c) => self.node(Arc::as_ptr(&c.inner), Arc::strong_count(&c.inner)),
            Work::Custom(c) => c.owned(self),
            Work::Fails(_) => {}
        }
    }
}
