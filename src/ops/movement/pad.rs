//! Padding: constant, reflect, replicate and circular.
//!
//! The constant mode is a fill and one copy. Reflect and replicate read through a table for each padded dimension, row by
//! row where memory is row-major and else as an index; their gradient adds the same way. Circular concatenates slices.

use super::cat::CAT;
use crate::cpu;
use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, Show};
use crate::layout::{Dims, Layout, checked_numel};
use crate::op::*;
use crate::ops::indexing::advanced::INDEX_PUT;
use crate::ops::support::promotion::no_kernel;
use crate::ops::view::reshape::SLICE;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &PAD,
    &REFLECTION_PAD_BACKWARD,
    &REPLICATION_PAD_BACKWARD,
    &CONSTANT_PAD_ND,
    &REFLECTION_PAD1D,
    &REFLECTION_PAD2D,
    &REFLECTION_PAD3D,
    &REPLICATION_PAD1D,
    &REPLICATION_PAD2D,
    &REPLICATION_PAD3D,
];

/// What stands in the places that padding adds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Constant,
    Reflect,
    Replicate,
    Circular,
}
impl Enumerated for Mode {
    const VALUES: &'static [(&'static str, Mode)] = &[
        ("constant", Mode::Constant),
        ("reflect", Mode::Reflect),
        ("replicate", Mode::Replicate),
        ("circular", Mode::Circular),
    ];
}

pub static PAD: Op = Op {
    unknown_choice: |_, given| Error::not_implemented(format!("Unrecognised padding mode {given}")),
    sig: sig(
        "nn.functional.pad(Tensor input, int[] pad, str{constant|reflect|replicate|circular} mode='constant', float? value=None) -> Tensor",
    ),
    doc: "Pads the last dimensions by `pad`, pairs (before, after) from the last dimension on: 'constant', 'reflect', 'replicate' or 'circular'. Negative pads crop.",
    forms: F,
    body: decompose(|c| {
        let (t, pad, mode) = (c.tensor(0)?, c.ints("pad")?, c.choice("mode"));
        check_pairs(t.ndim(), pad)?;
        if mode == Mode::Constant {
            return CONSTANT_PAD_ND.calls((
                t,
                pad,
                c.opt_scalar("value").map_or(Scalar::Int(0), |v| Scalar::Float(v.to_f64())),
            ));
        }
        if c.opt_scalar("value").is_some_and(|v| v.to_f64() != 0.0) {
            return Err(Error::runtime(format!(
                "Padding mode \"{}\" doesn't take in value argument",
                c.str("mode").unwrap_or_default()
            )));
        }
        let which = pad.len() / 2;
        if !matches!(which, 1..=3) || t.ndim() != which + 1 && t.ndim() != which + 2 {
            return Err(Error::not_implemented(format!(
                "Padding size {} is not supported for {}D input tensor.\nSupported combinations for non-constant padding:\n  \
                 - 2D or 3D input: padding size = 2 (pads last dimension)\n  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n  \
                 - 4D or 5D input: padding size = 6 (pads last 3 dimensions)",
                pad.len(),
                t.ndim()
            )));
        }
        match mode {
            Mode::Reflect => [&REFLECTION_PAD1D, &REFLECTION_PAD2D, &REFLECTION_PAD3D][which - 1].calls((t, pad)),
            Mode::Replicate => [&REPLICATION_PAD1D, &REPLICATION_PAD2D, &REPLICATION_PAD3D][which - 1].calls((t, pad)),
            Mode::Constant | Mode::Circular => circular(t, pad),
        }
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3], (1, 2)",
        "f32[2,3], (1, -1, 0, 2), 'constant', 1.5",
        "f32[1,2,4], (2, 1), mode='reflect'",
        "f32[1,2,3,3], (1, 2, 2, 0), mode='reflect'",
        "f32[1,2,4], (5, 1), mode='replicate'",
        "f32[1,2,4], (2, 1), mode='circular'",
        "f32[1,2,4], (2, -1), mode='circular'",
        "f32[1,1,3,3], (-1, 2, 1, -1), mode='circular'",
        "f32[1,2,3], (0, 0), mode='circular'",
        "i64[3], (1, 1), value=7",
    ],
    errors: &[
        ("f32[3], (1,)", "RuntimeError", "must be divisible by 2"),
        ("f32[3], (1, 1, 1, 1)", "RuntimeError", "less than or equal to two times"),
        (
            "f32[1,2,3], (3, 1), mode='reflect'",
            "RuntimeError",
            "Padding size should be less than the corresponding input dimension",
        ),
        (
            "f32[3,0,4], (1, 1), mode='reflect'",
            "RuntimeError",
            "Expected 2D or 3D (batch mode) tensor with possibly 0 batch size",
        ),
        (
            "f32[3,0,4,4], (1, 1, 1, 1), mode='replicate'",
            "RuntimeError",
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size",
        ),
        ("f32[2,3], (1, 1), mode='odd'", "NotImplementedError", "Unrecognised padding mode odd"),
        ("u8[3], (1, 1), value=-1", "RuntimeError", "value cannot be converted to type uint8_t without overflow"),
        ("f32[3], (1, 1), value=1j", "TypeError", "must be float"),
    ],
    ..OP
};

