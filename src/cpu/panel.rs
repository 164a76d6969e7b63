//! Products whose second factor is packed once and multiplied by many small first factors: the recurrent weight of
//! every step, the keys of a block of attention.
//!
//! An element is summed term by term in order, so its bits do not depend on the rows and columns beside it.

use super::gemm::Matrix;
use super::gemm::tiles::{self, Below, Beside, Job, Panel, Rows, Start, Tile, Unit, Vectors, tile_size};
use super::scratch::Temp;
use crate::error::Result;

/// A matrix `[terms, cols]` as panels of a tile's columns, in each of which the columns of a term lie side by side.
pub struct Panels<T> {
    data: Temp<T>,
    terms: usize,
    cols: usize,
    /// Columns of a panel.
    wide: usize,
    capacity: usize,
}

impl<T: Vectors> Panels<T> {
    /// Room for a matrix of this size, or a smaller one.
    pub fn room(terms: usize, cols: usize) -> Result<Panels<T>> {
        let wide = tile_size::<T>()[1];
        let capacity = terms.saturating_mul(cols.saturating_add(wide - 1) / wide * wide);
        Ok(Panels { data: Temp::new(capacity)?, terms: 0, cols: 0, wide, capacity })
    }
    /// Packs a matrix whose terms and columns lie so far apart; it must fit the room.
    ///
    /// # Safety
    /// The elements must be readable.
    pub unsafe fn pack(&mut self, from: *const T, [term_step, col_step]: [usize; 2], terms: usize, cols: usize) {
        let wide = self.wide;
        let fits = cols.div_ceil(wide).checked_mul(wide).and_then(|n| n.checked_mul(terms));
        assert!(fits.is_some_and(|n| n <= self.capacity), "the matrix does not fit the panels");
        (self.terms, self.cols) = (terms, cols);
        for first in (0..cols).step_by(wide) {
            let (filled, to) = (wide.min(cols - first), self.data.ptr().wrapping_add(first * terms));
            let from = Matrix { ptr: from.wrapping_add(first * col_step).cast_mut(), rows: term_step, cols: col_step };
            // SAFETY: the caller's promise; the room holds whole panels.
            unsafe { tiles::pack(from, terms, filled, wide, to) };
        }
    }

    /// All that was packed.
    pub fn whole(&self) -> Part {
        Part { terms: [0, self.terms], cols: [0, self.cols] }
    }

    /// `out = a @ part`, or `out += a @ part`, for `rows` rows. `steps` are the distances of rows and terms of `a`, one of
    /// which is one, and of rows of `out`.
    ///
    /// # Safety
    /// The part lies inside whole panels of what was packed and begins at a panel. `a` holds rows of its terms, and `out`,
    /// apart from `a`, rows of its columns.
    pub unsafe fn multiply(&self, part: Part, a: *const T, out: *mut T, steps: [usize; 3], rows: usize, add: bool) {
        debug_assert!(steps[0] == 1 || steps[1] == 1);
        tiles::run(Multiply { panels: self, part, a, out, steps, rows, add });
    }

    /// The same for the rows of one tile at most, of any layout; `step` is the distance of rows of `out`.
    ///
    /// # Safety
    /// As for `multiply`; no tile has fewer rows.
    pub unsafe fn multiply_tile<A: Rows<T>>(&self, part: Part, a: A, out: *mut T, step: usize, rows: usize, add: bool) {
        tiles::run(MultiplyTile { panels: self, part, a, out, step, rows, add });
    }
}

/// Terms and columns of a packed matrix, from and to.
#[derive(Clone, Copy)]
pub struct Part {
    pub terms: [usize; 2],
    pub cols: [usize; 2],
}

/// The arguments of `Panels::multiply`, which vouches for them.
struct Multiply<'a, T> {
    panels: &'a Panels<T>,
    part: Part,
    a: *const T,
    out: *mut T,
    steps: [usize; 3],
    rows: usize,
    add: bool,
}

impl<T: Vectors> Job<T> for Multiply<'_, T> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<U: Unit<Float = T>>(self) {
        let ([begin, end], [left, right]) = (self.part.terms, self.part.cols);
        let [row, term, out_row] = self.steps;
        let start = if self.add { Start::Result } else { Start::Zero };
        for first in (left..right).step_by(U::WIDTH) {
            let b = self.panels.data.ptr().wrapping_add(first * self.panels.terms + begin * U::WIDTH);
            let out = Matrix { ptr: self.out.wrapping_add(first - left), rows: out_row, cols: 1 };
            let cols = U::WIDTH.min(right - first);
            for i in (0..self.rows).step_by(U::ROWS) {
                let (a, rows) = (self.a.wrapping_add(i * row), U::ROWS.min(self.rows - i));
                let tile = Tile {
                    terms: end - begin,
                    a: (),
                    b: Panel(b.cast_const(), U::WIDTH),
                    out: out.from(i, 0),
                    cols,
                    start,
                };
                // SAFETY: the caller's promise; a panel holds `terms` times its columns.
                unsafe {
                    match term {
                        1 => tile.of(Below(a, row)).run::<U>(rows),
                        _ => tile.of(Beside(a, term)).run::<U>(rows),
                    }
                }
            }
        }
    }
}

/// The arguments of `Panels::multiply_tile`, which vouches for them.
struct MultiplyTile<'a, T, A> {
    panels: &'a Panels<T>,
    part: Part,
    a: A,
    out: *mut T,
    step: usize,
    rows: usize,
    add: bool,
}

impl<T: Vectors, A: Rows<T>> Job<T> for MultiplyTile<'_, T, A> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<U: Unit<Float = T>>(self) {
        let ([begin, end], [left, right]) = (self.part.terms, self.part.cols);
        let start = if self.add { Start::Result } else { Start::Zero };
        for first in (left..right).step_by(U::WIDTH) {
            let b = self.panels.data.ptr().wrapping_add(first * self.panels.terms + begin * U::WIDTH);
            let out = Matrix { ptr: self.out.wrapping_add(first - left), rows: self.step, cols: 1 };
            let cols = U::WIDTH.min(right - first);
            let tile = Tile { terms: end - begin, a: self.a, b: Panel(b.cast_const(), U::WIDTH), out, cols, start };
            // SAFETY: the caller's promise; a panel holds `terms` times its columns.
            unsafe { tile.run::<U>(self.rows) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            // SAFETY: both slices hold the rows.
            unsafe { panels.multiply(panels.whole(), a.as_ptr(), out.as_mut_ptr(), [terms, 1, cols], rows, true) };
            out.iter().zip(&want).for_each(|(x, y)| assert!((x - y).abs() < 1e-5, "{rows} {terms} {cols}"));
        }
    }
}
