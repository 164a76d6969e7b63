//! Vector norms, matrix norms based on them, and the logarithm of a sum of exponentials.
//!
//! `norm` and `linalg.norm` select `linalg.vector_norm` or, for two dimensions, matrix norms.

use super::extrema::{AMAX, AMIN};
use super::sum_prod::{SUM_DIM, keepdim_form, reduced_dims, reduced_shape};
use crate::cpu::reduce::{Reduce, reduce};
use crate::dtype::{Category, DType, Scalar, default_dtype, promote};
use crate::error::{Error, Result, Show};
use crate::gpu;
use crate::op::*;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[
    &VECTOR_NORM,
    &MATRIX_NORM,
    &MATRIX_NORM_STR,
    &LINALG_NORM,
    &LINALG_NORM_STR,
    &NORM,
    &NORM_STR,
    &NORM_DIM,
    &LOGSUMEXP,
];

/// What a norm computes in, `dtype=`, keeps every number of the input.
fn check_dtypes(own: DType, asked: Option<DType>) -> Result<()> {
    let name = own.scalar_type_name();
    if !own.is_differentiable() {
        return Err(Error::not_implemented(format!(
            "Expected a floating point or complex tensor as input. Got {name}"
        )));
    }
    let Some(asked) = asked else { return Ok(()) };
    let wanted = asked.scalar_type_name();
    let kind = if own.is_complex() { "complex" } else { "real" };
    let problem = match () {
        () if !asked.is_differentiable() => format!("dtype should be floating point or complex, but got {wanted}"),
        () if own.is_complex() != asked.is_complex() => {
            format!("dtype should be {kind} for {kind} inputs, but got {wanted}")
        }
        () if promote(own, asked)? != asked => format!(
            "the dtype of the input ({name}) should be convertible without narrowing to the specified dtype ({wanted})"
        ),
        () => return Ok(()),
    };
    Err(Error::runtime(problem))
}

/// The matrix in the dtype that its norm is computed in.
fn converted(t: &Tensor, asked: Option<DType>) -> Result<Tensor> {
    check_dtypes(t.dtype(), asked)?;
    Term::from(t).to_dtype(asked.unwrap_or(t.dtype())).ok()
}

fn infer_norm(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    let d = t.dtype();
    check_dtypes(d, c.dtype("dtype"))?;
    let dims = reduced_dims(c)?;
    let order = real_order("linalg.vector_norm", c.scalar(1)?)?;
    let nothing = dims.iter().any(|&d| t.size(d) == 0);
    if nothing && (order < 0.0 || order == f64::INFINITY) {
        return Err(Error::runtime(format!(
            "cannot compute the {order} norm on an empty tensor because the operation does not have an identity"
        )));
    }
    let dtype = c.dtype("dtype").unwrap_or(d).to_real();
    Ok(Spec::one(&reduced_shape(t.shape(), &dims, c.flag("keepdim")), dtype, t.device()))
}

fn run_norm(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, dims) = (c.tensor(0)?, reduced_dims(c)?);
    let kept = keepdim_form(t, &dims, &out[0]);
    reduce(Reduce::Norm(c.float(1)?), t.cpu_view()?, &dims, kept.cpu_view()?)
}

fn run_norm_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, dims) = (c.tensor(0)?, reduced_dims(c)?);
    let kept = keepdim_form(t, &dims, &out[0]);
    gpu::reduce(Reduce::Norm(c.float(1)?), &t.gpu_view()?, &dims, &kept.gpu_view()?)
}

pub static VECTOR_NORM: Op = Op {
    sig: sig(
        "linalg.vector_norm(Tensor self, Scalar ord=2, Dim[1]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor",
    ),
    doc: "The vector norm `sum(|x|^ord)^(1/ord)` of all elements or over the given dimensions; `inf`: the greatest, `-inf`: the least absolute value, `0`: the number that are not zero.",
    forms: FO,
    body: kernel(infer_norm, run_norm, Some(run_norm_gpu)),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, norm_backward)]),
    samples: &[
        "f32[2,3]",
        "f32[2,3], 1",
        "f32[2,3], 3, 0",
        "f32[2,3], inf, 1, True",
        "f32[2,3], 0",
        "f32[2,3](pos), 0.5",
        "f32[2,3], -inf, 0",
        "c64[3]",
        "f32[2,3], 2, (0, 1), dtype=float64",
    ],
    errors: &[
        ("i64[3]", "NotImplementedError", "floating point or complex"),
        ("f32[0], inf", "RuntimeError", "does not have an identity"),
        ("f32[2], 1j", "RuntimeError", "non-complex scalar"),
        ("f32[2], 2, 1", "IndexError", "Dimension out of range"),
        ("f64[2], dtype=float32", "RuntimeError", "convertible without narrowing"),
        ("c64[2], dtype=float32", "RuntimeError", "dtype should be complex for complex inputs"),
    ],
    ..OP
};

