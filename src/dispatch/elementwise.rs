//! Elementwise calls: promotion, broadcasting, and the two ways into the family's machine (CPU chunks, one shader).

use super::{mixed_devices, no_gpu_dtype, no_shader};
use crate::cpu::map::{self, Input, Output};
use crate::device::Device;
use crate::dtype::{Category, DType, Operands, Scalar, default_dtype};
use crate::error::{Error, Result, Show};
use crate::gpu;
use crate::layout::{Dims, broadcast};
use crate::op::{Call, Promote, Rule, Spec, Specs, Value};
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// Where a result goes: into a new tensor, or into one that is there.
pub(super) struct Target<'a> {
    pub out: &'a Tensor,
}

enum Operand<'a> {
    Tensor(&'a Tensor),
    Number(Scalar),
}

type OperandList<'a> = SmallVec<[Operand<'a>; 4]>;

fn operands<'a>(call: &'a Call, rule: &Rule) -> Result<OperandList<'a>> {
    rule.operands
        .iter()
        .map(|&i| match &call.args[i] {
            Value::Scalar(s) => Ok(Operand::Number(*s)),
            v => v.as_tensor().map(Operand::Tensor).ok_or_else(|| {
                Error::type_(format!(
                    "argument '{}' must be Tensor or Number, not None",
                    call.op.signature().params[i].name
                ))
            }),
        })
        .collect()
}

/// The dtype computed in and the dtype of the result.
fn dtypes(call: &Call, list: &OperandList) -> Result<(DType, DType)> {
    let common = match list.as_slice() {
        [Operand::Tensor(a)] => a.dtype(),
        [Operand::Tensor(a), Operand::Tensor(b)] if a.dtype() == b.dtype() => a.dtype(),
        list => {
            let mut ops = Operands::default();
            for o in list {
                match o {
                    Operand::Tensor(t) => ops.tensor(t.dtype(), t.ndim()),
                    Operand::Number(s) => ops.scalar(*s),
                }
            }
            ops.result().ok_or_else(|| Error::internal("an elementwise op without operands"))?
        }
    };
    promoted(call, common)
}

/// What an op computes in and returns when its operands promote to `common`.
pub fn promoted(call: &Call, common: DType) -> Result<(DType, DType)> {
    Ok(match call.op.promote {
        Promote::Arith | Promote::First => (common, common),
        Promote::Float if common.category() < Category::Float => (default_dtype(), default_dtype()),
        Promote::Float => (common, common),
        Promote::Test => (common, DType::Bool),
        Promote::RealOfComplex => (common, common.to_real()),
        Promote::By(f) => f(call, common)?,
    })
}

fn shape_of(list: &OperandList) -> Result<Dims> {
    let mut shapes = list.iter().filter_map(|o| if let Operand::Tensor(t) = o { Some(t.shape()) } else { None });
    let mut shape: Dims = shapes.next().unwrap_or(&[]).into();
    for s in shapes {
        if s != shape.as_slice() {
            shape = broadcast(&shape, s)?;
        }
    }
    Ok(shape)
}

/// The device of the operands; 0-d CPU tensors join any device.
fn device_of(list: &OperandList, target: Option<&Tensor>) -> Result<Device> {
    let mut device = target.map(|t| t.device());
    let mut joins = Device::Cpu;
    for o in list {
        if let Operand::Tensor(t) = o {
            let d = t.device();
            if d == Device::Cpu && t.ndim() == 0 {
                continue;
            }
            match device {
                None => device = Some(d),
                Some(have) if have != d => return Err(mixed_devices(have, d)),
                _ => {}
            }
            joins = d;
        }
    }
    Ok(device.unwrap_or(joins))
}

pub(super) fn infer(call: &Call, rule: &Rule) -> Result<Specs> {
    let list = operands(call, rule)?;
    let (_, result) = dtypes(call, &list)?;
    Ok(Spec::one(&shape_of(&list)?, result, device_of(&list, None)?))
}

