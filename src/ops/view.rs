//! Views: the same memory under another shape. Layout arithmetic only; the data stays where it is.

use super::copy::CLONE;
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout, wrap_dim, wrap_dims};
use crate::op::*;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &AS_STRIDED,
    &AS_STRIDED_VIEW,
    &AS_STRIDED_,
    &VIEW,
    &RESHAPE,
    &UNSAFE_VIEW,
    &PERMUTE,
    &TRANSPOSE,
    &T,
    &EXPAND,
    &SQUEEZE,
    &SQUEEZE_DIM,
    &UNSQUEEZE,
    &SELECT,
    &SLICE,
    &SPLIT,
    &SPLIT_SIZES,
    &SPLIT_WITH_SIZES,
    &UNBIND,
];

/// One view of the dtype of self.
pub(super) fn one(c: &Call, layout: Layout) -> Result<Layouts> {
    Ok(smallvec![(layout, c.tensor(0)?.dtype())])
}

pub static AS_STRIDED: Op = Op {
    sig: "as_strided(Tensor self, Size size, int[] stride, int? storage_offset=None) -> Tensor",
    doc: "A view of the storage with any sizes and strides (in elements). Errors where it would reach beyond the storage.",
    body: composite(|c| {
        let t = c.tensor(0)?;
        let offset = c.opt_int(3).unwrap_or(t.layout().offset as i64);
        AS_STRIDED_VIEW.calls((t, c.ints(1)?, c.ints(2)?, offset, geometry(t.layout())))
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[6], (2, 2), (2, 1)",
        "f32[6], (2, 2), (2, 1), 1",
        "f32[2,3], (3, 2), (1, 3)",
        "f32[5], (4, 2), (1, 1)",
    ],
    errors: &[
        ("f32[4], (5,), (1,)", "RuntimeError", "out of bounds"),
        ("f32[4], (2,), (-1,)", "RuntimeError", "Negative strides"),
    ],
    ..OP
};

/// Strides and offset in one list: how the input of `as_strided` lay, which its gradient must know.
pub(crate) fn geometry(l: &Layout) -> Ints {
    l.strides.iter().chain([&l.offset]).map(|&s| s as i64).collect()
}

fn strided(c: &Call) -> Result<Layouts> {
    let t = c.tensor(0)?;
    let offset = c.opt_int(3).unwrap_or(t.layout().offset as i64);
    one(c, Layout::as_strided(c.ints(1)?, c.ints(2)?, offset, t.storage().bytes() / t.dtype().size())?)
}

/// `as_strided` with the geometry of its input noted; without it the input counts as contiguous.
pub static AS_STRIDED_VIEW: Op = Op {
    sig: "_as_strided(Tensor self, Size size, int[] stride, int? storage_offset=None, int[]? geometry=None) -> Tensor",
    doc: "A view with any sizes and strides of a tensor whose own strides and offset are `geometry`.",
    forms: HIDDEN,
    body: Body::View(strided),
    vjp: Vjp::Each(&[d(0, 0, |c| match strided_pair(c) {
        Ok((whole, part)) => as_strided_grad(c.g(), &whole, &part),
        Err(e) => e.into(),
    })]),
    samples: &["f32[6], (2, 2), (2, 1), 1"],
    errors: &[("f32[4], (5,), (1,)", "RuntimeError", "out of bounds")],
    ..OP
};

pub static AS_STRIDED_: Op = Op {
    sig: "as_strided_(Tensor self, Size size, int[] stride, int? storage_offset=None) -> Tensor",
    doc: "Gives the tensor itself other sizes and strides over its storage.",
    forms: ONLY_INPLACE,
    body: Body::View(strided),
    vjp: Vjp::None("changes the handle"),
    samples: &["f32[6](nograd), (2, 2), (2, 1)"],
    errors: &[("f32[4](nograd), (5,), (1,)", "RuntimeError", "out of bounds")],
    ..OP
};

/// The layouts of the input and the output of a recorded `_as_strided`.
fn strided_pair(c: &Back) -> Result<(Layout, Layout)> {
    let shape = c.shape(0);
    let whole = match c.call.args.get(4).and_then(|v| if let Value::Ints(g) = v { Some(g) } else { None }) {
        Some(g) => {
            let all: Dims = g.iter().map(|&s| s as usize).collect();
            Layout { strides: all[..shape.len()].into(), offset: all[shape.len()], shape }
        }
        None => Layout::contiguous(&shape),
    };
    let offset = c.opt_int(3).unwrap_or(whole.offset as i64);
    Ok((whole, Layout::as_strided(c.ints(1)?, c.ints(2)?, offset, usize::MAX)?))
}

/// Whether two indices may reach one element: exact for layouts whose dimensions nest, else on the safe side.
fn may_overlap(l: &Layout) -> bool {
    let mut dims: Vec<(usize, usize)> =
        l.strides.iter().copied().zip(l.shape.iter().copied()).filter(|&(_, d)| d != 1).collect();
    dims.sort_unstable();
    let mut reach = 0;
    dims.iter().any(|&(s, d)| {
        let meets = s <= reach;
        reach += s * d.saturating_sub(1);
        meets
    })
}

/// The gradient of a view `part` of the storage of `whole`: each element goes back to the position it was read from,
/// positions that were read repeatedly add up, and `whole` takes what lies at its own positions.
pub(super) fn as_strided_grad(g: Term, whole: &Layout, part: &Layout) -> Term {
    let sizes = |l: &Layout| l.shape.iter().map(|&d| d as i64).collect::<Ints>();
    let span = whole.end().max(part.end());
    let plain = whole.is_contiguous() && whole.offset == 0 && span == whole.numel();
    if !may_overlap(part) && plain {
        return super::slice::PLACE.call((g, sizes(whole), &*part.strides, part.offset));
    }
    let flat = if may_overlap(part) {
        super::take::add_at(g, part, span)
    } else {
        super::slice::PLACE.call((g, [span as i64], &*part.strides, part.offset))
    };
    if plain {
        flat.reshape(&sizes(whole))
    } else {
        AS_STRIDED_VIEW.call((flat, sizes(whole), &*whole.strides, whole.offset))
    }
}

pub static VIEW: Op = Op {
    sig: "view(Tensor self, Size size) -> Tensor",
    doc: "The same memory under another shape; -1 stands for what is left. Errors where a copy would be needed.",
    forms: M,
    body: Body::View(|c| one(c, c.tensor(0)?.layout().view(c.ints(1)?)?)),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().reshape(&c.sizes(0)))]),
    samples: &["f32[2,6], (3, 4)", "f32[2,6], (-1,)", "f32[2,3], (1, 2, 3)"],
    errors: &[
        ("f32[2,3], (4, 2)", "RuntimeError", "is invalid for input of size 6"),
        ("f32[2,3], (-1, -1)", "RuntimeError", "only one dimension can be inferred"),
    ],
    ..OP
};

