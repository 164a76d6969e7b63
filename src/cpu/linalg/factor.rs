//! LU with partial pivoting and Cholesky, by halves of the columns, joined by triangular solutions and matrix products.
//!
//! As in LAPACK's getrf and potrf, a zero pivot is skipped and its number, from one, reported; a leading minor that is
//! not positive ends the factorization and is reported.

use super::mat::{Field, Mat};
use super::panel::{Panel, WIDTH};
use super::triangular::{self, Triangle};
use crate::error::Result;
use std::ops::Range;

/// Rows of the product that a Cholesky step subtracts at once: only what is below the diagonal, about, is computed.
const STRIP: usize = 128;

/// Where to part some columns: in whole panels.
fn middle(range: &Range<usize>) -> usize {
    range.start + (range.len() / 2).next_multiple_of(WIDTH)
}

/// The rows that steps swapped with their own, and the number of the first zero pivot.
type Pivots = (Vec<usize>, usize);

/// Overwrites `a` with L (below the diagonal) and U. Returns the row that each step swapped with its own, and the
/// number of the first zero pivot, zero if there is none.
pub fn lu<T: Field>(a: &mut Mat<T>) -> Result<Pivots> {
    let k = a.rows.min(a.cols);
    let mut found = (Vec::with_capacity(k), 0);
    lu_of(a, 0..k, &mut found)?;
    over(a, 0..k, k..a.cols)?;
    Ok(found)
}

/// The solution of `A X = B` by LU, and the number of the first zero pivot. `a` is overwritten with its factors.
pub fn solve_square<T: Field>(a: &mut Mat<T>, b: &mut Mat<T>) -> Result<usize> {
    let (pivots, singular) = lu(a)?;
    triangular::solve_factored(a, &pivots, b)?;
    Ok(singular)
}

/// Factors some columns, from the row of the first one's diagonal on; whole rows are swapped.
fn lu_of<T: Field>(a: &mut Mat<T>, cols: Range<usize>, found: &mut Pivots) -> Result<()> {
    let (start, end) = (cols.start, cols.end);
    if cols.len() <= WIDTH {
        let mut panel = Panel::of(a, start..a.rows, cols);
        let (pivots, singular) = panel.lu();
        for (i, pivot) in pivots.into_iter().enumerate() {
            a.swap_rows(start + i, start + pivot);
            found.0.push(start + pivot);
        }
        found.1 = if found.1 == 0 && singular > 0 { start + singular } else { found.1 };
        panel.store(a, (start, start));
        return Ok(());
    }
    let middle = middle(&cols);
    lu_of(a, start..middle, found)?;
    over(a, start..middle, middle..end)?;
    let size = [a.rows - middle, end - middle, middle - start];
    a.minus_own((middle, middle), size, (middle, start), (start, middle))?;
    lu_of(a, middle..end, found)
}

/// The rows of U beside those of a factored square.
fn over<T: Field>(a: &mut Mat<T>, rows: Range<usize>, cols: Range<usize>) -> Result<()> {
    if cols.is_empty() {
        return Ok(());
    }
    let mut upper = a.block(rows.clone(), cols.clone());
    triangular::solve(&a.block(rows.clone(), rows.clone()), &mut upper, Triangle { upper: false, unit: true })?;
    a.put((rows.start, cols.start), &upper);
    Ok(())
}

/// The lower triangle of `a` becomes L, the rest zero. Returns the order of the first minor that is not positive, or
/// zero.
pub fn cholesky<T: Field>(a: &mut Mat<T>) -> Result<usize> {
    let failed = cholesky_of(a, 0..a.rows)?;
    for i in 0..a.rows {
        a.row_mut(i)[i + 1..].fill(T::default());
    }
    Ok(failed)
}

fn cholesky_of<T: Field>(a: &mut Mat<T>, range: Range<usize>) -> Result<usize> {
    let (start, end) = (range.start, range.end);
    if range.len() <= WIDTH {
        let mut panel = Panel::of(a, range.clone(), range);
        let failed = panel.cholesky();
        panel.store(a, (start, start));
        return Ok(if failed > 0 { start + failed } else { 0 });
    }
    let middle = middle(&range);
    let failed = cholesky_of(a, start..middle)?;
    if failed > 0 {
        return Ok(failed);
    }
    let mut below = a.block(middle..end, start..middle).adjoint();
    let lower = a.block(start..middle, start..middle);
    triangular::solve(&lower, &mut below, Triangle { upper: false, unit: false })?;
    let rows = below.adjoint();
    a.put((middle, start), &rows);
    for top in (middle..end).step_by(STRIP) {
        let bottom = end.min(top + STRIP);
        let size = [bottom - top, bottom - middle, middle - start];
        a.minus_blocks((top, middle), size, (&rows, top - middle, 0), (&below, 0, 0))?;
    }
    cholesky_of(a, middle..end)
}
