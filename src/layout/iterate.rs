//! Iteration over several layouts at once: adjacent dimensions are merged first, so most loops end up one or two deep.

use super::Dims;
use smallvec::SmallVec;

/// Merges adjacent dimensions that are mergeable for every operand and drops those of size one. Returns the merged
/// shape and one stride list per operand. Never reorders: index order is preserved.
pub fn coalesce<const N: usize>(shape: &[usize], strides: [&[usize]; N]) -> (Dims, [Dims; N]) {
    let mut dims = Dims::new();
    let mut out: [Dims; N] = std::array::from_fn(|_| Dims::new());
    for i in 0..shape.len() {
        if shape[i] == 1 {
            continue;
        }
        let merges =
            !dims.is_empty() && out.iter().zip(&strides).all(|(o, s)| o[o.len() - 1] == s[i].wrapping_mul(shape[i]));
        if merges {
            *dims.last_mut().unwrap() *= shape[i];
            out.iter_mut().zip(&strides).for_each(|(o, s)| *o.last_mut().unwrap() = s[i]);
        } else {
            dims.push(shape[i]);
            out.iter_mut().zip(&strides).for_each(|(o, s)| o.push(s[i]));
        }
    }
    (dims, out)
}

/// Iterates over a shape in row-major order, with one element offset per operand.
pub struct Odometer<'a, const N: usize> {
    shape: &'a [usize],
    strides: [&'a [usize]; N],
    index: SmallVec<[usize; 5]>,
    pub offsets: [usize; N],
}

impl<'a, const N: usize> Odometer<'a, N> {
    /// Starts at the linear index `start`.
    pub fn new(shape: &'a [usize], strides: [&'a [usize]; N], mut start: usize) -> Self {
        let mut index: SmallVec<[usize; 5]> = SmallVec::from_elem(0, shape.len());
        let mut offsets = [0; N];
        for d in (0..shape.len()).rev() {
            // An empty shape needs a start too, although it is never read.
            index[d] = start % shape[d].max(1);
            start /= shape[d].max(1);
            for (o, s) in offsets.iter_mut().zip(&strides) {
                *o += index[d] * s[d];
            }
        }
        Odometer { shape, strides, index, offsets }
    }
    /// The current index.
    #[inline]
    pub fn index(&self) -> &[usize] {
        &self.index
    }
    /// How many indices, with this one, are left in the last dimension.
    pub fn left(&self) -> usize {
        self.shape.last().map_or(1, |n| n - self.index[self.index.len() - 1])
    }
    /// Advances by so many indices of the last dimension, at most those that are left.
    pub fn advance(&mut self, count: usize) {
        if let Some(last) = self.shape.len().checked_sub(1) {
            self.index[last] += count - 1;
            for (o, s) in self.offsets.iter_mut().zip(&self.strides) {
                *o += (count - 1) * s[last];
            }
        }
        self.step();
    }
    /// Advances to the next index; wraps to the start after the last.
    #[inline]
    pub fn step(&mut self) {
        for d in (0..self.shape.len()).rev() {
            self.index[d] += 1;
            if self.index[d] < self.shape[d] {
                for (o, s) in self.offsets.iter_mut().zip(&self.strides) {
                    *o += s[d];
                }
                return;
            }
            self.index[d] = 0;
            for (o, s) in self.offsets.iter_mut().zip(&self.strides) {
                *o -= (self.shape[d] - 1) * s[d];
            }
        }
    }
}