/// Source: the derivative of `(sum |x|^p)^(1/p)`: `sgn(x) (|x| / norm)^(p - 1)`; zero where the norm is zero.
fn norm_backward(c: &VjpCtx) -> Term {
    let (g, x, n) = (c.g().restore_dims(c), c.arg(0), c.out(0).restore_dims(c));
    let p = c.float(1);
    let at_zero = |t: Term| t.zero_where(n.clone().equals(0));
    match p {
        0.0 => c.zeros(0),
        1.0 => x.sgn() * g,
        2.0 => x * at_zero(g / n.clone()),
        p if p.is_infinite() => {
            let hits = x.clone().abs().equals(n).either(x.clone().is_nan());
            let dims = norm_dims(c);
            let count = if dims.is_empty() { hits.clone() } else { hits.clone().sum(&dims, true) };
            x.sgn() * hits * (g / count)
        }
        p if p < 1.0 => {
            let zero = x.clone().equals(0);
            x.clone().sgn() * x.abs().pow(p - 1.0).zero_where(zero) * g * n.pow(1.0 - p)
        }
        p if p < 2.0 => x.clone().sgn() * x.abs().pow(p - 1.0) * at_zero(g * n.clone().pow(1.0 - p)),
        p => x.clone() * x.abs().pow(p - 2.0) * at_zero(g / n.clone().pow(p - 1.0)),
    }
}

fn norm_dims(c: &VjpCtx) -> Ints {
    match c.opt_ints("dim") {
        Some(d) if !d.is_empty() && c.ndim(0) > 0 => d.into(),
        _ => (0..c.ndim(0) as i64).collect(),
    }
}

/// The norm of a vector, or of a matrix if two dimensions are given, with the arguments of `torch.norm`.
pub static NORM: Op = Op {
    sig: sig("norm(Tensor self, Scalar? p, int[1]? dim=None, bool keepdim=False, DType? dtype=None) -> Tensor"),
    doc: "The vector norm of order `p` of all elements or over the given dimensions; see `linalg.vector_norm`.",
    forms: FMO,
    body: decompose(|c| {
        let order = c.opt_scalar("p").unwrap_or(Scalar::Int(2));
        VECTOR_NORM
            .call((c.tensor(0)?, order, c.argument("dim").reborrow(), c.flag("keepdim"), c.dtype("dtype")))
            .outputs()
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], None", "f32[2,3], 1", "f32[2,3], 2, 0", "f32[2,3], 3, (0, 1), True", "f32[2,3], inf"],
    errors: &[
        ("i64[3], 2", "NotImplementedError", "floating point or complex"),
        ("f32[3], 1j", "RuntimeError", "non-complex scalar"),
    ],
    out_dtype: Some(OutDType::Same),
    ..OP
};

/// The vector norm under the node name that it has inside PyTorch's losses.
pub static NORM_DIM: Op = Op {
    sig: sig("_norm.dim(Tensor self, Scalar p, Dim[1] dim, bool keepdim=False, DType? dtype=None) -> Tensor"),
    doc: "See `linalg.vector_norm`.",
    forms: HIDDEN,
    body: kernel(infer_norm, run_norm, Some(run_norm_gpu)),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, norm_backward)]),
    node: "NormBackward1",
    keeps: Some("dim keepdim p result self"),
    samples: &["f32[2,3], 2, 1", "f32[2,3], 1, (0, 1), True"],
    errors: &[("i64[3], 2, 0", "NotImplementedError", "floating point or complex")],
    ..OP
};

/// Norms of matrices that have names: of Frobenius, and the sum of the singular values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatrixNorm {
    Fro,
    Nuc,
}
impl Enumerated for MatrixNorm {
    const VALUES: &'static [(&'static str, MatrixNorm)] = &[("fro", MatrixNorm::Fro), ("nuc", MatrixNorm::Nuc)];
}

