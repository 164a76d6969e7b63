//! Activations of `nn.functional`. Each is one pass forward; the gradients are in `smooth_backward.rs`.
//!
//! The public function takes PyTorch's `inplace` argument and calls a private op, which has the gradient formula and
//! PyTorch's node name. Numbers next to the tensor never promote it.

use super::{piecewise_backward, smooth_backward as back};
use crate::cpu::complex;
use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapComplex, MapOrdered, MapReal, Ordered, Real};
use crate::dtype::{DType, c128};
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::support::promotion::{of_self, real};
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &RELU,
    &NN_RELU,
    &GELU,
    &SILU,
    &NN_SILU,
    &MISH,
    &NN_MISH,
    &LEAKY_RELU,
    &LEAKY_RELU_ONTO,
    &NN_LEAKY_RELU,
    &ELU,
    &ELU_ONTO,
    &NN_ELU,
    &NN_SELU,
    &CELU,
    &CELU_ONTO,
    &NN_CELU,
    &SOFTPLUS,
    &LOGSIGMOID,
];

/// The op behind a public activation: in place or not, by the flag `inplace`.
pub(crate) fn run<'a>(c: &Call, op: &'static Op, args: impl IntoArgs<'a>) -> Result<Outputs> {
    if c.flag("inplace") { Ok(smallvec![op.call_inplace(args)?]) } else { op.calls(args) }
}

/// Where the form in place is an op of its own, `onto`, whose gradient reads the result, so that the input is not kept.
fn run_or_onto<'a>(c: &Call, op: &'static Op, onto: &'static Op, args: impl IntoArgs<'a>) -> Result<Outputs> {
    run(c, if c.flag("inplace") { onto } else { op }, args)
}
/// The result tells which inputs were positive, unless the function falls below zero.
pub(crate) fn told_by_result(falls: bool, name: &str) -> Result<()> {
    let words = format!(
        "In-place {name} backward calculation is triggered with a negative slope which is not supported. This is caused by \
         calling in-place forward function with a negative slope, please call out-of-place version instead."
    );
    if falls { Err(Error::runtime(words)) } else { Ok(()) }
}

pub(crate) const BEHIND: Forms = Forms(Forms::HIDDEN | Forms::INPLACE);

/// Functions of floats alone.
pub(crate) const ACTIVATION: Op = Op {
    forms: F,
    promote: Promote::By(of_self),
    vjp: Vjp::Composite,
    samples: &["f32[2,3]", "f64[4](big)", "f32[10](special)"],
    errors: &[("i64[2]", "RuntimeError", "not implemented for 'Long'")],
    ..OP
};

struct Relu;
impl MapOrdered<1> for Relu {
    #[inline(always)]
    fn eval<T: Ordered>([x]: [T; 1]) -> T {
        if x < T::zero() { T::zero() } else { x }
    }
}
static POSITIVE_PART: Rule = Rule { operands: &[0], loops: Loops::NONE.ordered::<1, Relu>(), wgsl: "relu_(x)" };

fn relu_dtype(_: &Call, d: DType) -> Result<(DType, DType)> {
    match d {
        DType::Bool => Err(Error::not_implemented("Boolean inputs not supported for relu")),
        d if d.is_complex() => Err(Error::not_implemented("clamp is not supported for complex types")),
        d => Ok((d, d)),
    }
}
const RELU_ERRORS: &[(&str, &str, &str)] = &[
    ("b8[2]", "RuntimeError", "Boolean inputs not supported for relu"),
    ("c64[2]", "RuntimeError", "not supported for complex"),
];

