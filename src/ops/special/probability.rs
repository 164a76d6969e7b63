//! Special functions of probability: xlog1py, entr, the normal distribution function; and the gated linear unit.

use super::erf_gamma::ERFC;
use crate::cpu::number_class::{MapReal, Real};
use crate::cpu::special;
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::movement::cat::joined;
use crate::ops::support::promotion::{BINARY, FLOAT_UNARY, full_float, real, real2, refused, wide};
use crate::ops::view::split::SPLIT_WITH_SIZES;
use crate::tensor::Tensor;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

pub static OPS: &[&Op] =
    &[&XLOG1PY, &XLOG1PY_SCALAR_SELF, &XLOG1PY_SCALAR_OTHER, &ENTR, &NDTR, &NDTRI, &LOG_NDTR, &ERFCX, &GLU];

struct XLog1pY;
impl MapReal<2> for XLog1pY {
    #[inline(always)]
    fn eval<T: Real>([x, y]: [T; 2]) -> T {
        let product = x * y.log1p();
        if x == T::zero() && !y.is_nan() { T::zero() } else { product }
    }
}
static X_LOG1P_Y: Rule = real2::<XLog1pY>("where_(flag(!truth(x) && !is_nan(y)), T(0), x * log1p_(y))");
/// Zero where the gradient is zero, whatever the logarithm.
fn slope_x(c: &VjpCtx) -> Term {
    let settled = c.arg(0).equals(0).both(c.arg(1).at_most(-1));
    XLOG1PY.call((c.g(), c.arg(1))).zero_where(settled)
}
fn slope_y(c: &VjpCtx) -> Term {
    c.g() * c.arg(0) / (c.arg(1) + 1)
}
pub static XLOG1PY: Op = Op {
    sig: sig("special.xlog1py(Tensor input, Tensor other) -> Tensor"),
    doc: "`input * log1p(other)`, and zero where `input` is zero.",
    forms: FO,
    promote: Promote::Float,
    body: elementwise(&X_LOG1P_Y),
    vjp: Vjp::Each(&[d(0, A0 | A1, slope_x), d(1, A0 | A1, slope_y)]),
    samples: &["f32[2,3], f32[2,3](pos)", "f32[2,3](ties), f32[3](pos)", "i64[4], i64[4](1..5)"],
    reference: "scipy.special.xlog1py(x0, x1)",
    ..BINARY
};
pub static XLOG1PY_SCALAR_SELF: Op = Op {
    sig: sig("special.xlog1py.self_scalar(Scalar input, Tensor other) -> Tensor"),
    doc: "A number times `log1p(other)`.",
    forms: FO,
    promote: Promote::Float,
    body: elementwise(&X_LOG1P_Y),
    vjp: Vjp::Each(&[d(1, A1, slope_y)]),
    node: "SpecialXlog1PyBackward1",
    samples: &["2, f32[2,3](pos)", "0, f32[3](pos)"],
    errors: &[("2, c64[2]", "RuntimeError", "not implemented for 'ComplexFloat'")],
    reference: "scipy.special.xlog1py(x0, x1)",
    ..OP
};
pub static XLOG1PY_SCALAR_OTHER: Op = Op {
    sig: sig("special.xlog1py.other_scalar(Tensor input, Scalar other) -> Tensor"),
    doc: "`input` times `log1p` of a number.",
    forms: FO,
    promote: Promote::Float,
    body: elementwise(&X_LOG1P_Y),
    vjp: Vjp::Each(&[d(0, A0, slope_x)]),
    node: "SpecialXlog1PyBackward2",
    samples: &["f32[2,3], 2.5", "f32[3](ties), 2"],
    errors: &[("c64[2], 2", "RuntimeError", "not implemented for 'ComplexFloat'")],
    reference: "scipy.special.xlog1py(x0, x1)",
    ..BINARY
};

struct Entr;
impl MapReal<1> for Entr {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        let positive = -x * x.ln();
        let rest = if x == T::zero() { T::zero() } else { -T::infinity() };
        if x > T::zero() || x.is_nan() { positive } else { rest }
    }
}
pub static ENTR: Op = Op {
    sig: sig("special.entr(Tensor input) -> Tensor"),
    doc: "The entropy `-x log(x)`: zero at zero, minus infinity below.",
    forms: FO,
    body: elementwise(&real::<Entr>(
        "where_(isnan_(x), x, where_(gt_(x, T(0)), -x * ln_(x), where_(eq_(x, T(0)), T(0), -inf_())))",
    )),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() * (-c.arg(0).log() - 1))]),
    samples: &["f32[2,3](pos)", "f64[3](pos)", "i64[4](0..5)"],
    reference: "scipy.special.entr(x0)",
    ..FLOAT_UNARY
};

