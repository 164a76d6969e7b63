// A linear recurrence along lines, one invocation for each line: out[k] = b[k] + a[k] * out[k - 1].
// A long line takes several dispatches; each continues from the previous one's results.
{{declarations}}
fn place(i: u32) -> u32 {
    return {{place}};
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let line = g.y * (groups.x * 256u) + g.x;
    if (line >= {{lines}}) {
        return;
    }
    var total = T(0);
    if ({{first}} > 0u) {
        total = read_out({{out}} + walk_out(line) + place({{first}} - 1u) * {{out_step}});
    }
    for (var i = {{first}}; i < {{last}}; i++) {
        let k = place(i);
        let a = read_a({{a}} + walk_a(line) + k * {{a_step}});
        total = read_b({{b}} + walk_b(line) + k * {{b_step}}) + a * total;
        write_out({{out}} + walk_out(line) + k * {{out_step}}, total);
    }
}
