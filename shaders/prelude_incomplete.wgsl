// The regularised incomplete gamma functions, as in cpu/incomplete.rs.

// @for float
// log(x / a) - (x / a - 1)
fn divergence(a: T, x: T) -> T {
    let u = quotient(x - a, a);
    if (abs_(u) > T(0.5)) { return ln_(quotient(x, a)) - u; }
    var sum = T(0);
    var power = -u * u;
    for (var k = 2; k < 60; k++) {
        sum += power / T(k);
        power *= -u;
    }
    return sum;
}
// x^a exp(-x) / gamma(a + 1)
fn gamma_density(a: T, x: T) -> T {
    if (a < T(10)) { return exp_(a * ln_(x) - x - lgamma_(a + T(1))); }
    let z = T(1) / (a * a);
    let inner = T(1) / T(1260) - z * (T(1) / T(1680) - z / T(1188));
    let stirling = (T(1) / T(12) - z * (T(1) / T(360) - z * inner)) / a;
    return exp_(a * divergence(a, x) - stirling) / sqrt_(T(6.28318530717958648) * a);
}
fn gamma_series(a: T, x: T) -> T {
    var term = T(1);
    var sum = T(1);
    for (var k = 1; k < 20000; k++) {
        term *= x / (a + T(k));
        sum += term;
        if (term < sum * T(1e-17)) { break; }
    }
    return gamma_density(a, x) * sum;
}
fn gamma_fraction(a: T, x: T) -> T {
    var b = x + T(1) - a;
    var c = T(1e30);
    var d = T(1) / b;
    var h = d;
    for (var k = 1; k < 20000; k++) {
        let factor = T(k) * (a - T(k));
        b += T(2);
        d = T(1) / (factor * d + b);
        c = b + factor / c;
        let step = c * d;
        h *= step;
        if (abs_(step - T(1)) < T(1e-16)) { break; }
    }
    return gamma_density(a, x) * a * h;
}
fn gamma_small(a: T, x: T) -> T {
    var term = T(1);
    var sum = T(0);
    for (var k = 1; k < 30; k++) {
        term *= -x / T(k);
        sum += term / (a + T(k));
    }
    let exponent = a * ln_(x) - lgamma_(T(1) + a);
    return -expm1_(exponent) - exp_(exponent) * a * sum;
}
fn gamma_uniform(a: T, x: T, sign: T) -> T {
    let half_square = -divergence(a, x);
    if (a * half_square > T(800)) { return select(T(1), T(0), (x > a) == (sign > T(0))); }
    let size = sqrt_(T(2) * half_square);
    let eta = select(size, -size, x < a);
    let last = T(1) / T(864) + eta / T(2835);
    let c0 = T(-1) / T(3) + eta * (T(1) / T(12) - eta * (T(2) / T(135) - eta * last));
    let c1 = T(-1) / T(540) - eta * (T(1) / T(288) - eta / T(378));
    let rest = exp_(-a * half_square) / sqrt_(T(6.28318530717958648) * a) * (c0 + c1 / a);
    return T(0.5) * erfc_(sign * eta * sqrt_(T(0.5) * a)) + sign * rest;
}
// 0 or 1 where an argument is zero or infinite, NaN where one is not allowed, else 2.
fn gamma_edge(a: T, x: T) -> T {
    if (less(a, T(0)) || less(x, T(0))) { return nan_(); }
    if (!truth(a)) { return select(nan_(), T(1), less(T(0), x)); }
    if (!truth(x)) { return T(0); }
    if (is_inf(a)) { return select(T(0), nan_(), is_inf(x)); }
    if (is_inf(x)) { return T(1); }
    return select(T(2), nan_(), is_nan(a) || is_nan(x));
}
fn igamma_(a: T, x: T) -> T {
    let edge = gamma_edge(a, x);
    if (!same(edge, T(2))) { return edge; }
    if (a > T(1e5)) { return gamma_uniform(a, x, T(-1)); }
    if (x <= T(1) || x <= a) { return gamma_series(a, x); }
    return T(1) - gamma_fraction(a, x);
}
fn igammac_(a: T, x: T) -> T {
    let edge = gamma_edge(a, x);
    if (is_nan(edge)) { return edge; }
    if (!same(edge, T(2))) { return T(1) - edge; }
    if (a > T(1e5)) { return gamma_uniform(a, x, T(1)); }
    if (x > T(1) && x > a) { return gamma_fraction(a, x); }
    if (x <= T(1) && a < T(1)) { return gamma_small(a, x); }
    return T(1) - gamma_series(a, x);
}
