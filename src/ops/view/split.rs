//! Splitting a dimension, mostly into views: split, chunk and unbind. Their gradients concatenate the parts again.

use super::slice::{split_layouts, views};
use crate::error::{Error, Result};
use crate::layout::{Layout, wrap_dim};
use crate::op::*;
use crate::tensor::{Meta, Tensor};

pub static OPS: &[&Op] =
    &[&SPLIT, &SPLIT_SIZES, &SPLIT_WITH_SIZES, &UNSAFE_SPLIT, &UNSAFE_SPLIT_WITH_SIZES, &CHUNK, &UNSAFE_CHUNK, &UNBIND];

fn equal_parts(c: &Call) -> Result<Vec<Layout>> {
    let (t, step) = (c.tensor(0)?, c.int(1)?);
    let dim = nonscalar_dim(c, "split expects at least a 1-dimensional tensor")?;
    let n = t.size(dim) as i64;
    if step < 0 {
        return Err(Error::runtime(format!("split expects split_size be non-negative, but got split_size={step}")));
    }
    if step == 0 && n != 0 {
        return Err(Error::runtime(format!(
            "split_size can only be 0 if dimension size is 0, but got dimension size of {n}"
        )));
    }
    if n == 0 {
        return split_layouts(c, &[0]);
    }
    let (n, step) = (n as usize, step as usize);
    let mut out = views(n.div_ceil(step))?;
    out.extend((0..n).step_by(step).map(|start| t.layout().slice(dim, (start, step.min(n - start), 1))));
    Ok(out)
}

/// The same parts of every example: the dimension, an `int`, is one further back.
fn behind_batch(c: &BatchedCall) -> Result<Outputs> {
    let mut args: Args = c.args.iter().map(|v| v.reborrow()).collect();
    args[2] = (wrap_dim(c.int("dim")?, c.ndim(0))? as i64 + 1).into();
    c.again(&args)
}

pub static SPLIT: Op = Op {
    sig: sig("split(Tensor self|tensor, int split_size_or_sections|split_size, int dim=0) -> Tensor[]"),
    doc: "Cuts a dimension into parts of a size; the last one may be smaller.",
    body: Body::Views(equal_parts),
    vjp: Vjp::Each(&[d(0, 0, joined)]),
    samples: &["f32[5,2], 2", "f32[2,4], 2, 1", "f32[3], 5"],
    errors: &[("f32[5], -1", "RuntimeError", "non-negative"), ("f32[5], 0", "RuntimeError", "can only be 0")],
    keeps: Some("dim self_sym_sizes split_size=split_size_or_sections"),
    batch: Batching::Rule(behind_batch),
    ..OP
};

pub static SPLIT_SIZES: Op = Op {
    sig: sig("split.sizes(Tensor self|tensor, int[] split_size_or_sections|split_size, int dim=0) -> Tensor[]"),
    doc: "Cuts a dimension into parts of the given sizes.",
    body: Body::Views(|c| split_layouts(c, c.ints("split_size_or_sections")?)),
    vjp: Vjp::Each(&[d(0, 0, joined)]),
    node: "SplitWithSizesBackward0",
    samples: &["f32[5,2], (2, 3)", "f32[2,4], (4,), 1"],
    errors: &[
        ("f32[5], (2, 2)", "RuntimeError", "split_with_sizes expects"),
        ("f32[5], (-1, 6)", "RuntimeError", "non-negative"),
    ],
    keeps: Some("dim self_sym_sizes split_sizes=split_size_or_sections"),
    batch: Batching::Rule(behind_batch),
    ..OP
};

pub static SPLIT_WITH_SIZES: Op = Op {
    sig: sig("split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]"),
    doc: "Cuts a dimension into parts of the given sizes.",
    body: decompose(|c| SPLIT_SIZES.calls((c.tensor(0)?, c.ints("split_sizes")?, c.int("dim")?))),
    vjp: Vjp::Composite,
    samples: &["f32[5,2], (2, 3)", "f32[2,4], (1, 3), -1"],
    errors: &[("f32[5], (2, 2)", "RuntimeError", "split_with_sizes expects")],
    ..OP
};

/// Parts that are not views: they share memory, but each has its own version counter.
fn split_views(c: &Call, layouts: Vec<Layout>) -> Result<Outputs> {
    let t = c.tensor(0)?;
    let part = |layout| Tensor::from_meta(Meta { storage: t.storage().unversioned(), layout, dtype: t.dtype() });
    Ok(layouts.into_iter().map(part).collect())
}

fn specs(c: &Call, layouts: Vec<Layout>) -> Result<Specs> {
    let (dtype, device) = (c.tensor(0)?.dtype(), c.tensor(0)?.device());
    Ok(layouts.into_iter().map(|layout| Spec { layout, dtype, device }).collect())
}

pub static UNSAFE_SPLIT: Op = Op {
    sig: sig("unsafe_split(Tensor self, int split_size, int dim=0) -> Tensor[]"),
    doc: "`split` into parts that autograd does not take for views: in place they change without its notice.",
    body: opaque(|c| specs(c, equal_parts(c)?), |c| split_views(c, equal_parts(c)?)),
    vjp: Vjp::Each(&[d(0, 0, joined)]),
    samples: &["f32[5,2], 2", "f32[2,4], 2, 1", "i64[3], 5"],
    errors: &[("f32[5], -1", "RuntimeError", "non-negative"), ("f32[], 2", "RuntimeError", "at least a 1-dimensional")],
    keeps: Some("dim self_sym_sizes split_size"),
    batch: Batching::Rule(behind_batch),
    ..OP
};

