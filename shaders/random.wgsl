// Random numbers by element index: Philox4x32-10, the same words and formulas as on the CPU (Note [Random numbers]),
// operation by operation. An invocation draws one block: four elements of 32 bits, or two of 64.
{{declarations}}
fn block(index: u32) -> vec4<u32> {
    var c = vec4<u32>(index, 0u, {{offset_low}}, {{offset_high}});
    var key = vec2<u32>({{seed_low}}, {{seed_high}});
    for (var i = 0u; i < 10u; i++) {
        let p0 = mul_wide(0xd2511f53u, c.x);
        let p1 = mul_wide(0xcd9e8d57u, c.z);
        c = vec4<u32>(p1.x ^ c.y ^ key.x, p1.y, p0.x ^ c.w ^ key.y, p0.y);
        key += vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
    }
    return c;
}
{{formula}}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let unit = g.y * (groups.x * 256u) + g.x;
    let first = unit * {{per_block}};
    if (first >= {{count}}) {
        return;
    }
    let values = draw(block(unit));
    for (var i = 0u; i < {{per_block}} && first + i < {{count}}; i++) {
        write_out({{out}} + walk_out(first + i), values[i]);
    }
}
