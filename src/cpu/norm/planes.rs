//! Passes over the channels of `[n, c, l]`: their moments, sums with a gradient, and affine maps with a coefficient per
//! channel of each sample ("plane").
//!
//! Memory has one of two forms. In rows, each plane is contiguous and is one unit of work. In columns (channels last),
//! each pixel holds its channels side by side, and a unit is a block of pixels, whose partial sums are added in order. The
//! sizes alone decide where blocks end, so results do not depend on the number of threads.

use super::moments;
use crate::cpu::arith::Float;
use crate::cpu::lanes::sums;
use crate::cpu::number_class::Fuse;
use crate::cpu::parallel::try_par_for;
use crate::cpu::runs::{Reader, Writer};
use crate::cpu::scratch::Temp;
use crate::cpu::simd;
use crate::cpu::simd::Kernel;
use crate::cpu::view::{SendPtr, View};
use crate::error::Result;
use crate::rt::reserve::filled;
use std::ops::Range;

/// Elements of a block of pixels, and the most pixels of one: their sums are made in the compute type.
const BLOCK: usize = 1 << 14;
const PIXELS: usize = 512;
/// Elements per task.
const TASK: usize = 1 << 14;
/// Elements summed in the compute type before their sum is added to the total in f64.
const RUN: usize = 1 << 12;

/// The sizes of `[n, c, l]` and the form of its memory.
#[derive(Clone, Copy)]
pub(crate) struct Planes {
    pub n: usize,
    pub c: usize,
    pub l: usize,
    pub rows: bool,
}

/// A run of contiguous elements: a plane, or a block of pixels with the sample that it is in.
struct Unit {
    start: usize,
    len: usize,
    plane: usize,
}

impl Planes {
    pub fn count(&self) -> usize {
        self.n * self.c
    }
    fn pixels(&self) -> usize {
        (BLOCK / self.c.max(1)).clamp(1, PIXELS)
    }
    /// Blocks of a sample, in columns.
    fn blocks(&self) -> usize {
        self.l.div_ceil(self.pixels())
    }
    fn units(&self) -> usize {
        if self.rows { self.count() } else { self.n * self.blocks() }
    }
    fn unit(&self, i: usize) -> Unit {
        if self.rows {
            return Unit { start: i * self.l, len: self.l, plane: i };
        }
        let (sample, first) = (i / self.blocks(), i % self.blocks() * self.pixels());
        let pixels = self.pixels().min(self.l - first);
        Unit { start: (sample * self.l + first) * self.c, len: pixels * self.c, plane: sample * self.c }
    }
    /// Elements of the largest unit.
    fn longest(&self) -> usize {
        if self.rows { self.l } else { self.pixels().min(self.l) * self.c }
    }
    /// Runs `work` on ranges of units, on several threads.
    fn each(&self, work: impl Fn(Range<usize>) -> Result<()> + Sync) -> Result<()> {
        try_par_for(self.units(), (TASK / self.longest().max(1)).max(1), work)
    }
}

/// For each plane two numbers, made of the parts of its units.
fn two_per_plane(
    shape: &Planes,
    part: impl Fn(&mut dyn FnMut(usize, &mut [f64], &mut [f64]) -> Result<()>, Range<usize>) -> Result<()> + Sync,
    add: impl Fn(usize, usize, &[[f64; 2]], &mut [[f64; 2]]),
) -> Result<Vec<[f64; 2]>> {
    let width = if shape.rows { 1 } else { shape.c };
    let parts = Temp::<f64>::new(shape.units().saturating_mul(2 * width))?;
    let slots = SendPtr(parts.ptr());
    shape.each(|range| {
        part(
            &mut |unit, first, second| {
                // SAFETY: each unit has its own slots.
                unsafe {
                    std::ptr::copy_nonoverlapping(first.as_ptr(), slots.at(unit * 2 * width), width);
                    std::ptr::copy_nonoverlapping(second.as_ptr(), slots.at((unit * 2 + 1) * width), width);
                }
                Ok(())
            },
            range,
        )
    })?;
    // SAFETY: every unit has written its slots.
    let parts = unsafe { parts.slice() };
    let mut out = filled([0.0; 2], shape.count())?;
    let mut pairs = filled([0.0; 2], width)?;
    for (i, both) in parts.chunks_exact(2 * width.max(1)).enumerate() {
        let unit = shape.unit(i);
        pairs.iter_mut().enumerate().for_each(|(j, p)| *p = [both[j], both[width + j]]);
        let seen = if shape.rows { 0 } else { i % shape.blocks() * shape.pixels() };
        add(seen, unit.len / width.max(1), &pairs, &mut out[unit.plane..unit.plane + width]);
    }
    Ok(out)
}

