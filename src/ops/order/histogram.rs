//! Histograms: histc of equal intervals, histogram with its edges, weights and densities, and the same for points of
//! several dimensions, the two helper ops of `histogramdd`.

use super::search::{BINCOUNT, SEARCHSORTED};
use super::search_gpu::range;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, Show};
use crate::layout::{checked_numel, to_shape};
use crate::op::*;
use crate::ops::create::full::FULL;
use crate::ops::create::range::LINSPACE;
use crate::ops::elementwise::minmax::CLAMP;
use crate::ops::elementwise::ternary::WHERE;
use crate::ops::reduce::difference::DIFF;
use crate::ops::support::host_read::Dense;
use crate::ops::view::reshape::SELECT;
use crate::ops::view::slice::NARROW;
use crate::rt::reserve::filled;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&HISTC, &HISTOGRAM, &HISTOGRAM_EDGES, &BIN_EDGES, &FROM_BIN_TENSORS];

/// Counts in `bins` equal intervals of [low, high]; the last one is closed.
fn histogram(list: &[f64], bins: usize, low: f64, high: f64) -> Result<Vec<f64>> {
    let mut counts = filled(0f64, bins)?;
    for &x in list.iter().filter(|&&x| x >= low && x <= high) {
        let bin = ((x - low) * bins as f64 / (high - low)) as usize;
        counts[bin.min(bins - 1)] += 1.0;
    }
    Ok(counts)
}

/// The number of bins of `histc`, whose arguments are checked.
fn checked_bins(c: &Call) -> Result<usize> {
    let (t, bins) = (c.tensor(0)?, c.int("bins")?);
    if !t.dtype().is_float() {
        return Err(Error::not_implemented(format!(
            "\"histogram_cpu\" not implemented for '{}'",
            t.dtype().scalar_type_name()
        )));
    }
    if bins <= 0 {
        return Err(Error::runtime(format!("torch.histogram(): bins must be > 0, but got {bins} for dimension 0")));
    }
    if c.float("min")? > c.float("max")? {
        return Err(Error::runtime("torch.histc: max must be larger than min"));
    }
    Ok(bins as usize)
}

pub static HISTC: Op = Op {
    sig: sig("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor"),
    doc: "Counts of equal intervals between `min` and `max`, or between the least and the greatest element where both are 0.",
    forms: FMO,
    body: opaque(
        |c| Ok(Spec::one(&[checked_bins(c)?], c.tensor(0)?.dtype(), c.tensor(0)?.device())),
        |c| {
            let (t, bins) = (c.tensor(0)?, checked_bins(c)?);
            let (mut low, mut high) = (c.float("min")?, c.float("max")?);
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
                return Ok(smallvec![super::search_gpu::histogram(t, bins, low, high)?]);
            }
            let counts = histogram(Dense::<f64>::of(t)?.elements()?, bins, low, high)?;
            Term(Tensor::from_slice(&counts, &[bins])).to_dtype(t.dtype()).outputs()
        },
    ),
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

/// The smallest and the largest edge in each dimension of points: as requested, else from the elements.
fn bounds(points: &Tensor, asked: &Value) -> Result<Vec<[f64; 2]>> {
    let dims = points.size(1);
    let given = match asked {
        Value::Scalars(given) if given.len() != 2 * dims => {
            return Err(Error::runtime(format!(
                "torch.histogramdd: for a {dims}-dimensional histogram range should have {} elements, but got {}",
                2 * dims,
                given.len()
            )));
        }
        Value::Scalars(given) => Some(given),
        _ => None,
    };
    (0..dims)
        .map(|d| {
            let [low, high] = match given {
                Some(given) => [given[2 * d].to_f64(), given[2 * d + 1].to_f64()],
                None if points.numel() == 0 => [0.0, 1.0],
                None => range(&column(points, d).ok()?)?.map(Scalar::to_f64),
            };
            if !low.is_finite() || !high.is_finite() {
                let text = format!("torch.histogramdd: dimension {d}'s range [{low}, {high}] is not finite");
                return Err(Error::runtime(text.replace("NaN", "nan")));
            }
            if low > high {
                return Err(Error::runtime(format!(
                    "torch.histogramdd: min should not exceed max, but got min {low} max {high} for dimension {d}"
                )));
            }
            Ok(if low == high { [low - 0.5, high + 0.5] } else { [low, high] })
        })
        .collect()
}

/// The edges of equal intervals in each dimension of points.
fn equal_edges(points: &Tensor, bins: &[i64], asked: &Value) -> Result<Vec<Tensor>> {
    if let Some(d) = bins.iter().position(|&n| n <= 0) {
        let text = format!("torch.histogram(): bins must be > 0, but got {} for dimension {d}", bins[d]);
        return Err(Error::runtime(text));
    }
    let edges = |(&n, [low, high]): (&i64, [f64; 2])| {
        LINSPACE.call((low, high, n.saturating_add(1), points.dtype(), points.device())).ok()
    };
    bins.iter().zip(bounds(points, asked)?).map(edges).collect()
}

