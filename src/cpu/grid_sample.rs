//! Sampling of images and volumes at the points of a grid, and its gradients by input and grid.
//!
//! A point reads one, two or four neighbours in each dimension; those of all dimensions are multiplied out to taps, a position and
//! a weight each, once for a chunk of points. Each channel then goes through the chunk. The gradient of the grid replaces one
//! dimension's weights by their slopes; that of the input adds to the positions, one channel in one task.

use super::arith::{Arith, Float};
use super::number_class::Fuse;
use super::parallel::try_par_for;
use super::simd::{self, Kernel};
use super::view::{Ptr, View, ensure};
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

/// The types that coordinates are computed in.
trait Coordinate: Float {
    fn floor(self) -> Self;
    /// The nearest whole number, of two the even one.
    fn nearest(self) -> Self;
    /// A whole number of at least zero.
    fn index(self) -> u32;
}
impl Coordinate for f32 {
    #[inline(always)]
    fn floor(self) -> f32 {
        f32::floor(self)
    }
    #[inline(always)]
    fn nearest(self) -> f32 {
        self.round_ties_even()
    }
    #[inline(always)]
    fn index(self) -> u32 {
        self as u32
    }
}
impl Coordinate for f64 {
    #[inline(always)]
    fn floor(self) -> f64 {
        f64::floor(self)
    }
    #[inline(always)]
    fn nearest(self) -> f64 {
        self.round_ties_even()
    }
    #[inline(always)]
    fn index(self) -> u32 {
        self as u32
    }
}

/// A position that is outside and counts as zero.
const NOWHERE: u32 = u32::MAX;

/// One neighbour in one dimension: its position, its weight, and the slope of the weight by the grid's coordinate.
#[derive(Clone, Copy)]
struct Neighbour<T> {
    at: u32,
    weight: T,
    slope: T,
}

/// A coordinate from -1 to 1 counted in elements, and its slope.
#[inline(always)]
fn unnormalized<T: Coordinate>(x: T, size: usize, align_corners: bool) -> (T, T) {
    let two = T::from_f64(2.0);
    let n = T::from_f64(size as f64);
    let x = x.plus(T::ONE);
    if align_corners {
        let last = n.minus(T::ONE);
        return (x.divide(two).times(last), last.divide(two));
    }
    (x.times(n).minus(T::ONE).divide(two), n.divide(two))
}

/// Back into the range of positions, with the slope by the coordinate that was given: zero at the borders and beyond.
#[inline(always)]
fn clipped<T: Coordinate>(at: T, size: usize) -> (T, T) {
    let last = T::from_f64(size as f64 - 1.0);
    // NaN counts as zero.
    let above = at > T::ZERO;
    if !above {
        (T::ZERO, T::ZERO)
    } else if at >= last {
        (last, T::ZERO)
    } else {
        (at, T::ONE)
    }
}

/// Reflected about the outer elements, or about their outer edges, as often as needed.
#[inline(always)]
fn reflected<T: Coordinate>(at: T, size: usize, align_corners: bool) -> (T, T) {
    let (low, span) = if align_corners { (0.0, size as f64 - 1.0) } else { (-0.5, size as f64) };
    if span == 0.0 {
        return (T::ZERO, T::ZERO);
    }
    let (low, twice) = (T::from_f64(low), T::from_f64(2.0 * span));
    let moved = at.minus(low);
    let sign = if moved < T::ZERO { T::ZERO.minus(T::ONE) } else { T::ONE };
    let distance = Float::abs(moved);
    let there = distance.minus(distance.divide(twice).floor().times(twice));
    let back = twice.minus(there);
    if there <= back { (there.plus(low), sign) } else { (back.plus(low), T::ZERO.minus(sign)) }
}

#[inline(always)]
fn inside<T: Coordinate>(at: T, size: usize, s: Settings) -> (T, T) {
    match s.outside {
        Outside::Zeros => (at, T::ONE),
        Outside::Border => clipped(at, size),
        Outside::Reflection => {
            let (at, first) = reflected(at, size, s.align_corners);
            let (at, second) = clipped(at, size);
            (at, first.times(second))
        }
    }
}

#[inline(always)]
fn position<T: Coordinate>(at: T, size: usize) -> u32 {
    if at >= T::ZERO && at < T::from_f64(size as f64) { at.index() } else { NOWHERE }
}

