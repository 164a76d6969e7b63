//! `A = L D L^T` (or `L D L^H`) of indefinite matrices: D has diagonal blocks of size one and two.
//!
//! Source: J. R. Bunch and L. Kaufman, "Some stable methods for calculating inertia and solving symmetric linear
//! systems" (1977). L, D and the pivots are stored as by LAPACK's sytrf and hetrf in the lower triangle: a pivot `p >
//! 0` means that the row was swapped with row `p` (from one), two pivots `-p` that a block of two swapped its second
//! row.

use super::mat::{Field, Mat};
use crate::error::{Error, Result};
use num_complex::ComplexFloat;

/// Conjugates if the matrix is Hermitian.
fn mirrored<T: Field>(x: T, hermitian: bool) -> T {
    if hermitian { x.conj() } else { x }
}

/// Overwrites the lower triangle of `a` with L and D, and the rest with zeros. Returns the pivots and the number of the
/// first block of D that is zero, or zero.
pub fn factor<T: Field>(a: &mut Mat<T>, hermitian: bool) -> (Vec<i32>, usize) {
    let n = a.rows;
    let (mut pivots, mut singular, mut k) = (vec![0; n], 0, 0);
    for i in 0..n {
        a.row_mut(i)[i + 1..].fill(T::default());
        if hermitian {
            a[(i, i)] = T::of(a[(i, i)].re());
        }
    }
    while k < n {
        let Some((p, size)) = choose(a, k) else {
            (pivots[k], singular) = (k as i32 + 1, if singular == 0 { k + 1 } else { singular });
            k += 1;
            continue;
        };
        exchange(a, k, k + size - 1, p, hermitian);
        let row = p as i32 + 1;
        if size == 1 {
            pivots[k] = row;
            eliminate_one(a, k, hermitian);
        } else {
            pivots[k..k + 2].fill(-row);
            eliminate_two(a, k, hermitian);
        }
        k += size;
    }
    (pivots, singular)
}

/// The row to swap to the end of the next block, and the size of that block. `None`: the column is zero.
fn choose<T: Field>(a: &Mat<T>, k: usize) -> Option<(usize, usize)> {
    let n = a.rows;
    let bound = (1.0 + 17f64.sqrt()) / 8.0;
    let size = |i: usize, j: usize| -> f64 { a[(i, j)].double().l1_norm() };
    let here = size(k, k);
    let top = (k + 1..n).fold(k, |p, i| if p == k || size(i, k) > size(p, k) { i } else { p });
    let column = if top == k { 0.0 } else { size(top, k) };
    if here.max(column) == 0.0 || here.is_nan() {
        return None;
    }
    if here >= bound * column {
        return Some((k, 1));
    }
    let row = (k..top).map(|j| size(top, j)).chain((top + 1..n).map(|i| size(i, top))).fold(0.0, f64::max);
    if here >= bound * column * (column / row) {
        Some((k, 1))
    } else if size(top, top) >= bound * row {
        Some((top, 1))
    } else {
        Some((top, 2))
    }
}

/// Swaps rows and columns `at` and `p` of the matrix from column `k` on, of which the lower triangle is stored.
fn exchange<T: Field>(a: &mut Mat<T>, k: usize, at: usize, p: usize, hermitian: bool) {
    if p == at {
        return;
    }
    let mut swap = |x: (usize, usize), y: (usize, usize)| a.data.swap(x.0 * a.cols + x.1, y.0 * a.cols + y.1);
    (p + 1..a.rows).for_each(|i| swap((i, at), (i, p)));
    (at + 1..p).for_each(|i| swap((i, at), (p, i)));
    swap((at, at), (p, p));
    if at > k {
        swap((at, k), (p, k));
    }
    if hermitian {
        for i in at + 1..p {
            (a[(i, at)], a[(p, i)]) = (a[(i, at)].conj(), a[(p, i)].conj());
        }
        a[(p, at)] = a[(p, at)].conj();
    }
}

fn eliminate_one<T: Field>(a: &mut Mat<T>, k: usize, hermitian: bool) {
    let column: Vec<T> = (k + 1..a.rows).map(|i| mirrored(a[(i, k)], hermitian)).collect();
    for i in k + 1..a.rows {
        let factor = a[(i, k)].over(a[(k, k)]);
        let count = i - k;
        a.row_mut(i)[k + 1..=i].iter_mut().zip(&column[..count]).for_each(|(x, &c)| *x = *x - factor * c);
        a[(i, k)] = factor;
        settle(a, i, hermitian);
    }
}

