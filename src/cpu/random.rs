//! Random numbers of the CPU, from the words of its generator: Note [Random numbers on the CPU] in `mersenne.rs`.
//!
//! - uniform: the low 24 bits of a word (f32, f16, bf16) or 53 of two (f64), times 2^-24 (2^-53): u in [0, 1); then
//!   `from + u (to - from)` with one rounding, and `from` where that rounds up to `to`.
//! - normal: Box-Muller. Sixteen contiguous numbers or more go by blocks of sixteen: numbers j and j + 8 of a block are
//!   r cos(2 pi v) and r sin(2 pi v), r = sqrt(-2 ln (1 - u)), from the uniform numbers u and v in their places. What
//!   does not fill a block is left out, and the last sixteen are drawn anew. Others go pair by pair in f64.
//! - exponential: -ln(1 - u) / lambda in f64. bernoulli: u < p in f64.
//! - integers: a word, or two for ranges from 2^28 on, modulo the range, plus `low`.
//! - permutations: each place in turn is swapped with one of those from it on, chosen by a word modulo their number.
//!
//! f16 and bf16 are rounded from f32.

use super::contiguous::TaskShared;
use super::convert::converter;
use super::distributions::*;
use super::isa::{Isa, clear_upper, isa};
use super::mersenne::Mersenne;
use super::parallel::par_for;
use super::view::{View, ensure};
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::rt::reserve::filled;

/// Uniform numbers in [from, to), in the operand's floating dtype. Like every operand here it is contiguous.
pub fn uniform(out: View, from: f64, to: f64, source: &mut Mersenne) -> Result<()> {
    let (n, out, dtype) = dense(out)?;
    // SAFETY: there are `n` elements.
    unsafe {
        match dtype {
            DType::F64 => draw(n, out, dtype, Uniform64 { from, to }, source),
            _ => draw(n, out, dtype, Uniform32::new(from, to, dtype), source),
        }
    }
}

/// The elements of a contiguous operand: how many, where and of what dtype.
fn dense(out: View) -> Result<(usize, *mut u8, DType)> {
    ensure(out.is_contiguous(), "random numbers")?;
    Ok((out.numel(), out.ptr, out.dtype))
}

/// Normal numbers with this mean and standard deviation, by blocks where there are sixteen or more.
pub fn normal(out: View, mean: f64, std: f64, source: &mut Mersenne) -> Result<()> {
    if out.numel() < BLOCK {
        return normal_pairs(out, mean, std, source);
    }
    let (n, out, dtype) = dense(out)?;
    let (rest, size) = (n % BLOCK, dtype.size());
    let part = |at: usize, len: usize, source: &mut Mersenne| {
        // SAFETY: the part lies within the `n` elements.
        unsafe {
            let out = out.add(at * size);
            match dtype {
                DType::F64 => draw(len, out, dtype, Normal64 { mean, std }, source),
                _ => draw(len, out, dtype, Normal32 { mean: mean as f32, std: std as f32 }, source),
            }
        }
    };
    part(0, n - rest, source)?;
    if rest == 0 {
        return Ok(());
    }
    match dtype {
        DType::F64 => source.skip(2 * rest),
        DType::F32 => source.skip(rest),
        // PyTorch makes halves block by block and leaves nothing out.
        _ => {}
    }
    part(n - BLOCK, BLOCK, source)
}

/// Normal numbers one after the other, as PyTorch makes few or strided ones.
pub fn normal_pairs(out: View, mean: f64, std: f64, source: &mut Mersenne) -> Result<()> {
    let (n, out, dtype) = dense(out)?;
    let mut values = [0.0f64; LANES];
    for first in (0..n).step_by(LANES) {
        let len = LANES.min(n - first);
        values[..len].iter_mut().for_each(|v| *v = source.normal().mul_add(std, mean));
        // SAFETY: elements from `first` on, at most `n`, are in bounds.
        unsafe { store(&values[..len], out.add(first * dtype.size()), dtype) };
    }
    Ok(())
}

