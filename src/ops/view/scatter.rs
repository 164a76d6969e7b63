//! The functional forms of writes to a view: select_scatter, slice_scatter, diagonal_scatter. Copies of self with `src`
//! in place of the view.

use super::reshape::{SELECT, SLICE, sliced};
use super::slice::DIAGONAL;
use crate::error::{Error, Result, Show};
use crate::layout::Layout;
use crate::op::*;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&SELECT_SCATTER, &SLICE_SCATTER, &DIAGONAL_SCATTER];

type View = fn(&Layout, &Call) -> Result<Layout>;

/// The arguments after `src` define a view over (self, src, ..).
fn written(c: &Call, view: View) -> Result<Specs> {
    let (t, src) = (c.tensor(0)?, c.tensor("src")?);
    let part = view(t.layout(), c)?;
    if part.shape.as_slice() != src.shape() {
        return Err(Error::runtime(format!(
            "expected src to have a size equal to the slice of self. src size = {}, slice size = {}",
            Show(src.shape()),
            Show(&part.shape)
        )));
    }
    // Gaps are preserved: PyTorch copies the memory, not the elements.
    let layout = if t.layout().has_internal_overlap() { t.layout().fresh() } else { t.layout().clone() };
    Ok(smallvec![Spec { layout: Layout { offset: 0, ..layout }, ..Spec::like(t) }])
}

fn write(c: &Call, out: &[Tensor], view: View) -> Result<()> {
    out[0].copy_raw(c.tensor(0)?)?;
    out[0].with_layout(view(out[0].layout(), c)?).copy_raw(c.tensor("src")?)
}

fn selected(l: &Layout, c: &Call) -> Result<Layout> {
    let (dim, index) = (c.dim("dim"), c.int("index")?);
    let n = l.shape.get(dim).copied().unwrap_or(0) as i64;
    if index < -n || index >= n {
        return Err(Error::index(format!(
            "select(): index {index} out of range for tensor of size {} at dimension {dim}",
            Show(&l.shape)
        )));
    }
    Ok(l.select(dim, index.rem_euclid(n) as usize))
}

fn slice(l: &Layout, c: &Call) -> Result<Layout> {
    if l.ndim() == 0 {
        return Err(Error::runtime("slice() cannot be applied to a 0-dim tensor."));
    }
    sliced(l, c.dim("dim"), [c.opt_int("start"), c.opt_int("end"), c.opt_int("step")])
}

fn diagonal(l: &Layout, c: &Call) -> Result<Layout> {
    l.diagonal(c.int("offset")?, c.int("dim1")?, c.int("dim2")?)
}

/// The view of the gradient that belongs to `src`.
fn of_src(c: &VjpCtx, view: &'static Op) -> Term {
    let of_view = c.arguments().iter().enumerate().filter(|(i, _)| *i != 1);
    let mut args: Args = of_view.map(|(_, v)| v.reborrow().into_owned()).collect();
    match c.g().ok() {
        Ok(g) => args[0] = Value::Owned(g),
        Err(e) => return e.into(),
    }
    view.call(args)
}

/// The gradient of self: zero where `src` was written.
fn of_self(c: &VjpCtx) -> Term {
    let mut args: Args = c.call.args.iter().map(|v| v.reborrow().into_owned()).collect();
    let f = c.meta_of(1);
    match (c.g().ok(), Tensor::zeros(&f.shape, f.dtype, f.device)) {
        (Ok(g), Ok(zeros)) => {
            args[0] = Value::Owned(g);
            args[1] = Value::Owned(zeros);
        }
        (Err(e), _) | (_, Err(e)) => return e.into(),
    }
    c.call.op.call(args)
}

pub static SELECT_SCATTER: Op = Op {
    sig: sig("select_scatter(Tensor self, Tensor src, Dim dim, int index) -> Tensor"),
    doc: "A copy of self with `src` written over one index of a dimension.",
    forms: FMO,
    body: kernel(|c| written(c, selected), |c, out| write(c, out, selected), Some(|c, out| write(c, out, selected))),
    vjp: Vjp::Each(&[d(0, 0, of_self), d(1, 0, |c| of_src(c, &SELECT))]),
    samples: &["f32[2,3], f32[3], 0, 1", "f32[2,3], f32[2], -1, -1"],
    errors: &[
        ("f32[2,3], f32[3], 0, 5", "IndexError", "out of range"),
        ("f32[2,3], f32[2], 0, 1", "RuntimeError", "expected src to have a size equal to the slice"),
    ],
    batch: Batching::Shift,
    ..OP
};

pub static SLICE_SCATTER: Op = Op {
    sig: sig("slice_scatter(Tensor self, Tensor src, Dim dim=0, int? start=None, int? end=None, int step=1) -> Tensor"),
    doc: "A copy of self with `src` written over a slice of a dimension.",
    forms: FMO,
    body: kernel(|c| written(c, slice), |c, out| write(c, out, slice), Some(|c, out| write(c, out, slice))),
    vjp: Vjp::Each(&[d(0, 0, of_self), d(1, 0, |c| of_src(c, &SLICE))]),
    samples: &["f32[4,3], f32[2,3], 0, 1, 3", "f32[2,4], f32[2,2], dim=1, step=2"],
    errors: &[("f32[4], f32[3], 0, 1, 3", "RuntimeError", "expected src to have a size equal to the slice")],
    ..OP
};

pub static DIAGONAL_SCATTER: Op = Op {
    sig: sig("diagonal_scatter(Tensor self, Tensor src, int offset=0, Dim dim1=0, Dim dim2=1) -> Tensor"),
    doc: "A copy of self with `src` written over a diagonal.",
    forms: FMO,
    body: kernel(|c| written(c, diagonal), |c, out| write(c, out, diagonal), Some(|c, out| write(c, out, diagonal))),
    vjp: Vjp::Each(&[d(0, 0, of_self), d(1, 0, |c| of_src(c, &DIAGONAL))]),
    samples: &["f32[3,3], f32[3]", "f32[2,3], f32[2], 1"],
    errors: &[("f32[3,3], f32[2]", "RuntimeError", "expected src to have a size equal to the slice")],
    batch: Batching::Shift,
    ..OP
};
