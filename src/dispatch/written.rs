//! Arguments that an op writes to besides the one that is its result: `Tensor!` in its signature.

use crate::autograd;
use crate::autograd::{diagnostics, history};
use crate::error::{Error, Result};
use crate::op::Call;
use crate::tensor::Tensor;

/// The tensors of the arguments in `mask`.
fn written<'a>(call: &'a Call, mask: u32) -> impl Iterator<Item = &'a Tensor> {
    let of_mask = call.args.iter().enumerate().filter(move |(i, _)| mask & (1 << i) != 0);
    of_mask.flat_map(|(_, v)| v.tensors())
}

/// Refuses what may not be written: before anything runs.
#[inline]
pub(super) fn check(call: &Call) -> Result<()> {
    let mask = call.op.also_writes();
    if mask == 0 {
        return Ok(());
    }
    let tracked = autograd::grad_enabled() && call.all_tensors().any(|t| t.requires_grad());
    for t in written(call, mask) {
        history::check_inplace(t, tracked)?;
        history::check_writable(t)?;
        if tracked && t.requires_grad() {
            return Err(no_gradient());
        }
    }
    Ok(())
}

/// After the write: versions rise, so that backward notices that a saved tensor was changed.
#[inline]
pub(super) fn note(call: &Call) {
    let mask = call.op.also_writes();
    if mask != 0 {
        written(call, mask).for_each(|t| diagnostics::written(t, call.op));
    }
}

#[cold]
fn no_gradient() -> Error {
    Error::runtime(
        "an argument that the op writes to requires grad, and no gradient passes through such a write. \
         Call it in no_grad(), or pass a detached tensor.",
    )
}
