//! What a reduction computes: rules, from "add" to "log of the sum of exponentials".
//!
//! The driver (`driver.rs`) only knows blocks: it folds a run of memory into an accumulator, or a bundle of rows into
//! a row of accumulators, and merges accumulators pairwise. A rule that works element by element is a `Step`; `Lanes`
//! turns it into blocks with enough independent accumulators for SIMD.

use crate::cpu::number_class::Fuse;
use crate::cpu::simd::{self, Kernel};
use crate::dtype::Element;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Longest runs that are folded as columns for any rule.
pub const LONGEST_TRANSPOSED: usize = 64;

/// A reduction of blocks of `T`.
pub trait Reducer<T: Copy>: Copy + Send + Sync {
    type Acc: Copy + Send + Sync;
    type Out: Element;
    /// Elements of a run folded at once; a block that a rule reads twice should fit L1.
    const BLOCK: usize = 1 << 12;
    /// Whether it computes much for each element, so that AVX-512 serves it better.
    const COMPUTES: bool = false;
    /// Up to which length the runs of several results are folded together, as the columns of a transposed copy.
    const TRANSPOSED: usize = 15;
    /// The accumulator of an empty reduction.
    fn empty(self) -> Self::Acc;
    /// Folds `n` contiguous elements.
    ///
    /// # Safety
    /// `x` must be readable for `n` elements.
    unsafe fn block<F: Fuse>(self, x: *const T, n: usize) -> Self::Acc;
    /// Folds each of `width` columns over the given rows, into `acc`, which holds valid accumulators.
    ///
    /// # Safety
    /// Each row must be readable, and `acc` writable, for `width` elements.
    unsafe fn columns<F: Fuse>(self, rows: &[*const T], width: usize, acc: *mut Self::Acc);
    fn merge(self, a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// Turns the accumulator of `count` elements into the result.
    fn finish(self, acc: Self::Acc, count: usize) -> Self::Out;
}

/// Runs a kernel of a rule with the best instruction set for it.
#[inline(always)]
pub fn run_for<T: Copy, R: Reducer<T>, K: Kernel>(kernel: K) -> K::Output {
    if R::COMPUTES { simd::run_wide(kernel) } else { simd::run(kernel) }
}

/// `Reducer::block` as a loop that is compiled for several instruction sets.
pub struct Block<T, R> {
    rule: R,
    x: *const T,
    n: usize,
}
impl<T: Copy, R: Reducer<T>> Block<T, R> {
    /// # Safety
    /// `x` is readable for `n` elements while the value lives.
    #[inline(always)]
    pub unsafe fn new(rule: R, x: *const T, n: usize) -> Self {
        Block { rule, x, n }
    }
}
impl<T: Copy, R: Reducer<T>> Block<T, R> {
    /// Folds the elements with the best instruction set for the rule.
    #[inline(always)]
    pub fn fold(self) -> R::Acc {
        run_for::<T, R, _>(self)
    }
}
impl<T: Copy, R: Reducer<T>> Kernel for Block<T, R> {
    type Output = R::Acc;
    #[inline(always)]
    fn run<F: Fuse>(self) -> R::Acc {
        // SAFETY: the promise made to `new`.
        unsafe { self.rule.block::<F>(self.x, self.n) }
    }
}

/// `Reducer::columns` as such a loop.
pub struct Columns<'a, T: Copy, R: Reducer<T>> {
    rule: R,
    rows: &'a [*const T],
    width: usize,
    acc: *mut R::Acc,
}
impl<'a, T: Copy, R: Reducer<T>> Columns<'a, T, R> {
    /// # Safety
    /// Each row is readable, and `acc` holds valid accumulators that nobody else uses, for `width` elements while the
    /// value lives.
    #[inline(always)]
    pub unsafe fn new(rule: R, rows: &'a [*const T], width: usize, acc: *mut R::Acc) -> Self {
        Columns { rule, rows, width, acc }
    }
}
impl<T: Copy, R: Reducer<T>> Kernel for Columns<'_, T, R> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        // SAFETY: the promise made to `new`.
        unsafe { self.rule.columns::<F>(self.rows, self.width, self.acc) }
    }
}

/// Merging a row of accumulators into another, as such a loop.
pub struct Merge<'a, T: Copy, R: Reducer<T>> {
    pub rule: R,
    pub into: &'a mut [R::Acc],
    pub from: &'a [R::Acc],
    pub mark: PhantomData<T>,
}
impl<T: Copy, R: Reducer<T>> Kernel for Merge<'_, T, R> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let rule = self.rule;
        self.into.iter_mut().zip(self.from).for_each(|(a, &b)| *a = rule.merge(*a, b));
    }
}

/// The results of a row of accumulators of `count` elements each, as such a loop.
pub struct Finish<'a, T: Copy, R: Reducer<T>> {
    pub rule: R,
    pub acc: &'a [R::Acc],
    pub count: usize,
    pub results: &'a mut [MaybeUninit<R::Out>],
    pub mark: PhantomData<T>,
}
impl<T: Copy, R: Reducer<T>> Kernel for Finish<'_, T, R> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        for (result, &acc) in self.results.iter_mut().zip(self.acc) {
            result.write(self.rule.finish(acc, self.count));
        }
    }
}

