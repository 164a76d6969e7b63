//! Views in new memory: `permute_copy` and the other `_copy` ops return a view's elements in a new row-major tensor.
//!
//! Layout, errors and gradient are those of the view op, which takes the same arguments; `diagonal_copy` is defined
//! next to `diag`, whose body it is.

use super::alias::{DETACH, VIEW_AS_REAL, VIEW_DTYPE};
use super::as_strided::AS_STRIDED;
use super::reshape::*;
use super::slice::{NARROW, UNFOLD};
use super::split::{SPLIT, SPLIT_SIZES, UNBIND};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Layout, wrap_dim};
use crate::op::*;
use crate::ops::support::batch_views;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[
    &ALIAS_COPY,
    &AS_STRIDED_COPY,
    &EXPAND_COPY,
    &NARROW_COPY,
    &PERMUTE_COPY,
    &SELECT_COPY,
    &SLICE_COPY,
    &SPLIT_COPY,
    &SPLIT_WITH_SIZES_COPY,
    &SQUEEZE_COPY,
    &SQUEEZE_DIM_COPY,
    &SQUEEZE_DIMS_COPY,
    &T_COPY,
    &TRANSPOSE_COPY,
    &UNBIND_COPY,
    &UNFOLD_COPY,
    &UNSQUEEZE_COPY,
    &VIEW_COPY,
    &VIEW_DTYPE_COPY,
    &DETACH_COPY,
    &VIEW_AS_REAL_COPY,
];

/// The view op that the op of a call copies.
fn view_op(c: &Call) -> Result<&'static Op> {
    c.op.copies.ok_or_else(|| Error::internal("a copy of no view"))
}

/// The views that it creates from the call's arguments.
fn views(c: &Call) -> Result<Vec<(Layout, DType)>> {
    let op = view_op(c)?;
    let call = Call { op, args: &c.args[..op.sig.params().len()] };
    let own = call.tensor(0)?.dtype();
    Ok(match &op.body {
        Body::View(layout) => vec![(layout(&call)?, own)],
        Body::ViewAs(view) => vec![view(&call)?],
        Body::Views(layouts) => layouts(&call)?.into_iter().map(|l| (l, own)).collect(),
        _ => return Err(Error::internal("a copy of what is no view")),
    })
}

fn specs(c: &Call) -> Result<Specs> {
    let device = c.tensor(0)?.device();
    Ok(views(c)?.iter().map(|(layout, dtype)| Spec::new(&layout.shape, *dtype, device)).collect())
}

fn copied(c: &Call, out: &[Tensor]) -> Result<()> {
    let whole = c.tensor(0)?;
    views(c)?.into_iter().zip(out).try_for_each(|((layout, dtype), to)| {
        let meta = crate::tensor::Meta { storage: whole.storage().clone(), layout, dtype };
        to.copy_raw(&Tensor::from_meta(meta))
    })
}

/// The gradient of the view.
fn of_view(c: &VjpCtx) -> Term {
    match view_op(&c.call).map(|op| &op.vjp) {
        Ok(Vjp::Each([grad])) => (grad.formula)(c),
        Ok(_) => Error::internal("a view has one gradient").into(),
        Err(e) => e.into(),
    }
}

const COPY: Op = Op {
    forms: FO,
    body: kernel(specs, copied, Some(copied)),
    vjp: Vjp::Each(&[d(0, 0, of_view)]),
    batch: Batching::Rule(batch_views::copied),
    out_dtype: Some(OutDType::Same),
    errors: &[("'a'", "TypeError", "must be Tensor")],
    ..OP
};

pub static ALIAS_COPY: Op = Op {
    sig: sig("alias_copy(Tensor self) -> Tensor"),
    doc: "`alias` into new memory.",
    copies: Some(&ALIAS),
    node: "AliasBackward0_copy",
    samples: &["f32[2,3]"],
    ..COPY
};

