//! Sums of weighted elements along one to three dimensions: interpolation in every mode, and its gradient.
//!
//! What each output reads of a dimension is a table of taps, made once a call: positions and weights. The gradient is the
//! same kernel with transposed tables. Work is split into blocks of the first dimension: the last dimension is resampled
//! first, while a block is in cache, and the first one last, row by row.

use super::number_class::Fuse;
use super::parallel::try_par_for;
use super::simd::{self, Kernel};
use super::view::{SendPtr, View, ensure, load, store};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::rt::reserve::{filled, list, room};
use std::ops::Range;

/// Which elements of a dimension make up each output, and their weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Taps {
    /// The size of the dimension that is read.
    pub size: usize,
    /// The taps of output `o` are those from `starts[o]` to `starts[o + 1]`.
    pub starts: Vec<u32>,
    pub index: Vec<u32>,
    pub weights: Vec<f64>,
    /// Integer weights are whole numbers times 2^-bits; a sum is rounded to 8 bits.
    pub bits: u32,
}

impl Taps {
    pub fn outputs(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }
    fn of(&self, o: usize) -> Range<usize> {
        self.starts[o] as usize..self.starts[o + 1] as usize
    }
    /// The adjoint: what each element that was read contributes to.
    pub fn transposed(&self) -> Result<Taps> {
        let mut starts = filled(0u32, self.size + 1)?;
        self.index.iter().for_each(|&i| starts[i as usize + 1] += 1);
        for i in 0..self.size {
            starts[i + 1] += starts[i];
        }
        let mut next = list(starts[..self.size].iter().copied())?;
        let mut index = filled(0u32, self.index.len())?;
        let mut weights = filled(0.0, self.index.len())?;
        for o in 0..self.outputs() {
            for t in self.of(o) {
                let at = &mut next[self.index[t] as usize];
                index[*at as usize] = o as u32;
                weights[*at as usize] = self.weights[t];
                *at += 1;
            }
        }
        Ok(Taps { size: self.outputs(), starts, index, weights, bits: self.bits })
    }
    /// The most taps of an output.
    pub fn most(&self) -> usize {
        (0..self.outputs()).map(|o| self.of(o).len()).max().unwrap_or(0)
    }
    /// Whether each output is one element.
    pub fn picks(&self) -> bool {
        self.index.len() == self.outputs()
            && self.starts.iter().zip(0..).all(|(&s, o)| s == o)
            && self.weights.iter().all(|&w| w == 1.0)
    }
    /// Whether nothing changes.
    pub fn is_identity(&self) -> bool {
        self.size == self.outputs() && self.picks() && self.index.iter().zip(0..).all(|(&i, o)| i == o)
    }
    /// Whether the table is one that a kernel can read.
    fn is_sound(&self) -> bool {
        let ends =
            self.starts.first() == Some(&0) && self.starts.last().is_some_and(|&s| s as usize == self.index.len());
        let rising = self.starts.windows(2).all(|w| w[0] <= w[1]);
        ends && rising && self.weights.len() == self.index.len() && self.index.iter().all(|&i| (i as usize) < self.size)
    }
    /// The elements that a range of outputs reads: the first, and one past the last.
    fn reach(&self, outs: &Range<usize>) -> (usize, usize) {
        let taps = &self.index[self.starts[outs.start] as usize..self.starts[outs.end] as usize];
        let (low, high) = taps.iter().fold((u32::MAX, 0), |(low, high), &i| (low.min(i), high.max(i + 1)));
        if low > high { (0, 0) } else { (low as usize, high as usize) }
    }
}

