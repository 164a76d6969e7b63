//! Sums over a sliding window: convolutions, and phase by phase their transposes.
//!
//! The weights are packed once. For each block of outputs the input is brought into scratch memory (L2), its windows
//! are packed term block by term block, and tiles of `[channels, places]` are summed in registers. Where rows of outputs are whole
//! vectors, windows are read where they lie; where a group has few output channels, a place is summed straight from there.

use super::geometry::{Axis, Block, Grid};
use super::progress::Progress;
use super::scratch::{Image, Runs, Scratch};
use crate::cpu::gemm::Matrix;
use crate::cpu::gemm::tiles::{
    self, Beside, Columns, Job, LARGEST_SIDE, Panel, Start, Tile, Unit, Vectors, WIDEST, Windows, tile_size,
};
use crate::cpu::parallel::{num_threads, try_par_for};
use crate::cpu::scratch::Temp;
use crate::cpu::view::{SendPtr, store};
use crate::error::Result;
use crate::rt::reserve::filled;
use std::ops::Range;

/// Terms of a block: a panel of windows of so many stays in L1.
const TERMS: usize = 192;
/// Places of a block.
const PLACES: usize = 256;
/// Places of a block at most, and inputs that its scratch memory holds then.
const MOST_PLACES: usize = 1024;
const SCRATCH: usize = 1 << 14;
/// Up to so many output channels of a group, nothing is packed.
pub const FEW: usize = 3;
/// Minimum multiplications per task.
const TASK: usize = 1 << 18;

/// Dense weights of the compute type: where an element lies.
#[derive(Clone, Copy)]
pub struct Weights<T> {
    pub at: SendPtr<T>,
    pub group: usize,
    pub to: usize,
    pub from: usize,
    pub taps: [usize; 3],
}
impl<T: Copy> Weights<T> {
    /// Where an element of the kernel lies.
    fn tap(&self, index: [usize; 3]) -> usize {
        index.iter().zip(self.taps).map(|(&i, s)| i * s).sum()
    }
}

/// Where an element of the kernel lies in the weights, and its first input in a channel's scratch memory.
type Tap = (usize, usize);

/// One phase of a call.
pub struct Slide<'a, T> {
    pub input: Image<'a>,
    pub out: Image<'a>,
    pub weights: Weights<T>,
    /// One number for each output channel.
    pub bias: Option<&'a [T]>,
    pub batch: usize,
    pub groups: usize,
    /// Channels of a group.
    pub from: usize,
    pub to: usize,
    pub axes: [Axis; 3],
    /// The first axis is the batch.
    pub stacked: bool,
}

