//! Shapes, strides and views: integers only, no data.
//!
//! A `Layout` maps an index to an element of the storage: `offset + sum(index * stride)`, in elements. Strides are
//! never negative (PyTorch rejects them too). Every view is a function from layout to layout.

mod iterate;
mod order;
mod view;
pub mod window;

pub use self::iterate::{Odometer, coalesce};
pub use self::order::{Format, memory_order, result_strides};
pub use self::view::{Slice, SliceSpec};

use crate::error::{Error, Result, Show};
use smallvec::SmallVec;

/// A shape or strides; up to five dimensions are stored inline.
pub type Dims = SmallVec<[usize; 5]>;

#[derive(Debug, PartialEq, Eq, Default)]
pub struct Layout {
    pub shape: Dims,
    pub strides: Dims,
    pub offset: usize,
}

// By hand: the derived impl clones dimensions one by one, a cost on every view.
impl Clone for Layout {
    #[inline]
    fn clone(&self) -> Layout {
        Layout { shape: same_dims(&self.shape), strides: same_dims(&self.strides), offset: self.offset }
    }
}

/// A bitwise copy of `d` if it is stored inline.
#[inline]
pub fn same_dims(d: &Dims) -> Dims {
    if d.spilled() {
        return dims(d);
    }
    // SAFETY: inline dimensions are plain numbers, and nothing else is owned.
    unsafe { std::ptr::read(d) }
}

/// A copy of a shape or of strides.
#[inline]
pub fn dims(d: &[usize]) -> Dims {
    Dims::from_slice(d)
}

/// Equality of short lists, without the call to memcmp.
#[inline]
pub fn same(a: &[usize], b: &[usize]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x == y)
}

/// Number of elements of a shape; an error on overflow.
pub fn checked_numel(shape: &[usize]) -> Result<usize> {
    // A zero makes the tensor empty, so the other sizes may overflow.
    if shape.contains(&0) {
        return Ok(0);
    }
    shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d).filter(|&n| n <= isize::MAX as usize / 16)).ok_or_else(
        || {
            Error::runtime(format!(
                "Storage size calculation overflowed with sizes={}. Use a smaller shape.",
                Show(shape)
            ))
        },
    )
}

/// As `checked_numel`, for a row-major allocation: the strides of an empty tensor must fit too, as in PyTorch.
#[inline]
pub fn laid_out_numel(shape: &[usize]) -> Result<usize> {
    let n = checked_numel(shape)?;
    if n == 0 {
        let fits = |n: i64, &d: &usize| n.checked_mul(i64::try_from(d.max(1)).ok()?);
        let strides = shape.iter().skip(1).try_fold(1, fits);
        strides.ok_or_else(|| Error::runtime(format!("Stride calculation overflowed with sizes={}", Show(shape))))?;
    }
    Ok(n)
}

/// Turns sizes from a caller into a shape; negative sizes are an error.
pub fn to_shape(sizes: &[i64]) -> Result<Dims> {
    for &s in sizes {
        if s < 0 {
            return Err(Error::runtime(format!(
                "Trying to create tensor with negative dimension {s}: {}",
                Show(sizes)
            )));
        }
    }
    let shape: Dims = sizes.iter().map(|&s| s as usize).collect();
    // The strides of an empty tensor are products of its other sizes.
    let steps = |shape: &[usize]| {
        shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d.max(1))).filter(|&n| n <= isize::MAX as usize)
    };
    if checked_numel(&shape)? == 0 && steps(&shape).is_none() {
        return Err(Error::runtime(format!("Stride calculation overflowed with sizes={}", Show(&shape))));
    }
    Ok(shape)
}

/// Wraps a dimension into `0..ndim` (a 0-d tensor counts as one dimension).
pub fn wrap_dim(dim: i64, ndim: usize) -> Result<usize> {
    let n = ndim.max(1) as i64;
    if dim < -n || dim >= n {
        return Err(Error::dim_range(dim, ndim));
    }
    Ok(if dim < 0 { dim + n } else { dim } as usize)
}

/// Wraps a list of dimensions and rejects repeats. Whether an empty list means all dimensions is up to the caller.
pub fn wrap_dims(dims: &[i64], ndim: usize) -> Result<Dims> {
    let mut out = Dims::new();
    for &d in dims {
        let w = wrap_dim(d, ndim)?;
        if out.contains(&w) {
            return Err(Error::runtime(format!("dim {w} appears multiple times in the list of dims")));
        }
        out.push(w);
    }
    Ok(out)
}

/// The strides of a row-major tensor of this shape.
#[inline]
pub fn contiguous_strides(shape: &[usize]) -> Dims {
    let mut strides: Dims = SmallVec::from_elem(1, shape.len());
    let mut step = 1usize;
    for i in (0..shape.len()).rev() {
        strides[i] = step;
        step = step.saturating_mul(shape[i].max(1));
    }
    strides
}