pub static UNSAFE_SPLIT_WITH_SIZES: Op = Op {
    sig: sig("unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]"),
    doc: "`split_with_sizes` into parts that autograd does not take for views.",
    body: opaque(
        |c| specs(c, split_layouts(c, c.ints("split_sizes")?)?),
        |c| split_views(c, split_layouts(c, c.ints("split_sizes")?)?),
    ),
    vjp: Vjp::Each(&[d(0, 0, joined)]),
    samples: &["f32[5,2], (2, 3)", "f32[2,4], (1, 3), -1"],
    errors: &[("f32[5], (2, 2)", "RuntimeError", "split_with_sizes expects")],
    keeps: Some("dim self_sym_sizes split_sizes"),
    batch: Batching::Rule(behind_batch),
    ..OP
};

/// Chunks by ops that split into parts of a size, and of given sizes.
fn chunked(c: &Call, equal: &'static Op, given: &'static Op) -> Result<Outputs> {
    let (t, chunks) = (c.tensor(0)?, c.int("chunks")?);
    let dim = nonscalar_dim(c, "chunk expects at least a 1-dimensional tensor")?;
    if chunks <= 0 {
        return Err(Error::runtime(format!("chunk expects `chunks` to be greater than 0, got: {chunks}")));
    }
    if t.size(dim) == 0 && chunks > 1 << 20 {
        return Err(Error::runtime(format!("{chunks} empty chunks are too many; at most {}", 1 << 20)));
    }
    match t.size(dim).div_ceil(chunks as usize) as i64 {
        0 => given.calls((t, Ints::from_elem(0, chunks as usize), dim)),
        size => equal.calls((t, size, dim)),
    }
}

pub static CHUNK: Op = Op {
    sig: sig("chunk(Tensor self, int chunks, int dim=0) -> Tensor[]"),
    doc: "Cuts a dimension into at most `chunks` parts of equal size; the last one may be smaller.",
    body: decompose(|c| chunked(c, &SPLIT, &SPLIT_SIZES)),
    vjp: Vjp::Composite,
    samples: &["f32[5,2], 2", "f32[2,6], 4, 1", "f32[3], 5"],
    errors: &[("f32[3], 0", "RuntimeError", "greater than 0")],
    ..OP
};

pub static UNSAFE_CHUNK: Op = Op {
    sig: sig("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]"),
    doc: "`chunk` into parts that autograd does not take for views.",
    body: decompose(|c| chunked(c, &UNSAFE_SPLIT, &UNSAFE_SPLIT_WITH_SIZES)),
    vjp: Vjp::Composite,
    samples: &["f32[5,2], 2", "f32[2,4], 3, -1"],
    errors: &[
        ("f32[5], 0", "RuntimeError", "greater than 0"),
        ("f32[], 2", "RuntimeError", "at least a 1-dimensional"),
    ],
    ..OP
};

/// The gradients of the parts of a split, concatenated; zeros for undefined ones.
fn joined(c: &VjpCtx) -> Term {
    crate::ops::movement::cat::joined((0..c.grads.len()).map(|i| c.gi(i)), c.int("dim"))
}

pub static UNBIND: Op = Op {
    sig: sig("unbind(Tensor self, Dim dim=0) -> Tensor[]"),
    doc: "Each index of a dimension as a view of its own.",
    body: Body::Views(|c| {
        let t = c.tensor(0)?;
        let dim = c.dim("dim");
        if t.ndim() == 0 {
            return Err(Error::index("Dimension specified as 0 but tensor has no dimensions"));
        }
        let mut out = views(t.size(dim))?;
        out.extend((0..t.size(dim)).map(|i| t.layout().select(dim, i)));
        Ok(out)
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let parts: Result<Vec<_>> = (0..c.grads.len()).map(|i| c.gi(i).ok()).collect();
        parts.map_or_else(Term::from, |p| crate::ops::movement::cat::STACK.call((p, c.int("dim"))))
    })]),
    samples: &["f32[3,2]", "f32[2,3], 1"],
    errors: &[("f32[2], 2", "IndexError", "Dimension out of range")],
    ..OP
};

/// The argument `dim`, an `int`: as in PyTorch a 0-d tensor is refused before the range is checked, as it is for `Dim`.
pub(crate) fn nonscalar_dim(c: &Call, scalar: &str) -> Result<usize> {
    match c.tensor(0)?.ndim() {
        0 => Err(Error::runtime(scalar)),
        n => wrap_dim(c.int("dim")?, n),
    }
}

/// The positions in a tensor of indices or sections: it determines shapes, so it must be on the CPU.
pub(crate) fn numbers_of(how: &Tensor) -> Result<Vec<i64>> {
    if how.device().is_gpu() {
        let here = how.device();
        return Err(Error::runtime(format!(
            "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on {here}"
        )));
    }
    crate::ops::support::host_read::int_list(how)
}
