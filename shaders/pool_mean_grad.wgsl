// The gradient of average pooling, an invocation per element of the input: the shares of all windows that cover it.
{{declarations}}
{{windows}}
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let e = g.y * (groups.x * 256u) + g.x;
    if (e >= {{units}}) {
        return;
    }
    let i = place_in(e);
    let cd = covering_d(i.y);
    let ch = covering_h(i.z);
    let cw = covering_w(i.w);
    let base = {{x}} + walk_plane(i.x);
    var sum = T(0);
    for (var z = cd.x; z < cd.y; z++) {
        let wd = window_d(z);
        for (var y = ch.x; y < ch.y; y++) {
            let wh = window_h(y);
            for (var x = cw.x; x < cw.y; x++) {
                let ww = window_w(x);
                let share = read_x(base + z * {{d_stride}} + y * {{h_stride}} + x * {{w_stride}});
                sum += share / ({{divisor}});
            }
        }
    }
    write_y({{y}} + walk_to(e), sum);
}
