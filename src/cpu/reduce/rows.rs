//! Reductions of one run each: several results at a time, so that what a call costs is spread over them.

use super::driver::{Job, PART, SHORT};
use super::loop_nest::LoopNest;
use super::reducer::{Reducer, run_for};
use crate::cpu::number_class::Fuse;
use crate::cpu::parallel::par_for;
use crate::cpu::simd::Kernel;
use crate::cpu::view::load;
use crate::dtype::Element;
use std::mem::MaybeUninit;

/// Results computed at once at most.
const MOST: usize = 64;

/// Some runs of `n` elements, `step` apart, and where their results go.
struct Rows<T: Copy, R: Reducer<T>> {
    rule: R,
    x: *const T,
    step: usize,
    n: usize,
    count: usize,
    results: *mut R::Out,
}

impl<T: Copy, R: Reducer<T>> Kernel for Rows<T, R> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        for i in 0..self.count {
            // SAFETY: whoever builds the kernel guarantees the runs and room for the results.
            unsafe {
                let acc = self.rule.block::<F>(self.x.wrapping_add(i * self.step), self.n);
                self.results.add(i).write(self.rule.finish(acc, self.n));
            }
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
        let most = (SHORT / n.max(1)).clamp(1, MOST).min(width);
        let per_line = width.div_ceil(most);
        let direct = self.input.dtype == T::DTYPE && stride == 1;
        par_for(kept.count() * per_line, PART / 2 / (n.max(8) * most), |range| {
            let mut at = kept.walk(range.start / per_line);
            let mut results = [const { MaybeUninit::<R::Out>::uninit() }; MOST];
            let mut buffer = [const { MaybeUninit::<T>::uninit() }; SHORT];
            for unit in range {
                let first = unit % per_line * most;
                let count = most.min(width - first);
                let results = results.as_mut_ptr() as *mut R::Out;
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
                    let rows = Rows { rule: self.rule, x, step, n, count, results };
                    run_for::<T, R, _>(rows);
                    self.write(at.offsets[1] + first * out_step, out_step, results, count);
                }
                if first + count == width {
                    at.step();
                }
            }
        });
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