impl<T: Vectors> Slide<'_, T> {
    /// # Safety
    /// Images, weights and bias have the batch, the channels, the inputs and taps, and the outputs of the axes; the output
    /// lies apart from the others.
    pub unsafe fn run(&self, progress: Option<&Progress>) -> Result<()> {
        let grid = if self.to <= FEW {
            Grid::new(self.axes.clone(), (SCRATCH / self.from.max(1)).max(PLACES))
        } else {
            self.blocks()
        };
        // Bounded by the elements of a kernel that exists.
        let mut taps: Vec<Tap> = grid.tap_indices().map(|i| self.weights.tap(i)).zip(grid.tap_offsets()).collect();
        if self.to <= FEW {
            // Those of a column follow one another, so that `rows` finds the inputs that they share.
            taps.sort_by_key(|&(_, at)| (at / (grid.inputs[1] * grid.row), at % grid.row, at));
        }
        let terms = taps.len() * self.from;
        let offsets = (0..self.from).flat_map(|c| taps.iter().map(move |&(_, t)| (c, t)));
        let channel = grid.channel();
        let mut order = filled(0, terms)?;
        order.iter_mut().zip(offsets).for_each(|(o, (c, t))| *o = c * channel + t);
        let panels = if self.to <= FEW { self.to } else { self.to.div_ceil(tile_size::<T>()[0]) };
        let lines = if self.to <= FEW { 1 } else { self.to.div_ceil(panels).next_multiple_of(LARGEST_SIDE) };
        // SAFETY: the caller's promise.
        let weights = unsafe { self.pack_weights(&taps, terms, panels, lines)? };
        let zeros = filled(T::ZERO, if self.bias.is_some() { 0 } else { self.to })?;
        let plan = Plan { slide: self, grid, order, panels, lines, weights: SendPtr(weights.ptr()), zeros };
        let units = self.batch * self.groups * plan.grid.blocks();
        let most = plan.grid.most.iter().product::<usize>();
        let work = terms.max(1) * self.to * most;
        // Where there are few blocks, the output channels are split as well.
        let splits = (2 * num_threads()).div_ceil(units).clamp(1, panels).min((units * work / TASK).max(1));
        // Of an image: all blocks, or all of the plane of a batch.
        let planes = if self.stacked { self.axes[0].places.div_ceil(plan.grid.most[0]) } else { 1 };
        let each = self.groups * plan.grid.blocks() / planes * splits;
        try_par_for(units * splits, (TASK * splits / work.max(1)).max(1), |range| {
            let mut memory = Memory::new(&plan)?;
            for unit in range {
                let part = unit % splits;
                let panels = part * panels / splits..(part + 1) * panels / splits;
                // SAFETY: the caller's promise; units write disjoint parts of the output.
                tiles::run(Piece { plan: &plan, memory: &mut memory, unit: unit / splits, panels })?;
                if let Some(progress) = progress {
                    let (image, block) = plan.place(unit / splits);
                    let images =
                        if self.stacked { block.first[0]..block.first[0] + block.count[0] } else { image..image + 1 };
                    progress.advance(images, each);
                }
            }
            Ok(())
        })
    }

    /// Blocks of at least about `PLACES` places, or of so many more that the panels' last columns are not wasted.
    fn blocks(&self) -> Grid {
        let width = tile_size::<T>()[1];
        let most = (4 * SCRATCH / self.from.max(1)).clamp(PLACES, MOST_PLACES);
        // Several blocks for each thread, unless they are small.
        let least = 4 * num_threads();
        Grid::cheapest(self.axes.clone(), PLACES, most, |grid| {
            let outside = if grid.most[0] > 1 { 1 } else { 0 }; // such a block is not a run of the output
            let places = grid.most.iter().product::<usize>();
            if places > PLACES && self.batch * self.groups * grid.blocks() < least {
                return None;
            }
            // In cycles, about: what is computed, what is brought into scratch memory, what is copied to the output.
            let computed = grid.columns(width) * grid.taps() * self.from * self.to;
            let copied = grid.blocks() * grid.channel() * self.from * 2;
            Some(computed + copied + outside * grid.columns(1) * self.to * 2)
        })
    }

    /// The weights of all groups, in panels of about equal rows, term by term, the terms `lines` apart.
    ///
    /// # Safety
    /// The weights have the groups, channels and taps.
    unsafe fn pack_weights(&self, taps: &[Tap], terms: usize, panels: usize, lines: usize) -> Result<Temp<T>> {
        let packed: Temp<T> = Temp::new((self.groups * panels).saturating_mul(terms).saturating_mul(lines))?;
        let to = SendPtr(packed.ptr());
        try_par_for(self.groups * panels, (TASK / 8 / (terms * lines).max(1)).max(1), |range| {
            for unit in range {
                let rows = panel_rows(self.to, panels, unit % panels);
                for from in 0..self.from {
                    let line =
                        unit / panels * self.weights.group + from * self.weights.from + rows.start * self.weights.to;
                    let (mut tap, to) = (0, to.at((unit * terms + from * taps.len()) * lines));
                    while tap < taps.len() {
                        // Taps at equal distances are packed together.
                        let apart = taps.get(tap + 1).map_or(1, |next| next.0.wrapping_sub(taps[tap].0));
                        let equal = taps[tap..].windows(2).take_while(|t| t[1].0.wrapping_sub(t[0].0) == apart);
                        let n = equal.count() + 1;
                        let ptr = self.weights.at.at(line + taps[tap].0);
                        let (line, to) =
                            (Matrix { ptr, rows: apart, cols: self.weights.to }, to.wrapping_add(tap * lines));
                        // SAFETY: the elements exist, and the panel lies in the packed memory.
                        unsafe {
                            if lines == 1 {
                                (0..n).for_each(|i| *to.add(i) = *line.at(i, 0));
                            } else {
                                tiles::pack(line, n, rows.len(), lines, to);
                            }
                        }
                        tap += n;
                    }
                }
            }
            Ok(())
        })?;
        Ok(packed)
    }
}

/// The rows of a panel.
fn panel_rows(rows: usize, panels: usize, panel: usize) -> Range<usize> {
    panel * rows / panels..(panel + 1) * rows / panels
}
/// First and count of the terms of each block: one empty block if there are none.
fn term_blocks(terms: usize) -> impl Iterator<Item = (usize, usize)> {
    let each = terms.div_ceil(terms.div_ceil(TERMS).max(1)).max(1);
    (0..terms.max(1)).step_by(each).map(move |first| (first, each.min(terms - first)))
}

