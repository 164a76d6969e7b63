//! Saved tensors: what a node keeps for its formula, with the version at which it was saved.
//!
//! Note [Saved versions]: `dispatch` bumps a storage's version at each in-place op; only this file compares. An input is
//! kept as its handle (inputs precede the node, so no cycle arises); an output is kept without its `grad_fn`, which
//! would be the node itself, and gets it back when it is unpacked.

use super::node::Node;
use crate::error::{Error, Result};
use crate::tensor::{Edge, HAS_FN, INFERENCE, Meta, Tensor};
use std::cell::RefCell;
use std::sync::Arc;

/// Gives a packed tensor back.
pub type Unpack = Box<dyn Fn() -> Result<Tensor> + Send + Sync>;
/// Packs a tensor that is about to be saved; answers with how to get it back.
pub type SavedHooks = Arc<dyn Fn(&Tensor) -> Result<Unpack> + Send + Sync>;

thread_local! {
    static HOOKS: RefCell<Vec<SavedHooks>> = const { RefCell::new(Vec::new()) };
}

pub fn push_hooks(hooks: SavedHooks) {
    HOOKS.with(|h| h.borrow_mut().push(hooks));
}
pub fn pop_hooks() {
    HOOKS.with(|h| h.borrow_mut().pop());
}

pub enum Saved {
    Input {
        tensor: Tensor,
        version: u32,
    },
    Output {
        meta: Meta,
        version: u32,
        output: u32,
    },
    /// Kept by hooks; the edge that made it is kept here.
    Packed {
        unpack: Unpack,
        edge: Option<Edge>,
    },
    PackedOutput {
        unpack: Unpack,
        output: u32,
    },
}

impl Saved {
    pub fn input(t: &Tensor) -> Result<Saved> {
        if t.flag(INFERENCE) {
            return Err(Error::runtime(
                "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal tensor and use it in autograd.",
            ));
        }
        match packed(t)? {
            Some(unpack) => Ok(Saved::Packed { unpack, edge: super::history::grad_edge(t)? }),
            None => Ok(Saved::Input { tensor: t.clone(), version: t.version() }),
        }
    }
    pub fn output(t: &Tensor, output: usize) -> Result<Saved> {
        match packed(t)? {
            // The edge is the node itself, which must not own itself; `unpack` puts it back by the number.
            Some(unpack) => Ok(Saved::PackedOutput { unpack, output: output as u32 }),
            None => Ok(Saved::Output { meta: t.meta().clone(), version: t.version(), output: output as u32 }),
        }
    }
    /// The tensor as it was; an error where it has been modified since.
    pub fn unpack(&self, owner: &Arc<Node>) -> Result<Tensor> {
        match self {
            Saved::Input { tensor, version } => {
                check(tensor, *version)?;
                Ok(tensor.clone())
            }
            Saved::Output { meta, version, output } => {
                let t = Tensor::from_meta(meta.clone());
                t.slot().grad_fn = Some(Edge { node: owner.clone(), output: *output });
                t.set_flag(HAS_FN, true);
                check(&t, *version)?;
                Ok(t)
            }
            Saved::Packed { unpack, edge } => Ok(with_edge(unpack()?, edge.clone())),
            Saved::PackedOutput { unpack, output } => {
                Ok(with_edge(unpack()?, Some(Edge { node: owner.clone(), output: *output })))
            }
        }
    }
}

/// What the innermost hooks make of a tensor; they see it without history.
fn packed(t: &Tensor) -> Result<Option<Unpack>> {
    let hooks = HOOKS.with(|h| h.borrow().last().cloned());
    hooks.map(|h| h(&t.detach())).transpose()
}

fn with_edge(t: Tensor, edge: Option<Edge>) -> Tensor {
    let t = t.detach();
    if let Some(e) = edge {
        t.slot().grad_fn = Some(e);
        t.set_flag(HAS_FN, true);
    }
    t
}

fn check(t: &Tensor, saved: u32) -> Result<()> {
    let now = t.version();
    if now == saved {
        return Ok(());
    }
    let made_by = match &t.slot().grad_fn {
        Some(e) => format!(", which is output {} of {},", e.output, e.node.name()),
        None => String::new(),
    };
    Err(Error::runtime(format!(
        "one of the variables needed for gradient computation has been modified by an inplace operation: \
         [torch.{}Tensor {}]{made_by} is at version {now}; expected version {saved} instead. \
         Hint: enable anomaly detection to find the operation that failed to compute its gradient, with \
         torch.autograd.set_detect_anomaly(True).",
        t.dtype().scalar_type_name(),
        crate::error::Show(t.shape()),
    )))
}
