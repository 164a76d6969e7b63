//! Random numbers by element index; Note [Random numbers] in `philox.rs` says which bits belong to an element.
//!
//! - uniform: 24 bits (f32), 53 (f64), 11 (f16) or 8 (bf16), the top ones, times 2^-24 (...): in [0, 1); then
//!   `from + u (to - from)`.
//! - normal: Box-Muller over pairs of elements. Of words w0 and w1 (f32; w2 and w3 for the block's second pair) or of
//!   64-bit words (f64): u1 = (top bits + 1) 2^-24 in (0, 1], u2 = top bits 2^-24, r = sqrt(-2 ln u1); the even
//!   element is r cos(2 pi u2), the odd one r sin(2 pi u2). f16 and bf16 are rounded from f32.
//! - exponential: -ln(u1) / lambda. bernoulli: word < p 2^32.
//! - integers: word * range >> 32 (64-bit words, >> 64, where the range exceeds 2^32), added to `low`.
//!
//! Multiply-adds are never fused here: every instruction set, and the shaders, give the same values.

use super::contiguous::TaskShared;
use super::convert::converter;
use super::distributions::*;
use super::isa::{Isa, isa};
use super::parallel::par_for;
use super::philox::{LANES, Philox, Words};
use super::sort::{SHORT, Sorter};
use super::view::{View, ensure};
use crate::dtype::{DType, Element};
use crate::error::Result;

/// Uniform numbers in [from, to), rounded to the operand's floating dtype. Like every operand here it is contiguous.
pub fn uniform(out: View, from: f64, to: f64, philox: Philox) -> Result<()> {
    let (n, out, dtype) = dense(out)?;
    let bits = match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        _ => 24,
    };
    // SAFETY: there are `n` elements.
    unsafe {
        match dtype {
            DType::F64 => draw(n, out, dtype, Uniform64 { from, width: to - from }, philox),
            _ => draw(n, out, dtype, Uniform32 { from: from as f32, width: (to - from) as f32, bits }, philox),
        }
    }
    Ok(())
}

/// The elements of a contiguous operand: how many, where and of what dtype.
fn dense(out: View) -> Result<(usize, *mut u8, DType)> {
    ensure(out.is_contiguous(), "random numbers")?;
    Ok((out.numel(), out.ptr, out.dtype))
}

/// Normal numbers with this mean and standard deviation.
pub fn normal(out: View, mean: f64, std: f64, philox: Philox) -> Result<()> {
    let (n, out, dtype) = dense(out)?;
    // SAFETY: there are `n` elements.
    unsafe {
        match dtype {
            DType::F64 => draw(n, out, dtype, Normal64 { mean, std }, philox),
            _ => draw(n, out, dtype, Normal32 { mean: mean as f32, std: std as f32 }, philox),
        }
    }
    Ok(())
}

/// Exponential numbers of rate `lambda`.
pub fn exponential(out: View, lambda: f64, philox: Philox) -> Result<()> {
    let (n, out, dtype) = dense(out)?;
    // SAFETY: there are `n` elements.
    unsafe {
        match dtype {
            DType::F64 => draw(n, out, dtype, Exponential64 { lambda }, philox),
            _ => draw(n, out, dtype, Exponential32 { lambda: lambda as f32 }, philox),
        }
    }
    Ok(())
}

/// One with probability `p`, else zero, in any dtype.
pub fn bernoulli(out: View, p: f64, philox: Philox) -> Result<()> {
    let (n, out, dtype) = dense(out)?;
    let threshold = (p.clamp(0.0, 1.0) * 4294967296.0).ceil() as u64;
    // SAFETY: there are `n` elements.
    unsafe { draw(n, out, dtype, Below { threshold }, philox) };
    Ok(())
}

/// Integers in [low, high), converted to any dtype; `low == high` stands for all 64-bit integers.
pub fn random_int(out: View, low: i64, high: i64, philox: Philox) -> Result<()> {
    let (n, out, dtype) = dense(out)?;
    let range = high.wrapping_sub(low) as u64;
    // SAFETY: there are `n` elements.
    unsafe {
        match range {
            1..=0x1_0000_0000 => draw(n, out, dtype, Integer32 { low, range }, philox),
            _ => draw(n, out, dtype, Integer64 { low, range }, philox),
        }
    }
    Ok(())
}

