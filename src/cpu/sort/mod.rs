//! Sorting, the k best and the k-th along a dimension.
//!
//! An element becomes an unsigned key in the requested order with its position in the low bits (`item`), so every order
//! is total, every sort is stable, and results do not depend on how the work was split. NaN is the largest number, as
//! in PyTorch. Long lines use a radix sort (`radix`), the k best a filter (`select`).

mod item;
mod radix;
mod select;
#[cfg(test)]
mod tests;

pub use self::item::SHORT;
pub use self::radix::Sorter;
pub use self::select::{kth, topk};

use self::item::{Item, Key};
use super::lines::Others;
use super::parallel::{par_for, try_par_for};
use super::scratch::Temp;
use super::view::{SendPtr, View, ensure, load, store};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::layout::Dims;

/// Sorts each line along `dim`; `values` has the input's dtype, `indices` is int64. `stable` changes nothing: the
/// sort always is.
pub fn sort(input: View, dim: usize, descending: bool, _stable: bool, values: View, indices: View) -> Result<()> {
    by_type(input, dim, input.dim(dim).0, values, indices, Whole { flip: descending })
}

/// The work on each line, for each key type.
trait PerLine: Sync {
    /// Writes the requested elements of some lines in order.
    fn lines<T: Key>(&self, lines: &mut dyn Iterator<Item = Line>, length: usize) -> Result<()>;
    /// Cost of a line, in elements.
    fn cost(&self, length: usize) -> usize;
}

/// One line of the input, and the destinations of its results.
struct Line<'a> {
    input: &'a View<'a>,
    offset: usize,
    step: usize,
    length: usize,
    /// The results with their offsets and strides along the line.
    values: (&'a View<'a>, usize, usize),
    indices: (&'a View<'a>, usize, usize),
}
impl Line<'_> {
    /// Elements from `from` on.
    fn read<T: Element>(&self, from: usize, buffer: &mut [T]) {
        let (n, buffer) = (buffer.len(), SendPtr(buffer.as_mut_ptr()));
        par_for(n, GRAIN, |r| {
            let at = self.input.at(self.offset + (from + r.start) * self.step);
            // SAFETY: lines lie inside the input, by the promise of the kernel's caller; ranges are disjoint.
            unsafe { load(self.input.dtype, at, self.step, r.len(), buffer.at(r.start)) }
        });
    }
    /// Writes the elements of the items, and their positions.
    fn write<T: Element, I: Item>(&self, items: &[I], value: impl Fn(usize) -> T + Sync) {
        let ((v, v_offset, v_step), (p, p_offset, p_step)) = (self.values, self.indices);
        par_for(items.len(), GRAIN, |range| {
            let (mut values, mut places) = ([T::default(); CHUNK], [0i64; CHUNK]);
            for start in range.clone().step_by(CHUNK) {
                let chunk = &items[start..range.end.min(start + CHUNK)];
                for (i, item) in chunk.iter().enumerate() {
                    places[i] = item.place() as i64;
                    values[i] = value(item.place());
                }
                // SAFETY: results have as many elements as there are items, by the promise of the kernel's caller.
                unsafe {
                    store(v.dtype, v.at(v_offset + start * v_step), v_step, chunk.len(), values.as_ptr());
                    store(DType::I64, p.at(p_offset + start * p_step), p_step, chunk.len(), places.as_ptr());
                }
            }
        });
    }
}

/// Results written at once.
const CHUNK: usize = 128;
/// Minimum elements of a line for reading and writing to be split into tasks.
const GRAIN: usize = 1 << 16;

/// Each line has `n` results.
fn by_type<P: PerLine>(input: View, dim: usize, n: usize, values: View, indices: View, what: P) -> Result<()> {
    let right = n <= input.dim(dim).0
        && indices.dtype == DType::I64
        && input.matches_but(dim, n, &values)
        && input.matches_but(dim, n, &indices)
        && values.is_apart(&input)
        && indices.is_apart(&input)
        && indices.is_apart(&values);
    ensure(right, "sort")?;
    // SAFETY: the results have `n` places for each line, and lie apart.
    unsafe {
        match input.dtype {
            d if d.is_complex() => {
                return Err(Error::not_implemented("sort: complex numbers have no order"));
            }
            DType::F64 => lines::<f64, P>(input, dim, values, indices, what)?,
            d if d.is_float() => lines::<f32, P>(input, dim, values, indices, what)?,
            DType::I64 | DType::U32 => lines::<i64, P>(input, dim, values, indices, what)?,
            DType::U64 => lines::<u64, P>(input, dim, values, indices, what)?,
            _ => lines::<i32, P>(input, dim, values, indices, what)?,
        }
    }
    Ok(())
}

unsafe fn lines<T: Key, P: PerLine>(input: View, dim: usize, values: View, indices: View, what: P) -> Result<()> {
    let (length, step) = input.dim(dim);
    if input.numel() == 0 || indices.numel() == 0 {
        return Ok(());
    }
    let one: Dims = input.shape.iter().enumerate().map(|(d, &n)| if d == dim { 1 } else { n }).collect();
    let others = Others::new(&one, [input.strides, values.strides, indices.strides], dim);
    let (v_step, i_step) = (values.dim(dim).1, indices.dim(dim).1);
    try_par_for(others.count(), (1 << 13) / what.cost(length).max(1), |range| {
        let mut at = others.walk(range.start);
        let mut lines = range.map(|_| {
            let [offset, v, i] = at.offsets;
            at.step();
            Line { input: &input, offset, step, length, values: (&values, v, v_step), indices: (&indices, i, i_step) }
        });
        what.lines::<T>(&mut lines, length)
    })
}

/// The whole line, in order.
struct Whole {
    flip: bool,
}
impl PerLine for Whole {
    fn lines<T: Key>(&self, lines: &mut dyn Iterator<Item = Line>, length: usize) -> Result<()> {
        let mut all: Temp<T> = Temp::filled(length, T::default())?;
        // SAFETY: it was just filled.
        let all = unsafe { all.slice_mut() };
        let mut sorter = Sorter::new(length)?;
        for line in lines {
            line.read(0, all);
            let sorted = sorter.line(all, self.flip)?;
            line.write(sorted, |place| all[place]);
        }
        Ok(())
    }
    fn cost(&self, length: usize) -> usize {
        length * 4
    }
}
