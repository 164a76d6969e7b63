//! Indexing per slice of a dimension: index_select, index_add, index_copy, index_fill, index_reduce.

use super::gather_scatter::{Reduce, at_least_1d, index_as_i64, unalias};
use super::scatter_gpu::scatter_gpu;
use crate::cpu::index;
use crate::dtype::DType;
use crate::dtype::Scalar;
use crate::error::{Error, Result, Show};
use crate::gpu;
use crate::layout::Dims;
use crate::op::*;
use crate::ops::support::batch_views;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&INDEX_SELECT, &INDEX_ADD, &INDEX_COPY, &INDEX_FILL, &INDEX_FILL_TENSOR, &INDEX_REDUCE];

fn vector(c: &impl Arguments, name: &str) -> Result<Tensor> {
    check_vector(c, name)?;
    index_as_i64(c.tensor("index")?, || Error::internal("the index was checked"))
}

/// An index of at most one dimension, int64 or int32.
fn check_vector(c: &impl Arguments, name: &str) -> Result<()> {
    let index = c.tensor("index")?;
    if index.ndim() > 1 {
        return Err(Error::index(format!(
            "{name}(): Index is supposed to be a vector, but got dim: {} with type: {} and size: {}",
            index.ndim(),
            index.dtype().scalar_type_name(),
            Show(index.shape())
        )));
    }
    if matches!(index.dtype(), DType::I64 | DType::I32) {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "{name}(): Expected dtype int32/int64 for index but got: {}",
        index.dtype().scalar_type_name()
    )))
}

/// The shape of a 0-d tensor counts as one element.
fn with_dim(shape: &[usize], dim: usize, n: usize) -> Dims {
    let mut out: Dims = shape.into();
    if let Some(d) = out.get_mut(dim) {
        *d = n;
    }
    out
}

fn select_spec(c: &Call) -> Result<Specs> {
    check_vector(c, "index_select")?;
    let (t, index) = (c.tensor(0)?, c.tensor("index")?);
    let dim = c.dim("dim");
    if t.ndim() == 0 && index.numel() != 1 {
        return Err(Error::runtime(format!(
            "index_select(): Index to scalar can have only 1 value, got {} value(s)",
            index.numel()
        )));
    }
    Ok(Spec::one(&with_dim(t.shape(), dim, index.numel()), t.dtype(), t.device()))
}

fn run_select(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, index) = (c.tensor(0)?, vector(c, "index_select")?);
    let dim = c.dim("dim");
    if t.ndim() > 1 && t.size(dim) == 0 && index.numel() > 0 {
        return Err(Error::runtime("index_select(): self indexing axis dim should be positive"));
    }
    if t.device().is_gpu() {
        return gpu::index_select(&t.gpu_view()?, dim, &index.gpu_view()?, &out[0].gpu_view()?);
    }
    let selected = index::index_select(t.cpu_view()?, dim, index.cpu_view()?, out[0].cpu_view()?);
    // PyTorch's class where there are no elements to select.
    let nothing = t.ndim() > 1 && t.numel() == 0;
    selected.map_err(|e| if nothing { Error::runtime("INDICES element is out of DATA bounds") } else { e })
}

pub static INDEX_SELECT: Op = Op {
    sig: sig("index_select(Tensor self, Dim dim, Tensor index) -> Tensor"),
    doc: "The slices of a dimension that a 1-d index names, in its order, copied.",
    forms: FMO,
    body: kernel(select_spec, run_select, Some(run_select)),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, A2, |c| {
        let dim = c.int("dim");
        INDEX_ADD.call((c.zeros(0), dim, c.arg(2), c.g()))
    })]),
    samples: &[
        "f32[3,4], 0, i64[2](= 2, 0)",
        "f32[2,3], -1, i64[4](0..3)",
        "f32[3], 0, i64[](= 1)",
        "f32[3], 0, i32[2](= 0, 0)",
    ],
    errors: &[
        ("f32[3], 0, i64[1](= 3)", "IndexError", "index out of range in self"),
        ("f32[3], 0, i64[1,1](= 0)", "IndexError", "Index is supposed to be a vector"),
        ("f32[3], 1, i64[1](= 0)", "IndexError", "Dimension out of range"),
        ("f32[0,3], 0, i64[1](= 0)", "RuntimeError", "self indexing axis dim should be positive"),
    ],
    reference: "np.take(x0, np.atleast_1d(x2), axis=dim)",
    alias_policy: Some(AliasPolicy::NoAlias),
    keeps: Some("dim index self_sym_sizes"),
    batch: Batching::Rule(batch_views::index_select),
    ..OP
};

