// Cholesky in place, columns `start` to `end` of the lower triangle: a workgroup factors one matrix, up to the first minor
// that is not positive, whose order goes to `info`. What lies right of `end` is not updated.
{{declarations}}
{{group}}

@compute @workgroup_size({{lanes}})
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let unit = g.y * groups.x + g.x;
    let matrix = min(unit, {{matrices}} - 1u);
    origin = {{a}} + walk_a(matrix);
    var live = unit < {{matrices}} && read_info({{info}} + matrix) == 0;
    sync();
    for (var j = {{start}}; j < {{end}}; j++) {
        let square = read_a(at(j, j));
        sync();
        let positive = less(T(0), square);
        if (live && !positive && lane == 0u) {
            write_info({{info}} + matrix, i32(j) + 1);
        }
        live = live && positive;
        if (live) {
            let root = sqrt_(square);
            for (var i = j + lane; i < {{rows}}; i += LANES) {
                write_a(at(i, j), select(read_a(at(i, j)) / root, root, i == j));
            }
        }
        sync();
        let wide = {{end}} - j - 1u;
        if (live) {
            for (var e = lane; e < ({{rows}} - j - 1u) * wide; e += LANES) {
                let i = j + 1u + e / wide;
                let c = j + 1u + e % wide;
                if (i >= c) {
                    write_a(at(i, c), read_a(at(i, c)) - read_a(at(i, j)) * read_a(at(c, j)));
                }
            }
        }
        sync();
    }
}
