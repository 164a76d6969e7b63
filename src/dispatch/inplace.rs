//! In-place calls: the op writes to its first argument, whose version is bumped and whose history is rewritten.

use super::{autocast, call, check_facts, elementwise, jvp, launch, needs_record, overlap, written};
use crate::autograd;
use crate::autograd::forward::Visible;
use crate::autograd::{diagnostics, history, node};
use crate::error::{Error, Result};
use crate::op::tracer::{self, Form, Traced};
use crate::op::{A0, AliasPolicy, Arguments, Body, Call, Forms, Op, OutDType, Value, Vjp};
use crate::tensor::{Meta, Tensor};

/// Calls `op` in place on its first argument and returns that tensor.
pub fn call_inplace(op: &'static Op, args: &[Value]) -> Result<Tensor> {
    let _as_given = autocast::Off::new();
    let whole = Call { op, args };
    let dual = jvp::any_dual(&whole);
    if let (true, Body::View(_)) = (dual, &op.body) {
        let views = jvp::changed_views(&whole)?;
        let _values_alone = Visible::only(0);
        let changed = call_inplace(op, args)?;
        return jvp::put(&changed, views).map(|()| changed);
    }
    // A call of its own for whoever records: the gradient's formula will read its result.
    let kept = if tracer::enabled() && !dual { value_before(&whole)? } else { None };
    let run = || inplace(op, args, dual, kept).map_err(|e| e.in_call(format!("{}_", op.title().trim_end_matches('_'))));
    // Of a write to duals the steps are reported, since some of them write to the tangents.
    if tracer::enabled() && !dual {
        let traced = Traced { op, args, form: Form::InPlace, outs: &[] };
        return tracer::call(&traced, run, std::slice::from_ref);
    }
    run()
}

/// What a recorded formula reads of the first argument as it is before the write: a copy, recorded so that second
/// derivatives flow through it.
fn value_before(call: &Call) -> Result<Option<Tensor>> {
    let target = call.tensor(0)?;
    let computed = matches!(call.op.body, Body::Elementwise(_) | Body::Kernel(_));
    let recorded = computed && needs_record(call) && target.dtype().is_differentiable();
    (recorded && reads_self(call.op)).then(|| (autograd::engine_ops().clone)(target)).transpose()
}

fn inplace(op: &'static Op, args: &[Value], dual: bool, kept: Option<Tensor>) -> Result<Tensor> {
    let whole = Call { op, args };
    let target = whole.tensor(0)?.clone();
    if !op.forms.has(Forms::INPLACE | Forms::ONLY_INPLACE) {
        return Err(Error::internal("the op has no in-place form"));
    }
    let tracked = autograd::grad_enabled() && whole.all_tensors().any(|t| t.requires_grad());
    history::check_inplace(&target, tracked)?;
    // Integers have no gradient, whatever is written to them.
    let recorded = needs_record(&whole) && target.dtype().is_differentiable();
    check_facts(&whole)?;
    written::check(&whole)?;
    if let Body::View(f) = &op.body {
        return change_view(&whole, f(&whole)?, recorded);
    }
    if target.dtype().is_complex() {
        refuse_real_result(&whole)?;
    }
    let once = writing_once(&whole, &target)?;
    if let (Some(own), false, false) = (&once, recorded, dual) {
        return inplace(op, own, false, None).map(|_| target);
    }
    overlap::check(&whole, 1, &target)?;
    let cut = tracked && matches!(op.vjp, Vjp::None(_));
    if cut || dual || matches!(op.body, Body::Decompose(_) | Body::Opaque(_)) {
        // Compute out of place, then `copy_` into `target` and record that: tensors saved inside must not observe the
        // write. For an op without a gradient the copied values are constants. Tangents take this path too.
        let mut own: crate::op::Args = args.iter().map(|v| v.reborrow()).collect();
        if (tracked && !cut) || (dual && autograd::grad_enabled()) {
            own[0] = Value::Owned((autograd::engine_ops().clone)(&target)?);
        }
        let result = call(op, &own)?.swap_remove(0);
        elementwise::check_castable(result.dtype(), target.dtype())?;
        check_shape(&result, &target)?;
        return jvp::written(adopt(op, target, &result, tracked && !cut)?, &result);
    }
    let mut own: crate::op::Args = args.iter().map(|v| v.reborrow()).collect();
    if let Some(before) = kept.map_or_else(|| value_before(&whole), |t| Ok(Some(t)))? {
        own[0] = Value::Owned(before);
    }
    let edges = if recorded { node::edges(&whole)? } else { Default::default() };
    match once {
        Some(own) => {
            let _unrecorded = autograd::GradGuard::new(false);
            inplace(op, &own, false, None)?;
        }
        None => run_into(&whole, &target)?,
    }
    written::note(&whole);
    diagnostics::written(&target, op);
    if recorded {
        let again = Call { op, args: &own };
        let node = node::record_inplace(&again, std::slice::from_ref(&target), edges)?;
        history::rebase(&target, &node)?;
        node.pack_outputs(std::slice::from_ref(&target))?;
    }
    Ok(target)
}

