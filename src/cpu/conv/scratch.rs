//! What a convolution reads, brought into the order in which its loops read it: the input of a block, zeros around it
//! included, and the panels of its windows.

use super::geometry::{Block, Grid};
use crate::cpu::gemm::tiles::{Unit, WIDEST};
use crate::cpu::scratch::Temp;
use crate::cpu::view::{View, load};
use crate::dtype::Element;
use crate::error::Result;

/// An operand `[batch, channels, depth, height, width]` of any dtype, with the missing dimensions before the others.
#[derive(Clone, Copy)]
pub struct Image<'a> {
    pub view: View<'a>,
    pub batch: usize,
    pub channel: usize,
    pub steps: [usize; 3],
}
impl<'a> Image<'a> {
    pub fn new(view: View<'a>) -> Image<'a> {
        let dims = view.ndim() - 2;
        let step = |i: usize| if i + dims < 3 { 0 } else { view.strides[i + dims - 1] };
        Image { view, batch: view.strides[0], channel: view.strides[1], steps: [0, 1, 2].map(step) }
    }
}

/// The input of a block, for some channels of one element of the batch.
pub struct Scratch<T> {
    memory: Temp<T>,
    channel: usize,
    /// The block that was read last: the zeros around another at the same place are there already.
    zeroed: Option<Block>,
}

impl<T: Element> Scratch<T> {
    /// Room for blocks with so many channels.
    pub fn new(grid: &Grid, channels: usize) -> Result<Scratch<T>> {
        // A load of a whole panel may reach beyond the last row.
        let channel = grid.channel();
        Ok(Scratch {
            memory: Temp::filled(channel.saturating_mul(channels) + WIDEST, T::default())?,
            channel,
            zeroed: None,
        })
    }
    pub fn ptr(&self) -> *const T {
        self.memory.ptr()
    }
    pub fn channel(&self) -> usize {
        self.channel
    }

    /// Reads the input of a block.
    ///
    /// # Safety
    /// The image has the element `n` of the batch, the channels, and the axes' inputs; the scratch is as large as the grid's.
    pub unsafe fn fill(
        &mut self,
        grid: &Grid,
        block: &Block,
        image: &Image,
        n: usize,
        channels: std::ops::Range<usize>,
    ) {
        let origin = [0, 1, 2].map(|i| grid.origin(block, i));
        let axis = |i: usize| grid.axes[i].input as isize;
        let [planes, rows] = grid.inputs;
        let fresh = self.zeroed.replace(*block) != Some(*block);
        for stripe in 0..grid.axes[2].step {
            let part = Stripe::new(grid, origin[2], stripe, image.steps[2]);
            for (slot, c) in channels.clone().enumerate() {
                for (d, h) in (0..planes).flat_map(|d| (0..rows).map(move |h| (d, h))) {
                    let to = self.memory.ptr().wrapping_add(slot * self.channel + (d * rows + h) * grid.row);
                    let at = [origin[0] + d as isize, origin[1] + h as isize];
                    // SAFETY: the row lies in the scratch memory, what is read inside the image.
                    unsafe {
                        if (0..axis(0)).contains(&at[0]) && (0..axis(1)).contains(&at[1]) {
                            let offset = n * image.batch
                                + c * image.channel
                                + at[0] as usize * image.steps[0]
                                + at[1] as usize * image.steps[1];
                            part.fill(grid, image, offset, to, fresh);
                        } else if fresh && stripe == 0 {
                            to.write_bytes(0, grid.row); // zero bits are 0.0
                        }
                    }
                }
            }
        }
    }
}

/// A part of every row of a block: input `origin + i` is element `i / step` of stripe `i % step`.
struct Stripe {
    start: usize,
    /// The elements that lie inside the image, and where the first is read, relative to the image's row.
    low: usize,
    high: usize,
    from: usize,
}
impl Stripe {
    fn new(grid: &Grid, origin: isize, stripe: usize, stride: usize) -> Stripe {
        let (step, width) = (grid.axes[2].step, grid.axes[2].input as isize);
        let first = origin + stripe as isize;
        let low = ((-first).max(0) as usize).div_ceil(step).min(grid.stripe);
        let high = ((width - first).max(0) as usize).div_ceil(step).clamp(low, grid.stripe);
        let from = if high > low { (first + (low * step) as isize) as usize * stride } else { 0 };
        Stripe { start: stripe * grid.stripe, low, high, from }
    }
    /// Reads the stripe of one row; `fresh` tells whether to write the zeros around it.
    ///
    /// # Safety
    /// The image has the row, and `to` room for one.
    #[inline]
    unsafe fn fill<T: Element>(&self, grid: &Grid, image: &Image, offset: usize, to: *mut T, fresh: bool) {
        let (low, high, along) = (self.low, self.high, image.steps[2] * grid.axes[2].step);
        // SAFETY: the caller's promise; the stripe is part of the row.
        unsafe {
            let to = to.add(self.start);
            if fresh {
                to.write_bytes(0, low);
                to.add(high).write_bytes(0, grid.stripe - high);
            }
            if high > low {
                let from = image.view.at(offset + self.from);
                if along == 1 && image.view.dtype == T::DTYPE {
                    to.add(low).copy_from_nonoverlapping(from as *const T, high - low);
                } else if image.view.dtype == T::DTYPE {
                    let from = from as *const T;
                    (0..high - low).for_each(|i| *to.add(low + i) = *from.add(i * along));
                } else {
                    load(image.view.dtype, from, along, high - low, to.add(low));
                }
            }
        }
    }
}

/// A run of a panel's columns: the first, and where its input lies relative to a tap's first input.
pub type Run = (usize, usize);

/// The runs of the panel that starts with place `first` of a block.
pub fn runs(grid: &Grid, block: &Block, first: usize, width: usize, out: &mut [Run; WIDEST]) -> usize {
    let (row, mut lane, mut count) = (block.count[2], 0, 0);
    let end = width.min(block.places() - first);
    while lane < end {
        let place = first + lane;
        out[count] = (lane, grid.row_offset(block, place / row) + place % row);
        count += 1;
        lane += row - place % row;
    }
    count
}

/// Packs a panel of windows: for each term its input at the panel's places. With `SHORT`, no run is longer than a vector.
///
/// # Safety
/// The terms' offsets with those of the runs lie in the scratch memory with a width to spare; so does `to`.
#[inline(always)]
pub unsafe fn pack<U: Unit, const SHORT: bool>(
    from: *const U::Float,
    terms: &[usize],
    runs: &[Run],
    mut to: *mut U::Float,
) {
    // Each run is copied as whole vectors: what follows it is overwritten by the next one, or by the next term.
    for &term in terms {
        for &(lane, offset) in runs {
            // SAFETY: the caller's promise.
            unsafe {
                let (from, to) = (from.add(term + offset), to.add(lane));
                U::store(to, U::load(from));
                if !SHORT {
                    U::store(to.add(U::LANES), U::load(from.add(U::LANES)));
                }
            }
        }
        to = to.wrapping_add(U::WIDTH);
    }
}
