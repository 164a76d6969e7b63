// Functions of float32 and float64 written once over the primitives of the type: rounding, division with
// remainder, hyperbolic and inverse functions, powers.

// @for float
fn floor_(x: T) -> T {
    return select(from_parts(floor(x), x), x, is_nan(x));
}
fn ceil_(x: T) -> T {
    return select(from_parts(ceil(x), x), x, is_nan(x));
}
fn trunc_(x: T) -> T {
    return select(from_parts(trunc(x), x), x, is_nan(x));
}
fn round_(x: T) -> T {
    return select(from_parts(nearest(x), x), x, is_nan(x));
}
fn frac_(x: T) -> T {
    return select(x - trunc_(x), x, is_nan(x));
}
// A device's root may be off by a unit: what is left corrects it.
fn sqrt_(x: T) -> T {
    let fixed = is_nan(x) || !truth(x) || (is_inf(x) && !is_negative(x));
    let root = sqrt(x);
    return select(select(root + fma(-root, root, x) / (root + root), nan_(), is_negative(x)), x, fixed);
}
fn recip_(x: T) -> T {
    return div_(T(1), x);
}
fn rsqrt_(x: T) -> T {
    return div_(T(1), sqrt_(x));
}
// A quotient of finite numbers, y not zero. A device may multiply by a reciprocal: that of a very large number is too small to
// be normal and may become zero, and the product may be off by two units. So numbers are scaled, and what is left is divided too.
fn quotient(x: T, y: T) -> T {
    let s = select(select(T(1), T(8.6736173798840355e-19), abs(y) > T(1e30)), T(1.152921504606846976e18), abs(y) < T(1e-30));
    let v = y * s;
    let small = abs(x * s) < abs(v) * T(1e-20);
    let u = x * s * select(T(1), T(1.152921504606846976e18), small);
    let q = u / v;
    let exact = select(q, q + fma(-q, v, u) / v, truth(q) && isfinite_(q) != T(0));
    return exact * select(T(1), T(8.6736173798840355e-19), small);
}
// Division by zero and infinity follows IEEE, independent of the device's division.
fn div_(x: T, y: T) -> T {
    if (is_nan(x)) { return x; }
    if (is_nan(y)) { return y; }
    let sign = select(T(1), T(-1), is_negative(x) != is_negative(y));
    if (is_inf(x) || !truth(y)) {
        return select(from_parts(inf_(), sign), nan_(), is_inf(x) == is_inf(y) && truth(x) == truth(y));
    }
    return select(quotient(x, y), from_parts(T(0), sign), is_inf(y) || !truth(x));
}
fn trunc_div_(x: T, y: T) -> T {
    return trunc_(div_(x, y));
}
// The sign is the dividend's (C).
fn fmod_(x: T, y: T) -> T {
    if (is_nan(x)) { return x; }
    if (is_nan(y)) { return y; }
    if (is_inf(x) || !truth(y)) { return nan_(); }
    if (is_inf(y)) { return x; }
    return from_parts(fmod_exact(abs_(x), abs_(y)), x);
}
// The sign is the divisor's (Python).
fn remainder_(x: T, y: T) -> T {
    let r = fmod_(x, y);
    return select(r, r + y, truth(r) && !is_nan(r) && is_negative(r) != is_negative(y));
}
fn floor_div_(x: T, y: T) -> T {
    if (is_nan(x) || is_nan(y) || is_inf(x) || !truth(y)) {
        return select(div_(x, y), nan_(), is_inf(x) && truth(y) && !is_nan(y));
    }
    let r = fmod_(x, y);
    var q = quotient(x - r, y);
    if (truth(r) && is_negative(y) != is_negative(r)) {
        q = q - T(1);
    }
    if (!truth(q)) { return from_parts(T(0), x / y); }
    let f = floor(q);
    return f + select(T(0), T(1), q - f > T(0.5));
}
fn sigmoid_(x: T) -> T {
    let e = exp_(-abs_(x));
    return select(select(T(1), e, is_negative(x)) / (T(1) + e), x, is_nan(x));
}
fn softplus_(x: T) -> T {
    return max_(x, T(0)) + log1p_(exp_(-abs_(x)));
}
fn sinh_(x: T) -> T {
    let a = abs_(x);
    if (is_nan(x) || is_inf(x) || a < T(1e-8)) { return x; }
    if (a > T(80)) {
        let h = exp_(a * T(0.5));
        return from_parts(T(0.5) * h * h, x);
    }
    let e = expm1_(a);
    return from_parts(T(0.5) * (e + e / (e + T(1))), x);
}
fn cosh_(x: T) -> T {
    let a = abs_(x);
    if (is_nan(x) || is_inf(x)) { return a; }
    let h = exp_(a * T(0.5));
    if (a > T(40)) { return T(0.5) * h * h; }
    let e = exp_(a);
    return T(0.5) * (e + T(1) / e);
}
fn asinh_(x: T) -> T {
    let a = abs_(x);
    if (is_nan(x) || is_inf(x)) { return x; }
    if (a > T(1e6)) { return from_parts(ln_(a) + T(0.693147180559945309), x); }
    return from_parts(log1p_(a + a * a / (T(1) + sqrt(a * a + T(1)))), x);
}
fn acosh_(x: T) -> T {
    if (is_nan(x) || (is_inf(x) && !is_negative(x))) { return x; }
    if (less(x, T(1))) { return nan_(); }
    if (x > T(1e6)) { return ln_(x) + T(0.693147180559945309); }
    let t = x - T(1);
    return log1p_(t + sqrt(T(2) * t + t * t));
}
fn atanh_(x: T) -> T {
    let a = abs_(x);
    if (is_nan(x) || a < T(1e-8)) { return x; }
    if (same(a, T(1))) { return from_parts(inf_(), x); }
    if (less(T(1), a)) { return nan_(); }
    return from_parts(T(0.5) * log1p_(T(2) * a / (T(1) - a)), x);
}
fn asin_(x: T) -> T {
    let a = abs_(x);
    if (is_nan(x)) { return x; }
    if (less(T(1), a)) { return nan_(); }
    if (a <= T(0.5)) { return select(asin_small(x), x, a < T(1e-8)); }
    return from_parts(T(1.57079632679489662) - T(2) * asin_small(sqrt(T(0.5) * (T(1) - a))), x);
}
fn acos_(x: T) -> T {
    let a = abs_(x);
    if (is_nan(x)) { return x; }
    if (less(T(1), a)) { return nan_(); }
    if (a <= T(0.5)) { return T(1.57079632679489662) - asin_small(x); }
    let r = T(2) * asin_small(sqrt(T(0.5) * (T(1) - a)));
    return select(r, T(3.14159265358979324) - r, is_negative(x));
}
// atan of a non-negative number; infinity gives pi/2.
fn atan_positive(a: T) -> T {
    if (is_inf(a)) { return T(1.57079632679489662); }
    if (a > T(2.414213562373095)) { return T(1.57079632679489662) - atan_small(T(1) / a); }
    if (a > T(0.4142135623730950)) { return T(0.785398163397448310) + atan_small((a - T(1)) / (a + T(1))); }
    return atan_small(a);
}
fn atan_(x: T) -> T {
    return select(from_parts(atan_positive(abs_(x)), x), x, is_nan(x));
}
fn atan2_(y: T, x: T) -> T {
    if (is_nan(x)) { return x; }
    if (is_nan(y)) { return y; }
    let ax = abs_(x);
    let ay = abs_(y);
    var t = T(0);
    if (is_inf(ax) && is_inf(ay)) {
        t = T(0.785398163397448310);
    } else if (!truth(ay) || is_inf(ax)) {
        t = T(0);
    } else if (!truth(ax) || is_inf(ay)) {
        t = T(1.57079632679489662);
    } else if (ay > ax) {
        t = T(1.57079632679489662) - atan_positive(quotient(ax, ay));
    } else {
        t = atan_positive(quotient(ay, ax));
    }
    return from_parts(select(t, T(3.14159265358979324) - t, is_negative(x)), y);
}
fn hypot_(x: T, y: T) -> T {
    if (is_inf(x) || is_inf(y)) { return inf_(); }
    if (is_nan(x)) { return x; }
    if (is_nan(y)) { return y; }
    let a = max(abs_(x), abs_(y));
    let b = min(abs_(x), abs_(y));
    if (!truth(a)) { return a; }
    let r = quotient(b, a);
    return a * sqrt(T(1) + r * r);
}
// a * b as a sum of two numbers; exact because the halves are.
fn two_product_low(a: T, b: T) -> T {
    let ah = chop(a);
    let al = a - ah;
    let bh = chop(b);
    let bl = b - bh;
    return ((ah * bh - a * b) + ah * bl + al * bh) + al * bl;
}
// x^y for positive finite x: the logarithm has 50 % more digits, so that the exponential loses none.
fn pow_positive(x: T, y: T) -> T {
    let parts = split_log(x);
    let f = parts.y;
    let d = T(2) + f;
    let s = f / d;
    let sh = chop(s);
    // The remainder of the division: f - sh * (2 + f), over d.
    let fh = chop(f);
    let sl = (((f - sh * T(2)) - sh * fh) - sh * (f - fh)) / d;
    let lh = T(2) * sh;
    let ll = T(2) * sl + atanh_tail(s);
    // log2(x) = e + (lh + ll) / ln 2
    let ch = chop(T(1.44269504088896341));
    let cl = log2e_low();
    let ph = lh * ch;
    let pl = lh * cl + ll * T(1.44269504088896341) + (lh * ch - ph);
    let lead = parts.x + ph;
    let high = chop(lead);
    let low = ((parts.x - high) + ph) + pl;
    let yh = chop(y);
    let z = y * high;
    let e = clamp(y * (high + low), T(-1100), T(1100));
    let n = nearest(e);
    let r = (((yh * high - n) + (y - yh) * high) + y * low);
    return exp2_fraction(n, select(r, T(0), abs(z) > T(1099)));
}
fn pow_(x: T, y: T) -> T {
    if (!truth(y) || same(x, T(1))) { return T(1); }
    if (is_nan(x)) { return x; }
    if (is_nan(y)) { return y; }
    let a = abs_(x);
    if (is_inf(y)) {
        if (same(a, T(1))) { return T(1); }
        return select(T(0), inf_(), less(T(1), a) != is_negative(y));
    }
    let whole = same(trunc(y), y);
    let odd = whole && truth(y - T(2) * trunc(y * T(0.5)));
    let sign = select(T(1), T(-1), odd && is_negative(x));
    if (!truth(x) || is_inf(x)) {
        return from_parts(select(T(0), inf_(), is_inf(x) != is_negative(y)), sign);
    }
    if (is_negative(x) && !whole) { return nan_(); }
    return from_parts(pow_positive(a, y), sign);
}

