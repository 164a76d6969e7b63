//! Shared by declarations of elementwise families: functions with a real and a complex formula, promotions, errors.
//!
//! `SIN` and similar ops are an `Analytic` pair of formulas; `analytic::<Sin>("sin_(x)")` makes the rule of it. The
//! promotions here are those that several ops share and `Promote` does not cover.

use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapComplex, MapReal, Real};
use crate::device::Device;
use crate::dtype::{Category, DType, Operands, c128, default_dtype};
use crate::error::{Error, Result};
use crate::gpu;
use crate::op::*;
use crate::tensor::Tensor;

/// A function of one number, real or complex.
pub trait Analytic {
    /// The largest argument for which the vector formula is accurate; beyond it libm is used.
    const LIMIT: f64 = f64::INFINITY;
    fn real<T: Real>(x: T) -> T;
    fn complex(x: c128) -> c128;
}

/// The rule of an `Analytic`.
pub struct Of<F>(F);

impl<F: Analytic> MapReal<1> for Of<F> {
    const CHECKED: bool = F::LIMIT < f64::INFINITY;
    #[inline(always)]
    fn ordinary<T: Real>([x]: [T; 1]) -> bool {
        let beyond = x.abs() > T::from_f64(F::LIMIT);
        !beyond
    }
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        F::real(x)
    }
}
impl<F: Analytic> MapComplex<1> for Of<F> {
    fn eval([x]: [c128; 1]) -> c128 {
        F::complex(x)
    }
}

/// A function of one number, real and complex.
pub const fn analytic<F: Analytic>(wgsl: &'static str) -> Rule {
    Rule { operands: &[0], loops: Loops::NONE.real::<1, Of<F>>().complex::<1, Of<F>>(), wgsl }
}
/// A function of one real number.
pub const fn real<R: MapReal<1>>(wgsl: &'static str) -> Rule {
    Rule { operands: &[0], loops: Loops::NONE.real::<1, R>(), wgsl }
}
/// A function of two real numbers.
pub const fn real2<R: MapReal<2>>(wgsl: &'static str) -> Rule {
    Rule { operands: &[0, 1], loops: Loops::NONE.real::<2, R>(), wgsl }
}

/// A function of f64 as a rule: computes in f64 for every dtype.
pub struct Wide<F>(F);

impl<F: Copy + 'static> Wide<F> {
    /// The function itself, recreated from its zero-sized type.
    fn function() -> F {
        const { assert!(size_of::<F>() == 0) };
        // SAFETY: `F` has no bytes, is `Copy`, and has a value: `wide` and its kin were given one.
        unsafe { std::mem::transmute_copy(&()) }
    }
}
impl<F: Fn(f64) -> f64 + Copy + 'static> MapReal<1> for Wide<F> {
    fn eval<T: Real>([x]: [T; 1]) -> T {
        T::from_f64(Wide::<F>::function()(x.to_f64()))
    }
}
impl<F: Fn(f64, f64) -> f64 + Copy + 'static> MapReal<2> for Wide<F> {
    fn eval<T: Real>([x, y]: [T; 2]) -> T {
        T::from_f64(Wide::<F>::function()(x.to_f64(), y.to_f64()))
    }
}
impl<F: Fn(f64, f64, f64) -> f64 + Copy + 'static> MapReal<3> for Wide<F> {
    fn eval<T: Real>([x, y, z]: [T; 3]) -> T {
        T::from_f64(Wide::<F>::function()(x.to_f64(), y.to_f64(), z.to_f64()))
    }
}
pub const fn wide<F: Fn(f64) -> f64 + Copy + 'static>(_: F, wgsl: &'static str) -> Rule {
    Rule { operands: &[0], loops: Loops::NONE.real::<1, Wide<F>>(), wgsl }
}
pub const fn wide3<F: Fn(f64, f64, f64) -> f64 + Copy + 'static>(_: F, wgsl: &'static str) -> Rule {
    Rule { operands: &[0, 1, 2], loops: Loops::NONE.real::<3, Wide<F>>(), wgsl }
}
pub const fn wide2<F: Fn(f64, f64) -> f64 + Copy + 'static>(_: F, wgsl: &'static str) -> Rule {
    Rule { operands: &[0, 1], loops: Loops::NONE.real::<2, Wide<F>>(), wgsl }
}

const NOT_A_TENSOR: (&str, &str, &str) = ("'a'", "TypeError", "must be Tensor");

/// Functions of one number that give floats: integers become the default float dtype.
pub const FLOAT_UNARY: Op = Op {
    forms: FMIO,
    promote: Promote::Float,
    samples: &["f32[2,3]", "f64[3]", "i64[4]", "c64[3]"],
    errors: &[NOT_A_TENSOR],
    ..OP
};

