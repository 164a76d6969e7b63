//! The innermost loop of products, convolutions and attention: a tile of the result, computed in registers.
//!
//! The second factor is read a row of up to `WIDTH` columns at a time, from a panel or where it lies; the rows of the first are
//! read element by element, from anywhere.

use super::Matrix;
pub use super::unit::{Job, LARGEST_SIDE, MOST_LANES, TALLEST, Unit, VECTORS, Vectors, WIDEST, run, tile_size};
use crate::cpu::arith::Arith;
use std::mem::MaybeUninit;

/// Vectors of a tile of one row or two, whose sums would else wait for each other.
pub const MANY: usize = 8;
/// Terms from which on a tile of the result is fetched before it is needed.
const LONG: usize = 128;
/// Rows of a tile, in whole vectors and whole blocks of those that `Unit::turn` transposes.
pub(in crate::cpu) const ROOM: usize = MOST_LANES;
const _: () = assert!(TALLEST <= ROOM);

/// What the sums of a tile are added to.
#[derive(Clone, Copy)]
pub enum Start<T> {
    Zero,
    /// The result as it is.
    Result,
    /// The same elements of another matrix, whose columns lie side by side.
    Onto(Matrix<T>),
    /// One number for each row.
    Rows(*const T),
}

/// The rows of a first factor, one term at a time.
pub trait Rows<T>: Copy {
    /// Whether the loop over terms is worth unrolling: not where addresses of rows would take registers.
    const UNROLLED: bool = true;
    /// # Safety
    /// The term has a row `i`.
    unsafe fn get(self, i: usize) -> T;
    /// The next term of `rows` rows.
    fn next(self, rows: usize) -> Self;
}

/// Rows of a panel: those of a term lie side by side.
#[derive(Clone, Copy)]
pub struct Packed<T>(pub *const T);
impl<T: Copy> Rows<T> for Packed<T> {
    #[inline(always)]
    unsafe fn get(self, i: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { *self.0.add(i) }
    }
    #[inline(always)]
    fn next(self, rows: usize) -> Packed<T> {
        Packed(self.0.wrapping_add(rows))
    }
}

/// The same with terms so far apart.
#[derive(Clone, Copy)]
pub struct Beside<T>(pub *const T, pub usize);
impl<T: Copy> Rows<T> for Beside<T> {
    #[inline(always)]
    unsafe fn get(self, i: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { *self.0.add(i) }
    }
    #[inline(always)]
    fn next(self, _rows: usize) -> Beside<T> {
        Beside(self.0.wrapping_add(self.1), self.1)
    }
}

/// Rows so far apart, whose terms lie side by side.
#[derive(Clone, Copy)]
pub struct Below<T>(pub *const T, pub usize);
impl<T: Copy> Rows<T> for Below<T> {
    const UNROLLED: bool = false;
    #[inline(always)]
    unsafe fn get(self, i: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { *self.0.add(i * self.1) }
    }
    #[inline(always)]
    fn next(self, _rows: usize) -> Below<T> {
        Below(self.0.wrapping_add(1), self.1)
    }
}

/// The same with a distance known to the compiler, so that addresses need no registers.
#[derive(Clone, Copy)]
pub struct Apart<T, const STEP: usize>(pub *const T);
impl<T: Copy, const STEP: usize> Rows<T> for Apart<T, STEP> {
    #[inline(always)]
    unsafe fn get(self, i: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { *self.0.add(i * STEP) }
    }
    #[inline(always)]
    fn next(self, _rows: usize) -> Apart<T, STEP> {
        Apart(self.0.wrapping_add(1))
    }
}

/// Rows that lie anywhere in memory: an element is at the offset of its row from that of its term.
#[derive(Clone, Copy)]
pub struct Scattered<T> {
    pub from: *const T,
    pub rows: *const usize,
    pub terms: *const usize,
}
/// Rows of a scattered tile: their offsets stay in registers.
pub const SCATTERED: usize = 9;
impl<T: Copy> Rows<T> for Scattered<T> {
    const UNROLLED: bool = false;
    #[inline(always)]
    unsafe fn get(self, i: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { *self.from.add(*self.terms).add(*self.rows.add(i)) }
    }
    #[inline(always)]
    fn next(self, _rows: usize) -> Scattered<T> {
        Scattered { terms: self.terms.wrapping_add(1), ..self }
    }
}

