//! Convolution and its transpose over one to three dimensions, and the gradient of the weight: contractions of the
//! weights, or the gradient, with the windows of the input, which are a view. Only padding copies the input.

use super::contract::Contraction;
use super::map::copy;
use super::view::{Input, View};
use crate::error::{Error, Result};
use crate::gpu::driver::GpuBuffer;
use crate::layout::window::Motion;
use crate::layout::{Dims, contiguous_strides};

/// What a window slides over: the input with zeros around, and between its elements in a transpose.
struct Padded {
    buffer: GpuBuffer,
    shape: Dims,
    strides: Dims,
}

impl Padded {
    fn view<'a>(&'a self, like: &View<'a>) -> View<'a> {
        View { buffer: &self.buffer, shape: &self.shape, strides: &self.strides, offset: 0, ..*like }
    }
    /// Zeros of `sizes`, with the elements of `x` `step` apart from `start` on; what lies outside is left out.
    fn of(x: &View, sizes: &[usize], start: &[i64], step: &[i64]) -> Result<Padded> {
        let shape: Dims = x.shape[..2].iter().chain(sizes).copied().collect();
        let strides = contiguous_strides(&shape);
        let elements = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).ok_or_else(too_many)?;
        let buffer = x.scratch(elements.checked_mul(x.dtype.size()).ok_or_else(too_many)?)?;
        let whole = View { buffer: &buffer, shape: &shape, strides: &strides, offset: 0, ..*x };
        copy(&Input::Scalar(0i64.into()), &whole)?;
        let (mut count, mut to, mut from) = (Dims::from(x.shape), strides.clone(), x.offset);
        let mut offset = 0;
        for (i, (&start, &step)) in start.iter().zip(step).enumerate() {
            let (d, size) = (2 + i, sizes[i] as i64);
            let first = if start < 0 { (-start + step - 1) / step } else { 0 };
            let end = if start >= size { 0 } else { (size - 1 - start) / step + 1 };
            let end = end.clamp(0, x.shape[d] as i64);
            count[d] = (end - first).max(0) as usize;
            from += first as usize * x.strides[d];
            offset += (start + first * step).max(0) as usize * strides[d];
            to[d] = strides[d] * step as usize;
        }
        if !count.contains(&0) {
            let inside = View { buffer: &buffer, shape: &count, strides: &to, offset, ..*x };
            copy(&Input::View(View { shape: &count, offset: from, ..*x }), &inside)?;
        }
        Ok(Padded { buffer, shape, strides })
    }
}

#[cold]
fn too_many() -> Error {
    Error::runtime("convolution: the padded input has too many elements")
}

/// `v` with dimension `d` as `groups` times the rest, the groups first.
fn grouped(v: &View, d: usize, groups: usize) -> (Dims, Dims) {
    let (mut shape, mut strides) = (Dims::from(v.shape), Dims::from(v.strides));
    shape[d] /= groups;
    strides.insert(0, strides[d] * shape[d]);
    shape.insert(0, groups);
    (shape, strides)
}

fn permuted(list: &[usize], order: &[usize]) -> Dims {
    order.iter().map(|&d| list[d]).collect()
}

/// The windows `[groups, channels, *kernel, batch, *places]` of `x`.
fn windows(
    x: &View,
    kernel: &[usize],
    places: &[usize],
    step: &[i64],
    dilation: &[i64],
    groups: usize,
) -> (Dims, Dims) {
    let within = x.shape[1] / groups;
    let of = |list: &[i64], i: usize| list[i] as usize * x.strides[2 + i];
    let inner = |list: &'_ [i64]| (0..kernel.len()).map(|i| of(list, i)).collect::<Dims>();
    let shape = [groups, within].iter().chain(kernel).chain([&x.shape[0]]).chain(places).copied().collect();
    let strides = [within * x.strides[1], x.strides[1]].into_iter().chain(inner(dilation));
    (shape, strides.chain([x.strides[0]]).chain(inner(step)).collect())
}

/// `x` as the windows of a convolution meet it; `None` where that is `x` itself.
fn padded(x: &View, m: &Motion) -> Result<Option<Padded>> {
    if m.padding.iter().all(|&p| p == 0) {
        return Ok(None);
    }
    let sizes: Dims = x.shape[2..].iter().zip(m.padding).map(|(&n, &p)| n + 2 * p as usize).collect();
    Padded::of(x, &sizes, m.padding, &[1; 3]).map(Some)
}

