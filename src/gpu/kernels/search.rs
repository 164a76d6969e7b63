//! Where values belong in sorted sequences.

use super::element::compute_of;
use super::kernel::Kernel;
use super::view::View;
use crate::dtype::DType;
use crate::error::Result;

const TEMPLATE: &str = include_str!("../../../shaders/search.wgsl");

/// For each value the first place of its line of `sorted` (along the last dimension) where it may stand; with
/// `right` the last one. A one-dimensional `sorted` is the line of all values. Compared in `compute`.
pub fn search(sorted: &View, values: &View, right: bool, compute: DType, out: &View) -> Result<()> {
    for dtype in [sorted.dtype, values.dtype, compute] {
        out.require(dtype)?;
    }
    let units = values.numel();
    if units == 0 {
        return Ok(());
    }
    let last = sorted.shape.len().saturating_sub(1);
    let lines: usize = sorted.shape[..last].iter().product();
    Kernel::new("search", TEMPLATE, compute_of(compute)?)
        .read("sorted", *sorted)
        .walk("sorted", &sorted.shape[..last], &sorted.strides[..last])
        .number("length", sorted.shape.last().copied().unwrap_or(1))?
        .number("step", sorted.strides.last().copied().unwrap_or(0))?
        .read("values", *values)
        .walk("values", values.shape, values.strides)
        .write_index("out", *out)
        .walk("out", out.shape, out.strides)
        .number("units", units)?
        .number("per_line", units / lines.max(1))?
        .text("beyond", if right { "gt_" } else { "ge_" })
        .launch(units)
}
