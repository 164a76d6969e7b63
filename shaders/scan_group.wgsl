// A scan, one workgroup for each line: the line is cut into runs, each run is folded, the folds are scanned in
// workgroup memory, and each run is walked again from its start value. A block of a longer line starts from the
// result of those before it.
// Part of scan.wgsl, chosen where lines are few and long.
var<workgroup> parts: array<T, 256>;
var<workgroup> places: array<u32, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let unit = g.y * groups.x + g.x;
    let line = min(unit, {{lines}} - 1u);
    let piece = ({{length}} + 255u) / 256u;
    let first = min(lane * piece, {{length}});
    let last = min(first + piece, {{length}});
    var total = {{init}};
    var at = first;
    for (var i = first; i < last; i++) {
        let v = element(line, i);
        at = select(at, i, i == first || takes(total, v));
        total = select(combine(total, v), v, i == first);
    }
    parts[lane] = total;
    places[lane] = at;
    // The total before this piece: a scan over the pieces, doubling the distance.
    for (var width = 1u; width < 256u; width = width << 1u) {
        workgroupBarrier();
        let before = parts[max(lane, width) - width];
        let place = places[max(lane, width) - width];
        workgroupBarrier();
        if (lane >= width && first < last) {
            places[lane] = select(place, places[lane], takes(before, parts[lane]));
            parts[lane] = combine(before, parts[lane]);
        }
    }
    workgroupBarrier();
    if (unit < {{lines}} && first < last) {
        total = parts[max(lane, 1u) - 1u];
        at = places[max(lane, 1u) - 1u];
        total = begun(line, total, lane == 0u);
        for (var i = first; i < last; i++) {
            let v = element(line, i);
            at = select(at, i, {{fresh}} || takes(total, v));
            total = select(combine(total, v), v, {{fresh}});
            store(line, i, total, at);
        }
    }
}
