//! Exponentials and logarithms, and sums of two exponentials.
//!
//! The float formulas are in `cpu::float32` and `cpu::float64`; complex ones follow C99's principal branches.

use crate::cpu::complex;
use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapComplex, MapReal, Real};
use crate::cpu::special;
use crate::dtype::{DType, c128};
use crate::error::Error;
use crate::op::*;
use crate::ops::support::promotion::{Analytic, BINARY, FLOAT_UNARY, UNARY, analytic, real2, refused, wide};
use std::f64::consts::{LN_2, LN_10};

pub static OPS: &[&Op] =
    &[&EXP, &EXP2, &EXPM1, &LOG, &LOG2, &LOG10, &LOG1P, &LOGADDEXP, &LOGADDEXP2, &FREXP, &MANTISSA, &EXPONENT];

struct Exp;
impl MapReal<1> for Exp {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x.exp()
    }
    const SHORTENED: bool = true;
    #[inline(always)]
    fn is_mild<T: Real>([x]: [T; 1]) -> bool {
        x.has_mild_exp()
    }
    #[inline(always)]
    fn short<T: Real>([x]: [T; 1]) -> T {
        x.exp_mild()
    }
}
impl MapComplex<1> for Exp {
    fn eval([x]: [c128; 1]) -> c128 {
        complex::exp(x)
    }
}
const EXP_RULE: Rule =
    Rule { operands: &[0], loops: Loops::NONE.real::<1, Exp>().complex::<1, Exp>(), wgsl: "exp_(x)" };
pub static EXP: Op = Op {
    sig: sig("exp(Tensor self) -> Tensor"),
    doc: "The exponential `e^x`, element by element.",
    body: elementwise(&EXP_RULE),
    vjp: Vjp::Each(&[d(0, OUT0, |c| c.g() * c.out(0).conj())]),
    reference: "np.exp(x0)",
    ..FLOAT_UNARY
};

struct Exp2;
impl Analytic for Exp2 {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.exp2()
    }
    fn complex(x: c128) -> c128 {
        complex::exp(x * LN_2)
    }
}
pub static EXP2: Op = Op {
    sig: sig("exp2(Tensor self) -> Tensor"),
    doc: "Two to the power of each element.",
    aliases: &["special.exp2"],
    body: elementwise(&analytic::<Exp2>("exp2_(x)")),
    vjp: Vjp::Each(&[d(0, OUT0, |c| c.g() * c.out(0).conj() * LN_2)]),
    reference: "2.0 ** x0",
    ..FLOAT_UNARY
};

struct Expm1;
impl Analytic for Expm1 {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.expm1()
    }
    /// `e^(a+ib) - 1` without cancellation near zero: `expm1(a) cos b - 2 sin^2(b/2)`.
    fn complex(x: c128) -> c128 {
        if x.re.abs() > 40.0 || !(x.re.is_finite() && x.im.is_finite()) {
            return complex::exp(x) - 1.0;
        }
        let half = (0.5 * x.im).sin();
        c128::new(x.re.exp_m1() * x.im.cos() - 2.0 * half * half, x.re.exp() * x.im.sin())
    }
}
pub static EXPM1: Op = Op {
    sig: sig("expm1(Tensor self) -> Tensor"),
    doc: "`exp(x) - 1`, exact near zero.",
    aliases: &["special.expm1"],
    body: elementwise(&analytic::<Expm1>("expm1_(x)")),
    vjp: Vjp::Each(&[d(0, OUT0, |c| c.g() * (c.out(0).conj() + 1))]),
    reference: "np.expm1(x0)",
    ..FLOAT_UNARY
};

const POSITIVE: &[&str] = &["f32[2,3](pos)", "f64[3](pos)", "i64[4](1..9)", "c64[3]"];