/// The shape that two shapes broadcast to.
pub fn broadcast(a: &[usize], b: &[usize]) -> Result<Dims> {
    let n = a.len().max(b.len());
    let mut out: Dims = SmallVec::from_elem(1, n);
    for i in 0..n {
        let x = if i + a.len() >= n { a[i + a.len() - n] } else { 1 };
        let y = if i + b.len() >= n { b[i + b.len() - n] } else { 1 };
        out[i] = match (x, y) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            (x, y) => {
                return Err(Error::runtime(format!(
                    "The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {i}; \
                     shapes {} and {} do not broadcast.",
                    Show(a),
                    Show(b)
                )));
            }
        };
    }
    Ok(out)
}

/// Whether a shape with these strides covers a range of memory without gaps or overlap.
pub fn is_dense(shape: &[usize], strides: &[usize]) -> bool {
    let mut dims: SmallVec<[(usize, usize); 5]> =
        strides.iter().zip(shape).filter(|&(_, &d)| d != 1).map(|(&s, &d)| (s, d)).collect();
    dims.sort_unstable();
    let mut step = 1usize;
    dims.iter().all(|&(s, d)| {
        let ok = s == step;
        step = step.wrapping_mul(d);
        ok
    })
}

impl Layout {
    #[inline]
    pub fn contiguous(shape: &[usize]) -> Layout {
        Layout::of(dims(shape))
    }
    /// The row-major layout of a shape.
    #[inline]
    pub fn of(shape: Dims) -> Layout {
        Layout { strides: contiguous_strides(&shape), shape, offset: 0 }
    }
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }
    #[inline]
    pub fn numel(&self) -> usize {
        // Overflows only if a size is zero, and then the product is zero anyway.
        self.shape.iter().fold(1, |n: usize, &d| n.wrapping_mul(d))
    }
    /// Row-major without gaps; dimensions of size one do not matter, and an empty tensor is always contiguous.
    pub fn is_contiguous(&self) -> bool {
        let mut step = 1usize;
        for (&d, &s) in self.shape.iter().zip(&self.strides).rev() {
            if d == 0 {
                return true;
            }
            if d != 1 {
                if s != step {
                    return false;
                }
                step = step.wrapping_mul(d);
            }
        }
        true
    }
    /// Whether the strides are exactly those that `Layout::of` gives the shape.
    #[inline]
    pub fn is_row_major(&self) -> bool {
        let mut step = 1usize;
        self.shape.iter().zip(&self.strides).rev().all(|(&d, &s)| {
            let exact = s == step;
            step = step.saturating_mul(d.max(1));
            exact
        })
    }
    /// Covers a range of memory without gaps or overlap, in some order of its dimensions.
    pub fn is_dense(&self) -> bool {
        is_dense(&self.shape, &self.strides)
    }
    /// One past the last element, counted from the start of the storage.
    pub fn end(&self) -> usize {
        if self.shape.contains(&0) {
            return self.offset;
        }
        1 + self.offset + self.shape.iter().zip(&self.strides).map(|(&d, &s)| (d - 1) * s).sum::<usize>()
    }
    /// Where the first element lies in the storage, in bytes; elements have `size`.
    pub fn first_byte(&self, size: usize) -> isize {
        (self.offset * size) as isize
    }
    /// Whether every element lies in a storage of `capacity` elements, whatever the sizes and strides are.
    pub fn fits(&self, capacity: usize) -> bool {
        if self.shape.contains(&0) {
            return self.offset <= isize::MAX as usize / 16;
        }
        let mut steps = self.shape.iter().zip(&self.strides);
        let last = steps.try_fold(self.offset, |n, (&d, &s)| n.checked_add((d - 1).checked_mul(s)?));
        last.is_some_and(|n| n < capacity)
    }
    /// Whether two indices may reach the same element (an expanded view), so that writes must be rejected. Like
    /// PyTorch's test it may miss unusual `as_strided` overlaps; those are still memory-safe.
    pub fn has_internal_overlap(&self) -> bool {
        if self.is_contiguous() || self.shape.contains(&0) {
            return false;
        }
        self.shape.iter().zip(&self.strides).any(|(&d, &s)| d > 1 && s == 0)
    }
    /// Strides for reading this layout as `shape`: zero along broadcast dimensions. `shape` must be compatible.
    pub fn broadcast_strides(&self, shape: &[usize]) -> Dims {
        let lead = shape.len() - self.ndim();
        let mut out: Dims = SmallVec::from_elem(0, shape.len());
        for i in 0..self.ndim() {
            if self.shape[i] != 1 || shape[lead + i] == 1 {
                out[lead + i] = self.strides[i];
            }
        }
        out
    }
}
