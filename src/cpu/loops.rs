//! Loops of a rule over contiguous memory: one per number class and instruction set.
//!
//! `Loops` is what an elementwise op carries: `Loops::NONE.num::<2, Add>()`. It is built in a `const`, out of generic
//! functions. Instruction sets: the baseline and AVX2 for every rule, AVX-512 only for `real` rules, which are
//! compute-bound; more would cost compile time and wheel size without gain. A loop works block by block through a small
//! array, so that its output may be one of its inputs: writing directly over an input would prevent LLVM from
//! vectorising.

use super::isa::{clear_upper, isa};
use super::number_class::*;
use crate::dtype::{DType, Truth, c64, c128};
use std::mem::MaybeUninit;
use std::num::Wrapping;

/// Runs a rule over `n` elements. There are as many inputs as the rule has operands.
///
/// # Safety
/// Inputs and output hold `n` aligned elements of the loop's types; the output is an input or overlaps none.
pub type LoopFn = unsafe fn(inputs: *const *const u8, out: *mut u8, n: usize);

/// The types that loops are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    F32,
    F64,
    I64,
    C128,
    I32,
    U8,
    C64,
    Bool,
}

impl Class {
    /// The dtype whose memory a loop of this class reads.
    pub const fn dtype(self) -> DType {
        match self {
            Class::F32 => DType::F32,
            Class::F64 => DType::F64,
            Class::I64 => DType::I64,
            Class::C128 => DType::C128,
            Class::I32 => DType::I32,
            Class::U8 => DType::U8,
            Class::C64 => DType::C64,
            Class::Bool => DType::Bool,
        }
    }
    /// The classes that compute a dtype, by preference; the second is used if a rule lacks the first.
    const fn of(d: DType) -> (Class, Class) {
        match d {
            DType::F64 => (Class::F64, Class::F64),
            d if d.is_float() => (Class::F32, Class::F32),
            DType::C32 | DType::C64 => (Class::C64, Class::C128),
            DType::C128 => (Class::C128, Class::C128),
            DType::I8 | DType::I16 | DType::I32 => (Class::I32, Class::I64),
            DType::U8 => (Class::U8, Class::I64),
            DType::Bool => (Class::Bool, Class::I64),
            _ => (Class::I64, Class::I64),
        }
    }
}

/// The loops of one class by instruction set, and the dtype that they write.
#[derive(Clone, Copy)]
pub struct Entry {
    by_isa: [LoopFn; 3],
    pub result: DType,
    /// How an element is computed depends on its block: blocks with operands out of the fast path's range take another.
    pub checked: bool,
}

impl Entry {
    #[inline]
    pub fn function(&self) -> LoopFn {
        self.by_isa[isa() as usize]
    }
}

/// The loops of an op: usually of one rule, but classes may have different rules.
#[derive(Clone, Copy)]
pub struct Loops {
    entries: [Option<Entry>; 8],
    /// The rule in 64 bits gives the same bits for signed and unsigned numbers: it neither compares nor divides.
    sign_blind: bool,
    /// Elements that make a task worth a thread.
    pub grain: usize,
}

/// About 30 us of work: several times the cost of starting a task.
const CHEAP: usize = 1 << 16;
const HEAVY: usize = 1 << 14;

impl Loops {
    pub const NONE: Loops = Loops { entries: [None; 8], sign_blind: false, grain: CHEAP };