/// Exponential numbers of rate `lambda`.
pub fn exponential(out: View, lambda: f64, source: &mut Mersenne) -> Result<()> {
    let (n, out, dtype) = dense(out)?;
    // SAFETY: there are `n` elements.
    unsafe { draw(n, out, dtype, Exponential { factor: -1.0 / lambda }, source) }
}

/// One with probability `p`, else zero, in any dtype.
pub fn bernoulli(out: View, p: f64, source: &mut Mersenne) -> Result<()> {
    let (n, out, dtype) = dense(out)?;
    // SAFETY: there are `n` elements.
    unsafe { draw(n, out, dtype, Below::of(p), source) }
}

/// `value` with probability `keep`, else zero, in a floating dtype: what dropout multiplies by.
pub fn dropout_mask(out: View, keep: f64, value: f64, source: &mut Mersenne) -> Result<()> {
    let (n, out, dtype) = dense(out)?;
    // SAFETY: there are `n` elements.
    unsafe {
        match dtype {
            DType::F64 => draw(n, out, dtype, Kept { below: Below::of(keep), value }, source),
            _ => draw(n, out, dtype, Kept { below: Below::of(keep), value: value as f32 }, source),
        }
    }
}

/// Integers in [low, high), converted to any dtype, each from two words if `long`; `low == high` stands for all 64-bit
/// integers.
pub fn random_int(out: View, low: i64, high: i64, long: bool, source: &mut Mersenne) -> Result<()> {
    let (n, out, dtype) = dense(out)?;
    let range = high.wrapping_sub(low) as u64;
    // SAFETY: there are `n` elements.
    unsafe {
        match long {
            false => draw(n, out, dtype, Integer32::new(low, range), source),
            true => draw(n, out, dtype, Integer64 { low, range }, source),
        }
    }
}

/// A random order of `0..n` in int64.
pub fn randperm(out: View, source: &mut Mersenne) -> Result<()> {
    ensure(out.dtype == DType::I64, "randperm")?;
    let (n, out, _) = dense(out)?;
    let out = out as *mut i64;
    // SAFETY: the operand has `n` elements of int64; all are written before a slice is made, which has them to itself.
    let order = unsafe {
        (0..n).for_each(|i| out.add(i).write(i as i64));
        std::slice::from_raw_parts_mut(out, n)
    };
    let mut words = [0u32; LANES];
    // From here on a word is too coarse, and PyTorch takes two.
    let long = n >= (u32::MAX / 20) as usize;
    for first in (0..n.saturating_sub(1)).step_by(LANES) {
        let len = LANES.min(n - 1 - first);
        if !long {
            source.fill(&mut words[..len]);
        }
        for (i, word) in (first..first + len).zip(words) {
            let rest = n - i;
            let by = if long { (source.long_word() % rest as u64) as usize } else { (word % rest as u32) as usize };
            order.swap(i, i + by);
        }
    }
    Ok(())
}

/// Elements whose words are drawn at a time: a buffer that stays in the second cache.
const SPAN: usize = 1 << 15;
/// Elements that are computed at a time.
pub(super) const LANES: usize = 256;
/// Chunks of `LANES` elements per task.
const GRAIN: usize = 16;

/// SAFETY: `out` holds `n` aligned elements of `dtype`.
unsafe fn draw<D: Draw>(n: usize, out: *mut u8, dtype: DType, d: D, source: &mut Mersenne) -> Result<()> {
    let mut words = filled(0u32, n.min(SPAN) * D::WORDS)?;
    let out = TaskShared(out);
    for start in (0..n).step_by(SPAN) {
        let len = SPAN.min(n - start);
        let words = &mut words[..len * D::WORDS];
        source.fill(words);
        let words = &*words;
        par_for(len.div_ceil(LANES), GRAIN, |chunks| {
            let mut values = [D::Out::default(); LANES];
            for c in chunks {
                let (first, count) = (c * LANES, LANES.min(len - c * LANES));
                let values = &mut values[..count];
                compute(d, &words[first * D::WORDS..(first + count) * D::WORDS], values);
                // SAFETY: elements from `start + first` on, at most `n`, are in bounds, and this task's alone.
                unsafe { store(values, out.get().add((start + first) * dtype.size()), dtype) };
            }
        });
    }
    Ok(())
}

