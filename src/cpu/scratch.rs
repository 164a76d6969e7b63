//! Scratch memory of a kernel, from the same pool as tensors: a fresh mapping would cost a page fault per page.

use super::buffer::CpuBuffer;
use crate::error::Result;
use std::marker::PhantomData;

/// Uninitialised memory for `len` values of a plain type.
pub struct Temp<T> {
    buffer: CpuBuffer,
    len: usize,
    mark: PhantomData<T>,
}

impl<T: Copy> Temp<T> {
    pub fn new(len: usize) -> Result<Temp<T>> {
        let bytes = len.saturating_mul(size_of::<T>());
        Ok(Temp { buffer: CpuBuffer::alloc(bytes)?, len, mark: PhantomData })
    }
    pub fn filled(len: usize, value: T) -> Result<Temp<T>> {
        let temp: Temp<T> = Temp::new(len)?;
        for i in 0..len {
            // SAFETY: the block holds `len` values.
            unsafe { temp.ptr().add(i).write(value) };
        }
        Ok(temp)
    }
    pub fn ptr(&self) -> *mut T {
        self.buffer.ptr() as *mut T
    }
    /// # Safety
    /// All values must have been written.
    pub unsafe fn slice(&self) -> &[T] {
        // SAFETY: the block holds `len` values, aligned to 64.
        unsafe { std::slice::from_raw_parts(self.ptr(), self.len) }
    }
    /// # Safety
    /// All values must have been written.
    pub unsafe fn slice_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.ptr(), self.len) }
    }
}
