//! Matrix products, batched, over any strides; the only user of the `gemm` crate.
//!
//! Floats and complex numbers use the crate, real ones by a transposed matrix `rows.rs` or `dots.rs`, large ones on AVX2
//! `blocked.rs`; operands of half types are converted to f32 as a whole; integers have their own loop. The split over
//! threads is ours.

#[cfg(target_arch = "x86_64")]
mod blocked;
#[cfg(target_arch = "x86_64")]
mod dots;
#[cfg(target_arch = "x86_64")]
mod rows;
pub mod tiles;

use super::epilogue::Epilogue;
use super::lines::for_lines;
use super::number_class::Fuse;
use super::parallel::{num_threads, try_par_for};
use super::scratch::Temp;
use super::simd::{self, Kernel};
use super::view::{SendPtr, View, ensure, load, store};
use crate::dtype::{DType, Element, Scalar, c64, c128};
use crate::error::{Error, Result};
use crate::layout::{Dims, Odometer, coalesce, contiguous_strides};
use crate::rt::reserve::filled;
use ::gemm::Parallelism;

/// Minimum multiplications per task.
const TASK: usize = 1 << 20;
/// Minimum side of a panel; larger if `k > LONG`, where the crate splits the inner dimension.
const SMALLEST: usize = 64;
const SMALLEST_LONG: usize = 128;
/// Up to this inner dimension the crate sums in one block, for any other sides.
const LONG: usize = 512;
/// Panels start at multiples of this.
const UNIT: usize = 32;

/// `out = beta * out + alpha * a @ b` for `[.., m, k] x [.., k, n] -> [.., m, n]`; the leading dimensions are equal
/// (broadcast with strides of zero), the dtypes are too. Where `beta` is zero, `out` is not read.
pub fn matmul(a: View, b: View, out: View, alpha: f64, beta: f64) -> Result<()> {
    ensure(fit(&a, &b, &out) && out.is_apart(&a) && out.is_apart(&b), "matmul")?;
    // SAFETY: the operands fit together, and the result lies apart from the others.
    unsafe { product(a, b, out, [alpha, beta], None) }
}

/// `matmul` into a row-major `out`, with an epilogue for the rows that are done.
pub fn matmul_then(a: View, b: View, out: View, alpha: f64, beta: f64, then: &Epilogue) -> Result<()> {
    let fits = fit(&a, &b, &out) && out.is_contiguous();
    ensure(fits && out.is_apart(&a) && out.is_apart(&b), "matmul")?;
    // SAFETY: as in `matmul`.
    unsafe { product(a, b, out, [alpha, beta], Some(then)) }
}

/// `matmul` of blocks that may lie within one matrix.
///
/// # Safety
/// Shapes and dtypes are as `matmul` has them, and no element of `out` is one of the others.
pub(super) unsafe fn matmul_blocks(a: View, b: View, out: View, alpha: f64, beta: f64) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { product(a, b, out, [alpha, beta], None) }
}

/// SAFETY: as `matmul_blocks`; with an epilogue, `out` is row-major.
unsafe fn product(a: View, b: View, out: View, [alpha, beta]: [f64; 2], then: Option<&Epilogue>) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let (real, integers) = ([alpha as f32, beta as f32], [alpha as i64, beta as i64]);
    // SAFETY: the caller's promise.
    unsafe {
        match out.dtype {
            DType::F32 => batched(a, b, out, real, then)?,
            DType::F64 => batched(a, b, out, [alpha, beta], then)?,
            DType::C64 => batched(a, b, out, real.map(|x| c64::new(x, 0.0)), then)?,
            DType::C128 => batched(a, b, out, [alpha, beta].map(|x| c128::new(x, 0.0)), then)?,
            DType::F16 | DType::BF16 => widened(a, b, out, real)?,
            DType::U8 => batched(a, b, out, integers.map(|x| x as u8), then)?,
            DType::I8 => batched(a, b, out, integers.map(|x| x as i8), then)?,
            DType::I16 => batched(a, b, out, integers.map(|x| x as i16), then)?,
            DType::I32 => batched(a, b, out, integers.map(|x| x as i32), then)?,
            DType::I64 => batched(a, b, out, integers, then)?,
            d => {
                let name = d.scalar_type_name();
                return Err(Error::not_implemented(format!("\"addmm_impl_cpu_\" not implemented for '{name}'")));
            }
        }
    }
    Ok(())
}

