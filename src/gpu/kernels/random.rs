//! Random numbers by element index, from the words of Note [Random numbers on the GPU].
//!
//! Uniform numbers and integers are the same bits on every device. Normal and exponential numbers are where the
//! device divides and takes roots correctly rounded, else they differ in the last place.

use super::element::compute_of;
use super::kernel::Kernel;
use super::template::Compute;
use super::view::View;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};

use crate::kinds::Draw;
const TEMPLATE: &str = include_str!("../../../shaders/random.wgsl");
const F32: &str = include_str!("../../../shaders/random_f32.wgsl");
const F64: &str = include_str!("../../../shaders/random_f64.wgsl");

/// Fills `out`, row-major element by element, from the draw that `seed` and `offset` name.
pub fn random(kind: Draw, seed: u64, offset: u64, out: &View) -> Result<()> {
    out.require_own()?;
    let count = out.numel();
    if count == 0 {
        return Ok(());
    }
    let own = compute_of(out.dtype)?;
    let wide = own == Compute::F64;
    let float = |what: &str| match own {
        Compute::F32 | Compute::F64 => Ok(own),
        _ => Err(Error::not_implemented(format!("{what} numbers need a floating dtype, got {}", out.dtype))),
    };
    let start = |compute, per_block| kernel(compute, per_block, seed, offset, out);
    let (kernel, per_block) = match kind {
        Draw::Uniform { from, to } => {
            let kernel = start(float("uniform")?, if wide { 2 } else { 4 })?;
            (scaled(kernel, wide, [from, to - from], uniform(out.dtype)), if wide { 2 } else { 4 })
        }
        Draw::Normal { mean, std } | Draw::NormalPairs { mean, std } => {
            let kernel = start(float("normal")?, if wide { 2 } else { 4 })?;
            (
                scaled(kernel, wide, [mean, std], ("normal", if wide { NORMAL_64 } else { NORMAL_32 })),
                if wide { 2 } else { 4 },
            )
        }
        Draw::Exponential { rate } => {
            let kernel = start(float("exponential")?, if wide { 2 } else { 4 })?;
            (
                scaled(kernel, wide, [0.0, rate], ("exponential", if wide { EXPONENTIAL_64 } else { EXPONENTIAL_32 })),
                if wide { 2 } else { 4 },
            )
        }
        Draw::Bernoulli { p } => (bernoulli(start(own, 4)?, p), 4),
        Draw::Mask { keep, value } => (mask(start(float("mask")?, 4)?, keep, value), 4),
        Draw::Int { low, high, .. } => integers(&start, out, low, high)?,
    };
    kernel.launch(count.div_ceil(per_block))
}

fn kernel<'a>(compute: Compute, per_block: usize, seed: u64, offset: u64, out: &View<'a>) -> Result<Kernel<'a>> {
    Ok(Kernel::new("random", TEMPLATE, compute)
        .write("out", *out)
        .walk("out", out.shape, out.strides)
        .number("count", out.numel())?
        .number("per_block", per_block)?
        .bits("seed_low", seed as u32)
        .bits("seed_high", (seed >> 32) as u32)
        .bits("offset_low", offset as u32)
        .bits("offset_high", (offset >> 32) as u32))
}

/// The helpers of the type, and a formula over two numbers.
fn scaled<'a>(
    kernel: Kernel<'a>,
    wide: bool,
    [base, width]: [f64; 2],
    (name, formula): (&'static str, &'static str),
) -> Kernel<'a> {
    kernel
        .scalar("base", Scalar::Float(base))
        .scalar("width", Scalar::Float(width))
        .part(name, "helpers", if wide { F64 } else { F32 })
        .part(name, "formula", formula)
}

/// As many bits as the dtype's significand holds, so that no number rounds up to the end of the range.
fn uniform(dtype: DType) -> (&'static str, &'static str) {
    match dtype {
        DType::F64 => ("uniform", UNIFORM_64),
        DType::F16 => ("uniform 11 bits", UNIFORM_11),
        DType::BF16 => ("uniform 8 bits", UNIFORM_8),
        _ => ("uniform", UNIFORM_32),
    }
}
const UNIFORM_64: &str = "{{helpers}}
fn draw(w: vec4<u32>) -> array<f64, 2> {
    return array<f64, 2>(unit(w.x, w.y) * {{width}} + {{base}}, unit(w.z, w.w) * {{width}} + {{base}});
}";
const UNIFORM_32: &str = "{{helpers}}
fn draw(w: vec4<u32>) -> array<f32, 4> {
    return ranged(vec4<f32>(w >> vec4<u32>(8u)) * 5.9604644775390625e-8, {{width}}, {{base}});
}";
const UNIFORM_11: &str = "{{helpers}}
fn draw(w: vec4<u32>) -> array<f32, 4> {
    return ranged(vec4<f32>(w >> vec4<u32>(21u)) * 0.00048828125, {{width}}, {{base}});
}";
const UNIFORM_8: &str = "{{helpers}}
fn draw(w: vec4<u32>) -> array<f32, 4> {
    return ranged(vec4<f32>(w >> vec4<u32>(24u)) * 0.00390625, {{width}}, {{base}});
}";
const NORMAL_32: &str = "{{helpers}}
fn draw(w: vec4<u32>) -> array<f32, 4> {
    let a = normal_pair(w.x, w.y);
    let b = normal_pair(w.z, w.w);
    return array<f32, 4>(
        times(a.x, {{width}}) + {{base}}, times(a.y, {{width}}) + {{base}},
        times(b.x, {{width}}) + {{base}}, times(b.y, {{width}}) + {{base}}
    );
}";
const NORMAL_64: &str = "{{helpers}}
fn draw(w: vec4<u32>) -> array<f64, 2> {
    let a = normal_pair(w);
    return array<f64, 2>(a.x * {{width}} + {{base}}, a.y * {{width}} + {{base}});
}";
const EXPONENTIAL_32: &str = "{{helpers}}
fn one(w: u32) -> f32 {
    return quotient(0.0 - ln_exact(positive_unit(w)), {{width}});
}
fn draw(w: vec4<u32>) -> array<f32, 4> {
    return array<f32, 4>(one(w.x), one(w.y), one(w.z), one(w.w));
}";
const EXPONENTIAL_64: &str = "{{helpers}}
fn draw(w: vec4<u32>) -> array<f64, 2> {
    return array<f64, 2>(-ln_(positive_unit(w.x, w.y)) / {{width}}, -ln_(positive_unit(w.z, w.w)) / {{width}});
}";

