//! The only path to a kernel: check -> promote -> infer shape -> allocate -> run -> bump version -> trace -> record.
//!
//! Always in that order. Autograd and tracing are steps here, not wrappers that repeat every op. This is also the hot
//! path: an elementwise call on small tensors performs just these steps, once each.

pub(crate) mod fast_path;
pub mod autocast;
mod capture;
mod elementwise;
mod inplace;
mod jvp;
mod jvp_rules;
mod out;
mod overlap;
mod written;

pub use self::capture::{Capture, Range};
pub use self::elementwise::{Prepared, number_of, prepare, promoted};
pub use self::inplace::call_inplace;
pub use self::out::{call_out, resize};

use crate::autograd::{self, history, node};
use crate::cpu::epilogue::Epilogue;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::op::{
    Args, Arguments, Body, Call, Forms, IntoArgs, Kernel, Op, Opaque, Outputs, Spec, Specs, Term, Value, Vjp,
    push_default,
    tracer::{self, Form, Traced},
};
use crate::rt::thread_state::{ThreadState, thread_state};
use crate::tensor::slot::Creation;
use crate::tensor::{Edge, INFERENCE, Meta, Tensor};
use smallvec::smallvec;

/// Calls an op on complete arguments (defaults filled in).
pub fn call(op: &'static Op, args: &[Value]) -> Result<Outputs> {
    let mut outputs = Outputs::new();
    call_into(op, args, &mut outputs).map(|()| outputs)
}

/// `call` with its results constructed in place.
#[inline]
pub fn call_into(op: &'static Op, args: &[Value], outputs: &mut Outputs) -> Result<()> {
    if autocast::active() {
        return autocast::call_into(op, args, outputs);
    }
    call_as_given(op, args, outputs)
}

/// A call with the arguments as they are.
#[inline(always)]
fn call_as_given(op: &'static Op, args: &[Value], outputs: &mut Outputs) -> Result<()> {
    thread_state(|thread| {
        let call = Call { op, args };
        // One bit of state that is read anyway: a thread without levels of forward mode goes straight on.
        if thread.forward.get() != 0 {
            jvp::call(thread, &call, outputs)
        } else {
            call_observed(thread, &call, outputs)
        }
    })
}

#[inline(always)]
fn call_observed(thread: &ThreadState, call: &Call, outputs: &mut Outputs) -> Result<()> {
    if tracer::enabled() { call_traced(thread, call, outputs) } else { call_untraced(thread, call, outputs) }
}

#[cold]
fn call_traced(thread: &ThreadState, call: &Call, outputs: &mut Outputs) -> Result<()> {
    let traced = Traced { op: call.op, args: call.args, form: Form::Functional, outs: &[] };
    let run = || {
        let mut made = Outputs::new();
        call_untraced(thread, call, &mut made).map(|()| made)
    };
    *outputs = tracer::call(&traced, run, |made| made)?;
    Ok(())
}

fn call_untraced(thread: &ThreadState, call: &Call, outputs: &mut Outputs) -> Result<()> {
    forward(thread, call, outputs).map_err(|e| e.in_call(call.op.title()))?;
    if thread.inference.get() {
        // Whether an output is new: a view is not, and a composite may return an argument.
        let new = |t: &&Tensor| t.owners() == 1 && t.storage().owners() == 1;
        outputs.iter().filter(new).for_each(|t| t.set_flag(INFERENCE, true));
    } else if thread.grad.get() && wants_grad(call) {
        record(thread, call, outputs).map_err(|e| e.in_call(call.op.title()))?;
    }
    Ok(())
}

/// Turns recording off until it is dropped: what a body does is no part of the graph.
struct Unrecorded<'a>(&'a ThreadState, bool);

impl<'a> Unrecorded<'a> {
    #[inline]
    fn new(thread: &'a ThreadState) -> Unrecorded<'a> {
        Unrecorded(thread, thread.grad.replace(false))
    }
}
impl Drop for Unrecorded<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.grad.set(self.1);
    }
}

#[inline]
fn forward(thread: &ThreadState, call: &Call, outputs: &mut Outputs) -> Result<()> {
    check_facts(call)?;
    written::check(call)?;
    run_body(thread, call, outputs)?;
    written::note(call);
    Ok(())
}

