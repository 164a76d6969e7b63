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

use super::view::View;
use super::walk::for_lines;
use crate::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Finds an index outside `low..size`; `low` is `-size` where negative indices count from the end, else zero.
///
/// # Safety
/// `index` must be in bounds.
pub(super) unsafe fn check(index: View, low: i64, size: usize) -> std::result::Result<(), i64> {
    let high = size as i64;
    // The offset of the first bad index, in the order of memory that the walk sees.
    let bad = AtomicUsize::new(usize::MAX);
    for_lines(index.shape, [index.strides], |[at], n, [step]| {
        let p = index.at(at) as *const i64;
        // SAFETY: the caller vouches for the index.
        let wrong = |i: usize| unsafe { *p.add(i * step) < low || *p.add(i * step) >= high };
        if (0..n).fold(false, |any, i| any | wrong(i)) {
            let first = (0..n).find(|&i| wrong(i)).unwrap_or(0);
            bad.fetch_min(at + first * step, Ordering::Relaxed);
        }
    });
    match bad.into_inner() {
        usize::MAX => Ok(()),
        // SAFETY: the offset is one of the index's.
        at => Err(unsafe { *(index.at(at) as *const i64) }),
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
