// Elementwise: an invocation computes one element, or all elements of one 32-bit word of a narrow output.
{{declarations}}
fn value(e: u32) -> T {
{{coordinates}}{{values}}    return T({{expr}});
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let unit = g.y * (groups.x * 256u) + g.x;
    if (unit >= {{units}}) {
        return;
    }
    {{store}}
}