pub static RELU: Op = Op {
    sig: sig("relu(Tensor self) -> Tensor"),
    doc: "`max(0, x)`; NaN stays. The gradient at zero is zero.",
    forms: FMI,
    promote: Promote::By(relu_dtype),
    body: elementwise(&POSITIVE_PART),
    vjp: Vjp::Each(&[d(0, OUT0, |c| piecewise_backward::THRESHOLD_BACKWARD.call((c.g(), c.out(0), 0)))]),
    samples: &["f32[2,3]", "i64[4]", "f32[10](special)"],
    errors: RELU_ERRORS,
    reference: "np.maximum(x0, 0)",
    ..OP
};
pub static NN_RELU: Op = Op {
    sig: sig("nn.functional.relu(Tensor input, bool inplace=False) -> Tensor"),
    doc: "`max(0, x)`, written to the input if `inplace`.",
    body: decompose(|c| run(c, &RELU, (c.tensor(0)?,))),
    samples: &["f32[2,3]", "i64[4]"],
    errors: RELU_ERRORS,
    reference: "np.maximum(x0, 0)",
    ..ACTIVATION
};

struct Gelu;
impl MapReal<1> for Gelu {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        // The sum turns -0 into 0, as PyTorch's kernel does.
        x * x.normal().0 + T::zero()
    }
}
struct GeluTanh;
impl MapReal<1> for GeluTanh {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        let inner = T::from_f64(back::GELU_SCALE) * (x + T::from_f64(0.044715) * x * x * x);
        T::from_f64(0.5) * x * (T::one() + inner.tanh())
    }
}
static GELU_ERF: Rule = real::<Gelu>("T(0.5) * x + T(0.5) * x * erf_(x * T(0.707106781186547524))");
static GELU_TANH: Rule =
    real::<GeluTanh>("T(0.5) * x * (T(1) + tanh_(T(0.797884560802865356) * (x + T(0.044715) * x * x * x)))");

/// How `gelu` is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Approximate {
    None,
    Tanh,
}
impl Enumerated for Approximate {
    const VALUES: &'static [(&'static str, Approximate)] = &[("none", Approximate::None), ("tanh", Approximate::Tanh)];
}

pub static GELU: Op = Op {
    unknown_choice: |_, _| Error::runtime("approximate argument must be either none or tanh."),
    sig: sig("nn.functional.gelu(Tensor input, *, str{none|tanh} approximate='none') -> Tensor"),
    doc: "`x * Phi(x)` with the normal distribution function, or its approximation by 'tanh'. arXiv:1606.08415.",
    forms: FO,
    body: elementwise_by(
        |c| match c.choice("approximate") {
            Approximate::Tanh => Ok(&GELU_TANH),
            Approximate::None => Ok(&GELU_ERF),
        },
        &[&GELU_ERF, &GELU_TANH],
    ),
    vjp: Vjp::Each(&[d(0, A0, |c| back::GELU_BACKWARD.call((c.g(), c.arg(0), c.argument("approximate").reborrow())))]),
    samples: &["f32[2,3]", "f64[4](= -30.0, -0.5, 0.5, 2.0)", "f32[2,3], approximate='tanh'"],
    errors: &[
        ("f32[2], approximate='q'", "RuntimeError", "must be either none or tanh"),
        ("i64[2]", "RuntimeError", "not implemented for 'Long'"),
    ],
    ..ACTIVATION
};

struct Silu;
impl MapReal<1> for Silu {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x * x.sigmoid()
    }
}
impl MapComplex<1> for Silu {
    fn eval([x]: [c128; 1]) -> c128 {
        complex::divide(x, c128::ONE + complex::exp(-x))
    }
}
static SWISH: Rule =
    Rule { operands: &[0], loops: Loops::NONE.real::<1, Silu>().complex::<1, Silu>(), wgsl: "x * sigmoid_(x)" };
pub static SILU: Op = Op {
    sig: sig("_silu(Tensor self) -> Tensor"),
    doc: "`x * sigmoid(x)`.",
    forms: BEHIND,
    body: elementwise(&SWISH),
    vjp: Vjp::Each(&[d(0, A0, |c| back::SILU_BACKWARD.call((c.g(), c.arg(0))))]),
    ..ACTIVATION
};
pub static NN_SILU: Op = Op {
    sig: sig("nn.functional.silu(Tensor input, bool inplace=False) -> Tensor"),
    doc: "`x * sigmoid(x)`, also called swish. arXiv:1702.03118.",
    body: decompose(|c| run(c, &SILU, (c.tensor(0)?,))),
    reference: "x0 * scipy.special.expit(x0)",
    ..ACTIVATION
};

