//! Sampling of images and volumes at the points of a grid, and its gradients by input and grid.
//!
//! A point reads one, two or four neighbours in each dimension; those of all dimensions are multiplied out to taps, a position and
//! a weight each, once for a chunk of points. Each channel then goes through the chunk. The gradient of the grid replaces one
//! dimension's weights by their slopes; that of the input adds to the positions, one channel in one task.

mod taps;

use self::taps::{CHUNK, Coordinate, LANES, Taps};
use super::arith::Arith;
use super::number_class::Fuse;
use super::parallel::try_par_for;
use super::simd::{self, Kernel};
use super::view::{SendPtr, View, ensure};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kinds::{Outside, Sampling};
use crate::rt::reserve::filled;
use std::ops::Range;

/// How points are read.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub sampling: Sampling,
    pub outside: Outside,
    /// Whether -1 and 1 are the centres of the corner elements, rather than their outer edges.
    pub align_corners: bool,
}

/// What both directions have in common: `x` dense `[batch, channels, sizes..]`, the grid dense `[batch, points, dimensions]`.
struct Shapes<'a> {
    batch: usize,
    channels: usize,
    sizes: &'a [usize],
    volume: usize,
    points: usize,
}

fn shapes<'a>(x: &View<'a>, grid: &View, out: &View) -> Result<Shapes<'a>> {
    let right = matches!(x.ndim(), 4 | 5) && grid.ndim() == 3 && out.ndim() == 3;
    ensure(right && x.is_contiguous() && grid.is_contiguous() && out.is_contiguous(), "grid_sample")?;
    let sizes = &x.shape[2..];
    let volume: usize = sizes.iter().product();
    let fits = grid.shape[2] == sizes.len() && grid.shape[0] == x.shape[0] && out.shape[..2] == x.shape[..2];
    ensure(fits && out.shape[2] == grid.shape[1] && x.dtype == grid.dtype && x.dtype == out.dtype, "grid_sample")?;
    if volume > i32::MAX as usize {
        return Err(Error::runtime("a channel has too many elements for sampling; expected fewer than 2147483648"));
    }
    Ok(Shapes { batch: x.shape[0], channels: x.shape[1], sizes, volume, points: grid.shape[1] })
}

/// The elements of a view that `shapes` found to be dense and of dtype `T`.
fn slice<'a, T>(v: &View<'a>) -> &'a [T] {
    debug_assert!(v.is_contiguous() && v.dtype.size() == size_of::<T>());
    // SAFETY: the view has that many elements, in live memory.
    unsafe { std::slice::from_raw_parts(v.ptr as *const T, v.numel()) }
}

/// `out[n, c, p]` is `x[n, c]` at the point `grid[n, p]`. All are dense, of float32 or float64.
pub fn grid_sample(x: View, grid: View, s: Settings, out: View) -> Result<()> {
    ensure(out.is_apart(&x) && out.is_apart(&grid), "grid_sample")?;
    match x.dtype {
        DType::F64 => forward::<f64>(x, grid, s, out),
        DType::F32 => forward::<f32>(x, grid, s, out),
        _ => ensure(false, "grid_sample"),
    }
}

fn forward<T: Coordinate>(x: View, grid: View, s: Settings, out: View) -> Result<()> {
    let is = shapes(&x, &grid, &out)?;
    let (x, grid) = (slice::<T>(&x), slice::<T>(&grid));
    let (out, dims, chunks) = (SendPtr(out.ptr as *mut T), is.sizes.len(), is.points.div_ceil(CHUNK));
    let work = CHUNK * (is.channels + 8) * s.sampling.count().pow(dims as u32);
    try_par_for(is.batch * chunks, (1 << 16) / work.max(1), |range| {
        let mut taps = Taps::<T>::new(s, dims, false)?;
        for unit in range {
            let (n, points) = (unit / chunks, chunk(unit % chunks, is.points));
            taps.fill(&grid[(n * is.points + points.start) * dims..][..points.len() * dims], is.sizes, s);
            for c in 0..is.channels {
                let at = n * is.channels + c;
                // SAFETY: a chunk of a channel is written by this unit alone.
                let y = unsafe { std::slice::from_raw_parts_mut(out.at(at * is.points + points.start), points.len()) };
                simd::run(Gather { x: &x[at * is.volume..][..is.volume], taps: &taps, y });
            }
        }
        Ok(())
    })
}

fn chunk(i: usize, points: usize) -> Range<usize> {
    i * CHUNK..((i + 1) * CHUNK).min(points)
}

/// The sums of the taps of a chunk in one channel.
struct Gather<'a, T> {
    x: &'a [T],
    taps: &'a Taps<T>,
    y: &'a mut [T],
}
impl<T: Coordinate> Kernel for Gather<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let Gather { x, taps, y } = self;
        let (blocks, rest) = y.as_chunks_mut::<LANES>();
        let count = blocks.len();
        for (c, y) in blocks.iter_mut().enumerate() {
            *y = sums_of::<T, F>(x, taps, c);
        }
        if !rest.is_empty() {
            rest.copy_from_slice(&sums_of::<T, F>(x, taps, count)[..rest.len()]);
        }
    }
}

