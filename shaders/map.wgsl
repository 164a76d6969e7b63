// Elementwise: an invocation computes EACH units, one element each, or all elements of one 32-bit word of a narrow output.
// Neighbours have neighbouring units, and all values come before the first store, which no load may cross.
{{declarations}}
fn value(e: u32) -> T {
{{coordinates}}{{values}}    return T({{expr}});
}
{{unit}}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let unit = (g.y * groups.x + g.x) * {{span}}u + lane;
    if (unit >= {{units}}) {
        return;
    }
{{body}}}
