// A scan, one invocation for each line: a plain loop that carries the running value along.
// Nothing is shared between invocations.
// Part of scan.wgsl, chosen where lines are many or short.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let line = g.y * (groups.x * 256u) + g.x;
    if (line >= {{lines}}) {
        return;
    }
    var total = element(line, 0u);
    var at = 0u;
    store(line, 0u, total, at);
    for (var i = 1u; i < {{length}}; i++) {
        let v = element(line, i);
        at = select(at, i, takes(total, v));
        total = combine(total, v);
        store(line, i, total, at);
    }
}
