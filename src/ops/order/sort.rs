//! Order along a dimension: sort, argsort, the k best, the k-th.
//!
//! Sorts are always stable and NaN is the largest number. The GPU always sorts whole lines.

use crate::cpu::sort::{kth, sort, topk};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::Dims;
use crate::op::*;
use crate::ops::indexing::gather_scatter::{SCATTER_ADD, at_least_1d};
use crate::ops::support::promotion::no_kernel;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&SORT, &SORT_STABLE, &ARGSORT, &ARGSORT_STABLE, &MSORT, &TOPK, &KTHVALUE];

/// The gradient of values selected by positions (output 1) along `dim`.
fn at_positions(c: &VjpCtx, g: Term, places: Term) -> Term {
    SCATTER_ADD.call((c.zeros(0), c.int("dim"), places, g))
}

fn real(c: &Call, what: &str) -> Result<()> {
    if c.tensor(0)?.dtype().is_complex() {
        return Err(Error::type_(format!(
            "{what} does not support complex dtypes on {}",
            c.tensor(0)?.device().kind().to_uppercase()
        )));
    }
    Ok(())
}

/// Values and positions with the input's layout.
fn pair_like(t: &Tensor) -> Specs {
    let values = Spec::following(t);
    smallvec![values.clone(), Spec { dtype: DType::I64, ..values }]
}

/// Values and positions of one shape.
fn pair(t: &Tensor, shape: &[usize]) -> Specs {
    smallvec![Spec::new(shape, t.dtype(), t.device()), Spec::new(shape, DType::I64, t.device())]
}

/// Writes the elements of `t` along `dim` in order, and their positions.
pub(crate) fn sort_into(t: &Tensor, dim: usize, descending: bool, values: &Tensor, indices: &Tensor) -> Result<()> {
    let (t, values, indices) = (at_least_1d(t), at_least_1d(values), at_least_1d(indices));
    if t.device().is_gpu() {
        return gpu::sort(&t.gpu_view()?, dim, descending, 0, &values.gpu_view()?, &indices.gpu_view()?);
    }
    sort(t.cpu_view()?, dim, descending, true, values.cpu_view()?, indices.cpu_view()?)
}

/// Writes the `k`-th smallest element along `dim`, counted from one, and its position; results keep the dimension.
pub(crate) fn kth_into(t: &Tensor, dim: usize, k: usize, values: &Tensor, indices: &Tensor) -> Result<()> {
    let (t, values, indices) = (at_least_1d(t), at_least_1d(values), at_least_1d(indices));
    if t.device().is_gpu() {
        return gpu::sort(&t.gpu_view()?, dim, false, k - 1, &values.gpu_view()?, &indices.gpu_view()?);
    }
    kth(t.cpu_view()?, dim, k, values.cpu_view()?, indices.cpu_view()?)
}

fn sort_spec(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    real(c, " Sort")?;
    Ok(pair_like(t))
}

fn run_sort(c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    if t.numel() == 0 {
        return Ok(());
    }
    sort_into(t, c.dim("dim"), c.flag("descending"), &out[0], &out[1])
}

pub static SORT: Op = Op {
    sig: sig("sort(Tensor self, Dim dim=-1, bool descending=False) -> (Tensor values, Tensor indices)"),
    doc: "Sorts along a dimension and says where each element came from. Stable; NaN is the greatest.",
    forms: FMO,
    body: kernel(sort_spec, run_sort, Some(run_sort)),
    vjp: Vjp::Each(&[d(0, OUT1, |c| at_positions(c, c.g(), c.out(1)))]),
    samples: &["f32[5]", "f32[2,3], 0", "f32[2,3], -1, True", "i64[4]", "f32[4](= 1, nan, 3, 2)", "b8[4]", "f32[]"],
    errors: &[
        ("f32[2], 1", "IndexError", "Dimension out of range"),
        ("c64[2]", "TypeError", "Sort does not support complex dtypes"),
    ],
    alias_policy: Some(AliasPolicy::SameOnly),
    keeps: Some("dim indices self_sym_sizes"),
    ..OP
};

