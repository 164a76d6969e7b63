//! `scatter` with its modes, and the slice-wise forms, which are a scatter whose index varies along one dimension.
//!
//! Two positions of the index may name one element only if they differ only along `dim`: so the other dimensions are
//! processed in parallel, and along `dim` updates happen in order. The last `Set` wins.

use super::combine::{Add, AddScaled, Combine, Max, Min, Mul, Set};
use super::{Found, at_use, check, in_range, out_of_bounds, out_of_range, out_of_reach};
use crate::cpu::lines::{Others, for_lines};
use crate::cpu::number_class::Fuse;
use crate::cpu::parallel::{num_threads, par_for};
use crate::cpu::scratch::Temp;
use crate::cpu::simd::{self, Kernel};
use crate::cpu::view::{View, ensure};
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Error, Result};
use crate::kinds::ScatterMode;
use crate::layout::Dims;
use crate::with_dtype;

/// The source of a scatter.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    View(View<'a>),
    Scalar(Scalar),
}

/// Neighbouring positions updated together by a task.
const TILE: usize = 512;

/// `out[i][index[i][j][k]][k] (mode)= source[i][j][k]` for `dim` 1. Without `include_self` the elements that are
/// written to count as absent. A wrong index is an error that leaves `out` as it was.
pub fn scatter(
    out: View,
    dim: usize,
    index: View,
    source: Source,
    mode: ScatterMode,
    include_self: bool,
) -> Result<()> {
    let size = out.dim(dim).0;
    // SAFETY: the index is a view.
    unsafe { check(index, 0, size) }.map_err(out_of_reach(dim, size))?;
    scatter_into(out, dim, index, source, mode, include_self)
}

/// `scatter` into a result that nobody has seen: indices are compared with the size once, where they are used, so an error
/// leaves the other elements written.
pub fn scatter_into(
    out: View,
    dim: usize,
    index: View,
    source: Source,
    mode: ScatterMode,
    include_self: bool,
) -> Result<()> {
    let size = out.dim(dim).0;
    let covers = match &source {
        Source::View(s) => {
            let sizes = index.shape.iter().zip(s.shape).all(|(i, s)| i <= s);
            s.ndim() == index.ndim() && sizes && s.dtype == out.dtype && out.is_apart(s)
        }
        Source::Scalar(_) => true,
    };
    ensure(covers && super::reaches(&index, dim, &out) && out.is_apart(&index), "scatter")?;
    if out.dtype.is_complex() && matches!(mode, ScatterMode::Max | ScatterMode::Min) {
        return Err(Error::not_implemented("scatter_reduce(): amax and amin are not defined for complex numbers"));
    }
    // SAFETY: the operands fit together; an index is used only if it is below the size.
    unsafe {
        if !include_self && mode != ScatterMode::Set {
            update(out, dim, index, Source::Scalar(mode.identity(out.dtype)), Set).map_err(out_of_reach(dim, size))?;
        }
        match mode {
            ScatterMode::Set => update(out, dim, index, source, Set),
            ScatterMode::Add => update(out, dim, index, source, Add),
            ScatterMode::Mul => update(out, dim, index, source, Mul),
            ScatterMode::Max => update(out, dim, index, source, Max),
            ScatterMode::Min => update(out, dim, index, source, Min),
            ScatterMode::Mean => return mean(out, dim, index, source, include_self),
        }
        .map_err(out_of_reach(dim, size))
    }
}