fn column(points: &Tensor, d: usize) -> Term {
    SELECT.call((points, 1, d)).contiguous()
}

/// Checks edges and weights for `points`, [.., N].
fn check(points: &Tensor, edges: &[Tensor], weight: Option<&Tensor>) -> Result<()> {
    let (dims, name) = (points.size(points.ndim() - 1), points.dtype().cpp_name());
    if edges.len() != dims {
        return Err(Error::runtime(format!(
            "torch.histogramdd: expected {dims} sequences of bin edges for a {dims}-dimensional histogram but got {}",
            edges.len()
        )));
    }
    for (d, e) in edges.iter().enumerate() {
        if e.ndim() != 1 || e.numel() == 0 {
            return Err(Error::runtime(format!(
                "torch.histogramdd: bins tensor should have one dimension, but got {} dimensions in the bins tensor for \
                 dimension {d}",
                e.ndim()
            )));
        }
        if e.dtype() != points.dtype() {
            return Err(Error::runtime(format!(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype {name} \
                 and bins for dimension {d} with dtype {}",
                e.dtype().cpp_name()
            )));
        }
    }
    let Some(w) = weight else { return Ok(()) };
    if w.dtype() != points.dtype() {
        return Err(Error::runtime(format!(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but \
             got input({name}), and weight({})",
            w.dtype().cpp_name()
        )));
    }
    if w.shape() != &points.shape()[..points.ndim() - 1] {
        return Err(Error::runtime(format!(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding \
             its innermost dimension, but got input with shape {} and weight with shape {}",
            Show(points.shape()),
            Show(w.shape())
        )));
    }
    Ok(())
}

/// Counts of `points` between edges, or sums of weights; with `density` normalised to integral one.
fn between(points: &Tensor, edges: &[Tensor], weight: Option<&Tensor>, density: bool) -> Result<Tensor> {
    check(points, edges, weight)?;
    // Points without coordinates are not counted, whatever their weights.
    let weight = weight.filter(|_| !edges.is_empty());
    let rows = points.numel().checked_div(edges.len()).unwrap_or(0);
    let flat = Term::from(points.detach()).reshape(&[rows as i64, edges.len() as i64]).ok()?;
    let shape: Ints = edges.iter().map(|e| e.numel() as i64 - 1).collect();
    let bins = checked_numel(&to_shape(&shape)?)? as i64;
    let new = |value: Scalar, dtype| FULL.call(([rows as i64], value, dtype, flat.device()));
    let (mut place, mut inside) = (new(Scalar::Int(0), DType::I64), new(Scalar::Bool(bins > 0), DType::Bool));
    for (d, e) in edges.iter().enumerate() {
        let x = column(&flat, d);
        let within = x.clone().at_least(SELECT.call((e, 0, 0))).both(x.clone().at_most(SELECT.call((e, 0, -1))));
        place = place * shape[d] + CLAMP.call((SEARCHSORTED.call((e, x, false, true)) - 1, Value::None, shape[d] - 1));
        inside = inside.both(within);
    }
    // Points of no dimension fall into no bin.
    let weight = weight.filter(|_| rows > 0).map(|w| Term::from(w.detach()).reshape(&[-1]).ok()).transpose()?;
    let counts = BINCOUNT.call((WHERE.call((inside, place, bins)), weight, bins.saturating_add(1)));
    let mut counts = NARROW.call((counts.to_dtype(points.dtype()), 0, 0, bins)).contiguous().reshape(&shape);
    if density {
        counts = counts.clone() / counts.sum_all();
        for (d, e) in edges.iter().enumerate() {
            let mut along: Ints = Ints::from_elem(1, edges.len());
            along[d] = -1;
            counts = counts / DIFF.call((e,)).reshape(&along);
        }
    }
    counts.ok()
}

/// Any tensor as points of one dimension.
fn line_of_points(t: &Tensor) -> Result<Tensor> {
    Term::from(t.detach()).reshape(&[-1, 1]).ok()
}

