//! Advanced indexing: `x[i, :, j]` with index tensors and masks, reads and writes.
//!
//! Python's `x[...]` turns numbers, slices, None and Ellipsis into views; the rest arrives here as one optional index
//! for each dimension. Masks become the indices of their true elements, then all indices broadcast.

use super::gather_scatter::unalias;
use super::mask::{NONZERO, broadcast_view, fill_where};
use crate::autograd::diagnostics;
use crate::cpu::index;
use crate::cpu::view::View;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::gpu;
use crate::layout::{Dims, Layout, broadcast, result_strides};
use crate::op::*;
use crate::ops::support::batch_views;
use crate::ops::view::reshape::EXPAND;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&INDEX, &INDEX_KERNEL, &INDEX_PUT];

type Indices = Vec<Option<Tensor>>;

/// The indices in the kernels' form: int64, broadcast to one shape, on the device of `t`, one for each dimension.
fn prepare(t: &Tensor, given: &Value) -> Result<Indices> {
    let Value::Tensors(given) = given else { return Err(Error::internal("index: expected a list of tensors")) };
    let mut list = Indices::new();
    for index in given {
        match index {
            None => list.push(None),
            Some(i) if matches!(i.dtype(), DType::Bool | DType::U8) => push_mask(t, i, &mut list)?,
            Some(i) if i.dtype() == DType::I64 => list.push(Some(i.clone())),
            Some(i) if i.dtype() == DType::I32 => list.push(Some(Term::from(i).to_dtype(DType::I64).ok()?)),
            Some(_) => return Err(Error::index("tensors used as indices must be long, int, byte or bool tensors")),
        }
    }
    if list.len() > t.ndim() {
        return Err(Error::index(format!(
            "too many indices for tensor of dimension {} (got {})",
            t.ndim(),
            list.len()
        )));
    }
    let place = |i: Tensor| Term(Ok(i)).to_device(t.device()).ok();
    aligned(&list)?.into_iter().map(|i| i.map(place).transpose()).collect()
}

/// The indices broadcast to one shape.
pub(crate) fn aligned(list: &Indices) -> Result<Indices> {
    let mut shape = Dims::new();
    for i in list.iter().flatten() {
        shape = broadcast(&shape, i.shape()).map_err(|_| no_broadcast(list))?;
    }
    let wide = |i: &Tensor| {
        if i.shape() == shape.as_slice() { Ok(i.clone()) } else { EXPAND.call((i, shape.as_slice())).ok() }
    };
    list.iter().map(|i| i.as_ref().map(wide).transpose()).collect()
}

/// Writes `t[list]` to `out`, which has its shape.
pub(crate) fn read(t: &Tensor, list: &Indices, out: &Tensor) -> Result<()> {
    if out.device().is_gpu() {
        return gpu::index_get(&t.gpu_view()?, &gpu_views(list)?, &out.gpu_view()?);
    }
    Ok(index::index_get(t.cpu_view()?, &views(list)?, out.cpu_view()?)?)
}

/// A mask replaces as many dimensions as it has.
fn push_mask(t: &Tensor, mask: &Tensor, list: &mut Indices) -> Result<()> {
    if mask.dtype() == DType::U8 {
        diagnostics::warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")?;
    }
    let first = list.len();
    for (k, &n) in mask.shape().iter().enumerate() {
        if t.shape().get(first + k) != Some(&n) {
            if first + k >= t.ndim() {
                return Err(Error::index(format!("too many indices for tensor of dimension {}", t.ndim())));
            }
            return Err(Error::index(format!(
                "The shape of the mask {} at index {k} does not match the shape of the indexed tensor {} at index {}",
                Show(mask.shape()),
                Show(t.shape()),
                first + k
            )));
        }
    }
    let rows = NONZERO.call((mask,)).ok()?;
    for d in 0..mask.ndim() {
        list.push(Some(Term::from(&rows).select(1, d as i64).ok()?));
    }
    Ok(())
}

