//! Powers and roots: pow in its three forms, square, sqrt, rsqrt, reciprocal.
//!
//! Integer powers wrap around; a negative exponent of an integer gives 1, -1 or 0 as a tensor, and is an error as a
//! number, as in PyTorch. Exponents that amount to a few multiplications or a root are computed that way, exactly and
//! ten times faster.

use crate::cpu::complex;
use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapComplex, MapInt, MapNum, MapReal, Num, Real, TestNum};
use crate::dtype::{Category, DType, Scalar, c128};
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::support::promotion::{Analytic, FLOAT_UNARY, analytic, refused};

pub static OPS: &[&Op] = &[&POW_TENSOR, &POW, &POW_SCALAR, &SQUARE, &SQRT, &RSQRT, &RECIPROCAL];

struct Power;
impl MapReal<2> for Power {
    #[inline(always)]
    fn eval<T: Real>([x, y]: [T; 2]) -> T {
        x.pow(y)
    }
}
impl MapInt<2> for Power {
    /// Repeated squaring.
    fn eval([x, mut n]: [i64; 2]) -> i64 {
        if n < 0 {
            return match x {
                1 => 1,
                -1 => 1 - 2 * (n & 1),
                _ => 0,
            };
        }
        let (mut result, mut base) = (1i64, x);
        while n > 0 {
            if n & 1 == 1 {
                result = result.wrapping_mul(base);
            }
            base = base.wrapping_mul(base);
            n >>= 1;
        }
        result
    }
}
impl MapComplex<2> for Power {
    fn eval([x, y]: [c128; 2]) -> c128 {
        let zero = c128::new(0.0, 0.0);
        if y == zero {
            return c128::new(1.0, 0.0);
        }
        if x == zero {
            return if y.re > 0.0 { zero } else { c128::new(f64::NAN, f64::NAN) };
        }
        x.powc(y)
    }
}
struct Squared;
impl MapNum<1> for Squared {
    #[inline(always)]
    fn eval<T: Num>([x]: [T; 1]) -> T {
        x * x
    }
}
struct Cubed;
impl MapNum<1> for Cubed {
    #[inline(always)]
    fn eval<T: Num>([x]: [T; 1]) -> T {
        x * x * x
    }
}
static POWER: Rule = Rule {
    operands: &[0, 1],
    loops: Loops::NONE.real::<2, Power>().int::<2, Power>().complex::<2, Power>(),
    wgsl: "pow_(x, y)",
};
/// `x ** e` of bools: true unless `e` is true and `x` false.
struct Implied;
impl TestNum<2> for Implied {
    #[inline(always)]
    fn eval<T: Num>([x, e]: [T; 2]) -> bool {
        x.truth() | !e.truth()
    }
}
static POWER_OF_BOOL: Rule =
    Rule { operands: &[0, 1], loops: Loops::NONE.test_num::<2, Implied>(), wgsl: "logical_or_(x, logical_not_(y))" };
static SQUARED: Rule = Rule { operands: &[0], loops: Loops::NONE.num::<1, Squared>(), wgsl: "x * x" };
static CUBED: Rule = Rule { operands: &[0], loops: Loops::NONE.num::<1, Cubed>(), wgsl: "x * x * x" };
static ROOT: Rule = analytic::<Sqrt>("sqrt_(x)");
static INVERSE_ROOT: Rule = analytic::<Rsqrt>("rsqrt_(x)");
static INVERSE: Rule = analytic::<Reciprocal>("recip_(x)");

/// The promoted dtype; bool has no powers.
fn power_dtype(c: &Call, common: DType) -> Result<(DType, DType)> {
    if common == DType::Bool { Err(refused(c, common)) } else { Ok((common, common)) }
}

/// The dtype for a number as exponent, which does not appear as an operand of the rule.
fn number_dtype(c: &Call, _: DType) -> Result<(DType, DType)> {
    let (t, e) = (c.tensor(0)?, c.scalar("exponent")?);
    let mut ops = crate::dtype::Operands::default();
    ops.tensor(t.dtype(), t.ndim())?;
    ops.scalar(e);
    let common = ops.result().unwrap_or(t.dtype());
    if common.category() == Category::Int && e.to_f64() < 0.0 {
        return Err(Error::runtime("Integers to negative integer powers are not allowed."));
    }
    Ok((common, common))
}