fn check_pairs(ndim: usize, pad: &[i64]) -> Result<()> {
    if !pad.len().is_multiple_of(2) {
        return Err(Error::runtime("Padding length must be divisible by 2"));
    }
    if pad.len() > 2 * ndim {
        return Err(Error::runtime(format!(
            "Padding length should be less than or equal to two times the input dimension but got padding length {} and input of dimension {ndim}",
            pad.len(),
        )));
    }
    Ok(())
}

/// The pads of each dimension, first dimension first.
fn by_dim(ndim: usize, pad: &[i64]) -> Vec<(i64, i64)> {
    // Bounded by the number of dimensions.
    let mut out = vec![(0, 0); ndim];
    for (i, p) in pad.chunks_exact(2).enumerate().take(ndim) {
        out[ndim - 1 - i] = (p[0], p[1]);
    }
    out
}

fn padded_shape(t: &[usize], pad: &[i64]) -> Result<Dims> {
    let mut shape = Dims::new();
    for (d, (&n, (before, after))) in t.iter().zip(by_dim(t.len(), pad)).enumerate() {
        let size = (n as i64).saturating_add(before).saturating_add(after);
        if size < 0 {
            return Err(Error::runtime(format!(
                "The input size {n}, plus negative padding {before} and {after}, resulted in a negative output size, which is invalid. Check dimension {d} of your input."
            )));
        }
        shape.push(size as usize);
    }
    checked_numel(&shape)?;
    Ok(shape)
}

/// Channels-last inputs give channels-last results.
fn padded_layout(t: &Tensor, shape: &[usize]) -> Result<Layout> {
    Layout::contiguous(shape).formed(t.layout().channels_format())
}
fn padded_spec(t: &Tensor, shape: &[usize]) -> Result<Specs> {
    Ok(smallvec![Spec { layout: padded_layout(t, shape)?, dtype: t.dtype(), device: t.device() }])
}

/// Cropping may not exceed the size, even if padding on the other side would compensate.
fn check_crop(t: &[usize], pad: &[i64]) -> Result<()> {
    let fits = |(&n, (before, after)): (&usize, (i64, i64))| {
        (n as i64).saturating_add(before.min(0)).saturating_add(after.min(0)) >= 0
    };
    if t.iter().zip(by_dim(t.len(), pad)).all(fits) {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "narrow(): length must be non-negative. The padding {} crops more than the input of shape {} has.",
        Show(pad),
        Show(t)
    )))
}

/// The part of the input that is kept, and its destination.
fn kept(from: &Layout, into: &Layout, pad: &[i64]) -> (Layout, Layout) {
    let (mut from, mut into) = (from.clone(), into.clone());
    for (d, (before, after)) in by_dim(from.ndim(), pad).into_iter().enumerate() {
        let cut = (-before).max(0) as usize;
        let length = (from.shape[d] as i64 + before.min(0) + after.min(0)) as usize;
        from = from.slice(d, (cut, length, 1));
        into = into.slice(d, (before.max(0) as usize, length, 1));
    }
    (from, into)
}

fn pad_constant(c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    c.scalar("value")?.check_fits(t.dtype())?;
    out[0].fill_raw(c.scalar("value")?)?;
    let (from, into) = kept(t.layout(), out[0].layout(), c.ints("pad")?);
    out[0].with_layout(into).copy_raw(&t.with_layout(from))
}

