//! Padding with elements of the input: each result reads one element, given by a table for each padded dimension.
//!
//! A unit of work is one row along the last dimension of the result, or, backwards, all rows of the result that read one
//! plane of the input.

use super::parallel::{par_for, try_par_for};
use super::row_copy::{CopyRow, RowLoop, for_rows};
use super::runs::{Reader, Writer};
use super::view::{SendPtr, View, ensure};
use crate::cpu::arith::Arith;
use crate::dtype::{DType, c64, c128};
use crate::error::Result;
use crate::rt::reserve::filled;
use std::ops::Range;

/// Elements per task.
const TASK: usize = 1 << 13;

/// For each of the last dimensions, the element of the input that each of the result reads.
pub struct Source {
    pub tables: Vec<Vec<usize>>,
}

/// The sizes of an input and a result whose last dimensions are padded: planes of rows.
struct Planes<'a> {
    count: usize,
    /// Elements of a plane of the input and of the result.
    inner: usize,
    outer: usize,
    /// Rows of a plane of the result.
    rows: usize,
    size: usize,
    source: &'a Source,
    shape: &'a [usize],
}

impl<'a> Planes<'a> {
    fn new(inner: &View<'a>, outer: &View, source: &'a Source, kernel: &'static str) -> Result<Planes<'a>> {
        let (n, depth) = (inner.ndim(), source.tables.len());
        ensure(depth > 0 && depth <= n && outer.ndim() == n && inner.dtype == outer.dtype, kernel)?;
        let (lead, shape) = inner.shape.split_at(n - depth);
        let padded = &outer.shape[n - depth..];
        let right = source
            .tables
            .iter()
            .zip(shape)
            .zip(padded)
            .all(|((table, &n), &out)| table.len() == out && table.iter().all(|&i| i < n));
        let dense = inner.is_contiguous() && outer.is_contiguous() && inner.is_apart(outer);
        ensure(right && dense && outer.shape[..n - depth] == *lead, kernel)?;
        Ok(Planes {
            count: lead.iter().product(),
            inner: shape.iter().product(),
            outer: padded.iter().product(),
            rows: padded[..depth - 1].iter().product(),
            size: padded[depth - 1],
            source,
            shape,
        })
    }
    /// Where row `row` of a plane of the result begins in the plane of the input.
    fn start(&self, mut row: usize) -> usize {
        let (mut at, mut step) = (0, self.shape[self.shape.len() - 1]);
        let outer = self.source.tables.iter().zip(self.shape).rev().skip(1);
        for (table, &n) in outer {
            at += table[row % table.len()] * step;
            row /= table.len();
            step *= n;
        }
        at
    }
    fn last(&self) -> &[usize] {
        &self.source.tables[self.shape.len() - 1]
    }
}

/// The longest run of consecutive elements in a table: first place, and length.
fn longest_run(table: &[usize]) -> (usize, usize) {
    let (mut best, mut start) = ((0, 0), 0);
    for i in 1..=table.len() {
        if i == table.len() || table[i] != table[i - 1] + 1 {
            best = if i - start > best.1 { (start, i - start) } else { best };
            start = i;
        }
    }
    best
}

/// Pads row-major `input` into row-major `out`.
pub fn pad(input: View, source: &Source, out: View) -> Result<()> {
    let planes = Planes::new(&input, &out, source, "pad")?;
    match input.dtype.size() {
        1 => rows::<u8>(&planes, &input, &out),
        2 => rows::<u16>(&planes, &input, &out),
        4 => rows::<u32>(&planes, &input, &out),
        8 => rows::<u64>(&planes, &input, &out),
        _ => rows::<[u64; 2]>(&planes, &input, &out),
    }
}

fn rows<W: Copy>(planes: &Planes, input: &View, out: &View) -> Result<()> {
    let last = planes.last();
    let (first, run) = longest_run(last);
    let mut starts = filled(0, planes.rows)?;
    starts.iter_mut().enumerate().for_each(|(row, start)| *start = planes.start(row));
    let (input, out) = (SendPtr(input.ptr as *mut W), SendPtr(out.ptr as *mut W));
    par_for(planes.count * planes.rows, TASK / planes.size.max(1), |range| {
        let edges = [0..first, first + run..last.len()];
        let (input, out) = (input.at(0), out.at(0));
        for_rows(run * size_of::<W>(), Padded { planes, last, first, edges, starts: &starts, input, out, range });
    });
    Ok(())
}

/// Rows of the result, from one in the middle of a plane on.
struct Padded<'a, W> {
    planes: &'a Planes<'a>,
    last: &'a [usize],
    /// Where the longest run begins in a row, and what lies beside it.
    first: usize,
    edges: [Range<usize>; 2],
    /// Where each row of a plane begins in the input.
    starts: &'a [usize],
    input: *const W,
    out: *mut W,
    range: Range<usize>,
}
impl<W: Copy> RowLoop for Padded<'_, W> {
    type Output = ();
    #[inline(always)]
    fn run<C: CopyRow>(self, copy: C) {
        let (mut plane, mut row) = (self.range.start / self.planes.rows, self.range.start % self.planes.rows);
        for unit in self.range {
            // SAFETY: `Planes::new` has seen that tables lead into the input; each row of the result is written by one task.
            unsafe {
                let from = self.input.add(plane * self.planes.inner + self.starts[row]);
                let to = self.out.add(unit * self.planes.size);
                if let Some(&start) = self.last.get(self.first) {
                    copy.copy(from.add(start).cast(), to.add(self.first).cast());
                }
                for edge in &self.edges {
                    for i in edge.clone() {
                        *to.add(i) = *from.add(self.last[i]);
                    }
                }
            }
            row += 1;
            if row == self.planes.rows {
                (plane, row) = (plane + 1, 0);
            }
        }
    }
}

