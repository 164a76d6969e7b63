//! Running one call on every example of a batch: the rules that kinds of ops share.
//!
//! A rule returns results with the batch first. One that cannot batch a call says so by an error, and the caller loops over
//! the examples: a rule is never wrong where it succeeds.

use super::batch_linalg::whole_matrices;
use crate::dispatch;
use crate::dtype::{DType, Operands};
use crate::error::{Error, Result};
use crate::layout::wrap_dim;
use crate::op::kind::Kind;
use crate::op::*;
use crate::ops::movement::copy::TO_COPY;
use crate::ops::reduce::sum_prod::{MEAN_DIM, SUM_DIM};
use crate::ops::view::reshape::{EXPAND, RESHAPE};
use crate::tensor::Tensor;
use smallvec::smallvec;

/// This call has no rule: the caller loops.
#[cold]
pub(crate) fn no_rule() -> Error {
    Error::not_implemented("no batch rule for this call")
}

pub(crate) fn sizes(shape: &[usize]) -> Ints {
    shape.iter().map(|&d| d as i64).collect()
}

/// A tensor argument: its position, that in a list, the tensor, what it is for one example, and whether it is batched.
pub(crate) struct Operand<'a> {
    pub arg: usize,
    pub tensor: &'a Tensor,
    pub example: &'a Tensor,
    pub batched: bool,
}

impl BatchedCall<'_> {
    /// `shape` of one example with the batch before it.
    pub(crate) fn with_batch(&self, shape: &[usize]) -> Ints {
        let mut out: Ints = smallvec![self.size as i64];
        out.extend(shape.iter().map(|&d| d as i64));
        out
    }
    /// The arguments with every tensor replaced.
    pub(crate) fn mapped(&self, mut f: impl FnMut(Operand) -> Result<Tensor>) -> Result<Args<'static>> {
        let mut out = Args::new();
        for (arg, (v, e)) in self.args.iter().zip(self.example.args).enumerate() {
            out.push(match (v, e) {
                (Value::Tensors(list), Value::Tensors(examples)) => {
                    let one = |(item, (t, e)): (usize, (&Option<Tensor>, &Option<Tensor>))| match (t, e) {
                        (Some(tensor), Some(example)) => {
                            let batched = self.is_item_batched(arg, item);
                            f(Operand { arg, tensor, example, batched }).map(Some)
                        }
                        _ => Ok(None),
                    };
                    Value::Tensors(list.iter().zip(examples).enumerate().map(one).collect::<Result<_>>()?)
                }
                _ => match (v.as_tensor(), e.as_tensor()) {
                    (Some(tensor), Some(example)) => {
                        Value::Owned(f(Operand { arg, tensor, example, batched: self.is_batched(arg) })?)
                    }
                    _ => v.clone().into_owned(),
                },
            });
        }
        Ok(out)
    }
    /// A tensor argument with the batch, and with `rank` dimensions after it.
    pub(crate) fn aligned(&self, i: usize, rank: usize) -> Result<Tensor> {
        let (t, e) = (self.tensor(i)?, self.example.tensor(i)?);
        if self.is_batched(i) { padded(t, e.ndim(), rank) } else { Ok(t.clone()) }
    }
    /// A tensor argument with the batch, which is expanded where it is one for all examples.
    pub(crate) fn whole(&self, i: usize) -> Result<Tensor> {
        let t = self.tensor(i)?;
        if self.is_batched(i) { Ok(t.clone()) } else { self.expanded(t) }
    }
    pub(crate) fn expanded(&self, t: &Tensor) -> Result<Tensor> {
        EXPAND.call((t, self.with_batch(t.shape()))).ok()
    }
    /// The examples as rows of the first dimension: [B, n, ..] as [B n, ..].
    pub(crate) fn folded(&self, t: &Tensor) -> Result<Tensor> {
        let shape = t.shape();
        let mut out: Ints = smallvec![(shape[0] * shape[1]) as i64];
        out.extend(sizes(&shape[2..]));
        RESHAPE.call((t, out)).ok()
    }
    /// A result in the shape that it must have.
    pub(crate) fn shaped(&self, i: usize, t: Tensor) -> Result<Tensor> {
        let wanted = self.with_batch(self.results[i].shape());
        if sizes(t.shape()) == wanted {
            return Ok(t);
        }
        RESHAPE.call((t, wanted)).ok()
    }
    pub(crate) fn all_shaped(&self, outputs: Outputs) -> Result<Outputs> {
        outputs.into_iter().enumerate().map(|(i, t)| self.shaped(i, t)).collect()
    }
    /// The greatest number of dimensions of a tensor argument for one example.
    fn rank(&self) -> usize {
        self.example.all_tensors().map(|t| t.ndim()).max().unwrap_or(0)
    }
    pub(crate) fn again(&self, args: &[Value]) -> Result<Outputs> {
        dispatch::call(self.op, args)
    }
}

