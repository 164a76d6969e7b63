//! The cross product of vectors with three elements.

use super::matmul::same_dtype;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::broadcast;
use crate::op::*;
use crate::ops::movement::cat::STACK;
use crate::ops::view::reshape::SELECT;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&LINALG_CROSS, &CROSS];

fn product(c: &Call) -> Result<Outputs> {
    let (a, b, dim) = (c.tensor(0)?, c.tensor("other")?, c.int("dim")?);
    if a.ndim() != b.ndim() {
        return Err(Error::runtime("linalg.cross: inputs must have the same number of dimensions."));
    }
    let at = c.dim("dim");
    let [m, n] = [a, b].map(|t| t.shape().get(at).copied().unwrap_or(1));
    if m != 3 || n != 3 {
        return Err(Error::runtime(format!(
            "linalg.cross: inputs dimension {dim} must have length 3. Got {m} and {n}"
        )));
    }
    same_dtype(a, b)?;
    if a.dtype() == DType::Bool {
        return Err(Error::not_implemented("\"cross\" not implemented for 'Bool'"));
    }
    broadcast(a.shape(), b.shape())?;
    let part = |t: &Tensor, i: i64| SELECT.call((t, at as i64, i % 3));
    let parts = (0..3).map(|i| (part(a, i + 1) * part(b, i + 2) - part(a, i + 2) * part(b, i + 1)).ok());
    STACK.calls((parts.collect::<Result<Vec<_>>>()?, at as i64))
}

pub static LINALG_CROSS: Op = Op {
    sig: sig("linalg.cross(Tensor input, Tensor other, *, Dim dim=-1) -> Tensor"),
    doc: "The cross product along a dimension of length 3; the other dimensions broadcast.",
    forms: FO,
    body: decompose(product),
    vjp: Vjp::Each(&[
        d(0, A1, |c| LINALG_CROSS.call((c.arg(1).conj(), c.g(), c.int("dim")))),
        d(1, A0, |c| LINALG_CROSS.call((c.g(), c.arg(0).conj(), c.int("dim")))),
    ]),
    node: "LinalgCrossBackward0",
    samples: &["f32[3], f32[3]", "f32[2,3], f32[1,3]", "f32[3,2], f32[3,2], dim=0", "c64[2,3], c64[2,3]"],
    errors: &[
        ("f32[2,2], f32[2,2]", "RuntimeError", "must have length 3. Got 2 and 2"),
        ("f32[2,3], f32[3]", "RuntimeError", "same number of dimensions"),
    ],
    reference: "np.cross(x0, x1, axis=dim)",
    out_dtype: Some(OutDType::Same),
    alias_policy: Some(AliasPolicy::SameOnly),
    ..OP
};

pub static CROSS: Op = Op {
    sig: sig("cross(Tensor self, Tensor other, Dim? dim=None) -> Tensor"),
    doc: "The cross product along a dimension of length 3, by default the first that is of that length.",
    forms: FMO,
    body: decompose(|c| {
        let (a, b) = (c.tensor(0)?, c.tensor("other")?);
        let first = || a.shape().iter().position(|&d| d == 3).map(|d| d as i64);
        let dim = c.opt_int("dim").or_else(first);
        let dim = dim.ok_or_else(|| Error::runtime("no dimension of size 3 in input"))?;
        LINALG_CROSS.calls((a, b, dim))
    }),
    vjp: Vjp::Composite,
    warns_once: true,
    warns: Some(|c| {
        c.opt_int("dim").is_none().then(|| {
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or simply use \
             torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross in a future release."
                .into()
        })
    }),
    samples: &["f32[2,3], f32[2,3]", "f32[3,3], f32[3,3]", "f32[2,3], f32[2,3], 1", "i64[3], i64[3]"],
    errors: &[("f32[2,2], f32[2,2]", "RuntimeError", "no dimension of size 3 in input")],
    out_dtype: Some(OutDType::Same),
    alias_policy: Some(AliasPolicy::SameOnly),
    ..OP
};
