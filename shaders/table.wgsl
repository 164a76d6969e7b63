// Moving elements by a table of offsets or of row-major positions: an invocation per element.
{{declarations}}
fn combine(old: T, v: T) -> T {
    return {{combine}};
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let unit = g.y * (groups.x * 256u) + g.x;
    if (unit >= {{units}}) {
        return;
    }
    {{body}}
}
