// Elementary functions in float64. WGSL has none for this type, so all are written out: arguments are reduced as in
// FreeBSD's msun, polynomials are Taylor or msun's. Arguments are reduced by `fma`, which a compiler cannot merge with what
// precedes it: of `(x - n * a) - n * b` one has made `x - n * (a + b)`.

// @for f64
// To the nearest integer, ties to even; some drivers round float64 otherwise.
fn nearest(x: f64) -> f64 {
    let t = trunc(x);
    let d = abs(x - t);
    let odd = truth(t - 2.0 * trunc(t * 0.5));
    return t + select(f64(0), select(f64(1), f64(-1), x < 0.0), d > 0.5 || (d == 0.5 && odd));
}
// A number that takes part in no reordering and is not fused with the sum it goes into.
fn opaque(x: f64) -> f64 {
    return bitcast<f64>(bitcast<u64>(x) | u64(p[0].w));
}
fn expm1_small(r: f64) -> f64 {
    var q: f64 = 1.6059043836821613e-10;
    q = q * r + 2.08767569878681e-09;
    q = q * r + 2.505210838544172e-08;
    q = q * r + 2.755731922398589e-07;
    q = q * r + 2.7557319223985893e-06;
    q = q * r + 2.48015873015873e-05;
    q = q * r + 1.984126984126984e-04;
    q = q * r + 1.3888888888888889e-03;
    q = q * r + 8.333333333333333e-03;
    q = q * r + 4.1666666666666664e-02;
    q = q * r + 1.6666666666666666e-01;
    q = q * r + 0.5;
    return q * r * r + r;
}
fn scale(y: f64, n: i32) -> f64 {
    let half = n >> 1u;
    return y * two_to(half) * two_to(n - half);
}
fn exp_(x: f64) -> f64 {
    let t = clamp(x, -746.0, 710.0);
    let n = nearest(t * 1.44269504088896338700e+00);
    let r = fma(-n, 1.90821492927058770002e-10, fma(-n, 6.93147180369123816490e-01, t));
    return select(scale(1.0 + expm1_small(r), i32(n)), x, is_nan(x));
}
fn exp2_(x: f64) -> f64 {
    let t = clamp(x, -1080.0, 1025.0);
    let n = nearest(t);
    return select(scale(1.0 + expm1_small((t - n) * 6.93147180559945309e-01), i32(n)), x, is_nan(x));
}
fn expm1_(x: f64) -> f64 {
    if (is_nan(x) || abs(x) < 1.0e-17) { return x; }
    let t = clamp(x, -60.0, 710.0);
    let n = nearest(t * 1.44269504088896338700e+00);
    let r = fma(-n, 1.90821492927058770002e-10, fma(-n, 6.93147180369123816490e-01, t));
    let k = i32(n);
    if (k > 70) { return scale(1.0 + expm1_small(r), k); }
    let s = two_to(k);
    return s * expm1_small(r) + (s - 1.0);
}
fn ln_1p_small(f: f64) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let t1 = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    let t2 = z * (6.666666666666735130e-01 + w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01
        + w * 1.479819860511658591e-01)));
    let half = 0.5 * f * f;
    return f - (half - s * (half + (t1 + t2)));
}
// x = 2^e * m with m in [sqrt(1/2), sqrt(2)): (e, m - 1), for positive finite x.
fn split_log(x: f64) -> vec2<f64> {
    let b = bitcast<u64>(x);
    let tiny = b < 0x0010000000000000lu;
    let v = select(b, bitcast<u64>(f64(b)), tiny) + (0x3ff0000000000000lu - 0x3fe6a09e00000000lu);
    let e = i32(v >> 52u) - 1023 - select(0, 1074, tiny);
    return vec2<f64>(f64(e), bitcast<f64>((v & 0x000ffffffffffffflu) + 0x3fe6a09e00000000lu) - 1.0);
}
fn log_domain(x: f64, y: f64) -> f64 {
    let b = bitcast<u64>(x);
    let special = select(select(nan_(), x, b == 0x7ff0000000000000lu || is_nan(x)), -inf_(), (b << 1u) == 0lu);
    return select(y, special, b >= 0x7ff0000000000000lu || b == 0lu);
}
fn ln_(x: f64) -> f64 {
    let s = split_log(x);
    return log_domain(x, s.x * 6.93147180369123816490e-01 + (ln_1p_small(s.y) + s.x * 1.90821492927058770002e-10));
}
fn log2_(x: f64) -> f64 {
    let s = split_log(x);
    return log_domain(x, s.x + ln_1p_small(s.y) * 1.44269504088896338700e+00);
}
fn log10_(x: f64) -> f64 {
    let s = split_log(x);
    return log_domain(x, s.x * 3.01029995663611771306e-01
        + (ln_1p_small(s.y) * 4.34294481903251816668e-01 + s.x * 3.69423907715893078616e-13));
}
fn log1p_(x: f64) -> f64 {
    if (is_nan(x) || abs(x) < 1.0e-17) { return x; }
    if (x > -0.29 && x < 0.41) { return ln_1p_small(x); }
    return ln_(1.0 + x);
}
fn two_over_pi_at(bit: u32) -> u64 {
    var bits = array<u32, 38>(
        0u, 0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u,
        0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u,
        0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u,
        0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u,
    );
    let i = bit >> 5u;
    let pair = (u64(bits[i]) << 32u) | u64(bits[i + 1u]);
    return (pair >> (32u - (bit & 31u))) & 0xfffffffflu;
}
// Payne and Hanek: x modulo pi/2 for large x by exact integer products with the bits of 2/pi that matter.
fn reduce_large(x: f64) -> vec2<f64> {
    let b = bitcast<u64>(x);
    let m = (b & 0x000ffffffffffffflu) | 0x0010000000000000lu;
    let at = (u32(b >> 52u) & 0x7ffu) - 1075u - 2u + 64u;
    var r = array<u64, 5>();
    var carry = 0lu;
    for (var i = 4; i >= 0; i--) {
        let t = (m & 0xfffffffflu) * two_over_pi_at(at + u32(i) * 32u) + carry;
        r[i] = t & 0xfffffffflu;
        carry = t >> 32u;
    }
    carry = 0lu;
    for (var i = 3; i >= 0; i--) {
        let t = (m >> 32u) * two_over_pi_at(at + u32(i + 1) * 32u) + r[i] + carry;
        r[i] = t & 0xfffffffflu;
        carry = t >> 32u;
    }
    let f = (r[0] << 34u) | (r[1] << 2u) | (r[2] >> 30u);
    let g = ((r[2] << 2u) | (r[3] >> 30u)) & 0xfffffffflu;
    // Round to the nearest quadrant: a fraction of a half or more counts down from the next.
    let up = (f >> 63u) != 0lu;
    let fraction = f64(select(f, ~f, up)) * 5.421010862427522e-20 + f64(select(g, g ^ 0xfffffffflu, up)) * 1.2621774483536189e-29;
    let angle = fraction * 1.57079632679489661923;
    let quadrant = u32(r[0] >> 30u) + select(0u, 1u, up);
    let negative = is_negative(x);
    return vec2<f64>(f64(select(quadrant, 4u - (quadrant & 3u), negative) & 3u), select(angle, -angle, up != negative));
}
// (quadrant, remainder) of x modulo pi/2.
fn reduce_angle(x: f64) -> vec2<f64> {
    if (abs(x) > 1.0e6) { return reduce_large(x); }
    let n = nearest(x * 6.36619772367581382433e-01);
    let first = fma(-n, 6.07710050630396597660e-11, fma(-n, 1.57079632673412561417e+00, x));
    let r = fma(-n, 2.02226624879595063154e-21, first);
    return vec2<f64>(f64(i64(n) & 3), r);
}
fn sin_small(r: f64) -> f64 {
    let z = r * r;
    let q = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * (2.75573137070700676789e-06
        + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)));
    return r + z * r * (-1.66666666666666324348e-01 + z * q);
}
fn cos_small(r: f64) -> f64 {
    let z = r * r;
    let q = 4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * (2.48015872894767294178e-05
        + z * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11))));
    return 1.0 - (0.5 * z - z * z * q);
}
fn sin_(x: f64) -> f64 {
    if (is_nan(x) || abs(x) < 1.0e-8) { return x; }
    if (is_inf(x)) { return nan_(); }
    let q = reduce_angle(x);
    let n = i32(q.x);
    let y = select(sin_small(q.y), cos_small(q.y), (n & 1) != 0);
    return select(y, -y, (n & 2) != 0);
}
fn cos_(x: f64) -> f64 {
    if (is_nan(x)) { return x; }
    if (is_inf(x)) { return nan_(); }
    let q = reduce_angle(x);
    let n = i32(q.x) + 1;
    let y = select(sin_small(q.y), cos_small(q.y), (n & 1) != 0);
    return select(y, -y, (n & 2) != 0);
}
fn tan_(x: f64) -> f64 {
    if (is_nan(x) || abs(x) < 1.0e-8) { return x; }
    if (is_inf(x)) { return nan_(); }
    let q = reduce_angle(x);
    let s = sin_small(q.y);
    let c = cos_small(q.y);
    return select(s / c, -c / s, (i32(q.x) & 1) != 0);
}
fn asin_small(x: f64) -> f64 {
    let z = x * x;
    let a = z * (1.66666666666666657415e-01 + z * (-3.25565818622400915405e-01 + z * (2.01212532134862925881e-01
        + z * (-4.00555345006794114027e-02 + z * (7.91534994289814532176e-04 + z * 3.47933107596021167570e-05)))));
    let b = 1.0 + z * (-2.40339491173441421878e+00 + z * (2.02094576023350569471e+00
        + z * (-6.88283971605453293030e-01 + z * 7.70381505559019352791e-02)));
    return x + x * (a / b);
}
fn atan_small(x: f64) -> f64 {
    let z = x * x;
    let w = z * z;
    let s1 = z * (3.33333333333329318027e-01 + w * (1.42857142725034663711e-01 + w * (9.09088713343650656196e-02
        + w * (6.66107313738753120669e-02 + w * (4.97687799461593236017e-02 + w * 1.62858201153657823623e-02)))));
    let s2 = w * (-1.99999999998764832476e-01 + w * (-1.11111104054623557880e-01 + w * (-7.69187620504482999495e-02
        + w * (-5.83357013379057348645e-02 + w * -3.65315727442169155270e-02))));
    return x - x * (s1 + s2);
}
fn tanh_(x: f64) -> f64 {
    let a = min(abs(x), 25.0);
    let e = expm1_(-2.0 * a);
    return select(from_parts(-e / (2.0 + e), x), x, is_nan(x));
}
fn atanh_tail(s: f64) -> f64 {
    let z = s * s;
    var q: f64 = 0.08;
    q = q * z + 0.086956521739130435;
    q = q * z + 0.095238095238095238;
    q = q * z + 0.105263157894736842;
    q = q * z + 0.117647058823529412;
    q = q * z + 0.133333333333333333;
    q = q * z + 0.153846153846153846;
    q = q * z + 0.181818181818181818;
    q = q * z + 0.222222222222222222;
    q = q * z + 0.285714285714285714;
    q = q * z + 0.4;
    q = q * z + 0.666666666666666667;
    return s * z * q;
}
fn chop(x: f64) -> f64 {
    return bitcast<f64>(bitcast<u64>(x) & 0xfffffffff8000000lu);
}
fn chop_short(x: f64) -> f64 {
    return bitcast<f64>(bitcast<u64>(x) & 0xffffffff00000000lu);
}
fn log2e_low() -> f64 {
    return 1.4426950408889634074 - chop(1.4426950408889634074) + 2.0355273740931033e-17;
}
fn exp2_fraction(n: f64, r: f64) -> f64 {
    return scale(1.0 + expm1_small(r * 0.693147180559945309), i32(n));
}
fn fmod_exact(x: f64, y: f64) -> f64 {
    let bx = bitcast<u64>(x);
    let by = bitcast<u64>(y);
    if (bx < by) { return x; }
    let lead = 0x0010000000000000lu;
    let ex = max(u32(bx >> 52u), 1u);
    let ey = max(u32(by >> 52u), 1u);
    let my = (by & (lead - 1lu)) | select(0lu, lead, by >= lead);
    var r = ((bx & (lead - 1lu)) | select(0lu, lead, bx >= lead)) % my;
    for (var left = ex - ey; left > 0u;) {
        let step = min(left, 11u);
        r = (r << step) % my;
        left -= step;
    }
    if (r == 0lu) { return 0.0; }
    var e = ey;
    for (; e > 1u && r < lead; e--) {
        r = r << 1u;
    }
    return bitcast<f64>(select((r & (lead - 1lu)) | (u64(e) << 52u), r, r < lead));
}
