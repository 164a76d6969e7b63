//! Reductions that keep the densest dimension: a tile of neighbouring results folds rows of memory.

use super::driver::{Job, PART};
use super::loop_nest::LoopNest;
use super::reducer::{Columns, Finish, Merge, Reducer, run_for};
use crate::cpu::parallel::par_for;
use crate::cpu::simd;
use crate::cpu::view::{SendPtr, load};
use crate::dtype::Element;
use crate::error::Result;
use crate::rt::reserve::filled;

/// Columns of a tile: its accumulators fit L1, and its rows are long enough for the prefetcher.
const TILE: usize = 4096;
/// Columns of a tile if rows are converted first, and the number of rows converted at once: they fit L1.
const NARROW: usize = 2048;
const CONVERTED: usize = 2;
/// Maximum number of parts into which the rows of a tile are split: one thread merges their accumulators.
const MOST_PARTS: usize = 32;
/// Rows folded into one accumulator before it is merged with others.
const ROWS: usize = 64;

/// How the results are split into tiles and their rows into parts.
struct Tiling {
    kept: LoopNest,
    folded: LoopNest,
    /// Columns of all tiles of one row, and of each tile.
    width: usize,
    tile: usize,
    in_stride: usize,
    out_stride: usize,
    /// Rows treated as one wide row, and the number of such wide rows.
    group: usize,
    rows: usize,
    parts: usize,
}

impl Tiling {
    fn per_row(&self) -> usize {
        self.width.div_ceil(self.tile)
    }
    /// Offsets in input and output, and the columns, of a tile.
    fn tile(&self, unit: usize) -> (usize, usize, usize) {
        let start = unit % self.per_row() * self.tile;
        let at = self.kept.walk(unit / self.per_row()).offsets;
        (at[0] + start * self.in_stride, at[1] + start * self.out_stride, self.tile.min(self.width - start))
    }
}

