// Softmax, one workgroup for each line: the maximum, then the sum of exponentials, are folded in workgroup
// memory, then the results are written.
// Part of softmax.wgsl, chosen where lines are few and long.
var<workgroup> parts: array<T, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let unit = g.y * groups.x + g.x;
    let row = min(unit, {{rows}} - 1u);
    var top = T(0);
    if ({{top}}) {
        top = element(row, min(lane, {{length}} - 1u));
        for (var i = lane + 256u; i < {{length}}; i += 256u) {
            top = max_(top, element(row, i));
        }
        parts[lane] = top;
        for (var width = 128u; width > 0u; width = width >> 1u) {
            workgroupBarrier();
            if (lane < width) {
                parts[lane] = max_(parts[lane], parts[lane + width]);
            }
        }
        workgroupBarrier();
        top = parts[0];
        workgroupBarrier();
    }
    var total = T(0);
    for (var i = lane; i < {{length}}; i += 256u) {
        total += term(row, i, top);
    }
    parts[lane] = total;
    for (var width = 128u; width > 0u; width = width >> 1u) {
        workgroupBarrier();
        if (lane < width) {
            parts[lane] += parts[lane + width];
        }
    }
    workgroupBarrier();
    total = parts[0];
    if (unit < {{rows}}) {
        for (var i = lane; i < {{length}}; i += 256u) {
            store(row, i, result(row, i, top, total));
        }
    }
}
