// Sorts each TILE elements of a line in workgroup memory: a bitonic network over elements and their positions, of which the
// earlier comes first where elements are equal.
{{declarations}}
const TILE = {{TILE}}u;
const NONE = 0xffffffffu;
var<workgroup> keys: array<T, {{TILE}}>;
var<workgroup> places: array<u32, {{TILE}}>;

// Whether what stands at place i comes before what stands at j; places beyond the line come last.
fn precedes(i: u32, j: u32) -> bool {
    if (places[i] == NONE || places[j] == NONE) {
        return places[i] != NONE;
    }
    let a = keys[i];
    let b = keys[j];
    return {{before}} || (places[i] < places[j] && !({{after}}));
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let unit = g.y * groups.x + g.x;
    let blocks = ({{length}} + TILE - 1u) / TILE;
    let line = min(unit / blocks, {{lines}} - 1u);
    let start = unit % blocks * TILE;
    for (var i = lane; i < TILE; i += 256u) {
        let at = min(start + i, {{length}} - 1u);
        keys[i] = read_x({{x}} + walk_x(line) + at * {{x_step}});
        places[i] = select(NONE, at, start + i < {{length}});
    }
    for (var run = 2u; run <= TILE; run = run << 1u) {
        for (var apart = run >> 1u; apart > 0u; apart = apart >> 1u) {
            workgroupBarrier();
            for (var pair = lane; pair < TILE / 2u; pair += 256u) {
                let i = pair / apart * apart * 2u + pair % apart;
                let j = i + apart;
                let rising = (i & run) == 0u;
                if (precedes(j, i) == rising) {
                    let key = keys[i];
                    keys[i] = keys[j];
                    keys[j] = key;
                    let place = places[i];
                    places[i] = places[j];
                    places[j] = place;
                }
            }
        }
    }
    workgroupBarrier();
    if (unit < {{lines}} * blocks) {
        for (var i = lane; i < min(TILE, {{length}} - start); i += 256u) {
            write_order(line * {{length}} + start + i, i32(places[i]));
            write_moved(line * {{length}} + start + i, keys[i]);
        }
    }
}