struct Plan<'a, 'b, T> {
    slide: &'a Slide<'b, T>,
    grid: Grid,
    /// Where the terms find their first input in scratch memory.
    order: Vec<usize>,
    panels: usize,
    /// The distance of the terms of packed weights.
    lines: usize,
    weights: SendPtr<T>,
    zeros: Vec<T>,
}

/// What a task works in.
struct Memory<T> {
    scratch: Scratch<T>,
    /// One panel, which stays in L1 while all channels meet it.
    windows: Temp<T>,
    /// The outputs of a block, if they do not lie in rows of the result.
    results: Temp<T>,
    /// The block that the scratch memory holds.
    held: Option<usize>,
}
impl<T: Vectors> Memory<T> {
    fn new(plan: &Plan<T>) -> Result<Memory<T>> {
        let places = plan.grid.most.iter().product::<usize>().next_multiple_of(WIDEST);
        let packed = if plan.slide.to <= FEW { 0 } else { WIDEST * TERMS.min(plan.order.len()) };
        Ok(Memory {
            scratch: Scratch::new(&plan.grid, plan.slide.from)?,
            windows: Temp::filled(packed + WIDEST, T::ZERO)?,
            results: Temp::new(places.saturating_mul(plan.slide.to) + WIDEST)?,
            held: None,
        })
    }
}

/// A block of the outputs of some panels of channels.
struct Piece<'a, 'b, 'c, T> {
    plan: &'a Plan<'b, 'c, T>,
    memory: &'a mut Memory<T>,
    unit: usize,
    panels: Range<usize>,
}

impl<T: Vectors> Job<T> for Piece<'_, '_, '_, T> {
    type Output = Result<()>;
    #[inline(always)]
    unsafe fn run<U: Unit<Float = T>>(self) -> Result<()> {
        let (plan, s) = (self.plan, self.plan.slide);
        let (n, block) = plan.place(self.unit);
        let group = self.unit / plan.grid.blocks() % s.groups;
        // SAFETY: the caller's promise about the operands; `direct` is where the block lies in rows of the result.
        unsafe {
            if self.memory.held.replace(self.unit) != Some(self.unit) {
                let channels = group * s.from..(group + 1) * s.from;
                self.memory.scratch.fill::<U>(&plan.grid, &block, &s.input, n, channels);
            }
            let direct = plan.direct(&block).map(|at| {
                let ptr = s.out.view.at(n * s.out.batch + group * s.to * s.out.channel + at) as *mut T;
                Matrix { ptr, rows: s.out.channel, cols: 1 }
            });
            // A load of a whole vector beyond the last place is never written.
            let width = block.places().next_multiple_of(WIDEST);
            let out = direct.unwrap_or(Matrix { ptr: self.memory.results.ptr(), rows: width, cols: 1 });
            if s.to <= FEW {
                plan.few::<U>(self.memory.scratch.ptr(), group, &block, out, self.panels.clone());
            } else {
                plan.tiles::<U>(self.memory, group, &block, out, self.panels.clone());
            }
            if direct.is_none() {
                plan.write(out, n, group, &block, self.panels);
            }
        }
        Ok(())
    }
}

/// Some columns of the rows of one output channel, and the scratch memory that they are summed from.
#[derive(Clone, Copy)]
struct Rows<T> {
    from: *const T,
    group: usize,
    channel: usize,
    column: usize,
}

/// What a panel of windows meets: panels of channels of a group, first and number of the terms, and the columns.
struct Part {
    group: usize,
    panels: Range<usize>,
    first: usize,
    count: usize,
    column: usize,
    cols: usize,
}

impl<T: Vectors> Plan<'_, '_, T> {
    /// The element of the batch, and the block, of a unit.
    fn place(&self, unit: usize) -> (usize, Block) {
        let blocks = self.grid.blocks();
        (unit / blocks / self.slide.groups, self.grid.block(unit % blocks))
    }
    /// Where the block starts in a channel of the output, if its places follow one another there.
    fn direct(&self, block: &Block) -> Option<usize> {
        let (out, axes) = (&self.slide.out, &self.grid.axes);
        let [_, h, w] = block.count;
        let follow = |i: usize, step: usize| block.count[i] == 1 || out.steps[i] * axes[i].apart == step;
        let fits = out.view.dtype == T::DTYPE && follow(2, 1) && follow(1, w) && follow(0, h * w);
        fits.then(|| self.grid.row_start(block, 0, out.steps))
    }

