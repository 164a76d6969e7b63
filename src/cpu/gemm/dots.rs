//! Products of a matrix with a few vectors, both with their terms side by side, as in a linear layer with a batch of eight
//! or fewer: every row is read once as it lies, and nothing is packed.

use super::Matrix;
use super::tiles::{self, Job, Unit, Vectors};
use crate::error::Result;

/// The most vectors.
pub(super) const FEW: usize = 8;
/// Rows that are read together.
const ROWS: usize = 4;
/// The most lanes of a unit.
const LANES: usize = 16;

/// # Safety
/// As for `Product`; the terms of both factors lie side by side, and one has `FEW` rows or columns at most.
pub(super) unsafe fn multiply<T: Vectors>(
    [m, n, k]: [usize; 3],
    a: Matrix<T>,
    b: Matrix<T>,
    out: Matrix<T>,
    alpha: T,
    beta: T,
) -> Result<()> {
    debug_assert!(a.cols == 1 && b.rows == 1 && m.min(n) <= FEW);
    let (sizes, rows, vectors, out) = if m < n { ([n, m], b.t(), a, out.t()) } else { ([m, n], a, b.t(), out) };
    tiles::run(Dots { sizes, k, rows, vectors, out, factors: [alpha, beta] });
    Ok(())
}

/// `out = beta * out + alpha * rows @ vectors`, of a size `[rows, vectors]` and `k` terms.
#[derive(Clone, Copy)]
struct Dots<T> {
    sizes: [usize; 2],
    k: usize,
    /// `[rows, terms]` and `[vectors, terms]`, whose terms are side by side, and the result.
    rows: Matrix<T>,
    vectors: Matrix<T>,
    out: Matrix<T>,
    /// Alpha and beta.
    factors: [T; 2],
}

impl<T: Vectors> Job<T> for Dots<T> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<U: Unit<Float = T>>(self) {
        // As many vectors as their sums stay in registers.
        let together = if U::ROWS > 8 { 4 } else { 2 };
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
            for i in 0..ROWS {
                for j in 0..N {
                    if row + i < self.sizes[0] {
                        self.finish::<U>(row + i, vector + j, sums[i][j]);
                    }
                }
            }
        }
    }

    /// Adds the lanes, halves first, and writes an element.
    ///
    /// # Safety
    /// The element exists.
    #[inline(always)]
    unsafe fn finish<U: Unit<Float = T>>(&self, i: usize, j: usize, sum: U::Vector) {
        let mut lanes = [T::ZERO; LANES];
        // SAFETY: no unit has more lanes; the caller's promise.
        unsafe {
            U::store(lanes.as_mut_ptr(), sum);
            let mut half = U::LANES / 2;
            while half > 0 {
                for l in 0..half {
                    lanes[l] = lanes[l].plus(lanes[l + half]);
                }
                half /= 2;
            }
            let (at, [alpha, beta], sum) = (self.out.at(i, j), self.factors, lanes[0]);
            *at = if beta == T::ZERO { sum.times(alpha) } else { beta.times(*at).plus(sum.times(alpha)) };
        }
    }
}
