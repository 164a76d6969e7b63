//! Sorting along a dimension. Positions are ordered; elements stay where they are until the last step.
//!
//! Blocks of 64 are ordered by counting: an element's place is how many come before it. Then runs merge in pairs of
//! doubling width: its place in its own run, and by binary search how many of the other run come before it. Of equal
//! elements the earlier position comes first, so every sort is stable and no line needs padding.

use super::GpuBuffer;
use super::adapter::require;
use super::kernel::{Kernel, apart};
use super::launch::too_large;
use super::reduce::compute_of;
use super::types::View;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Dims;

const TEMPLATE: &str = include_str!("../../shaders/sort.wgsl");
/// Elements ordered by counting; the code below says 64.
const BLOCK: usize = 64;
const COUNT: &str = "let first = i & ~63u;
    let v = element(line, i);
    var place = first;
    for (var j = first; j < min(first + 64u, {{per_line}}); j++) {
        let other = element(line, j);
        place += u32(before(other, v) || (j < i && !before(v, other)));
    }
    write_to(line * {{per_line}} + place, i32(i));";
const MERGE: &str = "let start = i / {{width}} / 2u * {{width}} * 2u;
    let middle = min(start + {{width}}, {{per_line}});
    let is_left = i < middle;
    let at = u32(read_order(unit));
    let v = element(line, at);
    let other = select(start, middle, is_left);
    var low = other;
    var high = select(middle, min(middle + {{width}}, {{per_line}}), is_left);
    while (low < high) {
        let half = (low + high) / 2u;
        let u = element(line, u32(read_order(line * {{per_line}} + half)));
        if (select(!before(v, u), before(u, v), is_left)) {
            low = half + 1u;
        } else {
            high = half;
        }
    }
    let own = i - select(middle, start, is_left);
    write_to(line * {{per_line}} + start + own + low - other, i32(at));";
const STORE: &str = "let at = read_order(line * {{length}} + {{first}} + i);
    write_indices({{indices}} + walk_indices(line) + i * {{indices_step}}, at);
    write_values({{values}} + walk_values(line) + i * {{values_step}}, element(line, u32(at)));";

/// Sorts `input` along `dim` and writes what stands from place `first` on: as many elements and their positions
/// (int64) as `values` and `indices` have along `dim`.
pub fn sort(input: &View, dim: usize, descending: bool, first: usize, values: &View, indices: &View) -> Result<()> {
    require(input.dtype)?;
    let (length, wanted) = (input.shape[dim], values.shape[dim]);
    if input.numel() == 0 || wanted == 0 {
        return Ok(());
    }
    if input.numel() >= 1 << 31 {
        return Err(too_large());
    }
    apart(&mut [*input], &[*values, *indices], &mut |views| {
        let lines = Lines { input: &views[0], dim, descending };
        let shape = [input.numel()];
        let both = [GpuBuffer::alloc(4 * shape[0])?, GpuBuffer::alloc(4 * shape[0])?];
        let order = |i: usize| View { buffer: &both[i], dtype: DType::I32, shape: &shape, strides: &[1], offset: 0 };
        let (mut now, mut width) = (0, BLOCK);
        lines.kernel("count", COUNT, length)?.write_index("to", order(0)).launch(shape[0])?;
        while width < length {
            let merge =
                lines.kernel("merge", MERGE, length)?.index("order", order(now)).write_index("to", order(1 - now));
            merge.number("width", width)?.launch(shape[0])?;
            (now, width) = (1 - now, width * 2);
        }
        let store = lines.kernel("store", STORE, wanted)?.index("order", order(now));
        let store = store.number("length", length)?.number("first", first)?;
        let (others, value_strides) = lines.others(values);
        store
            .write("values", *values)
            .walk("values", &others, &value_strides)
            .number("values_step", values.strides[dim])?
            .write_index("indices", *indices)
            .walk("indices", &others, &lines.others(indices).1)
            .number("indices_step", indices.strides[dim])?
            .launch(shape[0] / length * wanted)
    })
}

struct Lines<'a> {
    input: &'a View<'a>,
    dim: usize,
    descending: bool,
}

impl<'a> Lines<'a> {
    /// Shape and strides of a view without the dimension.
    fn others(&self, view: &View) -> (Dims, Dims) {
        let rest = |list: &[usize]| (0..list.len()).filter(|&d| d != self.dim).map(|d| list[d]).collect::<Dims>();
        (rest(view.shape), rest(view.strides))
    }
    /// A step that works on `per_line` places of each line.
    fn kernel(&self, step: &'static str, body: &'static str, per_line: usize) -> Result<Kernel<'a>> {
        let (others, strides) = self.others(self.input);
        let lines: usize = others.iter().product();
        Kernel::new("sort", TEMPLATE, compute_of(self.input.dtype)?)
            .read("x", *self.input)
            .walk("x", &others, &strides)
            .number("x_step", self.input.strides[self.dim])?
            .number("units", lines * per_line)?
            .number("per_line", per_line)
            .map(|k| k.text("before", if self.descending { "ordered(b, a)" } else { "ordered(a, b)" }))
            .map(|k| k.part(step, "body", body))
    }
}