pub static NORM_STR: Op = Op {
    unknown_choice: |_, given| Error::runtime(format!("only valid string values are 'fro' and 'nuc', found {given}")),
    sig: sig(
        "norm.str(Tensor self, str{fro|nuc} p='fro', int[1]? dim=None, bool keepdim=False, DType? dtype=None) -> Tensor",
    ),
    doc: "The Frobenius norm ('fro') or the sum of the singular values ('nuc').",
    forms: FMO,
    body: decompose(|c| match c.choice("p") {
        MatrixNorm::Fro => VECTOR_NORM
            .call((c.tensor(0)?, 2, c.argument("dim").reborrow(), c.flag("keepdim"), c.dtype("dtype")))
            .outputs(),
        MatrixNorm::Nuc => {
            nuclear(c.tensor(0)?, c.opt_ints("dim").unwrap_or(&[]), c.flag("keepdim"), c.dtype("dtype"))?.outputs()
        }
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3]",
        "f32[2,3], 'fro', 0",
        "f32[2,3], 'fro', (0, 1), True",
        "f32[2,3], 'fro', None, False, float64",
    ],
    errors: &[("f32[2,3], 'abc'", "RuntimeError", "only valid string values")],
    out_dtype: Some(OutDType::Same),
    ..OP
};

/// The dimensions of a matrix norm: the two given, or both of a matrix.
fn matrix_dims(t: &Tensor, dims: &[i64]) -> Result<(i64, i64)> {
    match (dims, t.ndim()) {
        (_, 0 | 1) => Err(Error::runtime("The input tensor A must have at least 2 dimensions.")),
        (&[a, b], n) => {
            if crate::layout::wrap_dim(a, n)? == crate::layout::wrap_dim(b, n)? {
                return Err(Error::runtime(format!("dims must be different. Got ({a}, {b})")));
            }
            Ok((a, b))
        }
        ([], 2) => Ok((0, 1)),
        _ => Err(Error::runtime(format!(
            "dim must be a 2-tuple. Got {}; the input has shape {}",
            Show(dims),
            Show(t.shape())
        ))),
    }
}

/// Singular values of the matrices in two dimensions, in the last dimension. Empty matrices have none.
fn singular_values(t: &Tensor, (a, b): (i64, i64)) -> Term {
    let n = t.ndim() as i64;
    let (a, b) = (a.rem_euclid(n), b.rem_euclid(n));
    if t.size(a as usize) == 0 || t.size(b as usize) == 0 {
        let (gone, empty) = if t.size(a as usize) == 0 { (b, a) } else { (a, b) };
        let rest: Ints = (0..n).filter(|d| *d != a && *d != b).chain([empty, gone]).collect();
        return SUM_DIM.call((crate::ops::view::reshape::PERMUTE.call((Term::from(t).abs(), rest)), [-1]));
    }
    let order: Ints = (0..n).filter(|d| *d != a && *d != b).chain([a, b]).collect();
    crate::ops::linalg::svd::SVDVALS.call((crate::ops::view::reshape::PERMUTE.call((t, order)),))
}

fn nuclear(t: &Tensor, dims: &[i64], keepdim: bool, dtype: Option<DType>) -> Result<Term> {
    let (t, d) = (&converted(t, dtype)?, matrix_dims(t, dims)?);
    Ok(kept(singular_values(t, d).sum(&[-1], false), t, d, keepdim))
}

/// Restores the two dimensions of a matrix norm as ones.
fn kept(y: Term, t: &Tensor, (a, b): (i64, i64), keepdim: bool) -> Term {
    let n = t.ndim() as i64;
    let (a, b) = (a.rem_euclid(n), b.rem_euclid(n));
    if keepdim { y.unsqueeze(a.min(b)).unsqueeze(a.max(b)) } else { y }
}

/// The order of a norm as a real number; complex orders are an error.
fn real_order(name: &'static str, order: Scalar) -> Result<f64> {
    match order {
        Scalar::Complex(..) => Err(Error::runtime("Expected a non-complex scalar as the order of norm.").in_op(name)),
        order => Ok(order.to_f64()),
    }
}

