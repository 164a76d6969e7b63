//! Search and counting: searchsorted, bucketize, isin, bincount.
//!
//! Loops on the CPU; `search_gpu` composes them of shaders on the GPU.

use super::search_gpu::{range, tally};
use crate::cpu::search;
use crate::device::Device;
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::reduce::extrema::AMIN;
use crate::ops::support::batch_views;
use crate::ops::support::host_read::Dense;
use crate::rt::reserve::filled;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&SEARCHSORTED, &SEARCHSORTED_SCALAR, &BUCKETIZE, &BUCKETIZE_SCALAR, &BINCOUNT, &ISIN];

/// Insertion positions for each row of values in the same row of the boundaries, or in the only one.
fn places<T: Element + PartialOrd>(sorted: &Tensor, values: &Tensor, rows: usize, right: bool) -> Result<Tensor> {
    let found = Tensor::empty(values.shape(), DType::I64, Device::Cpu)?;
    // SAFETY: the new block holds as many int64 as there are values; any bits are one.
    let out = unsafe { std::slice::from_raw_parts_mut(found.ptr()?.cast::<i64>(), found.numel()) };
    search::places(Dense::<T>::of(sorted)?.elements()?, Dense::<T>::of(values)?.elements()?, rows, right, out);
    Ok(found)
}

/// Where a value belongs among equal ones: before them, or after.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}
impl Enumerated for Side {
    const VALUES: &'static [(&'static str, Side)] = &[("left", Side::Left), ("right", Side::Right)];
}

fn unknown_side(_: &Op, given: &str) -> Error {
    Error::runtime(format!("torch.searchsorted(): side can only be 'left' or 'right' but got {given}"))
}

/// What is found for values of a shape: int64, or int32 where `out_int32` says so.
fn found_for(c: &Call, sorted: &Tensor, values: &[usize], side: Option<Side>) -> Result<Specs> {
    if side == Some(Side::Left) && c.flag("right") {
        return Err(Error::runtime(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True",
        ));
    }
    let last = sorted.ndim().saturating_sub(1);
    if sorted.ndim() > 1 && (values.len() != sorted.ndim() || values[..last] != sorted.shape()[..last]) {
        return Err(Error::runtime(format!(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match, but we got boundaries tensor {} and input value tensor {}",
            Show(sorted.shape()),
            Show(values)
        )));
    }
    let dtype = if c.flag("out_int32") { DType::I32 } else { DType::I64 };
    Ok(Spec::one(values, dtype, sorted.device()))
}

fn search_in(c: &Call, sorted: &Tensor, values: &Tensor, side: Option<Side>) -> Result<Outputs> {
    let dtype = found_for(c, sorted, values.shape(), side)?[0].dtype;
    let right = side.map_or(c.flag("right"), |side| side == Side::Right);
    let last = sorted.ndim().saturating_sub(1);
    let flat = sorted.ndim() <= 1;
    if values.device().is_gpu() {
        return Ok(smallvec![super::search_gpu::places(sorted, values, right, dtype)?]);
    }
    let rows = if flat { 1 } else { sorted.shape()[..last].iter().product() };
    let whole = !sorted.dtype().is_float() && !values.dtype().is_float();
    let found = match whole {
        true => places::<i64>(sorted, values, rows, right),
        false => places::<f64>(sorted, values, rows, right),
    };
    Term(found).to_dtype(dtype).outputs()
}

/// `sorted` in the order of `sorter`, if one is given.
fn ordered(c: &Call) -> Result<Tensor> {
    let sorted = sequence(c)?.detach();
    match c.opt_tensor("sorter") {
        Some(order) => crate::ops::indexing::gather_scatter::GATHER.call((&sorted, -1, order)).ok(),
        None => Ok(sorted),
    }
}

