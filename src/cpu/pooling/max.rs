//! Max pooling: the largest element of each window and its place in the plane, and the gradient, which goes there.
//!
//! Of equal elements the first counts, of several NaN the last, as in PyTorch. A row of results is made at once: for each
//! element of the kernel, the elements `stride` apart that it meets are compared with the best so far.

use super::frame::Frame;
use crate::cpu::arith::Ordered;
use crate::cpu::number_class::Fuse;
use crate::cpu::runs::{Reader, Writer};
use crate::cpu::simd;
use crate::cpu::simd::Kernel;
use crate::cpu::view::{View, ensure};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::window::{Axis, Window, Windows};
use crate::rt::reserve::{filled, list};

/// The place of an element in its plane; `()` where it is not wanted.
trait Place: Copy + Default + Send + 'static {
    const WANTED: bool;
    fn of(at: usize) -> Self;
    fn get(self) -> i64;
}
impl Place for i32 {
    const WANTED: bool = true;
    #[inline(always)]
    fn of(at: usize) -> i32 {
        at as i32
    }
    fn get(self) -> i64 {
        self as i64
    }
}
impl Place for i64 {
    const WANTED: bool = true;
    #[inline(always)]
    fn of(at: usize) -> i64 {
        at as i64
    }
    fn get(self) -> i64 {
        self
    }
}
impl Place for () {
    const WANTED: bool = false;
    #[inline(always)]
    fn of(_: usize) {}
    fn get(self) -> i64 {
        0
    }
}

/// The maxima of windows of `input` `[n, c, d, h, w]` into `out`, and their places within `[d, h, w]` into `indices`.
pub fn max_pool(input: View, axes: &[Axis; 3], out: View, indices: Option<View>) -> Result<()> {
    let results = [Some(&out), indices.as_ref()];
    let results: Vec<&View> = results.into_iter().flatten().collect();
    let frame = Frame::new(axes, &[&input], &results, "max_pool")?;
    let apart = results.iter().all(|v| v.is_apart(&input)) && indices.is_none_or(|v| v.is_apart(&out));
    ensure(apart && indices.is_none_or(|v| v.dtype == DType::I64) && out.dtype == input.dtype, "max_pool")?;
    let small = frame.inner() <= i32::MAX as usize;
    match input.dtype {
        DType::F64 => by_place::<f64>(&input, &frame, &out, indices, small),
        d if d.is_float() => by_place::<f32>(&input, &frame, &out, indices, small),
        _ => by_place::<i64>(&input, &frame, &out, indices, small),
    }
}

fn by_place<T: Ordered + Default>(
    input: &View,
    frame: &Frame,
    out: &View,
    indices: Option<View>,
    small: bool,
) -> Result<()> {
    match indices {
        None => rows::<T, ()>(input, frame, out, None),
        Some(to) if small => rows::<T, i32>(input, frame, out, Some(to)),
        Some(to) => rows::<T, i64>(input, frame, out, Some(to)),
    }
}

fn rows<T: Ordered + Default, I: Place>(input: &View, frame: &Frame, out: &View, indices: Option<View>) -> Result<()> {
    let [d, h, w] = frame.axes;
    let (wide, long) = (w.size * frame.width, w.out * frame.width);
    let windows = list((0..w.out).map(|o| w.window(o)))?;
    frame.each_outer(|range| {
        let (mut x, mut y) = (Reader::<T>::new(input, wide)?, Writer::<T>::new(out, long)?);
        let (mut best, mut places) = (filled(T::LOWEST, long)?, filled(I::default(), long)?);
        for unit in range {
            let line = frame.outer_line(unit);
            let (dw, hw) = (d.window(line.at[0]), h.window(line.at[1]));
            let base = |i: usize, j: usize| (i * h.size + j) * w.size;
            let first = base(dw.start.min(d.size - 1), hw.start.min(h.size - 1));
            best.fill(T::LOWEST);
            for (o, window) in windows.iter().enumerate() {
                let place = I::of(first + window.start.min(w.size - 1));
                places[o * frame.width..(o + 1) * frame.width].fill(place);
            }
            for i in (0..dw.count).map(|i| dw.start + i * d.step()) {
                for j in (0..hw.count).map(|j| hw.start + j * h.step()) {
                    let at = frame.inner_start(&super::frame::Line { plane: line.plane, at: [i, j] });
                    // SAFETY: the frame has seen that the row lies within the operand.
                    let row = unsafe { x.run(at, wide) };
                    let width = frame.width;
                    let (best, places) = (&mut best[..], &mut places[..]);
                    simd::run(MaxRow { row, base: base(i, j), axis: w, windows: &windows, width, best, places });
                }
            }
            let start = frame.outer_start(&line);
            // SAFETY: the rows of a result are disjoint, and each belongs to one unit.
            unsafe {
                y.run(start, long, |y| y.copy_from_slice(&best));
                if let Some(to) = &indices {
                    let to = std::slice::from_raw_parts_mut(to.at(start) as *mut i64, long);
                    to.iter_mut().zip(&places).for_each(|(t, p)| *t = p.get());
                }
            }
        }
        Ok(())
    })
}

