//! Copies of many short rows of one length.
//!
//! A call of `memcpy` takes 3 to 5 ns for a short row, most of them to find out how long it is. Here that is found out once for
//! all rows: one of up to 64 bytes is two pieces of a constant size, which overlap where the row is shorter than both, and
//! which the compiler turns into a vector each.

use super::nontemporal::move_past_cache;
use super::number_class::Fuse;
use super::simd::{self, Kernel};

/// Copies one row of a length that is known.
pub trait CopyRow: Copy {
    /// # Safety
    /// `src` is readable and `dst` writable for that length, and the two do not overlap.
    unsafe fn copy(self, src: *const u8, dst: *mut u8);
}

/// A loop over rows of one length, compiled for each way to copy one. Mark `run` and all that it calls `#[inline(always)]`.
pub trait RowLoop {
    type Output;
    fn run<C: CopyRow>(self, row: C) -> Self::Output;
}

/// Two pieces of `S` bytes: one at the start of a row, one at its end.
#[derive(Clone, Copy)]
struct Pieces<const S: usize> {
    /// Where the second begins.
    second: usize,
}
impl<const S: usize> Pieces<S> {
    /// For rows of `S` to twice as many bytes.
    #[inline(always)]
    fn of(bytes: usize) -> Self {
        debug_assert!((S..=2 * S).contains(&bytes));
        Pieces { second: bytes - S }
    }
}
impl<const S: usize> CopyRow for Pieces<S> {
    #[inline(always)]
    unsafe fn copy(self, src: *const u8, dst: *mut u8) {
        // SAFETY: the caller's promise; both pieces lie in the row, and a list of bytes has no alignment.
        unsafe {
            let pieces = [src.cast::<[u8; S]>().read(), src.add(self.second).cast::<[u8; S]>().read()];
            dst.cast::<[u8; S]>().write(pieces[0]);
            dst.add(self.second).cast::<[u8; S]>().write(pieces[1]);
        }
    }
}

/// Bytes of a row from which `memcpy` copies it. It uses `rep movsb` for rows of some KB, which takes ten times as long where the
/// two addresses differ by a few bytes modulo 4096: the loads wait for the stores.
const LONG: usize = 1 << 15;

/// Any number of bytes.
#[derive(Clone, Copy)]
struct Any {
    bytes: usize,
}
impl CopyRow for Any {
    #[inline(always)]
    unsafe fn copy(self, src: *const u8, dst: *mut u8) {
        const S: usize = 64;
        // SAFETY: the caller's promise; the pieces lie in the row, and a list of bytes has no alignment.
        unsafe {
            if !(S..LONG).contains(&self.bytes) {
                return std::ptr::copy_nonoverlapping(src, dst, self.bytes);
            }
            let last = self.bytes - S;
            for at in (0..last).step_by(S).chain([last]) {
                dst.add(at).cast::<[u8; S]>().write(src.add(at).cast::<[u8; S]>().read());
            }
        }
    }
}

/// Runs a loop over rows of `bytes` bytes.
#[inline]
pub fn for_rows<L: RowLoop>(bytes: usize, rows: L) -> L::Output {
    simd::run(OfLength { bytes, rows })
}

struct OfLength<L> {
    bytes: usize,
    rows: L,
}
impl<L: RowLoop> Kernel for OfLength<L> {
    type Output = L::Output;
    #[inline(always)]
    fn run<F: Fuse>(self) -> L::Output {
        let (rows, n) = (self.rows, self.bytes);
        match n {
            1 => rows.run(Pieces::<1>::of(n)),
            2..4 => rows.run(Pieces::<2>::of(n)),
            4..8 => rows.run(Pieces::<4>::of(n)),
            8..16 => rows.run(Pieces::<8>::of(n)),
            16..=32 => rows.run(Pieces::<16>::of(n)),
            33..=64 => rows.run(Pieces::<32>::of(n)),
            _ => rows.run(Any { bytes: n }),
        }
    }
}

/// Rows at equal distances, in bytes.
struct Evenly {
    count: usize,
    src: *const u8,
    from: usize,
    dst: *mut u8,
    to: usize,
}
impl RowLoop for Evenly {
    type Output = ();
    #[inline(always)]
    fn run<C: CopyRow>(self, row: C) {
        for i in 0..self.count {
            // SAFETY: the promise of `copy_rows`.
            unsafe { row.copy(self.src.add(i * self.from), self.dst.add(i * self.to)) }
        }
    }
}

