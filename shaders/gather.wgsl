// Reading through indices: an invocation per element of the output. An index out of range sets the fault block, which
// the host looks at when it next waits, and reads nothing.
{{declarations}}
const NONE = 0xffffffffu;
fn checked(i: i32) -> u32 {
    let size = i32({{size}});
    if (i < bitcast<i32>({{low}}) || i >= size) {
        if (atomicExchange(&buffer_fault[0], {{code}}) == 0u) {
            atomicStore(&buffer_fault[1], bitcast<u32>(i));
            atomicStore(&buffer_fault[2], {{size}});
            atomicStore(&buffer_fault[3], {{dim}});
        }
        return NONE;
    }
    return u32(select(i, i + size, i < 0));
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let e = g.y * (groups.x * 256u) + g.x;
    if (e >= {{count}}) {
        return;
    }
    let i = checked(read_index({{index}} + walk_index(e)));
    let at = {{out}} + walk_out(e);
    if (i != NONE) {
        {{body}}
    } else {
        {{otherwise}}
    }
}
