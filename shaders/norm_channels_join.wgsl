// Mean, variance and its root from those of pieces, LANES invocations a statistic. Source: Chan, Golub and LeVeque,
// "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979.
{{declarations}}
const LANES = {{lanes}};
fn count(piece: u32) -> T {
    return T(min({{chunk}}, {{cols}} - piece * {{chunk}}));
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
    let base = row * {{pieces}};
    // Differences from one of them are small, and so is their rounding.
    let near = read_means({{means}} + base);
    var sum = T(0);
    for (var i = lane; i < {{pieces}}; i += LANES) {
        sum += count(i) * (read_means({{means}} + base + i) - near);
    }
    let mean = near + row_sum(sum, local) / T({{cols}});
    var squares = T(0);
    for (var i = lane; i < {{pieces}}; i += LANES) {
        let d = read_means({{means}} + base + i) - mean;
        squares += read_squares({{squares}} + base + i) + count(i) * d * d;
    }
    let variance = row_sum(squares, local) / T({{cols}});
    if (unit < {{rows}} && lane == 0u) {
        write_mean({{mean}} + row, mean);
        write_rstd({{rstd}} + row, rsqrt_(variance + {{eps}}));
        write_variance({{variance}} + row, variance);
    }
}
