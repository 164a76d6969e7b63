//! Gradients of the activations. Each is a differentiable formula, with a fused single-pass op.
//!
//! The fused op runs when nothing is recorded (an ordinary `backward()`); under `create_graph=True` the formula runs,
//! so that gradients of any order exist. The formula is the fused op's test oracle.

use super::smooth::Approximate;
use crate::autograd::forward::is_differentiated;
use crate::cpu::complex;
use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapComplex, MapReal, Real};
use crate::dtype::c128;
use crate::error::Result;
use crate::op::*;
use crate::ops::support::promotion::of_tensors;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

pub static OPS: &[&Op] = &[
    &GELU_BACKWARD,
    &GELU_FUSED,
    &SILU_BACKWARD,
    &SILU_FUSED,
    &MISH_BACKWARD,
    &MISH_FUSED,
    &SOFTPLUS_BACKWARD,
    &SOFTPLUS_FUSED,
    &ELU_BACKWARD,
    &ELU_FUSED,
];

/// `sqrt(2 / pi)`.
pub(crate) const GELU_SCALE: f64 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;

/// Whether the call will not be recorded, so that the fused op may run.
fn plain(c: &Call) -> bool {
    !c.all_tensors().any(is_differentiated)
}
pub(crate) const fn formula(run: fn(&Call) -> Result<Outputs>, fused: &'static Op) -> Body {
    decompose_or(run, fused, plain)
}
pub(crate) const fn one_pass<const N: usize, R: MapReal<N>>(operands: &'static [usize], wgsl: &'static str) -> Rule {
    Rule { operands, loops: Loops::NONE.real::<N, R>(), wgsl }
}

pub(crate) const BACKWARD: Op = Op {
    doc: "The gradient of the activation of this name.",
    forms: HIDDEN,
    vjp: Vjp::Composite,
    samples: &["f32[2,3], f32[2,3]", "f64[4], f64[4](big)"],
    errors: &[("f32[2,3], f32[4]", "RuntimeError", "must match the size")],
    ..OP
};
pub(crate) const FUSED: Op = Op {
    doc: "The gradient of the activation of this name in one pass.",
    promote: Promote::By(of_tensors),
    vjp: Vjp::None("its composite is differentiated instead"),
    ..BACKWARD
};

pub(crate) fn g(c: &Call) -> Result<Term> {
    c.tensor("grad").map(Term::from)
}
pub(crate) fn x(c: &Call) -> Result<Term> {
    c.tensor("self").map(Term::from)
}
pub(crate) fn number<'a>(c: &Call, name: &str) -> Result<Value<'a>> {
    c.scalar(name).map(Value::Scalar)
}

