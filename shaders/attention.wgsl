// Attention in tiles: a workgroup owns ROWS rows of the scores (queries, or keys for the gradients of keys and values)
// and visits the columns (keys, or queries) COLS at a time. An invocation holds scores of four neighbouring columns, and sums
// of RE elements, four neighbours at a time, for each of RM rows. Workgroup memory is read four elements at a time.
{{declarations}}
const ROWS = {{ROWS}}u;
const COLS = {{COLS}}u;
const ACROSS = {{ACROSS}}u;
const LANES = {{LANES}}u;
const RM = {{RM}}u;
const RE = {{RE}}u;
const DOWN = {{DOWN}}u;
// Elements of a row that are multiplied between two barriers, the padded size of a head, and the columns whose values
// fit the tile.
const DEPTH = {{DEPTH}}u;
const WIDTH = {{WIDTH}}u;
const PART = {{PART}}u;
// Fours of a line of each: one more than it needs, so that lines begin in different banks.
const LINE = {{LINE}}u;
const TILE_LINE = DEPTH / 4u + 1u;
alias V = vec4<T>;
alias Scores = array<V, {{RM}}>;
alias Sums = array<array<V, {{FOURS}}>, {{RM}}>;
// Elements of the rows while scores are computed; then the weights of the block.
var<workgroup> block: array<V, {{block}}>;
// Elements of the columns.
var<workgroup> tile: array<V, {{tile}}>;

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

// Row `i` of an invocation, and element `j` of its sums, in the tile.
fn row_of(lane: u32, i: u32) -> u32 {
    return lane / ACROSS + i * DOWN;
}
fn element_of(lane: u32, j: u32) -> u32 {
    return (j / 4u * ACROSS + lane % ACROSS) * 4u + j % 4u;
}
// Four elements of a row, and of a column, from `e` on; zeros from `depth` on.
fn row_four(which: u32, i: u32, e: u32, depth: u32) -> V {
    var v = V();
    if (e < depth) { v.x = row_value(which, i, e); }
    if (e + 1u < depth) { v.y = row_value(which, i, e + 1u); }
    if (e + 2u < depth) { v.z = row_value(which, i, e + 2u); }
    if (e + 3u < depth) { v.w = row_value(which, i, e + 3u); }
    return v;
}
fn col_four(which: u32, i: u32, e: u32, depth: u32) -> V {
    var v = V();
    if (e < depth) { v.x = col_value(which, i, e); }
    if (e + 1u < depth) { v.y = col_value(which, i, e + 1u); }
    if (e + 2u < depth) { v.z = col_value(which, i, e + 2u); }
    if (e + 3u < depth) { v.w = col_value(which, i, e + 3u); }
    return v;
}

// Products of the rows from `row0` with the columns from `col0`, over `depth` elements of operand `which`. In the tile,
// columns that neighbours read together lie beside each other: the first of each four, then the second.
fn product(which: u32, row0: u32, col0: u32, depth: u32, lane: u32, to: ptr<function, Scores>) {
    let row = lane / ACROSS;
    let col = lane % ACROSS;
    var sums: Scores;
    for (var start = 0u; start < depth; start += DEPTH) {
        workgroupBarrier();
        for (var i = lane; i < ROWS * DEPTH / 4u; i += LANES) {
            let e = i % (DEPTH / 4u);
            block[i / (DEPTH / 4u) * LINE + e] = row_four(which, row0 + i / (DEPTH / 4u), start + 4u * e, depth);
        }
        for (var i = lane; i < COLS * DEPTH / 4u; i += LANES) {
            let e = i % (DEPTH / 4u);
            let c = i / (DEPTH / 4u);
            tile[(c % 4u * ACROSS + c / 4u) * TILE_LINE + e] = col_four(which, col0 + c, start + 4u * e, depth);
        }
        workgroupBarrier();
        let n = (min(DEPTH, depth - start) + 3u) / 4u;
        for (var e = 0u; e < n; e++) {
            let a = tile[col * TILE_LINE + e];
            let b = tile[(ACROSS + col) * TILE_LINE + e];
            let c = tile[(2u * ACROSS + col) * TILE_LINE + e];
            let d = tile[(3u * ACROSS + col) * TILE_LINE + e];
            for (var i = 0u; i < RM; i++) {
                let left = block[(row + i * DOWN) * LINE + e];
                sums[i] += left.x * V(a.x, b.x, c.x, d.x);
                sums[i] += left.y * V(a.y, b.y, c.y, d.y);
                sums[i] += left.z * V(a.z, b.z, c.z, d.z);
                sums[i] += left.w * V(a.w, b.w, c.w, d.w);
            }
        }
    }
    *to = sums;
}

// Adds the weights in `block` times the columns from `col0` to `end` of operand `which`, rows of `depth` elements.
fn accumulate(which: u32, col0: u32, end: u32, depth: u32, lane: u32, to: ptr<function, Sums>) {
    let row = lane / ACROSS;
    let col = lane % ACROSS;
    var sums = *to;
    let count = min(COLS, end - col0);
    for (var start = 0u; start < count; start += PART) {
        workgroupBarrier();
        for (var i = lane; i < PART * WIDTH / 4u; i += LANES) {
            tile[i] = col_four(which, col0 + start + i / (WIDTH / 4u), i % (WIDTH / 4u) * 4u, depth);
        }
        workgroupBarrier();
        // Columns beyond the last are zeros, and so are their weights.
        let n = min(PART, count - start);
        for (var c = 0u; c < n; c += 4u) {
            var left: array<V, {{RM}}>;
            for (var i = 0u; i < RM; i++) {
                left[i] = block[(row + i * DOWN) * LINE + (start + c) / 4u];
            }
            for (var q = 0u; q < RE / 4u; q++) {
                let at = c * (WIDTH / 4u) + q * ACROSS + col;
                let right_x = tile[at];
                let right_y = tile[at + WIDTH / 4u];
                let right_z = tile[at + WIDTH / 2u];
                let right_w = tile[at + WIDTH / 4u * 3u];
                for (var i = 0u; i < RM; i++) {
                    sums[i][q] += left[i].x * right_x;
                    sums[i][q] += left[i].y * right_y;
                    sums[i][q] += left[i].z * right_z;
                    sums[i][q] += left[i].w * right_w;
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
        block[row_of(lane, i) * LINE + lane % ACROSS] = values[i];
    }
}
{{body}}