/// The neighbours of a coordinate in one dimension; how many there are depends on the sampling alone.
#[inline(always)]
fn neighbours<T: Coordinate>(x: T, size: usize, s: Settings, out: &mut [Neighbour<T>; 4]) {
    let (at, scale) = unnormalized(x, size, s.align_corners);
    let of = |at: T, weight: T, slope: T| Neighbour { at: position(at, size), weight, slope };
    match s.sampling {
        Sampling::Nearest => out[0] = of(inside(at, size, s).0.nearest(), T::ONE, T::ZERO),
        Sampling::Bilinear => {
            let (at, slope) = inside(at, size, s);
            let (low, slope) = (at.floor(), slope.times(scale));
            let part = at.minus(low);
            out[0] = of(low, T::ONE.minus(part), T::ZERO.minus(slope));
            out[1] = of(low.plus(T::ONE), part, slope);
        }
        Sampling::Bicubic => {
            let low = at.floor();
            let part = at.minus(low);
            for (k, out) in out.iter_mut().enumerate() {
                let step = T::from_f64(k as f64 - 1.0);
                let (weight, slope) = cubic(part.minus(step));
                *out = of(inside(low.plus(step), size, s).0, weight, slope.times(scale));
            }
        }
    }
}

/// Cubic convolution with a = -3/4 (Keys 1981) at a signed distance of at most 2, and its slope.
#[inline(always)]
fn cubic<T: Coordinate>(x: T) -> (T, T) {
    let c = T::from_f64;
    let a = -0.75;
    let d = Float::abs(x);
    let sign = if x < T::ZERO { c(-1.0) } else { T::ONE };
    if d <= T::ONE {
        let w = c(a + 2.0).times(d).minus(c(a + 3.0)).times(d).times(d).plus(T::ONE);
        (w, c(3.0 * (a + 2.0)).times(d).minus(c(2.0 * (a + 3.0))).times(d).times(sign))
    } else {
        let w = c(a).times(d).minus(c(5.0 * a)).times(d).plus(c(8.0 * a)).times(d).minus(c(4.0 * a));
        (w, c(3.0 * a).times(d).minus(c(10.0 * a)).times(d).plus(c(8.0 * a)).times(sign))
    }
}

/// Points whose taps are multiplied out at once.
const CHUNK: usize = 128;

/// The taps of a chunk, those of one order together: positions in a channel, weights, and for each dimension the slopes. The
/// neighbours in single dimensions lie the same way.
struct Taps<T> {
    each: usize,
    dims: usize,
    at: Vec<u32>,
    weight: Vec<T>,
    slope: Vec<T>,
    near_at: Vec<u32>,
    near_weight: Vec<T>,
    near_slope: Vec<T>,
}

impl<T: Coordinate> Taps<T> {
    fn new(s: Settings, dims: usize, slopes: bool) -> Result<Taps<T>> {
        let (single, each) = (s.sampling.count() * dims * CHUNK, s.sampling.count().pow(dims as u32));
        let n = each * CHUNK;
        Ok(Taps {
            each,
            dims,
            at: filled(0, n)?,
            weight: filled(T::ZERO, n)?,
            slope: filled(T::ZERO, if slopes { n * dims } else { 0 })?,
            near_at: filled(0, single)?,
            near_weight: filled(T::ZERO, single)?,
            near_slope: filled(T::ZERO, single)?,
        })
    }
    /// Those of `points`, each `[dims]` coordinates, the last dimension first.
    fn fill(&mut self, points: &[T], sizes: &[usize], s: Settings) {
        simd::run(Fill { points, sizes, s, taps: self });
    }
    #[inline(always)]
    fn near(&mut self, points: &[T], sizes: &[usize], s: Settings) {
        let (n, dims) = (s.sampling.count(), self.dims);
        let mut near = [Neighbour { at: 0, weight: T::ZERO, slope: T::ZERO }; 4];
        for (d, &size) in sizes.iter().enumerate() {
            for (p, point) in points.chunks_exact(dims).enumerate() {
                neighbours(point[dims - 1 - d], size, s, &mut near);
                for (k, near) in near.iter().enumerate().take(n) {
                    let i = (d * n + k) * CHUNK + p;
                    (self.near_at[i], self.near_weight[i], self.near_slope[i]) = (near.at, near.weight, near.slope);
                }
            }
        }
    }
    /// Multiplies out tap `k`, made of one neighbour in each dimension.
    #[inline(always)]
    fn multiply(&mut self, k: usize, n: usize, points: usize, sizes: &[usize]) {
        let rows: [usize; 3] = std::array::from_fn(|d| match d < self.dims {
            true => (d * n + k / n.pow((self.dims - 1 - d) as u32) % n) * CHUNK,
            false => 0,
        });
        let (at, weight) = (&mut self.at[k * CHUNK..][..points], &mut self.weight[k * CHUNK..][..points]);
        at.copy_from_slice(&self.near_at[rows[0]..][..points]);
        weight.copy_from_slice(&self.near_weight[rows[0]..][..points]);
        for d in 1..self.dims {
            let size = sizes[d] as u32;
            for (at, &inner) in at.iter_mut().zip(&self.near_at[rows[d]..][..points]) {
                let outside = *at == NOWHERE || inner == NOWHERE;
                *at = if outside { NOWHERE } else { at.wrapping_mul(size).wrapping_add(inner) };
            }
            for (weight, &inner) in weight.iter_mut().zip(&self.near_weight[rows[d]..][..points]) {
                *weight = weight.times(inner);
            }
        }
        // A volume skips what is outside; an image multiplies zero by the weight, which may be NaN.
        if self.dims == 3 {
            for (weight, &at) in weight.iter_mut().zip(&*at) {
                *weight = if at == NOWHERE { T::ZERO } else { *weight };
            }
        }
        if self.slope.is_empty() {
            return;
        }
        for d in 0..self.dims {
            let slope = &mut self.slope[((self.dims - 1 - d) * self.each + k) * CHUNK..][..points];
            slope.copy_from_slice(&self.near_slope[rows[d]..][..points]);
            for e in (0..self.dims).filter(|&e| e != d) {
                for (slope, &weight) in slope.iter_mut().zip(&self.near_weight[rows[e]..][..points]) {
                    *slope = slope.times(weight);
                }
            }
        }
    }
}

