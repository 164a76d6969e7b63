//! How many elements fall between edges: histc of equal intervals, histogram with its edges, weights and densities.

use super::choose::WHERE;
use super::difference::DIFF;
use super::host::Dense;
use super::minmax::CLAMP;
use super::needs::{buffer, quiet};
use super::range::LINSPACE;
use super::search::{BINCOUNT, SEARCHSORTED};
use super::search_gpu::range;
use super::slice::NARROW;
use super::view::SELECT;
use crate::dtype::Scalar;
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&HISTC, &HISTOGRAM, &HISTOGRAM_EDGES];

/// Counts of `bins` equal intervals of [low, high]; the last one is closed.
fn histogram(list: &[f64], bins: usize, low: f64, high: f64) -> Result<Vec<f64>> {
    let mut counts = buffer(0f64, bins)?;
    for &x in list.iter().filter(|&&x| x >= low && x <= high) {
        let bin = ((x - low) * bins as f64 / (high - low)) as usize;
        counts[bin.min(bins - 1)] += 1.0;
    }
    Ok(counts)
}

pub static HISTC: Op = Op {
    sig: "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    doc: "Counts of equal intervals between `min` and `max`, or between the least and the greatest element where both are 0.",
    forms: FMO,
    body: composite(|c| {
        let (t, bins) = (c.tensor(0)?, c.int(1)?);
        if !t.dtype().is_float() {
            return Err(Error::not_implemented(format!(
                "\"histogram_cpu\" not implemented for '{}'",
                t.dtype().scalar_type_name()
            )));
        }
        if bins <= 0 {
            return Err(Error::runtime(format!("torch.histogram(): bins must be > 0, but got {bins} for dimension 0")));
        }
        let (mut low, mut high) = (c.float(2)?, c.float(3)?);
        if low > high {
            return Err(Error::runtime("torch.histc: max must be larger than min"));
        }
        if low == high && t.numel() > 0 {
            [low, high] = range(t)?.map(Scalar::to_f64);
        }
        if !low.is_finite() || !high.is_finite() {
            return Err(Error::runtime(
                format!("torch.histc: range of [{low}, {high}] is not finite").replace("NaN", "nan"),
            ));
        }
        if low == high {
            (low, high) = (low - 1.0, high + 1.0);
        }
        if t.device().is_gpu() {
            return Ok(smallvec![super::search_gpu::histogram(t, bins as usize, low, high)?]);
        }
        let counts = histogram(Dense::<f64>::of(t)?.elements()?, bins as usize, low, high)?;
        Term(Tensor::from_slice(&counts, &[bins as usize])).to_dtype(t.dtype()).outputs()
    }),
    vjp: Vjp::None("counts"),
    samples: &["f32[5](nograd, 0..6), 3", "f32[5](nograd, 0..6), 4, 0, 4"],
    errors: &[
        ("f32[2], 0", "RuntimeError", "bins must be > 0"),
        ("f32[2], 3, 5, 1", "RuntimeError", "max must be larger than min"),
        ("i64[2], 3", "NotImplementedError", "not implemented for 'Long'"),
    ],
    out_dtype: Some(OutDType::Same),
    ..OP
};

/// The least and the greatest edge: the range that argument `at` asks for, else that of the elements.
fn bounds(c: &Call, at: usize) -> Result<[f64; 2]> {
    let t = c.tensor(0)?;
    let [low, high] = match &c.args[at] {
        Value::Scalars(given) => match given[..] {
            [low, high] => [low.to_f64(), high.to_f64()],
            _ => {
                return Err(Error::runtime(format!(
                    "torch.histogramdd: for a 1-dimensional histogram range should have 2 elements, but got {}",
                    given.len()
                )));
            }
        },
        _ if t.numel() == 0 => [0.0, 1.0],
        _ => range(t)?.map(Scalar::to_f64),
    };
    if !low.is_finite() || !high.is_finite() {
        let text = format!("torch.histogramdd: dimension 0's range [{low}, {high}] is not finite");
        return Err(Error::runtime(text.replace("NaN", "nan")));
    }
    if low > high {
        return Err(Error::runtime(format!(
            "torch.histogramdd: min should not exceed max, but got min {low} max {high} for dimension 0"
        )));
    }
    Ok(if low == high { [low - 0.5, high + 0.5] } else { [low, high] })
}