/// A type of elements of which weighted sums are made.
trait Blend: Copy + Send + Sync {
    type Weight: Copy + Send + Sync;
    type Sum: Copy;
    fn zero() -> Self;
    fn weight(w: f64) -> Self::Weight;
    fn start(bits: u32) -> Self::Sum;
    fn add(sum: Self::Sum, w: Self::Weight, x: Self) -> Self::Sum;
    fn end(sum: Self::Sum, bits: u32) -> Self;
}
impl Blend for f32 {
    type Weight = f32;
    type Sum = f32;
    fn zero() -> f32 {
        0.0
    }
    fn weight(w: f64) -> f32 {
        w as f32
    }
    #[inline(always)]
    fn start(_: u32) -> f32 {
        0.0
    }
    #[inline(always)]
    fn add(sum: f32, w: f32, x: f32) -> f32 {
        sum + w * x
    }
    #[inline(always)]
    fn end(sum: f32, _: u32) -> f32 {
        sum
    }
}
impl Blend for f64 {
    type Weight = f64;
    type Sum = f64;
    fn zero() -> f64 {
        0.0
    }
    fn weight(w: f64) -> f64 {
        w
    }
    #[inline(always)]
    fn start(_: u32) -> f64 {
        0.0
    }
    #[inline(always)]
    fn add(sum: f64, w: f64, x: f64) -> f64 {
        sum + w * x
    }
    #[inline(always)]
    fn end(sum: f64, _: u32) -> f64 {
        sum
    }
}
/// Pixels: integer weights, rounded to 8 bits after each dimension, as Pillow and PyTorch do.
impl Blend for u8 {
    type Weight = i32;
    type Sum = i32;
    fn zero() -> u8 {
        0
    }
    fn weight(w: f64) -> i32 {
        w as i32
    }
    #[inline(always)]
    fn start(bits: u32) -> i32 {
        (1 << bits) >> 1
    }
    #[inline(always)]
    fn add(sum: i32, w: i32, x: u8) -> i32 {
        sum + w * i32::from(x)
    }
    #[inline(always)]
    fn end(sum: i32, bits: u32) -> u8 {
        (sum >> bits).clamp(0, 255) as u8
    }
}

/// Elements of any dtype of which one is picked for each output.
#[derive(Clone, Copy)]
struct Raw<U>(U);
impl<U: Copy + Default + Send + Sync> Blend for Raw<U> {
    type Weight = ();
    type Sum = Self;
    fn zero() -> Self {
        Raw(U::default())
    }
    fn weight(_: f64) {}
    #[inline(always)]
    fn start(_: u32) -> Self {
        Raw(U::default())
    }
    #[inline(always)]
    fn add(_: Self, _: (), x: Self) -> Self {
        x
    }
    #[inline(always)]
    fn end(sum: Self, _: u32) -> Self {
        sum
    }
}

/// `out[.., o, ..] = sum of weight * x[.., index, ..]` over the taps of each output, one table for each dimension. Both are
/// dense: `[outer, dimensions.., inner]`, of one to three dimensions.
pub fn resample(x: View, taps: &[Taps], out: View) -> Result<()> {
    let dims = taps.len();
    let shapes = x.ndim() == dims + 2 && out.ndim() == dims + 2 && x.dtype == out.dtype && (1..=3).contains(&dims);
    ensure(shapes && x.is_contiguous() && out.is_contiguous() && x.is_apart(&out), "resample")?;
    let outside = x.shape[0] == out.shape[0] && x.shape[dims + 1] == out.shape[dims + 1];
    let inside = |(d, t): (usize, &Taps)| t.is_sound() && t.size == x.shape[d + 1] && t.outputs() == out.shape[d + 1];
    ensure(outside && taps.iter().enumerate().all(inside), "resample")?;
    if out.numel() == 0 {
        return Ok(());
    }
    // SAFETY: the operands are dense and apart, and the tables read inside them.
    unsafe {
        if taps.iter().all(Taps::picks) {
            return match x.dtype.size() {
                1 => all::<Raw<u8>>(x, taps, out, None),
                2 => all::<Raw<u16>>(x, taps, out, None),
                4 => all::<Raw<u32>>(x, taps, out, None),
                8 => all::<Raw<u64>>(x, taps, out, None),
                _ => ensure(false, "resample"),
            };
        }
        match x.dtype {
            DType::F64 => all::<f64>(x, taps, out, None),
            DType::F32 => all::<f32>(x, taps, out, None),
            DType::U8 => all::<u8>(x, taps, out, None),
            d if d.is_float() => all::<f32>(x, taps, out, Some(d)),
            d => Err(Error::not_implemented(format!("no interpolation of {d}"))),
        }
    }
}

/// A table in the type of a kernel.
struct Axis<'a, T: Blend> {
    taps: &'a Taps,
    weights: Vec<T::Weight>,
    /// The number of taps of every output; zero where it differs.
    each: usize,
}
impl<T: Blend> Axis<'_, T> {
    fn new(taps: &Taps) -> Result<Axis<'_, T>> {
        let most = taps.most();
        let each = if taps.index.len() == most * taps.outputs() { most } else { 0 };
        Ok(Axis { taps, weights: list(taps.weights.iter().map(|&w| T::weight(w)))?, each })
    }
}

/// Elements of a block, in and out.
const BLOCK: usize = 1 << 15;

