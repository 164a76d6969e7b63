//! Elementwise calls: promotion, broadcasting, and execution on the CPU (chunks) or the GPU (one shader).

use super::{mixed_devices, no_gpu_dtype, no_shader};
use crate::cpu::map::{self, Input, Output};
use crate::device::Device;
use crate::dtype::{Category, DType, Element, Operands, Scalar, bf16, default_dtype, f16};
use crate::error::{Error, Result, Show};
use crate::gpu;
use crate::layout::{Dims, Layout, broadcast, result_strides, same, same_dims};
use crate::op::{Body, Call, Op, Promote, Rule, Spec, Specs, Value};
use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};

/// The destination of a result: a new tensor, or an existing one.
pub(super) struct Target<'a> {
    pub out: &'a Tensor,
}

/// The common properties of a call's operands, found in one pass.
struct Common<'a> {
    dtype: DType,
    device: Device,
    /// The shape of the first tensor, and the broadcast one if shapes differ.
    first: Option<&'a Dims>,
    joined: Option<Dims>,
    /// Every operand is row-major, so the result is too.
    row_major: bool,
    /// A number among the operands is complex.
    complex_number: bool,
}

impl Common<'_> {
    fn shape(&self) -> &[usize] {
        self.joined.as_ref().or(self.first).map_or(&[], |d| d.as_slice())
    }
    fn into_shape(self) -> Dims {
        self.joined.or_else(|| self.first.map(same_dims)).unwrap_or_default()
    }
}

fn common<'a>(call: &'a Call, rule: &Rule, target: Option<&Tensor>) -> Result<Common<'a>> {
    let (mut dtypes, mut device) = (Operands::default(), target.map(|t| t.device()));
    let (mut first, mut joined): (Option<&Dims>, Option<Dims>) = (None, None);
    let (mut row_major, mut complex_number) = (true, false);
    for &i in rule.operands {
        let t = match &call.args[i] {
            Value::Scalar(s) => {
                dtypes.scalar(*s);
                complex_number |= matches!(s, Scalar::Complex(..));
                continue;
            }
            v => v.as_tensor().ok_or_else(|| no_operand(call, i))?,
        };
        let m = t.meta();
        let (shape, on) = (&m.layout.shape, m.storage.device());
        // Bools decide only among themselves, so a mask may stand beside a dtype that promotes with none (`where`).
        if m.dtype != DType::Bool || !matches!(call.op.promote, Promote::By(_)) {
            dtypes.tensor(m.dtype, shape.len())?;
        }
        row_major &= shape.len() < 2 || m.layout.is_contiguous();
        // A 0-d CPU tensor may be combined with any device.
        if on != Device::Cpu || !shape.is_empty() {
            if device.is_some_and(|d| d != on) {
                return Err(mixed_devices(device.unwrap_or_default(), on));
            }
            device = Some(on);
        }
        match first {
            None => first = Some(shape),
            Some(f) if joined.is_none() && same(f, shape) => {}
            Some(f) => joined = Some(broadcast(joined.as_ref().unwrap_or(f), shape)?),
        }
    }
    let dtype = dtypes.result().or(first.map(|_| DType::Bool));
    let dtype = dtype.ok_or_else(|| Error::internal("an elementwise op without operands"))?;
    // Tensors of no dimension on the CPU decide where there are no others, and numbers leave it to the default.
    let device = device.unwrap_or_else(|| if first.is_some() { Device::Cpu } else { Device::default() });
    Ok(Common { dtype, device, first, joined, row_major, complex_number })
}

#[cold]
fn no_operand(call: &Call, i: usize) -> Error {
    let name = call.op.sig.params()[i].name(&call.op.sig);
    Error::type_(format!("argument '{name}' must be Tensor or Number, not None"))
}

/// The compute dtype and the result dtype of an op whose operands promote to `common`.
pub fn promoted(call: &Call, common: DType) -> Result<(DType, DType)> {
    Ok(match call.op.promote {
        Promote::Arith | Promote::First => (common, common),
        Promote::Float if common.category() < Category::Float => (default_dtype(), default_dtype()),
        Promote::Float => (common, common),
        Promote::Test => (common, DType::Bool),
        Promote::RealOfComplex => (common, common.to_real()),
        Promote::By(f) => f(call, common)?,
        Promote::Checked(f, check) => {
            let found = f(call, common)?;
            check(call, common)?;
            found
        }
    })
}

pub(super) fn infer(call: &Call, rule: &Rule) -> Result<Specs> {
    let c = common(call, rule, None)?;
    let (_, dtype) = match call.op.promote {
        Promote::Checked(f, _) => f(call, c.dtype)?,
        _ => promoted(call, c.dtype)?,
    };
    let device = c.device;
    Ok(smallvec![Spec { layout: result_layout(call, rule, c), dtype, device }])
}

/// What an elementwise call will do, found out ahead of it.
pub struct Prepared {
    pub rule: &'static Rule,
    pub compute: DType,
    /// The result, or in place the target.
    pub result: Spec,
}

