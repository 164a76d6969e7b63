//! Windows of pooling along one dimension: which elements each result covers, and which results cover an element; how
//! the kernel of a convolution moves.

use std::ops::Range;

/// How a kernel moves, one number for each of its dimensions.
#[derive(Clone, Copy)]
pub struct Motion<'a> {
    pub stride: &'a [i64],
    pub padding: &'a [i64],
    pub dilation: &'a [i64],
    pub groups: usize,
    pub transposed: bool,
}

/// A dimension of pooling: its size, the number of windows, and how they lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    pub size: usize,
    pub out: usize,
    pub windows: Windows,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Windows {
    /// `kernel` elements that are `dilation` apart, from `-padding` on, each window `stride` after the last. The first
    /// element of a window is at most `size`, and none of the numbers exceeds `LIMIT`.
    Steps { kernel: usize, stride: usize, padding: usize, dilation: usize },
    /// As many windows as are asked for, of nearly equal length.
    Adaptive,
}

/// No sum or product of two sizes below it overflows an i128 or, with a size of memory, an i64.
pub const LIMIT: usize = i32::MAX as usize;

/// Elements `start`, `start + step`, .. of a window that lie within the dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    pub start: usize,
    pub count: usize,
    /// How many elements it covers together with the padding.
    pub extent: usize,
}

impl Axis {
    /// A dimension that is not pooled.
    pub fn whole() -> Axis {
        Axis { size: 1, out: 1, windows: Windows::Steps { kernel: 1, stride: 1, padding: 0, dilation: 1 } }
    }
    /// Adaptive windows; where they are all equal, as steps.
    pub fn adaptive(size: usize, out: usize) -> Axis {
        if out > 0 && size.is_multiple_of(out) {
            let each = size / out;
            let windows = Windows::Steps { kernel: each, stride: each, padding: 0, dilation: 1 };
            return Axis { size, out, windows };
        }
        Axis { size, out, windows: Windows::Adaptive }
    }
    /// The distance between neighbouring elements of a window.
    pub fn step(&self) -> usize {
        match self.windows {
            Windows::Steps { dilation, .. } => dilation,
            Windows::Adaptive => 1,
        }
    }
    pub fn windows(&self) -> impl Iterator<Item = Window> + '_ {
        (0..self.out).map(|o| self.window(o))
    }
    pub fn window(&self, o: usize) -> Window {
        let size = self.size;
        match self.windows {
            Windows::Steps { kernel, stride, padding, dilation } => {
                let first = (o * stride) as i64 - padding as i64;
                let skipped = if first < 0 { (-first as usize).div_ceil(dilation) } else { 0 };
                let start = (first + (skipped * dilation) as i64) as usize;
                let within = if start < size { (size - 1 - start) / dilation + 1 } else { 0 };
                let extent = ((first + kernel as i64).min((size + padding) as i64) - first).max(1);
                Window { start, count: kernel.saturating_sub(skipped).min(within), extent: extent as usize }
            }
            Windows::Adaptive => {
                let at = |o: usize| o as u128 * size as u128;
                let start = (at(o) / self.out as u128) as usize;
                let end = at(o + 1).div_ceil(self.out as u128) as usize;
                Window { start, count: end - start, extent: end - start }
            }
        }
    }
    /// The windows without gaps that cover element `i`.
    pub fn covering(&self, i: usize) -> Range<usize> {
        match self.windows {
            Windows::Steps { kernel, stride, padding, .. } => {
                let first = if i + padding >= kernel { (i + padding - kernel) / stride + 1 } else { 0 };
                first.min(self.out)..((i + padding) / stride + 1).min(self.out)
            }
            Windows::Adaptive => {
                let at = |i: usize| i as u128 * self.out as u128;
                let (first, end) = (at(i) / self.size as u128, at(i + 1).div_ceil(self.size as u128));
                first as usize..end as usize
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every window by its definition, and the windows that cover an element by all windows.
    #[test]
    fn windows_are_as_defined() {
        for size in 1..9usize {
            for out in 1..12 {
                check(&Axis { size, out, windows: Windows::Adaptive }, |o| {
                    (o * size / out..((o + 1) * size).div_ceil(out)).map(|i| i as i64).collect()
                });
            }
            for (kernel, stride, padding, dilation) in
                [(1, 1, 0, 1), (3, 2, 1, 1), (4, 1, 2, 1), (2, 3, 1, 2), (3, 1, 0, 3)]
            {
                let reach = (kernel - 1) * dilation + 1;
                let Some(rest) = (size + 2 * padding).checked_sub(reach) else { continue };
                let windows = Windows::Steps { kernel, stride, padding, dilation };
                check(&Axis { size, out: rest / stride + 1, windows }, |o| {
                    (0..kernel).map(|k| (o * stride + k * dilation) as i64 - padding as i64).collect()
                });
            }
        }
    }

    fn check(axis: &Axis, all: impl Fn(usize) -> Vec<i64>) {
        let inside = |i: &i64| (0..axis.size as i64).contains(i);
        for o in 0..axis.out {
            let w = axis.window(o);
            let want: Vec<i64> = all(o).into_iter().filter(inside).collect();
            let got: Vec<i64> = (0..w.count).map(|k| (w.start + k * axis.step()) as i64).collect();
            assert_eq!(got, want, "{axis:?} {o}");
            if axis.step() == 1 {
                for i in 0..axis.size {
                    assert_eq!(axis.covering(i).contains(&o), want.contains(&(i as i64)), "{axis:?} {o} {i}");
                }
            }
        }
        assert!(Axis::adaptive(axis.size, axis.out).window(axis.out - 1).count > 0);
    }
}
