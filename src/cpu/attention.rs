//! Attention in blocks of queries and keys, forward and backward: no matrix of all scores exists.
//!
//! Forward keeps for each query the maximum and the sum of the exponentials so far, and rescales when the maximum grows:
//! Milakov and Gimelshein, arXiv:1805.02867; Dao et al., "FlashAttention", arXiv:2205.14135. It saves the logarithm of the
//! sum, from which backward computes the weights of a block again. Causal attention skips the blocks that are masked as a
//! whole. Keys and values are packed once; memory is linear in their number.

mod backward;

pub use self::backward::backward;

use super::gemm::tiles::{Apart, Packed, Vectors, tile_size};
use super::math::{Float, exp2_weight};
use super::number_class::{Fp, Fuse, Num, Real};
use super::panel::{Panels, Part};
use super::parallel::{num_threads, try_par_for};
use super::scratch::Temp;
use super::simd::{self, Kernel};
use super::view::{SendPtr, View, ensure};
use crate::dtype::DType;
use crate::error::Result;
use crate::rt::reserve::try_list;

/// Queries of a task, and in backward keys of a block; a multiple of a panel's columns.
const BLOCK: usize = 64;
/// Keys whose scores with a tile of queries are held at a time, in L1; a multiple of a panel's columns and of `LANES`.
const KEYS: usize = 256;
/// Scores whose maximum and sum are found together.
const LANES: usize = 16;

/// The operands, of one float type: query `[B, H, L, E]`, key `[B, G, S, E]`, value `[B, G, S, D]`, whose last dimension is
/// dense, and a mask `[B, H, L, S]` that is added to the scores. H is a multiple of G.
pub struct Heads<'a> {
    pub query: View<'a>,
    pub key: View<'a>,
    pub value: View<'a>,
    pub mask: Option<View<'a>>,
    pub causal: bool,
    pub scale: f64,
}

/// Sizes: batch, heads, heads of keys, queries, keys, size of query and key, size of value.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    heads: usize,
    groups: usize,
    queries: usize,
    keys: usize,
    width: usize,
    depth: usize,
}

impl Heads<'_> {
    fn sizes(&self) -> Option<Sizes> {
        let (&[batch, heads, queries, width], &[b, groups, keys, w]) = (self.query.shape, self.key.shape) else {
            return None;
        };
        let &[v_batch, v_groups, v_keys, depth] = self.value.shape else { return None };
        let fits = (batch, width) == (b, w)
            && (batch, groups, keys) == (v_batch, v_groups, v_keys)
            && groups > 0
            && heads.is_multiple_of(groups)
            && self.mask.is_none_or(|m| m.shape == [batch, heads, queries, keys] && m.dtype == self.query.dtype);
        fits.then_some(Sizes { batch, heads, groups, queries, keys, width, depth })
    }
    /// Refuses operands, or others than of the given shapes, whose last dimension is not dense or of another type.
    fn checked(&self, others: &[(View, [usize; 4])]) -> Result<()> {
        let dense = |v: &View| v.dtype == self.query.dtype && (v.strides[3] == 1 || v.shape[3] <= 1);
        let right = others.iter().all(|(v, shape)| v.shape == shape && dense(v));
        ensure(right && [self.query, self.key, self.value].iter().all(dense), "attention")
    }
}

/// Address of row `i` of head `h` of batch `b`.
fn row<T>(v: &View, b: usize, h: usize, i: usize) -> *mut T {
    (v.ptr as *mut T).wrapping_add(b * v.strides[0] + h * v.strides[1] + i * v.strides[2])
}

/// `out` `[B, H, L, D]`, and for each query the logarithm of the sum of its exponentials `[B, H, L]`, row-major.
pub fn forward(o: &Heads, out: View, sums: View) -> Result<()> {
    let Some(s) = o.sizes() else { return ensure(false, "attention") };
    o.checked(&[(out, [s.batch, s.heads, s.queries, s.depth])])?;
    let apart = [o.query, o.key, o.value].iter().chain(&o.mask).all(|v| v.is_apart(&out) && v.is_apart(&sums));
    let fits = sums.shape == [s.batch, s.heads, s.queries] && sums.is_contiguous() && sums.dtype == out.dtype;
    ensure(apart && fits && out.is_apart(&sums), "attention")?;
    // SAFETY: the operands fit together, and results lie apart from what is read.
    unsafe {
        match out.dtype {
            DType::F32 => run_forward::<f32>(o, s, out, sums),
            DType::F64 => run_forward::<f64>(o, s, out, sums),
            _ => ensure(false, "attention"),
        }
    }
}

