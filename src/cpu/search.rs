//! Binary search in sorted rows, and counts of small integers.
//!
//! A search waits for memory at almost every step, so several values are searched in lockstep to overlap the latency.
//! Each takes exactly the steps of a separate search, so unsorted rows give the same results as in PyTorch.

use super::number_class::Fuse;
use super::parallel::par_for;
use super::scratch::Temp;
use super::simd::{self, Kernel};
use super::view::SendPtr;
use crate::error::Result;

/// Values searched in lockstep.
const ABREAST: usize = 8;
/// Minimum searches per task.
const GRAIN: usize = 1 << 10;
/// Up to this many counters are replicated, so that equal neighbours do not depend on each other's updates.
const FEW: usize = 4096;

/// Insertion positions of each row of `values` in the same row of `sorted`, which has `rows` rows of `n`, or in its
/// only row: before equal elements, or after them (`right`).
pub fn places<T: PartialOrd + Copy + Sync>(sorted: &[T], values: &[T], rows: usize, right: bool, out: &mut [i64]) {
    let (n, m) = (sorted.len() / rows.max(1), values.len() / rows.max(1));
    let out = SendPtr(out.as_mut_ptr());
    par_for(values.len(), GRAIN, |range| {
        for i in range.clone().step_by(ABREAST) {
            let found = abreast(sorted, n, &values[i..range.end.min(i + ABREAST)], [i, m], right);
            for (k, place) in found.iter().enumerate().take(range.end - i) {
                // SAFETY: `out` is as long as `values`, and ranges are disjoint.
                unsafe { *out.at(i + k) = *place as i64 };
            }
        }
    });
}

/// The positions of up to `ABREAST` values, each in its row of `n`: `m` values share a row, and the first is number `i`.
#[inline]
fn abreast<T: PartialOrd + Copy>(
    sorted: &[T],
    n: usize,
    values: &[T],
    [i, m]: [usize; 2],
    right: bool,
) -> [usize; ABREAST] {
    let Some(&first) = values.first() else { return [0; ABREAST] };
    let last = values.len() - 1;
    let starts: [usize; ABREAST] = match i / m {
        row if (i + last) / m == row => [row * n; ABREAST],
        _ => std::array::from_fn(|k| (i + k.min(last)) / m * n),
    };
    let (mut from, mut to) = (starts, starts.map(|start| start + n));
    let values: [T; ABREAST] = std::array::from_fn(|k| values.get(k).copied().unwrap_or(first));
    for _ in 0..usize::BITS - n.leading_zeros() {
        for ((from, to), &value) in from.iter_mut().zip(&mut to).zip(&values) {
            let middle = *from + (*to - *from) / 2;
            let Some(&x) = sorted.get(middle).filter(|_| *from < *to) else { continue };
            let beyond = if right { x > value } else { x >= value };
            // Two selects instead of a branch that is mispredicted half of the time.
            (*from, *to) = if beyond { (*from, middle) } else { (middle + 1, *to) };
        }
    }
    std::array::from_fn(|k| from[k] - starts[k])
}

/// The largest of some integers, and whether any is negative.
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

/// Adds to `counts[i]` the number of occurrences of `i`. Numbers out of range are skipped; returns how many.
pub fn count(list: &[i64], counts: &mut [i64]) -> Result<usize> {
    let n = counts.len();
    let mut missed = 0;
    let mut add = |counts: &mut [i64], i: i64| match counts.get_mut(i as usize) {
        Some(c) => *c += 1,
        None => missed += 1,
    };
    if n > FEW || list.len() < n {
        list.iter().for_each(|&i| add(counts, i));
        return Ok(missed);
    }
    let mut add = |counts: &mut [u32], i: i64| match counts.get_mut(i as usize) {
        Some(c) => *c += 1,
        None => missed += 1,
    };
    let mut tables = Temp::filled(4 * n, 0u32)?;
    // SAFETY: it was just filled.
    let tables = unsafe { tables.slice_mut() };
    // No counter overflows: a slice has fewer elements.
    for list in list.chunks(1 << 30) {
        let (a, rest) = tables.split_at_mut(n);
        let (b, rest) = rest.split_at_mut(n);
        let (c, d) = rest.split_at_mut(n);
        let (quads, last) = list.as_chunks::<4>();
        for &[i, j, k, l] in quads {
            add(a, i);
            add(b, j);
            add(c, k);
            add(d, l);
        }
        last.iter().for_each(|&i| add(a, i));
        for (i, total) in counts.iter_mut().enumerate() {
            *total += [&mut *a, b, c, d].map(|t| i64::from(std::mem::take(&mut t[i]))).iter().sum::<i64>();
        }
    }
    Ok(missed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::Rng;

    #[test]
    fn places_are_those_of_the_standard_search() {
        let mut rng = Rng(61);
        for (rows, n, m) in [(1, 0, 5), (1, 1, 9), (3, 7, 10), (2, 1000, 3000), (5, 64, 1), (19, 5, 3)] {
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
            assert_eq!(count(&list, &mut got).unwrap(), 0);
            list.iter().for_each(|&i| want[i as usize] += 1);
            assert_eq!(got, want);
            let most = list.iter().copied().max().unwrap();
            assert_eq!(greatest(&list), Some((most, false)));
        }
        for n in [3, FEW + 1] {
            let (list, mut got) = ([0, 2, -1, n as i64, 2, i64::MIN, i64::MAX], vec![0; n]);
            assert_eq!((count(&list, &mut got).unwrap(), &got[..3]), (4, &[1, 0, 2][..]));
        }
        assert_eq!((greatest(&[]), greatest(&[3, -1])), (None, Some((3, true))));
    }
}
