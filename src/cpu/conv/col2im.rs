//! Transposes with a stride by "col2im": a product of the weights with the input gives what each element of the kernel adds
//! for each place, and these sums are added where they belong. No window of the input is packed, and phases share the product.
//!
//! A unit is some output channels of some images, so that the product stays in L2 until it is added.

use super::Sizes;
use super::geometry::Axis;
use super::slide::Weights;
use crate::cpu::copy::copy;
use crate::cpu::gemm::matmul;
use crate::cpu::gemm::tiles::{self, Job, Unit, Vectors, WIDEST};
use crate::cpu::map::{Input, Output};
use crate::cpu::parallel::try_par_for;
use crate::cpu::scratch::Temp;
use crate::cpu::view::{View, store};
use crate::error::Result;
use crate::layout::contiguous_strides;
use smallvec::SmallVec;
use std::ops::Range;

/// Bytes of a unit's product.
const PRODUCT: usize = 1 << 18;
/// Fewest rows and columns of a unit's product, if there are so many.
const ROWS: usize = 64;
const COLUMNS: usize = 128;
/// Units at least, if there are so many channels.
const UNITS: usize = 16;
/// Minimum multiplications per task.
const TASK: usize = 1 << 18;
/// Fewest terms of a product that costs more than what is added.
const TERMS: usize = 8;

/// Whether a transpose with these phases is computed here.
pub fn is_better<T>(s: &Sizes, phases: &[Vec<Axis>; 3]) -> bool {
    let (volume, places) = (volume(s), s.small.iter().product::<usize>());
    let rows = ROWS.min(s.to * volume).max(volume);
    // A convolution has one phase.
    phases.iter().any(|p| p.len() > 1) && s.from >= TERMS && places * rows * size_of::<T>() <= 4 * PRODUCT
}

/// The elements of a kernel.
fn volume(s: &Sizes) -> usize {
    s.steps.iter().map(|s| s.kernel).product()
}

/// A transpose with more than one phase.
pub struct Col2im<'a, T> {
    pub x: View<'a>,
    pub weights: Weights<T>,
    /// One number for each output channel.
    pub bias: Option<&'a [T]>,
    pub out: View<'a>,
    pub s: &'a Sizes,
    /// Of depth, height and width.
    pub phases: &'a [Vec<Axis>; 3],
}

/// Images, the group, and channels of the group.
struct Part {
    images: Range<usize>,
    group: usize,
    channels: Range<usize>,
}

