//! Tensors with the shape, or the dtype and device, of another one: `zeros_like`, `new_zeros` and related ops; `empty`.

use super::full::{fill_with, scalar_dtype};
use crate::dtype::{DType, Scalar, default_dtype};
use crate::error::{Error, Result};
use crate::layout::{Format, Layout, to_shape};
use crate::op::*;
use crate::ops::support::batch_views;
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::sync::atomic::{AtomicBool, Ordering};

pub static OPS: &[&Op] = &[
    &EMPTY,
    &EMPTY_STRIDED,
    &EMPTY_PERMUTED,
    &EMPTY_LIKE,
    &ZEROS_LIKE,
    &ONES_LIKE,
    &FULL_LIKE,
    &NEW_EMPTY,
    &NEW_ZEROS,
    &NEW_ONES,
    &NEW_FULL,
    &SCALAR_TENSOR,
    &ZERO_,
];

static FILLS: AtomicBool = AtomicBool::new(false);

/// Sets whether uninitialised memory is filled: with NaN, or the largest number of the dtype.
pub fn fill_uninitialized(on: bool) {
    FILLS.store(on, Ordering::Relaxed);
}

/// Called on uninitialised tensors: fills them if `fill_uninitialized` is on.
pub fn leave(t: &Tensor) -> Result<()> {
    if !FILLS.load(Ordering::Relaxed) {
        return Ok(());
    }
    t.fill_raw(match t.dtype() {
        DType::Bool => Scalar::Bool(true),
        DType::U64 => Scalar::UInt(u64::MAX),
        d if d.is_int() => Scalar::Int(d.int_range().1 as i64),
        _ => Scalar::Float(f64::NAN),
    })
}

/// The fill of ops that leave memory as it is.
fn left(_: &Call, out: &[Tensor]) -> Result<()> {
    leave(&out[0])
}

pub static EMPTY: Op = Op {
    sig: sig(
        "empty(Size size, *, DType? dtype=None, Device? device=None, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor",
    ),
    doc: "A tensor whose values are whatever the memory held; float32 by default.",
    forms: FO,
    body: factory(
        |c| {
            let layout = Layout::of(to_shape(c.ints("size")?)?);
            let layout = match c.format("memory_format") {
                Some(Format::Preserve) => return Err(Error::runtime("unsupported memory format option Preserve")),
                Some(format) => layout.formed(format)?,
                None => layout,
            };
            let (dtype, device) =
                (c.dtype("dtype").unwrap_or_else(default_dtype), c.device("device").unwrap_or_default());
            Ok(smallvec![Spec { layout, dtype, device }])
        },
        left,
    ),
    vjp: Vjp::None("creation"),
    samples: &["(0, 3)", "(0,), dtype=int64"],
    errors: &[("(-1,)", "RuntimeError", "negative dimension")],
    reference: "np.empty(x0)",
    out_dtype: Some(OutDType::Every),
    batch: Batching::Rule(batch_views::sized),
    ..OP
};

