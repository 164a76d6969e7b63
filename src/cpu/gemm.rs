//! Matrix products, batched, over any strides: the one door to the `gemm` crate.
//!
//! Floats and complex numbers go to the crate; half types are widened to f32 as whole operands, integers have a
//! loop of their own. The split over threads is ours, by panels of a size that depends on the shapes alone.

use super::parallel::par_for;
use super::view::{Ptr, View, load, store};
use super::walk::for_lines;
use crate::dtype::{DType, Element, c64, c128};
use crate::error::{Error, Result};
use crate::layout::{Dims, Odometer, coalesce, contiguous_strides};
use ::gemm::Parallelism;

/// Multiplications that are worth a task of their own.
const TASK: usize = 1 << 21;

/// `out = beta * out + alpha * a @ b` for `[.., m, k] x [.., k, n] -> [.., m, n]`; the leading dimensions are equal
/// (broadcast with strides of zero), the dtypes are too. Where `beta` is zero, `out` is not read.
///
/// # Safety
/// All operands must be in bounds; `out` must not overlap the others, nor itself.
pub unsafe fn matmul(a: View, b: View, out: View, alpha: f64, beta: f64) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    // SAFETY: handed on to the caller.
    unsafe {
        match out.dtype {
            DType::F32 => batched(a, b, out, alpha as f32, beta as f32),
            DType::F64 => batched(a, b, out, alpha, beta),
            DType::C64 => batched(a, b, out, c64::new(alpha as f32, 0.0), c64::new(beta as f32, 0.0)),
            DType::C128 => batched(a, b, out, c128::new(alpha, 0.0), c128::new(beta, 0.0)),
            DType::F16 | DType::BF16 => widened(a, b, out, alpha, beta),
            DType::U8 => batched(a, b, out, alpha as i64 as u8, beta as i64 as u8),
            DType::I8 => batched(a, b, out, alpha as i64 as i8, beta as i64 as i8),
            DType::I16 => batched(a, b, out, alpha as i64 as i16, beta as i64 as i16),
            DType::I32 => batched(a, b, out, alpha as i64 as i32, beta as i64 as i32),
            DType::I64 => batched(a, b, out, alpha as i64, beta as i64),
            d => {
                let name = d.scalar_type_name();
                return Err(Error::not_implemented(format!("\"addmm_impl_cpu_\" not implemented for '{name}'")));
            }
        }
    }
    Ok(())
}

/// A matrix: address, row stride, column stride.
#[derive(Clone, Copy)]
struct Matrix<T> {
    ptr: *mut T,
    rows: usize,
    cols: usize,
}
impl<T: Copy> Matrix<T> {
    fn at(self, i: usize, j: usize) -> *mut T {
        self.ptr.wrapping_add(i * self.rows + j * self.cols)
    }
    fn from(self, i: usize, j: usize) -> Matrix<T> {
        Matrix { ptr: self.at(i, j), ..self }
    }
}

/// An element type that has a matrix product.
trait Multiply: Element {
    /// `out = beta * out + alpha * a @ b` on one thread.
    ///
    /// # Safety
    /// The matrices must be in bounds and `out` must not overlap the others.
    unsafe fn product(size: [usize; 3], a: Matrix<Self>, b: Matrix<Self>, out: Matrix<Self>, alpha: Self, beta: Self);
}

/// The types that the `gemm` crate knows.
trait Blas: Element {}
impl Blas for f32 {}
impl Blas for f64 {}
impl Blas for c64 {}
impl Blas for c128 {}

impl<T: Blas> Multiply for T {
    unsafe fn product([m, n, k]: [usize; 3], a: Matrix<T>, b: Matrix<T>, out: Matrix<T>, alpha: T, beta: T) {
        let s = |x: usize| x as isize;
        // SAFETY: the caller vouches for the matrices. The crate's alpha scales the destination.
        unsafe {
            ::gemm::gemm(
                m,
                n,
                k,
                out.ptr,
                s(out.cols),
                s(out.rows),
                beta != T::default(),
                a.ptr,
                s(a.cols),
                s(a.rows),
                b.ptr,
                s(b.cols),
                s(b.rows),
                beta,
                alpha,
                false,
                false,
                false,
                Parallelism::None,
            );
        }
    }
}