/// The sorted sequence, whose shape `sorter` has, if one is given.
fn sequence<'a>(c: &'a Call) -> Result<&'a Tensor> {
    let sequence = c.tensor("sorted_sequence")?;
    match c.opt_tensor("sorter") {
        Some(order) if order.shape() != sequence.shape() => {
            Err(Error::runtime("torch.searchsorted(): boundary and sorter must have the same size"))
        }
        _ => Ok(sequence),
    }
}

/// The words for an operand that does not lie row-major and is copied first.
fn strided(c: &Call, values: usize, boundaries: usize) -> Option<String> {
    let lies = |at: usize| c.opt_tensor(at).is_some_and(|t| !t.is_contiguous());
    let which = if lies(values) { "input value" } else { Some("boundary").filter(|_| lies(boundaries))? };
    Some(format!(
        "torch.searchsorted(): {which} tensor is non-contiguous, this will lower the performance due to extra data copy when \
         converting non-contiguous tensor to contiguous, please use contiguous {which} tensor if possible."
    ))
}

pub static SEARCHSORTED: Op = Op {
    sig: sig(
        "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str{left|right}? side=None, Tensor? sorter=None) -> Tensor",
    ),
    unknown_choice: unknown_side,
    doc: "For each value the place in the sorted last dimension where it belongs: before equal elements, or after them with `right`.",
    forms: FO,
    out_dtype: Some(OutDType::Same),
    body: opaque(
        |c| found_for(c, sequence(c)?, c.tensor("self")?.shape(), c.opt_choice("side")),
        |c| search_in(c, &ordered(c)?, c.tensor("self")?, c.opt_choice("side")),
    ),
    warns_once: true,
    warns: Some(|c| strided(c, 1, 0)),
    vjp: Vjp::None("indices"),
    samples: &[
        "f32[3](= 1, 3, 5), f32[4](= 0, 1, 4, 6)",
        "i64[3](= 1, 3, 5), i64[2,2](= 0, 3, 5, 6), right=True",
        "f32[2,2](= 1, 3, 2, 4), f32[2,1](= 3, 1), out_int32=True",
    ],
    errors: &[
        ("f32[2,3], f32[5]", "RuntimeError", "first N-1 dimensions"),
        ("f32[2], f32[2], side='up'", "RuntimeError", "side can only be"),
    ],
    batch: Batching::Rule(batch_views::searchsorted),
    ..OP
};

pub static SEARCHSORTED_SCALAR: Op = Op {
    sig: sig(
        "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str{left|right}? side=None, Tensor? sorter=None) -> Tensor",
    ),
    unknown_choice: unknown_side,
    doc: "The place in a sorted sequence where a number belongs.",
    forms: FO,
    out_dtype: Some(OutDType::Same),
    body: opaque(
        |c| found_for(c, sequence(c)?, &[], c.opt_choice("side")),
        |c| search_in(c, &ordered(c)?, &number(c, 1, 0)?, c.opt_choice("side")),
    ),
    vjp: Vjp::None("indices"),
    samples: &["f32[3](= 1, 3, 5), 2.0"],
    errors: &[("f32[2], 1.0, side='up'", "RuntimeError", "side can only be")],
    reference: "np.searchsorted(x0, x1)",
    ..OP
};

/// A number argument as a 0-d tensor that compares exactly, on the device of argument `like`.
fn number(c: &Call, at: usize, like: usize) -> Result<Tensor> {
    let s = c.scalar(at)?;
    let dtype = if matches!(s, Scalar::Float(_)) { DType::F64 } else { DType::I64 };
    Term(Tensor::scalar(s, dtype, Device::Cpu)).to_device(c.tensor(like)?.device()).ok()
}

fn boundaries<'a>(c: &'a Call) -> Result<&'a Tensor> {
    let b = c.tensor("boundaries")?;
    match b.ndim() {
        1 => Ok(b),
        n => Err(Error::runtime(format!("boundaries tensor must be 1 dimension, but got dim({n})"))),
    }
}

