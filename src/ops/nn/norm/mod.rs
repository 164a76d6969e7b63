//! Normalisation by statistics of channels (`batch`), of groups of channels (`group`, `instance`), and by the
//! root mean square of rows (`rms`). That by mean and variance of rows is `layer_norm`.
//!
//! Batch and group normalisation share their kernels and one gradient: they differ in what a statistic covers.

use crate::cpu::norm::channels;
use crate::cpu::norm::channels::{Channels, Gradients};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::{Format, Layout};
use crate::op::*;
use crate::ops::movement::copy::CONTIGUOUS;
use crate::ops::reduce::sum_prod::MEAN_DIM;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub mod batch;
pub mod group;
pub mod instance;
pub mod rms;

pub static OPS: &[&Op] = &[&NORM_BACKWARD];

/// Batch, channels, and the elements of a channel in a sample.
fn sizes(shape: &[usize]) -> [usize; 3] {
    [shape[0], shape[1], shape[2..].iter().product()]
}

/// A tensor, made dense in a memory format, viewed as `[n, c, l]`; a result that lies in the format, over its own memory.
fn in_format(t: &Tensor, format: Format) -> Result<Tensor> {
    let [n, c, l] = sizes(t.shape());
    let t = CONTIGUOUS.call((t, Value::Format(format))).ok()?;
    let strides = if format == Format::Contiguous { [c * l, l, 1] } else { [c * l, 1, c] };
    let strides = strides.as_slice().into();
    let layout = Layout { shape: [n, c, l].as_slice().into(), strides, offset: t.layout().offset };
    Ok(t.with_layout(layout))
}

/// A tensor viewed as a vector of its elements.
fn flat(t: &Tensor) -> Result<Tensor> {
    let t = Term::from(t).contiguous().ok()?;
    Ok(t.with_layout(Layout { offset: t.layout().offset, ..Layout::contiguous(&[t.numel()]) }))
}

fn opt_flat(t: Option<&Tensor>) -> Result<Option<Tensor>> {
    t.map(flat).transpose()
}

/// The format of the result for `x`, as in PyTorch: over a batch, memory that is dense row-major counts as such, and
/// memory that is dense with the channels last as that, wherever sizes of one leave the strides ambiguous.
fn format_of(x: &Tensor, groups: Option<usize>) -> Format {
    let (of_x, last) = (x.layout(), if x.ndim() == 5 { Format::ChannelsLast3d } else { Format::ChannelsLast });
    if groups.is_none() && matches!(x.ndim(), 4 | 5) {
        if of_x.is_contiguous() {
            return Format::Contiguous;
        }
        if last.strides(x.shape()).is_ok_and(|strides| of_x.lies_as(&strides)) {
            return last;
        }
    }
    of_x.channels_format()
}

/// The result of a normalisation.
fn result(x: &Tensor, groups: Option<usize>) -> Result<Spec> {
    let layout = x.layout().formed(format_of(x, groups))?;
    Ok(Spec { layout, dtype: x.dtype(), device: x.device() })
}

/// Refuses what has no floating point kernel, in PyTorch's words.
fn check_float(x: &Tensor, kernel: &str) -> Result<()> {
    if x.dtype().is_float() {
        return Ok(());
    }
    let name = x.dtype().scalar_type_name();
    Err(Error::not_implemented(format!("\"{kernel}\" not implemented for '{name}'")))
}

/// The dtype of the statistics: that of the input, or float32 where an input of half precision comes with such parameters.
/// Errors: RuntimeError for other mixtures.
fn statistic_dtype(x: &Tensor, parameters: &[Option<&Tensor>]) -> Result<DType> {
    let mut others = parameters.iter().flatten().filter(|t| t.dtype() != x.dtype()).peekable();
    if others.peek().is_none() {
        return Ok(x.dtype());
    }
    let problem = if parameters.iter().flatten().any(|t| t.dtype() != DType::F32) {
        "mixed dtype (CPU): expect parameter to have scalar type of Float"
    } else if !x.dtype().is_narrow_float() {
        "mixed dtype (CPU): all inputs must share same datatype."
    } else {
        return Ok(DType::F32);
    };
    Err(Error::runtime(problem))
}

/// What the gradient reads of a recorded normalisation.
struct Saved {
    input: Term,
    weight: Option<Tensor>,
    mean: Term,
    rstd: Term,
    /// Groups of channels; `None` for statistics of each channel over the batch.
    groups: Option<usize>,
    eps: f64,
    /// Whether the statistics were given, and do not depend on the input.
    given: bool,
}

