//! Elementwise execution: a rule's loop over operands of any dtype and strides.
//!
//! Contiguous operands of the loop's own dtype are passed to it directly. Everything else is processed in tiles that
//! stay in L1: operands are gathered, repeated or converted into buffers, the loop runs on contiguous memory, the
//! result is converted and scattered. So one loop per dtype serves all layouts, and mixed dtypes need no temporary
//! tensor.

use super::contiguous::{Flat, MAX_INPUTS, NO_POINTERS, Pointers, TaskShared};
use super::convert::{ConvertFn, converter};
use super::loops::{BLOCK, LoopFn, Loops};
use super::parallel::par_for;
use super::rows::{REPEATED, RowInput, Rows};
use super::strided::{gather, scatter, splat};
use super::tile::{Scratch, Space, Tile, Walk, is_contiguous};
use crate::dtype::{DType, Element, Scalar, c128};
use crate::with_dtype;
use smallvec::SmallVec;
use std::mem::MaybeUninit;

/// An input operand. Strides are in elements, one per dimension of the output; zero along broadcast dimensions.
#[derive(Clone, Copy)]
pub enum Input<'a> {
    Strided { ptr: *const u8, dtype: DType, strides: &'a [usize] },
    Scalar(Scalar),
}

/// The output operand.
#[derive(Clone, Copy)]
pub struct Output<'a> {
    pub ptr: *mut u8,
    pub dtype: DType,
    pub strides: &'a [usize],
}

/// `out[i] = loop(inputs[i] converted to compute)`, converted to the output's dtype. `loops` must support `compute`.
///
/// # Safety
/// Every element that shape and strides reach is in bounds and aligned; output elements are distinct. The output may
/// be one of the inputs (same pointer, dtype and strides) and overlaps no input otherwise.
#[inline]
pub unsafe fn map(shape: &[usize], inputs: &[Input], out: &Output, compute: DType, loops: &Loops) {
    let n: usize = shape.iter().product();
    let Some(flat) = loops.flat(compute) else {
        panic!("map: no loop computes in {compute}");
    };
    debug_assert!(inputs.len() <= MAX_INPUTS);
    if n == 0 {
        return;
    }
    let call = Call { n, compute, flat };
    if out.dtype == flat.result() && flat.reads(compute) && is_contiguous(shape, out.strides) {
        let mut pointers = NO_POINTERS;
        let mut constants = false;
        let direct = inputs.iter().zip(&mut pointers).all(|(x, p)| match *x {
            Input::Strided { ptr, dtype, strides } if dtype == compute && is_contiguous(shape, strides) => {
                *p = ptr;
                true
            }
            _ => {
                constants = true;
                is_constant(shape, x)
            }
        });
        if direct {
            // SAFETY: all operands are contiguous and of the loop's types, or constant.
            return unsafe {
                if constants {
                    call.repeated(&mut pointers, inputs, out)
                } else {
                    flat.run(&pointers, inputs.len(), out.ptr, n)
                }
            };
        }
    }
    // SAFETY: the caller's promise.
    unsafe { call.general(shape, inputs, out) }
}

/// A number, or an element broadcast over the whole shape.
fn is_constant(shape: &[usize], x: &Input) -> bool {
    match x {
        Input::Scalar(_) => true,
        Input::Strided { strides, .. } => shape.iter().zip(*strides).all(|(&n, &s)| n == 1 || s == 0),
    }
}

/// Up to this many bytes a repeated constant is stored on the stack.
const SHORT: usize = 256;
#[repr(C, align(64))]
struct Short([u8; SHORT]);

#[derive(Clone, Copy)]
struct Call<'a> {
    n: usize,
    compute: DType,
    flat: Flat<'a>,
}