pub static BUCKETIZE: Op = Op {
    sig: sig("bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor"),
    doc: "For each value the bucket between sorted boundaries that it falls in.",
    forms: FO,
    out_dtype: Some(OutDType::Same),
    body: opaque(
        |c| found_for(c, boundaries(c)?, c.tensor(0)?.shape(), None),
        |c| search_in(c, &boundaries(c)?.detach(), c.tensor(0)?, None),
    ),
    warns_once: true,
    warns: Some(|c| strided(c, 0, 1)),
    vjp: Vjp::None("indices"),
    samples: &["f32[4](= 0, 1, 4, 6), f32[3](= 1, 3, 5)", "f32[2,2](= 0, 1, 4, 6), f32[3](= 1, 3, 5), right=True"],
    errors: &[("f32[2], f32[1,2]", "RuntimeError", "boundaries tensor must be 1 dimension")],
    batch: Batching::Rule(batch_views::bucketize),
    ..OP
};

pub static BUCKETIZE_SCALAR: Op = Op {
    sig: sig("bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor"),
    doc: "The bucket between sorted boundaries that a number falls in.",
    forms: F,
    body: opaque(
        |c| found_for(c, boundaries(c)?, &[], None),
        |c| search_in(c, &boundaries(c)?.detach(), &number(c, 0, 1)?, None),
    ),
    vjp: Vjp::None("indices"),
    samples: &["2, f32[3](= 1, 3, 5)"],
    errors: &[("2, f32[1,2]", "RuntimeError", "boundaries tensor must be 1 dimension")],
    ..OP
};

pub static BINCOUNT: Op = Op {
    sig: sig("bincount(Tensor self, Tensor~? weights=None, int minlength=0) -> Tensor"),
    doc: "How often each number 0, 1, .. occurs, or the sum of its weights.",
    body: reads_host(|c| {
        let (t, least) = (c.tensor(0)?, c.int("minlength")?);
        if !t.dtype().is_int() {
            return Err(Error::not_implemented(format!(
                "\"bincount_cpu\" not implemented for '{}'",
                t.dtype().scalar_type_name()
            )));
        }
        let host = if t.device().is_gpu() { None } else { Some(Dense::<i64>::of(t)?) };
        let list: &[i64] = match &host {
            Some(host) => host.elements()?,
            None => &[],
        };
        let greatest = match t.device().is_gpu() && t.numel() > 0 {
            true => range(t).map(|r| r.map(Scalar::to_i64)).map(|[a, b]| Some((b, a < 0)))?,
            false => search::greatest(list),
        };
        if t.ndim() != 1 || greatest.is_some_and(|(_, negative)| negative) {
            return Err(Error::runtime("bincount only supports 1-d non-negative integral inputs."));
        }
        if least < 0 {
            return Err(Error::runtime("minlength should be >= 0"));
        }
        let n = greatest.map_or(0, |(m, _)| m.saturating_add(1)).max(least) as usize;
        crate::layout::checked_numel(&[n])?;
        let weights = c.opt_tensor("weights");
        if weights.is_some_and(|w| w.shape() != t.shape()) {
            return Err(Error::runtime("weights should be 1-d and have the same length as input"));
        }
        let dtype = match weights.map(|w| w.dtype()) {
            None => DType::I64,
            Some(DType::F32) => DType::F32,
            Some(_) => DType::F64,
        };
        if t.device().is_gpu() {
            return Ok(smallvec![tally(t, weights, n, dtype)?]);
        }
        let Some(w) = weights else {
            let mut counts = filled(0i64, n)?;
            if search::count(list, &mut counts)? > 0 {
                return Err(Error::raced("the input"));
            }
            return Term(Tensor::from_slice(&counts, &[n])).outputs();
        };
        let mut sums = filled(0f64, n)?;
        let weights = Dense::<f64>::of(w)?;
        for (&i, x) in list.iter().zip(weights.elements()?) {
            *sums.get_mut(i as usize).ok_or_else(|| Error::raced("the input"))? += x;
        }
        Term(Tensor::from_slice(&sums, &[n])).to_dtype(dtype).outputs()
    }),
    vjp: Vjp::None("counts"),
    samples: &["i64[4](= 0, 2, 2, 5)", "i64[4](= 0, 2, 2, 1), f32[4](nograd)", "i64[2](= 0, 1), minlength=4"],
    errors: &[
        ("i64[1](= -1)", "RuntimeError", "non-negative"),
        ("f32[2]", "NotImplementedError", "not implemented for 'Float'"),
    ],
    reference: "np.bincount(x0, x1 if weights is not None else None, minlength)",
    ..OP
};