    /// Whether rows begin one row of scratch memory after the other.
    #[inline(always)]
    fn below<const R: usize>(&self, starts: &[usize; R]) -> bool {
        (1..R).all(|r| starts[r] == starts[r - 1] + self.grid.row)
    }
    /// Whether a term's input and those of the next two lie below each other.
    #[inline(always)]
    fn stacked(&self, term: usize) -> bool {
        let [a, b, c] = [0, 1, 2].map(|i| self.order[term + i]);
        b == a + self.grid.row && c == b + self.grid.row
    }

    fn start(&self, group: usize, row: usize) -> *const T {
        match self.slide.bias {
            Some(bias) => &raw const bias[group * self.slide.to + row],
            None => &raw const self.zeros[row],
        }
    }

    /// The packed weights of a panel of channels, from a term on.
    fn panel(&self, group: usize, panel: usize, term: usize) -> *const T {
        self.weights.at(((group * self.panels + panel) * self.order.len() + term) * self.lines)
    }

    /// A block as a product with its windows, which are packed or, where rows are whole vectors, read where they lie.
    ///
    /// # Safety
    /// The memory holds the block's input, and `out` its outputs.
    #[inline(always)]
    unsafe fn tiles<U: Unit<Float = T>>(
        &self,
        memory: &Memory<T>,
        group: usize,
        block: &Block,
        out: Matrix<T>,
        panels: Range<usize>,
    ) {
        let (places, wide) = (block.places(), block.count[2]);
        let (from, to) = (memory.scratch.ptr(), memory.windows.ptr());
        for (first, count) in term_blocks(self.order.len()) {
            let terms = &self.order[first..first + count];
            for column in (0..places).step_by(U::WIDTH) {
                let part =
                    Part { group, panels: panels.clone(), first, count, column, cols: U::WIDTH.min(places - column) };
                // SAFETY: offsets and runs are those of the scratch memory; there is room for a panel.
                unsafe {
                    if wide.is_multiple_of(U::LANES) {
                        let at = |vector: usize| {
                            let place = (column + vector * U::LANES).min(places - U::LANES);
                            from.add(self.grid.row_offset(block, place / wide) + place % wide)
                        };
                        let windows = Windows { from: std::array::from_fn(at), terms: terms.as_ptr() };
                        self.meet::<U, _>(windows, part, out);
                        continue;
                    }
                    Runs::new(&self.grid, block, column, U::LANES).pack::<U>(from, terms, to);
                    self.meet::<U, _>(Panel(to, U::WIDTH), part, out);
                }
            }
        }
    }

    /// Some windows and all channels of a part.
    ///
    /// # Safety
    /// The windows hold the terms and columns; rows and columns lie inside the output.
    #[inline(always)]
    unsafe fn meet<U: Unit<Float = T>, B: Columns<T>>(&self, windows: B, part: Part, out: Matrix<T>) {
        for panel in part.panels {
            let rows = panel_rows(self.slide.to, self.panels, panel);
            let a = Beside(self.panel(part.group, panel, part.first), self.lines);
            let start = if part.first > 0 { Start::Result } else { Start::Rows(self.start(part.group, rows.start)) };
            let (out, cols) = (out.from(rows.start, part.column), part.cols);
            // SAFETY: the caller's promise; the weights are packed.
            unsafe { Tile { terms: part.count, a, b: windows, out, cols, start }.run::<U>(rows.len()) };
        }
    }

    /// A block of few channels: places are summed from the scratch memory, some vectors of some rows at a time.
    #[inline(always)]
    unsafe fn few<U: Unit<Float = T>>(
        &self,
        from: *const T,
        group: usize,
        block: &Block,
        out: Matrix<T>,
        channels: Range<usize>,
    ) {
        const MOST: usize = 4;
        let (wide, rows) = (block.count[2], block.count[0] * block.count[1]);
        for channel in channels {
            for column in (0..wide).step_by(MOST * U::LANES) {
                let run = Rows { from, group, channel, column };
                // SAFETY: the caller's promise.
                unsafe {
                    match (wide - column).div_ceil(U::LANES) {
                        1 => (0..rows).step_by(8).for_each(|row| self.rows::<U, 1, 8>(run, block, row, out)),
                        2 => (0..rows).step_by(4).for_each(|row| self.rows::<U, 2, 4>(run, block, row, out)),
                        3 => (0..rows).step_by(2).for_each(|row| self.rows::<U, 3, 2>(run, block, row, out)),
                        _ => (0..rows).step_by(2).for_each(|row| self.rows::<U, MOST, 2>(run, block, row, out)),
                    }
                }
            }
        }
    }

