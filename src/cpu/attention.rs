//! Attention in blocks of queries and keys, forward and backward: no matrix of all scores exists.
//!
//! Forward keeps for each query the maximum and the sum of the exponentials so far, and rescales when the maximum grows:
//! Milakov and Gimelshein, arXiv:1805.02867; Dao et al., "FlashAttention", arXiv:2205.14135. It saves the logarithm of the
//! sum, from which backward computes the weights of a block again. Causal attention skips the blocks that are masked as a
//! whole. Keys and values are packed once; memory is linear in their number.

mod backward;

pub use self::backward::backward;

use super::gemm::tiles::Vectors;
use super::math::{Float, exp_nonpositive};
use super::number_class::{Fp, Fuse, Num, Real};
use super::panel::{Panels, Part};
use super::parallel::try_par_for;
use super::scratch::Temp;
use super::simd::{self, Kernel};
use super::view::{SendPtr, View, ensure};
use crate::dtype::DType;
use crate::error::Result;
use crate::rt::reserve::try_list;

/// Queries and keys of a block; a multiple of a panel's columns.
const BLOCK: usize = 64;
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
    // SAFETY: the caller's promise.
    let (keys, values) = unsafe { (packed::<T>(&o.key, true)?, packed::<T>(&o.value, false)?) };
    let blocks = s.queries.div_ceil(BLOCK);
    let work = BLOCK * s.keys.max(1) * (s.width + s.depth).max(1);
    try_par_for(s.batch * s.heads * blocks, (1 << 16) / work + 1, |range| {
        // A block of scaled queries, of scores and of results, then maxima and sums.
        let scratch: Temp<T> = Temp::new(BLOCK * (s.width + BLOCK + s.depth + 2))?;
        for task in range {
            let (b, h, first) = (task / blocks / s.heads, task / blocks % s.heads, task % blocks * BLOCK);
            let group = b * s.groups + h / (s.heads / s.groups);
            let count = BLOCK.min(s.queries - first);
            let at = Place { batch: b, head: h, first, count };
            let panels = [&keys[group], &values[group]];
            simd::run_wide(Forward { o, s, at, panels, scratch: scratch.ptr(), out, sums });
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
    /// Keys by columns, values by rows.
    panels: [&'a Panels<T>; 2],
    scratch: *mut T,
    out: View<'a>,
    sums: View<'a>,
}

impl<T: Float + Vectors> Kernel for Forward<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let (s, at) = (self.s, self.at);
        let query = self.scratch;
        let scores = query.wrapping_add(BLOCK * s.width);
        let result = scores.wrapping_add(BLOCK * BLOCK);
        let most = result.wrapping_add(BLOCK * s.depth);
        let total = most.wrapping_add(BLOCK);
        let lowest = -T::INFINITY;
        // SAFETY: the scratch holds these blocks, rows lie inside the operands, and no other task writes these results.
        unsafe {
            scaled(&self.o.query, at, T::of(self.o.scale), query, s.width);
            (0..at.count * s.depth).for_each(|i| *result.add(i) = <T as Float>::ZERO);
            (0..at.count).for_each(|i| (*most.add(i), *total.add(i)) = (lowest, <T as Float>::ZERO));
            for key in (0..s.keys).step_by(BLOCK) {
                if self.o.causal && key >= at.first + at.count {
                    break;
                }
                let n = BLOCK.min(s.keys - key);
                let part = Part { terms: [0, s.width], cols: [key, key + n] };
                self.panels[0].multiply(part, query, scores, [s.width, 1, BLOCK], at.count, false);
                masked(self.o, at, key, n, scores);
                for i in 0..at.count {
                    let line = scores.add(i * BLOCK);
                    let old = *most.add(i);
                    let new = greatest(line, n, old);
                    *most.add(i) = new;
                    if new == lowest {
                        (0..n).for_each(|j| *line.add(j) = <T as Float>::ZERO); // all masked so far
                        continue;
                    }
                    let keep = Fp::<T, F>::new(old - new).exp().0;
                    let sum = exponentials::<T, F>(line, n, new);
                    *total.add(i) = *total.add(i) * keep + sum;
                    if keep != <T as Float>::ONE {
                        (0..s.depth).for_each(|d| *result.add(i * s.depth + d) = *result.add(i * s.depth + d) * keep);
                    }
                }
                let part = Part { terms: [key, key + n], cols: [0, s.depth] };
                self.panels[1].multiply(part, scores, result, [BLOCK, 1, s.depth], at.count, true);
            }
            let sums = (self.sums.ptr as *mut T).add((at.batch * s.heads + at.head) * s.queries + at.first);
            for i in 0..at.count {
                let (most, total) = (*most.add(i), *total.add(i));
                let empty = most == lowest;
                let factor = if empty { <T as Float>::ZERO } else { <T as Float>::ONE / total };
                let to = row::<T>(&self.out, at.batch, at.head, at.first + i);
                (0..s.depth).for_each(|d| *to.add(d) = *result.add(i * s.depth + d) * factor);
                *sums.add(i) = if empty { lowest } else { most + Fp::<T, F>::new(total).ln().0 };
            }
        }
    }
}

/// A block of queries times `scale`, row by row.
///
/// # Safety
/// The rows are the operand's; `to` holds them.
#[inline(always)]
unsafe fn scaled<T: Float>(query: &View, at: Place, scale: T, to: *mut T, width: usize) {
    for i in 0..at.count {
        let from = row::<T>(query, at.batch, at.head, at.first + i);
        // SAFETY: the caller's promise.
        (0..width).for_each(|e| unsafe { *to.add(i * width + e) = *from.add(e) * scale });
    }
}

/// Adds the mask to a block of scores, and `-inf` to keys that come after their query.
///
/// # Safety
/// The block holds `BLOCK` scores a query.
#[inline(always)]
unsafe fn masked<T: Float>(o: &Heads, at: Place, key: usize, n: usize, scores: *mut T) {
    if let Some(mask) = &o.mask {
        let step = mask.strides[3];
        for i in 0..at.count {
            let from = row::<T>(mask, at.batch, at.head, at.first + i).wrapping_add(key * step);
            let line = scores.wrapping_add(i * BLOCK);
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
            (seen..n).for_each(|j| unsafe { *scores.add(i * BLOCK + j) = -T::INFINITY });
        }
    }
}

/// The largest of `n` scores and `start`; NaN if one is.
///
/// # Safety
/// The line holds `n` scores.
#[inline(always)]
#[allow(clippy::eq_op)] // `x != x` is the NaN test
unsafe fn greatest<T: Float>(line: *const T, n: usize, start: T) -> T {
    let larger = |a: T, x: T| if x > a || x != x { x } else { a };
    let mut lanes = [start; LANES];
    let whole = n / LANES * LANES;
    for j in (0..whole).step_by(LANES) {
        // SAFETY: the caller's promise.
        (0..LANES).for_each(|l| lanes[l] = larger(lanes[l], unsafe { *line.add(j + l) }));
    }
    // SAFETY: the caller's promise.
    let rest = (whole..n).fold(start, |a, j| larger(a, unsafe { *line.add(j) }));
    lanes.into_iter().fold(rest, larger)
}

/// Replaces `n` scores by `exp(score - most)`, and sums them.
///
/// # Safety
/// The line holds `n` scores.
#[inline(always)]
unsafe fn exponentials<T: Float, F: Fuse>(line: *mut T, n: usize, most: T) -> T {
    let line = line as *mut Fp<T, F>;
    let lowered = |x: Fp<T, F>| Fp::new(exp_nonpositive::<T, F>(x.0 - most));
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
        let mut sum = lanes.into_iter().fold(Fp::zero(), |a, b| a + b);
        for j in whole..n {
            *line.add(j) = lowered(*line.add(j));
            sum = sum + *line.add(j);
        }
        sum.0
    }
}
