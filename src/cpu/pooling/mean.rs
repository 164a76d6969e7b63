//! Average pooling and its gradient, in two steps: rows of the window are added (or, backwards, rows of the gradient that
//! reach a row of the input), then the elements along the row.

use super::frame::{Frame, Line};
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
    let (planes, lines, windows) = (list(d.windows())?, list(h.windows())?, list(w.windows())?);
    let steps = Steps::of(w).filter(|_| width == 1);
    let room = long.next_multiple_of(LANES);
    let (padding, padded) = steps.map_or((0, wide), |s| (s.padding, wide.max(room * s.stride) + s.kernel + s.padding));
    frame.each_outer(|range| {
        let (mut x, mut y) = (Reader::<T>::new(input, wide)?, Writer::<T>::new(out, long)?);
        let (mut sums, mut means) = (filled(T::ZERO, padded)?, filled(T::ZERO, room)?);
        let (mut divisors, mut made) = (filled(T::ONE, room.div_ceil(width.max(1)))?, None);
        for line in frame.outer_lines(range) {
            let (dw, hw) = (planes[line.at[0]], lines[line.at[1]]);
            let row = &mut sums[padding..padding + wide];
            row.fill(T::ZERO);
            for i in dw.start..dw.start + dw.count {
                for j in hw.start..hw.start + hw.count {
                    let at = frame.inner_start(&Line { plane: line.plane, at: [i, j] });
                    // SAFETY: the frame has seen that the row lies within the operand.
                    let x = unsafe { x.run(at, wide) };
                    simd::run(Add { row: x, to: row });
                }
            }
            let outside = divisor.of(&dw) * divisor.of(&hw) * divisor.whole();
            if made.replace(outside) != Some(outside) {
                divisors.iter_mut().zip(&windows).for_each(|(t, w)| *t = T::whole(outside * divisor.of(w)));
            }
            simd::run(Along { sums: &sums, steps, windows: &windows, width, divisors: &divisors, y: &mut means });
            // SAFETY: the rows of the result are disjoint, and each belongs to one unit.
            unsafe { y.run(frame.outer_start(&line), long, |y| y.copy_from_slice(&means[..long])) };
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

/// Results that are made together.
const LANES: usize = 16;

/// Windows a small stride apart, along a row of sums with zeros around it.
#[derive(Clone, Copy)]
struct Steps {
    kernel: usize,
    stride: usize,
    padding: usize,
}
impl Steps {
    fn of(w: &Axis) -> Option<Steps> {
        match w.windows {
            Windows::Steps { kernel, stride: stride @ 1..=4, padding, dilation: 1 } if kernel <= w.size + padding => {
                Some(Steps { kernel, stride, padding })
            }
            _ => None,
        }
    }
}

/// Sums along a row, divided. With `steps`, `y` is whole vectors, and so far the sums reach.
struct Along<'a, T> {
    sums: &'a [T],
    steps: Option<Steps>,
    windows: &'a [Window],
    width: usize,
    divisors: &'a [T],
    y: &'a mut [T],
}
impl<T: Mean> Kernel for Along<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(mut self) {
        match self.steps {
            Some(Steps { stride: 1, kernel, .. }) => self.steps::<1>(kernel),
            Some(Steps { stride: 2, kernel, .. }) => self.steps::<2>(kernel),
            Some(Steps { stride: 3, kernel, .. }) => self.steps::<3>(kernel),
            Some(Steps { kernel, .. }) => self.steps::<4>(kernel),
            None => self.each(),
        }
    }
}
impl<T: Mean> Along<'_, T> {
    #[inline(always)]
    fn steps<const S: usize>(&mut self, kernel: usize) {
        let (all, by) = (self.y.as_chunks_mut::<LANES>().0, self.divisors.as_chunks::<LANES>().0);
        for (i, (y, by)) in all.iter_mut().zip(by).enumerate() {
            let mut sums = [T::ZERO; LANES];
            for k in 0..kernel {
                let x = self.sums[i * LANES * S + k..][..LANES * S].as_chunks::<S>().0;
                (0..LANES).for_each(|l| sums[l] = sums[l].plus(x[l][0]));
            }
            *y = std::array::from_fn(|l| sums[l].per(by[l]));
        }
    }
    #[inline(always)]
    fn each(&mut self) {
        let c = self.width;
        for ((y, w), &by) in self.y.chunks_exact_mut(c).zip(self.windows).zip(self.divisors) {
            y.fill(T::ZERO);
            for x in self.sums[w.start * c..].chunks_exact(c).take(w.count) {
                y.iter_mut().zip(x).for_each(|(y, &x)| *y = y.plus(x));
            }
            y.iter_mut().for_each(|y| *y = y.per(by));
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
    let (planes, lines, windows) = (list(d.windows())?, list(h.windows())?, list(w.windows())?);
    let covering = |a: &Axis| list((0..a.size).map(|i| a.covering(i)));
    let (over_planes, over_lines) = (covering(d)?, covering(h)?);
    let divisors = list(windows.iter().flat_map(|w| std::iter::repeat_n(T::whole(divisor.of(w)), width)))?;
    frame.each_inner(|range| {
        let (mut g, mut to) = (Reader::<T>::new(grad, long)?, Writer::<T>::new(dx, wide)?);
        let (mut sums, mut shares) = (filled(T::ZERO, long)?, filled(T::ZERO, wide)?);
        let mut made = None;
        for line in frame.inner_lines(range) {
            let covering = (line.plane, over_planes[line.at[0]].clone(), over_lines[line.at[1]].clone());
            if made.as_ref() == Some(&covering) {
                // SAFETY: as below.
                unsafe { to.run(frame.inner_start(&line), wide, |dx| dx.copy_from_slice(&shares)) };
                continue;
            }
            sums.fill(T::ZERO);
            for i in covering.1.clone() {
                for j in covering.2.clone() {
                    let outside = divisor.of(&planes[i]) * divisor.of(&lines[j]) * divisor.whole();
                    let at = frame.outer_start(&Line { plane: line.plane, at: [i, j] });
                    // SAFETY: the frame has seen that the row lies within the operand.
                    let row = unsafe { g.run(at, long) };
                    simd::run(AddShare { row, by: T::whole(outside), to: &mut sums });
                }
            }
            simd::run(Spread {
                sums: &mut sums,
                divisors: &divisors,
                axis: w,
                windows: &windows,
                width,
                dx: &mut shares,
            });
            // SAFETY: the rows of the result are disjoint, and each belongs to one unit.
            unsafe { to.run(frame.inner_start(&line), wide, |dx| dx.copy_from_slice(&shares)) };
            made = Some(covering);
        }
        Ok(())
    })
}

/// Writes each share to a chunk of `S` elements; returns how many chunks.
#[inline(always)]
fn repeat<T: Mean, const S: usize>(shares: &[T], to: &mut [T]) -> usize {
    let (chunks, _) = to.as_chunks_mut::<S>();
    chunks.iter_mut().zip(shares).for_each(|(x, &s)| *x = [s; S]);
    chunks.len().min(shares.len())
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

/// Sums of a row become shares, each of which is added to the elements of its window.
struct Spread<'a, T> {
    sums: &'a mut [T],
    divisors: &'a [T],
    axis: &'a Axis,
    windows: &'a [Window],
    width: usize,
    dx: &'a mut [T],
}
impl<T: Mean> Kernel for Spread<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(mut self) {
        self.sums.iter_mut().zip(self.divisors).for_each(|(s, &by)| *s = s.per(by));
        match self.axis.windows {
            Windows::Steps { kernel, stride, padding, dilation: 1 }
                if kernel == stride && padding < kernel && self.width == 1 =>
            {
                self.beside(kernel, padding);
            }
            _ => self.each(),
        }
    }
}
impl<T: Mean> Spread<'_, T> {
    /// Windows of `side` elements side by side, of which the padding cuts the first short.
    #[inline(always)]
    fn beside(&mut self, side: usize, padding: usize) {
        let (mut sums, mut dx) = (&*self.sums, &mut *self.dx);
        if let (1.., Some((&first, more))) = (padding, sums.split_first()) {
            let (cut, rest) = dx.split_at_mut((side - padding).min(dx.len()));
            cut.fill(first);
            (sums, dx) = (more, rest);
        }
        // A length that is known becomes vector code.
        let whole = match side {
            2 => repeat::<T, 2>(sums, dx),
            3 => repeat::<T, 3>(sums, dx),
            4 => repeat::<T, 4>(sums, dx),
            _ => 0,
        };
        // The last window may be cut short, and what follows it has no share.
        for (i, x) in dx.chunks_mut(side).enumerate().skip(whole) {
            x.fill(sums.get(i).copied().unwrap_or(T::ZERO));
        }
    }
    #[inline(always)]
    fn each(&mut self) {
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