pub static NDTR: Op = Op {
    sig: sig("special.ndtr(Tensor input) -> Tensor"),
    doc: "The normal distribution function.",
    forms: FO,
    body: decompose(|c| (ERFC.call((Term::from(c.tensor(0)?) * -FRAC_1_SQRT_2,)) * 0.5).outputs()),
    vjp: Vjp::Composite,
    samples: &["f32[2,3]", "f64[3]", "i64[4]"],
    reference: "scipy.special.ndtr(x0)",
    ..FLOAT_UNARY
};
pub static NDTRI: Op = Op {
    sig: sig("special.ndtri(Tensor input) -> Tensor"),
    doc: "The inverse of the normal distribution function.",
    forms: FO,
    body: elementwise(&wide(special::ndtri, "ndtri_(x)")),
    vjp: Vjp::Each(&[d(0, OUT0, |c| c.g() * ((c.out(0).square() * 0.5).exp() * (2.0 * PI).sqrt()))]),
    samples: &[
        "f32[2,3](unit)",
        "f64[3](unit)",
        "f64[9](= 0, 1e-300, 1e-30, 1e-8, 0.01, 0.09, 0.5, 0.999999, 1, nograd)",
    ],
    reference: "scipy.special.ndtri(x0)",
    ..FLOAT_UNARY
};

/// Functions that half precision is not known to.
const FULL: Op = Op {
    forms: FO,
    promote: Promote::By(full_float),
    errors: &[("f16[2]", "NotImplementedError", "not implemented for 'Half'")],
    ..FLOAT_UNARY
};
pub static LOG_NDTR: Op = Op {
    sig: sig("special.log_ndtr(Tensor input) -> Tensor"),
    doc: "The logarithm of the normal distribution function, exact in the tails.",
    body: elementwise(&wide(special::log_ndtr, "log_ndtr_(x)")),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| {
        c.g() * (-(c.out(0) + c.arg(0).square() * 0.5)).exp() * (2.0 * PI).sqrt().recip()
    })]),
    samples: &["f32[2,3]", "f64[7](= -200, -20, -1.1, -0.9, 0, 3, 9)", "i64[4]"],
    reference: "scipy.special.log_ndtr(x0)",
    ..FULL
};
pub static ERFCX: Op = Op {
    sig: sig("special.erfcx(Tensor input) -> Tensor"),
    doc: "The scaled complementary error function `exp(x^2) erfc(x)`.",
    body: elementwise(&wide(special::erfcx, "erfcx_(x)")),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| c.g() * (c.arg(0) * c.out(0) * 2 - FRAC_2_SQRT_PI))]),
    samples: &["f32[2,3]", "f64[9](= -1e200, -1e15, -20, -1, 0, 0.5, 9, 1e3, 1e12)", "i64[4]"],
    reference: "scipy.special.erfcx(x0)",
    ..FULL
};

pub static GLU: Op = Op {
    sig: sig("nn.functional.glu(Tensor input, Dim dim=-1) -> Tensor"),
    doc: "The first half of a dimension times the sigmoid of the second. arXiv:1612.08083.",
    forms: F,
    body: decompose(glu),
    vjp: Vjp::Joint(Joint { args: &[0], saves: A0, formula: glu_backward }),
    samples: &["f32[2,4]", "f32[4,3], 0", "f64[2,2,6]"],
    errors: &[
        ("f32[2,3]", "RuntimeError", "Halving dimension must be even, but dimension 1 is size 3"),
        ("f32[]", "RuntimeError", "glu does not support scalars because halving size must be even"),
    ],
    reference: "np.split(x0, 2, dim)[0] * scipy.special.expit(np.split(x0, 2, dim)[1])",
    ..OP
};
fn glu(c: &Call) -> Result<Outputs> {
    let x = c.tensor(0)?;
    if !x.dtype().is_float() {
        return Err(refused(c, x.dtype()));
    }
    if x.ndim() == 0 {
        return Err(Error::runtime("glu does not support scalars because halving size must be even"));
    }
    let dim = c.dim("dim");
    if x.size(dim) % 2 != 0 {
        let n = x.size(dim);
        return Err(Error::runtime(format!("Halving dimension must be even, but dimension {dim} is size {n}")));
    }
    let [a, b] = halves(x.into(), dim)?;
    (a * b.sigmoid()).outputs()
}

fn halves(x: Term, dim: usize) -> Result<[Term; 2]> {
    let x = x.ok()?;
    let parts = SPLIT_WITH_SIZES.calls((&x, [x.size(dim) as i64 / 2; 2], dim))?;
    Ok([Term::from(&parts[0]), Term::from(&parts[1])])
}

fn glu_backward(c: &VjpCtx) -> Result<Vec<Option<Tensor>>> {
    let dim = c.dim("dim");
    let [a, b] = halves(c.arg(0), dim)?;
    let (g, s) = (c.g(), b.sigmoid());
    let right = g.clone() * a * s.clone() * (1.0 - s.clone());
    Ok(vec![Some(joined([g * s, right], dim as i64).ok()?)])
}
