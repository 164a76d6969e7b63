//! What the interpreter knows and the graph does not: where the running program is.
//!
//! Two errors and all warnings need it. A saved tensor that was changed names the op and the line that changed it:
//! dispatch notes a mark on the storage, but only where a node has saved it, so that nothing else pays. Anomaly mode
//! keeps where a node was made, and shows it when its backward fails. `python` installs the witness; without one there
//! is nothing to tell.

use super::Node;
use crate::error::Result;
use crate::op::Op;
use crate::tensor::Tensor;
use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

pub trait Witness: Send + Sync {
    /// The line that is running and the op it calls, as a number above zero; zero where it is unknown.
    fn mark(&self, op: &'static Op) -> u32;
    /// What a mark stands for: "mul_ at train.py, line 12".
    fn place(&self, mark: u32) -> Option<String>;
    /// Keeps where a node is made, and the node whose backward made it.
    fn made(&self, node: &Node, parent: Option<&Arc<Node>>);
    /// Warns that the backward of a node failed, and says where it was made.
    fn report(&self, node: &Arc<Node>);
    /// A warning to the user, which the interpreter may turn into an error.
    fn warn(&self, text: &str) -> Result<()>;
}

static WITNESS: OnceLock<Box<dyn Witness>> = OnceLock::new();

thread_local! {
    /// In anomaly mode: the node whose backward runs.
    static RUNNING: RefCell<Option<Arc<Node>>> = const { RefCell::new(None) };
}

pub fn install(witness: Box<dyn Witness>) {
    // A second import of the module keeps the first witness, which does the same.
    let _ = WITNESS.set(witness);
}

/// The step after every write: the version rises, and where it happened is noted if a node may ask.
pub fn written(t: &Tensor, op: &'static Op) {
    let storage = t.storage();
    storage.bump();
    if storage.is_saved()
        && let Some(w) = WITNESS.get()
    {
        storage.set_mark(w.mark(op));
    }
}

/// Warns the user.
#[cold]
pub fn warn(text: &str) -> Result<()> {
    WITNESS.get().map_or(Ok(()), |w| w.warn(text))
}

/// Which op changed a tensor last, and where.
pub fn last_write(t: &Tensor) -> Option<String> {
    match t.storage().mark() {
        0 => None,
        mark => WITNESS.get()?.place(mark),
    }
}

/// Anomaly mode: a node was made.
#[cold]
pub fn made(node: &Node) {
    if let Some(w) = WITNESS.get() {
        RUNNING.with(|r| w.made(node, r.borrow().as_ref()));
    }
}

/// Anomaly mode: runs the backward of a node, and reports it if it fails.
#[cold]
pub fn watched<T>(node: &Arc<Node>, run: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = RUNNING.replace(Some(node.clone()));
    let result = run();
    RUNNING.set(before);
    if let (Err(_), Some(w)) = (&result, WITNESS.get()) {
        w.report(node);
    }
    result
}