    const fn with(mut self, class: Class, entry: Entry) -> Loops {
        self.entries[class as usize] = Some(entry);
        self
    }
    const fn sign_blind(mut self, yes: bool) -> Loops {
        self.sign_blind = yes;
        self
    }
    /// A rule for the wide class replaces the one that the narrow class may have.
    const fn without(mut self, class: Class) -> Loops {
        self.entries[class as usize] = None;
        self
    }
    /// Overrides the minimum number of elements per task.
    pub const fn grain(mut self, elements: usize) -> Loops {
        self.grain = elements;
        self
    }
    pub const fn num<const N: usize, R: MapNum<N>>(self) -> Loops {
        self.sign_blind(true)
            .with(Class::F32, light::<N, ViaNum<R>, F32, F32, F32V, F32V>(DType::F32))
            .with(Class::F64, light::<N, ViaNum<R>, F64, F64, F64V, F64V>(DType::F64))
            .with(Class::C128, light::<N, ViaNum<R>, c128, c128, c128, c128>(DType::C128))
            .with(Class::C64, light::<N, ViaNum<R>, c64, c64, c64, c64>(DType::C64))
            .with(Class::I64, light::<N, ViaNum<R>, I64, I64, I64, I64>(DType::I64))
            .with(Class::I32, light::<N, ViaNum<R>, I32, I32, I32, I32>(DType::I32))
            .with(Class::U8, light::<N, ViaNum<R>, U8, U8, U8, U8>(DType::U8))
            .with(Class::Bool, light::<N, ViaNum<R>, Truth, Truth, Truth, Truth>(DType::Bool))
    }
    pub const fn ordered<const N: usize, R: MapOrdered<N>>(self) -> Loops {
        self.sign_blind(false)
            .with(Class::F32, light::<N, ViaOrdered<R>, F32, F32, F32V, F32V>(DType::F32))
            .with(Class::F64, light::<N, ViaOrdered<R>, F64, F64, F64V, F64V>(DType::F64))
            .with(Class::I64, light::<N, ViaOrdered<R>, I64, I64, I64, I64>(DType::I64))
            .with(Class::I32, light::<N, ViaOrdered<R>, I32, I32, I32, I32>(DType::I32))
            .with(Class::U8, light::<N, ViaOrdered<R>, U8, U8, U8, U8>(DType::U8))
            .with(Class::Bool, light::<N, ViaOrdered<R>, Truth, Truth, Truth, Truth>(DType::Bool))
    }
    pub const fn real<const N: usize, R: MapReal<N>>(self) -> Loops {
        self.with(Class::F32, heavy::<N, ViaReal<R>, F32, F32V>(DType::F32))
            .with(Class::F64, heavy::<N, ViaReal<R>, F64, F64V>(DType::F64))
            .grain(HEAVY)
    }
    /// Replaces the narrow integer loops too: those dtypes then use this loop in 64 bits.
    pub const fn int<const N: usize, R: MapInt<N>>(self) -> Loops {
        self.sign_blind(false)
            .without(Class::I32)
            .without(Class::U8)
            .without(Class::Bool)
            .with(Class::I64, light::<N, ViaInt<R>, I64, I64, I64, I64>(DType::I64))
    }
    pub const fn bits<const N: usize, R: MapBits<N>>(self) -> Loops {
        self.sign_blind(true)
            .with(Class::I64, light::<N, ViaBits<R>, I64, I64, I64, I64>(DType::I64))
            .with(Class::I32, light::<N, ViaBits<R>, I32, I32, I32, I32>(DType::I32))
            .with(Class::U8, light::<N, ViaBits<R>, U8, U8, U8, U8>(DType::U8))
            .with(Class::Bool, light::<N, ViaBits<R>, Truth, Truth, Truth, Truth>(DType::Bool))
    }
    pub const fn complex<const N: usize, R: MapComplex<N>>(self) -> Loops {
        self.without(Class::C64).with(Class::C128, light::<N, ViaComplex<R>, c128, c128, c128, c128>(DType::C128))
    }
    pub const fn real_of_complex<const N: usize, R: RealOfComplex<N>>(self) -> Loops {
        self.without(Class::C64).with(Class::C128, light::<N, ViaParts<R>, c128, f64, c128, f64>(DType::F64))
    }
    pub const fn test_num<const N: usize, R: TestNum<N>>(self) -> Loops {
        self.sign_blind(true)
            .with(Class::F32, light::<N, ViaTestNum<R>, F32, bool, F32V, bool>(DType::Bool))
            .with(Class::F64, light::<N, ViaTestNum<R>, F64, bool, F64V, bool>(DType::Bool))
            .with(Class::C128, light::<N, ViaTestNum<R>, c128, bool, c128, bool>(DType::Bool))
            .with(Class::C64, light::<N, ViaTestNum<R>, c64, bool, c64, bool>(DType::Bool))
            .with(Class::I64, light::<N, ViaTestNum<R>, I64, bool, I64, bool>(DType::Bool))
            .with(Class::I32, light::<N, ViaTestNum<R>, I32, bool, I32, bool>(DType::Bool))
            .with(Class::U8, light::<N, ViaTestNum<R>, U8, bool, U8, bool>(DType::Bool))
            .with(Class::Bool, light::<N, ViaTestNum<R>, Truth, bool, Truth, bool>(DType::Bool))
    }
    pub const fn test_ordered<const N: usize, R: TestOrdered<N>>(self) -> Loops {
        self.sign_blind(false)
            .with(Class::F32, light::<N, ViaTest<R>, F32, bool, F32V, bool>(DType::Bool))
            .with(Class::F64, light::<N, ViaTest<R>, F64, bool, F64V, bool>(DType::Bool))
            .with(Class::I64, light::<N, ViaTest<R>, I64, bool, I64, bool>(DType::Bool))
            .with(Class::I32, light::<N, ViaTest<R>, I32, bool, I32, bool>(DType::Bool))
            .with(Class::U8, light::<N, ViaTest<R>, U8, bool, U8, bool>(DType::Bool))
            .with(Class::Bool, light::<N, ViaTest<R>, Truth, bool, Truth, bool>(DType::Bool))
    }
    pub const fn test_complex<const N: usize, R: TestComplex<N>>(self) -> Loops {
        self.without(Class::C64).with(Class::C128, light::<N, ViaTestComplex<R>, c128, bool, c128, bool>(DType::Bool))
    }