pub static CONSTANT_PAD_ND: Op = Op {
    sig: sig("constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor"),
    doc: "Pads the last dimensions with a number; negative pads crop.",
    forms: F,
    body: kernel(
        |c| {
            let (t, pad) = (c.tensor(0)?, c.ints("pad")?);
            check_pairs(t.ndim(), pad)?;
            let shape = padded_shape(t.shape(), pad)?;
            check_crop(t.shape(), pad)?;
            padded_spec(t, &shape)
        },
        pad_constant,
        Some(pad_constant),
    ),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let back: Ints = c.ints("pad").iter().map(|p| -p).collect();
        CONSTANT_PAD_ND.call((c.g(), back, 0))
    })]),
    samples: &["f32[2,3], (1, 2)", "f32[2,3], (-1, 1), 2.5", "f32[], ()"],
    errors: &[
        ("f32[2], (-2, -1)", "RuntimeError", "negative output size"),
        ("f32[2], (-3, 3)", "RuntimeError", "length must be non-negative"),
        ("f32[2], (1, 4611686018427387904)", "RuntimeError", "overflowed"),
    ],
    keeps: Some("pad"),
    batch: Batching::Leading,
    ..OP
};

/// Maps a position `i` that may be outside `0..n` to one inside.
type Fold = fn(i: i64, n: i64) -> i64;

fn reflect(i: i64, n: i64) -> i64 {
    let i = i.abs();
    if i >= n { 2 * (n - 1) - i } else { i }
}
fn replicate(i: i64, n: i64) -> i64 {
    i.clamp(0, n - 1)
}

/// One index for each dimension; `None` before the first padded one.
fn indices(shape: &[usize], pad: &[i64], device: crate::device::Device, fold: Fold) -> Result<Vec<Option<Tensor>>> {
    let (ndim, depth) = (shape.len(), pad.len() / 2);
    let pads = by_dim(ndim, pad);
    let one = |d: usize| -> Result<Option<Tensor>> {
        if d + depth < ndim {
            return Ok(None);
        }
        let (n, (before, after)) = (shape[d] as i64, pads[d]);
        let list = crate::rt::reserve::list((-before..n + after).map(|i| fold(i, n)))?;
        let mut sizes: Dims = smallvec![1; depth];
        sizes[d + depth - ndim] = list.len();
        Term(Tensor::from_slice(&list, &sizes)).to_device(device).ok().map(Some)
    };
    (0..ndim).map(one).collect()
}

fn folded_spec(c: &Call) -> Result<Specs> {
    let (t, pad) = (c.tensor(0)?, c.ints("padding")?);
    padded_spec(t, &folded_shape(c.op, t.dtype(), t.shape(), pad)?)
}

/// The shape of an input that is padded with its elements, or why it cannot be.
fn folded_shape(op: &Op, dtype: DType, shape: &[usize], pad: &[i64]) -> Result<Dims> {
    if dtype == DType::Bool {
        return Err(no_kernel(op.base().trim_start_matches('_'), DType::Bool));
    }
    check_pairs(shape.len(), pad)?;
    // Only a batch may be empty.
    let (depth, reflects) = (pad.len() / 2, op.name().starts_with("_reflection"));
    if shape[usize::from(shape.len() == depth + 2)..].contains(&0) {
        return Err(Error::runtime(format!(
            "Expected {}D or {}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {}",
            depth + 1,
            depth + 2,
            Show(shape)
        )));
    }
    for (d, (&size, (before, after))) in shape.iter().zip(by_dim(shape.len(), pad)).enumerate() {
        let n = size as i64;
        if reflects && (before >= n && before > 0 || after >= n && after > 0) {
            let argument = 4 + 2 * (shape.len() - 1 - d); // PyTorch counts the sizes of its kernels' arguments
            return Err(Error::runtime(format!(
                "Argument #{argument}: Padding size should be less than the corresponding input dimension, but got: padding ({before}, {after}) at dimension {d} of input {}",
                Show(shape)
            )));
        }
    }
    let padded = padded_shape(shape, pad)?;
    check_crop(shape, pad)?;
    Ok(padded)
}

fn is_reflection(op: &Op) -> bool {
    op.name().starts_with("_reflection")
}
fn fold_of(op: &Op) -> Fold {
    if is_reflection(op) { reflect } else { replicate }
}

/// Whether the row-major kernels serve a padded dimension of `inner` and `outer`.
fn by_rows(inner: &Tensor, outer: &Tensor) -> bool {
    [inner, outer].iter().all(|t| t.device() == Device::Cpu && t.is_contiguous())
}

