// Elementary functions in float32, to one or two units in the last place wherever the argument lies.
// WGSL's own exp, log, sin, pow ... may be off by thousands of units or undefined for large arguments. Polynomials
// are those of Cephes and of FreeBSD's msun. Arguments are split by integer operations where it matters, because
// a compiler may contract or reorder float arithmetic.

// @for f32
fn nearest(x: f32) -> f32 {
    return round(x);
}
// A number that takes part in no reordering and is not fused with the sum it goes into.
fn opaque(x: f32) -> f32 {
    return bitcast<f32>(bits_(bitcast<u32>(x)));
}
// e^r - 1 for |r| <= ln(2)/2.
fn expm1_small(r: f32) -> f32 {
    let q = ((((1.9875691500e-4 * r + 1.3981999507e-3) * r + 8.3334519073e-3) * r + 4.1665795894e-2) * r
        + 1.6666665459e-1) * r + 5.0000001201e-1;
    return q * r * r + r;
}
// y * 2^n in two steps, so that the ends of the range are reached.
fn scale(y: f32, n: i32) -> f32 {
    let half = n >> 1u;
    return y * two_to(half) * two_to(n - half);
}
fn exp_(x: f32) -> f32 {
    let t = clamp(x, -104.0, 89.0);
    let n = round(t * 1.44269504088896341);
    let r = fma(n, 2.12194440e-4, fma(-n, 0.693359375, t));
    return select(scale(1.0 + expm1_small(r), i32(n)), x, is_nan(x));
}
fn exp2_(x: f32) -> f32 {
    let t = clamp(x, -151.0, 129.0);
    let n = round(t);
    return select(scale(1.0 + expm1_small((t - n) * 0.693147180559945309), i32(n)), x, is_nan(x));
}
fn expm1_(x: f32) -> f32 {
    if (is_nan(x) || abs(x) < 3.0e-8) { return x; }
    let t = clamp(x, -26.0, 89.0);
    let n = round(t * 1.44269504088896341);
    let r = fma(n, 2.12194440e-4, fma(-n, 0.693359375, t));
    let k = i32(n);
    if (k > 30) { return scale(1.0 + expm1_small(r), k); }
    let s = two_to(k);
    return s * expm1_small(r) + (s - 1.0);
}
// ln(1 + f) for f in [sqrt(1/2) - 1, sqrt(2) - 1].
fn ln_1p_small(f: f32) -> f32 {
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let tail = z * (0.66666662693 + w * 0.28498786688) + w * (0.40000972152 + w * 0.24279078841);
    let half = 0.5 * f * f;
    return f - (half - s * (half + tail));
}
// x = 2^e * m with m in [sqrt(1/2), sqrt(2)): (e, m - 1), for positive finite x. Subnormals are taken as integers.
fn split_log(x: f32) -> vec2<f32> {
    let b = bitcast<u32>(x);
    let tiny = b < 0x00800000u;
    let v = select(b, bitcast<u32>(f32(b)), tiny) + (0x3f800000u - 0x3f3504f3u);
    let e = i32(v >> 23u) - 127 - select(0, 149, tiny);
    return vec2<f32>(f32(e), bitcast<f32>((v & 0x007fffffu) + 0x3f3504f3u) - 1.0);
}
// The logarithm of arguments that are not positive and finite; `y` otherwise.
fn log_domain(x: f32, y: f32) -> f32 {
    let b = bitcast<u32>(x);
    let special = select(select(nan_(), x, b == 0x7f800000u || is_nan(x)), -inf_(), (b & 0x7fffffffu) == 0u);
    return select(y, special, b >= 0x7f800000u || b == 0u);
}
fn ln_(x: f32) -> f32 {
    let s = split_log(x);
    return log_domain(x, s.x * 6.9313812256e-01 + (ln_1p_small(s.y) + s.x * 9.0580006145e-06));
}
fn log2_(x: f32) -> f32 {
    let s = split_log(x);
    return log_domain(x, s.x + ln_1p_small(s.y) * 1.44269504088896341);
}
fn log10_(x: f32) -> f32 {
    let s = split_log(x);
    return log_domain(x, s.x * 3.0102920532e-01 + (ln_1p_small(s.y) * 0.434294481903251828 + s.x * 7.9034151668e-07));
}
fn log1p_(x: f32) -> f32 {
    if (is_nan(x) || abs(x) < 3.0e-8) { return x; }
    if (x > -0.29 && x < 0.41) { return ln_1p_small(x); }
    return ln_(1.0 + x);
}

