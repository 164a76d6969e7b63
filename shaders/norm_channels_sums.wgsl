// The gradients of batch and group normalisation by weight and bias: LANES invocations add up a channel over the batch.
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
    var sum = T(0);
    var dot = T(0);
    for (var i = lane; i < {{cols}}; i += LANES) {
        let s = read_g({{g}} + walk_gfrom(row) + walk_gstep(i));
        let statistic = walk_statistic(row) + walk_statistics(i);
        let h = (read_x({{x}} + walk_from(row) + walk_step(i)) - read_mean({{mean}} + statistic)) * read_rstd({{rstd}} + statistic);
        sum += s;
        dot += s * h;
    }
    let db = row_sum(sum, local);
    let dw = row_sum(dot, local);
    if (unit < {{rows}} && lane == 0u) {
        write_dw({{dw}} + row, dw);
        write_db({{db}} + row, db);
    }
}