pub static EMPTY_STRIDED: Op = Op {
    sig: sig(
        "empty_strided(Size size, int[] stride, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "A tensor of the given sizes and strides whose values are whatever the memory held.",
    forms: F,
    body: factory(
        |c| {
            let (dtype, device) =
                (c.dtype("dtype").unwrap_or_else(default_dtype), c.device("device").unwrap_or_default());
            let layout = Layout::as_strided(c.ints("size")?, c.ints("stride")?, 0, isize::MAX as usize / 16)?;
            Ok(smallvec![Spec { layout, dtype, device }])
        },
        left,
    ),
    vjp: Vjp::None("creation"),
    samples: &["(0, 3), (3, 1)"],
    errors: &[
        ("(2,), (1, 1)", "RuntimeError", "mismatch in length"),
        ("(2,), (-1,)", "RuntimeError", "Negative strides"),
    ],
    ..OP
};

/// A contiguous allocation of the sizes with the dimensions in this order in memory, outermost first.
fn permuted(sizes: &[i64], order: &[i64]) -> Result<Layout> {
    let (shape, n) = (to_shape(sizes)?, sizes.len());
    if order.len() != n {
        return Err(Error::runtime(format!(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {n} is not equal to \
             len(physical_layout) = {}",
            order.len()
        )));
    }
    // Bounded by the number of dimensions.
    let mut places = vec![n; n];
    for (at, &dim) in order.iter().enumerate() {
        let place = usize::try_from(dim).ok().and_then(|d| places.get_mut(d)).ok_or_else(|| {
            Error::runtime(format!(
                "Dimension out of range (expected to be between 0 and {}, but got {dim} at index {at}).  NB: negative dims not \
                 currently supported; file an issue if you want it.",
                n - 1
            ))
        })?;
        if *place != n {
            return Err(Error::runtime("Duplicate dim not allowed"));
        }
        *place = at;
    }
    let inner: Vec<usize> = order.iter().map(|&d| shape[d as usize]).collect();
    Ok(Layout::contiguous(&inner).permute(&places))
}

pub static EMPTY_PERMUTED: Op = Op {
    sig: sig(
        "empty_permuted(int[] size, int[] physical_layout, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "A dense tensor of the given sizes whose dimensions lie in memory in the order of `physical_layout`, outermost first; the values are whatever the memory held.",
    forms: F,
    body: factory(
        |c| {
            let (dtype, device) =
                (c.dtype("dtype").unwrap_or_else(default_dtype), c.device("device").unwrap_or_default());
            Ok(smallvec![Spec { layout: permuted(c.ints("size")?, c.ints("physical_layout")?)?, dtype, device }])
        },
        left,
    ),
    vjp: Vjp::None("creation"),
    samples: &["(0, 3, 2), (0, 2, 1)", "(), ()"],
    errors: &[
        (
            "(2, 3), (0,)",
            "RuntimeError",
            "Number of dimensions in size does not match the length of the physical_layout",
        ),
        ("(2, 3), (0, 2)", "RuntimeError", "expected to be between 0 and 1, but got 2 at index 1"),
        ("(2, 3), (0, -1)", "RuntimeError", "negative dims not currently supported"),
        ("(2, 3), (0, 0)", "RuntimeError", "Duplicate dim not allowed"),
        ("(-1, 3), (0, 1)", "RuntimeError", "negative dimension"),
    ],
    ..OP
};

/// A new tensor in the shape of another; its dtype, device and order in memory where arguments say no other.
pub(crate) fn like(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    let layout = t.layout().formed(c.format("memory_format").unwrap_or(Format::Preserve))?;
    let (dtype, device) = (c.dtype("dtype").unwrap_or(t.dtype()), c.device("device").unwrap_or(t.device()));
    Ok(smallvec![Spec { layout, dtype, device }])
}

const LIKE: Op = Op { forms: F, vjp: Vjp::None("creation"), errors: &[("'a'", "TypeError", "must be Tensor")], ..OP };

pub static EMPTY_LIKE: Op = Op {
    sig: sig(
        "empty_like(Tensor self, *, DType? dtype=None, Device? device=None, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor",
    ),
    doc: "A tensor in the shape of another whose values are whatever the memory held.",
    body: factory(like, left),
    samples: &["f32[0,3]"],
    reference: "np.empty_like(x0)",
    batch: Batching::Leading,
    ..LIKE
};
pub static ZEROS_LIKE: Op = Op {
    sig: sig(
        "zeros_like(Tensor self, *, DType? dtype=None, Device? device=None, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor",
    ),
    doc: "Zeros in the shape of another tensor.",
    body: factory(like, |_, out| fill_with(&out[0], Scalar::Int(0))),
    samples: &["f32[2,3]", "i64[2]", "f32[2], dtype=int64"],
    reference: "np.zeros_like(x0, dtype=dtype)",
    batch: Batching::Leading,
    ..LIKE
};
pub static ONES_LIKE: Op = Op {
    sig: sig(
        "ones_like(Tensor self, *, DType? dtype=None, Device? device=None, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor",
    ),
    doc: "Ones in the shape of another tensor.",
    body: factory(like, |_, out| fill_with(&out[0], Scalar::Int(1))),
    samples: &["f32[2,3]", "i64[2]", "f32[2], dtype=bool"],
    reference: "np.ones_like(x0, dtype=dtype)",
    batch: Batching::Leading,
    ..LIKE
};
pub static FULL_LIKE: Op = Op {
    sig: sig(
        "full_like(Tensor self, Scalar fill_value, *, DType? dtype=None, Device? device=None, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor",
    ),
    doc: "One number in the shape of another tensor.",
    body: factory(like, |c, out| fill_with(&out[0], c.scalar("fill_value")?)),
    samples: &["f32[2,3], 2.5", "i64[2], 3", "f32[2], 1, dtype=float64"],
    errors: &[
        ("'a', 1", "TypeError", "must be Tensor"),
        ("i8[2], 128", "RuntimeError", "value cannot be converted to type int8_t without overflow"),
    ],
    reference: "np.full_like(x0, fill_value, dtype=dtype)",
    batch: Batching::Leading,
    ..LIKE
};

/// A new tensor of this size, in self's dtype and on its device where arguments say no other.
fn new(c: &Call) -> Result<Specs> {
    let (t, shape) = (c.tensor(0)?, to_shape(c.ints("size")?)?);
    Ok(Spec::one(&shape, c.dtype("dtype").unwrap_or(t.dtype()), c.device("device").unwrap_or(t.device())))
}

const NEW: Op = Op {
    forms: M,
    vjp: Vjp::None("creation"),
    errors: &[("f32[2], (-1,)", "RuntimeError", "negative dimension")],
    ..OP
};

pub static NEW_EMPTY: Op = Op {
    sig: sig(
        "new_empty(Tensor self, Size size, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "An uninitialised tensor of self's dtype and device.",
    body: factory(new, left),
    samples: &["f32[2], (0, 3)"],
    reference: "np.empty(size, x0.dtype)",
    batch: Batching::Rule(batch_views::sized),
    ..NEW
};
pub static NEW_ZEROS: Op = Op {
    sig: sig(
        "new_zeros(Tensor self, Size size, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "Zeros of self's dtype and device.",
    body: factory(new, |_, out| fill_with(&out[0], Scalar::Int(0))),
    samples: &["f32[2], (2, 3)", "i64[2], (2,)"],
    reference: "np.zeros(size, x0.dtype)",
    batch: Batching::Rule(batch_views::sized),
    ..NEW
};
pub static NEW_ONES: Op = Op {
    sig: sig(
        "new_ones(Tensor self, Size size, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "Ones of self's dtype and device.",
    body: factory(new, |_, out| fill_with(&out[0], Scalar::Int(1))),
    samples: &["f32[2], (2, 3)", "i64[2], (2,)"],
    reference: "np.ones(size, x0.dtype)",
    batch: Batching::Rule(batch_views::sized),
    ..NEW
};
pub static NEW_FULL: Op = Op {
    sig: sig(
        "new_full(Tensor self, Size size, Scalar fill_value, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "One number, in self's dtype and on its device.",
    body: factory(new, |c, out| fill_with(&out[0], c.scalar("fill_value")?)),
    samples: &["f32[2], (2, 3), 1.5", "i64[2], (2,), 7"],
    errors: &[("f32[2], (-1,), 0", "RuntimeError", "negative dimension")],
    reference: "np.full(size, fill_value, x0.dtype)",
    batch: Batching::Rule(batch_views::sized),
    ..NEW
};

pub static SCALAR_TENSOR: Op = Op {
    sig: sig("scalar_tensor(Scalar s, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor"),
    doc: "A 0-d tensor of one number; float32 by default, whatever the number.",
    forms: F,
    body: factory(
        |c| {
            let s = c.scalar("s")?;
            let dtype = c.dtype("dtype").unwrap_or_else(|| match scalar_dtype(s) {
                d if d.is_complex() => d,
                _ => default_dtype(),
            });
            Ok(Spec::one(&[], dtype, c.device("device").unwrap_or_default()))
        },
        |c, out| out[0].fill_raw(c.scalar("s")?),
    ),
    vjp: Vjp::None("creation"),
    samples: &["2.5", "3, dtype=int64"],
    errors: &[("'a'", "TypeError", "must be")],
    reference: "np.array(s)",
    ..OP
};

fn clear(_: &Call, out: &[Tensor]) -> Result<()> {
    out[0].fill_raw(Scalar::Int(0))
}

pub static ZERO_: Op = Op {
    sig: sig("zero_(Tensor! self) -> Tensor"),
    doc: "Writes zero everywhere in `self`.",
    forms: INPLACE_FUNCTION,
    body: kernel_into(clear, Some(clear)),
    vjp: Vjp::Zero(&[0]),
    samples: &["f32[2,3]", "i64[4]"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    reference: "np.zeros_like(x0)",
    alias_policy: Some(AliasPolicy::UniformWrite),
    batch: Batching::Leading,
    ..OP
};
