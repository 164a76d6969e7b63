//! Compaction by a mask: counting, positions (`nonzero`), selection, and its inverse.
//!
//! The operand is cut into pieces of a fixed size; their counts, summed up, say where each piece's output starts,
//! so pieces run in parallel and the order is that of the elements.

use crate::cpu::parallel::par_for;
use crate::cpu::view::{Ptr, View, load};
use crate::layout::{Dims, Odometer, coalesce};
use std::mem::MaybeUninit;

/// Elements of a piece.
const PIECE: usize = 8192;

/// Operands cut into pieces of their common row-major order.
struct Pieces<const N: usize> {
    shape: Dims,
    strides: [Dims; N],
    numel: usize,
}

impl<const N: usize> Pieces<N> {
    fn new(shape: &[usize], strides: [&[usize]; N]) -> Self {
        let (shape, strides) = coalesce(shape, strides);
        let numel = shape.iter().product();
        Pieces { shape, strides, numel }
    }
    fn count(&self) -> usize {
        self.numel.div_ceil(PIECE)
    }
    /// Calls `f(offsets, n, steps)` for the runs of a piece, in order.
    fn runs(&self, piece: usize, mut f: impl FnMut([usize; N], usize, [usize; N])) {
        let (from, to) = (piece * PIECE, ((piece + 1) * PIECE).min(self.numel));
        let last = self.shape.last().copied().unwrap_or(1);
        let steps: [usize; N] = std::array::from_fn(|k| self.strides[k].last().copied().unwrap_or(1));
        let outer: [&[usize]; N] = std::array::from_fn(|k| &self.strides[k][..self.strides[k].len().saturating_sub(1)]);
        let mut at = Odometer::new(&self.shape[..self.shape.len().saturating_sub(1)], outer, from / last);
        let mut i = from;
        while i < to {
            let start = i % last;
            let n = (last - start).min(to - i);
            f(std::array::from_fn(|k| at.offsets[k] + start * steps[k]), n, steps);
            at.step();
            i += n;
        }
    }
}

/// Reads a run of a mask of any dtype as truth values, `PIECE` at most.
unsafe fn truths<'a>(
    mask: View,
    offset: usize,
    step: usize,
    n: usize,
    buffer: &'a mut [MaybeUninit<bool>; PIECE],
) -> &'a [bool] {
    // SAFETY: the caller vouches for the run; the buffer is filled as far as it is read.
    unsafe {
        load(mask.dtype, mask.at(offset), step, n, buffer.as_mut_ptr() as *mut bool);
        std::slice::from_raw_parts(buffer.as_ptr() as *const bool, n)
    }
}

/// Where the output of each piece starts, and the total.
unsafe fn starts<const N: usize>(pieces: &Pieces<N>, mask: View) -> (Vec<usize>, usize) {
    let mut counts = vec![0usize; pieces.count()];
    let slots = Ptr(counts.as_mut_ptr());
    par_for(counts.len(), 4, |range| {
        for piece in range {
            let mut count = 0;
            pieces.runs(piece, |offsets, n, steps| {
                let mut buffer = [const { MaybeUninit::uninit() }; PIECE];
                // SAFETY: the mask is the first operand of the pieces.
                let mask = unsafe { truths(mask, offsets[0], steps[0], n, &mut buffer) };
                count += mask.iter().map(|&m| m as u32).sum::<u32>() as usize;
            });
            // SAFETY: each piece is visited once.
            unsafe { *slots.at(piece) = count };
        }
    });
    let mut total = 0;
    for c in &mut counts {
        total += std::mem::replace(c, total);
    }
    (counts, total)
}

/// The number of elements that are true.
///
/// # Safety
/// `mask` must be in bounds.
pub unsafe fn nonzero_count(mask: View) -> usize {
    // SAFETY: handed on to the caller.
    unsafe { starts(&Pieces::new(mask.shape, [mask.strides]), mask).1 }
}

