// The gradient of layer normalisation by its input, LANES invocations a row. With h = (x - mean) rstd and g the
// gradient times the weight: rstd (g - mean(g) - h mean(g h)).
{{declarations}}
const LANES = {{lanes}};
fn slope(row: u32, i: u32) -> T {
    return read_g({{g}} + row * {{cols}} + i){{scale}};
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
    let mean = read_mean({{mean}} + row);
    let rstd = read_rstd({{rstd}} + row);
    var sum = T(0);
    var dot = T(0);
    for (var i = lane; i < {{cols}}; i += LANES) {
        let s = slope(row, i);
        sum += s;
        dot += s * ((read_x({{x}} + row * {{cols}} + i) - mean) * rstd);
    }
    let middle = row_sum(sum, local) / T({{cols}});
    let tilt = row_sum(dot, local) / T({{cols}});
    if (unit < {{rows}}) {
        for (var i = lane; i < {{cols}}; i += LANES) {
            let h = (read_x({{x}} + row * {{cols}} + i) - mean) * rstd;
            write_dx({{dx}} + row * {{cols}} + i, rstd * (slope(row, i) - middle - h * tilt));
        }
    }
}
