//! Fast Fourier transforms along one dimension, in parallel over its lines: `rustfft`, and `realfft` for real signals.
//!
//! Lines are copied to memory of the task, transformed there and written back scaled, several neighbours at a time where
//! the dimension is not the last, so that whole cache lines move. Plans of the last few lengths are kept. The libraries
//! allocate infallibly: their memory is probed for beforehand.

use super::parallel::try_par_for;
use super::view::{SendPtr, View, ensure};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::rt::reserve::{filled, probe};
use num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};
use std::sync::{Arc, Mutex};

/// Neighbouring lines that are gathered together.
const BLOCK: usize = 8;
/// Elements per task.
const TASK: usize = 1 << 14;
/// Plans that are kept for each kind, and the length up to which they are.
const PLANS: usize = 16;
const LONGEST: usize = 1 << 20;
/// The memory of a plan and its scratch, in complex numbers for each element of a line: Bluestein's algorithm pads to
/// four times the length and keeps a few tables of that.
const PLAN: usize = 32;

/// The plans that were used last.
struct Recent<P>(Mutex<Vec<((usize, bool), P)>>);

impl<P: Clone> Recent<P> {
    const fn new() -> Recent<P> {
        Recent(Mutex::new(Vec::new()))
    }
    fn get(&self, n: usize, forward: bool, make: impl FnOnce() -> P) -> P {
        let mut list = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let plan = match list.iter().position(|(key, _)| *key == (n, forward)) {
            Some(i) => list.remove(i).1,
            None => make(),
        };
        if n <= LONGEST {
            list.truncate(PLANS - 1);
            list.insert(0, ((n, forward), plan.clone()));
        }
        plan
    }
}

/// The two precisions, each with its plans.
trait Precision: FftNum + Element {
    fn complex() -> &'static Recent<Arc<dyn Fft<Self>>>;
    fn to_complex() -> &'static Recent<Arc<dyn RealToComplex<Self>>>;
    fn to_real() -> &'static Recent<Arc<dyn ComplexToReal<Self>>>;
}
impl Precision for f32 {
    fn complex() -> &'static Recent<Arc<dyn Fft<f32>>> {
        static PLANS: Recent<Arc<dyn Fft<f32>>> = Recent::new();
        &PLANS
    }
    fn to_complex() -> &'static Recent<Arc<dyn RealToComplex<f32>>> {
        static PLANS: Recent<Arc<dyn RealToComplex<f32>>> = Recent::new();
        &PLANS
    }
    fn to_real() -> &'static Recent<Arc<dyn ComplexToReal<f32>>> {
        static PLANS: Recent<Arc<dyn ComplexToReal<f32>>> = Recent::new();
        &PLANS
    }
}
impl Precision for f64 {
    fn complex() -> &'static Recent<Arc<dyn Fft<f64>>> {
        static PLANS: Recent<Arc<dyn Fft<f64>>> = Recent::new();
        &PLANS
    }
    fn to_complex() -> &'static Recent<Arc<dyn RealToComplex<f64>>> {
        static PLANS: Recent<Arc<dyn RealToComplex<f64>>> = Recent::new();
        &PLANS
    }
    fn to_real() -> &'static Recent<Arc<dyn ComplexToReal<f64>>> {
        static PLANS: Recent<Arc<dyn ComplexToReal<f64>>> = Recent::new();
        &PLANS
    }
}

/// The lines of a row-major operand along one dimension: element `j` of line `(o, i)` lies at `(o n + j) inner + i`.
#[derive(Clone, Copy)]
struct Lines<E> {
    ptr: SendPtr<E>,
    outer: usize,
    n: usize,
    inner: usize,
}

