//! Other binary functions: hypot, float_power, ldexp, nextafter, and gcd and lcm of integers.

use super::power::{POW, POW_SCALAR, POW_TENSOR};
use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapInt, MapReal, Real};
use crate::dtype::{Category, DType, Operands, Scalar, bf16, default_dtype, f16};
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::support::promotion::{BINARY, no_bool, real2};
use std::cmp::Ordering;

pub static OPS: &[&Op] = &[&HYPOT, &FLOAT_POWER, &FLOAT_POWER_, &FLOAT_POWER_SCALAR, &LDEXP, &NEXTAFTER, &GCD, &LCM];

struct Hypot;
impl MapReal<2> for Hypot {
    #[inline(always)]
    fn eval<T: Real>([x, y]: [T; 2]) -> T {
        x.hypot(y)
    }
}
pub static HYPOT: Op = Op {
    sig: sig("hypot(Tensor self, Tensor other) -> Tensor"),
    doc: "The hypotenuse `sqrt(self^2 + other^2)` without overflow.",
    body: elementwise(&real2::<Hypot>("hypot_(x, y)")),
    vjp: Vjp::Each(&[
        d(0, A0 | OUT0, |c| c.g() * (c.arg(0) / c.out(0))),
        d(1, A1 | OUT0, |c| c.g() * (c.arg(1) / c.out(0))),
    ]),
    reference: "np.hypot(x0, x1)",
    ..BINARY
};

/// A number as the double or complex double that `float_power` computes in.
fn wide(s: Scalar) -> Scalar {
    if matches!(s, Scalar::Complex(..)) { s } else { Scalar::Float(s.to_f64()) }
}
fn wide_dtype(c: &Call) -> DType {
    let complex = c.args.iter().any(|v| match v {
        Value::Scalar(s) => matches!(s, Scalar::Complex(..)),
        v => v.as_tensor().is_some_and(|t| t.dtype().is_complex()),
    });
    if complex { DType::C128 } else { DType::F64 }
}

pub static FLOAT_POWER: Op = Op {
    sig: sig("float_power(Tensor self, Operand exponent) -> Tensor"),
    doc: "`pow` in double precision, whatever the dtypes.",
    forms: FMO,
    out_dtype: Some(OutDType::Same),
    body: decompose(|c| {
        let (d, base) = (wide_dtype(c), Term::from(c.tensor(0)?));
        match c.opt_scalar("exponent") {
            Some(s) => POW.calls((base.to_dtype(d), wide(s))),
            None => POW_TENSOR.calls((base.to_dtype(d), Term::from(c.tensor("exponent")?).to_dtype(d))),
        }
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3](pos), f32[3]", "i64[4](1..5), 2", "f32[3](pos), 0.5", "i64[4](1..5), i64[4](1..3)"],
    errors: &[("f32[2,3], f32[4]", "RuntimeError", "must match the size")],
    reference: "np.float_power(x0, x1)",
    ..OP
};
pub static FLOAT_POWER_: Op = Op {
    sig: sig("float_power_(Tensor! self, Operand exponent) -> Tensor"),
    doc: "`pow` in place, of double precision: real, or complex where the exponent is.",
    forms: ONLY_INPLACE,
    body: decompose(|c| {
        let (own, needed) = (c.tensor(0)?.dtype(), wide_dtype(c));
        if own != needed {
            return Err(Error::runtime(format!(
                "the base given to float_power_ has dtype {} but the operation's result requires dtype {}",
                own.scalar_type_name(),
                needed.scalar_type_name()
            )));
        }
        FLOAT_POWER.calls(c.args.iter().map(|v| v.reborrow()).collect::<Args>())
    }),
    vjp: Vjp::Composite,
    samples: &["f64[2,3](pos), f32[3]", "f64[3](pos), 0.5", "f64[4](pos), i64[4](1..3)", "c128[3], 2"],
    errors: &[
        ("f32[2], 2", "RuntimeError", "has dtype Float but the operation's result requires dtype Double"),
        ("f64[2], 2j", "RuntimeError", "has dtype Double but the operation's result requires dtype ComplexDouble"),
        ("f64[2], f64[2,2]", "RuntimeError", "output with shape [2] doesn't match"),
    ],
    reference: "np.float_power(x0, x1)",
    ..OP
};
pub static FLOAT_POWER_SCALAR: Op = Op {
    sig: sig("float_power.scalar(Scalar self, Tensor exponent) -> Tensor"),
    doc: "A number to the power of each element, in double precision.",
    forms: FO,
    out_dtype: Some(OutDType::Same),
    body: decompose(|c| {
        POW_SCALAR.calls((wide(c.scalar(0)?), Term::from(c.tensor("exponent")?).to_dtype(wide_dtype(c))))
    }),
    vjp: Vjp::Composite,
    samples: &["2, f32[2,3]", "2, i64[3](0..4)"],
    errors: &[("2, 'a'", "TypeError", "invalid combination")],
    reference: "np.float_power(x0, x1)",
    ..OP
};

pub static LDEXP: Op = Op {
    sig: sig("ldexp(Tensor self, Tensor other) -> Tensor"),
    doc: "`self * 2^other`.",
    body: decompose(|c| {
        let (x, mut n) = (c.tensor(0)?, Term::from(c.tensor("other")?));
        if n.get().is_some_and(|t| t.dtype().category() < Category::Float) {
            n = n.to_dtype(if x.dtype().is_float() { x.dtype() } else { default_dtype() });
        }
        (Term::from(x) * POW_SCALAR.call((2.0, n))).outputs()
    }),
    vjp: Vjp::Each(&[
        d(0, A1, |c| LDEXP.call((c.g(), c.arg(1).conj()))),
        d(1, OUT0, |c| c.g() * c.out(0).conj() * std::f64::consts::LN_2),
    ]),
    samples: &["f32[2,3], i64[3]", "f32[3], f32[3]", "i64[4], i64[4](0..5)", "c64[3], c64[3]"],
    reference: "x0 * 2.0 ** x1",
    alias_policy: Some(AliasPolicy::SameOnly),
    batch: Batching::Align,
    ..BINARY
};

struct NextAfter;
impl MapReal<2> for NextAfter {
    #[inline(always)]
    fn eval<T: Real>([x, y]: [T; 2]) -> T {
        x.next_after(y)
    }
}
/// The same for 16 bits, computed in f32: neighbours differ by one in their bits.
fn next_narrow<T: Real>([x, y]: [T; 2], pack: fn(f32) -> u16, unpack: fn(u16) -> f32) -> T {
    let up = match x.partial_cmp(&y) {
        Some(Ordering::Less) => true,
        Some(Ordering::Greater) => false,
        _ => return x.next_after(y),
    };
    let from = x.to_f64() as f32;
    let bits = match (from == 0.0, up) {
        (true, true) => 1,
        (true, false) => 0x8001,
        (false, _) if up == (from > 0.0) => pack(from) + 1,
        (false, _) => pack(from) - 1,
    };
    T::from_f64(unpack(bits).into())
}
struct NextHalf;
impl MapReal<2> for NextHalf {
    fn eval<T: Real>(xy: [T; 2]) -> T {
        next_narrow(xy, |x| f16::from_f32(x).to_bits(), |bits| f16::from_bits(bits).to_f32())
    }
}
struct NextBrain;
impl MapReal<2> for NextBrain {
    fn eval<T: Real>(xy: [T; 2]) -> T {
        next_narrow(xy, |x| bf16::from_f32(x).to_bits(), |bits| bf16::from_bits(bits).to_f32())
    }
}
static NEXT: Rule = real2::<NextAfter>("nextafter_(x, y)");
static NEXT_HALF: Rule = real2::<NextHalf>("nextafter_narrow_(x, y, 8192u)");
static NEXT_BRAIN: Rule = real2::<NextBrain>("nextafter_narrow_(x, y, 65536u)");
fn next_of(c: &Call) -> Result<&'static Rule> {
    let mut dtypes = Operands::default();
    for i in [0, 1] {
        let t = c.tensor(i)?;
        dtypes.tensor(t.dtype(), t.ndim())?;
    }
    Ok(match dtypes.result() {
        Some(DType::F16) => &NEXT_HALF,
        Some(DType::BF16) => &NEXT_BRAIN,
        _ => &NEXT,
    })
}
pub static NEXTAFTER: Op = Op {
    sig: sig("nextafter(Tensor self, Tensor other) -> Tensor"),
    doc: "The next floating-point number after `self` towards `other`.",
    body: elementwise_by(next_of, &[&NEXT, &NEXT_HALF, &NEXT_BRAIN]),
    vjp: Vjp::Each(&[d(0, A0 | A1, |c| c.g().zero_where(c.arg(0).equals(c.arg(1)))), d(1, 0, |c| c.zeros(1))]),
    samples: &[
        "f32[2,3], f32[3]",
        "f64[4], f64[4]",
        "f16[8](special), f16[8]",
        "bf16[8](special), bf16[8]",
        "f16[3](= 1, 0, 0.00006103515625), f16[1](= -1)",
        "f16[3], f32[3]",
    ],
    ..BINARY
};

