//! Sums of weighted elements along up to three dimensions, by tables of taps: interpolation and its gradient.
//!
//! One invocation makes one output, from the taps of its place in each dimension. The tables of all dimensions lie in one
//! buffer of integers and one of weights.

use super::element::compute_of;
use super::kernel::Kernel;
use super::view::{View, fits, halves, part, resized};
use crate::error::Result;
use crate::gpu::driver::too_large;

const TEMPLATE: &str = include_str!("../../../shaders/resample.wgsl");

/// Where the table of one dimension lies: its first start, index and weight; and the most taps of an output.
#[derive(Clone, Copy, Debug, Default)]
pub struct TapsAt {
    pub starts: usize,
    pub index: usize,
    pub weights: usize,
    pub most: usize,
}

/// Names of the numbers of each dimension: sizes before and after, and the places of its table.
const NAMES: [[&str; 5]; 3] = [
    ["n0", "m0", "starts0", "index0", "weights0"],
    ["n1", "m1", "starts1", "index1", "weights1"],
    ["n2", "m2", "starts2", "index2", "weights2"],
];

/// `x` and `out` are dense `[outer, three dimensions, inner]`. With `bits`, integer weights are units of 2^-bits, and sums are
/// rounded to 8 bits.
pub fn resample(x: &View, table: &View, weights: &View, at: [TapsAt; 3], bits: Option<u32>, out: &View) -> Result<()> {
    out.require_own()?;
    let units = out.numel();
    if units == 0 {
        return Ok(());
    }
    if !fits(&[x, out]) {
        if out.shape[0] < 2 {
            return Err(too_large());
        }
        return halves(out.shape[0]).into_iter().try_for_each(|(start, n)| {
            let (from, into) = (resized(x.shape, 0, n), resized(out.shape, 0, n));
            resample(&part(x, 0, start, &from), table, weights, at, bits, &part(out, 0, start, &into))
        });
    }
    let mut kernel = Kernel::new("resample", TEMPLATE, compute_of(out.dtype)?)
        .read("x", *x)
        .index("table", *table)
        .read("w", *weights)
        .write("out", *out);
    for (d, names) in NAMES.iter().enumerate() {
        let numbers = [x.shape[d + 1], out.shape[d + 1], at[d].starts, at[d].index, at[d].weights];
        for (name, number) in names.iter().zip(numbers) {
            kernel = kernel.number(name, number)?;
        }
    }
    kernel = match bits {
        Some(bits) => kernel
            .text("result", "clamp((sum + i32({{half}})) >> {{bits}}, 0, 255)")
            .bits("half", (1 << bits) >> 1)
            .bits("bits", bits),
        None => kernel.text("result", "sum"),
    };
    let iterations = at.iter().fold(1usize, |n, t| n.saturating_mul(t.most + 1));
    kernel.number("inner", out.shape[4])?.number("units", units)?.iterations(iterations)?.launch(units)
}
