//! Numbers that follow from their position: arange, linspace, logspace.

use super::parallel::par_for;
use super::view::Ptr;
use crate::dtype::{DType, Element, Scalar};
use crate::with_dtype;

/// Elements that make a task worth a thread.
const GRAIN: usize = 1 << 14;

/// A rule from position to value.
#[derive(Clone, Copy, Debug)]
pub enum Sequence {
    /// `start + i * step`.
    Ints { start: i64, step: i64 },
    /// `start + i * step`, in float64.
    Floats { start: f64, step: f64 },
    /// `n` numbers from `start` to `end`, computed from the nearer end.
    Line { start: f64, end: f64, n: usize },
    /// Powers of `base` with the exponents of a line.
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

/// Writes the first `n` numbers of a sequence to contiguous memory.
///
/// # Safety
/// `out` has room for `n` elements of `dtype`.
pub unsafe fn fill(out: *mut u8, dtype: DType, n: usize, rule: Sequence) {
    with_dtype!(dtype, T => {
        let out = Ptr(out as *mut T);
        // The frequent rules have loops of their own, which vectorise.
        match rule {
            Sequence::Ints { start, step } => {
                tabulate(out, n, |i| T::from_scalar(Sequence::Ints { start, step }.at(i)));
            }
            Sequence::Floats { start, step } => {
                tabulate(out, n, |i| T::from_scalar(Sequence::Floats { start, step }.at(i)));
            }
            rule => tabulate(out, n, |i| T::from_scalar(rule.at(i))),
        }
    });
}

fn tabulate<T>(out: Ptr<T>, n: usize, f: impl Fn(usize) -> T + Sync) {
    par_for(n, GRAIN, |range| {
        for i in range {
            // SAFETY: the caller of `fill` vouches for `n` elements; ranges are disjoint.
            unsafe { *out.at(i) = f(i) };
        }
    });
}
