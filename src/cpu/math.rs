//! Elementary functions as branch-free formulas, the same for f32 and f64, so that loops of them vectorise.
//!
//! Reduction, polynomial, reconstruction: `float32.rs` and `float64.rs` provide the constants and the minimax
//! polynomials (fitted with a Remez exchange in 60 digits). Errors measured by the tests: f32 within 2 ulp, f64 within
//! 3 (erfc 6). `F` decides whether a multiply-add rounds once. sin, cos and tan are valid for |x| up to `TRIG_LIMIT`;
//! rules declare that (`MapReal::ordinary`), and blocks with larger arguments use libm. Sources: Cody and Waite 1980
//! for the reductions, Higham 2002 for log1p, C99 annex F for the special values.

use super::number_class::Fuse;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Largest argument for which the fast sin, cos and tan are accurate.
pub const TRIG_LIMIT: f64 = 1e6;

/// What the formulas require of a float type.
pub trait Float:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    const ZERO: Self;
    const ONE: Self;
    const TWO: Self;
    const HALF: Self;
    const INFINITY: Self;
    const NAN: Self;
    /// 1.5 times two to the mantissa's bits: adding it rounds to an integer.
    const MAGIC: Self;
    const LOG2_E: Self;
    /// ln 2 in two parts; an exponent times the first is exact.
    const LN2: (Self, Self);
    /// pi/2 in two parts.
    const HALF_PI: (Self, Self);
    /// Below the first, exp is zero; at the second, the first power of two that is infinite.
    const EXP_RANGE: (Self, Self);
    /// Up to this magnitude of its argument, exp is a normal number.
    const MILD_EXP: Self;
    /// The exponent of the largest power of two.
    const LAST_POWER: Self;
    /// From here on exp(-2x) does not change 1 + exp(-2x).
    const BIG: Self;
    /// The largest number whose square does not overflow.
    const SQUARE_LIMIT: Self;

    fn of(x: f64) -> Self;
    fn to_f64(self) -> f64;
    fn fma(self, a: Self, b: Self) -> Self;
    /// Two to the power of an integer-valued `self`, within the exponents of normal numbers.
    fn pow2(self) -> Self;
    /// `self * 2^n` for `self` about 1, rounded once, and whether it is subnormal; if not, the value is meaningless.
    fn subnormal(self, n: Self) -> (Self, bool);
    /// `m` in [sqrt(1/2), sqrt 2) and `e` with `self = m * 2^e`, for positive normal numbers.
    fn split(self) -> (Self, Self);
    /// `split` for subnormal numbers too.
    fn split_any(self) -> (Self, Self);
    /// `self - n pi/2`, whether `n + shift` is odd, and a zero whose sign is given by its second bit.
    fn reduce<F: Fuse>(self, shift: u32) -> (Self, bool, Self);
    /// (exp r - 1 - r) / r^2 for |r| <= ln 2 / 2.
    fn exp_tail<F: Fuse>(r: Self) -> Self;
    /// (2^f - 1) / f for |f| <= 1/2.
    fn exp2_tail<F: Fuse>(f: Self) -> Self;
    /// (2 atanh s / s - 2) for z = s^2, |s| <= 0.172.
    fn ln_tail<F: Fuse>(z: Self) -> Self;
    /// (sin r - r) / r^3 for z = r^2, |r| <= pi/4.
    fn sin_tail<F: Fuse>(z: Self) -> Self;
    /// (cos r - 1 + z/2) / z^2.
    fn cos_tail<F: Fuse>(z: Self) -> Self;
    /// (atan t - t) / t^3 for z = t^2, |t| <= tan(pi/8).
    fn atan_tail<F: Fuse>(z: Self) -> Self;
    /// (asin s - s) / s^3 for z = s^2 <= 1/4.
    fn asin_tail<F: Fuse>(z: Self) -> Self;
    /// erf x / x - 1 for z = x^2 <= 1.
    fn erf_tail<F: Fuse>(z: Self) -> Self;
    /// erfc a for a of at least 0.95; in f32 only to the precision that erf needs.
    fn erfc_large<F: Fuse>(a: Self) -> Self;
    /// The normal distribution function and `exp(-x^2 / 2)`.
    fn normal<F: Fuse>(self) -> (Self, Self);
    fn pow<F: Fuse>(self, e: Self) -> Self;
    fn erfc<F: Fuse>(self) -> Self;
    fn log10_of_parts(ln_m: Self, e: Self) -> Self;
    fn hypot(self, o: Self) -> Self;
    fn lgamma<F: Fuse>(self) -> Self;
    fn erfinv<F: Fuse>(self) -> Self;

    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
    fn copysign(self, s: Self) -> Self;
    fn is_sign_negative(self) -> bool;
    /// `self`, negated if `s` has a sign bit.
    fn flip(self, s: Self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn trunc(self) -> Self;
    fn round(self) -> Self;
    fn rem(self, o: Self) -> Self;
    fn next_up(self) -> Self;
    fn next_down(self) -> Self;
}

