//! Distinct elements, or slices along a dimension: of the whole input in order, or of consecutive equal ones.
//!
//! Composed of other ops, so that they run on the tensor's device: an order (`sort`; for slices the order of
//! rows), a flag at the start of each group of equal elements, and running counts of flags. Each NaN is distinct, as in
//! PyTorch.

use super::sort::SORT;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::gpu;
use crate::op::*;
use crate::ops::create::full::{FULL, ONES};
use crate::ops::elementwise::compare::NE;
use crate::ops::indexing::index_select::{INDEX_COPY, INDEX_SELECT};
use crate::ops::indexing::mask::NONZERO;
use crate::ops::movement::cat::joined;
use crate::ops::reduce::any_all::ANY_DIM;
use crate::ops::reduce::scan::CUMSUM;
use crate::ops::support::host_read::Dense;
use crate::ops::support::promotion::no_formula;
use crate::ops::view::shape::MOVEDIM;
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::cmp::Ordering;

pub static OPS: &[&Op] = &[
    &ROW_ORDER,
    &UNIQUE,
    &UNIQUE_INVERSE,
    &UNIQUE_COUNTS,
    &UNIQUE_BOTH,
    &CONSECUTIVE,
    &CONSECUTIVE_INVERSE,
    &CONSECUTIVE_COUNTS,
    &CONSECUTIVE_BOTH,
];

/// NaN is larger than every number.
fn compare<T: PartialOrd>(a: &[T], b: &[T]) -> Ordering {
    let is_nan = |v: &T| v.partial_cmp(v).is_none();
    let one = |(x, y): (&T, &T)| x.partial_cmp(y).unwrap_or_else(|| is_nan(x).cmp(&is_nan(y)));
    a.iter().zip(b).map(one).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// The order of the rows of a matrix on the host, compared in a dtype that represents them exactly.
fn order_in<T: Element + PartialOrd>(t: &Tensor, out: &Tensor) -> Result<()> {
    // A sort may panic if comparisons are inconsistent, as they are while another thread writes.
    let host = Dense::<T>::copy_of(t)?;
    let (width, all) = (t.size(1), host.elements()?);
    let row = |i: i64| &all[i as usize * width..][..width];
    let mut order = crate::rt::reserve::list(0..t.size(0) as i64)?;
    // The scratch memory of the standard library's stable sort.
    crate::rt::reserve::probe(order.len() * size_of::<i64>())?;
    order.sort_by(|&a, &b| compare(row(a), row(b)));
    out.copy_raw(&Tensor::from_slice(&order, &[order.len()])?)
}

pub static ROW_ORDER: Op = Op {
    sig: sig("_row_order(Tensor self) -> Tensor"),
    doc: "The positions that put the rows of a matrix in lexicographic order; equal rows keep theirs. NaN is the greatest.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let t = c.tensor(0)?;
            if t.ndim() != 2 || t.dtype().is_complex() || t.dtype().is_storage_only() {
                return Err(Error::runtime("the rows of a matrix of real numbers are ordered"));
            }
            Ok(Spec::one(&t.shape()[..1], DType::I64, t.device()))
        },
        |c, out| match c.tensor(0)?.dtype().is_float() {
            true => order_in::<f64>(c.tensor(0)?, &out[0]),
            false => order_in::<i64>(c.tensor(0)?, &out[0]),
        },
        Some(|c, out| gpu::sort_rows(&c.tensor(0)?.gpu_view()?, &out[0].gpu_view()?)),
    ),
    vjp: Vjp::None("positions"),
    samples: &["i64[5,3](0..2)", "f32[4,2](= 1, nan, 1, 2, 0, 3, 1, 2)", "b8[70,3]"],
    errors: &[("f32[3]", "RuntimeError", "rows of a matrix"), ("c64[2,2]", "RuntimeError", "real numbers")],
    reference: "np.lexsort(x0.T[::-1])",
    ..OP
};

/// The elements to compare: a vector, or a matrix with a row for each slice along `along`.
fn rows_of(t: &Tensor, along: usize) -> Result<Tensor> {
    // These dtypes have no arithmetic; int64 holds their values, except for the largest of uint64.
    let t = if t.dtype().is_storage_only() { Term::from(t).to_dtype(DType::I64).ok()? } else { t.clone() };
    if t.ndim() <= 1 {
        return Ok(t);
    }
    let (rows, width) = (t.size(along), t.numel() / t.size(along).max(1));
    MOVEDIM.call((&t, along, 0)).reshape(&[rows as i64, width as i64]).ok()
}

/// The selected slices along a dimension, which is outermost in memory, as in PyTorch.
fn slices(t: &Tensor, along: usize, chosen: &Tensor) -> Result<Tensor> {
    let first = MOVEDIM.call((t, along, 0)).contiguous();
    let found = INDEX_SELECT.call((first, 0, chosen)).ok()?;
    let back: Vec<usize> = (1..=along).chain([0]).chain(along + 1..t.ndim()).collect();
    Ok(found.with_layout(found.layout().permute(&back)))
}

