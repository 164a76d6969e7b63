//! Logical and bitwise ops: logical_and etc. read any dtype as true or false; bitwise_and etc. require integers or
//! bool.

use crate::cpu::loops::Loops;
use crate::cpu::number_class::{Bits, MapBits, MapInt, Num, TestNum};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::*;
use crate::ops::support::promotion::{BINARY, UNARY, no_bool};

pub static OPS: &[&Op] = &[
    &LOGICAL_AND,
    &LOGICAL_OR,
    &LOGICAL_XOR,
    &LOGICAL_NOT,
    &BITWISE_AND,
    &BITWISE_AND_SCALAR,
    &BITWISE_OR,
    &BITWISE_OR_SCALAR,
    &BITWISE_XOR,
    &BITWISE_XOR_SCALAR,
    &BITWISE_NOT,
    &LEFT_SHIFT,
    &LEFT_SHIFT_SCALAR,
    &RIGHT_SHIFT,
    &RIGHT_SHIFT_SCALAR,
];

const LOGICAL: Op = Op {
    promote: Promote::Test,
    vjp: Vjp::None("the result is bool"),
    samples: &["b8[2,3], b8[3]", "f32[2,3](ties), f32[2,3](ties)", "i64[4], f32[4](ties)"],
    ..BINARY
};

struct And;
impl TestNum<2> for And {
    #[inline(always)]
    fn eval<T: Num>([x, y]: [T; 2]) -> bool {
        x.truth() & y.truth()
    }
}
impl MapBits<2> for And {
    #[inline(always)]
    fn eval<T: Bits>([x, y]: [T; 2]) -> T {
        x.and(y)
    }
}
static BOTH: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.test_num::<2, And>(), wgsl: "logical_and_(x, y)" };
static AND: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.bits::<2, And>(), wgsl: "and_(x, y)" };

struct Or;
impl TestNum<2> for Or {
    #[inline(always)]
    fn eval<T: Num>([x, y]: [T; 2]) -> bool {
        x.truth() | y.truth()
    }
}
impl MapBits<2> for Or {
    #[inline(always)]
    fn eval<T: Bits>([x, y]: [T; 2]) -> T {
        x.or(y)
    }
}
static EITHER: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.test_num::<2, Or>(), wgsl: "logical_or_(x, y)" };
static OR: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.bits::<2, Or>(), wgsl: "or_(x, y)" };

struct Xor;
impl TestNum<2> for Xor {
    #[inline(always)]
    fn eval<T: Num>([x, y]: [T; 2]) -> bool {
        x.truth() != y.truth()
    }
}
impl MapBits<2> for Xor {
    #[inline(always)]
    fn eval<T: Bits>([x, y]: [T; 2]) -> T {
        x.xor(y)
    }
}
static ONE_OF: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.test_num::<2, Xor>(), wgsl: "logical_xor_(x, y)" };
static XOR: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.bits::<2, Xor>(), wgsl: "xor_(x, y)" };

struct Not;
impl TestNum<1> for Not {
    #[inline(always)]
    fn eval<T: Num>([x]: [T; 1]) -> bool {
        !x.truth()
    }
}
impl MapBits<1> for Not {
    #[inline(always)]
    fn eval<T: Bits>([x]: [T; 1]) -> T {
        x.not()
    }
}
static NEITHER: Rule = Rule { operands: &[0], loops: Loops::NONE.test_num::<1, Not>(), wgsl: "logical_not_(x)" };
static NOT: Rule = Rule { operands: &[0], loops: Loops::NONE.bits::<1, Not>(), wgsl: "not_(x)" };

