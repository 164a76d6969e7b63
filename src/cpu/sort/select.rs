//! The k best of a line, and the k-th.
//!
//! Elements are compared with a threshold, the worst of the k best so far: on random data almost all are rejected, a
//! group at a time, by one comparison each. The rest are collected in a small pool that is cut back to k when it is
//! full.

use super::item::{Item, Key};
use super::{Line, PerLine, by_type};
use crate::cpu::number_class::Fuse;
use crate::cpu::scratch::Temp;
use crate::cpu::simd::{self, Kernel};
use crate::cpu::view::{View, ensure};
use crate::error::Result;
use crate::rt::reserve::room;

/// Elements read at once: a group for each bit of a mask.
const CHUNK: usize = 64 * GROUP;
/// Elements compared with the threshold as a group.
const GROUP: usize = 16;

/// The `k` greatest (`largest`) or least elements along `dim`, in order; the results have `k` elements along it.
/// `sorted` changes nothing: they always are.
pub fn topk(
    input: View,
    dim: usize,
    k: usize,
    largest: bool,
    _sorted: bool,
    values: View,
    indices: View,
) -> Result<()> {
    by_type(input, dim, k, values, indices, Best { k, flip: largest })
}

/// The `k`-th least element along `dim`, counted from one; the results have one element along it.
pub fn kth(input: View, dim: usize, k: usize, values: View, indices: View) -> Result<()> {
    ensure((1..=input.dim(dim).0).contains(&k), "kth")?;
    by_type(input, dim, 1, values, indices, Nth { k })
}

struct Best {
    k: usize,
    flip: bool,
}
impl PerLine for Best {
    fn lines<T: Key>(&self, lines: &mut dyn Iterator<Item = Line>, _: usize) -> Result<()> {
        for line in lines {
            let mut pool = best::<T>(&line, self.k, self.flip)?;
            pool.sort_unstable();
            line.write(&pool, |place| element::<T>(&line, place));
        }
        Ok(())
    }
    fn cost(&self, length: usize) -> usize {
        length
    }
}

fn element<T: Key>(line: &Line, place: usize) -> T {
    let mut x = T::default();
    line.read(place, std::slice::from_mut(&mut x));
    x
}

/// The `k` smallest items of a line, in any order.
fn best<T: Key>(line: &Line, k: usize, flip: bool) -> Result<Vec<T::Item>> {
    let limit = 2 * k + GROUP;
    let mut pool: Vec<T::Item> = room((limit + GROUP).min(line.length))?;
    let mut threshold: Option<T::Item> = None;
    let mut buffer = [T::default(); CHUNK];
    for start in (0..line.length).step_by(CHUNK) {
        let chunk = &mut buffer[..CHUNK.min(line.length - start)];
        line.read(start, chunk);
        let chunk = &*chunk;
        let candidates = |threshold: Option<T::Item>| match threshold {
            Some(t) => simd::run(Candidates { chunk, worst: element(line, t.place()), flip }),
            None => u64::MAX,
        };
        let mut groups = candidates(threshold);
        let mut g = groups.trailing_zeros() as usize;
        while g * GROUP < chunk.len() {
            let group = &chunk[g * GROUP..chunk.len().min((g + 1) * GROUP)];
            let items = group.iter().enumerate().map(|(i, x)| x.item(flip, start + g * GROUP + i));
            pool.extend(items.filter(|i| threshold.is_none_or(|t| i.key_below(t))));
            if pool.len() >= limit {
                threshold = cut(&mut pool, k);
                groups = candidates(threshold);
            }
            g += 1;
            g += groups.unbounded_shr(g as u32).trailing_zeros() as usize;
        }
    }
    cut(&mut pool, k);
    Ok(pool)
}

/// The groups of a chunk that may have an element better than `worst`, as bits; NaN is always a candidate.
struct Candidates<'a, T> {
    chunk: &'a [T],
    worst: T,
    flip: bool,
}
impl<T: Key> Kernel for Candidates<'_, T> {
    type Output = u64;
    #[inline(always)]
    #[allow(clippy::neg_cmp_op_on_partial_ord)] // an unordered element is not rejected
    fn run<F: Fuse>(self) -> u64 {
        let Candidates { chunk, worst, flip } = self;
        let any = |group: &[T]| match flip {
            true => group.iter().fold(false, |any, x| any | !(*x <= worst)),
            false => group.iter().fold(false, |any, x| any | !(*x >= worst)),
        };
        let (whole, rest) = chunk.as_chunks::<GROUP>();
        let last = (!rest.is_empty() && any(rest)) as u64;
        let marks = whole.iter().enumerate().fold(0, |all, (g, group)| all | (any(group) as u64) << g);
        marks | last.unbounded_shl(whole.len() as u32)
    }
}

/// Keeps the `k` smallest; returns the largest of them.
fn cut<I: Item>(pool: &mut Vec<I>, k: usize) -> Option<I> {
    if k == 0 {
        pool.clear();
        return None;
    }
    if pool.len() > k {
        pool.select_nth_unstable(k - 1);
        pool.truncate(k);
        return Some(pool[k - 1]);
    }
    None
}

struct Nth {
    k: usize,
}
impl PerLine for Nth {
    fn lines<T: Key>(&self, lines: &mut dyn Iterator<Item = Line>, length: usize) -> Result<()> {
        let mut all: Temp<T> = Temp::filled(length, T::default())?;
        let mut items: Temp<T::Item> = Temp::filled(length, T::Item::default())?;
        // SAFETY: both have been filled.
        let (all, items) = unsafe { (all.slice_mut(), items.slice_mut()) };
        for line in lines {
            line.read(0, all);
            items.iter_mut().zip(&*all).enumerate().for_each(|(i, (item, x))| *item = x.item(false, i));
            let nth = *items.select_nth_unstable(self.k - 1).1;
            line.write(&[nth], |place| all[place]);
        }
        Ok(())
    }
    fn cost(&self, length: usize) -> usize {
        length * 2
    }
}
