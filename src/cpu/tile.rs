//! Splitting an iteration over strided operands into tiles that fit L1.
//!
//! The order of elements is free, so dimensions are sorted by the output's strides, then merged if all operands allow
//! it: most calls end up with one dimension. A tile is a box of at most `CHUNK_BYTES` per operand. It is filled from
//! the innermost dimension outwards, with two exceptions. If an operand is transposed, it spans 64 elements of the
//! innermost dimension and at least 16 of the one that is innermost for that operand. If rows are long and operands are
//! only broadcast along other dimensions, it is a piece of a row, which needs no gathering.

use super::strided::Dim;
use crate::layout::{Dims, memory_order};
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;

/// Bytes of one operand in a tile.
pub const CHUNK_BYTES: usize = 8 << 10;
const CHUNK: usize = 2048;
/// Columns of a tile if an operand is transposed.
const COLUMNS: usize = 64;
/// From this length on, a row gets its own tiles.
pub const LONG_ROW: usize = 512;

/// Strides in elements, and the element size.
#[derive(Clone, Copy)]
pub struct Walk<'a> {
    pub strides: &'a [usize],
    pub size: usize,
}

/// An iteration space; operand 0 is the output.
pub struct Space {
    pub shape: Dims,
    pub strides: SmallVec<[Dims; 4]>,
    tile: Dims,
    grid: Dims,
    /// The dimension along which consecutive tiles advance: contiguous memory of a transposed operand.
    first: usize,
    /// The blocks of a full tile.
    blocks: SmallVec<[Block; 4]>,
    /// The number of tiles.
    pub tiles: usize,
    /// Elements of a full tile.
    pub len: usize,
}

/// A range of each dimension.
type Region = SmallVec<[Range<usize>; 5]>;

/// A tile as a block of one operand, and whether it is contiguous.
type Block = (SmallVec<[Dim; 5]>, bool);

/// An iterator over consecutive tiles.
pub struct Tile<'a> {
    space: &'a Space,
    start: Dims,
    size: Dims,
    /// Elements of the current tile.
    pub len: usize,
    /// The blocks of a tile truncated at the end of some dimension.
    cut: SmallVec<[Block; 4]>,
}