/// Every block of every outer index, on several threads. `converted` names the dtype in memory where it is not `T`.
unsafe fn all<T: Blend>(x: View, taps: &[Taps], out: View, converted: Option<DType>) -> Result<()> {
    let mut axes = room::<Axis<T>>(taps.len())?;
    for t in taps {
        axes.push(Axis::new(t)?);
    }
    let (first, rest) = (&axes[0], &axes[1..]);
    let inner = out.shape[taps.len() + 1];
    let volume = |sizes: &[usize]| sizes.iter().product::<usize>();
    let (row_in, row_out) = (volume(&x.shape[2..]), volume(&out.shape[2..]));
    let (rows_in, rows_out) = (x.shape[1], out.shape[1]);
    let step = (BLOCK / row_out.max(row_in.saturating_mul(rows_in) / rows_out).max(1)).clamp(1, rows_out);
    let blocks = rows_out.div_ceil(step);
    let (from, into) = (SendPtr(x.ptr), SendPtr(out.ptr));
    let size = x.dtype.size();
    try_par_for(x.shape[0] * blocks, BLOCK / (step * row_out).max(1), |range| {
        let mut room: [Vec<T>; 3] = Default::default();
        for unit in range {
            let (outer, start) = (unit / blocks, unit % blocks * step);
            let outs = start..(start + step).min(rows_out);
            let (low, high) = first.taps.reach(&outs);
            let (read, count) = (from.at((outer * rows_in + low) * row_in * size), (high - low) * row_in);
            let (written, n) = (into.at((outer * rows_out + start) * row_out * size), outs.len() * row_out);
            let [a, b, c] = &mut room;
            // SAFETY: rows `low..high` lie in the input, and the rows of a block belong to this unit alone.
            unsafe {
                let input = match converted {
                    Some(dtype) => read_as(dtype, read, count, a)?,
                    None => std::slice::from_raw_parts(read as *const T, count),
                };
                let rows = through(input, high - low, rest, inner, [b, c])?;
                match converted {
                    Some(dtype) => {
                        let mut sums = filled(T::zero(), n)?;
                        simd::run(Pass {
                            x: rows,
                            y: &mut sums,
                            rows: high - low,
                            inner: row_out,
                            axis: first,
                            outs,
                            first: low,
                        });
                        write_as(dtype, written, &sums);
                    }
                    None => {
                        let y = std::slice::from_raw_parts_mut(written as *mut T, n);
                        simd::run(Pass { x: rows, y, rows: high - low, inner: row_out, axis: first, outs, first: low });
                    }
                }
            }
        }
        Ok(())
    })
}

/// Elements of a half type as `f32`, which `T` is.
unsafe fn read_as<T: Blend>(dtype: DType, from: *const u8, n: usize, buffer: &mut Vec<T>) -> Result<&[T]> {
    grow(buffer, n)?;
    debug_assert!(size_of::<T>() == size_of::<f32>());
    // SAFETY: the caller's promise for the elements; the buffer holds as many.
    unsafe { load::<f32>(dtype, from, 1, n, buffer.as_mut_ptr() as *mut f32) };
    Ok(&buffer[..n])
}

unsafe fn write_as<T: Blend>(dtype: DType, into: *mut u8, sums: &[T]) {
    debug_assert!(size_of::<T>() == size_of::<f32>());
    // SAFETY: the caller's promise for the elements; `T` is `f32`.
    unsafe { store::<f32>(dtype, into, 1, sums.len(), sums.as_ptr() as *const f32) };
}

fn grow<T: Blend>(buffer: &mut Vec<T>, n: usize) -> Result<()> {
    if buffer.len() < n {
        *buffer = filled(T::zero(), n)?;
    }
    Ok(())
}

/// `rows` rows `[sizes of the inner dimensions.., inner]` with those dimensions resampled, the last one first.
fn through<'a, T: Blend>(
    input: &'a [T],
    rows: usize,
    axes: &[Axis<T>],
    inner: usize,
    room: [&'a mut Vec<T>; 2],
) -> Result<&'a [T]> {
    let outs = |axes: &[Axis<T>]| axes.iter().map(|a| a.taps.outputs()).product::<usize>();
    let ins = |axes: &[Axis<T>]| axes.iter().map(|a| a.taps.size).product::<usize>();
    let mut lines = input;
    let mut spare = room.into_iter();
    for d in (0..axes.len()).rev() {
        let axis = &axes[d];
        if axis.taps.is_identity() {
            continue;
        }
        let (before, inner) = (rows * ins(&axes[..d]), outs(&axes[d + 1..]) * inner);
        let n = before * axis.taps.outputs() * inner;
        let Some(buffer) = spare.next() else { return Err(Error::internal("resample: too many dimensions")) };
        grow(buffer, n)?;
        let outs = 0..axis.taps.outputs();
        simd::run(Pass { x: lines, y: &mut buffer[..n], rows: axis.taps.size, inner, axis, outs, first: 0 });
        lines = &buffer[..n];
    }
    Ok(lines)
}

