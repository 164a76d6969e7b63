//! Several rules in one pass over memory: what lies between them stays in buffers of L1 size.
//!
//! A machine is made once, for operands of known dtypes and strides, and runs any number of times. Its instructions are
//! the loops of the rules and the casts between them, the same functions in the same order as one call for each rule would
//! run, so the bits are the same. Each works on a chunk of elements; slots say where: in an operand's own memory where the
//! chunk is contiguous there, in a register (a buffer of one chunk), or in a block of one repeated number.

use super::contiguous::MAX_INPUTS;
use super::convert::{ConvertFn, converter};
use super::loops::{BLOCK, LoopFn, Loops};
use super::map::{number, out_dtypes};
use super::parallel::par_for;
use super::strided::{gather, scatter, splat};
use super::tile::{Scratch, Space, Tile, Walk, is_contiguous};
use super::view::View;
use crate::dtype::{DType, Scalar};
use crate::kinds::RuleInput;
use crate::layout::{Dims, Layout};
use smallvec::SmallVec;
use std::collections::HashMap;

/// An operand in memory, by the dtype and layout that it will have in each run.
pub struct Memory {
    pub dtype: DType,
    pub shape: Dims,
    pub strides: Dims,
}

/// A rule of a program: it computes in `compute` and its result has `dtype`. Without loops it casts its only operand.
pub struct Applied {
    pub loops: Option<&'static Loops>,
    pub compute: DType,
    pub inputs: SmallVec<[RuleInput; 4]>,
    pub dtype: DType,
}

/// Elements of all slots together, in bytes, that a chunk may take: what L1 holds beside the stack.
const L1: usize = 24 << 10;
/// Elements of a chunk, which is whole blocks of the loops: they decide block by block how they compute.
const MOST: usize = 2048;
const SLOTS: usize = 64;

#[derive(Clone, Copy)]
enum Code {
    Loop(LoopFn),
    Convert(ConvertFn),
}

struct Instruction {
    code: Code,
    inputs: [u8; MAX_INPUTS],
    out: u8,
}

/// How an operand is walked.
struct Place {
    memory: Memory,
    size: usize,
    read: bool,
    stored: bool,
    /// One element stands for all.
    constant: bool,
}

pub struct Machine {
    space: Space,
    places: Vec<Place>,
    code: Vec<Instruction>,
    /// Chunks of one number each, and where they begin, in bytes.
    constants: Vec<[u64; 8]>,
    constant_at: Vec<usize>,
    registers: usize,
    /// Bytes from one register to the next.
    pitch: usize,
    chunk: usize,
    elements: usize,
    /// Elements that make a task worth a thread.
    grain: usize,
    /// All operands are contiguous over the whole space, or constant.
    flat: bool,
    /// It may run over any part of the space: what is stored is row-major, and no rule has blocks of its own.
    parts: bool,
}

/// Slots are numbered: operands, then constants, then registers.
struct Assembler<'a> {
    memory: &'a [Memory],
    code: Vec<(Code, SmallVec<[usize; 4]>, usize)>,
    /// The dtype of each virtual slot.
    slots: Vec<DType>,
    constants: Vec<(usize, [u64; 2])>,
    /// What has been cast, by slot and the two dtypes.
    read: HashMap<(usize, DType, DType), usize>,
    results: Vec<usize>,
    checked: bool,
    cost: f64,
}

