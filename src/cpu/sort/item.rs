//! Keys: unsigned integers whose order is that of the elements, packed with a position into one integer.

use crate::dtype::Element;

/// A key above a position.
pub trait Item: Copy + Ord + Default + Send + Sync + 'static {
    fn place(self) -> usize;
    /// Whether the key alone is smaller.
    fn key_below(self, other: Self) -> bool;
}
impl Item for u64 {
    #[inline(always)]
    fn place(self) -> usize {
        self as u32 as usize
    }
    #[inline(always)]
    fn key_below(self, other: u64) -> bool {
        self >> 32 < other >> 32
    }
}
impl Item for u128 {
    #[inline(always)]
    fn place(self) -> usize {
        self as u64 as usize
    }
    #[inline(always)]
    fn key_below(self, other: u128) -> bool {
        self >> 64 < other >> 64
    }
}

/// An element that has a key.
pub trait Key: Element + PartialOrd {
    type Item: Item;
    /// The item of this element at a position; `flip` reverses the order of the keys, not of the positions.
    fn item(self, flip: bool, place: usize) -> Self::Item;
    /// An integer in the order of the elements.
    fn key(self) -> u64;
    /// How the keys of some elements are made short.
    fn spread<'a>(all: impl Iterator<Item = &'a Self>) -> Spread
    where
        Self: 'a;
}

/// Keys above `low`, of which so much is cut off below that 32 bits are left.
pub struct Spread {
    low: u64,
    pub shift: u32,
}

impl Spread {
    const NONE: Spread = Spread { low: 0, shift: 0 };
    fn of(keys: impl Iterator<Item = u64>) -> Spread {
        let (low, high) = keys.fold((u64::MAX, 0), |(l, h), k| (l.min(k), h.max(k)));
        let bits = u64::BITS - high.saturating_sub(low).leading_zeros();
        Spread { low, shift: bits.saturating_sub(u32::BITS) }
    }
    #[inline(always)]
    pub fn short(&self, key: u64) -> u32 {
        ((key - self.low) >> self.shift) as u32
    }
}

/// A short key above a position.
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
    fn spread<'a>(_all: impl Iterator<Item = &'a f32>) -> Spread {
        Spread::NONE
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
    fn spread<'a>(_all: impl Iterator<Item = &'a i32>) -> Spread {
        Spread::NONE
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
    fn spread<'a>(all: impl Iterator<Item = &'a f64>) -> Spread {
        Spread::of(all.map(|x| x.key()))
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
    fn spread<'a>(all: impl Iterator<Item = &'a i64>) -> Spread {
        Spread::of(all.map(|x| x.key()))
    }
}
