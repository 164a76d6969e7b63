// A reduction of outputs that lie beside each other: ACROSS invocations fold ACROSS neighbouring outputs, so that they
// read neighbours, and DOWN rows of them share the reduced elements and fold their partial results in workgroup memory.
// Part of reduce.wgsl, chosen where the kept dimension is the innermost.
const ACROSS = 32u;
const DOWN = 8u;
var<workgroup> parts: array<T, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let unit = g.y * groups.x + g.x;
    let split = unit % {{splits}};
    let wanted = unit / {{splits}} * ACROSS + lane % ACROSS;
    let o = min(wanted, {{outputs}} - 1u);
    let last = min((split + 1u) * {{chunk}}, {{count}});
    var part = T({{init}});
    for (var r = split * {{chunk}} + lane / ACROSS; r < last; r += DOWN) {
        part = combine(part, load(o, r));
    }
    parts[lane] = part;
    for (var width = DOWN / 2u; width > 0u; width = width >> 1u) {
        workgroupBarrier();
        if (lane < width * ACROSS) {
            parts[lane] = combine(parts[lane], parts[lane + width * ACROSS]);
        }
    }
    if (lane < ACROSS && wanted < {{outputs}}) {
        write_out({{out}} + walk_out(o * {{splits}} + split), finish(o, parts[lane]));
    }
}
