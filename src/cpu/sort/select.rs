//! The k best of a line, and the k-th.
//!
//! Elements stream past a threshold, the worst of the k best so far: on random data almost all are turned away by
//! one comparison. The survivors collect in a small pool that is cut back to k when it is full.

use super::item::{Item, Key};
use super::{Line, PerLine, by_type};
use crate::cpu::temp::Temp;
use crate::cpu::view::View;
use crate::error::Result;

/// Elements that are read at once.
const CHUNK: usize = 1024;
/// Elements that are compared with the threshold before any of them is looked at.
const GROUP: usize = 16;

/// The `k` greatest (`largest`) or least elements along `dim`, in order; the results have `k` elements along it.
/// `sorted` changes nothing: they always are.
///
/// # Safety
/// All operands must be in bounds and must not overlap; `k` is at most the size of the dimension.
pub unsafe fn topk(
    input: View,
    dim: usize,
    k: usize,
    largest: bool,
    _sorted: bool,
    values: View,
    indices: View,
) -> Result<()> {
    // SAFETY: handed on to the caller.
    unsafe { by_type(input, dim, values, indices, Best { k, flip: largest }) }
}

/// The `k`-th least element along `dim`, counted from one; the results have one element along it.
///
/// # Safety
/// As `topk`; `k` is not zero.
pub unsafe fn kth(input: View, dim: usize, k: usize, values: View, indices: View) -> Result<()> {
    // SAFETY: handed on to the caller.
    unsafe { by_type(input, dim, values, indices, Nth { k }) }
}

struct Best {
    k: usize,
    flip: bool,
}
impl PerLine for Best {
    fn lines<T: Key>(&self, lines: &mut dyn Iterator<Item = Line>, _: usize) -> Result<()> {
        for line in lines {
            let mut pool = best::<T>(&line, self.k, self.flip);
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
fn best<T: Key>(line: &Line, k: usize, flip: bool) -> Vec<T::Item> {
    let mut pool: Vec<T::Item> = Vec::with_capacity((4 * k + 2 * CHUNK).min(line.length));
    let mut threshold = None;
    // The first cut comes early: until then nothing is turned away.
    let mut limit = 4 * k + 4 * GROUP;
    let mut buffer = [T::default(); CHUNK];
    for start in (0..line.length).step_by(CHUNK) {
        let n = CHUNK.min(line.length - start);
        line.read(start, &mut buffer[..n]);
        for (g, group) in buffer[..n].chunks(GROUP).enumerate() {
            let first = start + g * GROUP;
            match threshold {
                None => pool.extend(group.iter().enumerate().map(|(i, x)| x.item(flip, first + i))),
                Some(t) => {
                    if group.iter().fold(false, |any, x| any | x.item(flip, 0).key_below(t)) {
                        let items = group.iter().enumerate().map(|(i, x)| x.item(flip, first + i));
                        pool.extend(items.filter(|i| i.key_below(t)));
                    }
                }
            }
            if pool.len() >= limit {
                threshold = cut(&mut pool, k);
                limit = 2 * k + CHUNK;
            }
        }
    }
    cut(&mut pool, k);
    pool
}

/// Keeps the `k` smallest; returns the greatest of them.
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
