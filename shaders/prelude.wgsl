// Conversions and bit-level basics. Items are picked by name; `T` is the compute type (see gpu/template.rs).
// Comparisons with NaN, and NaN or infinity themselves, are only ever decided on bits: WGSL arithmetic is fast-math.

// @for all
// 64-bit product of two words: (high, low).
fn mul_wide(a: u32, b: u32) -> vec2<u32> {
    let al = a & 0xffffu;
    let ah = a >> 16u;
    let bl = b & 0xffffu;
    let bh = b >> 16u;
    let low = al * bl;
    let mid = ah * bl + (low >> 16u);
    let mid2 = al * bh + (mid & 0xffffu);
    return vec2<u32>(ah * bh + (mid >> 16u) + (mid2 >> 16u), a * b);
}
fn f16_to_f32(h: u32) -> f32 {
    let sign = (h & 0x8000u) << 16u;
    let em = h & 0x7fffu;
    // Subnormals go through an integer conversion, so that no device can flush them.
    let small = bitcast<u32>(f32(em) * 5.9604644775390625e-8);
    let normal = select((em << 13u) + 0x38000000u, (em << 13u) + 0x70000000u, em >= 0x7c00u);
    return bitcast<f32>(sign | select(normal, small, em < 0x400u));
}
fn f32_to_f16(v: f32) -> u32 {
    let b = bitcast<u32>(v);
    let sign = (b >> 16u) & 0x8000u;
    let a = b & 0x7fffffffu;
    if (a > 0x7f800000u) { return sign | 0x7e00u; }
    if (a >= 0x47800000u) { return sign | 0x7c00u; }
    if (a >= 0x38800000u) {
        return sign | ((a + 0xfffu + ((a >> 13u) & 1u) - 0x38000000u) >> 13u);
    }
    let e = a >> 23u;
    if (e < 102u) { return sign; }
    let shift = 126u - e;
    let m = (a & 0x7fffffu) | 0x800000u;
    let q = m >> shift;
    let rest = m & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    return sign | (q + select(0u, 1u, rest > half || (rest == half && (q & 1u) == 1u)));
}
fn f32_to_bf16(v: f32) -> u32 {
    let b = bitcast<u32>(v);
    let rounded = (b + 0x7fffu + ((b >> 16u) & 1u)) >> 16u;
    return select(rounded, (b >> 16u) | 0x40u, (b & 0x7fffffffu) > 0x7f800000u);
}
// Out of range or NaN gives the smallest integer, as x86's conversion does in PyTorch.
fn f32_to_i32(v: f32) -> i32 {
    let a = bitcast<u32>(v) & 0x7fffffffu;
    return select(i32(-2147483647 - 1), i32(v), a < 0x4f000000u);
}
fn f32_to_i64(v: f32) -> i64 {
    let a = bitcast<u32>(v) & 0x7fffffffu;
    return select(i64(1) << 63u, i64(v), a < 0x5f000000u);
}
fn f64_to_i32(v: f64) -> i32 {
    return i32(f64_to_i64(v));
}
fn f64_to_i64(v: f64) -> i64 {
    let a = bitcast<u64>(v) & 0x7ffffffffffffffflu;
    return select(i64(1) << 63u, i64(v), a < 0x43e0000000000000lu);
}
fn truth_f32(v: f32) -> bool {
    return (bitcast<u32>(v) & 0x7fffffffu) != 0u;
}
fn truth_f64(v: f64) -> bool {
    return (bitcast<u64>(v) & 0x7ffffffffffffffflu) != 0lu;
}
fn truth_i32(v: i32) -> bool {
    return v != 0;
}
fn truth_i64(v: i64) -> bool {
    return v != i64(0);
}

// @for f32
fn truth(v: f32) -> bool {
    return truth_f32(v);
}
fn is_nan(v: f32) -> bool {
    return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u;
}
fn is_inf(v: f32) -> bool {
    return (bitcast<u32>(v) & 0x7fffffffu) == 0x7f800000u;
}
fn is_negative(v: f32) -> bool {
    return (bitcast<u32>(v) >> 31u) != 0u;
}
fn inf_() -> f32 {
    return bitcast<f32>(bits_(0x7f800000u));
}
fn nan_() -> f32 {
    return bitcast<f32>(bits_(0x7fc00000u));
}
fn from_parts(magnitude: f32, sign: f32) -> f32 {
    return bitcast<f32>((bitcast<u32>(magnitude) & 0x7fffffffu) | (bitcast<u32>(sign) & 0x80000000u));
}
fn two_to(n: i32) -> f32 {
    return bitcast<f32>(bitcast<u32>(n + 127) << 23u);
}

// @for f64
fn truth(v: f64) -> bool {
    return truth_f64(v);
}
fn is_nan(v: f64) -> bool {
    return (bitcast<u64>(v) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu;
}
fn is_inf(v: f64) -> bool {
    return (bitcast<u64>(v) & 0x7ffffffffffffffflu) == 0x7ff0000000000000lu;
}
fn is_negative(v: f64) -> bool {
    return (bitcast<u64>(v) >> 63u) != 0lu;
}
fn inf_() -> f64 {
    return bitcast<f64>(u64(bits_(0x7ff00000u)) << 32u);
}
fn nan_() -> f64 {
    return bitcast<f64>(u64(bits_(0x7ff80000u)) << 32u);
}
// Not `(m & mask) | (s & ~mask)`: LLVM 15 (Mesa 22) makes that one ternary-logic instruction on AVX-512 and gets it wrong.
fn from_parts(magnitude: f64, sign: f64) -> f64 {
    let m = bitcast<f64>(bitcast<u64>(magnitude) & 0x7ffffffffffffffflu);
    return select(m, -m, is_negative(sign));
}
fn two_to(n: i32) -> f64 {
    return bitcast<f64>(u64(n + 1023) << 52u);
}

// @for i32 i64
fn truth(v: T) -> bool {
    return v != T(0);
}
fn is_nan(v: T) -> bool {
    return false;
}
fn is_inf(v: T) -> bool {
    return false;
}
fn is_negative(v: T) -> bool {
    return v < T(0);
}

// @for all
// A bit pattern that the shader compiler cannot fold: constant infinities and NaNs are errors in WGSL.
fn bits_(b: u32) -> u32 {
    return b | p[0].w;
}
var<workgroup> row_parts: array<T, 256>;
// The sum over the LANES invocations that share a row (a power of two, a constant of the kernel), for each of them.
fn row_sum(part: T, local: u32) -> T {
    row_parts[local] = part;
    for (var width = LANES / 2u; width > 0u; width = width >> 1u) {
        workgroupBarrier();
        if (local % LANES < width) {
            row_parts[local] += row_parts[local + width];
        }
    }
    workgroupBarrier();
    let sum = row_parts[local - local % LANES];
    workgroupBarrier();
    return sum;
}
// The maximum over them, NaN if one of them is.
fn row_max(part: T, local: u32) -> T {
    row_parts[local] = part;
    for (var width = LANES / 2u; width > 0u; width = width >> 1u) {
        workgroupBarrier();
        if (local % LANES < width) {
            row_parts[local] = max_(row_parts[local], row_parts[local + width]);
        }
    }
    workgroupBarrier();
    let top = row_parts[local - local % LANES];
    workgroupBarrier();
    return top;
}