/// Finds out what a call on tensors like these does; `target` is what it writes to in place. None where that depends on
/// values, or where the call fails.
pub fn prepare(op: &'static Op, args: &[Value], target: Option<&Tensor>) -> Option<Prepared> {
    let call = Call { op, args };
    let Body::Elementwise(e) = &op.body else { return None };
    if matches!(op.promote, Promote::Checked(..)) {
        return None;
    }
    super::check_facts(&call).ok()?;
    let rule = e.rule(&call).ok()?;
    let c = common(&call, rule, target).ok()?;
    let (compute, dtype) = promoted(&call, c.dtype).ok()?;
    if c.complex_number && !compute.is_complex() {
        check_numbers(&call, rule, compute).ok()?;
    }
    if !rule.loops.supports(compute) {
        return None;
    }
    let device = c.device;
    let result = match target {
        Some(out) => {
            check_target(&Target { out }, c.shape(), dtype).ok()?;
            Spec { layout: out.layout().clone(), dtype: out.dtype(), device }
        }
        None => Spec { layout: result_layout(&call, rule, c), dtype, device },
    };
    Some(Prepared { rule, compute, result })
}

/// The layout of a result of operands that are not all row-major: theirs if they agree, else in their stride order.
#[cold]
fn followed(call: &Call, rule: &Rule, shape: Dims) -> Layout {
    let operands = || rule.operands.iter().filter_map(|&i| call.args[i].as_tensor()).map(|t| t.layout());
    let one =
        operands().next().filter(|l| l.is_dense() && operands().all(|o| o.shape == shape && o.strides == l.strides));
    let strides = one.map(|l| same_dims(&l.strides)).unwrap_or_else(|| {
        let spread: SmallVec<[Dims; 4]> = operands().map(|l| l.broadcast_strides(&shape)).collect();
        result_strides(&shape, &spread.iter().map(|s| s.as_slice()).collect::<SmallVec<[&[usize]; 4]>>())
    });
    Layout { shape, strides, offset: 0 }
}

/// The layout of a result in new memory.
fn result_layout(call: &Call, rule: &Rule, c: Common) -> Layout {
    if c.row_major || call.op.row_major { Layout::of(c.into_shape()) } else { followed(call, rule, c.into_shape()) }
}

pub(super) fn run(call: &Call, rule: &'static Rule, target: Option<Target>) -> Result<Tensor> {
    let c = common(call, rule, target.as_ref().map(|t| t.out))?;
    let (compute, result) = promoted(call, c.dtype)?;
    if let Some(t) = &target {
        check_target(t, c.shape(), result)?;
    }
    if c.complex_number && !compute.is_complex() {
        check_numbers(call, rule, compute)?;
    }
    check_support(call, rule, compute, c.device)?;
    let device = c.device;
    let out = match &target {
        None if c.row_major || call.op.row_major => Tensor::of_shape(c.into_shape(), result, device)?,
        None => Tensor::of_layout(result_layout(call, rule, c), result, device)?,
        Some(t) => t.out.clone(),
    };
    if out.numel() == 0 {
        return Ok(out);
    }
    let job = Job { call, rule, compute, out: &out, held: held(call, rule, &out, target.is_some())? };
    match device {
        Device::Cpu => job.on_cpu()?,
        Device::Gpu(_) => job.on_gpu()?,
        Device::Meta => {}
    }
    Ok(out)
}

fn check_support(call: &Call, rule: &Rule, compute: DType, device: Device) -> Result<()> {
    if device.is_gpu() {
        if rule.wgsl.is_empty() {
            return Err(no_shader(device));
        }
        if !gpu::supports(device, compute) {
            return Err(no_gpu_dtype(compute));
        }
    }
    if !rule.loops.supports(compute) {
        return Err(Error::not_implemented(format!(
            "\"{}_{}\" not implemented for '{}'",
            call.op.base().trim_start_matches('_'),
            device.kind(),
            compute.scalar_type_name()
        )));
    }
    Ok(())
}

/// Numbers that do not take part in promotion (`value`, `lambd`) must still fit the dtype.
#[cold]
fn check_numbers(call: &Call, rule: &Rule, compute: DType) -> Result<()> {
    rule.operands.iter().try_for_each(|&i| match &call.args[i] {
        Value::Scalar(s @ Scalar::Complex(..)) => s.check_fits(compute),
        _ => Ok(()),
    })
}

fn check_target(t: &Target, shape: &[usize], result: DType) -> Result<()> {
    if t.out.shape() != shape {
        return Err(Error::runtime(format!(
            "output with shape {} doesn't match the broadcast shape {}",
            Show(t.out.shape()),
            Show(shape)
        )));
    }
    check_castable(result, t.out.dtype())
}

