//! Gradients by differentiating through a body: for an op of several steps with a single node.
//!
//! The node saves the arguments; backward recomputes the steps with recording on, and backpropagates through them. So
//! the op needs no formula, and with `create_graph` gradients of any order follow.

use crate::autograd::{GradGuard, Request, grad_enabled, history::grad_edge, run};
use crate::error::{Error, Result};
use crate::op::*;
use crate::tensor::{Edge, LEAF_GRAD, Tensor};
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&TIED];

pub static TIED: Op = Op {
    sig: sig("_tied(Tensor self, Tensor other) -> Tensor"),
    doc: "A copy of `self` that counts as a function of `other` too, of slope zero.",
    forms: HIDDEN,
    body: kernel(|c| Ok(smallvec![Spec::following(c.tensor(0)?)]), copied, Some(copied)),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g()), d(1, 0, |c| c.zeros(1))]),
    samples: &["f32[2,3], f32[4]"],
    errors: &[("f32[2], 1", "TypeError", "must be Tensor")],
    reference: "x0",
    batch: Batching::Align,
    ..OP
};
fn copied(c: &Call, out: &[Tensor]) -> Result<()> {
    out[0].copy_raw(c.tensor(0)?)
}

impl VjpCtx<'_> {
    /// Under `create_graph`, makes the result require grad if any of `args` does, even if the formula does not read it
    /// (as with PyTorch's single backward op).
    pub(crate) fn tie_requires_grad(&self, gradient: Term, args: &[usize]) -> Term {
        if !grad_enabled() || gradient.get().is_some_and(|g| g.requires_grad()) {
            return gradient;
        }
        let tracked = args.iter().filter_map(|&i| self.opt_tensor(i)).filter(|t| t.requires_grad());
        tracked.fold(gradient, |g, t| TIED.call((g, t)))
    }
    /// The gradients of the arguments of a joint formula, where the op computes `steps`. It must save those arguments.
    pub(crate) fn through(&self, steps: impl FnOnce(&Call) -> Result<Outputs>) -> Result<Vec<Option<Tensor>>> {
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
        let request =
            Request { roots, keep_graph: recorded, create_graph: recorded, inputs: Some(&starts), accumulate: false };
        let mut found = run(request)?.into_iter();
        let nothing = |i: usize| self.call.tensor(i).and_then(|t| Tensor::zeros(t.shape(), t.dtype(), t.device()));
        let gradient = |&i: &usize| {
            if !self.wants(i) {
                return Ok(None);
            }
            let g = found.next().flatten().map_or_else(|| nothing(i), Ok)?;
            if recorded { self.tie_requires_grad(Term::from(&g), joint.args).ok().map(Some) } else { Ok(Some(g)) }
        };
        joint.args.iter().map(gradient).collect()
    }
}

/// A tensor that the graph of the steps begins at: of the same elements, with the history of `t` where that counts.
fn start(t: &Tensor, recorded: bool) -> Result<Tensor> {
    if recorded && t.requires_grad() {
        return crate::ops::view::reshape::ALIAS.call((t,)).ok();
    }
    let leaf = t.detach();
    leaf.set_flag(LEAF_GRAD, true);
    t.tangents().into_iter().for_each(|cell| leaf.share_tangents(cell));
    Ok(leaf)
}
