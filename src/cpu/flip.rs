//! Copies that strides cannot express: reversed dimensions, and the triangles of matrices.
//!
//! Layouts have no negative strides, so a flip is a copy with its own loop: rows in parallel, each read from its
//! mirrored position. A triangle copies part of each row and zeroes the rest.

use super::number_class::Fuse;
use super::parallel::par_for;
use super::simd::{self, Kernel};
use super::view::{View, ensure};
use crate::error::Result;
use crate::layout::{Dims, Odometer};
use smallvec::SmallVec;
use std::marker::PhantomData;
use std::ops::Range;

/// Minimum elements per task.
const GRAIN: usize = 1 << 15;

/// The elements of `input` in reverse order along `dims`; both operands are of one shape and dtype.
pub fn flip(input: View, dims: &[usize], out: View) -> Result<()> {
    ensure(input.shape == out.shape && input.dtype == out.dtype && out.is_apart(&input), "flip")?;
    // SAFETY: one shape, and the result lies apart; the type has the element's size.
    unsafe {
        match input.dtype.size() {
            1 => flipped::<u8>(input, dims, out),
            2 => flipped::<u16>(input, dims, out),
            4 => flipped::<u32>(input, dims, out),
            8 => flipped::<u64>(input, dims, out),
            _ => flipped::<[u64; 2]>(input, dims, out),
        }
    }
    Ok(())
}

unsafe fn flipped<T: Copy>(input: View, dims: &[usize], out: View) {
    let last = out.ndim().saturating_sub(1);
    let (n, step_out) = out.dim(last);
    let (_, step_in) = input.dim(last);
    let outer: Dims = out.shape[..last].into();
    if out.numel() == 0 {
        return;
    }
    let mirrored = dims.contains(&last) && out.ndim() > 0;
    let reversed: SmallVec<[bool; 6]> = (0..last).map(|d| dims.contains(&d)).collect();
    par_for(outer.iter().product(), GRAIN.div_ceil(n), |rows| {
        simd::run(Flipped::<T> {
            input,
            out,
            outer: &outer,
            reversed: &reversed,
            n,
            steps: [step_in, step_out],
            mirrored,
            rows,
            mark: PhantomData,
        });
    });
}

/// Some rows of a result, each copied from its mirrored place; `mirrored` rows are reversed too.
struct Flipped<'a, T> {
    input: View<'a>,
    out: View<'a>,
    /// The sizes of the dimensions but the last, and which of them are reversed.
    outer: &'a [usize],
    reversed: &'a [bool],
    n: usize,
    /// Along a row of the input and of the result.
    steps: [usize; 2],
    mirrored: bool,
    rows: Range<usize>,
    mark: PhantomData<T>,
}

impl<T: Copy> Flipped<'_, T> {
    /// Copies one row.
    ///
    /// # Safety
    /// Both rows are in bounds and do not overlap.
    #[inline(always)]
    unsafe fn row(&self, src: *const T, dst: *mut T) {
        let (n, [step_in, step_out]) = (self.n, self.steps);
        // SAFETY: the caller's promise; only contiguous elements are accessed as slices.
        unsafe {
            if step_in != 1 || step_out != 1 {
                for j in 0..n {
                    *dst.add(j * step_out) = *src.add(if self.mirrored { n - 1 - j } else { j } * step_in);
                }
                return;
            }
            let (src, dst) = (std::slice::from_raw_parts(src, n), std::slice::from_raw_parts_mut(dst, n));
            if self.mirrored {
                dst.iter_mut().zip(src.iter().rev()).for_each(|(d, s)| *d = *s);
            } else {
                dst.copy_from_slice(src);
            }
        }
    }
}

impl<T: Copy> Kernel for Flipped<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let dims = self.outer.len();
        // Steps of the input forwards, and backwards from the ends of the reversed dimensions.
        let [mut forwards, mut backwards] = [Dims::from_elem(0, dims), Dims::from_elem(0, dims)];
        let mut end = 0;
        for d in 0..dims {
            let stride = self.input.strides[d];
            if self.reversed[d] {
                backwards[d] = stride;
                end += (self.outer[d] - 1) * stride;
            } else {
                forwards[d] = stride;
            }
        }
        let mut at = Odometer::new(self.outer, [&self.out.strides[..dims], &forwards, &backwards], self.rows.start);
        for _ in self.rows.clone() {
            let [to, forwards, backwards] = at.offsets;
            // SAFETY: both rows are within the shape; rows are disjoint.
            unsafe { self.row(self.input.at(end + forwards - backwards) as *const T, self.out.at(to) as *mut T) };
            at.step();
        }
    }
}

/// Copies the elements with `column - row <= diagonal` (or `>=`, for the upper triangle) of the last two dimensions
/// and writes zeros to the others. `out` may be `input`. Both are of one shape, of two dimensions at least, and one dtype.
pub fn triangle(input: View, diagonal: i64, upper: bool, out: View) -> Result<()> {
    let same = input.ptr == out.ptr && input.strides == out.strides;
    let right = input.shape == out.shape && input.dtype == out.dtype && out.ndim() >= 2;
    ensure(right && (same || out.is_apart(&input)), "triangle")?;
    // SAFETY: one shape, and the same or apart; the type has the element's size and zero is all bits zero.
    unsafe {
        match input.dtype.size() {
            1 => triangular::<u8>(input, diagonal, upper, out),
            2 => triangular::<u16>(input, diagonal, upper, out),
            4 => triangular::<u32>(input, diagonal, upper, out),
            8 => triangular::<u64>(input, diagonal, upper, out),
            _ => triangular::<[u64; 2]>(input, diagonal, upper, out),
        }
    }
    Ok(())
}

unsafe fn triangular<T: Copy + Default>(input: View, diagonal: i64, upper: bool, out: View) {
    let last = out.ndim() - 1;
    let (n, step_out) = out.dim(last);
    let step_in = input.strides[last];
    let outer: Dims = out.shape[..last].into();
    if out.numel() == 0 {
        return;
    }
    let in_place = input.ptr == out.ptr && input.strides == out.strides;
    par_for(outer.iter().product(), GRAIN.div_ceil(n), |rows| {
        for row in rows {
            let (mut rest, mut from, mut to) = (row, 0, 0);
            for d in (0..last).rev() {
                let i = rest % outer[d];
                rest /= outer[d];
                to += i * out.strides[d];
                from += i * input.strides[d];
            }
            let first_beyond = ((row % outer[last - 1]) as i64).saturating_add(diagonal);
            let edge = first_beyond.saturating_add(!upper as i64).clamp(0, n as i64) as usize;
            let (src, dst) = (input.at(from) as *const T, out.at(to) as *mut T);
            let (kept, cleared) = if upper { (edge..n, 0..edge) } else { (0..edge, edge..n) };
            // In place, the kept elements stay as they are: rows that share memory only ever zero elements.
            let kept = if in_place { 0..0 } else { kept };
            // SAFETY: both ranges are within the row; rows are disjoint, or all write the same zeros.
            unsafe {
                if step_in == 1 && step_out == 1 {
                    std::ptr::copy(src.add(kept.start), dst.add(kept.start), kept.len());
                    std::ptr::write_bytes(dst.add(cleared.start), 0, cleared.len());
                } else {
                    kept.for_each(|j| *dst.add(j * step_out) = *src.add(j * step_in));
                    cleared.for_each(|j| *dst.add(j * step_out) = T::default());
                }
            }
        }
    });
}
