//! Concatenation: cat, stack and related ops. Each part is copied directly to its place in the result.

use crate::cpu;
use crate::device::Device;
use crate::dtype::promote;
use crate::error::{Error, Result, Show};
use crate::layout::{Format, Layout, wrap_dim};
use crate::op::*;
use crate::ops::support::batch_views;
use crate::ops::view::reshape::{RESHAPE, SLICE};
use crate::ops::view::shape::all_at_least;
use crate::ops::view::split::UNBIND;
use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};

pub static OPS: &[&Op] = &[&CAT, &STACK, &HSTACK, &VSTACK, &DSTACK, &COLUMN_STACK, &BLOCK_DIAG];

/// Concatenates terms along a dimension.
pub(crate) fn joined(parts: impl IntoIterator<Item = Term>, dim: i64) -> Term {
    match parts.into_iter().map(Term::ok).collect::<Result<Vec<Tensor>>>() {
        Ok(parts) => CAT.call((parts, dim)),
        Err(e) => e.into(),
    }
}

/// An empty 1-d tensor is exempt from shape checks: legacy behaviour of PyTorch that programs rely on.
fn is_legacy_empty(shape: &[usize]) -> bool {
    shape == [0]
}

/// The dimension that grows. For only such empty tensors any dimension is valid.
fn cat_dim(c: &impl Arguments, list: &[Tensor]) -> Result<usize> {
    match list.iter().find(|t| !is_legacy_empty(t.shape())) {
        Some(t) => wrap_dim(c.int("dim")?, t.ndim()),
        None => Ok(0),
    }
}

/// If all parts are channels-last, so is the result, as in PyTorch; else it is row-major.
fn joined_layout(list: &[Tensor], shape: &[usize]) -> Result<Layout> {
    let format = list.first().map_or(Format::Contiguous, |t| t.layout().channels_format());
    let agreed = list.iter().all(|t| t.layout().channels_format() == format);
    Layout::contiguous(shape).formed(if agreed { format } else { Format::Contiguous })
}

fn cat_spec(c: &Call) -> Result<Specs> {
    let list = c.tensors("tensors");
    if list.is_empty() {
        return Err(Error::value("expected a non-empty list of Tensors"));
    }
    if let Some(i) = list.iter().position(|t| t.ndim() == 0) {
        return Err(Error::runtime(format!("zero-dimensional tensor (at position {i}) cannot be concatenated")));
    }
    let dim = cat_dim(c, &list)?;
    let kept = || list.iter().enumerate().filter(|(_, t)| !is_legacy_empty(t.shape()));
    let mut shape: crate::layout::Dims = kept().next().map_or([0].as_slice().into(), |(_, t)| t.shape().into());
    if kept().next().is_some() {
        shape[dim] = 0;
    }
    for (i, t) in kept() {
        if t.ndim() != shape.len() {
            return Err(Error::runtime(format!(
                "Tensors must have same number of dimensions: got {} and {}",
                shape.len(),
                t.ndim()
            )));
        }
        if let Some(at) = (0..shape.len()).find(|&k| k != dim && t.size(k) != shape[k]) {
            return Err(Error::runtime(format!(
                "Sizes of tensors must match except in dimension {dim}. Expected size {} but got size {} for tensor number {i} in the list.",
                shape[at],
                t.size(at)
            )));
        }
        shape[dim] += t.size(dim);
    }
    let dtype = list.iter().skip(1).try_fold(list[0].dtype(), |d, t| promote(d, t.dtype()))?;
    Ok(smallvec![Spec { layout: joined_layout(&list, &shape)?, dtype, device: list[0].device() }])
}

/// Interleaves contiguous parts row by row, if that is faster than part by part. Otherwise returns false without
/// writing.
fn joined_by_rows<'a>(parts: impl Iterator<Item = &'a Tensor> + Clone, dim: usize, out: &Tensor) -> Result<bool> {
    let rows = out.shape()[..dim].iter().product();
    let plain = |t: &Tensor| t.device() == Device::Cpu && t.dtype() == out.dtype() && t.is_contiguous();
    if rows < 2 || out.numel() == 0 || !plain(out) || !parts.clone().all(plain) {
        return Ok(false);
    }
    let parts = parts.map(|t| t.cpu_view()).collect::<Result<SmallVec<[_; 4]>>>()?;
    cpu::cat::join(rows, &parts, out.cpu_view()?)
}

