//! The rules. Integers are folded as i64 and wrap, which is right for every narrower type too.
//!
//! Maxima and minima propagate NaN, as in PyTorch (`arith::greater`). The log of a sum of exponentials reads a block
//! twice: for its maximum first, so that no exponential overflows.

use super::reducer::{LONGEST_TRANSPOSED, Lanes, Reducer, Step};
use crate::cpu::arith::{Arith, Float, Magnitude, Ordered, greater, lesser};
use crate::cpu::number_class::{Fuse, Plain};
use crate::dtype::Truth;
use std::marker::PhantomData;

/// The sum; for a mean, divided by the number of elements.
#[derive(Clone, Copy)]
pub struct Sum {
    pub mean: bool,
}
impl<T: Arith> Step<T> for Sum {
    type Acc = T;
    type Out = T;
    #[inline(always)]
    fn init(self) -> T {
        T::ZERO
    }
    #[inline(always)]
    fn step(self, acc: T, x: T) -> T {
        acc.plus(x)
    }
    #[inline(always)]
    fn merge(self, a: T, b: T) -> T {
        a.plus(b)
    }
    #[inline(always)]
    fn finish(self, acc: T, count: usize) -> T {
        if self.mean { acc.over(count) } else { acc }
    }
}

#[derive(Clone, Copy)]
pub struct Prod;
impl<T: Arith> Step<T> for Prod {
    type Acc = T;
    type Out = T;
    #[inline(always)]
    fn init(self) -> T {
        T::ONE
    }
    #[inline(always)]
    fn step(self, acc: T, x: T) -> T {
        acc.times(x)
    }
    #[inline(always)]
    fn merge(self, a: T, b: T) -> T {
        a.times(b)
    }
    #[inline(always)]
    fn finish(self, acc: T, _: usize) -> T {
        acc
    }
}

#[derive(Clone, Copy)]
pub struct Max;
impl<T: Ordered> Step<T> for Max {
    type Acc = T;
    type Out = T;
    #[inline(always)]
    fn init(self) -> T {
        T::LOWEST
    }
    #[inline(always)]
    fn step(self, acc: T, x: T) -> T {
        greater(acc, x)
    }
    #[inline(always)]
    fn merge(self, a: T, b: T) -> T {
        greater(a, b)
    }
    #[inline(always)]
    fn finish(self, acc: T, _: usize) -> T {
        acc
    }
}

#[derive(Clone, Copy)]
pub struct Min;
impl<T: Ordered> Step<T> for Min {
    type Acc = T;
    type Out = T;
    #[inline(always)]
    fn init(self) -> T {
        T::HIGHEST
    }
    #[inline(always)]
    fn step(self, acc: T, x: T) -> T {
        lesser(acc, x)
    }
    #[inline(always)]
    fn merge(self, a: T, b: T) -> T {
        lesser(a, b)
    }
    #[inline(always)]
    fn finish(self, acc: T, _: usize) -> T {
        acc
    }
}

/// Whether any element is true.
#[derive(Clone, Copy)]
pub struct Any;
impl Step<Truth> for Any {
    type Acc = u8;
    type Out = bool;
    #[inline(always)]
    fn init(self) -> u8 {
        0
    }
    #[inline(always)]
    fn step(self, acc: u8, x: Truth) -> u8 {
        acc | x.get() as u8
    }
    #[inline(always)]
    fn merge(self, a: u8, b: u8) -> u8 {
        a | b
    }
    #[inline(always)]
    fn finish(self, acc: u8, _: usize) -> bool {
        acc != 0
    }
}

/// Whether all elements are true.
#[derive(Clone, Copy)]
pub struct All;
impl Step<Truth> for All {
    type Acc = u8;
    type Out = bool;
    #[inline(always)]
    fn init(self) -> u8 {
        1
    }
    #[inline(always)]
    fn step(self, acc: u8, x: Truth) -> u8 {
        acc & x.get() as u8
    }
    #[inline(always)]
    fn merge(self, a: u8, b: u8) -> u8 {
        a & b
    }
    #[inline(always)]
    fn finish(self, acc: u8, _: usize) -> bool {
        acc != 0
    }
}

