//! Eigenvalues and eigenvectors of general matrices by `faer`, with settings of our own.

use crate::dtype::c128;
use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{self, ComputeEigenvectors, EvdError, EvdParams};
use faer::traits::ComplexField;
use faer::{Auto, Mat, MatRef, Par, Spec};

/// Eigenvalues, and eigenvectors if they were wanted.
type Found = Result<(Vec<c128>, Mat<c128>), EvdError>;

/// The decomposition of general matrices.
pub trait Eigen: Sized {
    /// Eigenvalues and, if wanted, eigenvectors of any length.
    fn eigen(a: MatRef<Self>, vectors: bool) -> Found;
}

impl Eigen for f64 {
    fn eigen(a: MatRef<f64>, vectors: bool) -> Found {
        let (n, (wanted, params)) = (a.nrows(), settings::<f64>(vectors));
        let (mut re, mut im) = (Diag::zeros(n), Diag::zeros(n));
        let mut found = Mat::<f64>::zeros(n, if vectors { n } else { 0 });
        let right = vectors.then(|| found.as_mut());
        let scratch = evd::evd_scratch::<f64>(n, ComputeEigenvectors::No, wanted, Par::Seq, params);
        let stack = &mut MemBuffer::new(scratch);
        evd::evd_real(a, re.as_mut(), im.as_mut(), None, right, Par::Seq, MemStack::new(stack), params)?;
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
    fn eigen(a: MatRef<c128>, vectors: bool) -> Found {
        let (n, (wanted, params)) = (a.nrows(), settings::<c128>(vectors));
        let (mut values, mut found) = (Diag::zeros(n), Mat::<c128>::zeros(n, if vectors { n } else { 0 }));
        let right = vectors.then(|| found.as_mut());
        let scratch = evd::evd_scratch::<c128>(n, ComputeEigenvectors::No, wanted, Par::Seq, params);
        let stack = &mut MemBuffer::new(scratch);
        evd::evd_cplx(a, values.as_mut(), None, right, Par::Seq, MemStack::new(stack), params)?;
        Ok(((0..n).map(|j| values[j]).collect(), found))
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