/// Part of a vector or matrix, from `start` on.
fn piece(t: &Tensor, start: usize, n: usize) -> Tensor {
    t.with_layout(t.layout().slice(0, (start, n, 1)))
}

/// The outputs requested in addition to the values.
#[derive(Clone, Copy)]
struct Asked {
    inverse: bool,
    counts: bool,
}

/// (values, inverse, counts), as requested, of a tensor along a dimension.
fn distinct(t: &Tensor, along: usize, sorted: bool, asked: Asked) -> Result<Outputs> {
    let (rows, device) = (t.size(along), t.device());
    if rows == 0 {
        let none = || Tensor::empty(&[0], DType::I64, device);
        let extras = [asked.inverse, asked.counts].into_iter().filter(|&a| a).map(|_| none());
        return std::iter::once(Ok(t.clone())).chain(extras).collect();
    }
    let mut all = rows_of(t, along)?;
    let mut order = None;
    if sorted && all.ndim() == 1 {
        let mut both = SORT.calls((&all, 0))?;
        (order, all) = (both.pop(), both.swap_remove(0));
    } else if sorted {
        let found = ROW_ORDER.call((&all,)).ok()?;
        all = INDEX_SELECT.call((&all, 0, &found)).ok()?;
        order = Some(found);
    }
    let mut differs = NE.call((&piece(&all, 1, rows - 1), &piece(&all, 0, rows - 1)));
    if all.ndim() == 2 {
        differs = ANY_DIM.call((differs, [1]));
    }
    let starts = joined([ONES.call(([1], DType::Bool, device)), differs], 0).ok()?;
    let places = NONZERO.call((&starts,)).reshape(&[-1]).ok()?;
    let chosen = order.as_ref().map_or(Ok(places.clone()), |o| INDEX_SELECT.call((o, 0, &places)).ok())?;
    let mut out: Outputs = smallvec![slices(t, along, &chosen)?];
    if asked.inverse {
        let kind = (CUMSUM.call((&starts, 0)) - 1).ok()?;
        out.push(match &order {
            Some(o) => INDEX_COPY.call((&kind, 0, o, &kind)).ok()?,
            None => kind,
        });
    }
    if asked.counts {
        let end = FULL.call(([1], rows as i64, DType::I64, device));
        let ends = joined([Term::from(piece(&places, 1, places.numel() - 1)), end], 0);
        out.push((ends - &places).ok()?);
    }
    Ok(out)
}

/// The checks, and a flat input where no dimension is given.
fn checked(c: &Call, at: usize, sorted: bool, asked: Asked) -> Result<Outputs> {
    let t = c.tensor(0)?;
    if t.dtype().is_complex() {
        let name = t.dtype().scalar_type_name();
        return Err(Error::not_implemented(format!("\"unique\" not implemented for '{name}'")));
    }
    let Some(along) = c.opt_dim(at) else {
        let mut out = distinct(&Term::from(t).reshape(&[-1]).ok()?, 0, sorted, asked)?;
        if asked.inverse {
            out[1] = Term::from(&out[1]).reshape(&Term::from(t).sizes()).ok()?;
        }
        return Ok(out);
    };
    if t.ndim() == 0 {
        return Err(Error::index(format!("Dimension specified as {} but tensor has no dimensions", c.int(at)?)));
    }
    if (0..t.ndim()).any(|d| d != along && t.size(d) == 0) {
        return Err(Error::runtime(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied",
        ));
    }
    distinct(t, along, sorted, asked)
}

/// `unique`, whose dimension is argument 4.
fn unique<const INVERSE: bool, const COUNTS: bool>(c: &Call) -> Result<Outputs> {
    checked(c, 4, true, Asked { inverse: INVERSE, counts: COUNTS })
}
/// `unique_consecutive`, whose dimension is argument 3.
fn consecutive<const INVERSE: bool, const COUNTS: bool>(c: &Call) -> Result<Outputs> {
    checked(c, 3, false, Asked { inverse: INVERSE, counts: COUNTS })
}

// A fresh cell for every literal is what taking over its parts must give.
const DISTINCT: Op = Op { errors: &[("c64[2](nograd)", "NotImplementedError", "not implemented for")], ..OP };

