// Softmax, LANES invocations for each line: the maximum, then the sum of exponentials, are folded in workgroup
// memory, then the results are written.
// Part of softmax.wgsl, chosen where lines are contiguous, or few.
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
    var top = T(0);
    if ({{top}}) {
        top = element(row, min(lane, {{length}} - 1u));
        for (var i = lane + LANES; i < {{length}}; i += LANES) {
            top = max_(top, element(row, i));
        }
        top = row_max(top, local);
    }
    var total = T(0);
    for (var i = lane; i < {{length}}; i += LANES) {
        total += term(row, i, top);
    }
    total = row_sum(total, local);
    if (unit < {{rows}}) {
        for (var i = lane; i < {{length}}; i += LANES) {
            store(row, i, result(row, i, top, total));
        }
    }
}
