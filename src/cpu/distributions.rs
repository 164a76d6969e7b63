//! Distributions as branch-free formulas on random words, which `random.rs` documents.

use super::math::{self, Float};
use super::number_class::Plain;
use crate::dtype::{DType, Element};
use half::{bf16, f16};

/// What a distribution makes of words.
pub trait Draw: Copy + Sync {
    type Out: Element;
    /// Words that an element takes.
    const WORDS: usize;
    /// The elements of these words.
    fn fill(&self, words: &[u32], values: &mut [Self::Out]);
}

/// A distribution whose elements are made one by one.
pub trait Each: Copy + Sync {
    type Out: Element;
    const WORDS: usize;
    /// An element of its word, or of its two.
    fn one(&self, word: u32, second: u32) -> Self::Out;
}

impl<D: Each> Draw for D {
    type Out = D::Out;
    const WORDS: usize = <D as Each>::WORDS;
    #[inline(always)]
    fn fill(&self, words: &[u32], values: &mut [Self::Out]) {
        match <D as Each>::WORDS {
            1 => values.iter_mut().zip(words).for_each(|(v, w)| *v = self.one(*w, 0)),
            _ => values.iter_mut().zip(words.as_chunks::<2>().0).for_each(|(v, [a, b])| *v = self.one(*a, *b)),
        }
    }
}

/// Normal numbers are made in blocks of this many.
pub const BLOCK: usize = 16;
const HALF: usize = BLOCK / 2;

#[derive(Clone, Copy)]
pub struct Uniform32 {
    from: f32,
    width: f32,
    /// The least number that the dtype rounds to the end of the range.
    end: f32,
}
#[derive(Clone, Copy)]
pub struct Uniform64 {
    pub from: f64,
    pub to: f64,
}
#[derive(Clone, Copy)]
pub struct Normal32 {
    pub mean: f32,
    pub std: f32,
}
#[derive(Clone, Copy)]
pub struct Normal64 {
    pub mean: f64,
    pub std: f64,
}
#[derive(Clone, Copy)]
pub struct Exponential {
    /// -1 over the rate.
    pub factor: f64,
}
#[derive(Clone, Copy)]
pub struct Below {
    threshold: u64,
}
#[derive(Clone, Copy)]
pub struct Kept<T> {
    pub below: Below,
    pub value: T,
}
#[derive(Clone, Copy)]
pub struct Integer32 {
    low: i64,
    range: f64,
    inverse: f64,
}
#[derive(Clone, Copy)]
pub struct Integer64 {
    pub low: i64,
    pub range: u64,
}

/// The low 24 bits as a number in [0, 1).
#[inline(always)]
fn unit_32(w: u32) -> f32 {
    (w & 0xff_ffff) as i32 as f32 * (1.0 / 16777216.0)
}
/// The low 53 bits of two words, the high half first.
#[inline(always)]
fn low_53(high: u32, low: u32) -> u64 {
    ((high & 0x1f_ffff) as u64) << 32 | low as u64
}
/// The same as a number in [0, 1), through the bits of a float: AVX2 has no 64-bit conversion.
#[inline(always)]
fn unit_64(high: u32, low: u32) -> f64 {
    (whole(high & 0x1f_ffff) * 4294967296.0 + whole(low)) * (1.0 / 9007199254740992.0)
}
/// A word as a float.
#[inline(always)]
fn whole(w: u32) -> f64 {
    f64::from_bits(0x4330_0000_0000_0000 | w as u64) - 4503599627370496.0
}

/// Two standard normal numbers from u and v in [0, 1).
#[inline(always)]
fn box_muller<B: Float>(u: B, v: B) -> (B, B) {
    let r = (B::of(-2.0) * math::ln_mild::<B, Plain>(B::ONE - u)).sqrt();
    let (sin, cos) = math::sin_cos_turn::<B, Plain>(v);
    (r * cos, r * sin)
}

/// Rounds to the dtype and back.
fn rounded(x: f32, dtype: DType) -> f32 {
    match dtype {
        DType::F16 => f16::from_f32(x).to_f32(),
        DType::BF16 => bf16::from_f32(x).to_f32(),
        _ => x,
    }
}

