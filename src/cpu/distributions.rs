//! Distributions as branch-free formulas on blocks of random words.
//!
//! `random.rs` documents them; the shaders repeat them operation by operation, so multiply-adds are never fused.

use super::math::{self, Float};
use super::number_class::Plain;
use crate::dtype::Element;

/// Turns a block of four words into `N` elements.
pub trait Draw<const N: usize>: Copy + Sync {
    type Out: Element;
    fn draw(&self, words: [u32; 4]) -> [Self::Out; N];
}

#[derive(Clone, Copy)]
pub struct Uniform32 {
    pub from: f32,
    pub width: f32,
    pub bits: u32,
}
#[derive(Clone, Copy)]
pub struct Uniform64 {
    pub from: f64,
    pub width: f64,
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
pub struct Exponential32 {
    pub lambda: f32,
}
#[derive(Clone, Copy)]
pub struct Exponential64 {
    pub lambda: f64,
}
#[derive(Clone, Copy)]
pub struct Below {
    pub threshold: u64,
}
#[derive(Clone, Copy)]
pub struct Integer32 {
    pub low: i64,
    pub range: u64,
}
#[derive(Clone, Copy)]
pub struct Integer64 {
    pub low: i64,
    pub range: u64,
}

/// The top 24 bits as an integer below 2^24.
#[inline(always)]
fn top_24(w: u32) -> f32 {
    (w >> 8) as i32 as f32
}
/// The top 53 bits of two words, as an integer below 2^53, through the bits of a float: AVX2 has no 64-bit conversion.
#[inline(always)]
fn top_53(low: u32, high: u32) -> f64 {
    let upper = f64::from_bits(0x4330_0000_0000_0000 | (high >> 11) as u64) - 4503599627370496.0;
    let rest = ((high as u64) << 21 | (low >> 11) as u64) & 0xffff_ffff;
    let lower = f64::from_bits(0x4330_0000_0000_0000 | rest) - 4503599627370496.0;
    upper * 4294967296.0 + lower
}
pub const TINY_32: f32 = 1.0 / 16777216.0;
pub const TINY_64: f64 = 1.0 / 9007199254740992.0;

/// Two standard normal numbers from u1 in (0, 1] and u2 in [0, 1).
#[inline(always)]
fn box_muller<B: Float>(u1: B, u2: B) -> (B, B) {
    let r = (B::of(-2.0) * math::ln_mild::<B, Plain>(u1)).sqrt();
    let (sin, cos) = math::sin_cos_turn::<B, Plain>(u2);
    (r * cos, r * sin)
}

impl Draw<4> for Uniform32 {
    type Out = f32;
    #[inline(always)]
    fn draw(&self, words: [u32; 4]) -> [f32; 4] {
        let unit = 1.0 / (1u32 << self.bits) as f32;
        words.map(|w| ((w >> (32 - self.bits)) as i32 as f32 * unit) * self.width + self.from)
    }
}
impl Draw<2> for Uniform64 {
    type Out = f64;
    #[inline(always)]
    fn draw(&self, [a, b, c, d]: [u32; 4]) -> [f64; 2] {
        [top_53(a, b), top_53(c, d)].map(|x| (x * TINY_64) * self.width + self.from)
    }
}
impl Draw<4> for Normal32 {
    type Out = f32;
    #[inline(always)]
    fn draw(&self, [a, b, c, d]: [u32; 4]) -> [f32; 4] {
        let pair = |a, b| box_muller((top_24(a) + 1.0) * TINY_32, top_24(b) * TINY_32);
        let ((p, q), (r, s)) = (pair(a, b), pair(c, d));
        [p, q, r, s].map(|x| x * self.std + self.mean)
    }
}
impl Draw<2> for Normal64 {
    type Out = f64;
    #[inline(always)]
    fn draw(&self, [a, b, c, d]: [u32; 4]) -> [f64; 2] {
        let (p, q) = box_muller((top_53(a, b) + 1.0) * TINY_64, top_53(c, d) * TINY_64);
        [p, q].map(|x| x * self.std + self.mean)
    }
}
impl Exponential32 {
    // A named function: a closure this long would not be inlined, and so not compiled for AVX2.
    #[inline(always)]
    fn one(&self, w: u32) -> f32 {
        (0.0 - math::ln_mild::<f32, Plain>((top_24(w) + 1.0) * TINY_32)) / self.lambda
    }
}
impl Draw<4> for Exponential32 {
    type Out = f32;
    #[inline(always)]
    fn draw(&self, words: [u32; 4]) -> [f32; 4] {
        let [a, b, c, d] = words;
        [self.one(a), self.one(b), self.one(c), self.one(d)]
    }
}
impl Draw<2> for Exponential64 {
    type Out = f64;
    #[inline(always)]
    fn draw(&self, [a, b, c, d]: [u32; 4]) -> [f64; 2] {
        let one = |a, b| (0.0 - math::ln_mild::<f64, Plain>((top_53(a, b) + 1.0) * TINY_64)) / self.lambda;
        [one(a, b), one(c, d)]
    }
}
impl Draw<4> for Below {
    type Out = bool;
    #[inline(always)]
    fn draw(&self, words: [u32; 4]) -> [bool; 4] {
        words.map(|w| (w as u64) < self.threshold)
    }
}
impl Draw<4> for Integer32 {
    type Out = i64;
    #[inline(always)]
    fn draw(&self, words: [u32; 4]) -> [i64; 4] {
        // The range may be 2^32 itself: then the word is the number.
        words.map(|w| self.low.wrapping_add(((w as u64).wrapping_mul(self.range) >> 32) as i64))
    }
}
impl Draw<2> for Integer64 {
    type Out = i64;
    #[inline(always)]
    fn draw(&self, [a, b, c, d]: [u32; 4]) -> [i64; 2] {
        [(a, b), (c, d)].map(|(low, high)| {
            let word = (high as u64) << 32 | low as u64;
            let scaled = if self.range == 0 { word } else { ((word as u128 * self.range as u128) >> 64) as u64 };
            self.low.wrapping_add(scaled as i64)
        })
    }
}
/// The high half of a 64-bit word, as a sort key.
#[derive(Clone, Copy)]
pub struct High;
impl Draw<2> for High {
    type Out = i64;
    #[inline(always)]
    fn draw(&self, [_, b, _, d]: [u32; 4]) -> [i64; 2] {
        [b as i64, d as i64]
    }
}
