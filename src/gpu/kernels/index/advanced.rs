//! Advanced indexing: one optional index tensor per leading dimension, all of one shape.
//!
//! The indices become one table of element offsets, a dispatch per indexed dimension; then elements move by it.

use super::checks::refuse_empty;
use super::words::{TABLE, Words, repeated};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::driver::GpuBuffer;
use crate::gpu::fault::Check;
use crate::gpu::kernels::element::compute_of;
use crate::gpu::kernels::kernel::Kernel;
use crate::gpu::kernels::params::ITERATIONS;
use crate::gpu::kernels::stage::stage_aliased;
use crate::gpu::kernels::template::Compute;
use crate::gpu::kernels::view::View;
use crate::layout::{Dims, contiguous_strides};

const GATHER: &str = include_str!("../../../../shaders/gather.wgsl");
/// Repeated additions of up to this many index positions are made in order.
const IN_ORDER: usize = 2048;

/// A table of offsets into `full`, and how the result's dimensions meet it.
struct Plan {
    table: GpuBuffer,
    /// Shape of the indices and its row-major strides, which are the table's.
    shape: Dims,
    /// Over the result: strides of the table and of the full tensor (zero where the other is walked).
    table_strides: Dims,
    full_strides: Dims,
    result: Dims,
}

/// `out = input[indices]`; the result has the indexed dimensions replaced by the indices' shape, in place where they
/// are adjacent, in front otherwise.
pub fn index_get(input: &View, indices: &[Option<View>], out: &View) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    stage_aliased(&mut [*input], &[*out], &mut |views| {
        let plan = plan(&views[0], indices)?;
        let (x, to) = (Words::new(&views[0]), Words::new(out));
        let shape = to.shape_with(&plan.result);
        let n = shape.iter().product();
        Kernel::new("index_get", TABLE, Compute::I32)
            .read("x", x.view())
            .read("table", plan.view())
            .write("out", to.view())
            .walk("x", &shape, &x.strides_with(&plan.full_strides))
            .walk("table", &shape, &repeated(&plan.table_strides, x.scale))
            .walk("out", &shape, &to.strides)
            .number("units", n)?
            .number("scale", x.scale)?
            .text("combine", "v")
            .part(
                "",
                "body",
                "let place = read_table({{table}} + walk_table(unit));
    if (place >= 0) {
        write_out({{out}} + walk_out(unit), read_x({{x}} + walk_x(unit) + u32(place) * {{scale}}));
    }",
            )
            .launch(n)
    })
}

/// `out[indices] = values`, or `+=` if `accumulate`; `values` has the result's shape (broadcast with strides of zero).
pub fn index_put(out: &View, indices: &[Option<View>], values: &View, accumulate: bool) -> Result<()> {
    if values.shape.contains(&0) {
        return Ok(());
    }
    if accumulate || values.dtype != out.dtype {
        out.require_own()?;
    }
    stage_aliased(&mut [*values], &[*out], &mut |views| {
        let plan = plan(out, indices)?;
        if accumulate { add(out, &plan, &views[0]) } else { put(out, &plan, &views[0]) }
    })
}

fn put(out: &View, plan: &Plan, values: &View) -> Result<()> {
    let (from, to) = (Words::new(values), Words::new(out));
    let shape = to.shape_with(&plan.result);
    let n = shape.iter().product();
    Kernel::new("index_put", TABLE, Compute::I32)
        .read("values", from.view())
        .read("table", plan.view())
        .write("out", to.view())
        .walk("values", &shape, &from.strides_with(values.strides))
        .walk("table", &shape, &repeated(&plan.table_strides, to.scale))
        .walk("out", &shape, &to.strides_with(&plan.full_strides))
        .number("units", n)?
        .number("scale", to.scale)?
        .text("combine", "v")
        .part(
            "",
            "body",
            "let place = read_table({{table}} + walk_table(unit));
    if (place >= 0) {
        write_out({{out}} + walk_out(unit) + u32(place) * {{scale}}, read_values({{values}} + walk_values(unit)));
    }",
        )
        .launch(n)
}

/// In order where there are few positions (or the dtype has no atomic updates), else by compare and swap.
fn add(out: &View, plan: &Plan, values: &View) -> Result<()> {
    let positions: usize = plan.shape.iter().product();
    let parallel = positions > IN_ORDER && out.dtype.size() <= 4;
    let iterations = if parallel { positions } else { ITERATIONS };
    (0..positions).step_by(iterations).try_for_each(|first| {
        let last = (first + iterations).min(positions);
        add_some(out, plan, values, parallel, first, last)
    })
}

