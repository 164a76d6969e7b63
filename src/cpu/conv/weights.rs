//! The gradient of the weights: for each tap the elements of one side times those that the tap meets on the other.
//!
//! A product whose terms are the places of all blocks. The terms are split into a number of sums that depends on the
//! sizes alone, so that the result does not depend on the threads.

use super::geometry::{Axis, Block, Grid};
use super::scratch::{Image, Scratch};
use super::slide::FEW;
use crate::cpu::arith::Arith;
use crate::cpu::gemm::Matrix;
use crate::cpu::gemm::tiles::{self, Job, Packed, Start, Tile, Unit, Vectors, WIDEST};
use crate::cpu::parallel::{par_for, try_par_for};
use crate::cpu::scratch::Temp;
use crate::cpu::view::{Ptr, load};
use crate::error::Result;
use crate::rt::reserve::filled;
use std::ops::Range;

/// Terms of a product: the places of a block.
const PLACES: usize = 192;
/// Columns of a task, about: channels times taps.
const COLUMNS: usize = 288;
/// Tasks there should be, if the sizes allow.
const TASKS: usize = 8;

/// The gradient of dense weights `[groups * to, from, taps]` of the compute type.
pub struct WeightGradient<'a, T> {
    /// What the window slides over, and what meets it: `[batch, groups * to, places]`.
    pub input: Image<'a>,
    pub grad: Image<'a>,
    pub out: Ptr<T>,
    pub batch: usize,
    pub groups: usize,
    pub from: usize,
    pub to: usize,
    pub axes: [Axis; 3],
}

impl<T: Vectors> WeightGradient<'_, T> {
    /// # Safety
    /// The images have the batch, the channels and the axes' inputs and places; `out` has room for all weights.
    pub unsafe fn run(&self) -> Result<()> {
        let grid = Grid::new(self.axes.clone(), PLACES);
        let taps = grid.tap_offsets();
        let chunks = (self.from * taps.len()).div_ceil(COLUMNS).clamp(1, self.from);
        let blocks = self.batch * grid.blocks();
        let sums = TASKS.div_ceil(self.groups * chunks).clamp(1, blocks.max(1));
        let weights = self.groups * self.to * self.from * taps.len();
        let partial: Temp<T> = Temp::filled(weights.saturating_mul(sums - 1), T::ZERO)?;
        // SAFETY: the result has room for the weights.
        par_for(weights, 1 << 16, |r| unsafe { self.out.at(r.start).write_bytes(0, r.len()) }); // zero bits are 0.0
        let parts = Ptr(partial.ptr());
        let plan = Plan { job: self, grid: &grid, taps: &taps, chunks };
        try_par_for(self.groups * chunks * sums, 1, |range| {
            for unit in range {
                let (sum, rest) = (unit % sums, unit / sums);
                let out = if sum == 0 { self.out } else { Ptr(parts.at((sum - 1) * weights)) };
                let blocks = sum * blocks / sums..(sum + 1) * blocks / sums;
                // SAFETY: the caller's promise; units write disjoint parts of the sums.
                tiles::run(Piece { plan: &plan, group: rest / chunks, chunk: rest % chunks, blocks, out })?;
            }
            Ok(())
        })?;
        par_for(weights, 1 << 14, |range| {
            for i in range {
                for sum in 1..sums {
                    // SAFETY: both lie inside their memory; ranges are disjoint.
                    unsafe {
                        let at = self.out.at(i);
                        *at = (*at).plus(*parts.at((sum - 1) * weights + i));
                    }
                }
            }
        });
        Ok(())
    }
}

struct Plan<'a, 'b, T> {
    job: &'a WeightGradient<'b, T>,
    grid: &'a Grid,
    taps: &'a [usize],
    chunks: usize,
}

/// The weights of some input channels of a group, summed over some blocks.
struct Piece<'a, 'b, 'c, T> {
    plan: &'a Plan<'b, 'c, T>,
    group: usize,
    chunk: usize,
    blocks: Range<usize>,
    out: Ptr<T>,
}

