//! What kernels work on: strided windows on buffers, and how one reaches a shader.
//!
//! Strides and offsets count elements, never bytes; a stride of zero repeats an element along that dimension.

use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::gpu::driver::{Bind, Driver, GpuBuffer};
use crate::layout::Dims;

/// A strided window on a buffer.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub buffer: &'a GpuBuffer,
    pub dtype: DType,
    pub shape: &'a [usize],
    pub strides: &'a [usize],
    pub offset: usize,
}

/// An operand of an elementwise kernel.
#[derive(Clone, Copy)]
pub enum Input<'a> {
    View(View<'a>),
    Scalar(Scalar),
}

impl<'a> View<'a> {
    pub(super) fn numel(&self) -> usize {
        self.shape.iter().product()
    }
    /// Size and stride of a dimension; a 0-d tensor counts as one element.
    pub(super) fn dim(&self, dim: usize) -> (usize, usize) {
        (self.shape.get(dim).copied().unwrap_or(1), self.strides.get(dim).copied().unwrap_or(0))
    }
    /// Shape and strides with dimension `dim` taken out.
    pub(super) fn without(&self, dim: usize) -> (Dims, Dims) {
        let keep = |list: &[usize]| list.iter().enumerate().filter(|&(d, _)| d != dim).map(|(_, &n)| n).collect();
        (keep(self.shape), keep(self.strides))
    }
    /// The first element and one past the last that the view reaches.
    pub(super) fn span(&self) -> (usize, usize) {
        if self.shape.contains(&0) {
            return (self.offset, self.offset);
        }
        let last: usize = self.shape.iter().zip(self.strides).map(|(&d, &s)| (d - 1) * s).sum();
        (self.offset, self.offset + last + 1)
    }
    pub(super) fn driver(&self) -> &'static Driver {
        self.buffer.driver()
    }
    /// Memory on the same device.
    pub(super) fn scratch(&self, bytes: usize) -> Result<GpuBuffer> {
        self.driver().alloc(bytes)
    }
    /// Whether its device computes in a dtype, as an error with the remedy.
    pub(super) fn require(&self, dtype: DType) -> Result<()> {
        if self.driver().caps().supports(dtype) { Ok(()) } else { Err(no_dtype(self.driver(), dtype)) }
    }
    /// Whether the view's own dtype is one that its device computes in.
    pub(super) fn require_own(&self) -> Result<()> {
        self.require(self.dtype)
    }
    /// Whether one binding reaches the whole buffer.
    pub(super) fn is_whole(&self) -> bool {
        self.buffer.capacity() <= self.driver().caps().max_binding
    }
    /// Binds what the view reaches: the whole buffer where the limit allows it, else an aligned window. Returns the
    /// element offset within the binding; `None` where the view reaches too far for one binding.
    pub(super) fn bind(&self) -> Option<(Bind<'a>, usize)> {
        if self.is_whole() {
            return Some((self.buffer.bind(0, 0), self.offset));
        }
        let (size, caps) = (self.dtype.size(), self.driver().caps());
        let (start, end) = self.span();
        let from = (start * size) as u64 / caps.storage_align * caps.storage_align;
        let to = ((end * size) as u64).next_multiple_of(256).min(self.buffer.capacity());
        let within = self.offset - from as usize / size;
        (to - from <= caps.max_binding).then(|| (self.buffer.bind(from, (to - from).max(16)), within))
    }
    /// Whether one binding reaches all that the view reaches.
    pub(super) fn fits(&self) -> bool {
        self.is_whole() || self.bind().is_some()
    }
}

#[cold]
fn no_dtype(driver: &Driver, dtype: DType) -> Error {
    Error::not_implemented(format!(
        "{dtype} is not supported by the GPU '{}'; expected float32, float16, bfloat16, bool or an integer type it has. \
         Convert with .to(dtype) or move the tensor with .cpu().",
        driver.name()
    ))
}

/// Whether one binding reaches all that each view reaches; what does not fit is split.
pub(super) fn fits(views: &[&View]) -> bool {
    views.iter().all(|v| v.fits())
}

/// The part of `view` that starts at `start` along `d`; `shape` is the view's with the part's length.
pub(super) fn part<'a>(view: &View<'a>, d: usize, start: usize, shape: &'a [usize]) -> View<'a> {
    View { shape, offset: view.offset + start * view.strides[d], ..*view }
}

/// A dimension's two halves: where each starts and how long it is.
pub(super) fn halves(n: usize) -> [(usize, usize); 2] {
    [(0, n / 2), (n / 2, n - n / 2)]
}

/// `shape` with dimension `d` of length `n`.
pub(super) fn resized(shape: &[usize], d: usize, n: usize) -> Dims {
    let mut shape = Dims::from(shape);
    shape[d] = n;
    shape
}
