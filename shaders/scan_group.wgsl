// A scan, one workgroup for each line, which it visits in tiles: a tile is read by neighbours, each invocation scans
// EACH elements of it, the results of these runs are scanned, and all is combined with what came before.
// Part of scan.wgsl, chosen where lines are contiguous, or few.
const EACH = 4u;
const TILE = 1024u;
var<workgroup> tile: array<T, 1024>;
var<workgroup> spots: array<u32, 1024>;
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
    let first = lane * EACH;
    var carry = begun(line);
    var carried = 0u;
    for (var start = 0u; start < {{length}}; start += TILE) {
        let size = min(TILE, {{length}} - start);
        for (var i = lane; i < size; i += 256u) {
            tile[i] = element(line, start + i);
        }
        workgroupBarrier();
        let last = min(first + EACH, size);
        var total = T(0);
        var at = start + first;
        for (var i = first; i < last; i++) {
            let v = tile[i];
            at = select(at, start + i, i == first || takes(total, v));
            total = select(combine(total, v), v, i == first);
            tile[i] = total;
            spots[i] = at;
        }
        parts[lane] = total;
        places[lane] = at;
        // The runs up to each, doubling the distance.
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
        // What precedes this run: the line so far, the tile so far, or both.
        let so_far = {{goes_on}} || start > 0u;
        var before = parts[max(lane, 1u) - 1u];
        var place = places[max(lane, 1u) - 1u];
        if (so_far) {
            place = select(carried, place, lane > 0u && takes(carry, before));
            before = select(carry, combine(carry, before), lane > 0u);
        }
        if (so_far || lane > 0u) {
            for (var i = first; i < last; i++) {
                spots[i] = select(place, spots[i], takes(before, tile[i]));
                tile[i] = combine(before, tile[i]);
            }
        }
        let end = (size - 1u) / EACH;
        carried = select(places[end], select(carried, places[end], takes(carry, parts[end])), so_far);
        carry = select(parts[end], combine(carry, parts[end]), so_far);
        workgroupBarrier();
        if (unit < {{lines}}) {
            for (var i = lane; i < size; i += 256u) {
                store(line, start + i, tile[i], spots[i]);
            }
        }
        workgroupBarrier();
    }
}