struct GeluBackward;
impl MapReal<2> for GeluBackward {
    #[inline(always)]
    fn eval<T: Real>([g, x]: [T; 2]) -> T {
        let (below, bell) = x.normal();
        g * (below + x * bell * T::from_f64(0.5 * GELU_SCALE))
    }
}
struct GeluTanhBackward;
impl MapReal<2> for GeluTanhBackward {
    #[inline(always)]
    fn eval<T: Real>([g, x]: [T; 2]) -> T {
        let n = |v: f64| T::from_f64(v);
        let square = x * x;
        let t = (n(GELU_SCALE) * x * (T::one() + n(0.044715) * square)).tanh();
        let slope = n(GELU_SCALE) * (T::one() + n(3.0 * 0.044715) * square);
        g * n(0.5) * (T::one() + t + x * (T::one() - t * t) * slope)
    }
}
static GELU_ERF: Rule = one_pass::<2, GeluBackward>(
    &[0, 1],
    "x * (T(0.5) * (T(1) + erf_(y * T(0.707106781186547524))) + y * exp_(T(-0.5) * y * y) * T(0.398942280401432678))",
);
static GELU_TANH: Rule = one_pass::<2, GeluTanhBackward>(
    &[0, 1],
    "x * T(0.5) * (T(1) + tanh_(T(0.797884560802865356) * y * (T(1) + T(0.044715) * y * y)) \
     + y * (T(1) - square_(tanh_(T(0.797884560802865356) * y * (T(1) + T(0.044715) * y * y)))) \
     * T(0.797884560802865356) * (T(1) + T(0.134145) * y * y))",
);
fn gelu(c: &Call) -> Result<Outputs> {
    let x = || c.tensor("self").map(Term::from);
    let slope = if c.choice::<Approximate>("approximate") == Approximate::Tanh {
        let square = x()?.square();
        let t = (x()? * GELU_SCALE * (square.clone() * 0.044715 + 1)).tanh();
        let inner = (square * (3.0 * 0.044715) + 1) * GELU_SCALE;
        (x()? * (1.0 - t.clone().square()) * inner + t + 1) * 0.5
    } else {
        ((x()? * FRAC_1_SQRT_2).erf() + 1) * 0.5 + x()? * (x()?.square() * -0.5).exp() * (0.5 * GELU_SCALE)
    };
    (g(c)? * slope).outputs()
}
const GELU_SAMPLES: &[&str] = &["f32[2,3], f32[2,3], 'none'", "f32[2,3], f32[2,3], 'tanh'"];
const GELU_ERRORS: &[(&str, &str, &str)] = &[("f32[2,3], f32[4], 'none'", "RuntimeError", "must match the size")];
pub static GELU_BACKWARD: Op = Op {
    sig: sig("_gelu_backward(Tensor grad, Tensor self, str{none|tanh} approximate) -> Tensor"),
    body: formula(gelu, &GELU_FUSED),
    samples: GELU_SAMPLES,
    errors: GELU_ERRORS,
    ..BACKWARD
};
pub static GELU_FUSED: Op = Op {
    sig: sig("_gelu_backward_fused(Tensor grad, Tensor self, str{none|tanh} approximate) -> Tensor"),
    body: elementwise_by(
        |c| Ok(if c.choice::<Approximate>("approximate") == Approximate::Tanh { &GELU_TANH } else { &GELU_ERF }),
        &[&GELU_ERF, &GELU_TANH],
    ),
    samples: GELU_SAMPLES,
    errors: GELU_ERRORS,
    ..FUSED
};

struct SiluBackward;
impl MapReal<2> for SiluBackward {
    #[inline(always)]
    fn eval<T: Real>([g, x]: [T; 2]) -> T {
        let s = x.sigmoid();
        g * s * (T::one() + x * (T::one() - s))
    }
}
impl MapComplex<2> for SiluBackward {
    fn eval([g, x]: [c128; 2]) -> c128 {
        let one = c128::ONE;
        let s = complex::divide(one, one + complex::exp(-x));
        g * (s * (one + x * (one - s))).conj()
    }
}
static SILU_SLOPE: Rule = Rule {
    operands: &[0, 1],
    loops: Loops::NONE.real::<2, SiluBackward>().complex::<2, SiluBackward>(),
    wgsl: "x * sigmoid_(y) * (T(1) + y * (T(1) - sigmoid_(y)))",
};
pub static SILU_BACKWARD: Op = Op {
    sig: sig("_silu_backward(Tensor grad, Tensor self) -> Tensor"),
    body: formula(
        |c| {
            let s = x(c)?.sigmoid();
            (g(c)? * (s.clone() * (x(c)? * (1.0 - s) + 1)).conj()).outputs()
        },
        &SILU_FUSED,
    ),
    ..BACKWARD
};
pub static SILU_FUSED: Op = Op {
    sig: sig("_silu_backward_fused(Tensor grad, Tensor self) -> Tensor"),
    body: elementwise(&SILU_SLOPE),
    ..FUSED
};