pub static LOGICAL_AND: Op = Op {
    sig: sig("logical_and(Tensor self, Tensor other) -> Tensor"),
    doc: "Whether both are nonzero, element by element.",
    body: elementwise(&BOTH),
    reference: "np.logical_and(x0, x1)",
    ..LOGICAL
};
pub static LOGICAL_OR: Op = Op {
    sig: sig("logical_or(Tensor self, Tensor other) -> Tensor"),
    doc: "Whether either is nonzero, element by element.",
    body: elementwise(&EITHER),
    reference: "np.logical_or(x0, x1)",
    ..LOGICAL
};
pub static LOGICAL_XOR: Op = Op {
    sig: sig("logical_xor(Tensor self, Tensor other) -> Tensor"),
    doc: "Whether exactly one is nonzero, element by element.",
    body: elementwise(&ONE_OF),
    reference: "np.logical_xor(x0, x1)",
    ..LOGICAL
};
pub static LOGICAL_NOT: Op = Op {
    sig: sig("logical_not(Tensor self) -> Tensor"),
    doc: "Whether an element is zero.",
    promote: Promote::Test,
    body: elementwise(&NEITHER),
    vjp: Vjp::None("the result is bool"),
    samples: &["b8[2,3]", "f32[5](ties)", "i64[4]", "c64[3]"],
    reference: "np.logical_not(x0)",
    ..UNARY
};

const BITWISE: Op = Op {
    vjp: Vjp::None("integers have no gradient"),
    samples: &["i64[2,3], i64[3]", "u8[4], u8[4]", "b8[4], b8[4]", "i32[4], 5", "b8[3], True"],
    errors: &[
        ("f32[2], f32[2]", "RuntimeError", "not implemented for 'Float'"),
        ("i64[2,3], i64[4]", "RuntimeError", "must match the size"),
    ],
    ..BINARY
};
/// A number first.
const BITWISE_SCALAR: Op = Op {
    forms: F,
    vjp: Vjp::None("integers have no gradient"),
    samples: &["5, i64[4](0..6)", "3, u8[3](0..6)"],
    errors: &[("1, f32[2]", "RuntimeError", "not implemented for 'Float'")],
    ..OP
};

pub static BITWISE_AND: Op = Op {
    sig: sig("bitwise_and(Tensor self, Operand other) -> Tensor"),
    doc: "The bits that both have; for bool `and`.",
    body: elementwise(&AND),
    reference: "np.bitwise_and(x0, x1)",
    ..BITWISE
};
pub static BITWISE_AND_SCALAR: Op = Op {
    sig: sig("bitwise_and.scalar(Scalar self, Tensor other) -> Tensor"),
    doc: "The bits that a number and each element have.",
    body: elementwise(&AND),
    reference: "np.bitwise_and(x0, x1)",
    ..BITWISE_SCALAR
};
pub static BITWISE_OR: Op = Op {
    sig: sig("bitwise_or(Tensor self, Operand other) -> Tensor"),
    doc: "The bits that either has; for bool `or`.",
    body: elementwise(&OR),
    reference: "np.bitwise_or(x0, x1)",
    ..BITWISE
};
pub static BITWISE_OR_SCALAR: Op = Op {
    sig: sig("bitwise_or.scalar(Scalar self, Tensor other) -> Tensor"),
    doc: "The bits that a number or each element has.",
    body: elementwise(&OR),
    reference: "np.bitwise_or(x0, x1)",
    ..BITWISE_SCALAR
};
pub static BITWISE_XOR: Op = Op {
    sig: sig("bitwise_xor(Tensor self, Operand other) -> Tensor"),
    doc: "The bits that one of both has; for bool `xor`.",
    body: elementwise(&XOR),
    reference: "np.bitwise_xor(x0, x1)",
    ..BITWISE
};
pub static BITWISE_XOR_SCALAR: Op = Op {
    sig: sig("bitwise_xor.scalar(Scalar self, Tensor other) -> Tensor"),
    doc: "The bits that differ between a number and each element.",
    body: elementwise(&XOR),
    reference: "np.bitwise_xor(x0, x1)",
    ..BITWISE_SCALAR
};