fn fit(a: &View, b: &View, out: &View) -> bool {
    let Some(lead) = out.ndim().checked_sub(2) else { return false };
    let (rows, cols) = (out.shape[lead], out.shape[lead + 1]);
    (a.ndim(), b.ndim()) == (out.ndim(), out.ndim())
        && a.shape[..=lead] == out.shape[..=lead]
        && b.shape[..lead] == out.shape[..lead]
        && (rows, a.shape[lead + 1], cols) == (a.shape[lead], b.shape[lead], b.shape[lead + 1])
        && (a.dtype, b.dtype) == (out.dtype, out.dtype)
}

/// A matrix: address, row stride, column stride.
#[derive(Clone, Copy)]
pub struct Matrix<T> {
    pub ptr: *mut T,
    pub rows: usize,
    pub cols: usize,
}
impl<T: Copy> Matrix<T> {
    #[inline(always)]
    pub fn at(self, i: usize, j: usize) -> *mut T {
        self.ptr.wrapping_add(i * self.rows + j * self.cols)
    }
    #[inline(always)]
    pub fn from(self, i: usize, j: usize) -> Matrix<T> {
        Matrix { ptr: self.at(i, j), ..self }
    }
    fn t(self) -> Matrix<T> {
        Matrix { rows: self.cols, cols: self.rows, ..self }
    }
}

/// `out = beta * out + alpha * a @ b` of a size `[m, n, k]` on one thread.
///
/// # Safety
/// The matrices must be in bounds and `out` must not overlap the others.
type Product<T> = unsafe fn([usize; 3], Matrix<T>, Matrix<T>, Matrix<T>, T, T) -> Result<()>;

/// An element type that has a matrix product.
trait Multiply: Element {
    /// The function for products of this size `[m, n, k]`, or for panels of them; `a` and `b` have these strides.
    fn product(size: [usize; 3], a: [usize; 2], b: [usize; 2]) -> Product<Self>;
}

/// The types that the `gemm` crate supports.
trait Blas: Element {
    /// A faster function for products of this size.
    fn faster(_size: [usize; 3], _a: [usize; 2], _b: [usize; 2]) -> Option<Product<Self>> {
        None
    }
}
#[cfg(target_arch = "x86_64")]
impl<T: blocked::Lanes + tiles::Vectors> Blas for T {
    fn faster(size: [usize; 3], a: [usize; 2], b: [usize; 2]) -> Option<Product<T>> {
        rows::product(size, a, b).or_else(|| blocked::product(size))
    }
}
#[cfg(not(target_arch = "x86_64"))]
impl Blas for f32 {}
#[cfg(not(target_arch = "x86_64"))]
impl Blas for f64 {}
impl Blas for c64 {}
impl Blas for c128 {}

impl<T: Blas> Multiply for T {
    fn product(size: [usize; 3], a: [usize; 2], b: [usize; 2]) -> Product<T> {
        T::faster(size, a, b).unwrap_or(library)
    }
}

/// A product by the `gemm` crate.
unsafe fn library<T: Blas>(
    [m, n, k]: [usize; 3],
    a: Matrix<T>,
    b: Matrix<T>,
    out: Matrix<T>,
    alpha: T,
    beta: T,
) -> Result<()> {
    let s = |x: usize| x as isize;
    // The crate's loops for two terms and for vectors start from the first product, where negative zeros have a sum of
    // their own sign; from zero on, as PyTorch's does, it is positive.
    let from_zero = beta == T::default() && k > 1 && (k == 2 || m == 1 || n == 1);
    let beta = if from_zero { T::from_scalar(Scalar::Int(1)) } else { beta };
    // SAFETY: the caller's promise. The crate's alpha scales the destination.
    unsafe {
        if from_zero {
            clear(out, [m, n]);
        }
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
    Ok(())
}

/// Zeros in a matrix of floats, row by row or column by column as it lies.
///
/// SAFETY: the matrix must be in bounds.
unsafe fn clear<T: Blas>(out: Matrix<T>, [m, n]: [usize; 2]) {
    let (out, m, n) = if out.cols == 1 { (out, m, n) } else { (out.t(), n, m) };
    for i in 0..m {
        // SAFETY: the caller's promise.
        unsafe {
            match out.cols {
                1 => out.at(i, 0).write_bytes(0, n), // zero bits are 0.0
                _ => (0..n).for_each(|j| *out.at(i, j) = T::default()),
            }
        }
    }
}

/// Wrapping integers.
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
    fn product(_size: [usize; 3], _a: [usize; 2], _b: [usize; 2]) -> Product<u8> {
        integers::<u8, 64>
    }
}
impl Multiply for i8 {
    fn product(_size: [usize; 3], _a: [usize; 2], _b: [usize; 2]) -> Product<i8> {
        integers::<i8, 64>
    }
}
impl Multiply for i16 {
    fn product(_size: [usize; 3], _a: [usize; 2], _b: [usize; 2]) -> Product<i16> {
        integers::<i16, 32>
    }
}
impl Multiply for i32 {
    fn product(_size: [usize; 3], _a: [usize; 2], _b: [usize; 2]) -> Product<i32> {
        integers::<i32, 16>
    }
}
impl Multiply for i64 {
    fn product(_size: [usize; 3], _a: [usize; 2], _b: [usize; 2]) -> Product<i64> {
        integers::<i64, 8>
    }
}

