//! Cumulative sums, products, maxima, minima and log-sum-exps along a dimension.
//!
//! Short or many lines are one invocation's work each. A long line is a workgroup's: each invocation folds a piece,
//! the pieces' results are scanned, and each invocation walks its piece again from what lies before it. Few and very long
//! lines are cut into blocks, each scanned by itself, and then combined with the scan of the blocks' results.

use super::element::compute_of;
use super::kernel::Kernel;
use super::map::map;
use super::params::TURNS;
use super::stage::stage_aliased;
use super::view::{Input, View, part, resized};
use crate::error::Result;
use crate::kinds::Scan;
use crate::layout::{Dims, contiguous_strides};

const TEMPLATE: &str = include_str!("../../../shaders/scan.wgsl");
const THREAD: &str = include_str!("../../../shaders/scan_thread.wgsl");
const WHOLE: &str = include_str!("../../../shaders/scan_group.wgsl");
const RECURRENCE: &str = include_str!("../../../shaders/recurrence.wgsl");
const SHORT: usize = 256;
const MANY: usize = 4096;
/// The shortest block of a line, and how many blocks a line has at most.
const BLOCK: usize = 4096;
const BLOCKS: usize = 1024;

/// Accumulates `input` along `dim` into `out`, of the same shape; `indices` (int64) receives the position of each
/// running maximum or minimum. Sums and products are computed in the compute type of `out`.
pub fn cumulative(kind: Scan, input: &View, dim: usize, out: &View, indices: Option<&View>) -> Result<()> {
    out.require_own()?;
    let length = input.dim(dim).0;
    let lines = input.shape.iter().product::<usize>() / length.max(1);
    if length == 0 || lines == 0 {
        return Ok(());
    }
    if let (Some(combine), None) = (combined(kind), indices)
        && lines < MANY
        && length >= 2 * BLOCK
        && out.dtype.size() >= 4
    {
        return by_blocks(kind, combine, input, dim, out);
    }
    let (init, combine) = match kind {
        Scan::Sum => ("T(0)", "a + b"),
        Scan::Prod => ("T(1)", "a * b"),
        Scan::Max => ("lowest_()", "select(a, b, later_max(a, b))"),
        Scan::Min => ("highest_()", "select(a, b, later_min(a, b))"),
        Scan::LogSumExp => ("lowest_()", "log_add_exp_(a, b)"),
    };
    // Whether the later element `b` takes over the index.
    let takes = match kind {
        Scan::Max => "later_max(a, b)",
        Scan::Min => "later_min(a, b)",
        _ => "false",
    };
    let shape = input.without(dim).0;
    stage_aliased(&mut [*input], &[*out], &mut |views| {
        let mut kernel = Kernel::new("cumulative", TEMPLATE, compute_of(out.dtype)?)
            .read("x", views[0])
            .walk("x", &shape, &views[0].without(dim).1)
            .number("x_step", views[0].dim(dim).1)?
            .write("out", *out)
            .walk("out", &shape, &out.without(dim).1)
            .number("out_step", out.dim(dim).1)?
            .number("lines", lines)?
            .number("length", length)?
            .text("init", init)
            .text("combine", combine)
            .text("takes", takes);
        if let Some(v) = indices {
            kernel = kernel
                .write_index("indices", *v)
                .walk("indices", &shape, &v.without(dim).1)
                .number("indices_step", v.dim(dim).1)?
                .text("store", "write_indices({{indices}} + walk_indices(line) + i * {{indices_step}}, i32(at));");
        }
        if length <= SHORT || lines >= MANY {
            kernel.part("thread", "body", THREAD).launch(lines)
        } else {
            kernel.turns(length.div_ceil(256) * 2)?.part("group", "body", WHOLE).launch_groups(lines)
        }
    })
}

