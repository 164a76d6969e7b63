//! Triangles and diagonals of matrices: tril, triu, their indices, diag and diag_embed.

use crate::cpu::flip;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::{Dims, Layout};
use crate::op::*;
use crate::ops::support::promotion::no_kernel;
use crate::ops::view::slice::DIAGONAL;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] =
    &[&TRIL, &TRIU, &TRIL_INDICES, &TRIU_INDICES, &DIAG, &DIAG_EMBED, &DIAGONAL_COPY, &DIAGFLAT, &FILL_DIAGONAL_];

fn matrix<'a>(c: &'a Call) -> Result<&'a Tensor> {
    let t = c.tensor(0)?;
    match t.ndim() {
        0 | 1 => Err(Error::runtime(format!("{}: input tensor must have at least 2 dimensions", c.op.base()))),
        _ => Ok(t),
    }
}

fn tri_cpu<const UPPER: bool>(c: &Call, out: &[Tensor]) -> Result<()> {
    flip::triangle(matrix(c)?.cpu_view()?, c.int("diagonal")?, UPPER, out[0].cpu_view()?)
}

fn tri_gpu<const UPPER: bool>(c: &Call, out: &[Tensor]) -> Result<()> {
    gpu::triangle(&matrix(c)?.gpu_view()?, c.int("diagonal")?, UPPER, &out[0].gpu_view()?)
}

fn like_matrix(c: &Call) -> Result<Specs> {
    Ok(smallvec![Spec::like(matrix(c)?)])
}

/// Only zeros are written, so a location that several elements alias becomes zero if one of them is cleared.
const SHARED_PLACES: Option<Expanded> = Some(Expanded { warning: None, once: |_| Ok(None) });

pub static TRIL: Op = Op {
    sig: sig("tril(Tensor self, int diagonal=0) -> Tensor"),
    doc: "The lower triangle of matrices, zeros above the given diagonal.",
    forms: FMIO,
    body: kernel_onto(like_matrix, tri_cpu::<false>, Some(tri_gpu::<false>)),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| TRIL.call((c.g(), c.int("diagonal"))))]),
    samples: &["f32[3,3]", "f32[2,3,4], 1", "f32[3,2], -1", "i64[3,3]"],
    errors: &[("f32[3]", "RuntimeError", "at least 2 dimensions")],
    reference: "np.tril(x0, diagonal)",
    expanded: SHARED_PLACES,
    batch: Batching::Leading,
    ..OP
};

pub static TRIU: Op = Op {
    sig: sig("triu(Tensor self, int diagonal=0) -> Tensor"),
    doc: "The upper triangle of matrices, zeros below the given diagonal.",
    forms: FMIO,
    body: kernel_onto(like_matrix, tri_cpu::<true>, Some(tri_gpu::<true>)),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| TRIU.call((c.g(), c.int("diagonal"))))]),
    samples: &["f32[3,3]", "f32[2,3,4], 1", "f32[3,2], -1", "i64[3,3]"],
    errors: &[("f32[3]", "RuntimeError", "at least 2 dimensions")],
    reference: "np.triu(x0, diagonal)",
    expanded: SHARED_PLACES,
    batch: Batching::Leading,
    ..OP
};

/// The columns of a triangle in row `i`.
fn columns_of(i: i64, cols: i64, offset: i64, upper: bool) -> std::ops::Range<i64> {
    let edge = i.saturating_add(offset).saturating_add(!upper as i64).clamp(0, cols);
    if upper { edge..cols } else { 0..edge }
}

/// A [2, n] tensor for the n elements of a triangle.
fn tri_specs(c: &Call, upper: bool) -> Result<Specs> {
    let (rows, cols, offset) = (c.int("row")?, c.int("col")?, c.int("offset")?);
    let dtype = c.dtype("dtype").unwrap_or(DType::I64);
    if !matches!(dtype, DType::I32 | DType::I64) {
        return Err(no_kernel(c.op.base(), dtype));
    }
    if rows < 0 || cols < 0 {
        let (name, v) = if rows < 0 { ("row", rows) } else { ("col", cols) };
        return Err(Error::runtime(format!("{name} must be non-negative, got{v}")));
    }
    if rows.checked_mul(cols).is_none_or(|n| n > 1 << 28) {
        return Err(Error::out_of_memory((rows as usize).saturating_mul(cols as usize).saturating_mul(16), "cpu"));
    }
    let in_row = |i| columns_of(i, cols, offset, upper);
    let n = (0..if cols == 0 { 0 } else { rows }).map(|i| in_row(i).count()).sum();
    Ok(Spec::one(&[2, n], dtype, c.device("device").unwrap_or_default()))
}