#[cold]
fn no_broadcast(list: &Indices) -> Error {
    let shapes: Vec<String> = list.iter().flatten().map(|t| Show(t.shape()).to_string()).collect();
    Error::index(format!(
        "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
        shapes.join(", ")
    ))
}

fn views(list: &Indices) -> Result<Vec<Option<View<'_>>>> {
    list.iter().map(|i| i.as_ref().map(|t| t.cpu_view()).transpose()).collect()
}

fn gpu_views(list: &Indices) -> Result<Vec<Option<gpu::View<'_>>>> {
    list.iter().map(|i| i.as_ref().map(|t| t.gpu_view()).transpose()).collect()
}

/// The shape of `t[indices]`.
fn result_shape(t: &Tensor, list: &Indices) -> Dims {
    let indexed: Vec<bool> = list.iter().map(Option::is_some).collect();
    let shape = list.iter().flatten().next().map_or(&[][..], |i| i.shape());
    index::index_shape(t.shape(), &indexed, shape)
}

/// The layout of `t[indices]`, with the stride order of `t` and then of the indices.
fn result_layout(t: &Tensor, list: &Indices) -> Layout {
    let shape = result_shape(t, list);
    if t.is_contiguous() && list.iter().flatten().all(|i| i.is_contiguous()) {
        return Layout::of(shape);
    }
    let indexed: Vec<bool> = list.iter().map(Option::is_some).collect();
    let n = shape.len() + indexed.iter().filter(|&&b| b).count() - t.ndim();
    // Bounded by the number of dimensions.
    let (none, still) = (vec![0; n], vec![0; t.ndim()]);
    let of_t = index::index_shape(t.strides(), &indexed, &none);
    let of_indices = list.iter().flatten().map(|i| index::index_shape(&still, &indexed, i.strides()));
    let operands: Vec<Dims> = [of_t].into_iter().chain(of_indices).collect();
    let operands: Vec<&[usize]> = operands.iter().map(|s| s.as_slice()).collect();
    Layout { strides: result_strides(&shape, &operands), shape, offset: 0 }
}

fn whole_list(c: &Call) -> Result<Indices> {
    match c.argument("indices") {
        Value::Tensors(list) => Ok(list.clone()),
        _ => Err(Error::internal("index: expected a list of tensors")),
    }
}

