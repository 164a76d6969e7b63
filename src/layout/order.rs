//! Stride order: what a result inherits from its operands, and what a memory format asks for.
//!
//! A new tensor has no gaps. Its dimensions are ordered in memory as those of the operands; where operands disagree,
//! the first one that distinguishes two dimensions decides; where none does, the order is row-major.

use super::{Dims, Layout, contiguous_strides, same_dims};
use crate::error::{Error, Result};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// The memory format requested for a new tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Contiguous,
    /// As the source tensor.
    Preserve,
    ChannelsLast,
    ChannelsLast3d,
}

impl Format {
    pub const ALL: [Format; 4] = [Format::Contiguous, Format::Preserve, Format::ChannelsLast, Format::ChannelsLast3d];
    pub fn name(self) -> &'static str {
        match self {
            Format::Contiguous => "contiguous_format",
            Format::Preserve => "preserve_format",
            Format::ChannelsLast => "channels_last",
            Format::ChannelsLast3d => "channels_last_3d",
        }
    }
    /// The strides of a tensor of this shape in this format; `Preserve` counts as row-major. An error for the wrong
    /// rank.
    pub fn strides(self, shape: &[usize]) -> Result<Dims> {
        let rank = match self {
            Format::ChannelsLast => 4,
            Format::ChannelsLast3d => 5,
            Format::Contiguous | Format::Preserve => return Ok(contiguous_strides(shape)),
        };
        if shape.len() != rank {
            return Err(Error::runtime(format!("required rank {rank} tensor to use {} format", self.name())));
        }
        let inner_first: Dims = [1].into_iter().chain((2..rank).rev()).chain([0]).collect();
        Ok(dense_strides(shape, &inner_first))
    }
}

impl Layout {
    /// The layout of a new tensor of this shape: with these strides if they are dense, else dense with the dimensions
    /// in this order.
    pub fn fresh(&self) -> Layout {
        let strides = match self.is_contiguous() || self.is_dense() {
            true => same_dims(&self.strides),
            false => result_strides(&self.shape, &[&self.strides]),
        };
        Layout { shape: same_dims(&self.shape), strides, offset: 0 }
    }
    /// `fresh` in a memory format.
    pub fn formed(&self, format: Format) -> Result<Layout> {
        Ok(match format {
            Format::Preserve => self.fresh(),
            _ => Layout { shape: same_dims(&self.shape), strides: format.strides(&self.shape)?, offset: 0 },
        })
    }
    /// The format that cat, pad and roll preserve, as in PyTorch: channels last if these strides are, else row-major.
    pub fn channels_format(&self) -> Format {
        let format = match self.ndim() {
            4 => Format::ChannelsLast,
            5 => Format::ChannelsLast3d,
            _ => return Format::Contiguous,
        };
        // Channels that are all one, as an expanded image's.
        if self.strides[1] == 0 {
            return Format::Contiguous;
        }
        // Strides grow from the channels over the inner dimensions to the batch; a single channel or a single pixel is
        // ambiguous.
        let order = [1].into_iter().chain((2..self.ndim()).rev()).chain([0]);
        let mut least = 0;
        for d in order {
            let (n, step) = (self.shape[d], self.strides[d]);
            if n == 0 || step < least || (d == 0 && least == self.strides[1]) {
                return Format::Contiguous;
            }
            least = step * n.max(1);
        }
        format
    }
    /// Whether a tensor with those strides has the same memory order, ignoring dimensions of size one.
    pub fn lies_as(&self, strides: &[usize]) -> bool {
        self.shape.iter().zip(&self.strides).zip(strides).all(|((&d, a), b)| d == 1 || a == b)
    }
}

