//! Batch rules of views, of joining, of new tensors and of indexing.

use super::batch::{no_rule, padded, sizes};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::wrap_dim;
use crate::op::kind::Kind;
use crate::op::*;
use crate::ops::create::range::ARANGE;
use crate::ops::elementwise::compare::LT;
use crate::ops::indexing::advanced::INDEX;
use crate::ops::indexing::gather_scatter::GATHER;
use crate::ops::indexing::index_select::INDEX_SELECT;
use crate::ops::movement::cat::CAT;
use crate::ops::movement::copy::CLONE;
use crate::ops::movement::repeat::REPEAT;
use crate::ops::order::search::SEARCHSORTED;
use crate::ops::view::as_strided::{AS_STRIDED_VIEW, geometry};
use crate::ops::view::reshape::{ALIAS, EXPAND, PERMUTE, RESHAPE, SQUEEZE_DIMS, TRANSPOSE, VIEW};
use crate::ops::view::slice::PLACE;
use crate::tensor::Tensor;
use smallvec::smallvec;

/// The result's own shape after the batch; a copy where the batch does not allow a view.
pub(crate) fn view(c: &BatchedCall) -> Result<Outputs> {
    let shape = c.with_batch(c.results[0].shape());
    match VIEW.calls((c.tensor(0)?, shape.clone())) {
        Ok(out) => Ok(out),
        Err(_) => RESHAPE.calls((c.tensor(0)?, shape)),
    }
}
pub(crate) fn expand(c: &BatchedCall) -> Result<Outputs> {
    let rank = c.results[0].ndim();
    EXPAND.calls((padded(c.tensor(0)?, c.ndim(0), rank)?, c.with_batch(c.results[0].shape())))
}
pub(crate) fn permute(c: &BatchedCall) -> Result<Outputs> {
    let mut dims: Ints = smallvec![0];
    for &d in c.ints("dims")? {
        dims.push(wrap_dim(d, c.ndim(0))? as i64 + 1);
    }
    PERMUTE.calls((c.tensor(0)?, dims))
}
pub(crate) fn t(c: &BatchedCall) -> Result<Outputs> {
    if c.ndim(0) == 2 { TRANSPOSE.calls((c.tensor(0)?, 1, 2)) } else { ALIAS.calls((c.tensor(0)?,)) }
}
pub(crate) fn squeeze(c: &BatchedCall) -> Result<Outputs> {
    let ones = c.shape(0).iter().enumerate().filter(|(_, d)| **d == 1);
    let dims: Ints = ones.map(|(i, _)| i as i64 + 1).collect();
    SQUEEZE_DIMS.calls((c.tensor(0)?, dims))
}
pub(crate) fn repeat(c: &BatchedCall) -> Result<Outputs> {
    let given = c.ints("repeats")?;
    let mut repeats: Ints = smallvec![1];
    repeats.extend(given.iter().copied());
    REPEAT.calls((padded(c.tensor(0)?, c.ndim(0), given.len())?, repeats))
}
/// Strides and offset are those of the example's memory, so the examples must lie alike.
pub(crate) fn as_strided(c: &BatchedCall) -> Result<Outputs> {
    let (x, e) = (c.tensor(0)?, c.example.tensor(0)?);
    let dense = || CLONE.call((x, Value::Format(crate::layout::Format::Contiguous))).ok();
    let x = match x.layout().strides[1..] == e.layout().strides[..] {
        true => x.clone(),
        false if e.is_contiguous() => dense()?,
        false => return Err(no_rule()),
    };
    let at = c.opt_int("storage_offset").unwrap_or(e.layout().offset as i64);
    let offset = x.layout().offset as i64 + at - e.layout().offset as i64;
    let mut strides: Ints = smallvec![x.layout().strides[0] as i64];
    strides.extend(c.ints("stride")?.iter().copied());
    AS_STRIDED_VIEW.calls((&x, c.with_batch(c.results[0].shape()), strides, offset, geometry(x.layout())))
}
pub(crate) fn as_strided_copy(c: &BatchedCall) -> Result<Outputs> {
    as_strided(c)?.into_iter().map(|t| CLONE.call((t,)).ok()).collect()
}
/// `_place` and its kin: each example has its own zeros.
pub(crate) fn place(c: &BatchedCall) -> Result<Outputs> {
    let inside = c.ints("input_size")?;
    let mut size: Ints = smallvec![c.size as i64];
    size.extend(inside.iter().copied());
    let mut stride: Ints = smallvec![inside.iter().product::<i64>().max(1)];
    stride.extend(c.ints("stride")?.iter().copied());
    PLACE.calls((c.tensor("grad")?, size, stride, c.int("offset")?))
}
/// A copy of what a view shows.
pub(crate) fn copied(c: &BatchedCall) -> Result<Outputs> {
    let view = c.op.copies.ok_or_else(no_rule)?;
    let shown = super::batch::run(&BatchedCall { op: view, example: Call { op: view, args: c.example.args }, ..*c })?;
    shown.into_iter().map(|t| CLONE.call((t,)).ok()).collect()
}
pub(crate) fn cat(c: &BatchedCall) -> Result<Outputs> {
    let rank = c.results[0].ndim();
    let args = c.mapped(|o| match o.example.ndim() == rank {
        true if o.batched => Ok(o.tensor.clone()),
        true => c.expanded(o.tensor),
        // An empty vector beside tensors of any shape.
        false => Err(no_rule()),
    })?;
    let Value::Tensors(list) = &args[0] else { return Err(no_rule()) };
    CAT.calls((list.clone(), wrap_dim(c.int("dim")?, rank)? as i64 + 1))
}