pub static INDEX: Op = Op {
    sig: sig("index(Tensor self, Tensor?[] indices) -> Tensor"),
    doc: "`self[indices]`: one optional index tensor for each leading dimension; masks stand for as many dimensions as they have.",
    forms: HIDDEN,
    body: decompose(|c| {
        let t = c.tensor(0)?;
        let list = prepare(t, c.argument("indices"))?;
        if list.iter().all(Option::is_none) {
            // A 0-d mask adds a dimension of size one or zero.
            return mask_of_nothing(t, c.argument("indices"));
        }
        INDEX_KERNEL.calls((t, list))
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[3,4], [i64[2](= 2, 0)]",
        "f32[3,4], [i64[2](= -1, 0), i64[2](= 1, 1)]",
        "f32[2,3,2], [None, i64[2,2](0..3)]",
        "f32[2,3], [b8[2,3]]",
        "f32[3,2], [b8[3], i64[1](= 1)]",
    ],
    errors: &[
        ("f32[3], [i64[1](= 5)]", "IndexError", "index 5 is out of bounds for dimension 0 with size 3"),
        ("f32[3], [f32[1]]", "IndexError", "tensors used as indices must be long, int, byte or bool tensors"),
        (
            "f32[3], [b8[4]]",
            "IndexError",
            "The shape of the mask [4] at index 0 does not match the shape of the indexed tensor [3] at index 0",
        ),
        (
            "f32[3,3], [i64[2](= 0, 1), i64[3](= 0, 1, 2)]",
            "IndexError",
            "could not be broadcast together with shapes [2], [3]",
        ),
    ],
    ..OP
};

fn mask_of_nothing(t: &Tensor, given: &Value) -> Result<Outputs> {
    // The positions in a vector of one element that is true where all of them are.
    let mut all = given.tensors().map(|m| Term::from(m).ne_(0).reshape(&[1]).to_device(t.device()));
    let first = all.next().ok_or_else(|| Error::index("at least one index tensor is needed"))?;
    let index = NONZERO.call((all.fold(first, Term::both),)).select(1, 0).ok()?;
    INDEX_KERNEL.calls((Term::from(t).unsqueeze(0), vec![Some(index)]))
}

/// Checks the indices from `prepare`.
fn check_prepared(t: &Tensor, list: &Indices) -> Result<()> {
    let first = list.iter().flatten().next().ok_or_else(|| Error::index("at least one index tensor is needed"))?;
    if list.len() > t.ndim() {
        return Err(Error::index(format!("too many indices for tensor of dimension {}", t.ndim())));
    }
    if list.iter().flatten().any(|i| i.dtype() != DType::I64 || i.shape() != first.shape()) {
        return Err(Error::index("indices of dtype int64 and of one shape are needed"));
    }
    Ok(())
}

pub static INDEX_KERNEL: Op = Op {
    sig: sig("_index(Tensor self, Tensor?[] indices) -> Tensor"),
    doc: "`self[indices]` with int64 indices of one shape.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let (t, list) = (c.tensor(0)?, whole_list(c)?);
            check_prepared(t, &list)?;
            Ok(smallvec![Spec { layout: result_layout(t, &list), dtype: t.dtype(), device: t.device() }])
        },
        |c, out| read(c.tensor(0)?, &whole_list(c)?, &out[0]),
        Some(|c, out| read(c.tensor(0)?, &whole_list(c)?, &out[0])),
    ),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, A1, |c| INDEX_PUT.call((c.zeros(0), c.argument("indices").clone(), c.g(), true)))]),
    keeps: Some("indices self_sym_sizes"),
    samples: &["f32[3,4], [i64[2](= 2, 0)]", "f32[3,4], [None, i64[2](= 2, 0)]"],
    errors: &[("f32[3], [i64[1](= 5)]", "IndexError", "index 5 is out of bounds for dimension 0 with size 3")],
    batch: Batching::Rule(batch_views::index),
    ..OP
};

/// The mask of `out[mask] = number` on the CPU, if its shape matches and it does not overlap the output, nor the output
/// itself.
fn lone_mask<'a>(c: &'a Call, out: &Tensor, value: &Tensor) -> Option<&'a Tensor> {
    let Value::Tensors(list) = c.argument("indices") else { return None };
    let [Some(mask)] = list.as_slice() else { return None };
    let plain = mask.dtype() == DType::Bool && mask.ndim() > 0 && value.ndim() == 0 && !c.flag("accumulate");
    let here = [out, mask, value].iter().all(|t| !t.device().is_gpu()) && !mask.storage().same(out.storage());
    let fits = value.dtype() == out.dtype() && out.shape().starts_with(mask.shape());
    (plain && here && fits && !out.layout().has_internal_overlap()).then_some(mask)
}

/// The values in the output's dtype, which must be theirs; as in PyTorch, a one-element value for a mask is a number.
fn converted(c: &Call, out: &Tensor) -> Result<Tensor> {
    let values = c.tensor("values")?;
    if values.dtype() == out.dtype() {
        return Ok(values.clone());
    }
    let mut indices = c.argument("indices").tensors();
    let mask = indices.next().is_some_and(|i| matches!(i.dtype(), DType::Bool | DType::U8)) && indices.next().is_none();
    if values.numel() == 1 && mask && !c.flag("accumulate") {
        let number = crate::ops::support::host_read::item(values)?;
        number.check_fits(out.dtype())?;
        return Tensor::scalar(number, out.dtype(), out.device());
    }
    Err(Error::runtime(format!(
        "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
        out.dtype().scalar_type_name(),
        values.dtype().scalar_type_name()
    )))
}

