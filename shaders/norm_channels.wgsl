// Batch and group normalisation: LANES invocations share a statistic, find the mean and the variance of what it covers,
// and write that. The variance is that of differences from the mean, a second visit, so that it does not cancel.
{{declarations}}
const LANES = {{lanes}};

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
    var sum = T(0);
    for (var i = lane; i < {{cols}}; i += LANES) {
        sum += read_x(base + walk_step(i));
    }
    let mean = row_sum(sum, local) / T({{cols}});
    var squares = T(0);
    for (var i = lane; i < {{cols}}; i += LANES) {
        let d = read_x(base + walk_step(i)) - mean;
        squares += d * d;
    }
    let variance = row_sum(squares, local) / T({{cols}});
    let rstd = rsqrt_(variance + {{eps}});
    if (unit < {{rows}}) {
        let to = {{y}} + walk_to(row);
        for (var i = lane; i < {{cols}}; i += LANES) {
            let channel = walk_channel(row) + walk_channels(i);
            let h = (read_x(base + walk_step(i)) - mean) * rstd;
            write_y(to + walk_goal(i), h{{scale}}{{shift}});
        }
        if (lane == 0u) {
            write_mean({{mean}} + row, mean);
            write_rstd({{rstd}} + row, rstd);
            write_variance({{variance}} + row, variance);
        }
    }
}
