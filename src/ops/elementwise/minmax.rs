//! Elementwise maxima and minima, and clamp. NaN propagates in `maximum`, `minimum` and `clamp`, and is ignored in
//! `fmax` and `fmin`.
//!
//! At a tie the operands share the gradient equally; numeric limits take all of it, so that it is zero at a limit.

use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapOrdered, Ordered};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::support::promotion::{BINARY, refused};

pub static OPS: &[&Op] = &[
    &MAXIMUM,
    &MINIMUM,
    &FMAX,
    &FMIN,
    &CLAMP_TENSOR,
    &CLAMP,
    &CLAMP_MIN_TENSOR,
    &CLAMP_MIN,
    &CLAMP_MAX_TENSOR,
    &CLAMP_MAX,
];

struct Maximum;
impl MapOrdered<2> for Maximum {
    #[inline(always)]
    fn eval<T: Ordered>([x, y]: [T; 2]) -> T {
        x.maximum(y)
    }
}
struct Minimum;
impl MapOrdered<2> for Minimum {
    #[inline(always)]
    fn eval<T: Ordered>([x, y]: [T; 2]) -> T {
        x.minimum(y)
    }
}
static LARGER: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.ordered::<2, Maximum>(), wgsl: "max_(x, y)" };
static SMALLER: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.ordered::<2, Minimum>(), wgsl: "min_(x, y)" };
/// As `SMALLER`, with `max` as the third argument of `clamp`.
static SMALLER_THIRD: Rule = Rule { operands: &[0, 2], loops: Loops::NONE.ordered::<2, Minimum>(), wgsl: "min_(x, y)" };

struct Same;
impl MapOrdered<1> for Same {
    #[inline(always)]
    fn eval<T: Ordered>([x]: [T; 1]) -> T {
        x
    }
}
/// For limits that cannot affect any element.
static UNLIMITED: Rule = Rule { operands: &[0], loops: Loops::NONE.ordered::<1, Same>(), wgsl: "x" };

fn no_complex(c: &Call, d: DType) -> Result<(DType, DType)> {
    if d.is_complex() {
        return Err(Error::type_(format!("{} not implemented for complex tensors.", c.op.base())));
    }
    Ok((d, d))
}

/// The gradient, half of it where the condition holds.
fn halved(c: &VjpCtx, tie: Term) -> Term {
    (c.g() / 2).where_else(tie, c.g())
}
/// The gradient of one of two operands: zero where it loses, half at a tie, all of it if NaN makes the comparison
/// undefined.
fn shared_with(c: &VjpCtx, other: usize, loses: Term) -> Term {
    halved(c, c.arg(0).equals(c.arg(other))).zero_where(loses)
}
fn shared(c: &VjpCtx, loses: Term) -> Term {
    shared_with(c, 1, loses)
}
/// A limit of `clamp`; NaN, which no comparison holds for, if there is none.
fn limit(c: &VjpCtx, name: &str) -> Term {
    match c.argument(name).is_none() {
        true => Term::number(Scalar::Float(f64::NAN)),
        false => c.arg(name),
    }
}

const EXTREME: Op = Op {
    forms: FMO,
    promote: Promote::By(no_complex),
    samples: &[
        "f32[2,3], f32[2,3]",
        "f32[2,3], f32[3]",
        "f64[5](ties), f64[5](ties)",
        "i64[4], i64[4]",
        "b8[4], b8[4]",
        "u8[3], f32[3]",
    ],
    errors: &[
        ("f32[2,3], f32[4]", "RuntimeError", "must match the size"),
        ("c64[2], c64[2]", "TypeError", "not implemented for complex"),
    ],
    ..BINARY
};

pub static MAXIMUM: Op = Op {
    sig: sig("maximum(Tensor self, Tensor other) -> Tensor"),
    doc: "The larger of two, element by element; NaN if either is.",
    body: elementwise(&LARGER),
    vjp: Vjp::Each(&[
        d(0, A0 | A1, |c| shared(c, c.arg(0).less(c.arg(1)))),
        d(1, A0 | A1, |c| shared(c, c.arg(0).greater(c.arg(1)))),
    ]),
    reference: "np.maximum(x0, x1)",
    ..EXTREME
};
pub static MINIMUM: Op = Op {
    sig: sig("minimum(Tensor self, Tensor other) -> Tensor"),
    doc: "The smaller of two, element by element; NaN if either is.",
    body: elementwise(&SMALLER),
    vjp: Vjp::Each(&[
        d(0, A0 | A1, |c| shared(c, c.arg(0).greater(c.arg(1)))),
        d(1, A0 | A1, |c| shared(c, c.arg(0).less(c.arg(1)))),
    ]),
    reference: "np.minimum(x0, x1)",
    ..EXTREME
};

