//! The driver of all reductions.
//!
//! The densest dimension in memory determines the loop. If it is reduced, each result folds contiguous runs
//! (`by_rows`); if it is kept, a tile of neighbouring results folds rows (`columns.rs`). Long reductions are split into
//! parts of a size that depends only on the shape, and accumulators are merged pairwise, so results are bitwise equal
//! at any thread count and the rounding error grows as log n.

use super::loop_nest::{LoopNest, Pairwise};
use super::reducer::{Block, Reducer};
use crate::cpu::parallel::par_for;
use crate::cpu::view::{SendPtr, View, load, store};
use crate::dtype::Element;
use crate::error::Result;
use crate::layout::{Dims, contiguous_strides};
use crate::rt::reserve::filled;
use std::mem::MaybeUninit;

/// Elements converted at once if the input is strided or of another dtype.
const BUFFER: usize = 4096;
/// Minimum elements of a part of a split reduction.
pub(crate) const PART: usize = 1 << 16;
/// Elements of runs whose results are made together, and so of the longest such run: once converted they fit the stack.
pub(crate) const SHORT: usize = 1024;
/// With more results than this, parallelism over results suffices without splitting.
const MANY: usize = 32;

/// Reduces `input` over the dimensions for which `reduced` is true into `out`; elements are loaded as `T`.
///
/// # Safety
/// Both operands must be in bounds; `out` has the input's shape with the reduced dimensions of size one.
pub unsafe fn run<T: Element, R: Reducer<T>>(
    rule: R,
    input: View,
    reduced: &dyn Fn(usize) -> bool,
    out: View,
) -> Result<()> {
    let kept = LoopNest::new(&input, &out, |d| !reduced(d));
    // The output does not extend over the reduced dimensions, so its strides there are meaningless.
    let none = Dims::from_elem(0, input.ndim());
    // SAFETY: only the strides of what is folded are read, which all are zero.
    let folded = LoopNest::new(&input, &unsafe { out.seen_as(out.shape, &none) }, reduced);
    let dense = |n: &LoopNest| n.input.last().copied().unwrap_or(usize::MAX);
    // Several short runs for each result; single ones are transposed (`rows.rs`).
    let few = folded.shape.len() > 1
        && folded.shape.last().is_some_and(|&n| n < 16)
        && kept.shape.last().is_some_and(|&n| n >= 64);
    let job = Job { rule, input, out, total: folded.count(), mark: std::marker::PhantomData::<T> };
    if kept.count() == 1 && job.total <= R::BLOCK && job.total > 0 && folded.shape.len() <= 1 {
        // Small and in one run: skip the planning.
        let stride = folded.input.last().copied().unwrap_or(1);
        // SAFETY: the caller guarantees the operands.
        unsafe { job.finish(0, job.block(0, stride, job.total)) };
        return Ok(());
    }
    // SAFETY: the caller guarantees the operands.
    unsafe {
        if kept.count() == 0 {
        } else if folded.count() == 0 {
            job.fill(kept);
        } else if dense(&kept) < dense(&folded) || few {
            job.by_columns(kept, folded)?;
        } else {
            job.by_rows(kept, folded)?;
        }
    }
    Ok(())
}

pub(crate) struct Job<'a, T, R> {
    pub rule: R,
    pub input: View<'a>,
    pub out: View<'a>,
    /// Elements per result.
    pub total: usize,
    pub mark: std::marker::PhantomData<T>,
}