/// The index, the dimension and a matching source, for `index_add` and `index_reduce`.
fn prepared(c: &Call, out: &Tensor, name: &str) -> Result<(usize, Tensor, Tensor)> {
    let (source, index) = (c.tensor("source")?, vector(c, name)?);
    let dim = c.dim("dim");
    if out.dtype() != source.dtype() {
        return Err(Error::runtime(format!(
            "{name}(): self ({}) and source ({}) must have the same scalar type",
            out.dtype().scalar_type_name(),
            source.dtype().scalar_type_name()
        )));
    }
    if source.ndim() != out.ndim() {
        if source.ndim() == 0 {
            return Err(Error::index("Dimension specified as 0 but tensor has no dimensions"));
        }
        return Err(shape_mismatch(out, source));
    }
    let have = source.shape().get(dim).copied().unwrap_or(1);
    if have != index.numel() {
        return Err(Error::runtime(format!(
            "{name}(): Number of indices ({}) should be equal to source.size(dim): ({have}), for dim: {dim}",
            index.numel()
        )));
    }
    if source.shape() != &*with_dim(out.shape(), dim, index.numel()) {
        return Err(shape_mismatch(out, source));
    }
    Ok((dim, unalias(&index, out)?, unalias(source, out)?))
}

#[cold]
fn shape_mismatch(out: &Tensor, source: &Tensor) -> Error {
    Error::runtime(format!(
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {} source.shape = {}",
        Show(out.shape()),
        Show(source.shape())
    ))
}

/// PyTorch's errors for indices out of bounds, whose message and class depend on the rank.
fn in_bounds(e: Error, index: &Tensor, out: &Tensor, dim: usize) -> Error {
    let (n, list) =
        (out.shape().get(dim).copied().unwrap_or(1) as i64, crate::ops::support::host_read::int_list(index));
    match list.ok().and_then(|l| l.into_iter().find(|i| !(0..n).contains(i))) {
        Some(i) if out.ndim() > 1 => {
            Error::runtime(format!("index {i} is out of bounds for dimension 0 with size {n}"))
        }
        _ => e,
    }
}

fn run_add(c: &Call, out: &[Tensor]) -> Result<()> {
    let (dim, index, source) = prepared(c, &out[0], "index_add_")?;
    c.scalar("alpha")?.check_fits(out[0].dtype())?;
    if source.device().is_gpu() {
        return gpu::index_add(&out[0].gpu_view()?, dim, &index.gpu_view()?, &source.gpu_view()?, c.float("alpha")?);
    }
    let (o, i, s) = (out[0].cpu_view()?, index.cpu_view()?, source.cpu_view()?);
    let added = index::index_add(o, dim, i, s, c.scalar("alpha")?);
    added.map_err(|e| in_bounds(e, &index, &out[0], dim))
}