impl<E: Copy> Lines<E> {
    fn of(v: &View, dim: usize) -> Result<Lines<E>> {
        ensure(v.is_contiguous() && dim < v.ndim() && v.dtype.size() == size_of::<E>(), "fft")?;
        // Saturating: the sizes of an empty operand may overflow.
        let product = |sizes: &[usize]| sizes.iter().copied().fold(1, usize::saturating_mul);
        let (outer, inner) = (product(&v.shape[..dim]), product(&v.shape[dim + 1..]));
        Ok(Lines { ptr: SendPtr(v.ptr.cast()), outer, n: v.shape[dim], inner })
    }
    /// Blocks of neighbouring lines in one outer index.
    fn blocks(&self) -> usize {
        self.inner.div_ceil(BLOCK)
    }
    /// The address of the first line of a block, and how many lines it has.
    fn block(&self, b: usize) -> (*mut E, usize) {
        let (o, first) = (b / self.blocks(), b % self.blocks() * BLOCK);
        (self.ptr.at(o * self.n * self.inner + first), BLOCK.min(self.inner - first))
    }
    /// Where a block is computed: in place if it is one dense line, else in a buffer for the lines of a block.
    ///
    /// # Safety
    /// Nothing else touches the block while the slice lives.
    unsafe fn target<'a>(&self, b: usize, buffer: &'a mut [E]) -> &'a mut [E] {
        match self.inner {
            // SAFETY: the line lies in the operand, which outlives the call of the kernel.
            1 => unsafe { std::slice::from_raw_parts_mut(self.ptr.at(b * self.n), self.n) },
            _ => buffer,
        }
    }
    /// The elements of a buffer.
    fn buffered(&self) -> usize {
        if self.inner == 1 { 0 } else { self.n * BLOCK.min(self.inner) }
    }
    /// Copies a block of lines into `to`, one after another. Row by row: a column of a power of two may have all its elements in one
    /// set of a cache, so what was fetched is used at once.
    fn read(&self, b: usize, to: &mut [E]) -> usize {
        let (from, lines) = self.block(b);
        assert!(to.len() >= lines * self.n);
        for j in 0..self.n {
            for k in 0..lines {
                // SAFETY: the element lies in the operand: k < lines, j < n.
                unsafe { *to.get_unchecked_mut(k * self.n + j) = from.add(j * self.inner + k).read() };
            }
        }
        lines
    }
    /// Scales a block that was computed in its target, and writes it where that is a buffer.
    fn finish<T: FftNum>(&self, b: usize, from: &mut [E], scale: T)
    where
        E: std::ops::Mul<T, Output = E>,
    {
        if self.inner == 1 {
            // Most transforms have a scale of one.
            return if scale != T::one() {
                from.iter_mut().for_each(|x| *x = *x * scale)
            };
        }
        let (to, lines) = self.block(b);
        assert!(from.len() >= lines * self.n);
        for j in 0..self.n {
            for k in 0..lines {
                // SAFETY: as in `read`; only this task writes the block.
                unsafe { to.add(j * self.inner + k).write(*from.get_unchecked(k * self.n + j) * scale) };
            }
        }
    }
}

/// Whether there are no elements; the product of the sizes may overflow.
fn is_empty(v: &View) -> bool {
    v.shape.contains(&0)
}

fn unsupported(dtype: DType) -> Error {
    Error::runtime(format!("Unsupported dtype {}", dtype.scalar_type_name()))
}

/// Tasks of about `TASK` elements.
fn grain(n: usize) -> usize {
    (TASK / (n * BLOCK).max(1)).max(1)
}

/// Transforms a row-major complex operand in place along `dim` and multiplies it by `scale`.
pub fn complex(out: View, dim: usize, forward: bool, scale: f64) -> Result<()> {
    match out.dtype {
        DType::C64 => complex_of::<f32>(&out, dim, forward, scale as f32),
        DType::C128 => complex_of::<f64>(&out, dim, forward, scale),
        d => Err(unsupported(d)),
    }
}

