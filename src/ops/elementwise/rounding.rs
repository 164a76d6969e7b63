//! Rounding and sign: floor, ceil, trunc, round, frac; abs, sign, sgn, copysign, positive, heaviside.

use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapComplex, MapNum, MapOrdered, MapReal, Num, Ordered, Real, RealOfComplex};
use crate::dtype::{DType, c128};
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::support::promotion::{BINARY, FLAT, UNARY, no_bool, real, real2, refused};
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &FLOOR,
    &CEIL,
    &TRUNC,
    &ROUND,
    &ROUND_DECIMALS,
    &SCALED_ROUND,
    &FRAC,
    &ABS,
    &SIGN,
    &SGN,
    &POSITIVE,
    &COPYSIGN,
    &COPYSIGN_SCALAR,
    &HEAVISIDE,
];

struct Same;
impl MapNum<1> for Same {
    fn eval<T: Num>([x]: [T; 1]) -> T {
        x
    }
}
/// Integers are unchanged; reals follow the rule; complex numbers have no order.
const fn rounding<R: MapReal<1>>(wgsl: &'static str) -> Rule {
    Rule { operands: &[0], loops: Loops::NONE.num::<1, Same>().real::<1, R>(), wgsl }
}

fn no_bool_no_complex(c: &Call, common: DType) -> Result<(DType, DType)> {
    if common.is_complex() {
        return Err(Error::not_implemented(format!("{} is not supported for complex inputs", c.op.base())));
    }
    no_bool(c, common)
}

const ROUNDING: Op = Op {
    promote: Promote::By(no_bool_no_complex),
    vjp: FLAT,
    samples: &["f32[2,3]", "f64[4](big)", "i64[4]", "u8[3]"],
    errors: &[("b8[2]", "RuntimeError", "not implemented for 'Bool'"), ("c64[2]", "RuntimeError", "complex")],
    ..UNARY
};

struct Floor;
impl MapReal<1> for Floor {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x.floor()
    }
}
pub static FLOOR: Op = Op {
    sig: sig("floor(Tensor self) -> Tensor"),
    doc: "The largest whole number that is not greater.",
    body: elementwise(&rounding::<Floor>("floor_(x)")),
    reference: "np.floor(x0)",
    out_dtype: Some(OutDType::Same),
    ..ROUNDING
};

struct Ceil;
impl MapReal<1> for Ceil {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x.ceil()
    }
}
pub static CEIL: Op = Op {
    sig: sig("ceil(Tensor self) -> Tensor"),
    doc: "The smallest whole number that is not less.",
    body: elementwise(&rounding::<Ceil>("ceil_(x)")),
    reference: "np.ceil(x0)",
    out_dtype: Some(OutDType::Same),
    ..ROUNDING
};

struct Trunc;
impl MapReal<1> for Trunc {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x.trunc()
    }
}
pub static TRUNC: Op = Op {
    sig: sig("trunc(Tensor self) -> Tensor"),
    doc: "The whole part.",
    aliases: &["fix"],
    body: elementwise(&rounding::<Trunc>("trunc_(x)")),
    reference: "np.trunc(x0)",
    out_dtype: Some(OutDType::Same),
    ..ROUNDING
};

struct Round;
impl MapReal<1> for Round {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x.round()
    }
}
pub static ROUND: Op = Op {
    sig: sig("round(Tensor self) -> Tensor"),
    doc: "The nearest whole number; halves go to the even one.",
    aliases: &["special.round"],
    body: elementwise(&rounding::<Round>("round_(x)")),
    reference: "np.round(x0)",
    out_dtype: Some(OutDType::Same),
    ..ROUNDING
};

struct RoundTo;
impl MapReal<2> for RoundTo {
    #[inline(always)]
    fn eval<T: Real>([x, scale]: [T; 2]) -> T {
        let y = x * scale;
        // Numbers too large to be scaled have no decimals.
        if y.is_finite() { y.round() / scale } else { x }
    }
}
struct RoundFrom;
impl MapReal<2> for RoundFrom {
    #[inline(always)]
    fn eval<T: Real>([x, scale]: [T; 2]) -> T {
        (x / scale).round() * scale
    }
}
static ROUND_TO: Rule = real2::<RoundTo>("where_(isfinite_(x * y), div_(round_(x * y), y), x)");
static ROUND_FROM: Rule = real2::<RoundFrom>("round_(div_(x, y)) * y");

