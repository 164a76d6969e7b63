//! Views of parts of a tensor: narrow, diagonal, unfold, and the ways of splitting a dimension.
//!
//! Their gradient is one op, `_place` under several names: zeros with the gradient written at the view's positions. It
//! is one pass over memory, and its own gradient is the view again.

use super::as_strided::{AS_STRIDED_VIEW, as_strided_grad, geometry};
use super::reshape::SLICE;
use super::split::nonscalar_dim;
use crate::error::{Error, Result, Show};
use crate::layout::{Layout, checked_numel, to_shape, wrap_dim};
use crate::op::*;
use crate::ops::support::batch_views;
use crate::rt::reserve::{list, probe, room};
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[
    &NARROW,
    &NARROW_TENSOR,
    &DIAGONAL,
    &LINALG_DIAGONAL,
    &UNFOLD,
    &PLACE,
    &SELECT_BACKWARD,
    &SLICE_BACKWARD,
    &DIAGONAL_BACKWARD,
    &TENSOR_SPLIT,
    &TENSOR_SPLIT_INDICES,
    &TENSOR_SPLIT_TENSOR,
    &HSPLIT,
    &HSPLIT_INDICES,
    &VSPLIT,
    &VSPLIT_INDICES,
    &DSPLIT,
    &DSPLIT_INDICES,
];

const PLACING: Op = Op {
    doc: "Zeros of `input_size` with `grad` written at the positions `offset + sum(index * stride)`, which differ.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let (g, shape) = (c.tensor("grad")?, to_shape(c.ints("input_size")?)?);
            let sizes: Ints = g.shape().iter().map(|&d| d as i64).collect();
            Layout::as_strided(&sizes, c.ints("stride")?, c.int("offset")?, checked_numel(&shape)?)?;
            Ok(Spec::one(&shape, g.dtype(), g.device()))
        },
        place,
        Some(place),
    ),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let g = c.g().contiguous();
        let Some(l) = g.get().map(|t| t.layout().clone()) else { return g };
        let (stride, offset) = (c.ints("stride"), c.int("offset") + l.offset as i64);
        AS_STRIDED_VIEW.call((g, c.sizes(0), stride, offset, geometry(&l)))
    })]),
    samples: &["f32[2,2], (6,), (2, 1), 1"],
    errors: &[("f32[5], (4,), (1,), 0", "RuntimeError", "out of bounds")],
    batch: Batching::Rule(batch_views::place),
    ..OP
};
pub static PLACE: Op =
    Op { sig: sig("_place(Tensor grad, Size input_size, int[] stride, int offset) -> Tensor"), ..PLACING };
// The same by the names that PyTorch's graphs have for the gradients of single views.
pub static SELECT_BACKWARD: Op = Op {
    sig: sig("_select_backward(Tensor grad, Size input_size, int[] stride, int offset) -> Tensor"),
    node: "SelectBackwardBackward0",
    ..PLACING
};
pub static SLICE_BACKWARD: Op = Op {
    sig: sig("_slice_backward(Tensor grad, Size input_size, int[] stride, int offset) -> Tensor"),
    node: "SliceBackwardBackward0",
    ..PLACING
};
pub static DIAGONAL_BACKWARD: Op = Op {
    sig: sig("_diagonal_backward(Tensor grad, Size input_size, int[] stride, int offset) -> Tensor"),
    node: "DiagonalBackwardBackward0",
    ..PLACING
};

fn place(c: &Call, out: &[Tensor]) -> Result<()> {
    let g = c.tensor("grad")?;
    out[0].fill_raw(crate::dtype::Scalar::Int(0))?;
    let strides = c.ints("stride")?.iter().map(|&s| s as usize).collect();
    let layout = Layout { shape: g.shape().into(), strides, offset: c.int("offset")? as usize };
    out[0].with_layout(layout).copy_raw(g)
}

impl VjpCtx<'_> {
    /// The gradient of the view that `f` makes of a layout, without repeated elements; `op` is `PLACE` under its name.
    pub fn unwindow(&self, op: &'static Op, f: impl FnOnce(&Layout) -> Result<Layout>) -> Term {
        match f(&Layout::contiguous(&self.shape(0))) {
            Ok(l) => op.call((self.g(), self.sizes(0), &*l.strides, l.offset)),
            Err(e) => e.into(),
        }
    }
}

pub static NARROW: Op = Op {
    sig: sig("narrow(Tensor self, int dim, int start, int length) -> Tensor"),
    doc: "The indices `start .. start + length` of a dimension, as a view.",
    body: decompose(|c| narrow(c, c.int("start")?)),
    vjp: Vjp::Composite,
    samples: &["f32[3,4], 0, 1, 2", "f32[3,4], -1, -3, 2", "f32[3], 0, 3, 0"],
    errors: &[
        ("f32[3], 0, 1, 3", "RuntimeError", "exceeds dimension size (3)"),
        ("f32[3], 0, 4, 0", "IndexError", "start out of range"),
        ("f32[3], 0, 0, -1", "RuntimeError", "length must be non-negative"),
    ],
    ..OP
};

