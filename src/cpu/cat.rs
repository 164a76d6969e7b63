//! Interleaves parts in every row of a result (`cat` and `stack` along an inner dimension), in one pass.
//!
//! Written part by part, a result of short runs would pass through the cache once per part. Single elements of a few
//! parts (`stack` along the last dimension) have loops that the compiler turns into vector shuffles.

use super::nontemporal::{fence, is_large};
use super::parallel::par_for;
use super::row_copy::{copy_rows, move_rows};
use super::view::{SendPtr, View, ensure};
use crate::error::Result;
use smallvec::SmallVec;

/// Minimum elements per task.
const GRAIN: usize = 1 << 16;
/// Bytes of the result that are written at a time.
const BLOCK: usize = 1 << 14;

/// A contiguous part: where it lies, and its elements in each row.
type Part = (*const u8, usize);

/// Writes `rows` rows, each with its run of every part, to a contiguous operand; the parts are contiguous and of its
/// dtype. False where this is no gain over copying part by part; nothing is written then.
pub fn join(rows: usize, views: &[View], out: View) -> Result<bool> {
    let whole = |v: &View| v.is_contiguous() && v.dtype == out.dtype && v.numel().is_multiple_of(rows.max(1));
    let right = rows > 0 && whole(&out) && views.iter().all(|v| whole(v) && v.is_apart(&out));
    ensure(right && views.iter().map(|v| v.numel()).sum::<usize>() == out.numel(), "join")?;
    let parts: SmallVec<[Part; 4]> = views.iter().map(|v| (v.ptr.cast_const(), v.numel() / rows)).collect();
    let parts = &parts[..];
    let (size, out) = (out.dtype.size(), out.ptr);
    // SAFETY: together the parts have the elements of the result, and lie apart; the type has the element's size.
    unsafe {
        if parts.iter().all(|p| p.1 == 1) && (2..=4).contains(&parts.len()) {
            match size {
                1 => alternate::<u8>(rows, parts, out.cast()),
                2 => alternate::<u16>(rows, parts, out.cast()),
                4 => alternate::<u32>(rows, parts, out.cast()),
                8 => alternate::<u64>(rows, parts, out.cast()),
                _ => alternate::<[u64; 2]>(rows, parts, out.cast()),
            }
            return Ok(true);
        }
        if rows < 2 || parts.iter().all(|p| p.1 == 0) || parts.iter().any(|p| p.1 > GRAIN) {
            return Ok(false);
        }
        runs(size, rows, parts, out);
    }
    Ok(true)
}

/// SAFETY: as `join`.
unsafe fn runs(size: usize, rows: usize, parts: &[Part], out: *mut u8) {
    let width: usize = parts.iter().map(|p| p.1).sum();
    let large = is_large(rows * width * size);
    let copy = if large { move_rows } else { copy_rows };
    let parts: Vec<_> = parts.iter().map(|&(p, n)| (SendPtr(p.cast_mut()), n * size)).collect();
    let out = SendPtr(out);
    let width = width * size;
    // Rows that stay in the cache while every part is written to them.
    let block = (BLOCK / width).max(1);
    par_for(rows, GRAIN * size / width, |range| {
        for start in range.clone().step_by(block) {
            let (count, mut to) = (block.min(range.end - start), start * width);
            for (part, bytes) in &parts {
                let from = start * bytes;
                // SAFETY: rows are disjoint, and within the operands; `fence` follows.
                unsafe {
                    copy(count, *bytes, (part.at(from), *bytes), (out.at(to), width));
                }
                to += bytes;
            }
        }
        if large {
            fence();
        }
    });
}

/// SAFETY: as `join`, with two to four parts.
unsafe fn alternate<T: Copy>(rows: usize, parts: &[Part], out: *mut T) {
    // SAFETY: the caller's promise.
    unsafe {
        match parts.len() {
            2 => weave::<T, 2>(rows, parts, out),
            3 => weave::<T, 3>(rows, parts, out),
            _ => weave::<T, 4>(rows, parts, out),
        }
    }
}

/// SAFETY: as `join`, with `N` parts.
unsafe fn weave<T: Copy, const N: usize>(rows: usize, parts: &[Part], out: *mut T) {
    let (parts, out): ([SendPtr<T>; N], _) =
        (std::array::from_fn(|k| SendPtr(parts[k].0.cast_mut().cast())), SendPtr(out));
    par_for(rows, GRAIN / N, |range| {
        // SAFETY: every part has an element for each row, and ranges are disjoint.
        let (sources, out): ([&[T]; N], _) = unsafe {
            let source = |k: usize| std::slice::from_raw_parts(parts[k].at(range.start), range.len());
            let out = out.at(range.start * N) as *mut [T; N];
            (std::array::from_fn(source), std::slice::from_raw_parts_mut(out, range.len()))
        };
        for (i, group) in out.iter_mut().enumerate() {
            *group = std::array::from_fn(|k| sources[k][i]);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{Element, c128};

    fn check<T: Element + PartialEq + std::fmt::Debug>(
        rows: usize,
        widths: &[usize],
        make: impl Fn(usize) -> T,
    ) -> bool {
        let mut sources: Vec<Vec<T>> =
            widths.iter().enumerate().map(|(k, w)| (0..w * rows).map(|i| make(i * 7 + k)).collect()).collect();
        let want: Vec<T> = (0..rows)
            .flat_map(|r| sources.iter().zip(widths).flat_map(move |(s, w)| &s[r * w..(r + 1) * w]))
            .copied()
            .collect();
        let mut got = vec![make(0); want.len()];
        let lengths: Vec<usize> = sources.iter().chain([&got]).map(Vec::len).collect();
        let memory = sources.iter_mut().chain([&mut got]).zip(&lengths);
        // SAFETY: each list has its length.
        let view = |(v, n): (&mut Vec<T>, _)| unsafe {
            View::new(v.as_mut_ptr().cast(), T::DTYPE, std::slice::from_ref(n), &[1])
        };
        let views: Vec<View> = memory.map(view).collect();
        let done = join(rows, &views[..widths.len()], views[widths.len()]).unwrap();
        assert!(!done || got == want, "{widths:?}");
        done
    }

    #[test]
    fn rows_hold_the_parts_in_order() {
        for rows in [1, 5, 70_001] {
            for widths in [[1; 2].as_slice(), &[1; 3], &[1; 4]] {
                assert!(check(rows, widths, |i| i as u8) && check(rows, widths, |i| i as u16));
                assert!(check(rows, widths, |i| i as u32) && check(rows, widths, |i| c128::new(i as f64, 3.0)));
            }
        }
        assert!(check(300, &[32, 1000, 47], |i| i as u32) && check(90_000, &[64, 65], |i| i as u64));
        assert!(check(10, &[1; 5], |i| i as u32) && check(100_000, &[1, 0, 2], |i| i as u16));
        assert!(!check(5, &[0; 2], |i| i as u32));
        assert!(!check(1, &[99; 2], |i| i as u64) && !check(2, &[9, GRAIN + 1], |i| i as u8));
    }
}