/// The values broadcast to the shape of the elements written.
fn fitting(values: &Tensor, shape: &[usize]) -> Result<Tensor> {
    if !broadcast(shape, values.shape()).is_ok_and(|s| s.as_slice() == shape) {
        return Err(Error::runtime(format!(
            "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {}",
            Show(values.shape()),
            Show(shape)
        )));
    }
    Ok(broadcast_view(values, shape))
}

fn put(c: &Call, out: &[Tensor]) -> Result<()> {
    let out = &out[0];
    let values = c.tensor("values")?;
    if let Some(mask) = lone_mask(c, out, values) {
        return fill_where(out, mask, values.element(values.layout().offset)?);
    }
    let list = prepare(out, c.argument("indices"))?;
    let values = &converted(c, out)?;
    if out.ndim() == 0 && c.argument("indices").tensors().next().is_some() {
        return Err(Error::index("too many indices for tensor of dimension 0 (got 1)"));
    }
    if list.iter().all(Option::is_none) {
        let skips = c
            .argument("indices")
            .tensors()
            .any(|m| crate::ops::support::host_read::item(m).is_ok_and(|s| !s.to_bool()));
        return if skips { Ok(()) } else { out.copy_raw(&unalias(&fitting(values, out.shape())?, out)?) };
    }
    let shape = result_shape(out, &list);
    let values = unalias(&fitting(values, &shape)?, out)?;
    let list: Result<Indices> = list.into_iter().map(|i| i.map(|i| unalias(&i, out)).transpose()).collect();
    let list = list?;
    if out.device().is_gpu() {
        let values = Term(Ok(values)).to_device(out.device()).ok()?;
        return gpu::index_put(&out.gpu_view()?, &gpu_views(&list)?, &values.gpu_view()?, c.flag("accumulate"));
    }
    Ok(index::index_put(out.cpu_view()?, &views(&list)?, values.cpu_view()?, c.flag("accumulate"))?)
}

pub static INDEX_PUT: Op = Op {
    sig: sig("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor"),
    doc: "`self[indices] = values`, or `+=` if `accumulate`, which adds up where indices repeat. Values broadcast.",
    forms: FMI,
    body: Body::Kernel(Kernel {
        updates_self: true,
        // Indices may come from the CPU.
        any_device: true,
        ..Kernel::of(|c| Ok(smallvec![Spec::following(c.tensor(0)?)]), put, Some(put))
    }),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[
        d(0, A1, |c| match c.flag("accumulate") {
            true => c.g(),
            false => INDEX_PUT.call((c.g(), c.argument("indices").clone(), Term(zero(c)))),
        }),
        d(2, A1, |c| INDEX.call((c.g(), c.argument("indices").clone()))),
    ]),
    samples: &[
        "f32[3,4], [i64[2](= 2, 0)], f32[2,4]",
        "f32[3,4], [i64[2](= 2, 2), i64[2](= 1, 1)], f32[2], True",
        "f32[2,3], [b8[2,3]], f32[]",
    ],
    errors: &[
        ("f32[3], [i64[1](= 5)], f32[1]", "IndexError", "index 5 is out of bounds for dimension 0 with size 3"),
        ("f32[3], [i64[2](= 0, 1)], f32[3]", "RuntimeError", "cannot be broadcast to indexing result of shape [2]"),
        ("f32[3], [i64[1](= 0)], f64[1]", "RuntimeError", "source and destination dtypes match"),
        ("f32[3], [], f32[4]", "RuntimeError", "cannot be broadcast to indexing result of shape [3]"),
        ("f32[], [b8[](= 1)], f32[]", "IndexError", "too many indices for tensor of dimension 0"),
    ],
    expanded: Some(Expanded {
        warning: Some(
            "Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor before performing this \
                  operation. This also applies to advanced indexing e.g. tensor[indices] = tensor",
        ),
        once: |_| Ok(None),
    }),
    batch: Batching::Rule(batch_views::index_put),
    ..OP
};

fn zero(c: &VjpCtx) -> Result<Tensor> {
    let f = c.meta_of(0);
    Tensor::zeros(&[], f.dtype, f.device)
}
