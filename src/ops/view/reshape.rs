//! Views: the same memory under another shape. Layout arithmetic only; the data stays where it is.

use super::slice::{SELECT_BACKWARD, SLICE_BACKWARD};
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout, wrap_dims};
use crate::op::*;
use crate::ops::support::batch_views;
use crate::tensor::{INFERENCE, Tensor};
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &VIEW,
    &ALIAS,
    &RESHAPE,
    &RESHAPE_ALIAS,
    &UNSAFE_VIEW,
    &PERMUTE,
    &TRANSPOSE,
    &T,
    &EXPAND,
    &SQUEEZE,
    &SQUEEZE_DIM,
    &SQUEEZE_DIMS,
    &UNSQUEEZE,
    &SELECT,
    &SLICE,
];

pub static VIEW: Op = Op {
    sig: sig("view(Tensor self, Size size) -> Tensor"),
    doc: "The same memory under another shape; -1 stands for what is left. Errors where a copy would be needed.",
    forms: M,
    body: Body::View(|c| c.tensor(0)?.layout().view(c.ints("size")?)),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().reshape(&c.sizes(0)))]),
    samples: &["f32[2,6], (3, 4)", "f32[2,6], (-1,)", "f32[2,3], (1, 2, 3)"],
    errors: &[
        ("f32[2,3], (4, 2)", "RuntimeError", "is invalid for input of size 6"),
        ("f32[2,3], (-1, -1)", "RuntimeError", "only one dimension can be inferred"),
    ],
    keeps: Some("self_sym_sizes"),
    batch: Batching::ByStrides(batch_views::view),
    ..OP
};

pub static ALIAS: Op = Op {
    sig: sig("alias(Tensor self) -> Tensor"),
    doc: "Another view of the whole tensor: `x[...]`.",
    forms: HIDDEN,
    body: Body::View(|c| Ok(c.tensor(0)?.layout().clone())),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g())]),
    samples: &["f32[2,3]"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    reference: "x0",
    ..OP
};

pub static RESHAPE: Op = Op {
    sig: sig("reshape(Tensor self, Size shape) -> Tensor"),
    doc: "The same elements under another shape: a view where possible, else a copy. -1 stands for what is left.",
    body: decompose(|c| {
        let (t, sizes) = (c.tensor(0)?, c.ints("shape")?);
        let shape = t.layout().infer_shape(sizes)?;
        match t.layout().view_strides(&shape) {
            Some(_) if t.is_contiguous() => VIEW.calls((t, sizes)),
            Some(_) => RESHAPE_ALIAS.calls((t, sizes)),
            None => UNSAFE_VIEW.calls((Term::from(t).packed(), sizes)),
        }
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,6], (3, 4)", "f32[2,6], (-1,)", "f32[0,3], (3, 0)"],
    errors: &[("f32[2,3], (4, 2)", "RuntimeError", "is invalid for input of size 6")],
    reference: "x0.reshape(x1)",
    ..OP
};

/// Used by `reshape` if strided memory needs no copy; a separate op, so that `grad_fn` has PyTorch's name.
pub static RESHAPE_ALIAS: Op = Op {
    sig: sig("_reshape_alias(Tensor self, Size size) -> Tensor"),
    doc: "`view` of memory that is not row-major.",
    keeps: Some("self_sym_sizes"),
    forms: HIDDEN,
    body: Body::View(|c| c.tensor(0)?.layout().view(c.ints("size")?)),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().reshape(&c.sizes(0)))]),
    samples: &["f32[2,6], (3, 4)"],
    errors: &[("f32[2,3], (4, 2)", "RuntimeError", "is invalid for input of size 6")],
    reference: "x0.reshape(x1)",
    batch: Batching::ByStrides(batch_views::view),
    ..OP
};

