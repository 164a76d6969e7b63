//! The gradients of attention: the weights of each block are computed again from the saved logarithms.

use super::{BLOCK, Heads, Place, Sizes, exponentials, masked, row, scaled};
use crate::cpu::gemm::tiles::Vectors;
use crate::cpu::lanes::sums;
use crate::cpu::math::Float;
use crate::cpu::number_class::Fuse;
use crate::cpu::panel::{Panels, Part};
use crate::cpu::parallel::try_par_for;
use crate::cpu::scratch::Temp;
use crate::cpu::simd::{self, Kernel};
use crate::cpu::view::{View, ensure};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::is_dense;

/// The gradients of query, key and value from that of the output; they have the shapes of the operands, and no gaps.
pub fn backward(o: &Heads, grad: View, out: View, sums: View, results: [View; 3]) -> Result<()> {
    let Some(s) = o.sizes() else { return ensure(false, "attention, backward") };
    let wide = [s.batch, s.heads, s.queries, s.depth];
    let shapes = [
        [s.batch, s.heads, s.queries, s.width],
        [s.batch, s.groups, s.keys, s.width],
        [s.batch, s.groups, s.keys, s.depth],
    ];
    let given = [(grad, wide), (out, wide), (results[0], shapes[0]), (results[1], shapes[1]), (results[2], shapes[2])];
    o.checked(&given)?;
    let read = [o.query, o.key, o.value, grad, out, sums];
    let apart =
        results.iter().all(|r| is_dense(r.shape, r.strides) && read.iter().chain(&o.mask).all(|v| v.is_apart(r)));
    let fits = sums.shape == [s.batch, s.heads, s.queries] && sums.is_contiguous() && sums.dtype == out.dtype;
    ensure(apart && fits, "attention, backward")?;
    // SAFETY: the operands fit together, and results lie apart from what is read.
    unsafe {
        match out.dtype {
            DType::F32 => run_backward::<f32>(o, s, [grad, out, sums], results),
            DType::F64 => run_backward::<f64>(o, s, [grad, out, sums], results),
            _ => ensure(false, "attention, backward"),
        }
    }
}

unsafe fn run_backward<T: Float + Vectors>(o: &Heads, s: Sizes, given: [View; 3], results: [View; 3]) -> Result<()> {
    // A task is a head of keys with the heads of queries that read it: nobody else adds to these gradients.
    try_par_for(s.batch * s.groups, 1, |range| {
        let (rows, cols) = (s.queries, s.keys);
        let mut panels = [
            Panels::<T>::room(s.width, cols)?,
            Panels::room(cols, s.width)?,
            Panels::room(s.depth, cols)?,
            Panels::room(rows, s.width)?,
            Panels::room(rows, s.depth)?,
        ];
        let query: Temp<T> = Temp::new(rows * s.width)?;
        let deltas: Temp<T> = Temp::new(rows)?;
        let scratch: Temp<T> = Temp::new(2 * BLOCK * BLOCK)?;
        for task in range {
            let (batch, group) = (task / s.groups, task % s.groups);
            let memory = [query.ptr(), deltas.ptr(), scratch.ptr()];
            simd::run_wide(Backward { o, s, batch, group, given, results, panels: &mut panels, memory });
        }
        Ok(())
    })
}

/// A head of keys and the heads of queries that read it; operands that `backward` has checked.
struct Backward<'a, T> {
    o: &'a Heads<'a>,
    s: Sizes,
    batch: usize,
    group: usize,
    /// Gradient, output, logarithms of the sums.
    given: [View<'a>; 3],
    results: [View<'a>; 3],
    /// Keys by columns and by rows, values by columns, scaled queries and gradients by rows.
    panels: &'a mut [Panels<T>; 5],
    /// Scaled queries, sums of gradient times output, two blocks.
    memory: [*mut T; 3],
}

impl<T: Float + Vectors> Kernel for Backward<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(mut self) {
        let (s, b, g) = (self.s, self.batch, self.group);
        let key = |v: &View| (row::<T>(v, b, g, 0), v.strides[2]);
        let ((k, k_step), (v, v_step)) = (key(&self.o.key), key(&self.o.value));
        // SAFETY: rows lie inside the operands, the panels have room for them, and no other task writes these results.
        unsafe {
            self.panels[0].pack(k, [1, k_step], s.width, s.keys);
            self.panels[1].pack(k, [k_step, 1], s.keys, s.width);
            self.panels[2].pack(v, [1, v_step], s.depth, s.keys);
            clear::<T>(&self.results[1], b, g);
            clear::<T>(&self.results[2], b, g);
            let each = s.heads / s.groups;
            for head in g * each..(g + 1) * each {
                self.head::<F>(head);
            }
        }
    }
}

