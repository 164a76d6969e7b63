//! Other shapes of the same elements: flatten, movedim, the `_as` forms, broadcasting of several tensors, ranks.
//!
//! All are written with the views of `reshape.rs`, so their gradients and `grad_fn` names are those of the views.

use super::reshape::{EXPAND, PERMUTE, RESHAPE, UNSQUEEZE, VIEW};
use crate::error::{Error, Result, Show};
use crate::layout::{Dims, broadcast, wrap_dims};
use crate::op::*;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &FLATTEN,
    &UNFLATTEN,
    &RAVEL,
    &MOVEDIM,
    &MOVEDIM_LIST,
    &EXPAND_AS,
    &VIEW_AS,
    &RESHAPE_AS,
    &BROADCAST_TO,
    &ADJOINT,
    &ATLEAST_1D,
    &ATLEAST_1D_LIST,
    &ATLEAST_2D,
    &ATLEAST_2D_LIST,
    &ATLEAST_3D,
    &ATLEAST_3D_LIST,
    &BROADCAST_TENSORS,
    &MESHGRID,
];

pub(crate) fn sizes(t: &Tensor) -> Ints {
    t.shape().iter().map(|&d| d as i64).collect()
}

pub static FLATTEN: Op = Op {
    sig: sig("flatten(Tensor self, Dim start_dim=0, Dim end_dim=-1) -> Tensor"),
    doc: "Joins the dimensions from `start_dim` to `end_dim`, both included, into one. A view where possible.",
    body: decompose(|c| {
        let t = c.tensor(0)?;
        let (from, to) = (c.dim("start_dim"), c.dim("end_dim"));
        if from > to {
            return Err(Error::runtime("flatten() has invalid args: start_dim cannot come after end_dim"));
        }
        if t.ndim() == 0 {
            return RESHAPE.calls((t, [1]));
        }
        if from == to {
            return Ok(smallvec![t.clone()]);
        }
        let mut shape = sizes(t);
        let joined: i64 = shape.drain(from..=to).product();
        shape.insert(from, joined);
        RESHAPE.calls((t, shape))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3,4]", "f32[2,3,4], 1", "f32[2,3,4], 0, 1", "f32[]"],
    errors: &[
        ("f32[2,3], 1, 0", "RuntimeError", "start_dim cannot come after end_dim"),
        ("f32[2], 1", "IndexError", "Dimension out of range"),
    ],
    ..OP
};

pub static UNFLATTEN: Op = Op {
    sig: sig("unflatten(Tensor self, Dim dim, int[] sizes) -> Tensor"),
    doc: "Splits one dimension into several; one of the sizes may be -1. A view where possible.",
    body: decompose(|c| {
        let (t, parts) = (c.tensor(0)?, c.ints("sizes")?);
        let dim = c.dim("dim");
        if parts.is_empty() {
            return Err(Error::runtime("unflatten: sizes must be non-empty"));
        }
        let size = t.shape().get(dim).copied().unwrap_or(1);
        let Ok(parts) = crate::layout::Layout::contiguous(&[size]).infer_shape(parts) else {
            return Err(Error::runtime(format!(
                "unflatten: Provided sizes {} don't multiply up to the size of dim {dim} ({size}) in the input tensor",
                Show(parts)
            )));
        };
        let mut shape = sizes(t);
        shape.drain(dim..(dim + 1).min(t.ndim()));
        shape.insert_many(dim, parts.iter().map(|&d| d as i64));
        VIEW.calls((t, shape))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,6], 1, (2, 3)", "f32[6], 0, (-1, 2)", "f32[2,6,1], -2, (3, 2)"],
    errors: &[("f32[6], 0, (4, 2)", "RuntimeError", "don't multiply up to the size of dim 0 (6)")],
    ..OP
};

pub static RAVEL: Op = Op {
    sig: sig("ravel(Tensor self) -> Tensor"),
    doc: "All elements in one dimension, in row-major order. A view where possible.",
    body: decompose(|c| RESHAPE.calls((crate::ops::movement::copy::CONTIGUOUS.call((c.tensor(0)?,)), [-1]))),
    vjp: Vjp::Composite,
    samples: &["f32[2,3]", "f32[]"],
    errors: &[("'a'", "TypeError", "must be Tensor")],
    reference: "np.ravel(x0)",
    ..OP
};

fn moved(c: &Call, source: &[i64], target: &[i64]) -> Result<Outputs> {
    let t = c.tensor(0)?;
    if source.len() != target.len() {
        return Err(Error::runtime(format!(
            "movedim: Invalid source or destination dims: source ({} dims) should contain the same number of dims as destination ({} dims)",
            Show(source),
            Show(target)
        )));
    }
    let unique = |dims: &[i64], which: &str| {
        wrap_dims(dims, t.ndim()).map_err(|e| match e.message().contains("multiple times") {
            true => Error::runtime(format!("movedim: repeated dim in `{which}` ({})", Show(dims))),
            false => e,
        })
    };
    let (source, target) = (unique(source, "source")?, unique(target, "destination")?);
    if t.ndim() == 0 {
        return super::reshape::ALIAS.calls((t,));
    }
    let mut rest = (0..t.ndim()).filter(|d| !source.contains(d));
    let order: Dims = (0..t.ndim())
        .map(|i| match target.iter().position(|&d| d == i) {
            Some(k) => source[k],
            None => rest.next().unwrap_or(i),
        })
        .collect();
    PERMUTE.calls((t, &*order))
}

pub static MOVEDIM: Op = Op {
    sig: sig("movedim.int(Tensor self, int source, int destination) -> Tensor"),
    doc: "Moves one dimension to another place; the others keep their order.",
    aliases: &["moveaxis"],
    body: decompose(|c| moved(c, &[c.int("source")?], &[c.int("destination")?])),
    vjp: Vjp::Composite,
    samples: &["f32[2,3,4], 0, 2", "f32[2,3,4], -1, 0"],
    errors: &[("f32[2,3], 2, 0", "IndexError", "Dimension out of range")],
    reference: "np.moveaxis(x0, source, destination)",
    ..OP
};

pub static MOVEDIM_LIST: Op = Op {
    sig: sig("movedim.intlist(Tensor self, int[] source, int[] destination) -> Tensor"),
    doc: "Moves dimensions to other places; the others keep their order.",
    aliases: &["moveaxis"],
    body: decompose(|c| moved(c, c.ints("source")?, c.ints("destination")?)),
    vjp: Vjp::Composite,
    samples: &["f32[2,3,4], (0, 1), (-1, 0)"],
    errors: &[
        ("f32[2,3], (0, 0), (0, 1)", "RuntimeError", "repeated dim in `source`"),
        ("f32[2,3], (0,), (0, 1)", "RuntimeError", "same number of dims"),
    ],
    reference: "np.moveaxis(x0, source, destination)",
    ..OP
};

pub static EXPAND_AS: Op = Op {
    sig: sig("expand_as(Tensor self, Tensor other) -> Tensor"),
    doc: "Expanded to the shape of `other`.",
    forms: M,
    body: decompose(|c| EXPAND.calls((c.tensor(0)?, c.tensor("other")?.shape()))),
    vjp: Vjp::Composite,
    samples: &["f32[3], f32[2,3]"],
    errors: &[("f32[2], f32[3]", "RuntimeError", "must match the existing size")],
    reference: "np.broadcast_to(x0, x1.shape)",
    ..OP
};

pub static VIEW_AS: Op = Op {
    sig: sig("view_as(Tensor self, Tensor other) -> Tensor"),
    doc: "A view in the shape of `other`.",
    forms: M,
    body: decompose(|c| VIEW.calls((c.tensor(0)?, c.tensor("other")?.shape()))),
    vjp: Vjp::Composite,
    samples: &["f32[6], f32[2,3]"],
    errors: &[("f32[2], f32[3]", "RuntimeError", "is invalid for input of size 2")],
    reference: "x0.reshape(x1.shape)",
    ..OP
};

pub static RESHAPE_AS: Op = Op {
    sig: sig("reshape_as(Tensor self, Tensor other) -> Tensor"),
    doc: "Reshaped to the shape of `other`.",
    forms: M,
    body: decompose(|c| RESHAPE.calls((c.tensor(0)?, c.tensor("other")?.shape()))),
    vjp: Vjp::Composite,
    samples: &["f32[6], f32[2,3]"],
    errors: &[("f32[2], f32[3]", "RuntimeError", "is invalid for input of size 2")],
    reference: "x0.reshape(x1.shape)",
    ..OP
};

pub static BROADCAST_TO: Op = Op {
    sig: sig("broadcast_to(Tensor self, Size size) -> Tensor"),
    doc: "Expanded to a shape: `expand` under another name.",
    body: decompose(|c| EXPAND.calls((c.tensor(0)?, c.ints("size")?))),
    vjp: Vjp::Composite,
    samples: &["f32[3], (2, 3)", "f32[2,1], (2, 4)"],
    errors: &[("f32[2], (3,)", "RuntimeError", "must match the existing size")],
    reference: "np.broadcast_to(x0, size)",
    ..OP
};

pub static ADJOINT: Op = Op {
    sig: sig("adjoint(Tensor self) -> Tensor"),
    doc: "The conjugate transpose of the last two dimensions; real tensors are only transposed.",
    body: decompose(|c| {
        let t = c.tensor(0)?;
        match t.ndim() {
            0 if t.dtype().is_complex() => Term::from(t).conj().outputs(),
            0 => super::reshape::ALIAS.calls((t,)),
            1 => Err(Error::runtime(
                "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.",
            )),
            _ => Term::from(t).transpose(-2, -1).conj().outputs(),
        }
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,3]", "c64[2,3]", "f32[2,3,4]", "c64[]"],
    errors: &[("f32[2]", "RuntimeError", "only supported on matrices")],
    ..OP
};

/// `t` with dimensions of size one added until it has `rank`.
fn at_least(t: &Tensor, rank: usize) -> Result<Tensor> {
    match (t.ndim(), rank) {
        (0, _) => RESHAPE.call((t, Ints::from_elem(1, rank))).ok(),
        (1, 2) => UNSQUEEZE.call((t, 0)).ok(),
        (1, 3) => UNSQUEEZE.call((t, 0)).unsqueeze(-1).ok(),
        (2, 3) => UNSQUEEZE.call((t, -1)).ok(),
        _ => Ok(t.clone()),
    }
}

pub(crate) fn all_at_least(c: &Call, rank: usize) -> Result<Vec<Tensor>> {
    c.tensors("tensors").iter().map(|t| at_least(t, rank)).collect()
}

// A fresh cell for every literal is what taking over its parts must give.
const ATLEAST: Op = Op { vjp: Vjp::Composite, forms: F, errors: &[("'a'", "TypeError", "must be")], ..OP };

pub static ATLEAST_1D: Op = Op {
    sig: sig("atleast_1d(Tensor self) -> Tensor"),
    doc: "The tensor with one dimension at least.",
    body: decompose(|c| Ok(smallvec![at_least(c.tensor(0)?, 1)?])),
    samples: &["f32[]", "f32[2]"],
    reference: "np.atleast_1d(x0)",
    ..ATLEAST
};
pub static ATLEAST_1D_LIST: Op = Op {
    sig: sig("atleast_1d.Sequence(Tensors tensors=[]) -> Tensor[]"),
    doc: "Each tensor with one dimension at least.",
    body: decompose(|c| Ok(all_at_least(c, 1)?.into())),
    samples: &["[f32[], f32[2]]"],
    ..ATLEAST
};
pub static ATLEAST_2D: Op = Op {
    sig: sig("atleast_2d(Tensor self) -> Tensor"),
    doc: "The tensor with two dimensions at least.",
    body: decompose(|c| Ok(smallvec![at_least(c.tensor(0)?, 2)?])),
    samples: &["f32[]", "f32[2]", "f32[2,3]"],
    reference: "np.atleast_2d(x0)",
    ..ATLEAST
};
pub static ATLEAST_2D_LIST: Op = Op {
    sig: sig("atleast_2d.Sequence(Tensors tensors=[]) -> Tensor[]"),
    doc: "Each tensor with two dimensions at least.",
    body: decompose(|c| Ok(all_at_least(c, 2)?.into())),
    samples: &["[f32[], f32[2]]"],
    ..ATLEAST
};
pub static ATLEAST_3D: Op = Op {
    sig: sig("atleast_3d(Tensor self) -> Tensor"),
    doc: "The tensor with three dimensions at least.",
    body: decompose(|c| Ok(smallvec![at_least(c.tensor(0)?, 3)?])),
    samples: &["f32[]", "f32[2]", "f32[2,3]", "f32[2,3,4]"],
    reference: "np.atleast_3d(x0)",
    ..ATLEAST
};
pub static ATLEAST_3D_LIST: Op = Op {
    sig: sig("atleast_3d.Sequence(Tensors tensors=[]) -> Tensor[]"),
    doc: "Each tensor with three dimensions at least.",
    body: decompose(|c| Ok(all_at_least(c, 3)?.into())),
    samples: &["[f32[], f32[2]]"],
    ..ATLEAST
};

/// Every tensor expanded to the common shape.
pub(crate) fn broadcast_all(list: &[Tensor]) -> Result<Vec<Tensor>> {
    let mut shape = Dims::new();
    for t in list {
        shape = broadcast(&shape, t.shape())?;
    }
    list.iter().map(|t| if t.shape() == &*shape { Ok(t.clone()) } else { EXPAND.call((t, &*shape)).ok() }).collect()
}

pub static BROADCAST_TENSORS: Op = Op {
    sig: sig("broadcast_tensors(Tensors tensors=[]) -> Tensor[]"),
    doc: "Every tensor expanded to the shape that all of them broadcast to.",
    forms: F,
    body: decompose(|c| Ok(broadcast_all(&c.tensors("tensors"))?.into())),
    vjp: Vjp::Composite,
    samples: &["[f32[2,1], f32[3]]", "[f32[], f32[2]]"],
    errors: &[("[f32[2], f32[3]]", "RuntimeError", "must match the size")],
    ..OP
};

/// Which coordinate varies along the first dimension of a grid.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Indexing {
    Ij,
    Xy,
}
impl Enumerated for Indexing {
    const VALUES: &'static [(&'static str, Indexing)] = &[("ij", Indexing::Ij), ("xy", Indexing::Xy)];
}

