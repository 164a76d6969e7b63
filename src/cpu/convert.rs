//! Casts between all dtypes, over contiguous memory.
//!
//! The semantics are PyTorch's: float to integer truncates and, out of range, gives what x86 gives (the smallest i32 or
//! i64; narrower types take its low bits); to bool is "not zero"; complex to real drops the imaginary part. One loop
//! for each pair, for the baseline and, but for floats of eight bits, for AVX2; `cast.rs` defines the cast of an element.

use super::cast::Cast;
use super::isa::{Isa, clear_upper, isa};
use crate::dtype::DType;
use crate::with_dtype;
use std::mem::MaybeUninit;

/// Casts `n` contiguous elements.
///
/// # Safety
/// `src` and `dst` hold `n` aligned elements of the dtypes that the function was looked up for, and do not overlap.
pub type ConvertFn = unsafe fn(src: *const u8, dst: *mut u8, n: usize);

/// The loop from one dtype to another; `None` if no conversion is needed.
pub fn converter(src: DType, dst: DType) -> Option<ConvertFn> {
    if src == dst {
        return None;
    }
    let wide = isa() >= Isa::Avx2;
    #[cfg(target_arch = "x86_64")]
    if wide && (src, dst) == (DType::F16, DType::F32) {
        return Some(f16c::widen);
    } else if wide && (src, dst) == (DType::F32, DType::F16) {
        return Some(f16c::narrow);
    }
    Some(with_dtype!(src, S => with_dtype!(dst, D => {
        if wide && S::WIDENS && D::WIDENS { avx2::<S, D> } else { baseline::<S, D> }
    })))
}

/// SAFETY: as `ConvertFn`.
unsafe fn baseline<S: Cast, D: Cast>(src: *const u8, dst: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { run::<S, D>(src, dst, n) }
}
/// SAFETY: as `ConvertFn`, and the processor has the features.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c,bmi1,bmi2"))]
unsafe fn avx2<S: Cast, D: Cast>(src: *const u8, dst: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        run::<S, D>(src, dst, n);
        clear_upper();
    }
}
/// SAFETY: as `ConvertFn`.
#[inline(always)]
unsafe fn run<S: Cast, D: Cast>(src: *const u8, dst: *mut u8, n: usize) {
    // SAFETY: the caller's promise: `n` elements each, not overlapping.
    unsafe {
        let src = std::slice::from_raw_parts(src as *const S::Raw, n);
        each::<S, D>(src, std::slice::from_raw_parts_mut(dst as *mut MaybeUninit<D>, n));
    }
}
#[inline(always)]
fn each<S: Cast, D: Cast>(src: &[S::Raw], dst: &mut [MaybeUninit<D>]) {
    let src = &src[..dst.len()];
    for i in 0..dst.len() {
        dst[i].write(D::down(S::up(src[i])));
    }
}

/// The two casts with x86 instructions.
#[cfg(target_arch = "x86_64")]
mod f16c {
    use super::super::half_float::{f32_to_half, half_to_f32};
    use std::arch::x86_64::*;

    /// SAFETY: as `ConvertFn`, and the processor has the features.
    #[target_feature(enable = "avx2,f16c")]
    pub unsafe fn widen(src: *const u8, dst: *mut u8, n: usize) {
        let (src, dst) = (src as *const u16, dst as *mut f32);
        // SAFETY: eight elements at a time while there are eight.
        unsafe {
            for i in (0..n - n % 8).step_by(8) {
                _mm256_storeu_ps(dst.add(i), _mm256_cvtph_ps(_mm_loadu_si128(src.add(i).cast())));
            }
            (n - n % 8..n).for_each(|i| *dst.add(i) = half_to_f32(*src.add(i)));
        }
    }
    /// SAFETY: as `ConvertFn`, and the processor has the features.
    #[target_feature(enable = "avx2,f16c")]
    pub unsafe fn narrow(src: *const u8, dst: *mut u8, n: usize) {
        let (src, dst) = (src as *const f32, dst as *mut u16);
        // SAFETY: eight elements at a time while there are eight.
        unsafe {
            for i in (0..n - n % 8).step_by(8) {
                let half = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(src.add(i)));
                _mm_storeu_si128(dst.add(i).cast(), half);
            }
            (n - n % 8..n).for_each(|i| *dst.add(i) = f32_to_half(*src.add(i)));
        }
    }
}