/// Adds, then divides each element by the number of its contributions.
unsafe fn mean(out: View, dim: usize, index: View, source: Source, include_self: bool) -> Result<()> {
    let size = out.dim(dim).0;
    let strides = crate::layout::contiguous_strides(out.shape);
    let counts = Temp::filled(out.numel(), include_self as i64)?;
    // SAFETY: there are as many counts as the shape has places.
    let view = unsafe { View::new(counts.ptr() as *mut u8, DType::I64, out.shape, &strides) };
    // SAFETY: handed on to the caller; the counts have the shape of `out`.
    unsafe {
        update(out, dim, index, source, Add).map_err(out_of_reach(dim, size))?;
        update(view, dim, index, Source::Scalar(Scalar::Int(1)), Add).map_err(out_of_reach(dim, size))?;
    }
    with_dtype!(out.dtype, T => for_lines(out.shape, [out.strides, &strides], |[o, c], n, [d_out, dc]| {
        for j in 0..n {
            // SAFETY: both offsets are inside their operands.
            unsafe {
                let p = (out.at(o) as *mut T).add(j * d_out);
                let count = (*(view.at(c) as *const i64).add(j * dc)).max(1);
                *p = T::from_scalar(match (*p).to_scalar() {
                    Scalar::Float(x) => Scalar::Float(x / count as f64),
                    Scalar::Complex(re, im) => Scalar::Complex(re / count as f64, im / count as f64),
                    x => Scalar::Int(x.to_i64().div_euclid(count)), // rounds down
                });
            }
        }
    }));
    Ok(())
}

/// Updates the indexed elements; an index that has become wrong is skipped, and the first of these is the error.
unsafe fn update<C: Combine>(
    out: View,
    dim: usize,
    index: View,
    source: Source,
    rule: C,
) -> std::result::Result<(), i64> {
    with_dtype!(out.dtype, T => {
        let value = match source {
            Source::Scalar(s) => T::from_scalar(s),
            Source::View(_) => T::default(),
        };
        let zeros = Dims::from_elem(0, index.ndim());
        let source = match source {
            Source::View(v) => v,
            // SAFETY: strides of zero reach one element, which is only read.
            Source::Scalar(_) => unsafe { View::new(&value as *const T as *mut u8, T::DTYPE, index.shape, &zeros) },
        };
        // SAFETY: the caller's promise.
        unsafe { typed::<T, C>(out, dim, index, source, rule) }
    })
}

unsafe fn typed<T: Element, C: Combine>(
    out: View,
    dim: usize,
    index: View,
    source: View,
    rule: C,
) -> std::result::Result<(), i64> {
    let (length, index_step) = index.dim(dim);
    let (source_step, (size, stride)) = (source.dim(dim).1, out.dim(dim));
    if index.numel() == 0 {
        return Ok(());
    }
    let found = Found::default();
    let mut others = Others::new(index.shape, [out.strides, index.strides, source.strides], dim);
    let (width, [d_out, di, ds]) = others.pop();
    let units = others.count();
    // Tiles run in parallel; elements of different tiles never interact, so the tile size does not affect results.
    let threads = if units == 1 && length * width > 1 << 16 { num_threads() } else { 1 };
    let tile = width.div_ceil(threads).clamp(16, TILE);
    let tiles = width.div_ceil(tile);
    let along = width == 1 || stride < d_out;
    par_for(units * tiles, (1 << 14) / (length * width.min(tile)).max(1), |range| {
        let mut at = others.walk(range.start / tiles);
        for unit in range {
            let start = unit % tiles * tile;
            let n = tile.min(width - start);
            let [o, i, s] = at.offsets;
            let line = Line {
                out: out.at(o + start * d_out) as *mut T,
                index: index.at(i + start * di) as *const i64,
                source: source.at(s + start * ds) as *const T,
                size,
                stride,
                rule,
                first: index.ptr as usize,
                found: &found,
            };
            let (tile, lines) = ((n, [d_out, di, ds]), (length, [0, index_step, source_step]));
            let ((lines, next), (count, steps)) = if along { (tile, lines) } else { (lines, tile) };
            for k in 0..lines {
                // SAFETY: the caller guarantees the operands.
                unsafe { line.from(next.map(|step| k * step)).run(count, steps) };
            }
            if start + n == width {
                at.step();
            }
        }
    });
    found.result()
}

