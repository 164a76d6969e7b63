//! Products of a matrix with a few vectors, both with their terms side by side, as in a linear layer with a small batch:
//! every row is read once as it lies, and nothing is packed.

use super::Matrix;
use super::tiles::{self, Job, LARGEST_SIDE, MOST_LANES, Unit, Vectors};
use crate::cpu::arith::Arith;
use std::mem::MaybeUninit;

/// Rows that are read together, and the most vectors.
const ROWS: usize = 4;
const MOST: usize = 4;
const ALL: usize = ROWS * MOST;

/// # Safety
/// As for `Multiply::multiply`; the terms of both factors lie side by side.
pub(super) unsafe fn multiply<T: Vectors>([m, n, k]: [usize; 3], [a, b, old, out]: [Matrix<T>; 4], factors: [T; 2]) {
    debug_assert!(a.cols == 1 && b.rows == 1);
    let turn = m < n;
    let (sizes, rows, vectors) = if turn { ([n, m], b.t(), a) } else { ([m, n], a, b.t()) };
    let [old, out] = [old, out].map(|x| if turn { x.t() } else { x });
    tiles::run(Dots { sizes, k, rows, vectors, old, out, factors });
}

/// `out = beta * old + alpha * rows @ vectors`, of a size `[rows, vectors]` and `k` terms.
#[derive(Clone, Copy)]
struct Dots<T> {
    sizes: [usize; 2],
    k: usize,
    /// `[rows, terms]` and `[vectors, terms]`, whose terms are side by side, what the products are added to, and the result.
    rows: Matrix<T>,
    vectors: Matrix<T>,
    old: Matrix<T>,
    out: Matrix<T>,
    /// Alpha and beta.
    factors: [T; 2],
}

impl<T: Vectors> Job<T> for Dots<T> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<U: Unit<Float = T>>(self) {
        // As many vectors as their sums stay in registers.
        let together = if U::ROWS > 8 { MOST } else { 2 };
        for row in (0..self.sizes[0]).step_by(ROWS) {
            for vector in (0..self.sizes[1]).step_by(together) {
                // SAFETY: whoever builds the job vouches for the matrices.
                unsafe {
                    match together.min(self.sizes[1] - vector) {
                        1 => self.block::<U, 1>(row, vector),
                        2 => self.block::<U, 2>(row, vector),
                        3 => self.block::<U, 3>(row, vector),
                        _ => self.block::<U, 4>(row, vector),
                    }
                }
            }
        }
    }
}

impl<T: Vectors> Dots<T> {
    /// The products of the `ROWS` rows from `row` on, as many as there are, with `N` vectors.
    ///
    /// # Safety
    /// Row and vectors exist, and the matrices hold their elements.
    #[allow(clippy::needless_range_loop)] // the sums stay in registers only if all their indices are constants
    #[inline(always)]
    unsafe fn block<U: Unit<Float = T>, const N: usize>(&self, row: usize, vector: usize) {
        let (whole, left) = (self.k / U::LANES * U::LANES, self.k % U::LANES);
        let vectors: [*const T; N] = std::array::from_fn(|j| self.vectors.at(vector + j, 0).cast_const());
        // Rows past the end are the last one again.
        let rows: [*const T; ROWS] =
            std::array::from_fn(|i| self.rows.at((row + i).min(self.sizes[0] - 1), 0).cast_const());
        // SAFETY: rows and vectors have `k` terms.
        unsafe {
            let mut sums = [[U::splat(T::ZERO); N]; ROWS];
            for p in (0..whole).step_by(U::LANES) {
                let mut x = [U::splat(T::ZERO); N];
                for j in 0..N {
                    x[j] = U::load(vectors[j].add(p));
                }
                for i in 0..ROWS {
                    let y = U::load(rows[i].add(p));
                    for j in 0..N {
                        sums[i][j] = U::fma(x[j], y, sums[i][j]);
                    }
                }
            }
            if left > 0 {
                let mut x = [U::splat(T::ZERO); N];
                for j in 0..N {
                    x[j] = U::load_first(vectors[j].add(whole), left);
                }
                for i in 0..ROWS {
                    let y = U::load_first(rows[i].add(whole), left);
                    for j in 0..N {
                        sums[i][j] = U::fma(x[j], y, sums[i][j]);
                    }
                }
            }
            let mut lanes = [const { MaybeUninit::<[T; MOST_LANES]>::uninit() }; ALL];
            let lanes = lanes.as_mut_ptr().cast::<T>();
            for i in 0..ROWS {
                for j in 0..N {
                    U::store(lanes.add((j * ROWS + i) * U::LANES), sums[i][j]);
                }
            }
            let [alpha, beta] = self.factors;
            let totals = totals::<U>(lanes, N * ROWS);
            for j in 0..N {
                for i in 0..ROWS.min(self.sizes[0] - row) {
                    let ([old, out], sum) =
                        ([self.old, self.out].map(|x| x.at(row + i, vector + j)), totals[j * ROWS + i].times(alpha));
                    *out = if beta == T::ZERO { sum } else { beta.times(*old).plus(sum) };
                }
            }
        }
    }
}

/// The sums of the lanes of `count` vectors: blocks of lanes are transposed, and their rows added.
///
/// # Safety
/// The lanes of the vectors lie one after another; the processor has the unit's instructions.
#[inline(always)]
unsafe fn totals<U: Unit>(lanes: *const U::Float, count: usize) -> [U::Float; ALL] {
    let mut totals = [U::Float::ZERO; ALL];
    for (first, totals) in (0..count).step_by(U::SIDE).zip(totals.chunks_exact_mut(U::SIDE)) {
        let mut sums = [U::Float::ZERO; LARGEST_SIDE];
        for lane in (0..U::LANES).step_by(U::SIDE) {
            let mut turned = [const { MaybeUninit::<U::Float>::uninit() }; LARGEST_SIDE * LARGEST_SIDE];
            let turned = turned.as_mut_ptr().cast::<U::Float>();
            // Past the last vector it is the last one again.
            let rows = std::array::from_fn(|i| lanes.wrapping_add((first + i).min(count - 1) * U::LANES + lane));
            // SAFETY: the caller's promise; what is turned fills a block.
            unsafe {
                U::turn(rows, turned, U::SIDE);
                for p in 0..U::SIDE {
                    for (i, sum) in sums.iter_mut().enumerate().take(U::SIDE) {
                        *sum = sum.plus(*turned.add(p * U::SIDE + i));
                    }
                }
            }
        }
        totals.copy_from_slice(&sums[..U::SIDE]);
    }
    totals
}

const _: () = assert!(ALL.is_multiple_of(LARGEST_SIDE));
