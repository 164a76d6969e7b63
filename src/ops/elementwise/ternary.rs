//! Selection and interpolation: where, lerp, addcmul, addcdiv, nan_to_num.

use crate::cpu::complex;
use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapComplex, MapNum, MapOrdered, MapReal, Num, Ordered, Real};
use crate::dtype::{Category, DType, Operands, Scalar, c128};
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::indexing::mask::{NONZERO, positions};
use crate::ops::support::promotion::{BINARY, of_self, of_tensors, refused, same_dtype};
use crate::ops::view::split::UNBIND;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[
    &WHERE,
    &WHERE_INDICES,
    &NONZERO_STATIC,
    &WHERE_METHOD,
    &LERP,
    &LERP_SCALAR,
    &ADDCMUL,
    &ADDCDIV,
    &NAN_TO_NUM,
    &FINITE,
];

struct Choose;
impl MapNum<3> for Choose {
    #[inline(always)]
    fn eval<T: Num>([c, x, y]: [T; 3]) -> T {
        if c.truth() { x } else { y }
    }
}
static CHOOSE: Rule = Rule { operands: &[0, 1, 2], loops: Loops::NONE.num::<3, Choose>(), wgsl: "where_(x, y, z)" };

/// The promoted dtype of the two values; the condition does not promote.
fn choices(c: &Call, _: DType) -> Result<(DType, DType)> {
    let condition = c.tensor("condition")?.dtype();
    if !matches!(condition, DType::Bool | DType::U8) {
        return Err(Error::runtime(format!(
            "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
            condition.scalar_type_name()
        )));
    }
    let mut ops = Operands::default();
    for v in &c.args[1..3] {
        match v {
            Value::Scalar(s) => ops.scalar(*s),
            v => v.tensors().try_for_each(|t| ops.tensor(t.dtype(), t.ndim()))?,
        }
    }
    let d = ops.result().ok_or_else(|| Error::internal("where: nothing to choose from"))?;
    Ok((d, d))
}

pub static WHERE: Op = Op {
    sig: sig("where(Tensor condition, Operand self, Operand other) -> Tensor"),
    doc: "`self` where the condition holds, else `other`. All three broadcast.",
    forms: FO,
    promote: Promote::By(choices),
    body: elementwise(&CHOOSE),
    warns_once: true,
    warns: Some(|c| {
        c.opt_tensor("condition").is_some_and(|t| t.dtype() == DType::U8).then(|| {
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version of \
             PyTorch. Use a boolean condition instead."
                .into()
        })
    }),
    vjp: Vjp::Each(&[d(1, A0, |c| c.g().zero_where(c.arg(0).not())), d(2, A0, |c| c.g().zero_where(c.arg(0)))]),
    samples: &[
        "b8[2,3], f32[2,3], f32[2,3]",
        "b8[3], f32[2,3], 0.0",
        "b8[2,1], 1.5, f32[3]",
        "b8[4], i64[4], f32[4]",
        "b8[3], 1, 2",
        "b8[3], c64[3], c64[3]",
    ],
    errors: &[
        ("f32[2], f32[2], f32[2]", "RuntimeError", "expected condition to be a boolean tensor"),
        ("b8[2], f32[3], f32[3]", "RuntimeError", "must match the size"),
    ],
    reference: "np.where(x0, x1, x2)",
    out_dtype: Some(OutDType::Same),
    ..OP
};

pub static WHERE_INDICES: Op = Op {
    sig: sig("where.indices(Tensor condition) -> Tensor[]"),
    doc: "Where the condition holds: one tensor of indices for each dimension.",
    forms: F,
    body: decompose(|c| {
        let t = c.tensor("condition")?;
        // A single element counts as one dimension.
        let t = if t.ndim() == 0 { Term::from(t).unsqueeze(0) } else { Term::from(t) };
        UNBIND.calls((NONZERO.call((t,)), 1))
    }),
    vjp: Vjp::None("indices are whole numbers"),
    samples: &["b8[2,3]", "f32[4](ties)"],
    errors: &[("'a'", "TypeError", "invalid combination")],
    reference: "[i for i in np.nonzero(x0)]",
    ..OP
};

