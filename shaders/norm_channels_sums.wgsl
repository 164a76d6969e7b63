// The gradients of batch and group normalisation by weight and bias: LANES invocations add up a
// channel over the batch, or one of its pieces.
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
    let own = min(unit, {{rows}} * {{pieces}} - 1u);
    let row = own / {{pieces}};
    let first = own % {{pieces}} * {{chunk}};
    let last = min(first + {{chunk}}, {{cols}});
    var sum = T(0);
    var dot = T(0);
    for (var i = first + lane; i < last; i += LANES) {
        let s = read_g({{g}} + walk_gfrom(row) + walk_gstep(i));
        let statistic = walk_statistic(row) + walk_statistics(i);
        let h = (read_x({{x}} + walk_from(row) + walk_step(i)) - read_mean({{mean}} + statistic)) * read_rstd({{rstd}} + statistic);
        sum += s;
        dot += s * h;
    }
    let db = row_sum(sum, local);
    let dw = row_sum(dot, local);
    if (unit < {{rows}} * {{pieces}} && lane == 0u) {
        write_dw({{dw}} + unit, dw);
        write_db({{db}} + unit, db);
    }
}
