// Bessel functions, Airy's, the scaled error function, the normal distribution's and orthogonal polynomials, as in
// cpu/bessel.rs, cpu/special.rs and cpu/polynomial.rs. The `series_` functions are made of the tables of series.rs.

// @for float
fn i0e_(x: T) -> T {
    let a = abs_(x);
    if (is_nan(x)) { return x; }
    if (a <= T(8)) { return series_i0_near(a / T(4) - T(1)); }
    return div_(series_i0_far(T(16) / a - T(1)), sqrt_(a));
}
fn i0_(x: T) -> T {
    if (is_inf(x)) { return nan_(); }
    let h = exp_(T(0.5) * abs_(x)); // the whole power may overflow
    return opaque(h * i0e_(x)) * h;
}
fn i1e_(x: T) -> T {
    let a = abs_(x);
    if (is_nan(x)) { return x; }
    if (!truth(x)) { return T(0); }
    if (a <= T(8)) { return series_i1_near(a / T(4) - T(1)) * x; }
    return from_parts(div_(series_i1_far(T(16) / a - T(1)), sqrt_(a)), x);
}
fn i1_(x: T) -> T {
    if (is_inf(x)) { return nan_(); }
    let h = exp_(T(0.5) * abs_(x));
    return opaque(h * i1e_(x)) * h;
}
// The logarithm of half of x, which need not be a normal number.
fn ln_half(x: T) -> T {
    return select(ln_(T(0.5) * x), ln_(x) - T(0.693147180559945309), x < T(1e-30));
}
fn k0_of(x: T, near: T, far: T) -> T {
    if (is_nan(x)) { return x; }
    if (!truth(x)) { return inf_(); }
    if (is_negative(x)) { return nan_(); }
    if (x <= T(2)) { return (series_k0_near(x * x / T(2) - T(1)) - ln_half(x) * i0_(x)) * near; }
    return div_(series_k0_far(T(4) / x - T(1)) * far, sqrt_(x));
}
fn k1_of(x: T, near: T, far: T) -> T {
    if (is_nan(x)) { return x; }
    if (!truth(x)) { return inf_(); }
    if (is_negative(x)) { return nan_(); }
    if (x <= T(2)) { return (ln_half(x) * i1_(x) + series_k1_near(x * x / T(2) - T(1)) / x) * near; }
    return div_(series_k1_far(T(4) / x - T(1)) * far, sqrt_(x));
}
fn k0_(x: T) -> T {
    return k0_of(x, T(1), exp_(-x));
}
fn k1_(x: T) -> T {
    return k1_of(x, T(1), exp_(-x));
}
fn k0e_(x: T) -> T {
    return k0_of(x, exp_(x), T(1));
}
fn k1e_(x: T) -> T {
    return k1_of(x, exp_(x), T(1));
}
fn j0_(x: T) -> T {
    let a = abs_(x);
    if (is_nan(x)) { return x; }
    if (is_inf(x)) { return nan_(); }
    if (a <= T(8)) { return series_j0_near(a * a / T(32) - T(1)); }
    let t = T(128) / (a * a) - T(1);
    let q = series_q0(t) / a;
    return (series_p0(t) * (sin_(a) + cos_(a)) - q * (sin_(a) - cos_(a))) / sqrt_(T(3.14159265358979324) * a);
}
fn j1_(x: T) -> T {
    let a = abs_(x);
    if (is_nan(x)) { return x; }
    if (is_inf(x)) { return nan_(); }
    if (a <= T(8)) { return series_j1_near(a * a / T(32) - T(1)) * x; }
    let t = T(128) / (a * a) - T(1);
    let q = series_q1(t) / a;
    let y = (series_p1(t) * (sin_(a) - cos_(a)) + q * (sin_(a) + cos_(a))) / sqrt_(T(3.14159265358979324) * a);
    return select(y, -y, is_negative(x));
}
fn y0_(x: T) -> T {
    if (is_nan(x)) { return x; }
    if (!truth(x)) { return -inf_(); }
    if (is_negative(x) || is_inf(x)) { return nan_(); }
    if (x <= T(8)) {
        return series_y0_near(x * x / T(32) - T(1)) + T(0.636619772367581343) * ln_half(x) * j0_(x);
    }
    let t = T(128) / (x * x) - T(1);
    let q = series_q0(t) / x;
    return (series_p0(t) * (sin_(x) - cos_(x)) + q * (sin_(x) + cos_(x))) / sqrt_(T(3.14159265358979324) * x);
}
fn y1_(x: T) -> T {
    if (is_nan(x)) { return x; }
    if (!truth(x)) { return -inf_(); }
    if (is_negative(x) || is_inf(x)) { return nan_(); }
    if (x <= T(8)) {
        let rest = ln_half(x) * j1_(x) - T(1) / x;
        return series_y1_near(x * x / T(32) - T(1)) * x + T(0.636619772367581343) * rest;
    }
    let t = T(128) / (x * x) - T(1);
    let q = series_q1(t) / x;
    return (q * (sin_(x) - cos_(x)) - series_p1(t) * (sin_(x) + cos_(x))) / sqrt_(T(3.14159265358979324) * x);
}
fn spherical_j0_(x: T) -> T {
    if (!truth(x)) { return T(1); }
    if (is_inf(x)) { return T(0); }
    return sin_(x) / x;
}
fn airy_(x: T) -> T {
    let a = abs_(x);
    if (is_nan(x)) { return x; }
    if (is_inf(x)) { return nan_(); }
    if (a <= T(2.25)) { return series_airy_near(x / T(2.25)); }
    let z = T(2) * a * sqrt_(a) / T(3);
    let scale = T(1.77245385090551603) * sqrt_(sqrt_(a));
    if (x > T(0)) { return series_airy_far(T(4.5) / z - T(1)) * exp_(-z) / (T(2) * scale); }
    let t = T(10.125) / (z * z) - T(1);
    let waves = series_airy_f(t) * (sin_(z) + cos_(z)) + series_airy_g(t) / z * (sin_(z) - cos_(z));
    return waves * T(0.707106781186547524) / scale;
}
fn erfcx_positive(x: T) -> T {
    if (x > T(1e8)) { return div_(T(0.564189583547756287), x); }
    return series_erfcx((x - T(3.75)) / (x + T(3.75))) / (T(1) + T(2) * x);
}
fn erfcx_(x: T) -> T {
    if (is_nan(x)) { return x; }
    if (!is_negative(x)) { return erfcx_positive(x); }
    if (is_inf(x) || x * x > T(1000)) { return inf_(); }
    // The square of `h` is exact: exp multiplies its error.
    let h = trunc_(x * T(16)) / T(16);
    return T(2) * exp_(h * h) * exp_((x - h) * (x + h)) - erfcx_positive(-x);
}
fn log_ndtr_(x: T) -> T {
    if (is_nan(x)) { return x; }
    let t = x * T(0.707106781186547524);
    if (x < T(-1)) { return select(ln_(T(0.5) * erfcx_positive(-t)) - t * t, x, is_inf(x)); }
    return log1p_(T(-0.5) * erfc_(t));
}
fn ndtri_below(p: T) -> T {
    if (p > T(0.1)) { return T(1.41421356237309505) * erfinv_(T(2) * p - T(1)); }
    let goal = ln_(p);
    let w = sqrt_(T(-2) * goal);
    let above = T(2.515517) + w * (T(0.802853) + w * T(0.010328));
    var x = above / (T(1) + w * (T(1.432788) + w * (T(0.189269) + w * T(0.001308)))) - w;
    for (var i = 0; i < 3; i++) {
        let ratio = erfcx_positive(-x * T(0.707106781186547524)) * T(1.25331413731550025);
        x -= (log_ndtr_(x) - goal) * ratio;
    }
    return x;
}
fn ndtri_(p: T) -> T {
    if (is_nan(p) || less(p, T(0)) || less(T(1), p)) { return nan_(); }
    if (!truth(p)) { return -inf_(); }
    if (same(p, T(1))) { return inf_(); }
    if (p > T(0.5)) { return -ndtri_below(T(1) - p); }
    return ndtri_below(p);
}

