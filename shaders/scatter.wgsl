// Writing through indices, either a column (all that shares the coordinates beside the indexed one) per invocation,
// in order, or an element per invocation with atomic updates. An index out of range sets the fault block.
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
fn combine(old: T, v: T) -> T {
    return {{combine}};
}
fn one(column: u32, j: u32) {
    let i = checked(read_index({{index}} + walk_index(column) + j * {{index_step}}));
    if (i != NONE) {
        let v = {{term}};
        let at = {{out}} + walk_out(column) + i * {{out_step}};
        {{store}}
    }
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let unit = g.y * (groups.x * 256u) + g.x;
    if (unit >= {{units}}) {
        return;
    }
    {{body}}
}
