//! Reductions over dimensions or everything: shared code, and sum, mean, prod.
//!
//! Maxima and minima, truth values, moments, norms and NaN-skipping sums have their own files in this folder.

pub mod sum_to;

use crate::cpu::reduce::{self, Reduce};
use crate::dtype::{Category, DType};
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::{Dims, Layout};
use crate::op::*;
use crate::ops::create::full::ONES;
use crate::ops::movement::copy::COPY_;
use crate::ops::support::host_read::item;
use crate::ops::view::reshape::{SELECT, SLICE};
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&SUM, &SUM_DIM, &MEAN, &MEAN_DIM, &PROD, &PROD_DIM];

/// Every dimension of the first argument.
pub(crate) fn all_dims(c: &Call) -> Result<Dims> {
    Ok((0..c.tensor(0)?.ndim()).collect())
}

/// The dimensions of the argument `dim`: those given, or all.
pub(crate) fn reduced_dims(c: &Call) -> Result<Dims> {
    dims_in(c, "dim")
}
/// The same of an argument that only some overloads have.
pub(crate) fn dims_in(c: &Call, dim: impl Key) -> Result<Dims> {
    let n = c.tensor(0)?.ndim();
    let mut dims = match c.opt_distinct_dims(dim)? {
        Some(d) if !d.is_empty() => {
            check_rank(n)?;
            d
        }
        _ => (0..n).collect(),
    };
    dims.sort_unstable();
    dims.retain(|d| *d < n); // a 0-d tensor has dimension 0 only nominally
    Ok(dims)
}

/// PyTorch's limit where dimensions are named.
pub(crate) fn check_rank(n: usize) -> Result<()> {
    if n > 64 { Err(Error::runtime("only tensors with up to 64 dims are supported")) } else { Ok(()) }
}

/// The shape after reducing, with the reduced dimensions kept as ones or dropped.
pub(crate) fn reduced_shape(shape: &[usize], dims: &[usize], keep: bool) -> Dims {
    let size = |(i, &d): (usize, &usize)| match (dims.contains(&i), keep) {
        (false, _) => Some(d),
        (true, true) => Some(1),
        (true, false) => None,
    };
    shape.iter().enumerate().filter_map(size).collect()
}

/// The output in the kernels' form: with the reduced dimensions as ones.
pub(crate) fn keepdim_form(input: &Tensor, dims: &[usize], out: &Tensor) -> Tensor {
    let shape = reduced_shape(input.shape(), dims, true);
    out.with_layout(Layout { offset: out.layout().offset, ..Layout::contiguous(&shape) })
}

/// Which reduction a kernel runs: a type, because kernels are plain functions.
pub(crate) trait Kind {
    const REDUCE: Reduce;
}

pub(crate) fn run_cpu<K: Kind>(c: &Call, out: &[Tensor], dims: &[usize]) -> Result<()> {
    let t = c.tensor(0)?;
    let kept = keepdim_form(t, dims, &out[0]);
    reduce::reduce(K::REDUCE, t.cpu_view()?, dims, kept.cpu_view()?)
}
pub(crate) fn run_gpu<K: Kind>(c: &Call, out: &[Tensor], dims: &[usize]) -> Result<()> {
    let t = c.tensor(0)?;
    let kept = keepdim_form(t, dims, &out[0]);
    gpu::reduce(K::REDUCE, &t.gpu_view()?, dims, &kept.gpu_view()?)
}

fn all_cpu<K: Kind>(c: &Call, out: &[Tensor]) -> Result<()> {
    run_cpu::<K>(c, out, &all_dims(c)?)
}
fn all_gpu<K: Kind>(c: &Call, out: &[Tensor]) -> Result<()> {
    run_gpu::<K>(c, out, &all_dims(c)?)
}
fn dims_cpu<K: Kind>(c: &Call, out: &[Tensor]) -> Result<()> {
    run_cpu::<K>(c, out, &reduced_dims(c)?)
}
fn dims_gpu<K: Kind>(c: &Call, out: &[Tensor]) -> Result<()> {
    run_gpu::<K>(c, out, &reduced_dims(c)?)
}

