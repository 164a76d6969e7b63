// A reduction, one invocation for each output: a plain loop over the reduced elements, in order.
// Nothing is shared between invocations.
// Part of reduce.wgsl, chosen where outputs are many or short.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let o = g.y * (groups.x * 256u) + g.x;
    if (o >= {{outputs}}) {
        return;
    }
    var total = T({{init}});
    for (var first = 0u; first < {{count}}; first += 64u) {
        var part = T({{init}});
        let last = min(first + 64u, {{count}});
        for (var r = first; r < last; r++) {
            part = combine(part, load(o, r));
        }
        total = combine(total, part);
    }
    write_out({{out}} + walk_out(o), finish(o, total));
}
