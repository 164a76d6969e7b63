// Weighted sums along three dimensions: an invocation for each output [outer, m0, m1, m2, inner]. Dimension d reads, for
// output o, the taps from table[starts_d + o] to table[starts_d + o + 1].
{{declarations}}
fn entry(i: u32) -> u32 {
    return u32(read_table({{table}} + i));
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let e = g.y * (groups.x * 256u) + g.x;
    if (e >= {{units}}) {
        return;
    }
    let at = e % {{inner}};
    let q2 = e / {{inner}};
    let q1 = q2 / {{m2}};
    let q0 = q1 / {{m1}};
    let outer = q0 / {{m0}};
    let o0 = {{starts0}} + q0 % {{m0}};
    let o1 = {{starts1}} + q1 % {{m1}};
    let o2 = {{starts2}} + q2 % {{m2}};
    let end0 = entry(o0 + 1u);
    let start1 = entry(o1);
    let end1 = entry(o1 + 1u);
    let start2 = entry(o2);
    let end2 = entry(o2 + 1u);
    var sum = T(0);
    for (var i = entry(o0); i < end0; i++) {
        let row0 = (outer * {{n0}} + entry({{index0}} + i)) * {{n1}};
        var plane = T(0);
        for (var j = start1; j < end1; j++) {
            let row1 = (row0 + entry({{index1}} + j)) * {{n2}};
            var line = T(0);
            for (var k = start2; k < end2; k++) {
                let x = read_x({{x}} + (row1 + entry({{index2}} + k)) * {{inner}} + at);
                line += read_w({{w}} + {{weights2}} + k) * x;
            }
            plane += read_w({{w}} + {{weights1}} + j) * line;
        }
        sum += read_w({{w}} + {{weights0}} + i) * plane;
    }
    write_out({{out}} + e, {{result}});
}
