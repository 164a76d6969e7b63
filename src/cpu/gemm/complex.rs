//! Products of complex numbers; the only user of the `gemm` crate.

use super::{Matrix, Multiply, Series};
use crate::cpu::arith::Arith;
use crate::error::Result;
use ::gemm::Parallelism;

/// Smallest sides of a part; larger if there are more than `LONG` terms, where the crate splits them. Parts are then too large
/// for its special cases, and an element's bits do not depend on its part (`the_bits_do_not_depend_on_the_parts`).
const SMALLEST: usize = 64;
const SMALLEST_LONG: usize = 128;
const LONG: usize = 512;

/// The number of terms.
pub(super) struct Library(usize);

impl<T: Arith> Multiply<T> for Library {
    fn plan([_, _, k]: [usize; 3], _strides: [[usize; 2]; 3]) -> Library {
        Library(k)
    }
    fn smallest(&self) -> [usize; 2] {
        [if self.0 <= LONG { SMALLEST } else { SMALLEST_LONG }; 2]
    }
    unsafe fn multiply(&self, size: [usize; 3], series: Series<T>, factors: [T; 2]) -> Result<()> {
        for [a, b, _, out] in series.each() {
            // SAFETY: the caller's promise.
            unsafe { library(size, [a, b, out], factors) };
        }
        Ok(())
    }
}

/// # Safety
/// As for `Multiply::multiply`, with a type that the crate knows.
unsafe fn library<T: Arith>([m, n, k]: [usize; 3], [a, b, out]: [Matrix<T>; 3], [alpha, beta]: [T; 2]) {
    let s = |x: usize| x as isize;
    // The crate's loops for two terms and for vectors start from the first product, where negative zeros have a sum of
    // their own sign; from zero on, as PyTorch's does, it is positive.
    let from_zero = beta == T::ZERO && k > 1 && (k == 2 || m == 1 || n == 1);
    let beta = if from_zero { T::ONE } else { beta };
    // SAFETY: the caller's promise. The crate's alpha scales the destination.
    unsafe {
        if from_zero {
            (0..m * n).for_each(|at| *out.at(at / n, at % n) = T::ZERO);
        }
        ::gemm::gemm(
            m,
            n,
            k,
            out.ptr,
            s(out.cols),
            s(out.rows),
            beta != T::ZERO,
            a.ptr,
            s(a.cols),
            s(a.rows),
            b.ptr,
            s(b.cols),
            s(b.rows),
            beta,
            alpha,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
