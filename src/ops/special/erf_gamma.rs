//! Special functions: error functions, gamma functions, the logistic sigmoid and its inverse, x log y.

use crate::cpu::complex;
use crate::cpu::number_class::{MapReal, Real};
use crate::cpu::special as cpu;
use crate::dtype::c128;
use crate::error::Error;
use crate::op::*;
use crate::ops::support::promotion::{Analytic, BINARY, FLOAT_UNARY, analytic, real, real2, wide2};
use std::f64::consts::FRAC_2_SQRT_PI;

pub static OPS: &[&Op] = &[
    &ERF,
    &ERFC,
    &ERFINV,
    &LGAMMA,
    &DIGAMMA,
    &POLYGAMMA,
    &POLYGAMMA_OF,
    &SIGMOID,
    &LOGIT,
    &XLOGY,
    &XLOGY_SCALAR_SELF,
    &XLOGY_SCALAR_OTHER,
];

struct Erf;
impl MapReal<1> for Erf {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x.erf()
    }
}
pub static ERF: Op = Op {
    sig: sig("erf(Tensor self) -> Tensor"),
    doc: "The error function, `2/sqrt(pi) * integral of exp(-t^2) from 0 to x`.",
    aliases: &["special.erf"],
    body: elementwise(&real::<Erf>("erf_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() * ((-c.arg(0).square()).exp() * FRAC_2_SQRT_PI))]),
    samples: REAL,
    errors: NOT_COMPLEX,
    reference: "scipy.special.erf(x0)",
    ..FLOAT_UNARY
};
const REAL: &[&str] = &["f32[2,3]", "f64[3]", "i64[4]"];
const NOT_COMPLEX: &[(&str, &str, &str)] = &[("c64[2]", "RuntimeError", "not implemented for 'ComplexFloat'")];

struct Erfc;
impl MapReal<1> for Erfc {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x.erfc()
    }
}
pub static ERFC: Op = Op {
    sig: sig("erfc(Tensor self) -> Tensor"),
    doc: "`1 - erf(x)`, exact for large x.",
    aliases: &["special.erfc"],
    body: elementwise(&real::<Erfc>("erfc_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| -(c.g() * ((-c.arg(0).square()).exp() * FRAC_2_SQRT_PI)))]),
    samples: REAL,
    errors: NOT_COMPLEX,
    reference: "scipy.special.erfc(x0)",
    ..FLOAT_UNARY
};

struct ErfInv;
impl MapReal<1> for ErfInv {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x.erfinv()
    }
}
pub static ERFINV: Op = Op {
    sig: sig("erfinv(Tensor self) -> Tensor"),
    doc: "The inverse of `erf`; infinite at -1 and 1, NaN beyond.",
    aliases: &["special.erfinv"],
    body: elementwise(&real::<ErfInv>("erfinv_(x)")),
    vjp: Vjp::Each(&[d(0, OUT0, |c| c.g() * (c.out(0).square().exp() * FRAC_2_SQRT_PI.recip()))]),
    samples: &["f32[2,3](sym)", "f64[3](sym)"],
    errors: NOT_COMPLEX,
    reference: "scipy.special.erfinv(x0)",
    keeps: Some(""),
    ..FLOAT_UNARY
};

struct LGamma;
impl MapReal<1> for LGamma {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x.lgamma()
    }
}
pub static LGAMMA: Op = Op {
    sig: sig("lgamma(Tensor self) -> Tensor"),
    doc: "The logarithm of the absolute value of the gamma function.",
    aliases: &["special.gammaln"],
    body: elementwise(&real::<LGamma>("lgamma_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() * DIGAMMA.call((c.arg(0),)))]),
    samples: &["f32[2,3](pos)", "f64[3]", "i64[4](1..9)"],
    errors: NOT_COMPLEX,
    reference: "scipy.special.gammaln(x0)",
    ..FLOAT_UNARY
};

struct Digamma;
impl MapReal<1> for Digamma {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x.digamma()
    }
}
pub static DIGAMMA: Op = Op {
    sig: sig("digamma(Tensor self) -> Tensor"),
    doc: "The derivative of `lgamma`.",
    aliases: &["special.digamma", "special.psi"],
    body: elementwise(&real::<Digamma>("digamma_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() * POLYGAMMA.call((1, c.arg(0))))]),
    samples: &["f32[2,3](pos)", "f64[3]", "i64[4](1..9)"],
    errors: NOT_COMPLEX,
    reference: "scipy.special.digamma(x0)",
    ..FLOAT_UNARY
};

static DERIVATIVES: Rule = wide2(cpu::polygamma, "polygamma_(x, y)");
pub static POLYGAMMA: Op = Op {
    sig: sig("polygamma(int n, Tensor self) -> Tensor"),
    doc: "The n-th derivative of `digamma`.",
    aliases: &["special.polygamma"],
    forms: FO,
    promote: Promote::By(|c, d| {
        if c.int("n")? < 0 {
            return Err(Error::runtime("polygamma(n, x) does not support negative n."));
        }
        let d = if d.category() < crate::dtype::Category::Float { crate::dtype::default_dtype() } else { d };
        Ok((d, d))
    }),
    body: elementwise(&DERIVATIVES),
    vjp: Vjp::Each(&[d(1, A1, |c| c.g() * POLYGAMMA.call((c.int("n") + 1, c.arg(1))))]),
    samples: &["1, f32[4](= 0.5, 1.0, 2.5, 7.0)", "2, f64[3](= 0.3, 1.5, 4.0)", "0, f32[3](pos)"],
    errors: &[("-1, f32[2]", "RuntimeError", "does not support negative n")],
    reference: "scipy.special.polygamma(x0, x1)",
    ..OP
};

/// The method form: `x.polygamma(2)`.
pub static POLYGAMMA_OF: Op = Op {
    sig: sig("polygamma.method(Tensor self, int n) -> Tensor"),
    doc: "The n-th derivative of `digamma`.",
    forms: Forms(Forms::METHOD | Forms::INPLACE),
    body: decompose(|c| POLYGAMMA.calls((c.int("n")?, c.tensor(0)?))),
    vjp: Vjp::Composite,
    samples: &["f32[4](= 0.5, 1.0, 2.5, 7.0), 1", "f64[3](= 0.3, 1.5, 4.0), 2"],
    errors: &[("f32[2], -1", "RuntimeError", "does not support negative n")],
    reference: "scipy.special.polygamma(x1, x0)",
    ..OP
};

struct Sigmoid;
impl Analytic for Sigmoid {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.sigmoid()
    }
    fn complex(x: c128) -> c128 {
        complex::divide(c128::ONE, c128::ONE + complex::exp(-x))
    }
}
pub static SIGMOID: Op = Op {
    sig: sig("sigmoid(Tensor self) -> Tensor"),
    doc: "The logistic function `1 / (1 + exp(-x))`.",
    aliases: &["special.expit", "nn.functional.sigmoid"],
    body: elementwise(&analytic::<Sigmoid>("sigmoid_(x)")),
    vjp: Vjp::Each(&[d(0, OUT0, |c| c.g() * ((1.0 - c.out(0)) * c.out(0)).conj())]),
    reference: "scipy.special.expit(x0)",
    ..FLOAT_UNARY
};

struct Logit;
impl MapReal<1> for Logit {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        (x / (T::one() - x)).ln()
    }
}
struct LogitWithin;
impl MapReal<2> for LogitWithin {
    #[inline(always)]
    fn eval<T: Real>([x, eps]: [T; 2]) -> T {
        // For eps > 0.5 the bounds cross: the lower one is applied first.
        let upper = T::one() - eps;
        let below = if x > upper { upper } else { x };
        let x = if x < eps { eps } else { below };
        (x / (T::one() - x)).ln()
    }
}
static LOG_ODDS: Rule = real::<Logit>("ln_(div_(x, T(1) - x))");
static LOG_ODDS_WITHIN: Rule = real2::<LogitWithin>(
    "ln_(div_(where_(lt_(x, y), y, min_(x, T(1) - y)), T(1) - where_(lt_(x, y), y, min_(x, T(1) - y))))",
);
pub static LOGIT: Op = Op {
    sig: sig("logit(Tensor self, float? eps=None) -> Tensor"),
    doc: "The inverse of `sigmoid`, `log(x / (1 - x))`; with `eps` the input is limited to `[eps, 1 - eps]`.",
    aliases: &["special.logit"],
    body: elementwise_by(
        |c| Ok(if c.argument("eps").is_none() { &LOG_ODDS } else { &LOG_ODDS_WITHIN }),
        &[&LOG_ODDS, &LOG_ODDS_WITHIN],
    ),
    vjp: Vjp::Each(&[d(0, A0, |c| {
        let (eps, slope) = (c.opt_float("eps"), c.g() / (c.arg(0) * (1.0 - c.arg(0))));
        let outside = c.arg(0).less(eps.unwrap_or(0.0)).either(c.arg(0).greater(1.0 - eps.unwrap_or(0.0)));
        outside.choose(if eps.is_some() { 0.0 } else { f64::NAN }, slope)
    })]),
    samples: &["f32[2,3](unit)", "f64[3](unit)", "f32[2,3](unit), 0.2", "f32[2,3](unit), 0.7", "i64[3](0..2)"],
    errors: NOT_COMPLEX,
    reference: "scipy.special.logit(x0 if eps is None else np.where(x0 < eps, eps, np.minimum(x0, 1 - eps)))",
    ..FLOAT_UNARY
};

struct XLogY;
impl MapReal<2> for XLogY {
    #[inline(always)]
    fn eval<T: Real>([x, y]: [T; 2]) -> T {
        let product = x * y.ln();
        if x == T::zero() && !y.is_nan() { T::zero() } else { product }
    }
}
static X_LOG_Y: Rule = real2::<XLogY>("where_(flag(!truth(x) && !is_nan(y)), T(0), x * ln_(y))");
/// Zero where the gradient is zero, whatever the logarithm.
fn slope_x(c: &VjpCtx) -> Term {
    let settled = c.arg(0).equals(0).both(c.arg(1).at_most(0));
    XLOGY.call((c.g(), c.arg(1))).zero_where(settled)
}
pub static XLOGY: Op = Op {
    sig: sig("xlogy(Tensor self, Tensor other) -> Tensor"),
    doc: "`self * log(other)`, and zero where `self` is zero.",
    aliases: &["special.xlogy"],
    promote: Promote::Float,
    body: elementwise(&X_LOG_Y),
    vjp: Vjp::Each(&[d(0, A0 | A1, slope_x), d(1, A0 | A1, |c| c.g() * c.arg(0) / c.arg(1))]),
    samples: &["f32[2,3], f32[2,3](pos)", "f32[2,3](ties), f32[3](pos)", "i64[4], i64[4](1..5)"],
    reference: "scipy.special.xlogy(x0, x1)",
    ..BINARY
};
pub static XLOGY_SCALAR_SELF: Op = Op {
    sig: sig("xlogy.scalar(Scalar self, Tensor other) -> Tensor"),
    doc: "A number times `log(other)`.",
    aliases: &["special.xlogy"],
    forms: FO,
    promote: Promote::Float,
    body: elementwise(&X_LOG_Y),
    vjp: Vjp::Each(&[d(1, A1, |c| c.g() * c.arg(0) / c.arg(1))]),
    node: "XlogyBackward1",
    samples: &["2, f32[2,3](pos)", "0, f32[3](pos)"],
    errors: &[("2, c64[2]", "RuntimeError", "not implemented for 'ComplexFloat'")],
    reference: "scipy.special.xlogy(x0, x1)",
    ..OP
};
pub static XLOGY_SCALAR_OTHER: Op = Op {
    sig: sig("xlogy.number(Tensor self, Scalar other) -> Tensor"),
    doc: "`self` times the logarithm of a number.",
    aliases: &["special.xlogy"],
    promote: Promote::Float,
    body: elementwise(&X_LOG_Y),
    vjp: Vjp::Each(&[d(0, A0, slope_x)]),
    node: "XlogyBackward2",
    samples: &["f32[2,3], 2.5", "f32[3](ties), 2"],
    errors: &[("c64[2], 2", "RuntimeError", "not implemented for 'ComplexFloat'")],
    reference: "scipy.special.xlogy(x0, x1)",
    ..BINARY
};

impl Term {
    pub fn sigmoid(self) -> Term {
        SIGMOID.call((self,))
    }
    pub fn erf(self) -> Term {
        ERF.call((self,))
    }
}
