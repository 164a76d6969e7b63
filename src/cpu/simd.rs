//! Loops compiled several times, for the baseline, for AVX2 with FMA and, if they ask for it, for AVX-512; selected at
//! each call.
//!
//! A kernel is a value whose `run` is inlined into each version. Its type parameter tells whether `mul_add` is one
//! instruction. Memory-bound loops gain nothing from AVX-512.

use super::isa::{Isa, clear_upper, isa};
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

/// The same for a loop that computes much for each element, which AVX-512 serves better.
#[inline]
pub fn run_wide<K: Kernel>(kernel: K) -> K::Output {
    if isa() >= Isa::Avx512 {
        // SAFETY: the processor has the features.
        unsafe { avx512(kernel) }
    } else {
        run(kernel)
    }
}

/// SAFETY: the processor must have the features.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c,bmi1,bmi2"))]
unsafe fn avx2<K: Kernel>(kernel: K) -> K::Output {
    let output = kernel.run::<Fused>();
    // SAFETY: the caller's promise.
    unsafe { clear_upper() };
    output
}

/// SAFETY: the processor must have the features.
#[cfg_attr(
    target_arch = "x86_64",
    target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c,bmi1,bmi2")
)]
unsafe fn avx512<K: Kernel>(kernel: K) -> K::Output {
    let output = kernel.run::<Fused>();
    // SAFETY: the caller's promise.
    unsafe { clear_upper() };
    output
}
