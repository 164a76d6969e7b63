// A step of a recurrent layer backwards: an invocation turns the gradient of one element of a state into those of its gates.
{{declarations}}
{{functions}}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let e = g.y * (groups.x * 256u) + g.x;
    if (e >= {{units}}) {
        return;
    }
    let row = e / {{hidden}};
    let j = e % {{hidden}};
    let gates = row * {{wide}} + j;
    let grad = read_dh({{dh}} + e){{plus_above}};
    {{cell}}
}
