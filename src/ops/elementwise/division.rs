//! Integer division and remainders: div with a rounding mode, floor_divide, remainder, fmod.
//!
//! Integer division by zero raises ZeroDivisionError, as in PyTorch; floats follow IEEE. `remainder` has the sign of
//! the divisor (Python's `%`), `fmod` that of the dividend (C's).

use crate::cpu::loops::Loops;
use crate::cpu::math::REM_LIMIT;
use crate::cpu::number_class::{MapInt, MapReal, Real};
use crate::dtype::{Category, DType, default_dtype};
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::support::promotion::{BINARY, check_divisor, divisible};

pub static OPS: &[&Op] = &[
    &DIV_MODE,
    &DIV_MODE_SCALAR,
    &FLOOR_DIVIDE,
    &FLOOR_DIVIDE_SCALAR,
    &REMAINDER,
    &REMAINDER_NUMBER,
    &REMAINDER_SCALAR,
    &FMOD,
    &FMOD_NUMBER,
];

const fn division<R: MapReal<2> + MapInt<2>>(wgsl: &'static str) -> Rule {
    Rule { operands: &[0, 1], loops: Loops::NONE.real::<2, R>().int::<2, R>(), wgsl }
}

/// An integer quotient or remainder, computed in two ways.
trait Whole {
    /// For any integers; zero if the divisor is zero.
    fn exact(x: [i64; 2]) -> i64;
    /// From an integer adjacent to the true quotient, and the remainder it leaves, which may have either sign.
    fn settle(x: [i64; 2], q: i64, rest: i64) -> i64;
}

/// Operands for which f64 is exact: below 2^50, and no division by zero.
#[inline(always)]
fn small([x, y]: [i64; 2]) -> bool {
    let below = |v: i64| (v.wrapping_add(1 << 50) as u64) < 1 << 51;
    below(x) & below(y) & (y != 0)
}

/// Small operands in f64, where the rounded quotient is at most one off: there are vector instructions to divide
/// floats, but not integers.
impl<R: Whole> MapInt<2> for R {
    #[inline(always)]
    fn eval(x: [i64; 2]) -> i64 {
        R::exact(x)
    }
    const ORDINARY: Option<fn([i64; 2]) -> bool> = Some(small);
    #[inline(always)]
    fn quick(x: [i64; 2]) -> i64 {
        // The sum of this and a smaller integer holds that integer in its low bits.
        const MAGIC: f64 = 6755399441055744.0; // 1.5 * 2^52
        let float = |v: i64| f64::from_bits(v.wrapping_add(MAGIC.to_bits() as i64) as u64) - MAGIC;
        let whole = |v: f64| ((v + MAGIC).to_bits() as i64).wrapping_sub(MAGIC.to_bits() as i64);
        let [a, b] = x.map(float);
        let q = (a / b + MAGIC) - MAGIC;
        R::settle(x, whole(q), whole(a - q * b))
    }
}

struct TruncDiv;
impl MapReal<2> for TruncDiv {
    #[inline(always)]
    fn eval<T: Real>([x, y]: [T; 2]) -> T {
        (x / y).trunc()
    }
}
impl Whole for TruncDiv {
    #[inline(always)]
    fn exact([x, y]: [i64; 2]) -> i64 {
        if y == 0 { 0 } else { x.wrapping_div(y) }
    }
    #[inline(always)]
    fn settle([x, y]: [i64; 2], q: i64, rest: i64) -> i64 {
        // A remainder with the sign opposite to the dividend's means one step too far from zero.
        let far = ((rest ^ x) < 0 && rest != 0) as i64;
        if (x ^ y) < 0 { q + far } else { q - far }
    }
}

/// Whether vector code finds the remainder: `math::rem`.
#[inline(always)]
fn is_near<T: Real>([x, y]: [T; 2]) -> bool {
    x.abs() < y.abs() * T::from_f64(REM_LIMIT) && y.abs() < T::infinity()
}

struct FloorDiv;
impl MapReal<2> for FloorDiv {
    const CHECKED: bool = true;
    #[inline(always)]
    fn ordinary<T: Real>(x: [T; 2]) -> bool {
        is_near(x)
    }
    /// By the exact remainder, as in Python: the quotient alone may round up to an integer.
    #[inline(always)]
    fn eval<T: Real>([x, y]: [T; 2]) -> T {
        let zero = T::zero();
        let rest = x.fmod(y);
        let off = if rest != zero && ((y < zero) != (rest < zero)) { T::one() } else { zero };
        let q = (x - rest) / y - off;
        let f = q.floor();
        let whole = if q - f > T::from_f64(0.5) { f + T::one() } else { f };
        let settled = if q == zero { zero.copysign(x / y) } else { whole };
        if y == zero { x / y } else { settled }
    }
}
impl Whole for FloorDiv {
    #[inline(always)]
    fn exact([x, y]: [i64; 2]) -> i64 {
        if y == 0 {
            return 0;
        }
        let q = x.wrapping_div(y);
        if (x < 0) != (y < 0) && q.wrapping_mul(y) != x { q - 1 } else { q }
    }
    #[inline(always)]
    fn settle([_, y]: [i64; 2], q: i64, rest: i64) -> i64 {
        q - ((rest ^ y) < 0 && rest != 0) as i64
    }
}