/// [B, ..] of examples with `own` dimensions, with ones after the batch up to `rank` dimensions.
pub(crate) fn padded(t: &Tensor, own: usize, rank: usize) -> Result<Tensor> {
    if own >= rank {
        return Ok(t.clone());
    }
    let mut shape: Ints = smallvec![t.shape()[0] as i64];
    shape.extend(std::iter::repeat_n(1, rank - own));
    shape.extend(sizes(&t.shape()[1..]));
    RESHAPE.call((t, shape)).ok()
}

/// The call on the whole batch. Errors: there is no rule, or that of the call itself.
pub fn run(c: &BatchedCall) -> Result<Outputs> {
    let outputs = match c.op.batch_rule() {
        Batching::ByBody | Batching::Loop => Err(no_rule()),
        Batching::Align => aligned(c),
        Batching::Shift => shift(c, usize::MAX),
        Batching::ShiftWith(index) => shift(c, index),
        Batching::Leading => whole_matrices(c),
        Batching::Fold(rank, args) => fold(c, rank, args),
        Batching::Whole(op) => flattened(c, op),
        Batching::Reduced(how) => reduced(c, how),
        Batching::Rule(f) | Batching::ByStrides(f) => f(c),
    }?;
    let fits = |(t, e): (&Tensor, &Tensor)| sizes(t.shape()) == c.with_batch(e.shape()) && t.dtype() == e.dtype();
    match outputs.len() == c.results.len() && outputs.iter().zip(c.results).all(fits) {
        true => Ok(outputs),
        false => Err(no_rule()),
    }
}

/// An op that changes a copy of its first argument needs one for each example, and a draw that reads no batched tensor a
/// draw for each.
fn aligned(c: &BatchedCall) -> Result<Outputs> {
    let mut args = align(c)?;
    let own = match &c.op.body {
        Body::Kernel(k) if k.updates_self && !c.is_batched(0) => Some(0),
        _ if (0..c.args.len()).any(|i| c.is_batched(i)) => None,
        _ => (0..c.args.len()).find(|&i| c.args[i].as_tensor().is_some_and(|t| t.ndim() == c.rank())),
    };
    if let Some(i) = own {
        args[i] = Value::Owned(c.expanded(c.tensor(i)?)?);
    }
    c.again(&args)
}

/// The call in place on the batched first argument; `None`: it has to be computed and copied there.
pub fn run_inplace(c: &BatchedCall) -> Option<Result<Tensor>> {
    let args = match (c.op.batch_rule(), &c.op.body) {
        (Batching::Align, _) => align(c),
        (Batching::Leading, Body::Kernel(_)) if !(1..c.args.len()).any(|i| c.is_batched(i)) => Ok(owned(c.args)),
        _ => return None,
    };
    Some(args.and_then(|args| dispatch::call_inplace(c.op, &args)))
}

fn owned(args: &[Value]) -> Args<'static> {
    args.iter().map(|v| v.clone().into_owned()).collect()
}

/// Ones between the batch and the dimensions of operands that have fewer than others. A 0-d operand takes no part in
/// promotion, a batch of them would: it is cast before.
fn align(c: &BatchedCall) -> Result<Args<'static>> {
    let rank = c.rank();
    let mut dtypes = Operands::default();
    let casts = matches!(c.op.body, Body::Elementwise(_)) && !matches!(c.op.promote, Promote::First) && rank > 0;
    if casts {
        let masks = matches!(c.op.promote, Promote::By(_));
        for t in c.example.all_tensors().filter(|t| !(masks && t.dtype() == DType::Bool)) {
            dtypes.tensor(t.dtype(), t.ndim())?;
        }
    }
    let common = dtypes.result().filter(|_| casts);
    c.mapped(|o| {
        if !o.batched {
            return Ok(o.tensor.clone());
        }
        let t = padded(o.tensor, o.example.ndim(), rank)?;
        match common {
            Some(d) if o.example.ndim() == 0 && t.dtype() != d && t.dtype() != DType::Bool => TO_COPY.call((t, d)).ok(),
            _ => Ok(t),
        }
    })
}

