//! The tangents of the results of one call, from the tangents of its arguments at one level.
//!
//! Rules follow from the declaration. Views: the same view of the tangent. `Jvp::Linear` and `Jvp::Multilinear`: the op
//! itself on tangents. Real elementwise ops: their Jacobian is diagonal, so the gradient formula of an argument, on its
//! tangent, is the product. All others: a gradient formula is a linear map of `g`, the transpose of the Jacobian, and its own
//! gradient with respect to `g` transposes it back.

use super::call as call_op;
use crate::autograd::engine::match_shape_dtype;
use crate::autograd::{self, GradGuard, Request, engine_ops, grad_enabled, history, mode, node};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::op::gradient::TensorMeta;
use crate::op::{Args, Body, Call, Grad, Jvp, Outputs, Value, Vjp, VjpCtx};
use crate::rt::thread_state::thread_state;
use crate::tensor::{Edge, INFERENCE, LEAF_GRAD, Tensor};

/// An argument, or an item of a list argument, with its tangent.
pub(super) struct Dual<'a> {
    pub arg: usize,
    pub item: usize,
    /// The number of its edge, if the call is recorded.
    pub edge: usize,
    pub primal: &'a Tensor,
    pub tangent: Tensor,
}

type Tangents = Vec<Option<Tensor>>;

/// The tangents of the results; `None` for one without.
pub(super) fn tangents(call: &Call, outputs: &[Tensor], duals: &[Dual]) -> Result<Tangents> {
    let real = || outputs.iter().chain(duals.iter().map(|d| d.primal)).all(|t| !t.dtype().is_complex());
    match (&call.op.body, &call.op.jvp, &call.op.vjp) {
        (.., Vjp::Missing) => Err(Error::not_implemented(format!(
            "Trying to use forward AD with {} that does not support it because it has not been implemented yet.",
            call.op.public()
        ))),
        (.., Vjp::Zero(_)) => outputs.iter().enumerate().map(|(i, y)| zeros(call, i, y)).collect(),
        (Body::View(_) | Body::ViewAs(_) | Body::Views(_), ..) if same_memory(call, &duals[0]) => {
            Ok(on_tangents(call, &duals[..1], false)?.into_iter().map(Some).collect())
        }
        (_, Jvp::Linear, _) => Ok(differentiable(call, on_tangents(call, duals, true)?)),
        (_, Jvp::Multilinear(added), _) => multilinear(call, outputs, duals, added),
        (Body::Elementwise(_), _, Vjp::Each(list)) if real() => diagonal(call, list, &outputs[0], duals),
        _ => transposed(call, outputs, duals),
    }
}

fn has_tangent(call: &Call, i: usize, y: &Tensor) -> bool {
    y.dtype().is_differentiable() && !call.op.constant.contains(&i)
}

fn zeros(call: &Call, i: usize, y: &Tensor) -> Result<Option<Tensor>> {
    has_tangent(call, i, y).then(|| (engine_ops().zeros)(&TensorMeta::of(y))).transpose()
}

fn differentiable(call: &Call, made: Outputs) -> Tangents {
    made.into_iter().enumerate().map(|(i, t)| has_tangent(call, i, &t).then_some(t)).collect()
}

fn summed(a: Tangents, b: Tangents) -> Result<Tangents> {
    let add = |pair| match pair {
        (Some(a), Some(b)) => (engine_ops().add)(&a, &b).map(Some),
        (a, b) => Ok(a.or(b)),
    };
    a.into_iter().zip(b).map(add).collect()
}

/// Whether a view of the argument is the same view of its tangent: `as_strided` counts in places of the storage.
fn same_memory(call: &Call, dual: &Dual) -> bool {
    let (a, b) = (dual.primal.meta(), dual.tangent.meta());
    !std::ptr::eq(call.op, engine_ops().as_strided)
        || (a.layout.offset == b.layout.offset
            && a.layout.strides == b.layout.strides
            && a.storage.bytes() == b.storage.bytes())
}

