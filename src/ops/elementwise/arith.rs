//! Arithmetic: add, sub, mul, div and their building blocks.

use crate::cpu::complex;
use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapNum, MapReal, Num, Real};
use crate::dtype::{Category, DType, Scalar, c128};
use crate::error::{Error, Result};
use crate::op::*;

pub static OPS: &[&Op] = &[&ADD, &SUB, &RSUB_TENSOR, &RSUB, &MUL, &DIV, &NEG];

struct Plus;
impl MapNum<2> for Plus {
    fn eval<T: Num>([x, y]: [T; 2]) -> T {
        x + y
    }
}
struct PlusScaled;
impl MapNum<3> for PlusScaled {
    fn eval<T: Num>([x, y, a]: [T; 3]) -> T {
        x + a * y
    }
}
pub(crate) static PLUS: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.num::<2, Plus>(), wgsl: "x + y" };
pub(crate) static PLUS_SCALED: Rule =
    Rule { operands: &[0, 1, 2], loops: Loops::NONE.num::<3, PlusScaled>(), wgsl: "x + z * y" };

/// Where `alpha` stands, in every op that has one, those of `scalar_lhs` too: a constant, because a search shows in the time of a
/// small `a + b`.
pub(super) const ALPHA: usize = ADD.sig.arg("alpha");
const _: () =
    assert!(SUB.sig.arg("alpha") == ALPHA && RSUB.sig.arg("alpha") == ALPHA && RSUB_TENSOR.sig.arg("alpha") == ALPHA);

/// The plain rule if `alpha` is one; else `alpha` must fit the tensors' dtype, since it does not promote.
pub(crate) fn by_alpha(c: &Call, plain: &'static Rule, scaled: &'static Rule) -> Result<&'static Rule> {
    let alpha = c.scalar(ALPHA)?;
    if matches!(alpha, Scalar::Int(1)) {
        return Ok(plain);
    }
    let category = |v: &Value| match v {
        Value::Scalar(s) => Some(s.category()),
        v => v.as_tensor().map(|t| t.dtype().category()),
    };
    let most = c.args[..2].iter().filter_map(category).max().unwrap_or(Category::Complex);
    match alpha.category() {
        Category::Bool if most != Category::Bool => {
            Err(Error::runtime("Boolean alpha only supported for Boolean results."))
        }
        Category::Float if most < Category::Float => {
            Err(Error::runtime("For integral input tensors, argument alpha must not be a floating point number."))
        }
        Category::Complex if most < Category::Complex => {
            Err(Error::runtime("For non-complex input tensors, argument alpha must not be a complex number."))
        }
        _ if alpha.is_one() => Ok(plain),
        _ => Ok(scaled),
    }
}

/// The promoted dtype of the two operands: `alpha` never promotes.
pub(crate) fn without_alpha(c: &Call, common: DType) -> Result<(DType, DType)> {
    let is_bool = |v: &Value| match v {
        Value::Scalar(s) => s.category() == Category::Bool,
        v => v.as_tensor().is_some_and(|t| t.dtype() == DType::Bool),
    };
    let d = if is_bool(&c.args[0]) && is_bool(&c.args[1]) { DType::Bool } else { common };
    Ok((d, d))
}

pub static ADD: Op = Op {
    sig: sig("add(Tensor self, Operand other, *, Scalar alpha=1) -> Tensor"),
    deprecated: &[sig("add(Tensor self, Scalar alpha, Tensor other) -> Tensor")],
    doc: "Adds `other`, scaled by `alpha`, element by element: `self + alpha * other`. Broadcasts; integers promote.",
    forms: FMIO,
    promote: Promote::By(without_alpha),
    body: elementwise_by(|c| by_alpha(c, &PLUS, &PLUS_SCALED), &[&PLUS, &PLUS_SCALED]),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g()).for_any(A1 | A2), d(1, 0, |c| c.g_times(2)).for_any(A0 | A2)]),
    samples: &[
        "f32[2,3], f32[2,3]",
        "f32[2,3], f32[3]",
        "f32[2,3], 2.5",
        "f32[2,3], f32[2,3], alpha=3",
        "i64[4], i64[4]",
        "c64[3], c64[3]",
    ],
    errors: &[("f32[2,3], f32[4]", "RuntimeError", "must match the size"), ("f32[2], 'a'", "TypeError", "must be")],
    reference: "x0 + alpha * x1",
    ..OP
};

