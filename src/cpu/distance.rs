//! Distances between rows, of all pairs of two sets or of each pair of one, and their gradients: the differences are never in memory.
//!
//! Work goes in tiles of pairs. Some rows are packed so that one component of all of them lies side by side: these are the lanes,
//! so rows of any length fill the registers. Sums go by blocks of `TERMS` components, or `ROWS` rows, which limits rounding
//! errors; tiles do not depend on the number of threads.

use super::arith::Float;
use super::gemm::Matrix;
use super::number_class::Fuse;
use super::parallel::try_par_for;
use super::reduce::reducer::Step;
use super::reduce::reducers::{Norm0, Norm1, Norm2, NormInf, NormP};
use super::scratch::Temp;
use super::simd::{self, Kernel};
use super::strided::gather;
use super::view::{View, ensure};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Odometer;

/// Rows beside the packed ones.
const ROWS: usize = 64;
/// Components of a block.
const TERMS: usize = 128;
/// Packed rows: eight registers of AVX2.
const F32_LANES: usize = 64;
const F64_LANES: usize = 32;
/// Least differences of a task.
const TASK: usize = 1 << 16;

/// The norms of order `p` of the differences of each row of `a` (`[.., P, M]`) and each of `b` (`[.., R, M]`), into `out`
/// (`[.., P, R]`). All are float32, or all float64, with the same leading dimensions.
pub fn distances(a: View, b: View, p: f64, out: View) -> Result<()> {
    ensure(fit([a, b], &[out]), "distances")?;
    forward([a, b], p, out)
}

/// The same for each pair of the N rows of `x`: N (N - 1) / 2, in the order of `Pairs::Once`.
pub fn pair_distances(x: View, p: f64, out: View) -> Result<()> {
    ensure(fit_once(x, &[out]), "pair_distances")?;
    forward([x, x], p, out)
}

/// The gradient of `distances` by `a`, from that of the distances (`[.., P, R]`) and the distances.
pub fn distances_backward(grad: View, [a, b]: [View; 2], p: f64, norms: View, out: View) -> Result<()> {
    ensure(fit([a, b], &[grad, norms]), "distances_backward")?;
    backward([a, b], p, [grad, norms], out)
}

/// The gradient of `pair_distances`.
pub fn pair_distances_backward(grad: View, x: View, p: f64, norms: View, out: View) -> Result<()> {
    ensure(fit_once(x, &[grad, norms]), "pair_distances_backward")?;
    backward([x, x], p, [grad, norms], out)
}

/// Whether these are rows of two sets, and numbers of all their pairs.
fn fit([a, b]: [View; 2], numbers: &[View]) -> bool {
    let Some(lead) = a.ndim().checked_sub(2) else { return false };
    let has = |v: &View, core: [usize; 2]| {
        typed(v, a.dtype) && v.ndim() == a.ndim() && v.shape[..lead] == a.shape[..lead] && v.shape[lead..] == core
    };
    b.ndim() == a.ndim()
        && has(&b, [b.shape[lead], a.shape[lead + 1]])
        && numbers.iter().all(|v| has(v, [a.shape[lead], b.shape[lead]]))
}
/// Whether this is the dtype, one of those that there are kernels for.
fn typed(v: &View, dtype: DType) -> bool {
    v.dtype == dtype && matches!(dtype, DType::F32 | DType::F64)
}

/// Whether these are rows of a set, and numbers of its pairs.
fn fit_once(x: View, numbers: &[View]) -> bool {
    let fits =
        |v: &View| typed(v, x.dtype) && v.ndim() == 1 && v.shape[0] == x.shape[0] * x.shape[0].saturating_sub(1) / 2;
    x.ndim() == 2 && numbers.iter().all(fits)
}

/// The rows of a batch.
fn rows_of<T>(v: View, offset: usize) -> Matrix<T> {
    let last = v.ndim() - 2;
    Matrix { ptr: v.at(offset).cast(), rows: v.strides[last], cols: v.strides[last + 1] }
}

