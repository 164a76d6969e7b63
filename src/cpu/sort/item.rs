//! Keys: unsigned integers whose order is that of the elements, packed with a position into one integer.

use crate::dtype::Element;

/// A key above a position.
pub trait Item: Copy + Ord + Default + Send + Sync + 'static {
    /// Bits of the key, which are the upper ones.
    const KEY_BITS: u32;
    fn place(self) -> usize;
    /// `bits` bits of the key from bit `from` of it.
    fn digit(self, from: u32, bits: u32) -> usize;
    /// Whether the key alone is smaller.
    fn key_below(self, other: Self) -> bool;
}
impl Item for u64 {
    const KEY_BITS: u32 = 32;
    #[inline(always)]
    fn place(self) -> usize {
        self as u32 as usize
    }
    #[inline(always)]
    fn digit(self, from: u32, bits: u32) -> usize {
        (self >> (32 + from)) as usize & ((1 << bits) - 1)
    }
    #[inline(always)]
    fn key_below(self, other: u64) -> bool {
        self >> 32 < other >> 32
    }
}
impl Item for u128 {
    const KEY_BITS: u32 = 64;
    #[inline(always)]
    fn place(self) -> usize {
        self as u64 as usize
    }
    #[inline(always)]
    fn digit(self, from: u32, bits: u32) -> usize {
        (self >> (64 + from)) as usize & ((1 << bits) - 1)
    }
    #[inline(always)]
    fn key_below(self, other: u128) -> bool {
        self >> 64 < other >> 64
    }
}

/// An element that has a key.
pub trait Key: Element + PartialOrd {
    /// The least element, where all lie so close to it that the difference makes a short key.
    fn base(_all: &[Self]) -> Option<Self> {
        None
    }
    /// The item with a short key.
    fn short(self, _base: Self, flip: bool, place: usize) -> u64 {
        pack_32(0, flip, place)
    }
    type Item: Item;
    /// The item of this element at a position; `flip` reverses the order of the keys, not of the positions.
    fn item(self, flip: bool, place: usize) -> Self::Item;
}

/// Orders the bits of a 32-bit float: NaN last, and both zeros alike.
#[inline(always)]
fn order_32(x: f32) -> u32 {
    let bits = (x + 0.0).to_bits();
    let key = bits ^ (((bits as i32 >> 31) as u32) | 0x8000_0000);
    if x.is_nan() { u32::MAX } else { key }
}
#[inline(always)]
fn order_64(x: f64) -> u64 {
    let bits = (x + 0.0).to_bits();
    let key = bits ^ (((bits as i64 >> 63) as u64) | 0x8000_0000_0000_0000);
    if x.is_nan() { u64::MAX } else { key }
}
#[inline(always)]
fn pack_32(key: u32, flip: bool, place: usize) -> u64 {
    ((if flip { !key } else { key } as u64) << 32) | place as u32 as u64
}
#[inline(always)]
fn pack_64(key: u64, flip: bool, place: usize) -> u128 {
    ((if flip { !key } else { key } as u128) << 64) | place as u128
}

impl Key for f32 {
    type Item = u64;
    #[inline(always)]
    fn item(self, flip: bool, place: usize) -> u64 {
        pack_32(order_32(self), flip, place)
    }
}
impl Key for i32 {
    type Item = u64;
    #[inline(always)]
    fn item(self, flip: bool, place: usize) -> u64 {
        pack_32(self as u32 ^ 0x8000_0000, flip, place)
    }
}
impl Key for f64 {
    type Item = u128;
    #[inline(always)]
    fn item(self, flip: bool, place: usize) -> u128 {
        pack_64(order_64(self), flip, place)
    }
}
impl Key for i64 {
    fn base(all: &[i64]) -> Option<i64> {
        let (low, high) = all.iter().fold((i64::MAX, i64::MIN), |(l, h), &v| (l.min(v), h.max(v)));
        (high.checked_sub(low)? <= u32::MAX as i64).then_some(low)
    }
    #[inline(always)]
    fn short(self, base: i64, flip: bool, place: usize) -> u64 {
        pack_32((self - base) as u32, flip, place)
    }
    type Item = u128;
    #[inline(always)]
    fn item(self, flip: bool, place: usize) -> u128 {
        pack_64(self as u64 ^ 0x8000_0000_0000_0000, flip, place)
    }
}
