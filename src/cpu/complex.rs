//! Square root, inverse trigonometric and hyperbolic functions of complex numbers, accurate where the textbook formulas
//! cancel and defined at infinity as C99 has them.
//!
//! Source: W. Kahan, "Branch cuts for complex elementary functions" (1987). Beyond `HUGE` one is nothing beside `z`.

use crate::dtype::c128;
use std::f64::consts::{FRAC_PI_2, LN_2};

const HUGE: f64 = 1e100;

fn i_times(z: c128) -> c128 {
    c128::new(-z.im, z.re)
}
fn i_over(z: c128) -> c128 {
    c128::new(z.im, -z.re)
}
/// NaN is not huge, infinity is, whatever stands beside it.
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
    // Quarters do not overflow.
    let (unit, x, y) = if is_huge(z) { (2.0, x / 4.0, y / 4.0) } else { (1.0, x, y) };
    let t = ((x.abs() + x.hypot(y)) / 2.0).sqrt();
    let (re, im) = if x >= 0.0 { (t, y / (2.0 * t)) } else { (y.abs() / (2.0 * t), t.copysign(y)) };
    c128::new(unit * re, unit * im)
}

/// `sqrt(1 - z)` and `sqrt(1 + z)`; the sign of a zero imaginary part, which says on which side of the cut, is kept.
fn roots(z: c128) -> (c128, c128) {
    (sqrt(c128::new(1.0 - z.re, -z.im)), sqrt(c128::new(1.0 + z.re, z.im)))
}

pub fn asin(z: c128) -> c128 {
    if is_huge(z) {
        return c128::new(z.re.atan2(z.im.abs()), ln_twice(z).copysign(z.im));
    }
    let (below, above) = roots(z);
    c128::new(z.re.atan2((below * above).re), (below.conj() * above).im.asinh())
}

pub fn acos(z: c128) -> c128 {
    if is_huge(z) {
        return c128::new(z.im.abs().atan2(z.re), -ln_twice(z).copysign(z.im));
    }
    let (below, above) = roots(z);
    c128::new(2.0 * below.re.atan2(above.re), (above.conj() * below).im.asinh())
}

pub fn asinh(z: c128) -> c128 {
    i_times(asin(i_over(z)))
}

pub fn acosh(z: c128) -> c128 {
    let w = acos(z);
    if z.im.is_sign_negative() { i_over(w) } else { i_times(w) }
}

pub fn atanh(z: c128) -> c128 {
    if is_huge(z) {
        return c128::new(0f64.copysign(z.re), FRAC_PI_2.copysign(z.im));
    }
    let (x, y) = (z.re, z.im);
    let re = (4.0 * x / ((1.0 - x) * (1.0 - x) + y * y)).ln_1p() / 4.0;
    c128::new(re, (2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y) / 2.0)
}

pub fn atan(z: c128) -> c128 {
    i_over(atanh(i_times(z)))
}

pub fn tanh(z: c128) -> c128 {
    let (x, y) = (z.re, z.im);
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

    /// Figures of Python's `cmath`.
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