/// One row of the input meets the results of one row.
struct MaxRow<'a, T, I> {
    row: &'a [T],
    base: usize,
    axis: &'a Axis,
    windows: &'a [Window],
    width: usize,
    best: &'a mut [T],
    places: &'a mut [I],
}

/// `x` takes the place of the best so far if it is larger or NaN.
#[inline(always)]
#[allow(clippy::eq_op)] // `x != x` is the NaN test that every ordered type supports
fn meet<T: Ordered, I: Place>(best: &mut T, place: &mut I, x: T, at: I) {
    let better = x > *best || x != x;
    *best = if better { x } else { *best };
    if I::WANTED {
        *place = if better { at } else { *place };
    }
}

impl<T: Ordered, I: Place> Kernel for MaxRow<'_, T, I> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(mut self) {
        match self.axis.windows {
            Windows::Steps { stride: 1, .. } if self.width == 1 => self.steps::<1>(),
            Windows::Steps { stride: 2, .. } if self.width == 1 => self.steps::<2>(),
            Windows::Steps { stride: 3, .. } if self.width == 1 => self.steps::<3>(),
            _ => self.each(),
        }
    }
}

impl<T: Ordered, I: Place> MaxRow<'_, T, I> {
    /// For each element of the kernel, the results whose element lies within the row.
    #[inline(always)]
    fn steps<const S: usize>(&mut self) {
        let Windows::Steps { kernel, padding, dilation, .. } = self.axis.windows else { return };
        let n = self.row.len();
        for k in Taps::met(kernel, dilation, padding, S, n, self.best.len()) {
            let Some(taps) = Taps::new(k * dilation, padding, S, n, self.best.len()) else { continue };
            let Taps { from, first, count } = taps;
            let (best, places) = (&mut self.best[first..first + count], &mut self.places[first..first + count]);
            let x = &self.row[from..];
            let (base, last) = (self.base + from, count - 1);
            let (chunks, _) = x.as_chunks::<S>();
            for (i, ((b, p), x)) in best[..last].iter_mut().zip(&mut places[..last]).zip(chunks).enumerate() {
                meet(b, p, x[0], I::of(base + i * S));
            }
            meet(&mut best[last], &mut places[last], x[last * S], I::of(base + last * S));
        }
    }
    #[inline(always)]
    fn each(&mut self) {
        let (c, step) = (self.width, self.axis.step());
        for (o, w) in self.windows.iter().enumerate() {
            let (best, places) = (&mut self.best[o * c..(o + 1) * c], &mut self.places[o * c..(o + 1) * c]);
            for i in (0..w.count).map(|k| w.start + k * step) {
                let (x, at) = (&self.row[i * c..(i + 1) * c], I::of(self.base + i));
                best.iter_mut().zip(places.iter_mut()).zip(x).for_each(|((b, p), &x)| meet(b, p, x, at));
            }
        }
    }
}

/// The results that one element of the kernel meets within a row: `count` from `first` on, whose elements lie `stride` apart
/// from `from` on.
pub(crate) struct Taps {
    pub from: usize,
    pub first: usize,
    pub count: usize,
}
impl Taps {
    /// The elements of the kernel that meet any: in a large kernel over a small row, few of them.
    #[inline(always)]
    pub fn met(
        kernel: usize,
        dilation: usize,
        padding: usize,
        stride: usize,
        n: usize,
        out: usize,
    ) -> std::ops::Range<usize> {
        let first = padding.saturating_sub(out.saturating_sub(1).saturating_mul(stride)).div_ceil(dilation);
        first..kernel.min((padding + n).saturating_sub(1) / dilation + 1)
    }
    /// For the element `offset` after the first, of a row of `n` and `out` results; none where it meets nothing.
    #[inline(always)]
    pub fn new(offset: usize, padding: usize, stride: usize, n: usize, out: usize) -> Option<Taps> {
        let first = padding.saturating_sub(offset).div_ceil(stride);
        let from = first * stride + offset - padding;
        if from >= n || first >= out {
            return None;
        }
        Some(Taps { from, first, count: ((n - 1 - from) / stride + 1).min(out - first) })
    }
}

