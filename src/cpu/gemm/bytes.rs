//! Products of bytes, summed in int32: what quantised layers compute.
//!
//! The rows of the first factor, less their zero point, are widened to 16 bits once; those of the second are the columns of
//! the product, whose terms lie side by side as they do in a layer's weight, and are widened as they are read. An instruction
//! multiplies 16 bits by 16 and adds neighbours: sums are exact, where products of bytes would saturate. A tile of 6 x 2 sums, two
//! columns, a row and a product fill the 16 registers of AVX2.

#[cfg(target_arch = "x86_64")]
use super::pairs::{Avx2, Avx512};
use super::pairs::{Pairs, Portable};
use crate::cpu::copy::copy;
use crate::cpu::isa::isa;
#[cfg(target_arch = "x86_64")]
use crate::cpu::isa::{Isa, clear_upper};
use crate::cpu::map::{Input, Output};
use crate::cpu::parallel::try_par_for;
use crate::cpu::scratch::Temp;
use crate::cpu::view::{SendPtr, View, ensure};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::window::Motion;

/// Rows and columns of a tile, and of the part of the product that is a unit of work: its columns stay in L2, the rows of a tile
/// in L1.
const ROWS: usize = 6;
const COLS: usize = 2;
const PART: [usize; 2] = [24, 64];
/// Multiplications that are worth a thread.
const TASK: usize = 1 << 19;
/// Maximum terms of a vector; rows that were widened are padded with zeros to a multiple.
const MOST: usize = 32;

fn is_byte(v: &View) -> bool {
    matches!(v.dtype, DType::U8 | DType::I8)
}

/// `out = (a - zero_point) @ b` for bytes of either sign: `[m, k] x [k, n] -> [m, n]`, of int32, which wraps. The zero point is that of
/// a byte.
pub fn byte_matmul(a: View, b: View, zero_point: i16, out: View) -> Result<()> {
    let fits = a.ndim() == 2 && b.ndim() == 2 && is_byte(&a) && is_byte(&b) && b.shape[0] == a.shape[1];
    ensure(fits && out.dtype == DType::I32 && out.is_apart(&a) && out.is_apart(&b), "byte product")?;
    let [m, k, n] = [a.shape[0], a.shape[1], b.shape[1]];
    ensure(out.shape[..] == [m, n] && (-256..=256).contains(&zero_point), "byte product")?;
    let own: Temp<u8>;
    let (columns, apart) = if b.strides[0] == 1 || k <= 1 {
        (b.ptr, b.strides[1])
    } else {
        own = Temp::new(n * k)?;
        let from = Input::Strided { ptr: b.ptr, dtype: b.dtype, strides: &[b.strides[1], b.strides[0]] };
        let to = Output { ptr: own.ptr(), dtype: b.dtype, strides: &[k, 1] };
        // SAFETY: the view holds the elements, the memory has room for them.
        unsafe { copy(&[n, k], &from, &to) };
        (own.ptr(), k)
    };
    Job {
        size: [m, n, k],
        rows: SendPtr(a.ptr),
        reading: Reading::Matrix([a.strides[0], a.strides[1]]),
        zero_point,
        signed: [a.dtype, b.dtype].map(|d| d == DType::I8),
        columns: SendPtr(columns),
        apart,
        out: SendPtr(out.ptr as *mut i32),
        strides: [out.strides[0], out.strides[1]],
    }
    .run_all()
}

