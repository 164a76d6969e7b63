//! Matrix products: batched, any strides, tiles in shared memory.
//!
//! The tile grows with the matrices. A product of few tiles and a long inner dimension (a weight gradient) is split
//! along it into a batch of partial products, which are summed in a fixed order.

use super::element::{compute_of, dtype_of};
use super::kernel::Kernel;
use super::map::{copy, map};
use super::params::TURNS;
use super::reduce::reduce;
use super::stage::stage_aliased;
use super::view::{Input, View, fits, halves, part, resized};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::gpu::driver::too_large;
use crate::kinds::Reduce;
use crate::layout::{Dims, contiguous_strides};

pub(super) const TEMPLATE: &str = include_str!("../../../shaders/matmul.wgsl");

/// Rows, columns and depth of a workgroup's tile, and the rows and columns of one invocation.
pub(super) struct Tile {
    name: &'static str,
    rows: usize,
    cols: usize,
    depth: usize,
    per_row: usize,
    per_col: usize,
}
static LARGE: Tile = Tile { name: "128x128", rows: 128, cols: 128, depth: 8, per_row: 8, per_col: 8 };
static MEDIUM: Tile = Tile { name: "64x64", rows: 64, cols: 64, depth: 16, per_row: 4, per_col: 4 };
static SMALL: Tile = Tile { name: "32x32", rows: 32, cols: 32, depth: 16, per_row: 2, per_col: 2 };
static FLAT: Tile = Tile { name: "4x64", rows: 4, cols: 64, depth: 16, per_row: 1, per_col: 1 };
static TALL: Tile = Tile { name: "64x4", rows: 64, cols: 4, depth: 16, per_row: 1, per_col: 1 };

/// Workgroups that keep a device busy, and the shortest inner dimension worth splitting.
pub(super) const BUSY: usize = 128;
pub(super) const DEEP: usize = 1024;
/// The longest inner dimension of one kernel, whose loops turn several times for each of its elements.
pub(super) const DEEPEST: usize = TURNS;

/// `out = beta * out + alpha * a @ b` for `[.., m, k] x [.., k, n] -> [.., m, n]`; the leading dimensions are equal
/// (broadcast with strides of zero), the dtypes are too. Half types are summed in float32. Where `beta` is zero,
/// `out` is not read.
pub fn matmul(a: &View, b: &View, out: &View, alpha: f64, beta: f64) -> Result<()> {
    out.require_own()?;
    let rank = out.shape.len();
    if rank < 2 || a.shape.len() != rank || b.shape.len() != rank || a.shape[rank - 1] != b.shape[rank - 2] {
        return Err(Error::internal("matmul: operands do not fit"));
    }
    if out.shape.contains(&0) {
        return Ok(());
    }
    if a.shape[rank - 1] == 0 {
        return scaled(out, beta);
    }
    if !fits(&[a, b, out]) {
        return by_halves(a, b, out, alpha, beta);
    }
    stage_aliased(&mut [*a, *b], &[*out], &mut |views| product(&views[0], &views[1], out, alpha, beta))
}

/// Halves a product of which no binding reaches all of an operand: along the batch, rows, columns, or inside.
fn by_halves(a: &View, b: &View, out: &View, alpha: f64, beta: f64) -> Result<()> {
    let rank = out.shape.len();
    let (row, col) = (rank - 2, rank - 1);
    let batch = (0..row).max_by_key(|&d| out.shape[d]).filter(|&d| out.shape[d] > 1);
    let d = match batch {
        Some(d) => d,
        None if out.shape[row] > 1 && !fits(&[a, out]) => row,
        None if out.shape[col] > 1 && !fits(&[b, out]) => col,
        None => return inside(a, b, out, alpha, beta),
    };
    for (start, n) in halves(out.shape[d]) {
        let (sa, sb, so) = (resized(a.shape, d, n), resized(b.shape, d, n), resized(out.shape, d, n));
        let first = if d == col { *a } else { part(a, d, start, &sa) };
        let second = if d == row { *b } else { part(b, d, start, &sb) };
        matmul(&first, &second, &part(out, d, start, &so), alpha, beta)?;
    }
    Ok(())
}