#[inline(always)]
pub fn fma<B: Float, F: Fuse>(a: B, b: B, c: B) -> B {
    if F::FUSED { a.fma(b, c) } else { a * b + c }
}

/// The polynomial with these coefficients, lowest power first.
#[inline(always)]
pub fn horner<B: Float, F: Fuse, const N: usize>(x: B, c: [B; N]) -> B {
    let mut y = c[N - 1];
    if N < 10 {
        for i in (0..N - 1).rev() {
            y = fma::<B, F>(y, x, c[i]);
        }
        return y;
    }
    // Even and odd powers separately: two chains of half the latency.
    let square = x * x;
    let mut z = c[N - 2];
    for i in (0..N - 2).rev() {
        let chain = if (N - 1 - i).is_multiple_of(2) { &mut y } else { &mut z };
        *chain = fma::<B, F>(*chain, square, c[i]);
    }
    if N % 2 == 1 { fma::<B, F>(z, x, y) } else { fma::<B, F>(y, x, z) }
}

/// The smaller; NaN propagates from x.
#[inline(always)]
fn at_most<B: Float>(x: B, limit: B) -> B {
    if x > limit { limit } else { x }
}
#[inline(always)]
fn at_least<B: Float>(x: B, limit: B) -> B {
    if x < limit { limit } else { x }
}

