//! Search, counting and sampling on the GPU with shaders, for which `search` and `sample` use loops on the CPU.

use super::sort::TOPK;
use crate::dtype::{DType, promote};
use crate::error::{Error, Result};
use crate::gpu::{self, Refusal};
use crate::op::generator::Generator;
use crate::op::*;
use crate::ops::elementwise::arith::MUL;
use crate::ops::elementwise::compare::LT;
use crate::ops::elementwise::ternary::WHERE;
use crate::ops::indexing::index_select::INDEX_ADD;
use crate::ops::random::sampling::chances;
use crate::ops::reduce::extrema::{AMAX, AMIN};
use crate::ops::reduce::scan::CUMSUM;
use crate::ops::support::grad_helpers::full_like;
use crate::ops::support::host_read::item;
use crate::tensor::Tensor;

/// The insertion position of each value in its row of `sorted`, or in the only row.
pub(crate) fn places(sorted: &Tensor, values: &Tensor, right: bool, dtype: DType) -> Result<Tensor> {
    let whole = !sorted.dtype().is_float() && !values.dtype().is_float();
    let common = if whole { DType::I64 } else { promote(sorted.dtype(), values.dtype())? };
    let compute = if gpu::supports(sorted.device(), common) { common } else { DType::F32 };
    let near = |t: &Tensor| {
        if gpu::supports(t.device(), t.dtype()) { Ok(t.clone()) } else { Term::from(t).to_dtype(compute).ok() }
    };
    let (sorted, values) = (near(sorted)?, near(values)?);
    let out = Tensor::empty(values.shape(), dtype, values.device())?;
    gpu::search(&sorted.gpu_view()?, &values.gpu_view()?, right, compute, &out.gpu_view()?)?;
    Ok(out)
}

/// Counts of each of 0 .. n - 1 in `at`, or the sums of its weights. Counted in int32, which has parallel atomic
/// additions.
pub(crate) fn tally(at: &Tensor, weights: Option<&Tensor>, n: usize, dtype: DType) -> Result<Tensor> {
    let at = Term::from(at).reshape(&[-1]);
    let (weights, dtype_of_sums) = match weights {
        Some(w) => (Term::from(w).reshape(&[-1]).to_dtype(dtype), dtype),
        None => (Term(full_like(&at.clone().ok()?, DType::I32, 1.0)), DType::I32),
    };
    let zeros = Tensor::zeros(&[n], dtype_of_sums, at.clone().ok()?.device())?;
    INDEX_ADD.call((&zeros, 0, at, weights)).to_dtype(dtype).ok()
}

/// The smallest and the largest element. Waits for the device.
pub(crate) fn range(t: &Tensor) -> Result<[crate::dtype::Scalar; 2]> {
    Ok([item(&AMIN.call((t,)).ok()?)?, item(&AMAX.call((t,)).ok()?)?])
}

/// Counts in `bins` equal intervals of [low, high]; the last one is closed, elements outside are not counted.
pub(crate) fn histogram(t: &Tensor, bins: usize, low: f64, high: f64) -> Result<Tensor> {
    let x = Term::from(t).reshape(&[-1]);
    let inside = x.clone().at_least(low).both(x.clone().at_most(high));
    let bin = ((x - low) * (bins as f64 / (high - low))).clamp_(0.0, (bins - 1) as f64).to_dtype(DType::I64);
    let counts = tally(&WHERE.call((inside, bin, bins as i64)).ok()?, None, bins + 1, t.dtype())?;
    Ok(counts.with_layout(counts.layout().slice(0, (0, bins, 1))))
}

/// `k` categories for each row of weights (the last dimension). Without replacement by a race of exponential clocks:
/// the first `k` to ring; with it, by positions in the running sum.
pub(crate) fn multinomial(p: &Tensor, k: usize, replacement: bool, source: &Generator) -> Result<Tensor> {
    let wide = if p.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let p = Term::from(p).to_dtype(wide).ok()?;
    let total = Term::from(&p).sum(&[-1], true).ok()?;
    let bad = LT.call((&p, 0)).either(Term::from(&total).at_most(0.0)).either((Term::from(&total) * 0.0).ne_(0));
    gpu::refuse_where(&bad.ok()?.gpu_view()?, Refusal::NoWeights)?;
    if !replacement {
        let clocks = -(-Term(chances(&p, source))).log1p() / &p;
        let clocks = clocks.where_else(Term::from(&p).ne_(0), Term(full_like(&p, wide, f64::INFINITY)));
        return Ok(TOPK.calls((clocks, k, -1, false))?.swap_remove(1));
    }
    let mut shape = p.shape().to_vec();
    *shape.last_mut().ok_or_else(|| Error::internal("weights without a dimension"))? = k;
    let drawn = chances(&Tensor::empty(&shape, wide, p.device())?, source)?;
    let aims = MUL.call((&drawn, &total)).ok()?;
    let found = places(&CUMSUM.call((&p, -1)).ok()?, &aims, true, DType::I64)?;
    let last = shape_last(&p) - 1;
    Term::from(&found).clamp_(0.0, last as f64).to_dtype(DType::I64).ok()
}

fn shape_last(t: &Tensor) -> usize {
    t.shape().last().copied().unwrap_or(1)
}
