//! The declarations, one file a family, and `OPS`, the one list.
//!
//! Adding an op: write its literal in the file of its family, add its name to that family's `OPS`. Everything else
//! (function, method, in-place form, `out=`, stub, docs row, tests) is derived. See `docs/adding_an_op.md`.

pub mod alias;
pub mod activation;
pub mod activation_backward;
pub mod arith;
pub mod choose;
pub mod compare;
pub mod complex;
pub mod copy;
pub mod create;
pub mod gather;
pub mod index;
pub mod index_along;
pub mod join;
pub mod kit;
pub mod linalg;
pub mod loss;
pub mod mask;
mod needs;
pub mod reduce;
pub mod repeat;
pub mod scan;
pub mod scatter_grad;
pub mod select;
pub mod shape;
pub mod slice;
pub mod softmax;
pub mod take;
pub mod triangle;
pub mod division;
pub mod exp;
pub mod hard;
pub mod hard_backward;
pub mod hyperbolic;
pub mod logical;
pub mod minmax;
pub mod power;
pub mod round;
pub mod rules;
pub mod special;
pub mod trig;
pub mod view;

use crate::op::Op;

/// Every op, family by family.
pub static OPS: &[&[&Op]] = &[
    arith::OPS,
    copy::OPS,
    create::OPS,
    view::OPS,
    alias::OPS,
    shape::OPS,
    slice::OPS,
    select::OPS,
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
    gather::OPS,
    index::OPS,
    mask::OPS,
    take::OPS,
    scatter_grad::OPS,
    join::OPS,
    repeat::OPS,
    triangle::OPS,
];
pub static OPS: &[&[&Op]] = &[
    arith::OPS,
    copy::OPS,
    create::OPS,
    linalg::OPS,
    reduce::OPS,
    view::OPS,
    activation::OPS,
    activation_backward::OPS,
    hard::OPS,
    hard_backward::OPS,
    complex::OPS,
    choose::OPS,
    compare::OPS,
    division::OPS,
    exp::OPS,
    hyperbolic::OPS,
    logical::OPS,
    minmax::OPS,
    power::OPS,
    round::OPS,
    special::OPS,
    trig::OPS,
];

/// Every op.
pub fn all() -> impl Iterator<Item = &'static Op> {
    OPS.iter().flat_map(|family| family.iter().copied())
}
