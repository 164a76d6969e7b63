//! `gather` (an index per element of the result) and `index_select` (an index per slice).

use super::{check, out_of_range, out_of_reach};
use crate::cpu::view::View;
use crate::cpu::walk::for_lines;
use crate::error::Result;
use crate::layout::Dims;

/// `out[i][j][k] = input[i][index[i][j][k]][k]` for `dim` 1; `out` has the shape of `index`.
///
/// # Safety
/// All operands must be in bounds; `out` must not overlap the others.
pub unsafe fn gather(input: View, dim: usize, index: View, out: View) -> Result<()> {
    let size = input.dim(dim).0;
    // SAFETY: handed on to the caller; every index is checked before it is used.
    unsafe {
        check(index, 0, size).map_err(out_of_reach(dim, size))?;
        copy_gather(input, dim, index, out);
    }
    Ok(())
}

/// `gather` with checked indices.
unsafe fn copy_gather(input: View, dim: usize, index: View, out: View) {
    let stride = input.dim(dim).1;
    // SAFETY: handed on to the caller.
    unsafe {
        let mut strides: Dims = input.strides.into();
        if let Some(s) = strides.get_mut(dim) {
            *s = 0;
        }
        let move_ = match input.dtype.size() {
            1 => lines::<u8>,
            2 => lines::<u16>,
            4 => lines::<u32>,
            8 => lines::<u64>,
            _ => lines::<[u64; 2]>,
        };
        move_(input, &strides, stride, index, out);
    }
}

unsafe fn lines<T: Copy>(input: View, strides: &[usize], stride: usize, index: View, out: View) {
    for_lines(index.shape, [index.strides, out.strides, strides], |[i, o, x], n, [di, d_out, dx]| {
        let index = index.at(i) as *const i64;
        let out = out.at(o) as *mut T;
        let input = input.at(x) as *const T;
        // SAFETY: the caller vouches for the lines and has checked the indices.
        unsafe {
            for j in 0..n {
                *out.add(j * d_out) = *input.add(j * dx + *index.add(j * di) as usize * stride);
            }
        }
    });
}

/// Slices of `input` along `dim`, in the order of a one-dimensional `index`.
///
/// # Safety
/// All operands must be in bounds; `out` must not overlap the others.
pub unsafe fn index_select(input: View, dim: usize, index: View, out: View) -> Result<()> {
    // An index that does not move along the other dimensions serves them all.
    let mut strides = Dims::from_elem(0, out.ndim());
    if let Some(s) = strides.get_mut(dim) {
        *s = index.dim(0).1;
    }
    // SAFETY: handed on to the caller.
    unsafe {
        check(index, 0, input.dim(dim).0).map_err(out_of_range)?;
        copy_gather(input, dim, View { shape: out.shape, strides: &strides, ..index }, out);
    }
    Ok(())
}