/// `n` and `exp(r) - 1` with x = n ln 2 + r.
#[inline(always)]
fn exp_parts<B: Float, F: Fuse>(x: B) -> (B, B) {
    let n = fma::<B, F>(x, B::LOG2_E, B::MAGIC) - B::MAGIC;
    let r = fma::<B, F>(-n, B::LN2.1, fma::<B, F>(-n, B::LN2.0, x));
    (n, fma::<B, F>(r * r, B::exp_tail::<F>(r), r))
}
/// `p 2^n` for p about 1 and n > -126 (-1022), up to n = 128 (1024), where 2^n itself would overflow.
#[inline(always)]
fn scale_up<B: Float>(p: B, n: B) -> B {
    (p + p) * (n - B::ONE).pow2()
}
/// `p 2^n` for any n that exp can produce. A product that is subnormal or underflows may cost some 150 cycles, so such
/// results are rounded as integers.
#[inline(always)]
fn scale<B: Float, F: Fuse>(p: B, n: B) -> B {
    let (small, tiny) = p.subnormal(n);
    let most = at_most(n, B::LAST_POWER);
    let large = fma::<B, F>(p, n - most, p) * most.pow2();
    if tiny { small } else { large }
}
/// As `scale`, for n <= 0.
#[inline(always)]
fn scale_down<B: Float>(p: B, n: B) -> B {
    let (small, tiny) = p.subnormal(n);
    if tiny { small } else { p * n.pow2() }
}
/// `exp(x) / 2` for x >= 0.
#[inline(always)]
fn exp_half<B: Float, F: Fuse>(x: B) -> B {
    let (n, q) = exp_parts::<B, F>(at_most(x, B::EXP_RANGE.1 + B::LN2.0));
    scale_up(B::ONE + q, n - B::ONE)
}
#[inline(always)]
pub fn exp<B: Float, F: Fuse>(x: B) -> B {
    let (n, q) = exp_parts::<B, F>(at_most(at_least(x, B::EXP_RANGE.0), B::EXP_RANGE.1));
    scale::<B, F>(B::ONE + q, n)
}
/// exp for x <= 0.
#[inline(always)]
pub fn exp_nonpositive<B: Float, F: Fuse>(x: B) -> B {
    let (n, q) = exp_parts::<B, F>(at_least(x, B::EXP_RANGE.0));
    scale_down(B::ONE + q, n)
}
/// exp for x <= 0: below the smallest normal number it is zero.
#[inline(always)]
pub fn exp_weight<B: Float, F: Fuse>(x: B) -> B {
    let least = -B::LAST_POWER * (B::LN2.0 + B::LN2.1); // whose power of two has no exponent bits
    let (n, q) = exp_parts::<B, F>(at_least(x, least));
    (B::ONE + q) * n.pow2()
}
/// 2^x for x <= 0, for weights that are summed: below the smallest normal number it may be zero.
#[inline(always)]
pub fn exp2_weight<B: Float, F: Fuse>(x: B) -> B {
    let x = at_least(x, -B::LAST_POWER); // whose exponent bits are zero
    let n = (x + B::MAGIC) - B::MAGIC;
    let f = x - n;
    fma::<B, F>(f, B::exp2_tail::<F>(f), B::ONE) * n.pow2()
}
/// exp where the result is a normal number.
#[inline(always)]
pub fn exp_mild<B: Float, F: Fuse>(x: B) -> B {
    let (n, q) = exp_parts::<B, F>(x);
    (B::ONE + q) * n.pow2()
}
#[inline(always)]
pub fn exp2<B: Float, F: Fuse>(x: B) -> B {
    let x = at_most(at_least(x, B::EXP_RANGE.0 * B::LOG2_E), B::EXP_RANGE.1 * B::LOG2_E);
    let n = (x + B::MAGIC) - B::MAGIC;
    let f = x - n;
    let r = f * (B::LN2.0 + B::LN2.1);
    let q = fma::<B, F>(r * r, B::exp_tail::<F>(r), fma::<B, F>(f, B::LN2.1, f * B::LN2.0));
    scale::<B, F>(B::ONE + q, n)
}
#[inline(always)]
pub fn expm1<B: Float, F: Fuse>(x: B) -> B {
    let (n, q) = exp_parts::<B, F>(at_most(at_least(x, B::BIG * B::of(-3.0)), B::EXP_RANGE.1));
    // Half of it, so that the largest power of two does not overflow; doubled at the end.
    let s = (n - B::ONE).pow2();
    let y = fma::<B, F>(s, q, s - B::HALF);
    (y + y).copysign(x)
}
#[inline(always)]
pub fn sinh<B: Float, F: Fuse>(x: B) -> B {
    let a = x.abs();
    let t = expm1::<B, F>(at_most(a, B::BIG));
    let y = B::HALF * (t + t / (t + B::ONE));
    let large = exp_half::<B, F>(a);
    (if a > B::BIG { large } else { y }).copysign(x)
}
#[inline(always)]
pub fn cosh<B: Float, F: Fuse>(x: B) -> B {
    let e = exp_half::<B, F>(x.abs());
    e + B::of(0.25) / e
}
#[inline(always)]
pub fn tanh<B: Float, F: Fuse>(x: B) -> B {
    let a = at_most(x.abs(), B::BIG);
    let t = expm1::<B, F>(a + a);
    (t / (t + B::TWO)).copysign(x)
}
#[inline(always)]
pub fn sigmoid<B: Float, F: Fuse>(x: B) -> B {
    // 1 / (1 + exp(-x)) with both sides scaled by a power of two: nothing overflows, and only the quotient may underflow.
    let half = (B::LAST_POWER + B::ONE) * B::HALF;
    let least = (B::TWO - half) * (B::LN2.0 + B::LN2.1); // where 1 + exp(-x) has long been 1
    let (n, q) = exp_parts::<B, F>(at_most(at_least(-x, least), -B::EXP_RANGE.0));
    let one = (-half).pow2();
    one / fma::<B, F>(B::ONE + q, (n - half).pow2(), one)
}

