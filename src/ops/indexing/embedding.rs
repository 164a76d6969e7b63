//! Embedding lookup with its gradient, and one_hot.

use super::gather_scatter::SCATTER_VALUE;
use super::index_select::INDEX_COPY;
use crate::autograd::{GradGuard, opaque};
use crate::cpu::index::{index_add, index_select};
use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::{Layout, to_shape};
use crate::op::*;
use crate::ops::reduce::norm::VECTOR_NORM;
use crate::ops::support::batch_views;
use crate::rt::reserve::filled;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&EMBEDDING, &F_EMBEDDING, &EMBEDDING_BACKWARD, &ONE_HOT];

fn infer(c: &Call) -> Result<Specs> {
    let (w, at) = (c.tensor("weight")?, c.tensor("indices")?);
    if w.ndim() != 2 {
        return Err(Error::runtime("'weight' must be 2-D"));
    }
    check_indices(at)?;
    let shape: Vec<usize> = at.shape().iter().copied().chain([w.size(1)]).collect();
    Ok(Spec::one(&shape, w.dtype(), w.device()))
}

fn check_indices(at: &Tensor) -> Result<()> {
    if !matches!(at.dtype(), DType::I64 | DType::I32) {
        return Err(Error::runtime(format!(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.{}Tensor instead (while checking arguments for embedding)",
            at.dtype().scalar_type_name()
        )));
    }
    Ok(())
}

/// Indices as a dense vector of int64.
fn flat(t: &Tensor) -> Result<Tensor> {
    let t = t.dense_copy(DType::I64)?;
    let layout = Layout { offset: t.layout().offset, ..Layout::contiguous(&[t.numel()]) };
    Ok(t.with_layout(layout))
}
/// A dense tensor viewed as rows of `width`.
fn as_rows(t: &Tensor, width: usize) -> Result<Tensor> {
    let t = t.dense_copy(t.dtype())?;
    let rows = t.shape().split_last().map_or(0, |(_, rows)| rows.iter().product());
    let layout = Layout { offset: t.layout().offset, ..Layout::contiguous(&[rows, width]) };
    Ok(t.with_layout(layout))
}

fn lookup(c: &Call, out: &[Tensor]) -> Result<()> {
    let (w, at) = (c.tensor("weight")?, flat(c.tensor("indices")?)?);
    let out = as_rows(&out[0], w.size(1))?;
    index_select(w.cpu_view()?, 0, at.cpu_view()?, out.cpu_view()?)
}

/// A GPU tensor reshaped without history.
fn gpu_rows(t: &Tensor, sizes: &[i64]) -> Result<Tensor> {
    Term::from(t).reshape(sizes).ok()
}

fn lookup_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let (w, at) = (c.tensor("weight")?, gpu_rows(c.tensor("indices")?, &[-1])?);
    let rows = [at.numel() as i64, w.size(1) as i64];
    gpu::index_select(&w.gpu_view()?, 0, &at.gpu_view()?, &gpu_rows(&out[0], &rows)?.gpu_view()?)
}

pub static EMBEDDING: Op = Op {
    sig: sig(
        "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    ),
    doc: "The rows of `weight` at `indices`. The row `padding_idx` gets no gradient. With `sparse` the gradient is a sparse tensor of the rows that were looked up.",
    forms: F,
    body: kernel(infer, lookup, Some(lookup_gpu)),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, A1, |c| by_rows(c, c.g()))]),
    samples: &[
        "f32[4,3], i64[2,2](0..4)",
        "f32[4,3], i64[5](0..4), 1",
        "f32[4,3], i32[3](0..4)",
        "f32[4,3], i64[](0..4)",
        "f32[3,2], i64[4](=0,1,1,0), scale_grad_by_freq=True",
    ],
    errors: &[
        ("f32[4,3], i64[1](=7)", "IndexError", "index out of range"),
        ("f32[4], i64[1](0..4)", "RuntimeError", "must be 2-D"),
        ("f32[4,3], f32[2]", "RuntimeError", "scalar types: Long, Int"),
    ],
    reference: "x0[x1]",
    keeps: Some("indices padding_idx scale_grad_by_freq sparse weight_sym_argsize_0"),
    batch: Batching::Rule(batch_views::embedding),
    ..OP
};

/// The gradient of the table, argument 0, from those of the rows that argument 1 names. With `sparse` it has these rows alone.
pub(crate) fn by_rows(c: &VjpCtx, slopes: Term) -> Term {
    let (n, pad, by_frequency) = (c.shape(0)[0] as i64, c.int("padding_idx"), c.flag("scale_grad_by_freq"));
    if c.flag("sparse") && by_frequency {
        return Error::runtime("scale_grad_by_freq is not supported with sparse gradients").into();
    }
    if c.flag("sparse")
        && let (Some(values), Some(index)) = (slopes.get(), c.arg(1).get())
        && let Some(grad) = opaque::of_rows(index, values, n, pad)
    {
        return Term(grad);
    }
    EMBEDDING_BACKWARD.call((slopes, c.arg(1), n, pad, by_frequency))
}

