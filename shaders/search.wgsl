// Where values belong in sorted lines: an invocation for each value, by binary search. NaN belongs at the end.
{{declarations}}
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let unit = g.y * (groups.x * 256u) + g.x;
    if (unit >= {{units}}) {
        return;
    }
    let line = {{sorted}} + walk_sorted(unit / {{per_line}});
    let v = read_values({{values}} + walk_values(unit));
    var low = 0u;
    var high = {{length}};
    while (low < high) {
        let half = (low + high) / 2u;
        if (truth({{beyond}}(read_sorted(line + half * {{step}}), v))) {
            high = half;
        } else {
            low = half + 1u;
        }
    }
    write_out({{out}} + walk_out(unit), i32(low));
}
