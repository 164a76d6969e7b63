//! A dense row-major matrix, its element types, and products of its blocks.

use super::eigen::Eigen;
use crate::cpu::complex;
use crate::cpu::gemm;
use crate::cpu::strided::{gather, scatter};
use crate::cpu::view::View;
use crate::dtype::{Element, c64, c128};
use crate::error::Result;
use num_complex::ComplexFloat;
use std::ops::{Index, IndexMut, Range};

/// Element types of decompositions: real or complex floats.
pub trait Field: Element + ComplexFloat<Real: Element> {
    /// The type of the same kind in double precision.
    type Double: Double;
    fn double(self) -> Self::Double;
    fn of(real: Self::Real) -> Self;
    /// The quotient, without intermediate overflow for complex numbers too.
    #[inline(always)]
    fn over(self, by: Self) -> Self {
        self / by
    }
}

/// Real element types.
pub trait Real: Field<Real = Self> + PartialOrd {}
impl Real for f32 {}
impl Real for f64 {}

/// Types in which spectra are computed.
pub trait Double:
    Field<Double = Self> + ComplexFloat<Real = f64> + faer::traits::ComplexField<Real = f64> + Eigen
{
}

impl Field for f32 {
    type Double = f64;
    fn double(self) -> f64 {
        self.into()
    }
    fn of(real: f32) -> f32 {
        real
    }
}
impl Field for f64 {
    type Double = f64;
    fn double(self) -> f64 {
        self
    }
    fn of(real: f64) -> f64 {
        real
    }
}
impl Field for c64 {
    type Double = c128;
    fn double(self) -> c128 {
        c128::new(self.re.into(), self.im.into())
    }
    fn of(real: f32) -> c64 {
        real.into()
    }
    fn over(self, by: c64) -> c64 {
        let q = self.double().over(by.double());
        c64::new(q.re as f32, q.im as f32)
    }
}
impl Field for c128 {
    type Double = c128;
    fn double(self) -> c128 {
        self
    }
    fn of(real: f64) -> c128 {
        real.into()
    }
    fn over(self, by: c128) -> c128 {
        complex::divide(self, by)
    }
}
impl Double for f64 {}
impl Double for c128 {}

#[derive(Clone)]
pub struct Mat<T> {
    pub rows: usize,
    pub cols: usize,
    pub data: Vec<T>,
}

impl<T> Index<(usize, usize)> for Mat<T> {
    type Output = T;
    fn index(&self, (i, j): (usize, usize)) -> &T {
        &self.data[i * self.cols + j]
    }
}
impl<T> IndexMut<(usize, usize)> for Mat<T> {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut T {
        &mut self.data[i * self.cols + j]
    }
}

