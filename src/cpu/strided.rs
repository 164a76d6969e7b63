//! Copies between strided memory and a contiguous buffer, for any dtype: only the element size matters.
//!
//! A block is described by its dimensions, outermost first, as (size, stride in elements). If the rows of the innermost
//! plane are far apart in memory but its columns are not (a transposed operand), it is traversed column by column: with
//! planes of 16 x 64 every cache line is fully used while it is still in L1.

use super::row_copy::{copy_rows, splat_rows};

/// One dimension of a block: its size and its stride in elements.
pub type Dim = (usize, usize);

/// 16 bytes with the alignment of a complex number.
type Wide = [u64; 2];

/// Reads a strided block into contiguous memory.
///
/// # Safety
/// All elements of the block are readable at `src`, `dst` holds as many, and the two do not overlap; `size` is
/// the size of an element (1, 2, 4, 8 or 16) and both are aligned for it.
pub unsafe fn gather(size: usize, src: *const u8, dims: &[Dim], dst: *mut u8) {
    // SAFETY: the caller's promise, in units of `size` bytes.
    unsafe {
        match size {
            1 => gather_block::<u8>(src, dims, dst),
            2 => gather_block::<u16>(src.cast(), dims, dst.cast()),
            4 => gather_block::<u32>(src.cast(), dims, dst.cast()),
            8 => gather_block::<u64>(src.cast(), dims, dst.cast()),
            _ => gather_block::<Wide>(src.cast(), dims, dst.cast()),
        }
    }
}

/// Writes contiguous memory to a strided block.
///
/// # Safety
/// As `gather`, with the roles of the two exchanged.
pub unsafe fn scatter(size: usize, src: *const u8, dst: *mut u8, dims: &[Dim]) {
    // SAFETY: the caller's promise, in units of `size` bytes.
    unsafe {
        match size {
            1 => scatter_block::<u8>(src, dst, dims),
            2 => scatter_block::<u16>(src.cast(), dst.cast(), dims),
            4 => scatter_block::<u32>(src.cast(), dst.cast(), dims),
            8 => scatter_block::<u64>(src.cast(), dst.cast(), dims),
            _ => scatter_block::<Wide>(src.cast(), dst.cast(), dims),
        }
    }
}

/// Repeats one element.
///
/// # Safety
/// `value` holds one element, `dst` holds `n`, and the two do not overlap.
pub unsafe fn splat(size: usize, value: *const u8, dst: *mut u8, n: usize) {
    // SAFETY: a row of stride zero.
    unsafe { gather(size, value, &[(n, 0)], dst) }
}

/// Whether a plane is better traversed by columns.
fn by_columns((_, row_stride): Dim, (_, stride): Dim) -> bool {
    stride > 1 && row_stride > 0 && row_stride < stride
}

/// Transposes `SQUARE` columns of `SQUARE` elements into as many rows.
///
/// SAFETY: the elements are in bounds, and the two do not overlap.
#[inline(always)]
unsafe fn square<U: Copy>(src: *const U, from_col: usize, dst: *mut U, to_row: usize) {
    // SAFETY: the caller's promise; x86-64 includes SSE2.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        match size_of::<U>() {
            4 => return square_32(src.cast(), from_col, dst.cast(), to_row),
            8 => {
                for (r, c) in [(0, 0), (0, 2), (2, 0), (2, 2)] {
                    square_64(src.add(r + c * from_col).cast(), from_col, dst.add(r * to_row + c).cast(), to_row);
                }
                return;
            }
            _ => {}
        }
        for i in 0..SQUARE {
            (0..SQUARE).for_each(|j| *dst.add(i * to_row + j) = *src.add(i + j * from_col));
        }
    }
}

/// SAFETY: as `square`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn square_32(src: *const f32, from_col: usize, dst: *mut f32, to_row: usize) {
    use std::arch::x86_64::*;
    // SAFETY: four elements at the start of each of four columns and rows.
    unsafe {
        let [a, b, c, d] = std::array::from_fn(|j| _mm_loadu_ps(src.add(j * from_col)));
        let (p, q) = (_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b));
        let (r, s) = (_mm_unpacklo_ps(c, d), _mm_unpackhi_ps(c, d));
        let lines = [_mm_movelh_ps(p, r), _mm_movehl_ps(r, p), _mm_movelh_ps(q, s), _mm_movehl_ps(s, q)];
        for (i, line) in lines.into_iter().enumerate() {
            _mm_storeu_ps(dst.add(i * to_row), line);
        }
    }
}

/// Two by two.
///
/// SAFETY: as `square`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn square_64(src: *const f64, from_col: usize, dst: *mut f64, to_row: usize) {
    use std::arch::x86_64::*;
    // SAFETY: two elements at the start of each of two columns and rows.
    unsafe {
        let (a, b) = (_mm_loadu_pd(src), _mm_loadu_pd(src.add(from_col)));
        _mm_storeu_pd(dst, _mm_unpacklo_pd(a, b));
        _mm_storeu_pd(dst.add(to_row), _mm_unpackhi_pd(a, b));
    }
}