/// ln(1 + f) for 1 + f in [sqrt(1/2), sqrt 2), as `f - (first - second)`.
#[inline(always)]
fn ln_parts<B: Float, F: Fuse>(f: B) -> (B, B) {
    let s = f / (B::TWO + f);
    let half_square = B::HALF * f * f;
    (half_square, s * (half_square + B::ln_tail::<F>(s * s)))
}
/// Adds the special values of a logarithm of x: at zero, below zero, at infinity and at NaN.
#[inline(always)]
fn ln_special<B: Float>(x: B, y: B) -> B {
    let y = if x > B::ZERO { y } else { B::NAN };
    let y = if x == B::ZERO { -B::INFINITY } else { y };
    if x == B::INFINITY { x } else { y }
}
#[inline(always)]
fn ln_of_split<B: Float, F: Fuse>((m, e): (B, B)) -> B {
    let f = m - B::ONE;
    let (a, b) = ln_parts::<B, F>(f);
    fma::<B, F>(e, B::LN2.0, f - (a - fma::<B, F>(e, B::LN2.1, b)))
}
#[inline(always)]
pub fn ln<B: Float, F: Fuse>(x: B) -> B {
    ln_special(x, ln_of_split::<B, F>(x.split_any()))
}
/// ln of a positive normal number.
#[inline(always)]
pub fn ln_mild<B: Float, F: Fuse>(x: B) -> B {
    ln_of_split::<B, F>(x.split())
}
#[inline(always)]
pub fn log2<B: Float, F: Fuse>(x: B) -> B {
    let (m, e) = x.split_any();
    let f = m - B::ONE;
    let (a, b) = ln_parts::<B, F>(f);
    let y = f - (a - b);
    let low = B::of(std::f64::consts::LOG2_E - 1.4375);
    // The product in two parts: log2 e to six bits, and the rest.
    ln_special(x, fma::<B, F>(y, B::of(1.4375), e) + y * low)
}
#[inline(always)]
pub fn log10<B: Float, F: Fuse>(x: B) -> B {
    let (m, e) = x.split_any();
    let f = m - B::ONE;
    let (a, b) = ln_parts::<B, F>(f);
    ln_special(x, B::log10_of_parts(f - (a - b), e))
}
#[inline(always)]
pub fn log1p<B: Float, F: Fuse>(x: B) -> B {
    let u = B::ONE + x;
    // The exact rounding error of the sum.
    let lost = if x > B::ONE { B::ONE - (u - x) } else { x - (u - B::ONE) };
    let (m, e) = u.split();
    let f = (m - B::ONE) + lost * (-at_most(e, B::of(64.0))).pow2();
    let (a, b) = ln_parts::<B, F>(f);
    let y = fma::<B, F>(e, B::LN2.0, f - (a - fma::<B, F>(e, B::LN2.1, b)));
    let y = ln_special(u, y);
    // Preserves the sign of zero.
    if x == B::ZERO { x } else { y }
}
#[inline(always)]
pub fn asinh<B: Float, F: Fuse>(x: B) -> B {
    let a = x.abs();
    let large = a > B::SQUARE_LIMIT;
    let c = at_most(a, B::SQUARE_LIMIT);
    let t = c + c * c / (B::ONE + (B::ONE + c * c).sqrt());
    let y = log1p::<B, F>(if large { a } else { t });
    (if large { y + B::LN2.0 + B::LN2.1 } else { y }).copysign(x)
}
#[inline(always)]
pub fn acosh<B: Float, F: Fuse>(x: B) -> B {
    let large = x > B::SQUARE_LIMIT;
    let t = at_most(x, B::SQUARE_LIMIT) - B::ONE;
    let y = log1p::<B, F>(if large { x } else { t + (t + t + t * t).sqrt() });
    let y = if large { y + B::LN2.0 + B::LN2.1 } else { y };
    if x < B::ONE { B::NAN } else { y }
}
#[inline(always)]
pub fn atanh<B: Float, F: Fuse>(x: B) -> B {
    let a = x.abs();
    (B::HALF * log1p::<B, F>((a + a) / (B::ONE - a))).copysign(x)
}

/// The quotient of operands up to which `rem` is exact.
pub const REM_LIMIT: f64 = 4194304.0;

/// C's `fmod`, of finite numbers whose quotient is below `REM_LIMIT`. The rounded quotient is at most one too far from zero, which
/// the sign of the rest tells; all else is exact.
#[inline(always)]
pub fn rem<B: Float, F: Fuse>(x: B, y: B) -> B {
    if F::EXACT || !F::FUSED {
        return x.rem(y);
    }
    let rest = (-(x / y).trunc()).fma(y, x);
    let beyond = (rest < B::ZERO) != (x < B::ZERO) && rest != B::ZERO;
    (if beyond { rest + y.abs().copysign(x) } else { rest }).copysign(x)
}