pub static UNIQUE: Op = Op {
    sig: sig(
        "unique(Tensor self, bool sorted=True, False return_inverse=False, False return_counts=False, Dim? dim=None) -> Tensor",
    ),
    node: "Unique2Backward0",
    vjp: Vjp::Each(&[d(0, 0, |_| no_formula("_unique2"))]),
    doc: "The distinct elements in ascending order, or the distinct slices along `dim` in lexicographic order.",
    body: reads_host(unique::<false, false>),
    samples: &[
        "i64[2,4](0..3)",
        "f32[5](nograd, ties)",
        "i64[4,2](0..2), dim=0",
        "i64[2,70,3](0..1), dim=1",
        "i64[3,2,40](0..1), dim=2",
        "b8[4]",
        "i64[](= 3)",
    ],
    ..DISTINCT
};
pub static UNIQUE_INVERSE: Op = Op {
    sig: sig(
        "unique.inverse(Tensor self, bool sorted=True, True return_inverse=True, False return_counts=False, Dim? dim=None) -> Tensor[]",
    ),
    node: "Unique2Backward0",
    vjp: Vjp::Each(&[d(0, 0, |_| no_formula("_unique2"))]),
    doc: "The distinct elements, and for each element of the input the position of its like among them.",
    body: reads_host(unique::<true, false>),
    samples: &[
        "i64[2,4](0..3), return_inverse=True",
        "i64[4,2](0..2), True, True, dim=0",
        "i64[300](0..9), return_inverse=True",
    ],
    errors: &[("c64[2](nograd), return_inverse=True", "NotImplementedError", "not implemented for")],
    ..DISTINCT
};
pub static UNIQUE_COUNTS: Op = Op {
    sig: sig(
        "unique.counts(Tensor self, bool sorted=True, False return_inverse=False, True return_counts=True, Dim? dim=None) -> Tensor[]",
    ),
    node: "Unique2Backward0",
    vjp: Vjp::Each(&[d(0, 0, |_| no_formula("_unique2"))]),
    doc: "The distinct elements and how often each occurs.",
    body: reads_host(unique::<false, true>),
    samples: &["i64[2,4](0..3), return_counts=True", "i64[2,4](0..2), True, False, True, 1"],
    errors: &[("c64[2](nograd), return_counts=True", "NotImplementedError", "not implemented for")],
    ..DISTINCT
};
pub static UNIQUE_BOTH: Op = Op {
    sig: sig(
        "unique.inverse_counts(Tensor self, bool sorted=True, True return_inverse=True, True return_counts=True, Dim? dim=None) -> Tensor[]",
    ),
    node: "Unique2Backward0",
    vjp: Vjp::Each(&[d(0, 0, |_| no_formula("_unique2"))]),
    doc: "The distinct elements, for each element the position of its like, and how often each occurs.",
    body: reads_host(unique::<true, true>),
    samples: &["f32[6](nograd, ties), return_inverse=True, return_counts=True"],
    errors: &[("c64[2](nograd), True, True, True", "NotImplementedError", "not implemented for")],
    ..DISTINCT
};

pub static CONSECUTIVE: Op = Op {
    sig: sig(
        "unique_consecutive(Tensor self, False return_inverse=False, False return_counts=False, Dim? dim=None) -> Tensor",
    ),
    node: "UniqueConsecutiveBackward0",
    vjp: Vjp::Each(&[d(0, 0, |_| no_formula("unique_consecutive"))]),
    doc: "The elements, or slices along `dim`, that differ from the one before.",
    body: reads_host(consecutive::<false, false>),
    samples: &["i64[6](= 1, 1, 2, 2, 1, 1)", "f32[5](nograd, ties)", "i64[3,2](= 1, 2, 1, 2, 0, 0), dim=0"],
    ..DISTINCT
};
pub static CONSECUTIVE_INVERSE: Op = Op {
    sig: sig(
        "unique_consecutive.inverse(Tensor self, True return_inverse=True, False return_counts=False, Dim? dim=None) -> Tensor[]",
    ),
    node: "UniqueConsecutiveBackward0",
    vjp: Vjp::Each(&[d(0, 0, |_| no_formula("unique_consecutive"))]),
    doc: "The elements that differ from the one before, and for each element the position of its run.",
    body: reads_host(consecutive::<true, false>),
    samples: &["i64[6](= 1, 1, 2, 2, 1, 1), return_inverse=True"],
    errors: &[("c64[2](nograd), True", "NotImplementedError", "not implemented for")],
    ..DISTINCT
};
pub static CONSECUTIVE_COUNTS: Op = Op {
    sig: sig(
        "unique_consecutive.counts(Tensor self, False return_inverse=False, True return_counts=True, Dim? dim=None) -> Tensor[]",
    ),
    node: "UniqueConsecutiveBackward0",
    vjp: Vjp::Each(&[d(0, 0, |_| no_formula("unique_consecutive"))]),
    doc: "The elements that differ from the one before, and the lengths of their runs.",
    body: reads_host(consecutive::<false, true>),
    samples: &["i64[6](= 1, 1, 2, 2, 1, 1), return_counts=True"],
    errors: &[("c64[2](nograd), return_counts=True", "NotImplementedError", "not implemented for")],
    ..DISTINCT
};
pub static CONSECUTIVE_BOTH: Op = Op {
    sig: sig(
        "unique_consecutive.inverse_counts(Tensor self, True return_inverse=True, True return_counts=True, Dim? dim=None) -> Tensor[]",
    ),
    node: "UniqueConsecutiveBackward0",
    vjp: Vjp::Each(&[d(0, 0, |_| no_formula("unique_consecutive"))]),
    doc: "The elements that differ from the one before, the position of each element's run, and the lengths of the runs.",
    body: reads_host(consecutive::<true, true>),
    samples: &["i64[2,3](= 1, 1, 2, 2, 2, 1), True, True", "i64[3,2](= 1, 2, 1, 2, 0, 0), True, True, 0"],
    errors: &[("c64[2](nograd), True, True", "NotImplementedError", "not implemented for")],
    ..DISTINCT
};
