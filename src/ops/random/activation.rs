//! Activations with random numbers: rrelu, gumbel_softmax.

use super::discrete::written;
use super::distributions::{Draw, EXPONENTIAL_, draw, source};
use crate::cpu::mersenne::Mersenne;
use crate::dtype::default_dtype;
use crate::error::{Error, Result};
use crate::gpu;
use crate::op::*;
use crate::ops::activation::piecewise_backward::LEAKY_RELU_BACKWARD;
use crate::ops::activation::smooth::{LEAKY_RELU, told_by_result};
use crate::ops::create::full::ZEROS;
use crate::ops::create::like::EMPTY;
use crate::ops::elementwise::arith::MUL;
use crate::ops::indexing::gather_scatter::SCATTER_VALUE;
use crate::ops::movement::copy::CONTIGUOUS;
use crate::ops::nn::softmax::SOFTMAX;
use crate::ops::reduce::extrema::ARGMAX;
use crate::ops::support::host_read::Dense;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] =
    &[&RRELU_SLOPES, &RRELU, &RRELU_, &F_RRELU, &RRELU_WITH_NOISE, &RRELU_WITH_NOISE_, &GUMBEL_SOFTMAX];

/// The slope of negative elements outside of training.
fn mean_slope(c: &VjpCtx) -> f64 {
    (c.float("lower") + c.float("upper")) / 2.0
}

/// What both forms have in common.
const WITH_NOISE: Op = Op {
    doc: "`self * noise` in training, else the leaky ReLU with slope `(lower + upper) / 2`.",
    forms: HIDDEN,
    // As PyTorch's result, row-major for any strides of the input.
    body: decompose(|c| {
        let out = match c.flag("training") {
            true => MUL.call((c.tensor(0)?, c.tensor("noise")?)),
            false => LEAKY_RELU.call((c.tensor(0)?, (c.float("lower")? + c.float("upper")?) / 2.0)),
        };
        CONTIGUOUS.calls((out,))
    }),
    vjp: Vjp::Each(&[d(0, A0 | A1, |c| match c.flag("training") {
        true => c.g() * c.arg(1),
        false => LEAKY_RELU_BACKWARD.call((c.g(), c.arg(0), mean_slope(c))),
    })]),
    samples: &["f32[2,3], f32[2,3](pos, nograd), 0.1, 0.3, True", "f32[2,3], f32[0](nograd), 0.1, 0.3, False"],
    errors: &[("'a', f32[2], 0.1, 0.3, True", "TypeError", "must be Tensor")],
    ..OP
};

pub static RRELU_WITH_NOISE: Op = Op {
    sig: sig("_rrelu_with_noise(Tensor self, Tensor noise, float lower, float upper, bool training) -> Tensor"),
    node: "RreluWithNoiseBackward0",
    keeps: Some("lower noise self training upper"),
    ..WITH_NOISE
};
/// The form in place, whose gradient reads the result.
pub static RRELU_WITH_NOISE_: Op = Op {
    sig: sig("_rrelu_with_noise_onto(Tensor self, Tensor noise, float lower, float upper, bool training) -> Tensor"),
    node: "RreluWithNoiseBackward1",
    vjp: Vjp::Each(&[d(0, A1 | OUT0, |c| {
        match (c.flag("training"), told_by_result(mean_slope(c) < 0.0, "leakyReLu")) {
            (true, _) => c.g() * c.arg(1),
            (false, Ok(())) => LEAKY_RELU_BACKWARD.call((c.g(), c.out(0), mean_slope(c))),
            (false, Err(e)) => Term(Err(e)),
        }
    })]),
    keeps: Some("lower noise result training upper"),
    ..WITH_NOISE
};

/// `op` of (input, lower, upper, training) and the generator in argument 4, if there is one.
fn rrelu(c: &Call, op: &'static Op, generator: bool) -> Result<Outputs> {
    let (x, lower, upper, training) = (c.tensor(0)?, c.float("lower")?, c.float("upper")?, c.flag("training"));
    if lower > upper {
        return Err(Error::runtime(format!(
            "Lower bound should be less than or equal to the upper bound; expected lower <= upper, got {lower} and {upper}"
        )));
    }
    if !x.dtype().is_float() {
        let own = x.dtype().scalar_type_name();
        return Err(Error::not_implemented(format!("\"rrelu_with_noise_cpu\" not implemented for '{own}'")));
    }
    let noise = match training {
        true => {
            let from = if generator { c.args[4].reborrow() } else { Value::None };
            RRELU_SLOPES.call((x, lower, upper, from)).ok()?
        }
        false => EMPTY.call(([0], x.dtype(), x.device())).ok()?,
    };
    let args: Args = smallvec![x.into(), (&noise).into(), lower.into(), upper.into(), training.into()];
    op.calls(args)
}

/// On the CPU only elements that are not positive take a number, as in PyTorch.
fn slopes(c: &Call, out: &[Tensor]) -> Result<()> {
    let (x, out, lower, upper) = (c.tensor(0)?.detach(), &out[0], c.float("lower")?, c.float("upper")?);
    let source = source(c, x.device())?;
    if gpu::supports(x.device(), x.dtype()) {
        draw(out, Draw::Uniform { from: lower, to: upper }, source)?;
        return out.copy_raw(&Term::from(&x).greater(0).choose(1, out).ok()?);
    }
    let x = Dense::<f64>::of(&x)?;
    let x = x.elements()?;
    let slope = |m: &mut Mersenne, x: f64| if x <= 0.0 { m.unit().mul_add(upper - lower, lower) } else { 1.0 };
    written(out, |drawn| source.draw(|m| drawn.iter_mut().zip(x).for_each(|(o, x)| *o = slope(m, *x))))
}

