//! Piecewise linear activations and related ones: hardtanh, relu6, hardsigmoid, hardswish, the shrinks, threshold,
//! prelu, softsign.

use super::piecewise_backward as back;
use super::smooth::{ACTIVATION, BEHIND, run};
use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapOrdered, MapReal, Ordered, Real};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::elementwise::minmax::CLAMP;
use crate::ops::support::promotion::{of_self, of_self_no_bool, real};

pub static OPS: &[&Op] = &[
    &HARDTANH,
    &NN_HARDTANH,
    &NN_RELU6,
    &HARDSIGMOID,
    &NN_HARDSIGMOID,
    &HARDSWISH,
    &NN_HARDSWISH,
    &HARDSHRINK,
    &SOFTSHRINK,
    &THRESHOLD,
    &NN_THRESHOLD,
    &THRESHOLD_OUT,
    &PRELU_KERNEL,
    &PRELU,
    &SOFTSIGN,
    &TANHSHRINK,
];

struct Clamp;
impl MapOrdered<3> for Clamp {
    #[inline(always)]
    fn eval<T: Ordered>([x, low, high]: [T; 3]) -> T {
        x.maximum(low).minimum(high)
    }
}
static BETWEEN: Rule = Rule { operands: &[0, 1, 2], loops: Loops::NONE.ordered::<3, Clamp>(), wgsl: "clamp_(x, y, z)" };

fn hardtanh_dtype(c: &Call, _: DType) -> Result<(DType, DType)> {
    match c.tensor(0)?.dtype() {
        DType::Bool => Err(Error::not_implemented("Bool inputs not supported for hardtanh")),
        d if d.is_complex() => Err(Error::not_implemented("clamp is not supported for complex types")),
        d => Ok((d, d)),
    }
}
pub static HARDTANH: Op = Op {
    sig: sig("_hardtanh(Tensor self, Scalar min_val, Scalar max_val) -> Tensor"),
    doc: "Limits each element to `[min_val, max_val]`.",
    forms: BEHIND,
    promote: Promote::By(hardtanh_dtype),
    body: elementwise(&BETWEEN),
    vjp: Vjp::Each(&[d(0, A0, |c| {
        let n = |i| Value::Scalar(c.scalar(i));
        back::HARDTANH_BACKWARD.call((c.g(), c.arg(0), n(1), n(2)))
    })]),
    samples: &["f32[2,3], -1.0, 1.0"],
    errors: &[("b8[2], 0, 1", "RuntimeError", "Bool inputs not supported for hardtanh")],
    ..ACTIVATION
};
const HARDTANH_ERRORS: &[(&str, &str, &str)] = &[("b8[2]", "RuntimeError", "Bool inputs not supported for hardtanh")];

pub static NN_HARDTANH: Op = Op {
    sig: sig(
        "nn.functional.hardtanh(Tensor input, float min_val=-1.0, float max_val=1.0, bool inplace=False) -> Tensor",
    ),
    doc: "Limits each element to `[min_val, max_val]`; the gradient at the limits is zero.",
    body: decompose(|c| {
        let (low, high) = (c.float("min_val")?, c.float("max_val")?);
        if low > high {
            return Err(Error::value("min_val cannot be greater than max_val"));
        }
        match c.tensor(0)? {
            t if t.dtype().is_int() => run(c, &CLAMP, (t, low as i64, high as i64)),
            t => run(c, &HARDTANH, (t, low, high)),
        }
    }),
    samples: &["f32[2,3]", "f32[2,3], -0.5, 0.2", "i64[4]", "i64[4], -1.5, 2.5", "u8[4]", "f32[10](special)"],
    errors: &[("f32[2], 2.0, 1.0", "ValueError", "min_val cannot be greater than max_val"), HARDTANH_ERRORS[0]],
    ..ACTIVATION
};
pub static NN_RELU6: Op = Op {
    sig: sig("nn.functional.relu6(Tensor input, bool inplace=False) -> Tensor"),
    doc: "Limits each element to `[0, 6]`.",
    body: decompose(|c| run(c, &HARDTANH, (c.tensor(0)?, 0, 6))),
    samples: &["f32[2,3]", "f64[6](big)", "i64[4]"],
    errors: HARDTANH_ERRORS,
    reference: "np.clip(x0, 0, 6)",
    ..ACTIVATION
};