#[inline]
fn run_body(thread: &ThreadState, call: &Call, outputs: &mut Outputs) -> Result<()> {
    match &call.op.body {
        Body::Elementwise(e) => {
            let rule = e.rule(call)?;
            outputs.push(match fast_path::run(call, rule)? {
                Some(out) => out,
                None => elementwise::run(call, rule, None)?,
            });
        }
        Body::Kernel(k) => {
            let _unrecorded = Unrecorded::new(thread);
            run_kernel(call, k, outputs)?;
        }
        Body::View(f) => outputs.push(view(call, f(call)?, call.tensor(0)?.dtype(), Creation::Default)?),
        Body::ViewAs(f) => {
            let (layout, dtype) = f(call)?;
            outputs.push(view(call, layout, dtype, Creation::Default)?);
        }
        Body::Views(f) => {
            for layout in f(call)? {
                outputs.push(view(call, layout, call.tensor(0)?.dtype(), Creation::MultiOutput)?);
            }
        }
        Body::Opaque(_) | Body::Decompose(_) if call.op.on_host && call.device_of_args().is_gpu() => {
            return Err(no_shader(call.device_of_args()));
        }
        Body::Opaque(o) => {
            let _unrecorded = (!matches!(call.op.vjp, Vjp::Composite)).then(|| Unrecorded::new(thread));
            match without_memory(call, o)? {
                Some(specs) => allocate(specs, outputs)?,
                None => *outputs = (o.run)(call)?,
            }
        }
        Body::Decompose(d) => {
            let _unrecorded = (!matches!(call.op.vjp, Vjp::Composite)).then(|| Unrecorded::new(thread));
            match d.fused {
                Some(f) if (d.when)(call) => call_into(f, call.args, outputs)?,
                _ => *outputs = (d.run)(call)?,
            }
        }
        Body::Unset => return Err(Error::internal("the op has no body")),
    }
    Ok(())
}

/// Checks what the signature states of the arguments and their types do not: that dimensions are in range, and enumerated
/// strings those that it lists.
#[inline]
pub fn check_facts(call: &Call) -> Result<()> {
    if call.op.sig.has_fixed {
        check_fixed(call)?;
    }
    if call.op.sig.has_choices {
        call.check_choices()?;
    }
    if call.op.sig.has_dims { call.check_dims() } else { Ok(()) }
}

/// Refuses tensors that require grad where the op has no derivative: without an error they would silently get none.
#[inline(never)]
fn check_fixed(call: &Call) -> Result<()> {
    let trained = |v: &Value| autograd::grad_enabled() && v.any_tensor(|t| t.requires_grad());
    match call.op.sig.params().iter().zip(call.args).find(|(p, v)| p.fixed && trained(v)) {
        Some((p, _)) => Err(Error::runtime(format!(
            "The function '{}' is not differentiable with respect to argument '{}'. This input cannot have requires_grad True. \
             Detach it.",
            call.op.title(),
            p.name(&call.op.sig)
        ))),
        None => Ok(()),
    }
}

/// The steps of an op that also has a fused one: the oracle of the fused kernel.
pub fn call_composite(op: &'static Op, args: &[Value]) -> Result<Outputs> {
    match &op.body {
        Body::Decompose(d) => {
            let call = Call { op, args };
            check_facts(&call).and_then(|()| (d.run)(&call)).map_err(|e| e.in_call(op.title()))
        }
        _ => call(op, args),
    }
}

/// Copies a result into a tensor that is there, unrecorded. Observers see the op that does this.
fn write_raw(target: &Tensor, result: &Tensor) -> Result<()> {
    if !tracer::enabled() {
        return target.copy_raw(result);
    }
    let op = autograd::engine_ops().copy_op;
    let mut args: Args = smallvec![Value::Tensor(target), Value::Tensor(result)];
    complete(op, &mut args)?;
    let traced = Traced { op, args: &args, form: Form::InPlace, outs: &[] };
    tracer::call(&traced, || target.copy_raw(result).map(|()| target.clone()), std::slice::from_ref).map(drop)
}

/// What an opaque op infers on the meta device, where there are no values to compute with: checks of values pass.
fn without_memory(call: &Call, o: &Opaque) -> Result<Option<Specs>> {
    match o.infer {
        Some(infer) if call.device_of_args() == Device::Meta => {
            Ok(Some(infer(call)?).filter(|specs| specs.iter().all(|s| s.device == Device::Meta)))
        }
        _ => Ok(None),
    }
}

fn allocate(specs: Specs, outputs: &mut Outputs) -> Result<()> {
    for s in specs {
        outputs.push(Tensor::of_layout(s.layout, s.dtype, s.device)?);
    }
    Ok(())
}

fn run_kernel(call: &Call, k: &Kernel, outputs: &mut Outputs) -> Result<()> {
    if !k.any_device {
        check_devices(call)?;
    }
    allocate((k.infer)(call)?, outputs)?;
    if k.updates_self {
        outputs[0].copy_raw(call.tensor(0)?)?;
    }
    launch(call, k, outputs)
}

