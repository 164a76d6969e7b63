//! `gather` (an index per element of the result) and `index_select` (an index per slice).
//!
//! Each index is checked when it is used: after a bad one the result, which is not shared yet, is discarded.

use super::{Found, at_use, out_of_range, out_of_reach};
use crate::cpu::lines::{Others, for_lines};
use crate::cpu::parallel::par_for;
use crate::cpu::row_copy::{CopyRow, RowLoop, for_rows};
use crate::cpu::view::{View, ensure};
use crate::error::Result;
use crate::layout::Dims;
use std::ops::Range;

/// `out[i][j][k] = input[i][index[i][j][k]][k]` for `dim` 1; `out` has the shape of `index`.
pub fn gather(input: View, dim: usize, index: View, out: View) -> Result<()> {
    let size = input.dim(dim).0;
    let right = super::reaches(&index, dim, &input)
        && index.shape == out.shape
        && input.dtype == out.dtype
        && (out.is_apart(&input) && out.is_apart(&index));
    ensure(right, "gather")?;
    let lines = match input.dtype.size() {
        1 => lines::<u8>,
        2 => lines::<u16>,
        4 => lines::<u32>,
        8 => lines::<u64>,
        _ => lines::<[u64; 2]>,
    };
    // SAFETY: lines of the index lie beside lines of the others; the type has the element's size.
    unsafe { lines(input, dim, index, out) }.map_err(out_of_reach(dim, size))
}

unsafe fn lines<T: Copy>(input: View, dim: usize, index: View, out: View) -> std::result::Result<(), i64> {
    let (size, stride) = input.dim(dim);
    let mut strides: Dims = input.strides.into();
    if let Some(s) = strides.get_mut(dim) {
        *s = 0;
    }
    let found = Found::default();
    for_lines(index.shape, [index.strides, out.strides, &strides], |[i, o, x], n, [di, d_out, dx]| {
        let p = index.at(i) as *const i64;
        let out = out.at(o) as *mut T;
        let input = input.at(x) as *const T;
        // SAFETY: the caller's promise about the lines, and positions are below the size.
        unsafe {
            if [di, d_out, dx, stride] == [1, 1, 0, 1] {
                return (0..n).for_each(|j| match at_use(p.add(j), size) {
                    Ok(place) => *out.add(j) = *input.add(place),
                    Err(bad) => found.report(i + j, bad),
                });
            }
            (0..n).for_each(|j| match at_use(p.add(j * di), size) {
                Ok(place) => *out.add(j * d_out) = *input.add(j * dx + place * stride),
                Err(bad) => found.report(i + j * di, bad),
            });
        }
    });
    found.result()
}

/// Slices of `input` along `dim`, in the order of a one-dimensional `index`.
pub fn index_select(input: View, dim: usize, index: View, out: View) -> Result<()> {
    let right = super::is_list(&index)
        && input.matches_but(dim, index.numel(), &out)
        && input.dtype == out.dtype
        && (out.is_apart(&input) && out.is_apart(&index));
    ensure(right, "index_select")?;
    if out.numel() == 0 && input.ndim() > 0 {
        // Nothing is copied, but a wrong index is an error all the same.
        // SAFETY: the index is a list whose elements lie in live memory.
        return unsafe { super::check(index, 0, input.dim(dim).0) }.map_err(out_of_range);
    }
    // An index that does not move along the other dimensions serves them all.
    let mut strides = Dims::from_elem(0, out.ndim());
    if let Some(s) = strides.get_mut(dim) {
        *s = index.dim(0).1;
    }
    // SAFETY: there is an index for each slice of the result.
    let spread = unsafe { index.seen_as(out.shape, &strides) };
    let (out_step, dense) = (out.dim(dim).1, |d: usize| out.strides[d] < out.dim(dim).1);
    let inner: usize = (0..out.ndim()).filter(|&d| d != dim && dense(d)).map(|d| out.shape[d]).product();
    let row = |v: &View| (0..v.ndim()).filter(|&d| d != dim && dense(d)).all(|d| v.strides[d] < v.dim(dim).1);
    // SAFETY: the shapes were compared, and the result lies apart.
    unsafe {
        let expanded = input.strides.iter().all(|&s| s == 0);
        if inner > 1 && out_step >= inner && (row(&input) || expanded) && out.numel() > 0 {
            return slices(input, dim, index, out).map_err(out_of_range);
        }
        let lines = match input.dtype.size() {
            1 => lines::<u8>,
            2 => lines::<u16>,
            4 => lines::<u32>,
            8 => lines::<u64>,
            _ => lines::<[u64; 2]>,
        };
        lines(input, dim, spread, out).map_err(out_of_range)
    }
}

