//! Layer normalisation of the rows of a dense matrix, and its gradients: one kernel each for the rows, one for the sums
//! over rows that are the gradients of weight and bias.
//!
//! As many invocations share a row as its length is worth; they add up their parts in workgroup memory. Sums over many
//! rows are made in blocks, whose results are then added. Both depend on sizes alone, so results do not on the device.

use super::element::{compute_of, dtype_of};
use super::kernel::Kernel;
use super::params::{ITERATIONS, lanes_text};
use super::reduce::reduce;
use super::view::{View, fits, halves, part};
use crate::dtype::Scalar;
use crate::error::Result;
use crate::gpu::driver::too_large;

use crate::kinds::Reduce;
const ROWS: &str = include_str!("../../../shaders/layer_norm.wgsl");
const GRADIENT: &str = include_str!("../../../shaders/layer_norm_grad.wgsl");
const SUMS: &str = include_str!("../../../shaders/layer_norm_sums.wgsl");
/// The fewest rows that one invocation adds, and how many blocks of rows are enough.
const BLOCK: usize = 64;
const BLOCKS: usize = 256;

/// What the gradients of a layer normalisation are computed from: `grad` and `input` are dense `[rows, cols]`, the
/// statistics `[rows]`, the weight `[cols]`.
#[derive(Clone, Copy)]
pub struct NormGrad<'a> {
    pub grad: View<'a>,
    pub input: View<'a>,
    pub mean: View<'a>,
    pub rstd: View<'a>,
    pub weight: Option<View<'a>>,
}

/// How many invocations share a row: a power of two that leaves each about eight elements.
fn lanes(cols: usize) -> usize {
    (cols / 8).next_power_of_two().min(256)
}

/// `out[0] = (input - mean) * rstd * weight + bias` for each row; `out[1]` and `out[2]` receive mean and rstd.
pub fn layer_norm(input: &View, weight: Option<View>, bias: Option<View>, eps: f64, out: [&View; 3]) -> Result<()> {
    input.require_own()?;
    let [rows, cols] = [input.shape[0], input.shape[1]];
    if !fits(&[input, out[0]]) {
        return by_halves(rows, |start, n| {
            let shape = [n, cols];
            let [x, y, mean, rstd] =
                [input, out[0], out[1], out[2]].map(|v| part(v, 0, start, &shape[..v.shape.len()]));
            layer_norm(&x, weight, bias, eps, [&y, &mean, &rstd])
        });
    }
    let mut kernel = Kernel::new("layer_norm", ROWS, compute_of(input.dtype)?)
        .read("x", *input)
        .write("y", *out[0])
        .write("mean", *out[1])
        .write("rstd", *out[2])
        .scalar("eps", Scalar::Float(eps));
    if let Some(w) = weight {
        kernel = kernel.read("weight", w).text("scale", " * read_weight({{weight}} + i)");
    }
    if let Some(b) = bias {
        kernel = kernel.read("bias", b).text("shift", " + read_bias({{bias}} + i)");
    }
    launch_rows(kernel, rows, cols)
}

/// The gradients by input, weight and bias.
pub fn layer_norm_backward(from: &NormGrad, dx: &View, dw: &View, db: &View) -> Result<()> {
    from.input.require_own()?;
    by_input(from, dx)?;
    let [rows, cols] = [dx.shape[0], dx.shape[1]];
    let per_block = rows.div_ceil(BLOCKS).clamp(BLOCK, ITERATIONS);
    let blocks = rows.div_ceil(per_block).max(1);
    let shape = [1, cols];
    let [dw, db] = [dw, db].map(|v| View { shape: &shape, strides: &[0, 1], ..*v });
    if blocks == 1 {
        return by_parameters(from, per_block, &dw, &db);
    }
    let dtype = dtype_of(compute_of(from.input.dtype)?);
    let (shape, strides) = ([blocks, cols], [cols, 1]);
    let size = blocks * cols * dtype.size();
    let buffers = [dx.scratch(size)?, dx.scratch(size)?];
    let [pw, pb] = [0, 1].map(|i| View { buffer: &buffers[i], dtype, shape: &shape, strides: &strides, offset: 0 });
    by_parameters(from, per_block, &pw, &pb)?;
    reduce(Reduce::Sum, &pw, &[0], &dw)?;
    reduce(Reduce::Sum, &pb, &[0], &db)
}

fn by_input(from: &NormGrad, dx: &View) -> Result<()> {
    let [rows, cols] = [dx.shape[0], dx.shape[1]];
    if !fits(&[&from.grad, &from.input, dx]) {
        return by_halves(rows, |start, n| {
            let shape = [n, cols];
            by_input(&from.rows(start, &shape), &part(dx, 0, start, &shape))
        });
    }
    let mut kernel = from.kernel("layer_norm_grad", GRADIENT)?.write("dx", *dx);
    if let Some(w) = from.weight {
        kernel = kernel.read("weight", w).text("scale", " * read_weight({{weight}} + i)");
    }
    launch_rows(kernel, rows, cols)
}

/// Sums over each `per_block` rows into the rows of `dw` and `db`.
fn by_parameters(from: &NormGrad, per_block: usize, dw: &View, db: &View) -> Result<()> {
    let ([rows, cols], blocks) = ([from.input.shape[0], from.input.shape[1]], dw.shape[0]);
    if !fits(&[&from.grad, &from.input]) {
        return by_halves(blocks, |first, n| {
            let start = (first * per_block).min(rows);
            let (shape, sums) = ([((first + n) * per_block).min(rows) - start, cols], [n, cols]);
            let [dw, db] = [dw, db].map(|v| part(v, 0, first, &sums));
            by_parameters(&from.rows(start, &shape), per_block, &dw, &db)
        });
    }
    let kernel = from.kernel("layer_norm_sums", SUMS)?.write("dw", *dw).write("db", *db);
    let kernel = kernel.number("rows", rows)?.number("cols", cols)?.number("per_block", per_block)?;
    kernel.number("units", blocks * cols)?.launch(blocks * cols)
}

fn launch_rows(kernel: Kernel, rows: usize, cols: usize) -> Result<()> {
    if rows == 0 {
        return Ok(());
    }
    let lanes = lanes(cols);
    let kernel = kernel.number("rows", rows)?.number("cols", cols)?.iterations(cols.div_ceil(lanes) * 3)?;
    kernel.text("lanes", lanes_text(lanes)).launch(rows * lanes)
}

/// Both halves of what no binding reaches.
fn by_halves(n: usize, mut run: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
    if n < 2 {
        return Err(too_large());
    }
    halves(n).into_iter().try_for_each(|(start, n)| run(start, n))
}

impl<'a> NormGrad<'a> {
    /// The rows from `start` on, as many as `shape` has.
    fn rows<'b>(&'b self, start: usize, shape: &'b [usize; 2]) -> NormGrad<'b> {
        let of = |v: &'b View<'a>| part(v, 0, start, &shape[..v.shape.len()]);
        let weight = self.weight;
        NormGrad { grad: of(&self.grad), input: of(&self.input), mean: of(&self.mean), rstd: of(&self.rstd), weight }
    }
    fn kernel(&self, family: &'static str, template: &'static str) -> Result<Kernel<'a>> {
        Ok(Kernel::new(family, template, compute_of(self.input.dtype)?)
            .read("g", self.grad)
            .read("x", self.input)
            .read("mean", self.mean)
            .read("rstd", self.rstd))
    }
}