/// Euclid's algorithm; the result is not negative.
fn gcd(x: i64, y: i64) -> i64 {
    let (mut a, mut b) = (x.unsigned_abs(), y.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i64
}
struct Gcd;
impl MapInt<2> for Gcd {
    fn eval([x, y]: [i64; 2]) -> i64 {
        gcd(x, y)
    }
}
struct Lcm;
impl MapInt<2> for Lcm {
    fn eval([x, y]: [i64; 2]) -> i64 {
        match gcd(x, y) {
            0 => 0,
            g => (x.wrapping_div(g)).wrapping_mul(y).wrapping_abs(),
        }
    }
}
static COMMON_DIVISOR: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.int::<2, Gcd>(), wgsl: "gcd_(x, y)" };
static COMMON_MULTIPLE: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.int::<2, Lcm>(), wgsl: "lcm_(x, y)" };

const WHOLE: Op = Op {
    promote: Promote::By(whole),
    vjp: Vjp::None("integers have no gradient"),
    samples: &["i64[2,3], i64[3]", "u8[4], u8[4]", "i32[4], i64[4]"],
    errors: &[
        ("f32[2], f32[2]", "RuntimeError", "not implemented for 'Float'"),
        ("b8[2], b8[2]", "RuntimeError", "not implemented for 'Bool'"),
    ],
    ..BINARY
};
fn whole(c: &Call, d: DType) -> Result<(DType, DType)> {
    no_bool(c, d)
}
pub static GCD: Op = Op {
    sig: sig("gcd(Tensor self, Tensor other) -> Tensor"),
    doc: "The greatest common divisor of integers, not negative.",
    body: elementwise(&COMMON_DIVISOR),
    reference: "np.gcd(x0, x1)",
    ..WHOLE
};
pub static LCM: Op = Op {
    sig: sig("lcm(Tensor self, Tensor other) -> Tensor"),
    doc: "The least common multiple of integers, not negative.",
    body: elementwise(&COMMON_MULTIPLE),
    reference: "np.lcm(x0, x1)",
    ..WHOLE
};