/// `view` of a fresh copy; a separate op, so that `grad_fn` has PyTorch's name.
pub static UNSAFE_VIEW: Op = Op {
    sig: sig("_unsafe_view(Tensor self, Size size) -> Tensor"),
    doc: "`view` of memory that nothing else refers to: the result is no view of another tensor.",
    forms: HIDDEN,
    // Not a view, which autograd would track as one.
    body: opaque(
        |c| {
            let t = c.tensor(0)?;
            let shape = t.layout().infer_shape(c.ints("size")?)?;
            let layout = match t.layout().view_strides(&shape) {
                Some(strides) => Layout { shape, strides, offset: t.layout().offset },
                None => Layout::of(shape),
            };
            Ok(smallvec![Spec { layout, dtype: t.dtype(), device: t.device() }])
        },
        |c| {
            let (t, sizes) = (c.tensor(0)?, c.ints("size")?);
            let shape = t.layout().infer_shape(sizes)?;
            let whole = match t.layout().view_strides(&shape) {
                Some(strides) => t.with_layout(Layout { shape, strides, offset: t.layout().offset }),
                None => {
                    let copy = Tensor::empty(t.shape(), t.dtype(), t.device())?;
                    copy.copy_raw(t)?;
                    copy.with_layout(copy.layout().view(sizes)?)
                }
            };
            whole.set_flag(INFERENCE, t.flag(INFERENCE));
            Ok(smallvec![whole])
        },
    ),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().reshape(&c.sizes(0)))]),
    samples: &["f32[2,6], (3, 4)"],
    errors: &[("f32[2,3], (4, 2)", "RuntimeError", "is invalid for input of size 6")],
    keeps: Some("self_sym_sizes"),
    batch: Batching::Rule(batch_views::view),
    ..OP
};

pub static PERMUTE: Op = Op {
    sig: sig("permute(Tensor self, Size dims) -> Tensor"),
    doc: "Reorders the dimensions.",
    body: Body::View(|c| {
        let t = c.tensor(0)?;
        Ok(t.layout().permute(&permutation(c.ints("dims")?, t.ndim())?))
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let dims = c.ints("dims");
        let n = c.ndim(0) as i64;
        let mut inverse: Ints = smallvec![0; dims.len()];
        dims.iter().enumerate().for_each(|(i, &p)| inverse[p.rem_euclid(n.max(1)) as usize] = i as i64);
        PERMUTE.call((c.g(), inverse))
    })]),
    samples: &["f32[2,3,4], (2, 0, 1)", "f32[2,3], (-1, 0)"],
    errors: &[
        ("f32[2,3], (0, 0)", "RuntimeError", "duplicate dims are not allowed"),
        ("f32[2,3], (0, 1, 2)", "RuntimeError", "number of dim"),
    ],
    reference: "np.transpose(x0, x1)",
    batch: Batching::Rule(batch_views::permute),
    ..OP
};

fn permutation(dims: &[i64], ndim: usize) -> Result<Dims> {
    if dims.len() != ndim {
        return Err(Error::runtime(format!(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {}",
            dims.len()
        )));
    }
    wrap_dims(dims, ndim).map_err(|e| match e.message().contains("multiple times") {
        true => Error::runtime("permute(): duplicate dims are not allowed."),
        false => e,
    })
}

pub static TRANSPOSE: Op = Op {
    sig: sig("transpose(Tensor self, Dim dim0|axis0, Dim dim1|axis1) -> Tensor"),
    doc: "Swaps two dimensions.",
    aliases: &["swapaxes", "swapdims"],
    forms: FMI,
    body: Body::View(|c| {
        let t = c.tensor(0)?;
        Ok(t.layout().transpose(c.dim("dim0"), c.dim("dim1")))
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| TRANSPOSE.call((c.g(), c.int("dim0"), c.int("dim1"))))]),
    inplace_node: "TransposeBackward1",
    samples: &["f32[2,3], 0, 1", "f32[2,3,4], -1, 0"],
    errors: &[("f32[2,3], 0, 2", "IndexError", "Dimension out of range")],
    reference: "np.swapaxes(x0, x1, x2)",
    ..OP
};

