//! Cumulative sums, products, maxima, minima and log-sum-exps along a dimension.
//!
//! Short lines, and many that lie beside each other, are one invocation's work each. A long line is a workgroup's, which visits it in
//! tiles: each invocation scans a few elements, the results of these runs are scanned, and all is combined with what came before. Few
//! and very long lines are cut into blocks: each is folded, the results are scanned, and each block is scanned from what lies before it.

use super::element::compute_of;
use super::kernel::Kernel;
use super::map::copy;
use super::params::ITERATIONS;
use super::reduce::{beside, reduce};
use super::stage::stage_aliased;
use super::view::{Input, View, part, resized};
use crate::dtype::Scalar;
use crate::error::Result;
use crate::kinds::{Reduce, Scan};
use crate::layout::{Dims, contiguous_strides};

const TEMPLATE: &str = include_str!("../../../shaders/scan.wgsl");
const THREAD: &str = include_str!("../../../shaders/scan_thread.wgsl");
const WHOLE: &str = include_str!("../../../shaders/scan_group.wgsl");
const RECURRENCE: &str = include_str!("../../../shaders/recurrence.wgsl");
/// Lines up to this length are an invocation's work; others that lie beside each other are where there are that many.
const SHORT: usize = 32;
const MANY: usize = 1024;
/// Elements of a block of a line that is cut, the most blocks of one, and the most lines that are: contiguous, and beside each
/// other.
const BLOCK: [usize; 2] = [4096, 256];
const BLOCKS: usize = 1024;
const FEW: [usize; 2] = [1024, 65_536];

/// Accumulates `input` along `dim` into `out`, of the same shape; `indices` (int64) receives the position of each
/// running maximum or minimum. Sums and products are computed in the compute type of `out`.
pub fn cumulative(kind: Scan, input: &View, dim: usize, out: &View, indices: Option<&View>) -> Result<()> {
    out.require_own()?;
    let length = input.dim(dim).0;
    let lines = input.shape.iter().product::<usize>() / length.max(1);
    if length == 0 || lines == 0 {
        return Ok(());
    }
    let lie = usize::from(beside(input, &[dim]));
    if let (Some(fold), None) = (folded(kind), indices)
        && lines < FEW[lie]
        && length >= 2 * BLOCK[lie]
        && out.dtype.size() >= 4
    {
        return by_blocks(kind, fold, input, dim, out);
    }
    lines_of(kind, input, dim, out, indices, None)
}

/// A scan of every line; `before` has the result that precedes each.
fn lines_of(
    kind: Scan,
    input: &View,
    dim: usize,
    out: &View,
    indices: Option<&View>,
    before: Option<&View>,
) -> Result<()> {
    let (length, shape) = (input.dim(dim).0, input.without(dim).0);
    let lines = shape.iter().product::<usize>();
    let combine = match kind {
        Scan::Sum => "a + b",
        Scan::Prod => "a * b",
        Scan::Max => "select(a, b, later_max(a, b))",
        Scan::Min => "select(a, b, later_min(a, b))",
        Scan::LogSumExp => "log_add_exp_(a, b)",
    };
    // Whether the later element `b` takes over the index.
    let takes = match kind {
        Scan::Max => "later_max(a, b)",
        Scan::Min => "later_min(a, b)",
        _ => "false",
    };
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
            .text("combine", combine)
            .text("takes", takes);
        if let Some(v) = indices {
            kernel = kernel
                .write_index("indices", *v)
                .walk("indices", &shape, &v.without(dim).1)
                .number("indices_step", v.dim(dim).1)?
                .text("store", "write_indices({{indices}} + walk_indices(line) + i * {{indices_step}}, i32(at));");
        }
        kernel = match before {
            Some(v) => kernel
                .read("before", *v)
                .walk("before", v.shape, v.strides)
                .text("begun", "read_before({{before}} + walk_before(line))")
                .text("goes_on", "true"),
            None => kernel.text("begun", "T(0)").text("goes_on", "false"),
        };
        if length <= SHORT || (lines >= MANY && length <= ITERATIONS && beside(&views[0], &[dim])) {
            return kernel.iterations(length)?.part("thread", "body", THREAD).launch(lines);
        }
        // Of each tile of 1,024: four elements in three loops, eight steps of a scan.
        kernel.iterations(length.div_ceil(1024) * 20)?.part("group", "body", WHOLE).launch_groups(lines)
    })
}