pub static RESHAPE: Op = Op {
    sig: "reshape(Tensor self, Size shape) -> Tensor",
    doc: "The same elements under another shape: a view where possible, else a copy. -1 stands for what is left.",
    body: composite(|c| {
        let (t, sizes) = (c.tensor(0)?, c.ints(1)?);
        let shape = t.layout().infer_shape(sizes)?;
        match t.layout().view_strides(&shape) {
            Some(_) => VIEW.calls((t, sizes)),
            None => UNSAFE_VIEW.calls((CLONE.call((t,)), sizes)),
        }
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,6], (3, 4)", "f32[2,6], (-1,)", "f32[0,3], (3, 0)"],
    errors: &[("f32[2,3], (4, 2)", "RuntimeError", "is invalid for input of size 6")],
    reference: "x0.reshape(x1)",
    ..OP
};

/// `view` of a fresh copy: named apart so that `grad_fn` reads as in PyTorch.
pub static UNSAFE_VIEW: Op = Op {
    sig: "_unsafe_view(Tensor self, Size size) -> Tensor",
    doc: "`view` of memory that nothing else refers to.",
    forms: HIDDEN,
    body: Body::View(|c| one(c, c.tensor(0)?.layout().view(c.ints(1)?)?)),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().reshape(&c.sizes(0)))]),
    samples: &["f32[2,6], (3, 4)"],
    errors: &[("f32[2,3], (4, 2)", "RuntimeError", "is invalid for input of size 6")],
    ..OP
};