/// Writes zeros to the rows of a head.
///
/// # Safety
/// The head is one of the result, and no other task writes it.
#[inline(always)]
unsafe fn clear<T>(v: &View, batch: usize, head: usize) {
    // SAFETY: the caller's promise.
    (0..v.shape[2]).for_each(|i| unsafe { row::<T>(v, batch, head, i).write_bytes(0, v.shape[3]) }); // zero bits are 0.0
}

impl<T: Float + Vectors> Backward<'_, T> {
    /// One head of queries.
    ///
    /// # Safety
    /// The keys are packed, and the head is one of the group.
    #[inline(always)]
    unsafe fn head<F: Fuse>(&mut self, head: usize) {
        let (s, b) = (self.s, self.batch);
        let [query, deltas, _] = self.memory;
        let whole = Place { batch: b, head, first: 0, count: s.queries };
        // SAFETY: as in `run`.
        unsafe {
            scaled(&self.o.query, whole, T::of(self.o.scale), query, [s.width, 1], s.width);
            self.panels[3].pack(query, [s.width, 1], s.queries, s.width);
            let grad = row::<T>(&self.given[0], b, head, 0);
            self.panels[4].pack(grad, [self.given[0].strides[2], 1], s.queries, s.depth);
            for i in 0..s.queries {
                let line = |v: &View| std::slice::from_raw_parts(row::<T>(v, b, head, i), s.depth);
                let [delta] = sums([line(&self.given[0]), line(&self.given[1])], |[g, y]| [g * y]);
                *deltas.add(i) = delta;
            }
            clear::<T>(&self.results[0], b, head);
            for key in (0..s.keys).step_by(BLOCK) {
                // Causal: the queries before the block see none of its keys.
                let start = if self.o.causal { key / BLOCK * BLOCK } else { 0 };
                for first in (start..s.queries).step_by(BLOCK) {
                    let at = Place { first, count: BLOCK.min(s.queries - first), ..whole };
                    self.block::<F>(at, key, BLOCK.min(s.keys - key));
                }
            }
            let scale = T::of(self.o.scale);
            for i in 0..s.queries {
                let dq = row::<T>(&self.results[0], b, head, i);
                (0..s.width).for_each(|d| *dq.add(d) = *dq.add(d) * scale);
            }
        }
    }

    /// A block of queries and `n` keys from `key` on.
    ///
    /// # Safety
    /// As for `head`, whose panels are packed.
    #[inline(always)]
    unsafe fn block<F: Fuse>(&mut self, at: Place, key: usize, n: usize) {
        let (s, b, g) = (self.s, self.batch, self.group);
        let [query, deltas, weights] = self.memory;
        let slopes = weights.wrapping_add(BLOCK * BLOCK);
        let grad = row::<T>(&self.given[0], b, at.head, at.first);
        let cols = [key, key + n];
        let queries = [at.first, at.first + at.count];
        // SAFETY: as in `run`; blocks lie inside the matrices.
        unsafe {
            let lines = query.add(at.first * s.width);
            let part = Part { terms: [0, s.width], cols };
            self.panels[0].multiply(part, lines, weights, [s.width, 1, BLOCK], at.count, false);
            masked(self.o, at, key, n, weights, BLOCK);
            let part = Part { terms: [0, s.depth], cols };
            let step = self.given[0].strides[2];
            self.panels[2].multiply(part, grad, slopes, [step, 1, BLOCK], at.count, false);
            let sums = (self.given[2].ptr as *const T).add((b * s.heads + at.head) * s.queries + at.first);
            for i in 0..at.count {
                let (line, slope) = (weights.add(i * BLOCK), slopes.add(i * BLOCK));
                let (sum, delta) = (*sums.add(i), *deltas.add(at.first + i));
                if sum == -T::INFINITY {
                    (0..n).for_each(|j| (*line.add(j), *slope.add(j)) = (<T as Float>::ZERO, <T as Float>::ZERO));
                    continue;
                }
                exponentials::<T, F>(line, n, sum);
                (0..n).for_each(|j| *slope.add(j) = *line.add(j) * (*slope.add(j) - delta));
            }
            let steps = self.results.map(|r| r.strides[2]);
            // Transposed blocks: their rows are keys.
            let dv = row::<T>(&self.results[2], b, g, key);
            let part = Part { terms: queries, cols: [0, s.depth] };
            self.panels[4].multiply(part, weights, dv, [1, BLOCK, steps[2]], n, true);
            let dk = row::<T>(&self.results[1], b, g, key);
            let part = Part { terms: queries, cols: [0, s.width] };
            self.panels[3].multiply(part, slopes, dk, [1, BLOCK, steps[1]], n, true);
            let dq = row::<T>(&self.results[0], b, at.head, at.first);
            let part = Part { terms: cols, cols: [0, s.width] };
            self.panels[1].multiply(part, slopes, dq, [BLOCK, 1, steps[0]], at.count, true);
        }
    }
}
