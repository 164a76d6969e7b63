//! Softmax and its logarithm along one dimension, and their gradients.
//!
//! Lines that are dense in memory are handled one by one, in a buffer of the computing type (f32 for the half types)
//! while they fit the cache, else in pieces that are read three times. Other lines go side by side, row by row, so
//! that memory is walked in order; exponentials are then computed twice, which costs less than keeping them.

use super::arith::{Float, greater};
use super::num::Fuse;
use super::parallel::par_for;
use super::reduce::rule::{Lanes, Rule};
use super::reduce::rules::{Max, Sum, SumExp};
use super::simd::{self, Kernel};
use super::view::{View, load, store};
use super::walk::Others;
use crate::dtype::DType;
use crate::error::{Error, Result};
use std::marker::PhantomData;

/// Elements of a line that are held at once.
const LINE: usize = 16384;
/// Neighbouring lines that advance together.
const TILE: usize = 1024;
/// Rows that are summed before their sum is added to the total, to keep rounding errors small.
const ROWS: usize = 64;

/// `softmax(input)` along `dim`, or its logarithm; computed in f32, or f64 where `out` is.
///
/// # Safety
/// Both operands must be in bounds; `out` may be `input` itself, but not overlap it otherwise.
pub unsafe fn softmax(input: View, dim: usize, out: View, log: bool) -> Result<()> {
    match out.dtype {
        DType::F64 => tiles::<f64, 2>([input, out], dim, |t| simd::run(Forward { job: t, log })),
        d if d.is_float() => tiles::<f32, 2>([input, out], dim, |t| simd::run(Forward { job: t, log })),
        d => return Err(refuse(d)),
    }
    Ok(())
}

/// The gradient of the input, from that of the output and the output itself.
///
/// # Safety
/// All operands must be in bounds; `out` may be `grad` or `output` itself, but nothing may overlap otherwise.
pub unsafe fn softmax_backward(grad: View, output: View, dim: usize, out: View, log: bool) -> Result<()> {
    match output.dtype {
        DType::F64 => tiles::<f64, 3>([output, grad, out], dim, |t| simd::run(Backward { job: t, log })),
        d if d.is_float() => tiles::<f32, 3>([output, grad, out], dim, |t| simd::run(Backward { job: t, log })),
        d => return Err(refuse(d)),
    }
    Ok(())
}

#[cold]
fn refuse(d: DType) -> Error {
    Error::not_implemented(format!("\"softmax\" not implemented for '{}'", d.scalar_type_name()))
}

/// One operand's neighbouring lines.
#[derive(Clone, Copy)]
struct Tile<'a> {
    view: View<'a>,
    offset: usize,
    /// Strides along the lines and from line to line.
    along: usize,
    across: usize,
}
impl Tile<'_> {
    /// Reads elements from `start` on of the only line.
    fn read<T: Float>(&self, start: usize, buffer: &mut [T]) {
        let v = &self.view;
        // SAFETY: the caller of the kernel vouches for the operands, and tiles lie inside them.
        unsafe { load(v.dtype, v.at(self.offset + start * self.along), self.along, buffer.len(), buffer.as_mut_ptr()) }
    }
    fn write<T: Float>(&self, start: usize, buffer: &[T]) {
        let v = &self.view;
        // SAFETY: as in `read`.
        unsafe { store(v.dtype, v.at(self.offset + start * self.along), self.along, buffer.len(), buffer.as_ptr()) }
    }
    /// Reads element `i` of every line.
    fn read_row<T: Float>(&self, i: usize, buffer: &mut [T]) {
        let v = &self.view;
        // SAFETY: as in `read`.
        unsafe { load(v.dtype, v.at(self.offset + i * self.along), self.across, buffer.len(), buffer.as_mut_ptr()) }
    }
    fn write_row<T: Float>(&self, i: usize, buffer: &[T]) {
        let v = &self.view;
        // SAFETY: as in `read`.
        unsafe { store(v.dtype, v.at(self.offset + i * self.along), self.across, buffer.len(), buffer.as_ptr()) }
    }
}