/// Dimensions one further back. `shared`: the argument that is one for all examples.
fn shift(c: &BatchedCall, shared: usize) -> Result<Outputs> {
    if shared < c.args.len() && c.is_batched(shared) {
        return Err(no_rule());
    }
    let params = c.op.sig.params();
    // What a dimension means for tensors of several ranks is for the declaration to say.
    let mut ranks = c.example.args.iter().enumerate().filter(|(i, _)| *i != shared).flat_map(|(_, v)| v.tensors());
    let first = ranks.next().map(|t| t.ndim());
    if matches!(c.op.batch, Batching::ByBody) && ranks.any(|t| Some(t.ndim()) != first) {
        return Err(no_rule());
    }
    // A 0-d tensor counts as having one dimension, so each example gets one.
    let scalars = params.iter().any(|p| p.dim_of.is_some_and(|of| of.extra == 0 && c.ndim(of.tensor.into()) == 0));
    let flattens = |i: usize| {
        let by = |(at, p): (usize, &Param)| {
            p.kind == Kind::Int && p.dim_of.is_some_and(|of| usize::from(of.tensor) == i) && c.args[at].is_none()
        };
        params.iter().enumerate().any(by)
    };
    let mut args = c.mapped(|o| {
        if o.arg == shared {
            return Ok(o.tensor.clone());
        }
        let t = if o.batched { o.tensor.clone() } else { c.expanded(o.tensor)? };
        match () {
            () if flattens(o.arg) => RESHAPE.call((t, [c.size as i64, o.example.numel() as i64])).ok(),
            () if scalars && o.example.ndim() == 0 => padded(&t, 0, 1),
            () => Ok(t),
        }
    })?;
    for (i, p) in params.iter().enumerate() {
        let Some(of) = p.dim_of else { continue };
        let n = c.ndim(of.tensor.into()) + usize::from(of.extra);
        let back = |d: i64| wrap_dim(d, n).map(|d| d as i64 + 1);
        let all = || Value::Ints((1..=n.max(1) as i64).collect());
        args[i] = match &c.args[i] {
            Value::Scalar(d) => back(d.to_i64())?.into(),
            Value::Ints(dims) if dims.is_empty() && (p.optional || p.kind == Kind::IntOrInts) => all(),
            Value::Ints(dims) => Value::Ints(dims.iter().map(|&d| back(d)).collect::<Result<_>>()?),
            Value::None if p.kind == Kind::Int => 1.into(),
            Value::None => all(),
            _ => return Err(no_rule()),
        };
    }
    c.all_shaped(c.again(&args)?)
}

/// Examples folded into the first dimension of arguments [N, ..] with `rank` dimensions at least.
fn fold(c: &BatchedCall, rank: usize, with: &[usize]) -> Result<Outputs> {
    if (0..c.args.len()).any(|i| c.is_batched(i) && !with.contains(&i)) {
        return Err(no_rule());
    }
    let args = c.mapped(|o| {
        if !with.contains(&o.arg) {
            return Ok(o.tensor.clone());
        }
        let t = if o.batched { o.tensor.clone() } else { c.expanded(o.tensor)? };
        if o.example.ndim() < rank { Ok(t) } else { c.folded(&t) }
    })?;
    c.all_shaped(c.again(&args)?)
}

/// A reduction of everything, by `op` along a dimension.
fn flattened(c: &BatchedCall, op: &'static Op) -> Result<Outputs> {
    let rows = RESHAPE.call((c.tensor(0)?, [c.size as i64, c.example.tensor(0)?.numel() as i64])).ok()?;
    let mut args: Args = smallvec![Value::Owned(rows)];
    for p in &op.sig.params()[1..] {
        let name = p.name(&op.sig);
        args.push(match c.op.sig.index_of(name) {
            _ if name == "dim" && p.kind == Kind::Int => 1.into(),
            _ if name == "dim" => [1].into(),
            Some(i) => c.args[i].clone().into_owned(),
            None => p.default_value(&op.sig).ok_or_else(no_rule)?,
        });
    }
    dispatch::call(op, &args)
}

/// A loss of elements: not reduced, then reduced over all but the batch.
fn reduced(c: &BatchedCall, how: usize) -> Result<Outputs> {
    let name = c.str(how).unwrap_or_default().to_string();
    let rank = c.rank();
    let mut args = align(c)?;
    let p = &c.op.sig.params()[how];
    args[how] = p.choose(&c.op.sig, "none").ok_or_else(no_rule)?;
    let all = c.again(&args)?.swap_remove(0);
    if name == "none" || rank == 0 {
        return Ok(smallvec![all]);
    }
    let dims: Ints = (1..=rank as i64).collect();
    let op = if name == "mean" { &MEAN_DIM } else { &SUM_DIM };
    op.call((all, dims)).outputs()
}
