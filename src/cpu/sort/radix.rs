//! Least-significant-digit radix sort of items by their short keys; positions come in ascending, so they need no pass.
//!
//! Long lines are cut into parts, a task each: every part counts its digits, the counts of all say where each part's
//! items of a digit go, and the parts move theirs. The order is the same for any number of parts and threads.
//! Keys of 64 bits are shortened to what tells most elements apart; runs that a short key leaves tied are sorted anew.

use super::item::{Key, Spread, pack};
use crate::cpu::parallel::par_for;
use crate::cpu::temp::Temp;
use crate::cpu::view::Ptr;
use crate::error::Result;
use std::ops::Range;

/// Bits of a digit: 2,048 counters stay in L1, and 32-bit keys take three passes.
const BITS: u32 = 11;
const BUCKETS: usize = 1 << BITS;
/// Below this the comparison sort is faster.
const SHORT: usize = 1024;
/// Items of a part, and the most parts.
const PART: usize = 1 << 17;
const PARTS: usize = 16;

type Counts = [u32; BUCKETS];

/// Whether a line of this length goes through the comparison sort; the counters have 32 bits.
fn compared(length: usize) -> bool {
    length < SHORT || length > u32::MAX as usize
}

/// Memory for sorting lines of up to `length` items.
pub struct Sorter {
    items: Temp<u64>,
    other: Temp<u64>,
    /// One for each part.
    counts: Vec<Counts>,
}

fn digit(item: u64, shift: u32) -> usize {
    (item >> (32 + shift)) as usize & (BUCKETS - 1)
}

impl Sorter {
    pub fn new(length: usize) -> Result<Sorter> {
        let (spare, parts) = if compared(length) { (0, 0) } else { (length, length.div_ceil(PART).clamp(1, PARTS)) };
        Ok(Sorter { items: Temp::new(length)?, other: Temp::new(spare)?, counts: vec![[0; BUCKETS]; parts] })
    }

    /// The elements of a line in their order, as items with their positions.
    pub fn line<T: Key>(&mut self, all: &[T], flip: bool) -> Result<&mut [u64]> {
        let spread = T::spread(all.iter());
        let items = self.sort(all.len(), |i| pack(spread.short(all[i].key()), flip, i));
        if spread.shift > 0 {
            settle(items, all, flip)?;
        }
        Ok(items)
    }

    /// Sorts `n` items, as many as there is room for, that `make` gives for the positions in ascending order.
    pub fn sort(&mut self, n: usize, make: impl Fn(usize) -> u64 + Sync) -> &mut [u64] {
        let (mut from, mut to) = (Ptr(self.items.ptr()), Ptr(self.other.ptr()));
        if compared(n) {
            // SAFETY: the memory holds `n` items, all of which are written before they are read.
            unsafe {
                (0..n).for_each(|i| from.at(i).write(make(i)));
                let items = std::slice::from_raw_parts_mut(from.at(0), n);
                items.sort_unstable();
                return items;
            }
        }
        // SAFETY: the memory holds `n` items, and parts are disjoint.
        each_part(n, self.counts.len(), |_, range| range.for_each(|i| unsafe { from.at(i).write(make(i)) }));
        for shift in (0..u32::BITS).step_by(BITS as usize) {
            if self.pass(n, shift, &from, &to) {
                std::mem::swap(&mut from, &mut to);
            }
        }
        // SAFETY: the last pass has written `n` items here.
        unsafe { std::slice::from_raw_parts_mut(from.at(0), n) }
    }

    /// Moves items by one digit; false where all have the same one and nothing moves.
    fn pass(&mut self, n: usize, shift: u32, from: &Ptr<u64>, to: &Ptr<u64>) -> bool {
        let parts = self.counts.len();
        let counts = Ptr(self.counts.as_mut_ptr());
        each_part(n, parts, |part, range| {
            // SAFETY: a part has its own counters; all `n` items are written.
            let counts: &mut Counts = unsafe { &mut *counts.at(part) };
            counts.fill(0);
            range.for_each(|i| counts[digit(unsafe { *from.at(i) }, shift)] += 1);
        });
        // SAFETY: there is at least one item.
        let first = digit(unsafe { *from.at(0) }, shift);
        if self.counts.iter().map(|c| c[first] as usize).sum::<usize>() == n {
            return false;
        }
        let mut start = 0;
        for bucket in 0..BUCKETS {
            for part in &mut self.counts {
                start += std::mem::replace(&mut part[bucket], start);
            }
        }
        let counts = Ptr(self.counts.as_mut_ptr());
        each_part(n, parts, |part, range| {
            // SAFETY: the counts say where the items of this part go: `n` places in all, each once.
            unsafe {
                let counts: &mut Counts = &mut *counts.at(part);
                for i in range {
                    let item = *from.at(i);
                    let slot = counts.get_unchecked_mut(digit(item, shift));
                    to.at(*slot as usize).write(item);
                    *slot += 1;
                }
            }
        });
        true
    }
}

fn each_part(n: usize, parts: usize, f: impl Fn(usize, Range<usize>) + Sync) {
    let length = n.div_ceil(parts);
    par_for(parts, 1, |some| some.for_each(|part| f(part, (part * length).min(n)..((part + 1) * length).min(n))));
}

/// Sorts runs of equal short keys by the whole keys. Positions within a run are ascending.
fn settle<T: Key>(items: &mut [u64], all: &[T], flip: bool) -> Result<()> {
    let place = |item: u64| item as u32 as usize;
    for run in items.chunk_by_mut(|a, b| a >> 32 == b >> 32).filter(|run| run.len() > 1) {
        if run.len() < SHORT {
            let key = |item: u64| all[place(item)].key();
            run.sort_unstable_by_key(|&i| (if flip { !key(i) } else { key(i) }, i));
            continue;
        }
        let spread: Spread = T::spread(run.iter().map(|&i| &all[place(i)]));
        let mut sorter = Sorter::new(run.len())?;
        let sorted = sorter.sort(run.len(), |i| pack(spread.short(all[place(run[i])].key()), flip, place(run[i])));
        if spread.shift > 0 {
            settle(sorted, all, flip)?;
        }
        run.copy_from_slice(sorted);
    }
    Ok(())
}