/// For every batch and head of keys a matrix packed by columns (true: of the transposed) or by rows.
unsafe fn packed<T: Float + Vectors>(v: &View, transposed: bool) -> Result<Vec<Panels<T>>> {
    let &[batch, heads, rows, cols] = v.shape else { return Ok(Vec::new()) };
    let (terms, cols) = if transposed { (cols, rows) } else { (rows, cols) };
    let mut all = try_list((0..batch * heads).map(|_| Panels::<T>::room(terms, cols)))?;
    let (slots, strides) = (SendPtr(all.as_mut_ptr()), if transposed { [1, v.strides[2]] } else { [v.strides[2], 1] });
    try_par_for(batch * heads, 1 + (1 << 14) / (terms * cols).max(1), |range| {
        for i in range {
            // SAFETY: each index is packed by one task; the rows are those of the operand.
            unsafe { (*slots.at(i)).pack(row(v, i / heads, i % heads, 0), strides, terms, cols) };
        }
        Ok(())
    })?;
    Ok(all)
}

unsafe fn run_forward<T: Float + Vectors>(o: &Heads, s: Sizes, out: View, sums: View) -> Result<()> {
    let (blocks, tile, groups) = (s.queries.div_ceil(BLOCK), tile_size::<T>(), s.batch * s.groups);
    // A block of scaled queries and of results, maxima and sums, and the scores of a tile.
    let size = BLOCK * (s.width + s.depth.next_multiple_of(tile[1]) + 2) + tile[0] * KEYS;
    let work = BLOCK * s.keys.max(1) * (s.width + s.depth).max(1);
    let run = |head: usize, block: usize, panels: [&Panels<T>; 2], scratch: &Temp<T>| {
        let first = block * BLOCK;
        let at = Place { batch: head / s.heads, head: head % s.heads, first, count: BLOCK.min(s.queries - first) };
        simd::run_wide(Forward { o, s, at, tile, panels, scratch: scratch.ptr(), out, sums });
    };
    let each = s.heads / s.groups;
    // With a task for each head of keys, what it has packed stays in its cache.
    if groups >= 4 * num_threads() {
        return try_par_for(groups, (1 << 16) / (work * blocks * each).max(1) + 1, |range| {
            let (scratch, mut keys) = (Temp::new(size)?, Panels::room(s.width, s.keys)?);
            let mut values = Panels::room(s.keys, s.depth)?;
            for group in range {
                let (b, g) = (group / s.groups, group % s.groups);
                // SAFETY: the rows are those of the operands.
                unsafe {
                    keys.pack(row(&o.key, b, g, 0), [1, o.key.strides[2]], s.width, s.keys);
                    values.pack(row(&o.value, b, g, 0), [o.value.strides[2], 1], s.keys, s.depth);
                }
                for i in 0..each * blocks {
                    run(group * each + i / blocks, i % blocks, [&keys, &values], &scratch);
                }
            }
            Ok(())
        });
    }
    // SAFETY: the caller's promise.
    let (keys, values) = unsafe { (packed::<T>(&o.key, true)?, packed::<T>(&o.value, false)?) };
    try_par_for(s.batch * s.heads * blocks, (1 << 16) / work + 1, |range| {
        let scratch = Temp::new(size)?;
        for task in range {
            let head = task / blocks;
            run(head, task % blocks, [&keys[head / each], &values[head / each]], &scratch);
        }
        Ok(())
    })
}

/// A block of queries.
#[derive(Clone, Copy)]
struct Place {
    batch: usize,
    head: usize,
    first: usize,
    count: usize,
}

/// A block of queries and all keys; operands that `forward` has checked.
struct Forward<'a, T> {
    o: &'a Heads<'a>,
    s: Sizes,
    at: Place,
    /// Rows and columns of a tile.
    tile: [usize; 2],
    /// Keys by columns, values by rows.
    panels: [&'a Panels<T>; 2],
    scratch: *mut T,
    out: View<'a>,
    sums: View<'a>,
}

/// What is held for each query of a tile: the scaled query, the weighted sum of values, the maximum and the sum of the
/// weights.
struct State<T> {
    query: *mut T,
    result: *mut T,
    most: *mut T,
    total: *mut T,
}

