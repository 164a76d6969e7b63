//! The same memory under another shape: layout arithmetic, its copies (`*_copy`) and its writes (`*_scatter`).

pub mod alias;
pub mod as_strided;
pub mod copies;
pub mod reshape;
pub mod scatter;
pub mod shape;
pub mod slice;
pub mod split;

use crate::op::Op;

pub static OPS: &[&[&Op]] =
    &[alias::OPS, as_strided::OPS, copies::OPS, reshape::OPS, scatter::OPS, shape::OPS, slice::OPS, split::OPS];
