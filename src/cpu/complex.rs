//! Division and elementary functions of complex numbers, accurate where the textbook formulas cancel or overflow, and
//! with the values of C99's Annex G at zeros, infinities and NaN.
//!
//! Source of the inverse functions: W. Kahan, "Branch cuts for complex elementary functions" (1987). Beyond `HUGE`, 1
//! is negligible compared to `z`.

use super::special::exponent;
use crate::dtype::c128;
use std::f64::consts::{FRAC_PI_2, LN_2};

const HUGE: f64 = 1e100;

/// Components whose products and squares neither overflow nor lose bits.
#[inline(always)]
fn mild(x: f64) -> bool {
    (1e-140..1e140).contains(&x.abs())
}
/// Whether `quotient` is right: no intermediate overflowed or underflowed.
#[inline(always)]
pub fn divides(a: c128, b: c128) -> bool {
    let sizes = [a.re, a.im, b.re, b.im].map(|v| mild(v) | (v == 0.0));
    sizes[0] & sizes[1] & sizes[2] & sizes[3] & (mild(b.re) | mild(b.im))
}
pub fn divide(a: c128, b: c128) -> c128 {
    if divides(a, b) { quotient(a, b) } else { divide_scaled(a, b) }
}
/// The textbook formula, also used by `divide_scaled`: where both are valid the results are bitwise equal.
#[inline(always)]
pub fn quotient(a: c128, b: c128) -> c128 {
    let square = b.re * b.re + b.im * b.im;
    c128::new((a.re * b.re + a.im * b.im) / square, (a.im * b.re - a.re * b.im) / square)
}
/// Scales the operands by powers of two, and replaces NaN results by Annex G's infinities and zeros.
#[cold]
#[inline(never)]
fn divide_scaled(a: c128, b: c128) -> c128 {
    let power = |z: c128| exponent(z.re.abs().max(z.im.abs())) as i32;
    let (up, down) = (power(a), power(b));
    let q = quotient(scaled(a, -up), scaled(b, -down));
    let q = scaled(q, up - down);
    if !(q.re.is_nan() && q.im.is_nan()) {
        return q;
    }
    let product =
        |a: c128, b: c128, by: f64| c128::new(by * (a.re * b.re + a.im * b.im), by * (a.im * b.re - a.re * b.im));
    // The direction of an infinite number: ones for infinite components, zeros for the others.
    let boxed = |z: c128| {
        let part = |v: f64| (if v.is_infinite() { 1f64 } else { 0.0 }).copysign(v);
        c128::new(part(z.re), part(z.im))
    };
    let infinite = |z: c128| z.re.is_infinite() || z.im.is_infinite();
    let nan = |z: c128| z.re.is_nan() && z.im.is_nan();
    if b == c128::ZERO && !nan(a) {
        let most = f64::INFINITY.copysign(b.re);
        c128::new(most * a.re, most * a.im)
    } else if infinite(a) && b.is_finite() {
        product(boxed(a), b, f64::INFINITY)
    } else if infinite(b) && a.is_finite() {
        product(a, boxed(b), 0.0)
    } else {
        q
    }
}
/// `z 2^e`, rounded once.
fn scaled(z: c128, e: i32) -> c128 {
    let power = |e: i32| f64::from_bits(((1023 + e) as u64) << 52);
    let (first, second) = (e / 3, e / 3);
    let third = e - first - second;
    let part = |v: f64| v * power(first) * power(second) * power(third);
    c128::new(part(z.re), part(z.im))
}

/// The sine and cosine of `y` times a factor that may overflow: `e^x / 2`, or `e^x` if `whole`.
fn turned(x: f64, y: f64, whole: bool) -> (f64, f64) {
    // In three factors, since a small cosine may bring an overflowing product back into range.
    let third = (x / 3.0).exp();
    let first = if whole { third } else { 0.5 * third };
    let (sin, cos) = y.sin_cos();
    (sin * first * third * third, cos * first * third * third)
}

pub fn exp(z: c128) -> c128 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return c128::new(x.exp(), y);
    }
    if x == f64::NEG_INFINITY {
        // Zero, with the signs given by y if it is finite.
        let (sin, cos) = if y.is_finite() { y.sin_cos() } else { (1.0, 1.0) };
        return c128::new(0f64.copysign(cos), 0f64.copysign(sin));
    }
    if x == f64::INFINITY && !y.is_finite() {
        return c128::new(x, f64::NAN);
    }
    if x > 700.0 {
        let (im, re) = turned(x, y, true);
        return c128::new(re, im);
    }
    let (size, (sin, cos)) = (x.exp(), y.sin_cos());
    c128::new(size * cos, size * sin)
}

