//! Products of real floats: tiles in registers, over factors that are read where they lie or packed first.
//!
//! The blocking: the rows of a tile, some hundred terms of them, stay in L1 while they meet the columns of a block, which
//! stays in L2. An element is summed in order, in blocks of terms whose size depends only on their number, so its bits do not
//! depend on the rows and columns beside it, and on how a product is split.

use super::tiles::{
    self, Below, Beside, Finish, Job, LARGEST_SIDE, MANY, Pack, Panel, Rows, Start, TALLEST, Tile, Unit, VECTORS,
    Vectors, WIDEST, tile_size,
};
use super::{Matrix, Multiply, Series, dots, tiny};
use crate::cpu::scratch::Temp;
use crate::error::Result;
use std::mem::MaybeUninit;
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// Bytes of a row in a block: a tile's rows of so many stay in L1.
const LINE: usize = 2048;
/// Bytes of a usual L2.
const L2: usize = 1 << 20;
/// Bytes over which columns may lie that are read where they are: more would need too many pages at a time.
const REACH: usize = 1 << 20;
/// Panels of columns from which on the rows of a tile are packed.
const OFTEN: usize = 6;
/// Tiles whose rows are packed together where a term's lie side by side, and terms at a time.
const TOGETHER: usize = 8;
const CHUNK: usize = 64;
/// Up to so many terms, tiles are low and wide: writing the result takes most of the time.
const BRIEF: usize = 4;
/// Elements of packed factors that need no memory but the stack's.
const FEW: usize = 1024;

/// How a product is computed: of its size and strides alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    way: Way,
    /// Terms and columns of a block.
    terms: usize,
    cols: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// Without tiles.
    Tiny(tiny::Way),
    /// As sums over vectors of terms.
    Dots,
    /// As tiles of the product, or of its transpose.
    Tiles { flipped: bool, rows: Source, packed: bool },
}

/// Where the rows of a tile are read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    /// In the matrix, whose terms lie side by side, or whose rows do.
    Below,
    Beside,
    /// In packed memory.
    Packed,
}

/// A factor or a result: the strides of its rows and columns.
type Strides = [usize; 2];

/// What a product costs, about, in sixteenths of a cycle.
fn cost([m, n, k]: [usize; 3], a: Strides, b: Strides, out: Strides, lanes: usize) -> usize {
    // Two sums at a time; those of a few rows wait for each other.
    let waiting = if m < 4 { 4 / m } else { 1 };
    // A tile of one vector is bound by the loads of its rows.
    let vectors = n.div_ceil(lanes);
    let tiles = (8 * vectors + 2 * (vectors % 2)) * m * k * waiting;
    let columns = if b[1] == 1 {
        0
    } else if b[0] == 1 {
        6
    } else {
        24
    };
    let rows = if a[0] == 1 || a[1] == 1 { 0 } else { 24 };
    let written = if out[1] == 1 {
        0
    } else if out[0] == 1 {
        24
    } else {
        64
    };
    tiles + k * (columns * n + rows * m) + written * m * n
}

