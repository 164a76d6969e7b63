//! Singular values and eigenvalues of symmetric matrices on the GPU, by Jacobi's method.
//!
//! Matrices are divided by their largest number. For singular values `A = Q R`, and the rows of R are turned until they are
//! orthogonal: `J R = S Vh`. The reflections of `(S Vh)^T` then give Vh, whose rows for values of zero are not decided by R.

use super::checks::{joined, lead, mt_view, sizes};
use super::on_gpu::{copied, identity};
use super::qr::QR_STEP;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::gpu::{Jacobi, sweep};
use crate::layout::Dims;
use crate::op::*;
use crate::ops::elementwise::compare::{GE, ISFINITE, LT};
use crate::ops::elementwise::ternary::WHERE;
use crate::ops::indexing::gather_scatter::GATHER;
use crate::ops::order::sort::SORT;
use crate::ops::reduce::any_all::{ALL, ALL_DIM, ANY};
use crate::ops::reduce::extrema::{AMAX, ARGMAX};
use crate::ops::support::host_read::item;
use crate::tensor::Tensor;

/// Sweeps after which the method has failed; it needs about ten.
const SWEEPS: usize = 60;

/// Matrices divided by their largest numbers, and those.
fn scaled(a: &Term) -> [Term; 2] {
    let most = AMAX.call((a.clone().abs(), [-2, -1]));
    let scale = WHERE.call((most.clone().equals(0), 1, most));
    [a.clone() / scale.clone().whole(), scale.unsqueeze(-1)]
}

/// Turns the rows of square matrices as `kind` says, and those of identities with them; returns both.
fn turn(matrices: Term, kind: Jacobi, name: &'static str) -> Result<[Term; 2]> {
    let eye = matrices.eye().expand(&matrices.sizes());
    let rows = copied(&joined([matrices, eye], -1).ok()?)?;
    let n = sizes(&rows).0;
    let room = |each: usize| -> Dims { lead(&rows).iter().copied().chain([n.div_ceil(2) * each]).collect() };
    let flags = Tensor::empty(&room(1), DType::I32, rows.device())?;
    let rotations = Tensor::empty(&room(2), rows.dtype(), rows.device())?;
    for _ in 0..SWEEPS {
        flags.fill_raw(Scalar::Int(0))?;
        sweep(kind, &rows.gpu_view()?, &flags.gpu_view()?, &rotations.gpu_view()?)?;
        if !item(&ANY.call((&flags,)).ok()?)?.to_bool() {
            let rows = Term::from(&rows);
            return Ok([rows.clone().cut_out(-1, 0, n), rows.cut_out(-1, n, n)]);
        }
    }
    Err(Error::linalg("The algorithm failed to converge.").in_op(name))
}

/// Rows in the order of `places` `[.., n]`.
fn in_order(rows: Term, places: &Tensor) -> Term {
    GATHER.call((rows.clone(), -2, Term::from(places).unsqueeze(-1).expand(&rows.sizes())))
}

/// Signs `[.., 1, n]` that make the largest component of each column positive: of nearly equal ones the first, as on the CPU.
fn signs(columns: Term) -> Term {
    let sizes = columns.clone().abs();
    let most = AMAX.call((sizes.clone(), [-2], true));
    let is_top = GE.call((sizes, most * (1.0 - 1e-5))).to_dtype(DType::I32);
    let top = GATHER.call((columns, -2, ARGMAX.call((is_top, -2, true))));
    WHERE.call((LT.call((top, 0)), -1, 1))
}

