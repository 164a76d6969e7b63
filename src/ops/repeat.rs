//! Repeating and reordering whole dimensions: repeat, tile, flip, roll, rot90. Copies, block by block.

use super::shape::sizes;
use super::view::{EXPAND, RESHAPE};
use crate::cpu::flip;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout, to_shape, wrap_dim, wrap_dims};
use crate::op::*;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &REPEAT,
    &TILE,
    &REPEAT_INTERLEAVE_INT,
    &REPEAT_INTERLEAVE,
    &REPEAT_INTERLEAVE_INDEX,
    &FLIP,
    &FLIPLR,
    &FLIPUD,
    &ROLL,
    &ROT90,
];

fn repeat_spec(c: &Call) -> Result<Specs> {
    let (t, repeats) = (c.tensor(0)?, to_shape(c.ints(1)?)?);
    if repeats.len() < t.ndim() {
        return Err(Error::runtime(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
        ));
    }
    let lead = repeats.len() - t.ndim();
    let shape: Dims =
        repeats.iter().enumerate().map(|(i, &r)| if i < lead { r } else { r * t.size(i - lead) }).collect();
    Ok(Spec::one(&shape, t.dtype(), t.device()))
}

/// The output is read as [repeat, size, repeat, size, ..], to which the input broadcasts.
fn repeat(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, repeats) = (c.tensor(0)?, c.ints(1)?);
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
    sig: "repeat(Tensor self, Size repeats) -> Tensor",
    doc: "The tensor repeated along each dimension; more repeats than dimensions add dimensions in front.",
    forms: M,
    body: kernel(repeat_spec, repeat, Some(repeat)),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let (shape, repeats) = (c.sizes(0), c.ints(1).unwrap_or(&[]));
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
    ..OP
};

