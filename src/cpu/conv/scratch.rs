//! What a convolution reads, brought into the order in which its loops read it: the input of a block, zeros around it
//! included, and the panels of its windows.

use super::geometry::{Block, Grid};
use crate::cpu::gemm::tiles::{Unit, VECTORS, Vectors, WIDEST};
use crate::cpu::scratch::Temp;
use crate::cpu::view::{View, load};
use crate::dtype::Element;
use crate::error::Result;
use std::ops::Range;

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

impl<T: Vectors> Scratch<T> {
    /// Room for blocks with so many channels.
    pub fn new(grid: &Grid, channels: usize) -> Result<Scratch<T>> {
        // A load of a whole panel may reach beyond the last row.
        let channel = grid.channel();
        Ok(Scratch { memory: Temp::filled(channel.saturating_mul(channels) + WIDEST, T::ZERO)?, channel, zeroed: None })
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
    /// The image has the element `n` of the batch, the channels, and the axes' inputs; the scratch is as large as the grid's;
    /// the processor has the unit's instructions.
    #[inline(always)]
    pub unsafe fn fill<U: Unit<Float = T>>(
        &mut self,
        grid: &Grid,
        block: &Block,
        image: &Image,
        n: usize,
        channels: Range<usize>,
    ) {
        let origin = [0, 1, 2].map(|i| grid.origin(block, i));
        let inside = |i: usize, at: isize| (0..grid.axes[i].input as isize).contains(&at);
        let [planes, rows] = grid.inputs;
        // The zeros are those of a block at the same place; the images of a batch have no zeros between them.
        let place = Block {
            first: [if grid.axes[0].is_whole() { 0 } else { block.first[0] }, block.first[1], block.first[2]],
            ..*block
        };
        let fresh = self.zeroed.replace(place) != Some(place);
        let met = [0, 1, 2].map(|i| grid.axes[i].met());
        for stripe in (0..grid.axes[2].step).filter(|&s| met[2].has(s)) {
            let part = Stripe::new(grid, origin[2], stripe, image.steps[2]);
            for (d, h) in (0..planes).flat_map(|d| (0..rows).map(move |h| (d, h))) {
                let at = [origin[0] + d as isize, origin[1] + h as isize];
                let row = self.memory.ptr().wrapping_add((d * rows + h) * grid.row);
                let to = |slot: usize| row.wrapping_add(slot * self.channel);
                // SAFETY: the rows lie in the scratch memory, what is read inside the image.
                unsafe {
                    if !(inside(0, at[0]) && inside(1, at[1])) {
                        if fresh && stripe == 0 {
                            // Zero bits are 0.0.
                            (0..channels.len()).for_each(|slot| to(slot).write_bytes(0, grid.row));
                        }
                    } else if met[0].has(d) && met[1].has(h) {
                        let along = at[0] as usize * image.steps[0] + at[1] as usize * image.steps[1];
                        for (slot, c) in channels.clone().enumerate() {
                            let offset = n * image.batch + c * image.channel + along;
                            part.fill::<U>(grid, image, offset, to(slot), fresh);
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
    /// The image has the row, and `to` room for one; the processor has the unit's instructions.
    #[inline(always)]
    unsafe fn fill<U: Unit>(&self, grid: &Grid, image: &Image, offset: usize, to: *mut U::Float, fresh: bool) {
        let (low, high, along) = (self.low, self.high, image.steps[2] * grid.axes[2].step);
        // SAFETY: the caller's promise; the stripe is part of the row.
        unsafe {
            let to = to.add(self.start);
            if fresh {
                to.write_bytes(0, low);
                to.add(high).write_bytes(0, grid.stripe - high);
            }
            if high == low {
                return;
            }
            let (from, to, n) = (image.view.at(offset + self.from), to.add(low), high - low);
            if image.view.dtype != U::Float::DTYPE {
                return load(image.view.dtype, from, along, n, to);
            }
            let from = from as *const U::Float;
            match along {
                1 if n < U::LANES => U::store_first(to, U::load_first(from, n), n),
                1 => {
                    // The last vector meets the one before it.
                    let last = n - U::LANES;
                    for i in (0..last).step_by(U::LANES) {
                        U::store(to.add(i), U::load(from.add(i)));
                    }
                    U::store(to.add(last), U::load(from.add(last)));
                }
                // A distance that is known becomes vector code.
                2 => (0..n).for_each(|i| *to.add(i) = *from.add(i * 2)),
                _ => (0..n).for_each(|i| *to.add(i) = *from.add(i * along)),
            }
        }
    }
}

/// The windows of the panel that starts with some place of a block, before they are packed: for each vector the lanes where its
/// runs begin, and where lane zero of a run would lie relative to a tap's first input.
pub struct Runs {
    runs: [(usize, isize); WIDEST + VECTORS],
    /// The runs of each vector.
    of: [Range<usize>; VECTORS],
}
impl Runs {
    /// For vectors of so many lanes.
    pub fn new(grid: &Grid, block: &Block, first: usize, lanes: usize) -> Runs {
        let (wide, places, mut count) = (block.count[2], block.places(), 0);
        let mut runs = [(0, 0); WIDEST + VECTORS];
        let of = std::array::from_fn(|vector| {
            let (begin, start, mut lane) = (count, first + vector * lanes, 0);
            // A vector beyond the last place is the first again.
            while lane < lanes && (start + lane < places || lane == 0) {
                let place = if start + lane < places { start + lane } else { first };
                runs[count] = (lane, (grid.row_offset(block, place / wide) + place % wide) as isize - lane as isize);
                count += 1;
                lane += wide - place % wide;
            }
            begin..count
        });
        Runs { runs, of }
    }
    /// Packs them: for each term its input at the panel's places.
    ///
    /// # Safety
    /// The terms' offsets with those of the runs lie in the scratch memory with a width to spare, and `to` in memory; the
    /// processor has the unit's instructions.
    #[inline(always)]
    pub unsafe fn pack<U: Unit>(&self, from: *const U::Float, terms: &[usize], to: *mut U::Float) {
        for (p, &term) in terms.iter().enumerate() {
            for vector in 0..VECTORS {
                let runs = &self.runs[self.of[vector].clone()];
                // SAFETY: the caller's promise; lanes before a run are not read.
                unsafe {
                    let mut v = U::load(from.add(term).offset(runs[0].1));
                    for &(lane, offset) in &runs[1..] {
                        v = U::load_last(v, from.add(term).wrapping_offset(offset), lane);
                    }
                    U::store(to.add(p * U::WIDTH + vector * U::LANES), v);
                }
            }
        }
    }
}