/// Where the number of each pair of rows lies.
#[derive(Clone, Copy)]
enum Pairs<T> {
    All(Matrix<T>),
    /// The pairs of so many rows, a row's with those after it side by side.
    Once {
        ptr: *mut T,
        step: usize,
        of: usize,
    },
}
impl<T: Copy> Pairs<T> {
    /// Those of a batch of rows with so many dimensions.
    fn of(v: View, ndim: usize, offset: usize, rows: usize) -> Pairs<T> {
        match v.ndim() == ndim {
            true => Pairs::All(rows_of(v, offset)),
            false => Pairs::Once { ptr: v.ptr.cast(), step: v.strides[0], of: rows },
        }
    }
    /// The address for two rows, if they are a pair.
    #[inline(always)]
    fn at(self, i: usize, j: usize) -> Option<*mut T> {
        match self {
            Pairs::All(m) => Some(m.at(i, j)),
            Pairs::Once { .. } if i == j => None,
            Pairs::Once { ptr, step, of } => {
                let (i, j) = (i.min(j), i.max(j));
                Some(ptr.wrapping_add((i * of - i * (i + 1) / 2 + j - i - 1) * step))
            }
        }
    }
    /// How many of the rows from `first` on are not after row `i`, if pairs count once.
    fn skipped(self, i: usize, first: usize) -> usize {
        if matches!(self, Pairs::All(_)) { 0 } else { (i + 1).saturating_sub(first) }
    }
    /// Writes the numbers of row `i` with those from `first` on.
    ///
    /// # Safety
    /// They exist, and nothing else accesses them.
    #[inline(always)]
    unsafe fn write(self, i: usize, first: usize, numbers: &[T]) {
        let skip = self.skipped(i, first);
        let Some(numbers) = numbers.get(skip..) else { return };
        let Some(to) = self.at(i, first + skip) else { return };
        let step = match self {
            Pairs::All(m) => m.cols,
            Pairs::Once { step, .. } => step,
        };
        for (k, &number) in numbers.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { *to.wrapping_add(k * step) = number };
        }
    }
}

/// Copies components of `count` rows so that one of all rows lies side by side; lanes without a row repeat the first.
///
/// # Safety
/// The rows can be read, `to` has room for `n` times the lanes.
#[inline(always)]
unsafe fn pack<T: Float, const L: usize>(from: Matrix<T>, count: usize, n: usize, to: &mut [T]) {
    if count == L {
        let dims = [(n, from.cols), (L, from.rows)];
        // SAFETY: the caller's promise.
        return unsafe { gather(size_of::<T>(), from.ptr.cast_const().cast(), &dims, to.as_mut_ptr().cast()) };
    }
    for (k, to) in to[..n * L].chunks_exact_mut(L).enumerate() {
        for (l, to) in to.iter_mut().enumerate() {
            // SAFETY: as above.
            *to = unsafe { *from.at(if l < count { l } else { 0 }, k) };
        }
    }
}

/// `n` components of a row: in place if they lie side by side, else copied.
///
/// # Safety
/// They can be read, and nothing writes to them while the slice lives.
#[inline(always)]
unsafe fn run<T: Float>(from: Matrix<T>, i: usize, n: usize, buffer: &mut [T]) -> &[T] {
    let at = from.at(i, 0);
    if from.cols == 1 {
        // SAFETY: the caller's promise.
        return unsafe { std::slice::from_raw_parts(at, n) };
    }
    for (k, to) in buffer[..n].iter_mut().enumerate() {
        // SAFETY: as above.
        *to = unsafe { *at.wrapping_add(k * from.cols) };
    }
    &buffer[..n]
}

/// The first `N` parts of a buffer, of these sizes.
fn parts<T, const N: usize>(mut buffer: &mut [T], sizes: [usize; N]) -> [&mut [T]; N] {
    sizes.map(|n| {
        let (part, rest) = std::mem::take(&mut buffer).split_at_mut(n);
        buffer = rest;
        part
    })
}

fn forward(sides: [View; 2], p: f64, out: View) -> Result<()> {
    ensure(sides.iter().all(|v| out.is_apart(v)), "distances")?;
    match out.dtype {
        DType::F32 => forward_of::<f32, F32_LANES>(sides, p, out),
        _ => forward_of::<f64, F64_LANES>(sides, p, out),
    }
}

fn forward_of<T: Float, const L: usize>(sides: [View; 2], p: f64, out: View) -> Result<()> {
    let [a, b] = sides;
    let lead = a.ndim() - 2;
    let (counts, terms) = ([a.shape[lead], b.shape[lead]], a.shape[lead + 1]);
    if out.numel() == 0 {
        return Ok(());
    }
    let tiles = [counts[0].div_ceil(ROWS), counts[1].div_ceil(L)];
    let units = a.shape[..lead].iter().product::<usize>() * tiles[0] * tiles[1];
    let of_pairs = &out.strides[..if out.ndim() == a.ndim() { lead } else { 0 }];
    let grain = TASK.div_ceil((ROWS * L).saturating_mul(terms.max(1)));
    try_par_for(units, grain, |range| {
        let (deep, high) = (TERMS.min(terms), ROWS.min(counts[0]));
        let mut scratch = Temp::filled((deep + high) * L + deep, T::ZERO)?;
        // SAFETY: it is filled.
        let scratch = unsafe { scratch.slice_mut() };
        for unit in range {
            let (batch, tile) = (unit / (tiles[0] * tiles[1]), unit % (tiles[0] * tiles[1]));
            let strides = [&a.strides[..lead], &b.strides[..lead], of_pairs];
            let at = Odometer::new(&a.shape[..lead], strides, batch).offsets;
            let first = [tile / tiles[1] * ROWS, tile % tiles[1] * L];
            let job = Forward::<T, L> {
                sides: [rows_of(a, at[0]).from(first[0], 0), rows_of(b, at[1]).from(first[1], 0)],
                first,
                counts: [ROWS.min(counts[0] - first[0]), L.min(counts[1] - first[1])],
                terms,
                pairs: Pairs::of(out, a.ndim(), at[2], counts[0]),
                p,
                scratch: &mut *scratch,
            };
            simd::run_wide(job);
        }
        Ok(())
    })
}

