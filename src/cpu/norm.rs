//! Layer normalisation of rows: mean and variance, then scale and shift, while the row is in cache.
//!
//! Rows are read and written in place if possible; strided rows and rows of another dtype than the compute type (f32
//! for the half types) go through a buffer. The mean and the reciprocal standard deviation are saved for the gradient.

pub mod channels;
pub mod layer_grad;
pub(crate) mod planes;

use super::arith::Float;
use super::lanes::sums;
use super::number_class::Fuse;
use super::parallel::try_par_for;
use super::simd::{self, Kernel};
use super::var::deviations;
use super::view::{View, ensure, load, store};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::rt::reserve::filled;

/// `out = (input - mean) * rstd * weight + bias` for each row of `[rows, cols]`; `weight` and `bias` are `[cols]`,
/// `mean` and `rstd` `[rows]`. The variance has no correction.
#[allow(clippy::too_many_arguments)] // the operands of one formula
pub fn layer_norm(
    input: View,
    weight: Option<View>,
    bias: Option<View>,
    eps: f64,
    out: View,
    mean: View,
    rstd: View,
) -> Result<()> {
    let &[rows_of_input, cols] = input.shape else { return ensure(false, "layer_norm") };
    let vector = |v: Option<View>| v.is_none_or(|v| v.shape == [cols] && v.is_apart(&out));
    let statistic = |v: &View| v.shape == [rows_of_input] && v.is_apart(&input) && v.is_apart(&out);
    let right = out.shape == input.shape && out.is_apart(&input) && vector(weight) && vector(bias);
    ensure(right && statistic(&mean) && statistic(&rstd) && mean.is_apart(&rstd), "layer_norm")?;
    // SAFETY: the shapes are as documented, and the results lie apart.
    unsafe {
        match input.dtype {
            DType::F64 => rows::<f64>(input, weight, bias, eps, out, mean, rstd),
            d if d.is_float() => rows::<f32>(input, weight, bias, eps, out, mean, rstd),
            d => {
                let name = d.scalar_type_name();
                Err(Error::not_implemented(format!("\"LayerNormKernelImpl\" not implemented for '{name}'")))
            }
        }
    }
}

/// A vector in the compute type.
unsafe fn vector<T: Element>(v: View) -> Result<Vec<T>> {
    let (n, step) = v.dim(0);
    let mut out = filled(T::default(), n)?;
    // SAFETY: the vector has `n` elements.
    unsafe { load(v.dtype, v.ptr, step, n, out.as_mut_ptr()) };
    Ok(out)
}

unsafe fn rows<T: Float>(
    input: View,
    weight: Option<View>,
    bias: Option<View>,
    eps: f64,
    out: View,
    mean: View,
    rstd: View,
) -> Result<()> {
    let (count, cols) = (input.shape[0], input.shape[1]);
    // SAFETY: the caller's promise.
    let (weight, bias) =
        unsafe { (weight.map(|v| vector::<T>(v)).transpose()?, bias.map(|v| vector::<T>(v)).transpose()?) };
    try_par_for(count, (1 << 13) / cols.max(1), |range| {
        let own = |v: &View| v.dtype == T::DTYPE && v.strides[1] == 1;
        let buffer = |v: &View| filled(T::ZERO, if own(v) { 0 } else { cols });
        let mut buffers = [buffer(&input)?, buffer(&out)?];
        for i in range {
            let (from, to) = (input.at(i * input.strides[0]), out.at(i * out.strides[0]));
            // SAFETY: the row and the statistics are those of the operands.
            unsafe {
                let [a, b] = &mut buffers;
                let x = if own(&input) {
                    std::slice::from_raw_parts(from as *const T, cols)
                } else {
                    load(input.dtype, from, input.strides[1], cols, a.as_mut_ptr());
                    &a[..]
                };
                let y = if own(&out) { std::slice::from_raw_parts_mut(to as *mut T, cols) } else { &mut b[..] };
                let (m, r) = simd::run(Row { x, y, weight: weight.as_deref(), bias: bias.as_deref(), eps });
                if !own(&out) {
                    store(out.dtype, to, out.strides[1], cols, b.as_ptr());
                }
                for (v, x) in [(&mean, m), (&rstd, r)] {
                    let to = v.at(i * v.dim(0).1);
                    match v.dtype == T::DTYPE {
                        true => *(to as *mut T) = x,
                        false => store(v.dtype, to, 1, 1, &x),
                    }
                }
            }
        }
        Ok(())
    })
}

