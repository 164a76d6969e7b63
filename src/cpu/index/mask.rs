//! Compaction by a mask: counting, positions (`nonzero`), selection, and its inverse.
//!
//! The operand is cut into pieces of a fixed size; their counts, summed up, say where each piece's output starts,
//! so pieces run in parallel and the order is that of the elements. Inside a piece a mask becomes the positions of
//! what is true, eight elements at a time from a table: a branch for each would be mispredicted half the time.

use crate::cpu::parallel::par_for;
use crate::cpu::view::{Ptr, View, load};
use crate::dtype::DType;
use crate::layout::{Dims, Odometer, coalesce};
use std::mem::MaybeUninit;

/// Elements of a piece.
const PIECE: usize = 8192;
/// Elements that are looked up together: as many as a byte has bits.
const GROUP: usize = 8;

/// For every byte the positions of the bits that are set, and their number.
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

/// The truth of eight elements, a bit each; a byte from elsewhere may be other than 0 and 1.
#[inline(always)]
fn bits(group: &[u8; GROUP]) -> usize {
    const LOW: u64 = u64::from_ne_bytes([0x7F; GROUP]);
    let word = u64::from_le_bytes(*group);
    let truths = (((word & LOW) + LOW) | word) >> 7 & u64::from_ne_bytes([1; GROUP]);
    (truths.wrapping_mul(0x0102_0408_1020_4080) >> 56) as usize
}

/// The entries of a run of a mask, group by group; the last is filled up with what is false.
#[inline(always)]
fn for_groups(mask: &[u8], mut f: impl FnMut(&'static ([u16; GROUP], u16))) {
    let (groups, rest) = mask.as_chunks();
    groups.iter().for_each(|group| f(&SET[bits(group)]));
    let mut last = [0; GROUP];
    last[..rest.len()].copy_from_slice(rest);
    f(&SET[bits(&last)]);
}

/// Room for the positions in a piece, and for what the last group writes beyond them.
type Room = [u16; PIECE + GROUP];

/// The positions of what is true in a run, in order.
fn positions<'a>(mask: &[u8], room: &'a mut Room) -> &'a [u16] {
    assert!(mask.len() <= PIECE);
    let (mut count, mut base) = (0, 0);
    for_groups(mask, |&(positions, n)| {
        // SAFETY: each of the groups before, `PIECE / GROUP` at most, has added no more than eight.
        let slots = unsafe { &mut *(room.as_mut_ptr().add(count) as *mut [u16; GROUP]) };
        *slots = positions.map(|p| base + p);
        count += n as usize;
        base += GROUP as u16;
    });
    &room[..count]
}

/// Operands cut into pieces of their common row-major order.
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

/// The truth values of a run of a mask of any dtype, `PIECE` at most.
unsafe fn truths<'a>(
    mask: View,
    offset: usize,
    step: usize,
    n: usize,
    buffer: &'a mut [MaybeUninit<u8>; PIECE],
) -> &'a [u8] {
    // SAFETY: the caller vouches for the run; the buffer is filled as far as it is read.
    unsafe {
        if mask.dtype == DType::Bool && step == 1 {
            return std::slice::from_raw_parts(mask.at(offset), n);
        }
        load(mask.dtype, mask.at(offset), step, n, buffer.as_mut_ptr() as *mut bool);
        std::slice::from_raw_parts(buffer.as_ptr() as *const u8, n)
    }
}

/// Where the output of each piece starts, and the total.
unsafe fn starts<const N: usize>(pieces: &Pieces<N>, mask: View) -> (Vec<usize>, usize) {
    let mut counts = vec![0usize; pieces.count()];
    let slots = Ptr(counts.as_mut_ptr());
    par_for(counts.len(), 4, |range| {
        for piece in range {
            let mut count = 0;
            pieces.runs(piece, |offsets, n, steps| {
                let mut buffer = [const { MaybeUninit::uninit() }; PIECE];
                // SAFETY: the mask is the first operand of the pieces.
                let mask = unsafe { truths(mask, offsets[0], steps[0], n, &mut buffer) };
                for_groups(mask, |&(_, n)| count += n as usize);
            });
            // SAFETY: each piece is visited once.
            unsafe { *slots.at(piece) = count };
        }
    });
    let mut total = 0;
    for c in &mut counts {
        total += std::mem::replace(c, total);
    }
    (counts, total)
}