impl Assembler<'_> {
    fn slot(&mut self, dtype: DType) -> usize {
        self.slots.push(dtype);
        self.slots.len() - 1
    }
    fn constant(&mut self, s: Scalar, compute: DType, own: DType) -> usize {
        let value = number(s, compute, own);
        let known = self.constants.iter().find(|(slot, v)| *v == value && self.slots[*slot] == own);
        if let Some(&(slot, _)) = known {
            return slot;
        }
        let slot = self.slot(own);
        self.constants.push((slot, value));
        slot
    }
    /// The value of a slot as the loops of class `own` read it that compute in `compute`.
    fn read(&mut self, slot: usize, compute: DType, own: DType) -> usize {
        if let Some(&known) = self.read.get(&(slot, compute, own)) {
            return known;
        }
        let at = self.cast(slot, [compute, own]);
        self.read.insert((slot, compute, own), at);
        at
    }
    /// The value of a slot cast to one dtype after the other.
    fn cast(&mut self, mut at: usize, dtypes: [DType; 2]) -> usize {
        for to in dtypes {
            if let Some(f) = converter(self.slots[at], to) {
                let out = self.slot(to);
                self.code.push((Code::Convert(f), SmallVec::from_elem(at, 1), out));
                at = out;
            }
        }
        at
    }
    /// A rule that only casts.
    fn convert(&mut self, rule: &Applied) -> Option<()> {
        let from = match *rule.inputs.first()? {
            RuleInput::Operand(m) => m,
            RuleInput::Rule(r) => self.results[r],
            RuleInput::Number(_) => return None,
        };
        let to = self.cast(from, [rule.dtype; 2]);
        self.results.push(to);
        self.cost += 1.0 / Loops::NONE.grain as f64;
        (to != from).then_some(())
    }
    fn apply(&mut self, rule: &Applied) -> Option<()> {
        let Some(loops) = rule.loops else { return self.convert(rule) };
        let flat = loops.flat(rule.compute)?;
        let (own, result) = (flat.class.dtype(), flat.entry.result);
        let mut inputs = SmallVec::new();
        for input in &rule.inputs {
            inputs.push(match *input {
                RuleInput::Number(s) => self.constant(s, rule.compute, own),
                RuleInput::Operand(m) => self.read(m, rule.compute, own),
                RuleInput::Rule(r) => self.read(self.results[r], rule.compute, own),
            });
        }
        let at = self.slot(result);
        self.code.push((Code::Loop(flat.entry.function()), inputs, at));
        let at = self.cast(at, out_dtypes(result, rule.compute, own, rule.dtype));
        self.results.push(at);
        self.checked |= flat.entry.checked;
        self.cost += 1.0 / flat.grain as f64;
        Some(())
    }
}

impl Machine {
    /// For `rules` over `shape`, with `stores` of (rule, operand). None where there is no such machine: too many operands, a
    /// rule without a loop, a rule whose blocks would be others than alone.
    pub fn new(shape: &[usize], memory: Vec<Memory>, rules: &[Applied], stores: &[(usize, usize)]) -> Option<Machine> {
        let slots = memory.iter().map(|m| m.dtype).collect();
        let mut a = Assembler {
            memory: &memory,
            code: Vec::new(),
            slots,
            constants: Vec::new(),
            read: HashMap::new(),
            results: Vec::new(),
            checked: false,
            cost: 0.0,
        };
        rules.iter().try_for_each(|r| a.apply(r))?;
        for &(rule, operand) in stores {
            a.store(rule, operand)?;
        }
        let (count, registers, code) = a.allocate()?;
        let Assembler { slots, constants, checked, cost, .. } = a;
        let strides: Vec<Dims> = memory.iter().map(|m| spread(m, shape)).collect::<Option<_>>()?;
        let is_stored = |k: usize| stores.iter().any(|s| s.1 == k);
        // The first operand decides the order in which memory is walked.
        let first = (0..memory.len()).find(|&k| is_stored(k))?;
        let walk = |k: usize| Walk { strides: &strides[k], size: memory[k].dtype.size() };
        let walks: Vec<Walk> = std::iter::once(first).chain(0..memory.len()).map(walk).collect();
        let widest = slots.iter().map(|d| d.size()).max()?;
        let per_element = registers * widest
            + constants.iter().map(|c| slots[c.0].size()).sum::<usize>()
            + memory.iter().map(|m| m.dtype.size()).sum::<usize>();
        let flat = |space: &Space| {
            let unit = |s: &Dims| s.last().is_none_or(|&s| s == 1);
            let constant = |s: &Dims| s.iter().all(|&s| s == 0);
            space.shape.len() <= 1 && space.strides[1..].iter().all(|s| unit(s) || constant(s))
        };
        let room = Scratch::BYTES / (registers + memory.len()).max(1) / widest - BLOCK;
        let mut chunk = (L1 / per_element).clamp(256, MOST).min(room) / BLOCK * BLOCK;
        // A space without elements is not walked.
        let sizes: Dims = shape.iter().map(|&n| n.max(1)).collect();
        let mut space = Space::in_tiles_of(&sizes, &walks, chunk);
        if !flat(&space) {
            // Tiles of transposed operands need more rows.
            chunk = chunk.max(1024).min(room) / BLOCK * BLOCK;
            space = Space::in_tiles_of(&sizes, &walks, chunk);
        }
        let flat = flat(&space);
        if checked && !flat || chunk < BLOCK {
            return None;
        }
        let row_major = |m: &Memory| m.shape[..] == *shape && is_contiguous(&m.shape, &m.strides);
        let parts = !checked && stores.iter().all(|s| row_major(&memory[s.1]));
        let places = memory.into_iter().enumerate().map(|(k, memory)| Place {
            size: memory.dtype.size(),
            read: rules.iter().any(|r| r.inputs.contains(&RuleInput::Operand(k))),
            stored: is_stored(k),
            constant: space.is_constant(k + 1) && !is_stored(k),
            memory,
        });
        let mut machine = Machine {
            places: places.collect(),
            code,
            constants: Vec::new(),
            constant_at: Vec::new(),
            registers,
            pitch: chunk * widest + BLOCK,
            chunk,
            elements: shape.iter().product(),
            grain: (1.0 / cost.max(1e-9)) as usize,
            flat,
            parts,
            space,
        };
        debug_assert_eq!(count, constants.len());
        constants.iter().for_each(|(slot, value)| machine.fill(slots[*slot].size(), value));
        Some(machine)
    }
    /// Appends a chunk of one number.
    fn fill(&mut self, size: usize, value: &[u64; 2]) {
        let at = self.constants.len();
        self.constant_at.push(at * 64);
        self.constants.resize(at + (self.chunk * size).div_ceil(64), [0; 8]);
        // SAFETY: the new blocks hold a chunk of such elements, and `value` holds one.
        unsafe { splat(size, value.as_ptr().cast(), self.constants[at..].as_mut_ptr().cast(), self.chunk) };
    }

