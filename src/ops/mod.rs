//! The declarations, one file a family, and `OPS`, the one list.
//!
//! Adding an op: write its literal in the file of its family, add its name to that family's `OPS`. Everything else
//! (function, method, in-place form, `out=`, stub, docs row, tests) is derived. See `docs/adding_an_op.md`.

pub mod activation;
pub mod activation_backward;
pub mod arith;
pub mod choose;
pub mod compare;
pub mod complex;
pub mod copy;
pub mod create;
pub mod division;
pub mod exp;
pub mod hard;
pub mod hard_backward;
pub mod hyperbolic;
pub mod kit;
pub mod linalg;
pub mod logical;
pub mod minmax;
pub mod power;
pub mod reduce;
pub mod round;
pub mod rules;
pub mod special;
pub mod trig;
pub mod view;

use crate::op::Op;

/// Every op, family by family.
pub static OPS: &[&[&Op]] = &[arith::OPS, copy::OPS, create::OPS, linalg::OPS, reduce::OPS, view::OPS,
    activation::OPS, activation_backward::OPS, hard::OPS, hard_backward::OPS, complex::OPS, choose::OPS, compare::OPS, division::OPS, exp::OPS, hyperbolic::OPS, logical::OPS, minmax::OPS, power::OPS, round::OPS, special::OPS, trig::OPS];

/// Every op.
pub fn all() -> impl Iterator<Item = &'static Op> {
    OPS.iter().flat_map(|family| family.iter().copied())
}