    /// The class and the loops that compute in `compute`.
    #[inline]
    pub fn select(&self, compute: DType) -> Option<(Class, &Entry)> {
        let (first, second) = Class::of(compute);
        if compute == DType::U64 && !self.sign_blind {
            return None;
        }
        match &self.entries[first as usize] {
            Some(e) => Some((first, e)),
            None => self.entries[second as usize].as_ref().map(|e| (second, e)),
        }
    }
    pub fn supports(&self, compute: DType) -> bool {
        self.select(compute).is_some()
    }
    /// The dtype of the result of computing in `compute`: the same, bool, or the component type of a complex one.
    pub fn result(&self, compute: DType) -> Option<DType> {
        let (class, entry) = self.select(compute)?;
        Some(match entry.result {
            DType::Bool => DType::Bool,
            DType::F64 if class == Class::C128 => compute.to_real(),
            _ => compute,
        })
    }
}

type F32 = Fp<f32, Plain>;
type F64 = Fp<f64, Plain>;
type F32V = Fp<f32, Fused>;
type F64V = Fp<f64, Fused>;
type I64 = Wrapping<i64>;
type I32 = Wrapping<i32>;
type U8 = Wrapping<u8>;

/// The application of a rule of any kind to one element, so that there is one set of loops.
trait Apply<const N: usize, T, U> {
    fn apply(x: [T; N]) -> U;
    const CHECKED: bool = false;
    fn ordinary(_x: [T; N]) -> bool {
        true
    }
    /// For blocks with operands outside the fast path's range.
    fn exact(x: [T; N]) -> U {
        Self::apply(x)
    }
    const SHORTENED: bool = false;
    fn is_mild(_x: [T; N]) -> bool {
        false
    }
    /// As `apply`, for blocks of mild operands.
    fn short(x: [T; N]) -> U {
        Self::apply(x)
    }
}
struct ViaNum<R>(R);
struct ViaOrdered<R>(R);
struct ViaReal<R>(R);
struct ViaInt<R>(R);
struct ViaBits<R>(R);
struct ViaComplex<R>(R);
struct ViaParts<R>(R);
struct ViaTestNum<R>(R);
struct ViaTest<R>(R);
struct ViaTestComplex<R>(R);