pub static EXPAND_COPY: Op = Op {
    sig: sig("expand_copy(Tensor self, Size size, *, bool implicit=False) -> Tensor"),
    doc: "`expand` into new memory.",
    copies: Some(&EXPAND),
    node: "ExpandBackward0_copy",
    samples: &["f32[1,3], (2, 3)"],
    errors: &[("f32[2,3], (2, 4)", "RuntimeError", "must match the existing size")],
    keeps: Some("self_sym_sizes"),
    ..COPY
};

pub static PERMUTE_COPY: Op = Op {
    sig: sig("permute_copy(Tensor self, Size dims) -> Tensor"),
    doc: "`permute` into new memory.",
    copies: Some(&PERMUTE),
    node: "PermuteBackward0_copy",
    samples: &["f32[2,3,4], (2, 0, 1)"],
    errors: &[("f32[2,3], (0, 0)", "RuntimeError", "duplicate dims are not allowed")],
    ..COPY
};

pub static SELECT_COPY: Op = Op {
    sig: sig("select_copy(Tensor self, Dim dim, int index) -> Tensor"),
    doc: "`select` into new memory.",
    copies: Some(&SELECT),
    node: "SelectBackward0_copy",
    samples: &["f32[2,3], 0, 1"],
    errors: &[("f32[2,3], 0, 2", "IndexError", "out of range")],
    keeps: Some("dim index self_sym_sizes"),
    ..COPY
};

pub static SLICE_COPY: Op = Op {
    sig: sig("slice_copy(Tensor self, Dim dim=0, int? start=None, int? end=None, int step=1) -> Tensor"),
    doc: "`slice` into new memory.",
    copies: Some(&SLICE),
    node: "SliceBackward0_copy",
    samples: &["f32[5,3], 0, 1, 4", "f32[5,3], 0, 0, 5, 2"],
    errors: &[("f32[5], 1", "IndexError", "Dimension out of range")],
    keeps: Some("dim end self_sym_sizes start step"),
    ..COPY
};

pub static SPLIT_COPY: Op = Op {
    sig: sig("split_copy(Tensor self, int split_size, Dim dim=0) -> Tensor[]"),
    doc: "`split` into new memory.",
    copies: Some(&SPLIT),
    node: "SplitBackward0_copy",
    samples: &["f32[5,2], 2"],
    errors: &[("f32[5], -1", "RuntimeError", "non-negative")],
    keeps: Some("dim self_sym_sizes split_size"),
    ..COPY
};

pub static SPLIT_WITH_SIZES_COPY: Op = Op {
    sig: sig("split_with_sizes_copy(Tensor self, int[] split_sizes, Dim dim=0) -> Tensor[]"),
    doc: "`split_with_sizes` into new memory.",
    copies: Some(&SPLIT_SIZES),
    node: "SplitWithSizesBackward0_copy",
    samples: &["f32[5,2], (2, 3)"],
    errors: &[("f32[5], (2, 2)", "RuntimeError", "split_with_sizes expects")],
    keeps: Some("dim self_sym_sizes split_sizes"),
    ..COPY
};

pub static SQUEEZE_COPY: Op = Op {
    sig: sig("squeeze_copy(Tensor self) -> Tensor"),
    doc: "`squeeze` into new memory.",
    copies: Some(&SQUEEZE),
    node: "SqueezeBackward0_copy",
    samples: &["f32[1,3,1]"],
    keeps: Some("self_sym_sizes"),
    ..COPY
};

pub static SQUEEZE_DIM_COPY: Op = Op {
    sig: sig("squeeze_copy.dim(Tensor self, Dim dim) -> Tensor"),
    doc: "`squeeze` into new memory.",
    copies: Some(&SQUEEZE_DIM),
    node: "SqueezeBackward1_copy",
    samples: &["f32[1,3,1], 0"],
    errors: &[("f32[2,3], 2", "IndexError", "Dimension out of range")],
    keeps: Some("dim self_sym_sizes"),
    ..COPY
};