fn cat(c: &Call, out: &[Tensor]) -> Result<()> {
    let list = c.tensors("tensors");
    let dim = cat_dim(c, &list)?;
    let kept = list.iter().filter(|t| !is_legacy_empty(t.shape()));
    if joined_by_rows(kept.clone(), dim, &out[0])? {
        return Ok(());
    }
    let mut start = 0;
    for t in kept {
        out[0].with_layout(out[0].layout().slice(dim, (start, t.size(dim), 1))).copy_raw(t)?;
        start += t.size(dim);
    }
    Ok(())
}

pub static CAT: Op = Op {
    sig: sig("cat(Tensor[] tensors, int dim=0) -> Tensor"),
    doc: "Joins tensors along a dimension that exists; all other sizes agree. Dtypes promote; empty 1-d tensors are skipped.",
    aliases: &["concat", "concatenate"],
    forms: FO,
    body: kernel(cat_spec, cat, Some(cat)),
    jvp: Jvp::Linear,
    vjp: Vjp::Joint(Joint { args: &[0], saves: 0, formula: uncat }),
    samples: &[
        "[f32[2,3], f32[1,3]]",
        "[f32[2,1], f32[2,3]], -1",
        "[f32[0], f32[2,2]], 1",
        "[f32[2], i64[2]]",
        "[f32[2,3]]",
    ],
    errors: &[
        ("[f32[2,3], f32[2,4]]", "RuntimeError", "Sizes of tensors must match except in dimension 0"),
        ("[f32[], f32[2]]", "RuntimeError", "zero-dimensional tensor (at position 0)"),
        ("[f32[2], f32[2,2]]", "RuntimeError", "same number of dimensions"),
        ("[f32[2], f32[2]], 1", "IndexError", "Dimension out of range"),
    ],
    reference: "np.concatenate(x0, axis=dim)",
    alias_policy: Some(AliasPolicy::NoAlias),
    out_dtype: Some(OutDType::Castable),
    batch: Batching::Rule(batch_views::cat),
    ..OP
};

/// Splits the gradient into views, one per part.
fn uncat(c: &VjpCtx) -> Result<Vec<Option<Tensor>>> {
    let g = c.g().ok()?;
    let mut start = 0;
    let mut out = Vec::new();
    for (_, f) in c.metas {
        if is_legacy_empty(&f.shape) {
            out.push(Some(Tensor::zeros(&f.shape, f.dtype, f.device)?));
            continue;
        }
        let dim = wrap_dim(c.int("dim"), g.ndim())?;
        let stop = start + f.shape[dim];
        out.push(Some(SLICE.call((&g, dim, start, stop)).ok()?));
        start = stop;
    }
    Ok(out)
}

fn stack_spec(c: &Call) -> Result<Specs> {
    let list = c.tensors("tensors");
    let Some(first) = list.first() else {
        return Err(Error::runtime("stack expects a non-empty TensorList"));
    };
    let dim = c.dim("dim");
    if let Some((i, t)) = list.iter().enumerate().find(|(_, t)| t.shape() != first.shape()) {
        return Err(Error::runtime(format!(
            "stack expects each tensor to be equal size, but got {} at entry 0 and {} at entry {i}",
            Show(first.shape()),
            Show(t.shape())
        )));
    }
    let (mut shape, mut flat) = (first.shape().to_vec(), first.shape().to_vec());
    shape.insert(dim, list.len());
    let dtype = list.iter().skip(1).try_fold(first.dtype(), |d, t| promote(d, t.dtype()))?;
    let layout = if dim < flat.len() {
        // The layout of `cat`, with the dimension split in two.
        flat[dim] *= list.len();
        let mut strides = joined_layout(&list, &flat)?.strides;
        strides.insert(dim, strides[dim] * first.size(dim).max(1));
        Layout { shape: shape.into(), strides, offset: 0 }
    } else {
        Layout::contiguous(&shape)
    };
    Ok(smallvec![Spec { layout, dtype, device: first.device() }])
}