struct HardSigmoid;
impl MapReal<1> for HardSigmoid {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        (x + T::from_f64(3.0)).maximum(T::zero()).minimum(T::from_f64(6.0)) / T::from_f64(6.0)
    }
}
static HARD_SIGMOID: Rule = real::<HardSigmoid>("clamp_(x + T(3), T(0), T(6)) / T(6)");
pub static HARDSIGMOID: Op = Op {
    sig: sig("_hardsigmoid(Tensor self) -> Tensor"),
    doc: "`clamp(x + 3, 0, 6) / 6`.",
    forms: BEHIND,
    body: elementwise(&HARD_SIGMOID),
    vjp: Vjp::Each(&[d(0, A0, |c| back::HARDSIGMOID_BACKWARD.call((c.g(), c.arg(0))))]),
    ..ACTIVATION
};
pub static NN_HARDSIGMOID: Op = Op {
    sig: sig("nn.functional.hardsigmoid(Tensor input, bool inplace=False) -> Tensor"),
    doc: "`clamp(x + 3, 0, 6) / 6`.",
    body: decompose(|c| run(c, &HARDSIGMOID, (c.tensor(0)?,))),
    reference: "np.clip(x0 + 3, 0, 6) / 6",
    ..ACTIVATION
};

struct HardSwish;
impl MapReal<1> for HardSwish {
    #[inline(always)]
    fn eval<T: Real>([x]: [T; 1]) -> T {
        x * (x + T::from_f64(3.0)).maximum(T::zero()).minimum(T::from_f64(6.0)) / T::from_f64(6.0)
    }
}
static HARD_SWISH: Rule = real::<HardSwish>("x * clamp_(x + T(3), T(0), T(6)) / T(6)");
pub static HARDSWISH: Op = Op {
    sig: sig("_hardswish(Tensor self) -> Tensor"),
    doc: "`x * clamp(x + 3, 0, 6) / 6`.",
    forms: BEHIND,
    body: elementwise(&HARD_SWISH),
    vjp: Vjp::Each(&[d(0, A0, |c| back::HARDSWISH_BACKWARD.call((c.g(), c.arg(0))))]),
    ..ACTIVATION
};
pub static NN_HARDSWISH: Op = Op {
    sig: sig("nn.functional.hardswish(Tensor input, bool inplace=False) -> Tensor"),
    doc: "`x * clamp(x + 3, 0, 6) / 6`. arXiv:1905.02244.",
    body: decompose(|c| run(c, &HARDSWISH, (c.tensor(0)?,))),
    reference: "x0 * np.clip(x0 + 3, 0, 6) / 6",
    ..ACTIVATION
};

struct HardShrink;
impl MapReal<2> for HardShrink {
    #[inline(always)]
    fn eval<T: Real>([x, lambda]: [T; 2]) -> T {
        if x >= -lambda && x <= lambda { T::zero() } else { x }
    }
}
static HARD_SHRINK: Rule =
    Rule { operands: &[0, 1], loops: Loops::NONE.real::<2, HardShrink>(), wgsl: "where_(le_(abs_(x), y), T(0), x)" };
fn shrink_slope(c: &VjpCtx) -> Term {
    back::SHRINK_BACKWARD.call((c.g(), c.arg(0), c.scalar("lambd")))
}
pub static HARDSHRINK: Op = Op {
    sig: sig("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor"),
    doc: "Zero where `|x| <= lambd`, else `x`.",
    aliases: &["nn.functional.hardshrink"],
    forms: FMO,
    body: elementwise(&HARD_SHRINK),
    vjp: Vjp::Each(&[d(0, A0, shrink_slope)]),
    rounds_numbers: true,
    samples: &["f32[2,3]", "f64[4], 0.8", "f32[10](special)"],
    reference: "np.where(np.abs(x0) <= lambd, 0, x0)",
    ..ACTIVATION
};

