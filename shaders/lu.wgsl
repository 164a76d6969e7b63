// LU with partial pivoting in place, columns `start` to `end`: a workgroup factors one matrix. Whole rows are exchanged;
// what lies right of `end` is not updated.
{{declarations}}
{{group}}
var<workgroup> sizes: array<T, {{lanes}}>;
var<workgroup> places: array<u32, {{lanes}}>;

@compute @workgroup_size({{lanes}})
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let unit = g.y * groups.x + g.x;
    let live = unit < {{matrices}};
    let matrix = min(unit, {{matrices}} - 1u);
    origin = {{a}} + walk_a(matrix);
    for (var j = {{start}}; j < {{end}}; j++) {
        var most = T(-1);
        var place = j;
        for (var i = j + lane; i < {{rows}}; i += LANES) {
            let x = read_a(at(i, j));
            // A NaN on the diagonal stays there; elsewhere it is never the largest.
            let size = select(abs(x), inf_(), i == j && is_nan(x));
            if (less(most, size)) {
                most = size;
                place = i;
            }
        }
        sizes[lane] = most;
        places[lane] = place;
        for (var width = LANES / 2u; width > 0u; width = width >> 1u) {
            workgroupBarrier();
            if (lane < width) {
                let other = sizes[lane + width];
                if (less(sizes[lane], other) || (same(other, sizes[lane]) && places[lane + width] < places[lane])) {
                    sizes[lane] = other;
                    places[lane] = places[lane + width];
                }
            }
        }
        sync();
        let best = places[0];
        if (live && best != j) {
            for (var c = lane; c < {{cols}}; c += LANES) {
                let old = read_a(at(j, c));
                write_a(at(j, c), read_a(at(best, c)));
                write_a(at(best, c), old);
            }
        }
        sync();
        let pivot = read_a(at(j, j));
        if (live && lane == 0u) {
            write_pivots({{pivots}} + matrix * {{steps}} + j, i32(best) + 1);
            if (!truth(pivot) && read_info({{info}} + matrix) == 0) {
                write_info({{info}} + matrix, i32(j) + 1);
            }
        }
        if (live && truth(pivot)) {
            for (var i = j + 1u + lane; i < {{rows}}; i += LANES) {
                write_a(at(i, j), read_a(at(i, j)) / pivot);
            }
        }
        sync();
        let wide = {{end}} - j - 1u;
        if (live && truth(pivot)) {
            for (var e = lane; e < ({{rows}} - j - 1u) * wide; e += LANES) {
                let i = j + 1u + e / wide;
                let c = j + 1u + e % wide;
                write_a(at(i, c), read_a(at(i, c)) - read_a(at(i, j)) * read_a(at(j, c)));
            }
        }
        sync();
    }
}
