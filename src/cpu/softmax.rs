//! Softmax and log-softmax along one dimension, and their gradients.
//!
//! Lines that are dense in memory are processed one by one through a padded buffer of the compute type (f32 for
//! the half types); lines that do not fit the cache, in pieces that are read three times; short lines, as the columns of
//! a transposed copy, where lines fill the registers. Other lines advance together, row by row, so that memory is
//! accessed in order; exponentials are then computed twice, which costs less than storing them.

use super::arith::{Float, greater};
use super::lanes::sums;
use super::lines::Others;
use super::number_class::Fuse;
use super::parallel::par_for;
use super::reduce::reducer::{Lanes, Reducer};
use super::reduce::reducers::{Max, SumExp};
use super::simd::{self, Kernel};
use super::strided;
use super::view::{View, ensure, load, store};
use crate::dtype::DType;
use crate::error::{Error, Result};
use std::marker::PhantomData;

/// Longest line that is held whole, padded to whole chunks.
const LINE: usize = 16384;
const CHUNK: usize = 16;
/// Longest line that is processed as a column, if there are so many.
const SHORT: usize = 64;
const COLUMNS: usize = 32;
/// Elements of the lines of a call, about, if they are that short.
const CALL: usize = 4096;
/// Neighbouring lines that advance together.
const TILE: usize = 1024;
/// Rows summed before their sum is added to the total, to limit rounding errors.
const ROWS: usize = 64;

/// `softmax(input)` along `dim`, or its logarithm; computed in f32, or f64 where `out` is.
pub fn softmax(input: View, dim: usize, out: View, log: bool) -> Result<()> {
    ensure(input.shape == out.shape && (out.is_apart(&input) || out.is_same(&input)), "softmax")?;
    match out.dtype {
        DType::F64 => tiles::<f64, 2>([input, out], dim, |t| simd::run_wide(Forward { job: t, log })),
        d if d.is_float() => tiles::<f32, 2>([input, out], dim, |t| simd::run_wide(Forward { job: t, log })),
        d => return Err(refuse(d)),
    }
    Ok(())
}