impl Space {
    /// `widest` is the largest element size held in a tile.
    pub fn new(shape: &[usize], operands: &[Walk], widest: usize) -> Space {
        Space::in_tiles_of(shape, operands, (CHUNK_BYTES / widest).min(CHUNK))
    }
    /// With so many elements in a tile at most.
    pub fn in_tiles_of(shape: &[usize], operands: &[Walk], capacity: usize) -> Space {
        let order = memory_order(shape, operands[0].strides);
        let mut space = Space {
            shape: Dims::new(),
            strides: operands.iter().map(|_| Dims::new()).collect(),
            tile: Dims::new(),
            grid: Dims::new(),
            first: 0,
            blocks: SmallVec::new(),
            tiles: 1,
            len: 1,
        };
        for d in order {
            space.push(shape[d], |k| operands[k].strides[d]);
        }
        space.cut(operands, capacity);
        space
    }
    /// Appends an innermost dimension, or merges it into the last one.
    fn push(&mut self, size: usize, stride: impl Fn(usize) -> usize) {
        let merges = self.strides.iter().enumerate().all(|(k, s)| s.last().is_some_and(|&l| l == stride(k) * size));
        match self.shape.last_mut() {
            Some(last) if merges => {
                *last *= size;
                self.strides.iter_mut().enumerate().for_each(|(k, s)| *s.last_mut().unwrap() = stride(k));
            }
            _ => {
                self.shape.push(size);
                self.strides.iter_mut().enumerate().for_each(|(k, s)| s.push(stride(k)));
            }
        }
    }
    fn cut(&mut self, operands: &[Walk], capacity: usize) {
        let n = self.shape.len();
        self.tile = SmallVec::from_elem(1, n);
        self.first = n.saturating_sub(1);
        let mut room = capacity;
        if let Some(other) = self.transposed(operands).filter(|_| capacity >= COLUMNS) {
            self.tile[n - 1] = self.shape[n - 1].min(COLUMNS);
            self.tile[other] = self.shape[other].min(capacity / COLUMNS);
            self.first = other;
            room = capacity / (self.tile[n - 1] * self.tile[other]);
        } else if n > 1 && self.shape[n - 1] >= LONG_ROW && self.strides.iter().all(|s| s[n - 1] <= 1) {
            self.tile[n - 1] = self.shape[n - 1].min(capacity);
            room = 1;
        }
        // Fill the remaining capacity from the innermost dimension outwards, as long as inner dimensions are complete.
        for d in (0..n).rev() {
            if self.tile[d] == 1 {
                self.tile[d] = self.shape[d].min(room);
                room /= self.tile[d];
            }
            if self.tile[d] < self.shape[d] || room < 2 {
                break;
            }
        }
        self.grid = self.shape.iter().zip(&self.tile).map(|(&s, &t)| s.div_ceil(t)).collect();
        self.tiles = self.grid.iter().product();
        self.len = self.tile.iter().product();
        self.blocks = self.strides.iter().map(|s| block(&self.tile, s)).collect();
    }
    /// The dimension with the smallest stride of some operand that jumps across cache lines in the innermost one.
    fn transposed(&self, operands: &[Walk]) -> Option<usize> {
        let inner = self.shape.len().checked_sub(1)?;
        let jumping = self.strides.iter().zip(operands).filter(|(s, o)| s[inner] * o.size >= 32);
        jumping.filter_map(|(s, _)| (0..inner).filter(|&d| s[d] > 0 && s[d] < s[inner]).min_by_key(|&d| s[d])).next()
    }
    /// An iterator that starts at tile `index`.
    pub fn tile(&self, mut index: usize) -> Tile<'_> {
        let n = self.shape.len();
        let mut start: Dims = SmallVec::from_elem(0, n);
        for d in self.steps() {
            start[d] = (index % self.grid[d]) * self.tile[d];
            index /= self.grid[d];
        }
        let mut tile = Tile { space: self, start, size: self.tile.clone(), len: self.len, cut: SmallVec::new() };
        tile.fit();
        tile
    }
    /// Calls `f` with tiles that cover these elements, counted in the order of the dimensions.
    pub fn tiles_of(&self, elements: Range<usize>, f: &mut dyn FnMut(&Tile)) {
        let n = self.shape.len();
        let (start, size) = (SmallVec::from_elem(0, n), self.tile.clone());
        let mut tile = Tile { space: self, start, size, len: self.len, cut: SmallVec::new() };
        self.boxes(0, elements, SmallVec::from_elem(0..1, n), &mut |part| tile.cover(part, 0, f));
    }
    /// Splits elements into boxes. The dimensions before `d` are those of `part`; `elements` are counted from there.
    fn boxes(&self, d: usize, elements: Range<usize>, mut part: Region, f: &mut dyn FnMut(&Region)) {
        let inner: usize = self.shape[d + 1..].iter().product();
        let mut at = elements.start;
        while at < elements.end {
            let (i, left) = (at / inner, elements.end - at);
            if at.is_multiple_of(inner) && left >= inner {
                part[d] = i..i + left / inner;
                part[d + 1..].iter_mut().zip(&self.shape[d + 1..]).for_each(|(p, &n)| *p = 0..n);
                f(&part);
                at += left / inner * inner;
            } else {
                part[d] = i..i + 1;
                let end = elements.end.min((i + 1) * inner);
                self.boxes(d + 1, at - i * inner..end - i * inner, part.clone(), f);
                at = end;
            }
        }
    }
    /// The dimensions in the order in which tiles advance.
    fn steps(&self) -> impl Iterator<Item = usize> {
        let (n, first) = (self.shape.len(), self.first);
        (n > 0).then_some(first).into_iter().chain((0..n).rev().filter(move |&d| d != first))
    }
    /// Whether the whole space is one contiguous run for all operands.
    pub fn is_contiguous(&self) -> bool {
        self.shape.is_empty() || (self.shape.len() == 1 && self.strides.iter().all(|s| s[0] == 1))
    }
    /// Bytes that are contiguous in all operands, with elements of `size` bytes.
    pub fn run_bytes(&self, size: usize) -> usize {
        match self.shape.last() {
            Some(n) if self.strides.iter().all(|s| s.last() == Some(&1)) => n * size,
            _ => size,
        }
    }
    /// Whether operand `k` is a single, repeated element.
    pub fn is_constant(&self, k: usize) -> bool {
        self.strides[k].iter().all(|&s| s == 0)
    }
}

/// A box of these sizes as a block, from the outermost dimension of more than one element.
fn block(sizes: &[usize], strides: &[usize]) -> Block {
    let dims: SmallVec<[Dim; 5]> = sizes.iter().zip(strides).filter(|d| *d.0 != 1).map(|(&n, &s)| (n, s)).collect();
    let mut step = 1;
    let contiguous = dims.iter().rev().all(|&(n, s)| {
        let ok = s == step;
        step *= n;
        ok
    });
    (dims, contiguous)
}

