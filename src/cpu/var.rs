//! Variance and standard deviation, optionally with the mean.
//!
//! Each block that fits the cache is read twice: for its mean, and for the squares about that mean. The sum of the
//! deviations corrects both for the rounding of the mean (Chan, Golub and LeVeque 1983); blocks are then merged in f64
//! by the formula of the same authors (1979). So the result is as accurate as two passes over everything, at the cost
//! of one.

use super::arith::{Arith, Float};
use super::copy::copy;
use super::lanes::sums;
use super::map::{Input, Output};
use super::number_class::Fuse;
use super::reduce::driver::run;
use super::reduce::reducer::{Lanes, Reducer};
use super::reduce::reducers::Sum;
use super::reduce::{Reduce, reduce};
use super::scratch::Temp;
use super::view::{View, ensure};
use crate::dtype::{DType, c128};
use crate::error::Result;
use crate::layout::contiguous_strides;

/// The variance over `dims` into `out`, and the mean into `mean`: both have the input's shape with the reduced
/// dimensions of size one. The divisor is the number of elements less `correction`. Complex input has a real variance.
pub fn var(input: View, dims: &[usize], correction: f64, out: View, mean: Option<View>, take_sqrt: bool) -> Result<()> {
    let rule = Moments { correction, take_sqrt };
    let reduced = |d: usize| dims.contains(&d);
    let result = |v: &View| input.reduces_to(reduced, v) && v.is_apart(&input);
    ensure(result(&out) && mean.is_none_or(|m| result(&m) && m.is_apart(&out)), "var")?;
    // SAFETY: the results have a place for each set of elements that is reduced, and lie apart.
    unsafe {
        match mean {
            _ if input.dtype.is_complex() => {
                run::<c128, _>(rule, input, &reduced, out)?;
                if let Some(mean) = mean {
                    reduce(Reduce::Mean, input, dims, mean)?;
                }
            }
            None if input.dtype == DType::F64 => run::<f64, _>(rule, input, &reduced, out)?,
            None => run::<f32, _>(rule, input, &reduced, out)?,
            Some(mean) => both(rule, input, &reduced, out, mean)?,
        }
    }
    Ok(())
}

