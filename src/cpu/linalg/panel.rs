//! A few columns of a matrix while they are factored: held one after another, so that what runs down a column is contiguous, and worked on
//! by loops compiled for each instruction set.

use super::mat::{Field, Mat};
use crate::cpu::lanes::merged;
use crate::cpu::number_class::Fuse;
use crate::cpu::simd::{self, Kernel};
use num_complex::ComplexFloat;
use std::cmp::Ordering;
use std::ops::Range;

/// Columns of a panel: so many that what is done to all others by matrix products is most of the work.
pub const WIDTH: usize = 32;
/// Independent lanes of a sum.
const LANES: usize = 16;

pub struct Panel<T> {
    rows: usize,
    cols: usize,
    data: Vec<T>,
}

impl<T: Field> Panel<T> {
    pub fn of(a: &Mat<T>, rows: Range<usize>, cols: Range<usize>) -> Panel<T> {
        Panel { rows: rows.len(), cols: cols.len(), data: a.columns(rows, cols) }
    }
    /// Writes the columns to the block of a matrix that begins there.
    pub fn store(&self, a: &mut Mat<T>, at: (usize, usize)) {
        a.put_columns(at, [self.rows, self.cols], &self.data);
    }
    /// LU with partial pivoting: the row that each step swapped with its own, and the number of the first zero pivot, from one, or zero.
    pub fn lu(&mut self) -> (Vec<usize>, usize) {
        simd::run_wide(Lu(self))
    }
    /// The lower triangle of a square panel becomes L. The order of the first minor that is not positive, or zero.
    pub fn cholesky(&mut self) -> usize {
        simd::run_wide(Cholesky(self))
    }
    /// R and, below it, the vectors of the reflections; returns their factors.
    pub fn reflect(&mut self) -> Vec<T> {
        simd::run_wide(Reflect(self))
    }

    #[inline(always)]
    fn column(&mut self, j: usize, from: usize) -> &mut [T] {
        &mut self.data[j * self.rows..(j + 1) * self.rows][from..]
    }
    /// A column, and a later one to write to.
    #[inline(always)]
    fn pair(&mut self, j: usize, later: usize, from: usize) -> (&[T], &mut [T]) {
        let (head, tail) = self.data.split_at_mut(later * self.rows);
        (&head[j * self.rows..(j + 1) * self.rows][from..], &mut tail[..self.rows][from..])
    }
}

/// `to -= factor * x`.
#[inline(always)]
fn minus<T: Field>(to: &mut [T], factor: T, x: &[T]) {
    for (y, &x) in to.iter_mut().zip(x) {
        *y = *y - factor * x;
    }
}

struct Lu<'a, T>(&'a mut Panel<T>);
impl<T: Field> Kernel for Lu<'_, T> {
    type Output = (Vec<usize>, usize);
    #[inline(always)]
    fn run<F: Fuse>(self) -> (Vec<usize>, usize) {
        let Lu(panel) = self;
        let (rows, cols) = (panel.rows, panel.cols);
        let (mut pivots, mut singular) = (Vec::with_capacity(cols), 0);
        for j in 0..cols.min(rows) {
            let best = j + largest(panel.column(j, j));
            pivots.push(best);
            if best != j {
                (0..cols).for_each(|c| panel.column(c, 0).swap(j, best));
            }
            let column = panel.column(j, j);
            let pivot = column[0];
            if pivot == T::default() {
                singular = if singular == 0 { j + 1 } else { singular };
                continue;
            }
            column[1..].iter_mut().for_each(|x| *x = x.over(pivot));
            for c in j + 1..cols {
                let (factors, to) = panel.pair(j, c, j);
                let factor = to[0];
                minus(&mut to[1..], factor, &factors[1..]);
            }
        }
        (pivots, singular)
    }
}

/// The first of the largest numbers; NaN is passed over, but none is larger than a first one.
#[inline(always)]
fn largest<T: Field>(column: &[T]) -> usize {
    let first = column[0].l1_norm();
    let most = greatest(column, first, |x| x.l1_norm());
    let found = if most > first { column.iter().position(|x| x.l1_norm() == most) } else { None };
    found.unwrap_or(0)
}