fn matrix_norm(t: &Tensor, order: Scalar, dims: &[i64], keepdim: bool, dtype: Option<DType>) -> Result<Term> {
    let order = real_order("linalg.matrix_norm", order)?;
    let t = &converted(t, dtype)?;
    let (a, b) = matrix_dims(t, dims)?;
    let n = t.ndim() as i64;
    // The maximum over no absolute values is zero, like their sum; the minimum does not exist.
    let pick = |x: Term, dim: i64, keepdim: bool| {
        let empty = x.get().is_some_and(|t| t.size(dim.rem_euclid(t.ndim() as i64) as usize) == 0);
        let op = if order < 0.0 {
            &AMIN
        } else if empty {
            &SUM_DIM
        } else {
            &AMAX
        };
        op.call((x, [dim], keepdim))
    };
    let (first, second) = if order.is_infinite() { (b, a) } else { (a, b) };
    match order.abs() {
        2.0 => Ok(kept(pick(singular_values(t, (a, b)), -1, false), t, (a, b), keepdim)),
        1.0 | f64::INFINITY => {
            let sums = SUM_DIM.call((Term::from(t).abs(), [first], keepdim));
            let (f, s) = (first.rem_euclid(n), second.rem_euclid(n));
            Ok(pick(sums, if keepdim || s < f { s } else { s - 1 }, keepdim))
        }
        _ => Err(Error::runtime(format!("Order {order} not supported."))),
    }
}

pub static MATRIX_NORM: Op = Op {
    sig: sig(
        "linalg.matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, DType? dtype=None) -> Tensor",
    ),
    doc: "A matrix norm: 1 and -1 (column sums), inf and -inf (row sums), 2 and -2 (singular values).",
    forms: FO,
    body: decompose(|c| {
        matrix_norm(c.tensor(0)?, c.scalar("ord")?, c.ints("dim")?, c.flag("keepdim"), c.dtype("dtype"))?.outputs()
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3,4], 1", "f32[2,3,4], inf", "f32[3,4], -1, (0, 1), True", "f32[3,0], 2"],
    errors: &[
        ("f32[3,4], 3", "RuntimeError", "Order 3 not supported"),
        ("f32[3,3], 1, (0, 0)", "RuntimeError", "dims must be different"),
        ("f32[3,3], 1, (0,)", "RuntimeError", "dim must be a 2-tuple"),
        ("f32[3,3], 1j", "RuntimeError", "linalg.matrix_norm: Expected a non-complex scalar as the order of norm."),
        ("c64[3,3], 1, dtype=float32", "RuntimeError", "dtype should be complex for complex inputs"),
    ],
    out_dtype: Some(OutDType::Same),
    ..OP
};

pub static MATRIX_NORM_STR: Op = Op {
    sig: sig(
        "linalg.matrix_norm.str(Tensor self, str{fro|nuc} ord='fro', int[] dim=[-2, -1], bool keepdim=False, *, DType? dtype=None) -> Tensor",
    ),
    unknown_choice: unknown_order,
    doc: "The Frobenius ('fro') or nuclear ('nuc') norm of matrices.",
    forms: FO,
    body: decompose(|c| matrix_norm_str(c, c.ints("dim")?)),
    vjp: Vjp::Composite,
    samples: &["f32[3,4]", "f32[2,3,4], 'fro', keepdim=True", "f32[2,0,3], 'nuc'"],
    errors: &[("f32[3,4], 'abc'", "RuntimeError", "not supported")],
    out_dtype: Some(OutDType::Same),
    ..OP
};

fn matrix_norm_str(c: &Call, dims: &[i64]) -> Result<Outputs> {
    let t = c.tensor(0)?;
    match c.choice("ord") {
        MatrixNorm::Fro => {
            let (a, b) = matrix_dims(t, dims)?;
            VECTOR_NORM.call((t, 2, [a, b], c.flag("keepdim"), c.dtype("dtype"))).outputs()
        }
        MatrixNorm::Nuc => nuclear(t, dims, c.flag("keepdim"), c.dtype("dtype"))?.outputs(),
    }
}
fn unknown_order(_: &Op, given: &str) -> Error {
    Error::runtime(format!("Order {given} not supported."))
}

pub static LINALG_NORM: Op = Op {
    sig: sig(
        "linalg.norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor",
    ),
    doc: "A vector norm, or a matrix norm where two dimensions are given or `A` is a matrix and `ord` is given.",
    forms: FO,
    body: decompose(|c| {
        let (t, dims) = (c.tensor(0)?, c.opt_ints("dim"));
        let matrix = dims.map_or(t.ndim() == 2, |d| d.len() == 2);
        match c.opt_scalar("ord") {
            Some(_) if dims.is_some_and(|d| !matches!(d.len(), 1 | 2)) => Err(Error::runtime(format!(
                "If dim is specified, it must be of length 1 or 2. Got {}",
                Show(dims.unwrap_or_default())
            ))),
            Some(order) if matrix => {
                matrix_norm(t, order, dims.unwrap_or(&[]), c.flag("keepdim"), c.dtype("dtype"))?.outputs()
            }
            Some(_) if dims.is_none() && (t.ndim() > 2 || t.ndim() == 0) => Err(Error::runtime(format!(
                "If dim is not specified but ord is, the input must be 1D or 2D. Got {}D.",
                t.ndim()
            ))),
            order => {
                let order = order.unwrap_or(Scalar::Int(2));
                VECTOR_NORM
                    .call((t, order, c.argument("dim").reborrow(), c.flag("keepdim"), c.dtype("dtype")))
                    .outputs()
            }
        }
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3]", "f32[4], 1", "f32[3,4], 1", "f32[2,3,4], inf, (1, 2)", "f32[2,3], None, 0", "f32[2,3,4]"],
    errors: &[
        ("f32[2,3,4], 2", "RuntimeError", "must be 1D or 2D"),
        ("f32[2,3,4], 1, (0, 1, 2)", "RuntimeError", "it must be of length 1 or 2"),
    ],
    out_dtype: Some(OutDType::Same),
    ..OP
};

pub static LINALG_NORM_STR: Op = Op {
    sig: sig(
        "linalg.norm.str(Tensor self, str{fro|nuc} ord, int[1]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor",
    ),
    unknown_choice: unknown_order,
    doc: "The Frobenius ('fro') or nuclear ('nuc') norm of a matrix.",
    forms: FO,
    body: decompose(|c| matrix_norm_str(c, c.opt_ints("dim").unwrap_or(&[]))),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], 'fro'", "f32[2,3,4], 'fro', (1, 2), True"],
    errors: &[
        ("f32[2,3], 'abc'", "RuntimeError", "not supported"),
        ("f32[2,3], 'fro', 0", "RuntimeError", "dim must be a 2-tuple"),
    ],
    out_dtype: Some(OutDType::Same),
    ..OP
};

/// For complex numbers, composed of other ops: the largest real part is factored out of the sum.
fn complex_logsumexp(t: &Tensor, dims: &[usize], kept: &Tensor) -> Result<()> {
    let dims: Ints = dims.iter().map(|&d| d as i64).collect();
    let sum_of = |x: Term| if dims.is_empty() { x.exp() } else { x.exp().sum(&dims, true) };
    if t.numel() == 0 {
        return kept.copy_raw(&sum_of(Term::from(t)).log().ok()?);
    }
    let real = Term::from(t).real_part();
    let top = if dims.is_empty() { real } else { AMAX.call((real, dims.clone(), true)) };
    let top = top.clone().zero_where(top.abs().equals(f64::INFINITY));
    kept.copy_raw(&(sum_of(Term::from(t) - top.clone()).log() + top).ok()?)
}

fn run_logsumexp(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, dims) = (c.tensor(0)?, reduced_dims(c)?);
    let kept = keepdim_form(t, &dims, &out[0]);
    if t.dtype().is_complex() {
        return complex_logsumexp(t, &dims, &kept);
    }
    reduce(Reduce::LogSumExp, t.cpu_view()?, &dims, kept.cpu_view()?)
}

