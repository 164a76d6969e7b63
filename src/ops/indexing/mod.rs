//! Reading and writing through index tensors and masks.

pub mod advanced;
pub mod along_dim;
pub mod embedding;
pub mod gather_scatter;
pub mod index_select;
pub mod mask;
pub(crate) mod scatter_gpu;
pub mod scatter_grad;
pub mod take;
pub mod unravel_index;

use crate::op::Op;

pub static OPS: &[&[&Op]] = &[
    advanced::OPS,
    along_dim::OPS,
    embedding::OPS,
    gather_scatter::OPS,
    index_select::OPS,
    mask::OPS,
    scatter_grad::OPS,
    take::OPS,
    unravel_index::OPS,
];
