//! Where points read, and with which weights: coordinates become neighbours in each dimension, those of all dimensions taps.

use super::Settings;
use crate::cpu::arith::Float;
use crate::cpu::number_class::Fuse;
use crate::cpu::simd::{self, Kernel};
use crate::error::Result;
use crate::kinds::{Outside, Sampling};
use crate::rt::reserve::filled;

/// The types that coordinates are computed in.
pub(super) trait Coordinate: Float {
    fn floor(self) -> Self;
    /// The nearest whole number, of two the even one.
    fn nearest(self) -> Self;
    /// A whole number.
    ///
    /// # Safety
    /// An i32 holds it.
    unsafe fn index(self) -> i32;
    /// The elements at these positions; zero where one is negative. `F` is fused where AVX2 is there.
    ///
    /// # Safety
    /// The elements can be read.
    unsafe fn gather<F: Fuse>(x: *const Self, at: &[i32; LANES]) -> [Self; LANES];
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
    unsafe fn index(self) -> i32 {
        // SAFETY: the caller's promise.
        unsafe { self.to_int_unchecked() }
    }
    #[inline(always)]
    unsafe fn gather<F: Fuse>(x: *const f32, at: &[i32; LANES]) -> [f32; LANES] {
        #[cfg(target_arch = "x86_64")]
        if F::FUSED {
            use std::arch::x86_64::*;
            // SAFETY: the caller's promise; lanes whose position is negative are not read.
            return unsafe {
                let at = _mm256_loadu_si256(at.as_ptr().cast());
                let inside = _mm256_castsi256_ps(_mm256_cmpgt_epi32(at, _mm256_set1_epi32(-1)));
                std::mem::transmute::<__m256, [f32; 8]>(_mm256_mask_i32gather_ps::<4>(
                    _mm256_setzero_ps(),
                    x,
                    at,
                    inside,
                ))
            };
        }
        // SAFETY: the caller's promise.
        at.map(|at| if at < 0 { 0.0 } else { unsafe { *x.add(at as usize) } })
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
    unsafe fn index(self) -> i32 {
        // SAFETY: the caller's promise.
        unsafe { self.to_int_unchecked() }
    }
    #[inline(always)]
    unsafe fn gather<F: Fuse>(x: *const f64, at: &[i32; LANES]) -> [f64; LANES] {
        #[cfg(target_arch = "x86_64")]
        if F::FUSED {
            use std::arch::x86_64::*;
            // SAFETY: the caller's promise; lanes whose position is negative are not read.
            return unsafe {
                let half = |at: *const i32| {
                    let at = _mm_loadu_si128(at.cast());
                    let inside = _mm256_cvtepi32_epi64(_mm_cmpgt_epi32(at, _mm_set1_epi32(-1)));
                    _mm256_mask_i32gather_pd::<8>(_mm256_setzero_pd(), x, at, _mm256_castsi256_pd(inside))
                };
                std::mem::transmute::<[__m256d; 2], [f64; 8]>([half(at.as_ptr()), half(at.as_ptr().add(4))])
            };
        }
        // SAFETY: the caller's promise.
        at.map(|at| if at < 0 { 0.0 } else { unsafe { *x.add(at as usize) } })
    }
}

/// Points whose taps are computed, and read, at once.
pub(super) const LANES: usize = 8;
/// A position that is outside and counts as zero: any negative one.
const NOWHERE: i32 = -1;
/// Points whose taps are kept for all channels.
pub(super) const CHUNK: usize = 128;
/// A number for each point of a chunk.
pub(super) type Row<T> = [T; CHUNK];
/// A number for each of the points that are computed at once: small enough for what is between a coordinate and its taps to
/// stay in registers.
type Lanes<T> = [T; LANES];

/// Coordinates from -1 to 1 counted in elements, in place, and the slope.
#[inline(always)]
fn unnormalize<T: Coordinate>(row: &mut Lanes<T>, size: usize, align_corners: bool) -> T {
    let two = T::from_f64(2.0);
    let n = T::from_f64(size as f64);
    if align_corners {
        let last = n.minus(T::ONE);
        row.iter_mut().for_each(|x| *x = x.plus(T::ONE).divide(two).times(last));
        return last.divide(two);
    }
    row.iter_mut().for_each(|x| *x = x.plus(T::ONE).times(n).minus(T::ONE).divide(two));
    n.divide(two)
}

/// Back into the range of positions, with the slope by the coordinate that was given: zero at the borders and beyond.
#[inline(always)]
fn clipped<T: Coordinate>(at: T, last: T) -> (T, T) {
    // NaN counts as zero.
    let within = at > T::ZERO && at < last;
    let below = if at >= last { last } else { at };
    (if at > T::ZERO { below } else { T::ZERO }, if within { T::ONE } else { T::ZERO })
}

/// Reflected about the outer elements, or about their outer edges, as often as needed.
#[inline(always)]
fn reflected<T: Coordinate>(at: T, low: T, twice: T) -> (T, T) {
    let minus = T::ZERO.minus(T::ONE);
    let moved = at.minus(low);
    let sign = if moved < T::ZERO { minus } else { T::ONE };
    let distance = Float::abs(moved);
    let there = distance.minus(distance.divide(twice).floor().times(twice));
    let back = twice.minus(there);
    let forth = there <= back;
    ((if forth { there } else { back }).plus(low), if forth { sign } else { sign.times(minus) })
}

/// Coordinates brought inside, in place, with their slopes; positions beyond the border remain where they count as zero.
#[inline(always)]
fn bring_inside<T: Coordinate>(row: &mut Lanes<T>, slope: &mut Lanes<T>, size: usize, s: Settings) {
    let last = T::from_f64(size as f64 - 1.0);
    match s.outside {
        Outside::Zeros => slope.fill(T::ONE),
        Outside::Border => {
            for (at, slope) in row.iter_mut().zip(slope.iter_mut()) {
                (*at, *slope) = clipped(*at, last);
            }
        }
        Outside::Reflection => {
            let (low, span) = if s.align_corners { (0.0, size as f64 - 1.0) } else { (-0.5, size as f64) };
            if span == 0.0 {
                row.fill(T::ZERO);
                return slope.fill(T::ZERO);
            }
            let (low, twice) = (T::from_f64(low), T::from_f64(2.0 * span));
            for (at, slope) in row.iter_mut().zip(slope.iter_mut()) {
                let (there, first) = reflected(*at, low, twice);
                let (there, second) = clipped(there, last);
                (*at, *slope) = (there, first.times(second));
            }
        }
    }
}

/// Whole numbers as positions in a dimension of `size` elements.
#[inline(always)]
fn positions<T: Coordinate>(row: &Lanes<T>, size: usize, out: &mut Lanes<i32>) {
    let size = T::from_f64(size as f64);
    for (out, &at) in out.iter_mut().zip(row) {
        let inside = at >= T::ZERO && at < size;
        // SAFETY: zero, or at least zero and less than a size that an i32 holds.
        let index = unsafe { (if inside { at } else { T::ZERO }).index() };
        *out = if inside { index } else { NOWHERE };
    }
}

/// Cubic convolution with a = -3/4 (Keys 1981) at a signed distance of at most 2, and its slope.
#[inline(always)]
fn cubic<T: Coordinate>(x: T) -> (T, T) {
    let c = T::from_f64;
    let a = -0.75;
    let d = Float::abs(x);
    let sign = if x < T::ZERO { c(-1.0) } else { T::ONE };
    let near = c(a + 2.0).times(d).minus(c(a + 3.0)).times(d).times(d).plus(T::ONE);
    let near_slope = c(3.0 * (a + 2.0)).times(d).minus(c(2.0 * (a + 3.0))).times(d);
    let far = c(a).times(d).minus(c(5.0 * a)).times(d).plus(c(8.0 * a)).times(d).minus(c(4.0 * a));
    let far_slope = c(3.0 * a).times(d).minus(c(10.0 * a)).times(d).plus(c(8.0 * a));
    let (weight, slope) = if d <= T::ONE { (near, near_slope) } else { (far, far_slope) };
    (weight, slope.times(sign))
}

/// The neighbours of points in one dimension, one after the other: positions, weights, and the slopes of the
/// weights by the grid's coordinate.
#[derive(Clone, Copy)]
struct Near<T> {
    at: [Lanes<i32>; 4],
    weight: [Lanes<T>; 4],
    slope: [Lanes<T>; 4],
}

impl<T: Coordinate> Near<T> {
    fn new() -> Near<T> {
        Near { at: [[0; LANES]; 4], weight: [[T::ZERO; LANES]; 4], slope: [[T::ZERO; LANES]; 4] }
    }
    /// Those of the coordinates `row`, which are overwritten.
    #[allow(clippy::needless_range_loop)] // one index for several arrays
    #[inline(always)]
    fn find(&mut self, row: &mut Lanes<T>, size: usize, s: Settings) {
        let scale = unnormalize(row, size, s.align_corners);
        let mut slope = [T::ZERO; LANES];
        match s.sampling {
            Sampling::Nearest => {
                bring_inside(row, &mut slope, size, s);
                row.iter_mut().for_each(|x| *x = x.nearest());
                positions(row, size, &mut self.at[0]);
                self.weight[0] = [T::ONE; LANES];
                self.slope[0] = [T::ZERO; LANES];
            }
            Sampling::Bilinear => {
                bring_inside(row, &mut slope, size, s);
                for p in 0..LANES {
                    let low = row[p].floor();
                    let (part, slope) = (row[p].minus(low), slope[p].times(scale));
                    (self.weight[0][p], self.weight[1][p]) = (T::ONE.minus(part), part);
                    (self.slope[0][p], self.slope[1][p]) = (T::ZERO.minus(slope), slope);
                    row[p] = low;
                }
                positions(row, size, &mut self.at[0]);
                row.iter_mut().for_each(|x| *x = x.plus(T::ONE));
                positions(row, size, &mut self.at[1]);
            }
            Sampling::Bicubic => {
                for k in 0..4 {
                    let step = T::from_f64(k as f64 - 1.0);
                    let mut there = [T::ZERO; LANES];
                    for p in 0..LANES {
                        let low = row[p].floor();
                        let (weight, slope) = cubic(row[p].minus(low).minus(step));
                        (self.weight[k][p], self.slope[k][p]) = (weight, slope.times(scale));
                        there[p] = low.plus(step);
                    }
                    bring_inside(&mut there, &mut slope, size, s);
                    positions(&there, size, &mut self.at[k]);
                }
            }
        }
    }
}

/// The taps of a chunk, a row for each: positions in a channel, weights, and for each dimension the slopes.
pub(super) struct Taps<T> {
    pub each: usize,
    dims: usize,
    pub at: Vec<Row<i32>>,
    pub weight: Vec<Row<T>>,
    pub slope: Vec<Row<T>>,
}

impl<T: Coordinate> Taps<T> {
    pub fn new(s: Settings, dims: usize, slopes: bool) -> Result<Taps<T>> {
        let each = s.sampling.count().pow(dims as u32);
        Ok(Taps {
            each,
            dims,
            at: filled([0; CHUNK], each)?,
            weight: filled([T::ZERO; CHUNK], each)?,
            slope: filled([T::ZERO; CHUNK], if slopes { each * dims } else { 0 })?,
        })
    }
    /// Those of `points`, each `[dims]` coordinates, the last dimension first.
    pub fn fill(&mut self, points: &[T], sizes: &[usize], s: Settings) {
        simd::run(Fill { points, sizes, s, taps: self });
    }
    /// Multiplies out tap `k` of the points of a block, made of one neighbour in each dimension.
    #[allow(clippy::needless_range_loop)] // one index for several arrays
    #[inline(always)]
    fn multiply(&mut self, k: usize, [dims, n]: [usize; 2], sizes: &[usize], near: &[Near<T>; 3], block: usize) {
        let which = |d: usize| k / n.pow((dims - 1 - d) as u32) % n;
        let (mut at, mut weight) = (near[0].at[which(0)], near[0].weight[which(0)]);
        for d in 1..dims {
            let size = sizes[d] as i32;
            let (inner, by) = (&near[d].at[which(d)], &near[d].weight[which(d)]);
            for p in 0..LANES {
                let outside = (at[p] | inner[p]) < 0;
                at[p] = if outside { NOWHERE } else { at[p].wrapping_mul(size).wrapping_add(inner[p]) };
                weight[p] = weight[p].times(by[p]);
            }
        }
        // A volume skips what is outside; an image multiplies zero by the weight, which may be NaN.
        if dims == 3 {
            for (weight, &at) in weight.iter_mut().zip(&at) {
                *weight = if at < 0 { T::ZERO } else { *weight };
            }
        }
        self.at[k].as_chunks_mut().0[block] = at;
        self.weight[k].as_chunks_mut().0[block] = weight;
        if self.slope.is_empty() {
            return;
        }
        for d in 0..dims {
            let mut slope = near[d].slope[which(d)];
            for e in (0..dims).filter(|&e| e != d) {
                slope.iter_mut().zip(&near[e].weight[which(e)]).for_each(|(s, &w)| *s = s.times(w));
            }
            self.slope[(dims - 1 - d) * self.each + k].as_chunks_mut().0[block] = slope;
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
        match (self.taps.dims, self.s.sampling) {
            // What is sampled most, compiled by itself.
            (2, Sampling::Bilinear) => {
                let s = Settings { sampling: Sampling::Bilinear, ..self.s };
                Fill { s, ..self }.blocks([2, 2]);
            }
            (dims, sampling) => self.blocks([dims, sampling.count()]),
        }
    }
}
impl<T: Coordinate> Fill<'_, T> {
    /// `each`: the dimensions, and the neighbours in each.
    #[inline(always)]
    fn blocks(self, each: [usize; 2]) {
        let Fill { points, sizes, s, taps } = self;
        let [dims, n] = each;
        let mut near = [Near::new(); 3];
        for (block, points) in points.chunks(LANES * dims).enumerate() {
            for d in 0..dims {
                let mut row = [T::ZERO; LANES];
                for (p, x) in row.iter_mut().enumerate().take(points.len() / dims) {
                    *x = points[p * dims + dims - 1 - d];
                }
                near[d].find(&mut row, sizes[d], s);
            }
            for k in 0..n.pow(dims as u32) {
                taps.multiply(k, each, sizes, &near, block);
            }
        }
    }
}