fn run_logsumexp_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, dims) = (c.tensor(0)?, reduced_dims(c)?);
    let kept = keepdim_form(t, &dims, &out[0]);
    gpu::reduce(Reduce::LogSumExp, &t.gpu_view()?, &dims, &kept.gpu_view()?)
}

pub static LOGSUMEXP: Op = Op {
    sig: sig("logsumexp(Tensor self, Dim[1] dim, bool keepdim=False) -> Tensor"),
    doc: "The logarithm of the sum of exponentials over the given dimensions, without overflow.",
    aliases: &["special.logsumexp"],
    forms: FMO,
    body: kernel(
        |c| {
            let t = c.tensor(0)?;
            let dtype = if t.dtype().category() < Category::Float { default_dtype() } else { t.dtype() };
            Ok(Spec::one(&reduced_shape(t.shape(), &reduced_dims(c)?, c.flag("keepdim")), dtype, t.device()))
        },
        run_logsumexp,
        Some(run_logsumexp_gpu),
    ),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| c.g().restore_dims(c) * (c.arg(0) - c.out(0).restore_dims(c)).exp().conj())]),
    samples: &["f32[2,3], 0", "f32[2,3](big), 1, True", "f32[2,3,4], (0, 2)", "i64[3], 0", "f32[], 0", "c64[2,3], 1"],
    errors: &[("f32[2,3], 2", "IndexError", "Dimension out of range")],
    reference: "np.log(np.sum(np.exp(x0), axis=dim, keepdims=keepdim))",
    out_dtype: Some(OutDType::Castable),
    ..OP
};
