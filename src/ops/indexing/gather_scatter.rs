//! Indexing per element: gather, scatter and its modes.
//!
//! Kernels take int64 indices of the operand's rank and check them before anything is written.

use super::scatter_gpu::scatter_gpu;
use crate::cpu::index::{self, Mode, Source};
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::gpu;
use crate::layout::{Dims, Layout, contiguous_strides};
use crate::op::*;
use crate::ops::support::promotion::refused;
use crate::ops::view::slice::PLACE;
use crate::tensor::Tensor;

pub static OPS: &[&Op] =
    &[&GATHER, &SCATTER, &SCATTER_VALUE, &SCATTER_REDUCE_SRC, &SCATTER_REDUCE_VALUE, &SCATTER_ADD, &SCATTER_REDUCE];

/// An index as int64; int32 is converted, other dtypes are an error.
pub(crate) fn index_as_i64(index: &Tensor, refuse: impl FnOnce() -> Error) -> Result<Tensor> {
    match index.dtype() {
        DType::I64 => Ok(index.clone()),
        DType::I32 => cast_raw(index, DType::I64),
        _ => Err(refuse()),
    }
}

/// A copy in another dtype, without history.
pub(crate) fn cast_raw(t: &Tensor, dtype: DType) -> Result<Tensor> {
    let out = Tensor::empty(t.shape(), dtype, t.device())?;
    out.copy_raw(t)?;
    Ok(out)
}

/// `t`, or a copy of it if it shares memory with the written tensor.
pub(crate) fn unalias(t: &Tensor, out: &Tensor) -> Result<Tensor> {
    if t.storage().same(out.storage()) { cast_raw(t, t.dtype()) } else { Ok(t.clone()) }
}

/// A 0-d tensor as a one-element 1-d tensor: kernels need a dimension.
pub(crate) fn at_least_1d(t: &Tensor) -> Tensor {
    match t.ndim() {
        0 => t.with_layout(Layout { offset: t.layout().offset, ..Layout::contiguous(&[1]) }),
        _ => t.clone(),
    }
}

fn element_index(c: &impl Arguments, name: &str) -> Result<Tensor> {
    let index = c.tensor("index")?;
    if index.numel() == 0 {
        return Tensor::empty(at_least_1d(index).shape(), DType::I64, index.device()); // of any dtype, as in PyTorch
    }
    let long = index_as_i64(index, || Error::runtime(format!("{name}(): Expected dtype int32/int64 for index")))?;
    Ok(at_least_1d(&long))
}

/// The shape of the index of `gather`, whose dtype is checked; a 0-d one counts as one element.
fn index_shape(c: &impl Arguments) -> Result<Dims> {
    let index = c.tensor("index")?;
    if index.numel() > 0 && !matches!(index.dtype(), DType::I32 | DType::I64) {
        return Err(Error::runtime("gather(): Expected dtype int32/int64 for index"));
    }
    Ok(at_least_1d(index).shape().into())
}

fn same_rank(t: &Tensor, index: &Tensor, what: &str) -> Result<()> {
    if t.ndim() != index.ndim() {
        return Err(Error::runtime(format!("Index tensor must have the same number of dimensions as {what} tensor")));
    }
    Ok(())
}

fn gather_spec(c: &Call) -> Result<Specs> {
    let (t, index) = (c.tensor(0)?, index_shape(c)?);
    let dim = c.dim("dim");
    if !index.contains(&0) {
        same_rank(&at_least_1d(t), &at_least_1d(c.tensor("index")?), "input")?;
        if let Some(d) = (0..t.ndim()).find(|&d| d != dim && index[d] > t.size(d)) {
            return Err(Error::runtime(format!(
                "Size does not match at dimension {d} expected index {} to be no larger than self {} apart from dimension {dim}",
                Show(&index),
                Show(t.shape())
            )));
        }
    }
    Ok(Spec::one(c.tensor("index")?.shape(), t.dtype(), t.device()))
}

fn run_gather(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, index, out) = (at_least_1d(c.tensor(0)?), element_index(c, "gather")?, at_least_1d(&out[0]));
    if index.numel() == 0 {
        return Ok(());
    }
    let dim = c.dim("dim");
    if out.device().is_gpu() {
        return gpu::gather(&t.gpu_view()?, dim, &index.gpu_view()?, &out.gpu_view()?);
    }
    index::gather(t.cpu_view()?, dim, index.cpu_view()?, out.cpu_view()?)
}

