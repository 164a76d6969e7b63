//! Batch rules of layers: convolutions, normalisation, losses of classes.

use super::batch::no_rule;
use super::batch_layers::{in_a_row, parted, side_by_side};
use crate::error::Result;
use crate::op::*;
use crate::ops::nn::loss::nll::{MEAN, NLL_BACKWARD, NONE};
use crate::ops::reduce::sum_prod::SUM_DIM;
use crate::ops::view::reshape::EXPAND;
use crate::tensor::Tensor;
use smallvec::smallvec;

/// Normalised without weights, then scaled and moved by those of each example.
pub(crate) fn layer_norm(c: &BatchedCall) -> Result<Outputs> {
    let mut args = c.mapped(|o| Ok(o.tensor.clone()))?;
    if !c.is_batched(0) {
        return Err(no_rule());
    }
    if !c.is_batched(2) && !c.is_batched(3) {
        return c.again(&args);
    }
    (args[2], args[3]) = (Value::None, Value::None);
    let mut out = c.again(&args)?;
    let mut y = Term::from(&out[0]);
    let rank = c.ndim(0);
    if c.opt_tensor("weight").is_some() {
        y = y * Term::from(c.aligned(2, rank)?);
    }
    if c.opt_tensor("bias").is_some() {
        y = y + Term::from(c.aligned(3, rank)?);
    }
    out[0] = y.ok()?;
    Ok(out)
}

/// Images of every example in one batch; weights of every example as groups of channels.
pub(crate) fn convolution(c: &BatchedCall) -> Result<Outputs> {
    let mut args = c.mapped(|o| Ok(o.tensor.clone()))?;
    if !c.is_batched(1) && !c.is_batched(2) {
        args[0] = Value::Owned(c.folded(c.tensor(0)?)?);
        return c.all_shaped(c.again(&args)?);
    }
    args[0] = side_by_side(c, 0)?;
    args[1] = in_a_row(c, 1)?;
    args[2] = in_a_row(c, 2)?;
    args[8] = (c.int("groups")? * c.size as i64).into();
    Ok(smallvec![parted(c, 0, &c.again(&args)?[0])?])
}

/// [B, N, ..] as [B N, ..] where the examples have samples themselves.
fn samples(c: &BatchedCall, t: Tensor, many: bool) -> Result<Tensor> {
    if many { c.folded(&t) } else { Ok(t) }
}

/// Not reduced over the samples of all examples, then reduced in each.
pub(crate) fn nll_loss(c: &BatchedCall) -> Result<Outputs> {
    let (how, ignored, many) = (c.int("reduction")?, c.int("ignore_index")?, c.ndim(0) > 1);
    if c.is_batched(2) {
        return Err(no_rule());
    }
    let (x, target) = (samples(c, c.whole(0)?, many)?, samples(c, c.whole(1)?, many)?);
    let weight = c.opt_tensor("weight").map_or(Value::None, Value::from);
    let each = c.with_batch(c.shape(1));
    let positions = |x: &Tensor| -> Result<Tensor> {
        let args: Args =
            smallvec![Value::from(x), Value::from(&target), weight.reborrow(), NONE.into(), ignored.into()];
        Term::from(c.op.calls(args)?.swap_remove(0)).reshape(&each).ok()
    };
    // The loss of minus one is the weight of the target.
    let minus_one = crate::ops::create::full::FULL.call(([1], -1.0, x.dtype(), x.device()));
    let weights = positions(&EXPAND.call((minus_one, x.shape())).ok()?)?;
    let values = positions(&x)?;
    let dims: Ints = (1..each.len() as i64).collect();
    let sum = |t: Tensor| if dims.is_empty() { Term::from(t) } else { SUM_DIM.call((t, dims.clone())) };
    let total = sum(weights);
    let loss = match how {
        NONE => Term::from(values),
        MEAN => sum(values) / total.clone(),
        _ => sum(values),
    };
    Ok(smallvec![loss.ok()?, total.ok()?])
}

pub(crate) fn nll_loss_backward(c: &BatchedCall) -> Result<Outputs> {
    let (how, many, size) = (c.int("reduction")?, c.ints("size")?.len() > 1, c.ints("size")?);
    if c.is_batched(2) {
        return Err(no_rule());
    }
    let target = c.whole(1)?;
    let mut g = Term::from(c.whole(0)?);
    if how == MEAN {
        g = g / Term::from(c.whole(5)?.detach());
    }
    if how != NONE {
        let mut ones: Ints = smallvec![1; target.ndim()];
        ones[0] = c.size as i64;
        g = EXPAND.call((g.reshape(&ones), target.shape()));
    }
    let mut folded: Ints = smallvec![c.size as i64 * if many { size[0] } else { 1 }];
    folded.extend(size[usize::from(many)..].iter().copied());
    let weight = c.opt_tensor("weight").map_or(Value::None, Value::from);
    let args: Args = smallvec![
        Value::Owned(samples(c, g.ok()?, many)?),
        Value::Owned(samples(c, target, many)?),
        weight,
        NONE.into(),
        c.int("ignore_index")?.into(),
        Value::Owned(
            crate::ops::create::full::FULL
                .call(([0i64; 0], 1.0, c.tensor("grad")?.dtype(), c.tensor("grad")?.device()))
                .ok()?
        ),
        Value::Ints(folded)
    ];
    c.all_shaped(NLL_BACKWARD.calls(args)?)
}