/// Singular values of matrices with at least as many rows as columns, and their vectors, all those on the left if `complete`.
fn tall_svd(a: Term, vectors: bool, complete: bool) -> Result<(Term, Option<[Term; 2]>)> {
    let (m, n) = sizes(a.get().ok_or_else(|| Error::internal("no matrix"))?);
    let [a, scale] = scaled(&a);
    let parts = QR_STEP.calls((a, if complete { "complete" } else { "reduced" }))?;
    let [q, r] = [&parts[0], &parts[1]].map(Term::from);
    let [rows, left] = turn(r.cut_out(-2, 0, n), Jacobi::Orthogonal(n), "linalg.svd")?;
    let lengths = rows.clone().square().sum(&[-1], false).sqrt();
    let sorted = SORT.calls((lengths, -1, true))?;
    let values = Term::from(&sorted[0]) * scale;
    if !vectors {
        return Ok((values, None));
    }
    let parts = QR_STEP.calls((in_order(rows, &sorted[1]).mt(), "reduced"))?;
    let [right, r] = [&parts[0], &parts[1]].map(Term::from);
    let right = right * WHERE.call((LT.call((r.diagonals(), 0)), -1, 1)).unsqueeze(-2);
    let first = q.clone().cut_out(-1, 0, n).at(in_order(left, &sorted[1]).mt());
    let left = if complete && m > n { joined([first, q.cut_out(-1, n, m - n)], -1) } else { first };
    Ok((values, Some([left, right])))
}

/// Overwrites `values`, and U and Vh where they are wanted, either of which may be square.
pub(super) fn svd(a: &Tensor, vectors: Option<[&Tensor; 2]>, values: &Tensor) -> Result<()> {
    let (m, n) = sizes(a);
    if a.numel() == 0 {
        return vectors.map_or(Ok(()), |[u, vh]| identity(u).and_then(|()| identity(vh)));
    }
    if !item(&ALL.call((ISFINITE.call((a,)),)).ok()?)?.to_bool() {
        let text = "The algorithm failed to converge because the input matrix contained non-finite values.";
        return Err(Error::linalg(text).in_op("linalg.svd"));
    }
    let (is_wide, k) = (m < n, m.min(n));
    let complete = vectors.is_some_and(|[u, vh]| sizes(u).1 > k || sizes(vh).0 > k);
    let given = if is_wide { mt_view(a) } else { a.clone() };
    let (found, parts) = tall_svd(Term::from(&given), vectors.is_some(), complete)?;
    values.copy_raw(&found.ok()?)?;
    let (Some([u, vh]), Some([left, right])) = (vectors, parts) else { return Ok(()) };
    let (left, right) = if is_wide { (right, left) } else { (left, right) };
    let signs = signs(left.clone().cut_out(-1, 0, k));
    for (into, found) in [(u, left), (&mt_view(vh), right)] {
        into.copy_raw(&found.ok()?)?;
        let first = into.with_layout(into.layout().slice(into.ndim() - 1, (0, k, 1)));
        first.copy_raw(&(Term::from(&first) * signs.clone()).ok()?)?;
    }
    Ok(())
}

/// Overwrites eigenvalues in rising order, and eigenvectors where they are wanted. What is not finite makes a matrix's NaN.
pub(super) fn eigh(a: &Tensor, upper: bool, values: &Tensor, vectors: Option<&Tensor>) -> Result<()> {
    if a.numel() == 0 {
        return Ok(());
    }
    let a = if upper { mt_view(a) } else { a.clone() };
    let half = Term::from(&a).lower(0);
    let whole = half.clone() + Term::from(&a).lower(-1).mt();
    let finite = ALL_DIM.call((ISFINITE.call((half,)), [-2, -1]));
    let [a, scale] = scaled(&WHERE.call((finite.clone().whole(), whole, 0)));
    let [rows, vectors_of] = turn(a, Jacobi::Symmetric, "linalg.eigh")?;
    let sorted = SORT.calls((rows.diagonals(), -1, false))?;
    let known = |t: Term, finite: Term| WHERE.call((finite, t, f64::NAN));
    let found = Term::from(&sorted[0]) * scale;
    values.copy_raw(&known(found, finite.clone().unsqueeze(-1)).ok()?)?;
    let Some(vectors) = vectors else { return Ok(()) };
    let found = in_order(vectors_of, &sorted[1]).mt();
    vectors.copy_raw(&known(found.clone() * signs(found), finite.whole()).ok()?)
}