/// Integers that wrap around.
trait Wrap: Element {
    fn fma(self, a: Self, b: Self) -> Self;
}
impl Wrap for u8 {
    #[inline(always)]
    fn fma(self, a: u8, b: u8) -> u8 {
        self.wrapping_add(a.wrapping_mul(b))
    }
}
impl Wrap for i8 {
    #[inline(always)]
    fn fma(self, a: i8, b: i8) -> i8 {
        self.wrapping_add(a.wrapping_mul(b))
    }
}
impl Wrap for i16 {
    #[inline(always)]
    fn fma(self, a: i16, b: i16) -> i16 {
        self.wrapping_add(a.wrapping_mul(b))
    }
}
impl Wrap for i32 {
    #[inline(always)]
    fn fma(self, a: i32, b: i32) -> i32 {
        self.wrapping_add(a.wrapping_mul(b))
    }
}
impl Wrap for i64 {
    #[inline(always)]
    fn fma(self, a: i64, b: i64) -> i64 {
        self.wrapping_add(a.wrapping_mul(b))
    }
}
impl Multiply for u8 {
    unsafe fn product(size: [usize; 3], a: Matrix<u8>, b: Matrix<u8>, out: Matrix<u8>, alpha: u8, beta: u8) {
        // SAFETY: handed on to the caller.
        unsafe { integers(size, a, b, out, alpha, beta) }
    }
}
impl Multiply for i8 {
    unsafe fn product(size: [usize; 3], a: Matrix<i8>, b: Matrix<i8>, out: Matrix<i8>, alpha: i8, beta: i8) {
        // SAFETY: handed on to the caller.
        unsafe { integers(size, a, b, out, alpha, beta) }
    }
}
impl Multiply for i16 {
    unsafe fn product(size: [usize; 3], a: Matrix<i16>, b: Matrix<i16>, out: Matrix<i16>, alpha: i16, beta: i16) {
        // SAFETY: handed on to the caller.
        unsafe { integers(size, a, b, out, alpha, beta) }
    }
}
impl Multiply for i32 {
    unsafe fn product(size: [usize; 3], a: Matrix<i32>, b: Matrix<i32>, out: Matrix<i32>, alpha: i32, beta: i32) {
        // SAFETY: handed on to the caller.
        unsafe { integers(size, a, b, out, alpha, beta) }
    }
}
impl Multiply for i64 {
    unsafe fn product(size: [usize; 3], a: Matrix<i64>, b: Matrix<i64>, out: Matrix<i64>, alpha: i64, beta: i64) {
        // SAFETY: handed on to the caller.
        unsafe { integers(size, a, b, out, alpha, beta) }
    }
}

/// Rows and columns of the integer loop's tile; its accumulators stay in L1.
const ROWS: usize = 4;
const COLS: usize = 256;

unsafe fn integers<T: Wrap>([m, n, k]: [usize; 3], a: Matrix<T>, b: Matrix<T>, out: Matrix<T>, alpha: T, beta: T) {
    let mut packed = vec![T::default(); k * COLS.min(n)];
    for j0 in (0..n).step_by(COLS) {
        let w = COLS.min(n - j0);
        // SAFETY: all indices are inside the matrices, which the caller vouches for.
        unsafe {
            for p in 0..k {
                for j in 0..w {
                    packed[p * w + j] = *b.at(p, j0 + j);
                }
            }
            for i0 in (0..m).step_by(ROWS) {
                let h = ROWS.min(m - i0);
                let mut acc = [[T::default(); COLS]; ROWS];
                for p in 0..k {
                    let row = &packed[p * w..(p + 1) * w];
                    for (i, acc) in acc[..h].iter_mut().enumerate() {
                        let x = *a.at(i0 + i, p);
                        acc.iter_mut().zip(row).for_each(|(s, &y)| *s = s.fma(x, y));
                    }
                }
                for (i, acc) in acc[..h].iter().enumerate() {
                    for (j, &s) in acc[..w].iter().enumerate() {
                        let y = out.at(i0 + i, j0 + j);
                        let old = if beta == T::default() { beta } else { *y };
                        *y = T::default().fma(beta, old).fma(alpha, s);
                    }
                }
            }
        }
    }
}