/// New tensors: the parameter that is their shape has the batch in front.
pub(crate) fn sized(c: &BatchedCall) -> Result<Outputs> {
    let mut args = c.mapped(|o| Ok(o.tensor.clone()))?;
    let params = c.op.sig.params();
    let size = params.iter().position(|p| matches!(p.kind, Kind::Size | Kind::Ints) && p.name(&c.op.sig) == "size");
    args[size.ok_or_else(no_rule)?] = Value::Ints(c.with_batch(c.results[0].shape()));
    c.again(&args)
}

/// The index tensors of advanced indexing: how many dimensions they select from, how many they make, the first of them, and
/// whether they stand side by side.
struct Indices {
    selected: usize,
    made: usize,
    first: usize,
    adjacent: bool,
}

impl Indices {
    fn of(c: &BatchedCall, arg: usize) -> Result<Indices> {
        let Value::Tensors(list) = &c.example.args[arg] else { return Err(no_rule()) };
        let at: Vec<usize> = list.iter().enumerate().filter(|(_, t)| t.is_some()).map(|(i, _)| i).collect();
        let made = list.iter().flatten().map(|t| t.ndim()).max().unwrap_or(0);
        let (Some(&first), Some(&last)) = (at.first(), at.last()) else { return Err(no_rule()) };
        if list.iter().flatten().any(|t| !matches!(t.dtype(), crate::dtype::DType::I64 | crate::dtype::DType::I32)) {
            return Err(no_rule());
        }
        Ok(Indices { selected: list.len(), made, first, adjacent: last - first + 1 == at.len() })
    }
}

/// The index list for the whole batch: the dimension of the batch as it is, or, where an index is batched, an index of its own.
fn indices(c: &BatchedCall, arg: usize, made: usize) -> Result<Vec<Option<Tensor>>> {
    let Value::Tensors(list) = &c.args[arg] else { return Err(no_rule()) };
    if !c.is_batched(arg) {
        return Ok(std::iter::once(None).chain(list.iter().cloned()).collect());
    }
    let device = c.tensor(0)?.device();
    let mut shape: Ints = smallvec![c.size as i64];
    shape.extend(std::iter::repeat_n(1, made));
    let rows = ARANGE.call((c.size, crate::dtype::DType::I64, device)).reshape(&shape).ok()?;
    let aligned =
        c.mapped(|o| if o.batched { padded(o.tensor, o.example.ndim(), made) } else { Ok(o.tensor.clone()) })?;
    let Value::Tensors(rest) = &aligned[arg] else { return Err(no_rule()) };
    Ok(std::iter::once(Some(rows)).chain(rest.iter().cloned()).collect())
}

pub(crate) fn index(c: &BatchedCall) -> Result<Outputs> {
    let kind = Indices::of(c, 1)?;
    let list = indices(c, 1, kind.made)?;
    let out = INDEX.call((c.whole(0)?, list)).ok()?;
    let (rank, made) = (c.results[0].ndim() as i64, kind.made as i64);
    let dims: Ints = match (c.is_batched(1), kind.adjacent) {
        // Indices that do not stand side by side come first in the result, before the batch.
        (false, false) => std::iter::once(made).chain(0..made).chain(made + 1..=rank).collect(),
        // The index of the batch parts from the others: what they made comes before the dimensions that they follow.
        (true, true) if kind.first > 0 => {
            let before = kind.first as i64;
            let (moved, passed) = (1 + made..1 + made + before, 1..1 + made);
            std::iter::once(0).chain(moved).chain(passed).chain(1 + made + before..=rank).collect()
        }
        _ => return Ok(smallvec![out]),
    };
    PERMUTE.calls((out, dims))
}