/// The gradient of the input, from that of the output and the output itself.
pub fn softmax_backward(grad: View, output: View, dim: usize, out: View, log: bool) -> Result<()> {
    let shapes = grad.shape == out.shape && output.shape == out.shape;
    let fits = |v: &View| out.is_apart(v) || out.is_same(v);
    ensure(shapes && fits(&grad) && fits(&output), "softmax_backward")?;
    match output.dtype {
        DType::F64 => tiles::<f64, 3>([output, grad, out], dim, |t| simd::run_wide(Backward { job: t, log })),
        d if d.is_float() => tiles::<f32, 3>([output, grad, out], dim, |t| simd::run_wide(Backward { job: t, log })),
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
    /// Line `i`, as the only one.
    fn line(self, i: usize) -> Self {
        Tile { offset: self.offset + i * self.across, ..self }
    }
    /// Whether the only line can be accessed in place.
    fn is_own<T: Float>(&self) -> bool {
        self.view.dtype == T::DTYPE && self.along == 1
    }
    /// `n` elements of the only line, from `start` on: in place, else read into the buffer.
    #[inline(always)]
    fn piece<T: Float>(&self, start: usize, n: usize, buffer: *mut T) -> *const T {
        let (v, at) = (&self.view, self.view.at(self.offset + start * self.along));
        if self.is_own::<T>() {
            return at as *const T;
        }
        // SAFETY: tiles lie inside the operands; buffers hold a piece.
        unsafe { load(v.dtype, at, self.along, n, buffer) };
        buffer
    }
    /// Where to write such elements: in place, else to the buffer, which `keep` then stores.
    #[inline(always)]
    fn place<T: Float>(&self, start: usize, buffer: *mut T) -> *mut T {
        if self.is_own::<T>() { self.view.at(self.offset + start) as *mut T } else { buffer }
    }
    #[inline(always)]
    fn keep<T: Float>(&self, start: usize, n: usize, buffer: *const T) {
        let v = &self.view;
        if !self.is_own::<T>() {
            // SAFETY: as in `piece`.
            unsafe { store(v.dtype, v.at(self.offset + start * self.along), self.along, n, buffer) }
        }
    }
    /// Reads element `i` of every line.
    fn read_row<T: Float>(&self, i: usize, buffer: &mut [T]) {
        let v = &self.view;
        // SAFETY: as in `piece`.
        unsafe { load(v.dtype, v.at(self.offset + i * self.along), self.across, buffer.len(), buffer.as_mut_ptr()) }
    }
    fn write_row<T: Float>(&self, i: usize, buffer: &[T]) {
        let v = &self.view;
        // SAFETY: as in `piece`.
        unsafe { store(v.dtype, v.at(self.offset + i * self.along), self.across, buffer.len(), buffer.as_ptr()) }
    }
    /// Reads short lines as the columns of `to`.
    fn read_columns<T: Float>(&self, [length, lines]: [usize; 2], to: &mut [T], buffer: &mut [T]) {
        let (to, buffer) = (&mut to[..length * lines], &mut buffer[..length * lines]);
        let own = self.is_own::<T>();
        if !own {
            for i in 0..lines {
                self.line(i).piece(0, length, buffer[i * length..].as_mut_ptr());
            }
        }
        let (from, across) =
            if own { (self.view.at(self.offset).cast_const(), self.across) } else { (buffer.as_ptr().cast(), length) };
        // SAFETY: as in `piece`; the buffers hold the lines.
        unsafe { strided::gather(size_of::<T>(), from, &[(length, 1), (lines, across)], to.as_mut_ptr().cast()) }
    }
    /// Writes them.
    fn write_columns<T: Float>(&self, [length, lines]: [usize; 2], from: &[T], buffer: &mut [T]) {
        let (from, buffer) = (&from[..length * lines], &mut buffer[..length * lines]);
        let own = self.is_own::<T>();
        let (to, across) =
            if own { (self.view.at(self.offset), self.across) } else { (buffer.as_mut_ptr().cast(), length) };
        // SAFETY: as above.
        unsafe { strided::scatter(size_of::<T>(), from.as_ptr().cast(), to, &[(length, 1), (lines, across)]) }
        if !own {
            (0..lines).for_each(|i| self.line(i).keep(0, length, buffer[i * length..].as_ptr()));
        }
    }
}

/// The same lines of all operands, with buffers for a piece of a line or a row of lines.
struct Job<'a, T, const N: usize> {
    tiles: [Tile<'a>; N],
    length: usize,
    lines: usize,
    order: Order,
    buffers: [&'a mut [T]; 3],
}

/// How lines are processed.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// One by one.
    Lines,
    /// Together, in a transposed copy.
    Columns,
    /// Together, row by row.
    Rows,
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
    let order = match dense {
        true if length <= SHORT && width >= COLUMNS => Order::Columns,
        true => Order::Lines,
        false => Order::Rows,
    };
    let most = match order {
        Order::Rows => TILE,
        _ => (CALL / length).clamp(1, TILE),
    };
    let per_row = width.div_ceil(most);
    let room = match order {
        Order::Lines => length.min(LINE).next_multiple_of(CHUNK),
        Order::Columns => length * most.min(width),
        Order::Rows => TILE.min(width),
    };
    par_for(others.count() * per_row, (1 << 13) / (length * most.min(width)), |range| {
        // Bounded by a line or a tile.
        let (mut a, mut b, mut c) = (vec![T::ZERO; room], vec![T::ZERO; room], vec![T::ZERO; room]);
        let mut at = others.walk(range.start / per_row);
        for unit in range {
            let start = unit % per_row * most;
            let lines = most.min(width - start);
            let tile = |k: usize| {
                let offset = at.offsets[k] + start * across[k];
                Tile { view: views[k], offset, along: views[k].dim(dim).1, across: across[k] }
            };
            f(Job { tiles: std::array::from_fn(tile), length, lines, order, buffers: [&mut a, &mut b, &mut c] });
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
        match self.job.order {
            Order::Lines if self.job.length <= LINE => self.whole::<F>(),
            Order::Lines => self.pieces::<F>(),
            Order::Columns => self.columns::<F>(),
            Order::Rows => self.rows::<F>(),
        }
    }
}
impl<T: Float> Forward<'_, T> {
    /// Lines padded with the lowest number, whose exponential is zero.
    #[inline(always)]
    fn whole<F: Fuse>(self) {
        let Job { tiles: [input, out], length, lines, buffers: [a, b, _], .. } = self.job;
        for i in 0..lines {
            let (input, out) = (input.line(i), out.line(i));
            let x = padded(&input, length, a, T::LOWEST);
            // A NaN is passed over here, and makes the sum NaN.
            let used = length.min(CHUNK);
            let most = folded(x, used, T::LOWEST, |most, x| if x > most { x } else { most });
            let mut sums = [T::ZERO; CHUNK];
            for (x, y) in x.as_chunks::<CHUNK>().0.iter().zip(b.as_chunks_mut::<CHUNK>().0) {
                for l in 0..CHUNK {
                    y[l] = x[l].minus(most).exp_nonpositive::<F>();
                }
                for l in 0..CHUNK {
                    sums[l] = sums[l].plus(y[l]);
                }
            }
            let sum = sums[..used].iter().copied().fold(T::ZERO, T::plus);
            let to = out.place(0, b.as_mut_ptr());
            // SAFETY: the line and the buffers have `length` elements.
            unsafe {
                if self.log {
                    let log_sum = sum.ln::<F>();
                    each([x.as_ptr()], to, length, |[v]| v.minus(most).minus(log_sum));
                } else {
                    let scale = T::ONE.divide(sum);
                    each([b.as_ptr()], to, length, |[v]| v.times(scale));
                }
            }
            out.keep(0, length, b.as_ptr());
        }
    }

    #[inline(always)]
    fn pieces<F: Fuse>(self) {
        let Job { tiles: [input, out], length, buffers: [a, ..], .. } = self.job;
        let a = a.as_mut_ptr();
        let pieces = || (0..length).step_by(LINE).map(|start| (start, LINE.min(length - start)));
        let mut max = T::LOWEST;
        for (start, n) in pieces() {
            let x = input.piece(start, n, a);
            // SAFETY: the piece has `n` elements.
            max = greater(max, unsafe { Lanes(Max).block::<F>(x, n) });
        }
        let mut sum = T::ZERO;
        for (start, n) in pieces() {
            let x = input.piece(start, n, a);
            // SAFETY: as above.
            sum = sum.plus(unsafe { Lanes(SumExp::<T, F>(max, PhantomData)).block::<F>(x, n) });
        }
        let (scale, log_sum) = (T::ONE.divide(sum), sum.ln::<F>());
        for (start, n) in pieces() {
            let x = input.piece(start, n, a);
            let y = out.place(start, a);
            // SAFETY: all have `n` elements.
            unsafe {
                if self.log {
                    each([x], y, n, |[v]| v.minus(max).minus(log_sum));
                } else {
                    each([x], y, n, |[v]| v.minus(max).exp_nonpositive::<F>().times(scale));
                }
            }
            out.keep(start, n, a);
        }
    }

    #[inline(always)]
    fn columns<F: Fuse>(self) {
        let Job { tiles: [input, out], length, lines, buffers: [a, b, _], .. } = self.job;
        input.read_columns([length, lines], a, b);
        let rows = &mut a[..length * lines];
        let (mut max, mut sum) = ([T::LOWEST; TILE], [T::ZERO; TILE]);
        for row in rows.chunks_exact(lines) {
            max.iter_mut().zip(row).for_each(|(m, &v)| *m = if v > *m { v } else { *m }); // NaN: as in `whole`
        }
        let (max, sum) = (&max[..lines], &mut sum[..lines]);
        for (row, e) in rows.chunks_exact_mut(lines).zip(b.chunks_exact_mut(lines)) {
            for l in 0..lines {
                row[l] = row[l].minus(max[l]);
                e[l] = row[l].exp_nonpositive::<F>();
                sum[l] = sum[l].plus(e[l]);
            }
        }
        sum.iter_mut().for_each(|s| *s = if self.log { s.ln::<F>() } else { T::ONE.divide(*s) });
        for (row, e) in rows.chunks_exact_mut(lines).zip(b.chunks_exact(lines)) {
            match self.log {
                true => row.iter_mut().zip(&*sum).for_each(|(v, &s)| *v = v.minus(s)),
                false => row.iter_mut().zip(e).zip(&*sum).for_each(|((v, e), &s)| *v = e.times(s)),
            }
        }
        out.write_columns([length, lines], rows, b);
    }

    #[inline(always)]
    fn rows<F: Fuse>(self) {
        let Job { tiles: [input, out], length, lines, buffers: [row, ..], .. } = self.job;
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
                part.iter_mut()
                    .zip(&*row)
                    .zip(&max)
                    .for_each(|((s, v), &m)| *s = s.plus(v.minus(m).exp_nonpositive::<F>()));
            }
            sum.iter_mut().zip(&part).for_each(|(s, &p)| *s = s.plus(p));
        }
        for s in &mut sum[..lines] {
            *s = if self.log { s.ln::<F>() } else { T::ONE.divide(*s) };
        }
        for i in 0..length {
            input.read_row(i, row);
            if self.log {
                row.iter_mut().zip(&max).zip(&sum).for_each(|((v, &m), &s)| *v = v.minus(m).minus(s));
            } else {
                row.iter_mut()
                    .zip(&max)
                    .zip(&sum)
                    .for_each(|((v, &m), &s)| *v = v.minus(m).exp_nonpositive::<F>().times(s));
            }
            out.write_row(i, row);
        }
    }
}