pub static INDEX_ADD: Op = Op {
    sig: sig("index_add(Tensor self, Dim dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor"),
    doc: "Adds slice `i` of `source`, times `alpha`, to slice `index[i]` of `self`; indices may repeat.",
    forms: FMIO,
    body: kernel_into(run_add, Some(run_add)),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[
        d(0, 0, |c| c.g()),
        d(3, A2, |c| {
            let picked = INDEX_SELECT.call((c.g_times(4), c.int("dim"), c.arg(2)));
            picked.reshape(&c.sizes(3))
        }),
    ]),
    samples: &[
        "f32[3,2], 0, i64[2](= 2, 0), f32[2,2]",
        "f32[4], 0, i64[3](= 1, 1, 3), f32[3], alpha=2",
        "i64[3], 0, i64[1](= 0), i64[1]",
        "f32[2,3], -1, i64[2](= 0, 2), f32[2,2]",
    ],
    errors: &[
        ("f32[3], 0, i64[1](= 3), f32[1]", "IndexError", "index out of range in self"),
        (
            "f32[3], 0, i64[2](= 0, 1), f32[1]",
            "RuntimeError",
            "Number of indices (2) should be equal to source.size(dim)",
        ),
        ("f32[3], 0, i64[1](= 0), f64[1]", "RuntimeError", "must have the same scalar type"),
    ],
    keeps: Some("alpha dim index"),
    batch: Batching::ShiftWith(2),
    ..OP
};

/// The checks of `index_copy`.
fn copied(c: &Call, out: &Tensor) -> Result<(usize, Tensor, Tensor)> {
    let (index, source) = (c.tensor("index")?, c.tensor("source")?);
    let dim = c.dim("dim");
    if index.dtype() != crate::dtype::DType::I64 {
        return Err(Error::runtime(format!(
            "index_copy_(): Expected a long tensor for index, but got {}",
            index.dtype().scalar_type_name()
        )));
    }
    if out.dtype() != source.dtype() {
        return Err(Error::runtime(format!(
            "index_copy_(): self and source expected to have the same dtype, but got (self) {} and (source) {}",
            out.dtype().scalar_type_name(),
            source.dtype().scalar_type_name()
        )));
    }
    let n = index.numel();
    if index.ndim() > 1 {
        return Err(Error::index(format!("index_copy_(): Index should have dimension 1 or 0 (got {})", index.ndim())));
    }
    if source.ndim() == 0 && n != 1 {
        return Err(Error::index(format!(
            "index_copy_(): When source is scalar, index should have one element (got {n})"
        )));
    }
    if source.ndim() > 0 && out.ndim() > 0 && source.ndim() != out.ndim() {
        return Err(Error::index(format!(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source dimensionality \
             ({}), destination dimensionality ({})",
            source.ndim(),
            out.ndim()
        )));
    }
    let slice = |t: &Tensor| t.shape().iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, &n)| n).collect::<Dims>();
    if slice(out) != slice(source) {
        return Err(Error::runtime(format!(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {} at dimension {dim} and source slice shape: {} at dimension {}.",
            spaced(&slice(out)),
            spaced(&slice(source)),
            if source.ndim() == 0 { 0 } else { dim }
        )));
    }
    if source.ndim() == 0 {
        let want = with_dim(out.shape(), dim, n);
        return Ok((dim, unalias(index, out)?, unalias(&super::mask::broadcast_view(source, &want), out)?));
    }
    if source.size(dim) != n {
        return Err(Error::index(format!(
            "index_copy_(): Number of indices ({n}) should be equal to source.size(dim) ({})",
            source.size(dim)
        )));
    }
    Ok((dim, unalias(index, out)?, unalias(source, out)?))
}

/// A shape as this one message prints it.
fn spaced(shape: &[usize]) -> String {
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
}

fn run_copy(c: &Call, out: &[Tensor]) -> Result<()> {
    let (dim, index, source) = copied(c, &out[0])?;
    let out = match out[0].ndim() < source.ndim() {
        true => out[0].with_layout(out[0].layout().unsqueeze(0)),
        false => out[0].clone(),
    };
    if source.device().is_gpu() {
        return gpu::index_copy(&out.gpu_view()?, dim, &index.gpu_view()?, &source.gpu_view()?);
    }
    let (o, i, s) = (out.cpu_view()?, index.cpu_view()?, source.cpu_view()?);
    index::index_copy(o, dim, i, s).map_err(|e| Error::new(e.class(), format!("index_copy_(): {}", e.message())))
}