/// The mean of each plane, and the sum of squared deviations from it.
///
/// # Safety
/// `x` has the elements of `shape`, dense in its form.
pub(crate) unsafe fn plane_moments<T: Float>(x: &View, shape: &Planes) -> Result<Vec<[f64; 2]>> {
    let width = if shape.rows { 1 } else { shape.c };
    two_per_plane(
        shape,
        |put, range| {
            let mut x = Reader::<T>::new(x, shape.longest())?;
            let (mut mean, mut squares) = (filled(0.0, width)?, filled(0.0, width)?);
            let mut lanes = filled(T::ZERO, if shape.rows { 0 } else { 3 * width })?;
            let (a, rest) = lanes.split_at_mut(if shape.rows { 0 } else { width });
            let (b, c) = rest.split_at_mut(a.len());
            for i in range {
                // SAFETY: the unit is one of the shape.
                let x = unsafe {
                    {
                        let unit = shape.unit(i);
                        x.run(unit.start, unit.len)
                    }
                };
                if shape.rows {
                    let (m, q) = simd::run(RowMoments { x });
                    (mean[0], squares[0]) = (m, q);
                } else {
                    let lanes = [&mut *a, &mut *b, &mut *c];
                    simd::run(ColumnMoments { x, lanes, mean: &mut mean, squares: &mut squares });
                }
                put(i, &mut mean, &mut squares)?;
            }
            Ok(())
        },
        // Chan, Golub and LeVeque's formula for the moments of a union.
        |seen, more, parts, out| {
            let (a, b) = (seen as f64, more as f64);
            for (o, p) in out.iter_mut().zip(parts) {
                if seen == 0 {
                    *o = *p;
                    continue;
                }
                let delta = p[0] - o[0];
                *o = [o[0] + delta * (b / (a + b)), o[1] + p[1] + delta * delta * (a * b / (a + b))];
            }
        },
    )
}

/// The sums of `g` and of `g * (x - mean)` over each plane; `mean` has an entry per plane.
///
/// # Safety
/// `g` and `x` have the elements of `shape`, dense in its form.
pub(crate) unsafe fn plane_sums<T: Float>(g: &View, x: &View, shape: &Planes, mean: &[T]) -> Result<Vec<[f64; 2]>> {
    let width = if shape.rows { 1 } else { shape.c };
    two_per_plane(
        shape,
        |put, range| {
            let (mut g, mut x) = (Reader::<T>::new(g, shape.longest())?, Reader::<T>::new(x, shape.longest())?);
            let (mut sum, mut dot) = (filled(0.0, width)?, filled(0.0, width)?);
            let mut lanes = filled(T::ZERO, if shape.rows { 0 } else { 2 * width })?;
            let (sums, dots) = lanes.split_at_mut(if shape.rows { 0 } else { width });
            for i in range {
                let unit = shape.unit(i);
                // SAFETY: the unit is one of the shape.
                let (g, x) = unsafe { (g.run(unit.start, unit.len), x.run(unit.start, unit.len)) };
                let mean = &mean[unit.plane..unit.plane + width];
                if shape.rows {
                    (sum[0], dot[0]) = simd::run(RowSums { g, x, mean: mean[0] });
                } else {
                    let all = [&mut *sum, &mut *dot];
                    simd::run(ColumnSums { g, x, mean, sums: &mut *sums, dots: &mut *dots, all });
                }
                put(i, &mut sum, &mut dot)?;
            }
            Ok(())
        },
        |_, _, parts, out| out.iter_mut().zip(parts).for_each(|(o, p)| *o = [o[0] + p[0], o[1] + p[1]]),
    )
}

