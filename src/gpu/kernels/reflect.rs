//! QR of batches of matrices by Householder reflections, and products of reflections.
//!
//! A panel of columns is factored by one workgroup for each matrix, in its memory; its reflections are then applied together,
//! as matrix products: `I - V T V^T`, where the inverse of `T` is `V^T V` above the diagonal and has the inverses of the factors
//! on it (Schreiber and Van Loan 1989, Puglisi 1992).

use super::factor::{BLOCK, Block, count, panel, sizes, solve_triangular, transposed};
use super::map::{copy, map};
use super::matmul::matmul;
use super::triangle::triangle;
use super::view::{Input, View};
use crate::dtype::Scalar;
use crate::error::Result;
use crate::gpu::driver::GpuBuffer;
use crate::layout::{Dims, contiguous_strides};

const QR: &str = include_str!("../../../shaders/qr.wgsl");

/// More rows than this are factored in narrower panels, so that an invocation's loops stay short.
const TALL: usize = 4096;
const NARROW: usize = 8;
const LANES: usize = 256;

/// Overwrites matrices with R and, below the diagonal, the vectors of reflections; their factors go to `taus` (dense).
pub fn qr(a: &View, taus: &View) -> Result<()> {
    a.require_own()?;
    let ([rows, cols], batch) = (sizes(a), count(a));
    let steps = rows.min(cols);
    let least = if a.dtype.size() == 8 { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) };
    let (name, width) = if rows > TALL { ("narrow", NARROW) } else { ("wide", BLOCK) };
    for start in (0..if batch == 0 { 0 } else { steps }).step_by(width) {
        let end = steps.min(start + width);
        panel("qr", QR, a, [start, end])?
            .write("taus", *taus)
            .number("steps", steps)?
            .scalar("least", Scalar::Float(least))
            .variant(name)
            .constant("lanes", LANES)
            .constant("across", width)
            .iterations(width * (4 * rows.div_ceil(LANES) + 2 * rows.div_ceil(LANES / width) + 4 * LANES / width))?
            .launch_groups(batch)?;
        reflect(a, taus, [start, end], &Block::of(a, [start, rows], [end, cols]).view(), true)?;
    }
    Ok(())
}

/// Overwrites `out` with the first columns of the product of the reflections in `a` and `taus` (dense).
pub fn reflections(a: &View, taus: &View, out: &View) -> Result<()> {
    let ([rows, cols], steps) = (sizes(out), taus.dim(taus.shape.len() - 1).0);
    copy(&Input::Scalar(Scalar::Int(0)), out)?;
    ones_on_diagonal(out)?;
    for start in (0..steps).step_by(BLOCK).rev() {
        // Columns before `start` are still zero in these rows.
        let block = Block::of(out, [start, rows], [start, cols]);
        reflect(a, taus, [start, steps.min(start + BLOCK)], &block.view(), false)?;
    }
    Ok(())
}

fn ones_on_diagonal(v: &View) -> Result<()> {
    let (rank, [rows, cols]) = (v.shape.len(), sizes(v));
    let (mut shape, mut strides) = (Dims::from(&v.shape[..rank - 1]), Dims::from(&v.strides[..rank - 1]));
    shape[rank - 2] = rows.min(cols);
    strides[rank - 2] += v.strides[rank - 1];
    copy(&Input::Scalar(Scalar::Int(1)), &View { shape: &shape, strides: &strides, ..*v })
}

/// Dense matrices of as many and of the dtype as another view's.
struct Matrices {
    buffer: GpuBuffer,
    shape: Dims,
    strides: Dims,
}
impl Matrices {
    fn like(v: &View, rows: usize, cols: usize) -> Result<Matrices> {
        let mut shape = Dims::from(v.shape);
        let rank = shape.len();
        (shape[rank - 2], shape[rank - 1]) = (rows, cols);
        let strides = contiguous_strides(&shape);
        let buffer = v.scratch(shape.iter().product::<usize>() * v.dtype.size())?;
        Ok(Matrices { buffer, shape, strides })
    }
    fn view<'a>(&'a self, of: &View) -> View<'a> {
        View { buffer: &self.buffer, dtype: of.dtype, shape: &self.shape, strides: &self.strides, offset: 0 }
    }
}

/// Multiplies `c`, whose rows are those from `start`, by the reflections in columns `start` to `end` of `a`, or by the transpose
/// of their product, from the left.
fn reflect(a: &View, taus: &View, [start, end]: [usize; 2], c: &View, transpose: bool) -> Result<()> {
    if c.numel() == 0 {
        return Ok(());
    }
    let (rows, k) = (sizes(a)[0], end - start);
    let vectors = Matrices::like(a, rows - start, k)?;
    let v = vectors.view(a);
    triangle(&Block::of(a, [start, rows], [start, end]).view(), -1, false, &v)?;
    ones_on_diagonal(&v)?;
    let (shape, strides) = transposed(&v);
    let v_turned = View { shape: &shape, strides: &strides, ..v };
    let (inner, sums) = (Matrices::like(a, k, k)?, Matrices::like(a, k, sizes(c)[1])?);
    let (inner, sums) = (inner.view(a), sums.view(a));
    matmul(&v_turned, &v, &inner, 1.0, 0.0)?;
    matmul(&v_turned, c, &sums, 1.0, 0.0)?;
    // With D of the factors and U above the diagonal of V^T V: T = (I + D U)^-1 D, which holds for factors of zero too.
    let scale = |m: &View| {
        let mut strides = Dims::from(taus.strides);
        strides.push(0);
        let factors = View { shape: m.shape, strides: &strides, offset: taus.offset + start, ..*taus };
        map(m.shape, &[Input::View(*m), Input::View(factors)], m, m.dtype, "x * y")
    };
    scale(&inner)?;
    if transpose {
        let (shape, strides) = transposed(&inner);
        solve_triangular(&View { shape: &shape, strides: &strides, ..inner }, &sums, false, true)?;
        scale(&sums)?;
    } else {
        scale(&sums)?;
        solve_triangular(&inner, &sums, true, true)?;
    }
    matmul(&v, &sums, c, -1.0, 1.0)
}