impl<T: Element, R: Reducer<T>> Job<'_, T, R> {
    /// Number of parts for each of `results` reductions of `pieces` pieces; depends only on the sizes.
    pub fn parts(&self, results: usize, width: usize, pieces: usize) -> usize {
        if results >= MANY { 1 } else { (self.total * width / PART).clamp(1, 256).min(pieces.max(1)) }
    }

    /// Sets every result to that of an empty reduction.
    unsafe fn fill(&self, kept: LoopNest) {
        let y = self.rule.finish(self.rule.empty(), 0);
        let mut at = kept.walk(0);
        for _ in 0..kept.count() {
            // SAFETY: the offset is one of the output's.
            unsafe { store(self.out.dtype, self.out.at(at.offsets[1]), 1, 1, &y) };
            at.step();
        }
    }

    /// Writes one result.
    fn finish(&self, offset: usize, acc: R::Acc) {
        let y = self.rule.finish(acc, self.total);
        // SAFETY: the offset is one of the output's.
        unsafe { self.write(offset, 1, &y, 1) }
    }
    /// Writes neighbouring results.
    ///
    /// # Safety
    /// There are so many, and the output has room for them.
    pub unsafe fn write(&self, offset: usize, step: usize, results: *const R::Out, count: usize) {
        // SAFETY: the caller's promise.
        unsafe { store(self.out.dtype, self.out.at(offset), step, count, results) }
    }
    fn merge(&self, accs: impl Iterator<Item = R::Acc>) -> R::Acc {
        let mut all = Pairwise::new();
        accs.for_each(|acc| all.push(acc, |a, b| self.rule.merge(a, b)));
        all.finish(|a, b| self.rule.merge(a, b)).unwrap_or(self.rule.empty())
    }

    unsafe fn by_rows(&self, kept: LoopNest, mut folded: LoopNest) -> Result<()> {
        let (run, stride, _) = folded.pop();
        let (results, outer) = (kept.count(), folded.count());
        if outer > 1 && results > 1 && run >= 32 {
            // SAFETY: the caller's promise.
            return unsafe { self.in_two_stages(&kept, &folded, run, stride) };
        }
        let per_run = run.div_ceil(R::BLOCK);
        let pieces = outer * per_run;
        let parts = self.parts(results, 1, pieces);
        if pieces == 1 && run <= SHORT {
            // SAFETY: the caller's promise.
            unsafe { self.by_short_rows(kept, run, stride) };
            return Ok(());
        }
        let fold = |base: usize, part: usize| {
            let (from, to) = (pieces * part / parts, pieces * (part + 1) / parts);
            let mut at = folded.walk(from / per_run);
            self.merge((from..to).map(|piece| {
                let start = piece % per_run * R::BLOCK;
                let n = R::BLOCK.min(run - start);
                let offset = base + at.offsets[0] + start * stride;
                if start + n == run {
                    at.step();
                }
                // SAFETY: the piece lies inside the input.
                unsafe { self.block(offset, stride, n) }
            }))
        };
        if parts == 1 {
            par_for(results, PART / 2 / self.total.max(8), |range| {
                let mut at = kept.walk(range.start);
                for _ in range {
                    self.finish(at.offsets[1], fold(at.offsets[0], 0));
                    at.step();
                }
            });
            return Ok(());
        }
        let mut partial = filled(self.rule.empty(), results * parts)?;
        let slots = SendPtr(partial.as_mut_ptr());
        par_for(results * parts, 1, |range| {
            for i in range {
                let acc = fold(kept.walk(i / parts).offsets[0], i % parts);
                // SAFETY: each index is visited once.
                unsafe { *slots.at(i) = acc };
            }
        });
        for (i, accs) in partial.chunks(parts).enumerate() {
            self.finish(kept.walk(i).offsets[1], self.merge(accs.iter().copied()));
        }
        Ok(())
    }

    /// Runs of several results alternate in memory: first all runs are folded in memory order, then the accumulators of
    /// each result are merged.
    unsafe fn in_two_stages(&self, kept: &LoopNest, folded: &LoopNest, run: usize, stride: usize) -> Result<()> {
        let outer = folded.count();
        let mut partial = filled(self.rule.empty(), kept.count() * outer)?;
        let (places, steps) = (contiguous_strides(&kept.shape), contiguous_strides(&folded.shape));
        let all = LoopNest::of(
            (0..kept.shape.len())
                .map(|d| (kept.shape[d], kept.input[d], places[d] * outer))
                .chain((0..folded.shape.len()).map(|d| (folded.shape[d], folded.input[d], steps[d])))
                .collect(),
        );
        let slots = SendPtr(partial.as_mut_ptr());
        par_for(partial.len(), PART / 2 / run, |range| {
            let mut at = all.walk(range.start);
            for _ in range {
                let pieces = (0..run).step_by(R::BLOCK).map(|start| {
                    // SAFETY: the piece lies inside the input.
                    unsafe { self.block(at.offsets[0] + start * stride, stride, R::BLOCK.min(run - start)) }
                });
                // SAFETY: each slot is written once.
                unsafe { *slots.at(at.offsets[1]) = self.merge(pieces) };
                at.step();
            }
        });
        let mut at = kept.walk(0);
        for accs in partial.chunks(outer) {
            self.finish(at.offsets[1], self.merge(accs.iter().copied()));
            at.step();
        }
        Ok(())
    }

    /// Folds one run: much code, and so a function of its own.
    #[inline(never)]
    unsafe fn block(&self, offset: usize, stride: usize, n: usize) -> R::Acc {
        let x = self.input.at(offset);
        // SAFETY: the caller guarantees the run.
        unsafe {
            if self.input.dtype == T::DTYPE && (stride == 1 || n == 1) {
                return Block::new(self.rule, x as *const T, n).fold();
            }
            self.converted(x, stride, n)
        }
    }

    /// Folds one run through a buffer.
    #[inline(never)]
    unsafe fn converted(&self, x: *const u8, stride: usize, n: usize) -> R::Acc {
        let mut buffer = [const { MaybeUninit::<T>::uninit() }; BUFFER];
        let buffer = buffer.as_mut_ptr() as *mut T;
        self.merge((0..n).step_by(BUFFER).map(|start| {
            let count = BUFFER.min(n - start);
            // SAFETY: the caller guarantees the run, and the buffer has room for the count.
            unsafe {
                load(self.input.dtype, x.add(start * stride * self.input.dtype.size()), stride, count, buffer);
                Block::new(self.rule, buffer, count).fold()
            }
        }))
    }
}
