//! Matrix products, batched, over any strides.
//!
//! Real floats have their own product (`product.rs`), and operands of half types are converted to f32 as a whole; complex
//! numbers use the `gemm` crate (`complex.rs`), integers a plain loop. The split over threads is the same for all.

mod bytes;
mod complex;
mod dots;
mod integers;
mod pairs;
mod product;
pub mod tiles;
mod tiny;
mod unit;

pub use self::bytes::{byte_conv2d, byte_matmul};
use self::complex::Library;
use self::integers::Wrapped;
use self::product::Plan;
use super::epilogue::Epilogue;
use super::lines::for_lines;
use super::parallel::{num_threads, try_par_for};
use super::scratch::Temp;
use super::view::{SendPtr, View, ensure, load, store};
use crate::dtype::{DType, Element, c64, c128};
use crate::error::{Error, Result};
use crate::layout::{Dims, Odometer, coalesce, contiguous_strides};

/// Minimum multiplications per task, what a product costs beside its own, in multiplications, and what an element costs that is read.
const TASK: usize = 1 << 20;
const BESIDE: usize = 100;
const READ: usize = 4;
/// Parts of a product start at multiples of this.
const UNIT: usize = 32;

/// `out = beta * out + alpha * a @ b` for `[.., m, k] x [.., k, n] -> [.., m, n]`; the leading dimensions are equal
/// (broadcast with strides of zero), the dtypes are too. Where `beta` is zero, `out` is not read.
pub fn matmul(a: View, b: View, out: View, alpha: f64, beta: f64) -> Result<()> {
    ensure(fit(&a, &b, &out) && out.is_apart(&a) && out.is_apart(&b), "matmul")?;
    // SAFETY: the operands fit together, and the result lies apart from the others.
    unsafe { product(a, b, out, out, [alpha, beta], None) }
}

/// `matmul` into a row-major `out`, with an epilogue for the rows that are done.
pub fn matmul_then(a: View, b: View, out: View, alpha: f64, beta: f64, then: &Epilogue) -> Result<()> {
    let fits = fit(&a, &b, &out) && out.is_contiguous();
    ensure(fits && out.is_apart(&a) && out.is_apart(&b), "matmul")?;
    // SAFETY: as in `matmul`.
    unsafe { product(a, b, out, out, [alpha, beta], Some(then)) }
}

/// Whether `matmul_onto` takes these: other results are added to in place.
pub fn adds(old: &View, out: &View) -> bool {
    let last = out.ndim() - 1;
    matches!(out.dtype, DType::F32 | DType::F64)
        && old.dtype == out.dtype
        && old.shape == out.shape
        && [old.strides[last], out.strides[last]] == [1, 1]
        && out.strides[last - 1] != 1
        && out.is_apart(old)
}

/// `out = beta * old + alpha * a @ b`, for an `old` that `adds` accepts; with an epilogue, `out` is row-major.
pub fn matmul_onto([a, b, old, out]: [View; 4], [alpha, beta]: [f64; 2], then: Option<&Epilogue>) -> Result<()> {
    let fits = fit(&a, &b, &out) && adds(&old, &out) && (then.is_none() || out.is_contiguous());
    ensure(fits && out.is_apart(&a) && out.is_apart(&b), "matmul")?;
    // SAFETY: as in `matmul`.
    unsafe { product(a, b, old, out, [alpha, beta], then) }
}

/// `matmul` of blocks that may lie within one matrix.
///
/// # Safety
/// Shapes and dtypes are as `matmul` has them, and no element of `out` is one of the others.
pub(super) unsafe fn matmul_blocks(a: View, b: View, out: View, alpha: f64, beta: f64) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { product(a, b, out, out, [alpha, beta], None) }
}

