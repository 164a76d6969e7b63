// QR by Householder reflections in place, columns `start` to `end`: a workgroup factors one matrix. Vectors are left below
// the diagonal, with a leading one that is not stored; their factors go to `taus`. What lies right of `end` is not updated.
{{declarations}}
const LANES = {{lanes}}u;
const ACROSS = {{across}}u;
var<workgroup> parts: array<T, {{lanes}}>;
var<private> origin: u32;
fn at(i: u32, j: u32) -> u32 {
    return origin + i * {{row}} + j * {{col}};
}
fn sync() {
    storageBarrier();
    workgroupBarrier();
}
fn greatest(lane: u32, v: T) -> T {
    workgroupBarrier();
    parts[lane] = v;
    for (var width = LANES / 2u; width > 0u; width = width >> 1u) {
        workgroupBarrier();
        if (lane < width) {
            parts[lane] = max_(parts[lane], parts[lane + width]);
        }
    }
    workgroupBarrier();
    return parts[0];
}
fn sum(lane: u32, v: T) -> T {
    workgroupBarrier();
    parts[lane] = v;
    for (var width = LANES / 2u; width > 0u; width = width >> 1u) {
        workgroupBarrier();
        if (lane < width) {
            parts[lane] += parts[lane + width];
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
        let below = greatest(lane, most);
        let reflects = live && truth(below);
        // Scaled, so that squares neither overflow nor underflow.
        let scale = select(T(1), max_(below, abs(head)), reflects);
        var squares = T(0);
        for (var i = j + lane; i < {{rows}}; i += LANES) {
            let x = read_a(at(i, j)) / scale;
            squares += x * x;
        }
        let norm = scale * sqrt_(sum(lane, squares));
        let beta = select(-norm, norm, less(head, T(0)));
        let tau = select(T(0), (beta - head) / beta, reflects);
        sync();
        if (reflects) {
            for (var i = j + 1u + lane; i < {{rows}}; i += LANES) {
                write_a(at(i, j), read_a(at(i, j)) / (head - beta));
            }
        }
        if (live && lane == 0u) {
            write_taus({{taus}} + matrix * {{steps}} + j, tau);
            write_a(at(j, j), select(head, beta, reflects));
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
