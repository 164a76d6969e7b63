// The gradient of batch and group normalisation by the input, LANES invocations a statistic. With h = (x - mean) rstd and
// s the gradient times the weight: rstd (s - mean(s) - h mean(s h)), or rstd s where the statistics are given.
{{declarations}}
const LANES = {{lanes}};
fn slope(row: u32, i: u32) -> T {
    let channel = walk_channel(row) + walk_channels(i);
    return read_g({{g}} + walk_gfrom(row) + walk_gstep(i)){{scale}};
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let unit = (g.y * groups.x + g.x) * (256u / LANES) + local / LANES;
    let lane = local % LANES;
    let row = min(unit, {{rows}} - 1u);
    let base = {{x}} + walk_from(row);
    let mean = read_mean({{mean}} + row);
    let rstd = read_rstd({{rstd}} + row);
    var sum = T(0);
    var dot = T(0);
    for (var i = lane; i < {{cols}}; i += LANES) {
        let s = slope(row, i);
        sum += s;
        dot += s * ((read_x(base + walk_step(i)) - mean) * rstd);
    }
    let middle = row_sum(sum, local) / T({{cols}});
    let tilt = row_sum(dot, local) / T({{cols}});
    if (unit < {{rows}}) {
        let to = {{dx}} + walk_to(row);
        for (var i = lane; i < {{cols}}; i += LANES) {
            let h = (read_x(base + walk_step(i)) - mean) * rstd;
            write_dx(to + walk_goal(i), rstd * (slope(row, i){{less}}));
        }
    }
}
