//! Comparisons and the tests for NaN, infinity and sign. Results are bool; in place they are 0 and 1 of self's dtype.

use crate::cpu::loops::Loops;
use crate::cpu::number_class::{Num, Ordered, TestComplex, TestNum, TestOrdered};
use crate::dtype::{DType, c128};
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::support::promotion::BINARY;
use smallvec::smallvec;

pub static OPS: &[&Op] =
    &[&EQ, &NE, &LT, &LE, &GT, &GE, &ISNAN, &ISINF, &ISFINITE, &ISPOSINF, &ISNEGINF, &ISREAL, &SIGNBIT, &ISCLOSE];

const NO_SLOPE: Vjp = Vjp::None("the result is bool");

/// What the comparisons share.
const COMPARISON: Op = Op {
    promote: Promote::Test,
    rounds_numbers: true,
    vjp: NO_SLOPE,
    samples: &[
        "f32[2,3], f32[2,3]",
        "f32[2,3](ties), f32[3](ties)",
        "i64[4], 2",
        "i64[4], 2.5",
        "u8[3], i64[3]",
        "b8[3], b8[3]",
    ],
    errors: &[("f32[2,3], f32[4]", "RuntimeError", "must match the size"), ("f32[2], 'a'", "TypeError", "must be")],
    ..BINARY
};

struct Equal;
impl TestNum<2> for Equal {
    #[inline(always)]
    fn eval<T: Num>([x, y]: [T; 2]) -> bool {
        x == y
    }
}
static EQUAL: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.test_num::<2, Equal>(), wgsl: "eq_(x, y)" };
pub static EQ: Op = Op {
    sig: sig("eq(Tensor self, Operand other) -> Tensor"),
    doc: "Whether `self == other`, element by element. NaN equals nothing.",
    body: elementwise(&EQUAL),
    reference: "np.equal(x0, x1)",
    ..COMPARISON
};

struct Unequal;
impl TestNum<2> for Unequal {
    #[inline(always)]
    fn eval<T: Num>([x, y]: [T; 2]) -> bool {
        x != y
    }
}
static UNEQUAL: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.test_num::<2, Unequal>(), wgsl: "ne_(x, y)" };
pub static NE: Op = Op {
    sig: sig("ne(Tensor self, Operand other) -> Tensor"),
    doc: "Whether `self != other`, element by element.",
    aliases: &["not_equal"],
    body: elementwise(&UNEQUAL),
    reference: "np.not_equal(x0, x1)",
    ..COMPARISON
};

struct Less;
impl TestOrdered<2> for Less {
    #[inline(always)]
    fn eval<T: Ordered>([x, y]: [T; 2]) -> bool {
        x < y
    }
}
static LESS: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.test_ordered::<2, Less>(), wgsl: "lt_(x, y)" };
pub static LT: Op = Op {
    sig: sig("lt(Tensor self, Operand other) -> Tensor"),
    doc: "Whether `self < other`, element by element.",
    aliases: &["less"],
    body: elementwise(&LESS),
    errors: &[("c64[2], c64[2]", "RuntimeError", "not implemented for 'ComplexFloat'")],
    reference: "np.less(x0, x1)",
    ..COMPARISON
};

struct LessEqual;
impl TestOrdered<2> for LessEqual {
    #[inline(always)]
    fn eval<T: Ordered>([x, y]: [T; 2]) -> bool {
        x <= y
    }
}
static LESS_EQUAL: Rule =
    Rule { operands: &[0, 1], loops: Loops::NONE.test_ordered::<2, LessEqual>(), wgsl: "le_(x, y)" };
pub static LE: Op = Op {
    sig: sig("le(Tensor self, Operand other) -> Tensor"),
    doc: "Whether `self <= other`, element by element.",
    aliases: &["less_equal"],
    body: elementwise(&LESS_EQUAL),
    errors: &[("c64[2], c64[2]", "RuntimeError", "not implemented for 'ComplexFloat'")],
    reference: "np.less_equal(x0, x1)",
    ..COMPARISON
};

struct Greater;
impl TestOrdered<2> for Greater {
    #[inline(always)]
    fn eval<T: Ordered>([x, y]: [T; 2]) -> bool {
        x > y
    }
}
static GREATER: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.test_ordered::<2, Greater>(), wgsl: "gt_(x, y)" };
pub static GT: Op = Op {
    sig: sig("gt(Tensor self, Operand other) -> Tensor"),
    doc: "Whether `self > other`, element by element.",
    aliases: &["greater"],
    body: elementwise(&GREATER),
    errors: &[("c64[2], c64[2]", "RuntimeError", "not implemented for 'ComplexFloat'")],
    reference: "np.greater(x0, x1)",
    ..COMPARISON
};

struct GreaterEqual;
impl TestOrdered<2> for GreaterEqual {
    #[inline(always)]
    fn eval<T: Ordered>([x, y]: [T; 2]) -> bool {
        x >= y
    }
}
static GREATER_EQUAL: Rule =
    Rule { operands: &[0, 1], loops: Loops::NONE.test_ordered::<2, GreaterEqual>(), wgsl: "ge_(x, y)" };