/// Tiles of `W` columns are two AVX2 registers wide, so that four rows of accumulators stay in registers.
unsafe fn integers<T: Wrap, const W: usize>(
    size: [usize; 3],
    a: Matrix<T>,
    b: Matrix<T>,
    out: Matrix<T>,
    alpha: T,
    beta: T,
) -> Result<()> {
    simd::run(Integers::<T, W> { size, a, b, out, alpha, beta, packed: filled([T::default(); W], size[2])? });
    Ok(())
}

/// Rows of the integer loop's tile.
const ROWS: usize = 4;

/// The integer loop, for tiles of `W` columns.
struct Integers<T, const W: usize> {
    size: [usize; 3],
    a: Matrix<T>,
    b: Matrix<T>,
    out: Matrix<T>,
    alpha: T,
    beta: T,
    /// `W` packed columns of `b`.
    packed: Vec<[T; W]>,
}
impl<T: Wrap, const W: usize> Kernel for Integers<T, W> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(mut self) {
        let [m, n, _] = self.size;
        let mut packed = std::mem::take(&mut self.packed);
        for j0 in (0..n).step_by(W) {
            let w = W.min(n - j0);
            for (p, row) in packed.iter_mut().enumerate() {
                // SAFETY: all indices are inside the matrices, by the caller's promise.
                (0..w).for_each(|j| row[j] = unsafe { *self.b.at(p, j0 + j) });
            }
            let mut i0 = 0;
            while i0 + ROWS <= m {
                self.tile::<ROWS>(&packed, i0, j0, w);
                i0 += ROWS;
            }
            (i0..m).for_each(|i| self.tile::<1>(&packed, i, j0, w));
        }
    }
}
impl<T: Wrap, const W: usize> Integers<T, W> {
    #[inline(always)]
    fn tile<const H: usize>(&self, packed: &[[T; W]], i0: usize, j0: usize, w: usize) {
        let mut acc = [[T::default(); W]; H];
        for (p, row) in packed.iter().enumerate() {
            for (i, acc) in acc.iter_mut().enumerate() {
                // SAFETY: as in `run`.
                let x = unsafe { *self.a.at(i0 + i, p) };
                (0..W).for_each(|j| acc[j] = acc[j].fma(x, row[j]));
            }
        }
        for (i, acc) in acc.iter().enumerate() {
            for (j, &s) in acc[..w].iter().enumerate() {
                // SAFETY: as in `run`.
                unsafe {
                    let y = self.out.at(i0 + i, j0 + j);
                    let old = if self.beta == T::default() { self.beta } else { *y };
                    *y = T::default().fma(self.beta, old).fma(self.alpha, s);
                }
            }
        }
    }
}

