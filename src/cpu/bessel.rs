//! Bessel and Airy functions in f64, one element at a time.
//!
//! Near zero a Chebyshev series of the function without its logarithm, pole or exponential; beyond, series of the
//! slowly varying factors of the asymptotic formula (`crate::chebyshev`). Special values are PyTorch's.

use crate::chebyshev::*;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, LN_2, PI};

/// `exp(-|x|) I0(x)`.
pub fn i0e(x: f64) -> f64 {
    let a = x.abs();
    if a <= 8.0 { I0_NEAR.at(a / 4.0 - 1.0) } else { I0_FAR.at(16.0 / a - 1.0) / a.sqrt() }
}
/// `exp(|x|) y`, where the exponential alone may overflow.
fn grown(x: f64, y: f64) -> f64 {
    if x.abs() < 700.0 {
        return x.abs().exp() * y;
    }
    let half = (0.5 * x.abs()).exp();
    half * y * half
}
pub fn i0(x: f64) -> f64 {
    grown(x, i0e(x))
}
/// `exp(-|x|) I1(x)`.
pub fn i1e(x: f64) -> f64 {
    let a = x.abs();
    let y = if a <= 8.0 { I1_NEAR.at(a / 4.0 - 1.0) * a } else { I1_FAR.at(16.0 / a - 1.0) / a.sqrt() };
    if x < 0.0 { -y } else { y }
}
pub fn i1(x: f64) -> f64 {
    grown(x, i1e(x))
}

/// K0 and exp(x) K0 differ by a factor: `near` up to 2 and `far` beyond.
fn k0_scaled(x: f64, near: f64, far: f64) -> f64 {
    match x {
        0.0 => f64::INFINITY,
        ..0.0 => f64::NAN,
        ..=2.0 => (K0_NEAR.at(x * x / 2.0 - 1.0) - (x.ln() - LN_2) * i0(x)) * near,
        _ => K0_FAR.at(4.0 / x - 1.0) * far / x.sqrt(),
    }
}
fn k1_scaled(x: f64, near: f64, far: f64) -> f64 {
    match x {
        0.0 => f64::INFINITY,
        ..0.0 => f64::NAN,
        ..=2.0 => ((x.ln() - LN_2) * i1(x) + K1_NEAR.at(x * x / 2.0 - 1.0) / x) * near,
        _ => K1_FAR.at(4.0 / x - 1.0) * far / x.sqrt(),
    }
}
pub fn k0(x: f64) -> f64 {
    k0_scaled(x, 1.0, (-x).exp())
}
pub fn k1(x: f64) -> f64 {
    k1_scaled(x, 1.0, (-x).exp())
}
/// `exp(x) K0(x)`.
pub fn k0e(x: f64) -> f64 {
    k0_scaled(x, x.exp(), 1.0)
}
/// `exp(x) K1(x)`.
pub fn k1e(x: f64) -> f64 {
    k1_scaled(x, x.exp(), 1.0)
}

/// Hankel's P and Q over `sqrt(pi x)`, and the sum and difference of sin x and cos x.
fn waves(x: f64, p: &Series, q: &Series) -> [f64; 4] {
    let (sin, cos) = x.sin_cos();
    let (t, scale) = (128.0 / (x * x) - 1.0, (PI * x).sqrt().recip());
    [p.at(t) * scale, q.at(t) * scale / x, sin + cos, sin - cos]
}
pub fn j0(x: f64) -> f64 {
    let a = x.abs();
    if a <= 8.0 {
        return J0_NEAR.at(a * a / 32.0 - 1.0);
    }
    let [p, q, sum, difference] = waves(a, &P0, &Q0);
    p * sum - q * difference
}
pub fn j1(x: f64) -> f64 {
    let a = x.abs();
    if a <= 8.0 {
        return J1_NEAR.at(a * a / 32.0 - 1.0) * x;
    }
    let [p, q, sum, difference] = waves(a, &P1, &Q1);
    (p * difference + q * sum) * x.signum()
}
pub fn y0(x: f64) -> f64 {
    match x {
        0.0 => -f64::INFINITY,
        ..0.0 => f64::NAN,
        ..=8.0 => Y0_NEAR.at(x * x / 32.0 - 1.0) + FRAC_2_PI * (x.ln() - LN_2) * j0(x),
        _ => {
            let [p, q, sum, difference] = waves(x, &P0, &Q0);
            p * difference + q * sum
        }
    }
}
pub fn y1(x: f64) -> f64 {
    match x {
        0.0 => -f64::INFINITY,
        ..0.0 => f64::NAN,
        ..=8.0 => Y1_NEAR.at(x * x / 32.0 - 1.0) * x + FRAC_2_PI * ((x.ln() - LN_2) * j1(x) - 1.0 / x),
        _ => {
            let [p, q, sum, difference] = waves(x, &P1, &Q1);
            q * difference - p * sum
        }
    }
}
/// `sin(x) / x`.
pub fn spherical_j0(x: f64) -> f64 {
    match x {
        0.0 => 1.0,
        _ if x.is_infinite() => 0.0,
        _ => x.sin() / x,
    }
}

/// The Airy function Ai.
pub fn airy(x: f64) -> f64 {
    if x.is_infinite() {
        return f64::NAN;
    }
    let a = x.abs();
    if a <= 2.25 {
        return AIRY_NEAR.at(x / 2.25);
    }
    let (zeta, scale) = (2.0 / 3.0 * a * a.sqrt(), PI.sqrt() * a.sqrt().sqrt());
    if x > 0.0 {
        return AIRY_FAR.at(4.5 / zeta - 1.0) * (-zeta).exp() / (2.0 * scale);
    }
    let t = 10.125 / (zeta * zeta) - 1.0;
    let (sin, cos) = zeta.sin_cos();
    (AIRY_F.at(t) * (sin + cos) + AIRY_G.at(t) / zeta * (sin - cos)) * FRAC_1_SQRT_2 / scale
}
