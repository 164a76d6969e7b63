//! Products `a @ b` whose second factor has its terms side by side, as the transposed weight of a linear layer does, and a
//! side that is short.
//!
//! The `gemm` crate would transpose the whole weight into its panels, which for a small batch takes longer than the
//! product. Here the longer factor is read row by row as it lies, and only the shorter one is packed into panels.

use super::tiles::{self, Job, Start, Strided, TALLEST, Tile, Unit, Vectors, WIDEST, tile_size};
use super::{Matrix, Product, dots};
use crate::cpu::isa::{Isa, isa};
use crate::cpu::scratch::Temp;
use crate::error::Result;

/// Rows in memory for the sums of a tile: whole blocks of those that `Unit::turn` transposes.
const ROOM: usize = TALLEST.next_multiple_of(8);
/// Terms of a block: a tile's rows of so many stay in L1.
const TERMS: usize = 512;
/// Distance of rows in scratch memory; rows a power of two apart would compete for the same lines of the cache.
const STEP: usize = TERMS + 16;
/// Bytes of the packed block, half of a usual L2.
const BLOCK: usize = 1 << 19;
/// The longest short side for which this is used, and the fewest multiplications.
const SHORT: usize = 512;
const WORK: usize = 1 << 12;
/// Packing a column costs what so many terms of a row cost that is written into a transposed result.
const TURN: usize = 5;

/// The function for products of this size, if it is faster than the `gemm` crate; `a` and `b` have these strides.
pub(super) fn product<T: Vectors>([m, n, k]: [usize; 3], a: [usize; 2], b: [usize; 2]) -> Option<Product<T>> {
    // Products with a vector have their own loop in the crate, as has what it computes without packing.
    let fits = b[0] == 1 && (2..=SHORT).contains(&m.min(n)) && k >= TALLEST;
    if !fits || m.saturating_mul(n).saturating_mul(k) < WORK || isa() < Isa::Avx2 {
        return None;
    }
    Some(if a[1] == 1 && m.min(n) <= dots::FEW { dots::multiply::<T> } else { multiply::<T> })
}

/// # Safety
/// As for `Product`.
pub(super) unsafe fn multiply<T: Vectors>(
    [m, n, k]: [usize; 3],
    a: Matrix<T>,
    b: Matrix<T>,
    out: Matrix<T>,
    alpha: T,
    beta: T,
) -> Result<()> {
    // The longer factor as it lies, in a transposed result whose tiles are turned when they are written; or packed, where many
    // rows share its columns.
    let plain = a.cols == 1 && (m > n || m * TURN >= k.min(TERMS));
    let (sizes, rows, columns, out) = if plain { ([m, n], a, b, out) } else { ([n, m], b.t(), a.t(), out.t()) };
    let [tall, wide] = tile_size::<T>();
    let narrow = sizes[1] <= wide / 2;
    let width = if narrow { wide / 2 } else { wide };
    let terms = k.div_ceil(k.div_ceil(TERMS).max(1));
    let cols = (BLOCK / (TERMS * size_of::<T>())).min(sizes[1]).next_multiple_of(width);
    let panels: Temp<T> = Temp::new(terms * cols)?;
    let lines: Temp<T> = Temp::new(tall * STEP)?;
    let job = Rows {
        sizes,
        k,
        terms,
        cols,
        narrow,
        rows,
        columns,
        out,
        factors: [alpha, beta],
        memory: [panels.ptr(), lines.ptr()],
    };
    tiles::run(job);
    Ok(())
}

/// `out = beta * out + alpha * rows @ columns`, of a size `[rows, columns]` and `k` terms.
#[derive(Clone, Copy)]
struct Rows<T> {
    sizes: [usize; 2],
    k: usize,
    /// Terms and columns of a block.
    terms: usize,
    cols: usize,
    /// Panels are one vector wide.
    narrow: bool,
    /// `[rows, terms]`, whose terms are side by side, `[terms, columns]`, and the result.
    rows: Matrix<T>,
    columns: Matrix<T>,
    out: Matrix<T>,
    /// Alpha and beta.
    factors: [T; 2],
    /// A packed block of columns, and a tile's rows.
    memory: [*mut T; 2],
}

