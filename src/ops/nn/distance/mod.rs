//! Distances between rows, and rows scaled to a maximum norm: cdist, dist, renorm; pdist has a file of its own.
//!
//! Each is one node whose gradient is that of its recomputed steps (`rematerialize.rs`). The differences of all pairs of rows
//! would be far larger than the input and the output: on the CPU a kernel does without them, elsewhere `cdist` works in tiles of
//! pairs, in both directions. For many rows it uses a matrix product: `|x - y|^2 = |x|^2 + |y|^2 - 2 x y`, less accurate and much faster.

pub mod pdist;

use crate::autograd::forward::differentiating;
use crate::cpu::distance;
use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, Show};
use crate::layout::{Dims, broadcast};
use crate::op::*;
use crate::ops::elementwise::arith::ADD;
use crate::ops::elementwise::ternary::WHERE;
use crate::ops::linalg::matmul::MATMUL;
use crate::ops::movement::cat::joined;
use crate::ops::reduce::extrema::AMAX;
use crate::ops::reduce::norm::{NORM, VECTOR_NORM};
use crate::ops::view::reshape::VIEW;
use crate::ops::view::slice::NARROW;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&EUCLIDEAN, &TILED, &DISTANCES, &DISTANCES_BACKWARD, &CDIST, &DIST, &RENORM];

fn positive(p: f64, op: &str) -> Result<()> {
    if p >= 0.0 { Ok(()) } else { Err(Error::runtime(format!("{op} only supports non-negative p values"))) }
}

/// Arguments 0 and 1: rows of one length.
fn rows_of<'a>(c: &'a Call) -> Result<(&'a Tensor, &'a Tensor)> {
    let (a, b) = (c.tensor("x1")?, c.tensor("x2")?);
    for (t, name) in [(a, "X1"), (b, "X2")] {
        if t.ndim() < 2 {
            let text = format!("cdist only supports at least 2D tensors, {name} got: {}D", t.ndim());
            return Err(Error::runtime(text));
        }
        if !t.dtype().is_float() {
            let d = t.dtype().scalar_type_name();
            return Err(Error::runtime(format!("cdist only supports floating-point dtypes, {name} got: {d}")));
        }
    }
    let (m, n) = (a.size(a.ndim() - 1), b.size(b.ndim() - 1));
    if m != n {
        return Err(Error::runtime(format!("X1 and X2 must have the same number of columns. X1: {m} X2: {n}")));
    }
    Ok((a, b))
}

/// Differences held at once: as many as fit a cache, or occupy a GPU.
fn room(t: &Tensor) -> usize {
    if t.device().is_gpu() { 1 << 24 } else { 1 << 17 }
}

type Rows = (usize, usize);

/// The rows of both sides as runs (first, count); the pairs of two runs form a tile.
fn runs(a: &Tensor, b: &Tensor) -> Result<[Vec<Rows>; 2]> {
    let rows = [a, b].map(|t| t.size(t.ndim() - 2));
    let lead = broadcast(&a.shape()[..a.ndim() - 2], &b.shape()[..b.ndim() - 2])?;
    let pair = lead.iter().product::<usize>().saturating_mul(a.size(a.ndim() - 1)).max(1);
    let wide = (room(a) / pair).clamp(1, rows[1].max(1));
    let high = (room(a) / pair.saturating_mul(wide)).clamp(1, rows[0].max(1));
    let cut = |n: usize, step: usize| (0..n).step_by(step).map(|i| (i, step.min(n - i))).collect();
    Ok([cut(rows[0], high), cut(rows[1], wide)])
}

fn cut(t: impl Into<Term>, dim: i64, (start, n): Rows) -> Term {
    NARROW.call((t.into(), dim, start, n))
}

/// The distances of each row of argument 0 to each of argument 1.
fn distances(c: &Call) -> Result<Outputs> {
    let (a, b) = (c.tensor("x1")?, c.tensor("x2")?);
    let gaps = Term::from(a).unsqueeze(-2) - Term::from(b).unsqueeze(-3);
    if a.size(a.ndim() - 1) == 0 { gaps.sum(&[-1], false).outputs() } else { norms(gaps, c.float("p")?).outputs() }
}