/// Bytes of the L2 cache.
fn l2() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        static SIZE: OnceLock<usize> = OnceLock::new();
        // Processors that do not know the question say nothing.
        *SIZE.get_or_init(|| match (std::arch::x86_64::__cpuid(0x8000_0006).ecx >> 16) as usize * 1024 {
            0 => L2,
            size => size.clamp(L2 / 4, 2 * L2),
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    L2
}

impl Plan {
    /// For `out = a @ b` of a size `[m, n, k]`; the strides are those of `a`, `b` and `out`.
    pub(super) fn new<T: Vectors>([m, n, k]: [usize; 3], [a, b, out]: [Strides; 3]) -> Plan {
        let [tall, wide] = tile_size::<T>();
        if let Some(way) = tiny::way([m, n, k], a, b) {
            return Plan { way: Way::Tiny(way), terms: k, cols: wide };
        }
        let lanes = wide / VECTORS;
        let back = |s: Strides| [s[1], s[0]];
        let plain = cost([m, n, k], a, b, out, lanes);
        let flipped = cost([n, m, k], back(b), back(a), back(out), lanes);
        let dots = if a[1] == 1 && b[0] == 1 { m * n * (8 * k.div_ceil(lanes) + 120) } else { usize::MAX };
        let most = LINE / size_of::<T>();
        let terms = k.div_ceil(k.div_ceil(most).max(1)).max(1);
        let bytes = terms * size_of::<T>();
        if dots < plain.min(flipped) {
            return Plan { way: Way::Dots, terms, cols: wide };
        }
        let turn = flipped < plain;
        let (n, m, a, b) = if turn { (m, n, back(b), back(a)) } else { (n, m, a, b) };
        let most = (l2() / 2 / bytes).max(wide);
        let cols = n.div_ceil(n.div_ceil(most)).next_multiple_of(wide);
        let rows = match a {
            [_, 1] if n < OFTEN * wide => Source::Below,
            [1, _] if n <= 2 * wide || (n < OFTEN * wide && bytes * a[1] <= REACH / 4) => Source::Beside,
            _ => Source::Packed,
        };
        // Rows a page apart compete for the same lines of the cache.
        let far = bytes * b[0] > REACH || (b[0] * size_of::<T>()).is_multiple_of(4096);
        let packed = b[1] != 1 || (m > 2 * tall && far);
        Plan { way: Way::Tiles { flipped: turn, rows, packed }, terms, cols }
    }
    /// Rows and columns of the smallest parts that are worth a task.
    fn smallest_part<T: Vectors>(&self) -> [usize; 2] {
        let [tall, wide] = tile_size::<T>();
        match self.way {
            Way::Tiny(_) | Way::Dots => [16, 16],
            Way::Tiles { flipped: false, .. } => [4 * tall, 2 * wide],
            Way::Tiles { flipped: true, .. } => [2 * wide, 4 * tall],
        }
    }

    /// `out = beta * old + alpha * a @ b` in tiles.
    ///
    /// # Safety
    /// As for `Multiply::multiply`, and the elements of `old` lie side by side in the direction in which those of `out` do.
    unsafe fn in_tiles<T: Vectors>(
        &self,
        (flipped, rows, packed): (bool, Source, bool),
        [m, n, k]: [usize; 3],
        [a, b, old, out]: [Matrix<T>; 4],
        factors: [T; 2],
    ) -> Result<()> {
        let (size, [a, b]) = if flipped { ([n, m, k], [b.t(), a.t()]) } else { ([m, n, k], [a, b]) };
        let [old, out] = [old, out].map(|x| if flipped { x.t() } else { x });
        let [tall, wide] = tile_size::<T>();
        // Columns beyond the last whole tile are packed in any case.
        let cols = if packed { self.cols.min(size[1]).next_multiple_of(wide) } else { wide };
        let columns = if packed || size[1] % (wide / VECTORS) != 0 { self.terms * cols } else { 0 };
        let lines = match rows {
            Source::Below | Source::Beside => 0,
            Source::Packed => together(&a, tiles_of(size, tall)) * tall.next_multiple_of(LARGEST_SIDE) * self.terms,
        };
        let mut few = [const { MaybeUninit::<T>::uninit() }; FEW];
        let many: Temp<T>;
        let memory = if columns + lines <= FEW {
            few.as_mut_ptr().cast()
        } else {
            many = Temp::new(columns + lines)?;
            many.ptr()
        };
        let memory = [memory, memory.wrapping_add(columns)];
        tiles::run(Blocks { plan: self, rows, packed, size, a, b, old, out, factors, memory });
        Ok(())
    }
}

/// The tiles below each other in a result, of up to so many rows.
#[inline(always)]
fn tiles_of([m, _, k]: [usize; 3], tall: usize) -> usize {
    m.div_ceil(if k <= BRIEF { 2 } else { tall })
}
/// The tiles whose rows are packed at a time.
#[inline(always)]
fn together<T>(rows: &Matrix<T>, tiles: usize) -> usize {
    if rows.rows == 1 { TOGETHER.min(tiles) } else { 1 }
}

struct Blocks<'a, T> {
    plan: &'a Plan,
    rows: Source,
    packed: bool,
    size: [usize; 3],
    a: Matrix<T>,
    b: Matrix<T>,
    old: Matrix<T>,
    out: Matrix<T>,
    /// Alpha and beta.
    factors: [T; 2],
    /// For packed columns, and for a tile's rows.
    memory: [*mut T; 2],
}