/// Splits a batch of products into tasks.
unsafe fn batched<T: Multiply>(a: View, b: View, out: View, alpha: T, beta: T) {
    let lead = out.ndim() - 2;
    let (mut m, n, k) = (out.shape[lead], out.shape[lead + 1], a.shape[lead + 1]);
    let matrix = |v: &View| Matrix { ptr: v.ptr as *mut T, rows: v.strides[lead], cols: v.strides[lead + 1] };
    let (a_matrix, b_matrix, out_matrix) = (matrix(&a), matrix(&b), matrix(&out));
    let (mut shape, [mut sa, mut sb, mut so]) =
        coalesce(&out.shape[..lead], [&a.strides[..lead], &b.strides[..lead], &out.strides[..lead]]);
    // A batch whose second factor is shared is one product with more rows.
    if let Some(&count) = shape.last() {
        let stacked = |s: &Dims, x: &Matrix<T>| s.last() == Some(&(m * x.rows));
        if sb.last() == Some(&0) && stacked(&sa, &a_matrix) && stacked(&so, &out_matrix) {
            m *= count;
            for v in [&mut shape, &mut sa, &mut sb, &mut so] {
                v.pop();
            }
        }
    }
    let batch: usize = shape.iter().product();
    let work = m * n * k.max(1);
    // Panels are cut from the longer side, in multiples of 64 so that the kernels' tiles stay whole.
    let side = m.max(n);
    let pieces = (work / TASK).clamp(1, side.div_ceil(64));
    let panel = side.div_ceil(pieces).next_multiple_of(64).min(side);
    let panels = side.div_ceil(panel);
    let share = (Ptr(a_matrix.ptr), Ptr(b_matrix.ptr), Ptr(out_matrix.ptr));
    par_for(batch * panels, (TASK * panels / work.max(1)).max(1), |range| {
        let mut at = Odometer::new(&shape, [&sa, &sb, &so], range.start / panels);
        for unit in range {
            let start = unit % panels * panel;
            let size = panel.min(side - start);
            let [oa, ob, oo] = at.offsets;
            let a = Matrix { ptr: share.0.at(oa), ..a_matrix };
            let b = Matrix { ptr: share.1.at(ob), ..b_matrix };
            let out = Matrix { ptr: share.2.at(oo), ..out_matrix };
            // SAFETY: the panel lies inside the matrices, and panels do not overlap.
            unsafe {
                if m >= n {
                    T::product([size, n, k], a.from(start, 0), b, out.from(start, 0), alpha, beta);
                } else {
                    T::product([m, size, k], a, b.from(0, start), out.from(0, start), alpha, beta);
                }
            }
            if start + size == side {
                at.step();
            }
        }
    });
}

/// A half-precision operand as f32: the dimensions that are broadcast are kept once.
struct Wide {
    data: Vec<f32>,
    strides: Dims,
}
impl Wide {
    unsafe fn new(v: View, read: bool) -> Wide {
        let compact: Dims = v.shape.iter().zip(v.strides).map(|(&n, &s)| if s == 0 { 1 } else { n }).collect();
        let mut strides = contiguous_strides(&compact);
        let mut data = vec![0f32; compact.iter().product()];
        if read {
            let slots = Ptr(data.as_mut_ptr());
            for_lines(&compact, [v.strides, &strides], |[i, o], n, [di, _]| {
                // SAFETY: the run lies inside the operand and the copy; a contiguous copy has runs of step one.
                unsafe { load(v.dtype, v.at(i), di, n, slots.at(o)) }
            });
        }
        strides.iter_mut().zip(&compact).zip(v.shape).for_each(|((s, &c), &n)| *s = if c == n { *s } else { 0 });
        Wide { data, strides }
    }
    fn view<'a>(&'a self, v: &View<'a>) -> View<'a> {
        View { ptr: self.data.as_ptr() as *mut u8, dtype: DType::F32, shape: v.shape, strides: &self.strides }
    }
}

