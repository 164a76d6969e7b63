//! What pooling kernels share: the sizes of `[n, c, d, h, w]` before and after, and the two forms of memory.
//!
//! In rows, each plane `[d, h, w]` is contiguous; in columns (channels last), each pixel holds its channels side by side.
//! A unit of work is one row along `w`: of a plane, or of all channels of a sample.

use crate::cpu::parallel::try_par_for;
use crate::cpu::view::{View, ensure};
use crate::error::Result;
use crate::layout::window::Axis;
use std::ops::Range;

/// Elements per task.
const TASK: usize = 1 << 13;

#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub axes: &'a [Axis; 3],
    /// Planes, or samples in columns.
    pub count: usize,
    /// Elements of a pixel that lie side by side: one in rows, the channels in columns.
    pub width: usize,
}

/// One row of a plane: which plane, and its index along the first two dimensions.
#[derive(Clone, Copy)]
pub(crate) struct Line {
    pub plane: usize,
    pub at: [usize; 2],
}

impl<'a> Frame<'a> {
    /// The frame of operands of the sizes before (`inner`) and after pooling (`outer`), all dense in one form.
    pub fn new(axes: &'a [Axis; 3], inner: &[&View], outer: &[&View], kernel: &'static str) -> Result<Frame<'a>> {
        let first = inner[0];
        ensure(first.ndim() == 5, kernel)?;
        let (n, c) = (first.shape[0], first.shape[1]);
        let fits = |v: &View, size: fn(&Axis) -> usize| {
            v.ndim() == 5 && v.shape[..2] == [n, c] && axes.iter().zip(&v.shape[2..]).all(|(a, &s)| size(a) == s)
        };
        let right = inner.iter().all(|v| fits(v, |a| a.size)) && outer.iter().all(|v| fits(v, |a| a.out));
        let all = || inner.iter().chain(outer);
        let rows = all().all(|v| v.is_contiguous());
        ensure(right && (rows || all().all(|v| channels_last(v))), kernel)?;
        let (count, width) = if rows { (n * c, 1) } else { (n, c) };
        Ok(Frame { axes, count, width })
    }
    /// Elements of a plane of the input.
    pub fn inner(&self) -> usize {
        self.axes.iter().map(|a| a.size).product()
    }
    pub fn outer(&self) -> usize {
        self.axes.iter().map(|a| a.out).product()
    }
    /// The first element of a row of the input, and of one of the result.
    pub fn inner_start(&self, line: &Line) -> usize {
        let [d, h, w] = self.axes;
        ((line.plane * d.size + line.at[0]) * h.size + line.at[1]) * w.size * self.width
    }
    pub fn outer_start(&self, line: &Line) -> usize {
        let [d, h, w] = self.axes;
        ((line.plane * d.out + line.at[0]) * h.out + line.at[1]) * w.out * self.width
    }
    /// Runs `work` on ranges of the rows of the result, each of which reads about `reads` elements.
    pub fn each_outer(&self, work: impl Fn(Range<usize>) -> Result<()> + Sync) -> Result<()> {
        let [d, h, w] = self.axes;
        if d.out * h.out == 0 {
            return Ok(());
        }
        let taps: usize = [d, h].iter().map(|a| a.window(a.out / 2).count.max(1)).product();
        let cost = (taps * w.size.max(w.out) * self.width).max(1);
        try_par_for(self.count * d.out * h.out, (TASK / cost).max(1), work)
    }
    /// Some rows of the result, in order.
    pub fn outer_lines(&self, range: Range<usize>) -> impl Iterator<Item = Line> + use<> {
        let [d, h, _] = self.axes;
        lines([d.out, h.out], range)
    }
    /// The same for the rows of the input.
    pub fn each_inner(&self, work: impl Fn(Range<usize>) -> Result<()> + Sync) -> Result<()> {
        let [d, h, w] = self.axes;
        let cost = (w.size.max(w.out) * self.width).max(1) * 2;
        try_par_for(self.count * d.size * h.size, (TASK / cost).max(1), work)
    }
    pub fn inner_lines(&self, range: Range<usize>) -> impl Iterator<Item = Line> + use<> {
        let [d, h, _] = self.axes;
        lines([d.size, h.size], range)
    }
}

/// Rows of planes of so many, without a division for each.
fn lines([d, h]: [usize; 2], range: Range<usize>) -> impl Iterator<Item = Line> + use<> {
    let ([d, h], first) = ([d.max(1), h.max(1)], range.start);
    let mut next = Line { plane: first / (d * h), at: [first / h % d, first % h] };
    range.map(move |_| {
        let line = next;
        next.at[1] += 1;
        if next.at[1] == h {
            next.at = [next.at[0] + 1, 0];
            if next.at[0] == d {
                next = Line { plane: next.plane + 1, at: [0, 0] };
            }
        }
        line
    })
}

fn channels_last(v: &View) -> bool {
    let (shape, strides) = (v.shape, v.strides);
    let mut step = 1;
    [1, 4, 3, 2, 0].into_iter().all(|d| {
        let ok = shape[d] <= 1 || strides[d] == step;
        step *= shape[d];
        ok
    }) || shape.contains(&0)
}