struct Remainder;
impl MapReal<2> for Remainder {
    const CHECKED: bool = true;
    #[inline(always)]
    fn ordinary<T: Real>(x: [T; 2]) -> bool {
        is_near(x)
    }
    #[inline(always)]
    fn eval<T: Real>([x, y]: [T; 2]) -> T {
        let rest = x.fmod(y);
        if rest != T::zero() && ((y < T::zero()) != (rest < T::zero())) { rest + y } else { rest }
    }
}
impl Whole for Remainder {
    #[inline(always)]
    fn exact([x, y]: [i64; 2]) -> i64 {
        if y == 0 {
            return 0;
        }
        let rest = x.wrapping_rem(y);
        if rest != 0 && ((rest < 0) != (y < 0)) { rest + y } else { rest }
    }
    #[inline(always)]
    fn settle([_, y]: [i64; 2], _: i64, rest: i64) -> i64 {
        if (rest ^ y) < 0 && rest != 0 { rest + y } else { rest }
    }
}

struct Fmod;
impl MapReal<2> for Fmod {
    const CHECKED: bool = true;
    #[inline(always)]
    fn ordinary<T: Real>(x: [T; 2]) -> bool {
        is_near(x)
    }
    #[inline(always)]
    fn eval<T: Real>([x, y]: [T; 2]) -> T {
        x.fmod(y)
    }
}
impl Whole for Fmod {
    #[inline(always)]
    fn exact([x, y]: [i64; 2]) -> i64 {
        if y == 0 { 0 } else { x.wrapping_rem(y) }
    }
    #[inline(always)]
    fn settle([x, y]: [i64; 2], _: i64, rest: i64) -> i64 {
        let step = if (x ^ y) < 0 { -y } else { y };
        if (rest ^ x) < 0 && rest != 0 { rest + step } else { rest }
    }
}

static TRUNC_DIV: Rule = division::<TruncDiv>("trunc_div_(x, y)");
static FLOOR_DIV: Rule = division::<FloorDiv>("floor_div_(x, y)");
static REMAINS: Rule = division::<Remainder>("remainder_(x, y)");
static C_REMAINS: Rule = division::<Fmod>("fmod_(x, y)");

/// How a quotient is rounded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    Trunc,
    Floor,
}
impl Enumerated for Rounding {
    const VALUES: &'static [(&'static str, Rounding)] = &[("trunc", Rounding::Trunc), ("floor", Rounding::Floor)];
}

/// By the rounding mode: true division of integers gives floats, whole division needs a divisor.
fn mode_dtype(c: &Call, common: DType) -> Result<(DType, DType)> {
    match c.opt_choice::<Rounding>("rounding_mode") {
        None if common.category() < Category::Float => Ok((default_dtype(), default_dtype())),
        None => Ok((common, common)),
        _ => divisible(c, common),
    }
}

fn check_mode(c: &Call, common: DType) -> Result<()> {
    if c.str("rounding_mode").is_some() { check_divisor(c, common) } else { Ok(()) }
}

static MODES: &[&Rule] = &[&super::arith::QUOTIENT, &TRUNC_DIV, &FLOOR_DIV];

fn by_mode(c: &Call) -> Result<&'static Rule> {
    Ok(match c.opt_choice("rounding_mode") {
        None => MODES[0],
        Some(Rounding::Trunc) => MODES[1],
        Some(Rounding::Floor) => MODES[2],
    })
}

fn unknown_mode(_: &Op, given: &str) -> Error {
    Error::runtime(format!("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{given}'"))
}

