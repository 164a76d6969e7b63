// A product that is not fused with the sum it goes into: its bits pass through an operation on integers.
fn times(a: f32, b: f32) -> f32 {
    return opaque(a * b);
}
fn unit(w: u32) -> f32 {
    return f32(w >> 8u) * 5.9604644775390625e-8;
}
fn positive_unit(w: u32) -> f32 {
    return (f32(w >> 8u) + 1.0) * 5.9604644775390625e-8;
}
fn ln_exact(x: f32) -> f32 {
    let v = bitcast<u32>(x) - 0x3f3504f3u + (127u << 23u);
    let f = bitcast<f32>((v & 0x7fffffu) + 0x3f3504f3u) - 1.0;
    let e = f32(i32(v >> 23u) - 127);
    let s = quotient(f, 2.0 + f);
    let half = times(0.5 * f, f);
    let z = times(s, s);
    let tail = times(z, times(times(0.2964203, z) + 0.39987972, z) + 0.6666667);
    let b = times(s, half + tail);
    return times(e, 0.6933594) + (f - (half - (times(e, -0.00021219444) + b)));
}
// (cos, sin) of t full turns, 0 <= t < 1.
fn turn(t: f32) -> vec2<f32> {
    let four = t * 4.0;
    let n = round(four);
    let r = times(four - n, 1.57079632679489662);
    let z = times(r, r);
    let sin_tail = times(times(-0.00019573368, z) + 0.008332711, z) - 0.16666667;
    let s = times(times(r, z), sin_tail) + r;
    let cos_tail = times(times(2.4514762e-5, z) - 0.0013888162, z) + 0.041666668;
    let c = times(times(z, z), cos_tail) + (1.0 - times(0.5, z));
    let quadrant = u32(n);
    let y = select(vec2<f32>(c, s), vec2<f32>(-s, c), (quadrant & 1u) != 0u);
    return select(y, -y, (quadrant & 2u) != 0u);
}
fn normal_pair(a: u32, b: u32) -> vec2<f32> {
    let r = sqrt_(-2.0 * ln_exact(positive_unit(a)));
    let t = turn(unit(b));
    return vec2<f32>(times(r, t.x), times(r, t.y));
}
fn ranged(u: vec4<f32>, width: f32, base: f32) -> array<f32, 4> {
    return array<f32, 4>(
        times(u.x, width) + base, times(u.y, width) + base, times(u.z, width) + base, times(u.w, width) + base
    );
}
