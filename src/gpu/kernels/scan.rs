//! Cumulative sums, products, maxima, minima and log-sum-exps along a dimension.
//!
//! Short or many lines are one invocation's work each. A long line is a workgroup's: each invocation folds a piece,
//! the pieces' results are scanned, and each invocation walks its piece again from what lies before it.

use super::element::compute_of;
use super::kernel::Kernel;
use super::params::TURNS;
use super::stage::stage_aliased;
use super::view::View;
use crate::error::Result;
use crate::kinds::Scan;

const TEMPLATE: &str = include_str!("../../../shaders/scan.wgsl");
const THREAD: &str = include_str!("../../../shaders/scan_thread.wgsl");
const WHOLE: &str = include_str!("../../../shaders/scan_group.wgsl");
const RECURRENCE: &str = include_str!("../../../shaders/recurrence.wgsl");
const SHORT: usize = 256;
const MANY: usize = 4096;

/// Accumulates `input` along `dim` into `out`, of the same shape; `indices` (int64) receives the position of each
/// running maximum or minimum. Sums and products are computed in the compute type of `out`.
pub fn cumulative(kind: Scan, input: &View, dim: usize, out: &View, indices: Option<&View>) -> Result<()> {
    out.require_own()?;
    let length = input.dim(dim).0;
    let lines = input.shape.iter().product::<usize>() / length.max(1);
    if length == 0 || lines == 0 {
        return Ok(());
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