fn by_exponent(c: &Call) -> Result<&'static Rule> {
    let e = c.scalar("exponent")?;
    if matches!(e, Scalar::Bool(_)) && c.tensor(0)?.dtype() == DType::Bool {
        return Ok(&POWER_OF_BOOL);
    }
    if matches!(e, Scalar::Complex(..)) {
        return Ok(&POWER);
    }
    let whole = matches!(e, Scalar::Int(_) | Scalar::Bool(_) | Scalar::UInt(_));
    let float = !whole || c.tensor(0)?.dtype().category() > Category::Int;
    Ok(match e.to_f64() {
        2.0 => &SQUARED,
        3.0 => &CUBED,
        0.5 => &ROOT,
        -0.5 => &INVERSE_ROOT,
        -1.0 if float => &INVERSE,
        _ => &POWER,
    })
}

pub static POW: Op = Op {
    sig: sig("pow(Tensor self, Scalar exponent) -> Tensor"),
    doc: "Each element to the power of a number. Integers refuse negative exponents.",
    forms: FMIO,
    promote: Promote::By(number_dtype),
    body: elementwise_by(by_exponent, &[&POWER, &POWER_OF_BOOL, &SQUARED, &CUBED, &ROOT, &INVERSE_ROOT, &INVERSE]),
    vjp: Vjp::Each(&[d(0, A0, power_slope)]),
    samples: &[
        "f32[2,3](pos), 2.5",
        "f32[2,3], 2",
        "f32[2,3], 3",
        "f32[4](pos), 0.5",
        "f32[4](pos), -1",
        "i64[4], 3",
        "c64[3], 2",
    ],
    errors: &[("i64[3], -1", "RuntimeError", "Integers to negative integer powers are not allowed.")],
    reference: "np.power(x0, x1)",
    ..OP
};

/// `g * (n * x^(n-1))`, and zero where the exponent is zero.
fn power_slope(c: &VjpCtx) -> Term {
    let e = c.opt_scalar("exponent").unwrap_or(Scalar::Int(1));
    let less = match e {
        Scalar::Complex(re, im) => Scalar::Complex(re - 1.0, im),
        e if e.to_f64() == 0.0 => return c.zeros(0),
        Scalar::Float(f) => Scalar::Float(f - 1.0),
        e => Scalar::Int(e.to_i64().wrapping_sub(1)),
    };
    c.g() * (POW.call((c.arg(0), less)) * Value::Scalar(e)).conj()
}

pub static POW_TENSOR: Op = Op {
    sig: sig("pow.tensor(Tensor self, Tensor exponent) -> Tensor"),
    doc: "Each element to the power of the other tensor's. Broadcasts; integers wrap around, negative exponents leave 1, -1 or 0.",
    forms: FMIO,
    promote: Promote::By(power_dtype),
    body: elementwise(&POWER),
    vjp: Vjp::Each(&[
        d(0, A0 | A1, |c| {
            let slope = c.arg(1) * POW_TENSOR.call((c.arg(0), c.arg(1) - 1));
            (c.g() * slope.conj()).zero_where(c.arg(1).equals(0))
        }),
        d(1, A0 | A1 | OUT0, |c| exponent_slope(c, c.arg(0))),
    ]),
    node: "PowBackward1",
    samples: &[
        "f32[2,3](pos), f32[2,3]",
        "f32[2,3](pos), f32[3]",
        "i64[4](1..5), i64[4](0..4)",
        "c64[3], c64[3]",
        "f32[3](pos), i64[3]",
    ],
    errors: &[
        ("f32[2,3], f32[4]", "RuntimeError", "must match the size"),
        ("b8[2], b8[2]", "RuntimeError", "not implemented for 'Bool'"),
    ],
    reference: "np.power(x0, x1)",
    ..OP
};

/// `g * (out * log(base))`, and zero where the base is zero and the exponent is not negative. If the power is complex,
/// negative numbers have a complex logarithm.
fn exponent_slope(c: &VjpCtx, base: Term) -> Term {
    let log =
        if c.out(0).is_complex() { base.clone().to_dtype(c.output_metas[0].dtype).log() } else { base.clone().log() };
    let slope = c.g() * (c.out(0) * log).conj();
    let settled = if c.arg(1).is_complex() { base.equals(0) } else { base.equals(0).both(c.arg(1).at_least(0)) };
    slope.zero_where(settled)
}

