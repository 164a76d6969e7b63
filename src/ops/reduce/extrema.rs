//! Maxima and minima: over everything, with positions along a dimension, over several dimensions; argmax and argmin.
//!
//! NaN propagates, as in PyTorch. Along one dimension the gradient goes to the selected position; otherwise it is
//! shared evenly by all elements equal to the extreme.

use super::sum_prod::{Kind, keepdim_form, one_dim, over_all, reduced_dims, reduced_shape, run_cpu, run_gpu};
use crate::cpu::argreduce::arg_reduce;
use crate::cpu::reduce::Reduce;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu;
use crate::op::*;
use crate::ops::elementwise::minmax::{MAXIMUM, MINIMUM};
use crate::ops::indexing::along_dim::PUT_ALONG;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&MAX, &MAX_OTHER, &MAX_DIM, &MIN, &MIN_OTHER, &MIN_DIM, &AMAX, &AMIN, &ARGMAX, &ARGMIN];

struct Greatest;
impl Kind for Greatest {
    const REDUCE: Reduce = Reduce::Max;
}
struct Least;
impl Kind for Least {
    const REDUCE: Reduce = Reduce::Min;
}

fn infer_all(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    not_complex(c, "_all")?;
    if t.numel() == 0 {
        return Err(Error::runtime(NOTHING));
    }
    Ok(Spec::one(&[], t.dtype(), t.device()))
}
const NOTHING: &str =
    "Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.";

fn not_complex(c: &Call, suffix: &str) -> Result<()> {
    let d = c.tensor(0)?.dtype();
    if d.is_complex() {
        let (op, name) = (c.op.base(), d.scalar_type_name());
        return Err(Error::not_implemented(format!("\"{op}{suffix}\" not implemented for '{name}'")));
    }
    Ok(())
}
fn refuse_complex(t: &Tensor) -> Result<()> {
    if t.dtype().is_complex() { Err(Error::type_("does not support complex input")) } else { Ok(()) }
}

/// Checks that no reduced dimension is empty, since the maximum of nothing is undefined.
fn not_empty(t: &Tensor, dims: &[usize]) -> Result<()> {
    match dims.iter().find(|&&d| t.size(d) == 0) {
        Some(d) => Err(Error::index(format!("Expected reduction dim {d} to have non-zero size."))),
        None => Ok(()),
    }
}

/// The gradient distributed evenly over the elements equal to the extreme.
pub(crate) fn shared(g: Term, x: Term, y: Term, dims: &[i64]) -> Term {
    let hits =
        if y.get().is_some_and(|y| y.ndim() == 0) && super::sum_prod::is_nan(&y) { x.is_nan() } else { x.equals(y) };
    let count = if dims.is_empty() { hits.clone().sum_all() } else { hits.clone().sum(dims, true) };
    g / count * hits
}

pub static MAX: Op = Op {
    sig: sig("max(Tensor self) -> Tensor"),
    doc: "The greatest element; nan if there is one. The gradient is shared evenly by equal elements.",
    forms: FMO,
    body: over_all::<Greatest>(infer_all),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| shared(c.g(), c.arg(0), c.out(0), &[]))]),
    node: "MaxBackward1",
    samples: &["f32[2,3]", "f32[2,3](ties)", "i64[4]", "b8[5]", "f32[]", "bf16[7]"],
    errors: &[
        ("f32[0]", "RuntimeError", "Expected reduction dim to be specified"),
        ("c64[2]", "NotImplementedError", "max_all"),
    ],
    reference: "np.max(x0)",
    out_dtype: Some(OutDType::Castable),
    batch: Batching::Whole(&AMAX),
    ..OP
};

