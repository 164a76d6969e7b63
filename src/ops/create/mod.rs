//! Tensors from nothing, or from the shape of another: full, arange, eye, windows, `_like` and `new_` forms.

pub mod combinatorics;
pub mod full;
pub mod like;
pub mod range;
pub mod signal_window;
pub mod window;

use crate::op::Op;

pub static OPS: &[&[&Op]] = &[combinatorics::OPS, full::OPS, like::OPS, range::OPS, signal_window::OPS, window::OPS];