impl<T: Float + Vectors> Kernel for Forward<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let (s, at) = (self.s, self.at);
        let padded = s.depth.next_multiple_of(self.tile[1]);
        let query = self.scratch;
        let result = query.wrapping_add(BLOCK * s.width);
        let most = result.wrapping_add(BLOCK * padded);
        let total = most.wrapping_add(BLOCK);
        let lowest = -T::INFINITY;
        // SAFETY: the scratch holds these blocks, rows lie inside the operands, and no other task writes these results.
        unsafe {
            (0..at.count).for_each(|i| (*most.add(i), *total.add(i)) = (lowest, <T as Float>::ZERO));
            // A block of keys and values stays in L2 while all tiles meet it.
            for key in (0..s.keys).step_by(KEYS) {
                for first in (0..at.count).step_by(self.tile[0]) {
                    let count = self.tile[0].min(at.count - first);
                    let state = State {
                        query: query.add(first * s.width),
                        result: result.add(first * padded),
                        most: most.add(first),
                        total: total.add(first),
                    };
                    let tile = Place { first: at.first + first, count, ..at };
                    if key == 0 {
                        // Packed: those of a term lie side by side.
                        scaled(&self.o.query, tile, T::of(self.o.scale), state.query, [1, count], s.width);
                    }
                    self.meet::<F>(tile, key, state);
                }
            }
            let sums = (self.sums.ptr as *mut T).add((at.batch * s.heads + at.head) * s.queries + at.first);
            for i in 0..at.count {
                let (total, from) = (*total.add(i), result.add(i * padded));
                let to = row::<T>(&self.out, at.batch, at.head, at.first + i);
                if total == <T as Float>::ZERO {
                    (0..s.depth).for_each(|d| *to.add(d) = <T as Float>::ZERO); // no key, or all are masked
                    continue;
                }
                let factor = <T as Float>::ONE / total;
                (0..s.depth).for_each(|d| *to.add(d) = *from.add(d) * factor);
            }
            for i in 0..at.count {
                let (most, total) = (*most.add(i), *total.add(i));
                let log = most + Fp::<T, F>::new(total).ln().0;
                *sums.add(i) = if total == <T as Float>::ZERO { lowest } else { log };
            }
        }
    }
}

impl<T: Float + Vectors> Forward<'_, T> {
    /// A tile of queries and the keys from `key` on, `KEYS` at most.
    ///
    /// # Safety
    /// The state is that of these queries.
    #[inline(always)]
    unsafe fn meet<F: Fuse>(&self, at: Place, key: usize, state: State<T>) {
        let (s, [tall, wide]) = (self.s, self.tile);
        let left = if self.o.causal { (at.first + at.count).saturating_sub(key) } else { KEYS };
        let n = KEYS.min(s.keys - key).min(left);
        if n == 0 {
            return;
        }
        let (padded, lined) = (s.depth.next_multiple_of(wide), n.next_multiple_of(LANES));
        let scores = self.scratch.wrapping_add(BLOCK * (s.width + padded + 2));
        debug_assert!(at.count <= tall);
        // SAFETY: the caller's promise; the scratch holds the scores of a tile, and panels are whole.
        unsafe {
            let part = Part { terms: [0, s.width], cols: [key, key + n.next_multiple_of(wide)] };
            self.panels[0].multiply_tile(part, Packed(state.query.cast_const()), scores, KEYS, at.count, false);
            masked(self.o, at, key, n, scores, KEYS);
            for i in 0..at.count {
                let line = scores.add(i * KEYS);
                for j in n..lined {
                    *line.add(j) = -T::INFINITY;
                }
                let old = *state.most.add(i);
                let new = greatest(line, lined);
                let new = if new > old { new } else { old };
                if new == -T::INFINITY {
                    *state.total.add(i) = *state.total.add(i) + hidden(line, lined);
                    continue;
                }
                let sum = exponentials::<T, F>(line, lined, new);
                let keep = exp2_weight::<T, F>((old - new) * T::LOG2_E);
                (*state.most.add(i), *state.total.add(i)) = (new, *state.total.add(i) * keep + sum);
                if key > 0 && keep != <T as Float>::ONE {
                    let result = state.result.add(i * padded);
                    for d in 0..padded {
                        *result.add(d) = *result.add(d) * keep;
                    }
                }
            }
            let part = Part { terms: [key, key + n], cols: [0, padded] };
            let weights = Apart::<T, KEYS>(scores.cast_const());
            self.panels[1].multiply_tile(part, weights, state.result, padded, at.count, key > 0);
        }
    }
}

/// A block of queries times `scale`; `steps` are the distances of queries and of their elements.
///
/// # Safety
/// The rows are the operand's; `to` holds them.
#[inline(always)]
unsafe fn scaled<T: Float>(query: &View, at: Place, scale: T, to: *mut T, steps: [usize; 2], width: usize) {
    for i in 0..at.count {
        let from = row::<T>(query, at.batch, at.head, at.first + i);
        // SAFETY: the caller's promise.
        (0..width).for_each(|e| unsafe { *to.add(i * steps[0] + e * steps[1]) = *from.add(e) * scale });
    }
}

