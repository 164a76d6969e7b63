//! Reordering along dimensions: flip, roll, rot90. Copies, since strides are never negative.

use crate::cpu::flip;
use crate::error::{Error, Result};
use crate::layout::{Format, Layout, wrap_dim};
use crate::op::*;
use crate::ops::support::batch_views;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&FLIP, &FLIPLR, &FLIPUD, &ROLL, &ROT90];

fn flip_cpu(t: &Tensor, dims: &[usize], out: &Tensor) -> Result<()> {
    flip::flip(t.cpu_view()?, dims, out.cpu_view()?)
}

/// A selection with descending indices for each flipped dimension.
fn flip_gpu(t: &Tensor, dims: &[usize], out: &Tensor) -> Result<()> {
    let mut source = t.clone();
    for &dim in dims.iter().filter(|&&d| d < t.ndim()) {
        let next = Tensor::empty(t.shape(), t.dtype(), t.device())?;
        let falling = crate::rt::reserve::list((0..t.size(dim) as i64).rev())?;
        let index = Term(Tensor::from_slice(&falling, &[falling.len()])).to_device(t.device()).ok()?;
        crate::gpu::index_select(&source.gpu_view()?, dim, &index.gpu_view()?, &next.gpu_view()?)?;
        source = next;
    }
    out.copy_raw(&source)
}

pub static FLIP: Op = Op {
    sig: sig("flip(Tensor self, Dim[*] dims) -> Tensor"),
    doc: "The order along the given dimensions reversed, in new memory.",
    body: kernel(
        |c| {
            let t = c.tensor(0)?;
            crate::ops::reduce::sum_prod::check_rank(t.ndim())?;
            c.distinct_dims("dims").map(|_| smallvec![Spec::following(t)])
        },
        |c, out| flip_cpu(c.tensor(0)?, &c.distinct_dims("dims")?, &out[0]),
        Some(|c, out| flip_gpu(c.tensor(0)?, &c.distinct_dims("dims")?, &out[0])),
    ),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| FLIP.call((c.g(), c.ints("dims"))))]),
    samples: &["f32[2,3], (0,)", "f32[2,3,4], (0, 2)", "f32[4], (-1,)", "i64[2,3], (1,)", "f32[2,3], ()"],
    errors: &[
        ("f32[2], (1,)", "IndexError", "Dimension out of range"),
        ("f32[2,3], (0, 0)", "RuntimeError", "multiple times"),
    ],
    reference: "np.flip(x0, dims)",
    ..OP
};

pub static FLIPLR: Op = Op {
    sig: sig("fliplr(Tensor self) -> Tensor"),
    doc: "Columns in reverse order.",
    body: decompose(|c| match c.tensor(0)?.ndim() {
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
    sig: sig("flipud(Tensor self) -> Tensor"),
    doc: "Rows in reverse order.",
    body: decompose(|c| match c.tensor(0)?.ndim() {
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
    let (shifts, dims) = (c.ints("shifts")?, c.ints("dims")?);
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
    if c.tensor(0)?.ndim() == 0 {
        return Err(Error::index(format!("Dimension specified as {} but tensor has no dimensions", dims[0])));
    }
    Ok(())
}

/// Each rolled dimension is split into two runs: copies every combination of runs.
fn roll_dims(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, dims) = (c.tensor(0)?, c.opt_dims("dims").unwrap_or_default());
    let mut blocks = vec![(t.layout().clone(), out[0].layout().clone())];
    let mut sums: Vec<(usize, i64)> = Vec::new();
    for (&s, d) in c.ints("shifts")?.iter().zip(dims) {
        let s = s % t.size(d).max(1) as i64;
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
    let source =
        if t.is_contiguous() { t.clone() } else { crate::ops::indexing::gather_scatter::cast_raw(t, t.dtype())? };
    let flat = |t: &Tensor| Layout { offset: t.layout().offset, ..Layout::contiguous(&[n]) };
    let k = if n == 0 { 0 } else { c.ints("shifts")?[0].rem_euclid(n as i64) as usize };
    for (from, len, to) in [(0, n - k, k), (n - k, k, 0)] {
        let source = source.with_layout(flat(&source).slice(0, (from, len, 1)));
        out[0].with_layout(flat(&out[0]).slice(0, (to, len, 1))).copy_raw(&source)?;
    }
    Ok(())
}

fn roll(c: &Call, out: &[Tensor]) -> Result<()> {
    if c.ints("dims")?.is_empty() { roll_flat(c, out) } else { roll_dims(c, out) }
}

pub static ROLL: Op = Op {
    sig: sig("roll(Tensor self, int[1] shifts, Dim[1] dims=[]) -> Tensor"),
    doc: "Moves elements along dimensions; those that leave at one end come in at the other. Without `dims` the order of all elements is rolled.",
    body: kernel(
        |c| {
            roll_args(c)?;
            let t = c.tensor(0)?;
            let by_dims = !c.ints("dims")?.is_empty();
            let format = if by_dims { t.layout().channels_format() } else { Format::Contiguous };
            Ok(smallvec![Spec { layout: t.layout().formed(format)?, ..Spec::like(t) }])
        },
        roll,
        Some(roll),
    ),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let back: Ints = c.ints("shifts").iter().map(|s| -s).collect();
        ROLL.call((c.g(), back, c.ints("dims")))
    })]),
    samples: &["f32[5], 2", "f32[2,3], 1", "f32[2,3], (1, -1), (0, 1)", "f32[2,3], 1, 1"],
    errors: &[
        ("f32[2,3], (1, 1), 0", "RuntimeError", "must align"),
        ("f32[2], 1, 1", "IndexError", "Dimension out of range"),
    ],
    reference: "np.roll(x0, shifts, axis=dims or None)",
    ..OP
};

