//! Products of integers, which wrap.

use super::{Matrix, Multiply};
use crate::cpu::number_class::Fuse;
use crate::cpu::simd::{self, Kernel};
use crate::dtype::Element;
use crate::error::Result;
use crate::rt::reserve::filled;

/// Wrapping integers.
trait Wrap: Element {
    fn fma(self, a: Self, b: Self) -> Self;
}
macro_rules! wrap {
    ($($t:ty)*) => {$(
        impl Wrap for $t {
            #[inline(always)]
            fn fma(self, a: $t, b: $t) -> $t {
                self.wrapping_add(a.wrapping_mul(b))
            }
        }
    )*};
}
wrap! { u8 i8 i16 i32 i64 }

/// Tiles of `W` columns are two AVX2 registers wide, so that four rows of accumulators stay in registers.
macro_rules! multiply {
    ($($t:ty, $w:literal;)*) => {$(
        impl Multiply for $t {
            type Plan = ();
            fn plan(_size: [usize; 3], _strides: [[usize; 2]; 3]) {}
            fn smallest(_plan: &()) -> [usize; 2] {
                [4 * ROWS, $w]
            }
            unsafe fn multiply(_plan: &(), size: [usize; 3], [a, b, out]: [Matrix<$t>; 3], factors: [$t; 2]) -> Result<()> {
                let ([alpha, beta], packed) = (factors, filled([0; $w], size[2])?);
                simd::run(Integers::<$t, $w> { size, a, b, out, alpha, beta, packed });
                Ok(())
            }
        }
    )*};
}
multiply! { u8, 64; i8, 64; i16, 32; i32, 16; i64, 8; }

/// Rows of the integer loop's tile.
const ROWS: usize = 4;

/// The integer loop, for tiles of `W` columns.
struct Integers<T, const W: usize> {
    size: [usize; 3],
    a: Matrix<T>,
    b: Matrix<T>,
    out: Matrix<T>,
    alpha: T,
    beta: T,
    /// `W` packed columns of `b`.
    packed: Vec<[T; W]>,
}
impl<T: Wrap, const W: usize> Kernel for Integers<T, W> {
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
impl<T: Wrap, const W: usize> Integers<T, W> {
    #[inline(always)]
    fn tile<const H: usize>(&self, packed: &[[T; W]], i0: usize, j0: usize, w: usize) {
        let mut acc = [[T::default(); W]; H];
        for (p, row) in packed.iter().enumerate() {
            for (i, acc) in acc.iter_mut().enumerate() {
                // SAFETY: as in `run`.
                let x = unsafe { *self.a.at(i0 + i, p) };
                (0..W).for_each(|j| acc[j] = acc[j].fma(x, row[j]));
            }
        }
        for (i, acc) in acc.iter().enumerate() {
            for (j, &s) in acc[..w].iter().enumerate() {
                // SAFETY: as in `run`.
                unsafe {
                    let y = self.out.at(i0 + i, j0 + j);
                    let old = if self.beta == T::default() { self.beta } else { *y };
                    *y = T::default().fma(self.beta, old).fma(self.alpha, s);
                }
            }
        }
    }
}
