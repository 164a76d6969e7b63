//! Arithmetic of the element types that reductions compute in, as traits for generic loops.

use super::math;
use super::number_class::{Fp, Fuse, Real};
use crate::dtype::{Element, c64, c128};
use num_complex::Complex;

/// Arithmetic of the types that reductions compute in.
pub trait Arith: Element {
    const ZERO: Self;
    const ONE: Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// Divides by a number of elements.
    fn over(self, n: usize) -> Self;
}
impl Arith for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
    #[inline(always)]
    fn plus(self, other: f32) -> f32 {
        self + other
    }
    #[inline(always)]
    fn times(self, other: f32) -> f32 {
        self * other
    }
    fn over(self, n: usize) -> f32 {
        self / n as f32
    }
}
impl Arith for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    #[inline(always)]
    fn plus(self, other: f64) -> f64 {
        self + other
    }
    #[inline(always)]
    fn times(self, other: f64) -> f64 {
        self * other
    }
    fn over(self, n: usize) -> f64 {
        self / n as f64
    }
}
impl Arith for i64 {
    const ZERO: i64 = 0;
    const ONE: i64 = 1;
    #[inline(always)]
    fn plus(self, other: i64) -> i64 {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn times(self, other: i64) -> i64 {
        self.wrapping_mul(other)
    }
    fn over(self, n: usize) -> i64 {
        if n == 0 { 0 } else { self / n as i64 }
    }
}
impl Arith for c64 {
    const ZERO: c64 = Complex { re: 0.0, im: 0.0 };
    const ONE: c64 = Complex { re: 1.0, im: 0.0 };
    #[inline(always)]
    fn plus(self, other: c64) -> c64 {
        self + other
    }
    #[inline(always)]
    fn times(self, other: c64) -> c64 {
        self * other
    }
    fn over(self, n: usize) -> c64 {
        self / n as f32
    }
}
impl Arith for c128 {
    const ZERO: c128 = Complex { re: 0.0, im: 0.0 };
    const ONE: c128 = Complex { re: 1.0, im: 0.0 };
    #[inline(always)]
    fn plus(self, other: c128) -> c128 {
        self + other
    }
    #[inline(always)]
    fn times(self, other: c128) -> c128 {
        self * other
    }
    fn over(self, n: usize) -> c128 {
        self / n as f64
    }
}

/// Types with a largest and a smallest value.
pub trait Ordered: Element + PartialOrd {
    const LOWEST: Self;
    const HIGHEST: Self;
}
impl Ordered for f32 {
    const LOWEST: f32 = f32::NEG_INFINITY;
    const HIGHEST: f32 = f32::INFINITY;
}
impl Ordered for f64 {
    const LOWEST: f64 = f64::NEG_INFINITY;
    const HIGHEST: f64 = f64::INFINITY;
}
impl Ordered for i64 {
    const LOWEST: i64 = i64::MIN;
    const HIGHEST: i64 = i64::MAX;
}
impl Ordered for i32 {
    const LOWEST: i32 = i32::MIN;
    const HIGHEST: i32 = i32::MAX;
}
impl Ordered for u8 {
    const LOWEST: u8 = 0;
    const HIGHEST: u8 = u8::MAX;
}

/// `max` that propagates NaN. The maximum and the choice after it are an instruction each; as one choice between what was read
/// and `x`, stored where it was read, they would become a masked store, which takes AMD's processors some 20 cycles.
#[inline(always)]
#[allow(clippy::eq_op)] // `x != x` is the NaN test that every ordered type supports
pub fn greater<T: PartialOrd + Copy>(a: T, x: T) -> T {
    let most = if x > a { x } else { a };
    if x != x { x } else { most }
}
/// `min` that propagates NaN.
#[inline(always)]
#[allow(clippy::eq_op)] // as above
pub fn lesser<T: PartialOrd + Copy>(a: T, x: T) -> T {
    let least = if x < a { x } else { a };
    if x != x { x } else { least }
}

/// Floats, for reductions that need more than arithmetic.
pub trait Float: Arith + Ordered {
    fn sqrt(self) -> Self;
    fn abs(self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn divide(self, other: Self) -> Self;
    fn powf(self, p: f64) -> Self;
    fn exp<F: Fuse>(self) -> Self;
    /// For numbers of at most zero, and NaN.
    fn exp_nonpositive<F: Fuse>(self) -> Self;
    /// The same, but zero where the result would be subnormal.
    fn exp_weight<F: Fuse>(self) -> Self;
    /// Whether `exp_weight` is exact for all numbers from `least` to zero.
    fn is_mild(least: Self) -> bool;
    fn ln<F: Fuse>(self) -> Self;
    fn to_f64(self) -> f64;
    fn from_f64(x: f64) -> Self;
}
impl Float for f32 {
    #[inline(always)]
    fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }
    #[inline(always)]
    fn abs(self) -> f32 {
        f32::abs(self)
    }
    #[inline(always)]
    fn minus(self, other: f32) -> f32 {
        self - other
    }
    #[inline(always)]
    fn divide(self, other: f32) -> f32 {
        self / other
    }
    fn powf(self, p: f64) -> f32 {
        f32::powf(self, p as f32)
    }
    #[inline(always)]
    fn exp<F: Fuse>(self) -> f32 {
        Fp::<f32, F>::new(self).exp().0
    }
    #[inline(always)]
    fn exp_nonpositive<F: Fuse>(self) -> f32 {
        math::exp_nonpositive::<f32, F>(self)
    }
    #[inline(always)]
    fn exp_weight<F: Fuse>(self) -> f32 {
        math::exp_weight::<f32, F>(self)
    }
    #[inline(always)]
    fn is_mild(least: f32) -> bool {
        least >= -<f32 as math::Float>::MILD_EXP
    }
    #[inline(always)]
    fn ln<F: Fuse>(self) -> f32 {
        Fp::<f32, F>::new(self).ln().0
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self as f64
    }
    #[inline(always)]
    fn from_f64(x: f64) -> f32 {
        x as f32
    }
}
impl Float for f64 {
    #[inline(always)]
    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }
    #[inline(always)]
    fn abs(self) -> f64 {
        f64::abs(self)
    }
    #[inline(always)]
    fn minus(self, other: f64) -> f64 {
        self - other
    }
    #[inline(always)]
    fn divide(self, other: f64) -> f64 {
        self / other
    }
    fn powf(self, p: f64) -> f64 {
        f64::powf(self, p)
    }
    #[inline(always)]
    fn exp<F: Fuse>(self) -> f64 {
        Fp::<f64, F>::new(self).exp().0
    }
    #[inline(always)]
    fn exp_nonpositive<F: Fuse>(self) -> f64 {
        math::exp_nonpositive::<f64, F>(self)
    }
    #[inline(always)]
    fn exp_weight<F: Fuse>(self) -> f64 {
        math::exp_weight::<f64, F>(self)
    }
    #[inline(always)]
    fn is_mild(least: f64) -> bool {
        least >= -<f64 as math::Float>::MILD_EXP
    }
    #[inline(always)]
    fn ln<F: Fuse>(self) -> f64 {
        Fp::<f64, F>::new(self).ln().0
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn from_f64(x: f64) -> f64 {
        x
    }
}

/// Input of a norm: the absolute value of a real or complex number.
pub trait Magnitude: Element {
    type Real: Float;
    fn magnitude(self) -> Self::Real;
    /// The square of the magnitude.
    fn square(self) -> Self::Real;
}
impl<F: Float> Magnitude for F {
    type Real = F;
    #[inline(always)]
    fn magnitude(self) -> F {
        self.abs()
    }
    #[inline(always)]
    fn square(self) -> F {
        self.times(self)
    }
}
impl Magnitude for c64 {
    type Real = f32;
    #[inline(always)]
    fn magnitude(self) -> f32 {
        self.norm()
    }
    #[inline(always)]
    fn square(self) -> f32 {
        self.norm_sqr()
    }
}
impl Magnitude for c128 {
    type Real = f64;
    #[inline(always)]
    fn magnitude(self) -> f64 {
        self.norm()
    }
    #[inline(always)]
    fn square(self) -> f64 {
        self.norm_sqr()
    }
}