/// A result written into an existing tensor may not be cast to a lower category.
pub(super) fn check_castable(result: DType, into: DType) -> Result<()> {
    let lossy = result.category() > into.category();
    if lossy {
        return Err(Error::runtime(format!(
            "result type {} can't be cast to the desired output type {}",
            result.scalar_type_name(),
            into.scalar_type_name()
        )));
    }
    Ok(())
}

/// An operand that partially overlaps the target is copied first; what PyTorch rejects has already been rejected.
fn resolve_overlap(t: &Tensor, out: &Tensor) -> Result<Option<Tensor>> {
    let (a, b) = (t.meta(), out.meta());
    if !a.storage.same(&b.storage) || (a.layout == b.layout && a.dtype == b.dtype) {
        return Ok(None);
    }
    let strides = a.layout.broadcast_strides(out.shape());
    if a.dtype == b.dtype && a.layout.offset == b.layout.offset && strides == b.layout.strides {
        return Ok(None);
    }
    let (sa, sb) = (a.dtype.size(), b.dtype.size());
    let apart = a.layout.end() * sa <= b.layout.offset * sb || b.layout.end() * sb <= a.layout.offset * sa;
    if apart {
        return Ok(None);
    }
    let copy = Tensor::empty(t.shape(), t.dtype(), t.device())?;
    copy.copy_raw(t)?;
    Ok(Some(copy))
}

/// A tensor operand that needs a copy or other strides: the tensor to read, and its strides over the output's shape.
struct Held {
    operand: usize,
    copy: Option<Tensor>,
    strides: Option<Dims>,
}

fn held(call: &Call, rule: &Rule, out: &Tensor, shared: bool) -> Result<SmallVec<[Held; 2]>> {
    let mut held = SmallVec::new();
    for &operand in rule.operands {
        let Some(t) = call.args[operand].as_tensor() else { continue };
        let spread = !same(t.shape(), out.shape());
        if spread || (shared && !t.same(out)) {
            let copy = if shared { resolve_overlap(t, out)? } else { None };
            let strides = spread.then(|| copy.as_ref().unwrap_or(t).layout().broadcast_strides(out.shape()));
            held.push(Held { operand, copy, strides });
        }
    }
    Ok(held)
}

/// What an op that computes in `compute` reads of a number.
pub fn number_of(op: &Op, s: Scalar, compute: DType) -> Scalar {
    match compute {
        DType::F16 if op.rounds_numbers => f16::from_scalar(s).to_scalar(),
        DType::BF16 if op.rounds_numbers => bf16::from_scalar(s).to_scalar(),
        _ => s,
    }
}

/// A call with its output allocated.
struct Job<'a> {
    call: &'a Call<'a>,
    rule: &'static Rule,
    compute: DType,
    out: &'a Tensor,
    held: SmallVec<[Held; 2]>,
}

impl Job<'_> {
    /// The source of a tensor operand: the tensor or its copy, and strides over the output's shape.
    fn source<'a>(&'a self, operand: usize, t: &'a Tensor) -> (&'a Tensor, &'a [usize]) {
        let held = self.held.iter().find(|h| h.operand == operand);
        let t = held.and_then(|h| h.copy.as_ref()).unwrap_or(t);
        (t, held.and_then(|h| h.strides.as_deref()).unwrap_or(t.strides()))
    }

    fn on_cpu(&self) -> Result<()> {
        let mut inputs: SmallVec<[Input; 4]> = SmallVec::new();
        for &i in self.rule.operands {
            inputs.push(match &self.call.args[i] {
                Value::Scalar(s) => Input::Scalar(number_of(self.call.op, *s, self.compute)),
                v => {
                    let (t, strides) = self.source(i, v.as_tensor().ok_or_else(|| no_operand(self.call, i))?);
                    let v = t.cpu_view()?;
                    Input::Strided { ptr: v.ptr, dtype: v.dtype, strides }
                }
            });
        }
        let v = self.out.cpu_view()?;
        let output = Output { ptr: v.ptr, dtype: v.dtype, strides: v.strides };
        // SAFETY: all are views; strides are broadcast to the output's shape; operands that overlap the output other than
        // exactly were copied or refused.
        unsafe { map::map(v.shape, &inputs, &output, self.compute, &self.rule.loops) };
        Ok(())
    }

    fn on_gpu(&self) -> Result<()> {
        let shape = self.out.shape();
        let mut inputs: SmallVec<[gpu::Input; 4]> = SmallVec::new();
        for &i in self.rule.operands {
            inputs.push(match &self.call.args[i] {
                Value::Scalar(s) => gpu::Input::Scalar(number_of(self.call.op, *s, self.compute)),
                v => {
                    let (t, strides) = self.source(i, v.as_tensor().ok_or_else(|| no_operand(self.call, i))?);
                    match t.device() {
                        Device::Cpu => gpu::Input::Scalar(t.element(t.layout().offset)?),
                        _ => gpu::Input::View(gpu::View { shape, strides, ..t.gpu_view()? }),
                    }
                }
            });
        }
        gpu::map(shape, &inputs, &self.out.gpu_view()?, self.compute, self.rule.wgsl)
    }
}
