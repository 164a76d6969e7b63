//! The gradient of the weights: for each tap the elements of one side times those that the tap meets on the other.
//!
//! A product whose terms are the places of all blocks: of the input as it lies in scratch memory, and of packed gradients, whose
//! filters fill vectors. The terms are split into a number of sums that depends on the sizes alone, so that the result does not
//! depend on the threads.

use super::geometry::{Axis, Block, Grid};
use super::scratch::{Image, Scratch};
use super::slide::FEW;
use crate::cpu::gemm::Matrix;
use crate::cpu::gemm::tiles::{self, Finish, Job, Pack, Panel, ROOM, SCATTERED, Scattered, Start, Tile, Unit, Vectors};
use crate::cpu::parallel::{par_for, try_par_for};
use crate::cpu::scratch::Temp;
use crate::cpu::view::{SendPtr, load};
use crate::error::Result;
use crate::rt::reserve::filled;
use std::ops::Range;

/// Terms of a product: the places of a block.
const PLACES: usize = 192;
/// Inputs of a block where few channels meet them, which are not packed.
const FEW_PLACES: usize = 1 << 12;
/// Columns of a task, about: channels times taps.
const COLUMNS: usize = 288;
/// Tasks there should be, if the sizes allow, and terms of each sum.
const TASKS: usize = 8;
const LEAST: usize = 512;