/// The taps of a chunk of points.
struct Fill<'a, T> {
    points: &'a [T],
    sizes: &'a [usize],
    s: Settings,
    taps: &'a mut Taps<T>,
}
impl<T: Coordinate> Kernel for Fill<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let (points, n) = (self.points.len() / self.taps.dims, self.s.sampling.count());
        // Each sampling in a loop of its own.
        match self.s.sampling {
            Sampling::Nearest => {
                self.taps.near(self.points, self.sizes, Settings { sampling: Sampling::Nearest, ..self.s })
            }
            Sampling::Bilinear => {
                self.taps.near(self.points, self.sizes, Settings { sampling: Sampling::Bilinear, ..self.s })
            }
            Sampling::Bicubic => {
                self.taps.near(self.points, self.sizes, Settings { sampling: Sampling::Bicubic, ..self.s })
            }
        }
        for k in 0..self.taps.each {
            self.taps.multiply(k, n, points, self.sizes);
        }
    }
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
    if volume >= NOWHERE as usize {
        return Err(Error::runtime("a channel has too many elements for sampling; expected fewer than 4294967295"));
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
    let (out, dims, chunks) = (Ptr(out.ptr as *mut T), is.sizes.len(), is.points.div_ceil(CHUNK));
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
        self.y.fill(T::ZERO);
        let n = self.y.len();
        for k in 0..self.taps.each {
            let (at, weight) = (&self.taps.at[k * CHUNK..][..n], &self.taps.weight[k * CHUNK..][..n]);
            for ((y, &at), &w) in self.y.iter_mut().zip(at).zip(weight) {
                *y = y.plus(w.times(value(self.x, at)));
            }
        }
    }
}

/// The element at a position; zero where there is none.
#[inline(always)]
fn value<T: Arith>(x: &[T], at: u32) -> T {
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
        by_input(g, grid, &is, s, Ptr(dx.ptr as *mut T))?;
    }
    match dgrid {
        Some(dgrid) => by_grid(g, x, grid, &is, s, Ptr(dgrid.ptr as *mut T)),
        None => Ok(()),
    }
}

/// Channels that share the taps of a chunk in the gradient of the input.
const GROUP: usize = 8;

fn by_input<T: Coordinate>(g: &[T], grid: &[T], is: &Shapes, s: Settings, dx: Ptr<T>) -> Result<()> {
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
        let (at, weight) = (&taps.at[k * CHUNK..][..g.len()], &taps.weight[k * CHUNK..][..g.len()]);
        for ((&g, &at), &w) in g.iter().zip(at).zip(weight) {
            if let Some(dx) = dx.get_mut(at as usize) {
                *dx = dx.plus(w.times(g));
            }
        }
    }
}

fn by_grid<T: Coordinate>(g: &[T], x: &[T], grid: &[T], is: &Shapes, s: Settings, dgrid: Ptr<T>) -> Result<()> {
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
        let (n, taps) = (self.g.len(), self.taps);
        for k in 0..taps.each {
            let at = &taps.at[k * CHUNK..][..n];
            for (d, sums) in self.sums.chunks_exact_mut(CHUNK).enumerate() {
                let slope = &taps.slope[(d * taps.each + k) * CHUNK..][..n];
                for (((sum, &g), &at), &slope) in sums.iter_mut().zip(self.g).zip(at).zip(slope) {
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
