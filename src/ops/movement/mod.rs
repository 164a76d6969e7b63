//! Elements copied to other places or dtypes: clone, cast, cat, pad, repeat, flip, roll, triangles.

pub mod cat;
pub mod copy;
pub mod flip_roll;
pub mod pad;
pub mod repeat;
pub mod triangular;

use crate::op::Op;

pub static OPS: &[&[&Op]] = &[cat::OPS, copy::OPS, flip_roll::OPS, pad::OPS, repeat::OPS, triangular::OPS];
