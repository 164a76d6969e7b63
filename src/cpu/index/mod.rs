//! Reading and writing through index tensors: gather, scatter, selection, advanced indexing, masks.
//!
//! Indices are checked before anything is written, so an error leaves every operand as it was. Moving data only
//! needs the size of an element; combining (`scatter` with a mode) goes through `combine`.

mod advanced;
mod combine;
mod gather;
mod mask;
mod scatter;
#[cfg(test)]
mod tests;

pub use advanced::{index_get, index_put, index_shape};
pub use combine::Mode;
pub use gather::{gather, index_select};
pub use mask::{masked_scatter, masked_select, nonzero, nonzero_count};
pub use scatter::{Source, index_add, index_copy, index_fill, index_reduce, scatter};

use super::num::Fuse;
use super::simd::{self, Kernel};
use super::view::View;
use super::walk::for_lines;
use crate::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Finds an index outside `low..size`; `low` is `-size` where negative indices count from the end, else zero.
///
/// # Safety
/// `index` must be in bounds.
unsafe fn check(index: View, low: i64, size: usize) -> std::result::Result<(), i64> {
    let found = Found::default();
    for_lines(index.shape, [index.strides], |[at], n, [step]| {
        let p = index.at(at) as *const i64;
        // SAFETY: the caller vouches for the index.
        if let Some(i) = unsafe { first_bad(p, step, n, low, size as i64) } {
            found.report(at + i * step);
        }
    });
    // SAFETY: the offset is one of the index's.
    found.offset().map_or(Ok(()), |at| Err(unsafe { *(index.at(at) as *const i64) }))
}

/// The first bad index that several threads have met, by its offset: the same one however they were scheduled.
struct Found(AtomicUsize);
impl Default for Found {
    fn default() -> Found {
        Found(AtomicUsize::new(usize::MAX))
    }
}
impl Found {
    fn report(&self, offset: usize) {
        self.0.fetch_min(offset, Ordering::Relaxed);
    }
    fn offset(&self) -> Option<usize> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&at| at != usize::MAX)
    }
}

/// The position of the first of `n` indices that is outside `low..high`.
///
/// SAFETY: the indices must be readable.
unsafe fn first_bad(index: *const i64, step: usize, n: usize, low: i64, high: i64) -> Option<usize> {
    // SAFETY: the caller vouches for the run.
    let at = |i: usize| unsafe { *index.add(i * step) };
    let good = if step == 1 {
        // SAFETY: as above.
        simd::run(Within { index: unsafe { std::slice::from_raw_parts(index, n) }, low, high })
    } else {
        (0..n).all(|i| (low..high).contains(&at(i)))
    };
    if good { None } else { (0..n).find(|&i| !(low..high).contains(&at(i))) }
}

/// Whether all indices are in range.
struct Within<'a> {
    index: &'a [i64],
    low: i64,
    high: i64,
}
impl Kernel for Within<'_> {
    type Output = bool;
    #[inline(always)]
    fn run<F: Fuse>(self) -> bool {
        // A difference below zero is an index out of range; one that wraps goes with one that does not.
        let (low, last) = (self.low, self.high - 1);
        let signs = |&v: &i64| v.wrapping_sub(low) | last.wrapping_sub(v);
        self.index.iter().fold(0, |all, v| all | signs(v)) >= 0
    }
}

/// What PyTorch says of a bad index in advanced indexing and in the slice-wise writes: an `IndexError`.
fn out_of_bounds(dim: usize, size: usize) -> impl FnOnce(i64) -> Error {
    move |index| Error::index(format!("index {index} is out of bounds for dimension {dim} with size {size}"))
}
/// The same words from gather and scatter: a `RuntimeError`.
fn out_of_reach(dim: usize, size: usize) -> impl FnOnce(i64) -> Error {
    move |index| Error::runtime(format!("index {index} is out of bounds for dimension {dim} with size {size}"))
}
/// From selection, addition and embedding.
fn out_of_range(_: i64) -> Error {
    Error::index("index out of range in self")
}
