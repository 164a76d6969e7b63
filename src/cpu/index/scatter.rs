//! `scatter` with its modes, and the slice-wise forms, which are a scatter whose index moves along one dimension.
//!
//! Two positions of the index may name one element, but only if they differ along `dim` alone: so the other
//! dimensions are the parallel ones, and along `dim` updates happen in order. The last `Set` wins.

use super::combine::{Add, AddScaled, Combine, Max, Min, Mode, Mul, Set};
use super::{check, out_of_bounds, out_of_range, out_of_reach};
use crate::cpu::num::Fuse;
use crate::cpu::parallel::{num_threads, par_for};
use crate::cpu::simd::{self, Kernel};
use crate::cpu::view::View;
use crate::cpu::walk::{Others, for_lines};
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Error, Result};
use crate::layout::Dims;
use crate::with_dtype;

/// What is scattered.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    View(View<'a>),
    Scalar(Scalar),
}

/// Neighbouring positions that one task updates together.
const TILE: usize = 512;

/// `out[i][index[i][j][k]][k] (mode)= source[i][j][k]` for `dim` 1. Without `include_self` the elements that are
/// written to count as absent.
///
/// # Safety
/// All operands must be in bounds, `out` must not overlap the others; `source` covers the shape of `index`.
pub unsafe fn scatter(
    out: View,
    dim: usize,
    index: View,
    source: Source,
    mode: Mode,
    include_self: bool,
) -> Result<()> {
    // SAFETY: handed on to the caller; every index is checked before it is used.
    unsafe {
        let size = out.dim(dim).0;
        check(index, 0, size).map_err(out_of_reach(dim, size))?;
    }
    if out.dtype.is_complex() && matches!(mode, Mode::Max | Mode::Min) {
        return Err(Error::not_implemented("scatter_reduce(): amax and amin are not defined for complex numbers"));
    }
    // SAFETY: as above.
    unsafe { checked(out, dim, index, source, mode, include_self) };
    Ok(())
}

/// `scatter` with checked indices.
unsafe fn checked(out: View, dim: usize, index: View, source: Source, mode: Mode, include_self: bool) {
    // SAFETY: handed on to the caller.
    unsafe {
        if !include_self && mode != Mode::Set {
            update(out, dim, index, Source::Scalar(mode.identity(out.dtype)), Set);
        }
        match mode {
            Mode::Set => update(out, dim, index, source, Set),
            Mode::Add => update(out, dim, index, source, Add),
            Mode::Mul => update(out, dim, index, source, Mul),
            Mode::Max => update(out, dim, index, source, Max),
            Mode::Min => update(out, dim, index, source, Min),
            Mode::Mean => {
                update(out, dim, index, source, Add);
                average(out, dim, index, include_self);
            }
        }
    }
}

/// Divides each element by the number of values that went into it.
unsafe fn average(out: View, dim: usize, index: View, include_self: bool) {
    let strides = crate::layout::contiguous_strides(out.shape);
    let mut counts = vec![include_self as i64; out.numel()];
    let view = View { ptr: counts.as_mut_ptr() as *mut u8, dtype: DType::I64, shape: out.shape, strides: &strides };
    // SAFETY: the counts have the shape of `out`, and the indices have been checked.
    unsafe { update(view, dim, index, Source::Scalar(Scalar::Int(1)), Add) };
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
}

unsafe fn update<C: Combine>(out: View, dim: usize, index: View, source: Source, rule: C) {
    with_dtype!(out.dtype, T => {
        let value = match source {
            Source::Scalar(s) => T::from_scalar(s),
            Source::View(_) => T::default(),
        };
        let zeros = Dims::from_elem(0, index.ndim());
        let source = match source {
            Source::View(v) => v,
            Source::Scalar(_) => View { ptr: &value as *const T as *mut u8, strides: &zeros, ..out },
        };
        // SAFETY: handed on to the caller.
        unsafe { typed::<T, C>(out, dim, index, source, rule) }
    })
}

unsafe fn typed<T: Element, C: Combine>(out: View, dim: usize, index: View, source: View, rule: C) {
    let (length, index_step) = index.dim(dim);
    let (source_step, stride) = (source.dim(dim).1, out.dim(dim).1);
    if index.numel() == 0 {
        return;
    }
    let mut others = Others::new(index.shape, [out.strides, index.strides, source.strides], dim);
    let (width, [d_out, di, ds]) = others.pop();
    let units = others.count();
    // Tiles are what runs in parallel; elements of different tiles never meet, so their size changes no result.
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
                stride,
                rule,
            };
            // SAFETY: the caller vouches for the operands and has checked the indices.
            unsafe {
                if along {
                    (0..n).for_each(|j| line.from(j * d_out, j * di, j * ds).run(length, 0, index_step, source_step));
                } else {
                    (0..length).for_each(|k| line.from(0, k * index_step, k * source_step).run(n, d_out, di, ds));
                }
            }
            if start + n == width {
                at.step();
            }
        }
    });
}

