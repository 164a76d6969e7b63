//! Reductions of one run each: several results at a time, so that what a call costs is spread over them.

use super::driver::{Job, PART, SHORT};
use super::loop_nest::LoopNest;
use super::reducer::{Columns, Finish, LONGEST_TRANSPOSED, Reducer, run_for};
use crate::cpu::number_class::Fuse;
use crate::cpu::parallel::par_for;
use crate::cpu::simd::{self, Kernel};
use crate::cpu::strided;
use crate::cpu::view::load;
use crate::dtype::Element;
use std::mem::MaybeUninit;

/// Results computed at once at most.
const MOST: usize = 256;
/// So many runs or more are folded as columns.
const COLUMNS: usize = 16;

/// Some runs of `n` elements, `step` apart, and where their results go.
struct Rows<'a, T: Copy, R: Reducer<T>> {
    rule: R,
    x: *const T,
    step: usize,
    n: usize,
    results: &'a mut [MaybeUninit<R::Out>],
}

impl<T: Copy, R: Reducer<T>> Kernel for Rows<'_, T, R> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        for (i, result) in self.results.iter_mut().enumerate() {
            // SAFETY: whoever builds the kernel guarantees as many runs as results.
            let acc = unsafe { self.rule.block::<F>(self.x.wrapping_add(i * self.step), self.n) };
            result.write(self.rule.finish(acc, self.n));
        }
    }
}

impl<T: Element, R: Reducer<T>> Job<'_, T, R> {
    /// Results of one run of `n` elements each, at most `SHORT`.
    ///
    /// # Safety
    /// The operands are in bounds.
    pub unsafe fn by_short_rows(&self, mut kept: LoopNest, n: usize, stride: usize) {
        let (width, step, out_step) = kept.pop();
        let most = match (SHORT / n.max(1)).clamp(1, MOST) {
            n if n >= COLUMNS => n / 8 * 8,
            n => n,
        };
        let most = most.min(width);
        let per_line = width.div_ceil(most);
        let direct = self.input.dtype == T::DTYPE && stride == 1;
        par_for(kept.count() * per_line, PART / 2 / (n.max(8) * most), |range| {
            let mut at = kept.walk(range.start / per_line);
            let mut results = [const { MaybeUninit::<R::Out>::uninit() }; MOST];
            let mut buffer = [const { MaybeUninit::<T>::uninit() }; SHORT];
            let mut transposed = [const { MaybeUninit::<T>::uninit() }; SHORT];
            for unit in range {
                let first = unit % per_line * most;
                let count = most.min(width - first);
                let results = &mut results[..count];
                let offset = at.offsets[0] + first * step;
                // SAFETY: the caller's promise; there is room for so many results, and for the elements of so many runs.
                unsafe {
                    let (x, step) = if direct {
                        (self.input.at(offset) as *const T, step)
                    } else {
                        let to = buffer.as_mut_ptr() as *mut T;
                        self.collect(offset, [step, stride], [count, n], to);
                        (to.cast_const(), n)
                    };
                    if n <= R::TRANSPOSED && count >= COLUMNS {
                        self.as_columns(x, [step, n], &mut transposed, results);
                    } else {
                        run_for::<T, R, _>(Rows { rule: self.rule, x, step, n, results });
                    }
                    self.write(at.offsets[1] + first * out_step, out_step, results.as_ptr().cast(), count);
                }
                if first + count == width {
                    at.step();
                }
            }
        });
    }

    /// Folds as many runs as there are results, `step` apart and of `n` elements each, as columns.
    ///
    /// # Safety
    /// The runs can be read, are at most `LONGEST_TRANSPOSED` long, and have no more elements than `transposed`.
    #[inline(never)]
    unsafe fn as_columns(
        &self,
        x: *const T,
        [step, n]: [usize; 2],
        transposed: &mut [MaybeUninit<T>; SHORT],
        results: &mut [MaybeUninit<R::Out>],
    ) {
        let (count, to) = (results.len(), transposed.as_mut_ptr() as *mut T);
        let mut rows = [std::ptr::null(); LONGEST_TRANSPOSED];
        rows[..n].iter_mut().enumerate().for_each(|(i, row)| *row = to.wrapping_add(i * count).cast_const());
        let mut room = [const { MaybeUninit::<R::Acc>::uninit() }; MOST];
        for acc in &mut room[..count] {
            acc.write(self.rule.empty());
        }
        // SAFETY: so many have just been written.
        let acc = unsafe { std::slice::from_raw_parts_mut(room.as_mut_ptr() as *mut R::Acc, count) };
        // SAFETY: the caller's promise; each row then has `count` elements, as has `acc`.
        unsafe {
            strided::gather(size_of::<T>(), x.cast(), &[(n, 1), (count, step)], to.cast());
            run_for::<T, R, _>(Columns::new(self.rule, &rows[..n], count, acc.as_mut_ptr()));
        }
        simd::run(Finish { rule: self.rule, acc, count: n, results, mark: self.mark });
    }

    /// Converts some runs of `n` elements, one after another.
    ///
    /// # Safety
    /// The runs lie inside the input, and there is room for them.
    unsafe fn collect(&self, offset: usize, [step, stride]: [usize; 2], [count, n]: [usize; 2], to: *mut T) {
        // SAFETY: the caller's promise.
        unsafe {
            if (stride, step) == (1, n) {
                return load(self.input.dtype, self.input.at(offset), 1, count * n, to);
            }
            for i in 0..count {
                load(self.input.dtype, self.input.at(offset + i * step), stride, n, to.add(i * n));
            }
        }
    }
}