/// (hist, edges) of the elements of a tensor.
fn on_a_line(c: &Call, points: &Tensor, edges: Tensor) -> Result<Outputs> {
    let weight = c.opt_tensor("weight").map(|w| Term::from(w.detach()).reshape(&[-1]).ok()).transpose()?;
    let edges = [edges];
    let hist = between(points, &edges, weight.as_ref(), c.flag("density"))?;
    let [edges] = edges;
    Ok(smallvec![hist, edges])
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

const HISTOGRAM_FORM: Op = Op { forms: FMO, vjp: Vjp::Missing, out_dtype: Some(OutDType::Same), ..OP };

pub static HISTOGRAM: Op = Op {
    sig: sig(
        "histogram(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
    ),
    doc: "Counts of `bins` equal intervals of a range, by default that of the elements, and the edges of the intervals. The last one is closed.",
    body: reads_host(|c| {
        floating(c.tensor(0)?)?;
        let points = line_of_points(c.tensor(0)?)?;
        let edges = equal_edges(&points, &[c.int("bins")?], c.argument("range"))?.swap_remove(0);
        on_a_line(c, &points, edges)
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
    sig: sig(
        "histogram.bins(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
    ),
    doc: "Counts between the rising edges in `bins`, and those edges. The last interval is closed.",
    body: reads_host(|c| {
        floating(c.tensor(0)?)?;
        let edges = crate::ops::movement::copy::CLONE.call((c.tensor("bins")?.detach(),)).ok()?;
        on_a_line(c, &line_of_points(c.tensor(0)?)?, edges)
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

/// Points, [.., N], as a matrix.
fn points_of(c: &Call) -> Result<Tensor> {
    let t = c.tensor(0)?;
    floating(t)?;
    if t.ndim() < 2 {
        return Err(Error::runtime("torch.histogramdd: input tensor should have at least 2 dimensions"));
    }
    let n = t.size(t.ndim() - 1);
    let rows = t.numel().checked_div(n).unwrap_or(0);
    Term::from(t.detach()).reshape(&[rows as i64, n as i64]).ok()
}

pub static BIN_EDGES: Op = Op {
    sig: sig(
        "_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]",
    ),
    doc: "The edges of equal intervals in each dimension of points, [.., N].",
    forms: HIDDEN,
    body: reads_host(|c| {
        let (points, bins) = (points_of(c)?, c.ints("bins")?);
        if bins.len() != points.size(1) {
            return Err(Error::runtime(format!(
                "torch.histogramdd: expected {} bins for a {}-dimensional histogram but got {}",
                points.size(1),
                points.size(1),
                bins.len()
            )));
        }
        equal_edges(&points, bins, c.argument("range")).map(Outputs::from)
    }),
    samples: &["f32[5,2](nograd, 0..6), (3, 2)", "f64[4,2](nograd), (1, 2), range=(0.0, 1.0, -1.0, 1.0)"],
    errors: &[
        ("f32[5,2], (3, 0)", "RuntimeError", "bins must be > 0, but got 0 for dimension 1"),
        ("f32[5,2], (3, 3), range=(0.0, 1.0)", "RuntimeError", "range should have 4 elements, but got 2"),
        ("f32[5,2], (3,)", "RuntimeError", "expected 2 bins"),
        ("f32[5], (3,)", "RuntimeError", "input tensor should have at least 2 dimensions"),
        ("i64[5,1], (3,)", "NotImplementedError", "\"histogramdd\" not implemented for 'Long'"),
    ],
    vjp: Vjp::Missing,
    ..OP
};

pub static FROM_BIN_TENSORS: Op = Op {
    sig: sig(
        "_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor",
    ),
    doc: "Counts of points, [.., N], between the rising edges of each dimension.",
    forms: HIDDEN,
    body: reads_host(|c| {
        points_of(c)?;
        let edges: Vec<Tensor> = c.tensors("bins").iter().map(|e| e.detach()).collect();
        between(&c.tensor(0)?.detach(), &edges, c.opt_tensor("weight"), c.flag("density")).map(|hist| smallvec![hist])
    }),
    samples: &[
        "f32[7,2](nograd), [f32[3](= -1, 0.5, 2, nograd), f32[2](= -1, 1, nograd)]",
        "f64[2,3,2](nograd), [f64[2](= -1, 2, nograd), f64[3](= -1, 0, 1, nograd)], weight=f64[2,3](pos, nograd), density=True",
        "f32[4,1](nograd), [f32[1](= 0, nograd)]",
    ],
    errors: &[
        (
            "f32[4,2], [f32[3]]",
            "RuntimeError",
            "expected 2 sequences of bin edges for a 2-dimensional histogram but got 1",
        ),
        ("f32[4,1], [f32[3,1]]", "RuntimeError", "bins tensor should have one dimension, but got 2"),
        ("f32[4,1], [f64[3]]", "RuntimeError", "should have the same dtype"),
        ("f32[4,1], [f32[3]], weight=f32[3]", "RuntimeError", "input with shape [4, 1] and weight with shape [3]"),
        ("f32[4,1], [f32[3]], weight=f64[4]", "RuntimeError", "got input(float), and weight(double)"),
    ],
    vjp: Vjp::Missing,
    ..OP
};
