// Max pooling, an invocation per result: the largest element of the window and its place in the plane. Of equal elements
// the first counts, of several NaN the last.
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
    // Where a window has no element within the plane, the nearest place stands for it.
    var place = (min(wd.x, {{d_size}} - 1u) * {{h_size}} + min(wh.x, {{h_size}} - 1u)) * {{w_size}} + min(ww.x, {{w_size}} - 1u);
    var best = {{lowest}};
    var found = false;
    var nan = false;
    for (var i = 0u; i < wd.y; i++) {
        let z = wd.x + i * {{d_step}};
        for (var j = 0u; j < wh.y; j++) {
            let y = wh.x + j * {{h_step}};
            for (var k = 0u; k < ww.y; k++) {
                let x = ww.x + k * {{w_step}};
                let v = read_x(base + z * {{d_stride}} + y * {{h_stride}} + x * {{w_stride}});
                let own = is_nan(v);
                if (own || !found || (!nan && v > best)) {
                    best = v;
                    place = (z * {{h_size}} + y) * {{w_size}} + x;
                    found = true;
                    nan = own;
                }
            }
        }
    }
    let to = walk_to(e);
    write_y({{y}} + to, best);
    {{keep}}
}