/// The start of a run of updates.
#[derive(Clone, Copy)]
struct Line<'a, T, C> {
    out: *mut T,
    index: *const i64,
    source: *const T,
    /// The destination's size and stride along the indexed dimension.
    size: usize,
    stride: usize,
    rule: C,
    /// The address of the first index: wrong indices are identified by their distance from it.
    first: usize,
    found: &'a Found,
}
impl<T: Element, C: Combine> Line<'_, T, C> {
    #[inline(always)]
    fn from(self, [out, index, source]: [usize; 3]) -> Self {
        let (o, i, s) = (self.out.wrapping_add(out), self.index.wrapping_add(index), self.source.wrapping_add(source));
        Line { out: o, index: i, source: s, ..self }
    }
    /// `n` updates, with these steps.
    #[inline(always)]
    unsafe fn run(self, n: usize, [d_out, di, ds]: [usize; 3]) {
        let Line { out, index, source, size, stride, rule, .. } = self;
        // SAFETY: the caller's promise about the operands; an index is used only if it is below the size.
        unsafe {
            if di == 0 {
                let row = match at_use(index, size) {
                    Ok(place) => out.add(place * stride),
                    Err(bad) => return self.report(index, bad),
                };
                if (d_out, ds) == (1, 1) {
                    return simd::run(Row { row, source, n, rule });
                }
                return (0..n).for_each(|t| update_one(row.add(t * d_out), *source.add(t * ds), rule));
            }
            if (d_out, di, ds, stride) == (0, 1, 1, 1) {
                // Several indices are read before the first write: the compiler must assume that every write may change
                // the next index.
                let (index, source) = (std::slice::from_raw_parts(index, n), std::slice::from_raw_parts(source, n));
                let ((groups, last), (values, rest)) = (index.as_chunks::<8>(), source.as_chunks::<8>());
                let last_place = size as i64 - 1;
                for (group, &values) in groups.iter().zip(values) {
                    // Volatile as in `at_use`.
                    let places: [i64; 8] = std::array::from_fn(|k| (&raw const group[k]).read_volatile());
                    // All eight are valid if neither they nor their distances from the last position are negative.
                    if places.iter().fold(0, |signs, &p| signs | p | last_place.wrapping_sub(p)) >= 0 {
                        (0..8).for_each(|k| update_one(out.add(places[k] as usize), values[k], rule));
                        continue;
                    }
                    self.checked(group, |k| places[k], &values);
                }
                return self.checked(last, |k| (&raw const last[k]).read_volatile(), rest);
            }
            for t in 0..n {
                let i = index.add(t * di);
                match at_use(i, size) {
                    Ok(place) => update_one(out.add(place * stride + t * d_out), *source.add(t * ds), rule),
                    Err(bad) => self.report(i, bad),
                }
            }
        }
    }
    /// Updates of which some may have a wrong index, read by `place`: those without, and a report of the others.
    #[inline(never)]
    unsafe fn checked(&self, index: &[i64], place: impl Fn(usize) -> i64, source: &[T]) {
        for (k, (i, &x)) in index.iter().zip(source).enumerate() {
            match in_range(place(k), self.size) {
                // SAFETY: the place is one of the destination's.
                Ok(place) => unsafe { update_one(self.out.add(place), x, self.rule) },
                Err(bad) => self.report(i, bad),
            }
        }
    }
    #[cold]
    fn report(&self, index: *const i64, bad: i64) {
        self.found.report((index as usize).wrapping_sub(self.first), bad);
    }
}

#[inline(always)]
unsafe fn update_one<T: Element, C: Combine>(p: *mut T, x: T, rule: C) {
    // SAFETY: the caller guarantees the element.
    unsafe { *p = rule.combine(*p, x) }
}

/// A contiguous run of the source combined into a contiguous run of the destination.
struct Row<T, C> {
    row: *mut T,
    source: *const T,
    n: usize,
    rule: C,
}
impl<T: Element, C: Combine> Kernel for Row<T, C> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        // SAFETY: whoever builds the kernel guarantees both runs, which do not overlap.
        let (row, source) = unsafe {
            (std::slice::from_raw_parts_mut(self.row, self.n), std::slice::from_raw_parts(self.source, self.n))
        };
        row.iter_mut().zip(source).for_each(|(p, &x)| *p = self.rule.combine(*p, x));
    }
}

/// Whether an index names a slice of `out` for each of `source`, which lies apart, as the index does.
fn slices_fit(out: &View, dim: usize, index: &View, source: &View) -> bool {
    super::is_list(index)
        && out.matches_but(dim, index.numel(), source)
        && source.dtype == out.dtype
        && (out.is_apart(source) && out.is_apart(index))
}

