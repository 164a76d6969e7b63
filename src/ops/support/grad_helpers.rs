//! Shared by reductions, losses and matrix products: helpers of formulas.

use crate::dtype::DType;
use crate::error::Result;
use crate::op::*;
use crate::ops::elementwise::compare::NE;
use crate::ops::elementwise::minmax::{CLAMP, CLAMP_MIN};
use crate::ops::movement::flip_roll::FLIP;
use crate::ops::special::erf_gamma::{SIGMOID, XLOGY};
use crate::tensor::Tensor;

impl Term {
    pub(crate) fn ne_<'a>(self, other: impl IntoArg<'a>) -> Term {
        NE.call((self, other))
    }
    pub(crate) fn flip_(self, dim: i64) -> Term {
        FLIP.call((self, [dim]))
    }
    pub(crate) fn clamp_(self, low: f64, high: f64) -> Term {
        CLAMP.call((self, low, high))
    }
    pub(crate) fn clamp_min_(self, low: f64) -> Term {
        CLAMP_MIN.call((self, low))
    }
    pub(crate) fn sigmoid_(self) -> Term {
        SIGMOID.call((self,))
    }
    pub(crate) fn xlogy_(self, other: Term) -> Term {
        XLOGY.call((self, other))
    }
}

/// A tensor in the shape of `like`, filled with one number.
pub(crate) fn full_like(like: &Tensor, dtype: DType, value: f64) -> Result<Tensor> {
    crate::ops::create::full::FULL.call((like.shape(), value, dtype, like.device())).ok()
}

impl VjpCtx<'_> {
    /// Number of elements per result.
    pub(crate) fn folded(&self) -> f64 {
        let n = |shape: &[usize]| shape.iter().product::<usize>();
        n(&self.shape(0)) as f64 / n(&self.output_metas[0].shape).max(1) as f64
    }
}
