//! Softmax and log-softmax along one dimension, and their gradients.
//!
//! Lines that are dense in memory are processed one by one through a padded buffer of the compute type (f32 for
//! the half types); lines that do not fit the cache, in pieces that are read three times; short lines, as the columns of
//! a copy, where lines fill the registers. Other lines advance together, row by row, so that memory is
//! accessed in order; exponentials are then computed twice, which costs less than storing them.

mod backward;
mod forward;

use self::backward::Backward;
use self::forward::Forward;
use super::arith::Float;
use super::lines::Others;
use super::parallel::par_for;
use super::simd;
use super::strided;
use super::view::{View, ensure, load, store};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Longest line that is held whole, padded to whole chunks.
const LINE: usize = 16384;
const CHUNK: usize = 16;
/// Longest line that is processed as a column, if there are so many.
const SHORT: usize = 48;
const COLUMNS: usize = 32;
/// Elements of the lines of a call, about, if they are that short.
const CALL: usize = 4096;
/// The same where the columns are rows of memory, which are read and written faster in longer pieces.
const CALL_OF_ROWS: usize = 16384;
/// Neighbouring lines that advance together.
const TILE: usize = 1024;
/// Rows summed before their sum is added to the total, to limit rounding errors.
const ROWS: usize = 64;

/// `softmax(input)` along `dim`, or its logarithm; computed in f32, or f64 where `out` is.
pub fn softmax(input: View, dim: usize, out: View, log: bool) -> Result<()> {
    ensure(input.shape == out.shape && (out.is_apart(&input) || out.is_same(&input)), "softmax")?;
    match out.dtype {
        DType::F64 => tiles::<f64, 2>([input, out], dim, |t| simd::run_wide(Forward { job: t, log })),
        d if d.is_float() => tiles::<f32, 2>([input, out], dim, |t| simd::run_wide(Forward { job: t, log })),
        d => return Err(refuse(d)),
    }
    Ok(())
}

/// The gradient of the input, from that of the output and the output itself.
pub fn softmax_backward(grad: View, output: View, dim: usize, out: View, log: bool) -> Result<()> {
    let shapes = grad.shape == out.shape && output.shape == out.shape;
    let fits = |v: &View| out.is_apart(v) || out.is_same(v);
    ensure(shapes && fits(&grad) && fits(&output), "softmax_backward")?;
    match output.dtype {
        DType::F64 => tiles::<f64, 3>([output, grad, out], dim, |t| simd::run_wide(Backward { job: t, log })),
        d if d.is_float() => tiles::<f32, 3>([output, grad, out], dim, |t| simd::run_wide(Backward { job: t, log })),
        d => return Err(refuse(d)),
    }
    Ok(())
}

#[cold]
fn refuse(d: DType) -> Error {
    Error::not_implemented(format!("\"softmax\" not implemented for '{}'", d.scalar_type_name()))
}