struct Log;
impl Analytic for Log {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.ln()
    }
    fn complex(x: c128) -> c128 {
        complex::ln(x)
    }
}
pub static LOG: Op = Op {
    sig: sig("log(Tensor self) -> Tensor"),
    doc: "The natural logarithm; NaN for negative numbers.",
    body: elementwise(&analytic::<Log>("ln_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() / c.arg(0).conj())]),
    samples: POSITIVE,
    reference: "np.log(x0)",
    ..FLOAT_UNARY
};

struct Log2;
impl Analytic for Log2 {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.log2()
    }
    fn complex(x: c128) -> c128 {
        complex::ln(x) / LN_2
    }
}
pub static LOG2: Op = Op {
    sig: sig("log2(Tensor self) -> Tensor"),
    doc: "The logarithm to base two.",
    body: elementwise(&analytic::<Log2>("log2_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() / (c.arg(0).conj() * LN_2))]),
    samples: POSITIVE,
    reference: "np.log2(x0)",
    ..FLOAT_UNARY
};

struct Log10;
impl Analytic for Log10 {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.log10()
    }
    fn complex(x: c128) -> c128 {
        complex::ln(x) / LN_10
    }
}
pub static LOG10: Op = Op {
    sig: sig("log10(Tensor self) -> Tensor"),
    doc: "The logarithm to base ten.",
    body: elementwise(&analytic::<Log10>("log10_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() / (c.arg(0).conj() * LN_10))]),
    samples: POSITIVE,
    reference: "np.log10(x0)",
    ..FLOAT_UNARY
};

struct Log1p;
impl Analytic for Log1p {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.log1p()
    }
    /// `log|1+z| = log1p(2a + a^2 + b^2) / 2` is accurate for small arguments.
    fn complex(x: c128) -> c128 {
        if x.re.abs() < 0.5 && x.im.abs() < 0.5 {
            let re = 0.5 * (x.re * (2.0 + x.re) + x.im * x.im).ln_1p();
            return c128::new(re, x.im.atan2(1.0 + x.re));
        }
        complex::ln(c128::new(1.0 + x.re, x.im))
    }
}
pub static LOG1P: Op = Op {
    sig: sig("log1p(Tensor self) -> Tensor"),
    doc: "`log(1 + x)`, exact near zero.",
    aliases: &["special.log1p"],
    body: elementwise(&analytic::<Log1p>("log1p_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() / (c.arg(0) + 1).conj())]),
    samples: POSITIVE,
    reference: "np.log1p(x0)",
    ..FLOAT_UNARY
};

struct LogAddExp;
impl MapReal<2> for LogAddExp {
    #[inline(always)]
    fn eval<T: Real>([x, y]: [T; 2]) -> T {
        let m = x.maximum(y) + (-(x - y).abs()).exp().log1p();
        if x == y && x.is_infinite() { x } else { m }
    }
}
impl MapComplex<2> for LogAddExp {
    fn eval([x, y]: [c128; 2]) -> c128 {
        log_add_exp(x, y)
    }
}
/// `ln(exp(x) + exp(y))`, with the larger one factored out, so that nothing finite overflows; NaN in any part makes all of it NaN.
pub fn log_add_exp(x: c128, y: c128) -> c128 {
    let (high, low) = if x.re >= y.re { (x, y) } else { (y, x) };
    if x.is_nan() || y.is_nan() {
        c128::new(f64::NAN, f64::NAN)
    } else if high.re.is_infinite() && high.re == low.re {
        complex::ln(complex::exp(x) + complex::exp(y))
    } else {
        high + Log1p::complex(complex::exp(low - high))
    }
}
static LOG_ADD_EXP: Rule = Rule {
    operands: &[0, 1],
    loops: Loops::NONE.real::<2, LogAddExp>().complex::<2, LogAddExp>(),
    wgsl: "where_(flag(same(x, y) && is_inf(x)), x, max_(x, y) + log1p_(exp_(-abs_(x - y))))",
};
pub static LOGADDEXP: Op = Op {
    sig: sig("logaddexp(Tensor self, Tensor other) -> Tensor"),
    doc: "`log(exp(self) + exp(other))` without overflow.",
    forms: Forms(Forms::FUNCTION | Forms::METHOD | Forms::OUT),
    body: elementwise(&LOG_ADD_EXP),
    vjp: Vjp::Each(&[
        d(0, A0 | A1, |c| c.g() * (c.arg(0) - c.arg(1)).sigmoid().conj()),
        d(1, A0 | A1, |c| c.g() * (c.arg(1) - c.arg(0)).sigmoid().conj()),
    ]),
    reference: "np.logaddexp(x0, x1)",
    ..BINARY
};

struct LogAddExp2;
impl MapReal<2> for LogAddExp2 {
    #[inline(always)]
    fn eval<T: Real>([x, y]: [T; 2]) -> T {
        let m = x.maximum(y) + (-(x - y).abs()).exp2().log1p() * T::from_f64(std::f64::consts::LOG2_E);
        if x == y && x.is_infinite() { x } else { m }
    }
}
pub static LOGADDEXP2: Op = Op {
    sig: sig("logaddexp2(Tensor self, Tensor other) -> Tensor"),
    doc: "`log2(2^self + 2^other)` without overflow.",
    forms: Forms(Forms::FUNCTION | Forms::METHOD | Forms::OUT),
    body: elementwise(&real2::<LogAddExp2>(
        "where_(flag(same(x, y) && is_inf(x)), x, max_(x, y) + opaque(log1p_(exp2_(-abs_(x - y))) * T(1.44269504088896341)))",
    )),
    vjp: Vjp::Each(&[
        d(0, A0 | A1, |c| c.g() * ((c.arg(0) - c.arg(1)) * LN_2).sigmoid()),
        d(1, A0 | A1, |c| c.g() * ((c.arg(1) - c.arg(0)) * LN_2).sigmoid()),
    ]),
    reference: "np.logaddexp2(x0, x1)",
    ..BINARY
};

pub static FREXP: Op = Op {
    sig: sig("frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)"),
    doc: "The mantissa in [1/2, 1) and the int32 exponent of `self = mantissa * 2^exponent`.",
    forms: FMO,
    out_dtype: Some(OutDType::Same),
    body: decompose(|c| {
        let t = c.tensor(0)?;
        if !t.dtype().is_float() {
            return Err(Error::runtime("torch.frexp() only supports floating-point dtypes"));
        }
        Ok([MANTISSA.call((t,)).ok()?, EXPONENT.call((t,)).ok()?].into_iter().collect())
    }),
    vjp: Vjp::Each(&[d(0, OUT1, |c| c.g() / c.out(1).to_dtype(c.meta_of(0).dtype).exp2())]),
    samples: &[
        "f32[2,3]",
        "f64[3](= 1.5, -3.3, 0.7)",
        "f64[6](= 1, -4, 1e-310, 0.5, 1e300, 0, nograd)",
        "f16[3]",
        "f32[4](= inf, -inf, nan, 0, nograd)",
    ],
    errors: &[("i64[2]", "RuntimeError", "only supports floating-point dtypes")],
    reference: "np.frexp(x0)",
    batch: Batching::Leading,
    ..OP
};
pub static MANTISSA: Op = Op {
    sig: sig("_mantissa(Tensor self) -> Tensor"),
    doc: "The mantissa of `frexp`.",
    forms: HIDDEN,
    body: elementwise(&wide(special::mantissa, "mantissa_(x)")),
    vjp: Vjp::None("a step of frexp"),
    samples: &["f32[2,3]", "f64[3]"],
    reference: "np.frexp(x0)[0]",
    ..UNARY
};
pub static EXPONENT: Op = Op {
    sig: sig("_exponent(Tensor self) -> Tensor"),
    doc: "The exponent of `frexp`.",
    promote: Promote::By(|c, d| if d.is_float() { Ok((d, DType::I32)) } else { Err(refused(c, d)) }),
    forms: HIDDEN,
    body: elementwise(&wide(special::exponent, "exponent_(x)")),
    vjp: Vjp::None("a step of frexp"),
    samples: &["f32[2,3]", "f64[3]"],
    reference: "np.frexp(x0)[1]",
    ..UNARY
};

impl Term {
    pub fn exp(self) -> Term {
        EXP.call((self,))
    }
    pub fn exp2(self) -> Term {
        EXP2.call((self,))
    }
    pub fn expm1(self) -> Term {
        EXPM1.call((self,))
    }
    pub fn log(self) -> Term {
        LOG.call((self,))
    }
    pub fn log1p(self) -> Term {
        LOG1P.call((self,))
    }
}
