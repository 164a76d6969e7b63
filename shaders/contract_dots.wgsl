// Products of few rows and columns and a long inner dimension, as the gradient of the weight of a depthwise convolution: a
// workgroup for each result, whose invocations share the inner dimension.
{{declarations}}
const LANES = 256u;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let unit = g.y * groups.x + g.x;
    let all = {{m}} * {{n}};
    let batch = min(unit / all, {{batch}} - 1u);
    let r = unit % all / {{n}};
    let c = unit % all % {{n}};
    let from_a = {{a}} + walk_a(batch) + walk_a_row(r);
    let from_b = {{b}} + {{b_last}} + walk_b(batch) + walk_b_col(c);
    var part = T(0);
    for (var i = lane; i < {{k}}; i += LANES) {
        part += read_a(from_a + walk_a_inner(i)) * read_b(from_b + walk_b_inner(i));
    }
    var v = row_sum(part, lane);
    if (lane == 0u && unit < all * {{batch}}) {
        {{scale}}
        write_out({{out}} + walk_out(batch) + walk_out_row(r) + walk_out_col(c), v);
    }
}