/// The rows and columns of the elements of a triangle.
fn tri_indices(c: &Call, out: &Tensor, upper: bool) -> Result<()> {
    let (rows, cols, offset) = (c.int("row")?, c.int("col")?, c.int("offset")?);
    let n = out.size(1);
    let mut both = crate::rt::reserve::filled(0i64, 2 * n)?;
    let places =
        (0..if cols == 0 { 0 } else { rows }).flat_map(|i| columns_of(i, cols, offset, upper).map(move |k| (i, k)));
    for (at, (i, k)) in places.enumerate() {
        (both[at], both[n + at]) = (i, k);
    }
    out.copy_raw(&Tensor::from_slice(&both, &[2, n])?)
}

pub static TRIL_INDICES: Op = Op {
    sig: sig(
        "tril_indices(int row, int col, int offset=0, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "Rows and columns of the lower triangle of a `row` x `col` matrix, in row-major order, as a [2, n] tensor.",
    forms: F,
    body: factory(|c| tri_specs(c, false), |c, out| tri_indices(c, &out[0], false)),
    vjp: Vjp::None("indices"),
    samples: &["3, 3", "2, 4, 1", "3, 2, -1"],
    errors: &[("-1, 2", "RuntimeError", "row must be non-negative")],
    reference: "np.stack(np.tril_indices(row, offset, col))",
    ..OP
};

pub static TRIU_INDICES: Op = Op {
    sig: sig(
        "triu_indices(int row, int col, int offset=0, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "Rows and columns of the upper triangle of a `row` x `col` matrix, in row-major order, as a [2, n] tensor.",
    forms: F,
    body: factory(|c| tri_specs(c, true), |c, out| tri_indices(c, &out[0], true)),
    vjp: Vjp::None("indices"),
    samples: &["3, 3", "2, 4, 1", "3, 2, -1"],
    errors: &[("2, -1", "RuntimeError", "col must be non-negative")],
    reference: "np.stack(np.triu_indices(row, offset, col))",
    ..OP
};

/// The two dimensions of the result that the diagonal runs over, and the result's shape.
fn embedded(c: &impl Dimensions) -> Result<(usize, usize, Dims)> {
    let (t, offset) = (c.tensor(0)?, c.int("offset")?);
    let _n = t.ndim() + 1;
    let (a, b) = (c.dim("dim1"), c.dim("dim2"));
    if a == b {
        return Err(Error::runtime(format!(
            "diagonal dimensions cannot be identical {}, {}",
            c.int("dim1")?,
            c.int("dim2")?
        )));
    }
    let Some((&last, front)) = t.shape().split_last() else {
        return Err(Error::dim_range(-1, 0));
    };
    let side = last.saturating_add(offset.unsigned_abs() as usize);
    let mut shape: Dims = front.into();
    shape.insert(a.min(b), side);
    shape.insert(a.max(b), side);
    Ok((a, b, shape))
}

fn embed(c: &Call, out: &[Tensor]) -> Result<()> {
    let (a, b, _) = embedded(c)?;
    out[0].fill_raw(Scalar::Int(0))?;
    out[0].with_layout(out[0].layout().diagonal(c.int("offset")?, a as i64, b as i64)?).copy_raw(c.tensor(0)?)
}

pub static DIAG_EMBED: Op = Op {
    sig: sig("diag_embed(Tensor self, int offset=0, Dim+ dim1=-2, Dim+ dim2=-1) -> Tensor"),
    doc: "Matrices whose diagonals are the last dimension of the input, zeros elsewhere.",
    body: kernel(
        |c| {
            let t = c.tensor(0)?;
            Ok(Spec::one(&embedded(c)?.2, t.dtype(), t.device()))
        },
        embed,
        Some(embed),
    ),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let at = |i| c.int(i);
        DIAGONAL.call((c.g(), at(1), at(2), at(3)))
    })]),
    samples: &["f32[3]", "f32[2,3], 1", "f32[2,3], -1, 0, 2"],
    errors: &[
        ("f32[3], 0, 1, 1", "RuntimeError", "cannot be identical"),
        ("f32[3], 0, 0, 2", "IndexError", "Dimension out of range"),
    ],
    ..OP
};