fn eliminate_two<T: Field>(a: &mut Mat<T>, k: usize, hermitian: bool) {
    let block = Block::at(a, k, hermitian);
    let both = |i: usize| (mirrored(a[(i, k)], hermitian), mirrored(a[(i, k + 1)], hermitian));
    let columns: Vec<(T, T)> = (k + 2..a.rows).map(both).collect();
    for i in k + 2..a.rows {
        // A row of L is a row of these columns times the inverse of the block.
        let (f, g) = block.solve_row(a[(i, k)], a[(i, k + 1)]);
        let count = i - k - 1;
        let row = a.row_mut(i)[k + 2..=i].iter_mut().zip(&columns[..count]);
        row.for_each(|(x, &(c, d))| *x = *x - (f * c + g * d));
        (a[(i, k)], a[(i, k + 1)]) = (f, g);
        settle(a, i, hermitian);
    }
}

/// Makes the diagonal element of a Hermitian matrix real.
fn settle<T: Field>(a: &mut Mat<T>, i: usize, hermitian: bool) {
    if hermitian {
        a[(i, i)] = T::of(a[(i, i)].re());
    }
}

/// A block of D, `[[q c, c], [b, p b]]` with `c` the mirror image of `b`: scaled by its largest element.
struct Block<T> {
    p: T,
    q: T,
    b: T,
    c: T,
}

impl<T: Field> Block<T> {
    fn at(a: &Mat<T>, k: usize, hermitian: bool) -> Block<T> {
        let b = a[(k + 1, k)];
        let c = mirrored(b, hermitian);
        Block { p: a[(k + 1, k + 1)].over(b), q: a[(k, k)].over(c), b, c }
    }
    /// The row `[x, y]` times the inverse.
    fn solve_row(&self, x: T, y: T) -> (T, T) {
        let scale = self.p * self.q - T::one();
        ((self.p * x - y).over(self.c).over(scale), (self.q * y - x).over(self.b).over(scale))
    }
    /// The inverse times the column `[x, y]`.
    fn solve(&self, x: T, y: T) -> (T, T) {
        let (x, y, scale) = (x.over(self.c), y.over(self.b), self.p * self.q - T::one());
        ((self.p * x - y).over(scale), (self.q * y - x).over(scale))
    }
}

/// The blocks of D: first row, size, and the row that was swapped with the block's last one.
fn blocks(pivots: &[i32]) -> Result<Vec<(usize, usize, usize)>> {
    let (mut out, mut k) = (Vec::new(), 0);
    while k < pivots.len() {
        let size = if pivots[k] > 0 { 1 } else { 2 };
        let row = pivots[k].unsigned_abs() as usize;
        if row == 0 || row > pivots.len() || k + size > pivots.len() {
            return Err(Error::runtime(
                "Pivots given to ldl_solve must all satisfy |pivot| <= LD.size(-2). Did you properly pass the result of ldl_factor?",
            ));
        }
        out.push((k, size, row - 1));
        k += size;
    }
    Ok(out)
}

/// Overwrites `b` with the solution of `A X = B` from the result of `factor`.
pub fn solve<T: Field>(a: &Mat<T>, pivots: &[i32], hermitian: bool, b: &mut Mat<T>) -> Result<()> {
    let (n, cols, blocks) = (a.rows, b.cols, blocks(pivots)?);
    for &(k, size, row) in &blocks {
        b.swap_rows(k + size - 1, row);
        for i in k + size..n {
            (k..k + size).for_each(|j| b.minus_row(i, a[(i, j)], j, 0..cols));
        }
        if size == 1 {
            b.row_mut(k).iter_mut().for_each(|x| *x = x.over(a[(k, k)]));
            continue;
        }
        let block = Block::at(a, k, hermitian);
        for j in 0..cols {
            (b[(k, j)], b[(k + 1, j)]) = block.solve(b[(k, j)], b[(k + 1, j)]);
        }
    }
    for &(k, size, row) in blocks.iter().rev() {
        for j in k..k + size {
            (k + size..n).for_each(|i| b.minus_row(j, mirrored(a[(i, j)], hermitian), i, 0..cols));
        }
        b.swap_rows(k + size - 1, row);
    }
    Ok(())
}
