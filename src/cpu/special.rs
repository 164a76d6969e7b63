//! Gamma, error and normal distribution functions and their relatives, in f64, one element at a time.

use super::number_class::{Fp, Plain, Real};
use crate::chebyshev::ERFCX;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI, SQRT_2};

mod c {
    unsafe extern "C" {
        pub safe fn lgamma(x: f64) -> f64;
    }
}
pub fn lgamma(x: f64) -> f64 {
    c::lgamma(x)
}
/// The derivative of `lgamma`: reflection, then the recurrence up to 10, then the asymptotic series.
pub fn digamma(mut x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    let mut sum = 0.0;
    if x < 0.0 {
        if x == x.floor() {
            return f64::NAN;
        }
        // The tangent of the distance to the nearest pole keeps large arguments, and those near a pole, accurate.
        sum = -PI / (PI * (x - x.round())).tan();
        x = 1.0 - x;
    }
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let series = z
        * (1.0 / 12.0
            - z * (1.0 / 120.0
                - z * (1.0 / 252.0 - z * (1.0 / 240.0 - z * (1.0 / 132.0 - z * (691.0 / 32760.0 - z / 12.0))))));
    sum + x.ln() - 0.5 / x - series
}

/// `(-1)^(n+1) n! zeta(n+1, x)`.
pub fn polygamma(n: f64, x: f64) -> f64 {
    if n == 0.0 {
        return digamma(x);
    }
    if x == f64::INFINITY {
        return 0.0;
    }
    if n == 1.0 && x < 0.5 {
        // The reflection formula.
        let s = (PI * (x - x.round())).sin();
        return (PI / s).powi(2) - zeta(2.0, 1.0 - x);
    }
    let sign = if n % 2.0 == 0.0 { -1.0 } else { 1.0 };
    sign * lgamma(n + 1.0).exp() * zeta(n + 1.0, x)
}
/// The Hurwitz zeta function by Euler-Maclaurin: terms up to 10, the integral of the rest, and Bernoulli corrections.
pub fn zeta(s: f64, mut x: f64) -> f64 {
    const BERNOULLI: [f64; 10] = [
        1.0 / 12.0,
        -1.0 / 720.0,
        1.0 / 30240.0,
        -1.0 / 1209600.0,
        1.0 / 47900160.0,
        -691.0 / 1307674368000.0,
        1.0 / 74724249600.0,
        -3617.0 / 10670622842880000.0,
        43867.0 / 5109094217170944000.0,
        -174611.0 / 802857662698291200000.0,
    ];
    if s <= 1.0 || (x <= 0.0 && x == x.floor()) {
        return if s < 1.0 { f64::NAN } else { f64::INFINITY };
    }
    // Non-integer powers of negative numbers are undefined.
    if x < 0.0 && s != s.floor() {
        return f64::NAN;
    }
    // Far below zero the sum would never end, and such an argument has no accurate fractional part. PyTorch returns NaN
    // for infinity too.
    if x < -1e5 || x.is_nan() || x == f64::INFINITY {
        return f64::NAN;
    }
    let mut sum = 0.0;
    while x < 10.0 {
        let term = x.powf(-s);
        sum += term;
        // Past zero the terms only decrease: for large `s` the first ones suffice.
        if term.abs() < f64::EPSILON * sum.abs() {
            return sum;
        }
        x += 1.0;
    }
    sum += x.powf(1.0 - s) / (s - 1.0) + 0.5 * x.powf(-s);
    let mut factor = s * x.powf(-s - 1.0);
    for (k, b) in BERNOULLI.iter().enumerate() {
        sum += factor * b;
        let j = s + 2.0 * k as f64;
        factor *= (j + 1.0) * (j + 2.0) / (x * x);
    }
    sum
}