/// The convolution of `x` `[n, c, ..]` with `w` `[f, c / groups, *kernel]`, or its transpose with `w`
/// `[c, f / groups, *kernel]`, into `out` `[n, f, *places]`.
pub fn convolution(x: &View, w: &View, bias: Option<&View>, out: &View, m: &Motion) -> Result<()> {
    if m.transposed {
        return transpose(x, w, bias, out, m);
    }
    let inner = padded(x, m)?;
    let over = inner.as_ref().map_or(*x, |p| p.view(x));
    let (shape, strides) = windows(&over, &w.shape[2..], &out.shape[2..], m.stride, m.dilation, m.groups);
    // [groups, filters of a group, channels of a group, *kernel]
    let (ws, wt) = grouped(w, 0, m.groups);
    product(&View { shape: &ws, strides: &wt, ..*w }, &View { shape: &shape, strides: &strides, ..over }, bias, out, m)
}

/// `out` `[n, f, *places]` from the weights and the windows, both with the groups first; those of a transpose are turned.
fn product(w: &View, windows: &View, bias: Option<&View>, out: &View, m: &Motion) -> Result<()> {
    let dims = out.shape.len() - 2;
    // [groups, filters of a group, batch, *places]
    let (os, ot) = grouped(out, 1, m.groups);
    let order: Dims = [0, 2, 1].into_iter().chain(3..3 + dims).collect();
    let (os, ot) = (permuted(&os, &order), permuted(&ot, &order));
    let bias = bias.map(|b| (b, grouped(b, 0, m.groups)));
    Contraction {
        a: *w,
        b: *windows,
        out: View { shape: &os, strides: &ot, ..*out },
        alpha: 1.0,
        addend: bias.as_ref().map(|(b, (shape, strides))| View { shape, strides, ..**b }),
        batch: 1,
        rows: 1,
        inner: 1 + dims,
        turned: if m.transposed { dims } else { 0 },
    }
    .run()
}

/// Results of a transpose, `stride` apart, that meet the same taps: with result `q`, tap `t` meets element
/// `q - start + (taps - 1 - t) * gap` of the input.
#[derive(Clone)]
struct Phase {
    first: usize,
    places: usize,
    tap: usize,
    tap_step: usize,
    taps: usize,
    gap: usize,
    start: i64,
}

/// The phases of one dimension with so many results.
fn phases(results: usize, kernel: usize, stride: i64, padding: i64, dilation: i64) -> Vec<Phase> {
    let step = stride as usize;
    let of = |first: usize| {
        // Tap `k` of result `o` meets element `(o + padding - k * dilation) / stride`, where that is whole.
        let meets = |k: &usize| (first as i64 + padding - *k as i64 * dilation).rem_euclid(stride) == 0;
        let mut met = (0..kernel).filter(meets);
        let (tap, next, more) = (met.next(), met.next(), met.count());
        let taps = tap.is_some() as usize + next.is_some() as usize + more;
        let (tap, tap_step) = (tap.unwrap_or(0), next.map_or(1, |n| n - tap.unwrap_or(0)));
        let gap = (tap_step as i64 * dilation / stride) as usize;
        let shift = (first as i64 + padding - tap as i64 * dilation).div_euclid(stride);
        let start = (taps.max(1) - 1) as i64 * gap as i64 - shift;
        Phase { first, places: (results - first).div_ceil(step), tap, tap_step, taps, gap, start }
    };
    (0..step.min(results)).map(of).collect()
}

