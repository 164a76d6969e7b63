// A step of Jacobi's method on rows: a workgroup turns a pair of rows so that their product is zero. `flags` receives one
// where it did. Rows are `length` elements that decide, and others that turn with them.
{{declarations}}
const LANES = 64u;
var<workgroup> parts: array<T, 192>;
{{pairs}}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let unit = g.y * groups.x + g.x;
    let at = min(unit, {{units}} - 1u);
    let pair = pair_of(at % {{pairs_of_each}});
    let live = unit < {{units}} && pair.y < {{order}};
    let row = {{rows}} + at / {{pairs_of_each}} * ({{order}} * {{width}});
    let one = row + pair.x * {{width}};
    let two = row + min(pair.y, {{order}} - 1u) * {{width}};
    var a = T(0);
    var b = T(0);
    var c = T(0);
    {{products}}
    // The rotation that makes `c` zero: tan(2 angle) = 2 c / (b - a).
    let turns = live && less({{least}}, abs(c));
    let zeta = (b - a) / (T(2) * select(T(1), c, turns));
    let size = abs(zeta);
    let small = min(size, T(1000000));
    let tangent = select(T(1) / (small + sqrt_(T(1) + small * small)), T(1) / (T(2) * max(size, T(1))), size > small);
    let t = select(tangent, -tangent, less(zeta, T(0)));
    let cosine = T(1) / sqrt_(T(1) + t * t);
    let sine = cosine * t;
    // Rotations by small angles change little, so they are written as changes.
    let half = sine / (T(1) + cosine);
    storageBarrier();
    workgroupBarrier();
    if (turns) {
        for (var i = lane; i < {{width}}; i += LANES) {
            let x = read_rows(one + i);
            let y = read_rows(two + i);
            write_rows(one + i, x - sine * (y + half * x));
            write_rows(two + i, y + sine * (x - half * y));
        }
    }
    if (lane == 0u && unit < {{units}}) {
        if (turns) {
            write_flags({{flags}} + at, 1);
        }
        {{keep}}
    }
}
