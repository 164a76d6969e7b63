//! Singular values, eigenvalues and their vectors, by `faer` on one thread, so that results do not depend on the thread
//! count. Unlike LAPACK, `faer` does not scale its input, so it is scaled here.

use super::mat::{Double, Mat};
use super::scaling::{balance, shifted};
use crate::dtype::c128;
use crate::error::{Error, Result};
use faer::{MatRef, Side};

/// The matrix scaled to the middle of the range, and the exponent by which its values are to be scaled back.
fn middle<T: Double>(a: &Mat<T>) -> (Mat<T>, i32) {
    let mut a = a.clone();
    let e = balance(&mut a);
    (a, e)
}
fn as_matrix<T: Double>(a: &Mat<T>) -> MatRef<'_, T> {
    MatRef::from_row_major_slice(&a.data, a.rows, a.cols)
}
fn taken<T: Double>(m: MatRef<'_, T>) -> Mat<T> {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)])
}
fn scale<T: Double>(m: &mut Mat<T>, j: usize, by: T) {
    for i in 0..m.rows {
        m[(i, j)] *= by;
    }
}

/// Vectors are unique up to a sign or a phase: makes the largest component of column `j` (the first of equal ones) real
/// and positive. Returns the factor.
fn settle<T: Double>(m: &mut Mat<T>, j: usize) -> T {
    let top = (0..m.rows).fold(0, |p, i| if m[(i, j)].abs() > m[(p, j)].abs() * (1.0 + 1e-9) { i } else { p });
    let size = m[(top, j)].abs();
    let factor = if size > 0.0 { m[(top, j)].conj() / T::of(size) } else { T::one() };
    scale(m, j, factor);
    m[(top, j)] = T::of(size);
    factor
}
fn not_converged<E>(what: &'static str) -> impl FnOnce(E) -> Error {
    move |_| {
        Error::linalg(format!(
            "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated {what}."
        ))
    }
}

/// U, the singular values in descending order, and V^H; as `full` square matrices or with as many vectors as values.
pub fn svd<T: Double>(a: &Mat<T>, full: bool) -> Result<(Mat<T>, Vec<f64>, Mat<T>)> {
    let k = a.rows.min(a.cols);
    if k == 0 {
        let side = |n: usize| Mat::identity(n, if full { n } else { 0 });
        return Ok((side(a.rows), Vec::new(), side(a.cols).adjoint()));
    }
    let failed = not_converged("singular values");
    let (a, e) = middle(a);
    let found = if full { as_matrix(&a).svd() } else { as_matrix(&a).thin_svd() }.map_err(failed)?;
    let values = (0..k).map(|i| shifted(faer::traits::ext::ComplexFieldExt::real(&found.S()[i]), e)).collect();
    let (mut u, mut v) = (taken(found.U()), taken(found.V()));
    for j in 0..k {
        let factor = settle(&mut u, j);
        scale(&mut v, j, factor);
    }
    Ok((u, values, v.adjoint()))
}

pub fn singular_values<T: Double>(a: &Mat<T>) -> Result<Vec<f64>> {
    if a.rows.min(a.cols) == 0 {
        return Ok(Vec::new());
    }
    let (a, e) = middle(a);
    let found = as_matrix(&a).singular_values().map_err(not_converged("singular values"))?;
    Ok(found.into_iter().map(|x| shifted(x, e)).collect())
}

/// Eigenvalues in ascending order and vectors of the Hermitian matrix given by its lower triangle.
pub fn eigh<T: Double>(a: &Mat<T>) -> Result<(Vec<f64>, Mat<T>)> {
    if a.rows == 0 {
        return Ok((Vec::new(), Mat::zeros(0, 0)));
    }
    let (a, e) = middle(a);
    let found = as_matrix(&a).self_adjoint_eigen(Side::Lower).map_err(not_converged("eigenvalues"))?;
    let values = (0..a.rows).map(|i| shifted(faer::traits::ext::ComplexFieldExt::real(&found.S()[i]), e)).collect();
    let mut vectors = taken(found.U());
    for j in 0..a.rows {
        settle(&mut vectors, j);
    }
    Ok((values, vectors))
}

pub fn eigenvalues_h<T: Double>(a: &Mat<T>) -> Result<Vec<f64>> {
    if a.rows == 0 {
        return Ok(Vec::new());
    }
    let (a, e) = middle(a);
    let found = as_matrix(&a).self_adjoint_eigenvalues(Side::Lower).map_err(not_converged("eigenvalues"))?;
    Ok(found.into_iter().map(|x| shifted(x, e)).collect())
}

/// Eigenvalues and eigenvectors of norm one.
pub fn eig<T: Double>(a: &Mat<T>) -> Result<(Vec<c128>, Mat<c128>)> {
    let n = a.rows;
    if n == 0 {
        return Ok((Vec::new(), Mat::zeros(0, 0)));
    }
    let (a, e) = middle(a);
    let (values, found) = T::eigen(as_matrix(&a), true).map_err(not_converged("eigenvalues"))?;
    let mut vectors = taken(found.as_ref());
    for j in 0..n {
        let norm = (0..n).map(|i| vectors[(i, j)].norm_sqr()).sum::<f64>().sqrt();
        scale(&mut vectors, j, c128::from(1.0 / norm));
        settle(&mut vectors, j);
    }
    Ok((values.into_iter().map(|x| shifted(x, e)).collect(), vectors))
}

pub fn eigenvalues<T: Double>(a: &Mat<T>) -> Result<Vec<c128>> {
    if a.rows == 0 {
        return Ok(Vec::new());
    }
    let (a, e) = middle(a);
    let (values, _) = T::eigen(as_matrix(&a), false).map_err(not_converged("eigenvalues"))?;
    Ok(values.into_iter().map(|x| shifted(x, e)).collect())
}
