// Attention in tiles: a workgroup owns ROWS rows of the scores (queries, or keys for the gradients of keys and values)
// and visits the columns (keys, or queries) COLS at a time. An invocation holds RM x RN scores and RM x RE sums.
{{declarations}}
const ROWS = {{ROWS}}u;
const COLS = {{COLS}}u;
const ACROSS = {{ACROSS}}u;
const LANES = {{LANES}}u;
const RM = {{RM}}u;
const RN = {{RN}}u;
const RE = {{RE}}u;
// Elements of a row that are multiplied between two barriers, the padded size of a head, and the columns whose values
// fit the tile.
const DEPTH = {{DEPTH}}u;
const WIDTH = {{WIDTH}}u;
const PART = {{PART}}u;
alias Scores = array<array<T, {{RN}}>, {{RM}}>;
alias Sums = array<array<T, {{RE}}>, {{RM}}>;
// Elements of the rows while scores are computed; then the weights of the block. One element more a row, so that rows
// begin in different banks.
var<workgroup> block: array<T, {{block}}>;
// Elements of the columns.
var<workgroup> tile: array<T, {{tile}}>;

// The score of a query and a key from their dot product; -inf where the key is hidden or there is none.
fn score(head: u32, query: u32, key: u32, dot: T) -> T {
    if (query >= {{queries}} || key >= {{keys}} || ({{causal}} && key > query)) {
        return lowest_();
    }
    var v = {{scale}} * dot;
    {{mask_term}}
    return v;
}

// Whether a maximum, or the logarithm of a sum, is that of no key.
fn is_nothing(x: T) -> bool {
    return is_inf(x) && is_negative(x);
}
// The weight of a key from its score and the logarithm of the query's sum.
fn weight(s: T, log_sum: T) -> T {
    return select(exp_(s - log_sum), T(0), is_nothing(log_sum));
}

// Products of the rows from `row0` with the columns from `col0`, over `depth` elements of operand `which`.
fn product(which: u32, row0: u32, col0: u32, depth: u32, lane: u32, to: ptr<function, Scores>) {
    let row = lane / ACROSS * RM;
    let col = lane % ACROSS;
    var sums: Scores;
    for (var start = 0u; start < depth; start += DEPTH) {
        workgroupBarrier();
        for (var i = lane; i < ROWS * DEPTH; i += LANES) {
            let e = i % DEPTH;
            var v = T(0);
            if (start + e < depth) {
                v = row_value(which, row0 + i / DEPTH, start + e);
            }
            block[i / DEPTH * (DEPTH + 1u) + e] = v;
        }
        for (var i = lane; i < COLS * DEPTH; i += LANES) {
            let e = i % DEPTH;
            var v = T(0);
            if (start + e < depth) {
                v = col_value(which, col0 + i / DEPTH, start + e);
            }
            tile[i / DEPTH * (DEPTH + 1u) + e] = v;
        }
        workgroupBarrier();
        let n = min(DEPTH, depth - start);
        for (var e = 0u; e < n; e++) {
            var right: array<T, {{RN}}>;
            for (var j = 0u; j < RN; j++) {
                right[j] = tile[(col + j * ACROSS) * (DEPTH + 1u) + e];
            }
            for (var i = 0u; i < RM; i++) {
                let left = block[(row + i) * (DEPTH + 1u) + e];
                for (var j = 0u; j < RN; j++) {
                    sums[i][j] += left * right[j];
                }
            }
        }
    }
    *to = sums;
}

// Adds the weights in `block` times the columns from `col0` to `end` of operand `which`, rows of `depth` elements.
fn accumulate(which: u32, col0: u32, end: u32, depth: u32, lane: u32, to: ptr<function, Sums>) {
    let row = lane / ACROSS * RM;
    let col = lane % ACROSS;
    var sums = *to;
    let count = min(COLS, end - col0);
    for (var start = 0u; start < count; start += PART) {
        workgroupBarrier();
        for (var i = lane; i < PART * WIDTH; i += LANES) {
            let e = i % WIDTH;
            var v = T(0);
            if (e < depth) {
                v = col_value(which, col0 + start + i / WIDTH, e);
            }
            tile[i] = v;
        }
        workgroupBarrier();
        let n = min(PART, count - start);
        for (var c = 0u; c < n; c++) {
            var right: array<T, {{RE}}>;
            for (var j = 0u; j < RE; j++) {
                right[j] = tile[c * WIDTH + col + j * ACROSS];
            }
            for (var i = 0u; i < RM; i++) {
                let left = block[(row + i) * (COLS + 1u) + start + c];
                for (var j = 0u; j < RE; j++) {
                    sums[i][j] += left * right[j];
                }
            }
        }
    }
    *to = sums;
}

// Puts the weights of this invocation into `block`, after everybody has read what lies there.
fn share(weights: Scores, lane: u32) {
    var values = weights;
    workgroupBarrier();
    for (var i = 0u; i < RM; i++) {
        for (var j = 0u; j < RN; j++) {
            block[(lane / ACROSS * RM + i) * (COLS + 1u) + lane % ACROSS + j * ACROSS] = values[i][j];
        }
    }
}
{{body}}
