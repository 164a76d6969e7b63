// QR by Householder reflections in place, columns `start` to `end`: a workgroup factors one matrix. Vectors are left below
// the diagonal, with a leading one that is not stored; their factors go to `taus`. What lies right of `end` is not updated.
{{declarations}}
{{group}}
const ACROSS = {{across}}u;
var<workgroup> parts: array<T, {{lanes}}>;
// The sum of what the invocations have, or the greatest.
fn folded(lane: u32, v: T, greatest: bool) -> T {
    workgroupBarrier();
    parts[lane] = v;
    for (var width = LANES / 2u; width > 0u; width = width >> 1u) {
        workgroupBarrier();
        if (lane < width) {
            let other = parts[lane + width];
            parts[lane] = select(parts[lane] + other, max_(parts[lane], other), greatest);
        }
    }
    workgroupBarrier();
    return parts[0];
}

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
        let head = read_a(at(j, j));
        var most = T(0);
        for (var i = j + 1u + lane; i < {{rows}}; i += LANES) {
            most = max_(most, abs(read_a(at(i, j))));
        }
        let below = folded(lane, most, true);
        // What lies below is zero, or so small that devices may take it for zero.
        let reflects = live && !less(below, {{least}});
        // Scaled, so that squares neither overflow nor underflow and small numbers keep their digits.
        let scale = select(T(1), max_(below, abs(head)), reflects);
        var squares = T(0);
        for (var i = j + lane; i < {{rows}}; i += LANES) {
            let x = read_a(at(i, j)) / scale;
            squares += x * x;
        }
        let norm = sqrt_(folded(lane, squares, false));
        let beta = select(-norm, norm, less(head, T(0)));
        let away = head / scale - beta;
        let tau = select(T(0), -away / beta, reflects);
        sync();
        if (reflects) {
            for (var i = j + 1u + lane; i < {{rows}}; i += LANES) {
                write_a(at(i, j), read_a(at(i, j)) / scale / away);
            }
        }
        if (live && lane == 0u) {
            write_taus({{taus}} + matrix * {{steps}} + j, tau);
            write_a(at(j, j), select(head, beta * scale, reflects));
        }
        sync();
        // Invocations beside each other have neighbouring columns.
        let c = j + 1u + lane % ACROSS;
        var dot = T(0);
        if (c < {{end}}) {
            for (var i = j + lane / ACROSS; i < {{rows}}; i += LANES / ACROSS) {
                dot += select(read_a(at(i, j)), T(1), i == j) * read_a(at(i, c));
            }
        }
        parts[lane] = dot;
        workgroupBarrier();
        var whole = T(0);
        for (var part = lane % ACROSS; part < LANES; part += ACROSS) {
            whole += parts[part];
        }
        if (reflects && c < {{end}}) {
            for (var i = j + lane / ACROSS; i < {{rows}}; i += LANES / ACROSS) {
                let v = select(read_a(at(i, j)), T(1), i == j);
                write_a(at(i, c), read_a(at(i, c)) - v * (tau * whole));
            }
        }
        sync();
    }
}
