//! Sequences computed from the position: arange, linspace, logspace.

use super::number_class::Fuse;
use super::parallel::par_for;
use super::simd::{self, Kernel};
use super::view::{SendPtr, View, ensure};
use crate::dtype::{Element, Scalar};
use crate::error::Result;
use crate::with_dtype;
use std::mem::MaybeUninit;

/// Minimum elements per task.
const GRAIN: usize = 1 << 14;

/// A formula from position to value.
#[derive(Clone, Copy, Debug)]
pub enum Sequence {
    /// `start + i * step`.
    Ints { start: i64, step: i64 },
    /// `start + i * step`, in float64.
    Floats { start: f64, step: f64 },
    /// `n` numbers from `start` to `end`, computed from the nearer end.
    Line { start: f64, end: f64, n: usize },
    /// Powers of `base`, with the numbers of a line as exponents.
    Powers { start: f64, end: f64, n: usize, base: f64 },
}

impl Sequence {
    #[inline(always)]
    fn at(self, i: usize) -> Scalar {
        match self {
            Sequence::Ints { start, step } => Scalar::Int(start.wrapping_add(step.wrapping_mul(i as i64))),
            Sequence::Floats { start, step } => Scalar::Float(start + i as f64 * step),
            Sequence::Line { start, end, n } => Scalar::Float(line(start, end, n, i)),
            Sequence::Powers { start, end, n, base } => Scalar::Float(base.powf(line(start, end, n, i))),
        }
    }
}

#[inline(always)]
fn line(start: f64, end: f64, n: usize, i: usize) -> f64 {
    if n == 1 {
        return start;
    }
    let step = (end - start) / (n - 1) as f64;
    if i < n / 2 { start + step * i as f64 } else { end - step * (n - 1 - i) as f64 }
}

/// Writes the first numbers of a sequence to a contiguous operand.
pub fn fill(out: View, rule: Sequence) -> Result<()> {
    ensure(out.is_contiguous(), "sequence")?;
    let n = out.numel();
    with_dtype!(out.dtype, T => {
        let out = SendPtr(out.ptr as *mut MaybeUninit<T>);
        par_for(n, GRAIN, |range| {
            for first in range.clone().step_by(PIECE) {
                // SAFETY: there are `n` elements; ranges are disjoint.
                let piece = unsafe { std::slice::from_raw_parts_mut(out.at(first), PIECE.min(range.end - first)) };
                simd::run(Piece { out: piece, first, rule });
            }
        });
    });
    Ok(())
}

/// Numbers written at once: positions relative to the first are exact and cheap as i32.
const PIECE: usize = 4096;

/// The numbers of a sequence from position `first` on. The frequent formulas have separate loops.
struct Piece<'a, T> {
    out: &'a mut [MaybeUninit<T>],
    first: usize,
    rule: Sequence,
}
impl<T: Element> Kernel for Piece<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let Piece { out, first, rule } = self;
        let places = out.iter_mut().zip(0i32..);
        match rule {
            Sequence::Ints { start, step } => {
                let mut next = start.wrapping_add(step.wrapping_mul(first as i64));
                for (x, _) in places {
                    x.write(T::from_scalar(Scalar::Int(next)));
                    next = next.wrapping_add(step);
                }
            }
            Sequence::Floats { start, step } => {
                let first = first as f64;
                places.for_each(|(x, j)| {
                    x.write(T::from_scalar(Scalar::Float(start + (first + j as f64) * step)));
                });
            }
            rule => places.for_each(|(x, j)| {
                x.write(T::from_scalar(rule.at(first + j as usize)));
            }),
        }
    }
}
