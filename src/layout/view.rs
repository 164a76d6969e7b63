//! Views as functions from layout to layout, with PyTorch's checks and messages.

use super::{Dims, Layout, checked_numel, laid_out_numel, wrap_dim};
use crate::error::{Error, Result, Show};
use smallvec::SmallVec;

/// A slice as written in Python, its ends not yet clipped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slice {
    pub start: Option<i64>,
    pub stop: Option<i64>,
    pub step: Option<i64>,
}

/// A slice clipped to a dimension: `start`, `length`, `step`.
pub type SliceSpec = (usize, usize, usize);

impl Slice {
    /// Clips to a dimension of `size`; a step of zero or less is an error, as in PyTorch.
    pub fn resolve(&self, size: usize) -> Result<SliceSpec> {
        let (n, step) = (size as i64, self.step.unwrap_or(1));
        if step <= 0 {
            return Err(Error::value(format!(
                "step must be greater than zero, got {step}. Use flip() to reverse a dimension."
            )));
        }
        let clip = |v: i64| if v < 0 { v.saturating_add(n).max(0) } else { v.min(n) };
        let start = clip(self.start.unwrap_or(0));
        let stop = clip(self.stop.unwrap_or(n)).max(start);
        let length = ((stop - start) as usize).div_ceil(step as usize);
        Ok((start as usize, length, step as usize))
    }
}