pub static DIV_MODE: Op = Op {
    sig: sig("div.mode(Tensor self, Operand other, *, str{trunc|floor}? rounding_mode) -> Tensor"),
    doc: "Divides and rounds: not at all (None), towards zero ('trunc'), or down ('floor').",
    aliases: &["divide"],
    unknown_choice: unknown_mode,
    promote: Promote::Checked(mode_dtype, check_mode),
    body: elementwise_by(by_mode, MODES),
    vjp: Vjp::Each(&[
        d(0, A1, |c| if !c.argument("rounding_mode").is_none() { c.zeros(0) } else { c.g() / c.arg(1).conj() }),
        d(1, A0 | A1, |c| {
            let slope = || (c.arg(0) / c.arg(1).square()).conj();
            if !c.argument("rounding_mode").is_none() { c.zeros(1) } else { -c.g() * slope() }
        }),
    ]),
    node: "DivBackward2",
    samples: &[
        "f32[2,3], f32[2,3](nonzero), rounding_mode='trunc'",
        "f32[2,3], f32[3](nonzero), rounding_mode='floor'",
        "i64[4], i64[4](nonzero), rounding_mode='floor'",
        "i64[4], 3, rounding_mode='trunc'",
        "f32[2,3], f32[3](nonzero), rounding_mode=None",
    ],
    errors: &[
        ("f32[2], 2, rounding_mode='up'", "RuntimeError", "div expected rounding_mode to be one of"),
        ("i64[2], 0, rounding_mode='floor'", "RuntimeError", "ZeroDivisionError"),
        ("b8[2], b8[2], rounding_mode='floor'", "RuntimeError", "not implemented for 'Bool'"),
    ],
    ..BINARY
};

pub static DIV_MODE_SCALAR: Op = Op {
    sig: sig("div.scalar_mode(Scalar self, Operand other, *, str{trunc|floor}? rounding_mode) -> Tensor"),
    doc: "Divides a number by each element and rounds, as `rounding_mode` says.",
    aliases: &["divide"],
    forms: FO,
    unknown_choice: unknown_mode,
    promote: Promote::Checked(mode_dtype, check_mode),
    body: elementwise_by(by_mode, MODES),
    vjp: Vjp::Each(&[d(1, A1, |c| match c.argument("rounding_mode").is_none() {
        false => c.zeros(1),
        true => -c.g_times(0) / c.arg(1).square().conj(),
    })]),
    node: "DivBackward2",
    samples: &["5, f32[2,3](nonzero), rounding_mode='trunc'", "7, i64[4](1..5), rounding_mode='floor'"],
    errors: &[("1, f32[2], rounding_mode='up'", "RuntimeError", "div expected rounding_mode to be one of")],
    ..OP
};

const WHOLE: Op = Op {
    promote: Promote::Checked(divisible, check_divisor),
    samples: &[
        "f32[2,3], f32[2,3](nonzero)",
        "f32[2,3], f32[3](nonzero)",
        "i64[4], i64[4](nonzero)",
        "u8[3], u8[3](pos)",
    ],
    errors: &[
        ("f32[2,3], f32[4]", "RuntimeError", "must match the size"),
        ("i64[2], i64[2](zeros)", "RuntimeError", "ZeroDivisionError"),
        ("b8[2], b8[2]", "RuntimeError", "not implemented for 'Bool'"),
    ],
    ..BINARY
};
const WHOLE_NUMBER: Op = Op {
    samples: &["f32[2,3], 0.7", "i64[4], 3", "i64[4], 2.5", "i64[4], -3"],
    errors: &[("i64[2], 0", "RuntimeError", "ZeroDivisionError")],
    ..WHOLE
};
const WHOLE_SCALAR: Op = Op {
    forms: F,
    samples: &["5, f32[2,3](nonzero)", "5, i64[4](nonzero)", "2.5, i64[4](nonzero)"],
    errors: &[("5, i64[2](zeros)", "RuntimeError", "ZeroDivisionError")],
    ..WHOLE
};

pub static FLOOR_DIVIDE: Op = Op {
    sig: sig("floor_divide(Tensor self, Operand other) -> Tensor"),
    doc: "Divides and rounds down: `self // other`.",
    body: elementwise(&FLOOR_DIV),
    vjp: Vjp::Missing,
    reference: "np.floor_divide(x0, x1)",
    ..WHOLE
};
pub static FLOOR_DIVIDE_SCALAR: Op = Op {
    sig: sig("floor_divide.scalar(Scalar self, Operand other) -> Tensor"),
    doc: "Divides a number by each element and rounds down.",
    body: elementwise(&FLOOR_DIV),
    vjp: Vjp::Missing,
    reference: "np.floor_divide(x0, x1)",
    ..WHOLE_SCALAR
};