/// The op itself, with tangents in the places of their primals; with `jointly`, zeros in those of the other arguments that it
/// is differentiable in.
fn on_tangents(call: &Call, duals: &[Dual], jointly: bool) -> Result<Outputs> {
    let mut args: Args = call.args.iter().map(|v| v.reborrow()).collect();
    if jointly {
        let zeros = |t: &Tensor| (engine_ops().zeros)(&TensorMeta::of(t));
        call.op.vjp.each_arg(|i| {
            args[i] = match &call.args[i] {
                Value::Tensors(list) => {
                    let items = list.iter().enumerate().map(|(k, t)| match t {
                        Some(t) if !duals.iter().any(|d| (d.arg, d.item) == (i, k)) => zeros(t).map(Some),
                        _ => Ok(None),
                    });
                    Value::Tensors(items.collect::<Result<_>>()?)
                }
                v => match v.as_tensor() {
                    Some(t) if !duals.iter().any(|d| d.arg == i) => Value::Owned(zeros(t)?),
                    Some(_) => return Ok(()),
                    None => return Ok::<(), Error>(()),
                },
            };
            Ok(())
        })?;
    }
    for d in duals {
        match &mut args[d.arg] {
            Value::Tensors(list) => list[d.item] = Some(d.tangent.clone()),
            v => *v = Value::Tensor(&d.tangent),
        }
    }
    call_op(call.op, &args)
}

/// One term for each argument. Those that are `added` are left out of the terms of others; their own terms are transposed.
fn multilinear(call: &Call, outputs: &[Tensor], duals: &[Dual], added: &[usize]) -> Result<Tangents> {
    let factors: Args = call
        .args
        .iter()
        .enumerate()
        .map(|(i, v)| if added.contains(&i) { Value::None } else { v.reborrow() })
        .collect();
    let factors = Call { op: call.op, args: &factors };
    let terms = duals.iter().map(|d| match added.contains(&d.arg) {
        true => transposed(call, outputs, std::slice::from_ref(d)),
        false => Ok(differentiable(call, on_tangents(&factors, std::slice::from_ref(d), false)?)),
    });
    terms.reduce(|a, b| summed(a?, b?)).unwrap_or_else(|| Ok(Vec::new()))
}

/// What gradient formulas read of a call that has just run.
struct Ran {
    metas: Vec<(usize, TensorMeta)>,
    outputs: Vec<Option<Tensor>>,
    output_metas: Vec<TensorMeta>,
}

impl Ran {
    fn new(call: &Call, outputs: &[Tensor]) -> Ran {
        let of_arg = |(i, v): (usize, &Value)| v.tensors().map(|t| (i, TensorMeta::of(t))).collect::<Vec<_>>();
        Ran {
            metas: call.args.iter().enumerate().flat_map(of_arg).collect(),
            outputs: outputs.iter().cloned().map(Some).collect(),
            output_metas: outputs.iter().map(TensorMeta::of).collect(),
        }
    }
    fn back<'a>(&'a self, call: &Call<'a>, grads: &'a [Option<Tensor>]) -> VjpCtx<'a> {
        VjpCtx {
            call: *call,
            grads,
            metas: &self.metas,
            outputs: &self.outputs,
            output_metas: &self.output_metas,
            wanted: 0,
        }
    }
}

/// A real elementwise op: the gradient formula of each argument, on its tangent.
fn diagonal(call: &Call, list: &[Grad], y: &Tensor, duals: &[Dual]) -> Result<Tangents> {
    let ran = Ran::new(call, std::slice::from_ref(y));
    let mut sum = None;
    for d in duals {
        let Some(grad) = list.iter().find(|g| g.arg == d.arg) else { continue };
        let g = [Some(spread(cast(d.tangent.clone(), y)?, y)?)];
        let term = (grad.formula)(&VjpCtx { wanted: 1 << d.arg, ..ran.back(call, &g) }).ok()?;
        // A formula that sums over a broadcast operand itself is the transpose, not the diagonal.
        let term = match term.shape() == y.shape() {
            true => Some(term),
            false => transposed(call, std::slice::from_ref(y), std::slice::from_ref(d))?.swap_remove(0),
        };
        let Some(term) = term else { continue };
        sum = Some(match sum {
            Some(sum) => (engine_ops().add)(&sum, &term)?,
            None => term,
        });
    }
    Ok(vec![sum])
}

/// Stops inference mode, in which nothing could be differentiated, and hooks of saved tensors until it is dropped.
struct Private(bool, bool);

impl Private {
    fn new(recorded: bool) -> Private {
        let inference = mode::inference_enabled();
        mode::set_inference_enabled(false);
        Private(inference, thread_state(|thread| thread.hooked.replace(thread.hooked.get() && recorded)))
    }
}
impl Drop for Private {
    fn drop(&mut self) {
        mode::set_inference_enabled(self.0);
        thread_state(|thread| thread.hooked.set(self.1));
    }
}

