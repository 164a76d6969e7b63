//! Variance and standard deviation, alone or with the mean, in PyTorch's three overloads of each.
//!
//! `var(unbiased)`, `var(dim, unbiased, keepdim)` and `var(dim, correction, keepdim)` differ only in their arguments,
//! which are looked up by name. The divisor is the number of elements minus the correction; the algorithm is that of
//! `cpu::var`.

use super::sum_prod::{all_dims, dims_in, keepdim_form, reduced_shape};
use crate::cpu::var::var;
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::Dims;
use crate::op::*;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &VAR,
    &VAR_DIM,
    &VAR_CORRECTION,
    &STD,
    &STD_DIM,
    &STD_CORRECTION,
    &VAR_MEAN,
    &VAR_MEAN_DIM,
    &VAR_MEAN_CORRECTION,
    &STD_MEAN,
    &STD_MEAN_DIM,
    &STD_MEAN_CORRECTION,
];

/// Position of an argument in the overload, if it has it.
fn place(c: &Call, name: &str) -> Option<usize> {
    c.op.sig.index_of(name)
}
fn keepdim(c: &Call) -> bool {
    place(c, "keepdim").is_some_and(|i| c.flag(i))
}
fn correction(c: &Call) -> f64 {
    match (place(c, "unbiased"), place(c, "correction")) {
        (Some(i), _) => f64::from(c.flag(i)),
        (_, Some(i)) => c.opt_float(i).unwrap_or(1.0),
        _ => 1.0,
    }
}
fn dims(c: &Call) -> Result<Dims> {
    place(c, "dim").map_or_else(|| all_dims(c), |dim| dims_in(c, dim))
}

fn infer<const MEAN: bool>(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    if !t.dtype().is_differentiable() {
        return Err(Error::not_implemented("std and var only support floating point and complex dtypes"));
    }
    let shape = reduced_shape(t.shape(), &dims(c)?, keepdim(c));
    let mut specs: Specs = smallvec![Spec::new(&shape, t.dtype().to_real(), t.device())];
    if MEAN {
        specs.push(Spec::new(&shape, t.dtype(), t.device()));
    }
    Ok(specs)
}

fn run<const SQRT: bool>(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, dims) = (c.tensor(0)?, dims(c)?);
    let kept: Vec<Tensor> = out.iter().map(|o| keepdim_form(t, &dims, o)).collect();
    let mean = kept.get(1).map(|m| m.cpu_view()).transpose()?;
    var(t.cpu_view()?, &dims, correction(c), kept[0].cpu_view()?, mean, SQRT)
}

fn run_gpu<const SQRT: bool>(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, dims) = (c.tensor(0)?, dims(c)?);
    let kept: Vec<Tensor> = out.iter().map(|o| keepdim_form(t, &dims, o)).collect();
    let mean = kept.get(1).map(|m| m.gpu_view()).transpose()?;
    gpu::var(&t.gpu_view()?, &dims, correction(c), SQRT, &kept[0].gpu_view()?, mean.as_ref())
}

/// The warning if the divisor is not positive.
fn too_few(c: &Call) -> Option<String> {
    let (t, dims) = (c.opt_tensor(0)?, dims(c).ok()?);
    let n: usize = dims.iter().map(|&d| t.size(d)).product();
    (n as f64 <= correction(c)).then(|| {
        format!(
            "{}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel divided \
             by output numel).",
            c.op.base()
        )
    })
}

const fn moments<const SQRT: bool, const MEAN: bool>() -> Body {
    kernel(infer::<MEAN>, run::<SQRT>, Some(run_gpu::<SQRT>))
}

/// Restores the reduced dimensions, for any overload.
fn restored(t: Term, c: &VjpCtx) -> Term {
    match place(&c.call, "dim") {
        None if c.ndim(0) == 0 => t,
        // Bounded by the number of dimensions.
        None => t.reshape(&vec![1; c.ndim(0)]),
        Some(dim) => t.restore_dims_in(c, dim, place(&c.call, "keepdim").unwrap_or(dim)),
    }
}

/// The gradient of the variance: `2 g (x - mean) / (n - correction)`.
fn var_backward(c: &VjpCtx, g: Term) -> Term {
    let all: Ints = (0..c.ndim(0) as i64).collect();
    let dims: Ints = match place(&c.call, "dim").and_then(|i| c.opt_ints(i)) {
        Some(d) if !d.is_empty() && !all.is_empty() => d.into(),
        _ => all,
    };
    let scale = 2.0 / (c.folded() - correction(&c.call)).max(0.0);
    let x = c.arg(0);
    let centred =
        if dims.is_empty() { x.clone() - x } else { x.clone() - super::sum_prod::MEAN_DIM.call((x, dims, true)) };
    restored(g, c) * scale * centred
}