/// Prefetches `n` elements that the next tile is likely to read: short, distant pieces, which hardware does not
/// predict.
#[inline(always)]
fn prefetch<U>(at: *const U, n: usize) {
    #[cfg(target_arch = "x86_64")]
    for byte in (0..n * size_of::<U>()).step_by(64) {
        // SAFETY: a hint that never faults, for any address.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast::<i8>().wrapping_add(byte))
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, n);
}

/// Rows and columns moved through registers at a time.
const SQUARE: usize = 4;

/// `dst[r * to.0 + c * to.1] = src[r * from.0 + c * from.1]`, where steps along r in `src` and along c in `dst` are small.
///
/// SAFETY: all those elements are in bounds, and the two do not overlap.
#[allow(clippy::too_many_arguments)]
#[inline(always)]
unsafe fn transpose<U: Copy>(
    src: *const U,
    from_row: usize,
    from_col: usize,
    dst: *mut U,
    to_row: usize,
    to_col: usize,
    rows: usize,
    cols: usize,
) {
    let (whole_rows, whole_cols) = (rows - rows % SQUARE, cols - cols % SQUARE);
    let unit = from_row == 1 && to_col == 1;
    // SAFETY: the caller's promise.
    unsafe {
        let one = |r: usize, c: usize| *dst.add(r * to_row + c * to_col) = *src.add(r * from_row + c * from_col);
        if !unit {
            return (0..cols).for_each(|c| (0..rows).for_each(|r| one(r, c)));
        }
        for c in (0..whole_cols).step_by(SQUARE) {
            (c..c + SQUARE).for_each(|c| prefetch(src.wrapping_add(c * from_col + rows), rows));
            for r in (0..whole_rows).step_by(SQUARE) {
                square(src.add(r + c * from_col), from_col, dst.add(r * to_row + c), to_row);
            }
        }
        (0..whole_cols).for_each(|c| (whole_rows..rows).for_each(|r| one(r, c)));
        (whole_cols..cols).for_each(|c| (0..rows).for_each(|r| one(r, c)));
    }
}

/// SAFETY: as `gather`.
unsafe fn gather_block<U: Copy>(src: *const U, dims: &[Dim], dst: *mut U) {
    // SAFETY: offsets stay in the block by the caller's promise.
    unsafe {
        match *dims {
            [] => *dst = *src,
            [(n, stride)] => gather_row(src, n, stride, dst),
            [rows, cols] if by_columns(rows, cols) => {
                transpose(src, rows.1, cols.1, dst, cols.0, 1, rows.0, cols.0);
            }
            [(rows, step), (n, 1)] => {
                let bytes = size_of::<U>();
                copy_rows(rows, n * bytes, (src.cast(), step * bytes), (dst.cast(), n * bytes));
            }
            [(rows, step), (n, 0)] => splat_rows(rows, n, (src, step), dst),
            [(n, stride), ref inner @ ..] => {
                let step: usize = inner.iter().map(|d| d.0).product();
                for i in 0..n {
                    gather_block(src.add(i * stride), inner, dst.add(i * step));
                }
            }
        }
    }
}

/// SAFETY: as `gather`.
#[inline(always)]
unsafe fn gather_row<U: Copy>(src: *const U, n: usize, stride: usize, dst: *mut U) {
    // SAFETY: `n` elements `stride` apart, by the caller's promise.
    unsafe {
        match stride {
            0 => std::slice::from_raw_parts_mut(dst, n).fill(*src),
            1 => std::ptr::copy_nonoverlapping(src, dst, n),
            _ => (0..n).for_each(|i| *dst.add(i) = *src.add(i * stride)),
        }
    }
}

/// SAFETY: as `scatter`.
unsafe fn scatter_block<U: Copy>(src: *const U, dst: *mut U, dims: &[Dim]) {
    // SAFETY: offsets stay in the block by the caller's promise.
    unsafe {
        match *dims {
            [] => *dst = *src,
            [(n, 1)] => std::ptr::copy_nonoverlapping(src, dst, n),
            [(n, stride)] => (0..n).for_each(|i| *dst.add(i * stride) = *src.add(i)),
            [rows, cols] if by_columns(rows, cols) => {
                // With rows and columns exchanged: distant elements are written last.
                transpose(src, 1, cols.0, dst, cols.1, rows.1, cols.0, rows.0);
            }
            [(rows, step), (n, 1)] => {
                let bytes = size_of::<U>();
                copy_rows(rows, n * bytes, (src.cast(), n * bytes), (dst.cast(), step * bytes));
            }
            [(n, stride), ref inner @ ..] => {
                let step: usize = inner.iter().map(|d| d.0).product();
                for i in 0..n {
                    scatter_block(src.add(i * step), dst.add(i * stride), inner);
                }
            }
        }
    }
}
