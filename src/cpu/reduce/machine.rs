//! The loops of every reduction.
//!
//! The dimension that lies densest in memory decides the shape of the loop. If it is reduced, each result folds
//! runs of memory (`by_rows`); if it is kept, a tile of neighbouring results folds rows (`by_columns`).
//! Long reductions are cut into parts of a size that depends on the shape alone, and accumulators are merged
//! pairwise, so the bits of a result are the same at any thread count and the rounding error grows as log n.

use super::rule::{Block, Columns, Merge, Rule};
use crate::cpu::parallel::par_for;
use crate::cpu::simd;
use crate::cpu::view::{Ptr, View, load, store};
use crate::dtype::Element;
use crate::layout::{Dims, Odometer};
use std::mem::MaybeUninit;

/// Elements of a run that are folded at once; converted operands pass through a buffer of this size.
const BLOCK: usize = 4096;
/// Columns of a tile, and rows of it that are folded at once.
const TILE: usize = 1024;
const ROWS: usize = 64;
/// Rows that are converted at once, so that they stay in L1.
const CONVERTED: usize = 8;
/// Elements that a part of a cut reduction has at least.
const PART: usize = 1 << 16;
/// More results than this are parallel work enough without cutting.
const MANY: usize = 32;

/// Dimensions with the strides of input and output, densest last, merged where both walk as one.
struct Nest {
    shape: Dims,
    input: Dims,
    output: Dims,
}

impl Nest {
    fn new(input: &View, out: &View, select: impl Fn(usize) -> bool) -> Nest {
        let mut dims: Vec<(usize, usize, usize)> = (0..input.ndim())
            .filter(|&d| select(d) && input.shape[d] != 1)
            .map(|d| (input.shape[d], input.strides[d], out.strides[d]))
            .collect();
        dims.sort_by_key(|&(_, stride, _)| std::cmp::Reverse(stride));
        let mut nest = Nest { shape: Dims::new(), input: Dims::new(), output: Dims::new() };
        for (n, i, o) in dims {
            match nest.shape.last_mut() {
                Some(m) if nest.input.last() == Some(&(n * i)) && nest.output.last() == Some(&(n * o)) => {
                    *m *= n;
                    *nest.input.last_mut().unwrap() = i;
                    *nest.output.last_mut().unwrap() = o;
                }
                _ => {
                    nest.shape.push(n);
                    nest.input.push(i);
                    nest.output.push(o);
                }
            }
        }
        nest
    }
    fn count(&self) -> usize {
        self.shape.iter().product()
    }
    /// Takes the densest dimension out: size, stride in the input, stride in the output.
    fn pop(&mut self) -> (usize, usize, usize) {
        match self.shape.pop() {
            Some(n) => (n, self.input.pop().unwrap(), self.output.pop().unwrap()),
            None => (1, 1, 1),
        }
    }
    /// A nest of one dimension whose steps are `group` times as long.
    fn stretched(&self, group: usize) -> Nest {
        let mut nest = Nest { shape: self.shape.clone(), input: self.input.clone(), output: self.output.clone() };
        if group > 1 {
            nest.shape[0] /= group;
            nest.input[0] *= group;
        }
        nest
    }
    fn walk(&self, start: usize) -> Odometer<'_, 2> {
        Odometer::new(&self.shape, [&self.input, &self.output], start)
    }
}

/// Merges accumulators pairwise as they come: the levels of a binary counter.
struct Pairwise<A> {
    levels: [MaybeUninit<A>; 64],
    count: u64,
}
impl<A: Copy> Pairwise<A> {
    fn new() -> Self {
        Pairwise { levels: [MaybeUninit::uninit(); 64], count: 0 }
    }
    #[inline(always)]
    fn push(&mut self, mut acc: A, merge: impl Fn(A, A) -> A) {
        let mut level = 0;
        while self.count >> level & 1 == 1 {
            // SAFETY: a set bit of the count says that its level holds an accumulator.
            acc = merge(unsafe { self.levels[level].assume_init() }, acc);
            level += 1;
        }
        self.levels[level].write(acc);
        self.count += 1;
    }
    #[inline(always)]
    fn finish(self, merge: impl Fn(A, A) -> A) -> Option<A> {
        let mut result = None;
        for level in (0..64).filter(|&l| self.count >> l & 1 == 1) {
            // SAFETY: as in `push`.
            let acc = unsafe { self.levels[level].assume_init() };
            result = Some(result.map_or(acc, |r| merge(acc, r)));
        }
        result
    }
}

