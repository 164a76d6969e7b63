//! Random numbers: filled in place, as new tensors, with parameters that are tensors.

pub mod activation;
pub(crate) mod bounds;
pub mod discrete;
pub mod distributions;
pub mod dropout;
pub mod gamma;
pub mod sampling;
pub mod transforms;

use crate::op::Op;

pub static OPS: &[&[&Op]] =
    &[activation::OPS, discrete::OPS, distributions::OPS, dropout::OPS, gamma::OPS, sampling::OPS, transforms::OPS];
