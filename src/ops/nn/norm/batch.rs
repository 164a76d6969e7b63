//! Batch normalisation: each channel by its mean and variance over the batch, or by running statistics.

use super::{Saved, check_float, format_of, gradients, in_format, opt_flat, result, statistic_dtype};
use crate::autograd::forward::{is_dual, levels, visible};
use crate::cpu::norm::channels;
use crate::cpu::norm::channels::{Channels, Running};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, Show};
use crate::gpu;
use crate::op::*;
use crate::ops::movement::copy::CLONE;
use crate::ops::reduce::var_std::VAR_MEAN_CORRECTION;
use crate::ops::view::reshape::SELECT;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&BATCH_NORM, &NATIVE_BATCH_NORM, &UPDATE_STATS];

/// Arguments of `NATIVE_BATCH_NORM`.
const SIG: Signature = sig(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor~? running_mean, Tensor~? running_var, bool training, float momentum, float eps) -> Tensor[]",
);
/// Weight, bias and the running statistics.
const PARAMETERS: [&str; 4] = ["weight", "bias", "running_mean", "running_var"];

pub(super) fn check_rank(x: &Tensor) -> Result<()> {
    if x.ndim() >= 2 {
        return Ok(());
    }
    let n = x.ndim().max(1) as i64;
    let range = format!("[{}, {}]", -n, n - 1);
    Err(Error::index(format!("Dimension out of range (expected to be in range of {range}, but got 1)")))
}

fn check_length(name: &str, t: Option<&Tensor>, channels: usize) -> Result<()> {
    match t.filter(|t| t.numel() != channels) {
        Some(t) => Err(Error::runtime(format!("{name} should contain {channels} elements not {}", t.numel()))),
        None => Ok(()),
    }
}

fn check_elements(x: &Tensor) -> Result<()> {
    if x.numel() > 0 {
        return Ok(());
    }
    let sizes = Show(x.shape());
    Err(Error::runtime(format!("input tensor must have at least one element, but got input_sizes = {sizes}")))
}

fn check(c: &Call) -> Result<()> {
    let x = c.tensor(0)?;
    check_rank(x)?;
    let channels = x.size(1);
    let (mean, var) = (c.opt_tensor("running_mean"), c.opt_tensor("running_var"));
    if mean.is_some() != var.is_some() {
        return Err(Error::value("running_mean and running_var must either both be None or neither be None"));
    }
    if mean.is_none() && !c.flag("training") {
        return Err(Error::runtime("running_mean must be defined in evaluation mode"));
    }
    for name in PARAMETERS {
        check_length(name, c.opt_tensor(name), channels)?;
    }
    check_float(x, "batch_norm")
}

fn infer(c: &Call) -> Result<Specs> {
    check(c)?;
    let x = c.tensor(0)?;
    if c.flag("training") {
        check_elements(x)?;
    }
    let dtype = statistic_dtype(x, &PARAMETERS.map(|i| c.opt_tensor(i)))?;
    let count = if c.flag("training") { x.size(1) } else { 0 };
    let statistic = Spec::new(&[count], dtype, x.device());
    Ok(smallvec![result(x, None)?, statistic.clone(), statistic])
}

/// A running statistic as a vector over its own memory, which is written.
fn line(t: Option<&Tensor>) -> Result<Option<Tensor>> {
    t.map(|t| Ok(t.with_layout(t.layout().view(&[-1])?))).transpose()
}

fn forward(c: &Call, out: &[Tensor]) -> Result<()> {
    let format = format_of(c.tensor(0)?, None);
    let (x, y) = (in_format(c.tensor(0)?, format)?, in_format(&out[0], format)?);
    let (weight, bias) = (opt_flat(c.opt_tensor("weight"))?, opt_flat(c.opt_tensor("bias"))?);
    let (mean, var) = (line(c.opt_tensor("running_mean"))?, line(c.opt_tensor("running_var"))?);
    let [weight, bias, mean, var] = [&weight, &bias, &mean, &var].map(|t| t.as_ref().map(|t| t.cpu_view()).transpose());
    let (weight, bias, running) = (weight?, bias?, mean?.zip(var?));
    let o = Channels { input: x.cpu_view()?, weight, bias, groups: None, eps: c.float("eps")? };
    if c.flag("training") {
        let momentum = c.float("momentum")?;
        let running = running.map(|(mean, var)| Running { mean, var, momentum });
        return channels::normalise(&o, running, y.cpu_view()?, out[1].cpu_view()?, out[2].cpu_view()?);
    }
    let Some((mean, var)) = running else { return Err(Error::internal("evaluation without running statistics")) };
    channels::normalise_by(&o, mean, var, y.cpu_view()?)
}