/// The gradient of `pad`: each element of row-major `grad` is added to the one of row-major `dx` that it read.
pub fn pad_backward(grad: View, source: &Source, dx: View) -> Result<()> {
    let planes = Planes::new(&dx, &grad, source, "pad_backward")?;
    match dx.dtype {
        DType::F64 => sums::<f64>(&planes, &grad, &dx),
        DType::C32 | DType::C64 => sums::<c64>(&planes, &grad, &dx),
        DType::C128 => sums::<c128>(&planes, &grad, &dx),
        _ => sums::<f32>(&planes, &grad, &dx),
    }
}

fn sums<T: Arith + Default>(planes: &Planes, grad: &View, dx: &View) -> Result<()> {
    let last = planes.last();
    let (first, run) = longest_run(last);
    try_par_for(planes.count, TASK / planes.outer.max(1), |range| {
        let (mut g, mut to) = (Reader::<T>::new(grad, planes.size)?, Writer::<T>::new(dx, planes.inner)?);
        let mut sums = filled(T::ZERO, planes.inner)?;
        for plane in range {
            sums.fill(T::ZERO);
            for row in 0..planes.rows {
                // SAFETY: the row is one of the gradient.
                let g = unsafe { g.run(plane * planes.outer + row * planes.size, planes.size) };
                let at = planes.start(row);
                if run > 0 {
                    let to = &mut sums[at + last[first]..][..run];
                    to.iter_mut().zip(&g[first..]).for_each(|(t, &g)| *t = t.plus(g));
                }
                for i in (0..first).chain(first + run..last.len()) {
                    sums[at + last[i]] = sums[at + last[i]].plus(g[i]);
                }
            }
            // SAFETY: each plane is written by one task.
            unsafe { to.run(plane * planes.inner, planes.inner, |dx| dx.copy_from_slice(&sums)) };
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, Rng};

    #[test]
    fn agrees_with_plain_loops() {
        let mut rng = Rng(5);
        let source = Source { tables: vec![vec![1, 0, 1, 2], vec![2, 1, 0, 1, 2, 3, 2]] };
        for dtype in [DType::F32, DType::F64, DType::F16] {
            let x = Array::of(dtype, &[2, 3, 4], &Array::random(&mut rng, dtype, &[2, 3, 4]).reals());
            let (y, dx) = (Array::zeros(dtype, &[2, 4, 7]), Array::zeros(dtype, &[2, 3, 4]));
            pad(x.view(), &source, y.view()).unwrap();
            pad_backward(y.view(), &source, dx.view()).unwrap();
            let (x, y, mut want) = (x.reals(), y.reals(), vec![0.0; 24]);
            for (i, y) in y.iter().enumerate() {
                let from = i / 28 * 12 + source.tables[0][i / 7 % 4] * 4 + source.tables[1][i % 7];
                assert_eq!(*y, x[from]);
                want[from] += y;
            }
            dx.reals().iter().zip(&want).for_each(|(a, b)| assert!((a - b).abs() <= 2e-3 * b.abs(), "{a} {b}"));
        }
    }

    #[test]
    fn tables_must_lead_into_the_input() {
        let (x, y) = (Array::zeros(DType::F32, &[1, 2]), Array::zeros(DType::F32, &[1, 3]));
        assert!(pad(x.view(), &Source { tables: vec![vec![0, 1, 2]] }, y.view()).is_err());
    }
}