pub static PERMUTE: Op = Op {
    sig: "permute(Tensor self, Size dims) -> Tensor",
    doc: "Reorders the dimensions.",
    body: Body::View(|c| {
        let t = c.tensor(0)?;
        one(c, t.layout().permute(&permutation(c.ints(1)?, t.ndim())?))
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let dims = c.ints(1).unwrap_or(&[]);
        let n = c.ndim(0) as i64;
        let mut inverse: Ints = smallvec![0; dims.len()];
        dims.iter().enumerate().for_each(|(i, &p)| inverse[p.rem_euclid(n.max(1)) as usize] = i as i64);
        PERMUTE.call((c.g(), inverse))
    })]),
    samples: &["f32[2,3,4], (2, 0, 1)", "f32[2,3], (-1, 0)"],
    errors: &[
        ("f32[2,3], (0, 0)", "RuntimeError", "multiple times"),
        ("f32[2,3], (0, 1, 2)", "RuntimeError", "number of dim"),
    ],
    reference: "np.transpose(x0, x1)",
    ..OP
};

fn permutation(dims: &[i64], ndim: usize) -> Result<Dims> {
    if dims.len() != ndim {
        return Err(Error::runtime(format!(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {}",
            dims.len()
        )));
    }
    wrap_dims(dims, ndim)
}

pub static TRANSPOSE: Op = Op {
    sig: "transpose(Tensor self, int dim0, int dim1) -> Tensor",
    doc: "Swaps two dimensions.",
    aliases: &["swapaxes", "swapdims"],
    forms: FMI,
    body: Body::View(|c| {
        let t = c.tensor(0)?;
        one(c, t.layout().transpose(wrap_dim(c.int(1)?, t.ndim())?, wrap_dim(c.int(2)?, t.ndim())?))
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| TRANSPOSE.call((c.g(), c.int(1).unwrap_or(0), c.int(2).unwrap_or(0))))]),
    samples: &["f32[2,3], 0, 1", "f32[2,3,4], -1, 0"],
    errors: &[("f32[2,3], 0, 2", "IndexError", "Dimension out of range")],
    reference: "np.swapaxes(x0, x1, x2)",
    ..OP
};

pub static T: Op = Op {
    sig: "t(Tensor self) -> Tensor",
    doc: "The transpose of a matrix; tensors of fewer dimensions are returned as views.",
    forms: FMI,
    body: Body::View(|c| {
        let t = c.tensor(0)?;
        match t.ndim() {
            0 | 1 => one(c, t.layout().clone()),
            2 => one(c, t.layout().transpose(0, 1)),
            n => Err(Error::runtime(format!("t() expects a tensor with <= 2 dimensions, but self is {n}D"))),
        }
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| T.call((c.g(),)))]),
    node: "TBackward0",
    samples: &["f32[2,3]", "f32[3]"],
    errors: &[("f32[2,3,4]", "RuntimeError", "<= 2 dimensions")],
    reference: "x0.T",
    ..OP
};

pub static EXPAND: Op = Op {
    sig: "expand(Tensor self, Size size) -> Tensor",
    doc: "Repeats dimensions of size one without copying; -1 keeps a size.",
    forms: M,
    body: Body::View(|c| one(c, c.tensor(0)?.layout().expand(c.ints(1)?)?)),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g())]),
    samples: &["f32[1,3], (2, 3)", "f32[3], (2, -1)", "f32[2,1], (2, 4)"],
    errors: &[("f32[2,3], (2, 4)", "RuntimeError", "must match the existing size")],
    ..OP
};

pub static SQUEEZE: Op = Op {
    sig: "squeeze(Tensor self) -> Tensor",
    doc: "Drops every dimension of size one.",
    forms: FMI,
    body: Body::View(|c| one(c, c.tensor(0)?.layout().squeeze(|_| true))),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().reshape(&c.sizes(0)))]),
    samples: &["f32[1,3,1]", "f32[2]"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    reference: "np.squeeze(x0)",
    ..OP
};