pub static GE: Op = Op {
    sig: sig("ge(Tensor self, Operand other) -> Tensor"),
    doc: "Whether `self >= other`, element by element.",
    aliases: &["greater_equal"],
    body: elementwise(&GREATER_EQUAL),
    errors: &[("c64[2], c64[2]", "RuntimeError", "not implemented for 'ComplexFloat'")],
    reference: "np.greater_equal(x0, x1)",
    ..COMPARISON
};

/// What the tests of one tensor share.
const TEST: Op = Op {
    forms: FM,
    promote: Promote::Test,
    vjp: NO_SLOPE,
    samples: &["f32[2,5](special)", "f64[3]", "i64[4]", "c64[10](special)"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    ..OP
};

const fn test<R: TestOrdered<1> + TestComplex<1>>(wgsl: &'static str) -> Rule {
    Rule { operands: &[0], loops: Loops::NONE.test_ordered::<1, R>().test_complex::<1, R>(), wgsl }
}

struct IsNan;
impl TestOrdered<1> for IsNan {
    #[inline(always)]
    fn eval<T: Ordered>([x]: [T; 1]) -> bool {
        x.is_nan()
    }
}
impl TestComplex<1> for IsNan {
    fn eval([x]: [c128; 1]) -> bool {
        x.re.is_nan() || x.im.is_nan()
    }
}
pub static ISNAN: Op = Op {
    sig: sig("isnan(Tensor self) -> Tensor"),
    doc: "Whether an element is NaN.",
    body: elementwise(&test::<IsNan>("isnan_(x)")),
    reference: "np.isnan(x0)",
    ..TEST
};

struct IsInf;
impl TestOrdered<1> for IsInf {
    #[inline(always)]
    fn eval<T: Ordered>([x]: [T; 1]) -> bool {
        x.is_infinite()
    }
}
impl TestComplex<1> for IsInf {
    fn eval([x]: [c128; 1]) -> bool {
        x.re.is_infinite() || x.im.is_infinite()
    }
}
pub static ISINF: Op = Op {
    sig: sig("isinf(Tensor self) -> Tensor"),
    doc: "Whether an element is infinite.",
    body: elementwise(&test::<IsInf>("isinf_(x)")),
    reference: "np.isinf(x0)",
    ..TEST
};

struct IsFinite;
impl TestOrdered<1> for IsFinite {
    #[inline(always)]
    fn eval<T: Ordered>([x]: [T; 1]) -> bool {
        x.is_finite()
    }
}
impl TestComplex<1> for IsFinite {
    fn eval([x]: [c128; 1]) -> bool {
        x.re.is_finite() && x.im.is_finite()
    }
}
pub static ISFINITE: Op = Op {
    sig: sig("isfinite(Tensor self) -> Tensor"),
    doc: "Whether an element is neither infinite nor NaN.",
    body: elementwise(&test::<IsFinite>("isfinite_(x)")),
    reference: "np.isfinite(x0)",
    ..TEST
};

/// Bool from real numbers; complex ones have no sign.
fn real_test(c: &Call, common: DType) -> Result<(DType, DType)> {
    if common.is_complex() {
        return Err(Error::type_(format!("{} does not support complex inputs.", c.op.base())));
    }
    Ok((common, DType::Bool))
}

struct IsPosInf;
impl TestOrdered<1> for IsPosInf {
    #[inline(always)]
    fn eval<T: Ordered>([x]: [T; 1]) -> bool {
        x.is_infinite() && x > T::zero()
    }
}
static IS_POS_INF: Rule =
    Rule { operands: &[0], loops: Loops::NONE.test_ordered::<1, IsPosInf>(), wgsl: "isposinf_(x)" };
pub static ISPOSINF: Op = Op {
    sig: sig("isposinf(Tensor self) -> Tensor"),
    doc: "Whether an element is positive infinity.",
    forms: FMO,
    promote: Promote::By(real_test),
    body: elementwise(&IS_POS_INF),
    samples: &["f32[2,5](special)", "i64[4]"],
    errors: &[("c64[2]", "TypeError", "does not support complex inputs")],
    reference: "np.isposinf(x0)",
    out_dtype: Some(OutDType::Same),
    ..TEST
};

struct IsNegInf;
impl TestOrdered<1> for IsNegInf {
    #[inline(always)]
    fn eval<T: Ordered>([x]: [T; 1]) -> bool {
        x.is_infinite() && x < T::zero()
    }
}
static IS_NEG_INF: Rule =
    Rule { operands: &[0], loops: Loops::NONE.test_ordered::<1, IsNegInf>(), wgsl: "isneginf_(x)" };
pub static ISNEGINF: Op = Op {
    sig: sig("isneginf(Tensor self) -> Tensor"),
    doc: "Whether an element is negative infinity.",
    forms: FMO,
    promote: Promote::By(real_test),
    body: elementwise(&IS_NEG_INF),
    samples: &["f32[2,5](special)", "i64[4]"],
    errors: &[("c64[2]", "TypeError", "does not support complex inputs")],
    reference: "np.isneginf(x0)",
    out_dtype: Some(OutDType::Same),
    ..TEST
};

struct IsReal;
impl TestOrdered<1> for IsReal {
    fn eval<T: Ordered>(_: [T; 1]) -> bool {
        true
    }
}
impl TestComplex<1> for IsReal {
    fn eval([x]: [c128; 1]) -> bool {
        x.im == 0.0
    }
}
pub static ISREAL: Op = Op {
    sig: sig("isreal(Tensor self) -> Tensor"),
    doc: "Whether an element has no imaginary part.",
    body: elementwise(&test::<IsReal>("T(1)")),
    reference: "np.isreal(x0)",
    ..TEST
};

struct SignBit;
impl TestOrdered<1> for SignBit {
    #[inline(always)]
    fn eval<T: Ordered>([x]: [T; 1]) -> bool {
        x.signbit()
    }
}
static SIGN_BIT: Rule = Rule { operands: &[0], loops: Loops::NONE.test_ordered::<1, SignBit>(), wgsl: "signbit_(x)" };
pub static SIGNBIT: Op = Op {
    sig: sig("signbit(Tensor self) -> Tensor"),
    doc: "Whether the sign bit is set: negative numbers and -0.",
    forms: FMO,
    promote: Promote::By(|_, d| {
        if d.is_complex() {
            return Err(Error::not_implemented("signbit is not implemented for complex tensors."));
        }
        Ok((d, DType::Bool))
    }),
    body: elementwise(&SIGN_BIT),
    samples: &["f32[2,5](special)", "i64[4]"],
    errors: &[("c64[2]", "RuntimeError", "not implemented for complex tensors")],
    reference: "np.signbit(x0)",
    out_dtype: Some(OutDType::Same),
    ..TEST
};

pub static ISCLOSE: Op = Op {
    sig: sig("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor"),
    doc: "Whether `|self - other| <= atol + rtol * |other|`; equal infinities are close, NaN only to NaN if `equal_nan`.",
    body: decompose(isclose),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3], f32[2,3]",
        "f32[2,3](ties), f32[3](ties)",
        "f32[10](special), f32[10](special), equal_nan=True",
        "i64[4], i64[4], atol=1.5",
    ],
    errors: &[
        ("f32[2], i64[2]", "RuntimeError", "did not match"),
        ("f32[2], f32[2], rtol=-1.0", "RuntimeError", "rtol must be greater than or equal to zero"),
    ],
    reference: "np.isclose(x0, x1, rtol, atol, equal_nan)",
    ..OP
};