pub static GATHER: Op = Op {
    sig: sig("gather(Tensor self, Dim dim, Tensor index, *, bool sparse_grad=False) -> Tensor"),
    doc: "Picks along `dim` by an index for each element: `out[i][j] = self[index[i][j]][j]` for `dim` 0. The result has the index's shape.",
    forms: FMO,
    body: kernel(gather_spec, run_gather, Some(run_gather)),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, A2, |c| SCATTER_ADD.call((c.zeros(0), c.int("dim"), c.arg(2), c.g())))]),
    samples: &[
        "f32[3,4], 0, i64[2,4](0..3)",
        "f32[2,3], -1, i64[2,5](0..3)",
        "f32[3], 0, i64[2](= 2, 2)",
        "i64[3,2], 1, i64[2,2](0..2)",
        "f32[2,3], 0, f32[0](nograd)",
    ],
    errors: &[
        ("f32[2,3], 0, i64[3](= 0, 0, 0)", "RuntimeError", "same number of dimensions as input"),
        ("f32[2,3], 0, i64[1,3](= 0, 0, 2)", "RuntimeError", "index 2 is out of bounds for dimension 0 with size 2"),
        ("f32[2,3], 0, f32[1,3]", "RuntimeError", "Expected dtype"),
        ("f32[2,2], 0, i64[1,3](= 0, 0, 0)", "RuntimeError", "to be no larger than self"),
    ],
    alias_policy: Some(AliasPolicy::NoAlias),
    keeps: Some("dim index sparse_grad"),
    ..OP
};

/// Checks a scatter and runs it: argument 3 is the source, a tensor or a number.
fn scatter_as(c: &Call, out: &[Tensor], mode: Mode, include_self: bool) -> Result<()> {
    let (out, index) = (at_least_1d(&out[0]), element_index(c, "scatter")?);
    c.opt_scalar(3).map_or(Ok(()), |s| s.check_fits(out.dtype()))?;
    if matches!(mode, Mode::Mean) && out.dtype() == DType::Bool {
        return Err(refused(c, out.dtype()));
    }
    let dim = c.dim("dim");
    if index.numel() == 0 {
        return Ok(());
    }
    same_rank(&out, &index, "self")?;
    let source = c.opt_tensor(3).map(|s| source_for(&at_least_1d(s), &index, &out)).transpose()?;
    check_fit(&out, dim, &index, source.as_ref())?;
    let index = unalias(&index, &out)?;
    if out.device().is_gpu() {
        let from = match &source {
            Some(s) => gpu::Input::View(s.gpu_view()?),
            None => gpu::Input::Scalar(c.scalar(3)?),
        };
        return scatter_gpu(&out, dim, &index.gpu_view()?, &from, mode, include_self);
    }
    let from = match &source {
        Some(s) => Source::View(s.cpu_view()?),
        None => Source::Scalar(c.scalar(3)?),
    };
    let fresh = !out.storage().same(c.tensor(0)?.storage());
    let run = if fresh { index::scatter_into } else { index::scatter };
    run(out.cpu_view()?, dim, index.cpu_view()?, from, mode, include_self)
}

fn source_for(source: &Tensor, index: &Tensor, out: &Tensor) -> Result<Tensor> {
    if source.dtype() != out.dtype() {
        return Err(Error::runtime("scatter(): Expected self.dtype to be equal to src.dtype"));
    }
    same_rank(source, index, "src")?;
    unalias(source, out)
}

/// The index may exceed neither the source nor, apart from `dim`, the target.
fn check_fit(out: &Tensor, dim: usize, index: &Tensor, source: Option<&Tensor>) -> Result<()> {
    let n = index.ndim();
    let beyond_out = (0..n).any(|d| d != dim && index.size(d) > out.size(d));
    let beyond_source = source.is_some_and(|s| (0..n).any(|d| index.size(d) > s.size(d)));
    if !beyond_out && !beyond_source {
        return Ok(());
    }
    let source = source.map_or(String::new(), |s| format!(" and to be no larger size than src {}", Show(s.shape())));
    Err(Error::runtime(format!(
        "Expected index {} to be no larger than self {} apart from dimension {dim}{source}",
        Show(index.shape()),
        Show(out.shape())
    )))
}

/// A kernel that selects its device itself and writes into self.
const fn everywhere(run: fn(&Call, &[Tensor]) -> Result<()>) -> Body {
    kernel_into(run, Some(run))
}