/// The columns of a second factor, one term at a time.
pub trait Columns<T>: Copy {
    /// The vector with this index.
    ///
    /// # Safety
    /// The term has it; the processor has the unit's instructions.
    unsafe fn load<U: Unit<Float = T>>(self, vector: usize) -> U::Vector;
    fn next(self) -> Self;
}

/// Columns that lie side by side, with terms so far apart: those of a panel, or of a matrix.
#[derive(Clone, Copy)]
pub struct Panel<T>(pub *const T, pub usize);
impl<T: Copy> Columns<T> for Panel<T> {
    #[inline(always)]
    unsafe fn load<U: Unit<Float = T>>(self, vector: usize) -> U::Vector {
        // SAFETY: the caller's promise.
        unsafe { U::load(self.0.add(vector * U::LANES)) }
    }
    #[inline(always)]
    fn next(self) -> Panel<T> {
        Panel(self.0.wrapping_add(self.1), self.1)
    }
}

/// Vectors that begin anywhere in memory, and terms at these offsets from there.
#[derive(Clone, Copy)]
pub struct Windows<T> {
    pub from: [*const T; VECTORS],
    pub terms: *const usize,
}
impl<T: Copy> Columns<T> for Windows<T> {
    #[inline(always)]
    unsafe fn load<U: Unit<Float = T>>(self, vector: usize) -> U::Vector {
        // SAFETY: the caller's promise.
        unsafe { U::load(self.from[vector % VECTORS].add(*self.terms)) }
    }
    #[inline(always)]
    fn next(self) -> Windows<T> {
        Windows { terms: self.terms.wrapping_add(1), ..self }
    }
}

/// A loop over the rows of a tile, written out: sums stay in registers only if all their indices are constants, and the
/// compiler leaves a long loop as it is.
macro_rules! unrolled {
    ($i:ident < $rows:expr, $body:block) => {
        unrolled!(@ $i, $rows, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13)
    };
    (@ $i:ident, $rows:expr, $body:block, $($n:literal)*) => {$(
        if $n < $rows {
            let $i = $n;
            $body
        }
    )*};
}
const _: () = assert!(TALLEST == 14);

/// Adds the products of a term, and goes on to the next.
///
/// # Safety
/// The factors hold the term, of `R` rows and `V` vectors; the processor has the unit's instructions.
#[allow(clippy::needless_range_loop)] // the sums stay in registers only if all their indices are constants
#[inline(always)]
unsafe fn term<U: Unit, A: Rows<U::Float>, B: Columns<U::Float>, const R: usize, const V: usize>(
    (a, b): (&mut A, &mut B),
    sums: &mut [[U::Vector; V]; R],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut row = [U::splat(U::Float::ZERO); V];
        for j in 0..V {
            row[j] = b.load::<U>(j);
        }
        for i in 0..R {
            let x = U::splat(a.get(i));
            for j in 0..V {
                sums[i][j] = U::fma(x, row[j], sums[i][j]);
            }
        }
        (*a, *b) = (a.next(R), b.next());
    }
}

/// A tile of `terms` terms with `cols` columns inside the result, whose columns lie side by side.
#[derive(Clone, Copy)]
pub struct Tile<T, A = Packed<T>, B = Panel<T>> {
    pub terms: usize,
    pub a: A,
    pub b: B,
    pub out: Matrix<T>,
    pub cols: usize,
    pub start: Start<T>,
}

impl<T, B> Tile<T, (), B> {
    /// A tile with this first factor.
    #[inline(always)]
    pub fn of<A>(self, a: A) -> Tile<T, A, B> {
        let Tile { terms, b, out, cols, start, .. } = self;
        Tile { terms, a, b, out, cols, start }
    }
}

