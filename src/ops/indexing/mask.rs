//! Masks: masked_fill, masked_select, masked_scatter, and the positions of true elements (nonzero, argwhere).

use super::gather_scatter::unalias;
use crate::cpu::index::{self, Counted};
use crate::cpu::loops::Loops;
use crate::cpu::map;
use crate::cpu::number_class::{MapNum, Num};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::gpu::{self, Places};
use crate::layout::{Layout, broadcast, dims};
use crate::op::*;
use crate::ops::reduce::any_all::ANY_DIM;
use crate::ops::view::shape::sizes;
use crate::ops::view::slice::PLACE;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &MASKED_FILL,
    &MASKED_FILL_TENSOR,
    &MASKED_KEEP,
    &MASKED_SELECT,
    &MASKED_SCATTER,
    &NONZERO,
    &NONZERO_TUPLE,
    &ARGWHERE,
];

struct Replace;
impl MapNum<3> for Replace {
    #[inline(always)]
    fn eval<T: Num>([mask, x, value]: [T; 3]) -> T {
        if mask != T::zero() { value } else { x }
    }
}
static REPLACE: Rule = Rule { operands: &[1, 0, 2], loops: Loops::NONE.num::<3, Replace>(), wgsl: "where_(x, z, y)" };

/// Computed in the dtype of self, which must be able to hold the value.
fn fill_dtype(c: &Call, _: DType) -> Result<(DType, DType)> {
    let (t, mask) = (c.tensor(0)?, c.tensor("mask")?);
    if mask.dtype() != DType::Bool {
        return Err(Error::runtime(format!(
            "masked_fill_ only supports boolean masks, but got mask with dtype {}",
            mask.dtype().name()
        )));
    }
    if let Some(v) = c.opt_tensor("value")
        && v.ndim() > 0
    {
        return Err(Error::runtime(format!(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
            v.ndim()
        )));
    }
    match c.argument("value") {
        Value::Scalar(s) => s.check_fits(t.dtype())?,
        v if v.as_tensor().is_some_and(|v| v.dtype().is_complex()) && !t.dtype().is_complex() => {
            return Err(Error::runtime(format!(
                "value cannot be converted to type {} without overflow",
                t.dtype().c10_name()
            )));
        }
        _ => {}
    }
    Ok((t.dtype(), t.dtype()))
}

const MANY: Option<Expanded> = Some(Expanded {
    warning: Some(
        "Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor before performing this \
              operation. This also applies to advanced indexing e.g. tensor[mask] = scalar",
    ),
    once: |c| {
        let t = c.tensor(0)?;
        let dims: Ints = (0..t.ndim()).filter(|&d| t.strides()[d] == 0).map(|d| d as i64).collect();
        let hit = ANY_DIM
            .call((broadcast_view(c.tensor("mask")?, &broadcast(t.shape(), c.tensor("mask")?.shape())?), dims, true))
            .ok()?;
        let whole = t.with_layout(t.layout().unexpanded());
        Ok(Some(smallvec![Value::Owned(whole), Value::Owned(hit), c.argument("value").clone().into_owned()]))
    },
});

pub static MASKED_FILL: Op = Op {
    sig: sig("masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor"),
    doc: "`value` where the bool `mask` is true, else `self`. Mask and self broadcast.",
    forms: FMI,
    promote: Promote::By(fill_dtype),
    body: elementwise(&REPLACE),
    vjp: Vjp::Each(&[d(0, A1, |c| c.g().masked_fill(c.arg(1)))]),
    row_major: true,
    samples: &[
        "f32[2,3], b8[2,3], 1.5",
        "f32[2,3], b8[3], -inf",
        "i64[4], b8[4], 7",
        "f32[3], b8[2,3], 0",
        "c64[2], b8[2], 1+2j",
    ],
    errors: &[
        ("f32[2], f32[2], 0", "RuntimeError", "only supports boolean masks"),
        ("f32[2], b8[3], 0", "RuntimeError", "must match the size of tensor b (2)"),
        ("u8[2], b8[2], 300", "RuntimeError", "cannot be converted to type uint8_t"),
    ],
    reference: "np.where(x1, np.asarray(value).astype(x0.dtype), x0)",
    alias_policy: Some(AliasPolicy::SameOnly),
    expanded: MANY,
    keeps: Some("mask"),
    ..OP
};

