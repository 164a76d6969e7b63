//! Products whose second factor is packed once and multiplied by many small first factors: the recurrent weight of
//! every step, the keys of a block of attention.
//!
//! An element is summed term by term in order, so its bits do not depend on the rows and columns beside it.

use super::math::Float;
use super::number_class::{Fp, Fuse, Num};
use super::scratch::Temp;
use crate::error::Result;

/// Columns of a panel.
const WIDE: usize = 16;

/// A matrix `[terms, cols]` as panels of `WIDE` columns, in each of which the columns of a term lie side by side.
pub struct Panels<T> {
    data: Temp<T>,
    terms: usize,
    cols: usize,
    capacity: usize,
}

impl<T: Float> Panels<T> {
    /// Room for a matrix of this size, or a smaller one.
    pub fn room(terms: usize, cols: usize) -> Result<Panels<T>> {
        let capacity = terms.saturating_mul(cols.saturating_add(WIDE - 1) / WIDE * WIDE);
        Ok(Panels { data: Temp::new(capacity)?, terms: 0, cols: 0, capacity })
    }
    /// Packs a matrix whose terms and columns lie so far apart; it must fit the room.
    ///
    /// # Safety
    /// The elements must be readable.
    #[inline(always)]
    pub unsafe fn pack(&mut self, from: *const T, [term_step, col_step]: [usize; 2], terms: usize, cols: usize) {
        let fits = cols.div_ceil(WIDE).checked_mul(WIDE).and_then(|n| n.checked_mul(terms));
        assert!(fits.is_some_and(|n| n <= self.capacity), "the matrix does not fit the panels");
        (self.terms, self.cols) = (terms, cols);
        for first in (0..cols).step_by(WIDE) {
            let (filled, to) = (WIDE.min(cols - first), self.data.ptr().wrapping_add(first * terms));
            let from = from.wrapping_add(first * col_step);
            // SAFETY: the caller's promise; the room holds whole panels.
            unsafe {
                if filled < WIDE {
                    to.write_bytes(0, WIDE * terms); // zero bits are 0.0
                }
                if col_step == 1 && filled == WIDE {
                    (0..terms).for_each(|p| to.add(p * WIDE).copy_from_nonoverlapping(from.add(p * term_step), WIDE));
                } else {
                    for j in 0..filled {
                        let column = from.add(j * col_step);
                        (0..terms).for_each(|p| *to.add(p * WIDE + j) = *column.add(p * term_step));
                    }
                }
            }
        }
    }

    /// All that was packed.
    pub fn whole(&self) -> Part {
        Part { terms: [0, self.terms], cols: [0, self.cols] }
    }

    /// `out = a @ part`, or `out += a @ part`, for `rows` rows. `steps` are the distances of rows and terms of `a`, and of
    /// rows of `out`.
    ///
    /// # Safety
    /// The part lies inside what was packed and begins at a panel. `a` holds rows of its terms, and `out`, apart from `a`,
    /// rows of its columns.
    #[inline(always)]
    pub unsafe fn multiply<F: Fuse>(
        &self,
        part: Part,
        a: *const T,
        out: *mut T,
        steps: [usize; 3],
        rows: usize,
        add: bool,
    ) {
        let ([begin, end], [left, right]) = (part.terms, part.cols);
        let terms = end - begin;
        for first in (left..right).step_by(WIDE) {
            let panel = self.data.ptr().wrapping_add(first * self.terms + begin * WIDE) as *const [Fp<T, F>; WIDE];
            let width = WIDE.min(right - first);
            let at =
                |i: usize| (a.wrapping_add(i * steps[0]).cast(), out.wrapping_add(i * steps[2] + first - left).cast());
            let mut i = 0;
            // SAFETY: the caller's promise; `Fp` is the float itself, and a panel holds `terms` times its columns.
            unsafe {
                // Four rows of 16 floats, or two of doubles, are eight AVX2 registers of sums.
                while size_of::<T>() == 4 && i + 4 <= rows {
                    tile::<T, F, 4>(at(i), steps, terms, panel, width, add);
                    i += 4;
                }
                while i + 2 <= rows {
                    tile::<T, F, 2>(at(i), steps, terms, panel, width, add);
                    i += 2;
                }
                if i < rows {
                    tile::<T, F, 1>(at(i), steps, terms, panel, width, add);
                }
            }
        }
    }
}