pub static T: Op = Op {
    sig: sig("t(Tensor self) -> Tensor"),
    doc: "The transpose of a matrix; tensors of fewer dimensions are returned as views.",
    forms: FMI,
    body: Body::View(|c| {
        let t = c.tensor(0)?;
        match t.ndim() {
            0 | 1 => Ok(t.layout().clone()),
            2 => Ok(t.layout().transpose(0, 1)),
            n => Err(Error::runtime(format!("t() expects a tensor with <= 2 dimensions, but self is {n}D"))),
        }
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| T.call((c.g(),)))]),
    inplace_node: "TBackward1",
    samples: &["f32[2,3]", "f32[3]"],
    errors: &[("f32[2,3,4]", "RuntimeError", "<= 2 dimensions")],
    reference: "x0.T",
    batch: Batching::Rule(batch_views::t),
    ..OP
};

pub static EXPAND: Op = Op {
    sig: sig("expand(Tensor self, Size size, *, bool implicit=False) -> Tensor"),
    doc: "Repeats dimensions of size one without copying; -1 keeps a size.",
    forms: M,
    body: Body::View(|c| c.tensor(0)?.layout().expand(c.ints("size")?)),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g())]),
    samples: &["f32[1,3], (2, 3)", "f32[3], (2, -1)", "f32[2,1], (2, 4)"],
    errors: &[("f32[2,3], (2, 4)", "RuntimeError", "must match the existing size")],
    keeps: Some("self_sym_sizes"),
    batch: Batching::Rule(batch_views::expand),
    ..OP
};

pub static SQUEEZE: Op = Op {
    sig: sig("squeeze(Tensor self) -> Tensor"),
    doc: "Drops every dimension of size one.",
    forms: FMI,
    body: Body::View(|c| Ok(c.tensor(0)?.layout().squeeze(|_| true))),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().reshape(&c.sizes(0)))]),
    inplace_node: "SqueezeBackward3",
    samples: &["f32[1,3,1]", "f32[2]"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    reference: "np.squeeze(x0)",
    keeps: Some("self_sym_sizes"),
    batch: Batching::Rule(batch_views::squeeze),
    ..OP
};

pub static SQUEEZE_DIM: Op = Op {
    sig: sig("squeeze.dim(Tensor self, Dim dim) -> Tensor"),
    doc: "Drops a dimension if it is of size one.",
    forms: FMI,
    body: Body::View(|c| {
        let t = c.tensor(0)?;
        let dim = c.dim("dim");
        Ok(t.layout().squeeze(|i| i == dim))
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().reshape(&c.sizes(0)))]),
    node: "SqueezeBackward1",
    inplace_node: "SqueezeBackward4",
    samples: &["f32[1,3,1], 0", "f32[2,3], 1", "f32[1], -1"],
    errors: &[("f32[2,3], 2", "IndexError", "Dimension out of range")],
    keeps: Some("dim self_sym_sizes"),
    ..OP
};

pub static SQUEEZE_DIMS: Op = Op {
    sig: sig("squeeze.dims(Tensor self, Dim[] dim) -> Tensor"),
    doc: "Drops the given dimensions where they are of size one.",
    forms: FMI,
    body: Body::View(|c| {
        let t = c.tensor(0)?;
        let dims = c.distinct_dims("dim")?;
        Ok(t.layout().squeeze(|i| dims.contains(&i)))
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().reshape(&c.sizes(0)))]),
    node: "SqueezeBackward2",
    inplace_node: "SqueezeBackward5",
    samples: &["f32[1,3,1], (0, 2)", "f32[2,1,3], (1,)"],
    errors: &[("f32[2,3], (2,)", "IndexError", "Dimension out of range")],
    keeps: Some("dim self_sym_sizes"),
    ..OP
};