/// The gradient of `max_pool`: each element of `grad` is added to the place of its maximum.
pub fn max_pool_backward(grad: View, indices: View, axes: &[Axis; 3], dx: View) -> Result<()> {
    let frame = Frame::new(axes, &[&dx], &[&grad, &indices], "max_pool_backward")?;
    let right = indices.dtype == DType::I64 && dx.is_apart(&grad) && dx.is_apart(&indices);
    ensure(right, "max_pool_backward")?;
    match dx.dtype {
        DType::F64 => spread::<f64>(&grad, &indices, &frame, &dx),
        _ => spread::<f32>(&grad, &indices, &frame, &dx),
    }
}

fn spread<T: crate::cpu::arith::Float + Default>(grad: &View, indices: &View, frame: &Frame, dx: &View) -> Result<()> {
    let (inner, outer) = (frame.inner() * frame.width, frame.outer() * frame.width);
    let grain = ((1 << 13) / inner.max(outer).max(1)).max(1);
    crate::cpu::parallel::try_par_for(frame.count, grain, |range| {
        let (mut g, mut to) = (Reader::<T>::new(grad, outer)?, Writer::<T>::new(dx, inner)?);
        for plane in range {
            // SAFETY: the frame has seen that the planes lie within the operands; each belongs to one unit.
            let refused = unsafe {
                let g = g.run(plane * outer, outer);
                let places = std::slice::from_raw_parts(indices.at(plane * outer) as *const i64, outer);
                to.run(plane * inner, inner, |dx| add_at(dx, g, places, frame.width))
            };
            if let Some(at) = refused {
                return Err(Error::runtime(format!(
                    "Found an invalid max index: {at} (a plane has {} elements)",
                    frame.inner()
                )));
            }
        }
        Ok(())
    })
}

/// Adds each `g` at its place; the first place that is none, if any.
fn add_at<T: crate::cpu::arith::Float>(dx: &mut [T], g: &[T], places: &[i64], width: usize) -> Option<i64> {
    dx.fill(T::ZERO);
    let n = (dx.len() / width.max(1)) as i64;
    for (g, places) in g.chunks(width).zip(places.chunks(width)) {
        for (lane, (&g, &place)) in g.iter().zip(places).enumerate() {
            if place < 0 || place >= n {
                return Some(place);
            }
            let at = &mut dx[place as usize * width + lane];
            *at = at.plus(g);
        }
    }
    None
}

/// Each element of `x` goes to its place in a row of `out`, whose other elements are zero; all are `[planes, elements]`,
/// dense. `volume` is what a row of `out` is called in errors. Of several elements for one place the last stays.
pub fn max_unpool(x: View, indices: View, out: View, volume: &[i64]) -> Result<()> {
    let shapes = x.ndim() == 2 && out.ndim() == 2 && indices.shape == x.shape && out.shape[0] == x.shape[0];
    let dense = [&x, &indices, &out].iter().all(|v| v.is_contiguous());
    let right = indices.dtype == DType::I64 && out.is_apart(&x) && out.is_apart(&indices);
    ensure(shapes && dense && right, "max_unpool")?;
    match out.dtype {
        DType::F64 => unpool::<f64>(&x, &indices, &out, volume),
        _ => unpool::<f32>(&x, &indices, &out, volume),
    }
}

fn unpool<T: crate::cpu::arith::Float>(x: &View, indices: &View, out: &View, volume: &[i64]) -> Result<()> {
    let (inner, outer) = (x.shape[1], out.shape[1]);
    let grain = ((1 << 13) / inner.max(outer).max(1)).max(1);
    crate::cpu::parallel::try_par_for(x.shape[0], grain, |range| {
        let (mut x, mut to) = (Reader::<T>::new(x, inner)?, Writer::<T>::new(out, outer)?);
        for plane in range {
            // SAFETY: the planes lie within the operands, as has been checked; each belongs to one range.
            let refused = unsafe {
                let x = x.run(plane * inner, inner);
                let places = std::slice::from_raw_parts(indices.at(plane * inner) as *const i64, inner);
                to.run(plane * outer, outer, |to| {
                    to.fill(T::ZERO);
                    places.iter().zip(x).find_map(|(&place, &x)| match to.get_mut(place as usize) {
                        Some(to) if place >= 0 => {
                            *to = x;
                            None
                        }
                        _ => Some(place),
                    })
                })
            };
            if let Some(at) = refused {
                let volume = volume.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
                let message = format!("Found an invalid max index: {at} (output volumes are of size {volume})");
                return Err(Error::runtime(message));
            }
        }
        Ok(())
    })
}
