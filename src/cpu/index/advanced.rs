//! Advanced indexing: `input[i, :, j]` with index tensors, reads and writes.
//!
//! The index tensors, all of one (broadcast) shape, are turned into offsets a chunk at a time; each offset denotes a
//! slice over the dimensions that are not indexed. The result's shape follows NumPy: the index shape replaces the
//! indexed dimensions if they are adjacent, else it comes first.

use super::combine::{Add, Combine};
use super::{Found, Refused, Wrong, check};
use crate::cpu::parallel::par_for;
use crate::cpu::view::{View, ensure};
use crate::dtype::{DType, Element};
use crate::layout::{Dims, Odometer, coalesce, memory_order};
use crate::with_dtype;
use smallvec::SmallVec;
use std::ops::Range;
use std::result::Result;

/// The shape of `input[indices]`, where `shape` is what the index tensors broadcast to.
pub fn index_shape(input: &[usize], indexed: &[bool], shape: &[usize]) -> Dims {
    let at = place(indexed);
    let mut out: Dims = (0..input.len()).filter(|&d| !is(indexed, d)).map(|d| input[d]).collect();
    out.insert_many(at, shape.iter().copied());
    out
}

fn is(indexed: &[bool], d: usize) -> bool {
    indexed.get(d).copied().unwrap_or(false)
}

/// The dimension of the result at which the index shape starts.
fn place(indexed: &[bool]) -> usize {
    let first = indexed.iter().position(|&b| b).unwrap_or(0);
    let last = indexed.iter().rposition(|&b| b).unwrap_or(0);
    if (first..last).all(|d| indexed[d]) { first } else { 0 }
}

/// Index positions whose offsets are computed at once.
const CHUNK: usize = 1024;

/// One index tensor, for a dimension of `size` elements with this stride.
struct Axis<'a> {
    index: View<'a>,
    dim: usize,
    size: usize,
    stride: usize,
}

/// The parts of an indexing operation: the index shape, and the remaining dimensions.
struct Plan<'a> {
    axes: SmallVec<[Axis<'a>; 4]>,
    count: usize,
    /// The index shape and the other operand's strides over it.
    shape: Dims,
    steps: Dims,
    /// The remaining dimensions with the strides of the indexed and the other operand.
    rest: Dims,
    rest_full: Dims,
    rest_dense: Dims,
}

/// Refused where `dense` does not have the shape that `index_shape` gives, or what is written is not apart.
fn plan<'a>(full: View, indices: &[Option<View<'a>>], dense: View, out: View) -> crate::error::Result<Plan<'a>> {
    let indexed: SmallVec<[bool; 8]> = indices.iter().map(Option::is_some).collect();
    let shape: Dims = indices.iter().flatten().next().map_or(Dims::new(), |v| v.shape.into());
    let index = |v: &View| v.dtype == DType::I64 && v.shape == &shape[..] && v.is_apart(&out);
    let right = indices.len() <= full.ndim()
        && indices.iter().flatten().all(index)
        && dense.shape == &index_shape(full.shape, &indexed, &shape)[..]
        && (dense.dtype == full.dtype && full.is_apart(&dense));
    ensure(right, "indexing")?;
    let mut axes = SmallVec::new();
    for (dim, index) in indices.iter().enumerate() {
        let Some(index) = *index else { continue };
        let (size, stride) = full.dim(dim);
        axes.push(Axis { index, dim, size, stride });
    }
    let at = place(&indexed);
    let pick = |v: &[usize]| (0..full.ndim()).filter(|&d| !is(&indexed, d)).map(|d| v[d]).collect::<Dims>();
    let mut rest_dense: Dims = dense.strides.into();
    let steps: Dims = rest_dense.drain(at..at + shape.len()).collect();
    let (rest, rest_full) = (pick(full.shape), pick(full.strides));
    // In memory order, dimensions that are adjacent in both operands are merged.
    let [rest, rest_full, rest_dense] = match rest_full.is_sorted_by(|a, b| a >= b) {
        true => [rest, rest_full, rest_dense],
        false => {
            let order = memory_order(&rest, &rest_full);
            [rest, rest_full, rest_dense].map(|v| order.iter().map(|&d| v[d]).collect())
        }
    };
    let (rest, [rest_full, rest_dense]) = coalesce(&rest, [&rest_full, &rest_dense]);
    Ok(Plan { axes, count: shape.iter().product(), shape, steps, rest, rest_full, rest_dense })
}