pub static INDEX_COPY: Op = Op {
    sig: sig("index_copy(Tensor self, Dim dim, Tensor index, Tensor source) -> Tensor"),
    doc: "Writes slice `i` of `source` over slice `index[i]` of `self`.",
    forms: FMIO,
    body: kernel_into(run_copy, Some(run_copy)),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[
        d(0, A2, |c| INDEX_FILL.call((c.g(), c.int("dim"), c.arg(2), 0))),
        d(3, A2, |c| INDEX_SELECT.call((c.g(), c.int("dim"), c.arg(2))).reshape(&c.sizes(3))),
    ]),
    samples: &[
        "f32[3,2], 0, i64[2](= 2, 0), f32[2,2]",
        "f32[2,3], 1, i64[1](= 1), f32[2,1]",
        "i64[3], 0, i64[1](= 0), i64[1]",
    ],
    errors: &[
        ("f32[3], 0, i64[1](= 3), f32[1]", "IndexError", "index 3 is out of bounds for dimension 0 with size 3"),
        (
            "f32[3], 0, i64[2](= 0, 1), f32[1]",
            "IndexError",
            "Number of indices (2) should be equal to source.size(dim)",
        ),
    ],
    keeps: Some("dim index"),
    batch: Batching::ShiftWith(2),
    ..OP
};

fn run_fill(c: &Call, out: &[Tensor]) -> Result<()> {
    let index = vector(c, "index_fill_")?;
    let dim = c.dim("dim");
    let value = fill_value(c, &out[0])?;
    if out[0].device().is_gpu() {
        return gpu::index_fill(&out[0].gpu_view()?, dim, &index.gpu_view()?, value);
    }
    index::index_fill(out[0].cpu_view()?, dim, index.cpu_view()?, value)
}

/// The number to fill with, from a number or a 0-d tensor.
pub(crate) fn fill_value(c: &Call, out: &Tensor) -> Result<Scalar> {
    let value = match c.argument("value") {
        Value::Scalar(s) => *s,
        v => match v.as_tensor() {
            Some(t) if t.ndim() == 0 => crate::ops::support::host_read::item(t)?,
            t => {
                let n = t.map_or(0, |t| t.ndim());
                return Err(Error::runtime(format!(
                    "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {n} dimension(s)."
                )));
            }
        },
    };
    if matches!(value, Scalar::Complex(..)) && !out.dtype().is_complex() {
        return Err(Error::runtime("index_fill_(): Converting complex Scalar to non-complex type is not supported"));
    }
    value.check_fits(out.dtype())?;
    Ok(value)
}

const MANY: Option<Expanded> = Some(Expanded {
    warning: Some(
        "Use of index_fill_ on expanded tensors is deprecated. Please clone() the tensor before performing this \
              operation. This also applies to advanced indexing e.g. tensor[mask] = scalar",
    ),
    once: |_| Ok(None),
});

pub static INDEX_FILL: Op = Op {
    sig: sig("index_fill.int_Scalar(Tensor self, Dim dim, Tensor index, Scalar value) -> Tensor"),
    doc: "Writes a number over the slices of a dimension that an index names. Negative indices count from the end.",
    forms: FMI,
    body: kernel_into_clone(run_fill, Some(run_fill)),
    vjp: Vjp::Each(&[d(0, A2, |c| INDEX_FILL.call((c.g(), c.int("dim"), c.arg(2), 0)))]),
    samples: &["f32[3,2], 0, i64[2](= 2, 0), 1.5", "f32[2,3], 1, i64[1](= -1), -1", "i64[3], 0, i64[1](= 0), 7"],
    errors: &[
        ("f32[3], 0, i64[1](= 3), 1", "IndexError", "index 3 is out of bounds for dimension 0 with size 3"),
        ("f16[3], 0, i64[1](= 0), 7e4", "RuntimeError", "value cannot be converted to type c10::Half without overflow"),
    ],
    expanded: MANY,
    keeps: Some("dim index"),
    batch: Batching::ShiftWith(2),
    ..OP
};

