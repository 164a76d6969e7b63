//! The declarations, one file a family, and `OPS`, the one list.
//!
//! Adding an op: write its literal in the file of its family, add its name to that family's `OPS`. Everything else
//! (function, method, in-place form, `out=`, stub, docs row, tests) is derived. See `docs/adding_an_op.md`.

pub mod alias;
pub mod arith;
pub mod copy;
pub mod create;
pub mod gather;
pub mod index;
pub mod join;
pub mod kit;
pub mod like;
pub mod linalg;
pub mod mask;
pub mod pad;
pub mod range;
pub mod reduce;
pub mod repeat;
pub mod scatter_grad;
pub mod select;
pub mod shape;
pub mod slice;
pub mod split;
pub mod strided;
pub mod take;
pub mod triangle;
pub mod view;

use crate::op::Op;

/// Every op, family by family.
pub static OPS: &[&[&Op]] = &[arith::OPS, copy::OPS, create::OPS, linalg::OPS, reduce::OPS, view::OPS,
    alias::OPS, gather::OPS, index::OPS, join::OPS, like::OPS, mask::OPS, pad::OPS, range::OPS, repeat::OPS, scatter_grad::OPS, select::OPS, shape::OPS,
    slice::OPS, split::OPS, strided::OPS, take::OPS, triangle::OPS];

/// Every op.
pub fn all() -> impl Iterator<Item = &'static Op> {
    OPS.iter().flat_map(|family| family.iter().copied())
}
