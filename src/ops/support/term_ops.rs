//! Operators on terms, shared helpers of formulas, and the ops that the engine needs.

use super::host_read::item;
use crate::autograd::EngineOps;
use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::op::gradient::TensorMeta;
use crate::op::number::{self, Number, Question};
use crate::op::tracer;
use crate::op::{IntoArg, Ints, Term, Value, VjpCtx};
use crate::ops::elementwise::{arith, compare};
use crate::ops::movement::copy;
use crate::ops::reduce::sum_prod;
use crate::ops::view::reshape;
use crate::tensor::Tensor;
use std::ops::{Add, Div, Mul, Neg, Sub};

impl<'a, R: IntoArg<'a>> Add<R> for Term {
    type Output = Term;
    fn add(self, r: R) -> Term {
        arith::ADD.call((self, r))
    }
}
impl<'a, R: IntoArg<'a>> Sub<R> for Term {
    type Output = Term;
    fn sub(self, r: R) -> Term {
        arith::SUB.call((self, r))
    }
}
impl<'a, R: IntoArg<'a>> Mul<R> for Term {
    type Output = Term;
    fn mul(self, r: R) -> Term {
        arith::MUL.call((self, r))
    }
}
impl<'a, R: IntoArg<'a>> Div<R> for Term {
    type Output = Term;
    fn div(self, r: R) -> Term {
        arith::DIV.call((self, r))
    }
}
impl Neg for Term {
    type Output = Term;
    fn neg(self) -> Term {
        arith::NEG.call((self,))
    }
}
impl Sub<Term> for f64 {
    type Output = Term;
    fn sub(self, r: Term) -> Term {
        arith::RSUB.call((r, self))
    }
}
impl Mul<Term> for f64 {
    type Output = Term;
    fn mul(self, r: Term) -> Term {
        arith::MUL.call((r, self))
    }
}
impl Add<Term> for f64 {
    type Output = Term;
    fn add(self, r: Term) -> Term {
        arith::ADD.call((r, self))
    }
}

impl VjpCtx<'_> {
    /// The gradient times the conjugate of the number in argument `i`; the gradient itself if the number is one.
    pub fn g_times(&self, i: usize) -> Term {
        let number = if tracer::enabled() { number::of_formula(i) } else { None };
        if let (Some(n), Value::Scalar(s)) = (number, &self.call.args[i]) {
            return self.g_times_number(n, *s);
        }
        match &self.call.args[i] {
            Value::Scalar(s) if s.is_one() => self.g(),
            Value::Scalar(crate::dtype::Scalar::Complex(re, im)) => {
                self.g() * Value::Scalar(crate::dtype::Scalar::Complex(*re, -im))
            }
            Value::Scalar(s) => self.g() * Value::Scalar(*s),
            _ => self.g() * self.arg(i).conj(),
        }
    }
    /// The same for a number of a recorded function, which sees what was asked of it.
    #[cold]
    fn g_times_number(&self, n: Number, s: Scalar) -> Term {
        let one = Number::Constant(Scalar::Float(1.0));
        number::ask(Question::Compare(2, n.clone(), one), s.is_one());
        let g = self.g();
        if s.is_one() {
            return g;
        }
        number::pass(1, n, s);
        g * Value::Scalar(s)
    }
    /// Zeros in the shape of argument `i`.
    pub fn zeros(&self, i: usize) -> Term {
        zeros(&self.meta_of(i))
    }
    /// VJP of any view: writes the gradient into zeros of the input's shape through the same view.
    pub fn unview(&self) -> Term {
        let f = self.meta_of(0);
        let whole = match crate::ops::create::full::ZEROS.call((f.shape.as_slice(), f.dtype, f.device)).ok() {
            Ok(t) => t,
            Err(e) => return Term(Err(e)),
        };
        let mut args: crate::op::Args = self.call.args.iter().map(|v| v.reborrow()).collect();
        args[0] = Value::Tensor(&whole);
        let written = self.call.op.calls(args).and_then(|parts| {
            for (part, g) in parts.iter().zip(self.grads) {
                if let Some(g) = g {
                    copy::COPY_.call_inplace((part, g))?;
                }
            }
            Ok(())
        });
        Term(written.map(|()| whole))
    }
}

impl Term {
    /// A number that a formula reads as a tensor: 0-d on the CPU, so that it neither promotes nor needs the device.
    pub fn number(s: Scalar) -> Term {
        let dtype = if matches!(s, Scalar::Complex(..)) { DType::C128 } else { DType::F64 };
        crate::ops::create::like::SCALAR_TENSOR.call((s, dtype, Device::Cpu))
    }
    pub fn like_real(self, dtype: DType) -> Term {
        if dtype.is_complex() { self } else { self.real_part() }
    }
}

/// Dimensions of `shape` that broadcasting from `from` added or expanded.
fn stretched(from: &[usize], shape: &[usize]) -> Ints {
    let lead = from.len() - shape.len();
    (0..from.len()).filter(|&i| i < lead || (shape[i - lead] == 1 && from[i] != 1)).map(|i| i as i64).collect()
}

/// Sums `t` over the dimensions that broadcasting created, so that it has `shape`.
pub fn sum_to(t: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let dims = stretched(t.shape(), shape);
    let summed = if dims.is_empty() { t.clone() } else { sum_prod::SUM_DIM.call((t, dims, true)).ok()? };
    if summed.shape() == shape { Ok(summed) } else { reshape::RESHAPE.call((&summed, shape)).ok() }
}

fn has_nan(t: &Tensor) -> Result<bool> {
    if !t.dtype().is_differentiable() {
        return Ok(false);
    }
    Ok(item(&crate::ops::reduce::any_all::ANY.call((compare::ISNAN.call((t,)),)).ok()?)?.to_bool())
}

fn zeros(like: &TensorMeta) -> Term {
    crate::ops::create::full::ZEROS.call((like.shape.as_slice(), like.dtype, like.device))
}

static ENGINE_OPS: EngineOps = EngineOps {
    add: |a, b| arith::ADD.call((a, b)).ok(),
    add_: |a, b| arith::ADD.call_inplace((a, b)).map(drop),
    sum_to,
    expand: |t, shape| reshape::EXPAND.call((t, shape)).ok(),
    cast: |t, d| copy::TO_COPY.call((t, d)).ok(),
    real: |t| copy::REAL.call((t,)).ok(),
    clone: |t| copy::CLONE.call((t,)).ok(),
    packed: |t| Term::from(t).packed().ok(),
    zeros: |f| zeros(f).ok(),
    empty: |layout, like| {
        let (shape, strides) = (layout.shape.as_slice(), layout.strides.as_slice());
        crate::ops::create::like::EMPTY_STRIDED.call((shape, strides, like.dtype(), like.device())).ok()
    },
    has_nan,
    copy_: |t, src| copy::COPY_.call_inplace((t, src)).map(drop),
    zero_: |t| copy::FILL_.call_inplace((t, 0)).map(drop),
    copy_op: &copy::COPY_,
    as_strided: &crate::ops::view::as_strided::AS_STRIDED_VIEW,
};

// The definition of the function declared in `autograd`.
#[unsafe(no_mangle)]
fn rustgrad_engine_ops() -> &'static EngineOps {
    &ENGINE_OPS
}