/// Runs a kernel whose results have been allocated as it would infer them.
pub fn run_kernel_as(call: &Call, outputs: &[Tensor]) -> Result<()> {
    let run = || match &call.op.body {
        Body::Kernel(k) => {
            if k.updates_self {
                outputs.first().map_or(Ok(()), |out| out.copy_raw(call.tensor(0)?))?;
            }
            launch(call, k, outputs)
        }
        _ => Err(Error::internal("run_kernel_as: the op has no kernel")),
    };
    run().map_err(|e| e.in_call(call.op.title()))
}

/// `run_kernel_as` on the CPU, of a kernel that takes an epilogue, which is complete afterwards.
pub fn run_kernel_then(call: &Call, outputs: &[Tensor], then: Epilogue) -> Result<()> {
    let run = match &call.op.body {
        Body::Kernel(Kernel { then: Some(run), .. }) => run,
        _ => return Err(Error::internal("run_kernel_then: the op takes no epilogue")),
    };
    run(call, outputs, &then).map_err(|e| e.in_call(call.op.title()))?;
    then.complete();
    Ok(())
}

/// Runs a kernel on the device of its outputs.
fn launch(call: &Call, k: &Kernel, outputs: &[Tensor]) -> Result<()> {
    let device = outputs.first().map_or_else(|| call.device_of_args(), |t| t.device());
    match (device, k.gpu) {
        (Device::Cpu, _) => (k.cpu)(call, outputs),
        (Device::Gpu(_), Some(gpu)) => {
            if k.any_dtype {
                return gpu(call, outputs);
            }
            if let Some(t) = outputs.iter().chain(call.all_tensors()).find(|t| !crate::gpu::supports(device, t.dtype()))
            {
                return Err(no_gpu_dtype(t.dtype()));
            }
            gpu(call, outputs)
        }
        (Device::Gpu(_), None) => Err(no_shader(device)),
        (Device::Meta, _) => Ok(()),
    }
}

#[cold]
fn no_shader(device: Device) -> Error {
    Error::not_implemented(format!(
        "no shader for this op on device '{device}' yet. Move the tensors to the cpu with .cpu()."
    ))
}
#[cold]
fn no_gpu_dtype(d: DType) -> Error {
    Error::not_implemented(format!(
        "this gpu does not compute in {d}. Convert the tensor, or move it to the cpu with .cpu()."
    ))
}

/// Checks that all tensors are on one device. Elementwise ops do their own check, since a 0-d CPU tensor counts as a
/// number there.
fn check_devices(call: &Call) -> Result<()> {
    let mut tensors = call.all_tensors();
    let Some(first) = tensors.next() else { return Ok(()) };
    match tensors.find(|t| t.device() != first.device()) {
        None => Ok(()),
        Some(t) => Err(mixed_devices(first.device(), t.device())),
    }
}

#[cold]
pub(crate) fn mixed_devices(a: Device, b: Device) -> Error {
    Error::runtime(format!(
        "Expected all tensors to be on the same device, but found at least two devices, {a} and {b}! Move one of them with .to(device)."
    ))
}

/// A view of the first argument, with the given `creation` if gradients are recorded.
#[inline]
fn view(call: &Call, layout: Layout, dtype: DType, creation: Creation) -> Result<Tensor> {
    let whole = call.tensor(0)?;
    if matches!(call.op.vjp, Vjp::None(_)) {
        // Not differentiable, so no history is needed: another tensor on the same memory.
        let part = Tensor::from_meta(Meta { storage: whole.storage().clone(), layout, dtype });
        part.set_flag(INFERENCE, whole.flag(INFERENCE));
        return Ok(part);
    }
    if whole.flag(INFERENCE) {
        // Tensors created in inference mode, and those sharing their memory, are not tracked.
        let part = Tensor::from_meta(Meta { storage: whole.storage().clone(), layout, dtype });
        part.set_flag(INFERENCE, true);
        return Ok(part);
    }
    let creation = match autograd::grad_enabled() {
        _ if autograd::mode::inference_enabled() => Creation::Inference,
        true => creation,
        false => Creation::NoGrad,
    };
    let replay = history::replay(call, whole, &layout, dtype);
    Ok(whole.make_view(Meta { storage: whole.storage().clone(), layout, dtype }, creation, replay))
}

/// Whether the call is recorded: grad mode is on and an argument with a gradient formula requires grad.
fn needs_record(call: &Call) -> bool {
    autograd::grad_enabled() && wants_grad(call)
}

fn wants_grad(call: &Call) -> bool {
    let wants = |i: usize| call.args[i].any_tensor(|t| t.requires_grad());
    match &call.op.vjp {
        Vjp::Missing => call.all_tensors().any(|t| t.requires_grad()),
        vjp => vjp.any_arg(wants),
    }
}

