//! `out=`: results go into tensors that the caller gave, resized where their shape differs.

use super::{call, elementwise, overlap};
use crate::autograd::{GradGuard, grad_enabled, witness};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::op::{Body, Call, Op, OutDType, Value};
use crate::tensor::{Meta, Tensor};

/// Calls `op` and writes its results into `outs`. Nothing is written when anything is wrong.
pub fn call_out(op: &'static Op, args: &[Value], outs: &[Tensor]) -> Result<()> {
    into(op, args, outs).map_err(|e| e.in_op(op.parsed().title))
}

fn into(op: &'static Op, args: &[Value], outs: &[Tensor]) -> Result<()> {
    let whole = Call { op, args };
    if grad_enabled() && whole.all_tensors().chain(outs).any(|t| t.requires_grad()) {
        return Err(Error::runtime(
            "functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.",
        ));
    }
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
            witness::written(out, op);
            return Ok(());
        }
    }
    let mut own: crate::op::Args = args.iter().map(|v| v.reborrow()).collect();
    let rule = out_dtype(op);
    if let (OutDType::Every, Some(i)) = (rule, op.signature().index_of("dtype"))
        && own[i].is_none()
        && let [out] = outs
    {
        own[i] = Value::DType(out.dtype());
    }
    let results = call(op, &own)?;
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

/// Writes results into tensors that are given another shape where they need it; what they reach then is checked first.
fn write(call: &Call, results: &[Tensor], outs: &[Tensor]) -> Result<()> {
    let pairs = || results.iter().zip(outs);
    for (r, out) in pairs().filter(|(r, out)| r.shape() != out.shape()) {
        let grown = Layout { offset: out.layout().offset, ..r.layout().fresh() };
        overlap::check(call, 0, &out.with_layout(grown))?;
    }
    for (r, out) in pairs() {
        if out.shape() != r.shape() {
            lay_out(out, r.layout().fresh())?;
        }
        out.copy_raw(r)?;
        witness::written(out, call.op);
    }
    Ok(())
}

fn out_dtype(op: &Op) -> OutDType {
    op.out_dtype.unwrap_or(match op.body {
        Body::Kernel(_) => OutDType::Same,
        _ => OutDType::Castable,
    })
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

/// Gives a tensor another shape, keeping its memory where that is large enough (`resize_`).
pub fn resize(t: &Tensor, shape: &[usize]) -> Result<()> {
    if t.shape() == shape {
        return Ok(());
    }
    crate::layout::laid_out_numel(shape)?;
    lay_out(t, Layout::contiguous(shape))
}

/// Gives a tensor another layout from its present offset on.
fn lay_out(t: &Tensor, layout: Layout) -> Result<()> {
    let m = t.meta().clone();
    let layout = Layout { offset: m.layout.offset, ..layout };
    m.storage.grow(layout.end().saturating_mul(m.dtype.size()))?;
    // SAFETY: `m` is a copy, so no reference from `meta()` is held; Python calls come under the interpreter lock.
    unsafe { t.set_meta(Meta { layout, ..m }) };
    Ok(())
}
