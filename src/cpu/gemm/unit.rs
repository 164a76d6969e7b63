//! Vector units: what the loops of products, convolutions and attention are written over, and compiled for.

use crate::cpu::arith::Arith;
#[cfg(target_arch = "x86_64")]
use crate::cpu::isa::{Isa, isa};
use std::marker::PhantomData;

/// Vectors in a row of a tile.
pub const VECTORS: usize = 2;
/// Maximum columns of a tile.
pub const WIDEST: usize = 32;
/// Maximum lanes of a vector.
pub const MOST_LANES: usize = WIDEST / VECTORS;
/// Maximum rows of a tile.
pub const TALLEST: usize = 14;
/// Maximum side of a block that `Unit::turn` transposes.
pub const LARGEST_SIDE: usize = 8;

/// The vectors of one instruction set that hold one type of float.
pub trait Unit {
    type Float: Vectors;
    type Vector: Copy;
    const LANES: usize;
    /// Rows of a full tile, so that its sums, a row of the second factor and a broadcast element fill the registers.
    const ROWS: usize;
    /// Columns of a panel.
    const WIDTH: usize = VECTORS * Self::LANES;
    /// # Safety
    /// As many elements as there are lanes can be read; the processor has the instructions. So in all of these.
    unsafe fn load(at: *const Self::Float) -> Self::Vector;
    /// The first `n` lanes, at most as many as there are, and zeros.
    /// # Safety
    /// So many elements can be read.
    unsafe fn load_first(at: *const Self::Float, n: usize) -> Self::Vector;
    /// A vector whose lanes from `first` on, fewer than there are, are those in memory.
    /// # Safety
    /// These elements can be read.
    unsafe fn load_last(v: Self::Vector, at: *const Self::Float, first: usize) -> Self::Vector;
    /// # Safety
    /// See `load`.
    unsafe fn store(at: *mut Self::Float, v: Self::Vector);
    /// The first `n` lanes, at most as many as there are.
    /// # Safety
    /// So many elements can be written.
    unsafe fn store_first(at: *mut Self::Float, v: Self::Vector, n: usize);
    /// # Safety
    /// See `load`.
    unsafe fn splat(x: Self::Float) -> Self::Vector;
    /// # Safety
    /// See `load`.
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// # Safety
    /// See `load`.
    unsafe fn mul(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a * b + sum`.
    /// # Safety
    /// See `load`.
    unsafe fn fma(a: Self::Vector, b: Self::Vector, sum: Self::Vector) -> Self::Vector;
    /// Rows and columns of a block that `turn` transposes.
    const SIDE: usize;
    /// Transposes a block that begins with these rows; its columns become rows so far apart.
    /// # Safety
    /// The rows can be read, the block written, and they lie apart.
    unsafe fn turn(rows: [*const Self::Float; LARGEST_SIDE], to: *mut Self::Float, step: usize);
    /// Brings a line into the cache.
    fn prefetch(at: *const Self::Float);
    /// A job in a function of its own, shared by all that call it.
    /// # Safety
    /// See `load`.
    unsafe fn call<J: Job<Self::Float>>(job: J) -> J::Output;
}

/// Vectors of `N` elements by plain arithmetic: NEON on AArch64, SSE on x86-64.
pub struct Portable<T, const N: usize>(PhantomData<T>);
impl<T: Vectors, const N: usize> Unit for Portable<T, N> {
    type Float = T;
    type Vector = [T; N];
    const LANES: usize = N;
    const ROWS: usize = if cfg!(target_arch = "aarch64") { 8 } else { 4 };
    #[inline(always)]
    unsafe fn load(at: *const T) -> [T; N] {
        // SAFETY: the caller's promise.
        unsafe { (at as *const [T; N]).read_unaligned() }
    }
    #[inline(always)]
    unsafe fn load_first(at: *const T, n: usize) -> [T; N] {
        // SAFETY: the caller's promise.
        std::array::from_fn(|i| if i < n { unsafe { *at.add(i) } } else { T::ZERO })
    }
    #[inline(always)]
    unsafe fn load_last(v: [T; N], at: *const T, first: usize) -> [T; N] {
        // SAFETY: the caller's promise.
        std::array::from_fn(|i| if i < first { v[i] } else { unsafe { *at.wrapping_add(i) } })
    }
    #[inline(always)]
    unsafe fn store(at: *mut T, v: [T; N]) {
        // SAFETY: the caller's promise.
        unsafe { (at as *mut [T; N]).write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn store_first(at: *mut T, v: [T; N], n: usize) {
        // SAFETY: the caller's promise.
        (0..n.min(N)).for_each(|i| unsafe { *at.add(i) = v[i] });
    }
    #[inline(always)]
    unsafe fn splat(x: T) -> [T; N] {
        [x; N]
    }
    #[inline(always)]
    unsafe fn add(a: [T; N], b: [T; N]) -> [T; N] {
        std::array::from_fn(|i| a[i].plus(b[i]))
    }
    #[inline(always)]
    unsafe fn mul(a: [T; N], b: [T; N]) -> [T; N] {
        std::array::from_fn(|i| a[i].times(b[i]))
    }
    #[inline(always)]
    unsafe fn fma(a: [T; N], b: [T; N], sum: [T; N]) -> [T; N] {
        std::array::from_fn(|i| a[i].times_plus(b[i], sum[i]))
    }
    const SIDE: usize = N;
    #[inline(always)]
    unsafe fn turn(rows: [*const T; LARGEST_SIDE], to: *mut T, step: usize) {
        // SAFETY: the caller's promise.
        let rows: [[T; N]; N] = std::array::from_fn(|i| unsafe { Self::load(rows[i]) });
        // SAFETY: as above.
        (0..N).for_each(|j| unsafe { Self::store(to.add(j * step), std::array::from_fn(|i| rows[i][j])) });
    }
    #[inline(always)]
    fn prefetch(_at: *const T) {}
    #[inline(never)]
    unsafe fn call<J: Job<T>>(job: J) -> J::Output {
        // SAFETY: the caller's promise.
        unsafe { job.run::<Self>() }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Job, LARGEST_SIDE, PhantomData, Unit};
    use std::arch::x86_64::*;

    pub struct Avx2<T>(PhantomData<T>);
    pub struct Avx512<T>(PhantomData<T>);

    /// Ones for the lanes in use, from index 8 less their number on.
    const ONES: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    /// The mask of the first `n` of eight lanes.
    /// # Safety
    /// The processor has AVX2; `n` is at most 8.
    #[inline(always)]
    unsafe fn ones(n: usize) -> __m256i {
        debug_assert!(n <= 8);
        // SAFETY: the mask lies in the table.
        unsafe { _mm256_loadu_si256(ONES.as_ptr().add(8 - n).cast()) }
    }
    /// # Safety
    /// As for `Unit::load_first`, in all of these.
    #[inline(always)]
    unsafe fn first_8(at: *const f32, n: usize) -> __m256 {
        // SAFETY: lanes that are not in use are not read, in all of these.
        unsafe { _mm256_maskload_ps(at, ones(n)) }
    }
    /// # Safety
    /// See `first_8`.
    #[inline(always)]
    unsafe fn first_4(at: *const f64, n: usize) -> __m256d {
        // SAFETY: as above.
        unsafe { _mm256_maskload_pd(at, ones(2 * n)) }
    }
    /// # Safety
    /// See `first_8`.
    #[inline(always)]
    unsafe fn first_16(at: *const f32, n: usize) -> __m512 {
        // SAFETY: as above.
        unsafe { _mm512_maskz_loadu_ps(((1u32 << n) - 1) as u16, at) }
    }
    /// # Safety
    /// See `first_8`.
    #[inline(always)]
    unsafe fn first_wide_8(at: *const f64, n: usize) -> __m512d {
        // SAFETY: as above.
        unsafe { _mm512_maskz_loadu_pd(((1u32 << n) - 1) as u8, at) }
    }
    /// # Safety
    /// As for `Unit::load_last`, in all of these.
    #[inline(always)]
    unsafe fn last_8(v: __m256, at: *const f32, first: usize) -> __m256 {
        // SAFETY: the lanes before are not read, in all of these.
        unsafe {
            let mask = _mm256_andnot_si256(ones(first), _mm256_set1_epi32(-1));
            _mm256_blendv_ps(v, _mm256_maskload_ps(at, mask), _mm256_castsi256_ps(mask))
        }
    }
    /// # Safety
    /// See `last_8`.
    #[inline(always)]
    unsafe fn last_4(v: __m256d, at: *const f64, first: usize) -> __m256d {
        // SAFETY: as above.
        unsafe {
            let mask = _mm256_andnot_si256(ones(2 * first), _mm256_set1_epi32(-1));
            _mm256_blendv_pd(v, _mm256_maskload_pd(at, mask), _mm256_castsi256_pd(mask))
        }
    }
    /// # Safety
    /// See `last_8`.
    #[inline(always)]
    unsafe fn last_16(v: __m512, at: *const f32, first: usize) -> __m512 {
        // SAFETY: as above.
        unsafe { _mm512_mask_loadu_ps(v, u16::MAX << first, at) }
    }
    /// # Safety
    /// See `last_8`.
    #[inline(always)]
    unsafe fn last_wide_8(v: __m512d, at: *const f64, first: usize) -> __m512d {
        // SAFETY: as above.
        unsafe { _mm512_mask_loadu_pd(v, u8::MAX << first, at) }
    }
    /// # Safety
    /// As for `Unit::store_first`, in all of these.
    #[inline(always)]
    unsafe fn store_8(at: *mut f32, v: __m256, n: usize) {
        // A masked store of so many lanes takes AMD's processors some 20 cycles.
        // SAFETY: lanes that are not in use are not written, in all of these.
        unsafe {
            if n == 8 {
                return _mm256_storeu_ps(at, v);
            }
            let (mut at, mut left) = (at, _mm256_castps256_ps128(v));
            if n & 4 != 0 {
                _mm_storeu_ps(at, left);
                (at, left) = (at.add(4), _mm256_extractf128_ps::<1>(v));
            }
            if n & 2 != 0 {
                _mm_store_sd(at.cast(), _mm_castps_pd(left));
                (at, left) = (at.add(2), _mm_movehl_ps(left, left));
            }
            if n & 1 != 0 {
                _mm_store_ss(at, left);
            }
        }
    }
    /// # Safety
    /// See `store_8`.
    #[inline(always)]
    unsafe fn store_4(at: *mut f64, v: __m256d, n: usize) {
        // SAFETY: as above.
        unsafe {
            if n == 4 {
                return _mm256_storeu_pd(at, v);
            }
            let (mut at, mut left) = (at, _mm256_castpd256_pd128(v));
            if n & 2 != 0 {
                _mm_storeu_pd(at, left);
                (at, left) = (at.add(2), _mm256_extractf128_pd::<1>(v));
            }
            if n & 1 != 0 {
                _mm_store_sd(at, left);
            }
        }
    }
    /// # Safety
    /// See `store_8`.
    #[inline(always)]
    unsafe fn store_16(at: *mut f32, v: __m512, n: usize) {
        // SAFETY: as above.
        unsafe { _mm512_mask_storeu_ps(at, ((1u32 << n) - 1) as u16, v) }
    }
    /// # Safety
    /// See `store_8`.
    #[inline(always)]
    unsafe fn store_wide_8(at: *mut f64, v: __m512d, n: usize) {
        // SAFETY: as above.
        unsafe { _mm512_mask_storeu_pd(at, ((1u32 << n) - 1) as u8, v) }
    }

    /// # Safety
    /// As for `Unit::turn`, in all of these.
    #[inline(always)]
    unsafe fn turn_8(rows: [*const f32; LARGEST_SIDE], to: *mut f32, step: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let row: [__m256; 8] = std::array::from_fn(|i| _mm256_loadu_ps(rows[i]));
            // Rows and columns of 2 x 2 elements, of 2 x 2 such blocks, then of halves.
            let pairs: [__m256; 8] = std::array::from_fn(|i| match i % 2 {
                0 => _mm256_unpacklo_ps(row[i], row[i + 1]),
                _ => _mm256_unpackhi_ps(row[i - 1], row[i]),
            });
            let fours: [__m256; 8] = std::array::from_fn(|i| {
                let first = i / 4 * 4 + i / 2 % 2;
                match i % 2 {
                    0 => _mm256_shuffle_ps::<0x44>(pairs[first], pairs[first + 2]),
                    _ => _mm256_shuffle_ps::<0xee>(pairs[first], pairs[first + 2]),
                }
            });
            for i in 0..4 {
                _mm256_storeu_ps(to.add(i * step), _mm256_permute2f128_ps::<0x20>(fours[i], fours[i + 4]));
                _mm256_storeu_ps(to.add((i + 4) * step), _mm256_permute2f128_ps::<0x31>(fours[i], fours[i + 4]));
            }
        }
    }
    /// # Safety
    /// See `turn_8`.
    #[inline(always)]
    unsafe fn turn_4(rows: [*const f64; LARGEST_SIDE], to: *mut f64, step: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let row: [__m256d; 4] = std::array::from_fn(|i| _mm256_loadu_pd(rows[i]));
            let pairs = [
                _mm256_unpacklo_pd(row[0], row[1]),
                _mm256_unpackhi_pd(row[0], row[1]),
                _mm256_unpacklo_pd(row[2], row[3]),
                _mm256_unpackhi_pd(row[2], row[3]),
            ];
            for i in 0..2 {
                _mm256_storeu_pd(to.add(i * step), _mm256_permute2f128_pd::<0x20>(pairs[i], pairs[i + 2]));
                _mm256_storeu_pd(to.add((i + 2) * step), _mm256_permute2f128_pd::<0x31>(pairs[i], pairs[i + 2]));
            }
        }
    }

    macro_rules! unit {
        ($name:ident, $features:literal, $t:ty, $v:ty, $lanes:literal, $rows:literal, $side:literal $turn:ident, $load:ident $first:ident $last:ident $store:ident $store_first:ident $splat:ident $add:ident $mul:ident $fma:ident) => {
            impl Unit for $name<$t> {
                type Float = $t;
                type Vector = $v;
                const LANES: usize = $lanes;
                const ROWS: usize = $rows;
                #[inline(always)]
                unsafe fn load(at: *const $t) -> $v {
                    // SAFETY: the caller's promise, in all of these.
                    unsafe { $load(at) }
                }
                #[inline(always)]
                unsafe fn load_first(at: *const $t, n: usize) -> $v {
                    // SAFETY: the caller's promise.
                    unsafe { $first(at, n) }
                }
                #[inline(always)]
                unsafe fn load_last(v: $v, at: *const $t, first: usize) -> $v {
                    // SAFETY: the caller's promise.
                    unsafe { $last(v, at, first) }
                }
                #[inline(always)]
                unsafe fn store(at: *mut $t, v: $v) {
                    // SAFETY: see `load`.
                    unsafe { $store(at, v) }
                }
                #[inline(always)]
                unsafe fn store_first(at: *mut $t, v: $v, n: usize) {
                    // SAFETY: see `load`.
                    unsafe { $store_first(at, v, n) }
                }
                #[inline(always)]
                unsafe fn splat(x: $t) -> $v {
                    // SAFETY: see `load`.
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                unsafe fn add(a: $v, b: $v) -> $v {
                    // SAFETY: see `load`.
                    unsafe { $add(a, b) }
                }
                #[inline(always)]
                unsafe fn mul(a: $v, b: $v) -> $v {
                    // SAFETY: see `load`.
                    unsafe { $mul(a, b) }
                }
                #[inline(always)]
                unsafe fn fma(a: $v, b: $v, sum: $v) -> $v {
                    // SAFETY: see `load`.
                    unsafe { $fma(a, b, sum) }
                }
                const SIDE: usize = $side;
                #[inline(always)]
                unsafe fn turn(rows: [*const $t; LARGEST_SIDE], to: *mut $t, step: usize) {
                    // SAFETY: see `load`.
                    unsafe { $turn(rows, to, step) }
                }
                #[inline(always)]
                fn prefetch(at: *const $t) {
                    // SAFETY: any address may be prefetched.
                    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
                }
                #[inline]
                unsafe fn call<J: Job<$t>>(job: J) -> J::Output {
                    #[inline(never)]
                    #[target_feature(enable = $features)]
                    unsafe fn run<J: Job<$t>>(job: J) -> J::Output {
                        // SAFETY: see `load`.
                        unsafe { job.run::<$name<$t>>() }
                    }
                    // SAFETY: see `load`.
                    unsafe { run(job) }
                }
            }
        };
    }
    unit!(Avx2, "avx2,fma,bmi1,bmi2", f32, __m256, 8, 6, 8 turn_8, _mm256_loadu_ps first_8 last_8 _mm256_storeu_ps store_8 _mm256_set1_ps _mm256_add_ps _mm256_mul_ps _mm256_fmadd_ps);
    unit!(Avx2, "avx2,fma,bmi1,bmi2", f64, __m256d, 4, 6, 4 turn_4, _mm256_loadu_pd first_4 last_4 _mm256_storeu_pd store_4 _mm256_set1_pd _mm256_add_pd _mm256_mul_pd _mm256_fmadd_pd);
    unit!(Avx512, "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi1,bmi2", f32, __m512, 16, 14, 8 turn_8, _mm512_loadu_ps first_16 last_16 _mm512_storeu_ps store_16 _mm512_set1_ps _mm512_add_ps _mm512_mul_ps _mm512_fmadd_ps);
    unit!(Avx512, "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi1,bmi2", f64, __m512d, 8, 14, 4 turn_4, _mm512_loadu_pd first_wide_8 last_wide_8 _mm512_storeu_pd store_wide_8 _mm512_set1_pd _mm512_add_pd _mm512_mul_pd _mm512_fmadd_pd);
}

/// A computation to be compiled for each vector unit. Mark `run` and all that it calls `#[inline(always)]`.
pub trait Job<T> {
    type Output;
    /// # Safety
    /// The processor has the unit's instructions.
    unsafe fn run<U: Unit<Float = T>>(self) -> Self::Output;
}

/// A float that has vector units.
pub trait Vectors: Arith {
    #[cfg(target_arch = "x86_64")]
    type Avx2: Unit<Float = Self>;
    #[cfg(target_arch = "x86_64")]
    type Avx512: Unit<Float = Self>;
    /// What every processor of the architecture has.
    type Plain: Unit<Float = Self>;
    /// `self * b + sum`, as one instruction where the architecture has one for sure.
    fn times_plus(self, b: Self, sum: Self) -> Self;
}
impl Vectors for f32 {
    #[cfg(target_arch = "x86_64")]
    type Avx2 = x86::Avx2<f32>;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = x86::Avx512<f32>;
    type Plain = Portable<f32, 4>;
    #[inline(always)]
    fn times_plus(self, b: f32, sum: f32) -> f32 {
        if cfg!(target_arch = "aarch64") { self.mul_add(b, sum) } else { self * b + sum }
    }
}
impl Vectors for f64 {
    #[cfg(target_arch = "x86_64")]
    type Avx2 = x86::Avx2<f64>;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = x86::Avx512<f64>;
    type Plain = Portable<f64, 2>;
    #[inline(always)]
    fn times_plus(self, b: f64, sum: f64) -> f64 {
        if cfg!(target_arch = "aarch64") { self.mul_add(b, sum) } else { self * b + sum }
    }
}

/// Runs a job on the best unit of the processor.
#[inline]
pub fn run<T: Vectors, J: Job<T>>(job: J) -> J::Output {
    // SAFETY: the processor has the instructions of its set; the plain unit has none of its own.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        match isa() {
            Isa::Avx512 => return T::Avx512::call(job),
            Isa::Avx2 => return T::Avx2::call(job),
            Isa::Baseline => {}
        }
        T::Plain::call(job)
    }
}

/// Rows and columns of the tiles that `run` computes.
pub fn tile_size<T: Vectors>() -> [usize; 2] {
    #[cfg(target_arch = "x86_64")]
    match isa() {
        Isa::Avx512 => return [T::Avx512::ROWS, T::Avx512::WIDTH],
        Isa::Avx2 => return [T::Avx2::ROWS, T::Avx2::WIDTH],
        Isa::Baseline => {}
    }
    [T::Plain::ROWS, T::Plain::WIDTH]
}