fn forward_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let x = c.tensor(0)?;
    let format = format_of(x, None);
    let (running, eps) = (c.opt_tensor("running_mean").zip(c.opt_tensor("running_var")), c.float("eps")?);
    if !c.flag("training") {
        let Some((mean, var)) = running else { return Err(Error::internal("evaluation without running statistics")) };
        return out[0].copy_raw(&by_running(c, mean, var, eps).ok()?);
    }
    let (x, y) = (in_format(x, format)?, in_format(&out[0], format)?);
    let (weight, bias) = (opt_flat(c.opt_tensor("weight"))?, opt_flat(c.opt_tensor("bias"))?);
    let variance = Tensor::empty(out[1].shape(), DType::F32, x.device())?;
    let of = gpu::Channels {
        input: x.gpu_view()?,
        weight: weight.as_ref().map(|t| t.gpu_view()).transpose()?,
        bias: bias.as_ref().map(|t| t.gpu_view()).transpose()?,
        groups: None,
        eps,
    };
    let [mean, rstd, var] = [&out[1], &out[2], &variance].map(|t| t.gpu_view());
    gpu::normalise(&of, &y.gpu_view()?, &mean?, &rstd?, &var?)?;
    let Some((mean, var)) = running else { return Ok(()) };
    let n = x.numel() / x.size(1);
    approach(mean, Term::from(&out[1]), c.float("momentum")?)?;
    approach(var, unbiased(Term::from(&variance), n), c.float("momentum")?)
}

/// The unbiased variance of `n` elements. Of one it is none, as on the CPU: 0 / 0.
fn unbiased(var: Term, n: usize) -> Term {
    var * n as f64 / Term::number(Scalar::Float(n as f64 - 1.0))
}

/// A running statistic moves towards that of a batch. It has no new version.
fn approach(running: &Tensor, new: Term, momentum: f64) -> Result<()> {
    let old = Term::from(running);
    running.copy_raw(&(old.clone() * (1.0 - momentum) + new.reshape(&old.sizes()) * momentum).ok()?)
}

/// The result in evaluation, from elementwise ops.
fn by_running(c: &Call, mean: &Tensor, var: &Tensor, eps: f64) -> Term {
    let Ok(x) = c.tensor(0) else { return Error::internal("no input").into() };
    let mut shape: Ints = smallvec![1; x.ndim()];
    shape[1] = x.size(1) as i64;
    let wide = |t: &Tensor| Term::from(t).to_dtype(DType::F32).reshape(&shape);
    let scale = c.opt_tensor("weight").into_iter().fold((wide(var) + eps).rsqrt(), |s, w| s * wide(w));
    let y = (Term::from(x).to_dtype(DType::F32) - wide(mean)) * scale;
    c.opt_tensor("bias").into_iter().fold(y, |y, b| y + wide(b))
}

fn saved(c: &VjpCtx) -> Saved {
    let given = !c.flag("training");
    let eps = c.float("eps");
    let (mean, rstd) = if given {
        let wide = |i: usize| if c.meta_of(i).dtype == DType::F64 { c.arg(i) } else { c.arg(i).to_dtype(DType::F32) };
        (c.arg(3), (wide(4) + eps).rsqrt())
    } else {
        (c.out(1), c.out(2))
    };
    Saved { input: c.arg(0), weight: c.opt_tensor("weight").cloned(), mean, rstd, groups: None, eps, given }
}