pub fn ln(z: c128) -> c128 {
    let (a, b) = (z.re.abs(), z.im.abs());
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    let re = if is_huge(z) {
        ln_twice(z) - LN_2
    } else if large > 0.7 && large < 1.5 {
        // Near the unit circle the result depends on the distance from it.
        0.5 * ((large - 1.0) * (large + 1.0) + small * small).ln_1p()
    } else if large < 1e-150 {
        let up = 2f64.powi(600);
        (a * up).hypot(b * up).ln() - 600.0 * LN_2
    } else {
        a.hypot(b).ln()
    };
    c128::new(re, z.im.atan2(z.re))
}

pub fn sinh(z: c128) -> c128 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return c128::new(x.sinh(), y);
    }
    if !y.is_finite() && (x == 0.0 || x.is_infinite()) {
        return c128::new(x, f64::NAN);
    }
    if x.abs() > 700.0 {
        let (im, re) = turned(x.abs(), y, false);
        return c128::new(re * 1f64.copysign(x), im);
    }
    let (sin, cos) = y.sin_cos();
    c128::new(x.sinh() * cos, x.cosh() * sin)
}

pub fn cosh(z: c128) -> c128 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        let im = if x.is_nan() { y } else { y * 1f64.copysign(x) };
        return c128::new(x.cosh(), im);
    }
    if !y.is_finite() && (x == 0.0 || x.is_infinite()) {
        return if x == 0.0 { c128::new(f64::NAN, x) } else { c128::new(x.abs(), f64::NAN) };
    }
    if x == 0.0 {
        return c128::new(y.cos(), x * y.sin());
    }
    if x.abs() > 700.0 {
        let (im, re) = turned(x.abs(), y, false);
        return c128::new(re, im * 1f64.copysign(x));
    }
    let (sin, cos) = y.sin_cos();
    c128::new(x.cosh() * cos, x.sinh() * sin)
}

pub fn sin(z: c128) -> c128 {
    i_over(sinh(i_times(z)))
}

pub fn cos(z: c128) -> c128 {
    cosh(i_times(z))
}

fn i_times(z: c128) -> c128 {
    c128::new(-z.im, z.re)
}
fn i_over(z: c128) -> c128 {
    c128::new(z.im, -z.re)
}
/// Infinity is huge even next to NaN; NaN alone is not.
fn is_huge(z: c128) -> bool {
    z.re.abs() > HUGE || z.im.abs() > HUGE
}
/// `ln |z|` of a huge number, and the `ln 2` that the inverse functions add.
fn ln_twice(z: c128) -> f64 {
    let scale = 0.5f64.powi(10);
    (z.re * scale).hypot(z.im * scale).ln() + 11.0 * LN_2
}

pub fn sqrt(z: c128) -> c128 {
    let (x, y) = (z.re, z.im);
    if y.is_infinite() {
        return c128::new(f64::INFINITY, y);
    }
    if x.is_infinite() {
        let rest = if y.is_nan() { y } else { 0f64.copysign(y) };
        return if x > 0.0 { c128::new(x, rest) } else { c128::new(rest.abs(), x.abs().copysign(y)) };
    }
    if x == 0.0 && y == 0.0 {
        return c128::new(0.0, y);
    }
    // A quarter of z, so that sums cannot overflow.
    let (unit, x, y) = if is_huge(z) { (2.0, x / 4.0, y / 4.0) } else { (1.0, x, y) };
    let t = ((x.abs() + x.hypot(y)) / 2.0).sqrt();
    let (re, im) = if x >= 0.0 { (t, y / (2.0 * t)) } else { (y.abs() / (2.0 * t), t.copysign(y)) };
    c128::new(unit * re, unit * im)
}

/// `sqrt(1 - z)` and `sqrt(1 + z)`; the sign of a zero imaginary part, which selects the side of the branch cut, is
/// preserved.
fn roots(z: c128) -> (c128, c128) {
    (sqrt(c128::new(1.0 - z.re, -z.im)), sqrt(c128::new(1.0 + z.re, z.im)))
}

pub fn asin(z: c128) -> c128 {
    if z.re.is_nan() || z.im.is_nan() {
        return i_over(asinh_of_nan(i_times(z)));
    }
    if is_huge(z) {
        return c128::new(z.re.atan2(z.im.abs()), ln_twice(z).copysign(z.im));
    }
    let (below, above) = roots(z);
    c128::new(z.re.atan2((below * above).re), (below.conj() * above).im.asinh())
}

pub fn acos(z: c128) -> c128 {
    if z.re.is_nan() || z.im.is_nan() {
        let nan = f64::NAN;
        return if z.re.is_infinite() || z.im.is_infinite() {
            c128::new(nan, -f64::INFINITY.copysign(z.im))
        } else if z.re == 0.0 {
            c128::new(FRAC_PI_2, nan)
        } else {
            c128::new(nan, nan)
        };
    }
    if is_huge(z) {
        return c128::new(z.im.abs().atan2(z.re), -ln_twice(z).copysign(z.im));
    }
    let (below, above) = roots(z);
    c128::new(2.0 * below.re.atan2(above.re), (above.conj() * below).im.asinh())
}

