//! Products of matrices and vectors, decompositions and what follows from them.

pub mod byte_products;
pub mod checks;
pub mod cholesky;
pub mod cross;
pub mod determinant;
pub mod eigen;
pub mod einsum;
pub mod ldl;
pub mod lstsq_pinv_rank;
pub mod lu;
pub mod matmul;
pub mod matmul_add;
pub mod matrix_functions;
mod on_gpu;
pub mod qr;
pub mod solve;
pub mod sparse_products;
mod spectra_on_gpu;
pub mod sqrtm_polar;
pub mod svd;
pub mod vector_products;

use crate::op::Op;

pub static OPS: &[&[&Op]] = &[
    byte_products::OPS,
    checks::OPS,
    cholesky::OPS,
    cross::OPS,
    determinant::OPS,
    eigen::OPS,
    einsum::OPS,
    ldl::OPS,
    lstsq_pinv_rank::OPS,
    lu::OPS,
    matmul::OPS,
    matmul_add::OPS,
    matrix_functions::OPS,
    qr::OPS,
    solve::OPS,
    sparse_products::OPS,
    sqrtm_polar::OPS,
    svd::OPS,
    vector_products::OPS,
];
