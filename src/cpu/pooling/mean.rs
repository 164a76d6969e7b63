//! Average pooling and its gradient, in two steps: rows of the window are added (or, backwards, rows of the gradient that
//! reach a row of the input), then the elements along the row.

use super::frame::{Frame, Line};
use super::max::Taps;
use crate::cpu::arith::{Arith, Float};
use crate::cpu::number_class::Fuse;
use crate::cpu::runs::{Reader, Writer};
use crate::cpu::simd;
use crate::cpu::simd::Kernel;
use crate::cpu::view::{View, ensure};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::window::{Axis, Window, Windows};
use crate::rt::reserve::{filled, list};

/// What sums are divided by.
#[derive(Clone, Copy, PartialEq)]
pub enum Divisor {
    /// The elements of the window, with the padding that it covers.
    Extent,
    /// Its elements within the input.
    Count,
    Given(i64),
}

impl Divisor {
    /// The factor of one dimension's window; their product may be beyond the integers.
    fn of(self, w: &Window) -> f64 {
        match self {
            Divisor::Extent => w.extent as f64,
            Divisor::Count => w.count.max(1) as f64,
            Divisor::Given(_) => 1.0,
        }
    }
    fn whole(self) -> f64 {
        if let Divisor::Given(n) = self { n as f64 } else { 1.0 }
    }
}

/// Numbers that have a mean: integers round towards zero.
trait Mean: Arith + Default {
    fn whole(n: f64) -> Self;
    fn per(self, n: Self) -> Self;
}
impl Mean for f32 {
    fn whole(n: f64) -> f32 {
        n as f32
    }
    #[inline(always)]
    fn per(self, n: f32) -> f32 {
        self / n
    }
}
impl Mean for f64 {
    fn whole(n: f64) -> f64 {
        n
    }
    #[inline(always)]
    fn per(self, n: f64) -> f64 {
        self / n
    }
}
impl Mean for i64 {
    fn whole(n: f64) -> i64 {
        n as i64
    }
    #[inline(always)]
    fn per(self, n: i64) -> i64 {
        self.wrapping_div(n)
    }
}

/// The means of windows of `input` `[n, c, d, h, w]` into `out`.
pub fn mean_pool(input: View, axes: &[Axis; 3], divisor: Divisor, out: View) -> Result<()> {
    let frame = Frame::new(axes, &[&input], &[&out], "mean_pool")?;
    ensure(out.is_apart(&input) && divisor != Divisor::Given(0), "mean_pool")?;
    match input.dtype {
        DType::F64 => forward::<f64>(&input, &frame, divisor, &out),
        d if d.is_float() => forward::<f32>(&input, &frame, divisor, &out),
        _ => forward::<i64>(&input, &frame, divisor, &out),
    }
}

fn forward<T: Mean>(input: &View, frame: &Frame, divisor: Divisor, out: &View) -> Result<()> {
    let ([d, h, w], width) = (frame.axes, frame.width);
    let (wide, long) = (w.size * width, w.out * width);
    let windows = list((0..w.out).map(|o| w.window(o)))?;
    frame.each_outer(|range| {
        let (mut x, mut y) = (Reader::<T>::new(input, wide)?, Writer::<T>::new(out, long)?);
        let mut sums = filled(T::ZERO, wide)?;
        let mut divisors = filled(T::ZERO, w.out)?;
        for unit in range {
            let line = frame.outer_line(unit);
            let (dw, hw) = (d.window(line.at[0]), h.window(line.at[1]));
            sums.fill(T::ZERO);
            for i in dw.start..dw.start + dw.count {
                for j in hw.start..hw.start + hw.count {
                    let at = frame.inner_start(&Line { plane: line.plane, at: [i, j] });
                    // SAFETY: the frame has seen that the row lies within the operand.
                    let row = unsafe { x.run(at, wide) };
                    simd::run(Add { row, to: &mut sums });
                }
            }
            let outside = divisor.of(&dw) * divisor.of(&hw) * divisor.whole();
            divisors.iter_mut().zip(&windows).for_each(|(t, w)| *t = T::whole(outside * divisor.of(w)));
            // SAFETY: the rows of the result are disjoint, and each belongs to one unit.
            unsafe {
                y.run(frame.outer_start(&line), long, |y| {
                    simd::run(Along { sums: &sums, axis: w, windows: &windows, width, divisors: &divisors, y });
                })
            }
        }
        Ok(())
    })
}

struct Add<'a, T> {
    row: &'a [T],
    to: &'a mut [T],
}
impl<T: Mean> Kernel for Add<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        self.to.iter_mut().zip(self.row).for_each(|(t, &x)| *t = t.plus(x));
    }
}

