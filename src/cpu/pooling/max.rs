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

/// What is replaced lane by lane. A mask has all bits set or none: of comparisons and selects LLVM would make branches.
trait Blend: Copy {
    fn blend(mask: i32, x: Self, other: Self) -> Self;
}
impl Blend for f32 {
    #[inline(always)]
    fn blend(mask: i32, x: f32, other: f32) -> f32 {
        f32::from_bits(i32::blend(mask, x.to_bits() as i32, other.to_bits() as i32) as u32)
    }
}
impl Blend for f64 {
    #[inline(always)]
    fn blend(mask: i32, x: f64, other: f64) -> f64 {
        f64::from_bits(i64::blend(mask, x.to_bits() as i64, other.to_bits() as i64) as u64)
    }
}
impl Blend for i32 {
    #[inline(always)]
    fn blend(mask: i32, x: i32, other: i32) -> i32 {
        (x & mask) | (other & !mask)
    }
}
impl Blend for i64 {
    #[inline(always)]
    fn blend(mask: i32, x: i64, other: i64) -> i64 {
        (x & mask as i64) | (other & !(mask as i64))
    }
}
impl Blend for () {
    #[inline(always)]
    fn blend(_: i32, _: (), _: ()) {}
}

/// The place of an element in its plane; `()` where it is not wanted.
trait Place: Blend + Default + Send + Sync + 'static {
    const WANTED: bool;
    fn of(at: usize) -> Self;
    /// `self` elements further; may wrap where the place is not used.
    fn after(self, at: Self) -> Self;
    fn get(self) -> i64;
}
impl Place for i32 {
    const WANTED: bool = true;
    #[inline(always)]
    fn of(at: usize) -> i32 {
        at as i32
    }
    #[inline(always)]
    fn after(self, at: i32) -> i32 {
        self.wrapping_add(at)
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
    #[inline(always)]
    fn after(self, at: i64) -> i64 {
        self.wrapping_add(at)
    }
    fn get(self) -> i64 {
        self
    }
}
impl Place for () {
    const WANTED: bool = false;
    #[inline(always)]
    fn of(_: usize) {}
    #[inline(always)]
    fn after(self, _: ()) {}
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

fn by_place<T: Ordered + Blend + Default>(
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

fn rows<T: Ordered + Blend + Default, I: Place>(
    input: &View,
    frame: &Frame,
    out: &View,
    indices: Option<View>,
) -> Result<()> {
    let [d, h, w] = frame.axes;
    let (wide, long) = (w.size * frame.width, w.out * frame.width);
    let (planes, lines, windows) = (list(d.windows())?, list(h.windows())?, list(w.windows())?);
    let mut starts = filled(I::default(), long)?;
    for (window, starts) in windows.iter().zip(starts.chunks_exact_mut(frame.width)) {
        starts.fill(I::of(window.start.min(w.size - 1)));
    }
    frame.each_outer(|range| {
        let (mut x, mut y) = (Reader::<T>::new(input, wide)?, Writer::<T>::new(out, long)?);
        let room = long.next_multiple_of(LANES);
        let (mut best, mut places) = (filled(T::LOWEST, room)?, filled(I::default(), room)?);
        let mut stripes = if frame.width == 1 { Stripes::<T, I>::new(w)? } else { None };
        for line in frame.outer_lines(range) {
            let (dw, hw) = (&planes[line.at[0]], &lines[line.at[1]]);
            let base = |i: usize, j: usize| (i * h.size + j) * w.size;
            let first = I::of(base(dw.start.min(d.size - 1), hw.start.min(h.size - 1)));
            best.fill(T::LOWEST);
            places.iter_mut().zip(&starts).for_each(|(p, &start)| *p = first.after(start));
            for i in (0..dw.count).map(|i| dw.start + i * d.step()) {
                for j in (0..hw.count).map(|j| hw.start + j * h.step()) {
                    let at = frame.inner_start(&super::frame::Line { plane: line.plane, at: [i, j] });
                    // SAFETY: the frame has seen that the row lies within the operand.
                    let row = unsafe { x.run(at, wide) };
                    let (best, places, base) = (&mut best[..], &mut places[..], base(i, j));
                    match &mut stripes {
                        Some(stripes) => simd::run(MaxStripes { row, base, stripes, best, places }),
                        None => {
                            let (width, step) = (frame.width, w.step());
                            simd::run(MaxRow { row, base, step, windows: &windows, width, best, places });
                        }
                    }
                }
            }
            let start = frame.outer_start(&line);
            // SAFETY: the rows of a result are disjoint, and each belongs to one unit.
            unsafe {
                y.run(start, long, |y| y.copy_from_slice(&best[..long]));
                if let Some(to) = &indices {
                    let to = std::slice::from_raw_parts_mut(to.at(start) as *mut i64, long);
                    to.iter_mut().zip(&places).for_each(|(t, p)| *t = p.get());
                }
            }
        }
        Ok(())
    })
}

/// One row of the input meets the results of one row, window by window.
struct MaxRow<'a, T, I> {
    row: &'a [T],
    base: usize,
    /// The distance between neighbouring elements of a window.
    step: usize,
    windows: &'a [Window],
    width: usize,
    best: &'a mut [T],
    places: &'a mut [I],
}

/// The mask of a lane whose element takes the place of the best so far: one that is larger or NaN.
#[inline(always)]
#[allow(clippy::eq_op)] // as below
fn is_better<T: Ordered>(x: T, best: T) -> i32 {
    -((x > best) as i32) | -((x != x) as i32)
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
    fn run<F: Fuse>(self) {
        let c = self.width;
        for (o, w) in self.windows.iter().enumerate() {
            let (best, places) = (&mut self.best[o * c..(o + 1) * c], &mut self.places[o * c..(o + 1) * c]);
            for i in (0..w.count).map(|k| w.start + k * self.step) {
                let (x, at) = (&self.row[i * c..(i + 1) * c], I::of(self.base + i));
                best.iter_mut().zip(places.iter_mut()).zip(x).for_each(|((b, p), &x)| meet(b, p, x, at));
            }
        }
    }
}

/// Results that are compared together.
const LANES: usize = 16;

/// A row with its padding, elements a stride apart side by side: each element of the kernel meets a run of one stripe.
struct Stripes<T, I> {
    /// As many stripes as the stride; what the row does not fill is the lowest value.
    memory: Vec<T>,
    stride: usize,
    /// For each stripe the first element of the row that it holds, and where it holds it.
    firsts: Vec<[usize; 2]>,
    /// For each element of the kernel the run that it meets, and its place relative to the first result's window.
    taps: Vec<(usize, usize)>,
    padding: usize,
    /// The distances of the results' windows from the first one.
    along: Vec<I>,
}
impl<T: Ordered + Default, I: Place> Stripes<T, I> {
    /// None where the windows are no steps, or the kernel extends so far beyond the row that stripes would be mostly empty.
    fn new(w: &Axis) -> Result<Option<Stripes<T, I>>> {
        let Windows::Steps { kernel, stride, padding, dilation } = w.windows else { return Ok(None) };
        let room = w.out.next_multiple_of(LANES);
        let reach = (kernel - 1).saturating_mul(dilation);
        if stride > LANES || reach.max(padding) > 4 * w.size {
            return Ok(None);
        }
        let each = (room + reach / stride).max((w.size + padding).div_ceil(stride));
        // Element `i` is number `i + padding` of the padded row.
        let firsts = list((0..stride).map(|r| {
            let first = (r + stride - padding % stride) % stride;
            if first < w.size { [first, r * each + (first + padding) / stride] } else { [w.size, 0] }
        }))?;
        Ok(Some(Stripes {
            memory: filled(T::LOWEST, each * stride)?,
            stride,
            firsts,
            taps: list((0..kernel).map(|k| k * dilation).map(|k| (k % stride * each + k / stride, k)))?,
            padding,
            along: list((0..room).map(|o| I::of(o * stride)))?,
        }))
    }
    #[inline(always)]
    fn read(&mut self, row: &[T]) {
        for &[first, at] in &self.firsts {
            let row = &row[first..];
            let to = &mut self.memory[at..];
            match self.stride {
                1 => to[..row.len()].copy_from_slice(row),
                2 => {
                    let (pairs, last) = row.as_chunks::<2>();
                    to.iter_mut().zip(pairs).for_each(|(to, pair)| *to = pair[0]);
                    if let [last] = last {
                        to[pairs.len()] = *last;
                    }
                }
                stride => to.iter_mut().zip(row.iter().step_by(stride)).for_each(|(to, &x)| *to = x),
            }
        }
    }
}

/// One row of the input meets the results of one row, element of the kernel by element.
struct MaxStripes<'a, T, I> {
    row: &'a [T],
    base: usize,
    stripes: &'a mut Stripes<T, I>,
    /// Whole lanes.
    best: &'a mut [T],
    places: &'a mut [I],
}
impl<T: Ordered + Blend + Default, I: Place> Kernel for MaxStripes<'_, T, I> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        self.stripes.read(self.row);
        let Stripes { memory, taps, padding, along, .. } = self.stripes;
        for &(start, k) in &*taps {
            let base = I::of((self.base + k).wrapping_sub(*padding));
            let (best, places) = (self.best.as_chunks_mut::<LANES>().0, self.places.as_chunks_mut::<LANES>().0);
            let (x, along) = (memory[start..].as_chunks::<LANES>().0, along.as_chunks::<LANES>().0);
            for (((best, places), x), along) in best.iter_mut().zip(places).zip(x).zip(along) {
                // All is read before anything is written: LLVM does not know that they lie apart.
                let (x, old, at, along) = (*x, *best, *places, *along);
                let better: [i32; LANES] = std::array::from_fn(|l| is_better(x[l], old[l]));
                *best = std::array::from_fn(|l| T::blend(better[l], x[l], old[l]));
                *places = std::array::from_fn(|l| I::blend(better[l], base.after(along[l]), at[l]));
            }
        }
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
    if width == 1 {
        let refused = g.iter().zip(places).find_map(|(&g, &place)| match dx.get_mut(place as usize) {
            Some(dx) => {
                *dx = dx.plus(g);
                None
            }
            None => Some(place),
        });
        return refused;
    }
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
