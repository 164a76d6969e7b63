//! Gradients of the piecewise linear activations. A gradient that is not piecewise constant has a formula and a fused
//! op, as in `activation_backward`; the others are their own gradient, and constant in the input.
//!
//! That constancy is recorded: as in PyTorch a gradient computed with `create_graph=True` requires grad, and its own
//! gradient is zero.

use super::smooth_backward::{BACKWARD, FUSED, TWO_NUMBERS, TWO_NUMBERS_ERRORS, formula, g, one_pass, x};
use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapOrdered, MapReal, Ordered, Real};
use crate::op::*;
use crate::ops::support::promotion::of_tensors;

pub static OPS: &[&Op] = &[
    &THRESHOLD_BACKWARD,
    &LEAKY_RELU_BACKWARD,
    &SHRINK_BACKWARD,
    &HARDTANH_BACKWARD,
    &HARDSIGMOID_BACKWARD,
    &HARDSWISH_BACKWARD,
    &HARDSWISH_FUSED,
];

/// Of slopes that are constant piece by piece: linear in `grad`, so that it is its own gradient there, and flat in `self`.
const PIECEWISE: Op =
    Op { promote: Promote::By(of_tensors), vjp: Vjp::Each(&[d(0, A1, again), d(1, 0, |c| c.zeros(1))]), ..BACKWARD };
fn again(c: &VjpCtx) -> Term {
    let mut args: Args = c.call.args.iter().map(|v| v.reborrow()).collect();
    match c.g().into_arg() {
        Ok(g) => args[0] = g,
        Err(e) => return e.into(),
    }
    c.call.op.call(args)
}

struct ThresholdBackward;
impl MapOrdered<3> for ThresholdBackward {
    #[inline(always)]
    fn eval<T: Ordered>([g, x, limit]: [T; 3]) -> T {
        if x <= limit { T::zero() } else { g }
    }
}
static PASS_ABOVE: Rule = Rule {
    operands: &[0, 1, 2],
    loops: Loops::NONE.ordered::<3, ThresholdBackward>(),
    wgsl: "where_(le_(y, z), T(0), x)",
};
pub static THRESHOLD_BACKWARD: Op = Op {
    sig: sig("_threshold_backward(Tensor grad, Tensor self, Scalar threshold) -> Tensor"),
    doc: "The gradient where `self` is above the threshold, else zero.",
    body: elementwise(&PASS_ABOVE),
    samples: &["f32[2,3], f32[2,3], 0"],
    errors: &[("f32[2,3], f32[4], 0", "RuntimeError", "must match the size")],
    ..PIECEWISE
};

struct LeakyBackward;
impl MapReal<3> for LeakyBackward {
    #[inline(always)]
    fn eval<T: Real>([g, x, slope]: [T; 3]) -> T {
        if x > T::zero() { g } else { g * slope }
    }
}
static LEAKY_SLOPE: Rule = one_pass::<3, LeakyBackward>(&[0, 1, 2], "where_(gt_(y, T(0)), x, x * z)");
const ONE_NUMBER: &[&str] = &["f32[2,3], f32[2,3], 0.3", "f64[4], f64[4], 0.5"];
const ONE_NUMBER_ERRORS: &[(&str, &str, &str)] = &[("f32[2,3], f32[4], 0.3", "RuntimeError", "must match the size")];
pub static LEAKY_RELU_BACKWARD: Op = Op {
    sig: sig("_leaky_relu_backward(Tensor grad, Tensor self, Scalar negative_slope) -> Tensor"),
    body: elementwise(&LEAKY_SLOPE),
    samples: ONE_NUMBER,
    errors: ONE_NUMBER_ERRORS,
    ..PIECEWISE
};

struct ShrinkBackward;
impl MapReal<3> for ShrinkBackward {
    #[inline(always)]
    fn eval<T: Real>([g, x, lambda]: [T; 3]) -> T {
        if x >= -lambda && x <= lambda { T::zero() } else { g }
    }
}
static SHRINK_SLOPE: Rule = one_pass::<3, ShrinkBackward>(&[0, 1, 2], "where_(le_(abs_(y), z), T(0), x)");
pub static SHRINK_BACKWARD: Op = Op {
    sig: sig("_shrink_backward(Tensor grad, Tensor self, Scalar lambd) -> Tensor"),
    body: elementwise(&SHRINK_SLOPE),
    rounds_numbers: true,
    samples: ONE_NUMBER,
    errors: ONE_NUMBER_ERRORS,
    ..PIECEWISE
};

struct HardTanhBackward;
impl MapReal<4> for HardTanhBackward {
    #[inline(always)]
    fn eval<T: Real>([g, x, low, high]: [T; 4]) -> T {
        if x <= low || x >= high { T::zero() } else { g }
    }
}
static HARDTANH_SLOPE: Rule =
    one_pass::<4, HardTanhBackward>(&[0, 1, 2, 3], "where_(logical_or_(le_(y, z), ge_(y, w)), T(0), x)");
pub static HARDTANH_BACKWARD: Op = Op {
    sig: sig("_hardtanh_backward(Tensor grad, Tensor self, Scalar min_val, Scalar max_val) -> Tensor"),
    body: elementwise(&HARDTANH_SLOPE),
    samples: TWO_NUMBERS,
    errors: TWO_NUMBERS_ERRORS,
    ..PIECEWISE
};

struct HardSigmoidBackward;
impl MapReal<2> for HardSigmoidBackward {
    #[inline(always)]
    fn eval<T: Real>([g, x]: [T; 2]) -> T {
        let three = T::from_f64(3.0);
        if x > -three && x < three { g / T::from_f64(6.0) } else { T::zero() }
    }
}
static HARDSIGMOID_SLOPE: Rule =
    one_pass::<2, HardSigmoidBackward>(&[0, 1], "where_(lt_(abs_(y), T(3)), x / T(6), T(0))");
pub static HARDSIGMOID_BACKWARD: Op = Op {
    sig: sig("_hardsigmoid_backward(Tensor grad, Tensor self) -> Tensor"),
    body: elementwise(&HARDSIGMOID_SLOPE),
    ..PIECEWISE
};

struct HardSwishBackward;
impl MapReal<2> for HardSwishBackward {
    #[inline(always)]
    fn eval<T: Real>([g, x]: [T; 2]) -> T {
        let three = T::from_f64(3.0);
        let inside = g * (x / three + T::from_f64(0.5));
        let upper = if x < three { inside } else { g };
        if x <= -three { T::zero() } else { upper }
    }
}
static HARDSWISH_SLOPE: Rule = one_pass::<2, HardSwishBackward>(
    &[0, 1],
    "where_(le_(y, T(-3)), T(0), where_(lt_(y, T(3)), x * (y / T(3) + T(0.5)), x))",
);
pub static HARDSWISH_BACKWARD: Op = Op {
    sig: sig("_hardswish_backward(Tensor grad, Tensor self) -> Tensor"),
    body: formula(
        |c| {
            let upper = x(c)?.less(3).choose(g(c)? * (x(c)? / 3 + 0.5), g(c)?);
            upper.zero_where(x(c)?.at_most(-3)).outputs()
        },
        &HARDSWISH_FUSED,
    ),
    ..BACKWARD
};
pub static HARDSWISH_FUSED: Op = Op {
    sig: sig("_hardswish_backward_fused(Tensor grad, Tensor self) -> Tensor"),
    body: elementwise(&HARDSWISH_SLOPE),
    ..FUSED
};
