//! Memory shared between a written tensor and the tensors read: an error where PyTorch raises one.
//!
//! Like PyTorch's test, this compares byte ranges, and only of dense tensors. Overlap involving non-dense tensors is
//! not detected; ops that need it copy the operand.

use crate::error::{Error, Result};
use crate::op::{AliasPolicy, Body, Call, Op, Returns};
use crate::tensor::Tensor;

/// How the memory of two tensors overlaps.
#[derive(PartialEq)]
enum Overlap {
    None,
    Partial,
    Same,
}

fn overlap(a: &Tensor, b: &Tensor) -> Overlap {
    if a.same(b) {
        return Overlap::Same; // even without elements
    }
    if !a.storage().same(b.storage()) {
        return Overlap::None;
    }
    let range = |t: &Tensor| (t.layout().offset * t.dtype().size(), t.layout().end() * t.dtype().size());
    let ((a0, a1), (b0, b1)) = (range(a), range(b));
    if a0 >= b1 || b0 >= a1 || !a.layout().is_dense() || !b.layout().is_dense() {
        Overlap::None
    } else if (a0, a1) == (b0, b1) && steps(a).eq(steps(b)) {
        Overlap::Same
    } else {
        Overlap::Partial
    }
}

/// Sizes and strides of the dimensions of size above one.
fn steps(t: &Tensor) -> impl Iterator<Item = (&usize, &usize)> {
    t.shape().iter().zip(t.strides()).filter(|(d, _)| **d != 1)
}

/// The op's declared policy, or the default of its body: kernels that write into self still read the other operands.
fn alias_policy(op: &Op) -> AliasPolicy {
    op.alias_policy.unwrap_or(match &op.body {
        Body::Elementwise(_) => AliasPolicy::SameOnly,
        Body::Kernel(k) if k.updates_self => AliasPolicy::NoAlias,
        _ => AliasPolicy::MayAlias,
    })
}

/// Checks the arguments from `first` on against a written tensor. Kernels read self before they write.
pub(super) fn check(call: &Call, first: usize, out: &Tensor) -> Result<()> {
    let allowed = alias_policy(call.op);
    if matches!(allowed, AliasPolicy::MayAlias | AliasPolicy::UniformWrite) {
        return Ok(());
    }
    let updates = matches!(&call.op.body, Body::Kernel(k) if k.updates_self);
    for (i, arg) in call.args.iter().enumerate().skip(first) {
        let exact = allowed == AliasPolicy::SameOnly || (updates && i == 0);
        for t in arg.tensors() {
            let met = overlap(t, out);
            if met == Overlap::Partial || (met == Overlap::Same && !exact) {
                return Err(refused());
            }
        }
    }
    Ok(())
}

/// Checks that results written one after another do not overlap.
pub(super) fn check_apart(op: &'static Op, outs: &[Tensor]) -> Result<()> {
    let shared = |i: usize| outs[..i].iter().any(|t| overlap(t, &outs[i]) != Overlap::None);
    if !(1..outs.len()).any(shared) {
        return Ok(());
    }
    let names: Vec<String> = match op.sig.returns {
        Returns::Named => op.sig.result_names().map(|n| format!("`{n}`")).collect(),
        _ => Vec::new(),
    };
    Err(Error::value(format!("the {} out= tensors must not overlap.", names.join(" and "))))
}

#[cold]
fn refused() -> Error {
    Error::runtime(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory \
         location. Please clone() the tensor before performing the operation.",
    )
}