fn two_over_pi(i: u32) -> u32 {
    var bits = array<u32, 8>(0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu);
    return bits[i];
}
fn two_over_pi_at(bit: u32) -> u32 {
    let i = bit >> 5u;
    let s = bit & 31u;
    return select((two_over_pi(i) << s) | (two_over_pi(i + 1u) >> (32u - max(s, 1u))), two_over_pi(i), s == 0u);
}
// Payne and Hanek: x modulo pi/2 for large x by exact integer products with the bits of 2/pi that matter.
fn reduce_large(x: f32) -> vec2<f32> {
    let b = bitcast<u32>(x);
    let m = (b & 0x007fffffu) | 0x00800000u;
    let at = ((b >> 23u) & 0xffu) - 150u - 2u + 32u;
    let p0 = m * two_over_pi_at(at);
    let p1 = mul_wide(m, two_over_pi_at(at + 32u));
    let p2 = mul_wide(m, two_over_pi_at(at + 64u));
    let low = p1.y + p2.x;
    let high = p0 + p1.x + select(0u, 1u, low < p1.y);
    let f = (high << 2u) | (low >> 30u);
    let g = (low << 2u) | (p2.y >> 30u);
    // Round to the nearest quadrant: a fraction of a half or more counts down from the next.
    let up = (f >> 31u) != 0u;
    let fu = select(f, ~f, up);
    let gu = select(g, ~g, up);
    let r = (f32(fu) * 2.3283064365386963e-10 + f32(gu) * 5.421010862427522e-20) * 1.57079632679489662;
    let quadrant = (high >> 30u) + select(0u, 1u, up);
    let negative = (b >> 31u) != 0u;
    return vec2<f32>(f32(select(quadrant, 4u - (quadrant & 3u), negative) & 3u), select(r, -r, up != negative));
}
// (quadrant, remainder) of x modulo pi/2.
fn reduce_angle(x: f32) -> vec2<f32> {
    if (abs(x) > 200.0) { return reduce_large(x); }
    let n = round(x * 0.636619772367581343);
    let r = fma(-n, 7.54978995489188216e-8, fma(-n, 4.837512969970703125e-4, fma(-n, 1.5703125, x)));
    return vec2<f32>(f32(i32(n) & 3), r);
}
fn sin_small(r: f32) -> f32 {
    let z = r * r;
    return ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1) * z * r + r;
}
fn cos_small(r: f32) -> f32 {
    let z = r * r;
    return ((2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2) * z * z - 0.5 * z + 1.0;
}
fn sin_(x: f32) -> f32 {
    if (is_nan(x) || abs(x) < 2.0e-4) { return x; }
    if (is_inf(x)) { return nan_(); }
    let q = reduce_angle(x);
    let n = i32(q.x);
    let y = select(sin_small(q.y), cos_small(q.y), (n & 1) != 0);
    return select(y, -y, (n & 2) != 0);
}
fn cos_(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    if (is_inf(x)) { return nan_(); }
    let q = reduce_angle(x);
    let n = i32(q.x) + 1;
    let y = select(sin_small(q.y), cos_small(q.y), (n & 1) != 0);
    return select(y, -y, (n & 2) != 0);
}
fn tan_(x: f32) -> f32 {
    if (is_nan(x) || abs(x) < 2.0e-4) { return x; }
    if (is_inf(x)) { return nan_(); }
    let q = reduce_angle(x);
    let z = q.y * q.y;
    let y = (((((9.38540185543e-3 * z + 3.11992232697e-3) * z + 2.44301354525e-2) * z + 5.34112807005e-2) * z
        + 1.33387994085e-1) * z + 3.33331568548e-1) * z * q.y + q.y;
    return select(y, -1.0 / y, (i32(q.x) & 1) != 0);
}
// asin for |x| <= 1/2.
fn asin_small(x: f32) -> f32 {
    let z = x * x;
    return ((((4.2163199048e-2 * z + 2.4181311049e-2) * z + 4.5470025998e-2) * z + 7.4953002686e-2) * z
        + 1.6666752422e-1) * z * x + x;
}
// atan for 0 <= x <= tan(pi/8).
fn atan_small(x: f32) -> f32 {
    let z = x * x;
    return (((8.05374449538e-2 * z - 1.38776856032e-1) * z + 1.99777106478e-1) * z - 3.33329491539e-1) * z * x + x;
}
fn tanh_(x: f32) -> f32 {
    let a = min(abs(x), 10.0);
    let z = a * a;
    let small = ((((-5.70498872745e-3 * z + 2.06390887954e-2) * z - 5.37397155531e-2) * z + 1.33314422036e-1) * z
        - 3.33332819422e-1) * z * a + a;
    let y = select(1.0 - 2.0 / (exp_(2.0 * a) + 1.0), small, a < 0.625);
    return select(from_parts(y, x), x, is_nan(x));
}
// The tail of ln((1 + s) / (1 - s)) - 2 s.
fn atanh_tail(s: f32) -> f32 {
    let z = s * s;
    return s * z * (0.66666666666666663 + z * (0.4 + z * (0.2857142857142857 + z * (0.22222222222222221 + z * 0.19))));
}
// The leading half of the significand: products of two such numbers are exact.
fn chop(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u);
}
fn chop_short(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & 0xffffe000u);
}
