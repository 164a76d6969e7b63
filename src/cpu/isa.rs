//! The instruction set for which kernels are selected, detected once.
//!
//! A loop is compiled several times (`loops.rs`): for the architecture's baseline, for AVX2 with FMA, and, if
//! compute-bound, for AVX-512. The baseline of AArch64 includes NEON. `RUSTGRAD_ISA=baseline`, `avx2` or `avx512`
//! lowers the choice, for tests and comparisons; it never raises it.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Isa {
    Baseline = 0,
    Avx2 = 1,
    Avx512 = 2,
}

const UNKNOWN: u8 = 255;
static CHOSEN: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The instruction set used by this process.
#[inline]
pub fn isa() -> Isa {
    match CHOSEN.load(Relaxed) {
        0 => Isa::Baseline,
        1 => Isa::Avx2,
        2 => Isa::Avx512,
        _ => choose(),
    }
}

#[cold]
fn choose() -> Isa {
    let ceiling = match std::env::var("RUSTGRAD_ISA").as_deref() {
        Ok("baseline") => Isa::Baseline,
        Ok("avx2") => Isa::Avx2,
        _ => Isa::Avx512,
    };
    let isa = detect().min(ceiling);
    CHOSEN.store(isa as u8, Relaxed);
    isa
}

/// Marks the upper halves of the vector registers as unused. Code for SSE that follows wide instructions otherwise merges with
/// them, at hundreds of cycles a switch on some processors. The compiler ends functions so by itself, but only where it sees a
/// wide register: `vcvtpd2ps` from memory has none.
///
/// # Safety
/// The processor has AVX, where it is an x86.
#[inline(always)]
pub unsafe fn clear_upper() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promise.
    unsafe {
        std::arch::x86_64::_mm256_zeroupper()
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Isa {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl");
    match (avx2, avx512) {
        (true, true) => Isa::Avx512,
        (true, false) => Isa::Avx2,
        _ => Isa::Baseline,
    }
}
#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Isa {
    Isa::Baseline
}
