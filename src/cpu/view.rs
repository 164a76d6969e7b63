//! A strided operand of a kernel: an address, a dtype, a shape and strides.
//!
//! Note [Views]: a `View` is a proof that its elements lie in live memory, made once, by `View::new`: kernels that take
//! views are safe functions. What else a kernel relies on (shapes that fit together, int64 indices, results apart from
//! what is read) it checks on entry, with the functions here; a caller that got it wrong sees an internal error.
//!
//! Also the two doors between memory of any dtype and a kernel's own type: `load` reads a run of elements
//! as the type that the kernel computes in, `store` writes its results as the type of the destination.

use super::convert::converter;
use super::strided::{gather, scatter};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout};
use std::mem::MaybeUninit;
use std::ops::Deref;

/// What a view says of its elements. Strides are in elements; the address is of the element at index zero.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    pub ptr: *mut u8,
    pub dtype: DType,
    pub shape: &'a [usize],
    pub strides: &'a [usize],
}

/// A strided operand whose elements may be read and written: Note [Views]. It reads as its `Operand`, and cannot be changed.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    operand: Operand<'a>,
    /// Bytes from the address to the end of the last element; zero where there is none.
    span: usize,
}

// SAFETY: the memory outlives the view on any thread, by the contract of `new`. Threads that share a view write disjoint
// elements, or race on values alone: Note [Shared memory].
unsafe impl Send for View<'_> {}
// SAFETY: as above.
unsafe impl Sync for View<'_> {}

impl<'a> Deref for View<'a> {
    type Target = Operand<'a>;
    #[inline(always)]
    fn deref(&self) -> &Operand<'a> {
        &self.operand
    }
}

impl<'a> View<'a> {
    /// # Safety
    /// For as long as the view or a copy of it is used, every element that shape and strides reach from `ptr` lies in
    /// memory that may be read and written, is aligned for the dtype and holds initialised bytes, or is written before it
    /// is read. No reference to that memory exists but those that kernels make while they run.
    #[inline]
    pub unsafe fn new(ptr: *mut u8, dtype: DType, shape: &'a [usize], strides: &'a [usize]) -> View<'a> {
        debug_assert!(shape.len() == strides.len());
        let last = shape.iter().zip(strides).try_fold(0usize, |at, (&d, &s)| Some(at + d.checked_sub(1)? * s));
        let span = last.map_or(0, |last| (last + 1) * dtype.size());
        View { operand: Operand { ptr, dtype, shape, strides }, span }
    }
    /// A layout over a block of memory that `layout.offset` counts from; none where it reaches beyond.
    ///
    /// # Safety
    /// As for `new`, of the block.
    #[inline]
    pub unsafe fn within(block: *mut u8, bytes: usize, dtype: DType, layout: &'a Layout) -> Option<View<'a>> {
        let (mut last, mut empty) = (Some(layout.offset), false);
        for (&d, &s) in layout.shape.iter().zip(&layout.strides) {
            empty |= d == 0;
            last = d.saturating_sub(1).checked_mul(s).and_then(|step| last?.checked_add(step));
        }
        let end = if empty { Some(0) } else { last?.checked_add(1)?.checked_mul(dtype.size()) };
        let (size, start) = (end?, layout.offset.wrapping_mul(dtype.size()));
        let operand = Operand { ptr: block.wrapping_add(start), dtype, shape: &layout.shape, strides: &layout.strides };
        (size <= bytes).then_some(View { operand, span: if empty { 0 } else { size - start } })
    }
    /// Whether the range of bytes from the first element to the last has none in common with that of `other`.
    #[inline]
    pub fn is_apart(&self, other: &View) -> bool {
        let (a, b) = (self.ptr as usize, other.ptr as usize);
        self.span == 0 || other.span == 0 || a + self.span <= b || b + other.span <= a
    }
    /// Whether the other view has the same elements at the same places: an operand that is overwritten as it is read.
    pub fn is_same(&self, other: &View) -> bool {
        let layout = self.shape == other.shape && self.strides == other.strides;
        self.ptr == other.ptr && self.dtype == other.dtype && layout
    }
    /// The same memory under another shape.
    ///
    /// # Safety
    /// Shape and strides reach only elements that this view reaches.
    #[inline]
    pub unsafe fn seen_as<'b>(&self, shape: &'b [usize], strides: &'b [usize]) -> View<'b> {
        // SAFETY: the caller's promise, and this view's own.
        unsafe { View::new(self.ptr, self.dtype, shape, strides) }
    }
}

impl<'a> Operand<'a> {
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
            // The sizes of an empty operand may overflow.
            step = usize::saturating_mul(step, d);
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
    /// Whether `other` has this shape but for dimension `dim`, where it has `n` elements.
    pub fn matches_but(&self, dim: usize, n: usize, other: &Operand) -> bool {
        let sizes = self.shape.iter().zip(other.shape).enumerate();
        self.ndim() == other.ndim()
            && sizes.fold(true, |ok, (d, (&a, &b))| ok & (b == if d == dim { n } else { a }))
            && (dim < self.ndim() || n <= 1)
    }
    /// Whether `other` has this shape, with the dimensions that `reduced` names of size one.
    pub fn reduces_to(&self, reduced: impl Fn(usize) -> bool, other: &Operand) -> bool {
        let sizes = self.shape.iter().zip(other.shape).enumerate();
        self.ndim() == other.ndim() && sizes.fold(true, |ok, (d, (&a, &b))| ok & (b == if reduced(d) { 1 } else { a }))
    }
}

/// What a kernel relies on; where it does not hold the caller is at fault, and nothing has been touched.
#[inline]
pub fn ensure(holds: bool, kernel: &'static str) -> Result<()> {
    if holds { Ok(()) } else { Err(misused(kernel)) }
}
#[cold]
fn misused(kernel: &'static str) -> Error {
    Error::internal(format!("{kernel}: the operands do not fit together"))
}

/// An address that may cross threads.
#[derive(Clone, Copy)]
pub struct SendPtr<T>(pub *mut T);
// SAFETY: the kernels that share it write disjoint elements.
unsafe impl<T> Send for SendPtr<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for SendPtr<T> {}
impl<T> SendPtr<T> {
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
