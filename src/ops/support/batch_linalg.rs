//! Batch rules of matrix products, and of ops that take stacks of matrices.

use super::batch::no_rule;
use crate::dtype::Scalar;
use crate::error::Result;
use crate::op::*;
use crate::ops::linalg::matmul::{BMM, MATMUL};
use crate::ops::linalg::matmul_add::ADDMM;
use crate::ops::reduce::sum_prod::SUM_DIM;
use crate::tensor::Tensor;
use smallvec::smallvec;

/// Ops that take leading dimensions, of arguments that have as many dimensions as one another.
pub(crate) fn whole_matrices(c: &BatchedCall) -> Result<Outputs> {
    let mut ranks = c.example.all_tensors().map(|t| t.ndim());
    let first = ranks.next();
    if ranks.any(|n| Some(n) != first) {
        return Err(no_rule());
    }
    let args = c.mapped(|o| if o.batched { Ok(o.tensor.clone()) } else { c.expanded(o.tensor) })?;
    c.again(&args)
}

/// The matrix product of two arguments with `ranks` dimensions, of which one at least is batched.
fn product(c: &BatchedCall, a: usize, b: usize) -> Result<Tensor> {
    let (x, y) = (Term::from(c.tensor(a)?), Term::from(c.tensor(b)?));
    let row = |t: Term, batched: bool| if batched { t.unsqueeze(1) } else { t };
    let column = |t: Term, batched: bool| if batched { t.unsqueeze(-1) } else { t };
    match (c.ndim(a), c.ndim(b), c.is_batched(a), c.is_batched(b)) {
        (2, 2, true, true) => BMM.call((x, y)),
        (2, 1, _, true) => Term(MATMUL.call((x, column(y, true))).ok()).squeezed(-1),
        (1, 2, true, _) => Term(MATMUL.call((row(x, true), y)).ok()).squeezed(1),
        (1, 1, true, true) => SUM_DIM.call((x * y, [-1])),
        (1, 1, false, true) => MATMUL.call((y, x)),
        _ => MATMUL.call((x, y)),
    }
    .ok()
}

impl Term {
    fn squeezed(self, dim: i64) -> Term {
        crate::ops::view::reshape::SQUEEZE_DIM.call((self, dim))
    }
}

/// `mm`, `mv`, `dot`.
pub(crate) fn matmul(c: &BatchedCall) -> Result<Outputs> {
    Ok(smallvec![product(c, 0, 1)?])
}
/// `vdot`: the first vector is conjugated.
pub(crate) fn vdot(c: &BatchedCall) -> Result<Outputs> {
    let (x, y) = (Term::from(c.tensor(0)?).conj(), Term::from(c.tensor("other")?));
    SUM_DIM.calls((x * y, [-1]))
}
/// A product of stacks of matrices: the batch is one more dimension of the stack.
pub(crate) fn bmm(c: &BatchedCall) -> Result<Outputs> {
    MATMUL.calls((c.tensor(0)?, c.tensor("mat2")?))
}

fn is_one(s: Scalar) -> bool {
    s.to_f64() == 1.0 && !matches!(s, Scalar::Complex(..))
}

/// `beta * self + alpha * product` for `addmm`, `addmv` and `baddbmm`.
pub(crate) fn product_added(c: &BatchedCall) -> Result<Outputs> {
    let (beta, alpha) = (c.scalar("beta")?, c.scalar("alpha")?);
    if !c.is_batched(0) && !c.is_batched(2) && c.ndim(1) == 2 && c.ndim(2) == 2 && c.ndim(0) < 2 {
        let out = ADDMM.call((c.tensor(0)?, c.folded(c.tensor(1)?)?, c.tensor(2)?, beta, alpha)).ok()?;
        return Ok(smallvec![c.shaped(0, out)?]);
    }
    let product = Term::from(product(c, 1, 2)?);
    let product = if is_one(alpha) { product } else { product * Term::number(alpha) };
    if beta.to_f64() == 0.0 {
        return product.outputs();
    }
    let added = Term::from(c.aligned(0, c.results[0].ndim())?);
    let added = if is_one(beta) { added } else { added * Term::number(beta) };
    let dtype = c.results[0].dtype();
    (product + added).to_dtype(dtype).outputs()
}

/// A system with one right-hand side: a vector counts as a column.
pub(crate) fn solve(c: &BatchedCall) -> Result<Outputs> {
    if c.ndim(0) == c.ndim(1) {
        return whole_matrices(c);
    }
    Err(no_rule())
}