    /// Runs over these operands; false, with nothing touched, where they do not fit.
    pub fn run(&self, operands: &[View]) -> bool {
        let fits = self.fits(operands);
        if fits {
            self.run_all(operands);
        }
        fits
    }
    /// Whether the operands are those that it was made for, and none that is written overlaps another.
    pub fn fits(&self, operands: &[View]) -> bool {
        let same = |(v, p): (&View, &Place)| {
            v.dtype == p.memory.dtype && v.shape == &p.memory.shape[..] && v.strides == &p.memory.strides[..]
        };
        let apart = |k: usize, v: &View| operands.iter().enumerate().all(|(j, o)| j == k || v.is_apart(o));
        operands.len() == self.places.len()
            && operands.iter().zip(&self.places).all(same)
            && operands.iter().enumerate().all(|(k, v)| !self.places[k].stored || apart(k, v))
    }
    /// Over operands that fit, on as many threads as are worth it.
    pub(super) fn run_all(&self, operands: &[View]) {
        if self.elements == 0 {
            return;
        }
        let (chunks, len) = match self.flat {
            true => (self.elements.div_ceil(self.chunk), self.chunk),
            false => (self.space.tiles, self.space.len),
        };
        par_for(chunks, (self.grain / len).max(1), |r| {
            // SAFETY: the operands are views of the layouts that the machine was made for; tasks write disjoint elements.
            unsafe {
                if self.flat {
                    self.flat(operands, r.start * self.chunk..(r.end * self.chunk).min(self.elements))
                } else {
                    self.tiled(operands, r)
                }
            }
        });
    }
    /// Whether it may run over part of its elements.
    pub(super) fn runs_in_parts(&self) -> bool {
        self.parts
    }
    /// Over these elements alone, in row-major order, of operands that fit; on this thread.
    pub(super) fn run_part(&self, operands: &[View], elements: std::ops::Range<usize>) {
        let elements = elements.start..elements.end.min(self.elements);
        if !self.parts || elements.is_empty() {
            return;
        }
        // SAFETY: as in `run_all`; the order of a row-major result is that of the space.
        unsafe {
            if self.flat {
                return self.flat(operands, elements);
            }
            let mut scratch = Scratch::take();
            let mut table = self.table(&mut scratch);
            let mut held = [usize::MAX; SLOTS];
            self.space.tiles_of(elements, &mut |tile| self.tile(operands, tile, &mut scratch, &mut table, &mut held));
        }
    }