impl<T: Vectors, A: Rows<T>, B: Columns<T>> Tile<T, A, B> {
    /// Computes the tile with `rows` rows, at most those of the unit; of one row or two, it may have `MANY` vectors of columns.
    ///
    /// # Safety
    /// The factors hold the terms, of `rows` and of whole vectors that hold the columns; rows, columns and the start lie in
    /// memory. The processor has the unit's instructions.
    #[inline(always)]
    pub unsafe fn run<U: Unit<Float = T>>(self, rows: usize) {
        debug_assert!(self.out.cols == 1 && (rows <= U::ROWS && self.cols <= U::WIDTH || rows <= 2));
        // SAFETY: the caller's promise.
        unsafe { U::call(Sized(&self, rows)) }
    }

    /// # Safety
    /// As for `run`.
    #[inline(always)]
    unsafe fn wide<U: Unit<Float = T>, const V: usize>(&self, rows: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match rows {
                1 => self.rows::<U, 1, V>(),
                2 => self.rows::<U, 2, V>(),
                3 => self.rows::<U, 3, V>(),
                4 => self.rows::<U, 4, V>(),
                5 if U::ROWS >= 5 => self.rows::<U, 5, V>(),
                6 if U::ROWS >= 6 => self.rows::<U, 6, V>(),
                7 if U::ROWS >= 7 => self.rows::<U, 7, V>(),
                8 if U::ROWS >= 8 => self.rows::<U, 8, V>(),
                9 if U::ROWS >= 9 => self.rows::<U, 9, V>(),
                10 if U::ROWS >= 10 => self.rows::<U, 10, V>(),
                11 if U::ROWS >= 11 => self.rows::<U, 11, V>(),
                12 if U::ROWS >= 12 => self.rows::<U, 12, V>(),
                13 if U::ROWS >= 13 => self.rows::<U, 13, V>(),
                14 if U::ROWS >= 14 => self.rows::<U, 14, V>(),
                _ => debug_assert!(false, "no tile has {rows} rows"),
            }
        }
    }

    #[allow(clippy::needless_range_loop)] // the sums stay in registers only if all their indices are constants
    #[inline(always)]
    unsafe fn rows<U: Unit<Float = T>, const R: usize, const V: usize>(&self) {
        let out = self.out;
        // SAFETY: the caller's promise about factors and result.
        unsafe {
            let mut sums = [[U::splat(T::ZERO); V]; R];
            if let Start::Rows(start) = self.start {
                for i in 0..R {
                    sums[i] = [U::splat(*start.add(i)); V];
                }
            }
            if self.terms >= LONG {
                unrolled!(i < R, {
                    U::prefetch(out.at(i, 0));
                    U::prefetch(out.at(i, self.cols - 1));
                });
            }
            let (mut a, mut b) = (self.a, self.b);
            // Tiles of nearly full height are the most frequent: theirs is worth the code.
            let several = if (A::UNROLLED || V == 1) && R + 2 >= U::ROWS { 4 } else { 1 };
            for _ in 0..if several > 1 { self.terms / several } else { 0 } {
                term::<U, A, B, R, V>((&mut a, &mut b), &mut sums);
                term::<U, A, B, R, V>((&mut a, &mut b), &mut sums);
                term::<U, A, B, R, V>((&mut a, &mut b), &mut sums);
                term::<U, A, B, R, V>((&mut a, &mut b), &mut sums);
            }
            for _ in 0..if several > 1 { self.terms % several } else { self.terms } {
                term::<U, A, B, R, V>((&mut a, &mut b), &mut sums);
            }
            let old = match self.start {
                Start::Result => Some(out),
                Start::Onto(old) => Some(old),
                _ => None,
            };
            if let (true, Some(old)) = (self.cols == V * U::LANES, old) {
                unrolled!(i < R, {
                    for j in 0..V {
                        let at = j * U::LANES;
                        U::store(out.at(i, at), U::add(U::load(old.at(i, at)), sums[i][j]));
                    }
                });
                return;
            }
            if self.cols == V * U::LANES {
                unrolled!(i < R, {
                    for j in 0..V {
                        U::store(out.at(i, j * U::LANES), sums[i][j]);
                    }
                });
                return;
            }
            let mut flat = [[[const { MaybeUninit::<T>::uninit() }; WIDEST / VECTORS]; V]; R];
            let from = Matrix { ptr: flat.as_mut_ptr().cast::<T>(), rows: V * (WIDEST / VECTORS), cols: 1 };
            unrolled!(i < R, {
                for j in 0..V {
                    U::store(from.at(i, j * U::LANES), sums[i][j]);
                }
            });
            let factors = [T::ONE, if old.is_some() { T::ONE } else { T::ZERO }];
            U::call(Finish { from, old: old.unwrap_or(out), out, size: [R, self.cols], factors });
        }
    }
}

