//! Shared by reductions, losses and matrix products: helpers of formulas.

use super::compare::NE;
use super::minmax::{CLAMP, CLAMP_MIN};
use super::reorder::FLIP;
use super::special::{SIGMOID, XLOGY};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::*;
use crate::tensor::Tensor;

impl Term {
    pub(super) fn ne_<'a>(self, other: impl IntoArg<'a>) -> Term {
        NE.call((self, other))
    }
    pub(super) fn flip_(self, dim: i64) -> Term {
        FLIP.call((self, [dim]))
    }
    pub(super) fn clamp_(self, low: f64, high: f64) -> Term {
        CLAMP.call((self, low, high))
    }
    pub(super) fn clamp_min_(self, low: f64) -> Term {
        CLAMP_MIN.call((self, low))
    }
    pub(super) fn sigmoid_(self) -> Term {
        SIGMOID.call((self,))
    }
    pub(super) fn xlogy_(self, other: Term) -> Term {
        XLOGY.call((self, other))
    }
}

/// A tensor in the shape of `like`, filled with one number.
pub(super) fn full_like(like: &Tensor, dtype: DType, value: f64) -> Result<Tensor> {
    super::create::FULL.call((like.shape(), value, dtype, like.device())).ok()
}

impl Back<'_> {
    /// Number of elements per result.
    pub(super) fn folded(&self) -> f64 {
        let n = |shape: &[usize]| shape.iter().product::<usize>();
        n(&self.shape(0)) as f64 / n(&self.output_facts[0].shape).max(1) as f64
    }
}