/// A tensor that may be saved although it was made in inference mode.
fn ordinary(t: &Tensor) -> Tensor {
    if !t.flag(INFERENCE) {
        return t.clone();
    }
    let ordinary = Tensor::from_meta(t.meta().clone());
    t.tangents().into_iter().for_each(|cell| ordinary.share_tangents(cell));
    ordinary
}

/// Any op: the gradients by the gradients of the results, differentiated by those.
fn transposed(call: &Call, outputs: &[Tensor], duals: &[Dual]) -> Result<Tangents> {
    let tracked = |t: &Tensor| t.requires_grad();
    let recorded = grad_enabled()
        && !mode::inference_enabled()
        && (call.all_tensors().any(tracked) || duals.iter().any(|d| tracked(&d.tangent)));
    let _private = Private::new(recorded);
    let _recording = GradGuard::new(true);
    let outputs: Vec<Tensor> = outputs.iter().map(ordinary).collect();
    let ordinary_args = call.args.iter().map(|v| match v {
        Value::Tensors(list) => Value::Tensors(list.iter().map(|t| t.as_ref().map(ordinary)).collect()),
        v => v.as_tensor().map_or_else(|| v.reborrow(), |t| Value::Owned(ordinary(t))),
    });
    let args: Args = ordinary_args.collect();
    let call = Call { op: call.op, args: &args };
    let seed = |(i, y): (usize, &Tensor)| {
        let zeros = zeros(&call, i, y)?;
        zeros.iter().for_each(|u| u.set_flag(LEAF_GRAD, true));
        Ok(zeros)
    };
    let seeds: Tangents = outputs.iter().enumerate().map(seed).collect::<Result<_>>()?;
    let wanted = duals.iter().fold(0u64, |all, d| all | if d.edge < 64 { 1 << d.edge } else { u64::MAX });
    let ran = Ran::new(&call, &outputs);
    let mut grads = node::gradients(&mut ran.back(&call, &seeds), wanted)?;
    let mut roots: Vec<(Edge, Tensor)> = Vec::new();
    for d in duals {
        let Some(w) = grads.get_mut(d.edge).and_then(Option::take) else { continue };
        let p = d.primal;
        let w = match_shape_dtype(w, (p.shape(), p.dtype(), p.device()), None, d.arg)?;
        roots.extend(history::grad_edge(&w)?.map(|edge| (edge, d.tangent.clone())));
    }
    let starts = seeds.iter().flatten().map(|u| Ok(history::grad_edge(u)?.into_iter())).collect::<Result<Vec<_>>>()?;
    let starts: Vec<Edge> = starts.into_iter().flatten().collect();
    let request =
        Request { roots, keep_graph: false, create_graph: recorded, inputs: Some(&starts), accumulate: false };
    let mut found = autograd::run(request)?.into_iter();
    let tangent = |(i, seed): (usize, &Option<Tensor>)| match seed {
        Some(_) => found.next().flatten().map_or_else(|| zeros(&call, i, &outputs[i]), |t| Ok(Some(t))),
        None => Ok(None),
    };
    seeds.iter().enumerate().map(tangent).collect()
}

fn cast(t: Tensor, y: &Tensor) -> Result<Tensor> {
    let t = if t.dtype().is_complex() && !y.dtype().is_complex() { (engine_ops().real)(&t)? } else { t };
    if t.dtype() == y.dtype() { Ok(t) } else { (engine_ops().cast)(&t, y.dtype()) }
}

fn spread(t: Tensor, y: &Tensor) -> Result<Tensor> {
    if t.shape() == y.shape() { Ok(t) } else { (engine_ops().expand)(&t, y.shape()) }
}

/// A tangent in the dtype and shape of its primal `y`, in memory of its own: formulas may return `g` itself or a view of it.
pub(super) fn fitted(t: Tensor, y: &Tensor, duals: &[Dual]) -> Result<Tensor> {
    let fitting = spread(cast(t, y)?, y)?;
    let spread_out = |l: &Layout| l.has_internal_overlap();
    let shared =
        duals.iter().any(|d| d.tangent.storage().same(fitting.storage()) || d.primal.storage().same(fitting.storage()));
    if shared && !spread_out(fitting.layout()) { (engine_ops().clone)(&fitting) } else { Ok(fitting) }
}