/// The same lines of all operands, with buffers for a piece of a line or a row of lines.
struct Job<'a, T, const N: usize> {
    tiles: [Tile<'a>; N],
    length: usize,
    lines: usize,
    buffers: [&'a mut [T]; 2],
}

/// Calls `f` for every tile of lines along `dim`.
fn tiles<T: Float, const N: usize>(views: [View; N], dim: usize, f: impl Fn(Job<T, N>) + Sync) {
    if views[0].numel() == 0 {
        return;
    }
    let mut others = Others::new(views[0].shape, views.map(|v| v.strides), dim);
    let length = views[0].dim(dim).0;
    let (width, across) = others.pop();
    let dense = width == 1 || views[0].dim(dim).1 <= across[0];
    let most = if dense { 1 } else { TILE };
    let per_row = width.div_ceil(most);
    let room = if dense { length.min(LINE) } else { TILE.min(width) };
    par_for(others.count() * per_row, (1 << 13) / (length * most.min(width)), |range| {
        let (mut a, mut b) = (vec![T::ZERO; room], vec![T::ZERO; room]);
        let mut at = others.walk(range.start / per_row);
        for unit in range {
            let start = unit % per_row * most;
            let lines = most.min(width - start);
            let tile = |k: usize| {
                let offset = at.offsets[k] + start * across[k];
                Tile { view: views[k], offset, along: views[k].dim(dim).1, across: across[k] }
            };
            f(Job { tiles: std::array::from_fn(tile), length, lines, buffers: [&mut a, &mut b] });
            if start + lines == width {
                at.step();
            }
        }
    });
}

struct Forward<'a, T> {
    job: Job<'a, T, 2>,
    log: bool,
}
impl<T: Float> Kernel for Forward<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        if self.job.lines == 1 { self.line::<F>() } else { self.columns::<F>() }
    }
}
impl<T: Float> Forward<'_, T> {
    #[inline(always)]
    fn line<F: Fuse>(self) {
        let Job { tiles: [input, out], length, buffers: [buffer, _], .. } = self.job;
        let whole = length <= LINE;
        let pieces = || (0..length).step_by(LINE).map(|start| (start, LINE.min(length - start)));
        let mut max = T::LOWEST;
        for (start, n) in pieces() {
            input.read(start, &mut buffer[..n]);
            // SAFETY: the buffer holds `n` elements.
            max = greater(max, unsafe { Lanes(Max).block::<F>(buffer.as_ptr(), n) });
        }
        let mut sum = T::ZERO;
        for (start, n) in pieces() {
            if !whole {
                input.read(start, &mut buffer[..n]);
            }
            let x = &mut buffer[..n];
            // The logarithm needs no exponential but in the sum.
            sum = sum.plus(if self.log { sum_exp::<T, F>(x, max) } else { exponentials::<T, F>(x, max) });
        }
        let (scale, log_sum) = (T::ONE.divide(sum), sum.ln());
        for (start, n) in pieces() {
            let x = &mut buffer[..n];
            if !whole {
                input.read(start, x);
            }
            if self.log {
                x.iter_mut().for_each(|v| *v = v.minus(max).minus(log_sum));
            } else if whole {
                x.iter_mut().for_each(|v| *v = v.times(scale));
            } else {
                x.iter_mut().for_each(|v| *v = v.minus(max).exp::<F>().times(scale));
            }
            out.write(start, x);
        }
    }

    #[inline(always)]
    fn columns<F: Fuse>(self) {
        let Job { tiles: [input, out], length, lines, buffers: [row, _] } = self.job;
        let row = &mut row[..lines];
        let (mut max, mut sum) = ([T::LOWEST; TILE], [T::ZERO; TILE]);
        for i in 0..length {
            input.read_row(i, row);
            max.iter_mut().zip(&*row).for_each(|(m, &v)| *m = greater(*m, v));
        }
        for first in (0..length).step_by(ROWS) {
            let mut part = [T::ZERO; TILE];
            for i in first..length.min(first + ROWS) {
                input.read_row(i, row);
                part.iter_mut().zip(&*row).zip(&max).for_each(|((s, v), &m)| *s = s.plus(v.minus(m).exp::<F>()));
            }
            sum.iter_mut().zip(&part).for_each(|(s, &p)| *s = s.plus(p));
        }
        for s in &mut sum[..lines] {
            *s = if self.log { s.ln() } else { T::ONE.divide(*s) };
        }
        for i in 0..length {
            input.read_row(i, row);
            if self.log {
                row.iter_mut().zip(&max).zip(&sum).for_each(|((v, &m), &s)| *v = v.minus(m).minus(s));
            } else {
                row.iter_mut().zip(&max).zip(&sum).for_each(|((v, &m), &s)| *v = v.minus(m).exp::<F>().times(s));
            }
            out.write_row(i, row);
        }
    }
}

/// The sum of `exp(x - max)`.
#[inline(always)]
fn sum_exp<T: Float, F: Fuse>(x: &[T], max: T) -> T {
    // SAFETY: the slice has as many elements.
    unsafe { Lanes(SumExp::<T, F>(max, PhantomData)).block::<F>(x.as_ptr(), x.len()) }
}

/// Turns `x` into `exp(x - max)`; returns the sum.
#[inline(always)]
fn exponentials<T: Float, F: Fuse>(x: &mut [T], max: T) -> T {
    x.iter_mut().for_each(|v| *v = v.minus(max).exp::<F>());
    // SAFETY: the slice has as many elements.
    unsafe { Lanes(Sum { mean: false }).block::<F>(x.as_ptr(), x.len()) }
}