/// Coefficients of each plane: `out = (x - mean) * scale + shift`, with a gradient `+ g * slope`.
#[derive(Clone, Copy)]
pub(crate) struct Affine<'a, T> {
    pub mean: &'a [T],
    pub scale: &'a [T],
    pub shift: &'a [T],
    pub slope: &'a [T],
}
impl<T> Affine<'_, T> {
    fn part(&self, range: Range<usize>) -> Self {
        let Affine { mean, scale, shift, slope } = *self;
        let slope = if slope.is_empty() { slope } else { &slope[range.clone()] };
        Affine { mean: &mean[range.clone()], scale: &scale[range.clone()], shift: &shift[range], slope }
    }
}

/// `out = (x - mean) * scale + shift`.
///
/// # Safety
/// `x` and `out` have the elements of `shape`, dense in its form, and lie apart.
pub(crate) unsafe fn map_planes<T: Float>(x: &View, shape: &Planes, by: &Affine<T>, out: &View) -> Result<()> {
    let width = if shape.rows { 1 } else { shape.c };
    shape.each(|range| {
        let mut x = Reader::<T>::new(x, shape.longest())?;
        let mut out = Writer::<T>::new(out, shape.longest())?;
        for i in range {
            let unit = shape.unit(i);
            let by = by.part(unit.plane..unit.plane + width);
            // SAFETY: the unit is one of the shape, and belongs to this range.
            unsafe {
                let x = x.run(unit.start, unit.len);
                out.run(unit.start, unit.len, |out| simd::run(Map { x, by, out }));
            }
        }
        Ok(())
    })
}

/// `out = g * slope + (x - mean) * scale + shift`.
///
/// # Safety
/// As for `map_planes`, with `g`.
pub(crate) unsafe fn map_gradient<T: Float>(
    g: &View,
    x: &View,
    shape: &Planes,
    by: &Affine<T>,
    out: &View,
) -> Result<()> {
    let width = if shape.rows { 1 } else { shape.c };
    shape.each(|range| {
        let (mut g, mut x) = (Reader::<T>::new(g, shape.longest())?, Reader::<T>::new(x, shape.longest())?);
        let mut out = Writer::<T>::new(out, shape.longest())?;
        for i in range {
            let unit = shape.unit(i);
            let by = by.part(unit.plane..unit.plane + width);
            // SAFETY: the unit is one of the shape, and belongs to this range.
            unsafe {
                let (g, x) = (g.run(unit.start, unit.len), x.run(unit.start, unit.len));
                out.run(unit.start, unit.len, |out| simd::run(MapGradient { g, x, by, out }));
            }
        }
        Ok(())
    })
}

struct RowMoments<'a, T> {
    x: &'a [T],
}
impl<T: Float> Kernel for RowMoments<'_, T> {
    type Output = (f64, f64);
    #[inline(always)]
    fn run<F: Fuse>(self) -> (f64, f64) {
        let (mean, squares) = moments::<T>(self.x);
        (mean.to_f64(), squares)
    }
}

struct ColumnMoments<'a, T> {
    x: &'a [T],
    /// The mean in `T`, the sum of deviations and that of their squares, for each column.
    lanes: [&'a mut [T]; 3],
    mean: &'a mut [f64],
    squares: &'a mut [f64],
}
impl<T: Float> Kernel for ColumnMoments<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let [middle, sums, squares] = self.lanes;
        let c = middle.len();
        let n = (self.x.len() / c) as f64;
        [&mut *sums, &mut *squares].into_iter().for_each(|lane| lane.fill(T::ZERO));
        for row in self.x.chunks_exact(c) {
            sums.iter_mut().zip(row).for_each(|(s, &x)| *s = s.plus(x));
        }
        for (m, s) in middle.iter_mut().zip(sums.iter_mut()) {
            *m = T::from_f64(s.to_f64() / n);
            *s = T::ZERO;
        }
        for row in self.x.chunks_exact(c) {
            for (((s, q), &m), &x) in sums.iter_mut().zip(squares.iter_mut()).zip(middle.iter()).zip(row) {
                let d = x.minus(m);
                *s = s.plus(d);
                *q = q.plus(d.times(d));
            }
        }
        for i in 0..c {
            let [m, sum, q] = [middle[i], sums[i], squares[i]].map(T::to_f64);
            // The sum of deviations corrects for the rounding of the mean; not for infinities.
            let rest = sum / n;
            self.mean[i] = if rest.is_finite() { m + rest } else { m };
            self.squares[i] = if q.is_finite() { (q - sum * rest).max(0.0) } else { q };
        }
    }
}