impl Call<'_> {
    /// Contiguous operands and constants, which have null pointers and are repeated, once per task.
    ///
    /// SAFETY: as `contiguous`.
    unsafe fn repeated(&self, pointers: &mut Pointers, inputs: &[Input], out: &Output) {
        let (own, f) = (self.flat.class.dtype(), self.flat.entry.function());
        let (size, size_out, count) = (own.size(), out.dtype.size(), inputs.len());
        let mut values = [[0u64; 2]; MAX_INPUTS];
        for ((v, p), x) in values.iter_mut().zip(pointers.iter()).zip(inputs) {
            if p.is_null() {
                // SAFETY: the shape is not empty.
                *v = unsafe { constant(x, self.compute, own) };
            }
        }
        if self.n * size <= SHORT {
            let mut short = [const { MaybeUninit::<Short>::uninit() }; MAX_INPUTS];
            // SAFETY: a short buffer holds `n` elements.
            unsafe {
                for ((p, v), b) in pointers[..inputs.len()].iter_mut().zip(&values).zip(&mut short) {
                    if p.is_null() {
                        splat(size, v.as_ptr().cast(), b.as_mut_ptr().cast(), self.n);
                        *p = b.as_ptr().cast();
                    }
                }
                return f(pointers.as_ptr(), out.ptr, self.n);
            }
        }
        let (base, out) = (TaskShared(&*pointers), TaskShared(out.ptr));
        par_for(self.n.div_ceil(BLOCK), self.flat.grain.div_ceil(BLOCK), |r| {
            let r = r.start * BLOCK..(r.end * BLOCK).min(self.n);
            let mut scratch = Scratch::take();
            let chunk = REPEATED / size;
            let mut part = *base.get();
            // SAFETY: ranges lie within `0..n` and are disjoint; a buffer holds a chunk.
            unsafe {
                for (k, p) in part[..count].iter_mut().enumerate() {
                    if p.is_null() {
                        splat(size, values[k].as_ptr().cast(), scratch.buffer(k), chunk.min(r.len()));
                    } else {
                        *p = p.add(r.start * size);
                    }
                }
                for start in (r.start..r.end).step_by(chunk) {
                    let mut now = part;
                    for (k, p) in now[..count].iter_mut().enumerate() {
                        *p = if p.is_null() { scratch.buffer(k) } else { p.add((start - r.start) * size) };
                    }
                    f(now.as_ptr(), out.get().add(start * size_out), chunk.min(r.end - start));
                }
            }
        });
    }

    /// SAFETY: as `map`.
    #[inline(never)]
    unsafe fn general(&self, shape: &[usize], inputs: &[Input], out: &Output) {
        let (own, result, compute) = (self.flat.class.dtype(), self.flat.entry.result, self.compute);
        let zeros: SmallVec<[usize; 8]> = SmallVec::from_elem(0, shape.len());
        let mut walks: SmallVec<[Walk; 5]> = SmallVec::new();
        walks.push(Walk { strides: out.strides, size: out.dtype.size() });
        for x in inputs {
            walks.push(match *x {
                Input::Strided { dtype, strides, .. } => Walk { strides, size: dtype.size() },
                Input::Scalar(_) => Walk { strides: &zeros, size: own.size() },
            });
        }
        let widest = walks.iter().map(|w| w.size).max().unwrap_or(1).max(own.size()).max(result.size());
        let space = Space::new(shape, &walks, widest);
        // SAFETY: the shape is not empty, so every operand has a first element.
        let feeds = inputs.iter().enumerate().map(|(k, x)| unsafe { feed(x, space.is_constant(k + 1), compute, own) });
        let feeds: SmallVec<[Feed; 4]> = feeds.collect();
        let steps = out_steps(result, compute, own, out.dtype);
        let direct = steps == [None; 2];
        if direct && feeds.iter().all(|f| f.steps == [None; 2]) {
            let inputs: SmallVec<[RowInput; 4]> =
                feeds.iter().map(|f| RowInput { ptr: f.ptr, constant: f.constant }).collect();
            let sizes = [own.size(), out.dtype.size()];
            if let Some(rows) = Rows::new(&space, &inputs, out.ptr, self.flat.entry.function(), sizes) {
                let (pieces, len) = rows.pieces();
                let rows = TaskShared(rows);
                return par_for(pieces, self.flat.grain.div_ceil(len), |r| {
                    let rows = &rows;
                    // SAFETY: pieces are disjoint, and the operands are as the caller promised.
                    unsafe { rows.0.run(r) }
                });
            }
        }
        let task = TaskShared(Task {
            space,
            feeds,
            f: self.flat.entry.function(),
            own_size: own.size(),
            out: out.ptr,
            out_size: out.dtype.size(),
            steps,
            direct,
        });
        let (tiles, len) = (task.0.space.tiles, task.0.space.len);
        par_for(tiles, self.flat.grain.div_ceil(len), |r| {
            let task = &task;
            // SAFETY: tiles are disjoint, and the operands are as the caller promised.
            unsafe { task.0.run(r) }
        });
    }
}

