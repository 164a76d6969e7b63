//! Loops compiled twice: for the baseline, and for AVX2 with FMA; selected at each call.
//!
//! A kernel is a value whose `run` is inlined into both versions. Its type parameter tells whether `mul_add` is one
//! instruction. Memory-bound loops gain nothing from AVX-512, so there is no third version.

use super::isa::{Isa, isa};
use super::number_class::{Fuse, Fused, Plain};

/// A loop with its operands. One that holds addresses has private fields and is built by unsafe code that vouches for them,
/// so that it is sound to run. Mark `run` and all that it calls `#[inline(always)]`.
pub trait Kernel {
    type Output;
    fn run<F: Fuse>(self) -> Self::Output;
}

/// Runs a kernel with the best supported instruction set.
#[inline]
pub fn run<K: Kernel>(kernel: K) -> K::Output {
    if isa() >= Isa::Avx2 {
        // SAFETY: the processor has the features.
        unsafe { avx2(kernel) }
    } else {
        kernel.run::<Plain>()
    }
}

/// SAFETY: the processor must have the features.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c,bmi1,bmi2"))]
unsafe fn avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Fused>()
}
