// Softmax, one invocation for each line: three passes over the line, for the maximum, the sum and the results.
// Nothing is shared between invocations.
// Part of softmax.wgsl, chosen where lines are many or short.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = g.y * (groups.x * 256u) + g.x;
    if (row >= {{rows}}) {
        return;
    }
    var top = T(0);
    if ({{top}}) {
        top = element(row, 0u);
        for (var i = 1u; i < {{length}}; i++) {
            top = max_(top, element(row, i));
        }
    }
    var total = T(0);
    for (var i = 0u; i < {{length}}; i++) {
        total += term(row, i, top);
    }
    for (var i = 0u; i < {{length}}; i++) {
        store(row, i, result(row, i, top, total));
    }
}
