//! Shared by the decompositions: checks with PyTorch's messages, iteration over a batch, matrix methods of terms.

use super::matmul::MATMUL;
use crate::cpu::linalg::{Batch, over};
use crate::cpu::view::View;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Dims, broadcast};
use crate::op::*;
use crate::ops::create::range::EYE;
pub(crate) use crate::ops::movement::cat::joined;
use crate::ops::movement::triangular::{TRIL, TRIU};
use crate::ops::reduce::any_all::ANY;
use crate::ops::support::host_read::{int_list, item};
use crate::ops::view::slice::DIAGONAL;
use crate::tensor::Tensor;

/// The parts that ops on matrices take over: most have no shader, and most write the result's own dtype.
pub(crate) const MATRIX: Op = Op { forms: FO, on_host: true, out_dtype: Some(OutDType::Same), ..OP };
/// Those whose steps have shaders.
pub(crate) const SOLVER: Op = Op { on_host: false, ..MATRIX };
/// A step of one of them.
pub(crate) const STEP: Op = Op { forms: HIDDEN, ..MATRIX };

/// Requires at least a matrix, of any dtype; `name` is the op's, for the error.
pub(crate) fn ranked(t: &Tensor, name: &'static str) -> Result<()> {
    match t.ndim() {
        0 | 1 => Err(Error::runtime("The input tensor A must have at least 2 dimensions.").in_op(name)),
        _ => Ok(()),
    }
}

/// Requires at least a matrix, of a dtype with decompositions.
pub(crate) fn matrices(t: &Tensor, name: &'static str) -> Result<()> {
    ranked(t, name)?;
    let (d, shown) = (t.dtype(), t.dtype().scalar_type_name());
    if !d.is_differentiable() {
        let text = format!("Expected a floating point or complex tensor as input. Got {shown}");
        return Err(Error::not_implemented(text).in_op(name));
    }
    if d.is_narrow_float() || d == DType::C32 {
        return Err(Error::not_implemented(format!("Low precision dtypes not supported. Got {shown}")).in_op(name));
    }
    Ok(())
}

/// Requires square matrices.
pub(crate) fn square(t: &Tensor, name: &'static str) -> Result<()> {
    square_of_any(t, name)?;
    matrices(t, name)
}
/// Requires square matrices of any dtype.
pub(crate) fn square_of_any(t: &Tensor, name: &'static str) -> Result<()> {
    ranked(t, name)?;
    let (m, n) = sizes(t);
    if m == n {
        return Ok(());
    }
    let text = format!("A must be batches of square matrices, but they are {m} by {n} matrices");
    Err(Error::runtime(text).in_op(name))
}

/// The distance from one to the next number.
pub(crate) fn epsilon(d: DType) -> f64 {
    if d.to_real() == DType::F64 { f64::EPSILON } else { f32::EPSILON.into() }
}

/// Rows and columns.
pub(crate) fn sizes(t: &Tensor) -> (usize, usize) {
    (t.size(t.ndim() - 2), t.size(t.ndim() - 1))
}
/// The leading dimensions.
pub(crate) fn lead(t: &Tensor) -> &[usize] {
    &t.shape()[..t.ndim() - 2]
}
/// A result with the leading dimensions of `t`.
pub(crate) fn part(t: &Tensor, core: &[usize], dtype: DType) -> Spec {
    let shape: Dims = lead(t).iter().chain(core).copied().collect();
    Spec::new(&shape, dtype, t.device())
}
/// The same with column-major matrices, as in LAPACK.
pub(crate) fn columns(t: &Tensor, rows: usize, cols: usize, dtype: DType) -> Spec {
    let spec = part(t, &[cols, rows], dtype);
    Spec { layout: spec.layout.transpose(t.ndim() - 2, t.ndim() - 1), ..spec }
}
/// The same of the shape and dtype of `t`.
pub(crate) fn columns_like(t: &Tensor) -> Spec {
    let (m, n) = sizes(t);
    columns(t, m, n, t.dtype())
}
/// One number for each matrix.
pub(crate) fn infos(t: &Tensor) -> Spec {
    part(t, &[], DType::I32)
}

/// Broadcasts the leading dimensions of both.
pub(crate) fn together(a: Term, b: Term) -> Result<(Term, Term)> {
    let (a, b) = (a.ok()?, b.ok()?);
    let batch = broadcast(lead(&a), lead(&b))?;
    let wide = |t: &Tensor| {
        let shape: Ints = batch.iter().chain(&t.shape()[t.ndim() - 2..]).map(|&d| d as i64).collect();
        Term::from(t).expand(&shape)
    };
    Ok((wide(&a), wide(&b)))
}

/// Runs `work` on every matrix of the operands, inputs first.
pub(crate) fn run(operands: &[&Tensor], lead: usize, work: &impl Batch) -> Result<()> {
    let views = operands.iter().map(|t| t.cpu_view()).collect::<Result<Vec<View>>>()?;
    over(&views, lead, work)
}
/// The tensor with its last two dimensions transposed, without history.
pub(crate) fn mt_view(t: &Tensor) -> Tensor {
    t.with_layout(t.layout().transpose(t.ndim() - 2, t.ndim() - 1))
}

