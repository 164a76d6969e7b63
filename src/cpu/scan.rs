//! Cumulative sums, products, maxima, minima and log-sum-exps along one dimension.
//!
//! Floats accumulate in f64 (complex numbers in complex128, integers in i64), so that a running sum of a million f32 is
//! still accurate to f32. Neighbouring lines advance together in tiles if that accesses memory in order. For a long
//! line the totals of its blocks are computed first; then each block knows its start value, and blocks run in parallel.

use super::arith::{Arith, Ordered};
use super::lines::Others;
use super::parallel::par_for;
use super::view::{SendPtr, View, ensure, load, store};
use crate::dtype::{DType, Element, c128};
use crate::error::{Error, Result};
pub use crate::kinds::Scan;
use std::ops::Range;

/// Neighbouring lines that advance together, and elements of a line that are converted at once.
const TILE: usize = 512;
const RUN: usize = 2048;
/// Parts of a run accumulated in parallel chains, and sums that make up a total.
const CHAINS: usize = 4;
const LANES: usize = 16;
/// Block size of a long line: independent of the number of threads.
const BLOCK: usize = 1 << 15;

/// One accumulation step.
trait Scanner<T: Copy>: Copy + Sync {
    /// Whether runs may be accumulated separately and combined by `step`; a product could overflow on the way to a
    /// finite result.
    const SPLITS: bool = false;
    fn first(self) -> T;
    /// The new accumulator, and whether the element replaced it (for maxima and minima).
    fn step(self, acc: T, x: T) -> (T, bool);
}

#[derive(Clone, Copy)]
struct Sum;
impl<T: Arith> Scanner<T> for Sum {
    const SPLITS: bool = true;
    fn first(self) -> T {
        T::ZERO
    }
    #[inline(always)]
    fn step(self, acc: T, x: T) -> (T, bool) {
        (acc.plus(x), true)
    }
}
#[derive(Clone, Copy)]
struct Prod;
impl<T: Arith> Scanner<T> for Prod {
    fn first(self) -> T {
        T::ONE
    }
    #[inline(always)]
    fn step(self, acc: T, x: T) -> (T, bool) {
        (acc.times(x), true)
    }
}
/// The last of equal maxima wins, and NaN propagates, as in PyTorch.
#[derive(Clone, Copy)]
struct Max;
impl<T: Ordered> Scanner<T> for Max {
    fn first(self) -> T {
        T::LOWEST
    }
    #[inline(always)]
    #[allow(clippy::eq_op)] // `x != x` is the NaN test that every ordered type supports
    fn step(self, acc: T, x: T) -> (T, bool) {
        let takes = x >= acc || x != x;
        (if takes { x } else { acc }, takes)
    }
}
#[derive(Clone, Copy)]
struct Min;
impl<T: Ordered> Scanner<T> for Min {
    fn first(self) -> T {
        T::HIGHEST
    }
    #[inline(always)]
    #[allow(clippy::eq_op)] // as above
    fn step(self, acc: T, x: T) -> (T, bool) {
        let takes = x <= acc || x != x;
        (if takes { x } else { acc }, takes)
    }
}
#[derive(Clone, Copy)]
struct LogSumExp;
impl Scanner<f64> for LogSumExp {
    fn first(self) -> f64 {
        f64::NEG_INFINITY
    }
    #[inline(always)]
    fn step(self, acc: f64, x: f64) -> (f64, bool) {
        let (low, high) = if acc < x { (acc, x) } else { (x, acc) };
        let sum = if low == high && low.is_infinite() { low } else { high + (low - high).exp().ln_1p() };
        (if acc.is_nan() || x.is_nan() { f64::NAN } else { sum }, true)
    }
}