impl Tile<'_> {
    /// Calls `f` with the tiles of a box, whose dimensions before `d` are fixed.
    fn cover(&mut self, part: &Region, d: usize, f: &mut dyn FnMut(&Tile)) {
        let Some(along) = part.get(d) else {
            let full = self.size == self.space.tile;
            self.cut.clear();
            self.len = self.size.iter().product();
            if !full {
                self.cut.extend(self.space.strides.iter().map(|s| block(&self.size, s)));
            }
            return f(self);
        };
        let step = self.space.tile[d];
        for start in along.clone().step_by(step) {
            self.start[d] = start;
            self.size[d] = step.min(along.end - start);
            self.cover(part, d + 1, f);
        }
    }
    /// Advances to the next tile; wraps to the first after the last.
    #[inline]
    pub fn advance(&mut self) {
        for d in self.space.steps() {
            self.start[d] += self.space.tile[d];
            if self.start[d] < self.space.shape[d] {
                break;
            }
            self.start[d] = 0;
        }
        self.fit();
    }
    /// Computes sizes and blocks for the current start.
    #[inline]
    fn fit(&mut self) {
        let space = self.space;
        let mut full = true;
        for d in 0..self.start.len() {
            self.size[d] = space.tile[d].min(space.shape[d] - self.start[d]);
            full &= self.size[d] == space.tile[d];
        }
        self.cut.clear();
        self.len = space.len;
        if !full {
            self.cut.extend(space.strides.iter().map(|s| block(&self.size, s)));
            self.len = self.size.iter().product();
        }
    }
    /// Whether the tile is not truncated.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.cut.is_empty()
    }
    /// Start of operand `k` in this tile, in elements.
    #[inline]
    pub fn offset(&self, k: usize) -> usize {
        self.start.iter().zip(&self.space.strides[k]).map(|(i, s)| i * s).sum()
    }
    /// The tile as a block of operand `k`, and whether it is contiguous.
    #[inline]
    pub fn block(&self, k: usize) -> (&[Dim], bool) {
        let (dims, whole) = if self.cut.is_empty() { &self.space.blocks[k] } else { &self.cut[k] };
        (dims, *whole)
    }
}

#[repr(C, align(64))]
pub struct Buffer([u8; CHUNK_BYTES]);

/// Buffers of one tile each, kept per thread between calls.
pub struct Scratch(Option<Box<[Buffer; Scratch::COUNT]>>);

thread_local! {
    static SCRATCH: Cell<Option<Box<[Buffer; Scratch::COUNT]>>> = const { Cell::new(None) };
}

impl Scratch {
    /// Two for each of eight inputs and the output.
    pub const COUNT: usize = 18;
    pub const BYTES: usize = Scratch::COUNT * CHUNK_BYTES;

    pub fn take() -> Scratch {
        let kept = SCRATCH.try_with(|s| s.take()).ok().flatten();
        // SAFETY: any bytes are valid; zeroed ones are untouched pages.
        Scratch(Some(kept.unwrap_or_else(|| unsafe { Box::new_zeroed().assume_init() })))
    }
    pub fn buffer(&mut self, i: usize) -> *mut u8 {
        match &mut self.0 {
            // Derived from one base pointer: taking the next buffer does not invalidate the last.
            Some(b) => (&raw mut **b as *mut Buffer).wrapping_add(i).cast(),
            None => unreachable!("the scratch is held until it is dropped"),
        }
    }
}
impl Drop for Scratch {
    fn drop(&mut self) {
        let held = self.0.take();
        let _ = SCRATCH.try_with(|s| s.set(held));
    }
}

/// Whether these strides are row-major without gaps for `shape`.
#[inline]
pub fn is_contiguous(shape: &[usize], strides: &[usize]) -> bool {
    let mut step = 1;
    for (&n, &s) in shape.iter().zip(strides).rev() {
        if s != step && n != 1 {
            return false;
        }
        step *= n;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_of_a_part_cover_each_of_its_elements_once() {
        let shape = [5, 7, 3, 11];
        let strides = [231, 33, 11, 1];
        for broadcast in [[0, 0, 0, 1], [33, 0, 11, 1], [3, 1, 0, 77], [231, 33, 11, 1]] {
            let walks = [Walk { strides: &strides, size: 4 }, Walk { strides: &broadcast, size: 4 }];
            for capacity in [8, 64, 256] {
                let space = Space::in_tiles_of(&shape, &walks, capacity);
                if space.shape.len() < 2 {
                    continue;
                }
                for (start, end) in [(0, 1155), (0, 11), (11, 33), (5, 6), (7, 1150), (231, 693), (400, 401), (9, 9)] {
                    let mut seen = vec![0; 1155];
                    space.tiles_of(start..end, &mut |tile| {
                        let (dims, _) = tile.block(0);
                        let mut at = vec![tile.offset(0)];
                        for &(n, step) in dims {
                            at = at.iter().flat_map(|a| (0..n).map(move |i| a + i * step)).collect();
                        }
                        assert_eq!(at.len(), tile.len);
                        at.into_iter().for_each(|i| seen[i] += 1);
                    });
                    for (i, count) in seen.iter().enumerate() {
                        assert_eq!(*count, usize::from((start..end).contains(&i)), "{broadcast:?} {start}..{end}: {i}");
                    }
                }
            }
        }
    }
}