/// One operand's neighbouring lines.
#[derive(Clone, Copy)]
struct Tile<'a> {
    view: View<'a>,
    offset: usize,
    /// Strides along the lines and from line to line.
    along: usize,
    across: usize,
}
impl Tile<'_> {
    /// Line `i`, as the only one.
    fn line(self, i: usize) -> Self {
        Tile { offset: self.offset + i * self.across, ..self }
    }
    /// Whether the only line can be accessed in place.
    fn is_own<T: Float>(&self) -> bool {
        self.view.dtype == T::DTYPE && self.along == 1
    }
    /// `n` elements of the only line, from `start` on: in place, else read into the buffer.
    #[inline(always)]
    fn piece<T: Float>(&self, start: usize, n: usize, buffer: *mut T) -> *const T {
        let (v, at) = (&self.view, self.view.at(self.offset + start * self.along));
        if self.is_own::<T>() {
            return at as *const T;
        }
        // SAFETY: tiles lie inside the operands; buffers hold a piece.
        unsafe { load(v.dtype, at, self.along, n, buffer) };
        buffer
    }
    /// Where to write such elements: in place, else to the buffer, which `keep` then stores.
    #[inline(always)]
    fn place<T: Float>(&self, start: usize, buffer: *mut T) -> *mut T {
        if self.is_own::<T>() { self.view.at(self.offset + start) as *mut T } else { buffer }
    }
    #[inline(always)]
    fn keep<T: Float>(&self, start: usize, n: usize, buffer: *const T) {
        let v = &self.view;
        if !self.is_own::<T>() {
            // SAFETY: as in `piece`.
            unsafe { store(v.dtype, v.at(self.offset + start * self.along), self.along, n, buffer) }
        }
    }
    /// Reads element `i` of every line.
    fn read_row<T: Float>(&self, i: usize, buffer: &mut [T]) {
        let v = &self.view;
        // SAFETY: as in `piece`.
        unsafe { load(v.dtype, v.at(self.offset + i * self.along), self.across, buffer.len(), buffer.as_mut_ptr()) }
    }
    fn write_row<T: Float>(&self, i: usize, buffer: &[T]) {
        let v = &self.view;
        // SAFETY: as in `piece`.
        unsafe { store(v.dtype, v.at(self.offset + i * self.along), self.across, buffer.len(), buffer.as_ptr()) }
    }
    /// Reads short lines as the columns of `to`.
    fn read_columns<T: Float>(&self, [length, lines]: [usize; 2], to: &mut [T], buffer: &mut [T]) {
        let (to, buffer) = (&mut to[..length * lines], &mut buffer[..length * lines]);
        if self.across == 1 {
            return to.chunks_exact_mut(lines).enumerate().for_each(|(i, row)| self.read_row(i, row));
        }
        let own = self.is_own::<T>();
        if !own {
            for i in 0..lines {
                self.line(i).piece(0, length, buffer[i * length..].as_mut_ptr());
            }
        }
        let (from, across) =
            if own { (self.view.at(self.offset).cast_const(), self.across) } else { (buffer.as_ptr().cast(), length) };
        // SAFETY: as in `piece`; the buffers hold the lines.
        unsafe { strided::gather(size_of::<T>(), from, &[(length, 1), (lines, across)], to.as_mut_ptr().cast()) }
    }
    /// Writes them.
    fn write_columns<T: Float>(&self, [length, lines]: [usize; 2], from: &[T], buffer: &mut [T]) {
        let (from, buffer) = (&from[..length * lines], &mut buffer[..length * lines]);
        if self.across == 1 {
            return from.chunks_exact(lines).enumerate().for_each(|(i, row)| self.write_row(i, row));
        }
        let own = self.is_own::<T>();
        let (to, across) =
            if own { (self.view.at(self.offset), self.across) } else { (buffer.as_mut_ptr().cast(), length) };
        // SAFETY: as above.
        unsafe { strided::scatter(size_of::<T>(), from.as_ptr().cast(), to, &[(length, 1), (lines, across)]) }
        if !own {
            (0..lines).for_each(|i| self.line(i).keep(0, length, buffer[i * length..].as_ptr()));
        }
    }
}

/// Where groups of `CHUNK` columns start. The last two may overlap; of fewer columns the only group goes on into the next row
/// of the copy, which is written later.
fn groups(columns: usize) -> impl Iterator<Item = usize> {
    (0..columns).step_by(CHUNK).map(move |first| first.min(columns.saturating_sub(CHUNK)))
}
/// `CHUNK` elements from `at` on; copies, as LLVM does not know that the buffers lie apart.
#[inline(always)]
fn lanes<T: Copy>(x: &[T], at: usize) -> [T; CHUNK] {
    *x[at..].first_chunk().expect("the buffer has room for a group more than its rows")
}
#[inline(always)]
fn put<T: Copy>(x: &mut [T], at: usize, lanes: [T; CHUNK]) {
    *x[at..].first_chunk_mut().expect("as above") = lanes;
}

/// The same lines of all operands, with buffers for a piece of a line or a row of lines.
struct Job<'a, T, const N: usize> {
    tiles: [Tile<'a>; N],
    length: usize,
    lines: usize,
    order: Order,
    buffers: [&'a mut [T]; 3],
}

/// How lines are processed.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// One by one.
    Lines,
    /// Together, as the columns of a copy.
    Columns,
    /// Together, row by row.
    Rows,
}

