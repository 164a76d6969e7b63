// What each statistic, known by now, makes of its elements, a piece of them a workgroup: of the input its normalisation, of
// the gradient that by the input.
{{declarations}}
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let unit = g.y * groups.x + g.x;
    if (unit >= {{rows}} * {{pieces}}) {
        return;
    }
    let row = unit / {{pieces}};
    let first = unit % {{pieces}} * {{chunk}};
    let last = min(first + {{chunk}}, {{cols}});
    let base = {{x}} + walk_from(row);
    let to = {{y}} + walk_to(row);
    let mean = read_mean({{mean}} + row);
    let rstd = read_rstd({{rstd}} + row);
    {{known}}
    for (var i = first + local; i < last; i += 256u) {
        let channel = walk_channel(row) + walk_channels(i);
        let h = (read_x(base + walk_step(i)) - mean) * rstd;
        write_y(to + walk_goal(i), {{result}});
    }
}