struct Mish;
impl MapReal<1> for Mish {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        let softplus = x.maximum(T::zero()) + (-x.abs()).exp().log1p();
        x * softplus.tanh()
    }
}
static MISH_OF: Rule = real::<Mish>("x * tanh_(softplus_(x))");
pub static MISH: Op = Op {
    sig: sig("_mish(Tensor self) -> Tensor"),
    doc: "`x * tanh(softplus(x))`.",
    forms: BEHIND,
    body: elementwise(&MISH_OF),
    vjp: Vjp::Each(&[d(0, A0, |c| back::MISH_BACKWARD.call((c.g(), c.arg(0))))]),
    ..ACTIVATION
};
pub static NN_MISH: Op = Op {
    sig: sig("nn.functional.mish(Tensor input, bool inplace=False) -> Tensor"),
    doc: "`x * tanh(softplus(x))`. arXiv:1908.08681.",
    body: decompose(|c| run(c, &MISH, (c.tensor(0)?,))),
    reference: "x0 * np.tanh(np.logaddexp(0, x0))",
    ..ACTIVATION
};

struct LeakyRelu;
impl MapReal<2> for LeakyRelu {
    #[inline(always)]
    fn eval<T: Real>([x, slope]: [T; 2]) -> T {
        if x > T::zero() { x } else { x * slope }
    }
}
static LEAKY: Rule =
    Rule { operands: &[0, 1], loops: Loops::NONE.real::<2, LeakyRelu>(), wgsl: "where_(gt_(x, T(0)), x, x * y)" };
const LEAKY_BEHIND: Op = Op {
    doc: "`x` where positive, else `negative_slope * x`.",
    forms: BEHIND,
    body: elementwise(&LEAKY),
    samples: &["f32[2,3], 0.1"],
    errors: &[("i64[2], 0.1", "RuntimeError", "not implemented for 'Long'")],
    ..ACTIVATION
};
pub static LEAKY_RELU: Op = Op {
    sig: sig("_leaky_relu(Tensor self, Scalar negative_slope) -> Tensor"),
    vjp: Vjp::Each(&[d(0, A0, |c| {
        piecewise_backward::LEAKY_RELU_BACKWARD.call((c.g(), c.arg(0), c.scalar("negative_slope")))
    })]),
    ..LEAKY_BEHIND
};
/// The form in place.
pub static LEAKY_RELU_ONTO: Op = Op {
    sig: sig("_leaky_relu_onto(Tensor self, Scalar negative_slope) -> Tensor"),
    node: "LeakyReluBackward1",
    vjp: Vjp::Each(&[d(0, OUT0, |c| match told_by_result(c.float("negative_slope") < 0.0, "leakyReLu") {
        Ok(()) => piecewise_backward::LEAKY_RELU_BACKWARD.call((c.g(), c.out(0), c.scalar("negative_slope"))),
        Err(e) => Term(Err(e)),
    })]),
    keeps: Some("negative_slope result"),
    ..LEAKY_BEHIND
};
pub static NN_LEAKY_RELU: Op = Op {
    sig: sig("nn.functional.leaky_relu(Tensor input, float negative_slope=0.01, bool inplace=False) -> Tensor"),
    doc: "`x` where positive, else `negative_slope * x`.",
    body: decompose(|c| run_or_onto(c, &LEAKY_RELU, &LEAKY_RELU_ONTO, (c.tensor(0)?, c.float("negative_slope")?))),
    samples: &["f32[2,3]", "f64[4], 0.2", "f32[10](special)"],
    reference: "np.where(x0 > 0, x0, negative_slope * x0)",
    ..ACTIVATION
};