/// sin and cos of a reduced argument.
#[inline(always)]
fn sin_cos<B: Float, F: Fuse>(r: B) -> (B, B) {
    let z = r * r;
    let sin = fma::<B, F>(r * z, B::sin_tail::<F>(z), r);
    let cos = fma::<B, F>(z * z, B::cos_tail::<F>(z), B::ONE - B::HALF * z);
    (sin, cos)
}
#[inline(always)]
pub fn sin<B: Float, F: Fuse>(x: B) -> B {
    if F::EXACT {
        return B::of(x.to_f64().sin());
    }
    let (r, odd, sign) = x.reduce::<F>(0);
    let (sin, cos) = sin_cos::<B, F>(r);
    let y = (if odd { cos } else { sin }).flip(sign);
    if x == B::ZERO { x } else { y }
}
#[inline(always)]
pub fn cos<B: Float, F: Fuse>(x: B) -> B {
    if F::EXACT {
        return B::of(x.to_f64().cos());
    }
    let (r, odd, sign) = x.reduce::<F>(1);
    let (sin, cos) = sin_cos::<B, F>(r);
    (if odd { cos } else { sin }).flip(sign)
}
#[inline(always)]
pub fn tan<B: Float, F: Fuse>(x: B) -> B {
    if F::EXACT {
        return B::of(x.to_f64().tan());
    }
    let (r, odd, _) = x.reduce::<F>(0);
    let (sin, cos) = sin_cos::<B, F>(r);
    let y = if odd { -cos } else { sin } / if odd { sin } else { cos };
    if x == B::ZERO { x } else { y }
}
/// sin and cos of 2 pi t, for t in [0, 1).
#[inline(always)]
pub fn sin_cos_turn<B: Float, F: Fuse>(t: B) -> (B, B) {
    let four = t * B::of(4.0);
    let n = (four + B::MAGIC) - B::MAGIC;
    let (s, c) = sin_cos::<B, F>((four - n) * B::HALF_PI.0);
    let (odd, upper) = (n == B::ONE || n == B::of(3.0), n == B::TWO || n == B::of(3.0));
    let (sin, cos) = if odd { (c, -s) } else { (s, c) };
    if upper { (-sin, -cos) } else { (sin, cos) }
}

/// The angle of (d, n) for n, d >= 0, or of (-d, n) if mirrored.
#[inline(always)]
fn angle<B: Float, F: Fuse>(n: B, d: B, mirrored: bool) -> B {
    let swap = n > d;
    let (n, d) = if swap { (d, n) } else { (n, d) };
    let upper = n > d * B::of(std::f64::consts::SQRT_2 - 1.0);
    let (p, q) = if upper { (n - d, n + d) } else { (n, d) };
    let t = p / q;
    let z = t * t;
    let r = fma::<B, F>(t * z, B::atan_tail::<F>(z), t);
    let r = if upper { B::HALF * B::HALF_PI.0 + (r + B::HALF * B::HALF_PI.1) } else { r };
    // Each case adds one constant: a second addition would round twice.
    if swap {
        B::HALF_PI.0 - (if mirrored { -r } else { r } - B::HALF_PI.1)
    } else if mirrored {
        B::TWO * B::HALF_PI.0 - (r - B::TWO * B::HALF_PI.1)
    } else {
        r
    }
}
#[inline(always)]
pub fn atan<B: Float, F: Fuse>(x: B) -> B {
    angle::<B, F>(x.abs(), B::ONE, false).copysign(x)
}
#[inline(always)]
pub fn atan2<B: Float, F: Fuse>(y: B, x: B) -> B {
    let (n, d) = (y.abs(), x.abs());
    // 0/0 becomes 0/1, inf/inf becomes 1/1, and sums of huge numbers must not overflow.
    let larger = if n > d { n } else { d };
    let k = if larger > B::SQUARE_LIMIT { B::of(0.25) } else { B::ONE };
    let both = n == B::INFINITY && d == B::INFINITY;
    let (n, d) = if both { (B::ONE, B::ONE) } else { (n * k, d * k) };
    let d = if larger == B::ZERO { B::ONE } else { d };
    angle::<B, F>(n, d, x.is_sign_negative()).copysign(y)
}
/// asin of s, or of sqrt((1 - |x|)/2) where |x| > 1/2.
#[inline(always)]
fn asin_core<B: Float, F: Fuse>(a: B) -> (B, bool) {
    let large = a > B::HALF;
    let z = if large { (B::ONE - a) * B::HALF } else { a * a };
    let s = if large { z.sqrt() } else { a };
    (fma::<B, F>(s * z, B::asin_tail::<F>(z), s), large)
}
#[inline(always)]
pub fn asin<B: Float, F: Fuse>(x: B) -> B {
    let (p, large) = asin_core::<B, F>(x.abs());
    (if large { B::HALF_PI.0 - ((p + p) - B::HALF_PI.1) } else { p }).copysign(x)
}
#[inline(always)]
pub fn acos<B: Float, F: Fuse>(x: B) -> B {
    let (p, large) = asin_core::<B, F>(x.abs());
    let far = if x > B::ZERO { p + p } else { (B::HALF_PI.0 - (p - B::HALF_PI.1)) * B::TWO };
    if large { far } else { B::HALF_PI.0 - (p.copysign(x) - B::HALF_PI.1) }
}
#[inline(always)]
pub fn erf<B: Float, F: Fuse>(x: B) -> B {
    let a = x.abs();
    let large = B::ONE - B::erfc_large::<F>(at_least(a, B::ONE));
    let small = fma::<B, F>(a, B::erf_tail::<F>(x * x), a);
    (if a > B::ONE { large } else { small }).copysign(x)
}