/// A reduction of everything: arguments (self, ..).
pub(crate) const fn over_all<K: Kind>(infer: fn(&Call) -> Result<Specs>) -> Body {
    kernel(infer, all_cpu::<K>, Some(all_gpu::<K>))
}
/// A reduction over `dim`: arguments (self, dim, keepdim, ..).
pub(crate) const fn over_dims<K: Kind>(infer: fn(&Call) -> Result<Specs>) -> Body {
    kernel(infer, dims_cpu::<K>, Some(dims_gpu::<K>))
}

/// Sums of integers and bools are int64 by default.
fn sum_dtype(t: &Tensor, asked: Option<DType>) -> DType {
    asked.unwrap_or(if t.dtype().category() <= Category::Int { DType::I64 } else { t.dtype() })
}

struct Total;
impl Kind for Total {
    const REDUCE: Reduce = Reduce::Sum;
}

pub static SUM: Op = Op {
    sig: sig("sum(Tensor self, *, DType? dtype=None) -> Tensor"),
    doc: "The sum of all elements. Integers and bools sum to int64.",
    body: over_all::<Total>(|c| {
        let t = c.tensor(0)?;
        Ok(Spec::one(&[], sum_dtype(t, c.dtype("dtype")), t.device()))
    }),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().expand(&c.sizes(0)))]),
    samples: &["f32[2,3]", "i64[4]", "b8[5]", "f32[2,3], dtype=float64"],
    errors: &[("'a'", "TypeError", "invalid combination of arguments")],
    reference: "np.sum(x0, dtype=dtype)",
    keeps: Some("self_sym_sizes"),
    batch: Batching::Whole(&SUM_DIM),
    ..OP
};

pub static SUM_DIM: Op = Op {
    sig: sig("sum.dim(Tensor self, Dim[1]? dim, bool keepdim=False, *, DType? dtype=None) -> Tensor"),
    doc: "The sum over the given dimensions; `keepdim` keeps them with size one.",
    forms: FMO,
    body: over_dims::<Total>(|c| {
        let t = c.tensor(0)?;
        Ok(Spec::one(
            &reduced_shape(t.shape(), &reduced_dims(c)?, c.flag("keepdim")),
            sum_dtype(t, c.dtype("dtype")),
            t.device(),
        ))
    }),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().expand_reduced(c))]),
    node: "SumBackward1",
    samples: &["f32[2,3], 0", "f32[2,3,4], (0, 2), True", "f32[2,3], -1, dtype=float64", "i64[2,3], 1"],
    errors: &[
        ("f32[2,3], 2", "IndexError", "Dimension out of range"),
        ("f32[2,3], (0, 0)", "RuntimeError", "multiple times"),
    ],
    reference: "np.sum(x0, axis=x1, keepdims=keepdim, dtype=dtype)",
    out_dtype: Some(OutDType::Every),
    keeps: Some("dim keepdim self_sym_sizes"),
    ..OP
};

/// The dtype of a mean: floating or complex only.
pub(crate) fn float_only(c: &Call, asked: Option<DType>) -> Result<DType> {
    let d = asked.unwrap_or(c.tensor(0)?.dtype());
    if d.is_differentiable() {
        return Ok(d);
    }
    let what = if asked.is_some() { "Optional" } else { "Input" };
    Err(Error::not_implemented(format!(
        "could not infer output dtype. {what} dtype must be either a floating point or complex dtype. Got: {}",
        d.scalar_type_name()
    )))
}

struct Average;
impl Kind for Average {
    const REDUCE: Reduce = Reduce::Mean;
}

pub static MEAN: Op = Op {
    sig: sig("mean(Tensor self, *, DType? dtype=None) -> Tensor"),
    doc: "The mean of all elements: their sum divided by their number. Floating or complex only; nan of nothing.",
    forms: FMO,
    body: over_all::<Average>(|c| Ok(Spec::one(&[], float_only(c, c.dtype("dtype"))?, c.tensor(0)?.device()))),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().expand(&c.sizes(0)) / c.folded())]),
    samples: &["f32[2,3]", "f32[0]", "i64[4], dtype=float32", "f64[3]", "c64[3]", "bf16[5]"],
    errors: &[
        ("i64[3]", "NotImplementedError", "could not infer output dtype"),
        ("f32[3], dtype=int64", "NotImplementedError", "Optional dtype"),
    ],
    reference: "np.mean(x0)",
    out_dtype: Some(OutDType::Castable),
    keeps: Some("self_sym_numel self_sym_sizes"),
    batch: Batching::Whole(&MEAN_DIM),
    ..OP
};

