//! The k best of a line, and the k-th.
//!
//! Elements are compared with a threshold, the worst of the k best so far: on random data almost all are rejected, a
//! group at a time, by one comparison each. The rest are collected in a small pool that is cut back to k when it is
//! full. The first threshold is the k-th best of the groups' best: k elements at least are as good.

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
        let (mut pool, mut buffer) = (Vec::new(), [T::default(); CHUNK]);
        for line in lines {
            best::<T>(&line, self.k, self.flip, &mut buffer, &mut pool)?;
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

/// What an element of the `k` best is at least as good as.
struct Threshold<T: Key> {
    value: T,
    /// Better items are smaller.
    item: T::Item,
    /// Whether an equal element is no better, as all that follow its own.
    strict: bool,
}

/// The `k` smallest items of a line, in any order, into the pool.
fn best<T: Key>(line: &Line, k: usize, flip: bool, buffer: &mut [T; CHUNK], pool: &mut Vec<T::Item>) -> Result<()> {
    let limit = 2 * k + GROUP;
    pool.clear();
    let most = (limit + GROUP).min(line.length);
    if pool.capacity() < most {
        *pool = room(most)?;
    }
    let mut threshold: Option<Threshold<T>> = None;
    for start in (0..line.length).step_by(CHUNK) {
        let chunk = &mut buffer[..CHUNK.min(line.length - start)];
        line.read(start, chunk);
        let chunk = &*chunk;
        if start == 0 {
            threshold = first_threshold(chunk, k, flip);
        }
        let candidates = |threshold: &Option<Threshold<T>>| match threshold {
            Some(t) => simd::run(Candidates { chunk, worst: t.value, strict: t.strict, flip }),
            None => u64::MAX,
        };
        let mut groups = candidates(&threshold);
        let mut g = groups.trailing_zeros() as usize;
        while g * GROUP < chunk.len() {
            let group = &chunk[g * GROUP..chunk.len().min((g + 1) * GROUP)];
            let items = group.iter().enumerate().map(|(i, x)| x.item(flip, start + g * GROUP + i));
            pool.extend(items.filter(|i| threshold.as_ref().is_none_or(|t| *i < t.item)));
            if pool.len() >= limit {
                let worst = cut(pool, k);
                threshold = worst.map(|item| Threshold { value: element(line, item.place()), item, strict: true });
                groups = candidates(&threshold);
            }
            g += 1;
            g += groups.unbounded_shr(g as u32).trailing_zeros() as usize;
        }
    }
    cut(pool, k);
    Ok(())
}

/// The `k`-th best of the best elements of the first groups; none where there are fewer groups.
fn first_threshold<T: Key>(chunk: &[T], k: usize, flip: bool) -> Option<Threshold<T>> {
    let groups = chunk.len() / GROUP;
    if k == 0 || k > groups {
        return None;
    }
    let best = simd::run(GroupBest { chunk, flip });
    let mut items = [T::Item::default(); CHUNK / GROUP];
    for (i, x) in best[..groups].iter().enumerate() {
        items[i] = x.item(flip, i);
    }
    let place = items[..groups].select_nth_unstable(k - 1).1.place();
    // Any element that is as good, wherever it is.
    Some(Threshold { value: best[place], item: best[place].item(flip, u32::MAX as usize), strict: false })
}

/// The best element of each whole group of a chunk; NaN only where there is no other.
struct GroupBest<'a, T> {
    chunk: &'a [T],
    flip: bool,
}
impl<T: Key> Kernel for GroupBest<'_, T> {
    type Output = [T; CHUNK / GROUP];
    #[inline(always)]
    #[allow(clippy::eq_op)] // `best != best` is the NaN test that every type has
    fn run<F: Fuse>(self) -> [T; CHUNK / GROUP] {
        let mut all = [T::default(); CHUNK / GROUP];
        for (all, group) in all.iter_mut().zip(self.chunk.as_chunks::<GROUP>().0) {
            // Halves are compared lane by lane: no chain over all elements.
            let mut lanes = *group;
            let mut half = GROUP / 2;
            while half > 0 {
                for l in 0..half {
                    let (best, x) = (lanes[l], lanes[l + half]);
                    let better = if self.flip { x > best } else { x < best };
                    lanes[l] = if better | (best != best) { x } else { best };
                }
                half /= 2;
            }
            *all = lanes[0];
        }
        all
    }
}

/// The groups of a chunk that may have an element better than `worst`, as bits; NaN is always a candidate.
struct Candidates<'a, T> {
    chunk: &'a [T],
    worst: T,
    strict: bool,
    flip: bool,
}
impl<T: Key> Kernel for Candidates<'_, T> {
    type Output = u64;
    #[inline(always)]
    #[allow(clippy::neg_cmp_op_on_partial_ord)] // an unordered element is not rejected
    fn run<F: Fuse>(self) -> u64 {
        let Candidates { chunk, worst, strict, flip } = self;
        let any = |group: &[T]| match (flip, strict) {
            (true, true) => group.iter().fold(false, |any, x| any | !(*x <= worst)),
            (true, false) => group.iter().fold(false, |any, x| any | !(*x < worst)),
            (false, true) => group.iter().fold(false, |any, x| any | !(*x >= worst)),
            (false, false) => group.iter().fold(false, |any, x| any | !(*x > worst)),
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
