//! Reductions: sum, mean, prod, max, min, any, all, over dimensions or everything.

use crate::cpu::reduce::{self, Reduce};
use crate::dtype::{default_dtype, Category, DType};
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::{wrap_dims, Dims, Layout};
use crate::op::*;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&SUM, &SUM_DIM];

/// The dimensions a reduction runs over: those given, or all where none are.
pub(super) fn reduced_dims(c: &Call, arg: Option<usize>) -> Result<Dims> {
    let n = c.tensor(0)?.ndim();
    let mut dims = match arg.and_then(|a| c.opt_ints(a)) {
        Some(d) if !d.is_empty() => wrap_dims(d, n)?,
        _ => (0..n).collect(),
    };
    dims.sort_unstable();
    dims.retain(|d| *d < n); // a 0-d tensor has the dimension 0 by name only
    Ok(dims)
}

/// The shape after reducing, with the reduced dimensions kept as ones or dropped.
pub(super) fn reduced_shape(shape: &[usize], dims: &[usize], keep: bool) -> Dims {
    let size = |(i, &d): (usize, &usize)| match (dims.contains(&i), keep) {
        (false, _) => Some(d),
        (true, true) => Some(1),
        (true, false) => None,
    };
    shape.iter().enumerate().filter_map(size).collect()
}

/// The output as the kernels want it: with the reduced dimensions as ones.
pub(super) fn keepdim_form(input: &Tensor, dims: &[usize], out: &Tensor) -> Tensor {
    let shape = reduced_shape(input.shape(), dims, true);
    out.with_layout(Layout { offset: out.layout().offset, ..Layout::contiguous(&shape) })
}

/// Which reduction a kernel runs: a type, because kernels are plain functions.
pub(super) trait Kind {
    const CPU: Reduce;
    const GPU: u8;
}

pub(super) fn run_cpu<K: Kind>(c: &Call, out: &[Tensor], dims: &[usize]) -> Result<()> {
    let t = c.tensor(0)?;
    let kept = keepdim_form(t, dims, &out[0]);
    // SAFETY: both layouts lie within their storages and the output has the keepdim shape of the input.
    unsafe { reduce::reduce(K::CPU, t.cpu_view()?, dims, kept.cpu_view()?) }
}
pub(super) fn run_gpu<K: Kind>(c: &Call, out: &[Tensor], dims: &[usize]) -> Result<()> {
    let t = c.tensor(0)?;
    let kept = keepdim_form(t, dims, &out[0]);
    let _ = (K::GPU, kept.gpu_view()?);
    Err(crate::error::Error::not_implemented("TEMP"))
}

fn all_cpu<K: Kind>(c: &Call, out: &[Tensor]) -> Result<()> {
    run_cpu::<K>(c, out, &reduced_dims(c, None)?)
}
fn all_gpu<K: Kind>(c: &Call, out: &[Tensor]) -> Result<()> {
    run_gpu::<K>(c, out, &reduced_dims(c, None)?)
}
fn dims_cpu<K: Kind>(c: &Call, out: &[Tensor]) -> Result<()> {
    run_cpu::<K>(c, out, &reduced_dims(c, Some(1))?)
}
fn dims_gpu<K: Kind>(c: &Call, out: &[Tensor]) -> Result<()> {
    run_gpu::<K>(c, out, &reduced_dims(c, Some(1))?)
}

/// A reduction of everything: arguments (self, ..).
pub(super) const fn over_all<K: Kind>(infer: fn(&Call) -> Result<Specs>) -> Body {
    kernel(infer, all_cpu::<K>, Some(all_gpu::<K>))
}
/// A reduction over `dim`: arguments (self, dim, keepdim, ..).
pub(super) const fn over_dims<K: Kind>(infer: fn(&Call) -> Result<Specs>) -> Body {
    kernel(infer, dims_cpu::<K>, Some(dims_gpu::<K>))
}

