// An invocation for each column of right-hand sides: unknowns of a block of a triangular system, or exchanges of rows.
{{declarations}}
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let unit = g.y * (groups.x * 256u) + g.x;
    if (unit >= {{units}}) {
        return;
    }
    let matrix = unit / {{cols}};
    let column = {{b}} + walk_b(matrix) + unit % {{cols}} * {{b_col}};
    {{columns}}
}
