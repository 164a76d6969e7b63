//! Softmax and its logarithm along one dimension, and their gradients.
//!
//! Lines that are dense in memory are handled one by one through a buffer of the computing type (f32 for the half
//! types); otherwise a tile of neighbouring lines advances row by row, so memory is walked in order.

use super::arith::{Arith, Float, greater};
use super::parallel::par_for;
use super::view::{View, load, store};
use super::walk::Others;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Neighbouring lines that advance together.
const TILE: usize = 256;

/// `softmax(input)` along `dim`, or its logarithm; computed in f32, or f64 where `out` is.
///
/// # Safety
/// Both operands must be in bounds; `out` may be `input` itself, but not overlap it otherwise.
pub unsafe fn softmax(input: View, dim: usize, out: View, log: bool) -> Result<()> {
    // SAFETY: handed on to the caller.
    unsafe {
        match out.dtype {
            DType::F64 => forward::<f64>(input, dim, out, log),
            d if d.is_float() => forward::<f32>(input, dim, out, log),
            d => return Err(refuse(d)),
        }
    }
    Ok(())
}

/// The gradient of the input, from that of the output and the output itself.
///
/// # Safety
/// All operands must be in bounds; `out` must not overlap the others.
pub unsafe fn softmax_backward(grad: View, output: View, dim: usize, out: View, log: bool) -> Result<()> {
    // SAFETY: handed on to the caller.
    unsafe {
        match output.dtype {
            DType::F64 => backward::<f64>(grad, output, dim, out, log),
            d if d.is_float() => backward::<f32>(grad, output, dim, out, log),
            d => return Err(refuse(d)),
        }
    }
    Ok(())
}

#[cold]
fn refuse(d: DType) -> Error {
    Error::not_implemented(format!("\"softmax\" not implemented for '{}'", d.scalar_type_name()))
}

/// A tile of lines in buffers: `length` rows of `n` elements each.
struct Tile<'a> {
    length: usize,
    n: usize,
    offset: usize,
    along: usize,
    across: usize,
    view: View<'a>,
}
impl Tile<'_> {
    unsafe fn read<T: Float>(&self, buffer: &mut [T]) {
        let v = &self.view;
        // SAFETY: the tile lies inside the operand; the buffer has room for it.
        unsafe {
            if self.n == 1 {
                return load(v.dtype, v.at(self.offset), self.along, self.length, buffer.as_mut_ptr());
            }
            for i in 0..self.length {
                let row = buffer[i * self.n..].as_mut_ptr();
                load(v.dtype, v.at(self.offset + i * self.along), self.across, self.n, row);
            }
        }
    }
    unsafe fn write<T: Float>(&self, buffer: &[T]) {
        let v = &self.view;
        // SAFETY: as in `read`.
        unsafe {
            if self.n == 1 {
                return store(v.dtype, v.at(self.offset), self.along, self.length, buffer.as_ptr());
            }
            for i in 0..self.length {
                let row = buffer[i * self.n..].as_ptr();
                store(v.dtype, v.at(self.offset + i * self.along), self.across, self.n, row);
            }
        }
    }
}

/// Calls `f` for every tile of lines along `dim`.
fn tiles<const N: usize>(views: [View; N], dim: usize, f: impl Fn([Tile; N]) + Sync) {
    if views[0].numel() == 0 {
        return;
    }
    let mut others = Others::new(views[0].shape, views.map(|v| v.strides), dim);
    let length = views[0].dim(dim).0;
    let (width, across) = others.pop();
    let most = if views[0].dim(dim).1 <= across[0] { 1 } else { (65536 / length).clamp(8, TILE) };
    let per_row = width.div_ceil(most);
    par_for(others.count() * per_row, (1 << 12) / (length * most.min(width)), |range| {
        let mut at = others.walk(range.start / per_row);
        for unit in range {
            let start = unit % per_row * most;
            let n = most.min(width - start);
            f(std::array::from_fn(|k| {
                let offset = at.offsets[k] + start * across[k];
                Tile { length, n, offset, along: views[k].dim(dim).1, across: across[k], view: views[k] }
            }));
            if start + n == width {
                at.step();
            }
        }
    });
}

unsafe fn forward<T: Float>(input: View, dim: usize, out: View, log: bool) {
    tiles([input, out], dim, |[input, out]| {
        let mut x = vec![T::ZERO; input.length * input.n];
        // SAFETY: the tiles are those of the operands.
        unsafe {
            input.read(&mut x);
            if input.n == 1 {
                line(&mut x, log);
            } else {
                columns(&mut x, input.n, log);
            }
            out.write(&x);
        }
    });
}

fn minus<T: Arith + Float>(a: T, b: T) -> T {
    a.plus(b.times(T::from_f64(-1.0)))
}

fn line<T: Float>(x: &mut [T], log: bool) {
    let max = x.iter().fold(T::LOWEST, |m, &v| greater(m, v));
    let mut sum = T::ZERO;
    if log {
        x.iter().for_each(|&v| sum = sum.plus(minus(v, max).exp()));
        let by = sum.ln();
        x.iter_mut().for_each(|v| *v = minus(minus(*v, max), by));
    } else {
        for v in x.iter_mut() {
            *v = minus(*v, max).exp();
            sum = sum.plus(*v);
        }
        let by = T::from_f64(1.0 / sum.to_f64());
        x.iter_mut().for_each(|v| *v = v.times(by));
    }
}

