// out = beta out + alpha a b, batched. A workgroup computes a tile of TM x TN, TK of the inner dimension at a time
// from shared memory; an invocation holds RM x RN sums in registers. `at_a`, `at_b` and `at_out` say where elements lie:
// by strides, or, where rows, columns or the inner dimension are several dimensions, by tables in shared memory.
{{declarations}}
const TM = {{TM}}u;
const TN = {{TN}}u;
const TK = {{TK}}u;
const RM = {{RM}}u;
const RN = {{RN}}u;
const LANES = {{lanes}}u;
var<workgroup> tile_a: array<T, {{TM}} * {{TK}}>;
var<workgroup> tile_b: array<T, {{TK}} * {{TN}}>;
{{tables}}

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
    let row = lane / (TN / RN) * RM;
    let col = lane % (TN / RN);
    var sums: array<array<T, {{RN}}>, {{RM}}>;
    {{first_tables}}
    for (var depth = 0u; depth < {{k}}; depth += TK) {
        for (var i = lane; i < TM * TK; i += LANES) {
            let r = select(i % TM, i / TK, {{a_first}});
            let d = select(i / TM, i % TK, {{a_first}});
            var v = T(0);
            if (row0 + r < {{m}} && depth + d < {{k}}) {
                v = read_a(from_a + {{at_a}});
            }
            tile_a[d * TM + r] = v;
        }
        for (var i = lane; i < TK * TN; i += LANES) {
            let c = select(i / TK, i % TN, {{b_first}});
            let d = select(i % TK, i / TN, {{b_first}});
            var v = T(0);
            if (col0 + c < {{n}} && depth + d < {{k}}) {
                v = read_b(from_b + {{at_b}});
            }
            tile_b[d * TN + c] = v;
        }
        workgroupBarrier();
        {{next_tables}}
        for (var d = 0u; d < TK; d++) {
            var right: array<T, {{RN}}>;
            for (var j = 0u; j < RN; j++) {
                right[j] = tile_b[d * TN + col + j * (TN / RN)];
            }
            for (var i = 0u; i < RM; i++) {
                let left = tile_a[d * TM + row + i];
                for (var j = 0u; j < RN; j++) {
                    sums[i][j] += left * right[j];
                }
            }
        }
        workgroupBarrier();
    }
    if (unit >= tiles * {{batch}}) {
        return;
    }
    for (var i = 0u; i < RM; i++) {
        for (var j = 0u; j < RN; j++) {
            let r = row0 + row + i;
            let c = col0 + col + j * (TN / RN);
            if (r < {{m}} && c < {{n}}) {
                let at = {{out}} + walk_out(batch) + {{at_out}};
                var v = sums[i][j];
                {{scale}}
                {{old}}
                write_out(at, v);
            }
        }
    }
}
