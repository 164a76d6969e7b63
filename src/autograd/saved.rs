//! Saved tensors: what a node keeps for its formula, with the version at which it was saved.
//!
//! Note [Saved versions]: `dispatch` bumps a storage's version at each in-place op; only this file compares. An input is
//! kept as its handle (inputs precede the node, so no cycle arises); an output is kept without its `grad_fn`, which
//! would be the node itself, and gets it back when it is unpacked.

use super::node::Node;
use crate::error::{Error, Result};
use crate::tensor::{Edge, HAS_FN, Meta, Tensor};
use std::sync::Arc;

pub enum Saved {
    Input { tensor: Tensor, version: u32 },
    Output { meta: Meta, version: u32, output: u32 },
}

impl Saved {
    pub fn input(t: &Tensor) -> Saved {
        Saved::Input { tensor: t.clone(), version: t.version() }
    }
    pub fn output(t: &Tensor, output: usize) -> Saved {
        Saved::Output { meta: t.meta().clone(), version: t.version(), output: output as u32 }
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
        }
    }
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