/// Variance and mean in one pass: a complex number holds both until they are copied out.
unsafe fn both(rule: Moments, input: View, reduced: &dyn Fn(usize) -> bool, out: View, mean: View) -> Result<()> {
    let pairs = Temp::<c128>::new(out.numel())?;
    let strides = contiguous_strides(out.shape);
    let ptr = pairs.ptr() as *mut u8;
    // SAFETY: there are as many pairs as the shape has places, and each is written before it is read.
    let view = unsafe { View::new(ptr, DType::C128, out.shape, &strides) };
    let twice: Vec<usize> = strides.iter().map(|s| 2 * s).collect();
    // SAFETY: the caller's promise; the two halves of a pair are 8 bytes apart.
    unsafe {
        if input.dtype == DType::F64 {
            run::<f64, _>(Pair(rule), input, reduced, view)?;
        } else {
            run::<f32, _>(Pair(rule), input, reduced, view)?;
        }
        for (to, offset) in [(out, 0), (mean, 8)] {
            let from = Input::Strided { ptr: ptr.add(offset), dtype: DType::F64, strides: &twice };
            copy(to.shape, &from, &Output { ptr: to.ptr, dtype: to.dtype, strides: to.strides });
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Moments {
    correction: f64,
    take_sqrt: bool,
}

/// Count, mean and the sum of squares about it. The mean has two parts, because a single large number could not
/// represent the difference between the means of two blocks.
#[derive(Clone, Copy)]
struct Acc<T> {
    count: f64,
    mean: T,
    rest: T,
    squares: f64,
}

impl Moments {
    fn result(self, squares: f64, count: usize) -> f64 {
        let var = squares / (count as f64 - self.correction).max(0.0);
        if self.take_sqrt { var.sqrt() } else { var }
    }
}

/// `rest` computes the second part of the mean from the second block's share of the elements.
fn merge<T: Copy>(a: Acc<T>, b: Acc<T>, delta_squared: f64, rest: impl Fn(f64) -> T) -> Acc<T> {
    if a.count == 0.0 {
        return b;
    }
    let count = a.count + b.count;
    let share = b.count / count;
    Acc { count, mean: a.mean, rest: rest(share), squares: a.squares + b.squares + delta_squared * a.count * share }
}

impl<T: Float> Reducer<T> for Moments {
    type Acc = Acc<f64>;
    type Out = T;
    fn empty(self) -> Acc<f64> {
        Acc { count: 0.0, mean: 0.0, rest: 0.0, squares: 0.0 }
    }
    #[inline(always)]
    unsafe fn block<F: Fuse>(self, x: *const T, n: usize) -> Acc<f64> {
        // SAFETY: the caller's promise: `n` elements.
        unsafe {
            let sum: T = Lanes(Sum { mean: false }).block::<F>(x, n);
            let (mean, x) = (sum.over(n), std::slice::from_raw_parts(x, n));
            let (sum, squares) = deviations(x, mean);
            corrected(n, mean, sum, squares)
        }
    }
    #[inline(always)]
    unsafe fn columns<F: Fuse>(self, rows: &[*const T], width: usize, acc: *mut Acc<f64>) {
        // Bounded by the width of a tile.
        let [mut means, mut sums, mut squares] = [(); 3].map(|()| vec![T::ZERO; width]);
        // SAFETY: the caller's promise: `width` elements of each row and of `acc`.
        unsafe {
            Lanes(Sum { mean: false }).columns::<F>(rows, width, means.as_mut_ptr());
            means.iter_mut().for_each(|m| *m = m.over(rows.len()));
            for &row in rows {
                let row = std::slice::from_raw_parts(row, width);
                for j in 0..width {
                    let d = row[j].minus(means[j]);
                    sums[j] = sums[j].plus(d);
                    squares[j] = squares[j].plus(d.times(d));
                }
            }
            for j in 0..width {
                let block = corrected(rows.len(), means[j], sums[j], squares[j]);
                *acc.add(j) = Reducer::<T>::merge(self, *acc.add(j), block);
            }
        }
    }
    #[inline(always)]
    fn merge(self, a: Acc<f64>, b: Acc<f64>) -> Acc<f64> {
        let delta = (b.mean - a.mean) + (b.rest - a.rest);
        merge(a, b, delta * delta, |share| a.rest + delta * share)
    }
    fn finish(self, acc: Acc<f64>, count: usize) -> T {
        T::from_f64(self.result(acc.squares, count))
    }
}

/// The moments of `count` numbers, from a rounded mean and the sums of deviations from it and of their squares.
fn corrected<T: Float>(count: usize, mean: T, sum: T, squares: T) -> Acc<f64> {
    let (count, mean, sum, squares) = (count as f64, mean.to_f64(), sum.to_f64(), squares.to_f64());
    // Deviations from an infinite mean are not finite, and squares that overflow stay infinite.
    if !(sum.is_finite() && squares.is_finite()) {
        return Acc { count, mean, rest: 0.0, squares };
    }
    Acc { count, mean, rest: sum / count, squares: (squares - sum * (sum / count)).max(0.0) }
}

/// The sums of the deviations from a mean, which need not be exact, and of their squares.
#[inline(always)]
pub(super) fn deviations<T: Float>(x: &[T], mean: T) -> (T, T) {
    let [sum, squares] = sums([x], |[x]| {
        let d = x.minus(mean);
        [d, d.times(d)]
    });
    (sum, squares)
}

impl Reducer<c128> for Moments {
    type Acc = Acc<c128>;
    type Out = f64;
    fn empty(self) -> Acc<c128> {
        Acc { count: 0.0, mean: c128::ZERO, rest: c128::ZERO, squares: 0.0 }
    }
    unsafe fn block<F: Fuse>(self, x: *const c128, n: usize) -> Acc<c128> {
        // SAFETY: the caller's promise: `n` elements.
        let x = unsafe { std::slice::from_raw_parts(x, n) };
        let mean = x.iter().sum::<c128>().over(n);
        let (sum, squares) = x.iter().map(|v| v - mean).fold((c128::ZERO, 0.0), |(s, q), d| (s + d, q + d.norm_sqr()));
        let (count, off) = (n as f64, sum.over(n));
        if !(sum.is_finite() && squares.is_finite()) {
            return Acc { count, mean, rest: c128::ZERO, squares };
        }
        Acc { count, mean, rest: off, squares: (squares - off.norm_sqr() * count).max(0.0) }
    }
    unsafe fn columns<F: Fuse>(self, rows: &[*const c128], width: usize, acc: *mut Acc<c128>) {
        for j in 0..width {
            // SAFETY: the caller's promise: `width` elements of each row and of `acc`.
            unsafe {
                // Bounded by the rows of a bundle.
                let column: Vec<c128> = rows.iter().map(|r| *r.add(j)).collect();
                let block = Reducer::<c128>::block::<F>(self, column.as_ptr(), column.len());
                *acc.add(j) = Reducer::<c128>::merge(self, *acc.add(j), block);
            }
        }
    }
    fn merge(self, a: Acc<c128>, b: Acc<c128>) -> Acc<c128> {
        let delta = (b.mean - a.mean) + (b.rest - a.rest);
        merge(a, b, delta.norm_sqr(), |share| a.rest + delta * share)
    }
    fn finish(self, acc: Acc<c128>, count: usize) -> f64 {
        self.result(acc.squares, count)
    }
}

/// `Moments` whose result is the variance and, as the imaginary part, the mean.
#[derive(Clone, Copy)]
struct Pair(Moments);
impl<T: Float> Reducer<T> for Pair {
    type Acc = Acc<f64>;
    type Out = c128;
    fn empty(self) -> Acc<f64> {
        Reducer::<T>::empty(self.0)
    }
    #[inline(always)]
    unsafe fn block<F: Fuse>(self, x: *const T, n: usize) -> Acc<f64> {
        // SAFETY: the caller's promise.
        unsafe { self.0.block::<F>(x, n) }
    }
    #[inline(always)]
    unsafe fn columns<F: Fuse>(self, rows: &[*const T], width: usize, acc: *mut Acc<f64>) {
        // SAFETY: the caller's promise.
        unsafe { self.0.columns::<F>(rows, width, acc) }
    }
    #[inline(always)]
    fn merge(self, a: Acc<f64>, b: Acc<f64>) -> Acc<f64> {
        Reducer::<T>::merge(self.0, a, b)
    }
    fn finish(self, acc: Acc<f64>, count: usize) -> c128 {
        let mean = if count == 0 { f64::NAN } else { acc.mean + acc.rest };
        c128::new(self.0.result(acc.squares, count), mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, Rng, close, ravel, shape, unravel};

    fn check(rng: &mut Rng, dtype: DType, s: &[usize], shift: f64, tolerance: f64) {
        let a = Array::random(rng, dtype, s);
        a.fill(&a.values().iter().map(|v| v + shift).collect::<Vec<_>>());
        let dims: Vec<usize> = (0..s.len()).filter(|_| rng.below(2) == 0).collect();
        let kept: Vec<usize> = s.iter().enumerate().map(|(i, &n)| if dims.contains(&i) { 1 } else { n }).collect();
        let mut groups = vec![Vec::new(); kept.iter().product()];
        for (i, &v) in a.values().iter().enumerate() {
            let mut at = unravel(s, i);
            dims.iter().for_each(|&d| at[d] = 0);
            groups[ravel(&kept, &at)].push(v);
        }
        let means: Vec<c128> = groups.iter().map(|g| g.iter().sum::<c128>() / g.len() as f64).collect();
        let vars: Vec<f64> = groups
            .iter()
            .zip(&means)
            .map(|(g, m)| g.iter().map(|v| (v - m).norm_sqr()).sum::<f64>() / g.len() as f64)
            .collect();
        let (v, m) = (Array::scattered(rng, dtype.to_real(), &kept), Array::scattered(rng, dtype, &kept));
        var(a.view(), &dims, 0.0, v.view(), Some(m.view()), false).unwrap();
        close(&v.reals(), &vars, tolerance);
        close(&m.reals(), &means.iter().map(|m| m.re).collect::<Vec<_>>(), tolerance);
        var(a.view(), &dims, 0.0, v.view(), None, true).unwrap();
        close(&v.reals(), &vars.iter().map(|v| v.sqrt()).collect::<Vec<_>>(), tolerance);
    }

    #[test]
    fn agrees_with_plain_loops() {
        let mut rng = Rng(41);
        for _ in 0..40 {
            let s = shape(&mut rng, 4, 8);
            check(&mut rng, DType::F32, &s, 0.0, 1e-5);
            check(&mut rng, DType::F64, &s, 100.0, 1e-9);
            check(&mut rng, DType::C64, &s, 0.0, 1e-5);
            check(&mut rng, DType::F16, &s, 0.0, 1e-2);
        }
        for s in [&[200_000][..], &[3, 70_000], &[70_000, 3], &[400, 500]] {
            check(&mut rng, DType::F32, s, 10.0, 1e-4);
        }
    }

    #[test]
    fn one_element_has_no_sample_variance() {
        let (a, v) = (Array::of(DType::F32, &[1], &[3.0]), Array::zeros(DType::F32, &[1]));
        var(a.view(), &[0], 1.0, v.view(), None, false).unwrap();
        assert!(v.reals()[0].is_nan());
    }
}