/// `reduce=` of `scatter_reduce` and `index_reduce`.
#[derive(Clone, Copy)]
pub(crate) struct Reduce(pub Mode);
impl Enumerated for Reduce {
    const VALUES: &'static [(&'static str, Reduce)] = &[
        ("sum", Reduce(Mode::Add)),
        ("prod", Reduce(Mode::Mul)),
        ("mean", Reduce(Mode::Mean)),
        ("amax", Reduce(Mode::Max)),
        ("amin", Reduce(Mode::Min)),
        ("max", Reduce(Mode::Max)),
        ("min", Reduce(Mode::Min)),
    ];
}

/// `reduce=` of `scatter`.
#[derive(Clone, Copy)]
struct OldReduce(Mode);
impl Enumerated for OldReduce {
    const VALUES: &'static [(&'static str, OldReduce)] =
        &[("add", OldReduce(Mode::Add)), ("multiply", OldReduce(Mode::Mul))];
}

fn old_mode(c: &Call) -> Mode {
    c.choice::<OldReduce>("reduce").0
}
fn unknown_old_mode(_: &Op, _: &str) -> Error {
    Error::runtime("reduce argument must be either add or multiply.")
}
fn unknown_mode(_: &Op, given: &str) -> Error {
    Error::runtime(format!("reduce argument must be either sum, prod, mean, amax or amin, got {given}."))
}

impl VjpCtx<'_> {
    /// The gradient of the source of a scatter: the written elements, in the source's shape.
    fn scattered(&self, g: Term) -> Term {
        let (shape, meta) = (self.shape(3), self.meta_of(2));
        let picked = GATHER.call((g, self.int(1), self.arg(2)));
        if shape == meta.shape {
            return picked;
        }
        if shape.len() != meta.shape.len() {
            return picked.reshape(&self.sizes(3));
        }
        PLACE.call((picked, self.sizes(3), &*contiguous_strides(&shape), 0))
    }
    /// The gradient of self of an overwriting scatter: zero where elements were written.
    fn unwritten(&self, g: Term) -> Term {
        SCATTER_VALUE.call((g, self.int(1), self.arg(2), 0))
    }
}

pub static SCATTER: Op = Op {
    sig: sig("scatter.src(Tensor self, Dim dim, Tensor index, Tensor src) -> Tensor"),
    doc: "Writes `src` along `dim` by an index for each element: `self[index[i][j]][j] = src[i][j]` for `dim` 0.",
    forms: FMIO,
    body: everywhere(|c, out| scatter_as(c, out, Mode::Set, true)),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, A2, |c| c.unwritten(c.g())), d(3, A2, |c| c.scattered(c.g()))]),
    samples: &[
        "f32[3,4], 0, i64[2,4](= 0, 1, 2, 0, 1, 2, 0, 1), f32[2,4]",
        "f32[2,3], 1, i64[2,1](= 2, 0), f32[2,3]",
        "f32[3], 0, i64[2](= 2, 0), f32[2]",
    ],
    errors: &[
        ("f32[3], 0, i64[1](= 3), f32[1]", "RuntimeError", "index 3 is out of bounds for dimension 0 with size 3"),
        ("f32[3], 0, i64[1](= 0), f64[1]", "RuntimeError", "Expected self.dtype to be equal to src.dtype"),
        ("f32[3], 0, i64[2](= 0, 1), f32[1]", "RuntimeError", "no larger size than src"),
    ],
    ..OP
};

pub static SCATTER_VALUE: Op = Op {
    sig: sig("scatter.value(Tensor self, Dim dim, Tensor index, Scalar value) -> Tensor"),
    doc: "Writes a number along `dim` by an index for each element.",
    forms: FMIO,
    body: everywhere(|c, out| scatter_as(c, out, Mode::Set, true)),
    vjp: Vjp::Each(&[d(0, A2, |c| c.unwritten(c.g()))]),
    node: "ScatterBackward1",
    samples: &["f32[3,4], 0, i64[2,4](0..3), 1.5", "f32[2,3], 1, i64[2,1](= 2, 0), -1", "i64[3], 0, i64[2](= 2, 0), 7"],
    errors: &[
        ("f32[3], 0, i64[1](= 3), 1", "RuntimeError", "index 3 is out of bounds for dimension 0 with size 3"),
        ("u8[3], 0, i64[1](= 0), 300", "RuntimeError", "value cannot be converted to type uint8_t without overflow"),
    ],
    keeps: Some("dim index"),
    ..OP
};