pub static NARROW_TENSOR: Op = Op {
    sig: sig("narrow.Tensor(Tensor self, int dim, Tensor start, int length) -> Tensor"),
    doc: "The indices from a 0-d integer tensor `start` on.",
    body: reads_host(|c| {
        let start = c.tensor("start")?;
        if start.ndim() != 0 || !start.dtype().is_int() {
            return Err(Error::runtime("start must be an 0-dim integral Tensor."));
        }
        narrow(c, crate::ops::support::host_read::item(start)?.to_i64())
    }),
    vjp: Vjp::Composite,
    samples: &["f32[3,4], 0, i64[](= 1), 2"],
    errors: &[("f32[3], 0, i64[1](= 1), 2", "RuntimeError", "0-dim integral")],
    ..OP
};

fn narrow(c: &Call, start: i64) -> Result<Outputs> {
    let (t, length) = (c.tensor(0)?, c.int("length")?);
    if t.ndim() == 0 {
        return Err(Error::runtime("narrow() cannot be applied to a 0-dim tensor."));
    }
    if length < 0 {
        return Err(Error::runtime("narrow(): length must be non-negative."));
    }
    let dim = wrap_dim(c.int("dim")?, t.ndim())?;
    let n = t.size(dim) as i64;
    if start < -n || start > n {
        return Err(Error::index(format!(
            "start out of range (expected to be in range of [{}, {n}], but got {start})",
            -n
        )));
    }
    let from = if start < 0 { start + n } else { start };
    if from > n - length {
        return Err(Error::runtime(format!("start ({from}) + length ({length}) exceeds dimension size ({n}).")));
    }
    SLICE.calls((t, dim, from, from + length))
}

pub static DIAGONAL: Op = Op {
    sig: sig("diagonal(Tensor self, int offset=0, Dim dim1=0, Dim dim2=1) -> Tensor"),
    doc: "The diagonal of two dimensions as a view; it becomes the last dimension. `offset` moves it up (or, negative, down).",
    body: Body::View(|c| c.tensor(0)?.layout().diagonal(c.int("offset")?, c.int("dim1")?, c.int("dim2")?)),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let at = |i| c.int(i);
        c.unwindow(&DIAGONAL_BACKWARD, |l| l.diagonal(at(1), at(2), at(3)))
    })]),
    samples: &["f32[3,4]", "f32[3,4], 1", "f32[2,3,4], -1, 0, 2", "f32[2,3], 5"],
    errors: &[
        ("f32[3,3], 0, 1, 1", "RuntimeError", "cannot be identical"),
        ("f32[3,3], 0, 0, 2", "IndexError", "Dimension out of range"),
    ],
    reference: "np.diagonal(x0, offset, dim1, dim2)",
    keeps: Some("dim1 dim2 offset self_sym_sizes"),
    ..OP
};

pub static LINALG_DIAGONAL: Op = Op {
    sig: sig("linalg.diagonal(Tensor A, *, int offset=0, Dim dim1=-2, Dim dim2=-1) -> Tensor"),
    doc: "`diagonal` of matrices: of the last two dimensions by default.",
    forms: F,
    body: decompose(|c| DIAGONAL.calls((c.tensor("A")?, c.int("offset")?, c.int("dim1")?, c.int("dim2")?))),
    vjp: Vjp::Composite,
    samples: &["f32[3,4]", "f32[2,3,4]", "f32[2,3,4], offset=1, dim1=0"],
    errors: &[("f32[3,3], dim1=1, dim2=1", "RuntimeError", "cannot be identical")],
    reference: "np.diagonal(x0, offset, dim1, dim2)",
    ..OP
};

pub static UNFOLD: Op = Op {
    sig: sig("unfold(Tensor self, Dim dimension, int size, int step) -> Tensor"),
    doc: "Windows of `size`, `step` apart, of a dimension, as a view: the windows take its place, their elements come last.",
    forms: M,
    body: Body::View(|c| unfolded(c.tensor(0)?.layout(), c)),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let whole = Layout::contiguous(&c.shape(0));
        match unfolded(&whole, c) {
            Ok(l) => as_strided_grad(c.g(), &whole, &l),
            Err(e) => e.into(),
        }
    })]),
    samples: &["f32[7], 0, 3, 2", "f32[2,5], 1, 2, 1", "f32[4], -1, 4, 1"],
    errors: &[
        ("f32[3], 0, 4, 1", "RuntimeError", "maximum size for tensor at dimension 0 is 3 but size is 4"),
        ("f32[3], 0, 2, 0", "RuntimeError", "step is 0 but must be > 0"),
    ],
    keeps: Some("dimension self_sym_sizes size step"),
    ..OP
};