    /// Where each slot is that is the same in all chunks.
    fn table(&self, scratch: &mut Scratch) -> [*mut u8; SLOTS] {
        let mut table = [std::ptr::null_mut(); SLOTS];
        let constants = self.constants.as_ptr().cast::<u8>().cast_mut();
        let (start, base) = (self.places.len(), scratch.buffer(0));
        for (slot, at) in table[start..].iter_mut().zip(&self.constant_at) {
            *slot = constants.wrapping_add(*at);
        }
        for (k, slot) in table[start + self.constant_at.len()..].iter_mut().take(self.registers).enumerate() {
            *slot = base.wrapping_add(k * self.pitch);
        }
        table
    }
    /// The buffer of an operand that is not contiguous in a chunk.
    fn buffer(&self, scratch: &mut Scratch, k: usize) -> *mut u8 {
        scratch.buffer(0).wrapping_add((self.registers + k) * self.pitch)
    }
    /// SAFETY: each slot points to `n` elements of its dtype.
    #[inline]
    unsafe fn execute(&self, table: &[*mut u8; SLOTS], n: usize) {
        for i in &self.code {
            // SAFETY: slots are below `SLOTS`; a loop's output is one of its inputs or another slot; a cast's never its input.
            unsafe {
                let at = |slot: u8| *table.get_unchecked(slot as usize);
                match i.code {
                    Code::Loop(f) => {
                        // All of them, read or not: a loop over so few would cost more.
                        let inputs = i.inputs.map(|slot| at(slot).cast_const());
                        f(inputs.as_ptr(), at(i.out), n);
                    }
                    Code::Convert(f) => f(at(i.inputs[0]), at(i.out), n),
                }
            }
        }
    }
    /// SAFETY: the operands fit, and no other task has these elements.
    unsafe fn flat(&self, operands: &[View], elements: std::ops::Range<usize>) {
        let mut scratch = Scratch::take();
        let mut table = self.table(&mut scratch);
        let (start, end) = (elements.start, elements.end);
        for (k, p) in self.places.iter().enumerate().filter(|(_, p)| p.constant) {
            let to = self.buffer(&mut scratch, k);
            // SAFETY: the space is not empty, so there is an element; a buffer holds a chunk.
            unsafe { splat(p.size, operands[k].ptr, to, self.chunk.min(end - start)) };
            table[k] = to;
        }
        for start in (start..end).step_by(self.chunk) {
            for (k, p) in self.places.iter().enumerate().filter(|(_, p)| !p.constant) {
                table[k] = operands[k].ptr.wrapping_add(start * p.size);
            }
            // SAFETY: the elements from `start` on are contiguous in each operand, and there are so many.
            unsafe { self.execute(&table, self.chunk.min(end - start)) };
        }
    }
    /// SAFETY: as `flat`, of tiles.
    unsafe fn tiled(&self, operands: &[View], tiles: std::ops::Range<usize>) {
        let mut scratch = Scratch::take();
        let mut table = self.table(&mut scratch);
        let mut held = [usize::MAX; SLOTS];
        let mut tile = self.space.tile(tiles.start);
        for _ in tiles {
            // SAFETY: the caller's promise.
            unsafe { self.tile(operands, &tile, &mut scratch, &mut table, &mut held) };
            tile.advance();
        }
    }
    /// `held` says which block of an operand its buffer holds.
    ///
    /// SAFETY: as `flat`, of one tile; `table` and `held` are of this scratch memory.
    #[inline]
    unsafe fn tile(
        &self,
        operands: &[View],
        tile: &Tile,
        scratch: &mut Scratch,
        table: &mut [*mut u8; SLOTS],
        held: &mut [usize; SLOTS],
    ) {
        for (k, p) in self.places.iter().enumerate() {
            let ((dims, whole), offset) = (tile.block(k + 1), tile.offset(k + 1));
            let at = operands[k].ptr.wrapping_add(offset * p.size);
            if whole {
                table[k] = at;
                continue;
            }
            table[k] = self.buffer(scratch, k);
            // A broadcast row is gathered once.
            if p.read && (held[k] != offset || !tile.is_full() || p.stored) {
                // SAFETY: the block lies within the operand, and a buffer holds a tile.
                unsafe { gather(p.size, at, dims, table[k]) };
                held[k] = if tile.is_full() { offset } else { usize::MAX };
            }
        }
        // SAFETY: each slot holds the elements of the tile.
        unsafe { self.execute(table, tile.len) };
        for (k, p) in self.places.iter().enumerate().filter(|(_, p)| p.stored) {
            let (dims, whole) = tile.block(k + 1);
            if !whole {
                let at = operands[k].ptr.wrapping_add(tile.offset(k + 1) * p.size);
                // SAFETY: as above; no other task writes these elements.
                unsafe { scatter(p.size, table[k], at, dims) };
            }
        }
    }
}