    /// `V` vectors of each of `R` rows from `first` on, as many as there are. A row of the input that three neighbouring taps
    /// of a column meet is read once; the order of an element's sum is the same either way.
    #[allow(clippy::needless_range_loop)] // the sums stay in registers only if all their indices are constants
    #[inline(always)]
    unsafe fn rows<U: Unit<Float = T>, const V: usize, const R: usize>(
        &self,
        run: Rows<T>,
        block: &Block,
        first: usize,
        out: Matrix<T>,
    ) {
        let Rows { from, group, channel, column } = run;
        let (wide, rows) = (block.count[2], block.count[0] * block.count[1]);
        // The last rows meet those before them again; where there are too few, the last one is repeated.
        let first = first.min(rows.saturating_sub(R));
        let starts: [usize; R] =
            std::array::from_fn(|r| self.grid.row_offset(block, (first + r).min(rows - 1)) + column);
        let below = self.below(&starts);
        // SAFETY: offsets are those of the scratch memory, which a whole panel follows; rows and columns lie in the output.
        unsafe {
            let mut sums = [[U::splat(*self.start(group, channel)); V]; R];
            for (begin, count) in term_blocks(self.order.len()) {
                let w = self.panel(group, channel, begin);
                let mut i = 0;
                while i < count {
                    let at = from.add(self.order[begin + i]);
                    if below && i + 3 <= count && self.stacked(begin + i) {
                        let at = at.add(starts[0]);
                        let x = [U::splat(*w.add(i)), U::splat(*w.add(i + 1)), U::splat(*w.add(i + 2))];
                        for line in 0..R + 2 {
                            for v in 0..V {
                                let input = U::load(at.add(line * self.grid.row + v * U::LANES));
                                for tap in 0..3 {
                                    if line >= tap && line - tap < R {
                                        sums[line - tap][v] = U::fma(x[tap], input, sums[line - tap][v]);
                                    }
                                }
                            }
                        }
                        i += 3;
                        continue;
                    }
                    let x = U::splat(*w.add(i));
                    for r in 0..R {
                        for v in 0..V {
                            sums[r][v] = U::fma(x, U::load(at.add(starts[r] + v * U::LANES)), sums[r][v]);
                        }
                    }
                    i += 1;
                }
            }
            let mut flat = [T::ZERO; WIDEST / 2];
            for r in 0..R.min(rows - first) {
                for v in 0..V {
                    let at = column + v * U::LANES;
                    let (to, left) = (out.at(channel, (first + r) * wide + at), wide - at);
                    // What a vector writes beyond the only columns of its row is overwritten with the next row.
                    let spare = if V * U::LANES >= wide { (rows - first - r - 1) * wide } else { 0 };
                    if left + spare >= U::LANES {
                        U::store(to, sums[r][v]);
                    } else {
                        U::store(flat.as_mut_ptr(), sums[r][v]);
                        to.copy_from_nonoverlapping(flat.as_ptr(), left);
                    }
                }
            }
        }
    }

    /// Writes a block's outputs to where they belong, in the dtype of the result.
    unsafe fn write(&self, from: Matrix<T>, n: usize, group: usize, block: &Block, panels: Range<usize>) {
        let (s, axes) = (self.slide, &self.grid.axes);
        let ([deep, high, wide], step) = (block.count, s.out.steps[2] * axes[2].apart);
        // A plane may be one run.
        let whole = high == 1 || s.out.steps[1] * axes[1].apart == wide * step;
        let (high, wide) = if whole { (1, high * wide) } else { (high, wide) };
        let first_row = |panel: usize| panel_rows(s.to, self.panels, panel).start;
        for channel in first_row(panels.start)..first_row(panels.end) {
            for row in 0..deep * high {
                let at = self.grid.row_start(block, row * (block.count[1] / high), s.out.steps);
                let to = s.out.view.at(n * s.out.batch + (group * s.to + channel) * s.out.channel + at);
                // SAFETY: the row lies in the output, and was computed.
                unsafe {
                    let from = from.at(channel, row * wide);
                    if s.out.view.dtype == T::DTYPE {
                        let to = to as *mut T;
                        match step {
                            1 => to.copy_from_nonoverlapping(from, wide),
                            2 => (0..wide).for_each(|i| *to.add(i * 2) = *from.add(i)),
                            _ => (0..wide).for_each(|i| *to.add(i * step) = *from.add(i)),
                        }
                    } else {
                        store(s.out.view.dtype, to, step, wide, from)
                    }
                };
            }
        }
    }
}