/// Two products over halves of the inner dimension, the second added to the first.
fn inside(a: &View, b: &View, out: &View, alpha: f64, beta: f64) -> Result<()> {
    let rank = out.shape.len();
    let k = a.shape[rank - 1];
    let sums = dtype_of(compute_of(out.dtype)?);
    if out.dtype != sums {
        return rounded_once(a, b, out, alpha, beta, sums);
    }
    if k < 2 {
        return Err(too_large());
    }
    for (i, (start, n)) in halves(k).into_iter().enumerate() {
        let (sa, sb) = (resized(a.shape, rank - 1, n), resized(b.shape, rank - 2, n));
        let (first, second) = (part(a, rank - 1, start, &sa), part(b, rank - 2, start, &sb));
        matmul(&first, &second, out, alpha, if i == 0 { beta } else { 1.0 })?;
    }
    Ok(())
}

/// A product of half types whose halves are added before they are rounded.
fn rounded_once(a: &View, b: &View, out: &View, alpha: f64, beta: f64, dtype: DType) -> Result<()> {
    let buffer = out.scratch(out.shape.iter().product::<usize>() * dtype.size())?;
    let strides = contiguous_strides(out.shape);
    let sums = View { buffer: &buffer, dtype, shape: out.shape, strides: &strides, offset: 0 };
    matmul(a, b, &sums, alpha, 0.0)?;
    if beta == 0.0 {
        return copy(&Input::View(sums), out);
    }
    let inputs = [Input::View(*out), Input::Scalar(Scalar::Float(beta)), Input::View(sums)];
    map(out.shape, &inputs, out, dtype, "x * y + z")
}

/// An empty inner dimension: only the old values remain.
fn scaled(out: &View, beta: f64) -> Result<()> {
    if beta == 0.0 {
        return copy(&Input::Scalar(Scalar::Int(0)), out);
    }
    map(out.shape, &[Input::View(*out), Input::Scalar(Scalar::Float(beta))], out, out.dtype, "x * y")
}

fn product(a: &View, b: &View, out: &View, alpha: f64, beta: f64) -> Result<()> {
    let rank = out.shape.len();
    let (m, n, k) = (out.shape[rank - 2], out.shape[rank - 1], a.shape[rank - 1]);
    let batch: usize = out.shape[..rank - 2].iter().product();
    let tile = tile_for(m, n, batch, out.dtype);
    let groups = tile.groups(m, n, batch);
    let splits = (BUSY / groups).min(k / (DEEP / 2));
    if splits > 1 && k >= DEEP && batch == 1 && beta == 0.0 {
        return split(a, b, out, alpha, splits);
    }
    if k > DEEPEST {
        return inside(a, b, out, alpha, beta);
    }
    run(tile, a, b, out, alpha, beta)
}

/// Sums `splits` partial products over pieces of the inner dimension, and what is left of it.
fn split(a: &View, b: &View, out: &View, alpha: f64, splits: usize) -> Result<()> {
    let rank = out.shape.len();
    let (m, n, k) = (out.shape[rank - 2], out.shape[rank - 1], a.shape[rank - 1]);
    let piece = k / splits;
    let (sa, sb) = (&a.strides[rank - 2..], &b.strides[rank - 2..]);
    let rest = k - piece * splits;
    let count = splits + (rest > 0) as usize;
    let dtype = dtype_of(compute_of(out.dtype)?);
    let shape = [count, m, n];
    let buffer = out.scratch(count * m * n * dtype.size())?;
    let strides = contiguous_strides(&shape);
    let partial = View { buffer: &buffer, dtype, shape: &shape, strides: &strides, offset: 0 };
    let (shape_a, strides_a) = ([splits, m, piece], [piece * sa[1], sa[0], sa[1]]);
    let (shape_b, strides_b) = ([splits, piece, n], [piece * sb[0], sb[0], sb[1]]);
    let first = View { shape: &shape_a, strides: &strides_a, ..*a };
    let second = View { shape: &shape_b, strides: &strides_b, ..*b };
    product(&first, &second, &View { shape: &[splits, m, n], ..partial }, alpha, 0.0)?;
    if rest > 0 {
        let done = piece * splits;
        let first = View { shape: &[1, m, rest], strides: &strides_a, offset: a.offset + done * sa[1], ..*a };
        let second = View { shape: &[1, rest, n], strides: &strides_b, offset: b.offset + done * sb[0], ..*b };
        product(&first, &second, &View { shape: &[1, m, n], offset: splits * m * n, ..partial }, alpha, 0.0)?;
    }
    let last = View { shape: &[1, m, n], strides: &[0, out.strides[rank - 2], out.strides[rank - 1]], ..*out };
    reduce(Reduce::Sum, &partial, &[0], &last)
}