struct Row<'a, T> {
    x: &'a [T],
    y: &'a mut [T],
    weight: Option<&'a [T]>,
    bias: Option<&'a [T]>,
    eps: f64,
}
impl<T: Float> Kernel for Row<'_, T> {
    /// The mean and the reciprocal standard deviation.
    type Output = (T, T);
    #[inline(always)]
    fn run<F: Fuse>(self) -> (T, T) {
        let (x, n) = (self.x, self.x.len());
        let (mean, squares) = moments::<T>(x);
        let rstd = T::from_f64(1.0 / (squares / n as f64 + self.eps).sqrt());
        let normal = |x: T| x.minus(mean).times(rstd);
        let y = self.y.iter_mut().zip(x);
        match (self.weight, self.bias) {
            (Some(w), Some(b)) => y.zip(w).zip(b).for_each(|(((y, &x), &w), &b)| *y = normal(x).times(w).plus(b)),
            (Some(w), None) => y.zip(w).for_each(|((y, &x), &w)| *y = normal(x).times(w)),
            (None, Some(b)) => y.zip(b).for_each(|((y, &x), &b)| *y = normal(x).plus(b)),
            (None, None) => y.for_each(|(y, &x)| *y = normal(x)),
        }
        (mean, rstd)
    }
}

/// Elements summed in the compute type before their sum is added to the total in f64.
const BLOCK: usize = 1 << 12;

/// The mean, and the sum of squared deviations from it.
#[inline(always)]
pub(super) fn moments<T: Float>(x: &[T]) -> (T, f64) {
    // A loop: the closure of an iterator's sum is not inlined, and then compiled for the baseline.
    let mut total = 0.0;
    for block in x.chunks(BLOCK) {
        let [sum] = sums([block], |x| x);
        total += sum.to_f64();
    }
    let mean = T::from_f64(total / x.len() as f64);
    let (mut sum, mut squares) = (0.0, 0.0);
    for block in x.chunks(BLOCK) {
        let (s, q) = deviations(block, mean);
        sum += s.to_f64();
        squares += q.to_f64();
    }
    // The correction of the squares for the rounding of the mean; not for infinities.
    let more = if squares.is_finite() { sum * (sum / x.len() as f64) } else { 0.0 };
    (mean, if more > squares { 0.0 } else { squares - more })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, Rng, close};

    #[test]
    fn agrees_with_the_formula() {
        let mut rng = Rng(47);
        for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-12), (DType::BF16, 3e-2)] {
            for (rows, cols) in [(1, 1), (3, 17), (40, 300)] {
                let a = Array::random(&mut rng, dtype, &[rows, cols]);
                let (w, b) = (Array::random(&mut rng, dtype, &[cols]), Array::random(&mut rng, dtype, &[cols]));
                let y = Array::scattered(&mut rng, dtype, &[rows, cols]);
                let (m, r) = (Array::zeros(DType::F64, &[rows]), Array::zeros(DType::F64, &[rows]));
                layer_norm(a.view(), Some(w.view()), Some(b.view()), 1e-5, y.view(), m.view(), r.view()).unwrap();
                let (w, b) = (w.reals(), b.reals());
                for (i, row) in a.reals().chunks(cols).enumerate() {
                    let mean = row.iter().sum::<f64>() / cols as f64;
                    let var = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / cols as f64;
                    let rstd = 1.0 / (var + 1e-5).sqrt();
                    let want: Vec<f64> = (0..cols).map(|j| (row[j] - mean) * rstd * w[j] + b[j]).collect();
                    close(&y.reals()[i * cols..(i + 1) * cols], &want, tolerance);
                    close(&[m.reals()[i]], &[mean], 1e-5);
                    close(&[r.reals()[i]], &[rstd], 1e-2);
                }
            }
        }
    }
}