fn stack(c: &Call, out: &[Tensor]) -> Result<()> {
    let dim = c.dim("dim");
    let list = c.tensors("tensors");
    if joined_by_rows(list.iter(), dim, &out[0])? {
        return Ok(());
    }
    for (i, t) in list.iter().enumerate() {
        out[0].with_layout(out[0].layout().select(dim, i)).copy_raw(t)?;
    }
    Ok(())
}

pub static STACK: Op = Op {
    sig: sig("stack(Tensor[] tensors, Dim+ dim=0) -> Tensor"),
    doc: "Joins tensors of one shape along a new dimension. Dtypes promote.",
    forms: FO,
    body: kernel(stack_spec, stack, Some(stack)),
    jvp: Jvp::Linear,
    vjp: Vjp::Joint(Joint {
        args: &[0],
        saves: 0,
        formula: |c| Ok(UNBIND.calls((c.g(), c.int("dim")))?.into_iter().map(Some).collect()),
    }),
    samples: &["[f32[2,3], f32[2,3]]", "[f32[2], f32[2]], -1", "[f32[], f32[]]", "[f32[2], i64[2]], 1"],
    errors: &[
        ("[f32[2], f32[3]]", "RuntimeError", "each tensor to be equal size"),
        ("[f32[2]], 2", "IndexError", "Dimension out of range"),
    ],
    reference: "np.stack(x0, axis=dim)",
    alias_policy: Some(AliasPolicy::NoAlias),
    out_dtype: Some(OutDType::Castable),
    ..OP
};

fn nonempty(c: &Call, name: &str) -> Result<()> {
    match c.args[0].tensors().next() {
        Some(_) => Ok(()),
        None => Err(Error::runtime(format!("{name} expects a non-empty TensorList"))),
    }
}

pub static HSTACK: Op = Op {
    sig: sig("hstack(Tensor[] tensors) -> Tensor"),
    doc: "Joins along columns: dimension 1, or 0 where the tensors have only one.",
    forms: FO,
    body: decompose(|c| {
        nonempty(c, "hstack")?;
        let list = all_at_least(c, 1)?;
        let dim = if list[0].ndim() == 1 { 0 } else { 1 };
        CAT.calls((list, dim))
    }),
    vjp: Vjp::Composite,
    samples: &["[f32[2], f32[3]]", "[f32[2,1], f32[2,3]]", "[f32[], f32[2]]"],
    errors: &[("[f32[2,1], f32[3,1]]", "RuntimeError", "Sizes of tensors must match")],
    reference: "np.hstack(x0)",
    alias_policy: Some(AliasPolicy::NoAlias),
    ..OP
};

pub static VSTACK: Op = Op {
    sig: sig("vstack(Tensor[] tensors) -> Tensor"),
    doc: "Joins along rows; a 1-d tensor is one row.",
    aliases: &["row_stack"],
    forms: FO,
    body: decompose(|c| {
        nonempty(c, "vstack")?;
        CAT.calls((all_at_least(c, 2)?, 0))
    }),
    vjp: Vjp::Composite,
    samples: &["[f32[2], f32[2]]", "[f32[1,2], f32[2,2]]"],
    errors: &[("[f32[2], f32[3]]", "RuntimeError", "Sizes of tensors must match")],
    reference: "np.vstack(x0)",
    alias_policy: Some(AliasPolicy::NoAlias),
    ..OP
};

pub static DSTACK: Op = Op {
    sig: sig("dstack(Tensor[] tensors) -> Tensor"),
    doc: "Joins along the third dimension.",
    forms: FO,
    body: decompose(|c| {
        nonempty(c, "dstack")?;
        CAT.calls((all_at_least(c, 3)?, 2))
    }),
    vjp: Vjp::Composite,
    samples: &["[f32[2], f32[2]]", "[f32[2,3], f32[2,3]]"],
    errors: &[("[f32[2], f32[3]]", "RuntimeError", "Sizes of tensors must match")],
    reference: "np.dstack(x0)",
    alias_policy: Some(AliasPolicy::NoAlias),
    ..OP
};

