// Softmax of the scores times the values, in one pass over the keys: each query keeps the maximum of its scores and the
// sum of their exponentials so far, and rescales when the maximum grows. A workgroup has a piece of `length` keys, of which
// it visits those from `first` to `last`; what lies before them in the piece is taken from the results of the dispatch before.
// Part of attention.wgsl.
var<workgroup> parts: array<T, {{ROWS}} * {{ACROSS}}>;
var<workgroup> tops: array<T, {{ROWS}}>;
var<private> from_q: u32;
var<private> from_k: u32;
var<private> from_v: u32;
fn row_value(which: u32, i: u32, e: u32) -> T {
    if (i >= {{queries}}) { return T(0); }
    return read_q(from_q + i * {{q_row}} + e * {{q_col}});
}
fn col_value(which: u32, i: u32, e: u32) -> T {
    if (i >= {{keys}}) { return T(0); }
    if (which == 0u) { return read_k(from_k + i * {{k_row}} + e * {{k_col}}); }
    return read_v(from_v + i * {{v_row}} + e * {{v_col}});
}
// Nothing yet, as a number that can be subtracted.
fn lowered(top: T) -> T {
    return select(top, T(0), is_nothing(top));
}

@compute @workgroup_size({{LANES}})
fn main(
    @builtin(workgroup_id) g: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let unit = g.y * groups.x + g.x;
    let whole = min(unit / {{blocks}}, {{heads}} * {{pieces}} - 1u);
    let head = whole % {{heads}};
    let key0 = whole / {{heads}} * {{length}};
    let row0 = unit % {{blocks}} * ROWS;
    from_q = {{q}} + walk_q(head);
    from_k = {{k}} + walk_k(head / {{each}});
    from_v = {{v}} + walk_v(head / {{each}});
    let from_out = {{out}} + walk_out(whole);
    let col = lane % ACROSS;
    var result: Sums;
    var top: array<T, {{RM}}>;
    // Of this invocation's columns alone.
    var total: array<T, {{RM}}>;
    for (var i = 0u; i < RM; i++) {
        top[i] = lowest_();
        let r = row0 + row_of(lane, i);
        if ({{first}} > 0u && r < {{queries}}) {
            top[i] = read_logs({{logs}} + whole * {{queries}} + r);
            total[i] = select(T(0), T(1), col == 0u && !is_nothing(top[i]));
            for (var j = 0u; j < RE; j++) {
                if (element_of(lane, j) < {{depth}}) {
                    result[i][j / 4u][j % 4u] = read_out(from_out + r * {{out_row}} + element_of(lane, j) * {{out_col}});
                }
            }
        }
    }
    let last = min(key0 + {{last}}, {{keys}});
    let end = select(last, min(last, row0 + ROWS), {{causal}});
    for (var col0 = key0 + {{first}}; col0 < end; col0 += COLS) {
        var scores: Scores;
        product(0u, row0, col0, {{width}}, lane, &scores);
        for (var i = 0u; i < RM; i++) {
            var most = lowest_();
            for (var j = 0u; j < 4u; j++) {
                scores[i][j] = score(head, row0 + row_of(lane, i), col0 + 4u * col + j, scores[i][j]);
                // A NaN need not win: its weight is one, and so is the result.
                most = max(most, scores[i][j]);
            }
            parts[row_of(lane, i) * ACROSS + col] = most;
        }
        workgroupBarrier();
        if (lane < ROWS) {
            var most = parts[lane * ACROSS];
            for (var t = 1u; t < ACROSS; t++) {
                most = max(most, parts[lane * ACROSS + t]);
            }
            tops[lane] = most;
        }
        workgroupBarrier();
        for (var i = 0u; i < RM; i++) {
            let most = max(top[i], tops[row_of(lane, i)]);
            let shift = lowered(most);
            let keep = exp_(top[i] - shift);
            var sum = T(0);
            for (var j = 0u; j < 4u; j++) {
                scores[i][j] = exp_(scores[i][j] - shift);
                sum += scores[i][j];
            }
            top[i] = most;
            total[i] = total[i] * keep + sum;
            for (var q = 0u; q < RE / 4u; q++) {
                result[i][q] *= keep;
            }
        }
        share(scores, lane);
        accumulate(1u, col0, {{keys}}, {{depth}}, lane, &result);
    }
    workgroupBarrier();
    for (var i = 0u; i < RM; i++) {
        parts[row_of(lane, i) * ACROSS + col] = total[i];
    }
    workgroupBarrier();
    if (unit >= {{blocks}} * {{heads}} * {{pieces}}) {
        return;
    }
    for (var i = 0u; i < RM; i++) {
        var sum = T(0);
        for (var t = 0u; t < ACROSS; t++) {
            sum += parts[row_of(lane, i) * ACROSS + t];
        }
        let r = row0 + row_of(lane, i);
        if (r < {{queries}}) {
            let some = truth(sum);
            let factor = select(T(0), T(1) / sum, some);
            for (var j = 0u; j < RE; j++) {
                let e = element_of(lane, j);
                if (e < {{depth}}) {
                    write_out(from_out + r * {{out_row}} + e * {{out_col}}, result[i][j / 4u][j % 4u] * factor);
                }
            }
            if (col == 0u) {
                write_logs({{logs}} + whole * {{queries}} + r, select(lowest_(), top[i] + ln_(sum), some));
            }
        }
    }
}
