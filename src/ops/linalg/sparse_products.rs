//! What products of sparse matrices are made of: `python/rustgrad/sparse` calls them with indices and values.

use crate::cpu::index::{Pairs, add_scaled_rows, dots_of_rows};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, Show};
use crate::layout::to_shape;
use crate::op::*;
use crate::ops::create::full::ZEROS;
use crate::ops::indexing::index_select::{INDEX_ADD, INDEX_SELECT};
use crate::ops::support::batch::no_rule;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&SPARSE_TIMES_DENSE, &SAMPLED_PRODUCT];

/// Two lists of indices of one length.
fn check_indices(c: &Call) -> Result<()> {
    for name in ["row", "column"] {
        let t = c.tensor(name)?;
        if t.ndim() != 1 || t.dtype() != DType::I64 || t.shape() != c.tensor("row")?.shape() {
            return Err(Error::runtime(format!(
                "expected two lists of int64 of one length, got '{name}' of torch.{} and shape {}",
                t.dtype(),
                Show(t.shape())
            )));
        }
    }
    Ok(())
}

/// Whether a tensor has the shape, dtype and device that another argument asks for.
fn check_like(c: &Call, name: &str, shape: &[usize], like: &Tensor) -> Result<()> {
    let t = c.tensor(name)?;
    if t.shape() != shape || t.dtype() != like.dtype() || t.device() != like.device() {
        return Err(Error::runtime(format!(
            "expected '{name}' of torch.{} and shape {} on {}, got torch.{} and {} on {}",
            like.dtype(),
            Show(shape),
            like.device(),
            t.dtype(),
            Show(t.shape()),
            t.device()
        )));
    }
    Ok(())
}

/// Whether the loops of the CPU are for this tensor; other dtypes and the GPU compose.
fn has_loop(t: &Tensor) -> bool {
    !t.device().is_gpu() && matches!(t.dtype(), DType::F32 | DType::F64)
}

/// The rows of a matrix, each as often as a list of indices says.
fn rows(t: &Tensor, index: &Tensor) -> Term {
    INDEX_SELECT.call((t, 0, index))
}

pub static SPARSE_TIMES_DENSE: Op = Op {
    sig: sig("_sparse_times_dense(Tensor~ row, Tensor~ column, Tensor values, Tensor mat, int rows) -> Tensor"),
    doc: "The product of a sparse matrix, given as indices and values, and a dense one: `out[row[i]] += values[i] * mat[column[i]]`.",
    forms: HIDDEN,
    body: kernel(times_infer, times, Some(times)),
    vjp: Vjp::Each(&[
        d(2, A0 | A1 | A3, |c| SAMPLED_PRODUCT.call((c.arg(0), c.arg(1), c.g(), c.arg(3).conj()))),
        d(3, A0 | A1 | A2, |c| {
            let rows = c.shape(3)[0] as i64;
            SPARSE_TIMES_DENSE.call((c.arg(1), c.arg(0), c.arg(2).conj(), c.g(), rows))
        }),
    ]),
    samples: &[
        "i64[4](=0,1,1,0), i64[4](=1,0,2,1), f32[4], f32[3,5], 3",
        "i64[3](=2,0,2), i64[3](=1,1,1), f64[3], f64[2,33], 3",
        "i64[2](=0,1), i64[2](=1,0), c64[2], c64[2,3], 2",
        "i64[0], i64[0], f32[0], f32[2,3], 2",
    ],
    errors: &[
        ("i64[1](=7), i64[1](=0), f32[1], f32[2,3], 2", "IndexError", "index out of range"),
        ("i64[1](=0), i64[1](=-1), f32[1], f32[2,3], 2", "IndexError", "index out of range"),
        ("i64[2](=0,1), i64[1](=0), f32[2], f32[2,3], 2", "RuntimeError", "lists of int64 of one length"),
        ("i64[1](=0), i64[1](=0), f64[1], f32[2,3], 2", "RuntimeError", "expected 'values' of torch.float32"),
        ("i64[1](=0), i64[1](=0), f32[1], f32[3], 2", "RuntimeError", "must be a matrix"),
    ],
    batch: Batching::Rule(times_batched),
    ..OP
};

fn times_infer(c: &Call) -> Result<Specs> {
    check_indices(c)?;
    let mat = c.tensor("mat")?;
    if mat.ndim() != 2 {
        return Err(Error::runtime(format!("'mat' must be a matrix, got shape {}", Show(mat.shape()))));
    }
    check_like(c, "values", c.tensor("row")?.shape(), mat)?;
    Ok(Spec::one(&to_shape(&[c.int("rows")?, mat.size(1) as i64])?, mat.dtype(), mat.device()))
}

