//! Sorting along a dimension. Positions are ordered; elements stay where they are until the last step.
//!
//! Blocks of 64 are ordered by counting: an element's place is how many come before it. Then runs merge in pairs of
//! doubling width: its place in its own run, and by binary search how many of the other run come before it. Of equal
//! elements the earlier position comes first, so every sort is stable and no line needs padding.

use super::element::compute_of;
use super::kernel::Kernel;
use super::map::{copy, ramp};
use super::stage::stage_aliased;
use super::view::{Input, View};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::driver::{GpuBuffer, too_large};

const TEMPLATE: &str = include_str!("../../../shaders/sort.wgsl");
/// Elements ordered by counting; the code below says 64.
const BLOCK: usize = 64;
const COUNT: &str = "let first = i & ~63u;
    let v = element(line, i);
    var place = first;
    for (var j = first; j < min(first + 64u, {{per_line}}); j++) {
        let other = element(line, j);
        place += u32(before(other, v) || (j < i && !before(v, other)));
    }
    write_order(line * {{per_line}} + place, i32(i));";
const MERGE: &str = "let start = i / {{width}} / 2u * {{width}} * 2u;
    let middle = min(start + {{width}}, {{per_line}});
    let is_left = i < middle;
    let at = u32(read_placed(unit));
    let v = element(line, at);
    let other = select(start, middle, is_left);
    var low = other;
    var high = select(middle, min(middle + {{width}}, {{per_line}}), is_left);
    while (low < high) {
        let half = (low + high) / 2u;
        let u = element(line, u32(read_placed(line * {{per_line}} + half)));
        if (select(!before(v, u), before(u, v), is_left)) {
            low = half + 1u;
        } else {
            high = half;
        }
    }
    let own = i - select(middle, start, is_left);
    write_order(line * {{per_line}} + start + own + low - other, i32(at));";
const STORE: &str = "let at = read_placed(line * {{length}} + {{first}} + i);
    write_indices({{indices}} + walk_indices(line) + i * {{indices_step}}, at);
    write_values({{values}} + walk_values(line) + i * {{values_step}}, element(line, u32(at)));";

/// How elements are compared: by value, in the wanted direction.
const ELEMENTS: &str = "fn element(line: u32, at: u32) -> T {
    return read_x({{x}} + walk_x(line) + at * {{x_step}});
}
fn before(a: T, b: T) -> bool {
    return {{before}};
}";
/// How rows are: by their positions; of some of the columns the first that differs decides.
const ROWS: &str = "fn element(line: u32, at: u32) -> u32 {
    return at;
}
fn before(a: u32, b: u32) -> bool {
    for (var i = {{from}}; i < {{to}}; i++) {
        let x = read_x({{x}} + a * {{x_step}} + i * {{column_step}});
        let y = read_x({{x}} + b * {{x_step}} + i * {{column_step}});
        if (ordered(x, y)) { return true; }
        if (ordered(y, x)) { return false; }
    }
    return false;
}";
/// Columns that one step of a comparison of rows looks at.
const COLUMNS: usize = 512;

/// Sorts `input` along `dim` and writes what stands from place `first` on: as many elements and their positions
/// (int64) as `values` and `indices` have along `dim`.
pub fn sort(input: &View, dim: usize, descending: bool, first: usize, values: &View, indices: &View) -> Result<()> {
    input.require_own()?;
    let (length, wanted) = (input.shape[dim], values.shape[dim]);
    if input.numel() == 0 || wanted == 0 {
        return Ok(());
    }
    let by = By::Value(if descending { "ordered(b, a)" } else { "ordered(a, b)" });
    stage_aliased(&mut [*input], &[*values, *indices], &mut |views| {
        let lines = Lines { input: views[0], dim, count: input.numel() / length, by };
        let order = Positions::alloc(input, input.numel())?;
        lines.kernel("count", COUNT, length)?.write_index("order", order.view()).launch(order.count[0])?;
        let order = lines.merged(order, BLOCK)?;
        let store = lines.kernel("store", STORE, wanted)?.index("placed", order.view());
        let store = store.number("length", length)?.number("first", first)?;
        let (others, value_strides) = values.without(lines.dim);
        store
            .write("values", *values)
            .walk("values", &others, &value_strides)
            .number("values_step", values.strides[dim])?
            .write_index("indices", *indices)
            .walk("indices", &others, &indices.without(lines.dim).1)
            .number("indices_step", indices.strides[dim])?
            .launch(lines.count * wanted)
    })
}

/// Writes the positions that put the rows of a matrix in lexicographic order; equal rows keep theirs. Sorts are stable:
/// the last columns go first.
pub fn sort_rows(input: &View, positions: &View) -> Result<()> {
    input.require_own()?;
    if input.shape[0] == 0 {
        return Ok(());
    }
    let mut order = Positions::alloc(input, input.shape[0])?;
    ramp(Scalar::Int(0), Scalar::Int(1), &order.view())?;
    for from in (0..input.shape[1]).step_by(COLUMNS).rev() {
        let by = By::Columns(from, (from + COLUMNS).min(input.shape[1]));
        order = Lines { input: *input, dim: 0, count: 1, by }.merged(order, 1)?;
    }
    copy(&Input::View(order.view()), positions)
}

/// Positions in the making, as int32.
struct Positions {
    buffer: GpuBuffer,
    count: [usize; 1],
}

impl Positions {
    fn alloc(on: &View, n: usize) -> Result<Positions> {
        if n >= 1 << 31 {
            return Err(too_large());
        }
        Ok(Positions { buffer: on.scratch(4 * n)?, count: [n] })
    }
    fn view(&self) -> View<'_> {
        View { buffer: &self.buffer, dtype: DType::I32, shape: &self.count, strides: &[1], offset: 0 }
    }
}

#[derive(Clone, Copy)]
enum By {
    /// The elements by an expression over `a` and `b`.
    Value(&'static str),
    /// The rows of a matrix by the columns of a range.
    Columns(usize, usize),
}

/// `count` lines along a dimension, and how what stands in them is compared.
struct Lines<'a> {
    input: View<'a>,
    dim: usize,
    count: usize,
    by: By,
}

impl<'a> Lines<'a> {
    /// Merges runs of `width` places until each line is one run.
    fn merged(&self, mut order: Positions, mut width: usize) -> Result<Positions> {
        let length = self.input.shape[self.dim];
        let mut next = Positions::alloc(&self.input, order.count[0])?;
        while width < length {
            let merge = self.kernel("merge", MERGE, length)?.index("placed", order.view());
            merge.write_index("order", next.view()).number("width", width)?.launch(order.count[0])?;
            std::mem::swap(&mut order, &mut next);
            width *= 2;
        }
        Ok(order)
    }
    /// A step that works on `per_line` places of each line.
    fn kernel(&self, step: &'static str, body: &'static str, per_line: usize) -> Result<Kernel<'a>> {
        let (family, keys) = match self.by {
            By::Value(_) => ("sort", ELEMENTS),
            By::Columns(..) => ("sort_rows", ROWS),
        };
        let kernel = Kernel::new(family, TEMPLATE, compute_of(self.input.dtype)?)
            .read("x", self.input)
            .number("x_step", self.input.strides[self.dim])?
            .number("units", self.count * per_line)?
            .number("per_line", per_line)?
            .part(step, "keys", keys)
            .part(step, "body", body);
        let (others, strides) = self.input.without(self.dim);
        match self.by {
            By::Value(before) => Ok(kernel.text("before", before).walk("x", &others, &strides)),
            By::Columns(from, to) => kernel.number("from", from)?.number("to", to)?.number("column_step", strides[0]),
        }
    }
}