struct Minus;
impl MapNum<2> for Minus {
    fn eval<T: Num>([x, y]: [T; 2]) -> T {
        x - y
    }
}
struct MinusScaled;
impl MapNum<3> for MinusScaled {
    fn eval<T: Num>([x, y, a]: [T; 3]) -> T {
        x - a * y
    }
}
pub(crate) static MINUS: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.num::<2, Minus>(), wgsl: "x - y" };
pub(crate) static MINUS_SCALED: Rule =
    Rule { operands: &[0, 1, 2], loops: Loops::NONE.num::<3, MinusScaled>(), wgsl: "x - z * y" };

/// Subtraction of bools is an error, as in PyTorch and NumPy.
pub(crate) fn no_bool(c: &Call, common: DType) -> Result<(DType, DType)> {
    let is_bool = |v: &Value| match v {
        Value::Scalar(s) => matches!(s, crate::dtype::Scalar::Bool(_)),
        v => v.as_tensor().is_some_and(|t| t.dtype() == DType::Bool),
    };
    match (&c.args[0], &c.args[1]) {
        (a, b) if is_bool(a) && is_bool(b) => Err(Error::not_implemented(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.",
        )),
        (a, b) if is_bool(a) || is_bool(b) => Err(Error::not_implemented(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or \
             `logical_not()` operator instead.",
        )),
        _ => Ok((common, common)),
    }
}

pub static SUB: Op = Op {
    sig: sig("sub(Tensor self, Operand other, *, Scalar alpha=1) -> Tensor"),
    deprecated: &[sig("sub(Tensor self, Scalar alpha, Tensor other) -> Tensor")],
    doc: "Subtracts `other`, scaled by `alpha`, element by element: `self - alpha * other`. Broadcasts; bool is refused.",
    aliases: &["subtract"],
    forms: FMIO,
    promote: Promote::By(no_bool),
    body: elementwise_by(|c| by_alpha(c, &MINUS, &MINUS_SCALED), &[&MINUS, &MINUS_SCALED]),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g()).for_any(A1 | A2), d(1, 0, |c| -c.g_times(2)).for_any(A0 | A2)]),
    samples: &[
        "f32[2,3], f32[2,3]",
        "f32[2,3], f32[3]",
        "f32[2,3], f32[2,3], alpha=3",
        "f32[2,3], 2",
        "i64[4], i64[4]",
    ],
    errors: &[("b8[2], b8[2]", "RuntimeError", "two bool tensors")],
    reference: "x0 - alpha * x1",
    ..OP
};

struct ReverseMinus;
impl MapNum<3> for ReverseMinus {
    fn eval<T: Num>([x, y, a]: [T; 3]) -> T {
        y - a * x
    }
}
static REVERSE_MINUS: Rule =
    Rule { operands: &[0, 1, 2], loops: Loops::NONE.num::<3, ReverseMinus>(), wgsl: "y - z * x" };

static REVERSE_RULES: &[&Rule] = &[&REVERSE_MINUS];

const REVERSED: Op = Op {
    doc: "Subtracts `self`, scaled by `alpha`, from `other`: `other - alpha * self`.",
    forms: F,
    promote: Promote::By(no_bool),
    body: elementwise_by(|c| by_alpha(c, &REVERSE_MINUS, &REVERSE_MINUS), REVERSE_RULES),
    vjp: Vjp::Each(&[d(0, 0, |c| -c.g_times(2)).for_any(A1 | A2), d(1, 0, |c| c.g()).for_any(A0 | A2)]),
    errors: &[("b8[2], b8[2]", "RuntimeError", "two bool tensors")],
    reference: "x1 - alpha * x0",
    ..OP
};
pub static RSUB_TENSOR: Op = Op {
    sig: sig("rsub.tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"),
    samples: &["f32[2,3], f32[2,3]", "f32[2,3], f32[3], alpha=2"],
    ..REVERSED
};
pub static RSUB: Op = Op {
    sig: sig("rsub(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"),
    vjp: Vjp::Each(&[d(0, 0, |c| -c.g_times(2)).for_any(A1 | A2)]),
    node: "RsubBackward1",
    samples: &["f32[2,3], 1", "i64[4], 2.5"],
    errors: &[
        ("b8[2], True", "RuntimeError", "two bool tensors"),
        ("f32[2], 1, alpha=1j", "RuntimeError", "alpha must not be a complex number"),
    ],
    keeps: Some("alpha"),
    ..REVERSED
};

