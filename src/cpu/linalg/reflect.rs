//! QR by Householder reflections `I - tau v v^H`, stored as by LAPACK's geqrf and orgqr: `v` below the diagonal with an
//! implicit leading one, R above. Blocks of reflections are applied together: `I - V T V^H` (Schreiber and Van Loan
//! 1989).

use super::mat::{Field, Mat};
use super::panel::{Panel, WIDTH};
use super::scaling::{balance, shifted};
use crate::error::Result;
use std::ops::Range;

/// Overwrites `a` with R and the vectors; returns the factors `tau`.
pub fn qr<T: Field>(a: &mut Mat<T>) -> Result<Vec<T>> {
    let (rows, k) = (a.rows, a.rows.min(a.cols));
    let mut taus = Vec::with_capacity(k);
    let e = balance(a);
    for start in (0..k).step_by(WIDTH) {
        let end = k.min(start + WIDTH);
        let mut panel = Panel::of(a, start..rows, start..end);
        taus.extend(panel.reflect());
        panel.store(a, (start, start));
        if end < a.cols {
            let mut rest = a.block(start..rows, end..a.cols);
            Block::new(a, &taus, start..end)?.apply(&mut rest, true)?;
            a.put((start, end), &rest);
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
    for start in (0..taus.len()).step_by(WIDTH).rev() {
        let end = taus.len().min(start + WIDTH);
        // The columns before these are still those of the identity, which has zeros in these rows.
        let mut rest = out.block(start..a.rows, start.min(cols)..cols);
        Block::new(a, taus, start..end)?.apply(&mut rest, false)?;
        out.put((start, start.min(cols)), &rest);
    }
    Ok(out)
}

/// Several reflections as `I - V T V^H`.
struct Block<T> {
    v: Mat<T>,
    t: Mat<T>,
}

impl<T: Field> Block<T> {
    fn new(a: &Mat<T>, taus: &[T], cols: Range<usize>) -> Result<Block<T>> {
        let (start, k) = (cols.start, cols.len());
        let mut v = a.block(start..a.rows, cols);
        for i in 0..k {
            v[(i, i)] = T::one();
            v.row_mut(i)[i + 1..].fill(T::default());
        }
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