/// A random order of `0..n` in int64, for `n` up to 2^32: the indices sorted by a 64-bit word each.
pub fn randperm(out: View, philox: Philox) -> Result<()> {
    ensure(out.dtype == DType::I64, "randperm")?;
    let (n, out, dtype) = dense(out)?;
    // SAFETY: `out` has room for the high halves, which a slice then has to itself.
    let order = unsafe {
        draw(n, out, dtype, High, philox);
        std::slice::from_raw_parts_mut(out as *mut u64, n)
    };
    let mut sorter = Sorter::new(n)?;
    let sorted = sorter.sort(n, SHORT, |i| (order[i] >> (u32::BITS - SHORT) << 32) | i as u64);
    // Ties of the short keys are ordered by the whole words.
    let word = |item: u64| {
        let i = item & 0xffff_ffff;
        (order[i as usize], philox.block(i / 2)[2 * (i & 1) as usize])
    };
    for run in sorted.chunk_by_mut(|a, b| a >> 32 == b >> 32).filter(|run| run.len() > 1) {
        run.sort_unstable_by_key(|&item| word(item));
    }
    order.iter_mut().zip(sorted).for_each(|(o, item)| *o = *item & 0xffff_ffff);
    Ok(())
}

/// Chunks of `LANES` blocks per task.
const GRAIN: usize = 16;

/// SAFETY: `out` holds `n` aligned elements of `dtype`.
unsafe fn draw<const N: usize, D: Draw<N>>(n: usize, out: *mut u8, dtype: DType, d: D, philox: Philox) {
    let chunk = LANES * N;
    let step = converter(D::Out::DTYPE, dtype);
    let wide = isa() >= Isa::Avx2;
    let out = TaskShared(out);
    par_for(n.div_ceil(chunk), GRAIN, |chunks| {
        let mut words: Words = [[0; LANES]; 4];
        let mut lanes = [[D::Out::default(); LANES]; N];
        let mut values = [[D::Out::default(); N]; LANES];
        for c in chunks {
            let first = (c * LANES) as u64;
            // SAFETY: AVX2 is available if `wide` says so; elements from `c * chunk` on, at most `n`, are in bounds.
            unsafe {
                match wide {
                    true => avx2(d, philox, first, &mut words, &mut lanes, &mut values),
                    false => generate(d, philox, first, &mut words, &mut lanes, &mut values),
                }
                let target = out.get().add(c * chunk * dtype.size());
                let (source, len) = (values.as_ptr() as *const u8, chunk.min(n - c * chunk));
                match step {
                    Some(step) => step(source, target, len),
                    None => std::ptr::copy_nonoverlapping(source, target, len * dtype.size()),
                }
            }
        }
    });
}

type Lanes<D, const N: usize> = [[<D as Draw<N>>::Out; LANES]; N];
type Values<D, const N: usize> = [[<D as Draw<N>>::Out; N]; LANES];