/// One dimension of lines `[rows, inner]`, of which the first row is row `first` of the table.
struct Pass<'a, T: Blend> {
    x: &'a [T],
    y: &'a mut [T],
    rows: usize,
    inner: usize,
    axis: &'a Axis<'a, T>,
    outs: Range<usize>,
    first: usize,
}

impl<T: Blend> Kernel for Pass<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let bits = self.axis.taps.bits;
        if self.rows * self.inner == 0 {
            return self.y.fill(T::end(T::start(bits), bits));
        }
        let lines = self.x.chunks_exact(self.rows * self.inner);
        let outs = self.y.chunks_exact_mut(self.outs.len() * self.inner);
        for (x, y) in lines.zip(outs) {
            match (self.inner, self.axis.each) {
                (1, 1) => elements::<T, 1>(x, y, self.axis, &self.outs, self.first),
                (1, 2) => elements::<T, 2>(x, y, self.axis, &self.outs, self.first),
                (1, 4) => elements::<T, 4>(x, y, self.axis, &self.outs, self.first),
                (1, _) => ragged(x, y, self.axis, &self.outs, self.first),
                _ => rows(x, y, self.inner, self.axis, &self.outs, self.first),
            }
        }
    }
}

/// Outputs of `N` taps each, from single elements.
#[inline(always)]
fn elements<T: Blend, const N: usize>(x: &[T], y: &mut [T], axis: &Axis<T>, outs: &Range<usize>, first: usize) {
    let (taps, bits) = (outs.start * N..outs.end * N, axis.taps.bits);
    let index = axis.taps.index[taps.clone()].chunks_exact(N);
    let weights = axis.weights[taps].chunks_exact(N);
    for ((y, index), weights) in y.iter_mut().zip(index).zip(weights) {
        let mut sum = T::start(bits);
        for k in 0..N {
            let at = index[k] as usize - first;
            debug_assert!(at < x.len());
            // SAFETY: `x` holds all rows from `first` on that the taps of these outputs read: `Taps::reach`.
            sum = T::add(sum, weights[k], unsafe { *x.get_unchecked(at) });
        }
        *y = T::end(sum, bits);
    }
}

/// Outputs of any number of taps, from single elements.
#[inline(always)]
fn ragged<T: Blend>(x: &[T], y: &mut [T], axis: &Axis<T>, outs: &Range<usize>, first: usize) {
    let (starts, bits) = (&axis.taps.starts[outs.start..=outs.end], axis.taps.bits);
    let from = starts[0] as usize;
    let last = starts[outs.len()] as usize;
    let mut taps = axis.taps.index[from..last].iter().zip(&axis.weights[from..last]);
    for (y, bounds) in y.iter_mut().zip(starts.windows(2)) {
        let mut sum = T::start(bits);
        for (&i, &w) in taps.by_ref().take((bounds[1] - bounds[0]) as usize) {
            let at = i as usize - first;
            debug_assert!(at < x.len());
            // SAFETY: as in `elements`.
            sum = T::add(sum, w, unsafe { *x.get_unchecked(at) });
        }
        *y = T::end(sum, bits);
    }
}

/// Elements of a row whose sums are in registers.
const LANES: usize = 32;

