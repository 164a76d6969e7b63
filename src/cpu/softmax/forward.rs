//! The forward pass.
//!
//! The longest part of a line's work is the exponentials. Where no element lies so far below the maximum that its
//! exponential is subnormal (minus infinity, whose exponential is zero, apart), a shorter formula gives the same numbers;
//! a sum, to which a subnormal number adds nothing, always takes it. Arrays of lanes stay in registers where plain loops with an
//! index run over them, and in memory where iterators and `map` do.

#![allow(clippy::needless_range_loop)] // as above

use super::{CHUNK, Job, LINE, Order, ROWS, TILE, Tile, each, groups, lanes, put};
use crate::cpu::arith::{Float, greater};
use crate::cpu::number_class::Fuse;
use crate::cpu::reduce::reducer::{Lanes, Reducer};
use crate::cpu::reduce::reducers::{Max, SumExp};
use crate::cpu::simd::Kernel;
use crate::cpu::view::load;
use std::marker::PhantomData;

pub(super) struct Forward<'a, T> {
    pub job: Job<'a, T, 2>,
    pub log: bool,
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

/// The largest element of some lanes, and the smallest but for minus infinity. NaN is passed over here, and makes the sum NaN.
struct Extremes<T> {
    most: [T; CHUNK],
    least: [T; CHUNK],
}
impl<T: Float> Extremes<T> {
    #[inline(always)]
    fn new() -> Self {
        Extremes { most: [T::LOWEST; CHUNK], least: [T::HIGHEST; CHUNK] }
    }
    #[inline(always)]
    fn add(&mut self, x: [T; CHUNK]) {
        for l in 0..CHUNK {
            self.most[l] = if x[l] > self.most[l] { x[l] } else { self.most[l] };
            let finite = if x[l] == T::LOWEST { T::HIGHEST } else { x[l] };
            self.least[l] = if finite < self.least[l] { finite } else { self.least[l] };
        }
    }
}

impl<T: Float> Forward<'_, T> {
    /// Lines padded with minus infinity, whose exponential is zero.
    #[inline(always)]
    fn whole<F: Fuse>(self) {
        let Job { tiles: [input, out], length, lines, buffers: [a, b, _], .. } = self.job;
        // Lanes beyond the first hold padding alone. The chains over the lanes overlap with the work on the next line.
        let used = length.min(CHUNK);
        for i in 0..lines {
            let (input, out) = (input.line(i), out.line(i));
            let x = padded(&input, length, a).as_chunks::<CHUNK>().0;
            let y = b.as_chunks_mut::<CHUNK>().0;
            let mut all = Extremes::new();
            for x in x {
                all.add(*x);
            }
            let most = all.most[..used].iter().fold(T::LOWEST, |m, &x| if x > m { x } else { m });
            let least = all.least[..used].iter().fold(T::HIGHEST, |m, &x| if x < m { x } else { m });
            let sums = if self.log || T::is_mild(least.minus(most)) {
                exponentials(x, y, most, |v| v.exp_weight::<F>())
            } else {
                exponentials(x, y, most, |v| v.exp_nonpositive::<F>())
            };
            let sum = sums[..used].iter().copied().fold(T::ZERO, T::plus);
            let to = out.place(0, b.as_mut_ptr());
            // SAFETY: the line and the buffers have `length` elements.
            unsafe {
                if self.log {
                    let log_sum = sum.ln::<F>();
                    each([a.as_ptr()], to, length, |[v]| v.minus(most).minus(log_sum));
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
        let Job { tiles: [input, out], length, lines, buffers: [a, b, c], .. } = self.job;
        input.read_columns([length, lines], a, b);
        for first in groups(lines) {
            let at = |i: usize| i * lines + first;
            let mut all = Extremes::new();
            for i in 0..length {
                all.add(lanes(a, at(i)));
            }
            let Extremes { most, least } = all;
            let mut mild = true;
            for l in 0..CHUNK {
                mild &= T::is_mild(least[l].minus(most[l]));
            }
            let sum = if self.log || mild {
                column_exponentials(a, b, (length, lines, first), most, |v| v.exp_weight::<F>())
            } else {
                column_exponentials(a, b, (length, lines, first), most, |v| v.exp_nonpositive::<F>())
            };
            let mut by = [T::ZERO; CHUNK];
            if self.log {
                for l in 0..CHUNK {
                    by[l] = sum[l].ln::<F>();
                }
                for i in 0..length {
                    let mut x = lanes(a, at(i));
                    for l in 0..CHUNK {
                        x[l] = x[l].minus(most[l]).minus(by[l]);
                    }
                    put(c, at(i), x);
                }
            } else {
                for l in 0..CHUNK {
                    by[l] = T::ONE.divide(sum[l]);
                }
                for i in 0..length {
                    let mut e = lanes(b, i * CHUNK);
                    for l in 0..CHUNK {
                        e[l] = e[l].times(by[l]);
                    }
                    put(c, at(i), e);
                }
            }
        }
        out.write_columns([length, lines], c, b);
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
                let terms = part.iter_mut().zip(&*row).zip(&max);
                terms.for_each(|((s, v), &m)| *s = s.plus(v.minus(m).exp_weight::<F>()));
            }
            sum.iter_mut().zip(&part).for_each(|(s, &p)| *s = s.plus(p));
        }
        for s in &mut sum[..lines] {
            *s = if self.log { s.ln::<F>() } else { T::ONE.divide(*s) };
        }
        for i in 0..length {
            input.read_row(i, row);
            let terms = row.iter_mut().zip(&max).zip(&sum);
            if self.log {
                terms.for_each(|((v, &m), &s)| *v = v.minus(m).minus(s));
            } else {
                terms.for_each(|((v, &m), &s)| *v = v.minus(m).exp_nonpositive::<F>().times(s));
            }
            out.write_row(i, row);
        }
    }
}

/// Writes the exponentials of a line less its maximum, and returns their sums in lanes.
#[inline(always)]
fn exponentials<T: Float>(x: &[[T; CHUNK]], y: &mut [[T; CHUNK]], most: T, exp: impl Fn(T) -> T) -> [T; CHUNK] {
    let mut sums = [T::ZERO; CHUNK];
    for (x, y) in x.iter().zip(y) {
        let mut e = *x;
        for l in 0..CHUNK {
            e[l] = exp(e[l].minus(most));
        }
        *y = e;
        for l in 0..CHUNK {
            sums[l] = sums[l].plus(e[l]);
        }
    }
    sums
}

/// The same for a group of columns: the exponentials go to the start of `y`, one row after another.
#[inline(always)]
fn column_exponentials<T: Float>(
    x: &[T],
    y: &mut [T],
    (length, lines, first): (usize, usize, usize),
    most: [T; CHUNK],
    exp: impl Fn(T) -> T,
) -> [T; CHUNK] {
    let mut sum = [T::ZERO; CHUNK];
    for i in 0..length {
        let mut e = lanes(x, i * lines + first);
        for l in 0..CHUNK {
            e[l] = exp(e[l].minus(most[l]));
        }
        put(y, i * CHUNK, e);
        for l in 0..CHUNK {
            sum[l] = sum[l].plus(e[l]);
        }
    }
    sum
}

/// A line in the buffer, with minus infinity up to a whole chunk.
#[inline(always)]
fn padded<'a, T: Float>(line: &Tile, length: usize, buffer: &'a mut [T]) -> &'a [T] {
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
    buffer[length..].fill(T::LOWEST);
    buffer
}