pub static UNSQUEEZE: Op = Op {
    sig: sig("unsqueeze(Tensor self, Dim+ dim) -> Tensor"),
    doc: "Inserts a dimension of size one.",
    forms: FMI,
    body: Body::View(|c| {
        let t = c.tensor(0)?;
        Ok(t.layout().unsqueeze(c.dim("dim")))
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| SQUEEZE_DIM.call((c.g(), c.int("dim"))))]),
    inplace_node: "UnsqueezeBackward1",
    samples: &["f32[2,3], 0", "f32[2,3], -1", "f32[2,3], 1"],
    errors: &[("f32[2,3], 4", "IndexError", "Dimension out of range")],
    reference: "np.expand_dims(x0, x1)",
    ..OP
};

pub static SELECT: Op = Op {
    sig: sig("select(Tensor self, Dim dim, int index) -> Tensor"),
    doc: "One index of a dimension, which disappears.",
    body: Body::View(|c| {
        let (t, index) = (c.tensor(0)?, c.int("index")?);
        if t.ndim() == 0 {
            return Err(Error::index("select() cannot be applied to a 0-dim tensor."));
        }
        let dim = c.dim("dim");
        let n = t.size(dim) as i64;
        if index < -n || index >= n {
            return Err(Error::index(format!(
                "select(): index {index} out of range for tensor of size {} at dimension {dim}",
                crate::error::Show(t.shape())
            )));
        }
        Ok(t.layout().select(dim, index.rem_euclid(n) as usize))
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        c.unwindow(&SELECT_BACKWARD, |l| {
            let dim = c.dim("dim");
            Ok(l.select(dim, c.int("index").rem_euclid(l.shape[dim] as i64) as usize))
        })
    })]),
    samples: &["f32[2,3], 0, 1", "f32[2,3], -1, -1"],
    errors: &[
        ("f32[2,3], 0, 2", "IndexError", "out of range"),
        ("f32[2,3], 3, 0", "IndexError", "Dimension out of range"),
    ],
    reference: "np.take(x0, x2, axis=x1)",
    keeps: Some("dim index self_sym_sizes"),
    ..OP
};

pub static SLICE: Op = Op {
    sig: sig("_slice(Tensor self, Dim dim=0, int? start=None, int? end=None, int step=1) -> Tensor"),
    doc: "Every `step`-th index of a dimension from `start` to `end`: what `x[start:end:step]` calls.",
    forms: HIDDEN,
    body: Body::View(|c| {
        let t = c.tensor(0)?;
        if t.ndim() == 0 {
            return Err(Error::runtime("slice() cannot be applied to a 0-dim tensor."));
        }
        sliced(t.layout(), c.dim("dim"), [c.opt_int("start"), c.opt_int("end"), c.opt_int("step")])
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        c.unwindow(&SLICE_BACKWARD, |l| {
            sliced(l, c.dim("dim"), [c.opt_int("start"), c.opt_int("end"), c.opt_int("step")])
        })
    })]),
    samples: &["f32[5,3], 0, 1, 4", "f32[5,3], 0, 0, 5, 2", "f32[5,3], 1, -2"],
    errors: &[("f32[5], 0, 0, 3, 0", "ValueError", "greater than zero")],
    keeps: Some("dim end self_sym_sizes start step"),
    ..OP
};

pub(crate) fn sliced(l: &Layout, dim: usize, [start, stop, step]: [Option<i64>; 3]) -> Result<Layout> {
    let slice = crate::layout::Slice { start, stop, step };
    Ok(l.slice(dim, slice.resolve(l.shape[dim])?))
}

impl Term {
    pub fn reshape(self, sizes: &[i64]) -> Term {
        RESHAPE.call((self, sizes))
    }
    pub fn transpose(self, a: i64, b: i64) -> Term {
        TRANSPOSE.call((self, a, b))
    }
    pub fn unsqueeze(self, dim: i64) -> Term {
        UNSQUEEZE.call((self, dim))
    }
}