/// A tile, and its number of rows.
struct Sized<'a, T, A, B>(&'a Tile<T, A, B>, usize);
impl<T: Vectors, A: Rows<T>, B: Columns<T>> Job<T> for Sized<'_, T, A, B> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<U: Unit<Float = T>>(self) {
        // SAFETY: `Tile::run` has the caller's promise.
        unsafe {
            if self.0.cols <= U::LANES {
                self.0.wide::<U, 1>(self.1);
            } else if self.0.cols > U::WIDTH {
                match self.1 {
                    1 => self.0.rows::<U, 1, MANY>(),
                    _ => self.0.rows::<U, 2, MANY>(),
                }
            } else {
                self.0.wide::<U, VECTORS>(self.1);
            }
        }
    }
}

/// Writes sums to where they belong: `out = beta * old + alpha * sums`, of a size `[rows, cols]`, a tile's at most; `old`, whose
/// elements lie side by side where those of the result do, is not read where beta is zero. Rows of sums have room for whole vectors.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Finish<T> {
    pub from: Matrix<T>,
    pub old: Matrix<T>,
    pub out: Matrix<T>,
    pub size: [usize; 2],
    /// Alpha and beta.
    pub factors: [T; 2],
}

impl<T: Vectors> Job<T> for Finish<T> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<U: Unit<Float = T>>(self) {
        let (Finish { from, old, out, .. }, [rows, cols]) = (self, self.size);
        // SAFETY: whoever builds the job vouches for sums and result.
        unsafe {
            if out.cols == 1 {
                self.straight::<U>();
            } else if out.rows == 1 {
                let zeros = [T::ZERO; LARGEST_SIDE];
                let mut turned = [[const { MaybeUninit::<T>::uninit() }; ROOM]; LARGEST_SIDE];
                let turned = Matrix { ptr: turned.as_mut_ptr().cast::<T>(), rows: ROOM, cols: 1 };
                for j in (0..cols).step_by(U::SIDE) {
                    for i in (0..rows.next_multiple_of(U::LANES)).step_by(U::SIDE) {
                        let sums = std::array::from_fn(|r| {
                            if i + r < rows { from.at(i + r, j).cast_const() } else { zeros.as_ptr() }
                        });
                        U::turn(sums, turned.at(0, i), ROOM);
                    }
                    let size = [U::SIDE.min(cols - j), rows];
                    let [old, out] = [old, out].map(|x| x.from(0, j).t());
                    Finish { from: turned, old, out, size, ..self }.straight::<U>();
                }
            } else {
                let [alpha, beta] = self.factors;
                for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
                    let sum = (*from.at(i, j)).times(alpha);
                    *out.at(i, j) = if beta == T::ZERO { sum } else { beta.times(*old.at(i, j)).plus(sum) };
                }
            }
        }
    }
}

impl<T: Vectors> Finish<T> {
    /// For a result whose columns lie side by side.
    ///
    /// # Safety
    /// Sums and result lie in memory.
    #[inline(always)]
    unsafe fn straight<U: Unit<Float = T>>(&self) {
        let ([rows, cols], [alpha, beta]) = (self.size, self.factors);
        // SAFETY: the caller's promise.
        unsafe {
            for j in (0..cols).step_by(U::LANES) {
                let lanes = U::LANES.min(cols - j);
                for i in 0..rows {
                    let (at, mut sum) = (self.out.at(i, j), U::load(self.from.at(i, j)));
                    if alpha != T::ONE {
                        sum = U::mul(sum, U::splat(alpha));
                    }
                    if beta != T::ZERO {
                        let old = U::load_first(self.old.at(i, j), lanes);
                        sum = U::add(if beta == T::ONE { old } else { U::mul(old, U::splat(beta)) }, sum);
                    }
                    U::store_first(at, sum, lanes);
                }
            }
        }
    }
}

