//! Elements that are only moved travel as words, so that every dtype can be indexed.

use crate::dtype::DType;
use crate::gpu::kernels::map::as_u32_elements;
use crate::gpu::kernels::view::View;
use crate::layout::Dims;

pub(in crate::gpu::kernels) const TABLE: &str = include_str!("../../../../shaders/table.wgsl");

/// A view whose elements are moved as words: 1, 2 or 4 bytes, wider ones with a last dimension of words.
pub(in crate::gpu::kernels) struct Words<'a> {
    view: View<'a>,
    pub shape: Dims,
    pub strides: Dims,
    /// Words per element, 1 for narrow dtypes.
    pub scale: usize,
    pub dtype: DType,
}

impl<'a> Words<'a> {
    pub fn new(view: &View<'a>) -> Words<'a> {
        let (shape, strides, dtype, scale) = as_u32_elements(view);
        Words { view: *view, shape, strides, scale, dtype }
    }
    pub fn view(&self) -> View<'_> {
        let offset = self.view.offset * self.scale;
        View { buffer: self.view.buffer, dtype: self.dtype, shape: &self.shape, strides: &self.strides, offset }
    }
    /// The strides over a shape of elements, followed by those of the words.
    pub fn strides_with(&self, strides: &[usize]) -> Dims {
        let mut all: Dims = strides.iter().map(|s| s * self.scale).collect();
        if self.scale > 1 {
            all.push(1);
        }
        all
    }
    pub fn shape_with(&self, shape: &[usize]) -> Dims {
        let mut all = Dims::from(shape);
        if self.scale > 1 {
            all.push(self.scale);
        }
        all
    }
}

/// Strides of a view that is read at the same place for every word of an element.
pub(in crate::gpu::kernels) fn repeated(strides: &[usize], scale: usize) -> Dims {
    let mut all = Dims::from(strides);
    if scale > 1 {
        all.push(0);
    }
    all
}

/// `strides` with the one of `dim` zero: the rest of an element's place when `dim` is looked up.
pub(in crate::gpu::kernels) fn zeroed_at(strides: &[usize], dim: usize) -> Dims {
    let mut all = Dims::from(strides);
    if let Some(s) = all.get_mut(dim) {
        *s = 0;
    }
    all
}
