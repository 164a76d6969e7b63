// Sampling at the points of a grid [batch, points, DIMS], and its gradients. Images are volumes of depth one. A point reads COUNT
// neighbours in each dimension; those outside count as zero.
{{declarations}}
const SAMPLING = {{sampling}}u;
const OUTSIDE = {{outside}}u;
const ALIGN = {{align}};
const DIMS = {{dims}}u;
const COUNT = {{count}}u;

struct Near {
    at: i32,
    weight: T,
    slope: T,
}

fn combine(old: T, v: T) -> T {
    return old + v;
}
fn size_of(d: u32) -> u32 {
    return select(select({{n2}}, {{n1}}, d == 1u), {{n0}}, d == 0u);
}
// The neighbours in a dimension: one in the depth of an image.
fn count_of(d: u32) -> u32 {
    return select(COUNT, 1u, d + DIMS < 3u);
}
// A position back inside, and the slope: zero at the borders and beyond.
fn clipped(at: T, last: T) -> vec2<T> {
    if (is_nan(at) || at <= T(0)) {
        return vec2<T>(T(0), T(0));
    }
    return select(vec2<T>(at, T(1)), vec2<T>(last, T(0)), at >= last);
}
fn reflected(at: T, size: T) -> vec2<T> {
    let low = select(T(-0.5), T(0), ALIGN);
    let span = select(size, size - T(1), ALIGN);
    if (span == T(0)) {
        return vec2<T>(T(0), T(0));
    }
    let moved = at - low;
    let sign = select(T(1), T(-1), moved < T(0));
    let distance = abs(moved);
    let flips = floor(distance / span);
    let extra = distance - flips * span;
    let odd = flips - T(2) * floor(flips * T(0.5)) != T(0);
    return select(vec2<T>(extra + low, sign), vec2<T>(span - extra + low, -sign), odd);
}
fn inside(at: T, size: T) -> vec2<T> {
    if (OUTSIDE == 0u) {
        return vec2<T>(at, T(1));
    }
    if (OUTSIDE == 1u) {
        return clipped(at, size - T(1));
    }
    let back = reflected(at, size);
    let kept = clipped(back.x, size - T(1));
    return vec2<T>(kept.x, kept.y * back.y);
}
fn position(at: T, size: T) -> i32 {
    if (is_nan(at) || !(at >= T(0) && at < size)) {
        return -1;
    }
    return i32(at);
}
// Cubic convolution with a = -3/4 at a signed distance, and its slope.
fn cubic(x: T) -> vec2<T> {
    let d = abs(x);
    let sign = select(T(1), T(-1), x < T(0));
    if (d <= T(1)) {
        return vec2<T>((T(1.25) * d - T(2.25)) * d * d + T(1), (T(3.75) * d - T(4.5)) * d * sign);
    }
    return vec2<T>(((T(-0.75) * d + T(3.75)) * d - T(6)) * d + T(3), ((T(-2.25) * d + T(7.5)) * d - T(6)) * sign);
}
// Neighbour k of a point in dimension d.
fn near(point: u32, d: u32, k: u32) -> Near {
    if (d + DIMS < 3u) {
        return Near(0, T(1), T(0));
    }
    let size = T(size_of(d));
    let x = read_grid({{grid}} + point * DIMS + (2u - d)) + T(1);
    let at = select((x * size - T(1)) / T(2), x / T(2) * (size - T(1)), ALIGN);
    let scale = select(size, size - T(1), ALIGN) / T(2);
    if (SAMPLING == 1u) {
        return Near(position(round_(inside(at, size).x), size), T(1), T(0));
    }
    if (SAMPLING == 2u) {
        let low = floor(at);
        let step = T(k) - T(1);
        let weight = cubic(at - low - step);
        return Near(position(inside(low + step, size).x, size), weight.x, weight.y * scale);
    }
    let kept = inside(at, size);
    let low = floor(kept.x);
    let part = kept.x - low;
    let slope = kept.y * scale;
    if (k == 0u) {
        return Near(position(low, size), T(1) - part, -slope);
    }
    return Near(position(low + T(1), size), part, slope);
}
// The place of three neighbours in a channel; negative outside.
fn place(a: Near, b: Near, c: Near) -> i32 {
    if (a.at < 0 || b.at < 0 || c.at < 0) {
        return -1;
    }
    return (a.at * i32({{n1}}) + b.at) * i32({{n2}}) + c.at;
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let unit = id.y * (groups.x * 256u) + id.x;
    if (unit >= {{units}}) {
        return;
    }
    {{body}}
}
