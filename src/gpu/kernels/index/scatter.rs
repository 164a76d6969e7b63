//! `scatter` with its modes, and the slice-wise writes `index_add`, `index_copy`, `index_fill`.
//!
//! In columns: all elements that share the coordinates beside `dim` are one invocation's work, in order, so the
//! result is the same every time and the last of repeated writes stays. Where that leaves a device idle (few, long
//! columns), elements go in parallel: plain stores, or compare-and-swap updates in no fixed order.

use super::checks::refuse_empty;
use super::words::{Words, repeated, zeroed_at};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::fault::Check;
use crate::gpu::kernels::element::compute_of;
use crate::gpu::kernels::kernel::Kernel;
use crate::gpu::kernels::params::ITERATIONS;
use crate::gpu::kernels::stage::stage_aliased;
use crate::gpu::kernels::template::Compute;
use crate::gpu::kernels::view::{Input, View};
use crate::kinds::ScatterMode;
use crate::layout::Dims;

const TEMPLATE: &str = include_str!("../../../../shaders/scatter.wgsl");

/// A column of up to this length is written in order even if there are few of them.
const IN_ORDER: usize = 2048;
/// This many columns keep a device busy.
const COLUMNS: usize = 8192;

const IN_COLUMNS: &str = "for (var j = {{first}}; j < {{last}}; j++) {
        one(unit, j);
    }";

/// `out[i][index[i][j][k]][k] op= source[i][j][k]` for `dim` 1, over the shape of `index`.
pub fn scatter(out: &View, dim: usize, index: &View, source: &Input, mode: ScatterMode) -> Result<()> {
    write(out, dim, index, source, mode, Check::Reach, 1.0)
}

/// Writes to the classes of a loss, which are checked in its words.
pub fn put_class(out: &View, dim: usize, class: &View, source: &View) -> Result<()> {
    write(out, dim, class, &Input::View(*source), ScatterMode::Set, Check::Class, 1.0)
}

/// Adds `alpha * source` slice by slice to the slices of `out` along `dim` that a one-dimensional `index` names.
pub fn index_add(out: &View, dim: usize, index: &View, source: &View, alpha: f64) -> Result<()> {
    slices(out, dim, index, &Input::View(*source), source.shape, ScatterMode::Add, Check::Range, alpha)
}

/// Copies slices of `source` to the slices of `out` along `dim` that a one-dimensional `index` names.
pub fn index_copy(out: &View, dim: usize, index: &View, source: &View) -> Result<()> {
    slices(out, dim, index, &Input::View(*source), source.shape, ScatterMode::Set, Check::Bounds, 1.0)
}

/// Fills the slices of `out` along `dim` that a one-dimensional `index` names.
pub fn index_fill(out: &View, dim: usize, index: &View, value: Scalar) -> Result<()> {
    let mut shape = Dims::from(out.shape);
    if let Some(n) = shape.get_mut(dim) {
        *n = index.shape.iter().product();
    }
    slices(out, dim, index, &Input::Scalar(value), &shape, ScatterMode::Set, Check::Bounds, 1.0)
}

#[allow(clippy::too_many_arguments)]
fn slices(
    out: &View,
    dim: usize,
    index: &View,
    source: &Input,
    shape: &[usize],
    mode: ScatterMode,
    check: Check,
    alpha: f64,
) -> Result<()> {
    let mut strides: Dims = shape.iter().map(|_| 0).collect();
    if let Some(s) = strides.get_mut(dim) {
        *s = index.strides.first().copied().unwrap_or(0);
    }
    write(out, dim, &View { shape, strides: &strides, ..*index }, source, mode, check, alpha)
}

/// How repeated writes meet.
fn combine(mode: ScatterMode) -> &'static str {
    match mode {
        ScatterMode::Set => "v",
        ScatterMode::Add | ScatterMode::Mean => "old + v",
        ScatterMode::Mul => "old * v",
        ScatterMode::Max => "max_(old, v)",
        ScatterMode::Min => "min_(old, v)",
    }
}

fn write(
    out: &View,
    dim: usize,
    index: &View,
    source: &Input,
    mode: ScatterMode,
    check: Check,
    alpha: f64,
) -> Result<()> {
    if index.numel() == 0 {
        return Ok(());
    }
    refuse_empty(index, check, dim, out.dim(dim).0)?;
    let raw = mode == ScatterMode::Set && matches!(source, Input::View(v) if v.dtype == out.dtype);
    if !raw {
        out.require_own()?;
    }
    let mut inputs = vec![*index];
    if let Input::View(v) = source {
        inputs.push(View { shape: index.shape, ..*v });
    }
    stage_aliased(&mut inputs, &[*out], &mut |views| {
        let number = if let Input::Scalar(s) = source { Some(*s) } else { None };
        Writes { out, dim, index: &views[0], source: views.get(1), number, mode, check, alpha, raw }.launch()
    })
}

