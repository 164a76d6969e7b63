// What the gradients of attention need of each query: the logarithm of its sum, and the sum of gradient times output.
// LANES invocations share a query.
{{declarations}}
const LANES = {{lanes}};

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let unit = (g.y * groups.x + g.x) * (256u / LANES) + local / LANES;
    let row = min(unit, {{rows}} - 1u);
    let from_g = {{g}} + walk_g(row);
    let from_y = {{y}} + walk_y(row);
    var part = T(0);
    for (var e = local % LANES; e < {{depth}}; e += LANES) {
        part += read_g(from_g + e * {{g_col}}) * read_y(from_y + e * {{y_col}});
    }
    let sum = row_sum(part, local);
    if (unit < {{rows}} && local % LANES == 0u) {
        write_stats({{stats}} + 2u * row, read_logs({{logs}} + row));
        write_stats({{stats}} + 2u * row + 1u, sum);
    }
}
