//! Matrix products: batched, any strides, tiles in shared memory.
//!
//! The tile grows with the matrices. A product of few tiles and a long inner dimension (a weight gradient) is a contraction,
//! which sums pieces of it.

use super::contract::Contraction;
use super::element::{compute_of, dtype_of};
use super::map::{copy, map};
use super::product::{run, tile_for};
use super::stage::stage_aliased;
use super::view::{Input, View, fits, halves, part, resized};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::gpu::driver::too_large;
use crate::layout::contiguous_strides;

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
        return in_scratch(a, b, out, alpha, beta, sums);
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

/// The product in memory of its own, in the type of its sums, and then its sum with the old values.
fn in_scratch(a: &View, b: &View, out: &View, alpha: f64, beta: f64, dtype: DType) -> Result<()> {
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
    if tile.pieces([batch, m, n, k]) == 1 {
        return run(tile, a, b, out, alpha, beta);
    }
    if beta != 0.0 {
        return in_scratch(a, b, out, alpha, beta, dtype_of(compute_of(out.dtype)?));
    }
    Contraction { a: *a, b: *b, out: *out, alpha, addend: None, batch: rank - 2, rows: 1, inner: 1, turned: 0 }.run()
}