/// The sums of the taps of a block of points.
#[inline(always)]
fn sums_of<T: Coordinate, F: Fuse>(x: &[T], taps: &Taps<T>, block: usize) -> [T; LANES] {
    let mut sums = [T::ZERO; LANES];
    for (at, weight) in taps.at.iter().zip(&taps.weight) {
        let (at, weight) = (&at.as_chunks::<LANES>().0[block], &weight.as_chunks::<LANES>().0[block]);
        // SAFETY: positions are those of this channel's sizes, or negative.
        let x = unsafe { T::gather::<F>(x.as_ptr(), at) };
        for l in 0..LANES {
            sums[l] = sums[l].plus(weight[l].times(x[l]));
        }
    }
    sums
}

/// The element at a position; zero where there is none.
#[inline(always)]
fn value<T: Arith>(x: &[T], at: i32) -> T {
    x.get(at as usize).copied().unwrap_or(T::ZERO)
}

/// The gradients by input and grid of `grid_sample`: `g` has the shape of its result, `dx` and `dgrid` are dense and zero.
pub fn grid_sample_backward(
    g: View,
    x: View,
    grid: View,
    s: Settings,
    dx: Option<View>,
    dgrid: Option<View>,
) -> Result<()> {
    let results = || dx.iter().chain(&dgrid);
    let apart = results().all(|r| [&g, &x, &grid].iter().all(|v| r.is_apart(v)) && r.is_contiguous());
    let like = dx.is_none_or(|v| v.shape == x.shape && v.dtype == x.dtype)
        && dgrid.is_none_or(|v| v.shape == grid.shape && v.dtype == x.dtype);
    ensure(apart && like, "grid_sample_backward")?;
    match x.dtype {
        DType::F64 => backward::<f64>(g, x, grid, s, dx, dgrid),
        DType::F32 => backward::<f32>(g, x, grid, s, dx, dgrid),
        _ => ensure(false, "grid_sample_backward"),
    }
}

fn backward<T: Coordinate>(
    g: View,
    x: View,
    grid: View,
    s: Settings,
    dx: Option<View>,
    dgrid: Option<View>,
) -> Result<()> {
    let is = shapes(&x, &grid, &g)?;
    let (g, x, grid) = (slice::<T>(&g), slice::<T>(&x), slice::<T>(&grid));
    if let Some(dx) = dx {
        by_input(g, grid, &is, s, SendPtr(dx.ptr as *mut T))?;
    }
    match dgrid {
        Some(dgrid) => by_grid(g, x, grid, &is, s, SendPtr(dgrid.ptr as *mut T)),
        None => Ok(()),
    }
}

/// Channels that share the taps of a chunk in the gradient of the input.
const GROUP: usize = 8;

fn by_input<T: Coordinate>(g: &[T], grid: &[T], is: &Shapes, s: Settings, dx: SendPtr<T>) -> Result<()> {
    let (dims, groups) = (is.sizes.len(), is.channels.div_ceil(GROUP));
    try_par_for(is.batch * groups, (1 << 14) / (is.points * GROUP).max(1), |range| {
        let mut taps = Taps::<T>::new(s, dims, false)?;
        for unit in range {
            let (n, first) = (unit / groups, unit % groups * GROUP);
            for points in (0..is.points.div_ceil(CHUNK)).map(|i| chunk(i, is.points)) {
                taps.fill(&grid[(n * is.points + points.start) * dims..][..points.len() * dims], is.sizes, s);
                for c in first..(first + GROUP).min(is.channels) {
                    let at = n * is.channels + c;
                    // SAFETY: a channel is written by this unit alone.
                    let dx = unsafe { std::slice::from_raw_parts_mut(dx.at(at * is.volume), is.volume) };
                    spread(&g[at * is.points..][points.clone()], &taps, dx);
                }
            }
        }
        Ok(())
    })
}

/// Adds the gradients of a chunk to the positions that it read.
fn spread<T: Coordinate>(g: &[T], taps: &Taps<T>, dx: &mut [T]) {
    for k in 0..taps.each {
        for ((&g, &at), &w) in g.iter().zip(&taps.at[k]).zip(&taps.weight[k]) {
            if let Some(dx) = dx.get_mut(at as usize) {
                *dx = dx.plus(w.times(g));
            }
        }
    }
}

fn by_grid<T: Coordinate>(g: &[T], x: &[T], grid: &[T], is: &Shapes, s: Settings, dgrid: SendPtr<T>) -> Result<()> {
    let (dims, chunks) = (is.sizes.len(), is.points.div_ceil(CHUNK));
    let work = CHUNK * (is.channels + 8) * s.sampling.count().pow(dims as u32) * dims;
    try_par_for(is.batch * chunks, (1 << 16) / work.max(1), |range| {
        let mut taps = Taps::<T>::new(s, dims, true)?;
        let mut sums = filled(T::ZERO, dims * CHUNK)?;
        for unit in range {
            let (n, points) = (unit / chunks, chunk(unit % chunks, is.points));
            let coordinates = (n * is.points + points.start) * dims..(n * is.points + points.end) * dims;
            taps.fill(&grid[coordinates.clone()], is.sizes, s);
            sums.fill(T::ZERO);
            for c in 0..is.channels {
                let at = n * is.channels + c;
                let (g, x) = (&g[at * is.points..][points.clone()], &x[at * is.volume..][..is.volume]);
                simd::run(Slopes { g, x, taps: &taps, sums: &mut sums });
            }
            // SAFETY: the points of a chunk belong to this unit alone.
            let out = unsafe { std::slice::from_raw_parts_mut(dgrid.at(coordinates.start), coordinates.len()) };
            for (i, out) in out.iter_mut().enumerate() {
                *out = sums[i % dims * CHUNK + i / dims];
            }
        }
        Ok(())
    })
}

