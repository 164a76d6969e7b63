// The gradient of the queries: with weights p computed again from the logarithms, the gradient of a score is
// p (g . v - delta), and that of a query the sum of those times the keys. Keys `first` to `last`.
// Part of attention.wgsl.
var<private> from_q: u32;
var<private> from_k: u32;
var<private> from_v: u32;
var<private> from_g: u32;
fn row_value(which: u32, i: u32, e: u32) -> T {
    if (i >= {{queries}}) { return T(0); }
    if (which == 0u) { return read_q(from_q + i * {{q_row}} + e * {{q_col}}); }
    return read_g(from_g + i * {{g_row}} + e * {{g_col}});
}
fn col_value(which: u32, i: u32, e: u32) -> T {
    if (i >= {{keys}}) { return T(0); }
    if (which == 0u) { return read_k(from_k + i * {{k_row}} + e * {{k_col}}); }
    return read_v(from_v + i * {{v_row}} + e * {{v_col}});
}

@compute @workgroup_size({{LANES}})
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let unit = g.y * groups.x + g.x;
    let head = min(unit / {{blocks}}, {{heads}} - 1u);
    let row0 = unit % {{blocks}} * ROWS;
    from_q = {{q}} + walk_q(head);
    from_g = {{g}} + walk_g(head);
    from_k = {{k}} + walk_k(head / {{each}});
    from_v = {{v}} + walk_v(head / {{each}});
    let col = lane % ACROSS * 4u;
    var log_sum: array<T, {{RM}}>;
    var delta: array<T, {{RM}}>;
    for (var i = 0u; i < RM; i++) {
        let at = {{stats}} + 2u * (head * {{queries}} + min(row0 + row_of(lane, i), {{queries}} - 1u));
        log_sum[i] = read_stats(at);
        delta[i] = read_stats(at + 1u);
    }
    var result: Sums;
    let end = select({{last}}, min({{last}}, row0 + ROWS), {{causal}});
    for (var col0 = {{first}}; col0 < end; col0 += COLS) {
        var weights: Scores;
        var slopes: Scores;
        product(0u, row0, col0, {{width}}, lane, &weights);
        product(1u, row0, col0, {{depth}}, lane, &slopes);
        for (var i = 0u; i < RM; i++) {
            for (var j = 0u; j < 4u; j++) {
                let s = score(head, row0 + row_of(lane, i), col0 + col + j, weights[i][j]);
                slopes[i][j] = weight(s, log_sum[i]) * (slopes[i][j] - delta[i]);
            }
        }
        share(slopes, lane);
        accumulate(0u, col0, {{keys}}, {{width}}, lane, &result);
    }
    if (unit >= {{blocks}} * {{heads}}) {
        return;
    }
    let from_dq = {{dq}} + walk_dq(head);
    for (var i = 0u; i < RM; i++) {
        let r = row0 + row_of(lane, i);
        for (var j = 0u; j < RE; j++) {
            let e = element_of(lane, j);
            if (r < {{queries}} && e < {{width}}) {
                let at = from_dq + r * {{dq_row}} + e * {{dq_col}};
                var v = {{scale}} * result[i][j / 4u][j % 4u];
                if ({{first}} > 0u) {
                    v += read_dq(at);
                }
                write_dq(at, v);
            }
        }
    }
}
