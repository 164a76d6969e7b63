// Determinants, or their signs and logarithms, from factorizations by LU: an invocation for each matrix goes along its diagonal.
{{declarations}}
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let unit = g.y * (groups.x * 256u) + g.x;
    if (unit >= {{units}}) {
        return;
    }
    let diagonal = {{a}} + walk_a(unit);
    var product = T(1);
    var log = T(0);
    for (var i = 0u; i < {{rows}}; i++) {
        let f = read_a(diagonal + i * ({{row}} + {{col}}));
        {{factor}}
        if (read_pivots({{pivots}} + unit * {{rows}} + i) != i32(i) + 1) {
            product = -product;
        }
    }
    {{store}}
}