fn source(shape: &[usize], pad: &[i64], fold: Fold) -> Result<cpu::pad::Source> {
    let depth = pad.len() / 2;
    let pads = by_dim(shape.len(), pad).split_off(shape.len() - depth);
    let sizes = &shape[shape.len() - depth..];
    let table = |(&n, (before, after)): (&usize, (i64, i64))| {
        crate::rt::reserve::list((-before..n as i64 + after).map(|i| fold(i, n as i64) as usize))
    };
    Ok(cpu::pad::Source { tables: sizes.iter().zip(pads).map(table).collect::<Result<_>>()? })
}

fn folded(c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    if out[0].numel() == 0 {
        return Ok(());
    }
    if c.ints("padding")?.is_empty() {
        return out[0].copy_raw(t);
    }
    if by_rows(t, &out[0]) {
        return cpu::pad::pad(
            t.cpu_view()?,
            &source(t.shape(), c.ints("padding")?, fold_of(c.op))?,
            out[0].cpu_view()?,
        );
    }
    let list = indices(t.shape(), c.ints("padding")?, t.device(), fold_of(c.op))?;
    let list = crate::ops::indexing::advanced::aligned(&list)?;
    crate::ops::indexing::advanced::read(t, &list, &out[0])
}

const FOLDED: Op = Op {
    doc: "Pads the last dimensions with elements of the input.",
    forms: HIDDEN,
    body: kernel(folded_spec, folded, Some(folded)),
    vjp: Vjp::Each(&[d(0, A0, |c| {
        let op = if is_reflection(c.call.op) { &REFLECTION_PAD_BACKWARD } else { &REPLICATION_PAD_BACKWARD };
        c.tie_requires_grad(op.call((c.g(), &*c.meta_of(0).shape, c.ints("padding"))), &[0])
    })]),
    errors: &[("f32[1,0], (1, 1)", "RuntimeError", "input"), ("b8[1,3], (1, 1)", "NotImplementedError", "for 'Bool'")],
    ..OP
};

/// The shape of the gradient of an input of sizes `size`, if `grad_output` has the padded shape.
fn unfolded_shape(c: &Call) -> Result<Dims> {
    let (grad, pad) = (c.tensor("grad_output")?, c.ints("padding")?);
    let size = |&n: &i64| usize::try_from(n).map_err(|_| Error::runtime(format!("negative size {n}")));
    let shape = c.ints("size")?.iter().map(size).collect::<Result<Dims>>()?;
    checked_numel(&shape)?;
    let padded = folded_shape(c.op, grad.dtype(), &shape, pad)?;
    if padded.as_slice() != grad.shape() {
        return Err(Error::runtime(format!(
            "expected a gradient of shape {}, got {}",
            Show(padded.as_slice()),
            Show(grad.shape())
        )));
    }
    Ok(shape)
}

fn unfolded(c: &Call) -> Result<Outputs> {
    let (grad, pad, shape) = (c.tensor("grad_output")?, c.ints("padding")?, unfolded_shape(c)?);
    let out = Tensor::zeros(&shape, grad.dtype(), grad.device())?.with_layout(padded_layout(grad, &shape)?);
    if pad.is_empty() || out.numel() == 0 {
        out.copy_raw(grad)?;
        return Ok(smallvec![out]);
    }
    if by_rows(&out, grad) && (grad.dtype().is_float() || grad.dtype().is_complex()) {
        cpu::pad::pad_backward(grad.cpu_view()?, &source(&shape, pad, fold_of(c.op))?, out.cpu_view()?)?;
        return Ok(smallvec![out]);
    }
    INDEX_PUT.calls((&out, indices(&shape, pad, grad.device(), fold_of(c.op))?, grad, true))
}

/// The gradient of padding with elements of the input, whose gradient is the padding.
const UNFOLDED: Op = Op {
    doc: "Adds each element of a gradient to the element of the padded input that it was read from.",
    forms: HIDDEN,
    body: opaque(
        |c| {
            let grad = c.tensor("grad_output")?;
            padded_spec(grad, &unfolded_shape(c)?)
        },
        unfolded,
    ),
    batch: Batching::Rule(crate::ops::support::batch_layers::sized::<1>),
    ..OP
};
pub static REFLECTION_PAD_BACKWARD: Op = Op {
    sig: sig("_reflection_pad_backward(Tensor grad_output, int[] size, int[] padding) -> Tensor"),
    vjp: Vjp::Each(&[d(0, 0, |c| repadded(c, [&REFLECTION_PAD1D, &REFLECTION_PAD2D, &REFLECTION_PAD3D]))]),
    samples: &["f32[2,7], (2, 4), (2, 1)", "f32[2,4,7], (2, 3, 4), (2, 1, 1, 0)"],
    errors: &[("f32[2,6], (2, 4), (2, 1)", "RuntimeError", "expected a gradient of shape [2, 7]")],
    ..UNFOLDED
};
pub static REPLICATION_PAD_BACKWARD: Op = Op {
    sig: sig("_replication_pad_backward(Tensor grad_output, int[] size, int[] padding) -> Tensor"),
    vjp: Vjp::Each(&[d(0, 0, |c| repadded(c, [&REPLICATION_PAD1D, &REPLICATION_PAD2D, &REPLICATION_PAD3D]))]),
    samples: &["f32[2,10], (2, 4), (5, 1)", "f32[2,4,7], (2, 3, 4), (2, 1, 1, 0)"],
    errors: &[("f32[2,6], (2, 4), (2, 1)", "RuntimeError", "expected a gradient of shape [2, 7]")],
    ..UNFOLDED
};