/// Copies whole slices, run by run, if the slice's dimensions are inside `dim` in both operands.
unsafe fn slices(input: View, dim: usize, index: View, out: View) -> std::result::Result<(), i64> {
    let (size, stride) = input.dim(dim);
    let (count, out_step) = out.dim(dim);
    let step = index.dim(0).1;
    let found = Found::default();
    let bytes = input.dtype.size();
    let copy_run = match bytes {
        1 => copy_run::<u8>,
        2 => copy_run::<u16>,
        4 => copy_run::<u32>,
        8 => copy_run::<u64>,
        _ => copy_run::<[u64; 2]>,
    };
    let mut others = Others::new(out.shape, [out.strides, input.strides], dim);
    let (run, [d_out, d_in]) = others.pop();
    let runs = others.count();
    let whole = runs == 1 && (run == 1 || (d_out, d_in) == (1, 1));
    par_for(count, (1 << 15) / (runs * run), |range| {
        if whole {
            let (input, out) = ((input.ptr.cast_const(), stride * bytes), (out.ptr, out_step * bytes));
            return for_rows(run * bytes, Selected { input, size, index, out, range, found: &found });
        }
        for i in range {
            // SAFETY: the caller's promise about the index; positions are below the size, slices of the result are
            // disjoint.
            unsafe {
                let place = match at_use(index.at(i * step) as *const i64, size) {
                    Ok(place) => place,
                    Err(bad) => {
                        found.report(i, bad);
                        continue;
                    }
                };
                let mut at = others.walk(0);
                for _ in 0..runs {
                    let dst = out.at(i * out_step + at.offsets[0]);
                    let src = input.at(place * stride + at.offsets[1]);
                    if d_out == 1 && d_in == 1 {
                        std::ptr::copy_nonoverlapping(src, dst, run * bytes);
                    } else {
                        copy_run((src, d_in), (dst, d_out), run);
                    }
                    at.step();
                }
            }
        }
    });
    found.result()
}

/// Rows of contiguous elements, one for each index of a range; steps are in bytes.
struct Selected<'a> {
    input: (*const u8, usize),
    size: usize,
    index: View<'a>,
    out: (*mut u8, usize),
    range: Range<usize>,
    found: &'a Found,
}
impl RowLoop for Selected<'_> {
    type Output = ();
    #[inline(always)]
    fn run<C: CopyRow>(self, row: C) {
        let step = self.index.dim(0).1;
        for i in self.range {
            // SAFETY: the promise of `slices`; rows that were found are within the input.
            unsafe {
                match at_use(self.index.at(i * step) as *const i64, self.size) {
                    Ok(place) => row.copy(self.input.0.add(place * self.input.1), self.out.0.add(i * self.out.1)),
                    Err(bad) => self.found.report(i, bad),
                }
            }
        }
    }
}

/// Copies `n` elements, each operand's a step apart; a step of zero reads one element.
///
/// SAFETY: the elements must be readable and writable.
unsafe fn copy_run<T: Copy>((src, d_in): (*mut u8, usize), (dst, d_out): (*mut u8, usize), n: usize) {
    let (src, dst) = (src as *const T, dst as *mut T);
    // SAFETY: the caller's promise.
    unsafe {
        if d_in == 0 && d_out == 1 {
            std::slice::from_raw_parts_mut(dst, n).fill(*src);
        } else {
            (0..n).for_each(|j| *dst.add(j * d_out) = *src.add(j * d_in));
        }
    }
}
