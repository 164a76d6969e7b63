//! Compaction by a mask: counting, positions (`nonzero`), selection, and its inverse.
//!
//! The operand is split into pieces of a fixed size; the prefix sums of their counts give the start of each piece's
//! output, so pieces run in parallel and the order of elements is preserved. Inside a piece the positions of true
//! elements are looked up in a table, eight elements at a time: a branch per element would be mispredicted half the
//! time. A mask may change between the count and its use: see Note [Racing indices].

use crate::cpu::parallel::par_for;
use crate::cpu::scratch::Temp;
use crate::cpu::view::{SendPtr, View, ensure, load};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Dims, Odometer, coalesce};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Elements of a piece.
const PIECE: usize = 8192;
/// Elements per table lookup: as many as a byte has bits.
const GROUP: usize = 8;

/// For every byte the positions of its set bits, and their number.
static SET: [([u16; GROUP], u16); 256] = {
    let mut table = [([0; GROUP], 0); 256];
    let mut at = 0;
    while at < 256 * GROUP {
        let (byte, bit) = (at / GROUP, at % GROUP);
        if byte >> bit & 1 == 1 {
            table[byte].0[table[byte].1 as usize] = bit as u16;
            table[byte].1 += 1;
        }
        at += 1;
    }
    table
};

/// Eight elements as one bit each; a byte of foreign memory may be neither 0 nor 1.
#[inline(always)]
fn bits(group: &[u8; GROUP]) -> usize {
    const LOW: u64 = u64::from_ne_bytes([0x7F; GROUP]);
    let word = u64::from_le_bytes(*group);
    let truths = (((word & LOW) + LOW) | word) >> 7 & u64::from_ne_bytes([1; GROUP]);
    (truths.wrapping_mul(0x0102_0408_1020_4080) >> 56) as usize
}

/// The table entries of a run of a mask, group by group; the last group is padded with false.
#[inline(always)]
fn for_groups(mask: &[u8], mut f: impl FnMut(&'static ([u16; GROUP], u16))) {
    let (groups, rest) = mask.as_chunks();
    groups.iter().for_each(|group| f(&SET[bits(group)]));
    let mut last = [0; GROUP];
    last[..rest.len()].copy_from_slice(rest);
    f(&SET[bits(&last)]);
}

/// Capacity for the positions in a piece, and for what the last group writes beyond them.
type Room = [u16; PIECE + GROUP];

/// The positions of the true elements in a run, in order.
fn positions<'a>(mask: &[u8], room: &'a mut Room) -> &'a [u16] {
    assert!(mask.len() <= PIECE);
    let (mut count, mut base) = (0, 0);
    for_groups(mask, |&(positions, n)| {
        // SAFETY: each of the previous groups, at most `PIECE / GROUP`, has added at most eight.
        let slots = unsafe { &mut *(room.as_mut_ptr().add(count) as *mut [u16; GROUP]) };
        *slots = positions.map(|p| base + p);
        count += n as usize;
        base += GROUP as u16;
    });
    &room[..count]
}

/// Operands split into pieces of their common row-major order.
struct Pieces<const N: usize> {
    shape: Dims,
    strides: [Dims; N],
    numel: usize,
}

impl<const N: usize> Pieces<N> {
    fn new(shape: &[usize], strides: [&[usize]; N]) -> Self {
        let (shape, strides) = coalesce(shape, strides);
        let numel = shape.iter().product();
        Pieces { shape, strides, numel }
    }
    fn count(&self) -> usize {
        self.numel.div_ceil(PIECE)
    }
    /// Calls `f(offsets, n, steps)` for the runs of a piece, in order.
    fn runs(&self, piece: usize, mut f: impl FnMut([usize; N], usize, [usize; N])) {
        let (from, to) = (piece * PIECE, ((piece + 1) * PIECE).min(self.numel));
        let last = self.shape.last().copied().unwrap_or(1);
        let steps: [usize; N] = std::array::from_fn(|k| self.strides[k].last().copied().unwrap_or(1));
        let outer: [&[usize]; N] = std::array::from_fn(|k| &self.strides[k][..self.strides[k].len().saturating_sub(1)]);
        let mut at = Odometer::new(&self.shape[..self.shape.len().saturating_sub(1)], outer, from / last);
        let mut i = from;
        while i < to {
            let start = i % last;
            let n = (last - start).min(to - i);
            f(std::array::from_fn(|k| at.offsets[k] + start * steps[k]), n, steps);
            at.step();
            i += n;
        }
    }
}