impl<T: Vectors> Col2im<'_, T> {
    /// # Safety
    /// Operands, weights and bias have the sizes; the output lies apart from the others.
    pub unsafe fn run(&self) -> Result<()> {
        let s = self.s;
        let places: usize = s.small.iter().product();
        let images = COLUMNS.div_ceil(places).min(s.batch);
        let blocks = s.batch.div_ceil(images);
        let row = volume(s) * images * places * size_of::<T>();
        // By the sizes alone: the bits of a product may depend on its size.
        let most = (PRODUCT / row).min(s.to.div_ceil(UNITS.div_ceil(blocks * s.groups)));
        let channels = most.max(ROWS.div_ceil(volume(s))).min(s.to);
        let parts = s.to.div_ceil(channels);
        let columns = images * places;
        let work = channels * volume(s) * columns * s.from;
        try_par_for(blocks * s.groups * parts, (TASK / work).max(1), |range| {
            // A load of a whole vector may reach beyond the last row.
            let product = Temp::filled(channels * volume(s) * columns + WIDEST, T::ZERO)?;
            let input = Temp::<T>::new(s.from * columns)?;
            let width = self.phases[2].iter().map(|p| p.places.next_multiple_of(WIDEST)).max().unwrap_or(0);
            let rows = Temp::<T>::new(width * self.phases[2].len())?;
            let mut held = None;
            for unit in range {
                let (group, block) = (unit / parts % s.groups, unit / parts / s.groups);
                let part = unit % parts;
                let part = Part {
                    images: block * s.batch / blocks..(block + 1) * s.batch / blocks,
                    group,
                    channels: part * s.to / parts..(part + 1) * s.to / parts,
                };
                // SAFETY: the caller's promise; units write disjoint parts of the output, and the memory is as large.
                unsafe {
                    if held.replace(unit / parts) != Some(unit / parts) {
                        self.read(&part, &input);
                    }
                    self.multiply(&part, &input, &product)?;
                    tiles::run(Add { of: self, part, product: product.ptr(), rows: rows.ptr(), width });
                }
            }
            Ok(())
        })
    }

    /// The input of a part, `[channels, images, places..]` in the compute type.
    ///
    /// # Safety
    /// The part lies inside the operand, and there is room for it.
    unsafe fn read(&self, part: &Part, to: &Temp<T>) {
        let (x, s) = (&self.x, self.s);
        let first = part.images.start * x.strides[0] + part.group * s.from * x.strides[1];
        let order = |list: &[usize], channels: usize, images: usize| -> SmallVec<[usize; 5]> {
            [channels, images].iter().chain(&list[2..]).copied().collect()
        };
        let shape = order(x.shape, s.from, part.images.len());
        let strides = order(x.strides, x.strides[1], x.strides[0]);
        let from = Input::Strided { ptr: x.at(first), dtype: x.dtype, strides: &strides };
        let to = Output { ptr: to.ptr() as *mut u8, dtype: T::DTYPE, strides: &contiguous_strides(&shape) };
        // SAFETY: the caller's promise.
        unsafe { copy(&shape, &from, &to) };
    }

    /// `[channels and elements of the kernel, images and places]`
    ///
    /// # Safety
    /// The part lies inside the weights, whose kernels are dense, and there is room for the product.
    unsafe fn multiply(&self, part: &Part, input: &Temp<T>, product: &Temp<T>) -> Result<()> {
        let (s, w) = (self.s, &self.weights);
        let columns = part.images.len() * s.small.iter().product::<usize>();
        let (rows, terms) = (part.channels.len() * volume(s), s.from);
        let weights = w.at.at(part.group * w.group + part.channels.start * w.to) as *mut u8;
        let shapes = [[rows, terms], [terms, columns], [rows, columns]];
        let strides = [[1, w.from], [columns, 1], [columns, 1]];
        let from = [weights, input.ptr() as *mut u8, product.ptr() as *mut u8];
        // SAFETY: the caller's promise.
        let [a, b, out] = [0, 1, 2].map(|i| unsafe { View::new(from[i], T::DTYPE, &shapes[i], &strides[i]) });
        matmul(a, b, out, 1.0, 0.0)
    }
}

/// Adds the product of a part to the rows of the output.
struct Add<'a, 'b, T> {
    of: &'a Col2im<'b, T>,
    part: Part,
    product: *const T,
    /// A row of each phase of the width, `width` apart.
    rows: *mut T,
    width: usize,
}

/// Rows of the product that meet in a row of the output: where they begin for the first element of a row of the kernel.
type Meeting = SmallVec<[usize; 16]>;

impl<T: Vectors> Job<T> for Add<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<U: Unit<Float = T>>(self) {
        let (of, part) = (self.of, &self.part);
        let (out, [deep, high, _]) = (super::Image::new(of.out), of.phases);
        let columns = part.images.len() * of.s.small.iter().product::<usize>();
        for (i, n) in part.images.clone().enumerate() {
            for (j, c) in part.channels.clone().enumerate() {
                let channel = part.group * of.s.to + c;
                let to = n * out.batch + channel * out.channel;
                let bias = of.bias.map_or(T::ZERO, |b| b[channel]);
                let first = j * volume(of.s) * columns + i * (columns / part.images.len());
                for (d, h) in deep.iter().flat_map(|d| high.iter().map(move |h| (d, h))) {
                    for (z, y) in (0..d.places).flat_map(|z| (0..h.places).map(move |y| (z, y))) {
                        let meeting = self.meeting([d, h], [z, y], first, columns);
                        let at = [d.first + z * d.apart, h.first + y * h.apart];
                        // SAFETY: the caller's promise.
                        unsafe {
                            for phase in 0..of.phases[2].len() {
                                self.add::<U>(phase, &meeting, columns, bias);
                            }
                            self.write(to + at[0] * out.steps[0] + at[1] * out.steps[1], out.steps[2]);
                        }
                    }
                }
            }
        }
    }
}

