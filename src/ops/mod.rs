//! The declarations, one file a family, and `OPS`, the one list.
//!
//! Adding an op: write its literal in the file of its family, add its name to that family's `OPS`. Everything else
//! (function, method, in-place form, `out=`, stub, docs row, tests) is derived. See `docs/adding_an_op.md`.

pub mod arith;
pub mod copy;
pub mod create;
pub mod index_along;
pub mod kit;
pub mod linalg;
pub mod loss;
mod needs;
pub mod reduce;
pub mod scan;
pub mod softmax;
pub mod view;

use crate::op::Op;

/// Every op, family by family.
pub static OPS: &[&[&Op]] = &[
    arith::OPS,
    copy::OPS,
    create::OPS,
    view::OPS,
    reduce::OPS,
    reduce::extreme::OPS,
    reduce::moments::OPS,
    reduce::nan::OPS,
    reduce::norm::OPS,
    reduce::truth::OPS,
    index_along::OPS,
    linalg::OPS,
    linalg::added::OPS,
    linalg::einsum::OPS,
    linalg::vectors::OPS,
    loss::bce::OPS,
    loss::class::OPS,
    loss::pointwise::OPS,
    loss::similarity::OPS,
    scan::OPS,
    softmax::OPS,
];

/// Every op.
pub fn all() -> impl Iterator<Item = &'static Op> {
    OPS.iter().flat_map(|family| family.iter().copied())
}
