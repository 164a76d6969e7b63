//! Products of sparse and dense matrices, element by element of the sparse one: a row of the dense matrix is taken, scaled and added
//! at once, or the dot product of two rows.

use super::{Found, at_use, out_of_range};
use crate::cpu::arith::Float;
use crate::cpu::lanes::sums;
use crate::cpu::number_class::Fuse;
use crate::cpu::parallel::{num_threads, par_for};
use crate::cpu::simd::{self, Kernel};
use crate::cpu::view::{View, ensure};
use crate::dtype::DType;
use crate::error::Result;

/// Columns that one task takes at least: a line of the cache of float32.
const COLUMNS: usize = 16;

/// The indices of the elements of a sparse matrix: lists of one length. Each is checked where it is used.
#[derive(Clone, Copy)]
pub struct Pairs<'a> {
    pub row: View<'a>,
    pub column: View<'a>,
}

impl Pairs<'_> {
    fn are_lists(&self) -> bool {
        super::is_list(&self.row) && super::is_list(&self.column) && self.row.numel() == self.column.numel()
    }
    /// Whether a result, its operands and these lists are what the loops take: contiguous, of one of their dtypes, the result apart.
    fn go_with(&self, out: &View, operands: [&View; 2]) -> bool {
        let lists = self.are_lists() && out.is_apart(&self.row) && out.is_apart(&self.column);
        let number = matches!(out.dtype, DType::F32 | DType::F64) && out.is_contiguous();
        lists && number && operands.iter().all(|v| v.dtype == out.dtype && v.is_contiguous() && out.is_apart(v))
    }
    /// Calls `f` with the places of each element in turn that are below `sizes`.
    ///
    /// SAFETY: the lists have elements up to the end of the range.
    #[inline(always)]
    unsafe fn each(
        &self,
        range: std::ops::Range<usize>,
        sizes: [usize; 2],
        found: &Found,
        mut f: impl FnMut(usize, usize, usize),
    ) {
        let (row, column) = (self.row.ptr as *const i64, self.column.ptr as *const i64);
        let steps = [self.row.dim(0).1, self.column.dim(0).1];
        for i in range {
            // SAFETY: the caller's promise.
            let places =
                unsafe { (at_use(row.add(i * steps[0]), sizes[0]), at_use(column.add(i * steps[1]), sizes[1])) };
            match places {
                (Ok(r), Ok(c)) => f(i, r, c),
                (Err(bad), _) | (_, Err(bad)) => found.report(i, bad),
            }
        }
    }
}

/// `out[row[i]] += values[i] * mat[column[i]]` for each `i` in turn. The operands are contiguous, of float32 or float64.
/// A wrong index is an error after which `out` is to be discarded.
pub fn add_scaled_rows(out: View, pairs: Pairs, values: View, mat: View) -> Result<()> {
    let fits = out.ndim() == 2 && mat.ndim() == 2 && out.dim(1).0 == mat.dim(1).0 && values.shape == pairs.row.shape;
    ensure(fits && pairs.go_with(&out, [&mat, &values]), "add_scaled_rows")?;
    // SAFETY: the operands fit together, as was just compared.
    unsafe {
        match out.dtype {
            DType::F64 => add_rows::<f64>(out, pairs, values, mat),
            _ => add_rows::<f32>(out, pairs, values, mat),
        }
    }
    .map_err(out_of_range)
}

/// Tasks take columns, so that each sum has its terms in the order of the elements, however many threads there are.
unsafe fn add_rows<T: Float>(out: View, pairs: Pairs, values: View, mat: View) -> std::result::Result<(), i64> {
    let (count, width) = (values.numel(), mat.dim(1).0);
    let units = width.div_ceil(COLUMNS);
    let found = Found::default();
    let enough = (1 << 15) / (count * COLUMNS).max(1) + 1;
    // No columns, but a wrong index is an error all the same.
    par_for(units.max(1), units.div_ceil(num_threads()).max(enough), |range| {
        let columns = [range.start * COLUMNS, (range.end * COLUMNS).min(width)];
        let sizes = [out.dim(0).0, mat.dim(0).0];
        let [out, values, mat] = [out, values, mat].map(|v| v.ptr as *mut T);
        simd::run(Added { out, pairs, values, mat, count, width, columns, sizes, found: &found });
    });
    found.result()
}

struct Added<'a, T> {
    out: *mut T,
    pairs: Pairs<'a>,
    values: *const T,
    mat: *const T,
    count: usize,
    width: usize,
    /// From where to where.
    columns: [usize; 2],
    /// The rows of the result and of the matrix.
    sizes: [usize; 2],
    found: &'a Found,
}

impl<T: Float> Kernel for Added<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let (start, n) = (self.columns[0], self.columns[1] - self.columns[0]);
        // SAFETY: places are below the numbers of rows, columns within them; no other task has these columns of the result.
        unsafe {
            self.pairs.each(0..self.count, self.sizes, self.found, |i, r, c| {
                let out = std::slice::from_raw_parts_mut(self.out.add(r * self.width + start), n);
                let row = std::slice::from_raw_parts(self.mat.add(c * self.width + start), n);
                let value = *self.values.add(i);
                out.iter_mut().zip(row).for_each(|(o, &x)| *o = o.plus(value.times(x)));
            });
        }
    }
}

/// `out[i]` is the dot product of `a[row[i]]` and `b[column[i]]`. The operands are contiguous, of float32 or float64.
/// A wrong index is an error after which `out` is to be discarded.
pub fn dots_of_rows(out: View, pairs: Pairs, a: View, b: View) -> Result<()> {
    let fits = a.ndim() == 2 && b.ndim() == 2 && a.dim(1).0 == b.dim(1).0 && out.shape == pairs.row.shape;
    ensure(fits && pairs.go_with(&out, [&a, &b]), "dots_of_rows")?;
    // SAFETY: the operands fit together, as was just compared.
    unsafe {
        match out.dtype {
            DType::F64 => dots::<f64>(out, pairs, a, b),
            _ => dots::<f32>(out, pairs, a, b),
        }
    }
    .map_err(out_of_range)
}

unsafe fn dots<T: Float>(out: View, pairs: Pairs, a: View, b: View) -> std::result::Result<(), i64> {
    let width = a.dim(1).0;
    let found = Found::default();
    par_for(out.numel(), (1 << 15) / (width + 8) + 1, |range| {
        let sizes = [a.dim(0).0, b.dim(0).0];
        let (out, [a, b]) = (out.ptr as *mut T, [a, b].map(|v| v.ptr as *const T));
        simd::run(Dots { out, pairs, a, b, range, width, sizes, found: &found });
    });
    found.result()
}

struct Dots<'a, T> {
    out: *mut T,
    pairs: Pairs<'a>,
    a: *const T,
    b: *const T,
    /// The elements of the result.
    range: std::ops::Range<usize>,
    width: usize,
    /// The rows of both matrices.
    sizes: [usize; 2],
    found: &'a Found,
}

impl<T: Float> Kernel for Dots<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        // SAFETY: places are below the numbers of rows; elements of the result are those of this task.
        unsafe {
            self.pairs.each(self.range, self.sizes, self.found, |i, r, c| {
                let a = std::slice::from_raw_parts(self.a.add(r * self.width), self.width);
                let b = std::slice::from_raw_parts(self.b.add(c * self.width), self.width);
                [*self.out.add(i)] = sums([a, b], |[a, b]| [a.times(b)]);
            });
        }
    }
}