struct FMax;
impl MapOrdered<2> for FMax {
    #[inline(always)]
    fn eval<T: Ordered>([x, y]: [T; 2]) -> T {
        x.fmax(y)
    }
}
struct FMin;
impl MapOrdered<2> for FMin {
    #[inline(always)]
    fn eval<T: Ordered>([x, y]: [T; 2]) -> T {
        x.fmin(y)
    }
}
static F_LARGER: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.ordered::<2, FMax>(), wgsl: "fmax_(x, y)" };
static F_SMALLER: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.ordered::<2, FMin>(), wgsl: "fmin_(x, y)" };

/// Where `self` is NaN and the other is not.
fn self_is_no_number(c: &VjpCtx) -> Term {
    c.arg(0).is_nan().both(c.arg(1).is_nan().not())
}

pub static FMAX: Op = Op {
    sig: sig("fmax(Tensor self, Tensor other) -> Tensor"),
    doc: "The larger of two; where one is NaN the other.",
    body: elementwise(&F_LARGER),
    vjp: Vjp::Each(&[
        d(0, A0 | A1, |c| shared(c, c.arg(0).less(c.arg(1)).either(self_is_no_number(c)))),
        d(1, A0 | A1, |c| shared(c, c.arg(0).greater(c.arg(1)).either(c.arg(1).is_nan()))),
    ]),
    samples: &[
        "f32[2,3], f32[2,3]",
        "f32[10](special), f32[10](special)",
        "f64[5](ties), f64[5](ties)",
        "i64[4], i64[4]",
    ],
    reference: "np.fmax(x0, x1)",
    ..EXTREME
};
pub static FMIN: Op = Op {
    sig: sig("fmin(Tensor self, Tensor other) -> Tensor"),
    doc: "The smaller of two; where one is NaN the other.",
    body: elementwise(&F_SMALLER),
    vjp: Vjp::Each(&[
        d(0, A0 | A1, |c| shared(c, c.arg(0).greater(c.arg(1)).either(self_is_no_number(c)))),
        d(1, A0 | A1, |c| shared(c, c.arg(0).less(c.arg(1)).either(c.arg(1).is_nan()))),
    ]),
    samples: &[
        "f32[2,3], f32[2,3]",
        "f32[10](special), f32[10](special)",
        "f64[5](ties), f64[5](ties)",
        "i64[4], i64[4]",
    ],
    reference: "np.fmin(x0, x1)",
    ..EXTREME
};

struct Clamp;
impl MapOrdered<3> for Clamp {
    #[inline(always)]
    fn eval<T: Ordered>([x, low, high]: [T; 3]) -> T {
        x.maximum(low).minimum(high)
    }
}
static BETWEEN: Rule = Rule { operands: &[0, 1, 2], loops: Loops::NONE.ordered::<3, Clamp>(), wgsl: "clamp_(x, y, z)" };

/// Between numbers that are not NaN: half the work.
struct ClampNumbers;
impl MapOrdered<3> for ClampNumbers {
    #[inline(always)]
    fn eval<T: Ordered>([x, low, high]: [T; 3]) -> T {
        let x = if x < low { low } else { x };
        if x > high { high } else { x }
    }
}
static BETWEEN_NUMBERS: Rule = Rule { loops: Loops::NONE.ordered::<3, ClampNumbers>(), ..BETWEEN };

fn whole(number: Scalar) -> Option<i128> {
    match number {
        Scalar::Int(n) => Some(n.into()),
        Scalar::UInt(n) => Some(n.into()),
        _ => None,
    }
}

/// Whether a limit can affect an element: an integer beyond the dtype's range cannot.
fn stops(c: &Call, limit: &str) -> bool {
    match (c.argument(limit), c.tensor(0)) {
        (Value::None, _) => false,
        (Value::Scalar(number), Ok(t)) if t.dtype().is_int() => {
            let (low, high) = t.dtype().int_range();
            whole(*number).is_none_or(|n| if limit == "max" { n <= high } else { n >= low })
        }
        _ => true,
    }
}