/// Accumulates `input` along `dim` into `out`, of the same shape; `indices` (int64) receives the position of each
/// running maximum or minimum. Sums and products are computed in the dtype of `out`, which may be `input` itself: runs
/// are copied in and out.
pub fn cumulative(kind: Scan, input: View, dim: usize, out: View, indices: Option<View>) -> Result<()> {
    let places = indices.is_none_or(|i| i.shape == out.shape && i.dtype == DType::I64);
    ensure(input.shape == out.shape && places, "scan")?;
    // SAFETY: all have one shape.
    unsafe {
        match (kind, out.dtype) {
            (Scan::Sum, d) if d.is_float() => run::<f64, _>(Sum, input, dim, out, indices),
            (Scan::Sum, d) if d.is_complex() => run::<c128, _>(Sum, input, dim, out, indices),
            (Scan::Sum, _) => run::<i64, _>(Sum, input, dim, out, indices),
            (Scan::Prod, d) if d.is_float() => run::<f64, _>(Prod, input, dim, out, indices),
            (Scan::Prod, d) if d.is_complex() => run::<c128, _>(Prod, input, dim, out, indices),
            (Scan::Prod, _) => run::<i64, _>(Prod, input, dim, out, indices),
            (Scan::LogSumExp, d) if d.is_float() => run::<f64, _>(LogSumExp, input, dim, out, indices),
            (Scan::Max, DType::F32) => run::<f32, _>(Max, input, dim, out, indices),
            (Scan::Min, DType::F32) => run::<f32, _>(Min, input, dim, out, indices),
            (Scan::Max, d) if d.is_float() => run::<f64, _>(Max, input, dim, out, indices),
            (Scan::Max, d) if !d.is_complex() && d != DType::U64 => run::<i64, _>(Max, input, dim, out, indices),
            (Scan::Min, d) if d.is_float() => run::<f64, _>(Min, input, dim, out, indices),
            (Scan::Min, d) if !d.is_complex() && d != DType::U64 => run::<i64, _>(Min, input, dim, out, indices),
            (k, d) => return Err(Error::not_implemented(format!("{k:?} is not defined for {d}"))),
        }
    }
    Ok(())
}

unsafe fn run<T: Element, R: Scanner<T>>(rule: R, input: View, dim: usize, out: View, indices: Option<View>) {
    if input.numel() == 0 {
        return;
    }
    let index = indices.unwrap_or(out);
    let mut others = Others::new(input.shape, [input.strides, out.strides, index.strides], dim);
    let job = Job {
        rule,
        views: [input, out, index],
        indexed: indices.is_some(),
        length: input.dim(dim).0,
        steps: [input.dim(dim).1, out.dim(dim).1, index.dim(dim).1],
        mark: std::marker::PhantomData::<T>,
    };
    let (width, across) = others.pop();
    if R::SPLITS && others.count() * width == 1 && job.length > BLOCK {
        // SAFETY: the caller's promise.
        return unsafe { job.blocks() };
    }
    // Lines that are dense in memory are processed one by one, or as a run if they are short and follow one another; others
    // a tile at a time.
    let follow = job.steps == [1; 3] && across == [job.length; 3];
    let dense = job.steps[0] <= across[0] || width == 1;
    let tile = if follow {
        (RUN / job.length).max(1)
    } else if dense {
        1
    } else {
        TILE
    };
    let tiles = width.div_ceil(tile);
    par_for(others.count() * tiles, (1 << 14) / (job.length * tile.min(width)), |range| {
        let mut at = others.walk(range.start / tiles);
        let mut memory = job.memory(job.length * if follow { tile.min(width) } else { 1 });
        for unit in range {
            let start = unit % tiles * tile;
            let n = tile.min(width - start);
            let base = std::array::from_fn(|k| at.offsets[k] + start * across[k]);
            // SAFETY: the lines are those of the operands.
            unsafe {
                if n == 1 {
                    job.line(&mut memory, base, 0..job.length, rule.first());
                } else if follow {
                    job.followers(&mut memory, base, n);
                } else {
                    job.lines(base, n, across);
                }
            }
            if start + n == width {
                at.step();
            }
        }
    });
}

/// A run, and the places of its extremes.
struct Memory<T> {
    values: Vec<T>,
    places: Vec<i64>,
}

struct Job<'a, T, R> {
    rule: R,
    /// Input, output, indices (where there are none, the output again).
    views: [View<'a>; 3],
    indexed: bool,
    length: usize,
    /// Strides along the dimension.
    steps: [usize; 3],
    mark: std::marker::PhantomData<T>,
}

