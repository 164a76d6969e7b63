//! Group normalisation: groups of the channels of a sample, each by its mean and variance.

use super::{Saved, check_float, gradients, in_format, opt_flat, result, statistic_dtype};
use crate::cpu::norm::channels;
use crate::cpu::norm::channels::Channels;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::gpu;
use crate::op::*;
use crate::ops::movement::copy::CONTIGUOUS;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&GROUP_NORM, &NATIVE_GROUP_NORM];

/// Arguments of `NATIVE_GROUP_NORM`.
const SIG: Signature = sig(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) -> Tensor[]",
);

/// Ranks, groups and parameters, in PyTorch's words.
fn check(x: &Tensor, groups: i64, weight: Option<&Tensor>, bias: Option<&Tensor>) -> Result<()> {
    if x.ndim() < 2 {
        let n = x.ndim().max(1) as i64;
        let range = format!("[{}, {}]", -n, n - 1);
        return Err(Error::index(format!("Dimension out of range (expected to be in range of {range}, but got 1)")));
    }
    if groups <= 0 {
        return Err(Error::runtime(format!("Expected num groups to be greater than 0, got {groups}")));
    }
    if x.size(1) as i64 % groups != 0 {
        return Err(Error::runtime(format!(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape {} and num_groups={groups}",
            Show(x.shape())
        )));
    }
    if x.size(1) == 0 {
        return Err(Error::runtime("Expected number of channels to be greater than 0, got 0"));
    }
    for (name, t) in [("weight", weight), ("bias", bias)] {
        if let Some(t) = t.filter(|t| t.shape() != [x.size(1)]) {
            return Err(Error::runtime(format!(
                "Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape {} and input of shape {}",
                Show(t.shape()),
                Show(x.shape())
            )));
        }
    }
    Ok(())
}

fn infer(c: &Call) -> Result<Specs> {
    let (x, weight, bias) = (c.tensor(0)?, c.opt_tensor("weight"), c.opt_tensor("bias"));
    check(x, c.int("group")?, weight, bias)?;
    let sizes = super::sizes(x.shape()).map(|d| d as i64);
    let given = [c.int("N")?, c.int("C")?, c.int("HxW")?];
    if sizes != given {
        return Err(Error::runtime(format!(
            "Expected N, C and HxW to be the sizes of the input, {}, but got {}",
            Show(&sizes),
            Show(&given)
        )));
    }
    if sizes[2] == 0 {
        return Err(Error::runtime("Expected HxW to be greater than 0, got 0"));
    }
    check_float(x, "GroupNormKernelImpl")?;
    let dtype = statistic_dtype(x, &[weight, bias])?;
    let groups = Some(c.int("group")? as usize);
    let statistic = Spec::new(&[x.size(0), c.int("group")? as usize], dtype, x.device());
    Ok(smallvec![result(x, groups)?, statistic.clone(), statistic])
}

fn forward(c: &Call, out: &[Tensor]) -> Result<()> {
    let format = c.tensor(0)?.layout().channels_format();
    let (x, y) = (in_format(c.tensor(0)?, format)?, in_format(&out[0], format)?);
    let [weight, bias, mean, rstd] =
        [c.opt_tensor("weight"), c.opt_tensor("bias"), Some(&out[1]), Some(&out[2])].map(opt_flat);
    let (weight, bias, mean, rstd) = (weight?, bias?, mean?, rstd?);
    let groups = Some(c.int("group")? as usize);
    if x.device().is_gpu() {
        let [weight, bias, mean, rstd] =
            [&weight, &bias, &mean, &rstd].map(|t| t.as_ref().map(|t| t.gpu_view()).transpose());
        let of = gpu::Channels { input: x.gpu_view()?, weight: weight?, bias: bias?, groups, eps: c.float("eps")? };
        let (Some(mean), Some(rstd)) = (mean?, rstd?) else { return Err(Error::internal("results are missing")) };
        let variance = Tensor::empty(mean.shape, DType::F32, x.device())?;
        return gpu::normalise(&of, &y.gpu_view()?, &mean, &rstd, &variance.gpu_view()?);
    }
    let [weight, bias, mean, rstd] =
        [&weight, &bias, &mean, &rstd].map(|t| t.as_ref().map(|t| t.cpu_view()).transpose());
    let o = Channels { input: x.cpu_view()?, weight: weight?, bias: bias?, groups, eps: c.float("eps")? };
    let (Some(mean), Some(rstd)) = (mean?, rstd?) else { return Err(Error::internal("results are missing")) };
    channels::normalise(&o, None, y.cpu_view()?, mean, rstd)
}