/// A tile of pairs.
struct Forward<'a, T, const L: usize> {
    /// Rows from the tile's first on.
    sides: [Matrix<T>; 2],
    first: [usize; 2],
    counts: [usize; 2],
    terms: usize,
    pairs: Pairs<T>,
    p: f64,
    scratch: &'a mut [T],
}
impl<T: Float, const L: usize> Kernel for Forward<'_, T, L> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let last = self.first[1] + self.counts[1] - 1;
        match self.p {
            _ if self.pairs.skipped(self.first[0], last) > 0 => (), // no packed row comes after one of the others
            0.0 => self.with(Norm0),
            1.0 => self.with(Norm1),
            2.0 => self.with(Norm2 { root: true }),
            f64::INFINITY => self.with(NormInf { max: true }),
            p => self.with(NormP { p }),
        }
    }
}
impl<T: Float, const L: usize> Forward<'_, T, L> {
    #[inline(always)]
    fn with(self, norm: impl Step<T, Acc = T, Out = T>) {
        let Forward { sides: [a, b], first, counts: [rows, lanes], terms, pairs, scratch, .. } = self;
        let deep = TERMS.min(terms);
        let [panel, totals, row] = parts(scratch, [deep * L, rows * L, deep]);
        totals.fill(norm.init());
        for start in (0..terms).step_by(TERMS) {
            let n = deep.min(terms - start);
            // SAFETY: the rows exist, as `fit` says.
            unsafe { pack::<T, L>(b.from(0, start), lanes, n, panel) };
            for (i, total) in totals.chunks_exact_mut(L).enumerate() {
                // SAFETY: as above; the result lies apart from what is read.
                let x = unsafe { run(a.from(0, start), i, n, row) };
                let mut sum = [norm.init(); L];
                for (&x, y) in x.iter().zip(panel.chunks_exact(L)) {
                    for l in 0..L {
                        sum[l] = norm.step(sum[l], x.minus(y[l]));
                    }
                }
                for l in 0..L {
                    total[l] = norm.merge(total[l], sum[l]);
                }
            }
        }
        for (i, total) in totals.chunks_exact_mut(L).enumerate() {
            for total in total.iter_mut() {
                *total = norm.finish(*total, terms);
            }
            // SAFETY: a tile is one task's.
            unsafe { pairs.write(first[0] + i, first[1], &total[..lanes]) };
        }
    }
}

fn backward(sides: [View; 2], p: f64, numbers: [View; 2], out: View) -> Result<()> {
    let apart = sides.iter().chain(&numbers).all(|v| out.is_apart(v));
    ensure(apart && out.shape == sides[0].shape && out.dtype == sides[0].dtype, "distances_backward")?;
    match out.dtype {
        DType::F32 => backward_of::<f32, F32_LANES>(sides, p, numbers, out),
        _ => backward_of::<f64, F64_LANES>(sides, p, numbers, out),
    }
}

fn backward_of<T: Float, const L: usize>(sides: [View; 2], p: f64, numbers: [View; 2], out: View) -> Result<()> {
    let [a, b] = sides;
    let lead = a.ndim() - 2;
    let (rows, others, terms) = (a.shape[lead], b.shape[lead], a.shape[lead + 1]);
    if out.numel() == 0 {
        return Ok(());
    }
    let tiles = [rows.div_ceil(L), terms.div_ceil(TERMS)];
    let units = a.shape[..lead].iter().product::<usize>() * tiles[0] * tiles[1];
    let of_pairs = numbers.map(|v| &v.strides[..if v.ndim() == a.ndim() { lead } else { 0 }]);
    let grain = TASK.div_ceil((L * TERMS.min(terms.max(1))).saturating_mul(others.max(1)));
    try_par_for(units, grain, |range| {
        let (deep, high) = (TERMS.min(terms), ROWS.min(others));
        let mut scratch = Temp::filled((3 * deep + 2 * high) * L + deep, T::ZERO)?;
        // SAFETY: it is filled.
        let scratch = unsafe { scratch.slice_mut() };
        for unit in range {
            let (batch, tile) = (unit / (tiles[0] * tiles[1]), unit % (tiles[0] * tiles[1]));
            let leads = [&a.strides[..lead], &b.strides[..lead], of_pairs[0], of_pairs[1], &out.strides[..lead]];
            let at = Odometer::new(&a.shape[..lead], leads, batch).offsets;
            let (first, start) = (tile / tiles[1] * L, tile % tiles[1] * TERMS);
            let job = Backward::<T, L> {
                sides: [rows_of(a, at[0]).from(first, start), rows_of(b, at[1]).from(0, start)],
                out: rows_of(out, at[4]).from(first, start),
                first,
                lanes: L.min(rows - first),
                others,
                terms: TERMS.min(terms - start),
                numbers: [0, 1].map(|i| Pairs::of(numbers[i], a.ndim(), at[2 + i], rows)),
                p,
                scratch: &mut *scratch,
            };
            simd::run_wide(job);
        }
        Ok(())
    })
}

