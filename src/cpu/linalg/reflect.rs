//! QR by Householder reflections `I - tau v v^H`, stored as by LAPACK's geqrf and orgqr: `v` below the diagonal with an
//! implicit leading one, R above. Blocks of reflections are applied together: `I - V T V^H` (Schreiber and Van Loan
//! 1989).

use super::mat::{Field, Mat};
use super::scaling::{balance, shifted};
use crate::error::Result;
use num_complex::ComplexFloat;
use std::ops::Range;

/// Reflections applied together.
const BLOCK: usize = 32;

/// Overwrites `a` with R and the vectors; returns the factors `tau`.
pub fn qr<T: Field>(a: &mut Mat<T>) -> Result<Vec<T>> {
    let k = a.rows.min(a.cols);
    let mut taus = Vec::with_capacity(k);
    let e = balance(a);
    for start in (0..k).step_by(BLOCK) {
        let end = k.min(start + BLOCK);
        for j in start..end {
            let tau = reflector(a, j);
            taus.push(tau);
            if tau != T::default() {
                apply_one(a, j, tau.conj(), j + 1..end);
            }
        }
        if end < a.cols {
            let mut rest = a.block(start..a.rows, end..a.cols);
            Block::new(a, &taus, start..end)?.apply(&mut rest, true)?;
            for i in start..a.rows {
                a.row_mut(i)[end..].copy_from_slice(rest.row(i - start));
            }
        }
    }
    // The reflections do not depend on the scale; R does.
    let rows = if e == 0 { 0 } else { k };
    for i in 0..rows {
        a.row_mut(i)[i..].iter_mut().for_each(|x| *x = shifted(*x, e));
    }
    Ok(taus)
}

/// The first `cols` columns of the product of the reflections in `a` and `taus`.
pub fn q<T: Field>(a: &Mat<T>, taus: &[T], cols: usize) -> Result<Mat<T>> {
    let mut out = Mat::identity(a.rows, cols);
    let starts: Vec<usize> = (0..taus.len()).step_by(BLOCK).collect();
    for &start in starts.iter().rev() {
        let end = taus.len().min(start + BLOCK);
        let mut rest = out.block(start..a.rows, 0..cols);
        Block::new(a, taus, start..end)?.apply(&mut rest, false)?;
        for i in start..a.rows {
            out.row_mut(i).copy_from_slice(rest.row(i - start));
        }
    }
    Ok(out)
}

/// Zeroes column `j` below the diagonal by a reflection, which is stored there; returns its factor.
fn reflector<T: Field>(a: &mut Mat<T>, j: usize) -> T {
    let zero = T::Real::default();
    let head = a[(j, j)];
    let largest = (j + 1..a.rows).fold(zero, |m, i| if a[(i, j)].abs() > m { a[(i, j)].abs() } else { m });
    if largest == zero && head.im() == zero && (j + 1..a.rows).all(|i| a[(i, j)] == T::default()) {
        return T::default();
    }
    // Scaled, so that squares neither overflow nor underflow.
    let scale = if head.abs() > largest { head.abs() } else { largest };
    let square = |x: T| {
        let r = x.abs() / scale;
        r * r
    };
    let norm = scale * (j + 1..a.rows).fold(square(head), |sum, i| sum + square(a[(i, j)])).sqrt();
    let beta = if head.re() < zero { norm } else { zero - norm };
    let below = T::one().over(head - T::of(beta));
    for i in j + 1..a.rows {
        a[(i, j)] = a[(i, j)] * below;
    }
    a[(j, j)] = T::of(beta);
    (T::of(beta) - head).over(T::of(beta))
}

/// Applies the reflection in column `j` to the given columns.
fn apply_one<T: Field>(a: &mut Mat<T>, j: usize, tau: T, cols: Range<usize>) {
    let mut dots: Vec<T> = a.row(j)[cols.clone()].to_vec();
    for i in j + 1..a.rows {
        let v = a[(i, j)].conj();
        for (d, &x) in dots.iter_mut().zip(&a.row(i)[cols.clone()]) {
            *d = *d + v * x;
        }
    }
    for i in j..a.rows {
        let v = tau * if i == j { T::one() } else { a[(i, j)] };
        for (x, &d) in a.row_mut(i)[cols.clone()].iter_mut().zip(&dots) {
            *x = *x - v * d;
        }
    }
}

/// Several reflections as `I - V T V^H`.
struct Block<T> {
    v: Mat<T>,
    t: Mat<T>,
}

impl<T: Field> Block<T> {
    fn new(a: &Mat<T>, taus: &[T], cols: Range<usize>) -> Result<Block<T>> {
        let (start, k) = (cols.start, cols.len());
        let v = Mat::from_fn(a.rows - start, k, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => T::default(),
            std::cmp::Ordering::Equal => T::one(),
            std::cmp::Ordering::Greater => a[(start + i, start + j)],
        });
        let dots = v.adjoint().product(&v)?;
        let mut t = Mat::zeros(k, k);
        for j in 0..k {
            let tau = taus[start + j];
            for i in 0..j {
                let sum = (i..j).fold(T::default(), |sum, r| sum + t[(i, r)] * dots[(r, j)]);
                t[(i, j)] = T::default() - tau * sum;
            }
            t[(j, j)] = tau;
        }
        Ok(Block { v, t })
    }
    /// Multiplies `c` by the block, or its adjoint, from the left.
    fn apply(&self, c: &mut Mat<T>, adjoint: bool) -> Result<()> {
        let dots = self.v.adjoint().product(c)?;
        let scaled = if adjoint { self.t.adjoint().product(&dots)? } else { self.t.product(&dots)? };
        c.minus_product((0, 0), &self.v, &scaled)
    }
}