/// Calls `f` for every tile of lines along `dim`.
fn tiles<T: Float, const N: usize>(views: [View; N], dim: usize, f: impl Fn(Job<T, N>) + Sync) {
    if views[0].numel() == 0 {
        return;
    }
    let mut others = Others::new(views[0].shape, views.map(|v| v.strides), dim);
    let length = views[0].dim(dim).0;
    let (width, across) = others.pop();
    let dense = width == 1 || views[0].dim(dim).1 <= across[0];
    let order = match dense {
        // Of other lines only where exponentials would be computed twice.
        _ if length <= SHORT && width >= COLUMNS && (dense || N == 2) => Order::Columns,
        true => Order::Lines,
        false => Order::Rows,
    };
    let most = match order {
        Order::Rows => TILE,
        Order::Columns => (if dense { CALL } else { CALL_OF_ROWS } / length).min(TILE) / CHUNK * CHUNK,
        Order::Lines => (CALL / length).clamp(1, TILE),
    };
    let per_row = width.div_ceil(most);
    let room = match order {
        Order::Lines => length.min(LINE).next_multiple_of(CHUNK),
        Order::Columns => length * most.min(width) + CHUNK,
        Order::Rows => TILE.min(width),
    };
    par_for(others.count() * per_row, (1 << 13) / (length * most.min(width)), |range| {
        // Bounded by a line or a tile.
        let (mut a, mut b, mut c) = (vec![T::ZERO; room], vec![T::ZERO; room], vec![T::ZERO; room]);
        let mut at = others.walk(range.start / per_row);
        for unit in range {
            let start = unit % per_row * most;
            let lines = most.min(width - start);
            let tile = |k: usize| {
                let offset = at.offsets[k] + start * across[k];
                Tile { view: views[k], offset, along: views[k].dim(dim).1, across: across[k] }
            };
            f(Job { tiles: std::array::from_fn(tile), length, lines, order, buffers: [&mut a, &mut b, &mut c] });
            if start + lines == width {
                at.step();
            }
        }
    });
}