/// A one-dimensional index read as if it had `ndim` dimensions and moved along `dim`.
fn spread(index: View, ndim: usize, dim: usize) -> Dims {
    let mut strides = Dims::from_elem(0, ndim);
    if let Some(s) = strides.get_mut(dim) {
        *s = index.dim(0).1;
    }
    strides
}

/// `out[index[i]] += alpha * source[i]`, slice by slice along `dim`.
pub fn index_add(out: View, dim: usize, index: View, source: View, alpha: Scalar) -> Result<()> {
    ensure(slices_fit(&out, dim, &index, &source), "index_add")?;
    let strides = spread(index, source.ndim(), dim);
    // SAFETY: there is an index for each slice of the source, and a slice of `out` has its shape.
    unsafe {
        check(index, 0, out.dim(dim).0).map_err(out_of_range)?;
        let index = index.seen_as(source.shape, &strides);
        if alpha.is_one() {
            update(out, dim, index, Source::View(source), Add).map_err(out_of_range)
        } else {
            update(out, dim, index, Source::View(source), AddScaled(alpha)).map_err(out_of_range)
        }
    }
}

/// `out[index[i]] = source[i]`, slice by slice along `dim`.
pub fn index_copy(out: View, dim: usize, index: View, source: View) -> Result<()> {
    ensure(slices_fit(&out, dim, &index, &source), "index_copy")?;
    let size = out.dim(dim).0;
    let strides = spread(index, source.ndim(), dim);
    // SAFETY: there is an index for each slice of the source, and a slice of `out` has its shape.
    unsafe {
        check(index, 0, size).map_err(out_of_bounds(dim, size))?;
        let index = index.seen_as(source.shape, &strides);
        update(out, dim, index, Source::View(source), Set).map_err(out_of_bounds(dim, size))
    }
}

/// `out[index[i]] (mode)= source[i]`, slice by slice along `dim`; `mode` and `include_self` are those of `scatter`.
pub fn index_reduce(
    out: View,
    dim: usize,
    index: View,
    source: View,
    mode: ScatterMode,
    include_self: bool,
) -> Result<()> {
    ensure(slices_fit(&out, dim, &index, &source), "index_reduce")?;
    let strides = spread(index, source.ndim(), dim);
    // SAFETY: there is an index for each slice of the source, and a slice of `out` has its shape.
    unsafe {
        check(index, 0, out.dim(dim).0).map_err(out_of_range)?;
        let index = index.seen_as(source.shape, &strides);
        scatter(out, dim, index, Source::View(source), mode, include_self)
    }
}

/// `out[index[i]] = value`, slice by slice along `dim`. Negative indices count from the end, as in PyTorch.
pub fn index_fill(out: View, dim: usize, index: View, value: Scalar) -> Result<()> {
    ensure(super::is_list(&index), "index_fill")?;
    let (size, _) = out.dim(dim);
    let (count, step) = index.dim(0);
    let count = if index.numel() == 0 { 0 } else { count };
    let wrapped = Temp::<i64>::new(count)?;
    for i in 0..count {
        // SAFETY: the index has so many elements, and there is room for as many.
        unsafe {
            let v = (index.at(i * step) as *const i64).read_volatile();
            let place = if v < 0 { v.wrapping_add(size as i64) } else { v };
            if !(0..size as i64).contains(&place) {
                return Err(out_of_bounds(dim, size)(v));
            }
            wrapped.ptr().add(i).write(place);
        }
    }
    // SAFETY: the places are ours, written and checked.
    unsafe {
        let mut shape: Dims = out.shape.into();
        if let Some(n) = shape.get_mut(dim) {
            *n = count;
        }
        let mut strides = Dims::from_elem(0, shape.len());
        if let Some(s) = strides.get_mut(dim) {
            *s = 1;
        }
        let index = View::new(wrapped.ptr() as *mut u8, DType::I64, &shape, &strides);
        if out.ndim() == 0 && count == 0 {
            return Ok(());
        }
        update(out, dim, index, Source::Scalar(value), Set).map_err(out_of_bounds(dim, size))
    }
}
