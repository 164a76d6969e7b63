//! The regularised incomplete gamma functions P and Q, in f64 and one element at a time.
//!
//! Of the two the smaller is computed and the other is the rest to one: P by its series below a, Q by its continued
//! fraction above (DLMF 8.11.4, 8.9.2), for small x by the series of its difference from one. Of a large a both change
//! within a narrow range: there Temme's uniform expansion (DLMF 8.12).

use super::special::lgamma;
use std::f64::consts::PI;

/// From here on Temme's expansion; below it the series needs some `6 sqrt(a)` terms.
const LARGE: f64 = 1e5;
/// No sum below `LARGE` needs as many terms.
const TERMS: usize = 20_000;

/// P(a, x).
pub fn lower(a: f64, x: f64) -> f64 {
    match edge(a, x) {
        Some(p) => p,
        None if a > LARGE => uniform(a, x, -1.0),
        None if x <= 1.0 || x <= a => series(a, x),
        None => 1.0 - upper(a, x),
    }
}

/// Q(a, x) = 1 - P(a, x).
pub fn upper(a: f64, x: f64) -> f64 {
    match edge(a, x) {
        Some(p) => 1.0 - p,
        None if a > LARGE => uniform(a, x, 1.0),
        None if x > 1.0 && x > a => fraction(a, x),
        None if x <= 1.0 && a < 1.0 => small(a, x),
        None => 1.0 - series(a, x),
    }
}

/// P where an argument is zero, infinite or not allowed.
fn edge(a: f64, x: f64) -> Option<f64> {
    if a.is_nan() || x.is_nan() || a < 0.0 || x < 0.0 || (a == 0.0 && x == 0.0) || (a.is_infinite() && x.is_infinite())
    {
        Some(f64::NAN)
    } else if x == 0.0 || a.is_infinite() {
        Some(0.0)
    } else if a == 0.0 || x.is_infinite() {
        Some(1.0)
    } else {
        None
    }
}

/// `log(x / a) - (x / a - 1)`.
fn divergence(a: f64, x: f64) -> f64 {
    let u = (x - a) / a;
    if u.abs() > 0.5 {
        return (x / a).ln() - u;
    }
    let (mut sum, mut power) = (0.0, -u * u);
    for k in 2..60 {
        sum += power / k as f64;
        power *= -u;
    }
    sum
}

/// `x^a exp(-x) / gamma(a + 1)`. Of a large a the exponents nearly cancel: then by Stirling's formula.
fn density(a: f64, x: f64) -> f64 {
    if a < 10.0 {
        return (a * x.ln() - x - lgamma(a + 1.0)).exp();
    }
    let z = 1.0 / (a * a);
    let stirling = (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z * (1.0 / 1680.0 - z / 1188.0)))) / a;
    (a * divergence(a, x) - stirling).exp() / (2.0 * PI * a).sqrt()
}

fn series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..TERMS {
        term *= x / (a + k as f64);
        sum += term;
        if term < sum * f64::EPSILON {
            break;
        }
    }
    density(a, x) * sum
}

/// Lentz's algorithm.
fn fraction(a: f64, x: f64) -> f64 {
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1.0 / f64::MIN_POSITIVE, 1.0 / b);
    let mut h = d;
    for k in 1..TERMS {
        let factor = k as f64 * (a - k as f64);
        b += 2.0;
        d = 1.0 / (factor * d + b);
        c = b + factor / c;
        h *= c * d;
        if (c * d - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    density(a, x) * a * h
}

/// Q of small numbers: what 1 - P would lose.
fn small(a: f64, x: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 0.0);
    for k in 1..TERMS {
        term *= -x / k as f64;
        sum += term / (a + k as f64);
        if term.abs() < f64::EPSILON * f64::EPSILON {
            break;
        }
    }
    let exponent = a * x.ln() - lgamma(1.0 + a);
    -exponent.exp_m1() - exponent.exp() * a * sum
}

/// Q for `sign` 1, P for -1.
fn uniform(a: f64, x: f64, sign: f64) -> f64 {
    let half_square = -divergence(a, x);
    if a * half_square > 800.0 {
        return if (x > a) == (sign > 0.0) { 0.0 } else { 1.0 };
    }
    let eta = (2.0 * half_square).sqrt().copysign(x - a);
    let c0 = -1.0 / 3.0 + eta * (1.0 / 12.0 - eta * (2.0 / 135.0 - eta * (1.0 / 864.0 + eta / 2835.0)));
    let c1 = -1.0 / 540.0 - eta * (1.0 / 288.0 - eta / 378.0);
    let rest = (-a * half_square).exp() / (2.0 * PI * a).sqrt() * (c0 + c1 / a);
    0.5 * super::special::erfc(sign * eta * (0.5 * a).sqrt()) + sign * rest
}
