//! What families share: operators on terms, promotion, helpers of gradients, reads on the host.

pub mod assertion;
pub mod batch;
pub(crate) mod batch_linalg;
pub(crate) mod batch_layers;
pub(crate) mod batch_nn;
pub(crate) mod batch_views;
pub(crate) mod grad_helpers;
pub(crate) mod host_read;
pub mod promotion;
pub(crate) mod rematerialize;
pub mod term_ops;

use crate::op::Op;

pub static OPS: &[&[&Op]] = &[assertion::OPS, rematerialize::OPS];
