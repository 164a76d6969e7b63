//! Softmax and log-softmax: the composites, the fused kernels that replace them, and their gradients.
//!
//! `softmax(x) = exp(x - max) / sum(exp(x - max))` along one dimension. The gradients are separate ops, in one pass
//! over memory, and differentiable again.

use crate::cpu::softmax::{softmax, softmax_backward};
use crate::error::{Error, Result};
use crate::gpu;
use crate::op::*;
use crate::ops::reduce::extrema::AMAX;
use crate::ops::reduce::norm::LOGSUMEXP;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[
    &SOFTMAX,
    &LOG_SOFTMAX,
    &FUSED_SOFTMAX,
    &FUSED_LOG_SOFTMAX,
    &SOFTMAX_BACKWARD,
    &LOG_SOFTMAX_BACKWARD,
    &F_SOFTMAX,
    &F_LOG_SOFTMAX,
    &F_SOFTMIN,
];

fn infer(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    let dtype = c.dtype("dtype").unwrap_or(t.dtype());
    if !dtype.is_float() && t.numel() > 0 {
        let op = c.op.base().trim_start_matches('_');
        let name = dtype.scalar_type_name();
        return Err(Error::not_implemented(format!("\"{op}_lastdim_kernel_impl\" not implemented for '{name}'")));
    }
    Ok(Spec::one(t.shape(), dtype, t.device()))
}

fn forward<const LOG: bool>(c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    let dim = c.dim("dim");
    if t.numel() == 0 {
        return Ok(());
    }
    softmax(t.cpu_view()?, dim, out[0].cpu_view()?, LOG)
}

fn backward<const LOG: bool>(c: &Call, out: &[Tensor]) -> Result<()> {
    let (g, y) = (c.tensor("grad")?, c.tensor("output")?);
    let dim = c.dim("dim");
    softmax_backward(g.cpu_view()?, y.cpu_view()?, dim, out[0].cpu_view()?, LOG)
}

/// A 0-d tensor is a line of one element.
fn lines(t: &Tensor) -> Tensor {
    if t.ndim() == 0 { t.with_layout(t.layout().unsqueeze(0)) } else { t.clone() }
}
fn forward_gpu<const LOG: bool>(c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    let dim = c.dim("dim");
    if t.numel() == 0 {
        return Ok(());
    }
    gpu::softmax(&lines(t).gpu_view()?, dim, &lines(&out[0]).gpu_view()?, LOG)
}
fn backward_gpu<const LOG: bool>(c: &Call, out: &[Tensor]) -> Result<()> {
    let (g, y) = (lines(c.tensor("grad")?), lines(c.tensor("output")?));
    let dim = c.dim("dim");
    gpu::softmax_backward(&g.gpu_view()?, &y.gpu_view()?, dim, &lines(&out[0]).gpu_view()?, LOG)
}

fn infer_backward(c: &Call) -> Result<Specs> {
    let (g, y) = (c.tensor("grad")?, c.tensor("output")?);
    if g.shape() != y.shape() {
        return Err(Error::runtime("the gradient must have the shape of the output"));
    }
    if !g.dtype().is_float() || !y.dtype().is_float() {
        return Err(Error::runtime("floating point tensors are needed"));
    }
    Ok(Spec::one(y.shape(), y.dtype(), y.device()))
}

/// The input in the compute dtype.
fn converted(c: &Call) -> Result<Term> {
    infer(c)?;
    let t = c.tensor(0)?;
    Ok(Term::from(t).to_dtype(c.dtype("dtype").unwrap_or(t.dtype())))
}

