//! Sorting along a dimension.
//!
//! Blocks are ordered first: of short lines by counting, an element's place is how many come before it; of long ones in
//! workgroup memory. Then runs merge in pairs of doubling width: its place in its own run, and by binary search how many of
//! the other run come before it. Of equal elements the earlier position comes first, so every sort is stable and no line
//! needs padding. Elements move with their positions; rows of a matrix stay where they are.

use super::element::{compute_of, dtype_of};
use super::kernel::Kernel;
use super::map::{copy, ramp};
use super::stage::stage_aliased;
use super::template::Compute;
use super::view::{Input, View};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::driver::{GpuBuffer, too_large};

const TEMPLATE: &str = include_str!("../../../shaders/sort.wgsl");
const IN_MEMORY: &str = include_str!("../../../shaders/sort_block.wgsl");
/// Lines that are ordered by counting; the code below says 64.
const SHORT: usize = 64;
const COUNT: &str = "let first = i & ~63u;
    let v = element(line, i);
    var place = first;
    for (var j = first; j < min(first + 64u, {{per_line}}); j++) {
        let other = element(line, j);
        place += u32(before(other, v) || (j < i && !before(v, other)));
    }
    write_order(line * {{per_line}} + place, i32(i));
    write_moved(line * {{per_line}} + place, v);";
const MERGE: &str = "let start = i / {{width}} / 2u * {{width}} * 2u;
    let middle = min(start + {{width}}, {{per_line}});
    let is_left = i < middle;
    let v = key(unit);
    let other = select(start, middle, is_left);
    var low = other;
    var high = select(middle, min(middle + {{width}}, {{per_line}}), is_left);
    while (low < high) {
        let half = (low + high) / 2u;
        let u = key(line * {{per_line}} + half);
        if (select(!before(v, u), before(u, v), is_left)) {
            low = half + 1u;
        } else {
            high = half;
        }
    }
    let own = i - select(middle, start, is_left);
    let to = line * {{per_line}} + start + own + low - other;
    write_order(to, i32(read_placed(unit)));
    {{move}}";
const STORE: &str = "let place = line * {{length}} + {{first}} + i;
    write_indices({{indices}} + walk_indices(line) + i * {{indices_step}}, read_placed(place));
    write_values({{values}} + walk_values(line) + i * {{values_step}}, key(place));";

/// How elements are compared: by value, in the wanted direction.
const ELEMENTS: &str = "fn element(line: u32, at: u32) -> T {
    return read_x({{x}} + walk_x(line) + at * {{x_step}});
}
fn before(a: T, b: T) -> bool {
    return {{before}};
}";
const KEYS: &str = "fn key(place: u32) -> T {
    return read_keys({{keys}} + place);
}
fn before(a: T, b: T) -> bool {
    return {{before}};
}";
/// How rows are: by their positions; of some of the columns the first that differs decides.
const ROWS: &str = "fn key(place: u32) -> u32 {
    return u32(read_placed(place));
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
    let by = if descending { ["ordered(b, a)", "ordered(a, b)"] } else { ["ordered(a, b)", "ordered(b, a)"] };
    stage_aliased(&mut [*input], &[*values, *indices], &mut |views| {
        let lines = Lines { input: views[0], dim, count: input.numel() / length, by };
        let sorted = lines.sorted()?;
        let (others, value_strides) = values.without(dim);
        lines
            .kernel(["store", KEYS, STORE], wanted)?
            .index("placed", sorted.order.view())
            .read("keys", sorted.keys.view())
            .number("length", length)?
            .number("first", first)?
            .write("values", *values)
            .walk("values", &others, &value_strides)
            .number("values_step", values.strides[dim])?
            .write_index("indices", *indices)
            .walk("indices", &others, &indices.without(dim).1)
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
    let mut order = Scratch::positions(input, input.shape[0])?;
    ramp(Scalar::Int(0), Scalar::Int(1), &order.view())?;
    for from in (0..input.shape[1]).step_by(COLUMNS).rev() {
        order = merged_rows(input, [from, (from + COLUMNS).min(input.shape[1])], order)?;
    }
    copy(&Input::View(order.view()), positions)
}

/// Merges rows by the columns of a range until there is one run.
fn merged_rows(input: &View, [from, to]: [usize; 2], order: Scratch) -> Result<Scratch> {
    let length = input.shape[0];
    let next = || Scratch::positions(input, length);
    doubled(order, next, 1, length, |order, next, width| {
        step("sort_rows", compute_of(input.dtype)?, ["merge", ROWS, MERGE], 1, length)?
            .read("x", *input)
            .index("placed", order.view())
            .write_index("order", next.view())
            .number("x_step", input.strides[0])?
            .number("column_step", input.strides[1])?
            .number("from", from)?
            .number("to", to)?
            .number("width", width)?
            .launch(length)
    })
}

/// Takes a step from `sorted` into what `next` makes, and back, for runs of `width` places and of doubling widths, until one run
/// has them all.
fn doubled<S>(
    mut sorted: S,
    next: impl FnOnce() -> Result<S>,
    mut width: usize,
    length: usize,
    merge: impl Fn(&S, &S, usize) -> Result<()>,
) -> Result<S> {
    if width >= length {
        return Ok(sorted);
    }
    let mut next = next()?;
    while width < length {
        merge(&sorted, &next, width)?;
        std::mem::swap(&mut sorted, &mut next);
        width *= 2;
    }
    Ok(sorted)
}

/// A step, by its name, how it compares and its body, that works on `per_line` places of each of so many lines.
fn step<'b>(
    family: &'static str,
    compute: Compute,
    [name, comparison, body]: [&'static str; 3],
    lines: usize,
    per_line: usize,
) -> Result<Kernel<'b>> {
    Kernel::new(family, TEMPLATE, compute)
        .part(name, "comparison", comparison)
        .part(name, "body", body)
        .number("units", lines * per_line)?
        .number("per_line", per_line)
}