pub static RRELU_SLOPES: Op = Op {
    sig: sig("_rrelu_slopes(Tensor self, float lower, float upper, Generator? generator=None) -> Tensor"),
    doc: "What `rrelu` multiplies each element by in training: 1, or a slope uniform in [lower, upper) where it is not positive.",
    forms: HIDDEN,
    body: kernel(|c| Ok(smallvec![Spec::like(c.tensor(0)?)]), slopes, Some(slopes)),
    vjp: Vjp::None("random numbers"),
    samples: &["f32[2,3], 0.25, 0.25", "f32[2,3](pos), 0.1, 0.5"],
    errors: &[("'a', 0.1, 0.5", "TypeError", "must be Tensor")],
    reference: "np.where(x0 > 0, 1, 0.25)",
    batch: Batching::Leading,
    ..OP
};

pub static RRELU: Op = Op {
    sig: sig(
        "rrelu(Tensor self, float lower=0.125, float upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
    ),
    doc: "`x` where positive, else `x` times a slope: in training uniform in [lower, upper) for each element, else their mean.",
    forms: F,
    body: decompose(|c| rrelu(c, &RRELU_WITH_NOISE, true)),
    vjp: Vjp::Composite,
    samples: &["f32[2,3]", "f32[2,3], 0.1, 0.1, True", "f32[2,3], 0.1, 0.5"],
    errors: &[
        ("i64[2]", "NotImplementedError", "not implemented for 'Long'"),
        ("f32[2], 0.5, 0.1", "RuntimeError", "Lower bound should be less than or equal to the upper bound"),
    ],
    ..OP
};

pub static RRELU_: Op = Op {
    sig: sig(
        "rrelu_(Tensor! self, float lower=0.125, float upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
    ),
    doc: "`rrelu` in place.",
    forms: Forms(Forms::FUNCTION | Forms::ONLY_INPLACE),
    body: decompose(|c| rrelu(c, &RRELU_WITH_NOISE_, true)),
    vjp: Vjp::Composite,
    samples: &["f32[2,3]", "f32[2,3], 0.1, 0.1, True"],
    errors: &[("f32[2], 0.5, 0.1", "RuntimeError", "Lower bound should be less than or equal to the upper bound")],
    ..OP
};

pub static F_RRELU: Op = Op {
    sig: sig(
        "nn.functional.rrelu(Tensor input, float lower=0.125, float upper=0.3333333333333333, bool training=False, bool inplace=False) -> Tensor",
    ),
    doc: "See `rrelu`.",
    forms: F,
    body: decompose(|c| match c.flag("inplace") {
        true => Ok(smallvec![RRELU_.call_inplace((
            c.tensor(0)?,
            c.float("lower")?,
            c.float("upper")?,
            c.flag("training")
        ))?]),
        false => rrelu(c, &RRELU_WITH_NOISE, false),
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3]", "f32[2,3], 0.1, 0.1, True", "f32[2,3], 0.1, 0.5"],
    errors: &[("f32[2], 0.5, 0.1", "RuntimeError", "Lower bound should be less than or equal to the upper bound")],
    ..OP
};

pub static GUMBEL_SOFTMAX: Op = Op {
    sig: sig(
        "nn.functional.gumbel_softmax(Tensor logits, float tau=1, bool hard=False, float eps=1e-10, int dim=-1) -> Tensor",
    ),
    doc: "A sample of the relaxed categorical distribution: the softmax along `dim` of `(logits + g) / tau` with noise `g` of the Gumbel distribution.\n\n`hard` gives a one-hot vector with the gradient of the relaxed sample. `eps` has no effect. Source: Jang et al., ICLR 2017.",
    forms: F,
    body: decompose(gumbel_softmax),
    vjp: Vjp::Composite,
    warns: Some(|c| (c.float("eps").ok()? != 1e-10).then(|| "`eps` parameter is deprecated and has no effect.".into())),
    samples: &["f32[0,3]", "f32[0,3], 0.5, True"],
    errors: &[("f32[2,3], dim=2", "IndexError", "Dimension out of range")],
    reference: "shape",
    ..OP
};

fn gumbel_softmax(c: &Call) -> Result<Outputs> {
    let (logits, tau, dim) = (c.tensor("logits")?, c.float("tau")?, c.int("dim")?);
    let dtype = if logits.dtype().is_differentiable() { logits.dtype() } else { default_dtype() };
    let drawn = EMPTY.call((logits.shape(), dtype, logits.device())).ok()?;
    let noise = -Term::from(EXPONENTIAL_.call_inplace((&drawn, 1.0))?).log();
    let soft = SOFTMAX.call(((Term::from(logits) + noise) / tau, dim));
    if !c.flag("hard") {
        return soft.outputs();
    }
    let greatest = ARGMAX.call((&soft, dim, true));
    let zeros = ZEROS.call((logits.shape(), dtype, logits.device()));
    let hard = SCATTER_VALUE.call((zeros, dim, greatest, 1.0));
    (hard - soft.clone().cut() + soft).outputs()
}