/// Norms that need no power per element, and the one that does.
#[derive(Clone, Copy)]
pub struct Norm0;
impl<T: Magnitude> Step<T> for Norm0 {
    type Acc = T::Real;
    type Out = T::Real;
    #[inline(always)]
    fn init(self) -> T::Real {
        T::Real::ZERO
    }
    #[inline(always)]
    fn step(self, acc: T::Real, x: T) -> T::Real {
        acc.plus(if x == T::default() { T::Real::ZERO } else { T::Real::ONE })
    }
    #[inline(always)]
    fn merge(self, a: T::Real, b: T::Real) -> T::Real {
        a.plus(b)
    }
    #[inline(always)]
    fn finish(self, acc: T::Real, _: usize) -> T::Real {
        acc
    }
}

#[derive(Clone, Copy)]
pub struct Norm1;
impl<T: Magnitude> Step<T> for Norm1 {
    type Acc = T::Real;
    type Out = T::Real;
    #[inline(always)]
    fn init(self) -> T::Real {
        T::Real::ZERO
    }
    #[inline(always)]
    fn step(self, acc: T::Real, x: T) -> T::Real {
        acc.plus(x.magnitude())
    }
    #[inline(always)]
    fn merge(self, a: T::Real, b: T::Real) -> T::Real {
        a.plus(b)
    }
    #[inline(always)]
    fn finish(self, acc: T::Real, _: usize) -> T::Real {
        acc
    }
}

/// The sum of squared magnitudes, or its root.
#[derive(Clone, Copy)]
pub struct Norm2 {
    pub root: bool,
}
impl<T: Magnitude> Step<T> for Norm2 {
    type Acc = T::Real;
    type Out = T::Real;
    #[inline(always)]
    fn init(self) -> T::Real {
        T::Real::ZERO
    }
    #[inline(always)]
    fn step(self, acc: T::Real, x: T) -> T::Real {
        acc.plus(x.square())
    }
    #[inline(always)]
    fn merge(self, a: T::Real, b: T::Real) -> T::Real {
        a.plus(b)
    }
    #[inline(always)]
    fn finish(self, acc: T::Real, _: usize) -> T::Real {
        if self.root { acc.sqrt() } else { acc }
    }
}

/// The largest (`max`) or smallest magnitude: the norms of order plus and minus infinity.
#[derive(Clone, Copy)]
pub struct NormInf {
    pub max: bool,
}
impl<T: Magnitude> Step<T> for NormInf {
    type Acc = T::Real;
    type Out = T::Real;
    #[inline(always)]
    fn init(self) -> T::Real {
        if self.max { T::Real::ZERO } else { T::Real::HIGHEST }
    }
    #[inline(always)]
    fn step(self, acc: T::Real, x: T) -> T::Real {
        if self.max { greater(acc, x.magnitude()) } else { lesser(acc, x.magnitude()) }
    }
    #[inline(always)]
    fn merge(self, a: T::Real, b: T::Real) -> T::Real {
        if self.max { greater(a, b) } else { lesser(a, b) }
    }
    #[inline(always)]
    fn finish(self, acc: T::Real, _: usize) -> T::Real {
        acc
    }
}

#[derive(Clone, Copy)]
pub struct NormP {
    pub p: f64,
}
impl<T: Magnitude> Step<T> for NormP {
    type Acc = T::Real;
    type Out = T::Real;
    #[inline(always)]
    fn init(self) -> T::Real {
        T::Real::ZERO
    }
    #[inline(always)]
    fn step(self, acc: T::Real, x: T) -> T::Real {
        acc.plus(x.magnitude().powf(self.p))
    }
    #[inline(always)]
    fn merge(self, a: T::Real, b: T::Real) -> T::Real {
        a.plus(b)
    }
    #[inline(always)]
    fn finish(self, acc: T::Real, _: usize) -> T::Real {
        acc.powf(1.0 / self.p)
    }
}

/// `ln(sum(exp(x)))`; the accumulator is the maximum and the sum of `exp(x - maximum)`.
#[derive(Clone, Copy)]
pub struct LogSumExp;

/// An infinite maximum is not subtracted: `inf - inf` would be NaN.
#[inline(always)]
fn shift<T: Float>(max: T) -> T {
    if max.abs() == T::HIGHEST { T::ZERO } else { max }
}

/// The sum of exponentials less their maximum. That of infinity is infinite: `inf - inf` is no number.
#[inline(always)]
fn unless_infinite<T: Float>(max: T, sum: T) -> T {
    if max == T::HIGHEST { max } else { sum }
}

