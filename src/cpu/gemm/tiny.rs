//! Products of so few terms and columns that planning, packing and the edges of tiles would take most of the time: dot products, small
//! matrices in batches, many rows of coordinates.

use super::Series;
use super::tiles::{self, Job, MOST_LANES, Unit, Vectors};
use crate::cpu::arith::Arith;
use std::mem::MaybeUninit;

/// The most columns and terms, and rows whose terms do not lie side by side.
const COLUMNS: usize = 4;
const TERMS: usize = 16;
const ROWS: usize = 16;
/// The fewest and most terms of dot products, and how many there may be.
const SHORT: usize = 8;
const LONG: usize = 1024;
const DOTS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Way {
    /// Rows of the result, or of its transpose, one after another.
    Rows { flipped: bool },
    /// Dot products of vectors whose elements lie side by side.
    Dots,
}

/// How a product of this size and strides is done, if it is tiny.
pub(super) fn way([m, n, k]: [usize; 3], a: [usize; 2], b: [usize; 2]) -> Option<Way> {
    if m * n <= DOTS && (SHORT..=LONG).contains(&k) && (a[1], b[0]) == (1, 1) {
        return Some(Way::Dots);
    }
    if k > TERMS {
        return None;
    }
    let fits = |rows: usize, columns: usize, terms: usize| columns <= COLUMNS && (rows <= ROWS || terms == 1);
    match (fits(m, n, a[1]), fits(n, m, b[0])) {
        (true, _) => Some(Way::Rows { flipped: false }),
        (_, true) => Some(Way::Rows { flipped: true }),
        _ => None,
    }
}

/// `out = beta * old + alpha * a @ b` for a series of products.
///
/// # Safety
/// As for `Multiply::multiply`.
pub(super) unsafe fn multiply<T: Vectors>(way: Way, [m, n, k]: [usize; 3], series: Series<T>, factors: [T; 2]) {
    let (size, series) = match way {
        Way::Rows { flipped: true } => ([n, m, k], series.t()),
        _ => ([m, n, k], series),
    };
    tiles::run(Tiny { way, size, series, factors });
}

struct Tiny<T> {
    way: Way,
    size: [usize; 3],
    series: Series<T>,
    /// Alpha and beta.
    factors: [T; 2],
}

impl<T: Vectors> Job<T> for Tiny<T> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<U: Unit<Float = T>>(self) {
        // SAFETY: whoever builds the job vouches for the matrices, and `way` for their size.
        unsafe {
            match (self.way, self.size[1]) {
                (Way::Dots, _) => self.dots::<U>(),
                (_, 1) => self.rows::<1>(),
                (_, 2) => self.rows::<2>(),
                (_, 3) => self.rows::<3>(),
                _ => self.rows::<COLUMNS>(),
            }
        }
    }
}

impl<T: Vectors> Tiny<T> {
    /// # Safety
    /// The element exists.
    #[inline(always)]
    unsafe fn write(&self, [old, out]: [*mut T; 2], sum: T) {
        let [alpha, beta] = self.factors;
        let sum = sum.times(alpha);
        // SAFETY: the caller's promise.
        unsafe { *out = if beta == T::ZERO { sum } else { beta.times(*old).plus(sum) } };
    }

    /// # Safety
    /// The matrices hold their elements, `N` columns and at most `TERMS` terms.
    #[inline(always)]
    unsafe fn rows<const N: usize>(&self) {
        let [m, _, k] = self.size;
        for [a, b, old, out] in self.series.each() {
            let mut columns = [[T::ZERO; N]; TERMS];
            for (p, column) in columns.iter_mut().enumerate().take(k) {
                for (j, x) in column.iter_mut().enumerate() {
                    // SAFETY: the caller's promise.
                    *x = unsafe { *b.at(p, j) };
                }
            }
            for i in 0..m {
                let mut sums = [T::ZERO; N];
                for (p, column) in columns.iter().enumerate().take(k) {
                    // SAFETY: as above.
                    let x = unsafe { *a.at(i, p) };
                    for (sum, &y) in sums.iter_mut().zip(column) {
                        *sum = x.times_plus(y, *sum);
                    }
                }
                for (j, &sum) in sums.iter().enumerate() {
                    // SAFETY: as above.
                    unsafe { self.write([old, out].map(|x| x.at(i, j)), sum) };
                }
            }
        }
    }

    /// # Safety
    /// The matrices hold their elements, with the terms of both factors side by side.
    #[inline(always)]
    unsafe fn dots<U: Unit<Float = T>>(&self) {
        let [m, n, k] = self.size;
        for [a, b, old, out] in self.series.each() {
            for i in 0..m {
                for j in 0..n {
                    // SAFETY: the caller's promise.
                    unsafe {
                        let sum = dot::<U>(a.at(i, 0), b.at(0, j), k);
                        self.write([old, out].map(|x| x.at(i, j)), sum);
                    }
                }
            }
        }
    }
}

/// # Safety
/// Both vectors have `n` elements; the processor has the unit's instructions.
#[inline(always)]
unsafe fn dot<U: Unit>(x: *const U::Float, y: *const U::Float, n: usize) -> U::Float {
    // SAFETY: the caller's promise.
    unsafe {
        // Two sums, so that additions overlap.
        let mut sums = [U::splat(U::Float::ZERO); 2];
        let (whole, pair) = (n / U::LANES * U::LANES, n / (2 * U::LANES) * 2 * U::LANES);
        for p in (0..pair).step_by(2 * U::LANES) {
            sums[0] = U::fma(U::load(x.add(p)), U::load(y.add(p)), sums[0]);
            sums[1] = U::fma(U::load(x.add(p + U::LANES)), U::load(y.add(p + U::LANES)), sums[1]);
        }
        if pair < whole {
            sums[0] = U::fma(U::load(x.add(pair)), U::load(y.add(pair)), sums[0]);
        }
        let mut lanes = [const { MaybeUninit::<U::Float>::uninit() }; MOST_LANES];
        let lanes = lanes.as_mut_ptr().cast::<U::Float>();
        U::store(lanes, U::add(sums[0], sums[1]));
        let mut width = U::LANES;
        while width > 1 {
            width /= 2;
            for i in 0..width {
                *lanes.add(i) = (*lanes.add(i)).plus(*lanes.add(i + width));
            }
        }
        let mut total = *lanes;
        for p in whole..n {
            total = (*x.add(p)).times_plus(*y.add(p), total);
        }
        total
    }
}
