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
    /// The elements of the batch, as the outermost dimension of images that have none.
    pub fn batch(n: usize) -> Axis {
        Axis { input: n, places: n, step: 1, taps: [(0, 0)].into_iter().collect(), first: 0, apart: 1 }
    }
    /// Whether every output meets the input of the same number, so that none lies outside.
    pub fn is_whole(&self) -> bool {
        self.taps.as_slice() == [(0, 0)] && self.step == 1 && self.places <= self.input
    }
    /// The inputs that some tap meets.
    pub fn met(&self) -> Met {
        let remainder = |t: &(usize, isize)| t.1.abs_diff(self.lowest()) % self.step;
        let which = match self.step {
            1..=64 => self.taps.iter().fold(0, |all, t| all | 1 << remainder(t)),
            _ => u64::MAX,
        };
        Met { step: self.step, which }
    }
    /// Whether it has one element, which meets itself.
    pub fn is_single(&self) -> bool {
        self.input == 1 && self.places == 1 && self.taps[..] == [(0, 0)]
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

/// Inputs, counted from the first of a block, whose remainder by the step is one of these; of large steps all.
#[derive(Clone, Copy)]
pub struct Met {
    step: usize,
    which: u64,
}
impl Met {
    #[inline]
    pub fn has(self, input: usize) -> bool {
        self.which == u64::MAX || (self.step == 1 && self.which != 0) || self.which >> (input % self.step) & 1 == 1
    }
}

/// Outputs computed at once: whole rows, or a part of one, or whole planes.
#[derive(Clone, Copy, Debug, PartialEq)]
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
        Grid::of(axes, [deep, high, wide])
    }
    fn of(axes: [Axis; 3], most: [usize; 3]) -> Grid {
        let inputs = [axes[0].span(most[0]), axes[1].span(most[1])];
        let step = axes[2].step;
        let stripe = axes[2].span(most[2]).div_ceil(step);
        Grid { most, inputs, stripe, row: stripe * step, axes }
    }
    /// Of the blocks of whole rows with up to `most` places those of least cost; where there are none, `new`'s.
    pub fn cheapest(axes: [Axis; 3], about: usize, most: usize, cost: impl Fn(&Grid) -> Option<usize>) -> Grid {
        let [d, h, w] = [0, 1, 2].map(|i| axes[i].places);
        // Of very many sizes only some.
        let tried = |first: usize, last: usize| (first..=last).rev().step_by((last / 32).max(1));
        let rows = tried(1, h.min(most / w)).map(|high| [1, high, w]);
        let planes = tried(2, d.min(most / (h * w))).map(|deep| [deep, h, w]);
        let all = rows.chain(planes).map(|most| Grid::of(axes.clone(), most));
        let best = all.filter_map(|grid| Some((cost(&grid)?, grid))).min_by_key(|(cost, _)| *cost);
        best.map_or_else(|| Grid::new(axes.clone(), about), |(_, grid)| grid)
    }
    /// The places of all blocks, each filled up to a multiple of `width`.
    pub fn columns(&self, width: usize) -> usize {
        // Along each axis there are whole blocks and what remains.
        let parts = [0, 1, 2].map(|i| {
            let (n, most) = (self.axes[i].places, self.most[i]);
            [(n / most, most), ((n % most > 0) as usize, n % most)]
        });
        let mut all = 0;
        for corner in 0..8 {
            let [d, h, w] = [0, 1, 2].map(|i| parts[i][(corner >> i) & 1]);
            all += d.0 * h.0 * w.0 * (d.1 * h.1 * w.1).next_multiple_of(width);
        }
        all
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