impl<const N: usize, T: Num, R: MapNum<N>> Apply<N, T, T> for ViaNum<R> {
    #[inline(always)]
    fn apply(x: [T; N]) -> T {
        R::eval(x)
    }
}
impl<const N: usize, T: Ordered, R: MapOrdered<N>> Apply<N, T, T> for ViaOrdered<R> {
    #[inline(always)]
    fn apply(x: [T; N]) -> T {
        R::eval(x)
    }
}
impl<const N: usize, T: Real, R: MapReal<N>> Apply<N, T, T> for ViaReal<R> {
    #[inline(always)]
    fn apply(x: [T; N]) -> T {
        R::eval(x)
    }
    const CHECKED: bool = R::CHECKED;
    #[inline(always)]
    fn ordinary(x: [T; N]) -> bool {
        R::ordinary(x)
    }
    #[inline(never)]
    fn exact(x: [T; N]) -> T {
        T::inexact(R::eval(x.map(T::exact)))
    }
    const SHORTENED: bool = R::SHORTENED;
    #[inline(always)]
    fn is_mild(x: [T; N]) -> bool {
        R::is_mild(x)
    }
    #[inline(always)]
    fn short(x: [T; N]) -> T {
        R::short(x)
    }
}
impl<const N: usize, R: MapInt<N>> Apply<N, I64, I64> for ViaInt<R> {
    #[inline(always)]
    fn apply(x: [I64; N]) -> I64 {
        Wrapping(R::quick(x.map(|v| v.0)))
    }
    const CHECKED: bool = R::ORDINARY.is_some();
    #[inline(always)]
    fn ordinary(x: [I64; N]) -> bool {
        R::ORDINARY.is_none_or(|ordinary| ordinary(x.map(|v| v.0)))
    }
    #[inline(always)]
    fn exact(x: [I64; N]) -> I64 {
        Wrapping(R::eval(x.map(|v| v.0)))
    }
}
impl<const N: usize, T: Bits, R: MapBits<N>> Apply<N, T, T> for ViaBits<R> {
    #[inline(always)]
    fn apply(x: [T; N]) -> T {
        R::eval(x)
    }
}
impl<const N: usize, R: MapComplex<N>> Apply<N, c128, c128> for ViaComplex<R> {
    #[inline(always)]
    fn apply(x: [c128; N]) -> c128 {
        R::quick(x)
    }
    const CHECKED: bool = R::ORDINARY.is_some();
    #[inline(always)]
    fn ordinary(x: [c128; N]) -> bool {
        R::ORDINARY.is_none_or(|ordinary| ordinary(x))
    }
    #[inline(always)]
    fn exact(x: [c128; N]) -> c128 {
        R::eval(x)
    }
}
impl<const N: usize, R: RealOfComplex<N>> Apply<N, c128, f64> for ViaParts<R> {
    #[inline(always)]
    fn apply(x: [c128; N]) -> f64 {
        R::eval(x)
    }
}
impl<const N: usize, T: Num, R: TestNum<N>> Apply<N, T, bool> for ViaTestNum<R> {
    #[inline(always)]
    fn apply(x: [T; N]) -> bool {
        R::eval(x)
    }
}
impl<const N: usize, T: Ordered, R: TestOrdered<N>> Apply<N, T, bool> for ViaTest<R> {
    #[inline(always)]
    fn apply(x: [T; N]) -> bool {
        R::eval(x)
    }
}
impl<const N: usize, R: TestComplex<N>> Apply<N, c128, bool> for ViaTestComplex<R> {
    #[inline(always)]
    fn apply(x: [c128; N]) -> bool {
        R::eval(x)
    }
}

/// `T`, `U` for the baseline, `TV`, `UV` (floats with fused multiply-add) for AVX2 and above.
const fn light<const N: usize, A: Apply<N, T, U> + Apply<N, TV, UV>, T: Copy, U, TV: Copy, UV>(result: DType) -> Entry {
    let base: LoopFn = baseline::<N, A, T, U>;
    let checked = <A as Apply<N, T, U>>::CHECKED;
    if !cfg!(target_arch = "x86_64") {
        return Entry { by_isa: [base; 3], result, checked };
    }
    let wide: LoopFn = avx2::<N, A, TV, UV>;
    Entry { by_isa: [base, wide, wide], result, checked }
}
const fn heavy<const N: usize, A: Apply<N, T, T> + Apply<N, TV, TV>, T: Copy, TV: Copy>(result: DType) -> Entry {
    let base: LoopFn = baseline::<N, A, T, T>;
    let checked = <A as Apply<N, T, T>>::CHECKED;
    if !cfg!(target_arch = "x86_64") {
        return Entry { by_isa: [base; 3], result, checked };
    }
    Entry { by_isa: [base, avx2::<N, A, TV, TV>, avx512::<N, A, TV, TV>], result, checked }
}

