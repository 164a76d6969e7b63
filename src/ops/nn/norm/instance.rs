//! Instance normalisation: each channel of each sample, as batch normalisation of one sample with all those channels.

use super::batch::{BATCH_NORM, check_rank, running_statistics};
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::movement::copy::CONTIGUOUS;
use crate::ops::movement::repeat::REPEAT;
use crate::ops::reduce::sum_prod::MEAN_DIM;
use crate::ops::view::reshape::{ALIAS, VIEW};
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&INSTANCE_NORM];

fn run(c: &Call) -> Result<Outputs> {
    let (x, by_input) = (c.tensor(0)?, c.flag("use_input_stats"));
    if !by_input && (c.opt_tensor("running_mean").is_none() || c.opt_tensor("running_var").is_none()) {
        return Err(Error::runtime(
            "Expected running_mean and running_var to be defined when use_input_stats is false",
        ));
    }
    check_rank(x)?;
    let whole = Term::from(x).sizes();
    let (n, channels) = (whole[0], whole[1]);
    let mut shape = whole.clone();
    (shape[0], shape[1]) = (1, n.saturating_mul(channels));
    let each = |i: usize| -> Result<Value<'static>> {
        c.opt_tensor(i).map_or(Ok(Value::None), |t| REPEAT.call((t, [n])).ok().map(Value::Owned))
    };
    let running = [each(3)?, each(4)?];
    let args: Args = smallvec![
        Value::Owned(VIEW.call((CONTIGUOUS.call((x,)), shape)).ok()?),
        each(1)?,
        each(2)?,
        running[0].reborrow(),
        running[1].reborrow(),
        by_input.into(),
        c.argument("momentum").reborrow(),
        c.argument("eps").reborrow(),
        c.argument("cudnn_enabled").reborrow(),
    ];
    let y = BATCH_NORM.call(args).ok()?;
    for (i, moved) in [3, 4].into_iter().zip(&running) {
        if let (Some(t), Some(moved)) = (c.opt_tensor(i), moved.as_tensor()) {
            settle(t, moved, [n, channels])?;
        }
    }
    VIEW.calls((y, whole))
}

/// A running statistic becomes the mean of those of the samples. As in batch normalisation, it has no new version.
fn settle(t: &Tensor, moved: &Tensor, shape: [i64; 2]) -> Result<()> {
    let mean = MEAN_DIM.call((ALIAS.call((moved,)).reshape(&shape), [0], false));
    t.copy_raw(&mean.ok()?)
}

pub static INSTANCE_NORM: Op = Op {
    sig: sig(
        "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    ),
    doc: "Normalises each channel of each sample of [batch, channels, ..] by its mean and variance, or, without `use_input_stats`, by the running statistics; these move towards the mean of those of the samples. Then scales and shifts each channel.\n\nSource: Ulyanov, Vedaldi, Lempitsky, \"Instance Normalization\", arXiv:1607.08022.",
    forms: F,
    // Running statistics are written past the ops, so that it cannot be made of them alone.
    body: reads_host(run),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3,4], None, None, None, None, True, 0.1, 1e-05, True",
        "f32[2,3,4,2], f32[3], f32[3], f32[3](nograd), f32[3](pos, nograd), True, 0.1, 1e-05, True",
        "f32[2,3,4], f32[3], f32[3], f32[3](nograd), f32[3](pos, nograd), False, 0.1, 1e-05, True",
    ],
    errors: &[
        (
            "f32[2,3,4], None, None, None, None, False, 0.1, 1e-05, True",
            "RuntimeError",
            "Expected running_mean and running_var to be defined",
        ),
        ("f32[3], None, None, None, None, True, 0.1, 1e-05, True", "IndexError", "Dimension out of range"),
    ],
    moves: running_statistics,
    batch: Batching::Rule(crate::ops::support::batch_layers::instance_norm),
    ..OP
};