/// Adds, for each coordinate of a chunk, the slopes of the taps times the elements of one channel and its gradient.
struct Slopes<'a, T> {
    g: &'a [T],
    x: &'a [T],
    taps: &'a Taps<T>,
    sums: &'a mut [T],
}
impl<T: Coordinate> Kernel for Slopes<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let taps = self.taps;
        for k in 0..taps.each {
            for (d, sums) in self.sums.chunks_exact_mut(CHUNK).enumerate() {
                let slope = &taps.slope[d * taps.each + k];
                for (((sum, &g), &at), &slope) in sums.iter_mut().zip(self.g).zip(&taps.at[k]).zip(slope) {
                    *sum = sum.plus(g.times(slope).times(value(self.x, at)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, Rng, close};

    const SETTINGS: [(Sampling, Outside); 5] = [
        (Sampling::Bilinear, Outside::Zeros),
        (Sampling::Bilinear, Outside::Reflection),
        (Sampling::Nearest, Outside::Border),
        (Sampling::Bicubic, Outside::Zeros),
        (Sampling::Bicubic, Outside::Border),
    ];

    /// The gradients against differences of the forward pass, which is linear in the input.
    #[test]
    fn gradients_agree_with_differences() {
        let mut rng = Rng(5);
        let (sizes, points) = ([2, 3, 4, 5], 150);
        for (sampling, outside) in SETTINGS {
            for align_corners in [false, true] {
                let s = Settings { sampling, outside, align_corners };
                let x = Array::random(&mut rng, DType::F64, &sizes);
                let grid = Array::random(&mut rng, DType::F64, &[2, points, 2]);
                let g = Array::random(&mut rng, DType::F64, &[2, 3, points]);
                let (x, grid, g) = (dense(&x), dense(&grid), dense(&g));
                let (dx, dgrid) = (Array::zeros(DType::F64, &sizes), Array::zeros(DType::F64, &[2, points, 2]));
                grid_sample_backward(g.view(), x.view(), grid.view(), s, Some(dx.view()), Some(dgrid.view())).unwrap();
                let loss = |x: &Array, grid: &Array| -> f64 {
                    let y = Array::zeros(DType::F64, &[2, 3, points]);
                    grid_sample(x.view(), grid.view(), s, y.view()).unwrap();
                    y.reals().iter().zip(g.reals()).map(|(y, g)| y * g).sum()
                };
                let moved = |a: &Array, i: usize, by: f64| {
                    let mut values = a.reals();
                    values[i] += by;
                    Array::of(DType::F64, &a.shape, &values)
                };
                for i in [0, 7, 60, 119] {
                    let slope = (loss(&moved(&x, i, 0.5), &grid) - loss(&moved(&x, i, -0.5), &grid)) / 1.0;
                    close(&[dx.reals()[i]], &[slope], 1e-9);
                }
                for i in [0, 1, 150, 299] {
                    let step = 1e-6;
                    let slope = (loss(&x, &moved(&grid, i, step)) - loss(&x, &moved(&grid, i, -step))) / (2.0 * step);
                    close(&[dgrid.reals()[i]], &[slope], 1e-5);
                }
            }
        }
    }

    fn dense(a: &Array) -> Array {
        Array::of(a.dtype, &a.shape, &a.reals())
    }

    #[test]
    fn points_between_elements() {
        let x = Array::of(DType::F32, &[1, 1, 1, 2], &[1.0, 3.0]);
        let grid = Array::of(DType::F32, &[1, 4, 2], &[-1.0, 0.0, 0.0, 0.0, 0.5, 0.0, 3.0, 0.0]);
        let y = Array::zeros(DType::F32, &[1, 1, 4]);
        let s = |outside| Settings { sampling: Sampling::Bilinear, outside, align_corners: true };
        grid_sample(x.view(), grid.view(), s(Outside::Zeros), y.view()).unwrap();
        close(&y.reals(), &[1.0, 2.0, 2.5, 0.0], 1e-6);
        grid_sample(x.view(), grid.view(), s(Outside::Border), y.view()).unwrap();
        close(&y.reals(), &[1.0, 2.0, 2.5, 3.0], 1e-6);
        grid_sample(x.view(), grid.view(), s(Outside::Reflection), y.view()).unwrap();
        close(&y.reals(), &[1.0, 2.0, 2.5, 1.0], 1e-6);
    }
}