pub static MEAN_DIM: Op = Op {
    sig: sig("mean.dim(Tensor self, Dim[1]? dim, bool keepdim=False, *, DType? dtype=None) -> Tensor"),
    doc: "The mean over the given dimensions; `keepdim` keeps them with size one.",
    forms: FMO,
    body: over_dims::<Average>(|c| {
        let t = c.tensor(0)?;
        let dtype = float_only(c, c.dtype("dtype"))?;
        Ok(Spec::one(&reduced_shape(t.shape(), &reduced_dims(c)?, c.flag("keepdim")), dtype, t.device()))
    }),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().expand_reduced(c) / c.folded())]),
    node: "MeanBackward1",
    samples: &["f32[2,3], 0", "f32[2,3,4], (0, 2), True", "f32[2,3], None", "i64[2,3], 1, dtype=float64"],
    errors: &[
        ("f32[2,3], 2", "IndexError", "Dimension out of range"),
        ("b8[2,3], 0", "NotImplementedError", "could not infer output dtype"),
    ],
    reference: "np.mean(x0, axis=x1, keepdims=keepdim)",
    out_dtype: Some(OutDType::Castable),
    keeps: Some("dim keepdim self_sym_numel self_sym_sizes"),
    ..OP
};

struct Product;
impl Kind for Product {
    const REDUCE: Reduce = Reduce::Prod;
}

pub static PROD: Op = Op {
    sig: sig("prod(Tensor self, *, DType? dtype=None) -> Tensor"),
    doc: "The product of all elements; one of nothing. Integers and bools multiply to int64. The gradient holds at zeros too.",
    body: over_all::<Product>(|c| {
        let t = c.tensor(0)?;
        Ok(Spec::one(&[], sum_dtype(t, c.dtype("dtype")), t.device()))
    }),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| {
        let flat = c.arg(0).reshape(&[-1]);
        product_backward(c.g(), flat, c.out(0), 0).reshape(&c.sizes(0))
    })]),
    samples: &["f32[2,3]", "f32[2,2](=2,0,3,4)", "f32[2,2](=2,0,0,4)", "f32[]", "i32[4]", "b8[5]", "c64[3]", "f32[0]"],
    errors: &[("'a'", "TypeError", "invalid combination of arguments")],
    reference: "np.prod(x0)",
    batch: Batching::Whole(&PROD_DIM),
    ..OP
};

pub static PROD_DIM: Op = Op {
    sig: sig("prod.dim(Tensor self, Dim dim, bool keepdim=False, *, DType? dtype=None) -> Tensor"),
    doc: "The product along one dimension; `keepdim` keeps it with size one.",
    forms: FMO,
    body: kernel(
        |c| {
            let t = c.tensor(0)?;
            Ok(Spec::one(
                &reduced_shape(t.shape(), &one_dim(c)?, c.flag("keepdim")),
                sum_dtype(t, c.dtype("dtype")),
                t.device(),
            ))
        },
        |c, out| run_cpu::<Product>(c, out, &one_dim(c)?),
        Some(|c, out| run_gpu::<Product>(c, out, &one_dim(c)?)),
    ),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| {
        let (g, y) = (c.g().restore_dims(c), c.out(0).restore_dims(c));
        product_backward(g, c.arg(0), y, c.int("dim"))
    })]),
    node: "ProdBackward1",
    samples: &[
        "f32[2,3], 0",
        "f32[2,3], -1, True",
        "f32[2,3](=1,0,2,0,0,3), 1",
        "i32[2,3], 1",
        "f32[2,3], 1, dtype=float64",
    ],
    errors: &[("f32[2,3], 2", "IndexError", "Dimension out of range")],
    reference: "np.prod(x0, axis=x1, keepdims=keepdim)",
    out_dtype: Some(OutDType::Every),
    ..OP
};

/// The one dimension `dim`, as a list; empty for a 0-d tensor.
pub(crate) fn one_dim(c: &Call) -> Result<Dims> {
    let n = c.tensor(0)?.ndim();
    check_rank(n)?;
    let dim = c.dim("dim");
    Ok(if n == 0 { Dims::new() } else { Dims::from_elem(dim, 1) })
}