/// SAFETY: the processor has the features.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma"))]
unsafe fn avx2<const N: usize, D: Draw<N>>(
    d: D,
    p: Philox,
    first: u64,
    words: &mut Words,
    lanes: &mut Lanes<D, N>,
    values: &mut Values<D, N>,
) {
    generate(d, p, first, words, lanes, values)
}
/// Words, then elements lane by lane, then their order: three loops that vectorise separately.
#[inline(always)]
fn generate<const N: usize, D: Draw<N>>(
    d: D,
    p: Philox,
    first: u64,
    words: &mut Words,
    lanes: &mut Lanes<D, N>,
    values: &mut Values<D, N>,
) {
    p.fill(first, words);
    for i in 0..LANES {
        let drawn = d.draw([words[0][i], words[1][i], words[2][i], words[3][i]]);
        (0..N).for_each(|k| lanes[k][i] = drawn[k]);
    }
    for (i, v) in values.iter_mut().enumerate() {
        *v = std::array::from_fn(|k| lanes[k][i]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::parallel::{num_threads, set_num_threads};

    const KEY: Philox = Philox { seed: 1234, offset: 5 };

    fn draws<T: Element>(n: usize, f: impl Fn(View) -> Result<()>) -> Vec<T> {
        let mut v = vec![T::default(); n];
        let shape = [n];
        // SAFETY: the list has `n` elements.
        f(unsafe { View::new(v.as_mut_ptr().cast(), T::DTYPE, &shape, &[1]) }).unwrap();
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
            (0.5, 1.0 / 12.0, draws::<f64>(n, |v| uniform(v, 0.0, 1.0, KEY))),
            (2.0, 9.0, draws::<f64>(n, |v| normal(v, 2.0, 3.0, KEY))),
            (0.5, 0.25, draws::<f64>(n, |v| exponential(v, 2.0, KEY))),
            (0.3, 0.21, draws::<f64>(n, |v| bernoulli(v, 0.3, KEY))),
            (4.5, 8.25, draws::<f64>(n, |v| random_int(v, 0, 10, KEY))),
        ] {
            let (m, s) = moments(&v);
            assert!((m - mean).abs() < 0.03 && (s - var).abs() < 0.1, "{m} {s}, not {mean} {var}");
        }
        for f32s in [
            draws::<f32>(n, |v| normal(v, 0.0, 1.0, KEY)),
            draws::<f32>(n, |v| exponential(v, 1.0, KEY)).iter().map(|x| x - 1.0).collect(),
        ] {
            let (m, s) = moments(&f32s.iter().map(|&x| x as f64).collect::<Vec<_>>());
            assert!(m.abs() < 0.01 && (s - 1.0).abs() < 0.02 && f32s.iter().all(|x| x.is_finite()), "{m} {s}");
        }
        let u = draws::<f32>(n, |v| uniform(v, -1.0, 1.0, KEY));
        assert!(u.iter().all(|x| (-1.0..1.0).contains(x)));
        assert!(draws::<bool>(1000, |v| bernoulli(v, 1.0, KEY)).iter().all(|&b| b));
        assert!(!draws::<bool>(1000, |v| bernoulli(v, 0.0, KEY)).iter().any(|&b| b));
        let wide = draws::<i64>(1000, |v| random_int(v, i64::MIN, i64::MAX, KEY));
        assert!(wide.iter().any(|&x| x < 0) && wide.iter().any(|&x| x > 0));
    }

    #[test]
    fn elements_are_those_of_the_note() {
        let word = |i: u64| KEY.block(i / 4)[i as usize % 4];
        let (u, k) =
            (draws::<f32>(3000, |v| uniform(v, 0.0, 1.0, KEY)), draws::<i32>(3000, |v| random_int(v, -5, 5, KEY)));
        for i in 0..3000 {
            assert_eq!(u[i], (word(i as u64) >> 8) as f32 / 16777216.0);
            assert_eq!(k[i], ((word(i as u64) as u64 * 10) >> 32) as i32 - 5);
        }
        let (x, y) =
            (draws::<f32>(3000, |v| normal(v, 0.0, 1.0, KEY)), draws::<f64>(3000, |v| normal(v, 0.0, 1.0, KEY)));
        for i in 0..1500u64 {
            let (a, b) = (word(2 * i) >> 8, word(2 * i + 1) >> 8);
            let r = (-2.0 * ((a as f64 + 1.0) / 16777216.0).ln()).sqrt();
            let t = std::f64::consts::TAU * b as f64 / 16777216.0;
            assert!((x[2 * i as usize] as f64 - r * t.cos()).abs() < 1e-6);
            assert!((x[2 * i as usize + 1] as f64 - r * t.sin()).abs() < 1e-6);
            let [a, b, c, d] = KEY.block(i).map(|w| w as u64);
            let (a, b) = ((b << 32 | a) >> 11, (d << 32 | c) >> 11);
            let r = (-2.0 * ((a as f64 + 1.0) * TINY_64).ln()).sqrt();
            assert!((y[2 * i as usize] - r * (std::f64::consts::TAU * b as f64 * TINY_64).cos()).abs() < 1e-14);
        }
    }

    #[test]
    fn values_do_not_depend_on_threads_or_length() {
        let n = 100_003;
        let make = |n| draws::<f32>(n, |v| normal(v, 0.0, 1.0, KEY));
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
    fn permutations_are_the_order_of_their_words() {
        for n in [0usize, 1, 2, 1001, 70_000] {
            let p = draws::<i64>(n, |v| randperm(v, KEY));
            let word = |&i: &i64| {
                let block = KEY.block(i as u64 / 2);
                let at = 2 * (i & 1) as usize;
                ((block[at + 1] as u64) << 32) | block[at] as u64
            };
            let mut want: Vec<i64> = (0..n as i64).collect();
            want.sort_by_key(word);
            assert!(p == want, "{n}");
        }
    }
}