// The polynomial of a degree by its recurrence: 1, `first`, and for k + 1 that of k times `slope k + offset`, less that
// of k - 1 times `constant + growth k`, over `1 + divisor k`.
fn recur_(degree: T, first: T, slope: T, offset: T, constant: T, growth: T, divisor: T) -> T {
    let n = trunc_(degree);
    if (is_nan(n) || is_inf(n) || n < T(0)) { return T(0); }
    if (!truth(n)) { return T(1); }
    if (n > T(16777216)) { return nan_(); }
    var before = T(1);
    var p = first;
    for (var k = T(1); k < n && !is_nan(p); k += T(1)) {
        let next = ((slope * k + offset) * p - (constant + growth * k) * before) / (T(1) + divisor * k);
        before = p;
        p = next;
    }
    return p;
}
fn chebyshev_(x: T, n: T, first: T) -> T {
    return recur_(n, first, T(0), x + x, T(1), T(0), T(0));
}
fn hermite_(x: T, n: T, scale: T) -> T {
    return recur_(n, scale * x, T(0), scale * x, T(0), scale, T(0));
}
fn laguerre_(x: T, n: T) -> T {
    return recur_(n, T(1) - x, T(2), T(1) - x, T(0), T(1), T(1));
}
fn legendre_(x: T, n: T) -> T {
    return recur_(n, x, x + x, x, T(0), T(1), T(1));
}
