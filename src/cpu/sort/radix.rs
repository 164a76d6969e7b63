//! Least-significant-digit radix sort of items by their keys; positions come in ascending, so they need no pass.

use super::item::Item;

/// Bits of a digit: 2,048 counters stay in L1, and 32-bit keys take three passes.
const BITS: u32 = 11;
const BUCKETS: usize = 1 << BITS;
/// Below this the comparison sort is faster.
const SHORT: usize = 1024;

/// Sorts items whose positions ascend.
pub fn sort<I: Item>(items: &mut Vec<I>) {
    if items.len() < SHORT {
        return items.sort_unstable();
    }
    let passes = I::KEY_BITS.div_ceil(BITS);
    let mut counts = vec![[0usize; BUCKETS]; passes as usize];
    for item in items.iter() {
        for (p, counts) in counts.iter_mut().enumerate() {
            counts[item.digit(p as u32 * BITS, BITS)] += 1;
        }
    }
    let mut from = std::mem::take(items);
    let mut to = vec![I::default(); from.len()];
    for (p, counts) in counts.iter_mut().enumerate() {
        let shift = p as u32 * BITS;
        if counts[from[0].digit(shift, BITS)] == from.len() {
            continue; // one digit everywhere: nothing moves
        }
        let mut start = 0;
        for c in counts.iter_mut() {
            start += std::mem::replace(c, start);
        }
        for &item in &from {
            let slot = &mut counts[item.digit(shift, BITS)];
            to[*slot] = item;
            *slot += 1;
        }
        std::mem::swap(&mut from, &mut to);
    }
    *items = from;
}