impl<T: Element, R: Scanner<T>> Job<'_, T, R> {
    /// The only line, in blocks.
    unsafe fn blocks(&self) {
        let range = |block: usize| block * BLOCK..self.length.min((block + 1) * BLOCK);
        // Bounded by a 32,768th of the line.
        let mut starts = vec![self.rule.first(); self.length.div_ceil(BLOCK)];
        let slots = SendPtr(starts.as_mut_ptr());
        // SAFETY: each block has a slot of its own.
        par_for(starts.len(), 1, |blocks| blocks.for_each(|b| unsafe { *slots.at(b) = self.total(range(b)) }));
        let mut acc = self.rule.first();
        for start in &mut starts {
            let next = self.rule.step(acc, *start).0;
            *start = std::mem::replace(&mut acc, next);
        }
        par_for(starts.len(), 1, |blocks| {
            let mut memory = self.memory(BLOCK);
            // SAFETY: blocks are disjoint parts of the line.
            blocks.for_each(|b| unsafe { self.line(&mut memory, [0; 3], range(b), starts[b]) });
        });
    }

    /// The total of a part of the only line.
    unsafe fn total(&self, part: Range<usize>) -> T {
        let (input, step) = (&self.views[0], self.steps[0]);
        let mut buffer = [T::default(); RUN];
        let mut lanes = [self.rule.first(); LANES];
        for start in part.clone().step_by(RUN) {
            let x = &mut buffer[..RUN.min(part.end - start)];
            // SAFETY: the run lies inside the operand.
            unsafe { load(input.dtype, input.at(start * step), step, x.len(), x.as_mut_ptr()) };
            let (groups, rest) = x.as_chunks::<LANES>();
            for group in groups {
                (0..LANES).for_each(|k| lanes[k] = self.rule.step(lanes[k], group[k]).0);
            }
            lanes.iter_mut().zip(rest).for_each(|(lane, &v)| *lane = self.rule.step(*lane, v).0);
        }
        lanes.into_iter().fold(self.rule.first(), |acc, lane| self.rule.step(acc, lane).0)
    }

    /// For so many elements, or a run.
    fn memory(&self, elements: usize) -> Memory<T> {
        // Bounded by a run.
        let values = vec![T::default(); RUN.min(elements)];
        // Bounded by a run.
        let places = vec![0; if self.indexed { values.len() } else { 0 }];
        Memory { values, places }
    }

    /// Lines that follow one another in all operands, a run of them at most.
    unsafe fn followers(&self, memory: &mut Memory<T>, base: [usize; 3], count: usize) {
        let [input, out, index] = &self.views;
        let n = count * self.length;
        let Memory { values, places } = memory;
        // SAFETY: the lines lie inside the operands and fit the buffers.
        unsafe {
            load(input.dtype, input.at(base[0]), 1, n, values.as_mut_ptr());
            if self.indexed {
                for (x, p) in values[..n].chunks_exact_mut(self.length).zip(places.chunks_exact_mut(self.length)) {
                    self.extremes(self.rule.first(), 0, x, p, 0);
                }
                store(DType::I64, index.at(base[2]), 1, n, places.as_ptr());
            } else {
                values[..n].chunks_exact_mut(self.length).for_each(|x| _ = self.accumulate(self.rule.first(), x));
            }
            store(out.dtype, out.at(base[1]), 1, n, values.as_ptr());
        }
    }

    /// Part of a line, starting from the accumulated value before it.
    unsafe fn line(&self, memory: &mut Memory<T>, base: [usize; 3], part: Range<usize>, mut acc: T) {
        let [input, out, index] = &self.views;
        let Memory { values: buffer, places } = memory;
        let mut place = 0;
        for start in part.clone().step_by(RUN) {
            let n = RUN.min(part.end - start);
            let at: [usize; 3] = std::array::from_fn(|k| base[k] + start * self.steps[k]);
            // SAFETY: the run lies inside the operands and fits the buffers.
            unsafe {
                load(input.dtype, input.at(at[0]), self.steps[0], n, buffer.as_mut_ptr());
                let x = &mut buffer[..n];
                if self.indexed {
                    (acc, place) = self.extremes(acc, place, x, places, start);
                    store(DType::I64, index.at(at[2]), self.steps[2], n, places.as_ptr());
                } else {
                    acc = self.accumulate(acc, x);
                }
                store(out.dtype, out.at(at[1]), self.steps[1], n, buffer.as_ptr());
            }
        }
    }

    /// Accumulates a run in place from `start` of its line on, with the places of what was taken; returns the last of both.
    fn extremes(&self, mut acc: T, mut place: i64, x: &mut [T], places: &mut [i64], start: usize) -> (T, i64) {
        for (i, (x, p)) in x.iter_mut().zip(places).enumerate() {
            let took;
            (acc, took) = self.rule.step(acc, *x);
            place = if took { (start + i) as i64 } else { place };
            (*x, *p) = (acc, place);
        }
        (acc, place)
    }

    /// Accumulates a run in place; returns the last value.
    fn accumulate(&self, mut acc: T, x: &mut [T]) -> T {
        let n = x.len() / CHAINS;
        if !R::SPLITS || n < 8 {
            for v in x {
                acc = self.rule.step(acc, *v).0;
                *v = acc;
            }
            return acc;
        }
        // Independent chains hide the latency of an addition.
        let (body, tail) = x.split_at_mut(n * CHAINS);
        let mut chains = [self.rule.first(); CHAINS];
        for i in 0..n {
            for (c, chain) in chains.iter_mut().enumerate() {
                *chain = self.rule.step(*chain, body[c * n + i]).0;
                body[c * n + i] = *chain;
            }
        }
        for (part, chain) in body.chunks_exact_mut(n).zip(chains) {
            part.iter_mut().for_each(|v| *v = self.rule.step(acc, *v).0);
            acc = self.rule.step(acc, chain).0;
        }
        for v in tail {
            acc = self.rule.step(acc, *v).0;
            *v = acc;
        }
        acc
    }

    unsafe fn lines(&self, base: [usize; 3], n: usize, across: [usize; 3]) {
        let [input, out, index] = &self.views;
        let mut buffer = [T::default(); TILE];
        let mut acc = [self.rule.first(); TILE];
        let mut places = [0i64; TILE];
        for i in 0..self.length {
            let at: [usize; 3] = std::array::from_fn(|k| base[k] + i * self.steps[k]);
            // SAFETY: the row lies inside the operands and fits the buffers.
            unsafe {
                load(input.dtype, input.at(at[0]), across[0], n, buffer.as_mut_ptr());
                for j in 0..n {
                    let took;
                    (acc[j], took) = self.rule.step(acc[j], buffer[j]);
                    places[j] = if took { i as i64 } else { places[j] };
                }
                store(out.dtype, out.at(at[1]), across[1], n, acc.as_ptr());
                if self.indexed {
                    store(DType::I64, index.at(at[2]), across[2], n, places.as_ptr());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, Rng, close, ravel, shape, unravel};

    fn check(rng: &mut Rng, kind: Scan, dtype: DType, s: &[usize], tolerance: f64) {
        let dim = rng.below(s.len());
        let a = Array::random(rng, dtype, s);
        let sums = kind == Scan::Sum && !dtype.is_float();
        let out = Array::scattered(rng, if sums { DType::I64 } else { dtype }, s);
        let places = Array::scattered(rng, DType::I64, s);
        let indexed = matches!(kind, Scan::Max | Scan::Min);
        cumulative(kind, a.view(), dim, out.view(), indexed.then(|| places.view())).unwrap();
        let mut want = a.reals();
        let mut at_want = vec![0.0; want.len()];
        for i in 0..want.len() {
            let mut at = unravel(s, i);
            at_want[i] = at[dim] as f64;
            if at[dim] == 0 {
                continue;
            }
            at[dim] -= 1;
            let before = ravel(s, &at);
            let (p, x) = (want[before], want[i]);
            want[i] = match kind {
                Scan::Sum => p + x,
                Scan::Prod => p * x,
                Scan::Max => p.max(x),
                Scan::Min => p.min(x),
                Scan::LogSumExp => (p.exp() + x.exp()).ln(),
            };
            if want[i] != x {
                at_want[i] = at_want[before];
            }
        }
        close(&out.reals(), &want, tolerance);
        if indexed {
            assert_eq!(places.reals(), at_want);
        }
    }

    #[test]
    fn agrees_with_plain_loops() {
        let mut rng = Rng(21);
        for _ in 0..30 {
            let s = shape(&mut rng, 3, 12);
            for kind in [Scan::Sum, Scan::Max, Scan::Min] {
                check(&mut rng, kind, DType::F32, &s, 1e-5);
                check(&mut rng, kind, DType::I32, &s, 0.0);
            }
            check(&mut rng, Scan::LogSumExp, DType::F64, &s, 1e-12);
            check(&mut rng, Scan::Prod, DType::F64, &s, 1e-12);
            check(&mut rng, Scan::Sum, DType::F16, &s, 2e-2);
        }
        check(&mut rng, Scan::Sum, DType::F32, &[2, 100_000], 1e-3);
        check(&mut rng, Scan::Sum, DType::F64, &[100_003], 1e-9);
        check(&mut rng, Scan::Sum, DType::I32, &[100_003], 0.0);
        check(&mut rng, Scan::Max, DType::F32, &[3000, 700], 0.0);
    }
}
