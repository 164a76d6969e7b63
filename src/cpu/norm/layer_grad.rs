//! Gradients of layer normalisation: of the input row by row, of weight and bias summed over the rows.
//!
//! With `h = (x - mean) rstd` and `w` the weight: `dx = rstd (g w - mean(g w) - h mean(g w h))`, `dw = sum(g h)`, `db =
//! sum(g)`. Rows are summed in blocks whose number depends only on the sizes, then block by block.

use crate::cpu::arith::Float;
use crate::cpu::lanes::sums;
use crate::cpu::number_class::Fuse;
use crate::cpu::parallel::try_par_for;
use crate::cpu::simd;
use crate::cpu::simd::Kernel;
use crate::cpu::view::{SendPtr, View, ensure, load, store};
use crate::dtype::DType;
use crate::error::Result;
use crate::rt::reserve::filled;

/// Maximum number of blocks of rows with separate weight gradients, and minimum rows per block.
const BLOCKS: usize = 32;
const ROWS: usize = 16;
/// Elements of a row summed in the compute type before their sum is added to the total in f64.
const BLOCK: usize = 1 << 12;

/// The operands: `grad`, `input` and `dx` are `[rows, cols]`, `mean` and `rstd` `[rows]`, the rest `[cols]`.
pub struct Operands<'a> {
    pub grad: View<'a>,
    pub input: View<'a>,
    pub mean: View<'a>,
    pub rstd: View<'a>,
    pub weight: Option<View<'a>>,
    pub dx: View<'a>,
    pub dw: Option<View<'a>>,
    pub db: Option<View<'a>>,
}

/// Writes `dx`, and `dw` and `db` where they are wanted. Rows are copied in and out, so operands may overlap.
pub fn layer_norm_backward(o: &Operands) -> Result<()> {
    let &[count, cols] = o.input.shape else { return ensure(false, "layer_norm_backward") };
    let vector = |v: Option<View>| v.is_none_or(|v| v.shape == [cols]);
    let right = o.grad.shape == o.input.shape
        && o.dx.shape == o.input.shape
        && (o.mean.shape == [count] && o.rstd.shape == [count])
        && (vector(o.weight) && vector(o.dw) && vector(o.db));
    ensure(right, "layer_norm_backward")?;
    if cols == 0 {
        return Ok(()); // every result is empty
    }
    // SAFETY: the shapes are as documented.
    unsafe {
        match o.input.dtype {
            DType::F64 => rows::<f64>(o),
            _ => rows::<f32>(o),
        }
    }
}

unsafe fn rows<T: Float>(o: &Operands) -> Result<()> {
    let (count, cols) = (o.input.shape[0], o.input.shape[1]);
    let vector = |w: View| -> Result<Vec<T>> {
        let mut v = filled(T::ZERO, cols)?;
        // SAFETY: the weight has `cols` elements.
        unsafe { load(w.dtype, w.ptr, w.dim(0).1, cols, v.as_mut_ptr()) };
        Ok(v)
    };
    let weight = o.weight.map(vector).transpose()?;
    let blocks = (count / ROWS).clamp(1, BLOCKS);
    let mut sums = filled(T::ZERO, blocks * 2 * cols)?;
    let slots = SendPtr(sums.as_mut_ptr());
    try_par_for(blocks, (1 << 13) / (cols * count.div_ceil(blocks)).max(1), |range| {
        let (mut g, mut x) = (filled(T::ZERO, cols)?, filled(T::ZERO, cols)?);
        for block in range {
            // SAFETY: each block has separate sums.
            let sums = unsafe { std::slice::from_raw_parts_mut(slots.at(block * 2 * cols), 2 * cols) };
            let (dw, db) = sums.split_at_mut(cols);
            for i in count * block / blocks..count * (block + 1) / blocks {
                let (mut mean, mut rstd) = (T::ZERO, T::ZERO);
                // SAFETY: the row and its statistics are those of the operands.
                unsafe {
                    load(o.grad.dtype, o.grad.at(i * o.grad.strides[0]), o.grad.strides[1], cols, g.as_mut_ptr());
                    load(o.input.dtype, o.input.at(i * o.input.strides[0]), o.input.strides[1], cols, x.as_mut_ptr());
                    load(o.mean.dtype, o.mean.at(i * o.mean.dim(0).1), 1, 1, &mut mean);
                    load(o.rstd.dtype, o.rstd.at(i * o.rstd.dim(0).1), 1, 1, &mut rstd);
                }
                simd::run(Row { g: &mut g, x: &mut x, mean, rstd, weight: weight.as_deref(), dw, db });
                // SAFETY: as above.
                unsafe { store(o.dx.dtype, o.dx.at(i * o.dx.strides[0]), o.dx.strides[1], cols, x.as_ptr()) };
            }
        }
        Ok(())
    })?;
    let (first, rest) = sums.split_at_mut(2 * cols);
    for block in rest.chunks(2 * cols) {
        first.iter_mut().zip(block).for_each(|(a, &b)| *a = a.plus(b));
    }
    for (out, at) in [(o.dw, 0), (o.db, cols)] {
        if let Some(out) = out {
            // SAFETY: the result has `cols` elements.
            unsafe { store(out.dtype, out.ptr, out.dim(0).1, cols, first[at..].as_ptr()) };
        }
    }
    Ok(())
}

/// One row: `x` becomes the gradient of the input.
struct Row<'a, T> {
    g: &'a mut [T],
    x: &'a mut [T],
    mean: T,
    rstd: T,
    weight: Option<&'a [T]>,
    dw: &'a mut [T],
    db: &'a mut [T],
}

impl<T: Float> Kernel for Row<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let n = self.x.len();
        self.x.iter_mut().for_each(|x| *x = x.minus(self.mean).times(self.rstd));
        self.dw.iter_mut().zip(self.g.iter()).zip(self.x.iter()).for_each(|((w, &g), &h)| *w = w.plus(g.times(h)));
        self.db.iter_mut().zip(self.g.iter()).for_each(|(b, &g)| *b = b.plus(g));
        if let Some(weight) = self.weight {
            self.g.iter_mut().zip(weight).for_each(|(g, &w)| *g = g.times(w));
        }
        let (mut total, mut dots) = (0.0, 0.0);
        for (g, h) in self.g.chunks(BLOCK).zip(self.x.chunks(BLOCK)) {
            let [sum, dot] = sums([g, h], |[g, h]| [g, g.times(h)]);
            total += sum.to_f64();
            dots += dot.to_f64();
        }
        let (mean, slope) = (T::from_f64(total / n as f64), T::from_f64(dots / n as f64));
        for (x, &g) in self.x.iter_mut().zip(self.g.iter()) {
            *x = g.minus(mean).minus(x.times(slope)).times(self.rstd);
        }
    }
}
