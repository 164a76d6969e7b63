//! Layer normalisation of rows: mean and variance in one visit, then scale and shift, while the row is in cache.
//!
//! Half types are computed in f32. The mean and the reciprocal standard deviation are kept for the gradient.

use super::arith::Float;
use super::num::Fuse;
use super::parallel::par_for;
use super::reduce::rule::{Lanes, Rule};
use super::reduce::rules::{Norm2, Sum};
use super::simd::{self, Kernel};
use super::view::{View, load, store};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};

/// `out = (input - mean) * rstd * weight + bias` for each row of `[rows, cols]`; `weight` and `bias` are `[cols]`,
/// `mean` and `rstd` `[rows]`. The variance has no correction.
///
/// # Safety
/// All operands must be in bounds; `out` may be `input` itself, but nothing else may overlap.
#[allow(clippy::too_many_arguments)] // the operands of one formula
pub unsafe fn layer_norm(
    input: View,
    weight: Option<View>,
    bias: Option<View>,
    eps: f64,
    out: View,
    mean: View,
    rstd: View,
) -> Result<()> {
    // SAFETY: handed on to the caller.
    unsafe {
        match input.dtype {
            DType::F64 => rows::<f64>(input, weight, bias, eps, out, mean, rstd),
            d if d.is_float() => rows::<f32>(input, weight, bias, eps, out, mean, rstd),
            d => {
                let name = d.scalar_type_name();
                return Err(Error::not_implemented(format!("\"LayerNormKernelImpl\" not implemented for '{name}'")));
            }
        }
    }
    Ok(())
}

/// A vector in the computing type.
unsafe fn vector<T: Element>(v: View) -> Vec<T> {
    let (n, step) = v.dim(0);
    let mut out = vec![T::default(); n];
    // SAFETY: the vector has `n` elements.
    unsafe { load(v.dtype, v.ptr, step, n, out.as_mut_ptr()) };
    out
}

unsafe fn rows<T: Float>(
    input: View,
    weight: Option<View>,
    bias: Option<View>,
    eps: f64,
    out: View,
    mean: View,
    rstd: View,
) {
    let (count, cols) = (input.shape[0], input.shape[1]);
    // SAFETY: handed on to the caller.
    let (weight, bias) = unsafe { (weight.map(|v| vector::<T>(v)), bias.map(|v| vector::<T>(v))) };
    par_for(count, (1 << 13) / cols.max(1), |range| {
        let mut buffer = vec![T::ZERO; cols];
        for i in range {
            // SAFETY: the row and the statistics are those of the operands.
            unsafe {
                load(input.dtype, input.at(i * input.strides[0]), input.strides[1], cols, buffer.as_mut_ptr());
                let (weight, bias) = (weight.as_deref(), bias.as_deref());
                let (m, r) = simd::run(Row { x: &mut buffer, weight, bias, eps });
                store(out.dtype, out.at(i * out.strides[0]), out.strides[1], cols, buffer.as_ptr());
                store(mean.dtype, mean.at(i * mean.dim(0).1), 1, 1, &m);
                store(rstd.dtype, rstd.at(i * rstd.dim(0).1), 1, 1, &r);
            }
        }
    });
}

struct Row<'a, T> {
    x: &'a mut [T],
    weight: Option<&'a [T]>,
    bias: Option<&'a [T]>,
    eps: f64,
}
impl<T: Float> Kernel for Row<'_, T> {
    type Output = (T, T);
    #[inline(always)]
    fn run<F: Fuse>(self) -> (T, T) {
        normalise::<T, F>(self.x, self.weight, self.bias, self.eps)
    }
}

/// Normalises one row in place; returns its mean and reciprocal standard deviation.
#[inline(always)]
fn normalise<T: Float, F: Fuse>(x: &mut [T], weight: Option<&[T]>, bias: Option<&[T]>, eps: f64) -> (T, T) {
    let n = x.len();
    // SAFETY: the slice has `n` elements.
    let sum: T = unsafe { Lanes(Sum { mean: false }).block::<F>(x.as_ptr(), n) };
    let mean = sum.over(n);
    x.iter_mut().for_each(|v| *v = v.minus(mean));
    // SAFETY: as above.
    let squares: T = unsafe { Lanes(Norm2 { root: false }).block::<F>(x.as_ptr(), n) };
    let rstd = T::from_f64(1.0 / (squares.to_f64() / n as f64 + eps).sqrt());
    match (weight, bias) {
        (Some(w), Some(b)) => {
            x.iter_mut().zip(w).zip(b).for_each(|((v, &w), &b)| *v = v.times(rstd).times(w).plus(b));
        }
        (Some(w), None) => x.iter_mut().zip(w).for_each(|(v, &w)| *v = v.times(rstd).times(w)),
        (None, Some(b)) => x.iter_mut().zip(b).for_each(|(v, &b)| *v = v.times(rstd).plus(b)),
        (None, None) => x.iter_mut().for_each(|v| *v = v.times(rstd)),
    }
    (mean, rstd)
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
                // SAFETY: the arrays own their layouts.
                unsafe {
                    layer_norm(a.view(), Some(w.view()), Some(b.view()), 1e-5, y.view(), m.view(), r.view()).unwrap();
                }
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