/// A convolution of bytes, less their zero point, `[batch, height, width, channels]`, with `[outputs, rows, columns, channels]` bytes of a
/// weight, both dense: int32 sums `[batch, out height, out width, outputs]`, dense too. What lies outside the input counts as zero.
pub fn byte_conv2d(input: View, weight: View, motion: &Motion, zero_point: i16, out: View) -> Result<()> {
    let dense = [&input, &weight, &out].iter().all(|v| v.ndim() == 4 && v.is_contiguous());
    ensure(dense && is_byte(&input) && is_byte(&weight) && out.dtype == DType::I32, "byte convolution")?;
    let [size, kernel] = [[input.shape[1], input.shape[2]], [weight.shape[1], weight.shape[2]]];
    let lists = [motion.stride, motion.padding, motion.dilation];
    let bounded = |l: &&[i64]| l.len() == 2 && l.iter().all(|n| (0..1 << 40).contains(n));
    ensure(lists.iter().all(bounded) && motion.groups == 1 && !motion.transposed, "byte convolution")?;
    let [step, padding, dilation] = lists.map(|l| [l[0] as usize, l[1] as usize]);
    let fits = |d: usize| {
        let reach = (out.shape[d + 1] as u128 - 1) * step[d] as u128 + dilation[d] as u128 * (kernel[d] as u128 - 1);
        step[d] > 0 && reach < size[d] as u128 + 2 * padding[d] as u128
    };
    let some = kernel.iter().all(|&n| n > 0);
    ensure(some && (out.numel() == 0 || fits(0) && fits(1)), "byte convolution")?;
    ensure(
        weight.shape[3] == input.shape[3] && out.shape[3] == weight.shape[0] && out.shape[0] == input.shape[0],
        "byte convolution",
    )?;
    ensure(out.is_apart(&input) && out.is_apart(&weight) && (-256..=256).contains(&zero_point), "byte convolution")?;
    let channels = input.shape[3];
    let (m, n, k) = (out.shape[..3].iter().product(), out.shape[3], kernel[0] * kernel[1] * channels);
    Job {
        size: [m, n, k],
        rows: SendPtr(input.ptr),
        reading: Reading::Windows(Windows {
            step,
            padding,
            dilation,
            size,
            kernel,
            out: [out.shape[1], out.shape[2]],
            channels,
        }),
        zero_point,
        signed: [input.dtype, weight.dtype].map(|d| d == DType::I8),
        columns: SendPtr(weight.ptr),
        apart: k,
        out: SendPtr(out.ptr as *mut i32),
        strides: [n, 1],
    }
    .run_all()
}

/// Where the terms of a row lie.
#[derive(Clone, Copy)]
enum Reading {
    /// These distances of rows and of terms.
    Matrix([usize; 2]),
    /// In the windows of a convolution.
    Windows(Windows),
}

/// How the windows of a convolution lie in an input whose channels lie side by side; heights and widths.
#[derive(Clone, Copy)]
struct Windows {
    step: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    size: [usize; 2],
    kernel: [usize; 2],
    out: [usize; 2],
    channels: usize,
}

/// Bytes as numbers of 16 bits.
///
/// # Safety
/// There are `n` bytes so far apart, and room for as many numbers; the processor has the unit's instructions.
#[inline(always)]
unsafe fn widen<U: Pairs>(from: *const u8, apart: usize, n: usize, signed: bool, zero_point: i16, to: *mut i16) {
    // SAFETY: the caller's promise.
    unsafe {
        let whole = if apart == 1 { n - n % U::TERMS } else { 0 };
        let zero = U::splat(zero_point);
        for p in (0..whole).step_by(U::TERMS) {
            let at = from.add(p);
            let x = if signed { U::widen::<true>(at) } else { U::widen::<false>(at) };
            U::store(to.add(p), U::subtract(x, zero));
        }
        for p in whole..n {
            let x = *from.wrapping_add(p.wrapping_mul(apart));
            *to.add(p) = if signed { x as i8 as i16 } else { x as i16 } - zero_point;
        }
    }
}

#[derive(Clone, Copy)]
struct Job {
    /// Rows, columns, terms.
    size: [usize; 3],
    rows: SendPtr<u8>,
    reading: Reading,
    zero_point: i16,
    /// Whether rows and columns are.
    signed: [bool; 2],
    columns: SendPtr<u8>,
    apart: usize,
    out: SendPtr<i32>,
    strides: [usize; 2],
}

