//! Vectors of 16-bit terms, whose products are summed in pairs.

/// Vectors of 16-bit terms, whose products are summed in pairs.
///
/// # Safety
/// The functions read or write `TERMS` numbers; the processor has the instructions.
pub(super) unsafe trait Pairs {
    type Vector: Copy;
    const TERMS: usize;
    unsafe fn zero() -> Self::Vector;
    unsafe fn load(at: *const i16) -> Self::Vector;
    unsafe fn splat(x: i16) -> Self::Vector;
    /// Of terms.
    unsafe fn subtract(x: Self::Vector, y: Self::Vector) -> Self::Vector;
    /// Writes terms.
    unsafe fn store(at: *mut i16, x: Self::Vector);
    unsafe fn widen<const SIGNED: bool>(at: *const u8) -> Self::Vector;
    /// `sum` and the products of neighbours, in lanes of 32 bits.
    unsafe fn add_products(sum: Self::Vector, x: Self::Vector, y: Self::Vector) -> Self::Vector;
    /// The sum of the lanes of 32 bits.
    unsafe fn total(sum: Self::Vector) -> i32;
}

/// Sixteen numbers: terms, or sums.
pub(super) struct Portable;
// SAFETY: plain arithmetic.
unsafe impl Pairs for Portable {
    type Vector = [i32; 16];
    const TERMS: usize = 16;
    #[inline(always)]
    unsafe fn zero() -> [i32; 16] {
        [0; 16]
    }
    #[inline(always)]
    unsafe fn load(at: *const i16) -> [i32; 16] {
        // SAFETY: the caller's promise.
        std::array::from_fn(|l| unsafe { *at.add(l) } as i32)
    }
    #[inline(always)]
    unsafe fn splat(x: i16) -> [i32; 16] {
        [x.into(); 16]
    }
    #[inline(always)]
    unsafe fn subtract(x: [i32; 16], y: [i32; 16]) -> [i32; 16] {
        std::array::from_fn(|l| x[l] - y[l])
    }
    #[inline(always)]
    unsafe fn store(at: *mut i16, x: [i32; 16]) {
        // SAFETY: the caller's promise.
        x.iter().enumerate().for_each(|(l, &x)| unsafe { *at.add(l) = x as i16 });
    }
    #[inline(always)]
    unsafe fn widen<const SIGNED: bool>(at: *const u8) -> [i32; 16] {
        // SAFETY: the caller's promise.
        let byte = |l| unsafe { *at.add(l) };
        std::array::from_fn(|l| if SIGNED { byte(l) as i8 as i32 } else { byte(l) as i32 })
    }
    #[inline(always)]
    unsafe fn add_products(sum: [i32; 16], x: [i32; 16], y: [i32; 16]) -> [i32; 16] {
        std::array::from_fn(|l| sum[l].wrapping_add(x[l].wrapping_mul(y[l])))
    }
    #[inline(always)]
    unsafe fn total(sum: [i32; 16]) -> i32 {
        sum.iter().fold(0, |a, &b| a.wrapping_add(b))
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use self::x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Pairs;
    use std::arch::x86_64::*;

    pub struct Avx2;
    // SAFETY: each function reads as many numbers as it says.
    unsafe impl Pairs for Avx2 {
        type Vector = __m256i;
        const TERMS: usize = 16;
        #[inline(always)]
        unsafe fn zero() -> __m256i {
            // SAFETY: the caller's promise, in all of these.
            unsafe { _mm256_setzero_si256() }
        }
        #[inline(always)]
        unsafe fn load(at: *const i16) -> __m256i {
            // SAFETY: as above.
            unsafe { _mm256_loadu_si256(at.cast()) }
        }
        #[inline(always)]
        unsafe fn splat(x: i16) -> __m256i {
            // SAFETY: as above.
            unsafe { _mm256_set1_epi16(x) }
        }
        #[inline(always)]
        unsafe fn subtract(x: __m256i, y: __m256i) -> __m256i {
            // SAFETY: as above.
            unsafe { _mm256_sub_epi16(x, y) }
        }
        #[inline(always)]
        unsafe fn store(at: *mut i16, x: __m256i) {
            // SAFETY: as above.
            unsafe { _mm256_storeu_si256(at.cast(), x) }
        }
        #[inline(always)]
        unsafe fn widen<const SIGNED: bool>(at: *const u8) -> __m256i {
            // SAFETY: as above.
            unsafe {
                let bytes = _mm_loadu_si128(at.cast());
                if SIGNED { _mm256_cvtepi8_epi16(bytes) } else { _mm256_cvtepu8_epi16(bytes) }
            }
        }
        #[inline(always)]
        unsafe fn add_products(sum: __m256i, x: __m256i, y: __m256i) -> __m256i {
            // SAFETY: as above.
            unsafe { _mm256_add_epi32(sum, _mm256_madd_epi16(x, y)) }
        }
        #[inline(always)]
        unsafe fn total(sum: __m256i) -> i32 {
            // SAFETY: as above.
            unsafe {
                let four = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
                let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
                _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two)))
            }
        }
    }

    pub struct Avx512;
    // SAFETY: as for AVX2.
    unsafe impl Pairs for Avx512 {
        type Vector = __m512i;
        const TERMS: usize = 32;
        #[inline(always)]
        unsafe fn zero() -> __m512i {
            // SAFETY: the caller's promise, in all of these.
            unsafe { _mm512_setzero_si512() }
        }
        #[inline(always)]
        unsafe fn load(at: *const i16) -> __m512i {
            // SAFETY: as above.
            unsafe { _mm512_loadu_si512(at.cast()) }
        }
        #[inline(always)]
        unsafe fn splat(x: i16) -> __m512i {
            // SAFETY: as above.
            unsafe { _mm512_set1_epi16(x) }
        }
        #[inline(always)]
        unsafe fn subtract(x: __m512i, y: __m512i) -> __m512i {
            // SAFETY: as above.
            unsafe { _mm512_sub_epi16(x, y) }
        }
        #[inline(always)]
        unsafe fn store(at: *mut i16, x: __m512i) {
            // SAFETY: as above.
            unsafe { _mm512_storeu_si512(at.cast(), x) }
        }
        #[inline(always)]
        unsafe fn widen<const SIGNED: bool>(at: *const u8) -> __m512i {
            // SAFETY: as above.
            unsafe {
                let bytes = _mm256_loadu_si256(at.cast());
                if SIGNED { _mm512_cvtepi8_epi16(bytes) } else { _mm512_cvtepu8_epi16(bytes) }
            }
        }
        #[inline(always)]
        unsafe fn add_products(sum: __m512i, x: __m512i, y: __m512i) -> __m512i {
            // SAFETY: as above.
            unsafe { _mm512_add_epi32(sum, _mm512_madd_epi16(x, y)) }
        }
        #[inline(always)]
        unsafe fn total(sum: __m512i) -> i32 {
            // SAFETY: as above.
            unsafe { _mm512_reduce_add_epi32(sum) }
        }
    }
}
