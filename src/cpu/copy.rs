//! Copies and fills: any strides to any strides, any dtype to any dtype.
//!
//! If both operands have contiguous runs, whole runs are copied (`runs`): contiguous tensors, the parts of `cat`,
//! `stack`, `repeat`, `roll`, crops, the heads of attention. Otherwise tiles are gathered, converted and scattered through L1. Results too
//! large for the cache are written with non-temporal stores (`nontemporal`).

use super::contiguous::TaskShared;
use super::convert::{ConvertFn, converter};
use super::lines::{LINE, for_runs};
use super::map::{Input, Output, store};
use super::nontemporal::{fence, is_large};
use super::parallel::par_for;
use super::row_copy::{copy_rows, move_rows};
use super::strided::{gather, scatter, splat};
use super::tile::{Scratch, Space, Walk, is_contiguous};
use crate::dtype::Scalar;
use crate::layout::Dims;

/// Minimum elements per task.
const GRAIN: usize = 1 << 17;

/// `out[i] = src[i]`, cast to the output's dtype.
///
/// # Safety
/// Every element that shape and strides reach is in bounds and aligned; output elements are distinct and overlap no
/// element of `src`, unless the two are the same (same pointer, dtype and strides).
pub unsafe fn copy(shape: &[usize], src: &Input, out: &Output) {
    let (ptr, dtype, strides) = match *src {
        // SAFETY: the caller's promise.
        Input::Scalar(s) => return unsafe { fill(shape, out, s) },
        Input::Strided { ptr, dtype, strides } => (ptr, dtype, strides),
    };
    if shape.contains(&0) || (ptr == out.ptr && dtype == out.dtype && strides == out.strides) {
        return;
    }
    let (from, to) = (dtype.size(), out.dtype.size());
    if let (&[rows, n], [_, 1], &[step, 1]) = (shape, strides, out.strides)
        && (strides[0], step, dtype) == (0, n, out.dtype)
        && rows * n <= GRAIN
    {
        // SAFETY: the caller's promise: a row, and as many next to each other.
        return unsafe { repeat(rows, n * to, ptr, out.ptr) };
    }
    let step = converter(dtype, out.dtype);
    let n = shape.iter().product();
    let large = step.is_none() && is_large(n * to);
    let alike = strides == out.strides && is_contiguous(shape, strides);
    if alike && !large {
        // SAFETY: both are row-major.
        return unsafe { run(n, ptr, from, out.ptr, to, step) };
    }
    let walks = [Walk { strides: out.strides, size: to }, Walk { strides, size: from }];
    let space = Space::new(shape, &walks, from.max(to));
    if space.is_contiguous() && !large {
        // SAFETY: both are contiguous runs of equal length.
        return unsafe { run(n, ptr, from, out.ptr, to, step) };
    }
    let contiguous = space.run_bytes(to);
    if step.is_none() && contiguous > to {
        // SAFETY: the runs cover the operands.
        return unsafe { runs(&space, to, ptr, out.ptr, large) };
    }
    let grain = GRAIN.div_ceil(space.len);
    let (src, dst) = (TaskShared(ptr), TaskShared(out.ptr));
    par_for(space.tiles, grain, |tiles| {
        let mut scratch = Scratch::take();
        let mut tile = space.tile(tiles.start);
        for _ in tiles {
            let ((dims_out, whole_out), (dims_in, whole_in)) = (tile.block(0), tile.block(1));
            // SAFETY: blocks lie within the operands; a buffer holds a tile of either dtype; tiles are disjoint.
            unsafe {
                let mut at = src.get().add(tile.offset(1) * from);
                let target = dst.get().add(tile.offset(0) * to);
                if !whole_in {
                    let buffer = if step.is_none() && whole_out { target } else { scratch.buffer(0) };
                    gather(from, at, dims_in, buffer);
                    at = buffer;
                }
                if let Some(step) = step {
                    let buffer = if whole_out { target } else { scratch.buffer(1) };
                    step(at, buffer, tile.len);
                    at = buffer;
                }
                if at != target {
                    scatter(to, at, target, dims_out);
                }
            }
            tile.advance();
        }
    });
}

/// A row of so many bytes, `rows` times: what a bias is. Rows that are there are copied to as many that follow.
///
/// SAFETY: both are in bounds and do not overlap.
unsafe fn repeat(rows: usize, bytes: usize, src: *const u8, dst: *mut u8) {
    // SAFETY: the caller's promise; what is read lies before what is written.
    unsafe {
        std::ptr::copy_nonoverlapping(src, dst, bytes);
        let mut done = 1;
        while done < rows {
            let next = done.min(rows - done);
            std::ptr::copy_nonoverlapping(dst.cast_const(), dst.add(done * bytes), next * bytes);
            done += next;
        }
    }
}

