// A step of a recurrent layer after the product of the states: an invocation computes one element of a new state.
{{declarations}}
fn own(row: u32, part: u32, j: u32) -> T {
    return read_own({{own}} + row * {{wide}} + part * {{hidden}} + j){{plus_bias}};
}
// What a gate is a function of.
fn gate(row: u32, part: u32, j: u32) -> T {
    return read_x({{x}} + row * {{wide}} + part * {{hidden}} + j) + own(row, part, j);
}
{{keep}}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let e = g.y * (groups.x * 256u) + g.x;
    if (e >= {{units}}) {
        return;
    }
    let row = e / {{hidden}};
    let j = e % {{hidden}};
    {{cell}}
    write_h({{h}} + e, state);
    write_out({{out}} + e, state);
}
