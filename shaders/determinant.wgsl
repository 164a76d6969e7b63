// Signs and logarithms of determinants from factorizations by LU: an invocation for each matrix goes along its diagonal.
{{declarations}}
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let unit = g.y * (groups.x * 256u) + g.x;
    if (unit >= {{units}}) {
        return;
    }
    let diagonal = {{a}} + walk_a(unit);
    var sign = T(1);
    var log = T(0);
    for (var i = 0u; i < {{rows}}; i++) {
        let f = read_a(diagonal + i * ({{row}} + {{col}}));
        log += ln_(abs(f));
        sign *= sign_(f);
        if (read_pivots({{pivots}} + unit * {{rows}} + i) != i32(i) + 1) {
            sign = -sign;
        }
    }
    write_sign({{sign}} + unit, sign);
    write_log({{log}} + unit, log);
}