/// A kernel with the bounds of words that stand for numbers below `p`.
fn below(kernel: Kernel<'_>, p: f64) -> Kernel<'_> {
    let threshold = (p.clamp(0.0, 1.0) * 4294967296.0).ceil() as u64;
    kernel.bits("last", threshold.saturating_sub(1) as u32).bits("some", (threshold > 0) as u32)
}
fn bernoulli(kernel: Kernel<'_>, p: f64) -> Kernel<'_> {
    below(kernel, p).part("bernoulli", "formula", BERNOULLI)
}
fn mask(kernel: Kernel<'_>, keep: f64, value: f64) -> Kernel<'_> {
    below(kernel, keep).scalar("value", Scalar::Float(value)).part("mask", "formula", MASK)
}
const BERNOULLI: &str = "fn one(w: u32) -> T {
    return T(w <= {{last}} && {{some}} != 0u);
}
fn draw(w: vec4<u32>) -> array<T, 4> {
    return array<T, 4>(one(w.x), one(w.y), one(w.z), one(w.w));
}";
const MASK: &str = "fn one(w: u32) -> T {
    return select(T(0), {{value}}, w <= {{last}} && {{some}} != 0u);
}
fn draw(w: vec4<u32>) -> array<T, 4> {
    return array<T, 4>(one(w.x), one(w.y), one(w.z), one(w.w));
}";

/// Integers of [low, high); `low == high` stands for all 64-bit integers. Small ones need no 64-bit arithmetic.
fn integers<'a>(
    start: &impl Fn(Compute, usize) -> Result<Kernel<'a>>,
    out: &View,
    low: i64,
    high: i64,
) -> Result<(Kernel<'a>, usize)> {
    let range = high.wrapping_sub(low) as u64;
    let small = i32::try_from(low).is_ok() && high > low && high - 1 <= i32::MAX as i64;
    let long = range == 0 || range > 1 << 32;
    if !small {
        out.require(DType::I64)?;
    }
    let (compute, per_block, name, formula) = match (small, long) {
        (true, _) => (Compute::I32, 4, "integers", SMALL_INTEGERS),
        (_, false) => (Compute::I64, 4, "integers", INTEGERS),
        _ => (Compute::I64, 2, "long integers", LONG_INTEGERS),
    };
    let kernel = start(compute, per_block)?
        .scalar("low", Scalar::Int(low))
        .bits("range_low", range as u32)
        .bits("range_high", (range >> 32) as u32)
        .part(name, "formula", formula);
    Ok((kernel, per_block))
}
const SMALL_INTEGERS: &str = "fn one(w: u32) -> i32 {
    return {{low}} + bitcast<i32>(select(mul_wide(w, {{range_low}}).x, w, {{range_high}} != 0u));
}
fn draw(w: vec4<u32>) -> array<i32, 4> {
    return array<i32, 4>(one(w.x), one(w.y), one(w.z), one(w.w));
}";
const INTEGERS: &str = "fn one(w: u32) -> i64 {
    return {{low}} + i64(select(mul_wide(w, {{range_low}}).x, w, {{range_high}} != 0u));
}
fn draw(w: vec4<u32>) -> array<i64, 4> {
    return array<i64, 4>(one(w.x), one(w.y), one(w.z), one(w.w));
}";
const LONG_INTEGERS: &str = "fn one(l: u32, h: u32) -> i64 {
    let word = (u64(h) << 32u) | u64(l);
    let mask = 0xfffffffflu;
    let rl = u64({{range_low}});
    let rh = u64({{range_high}});
    let mid = (word >> 32u) * rl + (((word & mask) * rl) >> 32u);
    let mid2 = (word & mask) * rh + (mid & mask);
    let scaled = (word >> 32u) * rh + (mid >> 32u) + (mid2 >> 32u);
    return {{low}} + bitcast<i64>(select(scaled, word, rl == 0lu && rh == 0lu));
}
fn draw(w: vec4<u32>) -> array<i64, 2> {
    return array<i64, 2>(one(w.x, w.y), one(w.z, w.w));
}";