impl<T: Element, R: Reducer<T>> Job<'_, T, R> {
    fn direct(&self, stride: usize) -> bool {
        self.input.dtype == T::DTYPE && stride == 1
    }

    fn tiling(&self, mut kept: LoopNest, folded: LoopNest) -> Tiling {
        let (width, in_stride, out_stride) = kept.pop();
        let tile = width.min(if self.direct(in_stride) { TILE } else { NARROW });
        // Contiguous narrow rows are folded several at a time, as one wide row.
        let gapless = in_stride == 1 && folded.shape.len() == 1 && folded.input[0] == width;
        let group = if gapless { (256 / width).clamp(1, self.total) } else { 1 };
        let rows = self.total / group;
        let units = kept.count() * width.div_ceil(tile);
        let parts = self.parts(units, tile, rows.div_ceil(ROWS)).min(MOST_PARTS);
        Tiling { kept, folded, width, tile, in_stride, out_stride, group, rows, parts }
    }

    pub unsafe fn by_columns(&self, kept: LoopNest, folded: LoopNest) -> Result<()> {
        let t = &self.tiling(kept, folded);
        let units = t.kept.count() * t.per_row();
        if t.parts == 1 {
            let grain = PART / 2 / (self.total * t.tile).max(1);
            // SAFETY: the caller's promise.
            par_for(units, grain, |range| range.for_each(|u| unsafe { self.write_tile(t, u, &self.part(t, u, 0)) }));
            return Ok(());
        }
        let mut partial = filled(self.rule.empty(), units * t.parts * t.tile)?;
        let slots = SendPtr(partial.as_mut_ptr());
        par_for(units * t.parts, 1, |range| {
            for i in range {
                // SAFETY: each index is visited once, and a part has at most as many columns as a tile.
                unsafe {
                    let acc = self.part(t, i / t.parts, i % t.parts);
                    std::ptr::copy_nonoverlapping(acc.as_ptr(), slots.at(i * t.tile), acc.len());
                }
            }
        });
        for (unit, parts) in partial.chunks_mut(t.parts * t.tile).enumerate() {
            self.merge_parts(parts, t.tile);
            // SAFETY: the caller's promise.
            unsafe { self.write_tile(t, unit, &parts[..t.tile(unit).2]) };
        }
        Ok(())
    }

    /// Merges parts of `tile` accumulators each pairwise, into the first.
    fn merge_parts(&self, parts: &mut [R::Acc], tile: usize) {
        let mut step = tile;
        while step < parts.len() {
            for pair in parts.chunks_mut(2 * step).filter(|pair| pair.len() > step) {
                let (into, from) = pair.split_at_mut(step);
                let (into, from) = (&mut into[..tile], &from[..tile]);
                simd::run(Merge { rule: self.rule, into, from, mark: self.mark });
            }
            step *= 2;
        }
    }

    unsafe fn write_tile(&self, t: &Tiling, unit: usize, acc: &[R::Acc]) {
        let (_, offset, n) = t.tile(unit);
        // Bounded by the width of a tile.
        let mut y = Vec::with_capacity(n);
        let results = &mut y.spare_capacity_mut()[..n];
        simd::run(Finish { rule: self.rule, acc: &acc[..n], count: self.total, results, mark: self.mark });
        // SAFETY: the tile lies inside the output, and all its results have been written.
        unsafe { self.write(offset, t.out_stride, y.as_ptr(), n) }
    }

    /// The accumulators of one part of a tile's rows.
    unsafe fn part(&self, t: &Tiling, unit: usize, part: usize) -> Vec<R::Acc> {
        let (base, _, n) = t.tile(unit);
        let bundles = t.rows.div_ceil(ROWS);
        let (from, to) = (bundles * part / t.parts * ROWS, (bundles * (part + 1) / t.parts * ROWS).min(t.rows));
        let rest = self.total - t.rows * t.group;
        // SAFETY: the tile's rows lie inside the input.
        unsafe {
            let acc = self.columns(&t.folded.widened(t.group), base, t.in_stride, n * t.group, from, to);
            if rest == 0 || part + 1 < t.parts {
                return self.narrow(acc, n);
            }
            let offset = base + t.rows * t.group * t.width;
            let mut all = self.columns(&t.folded.widened(rest), offset, 1, n * rest, 0, 1);
            all.extend(acc);
            self.narrow(all, n)
        }
    }

    /// Merges the accumulators of a wide row into those of `n` columns.
    fn narrow(&self, mut acc: Vec<R::Acc>, n: usize) -> Vec<R::Acc> {
        while acc.len() > n {
            let half = (acc.len() / n).div_ceil(2) * n;
            let upper = acc.split_off(half);
            simd::run(Merge { rule: self.rule, into: &mut acc, from: &upper, mark: self.mark });
        }
        acc
    }

    /// Folds rows `from..to` of a tile of `n` columns.
    unsafe fn columns(
        &self,
        folded: &LoopNest,
        base: usize,
        stride: usize,
        n: usize,
        from: usize,
        to: usize,
    ) -> Vec<R::Acc> {
        let direct = self.direct(stride);
        // Bounded by the width of a tile, as for every accumulator here.
        let mut buffer: Vec<T> = if direct { Vec::new() } else { vec![T::default(); CONVERTED * n] };
        let most = if direct { ROWS } else { CONVERTED };
        let mut rows = [std::ptr::null::<T>(); ROWS];
        let mut stack = Vec::new();
        // Bounded as above.
        let mut acc = vec![self.rule.empty(); n];
        let mut at = folded.walk(from);
        for first in (from..to).step_by(most) {
            let count = most.min(to - first);
            for (i, row) in rows[..count].iter_mut().enumerate() {
                let x = self.input.at(base + at.offsets[0]);
                *row = if direct {
                    x as *const T
                } else {
                    let slot = buffer[i * n..].as_mut_ptr();
                    // SAFETY: the row lies inside the input, the slot has `n` elements.
                    unsafe { load(self.input.dtype, x, stride, n, slot) };
                    slot
                };
                at.step();
            }
            // SAFETY: the rows and `acc` have `n` elements each.
            run_for::<T, R, _>(unsafe { Columns::new(self.rule, &rows[..count], n, acc.as_mut_ptr()) });
            if (first + count).is_multiple_of(ROWS) && first + count < to {
                // Bounded as above.
                self.push(&mut stack, std::mem::replace(&mut acc, vec![self.rule.empty(); n]));
            }
        }
        self.push(&mut stack, acc);
        self.collapse(stack)
    }

    /// Merges rows of accumulators pairwise; each stack entry records how many bundles it contains.
    fn push(&self, stack: &mut Vec<(usize, Vec<R::Acc>)>, acc: Vec<R::Acc>) {
        stack.push((1, acc));
        while let [.., (m, _), (n, _)] = stack[..] {
            if m != n {
                break;
            }
            self.merge_top(stack);
        }
    }
    fn merge_top(&self, stack: &mut Vec<(usize, Vec<R::Acc>)>) {
        let (n, top) = stack.pop().unwrap();
        let (m, below) = stack.last_mut().unwrap();
        simd::run(Merge { rule: self.rule, into: below, from: &top, mark: self.mark });
        *m += n;
    }
    fn collapse(&self, mut stack: Vec<(usize, Vec<R::Acc>)>) -> Vec<R::Acc> {
        while stack.len() > 1 {
            self.merge_top(&mut stack);
        }
        stack.pop().map_or(Vec::new(), |(_, acc)| acc)
    }
}
