//! Singular values, eigenvalues and their vectors, by `faer` on one thread, so that results do not depend on the thread
//! count. Unlike LAPACK, `faer` does not scale its input, so it is scaled here.

use super::mat::{Double, Mat};
use super::scaling::{balance, shifted};
use crate::dtype::c128;
use crate::error::{Error, Result};
use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{self, ComputeEigenvectors, EvdParams};
use faer::traits::ComplexField;
use faer::{Auto, MatRef, Par, Side, Spec};

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

/// The decomposition of general matrices.
pub trait Eigen: Sized {
    /// Eigenvalues and, if wanted, eigenvectors of any length.
    fn eigen(a: MatRef<Self>, vectors: bool) -> Result<(Vec<c128>, Mat<c128>)>;
}

impl Eigen for f64 {
    fn eigen(a: MatRef<f64>, vectors: bool) -> Result<(Vec<c128>, Mat<c128>)> {
        let (n, (wanted, params)) = (a.nrows(), settings::<f64>(vectors));
        let (mut re, mut im) = (Diag::zeros(n), Diag::zeros(n));
        let mut found = faer::Mat::<f64>::zeros(n, if vectors { n } else { 0 });
        let right = vectors.then(|| found.as_mut());
        let scratch = evd::evd_scratch::<f64>(n, ComputeEigenvectors::No, wanted, Par::Seq, params);
        let stack = &mut MemBuffer::new(scratch);
        evd::evd_real(a, re.as_mut(), im.as_mut(), None, right, Par::Seq, MemStack::new(stack), params)
            .map_err(not_converged("eigenvalues"))?;
        // Of a pair of conjugates the first column holds the real parts of both vectors, the second the imaginary ones.
        let mut second = vec![false; n];
        (1..n).for_each(|j| second[j] = im[j - 1] != 0.0 && !second[j - 1]);
        let vector = |i: usize, j: usize| match (im[j] == 0.0, second[j]) {
            (true, _) => c128::new(found[(i, j)], 0.0),
            (_, false) => c128::new(found[(i, j)], found[(i, j + 1)]),
            (_, true) => c128::new(found[(i, j - 1)], -found[(i, j)]),
        };
        let values = (0..n).map(|j| c128::new(re[j], im[j])).collect();
        Ok((values, Mat::from_fn(n, found.ncols(), vector)))
    }
}
impl Eigen for c128 {
    fn eigen(a: MatRef<c128>, vectors: bool) -> Result<(Vec<c128>, Mat<c128>)> {
        let (n, (wanted, params)) = (a.nrows(), settings::<c128>(vectors));
        let (mut values, mut found) = (Diag::zeros(n), faer::Mat::<c128>::zeros(n, if vectors { n } else { 0 }));
        let right = vectors.then(|| found.as_mut());
        let scratch = evd::evd_scratch::<c128>(n, ComputeEigenvectors::No, wanted, Par::Seq, params);
        let stack = &mut MemBuffer::new(scratch);
        evd::evd_cplx(a, values.as_mut(), None, right, Par::Seq, MemStack::new(stack), params)
            .map_err(not_converged("eigenvalues"))?;
        Ok(((0..n).map(|j| values[j]).collect(), taken(found.as_ref())))
    }
}

/// What the decomposition is told.
fn settings<T: ComplexField>(vectors: bool) -> (ComputeEigenvectors, Spec<EvdParams, T>) {
    /// The window of early deflation, as `faer` has it. Its own is zero for medium sizes without the standard library: ten times slower.
    extern "C" fn window(n: usize, _: usize) -> usize {
        match n {
            0..30 => 2,
            30..60 => 4,
            60..150 => 10,
            150..590 => (n as f64 / (n as f64).log2()) as usize,
            590..3000 => 96,
            3000..6000 => 192,
            _ => 384,
        }
    }
    let mut params = <EvdParams as Auto<T>>::auto();
    params.schur.recommended_deflation_window = window;
    (if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No }, params.into())
}

/// Eigenvalues and eigenvectors of norm one.
pub fn eig<T: Double>(a: &Mat<T>) -> Result<(Vec<c128>, Mat<c128>)> {
    let n = a.rows;
    if n == 0 {
        return Ok((Vec::new(), Mat::zeros(0, 0)));
    }
    let (a, e) = middle(a);
    let (values, mut vectors) = T::eigen(as_matrix(&a), true)?;
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
    let (values, _) = T::eigen(as_matrix(&a), false)?;
    Ok(values.into_iter().map(|x| shifted(x, e)).collect())
}