impl<T: Vectors> Job<T> for Blocks<'_, T> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<U: Unit<Float = T>>(self) {
        let [m, n, k] = self.size;
        let tiles = tiles_of(self.size, U::ROWS);
        let rows = |tile: usize| [tile * m / tiles, (tile + 1) * m / tiles - tile * m / tiles];
        let together = together(&self.a, tiles);
        for col in (0..n).step_by(self.plan.cols) {
            let end = n.min(col + self.plan.cols);
            let mut term = 0;
            loop {
                let block = [term, self.plan.terms.min(k - term)];
                // SAFETY: the block lies inside the matrices, and the memory holds its panels and the rows of some tiles.
                unsafe {
                    let mut first = col;
                    while first < end {
                        first += self.pack::<U>([col, first, end], block);
                    }
                    for tile in 0..tiles {
                        let place = tile % together;
                        if self.rows == Source::Packed && place == 0 {
                            let last = tiles.min(tile + together);
                            for chunk in (0..block[1]).step_by(CHUNK) {
                                for other in tile..last {
                                    self.pack_rows::<U>(rows(other), other - tile, block, chunk);
                                }
                            }
                        }
                        self.tiles::<U>(rows(tile), place, [col, end], block);
                    }
                }
                term += self.plan.terms;
                if term >= k {
                    break;
                }
            }
        }
    }
}