/// The indices of the true elements in row-major order: `out` is `[count, ndim]`, of int64, any strides.
///
/// # Safety
/// Both operands must be in bounds and `out` must have room for `nonzero_count(input)` rows.
pub unsafe fn nonzero(input: View, out: View) {
    let pieces = Pieces::new(input.shape, [input.strides]);
    // SAFETY: handed on to the caller.
    let (starts, _) = unsafe { starts(&pieces, input) };
    let (row, column) = (out.strides[0], out.strides[1]);
    par_for(starts.len(), 4, |range| {
        for piece in range {
            let mut at = starts[piece];
            let mut linear = piece * PIECE;
            pieces.runs(piece, |[offset], n, [step]| {
                let mut buffer = [const { MaybeUninit::uninit() }; PIECE];
                // SAFETY: the run is one of the input's.
                let mask = unsafe { truths(input, offset, step, n, &mut buffer) };
                for i in (0..n).filter(|&i| mask[i]) {
                    let mut rest = linear + i;
                    for d in (0..input.ndim()).rev() {
                        let size = input.shape[d];
                        // SAFETY: row `at` is below the number of true elements.
                        unsafe { *(out.at(at * row + d * column) as *mut i64) = (rest % size) as i64 };
                        rest /= size;
                    }
                    at += 1;
                }
                linear += n;
            });
        }
    });
}

/// The elements of `input` where `mask`, of the same shape, is true; `out` has one dimension.
///
/// # Safety
/// All operands must be in bounds and `out` must have room for `nonzero_count(mask)` elements.
pub unsafe fn masked_select(input: View, mask: View, out: View) {
    // SAFETY: handed on to the caller; the type has the element's size.
    unsafe {
        match input.dtype.size() {
            1 => compact::<u8, false>(input, mask, out),
            2 => compact::<u16, false>(input, mask, out),
            4 => compact::<u32, false>(input, mask, out),
            8 => compact::<u64, false>(input, mask, out),
            _ => compact::<[u64; 2], false>(input, mask, out),
        }
    }
}

/// Writes the elements of `source`, which has one dimension, to where `mask` is true, in order.
///
/// # Safety
/// All operands must be in bounds and `source` must have `nonzero_count(mask)` elements.
pub unsafe fn masked_scatter(out: View, mask: View, source: View) {
    // SAFETY: handed on to the caller; the type has the element's size.
    unsafe {
        match out.dtype.size() {
            1 => compact::<u8, true>(out, mask, source),
            2 => compact::<u16, true>(out, mask, source),
            4 => compact::<u32, true>(out, mask, source),
            8 => compact::<u64, true>(out, mask, source),
            _ => compact::<[u64; 2], true>(out, mask, source),
        }
    }
}

/// Moves between the masked elements of `full` and the run `dense`: out of `full`, or into it if `BACK`.
unsafe fn compact<T: Copy, const BACK: bool>(full: View, mask: View, dense: View) {
    let pieces = Pieces::new(full.shape, [mask.strides, full.strides]);
    // SAFETY: handed on to the caller.
    let (starts, _) = unsafe { starts(&pieces, mask) };
    let step = dense.dim(0).1;
    par_for(starts.len(), 4, |range| {
        for piece in range {
            let mut at = starts[piece];
            pieces.runs(piece, |[m, f], n, [dm, df]| {
                let mut buffer = [const { MaybeUninit::uninit() }; PIECE];
                // SAFETY: the runs are those of the operands, and `at` stays below the number of true elements.
                unsafe {
                    let mask = truths(mask, m, dm, n, &mut buffer);
                    let full = full.at(f) as *mut T;
                    for i in (0..n).filter(|&i| mask[i]) {
                        let dense = dense.at(at * step) as *mut T;
                        if BACK {
                            *full.add(i * df) = *dense;
                        } else {
                            *dense = *full.add(i * df);
                        }
                        at += 1;
                    }
                }
            });
        }
    });
}