/// The truth values of a run of a mask of any dtype, at most `PIECE`.
unsafe fn truths<'a>(
    mask: View,
    offset: usize,
    step: usize,
    n: usize,
    buffer: &'a mut [MaybeUninit<u8>; PIECE],
) -> &'a [u8] {
    // SAFETY: the caller's promise about the run; the buffer is filled as far as it is read.
    unsafe {
        if mask.dtype == DType::Bool && step == 1 {
            return std::slice::from_raw_parts(mask.at(offset), n);
        }
        load(mask.dtype, mask.at(offset), step, n, buffer.as_mut_ptr() as *mut bool);
        std::slice::from_raw_parts(buffer.as_ptr() as *const u8, n)
    }
}

/// The counted true elements of a mask: where the output of each piece starts.
pub struct Counted {
    starts: Temp<usize>,
    total: usize,
    numel: usize,
    /// Set where a piece had another number of them when it was used.
    changed: AtomicBool,
}

impl Counted {
    pub fn of(mask: View) -> Result<Counted> {
        let pieces = Pieces::new(mask.shape, [mask.strides]);
        let starts = Temp::<usize>::new(pieces.count())?;
        let slots = SendPtr(starts.ptr());
        par_for(pieces.count(), 4, |range| {
            for piece in range {
                let mut count = 0;
                pieces.runs(piece, |offsets, n, steps| {
                    let mut buffer = [const { MaybeUninit::uninit() }; PIECE];
                    // SAFETY: the runs are those of the mask.
                    let mask = unsafe { truths(mask, offsets[0], steps[0], n, &mut buffer) };
                    for_groups(mask, |&(_, n)| count += n as usize);
                });
                // SAFETY: each piece is visited once.
                unsafe { slots.at(piece).write(count) };
            }
        });
        let mut total = 0;
        for piece in 0..pieces.count() {
            // SAFETY: all have been written.
            unsafe { total += slots.at(piece).replace(total) };
        }
        Ok(Counted { starts, total, numel: pieces.numel, changed: AtomicBool::new(false) })
    }
    pub fn total(&self) -> usize {
        self.total
    }
    /// Whether this was counted on a mask of the shape of `full`, and `dense` is a list of as many elements or more.
    fn fits(&self, full: &View, mask: &View, dense: &View) -> bool {
        (self.numel, mask.shape, full.dtype) == (full.numel(), full.shape, dense.dtype)
            && matches!(dense.shape, &[n] if n >= self.total)
    }
    /// Calls `f(piece, places)` for each piece, with the part of the output that was counted for it: a piece that needs
    /// more or less is that of a mask that has changed.
    fn each(&self, f: impl Fn(usize, &mut Places) + Sync) -> Result<()> {
        // SAFETY: `of` has written all.
        let starts = unsafe { self.starts.slice() };
        par_for(starts.len(), 4, |range| {
            let mut room = [0; PIECE + GROUP];
            for piece in range {
                let end = starts.get(piece + 1).copied().unwrap_or(self.total);
                let mut places = Places { left: starts[piece]..end, room: &mut room, changed: false };
                f(piece, &mut places);
                if places.changed || !places.left.is_empty() {
                    self.changed.store(true, Ordering::Relaxed);
                }
            }
        });
        if self.changed.load(Ordering::Relaxed) { Err(Error::raced("the mask")) } else { Ok(()) }
    }
}

/// The part of the output that remains for a piece.
struct Places<'a> {
    left: Range<usize>,
    room: &'a mut Room,
    changed: bool,
}
impl Places<'_> {
    /// Start of a run's output, and the positions of its true elements: at most as many as remain.
    fn take(&mut self, mask: &[u8]) -> (usize, &[u16]) {
        let found = positions(mask, self.room);
        let n = found.len().min(self.left.len());
        self.changed |= n < found.len();
        let start = self.left.start;
        self.left.start += n;
        (start, &found[..n])
    }
}

/// The indices of the true elements in row-major order: `out` is `[count, ndim]`, of int64, any strides.
pub fn nonzero(input: View, counted: &Counted, out: View) -> Result<()> {
    let right = counted.numel == input.numel()
        && out.dtype == DType::I64
        && matches!(out.shape, &[n, d] if n >= counted.total && d == input.ndim())
        && out.is_apart(&input);
    ensure(right, "nonzero")?;
    let pieces = Pieces::new(input.shape, [input.strides]);
    counted.each(|piece, places| {
        let mut linear = piece * PIECE;
        pieces.runs(piece, |[offset], n, [step]| {
            let mut buffer = [const { MaybeUninit::uninit() }; PIECE];
            // SAFETY: the run is one of the input's; there is a row for each place.
            unsafe {
                let (row, found) = places.take(truths(input, offset, step, n, &mut buffer));
                write_indices(input.shape, linear, found, out, row);
            }
            linear += n;
        });
    })
}