pub static SOFTMAX: Op = Op {
    sig: sig("softmax(Tensor self, Dim dim, DType? dtype=None) -> Tensor"),
    doc: "`exp(x) / sum(exp(x))` along a dimension: positive, with sum one. Floating only, or `dtype` says as what.",
    forms: FMO,
    aliases: &["special.softmax"],
    body: decompose_or(
        |c| {
            let (x, dim) = (converted(c)?, c.int("dim")?);
            let e = (x.clone() - AMAX.call((x, [dim], true))).exp();
            (e.clone() / e.sum(&[dim], true)).outputs()
        },
        &FUSED_SOFTMAX,
        |_| true,
    ),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], 0", "f32[2,3,4], -1", "f32[2,3](big), 1", "i64[3], 0, dtype=float32", "f?[5], 0", "f32[], 0"],
    errors: &[
        ("f32[2,3], 2", "IndexError", "Dimension out of range"),
        ("i64[3], 0", "NotImplementedError", "not implemented for 'Long'"),
    ],
    reference: "np.exp(x0 - np.max(x0, axis=x1, keepdims=True)) / np.sum(np.exp(x0 - np.max(x0, axis=x1, keepdims=True)), axis=x1, keepdims=True) if x0.ndim else np.ones(())",
    out_dtype: Some(OutDType::Same),
    ..OP
};

pub static LOG_SOFTMAX: Op = Op {
    sig: sig("log_softmax(Tensor self, Dim dim, DType? dtype=None) -> Tensor"),
    doc: "The logarithm of softmax along a dimension, `x - log(sum(exp(x)))`, without overflow.",
    forms: FMO,
    aliases: &["special.log_softmax"],
    body: decompose_or(
        |c| {
            let (x, dim) = (converted(c)?, c.int("dim")?);
            (x.clone() - LOGSUMEXP.call((x, [dim], true))).outputs()
        },
        &FUSED_LOG_SOFTMAX,
        |_| true,
    ),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], 0", "f32[2,3,4], -1", "f32[2,3](big), 1", "i64[3], 0, dtype=float32", "f?[5], 0", "f32[], 0"],
    errors: &[
        ("f32[2,3], 2", "IndexError", "Dimension out of range"),
        ("i64[3], 0", "NotImplementedError", "not implemented for 'Long'"),
    ],
    out_dtype: Some(OutDType::Same),
    ..OP
};

pub static FUSED_SOFTMAX: Op = Op {
    sig: sig("_softmax(Tensor self, Dim dim, DType? dtype=None) -> Tensor"),
    doc: "`softmax` in one pass over memory.",
    forms: HIDDEN,
    body: kernel(infer, forward::<false>, Some(forward_gpu::<false>)),
    vjp: Vjp::Each(&[d(0, OUT0, |c| SOFTMAX_BACKWARD.call((c.g(), c.out(0), c.int("dim"))))]),
    samples: &["f32[2,3], 0", "f32[2,3], 1"],
    errors: &[("f32[2,3], 2", "IndexError", "Dimension out of range")],
    ..OP
};

pub static FUSED_LOG_SOFTMAX: Op = Op {
    sig: sig("_log_softmax(Tensor self, Dim dim, DType? dtype=None) -> Tensor"),
    doc: "`log_softmax` in one pass over memory.",
    forms: HIDDEN,
    body: kernel(infer, forward::<true>, Some(forward_gpu::<true>)),
    vjp: Vjp::Each(&[d(0, OUT0, |c| LOG_SOFTMAX_BACKWARD.call((c.g(), c.out(0), c.int("dim"))))]),
    samples: &["f32[2,3], 0", "f32[2,3], 1"],
    errors: &[("f32[2,3], 2", "IndexError", "Dimension out of range")],
    ..OP
};

/// The sum along argument 2, kept.
fn along(c: &VjpCtx, t: Term) -> Term {
    if c.ndim(1) == 0 { t } else { t.sum(&[c.int("dim")], true) }
}

pub static SOFTMAX_BACKWARD: Op = Op {
    sig: sig("_softmax_backward(Tensor grad, Tensor output, Dim dim) -> Tensor"),
    doc: "The gradient of softmax: `(grad - sum(grad * output)) * output`.",
    forms: HIDDEN,
    body: kernel(infer_backward, backward::<false>, Some(backward_gpu::<false>)),
    vjp: Vjp::Each(&[
        d(0, A1, |c| SOFTMAX_BACKWARD.call((c.g(), c.arg(1), c.int("dim")))),
        d(1, A0 | A1, |c| {
            let (h, g, y) = (c.g(), c.arg(0), c.arg(1));
            h.clone() * (g.clone() - along(c, g.clone() * y.clone())) - g * along(c, h * y)
        }),
    ]),
    node: "SoftmaxBackwardDataBackward0",
    samples: &["f32[2,3], f32[2,3](unit), 1"],
    errors: &[("f32[2,3], f32[2,2], 1", "RuntimeError", "shape of the output")],
    ..OP
};