impl<T: Vectors> Job<T> for Rows<T> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<U: Unit<Float = T>>(self) {
        let width = if self.narrow { U::LANES } else { U::WIDTH };
        for col in (0..self.sizes[1]).step_by(self.cols) {
            let cols = self.cols.min(self.sizes[1] - col);
            for term in (0..self.k).step_by(self.terms) {
                let terms = self.terms.min(self.k - term);
                for first in (0..cols).step_by(width) {
                    let to = self.memory[0].wrapping_add(first * terms);
                    let from = self.columns.from(term, col + first);
                    // SAFETY: the block lies inside the matrix, and the memory holds whole panels.
                    unsafe { tiles::pack(from, terms, width.min(cols - first), width, to) };
                }
                for row in (0..self.sizes[0]).step_by(U::ROWS) {
                    let count = U::ROWS.min(self.sizes[0] - row);
                    // SAFETY: as above, for a tile's rows; their terms are side by side.
                    unsafe {
                        for i in 0..count {
                            let (from, to) = (self.rows.at(row + i, term), self.memory[1].add(i * STEP));
                            to.copy_from_nonoverlapping(from, terms);
                        }
                        for i in count..U::ROWS {
                            self.memory[1].add(i * STEP).write_bytes(0, terms); // zero bits are 0.0
                        }
                        for first in (0..cols).step_by(width) {
                            let place = [row, col + first];
                            self.tile::<U>(place, [count, width.min(cols - first)], first, [term, terms]);
                        }
                    }
                }
            }
        }
    }
}

impl<T: Vectors> Rows<T> {
    /// A tile at `place` of the result, with rows and columns inside it, of the panel that begins at column `first`.
    ///
    /// # Safety
    /// The panel and the rows are in memory.
    #[inline(always)]
    unsafe fn tile<U: Unit<Float = T>>(
        &self,
        place: [usize; 2],
        size: [usize; 2],
        first: usize,
        [term, terms]: [usize; 2],
    ) {
        let width = if self.narrow { U::LANES } else { U::WIDTH };
        let (out, [alpha, beta]) = (self.out.from(place[0], place[1]), self.factors);
        let beta = if term == 0 { beta } else { T::ONE };
        let kept = beta == T::ONE && term > 0;
        let direct = out.cols == 1 && size[1] == width && alpha == T::ONE && (kept || beta == T::ZERO) && !self.narrow;
        let mut sums = [T::ZERO; ROOM * WIDEST];
        let tile = Tile {
            terms,
            a: Strided(self.memory[1].cast_const(), [STEP, 1]),
            b: self.memory[0].wrapping_add(first * terms),
            out: if direct { out } else { Matrix { ptr: sums.as_mut_ptr(), rows: width, cols: 1 } },
            cols: width,
            start: if direct && kept { Start::Result } else { Start::Zero },
        };
        // SAFETY: the caller's promise; the sums hold a whole tile.
        unsafe {
            if self.narrow {
                tile.narrow::<U>();
            } else {
                tile.run::<U>(size[0]);
            }
            if direct {
                return;
            }
            let finish = |i: usize, j: usize, sum: T| {
                let (at, sum) = (out.at(i, j), sum.times(alpha));
                *at = if beta == T::ZERO { sum } else { beta.times(*at).plus(sum) };
            };
            if out.rows == 1 {
                let mut turned = [T::ZERO; WIDEST * ROOM];
                for i in (0..U::ROWS).step_by(U::SIDE) {
                    for j in (0..width).step_by(U::SIDE) {
                        U::turn(sums.as_ptr().add(i * width + j), width, turned.as_mut_ptr().add(j * ROOM + i), ROOM);
                    }
                }
                for j in 0..size[1] {
                    (0..size[0]).for_each(|i| finish(i, j, turned[j * ROOM + i]));
                }
            } else {
                for i in 0..size[0] {
                    (0..size[1]).for_each(|j| finish(i, j, sums[i * width + j]));
                }
            }
        }
    }
}
