// The inverse error function and the derivatives of digamma, as in ops/special.rs.

// @for float
// Giles' approximation, then two Newton steps; in the tails `erfc` keeps the difference exact.
fn erfinv_(x: T) -> T {
    let a = abs_(x);
    if (is_nan(x)) { return x; }
    if (less(T(1), a)) { return nan_(); }
    if (same(a, T(1))) { return from_parts(inf_(), x); }
    let w = -ln_((T(1) - a) * (T(1) + a));
    var p: T;
    if (w < T(5)) {
        let t = w - T(2.5);
        p = T(2.81022636e-08);
        p = p * t + T(3.43273939e-07);
        p = p * t + T(-3.5233877e-06);
        p = p * t + T(-4.39150654e-06);
        p = p * t + T(0.00021858087);
        p = p * t + T(-0.00125372503);
        p = p * t + T(-0.00417768164);
        p = p * t + T(0.246640727);
        p = p * t + T(1.50140941);
    } else {
        let t = sqrt_(w) - T(3);
        p = T(-0.000200214257);
        p = p * t + T(0.000100950558);
        p = p * t + T(0.00134934322);
        p = p * t + T(-0.00367342844);
        p = p * t + T(0.00573950773);
        p = p * t + T(-0.0076224613);
        p = p * t + T(0.00943887047);
        p = p * t + T(1.00167406);
        p = p * t + T(2.83297682);
    }
    var y = p * a;
    for (var i = 0; i < 2; i++) {
        var error: T;
        if (y > T(0.5)) {
            error = (T(1) - a) - erfc_(y);
        } else {
            error = erf_(y) - a;
        }
        let step = error / (T(1.12837916709551257) * exp_(-y * y));
        y -= step / (T(1) + y * step);
    }
    return from_parts(y, x);
}
// Hurwitz's zeta by Euler and Maclaurin: terms up to 10, the integral of the rest, and Bernoulli corrections.
fn zeta_(s: T, start: T) -> T {
    if (is_nan(s) || is_nan(start)) { return nan_(); }
    if (s <= T(1) || (start <= T(0) && same(start, floor_(start)))) { return select(inf_(), nan_(), s < T(1)); }
    // Non-integer powers of negative numbers are undefined.
    if (start < T(0) && !same(s, floor_(s))) { return nan_(); }
    if (start < T(-100000) || is_inf(start)) { return nan_(); }
    var x = start;
    var sum = T(0);
    for (var i = 0; i < 100020 && x < T(10); i++) {
        let term = pow_(x, -s);
        sum += term;
        // Past zero the terms only decrease: for large `s` the first ones suffice.
        if (is_inf(sum) || abs_(term) < T(1e-17) * abs_(sum)) { return sum; }
        x += T(1);
    }
    sum += pow_(x, T(1) - s) / (s - T(1)) + T(0.5) * pow_(x, -s);
    var bernoulli = array<T, 10>(
        T(0.08333333333333333), T(-0.001388888888888889), T(3.306878306878307e-05), T(-8.267195767195768e-07),
        T(2.08767569878681e-08), T(-5.284190138687493e-10), T(1.3382536530684679e-11),
        T(-3.3896802963225827e-13), T(8.586062056277845e-15), T(-2.174868698558062e-16));
    var factor = s * pow_(x, -s - T(1));
    for (var k = 0; k < 10; k++) {
        sum += factor * bernoulli[k];
        let j = s + T(2) * T(k);
        factor *= (j + T(1)) * (j + T(2)) / (x * x);
    }
    return sum;
}
fn polygamma_(n: T, x: T) -> T {
    if (is_nan(x)) { return x; }
    if (!truth(n)) { return digamma_(x); }
    if (is_inf(x) && !is_negative(x)) { return T(0); }
    let odd = truth(fmod_(n, T(2)));
    return select(T(-1), T(1), odd) * exp_(lgamma_(n + T(1))) * zeta_(n + T(1), x);
}
