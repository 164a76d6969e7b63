//! The square root of a Hermitian matrix, and the polar decomposition, which is based on it.

use super::checks::*;
use super::eigen::EIGH;
use super::solve::SOLVE;
use super::svd::SVD_STEP;
use crate::error::{Error, Result};
use crate::op::*;

pub static OPS: &[&Op] = &[&MATRIX_SQRTH, &POLAR];

/// Eigenvectors, and the roots of the eigenvalues; negative ones count as zero.
fn roots(a: impl Into<Term>) -> Result<(Term, Term)> {
    let parts = EIGH.calls((a.into(),))?;
    Ok((Term::from(&parts[1]), Term::from(&parts[0]).clamp_min_(0.0).sqrt()))
}

/// With `dX X + X dX = dA` the gradient solves the same equation, which is diagonal between the eigenvectors.
fn root_backward(c: &VjpCtx) -> Result<Term> {
    let (v, s) = roots(c.arg(0))?;
    let inner = v.clone().mh().at(c.g()).at(&v) / (s.clone().unsqueeze(-1) + s.unsqueeze(-2));
    let whole = v.clone().at(inner).at(v.mh());
    Ok((whole.clone() + whole.mh()) * 0.5)
}

pub static MATRIX_SQRTH: Op = Op {
    sig: sig("linalg.matrix_sqrth(Tensor self) -> Tensor"),
    doc: "The Hermitian X with `X X = A` of Hermitian matrices without negative eigenvalues; the lower triangle is read.",
    forms: F,
    body: decompose(|c| {
        let a = c.tensor(0)?;
        square(a, "linalg.matrix_sqrth")?;
        let (v, s) = roots(a)?;
        (v.clone() * s.unsqueeze(-2)).at(v.mh()).outputs()
    }),
    vjp: Vjp::Each(&[d(0, A0, |c| Term(root_backward(c).and_then(Term::ok)))]),
    samples: &["f32[3,3](spd)", "f32[2,2,2](spd)", "c64[2,2](spd)", "f32[0,0]"],
    errors: &[
        ("f32[2,3]", "RuntimeError", "linalg.matrix_sqrth: A must be batches of square matrices, but they are 2 by 3"),
        ("i64[2,2]", "NotImplementedError", "Expected a floating point or complex tensor as input. Got Long"),
    ],
    keeps: Some("self"),
    batch: Batching::Leading,
    ..SOLVER
};

/// H is the root of `A^H A`: gradients are taken this way, since singular values may repeat.
fn factors(c: &Call) -> Result<Outputs> {
    let a = Term::from(c.tensor("A")?);
    let h = MATRIX_SQRTH.call((a.clone().mh().at(&a),));
    all([SOLVE.call((&h, a, false)), h])
}

pub static POLAR: Op = Op {
    sig: sig("linalg.polar(Tensor A) -> (Tensor U, Tensor H)"),
    doc: "`A = U H` with orthonormal columns in U and a Hermitian H without negative eigenvalues; A has no more columns than rows.",
    body: decompose(|c| {
        let a = c.tensor("A")?;
        matrices(a, "linalg.polar")?;
        let (m, n) = sizes(a);
        if m < n {
            let text = format!("input must have at least as many rows as columns, but got {m} by {n} matrices");
            return Err(Error::runtime(text).in_op("linalg.polar"));
        }
        let parts = SVD_STEP.calls((a,))?;
        let [u, s, vh] = [0, 1, 2].map(|i| Term::from(&parts[i]));
        all([u.at(&vh), (vh.clone().mh() * s.unsqueeze(-2)).at(vh)])
    }),
    vjp: Vjp::Joint(Joint { args: &[0], saves: A0, formula: |c| c.through(factors) }),
    samples: &["f32[3,3]", "f32[4,2]", "f32[2,3,2]", "c64[3,2]"],
    errors: &[
        ("f32[2,4]", "RuntimeError", "linalg.polar: input must have at least as many rows as columns, but got 2 by 4"),
        ("f32[2]", "RuntimeError", "linalg.polar: The input tensor A must have at least 2 dimensions."),
    ],
    batch: Batching::Leading,
    ..SOLVER
};
