// Products of few rows and short inner dimensions, as of a depthwise convolution: an invocation for each result, neighbours
// along the columns, which multiplies where the operands lie. What the inner dimension adds to their places is in workgroup memory.
{{declarations}}
var<workgroup> inner_a: array<u32, {{MOST}}>;
var<workgroup> inner_b: array<u32, {{MOST}}>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    for (var i = lane; i < {{k}}; i += 256u) {
        inner_a[i] = walk_a_inner(i);
        inner_b[i] = {{b_last}} + walk_b_inner(i);
    }
    workgroupBarrier();
    let unit = g.y * groups.x + g.x;
    let blocks = ({{n}} + 255u) / 256u;
    let line = unit / blocks;
    let batch = line / {{m}};
    let r = line % {{m}};
    let c = unit % blocks * 256u + lane;
    if (batch >= {{batch}} || c >= {{n}}) {
        return;
    }
    let from_a = {{a}} + walk_a(batch) + walk_a_row(r);
    let from_b = {{b}} + walk_b(batch) + walk_b_col(c);
    var v = T(0);
    for (var i = 0u; i < {{k}}; i++) {
        v += read_a(from_a + inner_a[i]) * read_b(from_b + inner_b[i]);
    }
    {{scale}}
    write_out({{out}} + walk_out(batch) + walk_out_row(r) + walk_out_col(c), v);
}
