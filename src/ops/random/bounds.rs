//! Bounds of random numbers by dtype: an error for bounds that it cannot hold, a warning for those it holds inexactly.

use super::distributions::Draw;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::support::promotion::no_kernel;

/// The largest integer up to which a dtype holds all integers.
pub(crate) fn last_whole(d: DType) -> i64 {
    match d {
        DType::Bool => 1,
        DType::U8 => u8::MAX as i64,
        DType::I8 => i8::MAX as i64,
        DType::I16 => i16::MAX as i64,
        DType::U16 => u16::MAX as i64,
        DType::I32 => i32::MAX as i64,
        DType::U32 => u32::MAX as i64,
        DType::F16 | DType::C32 => 1 << 11,
        DType::BF16 => 1 << 8,
        DType::F8E4M3FN | DType::F8E4M3FNUZ => 1 << 4,
        DType::F8E5M2 | DType::F8E5M2FNUZ => 1 << 3,
        DType::F8E8M0FNU => 2,
        DType::F32 | DType::C64 => 1 << 24,
        DType::F64 | DType::C128 => 1 << 53,
        DType::I64 | DType::U64 => i64::MAX,
    }
}

/// The smallest integer that a dtype holds.
fn first_whole(d: DType) -> i64 {
    match d {
        DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64 => 0,
        d => (-1i64).saturating_sub(last_whole(d)),
    }
}

fn holds(d: DType, x: i64) -> bool {
    match d.is_float() {
        true => (x as f64).abs() <= d.greatest_float(),
        false => (first_whole(d)..=last_whole(d)).contains(&x),
    }
}

/// Draws of integers in `[low, high)`, which must not be empty, for a dtype.
pub(crate) fn integers(low: i64, high: i64, d: DType) -> Result<Draw> {
    if low >= high {
        return Err(Error::runtime(format!(
            "random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )));
    }
    if d.is_complex() {
        return Err(Error::runtime("check_random_bounds handles only integral, floating-point and boolean types"));
    }
    match [(low, "from"), (high - 1, "to - 1")].into_iter().find(|&(x, _)| !holds(d, x)) {
        Some((_, name)) => Err(Error::runtime(format!("{name} is out of bounds for {}", d.cpp_name()))),
        // As PyTorch: from 2^28 on, the remainder of one word would favour small numbers too much.
        None => Ok(Draw::Int { low, high, long: high.wrapping_sub(low) as u64 >= 1 << 28 }),
    }
}

/// The warning of a call whose integers in `[low, high)` are not all representable in a float dtype.
pub(crate) fn doubt(low: i64, high: i64, d: DType) -> Option<String> {
    let last = last_whole(d);
    if !d.is_float() || integers(low, high, d).is_err() {
        return None;
    }
    let (_, name) = [(low, "from"), (high - 1, "to - 1")].into_iter().find(|(x, _)| !(-last..=last).contains(x))?;
    let bits = last.ilog2();
    Some(format!(
        "{name} is out of bounds [-(2^{bits}), 2^{bits}]. Due to precision limitations {} can support discrete uniform \
         distribution only within this range. This warning will become an error in version 1.7 release, please fix the code in \
         advance",
        d.cpp_name()
    ))
}

/// The same for an op whose bounds are its arguments `at` (from zero without a second one).
pub(crate) fn doubt_of(c: &Call, at: &[usize], d: DType) -> Option<String> {
    match *at {
        [high] => doubt(0, c.int(high).ok()?, d),
        [low, high] => doubt(c.int(low).ok()?, c.int(high).ok()?, d),
        _ => None,
    }
}

/// Draws of real numbers between two bounds, whose difference the dtype must hold too.
pub(crate) fn reals(from: f64, to: f64, d: DType) -> Result<Draw> {
    let most = d.greatest_float();
    let beyond = |x: f64| x.is_nan() || x.abs() > most;
    if let Some((_, name)) = [(from, "from"), (to, "to")].into_iter().find(|&(x, _)| beyond(x)) {
        return Err(Error::runtime(format!("{name} is out of bounds for {}", d.to_real().cpp_name())));
    }
    let (shown_from, shown_to) = (short(from), short(to));
    if from > to {
        return Err(Error::runtime(format!(
            "uniform_ expects to return a [from, to) range, but found from={shown_from} > to={shown_to}"
        )));
    }
    if to - from > most {
        return Err(Error::runtime(format!(
            "uniform_ expects to-from <= std::numeric_limits<{}>::max(), but found to={shown_to} and from={shown_from} which \
             result in to-from to exceed the limit",
            d.to_real().scalar_type_name()
        )));
    }
    Ok(Draw::Uniform { from, to })
}

/// Checks that a dtype can represent `n` distinct integers from zero on.
pub(crate) fn permutation(n: i64, d: DType) -> Result<()> {
    if d == DType::Bool || d.is_complex() {
        return Err(no_kernel("randperm", d));
    }
    let last = last_whole(d);
    if n.saturating_sub(1) <= last {
        return Ok(());
    }
    if !d.is_float() {
        return Err(Error::runtime(format!("value cannot be converted to type {} without overflow", d.c10_name())));
    }
    let most = if last < 1 << 20 { (last + 1).to_string() } else { format!("2^{}+1", last.ilog2()) };
    Err(Error::runtime(format!("n cannot be greater than {most} for {} type.", d.scalar_type_name())))
}

/// Six digits, as C++ prints numbers.
fn short(x: f64) -> String {
    let text = format!("{x:.5e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let trimmed = |s: &str| match s.contains('.') {
        true => s.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => s.to_string(),
    };
    match exponent.parse::<i32>() {
        Ok(e @ -4..=5) => trimmed(&format!("{x:.*}", (5 - e) as usize)),
        Ok(e) => format!("{}e{}{:02}", trimmed(digits), if e < 0 { '-' } else { '+' }, e.abs()),
        Err(_) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_by_cpp() {
        for (x, text) in [
            (3.0, "3"),
            (0.5, "0.5"),
            (-1.7e308, "-1.7e+308"),
            (3e38, "3e+38"),
            (60000.0, "60000"),
            (1234567.0, "1.23457e+06"),
            (0.0, "0"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
        ] {
            assert_eq!(short(x), text);
        }
    }

    #[test]
    fn bounds_are_those_of_the_dtype() {
        for (d, first, last) in
            [(DType::Bool, 0, 1), (DType::I8, -128, 127), (DType::U16, 0, 65535), (DType::I64, i64::MIN, i64::MAX - 1)]
        {
            assert!(integers(first, last + 1, d).is_ok(), "{d}");
            assert!(d == DType::I64 || integers(first, last + 2, d).is_err(), "{d}");
            assert!(d == DType::I64 || integers(first - 1, last, d).is_err(), "{d}");
        }
        assert!(doubt(0, (1 << 24) + 1, DType::F32).is_none() && doubt(0, (1 << 24) + 2, DType::F32).is_some());
    }
}