fn times(c: &Call, out: &[Tensor]) -> Result<()> {
    let [row, column, values, mat] = [c.tensor("row")?, c.tensor("column")?, c.tensor("values")?, c.tensor("mat")?];
    if !has_loop(mat) {
        let zeros = Tensor::zeros(out[0].shape(), out[0].dtype(), out[0].device())?;
        let terms = rows(mat, column) * Term::from(values).unsqueeze(1);
        return out[0].copy_raw(&INDEX_ADD.call((&zeros, 0, row, terms)).ok()?);
    }
    out[0].fill_raw(Scalar::Int(0))?;
    let (values, mat) = (values.dense_copy(values.dtype())?, mat.dense_copy(mat.dtype())?);
    let pairs = Pairs { row: row.cpu_view()?, column: column.cpu_view()? };
    add_scaled_rows(out[0].cpu_view()?, pairs, values.cpu_view()?, mat.cpu_view()?)
}

/// The rows of a matrix, or of each of a batch, each as often as an index that all examples share says.
fn rows_of_each(c: &BatchedCall, i: usize, index: &Tensor) -> Result<Term> {
    Ok(INDEX_SELECT.call((c.tensor(i)?, i64::from(c.is_batched(i)), index)))
}

/// Indices that all examples share: their products are those of the steps, side by side.
fn times_batched(c: &BatchedCall) -> Result<Outputs> {
    if c.is_batched(0) || c.is_batched(1) {
        return Err(no_rule());
    }
    let mat = c.tensor("mat")?;
    let terms = rows_of_each(c, 3, c.tensor("column")?)? * Term::from(c.tensor("values")?).unsqueeze(-1);
    let shape = [c.size as i64, c.int("rows")?, c.shape(3)[1] as i64];
    INDEX_ADD.calls((ZEROS.call((shape, mat.dtype(), mat.device())), 1, c.tensor("row")?, terms))
}

fn sampled_batched(c: &BatchedCall) -> Result<Outputs> {
    if c.is_batched(0) || c.is_batched(1) {
        return Err(no_rule());
    }
    (rows_of_each(c, 2, c.tensor("row")?)? * rows_of_each(c, 3, c.tensor("column")?)?).sum(&[-1], false).outputs()
}

pub static SAMPLED_PRODUCT: Op = Op {
    sig: sig("_sampled_product(Tensor~ row, Tensor~ column, Tensor a, Tensor b) -> Tensor"),
    doc: "Elements of `a @ b.t()`, given by their indices: `out[i] = sum(a[row[i]] * b[column[i]])`.",
    forms: HIDDEN,
    body: kernel(sampled_infer, sampled, Some(sampled)),
    vjp: Vjp::Each(&[
        d(2, A0 | A1 | A3, |c| {
            let rows = c.shape(2)[0] as i64;
            SPARSE_TIMES_DENSE.call((c.arg(0), c.arg(1), c.g(), c.arg(3).conj(), rows))
        }),
        d(3, A0 | A1 | A2, |c| {
            let rows = c.shape(3)[0] as i64;
            SPARSE_TIMES_DENSE.call((c.arg(1), c.arg(0), c.g(), c.arg(2).conj(), rows))
        }),
    ]),
    samples: &[
        "i64[4](=0,1,1,0), i64[4](=1,0,2,1), f32[2,5], f32[3,5]",
        "i64[2](=2,0), i64[2](=1,1), f64[3,41], f64[2,41]",
        "i64[2](=0,1), i64[2](=1,0), c64[2,3], c64[2,3]",
        "i64[0], i64[0], f32[2,3], f32[2,3]",
    ],
    errors: &[
        ("i64[1](=7), i64[1](=0), f32[2,3], f32[2,3]", "IndexError", "index out of range"),
        ("i64[1](=0), i64[1](=0), f32[2,3], f32[2,4]", "RuntimeError", "rows of one length"),
        ("f32[1], i64[1](=0), f32[2,3], f32[2,3]", "RuntimeError", "lists of int64 of one length"),
    ],
    batch: Batching::Rule(sampled_batched),
    ..OP
};

fn sampled_infer(c: &Call) -> Result<Specs> {
    check_indices(c)?;
    let (a, b) = (c.tensor("a")?, c.tensor("b")?);
    if a.ndim() != 2 || b.ndim() != 2 || a.size(1) != b.size(1) {
        let shapes = [Show(a.shape()), Show(b.shape())];
        return Err(Error::runtime(format!(
            "expected two matrices with rows of one length, got shapes {} and {}",
            shapes[0], shapes[1]
        )));
    }
    check_like(c, "b", b.shape(), a)?;
    Ok(Spec::one(c.tensor("row")?.shape(), a.dtype(), a.device()))
}

fn sampled(c: &Call, out: &[Tensor]) -> Result<()> {
    let [row, column, a, b] = [c.tensor("row")?, c.tensor("column")?, c.tensor("a")?, c.tensor("b")?];
    if !has_loop(a) {
        return out[0].copy_raw(&(rows(a, row) * rows(b, column)).sum(&[1], false).ok()?);
    }
    let (a, b) = (a.dense_copy(a.dtype())?, b.dense_copy(b.dtype())?);
    let pairs = Pairs { row: row.cpu_view()?, column: column.cpu_view()? };
    dots_of_rows(out[0].cpu_view()?, pairs, a.cpu_view()?, b.cpu_view()?)
}