pub static MASKED_FILL_TENSOR: Op = Op {
    sig: sig("masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor"),
    doc: "The number of a 0-d tensor where the bool `mask` is true, else `self`.",
    forms: FMI,
    promote: Promote::By(fill_dtype),
    body: elementwise(&REPLACE),
    vjp: Vjp::Each(&[
        d(0, A1, |c| c.g().masked_fill(c.arg(1))),
        d(2, A1, |c| MASKED_KEEP.call((c.g(), c.arg(1))).sum_all()),
    ]),
    node: "MaskedFillBackward1",
    row_major: true,
    samples: &["f32[2,3], b8[2,3], f32[]", "f32[2,3], b8[3], f32[]"],
    errors: &[("f32[2], b8[2], f32[2]", "RuntimeError", "0-dimensional value tensor")],
    reference: "np.where(x1, x2, x0)",
    alias_policy: Some(AliasPolicy::MayAlias),
    expanded: MANY,
    ..OP
};

struct Keep;
impl MapNum<2> for Keep {
    #[inline(always)]
    fn eval<T: Num>([x, mask]: [T; 2]) -> T {
        if mask != T::zero() { x } else { T::zero() }
    }
}
static KEEP: Rule = Rule { operands: &[0, 1], loops: Loops::NONE.num::<2, Keep>(), wgsl: "where_(y, x, T(0))" };

pub static MASKED_KEEP: Op = Op {
    sig: sig("_masked_keep(Tensor self, Tensor mask) -> Tensor"),
    doc: "`self` where the mask is true, else zero.",
    forms: HIDDEN,
    promote: Promote::By(|c, _| Ok((c.tensor(0)?.dtype(), c.tensor(0)?.dtype()))),
    body: elementwise(&KEEP),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, A1, |c| MASKED_KEEP.call((c.g(), c.arg(1))))]),
    samples: &["f32[2,3], b8[2,3]"],
    errors: &[("f32[2], b8[3]", "RuntimeError", "must match the size")],
    reference: "np.where(x1, x0, 0)",
    ..OP
};

impl Term {
    /// Zero where the mask is true.
    pub fn masked_fill(self, mask: Term) -> Term {
        MASKED_FILL.call((self, mask, 0))
    }
}

/// A tensor broadcast to a larger shape, without history.
pub(crate) fn broadcast_view(t: &Tensor, shape: &[usize]) -> Tensor {
    let layout =
        Layout { shape: shape.into(), strides: t.layout().broadcast_strides(shape), offset: t.layout().offset };
    t.with_layout(layout)
}

/// `out[mask] = value` for a mask over the leading dimensions, without computing the positions of true elements.
pub(crate) fn fill_where(out: &Tensor, mask: &Tensor, value: Scalar) -> Result<()> {
    let (o, m) = (out.cpu_view()?, mask.cpu_view()?);
    let mut strides = dims(m.strides);
    strides.resize(o.ndim(), 0);
    let inputs = [
        map::Input::Strided { ptr: m.ptr, dtype: m.dtype, strides: &strides },
        map::Input::Strided { ptr: o.ptr, dtype: o.dtype, strides: o.strides },
        map::Input::Scalar(value),
    ];
    let target = map::Output { ptr: o.ptr, dtype: o.dtype, strides: o.strides };
    // SAFETY: both are views, the mask apart; the output is read where it is written.
    unsafe { map::map(o.shape, &inputs, &target, o.dtype, &REPLACE.loops) };
    Ok(())
}

fn bool_mask(c: &Call, name: &str) -> Result<Tensor> {
    let mask = c.tensor("mask")?;
    match mask.dtype() {
        DType::Bool => Ok(mask.clone()),
        d => {
            Err(Error::runtime(format!("{name}: expected BoolTensor for mask, but got {}Tensor", d.scalar_type_name())))
        }
    }
}

/// Counts the true elements of a CPU tensor.
fn counted(mask: &Tensor) -> Result<Counted> {
    Counted::of(mask.cpu_view()?)
}

