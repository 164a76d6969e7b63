// The position of an extreme, one invocation for each output: a plain loop over the reduced elements.
// Equal values keep the first position.
// Part of arg_reduce.wgsl, chosen where outputs are many or short.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let o = g.y * (groups.x * 256u) + g.x;
    if (o >= {{outputs}}) {
        return;
    }
    let base = {{x}} + walk_kept(o);
    var top = read_x(base + walk_reduced(0u));
    var at = 0u;
    for (var r = 1u; r < {{count}}; r++) {
        let v = read_x(base + walk_reduced(r));
        if (wins(v, r, top, at)) {
            top = v;
            at = r;
        }
    }
    store(o, top, at);
}
