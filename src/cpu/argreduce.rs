//! The position of the largest or smallest element along a dimension, and its value.
//!
//! The first of equal elements wins, and NaN beats every number, as in PyTorch. A run of memory is first reduced by the
//! vectorised maximum; only a run that improves on the best so far is searched for the position.

use super::arith::Ordered;
use super::lines::Others;
use super::parallel::par_for;
use super::reduce::reducer::{Block, Lanes};
use super::reduce::reducers;
use super::simd;
use super::view::{SendPtr, View, ensure, load, store};
use crate::dtype::DType;
use crate::error::{Error, Result};
use std::mem::MaybeUninit;

/// Elements per run, short lines whose results are written together, neighbouring lines processed together, and elements per part
/// of a long line.
const RUN: usize = 2048;
const LINES: usize = 32;
const TILE: usize = 512;
const PART: usize = 1 << 16;

/// The largest (`is_max`) or smallest elements along `dim` and their positions (int64); both results have the input's
/// shape with `dim` of size one. The dimension must not be empty.
pub fn arg_reduce(is_max: bool, input: View, dim: usize, values: Option<View>, indices: View) -> Result<()> {
    let result = |v: &View| input.reduces_to(|d| d == dim, v) && v.is_apart(&input);
    let right = indices.dtype == DType::I64
        && result(&indices)
        && values.is_none_or(|v| result(&v) && v.is_apart(&indices))
        && input.dim(dim).0 > 0;
    ensure(right, "arg_reduce")?;
    // SAFETY: the results have a place for each line, and lie apart.
    unsafe {
        match input.dtype {
            d if d.is_complex() => {
                return Err(Error::not_implemented("max and min are not defined for complex numbers"));
            }
            DType::U64 => return Err(Error::not_implemented("not implemented for 'UInt64'; convert the tensor")),
            DType::F64 => run::<f64>(is_max, input, dim, values, indices),
            d if d.is_float() => run::<f32>(is_max, input, dim, values, indices),
            DType::I8 | DType::I16 | DType::I32 | DType::U16 => run::<i32>(is_max, input, dim, values, indices),
            DType::U8 | DType::Bool => run::<u8>(is_max, input, dim, values, indices),
            _ => run::<i64>(is_max, input, dim, values, indices),
        }
    }
    Ok(())
}

unsafe fn run<T: Ordered>(is_max: bool, input: View, dim: usize, values: Option<View>, indices: View) {
    // SAFETY: the caller's promise.
    unsafe {
        if is_max {
            Job::<T, true>::new(input, dim, values, indices).run(dim);
        } else {
            Job::<T, false>::new(input, dim, values, indices).run(dim);
        }
    }
}

struct Job<'a, T, const MAX: bool> {
    input: View<'a>,
    values: Option<View<'a>>,
    indices: View<'a>,
    length: usize,
    step: usize,
    mark: std::marker::PhantomData<T>,
}

impl<'a, T: Ordered, const MAX: bool> Job<'a, T, MAX> {
    fn new(input: View<'a>, dim: usize, values: Option<View<'a>>, indices: View<'a>) -> Self {
        let (length, step) = input.dim(dim);
        Job { input, values, indices, length, step, mark: std::marker::PhantomData }
    }

    /// Whether `x`, which comes later, replaces `best`.
    #[inline(always)]
    #[allow(clippy::eq_op)] // `x != x` is the NaN test that every ordered type supports
    fn beats(x: T, best: T) -> bool {
        let better = if MAX { x > best } else { x < best };
        better || (x != x && best == best)
    }

    unsafe fn run(&self, dim: usize) {
        let values = self.values.unwrap_or(self.indices);
        let mut others =
            Others::new(self.indices.shape, [self.input.strides, self.indices.strides, values.strides], dim);
        let (width, across) = others.pop();
        // Lines that are dense in memory are read one by one, short ones several to a task's step.
        let dense = self.step <= across[0] || width == 1;
        let tile = if dense { (RUN / self.length).clamp(1, LINES) } else { TILE };
        let tiles = width.div_ceil(tile);
        let units = others.count() * tiles;
        let parts = if units >= 32 || tile > 1 { 1 } else { (self.length / PART).max(1) };
        let at = |unit: usize| {
            let base = others.walk(unit / tiles).offsets;
            let start = unit % tiles * tile;
            (std::array::from_fn(|k| base[k] + start * across[k]), tile.min(width - start))
        };
        if parts > 1 {
            // Bounded by a 65,536th of the input: only fewer than 32 lines are split into parts.
            let mut found = vec![(T::LOWEST, 0usize); units * parts];
            let slots = SendPtr(found.as_mut_ptr());
            par_for(units * parts, 1, |range| {
                for i in range {
                    let ([base, ..], _): ([usize; 3], _) = at(i / parts);
                    let (from, to) = (self.length * (i % parts) / parts, self.length * (i % parts + 1) / parts);
                    // SAFETY: the part lies inside the line, and each slot is written once.
                    unsafe { *slots.at(i) = self.line(base, from, to) };
                }
            });
            for (unit, found) in found.chunks(parts).enumerate() {
                let best = found.iter().copied().reduce(|a, b| if Self::beats(b.0, a.0) { b } else { a });
                // SAFETY: the unit's result is in bounds.
                unsafe { self.write(at(unit).0, across, &[best.unwrap().0], &[best.unwrap().1 as i64]) };
            }
            return;
        }
        par_for(units, (1 << 15) / (self.length * tile.min(width)), |range| {
            for unit in range {
                let (base, n) = at(unit);
                // SAFETY: the lines are those of the operands.
                unsafe {
                    if dense {
                        let mut best = [(T::LOWEST, 0); LINES];
                        for (i, best) in best[..n].iter_mut().enumerate() {
                            *best = self.line(base[0] + i * across[0], 0, self.length);
                        }
                        let (values, places) = (best.map(|b| b.0), best.map(|b| b.1 as i64));
                        self.write(base, across, &values[..n], &places[..n]);
                    } else {
                        self.lines(base, across, n);
                    }
                }
            }
        });
    }