fn unfolded(l: &Layout, c: &impl Dimensions) -> Result<Layout> {
    let (size, step) = (c.int("size")?, c.int("step")?);
    let dim = c.dim("dimension");
    let n = l.shape.get(dim).copied().unwrap_or(1) as i64;
    if size < 0 {
        return Err(Error::runtime(format!("size is {size} but must be >= 0")));
    }
    if size > n {
        return Err(Error::runtime(format!("maximum size for tensor at dimension {dim} is {n} but size is {size}")));
    }
    if step <= 0 {
        return Err(Error::runtime(format!("step is {step} but must be > 0")));
    }
    let mut out = l.clone();
    if let Some(d) = out.shape.get_mut(dim) {
        let stride = out.strides[dim];
        *d = ((n - size) / step + 1) as usize;
        out.strides[dim] = stride.saturating_mul(step as usize).min(isize::MAX as usize / 16);
        out.strides.push(stride);
    } else {
        out.strides.push(1);
    }
    out.shape.push(size as usize);
    Ok(out)
}

/// Slices between neighbouring bounds; bounds beyond the dimension give empty parts.
fn cut_at(t: &Tensor, dim: usize, bounds: &[i64]) -> Result<Outputs> {
    views(bounds.len() + 1)?;
    let mut start = 0;
    let mut parts = Outputs::new();
    for &stop in bounds {
        parts.push(SLICE.call((t, dim, start, stop)).ok()?);
        start = stop;
    }
    parts.push(SLICE.call((t, dim, start, t.size(dim))).ok()?);
    Ok(parts)
}

const SCALAR: &str = "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims";

/// Parts whose sizes differ by one at most, the larger ones first.
fn cut_evenly(t: &Tensor, dim: usize, sections: i64) -> Result<Outputs> {
    if sections <= 0 {
        return Err(Error::runtime(format!("number of sections must be larger than 0, got {sections}")));
    }
    views(sections as usize)?;
    let n = t.size(dim) as i64;
    let bounds = list((1..sections).map(|i| i * (n / sections) + i.min(n % sections)))?;
    cut_at(t, dim, &bounds)
}

pub static TENSOR_SPLIT: Op = Op {
    sig: sig("tensor_split.sections(Tensor self, int sections, int dim=0) -> Tensor[]"),
    doc: "Cuts a dimension into `sections` parts whose sizes differ by one at most.",
    body: decompose(|c| cut_evenly(c.tensor(0)?, nonscalar_dim(c, SCALAR)?, c.int("sections")?)),
    vjp: Vjp::Composite,
    samples: &["f32[7], 3", "f32[2,4], 2, 1", "f32[2], 3"],
    errors: &[("f32[3], 0", "RuntimeError", "must be larger than 0")],
    ..OP
};

pub static TENSOR_SPLIT_INDICES: Op = Op {
    sig: sig("tensor_split.indices(Tensor self, int[] indices, int dim=0) -> Tensor[]"),
    doc: "Cuts a dimension before each of the given indices.",
    body: decompose(|c| cut_at(c.tensor(0)?, nonscalar_dim(c, SCALAR)?, c.ints("indices")?)),
    vjp: Vjp::Composite,
    samples: &["f32[7], (1, 6)", "f32[2,4], (1,), 1"],
    errors: &[("f32[3], (1,), 1", "IndexError", "Dimension out of range")],
    ..OP
};

pub static TENSOR_SPLIT_TENSOR: Op = Op {
    sig: sig(
        "tensor_split.tensor_indices_or_sections(Tensor self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor[]",
    ),
    doc: "Cuts a dimension by a CPU tensor: a 0-d one is the number of sections, a 1-d one holds indices.",
    body: reads_host(|c| {
        let (t, how, dim) = (c.tensor(0)?, c.tensor("tensor_indices_or_sections")?, nonscalar_dim(c, SCALAR)?);
        if how.ndim() > 1 || how.dtype() != crate::dtype::DType::I64 {
            return Err(Error::runtime(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor of dtype int64",
            ));
        }
        let numbers = super::split::numbers_of(how)?;
        if how.ndim() == 0 { cut_evenly(t, dim, numbers[0]) } else { cut_at(t, dim, &numbers) }
    }),
    vjp: Vjp::Composite,
    samples: &["f32[7], i64[2](= 1, 6)", "f32[7], i64[](= 3)"],
    errors: &[("f32[3], i64[1,1](= 1)", "RuntimeError", "zero-dimensional or one-dimensional")],
    ..OP
};