/// How many elements of a tensor are true.
fn count(mask: &Tensor) -> Result<usize> {
    if mask.device().is_gpu() { Ok(Places::find(&mask.gpu_view()?)?.count) } else { Ok(counted(mask)?.total()) }
}

fn selected(c: &Call) -> Result<(Tensor, Tensor)> {
    let (t, mask) = (c.tensor(0)?, bool_mask(c, "masked_select")?);
    let shape = broadcast(mask.shape(), t.shape())?;
    Ok((broadcast_view(t, &shape), broadcast_view(&mask, &shape)))
}

fn select_masked(c: &Call, out: &[Tensor]) -> Result<()> {
    let (t, mask) = selected(c)?;
    if t.device().is_gpu() {
        return gpu::masked_select(&t.gpu_view()?, &Places::find(&mask.gpu_view()?)?, &out[0].gpu_view()?);
    }
    let counted = counted(&mask)?;
    if counted.total() != out[0].numel() {
        return Err(Error::raced("the mask"));
    }
    index::masked_select(t.cpu_view()?, mask.cpu_view()?, &counted, out[0].cpu_view()?)
}

pub static MASKED_SELECT: Op = Op {
    sig: sig("masked_select(Tensor self, Tensor mask) -> Tensor"),
    doc: "The elements where the bool `mask` is true, in row-major order, in one dimension. Mask and self broadcast.",
    forms: FMO,
    body: Body::Kernel(Kernel {
        reads_host: true,
        ..Kernel::of(
            |c| {
                let (t, mask) = selected(c)?;
                Ok(Spec::one(&[count(&mask)?], t.dtype(), t.device()))
            },
            select_masked,
            Some(select_masked),
        )
    }),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, A1, |c| {
        let f = c.meta_of(0);
        match broadcast(&f.shape, &c.shape(1)) {
            Ok(shape) => MASKED_SCATTER.call((Term(Tensor::zeros(&shape, f.dtype, f.device)), c.arg(1), c.g())),
            Err(e) => e.into(),
        }
    })]),
    samples: &["f32[2,3], b8[2,3]", "f32[2,3], b8[3]", "i64[4], b8[4]", "f32[3], b8[2,3]"],
    errors: &[
        ("f32[2], b8[3]", "RuntimeError", "must match the size"),
        ("f32[2], f32[2]", "RuntimeError", "expected BoolTensor"),
    ],
    reference: "np.broadcast_to(x0, np.broadcast(x0, x1).shape)[np.broadcast_to(x1, np.broadcast(x0, x1).shape)]",
    alias_policy: Some(AliasPolicy::NoAlias),
    keeps: Some("mask"),
    ..OP
};

fn scatter_into(c: &Call, out: &[Tensor]) -> Result<()> {
    let (out, mask, source) = (&out[0], bool_mask(c, "masked_scatter_")?, c.tensor("source")?);
    if source.dtype() != out.dtype() {
        return Err(Error::runtime(format!(
            "masked_scatter: expected self and source to have same dtypes but got{} and {}",
            out.dtype().scalar_type_name(),
            source.dtype().scalar_type_name()
        )));
    }
    mask.layout().expand(&sizes(out))?;
    let mask = unalias(&broadcast_view(&mask, out.shape()), out)?;
    let fits = |ones: usize| match source.numel() < ones {
        true => Err(Error::runtime("Number of elements of source < number of ones in mask")),
        false => Ok(()),
    };
    let flat = || -> Result<Tensor> {
        let flat = Tensor::empty(&[source.numel()], source.dtype(), source.device())?;
        flat.with_layout(Layout::contiguous(source.shape())).copy_raw(source)?;
        Ok(flat)
    };
    if out.device().is_gpu() {
        let places = Places::find(&mask.gpu_view()?)?;
        fits(places.count)?;
        return gpu::masked_scatter(&out.gpu_view()?, &places, &flat()?.gpu_view()?);
    }
    let counted = counted(&mask)?;
    fits(counted.total())?;
    index::masked_scatter(out.cpu_view()?, mask.cpu_view()?, &counted, flat()?.cpu_view()?)
}