unsafe fn widened(a: View, b: View, out: View, alpha: f64, beta: f64) {
    // SAFETY: handed on to the caller.
    unsafe {
        let (wide_a, wide_b, wide_out) = (Wide::new(a, true), Wide::new(b, true), Wide::new(out, beta != 0.0));
        batched(wide_a.view(&a), wide_b.view(&b), wide_out.view(&out), alpha as f32, beta as f32);
        let result = wide_out.view(&out);
        for_lines(out.shape, [result.strides, out.strides], |[r, o], n, [_, d_out]| {
            store(out.dtype, out.at(o), d_out, n, result.at(r) as *const f32);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, Rng, close};

    fn check(rng: &mut Rng, dtype: DType, batch: &[usize], [m, n, k]: [usize; 3], tolerance: f64) {
        let with = |r: usize, c: usize| [batch, &[r, c]].concat();
        let (a, mut b) = (Array::random(rng, dtype, &with(m, k)), Array::random(rng, dtype, &with(k, n)));
        let out = Array::random(rng, dtype, &with(m, n));
        if rng.below(3) == 0 {
            b.strides[..batch.len()].fill(0);
        }
        let beta = rng.below(2) as f64;
        let (x, y, mut want) = (a.values(), b.values(), out.values());
        for (at, w) in want.iter_mut().enumerate() {
            let (p, i, j) = (at / (m * n), at / n % m, at % n);
            *w = *w * beta + (0..k).map(|q| x[(p * m + i) * k + q] * y[(p * k + q) * n + j]).sum::<c128>() * 2.0;
        }
        // SAFETY: the arrays own their layouts.
        unsafe { matmul(a.view(), b.view(), out.view(), 2.0, beta).unwrap() };
        if dtype.is_int() {
            let narrow = Array::zeros(dtype, &with(m, n));
            narrow.fill(&want);
            want = narrow.values();
        }
        let got = out.values();
        close(&got.iter().map(|v| v.re).collect::<Vec<_>>(), &want.iter().map(|v| v.re).collect::<Vec<_>>(), tolerance);
        close(&got.iter().map(|v| v.im).collect::<Vec<_>>(), &want.iter().map(|v| v.im).collect::<Vec<_>>(), tolerance);
    }

    #[test]
    fn agrees_with_plain_loops() {
        use DType::*;
        let mut rng = Rng(31);
        for round in 0..40 {
            let size = [1 + rng.below(20), 1 + rng.below(20), rng.below(20)];
            let batch = &[2, 3][..round % 3];
            for (dtype, tolerance) in [(F32, 1e-4), (F64, 1e-12), (C64, 1e-4), (C128, 1e-12), (F16, 1e-2), (BF16, 5e-2)]
            {
                check(&mut rng, dtype, batch, size, tolerance);
            }
            for dtype in [U8, I8, I16, I32, I64] {
                check(&mut rng, dtype, batch, size, 0.0);
            }
        }
        check(&mut rng, F32, &[], [300, 170, 130], 1e-3);
        check(&mut rng, F32, &[2], [70, 600, 150], 1e-3);
        check(&mut rng, I32, &[], [70, 600, 50], 0.0);
    }

    #[test]
    fn an_unread_result_may_hold_anything() {
        let a = Array::of(DType::F32, &[2, 0], &[]);
        let b = Array::of(DType::F32, &[0, 3], &[]);
        let out = Array::of(DType::F32, &[2, 3], &[f64::NAN; 6]);
        // SAFETY: the arrays own their layouts.
        unsafe { matmul(a.view(), b.view(), out.view(), 1.0, 0.0).unwrap() };
        assert_eq!(out.reals(), [0.0; 6]);
    }
}
