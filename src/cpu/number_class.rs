//! Number classes, over which rules are generic, and the kinds of rules.
//!
//! A rule is a zero-sized type that computes one element, for every number of a class: `Num` (complex too), `Ordered`
//! (comparable), `Real` (elementary functions). The loops of `loops.rs` run it over `Fp<f32>`, `Fp<f64>` (floats whose
//! type selects fused multiply-adds), `Wrapping` integers and `c128`; every other dtype is converted to one of those a
//! chunk at a time.

use crate::dtype::{c64, c128};
use std::marker::PhantomData;
use std::num::Wrapping;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

/// Arithmetic of every class; integers wrap.
pub trait Num:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self> + PartialEq + 'static
{
    fn from_f64(x: f64) -> Self;
    #[inline(always)]
    fn zero() -> Self {
        Self::from_f64(0.0)
    }
    #[inline(always)]
    fn one() -> Self {
        Self::from_f64(1.0)
    }
    /// Neither zero nor false.
    #[inline(always)]
    fn truth(self) -> bool {
        self != Self::zero()
    }
    /// `self * a + b`, rounded once if the instruction set has a fused multiply-add.
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        self * a + b
    }
}

/// Numbers with an order; comparisons with NaN are false.
pub trait Ordered: Num + PartialOrd {
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
    #[inline(always)]
    fn is_infinite(self) -> bool {
        false
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        true
    }
    fn abs(self) -> Self;
    /// The larger; NaN if either is.
    #[inline(always)]
    fn maximum(self, o: Self) -> Self {
        if self >= o || self.is_nan() { self } else { o }
    }
    /// The smaller; NaN if either is.
    #[inline(always)]
    fn minimum(self, o: Self) -> Self {
        if self <= o || self.is_nan() { self } else { o }
    }
    /// The larger; if one is NaN, the other.
    #[inline(always)]
    fn fmax(self, o: Self) -> Self {
        if self >= o || o.is_nan() { self } else { o }
    }
    /// The smaller; if one is NaN, the other.
    #[inline(always)]
    fn fmin(self, o: Self) -> Self {
        if self <= o || o.is_nan() { self } else { o }
    }
    /// -1, 0 or 1; 0 for NaN, as in PyTorch.
    #[inline(always)]
    fn sign(self) -> Self {
        let positive = if self > Self::zero() { Self::one() } else { Self::zero() };
        if self < Self::zero() { Self::zero() - Self::one() } else { positive }
    }
    /// The sign bit, set for -0 and negative NaN too.
    #[inline(always)]
    fn signbit(self) -> bool {
        self < Self::zero()
    }
}