/// Adds the values of every position at once, or of those from `first` to `last` in order.
fn add_some(out: &View, plan: &Plan, values: &View, parallel: bool, first: usize, last: usize) -> Result<()> {
    let is_index = |d: usize| plan.full_strides[d] == 0 && plan.table_strides[d] != 0;
    let rest: Dims = (0..plan.result.len()).filter(|&d| !is_index(d)).collect();
    let pick = |list: &[usize], dims: &[usize]| dims.iter().map(|&d| list[d]).collect::<Dims>();
    let indexed: Dims = (0..plan.result.len()).filter(|&d| is_index(d)).collect();
    let (rest_shape, index_shape) = (pick(&plan.result, &rest), pick(&plan.result, &indexed));
    let columns: usize = rest_shape.iter().product();
    let units = if parallel { columns * (last - first) } else { columns };
    let kernel = Kernel::new("index_add", TABLE, compute_of(out.dtype)?)
        .read("values", *values)
        .read_as("table", plan.view(), Compute::I32)
        .walk("values", &rest_shape, &pick(values.strides, &rest))
        .walk("positions", &index_shape, &pick(values.strides, &indexed))
        .walk("table", &index_shape, &pick(&plan.table_strides, &indexed))
        .walk("out", &rest_shape, &pick(&plan.full_strides, &rest))
        .number("units", units)?
        .number("first", first)?
        .number("last", last)?
        .number("columns", columns)?
        .text("combine", "old + v");
    let kernel = if parallel { kernel.update("out", *out) } else { kernel.write("out", *out) };
    let one = "let place = read_table({{table}} + walk_table(q));
        if (place >= 0) {
            let v = read_values({{values}} + walk_values(column) + walk_positions(q));
            let at = {{out}} + walk_out(column) + u32(place);
            {{store}}
        }";
    let (head, store) = if parallel {
        ("let q = unit / {{columns}};\n    let column = unit % {{columns}};\n    {", "update_out(at, v);")
    } else {
        (
            "let column = unit;\n    for (var q = {{first}}; q < {{last}}; q++) {",
            "write_out(at, combine(read_out(at), v));",
        )
    };
    let body = format!("{head}\n        {}\n    }}", one.replace("{{store}}", store));
    kernel.text("body", body).launch(units)
}

impl Plan {
    fn view(&self) -> View<'_> {
        View { buffer: &self.table, dtype: DType::I32, shape: &self.result, strides: &self.table_strides, offset: 0 }
    }
}

fn plan(full: &View, indices: &[Option<View>]) -> Result<Plan> {
    let Some(shape) = indices.iter().flatten().next().map(|v| Dims::from(v.shape)) else {
        return Err(Error::internal("advanced indexing without an index"));
    };
    let n = shape.iter().product::<usize>();
    let table = full.driver().zeroed(n.max(1) * 4)?;
    let dense = contiguous_strides(&shape);
    for (dim, index) in indices.iter().enumerate() {
        if let Some(index) = index {
            let to = View { buffer: &table, dtype: DType::I32, shape: &shape, strides: &dense, offset: 0 };
            accumulate_offsets(index, full.shape[dim], full.strides[dim], dim, &to)?;
        }
    }
    let is_indexed = |d: usize| indices.get(d).is_some_and(|i| i.is_some());
    let indexed: Dims = (0..full.shape.len()).filter(|&d| is_indexed(d)).collect();
    let adjacent = indexed.windows(2).all(|w| w[1] == w[0] + 1);
    let place = if adjacent { indexed[0] } else { 0 };
    let pick = |list: &[usize]| (0..full.shape.len()).filter(|&d| !is_indexed(d)).map(|d| list[d]).collect::<Dims>();
    let (mut result, mut full_strides) = (pick(full.shape), pick(full.strides));
    let mut table_strides: Dims = result.iter().map(|_| 0).collect();
    result.insert_many(place, shape.iter().copied());
    table_strides.insert_many(place, dense.iter().copied());
    full_strides.insert_many(place, shape.iter().map(|_| 0));
    Ok(Plan { table, shape, table_strides, full_strides, result })
}

/// Adds one dimension's part to the table; a bad index makes the entry negative for good.
fn accumulate_offsets(index: &View, size: usize, stride: usize, dim: usize, table: &View) -> Result<()> {
    let n = index.numel();
    if n == 0 {
        return Ok(());
    }
    refuse_empty(index, Check::Bounds, dim, size)?;
    Kernel::new("index_table", GATHER, Compute::I32)
        .index("index", *index)
        .write("out", *table)
        .walk("index", index.shape, index.strides)
        .walk("out", table.shape, table.strides)
        .number("count", n)?
        .number("step", stride)?
        .check(Check::Bounds, dim, size)?
        .text("otherwise", "write_out(at, -2147483647);")
        .part(
            "",
            "body",
            "let old = read_out(at);\n        write_out(at, select(old, old + i32(i * {{step}}), old >= 0));",
        )
        .launch(n)
}