/// Functions of one number that keep the dtype.
pub const UNARY: Op = Op { forms: FMIO, samples: &["f32[2,3]", "i64[4]"], errors: &[NOT_A_TENSOR], ..OP };

/// Functions of two tensors that keep the dtype.
pub const BINARY: Op = Op {
    forms: FMIO,
    samples: &["f32[2,3], f32[2,3]", "f32[2,3], f32[3]", "f64[2,1], f64[1,2]"],
    errors: &[("f32[2,3], f32[4]", "RuntimeError", "must match the size")],
    ..OP
};

/// The gradient of a piecewise constant function.
pub const FLAT: Vjp = Vjp::Zero(&[0]);

#[cold]
pub fn refused(c: &Call, dtype: DType) -> Error {
    let device = c.device_of_args().kind();
    Error::not_implemented(format!(
        "\"{}_{device}\" not implemented for '{}'",
        c.op.base().trim_start_matches('_'),
        dtype.scalar_type_name()
    ))
}

/// The error of a dtype for which PyTorch's kernel of this name does not exist.
pub fn no_kernel(name: &str, d: DType) -> Error {
    Error::not_implemented(format!("\"{name}\" not implemented for '{}'", d.scalar_type_name()))
}

/// The common dtype, which must not be bool.
pub fn no_bool(c: &Call, common: DType) -> Result<(DType, DType)> {
    if common == DType::Bool { Err(refused(c, common)) } else { Ok((common, common)) }
}

/// Floats of at least 32 bits; integers become the default float dtype.
pub fn full_float(c: &Call, common: DType) -> Result<(DType, DType)> {
    match common {
        DType::F32 | DType::F64 => Ok((common, common)),
        d if d.is_differentiable() => Err(refused(c, common)),
        _ => Ok((default_dtype(), default_dtype())),
    }
}

/// The dtype of the first argument: numbers next to it do not promote.
pub fn of_self(c: &Call, _: DType) -> Result<(DType, DType)> {
    let d = c.tensor(0)?.dtype();
    Ok((d, d))
}

/// `of_self` without bool.
pub fn of_self_no_bool(c: &Call, _: DType) -> Result<(DType, DType)> {
    no_bool(c, c.tensor(0)?.dtype())
}

/// The promoted dtype of the tensors only: numbers next to them do not promote.
pub fn of_tensors(c: &Call, _: DType) -> Result<(DType, DType)> {
    let mut ops = Operands::default();
    c.all_tensors().try_for_each(|t| ops.tensor(t.dtype(), t.ndim()))?;
    let d = ops.result().ok_or_else(|| Error::internal("no tensor among the arguments"))?;
    Ok((d, d))
}

/// The common dtype of arguments that must be of one dtype, as in PyTorch.
pub fn same_dtype(c: &Call, names: &[&str]) -> Result<(DType, DType)> {
    let d = c.tensor(0)?.dtype();
    for &name in names {
        if let Some(t) = c.opt_tensor(name).filter(|t| t.dtype() != d) {
            return Err(Error::runtime(format!(
                "expected dtype {} for `{name}` but got dtype {}",
                d.cpp_name(),
                t.dtype().cpp_name()
            )));
        }
    }
    Ok((d, d))
}

/// For integer division: no bool.
pub fn divisible(c: &Call, common: DType) -> Result<(DType, DType)> {
    no_bool(c, common)?;
    Ok((common, common))
}

/// No zero in argument 1 of a division of integers. The GPU looks too, and says so when the host waits.
pub fn check_divisor(c: &Call, common: DType) -> Result<()> {
    if common.category() == Category::Int {
        let zero = match &c.args[1] {
            Value::Scalar(s) => s.to_i64() == 0,
            v => v.as_tensor().map(has_zero).transpose()?.unwrap_or(false),
        };
        if zero {
            return Err(Error::runtime("ZeroDivisionError"));
        }
    }
    Ok(())
}

fn has_zero(t: &Tensor) -> Result<bool> {
    if t.numel() == 0 {
        return Ok(false);
    }
    if t.device() != Device::Cpu {
        if gpu::supports(t.device(), t.dtype()) {
            gpu::refuse_where(&t.gpu_view()?, gpu::Refusal::DivisionByZero)?;
        }
        return Ok(false);
    }
    Ok(super::host_read::Dense::<i64>::of(t)?.elements()?.contains(&0))
}

/// PyTorch's error for a gradient without a formula.
pub fn no_formula(what: &str) -> Term {
    Error::not_implemented(format!("the derivative for '{what}' is not implemented.")).into()
}