fn log_add_exp_(x: T, y: T) -> T {
    if (is_nan(x)) { return x; }
    if (is_nan(y)) { return y; }
    let top = max_(x, y);
    if (is_inf(top)) { return top; }
    return top + log1p_(exp_(-abs_(x - y)));
}

// @for f32
fn log2e_low() -> f32 {
    return 1.44269504088896341 - 1.44238281250;
}
fn exp2_fraction(n: f32, r: f32) -> f32 {
    return scale(1.0 + expm1_small(r * 0.693147180559945309), i32(clamp(n, -252.0, 254.0)));
}
fn fmod_exact(x: f32, y: f32) -> f32 {
    let bx = bitcast<u32>(x);
    let by = bitcast<u32>(y);
    if (bx < by) { return x; }
    // Significands as integers; a subnormal has exponent one and no leading bit.
    let ex = max(bx >> 23u, 1u);
    let ey = max(by >> 23u, 1u);
    let my = (by & 0x7fffffu) | select(0u, 0x800000u, by >= 0x800000u);
    var r = ((bx & 0x7fffffu) | select(0u, 0x800000u, bx >= 0x800000u)) % my;
    for (var left = ex - ey; left > 0u;) {
        let step = min(left, 8u);
        r = (r << step) % my;
        left -= step;
    }
    if (r == 0u) { return 0.0; }
    let up = min(ey - 1u, countLeadingZeros(r) - 8u);
    let m = r << up;
    return bitcast<f32>(select((m & 0x7fffffu) | ((ey - up) << 23u), m, m < 0x800000u));
}

