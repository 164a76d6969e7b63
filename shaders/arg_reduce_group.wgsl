// The position of an extreme, one workgroup for each output: invocations stride over the reduced elements,
// then halve their candidates in workgroup memory. Equal values keep the first position.
// Part of arg_reduce.wgsl, chosen where outputs are few and long.
var<workgroup> best: array<T, 256>;
var<workgroup> place: array<u32, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let unit = g.y * groups.x + g.x;
    let o = min(unit, {{outputs}} - 1u);
    let base = {{x}} + walk_kept(o);
    var at = min(lane, {{count}} - 1u);
    var top = read_x(base + walk_reduced(at));
    for (var r = lane + 256u; r < {{count}}; r += 256u) {
        let v = read_x(base + walk_reduced(r));
        if (wins(v, r, top, at)) {
            top = v;
            at = r;
        }
    }
    best[lane] = top;
    place[lane] = at;
    for (var width = 128u; width > 0u; width = width >> 1u) {
        workgroupBarrier();
        if (lane < width && wins(best[lane + width], place[lane + width], best[lane], place[lane])) {
            best[lane] = best[lane + width];
            place[lane] = place[lane + width];
        }
    }
    if (lane == 0u && unit < {{outputs}}) {
        store(o, best[0], place[0]);
    }
}
