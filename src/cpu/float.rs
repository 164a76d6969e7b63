//! Floats as numbers of the classes `Num`, `Ordered` and `Real`.

use super::math::{self, Float};
use super::number_class::{Exact, Fp, Fuse, Num, Ordered, Real};
use super::special;

impl<B: Float, F: Fuse> Num for Fp<B, F> {
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        Fp::new(B::of(x))
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        Fp::new(math::fma::<B, F>(self.0, a.0, b.0))
    }
}

impl<B: Float, F: Fuse> Ordered for Fp<B, F> {
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn is_nan(self) -> bool {
        self != self
    }
    #[inline(always)]
    fn is_infinite(self) -> bool {
        self.0.abs() == B::INFINITY
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        self.0.abs() < B::INFINITY
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Fp::new(self.0.abs())
    }
    #[inline(always)]
    fn signbit(self) -> bool {
        self.0.is_sign_negative()
    }
}

impl<B: Float, F: Fuse> Real for Fp<B, F> {
    type Exact = Fp<B, Exact>;
    #[inline(always)]
    fn exact(self) -> Fp<B, Exact> {
        Fp::new(self.0)
    }
    #[inline(always)]
    fn inexact(x: Fp<B, Exact>) -> Self {
        Fp::new(x.0)
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.0.to_f64()
    }
    #[inline(always)]
    fn infinity() -> Self {
        Fp::new(B::INFINITY)
    }
    #[inline(always)]
    fn exp(self) -> Self {
        Fp::new(math::exp::<B, F>(self.0))
    }
    #[inline(always)]
    fn has_mild_exp(self) -> bool {
        self.0.abs() <= B::MILD_EXP
    }
    #[inline(always)]
    fn exp_mild(self) -> Self {
        Fp::new(math::exp_mild::<B, F>(self.0))
    }
    #[inline(always)]
    fn exp2(self) -> Self {
        Fp::new(math::exp2::<B, F>(self.0))
    }
    #[inline(always)]
    fn expm1(self) -> Self {
        Fp::new(math::expm1::<B, F>(self.0))
    }
    #[inline(always)]
    fn ln(self) -> Self {
        Fp::new(math::ln::<B, F>(self.0))
    }
    #[inline(always)]
    fn log2(self) -> Self {
        Fp::new(math::log2::<B, F>(self.0))
    }
    #[inline(always)]
    fn log10(self) -> Self {
        Fp::new(math::log10::<B, F>(self.0))
    }
    #[inline(always)]
    fn log1p(self) -> Self {
        Fp::new(math::log1p::<B, F>(self.0))
    }
    #[inline(always)]
    fn sin(self) -> Self {
        Fp::new(math::sin::<B, F>(self.0))
    }
    #[inline(always)]
    fn cos(self) -> Self {
        Fp::new(math::cos::<B, F>(self.0))
    }
    #[inline(always)]
    fn tan(self) -> Self {
        Fp::new(math::tan::<B, F>(self.0))
    }
    #[inline(always)]
    fn asin(self) -> Self {
        Fp::new(math::asin::<B, F>(self.0))
    }
    #[inline(always)]
    fn acos(self) -> Self {
        Fp::new(math::acos::<B, F>(self.0))
    }
    #[inline(always)]
    fn atan(self) -> Self {
        Fp::new(math::atan::<B, F>(self.0))
    }
    #[inline(always)]
    fn sinh(self) -> Self {
        Fp::new(math::sinh::<B, F>(self.0))
    }
    #[inline(always)]
    fn cosh(self) -> Self {
        Fp::new(math::cosh::<B, F>(self.0))
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        Fp::new(math::tanh::<B, F>(self.0))
    }
    #[inline(always)]
    fn asinh(self) -> Self {
        Fp::new(math::asinh::<B, F>(self.0))
    }
    #[inline(always)]
    fn acosh(self) -> Self {
        Fp::new(math::acosh::<B, F>(self.0))
    }
    #[inline(always)]
    fn atanh(self) -> Self {
        Fp::new(math::atanh::<B, F>(self.0))
    }
    #[inline(always)]
    fn sigmoid(self) -> Self {
        Fp::new(math::sigmoid::<B, F>(self.0))
    }
    #[inline(always)]
    fn erf(self) -> Self {
        Fp::new(math::erf::<B, F>(self.0))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Fp::new(self.0.sqrt())
    }
    #[inline(always)]
    fn floor(self) -> Self {
        Fp::new(self.0.floor())
    }
    #[inline(always)]
    fn ceil(self) -> Self {
        Fp::new(self.0.ceil())
    }
    #[inline(always)]
    fn trunc(self) -> Self {
        Fp::new(self.0.trunc())
    }
    #[inline(always)]
    fn round(self) -> Self {
        Fp::new(self.0.round())
    }
    #[inline(always)]
    fn erfc(self) -> Self {
        Fp::new(self.0.erfc::<F>())
    }
    #[inline(always)]
    fn normal(self) -> (Self, Self) {
        let (below, bell) = self.0.normal::<F>();
        (Fp::new(below), Fp::new(bell))
    }
    #[inline(always)]
    fn lgamma(self) -> Self {
        Fp::new(self.0.lgamma::<F>())
    }
    #[inline(always)]
    fn erfinv(self) -> Self {
        Fp::new(self.0.erfinv::<F>())
    }
    #[inline(always)]
    fn digamma(self) -> Self {
        Fp::new(B::of(special::digamma(self.0.to_f64())))
    }
    #[inline(always)]
    fn atan2(self, x: Self) -> Self {
        Fp::new(math::atan2::<B, F>(self.0, x.0))
    }
    #[inline(always)]
    fn pow(self, e: Self) -> Self {
        Fp::new(self.0.pow::<F>(e.0))
    }
    #[inline(always)]
    fn hypot(self, o: Self) -> Self {
        Fp::new(self.0.hypot(o.0))
    }
    #[inline(always)]
    fn copysign(self, s: Self) -> Self {
        Fp::new(self.0.copysign(s.0))
    }
    #[inline(always)]
    fn fmod(self, o: Self) -> Self {
        Fp::new(math::rem::<B, F>(self.0, o.0))
    }
    #[inline(always)]
    fn next_after(self, to: Self) -> Self {
        let away = if self < to { self.0.next_up() } else { self.0.next_down() };
        let step = if self == to { to.0 } else { away };
        Fp::new(if self.is_nan() || to.is_nan() { B::NAN } else { step })
    }
}