pub(crate) fn index_put(c: &BatchedCall) -> Result<Outputs> {
    let kind = Indices::of(c, 1)?;
    let in_order = if c.is_batched(1) { kind.first == 0 || !kind.adjacent } else { kind.adjacent };
    if !in_order {
        return Err(no_rule());
    }
    let rank = kind.made + c.ndim(0) - kind.selected.min(c.ndim(0)) + kind.unselected(c);
    let mut args = c.mapped(|o| Ok(o.tensor.clone()))?;
    args[0] = Value::Owned(c.whole(0)?);
    args[1] = Value::Tensors(indices(c, 1, kind.made)?);
    args[2] = Value::Owned(c.aligned(2, rank)?);
    c.again(&args)
}

impl Indices {
    /// Dimensions among those of the list that no index selects from.
    fn unselected(&self, c: &BatchedCall) -> usize {
        let Value::Tensors(list) = c.argument("indices") else { return 0 };
        list.iter().filter(|t| t.is_none()).count()
    }
}

pub(crate) fn index_select(c: &BatchedCall) -> Result<Outputs> {
    let n = c.ndim(0);
    if n == 0 || c.ndim(2) != 1 {
        return Err(no_rule());
    }
    let dim = c.example.dim("dim") + 1;
    if !c.is_batched(2) {
        return INDEX_SELECT.calls((c.tensor(0)?, dim, c.tensor("index")?));
    }
    let x = c.whole(0)?;
    let mut place: Ints = smallvec![1; n + 1];
    (place[0], place[dim]) = (c.size as i64, -1);
    let mut shape = sizes(x.shape());
    shape[dim] = c.shape(2)[0] as i64;
    let index = RESHAPE.call((TO_LONG(c.tensor("index")?)?, place)).ok()?;
    GATHER.calls((x, dim, EXPAND.call((index, shape))))
}

#[allow(non_upper_case_globals)]
const TO_LONG: fn(&Tensor) -> Result<Tensor> = |t| match t.dtype() {
    crate::dtype::DType::I64 => Ok(t.clone()),
    _ => crate::ops::movement::copy::TO_COPY.call((t, crate::dtype::DType::I64)).ok(),
};

/// One table for all examples: its rows at any indices.
pub(crate) fn embedding(c: &BatchedCall) -> Result<Outputs> {
    if c.is_batched(0) { Err(no_rule()) } else { c.again(&c.mapped(|o| Ok(o.tensor.clone()))?) }
}

pub(crate) fn rot90(c: &BatchedCall) -> Result<Outputs> {
    let mut args = c.mapped(|o| Ok(o.tensor.clone()))?;
    let back = |&d: &i64| wrap_dim(d, c.ndim(0)).map(|d| d as i64 + 1);
    args[2] = Value::Ints(c.ints("dims")?.iter().map(back).collect::<Result<_>>()?);
    c.again(&args)
}

/// Of one tensor for all examples any index; else one along the flattened examples.
pub(crate) fn take(c: &BatchedCall) -> Result<Outputs> {
    if !c.is_batched(0) {
        return c.again(&c.mapped(|o| Ok(o.tensor.clone()))?);
    }
    let count = c.example.tensor(0)?.numel() as i64;
    let rows = RESHAPE.call((c.tensor(0)?, [c.size as i64, count]));
    let index = RESHAPE.call((c.whole(1)?, [c.size as i64, c.example.tensor("index")?.numel() as i64]));
    let from_end = LT.call((index.clone(), 0)).to_dtype(DType::I64) * count;
    let taken = GATHER.call((rows, 1, index + from_end)).ok()?;
    Ok(smallvec![c.shaped(0, taken)?])
}

/// The values of each example in a row, to be searched in a sequence of its own.
fn rows_of(c: &BatchedCall, i: usize) -> Result<Tensor> {
    RESHAPE.call((c.whole(i)?, [c.size as i64, c.example.tensor(i)?.numel() as i64])).ok()
}

pub(crate) fn searchsorted(c: &BatchedCall) -> Result<Outputs> {
    let mut args = c.mapped(|o| Ok(o.tensor.clone()))?;
    match (c.is_batched(0) || c.is_batched(5), c.ndim(0)) {
        (false, 1) => return c.again(&args),
        (_, 1) => args[1] = Value::Owned(rows_of(c, 1)?),
        _ => args[1] = Value::Owned(c.whole(1)?),
    }
    args[0] = Value::Owned(c.whole(0)?);
    if c.opt_tensor("sorter").is_some() {
        args[5] = Value::Owned(c.whole(5)?);
    }
    c.all_shaped(c.again(&args)?)
}

pub(crate) fn bucketize(c: &BatchedCall) -> Result<Outputs> {
    if !c.is_batched(1) {
        return c.again(&c.mapped(|o| Ok(o.tensor.clone()))?);
    }
    let found = SEARCHSORTED.calls((c.tensor("boundaries")?, rows_of(c, 0)?, c.flag("out_int32"), c.flag("right")))?;
    c.all_shaped(found)
}