struct Elu;
impl MapReal<4> for Elu {
    #[inline(always)]
    fn eval<T: Real>([x, alpha, scale, input_scale]: [T; 4]) -> T {
        let negative = (x * input_scale).expm1() * alpha * scale;
        if x > T::zero() { x * scale } else { negative }
    }
}
static ELU_OF: Rule = Rule {
    operands: &[0, 1, 2, 3],
    loops: Loops::NONE.real::<4, Elu>(),
    wgsl: "where_(gt_(x, T(0)), x * z, expm1_(min_(x, T(0)) * w) * y * z)",
};
const ELU_BEHIND: Op = Op {
    doc: "`scale * x` where positive, else `scale * alpha * (exp(input_scale * x) - 1)`.",
    forms: BEHIND,
    body: elementwise(&ELU_OF),
    vjp: Vjp::Each(&[d(0, A0, |c| {
        let n = |i| c.float(i);
        back::ELU_BACKWARD.call((c.g_times(2), c.arg(0), n(1) * n(3), n(3)))
    })]),
    samples: &["f32[2,3], 1.5, 1.0, 1.0", "f64[4], 1.0, 1.2, 0.5"],
    errors: &[("i64[2], 1.0, 1.0, 1.0", "RuntimeError", "not implemented for 'Long'")],
    ..ACTIVATION
};
pub static ELU: Op =
    Op { sig: sig("_elu(Tensor self, Scalar alpha, Scalar scale, Scalar input_scale) -> Tensor"), ..ELU_BEHIND };
pub static CELU: Op = Op {
    sig: sig("_celu(Tensor self, Scalar alpha, Scalar scale, Scalar input_scale) -> Tensor"),
    keeps: Some("alpha self"),
    ..ELU_BEHIND
};
/// Below zero the derivative, `input_scale * scale * alpha * exp(input_scale * x)`, is a function of the result.
fn elu_by_result(c: &VjpCtx) -> Term {
    let (y, alpha, scale) = (c.out(0), c.float("alpha"), c.float("scale"));
    match told_by_result(alpha < 0.0, "elu") {
        Ok(()) => c.g() * y.clone().greater(0).choose(scale, (y + alpha * scale) * c.float("input_scale")),
        Err(e) => Term(Err(e)),
    }
}
const ELU_IN_PLACE: Op = Op { vjp: Vjp::Each(&[d(0, OUT0, elu_by_result)]), ..ELU_BEHIND };
/// The forms in place.
pub static ELU_ONTO: Op = Op {
    sig: sig("_elu_onto(Tensor self, Scalar alpha, Scalar scale, Scalar input_scale) -> Tensor"),
    node: "EluBackward1",
    keeps: Some("alpha input_scale result scale"),
    ..ELU_IN_PLACE
};
pub static CELU_ONTO: Op = Op {
    sig: sig("_celu_onto(Tensor self, Scalar alpha, Scalar scale, Scalar input_scale) -> Tensor"),
    node: "CeluBackward1",
    keeps: Some("alpha result"),
    ..ELU_IN_PLACE
};

pub static NN_ELU: Op = Op {
    sig: sig("nn.functional.elu(Tensor input, float alpha=1.0, bool inplace=False) -> Tensor"),
    doc: "`x` where positive, else `alpha * (exp(x) - 1)`. arXiv:1511.07289.",
    body: decompose(|c| run_or_onto(c, &ELU, &ELU_ONTO, (c.tensor(0)?, c.float("alpha")?, 1.0, 1.0))),
    samples: &["f32[2,3]", "f64[4], 1.5", "f32[10](special)"],
    reference: "np.where(x0 > 0, x0, alpha * np.expm1(x0))",
    ..ACTIVATION
};

