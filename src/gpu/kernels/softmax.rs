//! Softmax and log-softmax along a dimension, forward and backward: one pass over memory per row that fits a group.
//!
//! Contiguous rows are shared by neighbouring invocations, as many as their length is worth; many rows that lie beside each
//! other are one invocation's work each. The maximum is subtracted first.

use super::element::compute_of;
use super::kernel::Kernel;
use super::params::{ITERATIONS, lanes_text};
use super::stage::stage_aliased;
use super::view::{View, fits, halves, part, resized};
use crate::error::Result;
use crate::gpu::driver::too_large;

const TEMPLATE: &str = include_str!("../../../shaders/softmax.wgsl");
const THREAD: &str = include_str!("../../../shaders/softmax_thread.wgsl");
const WHOLE: &str = include_str!("../../../shaders/softmax_group.wgsl");
/// Contiguous rows up to this length are one invocation's work, and so are others where there are that many.
const SHORT: usize = 4;
const MANY: usize = 4096;

/// Softmax of `input` along `dim`, or its logarithm.
pub fn softmax(input: &View, dim: usize, out: &View, log: bool) -> Result<()> {
    let passes = Passes {
        family: "softmax",
        top: true,
        term: "exp_(x - top)",
        result: if log { "(x - top) - ln_(total)" } else { "exp_(x - top) / total" },
    };
    rows(&passes, input, None, dim, out)
}

/// The gradient of `softmax` (or of its logarithm) from the gradient of its output and the output.
pub fn softmax_backward(grad: &View, output: &View, dim: usize, out: &View, log: bool) -> Result<()> {
    let passes = Passes {
        family: "softmax_backward",
        top: false,
        term: if log { "x" } else { "x * y" },
        result: if log { "x - exp_(y) * total" } else { "(x - total) * y" },
    };
    rows(&passes, grad, Some(output), dim, out)
}

/// What is summed along a row and what is stored, over `x`, `y`, the row's maximum `top` and the sum `total`.
struct Passes {
    family: &'static str,
    top: bool,
    term: &'static str,
    result: &'static str,
}

fn rows(passes: &Passes, x: &View, y: Option<&View>, dim: usize, out: &View) -> Result<()> {
    out.require_own()?;
    let length = x.dim(dim).0;
    let count = x.shape.iter().product::<usize>() / length.max(1);
    if length == 0 || count == 0 {
        return Ok(());
    }
    if !fits(&[x, y.unwrap_or(x), out]) {
        return by_halves(passes, x, y, dim, out);
    }
    let shape = x.without(dim).0;
    let mut inputs = vec![*x];
    inputs.extend(y.copied());
    stage_aliased(&mut inputs, &[*out], &mut |views| {
        let mut kernel = Kernel::new(passes.family, TEMPLATE, compute_of(out.dtype)?)
            .read("x", views[0])
            .walk("x", &shape, &views[0].without(dim).1)
            .number("x_step", views[0].dim(dim).1)?
            .write("out", *out)
            .walk("out", &shape, &out.without(dim).1)
            .number("out_step", out.dim(dim).1)?
            .number("rows", count)?
            .number("length", length)?
            .text("term", passes.term)
            .text("result", passes.result)
            .text("top", if passes.top { "true" } else { "false" });
        if let Some(y) = views.get(1) {
            kernel = kernel
                .read("y", *y)
                .walk("y", &shape, &y.without(dim).1)
                .number("y_step", y.dim(dim).1)?
                .text("let_y", "let y = read_y({{y}} + walk_y(row) + i * {{y_step}});");
        }
        let contiguous = views[0].dim(dim).1 == 1;
        if length <= SHORT || (!contiguous && count >= MANY && length <= ITERATIONS / 3) {
            return kernel.iterations(length * 3)?.part("thread", "body", THREAD).launch(count);
        }
        let lanes = (length / 4).next_power_of_two().clamp(4, 256);
        let kernel = kernel.iterations(length.div_ceil(lanes) * 3)?.text("lanes", lanes_text(lanes));
        kernel.part("group", "body", WHOLE).launch(count * lanes)
    })
}

/// Halves the rows of what no binding reaches.
fn by_halves(passes: &Passes, x: &View, y: Option<&View>, dim: usize, out: &View) -> Result<()> {
    let others = (0..x.shape.len()).filter(|&d| d != dim);
    let Some(d) = others.max_by_key(|&d| x.strides[d] * (x.shape[d] - 1)).filter(|&d| x.shape[d] > 1) else {
        return Err(too_large());
    };
    for (start, n) in halves(x.shape[d]) {
        let shape = resized(x.shape, d, n);
        let y = y.map(|v| part(v, d, start, &shape));
        rows(passes, &part(x, d, start, &shape), y.as_ref(), dim, &part(out, d, start, &shape))?;
    }
    Ok(())
}
