//! Large products of real floats on AVX2: both factors are packed into panels in the order in which the loop reads
//! them, the result is computed in tiles that stay in registers.
//!
//! The blocking is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): a panel
//! of the second factor stays in the L1 cache, a block of the first in L2, the packed second factor in L3. An element
//! is summed in blocks of terms whose size depends only on the number of terms, so the result is bitwise independent of
//! how it is split. Unlike the `gemm` crate, the loop prefetches a tile of the result before its sums are done.

use super::{Matrix, Product};
use crate::cpu::isa::{Isa, isa};
use crate::cpu::scratch::Temp;
use crate::dtype::Element;
use crate::error::Result;
use std::arch::x86_64::*;

/// Rows of a tile, and vectors per row: twelve accumulators out of sixteen registers.
const ROWS: usize = 6;
const VECTORS: usize = 2;
/// Maximum columns of a tile.
const WIDEST: usize = 16;
/// Terms, rows and columns of a block.
const TERMS: usize = 512;
const BLOCK_ROWS: usize = 16 * ROWS;
const BLOCK_COLS: usize = 1024;
/// From here on the `gemm` crate is slower: multiplications, and the shortest side.
const WORK: usize = 1 << 29;
const SHORTEST: usize = 256;

/// The function for products of this size, if it is faster than the `gemm` crate.
pub(super) fn product<T: Lanes>([m, n, k]: [usize; 3]) -> Option<Product<T>> {
    let large = m.min(n).min(k) >= SHORTEST && m.saturating_mul(n).saturating_mul(k) >= WORK;
    // The crate's AVX-512 kernel is at least as fast.
    (large && isa() == Isa::Avx2).then_some(multiply::<T> as Product<T>)
}

