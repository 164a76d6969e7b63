// The gradients of keys and values, a block of keys for each workgroup: rows are keys, columns the queries `first` to
// `last` of every head that reads these keys.
// Part of attention.wgsl.
var<private> from_q: u32;
var<private> from_k: u32;
var<private> from_v: u32;
var<private> from_g: u32;
fn row_value(which: u32, i: u32, e: u32) -> T {
    if (i >= {{keys}}) { return T(0); }
    if (which == 0u) { return read_k(from_k + i * {{k_row}} + e * {{k_col}}); }
    return read_v(from_v + i * {{v_row}} + e * {{v_col}});
}
fn col_value(which: u32, i: u32, e: u32) -> T {
    if (i >= {{queries}}) { return T(0); }
    if (which == 0u) { return read_q(from_q + i * {{q_row}} + e * {{q_col}}); }
    return read_g(from_g + i * {{g_row}} + e * {{g_col}});
}

@compute @workgroup_size({{LANES}})
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let unit = g.y * groups.x + g.x;
    let group = min(unit / {{blocks}}, {{groups}} - 1u);
    let row0 = unit % {{blocks}} * ROWS;
    from_k = {{k}} + walk_k(group);
    from_v = {{v}} + walk_v(group);
    let col = lane % ACROSS * 4u;
    var of_key: Sums;
    var of_value: Sums;
    // The queries before a block of keys see none of it.
    let start = select({{first}}, max({{first}}, row0 / COLS * COLS), {{causal}});
    for (var head = group * {{each}}; head < (group + 1u) * {{each}}; head++) {
        from_q = {{q}} + walk_q(head);
        from_g = {{g}} + walk_g(head);
        for (var col0 = start; col0 < {{last}}; col0 += COLS) {
            var weights: Scores;
            var slopes: Scores;
            product(0u, row0, col0, {{width}}, lane, &weights);
            product(1u, row0, col0, {{depth}}, lane, &slopes);
            for (var j = 0u; j < 4u; j++) {
                let query = col0 + col + j;
                let at = {{stats}} + 2u * (head * {{queries}} + min(query, {{queries}} - 1u));
                let log_sum = read_stats(at);
                let delta = read_stats(at + 1u);
                for (var i = 0u; i < RM; i++) {
                    let s = score(head, query, row0 + row_of(lane, i), weights[i][j]);
                    weights[i][j] = weight(s, log_sum);
                    slopes[i][j] = weights[i][j] * (slopes[i][j] - delta);
                    // A column beyond the last has no score, and so no weight, unless the last query's sum is NaN.
                    if (query >= {{queries}}) {
                        weights[i][j] = T(0);
                        slopes[i][j] = T(0);
                    }
                }
            }
            share(weights, lane);
            accumulate(1u, col0, {{queries}}, {{depth}}, lane, &of_value);
            share(slopes, lane);
            accumulate(0u, col0, {{queries}}, {{width}}, lane, &of_key);
        }
    }
    if (unit >= {{blocks}} * {{groups}}) {
        return;
    }
    let from_dk = {{dk}} + walk_dk(group);
    let from_dv = {{dv}} + walk_dv(group);
    for (var i = 0u; i < RM; i++) {
        let r = row0 + row_of(lane, i);
        for (var j = 0u; j < RE; j++) {
            let e = element_of(lane, j);
            if (r < {{keys}} && e < {{width}}) {
                let at = from_dk + r * {{dk_row}} + e * {{dk_col}};
                var v = {{scale}} * of_key[i][j / 4u][j % 4u];
                if ({{first}} > 0u) {
                    v += read_dk(at);
                }
                write_dk(at, v);
            }
            if (r < {{keys}} && e < {{depth}}) {
                let at = from_dv + r * {{dv_row}} + e * {{dv_col}};
                var v = of_value[i][j / 4u][j % 4u];
                if ({{first}} > 0u) {
                    v += read_dv(at);
                }
                write_dv(at, v);
            }
        }
    }
}