/// `out = input[indices]`: one optional index per leading dimension, all of one shape, of int64.
pub fn index_get(input: View, indices: &[Option<View>], out: View) -> Result<(), Refused> {
    let plan = plan(input, indices, out, out)?;
    // SAFETY: the shapes were compared; the type has the element's size.
    let read = unsafe {
        match input.dtype.size() {
            1 => plan.each::<u8>(input, out, |full, dense| *dense = *full),
            2 => plan.each::<u16>(input, out, |full, dense| *dense = *full),
            4 => plan.each::<u32>(input, out, |full, dense| *dense = *full),
            8 => plan.each::<u64>(input, out, |full, dense| *dense = *full),
            _ => plan.each::<[u64; 2]>(input, out, |full, dense| *dense = *full),
        }
    };
    Ok(read?)
}

/// `out[indices] = values`, or `+=` if `accumulate`; `values` has the shape that `index_shape` gives
/// (broadcast with strides of zero). Where indices repeat, the last value stays, or all are added in order.
pub fn index_put(out: View, indices: &[Option<View>], values: View, accumulate: bool) -> Result<(), Refused> {
    let plan = plan(out, indices, values, out)?;
    // SAFETY: the shapes were compared; the type has the element's size.
    let written = unsafe {
        for axis in &plan.axes {
            let wrong = |index| Wrong { index, dim: axis.dim, size: axis.size };
            check(axis.index, -(axis.size as i64), axis.size).map_err(wrong)?;
        }
        if accumulate {
            let added = with_dtype!(out.dtype, T => plan.in_order::<T>(out, values, |f, d| *f = add(*f, *d)));
            return Ok(added?);
        }
        match out.dtype.size() {
            1 => plan.in_order::<u8>(out, values, |full, dense| *full = *dense),
            2 => plan.in_order::<u16>(out, values, |full, dense| *full = *dense),
            4 => plan.in_order::<u32>(out, values, |full, dense| *full = *dense),
            8 => plan.in_order::<u64>(out, values, |full, dense| *full = *dense),
            _ => plan.in_order::<[u64; 2]>(out, values, |full, dense| *full = *dense),
        }
    };
    Ok(written?)
}

#[inline(always)]
fn add<T: Element>(a: T, b: T) -> T {
    Add.combine(a, b)
}

impl Plan<'_> {
    /// Calls `f(full, dense, base)` with the offsets of a range of index positions, a chunk at a time, in order; those
    /// of the other operand are relative to `base`. A chunk with a wrong index is skipped, and the last.
    fn walk(&self, range: Range<usize>, found: &Found<Wrong>, mut f: impl FnMut(&[usize], &[usize], usize)) {
        let (mut full, mut dense) = ([0usize; CHUNK], [0usize; CHUNK]);
        let (shape, [steps]) = coalesce(&self.shape, [&self.steps]);
        let mut at = Odometer::new(&shape, [&steps], range.start);
        // Along one dimension all chunks have the same offsets as the first.
        let line = (shape.len() <= 1).then(|| steps.first().copied().unwrap_or(0));
        if let Some(step) = line {
            dense.iter_mut().take(range.len()).enumerate().for_each(|(i, d)| *d = i * step);
        }
        for start in range.clone().step_by(CHUNK) {
            let n = CHUNK.min(range.end - start);
            full[..n].fill(0);
            if !self.axes.iter().all(|axis| axis.add(&self.shape, start, &mut full[..n])) {
                return self.report(start..start + n, found);
            }
            if line.is_none() {
                for d in &mut dense[..n] {
                    *d = at.offsets[0];
                    at.step();
                }
            }
            f(&full[..n], &dense[..n], line.map_or(0, |step| start * step));
        }
    }
    /// Reports the first wrong index among these positions. If another thread has corrected it meanwhile, the wrong
    /// value is unknown, and the index at the first position is reported instead.
    #[cold]
    fn report(&self, positions: Range<usize>, found: &Found<Wrong>) {
        let wrong = |p: usize| self.axes.iter().find_map(|axis| axis.wrong(&self.shape, p).map(|w| (p, w)));
        let first = || (positions.start, Wrong { index: -1, dim: self.axes[0].dim, size: self.axes[0].size });
        let (at, bad) = positions.clone().find_map(wrong).unwrap_or_else(first);
        found.report(at, bad);
    }
    /// Calls `f(full, dense)` for every pair of elements, in parallel over everything.
    unsafe fn each<T>(&self, full: View, dense: View, f: impl Fn(*mut T, *mut T) + Sync) -> Result<(), Wrong> {
        let (slice, found) = (self.rest.iter().product::<usize>(), Found::default());
        par_for(self.count, (1 << 15) / slice.max(1), |range| {
            self.slices(&full, &dense, [range, 0..slice], &found, &f);
        });
        found.result()
    }
    /// The same in the order of the index tensors, which may name an element twice: parallel only over slices.
    unsafe fn in_order<T>(&self, full: View, dense: View, f: impl Fn(*mut T, *mut T) + Sync) -> Result<(), Wrong> {
        let (slice, found) = (self.rest.iter().product::<usize>(), Found::default());
        if self.count == 0 {
            return Ok(());
        }
        let grain = ((1 << 15) / self.count).max(64);
        par_for(slice, grain, |range| self.slices(&full, &dense, [0..self.count, range], &found, &f));
        found.result()
    }
    /// For a range of index positions and a part of the elements of each slice.
    #[inline(always)]
    fn slices<T>(
        &self,
        full: &View,
        dense: &View,
        [range, part]: [Range<usize>; 2],
        found: &Found<Wrong>,
        f: &impl Fn(*mut T, *mut T),
    ) {
        let (full, dense) = (full.ptr as *mut T, dense.ptr as *mut T);
        let single = self.rest.is_empty() && part == (0..1);
        self.walk(range, found, |a, b, base| {
            let dense = dense.wrapping_add(base);
            let pairs = a.iter().zip(b).map(|(&a, &b)| (full.wrapping_add(a), dense.wrapping_add(b)));
            if single {
                pairs.for_each(|(a, b)| f(a, b));
            } else {
                pairs.for_each(|(a, b)| self.slice(a, b, part.start, part.end, f));
            }
        });
    }
    /// Elements `from..to` of one slice.
    #[inline(always)]
    fn slice<T>(&self, full: *mut T, dense: *mut T, from: usize, to: usize, f: &impl Fn(*mut T, *mut T)) {
        match self.rest.len() {
            0 if from < to => f(full, dense),
            0 => {}
            1 => {
                let (a, b) = (self.rest_full[0], self.rest_dense[0]);
                for j in from..to {
                    f(full.wrapping_add(j * a), dense.wrapping_add(j * b));
                }
            }
            _ if from == to => {}
            _ => {
                let mut at = Odometer::new(&self.rest, [&self.rest_full, &self.rest_dense], from);
                for _ in from..to {
                    f(full.wrapping_add(at.offsets[0]), dense.wrapping_add(at.offsets[1]));
                    at.step();
                }
            }
        }
    }
}

