//! Orthogonal polynomials by their recurrences, in f64, one element at a time. The degree is truncated to an integer;
//! for negative and infinite degrees the polynomial is zero, as in PyTorch.

/// Maximum degree of a recurrence: that many steps take some ten milliseconds.
const LIMIT: f64 = 16777216.0;

/// The polynomial of degree `n`: degrees 0 and 1 are 1 and `first`, and `next` computes degree k + 1 from k and the
/// polynomials of degrees k and k - 1.
fn recur(n: f64, first: f64, next: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let n = n.trunc();
    if n < 1.0 || !n.is_finite() {
        return if n == 0.0 { 1.0 } else { 0.0 };
    }
    if n > LIMIT {
        return f64::NAN;
    }
    let (mut before, mut p, mut k) = (1.0, first, 1.0);
    while k < n && !p.is_nan() {
        (before, p) = (p, next(k, p, before));
        k += 1.0;
    }
    p
}

/// Chebyshev polynomials of all four kinds, which differ in degree one.
fn chebyshev(x: f64, n: f64, first: f64) -> f64 {
    recur(n, first, |_, p, before| 2.0 * x * p - before)
}
pub fn chebyshev_t(x: f64, n: f64) -> f64 {
    chebyshev(x, n, x)
}
pub fn chebyshev_u(x: f64, n: f64) -> f64 {
    chebyshev(x, n, 2.0 * x)
}
pub fn chebyshev_v(x: f64, n: f64) -> f64 {
    chebyshev(x, n, 2.0 * x - 1.0)
}
pub fn chebyshev_w(x: f64, n: f64) -> f64 {
    chebyshev(x, n, 2.0 * x + 1.0)
}
/// The shifted polynomials are defined on [0, 1] instead of [-1, 1].
pub fn shifted_t(x: f64, n: f64) -> f64 {
    chebyshev_t(2.0 * x - 1.0, n)
}
pub fn shifted_u(x: f64, n: f64) -> f64 {
    chebyshev_u(2.0 * x - 1.0, n)
}
pub fn shifted_v(x: f64, n: f64) -> f64 {
    chebyshev_v(2.0 * x - 1.0, n)
}
pub fn shifted_w(x: f64, n: f64) -> f64 {
    chebyshev_w(2.0 * x - 1.0, n)
}
pub fn hermite_h(x: f64, n: f64) -> f64 {
    recur(n, 2.0 * x, |k, p, before| 2.0 * (x * p - k * before))
}
pub fn hermite_he(x: f64, n: f64) -> f64 {
    recur(n, x, |k, p, before| x * p - k * before)
}
pub fn laguerre(x: f64, n: f64) -> f64 {
    recur(n, 1.0 - x, |k, p, before| ((2.0 * k + 1.0 - x) * p - k * before) / (k + 1.0))
}
pub fn legendre(x: f64, n: f64) -> f64 {
    recur(n, x, |k, p, before| ((2.0 * k + 1.0) * x * p - k * before) / (k + 1.0))
}