struct Writes<'a> {
    out: &'a View<'a>,
    dim: usize,
    index: &'a View<'a>,
    source: Option<&'a View<'a>>,
    number: Option<Scalar>,
    mode: ScatterMode,
    check: Check,
    alpha: f64,
    /// Elements are moved as words.
    raw: bool,
}

impl Writes<'_> {
    fn launch(&self) -> Result<()> {
        let (length, _) = self.index.dim(self.dim);
        let columns = self.index.numel() / length;
        let narrow = self.raw || self.out.dtype.size() <= 4;
        let parallel = columns < COLUMNS && length > IN_ORDER && narrow;
        let iterations = if parallel { length } else { ITERATIONS };
        (0..length)
            .step_by(iterations)
            .try_for_each(|first| self.dispatch(parallel, first, (first + iterations).min(length)))
    }

    /// Writes every element at once, or those of each column from `first` to `last` in order.
    fn dispatch(&self, parallel: bool, first: usize, last: usize) -> Result<()> {
        let (size, out_stride) = self.out.dim(self.dim);
        let to = Words::new(self.out);
        let scale = if self.raw { to.scale } else { 1 };
        let with = |w: &Words, strides: &[usize]| if self.raw { w.strides_with(strides) } else { Dims::from(strides) };
        // Over a column's first elements, or over every element with the step taken out of the walk.
        let mut shape = if self.raw { to.shape_with(self.index.shape) } else { Dims::from(self.index.shape) };
        let mut index_strides = repeated(self.index.strides, scale);
        if !parallel {
            if let Some(n) = shape.get_mut(self.dim) {
                *n = 1;
            }
            index_strides = zeroed_at(&index_strides, self.dim);
        }
        let units: usize = shape.iter().product();
        let compute = if self.raw { Compute::I32 } else { compute_of(self.out.dtype)? };
        let out_view = if self.raw { to.view() } else { *self.out };
        let update = parallel && self.mode != ScatterMode::Set;
        let mut kernel = Kernel::new("scatter", TEMPLATE, compute)
            .index("index", *self.index)
            .walk("index", &shape, &index_strides)
            .walk("out", &shape, &with(&to, &zeroed_at(self.out.strides, self.dim)))
            .number("index_step", if parallel { 0 } else { self.index.dim(self.dim).1 })?
            .number("out_step", out_stride * scale)?
            .number("units", units)?
            .number("first", first)?
            .number("last", last)?
            .check(self.check, self.dim, size)?
            .text("combine", combine(self.mode))
            .text("body", if parallel { "one(unit, 0u);" } else { IN_COLUMNS });
        kernel = if update { kernel.update("out", out_view) } else { kernel.write("out", out_view) };
        let store = match (update, self.mode) {
            (true, _) => "update_out(at, v);",
            (_, ScatterMode::Set) => "write_out(at, v);",
            _ => "write_out(at, combine(read_out(at), v));",
        };
        self.with_source(kernel.text("store", store), &shape, parallel)?.launch(units)
    }

    fn with_source<'k>(&'k self, kernel: Kernel<'k>, shape: &[usize], parallel: bool) -> Result<Kernel<'k>> {
        let Some(source) = self.source else {
            let value = self.number.unwrap_or(Scalar::Int(0));
            return Ok(kernel.scalar("value", value).text("term", "{{value}}"));
        };
        let from = Words::new(source);
        let strides = if parallel { Dims::from(source.strides) } else { zeroed_at(source.strides, self.dim) };
        let step = if parallel { 0 } else { source.dim(self.dim).1 };
        let (view, strides, scale) = if self.raw {
            let view = View { dtype: from.dtype, offset: source.offset * from.scale, ..*source };
            (view, from.strides_with(&strides), from.scale)
        } else {
            (*source, strides, 1)
        };
        let kernel = kernel.read("source", view).walk("source", shape, &strides).number("source_step", step * scale)?;
        let value = "read_source({{source}} + walk_source(column) + j * {{source_step}})";
        Ok(if self.alpha == 1.0 || self.out.dtype == DType::Bool {
            kernel.text("term", value)
        } else {
            kernel.scalar("alpha", Scalar::Float(self.alpha)).text("term", format!("{{{{alpha}}}} * {value}"))
        })
    }
}