pub static GROUP_NORM: Op = Op {
    sig: sig(
        "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
    ),
    doc: "Normalises each of `num_groups` groups of the channels of [batch, channels, ..] to mean 0 and variance 1; then scales and shifts each channel.\n\nSource: Wu, He, \"Group Normalization\", arXiv:1803.08494.",
    forms: F,
    body: decompose(|c| {
        let x = c.tensor(0)?;
        check(x, c.int("num_groups")?, c.opt_tensor("weight"), c.opt_tensor("bias"))?;
        let [n, channels, l] = super::sizes(x.shape());
        let x = CONTIGUOUS.call((x, Value::Format(x.layout().channels_format()))).ok()?;
        let args: Args = smallvec![
            x.into(),
            c.argument("weight").reborrow(),
            c.argument("bias").reborrow(),
            n.into(),
            channels.into(),
            l.into(),
            c.int("num_groups")?.into(),
            c.float("eps")?.into(),
        ];
        Ok(smallvec![NATIVE_GROUP_NORM.calls(args)?.swap_remove(0)])
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,4,3], 2",
        "f32[2,4,3,2], 4, f32[4], f32[4]",
        "f32[3,6], 2, f32[6], f32[6], 0.1",
        "f64[2,4,2,2,2], 1, f64[4]",
    ],
    errors: &[
        ("f32[2,3,4], 2", "RuntimeError", "to be divisible by num_groups"),
        ("f32[2,3,4], 0", "RuntimeError", "Expected num groups to be greater than 0, got 0"),
        ("f32[2,3,4], 3, f32[2]", "RuntimeError", "Expected weight to be a vector of size equal"),
        ("f32[3], 3", "IndexError", "Dimension out of range"),
        ("f32[2,3,0], 3", "RuntimeError", "Expected HxW to be greater than 0, got 0"),
        ("i64[2,3,4], 3", "NotImplementedError", "GroupNormKernelImpl"),
    ],
    ..OP
};

pub static NATIVE_GROUP_NORM: Op = Op {
    sig: SIG,
    doc: "`group_norm` of [N, C, ..] with HxW elements a channel, with the mean and the reciprocal standard deviation of each group, [N, group].",
    forms: F,
    body: kernel(infer, forward, Some(forward)),
    vjp: Vjp::Joint(Joint {
        args: &[0, 1, 2],
        saves: A0 | A1 | OUT1 | OUT2,
        formula: |c| {
            let (mean, rstd, groups) = (c.out(1), c.out(2), Some(c.int("group") as usize));
            let weight = c.opt_tensor("weight").cloned();
            let s = Saved { input: c.arg(0), weight, mean, rstd, groups, eps: c.float("eps"), given: false };
            gradients(c, s, [0, 1, 2])
        },
    }),
    keeps: Some("C HxW N group input result1 result2 weight"),
    samples: &[
        "f32[2,4,3], f32[4](nograd), None, 2, 4, 3, 2, 1e-05",
        "f32[2,4,3,2], f32[4], f32[4], 2, 4, 6, 2, 1e-05",
        "bf16[2,4,3], f32[4](nograd), f32[4](nograd), 2, 4, 3, 4, 1e-05",
    ],
    errors: &[("f32[2,4,3], None, None, 2, 4, 6, 2, 1e-05", "RuntimeError", "to be the sizes of the input")],
    batch: Batching::Rule(crate::ops::support::batch_layers::group_norm),
    ..OP
};
