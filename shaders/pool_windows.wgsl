// One dimension of pooling: the window of a result as (first element, how many, extent with the padding), and the results
// whose windows cover an element as (first, end). A kernel of zero stands for adaptive windows.
fn window_@(o: u32) -> vec3<u32> {
    let size = {{@_size}};
    if ({{@_kernel}} == 0u) {
        let start = o * size / {{@_out}};
        let count = ((o + 1u) * size + {{@_out}} - 1u) / {{@_out}} - start;
        return vec3<u32>(start, count, count);
    }
    let at = o * {{@_stride_of}};
    let skipped = select(0u, ({{@_padding}} - at + {{@_step}} - 1u) / {{@_step}}, at < {{@_padding}});
    let start = at + skipped * {{@_step}} - {{@_padding}};
    let within = select(0u, (size - 1u - start) / {{@_step}} + 1u, start < size);
    let count = min({{@_kernel}} - min(skipped, {{@_kernel}}), within);
    return vec3<u32>(start, count, min(at + {{@_kernel}}, size + 2u * {{@_padding}}) - at);
}
fn covering_@(i: u32) -> vec2<u32> {
    let size = {{@_size}};
    if ({{@_kernel}} == 0u) {
        return vec2<u32>(i * {{@_out}} / size, ((i + 1u) * {{@_out}} + size - 1u) / size);
    }
    let at = i + {{@_padding}};
    let first = select(0u, (at - {{@_kernel}}) / {{@_stride_of}} + 1u, at >= {{@_kernel}});
    return vec2<u32>(first, min(at / {{@_stride_of}} + 1u, {{@_out}}));
}
