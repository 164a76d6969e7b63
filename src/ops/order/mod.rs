//! Order and counting: sort, topk, searchsorted, unique, histogram.

pub mod histogram;
pub mod search;
pub(crate) mod search_gpu;
pub mod sort;
pub mod unique;

use crate::op::Op;

pub static OPS: &[&[&Op]] = &[histogram::OPS, search::OPS, sort::OPS, unique::OPS];
