//! A strided operand of a kernel: an address, a dtype, a shape and strides.
//!
//! Also the conversion between memory of any dtype and a kernel's compute type: `load` reads a run of elements as the
//! compute type, `store` writes results in the destination's dtype.

use super::convert::converter;
use super::strided::{gather, scatter};
use crate::dtype::{DType, Element};
use crate::layout::Dims;
use std::mem::MaybeUninit;

/// A strided operand. Strides are in elements; the address is that of the element at index zero.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub ptr: *mut u8,
    pub dtype: DType,
    pub shape: &'a [usize],
    pub strides: &'a [usize],
}

// SAFETY: a view is an address with its description; whoever passes it to a kernel guarantees the memory, and kernels
// that share it between threads write disjoint elements.
unsafe impl Send for View<'_> {}
// SAFETY: as above.
unsafe impl Sync for View<'_> {}

impl<'a> View<'a> {
    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }
    /// Row-major without gaps.
    pub fn is_contiguous(&self) -> bool {
        let mut step = 1;
        self.shape.iter().zip(self.strides).rev().all(|(&d, &s)| {
            let ok = d == 1 || s == step;
            step *= d;
            ok
        }) || self.shape.contains(&0)
    }
    /// The address `offset` elements further.
    #[inline]
    pub fn at(&self, offset: usize) -> *mut u8 {
        self.ptr.wrapping_add(offset * self.dtype.size())
    }
    /// The size and stride of a dimension; a 0-d operand has one dimension of one element.
    pub fn dim(&self, dim: usize) -> (usize, usize) {
        (self.shape.get(dim).copied().unwrap_or(1), self.strides.get(dim).copied().unwrap_or(1))
    }
    /// Shape and strides with dimension `dim` taken out.
    pub fn without(&self, dim: usize) -> (Dims, Dims) {
        let keep = |v: &[usize]| v.iter().enumerate().filter(|&(i, _)| i != dim).map(|(_, &x)| x).collect();
        (keep(self.shape), keep(self.strides))
    }
}

/// An address that may cross threads.
#[derive(Clone, Copy)]
pub struct Ptr<T>(pub *mut T);
// SAFETY: the kernels that share it write disjoint elements.
unsafe impl<T> Send for Ptr<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Ptr<T> {}
impl<T> Ptr<T> {
    /// The address `i` elements further; a method, so that closures capture the whole wrapper.
    #[inline]
    pub fn at(&self, i: usize) -> *mut T {
        self.0.wrapping_add(i)
    }
}

/// Strided elements converted at once.
const CHUNK: usize = 1024;

/// Reads `n` elements of `dtype`, `stride` apart, as `T` into `buf`.
///
/// # Safety
/// The elements must be readable and `buf` must have room for `n`.
pub unsafe fn load<T: Element>(dtype: DType, src: *const u8, stride: usize, n: usize, buf: *mut T) {
    // SAFETY: the caller's promise for both runs; the scratch holds a chunk of the widest type.
    unsafe {
        let Some(convert) = converter(dtype, T::DTYPE) else {
            return gather(dtype.size(), src, &[(n, stride)], buf as *mut u8);
        };
        if stride == 1 {
            return convert(src, buf as *mut u8, n);
        }
        let mut scratch = [const { MaybeUninit::<u128>::uninit() }; CHUNK];
        let scratch = scratch.as_mut_ptr() as *mut u8;
        for start in (0..n).step_by(CHUNK) {
            let count = CHUNK.min(n - start);
            gather(dtype.size(), src.add(start * stride * dtype.size()), &[(count, stride)], scratch);
            convert(scratch, buf.add(start) as *mut u8, count);
        }
    }
}

/// Writes `n` elements of `T` as `dtype`, `stride` apart.
///
/// # Safety
/// `buf` must hold `n` elements and the destinations must be writable.
pub unsafe fn store<T: Element>(dtype: DType, dst: *mut u8, stride: usize, n: usize, buf: *const T) {
    // SAFETY: as in `load`.
    unsafe {
        let Some(convert) = converter(T::DTYPE, dtype) else {
            return scatter(dtype.size(), buf as *const u8, dst, &[(n, stride)]);
        };
        if stride == 1 {
            return convert(buf as *const u8, dst, n);
        }
        let mut scratch = [const { MaybeUninit::<u128>::uninit() }; CHUNK];
        let scratch = scratch.as_mut_ptr() as *mut u8;
        for start in (0..n).step_by(CHUNK) {
            let count = CHUNK.min(n - start);
            convert(buf.add(start) as *const u8, scratch, count);
            scatter(dtype.size(), scratch, dst.add(start * stride * dtype.size()), &[(count, stride)]);
        }
    }
}
