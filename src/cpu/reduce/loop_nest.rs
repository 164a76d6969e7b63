//! The loop nest of a reduction (`LoopNest`) and the pairwise merging of accumulators (`Pairwise`).

use crate::cpu::view::View;
use crate::layout::{Dims, Odometer};
use smallvec::SmallVec;
use std::mem::MaybeUninit;

/// Dimensions with the strides of input and output, densest last, merged where both allow it.
pub struct LoopNest {
    pub shape: Dims,
    pub input: Dims,
    pub output: Dims,
}

impl LoopNest {
    /// The dimensions for which `select` is true.
    pub fn new(input: &View, out: &View, select: impl Fn(usize) -> bool) -> LoopNest {
        let chosen = (0..input.ndim()).filter(|&d| select(d) && input.shape[d] != 1);
        LoopNest::of(chosen.map(|d| (input.shape[d], input.strides[d], out.strides[d])).collect())
    }
    /// Dimensions as size, stride in the input, stride in the output.
    pub fn of(mut dims: SmallVec<[(usize, usize, usize); 6]>) -> LoopNest {
        dims.sort_by_key(|&(_, stride, _)| std::cmp::Reverse(stride));
        let mut nest = LoopNest { shape: Dims::new(), input: Dims::new(), output: Dims::new() };
        for (n, i, o) in dims {
            match nest.shape.last_mut() {
                Some(m) if nest.input.last() == Some(&(n * i)) && nest.output.last() == Some(&(n * o)) => {
                    *m *= n;
                    *nest.input.last_mut().unwrap() = i;
                    *nest.output.last_mut().unwrap() = o;
                }
                _ => {
                    nest.shape.push(n);
                    nest.input.push(i);
                    nest.output.push(o);
                }
            }
        }
        nest
    }
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }
    /// Removes the densest dimension: size, stride in the input, stride in the output.
    pub fn pop(&mut self) -> (usize, usize, usize) {
        match self.shape.pop() {
            Some(n) => (n, self.input.pop().unwrap(), self.output.pop().unwrap()),
            None => (1, 1, 1),
        }
    }
    /// A one-dimensional nest with strides multiplied by `group`.
    pub fn widened(&self, group: usize) -> LoopNest {
        let mut nest = LoopNest { shape: self.shape.clone(), input: self.input.clone(), output: self.output.clone() };
        if group > 1 {
            nest.shape[0] /= group;
            nest.input[0] *= group;
        }
        nest
    }
    pub fn walk(&self, start: usize) -> Odometer<'_, 2> {
        Odometer::new(&self.shape, [&self.input, &self.output], start)
    }
}

/// Merges accumulators pairwise as they arrive, with the levels of a binary counter.
pub struct Pairwise<A> {
    levels: [MaybeUninit<A>; 64],
    count: u64,
}
impl<A: Copy> Pairwise<A> {
    pub fn new() -> Self {
        Pairwise { levels: [MaybeUninit::uninit(); 64], count: 0 }
    }
    #[inline(always)]
    pub fn push(&mut self, mut acc: A, merge: impl Fn(A, A) -> A) {
        let mut level = 0;
        while self.count >> level & 1 == 1 {
            // SAFETY: a set bit of the count means that its level holds an accumulator.
            acc = merge(unsafe { self.levels[level].assume_init() }, acc);
            level += 1;
        }
        self.levels[level].write(acc);
        self.count += 1;
    }
    #[inline(always)]
    pub fn finish(self, merge: impl Fn(A, A) -> A) -> Option<A> {
        let (mut result, mut left) = (None, self.count);
        while left != 0 {
            // SAFETY: as in `push`.
            let acc = unsafe { self.levels[left.trailing_zeros() as usize].assume_init() };
            result = Some(result.map_or(acc, |r| merge(acc, r)));
            left &= left - 1;
        }
        result
    }
}