/// A line in the buffer, with `rest` up to a whole chunk.
#[inline(always)]
fn padded<'a, T: Float>(line: &Tile, length: usize, buffer: &'a mut [T], rest: T) -> &'a [T] {
    let buffer = &mut buffer[..length.next_multiple_of(CHUNK)];
    let at = line.view.at(line.offset);
    // SAFETY: lines lie inside the operands.
    unsafe {
        if line.is_own::<T>() {
            buffer.as_mut_ptr().copy_from_nonoverlapping(at as *const T, length);
        } else {
            load(line.view.dtype, at, line.along, length, buffer.as_mut_ptr());
        }
    }
    buffer[length..].fill(rest);
    buffer
}

/// All elements of whole chunks, folded lane by lane; lanes beyond the first `used` hold only `start`. The chain over the
/// lanes overlaps with the work on the next line.
#[inline(always)]
fn folded<T: Copy>(x: &[T], used: usize, start: T, f: impl Fn(T, T) -> T) -> T {
    let mut lanes = [start; CHUNK];
    for x in x.as_chunks::<CHUNK>().0 {
        for l in 0..CHUNK {
            lanes[l] = f(lanes[l], x[l]);
        }
    }
    lanes[..used].iter().copied().fold(start, f)
}

/// `y[i] = f(x[i])` for `n` elements; `y` may be one of the operands.
///
/// SAFETY: all must hold `n` elements, and be identical or not overlap.
#[inline(always)]
unsafe fn each<T: Copy, const N: usize>(x: [*const T; N], y: *mut T, n: usize, f: impl Fn([T; N]) -> T) {
    for i in 0..n {
        // SAFETY: the caller's promise.
        unsafe { *y.add(i) = f(x.map(|x| *x.add(i))) }
    }
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
        match self.job.order {
            Order::Lines => self.lines::<F>(),
            Order::Columns => self.columns::<F>(),
            Order::Rows => self.rows::<F>(),
        }
    }
}
impl<T: Float> Backward<'_, T> {
    #[inline(always)]
    fn lines<F: Fuse>(self) {
        let Job { tiles, length, lines, buffers, .. } = self.job;
        let [a, b, _] = buffers.map(|b| b.as_mut_ptr());
        let pieces = || (0..length).step_by(LINE).map(|start| (start, LINE.min(length - start)));
        for [output, grad, out] in (0..lines).map(|i| tiles.map(|tile| tile.line(i))) {
            let mut sum = T::ZERO;
            for (start, n) in pieces() {
                // SAFETY: the pieces have `n` elements.
                let g = unsafe { std::slice::from_raw_parts(grad.piece(start, n, b), n) };
                let [more] = if self.log {
                    sums([g], |g| g)
                } else {
                    // SAFETY: as above.
                    let y = unsafe { std::slice::from_raw_parts(output.piece(start, n, a), n) };
                    sums([g, y], |[g, y]| [g.times(y)])
                };
                sum = sum.plus(more);
            }
            for (start, n) in pieces() {
                let (g, y, to) = (grad.piece(start, n, b), output.piece(start, n, a), out.place(start, a));
                // SAFETY: all have `n` elements.
                unsafe {
                    if self.log {
                        each([g, y], to, n, |[g, y]| g.minus(y.exp::<F>().times(sum)));
                    } else {
                        each([g, y], to, n, |[g, y]| y.times(g.minus(sum)));
                    }
                }
                out.keep(start, n, a);
            }
        }
    }

    #[inline(always)]
    fn columns<F: Fuse>(self) {
        let Job { tiles: [output, grad, out], length, lines, buffers: [a, b, c], .. } = self.job;
        output.read_columns([length, lines], a, c);
        grad.read_columns([length, lines], b, c);
        let (y, g) = (&a[..length * lines], &mut b[..length * lines]);
        let mut sum = [T::ZERO; TILE];
        let sum = &mut sum[..lines];
        for (g, y) in g.chunks_exact(lines).zip(y.chunks_exact(lines)) {
            match self.log {
                true => sum.iter_mut().zip(g).for_each(|(s, &g)| *s = s.plus(g)),
                false => sum.iter_mut().zip(g).zip(y).for_each(|((s, g), &y)| *s = s.plus(g.times(y))),
            }
        }
        for (g, y) in g.chunks_exact_mut(lines).zip(y.chunks_exact(lines)) {
            let terms = g.iter_mut().zip(y).zip(&*sum);
            match self.log {
                true => terms.for_each(|((g, y), &s)| *g = g.minus(y.exp::<F>().times(s))),
                false => terms.for_each(|((g, y), &s)| *g = y.times(g.minus(s))),
            }
        }
        out.write_columns([length, lines], g, c);
    }

    #[inline(always)]
    fn rows<F: Fuse>(self) {
        let Job { tiles: [output, grad, out], length, lines, buffers: [a, b, _], .. } = self.job;
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
        softmax(x.view(), dim, y.view(), log).unwrap();
        let e: Vec<f64> = x.reals().iter().map(|v| v.exp()).collect();
        let p: Vec<f64> = e.iter().zip(sums(s, dim, &e)).map(|(e, t)| e / t).collect();
        close(&y.reals(), &p.iter().map(|p| if log { p.ln() } else { *p }).collect::<Vec<_>>(), tolerance);
        softmax_backward(grad.view(), y.view(), dim, out.view(), log).unwrap();
        let g = grad.reals();
        let weighted: Vec<f64> = g.iter().zip(&p).map(|(g, p)| if log { *g } else { g * p }).collect();
        let total = sums(s, dim, &weighted);
        let want: Vec<f64> =
            (0..g.len()).map(|i| if log { g[i] - p[i] * total[i] } else { p[i] * (g[i] - total[i]) }).collect();
        close(&out.reals(), &want, 3.0 * tolerance);
        let (inside, over) = (Array::of(dtype, s, &x.reals()), Array::of(dtype, s, &g));
        softmax(inside.view(), dim, inside.view(), log).unwrap();
        softmax_backward(over.view(), inside.view(), dim, over.view(), log).unwrap();
        close(&inside.reals(), &y.reals(), tolerance);
        close(&over.reals(), &want, 3.0 * tolerance);
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
        softmax(x.view(), 0, y.view(), false).unwrap();
        close(&y.reals(), &[0.5, 0.5, 0.0], 0.0);
    }
}