/// The gradient of the deviation is that of the variance over twice the deviation; zero where it is zero.
fn std_backward(c: &VjpCtx, g: Term) -> Term {
    let s = c.out(0);
    let zero = s.clone().equals(0);
    var_backward(c, (g / (s * 2.0)).zero_where(zero))
}
fn mean_backward(c: &VjpCtx) -> Term {
    restored(c.gi(1), c).expand(&c.sizes(0)) / c.folded()
}

const VAR_VJP: Vjp = Vjp::Each(&[d(0, A0, |c| var_backward(c, c.g()))]);
const STD_VJP: Vjp = Vjp::Each(&[d(0, A0 | OUT0, |c| std_backward(c, c.g()))]);
const VAR_MEAN_VJP: Vjp = Vjp::Each(&[d(0, A0, |c| both(c, var_backward))]);
const STD_MEAN_VJP: Vjp = Vjp::Each(&[d(0, A0 | OUT0, |c| both(c, std_backward))]);

fn both(c: &VjpCtx, first: fn(&VjpCtx, Term) -> Term) -> Term {
    match (c.has_grad(0), c.has_grad(1)) {
        (true, false) => first(c, c.g()),
        (false, true) => mean_backward(c),
        _ => mean_backward(c) + first(c, c.g()),
    }
}

const ALL_SAMPLES: &[&str] = &["f32[2,3]", "f32[2,3], False", "f64[4]", "c64[3]", "bf16[5]"];
const DIM_SAMPLES: &[&str] = &["f32[2,3], 0", "f32[2,3,4], (0, 2), False, True", "f32[2,3], -1", "f32[2,3], None"];
const CORRECTION_SAMPLES: &[&str] =
    &["f32[3,4], correction=0", "f32[3,4], 0, correction=2", "f32[3,4], (0, 1), correction=1.5, keepdim=True"];
const ERRORS: &[(&str, &str, &str)] = &[("i64[3]", "NotImplementedError", "only support floating point and complex")];
const DIM_ERRORS: &[(&str, &str, &str)] = &[
    ("i64[3], 0", "NotImplementedError", "only support floating point and complex"),
    ("f32[3], 1", "IndexError", "Dimension out of range"),
];