impl Job {
    fn run_all(&self) -> Result<()> {
        let [m, n, k] = self.size;
        let [down, across] = [m.div_ceil(PART[0]), n.div_ceil(PART[1])];
        let per_part = PART[0].min(m) * PART[1].min(n) * k.max(1);
        // Parts of the same rows follow each other.
        try_par_for(down * across, TASK.div_ceil(per_part.max(1)), |range| {
            let pitch = k.next_multiple_of(MOST);
            let wide = Temp::<i16>::new(PART[0] * pitch)?;
            let mut held = usize::MAX;
            for part in range {
                let at = [part / across, part % across];
                self.part(Part { job: self, wide: wide.ptr(), pitch, at, fresh: held != at[0] });
                held = at[0];
            }
            Ok(())
        })
    }

    /// Widens a row and pads it with zeros.
    ///
    /// # Safety
    /// There is such a row, and room for `pitch` numbers; the processor has the unit's instructions.
    #[inline(always)]
    unsafe fn row<U: Pairs>(&self, i: usize, to: *mut i16, pitch: usize) {
        let k = self.size[2];
        // SAFETY: the caller's promise.
        unsafe {
            match self.reading {
                Reading::Matrix([down, across]) => {
                    widen::<U>(self.rows.at(i.wrapping_mul(down)), across, k, self.signed[0], self.zero_point, to);
                }
                Reading::Windows(Windows { step, padding, dilation, size, kernel, out, channels }) => {
                    let [x, y, image] = [i % out[1], i / out[1] % out[0], i / out[1] / out[0]];
                    for tap in 0..kernel[0] * kernel[1] {
                        let [ky, kx] = [tap / kernel[1], tap % kernel[1]];
                        let row = (y * step[0] + ky * dilation[0]).wrapping_sub(padding[0]);
                        let col = (x * step[1] + kx * dilation[1]).wrapping_sub(padding[1]);
                        let to = to.add(tap * channels);
                        if row < size[0] && col < size[1] {
                            let at = ((image * size[0] + row) * size[1] + col) * channels;
                            widen::<U>(self.rows.at(at), 1, channels, self.signed[0], self.zero_point, to);
                        } else {
                            (0..channels).for_each(|c| *to.add(c) = 0);
                        }
                    }
                }
            }
            (k..pitch).for_each(|p| *to.add(p) = 0);
        }
    }

    fn part(&self, part: Part) {
        // SAFETY: the operands hold their elements; the processor has the instructions for which `isa` stands.
        unsafe {
            match (isa(), self.signed[1]) {
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx512, true) => avx512::<true>(part),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx512, false) => avx512::<false>(part),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx2, true) => avx2::<true>(part),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx2, false) => avx2::<false>(part),
                (_, true) => part.run::<Portable, true>(),
                (_, false) => part.run::<Portable, false>(),
            }
        }
    }
}

/// A part of the product, and room for its rows, so far apart.
#[derive(Clone, Copy)]
struct Part<'a> {
    job: &'a Job,
    wide: *mut i16,
    pitch: usize,
    at: [usize; 2],
    /// Its rows are still to be widened.
    fresh: bool,
}