fn complex_of<T: Precision>(out: &View, dim: usize, forward: bool, scale: T) -> Result<()> {
    let lines = Lines::<Complex<T>>::of(out, dim)?;
    let n = lines.n;
    if is_empty(out) {
        return Ok(());
    }
    probe(n.saturating_mul(PLAN * size_of::<Complex<T>>()))?;
    let direction = if forward { FftDirection::Forward } else { FftDirection::Inverse };
    let plan = T::complex().get(n, forward, || FftPlanner::new().plan_fft(n, direction));
    let zero = Complex::new(T::zero(), T::zero());
    try_par_for(lines.outer * lines.blocks(), grain(n), |blocks| {
        let mut buffer = filled(zero, lines.buffered())?;
        let mut scratch = filled(zero, plan.get_inplace_scratch_len())?;
        for b in blocks {
            let count = if lines.inner == 1 { 1 } else { lines.read(b, &mut buffer) };
            // SAFETY: the task of a block alone touches it.
            let target = unsafe { lines.target(b, &mut buffer) };
            plan.process_with_scratch(&mut target[..count * n], &mut scratch);
            lines.finish(b, target, scale);
        }
        Ok(())
    })
}

/// Checks that two operands have the same shape but for `dim`, where the complex one has `n / 2 + 1` elements.
fn halves(real: &View, complex: &View, dim: usize) -> Result<()> {
    let n = real.dim(dim).0;
    ensure(real.matches_but(dim, n / 2 + 1, complex) && real.is_apart(complex), "fft of a real signal")
}

/// The first `n / 2 + 1` numbers of the transform of a row-major real operand of n numbers, times `scale`.
pub fn real_to_complex(x: View, out: View, dim: usize, scale: f64) -> Result<()> {
    halves(&x, &out, dim)?;
    match (x.dtype, out.dtype) {
        (DType::F32, DType::C64) => real_to_complex_of::<f32>(&x, &out, dim, scale as f32),
        (DType::F64, DType::C128) => real_to_complex_of::<f64>(&x, &out, dim, scale),
        (d, _) => Err(unsupported(d)),
    }
}

fn real_to_complex_of<T: Precision>(x: &View, out: &View, dim: usize, scale: T) -> Result<()> {
    let (from, to) = (Lines::<T>::of(x, dim)?, Lines::<Complex<T>>::of(out, dim)?);
    if is_empty(x) {
        return Ok(());
    }
    let n = from.n;
    probe(n.saturating_mul(PLAN * size_of::<Complex<T>>()))?;
    let plan = T::to_complex().get(n, true, || RealFftPlanner::new().plan_fft_forward(n));
    let zero = Complex::new(T::zero(), T::zero());
    try_par_for(from.outer * from.blocks(), grain(n), |blocks| {
        let (mut input, mut output) = (filled(T::zero(), n * BLOCK.min(from.inner))?, filled(zero, to.buffered())?);
        let mut scratch = filled(zero, plan.get_scratch_len())?;
        for b in blocks {
            let count = from.read(b, &mut input);
            // SAFETY: the task of a block alone touches it.
            let target = unsafe { to.target(b, &mut output) };
            for (line, half) in input.chunks_exact_mut(n).zip(target.chunks_exact_mut(to.n)).take(count) {
                let done = plan.process_with_scratch(line, half, &mut scratch);
                done.map_err(|e| Error::internal(format!("fft: {e}")))?;
            }
            to.finish(b, target, scale);
        }
        Ok(())
    })
}

/// The inverse of `real_to_complex` but for the scale: the row-major real operand of n numbers. The imaginary part of
/// the first number, and for even n of the last, counts as zero.
pub fn complex_to_real(x: View, out: View, dim: usize, scale: f64) -> Result<()> {
    halves(&out, &x, dim)?;
    match (x.dtype, out.dtype) {
        (DType::C64, DType::F32) => complex_to_real_of::<f32>(&x, &out, dim, scale as f32),
        (DType::C128, DType::F64) => complex_to_real_of::<f64>(&x, &out, dim, scale),
        (d, _) => Err(unsupported(d)),
    }
}