/// The dimension that `hsplit`, `vsplit` or `dsplit` splits, after checking the rank and that the parts are equal.
fn named_split(c: &Call, name: &str, least: usize, dim: usize) -> Result<Outputs> {
    let t = c.tensor(0)?;
    if t.ndim() < least {
        return Err(Error::runtime(format!(
            "torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {} dimensions!",
            t.ndim()
        )));
    }
    let Some(sections) = c.opt_int(1) else { return cut_at(t, dim, c.ints(1)?) };
    if sections <= 0 || t.size(dim) as i64 % sections != 0 {
        return Err(Error::runtime(format!(
            "torch.{name} attempted to split along dimension {dim}, but the size of the dimension {} is not divisible by the split_size {sections}! Shape: {}",
            t.size(dim),
            Show(t.shape())
        )));
    }
    cut_evenly(t, dim, sections)
}

fn hsplit(c: &Call) -> Result<Outputs> {
    named_split(c, "hsplit", 1, if c.tensor(0)?.ndim() == 1 { 0 } else { 1 })
}

// A fresh cell for every literal is what taking over its parts must give.
const NAMED: Op =
    Op { vjp: Vjp::Composite, errors: &[("f32[], 2", "RuntimeError", "requires a tensor with at least")], ..OP };
// A fresh cell for every literal is what taking over its parts must give.
const NAMED_INDICES: Op =
    Op { vjp: Vjp::Composite, errors: &[("f32[], (1,)", "RuntimeError", "requires a tensor with at least")], ..OP };

pub static HSPLIT: Op = Op {
    sig: sig("hsplit(Tensor self, int sections) -> Tensor[]"),
    doc: "Cuts into equal parts along columns (dimension 1; 0 of a 1-d tensor).",
    body: decompose(hsplit),
    samples: &["f32[4], 2", "f32[2,4], 2"],
    ..NAMED
};
pub static HSPLIT_INDICES: Op = Op {
    sig: sig("hsplit.array(Tensor self, int[] indices) -> Tensor[]"),
    doc: "Cuts along columns before each of the given indices.",
    body: decompose(hsplit),
    samples: &["f32[2,4], (1, 3)"],
    ..NAMED_INDICES
};
pub static VSPLIT: Op = Op {
    sig: sig("vsplit(Tensor self, int sections) -> Tensor[]"),
    doc: "Cuts into equal parts along rows (dimension 0).",
    body: decompose(|c| named_split(c, "vsplit", 2, 0)),
    samples: &["f32[4,2], 2"],
    ..NAMED
};
pub static VSPLIT_INDICES: Op = Op {
    sig: sig("vsplit.array(Tensor self, int[] indices) -> Tensor[]"),
    doc: "Cuts along rows before each of the given indices.",
    body: decompose(|c| named_split(c, "vsplit", 2, 0)),
    samples: &["f32[4,2], (1, 3)"],
    ..NAMED_INDICES
};
pub static DSPLIT: Op = Op {
    sig: sig("dsplit(Tensor self, int sections) -> Tensor[]"),
    doc: "Cuts into equal parts along depth (dimension 2).",
    body: decompose(|c| named_split(c, "dsplit", 3, 2)),
    samples: &["f32[2,1,4], 2"],
    ..NAMED
};
pub static DSPLIT_INDICES: Op = Op {
    sig: sig("dsplit.array(Tensor self, int[] indices) -> Tensor[]"),
    doc: "Cuts along depth before each of the given indices.",
    body: decompose(|c| named_split(c, "dsplit", 3, 2)),
    samples: &["f32[2,1,4], (1, 3)"],
    ..NAMED_INDICES
};

/// An empty list with capacity for `n` views; an error if there is not enough memory for them, their tensors and nodes.
pub(crate) fn views(n: usize) -> Result<Vec<Layout>> {
    /// Bytes per view: a layout, a handle with its metadata, a Python object, an edge and a slot of the node.
    const VIEW: usize = 640;
    probe(n.saturating_mul(VIEW))?;
    room(n)
}

/// Parts of one dimension with the given sizes, which add up to it.
pub(crate) fn split_layouts(c: &Call, sizes: &[i64]) -> Result<Vec<Layout>> {
    let t = c.tensor(0)?;
    let dim = nonscalar_dim(c, "split expects at least a 1-dimensional tensor")?;
    let n = t.size(dim) as i64;
    if sizes.iter().any(|&p| p < 0) {
        return Err(Error::runtime(format!(
            "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={}",
            Show(sizes)
        )));
    }
    if sizes.iter().try_fold(0i64, |sum, &p| sum.checked_add(p)) != Some(n) {
        return Err(Error::runtime(format!(
            "split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {dim}), but got split_sizes={}",
            Show(sizes)
        )));
    }
    let mut start = 0;
    let mut out = views(sizes.len())?;
    for &p in sizes {
        out.push(t.layout().slice(dim, (start, p as usize, 1)));
        start += p as usize;
    }
    Ok(out)
}
