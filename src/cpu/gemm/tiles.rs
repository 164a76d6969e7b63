//! The innermost loop of products and convolutions: a tile of the result, computed in registers from packed panels.
//!
//! A panel of the first factor holds up to `ROWS` rows, term by term, one of the second `WIDTH` columns. The loop is
//! written once over a vector unit, and `run` compiles what calls it for each instruction set.

use super::Matrix;
use crate::cpu::arith::Arith;
#[cfg(target_arch = "x86_64")]
use crate::cpu::isa::{Isa, isa};
use std::marker::PhantomData;

/// Vectors in a row of a tile.
const VECTORS: usize = 2;
/// Maximum columns of a tile.
pub const WIDEST: usize = 32;
/// Maximum rows of a tile.
pub const TALLEST: usize = 14;

/// The vectors of one instruction set that hold one type of float.
pub trait Unit {
    type Float: Arith;
    type Vector: Copy;
    const LANES: usize;
    /// Rows of a full tile, so that its sums, a row of the second factor and a broadcast element fill the registers.
    const ROWS: usize;
    /// Columns of a panel.
    const WIDTH: usize = VECTORS * Self::LANES;
    /// # Safety
    /// As many elements as there are lanes can be read; the processor has the instructions. So in all of these.
    unsafe fn load(at: *const Self::Float) -> Self::Vector;
    /// The first `n` lanes, fewer than there are, and zeros.
    /// # Safety
    /// So many elements can be read.
    unsafe fn load_first(at: *const Self::Float, n: usize) -> Self::Vector;
    /// # Safety
    /// See `load`.
    unsafe fn store(at: *mut Self::Float, v: Self::Vector);
    /// # Safety
    /// See `load`.
    unsafe fn splat(x: Self::Float) -> Self::Vector;
    /// # Safety
    /// See `load`.
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a * b + sum`.
    /// # Safety
    /// See `load`.
    unsafe fn fma(a: Self::Vector, b: Self::Vector, sum: Self::Vector) -> Self::Vector;
    /// Rows and columns of a block that `turn` transposes.
    const SIDE: usize;
    /// Transposes a block; rows of both have these distances.
    /// # Safety
    /// The first block can be read, the second written, and they lie apart.
    unsafe fn turn(from: *const Self::Float, step: usize, to: *mut Self::Float, to_step: usize);
}

/// Vectors of four elements by plain arithmetic: NEON on AArch64, SSE on x86-64.
pub struct Portable<T>(PhantomData<T>);
impl<T: Arith> Unit for Portable<T> {
    type Float = T;
    type Vector = [T; 4];
    const LANES: usize = 4;
    const ROWS: usize = 4;
    #[inline(always)]
    unsafe fn load(at: *const T) -> [T; 4] {
        // SAFETY: the caller's promise.
        unsafe { (at as *const [T; 4]).read_unaligned() }
    }
    #[inline(always)]
    unsafe fn load_first(at: *const T, n: usize) -> [T; 4] {
        // SAFETY: the caller's promise.
        std::array::from_fn(|i| if i < n { unsafe { *at.add(i) } } else { T::ZERO })
    }
    #[inline(always)]
    unsafe fn store(at: *mut T, v: [T; 4]) {
        // SAFETY: the caller's promise.
        unsafe { (at as *mut [T; 4]).write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn splat(x: T) -> [T; 4] {
        [x; 4]
    }
    #[inline(always)]
    unsafe fn add(a: [T; 4], b: [T; 4]) -> [T; 4] {
        std::array::from_fn(|i| a[i].plus(b[i]))
    }
    #[inline(always)]
    unsafe fn fma(a: [T; 4], b: [T; 4], sum: [T; 4]) -> [T; 4] {
        std::array::from_fn(|i| a[i].times(b[i]).plus(sum[i]))
    }
    const SIDE: usize = 4;
    #[inline(always)]
    unsafe fn turn(from: *const T, step: usize, to: *mut T, to_step: usize) {
        // SAFETY: the caller's promise.
        let rows: [[T; 4]; 4] = std::array::from_fn(|i| unsafe { Self::load(from.add(i * step)) });
        // SAFETY: as above.
        (0..4).for_each(|j| unsafe { Self::store(to.add(j * to_step), std::array::from_fn(|i| rows[i][j])) });
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{PhantomData, Unit};
    use std::arch::x86_64::*;

    pub struct Avx2<T>(PhantomData<T>);
    pub struct Avx512<T>(PhantomData<T>);

    /// Ones for the lanes in use, from index 8 less their number on.
    const ONES: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    /// # Safety
    /// As for `Unit::load_first`, in all of these.
    #[inline(always)]
    unsafe fn first_8(at: *const f32, n: usize) -> __m256 {
        // SAFETY: the mask lies in the table; lanes that are not in use are not read.
        unsafe { _mm256_maskload_ps(at, _mm256_loadu_si256(ONES.as_ptr().add(8 - n).cast())) }
    }
    /// # Safety
    /// See `first_8`.
    #[inline(always)]
    unsafe fn first_4(at: *const f64, n: usize) -> __m256d {
        // SAFETY: as above.
        unsafe { _mm256_maskload_pd(at, _mm256_loadu_si256(ONES.as_ptr().add(8 - 2 * n).cast())) }
    }
    /// # Safety
    /// See `first_8`.
    #[inline(always)]
    unsafe fn first_16(at: *const f32, n: usize) -> __m512 {
        // SAFETY: as above.
        unsafe { _mm512_maskz_loadu_ps((1 << n) - 1, at) }
    }
    /// # Safety
    /// See `first_8`.
    #[inline(always)]
    unsafe fn first_wide_8(at: *const f64, n: usize) -> __m512d {
        // SAFETY: as above.
        unsafe { _mm512_maskz_loadu_pd((1 << n) - 1, at) }
    }

    /// # Safety
    /// As for `Unit::turn`, in all of these.
    #[inline(always)]
    unsafe fn turn_8(from: *const f32, step: usize, to: *mut f32, to_step: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let row: [__m256; 8] = std::array::from_fn(|i| _mm256_loadu_ps(from.add(i * step)));
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
                _mm256_storeu_ps(to.add(i * to_step), _mm256_permute2f128_ps::<0x20>(fours[i], fours[i + 4]));
                _mm256_storeu_ps(to.add((i + 4) * to_step), _mm256_permute2f128_ps::<0x31>(fours[i], fours[i + 4]));
            }
        }
    }
    /// # Safety
    /// See `turn_8`.
    #[inline(always)]
    unsafe fn turn_4(from: *const f64, step: usize, to: *mut f64, to_step: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let row: [__m256d; 4] = std::array::from_fn(|i| _mm256_loadu_pd(from.add(i * step)));
            let pairs = [
                _mm256_unpacklo_pd(row[0], row[1]),
                _mm256_unpackhi_pd(row[0], row[1]),
                _mm256_unpacklo_pd(row[2], row[3]),
                _mm256_unpackhi_pd(row[2], row[3]),
            ];
            for i in 0..2 {
                _mm256_storeu_pd(to.add(i * to_step), _mm256_permute2f128_pd::<0x20>(pairs[i], pairs[i + 2]));
                _mm256_storeu_pd(to.add((i + 2) * to_step), _mm256_permute2f128_pd::<0x31>(pairs[i], pairs[i + 2]));
            }
        }
    }

    macro_rules! unit {
        ($name:ident, $t:ty, $v:ty, $lanes:literal, $rows:literal, $side:literal $turn:ident, $load:ident $first:ident $store:ident $splat:ident $add:ident $fma:ident) => {
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
                unsafe fn store(at: *mut $t, v: $v) {
                    // SAFETY: see `load`.
                    unsafe { $store(at, v) }
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
                unsafe fn fma(a: $v, b: $v, sum: $v) -> $v {
                    // SAFETY: see `load`.
                    unsafe { $fma(a, b, sum) }
                }
                const SIDE: usize = $side;
                #[inline(always)]
                unsafe fn turn(from: *const $t, step: usize, to: *mut $t, to_step: usize) {
                    // SAFETY: see `load`.
                    unsafe { $turn(from, step, to, to_step) }
                }
            }
        };
    }
    unit!(Avx2, f32, __m256, 8, 6, 8 turn_8, _mm256_loadu_ps first_8 _mm256_storeu_ps _mm256_set1_ps _mm256_add_ps _mm256_fmadd_ps);
    unit!(Avx2, f64, __m256d, 4, 6, 4 turn_4, _mm256_loadu_pd first_4 _mm256_storeu_pd _mm256_set1_pd _mm256_add_pd _mm256_fmadd_pd);
    unit!(Avx512, f32, __m512, 16, 14, 8 turn_8, _mm512_loadu_ps first_16 _mm512_storeu_ps _mm512_set1_ps _mm512_add_ps _mm512_fmadd_ps);
    unit!(Avx512, f64, __m512d, 8, 14, 4 turn_4, _mm512_loadu_pd first_wide_8 _mm512_storeu_pd _mm512_set1_pd _mm512_add_pd _mm512_fmadd_pd);
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
}
impl Vectors for f32 {
    #[cfg(target_arch = "x86_64")]
    type Avx2 = x86::Avx2<f32>;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = x86::Avx512<f32>;
}
impl Vectors for f64 {
    #[cfg(target_arch = "x86_64")]
    type Avx2 = x86::Avx2<f64>;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = x86::Avx512<f64>;
}

/// Runs a job on the best unit of the processor.
pub fn run<T: Vectors, J: Job<T>>(job: J) -> J::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma,bmi1,bmi2")]
        unsafe fn avx2<T: Vectors, J: Job<T>>(job: J) -> J::Output {
            // SAFETY: the caller's promise.
            unsafe { job.run::<T::Avx2>() }
        }
        #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi1,bmi2")]
        unsafe fn avx512<T: Vectors, J: Job<T>>(job: J) -> J::Output {
            // SAFETY: the caller's promise.
            unsafe { job.run::<T::Avx512>() }
        }
        // SAFETY: the processor has the instructions of its set.
        match isa() {
            Isa::Avx512 => return unsafe { avx512(job) },
            Isa::Avx2 => return unsafe { avx2(job) },
            Isa::Baseline => {}
        }
    }
    // SAFETY: it has no instructions of its own.
    unsafe { job.run::<Portable<T>>() }
}

/// Rows and columns of the tiles that `run` computes.
pub fn tile_size<T: Vectors>() -> [usize; 2] {
    struct Size;
    impl<T> Job<T> for Size {
        type Output = [usize; 2];
        #[inline(always)]
        unsafe fn run<U: Unit<Float = T>>(self) -> [usize; 2] {
            [U::ROWS, U::WIDTH]
        }
    }
    run::<T, Size>(Size)
}

/// What the sums of a tile are added to.
#[derive(Clone, Copy)]
pub enum Start<T> {
    Zero,
    /// The result as it is.
    Result,
    /// One number for each row.
    Rows(*const T),
}

/// The rows of a first factor, one term at a time.
pub trait Rows<T>: Copy {
    /// # Safety
    /// The term has a row `i`.
    unsafe fn get(self, i: usize) -> T;
    /// The next term of `rows` rows.
    fn next(self, rows: usize) -> Self;
}

/// Rows of a panel: those of a term lie side by side.
#[derive(Clone, Copy)]
pub struct Packed<T>(pub *const T);
impl<T: Copy> Rows<T> for Packed<T> {
    #[inline(always)]
    unsafe fn get(self, i: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { *self.0.add(i) }
    }
    #[inline(always)]
    fn next(self, rows: usize) -> Packed<T> {
        Packed(self.0.wrapping_add(rows))
    }
}

/// Rows of a matrix in memory, with the distances of rows and of terms.
#[derive(Clone, Copy)]
pub struct Strided<T>(pub *const T, pub [usize; 2]);
impl<T: Copy> Rows<T> for Strided<T> {
    #[inline(always)]
    unsafe fn get(self, i: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { *self.0.add(i * self.1[0]) }
    }
    #[inline(always)]
    fn next(self, _rows: usize) -> Strided<T> {
        Strided(self.0.wrapping_add(self.1[1]), self.1)
    }
}

/// Packs `filled` columns of a matrix of `terms` rows into a panel of `width`; missing columns are zero.
///
/// # Safety
/// The columns lie inside the matrix, and the panel in memory.
#[inline(always)]
pub unsafe fn pack<T: Vectors>(from: Matrix<T>, terms: usize, filled: usize, width: usize, to: *mut T) {
    // SAFETY: the caller's promise.
    unsafe {
        if filled < width {
            to.write_bytes(0, terms * width); // zero bits are 0.0
        }
        if from.cols == 1 {
            (0..terms).for_each(|p| to.add(p * width).copy_from_nonoverlapping(from.at(p, 0), filled));
        } else {
            run(Turned { from, terms, filled, width, to });
        }
    }
}

/// Packing columns whose elements do not lie side by side; best where their terms do.
struct Turned<T> {
    from: Matrix<T>,
    terms: usize,
    filled: usize,
    width: usize,
    to: *mut T,
}

impl<T: Vectors> Job<T> for Turned<T> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<U: Unit<Float = T>>(self) {
        let Turned { from, terms, filled, width, to } = self;
        // What whole blocks cover. A few terms of all columns at a time: their lines of the panel stay in L1.
        let whole = |n: usize| if from.rows == 1 { n - n % U::SIDE } else { 0 };
        // SAFETY: the columns lie inside the matrix, and the panel in memory.
        unsafe {
            for p in (0..whole(terms)).step_by(U::SIDE) {
                for j in (0..whole(filled)).step_by(U::SIDE) {
                    U::turn(from.at(p, j), from.cols, to.add(p * width + j), width);
                }
            }
            for begin in (0..terms).step_by(16) {
                for j in 0..filled {
                    let done = if j < whole(filled) { whole(terms) } else { 0 };
                    for p in begin.max(done)..terms.min(begin + 16) {
                        *to.add(p * width + j) = *from.at(p, j);
                    }
                }
            }
        }
    }
}

/// Rows of a matrix in memory with a distance known to the compiler, so that their addresses need no registers; terms lie
/// side by side.
#[derive(Clone, Copy)]
pub struct Apart<T, const STEP: usize>(pub *const T);
impl<T: Copy, const STEP: usize> Rows<T> for Apart<T, STEP> {
    #[inline(always)]
    unsafe fn get(self, i: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { *self.0.add(i * STEP) }
    }
    #[inline(always)]
    fn next(self, _rows: usize) -> Apart<T, STEP> {
        Apart(self.0.wrapping_add(1))
    }
}

/// Rows that begin anywhere in memory, at these offsets, each with its terms side by side.
#[derive(Clone, Copy)]
pub struct Scattered<T>(pub *const T, pub *const usize);
impl<T: Copy> Rows<T> for Scattered<T> {
    #[inline(always)]
    unsafe fn get(self, i: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { *self.0.add(*self.1.add(i)) }
    }
    #[inline(always)]
    fn next(self, _rows: usize) -> Scattered<T> {
        Scattered(self.0.wrapping_add(1), self.1)
    }
}

/// A tile of `terms` terms with `cols` columns inside the result.
#[derive(Clone, Copy)]
pub struct Tile<T, A = Packed<T>> {
    pub terms: usize,
    pub a: A,
    pub b: *const T,
    pub out: Matrix<T>,
    pub cols: usize,
    pub start: Start<T>,
}

impl<T: Arith, A: Rows<T>> Tile<T, A> {
    /// Computes the tile with `rows` rows, at most those of the unit.
    ///
    /// # Safety
    /// The factors hold the terms, of `rows` and of a whole width of elements; rows, columns and the start lie in memory.
    #[inline(always)]
    pub unsafe fn run<U: Unit<Float = T>>(self, rows: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match rows {
                1 => self.rows::<U, 1, VECTORS>(),
                2 => self.rows::<U, 2, VECTORS>(),
                3 => self.rows::<U, 3, VECTORS>(),
                4 => self.rows::<U, 4, VECTORS>(),
                5 if U::ROWS >= 5 => self.rows::<U, 5, VECTORS>(),
                6 if U::ROWS >= 6 => self.rows::<U, 6, VECTORS>(),
                7 if U::ROWS >= 7 => self.rows::<U, 7, VECTORS>(),
                8 if U::ROWS >= 8 => self.rows::<U, 8, VECTORS>(),
                9 if U::ROWS >= 9 => self.rows::<U, 9, VECTORS>(),
                10 if U::ROWS >= 10 => self.rows::<U, 10, VECTORS>(),
                11 if U::ROWS >= 11 => self.rows::<U, 11, VECTORS>(),
                12 if U::ROWS >= 12 => self.rows::<U, 12, VECTORS>(),
                13 if U::ROWS >= 13 => self.rows::<U, 13, VECTORS>(),
                14 if U::ROWS >= 14 => self.rows::<U, 14, VECTORS>(),
                _ => debug_assert!(false, "no tile has {rows} rows"),
            }
        }
    }

    /// Computes a tile of the unit's rows and of half its columns, one vector.
    ///
    /// # Safety
    /// As for `run`, with panels of half the width.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub unsafe fn narrow<U: Unit<Float = T>>(self) {
        // SAFETY: the caller's promise.
        unsafe {
            match U::ROWS {
                14 => self.rows::<U, 14, 1>(),
                6 => self.rows::<U, 6, 1>(),
                4 => self.rows::<U, 4, 1>(),
                rows => debug_assert!(false, "no unit has {rows} rows"),
            }
        }
    }

    #[allow(clippy::needless_range_loop)] // the sums stay in registers only if all their indices are constants
    #[inline(always)]
    unsafe fn rows<U: Unit<Float = T>, const R: usize, const V: usize>(self) {
        let (out, width) = (self.out, V * U::LANES);
        // SAFETY: the caller's promise about panels and result.
        unsafe {
            let mut sums = [[U::splat(T::ZERO); V]; R];
            if let Start::Rows(start) = self.start {
                for i in 0..R {
                    sums[i] = [U::splat(*start.add(i)); V];
                }
            }
            let (mut a, mut b) = (self.a, self.b);
            for _ in 0..self.terms {
                let mut row = [U::splat(T::ZERO); V];
                for j in 0..V {
                    row[j] = U::load(b.add(j * U::LANES));
                }
                for i in 0..R {
                    let x = U::splat(a.get(i));
                    for j in 0..V {
                        sums[i][j] = U::fma(x, row[j], sums[i][j]);
                    }
                }
                (a, b) = (a.next(R), b.add(width));
            }
            let onto = matches!(self.start, Start::Result);
            if out.cols == 1 && self.cols == width {
                for i in 0..R {
                    for j in 0..V {
                        let at = out.at(i, j * U::LANES);
                        U::store(at, if onto { U::add(U::load(at), sums[i][j]) } else { sums[i][j] });
                    }
                }
                return;
            }
            let mut flat = [T::ZERO; TALLEST * WIDEST];
            for i in 0..R {
                for j in 0..V {
                    U::store(flat.as_mut_ptr().add((i * V + j) * U::LANES), sums[i][j]);
                }
            }
            for i in 0..R {
                for j in 0..self.cols {
                    let (at, sum) = (out.at(i, j), flat[i * width + j]);
                    *at = if onto { (*at).plus(sum) } else { sum };
                }
            }
        }
    }
}