/// Writes values in a dtype.
///
/// SAFETY: `target` has room for as many aligned elements of `dtype`.
unsafe fn store<T: Element>(values: &[T], target: *mut u8, dtype: DType) {
    let source = values.as_ptr() as *const u8;
    // SAFETY: both have `values.len()` elements.
    unsafe {
        match converter(T::DTYPE, dtype) {
            Some(step) => step(source, target, values.len()),
            None => std::ptr::copy_nonoverlapping(source, target, values.len() * dtype.size()),
        }
    }
}

/// SAFETY: the processor has the features.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma"))]
unsafe fn compute_avx2<D: Draw>(d: D, words: &[u32], values: &mut [D::Out]) {
    d.fill(words, values);
    // SAFETY: the caller's promise.
    unsafe { clear_upper() };
}
fn compute<D: Draw>(d: D, words: &[u32], values: &mut [D::Out]) {
    match isa() >= Isa::Avx2 {
        // SAFETY: checked.
        true => unsafe { compute_avx2(d, words, values) },
        false => d.fill(words, values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::parallel::{num_threads, set_num_threads};

    fn draws<T: Element>(n: usize, f: impl Fn(View, &mut Mersenne) -> Result<()>) -> Vec<T> {
        drawn_by(n, &mut Mersenne::new(1234), f)
    }
    fn drawn_by<T: Element>(n: usize, source: &mut Mersenne, f: impl Fn(View, &mut Mersenne) -> Result<()>) -> Vec<T> {
        let mut v = vec![T::default(); n];
        let shape = [n];
        // SAFETY: the list has `n` elements.
        f(unsafe { View::new(v.as_mut_ptr().cast(), T::DTYPE, &shape, &[1]) }, source).unwrap();
        v
    }
    fn moments(v: &[f64]) -> (f64, f64) {
        let mean = v.iter().sum::<f64>() / v.len() as f64;
        (mean, v.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / v.len() as f64)
    }

    #[test]
    fn distributions_have_their_moments() {
        let n = 200_001;
        for (mean, var, v) in [
            (0.5, 1.0 / 12.0, draws::<f64>(n, |v, s| uniform(v, 0.0, 1.0, s))),
            (2.0, 9.0, draws::<f64>(n, |v, s| normal(v, 2.0, 3.0, s))),
            (2.0, 9.0, draws::<f64>(n, |v, s| normal_pairs(v, 2.0, 3.0, s))),
            (0.5, 0.25, draws::<f64>(n, |v, s| exponential(v, 2.0, s))),
            (0.3, 0.21, draws::<f64>(n, |v, s| bernoulli(v, 0.3, s))),
            (4.5, 8.25, draws::<f64>(n, |v, s| random_int(v, 0, 10, false, s))),
            (4.5, 8.25, draws::<f64>(n, |v, s| random_int(v, 0, 10, true, s))),
        ] {
            let (m, s) = moments(&v);
            assert!((m - mean).abs() < 0.03 && (s - var).abs() < 0.1, "{m} {s}, not {mean} {var}");
        }
        for f32s in [
            draws::<f32>(n, |v, s| normal(v, 0.0, 1.0, s)),
            draws::<f32>(n, |v, s| exponential(v, 1.0, s)).iter().map(|x| x - 1.0).collect(),
        ] {
            let (m, s) = moments(&f32s.iter().map(|&x| x as f64).collect::<Vec<_>>());
            assert!(m.abs() < 0.01 && (s - 1.0).abs() < 0.02 && f32s.iter().all(|x| x.is_finite()), "{m} {s}");
        }
        let u = draws::<f32>(n, |v, s| uniform(v, -1.0, 1.0, s));
        assert!(u.iter().all(|x| (-1.0..1.0).contains(x)));
        assert!(draws::<bool>(1000, |v, s| bernoulli(v, 1.0, s)).iter().all(|&b| b));
        assert!(!draws::<bool>(1000, |v, s| bernoulli(v, 0.0, s)).iter().any(|&b| b));
        let wide = draws::<i64>(1000, |v, s| random_int(v, i64::MIN, i64::MAX, true, s));
        assert!(wide.iter().any(|&x| x < 0) && wide.iter().any(|&x| x > 0));
    }

    #[test]
    fn the_end_of_a_range_is_not_drawn() {
        let n = 100_000;
        // Half of the numbers round up to the end.
        let u = draws::<f32>(n, |v, s| uniform(v, 1e8, 1e8 + 8.0, s));
        assert!(u.iter().all(|&x| x == 1e8));
        assert!(draws::<half::f16>(n, |v, s| uniform(v, -1.0, 3.0, s)).iter().all(|x| x.to_f32() < 3.0));
        assert!(draws::<half::bf16>(n, |v, s| uniform(v, 0.0, 1.0, s)).iter().all(|x| x.to_f32() < 1.0));
    }

    #[test]
    fn integers_are_remainders() {
        for range in [1u64, 3, 10, 255, 1000, (1 << 28) - 1] {
            let mut words = Mersenne::new(1234);
            for k in draws::<i64>(5000, |v, s| random_int(v, -5, range as i64 - 5, false, s)) {
                assert_eq!(k, (words.word() as u64 % range) as i64 - 5, "{range}");
            }
        }
        let mut words = Mersenne::new(1234);
        for k in draws::<i64>(100, |v, s| random_int(v, 7, 7, true, s)) {
            assert_eq!(k, words.long_word().wrapping_add(7) as i64);
        }
    }

    /// Blocks of sixteen from uniform numbers in their places; what is over is skipped and the last block drawn anew.
    #[test]
    fn normal_numbers_go_by_blocks() {
        let blocks = |n: usize, unit: &mut dyn FnMut() -> f64| {
            let mut v: Vec<f64> = (0..n).map(|_| unit()).collect();
            let block = |v: &mut [f64]| {
                for j in 0..8 {
                    let (r, t) = ((-2.0 * (1.0 - v[j]).ln()).sqrt(), std::f64::consts::TAU * v[j + 8]);
                    (v[j], v[j + 8]) = (r * t.cos(), r * t.sin());
                }
            };
            v.chunks_exact_mut(16).for_each(block);
            if !n.is_multiple_of(16) {
                let last = &mut v[n - 16..];
                last.iter_mut().for_each(|x| *x = unit());
                block(last);
            }
            v
        };
        for n in [16, 21, 256, 100_003] {
            let (mut words, mut source) = (Mersenne::new(9), Mersenne::new(9));
            let want = blocks(n, &mut || (words.word() & 0xff_ffff) as f64 / 16777216.0);
            let got = drawn_by::<f32>(n, &mut source, |v, s| normal(v, 0.0, 1.0, s));
            assert!(got.iter().zip(&want).all(|(g, w)| (*g as f64 - w).abs() < 2e-6));
            assert_eq!(words, source);
            let want = blocks(n, &mut || words.unit());
            let got = drawn_by::<f64>(n, &mut source, |v, s| normal(v, 0.0, 1.0, s));
            assert!(got.iter().zip(&want).all(|(g, w)| (g - w).abs() < 1e-14));
            assert_eq!(words, source);
        }
    }

    #[test]
    fn values_do_not_depend_on_threads_or_length() {
        let n = 100_003;
        let make = |n| draws::<f32>(n, |v, s| exponential(v, 1.0, s));
        let threads = num_threads();
        set_num_threads(1);
        let one = make(n);
        set_num_threads(3);
        let three = make(n);
        set_num_threads(threads);
        assert_eq!(one, three);
        assert_eq!(one[..777], make(777));
    }

    #[test]
    fn permutations_are_swaps_by_words() {
        for n in [0usize, 1, 2, 257, 1001, 70_000] {
            let p = draws::<i64>(n, randperm);
            let (mut want, mut words): (Vec<i64>, _) = ((0..n as i64).collect(), Mersenne::new(1234));
            for i in 0..n.saturating_sub(1) {
                want.swap(i, i + words.word() as usize % (n - i));
            }
            assert!(p == want, "{n}");
        }
    }
}