/// The norms of rows. The gradient of a maximum goes undivided to each maximal component, unlike that of a norm.
fn norms(gaps: Term, p: f64) -> Term {
    if p != f64::INFINITY || !differentiating() {
        return VECTOR_NORM.call((gaps, p, [-1]));
    }
    let size = gaps.abs();
    let top = match AMAX.call((&size, [-1], true)).cut().ok() {
        Ok(top) => top,
        Err(e) => return e.into(),
    };
    let hits = size.clone().equals(&top);
    Term::from(&top).squeeze(-1) + (size - &top).zero_where(hits.not()).sum(&[-1], false)
}

/// The arguments for a tile: runs of rows of both sides, and the order.
fn tile_of<'a>(a: &Tensor, b: &Tensor, r: Rows, o: Rows, order: &'a Value) -> Result<[Value<'a>; 3]> {
    Ok([Value::Owned(cut(a, -2, r).ok()?), Value::Owned(cut(b, -2, o).ok()?), order.reborrow()])
}

/// The same in tiles.
fn tiled(c: &Call) -> Result<Outputs> {
    let (a, b) = rows_of(c)?;
    let [rows, others] = runs(a, b)?;
    if rows.len() * others.len() < 2 {
        return distances(c);
    }
    let tile = |r: Rows, o: Rows| {
        let args = tile_of(a, b, r, o, c.argument("p"))?;
        distances(&Call { op: c.op, args: &args }).map(|mut found| found.swap_remove(0))
    };
    let band = |r: Rows| joined(others.iter().map(|&o| Term(tile(r, o))), -1);
    joined(rows.iter().map(|&r| band(r)), -2).outputs()
}

/// Whether these rows have one dtype of those that the kernels take.
fn typed(rows: &[&Tensor]) -> bool {
    rows.iter().all(|t| matches!(t.dtype(), DType::F32 | DType::F64) && t.dtype() == rows[0].dtype())
}
/// Whether the kernels compute the distances of these rows.
fn has_kernel(rows: &[&Tensor]) -> bool {
    typed(rows) && rows.iter().all(|t| t.device() == Device::Cpu)
}
/// Whether they do, of the two sets of rows of a call.
fn fits(c: &Call) -> bool {
    matches!((c.tensor("x1"), c.tensor("x2")), (Ok(a), Ok(b)) if has_kernel(&[a, b]))
}

/// The gradients by the kernel, or in tiles; if they are recorded, of all pairs at once.
fn distances_backward(c: &VjpCtx) -> Result<Vec<Option<Tensor>>> {
    let (a, b) = (c.arg(0).ok()?, c.arg(1).ok()?);
    if !differentiating() && has_kernel(&[&a, &b]) {
        let (p, found) = (c.float("p"), c.out(0));
        let by = |i: usize, [x, y]: [&Tensor; 2], turned: fn(Term) -> Term| {
            let gradient = || DISTANCES_BACKWARD.call((turned(c.g()), x, y, p, turned(found.clone()))).ok();
            c.wants(i).then(gradient).transpose()
        };
        return Ok(vec![by(0, [&a, &b], |t| t)?, by(1, [&b, &a], Term::mt)?]);
    }
    let [rows, others] = runs(&a, &b)?;
    if differentiating() || rows.len() * others.len() < 2 {
        return c.through(distances);
    }
    let sums = [0, 1].map(|i| c.wants(i).then(|| c.zeros(i)));
    for &r in &rows {
        for &o in &others {
            let args = tile_of(&a, &b, r, o, c.argument("p"))?;
            let grads = [Some(cut(cut(c.g(), -2, r), -1, o).ok()?)];
            let parts = VjpCtx { call: Call { op: c.call.op, args: &args }, grads: &grads, ..*c }.through(distances)?;
            for ((sum, part), at) in sums.iter().zip(parts).zip([r, o]) {
                if let (Some(sum), Some(part)) = (sum, part) {
                    ADD.call_inplace((cut(sum.clone(), -2, at), part))?;
                }
            }
        }
    }
    sums.into_iter().map(|s| s.map(Term::ok).transpose()).collect()
}

fn euclidean(c: &Call) -> Result<Outputs> {
    let (a, b) = rows_of(c)?;
    let [a, b] = [a, b].map(Term::from);
    let squares = |t: &Term| (t.clone() * t).sum(&[-1], true);
    let sum = squares(&a) + squares(&b).mt() - 2.0 * MATMUL.call((a, b.mt()));
    sum.clamp_min_(0.0).sqrt().outputs()
}

