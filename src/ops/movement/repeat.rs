//! Repeating: repeat, tile, repeat_interleave. Copies, block by block.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout, to_shape};
use crate::op::*;
use crate::ops::support::batch_views;
use crate::ops::view::reshape::{EXPAND, RESHAPE};
use crate::ops::view::shape::sizes;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&REPEAT, &TILE, &REPEAT_INTERLEAVE, &REPEAT_INTERLEAVE_INT, &REPEAT_INTERLEAVE_INDEX];

fn repeat_spec(c: &Call) -> Result<Specs> {
    let (t, repeats) = (c.tensor(0)?, to_shape(c.ints("repeats")?)?);
    if repeats.len() < t.ndim() {
        return Err(Error::runtime(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
        ));
    }
    let lead = repeats.len() - t.ndim();
    let size = |(i, &r): (usize, &usize)| {
        let n = if i < lead { 1 } else { t.size(i - lead) };
        let size = r.checked_mul(n).filter(|&size| i64::try_from(size).is_ok());
        size.ok_or_else(|| Error::runtime(format!("{r} times a dimension of size {n} is no size of a dimension")))
    };
    let shape = repeats.iter().enumerate().map(size).collect::<Result<Dims>>()?;
    Ok(Spec::one(&shape, t.dtype(), t.device()))
}

/// The output is viewed as [repeat, size, repeat, size, ..], to which the input broadcasts.
fn repeat(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, repeats) = (c.tensor(0)?, c.ints("repeats")?);
    let lead = repeats.len() - t.ndim();
    let (mut target, mut source): (Dims, Layout) =
        (smallvec![], Layout { offset: t.layout().offset, ..Layout::default() });
    for (i, &r) in repeats.iter().enumerate() {
        target.push(r as usize);
        source.shape.push(1);
        source.strides.push(0);
        if i >= lead {
            target.push(t.size(i - lead));
            source.shape.push(t.size(i - lead));
            source.strides.push(t.strides()[i - lead]);
        }
    }
    out[0].with_layout(Layout::contiguous(&target)).copy_raw(&t.with_layout(source))
}

pub static REPEAT: Op = Op {
    sig: sig("repeat(Tensor self, Size repeats) -> Tensor"),
    doc: "The tensor repeated along each dimension; more repeats than dimensions add dimensions in front.",
    forms: M,
    body: kernel(repeat_spec, repeat, Some(repeat)),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let (shape, repeats) = (c.sizes(0), c.ints("repeats"));
        let lead = repeats.len() - shape.len();
        let parts: Ints =
            repeats.iter().enumerate().flat_map(|(i, &r)| [r, if i < lead { 1 } else { shape[i - lead] }]).collect();
        let dims: Ints = (0..repeats.len() as i64).map(|i| 2 * i).collect();
        if dims.is_empty() { c.g() } else { c.g().reshape(&parts).sum(&dims, false).reshape(&shape) }
    })]),
    samples: &["f32[3], (2,)", "f32[2,3], (1, 2)", "f32[2], (2, 3)", "f32[2], (0,)", "i64[2], (2,)"],
    errors: &[
        ("f32[2,3], (2,)", "RuntimeError", "can not be smaller"),
        ("f32[2], (-1,)", "RuntimeError", "negative dimension"),
    ],
    reference: "np.tile(x0, repeats)",
    keeps: Some("repeats self_sym_sizes"),
    batch: Batching::Rule(batch_views::repeat),
    ..OP
};