/// Counts between edges, or sums of weights (argument `at`); as a density (the argument after it) their integral is one.
fn between(c: &Call, edges: Tensor, at: usize) -> Result<Outputs> {
    let (t, bins) = (c.tensor(0)?, edges.numel() as i64 - 1);
    let weights = c.opt_tensor(at);
    if let Some(w) = weights.filter(|w| w.shape() != t.shape()) {
        return Err(Error::runtime(format!(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding \
             its innermost dimension, but got input with shape {} and weight with shape {}",
            Show(&[t.numel(), 1]),
            Show(&[w.numel()])
        )));
    }
    let x = Term::from(t.detach()).reshape(&[-1]);
    let inside = x.dup().at_least(SELECT.call((&edges, 0, 0))).both(x.dup().at_most(SELECT.call((&edges, 0, -1))));
    let place = CLAMP.call((SEARCHSORTED.call((&edges, x, false, true)) - 1, Value::None, bins - 1));
    let weights = weights.map(|w| Term::from(w.detach()).reshape(&[-1]).ok()).transpose()?;
    let counts = BINCOUNT.call((WHERE.call((inside, place, bins)), weights, bins + 1)).to_dtype(t.dtype());
    let counts = NARROW.call((counts, 0, 0, bins));
    let counts = match c.flag(at + 1) {
        true => counts.dup() / (counts.sum_all() * DIFF.call((&edges,))),
        false => counts.contiguous(),
    };
    Ok(smallvec![counts.ok()?, edges])
}

fn floating(t: &Tensor) -> Result<()> {
    match t.dtype().is_float() {
        true => Ok(()),
        false => Err(Error::not_implemented(format!(
            "\"histogramdd\" not implemented for '{}'",
            t.dtype().scalar_type_name()
        ))),
    }
}

#[allow(clippy::declare_interior_mutable_const)]
const HISTOGRAM_FORM: Op = Op { forms: FMO, vjp: Vjp::Missing, ..OP };

pub static HISTOGRAM: Op = Op {
    sig: "histogram(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
    doc: "Counts of `bins` equal intervals of a range, by default that of the elements, and the edges of the intervals. The last one is closed.",
    body: composite(|c| {
        let (t, bins) = (c.tensor(0)?, c.int(1)?);
        floating(t)?;
        if bins <= 0 {
            return Err(Error::runtime(format!("torch.histogram(): bins must be > 0, but got {bins} for dimension 0")));
        }
        quiet(|| {
            let [low, high] = bounds(c, 2)?;
            between(c, LINSPACE.call((low, high, bins.saturating_add(1), t.dtype(), t.device())).ok()?, 3)
        })
    }),
    samples: &[
        "f32[5](nograd, 0..6), 3",
        "f32[7](nograd), 4, range=(-1.0, 1.0)",
        "f64[2,3](nograd), 4, weight=f64[2,3](nograd, pos)",
        "f32[6](nograd), 3, density=True",
        "f32[0](nograd), 2",
    ],
    errors: &[
        ("f32[2], 0", "RuntimeError", "bins must be > 0"),
        ("f32[2], 3, range=(3.0, 1.0)", "RuntimeError", "min should not exceed max"),
        ("f32[2], 3, range=(1.0,)", "RuntimeError", "range should have 2 elements, but got 1"),
        ("f32[2], 3, weight=f32[3]", "RuntimeError", "input with shape [2, 1] and weight with shape [3]"),
        ("i64[2], 3", "NotImplementedError", "not implemented for 'Long'"),
    ],
    ..HISTOGRAM_FORM
};
pub static HISTOGRAM_EDGES: Op = Op {
    sig: "histogram.bins(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
    doc: "Counts between the rising edges in `bins`, and those edges. The last interval is closed.",
    body: composite(|c| {
        let (t, edges) = (c.tensor(0)?, c.tensor(1)?);
        floating(t)?;
        if edges.ndim() != 1 || edges.numel() == 0 {
            return Err(Error::runtime(format!(
                "torch.histogramdd: bins tensor should have one dimension, but got {} dimensions in the bins tensor for \
                 dimension 0",
                edges.ndim()
            )));
        }
        if t.dtype() != edges.dtype() {
            return Err(Error::runtime(format!(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype {} \
                 and bins for dimension 0 with dtype {}",
                t.dtype().name(),
                edges.dtype().name()
            )));
        }
        quiet(|| between(c, super::copy::CLONE.call((edges.detach(),)).ok()?, 2))
    }),
    samples: &[
        "f32[6](nograd), f32[3](= -1, 0.5, 2, nograd)",
        "f32[6](nograd), f32[3](= -1, 0.5, 2, nograd), weight=f32[6](nograd), density=True",
    ],
    errors: &[
        ("f32[2], f32[2,2]", "RuntimeError", "bins tensor should have one dimension, but got 2"),
        ("f32[2], f64[2]", "RuntimeError", "should have the same dtype"),
    ],
    ..HISTOGRAM_FORM
};