/// The gradient of argument `i` is `sum(r (x - y))` over the rows y of the other, with r the gradient over the distance.
fn euclidean_backward(c: &VjpCtx, i: usize) -> Term {
    let ratio = (c.g() / c.out(0)).zero_where(c.out(0).equals(0));
    let ratio = if i == 0 { ratio } else { ratio.mt() };
    c.arg(i) * ratio.clone().sum(&[-1], true) - MATMUL.call((ratio, c.arg(1 - i)))
}

pub static EUCLIDEAN: Op = Op {
    sig: sig("_euclidean_dist(Tensor x1, Tensor x2) -> Tensor"),
    doc: "`cdist` of order 2 by a matrix product.",
    forms: HIDDEN,
    body: decompose(euclidean),
    vjp: Vjp::Each(&[
        d(0, A0 | A1 | OUT0, |c| euclidean_backward(c, 0)),
        d(1, A0 | A1 | OUT0, |c| euclidean_backward(c, 1)),
    ]),
    samples: &["f32[3,2], f32[4,2]", "f32[2,3,2], f32[4,2]"],
    errors: &[("f32[3,2], 1", "TypeError", "must be Tensor")],
    ..OP
};

pub static TILED: Op = Op {
    sig: sig("_cdist_forward(Tensor x1, Tensor x2, float p) -> Tensor"),
    doc: "`cdist` by differences.",
    forms: HIDDEN,
    body: decompose_or(tiled, &DISTANCES, fits),
    vjp: Vjp::Joint(Joint { args: &[0, 1], saves: A0 | A1 | OUT0, formula: distances_backward }),
    node: "CdistBackward0",
    samples: &[
        "f32[3,2], f32[4,2], 1.0",
        "f32[2,3,2], f32[5,2], 3.0",
        "f32[70,3], f32[2,3], 3.0",
        "f16[3,2], f16[4,2], 1.0",
    ],
    errors: &[("f32[3,2], 1, 1.0", "TypeError", "must be Tensor")],
    ..OP
};

/// Whether order 2 is computed by a matrix product; by default of more rows than that pays for.
fn by_product(mode: ComputeMode, a: &Tensor, b: &Tensor) -> bool {
    let rows = |t: &Tensor| t.size(t.ndim() - 2);
    match mode {
        ComputeMode::Product => true,
        ComputeMode::NoProduct => false,
        ComputeMode::ProductIfLarge => rows(a) > 25 || rows(b) > 25,
    }
}

/// Whether Euclidean distances are made of a matrix product.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ComputeMode {
    Product,
    ProductIfLarge,
    NoProduct,
}
impl Enumerated for ComputeMode {
    const VALUES: &'static [(&'static str, ComputeMode)] = &[
        ("use_mm_for_euclid_dist", ComputeMode::Product),
        ("use_mm_for_euclid_dist_if_necessary", ComputeMode::ProductIfLarge),
        ("donot_use_mm_for_euclid_dist", ComputeMode::NoProduct),
    ];
}