impl Axis<'_> {
    /// Wraps an index; the sign of the result tells whether it is valid: negative if not.
    #[inline(always)]
    fn place(&self, v: i64) -> (i64, i64) {
        let size = self.size as i64;
        let place = v.wrapping_add(if v < 0 { size } else { 0 });
        (place, place | (size - 1).wrapping_sub(place))
    }
    /// Adds the offsets of the index positions from `start` on; false if one of them is wrong: then none may be used.
    fn add(&self, shape: &[usize], start: usize, offsets: &mut [usize]) -> bool {
        let mut signs = 0;
        let mut place = |v: i64| {
            let (place, sign) = self.place(v);
            signs |= sign;
            place as usize
        };
        if self.index.is_contiguous() {
            // SAFETY: positions lie inside the index, which is a view. What another thread
            // writes meanwhile does no harm: each is read once, into the offset and the sign.
            let index = unsafe { std::slice::from_raw_parts(self.index.at(start) as *const i64, offsets.len()) };
            let pairs = offsets.iter_mut().zip(index);
            // AVX2 has no 64-bit vector product.
            match self.stride {
                1 => pairs.for_each(|(o, &v)| *o = o.wrapping_add(place(v))),
                stride => pairs.for_each(|(o, &v)| *o = o.wrapping_add(place(v).wrapping_mul(stride))),
            }
            return signs >= 0;
        }
        let mut at = Odometer::new(shape, [self.index.strides], start);
        for o in offsets {
            // SAFETY: as above.
            let v = unsafe { (self.index.at(at.offsets[0]) as *const i64).read_volatile() };
            *o = o.wrapping_add(place(v).wrapping_mul(self.stride));
            at.step();
        }
        signs >= 0
    }
    /// The index at a position, if it is wrong.
    #[cold]
    fn wrong(&self, shape: &[usize], position: usize) -> Option<Wrong> {
        let at = Odometer::new(shape, [self.index.strides], position);
        // SAFETY: as above.
        let index = unsafe { (self.index.at(at.offsets[0]) as *const i64).read_volatile() };
        (self.place(index).1 < 0).then_some(Wrong { index, dim: self.dim, size: self.size })
    }
}