struct Times;
impl MapNum<2> for Times {
    fn eval<T: Num>([x, y]: [T; 2]) -> T {
        x * y
    }
}
pub(crate) static TIMES: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.num::<2, Times>(), wgsl: "x * y" };

pub static MUL: Op = Op {
    sig: sig("mul(Tensor self, Operand other) -> Tensor"),
    doc: "Multiplies element by element: `self * other`. Broadcasts; integers promote.",
    aliases: &["multiply"],
    forms: FMIO,
    body: elementwise(&TIMES),
    jvp: Jvp::Multilinear(&[]),
    vjp: Vjp::Each(&[d(0, A1, |c| c.g_times(1)).for_any(A1), d(1, A0, |c| c.g_times(0)).for_any(A0)]),
    samples: &[
        "f32[2,3], f32[2,3]",
        "f32[2,3], f32[3]",
        "f32[2,3], 2.5",
        "i64[4], i64[4]",
        "b8[4], b8[4]",
        "c64[3], c64[3]",
    ],
    errors: &[("f32[2,3], f32[4]", "RuntimeError", "must match the size")],
    reference: "x0 * x1",
    ..OP
};

struct Quotient;
impl MapReal<2> for Quotient {
    fn eval<T: Real>([x, y]: [T; 2]) -> T {
        x / y
    }
}
impl crate::cpu::number_class::MapComplex<2> for Quotient {
    fn eval([x, y]: [c128; 2]) -> c128 {
        complex::divide(x, y)
    }
    const ORDINARY: Option<fn([c128; 2]) -> bool> = Some(
        #[inline(always)]
        |[x, y]| complex::divides(x, y),
    );
    #[inline(always)]
    fn quick([x, y]: [c128; 2]) -> c128 {
        complex::quotient(x, y)
    }
}
pub(crate) static QUOTIENT: Rule =
    Rule { operands: &[0, 1], loops: Loops::NONE.real::<2, Quotient>().complex::<2, Quotient>(), wgsl: "div_(x, y)" };

pub static DIV: Op = Op {
    sig: sig("div(Tensor self, Operand other) -> Tensor"),
    doc: "Divides element by element: `self / other`. True division: integers give the default float dtype.",
    aliases: &["divide", "true_divide"],
    forms: FMIO,
    promote: Promote::Float,
    body: elementwise(&QUOTIENT),
    vjp: Vjp::Each(&[
        d(0, A1, |c| c.g() / c.arg(1).conj()),
        d(1, A0 | A1, |c| -c.g() * (c.arg(0) / c.arg(1) / c.arg(1)).conj()),
    ]),
    samples: &["f32[2,3], f32[2,3](nonzero)", "f32[2,3], f32[3](nonzero)", "f32[2,3], 2", "i64[4], i64[4](1..5)"],
    errors: &[("f32[2,3], f32[4]", "RuntimeError", "must match the size")],
    reference: "x0 / x1",
    ..OP
};

struct Negative;
impl MapNum<1> for Negative {
    fn eval<T: Num>([x]: [T; 1]) -> T {
        -x
    }
}
static NEGATIVE: Rule = Rule { operands: &[0], loops: Loops::NONE.num::<1, Negative>(), wgsl: "-x" };

pub static NEG: Op = Op {
    sig: sig("neg(Tensor self) -> Tensor"),
    doc: "Negates element by element: `-self`. Bool is refused.",
    aliases: &["negative"],
    forms: FMIO,
    promote: Promote::By(|_, common| match common {
        DType::Bool => Err(Error::not_implemented(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.",
        )),
        d => Ok((d, d)),
    }),
    body: elementwise(&NEGATIVE),
    vjp: Vjp::Each(&[d(0, 0, |c| -c.g())]),
    samples: &["f32[2,3]", "i64[4]", "c64[3]"],
    errors: &[("b8[2]", "RuntimeError", "bool tensor")],
    reference: "-x0",
    out_dtype: Some(OutDType::Same),
    ..OP
};