pub static NONZERO_STATIC: Op = Op {
    sig: sig("nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor"),
    doc: "The first `size` rows of `nonzero`; where there are fewer, `fill_value` fills the rest.",
    forms: FMO,
    body: factory(
        |c| {
            let (t, size) = (c.tensor(0)?, c.int("size")?);
            if size < 0 {
                return Err(Error::runtime("nonzero_static: 'size' must be an non-negative integer"));
            }
            Ok(Spec::one(&[size as usize, t.ndim()], DType::I64, t.device()))
        },
        |c, out| {
            let (found, rows) = (positions(c.tensor(0)?)?, &out[0]);
            rows.fill_raw(Scalar::Int(c.int("fill_value")?))?;
            let first = |t: &Tensor| t.with_layout(t.layout().slice(0, (0, found.size(0).min(rows.size(0)), 1)));
            first(rows).copy_raw(&first(&found))
        },
    ),
    vjp: Vjp::None("indices"),
    samples: &[
        "f32[2,3](ties), size=3",
        "b8[4], size=9, fill_value=7",
        "f32[], size=2",
        "f32[0,3], size=2",
        "i64[3], size=0",
    ],
    errors: &[("f32[2], size=-1", "RuntimeError", "must be an non-negative integer")],
    out_dtype: Some(OutDType::Same),
    ..OP
};

pub static WHERE_METHOD: Op = Op {
    sig: sig("where.method(Tensor self, Tensor condition, Operand other) -> Tensor"),
    doc: "`self` where the condition holds, else `other`.",
    forms: M,
    body: decompose(|c| WHERE.calls((c.tensor("condition")?, c.tensor(0)?, c.argument("other").reborrow()))),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], b8[2,3], f32[2,3]", "f32[2,3], b8[3], 0.0"],
    errors: &[("f32[2], f32[2], f32[2]", "RuntimeError", "expected condition to be a boolean tensor")],
    reference: "np.where(x1, x0, x2)",
    ..OP
};

struct Lerp;
impl MapReal<3> for Lerp {
    /// From the nearer end, so that weight 1 gives exactly `end`.
    #[inline(always)]
    fn eval<T: Real>([x, y, w]: [T; 3]) -> T {
        let span = y - x;
        if w.abs() < T::from_f64(0.5) { w.mul_add(span, x) } else { y - span * (T::one() - w) }
    }
}
impl MapComplex<3> for Lerp {
    fn eval([x, y, w]: [c128; 3]) -> c128 {
        if w.norm() < 0.5 { x + w * (y - x) } else { y - (y - x) * (c128::new(1.0, 0.0) - w) }
    }
}
static LERPED: Rule =
    Rule { operands: &[0, 1, 2], loops: Loops::NONE.real::<3, Lerp>().complex::<3, Lerp>(), wgsl: "lerp_(x, y, z)" };