const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;
pub static NN_SELU: Op = Op {
    sig: sig("nn.functional.selu(Tensor input, bool inplace=False) -> Tensor"),
    doc: "`elu` with the constants that keep mean and variance. arXiv:1706.02515.",
    aliases: &["selu"],
    body: decompose(|c| run_or_onto(c, &ELU, &ELU_ONTO, (c.tensor(0)?, SELU_ALPHA, SELU_SCALE, 1.0))),
    reference: "1.0507009873554805 * np.where(x0 > 0, x0, 1.6732632423543772 * np.expm1(x0))",
    ..ACTIVATION
};
pub static NN_CELU: Op = Op {
    sig: sig("nn.functional.celu(Tensor input, float alpha=1.0, bool inplace=False) -> Tensor"),
    doc: "`x` where positive, else `alpha * (exp(x / alpha) - 1)`. arXiv:1704.07483.",
    aliases: &["celu"],
    body: decompose(|c| {
        let alpha = c.float("alpha")?;
        if alpha == 0.0 {
            return Err(Error::runtime("ZeroDivisionError: alpha cannot be 0 for CELU"));
        }
        run_or_onto(c, &CELU, &CELU_ONTO, (c.tensor(0)?, alpha, 1.0, 1.0 / alpha))
    }),
    samples: &["f32[2,3]", "f64[4], 1.5", "f32[10](special)"],
    errors: &[
        ("f32[2], 0.0", "RuntimeError", "alpha cannot be 0"),
        ("i64[2]", "RuntimeError", "not implemented for 'Long'"),
    ],
    reference: "np.maximum(x0, 0) + np.minimum(0, alpha * np.expm1(x0 / alpha))",
    ..ACTIVATION
};

struct Softplus;
impl MapReal<3> for Softplus {
    #[inline(always)]
    fn eval<T: Real>([x, beta, threshold]: [T; 3]) -> T {
        let z = x * beta;
        if z > threshold { x } else { z.exp().log1p() / beta }
    }
}
static SOFT: Rule = Rule {
    operands: &[0, 1, 2],
    loops: Loops::NONE.real::<3, Softplus>(),
    wgsl: "where_(gt_(x * y, z), x, div_(log1p_(exp_(x * y)), y))",
};
pub static SOFTPLUS: Op = Op {
    sig: sig("nn.functional.softplus(Tensor input, Scalar beta=1.0, Scalar threshold=20.0) -> Tensor"),
    doc: "`log(1 + exp(beta * x)) / beta`, and `x` where `beta * x > threshold`.",
    forms: FO,
    body: elementwise(&SOFT),
    vjp: Vjp::Each(&[d(0, A0, |c| {
        let n = |i| Value::Scalar(c.scalar(i));
        back::SOFTPLUS_BACKWARD.call((c.g(), c.arg(0), n(1), n(2)))
    })]),
    samples: &["f32[2,3]", "f64[4], 2.0", "f64[6](big), 1.0, 5.0", "f32[10](special)"],
    reference: "np.where(beta * x0 > threshold, x0, np.logaddexp(0, beta * x0) / beta)",
    ..ACTIVATION
};

struct LogSigmoid;
impl MapReal<1> for LogSigmoid {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x.minimum(T::zero()) - (-x.abs()).exp().log1p()
    }
}
static LOG_SIGMOID: Rule = real::<LogSigmoid>("min_(x, T(0)) - log1p_(exp_(-abs_(x)))");
pub static LOGSIGMOID: Op = Op {
    sig: sig("nn.functional.logsigmoid(Tensor input) -> Tensor"),
    doc: "`log(sigmoid(x))` without overflow.",
    forms: FO,
    body: elementwise(&LOG_SIGMOID),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() * (-c.arg(0)).sigmoid())]),
    node: "LogSigmoidBackward0",
    reference: "-np.logaddexp(0, -x0)",
    out_dtype: Some(OutDType::Same),
    alias_policy: Some(AliasPolicy::MayAlias),
    row_major: true,
    keeps: Some("self=input"),
    ..ACTIVATION
};