pub static REMAINDER: Op = Op {
    sig: sig("remainder(Tensor self, Tensor other) -> Tensor"),
    doc: "The remainder of `floor_divide`, with the sign of the divisor: `self % other`.",
    body: elementwise(&REMAINS),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g()), d(1, A0 | A1, |c| -c.g() * DIV_MODE.call((c.arg(0), c.arg(1), "floor")))]),
    node: "RemainderBackward1",
    reference: "np.remainder(x0, x1)",
    ..WHOLE
};
pub static REMAINDER_NUMBER: Op = Op {
    sig: sig("remainder.number(Tensor self, Scalar other) -> Tensor"),
    doc: "The remainder of the division by a number, with its sign.",
    body: elementwise(&REMAINS),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g())]),
    rounds_numbers: true,
    reference: "np.remainder(x0, x1)",
    keeps: Some(""),
    ..WHOLE_NUMBER
};
pub static REMAINDER_SCALAR: Op = Op {
    sig: sig("remainder.scalar(Scalar self, Tensor other) -> Tensor"),
    doc: "The remainder of a number divided by each element: `number % tensor`.",
    body: elementwise(&REMAINS),
    vjp: Vjp::Each(&[d(1, A1, |c| -c.g() * DIV_MODE.call((c.arg(0), c.arg(1), "floor")))]),
    rounds_numbers: true,
    reference: "np.remainder(x0, x1)",
    ..WHOLE_SCALAR
};

pub static FMOD: Op = Op {
    sig: sig("fmod(Tensor self, Tensor other) -> Tensor"),
    doc: "The remainder of division towards zero, with the sign of the dividend.",
    body: elementwise(&C_REMAINS),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g()), d(1, A0 | A1, |c| -c.g() * DIV_MODE.call((c.arg(0), c.arg(1), "trunc")))]),
    node: "FmodBackward1",
    reference: "np.fmod(x0, x1)",
    ..WHOLE
};
pub static FMOD_NUMBER: Op = Op {
    sig: sig("fmod.number(Tensor self, Scalar other) -> Tensor"),
    doc: "The remainder of division by a number towards zero.",
    body: elementwise(&C_REMAINS),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g())]),
    rounds_numbers: true,
    reference: "np.fmod(x0, x1)",
    keeps: Some(""),
    ..WHOLE_NUMBER
};

#[cfg(test)]
mod tests {
    use super::*;

    fn agree<R: Whole>(x: [i64; 2]) {
        assert_eq!(R::quick(x), R::eval(x), "{x:?}");
    }

    #[test]
    fn quick_remainders_are_exact() {
        use crate::cpu::number_class::{Fp, Fused};
        let mut state = 1u64;
        let mut bits = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state
        };
        let (mut near, mut count) = (0, 0);
        for i in 0..200_000 {
            // Whole multiples and their neighbours, where the quotient is rounded to an integer; then anything.
            let y = f32::from_bits((bits() >> 32) as u32);
            let multiple = y * (bits() >> 44) as f32;
            let x = match i % 4 {
                0 => multiple,
                1 => multiple.next_down(),
                2 => multiple.next_up(),
                _ => f32::from_bits((bits() >> 32) as u32),
            };
            count += 1;
            if is_near([Fp::<f32, Fused>::new(x), Fp::new(y)]) {
                near += 1;
                let quick = <Fmod as MapReal<2>>::eval([Fp::<f32, Fused>::new(x), Fp::new(y)]).0;
                assert_eq!(quick.to_bits(), (x % y).to_bits(), "{x:e} {y:e}");
            }
            let (x, y) = (x as f64 * 1.1, y as f64 * 0.7);
            if is_near([Fp::<f64, Fused>::new(x), Fp::new(y)]) {
                let quick = <Fmod as MapReal<2>>::eval([Fp::<f64, Fused>::new(x), Fp::new(y)]).0;
                assert_eq!(quick.to_bits(), (x % y).to_bits(), "{x:e} {y:e}");
            }
        }
        assert!(near > count / 2, "{near} of {count}");
    }

    #[test]
    fn quick_division_is_exact() {
        let mut numbers = vec![0, 1, 2, 3, 7, (1 << 50) - 1, 1 << 49, (1 << 49) + 1, 1 << 26, (1 << 26) - 1, 94906267];
        let mut state = 1u64;
        for i in 0..300 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            numbers.push((state >> (14 + i % 48)) as i64);
        }
        let signed: Vec<i64> = numbers.iter().flat_map(|&n| [n, -n]).chain([-(1 << 50)]).collect();
        for &x in &signed {
            for &y in signed.iter().filter(|&&y| y != 0) {
                assert!(small([x, y]));
                agree::<TruncDiv>([x, y]);
                agree::<FloorDiv>([x, y]);
                agree::<Remainder>([x, y]);
                agree::<Fmod>([x, y]);
            }
        }
        assert!(!small([1 << 50, 1]) && !small([1, -(1 << 50) - 1]) && !small([i64::MIN, 3]) && !small([3, 0]));
    }
}