/// If one component is NaN, the other may still be determined.
fn asinh_of_nan(z: c128) -> c128 {
    let known = z.re.is_infinite() || z.im.is_infinite();
    let re = if z.re.is_infinite() {
        z.re
    } else if known {
        f64::INFINITY
    } else {
        f64::NAN
    };
    c128::new(re, if z.im == 0.0 { z.im } else { f64::NAN })
}

pub fn asinh(z: c128) -> c128 {
    i_times(asin(i_over(z)))
}

pub fn acosh(z: c128) -> c128 {
    let w = acos(z);
    if z.im.is_sign_negative() { i_over(w) } else { i_times(w) }
}

pub fn atanh(z: c128) -> c128 {
    let (x, y) = (z.re, z.im);
    if x.is_nan() || y.is_nan() {
        let re = if x.is_infinite() || x == 0.0 || y.is_infinite() { 0f64.copysign(x) } else { f64::NAN };
        return c128::new(re, if y.is_infinite() { FRAC_PI_2.copysign(y) } else { f64::NAN });
    }
    if is_huge(z) {
        // The real part tends to that of 1/z.
        let re = if x.is_finite() && y.is_finite() { divide(c128::ONE, z).re } else { 0.0 };
        return c128::new(re.abs().copysign(x), FRAC_PI_2.copysign(y));
    }
    let a = x.abs();
    let re = if a == 1.0 && y.abs() < 1e-150 {
        // The square of y would underflow.
        0.5 * (LN_2 - y.abs().ln())
    } else {
        0.25 * (4.0 * a / ((1.0 - a) * (1.0 - a) + y * y)).ln_1p()
    };
    let im = if a == 1.0 && y == 0.0 { y } else { 0.5 * (2.0 * y).atan2((1.0 - a) * (1.0 + a) - y * y) };
    c128::new(re.copysign(x), im)
}

pub fn atan(z: c128) -> c128 {
    i_over(atanh(i_times(z)))
}

pub fn tanh(z: c128) -> c128 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return c128::new(x.tanh(), y);
    }
    if x == 0.0 {
        return c128::new(x, if y.is_finite() { y.tan() } else { f64::NAN });
    }
    if !y.is_finite() && !x.is_infinite() {
        return c128::new(f64::NAN, f64::NAN);
    }
    if x.abs() > 22.0 {
        let turn = if y.is_finite() { (2.0 * y).sin() } else { 0.0 };
        return c128::new(1f64.copysign(x), 2.0 * turn * (-2.0 * x.abs()).exp());
    }
    let (t, s) = (y.tan(), x.sinh());
    let (rho, beta) = ((1.0 + s * s).sqrt(), 1.0 + t * t);
    let below = 1.0 + beta * s * s;
    c128::new(beta * rho * s / below, t / below)
}

pub fn tan(z: c128) -> c128 {
    i_over(tanh(i_times(z)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: c128, re: f64, im: f64) {
        let near = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-13 * b.abs().max(1e-3) || (a.is_nan() && b.is_nan());
        assert!(near(got.re, re) && near(got.im, im), "{got} is not {re} {im}");
    }

    /// Values from Python's `cmath`.
    #[test]
    fn values_hold_where_formulas_cancel() {
        let z = c128::new;
        close(asinh(z(-1e7, -3.0)), -16.811242831518314, -2.999999999999895e-7);
        close(asin(z(0.5, -2.0)), 0.22101863562288385, -1.4657153519472905);
        close(acos(z(0.5, -2.0)), 1.3497776911720127, 1.4657153519472905);
        close(acosh(z(0.5, -2.0)), 1.4657153519472905, -1.3497776911720127);
        close(acosh(z(0.5, 2.0)), 1.4657153519472905, 1.3497776911720127);
        close(atan(z(2.0, 3.0)), 1.4099210495965755, 0.22907268296853878);
        close(atanh(z(1e-10, 0.0)), 1e-10, 0.0);
        close(tan(z(1.0, 40.0)), 3.282293445541193e-35, 1.0);
        close(acos(z(2.0, 0.0)), 0.0, -1.3169578969248166);
        close(acos(z(2.0, -0.0)), 0.0, 1.3169578969248166);
        close(sqrt(z(-1e300, 1e-300)), 0.0, 1e150);
    }

    #[test]
    fn infinities_have_directions() {
        let (inf, z) = (f64::INFINITY, c128::new);
        close(acos(z(inf, inf)), FRAC_PI_2 / 2.0, -inf);
        close(asin(z(-inf, inf)), -FRAC_PI_2 / 2.0, inf);
        close(atan(z(inf, -inf)), FRAC_PI_2, 0.0);
        close(sqrt(z(inf, inf)), inf, inf);
        close(tanh(z(-inf, inf)), -1.0, 0.0);
    }
}