/// SAFETY: as `matmul_blocks`; with an epilogue, `out` is row-major. `old` is `out`, or `adds` accepts it.
unsafe fn product(
    a: View,
    b: View,
    old: View,
    out: View,
    [alpha, beta]: [f64; 2],
    then: Option<&Epilogue>,
) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let (real, integers) = ([alpha as f32, beta as f32], [alpha as i64, beta as i64]);
    // SAFETY: the caller's promise.
    unsafe {
        match out.dtype {
            DType::F32 => batched::<_, Plan>(a, b, old, out, real, then)?,
            DType::F64 => batched::<_, Plan>(a, b, old, out, [alpha, beta], then)?,
            DType::C64 => batched::<_, Library>(a, b, old, out, real.map(|x| c64::new(x, 0.0)), then)?,
            DType::C128 => batched::<_, Library>(a, b, old, out, [alpha, beta].map(|x| c128::new(x, 0.0)), then)?,
            d if d.is_narrow_float() => widened(a, b, out, real)?,
            DType::U8 => batched::<_, Wrapped<64>>(a, b, old, out, integers.map(|x| x as u8), then)?,
            DType::I8 => batched::<_, Wrapped<64>>(a, b, old, out, integers.map(|x| x as i8), then)?,
            DType::I16 => batched::<_, Wrapped<32>>(a, b, old, out, integers.map(|x| x as i16), then)?,
            DType::I32 => batched::<_, Wrapped<16>>(a, b, old, out, integers.map(|x| x as i32), then)?,
            DType::I64 => batched::<_, Wrapped<8>>(a, b, old, out, integers, then)?,
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

/// A matrix: address, row stride, column stride; a stride backwards wraps.
#[derive(Clone, Copy)]
pub struct Matrix<T> {
    pub ptr: *mut T,
    pub rows: usize,
    pub cols: usize,
}
impl<T: Copy> Matrix<T> {
    #[inline(always)]
    pub fn at(self, i: usize, j: usize) -> *mut T {
        self.ptr.wrapping_add(i.wrapping_mul(self.rows).wrapping_add(j.wrapping_mul(self.cols)))
    }
    #[inline(always)]
    pub fn from(self, i: usize, j: usize) -> Matrix<T> {
        Matrix { ptr: self.at(i, j), ..self }
    }
    #[inline(always)]
    pub fn t(self) -> Matrix<T> {
        Matrix { rows: self.cols, cols: self.rows, ..self }
    }
}

/// Products one after another.
#[derive(Clone, Copy)]
struct Series<T> {
    /// `a`, `b`, `old` and `out` of the first.
    first: [Matrix<T>; 4],
    /// How far they lie apart in one product and in the next.
    steps: [usize; 4],
    count: usize,
}
impl<T: Copy> Series<T> {
    /// The matrices of each product.
    #[inline(always)]
    fn each(self) -> impl Iterator<Item = [Matrix<T>; 4]> {
        (0..self.count).map(move |i| {
            std::array::from_fn(|k| {
                let first = self.first[k];
                Matrix { ptr: first.ptr.wrapping_add(i.wrapping_mul(self.steps[k])), ..first }
            })
        })
    }
    /// The same products as those of the transposed matrices.
    fn t(self) -> Series<T> {
        let flipped = [1, 0, 2, 3];
        Series { first: flipped.map(|k| self.first[k].t()), steps: flipped.map(|k| self.steps[k]), ..self }
    }
}

/// A way to compute products of this type of element: what is decided once for a product and holds for all parts of it, so that
/// their bits are those of the whole.
trait Multiply<T: Element>: Sync + Sized {
    /// For a product of this size `[m, n, k]`, with the strides of `a`, `b` and `out`.
    fn plan(size: [usize; 3], strides: [[usize; 2]; 3]) -> Self;
    /// Rows and columns of the smallest parts that are worth a task.
    fn smallest(&self) -> [usize; 2];
    /// `out = beta * old + alpha * a @ b` for a series of the planned products or of a part of each, on one thread; `factors` are
    /// alpha and beta.
    ///
    /// # Safety
    /// The matrices `a`, `b`, `old`, `out` of all products are in bounds, with the strides of the plan, and an `out` does not overlap the
    /// others, but may be its `old`. Another `old` is for real floats alone, as `adds` says.
    unsafe fn multiply(&self, size: [usize; 3], series: Series<T>, factors: [T; 2]) -> Result<()>;
}

/// Splits a batch of products into tasks.
unsafe fn batched<T: Element, M: Multiply<T>>(
    a: View,
    b: View,
    old: View,
    out: View,
    factors: [T; 2],
    then: Option<&Epilogue>,
) -> Result<()> {
    let lead = out.ndim() - 2;
    let (mut m, n, k) = (out.shape[lead], out.shape[lead + 1], a.shape[lead + 1]);
    let matrix = |v: &View| Matrix { ptr: v.ptr as *mut T, rows: v.strides[lead], cols: v.strides[lead + 1] };
    let views = [&a, &b, &old, &out];
    let matrices = views.map(matrix);
    let (mut shape, mut strides) = coalesce(&out.shape[..lead], views.map(|v| &v.strides[..lead]));
    // A batch that shares its second factor is one product with more rows.
    if let Some(&count) = shape.last() {
        let stacked = |i: usize| strides[i].last() == Some(&m.wrapping_mul(matrices[i].rows));
        if strides[1].last() == Some(&0) && [0, 2, 3].into_iter().all(stacked) {
            m *= count;
            std::iter::once(&mut shape).chain(&mut strides).for_each(|v| {
                v.pop();
            });
        }
    }
    let batch: usize = shape.iter().product();
    // Of a product with few rows or columns, reading the factors takes most of the time.
    let work = (m * n + READ * (m + n)) * k.max(1);
    let plan = M::plan([m, n, k], [0, 1, 3].map(|i| [matrices[i].rows, matrices[i].cols]));
    let then = then.filter(|t| t.takes_blocks());
    let most = num_threads().div_ceil(batch).min((work / TASK).max(1));
    let [high, wide] = grid([m, n], plan.smallest(), most, then.is_some());
    // Columns of a row-major result are no run.
    let then = then.filter(|_| wide == 1);
    let parts = high * wide;
    let steps = [0, 1, 2, 3].map(|i| strides[i].last().copied().unwrap_or(0));
    let share = matrices.map(|x| (SendPtr(x.ptr), x.rows, x.cols));
    try_par_for(batch * parts, (TASK * parts / (work + BESIDE)).max(1), |range| {
        let mut at = Odometer::new(&shape, [0, 1, 2, 3].map(|i| &strides[i][..]), range.start / parts);
        let mut unit = range.start;
        while unit < range.end {
            // An epilogue follows each product, while that is in the cache.
            let count = if parts == 1 && then.is_none() { at.left().min(range.end - unit) } else { 1 };
            let offsets = at.offsets;
            let [a, b, old, out] = [0, 1, 2, 3].map(|i| {
                let (ptr, rows, cols) = &share[i];
                Matrix { ptr: ptr.at(offsets[i]), rows: *rows, cols: *cols }
            });
            let part = unit % parts;
            let [rows, cols] = [(part / wide, high, m), (part % wide, wide, n)].map(|(i, parts, side)| {
                // The last part also takes the remainder; a tiny product is done sooner than divisions.
                let edge = |i: usize| if i == parts { side } else { side / UNIT * i / parts * UNIT };
                if parts == 1 { 0..side } else { edge(i)..edge(i + 1) }
            });
            let [old, out] = [old, out].map(|x| x.from(rows.start, cols.start));
            let first = [a.from(rows.start, 0), b.from(0, cols.start), old, out];
            // SAFETY: the part lies inside the matrices, and parts do not overlap; so many products are left in this dimension.
            unsafe { plan.multiply([rows.len(), cols.len(), k], Series { first, steps, count }, factors)? };
            if let Some(then) = then {
                then.finished(offsets[3] + rows.start * n..offsets[3] + rows.end * n);
            }
            if part + 1 == parts {
                at.advance(count);
            }
            unit += count;
        }
        Ok(())
    })
}

/// Into how many rows and columns of parts a result `[m, n]` is split, `most` parts at most: those of the smallest area,
/// and of these the ones that read the least.
fn grid([m, n]: [usize; 2], smallest: [usize; 2], most: usize, whole_rows: bool) -> [usize; 2] {
    let [most_high, most_wide] = [m / smallest[0].max(UNIT), n / smallest[1].max(UNIT)].map(|x| x.max(1));
    let most_wide = if whole_rows && most_high >= most { 1 } else { most_wide };
    let all = (1..=most.min(most_high)).map(|high| [high, (most / high).min(most_wide)]);
    let cost = |[high, wide]: &[usize; 2]| {
        let (rows, cols) = (m.div_ceil(*high), n.div_ceil(*wide));
        (rows * cols, rows + cols)
    };
    all.min_by_key(cost).unwrap_or([1, 1])
}

/// A half-precision operand as f32; broadcast dimensions are stored once.
struct Wide {
    data: Temp<f32>,
    strides: Dims,
}
impl Wide {
    unsafe fn new(v: View, read: bool) -> Result<Wide> {
        let compact: Dims = v.shape.iter().zip(v.strides).map(|(&n, &s)| if s == 0 { n.min(1) } else { n }).collect();
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
        let result = wide_out.view(&out);
        batched::<_, Plan>(wide_a.view(&a), wide_b.view(&b), result, result, factors, None)?;
        for_lines(out.shape, [result.strides, out.strides], |[r, o], n, [_, d_out]| {
            store(out.dtype, out.at(o), d_out, n, result.at(r) as *const f32);
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