/// Terms and columns of a packed matrix, from and to.
#[derive(Clone, Copy)]
pub struct Part {
    pub terms: [usize; 2],
    pub cols: [usize; 2],
}

/// `H` rows of a product with a panel, of which `width` columns are written.
///
/// # Safety
/// As `multiply`, for these rows.
#[inline(always)]
#[allow(clippy::needless_range_loop, clippy::manual_memcpy)] // plain loops keep the sums in registers
unsafe fn tile<T: Float, F: Fuse, const H: usize>(
    (a, out): (*const Fp<T, F>, *mut Fp<T, F>),
    steps: [usize; 3],
    terms: usize,
    panel: *const [Fp<T, F>; WIDE],
    width: usize,
    add: bool,
) {
    // Sums are indexed by constants alone, or they would not stay in registers: hence the copies through `line`.
    let mut sums = [[Fp::<T, F>::zero(); WIDE]; H];
    if add {
        for i in 0..H {
            let mut line = [Fp::<T, F>::zero(); WIDE];
            // SAFETY: the caller's promise; only `width` columns are touched.
            unsafe { copy(out.add(i * steps[2]), line.as_mut_ptr(), width) };
            for j in 0..WIDE {
                sums[i][j] = line[j];
            }
        }
    }
    for p in 0..terms {
        // SAFETY: the caller's promise.
        let row = unsafe { &*panel.add(p) };
        for i in 0..H {
            // SAFETY: as above.
            let x = unsafe { *a.add(i * steps[0] + p * steps[1]) };
            for j in 0..WIDE {
                sums[i][j] = x.mul_add(row[j], sums[i][j]);
            }
        }
    }
    for i in 0..H {
        let line = sums[i];
        // SAFETY: as above.
        unsafe { copy(line.as_ptr(), out.add(i * steps[2]), width) };
    }
}

/// Copies a panel's row, or the first `width` columns of it.
///
/// # Safety
/// Both hold so many elements and lie apart.
#[inline(always)]
unsafe fn copy<T: Copy>(from: *const T, to: *mut T, width: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if width == WIDE {
            to.copy_from_nonoverlapping(from, WIDE);
        } else {
            to.copy_from_nonoverlapping(from, width);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::simd::{self, Kernel};

    struct Run<'a>(&'a Panels<f32>, &'a [f32], &'a mut [f32], usize, bool);
    impl Kernel for Run<'_> {
        type Output = ();
        #[inline(always)]
        fn run<F: Fuse>(self) {
            let Run(panels, a, out, rows, add) = self;
            // SAFETY: the test's slices hold the rows.
            unsafe {
                let steps = [panels.terms, 1, panels.cols];
                panels.multiply::<F>(panels.whole(), a.as_ptr(), out.as_mut_ptr(), steps, rows, add)
            }
        }
    }

    #[test]
    fn agrees_with_plain_loops_at_every_edge() {
        for (rows, terms, cols) in [(1, 1, 1), (3, 5, 7), (4, 8, 16), (7, 3, 17), (9, 33, 40), (2, 0, 5)] {
            let wave = |n: usize, s: f32| (0..n).map(|i| (i as f32 * s).sin()).collect::<Vec<f32>>();
            let (a, b) = (wave(rows * terms, 0.7), wave(terms * cols, 0.3));
            let mut panels = Panels::room(terms, cols).unwrap();
            // SAFETY: both slices hold the matrices.
            unsafe { panels.pack(b.as_ptr(), [cols, 1], terms, cols) };
            let mut out = wave(rows * cols, 0.1);
            let want: Vec<f32> = (0..rows * cols)
                .map(|e| out[e] + (0..terms).map(|p| a[e / cols * terms + p] * b[p * cols + e % cols]).sum::<f32>())
                .collect();
            simd::run(Run(&panels, &a, &mut out, rows, true));
            out.iter().zip(&want).for_each(|(x, y)| assert!((x - y).abs() < 1e-5, "{rows} {terms} {cols}"));
        }
    }
}