impl Part<'_> {
    /// # Safety
    /// The operands hold their elements; the processor has the unit's instructions.
    #[inline(always)]
    unsafe fn run<U: Pairs, const SIGNED: bool>(self) {
        let (at, [m, n, _]) = (self.at, self.job.size);
        let [rows, cols] = [0, 1].map(|d| at[d] * PART[d]..(at[d] * PART[d] + PART[d]).min([m, n][d]));
        if self.fresh {
            // SAFETY: the operands hold these rows, and there is room for them.
            rows.clone()
                .for_each(|i| unsafe { self.job.row::<U>(i, self.wide.add(i % PART[0] * self.pitch), self.pitch) });
        }
        let mut i = rows.start;
        while i < rows.end {
            let tall = match rows.end - i {
                ROWS.. => ROWS,
                2.. => 2,
                _ => 1,
            };
            let mut j = cols.start;
            while j < cols.end {
                let wide = COLS.min(cols.end - j);
                // SAFETY: the tile lies within the result.
                unsafe {
                    match (tall, wide) {
                        (ROWS, COLS) => self.tile::<U, SIGNED, ROWS, COLS>(i, j),
                        (ROWS, _) => self.tile::<U, SIGNED, ROWS, 1>(i, j),
                        (2, COLS) => self.tile::<U, SIGNED, 2, COLS>(i, j),
                        (2, _) => self.tile::<U, SIGNED, 2, 1>(i, j),
                        (_, COLS) => self.tile::<U, SIGNED, 1, COLS>(i, j),
                        _ => self.tile::<U, SIGNED, 1, 1>(i, j),
                    }
                }
                j += wide;
            }
            i += tall;
        }
    }

    /// # Safety
    /// As for `run`, and the tile lies within the result.
    #[allow(clippy::needless_range_loop)] // the sums stay in registers only if all their indices are constants
    #[inline(always)]
    unsafe fn tile<U: Pairs, const SIGNED: bool, const R: usize, const C: usize>(&self, i: usize, j: usize) {
        let (job, k) = (self.job, self.job.size[2]);
        let row = |r: usize| self.wide.wrapping_add((i % PART[0] + r) * self.pitch).cast_const();
        let column = |c: usize| job.columns.at((j + c).wrapping_mul(job.apart)).cast_const();
        // SAFETY: rows are padded to whole vectors; of columns, the last part of a vector is copied.
        unsafe {
            let mut sums = [[U::zero(); C]; R];
            let whole = k - k % U::TERMS;
            let mut p = 0;
            while p < whole {
                let mut y = [U::zero(); C];
                for c in 0..C {
                    y[c] = U::widen::<SIGNED>(column(c).add(p));
                }
                for r in 0..R {
                    let x = U::load(row(r).add(p));
                    for c in 0..C {
                        sums[r][c] = U::add_products(sums[r][c], x, y[c]);
                    }
                }
                p += U::TERMS;
            }
            if whole < k {
                for c in 0..C {
                    let mut last = [0u8; MOST];
                    std::ptr::copy_nonoverlapping(column(c).add(whole), last.as_mut_ptr(), k - whole);
                    let y = U::widen::<SIGNED>(last.as_ptr());
                    for r in 0..R {
                        sums[r][c] = U::add_products(sums[r][c], U::load(row(r).add(whole)), y);
                    }
                }
            }
            for r in 0..R {
                for c in 0..C {
                    let at = (i + r).wrapping_mul(job.strides[0]).wrapping_add((j + c).wrapping_mul(job.strides[1]));
                    *job.out.at(at) = U::total(sums[r][c]);
                }
            }
        }
    }
}