/// Reduces `input` over the dimensions that `reduced` names into `out`; elements are loaded as `T`.
///
/// # Safety
/// Both operands must be in bounds; `out` has the input's shape with the reduced dimensions of size one.
pub unsafe fn run<T: Element, R: Rule<T>>(rule: R, input: View, reduced: &dyn Fn(usize) -> bool, out: View) {
    let kept = Nest::new(&input, &out, |d| !reduced(d));
    let folded = Nest::new(&input, &out, reduced);
    let dense = |n: &Nest| n.input.last().copied().unwrap_or(usize::MAX);
    let few = folded.shape.last().is_none_or(|&n| n < 16) && kept.shape.last().is_some_and(|&n| n >= 64);
    let job = Job { rule, input, out, total: folded.count(), mark: std::marker::PhantomData::<T> };
    // SAFETY: the caller vouches for the operands.
    unsafe {
        if kept.count() == 0 {
        } else if folded.count() == 0 {
            job.fill(kept);
        } else if dense(&kept) < dense(&folded) || few {
            job.by_columns(kept, folded);
        } else {
            job.by_rows(kept, folded);
        }
    }
}

struct Job<'a, T, R> {
    rule: R,
    input: View<'a>,
    out: View<'a>,
    /// Elements that a result folds.
    total: usize,
    mark: std::marker::PhantomData<T>,
}

