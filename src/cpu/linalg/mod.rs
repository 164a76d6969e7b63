//! Matrix decompositions: LU, Cholesky, QR and triangular systems are implemented here, spectra use `faer`.
//!
//! A kernel iterates over the batch: it copies a matrix into a dense one (`Mat`), works on that, and stores the
//! results. So any strides are supported, and every element type is an instance of the same code. Products inside use
//! `gemm`. LU is ours because LAPACK's result for singular matrices is part of the semantics: a zero pivot is skipped,
//! and its number reported, where others divide by it. Spectra are computed in double precision for every dtype: half
//! of the code in the wheel, and small singular values of float matrices are accurate.

pub mod batch;
mod eigen;
pub mod exponential;
pub mod factor;
pub mod lanes;
pub mod ldl;
pub mod mat;
mod panel;
pub mod reflect;
pub mod scaling;
pub mod spectrum;
pub mod triangular;

pub use self::batch::{At, Batch, Group, over};
pub use self::mat::{Field, Mat, Real};