/// In evaluation the result depends on the running statistics, but its tangent has no term of theirs.
fn check_tangents(c: &Call) -> Result<()> {
    let dual = |names: &[&str]| {
        let tensors = || names.iter().filter_map(|&name| c.opt_tensor(name));
        levels(visible()).any(|level| tensors().any(|t| is_dual(t, level)))
    };
    if c.flag("training") || !dual(&["running_mean", "running_var"]) || !dual(&["input", "weight", "bias"]) {
        return Ok(());
    }
    Err(Error::runtime(
        "batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward grad defined",
    ))
}

pub static BATCH_NORM: Op = Op {
    sig: sig(
        "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor~? running_mean, Tensor~? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    ),
    doc: "Normalises each channel of [batch, channels, ..] by its mean and variance: with `training` over the batch and the inner dimensions, and the running statistics move towards them by `momentum`, the variance unbiased; else by the running statistics. Then scales and shifts.\n\nSource: Ioffe, Szegedy, \"Batch Normalization\", arXiv:1502.03167.",
    forms: F,
    body: decompose(|c| {
        let x = c.tensor(0)?;
        // Nothing is normalised: PyTorch looks no further either.
        if x.numel() == 0 {
            let one = |i: usize| c.opt_tensor(i).map(|t| SELECT.call((t, 0, 0)));
            let y = one(1).into_iter().fold(CLONE.call((x,)), |y, w| y * w);
            return one(2).into_iter().fold(y, |y, b| y + b).outputs();
        }
        check(c)?;
        check_tangents(c)?;
        let args: Args = c.args[..8].iter().map(|v| v.reborrow()).collect();
        Ok(smallvec![NATIVE_BATCH_NORM.calls(args)?.swap_remove(0)])
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[4,3], None, None, None, None, True, 0.1, 1e-05, True",
        "f32[4,3], f32[3], f32[3], f32[3](nograd), f32[3](pos, nograd), True, 0.1, 1e-05, True",
        "f32[2,3,4], None, None, f32[3](nograd), f32[3](pos, nograd), True, 0.1, 1e-05, True",
        "f32[2,3,2,4], f32[3], f32[3], f32[3](nograd), f32[3](pos, nograd), False, 0.1, 1e-05, True",
        "f64[2,2,2,3,2], f64[2], f64[2], f64[2](nograd), f64[2](pos, nograd), True, 0.3, 0.01, False",
    ],
    errors: &[
        ("f32[4], None, None, None, None, True, 0.1, 1e-05, True", "IndexError", "Dimension out of range"),
        (
            "f32[4,3], f32[2], None, None, None, True, 0.1, 1e-05, True",
            "RuntimeError",
            "weight should contain 3 elements not 2",
        ),
        (
            "f32[4,3], None, None, None, None, False, 0.1, 1e-05, True",
            "RuntimeError",
            "running_mean must be defined in evaluation mode",
        ),
        (
            "f32[4,3], None, None, f32[3](nograd), None, True, 0.1, 1e-05, True",
            "ValueError",
            "must either both be None or neither be None",
        ),
        ("i64[4,3], None, None, None, None, True, 0.1, 1e-05, True", "NotImplementedError", "\"batch_norm\""),
        ("c64[4,3], None, None, None, None, True, 0.1, 1e-05, True", "NotImplementedError", "\"batch_norm\""),
    ],
    ..OP
};

/// The running statistics that a call has, one bit each.
fn given_statistics(c: &Call) -> u32 {
    let given = ["running_mean", "running_var"].into_iter().filter(|&name| c.opt_tensor(name).is_some());
    given.fold(0, |bits, name| bits | 1 << name.position(&c.op.sig))
}

/// The running statistics of a call that moves them: those that there are, if argument 5 says so.
pub(super) fn running_statistics(c: &Call) -> u32 {
    if c.flag(5) { given_statistics(c) } else { 0 }
}

pub static NATIVE_BATCH_NORM: Op = Op {
    sig: SIG,
    doc: "`batch_norm` with the mean and the reciprocal standard deviation of each channel in training; they are empty in evaluation.",
    forms: F,
    // As in PyTorch, the running statistics change without a new version: a second forward pass leaves the first one's
    // graph valid, which does not read them.
    body: kernel(infer, forward, Some(forward_gpu)),
    vjp: Vjp::Joint(Joint {
        args: &[0, 1, 2],
        saves: A0 | A1 | A3 | A4 | OUT1 | OUT2,
        formula: |c| gradients(c, saved(c), [0, 1, 2]),
    }),
    constant: &[1, 2],
    keeps: Some("eps input result1 result2 running_mean running_var training weight"),
    moves: running_statistics,
    samples: &[
        "f32[4,3], f32[3], f32[3], None, None, True, 0.1, 1e-05",
        "f32[2,3,20,20], f32[3], None, f32[3](nograd), f32[3](pos, nograd), True, 0.1, 1e-05",
        "f32[2,3,4], None, f32[3], f32[3](nograd), f32[3](pos, nograd), False, 0.1, 1e-05",
        "bf16[4,3,2], f32[3](nograd), f32[3](nograd), f32[3](nograd), f32[3](pos, nograd), True, 0.1, 1e-05",
        "f16[4,3,2], f16[3](nograd), f16[3](nograd), None, None, True, 0.1, 1e-05",
    ],
    errors: &[
        (
            "f32[0,3], None, None, None, None, True, 0.1, 1e-05",
            "RuntimeError",
            "input tensor must have at least one element",
        ),
        (
            "f32[4,3], f64[3], None, None, None, True, 0.1, 1e-05",
            "RuntimeError",
            "expect parameter to have scalar type of Float",
        ),
        ("f64[4,3], f32[3], None, None, None, True, 0.1, 1e-05", "RuntimeError", "all inputs must share same datatype"),
    ],
    batch: Batching::Rule(crate::ops::support::batch_layers::batch_norm),
    ..OP
};

fn infer_stats(c: &Call) -> Result<Specs> {
    let x = c.tensor(0)?;
    check_rank(x)?;
    check_float(x, "batch_norm_update_stats_cpu")?;
    check_elements(x)?;
    let running = [c.opt_tensor("running_mean"), c.opt_tensor("running_var")];
    check_length("running_mean", running[0], x.size(1))?;
    check_length("running_var", running[1], x.size(1))?;
    let statistic = Spec::new(&[x.size(1)], statistic_dtype(x, &running)?, x.device());
    Ok(smallvec![statistic.clone(), statistic])
}

fn update_stats(c: &Call) -> Result<Outputs> {
    let (specs, x) = (infer_stats(c)?, c.tensor(0)?);
    let wide = if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let dims: Ints = (0..x.ndim() as i64).filter(|&d| d != 1).collect();
    let moments = VAR_MEAN_CORRECTION.calls((Term::from(x).to_dtype(wide), dims, 0.0))?;
    let (var, mean) = (Term::from(&moments[0]), Term::from(&moments[1]));
    let momentum = c.float("momentum")?;
    if let Some(running) = c.opt_tensor("running_mean") {
        approach(running, mean.clone(), momentum)?;
    }
    if let Some(running) = c.opt_tensor("running_var") {
        approach(running, unbiased(var.clone(), x.numel() / x.size(1)), momentum)?;
    }
    Ok(smallvec![mean.to_dtype(specs[0].dtype).ok()?, var.to_dtype(specs[0].dtype).ok()?])
}

pub static UPDATE_STATS: Op = Op {
    sig: sig(
        "batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var, float momentum) -> Tensor[]",
    ),
    doc: "Mean and variance (divided by n) of each channel of [batch, channels, ..]; the running statistics move towards them by `momentum`, the variance unbiased.",
    forms: F,
    body: opaque(infer_stats, update_stats),
    vjp: Vjp::Missing,
    moves: given_statistics,
    samples: &[
        "f32[4,3](nograd), None, None, 0.1",
        "f32[2,3,4](nograd), f32[3](nograd), f32[3](pos, nograd), 0.1",
        "bf16[4,3,2](nograd), f32[3](nograd), None, 0.3",
    ],
    errors: &[
        ("f32[4], None, None, 0.1", "IndexError", "Dimension out of range"),
        ("f32[0,3], None, None, 0.1", "RuntimeError", "input tensor must have at least one element"),
        ("f32[4,3], f32[2], None, 0.1", "RuntimeError", "running_mean should contain 3 elements not 2"),
        ("i64[4,3], None, None, 0.1", "NotImplementedError", "batch_norm_update_stats_cpu"),
    ],
    ..OP
};