struct MishBackward;
impl MapReal<2> for MishBackward {
    #[inline(always)]
    fn eval<T: Real>([g, x]: [T; 2]) -> T {
        let t = (x.maximum(T::zero()) + (-x.abs()).exp().log1p()).tanh();
        g * (t + x * x.sigmoid() * (T::one() - t * t))
    }
}
static MISH_SLOPE: Rule = one_pass::<2, MishBackward>(
    &[0, 1],
    "x * (tanh_(softplus_(y)) + y * sigmoid_(y) * (T(1) - square_(tanh_(softplus_(y)))))",
);
pub static MISH_BACKWARD: Op = Op {
    sig: sig("_mish_backward(Tensor grad, Tensor self) -> Tensor"),
    body: formula(
        |c| {
            let t = super::smooth::SOFTPLUS.call((x(c)?,)).tanh();
            (g(c)? * (t.clone() + x(c)? * x(c)?.sigmoid() * (1.0 - t.square()))).outputs()
        },
        &MISH_FUSED,
    ),
    ..BACKWARD
};
pub static MISH_FUSED: Op = Op {
    sig: sig("_mish_backward_fused(Tensor grad, Tensor self) -> Tensor"),
    body: elementwise(&MISH_SLOPE),
    ..FUSED
};

struct SoftplusBackward;
impl MapReal<4> for SoftplusBackward {
    #[inline(always)]
    fn eval<T: Real>([g, x, beta, threshold]: [T; 4]) -> T {
        let z = x * beta;
        if z > threshold { g } else { g * z.sigmoid() }
    }
}
static SOFTPLUS_SLOPE: Rule =
    one_pass::<4, SoftplusBackward>(&[0, 1, 2, 3], "where_(gt_(y * z, w), x, x * sigmoid_(y * z))");
pub(crate) const TWO_NUMBERS: &[&str] = &["f32[2,3], f32[2,3], -0.5, 0.7", "f64[4], f64[4], -1.0, 1.0"];
pub(crate) const TWO_NUMBERS_ERRORS: &[(&str, &str, &str)] =
    &[("f32[2,3], f32[4], 0.3, 1.0", "RuntimeError", "must match the size")];
pub static SOFTPLUS_BACKWARD: Op = Op {
    sig: sig("_softplus_backward(Tensor grad, Tensor self, Scalar beta, Scalar threshold) -> Tensor"),
    body: formula(
        |c| {
            let z = x(c)? * number(c, "beta")?;
            z.clone().greater(number(c, "threshold")?).choose(g(c)?, g(c)? * z.sigmoid()).outputs()
        },
        &SOFTPLUS_FUSED,
    ),
    samples: TWO_NUMBERS,
    errors: TWO_NUMBERS_ERRORS,
    ..BACKWARD
};
pub static SOFTPLUS_FUSED: Op = Op {
    sig: sig("_softplus_backward_fused(Tensor grad, Tensor self, Scalar beta, Scalar threshold) -> Tensor"),
    body: elementwise(&SOFTPLUS_SLOPE),
    samples: TWO_NUMBERS,
    errors: TWO_NUMBERS_ERRORS,
    ..FUSED
};

struct EluBackward;
impl MapReal<4> for EluBackward {
    #[inline(always)]
    fn eval<T: Real>([g, x, negative, input_scale]: [T; 4]) -> T {
        let below = g * negative * (x * input_scale).exp();
        if x <= T::zero() { below } else { g }
    }
}
static ELU_SLOPE: Rule =
    one_pass::<4, EluBackward>(&[0, 1, 2, 3], "where_(le_(y, T(0)), x * z * exp_(min_(y, T(0)) * w), x)");
pub static ELU_BACKWARD: Op = Op {
    sig: sig("_elu_backward(Tensor grad, Tensor self, Scalar negative, Scalar input_scale) -> Tensor"),
    body: formula(
        |c| {
            // The branch that is not selected must not overflow.
            let below =
                (x(c)?.zero_where(x(c)?.less(0).not()) * number(c, "input_scale")?).exp() * number(c, "negative")?;
            x(c)?.at_most(0).choose(g(c)? * below, g(c)?).outputs()
        },
        &ELU_FUSED,
    ),
    samples: TWO_NUMBERS,
    errors: TWO_NUMBERS_ERRORS,
    ..BACKWARD
};
pub static ELU_FUSED: Op = Op {
    sig: sig("_elu_backward_fused(Tensor grad, Tensor self, Scalar negative, Scalar input_scale) -> Tensor"),
    body: elementwise(&ELU_SLOPE),
    samples: TWO_NUMBERS,
    errors: TWO_NUMBERS_ERRORS,
    ..FUSED
};