fn complex_to_real_of<T: Precision>(x: &View, out: &View, dim: usize, scale: T) -> Result<()> {
    let (from, to) = (Lines::<Complex<T>>::of(x, dim)?, Lines::<T>::of(out, dim)?);
    if is_empty(out) {
        return Ok(());
    }
    let n = to.n;
    probe(n.saturating_mul(PLAN * size_of::<Complex<T>>()))?;
    let plan = T::to_real().get(n, false, || RealFftPlanner::new().plan_fft_inverse(n));
    let zero = Complex::new(T::zero(), T::zero());
    try_par_for(from.outer * from.blocks(), grain(n), |blocks| {
        let (mut input, mut output) =
            (filled(zero, from.n * BLOCK.min(from.inner))?, filled(T::zero(), to.buffered())?);
        let mut scratch = filled(zero, plan.get_scratch_len())?;
        for b in blocks {
            let count = from.read(b, &mut input);
            // SAFETY: the task of a block alone touches it.
            let target = unsafe { to.target(b, &mut output) };
            for (half, line) in input.chunks_exact_mut(from.n).zip(target.chunks_exact_mut(n)).take(count) {
                half[0].im = T::zero();
                if n % 2 == 0 {
                    half[n / 2].im = T::zero();
                }
                let done = plan.process_with_scratch(half, line, &mut scratch);
                done.map_err(|e| Error::internal(format!("fft: {e}")))?;
            }
            to.finish(b, target, scale);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::c128;
    use std::f64::consts::TAU;

    fn view<'a, E: Element>(v: &mut [E], shape: &'a [usize], strides: &'a [usize]) -> View<'a> {
        // SAFETY: the shape and the strides of the tests below are those of the whole list.
        unsafe { View::new(v.as_mut_ptr().cast(), E::DTYPE, shape, strides) }
    }

    /// Along each dimension of [3, n, 5], against the sum of the definition, forth and back.
    #[test]
    fn transforms_are_their_definition() {
        for n in [1usize, 2, 5, 8, 9, 13] {
            let (shape, strides) = ([3, n, 5], [5 * n, 5, 1]);
            let list: Vec<c128> = (0..15 * n).map(|i| c128::new((i as f64).sin(), (i * i % 7) as f64)).collect();
            let mut out = list.clone();
            complex(view(&mut out, &shape, &strides), 1, true, 0.5).unwrap();
            for (at, got) in out.iter().enumerate() {
                let (o, k, i) = (at / (5 * n), at / 5 % n, at % 5);
                let terms = (0..n).map(|j| list[(o * n + j) * 5 + i] * c128::cis(-TAU * (j * k) as f64 / n as f64));
                assert!((terms.sum::<c128>() * 0.5 - got).norm() < 1e-12 * n as f64);
            }
            complex(view(&mut out, &shape, &strides), 1, false, 2.0 / n as f64).unwrap();
            assert!(out.iter().zip(&list).all(|(a, b)| (a - b).norm() < 1e-12 * n as f64));
        }
    }

    #[test]
    fn real_signals_have_half_a_transform() {
        for n in [1usize, 2, 7, 12] {
            let mut x: Vec<f64> = (0..2 * n).map(|i| (i as f64 * 0.7).cos()).collect();
            let (m, shape, strides) = (n / 2 + 1, [2, n], [n, 1]);
            let mut half = vec![c128::default(); 2 * m];
            let (hs, ht) = ([2, m], [m, 1]);
            real_to_complex(view(&mut x, &shape, &strides), view(&mut half, &hs, &ht), 1, 1.0).unwrap();
            let mut whole: Vec<c128> = x.iter().map(|&r| c128::new(r, 0.0)).collect();
            complex(view(&mut whole, &shape, &strides), 1, true, 1.0).unwrap();
            assert!((0..2 * m).all(|i| (half[i] - whole[i / m * n + i % m]).norm() < 1e-12));
            let mut back = vec![0f64; 2 * n];
            half[0].im = 3.0;
            let (half, back_view) = (view(&mut half, &hs, &ht), view(&mut back, &shape, &strides));
            complex_to_real(half, back_view, 1, 1.0 / n as f64).unwrap();
            assert!(x.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-12));
        }
    }
}