impl<T: Element, R: Rule<T>> Job<'_, T, R> {
    /// How many parts each of `results` reductions of `pieces` pieces is cut into: of the sizes alone.
    fn parts(&self, results: usize, width: usize, pieces: usize) -> usize {
        if results >= MANY { 1 } else { (self.total * width / PART).clamp(1, 256).min(pieces.max(1)) }
    }

    /// Every result is that of no elements.
    unsafe fn fill(&self, kept: Nest) {
        let y = self.rule.finish(self.rule.empty(), 0);
        let mut at = kept.walk(0);
        for _ in 0..kept.count() {
            // SAFETY: the offset is one of the output's.
            unsafe { store(self.out.dtype, self.out.at(at.offsets[1]), 1, 1, &y) };
            at.step();
        }
    }

    unsafe fn by_rows(&self, kept: Nest, mut folded: Nest) {
        let (run, stride, _) = folded.pop();
        let (results, outer) = (kept.count(), folded.count());
        let per_run = run.div_ceil(BLOCK);
        let pieces = outer * per_run;
        let parts = self.parts(results, 1, pieces);
        let fold = |base: usize, part: usize| {
            let (from, to) = (pieces * part / parts, pieces * (part + 1) / parts);
            let mut at = folded.walk(from / per_run);
            let mut acc = Pairwise::new();
            for piece in from..to {
                let start = piece % per_run * BLOCK;
                let n = BLOCK.min(run - start);
                let offset = base + at.offsets[0] + start * stride;
                // SAFETY: the piece lies inside the input.
                acc.push(unsafe { self.block(offset, stride, n) }, |a, b| self.rule.merge(a, b));
                if start + n == run {
                    at.step();
                }
            }
            acc.finish(|a, b| self.rule.merge(a, b)).unwrap_or(self.rule.empty())
        };
        let finish = |offset: usize, acc: R::Acc| {
            let y = self.rule.finish(acc, self.total);
            // SAFETY: the offset is one of the output's.
            unsafe { store(self.out.dtype, self.out.at(offset), 1, 1, &y) }
        };
        if parts == 1 {
            par_for(results, PART / 2 / self.total.max(8), |range| {
                let mut at = kept.walk(range.start);
                for _ in range {
                    finish(at.offsets[1], fold(at.offsets[0], 0));
                    at.step();
                }
            });
            return;
        }
        let mut partial = vec![self.rule.empty(); results * parts];
        let slots = Ptr(partial.as_mut_ptr());
        par_for(results * parts, 1, |range| {
            for i in range {
                let acc = fold(kept.walk(i / parts).offsets[0], i % parts);
                // SAFETY: each index is visited once.
                unsafe { *slots.at(i) = acc };
            }
        });
        for (i, accs) in partial.chunks(parts).enumerate() {
            let mut acc = Pairwise::new();
            accs.iter().for_each(|&a| acc.push(a, |a, b| self.rule.merge(a, b)));
            let acc = acc.finish(|a, b| self.rule.merge(a, b)).unwrap_or(self.rule.empty());
            finish(kept.walk(i).offsets[1], acc);
        }
    }

    /// Folds one run, through a buffer where it is strided or of another dtype.
    #[inline(always)]
    unsafe fn block(&self, offset: usize, stride: usize, n: usize) -> R::Acc {
        let x = self.input.at(offset);
        // SAFETY: the caller vouches for the run; the buffer holds a block.
        unsafe {
            if self.input.dtype == T::DTYPE && (stride == 1 || n == 1) {
                return simd::run(Block(self.rule, x as *const T, n));
            }
            let mut buffer = [const { MaybeUninit::<T>::uninit() }; BLOCK];
            load(self.input.dtype, x, stride, n, buffer.as_mut_ptr() as *mut T);
            simd::run(Block(self.rule, buffer.as_ptr() as *const T, n))
        }
    }

    unsafe fn by_columns(&self, mut kept: Nest, folded: Nest) {
        let (width, in_stride, out_stride) = kept.pop();
        let tiles = width.div_ceil(TILE);
        let units = kept.count() * tiles;
        // Narrow rows that follow each other without gaps are folded several at a time, as one wide row.
        let gapless = in_stride == 1 && folded.shape.len() == 1 && folded.input[0] == width;
        let group = if gapless { (256 / width).clamp(1, self.total) } else { 1 };
        let rows = self.total / group;
        let grouped = folded.stretched(group);
        let bundles = rows.div_ceil(ROWS);
        let parts = self.parts(units, width.min(TILE), bundles);
        let tile = |unit: usize| {
            let start = unit % tiles * TILE;
            let at = kept.walk(unit / tiles).offsets;
            (at[0] + start * in_stride, at[1] + start * out_stride, TILE.min(width - start))
        };
        let fold = |unit: usize, part: usize| {
            let (base, _, n) = tile(unit);
            let (from, to) = (bundles * part / parts * ROWS, (bundles * (part + 1) / parts * ROWS).min(rows));
            // SAFETY: the tile's rows lie inside the input.
            unsafe {
                let acc = self.columns(&grouped, base, in_stride, n * group, from, to);
                let rest = self.total - rows * group;
                if rest == 0 || part + 1 < parts {
                    return self.narrow(acc, n);
                }
                let mut all = self.columns(&folded.stretched(rest), base + rows * group * width, 1, n * rest, 0, 1);
                all.extend(acc);
                self.narrow(all, n)
            }
        };
        let finish = |unit: usize, acc: &[R::Acc]| {
            let (_, offset, n) = tile(unit);
            let y: Vec<R::Out> = acc.iter().map(|&a| self.rule.finish(a, self.total)).collect();
            // SAFETY: the tile lies inside the output.
            unsafe { store(self.out.dtype, self.out.at(offset), out_stride, n, y.as_ptr()) }
        };
        if parts == 1 {
            let grain = PART / 2 / (self.total * width.min(TILE)).max(1);
            par_for(units, grain, |range| range.for_each(|unit| finish(unit, &fold(unit, 0))));
            return;
        }
        let mut partial: Vec<Vec<R::Acc>> = vec![Vec::new(); units * parts];
        let slots = Ptr(partial.as_mut_ptr());
        par_for(units * parts, 1, |range| {
            for i in range {
                // SAFETY: each index is visited once.
                unsafe { *slots.at(i) = fold(i / parts, i % parts) };
            }
        });
        for (unit, accs) in partial.chunks_mut(parts).enumerate() {
            let mut stack = Vec::new();
            accs.iter_mut().for_each(|a| self.push(&mut stack, std::mem::take(a)));
            finish(unit, &self.collapse(stack));
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
        folded: &Nest,
        base: usize,
        stride: usize,
        n: usize,
        from: usize,
        to: usize,
    ) -> Vec<R::Acc> {
        let direct = self.input.dtype == T::DTYPE && (stride == 1 || n == 1);
        let mut buffer: Vec<T> = if direct { Vec::new() } else { vec![T::default(); CONVERTED * n] };
        let most = if direct { ROWS } else { CONVERTED };
        let mut rows = [std::ptr::null::<T>(); ROWS];
        let mut stack = Vec::new();
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
            let mut acc = vec![self.rule.empty(); n];
            // SAFETY: the rows and `acc` have `n` elements.
            let rows = &rows[..count];
            simd::run(Columns { rule: self.rule, rows, width: n, acc: acc.as_mut_ptr() });
            self.push(&mut stack, acc);
        }
        self.collapse(stack)
    }

    /// Merges rows of accumulators pairwise: each entry of the stack says how many bundles it stands for.
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