/// A function that is real where its argument is complex (`abs`) has no in-place form there: the imaginary parts would stay.
fn refuse_real_result(call: &Call) -> Result<()> {
    let Body::Elementwise(e) = &call.op.body else { return Ok(()) };
    if elementwise::infer(call, e.rule(call)?)?[0].dtype.is_float() {
        let name = call.op.title();
        return Err(Error::runtime(format!("In-place {name} is not supported for complex tensors.")));
    }
    Ok(())
}

/// For a target whose elements alias: the arguments of an equivalent call that writes each location once, if there is
/// one.
fn writing_once(call: &Call, target: &Tensor) -> Result<Option<crate::op::Args<'static>>> {
    if !target.layout().has_internal_overlap() || target.requires_grad() {
        return history::check_writable(target).map(|()| None);
    }
    if call.op.alias_policy == Some(AliasPolicy::UniformWrite) {
        let mut own: crate::op::Args = call.args.iter().map(|v| v.clone().into_owned()).collect();
        own[0] = Value::Owned(target.with_layout(target.layout().unexpanded()));
        return Ok(Some(own));
    }
    match &call.op.expanded {
        Some(e) => {
            history::check_memory(target)?;
            e.warning.map_or(Ok(()), diagnostics::warn)?;
            let _unrecorded = autograd::GradGuard::new(false);
            (e.once)(call)
        }
        None => history::check_writable(target).map(|()| None),
    }
}

/// Writes a composite's result into `target`; a non-view target inherits the result's history if possible.
fn adopt(op: &'static Op, target: Tensor, result: &Tensor, tracked: bool) -> Result<Tensor> {
    let _values_alone = Visible::only(0);
    let made = if tracked { history::grad_fn(result)? } else { None };
    match made {
        Some(e) if target.view_info().is_none() && target.dtype() == result.dtype() => {
            super::write_raw(&target, result)?;
            diagnostics::written(&target, op);
            target.set_grad_fn(e);
            history::follow_retained(&target)?;
        }
        _ => (autograd::engine_ops().copy_)(&target, result)?,
    }
    Ok(target)
}

fn reads_self(op: &Op) -> bool {
    op.vjp.saves(|_| true) & A0 != 0
}

fn run_into(call: &Call, target: &Tensor) -> Result<()> {
    match &call.op.body {
        Body::Elementwise(e) => {
            elementwise::run(call, e.rule(call)?, Some(elementwise::Target { out: target }))?;
            Ok(())
        }
        Body::Kernel(k) if k.updates_self || k.onto_self => {
            if !k.any_device {
                super::check_devices(call)?;
            }
            (k.infer)(call)?;
            let _unrecorded = autograd::GradGuard::new(false);
            launch(call, k, std::slice::from_ref(target))
        }
        Body::Kernel(k) => {
            let mut outputs = crate::op::Outputs::new();
            let _unrecorded = autograd::GradGuard::new(false);
            let own = computed_as(call, target);
            super::run_kernel(&Call { op: call.op, args: own.as_deref().unwrap_or(call.args) }, k, &mut outputs)?;
            let result = &outputs[0];
            elementwise::check_castable(result.dtype(), target.dtype())?;
            check_shape(result, target)?;
            target.copy_raw(result)
        }
        _ => Err(Error::internal("no in-place road for this body")),
    }
}

/// The arguments with `dtype=` set to the target's, if the op computes in the dtype of its `out=` and none is given.
fn computed_as<'a>(call: &'a Call, target: &Tensor) -> Option<crate::op::Args<'a>> {
    let at = call.op.sig.index_of("dtype")?;
    if call.op.out_dtype != Some(OutDType::Every) || !call.args[at].is_none() {
        return None;
    }
    let mut own: crate::op::Args = call.args.iter().map(|v| v.reborrow()).collect();
    own[at] = Value::DType(target.dtype());
    Some(own)
}

fn check_shape(result: &Tensor, target: &Tensor) -> Result<()> {
    if result.shape() != target.shape() {
        return Err(Error::runtime(format!(
            "output with shape {} doesn't match the result's shape {}",
            crate::error::Show(target.shape()),
            crate::error::Show(result.shape())
        )));
    }
    Ok(())
}

/// `t_()`, `squeeze_()`: changes the layout of the handle.
fn change_view(call: &Call, layout: crate::layout::Layout, recorded: bool) -> Result<Tensor> {
    let target = call.tensor(0)?.clone();
    let edges = if recorded { Some(node::edges(call)?) } else { None };
    let mut own: crate::op::Args = call.args.iter().map(|v| v.reborrow()).collect();
    if recorded {
        own[0] = Value::Owned(target.detach());
    }
    history::replay_as(&target, &layout);
    let meta = Meta { layout, ..target.meta().clone() };
    target.set_meta(meta)?;
    diagnostics::written(&target, call.op);
    if let Some(edges) = edges {
        let node = node::record_inplace(&Call { op: call.op, args: &own }, std::slice::from_ref(&target), edges)?;
        history::set_history(&target, &node, 0);
        if let Some(v) = target.view_info() {
            v.version.store(target.version(), std::sync::atomic::Ordering::Release);
        }
    }
    Ok(target)
}