#[inline(always)]
fn rows<T: Blend>(x: &[T], y: &mut [T], inner: usize, axis: &Axis<T>, outs: &Range<usize>, first: usize) {
    let bits = axis.taps.bits;
    for (o, y) in outs.clone().zip(y.chunks_exact_mut(inner)) {
        let taps = axis.taps.of(o);
        let row = |i: u32, at: usize, n: usize| &x[(i as usize - first) * inner + at..][..n];
        let pairs = || axis.taps.index[taps.clone()].iter().zip(&axis.weights[taps.clone()]);
        let whole = inner / LANES * LANES;
        for at in (0..whole).step_by(LANES) {
            let mut sums = [T::start(bits); LANES];
            for (&i, &w) in pairs() {
                let x = row(i, at, LANES);
                for (sum, &x) in sums.iter_mut().zip(x) {
                    *sum = T::add(*sum, w, x);
                }
            }
            for (y, sum) in y[at..at + LANES].iter_mut().zip(sums) {
                *y = T::end(sum, bits);
            }
        }
        for (at, y) in y.iter_mut().enumerate().skip(whole) {
            let mut sum = T::start(bits);
            for (&i, &w) in pairs() {
                sum = T::add(sum, w, x[(i as usize - first) * inner + at]);
            }
            *y = T::end(sum, bits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, Rng, close};

    /// Taps drawn at random: up to four an output, also none.
    fn table(rng: &mut Rng, size: usize, outputs: usize, each: Option<usize>) -> Taps {
        let (mut starts, mut index, mut weights) = (vec![0u32], Vec::new(), Vec::new());
        for _ in 0..outputs {
            for _ in 0..each.unwrap_or_else(|| rng.below(5)) {
                index.push(rng.below(size) as u32);
                weights.push(rng.below(9) as f64 / 4.0 - 1.0);
            }
            starts.push(index.len() as u32);
        }
        Taps { size, starts, index, weights, bits: 0 }
    }

    /// One dimension after the other, in f64.
    fn plain(mut x: Vec<f64>, mut shape: Vec<usize>, taps: &[Taps]) -> Vec<f64> {
        for (d, t) in taps.iter().enumerate() {
            let inner: usize = shape[d + 2..].iter().product();
            let outer: usize = shape[..d + 1].iter().product();
            let mut y = vec![0.0; outer * t.outputs() * inner];
            for (i, y) in y.iter_mut().enumerate() {
                let (at, o, line) = (i % inner, i / inner % t.outputs(), i / inner / t.outputs());
                *y = t.of(o).map(|k| t.weights[k] * x[(line * t.size + t.index[k] as usize) * inner + at]).sum();
            }
            shape[d + 1] = t.outputs();
            x = y;
        }
        x
    }

    /// Random values, row-major.
    fn dense(rng: &mut Rng, dtype: DType, shape: &[usize]) -> Array {
        let values: Vec<f64> = (0..shape.iter().product()).map(|_| rng.value()).collect();
        Array::of(dtype, shape, &values)
    }

    #[test]
    fn agrees_with_the_sums() {
        let mut rng = Rng(11);
        for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-12), (DType::F16, 2e-2)] {
            for (outer, sizes, outs, inner, each) in [
                (3, vec![5], vec![7], 1, Some(2)),
                (2, vec![40], vec![1], 1, None),
                (2, vec![6, 5], vec![3, 9], 1, Some(2)),
                (1, vec![200, 300], vec![310, 290], 1, Some(4)),
                (2, vec![6, 5], vec![13, 4], 35, None),
                (2, vec![3, 4, 5], vec![5, 2, 6], 1, Some(2)),
                (1, vec![3, 4, 5], vec![5, 2, 6], 3, None),
            ] {
                let taps: Vec<Taps> = sizes.iter().zip(&outs).map(|(&n, &m)| table(&mut rng, n, m, each)).collect();
                let shape = |sizes: &[usize]| [&[outer], sizes, &[inner]].concat();
                let x = dense(&mut rng, dtype, &shape(&sizes));
                let y = Array::zeros(dtype, &shape(&outs));
                resample(x.view(), &taps, y.view()).unwrap();
                close(&y.reals(), &plain(x.reals(), shape(&sizes), &taps), tolerance);
                let back: Vec<Taps> = taps.iter().map(|t| t.transposed().unwrap()).collect();
                let (g, dx) = (dense(&mut rng, dtype, &shape(&outs)), Array::zeros(dtype, &shape(&sizes)));
                resample(g.view(), &back, dx.view()).unwrap();
                close(&dx.reals(), &plain(g.reals(), shape(&outs), &back), tolerance);
            }
        }
    }

    #[test]
    fn tables_that_read_outside_are_refused() {
        let x = Array::zeros(DType::F32, &[1, 3, 1]);
        let y = Array::zeros(DType::F32, &[1, 1, 1]);
        let good = Taps { size: 3, starts: vec![0, 1], index: vec![2], weights: vec![1.0], bits: 0 };
        assert!(resample(x.view(), std::slice::from_ref(&good), y.view()).is_ok());
        let beyond = Taps { index: vec![3], ..good.clone() };
        let starts = Taps { starts: vec![0, 2], ..good };
        assert!([beyond, starts].iter().all(|t| resample(x.view(), std::slice::from_ref(t), y.view()).is_err()));
    }
}
