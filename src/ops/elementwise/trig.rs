//! Trigonometric functions, their inverses, and degrees.
//!
//! Gradients are the textbook formulas, written with `square` and `rsqrt`, which are differentiable.

use crate::cpu::complex;
use crate::cpu::math::TRIG_LIMIT;
use crate::cpu::number_class::{MapReal, Real};
use crate::dtype::{DType, c128};
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::support::promotion::{Analytic, BINARY, FLOAT_UNARY, analytic, real, real2};
use std::f64::consts::PI;

pub static OPS: &[&Op] = &[&SIN, &COS, &TAN, &ASIN, &ACOS, &ATAN, &ATAN2, &SINC, &DEG2RAD, &RAD2DEG];

struct Sin;
impl Analytic for Sin {
    const LIMIT: f64 = TRIG_LIMIT;
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.sin()
    }
    fn complex(x: c128) -> c128 {
        complex::sin(x)
    }
}
pub static SIN: Op = Op {
    sig: sig("sin(Tensor self) -> Tensor"),
    doc: "The sine of radians.",
    body: elementwise(&analytic::<Sin>("sin_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() * c.arg(0).cos().conj())]),
    reference: "np.sin(x0)",
    ..FLOAT_UNARY
};

struct Cos;
impl Analytic for Cos {
    const LIMIT: f64 = TRIG_LIMIT;
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.cos()
    }
    fn complex(x: c128) -> c128 {
        complex::cos(x)
    }
}
pub static COS: Op = Op {
    sig: sig("cos(Tensor self) -> Tensor"),
    doc: "The cosine of radians.",
    body: elementwise(&analytic::<Cos>("cos_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| -(c.g() * c.arg(0).sin().conj()))]),
    reference: "np.cos(x0)",
    ..FLOAT_UNARY
};

struct Tan;
impl Analytic for Tan {
    const LIMIT: f64 = TRIG_LIMIT;
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.tan()
    }
    fn complex(x: c128) -> c128 {
        complex::tan(x)
    }
}
pub static TAN: Op = Op {
    sig: sig("tan(Tensor self) -> Tensor"),
    doc: "The tangent of radians.",
    body: elementwise(&analytic::<Tan>("tan_(x)")),
    vjp: Vjp::Each(&[d(0, OUT0, |c| c.g() * (c.out(0).square() + 1).conj())]),
    samples: &["f32[2,3](sym)", "f64[3](sym)", "i64[4]", "c64[3]"],
    reference: "np.tan(x0)",
    ..FLOAT_UNARY
};

const INSIDE: &[&str] = &["f32[2,3](sym)", "f64[3](sym)", "i64[4](-1..2)", "c64[3]"];

struct Asin;
impl Analytic for Asin {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.asin()
    }
    fn complex(x: c128) -> c128 {
        complex::asin(x)
    }
}
pub static ASIN: Op = Op {
    sig: sig("asin(Tensor self) -> Tensor"),
    doc: "The arc sine in radians; NaN outside [-1, 1].",
    aliases: &["arcsin"],
    body: elementwise(&analytic::<Asin>("asin_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() * (1.0 - c.arg(0).square()).rsqrt().conj())]),
    samples: INSIDE,
    reference: "np.arcsin(x0)",
    ..FLOAT_UNARY
};

struct Acos;
impl Analytic for Acos {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.acos()
    }
    fn complex(x: c128) -> c128 {
        complex::acos(x)
    }
}
pub static ACOS: Op = Op {
    sig: sig("acos(Tensor self) -> Tensor"),
    doc: "The arc cosine in radians; NaN outside [-1, 1].",
    aliases: &["arccos"],
    body: elementwise(&analytic::<Acos>("acos_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| -(c.g() * (1.0 - c.arg(0).square()).rsqrt().conj()))]),
    samples: INSIDE,
    reference: "np.arccos(x0)",
    ..FLOAT_UNARY
};

struct Atan;
impl Analytic for Atan {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.atan()
    }
    fn complex(x: c128) -> c128 {
        complex::atan(x)
    }
}
pub static ATAN: Op = Op {
    sig: sig("atan(Tensor self) -> Tensor"),
    doc: "The arc tangent in radians.",
    aliases: &["arctan"],
    body: elementwise(&analytic::<Atan>("atan_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() / (c.arg(0).square() + 1).conj())]),
    reference: "np.arctan(x0)",
    ..FLOAT_UNARY
};

struct Atan2;
impl MapReal<2> for Atan2 {
    #[inline(always)]
    fn eval<T: Real>([y, x]: [T; 2]) -> T {
        y.atan2(x)
    }
}
/// Argument `i` over the square of the distance from the origin; zero there.
fn atan2_grad(c: &VjpCtx, i: usize) -> Term {
    let square = c.arg(0).square() + c.arg(1).square();
    (c.arg(i) / square.clone()).zero_where(square.equals(0))
}
pub static ATAN2: Op = Op {
    sig: sig("atan2(Tensor self, Tensor other) -> Tensor"),
    doc: "The angle of the point (other, self) in radians, from -pi to pi.",
    aliases: &["arctan2"],
    promote: Promote::Float,
    body: elementwise(&real2::<Atan2>("atan2_(x, y)")),
    vjp: Vjp::Each(&[d(0, A0 | A1, |c| c.g() * atan2_grad(c, 1)), d(1, A0 | A1, |c| c.g() * -atan2_grad(c, 0))]),
    reference: "np.arctan2(x0, x1)",
    ..BINARY
};

struct Sinc;
impl Analytic for Sinc {
    /// The sine of the distance to the nearest integer, so that it is exactly zero at integers.
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        let (n, half) = (x.round(), T::from_f64(0.5));
        let s = ((x - n) * T::from_f64(PI)).sin();
        let s = if (n * half).trunc() == n * half { s } else { -s };
        if x == T::zero() { T::one() } else { s / (x * T::from_f64(PI)) }
    }
    fn complex(x: c128) -> c128 {
        let p = x * PI;
        if x == c128::ZERO { c128::ONE } else { complex::divide(complex::sin(p), p) }
    }
}
pub static SINC: Op = Op {
    sig: sig("sinc(Tensor self) -> Tensor"),
    doc: "`sin(pi x) / (pi x)`, and 1 at zero.",
    aliases: &["special.sinc"],
    body: elementwise(&analytic::<Sinc>(
        "where_(x, div_(sin_((x - round_(x)) * T(3.14159265358979324)) * (T(1) - T(2) * abs_(round_(x) - T(2) * trunc_(round_(x) * T(0.5)))), x * T(3.14159265358979324)), T(1))",
    )),
    vjp: Vjp::Each(&[d(0, A0, |c| {
        let (p, over) = (c.arg(0) * PI, c.arg(0).square() * PI);
        let slope = (p.clone() * p.clone().cos() - p.sin()) / over.clone();
        (c.g() * slope.conj()).zero_where(over.equals(0))
    })]),
    reference: "np.sinc(x0)",
    ..FLOAT_UNARY
};

fn not_complex(c: &Call, common: DType) -> Result<(DType, DType)> {
    if common.is_complex() {
        return Err(Error::not_implemented(format!("{} is not supported for complex tensors.", c.op.base())));
    }
    let d = if common.is_float() { common } else { crate::dtype::default_dtype() };
    Ok((d, d))
}

struct ToRadians;
impl MapReal<1> for ToRadians {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x * T::from_f64(PI / 180.0)
    }
}
pub static DEG2RAD: Op = Op {
    sig: sig("deg2rad(Tensor self) -> Tensor"),
    doc: "Degrees to radians.",
    promote: Promote::By(not_complex),
    body: elementwise(&real::<ToRadians>("x * T(0.0174532925199432958)")),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g() * (PI / 180.0))]),
    samples: &["f32[2,3](big)", "i64[4]"],
    errors: &[("c64[2]", "RuntimeError", "not supported for complex")],
    reference: "np.deg2rad(x0)",
    ..FLOAT_UNARY
};

struct ToDegrees;
impl MapReal<1> for ToDegrees {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x * T::from_f64(180.0 / PI)
    }
}
pub static RAD2DEG: Op = Op {
    sig: sig("rad2deg(Tensor self) -> Tensor"),
    doc: "Radians to degrees.",
    promote: Promote::By(not_complex),
    body: elementwise(&real::<ToDegrees>("x * T(57.2957795130823209)")),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g() * (180.0 / PI))]),
    samples: &["f32[2,3]", "i64[4]"],
    errors: &[("c64[2]", "RuntimeError", "not supported for complex")],
    reference: "np.rad2deg(x0)",
    ..FLOAT_UNARY
};

impl Term {
    pub fn sin(self) -> Term {
        SIN.call((self,))
    }
    pub fn cos(self) -> Term {
        COS.call((self,))
    }
}