struct Backward<'a, T> {
    /// The output, its gradient, and the result.
    job: Job<'a, T, 3>,
    log: bool,
}
impl<T: Float> Kernel for Backward<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        if self.job.lines == 1 { self.line::<F>() } else { self.columns::<F>() }
    }
}
impl<T: Float> Backward<'_, T> {
    #[inline(always)]
    fn line<F: Fuse>(self) {
        let Job { tiles: [output, grad, out], length, buffers: [a, b], .. } = self.job;
        let pieces = || (0..length).step_by(LINE).map(|start| (start, LINE.min(length - start)));
        let mut sum = T::ZERO;
        for (start, n) in pieces() {
            let (y, g) = (&mut a[..n], &mut b[..n]);
            grad.read(start, g);
            if !self.log {
                output.read(start, y);
                g.iter_mut().zip(&*y).for_each(|(g, &y)| *g = g.times(y));
            }
            // SAFETY: the buffer holds `n` elements.
            sum = sum.plus(unsafe { Lanes(Sum { mean: false }).block::<F>(g.as_ptr(), n) });
        }
        for (start, n) in pieces() {
            let (y, g) = (&mut a[..n], &mut b[..n]);
            grad.read(start, g);
            output.read(start, y);
            if self.log {
                g.iter_mut().zip(&*y).for_each(|(g, y)| *g = g.minus(y.exp::<F>().times(sum)));
            } else {
                g.iter_mut().zip(&*y).for_each(|(g, y)| *g = y.times(g.minus(sum)));
            }
            out.write(start, g);
        }
    }

    #[inline(always)]
    fn columns<F: Fuse>(self) {
        let Job { tiles: [output, grad, out], length, lines, buffers: [a, b] } = self.job;
        let (y, g) = (&mut a[..lines], &mut b[..lines]);
        let mut sum = [T::ZERO; TILE];
        for i in 0..length {
            grad.read_row(i, g);
            if self.log {
                sum.iter_mut().zip(&*g).for_each(|(s, &g)| *s = s.plus(g));
            } else {
                output.read_row(i, y);
                sum.iter_mut().zip(&*g).zip(&*y).for_each(|((s, g), &y)| *s = s.plus(g.times(y)));
            }
        }
        for i in 0..length {
            grad.read_row(i, g);
            output.read_row(i, y);
            if self.log {
                g.iter_mut().zip(&*y).zip(&sum).for_each(|((g, y), &s)| *g = g.minus(y.exp::<F>().times(s)));
            } else {
                g.iter_mut().zip(&*y).zip(&sum).for_each(|((g, y), &s)| *g = y.times(g.minus(s)));
            }
            out.write_row(i, g);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, Rng, close, ravel, shape, unravel};

    /// The sums of `values` along `dim`, for every element.
    fn sums(s: &[usize], dim: usize, values: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; values.len()];
        let start = |i: usize| {
            let mut at = unravel(s, i);
            at[dim] = 0;
            ravel(s, &at)
        };
        values.iter().enumerate().for_each(|(i, v)| out[start(i)] += v);
        (0..values.len()).map(|i| out[start(i)]).collect()
    }

    fn check(rng: &mut Rng, dtype: DType, s: &[usize], log: bool, tolerance: f64) {
        let dim = rng.below(s.len());
        let (x, grad) = (Array::random(rng, dtype, s), Array::random(rng, dtype, s));
        let (y, out) = (Array::scattered(rng, dtype, s), Array::scattered(rng, dtype, s));
        // SAFETY: the arrays own their layouts.
        unsafe { softmax(x.view(), dim, y.view(), log).unwrap() };
        let e: Vec<f64> = x.reals().iter().map(|v| v.exp()).collect();
        let p: Vec<f64> = e.iter().zip(sums(s, dim, &e)).map(|(e, t)| e / t).collect();
        close(&y.reals(), &p.iter().map(|p| if log { p.ln() } else { *p }).collect::<Vec<_>>(), tolerance);
        // SAFETY: as above.
        unsafe { softmax_backward(grad.view(), y.view(), dim, out.view(), log).unwrap() };
        let g = grad.reals();
        let weighted: Vec<f64> = g.iter().zip(&p).map(|(g, p)| if log { *g } else { g * p }).collect();
        let total = sums(s, dim, &weighted);
        let want: Vec<f64> =
            (0..g.len()).map(|i| if log { g[i] - p[i] * total[i] } else { p[i] * (g[i] - total[i]) }).collect();
        close(&out.reals(), &want, 3.0 * tolerance);
    }

    #[test]
    fn agrees_with_plain_loops() {
        let mut rng = Rng(23);
        for round in 0..40 {
            let s = shape(&mut rng, 4, 9);
            check(&mut rng, DType::F32, &s, round % 2 == 0, 1e-5);
            check(&mut rng, DType::F64, &s, round % 2 == 0, 1e-12);
            check(&mut rng, DType::BF16, &s, round % 2 == 0, 2e-2);
        }
        check(&mut rng, DType::F32, &[3, 5000], false, 1e-5);
        check(&mut rng, DType::F32, &[300, 700], true, 1e-5);
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        let (x, y) =
            (Array::of(DType::F32, &[3], &[1000.0, 1000.0, f64::NEG_INFINITY]), Array::zeros(DType::F32, &[3]));
        // SAFETY: the arrays own their layouts.
        unsafe { softmax(x.view(), 0, y.view(), false).unwrap() };
        close(&y.reals(), &[0.5, 0.5, 0.0], 0.0);
    }
}