pub static DIAG: Op = Op {
    sig: sig("diag(Tensor self, int diagonal=0) -> Tensor"),
    doc: "The diagonal of a matrix, copied, or the matrix with the given diagonal.",
    forms: FMO,
    body: decompose(|c| {
        let t = c.tensor(0)?;
        match t.ndim() {
            1 => DIAG_EMBED.calls((t, c.int("diagonal")?)),
            2 => DIAGONAL_COPY.calls((t, c.int("diagonal")?)),
            n => Err(Error::runtime(format!("diag(): Supports 1D or 2D tensors. Got {n}D"))),
        }
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3]", "f32[3,4]", "f32[2], 1", "f32[3,3], -1"],
    errors: &[("f32[2,2,2]", "RuntimeError", "Supports 1D or 2D tensors")],
    reference: "np.diag(x0, diagonal)",
    out_dtype: Some(OutDType::Same),
    ..OP
};

fn diagonal_of(t: &Tensor, c: &impl Arguments) -> Result<Tensor> {
    Ok(t.with_layout(t.layout().diagonal(c.int("offset")?, c.int("dim1")?, c.int("dim2")?)?))
}

pub static DIAGONAL_COPY: Op = Op {
    sig: sig("diagonal_copy(Tensor self, int offset=0, Dim dim1=0, Dim dim2=1) -> Tensor"),
    doc: "The diagonal of two dimensions in new memory.",
    forms: FO,
    body: kernel(
        |c| Ok(smallvec![Spec::like(&diagonal_of(c.tensor(0)?, c)?)]),
        |c, out| out[0].copy_raw(&diagonal_of(c.tensor(0)?, c)?),
        Some(|c, out| out[0].copy_raw(&diagonal_of(c.tensor(0)?, c)?)),
    ),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let at = |i| c.int(i);
        c.unwindow(&crate::ops::view::slice::DIAGONAL_BACKWARD, |l| l.diagonal(at(1), at(2), at(3)))
    })]),
    node: "DiagonalBackward0_copy",
    samples: &["f32[3,4]", "f32[2,3,4], 1, 1, 2"],
    errors: &[("f32[3,3], 0, 1, 1", "RuntimeError", "cannot be identical")],
    reference: "np.diagonal(x0, offset, dim1, dim2)",
    keeps: Some("dim1 dim2 offset self_sym_sizes"),
    ..OP
};

pub static DIAGFLAT: Op = Op {
    sig: sig("diagflat(Tensor self, int offset=0) -> Tensor"),
    doc: "The matrix whose diagonal holds all elements of the input.",
    body: decompose(|c| Term::from(c.tensor(0)?).contiguous().reshape(&[-1]).diag_embed(c.int("offset")?).outputs()),
    vjp: Vjp::Composite,
    samples: &["f32[3]", "f32[2,2], 1"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    reference: "np.diagflat(x0, offset)",
    ..OP
};

impl Term {
    pub fn diag_embed(self, offset: i64) -> Term {
        DIAG_EMBED.call((self, offset))
    }
}

pub static FILL_DIAGONAL_: Op = Op {
    sig: sig("fill_diagonal_(Tensor! self, Scalar fill_value, bool wrap=False) -> Tensor"),
    doc: "Writes a number to the elements `[i, i, .., i]`; with `wrap` the diagonal of a high matrix begins again after a row without one.",
    forms: ONLY_INPLACE,
    body: kernel_into(fill_diagonal, Some(fill_diagonal)),
    vjp: Vjp::Each(&[d(0, 0, |c| FILL_DIAGONAL_.call((c.g(), 0, c.flag("wrap"))))]),
    // In PyTorch the write to a view of the diagonal.
    node: "CopySlices",
    keeps: Some(""),
    samples: &[
        "f32[3,3], 2.0",
        "f32[2,4], 1",
        "f32[7,2], 3.0, wrap=True",
        "f32[7,2], 3.0",
        "f32[2,2,2], 1.5",
        "i64[3,3], 4",
    ],
    errors: &[
        ("f32[3], 1.0", "RuntimeError", "dimensions must larger than 1"),
        ("f32[2,3,2], 1.0", "RuntimeError", "all dimensions of input must be of equal length"),
    ],
    ..OP
};

fn fill_diagonal(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, value) = (&out[0], c.scalar("fill_value")?);
    let (shape, strides) = (t.shape(), t.strides());
    if shape.len() < 2 {
        return Err(Error::runtime("dimensions must larger than 1"));
    }
    if shape.len() > 2 && shape.iter().any(|&n| n != shape[0]) {
        return Err(Error::runtime("all dimensions of input must be of equal length"));
    }
    value.check_fits(t.dtype())?;
    let (rows, columns) = (shape[0], shape[1]);
    let fill = |first_row: usize, n: usize, step: usize| {
        let offset = t.layout().offset + first_row * strides[0];
        let line = Layout { shape: smallvec![n], strides: smallvec![step], offset };
        if n == 0 { Ok(()) } else { t.with_layout(line).fill_raw(value) }
    };
    let wraps = c.flag("wrap") && shape.len() == 2 && rows > columns + 1;
    if wraps && t.is_contiguous() {
        // One line through all rows.
        return fill(0, t.numel().div_ceil(columns + 1), columns + 1);
    }
    let step = strides.iter().sum();
    let starts = (0..rows).step_by(columns + 1).take(if wraps { rows } else { 1 });
    starts.into_iter().try_for_each(|row| fill(row, columns.min(rows - row), step))
}