/// The tile for `[m, k] x [k, n]`.
pub(super) fn tile_for(m: usize, n: usize, batch: usize, dtype: DType) -> &'static Tile {
    match (m, n) {
        (0..=4, _) => &FLAT,
        (_, 0..=4) => &TALL,
        _ if dtype.size() == 8 || m.min(n) <= 32 => &SMALL,
        _ if m.min(n) < 512 || batch * m.div_ceil(128) * n.div_ceil(128) < BUSY => &MEDIUM,
        _ => &LARGE,
    }
}

impl Tile {
    pub(super) fn groups(&self, m: usize, n: usize, batch: usize) -> usize {
        batch * m.div_ceil(self.rows) * n.div_ceil(self.cols)
    }
    /// Launches a product whose operands and their places are in the kernel. Whether neighbouring invocations read
    /// neighbours along the inner dimension of `a`, and along the columns of `b`, is `a_first` and `b_first`.
    pub(super) fn launch(
        &self,
        kernel: Kernel,
        [batch, m, n, k]: [usize; 4],
        a_first: bool,
        b_first: bool,
    ) -> Result<()> {
        let mut kernel = kernel
            .number("batch", batch)?
            .number("m", m)?
            .number("n", n)?
            .number("k", k)?
            .number("tiles_m", m.div_ceil(self.rows))?
            .number("tiles_n", n.div_ceil(self.cols))?;
        for (name, value) in [
            ("TM", self.rows),
            ("TN", self.cols),
            ("TK", self.depth),
            ("RM", self.per_row),
            ("RN", self.per_col),
            ("lanes", self.rows * self.cols / (self.per_row * self.per_col)),
        ] {
            kernel = kernel.constant(name, value);
        }
        kernel
            .text("a_first", if a_first { "true" } else { "false" })
            .text("b_first", if b_first { "true" } else { "false" })
            .variant(self.name)
            .launch_groups(self.groups(m, n, batch))
    }
}

fn run(tile: &Tile, a: &View, b: &View, out: &View, alpha: f64, beta: f64) -> Result<()> {
    let rank = out.shape.len();
    let (m, n, k) = (out.shape[rank - 2], out.shape[rank - 1], a.shape[rank - 1]);
    let batch: usize = out.shape[..rank - 2].iter().product();
    let lead = |v: &[usize]| Dims::from(&v[..rank - 2]);
    let shape = lead(out.shape);
    // Neighbouring invocations read neighbouring elements: along k where that is the unit stride of `a`.
    let (a_first, b_first) = (a.strides[rank - 1] <= a.strides[rank - 2], b.strides[rank - 1] <= b.strides[rank - 2]);
    let mut kernel = Kernel::new("matmul", TEMPLATE, compute_of(out.dtype)?)
        .read("a", *a)
        .read("b", *b)
        .write("out", *out)
        .walk("a", &shape, &lead(a.strides))
        .walk("b", &shape, &lead(b.strides))
        .walk("out", &shape, &lead(out.strides))
        .text("at_a", "(row0 + r) * {{a_row}} + (depth + d) * {{a_col}}")
        .text("at_b", "(depth + d) * {{b_row}} + (col0 + c) * {{b_col}}")
        .text("at_out", "r * {{out_row}} + c * {{out_col}}");
    for (name, stride) in [
        ("a_row", a.strides[rank - 2]),
        ("a_col", a.strides[rank - 1]),
        ("b_row", b.strides[rank - 2]),
        ("b_col", b.strides[rank - 1]),
        ("out_row", out.strides[rank - 2]),
        ("out_col", out.strides[rank - 1]),
    ] {
        kernel = kernel.number(name, stride)?;
    }
    if alpha != 1.0 {
        kernel = kernel.scalar("alpha", Scalar::Float(alpha)).text("scale", "v = {{alpha}} * v;");
    }
    if beta != 0.0 {
        kernel = kernel.scalar("beta", Scalar::Float(beta)).text("old", "v += {{beta}} * read_out(at);");
    }
    tile.launch(kernel, [batch, m, n, k], a_first, b_first)
}