pub static SORT_STABLE: Op = Op {
    sig: sig(
        "sort.stable(Tensor self, *, bool? stable, Dim dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    ),
    doc: "Sorts along a dimension; equal elements keep their order, whatever `stable` says.",
    forms: FMO,
    body: kernel(sort_spec, run_sort, Some(run_sort)),
    vjp: Vjp::Each(&[d(0, OUT1, |c| at_positions(c, c.g(), c.out(1)))]),
    node: "SortBackward1",
    keeps: Some("dim indices self_sym_sizes"),
    samples: &["f32[2,3](ties), stable=True", "f32[2,3], stable=False, dim=0, descending=True"],
    errors: &[("f32[2], stable=True, dim=1", "IndexError", "Dimension out of range")],
    alias_policy: Some(AliasPolicy::SameOnly),
    ..OP
};

pub static ARGSORT: Op = Op {
    sig: sig("argsort(Tensor self, Dim dim=-1, bool descending=False) -> Tensor"),
    doc: "The positions that would sort a dimension.",
    body: decompose(|c| {
        Ok(smallvec![SORT.calls((Term::from(c.tensor(0)?).cut(), c.int("dim")?, c.flag("descending")))?.swap_remove(1)])
    }),
    vjp: Vjp::None("indices"),
    samples: &["f32[5]", "f32[2,3], 0", "f32[2,3], -1, True"],
    errors: &[("f32[2], 1", "IndexError", "Dimension out of range")],
    ..OP
};

pub static ARGSORT_STABLE: Op = Op {
    sig: sig("argsort.stable(Tensor self, *, bool stable, Dim dim=-1, bool descending=False) -> Tensor"),
    doc: "The positions that would sort a dimension; equal elements keep their order.",
    forms: FMO,
    body: decompose(|c| {
        Ok(smallvec![SORT.calls((Term::from(c.tensor(0)?).cut(), c.int("dim")?, c.flag("descending")))?.swap_remove(1)])
    }),
    vjp: Vjp::None("indices"),
    samples: &["f32[5](ties), stable=True", "f32[2,3], stable=True, dim=0"],
    errors: &[("f32[2], stable=True, dim=1", "IndexError", "Dimension out of range")],
    ..OP
};

pub static MSORT: Op = Op {
    sig: sig("msort(Tensor self) -> Tensor"),
    doc: "Sorts along the first dimension.",
    forms: FMO,
    body: decompose(|c| {
        let mut both = SORT.calls((c.tensor(0)?, 0))?;
        both.truncate(1);
        Ok(both)
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3,2]", "f32[4]"],
    errors: &[("c64[2]", "TypeError", "Sort does not support complex dtypes")],
    reference: "np.sort(x0, axis=0)",
    alias_policy: Some(AliasPolicy::SameOnly),
    out_dtype: Some(OutDType::Same),
    ..OP
};

/// The shape with `n` elements along a dimension; a 0-d shape stays.
fn with_size(t: &Tensor, dim: usize, n: usize) -> Dims {
    let mut shape: Dims = t.shape().into();
    if let Some(d) = shape.get_mut(dim) {
        *d = n;
    }
    shape
}

pub static TOPK: Op = Op {
    sig: sig(
        "topk(Tensor self, int k, Dim dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
    ),
    doc: "The `k` largest (or smallest) elements along a dimension, best first, and where they are.",
    forms: FMO,
    body: kernel(
        |c| {
            let (t, k) = (c.tensor(0)?, c.int("k")?);
            real(c, "topk")?;
            if t.dtype() == DType::Bool {
                return Err(Error::not_implemented(format!(
                    "topk does not support bool dtypes on {}",
                    t.device().kind().to_uppercase()
                )));
            }
            let dim = c.dim("dim");
            if k < 0 || k > t.shape().get(dim).copied().unwrap_or(1) as i64 {
                return Err(Error::runtime("selected index k out of range"));
            }
            Ok(pair(t, &with_size(t, dim, k as usize)))
        },
        run_topk,
        Some(run_topk),
    ),
    vjp: Vjp::Each(&[d(0, OUT1, |c| at_positions(c, c.g(), c.out(1)))]),
    samples: &["f32[5], 2", "f32[2,4], 3, 1", "f32[3,2], 1, 0, False", "i64[4](= 3, 1, 4, 2), 2", "f32[], 1"],
    errors: &[
        ("f32[3], 4", "RuntimeError", "selected index k out of range"),
        ("b8[3], 1", "NotImplementedError", "bool dtypes"),
    ],
    alias_policy: Some(AliasPolicy::SameOnly),
    keeps: Some("dim indices self_sym_sizes"),
    ..OP
};

fn run_topk(c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    if out[0].numel() == 0 {
        return Ok(());
    }
    let (k, dim) = (c.int("k")? as usize, c.dim("dim"));
    if k == 0 {
        return Ok(());
    }
    let (t, values, indices) = (at_least_1d(t), at_least_1d(&out[0]), at_least_1d(&out[1]));
    if t.device().is_gpu() {
        return gpu::sort(&t.gpu_view()?, dim, c.flag("largest"), 0, &values.gpu_view()?, &indices.gpu_view()?);
    }
    topk(t.cpu_view()?, dim, k, c.flag("largest"), true, values.cpu_view()?, indices.cpu_view()?)
}

pub static KTHVALUE: Op = Op {
    sig: sig("kthvalue(Tensor self, int k, Dim dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)"),
    doc: "The `k`-th smallest element along a dimension, counted from one, and where it is.",
    forms: FMO,
    body: kernel(
        |c| {
            let (t, k) = (c.tensor(0)?, c.int("k")?);
            if t.dtype().is_complex() || t.dtype() == DType::Bool {
                return Err(no_kernel("kthvalue_cpu", t.dtype()));
            }
            let dim = c.dim("dim");
            if t.shape().get(dim) == Some(&0) {
                let text = format!("kthvalue(): Expected reduction dim {dim} to have non-zero size.");
                return Err(Error::index(text));
            }
            if k < 1 || k > t.shape().get(dim).copied().unwrap_or(1) as i64 {
                return Err(Error::runtime(format!("kthvalue(): selected number k out of range for dimension {dim}")));
            }
            let mut shape = with_size(t, dim, 1);
            if !c.flag("keepdim") && !shape.is_empty() {
                shape.remove(dim);
            }
            Ok(pair(t, &shape))
        },
        run_kth,
        Some(run_kth),
    ),
    vjp: Vjp::Each(&[d(0, OUT1, |c| {
        let dim = c.int("dim");
        match c.flag("keepdim") || c.ndim(0) == 0 {
            true => at_positions(c, c.g(), c.out(1)),
            false => at_positions(c, c.g().unsqueeze(dim), c.out(1).unsqueeze(dim)),
        }
    })]),
    samples: &["f32[5], 2", "f32[2,4], 3, 1", "f32[3,2], 1, 0, True", "i64[4](= 3, 1, 4, 2), 2"],
    errors: &[
        ("f32[3], 4", "RuntimeError", "selected number k out of range"),
        ("f32[3], 0", "RuntimeError", "selected number k out of range"),
    ],
    alias_policy: Some(AliasPolicy::NoAlias),
    keeps: Some("dim indices keepdim self_sym_sizes"),
    ..OP
};

fn run_kth(c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    if out[0].numel() == 0 {
        return Ok(());
    }
    let (k, dim) = (c.int("k")? as usize, c.dim("dim"));
    let kept = |o: &Tensor| match !c.flag("keepdim") && t.ndim() > 0 {
        true => o.with_layout(crate::layout::Layout {
            offset: o.layout().offset,
            ..crate::layout::Layout::contiguous(&with_size(t, dim, 1))
        }),
        false => o.clone(),
    };
    kth_into(t, dim, k, &kept(&out[0]), &kept(&out[1]))
}

impl Term {
    /// The same values without history.
    pub(crate) fn cut(self) -> Term {
        crate::ops::view::alias::DETACH.call((self,))
    }
}
