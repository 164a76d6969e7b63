//! Sort keys: unsigned integers ordered like the elements, packed with a position into one integer.

use crate::dtype::Element;

/// A key and a position, compared by the key first.
pub trait Item: Copy + Ord + Default + Send + Sync + 'static {
    fn place(self) -> usize;
}
impl Item for u64 {
    #[inline(always)]
    fn place(self) -> usize {
        self as u32 as usize
    }
}
impl Item for u128 {
    #[inline(always)]
    fn place(self) -> usize {
        self as u64 as usize
    }
}

/// An element type with keys.
pub trait Key: Element + PartialOrd {
    type Item: Item;
    /// The item of this element at a position; `flip` reverses the order of the keys, not of the positions.
    fn item(self, flip: bool, place: usize) -> Self::Item;
    /// An integer that is ordered like the elements.
    fn key(self) -> u64;
}

/// The smallest and the largest key.
#[derive(Clone, Copy)]
pub struct Extent {
    low: u64,
    high: u64,
}

impl Extent {
    pub const NONE: Extent = Extent { low: u64::MAX, high: 0 };
    /// All keys of 32 bits.
    pub const WORD: Extent = Extent { low: 0, high: u32::MAX as u64 };
    pub fn of(keys: impl Iterator<Item = u64>) -> Extent {
        keys.fold(Extent::NONE, |e, k| e.with(Extent { low: k, high: k }))
    }
    #[inline(always)]
    pub fn with(self, other: Extent) -> Extent {
        Extent { low: self.low.min(other.low), high: self.high.max(other.high) }
    }
    /// How keys within this range are shortened.
    pub fn spread(self) -> Spread {
        let needed = u64::BITS - self.high.saturating_sub(self.low).leading_zeros();
        let bits = if needed > u32::BITS { SHORT } else { needed };
        Spread { low: self.low, shift: needed - bits, bits }
    }
}

/// Bits to which longer keys are shortened: three digits of the radix sort.
pub const SHORT: u32 = 30;

/// Subtracts `low` from keys and drops the lowest `shift` bits, so that `bits` remain.
pub struct Spread {
    low: u64,
    pub shift: u32,
    pub bits: u32,
}

impl Spread {
    #[inline(always)]
    pub fn short(&self, key: u64) -> u32 {
        ((key - self.low) >> self.shift) as u32
    }
}

/// A short key in the high bits, a position in the low ones.
#[inline(always)]
pub fn pack(key: u32, flip: bool, place: usize) -> u64 {
    ((if flip { !key } else { key } as u64) << 32) | place as u32 as u64
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
fn pack_64(key: u64, flip: bool, place: usize) -> u128 {
    ((if flip { !key } else { key } as u128) << 64) | place as u128
}

impl Key for f32 {
    type Item = u64;
    #[inline(always)]
    fn item(self, flip: bool, place: usize) -> u64 {
        pack(self.key() as u32, flip, place)
    }
    #[inline(always)]
    fn key(self) -> u64 {
        u64::from(order_32(self))
    }
}
impl Key for i32 {
    type Item = u64;
    #[inline(always)]
    fn item(self, flip: bool, place: usize) -> u64 {
        pack(self.key() as u32, flip, place)
    }
    #[inline(always)]
    fn key(self) -> u64 {
        u64::from(self as u32 ^ 0x8000_0000)
    }
}
impl Key for f64 {
    type Item = u128;
    #[inline(always)]
    fn item(self, flip: bool, place: usize) -> u128 {
        pack_64(self.key(), flip, place)
    }
    #[inline(always)]
    fn key(self) -> u64 {
        order_64(self)
    }
}
impl Key for i64 {
    type Item = u128;
    #[inline(always)]
    fn item(self, flip: bool, place: usize) -> u128 {
        pack_64(self.key(), flip, place)
    }
    #[inline(always)]
    fn key(self) -> u64 {
        self as u64 ^ 0x8000_0000_0000_0000
    }
}
impl Key for u64 {
    type Item = u128;
    #[inline(always)]
    fn item(self, flip: bool, place: usize) -> u128 {
        pack_64(self, flip, place)
    }
    #[inline(always)]
    fn key(self) -> u64 {
        self
    }
}