pub static LERP: Op = Op {
    sig: sig("lerp(Tensor self, Tensor end, Tensor weight) -> Tensor"),
    doc: "`self + weight * (end - self)`, element by element.",
    promote: Promote::By(|c, common| {
        // A weight without dimensions promotes as a number does.
        let weight: &[&str] = if c.tensor("weight")?.ndim() == 0 { &["end"] } else { &["end", "weight"] };
        same_dtype(c, weight)?;
        Ok((common, common))
    }),
    body: elementwise(&LERPED),
    vjp: Vjp::Each(&[
        d(0, A2, |c| c.g() * (1.0 - c.arg(2)).conj()),
        d(1, A2, |c| c.g() * c.arg(2).conj()),
        d(2, A0 | A1, |c| c.g() * (c.arg(1) - c.arg(0)).conj()),
    ]),
    node: "LerpBackward1",
    samples: &["f32[2,3], f32[2,3], f32[2,3](unit)", "f32[2,3], f32[3], f32[1](unit)", "c64[3], c64[3], c64[3]"],
    errors: &[
        ("f32[2], i64[2], f32[2]", "RuntimeError", "expected dtype float for `end`"),
        ("f32[2], f32[2], i64[2]", "RuntimeError", "expected dtype float for `weight`"),
        ("i64[2], i64[2], i64[2]", "RuntimeError", "not implemented for 'Long'"),
    ],
    reference: "np.where(np.abs(x2) < 0.5, x0 + x2 * (x1 - x0), x1 - (x1 - x0) * (1 - x2))",
    out_dtype: Some(OutDType::Same),
    ..BINARY
};
pub static LERP_SCALAR: Op = Op {
    sig: sig("lerp.scalar(Tensor self, Tensor end, Scalar weight) -> Tensor"),
    doc: "`self + weight * (end - self)`.",
    promote: Promote::By(|c, _| same_dtype(c, &["end"])),
    body: elementwise(&LERPED),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g() - c.g_times(2)), d(1, 0, |c| c.g_times(2))]),
    node: "LerpBackward0",
    samples: &["f32[2,3], f32[2,3], 0.3", "f32[2,3], f32[3], 0.75"],
    errors: &[("f32[2], i64[2], 0.5", "RuntimeError", "expected dtype float for `end`")],
    reference: "np.where(np.abs(x2) < 0.5, x0 + x2 * (x1 - x0), x1 - (x1 - x0) * (1 - x2))",
    ..BINARY
};

struct AddProduct;
impl MapNum<4> for AddProduct {
    #[inline(always)]
    fn eval<T: Num>([x, a, b, v]: [T; 4]) -> T {
        x + v * a * b
    }
}
static ADD_PRODUCT: Rule =
    Rule { operands: &[0, 1, 2, 3], loops: Loops::NONE.num::<4, AddProduct>(), wgsl: "x + w * y * z" };
pub static ADDCMUL: Op = Op {
    sig: sig("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"),
    deprecated: &[sig("addcmul(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor")],
    doc: "`self + value * tensor1 * tensor2`.",
    promote: Promote::By(|c, d| {
        let (d, _) = of_tensors(c, d)?;
        if d == DType::Bool { Err(refused(c, d)) } else { Ok((d, d)) }
    }),
    body: elementwise(&ADD_PRODUCT),
    vjp: Vjp::Each(&[
        d(0, 0, |c| c.g()),
        d(1, A2, |c| c.g_times(3) * c.arg(2).conj()),
        d(2, A1, |c| c.g_times(3) * c.arg(1).conj()),
    ]),
    samples: &[
        "f32[2,3], f32[2,3], f32[3]",
        "f32[2,3], f32[2,3], f32[2,3], value=0.5",
        "i64[4], i64[4], i64[4], value=2",
    ],
    errors: &[
        ("f32[2,3], f32[4], f32[3]", "RuntimeError", "must match the size"),
        ("b8[2], b8[2], b8[2]", "RuntimeError", "not implemented for 'Bool'"),
    ],
    reference: "x0 + value * x1 * x2",
    ..BINARY
};

struct AddQuotient;
impl MapReal<4> for AddQuotient {
    #[inline(always)]
    fn eval<T: Real>([x, a, b, v]: [T; 4]) -> T {
        x + v * a / b
    }
}
impl MapComplex<4> for AddQuotient {
    fn eval([x, a, b, v]: [c128; 4]) -> c128 {
        x + complex::divide(v * a, b)
    }
}
static ADD_QUOTIENT: Rule = Rule {
    operands: &[0, 1, 2, 3],
    loops: Loops::NONE.real::<4, AddQuotient>().complex::<4, AddQuotient>(),
    wgsl: "x + div_(w * y, z)",
};
pub static ADDCDIV: Op = Op {
    sig: sig("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"),
    deprecated: &[sig("addcdiv(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor")],
    doc: "`self + value * tensor1 / tensor2`. Integers are refused.",
    promote: Promote::By(|c, d| {
        let whole = |i: usize| c.tensor(i).is_ok_and(|t| t.dtype().category() < Category::Float);
        if whole(1) && whole(2) {
            return Err(Error::runtime(
                "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true \
                 division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as \
                 (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as \
                 (input + value * tensor1 / tensor2) for float inputs.",
            ));
        }
        of_tensors(c, d)
    }),
    body: elementwise(&ADD_QUOTIENT),
    vjp: Vjp::Each(&[
        d(0, 0, |c| c.g()),
        d(1, A2, |c| c.g_times(3) / c.arg(2).conj()),
        d(2, A1 | A2, |c| -c.g_times(3) * (c.arg(1) / c.arg(2).square()).conj()),
    ]),
    samples: &["f32[2,3], f32[2,3], f32[3](nonzero)", "f32[2,3], f32[2,3], f32[2,3](nonzero), value=0.5"],
    errors: &[("f32[2], i64[2], i64[2]", "RuntimeError", "Integer division with addcdiv")],
    reference: "x0 + value * x1 / x2",
    ..BINARY
};