// @for int
fn floor_(x: T) -> T {
    return x;
}
fn ceil_(x: T) -> T {
    return x;
}
fn trunc_(x: T) -> T {
    return x;
}
fn round_(x: T) -> T {
    return x;
}
fn trunc_div_(x: T, y: T) -> T {
    return x / y;
}
fn quotient(x: T, y: T) -> T {
    return x / y;
}
fn div_(x: T, y: T) -> T {
    return x / y;
}
fn fmod_(x: T, y: T) -> T {
    return x % y;
}
fn remainder_(x: T, y: T) -> T {
    let r = x % y;
    return select(r, r + y, r != T(0) && (r < T(0)) != (y < T(0)));
}
fn floor_div_(x: T, y: T) -> T {
    let q = x / y;
    return select(q, q - T(1), (x % y) != T(0) && (x < T(0)) != (y < T(0)));
}
// Repeated squaring; a negative exponent leaves 1, -1 or 0, as in PyTorch.
fn pow_(x: T, y: T) -> T {
    if (y < T(0)) {
        if (x == T(1)) { return x; }
        return select(T(0), select(T(1), T(-1), (y & T(1)) != T(0)), x == T(-1));
    }
    var r = T(1);
    var b = x;
    var n = y;
    for (var i = 0u; i < 64u && n > T(0); i++) {
        r = select(r, r * b, (n & T(1)) != T(0));
        b = b * b;
        n = n >> 1u;
    }
    return r;
}