pub static CDIST: Op = Op {
    unknown_choice: |_, given| Error::value(format!("{given} is not a valid value for compute_mode")),
    sig: sig(
        "cdist(Tensor x1, Tensor x2, float p=2, str{use_mm_for_euclid_dist|use_mm_for_euclid_dist_if_necessary|donot_use_mm_for_euclid_dist} compute_mode='use_mm_for_euclid_dist_if_necessary') -> Tensor",
    ),
    doc: "The `p`-norm distances of each row of [.., P, M] to each row of [.., R, M]: [.., P, R]. `compute_mode` says whether those of order 2 may be made of a matrix product.",
    forms: F,
    body: decompose(|c| {
        let (a, b) = rows_of(c)?;
        positive(c.float("p")?, "cdist")?;
        let by_product = by_product(c.choice("compute_mode"), a, b);
        if by_product && c.float("p")? == 2.0 && a.size(a.ndim() - 1) > 0 {
            let found = EUCLIDEAN.call((a, b));
            return VIEW.calls((&found, found.sizes()));
        }
        TILED.calls((a, b, c.float("p")?))
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[3,2], f32[4,2]",
        "f32[2,3,2], f32[4,2], 1.0",
        "f32[3,2], f32[2,2], 3.0",
        "f32[3,2], f32[2,2], inf",
        "f32[2,3](ties), f32[2,3](zeros), inf",
        "f32[2,0], f32[3,0]",
        "f32[0,2], f32[3,2]",
        "f32[3,2], f32[4,2], 2.0, 'use_mm_for_euclid_dist'",
        "f32[30,2], f32[2,2]",
    ],
    errors: &[
        ("f32[3], f32[3]", "RuntimeError", "cdist only supports at least 2D tensors, X1 got: 1D"),
        ("f32[2,3], f32[2,4]", "RuntimeError", "X1 and X2 must have the same number of columns. X1: 3 X2: 4"),
        ("f32[2,3], f32[2,3], -1.0", "RuntimeError", "cdist only supports non-negative p values"),
        ("i64[2,3], i64[2,3]", "RuntimeError", "cdist only supports floating-point dtypes, X1 got: Long"),
        ("f32[2,3], f32[2,3], 2.0, 'x'", "ValueError", "x is not a valid value for compute_mode"),
    ],
    ..OP
};

/// Two sets of rows with their leading dimensions alike.
fn aligned(c: &Call) -> Result<[Tensor; 2]> {
    let (a, b) = rows_of(c)?;
    if !typed(&[a, b]) {
        return Err(Error::runtime(format!("expected float32 or float64 rows, got {} and {}", a.dtype(), b.dtype())));
    }
    let lead = broadcast(&a.shape()[..a.ndim() - 2], &b.shape()[..b.ndim() - 2])?;
    let to = |t: &Tensor| -> Result<Tensor> {
        let sizes: Ints = lead.iter().chain(&t.shape()[t.ndim() - 2..]).map(|&n| n as i64).collect();
        Ok(t.with_layout(t.layout().expand(&sizes)?))
    };
    Ok([to(a)?, to(b)?])
}

/// Of aligned rows.
fn shape_of_distances(a: &Tensor, b: &Tensor) -> Dims {
    let mut shape = Dims::from_slice(a.shape());
    shape[a.ndim() - 1] = b.size(b.ndim() - 2);
    shape
}

pub static DISTANCES: Op = Op {
    sig: sig("_distances(Tensor x1, Tensor x2, float p) -> Tensor"),
    doc: "`_cdist_forward` without the differences in memory.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let [a, b] = aligned(c)?;
            Ok(Spec::one(&shape_of_distances(&a, &b), a.dtype(), a.device()))
        },
        |c, out| {
            let [a, b] = aligned(c)?;
            distance::distances(a.cpu_view()?, b.cpu_view()?, c.float("p")?, out[0].cpu_view()?)
        },
        None,
    ),
    vjp: Vjp::None("`_cdist_forward` has the gradient"),
    samples: &["f32[3,2], f32[4,2], 1.0", "f64[2,3,2], f64[4,2], inf"],
    errors: &[
        ("f32[3,2], f32[4,3], 1.0", "RuntimeError", "must have the same number of columns"),
        ("f32[3,2], f64[4,2], 1.0", "RuntimeError", "expected float32 or float64 rows, got float32 and float64"),
    ],
    batch: Batching::Leading,
    ..OP
};

pub static DISTANCES_BACKWARD: Op = Op {
    sig: sig("_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor"),
    doc: "The gradient of `_cdist_forward` by `x1`, from the distances and their gradient.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let [a, b] = aligned(c)?;
            of_shape(c, "grad", "cdist", &shape_of_distances(&a, &b), &a)?;
            Ok(Spec::one(a.shape(), a.dtype(), a.device()))
        },
        |c, out| {
            let [a, b] = aligned(c)?;
            let (grad, norms) = (c.tensor("grad")?.cpu_view()?, c.tensor("cdist")?.cpu_view()?);
            let sides = [a.cpu_view()?, b.cpu_view()?];
            distance::distances_backward(grad, sides, c.float("p")?, norms, out[0].cpu_view()?)
        },
        None,
    ),
    vjp: Vjp::None("the gradient of a gradient is that of the steps"),
    samples: &["f32[3,4], f32[3,2], f32[4,2], 1.0, f32[3,4]", "f64[2,3,1], f64[2,3,2], f64[1,2], 3.0, f64[2,3,1]"],
    errors: &[("f32[3,3], f32[3,2], f32[4,2], 1.0, f32[3,4]", "RuntimeError", "grad must have the shape")],
    batch: Batching::Leading,
    ..OP
};