/// The gradients by input, weight and bias: one kernel, or formulas where the gradient is recorded. `args` are the three
/// arguments' positions.
fn gradients(c: &VjpCtx, s: Saved, args: [usize; 3]) -> Result<Vec<Option<Tensor>>> {
    // A gradient of the statistics themselves, which group normalisation passes on, is for the formulas too.
    let by_statistics = s.groups.is_some() && (c.has_grad(1) || c.has_grad(2));
    let parts = if crate::autograd::forward::differentiating() || by_statistics {
        let tied = args.into_iter().take(2).collect::<Vec<_>>();
        let [dx, dw, db] = recorded(c, s);
        [dx.ok()?, dw.ok()?, c.tie_requires_grad(db, &tied).ok()?]
    } else {
        let args: Args = smallvec![
            c.g().into_arg()?,
            s.input.into_arg()?,
            s.weight.as_ref().map_or(Value::None, Value::from),
            s.mean.into_arg()?,
            s.rstd.into_arg()?,
            s.groups.unwrap_or(0).into(),
            s.given.into(),
        ];
        let parts = NORM_BACKWARD.calls(args)?;
        [0, 1, 2].map(|i| parts[i].clone())
    };
    Ok(parts.into_iter().zip(args).map(|(t, arg)| c.wants(arg).then_some(t)).collect())
}

/// The gradients as formulas of `[n, groups, channels of a group, l]`, in which the statistics depend on the input.
fn recorded(c: &VjpCtx, s: Saved) -> [Term; 3] {
    let whole = c.sizes(0);
    let [n, channels, l] = sizes(&c.shape(0)).map(|d| d as i64);
    let groups = s.groups.map_or(channels, |g| g as i64);
    let each = channels / groups;
    let half = c.meta_of(0).dtype.is_narrow_float();
    let wide = |t: Term| if half { t.to_dtype(DType::F32) } else { t };
    let shape = [n, groups, each, l];
    let (x, g) = (wide(s.input.reshape(&shape)), wide(c.g().reshape(&shape)));
    let dims: Ints = if s.groups.is_some() { smallvec![2, 3] } else { smallvec![0, 2, 3] };
    let mean_of = |t: Term| MEAN_DIM.call((t, dims.clone(), true));
    let (h, rstd) = if s.given {
        let aside = |t: Term| wide(t).reshape(&[1, groups, 1, 1]);
        ((x - aside(s.mean)) * aside(s.rstd.clone()), aside(s.rstd))
    } else {
        let centred = x.clone() - mean_of(x);
        let rstd = (mean_of(centred.clone() * centred.clone()) + s.eps).rsqrt();
        (centred * rstd.clone(), rstd)
    };
    let weight = s.weight.map(|w| wide(Term::from(&w)).reshape(&[1, groups, each, 1]));
    let gw = weight.into_iter().fold(g.clone(), |g, w| g * w);
    let mut dx = if s.given {
        rstd.clone() * gw
    } else {
        rstd.clone() * (gw.clone() - mean_of(gw.clone()) - h.clone() * mean_of(gw * h.clone()))
    };
    if s.groups.is_some() {
        // Of the mean 1 / n, of the reciprocal deviation - rstd^2 h / n.
        let share = |i: usize| c.has_grad(i).then(|| wide(c.gi(i)).reshape(&[n, groups, 1, 1]) / (each * l) as f64);
        dx = share(1).into_iter().fold(dx, |dx, g| dx + g);
        dx = share(2).into_iter().fold(dx, |dx, g| dx - h.clone() * rstd.clone() * rstd.clone() * g);
    }
    let of_channels = |t: Term| t.sum(&[0, 3], false).reshape(&[channels]);
    [dx.reshape(&whole), of_channels(g.clone() * h), of_channels(g)]
}

