// Comparisons, selection and logic: values of `T`, one or zero, right for NaN and signed zeros on every device.
// Floats compare by an integer key that orders their bits, because a fast-math compiler may turn `<` around.

// @for f32
fn key_(x: f32) -> i32 {
    let b = bitcast<i32>(x);
    return select(b, -(b & 0x7fffffff), b < 0);
}
// @for f64
fn key_(x: f64) -> i64 {
    let b = bitcast<i64>(x);
    return select(b, -bitcast<i64>(bitcast<u64>(b) & 0x7ffffffffffffffflu), b < i64(0));
}
// @for int
fn key_(x: T) -> T {
    return x;
}

// @for all
fn flag(c: bool) -> T {
    return select(T(0), T(1), c);
}
fn unordered(x: T, y: T) -> bool {
    return is_nan(x) || is_nan(y);
}
fn less(x: T, y: T) -> bool {
    return key_(x) < key_(y) && !unordered(x, y);
}
// The order of a sort: NaN is the largest.
fn ordered(a: T, b: T) -> bool {
    return less(a, b) || (is_nan(b) && !is_nan(a));
}
fn same(x: T, y: T) -> bool {
    return key_(x) == key_(y) && !unordered(x, y);
}
fn eq_(x: T, y: T) -> T {
    return flag(same(x, y));
}
fn ne_(x: T, y: T) -> T {
    return flag(!same(x, y));
}
fn lt_(x: T, y: T) -> T {
    return flag(less(x, y));
}
fn gt_(x: T, y: T) -> T {
    return flag(less(y, x));
}
fn le_(x: T, y: T) -> T {
    return flag(key_(x) <= key_(y) && !unordered(x, y));
}
fn ge_(x: T, y: T) -> T {
    return flag(key_(x) >= key_(y) && !unordered(x, y));
}
fn isnan_(x: T) -> T {
    return flag(is_nan(x));
}
fn isinf_(x: T) -> T {
    return flag(is_inf(x));
}
fn isposinf_(x: T) -> T {
    return flag(is_inf(x) && !is_negative(x));
}
fn isneginf_(x: T) -> T {
    return flag(is_inf(x) && is_negative(x));
}
fn isfinite_(x: T) -> T {
    return flag(!is_inf(x) && !is_nan(x));
}
fn signbit_(x: T) -> T {
    return flag(is_negative(x));
}
fn logical_not_(x: T) -> T {
    return flag(!truth(x));
}
fn logical_and_(x: T, y: T) -> T {
    return flag(truth(x) && truth(y));
}
fn logical_or_(x: T, y: T) -> T {
    return flag(truth(x) || truth(y));
}
fn logical_xor_(x: T, y: T) -> T {
    return flag(truth(x) != truth(y));
}
// `c` is nonzero where `x` is taken.
fn where_(c: T, x: T, y: T) -> T {
    return select(y, x, truth(c));
}
// A NaN operand is the result, as in PyTorch.
fn max_(x: T, y: T) -> T {
    return select(select(x, y, (less(x, y) || is_nan(y))), x, is_nan(x));
}
fn min_(x: T, y: T) -> T {
    return select(select(x, y, (less(y, x) || is_nan(y))), x, is_nan(x));
}
// The number wins over a NaN.
fn fmax_(x: T, y: T) -> T {
    return select(select(x, y, less(x, y)), y, is_nan(x));
}
fn fmin_(x: T, y: T) -> T {
    return select(select(x, y, less(y, x)), y, is_nan(x));
}
fn clamp_(x: T, low: T, high: T) -> T {
    return min_(max_(x, low), high);
}
fn relu_(x: T) -> T {
    return select(x, T(0), less(x, T(0)));
}
fn neg_(x: T) -> T {
    return -x;
}
fn square_(x: T) -> T {
    return x * x;
}
fn lerp_(x: T, y: T, weight: T) -> T {
    return select(y - (y - x) * (T(1) - weight), x + weight * (y - x), less(abs_(weight), T(1) / T(2)));
}

// @for float
fn abs_(x: T) -> T {
    return from_parts(x, T(0));
}
fn sign_(x: T) -> T {
    return select(flag(less(T(0), x)) - flag(less(x, T(0))), x, is_nan(x));
}
fn copysign_(x: T, y: T) -> T {
    return from_parts(x, y);
}
// @for int
fn abs_(x: T) -> T {
    return max(x, -x);
}
fn sign_(x: T) -> T {
    return flag(x > T(0)) - flag(x < T(0));
}
fn and_(x: T, y: T) -> T {
    return x & y;
}
fn or_(x: T, y: T) -> T {
    return x | y;
}
fn xor_(x: T, y: T) -> T {
    return x ^ y;
}
fn not_(x: T) -> T {
    return ~x;
}
fn gcd_(x: T, y: T) -> T {
    var a = abs_(x);
    var b = abs_(y);
    while (b != T(0)) {
        let r = a % b;
        a = b;
        b = r;
    }
    return a;
}
fn lcm_(x: T, y: T) -> T {
    let g = gcd_(x, y);
    if (g == T(0)) { return g; }
    return abs_((x / g) * y);
}
// @for i32
fn shl_(x: i32, y: i32) -> i32 {
    return select(x << (u32(y) & 31u), 0, u32(y) > 31u);
}
fn shr_(x: i32, y: i32) -> i32 {
    return x >> min(u32(y), 31u);
}
// @for i64
// By the sign's mask: as a selection lavapipe loses it where the operand was widened from i32.
fn abs_(x: i64) -> i64 {
    let sign = x >> 63u;
    return (x ^ sign) - sign;
}
fn shl_(x: i64, y: i64) -> i64 {
    return select(x << (u32(y) & 63u), i64(0), bitcast<u64>(y) > u64(63));
}
fn shr_(x: i64, y: i64) -> i64 {
    return x >> select(u32(y), 63u, bitcast<u64>(y) > u64(63));
}
fn lowest_() -> i64 {
    return i64(1) << 63u;
}
fn highest_() -> i64 {
    return ~(i64(1) << 63u);
}
// @for i32
fn lowest_() -> i32 {
    return -2147483647 - 1;
}
fn highest_() -> i32 {
    return 2147483647;
}
// @for float
fn lowest_() -> T {
    return -inf_();
}
fn highest_() -> T {
    return inf_();
}
fn finite(x: T) -> T {
    return select(x, T(0), is_inf(x));
}

// @for bool
fn not_(x: i32) -> i32 {
    return 1 - x;
}