pub static VAR: Op = Op {
    sig: sig("var(Tensor self, bool unbiased=True) -> Tensor"),
    doc: "The variance of all elements: the mean squared distance from the mean, over n - 1, or n where not `unbiased`.",
    body: moments::<false, false>(),
    warns: Some(too_few),
    vjp: VAR_VJP,
    samples: ALL_SAMPLES,
    errors: ERRORS,
    reference: "np.var(x0, ddof=int(unbiased))",
    out_dtype: Some(OutDType::Castable),
    batch: Batching::Whole(&VAR_DIM),
    ..OP
};
pub static VAR_DIM: Op = Op {
    sig: sig("var.dim(Tensor self, Dim[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor"),
    doc: "The variance over the given dimensions.",
    forms: FMO,
    body: moments::<false, false>(),
    warns: Some(too_few),
    vjp: VAR_VJP,
    samples: DIM_SAMPLES,
    errors: DIM_ERRORS,
    reference: "np.var(x0, axis=dim, ddof=int(unbiased), keepdims=keepdim)",
    out_dtype: Some(OutDType::Castable),
    keeps: Some("correction=unbiased dim keepdim self"),
    ..OP
};
pub static VAR_CORRECTION: Op = Op {
    sig: sig("var.correction(Tensor self, Dim[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor"),
    doc: "The variance over the given dimensions; the divisor is n - `correction` (1 where it is None).",
    forms: FMO,
    body: moments::<false, false>(),
    warns: Some(too_few),
    vjp: VAR_VJP,
    samples: CORRECTION_SAMPLES,
    errors: DIM_ERRORS,
    reference: "np.var(x0, axis=dim, ddof=correction, keepdims=keepdim)",
    out_dtype: Some(OutDType::Castable),
    ..OP
};
pub static STD: Op = Op {
    sig: sig("std(Tensor self, bool unbiased=True) -> Tensor"),
    doc: "The standard deviation of all elements: the square root of `var`.",
    body: moments::<true, false>(),
    warns: Some(too_few),
    vjp: STD_VJP,
    samples: ALL_SAMPLES,
    errors: ERRORS,
    reference: "np.std(x0, ddof=int(unbiased))",
    out_dtype: Some(OutDType::Castable),
    batch: Batching::Whole(&STD_DIM),
    ..OP
};
pub static STD_DIM: Op = Op {
    sig: sig("std.dim(Tensor self, Dim[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor"),
    doc: "The standard deviation over the given dimensions.",
    forms: FMO,
    body: moments::<true, false>(),
    warns: Some(too_few),
    vjp: STD_VJP,
    samples: DIM_SAMPLES,
    errors: DIM_ERRORS,
    reference: "np.std(x0, axis=dim, ddof=int(unbiased), keepdims=keepdim)",
    out_dtype: Some(OutDType::Castable),
    keeps: Some("correction=unbiased dim keepdim result self"),
    ..OP
};
pub static STD_CORRECTION: Op = Op {
    sig: sig("std.correction(Tensor self, Dim[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor"),
    doc: "The standard deviation over the given dimensions; the divisor is n - `correction` (1 where it is None).",
    forms: FMO,
    body: moments::<true, false>(),
    warns: Some(too_few),
    vjp: STD_VJP,
    samples: CORRECTION_SAMPLES,
    errors: DIM_ERRORS,
    reference: "np.std(x0, axis=dim, ddof=correction, keepdims=keepdim)",
    out_dtype: Some(OutDType::Castable),
    ..OP
};
pub static VAR_MEAN: Op = Op {
    sig: sig("var_mean(Tensor self, bool unbiased=True) -> Tensor[]"),
    doc: "The variance and the mean of all elements.",
    forms: F,
    body: moments::<false, true>(),
    warns: Some(too_few),
    vjp: VAR_MEAN_VJP,
    samples: ALL_SAMPLES,
    errors: ERRORS,
    reference: "(np.var(x0, ddof=int(unbiased)), np.mean(x0))",
    batch: Batching::Whole(&VAR_MEAN_DIM),
    ..OP
};
pub static VAR_MEAN_DIM: Op = Op {
    sig: sig("var_mean.dim(Tensor self, Dim[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor[]"),
    doc: "The variance and the mean over the given dimensions.",
    forms: F,
    body: moments::<false, true>(),
    warns: Some(too_few),
    vjp: VAR_MEAN_VJP,
    samples: DIM_SAMPLES,
    errors: DIM_ERRORS,
    reference: "(np.var(x0, axis=dim, ddof=int(unbiased), keepdims=keepdim), np.mean(x0, axis=dim, keepdims=keepdim))",
    keeps: Some("correction=unbiased dim keepdim self"),
    ..OP
};
pub static VAR_MEAN_CORRECTION: Op = Op {
    sig: sig(
        "var_mean.correction(Tensor self, Dim[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor[]",
    ),
    doc: "The variance, divided by n - `correction`, and the mean over the given dimensions.",
    forms: F,
    body: moments::<false, true>(),
    warns: Some(too_few),
    vjp: VAR_MEAN_VJP,
    samples: CORRECTION_SAMPLES,
    errors: DIM_ERRORS,
    reference: "(np.var(x0, axis=dim, ddof=correction, keepdims=keepdim), np.mean(x0, axis=dim, keepdims=keepdim))",
    ..OP
};
pub static STD_MEAN: Op = Op {
    sig: sig("std_mean(Tensor self, bool unbiased=True) -> Tensor[]"),
    doc: "The standard deviation and the mean of all elements.",
    forms: F,
    body: moments::<true, true>(),
    warns: Some(too_few),
    vjp: STD_MEAN_VJP,
    samples: ALL_SAMPLES,
    errors: ERRORS,
    reference: "(np.std(x0, ddof=int(unbiased)), np.mean(x0))",
    batch: Batching::Whole(&STD_MEAN_DIM),
    ..OP
};
pub static STD_MEAN_DIM: Op = Op {
    sig: sig("std_mean.dim(Tensor self, Dim[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor[]"),
    doc: "The standard deviation and the mean over the given dimensions.",
    forms: F,
    body: moments::<true, true>(),
    warns: Some(too_few),
    vjp: STD_MEAN_VJP,
    samples: DIM_SAMPLES,
    errors: DIM_ERRORS,
    reference: "(np.std(x0, axis=dim, ddof=int(unbiased), keepdims=keepdim), np.mean(x0, axis=dim, keepdims=keepdim))",
    ..OP
};
pub static STD_MEAN_CORRECTION: Op = Op {
    sig: sig(
        "std_mean.correction(Tensor self, Dim[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor[]",
    ),
    doc: "The standard deviation, divided by n - `correction`, and the mean over the given dimensions.",
    forms: F,
    body: moments::<true, true>(),
    warns: Some(too_few),
    vjp: STD_MEAN_VJP,
    samples: CORRECTION_SAMPLES,
    errors: DIM_ERRORS,
    reference: "(np.std(x0, axis=dim, ddof=correction, keepdims=keepdim), np.mean(x0, axis=dim, keepdims=keepdim))",
    keeps: Some("correction dim keepdim self"),
    ..OP
};
