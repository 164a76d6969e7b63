//! Weight normalisation (Salimans and Kingma, arXiv:1602.07868): a weight as a direction and a length for each slice.

use crate::error::Result;
use crate::layout::wrap_dim;
use crate::op::*;
use crate::ops::reduce::norm::VECTOR_NORM;

pub static OPS: &[&Op] = &[&NORM_EXCEPT_DIM, &WEIGHT_NORM];

/// The norms of the slices along argument 2, kept; of the whole where that is -1.
fn norms(c: &Call) -> Result<Outputs> {
    let (v, pow, dim) = (c.tensor("v")?, c.int("pow")?, c.int("dim")?);
    if dim == -1 {
        return VECTOR_NORM.calls((v, pow));
    }
    let kept = wrap_dim(dim, v.ndim())?;
    let others: Ints = (0..v.ndim()).filter(|&d| d != kept).map(|d| d as i64).collect();
    match others.is_empty() {
        // No dimensions would mean all of them.
        true => VECTOR_NORM.calls((Term::from(v).unsqueeze(-1), pow, [-1], false)),
        false => VECTOR_NORM.calls((v, pow, others, true)),
    }
}

pub static NORM_EXCEPT_DIM: Op = Op {
    sig: sig("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor"),
    doc: "The norms of the slices along a dimension, kept for broadcasting; of the whole tensor where `dim` is -1.",
    forms: F,
    body: decompose(norms),
    vjp: Vjp::Composite,
    samples: &["f32[2,3]", "f32[2,3,4], 2, 1", "f32[2,3], 1, -1", "f32[3](nonzero), 2, 0"],
    errors: &[("f32[2,3], 2, 2", "IndexError", "Dimension out of range")],
    reference: "np.sum(np.abs(x0) ** pow, axis=tuple(d for d in range(x0.ndim) if d != dim), keepdims=True) ** (1 / pow) if dim != -1 else np.sum(np.abs(x0) ** pow) ** (1 / pow)",
    ..OP
};

pub static WEIGHT_NORM: Op = Op {
    sig: sig("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor"),
    doc: "A weight from its direction and its lengths: `v * (g / norm_except_dim(v, 2, dim))`.",
    forms: HIDDEN,
    body: decompose(|c| {
        let v = c.tensor("v")?;
        let norms = NORM_EXCEPT_DIM.call((v, 2, c.int("dim")?));
        (Term::from(v) * (Term::from(c.tensor("g")?) / norms)).outputs()
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], f32[2,1]", "f32[2,3], f32[1,3], 1", "f32[2,3], f32[], -1"],
    errors: &[("f32[2,3], f32[2,1], 2", "IndexError", "Dimension out of range")],
    reference: "x0 * (x1 / (np.linalg.norm(x0) if dim == -1 else np.linalg.norm(x0, axis=1 - dim, keepdims=True)))",
    ..OP
};
