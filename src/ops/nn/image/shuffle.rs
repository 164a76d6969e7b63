//! Moving elements between channels and space: `pixel_shuffle`, its inverse, and `channel_shuffle`.
//!
//! Each is one strided copy: input and output are seen in one shape, in which their dimensions stand in another order.

use crate::error::{Error, Result, Show};
use crate::layout::{Dims, Layout};
use crate::op::*;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&PIXEL_SHUFFLE, &PIXEL_UNSHUFFLE, &CHANNEL_SHUFFLE, &NATIVE_CHANNEL_SHUFFLE];

/// A result of this shape; channels last where the input is.
fn spec(t: &Tensor, shape: Dims) -> Result<Specs> {
    crate::layout::checked_numel(&shape)?;
    let layout = Layout::of(shape).formed(t.layout().channels_format())?;
    Ok(smallvec![Spec { layout, dtype: t.dtype(), device: t.device() }])
}

fn check_rank(c: &Call, t: &Tensor, factor: &str) -> Result<usize> {
    let (name, r) = (c.op.base(), c.int(1)?);
    if t.ndim() < 3 {
        let n = t.ndim();
        return Err(Error::runtime(format!(
            "{name} expects input to have at least 3 dimensions, but got input with {n} dimension(s)"
        )));
    }
    if r <= 0 {
        return Err(Error::runtime(format!("{name} expects a positive {factor}, but got {r}")));
    }
    Ok(r as usize)
}

fn shuffled(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    let r = check_rank(c, t, "upscale_factor")?;
    let (lead, area) = (t.ndim() - 3, r.saturating_mul(r));
    let channels = t.size(lead);
    if channels % area != 0 {
        return Err(Error::runtime(format!(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but input.size(-3)={channels} is not divisible by {area}"
        )));
    }
    let mut shape: Dims = t.shape().into();
    shape[lead] = channels / area;
    for d in [lead + 1, lead + 2] {
        shape[d] = shape[d].saturating_mul(r);
    }
    spec(t, shape)
}

fn unshuffled(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    let r = check_rank(c, t, "downscale_factor")?;
    let lead = t.ndim() - 3;
    let mut shape: Dims = t.shape().into();
    let empty = t.numel() == 0;
    for (d, name) in [(lead + 1, "height"), (lead + 2, "width")] {
        if !shape[d].is_multiple_of(r) {
            return Err(Error::runtime(format!(
                "pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({})={} is not divisible by {r}",
                d as i64 - t.ndim() as i64,
                shape[d]
            )));
        }
        shape[d] /= r;
    }
    shape[lead] = shape[lead].saturating_mul(r).saturating_mul(r);
    // PyTorch leaves a tensor without elements as it is.
    spec(t, if empty { t.shape().into() } else { shape })
}

/// Both in the shape `[.., channels, r, r, height, width]` of the small image: first that of many channels, then the large one.
fn aligned(small: &Tensor, large: &Tensor, r: usize) -> (Tensor, Tensor) {
    let lead = small.ndim() - 3;
    let (s, l) = (small.layout(), large.layout());
    let inner = [l.shape[lead], r, r, s.shape[lead + 1], s.shape[lead + 2]];
    let shape: Dims = s.shape[..lead].iter().copied().chain(inner).collect();
    let seen = |t: &Tensor, strides: [usize; 5]| {
        let strides = t.layout().strides[..lead].iter().copied().chain(strides).collect();
        t.with_layout(Layout { shape: shape.clone(), strides, offset: t.layout().offset })
    };
    let (a, b) = (&s.strides[lead..], &l.strides[lead..]);
    // The stride of an empty tensor's channels may be beyond any number, but is not used.
    let few = seen(small, [a[0].saturating_mul(r * r), a[0].saturating_mul(r), a[0], a[1], a[2]]);
    (few, seen(large, [b[0], b[1], b[2], b[1].saturating_mul(r), b[2].saturating_mul(r)]))
}

fn shuffle(c: &Call, out: &[Tensor]) -> Result<()> {
    if out[0].numel() == 0 {
        return Ok(());
    }
    let (from, into) = aligned(c.tensor(0)?, &out[0], c.int("upscale_factor")? as usize);
    into.copy_raw(&from)
}

fn unshuffle(c: &Call, out: &[Tensor]) -> Result<()> {
    if out[0].numel() == 0 {
        return Ok(());
    }
    let (into, from) = aligned(&out[0], c.tensor(0)?, c.int("downscale_factor")? as usize);
    into.copy_raw(&from)
}

pub static PIXEL_SHUFFLE: Op = Op {
    sig: sig("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor"),
    doc: "`[.., C * r * r, H, W]` to `[.., C, H * r, W * r]`: each block of r * r channels becomes a square of pixels. Shi et al., arXiv:1609.05158.",
    aliases: &["nn.functional.pixel_shuffle"],
    forms: F,
    body: kernel(shuffled, shuffle, Some(shuffle)),
    vjp: Vjp::Each(&[d(0, 0, |c| PIXEL_UNSHUFFLE.call((c.g(), c.int("upscale_factor"))))]),
    samples: &["f32[2,8,2,3], 2", "f32[9,1,2], 3", "f32[1,2,4,2,2], 2", "i64[1,4,2,2], 2", "b8[4,1,1], 1"],
    errors: &[
        ("f32[2,3], 2", "RuntimeError", "at least 3 dimensions"),
        ("f32[4,2,3], 0", "RuntimeError", "positive upscale_factor"),
        ("f32[3,2,3], 2", "RuntimeError", "input.size(-3)=3 is not divisible by 4"),
        ("f32[3,2,3], 4294967296", "RuntimeError", "is not divisible"),
    ],
    batch: Batching::Leading,
    ..OP
};