impl<T: Float> Reducer<T> for LogSumExp {
    type Acc = (T, T);
    type Out = T;
    const COMPUTES: bool = true;
    const TRANSPOSED: usize = LONGEST_TRANSPOSED;
    fn empty(self) -> (T, T) {
        (T::LOWEST, T::ZERO)
    }
    #[inline(always)]
    unsafe fn block<F: Fuse>(self, x: *const T, n: usize) -> (T, T) {
        // SAFETY: the caller guarantees `n` elements.
        unsafe {
            let max = Lanes(Max).block::<F>(x, n);
            let sum = Lanes(SumExp::<T, F>(shift(max), PhantomData)).block::<F>(x, n);
            (max, unless_infinite(max, sum))
        }
    }
    #[inline(always)]
    unsafe fn columns<F: Fuse>(self, rows: &[*const T], width: usize, acc: *mut (T, T)) {
        const WIDE: usize = 16;
        const NARROW: usize = 4;
        let (wide, narrow) = (width / WIDE * WIDE, width / NARROW * NARROW);
        // SAFETY: the caller guarantees `width` elements of each row and of `acc`.
        unsafe {
            for at in (0..wide).step_by(WIDE) {
                self.group::<T, F, WIDE>(rows, at, acc);
            }
            for at in (wide..narrow).step_by(NARROW) {
                self.group::<T, F, NARROW>(rows, at, acc);
            }
            for at in narrow..width {
                self.group::<T, F, 1>(rows, at, acc);
            }
        }
    }
    #[inline(always)]
    fn merge(self, a: (T, T), b: (T, T)) -> (T, T) {
        let max = greater(a.0, b.0);
        let to = |(m, s): (T, T)| {
            let by = shift(m).minus(shift(max));
            // For an empty accumulator, whose maximum is not subtracted, `by` may be large and its exponential
            // infinite.
            if s == T::ZERO { s } else { s.times(by.exp::<Plain>()) }
        };
        (max, to(a).plus(to(b)))
    }
    #[inline(always)]
    fn finish(self, (max, sum): (T, T), _: usize) -> T {
        shift(max).plus(sum.ln::<Plain>())
    }
}

impl LogSumExp {
    /// Folds `L` columns from `at` on. Plain loops, for iterators and `map` would keep the lanes in memory.
    ///
    /// # Safety
    /// Rows and `acc` have them.
    #[inline(always)]
    unsafe fn group<T: Float, F: Fuse, const L: usize>(self, rows: &[*const T], at: usize, acc: *mut (T, T)) {
        let (mut max, mut by, mut sum) = ([T::LOWEST; L], [T::ZERO; L], [T::ZERO; L]);
        for &row in rows {
            // SAFETY: the caller's promise.
            let x = unsafe { &*row.add(at).cast::<[T; L]>() };
            for l in 0..L {
                max[l] = greater(max[l], x[l]);
            }
        }
        for l in 0..L {
            by[l] = shift(max[l]);
        }
        for &row in rows {
            // SAFETY: the caller's promise.
            let x = unsafe { &*row.add(at).cast::<[T; L]>() };
            for l in 0..L {
                sum[l] = sum[l].plus(x[l].minus(by[l]).exp_weight::<F>());
            }
        }
        for l in 0..L {
            sum[l] = unless_infinite(max[l], sum[l]);
        }
        // SAFETY: the caller's promise.
        let acc = unsafe { std::slice::from_raw_parts_mut(acc.add(at), L) };
        for l in 0..L {
            acc[l] = if acc[l] == self.empty() { (max[l], sum[l]) } else { merged(acc[l], (max[l], sum[l])) };
        }
    }
}
/// As `LogSumExp::merge`, and not where columns are folded.
#[inline(never)]
fn merged<T: Float>(a: (T, T), b: (T, T)) -> (T, T) {
    Reducer::<T>::merge(LogSumExp, a, b)
}

/// The sum of `exp(x - shift)`, where nothing exceeds the shift; what would be subnormal is left out.
#[derive(Clone, Copy)]
pub struct SumExp<T, F>(pub T, pub PhantomData<fn() -> F>);
impl<T: Float, F: Fuse> Step<T> for SumExp<T, F> {
    type Acc = T;
    type Out = T;
    #[inline(always)]
    fn init(self) -> T {
        T::ZERO
    }
    #[inline(always)]
    fn step(self, acc: T, x: T) -> T {
        acc.plus(x.minus(self.0).exp_weight::<F>())
    }
    #[inline(always)]
    fn merge(self, a: T, b: T) -> T {
        a.plus(b)
    }
    fn finish(self, acc: T, _: usize) -> T {
        acc
    }
}