/// The plane of a rotation and the number of quarter turns.
fn rotation(c: &Call) -> Result<(usize, usize, i64)> {
    let (t, dims) = (c.tensor(0)?, c.ints("dims")?);
    if dims.len() != 2 {
        return Err(Error::runtime(format!("expected total rotation dims == 2, but got dims = {}", dims.len())));
    }
    if t.ndim() < 2 {
        return Err(Error::runtime(format!("expected total dims >= 2, but got total dims = {}", t.ndim())));
    }
    let (a, b) = (wrap_dim(dims[0], t.ndim())?, wrap_dim(dims[1], t.ndim())?);
    if a == b {
        return Err(Error::runtime(format!(
            "expected rotation dims to be different, but got dim0 = {} and dim1 = {}",
            dims[0], dims[1]
        )));
    }
    Ok((a, b, c.int("k")?.rem_euclid(4)))
}

/// A flip into an output read as transposed.
fn rotate(c: &Call, out: &[Tensor], flip: fn(&Tensor, &[usize], &Tensor) -> Result<()>) -> Result<()> {
    let (a, b, k) = rotation(c)?;
    let plane = [b, a, b];
    let dims = [&[][..], &plane[..1], &plane[1..], &plane[1..2]][k as usize];
    let target = if k % 2 == 1 { out[0].with_layout(out[0].layout().transpose(a, b)) } else { out[0].clone() };
    flip(c.tensor(0)?, dims, &target)
}

pub static ROT90: Op = Op {
    sig: sig("rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor"),
    doc: "Turns the plane of two dimensions by `k` times 90 degrees, from the first towards the second.",
    body: kernel(
        |c| {
            let ((a, b, k), t) = (rotation(c)?, c.tensor(0)?);
            let spec = if k == 0 { Spec::like(t) } else { Spec::following(t) };
            Ok(smallvec![if k % 2 == 1 { Spec { layout: spec.layout.transpose(a, b), ..spec } } else { spec }])
        },
        |c, out| rotate(c, out, flip_cpu),
        Some(|c, out| rotate(c, out, flip_gpu)),
    ),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| ROT90.call((c.g(), -c.int("k"), c.ints("dims"))))]),
    samples: &["f32[2,3]", "f32[2,3], 2", "f32[2,3,2], -1, (1, 2)", "f32[2,2], 4"],
    errors: &[
        ("f32[2]", "RuntimeError", "expected total dims >= 2"),
        ("f32[2,2], 1, (0, 0)", "RuntimeError", "to be different"),
    ],
    reference: "np.rot90(x0, k, dims)",
    batch: Batching::Rule(batch_views::rot90),
    ..OP
};