/// Splits a batch of products into tasks.
unsafe fn batched<T: Multiply>(
    a: View,
    b: View,
    out: View,
    [alpha, beta]: [T; 2],
    then: Option<&Epilogue>,
) -> Result<()> {
    let lead = out.ndim() - 2;
    let (mut m, n, k) = (out.shape[lead], out.shape[lead + 1], a.shape[lead + 1]);
    let matrix = |v: &View| Matrix { ptr: v.ptr as *mut T, rows: v.strides[lead], cols: v.strides[lead + 1] };
    let (a_matrix, b_matrix, out_matrix) = (matrix(&a), matrix(&b), matrix(&out));
    let (mut shape, [mut sa, mut sb, mut so]) =
        coalesce(&out.shape[..lead], [&a.strides[..lead], &b.strides[..lead], &out.strides[..lead]]);
    // A batch that shares its second factor is one product with more rows.
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
    // One panel per thread, along the longer side. The summation order of an element does not depend on its panel as
    // long as panels are too large for the crate's special cases, so results are bitwise equal for any number of panels
    // (`the_bits_do_not_depend_on_the_panels`).
    let side = m.max(n);
    let smallest = if k <= LONG { SMALLEST } else { SMALLEST_LONG };
    let most = if batch >= num_threads() { 1 } else { num_threads().min(side / smallest) };
    let panels = (work / TASK).clamp(1, most.max(1));
    // The last panel also takes the remainder: it is no smaller than the others.
    let edge = |i: usize| if i == panels { side } else { side / UNIT * i / panels * UNIT };
    let share = (SendPtr(a_matrix.ptr), SendPtr(b_matrix.ptr), SendPtr(out_matrix.ptr));
    let strides = |x: &Matrix<T>| [x.rows, x.cols];
    let product = T::product([m, n, k], strides(&a_matrix), strides(&b_matrix));
    // Panels of columns are no runs of a row-major result.
    let then = then.filter(|t| t.takes_blocks() && (m >= n || panels == 1));
    try_par_for(batch * panels, (TASK * panels / work.max(1)).max(1), |range| {
        let mut at = Odometer::new(&shape, [&sa, &sb, &so], range.start / panels);
        for unit in range {
            let (start, end) = (edge(unit % panels), edge(unit % panels + 1));
            let size = end - start;
            let [oa, ob, oo] = at.offsets;
            let a = Matrix { ptr: share.0.at(oa), ..a_matrix };
            let b = Matrix { ptr: share.1.at(ob), ..b_matrix };
            let out = Matrix { ptr: share.2.at(oo), ..out_matrix };
            // SAFETY: the panel lies inside the matrices, and panels do not overlap.
            unsafe {
                if m >= n {
                    product([size, n, k], a.from(start, 0), b, out.from(start, 0), alpha, beta)?;
                } else {
                    product([m, size, k], a, b.from(0, start), out.from(0, start), alpha, beta)?;
                }
            }
            if let Some(then) = then {
                let rows = if m >= n { start..end } else { 0..m };
                then.finished(oo + rows.start * n..oo + rows.end * n);
            }
            if end == side {
                at.step();
            }
        }
        Ok(())
    })
}

/// A half-precision operand as f32; broadcast dimensions are stored once.
struct Wide {
    data: Temp<f32>,
    strides: Dims,
}
impl Wide {
    unsafe fn new(v: View, read: bool) -> Result<Wide> {
        let compact: Dims = v.shape.iter().zip(v.strides).map(|(&n, &s)| if s == 0 { 1 } else { n }).collect();
        let mut strides = contiguous_strides(&compact);
        let data: Temp<f32> = Temp::new(compact.iter().product())?;
        if read {
            let slots = SendPtr(data.ptr());
            for_lines(&compact, [v.strides, &strides], |[i, o], n, [di, _]| {
                // SAFETY: the run lies inside the operand and the copy; a contiguous copy has runs of step one.
                unsafe { load(v.dtype, v.at(i), di, n, slots.at(o)) }
            });
        }
        strides.iter_mut().zip(&compact).zip(v.shape).for_each(|((s, &c), &n)| *s = if c == n { *s } else { 0 });
        Ok(Wide { data, strides })
    }
    fn view<'a>(&'a self, v: &View<'a>) -> View<'a> {
        // SAFETY: the copy has room for the shape in this order of its dimensions.
        unsafe { View::new(self.data.ptr() as *mut u8, DType::F32, v.shape, &self.strides) }
    }
}

unsafe fn widened(a: View, b: View, out: View, factors: [f32; 2]) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        let (wide_a, wide_b, wide_out) = (Wide::new(a, true)?, Wide::new(b, true)?, Wide::new(out, factors[1] != 0.0)?);
        batched(wide_a.view(&a), wide_b.view(&b), wide_out.view(&out), factors, None)?;
        let result = wide_out.view(&out);
        for_lines(out.shape, [result.strides, out.strides], |[r, o], n, [_, d_out]| {
            store(out.dtype, out.at(o), d_out, n, result.at(r) as *const f32);
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