/// `round` with decimals: the rule takes the scale, computed here, as a number.
pub static ROUND_DECIMALS: Op = Op {
    sig: sig("round.decimals(Tensor self, *, int decimals) -> Tensor"),
    doc: "Rounds to a number of decimals, negative ones to tens, hundreds and so on.",
    aliases: &["special.round"],
    forms: FMIO,
    body: decompose(|c| {
        let (t, n) = (c.tensor(0)?, c.int("decimals")?);
        if n == 0 && !t.dtype().is_float() {
            return ROUND.calls((t,));
        }
        SCALED_ROUND.calls((t, 10f64.powi(n.unsigned_abs().min(400) as i32), n < 0))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], decimals=1", "f64[4](big), decimals=-1", "f32[3], decimals=0"],
    errors: &[("i64[2], decimals=1", "RuntimeError", "not implemented for 'Long'")],
    reference: "np.round(x0, decimals)",
    alias_policy: Some(AliasPolicy::SameOnly),
    out_dtype: Some(OutDType::Same),
    ..OP
};

pub static SCALED_ROUND: Op = Op {
    sig: sig("_round(Tensor self, float scale, bool tens) -> Tensor"),
    doc: "Rounds multiples of `1 / scale`, or of `scale` where `tens`.",
    forms: HIDDEN,
    promote: Promote::By(crate::ops::support::promotion::of_self),
    body: elementwise_by(|c| Ok(if c.flag("tens") { &ROUND_FROM } else { &ROUND_TO }), &[&ROUND_TO, &ROUND_FROM]),
    vjp: FLAT,
    node: "RoundBackward1",
    samples: &["f32[2,3], 10.0, False", "f32[2,3], 10.0, True"],
    errors: &[("i64[2], 10.0, False", "RuntimeError", "not implemented for 'Long'")],
    keeps: Some(""),
    ..OP
};

struct Frac;
impl MapReal<1> for Frac {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x - x.trunc()
    }
}
pub static FRAC: Op = Op {
    sig: sig("frac(Tensor self) -> Tensor"),
    doc: "What `trunc` cuts off, with the sign of the element.",
    body: elementwise(&real::<Frac>("frac_(x)")),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g())]),
    samples: &["f32[2,3]", "f64[4](big)"],
    errors: &[("i64[2]", "RuntimeError", "not implemented for 'Long'")],
    reference: "x0 - np.trunc(x0)",
    out_dtype: Some(OutDType::Same),
    ..UNARY
};

struct Abs;
impl MapOrdered<1> for Abs {
    #[inline(always)]
    fn eval<T: Ordered>([x]: [T; 1]) -> T {
        x.abs()
    }
}
impl RealOfComplex<1> for Abs {
    #[inline(always)]
    fn eval([x]: [c128; 1]) -> f64 {
        // Where neither square overflows nor loses bits, without libm's `hypot`, which takes three times as long.
        let squares = x.re * x.re + x.im * x.im;
        if (1e-280..1e300).contains(&squares) { squares.sqrt() } else { x.norm() }
    }
}
static ABSOLUTE: Rule =
    Rule { operands: &[0], loops: Loops::NONE.ordered::<1, Abs>().real_of_complex::<1, Abs>(), wgsl: "abs_(x)" };
pub static ABS: Op = Op {
    sig: sig("abs(Tensor self) -> Tensor"),
    doc: "The absolute value; of complex numbers the modulus, which is real. The gradient at zero is zero.",
    aliases: &["absolute"],
    promote: Promote::By(|c, d| if d == DType::Bool { Err(refused(c, d)) } else { Ok((d, d.to_real())) }),
    body: elementwise(&ABSOLUTE),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() * c.arg(0).sgn())]),
    samples: &["f32[2,3]", "i64[4]", "u8[3]", "c64[3]", "f64[3](ties)"],
    errors: &[("b8[2]", "RuntimeError", "not implemented for 'Bool'")],
    reference: "np.abs(x0)",
    out_dtype: Some(OutDType::Same),
    ..UNARY
};

struct Sign;
impl MapOrdered<1> for Sign {
    #[inline(always)]
    fn eval<T: Ordered>([x]: [T; 1]) -> T {
        x.sign()
    }
}
impl MapComplex<1> for Sign {
    fn eval([x]: [c128; 1]) -> c128 {
        let n = x.norm();
        if n == 0.0 { c128::new(0.0, 0.0) } else { x / n }
    }
}
const SIGN_WGSL: &str = "flag(less(T(0), x)) - flag(less(x, T(0)))";
static SIGN_OF: Rule = Rule { operands: &[0], loops: Loops::NONE.ordered::<1, Sign>(), wgsl: SIGN_WGSL };
static DIRECTION: Rule =
    Rule { operands: &[0], loops: Loops::NONE.ordered::<1, Sign>().complex::<1, Sign>(), wgsl: SIGN_WGSL };
