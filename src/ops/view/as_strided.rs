//! `as_strided`: any sizes and strides over the storage of a tensor, and the gradient of views that repeat elements.
//!
//! The gradient needs the layout of the input, so it is recorded with the view.

use crate::error::{Error, Result, Show};
use crate::layout::{Dims, Layout};
use crate::op::*;
use crate::ops::create::full::FULL;
use crate::ops::indexing::take::add_at;
use crate::ops::movement::copy::{CLONE, COPY_};
use crate::ops::support::batch_views;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&AS_STRIDED, &AS_STRIDED_VIEW, &AS_STRIDED_, &AS_STRIDED_SCATTER];

pub static AS_STRIDED: Op = Op {
    sig: sig("as_strided(Tensor self, Size size, int[] stride, int? storage_offset=None) -> Tensor"),
    doc: "A view of the storage with any sizes and strides (in elements). Errors where it would reach beyond the storage.",
    body: decompose(|c| {
        let t = c.tensor(0)?;
        let offset = c.opt_int("storage_offset").unwrap_or(t.layout().offset as i64);
        AS_STRIDED_VIEW.calls((t, c.ints("size")?, c.ints("stride")?, offset, geometry(t.layout())))
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

/// Strides and offset of the input of `as_strided` in one list, for its gradient.
pub(crate) fn geometry(l: &Layout) -> Ints {
    l.strides.iter().chain([&l.offset]).map(|&s| s as i64).collect()
}

fn strided(c: &Call) -> Result<Layout> {
    let t = c.tensor(0)?;
    let offset = c.opt_int("storage_offset").unwrap_or(t.layout().offset as i64);
    let capacity = t.storage().bytes() / t.dtype().size();
    if let Some(g) = c.args.get(4).and_then(known_geometry) {
        let (own, strides) = g.split_last().ok_or_else(|| Error::runtime("the geometry ends with an offset"))?;
        Layout::as_strided(&Term::from(t).sizes(), strides, *own, capacity)?;
    }
    Layout::as_strided(c.ints("size")?, c.ints("stride")?, offset, capacity)
}

fn known_geometry<'a>(v: &'a Value) -> Option<&'a Ints> {
    if let Value::Ints(g) = v { Some(g) } else { None }
}

/// `as_strided` with the geometry of its input; without it the input counts as contiguous.
pub static AS_STRIDED_VIEW: Op = Op {
    sig: sig(
        "_as_strided(Tensor self, Size size, int[] stride, int? storage_offset=None, int[]? geometry=None) -> Tensor",
    ),
    doc: "A view with any sizes and strides of a tensor whose own strides and offset are `geometry`.",
    forms: HIDDEN,
    body: Body::View(strided),
    vjp: Vjp::Each(&[d(0, 0, |c| match strided_pair(c) {
        Ok((whole, part)) => as_strided_grad(c.g(), &whole, &part),
        Err(e) => e.into(),
    })]),
    samples: &["f32[6], (2, 2), (2, 1), 1"],
    errors: &[("f32[4], (5,), (1,)", "RuntimeError", "out of bounds")],
    keeps: Some("size storage_offset stride"),
    batch: Batching::ByStrides(batch_views::as_strided),
    ..OP
};

pub static AS_STRIDED_: Op = Op {
    sig: sig("as_strided_(Tensor! self, Size size, int[] stride, int? storage_offset=None) -> Tensor"),
    doc: "Gives the tensor itself other sizes and strides over its storage.",
    forms: INPLACE_FUNCTION,
    body: Body::View(strided),
    vjp: Vjp::None("changes the handle"),
    batch: Batching::ByStrides(batch_views::as_strided),
    samples: &["f32[6](nograd), (2, 2), (2, 1)"],
    errors: &[("f32[4](nograd), (5,), (1,)", "RuntimeError", "out of bounds")],
    ..OP
};

/// The layouts of the input and the output of a recorded `_as_strided`.
fn strided_pair(c: &VjpCtx) -> Result<(Layout, Layout)> {
    let shape = c.shape(0);
    let whole = match c.call.args.get(4).and_then(known_geometry) {
        Some(g) => {
            let all: Dims = g.iter().map(|&s| s as usize).collect();
            Layout { strides: all[..shape.len()].into(), offset: all[shape.len()], shape }
        }
        None => Layout::contiguous(&shape),
    };
    let offset = c.opt_int("storage_offset").unwrap_or(whole.offset as i64);
    Ok((whole, Layout::as_strided(c.ints("size"), c.ints("stride"), offset, usize::MAX)?))
}

/// Whether two indices may reach one element: exact for layouts whose dimensions nest, else conservative.
fn may_overlap(l: &Layout) -> bool {
    // Bounded by the number of dimensions.
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
/// repeated reads add up, and `whole` takes the elements at its own positions. Where several of its own elements lie in one
/// place (it was expanded, say), they share that place's gradient: the node before adds the shares up.
pub(crate) fn as_strided_grad(g: Term, whole: &Layout, part: &Layout) -> Term {
    let sizes = |l: &Layout| l.shape.iter().map(|&d| d as i64).collect::<Ints>();
    let span = whole.end().max(part.end());
    let plain = whole.is_contiguous() && whole.offset == 0 && span == whole.numel();
    if !may_overlap(part) && plain {
        return super::slice::PLACE.call((g, sizes(whole), &*part.strides, part.offset));
    }
    let flat = if may_overlap(part) {
        add_at(g, part, span)
    } else {
        super::slice::PLACE.call((g, [span as i64], &*part.strides, part.offset))
    };
    if plain {
        return flat.reshape(&sizes(whole));
    }
    let flat = if may_overlap(whole) { flat.shared(whole, span) } else { flat };
    AS_STRIDED_VIEW.call((flat, sizes(whole), &*whole.strides, whole.offset))
}

impl Term {
    /// A flat gradient divided by how many elements of `whole` lie in each of its `span` places.
    fn shared(self, whole: &Layout, span: usize) -> Term {
        let Some(t) = self.get() else { return self };
        let one = FULL.call((&whole.shape[..], 1.0, t.dtype().to_real(), t.device()));
        self / add_at(one, whole, span).clamp_min_(1.0)
    }
}

fn scattered(c: &Call) -> Result<Outputs> {
    let (whole, src) = (CLONE.call((c.tensor(0)?,)).ok()?, c.tensor("src")?);
    let part = AS_STRIDED.call((&whole, c.ints("size")?, c.ints("stride")?, c.opt_int("storage_offset"))).ok()?;
    if part.shape() != src.shape() {
        return Err(Error::runtime(format!(
            "expected src to have a size equal to the slice of self. src size = {}, slice size = {}",
            Show(src.shape()),
            Show(part.shape())
        )));
    }
    COPY_.call_inplace((&part, src))?;
    Ok(smallvec![whole])
}

pub static AS_STRIDED_SCATTER: Op = Op {
    sig: sig(
        "as_strided_scatter(Tensor self, Tensor src, Size size, int[] stride, int? storage_offset=None) -> Tensor",
    ),
    doc: "A copy of `self` with `src` where `as_strided` of it would be.",
    forms: FMO,
    body: decompose(scattered),
    vjp: Vjp::Joint(Joint { args: &[0, 1], saves: A0 | A1, formula: |c| c.through(scattered) }),
    samples: &["f32[6], f32[2,2], (2, 2), (2, 1), 1", "f32[2,3], f32[2,2], (2, 2), (1, 2)"],
    errors: &[
        ("f32[4], f32[2], (3,), (1,)", "RuntimeError", "expected src to have a size equal to the slice of self"),
        ("f32[4], f32[5], (5,), (1,)", "RuntimeError", "out of bounds"),
    ],
    keeps: Some("size storage_offset stride"),
    out_dtype: Some(OutDType::Same),
    ..OP
};