fn columns<T: Float>(x: &mut [T], n: usize, log: bool) {
    let (mut max, mut sum) = (vec![T::LOWEST; n], vec![T::ZERO; n]);
    for row in x.chunks(n) {
        (0..n).for_each(|j| max[j] = greater(max[j], row[j]));
    }
    for row in x.chunks_mut(n) {
        for j in 0..n {
            let e = minus(row[j], max[j]).exp();
            row[j] = if log { minus(row[j], max[j]) } else { e };
            sum[j] = sum[j].plus(e);
        }
    }
    for s in &mut sum {
        *s = if log { s.ln() } else { T::from_f64(1.0 / s.to_f64()) };
    }
    for row in x.chunks_mut(n) {
        (0..n).for_each(|j| row[j] = if log { minus(row[j], sum[j]) } else { row[j].times(sum[j]) });
    }
}

unsafe fn backward<T: Float>(grad: View, output: View, dim: usize, out: View, log: bool) {
    tiles([output, grad, out], dim, |[output, grad, out]| {
        let n = output.n;
        let (mut y, mut g) = (vec![T::ZERO; output.length * n], vec![T::ZERO; output.length * n]);
        let mut sum = vec![T::ZERO; n];
        // SAFETY: the tiles are those of the operands.
        unsafe {
            output.read(&mut y);
            grad.read(&mut g);
        }
        for (y, g) in y.chunks(n).zip(g.chunks(n)) {
            (0..n).for_each(|j| sum[j] = sum[j].plus(if log { g[j] } else { g[j].times(y[j]) }));
        }
        for (y, g) in y.chunks(n).zip(g.chunks_mut(n)) {
            for j in 0..n {
                g[j] = if log { minus(g[j], y[j].exp().times(sum[j])) } else { y[j].times(minus(g[j], sum[j])) };
            }
        }
        // SAFETY: as above.
        unsafe { out.write(&g) };
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, Rng, close, ravel, shape, unravel};

    /// The sums of `values` along `dim`, for every element.
    fn sums(s: &[usize], dim: usize, values: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; values.len()];
        let start = |i: usize| {
            let mut at = unravel(s, i);
            at[dim] = 0;
            ravel(s, &at)
        };
        values.iter().enumerate().for_each(|(i, v)| out[start(i)] += v);
        (0..values.len()).map(|i| out[start(i)]).collect()
    }

    fn check(rng: &mut Rng, dtype: DType, s: &[usize], log: bool, tolerance: f64) {
        let dim = rng.below(s.len());
        let (x, grad) = (Array::random(rng, dtype, s), Array::random(rng, dtype, s));
        let (y, out) = (Array::scattered(rng, dtype, s), Array::scattered(rng, dtype, s));
        // SAFETY: the arrays own their layouts.
        unsafe { softmax(x.view(), dim, y.view(), log).unwrap() };
        let e: Vec<f64> = x.reals().iter().map(|v| v.exp()).collect();
        let p: Vec<f64> = e.iter().zip(sums(s, dim, &e)).map(|(e, t)| e / t).collect();
        close(&y.reals(), &p.iter().map(|p| if log { p.ln() } else { *p }).collect::<Vec<_>>(), tolerance);
        // SAFETY: as above.
        unsafe { softmax_backward(grad.view(), y.view(), dim, out.view(), log).unwrap() };
        let g = grad.reals();
        let weighted: Vec<f64> = g.iter().zip(&p).map(|(g, p)| if log { *g } else { g * p }).collect();
        let total = sums(s, dim, &weighted);
        let want: Vec<f64> =
            (0..g.len()).map(|i| if log { g[i] - p[i] * total[i] } else { p[i] * (g[i] - total[i]) }).collect();
        close(&out.reals(), &want, 3.0 * tolerance);
    }

    #[test]
    fn agrees_with_plain_loops() {
        let mut rng = Rng(23);
        for round in 0..40 {
            let s = shape(&mut rng, 4, 9);
            check(&mut rng, DType::F32, &s, round % 2 == 0, 1e-5);
            check(&mut rng, DType::F64, &s, round % 2 == 0, 1e-12);
            check(&mut rng, DType::BF16, &s, round % 2 == 0, 2e-2);
        }
        check(&mut rng, DType::F32, &[3, 5000], false, 1e-5);
        check(&mut rng, DType::F32, &[300, 700], true, 1e-5);
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        let (x, y) =
            (Array::of(DType::F32, &[3], &[1000.0, 1000.0, f64::NEG_INFINITY]), Array::zeros(DType::F32, &[3]));
        // SAFETY: the arrays own their layouts.
        unsafe { softmax(x.view(), 0, y.view(), false).unwrap() };
        close(&y.reals(), &[0.5, 0.5, 0.0], 0.0);
    }
}
