// out = beta out + alpha a b, batched. A workgroup computes a tile of TM x TN, TK of the inner dimension at a time
// from shared memory; an invocation holds RM x RN sums in registers, and the next part of both operands while it works
// on this one. Shared memory is read W elements at a time, and its lines are one longer than the tile, so that
// invocations that write below each other meet different banks. Where elements lie is a sum of what rows, columns and the inner
// dimension say: by strides, or, where they are several dimensions each, by walks, of the inner one in tables in shared memory.
{{declarations}}
const TM = {{TM}}u;
const TN = {{TN}}u;
const TK = {{TK}}u;
const RM = {{RM}}u;
const RN = {{RN}}u;
const W = {{W}}u;
const LANES = {{lanes}}u;
const ACROSS = {{ACROSS}}u;
const DOWN = {{DOWN}}u;
const LINE_A = TM / W + 1u;
const LINE_B = TN / W + 1u;
alias V = {{V}};
var<workgroup> tile_a: array<V, {{TK}} * ({{TM}} / {{W}} + 1)>;
var<workgroup> tile_b: array<V, {{TK}} * ({{TN}} / {{W}} + 1)>;
{{tables}}

fn of_a(r: u32) -> u32 {
    return {{of_a}};
}
fn of_b(c: u32) -> u32 {
    return {{of_b}};
}
fn out_row_at(r: u32) -> u32 {
    return {{out_row_at}};
}
fn out_col_at(c: u32) -> u32 {
    return {{out_col_at}};
}
fn finish(batch: u32, r: u32, c: u32, at: u32, sum: T) {
    if (r < {{m}} && c < {{n}}) {
        var v = sum;
        {{scale}}
        {{old}}
        write_out(at, v);
    }
}

@compute @workgroup_size({{lanes}})
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let unit = g.y * groups.x + g.x;
    let tiles = {{tiles_m}} * {{tiles_n}};
    let batch = min(unit / tiles, {{batch}} - 1u);
    let row0 = (unit % tiles) / {{tiles_n}} * TM;
    let col0 = (unit % tiles) % {{tiles_n}} * TN;
    let from_a = {{a}} + walk_a(batch);
    let from_b = {{b}} + walk_b(batch);
    // Each ACROSS x DOWN neighbours, which read shared memory together, have a compact part of the tile.
    let part = lane / (ACROSS * DOWN);
    let row = part / (TN / RN / ACROSS) * DOWN + lane % (ACROSS * DOWN) / ACROSS;
    let col = part % (TN / RN / ACROSS) * ACROSS + lane % ACROSS;
{{places}}
{{sums}}
    {{first_tables}}
    var depth = 0u;
{{fetch}}
    {{after_first_fetch}}
    while (depth < {{k}}) {
{{store}}
        {{next_tables}}
        workgroupBarrier();
        depth += TK;
        if (depth < {{k}}) {
{{fetch_next}}
        }
        for (var d = 0u; d < TK; d++) {
{{multiply}}
        }
        workgroupBarrier();
    }
    if (unit >= tiles * {{batch}}) {
        return;
    }
    let from_out = {{out}} + walk_out(batch);
{{results}}
}