pub static TILE: Op = Op {
    sig: sig("tile(Tensor self, Size dims) -> Tensor"),
    doc: "The tensor repeated along each dimension; missing counts in front are ones.",
    body: decompose(|c| {
        let (t, dims) = (c.tensor(0)?, c.ints("dims")?);
        let mut repeats: Ints = smallvec![1; t.ndim().saturating_sub(dims.len())];
        repeats.extend_from_slice(dims);
        REPEAT.calls((t, repeats))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], (2,)", "f32[3], (2, 2)", "f32[2,3], (1, 2)"],
    errors: &[("f32[2], (-1,)", "RuntimeError", "negative dimension")],
    reference: "np.tile(x0, dims)",
    ..OP
};

/// The dimension, or a flat view and 0 where none was given.
pub(crate) fn dim_or_flat(c: &Call) -> Result<(Tensor, usize)> {
    let t = c.tensor(0)?;
    match c.opt_int("dim") {
        Some(d) if t.ndim() == 0 => {
            Err(Error::index(format!("Dimension specified as {d} but tensor has no dimensions")))
        }
        Some(_) => Ok((t.clone(), c.dim("dim"))),
        None => Ok((RESHAPE.call((t, [-1])).ok()?, 0)),
    }
}

pub static REPEAT_INTERLEAVE_INT: Op = Op {
    sig: sig("repeat_interleave.self_int(Tensor self, int repeats, Dim? dim=None, *, int? output_size=None) -> Tensor"),
    doc: "Each element (or slice along `dim`) repeated in place; without `dim` the input is flattened.",
    body: decompose(|c| {
        let repeats = c.int("repeats")?;
        if repeats < 0 {
            return Err(Error::runtime("Repeats must be non-negative"));
        }
        let (t, dim) = dim_or_flat(c)?;
        let (mut wide, mut flat) = (sizes(&t), sizes(&t));
        flat[dim] = flat[dim].saturating_mul(repeats);
        if c.opt_int("output_size").is_some_and(|asked| asked != flat[dim]) {
            return Err(Error::runtime(format!(
                "repeat_interleave: Invalid output_size, expected {} but got {}",
                flat[dim],
                c.int("output_size")?
            )));
        }
        wide.insert(dim + 1, repeats);
        let expanded = EXPAND.call((Term::from(&t).unsqueeze(dim as i64 + 1), wide));
        RESHAPE.calls((expanded.packed(), flat))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3], 2", "f32[2,3], 2, 1", "f32[2,3], 3, dim=0", "f32[2,2], 2", "f32[], 2"],
    errors: &[
        ("f32[2], -1", "RuntimeError", "non-negative"),
        ("f32[], 2, 0", "IndexError", "no dimensions"),
        ("f32[2], 2, 0, output_size=3", "RuntimeError", "expected 4 but got 3"),
    ],
    reference: "np.repeat(x0, repeats, axis=dim)",
    ..OP
};

/// The index that repeats position `i` `repeats[i]` times.
fn interleave_index(repeats: &Tensor) -> Result<Tensor> {
    if repeats.ndim() > 1 {
        return Err(Error::runtime("repeat_interleave only accept 0D or 1D vector as repeat"));
    }
    if !matches!(repeats.dtype(), DType::I64 | DType::I32) {
        return Err(Error::runtime("repeats has to be Long or Int tensor"));
    }
    if repeats.device().is_gpu() && repeats.numel() > 0 {
        return interleave_index_gpu(repeats);
    }
    let counts = crate::ops::support::host_read::int_list(repeats)?;
    if counts.iter().any(|&r| r < 0) {
        return Err(Error::runtime("repeats can not be negative"));
    }
    let total = counts.iter().try_fold(0usize, |n, &r| n.checked_add(r as usize)).unwrap_or(usize::MAX);
    crate::layout::checked_numel(&[total])?;
    let t = Tensor::empty(&[total], DType::I64, crate::device::Device::Cpu)?;
    let mut place = t.ptr()?.cast::<i64>();
    for (i, &r) in counts.iter().enumerate() {
        // SAFETY: the new block holds `total` int64, the sum of the counts, which are ours.
        unsafe {
            std::slice::from_raw_parts_mut(place.cast::<std::mem::MaybeUninit<i64>>(), r as usize)
                .fill(std::mem::MaybeUninit::new(i as i64));
            place = place.add(r as usize);
        }
    }
    Term(Ok(t)).to_device(repeats.device()).ok()
}

/// The position of each number 0, 1, .. in the running sum of the repeats.
fn interleave_index_gpu(repeats: &Tensor) -> Result<Tensor> {
    let least = crate::ops::order::search_gpu::range(repeats)?[0].to_i64();
    if least < 0 {
        return Err(Error::runtime("repeats can not be negative"));
    }
    let ends = crate::ops::reduce::scan::CUMSUM.call((Term::from(repeats).reshape(&[-1]), 0)).ok()?;
    let last = ends.with_layout(ends.layout().select(0, ends.numel() - 1));
    let total = crate::ops::support::host_read::item(&last)?.to_i64() as usize;
    crate::layout::checked_numel(&[total])?;
    let each = Tensor::empty(&[total], DType::I64, repeats.device())?;
    crate::gpu::ramp(0.into(), 1.into(), &each.gpu_view()?)?;
    crate::ops::order::search_gpu::places(&ends, &each, true, DType::I64)
}

fn check_output_size(asked: Option<i64>, index: &Tensor) -> Result<()> {
    match asked {
        Some(n) if n != index.numel() as i64 => {
            Err(Error::runtime("repeat_interleave: allocated size does not match required size"))
        }
        _ => Ok(()),
    }
}

pub static REPEAT_INTERLEAVE: Op = Op {
    sig: sig(
        "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, Dim? dim=None, *, int? output_size=None) -> Tensor",
    ),
    doc: "Slice `i` along `dim` repeated `repeats[i]` times; without `dim` the input is flattened.",
    body: decompose(|c| {
        let (t, dim) = dim_or_flat(c)?;
        let mut repeats = c.tensor("repeats")?.clone();
        let n = t.shape().get(dim).copied().unwrap_or(1);
        if repeats.ndim() == 0 || (repeats.ndim() == 1 && repeats.size(0) == 1) {
            repeats = EXPAND.call((RESHAPE.call((&repeats, [1])), [n as i64])).ok()?;
        } else if repeats.ndim() != 1 || repeats.size(0) != n {
            return Err(Error::runtime(format!(
                "repeats must have the same size as input along dim, but got repeats.size(0) = {} and input.size({dim}) = {n}",
                repeats.size(0)
            )));
        }
        let index = REPEAT_INTERLEAVE_INDEX
            .call((&repeats, c.opt_int("output_size").map_or(Value::None, |n| Value::Scalar(n.into()))))
            .ok()?;
        crate::ops::indexing::index_select::INDEX_SELECT.calls((&t, dim, &index))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3], i64[3](= 1, 0, 2)", "f32[2,3], i64[2](= 2, 1), 0", "f32[2,2], i64[1](= 2), 1"],
    errors: &[
        ("f32[3], i64[2](= 1, 2)", "RuntimeError", "same size as input"),
        ("f32[2], i64[2](= 1, -1)", "RuntimeError", "can not be negative"),
    ],
    reference: "np.repeat(x0, x1, axis=dim)",
    ..OP
};

pub static REPEAT_INTERLEAVE_INDEX: Op = Op {
    sig: sig("repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor"),
    doc: "The index that holds `i` `repeats[i]` times.",
    body: reads_host(|c| {
        let index = interleave_index(c.tensor("repeats")?)?;
        check_output_size(c.opt_int("output_size"), &index)?;
        Ok(smallvec![index])
    }),
    vjp: Vjp::None("indices"),
    samples: &["i64[3](= 1, 0, 2)"],
    errors: &[("f32[2]", "RuntimeError", "Long or Int")],
    reference: "np.repeat(np.arange(len(x0)), x0)",
    ..OP
};