/// A rule that folds one element at a time.
pub trait Step<T: Copy>: Copy + Send + Sync {
    type Acc: Copy + Send + Sync;
    type Out: Element;
    fn init(self) -> Self::Acc;
    fn step(self, acc: Self::Acc, x: T) -> Self::Acc;
    fn merge(self, a: Self::Acc, b: Self::Acc) -> Self::Acc;
    fn finish(self, acc: Self::Acc, count: usize) -> Self::Out;
}

/// Runs a `Step` over blocks in independent lanes.
#[derive(Clone, Copy)]
pub struct Lanes<S>(pub S);

impl<T: Copy, S: Step<T>> Reducer<T> for Lanes<S> {
    type Acc = S::Acc;
    type Out = S::Out;
    const BLOCK: usize = LONG;
    #[inline(always)]
    fn empty(self) -> S::Acc {
        self.0.init()
    }
    #[inline(always)]
    unsafe fn block<F: Fuse>(self, x: *const T, n: usize) -> S::Acc {
        // SAFETY: the caller guarantees `n` elements.
        let x = unsafe { std::slice::from_raw_parts(x, n) };
        match size_of::<S::Acc>() {
            0..=4 => lanes::<T, S, 16>(self.0, x),
            5..=8 => lanes::<T, S, 8>(self.0, x),
            _ => lanes::<T, S, 2>(self.0, x),
        }
    }
    #[inline(always)]
    unsafe fn columns<F: Fuse>(self, rows: &[*const T], width: usize, acc: *mut S::Acc) {
        let rule = self.0;
        // SAFETY: the caller guarantees `width` elements of each row and of `acc`.
        unsafe {
            // The addresses are copied out of the slice: rereading them after each store would prevent vectorisation.
            let (quads, rest) = rows.as_chunks::<4>();
            for &[p, q, r, s] in quads {
                for j in 0..width {
                    let a = rule.step(rule.step(*acc.add(j), *p.add(j)), *q.add(j));
                    *acc.add(j) = rule.step(rule.step(a, *r.add(j)), *s.add(j));
                }
            }
            for &r in rest {
                for j in 0..width {
                    *acc.add(j) = rule.step(*acc.add(j), *r.add(j));
                }
            }
        }
    }
    #[inline(always)]
    fn merge(self, a: S::Acc, b: S::Acc) -> S::Acc {
        self.0.merge(a, b)
    }
    #[inline(always)]
    fn finish(self, acc: S::Acc, count: usize) -> S::Out {
        self.0.finish(acc, count)
    }
}

/// Bundles of lanes, and in a long run the places that are read at once.
const STREAMS: usize = 4;
/// From here on a run is read in four places: prefetchers then reach across the ends of pages. Where each of them had few
/// pages, restarting them would cost more (docs/decisions/memory.md).
const LONG: usize = 1 << 16;

/// Folds a run: as many elements as fill four bundles of `W` lanes at once, the rest eight lanes at a time, then one.
#[inline(always)]
fn lanes<T: Copy, S: Step<T>, const W: usize>(rule: S, x: &[T]) -> S::Acc {
    let (body, tail) = x.split_at(x.len() - x.len() % (STREAMS * W));
    let (octets, rest) = tail.as_chunks::<8>();
    let end = rest.iter().fold(rule.init(), |acc, &v| rule.step(acc, v));
    let end = if octets.is_empty() { end } else { rule.merge(tree(rule, chunks(rule, octets)), end) };
    if body.is_empty() { end } else { rule.merge(tree(rule, streams::<T, S, W>(rule, body)), end) }
}

/// Folds a run lane by lane, its quarters or neighbouring elements in parallel, and combines them; the length is a multiple
/// of all lanes.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // one index for two arrays
fn streams<T: Copy, S: Step<T>, const W: usize>(rule: S, x: &[T]) -> [S::Acc; W] {
    let quarter = x.len() / STREAMS;
    let (step, apart) = if x.len() >= LONG { (W, quarter) } else { (STREAMS * W, W) };
    let mut acc = [[rule.init(); W]; STREAMS];
    for at in (0..quarter / W).map(|i| i * step) {
        // With the loops in this order LLVM vectorises all rules.
        for i in 0..W {
            for k in 0..STREAMS {
                // SAFETY: the steps and the distances cover the run, in either order.
                acc[k][i] = rule.step(acc[k][i], unsafe { *x.get_unchecked(k * apart + at + i) });
            }
        }
    }
    // Without `black_box` LLVM would merge this with the code below and compile scalar lanes.
    let [p, q, r, s] = std::hint::black_box(acc);
    let both = |a: [S::Acc; W], b: [S::Acc; W]| std::array::from_fn(|i| rule.merge(a[i], b[i]));
    both(both(p, r), both(q, s))
}

/// Folds chunks lane by lane.
#[inline(always)]
fn chunks<T: Copy, S: Step<T>, const L: usize>(rule: S, x: &[[T; L]]) -> [S::Acc; L] {
    let mut acc = [rule.init(); L];
    for c in x {
        for i in 0..L {
            acc[i] = rule.step(acc[i], c[i]);
        }
    }
    std::hint::black_box(acc) // as above
}

#[inline(always)]
fn tree<T: Copy, S: Step<T>, const L: usize>(rule: S, mut acc: [S::Acc; L]) -> S::Acc {
    let mut width = L;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            acc[i] = rule.merge(acc[i], acc[i + width]);
        }
    }
    acc[0]
}