fn isclose(c: &Call) -> Result<Outputs> {
    let (a, b, rtol, atol) = (c.tensor(0)?, c.tensor("other")?, c.float("rtol")?, c.float("atol")?);
    if a.dtype() != b.dtype() {
        return Err(Error::runtime(format!(
            "{} did not match {}",
            a.dtype().scalar_type_name(),
            b.dtype().scalar_type_name()
        )));
    }
    for (name, v) in [("rtol", rtol), ("atol", atol)] {
        if v < 0.0 || v.is_nan() {
            return Err(Error::runtime(format!("{name} must be greater than or equal to zero, but got {v}")));
        }
    }
    let (x, y) = (|| Term::from(a).cut(), || Term::from(b).cut());
    let mut close = x().equals(y());
    if c.flag("equal_nan") {
        close = close.either(ISNAN.call((x(),)).both(ISNAN.call((y(),))));
    }
    if rtol == 0.0 && atol == 0.0 {
        return Ok(smallvec![close.ok()?]);
    }
    let float = |t: Term| {
        if a.dtype().category() < crate::dtype::Category::Float { t.to_dtype(crate::dtype::default_dtype()) } else { t }
    };
    let (allowed, actual) = ((float(y()) * rtol).abs() + atol, (float(x()) - float(y())).abs());
    close.either(ISFINITE.call((&actual,)).both(LE.call((&actual, allowed)))).outputs()
}

impl Term {
    pub fn equals<'a>(self, other: impl IntoArg<'a>) -> Term {
        EQ.call((self, other))
    }
    pub fn less<'a>(self, other: impl IntoArg<'a>) -> Term {
        LT.call((self, other))
    }
    pub fn at_most<'a>(self, other: impl IntoArg<'a>) -> Term {
        LE.call((self, other))
    }
    pub fn greater<'a>(self, other: impl IntoArg<'a>) -> Term {
        GT.call((self, other))
    }
    pub fn at_least<'a>(self, other: impl IntoArg<'a>) -> Term {
        GE.call((self, other))
    }
    pub fn is_nan(self) -> Term {
        ISNAN.call((self,))
    }
}