pub static TILE: Op = Op {
    sig: "tile(Tensor self, Size dims) -> Tensor",
    doc: "The tensor repeated along each dimension; missing counts in front are ones.",
    body: composite(|c| {
        let (t, dims) = (c.tensor(0)?, c.ints(1)?);
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
pub(super) fn dim_or_flat(t: &Tensor, dim: Option<i64>) -> Result<(Tensor, usize)> {
    match dim {
        Some(d) => Ok((t.clone(), wrap_dim(d, t.ndim())?)),
        None => Ok((RESHAPE.call((t, [-1])).ok()?, 0)),
    }
}

pub static REPEAT_INTERLEAVE_INT: Op = Op {
    sig: "repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor",
    doc: "Each element (or slice along `dim`) repeated in place; without `dim` the input is flattened.",
    body: composite(|c| {
        let repeats = c.int(1)?;
        if repeats < 0 {
            return Err(Error::runtime("Repeats must be non-negative"));
        }
        let (t, dim) = dim_or_flat(c.tensor(0)?, c.opt_int(2))?;
        let mut wide = sizes(&t);
        let n = wide.get(dim).copied().unwrap_or(1);
        wide.insert((dim + 1).min(wide.len()), repeats);
        let mut flat = sizes(&t);
        match flat.get_mut(dim) {
            Some(d) => *d = n * repeats,
            None => flat.push(repeats),
        }
        let expanded = EXPAND.call((Term::from(&t).unsqueeze((dim + 1).min(t.ndim()) as i64), wide));
        RESHAPE.calls((super::copy::CLONE.call((expanded,)), flat))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3], 2", "f32[2,3], 2, 1", "f32[2,3], 3, dim=0", "f32[2,2], 2"],
    errors: &[("f32[2], -1", "RuntimeError", "non-negative")],
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
    let counts = super::take::int_list(repeats)?;
    if counts.iter().any(|&r| r < 0) {
        return Err(Error::runtime("repeats can not be negative"));
    }
    let total = counts.iter().try_fold(0usize, |n, &r| n.checked_add(r as usize)).unwrap_or(usize::MAX);
    crate::layout::checked_numel(&[total])?;
    let index: Vec<i64> =
        counts.iter().enumerate().flat_map(|(i, &r)| std::iter::repeat_n(i as i64, r as usize)).collect();
    let t = Tensor::from_slice(&index, &[total])?;
    Term(Ok(t)).to_device(repeats.device()).ok()
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
    sig: "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor",
    doc: "Slice `i` along `dim` repeated `repeats[i]` times; without `dim` the input is flattened.",
    body: composite(|c| {
        let (t, dim) = dim_or_flat(c.tensor(0)?, c.opt_int(2))?;
        let mut repeats = c.tensor(1)?.clone();
        let n = t.shape().get(dim).copied().unwrap_or(1);
        if repeats.ndim() == 0 || (repeats.ndim() == 1 && repeats.size(0) == 1) {
            repeats = EXPAND.call((RESHAPE.call((&repeats, [1])), [n as i64])).ok()?;
        } else if repeats.ndim() != 1 || repeats.size(0) != n {
            return Err(Error::runtime(format!(
                "repeats must have the same size as input along dim, but got repeats.size(0) = {} and input.size({dim}) = {n}",
                repeats.size(0)
            )));
        }
        let index = interleave_index(&repeats)?;
        check_output_size(c.opt_int(3), &index)?;
        super::select::INDEX_SELECT.calls((&t, dim, &index))
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
    sig: "repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor",
    doc: "The index that holds `i` `repeats[i]` times.",
    body: composite(|c| {
        let index = interleave_index(c.tensor(0)?)?;
        check_output_size(c.opt_int(1), &index)?;
        Ok(smallvec![index])
    }),
    vjp: Vjp::None("indices"),
    samples: &["i64[3](= 1, 0, 2)"],
    errors: &[("f32[2]", "RuntimeError", "Long or Int")],
    reference: "np.repeat(np.arange(len(x0)), x0)",
    ..OP
};

fn flip_cpu(t: &Tensor, dims: &[usize], out: &Tensor) -> Result<()> {
    // SAFETY: both layouts lie within their storages; the output is fresh and has the input's shape and dtype.
    unsafe { flip::flip(t.cpu_view()?, dims, out.cpu_view()?) };
    Ok(())
}

/// One copy for each index of the flipped dimensions: no shader of its own is worth it.
fn flip_gpu(t: &Tensor, dims: &[usize], out: &Tensor) -> Result<()> {
    let mut source = t.clone();
    for &dim in dims.iter().filter(|&&d| d < t.ndim()) {
        let next = Tensor::empty(t.shape(), t.dtype(), t.device())?;
        for i in 0..t.size(dim) {
            let from = source.with_layout(source.layout().select(dim, t.size(dim) - 1 - i));
            next.with_layout(next.layout().select(dim, i)).copy_raw(&from)?;
        }
        source = next;
    }
    out.copy_raw(&source)
}

fn flipped(c: &Call) -> Result<Dims> {
    wrap_dims(c.ints(1)?, c.tensor(0)?.ndim())
}

pub static FLIP: Op = Op {
    sig: "flip(Tensor self, Size dims) -> Tensor",
    doc: "The order along the given dimensions reversed, in new memory.",
    body: kernel(
        |c| {
            flipped(c)?;
            Ok(smallvec![Spec::like(c.tensor(0)?)])
        },
        |c, out| flip_cpu(c.tensor(0)?, &flipped(c)?, &out[0]),
        Some(|c, out| flip_gpu(c.tensor(0)?, &flipped(c)?, &out[0])),
    ),
    vjp: Vjp::Each(&[d(0, 0, |c| FLIP.call((c.g(), c.ints(1).unwrap_or(&[]))))]),
    samples: &["f32[2,3], (0,)", "f32[2,3,4], (0, 2)", "f32[4], (-1,)", "i64[2,3], (1,)", "f32[2,3], ()"],
    errors: &[
        ("f32[2], (1,)", "IndexError", "Dimension out of range"),
        ("f32[2,3], (0, 0)", "RuntimeError", "multiple times"),
    ],
    reference: "np.flip(x0, dims)",
    ..OP
};

pub static FLIPLR: Op = Op {
    sig: "fliplr(Tensor self) -> Tensor",
    doc: "Columns in reverse order.",
    body: composite(|c| match c.tensor(0)?.ndim() {
        0 | 1 => Err(Error::runtime("Input must be >= 2-d.")),
        _ => FLIP.calls((c.tensor(0)?, [1])),
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3]"],
    errors: &[("f32[2]", "RuntimeError", "Input must be >= 2-d.")],
    reference: "np.fliplr(x0)",
    ..OP
};

pub static FLIPUD: Op = Op {
    sig: "flipud(Tensor self) -> Tensor",
    doc: "Rows in reverse order.",
    body: composite(|c| match c.tensor(0)?.ndim() {
        0 => Err(Error::runtime("Input must be >= 1-d.")),
        _ => FLIP.calls((c.tensor(0)?, [0])),
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3]", "f32[3]"],
    errors: &[("f32[]", "RuntimeError", "Input must be >= 1-d.")],
    reference: "np.flipud(x0)",
    ..OP
};

fn roll_args(c: &Call) -> Result<()> {
    let (shifts, dims) = (c.ints(1)?, c.ints(2)?);
    if shifts.is_empty() {
        return Err(Error::runtime("`shifts` required"));
    }
    if dims.is_empty() && shifts.len() == 1 {
        return Ok(());
    }
    if shifts.len() != dims.len() {
        return Err(Error::runtime(format!(
            "shifts and dimensions must align. shifts: {}, dims:{}",
            shifts.len(),
            dims.len()
        )));
    }
    dims.iter().try_for_each(|&d| wrap_dim(d, c.tensor(0)?.ndim()).map(drop))
}

/// Each rolled dimension falls into two runs: copies every combination of runs.
fn roll_dims(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, dims) = (c.tensor(0)?, c.ints(2)?);
    let mut blocks = vec![(t.layout().clone(), out[0].layout().clone())];
    let mut sums: Vec<(usize, i64)> = Vec::new();
    for (&s, &d) in c.ints(1)?.iter().zip(dims) {
        let d = wrap_dim(d, t.ndim())?;
        match sums.iter_mut().find(|(k, _)| *k == d) {
            Some((_, sum)) => *sum += s,
            None => sums.push((d, s)),
        }
    }
    for (d, shift) in sums {
        let n = t.shape().get(d).copied().unwrap_or(1);
        let k = if n == 0 { 0 } else { shift.rem_euclid(n as i64) as usize };
        if k == 0 {
            continue;
        }
        let halves = |(from, to): (Layout, Layout)| {
            [(0, n - k, k), (n - k, k, 0)]
                .map(|(at, len, into)| (from.slice(d, (at, len, 1)), to.slice(d, (into, len, 1))))
        };
        blocks = blocks.into_iter().flat_map(halves).collect();
    }
    blocks.into_iter().try_for_each(|(from, to)| out[0].with_layout(to).copy_raw(&t.with_layout(from)))
}

/// Without dimensions: the flat order is rolled, in contiguous memory.
fn roll_flat(c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    let n = t.numel();
    let source = if t.is_contiguous() { t.clone() } else { super::gather::cast_raw(t, t.dtype())? };
    let flat = |t: &Tensor| Layout { offset: t.layout().offset, ..Layout::contiguous(&[n]) };
    let k = if n == 0 { 0 } else { c.ints(1)?[0].rem_euclid(n as i64) as usize };
    for (from, len, to) in [(0, n - k, k), (n - k, k, 0)] {
        let source = source.with_layout(flat(&source).slice(0, (from, len, 1)));
        out[0].with_layout(flat(&out[0]).slice(0, (to, len, 1))).copy_raw(&source)?;
    }
    Ok(())
}

fn roll(c: &Call, out: &[Tensor]) -> Result<()> {
    if c.ints(2)?.is_empty() { roll_flat(c, out) } else { roll_dims(c, out) }
}

pub static ROLL: Op = Op {
    sig: "roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor",
    doc: "Moves elements along dimensions; those that leave at one end come in at the other. Without `dims` the order of all elements is rolled.",
    body: kernel(
        |c| {
            roll_args(c)?;
            Ok(smallvec![Spec::like(c.tensor(0)?)])
        },
        roll,
        Some(roll),
    ),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let back: Ints = c.ints(1).unwrap_or(&[]).iter().map(|s| -s).collect();
        ROLL.call((c.g(), back, c.ints(2).unwrap_or(&[])))
    })]),
    samples: &["f32[5], 2", "f32[2,3], 1", "f32[2,3], (1, -1), (0, 1)", "f32[2,3], 1, 1"],
    errors: &[("f32[2,3], (1, 1), 0", "RuntimeError", "must align"), ("f32[2], 1, 1", "IndexError", "Dimension out of range")],
    reference: "np.roll(x0, shifts, axis=dims or None)",
    ..OP
};

/// The plane of a rotation and the number of quarter turns.
fn turn(c: &Call) -> Result<(usize, usize, i64)> {
    let (t, dims) = (c.tensor(0)?, c.ints(2)?);
    if dims.len() != 2 {
        return Err(Error::runtime(format!("expected total rotation dims == 2, but got dims = {}", dims.len())));
    }
    if t.ndim() < 2 {
        return Err(Error::runtime(format!("expected total dims >= 2, but got total dims = {}", t.ndim())));
    }
    let (a, b) = (wrap_dim(dims[0], t.ndim())?, wrap_dim(dims[1], t.ndim())?);
    if a == b {
        return Err(Error::runtime(format!("expected rotation dims to be different, but got dim0 = {} and dim1 = {}", dims[0], dims[1])));
    }
    Ok((a, b, c.int(1)?.rem_euclid(4)))
}

/// A flip into an output read as transposed.
fn rotate(c: &Call, out: &[Tensor], flip: fn(&Tensor, &[usize], &Tensor) -> Result<()>) -> Result<()> {
    let (a, b, k) = turn(c)?;
    let plane = [b, a, b];
    let dims = [&[][..], &plane[..1], &plane[1..], &plane[1..2]][k as usize];
    let target = if k % 2 == 1 { out[0].with_layout(out[0].layout().transpose(a, b)) } else { out[0].clone() };
    flip(c.tensor(0)?, dims, &target)
}

pub static ROT90: Op = Op {
    sig: "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
    doc: "Turns the plane of two dimensions by `k` times 90 degrees, from the first towards the second.",
    body: kernel(
        |c| {
            let ((a, b, k), t) = (turn(c)?, c.tensor(0)?);
            let shape = if k % 2 == 1 { t.layout().transpose(a, b).shape } else { t.shape().into() };
            Ok(Spec::one(&shape, t.dtype(), t.device()))
        },
        |c, out| rotate(c, out, flip_cpu),
        Some(|c, out| rotate(c, out, flip_gpu)),
    ),
    vjp: Vjp::Each(&[d(0, 0, |c| ROT90.call((c.g(), -c.int(1).unwrap_or(0), c.ints(2).unwrap_or(&[]))))]),
    samples: &["f32[2,3]", "f32[2,3], 2", "f32[2,3,2], -1, (1, 2)", "f32[2,2], 4"],
    errors: &[("f32[2]", "RuntimeError", "expected total dims >= 2"), ("f32[2,2], 1, (0, 0)", "RuntimeError", "to be different")],
    reference: "np.rot90(x0, k, dims)",
    ..OP
};