const CLAMPS: &[&Rule] = &[&BETWEEN, &BETWEEN_NUMBERS, &LARGER, &SMALLER_THIRD, &UNLIMITED];
fn clamp_rule(c: &Call) -> Result<&'static Rule> {
    let number = |limit: &str| c.opt_scalar(limit).is_some_and(|s| !s.to_f64().is_nan());
    if c.argument("min").is_none() && c.argument("max").is_none() {
        return Err(Error::runtime("torch.clamp: At least one of 'min' or 'max' must not be None"));
    }
    Ok(match (stops(c, "min"), stops(c, "max")) {
        (true, true) if number("min") && number("max") => &BETWEEN_NUMBERS,
        (true, true) => &BETWEEN,
        (true, false) => &LARGER,
        (false, true) => &SMALLER_THIRD,
        (false, false) => &UNLIMITED,
    })
}
fn clamp_dtype(c: &Call, d: DType, limits: &[&str]) -> Result<(DType, DType)> {
    if d.is_complex() {
        return Err(Error::not_implemented("clamp is not supported for complex types"));
    }
    if d == DType::Bool && limits.len() == 2 && limits.iter().all(|&limit| !c.argument(limit).is_none()) {
        return Err(refused(c, d));
    }
    limits.iter().try_for_each(|limit| check_reach(c, d, limit))?;
    Ok((d, d))
}

/// An integer limit that excludes the whole range of an integer dtype is an error.
fn check_reach(c: &Call, d: DType, limit: &str) -> Result<()> {
    let Some(n) = c.opt_scalar(limit).and_then(whole).filter(|_| d.is_int()) else { return Ok(()) };
    let (low, high) = d.int_range();
    let reached = if limit == "max" { n >= low } else { n <= high };
    if reached {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "Clamp {limit} value {n} is outside the representable range of {}",
        d.scalar_type_name()
    )))
}

/// Where `x` is strictly between the limits, so that the gradient at the limits is zero; false for NaN.
fn inside(c: &VjpCtx) -> Term {
    match (c.argument("min").is_none(), c.argument("max").is_none()) {
        (false, true) => c.arg(0).greater(c.arg(1)),
        (true, false) => c.arg(0).less(c.arg(2)),
        _ => c.arg(0).greater(c.arg(1)).both(c.arg(0).less(c.arg(2))),
    }
}

pub static CLAMP: Op = Op {
    sig: sig("clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor"),
    doc: "Limits each element to `[min, max]`; NaN stays. Where min > max the result is max.",
    aliases: &["clip"],
    promote: Promote::By(|c, d| clamp_dtype(c, d, &["min", "max"])),
    body: elementwise_by(clamp_rule, CLAMPS),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g().zero_where(inside(c).not()))]),
    node: "ClampBackward1",
    samples: &[
        "f32[2,3], -0.5, 0.5",
        "f32[2,3], min=0.1",
        "f32[2,3], max=0.1",
        "i64[4], -1, 2",
        "i64[4], 0.5",
        "f32[10](special), -1, 1",
        "u8[4], -1, 300",
        "i8[4], -300, 3",
        "u8[4], -1.5, 2",
    ],
    errors: &[
        ("u8[2], 256", "RuntimeError", "Clamp min value 256 is outside the representable range of Byte"),
        (
            "i64[2], 9223372036854775808",
            "RuntimeError",
            "Clamp min value 9223372036854775808 is outside the representable range of Long",
        ),
        ("u8[2], max=-1", "RuntimeError", "Clamp max value -1 is outside the representable range of Byte"),
        ("f32[2]", "RuntimeError", "At least one of 'min' or 'max' must not be None"),
        ("c64[2], 0, 1", "RuntimeError", "not supported for complex"),
    ],
    reference: "np.clip(x0, min, max)",
    out_dtype: Some(OutDType::Same),
    ..BINARY
};

