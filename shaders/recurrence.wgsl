// A linear recurrence along lines, one invocation for each line: out[k] = b[k] + a[k] * out[k - 1].
{{declarations}}
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let line = g.y * (groups.x * 256u) + g.x;
    if (line >= {{lines}}) {
        return;
    }
    var total = T(0);
    for (var i = 0u; i < {{length}}; i++) {
        let k = {{place}};
        let a = read_a({{a}} + walk_a(line) + k * {{a_step}});
        total = read_b({{b}} + walk_b(line) + k * {{b_step}}) + a * total;
        write_out({{out}} + walk_out(line) + k * {{out_step}}, total);
    }
}