struct RowSums<'a, T> {
    g: &'a [T],
    x: &'a [T],
    mean: T,
}
impl<T: Float> Kernel for RowSums<'_, T> {
    type Output = (f64, f64);
    #[inline(always)]
    fn run<F: Fuse>(self) -> (f64, f64) {
        let (mut total, mut dots) = (0.0, 0.0);
        for (g, x) in self.g.chunks(RUN).zip(self.x.chunks(RUN)) {
            let [sum, dot] = sums([g, x], |[g, x]| [g, g.times(x.minus(self.mean))]);
            total += sum.to_f64();
            dots += dot.to_f64();
        }
        (total, dots)
    }
}

/// Pixels whose products are added in the compute type, before their sums join those in f64.
const SHORT: usize = 64;

struct ColumnSums<'a, T> {
    g: &'a [T],
    x: &'a [T],
    mean: &'a [T],
    sums: &'a mut [T],
    dots: &'a mut [T],
    all: [&'a mut [f64]; 2],
}
impl<T: Float> Kernel for ColumnSums<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let c = self.mean.len();
        let [sums, dots] = self.all;
        [&mut *sums, &mut *dots].into_iter().for_each(|all| all.fill(0.0));
        for (g, x) in self.g.chunks(SHORT * c).zip(self.x.chunks(SHORT * c)) {
            [&mut *self.sums, &mut *self.dots].into_iter().for_each(|lane| lane.fill(T::ZERO));
            for (g, x) in g.chunks_exact(c).zip(x.chunks_exact(c)) {
                let lanes = self.sums.iter_mut().zip(self.dots.iter_mut());
                for (((s, d), &m), (&g, &x)) in lanes.zip(self.mean).zip(g.iter().zip(x)) {
                    *s = s.plus(g);
                    *d = d.plus(g.times(x.minus(m)));
                }
            }
            sums.iter_mut().zip(self.sums.iter()).for_each(|(all, s)| *all += s.to_f64());
            dots.iter_mut().zip(self.dots.iter()).for_each(|(all, d)| *all += d.to_f64());
        }
    }
}

struct Map<'a, T> {
    x: &'a [T],
    by: Affine<'a, T>,
    out: &'a mut [T],
}
impl<T: Float> Kernel for Map<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let Affine { mean, scale, shift, .. } = self.by;
        if let ([m], [a], [b]) = (mean, scale, shift) {
            return self.out.iter_mut().zip(self.x).for_each(|(o, x)| *o = x.minus(*m).times(*a).plus(*b));
        }
        let c = mean.len();
        for (out, x) in self.out.chunks_exact_mut(c).zip(self.x.chunks_exact(c)) {
            let by = mean.iter().zip(scale).zip(shift);
            out.iter_mut().zip(x).zip(by).for_each(|((o, &x), ((&m, &a), &b))| *o = x.minus(m).times(a).plus(b));
        }
    }
}

struct MapGradient<'a, T> {
    g: &'a [T],
    x: &'a [T],
    by: Affine<'a, T>,
    out: &'a mut [T],
}
impl<T: Float> Kernel for MapGradient<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let Affine { mean, scale, shift, slope } = self.by;
        if let ([m], [a], [b], [k]) = (mean, scale, shift, slope) {
            let both = self.g.iter().zip(self.x);
            return self.out.iter_mut().zip(both).for_each(|(o, (&g, &x))| {
                *o = g.times(*k).plus(x.minus(*m).times(*a)).plus(*b);
            });
        }
        let c = mean.len();
        let rows = self.g.chunks_exact(c).zip(self.x.chunks_exact(c));
        for (out, (g, x)) in self.out.chunks_exact_mut(c).zip(rows) {
            let by = mean.iter().zip(scale).zip(shift.iter().zip(slope));
            for ((o, (&g, &x)), ((&m, &a), (&b, &k))) in out.iter_mut().zip(g.iter().zip(x)).zip(by) {
                *o = g.times(k).plus(x.minus(m).times(a)).plus(b);
            }
        }
    }
}
