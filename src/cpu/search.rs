//! Where values belong in sorted rows, and how often small integers occur.
//!
//! A search waits for memory at almost every step, so several values go down side by side and share the waiting.
//! Each takes the very steps of a search of its own: rows that are not sorted give what PyTorch gives.

use super::num::Fuse;
use super::parallel::par_for;
use super::simd::{self, Kernel};
use super::view::Ptr;

/// Values that are searched for side by side.
const ABREAST: usize = 8;
/// Searches that make a task worth a thread.
const GRAIN: usize = 1 << 10;
/// Counts of so many numbers are kept several times over, so that equal neighbours do not wait for each other.
const FEW: usize = 4096;

/// For each row of `values`, places in the same row of `sorted`, of `rows` rows of `n`, or in the only one: before
/// equal elements, or after them (`right`).
pub fn places<T: PartialOrd + Copy + Sync>(sorted: &[T], values: &[T], rows: usize, right: bool, out: &mut [i64]) {
    let (n, m) = (sorted.len() / rows.max(1), values.len() / rows.max(1));
    let out = Ptr(out.as_mut_ptr());
    par_for(values.len(), GRAIN, |range| {
        let mut i = range.start;
        while i < range.end {
            let (row, end) = (i / m, range.end.min((i / m + 1) * m).min(i + ABREAST));
            let found = abreast(&sorted[row * n..(row + 1) * n], &values[i..end], right);
            for (k, place) in found[..end - i].iter().enumerate() {
                // SAFETY: `out` is as long as `values`, and ranges are disjoint.
                unsafe { *out.at(i + k) = *place as i64 };
            }
            i = end;
        }
    });
}

/// The places of up to `ABREAST` values in one row.
#[inline]
fn abreast<T: PartialOrd + Copy>(sorted: &[T], values: &[T], right: bool) -> [usize; ABREAST] {
    let (mut from, mut to) = ([0; ABREAST], [sorted.len(); ABREAST]);
    let Some(&first) = values.first() else { return from };
    let values: [T; ABREAST] = std::array::from_fn(|k| values.get(k).copied().unwrap_or(first));
    for _ in 0..usize::BITS - sorted.len().leading_zeros() {
        for ((from, to), &value) in from.iter_mut().zip(&mut to).zip(&values) {
            let middle = *from + (*to - *from) / 2;
            let Some(&x) = sorted.get(middle).filter(|_| *from < *to) else { continue };
            let beyond = if right { x > value } else { x >= value };
            // Two selects, not a branch that half of the steps guess wrong.
            (*from, *to) = if beyond { (*from, middle) } else { (middle + 1, *to) };
        }
    }
    from
}

/// The greatest of some integers, and whether any is negative.
pub fn greatest(list: &[i64]) -> Option<(i64, bool)> {
    (!list.is_empty()).then(|| simd::run(Greatest(list)))
}

struct Greatest<'a>(&'a [i64]);
impl Kernel for Greatest<'_> {
    type Output = (i64, bool);
    #[inline(always)]
    fn run<F: Fuse>(self) -> (i64, bool) {
        let (most, signs) = self.0.iter().fold((i64::MIN, 0), |(most, signs), &v| (most.max(v), signs | v));
        (most, signs < 0)
    }
}

/// Adds to `counts[i]` how often `i` occurs; every number must have a place there.
pub fn count(list: &[i64], counts: &mut [i64]) {
    let n = counts.len();
    if n > FEW || list.len() < n {
        return list.iter().for_each(|&i| counts[i as usize] += 1);
    }
    let mut tables = vec![0u32; 4 * n];
    // No table overflows: a slice has fewer elements.
    for list in list.chunks(1 << 30) {
        let (a, rest) = tables.split_at_mut(n);
        let (b, rest) = rest.split_at_mut(n);
        let (c, d) = rest.split_at_mut(n);
        let (quads, last) = list.as_chunks::<4>();
        for &[i, j, k, l] in quads {
            a[i as usize] += 1;
            b[j as usize] += 1;
            c[k as usize] += 1;
            d[l as usize] += 1;
        }
        last.iter().for_each(|&i| a[i as usize] += 1);
        for (i, total) in counts.iter_mut().enumerate() {
            *total += [&mut *a, b, c, d].map(|t| i64::from(std::mem::take(&mut t[i]))).iter().sum::<i64>();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::Rng;

    #[test]
    fn places_are_those_of_the_standard_search() {
        let mut rng = Rng(61);
        for (rows, n, m) in [(1, 0, 5), (1, 1, 9), (3, 7, 10), (2, 1000, 3000), (5, 64, 1)] {
            let mut sorted: Vec<i64> = (0..rows * n).map(|_| rng.below(2 * n) as i64).collect();
            sorted.chunks_mut(n.max(1)).for_each(|row| row.sort_unstable());
            let values: Vec<i64> = (0..rows * m).map(|_| rng.below(2 * n + 3) as i64 - 1).collect();
            for right in [false, true] {
                let mut got = vec![-1; values.len()];
                places(&sorted, &values, rows, right, &mut got);
                for (i, (&v, &p)) in values.iter().zip(&got).enumerate() {
                    let row = &sorted[i / m * n..(i / m + 1) * n];
                    let want = row.partition_point(|&x| if right { x <= v } else { x < v });
                    assert_eq!(p, want as i64, "{rows} {n} {m} {right} {i}");
                }
            }
        }
    }

    #[test]
    fn counts_are_those_of_a_plain_loop() {
        let mut rng = Rng(62);
        for (n, len) in [(1, 10), (7, 1003), (5000, 20_000), (100, 3)] {
            let list: Vec<i64> = (0..len).map(|_| rng.below(n) as i64).collect();
            let (mut got, mut want) = (vec![0; n], vec![0; n]);
            count(&list, &mut got);
            list.iter().for_each(|&i| want[i as usize] += 1);
            assert_eq!(got, want);
            let most = list.iter().copied().max().unwrap();
            assert_eq!(greatest(&list), Some((most, false)));
        }
        assert_eq!((greatest(&[]), greatest(&[3, -1])), (None, Some((3, true))));
    }
}
