//! Reductions over dimensions or everything, and what runs along one dimension.

pub mod aminmax;
pub mod any_all;
pub mod difference;
pub mod extrema;
pub mod median;
pub mod mode;
pub mod nan;
pub mod norm;
pub mod scan;
pub mod statistics;
pub mod sum_prod;
pub mod var_std;

use crate::op::Op;

pub static OPS: &[&[&Op]] = &[
    aminmax::OPS,
    any_all::OPS,
    difference::OPS,
    extrema::OPS,
    median::OPS,
    mode::OPS,
    nan::OPS,
    norm::OPS,
    scan::OPS,
    statistics::OPS,
    sum_prod::OPS,
    sum_prod::sum_to::OPS,
    var_std::OPS,
];