    unsafe fn write(&self, base: [usize; 3], across: [usize; 3], best: &[T], places: &[i64]) {
        // SAFETY: the caller guarantees the results.
        unsafe {
            store(DType::I64, self.indices.at(base[1]), across[1], places.len(), places.as_ptr());
            if let Some(v) = self.values {
                store(v.dtype, v.at(base[2]), across[2], best.len(), best.as_ptr());
            }
        }
    }

    /// The best of elements `from..to` of a line, and its position.
    unsafe fn line(&self, base: usize, from: usize, to: usize) -> (T, usize) {
        let mut buffer = [const { MaybeUninit::<T>::uninit() }; RUN];
        let mut found: Option<(T, usize)> = None;
        for start in (from..to).step_by(RUN) {
            let n = RUN.min(to - start);
            let x = self.input.at(base + start * self.step);
            // SAFETY: the run lies inside the line; the buffer holds it.
            unsafe {
                let x = if self.input.dtype == T::DTYPE && (self.step == 1 || n == 1) {
                    x as *const T
                } else {
                    load(self.input.dtype, x, self.step, n, buffer.as_mut_ptr() as *mut T);
                    buffer.as_ptr() as *const T
                };
                let best: T = if MAX {
                    simd::run(Block::new(Lanes(reducers::Max), x, n))
                } else {
                    simd::run(Block::new(Lanes(reducers::Min), x, n))
                };
                if found.is_none_or(|f| Self::beats(best, f.0)) {
                    let x = std::slice::from_raw_parts(x, n);
                    // An element that nothing beats is the best itself, or NaN: the comparison covers both.
                    let place = x.iter().position(|&v| !Self::beats(best, v)).unwrap_or(0);
                    found = Some((x[place], start + place));
                }
            }
        }
        found.unwrap_or((T::LOWEST, 0))
    }

    /// A tile of neighbouring lines.
    unsafe fn lines(&self, base: [usize; 3], across: [usize; 3], n: usize) {
        let mut best = [T::LOWEST; TILE];
        let mut places = [0i64; TILE];
        let mut buffer = [T::LOWEST; TILE];
        for i in 0..self.length {
            let row = self.input.at(base[0] + i * self.step);
            // SAFETY: the row lies inside the operand and fits the buffer.
            unsafe { load(self.input.dtype, row, across[0], n, buffer.as_mut_ptr()) };
            if i == 0 {
                best = buffer;
                continue;
            }
            for j in 0..n {
                let beats = Self::beats(buffer[j], best[j]);
                best[j] = if beats { buffer[j] } else { best[j] };
                places[j] = if beats { i as i64 } else { places[j] };
            }
        }
        // SAFETY: the caller guarantees the results.
        unsafe { self.write(base, across, &best[..n], &places[..n]) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, Rng, close, ravel, shape, unravel};

    fn check(rng: &mut Rng, dtype: DType, s: &[usize], is_max: bool) {
        let dim = rng.below(s.len());
        let a = Array::random(rng, dtype, s);
        let mut kept = s.to_vec();
        kept[dim] = 1;
        let (v, i) = (Array::scattered(rng, dtype, &kept), Array::scattered(rng, DType::I64, &kept));
        arg_reduce(is_max, a.view(), dim, Some(v.view()), i.view()).unwrap();
        let mut want: Vec<(f64, f64)> = vec![(f64::NAN, -1.0); v.view().numel()];
        for (n, x) in a.reals().into_iter().enumerate() {
            let mut at = unravel(s, n);
            let place = std::mem::take(&mut at[dim]) as f64;
            let w = &mut want[ravel(&kept, &at)];
            if w.1 < 0.0 || (is_max && x > w.0) || (!is_max && x < w.0) {
                *w = (x, place);
            }
        }
        close(&v.reals(), &want.iter().map(|w| w.0).collect::<Vec<_>>(), 0.0);
        close(&i.reals(), &want.iter().map(|w| w.1).collect::<Vec<_>>(), 0.0);
    }

    #[test]
    fn agrees_with_plain_loops() {
        let mut rng = Rng(43);
        for round in 0..40 {
            let s = shape(&mut rng, 4, 8);
            for dtype in [DType::Bool, DType::U8, DType::I16, DType::I64, DType::BF16, DType::F32, DType::F64] {
                check(&mut rng, dtype, &s, round % 2 == 0);
            }
        }
        for s in [&[200_000][..], &[3, 70_000], &[7000, 300], &[2, 3000, 5]] {
            check(&mut rng, DType::F32, s, true);
            check(&mut rng, DType::I32, s, false);
        }
    }

    #[test]
    fn the_first_nan_wins() {
        let x = [1.0, f64::NAN, 3.0, f64::NAN, 0.0, 2.0];
        let (a, i) = (Array::of(DType::F32, &[6], &x), Array::zeros(DType::I64, &[1]));
        for is_max in [true, false] {
            arg_reduce(is_max, a.view(), 0, None, i.view()).unwrap();
            assert_eq!(i.reals(), [1.0]);
        }
        let (a, i) = (Array::of(DType::F32, &[3, 2], &x), Array::zeros(DType::I64, &[1, 2]));
        arg_reduce(true, a.view(), 0, None, i.view()).unwrap();
        assert_eq!(i.reals(), [1.0, 0.0]);
    }
}