/// Copies the contiguous runs that make up the space, with non-temporal stores if `large`; elements are `size` bytes.
///
/// SAFETY: every element of the space is in bounds; the operands do not overlap.
unsafe fn runs(space: &Space, size: usize, src: *const u8, dst: *mut u8, large: bool) {
    let (src, dst) = (TaskShared(src), TaskShared(dst));
    // All destinations of a source run consecutively, so that the source is read once.
    let mut order: Dims = (0..space.shape.len()).collect();
    let outer = order.len().saturating_sub(1);
    order[..outer].sort_by_key(|&d| space.strides[1][d] == 0);
    let pick = |v: &Dims| order.iter().map(|&d| v[d]).collect::<Dims>();
    let (shape, to, from) = (pick(&space.shape), pick(&space.strides[0]), pick(&space.strides[1]));
    let copy_run = if large { move_rows } else { copy_rows };
    // Runs lie within the space and are disjoint.
    let copy = |[o, i]: [usize; 2], (count, bytes): (usize, usize), [to, from]: [usize; 2]| {
        let (src, dst) = (src.get().wrapping_add(i * size), dst.get().wrapping_add(o * size));
        // SAFETY: the caller's promise; `fence` follows.
        unsafe { copy_run(count, bytes, (src, from * size), (dst, to * size)) }
    };
    let done = || {
        if large {
            fence()
        }
    };
    let n = shape.last().copied().unwrap_or(1);
    if n >= LINE || outer == 0 {
        let each = |at: [usize; 2], n: usize| copy(at, (1, n * size), [0, 0]);
        return for_runs(&shape, [&to, &from], LINE, GRAIN, each, done);
    }
    let steps = [to[outer - 1], from[outer - 1]];
    let rows = |at: [usize; 2], count: usize| copy(at, (count, n * size), steps);
    for_runs(&shape[..outer], [&to[..outer], &from[..outer]], LINE / n, GRAIN / n, rows, done);
}

/// SAFETY: `n` elements each, of sizes `from` and `to`, not overlapping.
unsafe fn run(n: usize, src: *const u8, from: usize, dst: *mut u8, to: usize, step: Option<ConvertFn>) {
    let (src, dst) = (TaskShared(src), TaskShared(dst));
    par_for(n, GRAIN, |r| {
        // SAFETY: ranges lie within `0..n` and are disjoint.
        unsafe {
            let (src, dst) = (src.get().add(r.start * from), dst.get().add(r.start * to));
            match step {
                Some(step) => step(src, dst, r.len()),
                None => std::ptr::copy_nonoverlapping(src, dst, r.len() * from),
            }
        }
    });
}

/// Fills with one value.
///
/// # Safety
/// Every element that shape and strides reach is in bounds and aligned.
pub unsafe fn fill(shape: &[usize], out: &Output, value: Scalar) {
    if shape.contains(&0) {
        return;
    }
    let size = out.dtype.size();
    let mut element = [0u64; 2];
    store(value, out.dtype, &mut element);
    let space = Space::new(shape, &[Walk { strides: out.strides, size }], size);
    let dst = TaskShared(out.ptr);
    if space.is_contiguous() {
        return par_for(shape.iter().product(), GRAIN, |r| {
            // SAFETY: ranges lie within the output and are disjoint.
            unsafe { splat(size, element.as_ptr().cast(), dst.get().add(r.start * size), r.len()) }
        });
    }
    par_for(space.tiles, GRAIN.div_ceil(space.len), |tiles| {
        let mut scratch = Scratch::take();
        let mut ready = false;
        let mut tile = space.tile(tiles.start);
        for _ in tiles {
            let (dims, whole) = tile.block(0);
            // SAFETY: blocks lie within the output, a buffer holds a tile, tiles are disjoint.
            unsafe {
                let target = dst.get().add(tile.offset(0) * size);
                if whole {
                    splat(size, element.as_ptr().cast(), target, tile.len);
                } else {
                    if !ready {
                        splat(size, element.as_ptr().cast(), scratch.buffer(0), space.len);
                        ready = true;
                    }
                    scatter(size, scratch.buffer(0), target, dims);
                }
            }
            tile.advance();
        }
    });
}
