// Several tensors changed in one pass: an invocation reads an element of each, computes, and writes back.
{{declarations}}
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let e = gid.y * (groups.x * 256u) + gid.x;
    if (e >= {{units}}) {
        return;
    }
    {{body}}
}
