//! Contiguous runs of dense operands, in a kernel's own type: in place where the dtype is that type, else through a buffer.

use super::view::{Operand, View, load, store};
use crate::dtype::Element;
use crate::error::Result;
use crate::rt::reserve::filled;

/// Reads runs of an operand as `T`.
pub(super) struct Reader<'a, T> {
    from: Operand<'a>,
    buffer: Vec<T>,
}

impl<'a, T: Element + Default> Reader<'a, T> {
    /// `longest` bounds the length of a run.
    pub fn new(from: &View<'a>, longest: usize) -> Result<Reader<'a, T>> {
        Ok(Reader { from: **from, buffer: filled(T::default(), if from.dtype == T::DTYPE { 0 } else { longest })? })
    }
    /// The `len` elements from `start` on, in memory.
    ///
    /// # Safety
    /// They lie within the operand, which is not written meanwhile.
    #[inline]
    pub unsafe fn run(&mut self, start: usize, len: usize) -> &[T] {
        let at = self.from.at(start);
        if self.from.dtype == T::DTYPE {
            // SAFETY: the caller's promise.
            return unsafe { std::slice::from_raw_parts(at as *const T, len) };
        }
        let buffer = &mut self.buffer[..len];
        // SAFETY: the caller's promise, and the buffer has that length.
        unsafe { load(self.from.dtype, at, 1, len, buffer.as_mut_ptr()) };
        buffer
    }
}

/// Writes runs of a result.
pub(super) struct Writer<'a, T> {
    to: Operand<'a>,
    buffer: Vec<T>,
}

impl<'a, T: Element + Default> Writer<'a, T> {
    /// `longest` bounds the length of a run.
    pub fn new(to: &View<'a>, longest: usize) -> Result<Writer<'a, T>> {
        Ok(Writer { to: **to, buffer: filled(T::default(), if to.dtype == T::DTYPE { 0 } else { longest })? })
    }
    /// Writes what `fill` makes of the `len` elements from `start` on; it must not rely on what they were.
    ///
    /// # Safety
    /// They lie within the result, hold initialised bytes, and no other thread reads or writes them.
    #[inline]
    pub unsafe fn run<R>(&mut self, start: usize, len: usize, fill: impl FnOnce(&mut [T]) -> R) -> R {
        let at = self.to.at(start);
        if self.to.dtype == T::DTYPE {
            // SAFETY: the caller's promise.
            return fill(unsafe { std::slice::from_raw_parts_mut(at as *mut T, len) });
        }
        let buffer = &mut self.buffer[..len];
        let result = fill(buffer);
        // SAFETY: the caller's promise.
        unsafe { store(self.to.dtype, at, 1, len, buffer.as_ptr()) };
        result
    }
}
