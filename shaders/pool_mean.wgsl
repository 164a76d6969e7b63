// Average pooling, an invocation per result.
{{declarations}}
{{windows}}
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let e = g.y * (groups.x * 256u) + g.x;
    if (e >= {{units}}) {
        return;
    }
    let o = place_out(e);
    let wd = window_d(o.y);
    let wh = window_h(o.z);
    let ww = window_w(o.w);
    let base = {{x}} + walk_plane(o.x);
    var sum = T(0);
    for (var z = wd.x; z < wd.x + wd.y; z++) {
        for (var y = wh.x; y < wh.x + wh.y; y++) {
            for (var x = ww.x; x < ww.x + ww.y; x++) {
                sum += read_x(base + z * {{d_stride}} + y * {{h_stride}} + x * {{w_stride}});
            }
        }
    }
    write_y({{y}} + walk_to(e), quotient(sum, {{divisor}}));
}