impl Uniform32 {
    /// Numbers in [from, to), which are to be rounded to a dtype.
    pub fn new(from: f64, to: f64, dtype: DType) -> Uniform32 {
        let [from, to] = [from, to].map(|x| rounded(x as f32, dtype));
        let (mut below, mut end) = (from, to);
        let halfway = |below: f32, end: f32| below / 2.0 + end / 2.0;
        // For float32 itself nothing below the end is rounded to it.
        let mut middle = if dtype == DType::F32 { from } else { halfway(from, to) };
        while below < middle && middle < end {
            if rounded(middle, dtype) == to {
                end = middle
            } else {
                below = middle
            }
            middle = halfway(below, end);
        }
        Uniform32 { from, width: to - from, end }
    }
}
impl Each for Uniform32 {
    type Out = f32;
    const WORDS: usize = 1;
    #[inline(always)]
    fn one(&self, w: u32, _: u32) -> f32 {
        let x = unit_32(w).mul_add(self.width, self.from);
        if x >= self.end { self.from } else { x }
    }
}
impl Each for Uniform64 {
    type Out = f64;
    const WORDS: usize = 2;
    #[inline(always)]
    fn one(&self, high: u32, low: u32) -> f64 {
        let x = unit_64(high, low).mul_add(self.to - self.from, self.from);
        if x >= self.to { self.from } else { x }
    }
}
impl Draw for Normal32 {
    type Out = f32;
    const WORDS: usize = 1;
    #[inline(always)]
    fn fill(&self, words: &[u32], values: &mut [f32]) {
        for (w, v) in words.as_chunks::<BLOCK>().0.iter().zip(values.as_chunks_mut::<BLOCK>().0) {
            for j in 0..HALF {
                let (cos, sin) = box_muller(unit_32(w[j]), unit_32(w[j + HALF]));
                v[j] = cos.mul_add(self.std, self.mean);
                v[j + HALF] = sin.mul_add(self.std, self.mean);
            }
        }
    }
}
impl Draw for Normal64 {
    type Out = f64;
    const WORDS: usize = 2;
    #[inline(always)]
    fn fill(&self, words: &[u32], values: &mut [f64]) {
        for (w, v) in words.as_chunks::<{ 2 * BLOCK }>().0.iter().zip(values.as_chunks_mut::<BLOCK>().0) {
            for j in 0..HALF {
                let k = 2 * (j + HALF);
                let (cos, sin) = box_muller(unit_64(w[2 * j], w[2 * j + 1]), unit_64(w[k], w[k + 1]));
                v[j] = cos.mul_add(self.std, self.mean);
                v[j + HALF] = sin.mul_add(self.std, self.mean);
            }
        }
    }
}
impl Each for Exponential {
    type Out = f64;
    const WORDS: usize = 2;
    #[inline(always)]
    fn one(&self, high: u32, low: u32) -> f64 {
        // One minus the number is exact.
        self.factor * math::ln_mild::<f64, Plain>(1.0 - unit_64(high, low))
    }
}
impl Below {
    /// Numbers of [0, 1) below `p`.
    pub fn of(p: f64) -> Below {
        Below { threshold: (p.clamp(0.0, 1.0) * 9007199254740992.0).ceil() as u64 }
    }
}
impl Each for Below {
    type Out = bool;
    const WORDS: usize = 2;
    #[inline(always)]
    fn one(&self, high: u32, low: u32) -> bool {
        low_53(high, low) < self.threshold
    }
}
impl<T: Element> Each for Kept<T> {
    type Out = T;
    const WORDS: usize = 2;
    #[inline(always)]
    fn one(&self, high: u32, low: u32) -> T {
        if self.below.one(high, low) { self.value } else { T::default() }
    }
}
impl Integer32 {
    /// Integers in [low, low + range), for a range up to 2^32.
    pub fn new(low: i64, range: u64) -> Integer32 {
        Integer32 { low, range: range as f64, inverse: 1.0 / range as f64 }
    }
}
impl Each for Integer32 {
    type Out = i64;
    const WORDS: usize = 1;
    /// The remainder by a product with the inverse, which can be one too low or too high, in floats: they vectorise.
    #[inline(always)]
    fn one(&self, w: u32, _: u32) -> i64 {
        let x = whole(w);
        let mut rest = x - (x * self.inverse).floor() * self.range;
        rest += if rest < 0.0 { self.range } else { 0.0 };
        rest -= if rest >= self.range { self.range } else { 0.0 };
        // A whole number below 2^32.
        let bits = (rest + 4503599627370496.0).to_bits() & 0xffff_ffff;
        self.low.wrapping_add(bits as i64)
    }
}
impl Each for Integer64 {
    type Out = i64;
    const WORDS: usize = 2;
    #[inline(always)]
    fn one(&self, high: u32, low: u32) -> i64 {
        let word = (high as u64) << 32 | low as u64;
        self.low.wrapping_add(word.checked_rem(self.range).unwrap_or(word) as i64)
    }
}