/// # Safety
/// As for `Part::run`, with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
unsafe fn avx2<const SIGNED: bool>(part: Part) {
    // SAFETY: the caller's promise.
    unsafe {
        part.run::<Avx2, SIGNED>();
        clear_upper();
    }
}
/// # Safety
/// As for `Part::run`, with AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi1,bmi2")]
unsafe fn avx512<const SIGNED: bool>(part: Part) {
    // SAFETY: the caller's promise.
    unsafe {
        part.run::<Avx512, SIGNED>();
        clear_upper();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, Rng};

    /// A convolution against loops over its windows.
    #[test]
    fn a_convolution_agrees_with_plain_loops() {
        let mut rng = Rng(9);
        for _ in 0..40 {
            let [images, channels, outputs] = [1 + rng.below(3), 1 + rng.below(40), 1 + rng.below(70)];
            let [size, kernel] = [0, 0].map(|_| [1 + rng.below(3), 1 + rng.below(3)]);
            let [step, padding, dilation] = [1, 0, 1].map(|least| [least + rng.below(2), least + rng.below(2)]);
            let size = [0, 1].map(|d| size[d] + dilation[d] * (kernel[d] - 1));
            let out = [0, 1].map(|d| (size[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / step[d] + 1);
            let make = |rng: &mut Rng, dtype, shape: [usize; 4]| {
                let values: Vec<f64> = (0..shape.iter().product()).map(|_| rng.below(120) as f64).collect();
                Array::of(dtype, &shape, &values)
            };
            let x = make(&mut rng, DType::U8, [images, size[0], size[1], channels]);
            let w = make(&mut rng, DType::I8, [outputs, kernel[0], kernel[1], channels]);
            let y = Array::zeros(DType::I32, &[images, out[0], out[1], outputs]);
            let [stride, pad, apart] = [step, padding, dilation].map(|l| l.map(|n| n as i64));
            let motion = Motion { stride: &stride, padding: &pad, dilation: &apart, groups: 1, transposed: false };
            byte_conv2d(x.view(), w.view(), &motion, 60, y.view()).unwrap();
            let (x, w, got) = (x.reals(), w.reals(), y.reals());
            for (at, got) in got.iter().enumerate() {
                let [o, col, row, n] = [
                    at % outputs,
                    at / outputs % out[1],
                    at / outputs / out[1] % out[0],
                    at / outputs / out[1] / out[0],
                ];
                let mut want = 0.0;
                for (ky, kx) in (0..kernel[0]).flat_map(|ky| (0..kernel[1]).map(move |kx| (ky, kx))) {
                    let iy = (row * step[0] + ky * dilation[0]).wrapping_sub(padding[0]);
                    let ix = (col * step[1] + kx * dilation[1]).wrapping_sub(padding[1]);
                    for c in (0..channels).filter(|_| iy < size[0] && ix < size[1]) {
                        let weight = w[((o * kernel[0] + ky) * kernel[1] + kx) * channels + c];
                        want += (x[((n * size[0] + iy) * size[1] + ix) * channels + c] - 60.0) * weight;
                    }
                }
                assert_eq!(*got, want);
            }
        }
    }

    #[test]
    fn agrees_with_plain_loops() {
        let mut rng = Rng(5);
        for round in 0..60 {
            let [m, n, k] = [1 + rng.below(60), 1 + rng.below(150), rng.below(80)];
            let pick = |rng: &mut Rng| [DType::U8, DType::I8][rng.below(2)];
            let (da, db) = (pick(&mut rng), pick(&mut rng));
            let zero_point = [0, 128, 255, -128][round % 4];
            let (a, b) = (Array::random(&mut rng, da, &[m, k]), Array::random(&mut rng, db, &[k, n]));
            let out = Array::zeros(DType::I32, &[m, n]);
            byte_matmul(a.view(), b.view(), zero_point, out.view()).unwrap();
            let (x, y, got) = (a.values(), b.values(), out.values());
            for (at, got) in got.iter().enumerate() {
                let (i, j) = (at / n, at % n);
                let want: f64 = (0..k).map(|p| (x[i * k + p].re - zero_point as f64) * y[p * n + j].re).sum();
                assert_eq!(got.re, want, "{m} {n} {k} {da} {db} {i} {j}");
            }
        }
    }

    #[test]
    fn the_greatest_products_do_not_saturate() {
        let a = Array::of(DType::U8, &[4, 70], &[255.0; 280]);
        let b = Array::of(DType::I8, &[70, 4], &[-128.0; 280]);
        let out = Array::zeros(DType::I32, &[4, 4]);
        byte_matmul(a.view(), b.view(), -1, out.view()).unwrap();
        out.values().iter().for_each(|v| assert_eq!(v.re, -128.0 * 256.0 * 70.0));
    }
}