/// Where a run of updates starts.
#[derive(Clone, Copy)]
struct Line<T, C> {
    out: *mut T,
    index: *const i64,
    source: *const T,
    /// The destination's stride along the indexed dimension.
    stride: usize,
    rule: C,
}
impl<T: Element, C: Combine> Line<T, C> {
    #[inline(always)]
    fn from(self, out: usize, index: usize, source: usize) -> Self {
        let (o, i, s) = (self.out.wrapping_add(out), self.index.wrapping_add(index), self.source.wrapping_add(source));
        Line { out: o, index: i, source: s, ..self }
    }
    /// `n` updates, with these steps from one to the next.
    #[inline(always)]
    unsafe fn run(self, n: usize, d_out: usize, di: usize, ds: usize) {
        let Line { out, index, source, stride, rule } = self;
        // SAFETY: the caller vouches for the operands and has checked the indices.
        unsafe {
            if di == 0 {
                let row = out.add(*index as usize * stride);
                if (d_out, ds) == (1, 1) {
                    return simd::run(Row { row, source, n, rule });
                }
                return (0..n).for_each(|t| update_one(row.add(t * d_out), *source.add(t * ds), rule));
            }
            if (d_out, di, ds, stride) == (0, 1, 1, 1) {
                // Several are read before the first is written: the compiler must take every write for one to the next.
                let (index, source) = (std::slice::from_raw_parts(index, n), std::slice::from_raw_parts(source, n));
                let ((groups, last), (values, rest)) = (index.as_chunks::<8>(), source.as_chunks::<8>());
                for (&places, &values) in groups.iter().zip(values) {
                    (0..8).for_each(|k| update_one(out.add(places[k] as usize), values[k], rule));
                }
                return last.iter().zip(rest).for_each(|(&i, &x)| update_one(out.add(i as usize), x, rule));
            }
            for t in 0..n {
                let place = *index.add(t * di) as usize * stride + t * d_out;
                update_one(out.add(place), *source.add(t * ds), rule);
            }
        }
    }
}

#[inline(always)]
unsafe fn update_one<T: Element, C: Combine>(p: *mut T, x: T, rule: C) {
    // SAFETY: the caller vouches for the element.
    unsafe { *p = rule.combine(*p, x) }
}

/// A contiguous run of the source that goes to a contiguous run of the destination.
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
        // SAFETY: whoever builds the kernel vouches for both runs, which do not overlap.
        let (row, source) = unsafe {
            (std::slice::from_raw_parts_mut(self.row, self.n), std::slice::from_raw_parts(self.source, self.n))
        };
        row.iter_mut().zip(source).for_each(|(p, &x)| *p = self.rule.combine(*p, x));
    }
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
///
/// # Safety
/// As `scatter`; `index` has one dimension and `source` has as many slices.
pub unsafe fn index_add(out: View, dim: usize, index: View, source: View, alpha: Scalar) -> Result<()> {
    let strides = spread(index, source.ndim(), dim);
    // SAFETY: handed on to the caller; the index is checked before it is used.
    unsafe {
        check(index, 0, out.dim(dim).0).map_err(out_of_range)?;
        let index = View { shape: source.shape, strides: &strides, ..index };
        if alpha.is_one() {
            update(out, dim, index, Source::View(source), Add);
        } else {
            update(out, dim, index, Source::View(source), AddScaled(alpha));
        }
    }
    Ok(())
}

/// `out[index[i]] = source[i]`, slice by slice along `dim`.
///
/// # Safety
/// As `index_add`.
pub unsafe fn index_copy(out: View, dim: usize, index: View, source: View) -> Result<()> {
    let size = out.dim(dim).0;
    let strides = spread(index, source.ndim(), dim);
    // SAFETY: handed on to the caller; the index is checked before it is used.
    unsafe {
        check(index, 0, size).map_err(out_of_bounds(dim, size))?;
        update(out, dim, View { shape: source.shape, strides: &strides, ..index }, Source::View(source), Set);
    }
    Ok(())
}

/// `out[index[i]] (mode)= source[i]`, slice by slice along `dim`; `mode` and `include_self` are those of `scatter`.
///
/// # Safety
/// As `index_add`.
pub unsafe fn index_reduce(
    out: View,
    dim: usize,
    index: View,
    source: View,
    mode: Mode,
    include_self: bool,
) -> Result<()> {
    let strides = spread(index, source.ndim(), dim);
    // SAFETY: handed on to the caller.
    unsafe {
        check(index, 0, out.dim(dim).0).map_err(out_of_range)?;
        let index = View { shape: source.shape, strides: &strides, ..index };
        scatter(out, dim, index, Source::View(source), mode, include_self)
    }
}

/// `out[index[i]] = value`, slice by slice along `dim`. Negative indices count from the end, as in PyTorch.
///
/// # Safety
/// As `index_add`.
pub unsafe fn index_fill(out: View, dim: usize, index: View, value: Scalar) -> Result<()> {
    let (size, _) = out.dim(dim);
    let (count, step) = index.dim(0);
    // SAFETY: handed on to the caller; the index is checked before it is used.
    unsafe {
        check(index, -(size as i64), size).map_err(out_of_bounds(dim, size))?;
        let wrap = |i: usize| {
            let v = *(index.at(i * step) as *const i64);
            if v < 0 { v + size as i64 } else { v }
        };
        let wrapped: Vec<i64> = (0..if index.numel() == 0 { 0 } else { count }).map(wrap).collect();
        let mut shape: Dims = out.shape.into();
        if let Some(n) = shape.get_mut(dim) {
            *n = wrapped.len();
        }
        let mut strides = Dims::from_elem(0, shape.len());
        if let Some(s) = strides.get_mut(dim) {
            *s = 1;
        }
        let index = View { ptr: wrapped.as_ptr() as *mut u8, dtype: DType::I64, shape: &shape, strides: &strides };
        if out.ndim() > 0 || !wrapped.is_empty() {
            update(out, dim, index, Source::Scalar(value), Set);
        }
    }
    Ok(())
}