/// Elements in the making.
struct Scratch {
    buffer: GpuBuffer,
    dtype: DType,
    count: [usize; 1],
}

impl Scratch {
    fn new(on: &View, n: usize, dtype: DType) -> Result<Scratch> {
        if n >= 1 << 31 {
            return Err(too_large());
        }
        Ok(Scratch { buffer: on.scratch(dtype.size() * n)?, dtype, count: [n] })
    }
    fn positions(on: &View, n: usize) -> Result<Scratch> {
        Scratch::new(on, n, DType::I32)
    }
    fn view(&self) -> View<'_> {
        View { buffer: &self.buffer, dtype: self.dtype, shape: &self.count, strides: &[1], offset: 0 }
    }
}

/// Elements and where they came from.
struct Sorted {
    order: Scratch,
    keys: Scratch,
}

impl Sorted {
    fn new(on: &View) -> Result<Sorted> {
        let keys = Scratch::new(on, on.numel(), dtype_of(compute_of(on.dtype)?))?;
        Ok(Sorted { order: Scratch::positions(on, on.numel())?, keys })
    }
}

/// `count` lines along a dimension, and the expressions over `a` and `b` that say whether a comes before b, or b before a.
struct Lines<'a> {
    input: View<'a>,
    dim: usize,
    count: usize,
    by: [&'static str; 2],
}

impl<'a> Lines<'a> {
    /// With the elements where they lie.
    fn placed<'b>(&self, kernel: Kernel<'b>) -> Result<Kernel<'b>>
    where
        'a: 'b,
    {
        let (others, strides) = self.input.without(self.dim);
        let kernel = kernel.read("x", self.input).walk("x", &others, &strides);
        kernel.number("x_step", self.input.strides[self.dim])
    }
    fn sorted(&self) -> Result<Sorted> {
        let length = self.input.shape[self.dim];
        let sorted = Sorted::new(&self.input)?;
        if length <= SHORT {
            let kernel = self.placed(self.kernel(["count", ELEMENTS, COUNT], length)?)?;
            kernel
                .write_index("order", sorted.order.view())
                .write("moved", sorted.keys.view())
                .launch(sorted.order.count[0])?;
            return Ok(sorted);
        }
        let (tile, variant) = if length <= 256 { (256, "256") } else { (1024, "1024") };
        self.placed(Kernel::new("sort_block", IN_MEMORY, compute_of(self.input.dtype)?))?
            .write_index("order", sorted.order.view())
            .write("moved", sorted.keys.view())
            .number("length", length)?
            .number("lines", self.count)?
            .text("before", self.by[0])
            .text("after", self.by[1])
            .constant("TILE", tile)
            .variant(variant)
            .launch_groups(self.count * length.div_ceil(tile))?;
        self.merged(sorted, tile)
    }
    /// Merges runs of `width` places until each line is one run.
    fn merged(&self, sorted: Sorted, width: usize) -> Result<Sorted> {
        let length = self.input.shape[self.dim];
        doubled(
            sorted,
            || Sorted::new(&self.input),
            width,
            length,
            |sorted, next, width| {
                self.kernel(["merge", KEYS, MERGE], length)?
                    .index("placed", sorted.order.view())
                    .read("keys", sorted.keys.view())
                    .write_index("order", next.order.view())
                    .write("moved", next.keys.view())
                    .text("move", "write_moved(to, v);")
                    .number("width", width)?
                    .launch(sorted.order.count[0])
            },
        )
    }
    /// A step that compares elements.
    fn kernel<'b>(&self, code: [&'static str; 3], per_line: usize) -> Result<Kernel<'b>> {
        let kernel = step("sort", compute_of(self.input.dtype)?, code, self.count, per_line)?;
        Ok(kernel.text("before", self.by[0]))
    }
}
