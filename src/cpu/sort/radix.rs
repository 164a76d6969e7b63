//! Least-significant-digit radix sort of items by their short keys; positions start in ascending order and need no
//! pass.
//!
//! Long lines are split into parts, a task each: every part counts its digits, the prefix sums of all counts give the
//! destinations of each part's items, and the parts move theirs. The order is the same for any number of parts and
//! threads. Keys are shortened to the bits that distinguish most elements; runs of equal short keys are sorted again by
//! whole keys.

use super::item::{Extent, Key, pack};
use crate::cpu::parallel::par_for;
use crate::cpu::scratch::Temp;
use crate::cpu::view::SendPtr;
use crate::error::Result;
use std::ops::Range;
use std::sync::Mutex;

/// Maximum bits of a digit: 32 take three passes. With 10, enough for most keys, a pass takes half as long as with 11.
const BITS: u32 = 11;
const BUCKETS: usize = 1 << BITS;
/// Below this the comparison sort is faster.
const FEW: usize = 1024;
/// Items of a part, and the maximum number of parts.
const PART: usize = 1 << 17;
const PARTS: usize = 16;

type Counts = [u32; BUCKETS];

/// Whether a line of this length uses the comparison sort; the counters have 32 bits.
fn compared(length: usize) -> bool {
    length < FEW || length > u32::MAX as usize
}

/// Memory for sorting lines of up to `length` items.
pub struct Sorter {
    items: Temp<u64>,
    other: Temp<u64>,
    /// One per part.
    counts: Vec<Counts>,
}

/// Position of a pass's digit within an item.
#[derive(Clone, Copy)]
struct Digit {
    shift: u32,
    mask: usize,
}
impl Digit {
    #[inline(always)]
    fn of(self, item: u64) -> usize {
        (item >> self.shift) as usize & self.mask & (BUCKETS - 1)
    }
}

impl Sorter {
    pub fn new(length: usize) -> Result<Sorter> {
        let (spare, parts) = if compared(length) { (0, 0) } else { (length, length.div_ceil(PART).clamp(1, PARTS)) };
        // The counters are bounded by the number of parts.
        Ok(Sorter { items: Temp::new(length)?, other: Temp::new(spare)?, counts: vec![[0; BUCKETS]; parts] })
    }

    /// The sorted elements of a line, as items with their positions.
    pub fn line<T: Key>(&mut self, all: &[T], flip: bool) -> Result<&mut [u64]> {
        // Comparison sorts whole keys: no shortening needed.
        let spread = match compared(all.len()) && size_of::<T>() <= size_of::<u32>() {
            true => Extent::WORD.spread(),
            false => extent(all, self.counts.len().max(1)).spread(),
        };
        let items = self.sort(all.len(), spread.bits, |i| pack(spread.short(all[i].key()), flip, i));
        if spread.shift > 0 {
            settle(items, all, flip)?;
        }
        Ok(items)
    }

    /// Sorts `n` items, at most the capacity, which `make` returns for the positions in ascending order, by the low
    /// `bits` of their keys; the other bits must be equal.
    pub fn sort(&mut self, n: usize, bits: u32, make: impl Fn(usize) -> u64 + Sync) -> &mut [u64] {
        let (mut from, mut to) = (SendPtr(self.items.ptr()), SendPtr(self.other.ptr()));
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
        let width = bits.div_ceil(bits.div_ceil(BITS).max(1)).max(1);
        let mask = (1 << width) - 1;
        for shift in (0..bits).step_by(width as usize) {
            if self.pass(n, Digit { shift: 32 + shift, mask }, &from, &to) {
                std::mem::swap(&mut from, &mut to);
            }
        }
        // SAFETY: the last pass has written `n` items here.
        unsafe { std::slice::from_raw_parts_mut(from.at(0), n) }
    }

    /// Moves items by one digit; false, without moving, if all items have the same digit.
    fn pass(&mut self, n: usize, digit: Digit, from: &SendPtr<u64>, to: &SendPtr<u64>) -> bool {
        let parts = self.counts.len();
        let counts = SendPtr(self.counts.as_mut_ptr());
        each_part(n, parts, |part, range| {
            // SAFETY: a part has its own counters; all `n` items are written.
            let (counts, items) = unsafe { (&mut *counts.at(part), slice(from, range)) };
            let here = digit; // in registers: behind the closure's pointer it would be reread for each item
            counts.fill(0);
            items.iter().for_each(|&item| counts[here.of(item)] += 1);
        });
        // SAFETY: there is at least one item.
        let first = digit.of(unsafe { *from.at(0) });
        if self.counts.iter().map(|c| c[first] as usize).sum::<usize>() == n {
            return false;
        }
        let mut start = 0;
        for bucket in 0..BUCKETS {
            for part in &mut self.counts {
                start += std::mem::replace(&mut part[bucket], start);
            }
        }
        let counts = SendPtr(self.counts.as_mut_ptr());
        each_part(n, parts, |part, range| {
            // SAFETY: the counts give the destinations of this part's items: `n` in all, each once.
            unsafe {
                let (counts, items, to) = (&mut *counts.at(part), slice(from, range), to.at(0));
                let here = digit;
                for &item in items {
                    let slot = &mut counts[here.of(item)];
                    to.add(*slot as usize).write(item);
                    *slot += 1;
                }
            }
        });
        true
    }
}

/// SAFETY: the items have been written, and are not modified meanwhile.
unsafe fn slice<'a>(items: &SendPtr<u64>, range: Range<usize>) -> &'a [u64] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(items.at(range.start), range.len()) }
}

/// The range of the keys of a line.
fn extent<T: Key>(all: &[T], parts: usize) -> Extent {
    let whole = Mutex::new(Extent::NONE);
    each_part(all.len(), parts, |_, range| {
        let part = Extent::of(all[range].iter().map(|x| x.key()));
        let mut whole = whole.lock().unwrap_or_else(|e| e.into_inner());
        *whole = whole.with(part);
    });
    whole.into_inner().unwrap_or_else(|e| e.into_inner())
}

fn each_part(n: usize, parts: usize, f: impl Fn(usize, Range<usize>) + Sync) {
    let length = n.div_ceil(parts);
    par_for(parts, 1, |some| some.for_each(|part| f(part, (part * length).min(n)..((part + 1) * length).min(n))));
}

/// Sorts runs of equal short keys by the whole keys. Positions within a run are ascending.
fn settle<T: Key>(items: &mut [u64], all: &[T], flip: bool) -> Result<()> {
    let place = |item: u64| item as u32 as usize;
    for run in items.chunk_by_mut(|a, b| a >> 32 == b >> 32).filter(|run| run.len() > 1) {
        if run.len() < FEW {
            let key = |item: u64| all[place(item)].key();
            run.sort_unstable_by_key(|&i| (if flip { !key(i) } else { key(i) }, i));
            continue;
        }
        let spread = Extent::of(run.iter().map(|&i| all[place(i)].key())).spread();
        let mut sorter = Sorter::new(run.len())?;
        let sorted =
            sorter.sort(run.len(), spread.bits, |i| pack(spread.short(all[place(run[i])].key()), flip, place(run[i])));
        if spread.shift > 0 {
            settle(sorted, all, flip)?;
        }
        run.copy_from_slice(sorted);
    }
    Ok(())
}
