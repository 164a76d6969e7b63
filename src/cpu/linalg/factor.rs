//! LU with partial pivoting and Cholesky, in blocks of columns whose updates are matrix products.
//!
//! As in LAPACK's getrf and potrf, a zero pivot is skipped and its number, from one, reported; a leading minor that is
//! not positive ends the factorization and is reported.

use super::mat::{Field, Mat};
use crate::error::Result;

/// Columns factored at once.
const BLOCK: usize = 32;

/// Overwrites `a` with L (below the diagonal) and U. Returns the row that each step swapped with its own, and the
/// number of the first zero pivot, zero if there is none.
pub fn lu<T: Field>(a: &mut Mat<T>) -> Result<(Vec<usize>, usize)> {
    let (m, n) = (a.rows, a.cols);
    let k = m.min(n);
    let (mut pivots, mut singular) = (Vec::with_capacity(k), 0);
    for start in (0..k).step_by(BLOCK) {
        let end = k.min(start + BLOCK);
        for j in start..end {
            let best = (j + 1..m).fold(j, |p, i| if a[(i, j)].l1_norm() > a[(p, j)].l1_norm() { i } else { p });
            pivots.push(best);
            a.swap_rows(j, best);
            if a[(j, j)] == T::default() {
                singular = if singular == 0 { j + 1 } else { singular };
                continue;
            }
            for i in j + 1..m {
                let factor = a[(i, j)].over(a[(j, j)]);
                a[(i, j)] = factor;
                a.minus_row(i, factor, j, j + 1..end);
            }
        }
        for i in start + 1..end {
            for r in start..i {
                a.minus_row(i, a[(i, r)], r, end..n);
            }
        }
        a.minus_own((end, end), [m - end, n - end, end - start], (end, start), (start, end))?;
    }
    Ok((pivots, singular))
}

/// The lower triangle of `a` becomes L, the rest zero. Returns the order of the first minor that is not positive, or
/// zero.
pub fn cholesky<T: Field>(a: &mut Mat<T>) -> Result<usize> {
    let n = a.rows;
    let zero = T::Real::default();
    for i in 0..n {
        a.row_mut(i)[i + 1..].fill(T::default());
    }
    for start in (0..n).step_by(BLOCK) {
        let end = n.min(start + BLOCK);
        let done = a.block(start..n, 0..start);
        let pivot_rows = a.block(start..end, 0..start).adjoint();
        a.minus_product((start, start), &done, &pivot_rows)?;
        for i in start..end {
            a.row_mut(i)[i + 1..].fill(T::default());
        }
        for j in start..end {
            let square = (start..j).fold(a[(j, j)].re(), |sum, r| sum - (a[(j, r)] * a[(j, r)].conj()).re());
            if square.partial_cmp(&zero) != Some(std::cmp::Ordering::Greater) {
                a[(j, j)] = T::of(square);
                return Ok(j + 1);
            }
            let root = T::of(square).sqrt();
            a[(j, j)] = root;
            for i in j + 1..n {
                let dot = (start..j).fold(a[(i, j)], |sum, r| sum - a[(i, r)] * a[(j, r)].conj());
                a[(i, j)] = dot.over(root);
            }
        }
    }
    Ok(0)
}