/// The greatest of the sizes of all numbers and a least one, without NaN.
#[inline(always)]
fn greatest<T: Field>(x: &[T], least: T::Real, size: impl Fn(T) -> T::Real) -> T::Real {
    let more = |a: T::Real, b: T::Real| if b > a { b } else { a };
    let mut most = [least; LANES];
    let chunks = x.chunks_exact(LANES);
    let rest = chunks.remainder().iter().fold(least, |most, &x| more(most, size(x)));
    for chunk in chunks {
        for l in 0..LANES {
            most[l] = more(most[l], size(chunk[l]));
        }
    }
    more(merged(most, more), rest)
}

struct Cholesky<'a, T>(&'a mut Panel<T>);
impl<T: Field> Kernel for Cholesky<'_, T> {
    type Output = usize;
    #[inline(always)]
    fn run<F: Fuse>(self) -> usize {
        let Cholesky(panel) = self;
        for j in 0..panel.cols {
            let square = (0..j).fold(panel.column(j, j)[0].re(), |rest, r| {
                let factor = panel.column(r, j)[0];
                rest - (factor * factor.conj()).re()
            });
            if square.partial_cmp(&T::Real::default()) != Some(Ordering::Greater) {
                panel.column(j, j)[0] = T::of(square);
                return j + 1;
            }
            for done in 0..j {
                let (factors, to) = panel.pair(done, j, j);
                minus(&mut to[1..], factors[0].conj(), &factors[1..]);
            }
            let column = panel.column(j, j);
            let root = T::of(square).sqrt();
            column[0] = root;
            column[1..].iter_mut().for_each(|x| *x = x.over(root));
        }
        0
    }
}

struct Reflect<'a, T>(&'a mut Panel<T>);
impl<T: Field> Kernel for Reflect<'_, T> {
    type Output = Vec<T>;
    #[inline(always)]
    fn run<F: Fuse>(self) -> Vec<T> {
        let Reflect(panel) = self;
        let mut taus = Vec::with_capacity(panel.cols);
        for j in 0..panel.cols.min(panel.rows) {
            let tau = reflector(panel.column(j, j));
            taus.push(tau);
            for c in j + 1..if tau == T::default() { 0 } else { panel.cols } {
                let (v, x) = panel.pair(j, c, j);
                let factor = tau.conj() * (x[0] + dot(&v[1..], &x[1..]));
                x[0] = x[0] - factor;
                minus(&mut x[1..], factor, &v[1..]);
            }
        }
        taus
    }
}

/// Zeroes a column below its first number by a reflection, which is stored there; returns its factor.
#[inline(always)]
fn reflector<T: Field>(column: &mut [T]) -> T {
    let zero = T::Real::default();
    let (head, rest) = (column[0], &mut column[1..]);
    let largest = greatest(rest, zero, |x| x.abs());
    if largest == zero && head.im() == zero && rest.iter().all(|&x| x == T::default()) {
        return T::default();
    }
    // Scaled, so that squares neither overflow nor underflow.
    let scale = if head.abs() > largest { head.abs() } else { largest };
    let square = |x: T| {
        let r = x.abs() / scale;
        r * r
    };
    let norm = scale * (square(head) + sum(rest, rest, |x, _| T::of(square(x))).re()).sqrt();
    let beta = if head.re() < zero { norm } else { zero - norm };
    let below = T::one().over(head - T::of(beta));
    rest.iter_mut().for_each(|x| *x = *x * below);
    column[0] = T::of(beta);
    (T::of(beta) - head).over(T::of(beta))
}

#[inline(always)]
fn dot<T: Field>(x: &[T], y: &[T]) -> T {
    sum(x, y, |x, y| x.conj() * y)
}
/// The sum of what `f` makes of the numbers at each place, in independent lanes.
#[inline(always)]
fn sum<T: Field>(x: &[T], y: &[T], f: impl Fn(T, T) -> T) -> T {
    let mut sums = [T::default(); LANES];
    let (x, y) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let rest = x.remainder().iter().zip(y.remainder()).fold(T::default(), |sum, (&x, &y)| sum + f(x, y));
    for (x, y) in x.zip(y) {
        for l in 0..LANES {
            sums[l] = sums[l] + f(x[l], y[l]);
        }
    }
    merged(sums, |a, b| a + b) + rest
}