/// The class of the error of a matrix that failed.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Failure {
    Linalg,
    Runtime,
}

/// An error if a matrix of the batch failed: `info` has a number for each, zero on success; it stands for `{i}` in
/// the text.
pub(crate) fn succeeded(info: &Tensor, name: &'static str, class: Failure, text: &'static str) -> Result<()> {
    CHECK_ERRORS.calls((info, name, text, class == Failure::Linalg)).map(drop)
}

pub static OPS: &[&Op] = &[&CHECK_ERRORS];

pub static CHECK_ERRORS: Op = Op {
    sig: sig("_linalg_check_errors(Tensor info, str name, str text, bool linalg=True) -> Tensor[]"),
    doc: "A `LinAlgError` (or RuntimeError) with this text unless every element of `info` is zero; no results.",
    body: opaque(|_| Ok(Specs::new()), |c| check_errors(c).map(|()| Outputs::new())),
    vjp: Vjp::None("a check"),
    samples: &["i32[2](zeros), 'linalg.inv', 'no'"],
    errors: &[
        ("i32[2](= 0, 3), 'linalg.inv', 'pivot {i}'", "LinAlgError", "linalg.inv: (Batch element 1): pivot 3"),
        ("i32[](= 2), 'linalg.inv', 'pivot {i}', False", "RuntimeError", "linalg.inv: pivot 2"),
    ],
    reference: "[]",
    on_host: false,
    ..STEP
};

/// Whether flags on a GPU are known to be zero by reading one number, so that no list is read back where all is well.
pub(crate) fn all_zero(flags: &Tensor) -> Result<bool> {
    Ok(flags.device().is_gpu() && flags.numel() > 1 && !item(&ANY.call((flags,)).ok()?)?.to_bool())
}

fn check_errors(c: &Call) -> Result<()> {
    let (info, given) = (c.tensor("info")?, |i: usize| c.str(i).unwrap_or_default());
    if all_zero(info)? {
        return Ok(());
    }
    let codes = int_list(info)?;
    let Some((i, code)) = codes.iter().enumerate().find(|(_, code)| **code != 0) else { return Ok(()) };
    let which = if info.ndim() > 0 { format!("(Batch element {i}): ") } else { String::new() };
    let text = format!("{which}{}", given(2).replace("{i}", &code.to_string()));
    let error = if c.flag("linalg") { Error::linalg(text) } else { Error::runtime(text) };
    Err(error.in_op(given(1).to_string()))
}
/// Drops the last output, which holds the status; `check` turns it into an error.
pub(crate) fn without_info(mut out: Outputs, check: impl FnOnce(&Tensor) -> Result<()>) -> Result<Outputs> {
    let info = out.pop().ok_or_else(|| Error::internal("a decomposition without its info"))?;
    check(&info).map(|()| out)
}

/// Several terms as the outputs of a composite.
pub(crate) fn all<const N: usize>(terms: [Term; N]) -> Result<Outputs> {
    terms.into_iter().map(Term::ok).collect()
}
/// The first output of an op that has several.
pub(crate) fn first<'a>(op: &'static Op, args: impl IntoArgs<'a>) -> Term {
    Term(op.calls(args).map(|mut out| out.swap_remove(0)))
}

impl Term {
    /// The matrix product.
    pub(crate) fn at<'a>(self, b: impl IntoArg<'a>) -> Term {
        MATMUL.call((self, b))
    }
    /// The matrix product, column-major.
    pub(crate) fn at_by_columns(self, b: impl Into<Term>) -> Term {
        b.into().mt().at(self.mt()).mt()
    }
    /// The conjugate transpose.
    pub(crate) fn mh(self) -> Term {
        if self.is_complex() { self.mt().conj() } else { self.mt() }
    }
    pub(crate) fn lower(self, diagonal: i64) -> Term {
        TRIL.call((self, diagonal))
    }
    pub(crate) fn upper(self, diagonal: i64) -> Term {
        TRIU.call((self, diagonal))
    }
    pub(crate) fn diagonals(self) -> Term {
        DIAGONAL.call((self, 0, -2, -1))
    }
    /// One number per matrix, reshaped to multiply the whole matrix.
    pub(crate) fn whole(self) -> Term {
        self.unsqueeze(-1).unsqueeze(-1)
    }
    /// `n` columns (or rows: `dim` -2) from `start`.
    pub(crate) fn cut_out(self, dim: i64, start: usize, n: usize) -> Term {
        crate::ops::view::slice::NARROW.call((self, dim, start, n))
    }
    /// The identity of the order of these matrices, in their dtype.
    pub(crate) fn eye(&self) -> Term {
        let Some(t) = self.get() else { return self.clone() };
        EYE.call((t.size(t.ndim() - 1), t.dtype(), t.device()))
    }
}