/// Sums along a row, divided.
struct Along<'a, T> {
    sums: &'a [T],
    axis: &'a Axis,
    windows: &'a [Window],
    width: usize,
    divisors: &'a [T],
    y: &'a mut [T],
}
impl<T: Mean> Kernel for Along<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(mut self) {
        match self.axis.windows {
            Windows::Steps { stride: 1, .. } if self.width == 1 => self.steps::<1>(),
            Windows::Steps { stride: 2, .. } if self.width == 1 => self.steps::<2>(),
            Windows::Steps { stride: 3, .. } if self.width == 1 => self.steps::<3>(),
            Windows::Steps { stride: 4, .. } if self.width == 1 => self.steps::<4>(),
            _ => self.each(),
        }
        for (y, &by) in self.y.chunks_exact_mut(self.width).zip(self.divisors) {
            y.iter_mut().for_each(|y| *y = y.per(by));
        }
    }
}
impl<T: Mean> Along<'_, T> {
    #[inline(always)]
    fn steps<const S: usize>(&mut self) {
        self.y.fill(T::ZERO);
        let Windows::Steps { kernel, padding, .. } = self.axis.windows else { return };
        for k in Taps::met(kernel, 1, padding, S, self.sums.len(), self.y.len()) {
            let Some(taps) = Taps::new(k, padding, S, self.sums.len(), self.y.len()) else { continue };
            let Taps { from, first, count } = taps;
            let (y, x, last) = (&mut self.y[first..first + count], &self.sums[from..], count - 1);
            let (chunks, _) = x.as_chunks::<S>();
            y[..last].iter_mut().zip(chunks).for_each(|(y, x)| *y = y.plus(x[0]));
            y[last] = y[last].plus(x[last * S]);
        }
    }
    #[inline(always)]
    fn each(&mut self) {
        let c = self.width;
        for (y, w) in self.y.chunks_exact_mut(c).zip(self.windows) {
            y.fill(T::ZERO);
            for x in self.sums[w.start * c..].chunks_exact(c).take(w.count) {
                y.iter_mut().zip(x).for_each(|(y, &x)| *y = y.plus(x));
            }
        }
    }
}

/// The gradient of `mean_pool`: each element of `grad`, divided, is added to what its window covers.
pub fn mean_pool_backward(grad: View, axes: &[Axis; 3], divisor: Divisor, dx: View) -> Result<()> {
    let frame = Frame::new(axes, &[&dx], &[&grad], "mean_pool_backward")?;
    ensure(dx.is_apart(&grad) && divisor != Divisor::Given(0), "mean_pool_backward")?;
    match dx.dtype {
        DType::F64 => backward::<f64>(&grad, &frame, divisor, &dx),
        _ => backward::<f32>(&grad, &frame, divisor, &dx),
    }
}

fn backward<T: Mean + Float>(grad: &View, frame: &Frame, divisor: Divisor, dx: &View) -> Result<()> {
    let ([d, h, w], width) = (frame.axes, frame.width);
    let (wide, long) = (w.size * width, w.out * width);
    let windows = list((0..w.out).map(|o| w.window(o)))?;
    let owners = owners(w, width)?;
    frame.each_inner(|range| {
        let (mut g, mut to) = (Reader::<T>::new(grad, long)?, Writer::<T>::new(dx, wide)?);
        let (mut sums, mut shares) = (filled(T::ZERO, long)?, filled(T::ZERO, wide)?);
        let mut made = None;
        for unit in range {
            let line = frame.inner_line(unit);
            let covering = (line.plane, d.covering(line.at[0]), h.covering(line.at[1]));
            if made.as_ref() == Some(&covering) {
                // SAFETY: as below.
                unsafe { to.run(frame.inner_start(&line), wide, |dx| dx.copy_from_slice(&shares)) };
                continue;
            }
            sums.fill(T::ZERO);
            for i in covering.1.clone() {
                for j in covering.2.clone() {
                    let outside = divisor.of(&d.window(i)) * divisor.of(&h.window(j)) * divisor.whole();
                    let at = frame.outer_start(&Line { plane: line.plane, at: [i, j] });
                    // SAFETY: the frame has seen that the row lies within the operand.
                    let row = unsafe { g.run(at, long) };
                    simd::run(AddShare { row, by: T::whole(outside), to: &mut sums });
                }
            }
            for (sums, w) in sums.chunks_exact_mut(width.max(1)).zip(&windows) {
                let by = T::whole(divisor.of(w));
                sums.iter_mut().for_each(|s| *s = s.per(by));
            }
            match &owners {
                Some(owners) => shares.iter_mut().zip(owners).for_each(|(x, &o)| *x = sums[o as usize]),
                None => simd::run(Spread { sums: &sums, windows: &windows, width, dx: &mut shares }),
            }
            // SAFETY: the rows of the result are disjoint, and each belongs to one unit.
            unsafe { to.run(frame.inner_start(&line), wide, |dx| dx.copy_from_slice(&shares)) };
            made = Some(covering);
        }
        Ok(())
    })
}

/// The window that covers each element along a row, if exactly one does.
fn owners(w: &Axis, width: usize) -> Result<Option<Vec<u32>>> {
    let single = |i: usize| w.covering(i).len() == 1;
    if width != 1 || w.out > u32::MAX as usize || !(0..w.size).all(single) {
        return Ok(None);
    }
    list((0..w.size).map(|i| w.covering(i).start as u32)).map(Some)
}

struct AddShare<'a, T> {
    row: &'a [T],
    by: T,
    to: &'a mut [T],
}
impl<T: Mean> Kernel for AddShare<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        self.to.iter_mut().zip(self.row).for_each(|(t, &x)| *t = t.plus(x.per(self.by)));
    }
}

/// Each share is added to the elements of its window along a row.
struct Spread<'a, T> {
    sums: &'a [T],
    windows: &'a [Window],
    width: usize,
    dx: &'a mut [T],
}
impl<T: Mean> Kernel for Spread<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let c = self.width;
        self.dx.fill(T::ZERO);
        for (share, w) in self.sums.chunks_exact(c).zip(self.windows) {
            let covered = &mut self.dx[w.start * c..(w.start + w.count) * c];
            for x in covered.chunks_exact_mut(c) {
                x.iter_mut().zip(share).for_each(|(x, &s)| *x = x.plus(s));
            }
        }
    }
}