pub static BITWISE_NOT: Op = Op {
    sig: sig("bitwise_not(Tensor self) -> Tensor"),
    doc: "Every bit turned over; for bool `not`.",
    // A bool has one significant bit: inverting all eight would leave it true.
    body: elementwise_by(|c| Ok(if c.tensor(0)?.dtype() == DType::Bool { &NEITHER } else { &NOT }), &[&NOT, &NEITHER]),
    vjp: Vjp::None("integers have no gradient"),
    samples: &["i64[2,3]", "u8[4]", "b8[4]", "i32[3]"],
    errors: &[("f32[2]", "RuntimeError", "not implemented for 'Float'")],
    reference: "np.invert(x0)",
    out_dtype: Some(OutDType::Same),
    ..UNARY
};

struct ShiftLeft;
impl MapInt<2> for ShiftLeft {
    /// A negative or too large shift gives zero.
    #[inline(always)]
    fn eval([x, n]: [i64; 2]) -> i64 {
        if (0..64).contains(&n) { x << n } else { 0 }
    }
}
static SHIFT_LEFT: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.int::<2, ShiftLeft>(), wgsl: "shl_(x, y)" };

struct ShiftRight;
impl MapInt<2> for ShiftRight {
    /// A negative or too large shift leaves only the sign.
    #[inline(always)]
    fn eval([x, n]: [i64; 2]) -> i64 {
        if (0..64).contains(&n) { x >> n } else { x >> 63 }
    }
}
static SHIFT_RIGHT: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.int::<2, ShiftRight>(), wgsl: "shr_(x, y)" };

fn shiftable(c: &Call, common: DType) -> Result<(DType, DType)> {
    no_bool(c, common)
}

pub static LEFT_SHIFT: Op = Op {
    sig: sig("bitwise_left_shift(Tensor self, Operand other) -> Tensor"),
    doc: "Shifts bits to the left: `self << other`. Zero where the distance is negative or beyond the width.",
    promote: Promote::By(shiftable),
    body: elementwise(&SHIFT_LEFT),
    samples: &["i64[2,3], i64[3](0..6)", "u8[4], u8[4](0..6)", "i32[4], 5"],
    reference: "np.left_shift(x0, x1)",
    ..BITWISE
};
pub static LEFT_SHIFT_SCALAR: Op = Op {
    sig: sig("bitwise_left_shift.scalar(Scalar self, Tensor other) -> Tensor"),
    doc: "Shifts the bits of a number to the left by each element.",
    promote: Promote::By(shiftable),
    body: elementwise(&SHIFT_LEFT),
    reference: "np.left_shift(x0, x1)",
    ..BITWISE_SCALAR
};
pub static RIGHT_SHIFT: Op = Op {
    sig: sig("bitwise_right_shift(Tensor self, Operand other) -> Tensor"),
    doc: "Shifts bits to the right, filling with the sign: `self >> other`.",
    promote: Promote::By(shiftable),
    body: elementwise(&SHIFT_RIGHT),
    samples: &["i64[2,3], i64[3](0..6)", "u8[4], u8[4](0..6)", "i32[4], 5"],
    reference: "np.right_shift(x0, x1)",
    ..BITWISE
};
pub static RIGHT_SHIFT_SCALAR: Op = Op {
    sig: sig("bitwise_right_shift.scalar(Scalar self, Tensor other) -> Tensor"),
    doc: "Shifts the bits of a number to the right by each element.",
    promote: Promote::By(shiftable),
    body: elementwise(&SHIFT_RIGHT),
    reference: "np.right_shift(x0, x1)",
    ..BITWISE_SCALAR
};

impl Term {
    pub fn both(self, other: Term) -> Term {
        LOGICAL_AND.call((self, other))
    }
    pub fn either(self, other: Term) -> Term {
        LOGICAL_OR.call((self, other))
    }
    /// Where exactly one of two conditions holds.
    pub fn differs(self, other: Term) -> Term {
        LOGICAL_XOR.call((self, other))
    }
    #[allow(clippy::should_implement_trait)] // `!` would read as bitwise
    pub fn not(self) -> Term {
        LOGICAL_NOT.call((self,))
    }
}