/// The gradient of dense weights `[groups * to, from, taps]` of the compute type.
pub struct WeightGradient<'a, T> {
    /// What the window slides over, and what meets it: `[batch, groups * to, places]`.
    pub input: Image<'a>,
    pub grad: Image<'a>,
    pub out: SendPtr<T>,
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
        if self.to * self.from == 0 {
            return Ok(());
        }
        let about = if self.to <= FEW { FEW_PLACES / self.from.max(1) } else { 0 };
        let grid = Grid::new(self.axes.clone(), about.max(PLACES));
        let taps = grid.tap_offsets();
        let chunks = (self.from * taps.len()).div_ceil(COLUMNS).clamp(1, self.from);
        let blocks = self.batch * grid.blocks();
        let terms = blocks * grid.most.iter().product::<usize>();
        let sums = TASKS.div_ceil(self.groups * chunks).min(terms / LEAST).clamp(1, blocks.max(1));
        let weights = self.groups * self.to * self.from * taps.len();
        let partial: Temp<T> = Temp::new(weights.saturating_mul(sums - 1))?;
        // SAFETY: the result has room for the weights.
        par_for(weights, 1 << 16, |r| unsafe { self.out.at(r.start).write_bytes(0, r.len()) }); // zero bits are 0.0
        let parts = SendPtr(partial.ptr());
        let plan = Plan { job: self, grid: &grid, taps: &taps, chunks };
        try_par_for(self.groups * chunks * sums, 1, |range| {
            for unit in range {
                let (sum, rest) = (unit % sums, unit / sums);
                let out = if sum == 0 { self.out } else { SendPtr(parts.at((sum - 1) * weights)) };
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
    out: SendPtr<T>,
}

/// What a piece works in.
struct Work<T> {
    scratch: Scratch<T>,
    /// The input channels.
    channels: Range<usize>,
    columns: usize,
    /// Where the columns find the input of a block's first place.
    order: Vec<usize>,
    /// Where the places of a block lie, relative to the first.
    places: Vec<usize>,
    held: Option<[usize; 3]>,
    /// The gradient of one channel at those places.
    line: Vec<T>,
    most: usize,
}

impl<T: Vectors> Job<T> for Piece<'_, '_, '_, T> {
    type Output = Result<()>;
    #[inline(always)]
    unsafe fn run<U: Unit<Float = T>>(self) -> Result<()> {
        let to = self.plan.job.to;
        let mut work = self.work()?;
        // SAFETY: the caller's promise.
        unsafe { if to <= FEW { self.few::<U>(&mut work) } else { self.many::<U>(&mut work) } }
    }
}

impl<T: Vectors> Piece<'_, '_, '_, T> {
    fn work(&self) -> Result<Work<T>> {
        let (job, grid, taps) = (self.plan.job, self.plan.grid, self.plan.taps);
        let channels = self.chunk * job.from / self.plan.chunks..(self.chunk + 1) * job.from / self.plan.chunks;
        let (columns, most) = (channels.len() * taps.len(), grid.most.iter().product::<usize>());
        let scratch: Scratch<T> = Scratch::new(grid, channels.len())?;
        let mut order = filled(0, columns)?;
        for (i, o) in order.iter_mut().enumerate() {
            *o = i / taps.len() * scratch.channel() + taps[i % taps.len()];
        }
        let (places, line) = (filled(0, most)?, filled(T::ZERO, most)?);
        Ok(Work { scratch, channels, columns, order, places, held: None, line, most })
    }
    /// The weights of the piece, a row for each filter.
    fn weights(&self, work: &Work<T>) -> Matrix<T> {
        let (job, taps) = (self.plan.job, self.plan.taps.len());
        let first = (self.group * job.to * job.from + work.channels.start) * taps;
        Matrix { ptr: self.out.at(first), rows: job.from * taps, cols: 1 }
    }
    /// Reads the input of a block; which element of the batch it is of.
    ///
    /// # Safety
    /// As for `WeightGradient::run`.
    #[inline(always)]
    unsafe fn read<U: Unit<Float = T>>(&self, at: usize, work: &mut Work<T>) -> (usize, Block) {
        let (job, grid) = (self.plan.job, self.plan.grid);
        let (n, block) = (at / grid.blocks(), grid.block(at % grid.blocks()));
        if work.held.replace(block.count) != Some(block.count) {
            for (row, places) in work.places[..block.places()].chunks_exact_mut(block.count[2]).enumerate() {
                let start = grid.row_offset(&block, row);
                places.iter_mut().enumerate().for_each(|(i, p)| *p = start + i);
            }
        }
        let all = self.group * job.from + work.channels.start..self.group * job.from + work.channels.end;
        // SAFETY: the caller's promise.
        unsafe { work.scratch.fill::<U>(grid, &block, &job.input, n, all) };
        (n, block)
    }
    /// The gradient of a filter at the places of a block, in runs of equal length and their distance of elements.
    fn filter<'s>(
        &'s self,
        n: usize,
        block: &'s Block,
        filter: usize,
    ) -> (usize, usize, impl Fn(usize) -> *const u8 + 's) {
        let (grad, grid) = (&self.plan.job.grad, self.plan.grid);
        let ([deep, high, wide], along) = (block.count, grad.steps[2] * grid.axes[2].apart);
        let follow = |i: usize, step: usize| block.count[i] == 1 || grad.steps[i] * grid.axes[i].apart == step * along;
        let whole = follow(1, wide) && follow(0, wide * high);
        let run = if whole { deep * high * wide } else { wide };
        let first = n * grad.batch + (self.group * self.plan.job.to + filter) * grad.channel;
        (run, along, move |row| grad.view.at(first + grid.row_start(block, row, grad.steps)).cast_const())
    }
    /// Reads it.
    ///
    /// # Safety
    /// As for `WeightGradient::run`.
    unsafe fn read_filter(&self, n: usize, block: &Block, filter: usize, line: &mut [T]) {
        let (run, along, at) = self.filter(n, block, filter);
        for (row, to) in line[..block.places()].chunks_exact_mut(run).enumerate() {
            // SAFETY: the caller's promise.
            unsafe { load(self.plan.job.grad.view.dtype, at(row), along, run, to.as_mut_ptr()) };
        }
    }
    /// Packs the gradient of some filters from `first` on, place by place, into a panel.
    ///
    /// # Safety
    /// As for `WeightGradient::run`; the panel and a line of each filter lie in memory.
    #[inline(always)]
    unsafe fn pack_filters<U: Unit<Float = T>>(
        &self,
        n: usize,
        block: &Block,
        [first, filled, width]: [usize; 3],
        lines: &mut [T],
        to: *mut T,
    ) {
        let (grad, count) = (&self.plan.job.grad, block.places());
        // SAFETY: the caller's promise.
        unsafe {
            if grad.view.dtype == T::DTYPE {
                let (run, along, at) = self.filter(n, block, first);
                for row in 0..count / run {
                    let from = Matrix { ptr: at(row) as *mut T, rows: along, cols: grad.channel };
                    U::call(Pack { from, terms: run, filled, width, to: to.add(row * run * width) });
                }
            } else {
                for (filter, line) in lines.chunks_exact_mut(count).take(filled).enumerate() {
                    self.read_filter(n, block, first + filter, line);
                }
                let from = Matrix { ptr: lines.as_mut_ptr(), rows: 1, cols: count };
                U::call(Pack { from, terms: count, filled, width, to });
            }
        }
    }

    /// Few filters: for each column a vector of sums.
    ///
    /// # Safety
    /// As for `WeightGradient::run`; so for the others.
    #[inline(always)]
    unsafe fn few<U: Unit<Float = T>>(&self, work: &mut Work<T>) -> Result<()> {
        let (to, columns, out) = (self.plan.job.to, work.columns, self.weights(work));
        let mut lanes = filled(T::ZERO, to * columns * U::LANES)?;
        for at in self.blocks.clone() {
            // SAFETY: the caller's promise.
            unsafe {
                let (n, block) = self.read::<U>(at, work);
                for filter in 0..to {
                    self.read_filter(n, &block, filter, &mut work.line);
                    let grad = &work.line[..block.places()];
                    let few = Few { grad, places: &work.places, wide: block.count[2] };
                    let lanes = &mut lanes[filter * columns * U::LANES..][..columns * U::LANES];
                    few.add::<U>(work.scratch.ptr(), &work.order[..columns], lanes);
                }
            }
        }
        for (i, lanes) in lanes.chunks_exact(U::LANES).enumerate() {
            // SAFETY: the column is one of the result's, which nobody else writes.
            unsafe { *out.at(i / columns, i % columns) = lanes.iter().fold(T::ZERO, |sum, &x| sum.plus(x)) };
        }
        Ok(())
    }

    /// Tiles of `[columns, filters]`: the gradient is packed place by place, the input read where it lies.
    #[inline(always)]
    unsafe fn many<U: Unit<Float = T>>(&self, work: &mut Work<T>) -> Result<()> {
        let (to, columns) = (self.plan.job.to, work.columns);
        let padded = to.next_multiple_of(U::LANES);
        let sums: Temp<T> = Temp::filled(columns * padded, T::ZERO)?;
        let sums = Matrix { ptr: sums.ptr(), rows: padded, cols: 1 };
        let packed: Temp<T> = Temp::new(padded.min(U::WIDTH) * work.most)?;
        let mut lines =
            filled(T::ZERO, if self.plan.job.grad.view.dtype == T::DTYPE { 0 } else { U::WIDTH * work.most })?;
        let tiles = columns.div_ceil(U::ROWS.min(SCATTERED));
        for at in self.blocks.clone() {
            // SAFETY: the caller's promise; panels and columns lie in their memory.
            unsafe {
                let (n, block) = self.read::<U>(at, work);
                let terms = block.places();
                for first in (0..padded).step_by(U::WIDTH) {
                    let cols = U::WIDTH.min(padded - first);
                    self.pack_filters::<U>(n, &block, [first, cols.min(to - first), cols], &mut lines, packed.ptr());
                    for tile in 0..tiles {
                        let [column, end] = [tile * columns / tiles, (tile + 1) * columns / tiles];
                        let (rows, places) = (work.order[column..].as_ptr(), work.places.as_ptr());
                        let a = Scattered { from: work.scratch.ptr(), rows, terms: places };
                        let (b, out, start) =
                            (Panel(packed.ptr().cast_const(), cols), sums.from(column, first), Start::Result);
                        Tile { terms, a, b, out, cols, start }.run::<U>(end - column);
                    }
                }
            }
        }
        let out = self.weights(work).t();
        for column in (0..columns).step_by(ROOM) {
            for first in (0..to).step_by(U::WIDTH) {
                let size = [ROOM.min(columns - column), U::WIDTH.min(to - first)];
                let (from, out) = (sums.from(column, first), out.from(column, first));
                // SAFETY: the weights are those of the piece, which nobody else writes.
                unsafe { U::call(Finish { from, old: out, out, size, factors: [T::ONE, T::ZERO] }) };
            }
        }
        Ok(())
    }
}

