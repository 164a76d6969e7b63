// A scan, one invocation for each line: a plain loop that carries the running value along.
// Nothing is shared between invocations.
// Part of scan.wgsl, chosen where lines are many and lie beside each other, or short.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let line = g.y * (groups.x * 256u) + g.x;
    if (line >= {{lines}}) {
        return;
    }
    var total = begun(line);
    var at = 0u;
    for (var i = 0u; i < {{length}}; i++) {
        let v = element(line, i);
        let fresh = !{{goes_on}} && i == 0u;
        at = select(at, i, fresh || takes(total, v));
        total = select(combine(total, v), v, fresh);
        store(line, i, total, at);
    }
}