/// Packs `filled` columns of a matrix of `terms` rows into a panel of `width`, a multiple of the unit's `SIDE`; missing columns
/// are zero.
///
/// # Safety
/// The columns lie inside the matrix, and the panel in memory.
#[inline(always)]
pub unsafe fn pack<T: Vectors>(from: Matrix<T>, terms: usize, filled: usize, width: usize, to: *mut T) {
    run(Pack { from, terms, filled, width, to });
}

pub(in crate::cpu) struct Pack<T> {
    pub from: Matrix<T>,
    pub terms: usize,
    pub filled: usize,
    pub width: usize,
    pub to: *mut T,
}

impl<T: Vectors> Job<T> for Pack<T> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<U: Unit<Float = T>>(self) {
        debug_assert!(self.width.is_multiple_of(U::SIDE) && self.filled <= self.width);
        // SAFETY: whoever builds the job vouches for matrix and panel.
        unsafe {
            if self.from.cols == 1 {
                self.copied::<U>();
            } else if self.from.rows == 1 && self.terms >= U::SIDE {
                self.turned::<U>();
            } else {
                self.gathered();
            }
        }
    }
}

impl<T: Vectors> Pack<T> {
    /// Columns that lie side by side.
    ///
    /// # Safety
    /// The columns lie inside the matrix, and the panel in memory; so in all of these.
    #[inline(always)]
    unsafe fn copied<U: Unit<Float = T>>(&self) {
        let whole = self.width / U::LANES * U::LANES;
        for p in 0..self.terms {
            let (from, to) = (self.from.at(p, 0).cast_const(), self.to.wrapping_add(p * self.width));
            // SAFETY: the caller's promise; lanes beyond those that are filled are not read.
            unsafe {
                for j in (0..whole).step_by(U::LANES) {
                    let left = self.filled.saturating_sub(j);
                    let v =
                        if left >= U::LANES { U::load(from.add(j)) } else { U::load_first(from.wrapping_add(j), left) };
                    U::store(to.add(j), v);
                }
                if whole < self.width {
                    let v = U::load_first(from.wrapping_add(whole), self.filled.saturating_sub(whole));
                    U::store_first(to.add(whole), v, self.width - whole);
                }
            }
        }
    }

    /// Columns whose terms lie side by side, `SIDE` terms at least.
    ///
    /// # Safety
    /// See `copied`.
    #[inline(always)]
    unsafe fn turned<U: Unit<Float = T>>(&self) {
        let zeros = [T::ZERO; LARGEST_SIDE];
        let mut p = 0;
        while p < self.terms {
            // The last block repeats terms of the one before.
            p = p.min(self.terms - U::SIDE);
            for j in (0..self.width).step_by(U::SIDE) {
                let rows = std::array::from_fn(|i| {
                    if j + i < self.filled { self.from.at(p, j + i).cast_const() } else { zeros.as_ptr() }
                });
                // SAFETY: the caller's promise.
                unsafe { U::turn(rows, self.to.add(p * self.width + j), self.width) };
            }
            p += U::SIDE;
        }
    }

    /// # Safety
    /// See `copied`.
    #[inline(always)]
    unsafe fn gathered(&self) {
        // A few terms of all columns at a time: their lines of the panel stay in L1.
        for begin in (0..self.terms).step_by(16) {
            for j in 0..self.width {
                for p in begin..self.terms.min(begin + 16) {
                    // SAFETY: the caller's promise.
                    unsafe {
                        *self.to.add(p * self.width + j) = if j < self.filled { *self.from.at(p, j) } else { T::ZERO };
                    }
                }
            }
        }
    }
}
