//! f32 as a number of the class `Real`.

use super::num::{Fp, Fuse, Num, Ordered, Real};
use super::special;

impl<F: Fuse> Num for Fp<f32, F> {
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        Fp::new(x as f32)
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        if F::FUSED { Fp::new(self.0.mul_add(a.0, b.0)) } else { self * a + b }
    }
}

impl<F: Fuse> Ordered for Fp<f32, F> {
    #[inline(always)]
    fn is_nan(self) -> bool {
        self.0.is_nan()
    }
    #[inline(always)]
    fn is_infinite(self) -> bool {
        self.0.is_infinite()
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        self.0.is_finite()
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

impl<F: Fuse> Real for Fp<f32, F> {
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.0 as f64
    }
    #[inline(always)]
    fn infinity() -> Self {
        Fp::new(f32::INFINITY)
    }
    #[inline(always)]
    fn exp(self) -> Self {
        Fp::new(self.0.exp())
    }
    #[inline(always)]
    fn exp2(self) -> Self {
        Fp::new(self.0.exp2())
    }
    #[inline(always)]
    fn expm1(self) -> Self {
        Fp::new(self.0.exp_m1())
    }
    #[inline(always)]
    fn ln(self) -> Self {
        Fp::new(self.0.ln())
    }
    #[inline(always)]
    fn log2(self) -> Self {
        Fp::new(self.0.log2())
    }
    #[inline(always)]
    fn log10(self) -> Self {
        Fp::new(self.0.log10())
    }
    #[inline(always)]
    fn log1p(self) -> Self {
        Fp::new(self.0.ln_1p())
    }
    #[inline(always)]
    fn sin(self) -> Self {
        Fp::new(self.0.sin())
    }
    #[inline(always)]
    fn cos(self) -> Self {
        Fp::new(self.0.cos())
    }
    #[inline(always)]
    fn tan(self) -> Self {
        Fp::new(self.0.tan())
    }
    #[inline(always)]
    fn asin(self) -> Self {
        Fp::new(self.0.asin())
    }
    #[inline(always)]
    fn acos(self) -> Self {
        Fp::new(self.0.acos())
    }
    #[inline(always)]
    fn atan(self) -> Self {
        Fp::new(self.0.atan())
    }
    #[inline(always)]
    fn sinh(self) -> Self {
        Fp::new(self.0.sinh())
    }
    #[inline(always)]
    fn cosh(self) -> Self {
        Fp::new(self.0.cosh())
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        Fp::new(self.0.tanh())
    }
    #[inline(always)]
    fn asinh(self) -> Self {
        Fp::new(self.0.asinh())
    }
    #[inline(always)]
    fn acosh(self) -> Self {
        Fp::new(self.0.acosh())
    }
    #[inline(always)]
    fn atanh(self) -> Self {
        Fp::new(self.0.atanh())
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
        Fp::new(self.0.round_ties_even())
    }
    #[inline(always)]
    fn erf(self) -> Self {
        Fp::new(special::erf(self.0 as f64) as f32)
    }
    #[inline(always)]
    fn erfc(self) -> Self {
        Fp::new(special::erfc(self.0 as f64) as f32)
    }
    #[inline(always)]
    fn lgamma(self) -> Self {
        Fp::new(special::lgamma(self.0 as f64) as f32)
    }
    #[inline(always)]
    fn digamma(self) -> Self {
        Fp::new(special::digamma(self.0 as f64) as f32)
    }
    #[inline(always)]
    fn atan2(self, x: Self) -> Self {
        Fp::new(self.0.atan2(x.0))
    }
    #[inline(always)]
    fn pow(self, e: Self) -> Self {
        Fp::new(self.0.powf(e.0))
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
        Fp::new(self.0 % o.0)
    }
    #[inline(always)]
    fn next_after(self, to: Self) -> Self {
        let (x, y) = (self.0, to.0);
        let away = if x < y { x.next_up() } else { x.next_down() };
        let step = if x == y { y } else { away };
        Fp::new(if x.is_nan() || y.is_nan() { f32::NAN } else { step })
    }
}