pub static SQUEEZE_DIM: Op = Op {
    sig: "squeeze.dim(Tensor self, int[1] dim) -> Tensor",
    doc: "Drops the given dimensions where they are of size one.",
    forms: FMI,
    body: Body::View(|c| {
        let t = c.tensor(0)?;
        let dims = wrap_dims(c.ints(1)?, t.ndim())?;
        one(c, t.layout().squeeze(|i| dims.contains(&i)))
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().reshape(&c.sizes(0)))]),
    node: "SqueezeBackward1",
    samples: &["f32[1,3,1], 0", "f32[1,3,1], (0, 2)", "f32[2,3], 1"],
    errors: &[("f32[2,3], 2", "IndexError", "Dimension out of range")],
    ..OP
};

pub static UNSQUEEZE: Op = Op {
    sig: "unsqueeze(Tensor self, int dim) -> Tensor",
    doc: "Inserts a dimension of size one.",
    forms: FMI,
    body: Body::View(|c| {
        let t = c.tensor(0)?;
        one(c, t.layout().unsqueeze(wrap_dim(c.int(1)?, t.ndim() + 1)?))
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| c.g().reshape(&c.sizes(0)))]),
    samples: &["f32[2,3], 0", "f32[2,3], -1", "f32[2,3], 1"],
    errors: &[("f32[2,3], 4", "IndexError", "Dimension out of range")],
    reference: "np.expand_dims(x0, x1)",
    ..OP
};

pub static SELECT: Op = Op {
    sig: "select(Tensor self, int dim, int index) -> Tensor",
    doc: "One index of a dimension, which disappears.",
    body: Body::View(|c| {
        let (t, index) = (c.tensor(0)?, c.int(2)?);
        if t.ndim() == 0 {
            return Err(Error::index("select() cannot be applied to a 0-dim tensor."));
        }
        let dim = wrap_dim(c.int(1)?, t.ndim())?;
        let n = t.size(dim) as i64;
        if index < -n || index >= n {
            return Err(Error::index(format!(
                "select(): index {index} out of range for tensor of size {} at dimension {dim}",
                crate::error::Show(t.shape())
            )));
        }
        one(c, t.layout().select(dim, index.rem_euclid(n) as usize))
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        c.unwindow(|l| {
            let dim = wrap_dim(c.int(1)?, l.ndim())?;
            Ok(l.select(dim, c.int(2)?.rem_euclid(l.shape[dim] as i64) as usize))
        })
    })]),
    samples: &["f32[2,3], 0, 1", "f32[2,3], -1, -1"],
    errors: &[
        ("f32[2,3], 0, 2", "IndexError", "out of range"),
        ("f32[2,3], 3, 0", "IndexError", "Dimension out of range"),
    ],
    reference: "np.take(x0, x2, axis=x1)",
    ..OP
};

pub static SLICE: Op = Op {
    sig: "_slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    doc: "Every `step`-th index of a dimension from `start` to `end`: what `x[start:end:step]` calls.",
    forms: HIDDEN,
    body: Body::View(|c| {
        let t = c.tensor(0)?;
        if t.ndim() == 0 {
            return Err(Error::runtime("slice() cannot be applied to a 0-dim tensor."));
        }
        one(c, sliced(t.layout(), c)?)
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| c.unwindow(|l| sliced(l, c)))]),
    samples: &["f32[5,3], 0, 1, 4", "f32[5,3], 0, 0, 5, 2", "f32[5,3], 1, -2"],
    errors: &[("f32[5], 0, 0, 3, 0", "ValueError", "greater than zero")],
    ..OP
};

fn sliced(l: &Layout, c: &dyn Arguments) -> Result<Layout> {
    let dim = wrap_dim(c.int(1)?, l.ndim())?;
    let slice = crate::layout::Slice { start: c.opt_int(2), stop: c.opt_int(3), step: c.opt_int(4) };
    Ok(l.slice(dim, slice.resolve(l.shape[dim])?))
}