/// The number of elements that are true.
///
/// # Safety
/// `mask` must be in bounds.
pub unsafe fn nonzero_count(mask: View) -> usize {
    // SAFETY: handed on to the caller.
    unsafe { starts(&Pieces::new(mask.shape, [mask.strides]), mask).1 }
}

/// The indices of the true elements in row-major order: `out` is `[count, ndim]`, of int64, any strides.
///
/// # Safety
/// Both operands must be in bounds and `out` must have room for `nonzero_count(input)` rows.
pub unsafe fn nonzero(input: View, out: View) {
    let pieces = Pieces::new(input.shape, [input.strides]);
    // SAFETY: handed on to the caller.
    let (starts, _) = unsafe { starts(&pieces, input) };
    par_for(starts.len(), 4, |range| {
        let mut room = [0; PIECE + GROUP];
        for piece in range {
            let (mut row, mut linear) = (starts[piece], piece * PIECE);
            pieces.runs(piece, |[offset], n, [step]| {
                let mut buffer = [const { MaybeUninit::uninit() }; PIECE];
                // SAFETY: the run is one of the input's; there is a row for each true element.
                unsafe {
                    let found = positions(truths(input, offset, step, n, &mut buffer), &mut room);
                    write_indices(input.shape, linear, found, out, row);
                    row += found.len();
                }
                linear += n;
            });
        }
    });
}

/// Writes the indices of the elements at `linear + found[i]` in row-major order, from a row of `out` on.
///
/// SAFETY: `out` has a column for each dimension of the shape, and as many rows.
unsafe fn write_indices(shape: &[usize], linear: usize, mut found: &[u16], out: View, mut row: usize) {
    let (base, step) = (out.ptr as *mut i64, out.strides[0]);
    // What is found ascends: the indices of the outer dimensions are worked out once for each line along the last.
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
///
/// # Safety
/// All operands must be in bounds and `out` must have room for `nonzero_count(mask)` elements.
pub unsafe fn masked_select(input: View, mask: View, out: View) {
    // SAFETY: handed on to the caller; the type has the element's size.
    unsafe {
        match input.dtype.size() {
            1 => compact::<u8, false>(input, mask, out),
            2 => compact::<u16, false>(input, mask, out),
            4 => compact::<u32, false>(input, mask, out),
            8 => compact::<u64, false>(input, mask, out),
            _ => compact::<[u64; 2], false>(input, mask, out),
        }
    }
}

/// Writes the elements of `source`, which has one dimension, to where `mask` is true, in order.
///
/// # Safety
/// All operands must be in bounds and `source` must have `nonzero_count(mask)` elements.
pub unsafe fn masked_scatter(out: View, mask: View, source: View) {
    // SAFETY: handed on to the caller; the type has the element's size.
    unsafe {
        match out.dtype.size() {
            1 => compact::<u8, true>(out, mask, source),
            2 => compact::<u16, true>(out, mask, source),
            4 => compact::<u32, true>(out, mask, source),
            8 => compact::<u64, true>(out, mask, source),
            _ => compact::<[u64; 2], true>(out, mask, source),
        }
    }
}

/// Moves between the masked elements of `full` and the run `dense`: out of `full`, or into it if `BACK`.
unsafe fn compact<T: Copy, const BACK: bool>(full: View, mask: View, dense: View) {
    let pieces = Pieces::new(full.shape, [mask.strides, full.strides]);
    // SAFETY: handed on to the caller.
    let (starts, _) = unsafe { starts(&pieces, mask) };
    let step = dense.dim(0).1;
    par_for(starts.len(), 4, |range| {
        let mut room = [0; PIECE + GROUP];
        for piece in range {
            let mut at = starts[piece];
            pieces.runs(piece, |[m, f], n, [dm, df]| {
                let mut buffer = [const { MaybeUninit::uninit() }; PIECE];
                // SAFETY: the runs are those of the operands, and `at` stays below the number of true elements.
                unsafe {
                    let found = positions(truths(mask, m, dm, n, &mut buffer), &mut room);
                    let (full, dense) = (full.at(f) as *mut T, dense.at(at * step) as *mut T);
                    for (i, &p) in found.iter().enumerate() {
                        let (full, dense) = (full.add(p as usize * df), dense.add(i * step));
                        if BACK {
                            *full = *dense;
                        } else {
                            *dense = *full;
                        }
                    }
                    at += found.len();
                }
            });
        }
    });
}