/// Giles' single-precision approximation ("Approximating the erfinv function", 2011), then two Newton steps.
pub fn erfinv(x: f64) -> f64 {
    if x.abs() >= 1.0 || x.is_nan() {
        return if x.abs() == 1.0 { x * f64::INFINITY } else { f64::NAN };
    }
    let w = -((1.0 - x) * (1.0 + x)).ln();
    let near = [
        2.81022636e-08,
        3.43273939e-07,
        -3.5233877e-06,
        -4.39150654e-06,
        0.00021858087,
        -0.00125372503,
        -0.00417768164,
        0.246640727,
        1.50140941,
    ];
    let far = [
        -0.000200214257,
        0.000100950558,
        0.00134934322,
        -0.00367342844,
        0.00573950773,
        -0.0076224613,
        0.00943887047,
        1.00167406,
        2.83297682,
    ];
    let (coefficients, t) = if w < 5.0 { (near, w - 2.5) } else { (far, w.sqrt() - 3.0) };
    let mut y = coefficients.iter().fold(0.0, |p, c| p * t + c) * x;
    // The approximation was made for f32; beyond its range start from the tail of erfc.
    if w > 16.0 {
        let tail = (1.0 - x.abs()) * PI.sqrt();
        let first = (-tail.ln()).sqrt();
        y = (-(tail * first).ln()).sqrt().copysign(x);
    }
    for _ in 0..if w > 16.0 { 4 } else { 2 } {
        // In the tails `erfc` keeps the difference accurate.
        let error =
            if y.abs() > 0.5 { (1.0 - x.abs() - erfc(y.abs())) * x.signum() } else { plain(y).erf().to_f64() - x };
        let slope = FRAC_2_SQRT_PI * (-y * y).exp();
        let step = error / slope;
        y -= step / (1.0 + y * step);
    }
    y
}
/// A number of the class for which the error functions are implemented.
fn plain(x: f64) -> Fp<f64, Plain> {
    Fp::new(x)
}

/// `exp(x^2) erfc(x)`.
pub fn erfcx(x: f64) -> f64 {
    if x < 0.0 {
        // The square to twice the precision, since exp amplifies its error.
        let square = x * x;
        let (power, rest) = (square.exp(), x.mul_add(x, -square));
        return if power.is_finite() { 2.0 * power * (1.0 + rest) - erfcx(-x) } else { power };
    }
    if x > 1e8 {
        return 0.5 * FRAC_2_SQRT_PI / x;
    }
    ERFCX.at((x - 3.75) / (x + 3.75)) / (1.0 + 2.0 * x)
}

/// The logarithm of the normal distribution function.
pub fn log_ndtr(x: f64) -> f64 {
    let t = x * FRAC_1_SQRT_2;
    if x < -1.0 { (0.5 * erfcx(-t)).ln() - t * t } else { (-0.5 * erfc(t)).ln_1p() }
}

/// The inverse of the normal distribution function. In the tails, Newton steps on its logarithm, starting from the
/// approximation 26.2.23 of Abramowitz and Stegun.
pub fn ndtri(p: f64) -> f64 {
    if !(p > 0.0 && p < 1.0) {
        return if p == 0.0 || p == 1.0 { f64::INFINITY.copysign(p - 0.5) } else { f64::NAN };
    }
    if p > 0.5 {
        return -ndtri(1.0 - p);
    }
    if p > 0.1 {
        return SQRT_2 * erfinv(2.0 * p - 1.0);
    }
    let log = p.ln();
    let w = (-2.0 * log).sqrt();
    let above = 2.515517 + w * (0.802853 + w * 0.010328);
    let mut x = above / (1.0 + w * (1.432788 + w * (0.189269 + w * 0.001308))) - w;
    for _ in 0..3 {
        // The density over the distribution function is sqrt(2 / pi) / erfcx.
        x -= (log_ndtr(x) - log) * erfcx(-x * FRAC_1_SQRT_2) * (0.5 * PI).sqrt();
    }
    x
}

pub fn erfc(x: f64) -> f64 {
    plain(x).erfc().to_f64()
}

/// The exponent e of `x = m 2^e` with m in [1/2, 1); zero for zero, infinities and NaN.
pub fn exponent(x: f64) -> f64 {
    match x.to_bits() >> 52 & 0x7ff {
        0 if x == 0.0 => 0.0,
        0 => exponent(x * 2f64.powi(64)) - 64.0,
        0x7ff => 0.0,
        e => e as f64 - 1022.0,
    }
}
/// The m of `x = m 2^e`; zero, infinities and NaN are returned unchanged.
pub fn mantissa(x: f64) -> f64 {
    let half = (0.5 * exponent(x)).trunc();
    x * 2f64.powi(-half as i32) * 2f64.powi((half - exponent(x)) as i32)
}