/// Components of the gradient of some rows, against all other rows.
struct Backward<'a, T, const L: usize> {
    /// The rows, and all others.
    sides: [Matrix<T>; 2],
    out: Matrix<T>,
    first: usize,
    lanes: usize,
    others: usize,
    terms: usize,
    /// The gradient of the distances, and the distances.
    numbers: [Pairs<T>; 2],
    p: f64,
    scratch: &'a mut [T],
}
impl<T: Float, const L: usize> Kernel for Backward<'_, T, L> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        match self.p {
            0.0 => self.with(|_, _| T::ZERO, |_, _| T::ZERO),
            1.0 => self.with(|g, _| g, |gap, _| sign(gap)),
            2.0 => self.with(|g, norm| g.divide(norm), |gap, _| gap),
            f64::INFINITY => self.with(|g, _| g, |gap, norm| if gap.abs() == norm { sign(gap) } else { T::ZERO }),
            p => self.with(
                |g, norm| g.divide(norm.powf(p - 1.0)),
                |gap, _| if gap == T::ZERO { T::ZERO } else { sign(gap).times(gap.abs().powf(p - 1.0)) },
            ),
        }
    }
}
/// Zero of zero.
#[inline(always)]
fn sign<T: Float>(x: T) -> T {
    let one = if x < T::ZERO { T::ZERO.minus(T::ONE) } else { T::ONE };
    if x == T::ZERO { x } else { one }
}
impl<T: Float, const L: usize> Backward<'_, T, L> {
    /// The derivative of a norm in a gap is `slope(gap, norm)` times what `weight` makes of the gradient of the norm;
    /// zero where the norm is.
    #[inline(always)]
    fn with(self, weight: impl Fn(T, T) -> T, slope: impl Fn(T, T) -> T) {
        let Backward { sides: [a, b], first, lanes, others, terms, numbers: [grads, norms], scratch, .. } = self;
        let (block, numbers) = (terms * L, ROWS.min(others) * L);
        let [panel, totals, sums, weights, sizes, row] = parts(scratch, [block, block, block, numbers, numbers, terms]);
        // SAFETY: the rows exist, as `fit` says.
        unsafe { pack::<T, L>(a, lanes, terms, panel) };
        totals.fill(T::ZERO);
        for start in (0..others).step_by(ROWS) {
            let count = ROWS.min(others - start);
            for (i, l) in (0..count).flat_map(|i| (0..lanes).map(move |l| (i, l))) {
                let [g, norm] = [grads, norms].map(|numbers| match numbers.at(first + l, start + i) {
                    // SAFETY: as above.
                    Some(at) => unsafe { *at },
                    None => T::ZERO,
                });
                weights[i * L + l] = if norm == T::ZERO { T::ZERO } else { weight(g, norm) };
                sizes[i * L + l] = norm;
            }
            sums.fill(T::ZERO);
            for (i, (weights, sizes)) in weights.chunks_exact(L).zip(sizes.chunks_exact(L)).take(count).enumerate() {
                // SAFETY: as above; the result lies apart from what is read.
                let y = unsafe { run(b, start + i, terms, row) };
                let [weights, sizes] =
                    [weights, sizes].map(|x| <[T; L]>::try_from(x).expect("a chunk has this length"));
                for ((sum, x), &y) in sums.chunks_exact_mut(L).zip(panel.chunks_exact(L)).zip(y) {
                    for l in 0..L {
                        sum[l] = sum[l].plus(weights[l].times(slope(x[l].minus(y), sizes[l])));
                    }
                }
            }
            for (total, &sum) in totals.iter_mut().zip(&*sums) {
                *total = total.plus(sum);
            }
        }
        for (k, totals) in totals.chunks_exact(L).enumerate() {
            for (l, &total) in totals[..lanes].iter().enumerate() {
                // SAFETY: these elements are one task's.
                unsafe { *self.out.at(l, k) = total };
            }
        }
    }
}

#[cfg(test)]
mod tests;
