//! Hyperbolic functions and their inverses.

use crate::cpu::complex;
use crate::cpu::number_class::Real;
use crate::dtype::c128;
use crate::op::*;
use crate::ops::support::promotion::{Analytic, FLOAT_UNARY, analytic};

pub static OPS: &[&Op] = &[&SINH, &COSH, &TANH, &ASINH, &ACOSH, &ATANH];

struct Sinh;
impl Analytic for Sinh {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.sinh()
    }
    fn complex(x: c128) -> c128 {
        complex::sinh(x)
    }
}
pub static SINH: Op = Op {
    sig: sig("sinh(Tensor self) -> Tensor"),
    doc: "The hyperbolic sine.",
    body: elementwise(&analytic::<Sinh>("sinh_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() * c.arg(0).cosh().conj())]),
    reference: "np.sinh(x0)",
    ..FLOAT_UNARY
};

struct Cosh;
impl Analytic for Cosh {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.cosh()
    }
    fn complex(x: c128) -> c128 {
        complex::cosh(x)
    }
}
pub static COSH: Op = Op {
    sig: sig("cosh(Tensor self) -> Tensor"),
    doc: "The hyperbolic cosine.",
    body: elementwise(&analytic::<Cosh>("cosh_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() * c.arg(0).sinh().conj())]),
    reference: "np.cosh(x0)",
    ..FLOAT_UNARY
};

struct Tanh;
impl Analytic for Tanh {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.tanh()
    }
    fn complex(x: c128) -> c128 {
        complex::tanh(x)
    }
}
pub static TANH: Op = Op {
    sig: sig("tanh(Tensor self) -> Tensor"),
    doc: "The hyperbolic tangent.",
    aliases: &["nn.functional.tanh"],
    body: elementwise(&analytic::<Tanh>("tanh_(x)")),
    vjp: Vjp::Each(&[d(0, OUT0, |c| c.g() * (1.0 - c.out(0).square()).conj())]),
    reference: "np.tanh(x0)",
    ..FLOAT_UNARY
};

struct Asinh;
impl Analytic for Asinh {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.asinh()
    }
    fn complex(x: c128) -> c128 {
        complex::asinh(x)
    }
}
pub static ASINH: Op = Op {
    sig: sig("asinh(Tensor self) -> Tensor"),
    doc: "The inverse hyperbolic sine.",
    aliases: &["arcsinh"],
    body: elementwise(&analytic::<Asinh>("asinh_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() * (c.arg(0).square() + 1).rsqrt().conj())]),
    reference: "np.arcsinh(x0)",
    ..FLOAT_UNARY
};

struct Acosh;
impl Analytic for Acosh {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.acosh()
    }
    fn complex(x: c128) -> c128 {
        complex::acosh(x)
    }
}
/// For complex numbers the product of two roots has the right branch; for real ones it would be NaN below -1.
fn acosh_slope(c: &VjpCtx) -> Term {
    let x = c.arg(0);
    let slope = if x.is_complex() { (x.clone() - 1).rsqrt() * (x + 1).rsqrt() } else { (x.square() - 1).rsqrt() };
    c.g() * slope.conj()
}
pub static ACOSH: Op = Op {
    sig: sig("acosh(Tensor self) -> Tensor"),
    doc: "The inverse hyperbolic cosine; NaN below 1.",
    aliases: &["arccosh"],
    body: elementwise(&analytic::<Acosh>("acosh_(x)")),
    vjp: Vjp::Each(&[d(0, A0, acosh_slope)]),
    samples: &["f32[2,3](gt1)", "f64[3](gt1)", "i64[4](1..9)", "c64[3]"],
    reference: "np.arccosh(x0)",
    ..FLOAT_UNARY
};

struct Atanh;
impl Analytic for Atanh {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.atanh()
    }
    fn complex(x: c128) -> c128 {
        complex::atanh(x)
    }
}
pub static ATANH: Op = Op {
    sig: sig("atanh(Tensor self) -> Tensor"),
    doc: "The inverse hyperbolic tangent; NaN outside [-1, 1].",
    aliases: &["arctanh"],
    body: elementwise(&analytic::<Atanh>("atanh_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() / (1.0 - c.arg(0).square()).conj())]),
    samples: &["f32[2,3](sym)", "f64[3](sym)", "i64[4](-1..2)", "c64[3]"],
    reference: "np.arctanh(x0)",
    ..FLOAT_UNARY
};

impl Term {
    pub fn sinh(self) -> Term {
        SINH.call((self,))
    }
    pub fn cosh(self) -> Term {
        COSH.call((self,))
    }
    pub fn tanh(self) -> Term {
        TANH.call((self,))
    }
}
