//! Line-by-line parallel iteration over operands of one shape, for kernels that do not use tiles.

use super::parallel::par_for;
use crate::layout::{Dims, Odometer, coalesce};

/// Maximum elements of a line per call.
pub const LINE: usize = 8192;
/// Minimum elements per task.
const TASK: usize = 1 << 15;

/// Calls `f(offsets, n, steps)` for runs of `n` elements that cover the shape; element `i` of a run is at `offsets +
/// steps * i`, for each operand. Runs are disjoint and come in any order, on several threads.
pub fn for_lines<const N: usize>(
    shape: &[usize],
    strides: [&[usize]; N],
    f: impl Fn([usize; N], usize, [usize; N]) + Sync,
) {
    if shape.contains(&0) {
        return;
    }
    let (dims, merged) = coalesce(shape, strides);
    let steps: [usize; N] = std::array::from_fn(|k| merged[k].last().copied().unwrap_or(1));
    for_runs(&dims, std::array::from_fn(|k| &merged[k][..]), LINE, TASK, |at, n| f(at, n, steps), || ());
}

/// `for_lines` along the last dimension of a shape that is already merged and not empty; `longest` is the maximum of elements per
/// call, `task` the minimum per task, and `done` is called at the end of each.
pub fn for_runs<const N: usize>(
    shape: &[usize],
    strides: [&[usize]; N],
    longest: usize,
    task: usize,
    f: impl Fn([usize; N], usize) + Sync,
    done: impl Fn() + Sync,
) {
    let n = shape.last().copied().unwrap_or(1);
    let steps: [usize; N] = std::array::from_fn(|k| strides[k].last().copied().unwrap_or(1));
    let dims = &shape[..shape.len().saturating_sub(1)];
    let outer = strides.map(|s| &s[..dims.len()]);
    let pieces = n.div_ceil(longest);
    let units = dims.iter().product::<usize>() * pieces;
    par_for(units, task / n.min(longest), |range| {
        let mut at = Odometer::new(dims, outer, range.start / pieces);
        for unit in range {
            let start = unit % pieces * longest;
            let count = longest.min(n - start);
            f(std::array::from_fn(|k| at.offsets[k] + start * steps[k]), count);
            if start + count == n {
                at.step();
            }
        }
        done();
    });
}

/// Dimensions other than `dim`, densest last by the first operand's strides, merged where all operands allow it.
pub struct Others<const N: usize> {
    pub shape: Dims,
    pub strides: [Dims; N],
}

impl<const N: usize> Others<N> {
    pub fn new(shape: &[usize], strides: [&[usize]; N], dim: usize) -> Self {
        let mut order: Vec<usize> = (0..shape.len()).filter(|&d| d != dim).collect();
        order.sort_by_key(|&d| std::cmp::Reverse(strides[0][d]));
        let pick = |v: &[usize]| order.iter().map(|&d| v[d]).collect::<Dims>();
        let (sizes, picked) = (pick(shape), strides.map(pick));
        let (shape, strides) = coalesce(&sizes, std::array::from_fn(|k| &picked[k][..]));
        Others { shape, strides }
    }
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }
    /// Removes the densest dimension: its size and its strides.
    pub fn pop(&mut self) -> (usize, [usize; N]) {
        match self.shape.pop() {
            Some(n) => (n, std::array::from_fn(|k| self.strides[k].pop().unwrap())),
            None => (1, [1; N]),
        }
    }
    pub fn walk(&self, start: usize) -> Odometer<'_, N> {
        Odometer::new(&self.shape, std::array::from_fn(|k| &self.strides[k][..]), start)
    }
}
