// Of each piece of what a statistic covers, a workgroup's work: the mean, and the sum of squared differences from it.
{{declarations}}
const LANES = 256u;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let unit = min(g.y * groups.x + g.x, {{rows}} * {{pieces}} - 1u);
    let first = unit % {{pieces}} * {{chunk}};
    let last = min(first + {{chunk}}, {{cols}});
    let base = {{x}} + walk_from(unit / {{pieces}});
    var sum = T(0);
    for (var i = first + local; i < last; i += LANES) {
        sum += read_x(base + walk_step(i));
    }
    let count = T(last - first);
    let mean = row_sum(sum, local) / count;
    var squares = T(0);
    var rest = T(0);
    for (var i = first + local; i < last; i += LANES) {
        let d = read_x(base + walk_step(i)) - mean;
        squares += d * d;
        rest += d;
    }
    // The mean is rounded: what it is off by is the mean of the differences.
    squares = row_sum(squares, local);
    rest = row_sum(rest, local);
    if (local == 0u) {
        write_means({{means}} + unit, mean + rest / count);
        write_squares({{squares}} + unit, squares - rest * rest / count);
    }
}
