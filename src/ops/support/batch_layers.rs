//! Batch rules of layers and of their gradients that fold the examples into the samples of a batch, or into its channels.

use super::batch::{no_rule, sizes};
use crate::error::Result;
use crate::op::*;
use crate::ops::create::range::ARANGE;
use crate::ops::movement::copy::TO_COPY;
use crate::ops::reduce::sum_prod::SUM_DIM;
use crate::tensor::Tensor;
use smallvec::smallvec;

/// [B, N, C, ..] as [N, B C, ..]: the channels of the examples side by side.
pub(crate) fn side_by_side(c: &BatchedCall, i: usize) -> Result<Value<'static>> {
    let moved = Term::from(c.whole(i)?).transpose(0, 1);
    let mut shape = moved.sizes();
    shape[1] *= shape[2];
    shape.remove(2);
    moved.reshape(&shape).ok().map(Value::Owned)
}

/// [B, C, ..] as [B C, ..]: the parameters of the examples one after another; `None` stays.
pub(crate) fn in_a_row(c: &BatchedCall, i: usize) -> Result<Value<'static>> {
    match c.opt_tensor(i) {
        None => Ok(Value::None),
        Some(_) => c.folded_row(&c.whole(i)?).map(Value::Owned),
    }
}

/// [N, B C, ..] as [B, N, C, ..], the shape of result `i`.
pub(crate) fn parted(c: &BatchedCall, i: usize, t: &Tensor) -> Result<Tensor> {
    let one = c.results[i].shape();
    let mut shape: Ints = smallvec![one[0] as i64, c.size as i64];
    shape.extend(sizes(&one[1..]));
    Term::from(t).reshape(&shape).transpose(0, 1).ok()
}

impl BatchedCall<'_> {
    /// [B, C, ..] as [B C, ..]; a vector of examples without dimensions stays one.
    fn folded_row(&self, t: &Tensor) -> Result<Tensor> {
        if t.ndim() < 2 { Ok(t.clone()) } else { self.folded(t) }
    }
}

/// Every tensor, and the sizes in argument `SIZE`, begin with samples or planes that do not depend on each other.
pub(crate) fn sized<const SIZE: usize>(c: &BatchedCall) -> Result<Outputs> {
    let mut args = c.mapped(|o| {
        let t = if o.batched { o.tensor.clone() } else { c.expanded(o.tensor)? };
        if o.example.ndim() == 0 { Err(no_rule()) } else { c.folded(&t) }
    })?;
    let mut size: Ints = c.ints(SIZE)?.iter().copied().collect();
    *size.first_mut().ok_or_else(no_rule)? *= c.size as i64;
    args[SIZE] = Value::Ints(size);
    c.all_shaped(c.again(&args)?)
}

/// The weights of every example are groups of one convolution.
pub(crate) fn weight_gradient(c: &BatchedCall) -> Result<Outputs> {
    let mut args = c.mapped(|o| Ok(o.tensor.clone()))?;
    (args[0], args[1]) = (side_by_side(c, 0)?, side_by_side(c, 1)?);
    let mut size: Ints = c.ints("size")?.iter().copied().collect();
    *size.first_mut().ok_or_else(no_rule)? *= c.size as i64;
    args[2] = Value::Ints(size);
    args[8] = (c.int("groups")? * c.size as i64).into();
    c.all_shaped(c.again(&args)?)
}

/// Statistics of each channel: the channels of the examples are channels of one batch, in whose running statistics each
/// example moves its own.
pub(crate) fn batch_norm(c: &BatchedCall) -> Result<Outputs> {
    let moves = (c.op.moves)(&c.example) != 0;
    let own = |i: usize| c.is_batched(i) && c.opt_tensor(i).is_some_and(|t| t.layout().is_contiguous());
    if !c.is_batched(0) || moves && !(own(3) && own(4)) {
        return Err(no_rule());
    }
    let mut args = c.mapped(|o| Ok(o.tensor.clone()))?;
    if !c.flag("training") && !(1..5).any(|i| c.is_batched(i)) {
        args[0] = Value::Owned(c.folded(c.tensor(0)?)?);
        return c.all_shaped(c.again(&args)?);
    }
    args[0] = side_by_side(c, 0)?;
    for (i, arg) in args.iter_mut().enumerate().take(5).skip(1) {
        *arg = in_a_row(c, i)?;
    }
    let out = c.again(&args)?;
    Ok(smallvec![parted(c, 0, &out[0])?, c.shaped(1, out[1].clone())?, c.shaped(2, out[2].clone())?])
}