pub static MIN: Op = Op {
    sig: sig("min(Tensor self) -> Tensor"),
    doc: "The least element; nan if there is one. The gradient is shared evenly by equal elements.",
    forms: FMO,
    body: over_all::<Least>(infer_all),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| shared(c.g(), c.arg(0), c.out(0), &[]))]),
    node: "MinBackward1",
    samples: &["f32[2,3]", "f32[2,3](ties)", "i64[4]", "b8[5]", "f32[]"],
    errors: &[
        ("f32[0]", "RuntimeError", "Expected reduction dim to be specified"),
        ("c64[2]", "NotImplementedError", "min_all"),
    ],
    reference: "np.min(x0)",
    out_dtype: Some(OutDType::Castable),
    batch: Batching::Whole(&AMIN),
    ..OP
};

fn infer_dim(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    refuse_complex(t)?;
    let dims = one_dim(c)?;
    not_empty(t, &dims)?;
    let shape = reduced_shape(t.shape(), &dims, c.flag("keepdim"));
    Ok(smallvec![Spec::new(&shape, t.dtype(), t.device()), Spec::new(&shape, DType::I64, t.device())])
}

/// Values and positions along argument 1.
fn along<const MAX: bool>(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, dims) = (c.tensor(0)?, one_dim(c)?);
    if out[0].numel() == 0 {
        return Ok(());
    }
    let (values, indices) = (keepdim_form(t, &dims, &out[0]), keepdim_form(t, &dims, &out[1]));
    let dim = dims.first().copied().unwrap_or(0);
    arg_reduce(MAX, t.cpu_view()?, dim, Some(values.cpu_view()?), indices.cpu_view()?)
}

fn along_gpu<const MAX: bool>(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, dims) = (c.tensor(0)?, one_dim(c)?);
    if out[0].numel() == 0 {
        return Ok(());
    }
    let (values, indices) = (keepdim_form(t, &dims, &out[0]), keepdim_form(t, &dims, &out[1]));
    gpu::arg_reduce(MAX, &t.gpu_view()?, dims.first().copied(), Some(&values.gpu_view()?), &indices.gpu_view()?)
}

/// The gradient at the selected position.
pub(crate) fn at_position(c: &VjpCtx) -> Term {
    let (g, at) = (c.g().restore_dims(c), c.out(1).restore_dims(c));
    PUT_ALONG.call((g, at, c.int("dim"), &*c.sizes(0)))
}

pub static MAX_DIM: Op = Op {
    sig: sig("max.dim(Tensor self, Dim dim, bool keepdim=False) -> (Tensor values, Tensor indices)"),
    doc: "The greatest elements along a dimension and their positions, the first where several are equal.",
    forms: FMO,
    body: kernel(infer_dim, along::<true>, Some(along_gpu::<true>)),
    vjp: Vjp::Each(&[d(0, OUT1, at_position)]),
    samples: &["f32[2,3], 0", "f32[2,3,4], -1, True", "i64[2,3](perm), 1", "b8[3,2], 0", "f32[], 0"],
    errors: &[
        ("f32[0,3], 0", "IndexError", "to have non-zero size"),
        ("f32[2,3], 2", "IndexError", "Dimension out of range"),
        ("c64[2], 0", "TypeError", "does not support complex"),
    ],
    alias_policy: Some(AliasPolicy::SameOnly),
    keeps: Some("dim indices keepdim self_sym_sizes"),
    ..OP
};

pub static MIN_DIM: Op = Op {
    sig: sig("min.dim(Tensor self, Dim dim, bool keepdim=False) -> (Tensor values, Tensor indices)"),
    doc: "The least elements along a dimension and their positions, the first where several are equal.",
    forms: FMO,
    body: kernel(infer_dim, along::<false>, Some(along_gpu::<false>)),
    vjp: Vjp::Each(&[d(0, OUT1, at_position)]),
    samples: &["f32[2,3], 0", "f32[2,3,4], -1, True", "i64[2,3](perm), 1", "b8[3,2], 0", "f32[], 0"],
    errors: &[
        ("f32[0,3], 0", "IndexError", "to have non-zero size"),
        ("f32[2,3], 2", "IndexError", "Dimension out of range"),
    ],
    alias_policy: Some(AliasPolicy::SameOnly),
    keeps: Some("dim indices keepdim self_sym_sizes"),
    ..OP
};