/// The gradient of a product along `dim`: the product of the others, by division if no element is zero.
fn product_backward(g: Term, x: Term, y: Term, dim: i64) -> Term {
    let no_zero = super::any_all::ALL.call((&x,)).get().is_some_and(is_true);
    match x.ndim() {
        0 => g,
        _ if no_zero => g * (y / x).conj(),
        _ => g * products_of_others(x.transpose(dim, -1)).transpose(dim, -1).conj(),
    }
}

/// Whether a 0-d tensor is NaN.
pub(crate) fn is_nan(t: &Term) -> bool {
    t.get().is_some_and(|t| item(t).is_ok_and(|s| s.to_f64().is_nan()))
}

/// Reads a bool from any device.
pub(crate) fn is_true(t: &Tensor) -> bool {
    item(t).is_ok_and(|s| s.to_bool())
}

/// For each element along the last dimension the product of all others: products of pairs on the way up, passed to the
/// partner on the way down. Only multiplications, so it holds at zeros and can be differentiated to any order.
fn products_of_others(x: Term) -> Term {
    let mut sizes = x.sizes();
    let n = sizes.last().copied().unwrap_or(0);
    if n <= 1 {
        return x.filled(1.0);
    }
    if n % 2 == 1 {
        return SLICE.call((products_of_others(padded_with_one(x)), -1, 0, n));
    }
    *sizes.last_mut().expect("at least one dimension") = n / 2;
    sizes.push(2);
    let pairs = x.clone().reshape(&sizes);
    let others = products_of_others(pairs.clone().select(-1, 0) * pairs.clone().select(-1, 1));
    (others.unsqueeze(-1) * pairs.flip_(-1)).reshape(&x.sizes())
}

/// Appends a one along the last dimension.
fn padded_with_one(x: Term) -> Term {
    let padded = x.0.and_then(|x| {
        let mut shape: Dims = x.shape().into();
        let n = shape.pop().unwrap_or(0);
        shape.push(n + 1);
        let shape: Ints = shape.iter().map(|&d| d as i64).collect();
        let whole = ONES.call((shape, x.dtype(), x.device())).ok()?;
        COPY_.call_inplace((SLICE.call((&whole, -1, 0, n)), &x))?;
        Ok(whole)
    });
    Term(padded)
}

impl Term {
    /// A constant in the term's shape and dtype.
    pub(crate) fn filled(&self, value: f64) -> Term {
        Term(self.clone().0.and_then(|t| crate::ops::support::grad_helpers::full_like(&t, t.dtype(), value)))
    }
    pub(crate) fn select(self, dim: i64, index: i64) -> Term {
        SELECT.call((self, dim, index))
    }
    pub fn expand(self, sizes: &[i64]) -> Term {
        crate::ops::view::reshape::EXPAND.call((self, sizes))
    }
    pub fn sum_all(self) -> Term {
        SUM.call((self,))
    }
    pub fn sum(self, dims: &[i64], keepdim: bool) -> Term {
        SUM_DIM.call((self, dims, keepdim))
    }
    /// Restores reduced dimensions and expands to the input's shape.
    pub fn expand_reduced(self, c: &VjpCtx) -> Term {
        self.restore_dims(c).expand(&c.sizes(0))
    }
    /// Restores reduced dimensions (`dim`, unless `keepdim` kept them) as ones.
    pub fn restore_dims(self, c: &VjpCtx) -> Term {
        self.restore_dims_in(c, "dim", "keepdim")
    }
    /// The same for arguments that only some overloads have.
    pub fn restore_dims_in(self, c: &VjpCtx, dim: impl Key, keepdim: impl Key) -> Term {
        if c.flag(keepdim) || c.ndim(0) == 0 {
            return self;
        }
        let one = || c.opt_dim(dim).map(|d| Dims::from_elem(d, 1));
        let dims = match c.opt_dims(dim).or_else(one) {
            Some(d) if !d.is_empty() => d,
            _ => (0..c.ndim(0)).collect(),
        };
        let kept: Ints = reduced_shape(&c.shape(0), &dims, true).iter().map(|&d| d as i64).collect();
        self.reshape(&kept)
    }
}
