//! Indices into the flattened tensor: take, put, take_along_dim.

use super::gather_scatter::{cast_raw, unalias};
use crate::cpu::index::{self, Refused, Wrong};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::{Dims, Layout, Odometer};
use crate::op::*;
use crate::ops::support::batch_views;
use crate::ops::view::reshape::{EXPAND, RESHAPE};
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&TAKE, &PUT, &TAKE_ALONG_DIM];

/// Adds each element of `g` at the position that `part` gives it in a flat tensor of `span` elements.
pub(crate) fn add_at(g: Term, part: &Layout, span: usize) -> Term {
    let mut at = Odometer::new(&part.shape, [&part.strides], 0);
    let positions = crate::rt::reserve::list((0..part.numel()).map(|_| {
        let here = at.offsets[0] + part.offset;
        at.step();
        here as i64
    }));
    let positions = match positions {
        Ok(positions) => positions,
        Err(e) => return e.into(),
    };
    let Some(t) = g.get() else { return g };
    let zeros = Term(Tensor::zeros(&[span], t.dtype(), t.device()));
    let index = Term(Tensor::from_slice(&positions, &[positions.len()])).to_device(t.device());
    super::index_select::INDEX_ADD.call((zeros, 0, index, g.reshape(&[-1])))
}

/// These ops do not accept int32.
fn exactly_long(index: &Tensor, refuse: impl FnOnce() -> Error) -> Result<Tensor> {
    if index.dtype() == DType::I64 { Ok(index.clone()) } else { Err(refuse()) }
}

/// The index as a flat list; the kernels wrap negative indices and check the others.
fn flat_index(index: &Tensor, name: &str) -> Result<Tensor> {
    let index = exactly_long(index, || {
        Error::runtime(format!(
            "{name}(): Expected a long tensor for index, but got {}",
            index.dtype().scalar_type_name()
        ))
    })?;
    Term::from(&index).reshape(&[-1]).ok()
}
/// What PyTorch says of an index that none of the elements has.
fn out_of_range(refused: Refused) -> Error {
    let Refused::Index(Wrong { index, size, .. }) = refused else { return refused.into() };
    Error::index(format!("out of range: tried to access index {index} on a tensor of {size} elements."))
}

/// A flat view of a tensor if its strides allow, else a copy.
fn flat(t: &Tensor) -> Result<Tensor> {
    let n = t.numel();
    match t.layout().view_strides(&[n]) {
        Some(strides) => Ok(t.with_layout(Layout { shape: smallvec![n], strides, offset: t.layout().offset })),
        None => Ok(cast_raw(t, t.dtype())?.with_layout(Layout::contiguous(&[n]))),
    }
}

fn run_take(c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    if t.numel() == 0 && out[0].numel() > 0 {
        return Err(Error::index("take(): tried to take from an empty tensor"));
    }
    let index = flat_index(c.tensor("index")?, "take")?;
    let (source, target) = (flat(t)?, out[0].with_layout(Layout::contiguous(&[out[0].numel()])));
    if t.device().is_gpu() {
        return gpu::index_get(&source.gpu_view()?, &[Some(index.gpu_view()?)], &target.gpu_view()?);
    }
    index::index_get(source.cpu_view()?, &[Some(index.cpu_view()?)], target.cpu_view()?).map_err(out_of_range)
}

pub static TAKE: Op = Op {
    sig: sig("take(Tensor self, Tensor index) -> Tensor"),
    doc: "The elements of the flattened tensor at the given indices; negative ones count from the end. The result has the index's shape.",
    forms: FMO,
    body: kernel(
        |c| {
            let (t, index) = (c.tensor(0)?, c.tensor("index")?);
            exactly_long(index, || {
                Error::runtime(format!(
                    "take(): Expected a long tensor for index, but got {}",
                    index.dtype().scalar_type_name()
                ))
            })?;
            Ok(Spec::one(index.shape(), t.dtype(), t.device()))
        },
        run_take,
        Some(run_take),
    ),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, A1, |c| PUT.call((c.zeros(0), c.arg(1), c.g(), true)))]),
    samples: &["f32[2,3], i64[2](= 0, 5)", "f32[4], i64[2,2](= 0, -1, 1, 1)"],
    errors: &[
        ("f32[2], i64[1](= 2)", "IndexError", "out of range"),
        ("f32[2], f32[1]", "RuntimeError", "Expected a long tensor"),
    ],
    reference: "np.take(x0, x1)",
    alias_policy: Some(AliasPolicy::NoAlias),
    keeps: Some("index"),
    batch: Batching::Rule(batch_views::take),
    ..OP
};