pub static NAN_TO_NUM: Op = Op {
    sig: sig("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor"),
    doc: "Replaces NaN (by 0), infinity and minus infinity (by the largest and smallest finite numbers) or by what is given.",
    forms: FMIO,
    body: decompose(|c| {
        let t = c.tensor(0)?;
        let most = t.dtype().greatest_float();
        FINITE.calls((
            t,
            c.opt_float("nan").unwrap_or(0.0),
            c.opt_float("posinf").unwrap_or(most),
            c.opt_float("neginf").unwrap_or(-most),
        ))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,5](special)", "f32[10](special), nan=1.5, posinf=2.0, neginf=-3.0", "i64[4]", "f64[10](special)"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    alias_policy: Some(AliasPolicy::SameOnly),
    out_dtype: Some(OutDType::Same),
    ..OP
};

struct Finite;
impl MapOrdered<4> for Finite {
    #[inline(always)]
    fn eval<T: Ordered>([x, nan, most, least]: [T; 4]) -> T {
        let bound = if x > T::zero() { most } else { least };
        let y = if x.is_infinite() { bound } else { x };
        if x.is_nan() { nan } else { y }
    }
}
impl MapComplex<4> for Finite {
    fn eval([x, nan, most, least]: [c128; 4]) -> c128 {
        let part = |v: f64| {
            let bound = if v > 0.0 { most.re } else { least.re };
            if v.is_nan() {
                nan.re
            } else if v.is_infinite() {
                bound
            } else {
                v
            }
        };
        c128::new(part(x.re), part(x.im))
    }
}
static REPLACE: Rule = Rule {
    operands: &[0, 1, 2, 3],
    loops: Loops::NONE.ordered::<4, Finite>().complex::<4, Finite>(),
    wgsl: "where_(isnan_(x), y, where_(isinf_(x), where_(signbit_(x), w, z), x))",
};
pub static FINITE: Op = Op {
    sig: sig("_nan_to_num(Tensor self, float nan, float posinf, float neginf) -> Tensor"),
    doc: "`nan_to_num` with every replacement given.",
    forms: Forms(Forms::HIDDEN | Forms::INPLACE),
    promote: Promote::By(of_self),
    body: elementwise(&REPLACE),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() * super::compare::ISFINITE.call((c.arg(0),)))]),
    samples: &["f32[2,5](special), 0.0, 1.0, -1.0"],
    errors: &[("'a', 0.0, 1.0, -1.0", "TypeError", "must be Tensor")],
    keeps: Some("self"),
    ..OP
};

impl Term {
    /// Zero where `condition` holds, else `self`; unlike multiplication by a mask this also blocks NaN.
    pub fn zero_where(self, condition: Term) -> Term {
        WHERE.call((condition, 0, self))
    }
    /// `self` where the condition holds, else `other`.
    pub fn where_else(self, condition: Term, other: Term) -> Term {
        WHERE.call((condition, self, other))
    }
    /// `a` where this condition holds, else `b`.
    pub fn choose<'a>(self, a: impl IntoArg<'a>, b: impl IntoArg<'a>) -> Term {
        WHERE.call((self, a, b))
    }
}
