//! Triangular systems `A X = B` with many right-hand sides: recursion on halves of the triangle, joined by a matrix
//! product.

use super::mat::{Field, Mat};
use crate::cpu::number_class::Fuse;
use crate::cpu::simd::{self, Kernel};
use crate::error::Result;
use std::ops::Range;

/// Which half of a matrix is the triangle, and whether its diagonal is taken as ones.
#[derive(Clone, Copy)]
pub struct Triangle {
    pub upper: bool,
    pub unit: bool,
}

/// Unknowns solved row by row.
const BLOCK: usize = 32;

/// Overwrites `b` with the solution.
pub fn solve<T: Field>(a: &Mat<T>, b: &mut Mat<T>, what: Triangle) -> Result<()> {
    part(a, b, what, 0..a.rows)
}

fn part<T: Field>(a: &Mat<T>, b: &mut Mat<T>, what: Triangle, rows: Range<usize>) -> Result<()> {
    if rows.len() <= BLOCK {
        simd::run_wide(Substitution { a, b, what, rows });
        return Ok(());
    }
    let middle = rows.start + rows.len() / 2;
    let (low, high) = (rows.start..middle, middle..rows.end);
    let (first, second) = if what.upper { (high, low) } else { (low, high) };
    part(a, b, what, first.clone())?;
    let size = [second.len(), b.cols, first.len()];
    b.minus_of(second.start, size, (a, second.start, first.start), first.start)?;
    part(a, b, what, second)
}

/// Rows one by one.
struct Substitution<'a, T> {
    a: &'a Mat<T>,
    b: &'a mut Mat<T>,
    what: Triangle,
    rows: Range<usize>,
}
impl<T: Field> Kernel for Substitution<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let Substitution { a, b, what, rows } = self;
        for step in rows.clone() {
            let i = if what.upper { rows.start + rows.end - 1 - step } else { step };
            let known = if what.upper { i + 1..rows.end } else { rows.start..i };
            for r in known {
                b.minus_row(i, a[(i, r)], r, 0..b.cols);
            }
            if !what.unit {
                let pivot = a[(i, i)];
                b.row_mut(i).iter_mut().for_each(|x| *x = x.over(pivot));
            }
        }
    }
}

/// Overwrites `b` with the solution of `A X = B`, from the result of `factor::lu` in `a`.
pub fn solve_factored<T: Field>(a: &Mat<T>, pivots: &[usize], b: &mut Mat<T>) -> Result<()> {
    for (i, &p) in pivots.iter().enumerate() {
        b.swap_rows(i, p);
    }
    solve(a, b, Triangle { upper: false, unit: true })?;
    solve(a, b, Triangle { upper: true, unit: false })
}