/// A product for each phase, so that no zeros are multiplied but those of the padding.
fn transpose(x: &View, w: &View, bias: Option<&View>, out: &View, m: &Motion) -> Result<()> {
    let dims = w.shape.len() - 2;
    let of = |i: usize| phases(out.shape[2 + i], w.shape[2 + i], m.stride[i], m.padding[i], m.dilation[i]);
    let axes: Vec<Vec<Phase>> = (0..dims).map(of).collect();
    // One padded copy serves all phases, unless none needs any.
    let before: Vec<i64> = axes.iter().map(|a| a.iter().map(|p| p.start).max().unwrap_or(0).max(0)).collect();
    let room = |i: usize| {
        let end = |p: &Phase| before[i] - p.start + (p.places + (p.taps.max(1) - 1) * p.gap) as i64;
        axes[i].iter().map(end).max().unwrap_or(0).max(0) as usize
    };
    let sizes: Dims = (0..dims).map(room).collect();
    let needed = before.iter().any(|&n| n > 0) || (0..dims).any(|i| sizes[i] > x.shape[2 + i]);
    let inner = if needed { Some(Padded::of(x, &sizes, &before, &[1; 3])?) } else { None };
    let over = inner.as_ref().map_or(*x, |p| p.view(x));
    let count: usize = axes.iter().map(Vec::len).product();
    for mut e in 0..count {
        let mut chosen: Vec<&Phase> = Vec::with_capacity(dims);
        for axis in axes.iter().rev() {
            chosen.insert(0, &axis[e % axis.len()]);
            e /= axis.len();
        }
        phase(&over, w, bias, out, m, &chosen, &before)?;
    }
    Ok(())
}

fn phase(
    x: &View,
    w: &View,
    bias: Option<&View>,
    out: &View,
    m: &Motion,
    axes: &[&Phase],
    before: &[i64],
) -> Result<()> {
    let dims = axes.len();
    let (mut ws, mut wt, mut w_offset) = (Dims::from(w.shape), Dims::from(w.strides), w.offset);
    let (mut os, mut ot, mut out_offset) = (Dims::from(out.shape), Dims::from(out.strides), out.offset);
    let mut x_offset = x.offset;
    for (i, p) in axes.iter().enumerate() {
        let d = 2 + i;
        w_offset += p.tap * wt[d];
        out_offset += p.first * ot[d];
        x_offset += (before[i] - p.start) as usize * x.strides[d];
        (ws[d], wt[d]) = (p.taps, wt[d] * p.tap_step);
        (os[d], ot[d]) = (p.places, ot[d] * m.stride[i] as usize);
    }
    let gaps: Vec<i64> = axes.iter().map(|p| p.gap as i64).collect();
    let (shape, strides) = windows(&View { offset: x_offset, ..*x }, &ws[2..], &os[2..], &[1; 3], &gaps, m.groups);
    // [groups, filters of a group, channels of a group, *kernel]
    let weights = View { shape: &ws, strides: &wt, offset: w_offset, ..*w };
    let (gs, gt) = grouped(&weights, 0, m.groups);
    let order: Dims = [0, 2, 1].into_iter().chain(3..3 + dims).collect();
    let (gs, gt) = (permuted(&gs, &order), permuted(&gt, &order));
    let over = View { shape: &shape, strides: &strides, offset: x_offset, ..*x };
    let to = View { shape: &os, strides: &ot, offset: out_offset, ..*out };
    product(&View { shape: &gs, strides: &gt, ..weights }, &over, bias, &to, m)
}

/// The gradient of `convolution` by its weight, for `grad` of its result: each element of the smaller side times the
/// windows of the larger one.
pub fn convolution_weight_gradient(grad: &View, x: &View, out: &View, m: &Motion) -> Result<()> {
    let (dims, groups) = (out.shape.len() - 2, m.groups);
    let (small, large) = if m.transposed { (x, grad) } else { (grad, x) };
    let inner = padded(large, m)?;
    let over = inner.as_ref().map_or(*large, |p| p.view(large));
    let (ws, wt) = windows(&over, &out.shape[2..], &small.shape[2..], m.stride, m.dilation, groups);
    // [groups, batch, *places, channels, *kernel]
    let order: Dims = [0].into_iter().chain(2 + dims..3 + 2 * dims).chain(1..2 + dims).collect();
    let (bs, bt) = (permuted(&ws, &order), permuted(&wt, &order));
    // [groups, channels of a group, batch, *places]
    let (ss, st) = grouped(small, 1, groups);
    let order: Dims = [0, 2, 1].into_iter().chain(3..3 + dims).collect();
    let (ss, st) = (permuted(&ss, &order), permuted(&st, &order));
    let (os, ot) = grouped(out, 0, groups);
    Contraction {
        a: View { shape: &ss, strides: &st, ..*small },
        b: View { shape: &bs, strides: &bt, ..over },
        out: View { shape: &os, strides: &ot, ..*out },
        alpha: 1.0,
        addend: None,
        batch: 1,
        rows: 1,
        inner: 1 + dims,
        turned: 0,
    }
    .run()
}