/// How one input is fed to the loop.
struct Feed {
    ptr: *const u8,
    size: usize,
    /// Casts to the compute dtype, then to the loop's; either may be absent.
    steps: [Option<ConvertFn>; 2],
    /// The value of a number or a broadcast element, in the loop's dtype.
    constant: Option<[u64; 2]>,
}

struct Task {
    space: Space,
    feeds: SmallVec<[Feed; 4]>,
    f: LoopFn,
    own_size: usize,
    out: *mut u8,
    out_size: usize,
    steps: [Option<ConvertFn>; 2],
    /// The loop can write the output directly.
    direct: bool,
}

/// From the loop's result dtype to the output's, through the compute dtype if that is narrower.
pub(super) fn out_dtypes(result: DType, compute: DType, own: DType, out: DType) -> [DType; 2] {
    let via = if result != own || compute == own { result } else { compute };
    if own.is_float() || own.is_complex() { [out, out] } else { [via, out] }
}
fn out_steps(result: DType, compute: DType, own: DType, out: DType) -> [Option<ConvertFn>; 2] {
    let [via, out] = out_dtypes(result, compute, own, out);
    [converter(result, via), converter(via, out)]
}

/// SAFETY: the operand has a first element, unless it is a number.
unsafe fn feed(x: &Input, repeat: bool, compute: DType, own: DType) -> Feed {
    // SAFETY: the caller's promise.
    let value = repeat.then(|| unsafe { constant(x, compute, own) });
    match *x {
        Input::Scalar(_) => Feed { ptr: std::ptr::null(), size: own.size(), steps: [None; 2], constant: value },
        Input::Strided { ptr, dtype, .. } => {
            let steps = [converter(dtype, compute), converter(compute, own)];
            Feed { ptr, size: dtype.size(), steps, constant: value }
        }
    }
}

/// The first element of an operand, in the loop's dtype.
///
/// SAFETY: the operand has a first element, unless it is a number.
unsafe fn constant(x: &Input, compute: DType, own: DType) -> [u64; 2] {
    let mut value = [[0u64; 2]; 3];
    let mut last = 0;
    match *x {
        Input::Scalar(s) => value[0] = number(s, compute, own),
        // SAFETY: one element moves between buffers of sixteen bytes.
        Input::Strided { ptr, dtype, .. } => unsafe {
            std::ptr::copy_nonoverlapping(ptr, value[0].as_mut_ptr().cast(), dtype.size());
            for step in [converter(dtype, compute), converter(compute, own)].into_iter().flatten() {
                let from = value[last];
                last += 1;
                step(from.as_ptr().cast(), value[last].as_mut_ptr().cast(), 1);
            }
        },
    }
    value[last]
}

/// A number of a call that computes in `compute`, in the loop's dtype.
pub(super) fn number(s: Scalar, compute: DType, own: DType) -> [u64; 2] {
    let mut value = [0; 2];
    store(narrow(s, compute), own, &mut value);
    value
}

