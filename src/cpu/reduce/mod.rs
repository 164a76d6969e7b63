//! Reductions over any set of dimensions: one driver, small rules, one switch between them.
//!
//! Sums, means and products are computed in the dtype of `out` (half types in f32, integers in i64), maxima in the
//! input's; conversion happens on the fly, so a sum of bools into int64 needs no temporary tensor.

pub mod driver;
pub(crate) mod loop_nest;
pub mod reducer;
pub mod reducers;
mod columns;
mod rows;
#[cfg(test)]
mod tests;

use self::driver::run;
use self::reducer::Lanes;
use self::reducers::*;
use super::view::{View, ensure};
use crate::dtype::{DType, Truth, c64, c128};
use crate::error::{Error, Result};
pub use crate::kinds::Reduce;

/// Reduces `input` over `dims` into `out`, whose shape is the input's with the reduced dimensions of size one.
pub fn reduce(kind: Reduce, input: View, dims: &[usize], out: View) -> Result<()> {
    ensure(input.reduces_to(|d| dims.contains(&d), &out) && out.is_apart(&input), "reduction")?;
    // SAFETY: the result has a place for each set of elements that is reduced, and lies apart.
    unsafe {
        match kind {
            // For bools a sum is "any" and a product is "all".
            Reduce::Any => truth(Lanes(Any), input, dims, out),
            Reduce::All => truth(Lanes(All), input, dims, out),
            Reduce::Sum if out.dtype == DType::Bool => truth(Lanes(Any), input, dims, out),
            Reduce::Prod if out.dtype == DType::Bool => truth(Lanes(All), input, dims, out),
            Reduce::Sum => arithmetic(Lanes(Sum { mean: false }), input, dims, out),
            Reduce::Mean => arithmetic(Lanes(Sum { mean: true }), input, dims, out),
            Reduce::Prod => arithmetic(Lanes(Prod), input, dims, out),
            Reduce::Max => ordered(Lanes(Max), input, dims, out),
            Reduce::Min => ordered(Lanes(Min), input, dims, out),
            Reduce::Norm(p) => norm(p, input, dims, out),
            Reduce::LogSumExp => log_sum_exp(input, dims, out),
        }
    }
}

unsafe fn truth<R: reducer::Reducer<Truth>>(rule: R, input: View, dims: &[usize], out: View) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { run::<Truth, R>(rule, input, &|d| dims.contains(&d), out) }
}

/// A rule for every type in which sums are computed.
trait Arithmetic:
    reducer::Reducer<f32> + reducer::Reducer<f64> + reducer::Reducer<i64> + reducer::Reducer<c64> + reducer::Reducer<c128>
{
}
impl<
    R: reducer::Reducer<f32>
        + reducer::Reducer<f64>
        + reducer::Reducer<i64>
        + reducer::Reducer<c64>
        + reducer::Reducer<c128>,
> Arithmetic for R
{
}

unsafe fn arithmetic<R: Arithmetic>(rule: R, input: View, dims: &[usize], out: View) -> Result<()> {
    let reduced = |d: usize| dims.contains(&d);
    // SAFETY: the caller's promise.
    unsafe {
        match out.dtype {
            DType::F64 => run::<f64, R>(rule, input, &reduced, out),
            d if d.is_float() => run::<f32, R>(rule, input, &reduced, out),
            DType::C32 | DType::C64 => run::<c64, R>(rule, input, &reduced, out),
            DType::C128 => run::<c128, R>(rule, input, &reduced, out),
            _ => run::<i64, R>(rule, input, &reduced, out),
        }
    }
}

/// A rule for every type in which elements are compared.
trait Comparing:
    reducer::Reducer<f32> + reducer::Reducer<f64> + reducer::Reducer<i64> + reducer::Reducer<i32> + reducer::Reducer<u8>
{
}
impl<
    R: reducer::Reducer<f32>
        + reducer::Reducer<f64>
        + reducer::Reducer<i64>
        + reducer::Reducer<i32>
        + reducer::Reducer<u8>,
> Comparing for R
{
}

unsafe fn ordered<R: Comparing>(rule: R, input: View, dims: &[usize], out: View) -> Result<()> {
    let reduced = |d: usize| dims.contains(&d);
    // SAFETY: the caller's promise.
    unsafe {
        match input.dtype {
            d if d.is_complex() => Err(Error::runtime("max and min are not defined for complex numbers")),
            DType::U64 => Err(Error::not_implemented("not implemented for 'UInt64'; convert the tensor")),
            DType::F64 => run::<f64, R>(rule, input, &reduced, out),
            d if d.is_float() => run::<f32, R>(rule, input, &reduced, out),
            DType::I8 | DType::I16 | DType::I32 | DType::U16 => run::<i32, R>(rule, input, &reduced, out),
            DType::U8 | DType::Bool => run::<u8, R>(rule, input, &reduced, out),
            _ => run::<i64, R>(rule, input, &reduced, out),
        }
    }
}

unsafe fn norm(p: f64, input: View, dims: &[usize], out: View) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        match p {
            0.0 => magnitude(Lanes(Norm0), input, dims, out),
            1.0 => magnitude(Lanes(Norm1), input, dims, out),
            2.0 => magnitude(Lanes(Norm2 { root: true }), input, dims, out),
            f64::INFINITY => magnitude(Lanes(NormInf { max: true }), input, dims, out),
            f64::NEG_INFINITY => magnitude(Lanes(NormInf { max: false }), input, dims, out),
            p => magnitude(Lanes(NormP { p }), input, dims, out),
        }
    }
}

/// A rule for real and complex floats.
trait Measuring: reducer::Reducer<f32> + reducer::Reducer<f64> + reducer::Reducer<c64> + reducer::Reducer<c128> {}
impl<R: reducer::Reducer<f32> + reducer::Reducer<f64> + reducer::Reducer<c64> + reducer::Reducer<c128>> Measuring
    for R
{
}

unsafe fn magnitude<R: Measuring>(rule: R, input: View, dims: &[usize], out: View) -> Result<()> {
    let reduced = |d: usize| dims.contains(&d);
    let wide = out.dtype.to_real() == DType::F64;
    // SAFETY: the caller's promise.
    unsafe {
        match (input.dtype.is_complex(), wide) {
            (true, true) => run::<c128, R>(rule, input, &reduced, out),
            (true, false) => run::<c64, R>(rule, input, &reduced, out),
            (false, true) => run::<f64, R>(rule, input, &reduced, out),
            (false, false) => run::<f32, R>(rule, input, &reduced, out),
        }
    }
}

unsafe fn log_sum_exp(input: View, dims: &[usize], out: View) -> Result<()> {
    let reduced = |d: usize| dims.contains(&d);
    // SAFETY: the caller's promise.
    unsafe {
        match out.dtype {
            DType::F64 => run::<f64, _>(LogSumExp, input, &reduced, out),
            d if d.is_float() => run::<f32, _>(LogSumExp, input, &reduced, out),
            d => Err(Error::runtime(format!("logsumexp is not defined for {d}"))),
        }
    }
}