/// Statistics of each channel of each sample; as for `batch_norm`, running statistics that move are for a loop.
pub(crate) fn instance_norm(c: &BatchedCall) -> Result<Outputs> {
    let moving = c.flag("use_input_stats") && c.opt_tensor("running_mean").is_some();
    if moving || c.ndim(0) < 3 || (1..5).any(|i| c.is_batched(i)) {
        return Err(no_rule());
    }
    let mut args = c.mapped(|o| Ok(o.tensor.clone()))?;
    args[0] = Value::Owned(c.folded(c.tensor(0)?)?);
    c.all_shaped(c.again(&args)?)
}

/// Statistics of each sample: samples of one batch, or with weights of each example groups of channels.
pub(crate) fn group_norm(c: &BatchedCall) -> Result<Outputs> {
    let mut args = c.mapped(|o| Ok(o.tensor.clone()))?;
    let size = c.size as i64;
    if !c.is_batched(1) && !c.is_batched(2) {
        args[0] = Value::Owned(c.folded(c.tensor(0)?)?);
        args[3] = (c.int("N")? * size).into();
        return c.all_shaped(c.again(&args)?);
    }
    (args[0], args[1], args[2]) = (side_by_side(c, 0)?, in_a_row(c, 1)?, in_a_row(c, 2)?);
    (args[4], args[6]) = ((c.int("C")? * size).into(), (c.int("group")? * size).into());
    let out = c.again(&args)?;
    out.iter().enumerate().map(|(i, t)| parted(c, i, t)).collect()
}

/// The gradients of both.
pub(crate) fn norm_backward(c: &BatchedCall) -> Result<Outputs> {
    let mut args = c.mapped(|o| Ok(o.tensor.clone()))?;
    (args[0], args[1], args[2]) = (side_by_side(c, 0)?, side_by_side(c, 1)?, in_a_row(c, 2)?);
    for (i, arg) in args.iter_mut().enumerate().take(5).skip(3) {
        *arg = if c.ndim(i) == 2 { side_by_side(c, i)? } else { in_a_row(c, i)? };
    }
    args[5] = (c.int("groups")? * c.size as i64).into();
    let out = c.again(&args)?;
    Ok(smallvec![parted(c, 0, &out[0])?, c.shaped(1, out[1].clone())?, c.shaped(2, out[2].clone())?])
}

/// By the input in one call, by the parameters as sums over the rows of each example.
pub(crate) fn layer_norm_backward(c: &BatchedCall) -> Result<Outputs> {
    let (g, x, rank) = (Term::from(c.whole(0)?), Term::from(c.whole(1)?), c.ndim(1));
    let lead = rank - c.ints("normalized_shape")?.len();
    let mut statistic = c.with_batch(&c.shape(1)[..lead]);
    statistic.extend(std::iter::repeat_n(1, rank - lead));
    let mean = Term::from(c.whole(4)?).reshape(&statistic);
    let rstd = Term::from(c.whole(5)?).reshape(&statistic);
    let weighted = match c.opt_tensor("weight") {
        Some(_) => g.clone() * Term::from(c.aligned(3, rank)?),
        None => g.clone(),
    };
    let args: Args = smallvec![
        weighted.into_arg()?,
        x.clone().into_arg()?,
        Value::Ints(c.ints("normalized_shape")?.iter().copied().collect()),
        Value::None,
        mean.clone().into_arg()?,
        rstd.clone().into_arg()?,
    ];
    let dx = c.again(&args)?.swap_remove(0);
    let rows: Ints = (1..=lead as i64).collect();
    let sum = |t: Term| if rows.is_empty() { t } else { SUM_DIM.call((t, rows.clone())) };
    let parameter = |i: usize, t: Term| TO_COPY.call((t, c.results[i].dtype())).ok();
    Ok(smallvec![dx, parameter(1, sum(g.clone() * ((x - mean) * rstd)))?, parameter(2, sum(g))?])
}

/// The tables of the examples one after another: indices move by whole tables.
pub(crate) fn embedding_backward(c: &BatchedCall) -> Result<Outputs> {
    let (rows, pad) = (c.int("num_weights")?, c.int("padding_idx")?);
    let (mut g, at) = (Term::from(c.whole(0)?), Term::from(c.whole(1)?));
    if pad >= 0 {
        g = g.zero_where(at.clone().equals(pad).unsqueeze(-1));
    }
    let mut first: Ints = smallvec![1; at.sizes().len()];
    first[0] = c.size as i64;
    let tables =
        ARANGE.call((c.size, crate::dtype::DType::I64, c.tensor("indices")?.device())).reshape(&first) * rows as f64;
    let moved = at.to_dtype(crate::dtype::DType::I64) + tables.to_dtype(crate::dtype::DType::I64);
    let out = c.op.calls((g, moved, rows * c.size as i64, -1, c.flag("scale_grad_by_freq")))?;
    c.all_shaped(out)
}