pub static MASKED_SCATTER: Op = Op {
    sig: sig("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor"),
    doc: "Writes the elements of `source`, one after another, to where the bool `mask` is true.",
    forms: FMI,
    body: Body::Kernel(Kernel {
        updates_self: true,
        ..Kernel::of(
            |c| {
                let (t, mask) = (c.tensor(0)?, bool_mask(c, "masked_scatter_")?);
                Ok(Spec::one(&broadcast(mask.shape(), t.shape())?, t.dtype(), t.device()))
            },
            scatter_into,
            Some(scatter_into),
        )
    }),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[
        d(0, A1, |c| c.g().masked_fill(c.arg(1))),
        d(2, A1, |c| {
            let n: i64 = c.sizes(2).iter().product();
            PLACE.call((MASKED_SELECT.call((c.g(), c.arg(1))), [n], [1], 0)).reshape(&c.sizes(2))
        }),
    ]),
    samples: &["f32[2,3], b8[2,3], f32[6]", "f32[2,3], b8[3], f32[2,3]", "i64[4], b8[4], i64[4]"],
    errors: &[
        ("f32[3], b8[3](= 1, 1, 1), f32[2]", "RuntimeError", "Number of elements of source < number of ones in mask"),
        ("f32[3], b8[3], f64[3]", "RuntimeError", "same dtypes"),
    ],
    alias_policy: Some(AliasPolicy::MayAlias),
    keeps: Some("mask source_sym_sizes"),
    ..OP
};

/// The positions of the true elements: [count, ndim], int64, stored dimension by dimension.
pub(crate) fn positions(t: &Tensor) -> Result<Tensor> {
    let new = |n: usize| -> Result<Tensor> {
        let out = Tensor::empty(&[t.ndim(), n], DType::I64, t.device())?;
        Ok(out.with_layout(out.layout().transpose(0, 1)))
    };
    if t.device().is_gpu() {
        let places = Places::find(&t.gpu_view()?)?;
        let out = new(places.count)?;
        gpu::nonzero(&places, t.shape(), &out.gpu_view()?)?;
        return Ok(out);
    }
    let counted = counted(t)?;
    let out = new(counted.total())?;
    index::nonzero(t.cpu_view()?, &counted, out.cpu_view()?)?;
    Ok(out)
}

pub static NONZERO: Op = Op {
    sig: sig("nonzero(Tensor self, *, False as_tuple=False) -> Tensor"),
    doc: "The indices of the elements that are not zero, one row each, in row-major order. Waits for the device.",
    forms: FMO,
    body: reads_host(|c| Ok(smallvec![positions(c.tensor(0)?)?])),
    vjp: Vjp::None("indices"),
    samples: &["f32[2,3](ties)", "b8[4]", "i64[2,2]", "f32[]", "f32[0,3]"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    reference: "np.argwhere(x0)",
    out_dtype: Some(OutDType::Same),
    ..OP
};

pub static NONZERO_TUPLE: Op = Op {
    sig: sig("nonzero.tuple(Tensor self, *, True as_tuple) -> Tensor[]"),
    doc: "The same as one tensor of indices for each dimension: what indexes the elements that are not zero.",
    body: decompose(|c| crate::ops::elementwise::ternary::WHERE_INDICES.calls((c.tensor(0)?,))),
    vjp: Vjp::None("indices"),
    samples: &["f32[2,3](ties), as_tuple=True", "f32[], as_tuple=True"],
    errors: &[("f32[2], as_tuple=3", "TypeError", "invalid combination")],
    reference: "[i for i in np.nonzero(np.atleast_1d(x0))]",
    ..OP
};

pub static ARGWHERE: Op = Op {
    sig: sig("argwhere(Tensor self) -> Tensor"),
    doc: "The indices of the elements that are not zero, one row each: `nonzero` under NumPy's name.",
    body: decompose(|c| NONZERO.calls((c.tensor(0)?,))),
    vjp: Vjp::None("indices"),
    samples: &["f32[2,3](ties)", "b8[4]"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    reference: "np.argwhere(x0)",
    ..OP
};
