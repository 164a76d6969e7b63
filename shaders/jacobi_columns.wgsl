// What a step of Jacobi's method on a symmetric matrix does to columns: an invocation for each row and pair.
{{declarations}}
{{pairs}}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let unit = g.y * (groups.x * 256u) + g.x;
    if (unit >= {{units}}) {
        return;
    }
    let number = unit % {{pairs_of_each}};
    let row = unit / {{pairs_of_each}};
    let at = row / {{order}} * {{pairs_of_each}} + number;
    let pair = pair_of(number);
    let sine = read_rotations({{rotations}} + 2u * at + 1u);
    if (pair.y >= {{order}} || !truth(sine)) {
        return;
    }
    let half = read_rotations({{rotations}} + 2u * at);
    let one = {{rows}} + row * {{width}} + pair.x;
    let two = {{rows}} + row * {{width}} + pair.y;
    let x = read_rows(one);
    let y = read_rows(two);
    // The product that the rotation makes zero is zero, not its rounding.
    write_rows(one, select(x - sine * (y + half * x), T(0), row % {{order}} == pair.y));
    write_rows(two, select(y + sine * (x - half * y), T(0), row % {{order}} == pair.x));
}