/// Sums of integers and bools are int64.
fn sum_dtype(t: &Tensor, asked: Option<DType>) -> DType {
    asked.unwrap_or(if t.dtype().category() <= Category::Int { DType::I64 } else { t.dtype() })
}

struct Total;
impl Kind for Total {
    const CPU: Reduce = Reduce::Sum;
    const GPU: u8 = 0;
}

pub static SUM: Op = Op {
    sig: "sum(Tensor self, *, DType? dtype=None) -> Tensor",
    doc: "The sum of all elements. Integers and bools sum to int64.",
    body: over_all::<Total>(|c| {
        let t = c.tensor(0)?;
        Ok(Spec::one(&[], sum_dtype(t, c.dtype(1)), t.device()))
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().expand(&c.sizes(0)))]),
    samples: &["f32[2,3]", "i64[4]", "b8[5]", "f32[2,3], dtype=float64"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    reference: "np.sum(x0, dtype=dtype)",
    ..OP
};

pub static SUM_DIM: Op = Op {
    sig: "sum.dim(Tensor self, int[1]? dim, bool keepdim=False, *, DType? dtype=None) -> Tensor",
    doc: "The sum over the given dimensions; `keepdim` keeps them with size one.",
    forms: FMO,
    body: over_dims::<Total>(|c| {
        let t = c.tensor(0)?;
        Ok(Spec::one(&reduced_shape(t.shape(), &reduced_dims(c, Some(1))?, c.flag(2)), sum_dtype(t, c.dtype(3)), t.device()))
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().expand_reduced(c, 1, 2))]),
    node: "SumBackward1",
    samples: &["f32[2,3], 0", "f32[2,3,4], (0, 2), True", "f32[2,3], -1, dtype=float64", "i64[2,3], 1"],
    errors: &[("f32[2,3], 2", "IndexError", "Dimension out of range"), ("f32[2,3], (0, 0)", "RuntimeError", "multiple times")],
    reference: "np.sum(x0, axis=x1, keepdims=keepdim, dtype=dtype)",
    ..OP
};

/// The dtype of a mean: floating or complex only.
pub(super) fn float_only(c: &Call, asked: Option<DType>) -> Result<DType> {
    let d = asked.unwrap_or(c.tensor(0)?.dtype());
    if d.is_differentiable() {
        return Ok(d);
    }
    Err(Error::runtime(format!(
        "could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {}. Pass dtype=torch.{}.",
        d.scalar_type_name(),
        default_dtype()
    )))
}

impl Term {
    pub fn expand(self, sizes: &[i64]) -> Term {
        super::view::EXPAND.call((self, sizes))
    }
    pub fn sum_all(self) -> Term {
        SUM.call((self,))
    }
    pub fn sum(self, dims: &[i64], keepdim: bool) -> Term {
        SUM_DIM.call((self, dims, keepdim))
    }
    /// Puts reduced dimensions back (argument `dim`, unless argument `keepdim` kept them) and expands to the input's shape.
    pub fn expand_reduced(self, c: &Back, dim: usize, keepdim: usize) -> Term {
        self.restore_dims(c, dim, keepdim).expand(&c.sizes(0))
    }
    /// Puts reduced dimensions back as ones.
    pub fn restore_dims(self, c: &Back, dim: usize, keepdim: usize) -> Term {
        if c.flag(keepdim) || c.ndim(0) == 0 {
            return self;
        }
        let n = c.ndim(0);
        let dims: Dims = match c.opt_ints(dim).map(|d| d.to_vec()).or(c.opt_int(dim).map(|d| vec![d])) {
            Some(d) if !d.is_empty() => d.iter().map(|&d| d.rem_euclid(n as i64) as usize).collect(),
            _ => (0..n).collect(),
        };
        let kept: Ints = reduced_shape(&c.shape(0), &dims, true).iter().map(|&d| d as i64).collect();
        self.reshape(&kept)
    }
}