impl Layout {
    pub fn permute(&self, dims: &[usize]) -> Layout {
        Layout {
            shape: dims.iter().map(|&d| self.shape[d]).collect(),
            strides: dims.iter().map(|&d| self.strides[d]).collect(),
            offset: self.offset,
        }
    }
    pub fn transpose(&self, a: usize, b: usize) -> Layout {
        let mut out = self.clone();
        if self.ndim() > 0 {
            out.shape.swap(a, b);
            out.strides.swap(a, b);
        }
        out
    }
    pub fn unsqueeze(&self, dim: usize) -> Layout {
        let mut out = self.clone();
        let stride = if dim < self.ndim() { self.shape[dim].saturating_mul(self.strides[dim]) } else { 1 };
        out.shape.insert(dim, 1);
        out.strides.insert(dim, stride);
        out
    }
    /// Drops those dimensions of size one for which `drop` is true.
    pub fn squeeze(&self, drop: impl Fn(usize) -> bool) -> Layout {
        let keep = |i: &usize| !(self.shape[*i] == 1 && drop(*i));
        let dims: Dims = (0..self.ndim()).filter(keep).collect();
        self.permute(&dims)
    }
    /// Fixes the index of a dimension, which is removed.
    pub fn select(&self, dim: usize, index: usize) -> Layout {
        let mut out = self.clone();
        out.offset += index * self.strides[dim];
        out.shape.remove(dim);
        out.strides.remove(dim);
        out
    }
    pub fn slice(&self, dim: usize, (start, length, step): SliceSpec) -> Layout {
        let mut out = self.clone();
        out.offset += start * self.strides[dim];
        out.shape[dim] = length;
        out.strides[dim] = self.strides[dim].saturating_mul(step);
        if length <= 1 {
            out.strides[dim] = self.strides[dim].saturating_mul(step).min(isize::MAX as usize / 16);
        }
        out
    }
    /// -1 in `sizes` keeps a dimension's size.
    pub fn expand(&self, sizes: &[i64]) -> Result<Layout> {
        if sizes.len() < self.ndim() {
            return Err(Error::runtime(format!(
                "expand({}, size={}): the number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor ({})",
                Show(&self.shape),
                Show(sizes),
                sizes.len(),
                self.ndim()
            )));
        }
        let lead = sizes.len() - self.ndim();
        let mut out = Layout { shape: Dims::new(), strides: Dims::new(), offset: self.offset };
        for (i, &want) in sizes.iter().enumerate() {
            let have = (i >= lead).then(|| self.shape[i - lead]);
            let (size, stride) = match (want, have) {
                (-1, Some(h)) => (h, self.strides[i - lead]),
                (w, Some(h)) if w == h as i64 => (h, self.strides[i - lead]),
                (w, Some(1) | None) if w >= 0 => (w as usize, 0),
                (w, Some(h)) if w >= 0 => {
                    return Err(Error::runtime(format!(
                        "The expanded size of the tensor ({w}) must match the existing size ({h}) at non-singleton dimension {i}.  Target sizes: {}.  Tensor sizes: {}",
                        Show(sizes),
                        Show(&self.shape)
                    )));
                }
                (w, _) => {
                    return Err(Error::runtime(format!(
                        "The expanded size of the tensor ({w}) isn't allowed in a leading, non-existing dimension {i}"
                    )));
                }
            };
            out.shape.push(size);
            out.strides.push(stride);
        }
        checked_numel(&out.shape)?;
        // A new dimension of size one gets the stride of the dimension after it times its size, as in PyTorch.
        for i in (0..lead).rev().filter(|&i| sizes[i] == 1 && self.ndim() > 0) {
            out.strides[i] = out.shape.get(i + 1).map_or(1, |&d| d.saturating_mul(out.strides[i + 1]));
        }
        Ok(out)
    }
    /// Expanded dimensions reduced to size one again.
    pub fn unexpanded(&self) -> Layout {
        let mut out = self.clone();
        out.shape.iter_mut().zip(&self.strides).filter(|(d, s)| **d > 1 && **s == 0).for_each(|(d, _)| *d = 1);
        out
    }
    /// The strides under which the same memory has shape `shape`; `None` if a copy is needed.
    pub fn view_strides(&self, shape: &[usize]) -> Option<Dims> {
        if self.is_row_major() || self.numel() == 0 {
            return Some(super::contiguous_strides(shape));
        }
        let mut strides: Dims = SmallVec::from_elem(0, shape.len());
        // From the last dimension, one memory-adjacent run of old dimensions at a time.
        let mut view = shape.len();
        let mut run = 1usize;
        let mut base = self.strides.last().copied().unwrap_or(1);
        for i in (0..self.ndim()).rev() {
            run = run.wrapping_mul(self.shape[i]);
            let breaks = i == 0 || (self.shape[i - 1] != 1 && self.strides[i - 1] != run.wrapping_mul(base));
            if !breaks {
                continue;
            }
            let mut taken = 1usize;
            while view > 0 && (taken < run || shape[view - 1] == 1) {
                view -= 1;
                strides[view] = taken.wrapping_mul(base);
                taken = taken.wrapping_mul(shape[view]);
            }
            if taken != run {
                return None;
            }
            if i > 0 {
                run = 1;
                base = self.strides[i - 1];
            }
        }
        while view > 0 {
            // The remaining dimensions are of size one.
            view -= 1;
            strides[view] = if view + 1 < shape.len() { strides[view + 1] * shape[view + 1] } else { 1 };
        }
        Some(strides)
    }
    /// Resolves one -1 in `sizes` against this layout's element count.
    pub fn infer_shape(&self, sizes: &[i64]) -> Result<Dims> {
        let numel = self.numel();
        let bad = || Error::runtime(format!("shape '{}' is invalid for input of size {numel}", Show(sizes)));
        let (mut known, mut hole) = (1usize, None);
        let mut shape = Dims::new();
        for (i, &s) in sizes.iter().enumerate() {
            match s {
                -1 if hole.is_some() => return Err(Error::runtime("only one dimension can be inferred")),
                -1 => hole = Some(i),
                s if s < 0 => {
                    return Err(Error::runtime(format!(
                        "invalid shape dimension {s} at index {i} of shape {}",
                        Show(sizes)
                    )));
                }
                s => known = known.checked_mul(s as usize).ok_or_else(bad)?,
            }
            shape.push(s.max(0) as usize);
        }
        if let Some(i) = hole {
            if known == 0 {
                return Err(Error::runtime(format!(
                    "cannot reshape tensor of {numel} elements into shape {} because the unspecified dimension size -1 can be any value and is ambiguous",
                    Show(sizes)
                )));
            }
            if !numel.is_multiple_of(known) {
                return Err(bad());
            }
            shape[i] = numel / known;
        } else if known != numel {
            return Err(bad());
        }
        if numel == 0 {
            laid_out_numel(&shape)?;
        }
        Ok(shape)
    }
    pub fn view(&self, sizes: &[i64]) -> Result<Layout> {
        let shape = self.infer_shape(sizes)?;
        match self.view_strides(&shape) {
            Some(strides) => Ok(Layout { shape, strides, offset: self.offset }),
            None => Err(Error::runtime(
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across \
                 two contiguous subspaces). Use .reshape(...) instead.",
            )),
        }
    }
    pub fn diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> Result<Layout> {
        let (a, b) = (wrap_dim(dim1, self.ndim())?, wrap_dim(dim2, self.ndim())?);
        if a == b || self.ndim() < 2 {
            return Err(Error::runtime(format!("diagonal dimensions cannot be identical {dim1}, {dim2}")));
        }
        let (rows, cols) = (self.shape[a] as i64, self.shape[b] as i64);
        let length =
            if offset >= 0 { rows.min(cols.saturating_sub(offset)) } else { rows.saturating_add(offset).min(cols) }
                .max(0) as usize;
        let mut start = self.offset;
        if length > 0 && self.numel() > 0 {
            start += if offset >= 0 {
                offset as usize * self.strides[b]
            } else {
                offset.unsigned_abs() as usize * self.strides[a]
            };
        }
        let keep: Dims = (0..self.ndim()).filter(|&d| d != a && d != b).collect();
        let mut out = self.permute(&keep);
        out.shape.push(length);
        out.strides.push(self.strides[a].saturating_add(self.strides[b]));
        out.offset = start;
        Ok(out)
    }
    /// Arbitrary sizes and strides over a storage of `capacity` elements.
    pub fn as_strided(sizes: &[i64], strides: &[i64], offset: i64, capacity: usize) -> Result<Layout> {
        if sizes.len() != strides.len() {
            return Err(Error::runtime(format!(
                "mismatch in length of strides and shape; sizes {} and strides {}",
                Show(sizes),
                Show(strides)
            )));
        }
        if strides.iter().any(|&s| s < 0) {
            return Err(Error::runtime(format!(
                "as_strided: Negative strides are not supported at the moment, got strides: {}",
                Show(strides)
            )));
        }
        if offset < 0 {
            return Err(Error::runtime(format!("as_strided: storage offset must be non-negative, got {offset}")));
        }
        let shape = super::to_shape(sizes)?;
        let empty = shape.contains(&0);
        let last = shape.iter().zip(strides).try_fold(offset as usize, |n, (&d, &s)| {
            d.saturating_sub(1).checked_mul(s as usize).and_then(|m| n.checked_add(m))
        });
        // An empty view reads nothing, but its offset in bytes must not overflow.
        let beyond =
            if empty { offset as usize > isize::MAX as usize / 16 } else { last.is_none_or(|l| l >= capacity) };
        if beyond {
            return Err(Error::runtime(format!(
                "setStorage: sizes {}, strides {}, storage offset {offset} are out of bounds for storage of {capacity} elements",
                Show(sizes),
                Show(strides)
            )));
        }
        Ok(Layout { shape, strides: strides.iter().map(|&s| s as usize).collect(), offset: offset as usize })
    }
}
