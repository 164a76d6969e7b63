//! Gradients by differentiating through a body: for an op of several steps that is one node all the same.
//!
//! The node keeps the arguments; backward runs the steps again, recorded, and pulls the gradients back through them. So
//! the op needs no formula, and where gradients are recorded themselves, gradients of any order follow.

use crate::autograd::{GradGuard, Request, grad_enabled, history::grad_edge, run};
use crate::error::{Error, Result};
use crate::op::{Args, Arguments, Back, Call, Outputs, Value, Vjp};
use crate::tensor::{Edge, LEAF_GRAD, Tensor};

impl Back<'_> {
    /// The gradients of the arguments of a joint formula, where the op computes `steps`. It must save those arguments.
    pub(super) fn through(&self, steps: impl FnOnce(&Call) -> Result<Outputs>) -> Result<Vec<Option<Tensor>>> {
        let Vjp::Joint(joint) = &self.call.op.vjp else { return Err(Error::internal("a joint formula was expected")) };
        let recorded = grad_enabled();
        let _recording = GradGuard::new(true);
        let mut args: Args = self.call.args.iter().map(|v| v.reborrow()).collect();
        let mut starts: Vec<Edge> = Vec::new();
        for &i in joint.args.iter().filter(|&&i| self.wants(i)) {
            let start = start(self.call.tensor(i)?, recorded)?;
            starts.extend(grad_edge(&start)?);
            args[i] = Value::Owned(start);
        }
        let outputs = steps(&Call { op: self.call.op, args: &args })?;
        let mut roots = Vec::new();
        for (out, grad) in outputs.iter().zip(self.grads) {
            roots.extend(grad_edge(out)?.zip(grad.clone()));
        }
        let request = Request { roots, keep_graph: recorded, create_graph: recorded, inputs: Some(&starts) };
        let mut found = run(request)?.into_iter();
        let nothing = |i: usize| self.call.tensor(i).and_then(|t| Tensor::zeros(t.shape(), t.dtype(), t.device()));
        let gradient = |&i: &usize| match self.wants(i) {
            true => found.next().flatten().map_or_else(|| nothing(i), Ok).map(Some),
            false => Ok(None),
        };
        joint.args.iter().map(gradient).collect()
    }
}

/// A tensor that the graph of the steps begins at: of the same elements, with the history of `t` where that counts.
fn start(t: &Tensor, recorded: bool) -> Result<Tensor> {
    if recorded {
        return super::view::ALIAS.call((t,)).ok();
    }
    let leaf = t.detach();
    leaf.set_flag(LEAF_GRAD, true);
    Ok(leaf)
}
