// Sorting along lines, by positions: an invocation finds the place of one element among its neighbours.
// Blocks are ordered by counting what comes before; then runs merge in pairs, by binary search in the other run.
{{declarations}}
{{comparison}}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let unit = g.y * (groups.x * 256u) + g.x;
    if (unit >= {{units}}) {
        return;
    }
    let line = unit / {{per_line}};
    let i = unit % {{per_line}};
    {{body}}
}
