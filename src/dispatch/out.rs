//! `out=`: results are written to given tensors, which are resized if their shape differs.

use super::{autocast, call, check_facts, elementwise, overlap};
use crate::autograd::{GradGuard, diagnostics, grad_enabled, history};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Format, Layout};
use crate::op::tracer::{self, Change, Form, Traced};
use crate::op::{Body, Call, Op, OutDType, Value};
use crate::tensor::{Meta, Tensor};
use smallvec::SmallVec;

/// Calls `op` and writes its results into `outs`. On an error nothing is written.
pub fn call_out(op: &'static Op, args: &[Value], outs: &[Tensor]) -> Result<()> {
    let _as_given = autocast::Off::new();
    let run = || into(op, args, outs).map_err(|e| e.in_call(op.title()));
    if tracer::enabled() {
        let traced = Traced { op, args, form: Form::Out, outs };
        return tracer::call(&traced, || run().map(|()| outs), |outs| outs).map(drop);
    }
    run()
}

fn into(op: &'static Op, args: &[Value], outs: &[Tensor]) -> Result<()> {
    let whole = Call { op, args };
    if grad_enabled() && whole.all_tensors().chain(outs).any(|t| t.requires_grad()) {
        return Err(Error::runtime(
            "functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.",
        ));
    }
    super::jvp::refuse(&whole, outs, "because it is an out= function")?;
    check_facts(&whole)?;
    outs.iter().try_for_each(history::check_inference)?;
    if outs.iter().any(|t| t.layout().has_internal_overlap()) {
        return Err(Error::runtime(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. \
             Please clone() the tensor before performing the operation.",
        ));
    }
    outs.iter().try_for_each(|out| overlap::check(&whole, 0, out))?;
    overlap::check_apart(op, outs)?;
    let _no_grad = GradGuard::new(false);
    if let (Body::Elementwise(e), [out]) = (&op.body, outs) {
        let rule = e.rule(&whole)?;
        let spec = elementwise::infer(&whole, rule)?.swap_remove(0);
        if out_dtype(op) == OutDType::Same {
            check_same(spec.dtype, out.dtype())?;
        }
        if spec.layout.shape.as_slice() == out.shape() {
            let target = elementwise::Target { out };
            elementwise::run(&whole, rule, Some(target))?;
            diagnostics::written(out, op);
            return Ok(());
        }
    }
    let mut own: crate::op::Args = args.iter().map(|v| v.reborrow()).collect();
    let rule = out_dtype(op);
    if let (OutDType::Every, [out]) = (rule, outs) {
        take_kind(op, &mut own, out)?;
    }
    let results = call(op, &own)?;
    // What is asked for by name is not cast. The result may be the real dtype of the one that is asked for.
    if let (false, [out], [result]) = (rule == OutDType::Every, outs, results.as_slice())
        && op.sig.index_of("dtype").is_some_and(|i| matches!(own[i], Value::DType(_)))
        && result.dtype() != out.dtype()
    {
        return Err(two_dtypes(op, result.dtype(), out.dtype()));
    }
    if results.len() != outs.len() {
        return Err(Error::type_(format!("out= expects {} tensors, got {}", results.len(), outs.len())));
    }
    for (r, out) in results.iter().zip(outs) {
        if r.device() != out.device() {
            return Err(super::mixed_devices(r.device(), out.device()));
        }
        match rule {
            OutDType::Castable => elementwise::check_castable(r.dtype(), out.dtype())?,
            OutDType::Same => check_same(r.dtype(), out.dtype())?,
            OutDType::Every => {}
        }
    }
    write(&whole, &results, outs)
}

/// With `out`, new tensors get its dtype and device; factory ops reject conflicting ones.
fn take_kind(op: &'static Op, args: &mut crate::op::Args, out: &Tensor) -> Result<()> {
    if let Some(i) = op.sig.index_of("dtype") {
        match &args[i] {
            Value::DType(d) if *d != out.dtype() => return Err(two_dtypes(op, *d, out.dtype())),
            _ => args[i] = Value::DType(out.dtype()),
        }
    }
    if let Some(i) = op.sig.index_of("device") {
        match &args[i] {
            Value::Device(d) if *d != out.device() => {
                return Err(Error::runtime(format!(
                    "device type {d} does not match device type of out parameter ({})",
                    out.device()
                )));
            }
            _ => args[i] = Value::Device(out.device()),
        }
    }
    Ok(())
}

/// Writes results into tensors, resizing them if needed; the memory they reach after that is checked first.
fn write(call: &Call, results: &[Tensor], outs: &[Tensor]) -> Result<()> {
    // A one-dimensional result may be written to a tensor of any shape with as many elements.
    let shaped = |(r, out): (&Tensor, &Tensor)| match call.op.fills_out && r.numel() == out.numel() {
        true => r.with_layout(Layout::contiguous(out.shape())),
        false => r.clone(),
    };
    let results: SmallVec<[Tensor; 2]> = results.iter().zip(outs).map(shaped).collect();
    let pairs = || results.iter().zip(outs);
    for (r, out) in pairs().filter(|(r, out)| r.shape() != out.shape()) {
        let grown = Layout { offset: out.layout().offset, ..r.layout().fresh() };
        overlap::check(call, 0, &out.with_layout(grown))?;
    }
    for (r, out) in pairs() {
        if out.shape() != r.shape() {
            lay_out(out, r.layout().fresh())?;
        }
        super::write_raw(out, r)?;
        diagnostics::written(out, call.op);
    }
    Ok(())
}

fn out_dtype(op: &Op) -> OutDType {
    op.out_dtype.unwrap_or(match op.body {
        Body::Kernel(_) => OutDType::Same,
        _ => OutDType::Castable,
    })
}

/// Conflicting `dtype=` and `out=` are an error.
#[cold]
fn two_dtypes(op: &'static Op, asked: DType, out: DType) -> Error {
    if op.sig.index_of("requires_grad").is_none() {
        return Error::runtime(format!(
            "Expected out tensor to have dtype {}, but got {} instead",
            asked.cpp_name(),
            out.cpp_name()
        ));
    }
    Error::runtime(format!(
        "dtype {} does not match dtype of out parameter ({})",
        asked.scalar_type_name(),
        out.scalar_type_name()
    ))
}

fn check_same(result: DType, out: DType) -> Result<()> {
    if result == out {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "Expected out tensor to have dtype {}, but got {} instead",
        result.cpp_name(),
        out.cpp_name()
    )))
}

/// Changes the shape of a tensor, keeping its memory if that is large enough (`resize_`); with a memory format, changes
/// the strides even if the shape stays.
pub fn resize(t: &Tensor, shape: &[usize], format: Option<Format>) -> Result<()> {
    history::check_inference(t)?;
    crate::layout::laid_out_numel(shape)?;
    let same = t.shape() == shape;
    match format {
        None if same => return Ok(()),
        None => lay_out(t, Layout::contiguous(shape))?,
        Some(f) => lay_out(t, Layout::contiguous(shape).formed(f)?)?,
    }
    if !same {
        t.storage().bump();
    }
    Ok(())
}

/// Changes the layout of a tensor, keeping its offset.
fn lay_out(t: &Tensor, layout: Layout) -> Result<()> {
    let m = t.meta().clone();
    let layout = Layout { offset: m.layout.offset, ..layout };
    m.storage.grow(layout.end().saturating_mul(m.dtype.size()))?;
    t.set_meta(Meta { layout, ..m })?;
    tracer::notify(|tracer| tracer.changed(t, Change::Resized));
    Ok(())
}