fn run_put(c: &Call, out: &[Tensor]) -> Result<()> {
    let (index, source, out) = (c.tensor("index")?, c.tensor("source")?, &out[0]);
    if source.dtype() != out.dtype() {
        return Err(Error::runtime(format!(
            "put_(): self and source expected to have the same dtype, but got self.dtype = {} and source.dtype = {}",
            out.dtype().scalar_type_name(),
            source.dtype().scalar_type_name()
        )));
    }
    if source.numel() != index.numel() {
        return Err(Error::index(format!(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = {}, index.numel() = {}",
            source.numel(),
            index.numel()
        )));
    }
    let index = flat_index(index, "put_")?;
    let source = flat(&unalias(source, out)?)?;
    let target = flat(out)?;
    if out.device().is_gpu() {
        gpu::index_put(&target.gpu_view()?, &[Some(index.gpu_view()?)], &source.gpu_view()?, c.flag("accumulate"))?;
        return finish(&target, out);
    }
    index::index_put(target.cpu_view()?, &[Some(index.cpu_view()?)], source.cpu_view()?, c.flag("accumulate"))
        .map_err(out_of_range)?;
    finish(&target, out)
}

/// Copies a flat copy of the output back, if one had to be made.
fn finish(target: &Tensor, out: &Tensor) -> Result<()> {
    if target.storage().same(out.storage()) {
        return Ok(());
    }
    out.copy_raw(&target.with_layout(Layout::contiguous(out.shape())))
}

pub static PUT: Op = Op {
    sig: sig("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor"),
    doc: "Writes `source` at indices of the flattened tensor, or adds it there if `accumulate`.",
    forms: FMI,
    body: kernel_into_clone(run_put, Some(run_put)),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[
        d(0, A1, |c| match c.flag("accumulate") {
            true => c.g(),
            false => {
                let g = c.g();
                let zeros = TAKE.call((&g, c.arg(1))) * 0.0;
                PUT.call((g, c.arg(1), zeros))
            }
        }),
        d(2, A1, |c| TAKE.call((c.g(), c.arg(1))).reshape(&c.sizes(2))),
    ]),
    samples: &["f32[2,3], i64[2](= 0, 5), f32[2]", "f32[4], i64[2,2](= 0, -1, 1, 1), f32[4], accumulate=True"],
    errors: &[
        ("f32[2], i64[1](= 2), f32[1]", "IndexError", "out of range"),
        ("f32[2], i64[1](= 0), f32[2]", "IndexError", "same number of elements"),
    ],
    keeps: Some("accumulate index"),
    ..OP
};

pub static TAKE_ALONG_DIM: Op = Op {
    sig: sig("take_along_dim(Tensor self, Tensor indices, Dim? dim=None) -> Tensor"),
    doc: "`gather` with `self` and `indices` broadcast against each other except in `dim`; without `dim` both are flattened.",
    forms: FMO,
    body: decompose(|c| {
        let (t, index) = (c.tensor(0)?, c.tensor("indices")?);
        if index.dtype() != DType::I64 {
            return Err(Error::runtime(format!(
                "torch.take_along_dim(): dtype of indices should be Long but got {}",
                index.dtype().scalar_type_name()
            )));
        }
        let Some(dim) = c.opt_dim("dim") else {
            return super::gather_scatter::GATHER.calls((RESHAPE.call((t, [-1])), 0, RESHAPE.call((index, [-1]))));
        };
        if t.ndim() != index.ndim() {
            return Err(Error::runtime(format!(
                "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} dimensions for input, and {} dimensions for indices",
                t.ndim(),
                index.ndim()
            )));
        }
        let with = |shape: &[usize], n: usize| {
            let mut s: Dims = shape.into();
            if let Some(d) = s.get_mut(dim) {
                *d = n;
            }
            s
        };
        let common = crate::layout::broadcast(&with(t.shape(), 1), &with(index.shape(), 1))?;
        let wide = |x: &Tensor| EXPAND.call((x, &*with(&common, x.shape().get(dim).copied().unwrap_or(1))));
        let n = t.shape().get(dim).copied().unwrap_or(1);
        if n == 0 && index.numel() > 0 {
            return Err(Error::index(format!("torch.take_along_dim(): dimension {dim} of the input is empty")));
        }
        // Every index counts, modulo the size.
        let wrapped = if n == 0 {
            wide(index)
        } else {
            crate::ops::elementwise::division::REMAINDER_NUMBER.call((wide(index), n))
        };
        super::gather_scatter::GATHER.calls((wide(t), dim, wrapped))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], i64[2,1](= 2, 0), 1", "f32[2,3], i64[3](= 0, 5, 1)", "f32[2,3], i64[1,2](= 0, 1), 1"],
    errors: &[
        ("f32[2,3], i64[3](= 0, 0, 0), 1", "RuntimeError", "same number of dimensions"),
        ("f32[2], f32[2], 0", "RuntimeError", "should be Long"),
    ],
    reference: "np.take_along_axis(x0, x1, axis=dim)",
    alias_policy: Some(AliasPolicy::NoAlias),
    out_dtype: Some(OutDType::Same),
    ..OP
};
