//! Forward mode: what a call does with the tangents of its arguments. See `docs/decisions/forward-mode.md`.
//!
//! A *differentiable call* is one whose op has a gradient of its own. After it ran, the tangents of its results are
//! computed level by level, by ordinary calls that see outer levels only (`jvp_rules`); what its body does is seen by no
//! level. Any other op with a gradient is a composite, and its steps propagate.

use super::jvp_rules::{self, Dual};
use crate::autograd::engine_ops;
use crate::autograd::forward::{self, Visible, levels};
use crate::error::{Error, Result};
use crate::op::{Args, Body, Call, Outputs, Value, Vjp};
use crate::rt::thread_state::ThreadState;
use crate::tensor::Tensor;

/// A call in a thread with levels of forward mode.
#[cold]
#[inline(never)]
pub(super) fn call(thread: &ThreadState, call: &Call, outputs: &mut Outputs) -> Result<()> {
    if let Vjp::Composite = call.op.vjp {
        return super::call_observed(thread, call, outputs);
    }
    let visible = Visible::only(0);
    super::call_observed(thread, call, outputs)?;
    drop(visible);
    propagate(call, outputs).map_err(|e| e.in_call(call.op.title()))
}

fn propagate(call: &Call, outputs: &[Tensor]) -> Result<()> {
    refuse_written(call)?;
    // Outer levels first: a formula may read results, whose outer tangents must be there.
    for level in levels(forward::visible()) {
        let duals = duals(call, level)?;
        if duals.is_empty() {
            declare_constant(call, outputs, level)?;
            continue;
        }
        let _outer = Visible::outside(level);
        let tangents = jvp_rules::tangents(call, outputs, &duals)?;
        for (y, tangent) in outputs.iter().zip(tangents) {
            let given = duals.iter().any(|d| d.primal.same(y));
            match tangent.filter(|_| !given) {
                Some(t) if is_view(call) => forward::put(y, level, Some(t))?,
                Some(t) => forward::set(y, level, &jvp_rules::fitted(t, y, &duals)?)?,
                None => {}
            }
        }
    }
    Ok(())
}

fn is_view(call: &Call) -> bool {
    matches!(call.op.body, Body::View(_) | Body::ViewAs(_) | Body::Views(_))
}

/// The arguments with a tangent at a level that the op is differentiable in.
fn duals<'a>(call: &'a Call, level: usize) -> Result<Vec<Dual<'a>>> {
    let mut found = Vec::new();
    let mut edge = 0;
    let mut take = |arg: usize| {
        let list: &[Option<Tensor>] = if let Value::Tensors(list) = &call.args[arg] { list } else { &[] };
        let single = call.args[arg].as_tensor().map(|t| (0, t));
        for (item, primal) in list.iter().enumerate().filter_map(|(k, t)| Some((k, t.as_ref()?))).chain(single) {
            if let Some(tangent) = forward::tangent(primal, level)? {
                found.push(Dual { arg, item, edge, primal, tangent });
            }
            edge += 1;
        }
        edge += usize::from(list.is_empty() && single.is_none() && !matches!(call.args[arg], Value::Tensors(_)));
        Ok::<(), Error>(())
    };
    match &call.op.vjp {
        Vjp::Missing => (0..call.args.len()).try_for_each(&mut take)?,
        vjp => vjp.each_arg(&mut take)?,
    }
    Ok(found)
}

/// Views of a tensor that was declared constant are constant, although their base may have a tangent.
fn declare_constant(call: &Call, outputs: &[Tensor], level: usize) -> Result<()> {
    if is_view(call) && call.args[0].as_tensor().is_some_and(|t| forward::is_constant(t, level)) {
        outputs.iter().filter(|y| y.view_info().is_some()).try_for_each(|y| forward::put(y, level, None))?;
    }
    Ok(())
}

/// Whether an argument has a tangent at a level that is seen.
#[inline]
pub(super) fn any_dual(call: &Call) -> bool {
    forward::visible() != 0 && has_dual(call.all_tensors())
}

#[cold]
fn has_dual<'a>(mut tensors: impl Iterator<Item = &'a Tensor>) -> bool {
    tensors.any(|t| levels(forward::visible()).any(|level| forward::is_dual(t, level)))
}

fn unsupported(call: &Call, why: &str) -> Error {
    Error::not_implemented(format!("Trying to use forward AD with {} that does not support it {why}", call.op.public()))
}

/// Refuses a call with duals among its arguments or `outs`.
pub(super) fn refuse(call: &Call, outs: &[Tensor], why: &str) -> Result<()> {
    match forward::visible() != 0 && has_dual(call.all_tensors().chain(outs)) {
        true => Err(unsupported(call, why)),
        false => Ok(()),
    }
}

/// Refuses writes to duals that are not the op's result: nothing would change their tangents.
fn refuse_written(call: &Call) -> Result<()> {
    let mask = call.op.also_writes();
    let written = call.args.iter().enumerate().filter(|(i, _)| mask & (1 << i) != 0).flat_map(|(_, v)| v.tensors());
    match mask != 0 && has_dual(written) {
        true => Err(unsupported(call, "because it writes to several of its arguments")),
        false => Ok(()),
    }
}

/// The same write to the tangents of `target`, into which `result` was written.
pub(super) fn written(target: Tensor, result: &Tensor) -> Result<Tensor> {
    if forward::visible() == 0 || !target.dtype().is_differentiable() {
        return Ok(target);
    }
    for level in levels(forward::visible()) {
        let (new, old) = (forward::tangent(result, level)?, forward::tangent(&target, level)?);
        if new.is_none() && old.is_none() {
            continue;
        }
        let _outer = Visible::outside(level);
        // A tangent that may not be written is replaced.
        let frozen = |t: &Tensor| crate::autograd::grad_enabled() && t.requires_grad() && t.is_leaf();
        match (old.filter(|t| !frozen(t)), new) {
            (Some(old), Some(new)) => (engine_ops().copy_)(&old, &new)?,
            (Some(old), None) => (engine_ops().zero_)(&old)?,
            (None, new) => {
                let place = forward::start(&target, level)?;
                new.map_or(Ok(()), |new| (engine_ops().copy_)(&place, &new))?;
            }
        }
    }
    Ok(target)
}

/// The tangents of a tensor whose handle changes its layout: the same views of them, by level.
pub(super) fn changed_views(call: &Call) -> Result<Vec<(usize, Tensor)>> {
    if let Vjp::None(_) = call.op.vjp {
        return Err(unsupported(call, "because it changes the layout of a tensor in place"));
    }
    let target = call.args[0].as_tensor().ok_or_else(|| Error::internal("a view of no tensor"))?;
    let mut views = Vec::new();
    for level in levels(forward::visible()) {
        let Some(tangent) = forward::tangent(target, level)? else { continue };
        let _outer = Visible::outside(level);
        let mut args: Args = call.args.iter().map(|v| v.reborrow()).collect();
        args[0] = Value::Tensor(&tangent);
        views.push((level, super::call(call.op, &args)?.swap_remove(0)));
    }
    Ok(views)
}

/// Sets tangents by level.
pub(super) fn put(t: &Tensor, tangents: Vec<(usize, Tensor)>) -> Result<()> {
    tangents.into_iter().try_for_each(|(level, tangent)| forward::put(t, level, Some(tangent)))
}