/// SAFETY: as `LoopFn`.
unsafe fn baseline<const N: usize, A: Apply<N, T, U>, T: Copy, U>(inputs: *const *const u8, out: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { run::<N, A, T, U>(inputs, out, n) }
}

/// SAFETY: as `LoopFn`, and the processor has the features.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c,bmi1,bmi2"))]
unsafe fn avx2<const N: usize, A: Apply<N, T, U>, T: Copy, U>(inputs: *const *const u8, out: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        run::<N, A, T, U>(inputs, out, n);
        clear_upper();
    }
}

/// SAFETY: as `LoopFn`, and the processor has the features.
#[cfg_attr(
    target_arch = "x86_64",
    target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c,bmi1,bmi2")
)]
unsafe fn avx512<const N: usize, A: Apply<N, T, U>, T: Copy, U>(inputs: *const *const u8, out: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        run::<N, A, T, U>(inputs, out, n);
        clear_upper();
    }
}

/// Elements that are computed into registers or a small array before they are written.
pub(super) const BLOCK: usize = 64;

/// SAFETY: as `LoopFn`.
#[inline(always)]
unsafe fn run<const N: usize, A: Apply<N, T, U>, T: Copy, U>(inputs: *const *const u8, out: *mut u8, n: usize) {
    // SAFETY: `N` inputs and the output hold `n` elements each.
    unsafe {
        let (inputs, out) = ((inputs as *const [*const T; N]).read(), out as *mut U);
        let whole = n - n % BLOCK;
        let mut start = 0;
        while start < whole {
            block::<N, A, T, U>(inputs, start, out, BLOCK);
            start += BLOCK;
        }
        block::<N, A, T, U>(inputs, whole, out, n - whole);
    }
}

/// Element `i` of each input. Generic only over the loads: `map` with a closure would be instantiated for each rule.
///
/// SAFETY: each input has more than `i` elements.
#[inline(always)]
unsafe fn load<const N: usize, T: Copy>(inputs: [*const T; N], i: usize) -> [T; N] {
    let mut x = MaybeUninit::<[T; N]>::uninit();
    // SAFETY: the caller's promise; all `N` entries of `x` are written.
    unsafe {
        let mut k = 0;
        while k < N {
            x.as_mut_ptr().cast::<T>().add(k).write(*inputs[k].add(i));
            k += 1;
        }
        x.assume_init()
    }
}

/// The intermediate array makes the output effectively distinct from the inputs, so that in-place loops vectorise too.
///
/// SAFETY: as `LoopFn`, from `start` on, with `n` at most `BLOCK`.
#[inline(always)]
unsafe fn block<const N: usize, A: Apply<N, T, U>, T: Copy, U>(
    inputs: [*const T; N],
    start: usize,
    out: *mut U,
    n: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut results = MaybeUninit::<[U; BLOCK]>::uninit();
        let to = results.as_mut_ptr() as *mut U;
        let mut mild = A::SHORTENED;
        let mut i = 0;
        while A::SHORTENED && i < n {
            mild &= A::is_mild(load::<N, T>(inputs, start + i));
            i += 1;
        }
        i = 0;
        while mild && i < n {
            to.add(i).write(A::short(load::<N, T>(inputs, start + i)));
            i += 1;
        }
        let mut ordinary = true;
        while A::CHECKED && i < n {
            ordinary &= A::ordinary(load::<N, T>(inputs, start + i));
            i += 1;
        }
        i = if mild { n } else { 0 };
        while ordinary && i < n {
            to.add(i).write(A::apply(load::<N, T>(inputs, start + i)));
            i += 1;
        }
        while A::CHECKED && i < n {
            to.add(i).write(A::exact(load::<N, T>(inputs, start + i)));
            i += 1;
        }
        std::ptr::copy_nonoverlapping(to, out.add(start), n);
    }
}