impl<T: Field> Mat<T> {
    pub fn zeros(rows: usize, cols: usize) -> Mat<T> {
        Mat { rows, cols, data: vec![T::default(); rows * cols] }
    }
    pub fn from_fn(rows: usize, cols: usize, f: impl Fn(usize, usize) -> T) -> Mat<T> {
        let mut m = Mat::zeros(rows, cols);
        // A matrix without columns may have any number of rows.
        for i in 0..if cols == 0 { 0 } else { rows } {
            m.row_mut(i).iter_mut().enumerate().for_each(|(j, x)| *x = f(i, j));
        }
        m
    }
    pub fn identity(rows: usize, cols: usize) -> Mat<T> {
        Mat::from_fn(rows, cols, |i, j| if i == j { T::one() } else { T::default() })
    }
    pub fn row(&self, i: usize) -> &[T] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }
    pub fn row_mut(&mut self, i: usize) -> &mut [T] {
        &mut self.data[i * self.cols..(i + 1) * self.cols]
    }
    /// A copy of the block of some rows and columns.
    pub fn block(&self, rows: Range<usize>, cols: Range<usize>) -> Mat<T> {
        let mut block = Mat::zeros(rows.len(), cols.len());
        for (i, row) in rows.enumerate() {
            block.row_mut(i).copy_from_slice(&self.row(row)[cols.clone()]);
        }
        block
    }
    /// The elements of a block, column by column.
    pub fn columns(&self, rows: Range<usize>, cols: Range<usize>) -> Vec<T> {
        assert!(rows.end <= self.rows && cols.end <= self.cols);
        let mut columns = vec![T::default(); rows.len() * cols.len()];
        let dims = [(cols.len(), 1), (rows.len(), self.cols)];
        if !columns.is_empty() {
            let from = &self.data[rows.start * self.cols + cols.start];
            // SAFETY: the block lies in this matrix, and there is room for it.
            unsafe { gather(size_of::<T>(), (from as *const T).cast(), &dims, columns.as_mut_ptr().cast()) };
        }
        columns
    }
    /// Writes a block that begins there, given column by column.
    pub fn put_columns(&mut self, (row, col): (usize, usize), [rows, cols]: [usize; 2], columns: &[T]) {
        assert!(row + rows <= self.rows && col + cols <= self.cols && columns.len() == rows * cols);
        let dims = [(cols, 1), (rows, self.cols)];
        if !columns.is_empty() {
            let to = &mut self.data[row * self.cols + col];
            // SAFETY: the block lies in this matrix.
            unsafe { scatter(size_of::<T>(), columns.as_ptr().cast(), (to as *mut T).cast(), &dims) };
        }
    }
    /// Writes a block that begins there.
    pub fn put(&mut self, (row, col): (usize, usize), block: &Mat<T>) {
        for i in 0..block.rows {
            self.row_mut(row + i)[col..col + block.cols].copy_from_slice(block.row(i));
        }
    }
    /// The conjugate transpose.
    pub fn adjoint(&self) -> Mat<T> {
        let mut turned = Mat { rows: self.cols, cols: self.rows, data: self.columns(0..self.rows, 0..self.cols) };
        turned.data.iter_mut().for_each(|x| *x = x.conj());
        turned
    }
    pub fn map(&self, f: impl Fn(T) -> T) -> Mat<T> {
        Mat { rows: self.rows, cols: self.cols, data: self.data.iter().map(|&x| f(x)).collect() }
    }
    /// The same in double precision.
    pub fn doubled(&self) -> Mat<T::Double> {
        Mat { rows: self.rows, cols: self.cols, data: self.data.iter().map(|&x| x.double()).collect() }
    }
    pub fn is_finite(&self) -> bool {
        self.data.iter().all(|x| x.is_finite())
    }
    /// Row `i` minus `factor` times row `j`, in the columns `cols`.
    #[inline(always)]
    pub fn minus_row(&mut self, i: usize, factor: T, j: usize, cols: Range<usize>) {
        let (low, high) = (i.min(j), i.max(j));
        let (head, tail) = self.data.split_at_mut(high * self.cols);
        let (a, b) = (&mut head[low * self.cols..][cols.clone()], &mut tail[cols]);
        let (to, by) = if i < j { (a, b) } else { (b, a) };
        for (x, &y) in to.iter_mut().zip(by.iter()) {
            *x = *x - factor * y;
        }
    }
    pub fn swap_rows(&mut self, i: usize, j: usize) {
        if i != j {
            let (head, tail) = self.data.split_at_mut(i.max(j) * self.cols);
            head[i.min(j) * self.cols..][..self.cols].swap_with_slice(&mut tail[..self.cols]);
        }
    }
    pub fn product(&self, b: &Mat<T>) -> Result<Mat<T>> {
        let mut out = Mat::zeros(self.rows, b.cols);
        let (m, n, k) = (out.rows, out.cols, self.cols);
        // SAFETY: the blocks are whole matrices of the sizes given.
        unsafe { out.accumulate((0, 0), [m, n, k], 1.0, 0.0, self.at(0, 0), b.at(0, 0))? };
        Ok(out)
    }
    /// Subtracts the product of `a` and `b` from the block of this matrix at `(row, col)`.
    pub fn minus_product(&mut self, at: (usize, usize), a: &Mat<T>, b: &Mat<T>) -> Result<()> {
        self.minus_blocks(at, [a.rows, b.cols, a.cols], (a, 0, 0), (b, 0, 0))
    }
    /// The same with blocks of two other matrices, which begin there and have the sizes [m, k] and [k, n] of `size` [m, n, k].
    pub fn minus_blocks(
        &mut self,
        at: (usize, usize),
        size: [usize; 3],
        a: (&Mat<T>, usize, usize),
        b: (&Mat<T>, usize, usize),
    ) -> Result<()> {
        let [m, n, k] = size;
        let inside =
            |(x, i, j): (&Mat<T>, usize, usize), rows: usize, cols: usize| i + rows <= x.rows && j + cols <= x.cols;
        assert!(inside(a, m, k) && inside(b, k, n), "the blocks lie in their matrices");
        // SAFETY: they do, and are others than this one.
        unsafe { self.accumulate(at, size, -1.0, 1.0, a.0.at(a.1, a.2), b.0.at(b.1, b.2)) }
    }
    /// The same with two factors from this matrix that do not overlap the block.
    pub fn minus_own(
        &mut self,
        at: (usize, usize),
        size: [usize; 3],
        a: (usize, usize),
        b: (usize, usize),
    ) -> Result<()> {
        let (a, b) = (self.at(a.0, a.1), self.at(b.0, b.1));
        // SAFETY: the callers split this matrix into disjoint blocks of these sizes.
        unsafe { self.accumulate(at, size, -1.0, 1.0, a, b) }
    }
    /// Subtracts a block of `a` times a block of this matrix from the block at rows `at`.
    pub fn minus_of(&mut self, at: usize, size: [usize; 3], a: (&Mat<T>, usize, usize), b: usize) -> Result<()> {
        let (factor, own) = (a.0.at(a.1, a.2), self.at(b, 0));
        // SAFETY: the callers pass disjoint rows of this matrix and a block within `a`.
        unsafe { self.accumulate((at, 0), size, -1.0, 1.0, factor, own) }
    }

    fn at(&self, i: usize, j: usize) -> (*mut T, usize) {
        (self.data.as_ptr().wrapping_add(i * self.cols + j).cast_mut(), self.cols)
    }
    /// `block = beta * block + alpha * a @ b` for a block of [m, n] and factors of [m, k] and [k, n].
    ///
    /// # Safety
    /// The factors (addresses and row lengths) must have these sizes and not overlap the block, which lies within self.
    unsafe fn accumulate(
        &mut self,
        (i, j): (usize, usize),
        [m, n, k]: [usize; 3],
        alpha: f64,
        beta: f64,
        a: (*mut T, usize),
        b: (*mut T, usize),
    ) -> Result<()> {
        assert!(i + m <= self.rows && j + n <= self.cols);
        if k == 0 {
            return Ok(());
        }
        let (shapes, steps) = ([[m, k], [k, n], [m, n]], [[a.1, 1], [b.1, 1], [self.cols, 1]]);
        let out = self.data.as_mut_ptr().wrapping_add(i * self.cols + j);
        // SAFETY: the caller vouches for the factors; the block was checked above, and is none of theirs.
        unsafe {
            let view = |p: *mut T, at: usize| View::new(p.cast(), T::DTYPE, &shapes[at], &steps[at]);
            gemm::matmul_blocks(view(a.0, 0), view(b.0, 1), view(out, 2), alpha, beta)
        }
    }
}