pub static SPLIT: Op = Op {
    sig: "split(Tensor self, int split_size_or_sections, int dim=0) -> Tensor[]",
    doc: "Cuts a dimension into parts of a size; the last one may be smaller.",
    body: Body::View(|c| {
        let (t, step) = (c.tensor(0)?, c.int(1)?);
        let dim = wrap_nonscalar(t, c.int(2)?, "split expects at least a 1-dimensional tensor")?;
        let n = t.size(dim) as i64;
        if step < 0 {
            return Err(Error::runtime(format!("split expects split_size be non-negative, but got split_size={step}")));
        }
        if step == 0 && n != 0 {
            return Err(Error::runtime(format!(
                "split_size can only be 0 if dimension size is 0, but got dimension size of {n}"
            )));
        }
        let sizes: Ints =
            if n == 0 { smallvec![0] } else { (0..n).step_by(step as usize).map(|i| step.min(n - i)).collect() };
        super::slice::split_layouts(c, 2, &sizes)
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| joined(c))]),
    samples: &["f32[5,2], 2", "f32[2,4], 2, 1", "f32[3], 5"],
    errors: &[("f32[5], -1", "RuntimeError", "non-negative"), ("f32[5], 0", "RuntimeError", "can only be 0")],
    ..OP
};

pub static SPLIT_SIZES: Op = Op {
    sig: "split.sizes(Tensor self, int[] split_size_or_sections, int dim=0) -> Tensor[]",
    doc: "Cuts a dimension into parts of the given sizes.",
    body: Body::View(|c| super::slice::split_layouts(c, 2, c.ints(1)?)),
    vjp: Vjp::Each(&[d(0, 0, |c| joined(c))]),
    node: "SplitWithSizesBackward0",
    samples: &["f32[5,2], (2, 3)", "f32[2,4], (4,), 1"],
    errors: &[
        ("f32[5], (2, 2)", "RuntimeError", "split_with_sizes expects"),
        ("f32[5], (-1, 6)", "RuntimeError", "non-negative"),
    ],
    ..OP
};

pub static SPLIT_WITH_SIZES: Op = Op {
    sig: "split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
    doc: "Cuts a dimension into parts of the given sizes.",
    body: composite(|c| SPLIT_SIZES.calls((c.tensor(0)?, c.ints(1)?, c.int(2)?))),
    vjp: Vjp::Composite,
    samples: &["f32[5,2], (2, 3)", "f32[2,4], (1, 3), -1"],
    errors: &[("f32[5], (2, 2)", "RuntimeError", "split_with_sizes expects")],
    ..OP
};

/// The gradients of the parts of a split, zeros where none came back, put together again.
fn joined(c: &Back) -> Term {
    let parts: Result<Vec<_>> = (0..c.grads.len()).map(|i| c.gi(i).ok()).collect();
    parts.map_or_else(Term::from, |p| super::join::CAT.call((p, c.int(2).unwrap_or(0))))
}

pub static UNBIND: Op = Op {
    sig: "unbind(Tensor self, int dim=0) -> Tensor[]",
    doc: "Each index of a dimension as a view of its own.",
    body: Body::View(|c| {
        let t = c.tensor(0)?;
        let dim = wrap_dim(c.int(1)?, t.ndim())?;
        if t.ndim() == 0 {
            return Err(Error::index("Dimension specified as 0 but tensor has no dimensions"));
        }
        Ok((0..t.size(dim)).map(|i| (t.layout().select(dim, i), t.dtype())).collect())
    }),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let parts: Result<Vec<_>> = (0..c.grads.len()).map(|i| c.gi(i).ok()).collect();
        parts.map_or_else(Term::from, |p| super::join::STACK.call((p, c.int(1).unwrap_or(0))))
    })]),
    samples: &["f32[3,2]", "f32[2,3], 1"],
    errors: &[("f32[2], 2", "IndexError", "Dimension out of range")],
    ..OP
};

/// Wraps a dimension of a tensor that has dimensions.
pub(super) fn wrap_nonscalar(t: &crate::tensor::Tensor, dim: i64, otherwise: &str) -> Result<usize> {
    if t.ndim() == 0 {
        return Err(Error::runtime(otherwise));
    }
    wrap_dim(dim, t.ndim())
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