/// Writes the indices of the elements at `linear + found[i]` in row-major order, from a row of `out` on.
///
/// SAFETY: `out` has a column for each dimension of the shape, and as many rows.
unsafe fn write_indices(shape: &[usize], linear: usize, mut found: &[u16], out: View, mut row: usize) {
    let (base, step) = (out.ptr as *mut i64, out.strides[0]);
    // `found` is ascending: the indices of the outer dimensions are computed once for each line along the last.
    while let (Some(&p), Some((&size, outer))) = (found.first(), shape.split_last()) {
        let line = (linear + p as usize) / size;
        let offset = (line * size).wrapping_sub(linear);
        let column = |p: u16| (p as usize).wrapping_sub(offset);
        let (here, rest) = found.split_at(found.iter().take_while(|&&p| column(p) < size).count());
        let write = |d: usize, i: usize, index: usize| {
            // SAFETY: the caller's promise.
            unsafe { *base.add((row + i) * step + d * out.strides[1]) = index as i64 }
        };
        here.iter().enumerate().for_each(|(i, &p)| write(outer.len(), i, column(p)));
        let mut above = line;
        for (d, &n) in outer.iter().enumerate().rev() {
            let index = above % n;
            (0..here.len()).for_each(|i| write(d, i, index));
            above /= n;
        }
        (row, found) = (row + here.len(), rest);
    }
}

/// The elements of `input` where `mask`, of the same shape, is true; `out` has one dimension.
pub fn masked_select(input: View, mask: View, counted: &Counted, out: View) -> Result<()> {
    let apart = out.is_apart(&input) && out.is_apart(&mask);
    ensure(apart && counted.fits(&input, &mask, &out), "masked_select")?;
    // SAFETY: the output has a place for each element that was counted; the type has the element's size.
    unsafe {
        match input.dtype.size() {
            1 => compact::<u8, false>(input, mask, counted, out),
            2 => compact::<u16, false>(input, mask, counted, out),
            4 => compact::<u32, false>(input, mask, counted, out),
            8 => compact::<u64, false>(input, mask, counted, out),
            _ => compact::<[u64; 2], false>(input, mask, counted, out),
        }
    }
}

/// Writes the elements of `source`, which has one dimension, to where `mask` is true, in order.
pub fn masked_scatter(out: View, mask: View, counted: &Counted, source: View) -> Result<()> {
    let apart = out.is_apart(&source) && out.is_apart(&mask);
    ensure(apart && counted.fits(&out, &mask, &source), "masked_scatter")?;
    // SAFETY: the source has an element for each that was counted; the type has the element's size.
    unsafe {
        match out.dtype.size() {
            1 => compact::<u8, true>(out, mask, counted, source),
            2 => compact::<u16, true>(out, mask, counted, source),
            4 => compact::<u32, true>(out, mask, counted, source),
            8 => compact::<u64, true>(out, mask, counted, source),
            _ => compact::<[u64; 2], true>(out, mask, counted, source),
        }
    }
}

/// Copies between the masked elements of `full` and the run `dense`: out of `full`, or into it if `BACK`.
unsafe fn compact<T: Copy, const BACK: bool>(full: View, mask: View, counted: &Counted, dense: View) -> Result<()> {
    let pieces = Pieces::new(full.shape, [mask.strides, full.strides]);
    let step = dense.dim(0).1;
    counted.each(|piece, places| {
        pieces.runs(piece, |[m, f], n, [dm, df]| {
            let mut buffer = [const { MaybeUninit::uninit() }; PIECE];
            // SAFETY: the runs are those of the operands, and positions are below the number that was counted.
            unsafe {
                let (at, found) = places.take(truths(mask, m, dm, n, &mut buffer));
                let (full, dense) = (full.at(f) as *mut T, dense.at(at * step) as *mut T);
                for (i, &p) in found.iter().enumerate() {
                    let (full, dense) = (full.add(p as usize * df), dense.add(i * step));
                    if BACK {
                        *full = *dense;
                    } else {
                        *dense = *full;
                    }
                }
            }
        });
    })
}
