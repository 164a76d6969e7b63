//! Decompositions of matrices: LU, Cholesky, QR, triangular systems here, spectra through `faer`.
//!
//! A kernel walks the batch: it copies a matrix into a dense one (`Mat`), works on that, and stores what came out. So
//! any strides are read, and every element type is one instance of the same code. Products inside go through `gemm`.
//! LU is ours because LAPACK's answer for singular matrices is part of the semantics: a zero pivot is passed over, and
//! its number reported, where others divide by it. Spectra are computed in double precision whatever the dtype: half of
//! the code in the wheel, and small singular values of float matrices come out right.

pub mod batch;
pub mod exponential;
pub mod factor;
pub mod ldl;
pub mod mat;
pub mod reflect;
pub mod scaling;
pub mod spectrum;
pub mod triangular;

pub use batch::{At, Batch, over};
pub use mat::{Field, Mat};
