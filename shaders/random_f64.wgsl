// Uniform and normal numbers in 64 bits: two Philox words make the 53 bits of a fraction.
// The same words and the same arithmetic as the CPU, so both devices draw the same numbers.
// Part of random.wgsl, for devices with 64-bit floats.
fn top_53(low: u32, high: u32) -> f64 {
    return f64(((u64(high) << 32u) | u64(low)) >> 11u);
}
fn unit(low: u32, high: u32) -> f64 {
    return top_53(low, high) * 1.1102230246251565e-16;
}
fn positive_unit(low: u32, high: u32) -> f64 {
    return (top_53(low, high) + 1.0) * 1.1102230246251565e-16;
}
fn normal_pair(w: vec4<u32>) -> vec2<f64> {
    let r = sqrt(-2.0 * ln_(positive_unit(w.x, w.y)));
    let four = unit(w.z, w.w) * 4.0;
    let n = nearest(four);
    let angle = (four - n) * 1.57079632679489661923;
    let s = sin_small(angle);
    let c = cos_small(angle);
    let quadrant = u32(n);
    let y = select(vec2<f64>(c, s), vec2<f64>(-s, c), (quadrant & 1u) != 0u);
    return r * select(y, -y, (quadrant & 2u) != 0u);
}