pub static EMBEDDING_BACKWARD: Op = Op {
    sig: sig(
        "_embedding_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx, bool scale_grad_by_freq=False) -> Tensor",
    ),
    doc: "The gradient of `embedding` by its weight: the gradients of equal indices summed.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let (g, at) = (c.tensor("grad")?, c.tensor("indices")?);
            check_indices(at)?;
            let width = match g.shape().split_last() {
                Some((width, rows)) if rows == at.shape() => *width,
                _ => return Err(Error::runtime("the gradient must have one row for each index")),
            };
            Ok(Spec::one(&to_shape(&[c.int("num_weights")?, width as i64])?, g.dtype(), g.device()))
        },
        scatter_rows,
        Some(scatter_rows_gpu),
    ),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, A1, |c| {
        let rows = EMBEDDING.call((c.g(), c.arg(1)));
        let pad = c.int("padding_idx");
        if pad < 0 { rows } else { rows.zero_where(c.arg(1).equals(pad).unsqueeze(-1)) }
    })]),
    samples: &["f32[3,2], i64[3](0..4), 4, -1", "f32[3,2], i64[3](0..4), 4, 1"],
    errors: &[("f32[1,2], i64[1](=7), 4, -1", "IndexError", "index out of range")],
    batch: Batching::Rule(crate::ops::support::batch_layers::embedding_backward),
    ..OP
};

fn scatter_rows(c: &Call, out: &[Tensor]) -> Result<()> {
    let (out, at) = (&out[0], flat(c.tensor("indices")?)?);
    out.fill_raw(Scalar::Int(0))?;
    if at.numel() == 0 || out.numel() == 0 {
        return Ok(());
    }
    let mut g = as_rows(c.tensor("grad")?, out.size(1))?;
    if c.flag("scale_grad_by_freq") {
        g = by_frequency(&g, &at, out.size(0))?;
    }
    index_add(out.cpu_view()?, 0, at.cpu_view()?, g.cpu_view()?, Scalar::Int(1))?;
    let pad = c.int("padding_idx")?;
    if pad >= 0 && (pad as usize) < out.size(0) {
        out.with_layout(out.layout().select(0, pad as usize)).fill_raw(Scalar::Int(0))?;
    }
    Ok(())
}

fn scatter_rows_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let (out, at) = (&out[0], gpu_rows(c.tensor("indices")?, &[-1])?);
    out.fill_raw(Scalar::Int(0))?;
    if at.numel() == 0 || out.numel() == 0 {
        return Ok(());
    }
    let mut g = gpu_rows(c.tensor("grad")?, &[at.numel() as i64, out.size(1) as i64])?;
    if c.flag("scale_grad_by_freq") {
        let counts = crate::ops::order::search_gpu::tally(&at, None, out.size(0), DType::I32)?;
        g = { (Term::from(&g) / EMBEDDING.call((Term::from(&counts).unsqueeze(-1), &at))).to_dtype(g.dtype()).ok() }?;
    }
    gpu::index_add(&out.gpu_view()?, 0, &at.gpu_view()?, &g.gpu_view()?, 1.0)?;
    let pad = c.int("padding_idx")?;
    if pad >= 0 && (pad as usize) < out.size(0) {
        out.with_layout(out.layout().select(0, pad as usize)).fill_raw(Scalar::Int(0))?;
    }
    Ok(())
}

/// Each row divided by the number of occurrences of its index.
fn by_frequency(g: &Tensor, at: &Tensor, n: usize) -> Result<Tensor> {
    let mut counts = filled(0f64, n)?;
    let place = |i: usize| -> Result<usize> {
        let k = at.element(at.layout().offset + i)?.to_i64();
        usize::try_from(k).ok().filter(|k| *k < n).ok_or_else(|| Error::index("index out of range in self"))
    };
    for i in 0..at.numel() {
        counts[place(i)?] += 1.0;
    }
    let mut scale = filled(0f64, at.numel())?;
    for (i, s) in scale.iter_mut().enumerate() {
        *s = 1.0 / counts[place(i)?];
    }
    let scale = Tensor::from_slice(&scale, &[at.numel(), 1])?;
    (Term::from(g) * Term::from(&scale).to_dtype(g.dtype())).ok()
}