/// Real numbers: f32 and f64. Error bounds are given in `math.rs`; infinities, NaN and -0 follow C99.
pub trait Real: Ordered + Div<Output = Self> {
    /// The same number with sin, cos, tan and `fmod` from libm, for arguments of any magnitude.
    type Exact: Real;
    fn exact(self) -> Self::Exact;
    fn inexact(x: Self::Exact) -> Self;
    fn to_f64(self) -> f64;
    fn exp(self) -> Self;
    /// Whether `exp_mild` gives `exp`: its result is a normal number.
    fn has_mild_exp(self) -> bool;
    fn exp_mild(self) -> Self;
    fn exp2(self) -> Self;
    fn expm1(self) -> Self;
    fn ln(self) -> Self;
    fn log2(self) -> Self;
    fn log10(self) -> Self;
    fn log1p(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tan(self) -> Self;
    fn asin(self) -> Self;
    fn acos(self) -> Self;
    fn atan(self) -> Self;
    fn atan2(self, x: Self) -> Self;
    fn sinh(self) -> Self;
    fn cosh(self) -> Self;
    fn tanh(self) -> Self;
    fn asinh(self) -> Self;
    fn acosh(self) -> Self;
    fn atanh(self) -> Self;
    fn pow(self, e: Self) -> Self;
    fn hypot(self, o: Self) -> Self;
    fn sqrt(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn trunc(self) -> Self;
    /// To the nearest integer, halves to even.
    fn round(self) -> Self;
    fn copysign(self, s: Self) -> Self;
    /// The remainder with the sign of the dividend (C's `fmod`).
    fn fmod(self, o: Self) -> Self;
    fn erf(self) -> Self;
    fn erfc(self) -> Self;
    /// The normal distribution function and `exp(-x^2 / 2)`; in f64 the former has a bounded absolute error.
    fn normal(self) -> (Self, Self);
    fn erfinv(self) -> Self;
    fn lgamma(self) -> Self;
    fn digamma(self) -> Self;
    /// The next float from `self` towards `to`.
    fn next_after(self, to: Self) -> Self;
    #[inline(always)]
    fn recip(self) -> Self {
        Self::one() / self
    }
    #[inline(always)]
    fn rsqrt(self) -> Self {
        Self::one() / self.sqrt()
    }
    /// 1 / (1 + exp(-x))
    fn sigmoid(self) -> Self;
    fn infinity() -> Self;
    #[inline(always)]
    fn nan() -> Self {
        Self::from_f64(f64::NAN)
    }
}

/// Integers as bits, for bitwise rules.
pub trait Bits: Copy + 'static {
    fn and(self, o: Self) -> Self;
    fn or(self, o: Self) -> Self;
    fn xor(self, o: Self) -> Self;
    fn not(self) -> Self;
}

/// add, mul, neg, where: the same formula for real, integer and complex numbers.
pub trait MapNum<const N: usize> {
    fn eval<T: Num>(x: [T; N]) -> T;
}
/// maximum, clamp, sign, abs.
pub trait MapOrdered<const N: usize> {
    fn eval<T: Ordered>(x: [T; N]) -> T;
}
/// tanh, div, atan2.
pub trait MapReal<const N: usize> {
    fn eval<T: Real>(x: [T; N]) -> T;
    /// Whether `ordinary` is to be called at all.
    const CHECKED: bool = false;
    /// Whether the vector formula is right for the arguments: of sin, cos and tan within `math::TRIG_LIMIT`. Blocks with others
    /// are computed by `T::Exact`.
    fn ordinary<T: Real>(_x: [T; N]) -> bool {
        true
    }
    /// Whether there is a `short` formula.
    const SHORTENED: bool = false;
    /// Whether `short` gives the bits of `eval`; blocks of such arguments take it.
    fn is_mild<T: Real>(_x: [T; N]) -> bool {
        false
    }
    #[inline(always)]
    fn short<T: Real>(x: [T; N]) -> T {
        Self::eval(x)
    }
}
/// Shifts, integer division: every integer dtype computes this in 64 bits. Use wrapping operations.
pub trait MapInt<const N: usize> {
    fn eval(x: [i64; N]) -> i64;
    /// Whether operands may take the vectorised `quick`; blocks with others run `eval`.
    const ORDINARY: Option<fn([i64; N]) -> bool> = None;
    fn quick(x: [i64; N]) -> i64 {
        Self::eval(x)
    }
}
/// and, or, xor, not, in the width of the dtype.
pub trait MapBits<const N: usize> {
    fn eval<T: Bits>(x: [T; N]) -> T;
}
/// Both complex dtypes compute this in complex128.
pub trait MapComplex<const N: usize> {
    fn eval(x: [c128; N]) -> c128;
    /// Whether operands may take the vectorised `quick`; blocks with others run `eval`.
    const ORDINARY: Option<fn([c128; N]) -> bool> = None;
    #[inline(always)]
    fn quick(x: [c128; N]) -> c128 {
        Self::eval(x)
    }
}
/// eq, ne: the result is bool.
pub trait TestNum<const N: usize> {
    fn eval<T: Num>(x: [T; N]) -> bool;
}
/// lt, isnan: the result is bool.
pub trait TestOrdered<const N: usize> {
    fn eval<T: Ordered>(x: [T; N]) -> bool;
}
/// Tests of complex numbers only.
pub trait TestComplex<const N: usize> {
    fn eval(x: [c128; N]) -> bool;
}
/// abs, angle, real, imag of complex numbers: the result has the component dtype.
pub trait RealOfComplex<const N: usize> {
    fn eval(x: [c128; N]) -> f64;
}

/// Whether `mul_add` is one instruction: a type determined by the loop's instruction set, so that it costs nothing.
pub trait Fuse: Copy + 'static {
    const FUSED: bool;
    /// sin, cos, tan and `fmod` use libm.
    const EXACT: bool = false;
}
/// Multiply, round, add, round.
#[derive(Clone, Copy)]
pub struct Plain;
/// One rounding; only in loops compiled for an instruction set that has it.
#[derive(Clone, Copy)]
pub struct Fused;
/// `Plain`, with arguments of any magnitude.
#[derive(Clone, Copy)]
pub struct Exact;
impl Fuse for Exact {
    const FUSED: bool = false;
    const EXACT: bool = true;
}
impl Fuse for Plain {
    const FUSED: bool = cfg!(target_arch = "aarch64");
}
impl Fuse for Fused {
    const FUSED: bool = true;
}

