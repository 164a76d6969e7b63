//! Ops that compute each element from the elements at its place: one scalar kernel for all devices, dtypes and strides.

pub mod affine_integers;
pub mod arith;
pub mod binary_misc;
pub mod compare;
pub mod complex;
pub mod division;
pub mod exp;
pub mod hyperbolic;
pub mod logical;
pub mod minmax;
pub mod power;
pub mod rounding;
pub mod scalar_lhs;
pub mod ternary;
pub mod trig;

use crate::op::Op;

pub static OPS: &[&[&Op]] = &[
    affine_integers::OPS,
    arith::OPS,
    binary_misc::OPS,
    compare::OPS,
    complex::OPS,
    division::OPS,
    exp::OPS,
    hyperbolic::OPS,
    logical::OPS,
    minmax::OPS,
    power::OPS,
    rounding::OPS,
    scalar_lhs::OPS,
    ternary::OPS,
    trig::OPS,
];
