// Layer normalisation: LANES invocations share a row, find its mean and its variance, and write it.
// The variance is that of differences from the mean, a second visit, so that it does not cancel.
{{declarations}}
const LANES = {{lanes}};
fn element(row: u32, i: u32) -> T {
    return read_x({{x}} + row * {{cols}} + i);
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
    var sum = T(0);
    for (var i = lane; i < {{cols}}; i += LANES) {
        sum += element(row, i);
    }
    let mean = row_sum(sum, local) / T({{cols}});
    var squares = T(0);
    for (var i = lane; i < {{cols}}; i += LANES) {
        let d = element(row, i) - mean;
        squares += d * d;
    }
    let rstd = rsqrt_(row_sum(squares, local) / T({{cols}}) + {{eps}});
    if (unit < {{rows}}) {
        for (var i = lane; i < {{cols}}; i += LANES) {
            write_y({{y}} + row * {{cols}} + i, (element(row, i) - mean) * rstd{{scale}}{{shift}});
        }
        if (lane == 0u) {
            write_mean({{mean}} + row, mean);
            write_rstd({{rstd}} + row, rstd);
        }
    }
}