pub static SIGN: Op = Op {
    sig: sig("sign(Tensor self) -> Tensor"),
    doc: "-1, 0 or 1.",
    promote: Promote::By(|_, d| {
        if d.is_complex() {
            return Err(Error::not_implemented(
                "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
            ));
        }
        Ok((d, d))
    }),
    body: elementwise(&SIGN_OF),
    vjp: FLAT,
    samples: &["f32[2,3]", "i64[4]", "u8[3]", "b8[3]", "f32[4](ties)"],
    errors: &[("c64[2]", "RuntimeError", "not intended to support complex")],
    reference: "np.sign(x0)",
    out_dtype: Some(OutDType::Same),
    ..UNARY
};
pub static SGN: Op = Op {
    sig: sig("sgn(Tensor self) -> Tensor"),
    doc: "The direction of a complex number, `x / |x|`, zero at zero; for real ones -1, 0 or 1.",
    body: elementwise(&DIRECTION),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| {
        if !c.meta_of(0).dtype.is_complex() {
            return c.zeros(0);
        }
        let (size, s) = (c.arg(0).abs(), || c.out(0));
        let across = (c.g() - s() * (c.g() * s().conj()).real_part()) / size.clone();
        across.zero_where(size.equals(0))
    })]),
    samples: &["f32[2,3]", "i64[4]", "c64[3]"],
    out_dtype: Some(OutDType::Same),
    ..UNARY
};

pub static POSITIVE: Op = Op {
    sig: sig("positive(Tensor self) -> Tensor"),
    doc: "The tensor itself; bool is refused.",
    forms: FM,
    body: decompose(|c| {
        let t = c.tensor(0)?;
        if t.dtype() == DType::Bool {
            return Err(Error::not_implemented("The `+` operator, on a bool tensor is not supported."));
        }
        Ok(smallvec![t.clone()])
    }),
    vjp: Vjp::Composite,
    errors: &[("b8[2]", "RuntimeError", "on a bool tensor is not supported")],
    reference: "+x0",
    ..UNARY
};

struct CopySign;
impl MapReal<2> for CopySign {
    #[inline(always)]
    fn eval<T: Real>([x, y]: [T; 2]) -> T {
        x.copysign(y)
    }
}
static COPY_SIGN: Rule = real2::<CopySign>("copysign_(x, y)");
fn sign_slope(c: &VjpCtx) -> Term {
    c.g() * (c.out(0) / c.arg(0)).zero_where(c.arg(0).equals(0))
}
pub static COPYSIGN: Op = Op {
    sig: sig("copysign(Tensor self, Tensor other) -> Tensor"),
    doc: "The size of `self` with the sign of `other`; the sign of zero counts.",
    promote: Promote::Float,
    body: elementwise(&COPY_SIGN),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, sign_slope), d(1, 0, |c| c.zeros(1))]),
    samples: &["f32[2,3], f32[2,3]", "f32[2,3], f32[3]", "i64[4], f32[4]"],
    reference: "np.copysign(x0, x1)",
    ..BINARY
};
pub static COPYSIGN_SCALAR: Op = Op {
    sig: sig("copysign.scalar(Tensor self, Scalar other) -> Tensor"),
    doc: "The size of each element with the sign of a number.",
    promote: Promote::Float,
    body: elementwise(&COPY_SIGN),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, sign_slope)]),
    node: "CopysignBackward1",
    samples: &["f32[2,3], -1.0", "i64[4], -1"],
    errors: &[("c64[2], 1.0", "RuntimeError", "not implemented for 'ComplexFloat'")],
    reference: "np.copysign(x0, x1)",
    keeps: Some("result self"),
    ..BINARY
};

struct Heaviside;
impl MapOrdered<2> for Heaviside {
    #[inline(always)]
    fn eval<T: Ordered>([x, y]: [T; 2]) -> T {
        let step = if x > T::zero() { T::one() } else { T::zero() };
        if x == T::zero() { y } else { step }
    }
}
static STEP: Rule = Rule {
    operands: &[0, 1],
    loops: Loops::NONE.ordered::<2, Heaviside>(),
    wgsl: "where_(eq_(x, T(0)), y, gt_(x, T(0)))",
};
pub static HEAVISIDE: Op = Op {
    sig: sig("heaviside(Tensor self, Tensor values) -> Tensor"),
    doc: "0 for negative numbers, 1 for positive ones, `values` at zero.",
    promote: Promote::By(|c, d| {
        if d.is_complex() {
            return Err(Error::not_implemented("heaviside is not yet implemented for complex tensors."));
        }
        if c.tensor(0)?.dtype() != c.tensor("values")?.dtype() {
            return Err(Error::runtime("heaviside is not yet implemented for tensors with different dtypes."));
        }
        Ok((d, d))
    }),
    body: elementwise(&STEP),
    vjp: Vjp::Missing,
    samples: &["f32[2,3](ties), f32[3]", "i64[4], i64[4]"],
    errors: &[("f32[2], f64[2]", "RuntimeError", "different dtypes")],
    reference: "np.heaviside(x0, x1)",
    out_dtype: Some(OutDType::Same),
    ..BINARY
};

impl Term {
    pub fn abs(self) -> Term {
        ABS.call((self,))
    }
    pub fn sgn(self) -> Term {
        SGN.call((self,))
    }
}