/// The strides of the result of operands with these strides over `shape` (zero where they are broadcast).
pub fn result_strides(shape: &[usize], operands: &[&[usize]]) -> Dims {
    let n = shape.len();
    let mut inner_first: Dims = (0..n).rev().collect();
    // Insertion sort: ambiguous dimensions are neither moved nor block others.
    for i in 1..n {
        let mut at = i;
        for before in (0..i).rev() {
            match compare(shape, operands, inner_first[before], inner_first[at]) {
                Ordering::Greater => {
                    inner_first.swap(before, at);
                    at = before;
                }
                Ordering::Less => break,
                Ordering::Equal => {}
            }
        }
    }
    dense_strides(shape, &inner_first)
}

/// Whether dimension `a` lies outside (`Greater`) or inside of `b`.
fn compare(shape: &[usize], operands: &[&[usize]], a: usize, b: usize) -> Ordering {
    for s in operands.iter().filter(|s| s[a] != 0 && s[b] != 0) {
        match s[a].cmp(&s[b]) {
            Ordering::Equal if shape[a] > shape[b] => return Ordering::Greater,
            Ordering::Equal => {}
            told => return told,
        }
    }
    Ordering::Equal
}

fn dense_strides(shape: &[usize], inner_first: &[usize]) -> Dims {
    let mut strides: Dims = SmallVec::from_elem(1, shape.len());
    let mut step = 1usize;
    for &d in inner_first {
        strides[d] = step;
        step = step.saturating_mul(shape[d].max(1));
    }
    strides
}

/// The dimensions of size above one, from outermost in memory to innermost.
pub fn memory_order(shape: &[usize], strides: &[usize]) -> Dims {
    let mut order: Dims = (0..shape.len()).filter(|&d| shape[d] != 1).collect();
    if !order.is_sorted_by_key(|&d| std::cmp::Reverse(strides[d])) {
        order.sort_by_key(|&d| std::cmp::Reverse(strides[d]));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_follows_its_operands() {
        let strides = |shape: &[usize], operands: &[&[usize]]| result_strides(shape, operands).to_vec();
        assert_eq!(strides(&[2, 3], &[&[3, 1]]), [3, 1]);
        assert_eq!(strides(&[2, 3], &[&[1, 2]]), [1, 2]);
        // Gaps are closed; a broadcast dimension is placed by the other operand, or stays.
        assert_eq!(strides(&[2, 3, 4], &[&[2, 16, 4]]), [1, 8, 2]);
        assert_eq!(strides(&[2, 3], &[&[0, 1], &[1, 2]]), [1, 2]);
        assert_eq!(strides(&[2, 3], &[&[0, 1], &[1, 0]]), [3, 1]);
        // The first operand decides.
        assert_eq!(strides(&[2, 3], &[&[1, 2], &[3, 1]]), [1, 2]);
    }

    #[test]
    fn formats_have_their_strides() {
        let of = |f: Format| f.strides(&[2, 3, 4, 5]).unwrap().to_vec();
        assert_eq!(of(Format::Contiguous), [60, 20, 5, 1]);
        assert_eq!(of(Format::ChannelsLast), [60, 1, 15, 3]);
        assert!(Format::ChannelsLast3d.strides(&[2, 3]).is_err());
    }

    #[test]
    fn strides_tell_the_format() {
        let of = |shape: &[usize], strides: &[usize]| {
            Layout { shape: shape.into(), strides: strides.into(), offset: 0 }.channels_format()
        };
        assert_eq!(of(&[2, 3, 4, 5], &[60, 1, 15, 3]), Format::ChannelsLast);
        assert_eq!(of(&[2, 3, 4, 5], &[60, 20, 5, 1]), Format::Contiguous);
        assert_eq!(of(&[2, 1, 4, 5], &[20, 20, 5, 1]), Format::Contiguous);
        assert_eq!(of(&[1, 3, 1, 1], &[3, 1, 1, 1]), Format::Contiguous);
        assert_eq!(of(&[2, 3, 2, 2], &[4, 0, 2, 1]), Format::Contiguous);
        assert_eq!(of(&[2, 3, 2, 2, 2], &[24, 1, 12, 6, 3]), Format::ChannelsLast3d);
    }
}
