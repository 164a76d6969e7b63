//! Source locations of the running program, which the interpreter knows and the graph does not.
//!
//! Two errors and all warnings need them. The error about a modified saved tensor names the op and the line that
//! modified it: dispatch records a mark on the storage, but only if a node has saved it, so that other writes pay
//! nothing. Anomaly mode records where nodes were created, and prints it when their backward fails. `python` installs
//! the implementation; without one nothing is reported.

use super::Node;
use crate::error::Result;
use crate::op::Op;
use crate::tensor::Tensor;
use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

pub trait Witness: Send + Sync {
    /// A non-zero number for the current line and the op it calls; zero if unknown.
    fn mark(&self, op: &'static Op) -> u32;
    /// The location of a mark: "mul_ at train.py, line 12".
    fn place(&self, mark: u32) -> Option<String>;
    /// Records where a node was created, and the node whose backward created it.
    fn made(&self, node: &Node, parent: Option<&Arc<Node>>);
    /// Warns that the backward of a node failed, with the location where it was created.
    fn report(&self, node: &Arc<Node>);
    /// A warning to the user, which the interpreter may turn into an error.
    fn warn(&self, text: &str) -> Result<()>;
}

static WITNESS: OnceLock<Box<dyn Witness>> = OnceLock::new();

thread_local! {
    /// In anomaly mode: the node whose backward is running.
    static RUNNING: RefCell<Option<Arc<Node>>> = const { RefCell::new(None) };
}

pub fn install(witness: Box<dyn Witness>) {
    // A second import of the module keeps the first implementation; both are equivalent.
    let _ = WITNESS.set(witness);
}

/// Called after every write: bumps the version, and records the location if a node may need it.
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

/// The op that last changed a tensor, and where.
pub fn last_write(t: &Tensor) -> Option<String> {
    match t.storage().mark() {
        0 => None,
        mark => WITNESS.get()?.place(mark),
    }
}

/// Anomaly mode: a node was created.
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