struct SoftShrink;
impl MapReal<2> for SoftShrink {
    #[inline(always)]
    fn eval<T: Real>([x, lambda]: [T; 2]) -> T {
        let inside = if x < -lambda { x + lambda } else { x * T::zero() };
        if x > lambda { x - lambda } else { inside }
    }
}
static SOFT_SHRINK: Rule = Rule {
    operands: &[0, 1],
    loops: Loops::NONE.real::<2, SoftShrink>(),
    wgsl: "where_(gt_(x, y), x - y, where_(lt_(x, -y), x + y, where_(isnan_(x), x, copysign_(T(0), x))))",
};
pub static SOFTSHRINK: Op = Op {
    sig: sig("nn.functional.softshrink(Tensor input, Scalar lambd=0.5) -> Tensor"),
    doc: "`x` moved towards zero by `lambd`, and zero where `|x| <= lambd`.",
    forms: FO,
    promote: Promote::By(|c, d| {
        let (lambda, own) = (c.float("lambd")?, c.tensor(0)?.dtype());
        if !(0.0..).contains(&lambda) {
            let most = match own {
                DType::F16 => "65504",
                DType::BF16 => "3.38953e+38",
                DType::F32 => "3.40282e+38",
                _ => "1.79769e+308",
            };
            return Err(Error::runtime(format!(
                "lambda must be in range [0, {most}] for input dtype {}, but found {lambda}",
                own.scalar_type_name()
            )));
        }
        of_self(c, d)
    }),
    body: elementwise(&SOFT_SHRINK),
    vjp: Vjp::Each(&[d(0, A0, shrink_slope)]),
    rounds_numbers: true,
    samples: &["f32[2,3]", "f64[4], 0.8", "f32[10](special)"],
    errors: &[
        ("f32[2], -1.0", "RuntimeError", "lambda must be"),
        ("i64[2]", "RuntimeError", "not implemented for 'Long'"),
    ],
    reference: "np.sign(x0) * np.maximum(np.abs(x0) - lambd, 0)",
    ..ACTIVATION
};

struct Threshold;
impl MapOrdered<3> for Threshold {
    #[inline(always)]
    fn eval<T: Ordered>([x, limit, value]: [T; 3]) -> T {
        if x <= limit { value } else { x }
    }
}
static ABOVE: Rule =
    Rule { operands: &[0, 1, 2], loops: Loops::NONE.ordered::<3, Threshold>(), wgsl: "where_(le_(x, y), z, x)" };
fn threshold_dtype(c: &Call, d: DType) -> Result<(DType, DType)> {
    let own = of_self_no_bool(c, d)?;
    c.scalar("threshold")?.check_fits(own.0)?;
    c.scalar("value")?.check_fits(own.0)?;
    Ok(own)
}
pub static THRESHOLD: Op = Op {
    sig: sig("_threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor"),
    doc: "`x` where greater than `threshold`, else `value`.",
    forms: BEHIND,
    promote: Promote::By(threshold_dtype),
    body: elementwise(&ABOVE),
    vjp: Vjp::Each(&[d(0, A0, |c| back::THRESHOLD_BACKWARD.call((c.g(), c.arg(0), c.scalar("threshold"))))]),
    samples: &["f32[2,3], 0.1, 2.0"],
    errors: &[
        ("b8[2], 0, 1", "RuntimeError", "not implemented for 'Bool'"),
        ("u8[2], 1, 300", "RuntimeError", "value cannot be converted to type uint8_t without overflow"),
    ],
    inplace_node: "ThresholdBackward1",
    keeps: Some("self threshold"),
    alias_policy: Some(AliasPolicy::UniformWrite),
    ..ACTIVATION
};
pub static NN_THRESHOLD: Op = Op {
    sig: sig("nn.functional.threshold(Tensor input, Scalar threshold, Scalar value, bool inplace=False) -> Tensor"),
    doc: "`x` where greater than `threshold`, else `value`.",
    body: decompose(|c| run(c, &THRESHOLD, (c.tensor(0)?, c.scalar("threshold")?, c.scalar("value")?))),
    samples: &["f32[2,3], 0.1, 2.0", "i64[4], 1, 7", "f32[10](special), 0, -1"],
    errors: &[("b8[2], 0, 1", "RuntimeError", "not implemented for 'Bool'")],
    reference: "np.where(x0 <= threshold, value, x0)",
    ..ACTIVATION
};

pub static THRESHOLD_OUT: Op = Op {
    sig: sig("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor"),
    doc: "`x` where greater than `threshold`, else `value`; see `nn.functional.threshold`.",
    forms: FO,
    body: decompose(|c| THRESHOLD.calls((c.tensor(0)?, c.scalar("threshold")?, c.scalar("value")?))),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], 0.1, 2.0", "i64[4], 1, 7"],
    errors: &[("b8[2], 0, 1", "RuntimeError", "not implemented for 'Bool'")],
    reference: "np.where(x0 <= threshold, value, x0)",
    ..OP
};