impl<T: Vectors> Job<T> for Piece<'_, '_, '_, T> {
    type Output = Result<()>;
    #[inline(always)]
    unsafe fn run<U: Unit<Float = T>>(self) -> Result<()> {
        let (job, grid, taps) = (self.plan.job, self.plan.grid, self.plan.taps);
        let channels = self.chunk * job.from / self.plan.chunks..(self.chunk + 1) * job.from / self.plan.chunks;
        let columns = channels.len() * taps.len();
        let most = grid.most.iter().product::<usize>();
        let mut scratch: Scratch<T> = Scratch::new(grid, channels.len())?;
        let width = U::WIDTH;
        // Where the columns find the input of a block's first place; the last panel repeats the first column.
        let mut order = filled(0, columns.next_multiple_of(width))?;
        for (i, o) in order.iter_mut().take(columns).enumerate() {
            *o = i / taps.len() * scratch.channel() + taps[i % taps.len()];
        }
        let mut places = filled(0, most)?;
        let panels = job.to.div_ceil(U::ROWS);
        let rows_of = |p: usize| p * job.to / panels..(p + 1) * job.to / panels;
        let (left, right): (Temp<T>, Temp<T>) = (Temp::new(job.to * most)?, Temp::new(width * most + WIDEST)?);
        let mut line = filled(T::ZERO, most)?;
        let first = (self.group * job.to * job.from + channels.start) * taps.len();
        let out = Matrix { ptr: self.out.at(first), rows: job.from * taps.len(), cols: 1 };
        for at in self.blocks {
            let (n, block) = (at / grid.blocks(), grid.block(at % grid.blocks()));
            let count = block.places();
            for (i, p) in places[..count].iter_mut().enumerate() {
                *p = grid.row_offset(&block, i / block.count[2]) + i % block.count[2];
            }
            // SAFETY: the caller's promise; panels and columns lie in their memory.
            unsafe {
                let all = self.group * job.from + channels.start..self.group * job.from + channels.end;
                scratch.fill(grid, &block, &job.input, n, all);
                if job.to <= FEW {
                    for row in 0..job.to {
                        read(&job.grad, grid, &block, n, self.group * job.to + row, &mut line);
                        for (column, &offset) in order[..columns].iter().enumerate() {
                            let from = scratch.ptr().add(offset);
                            let sum = dot::<U>(&line[..count], from, &places, block.count[2]);
                            let at = out.at(row, column);
                            *at = (*at).plus(sum);
                        }
                    }
                    continue;
                }
                for panel in 0..panels {
                    let rows = rows_of(panel);
                    let to = left.ptr().add(rows.start * count);
                    for (r, row) in rows.clone().enumerate() {
                        read(&job.grad, grid, &block, n, self.group * job.to + row, &mut line);
                        (0..count).for_each(|p| *to.add(p * rows.len() + r) = line[p]);
                    }
                }
                for column in (0..columns).step_by(width) {
                    gather::<U>(scratch.ptr(), &order[column..column + width], &places[..count], right.ptr());
                    for panel in 0..panels {
                        let rows = rows_of(panel);
                        let tile = Tile {
                            terms: count,
                            a: Packed(left.ptr().add(rows.start * count)),
                            b: right.ptr(),
                            out: out.from(rows.start, column),
                            cols: width.min(columns - column),
                            start: Start::Result,
                        };
                        tile.run::<U>(rows.len());
                    }
                }
            }
        }
        Ok(())
    }
}

/// The elements of a channel at the places of a block.
unsafe fn read<T: Vectors>(grad: &Image, grid: &Grid, block: &Block, n: usize, channel: usize, to: &mut [T]) {
    let (rows, wide) = (block.count[0] * block.count[1], block.count[2]);
    for row in 0..rows {
        let at = n * grad.batch + channel * grad.channel + grid.row_start(block, row, grad.steps);
        let run = &mut to[row * wide..(row + 1) * wide];
        // SAFETY: the caller's promise.
        unsafe { load(grad.view.dtype, grad.view.at(at), grad.steps[2] * grid.axes[2].apart, wide, run.as_mut_ptr()) };
    }
}

/// The sum of `grad` times the input at the places of a block, row by row.
#[inline(always)]
unsafe fn dot<U: Unit>(grad: &[U::Float], from: *const U::Float, places: &[usize], wide: usize) -> U::Float {
    // SAFETY: the caller's promise: the places of a row follow one another in the scratch memory.
    unsafe {
        let zero = U::splat(U::Float::ZERO);
        let (mut sums, mut rest) = ([zero; 2], U::Float::ZERO);
        for (row, grad) in grad.chunks_exact(wide).enumerate() {
            let from = from.add(places[row * wide]);
            let mut i = 0;
            while i + U::WIDTH <= wide {
                let g = grad.as_ptr().add(i);
                sums[0] = U::fma(U::load(g), U::load(from.add(i)), sums[0]);
                sums[1] = U::fma(U::load(g.add(U::LANES)), U::load(from.add(i + U::LANES)), sums[1]);
                i += U::WIDTH;
            }
            if i + U::LANES <= wide {
                sums[0] = U::fma(U::load(grad.as_ptr().add(i)), U::load(from.add(i)), sums[0]);
                i += U::LANES;
            }
            (i..wide).for_each(|i| rest = rest.plus(grad[i].times(*from.add(i))));
        }
        let mut lanes = [U::Float::ZERO; WIDEST / 2];
        U::store(lanes.as_mut_ptr(), U::add(sums[0], sums[1]));
        lanes.iter().fold(rest, |sum, &x| sum.plus(x))
    }
}

/// A panel whose columns are channels and taps: for each place what they meet there.
#[inline(always)]
unsafe fn gather<U: Unit>(from: *const U::Float, columns: &[usize], places: &[usize], to: *mut U::Float) {
    for (p, &place) in places.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe {
            let (from, to) = (from.add(place), to.add(p * U::WIDTH));
            for (lane, &column) in columns[..U::WIDTH].iter().enumerate() {
                *to.add(lane) = *from.add(column);
            }
        }
    }
}