pub static POW_SCALAR: Op = Op {
    sig: sig("pow.scalar(Scalar self, Tensor exponent) -> Tensor"),
    doc: "A number to the power of each element.",
    forms: FO,
    promote: Promote::By(power_dtype),
    body: elementwise(&POWER),
    vjp: Vjp::Each(&[d(1, A1 | OUT0, |c| exponent_slope(c, c.arg(0)))]),
    node: "PowBackward2",
    row_major: true,
    samples: &["2, f32[2,3]", "2.5, f32[3]", "2, i64[4](0..5)"],
    errors: &[("2, 'a'", "TypeError", "invalid combination")],
    reference: "np.power(x0, x1)",
    ..OP
};

pub static SQUARE: Op = Op {
    sig: sig("square(Tensor self) -> Tensor"),
    doc: "The square of each element: `pow(x, 2)`.",
    forms: FMO,
    body: decompose(|c| POW.calls((c.tensor(0)?, 2))),
    vjp: Vjp::Composite,
    samples: &["f32[2,3]", "i64[4]", "c64[3]", "b8[3]"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    reference: "np.square(x0)",
    alias_policy: Some(AliasPolicy::SameOnly),
    ..OP
};

struct Sqrt;
impl Analytic for Sqrt {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.sqrt()
    }
    fn complex(x: c128) -> c128 {
        complex::sqrt(x)
    }
}
pub static SQRT: Op = Op {
    sig: sig("sqrt(Tensor self) -> Tensor"),
    doc: "The square root; NaN for negative numbers.",
    body: elementwise(&ROOT),
    vjp: Vjp::Each(&[d(0, OUT0, |c| c.g() / (c.out(0).conj() * 2))]),
    samples: &["f32[2,3](pos)", "f64[3](pos)", "i64[4](1..9)", "c64[3]"],
    reference: "np.sqrt(x0)",
    ..FLOAT_UNARY
};

struct Rsqrt;
impl Analytic for Rsqrt {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.rsqrt()
    }
    fn complex(x: c128) -> c128 {
        complex::divide(c128::ONE, complex::sqrt(x))
    }
}
pub static RSQRT: Op = Op {
    sig: sig("rsqrt(Tensor self) -> Tensor"),
    doc: "One over the square root.",
    body: elementwise(&INVERSE_ROOT),
    vjp: Vjp::Each(&[d(0, OUT0, |c| c.g() * (POW.call((c.out(0), 3)) * -0.5).conj())]),
    samples: &["f32[2,3](pos)", "f64[3](pos)", "i64[4](1..9)", "c64[3]"],
    reference: "1 / np.sqrt(x0)",
    ..FLOAT_UNARY
};

struct Reciprocal;
impl Analytic for Reciprocal {
    #[inline(always)]
    fn real<T: Real>(x: T) -> T {
        x.recip()
    }
    fn complex(x: c128) -> c128 {
        complex::divide(c128::ONE, x)
    }
}
pub static RECIPROCAL: Op = Op {
    sig: sig("reciprocal(Tensor self) -> Tensor"),
    doc: "One over each element.",
    body: elementwise(&INVERSE),
    vjp: Vjp::Each(&[d(0, OUT0, |c| -(c.g() * c.out(0).square().conj()))]),
    samples: &["f32[2,3](nonzero)", "f64[3](nonzero)", "i64[4](1..9)", "c64[3]"],
    reference: "1 / x0",
    ..FLOAT_UNARY
};

impl Term {
    /// The power with a number as exponent.
    pub fn pow(self, exponent: f64) -> Term {
        POW.call((self, exponent))
    }
    pub fn square(self) -> Term {
        POW.call((self, 2))
    }
    pub fn sqrt(self) -> Term {
        SQRT.call((self,))
    }
    pub fn rsqrt(self) -> Term {
        RSQRT.call((self,))
    }
    pub fn recip(self) -> Term {
        RECIPROCAL.call((self,))
    }
}