pub static LOG_SOFTMAX_BACKWARD: Op = Op {
    sig: sig("_log_softmax_backward(Tensor grad, Tensor output, Dim dim) -> Tensor"),
    doc: "The gradient of log_softmax: `grad - exp(output) * sum(grad)`.",
    forms: HIDDEN,
    body: kernel(infer_backward, backward::<true>, Some(backward_gpu::<true>)),
    vjp: Vjp::Each(&[
        d(0, A1, |c| c.g() - along(c, c.g() * c.arg(1).exp())),
        d(1, A0 | A1, |c| -c.g() * c.arg(1).exp() * along(c, c.arg(0))),
    ]),
    node: "LogSoftmaxBackwardDataBackward0",
    samples: &["f32[2,3], f32[2,3](neg), 1"],
    errors: &[("f32[2,3], f32[2,2], 1", "RuntimeError", "shape of the output")],
    ..OP
};

/// PyTorch's warning where no dimension is given.
fn warn_of_dim(c: &Call) -> Option<String> {
    c.argument("dim").is_none().then(|| {
        format!(
            "Implicit dimension choice for {} has been deprecated. Change the call to include dim=X as an argument.",
            c.op.base()
        )
    })
}

/// The dimension that `nn.functional` takes where none is given: 0 for 0, 1 and 3 dimensions, else 1.
fn chosen_dim(c: &Call) -> Result<i64> {
    Ok(c.opt_int("dim").unwrap_or(i64::from(!matches!(c.tensor(0)?.ndim(), 0 | 1 | 3))))
}

pub static F_SOFTMAX: Op = Op {
    sig: sig("nn.functional.softmax(Tensor input, Dim? dim=None, int _stacklevel=3, DType? dtype=None) -> Tensor"),
    doc: "`exp(x)` divided by its sum along `dim`; `dtype` casts the input first.",
    forms: F,
    body: decompose(|c| SOFTMAX.calls((c.tensor(0)?, chosen_dim(c)?, c.dtype("dtype")))),
    vjp: Vjp::Composite,
    warns: Some(warn_of_dim),
    samples: &["f32[2,3], 1", "f32[2,3], dim=0, dtype=float64"],
    errors: &[("f32[2,3], 2", "IndexError", "Dimension out of range")],
    ..OP
};

pub static F_LOG_SOFTMAX: Op = Op {
    sig: sig("nn.functional.log_softmax(Tensor input, Dim? dim=None, int _stacklevel=3, DType? dtype=None) -> Tensor"),
    doc: "The logarithm of the softmax along `dim`; `dtype` casts the input first.",
    forms: F,
    body: decompose(|c| LOG_SOFTMAX.calls((c.tensor(0)?, chosen_dim(c)?, c.dtype("dtype")))),
    vjp: Vjp::Composite,
    warns: Some(warn_of_dim),
    samples: &["f32[2,3], 1", "f32[2,3], dim=0, dtype=float64"],
    errors: &[("f32[2,3], 2", "IndexError", "Dimension out of range")],
    ..OP
};

pub static F_SOFTMIN: Op = Op {
    sig: sig("nn.functional.softmin(Tensor input, Dim? dim=None, int _stacklevel=3, DType? dtype=None) -> Tensor"),
    doc: "The softmax of the negated input: the least element has the greatest share.",
    forms: F,
    body: decompose(|c| SOFTMAX.calls((-Term::from(c.tensor(0)?), chosen_dim(c)?, c.dtype("dtype")))),
    vjp: Vjp::Composite,
    warns: Some(warn_of_dim),
    samples: &["f32[2,3], 1"],
    errors: &[("f32[2,3], 2", "IndexError", "Dimension out of range")],
    ..OP
};
