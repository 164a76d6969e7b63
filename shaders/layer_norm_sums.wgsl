// The gradients of layer normalisation by weight and bias: an invocation for each column adds up a block of rows.
{{declarations}}
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let unit = g.y * (groups.x * 256u) + g.x;
    if (unit >= {{units}}) {
        return;
    }
    let column = unit % {{cols}};
    let first = unit / {{cols}} * {{per_block}};
    var dw = T(0);
    var db = T(0);
    for (var row = first; row < min(first + {{per_block}}, {{rows}}); row++) {
        let at = row * {{cols}} + column;
        let s = read_g({{g}} + at);
        dw += s * ((read_x({{x}} + at) - read_mean({{mean}} + row)) * read_rstd({{rstd}} + row));
        db += s;
    }
    write_dw({{dw}} + unit, dw);
    write_db({{db}} + unit, db);
}