pub static MESHGRID: Op = Op {
    unknown_choice: |_, given| {
        let text = "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received";
        Error::runtime(format!("{text}: {given}"))
    },
    sig: sig("meshgrid(Tensors tensors=[], *, str{ij|xy}? indexing=None) -> Tensor[]"),
    doc: "Grids of coordinates from 1-d tensors, as views. `indexing` is 'ij' (the default) or 'xy', which swaps the first two.",
    forms: F,
    body: decompose(|c| {
        let mut list = c.tensors("tensors");
        let swap = c.opt_choice("indexing") == Some(Indexing::Xy) && list.len() >= 2;
        if list.is_empty() {
            return Err(Error::runtime("meshgrid expects a non-empty TensorList"));
        }
        if let Some(t) = list.iter().find(|t| t.ndim() > 1) {
            return Err(Error::runtime(format!(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {t:?}"
            )));
        }
        if list.iter().any(|t| t.dtype() != list[0].dtype()) {
            return Err(Error::runtime("meshgrid expects all tensors to have the same dtype"));
        }
        if list.iter().any(|t| t.device() != list[0].device()) {
            return Err(Error::runtime("meshgrid expects all tensors to have the same device"));
        }
        if swap {
            list.swap(0, 1);
        }
        let shape: Dims = list.iter().map(Tensor::numel).collect();
        let mut grids = Outputs::new();
        for (i, t) in list.iter().enumerate() {
            let mut ones: Ints = smallvec![1; list.len()];
            ones[i] = -1;
            let grid = EXPAND.call((VIEW.call((t, ones)), &*shape));
            grids.push(grid.ok()?);
        }
        if swap {
            grids.swap(0, 1);
        }
        Ok(grids)
    }),
    vjp: Vjp::Composite,
    warns_once: true,
    warns: Some(|c| {
        let text = "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.";
        c.argument("indexing").is_none().then(|| text.into())
    }),
    samples: &["[f32[2], f32[3]]", "[f32[2], f32[3]], indexing='xy'", "[f32[], f32[2], f32[3]], indexing='ij'"],
    errors: &[
        ("[f32[2], f32[3]], indexing='yx'", "RuntimeError", "indexing must be one of"),
        ("[f32[2,2]]", "RuntimeError", "0D or 1D"),
        ("[f32[2], i64[2]]", "RuntimeError", "same dtype"),
    ],
    ..OP
};