pub static PIXEL_UNSHUFFLE: Op = Op {
    sig: sig("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor"),
    doc: "The inverse of `pixel_shuffle`: `[.., C, H * r, W * r]` to `[.., C * r * r, H, W]`.",
    aliases: &["nn.functional.pixel_unshuffle"],
    forms: F,
    body: kernel(unshuffled, unshuffle, Some(unshuffle)),
    vjp: Vjp::Each(&[d(0, 0, |c| match c.sizes(0).contains(&0) {
        true => c.g(),
        false => PIXEL_SHUFFLE.call((c.g(), c.int("downscale_factor"))),
    })]),
    samples: &["f32[2,2,4,6], 2", "f32[1,3,6], 3", "i64[1,1,2,2], 2"],
    errors: &[
        ("f32[2,3], 2", "RuntimeError", "at least 3 dimensions"),
        ("f32[4,2,3], -1", "RuntimeError", "positive downscale_factor"),
        ("f32[3,3,4], 2", "RuntimeError", "height to be divisible by downscale_factor, but input.size(-2)=3"),
        ("f32[3,4,3], 2", "RuntimeError", "width to be divisible by downscale_factor, but input.size(-1)=3"),
    ],
    batch: Batching::Leading,
    ..OP
};

fn regrouped(c: &Call) -> Result<Specs> {
    let (t, groups) = (c.tensor(0)?, c.int("groups")?);
    if t.ndim() < 3 {
        return Err(Error::runtime(format!(
            "channel_shuffle expects input with > 2 dims, but got input with sizes {}",
            Show(t.shape())
        )));
    }
    if groups <= 0 {
        return Err(Error::runtime(format!(
            "Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )));
    }
    let channels = t.size(1);
    if !(channels as u64).is_multiple_of(groups as u64) {
        return Err(Error::runtime(format!(
            "Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )));
    }
    spec(t, t.shape().into())
}

/// Channel `i * groups + g` is what channel `g * (channels / groups) + i` was.
fn regroup(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, groups) = (c.tensor(0)?, c.int("groups")? as usize);
    if t.numel() == 0 {
        return Ok(());
    }
    let each = t.size(1) / groups;
    let split = |t: &Tensor, step_of_group: usize, step_within: usize| {
        let l = t.layout();
        let parts = |first: usize, pair: [usize; 2], rest: &[usize]| -> Dims {
            [first].into_iter().chain(pair).chain(rest.iter().copied()).collect()
        };
        let channel = l.strides[1];
        t.with_layout(Layout {
            shape: parts(l.shape[0], [groups, each], &l.shape[2..]),
            strides: parts(l.strides[0], [step_of_group * channel, step_within * channel], &l.strides[2..]),
            offset: l.offset,
        })
    };
    split(&out[0], 1, groups).copy_raw(&split(t, each, 1))
}

pub static CHANNEL_SHUFFLE: Op = Op {
    sig: sig("channel_shuffle(Tensor self, int groups) -> Tensor"),
    doc: "The channels of `[batch, channels, ..]` in another order: the first of each group, then the second of each. Zhang et al., arXiv:1707.01083.",
    aliases: &["nn.functional.channel_shuffle"],
    forms: F,
    body: kernel(regrouped, regroup, Some(regroup)),
    vjp: Vjp::Each(&[d(0, 0, |c| CHANNEL_SHUFFLE.call((c.g(), c.sizes(0)[1] / c.int("groups").max(1))))]),
    samples: &["f32[2,6,2,3], 3", "f32[1,4,3], 2", "i64[1,4,2,2], 4"],
    errors: &[
        ("f32[2,3], 1", "RuntimeError", "input with > 2 dims"),
        ("f32[2,3,2], 0", "RuntimeError", "must be positive"),
        ("f32[2,3,2], 2", "RuntimeError", "Got 3 channels and 2 groups"),
    ],
    batch: Batching::Fold(4, &[0]),
    ..OP
};

pub static NATIVE_CHANNEL_SHUFFLE: Op = Op {
    sig: sig("native_channel_shuffle(Tensor self, int groups) -> Tensor"),
    doc: "`channel_shuffle` without a gradient, as PyTorch's kernel of this name.",
    aliases: &["nn.functional.native_channel_shuffle"],
    forms: F,
    body: kernel(regrouped, regroup, Some(regroup)),
    vjp: Vjp::Missing,
    samples: &["f32[2,6,2,3], 3"],
    errors: &[("f32[2,3,2], 2", "RuntimeError", "Got 3 channels and 2 groups")],
    batch: Batching::Fold(3, &[0]),
    ..OP
};