/// Copies `count` rows of `bytes` bytes, which begin `from` and `to` bytes apart.
///
/// # Safety
/// All of them are readable at `src` and writable at `dst`; what is written is apart from all that is read.
pub unsafe fn copy_rows(count: usize, bytes: usize, (src, from): (*const u8, usize), (dst, to): (*mut u8, usize)) {
    for_rows(bytes, Evenly { count, src, from, dst, to });
}

/// Bytes of a row from which non-temporal stores write whole lines.
const LINES: usize = 128;

/// `copy_rows` with non-temporal stores, if rows are long enough for them.
///
/// # Safety
/// As for `copy_rows`; call `fence` before any other thread reads what is written.
pub unsafe fn move_rows(count: usize, bytes: usize, (src, from): (*const u8, usize), (dst, to): (*mut u8, usize)) {
    // SAFETY: the caller's promise.
    unsafe {
        if bytes < LINES {
            return copy_rows(count, bytes, (src, from), (dst, to));
        }
        (0..count).for_each(|i| move_past_cache(src.add(i * from), dst.add(i * to), bytes));
    }
}

/// Elements, each repeated to a row of contiguous memory.
struct Splat<U> {
    count: usize,
    n: usize,
    src: *const U,
    from: usize,
    dst: *mut U,
}
impl<U: Copy> Splat<U> {
    /// Rows of `K` to twice as many elements, as two pieces.
    #[inline(always)]
    fn pieces<const K: usize>(self) {
        for i in 0..self.count {
            // SAFETY: the promise of `splat_rows`; both pieces lie in the row.
            unsafe {
                let (piece, row) = ([*self.src.add(i * self.from); K], self.dst.add(i * self.n));
                row.cast::<[U; K]>().write(piece);
                row.add(self.n - K).cast::<[U; K]>().write(piece);
            }
        }
    }
}
impl<U: Copy> Kernel for Splat<U> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        match self.n {
            1 => self.pieces::<1>(),
            2..4 => self.pieces::<2>(),
            4..8 => self.pieces::<4>(),
            8..=16 => self.pieces::<8>(),
            17..=32 => self.pieces::<16>(),
            _ => {
                for i in 0..self.count {
                    // SAFETY: the promise of `splat_rows`.
                    unsafe {
                        std::slice::from_raw_parts_mut(self.dst.add(i * self.n), self.n)
                            .fill(*self.src.add(i * self.from))
                    }
                }
            }
        }
    }
}

/// Repeats each of `count` elements, `from` elements apart, `n` times.
///
/// # Safety
/// All of them are readable at `src`, and `dst` holds `count` rows of `n` elements, apart from them.
pub unsafe fn splat_rows<U: Copy>(count: usize, n: usize, (src, from): (*const U, usize), dst: *mut U) {
    simd::run(Splat { count, n, src, from, dst });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_every_length_arrive_and_nothing_else_changes() {
        let src: Vec<u8> = (0..1000u32).map(|i| (i * 7 + 1) as u8).collect();
        for bytes in 0..140 {
            for (from, to) in [(bytes, bytes), (bytes + 5, bytes), (bytes, bytes + 3), (0, bytes + 1)] {
                let mut got = vec![0xEE; 5 * to + bytes];
                let mut want = got.clone();
                // SAFETY: six rows lie within either list.
                unsafe { copy_rows(6, bytes, (src.as_ptr(), from), (got.as_mut_ptr(), to)) };
                (0..6).for_each(|r| want[r * to..][..bytes].copy_from_slice(&src[r * from..][..bytes]));
                assert_eq!(got, want, "{bytes} {from} {to}");
            }
        }
    }

    #[test]
    fn elements_are_repeated_to_rows_of_every_length() {
        fn check<U: Copy + PartialEq + std::fmt::Debug>(make: impl Fn(usize) -> U) {
            let src: Vec<U> = (0..12).map(&make).collect();
            for n in 0..70 {
                let mut got = vec![make(99); 4 * n + 1];
                // SAFETY: four elements, and rows for them.
                unsafe { splat_rows(4, n, (src.as_ptr(), 3), got.as_mut_ptr()) };
                let want: Vec<U> = (0..4).flat_map(|r| vec![src[3 * r]; n]).chain([make(99)]).collect();
                assert_eq!(got, want, "{n}");
            }
        }
        check(|i| i as u8);
        check(|i| i as u16);
        check(|i| i as u32);
        check(|i| i as u64);
        check(|i| [i as u64, 7]);
    }
}