struct Prelu;
impl MapReal<2> for Prelu {
    #[inline(always)]
    fn eval<T: Real>([x, w]: [T; 2]) -> T {
        if x > T::zero() { x } else { x * w }
    }
}
static PRELU_OF: Rule =
    Rule { operands: &[0, 1], loops: Loops::NONE.real::<2, Prelu>(), wgsl: "where_(gt_(x, T(0)), x, x * y)" };
pub static PRELU_KERNEL: Op = Op {
    sig: sig("_prelu_kernel(Tensor self, Tensor weight) -> Tensor"),
    doc: "`x` where positive, else `weight * x`; the weight broadcasts.",
    forms: HIDDEN,
    body: elementwise(&PRELU_OF),
    vjp: Vjp::Each(&[
        d(0, A0 | A1, |c| c.tie_requires_grad(c.g().where_else(c.arg(0).greater(0), c.g() * c.arg(1)), &[0, 1])),
        d(1, A0 | A1, |c| c.tie_requires_grad((c.g() * c.arg(0)).zero_where(c.arg(0).greater(0)), &[0, 1])),
    ]),
    samples: &["f32[2,3], f32[3]"],
    errors: &[("i64[2], i64[2]", "RuntimeError", "not implemented for 'Long'")],
    ..ACTIVATION
};
pub static PRELU: Op = Op {
    sig: sig("prelu(Tensor self, Tensor weight) -> Tensor"),
    doc: "`x` where positive, else `weight * x`, with one weight or one for each channel (dimension 1). arXiv:1502.01852.",
    aliases: &["nn.functional.prelu"],
    forms: FM,
    body: decompose(prelu),
    samples: &["f32[2,3], f32[3]", "f32[2,3,2], f32[1]", "f32[2,3,2], f32[3]", "f32[4], f32[1]"],
    errors: &[
        ("f32[2,3], f32[2]", "RuntimeError", "Mismatch of parameter numbers and input channel size"),
        ("f32[2,3], f64[3]", "RuntimeError", "Type promoting not supported"),
        ("f32[2,3], f32[3,1]", "RuntimeError", "a scalar or 1D tensor"),
    ],
    ..ACTIVATION
};
fn prelu(c: &Call) -> Result<Outputs> {
    let (x, w) = (c.tensor(0)?, c.tensor("weight")?);
    if x.dtype() != w.dtype() {
        return Err(Error::runtime(format!(
            "Type promoting not supported. Got {} and {}",
            x.dtype().scalar_type_name(),
            w.dtype().scalar_type_name()
        )));
    }
    if w.ndim() > 1 {
        return Err(Error::runtime(format!(
            "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {}",
            w.ndim()
        )));
    }
    if w.numel() != 1 {
        if x.ndim() == 0 {
            return Err(Error::runtime("Not allow zero-dim input tensor."));
        }
        let channels = if x.ndim() > 1 { x.size(1) } else { 1 };
        if channels != w.numel() {
            return Err(Error::runtime(format!(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = {} and channel size = {channels}.",
                w.numel()
            )));
        }
    }
    let mut sizes: Ints = smallvec::SmallVec::from_elem(1, x.ndim().max(1));
    if x.ndim() > 1 {
        sizes[1] = w.numel() as i64;
    }
    let w = if x.ndim() == 0 || w.shape().len() == sizes.len() { Term::from(w) } else { Term::from(w).reshape(&sizes) };
    let w = if x.ndim() == 0 { w.reshape(&[]) } else { w };
    PRELU_KERNEL.calls((x, w))
}

pub static SOFTSIGN: Op = Op {
    sig: sig("nn.functional.softsign(Tensor input) -> Tensor"),
    doc: "`x / (1 + |x|)`.",
    body: decompose(|c| (Term::from(c.tensor(0)?) / (Term::from(c.tensor(0)?).abs() + 1)).outputs()),
    samples: &["f32[2,3]", "f64[4](big)", "i64[4]"],
    errors: &[("b8[2]", "RuntimeError", "not implemented for 'Bool'")],
    reference: "x0 / (1 + np.abs(x0))",
    ..ACTIVATION
};
pub static TANHSHRINK: Op = Op {
    sig: sig("nn.functional.tanhshrink(Tensor input) -> Tensor"),
    doc: "`x - tanh(x)`.",
    body: decompose(|c| (Term::from(c.tensor(0)?) - Term::from(c.tensor(0)?).tanh()).outputs()),
    samples: &["f32[2,3]", "f64[4](big)", "i64[4]"],
    errors: &[("b8[2]", "RuntimeError", "bool")],
    reference: "x0 - np.tanh(x0)",
    ..ACTIVATION
};