/// The strides of an operand over the shape of the space.
fn spread(m: &Memory, shape: &[usize]) -> Option<Dims> {
    let lead = shape.len().checked_sub(m.shape.len())?;
    let fits = m.shape.iter().zip(&shape[lead..]).all(|(&a, &b)| a == b || a == 1);
    let layout = Layout { shape: m.shape.clone(), strides: m.strides.clone(), offset: 0 };
    fits.then(|| layout.broadcast_strides(shape))
}

impl Assembler<'_> {
    /// Lets the result of a rule be computed right in an operand's memory.
    fn store(&mut self, rule: usize, operand: usize) -> Option<()> {
        let slot = *self.results.get(rule)?;
        if slot < self.memory.len() || self.slots[slot] != self.memory[operand].dtype {
            return None;
        }
        for (_, inputs, out) in &mut self.code {
            inputs.iter_mut().filter(|i| **i == slot).for_each(|i| *i = operand);
            if *out == slot {
                *out = operand;
            }
        }
        self.results.iter_mut().filter(|r| **r == slot).for_each(|r| *r = operand);
        Some(())
    }
    /// Registers for virtual slots, from one instruction to the last that reads them: the numbers of constants and of
    /// registers, and the instructions.
    fn allocate(&self) -> Option<(usize, usize, Vec<Instruction>)> {
        let mut last: Vec<usize> = self.slots.iter().map(|_| 0).collect();
        for (i, (_, inputs, out)) in self.code.iter().enumerate() {
            inputs.iter().chain([out]).for_each(|&s| last[s] = i);
        }
        let mut place: Vec<Option<usize>> = self.slots.iter().map(|_| None).collect();
        (0..self.memory.len()).for_each(|m| place[m] = Some(m));
        for (k, (slot, _)) in self.constants.iter().enumerate() {
            place[*slot] = Some(self.memory.len() + k);
        }
        let fixed = self.memory.len() + self.constants.len();
        let (mut free, mut used): (Vec<usize>, usize) = (Vec::new(), 0);
        let mut code = Vec::new();
        for (i, (kind, inputs, out)) in self.code.iter().enumerate() {
            if inputs.len() > MAX_INPUTS {
                return None;
            }
            let size = |s: usize| self.slots[s].size();
            let dying = |s: &usize| last[*s] == i && place[*s].is_some_and(|p| p >= fixed);
            let mut over: SmallVec<[usize; 4]> = inputs.iter().copied().filter(dying).collect();
            over.sort_unstable();
            over.dedup();
            if place[*out].is_none() {
                let onto = over.iter().position(|&s| matches!(kind, Code::Loop(_)) && size(s) == size(*out));
                place[*out] = match onto {
                    Some(k) => place[over.remove(k)],
                    None => free.pop().or_else(|| {
                        used += 1;
                        Some(fixed + used - 1)
                    }),
                };
            }
            let at = |s: usize| place[s].filter(|&p| p < SLOTS).map(|p| p as u8);
            let mut list = [0; MAX_INPUTS];
            for (to, &s) in list.iter_mut().zip(inputs) {
                *to = at(s)?;
            }
            code.push(Instruction { code: *kind, inputs: list, out: at(*out)? });
            free.extend(over.iter().filter_map(|&s| place[s]));
            if last[*out] == i && place[*out].is_some_and(|p| p >= fixed) {
                free.extend(place[*out]);
            }
        }
        (fixed + used <= SLOTS).then_some((self.constants.len(), used, code))
    }
}