// @for f32
fn nextafter_(x: f32, y: f32) -> f32 {
    if (is_nan(x) || is_nan(y)) { return nan_(); }
    if (same(x, y)) { return y; }
    if (same(x, f32(0))) { return from_parts(bitcast<f32>(bits_(1u)), y); }
    return bitcast<f32>(bitcast<i32>(x) + select(-1, 1, less(x, y) != is_negative(x)));
}
// @for f64
fn nextafter_(x: f64, y: f64) -> f64 {
    if (is_nan(x) || is_nan(y)) { return nan_(); }
    if (same(x, y)) { return y; }
    if (same(x, f64(0))) { return from_parts(bitcast<f64>(u64(bits_(1u))), y); }
    return bitcast<f64>(bitcast<i64>(x) + select(i64(-1), i64(1), less(x, y) != is_negative(x)));
}

// @for f32
// The same where neighbours are `step` apart in the bits of f32: 2^13 for f16, 2^16 for bf16.
fn nextafter_narrow_(x: f32, y: f32, step: u32) -> f32 {
    if (is_nan(x) || is_nan(y)) { return nan_(); }
    if (same(x, y)) { return y; }
    let grow = less(x, y) != is_negative(x);
    let m = bitcast<u32>(x) & 0x7fffffffu;
    // Below 2^-14 f16 is evenly spaced.
    let even = step == 8192u && (m < 0x38800000u || (m == 0x38800000u && !grow));
    if (m == 0u) { return from_parts(select(bitcast<f32>(bits_(step)), two_to(-24), even), y); }
    if (even) { return x + from_parts(two_to(-24), select(-x, x, grow)); }
    // In f16, infinity follows 65504, in the place of 65536.
    let from_bits = select(m, 0x47800000u, step == 8192u && is_inf(x));
    return from_parts(bitcast<f32>(select(from_bits - step, from_bits + step, grow)), x);
}

// @for f64
// f64 has room for every neighbour: nothing is narrower that computes in it.
fn nextafter_narrow_(x: f64, y: f64, step: u32) -> f64 {
    return nextafter_(x, y);
}

// @for f32
fn exponent_(x: f32) -> f32 {
    if (is_nan(x) || is_inf(x) || !truth(x)) { return f32(0); }
    let e = i32((bitcast<u32>(x) >> 23u) & 0xffu);
    if (e > 0) { return f32(e - 126); }
    return f32(i32((bitcast<u32>(x * 16777216.0) >> 23u) & 0xffu) - 150);
}
// @for f64
fn exponent_(x: f64) -> f64 {
    if (is_nan(x) || is_inf(x) || !truth(x)) { return f64(0); }
    let e = i32((bitcast<u64>(x) >> 52u) & 0x7fflu);
    if (e > 0) { return f64(e - 1022); }
    return f64(i32((bitcast<u64>(x * f64(18014398509481984.0)) >> 52u) & 0x7fflu) - 1076);
}
// @for float
fn mantissa_(x: T) -> T {
    if (is_nan(x) || is_inf(x) || !truth(x)) { return x; }
    let e = exponent_(x);
    let half = trunc_(e * T(0.5));
    return x * exp2_(-half) * exp2_(half - e);
}