impl<T: Vectors> Blocks<'_, T> {
    /// Where the packed rows of a tile lie.
    #[inline(always)]
    fn lines<U: Unit<Float = T>>(&self, place: usize) -> (*mut T, usize) {
        let width = U::ROWS.next_multiple_of(U::SIDE);
        (self.memory[1].wrapping_add(place * width * self.plan.terms), width)
    }
    /// Packs some terms of the rows of a tile.
    ///
    /// # Safety
    /// The rows lie inside the matrix, and there is memory for so many tiles.
    #[inline(always)]
    unsafe fn pack_rows<U: Unit<Float = T>>(
        &self,
        [row, rows]: [usize; 2],
        place: usize,
        [term, terms]: [usize; 2],
        chunk: usize,
    ) {
        let (to, width) = self.lines::<U>(place);
        let (from, terms) = (self.a.from(row, term + chunk).t(), CHUNK.min(terms - chunk));
        // SAFETY: the caller's promise.
        unsafe { U::call(Pack { from, terms, filled: rows, width, to: to.wrapping_add(chunk * width) }) };
    }
    /// The columns of a panel, `left` before the end.
    #[inline(always)]
    fn width<U: Unit<Float = T>>(&self, left: usize) -> usize {
        if left <= U::LANES {
            U::LANES
        } else if (self.size[0] <= 2 || self.size[2] <= BRIEF) && left >= MANY * U::LANES {
            MANY * U::LANES
        } else {
            U::WIDTH
        }
    }
    /// The panel that begins with a column: where it is packed, if it is.
    #[inline(always)]
    fn panel(&self, [col, first, end]: [usize; 3], width: usize, terms: usize) -> Option<*mut T> {
        if self.packed {
            Some(self.memory[0].wrapping_add((first - col) * terms))
        } else if first + width > end {
            Some(self.memory[0])
        } else {
            None
        }
    }

    /// Packs a panel of the block of columns, if it is to be, and returns its width.
    ///
    /// # Safety
    /// The block lies inside the matrix, and the memory holds its panels.
    #[inline(always)]
    unsafe fn pack<U: Unit<Float = T>>(&self, at: [usize; 3], [term, terms]: [usize; 2]) -> usize {
        let left = at[2] - at[1];
        let width = self.width::<U>(left);
        if let Some(to) = self.panel(at, width, terms) {
            let from = self.b.from(term, at[1]);
            // SAFETY: the caller's promise.
            unsafe { U::call(Pack { from, terms, filled: width.min(left), width, to }) };
        }
        width
    }

    /// The rows of a tile times a block of columns.
    ///
    /// # Safety
    /// As for `pack`, and the panels are packed.
    #[inline(always)]
    unsafe fn tiles<U: Unit<Float = T>>(
        &self,
        [row, rows]: [usize; 2],
        place: usize,
        [col, end]: [usize; 2],
        [term, terms]: [usize; 2],
    ) {
        let from = self.a.from(row, term);
        let mut first = col;
        while first < end {
            let width = self.width::<U>(end - first);
            let (b, apart) = match self.panel([col, first, end], width, terms) {
                Some(panel) => (panel.cast_const(), width),
                None => (self.b.at(term, first).cast_const(), self.b.rows),
            };
            let piece = Piece { b, apart, width, rows, cols: width.min(end - first), at: [row, first], term, terms };
            // SAFETY: the caller's promise.
            unsafe {
                match self.rows {
                    Source::Below => self.tile::<U, _>(Below(from.ptr, from.rows), piece),
                    Source::Beside => self.tile::<U, _>(Beside(from.ptr, from.cols), piece),
                    Source::Packed => {
                        let (lines, step) = self.lines::<U>(place);
                        self.tile::<U, _>(Beside(lines, step), piece)
                    }
                }
            }
            first += width;
        }
    }

    /// A tile over a block of terms.
    ///
    /// # Safety
    /// The tile lies inside the result, its factors in memory.
    #[inline(always)]
    unsafe fn tile<U: Unit<Float = T>, A: Rows<T>>(&self, a: A, p: Piece<T>) {
        let (out, [alpha, beta]) = (self.out.from(p.at[0], p.at[1]), self.factors);
        let (old, beta) = if p.term == 0 { (self.old.from(p.at[0], p.at[1]), beta) } else { (out, T::ONE) };
        let tile = Tile { terms: p.terms, a, b: Panel(p.b, p.apart), out, cols: p.cols, start: Start::Zero };
        // SAFETY: the caller's promise; the sums hold a whole tile.
        unsafe {
            if alpha == T::ONE && out.cols == 1 && (beta == T::ZERO || beta == T::ONE) {
                let start = if beta == T::ZERO { Start::Zero } else { Start::Onto(old) };
                Tile { start, ..tile }.run::<U>(p.rows);
            } else {
                let mut sums = [const { MaybeUninit::<T>::uninit() }; TALLEST * WIDEST];
                let sums = Matrix { ptr: sums.as_mut_ptr().cast(), rows: p.width, cols: 1 };
                Tile { out: sums, cols: p.width, ..tile }.run::<U>(p.rows);
                U::call(Finish { from: sums, old, out, size: [p.rows, p.cols], factors: [alpha, beta] });
            }
        }
    }
}

/// A tile of the result at a row and column, of `width` columns in whole vectors, `cols` of them inside; the columns of the
/// second factor, with the distance of its terms; first and number of the terms.
#[derive(Clone, Copy)]
struct Piece<T> {
    b: *const T,
    apart: usize,
    width: usize,
    rows: usize,
    cols: usize,
    at: [usize; 2],
    term: usize,
    terms: usize,
}

const _: () = assert!(2 * MANY * (WIDEST / VECTORS) <= TALLEST * WIDEST);

impl<T: Vectors> Multiply<T> for Plan {
    fn plan(size: [usize; 3], strides: [Strides; 3]) -> Plan {
        Plan::new::<T>(size, strides)
    }
    fn smallest(&self) -> [usize; 2] {
        self.smallest_part::<T>()
    }
    unsafe fn multiply(&self, size: [usize; 3], series: Series<T>, factors: [T; 2]) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            match self.way {
                Way::Tiny(way) => tiny::multiply(way, size, series, factors),
                Way::Dots => series.each().for_each(|x| dots::multiply(size, x, factors)),
                Way::Tiles { flipped, rows, packed } => {
                    for matrices in series.each() {
                        self.in_tiles((flipped, rows, packed), size, matrices, factors)?;
                    }
                }
            }
        }
        Ok(())
    }
}