/// The result of a block `x` from the result `y` of all before it, where blocks may be scanned apart.
fn combined(kind: Scan) -> Option<&'static str> {
    match kind {
        Scan::Sum => Some("y + x"),
        Scan::Prod => Some("y * x"),
        Scan::LogSumExp => Some("log_add_exp_(y, x)"),
        Scan::Max | Scan::Min => None,
    }
}

fn by_blocks(kind: Scan, combine: &'static str, input: &View, dim: usize, out: &View) -> Result<()> {
    let length = out.dim(dim).0;
    let block = BLOCK.max(length.div_ceil(BLOCKS));
    let (blocks, rest) = (length / block, length % block);
    // Dimension `dim` as blocks and their elements, from its start on.
    let split = |v: &View| -> (Dims, Dims) {
        let (mut shape, mut strides) = (Dims::from(v.shape), Dims::from(v.strides));
        shape[dim] = blocks;
        shape.insert(dim + 1, block);
        strides.insert(dim, strides[dim] * block);
        (shape, strides)
    };
    let ((shape, from), (_, to)) = (split(input), split(out));
    let whole = View { shape: &shape, strides: &to, ..*out };
    cumulative(kind, &View { shape: &shape, strides: &from, ..*input }, dim + 1, &whole, None)?;
    let tail = resized(out.shape, dim, rest);
    if rest > 0 {
        let done = blocks * block;
        cumulative(kind, &part(input, dim, done, &tail), dim, &part(out, dim, done, &tail), None)?;
    }
    let (ends_shape, last_strides) = whole.without(dim + 1);
    let last =
        View { shape: &ends_shape, strides: &last_strides, offset: out.offset + (block - 1) * out.dim(dim).1, ..*out };
    let ends_strides = contiguous_strides(&ends_shape);
    let buffer = out.scratch(ends_shape.iter().product::<usize>() * out.dtype.size())?;
    let ends = View { buffer: &buffer, shape: &ends_shape, strides: &ends_strides, offset: 0, ..*out };
    cumulative(kind, &last, dim, &ends, None)?;
    let mut before = ends_strides.clone();
    before.insert(dim + 1, 0);
    let later = resized(&shape, dim, blocks - 1);
    let of_later = part(&whole, dim, 1, &later);
    let inputs = [Input::View(of_later), Input::View(View { shape: &later, strides: &before, ..ends })];
    map(&later, &inputs, &of_later, out.dtype, combine)?;
    if rest > 0 {
        let of_tail = part(out, dim, blocks * block, &tail);
        let mut strides = ends_strides.clone();
        let offset = (blocks - 1) * strides[dim];
        strides[dim] = 0;
        let inputs = [Input::View(of_tail), Input::View(View { shape: &tail, strides: &strides, offset, ..ends })];
        map(&tail, &inputs, &of_tail, out.dtype, combine)?;
    }
    Ok(())
}

/// `out[k] = b[k] + a[k] * out[k - 1]` along `dim`, or from the end where `reverse`; all of one shape.
pub fn recurrence(a: &View, b: &View, dim: usize, reverse: bool, out: &View) -> Result<()> {
    out.require_own()?;
    let length = out.dim(dim).0;
    let lines = out.numel() / length.max(1);
    if out.numel() == 0 {
        return Ok(());
    }
    let shape = out.without(dim).0;
    for first in (0..length).step_by(TURNS) {
        let mut kernel = Kernel::new("recurrence", RECURRENCE, compute_of(out.dtype)?);
        for (name, step, view) in [("a", "a_step", a), ("b", "b_step", b), ("out", "out_step", out)] {
            kernel = if name == "out" { kernel.write(name, *view) } else { kernel.read(name, *view) };
            kernel = kernel.walk(name, &shape, &view.without(dim).1);
            kernel = kernel.number(step, view.dim(dim).1)?;
        }
        kernel = kernel.number("lines", lines)?.number("length", length)?;
        kernel = kernel.number("first", first)?.number("last", (first + TURNS).min(length))?;
        kernel.text("place", if reverse { "{{length}} - 1u - i" } else { "i" }).launch(lines)?;
    }
    Ok(())
}