/// Refuses numbers of pairs that are not of this shape, or not of the rows' dtype.
fn of_shape(c: &Call, grad: &str, norms: &str, shape: &[usize], rows: &Tensor) -> Result<()> {
    for name in [grad, norms] {
        let t = c.tensor(name)?;
        if t.shape() != shape || t.dtype() != rows.dtype() {
            let (got, wanted) = (Show(t.shape()), Show(shape));
            return Err(Error::runtime(format!(
                "{name} must have the shape and dtype of the distances, {wanted} and {}, got {got} and {}",
                rows.dtype(),
                t.dtype()
            )));
        }
    }
    Ok(())
}

fn norm_of_difference(c: &Call) -> Result<Outputs> {
    NORM.calls((Term::from(c.tensor(0)?) - c.tensor("other")?, c.scalar("p")?))
}

pub static DIST: Op = Op {
    sig: sig("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor"),
    doc: "The `p`-norm of the difference of two tensors.",
    body: decompose(norm_of_difference),
    vjp: Vjp::Joint(Joint { args: &[0, 1], saves: A0 | A1, formula: |c| c.through(norm_of_difference) }),
    samples: &["f32[2,3], f32[2,3]", "f32[2,3], f32[3], 1", "f32[3], f32[3], inf"],
    errors: &[("f32[2], f32[3]", "RuntimeError", "must match the size")],
    ..OP
};

fn renormed(c: &Call) -> Result<Outputs> {
    let (t, most) = (c.tensor(0)?, c.scalar("maxnorm")?);
    let dim = c.dim("dim");
    let others: Ints = (0..t.ndim()).filter(|&d| d != dim).map(|d| d as i64).collect();
    let norm = VECTOR_NORM.call((t, c.float("p")?, others, true)).ok()?;
    let scale = most.to_f64() * (Term::from(&norm) + 1e-7).recip();
    let factor = WHERE.call((Term::from(&norm).greater(most), scale, Scalar::Float(1.0)));
    (Term::from(t) * factor).contiguous().outputs()
}

pub static RENORM: Op = Op {
    sig: sig("renorm(Tensor self, Scalar p, Dim dim, Scalar maxnorm) -> Tensor"),
    doc: "Each slice along `dim` whose `p`-norm exceeds `maxnorm` scaled down to it.",
    forms: FMIO,
    body: decompose(|c| {
        let (t, p, most) = (c.tensor(0)?, c.float("p")?, c.scalar("maxnorm")?);
        if p.is_nan() || p <= 0.0 {
            return Err(Error::runtime("non-positive-norm not supported"));
        }
        if most.to_f64().is_nan() || most.to_f64() < 0.0 {
            return Err(Error::runtime(format!("expected maxnorm to be >= 0 but got {}", most.to_f64())));
        }
        if t.ndim() < 2 {
            return Err(Error::runtime(format!("input needs at least 2 dimensions, got {} dimensions", t.ndim())));
        }
        renormed(c)
    }),
    vjp: Vjp::Joint(Joint { args: &[0], saves: A0, formula: |c| c.through(renormed) }),
    samples: &["f32[3,2], 2, 0, 1.0", "f32[2,3,2], 1, 1, 2.0", "f32[3,2], 3, -1, 100.0", "c64[2,2], 2, 0, 1.0"],
    errors: &[
        ("f32[3], 2, 0, 1.0", "RuntimeError", "renorm: input needs at least 2 dimensions, got 1 dimensions"),
        ("f32[2,3], 0, 0, 1.0", "RuntimeError", "renorm: non-positive-norm not supported"),
        ("f32[2,3], 2, 0, -1.0", "RuntimeError", "renorm: expected maxnorm to be >= 0 but got -1"),
        ("f32[2,3], 2, 0, nan", "RuntimeError", "renorm: expected maxnorm to be >= 0 but got"),
        ("f32[2,3], nan, 0, 1.0", "RuntimeError", "renorm: non-positive-norm not supported"),
    ],
    ..OP
};