/// A float with its loop's way to multiply-add; in memory the same as `B`.
#[repr(transparent)]
pub struct Fp<B, F>(pub B, PhantomData<F>);

impl<B, F> Fp<B, F> {
    #[inline(always)]
    pub const fn new(b: B) -> Self {
        Fp(b, PhantomData)
    }
}
impl<B: Copy, F> Clone for Fp<B, F> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Copy, F> Copy for Fp<B, F> {}
impl<B: PartialEq, F> PartialEq for Fp<B, F> {
    #[inline(always)]
    fn eq(&self, o: &Self) -> bool {
        self.0 == o.0
    }
}
impl<B: PartialOrd, F> PartialOrd for Fp<B, F> {
    #[inline(always)]
    fn partial_cmp(&self, o: &Self) -> Option<std::cmp::Ordering> {
        self.0.partial_cmp(&o.0)
    }
    // Direct comparisons compile to one instruction each; `partial_cmp` does not.
    #[inline(always)]
    fn lt(&self, o: &Self) -> bool {
        self.0 < o.0
    }
    #[inline(always)]
    fn le(&self, o: &Self) -> bool {
        self.0 <= o.0
    }
    #[inline(always)]
    fn gt(&self, o: &Self) -> bool {
        self.0 > o.0
    }
    #[inline(always)]
    fn ge(&self, o: &Self) -> bool {
        self.0 >= o.0
    }
}
impl<B: Add<Output = B>, F> Add for Fp<B, F> {
    type Output = Self;
    #[inline(always)]
    fn add(self, o: Self) -> Self {
        Fp::new(self.0 + o.0)
    }
}
impl<B: Sub<Output = B>, F> Sub for Fp<B, F> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, o: Self) -> Self {
        Fp::new(self.0 - o.0)
    }
}
impl<B: Mul<Output = B>, F> Mul for Fp<B, F> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, o: Self) -> Self {
        Fp::new(self.0 * o.0)
    }
}
impl<B: Div<Output = B>, F> Div for Fp<B, F> {
    type Output = Self;
    #[inline(always)]
    fn div(self, o: Self) -> Self {
        Fp::new(self.0 / o.0)
    }
}
impl<B: Rem<Output = B>, F> Rem for Fp<B, F> {
    type Output = Self;
    #[inline(always)]
    fn rem(self, o: Self) -> Self {
        Fp::new(self.0 % o.0)
    }
}
impl<B: Neg<Output = B>, F> Neg for Fp<B, F> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Fp::new(-self.0)
    }
}

impl Num for Wrapping<i64> {
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        Wrapping(x as i64)
    }
}
impl Num for Wrapping<i32> {
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        Wrapping(x as i64 as i32)
    }
}
impl Num for Wrapping<u8> {
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        Wrapping(x as i64 as u8)
    }
}
impl Num for c128 {
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        c128::new(x, 0.0)
    }
}
impl Num for c64 {
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        c64::new(x as f32, 0.0)
    }
}

impl Ordered for Wrapping<i64> {
    #[inline(always)]
    fn abs(self) -> Self {
        Wrapping(self.0.wrapping_abs())
    }
}
impl Ordered for Wrapping<i32> {
    #[inline(always)]
    fn abs(self) -> Self {
        Wrapping(self.0.wrapping_abs())
    }
}
impl Ordered for Wrapping<u8> {
    #[inline(always)]
    fn abs(self) -> Self {
        self
    }
}

impl<T> Bits for Wrapping<T>
where
    Wrapping<T>: Copy
        + std::ops::BitAnd<Output = Self>
        + std::ops::BitOr<Output = Self>
        + std::ops::BitXor<Output = Self>
        + std::ops::Not<Output = Self>,
    T: 'static,
{
    #[inline(always)]
    fn and(self, o: Self) -> Self {
        self & o
    }
    #[inline(always)]
    fn or(self, o: Self) -> Self {
        self | o
    }
    #[inline(always)]
    fn xor(self, o: Self) -> Self {
        self ^ o
    }
    #[inline(always)]
    fn not(self) -> Self {
        !self
    }
}