pub static SQUEEZE_DIMS_COPY: Op = Op {
    sig: sig("squeeze_copy.dims(Tensor self, Dim[] dim) -> Tensor"),
    doc: "`squeeze` into new memory.",
    copies: Some(&SQUEEZE_DIMS),
    node: "SqueezeBackward2_copy",
    samples: &["f32[1,3,1], (0, 2)"],
    errors: &[("f32[2,3], (2,)", "IndexError", "Dimension out of range")],
    keeps: Some("dim self_sym_sizes"),
    ..COPY
};

pub static T_COPY: Op = Op {
    sig: sig("t_copy(Tensor self) -> Tensor"),
    doc: "`t` into new memory.",
    copies: Some(&T),
    node: "TBackward0_copy",
    samples: &["f32[2,3]"],
    errors: &[("f32[2,3,4]", "RuntimeError", "<= 2 dimensions")],
    ..COPY
};

pub static TRANSPOSE_COPY: Op = Op {
    sig: sig("transpose_copy(Tensor self, Dim dim0, Dim dim1) -> Tensor"),
    doc: "`transpose` into new memory.",
    copies: Some(&TRANSPOSE),
    node: "TransposeBackward0_copy",
    samples: &["f32[2,3,4], -1, 0"],
    errors: &[("f32[2,3], 0, 2", "IndexError", "Dimension out of range")],
    ..COPY
};

pub static UNBIND_COPY: Op = Op {
    sig: sig("unbind_copy(Tensor self, Dim dim=0) -> Tensor[]"),
    doc: "`unbind` into new memory.",
    copies: Some(&UNBIND),
    node: "UnbindBackward0_copy",
    samples: &["f32[2,3], 1"],
    errors: &[("f32[2], 2", "IndexError", "Dimension out of range")],
    ..COPY
};

pub static UNFOLD_COPY: Op = Op {
    sig: sig("unfold_copy(Tensor self, Dim dimension, int size, int step) -> Tensor"),
    doc: "`unfold` into new memory.",
    copies: Some(&UNFOLD),
    node: "UnfoldBackward0_copy",
    samples: &["f32[7], 0, 3, 2"],
    errors: &[("f32[3], 0, 2, 0", "RuntimeError", "step is 0 but must be > 0")],
    keeps: Some("dimension self_sym_sizes size step"),
    ..COPY
};

pub static UNSQUEEZE_COPY: Op = Op {
    sig: sig("unsqueeze_copy(Tensor self, Dim+ dim) -> Tensor"),
    doc: "`unsqueeze` into new memory.",
    copies: Some(&UNSQUEEZE),
    node: "UnsqueezeBackward0_copy",
    samples: &["f32[2,3], -1"],
    errors: &[("f32[2,3], 4", "IndexError", "Dimension out of range")],
    ..COPY
};

pub static VIEW_AS_REAL_COPY: Op = Op {
    sig: sig("view_as_real_copy(Tensor self) -> Tensor"),
    doc: "`view_as_real` into new memory.",
    copies: Some(&VIEW_AS_REAL),
    node: "ViewAsRealBackward0_copy",
    samples: &["c64[2,3]"],
    errors: &[("f32[2]", "TypeError", "only supported for complex")],
    ..COPY
};

/// `as_strided`, `reshape` and `narrow` are not single view ops, so their results are copied.
fn packed(c: &Call, op: &'static Op) -> Result<Outputs> {
    let view = op.call(c.args.iter().map(|v| v.reborrow()).collect::<Args>()).ok()?;
    crate::ops::movement::copy::CLONE.calls((view, Value::Format(crate::layout::Format::Contiguous)))
}

