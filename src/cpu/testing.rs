//! Operands for the tests of the kernels: random values in random layouts, and plain readers.

use super::view::{View, load, store};
use crate::dtype::{DType, c128};
use crate::layout::{Dims, Odometer, contiguous_strides};

/// Small deterministic random numbers (xorshift).
pub struct Rng(pub u64);
impl Rng {
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() >> 11) as usize % n
    }
    /// Uniform in -2..2.
    pub fn value(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 51) as f64 - 2.0
    }
}

/// Memory with a layout.
pub struct Array {
    pub data: Vec<u64>,
    pub dtype: DType,
    pub shape: Dims,
    pub strides: Dims,
}
impl Array {
    pub fn zeros(dtype: DType, shape: &[usize]) -> Array {
        Array::with_strides(dtype, shape, contiguous_strides(shape))
    }
    fn with_strides(dtype: DType, shape: &[usize], strides: Dims) -> Array {
        let end: usize = shape.iter().zip(&strides).map(|(&d, &s)| d.saturating_sub(1) * s).sum::<usize>() + 1;
        Array { data: vec![0; (end * dtype.size()).div_ceil(8)], dtype, shape: shape.into(), strides }
    }
    /// Zeros whose dimensions have a random order in memory, sometimes with gaps.
    pub fn scattered(rng: &mut Rng, dtype: DType, shape: &[usize]) -> Array {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, rng.below(i + 1));
        }
        let mut strides = Dims::from_elem(1, shape.len());
        let mut step = 1 + rng.below(2);
        for &d in &order {
            strides[d] = step;
            step *= shape[d].max(1) + rng.below(2);
        }
        Array::with_strides(dtype, shape, strides)
    }
    /// Random values: integers are small, floats in -2..2.
    pub fn random(rng: &mut Rng, dtype: DType, shape: &[usize]) -> Array {
        let a = Array::scattered(rng, dtype, shape);
        let values: Vec<c128> = (0..a.view().numel())
            .map(|_| match dtype {
                d if d.is_float() => c128::new(rng.value(), 0.0),
                d if d.is_complex() => c128::new(rng.value(), rng.value()),
                DType::Bool => c128::new(rng.below(2) as f64, 0.0),
                d => c128::new(rng.below(9) as f64 - if d.is_signed() { 4.0 } else { 0.0 }, 0.0),
            })
            .collect();
        a.fill(&values);
        a
    }
    /// A contiguous array of these numbers.
    pub fn of(dtype: DType, shape: &[usize], values: &[f64]) -> Array {
        let a = Array::zeros(dtype, shape);
        a.fill(&values.iter().map(|&v| c128::new(v, 0.0)).collect::<Vec<_>>());
        a
    }
    pub fn view(&self) -> View<'_> {
        // SAFETY: the data has room for what the layout reaches, and lives as long as the array.
        unsafe { View::new(self.data.as_ptr() as *mut u8, self.dtype, &self.shape, &self.strides) }
    }
    pub fn fill(&self, values: &[c128]) {
        let v = self.view();
        if v.numel() == 0 {
            return;
        }
        let mut at = Odometer::new(v.shape, [v.strides], 0);
        for x in values {
            // SAFETY: the odometer stays inside the layout, whose memory the array owns.
            unsafe { store(v.dtype, v.at(at.offsets[0]), 1, 1, x) };
            at.step();
        }
    }
    /// The elements in row-major order.
    pub fn values(&self) -> Vec<c128> {
        read(self.view())
    }
    pub fn reals(&self) -> Vec<f64> {
        self.values().iter().map(|v| v.re).collect()
    }
}

/// The elements of a view in row-major order.
pub fn read(v: View) -> Vec<c128> {
    if v.numel() == 0 {
        return Vec::new();
    }
    let mut at = Odometer::new(v.shape, [v.strides], 0);
    (0..v.numel())
        .map(|_| {
            let mut x = c128::default();
            // SAFETY: as in `fill`.
            unsafe { load(v.dtype, v.at(at.offsets[0]), 1, 1, &mut x) };
            at.step();
            x
        })
        .collect()
}

/// Equal to within `tolerance`, absolute and relative; NaN equals NaN.
pub fn close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (i, (&x, &y)) in a.iter().zip(b).enumerate() {
        let same = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= tolerance * (1.0 + y.abs());
        assert!(same, "element {i}: {x} is not {y}");
    }
}

/// Unravels a linear index.
pub fn unravel(shape: &[usize], mut i: usize) -> Vec<usize> {
    let mut out = vec![0; shape.len()];
    for d in (0..shape.len()).rev() {
        out[d] = i % shape[d];
        i /= shape[d];
    }
    out
}
/// Ravels an index.
pub fn ravel(shape: &[usize], index: &[usize]) -> usize {
    shape.iter().zip(index).fold(0, |acc, (&n, &i)| acc * n + i)
}
/// A random shape of up to `dims` dimensions and sizes below `size`.
pub fn shape(rng: &mut Rng, dims: usize, size: usize) -> Vec<usize> {
    (0..1 + rng.below(dims)).map(|_| 1 + rng.below(size)).collect()
}