/// The result of a whole block, where blocks may be folded apart, and what precedes the first.
fn folded(kind: Scan) -> Option<(Reduce, Scalar)> {
    match kind {
        Scan::Sum => Some((Reduce::Sum, Scalar::Int(0))),
        Scan::Prod => Some((Reduce::Prod, Scalar::Int(1))),
        Scan::LogSumExp => Some((Reduce::LogSumExp, Scalar::Float(f64::NEG_INFINITY))),
        Scan::Max | Scan::Min => None,
    }
}

/// Folds blocks of the lines, scans their results, and scans each block from what precedes it.
fn by_blocks(kind: Scan, (fold, nothing): (Reduce, Scalar), input: &View, dim: usize, out: &View) -> Result<()> {
    let length = out.dim(dim).0;
    let block = BLOCK[usize::from(beside(input, &[dim]))].max(length.div_ceil(BLOCKS));
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
    let (whole, given) =
        (View { shape: &shape, strides: &to, ..*out }, View { shape: &shape, strides: &from, ..*input });
    // What precedes each block, and then the whole tail.
    let ends_shape = resized(out.shape, dim, blocks + 1);
    let ends_strides = contiguous_strides(&ends_shape);
    let buffer = out.scratch(ends_shape.iter().product::<usize>() * out.dtype.size())?;
    let ends = View { buffer: &buffer, shape: &ends_shape, strides: &ends_strides, offset: 0, ..*out };
    let one = resized(out.shape, dim, 1);
    copy(&Input::Scalar(nothing), &part(&ends, dim, 0, &one))?;
    let mut folds = resized(out.shape, dim, blocks);
    folds.insert(dim + 1, 1);
    let mut strides = ends_strides.clone();
    strides.insert(dim + 1, 0);
    reduce(fold, &given, &[dim + 1], &View { shape: &folds, strides: &strides, offset: strides[dim], ..ends })?;
    cumulative(kind, &ends, dim, &ends, None)?;
    let first = resized(out.shape, dim, blocks);
    lines_of(kind, &given, dim + 1, &whole, None, Some(&part(&ends, dim, 0, &first)))?;
    if rest > 0 {
        let (tail, done) = (resized(out.shape, dim, rest), blocks * block);
        let last = part(&ends, dim, blocks, &one);
        let (shape, strides) = last.without(dim);
        let last = View { shape: &shape, strides: &strides, ..last };
        lines_of(kind, &part(input, dim, done, &tail), dim, &part(out, dim, done, &tail), None, Some(&last))?;
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
    for first in (0..length).step_by(ITERATIONS) {
        let mut kernel = Kernel::new("recurrence", RECURRENCE, compute_of(out.dtype)?);
        for (name, step, view) in [("a", "a_step", a), ("b", "b_step", b), ("out", "out_step", out)] {
            kernel = if name == "out" { kernel.write(name, *view) } else { kernel.read(name, *view) };
            kernel = kernel.walk(name, &shape, &view.without(dim).1);
            kernel = kernel.number(step, view.dim(dim).1)?;
        }
        kernel = kernel.number("lines", lines)?.number("length", length)?;
        kernel = kernel.number("first", first)?.number("last", (first + ITERATIONS).min(length))?;
        kernel.text("place", if reverse { "{{length}} - 1u - i" } else { "i" }).launch(lines)?;
    }
    Ok(())
}
