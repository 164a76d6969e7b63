//! Distinct elements, or slices along a dimension: all of them in order, or those that differ from the one before.
//!
//! Rows are compared on the host, as float64 or int64, which hold every dtype exactly; what is found are positions, so
//! the values are one selection from the input. Each NaN is distinct, as in PyTorch.

use super::needs::quiet;
use super::select::INDEX_SELECT;
use super::view::RESHAPE;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::layout::wrap_dim;
use crate::op::*;
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::cmp::Ordering;

pub static OPS: &[&Op] = &[
    &UNIQUE,
    &UNIQUE_INVERSE,
    &UNIQUE_COUNTS,
    &UNIQUE_BOTH,
    &CONSECUTIVE,
    &CONSECUTIVE_INVERSE,
    &CONSECUTIVE_COUNTS,
    &CONSECUTIVE_BOTH,
];

/// For each distinct row the position of one of its kind, how many there are, and for each row the number of its kind.
#[derive(Default)]
struct Kinds {
    first: Vec<i64>,
    counts: Vec<i64>,
    inverse: Vec<i64>,
}

/// NaN is greater than every number and differs from itself.
fn compare<T: PartialOrd>(a: &[T], b: &[T]) -> Ordering {
    let is_nan = |v: &T| v.partial_cmp(v).is_none();
    let one = |(x, y): (&T, &T)| x.partial_cmp(y).unwrap_or_else(|| is_nan(x).cmp(&is_nan(y)));
    a.iter().zip(b).map(one).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// Rows of `width` elements, `rows` of them; sorted first, or taken as they come.
fn kinds<T: PartialOrd>(all: &[T], rows: usize, width: usize, sorted: bool) -> Kinds {
    let row = |i: usize| &all[i * width..(i + 1) * width];
    let mut order: Vec<usize> = (0..rows).collect();
    if sorted {
        order.sort_by(|&a, &b| compare(row(a), row(b)));
    }
    let mut found = Kinds { inverse: vec![0; rows], ..Kinds::default() };
    for (k, &i) in order.iter().enumerate() {
        if k == 0 || row(i) != row(order[k - 1]) {
            found.first.push(i as i64);
            found.counts.push(0);
        }
        *found.counts.last_mut().expect("a kind was pushed") += 1;
        found.inverse[i] = found.first.len() as i64 - 1;
    }
    found
}

/// The elements of a dense tensor on the host.
fn elements<T: Element>(t: &Tensor, dtype: DType) -> Result<Vec<T>> {
    let host = t.dense_copy(dtype)?;
    let start = host.ptr()?.cast::<T>();
    // SAFETY: the dense copy holds `numel` elements of the dtype of `T` from its first one on.
    Ok((0..host.numel()).map(|i| unsafe { *start.add(i) }).collect())
}

/// (values, inverse, counts) of the input, flat or along `dim`.
fn distinct(c: &Call, dim: Option<i64>, sorted: bool) -> Result<[Tensor; 3]> {
    let t = c.tensor(0)?;
    if t.dtype().is_complex() {
        let name = t.dtype().scalar_type_name();
        return Err(Error::not_implemented(format!("\"unique\" not implemented for '{name}'")));
    }
    let (t, along) = match dim {
        None => (RESHAPE.call((t, [-1])).ok()?, 0),
        Some(d) if t.ndim() == 0 => {
            return Err(Error::index(format!("Dimension specified as {d} but tensor has no dimensions")));
        }
        Some(d) => (t.clone(), wrap_dim(d, t.ndim())?),
    };
    if (0..t.ndim()).any(|d| d != along && t.size(d) == 0) {
        return Err(Error::runtime(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied",
        ));
    }
    let rows = t.shape().get(along).copied().unwrap_or(1);
    let front = if t.ndim() > 1 { Term::from(&t).transpose(0, along as i64).ok()? } else { t.clone() };
    let width = t.numel().checked_div(rows).unwrap_or(0);
    let found = match t.dtype().is_float() {
        true => kinds(&elements::<f64>(&front, DType::F64)?, rows, width, sorted),
        false => kinds(&elements::<i64>(&front, DType::I64)?, rows, width, sorted),
    };
    let tensor = |list: &[i64]| Term(Tensor::from_slice(list, &[list.len()])).to_device(t.device());
    let values = INDEX_SELECT.call((&t, along, tensor(&found.first))).ok()?;
    let inverse = match dim {
        None => tensor(&found.inverse).reshape(&Term::from(c.tensor(0)?).sizes()),
        Some(_) => tensor(&found.inverse),
    };
    Ok([values, inverse.ok()?, tensor(&found.counts).ok()?])
}

/// What `unique` was asked for: the dimension is its argument 4, `INVERSE` and `COUNTS` say which results.
fn unique<const INVERSE: bool, const COUNTS: bool>(c: &Call) -> Result<Outputs> {
    chosen::<INVERSE, COUNTS>(quiet(|| distinct(c, c.opt_int(4), true))?)
}
/// The same for `unique_consecutive`, whose dimension is argument 3.
fn consecutive<const INVERSE: bool, const COUNTS: bool>(c: &Call) -> Result<Outputs> {
    chosen::<INVERSE, COUNTS>(quiet(|| distinct(c, c.opt_int(3), false))?)
}
fn chosen<const INVERSE: bool, const COUNTS: bool>([values, inverse, counts]: [Tensor; 3]) -> Result<Outputs> {
    let mut out: Outputs = smallvec![values];
    out.extend(INVERSE.then_some(inverse));
    out.extend(COUNTS.then_some(counts));
    Ok(out)
}

// A fresh cell for every literal is what taking over its parts must give.
#[allow(clippy::declare_interior_mutable_const)]
const DISTINCT: Op = Op {
    vjp: Vjp::None("PyTorch has no gradient either"),
    errors: &[("c64[2](nograd)", "NotImplementedError", "not implemented for")],
    ..OP
};

pub static UNIQUE: Op = Op {
    sig: "unique(Tensor self, bool sorted=True, False return_inverse=False, False return_counts=False, int? dim=None) -> Tensor",
    doc: "The distinct elements in ascending order, or the distinct slices along `dim` in lexicographic order.",
    body: composite(unique::<false, false>),
    samples: &["i64[2,4](0..3)", "f32[5](nograd, ties)", "i64[4,2](0..2), dim=0", "b8[4]", "i64[](= 3)"],
    ..DISTINCT
};
pub static UNIQUE_INVERSE: Op = Op {
    sig: "unique.inverse(Tensor self, bool sorted=True, True return_inverse=True, False return_counts=False, int? dim=None) -> Tensor[]",
    doc: "The distinct elements, and for each element of the input the position of its like among them.",
    body: composite(unique::<true, false>),
    samples: &["i64[2,4](0..3), return_inverse=True", "i64[4,2](0..2), True, True, dim=0"],
    errors: &[("c64[2](nograd), return_inverse=True", "NotImplementedError", "not implemented for")],
    ..DISTINCT
};
pub static UNIQUE_COUNTS: Op = Op {
    sig: "unique.counts(Tensor self, bool sorted=True, False return_inverse=False, True return_counts=True, int? dim=None) -> Tensor[]",
    doc: "The distinct elements and how often each occurs.",
    body: composite(unique::<false, true>),
    samples: &["i64[2,4](0..3), return_counts=True", "i64[2,4](0..2), True, False, True, 1"],
    errors: &[("c64[2](nograd), return_counts=True", "NotImplementedError", "not implemented for")],
    ..DISTINCT
};
pub static UNIQUE_BOTH: Op = Op {
    sig: "unique.inverse_counts(Tensor self, bool sorted=True, True return_inverse=True, True return_counts=True, int? dim=None) -> Tensor[]",
    doc: "The distinct elements, for each element the position of its like, and how often each occurs.",
    body: composite(unique::<true, true>),
    samples: &["f32[6](nograd, ties), return_inverse=True, return_counts=True"],
    errors: &[("c64[2](nograd), True, True, True", "NotImplementedError", "not implemented for")],
    ..DISTINCT
};

pub static CONSECUTIVE: Op = Op {
    sig: "unique_consecutive(Tensor self, False return_inverse=False, False return_counts=False, int? dim=None) -> Tensor",
    doc: "The elements, or slices along `dim`, that differ from the one before.",
    body: composite(consecutive::<false, false>),
    samples: &["i64[6](= 1, 1, 2, 2, 1, 1)", "f32[5](nograd, ties)", "i64[3,2](= 1, 2, 1, 2, 0, 0), dim=0"],
    ..DISTINCT
};
pub static CONSECUTIVE_INVERSE: Op = Op {
    sig: "unique_consecutive.inverse(Tensor self, True return_inverse=True, False return_counts=False, int? dim=None) -> Tensor[]",
    doc: "The elements that differ from the one before, and for each element the position of its run.",
    body: composite(consecutive::<true, false>),
    samples: &["i64[6](= 1, 1, 2, 2, 1, 1), return_inverse=True"],
    errors: &[("c64[2](nograd), True", "NotImplementedError", "not implemented for")],
    ..DISTINCT
};
pub static CONSECUTIVE_COUNTS: Op = Op {
    sig: "unique_consecutive.counts(Tensor self, False return_inverse=False, True return_counts=True, int? dim=None) -> Tensor[]",
    doc: "The elements that differ from the one before, and the lengths of their runs.",
    body: composite(consecutive::<false, true>),
    samples: &["i64[6](= 1, 1, 2, 2, 1, 1), return_counts=True"],
    errors: &[("c64[2](nograd), return_counts=True", "NotImplementedError", "not implemented for")],
    ..DISTINCT
};
pub static CONSECUTIVE_BOTH: Op = Op {
    sig: "unique_consecutive.inverse_counts(Tensor self, True return_inverse=True, True return_counts=True, int? dim=None) -> Tensor[]",
    doc: "The elements that differ from the one before, the position of each element's run, and the lengths of the runs.",
    body: composite(consecutive::<true, true>),
    samples: &["i64[2,3](= 1, 1, 2, 2, 2, 1), True, True", "i64[3,2](= 1, 2, 1, 2, 0, 0), True, True, 0"],
    errors: &[("c64[2](nograd), True, True", "NotImplementedError", "not implemented for")],
    ..DISTINCT
};
