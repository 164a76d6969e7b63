//! Elementwise execution row by row: for operands that are dense, or repeat one element, along each row. Against tiles, nothing is
//! gathered, and of a repeated element (`x - x.amax(1, keepdim=True)`) only a short part of a row is written out.

use super::contiguous::{MAX_INPUTS, NO_POINTERS};
use super::map::{REPEATED, Task};
use super::strided::splat;
use super::tile::{LONG_ROW, Scratch};
use crate::layout::Odometer;
use smallvec::SmallVec;
use std::ops::Range;

/// Elements of a piece of a row, the unit of work of a thread.
const LONGEST: usize = 8192;
/// From this length on, rows with repeated elements are worth a call each.
const REPEATING_ROW: usize = 64;

/// A space as pieces of rows.
pub struct Rows {
    /// Elements of a row and of its pieces.
    n: usize,
    piece: usize,
    /// Elements of a call of the loop.
    step: usize,
    /// Which inputs are repeated along a row.
    repeated: SmallVec<[bool; 4]>,
}

impl Rows {
    /// If rows are worth it, and nothing is converted.
    pub fn of(task: &Task) -> Option<Rows> {
        let n = *task.space.shape.last()?;
        let last = |k: usize| *task.space.strides[k].last().unwrap();
        let repeated: SmallVec<[bool; 4]> = (0..task.feeds.len()).map(|k| last(k + 1) == 0).collect();
        let least = match task.feeds.iter().zip(&repeated).any(|(f, &r)| r && f.constant.is_none()) {
            true => REPEATING_ROW,
            false => LONG_ROW,
        };
        let dense = last(0) == 1 && (1..=repeated.len()).all(|k| last(k) <= 1);
        let plain = task.direct && task.feeds.iter().all(|f| f.steps == [None; 2]);
        let (piece, part) = (LONGEST.min(n), (REPEATED / task.own_size).min(n));
        let step = if repeated.contains(&true) { part } else { piece };
        (plain && dense && n >= least).then_some(Rows { n, piece, step, repeated })
    }
    /// Units of work, and elements in each.
    pub fn pieces(&self, task: &Task) -> (usize, usize) {
        let shape = &task.space.shape;
        (shape[..shape.len() - 1].iter().product::<usize>() * self.n.div_ceil(self.piece), self.piece)
    }
    /// SAFETY: as `Task::run`, for these pieces.
    pub unsafe fn run(&self, task: &Task, pieces: Range<usize>) {
        let (size, strides) = (task.own_size, &task.space.strides);
        let mut scratch = Scratch::take();
        for (k, feed) in task.feeds.iter().enumerate() {
            if let Some(value) = &feed.constant {
                // SAFETY: a buffer holds the elements of a call.
                unsafe { splat(size, value.as_ptr().cast(), scratch.buffer(k), self.step) };
            }
        }
        let per_row = self.n.div_ceil(self.piece);
        let outer = &task.space.shape[..task.space.shape.len() - 1];
        let mut row = Odometer::new(outer, [], pieces.start / per_row);
        let mut held = [usize::MAX; MAX_INPUTS];
        for piece in pieces {
            let start = piece % per_row * self.piece;
            let end = self.n.min(start + self.piece);
            let offset = |k: usize| row.index().iter().zip(&strides[k]).map(|(i, s)| i * s).sum::<usize>();
            // SAFETY: indices lie within the shape; buffers hold the elements of a call and overlap no operand.
            unsafe {
                let mut base = NO_POINTERS;
                for (k, feed) in task.feeds.iter().enumerate() {
                    if !self.repeated[k] {
                        base[k] = feed.ptr.add(offset(k + 1) * size);
                        continue;
                    }
                    base[k] = scratch.buffer(k);
                    let at = if feed.constant.is_some() { held[k] } else { offset(k + 1) };
                    if held[k] != at {
                        splat(size, feed.ptr.add(at * size), scratch.buffer(k), self.step);
                        held[k] = at;
                    }
                }
                let out = task.out.add(offset(0) * task.out_size);
                for at in (start..end).step_by(self.step) {
                    let mut now = base;
                    for (p, &repeated) in now.iter_mut().zip(&self.repeated) {
                        *p = p.add(if repeated { 0 } else { at * size });
                    }
                    (task.f)(now.as_ptr(), out.add(at * task.out_size), self.step.min(end - at));
                }
            }
            if end == self.n {
                row.step();
            }
        }
    }
}
