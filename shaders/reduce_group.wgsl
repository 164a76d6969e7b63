// A reduction, one workgroup for each output: invocations stride over the reduced elements, then fold their
// partial results in workgroup memory by halves, in an order that depends only on the sizes.
// Part of reduce.wgsl, chosen where outputs are few and long.
var<workgroup> parts: array<T, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let unit = g.y * groups.x + g.x;
    let o = min(unit / {{splits}}, {{outputs}} - 1u);
    let first = (unit % {{splits}}) * {{chunk}};
    let last = min(first + {{chunk}}, {{count}});
    var part = T({{init}});
    for (var r = first + lane; r < last; r += 256u) {
        part = combine(part, load(o, r));
    }
    parts[lane] = part;
    for (var width = 128u; width > 0u; width = width >> 1u) {
        workgroupBarrier();
        if (lane < width) {
            parts[lane] = combine(parts[lane], parts[lane + width]);
        }
    }
    if (lane == 0u && unit < {{outputs}} * {{splits}}) {
        write_out({{out}} + walk_out(unit), finish(o, parts[0]));
    }
}