/// A float with AVX2 vectors.
pub(super) trait Lanes: Element {
    type Vector: Copy;
    const LANES: usize;
    const ONE: Self;
    fn mul_add(self, a: Self, b: Self) -> Self;
    unsafe fn load(at: *const Self) -> Self::Vector;
    unsafe fn store(at: *mut Self, v: Self::Vector);
    unsafe fn splat(x: Self) -> Self::Vector;
    unsafe fn product(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn fma(a: Self::Vector, b: Self::Vector, sum: Self::Vector) -> Self::Vector;
}
impl Lanes for f32 {
    type Vector = __m256;
    const LANES: usize = 8;
    const ONE: f32 = 1.0;
    #[inline(always)]
    fn mul_add(self, a: f32, b: f32) -> f32 {
        f32::mul_add(self, a, b)
    }
    #[inline(always)]
    unsafe fn load(at: *const f32) -> __m256 {
        // SAFETY: the caller's promise, in all of these.
        unsafe { _mm256_loadu_ps(at) }
    }
    #[inline(always)]
    unsafe fn store(at: *mut f32, v: __m256) {
        // SAFETY: see `load`.
        unsafe { _mm256_storeu_ps(at, v) }
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> __m256 {
        // SAFETY: see `load`.
        unsafe { _mm256_set1_ps(x) }
    }
    #[inline(always)]
    unsafe fn product(a: __m256, b: __m256) -> __m256 {
        // SAFETY: see `load`.
        unsafe { _mm256_mul_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn fma(a: __m256, b: __m256, sum: __m256) -> __m256 {
        // SAFETY: see `load`.
        unsafe { _mm256_fmadd_ps(a, b, sum) }
    }
}
impl Lanes for f64 {
    type Vector = __m256d;
    const LANES: usize = 4;
    const ONE: f64 = 1.0;
    #[inline(always)]
    fn mul_add(self, a: f64, b: f64) -> f64 {
        f64::mul_add(self, a, b)
    }
    #[inline(always)]
    unsafe fn load(at: *const f64) -> __m256d {
        // SAFETY: the caller's promise, in all of these.
        unsafe { _mm256_loadu_pd(at) }
    }
    #[inline(always)]
    unsafe fn store(at: *mut f64, v: __m256d) {
        // SAFETY: see `load`.
        unsafe { _mm256_storeu_pd(at, v) }
    }
    #[inline(always)]
    unsafe fn splat(x: f64) -> __m256d {
        // SAFETY: see `load`.
        unsafe { _mm256_set1_pd(x) }
    }
    #[inline(always)]
    unsafe fn product(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: see `load`.
        unsafe { _mm256_mul_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn fma(a: __m256d, b: __m256d, sum: __m256d) -> __m256d {
        // SAFETY: see `load`.
        unsafe { _mm256_fmadd_pd(a, b, sum) }
    }
}

/// SAFETY: as `Multiply::product`, on a processor with AVX2 and FMA.
pub(super) unsafe fn multiply<T: Lanes>(
    [m, n, k]: [usize; 3],
    a: Matrix<T>,
    b: Matrix<T>,
    out: Matrix<T>,
    alpha: T,
    beta: T,
) -> Result<()> {
    let flipped = out.rows == 1 && out.cols != 1; // then rows of the transposed result are contiguous
    let (size, a, b, out) = if flipped { ([n, m, k], b.t(), a.t(), out.t()) } else { ([m, n, k], a, b, out) };
    let terms = k.div_ceil(k.div_ceil(TERMS));
    let cols = BLOCK_COLS.min(size[1].next_multiple_of(WIDEST));
    let packed: Temp<T> = Temp::new(terms * (BLOCK_ROWS + cols))?;
    // Both parts start at cache lines: a block of rows is a multiple of 8 elements.
    let (packed_a, packed_b) = (packed.ptr(), packed.ptr().wrapping_add(terms * BLOCK_ROWS));
    // SAFETY: the caller's promise about the matrices and the processor; the memory holds a block of each factor.
    unsafe { blocks(size, terms, a, b, out, [packed_a, packed_b], [alpha, beta]) };
    Ok(())
}

/// All blocks of a product, `terms` terms at a time.
#[target_feature(enable = "avx2,fma")]
unsafe fn blocks<T: Lanes>(
    [m, n, k]: [usize; 3],
    terms: usize,
    a: Matrix<T>,
    b: Matrix<T>,
    out: Matrix<T>,
    [packed_a, packed_b]: [*mut T; 2],
    [alpha, beta]: [T; 2],
) {
    let width = VECTORS * T::LANES;
    for j in (0..n).step_by(BLOCK_COLS) {
        let cols = BLOCK_COLS.min(n - j);
        for p in (0..k).step_by(terms) {
            let (terms, beta) = (terms.min(k - p), if p == 0 { beta } else { T::ONE });
            // SAFETY: the blocks lie inside the matrices, their panels inside the packed memory.
            unsafe { pack(b.from(p, j).t(), cols, terms, width, packed_b) };
            for i in (0..m).step_by(BLOCK_ROWS) {
                let rows = BLOCK_ROWS.min(m - i);
                // SAFETY: as above.
                unsafe {
                    pack(a.from(i, p), rows, terms, ROWS, packed_a);
                    let out = out.from(i, j);
                    for c in (0..cols).step_by(width) {
                        for r in (0..rows).step_by(ROWS) {
                            let (left, right) = (packed_a.add(r * terms), packed_b.add(c * terms));
                            let inside = [ROWS.min(rows - r), width.min(cols - c)];
                            tile(terms, left, right, out.from(r, c), inside, [alpha, beta]);
                        }
                    }
                }
            }
        }
    }
}

/// Packs `rows` rows of `from`, `terms` long, into panels of `lanes` rows, term by term; missing rows are zero.
#[inline(always)]
unsafe fn pack<T: Lanes>(from: Matrix<T>, rows: usize, terms: usize, lanes: usize, to: *mut T) {
    for first in (0..rows).step_by(lanes) {
        let (from, to, filled) = (from.from(first, 0), to.wrapping_add(first * terms), lanes.min(rows - first));
        // SAFETY: the caller's promise about the block and about capacity for whole panels.
        unsafe {
            if filled < lanes {
                to.write_bytes(0, lanes * terms); // zero bits are 0.0
            }
            if filled == lanes && from.rows == 1 {
                (0..terms).for_each(|p| to.add(p * lanes).copy_from_nonoverlapping(from.at(0, p), lanes));
            } else {
                for r in 0..filled {
                    (0..terms).for_each(|p| *to.add(p * lanes + r) = *from.at(r, p));
                }
            }
        }
    }
}

/// A tile over a block of terms, with `rows` and `cols` inside the result: `out = beta * out + alpha * sums`.
#[allow(clippy::needless_range_loop)] // see the note on plain loops
#[inline(always)]
unsafe fn tile<T: Lanes>(
    terms: usize,
    a: *const T,
    b: *const T,
    out: Matrix<T>,
    [rows, cols]: [usize; 2],
    [alpha, beta]: [T; 2],
) {
    // SAFETY: the panels hold `terms` times a tile's rows and columns, and their vectors are aligned; only elements
    // inside the result are accessed, and not read if `beta` is zero.
    unsafe {
        for i in 0..ROWS {
            _mm_prefetch::<_MM_HINT_T0>(out.at(i, 0) as *const i8); // prefetching is valid for any address
            _mm_prefetch::<_MM_HINT_T0>(out.at(i, cols - 1) as *const i8);
        }
        let mut sums = [[T::splat(T::default()); VECTORS]; ROWS];
        for p in 0..terms {
            let b = b.add(p * VECTORS * T::LANES);
            let row = [T::load(b), T::load(b.add(T::LANES))];
            for i in 0..ROWS {
                let x = T::splat(*a.add(p * ROWS + i));
                sums[i][0] = T::fma(x, row[0], sums[i][0]);
                sums[i][1] = T::fma(x, row[1], sums[i][1]);
            }
        }
        let whole = out.cols == 1 && rows == ROWS && cols == VECTORS * T::LANES;
        let (factor, kept) = (T::splat(alpha), T::splat(beta));
        // Plain loops: the sums stay in registers only if all their indices are constants.
        let mut flat = [T::default(); ROWS * WIDEST];
        for i in 0..ROWS {
            for j in 0..VECTORS {
                let (sum, at) = (T::product(factor, sums[i][j]), out.at(i, j * T::LANES));
                if whole && beta == T::default() {
                    T::store(at, sum);
                } else if whole {
                    T::store(at, T::fma(kept, T::load(at), sum));
                } else {
                    T::store(flat.as_mut_ptr().add((i * VECTORS + j) * T::LANES), sum);
                }
            }
        }
        if !whole {
            edge(&flat, out, [rows, cols], beta);
        }
    }
}

/// The same for a tile that is cut off by the edge, or whose rows of the result are not contiguous, already multiplied
/// by alpha.
#[inline(always)]
unsafe fn edge<T: Lanes>(sums: &[T], out: Matrix<T>, [rows, cols]: [usize; 2], beta: T) {
    for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
        let (at, sum) = (out.at(i, j), sums[i * VECTORS * T::LANES + j]);
        // SAFETY: the element is inside the result.
        unsafe { *at = if beta == T::default() { sum } else { beta.mul_add(*at, sum) } };
    }
}
