//! Distances between rows, and rows scaled to a greatest norm: cdist, pdist, dist, renorm.

use super::choose::WHERE;
use super::reduce::norm::{NORM, VECTOR_NORM};
use super::select::INDEX_SELECT;
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::layout::wrap_dim;
use crate::op::*;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&CDIST, &PDIST, &DIST, &RENORM];

fn positive(p: f64, op: &str) -> Result<()> {
    if p >= 0.0 { Ok(()) } else { Err(Error::runtime(format!("{op} only supports non-negative p values"))) }
}

pub static CDIST: Op = Op {
    sig: "cdist(Tensor x1, Tensor x2, float p=2, str? compute_mode=None) -> Tensor",
    doc: "The `p`-norm distances of each row of [.., P, M] to each row of [.., R, M]: [.., P, R]. Always computed from differences.",
    forms: F,
    body: composite(|c| {
        let (a, b, p) = (c.tensor(0)?, c.tensor(1)?, c.float(2)?);
        for (t, name) in [(a, "X1"), (b, "X2")] {
            if t.ndim() < 2 {
                return Err(Error::runtime(format!(
                    "cdist only supports at least 2D tensors, {name} got: {}D",
                    t.ndim()
                )));
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
        positive(p, "cdist")?;
        let gaps = Term::from(a).unsqueeze(-2) - Term::from(b).unsqueeze(-3);
        if m == 0 {
            return gaps.sum(&[-1], false).outputs();
        }
        VECTOR_NORM.calls((gaps, p, [-1]))
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[3,2], f32[4,2]",
        "f32[2,3,2], f32[4,2], 1.0",
        "f32[3,2], f32[2,2], 3.0",
        "f32[3,2], f32[2,2], inf",
        "f32[2,0], f32[3,0]",
    ],
    errors: &[
        ("f32[3], f32[3]", "RuntimeError", "cdist only supports at least 2D tensors, X1 got: 1D"),
        ("f32[2,3], f32[2,4]", "RuntimeError", "X1 and X2 must have the same number of columns. X1: 3 X2: 4"),
        ("f32[2,3], f32[2,3], -1.0", "RuntimeError", "cdist only supports non-negative p values"),
        ("i64[2,3], i64[2,3]", "RuntimeError", "cdist only supports floating-point dtypes, X1 got: Long"),
    ],
    ..OP
};

pub static PDIST: Op = Op {
    sig: "pdist(Tensor self, float p=2) -> Tensor",
    doc: "The `p`-norm distances of each pair of the N rows of a matrix, N (N - 1) / 2 of them, row by row.",
    aliases: &["nn.functional.pdist"],
    forms: F,
    body: composite(|c| {
        let (t, p) = (c.tensor(0)?, c.float(1)?);
        if t.ndim() != 2 {
            return Err(Error::runtime(format!("pdist only supports 2D tensors, got: {}D", t.ndim())));
        }
        if !t.dtype().is_float() {
            return Err(Error::runtime("pdist only supports floating-point dtypes"));
        }
        positive(p, "pdist")?;
        let n = t.size(0) as i64;
        let rows = |pick: fn(i64, i64) -> i64| {
            let index: Vec<i64> = (0..n).flat_map(|i| (i + 1..n).map(move |j| pick(i, j))).collect();
            let index = Term(Tensor::from_slice(&index, &[index.len()])).to_device(t.device());
            INDEX_SELECT.call((t, 0, index))
        };
        let gaps = rows(|i, _| i) - rows(|_, j| j);
        if t.size(1) == 0 || n < 2 {
            return gaps.sum(&[-1], false).outputs();
        }
        VECTOR_NORM.calls((gaps, p, [-1]))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[4,2]", "f32[3,3], 1.0", "f32[3,2], inf", "f32[1,3]"],
    errors: &[
        ("f32[3]", "RuntimeError", "pdist only supports 2D tensors, got: 1D"),
        ("f32[2,3], -1.0", "RuntimeError", "pdist only supports non-negative p values"),
        ("i64[2,3]", "RuntimeError", "pdist only supports floating-point dtypes"),
    ],
    ..OP
};

pub static DIST: Op = Op {
    sig: "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    doc: "The `p`-norm of the difference of two tensors.",
    body: composite(|c| NORM.calls((Term::from(c.tensor(0)?) - c.tensor(1)?, c.scalar(2)?))),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], f32[2,3]", "f32[2,3], f32[3], 1", "f32[3], f32[3], inf"],
    errors: &[("f32[2], f32[3]", "RuntimeError", "must match the size")],
    ..OP
};

pub static RENORM: Op = Op {
    sig: "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    doc: "Each slice along `dim` whose `p`-norm exceeds `maxnorm` scaled down to it.",
    forms: FMIO,
    body: composite(|c| {
        let (t, p, most) = (c.tensor(0)?, c.float(1)?, c.scalar(3)?);
        if p <= 0.0 {
            return Err(Error::runtime("non-positive-norm not supported"));
        }
        if most.to_f64() < 0.0 {
            return Err(Error::runtime(format!("expected maxnorm to be >= 0 but got {}", most.to_f64())));
        }
        if t.ndim() < 2 {
            return Err(Error::runtime(format!("input needs at least 2 dimensions, got {} dimensions", t.ndim())));
        }
        let dim = wrap_dim(c.int(2)?, t.ndim())?;
        let others: Ints = (0..t.ndim()).filter(|&d| d != dim).map(|d| d as i64).collect();
        let norm = VECTOR_NORM.call((t, p, others, true)).ok()?;
        let scale = most.to_f64() * (Term::from(&norm) + 1e-7).recip();
        let factor = WHERE.call((Term::from(&norm).greater(most), scale, Scalar::Float(1.0)));
        (Term::from(t) * factor).outputs()
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3,2], 2, 0, 1.0", "f32[2,3,2], 1, 1, 2.0", "f32[3,2], 3, -1, 100.0", "c64[2,2], 2, 0, 1.0"],
    errors: &[
        ("f32[3], 2, 0, 1.0", "RuntimeError", "renorm: input needs at least 2 dimensions, got 1 dimensions"),
        ("f32[2,3], 0, 0, 1.0", "RuntimeError", "renorm: non-positive-norm not supported"),
        ("f32[2,3], 2, 0, -1.0", "RuntimeError", "renorm: expected maxnorm to be >= 0 but got -1"),
    ],
    ..OP
};
