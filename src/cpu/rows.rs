//! Elementwise execution row by row: for operands that are dense, or repeat one element, along each row. Against tiles, nothing is
//! gathered, and of a repeated element (`x - x.amax(1, keepdim=True)`) only a short part of a row is written out.

use super::contiguous::{MAX_INPUTS, NO_POINTERS};
use super::loops::LoopFn;
use super::strided::splat;
use super::tile::{LONG_ROW, Scratch, Space};
use crate::layout::Odometer;
use smallvec::SmallVec;
use std::ops::Range;

/// Bytes over which a repeated element is written out: few, so that they stay in L1 while the other operands pass through it.
pub const REPEATED: usize = 2 << 10;
/// Elements of a piece of a row, the unit of work of a thread.
const LONGEST: usize = 8192;
/// From this length on, rows with repeated elements are worth a call each.
const REPEATING_ROW: usize = 64;

/// An input of the loop's dtype: where it begins, or the value that it has everywhere.
pub struct RowInput {
    pub ptr: *const u8,
    pub constant: Option<[u64; 2]>,
}

/// A space as pieces of rows. Operand 0 of the space is the output.
pub struct Rows<'a> {
    space: &'a Space,
    inputs: &'a [RowInput],
    f: LoopFn,
    /// Sizes of the elements of inputs and output.
    sizes: [usize; 2],
    out: *mut u8,
    /// Elements of a row and of its pieces.
    n: usize,
    piece: usize,
    /// Elements of a call of the loop.
    step: usize,
    /// Which inputs are repeated along a row.
    repeated: SmallVec<[bool; 4]>,
}

impl<'a> Rows<'a> {
    /// If rows are worth it.
    pub fn new(
        space: &'a Space,
        inputs: &'a [RowInput],
        out: *mut u8,
        f: LoopFn,
        sizes: [usize; 2],
    ) -> Option<Rows<'a>> {
        let n = *space.shape.last()?;
        let last = |k: usize| *space.strides[k].last().unwrap();
        let repeated: SmallVec<[bool; 4]> = (0..inputs.len()).map(|k| last(k + 1) == 0).collect();
        let least = match inputs.iter().zip(&repeated).any(|(x, &r)| r && x.constant.is_none()) {
            true => REPEATING_ROW,
            false => LONG_ROW,
        };
        let dense = last(0) == 1 && (1..=repeated.len()).all(|k| last(k) <= 1);
        let (piece, part) = (LONGEST.min(n), (REPEATED / sizes[0]).min(n));
        let step = if repeated.contains(&true) { part } else { piece };
        (dense && n >= least).then_some(Rows { space, inputs, f, sizes, out, n, piece, step, repeated })
    }
    /// Units of work, and elements in each.
    pub fn pieces(&self) -> (usize, usize) {
        let shape = &self.space.shape;
        (shape[..shape.len() - 1].iter().product::<usize>() * self.n.div_ceil(self.piece), self.piece)
    }
    /// # Safety
    /// No other task runs these pieces; every element that shape and strides reach is in bounds and aligned, and of the loop's types.
    /// The output may be one of the inputs, and overlaps no input otherwise.
    pub unsafe fn run(&self, pieces: Range<usize>) {
        let (size, strides) = (self.sizes[0], &self.space.strides);
        let mut scratch = Scratch::take();
        for (k, input) in self.inputs.iter().enumerate() {
            if let Some(value) = &input.constant {
                // SAFETY: a buffer holds the elements of a call.
                unsafe { splat(size, value.as_ptr().cast(), scratch.buffer(k), self.step) };
            }
        }
        let per_row = self.n.div_ceil(self.piece);
        let outer = &self.space.shape[..self.space.shape.len() - 1];
        let mut row = Odometer::new(outer, [], pieces.start / per_row);
        let mut held = [usize::MAX; MAX_INPUTS];
        for piece in pieces {
            let start = piece % per_row * self.piece;
            let end = self.n.min(start + self.piece);
            let offset = |k: usize| row.index().iter().zip(&strides[k]).map(|(i, s)| i * s).sum::<usize>();
            // SAFETY: indices lie within the shape; buffers hold the elements of a call and overlap no operand.
            unsafe {
                let mut base = NO_POINTERS;
                for (k, input) in self.inputs.iter().enumerate() {
                    if !self.repeated[k] {
                        base[k] = input.ptr.add(offset(k + 1) * size);
                        continue;
                    }
                    base[k] = scratch.buffer(k);
                    let at = if input.constant.is_some() { held[k] } else { offset(k + 1) };
                    if held[k] != at {
                        splat(size, input.ptr.add(at * size), scratch.buffer(k), self.step);
                        held[k] = at;
                    }
                }
                let out = self.out.add(offset(0) * self.sizes[1]);
                for at in (start..end).step_by(self.step) {
                    let mut now = base;
                    for (p, &repeated) in now.iter_mut().zip(&self.repeated) {
                        *p = p.add(if repeated { 0 } else { at * size });
                    }
                    (self.f)(now.as_ptr(), out.add(at * self.sizes[1]), self.step.min(end - at));
                }
            }
            if end == self.n {
                row.step();
            }
        }
    }
}