/// The gradient of one channel at the places of a block, the places of a row one after another.
struct Few<'a, T> {
    grad: &'a [T],
    places: &'a [usize],
    wide: usize,
}
impl<T: Vectors> Few<'_, T> {
    /// Adds the products with the input that each column meets at the places to the column's vector of `lanes`.
    ///
    /// # Safety
    /// The input of the columns lies at the places behind `from`.
    #[inline(always)]
    unsafe fn add<U: Unit<Float = T>>(&self, from: *const T, columns: &[usize], lanes: &mut [T]) {
        let (nines, rest) = columns.as_chunks::<9>();
        let (threes, ones) = rest.as_chunks::<3>();
        let (first, lanes) = lanes.split_at_mut(9 * nines.len() * U::LANES);
        let (second, last) = lanes.split_at_mut(3 * threes.len() * U::LANES);
        // SAFETY: the caller's promise.
        unsafe {
            let parts = nines.iter().zip(first.chunks_exact_mut(9 * U::LANES));
            parts.for_each(|(columns, lanes)| self.columns::<U, 9>(from, columns, lanes));
            let parts = threes.iter().zip(second.chunks_exact_mut(3 * U::LANES));
            parts.for_each(|(columns, lanes)| self.columns::<U, 3>(from, columns, lanes));
            let parts = ones.iter().zip(last.chunks_exact_mut(U::LANES));
            parts.for_each(|(&column, lanes)| self.columns::<U, 1>(from, &[column], lanes));
        }
    }

    /// # Safety
    /// As for `add`.
    #[allow(clippy::needless_range_loop)] // the sums stay in registers only if all their indices are constants
    #[inline(always)]
    unsafe fn columns<U: Unit<Float = T>, const N: usize>(
        &self,
        from: *const T,
        columns: &[usize; N],
        lanes: &mut [T],
    ) {
        let lanes = lanes.as_mut_ptr();
        // SAFETY: the caller's promise; there is a vector of lanes for each column.
        unsafe {
            let mut sums: [U::Vector; N] = std::array::from_fn(|k| U::load(lanes.add(k * U::LANES)));
            for (row, grad) in self.grad.chunks_exact(self.wide).enumerate() {
                let from = from.add(self.places[row * self.wide]);
                let whole = self.wide / U::LANES * U::LANES;
                for i in (0..whole).step_by(U::LANES) {
                    let g = U::load(grad.as_ptr().add(i));
                    for k in 0..N {
                        sums[k] = U::fma(g, U::load(from.add(columns[k] + i)), sums[k]);
                    }
                }
                let left = self.wide - whole;
                if left > 0 {
                    // What follows the row may be infinite: it is not read.
                    let g = U::load_first(grad.as_ptr().add(whole), left);
                    for k in 0..N {
                        sums[k] = U::fma(g, U::load_first(from.add(columns[k] + whole), left), sums[k]);
                    }
                }
            }
            for k in 0..N {
                U::store(lanes.add(k * U::LANES), sums[k]);
            }
        }
    }
}