/// Wraps a number into the range of an integer dtype; floats keep their full width, as in PyTorch.
fn narrow(s: Scalar, compute: DType) -> Scalar {
    if compute.is_int() || compute == DType::Bool {
        with_dtype!(compute, T => T::from_scalar(s).to_scalar())
    } else {
        s
    }
}

/// Writes a number as one element of `dtype`.
pub(super) fn store(s: Scalar, dtype: DType, value: &mut [u64; 2]) {
    // SAFETY: sixteen bytes, aligned to eight, hold any element.
    with_dtype!(dtype, T => unsafe { (value.as_mut_ptr() as *mut T).write(T::from_scalar(s)) });
    const { assert!(size_of::<c128>() == 16 && align_of::<c128>() <= 8) }
}

impl Task {
    /// SAFETY: no other task runs these tiles.
    unsafe fn run(&self, tiles: std::ops::Range<usize>) {
        let mut scratch = Scratch::take();
        let mut pointers: Pointers = [std::ptr::null(); MAX_INPUTS];
        for (k, feed) in self.feeds.iter().enumerate() {
            if let Some(value) = &feed.constant {
                let buffer = scratch.buffer(2 * k);
                // SAFETY: a buffer holds a tile of the widest dtype.
                unsafe { splat(self.own_size, value.as_ptr().cast(), buffer, self.space.len) };
                pointers[k] = buffer;
            }
        }
        let mut tile = self.space.tile(tiles.start);
        let mut held = [usize::MAX; MAX_INPUTS];
        for _ in tiles {
            // SAFETY: the caller's promise.
            unsafe { self.tile(&tile, &mut pointers, &mut held, &mut scratch) };
            tile.advance();
        }
    }

    /// `held` holds the index of the full tile in each operand's buffer: a broadcast row is gathered once.
    ///
    /// SAFETY: as `run`.
    unsafe fn tile(&self, tile: &Tile, pointers: &mut Pointers, held: &mut [usize; MAX_INPUTS], scratch: &mut Scratch) {
        // SAFETY: blocks lie within the operands; buffers hold a tile of the widest dtype; buffers, operands and output
        // are distinct, except for an output that is also an input, for which `direct` is unset.
        unsafe {
            for (k, feed) in self.feeds.iter().enumerate().filter(|(_, f)| f.constant.is_none()) {
                let (dims, whole) = tile.block(k + 1);
                let offset = tile.offset(k + 1);
                if held[k] == offset && tile.is_full() {
                    continue;
                }
                held[k] = if tile.is_full() && !whole { offset } else { usize::MAX };
                let mut at = feed.ptr.add(offset * feed.size);
                let mut free = 2 * k;
                if !whole {
                    gather(feed.size, at, dims, scratch.buffer(free));
                    at = scratch.buffer(free);
                    free += 1;
                }
                for step in feed.steps.iter().flatten() {
                    let to = scratch.buffer(2 * k + (free & 1));
                    step(at, to, tile.len);
                    (at, free) = (to, free + 1);
                }
                pointers[k] = at;
            }
            let (dims, whole) = tile.block(0);
            let target = self.out.add(tile.offset(0) * self.out_size);
            if self.direct && whole {
                return (self.f)(pointers.as_ptr(), target, tile.len);
            }
            let (mut at, mut free) = (scratch.buffer(2 * MAX_INPUTS), 1);
            (self.f)(pointers.as_ptr(), at, tile.len);
            for (i, step) in self.steps.iter().enumerate() {
                let Some(step) = step else { continue };
                let last = self.steps[i + 1..].iter().all(|s| s.is_none());
                let to = if last && whole { target } else { scratch.buffer(2 * MAX_INPUTS + (free & 1)) };
                step(at, to, tile.len);
                (at, free) = (to, free + 1);
            }
            if at != target {
                scatter(self.out_size, at, target, dims);
            }
        }
    }
}