pub static CLAMP_TENSOR: Op = Op {
    sig: sig("clamp.tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor"),
    doc: "Limits each element to `[min, max]`, which broadcast; NaN stays.",
    aliases: &["clip"],
    promote: Promote::By(|c, d| clamp_dtype(c, d, &["min", "max"])),
    body: elementwise_by(clamp_rule, CLAMPS),
    vjp: Vjp::Each(&[
        d(0, A0 | A1 | A2, |c| {
            let (low, high) = (limit(c, "min"), limit(c, "max"));
            let tie = c.arg(0).equals(&low).differs(c.arg(0).equals(&high));
            halved(c, tie).zero_where(c.arg(0).less(low).either(c.arg(0).greater(high)))
        }),
        d(1, A0 | A1 | A2, |c| match c.argument("max").is_none() {
            true => shared(c, c.arg(0).greater(c.arg(1))),
            false => halved(c, c.arg(0).equals(c.arg(1)))
                .zero_where(c.arg(0).at_most(c.arg(1)).both(c.arg(1).at_most(c.arg(2))).not())
                .zero_where(c.arg(0).equals(c.arg(1)).both(c.arg(1).equals(c.arg(2)))),
        }),
        d(2, A0 | A1 | A2, |c| match c.argument("min").is_none() {
            true => shared_with(c, 2, c.arg(0).less(c.arg(2))),
            false => halved(c, c.arg(0).equals(c.arg(2)).both(c.arg(1).at_most(c.arg(2))))
                .zero_where(c.arg(0).at_least(c.arg(2)).either(c.arg(1).greater(c.arg(2))).not())
                .zero_where(c.arg(0).equals(c.arg(2)).both(c.arg(1).equals(c.arg(2)))),
        }),
    ]),
    node: "ClampBackward0",
    samples: &[
        "f32[2,3], f32[3](neg), f32[3](pos)",
        "f32[2,3], min=f32[3]",
        "f32[2,3], max=f32[2,1]",
        "i64[4], i64[4], i64[4]",
    ],
    errors: &[
        ("f32[2,3], f32[4]", "RuntimeError", "must match the size"),
        ("b8[2], b8[2], b8[2]", "RuntimeError", "not implemented for 'Bool'"),
    ],
    ..BINARY
};

pub static CLAMP_MIN: Op = Op {
    sig: sig("clamp_min(Tensor self, Scalar min) -> Tensor"),
    doc: "Limits each element from below.",
    promote: Promote::By(|c, d| clamp_dtype(c, d, &["min"])),
    body: elementwise_by(|c| Ok(if stops(c, "min") { &LARGER } else { &UNLIMITED }), &[&LARGER, &UNLIMITED]),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g().zero_where(c.arg(0).greater(c.arg(1)).not()))]),
    samples: &["f32[2,3], 0.1", "i64[4], 0", "i64[4], 0.5", "u8[4], -1"],
    errors: &[
        ("u8[2], 256", "RuntimeError", "Clamp min value 256"),
        ("c64[2], 0", "RuntimeError", "not supported for complex"),
    ],
    reference: "np.maximum(x0, x1)",
    out_dtype: Some(OutDType::Same),
    ..BINARY
};
pub static CLAMP_MIN_TENSOR: Op = Op {
    sig: sig("clamp_min.tensor(Tensor self, Tensor min) -> Tensor"),
    doc: "Limits each element from below by another tensor's.",
    promote: Promote::By(|c, d| clamp_dtype(c, d, &["min"])),
    body: elementwise(&LARGER),
    vjp: Vjp::Each(&[
        d(0, A0 | A1, |c| shared(c, c.arg(0).less(c.arg(1)))),
        d(1, A0 | A1, |c| shared(c, c.arg(0).greater(c.arg(1)))),
    ]),
    node: "ClampMinBackward1",
    reference: "np.maximum(x0, x1)",
    ..BINARY
};
pub static CLAMP_MAX: Op = Op {
    sig: sig("clamp_max(Tensor self, Scalar max) -> Tensor"),
    doc: "Limits each element from above.",
    promote: Promote::By(|c, d| clamp_dtype(c, d, &["max"])),
    body: elementwise_by(|c| Ok(if stops(c, "max") { &SMALLER } else { &UNLIMITED }), &[&SMALLER, &UNLIMITED]),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g().zero_where(c.arg(0).less(c.arg(1)).not()))]),
    samples: &["f32[2,3], 0.1", "i64[4], 0", "i64[4], 0.5", "u8[4], 256"],
    errors: &[
        ("u8[2], -1", "RuntimeError", "Clamp max value -1"),
        ("c64[2], 0", "RuntimeError", "not supported for complex"),
    ],
    reference: "np.minimum(x0, x1)",
    out_dtype: Some(OutDType::Same),
    ..BINARY
};
pub static CLAMP_MAX_TENSOR: Op = Op {
    sig: sig("clamp_max.tensor(Tensor self, Tensor max) -> Tensor"),
    doc: "Limits each element from above by another tensor's.",
    promote: Promote::By(|c, d| clamp_dtype(c, d, &["max"])),
    body: elementwise(&SMALLER),
    vjp: Vjp::Each(&[
        d(0, A0 | A1, |c| shared(c, c.arg(0).greater(c.arg(1)))),
        d(1, A0 | A1, |c| shared(c, c.arg(0).less(c.arg(1)))),
    ]),
    node: "ClampMaxBackward1",
    reference: "np.minimum(x0, x1)",
    ..BINARY
};
