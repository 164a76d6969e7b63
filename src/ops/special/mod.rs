//! `torch.special`: error, gamma and Bessel functions, orthogonal polynomials, distributions of probability.

pub mod bessel;
pub mod erf_gamma;
pub mod incomplete_gamma;
pub mod polynomial;
pub mod probability;

use crate::op::Op;

pub static OPS: &[&[&Op]] = &[bessel::OPS, erf_gamma::OPS, incomplete_gamma::OPS, polynomial::OPS, probability::OPS];