/// `y[i] = f(x[i])` for `n` elements; `y` may be one of the operands.
///
/// SAFETY: all must hold `n` elements, and be identical or not overlap.
#[inline(always)]
unsafe fn each<T: Copy, const N: usize>(x: [*const T; N], y: *mut T, n: usize, f: impl Fn([T; N]) -> T) {
    for i in 0..n {
        // SAFETY: the caller's promise.
        unsafe { *y.add(i) = f(x.map(|x| *x.add(i))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, Rng, close, ravel, shape, unravel};

    /// The sums of `values` along `dim`, for every element.
    fn sums(s: &[usize], dim: usize, values: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; values.len()];
        let start = |i: usize| {
            let mut at = unravel(s, i);
            at[dim] = 0;
            ravel(s, &at)
        };
        values.iter().enumerate().for_each(|(i, v)| out[start(i)] += v);
        (0..values.len()).map(|i| out[start(i)]).collect()
    }

    fn check(rng: &mut Rng, dtype: DType, s: &[usize], log: bool, tolerance: f64) {
        let dim = rng.below(s.len());
        let (x, grad) = (Array::random(rng, dtype, s), Array::random(rng, dtype, s));
        let (y, out) = (Array::scattered(rng, dtype, s), Array::scattered(rng, dtype, s));
        softmax(x.view(), dim, y.view(), log).unwrap();
        let e: Vec<f64> = x.reals().iter().map(|v| v.exp()).collect();
        let p: Vec<f64> = e.iter().zip(sums(s, dim, &e)).map(|(e, t)| e / t).collect();
        close(&y.reals(), &p.iter().map(|p| if log { p.ln() } else { *p }).collect::<Vec<_>>(), tolerance);
        softmax_backward(grad.view(), y.view(), dim, out.view(), log).unwrap();
        let g = grad.reals();
        let weighted: Vec<f64> = g.iter().zip(&p).map(|(g, p)| if log { *g } else { g * p }).collect();
        let total = sums(s, dim, &weighted);
        let want: Vec<f64> =
            (0..g.len()).map(|i| if log { g[i] - p[i] * total[i] } else { p[i] * (g[i] - total[i]) }).collect();
        close(&out.reals(), &want, 3.0 * tolerance);
        let (inside, over) = (Array::of(dtype, s, &x.reals()), Array::of(dtype, s, &g));
        softmax(inside.view(), dim, inside.view(), log).unwrap();
        softmax_backward(over.view(), inside.view(), dim, over.view(), log).unwrap();
        close(&inside.reals(), &y.reals(), tolerance);
        close(&over.reals(), &want, 3.0 * tolerance);
    }

    #[test]
    fn agrees_with_plain_loops() {
        let mut rng = Rng(23);
        for round in 0..40 {
            let s = shape(&mut rng, 4, 9);
            check(&mut rng, DType::F32, &s, round % 2 == 0, 1e-5);
            check(&mut rng, DType::F64, &s, round % 2 == 0, 1e-12);
            check(&mut rng, DType::BF16, &s, round % 2 == 0, 2e-2);
        }
        check(&mut rng, DType::F32, &[3, 5000], false, 1e-5);
        check(&mut rng, DType::F32, &[300, 700], true, 1e-5);
        for s in [&[90, 10][..], &[70, 64], &[37, 5, 40], &[33, 1], &[2000, 3], &[6, 33, 33]] {
            for log in [true, false, true, false] {
                check(&mut rng, DType::F32, s, log, 1e-5);
                check(&mut rng, DType::F64, s, log, 1e-12);
                check(&mut rng, DType::BF16, s, log, 2e-2);
            }
        }
    }

    /// Lines of few elements in both orders of memory and of many: one far below the maximum has a subnormal exponential.
    #[test]
    fn the_smallest_results_are_kept() {
        let line = |n: usize| move |i: usize| [0.0, -95.0, f64::NEG_INFINITY, -100.0, -3.0][i % n % 5];
        for (s, dim) in [([50, 10], 1), ([10, 50], 0), ([3, 1000], 1), ([1000, 3], 0), ([2, 20000], 1)] {
            let n = s[dim];
            let at = |i: usize| if dim == 1 { i % n } else { i / s[1] };
            let x: Vec<f64> = (0..s[0] * s[1]).map(|i| line(n)(at(i))).collect();
            let sum: f64 = (0..n).map(|i| line(n)(i).exp()).sum();
            let (input, out) = (Array::of(DType::F32, &s, &x), Array::zeros(DType::F32, &s));
            softmax(input.view(), dim, out.view(), false).unwrap();
            for (y, x) in out.reals().iter().zip(&x) {
                let want = x.exp() / sum;
                assert!((y - want).abs() <= 1e-6 * want + 2.0 * f32::from_bits(1) as f64, "{s:?} {x}: {y}, not {want}");
            }
        }
    }

    #[test]
    fn nan_and_infinity_spoil_their_line_alone() {
        let (n, inf) = (6, f64::INFINITY);
        for lines in [5, 40] {
            let mut x = vec![0.5; n * lines];
            x[n + 2] = f64::NAN;
            x[2 * n + 1] = inf;
            (3 * n..4 * n).for_each(|i| x[i] = -inf);
            let (input, out) = (Array::of(DType::F32, &[lines, n], &x), Array::zeros(DType::F32, &[lines, n]));
            for log in [false, true] {
                softmax(input.view(), 1, out.view(), log).unwrap();
                let y = out.reals();
                let plain = if log { -(n as f64).ln() } else { 1.0 / n as f64 };
                assert!(y.chunks(n).enumerate().all(|(i, y)| match i {
                    1 | 3 => y.iter().all(|v| v.is_nan()),
                    2 => y[1].is_nan(),
                    _ => y.iter().all(|v| (v - plain).abs() < 1e-6),
                }));
            }
        }
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        let (x, y) =
            (Array::of(DType::F32, &[3], &[1000.0, 1000.0, f64::NEG_INFINITY]), Array::zeros(DType::F32, &[3]));
        softmax(x.view(), 0, y.view(), false).unwrap();
        close(&y.reals(), &[0.5, 0.5, 0.0], 0.0);
    }
}