pub static NORM_BACKWARD: Op = Op {
    sig: sig(
        "_norm_backward(Tensor grad, Tensor input, Tensor? weight, Tensor mean, Tensor rstd, int groups, bool given) -> Tensor[]",
    ),
    doc: "The gradients of batch (`groups` 0) or group normalisation by input, weight and bias, in two passes.",
    forms: HIDDEN,
    body: kernel(infer_backward, backward, Some(backward_gpu)),
    vjp: Vjp::None("its formulas are recorded instead"),
    samples: &[
        "f32[2,3,4], f32[2,3,4], f32[3], f32[3], f32[3](pos), 0, False",
        "f32[5,3], f32[5,3], f32[3], f32[3], f32[3](pos), 0, True",
        "f32[2,4,3,3], f32[2,4,3,3], f32[4], f32[2,2], f32[2,2](pos), 2, False",
        "f32[2,4,3,3], f32[2,4,3,3], None, f32[2,4], f32[2,4](pos), 4, False",
    ],
    errors: &[
        ("f32[2,3], f32[2,2], None, f32[2], f32[2], 0, False", "RuntimeError", "shape of the input"),
        ("f32[2,3], f32[2,3], None, f32[2], f32[3], 0, False", "RuntimeError", "one mean and one deviation"),
        ("f32[2,3], f32[2,3], f32[2], f32[3], f32[3], 0, False", "RuntimeError", "as many weights"),
        ("f32[2,3], f32[2,3], None, f32[2], f32[2], 2, False", "RuntimeError", "groups"),
    ],
    batch: Batching::Rule(crate::ops::support::batch_layers::norm_backward),
    ..OP
};

fn infer_backward(c: &Call) -> Result<Specs> {
    let (x, groups) = (c.tensor("input")?, c.int("groups")?);
    let refuse = |text: &str| Err(Error::runtime(text));
    if c.tensor("grad")?.shape() != x.shape() || x.ndim() < 2 {
        return refuse("the gradient must have the shape of the input, which has a batch and channels");
    }
    if groups < 0 || (groups > 0 && x.size(1) as i64 % groups != 0) {
        return refuse("the channels must be divisible by the groups");
    }
    if c.opt_tensor("weight").is_some_and(|w| w.shape() != [x.size(1)]) {
        return refuse("as many weights as channels are needed");
    }
    let count = if groups == 0 { x.size(1) } else { x.size(0) * groups as usize };
    if c.tensor("mean")?.numel() != count || c.tensor("rstd")?.numel() != count {
        return refuse("one mean and one deviation for each statistic are needed");
    }
    if c.all_tensors().any(|t| !t.dtype().is_float()) {
        return refuse("floating point tensors are needed");
    }
    let one = Spec::new(&[x.size(1)], c.opt_tensor("weight").map_or(x.dtype(), |w| w.dtype()), x.device());
    Ok(smallvec![result(x, groups_of(c)?)?, one.clone(), one])
}

fn groups_of(c: &Call) -> Result<Option<usize>> {
    Ok(Some(c.int("groups")? as usize).filter(|&g| g > 0))
}

fn backward(c: &Call, out: &[Tensor]) -> Result<()> {
    let x = c.tensor("input")?;
    let format = format_of(x, groups_of(c)?);
    let (g, x, dx) = (in_format(c.tensor("grad")?, format)?, in_format(x, format)?, in_format(&out[0], format)?);
    let (mean, rstd, weight) = (flat(c.tensor("mean")?)?, flat(c.tensor("rstd")?)?, opt_flat(c.opt_tensor("weight"))?);
    let weight = weight.as_ref().map(|w| w.cpu_view()).transpose()?;
    let o = Channels { input: x.cpu_view()?, weight, bias: None, groups: groups_of(c)?, eps: 0.0 };
    let to = Gradients { dx: dx.cpu_view()?, dw: out[1].cpu_view()?, db: out[2].cpu_view()? };
    channels::normalise_backward(&o, g.cpu_view()?, mean.cpu_view()?, rstd.cpu_view()?, c.flag("given"), &to)
}

fn backward_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let x = c.tensor("input")?;
    let format = format_of(x, groups_of(c)?);
    let (g, x, dx) = (in_format(c.tensor("grad")?, format)?, in_format(x, format)?, in_format(&out[0], format)?);
    let (mean, rstd, weight) = (flat(c.tensor("mean")?)?, flat(c.tensor("rstd")?)?, opt_flat(c.opt_tensor("weight"))?);
    let from = gpu::ChannelGrad {
        grad: g.gpu_view()?,
        input: x.gpu_view()?,
        mean: mean.gpu_view()?,
        rstd: rstd.gpu_view()?,
        weight: weight.as_ref().map(|w| w.gpu_view()).transpose()?,
        groups: groups_of(c)?,
        given: c.flag("given"),
    };
    gpu::normalise_backward(&from, &dx.gpu_view()?, &out[1].gpu_view()?, &out[2].gpu_view()?)
}