pub static MAX_OTHER: Op = Op {
    sig: sig("max.other(Tensor self, Tensor other) -> Tensor"),
    doc: "The greater of two tensors, element by element: `maximum`.",
    forms: FMO,
    body: decompose(|c| MAXIMUM.call((c.tensor(0)?, c.tensor("other")?)).outputs()),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], f32[2,3]", "f32[2,3], i64[3]"],
    errors: &[("f32[2,3], f32[4]", "RuntimeError", "must match the size")],
    reference: "np.maximum(x0, x1)",
    alias_policy: Some(AliasPolicy::SameOnly),
    ..OP
};

pub static MIN_OTHER: Op = Op {
    sig: sig("min.other(Tensor self, Tensor other) -> Tensor"),
    doc: "The lesser of two tensors, element by element: `minimum`.",
    forms: FMO,
    body: decompose(|c| MINIMUM.call((c.tensor(0)?, c.tensor("other")?)).outputs()),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], f32[2,3]", "f32[2,3], i64[3]"],
    errors: &[("f32[2,3], f32[4]", "RuntimeError", "must match the size")],
    reference: "np.minimum(x0, x1)",
    alias_policy: Some(AliasPolicy::SameOnly),
    ..OP
};

fn infer_dims(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    let all = c.opt_ints("dim").is_none_or(|d| d.is_empty());
    if t.dtype().is_complex() {
        let name = t.dtype().scalar_type_name();
        return Err(Error::not_implemented(format!(
            "\"{}_values_cpu\" not implemented for '{name}'",
            &c.op.base()[1..]
        )));
    }
    if all && t.numel() == 0 {
        return Err(Error::runtime(NOTHING));
    }
    let dims = reduced_dims(c)?;
    not_empty(t, &dims)?;
    Ok(Spec::one(&reduced_shape(t.shape(), &dims, c.flag("keepdim")), t.dtype(), t.device()))
}

fn shared_over_dims(c: &VjpCtx) -> Term {
    let dims: Ints = match c.opt_ints("dim") {
        Some(d) if !d.is_empty() && c.ndim(0) > 0 => d.into(),
        _ => (0..c.ndim(0) as i64).collect(),
    };
    shared(c.g().restore_dims(c), c.arg(0), c.out(0).restore_dims(c), &dims)
}

fn dims_cpu<K: Kind>(c: &Call, out: &[Tensor]) -> Result<()> {
    run_cpu::<K>(c, out, &reduced_dims(c)?)
}
fn dims_gpu<K: Kind>(c: &Call, out: &[Tensor]) -> Result<()> {
    run_gpu::<K>(c, out, &reduced_dims(c)?)
}

pub static AMAX: Op = Op {
    sig: sig("amax(Tensor self, Dim[1] dim=[], bool keepdim=False) -> Tensor"),
    doc: "The greatest elements over the given dimensions. The gradient is shared evenly by equal elements.",
    forms: FMO,
    body: kernel(infer_dims, dims_cpu::<Greatest>, Some(dims_gpu::<Greatest>)),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, shared_over_dims)]),
    samples: &["f32[2,3]", "f32[2,3,4], (0, 2), True", "f32[3,4](ties), 1", "i64[2,3], 0", "f32[]"],
    errors: &[
        ("f32[0]", "RuntimeError", "Expected reduction dim to be specified"),
        ("f32[0,3], 0", "IndexError", "to have non-zero size"),
    ],
    ..OP
};

