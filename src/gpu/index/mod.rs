//! Reading and writing through index tensors: gather, scatter, selection, advanced indexing, masks.
//!
//! Indices may be int64, int32 or narrower. They are checked on the device: a bad one reads or writes nothing and
//! leaves its value in the fault block, which comes back as an error when the host next waits (a read, or
//! `synchronize`). Elements that are only moved travel as words, so every dtype can be indexed.

mod advanced;
mod gather;
mod mask;
mod scatter;

pub use advanced::{index_get, index_put};
pub use gather::{gather, index_select, pick_class};
pub use mask::{Places, masked_scatter, masked_select, nonzero};
pub use scatter::{index_add, index_copy, index_fill, put_class, scatter};

use super::kernel::Kernel;
use super::map::as_words;
use super::reduce::compute_of;
use super::transfer::download;
use super::types::{Refusal, View};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Dims;

const TABLE: &str = include_str!("../../../shaders/table.wgsl");

/// Whose words a bad index is reported in; the number is what the kernel leaves in the fault block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// gather, scatter: a `RuntimeError`.
    Reach = 1,
    /// Advanced indexing: an `IndexError`; negative indices count from the end.
    Bounds = 2,
    /// Selection, addition, embedding.
    Range = 3,
    /// Classes of a loss.
    Class = 4,
}

/// The error that the fault block holds: code, index, size, dimension.
pub(super) fn fault(block: [u32; 4]) -> Option<Error> {
    let [code, index, size, dim] = block;
    let text = format!("index {} is out of bounds for dimension {dim} with size {size}", index as i32);
    match code {
        0 => None,
        1 => Some(Error::runtime(text)),
        2 => Some(Error::index(text)),
        3 => Some(Error::index("index out of range in self")),
        4 => Some(Error::index(format!("Target {} is out of bounds.", index as i32))),
        other => Refusal::TEXTS.get(other as usize - FIRST_REFUSAL).map(|text| Error::runtime(*text)),
    }
}

const FIRST_REFUSAL: usize = 5;
/// Raises an error, when the host next waits, if any element of `mask` is true.
pub fn refuse_where(mask: &View, what: Refusal) -> Result<()> {
    let kernel = Kernel::new("refuse", TABLE, compute_of(mask.dtype)?).read("mask", *mask).walk(
        "mask",
        mask.shape,
        mask.strides,
    );
    let kernel = kernel.number("units", mask.numel())?.bits("code", (what as usize + FIRST_REFUSAL) as u32);
    let body =
        "if (truth(read_mask({{mask}} + walk_mask(unit))) == {{wanted}}) { atomicMax(&buffer_fault[0], {{code}}); }";
    kernel
        .text("combine", "v")
        .text("wanted", if what == Refusal::DivisionByZero { "false" } else { "true" })
        .part("", "body", body)
        .faulting()?
        .launch(mask.numel())
}

/// Every index into nothing is bad: no kernel is needed to say so.
fn refuse_empty(index: &View, check: Check, dim: usize, size: usize) -> Result<()> {
    if size > 0 || index.numel() == 0 {
        return Ok(());
    }
    let mut bytes = [0u8; 8];
    let width = index.dtype.size().min(8);
    // SAFETY: `bytes` holds eight bytes, and no more are read.
    unsafe { download(index.buffer, index.offset * index.dtype.size(), bytes.as_mut_ptr(), width)? };
    let value = match index.dtype {
        DType::I64 => i64::from_le_bytes(bytes) as i32,
        DType::I32 => i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
        DType::I16 => i16::from_le_bytes([bytes[0], bytes[1]]) as i32,
        DType::I8 => bytes[0] as i8 as i32,
        _ => bytes[0] as i32,
    };
    Err(fault([check as u32, value as u32, 0, dim as u32]).unwrap_or_else(|| Error::internal("a check without a code")))
}

impl<'a> Kernel<'a> {
    /// The numbers that `checked` compares with, and the fault block.
    fn check(self, check: Check, dim: usize, size: usize) -> Result<Self> {
        let low = if check == Check::Bounds { -(size as i64) as i32 } else { 0 };
        self.number("size", size)?
            .number("dim", dim)?
            .bits("low", low as u32)
            .text("code", format!("{}u", check as u32))
            .faulting()
    }
}

/// A view whose elements are moved as words: 1, 2 or 4 bytes, wider ones with a last dimension of words.
struct Words<'a> {
    view: View<'a>,
    shape: Dims,
    strides: Dims,
    /// Words per element, 1 for narrow dtypes.
    scale: usize,
    dtype: DType,
}

impl<'a> Words<'a> {
    fn new(view: &View<'a>) -> Words<'a> {
        let (shape, strides, dtype, scale) = as_words(view);
        Words { view: *view, shape, strides, scale, dtype }
    }
    fn view(&self) -> View<'_> {
        let offset = self.view.offset * self.scale;
        View { buffer: self.view.buffer, dtype: self.dtype, shape: &self.shape, strides: &self.strides, offset }
    }
    /// The strides over a shape of elements, followed by those of the words.
    fn strides_with(&self, strides: &[usize]) -> Dims {
        let mut all: Dims = strides.iter().map(|s| s * self.scale).collect();
        if self.scale > 1 {
            all.push(1);
        }
        all
    }
    fn shape_with(&self, shape: &[usize]) -> Dims {
        let mut all = Dims::from(shape);
        if self.scale > 1 {
            all.push(self.scale);
        }
        all
    }
}

/// Strides of a view that is read at the same place for every word of an element.
fn repeated(strides: &[usize], scale: usize) -> Dims {
    let mut all = Dims::from(strides);
    if scale > 1 {
        all.push(0);
    }
    all
}

/// `strides` with the one of `dim` zero: the rest of an element's place when `dim` is looked up.
fn without(strides: &[usize], dim: usize) -> Dims {
    let mut all = Dims::from(strides);
    if let Some(s) = all.get_mut(dim) {
        *s = 0;
    }
    all
}

/// Size and stride of a dimension; a 0-d tensor counts as one element.
fn dim_of(view: &View, dim: usize) -> (usize, usize) {
    (view.shape.get(dim).copied().unwrap_or(1), view.strides.get(dim).copied().unwrap_or(0))
}
