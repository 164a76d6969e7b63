//! Least-significant-digit radix sort of items by their keys; positions come in ascending, so they need no pass.

use super::item::Item;
use crate::cpu::temp::Temp;
use crate::error::Result;

/// Bits of a digit: 2,048 counters stay in L1, and 32-bit keys take three passes.
const BITS: u32 = 11;
const BUCKETS: usize = 1 << BITS;
/// Below this the comparison sort is faster.
const SHORT: usize = 1024;

/// Whether a line of this length goes through the comparison sort; the counters have 32 bits.
fn compared(length: usize) -> bool {
    length < SHORT || length > u32::MAX as usize
}

/// Memory for sorting lines of up to `length` items.
pub struct Sorter<I> {
    items: Temp<I>,
    other: Temp<I>,
    counts: Vec<[u32; BUCKETS]>,
}

impl<I: Item> Sorter<I> {
    pub fn new(length: usize) -> Result<Sorter<I>> {
        let (spare, digits) = if compared(length) { (0, 0) } else { (length, I::KEY_BITS.div_ceil(BITS) as usize) };
        Ok(Sorter { items: Temp::new(length)?, other: Temp::new(spare)?, counts: vec![[0; BUCKETS]; digits] })
    }

    /// Sorts `n` items, as many as there is room for, that `make` gives for the positions in ascending order.
    pub fn sort(&mut self, n: usize, make: impl Fn(usize) -> I) -> &[I] {
        let items = self.items.ptr();
        if compared(n) {
            // SAFETY: the memory holds `n` items, all of which are written before they are read.
            unsafe {
                (0..n).for_each(|i| items.add(i).write(make(i)));
                let items = std::slice::from_raw_parts_mut(items, n);
                items.sort_unstable();
                return items;
            }
        }
        self.counts.iter_mut().for_each(|c| c.fill(0));
        for i in 0..n {
            let item = make(i);
            for (p, counts) in self.counts.iter_mut().enumerate() {
                counts[item.digit(p as u32 * BITS, BITS)] += 1;
            }
            // SAFETY: the memory holds `n` items.
            unsafe { items.add(i).write(item) };
        }
        let (mut from, mut to) = (items, self.other.ptr());
        for (p, counts) in self.counts.iter_mut().enumerate() {
            let shift = p as u32 * BITS;
            // SAFETY: both blocks hold `n` items; the counts say where each digit's items go, `n` in all.
            unsafe {
                if counts[(*from).digit(shift, BITS)] as usize == n {
                    continue; // one digit everywhere: nothing moves
                }
                let mut start = 0;
                for c in counts.iter_mut() {
                    start += std::mem::replace(c, start);
                }
                for i in 0..n {
                    let item = *from.add(i);
                    let slot = counts.get_unchecked_mut(item.digit(shift, BITS));
                    to.add(*slot as usize).write(item);
                    *slot += 1;
                }
            }
            std::mem::swap(&mut from, &mut to);
        }
        // SAFETY: the last pass has written `n` items here.
        unsafe { std::slice::from_raw_parts(from, n) }
    }
}