fn record(thread: &ThreadState, call: &Call, outputs: &mut [Tensor]) -> Result<()> {
    // Views of inference tensors have no history either.
    if !outputs.iter().any(|t| t.dtype().is_differentiable() && !t.flag(INFERENCE)) {
        return lost_gradient(call, outputs);
    }
    let node = node::record(thread, call, outputs)?;
    let packed = autograd::saved::hooked(thread).then(|| node.clone());
    match outputs {
        // SAFETY: it was created here, and no other handle to it exists.
        [t] if call.op.body.makes_outputs() && t.owners() == 1 => unsafe { t.set_first_grad_fn(Edge::Node(node, 0)) },
        _ => {
            for (i, t) in outputs.iter().enumerate() {
                if t.dtype().is_differentiable() && !call.op.constant.contains(&i) {
                    history::set_history(t, &node, i);
                }
            }
        }
    }
    packed.map_or(Ok(()), |node| node.pack_outputs(outputs))
}

/// A differentiable function that is asked for an integer result would end the graph without a word. A cast, the hidden
/// op `_to_copy`, may.
#[cold]
fn lost_gradient(call: &Call, outputs: &[Tensor]) -> Result<()> {
    let asked = call.op.sig.index_of("dtype").and_then(|i| match call.args[i] {
        Value::DType(d) => Some(d),
        _ => None,
    });
    match asked {
        Some(d)
            if !d.is_differentiable()
                && !call.op.forms.has(Forms::HIDDEN)
                && !outputs.iter().any(|t| t.flag(INFERENCE)) =>
        {
            let name = d.scalar_type_name();
            Err(Error::runtime(format!("Autograd not support dtype: {name}. Detach the tensor first.")))
        }
        _ => Ok(()),
    }
}

/// Shape, strides, dtype and device of the results of a primitive, without running it.
///
/// Errors: those of the call that are found before it runs; NotImplementedError where they depend on values that the host
/// reads, and for an op that decomposes: infer its steps instead.
pub fn infer(op: &'static Op, args: &[Value]) -> Result<Specs> {
    let call = Call { op, args };
    let view = |(layout, dtype)| Ok(Spec { layout, dtype, device: call.tensor(0)?.device() });
    let inferred = || match &op.body {
        _ if op.reads_host() => Err(Error::not_implemented("what its results look like depends on values")),
        Body::Kernel(k) => (k.infer)(&call),
        Body::Elementwise(e) => elementwise::infer(&call, e.rule(&call)?),
        Body::View(f) => Ok(smallvec![view((f(&call)?, call.tensor(0)?.dtype()))?]),
        Body::ViewAs(f) => Ok(smallvec![view(f(&call)?)?]),
        Body::Views(f) => {
            let dtype = call.tensor(0)?.dtype();
            f(&call)?.into_iter().map(|layout| view((layout, dtype))).collect()
        }
        Body::Opaque(Opaque { infer: Some(f), .. }) => f(&call),
        Body::Opaque(Opaque { infer: None, .. }) | Body::Decompose(_) => {
            Err(Error::not_implemented("the op decomposes; infer its steps"))
        }
        Body::Unset => Err(Error::internal("the op has no body")),
    };
    check_facts(&call).and_then(|()| inferred()).map_err(|e| e.in_call(op.title()))
}

/// Fills omitted arguments with their defaults.
pub fn complete(op: &'static Op, args: &mut Args) -> Result<()> {
    let params = op.sig.params();
    if args.len() > params.len() {
        return Err(
            Error::type_(format!("takes {} arguments but {} were given", params.len(), args.len())).in_call(op.title())
        );
    }
    if op.sig.has_choices {
        op.choose(args);
    }
    for p in &params[args.len()..] {
        if !push_default(args, &op.sig, p) {
            let name = p.name(&op.sig);
            return Err(Error::type_(format!("missing required argument '{name}'")).in_call(op.title()));
        }
    }
    Ok(())
}

impl Op {
    /// Calls the op; returns the result of a one-tensor op as a term. The same path as a call from Python.
    pub fn call<'a>(&'static self, args: impl IntoArgs<'a>) -> Term {
        Term(self.calls(args).and_then(|mut out| {
            out.pop().filter(|_| out.is_empty()).ok_or_else(|| Error::internal("call: expected one output"))
        }))
    }
    /// Calls the op and returns every output.
    pub fn calls<'a>(&'static self, args: impl IntoArgs<'a>) -> Result<Outputs> {
        let mut args = args.into_args()?;
        complete(self, &mut args)?;
        call(self, &args)
    }
    /// Calls the op in place on its first argument.
    pub fn call_inplace<'a>(&'static self, args: impl IntoArgs<'a>) -> Result<Tensor> {
        let mut args = args.into_args()?;
        complete(self, &mut args)?;
        call_inplace(self, &args)
    }
}
