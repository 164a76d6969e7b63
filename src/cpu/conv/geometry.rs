//! Where a kernel meets its input: one axis for each of three dimensions, of which the outer ones may have one element.
//!
//! A convolution, its transpose and both gradients by the input are sums over taps of a window that slides over an
//! input. With a stride, the transpose splits into phases: the outputs that have the same remainder meet the same taps.

use smallvec::SmallVec;

/// Output `o` and tap `t` meet input `o * step + taps[t].1`; outside of the input there are zeros.
#[derive(Clone)]
pub struct Axis {
    pub input: usize,
    pub places: usize,
    pub step: usize,
    /// The index of the kernel's element, and the offset of its input.
    pub taps: SmallVec<[(usize, isize); 8]>,
    /// The outputs in the result: the first, and from one to the next.
    pub first: usize,
    pub apart: usize,
}

/// The settings of a dimension.
#[derive(Clone, Copy)]
pub struct Steps {
    pub kernel: usize,
    pub stride: usize,
    pub padding: usize,
    pub dilation: usize,
}

impl Axis {
    /// A convolution's.
    pub fn forward(input: usize, places: usize, s: Steps) -> Axis {
        let offset = |k: usize| (k, (k * s.dilation) as isize - s.padding as isize);
        Axis { input, places, step: s.stride, taps: (0..s.kernel).map(offset).collect(), first: 0, apart: 1 }
    }
    /// The phases of a transpose with `whole` outputs: output `i` meets tap `k` where `i + padding - k * dilation` is a
    /// multiple of the stride.
    pub fn transposed(input: usize, whole: usize, s: Steps) -> Vec<Axis> {
        let phase = |first: usize| {
            let taps = (0..s.kernel).filter_map(|k| {
                let place = (first + s.padding) as isize - (k * s.dilation) as isize;
                (place.rem_euclid(s.stride as isize) == 0).then(|| (k, place.div_euclid(s.stride as isize)))
            });
            Axis {
                input,
                places: (whole - first).div_ceil(s.stride),
                step: 1,
                taps: taps.collect(),
                first,
                apart: s.stride,
            }
        };
        (0..s.stride.min(whole)).map(phase).collect()
    }
    fn lowest(&self) -> isize {
        self.taps.iter().map(|t| t.1).min().unwrap_or(0)
    }
    /// How far taps lie apart.
    fn reach(&self) -> usize {
        self.taps.iter().map(|t| t.1).max().unwrap_or(0).abs_diff(self.lowest())
    }
    /// The inputs that so many neighbouring places meet.
    fn span(&self, places: usize) -> usize {
        (places - 1) * self.step + self.reach() + 1
    }
}

/// Outputs computed at once: whole rows, or a part of one, or whole planes.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub first: [usize; 3],
    pub count: [usize; 3],
}
impl Block {
    pub fn places(&self) -> usize {
        self.count.iter().product()
    }
}

/// All outputs in blocks, and how the input of a block lies in scratch memory: `[channels, depth, height, row]`, where
/// elements `step` apart are neighbours, so that each tap meets a contiguous run.
pub struct Grid {
    pub axes: [Axis; 3],
    /// The largest block.
    pub most: [usize; 3],
    /// Inputs of the largest block, in depth and height.
    pub inputs: [usize; 2],
    /// Elements of a row with the same remainder, and of a whole row.
    pub stripe: usize,
    pub row: usize,
}

impl Grid {
    /// Blocks of about so many places.
    pub fn new(axes: [Axis; 3], about: usize) -> Grid {
        let [d, h, w] = [0, 1, 2].map(|i| axes[i].places);
        let even = |n: usize, most: usize| n.div_ceil(n.div_ceil(most.max(1)));
        let wide = if w >= 2 * about { even(w, about) } else { w };
        let high = if wide < w { 1 } else { even(h, about / w) };
        let deep = if high < h || wide < w { 1 } else { even(d, about / (h * w)) };
        let inputs = [axes[0].span(deep), axes[1].span(high)];
        let step = axes[2].step;
        let stripe = axes[2].span(wide).div_ceil(step);
        Grid { most: [deep, high, wide], inputs, stripe, row: stripe * step, axes }
    }
    pub fn blocks(&self) -> usize {
        (0..3).map(|i| self.axes[i].places.div_ceil(self.most[i])).product()
    }
    pub fn block(&self, at: usize) -> Block {
        let counts = [1, 2].map(|i| self.axes[i].places.div_ceil(self.most[i]));
        let index = [at / counts[1] / counts[0], at / counts[1] % counts[0], at % counts[1]];
        let first = [0, 1, 2].map(|i| index[i] * self.most[i]);
        Block { first, count: [0, 1, 2].map(|i| self.most[i].min(self.axes[i].places - first[i])) }
    }
    /// Scratch elements of a channel.
    pub fn channel(&self) -> usize {
        self.inputs[0] * self.inputs[1] * self.row
    }
    pub fn taps(&self) -> usize {
        self.axes.iter().map(|a| a.taps.len()).product()
    }
    /// Where taps find their first input in a channel's scratch memory.
    pub fn tap_offsets(&self) -> Vec<usize> {
        let [d, h, w] = &self.axes;
        let from = |a: &Axis, t: usize| a.taps[t].1.abs_diff(a.lowest());
        let mut out = Vec::with_capacity(self.taps()); // Bounded by the elements of a kernel that exists.
        for i in 0..d.taps.len() {
            for j in 0..h.taps.len() {
                for k in 0..w.taps.len() {
                    let (rows, col) = (from(d, i) * self.inputs[1] + from(h, j), from(w, k));
                    out.push(rows * self.row + col % w.step * self.stripe + col / w.step);
                }
            }
        }
        out
    }
    /// The indices of the kernel's elements, in the same order.
    pub fn tap_indices(&self) -> impl Iterator<Item = [usize; 3]> + '_ {
        let [d, h, w] = &self.axes;
        d.taps.iter().flat_map(move |i| h.taps.iter().flat_map(move |j| w.taps.iter().map(move |k| [i.0, j.0, k.0])))
    }
    /// Where row `row` of a block starts in a channel's scratch memory, relative to a tap's first input.
    pub fn row_offset(&self, block: &Block, row: usize) -> usize {
        let (d, h) = (row / block.count[1], row % block.count[1]);
        (d * self.axes[0].step * self.inputs[1] + h * self.axes[1].step) * self.row
    }
    /// Where row `row` of a block starts in a channel of an operand that has the places, with these strides.
    pub fn row_start(&self, block: &Block, row: usize, strides: [usize; 3]) -> usize {
        let (d, h) = (row / block.count[1], row % block.count[1]);
        let place = [block.first[0] + d, block.first[1] + h, block.first[2]];
        (0..3).map(|i| (self.axes[i].first + place[i] * self.axes[i].apart) * strides[i]).sum()
    }
    /// The input that the scratch memory of a block starts with, in dimension `i`.
    pub fn origin(&self, block: &Block, i: usize) -> isize {
        (block.first[i] * self.axes[i].step) as isize + self.axes[i].lowest()
    }
}
