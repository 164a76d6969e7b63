//! Cosine similarity and normalisation to unit length.

use crate::dtype::promote;
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::reduce::norm::VECTOR_NORM;
use crate::ops::reduce::sum_prod::SUM_DIM;
use crate::ops::view::reshape::EXPAND;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&COSINE_SIMILARITY, &NORMALIZE];

pub static COSINE_SIMILARITY: Op = Op {
    sig: sig("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor"),
    doc: "`x1 . x2 / (|x1| |x2|)` along a dimension; each norm counts as no less than `eps`. Broadcasts.",
    aliases: &["nn.functional.cosine_similarity"],
    forms: F,
    body: decompose(cosine_similarity),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], f32[2,3]", "f32[2,3], f32[3], 1", "f32[2,3], f32[2,3], dim=0"],
    errors: &[
        ("f32[2,3], f32[2,3], 3", "IndexError", "Dimension out of range"),
        ("i64[2,3], i64[2,3]", "RuntimeError", "expected common dtype to be floating point, yet common dtype is Long"),
    ],
    ..OP
};

fn cosine_similarity(c: &Call) -> Result<Outputs> {
    let (a, b) = (c.tensor("x1")?, c.tensor("x2")?);
    let common = promote(a.dtype(), b.dtype())?;
    if !common.is_float() {
        return Err(Error::runtime(format!(
            "expected common dtype to be floating point, yet common dtype is {}",
            common.scalar_type_name()
        )));
    }
    let shape = crate::layout::broadcast(a.shape(), b.shape())?;
    let dim = crate::layout::wrap_dim(c.int("dim")?, shape.len())? as i64;
    let unit = |t: &Tensor| {
        let t = EXPAND.call((Term::from(t).to_dtype(common), &shape[..]));
        let length = VECTOR_NORM.call((&t, 2, [dim], true)).clamp_min_(c.float("eps").unwrap_or(0.0));
        t / length
    };
    SUM_DIM.call((unit(a) * unit(b), [dim])).outputs()
}

pub static NORMALIZE: Op = Op {
    sig: sig("nn.functional.normalize(Tensor input, float p=2.0, int[1] dim=1, float eps=1e-12) -> Tensor"),
    doc: "Divides by the norm of order `p` along a dimension, which counts as no less than `eps`.",
    forms: FO,
    body: decompose(|c| {
        let x = c.tensor(0)?;
        let length = VECTOR_NORM.call((x, c.scalar("p")?, c.ints("dim")?, true)).clamp_min_(c.float("eps")?);
        (Term::from(x) / EXPAND.call((length, x.shape()))).outputs()
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3]", "f32[2,3], 1.0, 0", "f32[2,3,4], dim=2"],
    errors: &[("f32[3]", "IndexError", "Dimension out of range")],
    alias_policy: Some(AliasPolicy::SameOnly),
    ..OP
};
