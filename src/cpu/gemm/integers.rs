//! Products of integers, which wrap.

use super::{Matrix, Multiply, Series};
use crate::cpu::number_class::Fuse;
use crate::cpu::simd::{self, Kernel};
use crate::dtype::Element;
use crate::error::Result;
use crate::rt::reserve::filled;
use std::num::Wrapping;
use std::ops::{Add, Mul};

/// Tiles of `W` columns; two AVX2 registers of them, so that four rows of accumulators stay in registers.
pub(super) struct Wrapped<const W: usize>;

impl<T: Element, const W: usize> Multiply<T> for Wrapped<W>
where
    Wrapping<T>: Ring,
{
    fn plan(_size: [usize; 3], _strides: [[usize; 2]; 3]) -> Wrapped<W> {
        Wrapped
    }
    fn smallest(&self) -> [usize; 2] {
        [4 * ROWS, W]
    }
    unsafe fn multiply(&self, size: [usize; 3], series: Series<T>, factors: [T; 2]) -> Result<()> {
        for [a, b, _, out] in series.each() {
            let packed = filled([T::default(); W], size[2])?;
            simd::run(Integers { size, a, b, out, factors, packed });
        }
        Ok(())
    }
}

/// What sums of products need.
trait Ring: Copy + Add<Output = Self> + Mul<Output = Self> {}
impl<T: Copy + Add<Output = T> + Mul<Output = T>> Ring for T {}

/// Rows of the integer loop's tile.
const ROWS: usize = 4;

/// The integer loop, for tiles of `W` columns.
struct Integers<T, const W: usize> {
    size: [usize; 3],
    a: Matrix<T>,
    b: Matrix<T>,
    out: Matrix<T>,
    /// Alpha and beta.
    factors: [T; 2],
    /// `W` packed columns of `b`.
    packed: Vec<[T; W]>,
}
impl<T: Element, const W: usize> Kernel for Integers<T, W>
where
    Wrapping<T>: Ring,
{
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(mut self) {
        let [m, n, _] = self.size;
        let mut packed = std::mem::take(&mut self.packed);
        for j0 in (0..n).step_by(W) {
            let w = W.min(n - j0);
            for (p, row) in packed.iter_mut().enumerate() {
                // SAFETY: all indices are inside the matrices, by the caller's promise.
                (0..w).for_each(|j| row[j] = unsafe { *self.b.at(p, j0 + j) });
            }
            let mut i0 = 0;
            while i0 + ROWS <= m {
                self.tile::<ROWS>(&packed, i0, j0, w);
                i0 += ROWS;
            }
            (i0..m).for_each(|i| self.tile::<1>(&packed, i, j0, w));
        }
    }
}
impl<T: Element, const W: usize> Integers<T, W>
where
    Wrapping<T>: Ring,
{
    #[inline(always)]
    fn tile<const H: usize>(&self, packed: &[[T; W]], i0: usize, j0: usize, w: usize) {
        let mut acc = [[Wrapping(T::default()); W]; H];
        for (p, row) in packed.iter().enumerate() {
            for (i, acc) in acc.iter_mut().enumerate() {
                // SAFETY: as in `run`.
                let x = Wrapping(unsafe { *self.a.at(i0 + i, p) });
                (0..W).for_each(|j| acc[j] = acc[j] + x * Wrapping(row[j]));
            }
        }
        let [alpha, beta] = self.factors.map(Wrapping);
        for (i, acc) in acc.iter().enumerate() {
            for (j, &s) in acc[..w].iter().enumerate() {
                // SAFETY: as in `run`.
                unsafe {
                    let y = self.out.at(i0 + i, j0 + j);
                    let old = if beta.0 == T::default() { beta } else { Wrapping(*y) };
                    *y = (beta * old + alpha * s).0;
                }
            }
        }
    }
}