/// The padding of the gradient's gradient.
fn repadded(c: &VjpCtx, by_depth: [&'static Op; 3]) -> Term {
    match c.ints("padding").len() / 2 {
        depth @ 1..=3 => by_depth[depth - 1].call((c.g(), c.ints("padding"))),
        _ => c.g(),
    }
}

pub static REFLECTION_PAD1D: Op = Op {
    sig: sig("_reflection_pad1d(Tensor self, int[] padding) -> Tensor"),
    samples: &["f32[2,4], (2, 1)"],
    batch: Batching::Fold(3, &[0]),
    ..FOLDED
};
pub static REFLECTION_PAD2D: Op = Op {
    sig: sig("_reflection_pad2d(Tensor self, int[] padding) -> Tensor"),
    samples: &["f32[2,3,4], (2, 1, 1, 0)"],
    batch: Batching::Fold(4, &[0]),
    ..FOLDED
};
pub static REFLECTION_PAD3D: Op = Op {
    sig: sig("_reflection_pad3d(Tensor self, int[] padding) -> Tensor"),
    samples: &["f32[1,2,3,4], (2, 1, 1, 0, 0, 1)"],
    batch: Batching::Fold(5, &[0]),
    ..FOLDED
};
pub static REPLICATION_PAD1D: Op = Op {
    sig: sig("_replication_pad1d(Tensor self, int[] padding) -> Tensor"),
    samples: &["f32[2,4], (5, 1)"],
    batch: Batching::Fold(3, &[0]),
    ..FOLDED
};
pub static REPLICATION_PAD2D: Op = Op {
    sig: sig("_replication_pad2d(Tensor self, int[] padding) -> Tensor"),
    samples: &["f32[2,3,4], (2, 1, 1, 0)"],
    batch: Batching::Fold(4, &[0]),
    ..FOLDED
};
pub static REPLICATION_PAD3D: Op = Op {
    sig: sig("_replication_pad3d(Tensor self, int[] padding) -> Tensor"),
    samples: &["f32[1,2,3,4], (2, 1, 1, 0, 0, 1)"],
    batch: Batching::Fold(5, &[0]),
    ..FOLDED
};

/// Dimension by dimension, each end extended by elements from the other end.
fn circular(t: &Tensor, pad: &[i64]) -> Result<Outputs> {
    // Row-major, as in PyTorch, whatever the order of the input's dimensions.
    let mut out = Term::from(t).contiguous().ok()?;
    for (d, (before, after)) in by_dim(t.ndim(), pad).into_iter().enumerate() {
        let n = t.size(d) as i64;
        // Crop before the ends are joined.
        let (cut, kept) =
            (before.min(0).saturating_neg(), n.saturating_add(before.min(0)).saturating_add(after.min(0)));
        if kept < 0 {
            return Err(Error::runtime("Negative padding value is resulting in an empty dimension."));
        }
        if before > kept || after > kept {
            return Err(Error::runtime("Padding value causes wrapping around more than once."));
        }
        if before == 0 && after == 0 {
            continue;
        }
        let slice = |from: i64, to: i64| SLICE.call((&out, d, cut + from, cut + to)).ok();
        let mut parts = Vec::new();
        if before > 0 {
            parts.push(slice(kept - before, kept)?);
        }
        parts.push(slice(0, kept)?);
        if after > 0 {
            parts.push(slice(0, after)?);
        }
        out = CAT.call((parts, d)).ok()?;
    }
    // Without padding the result must still be new memory.
    if out.same(t) { CAT.calls((vec![out], 0)) } else { Ok(smallvec![out]) }
}