/// Adds the mask to a block of scores, and `-inf` to keys that come after their query.
///
/// # Safety
/// The block holds `n` scores for each query, and queries lie `stride` scores apart.
#[inline(always)]
unsafe fn masked<T: Float>(o: &Heads, at: Place, key: usize, n: usize, scores: *mut T, stride: usize) {
    if let Some(mask) = &o.mask {
        let step = mask.strides[3];
        for i in 0..at.count {
            let from = row::<T>(mask, at.batch, at.head, at.first + i).wrapping_add(key * step);
            let line = scores.wrapping_add(i * stride);
            // SAFETY: the caller's promise; the row is the mask's.
            unsafe {
                if step == 1 {
                    (0..n).for_each(|j| *line.add(j) = *line.add(j) + *from.add(j));
                } else {
                    (0..n).for_each(|j| *line.add(j) = *line.add(j) + *from.add(j * step));
                }
            }
        }
    }
    if o.causal && key + n > at.first + 1 {
        for i in 0..at.count {
            let seen = (at.first + i + 1).saturating_sub(key).min(n);
            // SAFETY: the caller's promise.
            (seen..n).for_each(|j| unsafe { *scores.add(i * stride + j) = -T::INFINITY });
        }
    }
}

/// `f` over all lanes, halves first: a chain over sixteen lanes waits longer than a short row takes.
#[inline(always)]
fn folded<X: Copy>(mut lanes: [X; LANES], f: impl Fn(X, X) -> X) -> X {
    let mut half = LANES / 2;
    // Loops, because `for_each` is not inlined here, and then compiled for the baseline.
    while half > 0 {
        for l in 0..half {
            lanes[l] = f(lanes[l], lanes[l + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// The largest of `n` scores that is not NaN; a NaN shows in the sum of the weights.
///
/// # Safety
/// The line holds `n` scores, a multiple of `LANES`.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // one index for memory and lanes
unsafe fn greatest<T: Float>(line: *const T, n: usize) -> T {
    let mut lanes = [-T::INFINITY; LANES];
    for j in (0..n).step_by(LANES) {
        for l in 0..LANES {
            // SAFETY: the caller's promise.
            let x = unsafe { *line.add(j + l) };
            lanes[l] = if x > lanes[l] { x } else { lanes[l] };
        }
    }
    folded(lanes, |a, x| if x > a { x } else { a })
}

/// Replaces `n` scores, none of which is larger than `-inf`, by weights of zero, and sums them: NaN stays.
///
/// # Safety
/// The line holds `n` scores.
#[inline(always)]
#[allow(clippy::eq_op)] // `x != x` is the NaN test
unsafe fn hidden<T: Float>(line: *mut T, n: usize) -> T {
    let zero = <T as Float>::ZERO;
    // SAFETY: the caller's promise.
    (0..n).fold(zero, |sum, j| unsafe {
        let x = *line.add(j);
        *line.add(j) = if x != x { x } else { zero };
        sum + *line.add(j)
    })
}

/// Replaces `n` scores by `exp(score - most)`, and sums them.
///
/// # Safety
/// The line holds `n` scores.
#[inline(always)]
unsafe fn exponentials<T: Float, F: Fuse>(line: *mut T, n: usize, most: T) -> T {
    let line = line as *mut Fp<T, F>;
    // Subtracted before the multiplication, in which scores near the lowest float would overflow.
    let lowered = |x: Fp<T, F>| Fp::new(exp2_weight::<T, F>((x.0 - most) * T::LOG2_E));
    let mut lanes = [Fp::<T, F>::zero(); LANES];
    let whole = n / LANES * LANES;
    // SAFETY: the caller's promise; `Fp` is the float itself.
    unsafe {
        for j in (0..whole).step_by(LANES) {
            let mut values = [Fp::zero(); LANES];
            (0..LANES).for_each(|l| values[l] = lowered(*line.add(j + l)));
            (0..LANES).for_each(|l| lanes[l] = lanes[l] + values[l]);
            (0..LANES).for_each(|l| *line.add(j + l) = values[l]);
        }
        // Without `black_box` LLVM would merge the loop with the folding, and keep pairs of lanes apart.
        let mut sum = folded(std::hint::black_box(lanes), |a, b| a + b);
        for j in whole..n {
            *line.add(j) = lowered(*line.add(j));
            sum = sum + *line.add(j);
        }
        sum.0
    }
}