pub static AMIN: Op = Op {
    sig: sig("amin(Tensor self, Dim[1] dim=[], bool keepdim=False) -> Tensor"),
    doc: "The least elements over the given dimensions. The gradient is shared evenly by equal elements.",
    forms: FMO,
    body: kernel(infer_dims, dims_cpu::<Least>, Some(dims_gpu::<Least>)),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, shared_over_dims)]),
    samples: &["f32[2,3]", "f32[2,3,4], (0, 2), True", "f32[3,4](ties), 1", "i64[2,3], 0", "f32[]"],
    errors: &[
        ("f32[0]", "RuntimeError", "Expected reduction dim to be specified"),
        ("f32[0,3], 0", "IndexError", "to have non-zero size"),
    ],
    ..OP
};

fn infer_arg(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    refuse_complex(t)?;
    if t.dtype() == DType::Bool {
        return Err(Error::not_implemented("does not support bool input"));
    }
    let shape = match c.opt_int("dim") {
        None if t.numel() == 0 => {
            return Err(Error::index("Expected reduction dim to be specified for input.numel() == 0."));
        }
        None => reduced_shape(t.shape(), &(0..t.ndim()).collect::<Vec<_>>(), c.flag("keepdim")),
        Some(_) => {
            let dims = one_dim(c)?;
            not_empty(t, &dims)?;
            reduced_shape(t.shape(), &dims, c.flag("keepdim"))
        }
    };
    Ok(Spec::one(&shape, DType::I64, t.device()))
}

/// Positions along argument 1, or in the flattened tensor.
fn positions<const MAX: bool>(c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    if out[0].numel() == 0 {
        return Ok(());
    }
    let flat = c.opt_int("dim").is_none();
    let t = if flat { Term::from(t).reshape(&[-1]).ok()? } else { t.clone() };
    let dims: crate::layout::Dims = if flat { smallvec![0] } else { one_dim(c)? };
    let indices = keepdim_form(&t, &dims, &out[0]);
    arg_reduce(MAX, t.cpu_view()?, dims.first().copied().unwrap_or(0), None, indices.cpu_view()?)
}

fn positions_gpu<const MAX: bool>(c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    if out[0].numel() == 0 {
        return Ok(());
    }
    let (dim, dims) = match c.opt_int("dim") {
        None => (None, (0..t.ndim()).collect()),
        Some(_) => {
            let dims = one_dim(c)?;
            (dims.first().copied(), dims)
        }
    };
    let indices = keepdim_form(t, &dims, &out[0]);
    gpu::arg_reduce(MAX, &t.gpu_view()?, dim, None, &indices.gpu_view()?)
}

pub static ARGMAX: Op = Op {
    sig: sig("argmax(Tensor self, Dim? dim=None, bool keepdim=False) -> Tensor"),
    doc: "The position of the greatest element along a dimension, or in the flattened tensor; the first of equals.",
    forms: FMO,
    body: kernel(infer_arg, positions::<true>, Some(positions_gpu::<true>)),
    vjp: Vjp::None("a position"),
    samples: &["f32[2,3]", "f32[2,3], 0", "i64[2,3](perm), -1, True", "f32[2,3], None, True", "f32[]"],
    errors: &[
        ("f32[0]", "IndexError", "Expected reduction dim to be specified"),
        ("f32[0,3], 0", "IndexError", "to have non-zero size"),
        ("b8[2]", "NotImplementedError", "bool"),
    ],
    ..OP
};

pub static ARGMIN: Op = Op {
    sig: sig("argmin(Tensor self, Dim? dim=None, bool keepdim=False) -> Tensor"),
    doc: "The position of the least element along a dimension, or in the flattened tensor; the first of equals.",
    forms: FMO,
    body: kernel(infer_arg, positions::<false>, Some(positions_gpu::<false>)),
    vjp: Vjp::None("a position"),
    samples: &["f32[2,3]", "f32[2,3], 0", "i64[2,3](perm), -1, True", "f32[2,3], None, True", "f32[]"],
    errors: &[("f32[0]", "IndexError", "Expected reduction dim to be specified"), ("c64[2]", "TypeError", "complex")],
    ..OP
};