pub static SCATTER_REDUCE_SRC: Op = Op {
    sig: sig("scatter.reduce(Tensor self, Dim dim, Tensor index, Tensor src, *, str{add|multiply} reduce) -> Tensor"),
    unknown_choice: unknown_old_mode,
    doc: "As `scatter`, but adds (`reduce='add'`) or multiplies ('multiply').",
    forms: FMIO,
    body: everywhere(|c, out| scatter_as(c, out, old_mode(c), true)),
    vjp: Vjp::Missing,
    warns_once: true,
    warns: Some(|_| {
        Some(
            "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch release. \
             Use torch.scatter_reduce instead for more reduction options."
                .into(),
        )
    }),
    samples: &[
        "f32[3](nograd), 0, i64[3](= 0, 2, 0), f32[3](nograd), reduce='add'",
        "f32[3](nograd), 0, i64[3](= 0, 2, 0), f32[3](nograd), reduce='multiply'",
    ],
    errors: &[(
        "f32[3](nograd), 0, i64[1](= 0), f32[1](nograd), reduce='sum'",
        "RuntimeError",
        "must be either add or multiply",
    )],
    ..OP
};

pub static SCATTER_REDUCE_VALUE: Op = Op {
    sig: sig(
        "scatter.value_reduce(Tensor self, Dim dim, Tensor index, Scalar value, *, str{add|multiply} reduce) -> Tensor",
    ),
    unknown_choice: unknown_old_mode,
    doc: "As `scatter` with a number, but adds (`reduce='add'`) or multiplies ('multiply').",
    forms: FMIO,
    body: everywhere(|c, out| scatter_as(c, out, old_mode(c), true)),
    vjp: Vjp::Missing,
    samples: &[
        "f32[3](nograd), 0, i64[3](= 0, 2, 0), 2.5, reduce='add'",
        "f32[3](nograd), 0, i64[3](= 0, 2, 0), 2.5, reduce='multiply'",
    ],
    errors: &[("f32[3](nograd), 0, i64[1](= 0), 1, reduce='sum'", "RuntimeError", "must be either add or multiply")],
    ..OP
};

pub static SCATTER_ADD: Op = Op {
    sig: sig("scatter_add(Tensor self, Dim dim, Tensor index, Tensor src) -> Tensor"),
    doc: "Adds `src` along `dim` by an index for each element; indices may repeat.",
    forms: FMIO,
    body: everywhere(|c, out| scatter_as(c, out, Mode::Add, true)),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| c.g()), d(3, A2, |c| c.scattered(c.g()))]),
    samples: &[
        "f32[3,4], 0, i64[2,4](0..3), f32[2,4]",
        "f32[2,3], -1, i64[2,2](= 2, 2, 0, 1), f32[2,3]",
        "i64[3], 0, i64[2](= 2, 2), i64[2]",
    ],
    errors: &[
        ("f32[3], 0, i64[1](= 3), f32[1]", "RuntimeError", "index 3 is out of bounds for dimension 0 with size 3"),
        ("f32[3], 0, i64[1](= 0), f64[1]", "RuntimeError", "Expected self.dtype to be equal to src.dtype"),
    ],
    ..OP
};

pub static SCATTER_REDUCE: Op = Op {
    sig: sig(
        "scatter_reduce(Tensor self, Dim dim, Tensor index, Tensor src, str{sum|prod|mean|amax|amin|max|min} reduce, *, bool include_self=True) -> Tensor",
    ),
    unknown_choice: unknown_mode,
    doc: "Combines `src` with `self` along `dim` by an index for each element: 'sum', 'prod', 'mean', 'amax' or 'amin'.",
    forms: FMIO,
    body: everywhere(|c, out| scatter_as(c, out, c.choice::<Reduce>("reduce").0, c.flag("include_self"))),
    vjp: Vjp::Joint(Joint { args: &[0, 3], saves: A0 | A2 | A3 | OUT0, formula: super::scatter_grad::reduced }),
    samples: &[
        "f32[3], 0, i64[4](= 0, 2, 0, 0), f32[4], 'sum'",
        "f32[3], 0, i64[4](= 0, 2, 0, 0), f32[4], 'prod'",
        "f32[3], 0, i64[4](= 0, 2, 0, 0), f32[4], 'mean', include_self=False",
        "f32[3,2], 1, i64[3,2](0..2), f32[3,2], 'amax'",
        "f32[3,2], 0, i64[3,2](0..3), f32[3,2], 'amin', include_self=False",
    ],
    errors: &[
        ("f32[3], 0, i64[1](= 0), f32[1], 'most'", "RuntimeError", "must be either sum, prod, mean, amax or amin"),
        ("b8[3], 0, i64[1](= 0), b8[1], 'mean'", "NotImplementedError", "not implemented for 'Bool'"),
    ],
    ..OP
};
