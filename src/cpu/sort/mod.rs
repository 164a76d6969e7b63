//! Sorting, the k best and the k-th along a dimension.
//!
//! An element becomes an unsigned key in the wanted order with its position below it (`item`), so every order is
//! total, every sort is stable, and results do not depend on how the work was split. NaN is the greatest number,
//! as in PyTorch. Long lines go through a radix sort (`radix`), the k best through a filter (`select`).

mod item;
mod radix;
mod select;
#[cfg(test)]
mod tests;

pub use select::{kth, topk};

use super::parallel::par_for;
use super::view::{View, load, store};
use super::walk::Others;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use item::{Item, Key};

/// Sorts each line along `dim`; `values` has the input's dtype, `indices` is int64. `stable` changes nothing: the
/// sort always is.
///
/// # Safety
/// All operands must be in bounds and must not overlap.
pub unsafe fn sort(
    input: View,
    dim: usize,
    descending: bool,
    _stable: bool,
    values: View,
    indices: View,
) -> Result<()> {
    let flip = descending;
    // SAFETY: handed on to the caller.
    unsafe { by_type(input, dim, values, indices, Whole { flip }) }
}

/// What is done with each line, for each key type.
trait PerLine: Sync {
    /// Puts the wanted items of a line into order.
    fn pick<T: Key>(&self, line: &Line) -> Vec<T::Item>;
    /// Elements that a line costs.
    fn cost(&self, length: usize) -> usize;
}

/// One line of the input.
struct Line<'a> {
    input: &'a View<'a>,
    offset: usize,
    step: usize,
    length: usize,
}
impl Line<'_> {
    /// Elements `from..from + buffer.len()`.
    fn read<T: Element>(&self, from: usize, buffer: &mut [T]) {
        // SAFETY: lines lie inside the input, which the caller of the kernel vouches for.
        unsafe {
            let at = self.input.at(self.offset + from * self.step);
            load(self.input.dtype, at, self.step, buffer.len(), buffer.as_mut_ptr());
        }
    }
}

unsafe fn by_type<P: PerLine>(input: View, dim: usize, values: View, indices: View, what: P) -> Result<()> {
    // SAFETY: handed on to the caller.
    unsafe {
        match input.dtype {
            DType::C64 | DType::C128 => {
                return Err(Error::not_implemented("sort: complex numbers have no order"));
            }
            DType::F16 | DType::BF16 | DType::F32 => lines::<f32, P>(input, dim, values, indices, what),
            DType::F64 => lines::<f64, P>(input, dim, values, indices, what),
            DType::I64 | DType::U32 | DType::U64 => lines::<i64, P>(input, dim, values, indices, what),
            _ => lines::<i32, P>(input, dim, values, indices, what),
        }
    }
    Ok(())
}

unsafe fn lines<T: Key, P: PerLine>(input: View, dim: usize, values: View, indices: View, what: P) {
    let (length, step) = input.dim(dim);
    if input.numel() == 0 || indices.numel() == 0 {
        return;
    }
    let one: Vec<usize> = input.shape.iter().enumerate().map(|(d, &n)| if d == dim { 1 } else { n }).collect();
    let others = Others::new(&one, [input.strides, values.strides, indices.strides], dim);
    let (v_step, i_step) = (values.dim(dim).1, indices.dim(dim).1);
    par_for(others.count(), (1 << 12) / what.cost(length).max(1), |range| {
        let mut at = others.walk(range.start);
        for _ in range {
            let line = Line { input: &input, offset: at.offsets[0], step, length };
            let items = what.pick::<T>(&line);
            let places: Vec<i64> = items.iter().map(|i| i.place() as i64).collect();
            let sorted = read_at::<T>(&line, &places);
            // SAFETY: the results are those of this line, of as many elements.
            unsafe {
                store(values.dtype, values.at(at.offsets[1]), v_step, sorted.len(), sorted.as_ptr());
                store(DType::I64, indices.at(at.offsets[2]), i_step, places.len(), places.as_ptr());
            }
            at.step();
        }
    });
}

/// The elements at `places`: through a copy of the line where most of it is wanted.
fn read_at<T: Element>(line: &Line, places: &[i64]) -> Vec<T> {
    if places.len() * 8 > line.length {
        let mut all = vec![T::default(); line.length];
        line.read(0, &mut all);
        return places.iter().map(|&p| all[p as usize]).collect();
    }
    let mut out = vec![T::default(); places.len()];
    out.iter_mut().zip(places).for_each(|(x, &p)| line.read(p as usize, std::slice::from_mut(x)));
    out
}

/// The whole line, in order.
struct Whole {
    flip: bool,
}
impl PerLine for Whole {
    fn pick<T: Key>(&self, line: &Line) -> Vec<T::Item> {
        let mut all = vec![T::default(); line.length];
        line.read(0, &mut all);
        let mut items: Vec<T::Item> = all.iter().enumerate().map(|(i, x)| x.item(self.flip, i)).collect();
        radix::sort(&mut items);
        items
    }
    fn cost(&self, length: usize) -> usize {
        length * 4
    }
}