pub static F_EMBEDDING: Op = Op {
    sig: sig(
        "nn.functional.embedding(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, float norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    ),
    doc: "The rows of `weight` at the indices `input`. With `max_norm`, rows that are looked up are first rescaled in place.",
    forms: F,
    body: decompose(|c| {
        let (at, w) = (c.tensor(0)?, c.tensor("weight")?);
        let n = w.shape().first().copied().unwrap_or(0) as i64;
        let pad = c.opt_int("padding_idx").unwrap_or(-1);
        if c.opt_int("padding_idx").is_some_and(|p| p < -n || p >= n) {
            return Err(Error::value("Padding_idx must be within num_embeddings"));
        }
        let pad = if pad < 0 && c.opt_int("padding_idx").is_some() { pad + n } else { pad };
        if let Some(limit) = c.opt_float("max_norm") {
            rescale(w, at, limit, c.float("norm_type")?)?;
        }
        EMBEDDING.calls((w, at, pad, c.flag("scale_grad_by_freq"), c.flag("sparse")))
    }),
    vjp: Vjp::Composite,
    samples: &["i64[2,2](0..4), f32[4,3]", "i64[5](0..4), f32[4,3], padding_idx=1"],
    errors: &[("i64[1](=7), f32[4,3]", "IndexError", "index out of range")],
    reference: "x1[x0]",
    ..OP
};

/// Scales looked-up rows whose norm exceeds `limit` down to it, in place.
pub(crate) fn rescale(w: &Tensor, at: &Tensor, limit: f64, order: f64) -> Result<()> {
    // As in PyTorch, no part of the graph that is recorded around it, and without effect on tangents.
    let _unrecorded = GradGuard::new(false);
    let w = &Term::from(w).cut().ok()?;
    let at = Term::from(at).reshape(&[-1]).to_dtype(DType::I64).ok()?;
    let rows = EMBEDDING.call((w, &at));
    let length = VECTOR_NORM.call((&rows, order, [1], true));
    let scale = length.clone().greater(limit).choose(limit * (length + 1e-7).recip(), 1.0);
    INDEX_COPY.call_inplace((w, 0, &at, rows * scale)).map(drop)
}

pub static ONE_HOT: Op = Op {
    sig: sig("nn.functional.one_hot(Tensor input, int num_classes=-1) -> Tensor"),
    doc: "A vector of zeros for each class index, with a one at the index; int64. -1: as many classes as the greatest index needs.",
    forms: F,
    body: reads_host(one_hot),
    vjp: Vjp::None("integers"),
    samples: &["i64[3](0..4), 4", "i64[2,2](0..3)", "i64[0], 3"],
    errors: &[
        ("i64[1](=-1)", "RuntimeError", "non-negative"),
        ("i64[1](=4), 3", "RuntimeError", "smaller than num_classes"),
        ("i32[2]", "RuntimeError", "LongTensor"),
        ("i64[0]", "RuntimeError", "Can not infer"),
    ],
    reference: "np.eye(num_classes if num_classes > 0 else int(x0.max()) + 1, dtype=np.int64)[x0]",
    batch: Batching::Leading,
    ..OP
};

fn one_hot(c: &Call) -> Result<Outputs> {
    let (t, asked) = (c.tensor(0)?, c.int("num_classes")?);
    if t.dtype() != DType::I64 {
        return Err(Error::runtime("one_hot is only applicable to index tensor of type LongTensor."));
    }
    if t.numel() == 0 && asked <= 0 {
        return Err(Error::runtime("Can not infer total number of classes from empty tensor."));
    }
    let [least, greatest] = match t.device().is_gpu() {
        // Without data the classes cannot be checked.
        _ if t.numel() == 0 || t.device() == Device::Meta && asked > 0 => [0, -1],
        true => crate::ops::order::search_gpu::range(t)?.map(Scalar::to_i64),
        false => {
            let at = flat(t)?;
            // SAFETY: as many int64 elements, side by side.
            let labels = unsafe { std::slice::from_raw_parts(at.ptr()?.cast::<i64>(), at.numel()) };
            labels.iter().fold([i64::MAX, i64::MIN], |[least, most], &x| [least.min(x), most.max(x)])
        }
    };
    let n = classes(least, greatest.saturating_add(1), asked)?;
    let shape: Vec<usize> = t.shape().iter().copied().chain([n]).collect();
    let zeros = Tensor::zeros(&shape, DType::I64, t.device())?;
    SCATTER_VALUE.call_inplace((&zeros, -1, Term::from(t).unsqueeze(-1), 1))?;
    Ok(smallvec::smallvec![zeros])
}

/// The number of classes, for labels from `least` on and below `needed`.
fn classes(least: i64, needed: i64, asked: i64) -> Result<usize> {
    if least < 0 {
        return Err(Error::runtime("Class values must be non-negative."));
    }
    if asked != -1 && asked < 1 {
        return Err(Error::runtime("num_classes should be positive"));
    }
    if asked != -1 && needed > asked {
        return Err(Error::runtime("Class values must be smaller than num_classes."));
    }
    Ok(if asked == -1 { needed } else { asked } as usize)
}