pub static COLUMN_STACK: Op = Op {
    sig: sig("column_stack(Tensor[] tensors) -> Tensor"),
    doc: "Joins along columns; a 1-d tensor is one column.",
    forms: FO,
    body: decompose(|c| {
        nonempty(c, "column_stack")?;
        let column =
            |t: &Tensor| if t.ndim() <= 1 { RESHAPE.call((t, [t.numel() as i64, 1])).ok() } else { Ok(t.clone()) };
        let list: Result<Vec<_>> = c.args[0].tensors().map(column).collect();
        CAT.calls((list?, 1))
    }),
    vjp: Vjp::Composite,
    samples: &["[f32[2], f32[2]]", "[f32[2], f32[2,3]]"],
    errors: &[("[f32[2], f32[3]]", "RuntimeError", "Sizes of tensors must match")],
    reference: "np.column_stack(x0)",
    alias_policy: Some(AliasPolicy::NoAlias),
    ..OP
};

/// The blocks as matrices, read without history.
fn blocks(list: &[Tensor]) -> Result<Vec<Tensor>> {
    let matrix = |(i, t): (usize, &Tensor)| {
        let l = t.layout();
        Ok(t.with_layout(match t.ndim() {
            0 => l.unsqueeze(0).unsqueeze(0),
            1 => l.unsqueeze(0),
            2 => l.clone(),
            n => {
                return Err(Error::runtime(format!(
                    "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {n} dimensions"
                )));
            }
        }))
    };
    list.iter().enumerate().map(matrix).collect()
}

fn block_diag(c: &Call, out: &[Tensor]) -> Result<()> {
    out[0].fill_raw(crate::dtype::Scalar::Int(0))?;
    let (mut row, mut column) = (0, 0);
    for t in blocks(&c.tensors("tensors"))? {
        let (m, n) = (t.size(0), t.size(1));
        let place = out[0].layout().slice(0, (row, m, 1)).slice(1, (column, n, 1));
        out[0].with_layout(place).copy_raw(&t)?;
        (row, column) = (row + m, column + n);
    }
    Ok(())
}

pub static BLOCK_DIAG: Op = Op {
    sig: sig("block_diag(Tensors tensors=[]) -> Tensor"),
    doc: "A matrix with the given matrices on its diagonal and zeros elsewhere.",
    forms: F,
    body: kernel(
        |c| {
            let list = blocks(&c.tensors("tensors"))?;
            let Some(first) = list.first() else {
                return Ok(Spec::one(&[1, 0], crate::dtype::default_dtype(), Default::default()));
            };
            let total = |d: usize| list.iter().map(|t| t.size(d)).sum();
            let dtype = list.iter().skip(1).try_fold(first.dtype(), |d, t| promote(d, t.dtype()))?;
            Ok(Spec::one(&[total(0), total(1)], dtype, first.device()))
        },
        block_diag,
        Some(block_diag),
    ),
    jvp: Jvp::Linear,
    vjp: Vjp::Joint(Joint { args: &[0], saves: 0, formula: unblock }),
    samples: &["[f32[2,2], f32[1,3]]", "[f32[2], f32[]]", "[f32[1,1], i64[1,2]]"],
    errors: &[("[f32[1,1,1]]", "RuntimeError", "2 or fewer dimensions")],
    keeps: Some(""),
    ..OP
};

fn unblock(c: &VjpCtx) -> Result<Vec<Option<Tensor>>> {
    let g = c.g().ok()?;
    let (mut row, mut column) = (0, 0);
    let mut out = Vec::new();
    for (_, f) in c.metas {
        let n = f.shape.last().copied().unwrap_or(1);
        let m = if f.shape.len() == 2 { f.shape[0] } else { 1 };
        let rows = SLICE.call((&g, 0, row, row + m));
        out.push(Some(RESHAPE.call((SLICE.call((rows, 1, column, column + n)), &*f.shape)).ok()?));
        (row, column) = (row + m, column + n);
    }
    Ok(out)
}
