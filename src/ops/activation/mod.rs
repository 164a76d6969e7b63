//! Activations of `nn.functional` and their gradients.

pub mod piecewise;
pub mod piecewise_backward;
pub mod smooth;
pub mod smooth_backward;

use crate::op::Op;

pub static OPS: &[&[&Op]] = &[piecewise::OPS, piecewise_backward::OPS, smooth::OPS, smooth_backward::OPS];