/// Whether each element of one tensor is in another: its insertion position in the sorted one holds an equal element.
fn contained(all: &Tensor, list: &Tensor) -> Result<Term> {
    let common = crate::dtype::promote(all.dtype(), list.dtype())?;
    if list.numel() == 0 {
        return crate::ops::support::grad_helpers::full_like(all, DType::Bool, 0.0).map(Term::from);
    }
    let (all, list) = (Term::from(all).to_dtype(common), Term::from(list).to_dtype(common).reshape(&[-1]));
    let list = if common.is_float() { without_nan(list) } else { list };
    let sorted = Term(super::sort::SORT.calls((list,)).map(|mut out| out.swap_remove(0)));
    let last = sorted.get().map_or(0, |t| t.numel() as i64 - 1);
    let place = crate::ops::elementwise::minmax::CLAMP.call((SEARCHSORTED.call((&sorted, &all)), Value::None, last));
    Ok(crate::ops::indexing::take::TAKE.call((sorted, place)).equals(all))
}

/// A vector with another of its elements in the place of each NaN, which equals nothing and would mislead a search; if there is no
/// other, as it is.
fn without_nan(list: Term) -> Term {
    let nan = list.clone().equals(list.clone()).not();
    let least = AMIN.call((nan.clone().choose(f64::INFINITY, list.clone()),));
    let any = crate::ops::reduce::any_all::ANY.call((list.clone().equals(least.clone()),));
    nan.choose(any.choose(least, f64::NAN), list)
}

pub static ISIN: Op = Op {
    sig: sig(
        "isin(Operand elements|element, Operand test_elements|test_element, *, bool assume_unique=False, bool invert=False) -> Tensor",
    ),
    doc: "Whether each element is among the test elements, or with `invert` is not. `assume_unique` changes nothing.",
    forms: FO,
    body: decompose(|c| {
        if let Some(t) = c.all_tensors().find(|t| t.dtype() == DType::Bool || t.dtype().is_complex()) {
            let name = t.dtype().scalar_type_name();
            return Err(Error::not_implemented(format!("Unsupported input type encountered for isin(): {name}")));
        }
        let found = match (c.opt_scalar("elements"), c.opt_scalar("test_elements")) {
            (Some(_), Some(_)) => return Err(Error::type_("expected a tensor, got two numbers")),
            (Some(s), None) => {
                crate::ops::reduce::any_all::ANY.call((Term::from(c.tensor("test_elements")?).equals(s),))
            }
            (None, Some(s)) => Term::from(c.tensor("elements")?).equals(s),
            (None, None) => contained(c.tensor("elements")?, c.tensor("test_elements")?)?,
        };
        if c.flag("invert") { found.not() } else { found }.outputs()
    }),
    vjp: Vjp::None("a truth value"),
    samples: &[
        "f32[2,3](nograd), f32[2](nograd)",
        "i64[5](0..6), i64[3](0..6)",
        "i64[5](0..6), i64[2,2](0..6), invert=True",
        "i64[5](0..3), 2",
        "2, i64[3](0..3)",
        "f32[3](nograd), i64[0]",
    ],
    errors: &[
        ("b8[2], b8[2]", "NotImplementedError", "Unsupported input type encountered for isin(): Bool"),
        ("1, 2", "TypeError", "isin"),
    ],
    reference: "np.isin(x0, x1, invert=invert)",
    ..OP
};