pub(super) fn run(call: &Call, rule: &'static Rule, target: Option<Target>) -> Result<Tensor> {
    let list = operands(call, rule)?;
    let (compute, result) = dtypes(call, &list)?;
    let device = device_of(&list, target.as_ref().map(|t| t.out))?;
    check_support(call, rule, compute, device)?;
    let shape = shape_of(&list)?;
    let out = match &target {
        None => Tensor::empty(&shape, result, device)?,
        Some(t) => {
            check_target(t, &shape, result)?;
            t.out.clone()
        }
    };
    if out.numel() == 0 {
        return Ok(out);
    }
    match device {
        Device::Cpu => on_cpu(&list, rule, compute, &out, target.is_some())?,
        Device::Gpu(_) => on_gpu(&list, rule, compute, &out, target.is_some())?,
    }
    Ok(out)
}

fn check_support(call: &Call, rule: &Rule, compute: DType, device: Device) -> Result<()> {
    if device.is_gpu() {
        if rule.wgsl.is_empty() {
            return Err(no_shader(device));
        }
        if !gpu::supports(compute) {
            return Err(no_gpu_dtype(compute));
        }
    }
    if compute.is_storage_only() || !rule.loops.supports(compute) {
        return Err(Error::not_implemented(format!(
            "\"{}_{}\" not implemented for '{}'",
            call.op.parsed().base.trim_start_matches('_'),
            device.kind(),
            compute.scalar_type_name()
        )));
    }
    Ok(())
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

/// A result may not lose its category when it is written into a tensor that is there.
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

/// An operand that overlaps the target without being it is read from a copy; what PyTorch refuses has been refused.
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

fn on_cpu(list: &OperandList, rule: &Rule, compute: DType, out: &Tensor, shared: bool) -> Result<()> {
    let m = out.meta();
    let shape = &m.layout.shape;
    let mut copies: SmallVec<[Tensor; 2]> = SmallVec::new();
    let mut strides: SmallVec<[Dims; 4]> = SmallVec::new();
    let mut pointers: SmallVec<[(*const u8, DType); 4]> = SmallVec::new();
    for o in list {
        let Operand::Tensor(t) = o else {
            strides.push(Dims::new());
            pointers.push((std::ptr::null(), compute));
            continue;
        };
        let copy = if shared { resolve_overlap(t, out)? } else { None };
        let t = copy.as_ref().unwrap_or(t);
        let l = t.layout();
        strides.push(if l.shape == *shape { l.strides.clone() } else { l.broadcast_strides(shape) });
        pointers.push((t.ptr()?, t.dtype()));
        copies.extend(copy);
    }
    let inputs: SmallVec<[Input; 4]> = list
        .iter()
        .zip(pointers.iter().zip(&strides))
        .map(|(o, (&(ptr, dtype), strides))| match o {
            Operand::Number(s) => Input::Scalar(*s),
            Operand::Tensor(_) => Input::Strided { ptr, dtype, strides },
        })
        .collect();
    let output = Output { ptr: out.ptr()?, dtype: m.dtype, strides: &m.layout.strides };
    // SAFETY: every layout lies within its storage; strides are broadcast to the output's shape; operands that overlap
    // the output other than exactly were copied or refused.
    unsafe { map::map(shape, &inputs, &output, compute, &rule.loops) };
    Ok(())
}

fn on_gpu(list: &OperandList, rule: &Rule, compute: DType, out: &Tensor, shared: bool) -> Result<()> {
    let shape = out.shape();
    let mut held: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
    let mut strides: SmallVec<[Dims; 4]> = SmallVec::new();
    for o in list {
        let copy = match o {
            Operand::Tensor(t) if t.device().is_gpu() && shared => resolve_overlap(t, out)?,
            _ => None,
        };
        strides.push(match o {
            Operand::Tensor(t) => copy.as_ref().unwrap_or(t).layout().broadcast_strides(shape),
            Operand::Number(_) => Dims::new(),
        });
        held.push(copy);
    }
    let mut inputs: SmallVec<[gpu::Input; 4]> = SmallVec::new();
    for ((o, copy), strides) in list.iter().zip(&held).zip(&strides) {
        inputs.push(match o {
            Operand::Number(s) => gpu::Input::Scalar(*s),
            Operand::Tensor(t) if !t.device().is_gpu() => gpu::Input::Scalar(t.element(t.layout().offset)?),
            Operand::Tensor(t) => {
                let t = copy.as_ref().unwrap_or(t);
                gpu::Input::View(gpu::View { shape, strides, ..t.gpu_view()? })
            }
        });
    }
    gpu::map(shape, &inputs, &out.gpu_view()?, compute, rule.wgsl)
}
