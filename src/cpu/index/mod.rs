//! Reading and writing through index tensors: gather, scatter, selection, advanced indexing, masks.
//!
//! Kernels that write into an operand check all indices first, so an error leaves it unchanged; kernels that fill a new
//! result, or a copy that nobody has seen, check as they go. Moving data needs only the element size; combining
//! (`scatter` with a mode) uses `combine`.
//!
//! Note [Racing indices]: NumPy and other threads may write an index or a mask at any time, also between its check and
//! its use. So an index is read once when it is used, and that value is compared with the size (`at_use`); a mask's
//! pieces write no more than was counted for them. A change in between is reported as an error afterwards.

mod advanced;
mod combine;
mod gather;
mod mask;
mod rows;
mod scatter;
#[cfg(test)]
mod tests;

pub use self::advanced::{index_get, index_put, index_shape};
pub use self::gather::{gather, index_select};
pub use self::mask::{Counted, masked_scatter, masked_select, nonzero};
pub use self::rows::{Pairs, add_scaled_rows, dots_of_rows};
pub use self::scatter::{Source, index_add, index_copy, index_fill, index_reduce, scatter, scatter_into};
pub use crate::kinds::ScatterMode as Mode;

use super::lines::for_lines;
use super::number_class::Fuse;
use super::simd::{self, Kernel};
use super::view::{Operand, View};
use crate::dtype::DType;
use crate::error::Error;
use std::sync::Mutex;

/// An index out of range for a dimension of `size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrong {
    pub index: i64,
    pub dim: usize,
    pub size: usize,
}
/// Why an indexing was not done: an index is wrong, or the operands do not fit together.
#[derive(Debug)]
pub enum Refused {
    Index(Wrong),
    Call(Error),
}
impl From<Wrong> for Refused {
    fn from(w: Wrong) -> Refused {
        Refused::Index(w)
    }
}
impl From<Error> for Refused {
    fn from(e: Error) -> Refused {
        Refused::Call(e)
    }
}
impl From<Refused> for Error {
    fn from(r: Refused) -> Error {
        match r {
            Refused::Index(w) => w.into(),
            Refused::Call(e) => e,
        }
    }
}
/// What PyTorch says of it in advanced indexing and in the slice-wise writes: an `IndexError`.
impl From<Wrong> for Error {
    fn from(w: Wrong) -> Error {
        out_of_bounds(w.dim, w.size)(w.index)
    }
}

/// Whether `index` has a place of `t` beside each of its elements, whatever position along `dim` it names.
fn reaches(index: &Operand, dim: usize, t: &Operand) -> bool {
    let sizes = index.shape.iter().zip(t.shape).enumerate();
    index.dtype == DType::I64
        && index.ndim() == t.ndim()
        && (index.numel() == 0 || sizes.fold(true, |ok, (d, (i, n))| ok & (d == dim || i <= n)))
}
/// Whether `index` is a list of positions.
fn is_list(index: &Operand) -> bool {
    index.dtype == DType::I64 && index.ndim() <= 1
}

/// Finds an index outside `low..size`; `low` is `-size` where negative indices count from the end, else zero.
///
/// # Safety
/// `index` must be in bounds.
unsafe fn check(index: View, low: i64, size: usize) -> std::result::Result<(), i64> {
    let found = Found::default();
    for_lines(index.shape, [index.strides], |[at], n, [step]| {
        let p = index.at(at) as *const i64;
        // SAFETY: the caller guarantees the index.
        if let Some((i, bad)) = unsafe { first_bad(p, step, n, low, size as i64) } {
            found.report(at + i * step, bad);
        }
    });
    found.result()
}

/// The wrapped index, if it is in range: see Note [Racing indices].
///
/// SAFETY: the index must be readable.
#[inline(always)]
unsafe fn at_use(index: *const i64, size: usize) -> std::result::Result<usize, i64> {
    // SAFETY: the caller's promise. Volatile: the value compared is the value used, never a second read.
    in_range(unsafe { index.read_volatile() }, size)
}
#[inline(always)]
fn in_range(i: i64, size: usize) -> std::result::Result<usize, i64> {
    if (i as u64) < size as u64 { Ok(i as usize) } else { Err(i) }
}

/// The bad index with the lowest offset found by several threads, independent of their scheduling.
struct Found<T = i64>(Mutex<Option<(usize, T)>>);
impl<T> Default for Found<T> {
    fn default() -> Self {
        Found(Mutex::new(None))
    }
}
impl<T> Found<T> {
    #[cold]
    fn report(&self, offset: usize, bad: T) {
        let mut first = self.0.lock().unwrap_or_else(|e| e.into_inner());
        if first.as_ref().is_none_or(|f| offset < f.0) {
            *first = Some((offset, bad));
        }
    }
    fn result(self) -> std::result::Result<(), T> {
        match self.0.into_inner().unwrap_or_else(|e| e.into_inner()) {
            Some((_, bad)) => Err(bad),
            None => Ok(()),
        }
    }
}

/// The first of `n` indices that is outside `low..high`, with its position.
///
/// SAFETY: the indices must be readable.
unsafe fn first_bad(index: *const i64, step: usize, n: usize, low: i64, high: i64) -> Option<(usize, i64)> {
    // SAFETY: the caller guarantees the run.
    let at = |i: usize| unsafe { index.add(i * step).read_volatile() };
    let good = if step == 1 {
        // SAFETY: as above.
        simd::run(Within { index: unsafe { std::slice::from_raw_parts(index, n) }, low, high })
    } else {
        (0..n).all(|i| (low..high).contains(&at(i)))
    };
    if good { None } else { (0..n).map(|i| (i, at(i))).find(|(_, v)| !(low..high).contains(v)) }
}

/// Tests whether all indices are in range.
struct Within<'a> {
    index: &'a [i64],
    low: i64,
    high: i64,
}
impl Kernel for Within<'_> {
    type Output = bool;
    #[inline(always)]
    fn run<F: Fuse>(self) -> bool {
        // A negative difference means an index out of range; where one difference overflows, the other is negative.
        let (low, last) = (self.low, self.high - 1);
        let signs = |&v: &i64| v.wrapping_sub(low) | last.wrapping_sub(v);
        self.index.iter().fold(0, |all, v| all | signs(v)) >= 0
    }
}

fn out_of_bounds(dim: usize, size: usize) -> impl FnOnce(i64) -> Error {
    move |index| Error::index(format!("index {index} is out of bounds for dimension {dim} with size {size}"))
}
/// The message of gather and scatter: a `RuntimeError`.
fn out_of_reach(dim: usize, size: usize) -> impl FnOnce(i64) -> Error {
    move |index| Error::runtime(format!("index {index} is out of bounds for dimension {dim} with size {size}"))
}
/// The message of selection, addition and embedding.
fn out_of_range(_: i64) -> Error {
    Error::index("index out of range in self")
}