pub static INDEX_FILL_TENSOR: Op = Op {
    sig: sig("index_fill.int_Tensor(Tensor self, Dim dim, Tensor index, Tensor value) -> Tensor"),
    doc: "Writes the number of a 0-d tensor over the slices of a dimension that an index names.",
    forms: FMI,
    body: kernel_into_clone(run_fill, Some(run_fill)),
    vjp: Vjp::Each(&[
        d(0, A2, |c| INDEX_FILL.call((c.g(), c.int("dim"), c.arg(2), 0))),
        d(3, A2, |c| {
            let kept = INDEX_FILL.call((c.zeros(0), c.int("dim"), c.arg(2), 1)).equals(0);
            c.g().zero_where(kept).sum_all()
        }),
    ]),
    node: "IndexFillBackward1",
    samples: &["f32[3,2], 0, i64[2](= 2, 0), f32[]"],
    errors: &[("f32[3], 0, i64[1](= 0), f32[1]", "RuntimeError", "only supports a 0-dimensional value tensor")],
    expanded: MANY,
    ..OP
};

fn run_reduce(c: &Call, out: &[Tensor]) -> Result<()> {
    let (out, (dim, index, source)) = (&out[0], prepared(c, &out[0], "index_reduce_")?);
    let Reduce(mode) = c.choice("reduce");
    if out.device().is_gpu() {
        // The index of a slice applies to each of its elements.
        let (out, source) = (at_least_1d(out), at_least_1d(&source));
        let along = |d: usize| if d == dim { index.strides().first().copied().unwrap_or(0) } else { 0 };
        let strides: Dims = (0..source.ndim()).map(along).collect();
        let each = gpu::View { shape: source.shape(), strides: &strides, ..index.gpu_view()? };
        return scatter_gpu(&out, dim, &each, &gpu::Input::View(source.gpu_view()?), mode, c.flag("include_self"));
    }
    index::index_reduce(out.cpu_view()?, dim, index.cpu_view()?, source.cpu_view()?, mode, c.flag("include_self"))
}

fn unknown_reduce(_: &Op, given: &str) -> Error {
    Error::runtime(format!("index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {given}."))
}

pub static INDEX_REDUCE: Op = Op {
    sig: sig(
        "index_reduce(Tensor self, Dim dim, Tensor index, Tensor source, str{prod|mean|amax|amin|max|min} reduce, *, bool include_self=True) -> Tensor",
    ),
    unknown_choice: unknown_reduce,
    doc: "Combines slice `i` of `source` with slice `index[i]` of `self`: 'prod', 'mean', 'amax' or 'amin'.",
    forms: FMIO,
    body: kernel_into(run_reduce, Some(run_reduce)),
    warns_once: true,
    warns: Some(|_| Some("index_reduce() is in beta and the API may change at any time.".into())),
    vjp: Vjp::Joint(Joint { args: &[0, 3], saves: A0 | A2 | A3 | OUT0, formula: super::scatter_grad::reduced }),
    samples: &[
        "f32[3,2], 0, i64[3](= 0, 2, 0), f32[3,2], 'prod'",
        "f32[2,3], -1, i64[2](= 1, 1), f32[2,2], 'mean'",
        "f32[3,2], 0, i64[2](= 2, 2), f32[2,2], 'amin'",
        "f32[3], 0, i64[3](= 0, 2, 0), f32[3], 'mean', include_self=False",
        "f32[], 0, i64[1](= 0), f32[], 'amax'",
        "i64[2], 0, i64[2](= 0, 0), i64[2](= -3, -4), 'mean', include_self=False",
        "f32[3], 0, i64[2](= 0, 0), f32[2], 'amax', include_self=False",
    ],
    errors: &[("f32[3], 0, i64[1](= 0), f32[1], 'sum'", "RuntimeError", "reduce")],
    ..OP
};