impl<T: Vectors> Add<'_, '_, T> {
    /// What meets at row `[z, y]` of two phases.
    #[inline(always)]
    fn meeting(&self, [d, h]: [&Axis; 2], [z, y]: [usize; 2], first: usize, columns: usize) -> Meeting {
        let s = self.of.s;
        let [_, tall, wide] = s.steps.map(|s| s.kernel);
        let inside = |at: isize, axis: &Axis| (0..axis.input as isize).contains(&at).then_some(at as usize);
        let mut all = Meeting::new();
        for &(kd, offset) in &d.taps {
            let Some(id) = inside(z as isize + offset, d) else { continue };
            for &(kh, offset) in &h.taps {
                let Some(ih) = inside(y as isize + offset, h) else { continue };
                all.push(first + (kd * tall + kh) * wide * columns + (id * s.small[1] + ih) * s.small[2]);
            }
        }
        all
    }

    /// Sums what meets in one phase of a row.
    ///
    /// # Safety
    /// The product and the rows have a vector to spare; the processor has the unit's instructions.
    #[inline(always)]
    unsafe fn add<U: Unit<Float = T>>(&self, phase: usize, meeting: &Meeting, columns: usize, bias: T) {
        let axis = &self.of.phases[2][phase];
        let to = self.rows.wrapping_add(phase * self.width);
        for v in (0..axis.places).step_by(U::LANES) {
            let lanes = U::LANES.min(axis.places - v);
            // SAFETY: the caller's promise; only places inside a row of the input are used.
            unsafe {
                let mut sum = U::splat(bias);
                for &(k, offset) in &axis.taps {
                    let low = (-offset - v as isize).max(0) as usize;
                    let high = (axis.input as isize - offset - v as isize).clamp(0, lanes as isize) as usize;
                    if low >= high {
                        continue;
                    }
                    for &row in meeting {
                        let at = self.product.wrapping_add(row + k * columns).wrapping_offset(v as isize + offset);
                        let x = if low == 0 && high == lanes {
                            U::load(at)
                        } else if low == 0 {
                            U::load_first(at, high)
                        } else if high == lanes {
                            U::load_last(U::splat(T::ZERO), at, low)
                        } else {
                            let mut part = [T::ZERO; WIDEST];
                            U::store_first(
                                part.as_mut_ptr().add(low),
                                U::load_first(at.wrapping_add(low), high - low),
                                high - low,
                            );
                            U::load(part.as_ptr())
                        };
                        sum = U::add(sum, x);
                    }
                }
                U::store(to.add(v), sum);
            }
        }
    }

    /// Writes the phases of a row beside each other.
    ///
    /// # Safety
    /// The row lies in the output.
    #[inline(always)]
    unsafe fn write(&self, at: usize, step: usize) {
        let (out, phases) = (&self.of.out, &self.of.phases[2]);
        // SAFETY: the caller's promise; `add` has written the rows of all phases.
        unsafe {
            if let ([even, odd], true) = (&phases[..], out.dtype == T::DTYPE && step == 1) {
                let to = out.at(at) as *mut T;
                let [a, b] = [(even, 0), (odd, 1)]
                    .map(|(p, i)| std::slice::from_raw_parts(self.rows.add(i * self.width), p.places));
                return interleave(a, b, to);
            }
            for (i, axis) in phases.iter().enumerate() {
                let (from, to) = (self.rows.add(i * self.width), out.at(at + axis.first * step));
                store(out.dtype, to, step * axis.apart, axis.places, from);
            }
        }
    }
}

/// `a[0], b[0], a[1], ..`; `a` may have one element more.
///
/// # Safety
/// There is room for both at `to`.
#[inline(always)]
unsafe fn interleave<T: Copy>(a: &[T], b: &[T], to: *mut T) {
    const SIDE: usize = 8;
    let ((a, last), (b, rest)) = (a.as_chunks::<SIDE>(), b.as_chunks::<SIDE>());
    let whole = a.len().min(b.len());
    // SAFETY: the caller's promise.
    unsafe {
        for (i, (a, b)) in a.iter().zip(b).enumerate() {
            let both: [[T; SIDE]; 2] =
                std::array::from_fn(|half| std::array::from_fn(|j| [a, b][j % 2][half * SIDE / 2 + j / 2]));
            (to.add(i * 2 * SIDE) as *mut [[T; SIDE]; 2]).write_unaligned(both);
        }
        let to = to.add(whole * 2 * SIDE);
        let (a, b) = (a[whole..].as_flattened().iter().chain(last), b[whole..].as_flattened().iter().chain(rest));
        a.enumerate().for_each(|(i, &x)| *to.add(2 * i) = x);
        b.enumerate().for_each(|(i, &x)| *to.add(2 * i + 1) = x);
    }
}