pub static AS_STRIDED_COPY: Op = Op {
    sig: sig("as_strided_copy(Tensor self, Size size, int[] stride, int? storage_offset=None) -> Tensor"),
    doc: "`as_strided` into new memory.",
    body: decompose(|c| packed(c, &AS_STRIDED)),
    vjp: Vjp::Joint(Joint {
        args: &[0],
        saves: A0,
        formula: |c| c.through(|call| AS_STRIDED.calls(call.args.iter().map(|v| v.reborrow()).collect::<Args>())),
    }),
    node: "AsStridedBackward0_copy",
    batch: Batching::ByStrides(crate::ops::support::batch_views::as_strided_copy),
    samples: &["f32[6], (2, 2), (2, 1), 1", "f32[5], (4, 2), (1, 1)"],
    errors: &[("f32[4], (5,), (1,)", "RuntimeError", "out of bounds")],
    keeps: Some("size storage_offset stride"),
    ..COPY
};

pub static VIEW_COPY: Op = Op {
    sig: sig("view_copy(Tensor self, Size size) -> Tensor"),
    doc: "`view` into new memory, of any tensor that can be reshaped so.",
    copies: Some(&VIEW),
    body: decompose(|c| packed(c, &RESHAPE)),
    node: "ViewBackward0_copy",
    samples: &["f32[2,6], (3, 4)"],
    errors: &[("f32[2,3], (4, 2)", "RuntimeError", "is invalid for input of size 6")],
    keeps: Some("self_sym_sizes"),
    ..COPY
};

pub static VIEW_DTYPE_COPY: Op = Op {
    sig: sig("view_copy.dtype(Tensor self, DType dtype) -> Tensor"),
    doc: "The same bytes as elements of another dtype, in new memory: `view(dtype)`.",
    copies: Some(&VIEW_DTYPE),
    vjp: Vjp::None("bits have no gradient"),
    samples: &["f32[2,3], int32"],
    errors: &[("f32[2,3], float64", "RuntimeError", "must be divisible by 2")],
    ..COPY
};

pub static DETACH_COPY: Op = Op {
    sig: sig("detach_copy(Tensor self) -> Tensor"),
    doc: "`detach` into new memory.",
    body: decompose(|c| packed(c, &DETACH)),
    vjp: Vjp::None("cuts the graph"),
    samples: &["f32[2,3]"],
    reference: "x0",
    batch: Batching::Leading,
    ..COPY
};

pub static NARROW_COPY: Op = Op {
    sig: sig("narrow_copy(Tensor self, int dim, int start, int length) -> Tensor"),
    doc: "`narrow` into new memory.",
    forms: FMO,
    body: decompose(|c| {
        let (t, dim, [start, length]) = (c.tensor(0)?, c.int("dim")?, [c.int("start")?, c.int("length")?]);
        if t.ndim() > 0 && dim >= t.ndim() as i64 {
            let text = "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.";
            return Err(Error::runtime(text));
        }
        if t.ndim() > 0 && length < 0 {
            let size = t.size(wrap_dim(dim, t.ndim())?);
            return Err(Error::runtime(format!(
                "start ({start}) + length ({length}) exceeds dimension size ({size})."
            )));
        }
        packed(c, &NARROW)
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        c.unwindow(&super::slice::SLICE_BACKWARD, |l| {
            let dim = wrap_dim(c.int("dim"), l.ndim())?;
            let start = c.int("start").rem_euclid(l.shape[dim].max(1) as i64 + (c.int("start") >= 0) as i64);
            Ok(l.slice(dim, (start as usize, c.int("length") as usize, 1)))
        })
    })]),
    samples: &["f32[3,4], 0, 1, 2", "f32[3,4], -1, -3, 2", "f32[3], 0, 3, 0"],
    errors: &[
        ("f32[3], 0, 1, 3", "RuntimeError", "exceeds dimension size (3)"),
        ("f32[3], 0, 0, -1", "RuntimeError", "start (0) + length (-1) exceeds dimension size (3)"),
        ("f32[3], 1, 0, 1", "RuntimeError", "to be true, but got false"),
        ("f32[3], -2, 0, 1", "IndexError", "Dimension out of range"),
    ],
    keeps: Some("dim length self_sym_sizes start"),
    ..COPY
};
