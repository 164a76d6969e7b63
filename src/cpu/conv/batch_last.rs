//! Small images with the batch as their innermost dimension: rows of places are then as long as the batch, not a few elements.

use super::Sizes;
use super::geometry::Axis;
use super::scratch::Image;
use crate::cpu::copy::copy;
use crate::cpu::gemm::tiles::{VECTORS, Vectors, tile_size};
use crate::cpu::map::{Input, Output};
use crate::cpu::scratch::Temp;
use crate::cpu::view::View;
use crate::error::Result;
use crate::layout::{Dims, contiguous_strides};

/// Whether rows of images, of so many places, are short and those of a batch are not. What one thread copies another computes
/// with, so it has to be worth it: rows of a quarter of a vector cost most.
pub fn is_better<T: Vectors>(s: &Sizes, width: &[Axis]) -> bool {
    let lanes = tile_size::<T>()[1] / VECTORS;
    s.batch >= lanes && width.iter().all(|a| a.places <= lanes / 4)
}

/// A copy `[channels, .., batch]` of an operand `[batch, channels, ..]`, in the compute type.
pub struct BatchLast<T> {
    memory: Temp<T>,
    shape: Dims,
    strides: Dims,
}

fn turned(list: &[usize]) -> Dims {
    list[1..].iter().chain(&list[..1]).copied().collect()
}

impl<T: Vectors> BatchLast<T> {
    /// Room for a copy of an operand.
    pub fn new(v: &View) -> Result<BatchLast<T>> {
        let shape = turned(v.shape);
        let strides = contiguous_strides(&shape);
        Ok(BatchLast { memory: Temp::new(v.numel())?, shape, strides })
    }
    /// The copy of an operand.
    pub fn of(v: &View) -> Result<BatchLast<T>> {
        let last = BatchLast::new(v)?;
        let to = Output { ptr: last.memory.ptr() as *mut u8, dtype: T::DTYPE, strides: &last.strides };
        // SAFETY: the view's elements, and room for them.
        unsafe { copy(&last.shape, &Input::Strided { ptr: v.ptr, dtype: v.dtype, strides: &turned(v.strides) }, &to) };
        Ok(last)
    }
    /// Writes the copy back to where the operand lies.
    pub fn store(&self, v: &View) {
        let from = Input::Strided { ptr: self.memory.ptr() as *mut u8, dtype: T::DTYPE, strides: &self.strides };
        // SAFETY: the view's elements, all of which the copy has.
        unsafe { copy(&self.shape, &from, &Output { ptr: v.ptr, dtype: v.dtype, strides: &turned(v.strides) }) };
    }
    /// An image whose last three dimensions are height, width and batch.
    pub fn image(&self) -> Image<'_> {
        let n = self.strides.len();
        let height = if n > 3 { self.strides[n - 3] } else { 0 };
        // SAFETY: the copy's elements.
        let view = unsafe { View::new(self.memory.ptr() as *mut u8, T::DTYPE, &self.shape, &self.strides) };
        Image { view, batch: 0, channel: self.strides[0], steps: [height, self.strides[n - 2], 1] }
    }
}
