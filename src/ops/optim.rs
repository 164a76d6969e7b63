//! Optimiser steps as ops: parameter and state change in one pass over memory.
//!
//! The arithmetic and its order are those of PyTorch's single-tensor optimisers; on the GPU each step is one shader.

use super::gather::cast_raw;
use crate::cpu::arith::Float;
use crate::cpu::num::Fuse;
use crate::cpu::parallel::par_for;
use crate::cpu::simd::{self, Kernel};
use crate::cpu::view::{Ptr, load, store};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::{self, Step};
use crate::layout::Layout;
use crate::op::*;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&FUSED_ADAM_, &FUSED_SGD_];

const STEP: Forms = Forms(Forms::HIDDEN | Forms::ONLY_INPLACE);
/// Elements buffered at once, and minimum elements per task.
const CHUNK: usize = 2048;

/// Parameter, gradient and state tensors of one step.
struct Operands {
    tensors: Vec<Tensor>,
}

impl Operands {
    /// Checks that all are floats of one shape. The first of `tensors` is the parameter.
    fn new(param: &Tensor, others: &[&Tensor]) -> Result<Operands> {
        if !param.dtype().is_float() || others.iter().any(|t| !t.dtype().is_float()) {
            return Err(Error::not_implemented("optimiser steps are defined for floating point tensors"));
        }
        if others.iter().any(|t| t.shape() != param.shape()) {
            return Err(Error::runtime("the gradient and the state must have the shape of the parameter"));
        }
        let all = std::iter::once(param).chain(others.iter().copied());
        // Tensors with the same strides are processed as one run of memory.
        let alike = param.layout().is_dense() && others.iter().all(|t| t.layout().lies_as(param.strides()));
        let flat = |t: &Tensor| Layout { offset: t.layout().offset, ..Layout::contiguous(&[t.numel()]) };
        Ok(Operands { tensors: all.map(|t| if alike { t.with_layout(flat(t)) } else { t.clone() }).collect() })
    }
    /// Runs `kernel` over runs of elements of all tensors, as `T`; writes back those selected by `written`.
    fn run<T: Float, const N: usize>(&self, written: [bool; N], kernel: impl Fn([&mut [T]; N]) + Sync) -> Result<()> {
        let dense = self.tensors.iter().map(|t| t.dense_copy(t.dtype())).collect::<Result<Vec<_>>>()?;
        let n = dense[0].numel();
        let mut starts = [(Ptr(std::ptr::null_mut::<u8>()), DType::F32); N];
        for (s, t) in starts.iter_mut().zip(&dense) {
            *s = (Ptr(t.ptr()?), t.dtype());
        }
        par_for(n.div_ceil(CHUNK), 8, |chunks| {
            let mut buffers = [(); N].map(|()| Vec::<T>::new());
            for chunk in chunks {
                let (from, len) = (chunk * CHUNK, CHUNK.min(n - chunk * CHUNK));
                let mut slices = [(); N].map(|()| std::ptr::null_mut::<T>());
                for i in 0..N {
                    let (start, dtype) = starts[i];
                    let at = start.at(from * dtype.size());
                    slices[i] = if dtype == T::DTYPE {
                        at.cast::<T>()
                    } else {
                        buffers[i].resize(CHUNK, T::ZERO);
                        // SAFETY: the run lies inside the tensor and the buffer holds a chunk.
                        unsafe { load(dtype, at, 1, len, buffers[i].as_mut_ptr()) };
                        buffers[i].as_mut_ptr()
                    };
                }
                // SAFETY: chunks are disjoint, and the tensors are distinct: `distinct` has checked.
                kernel(slices.map(|p| unsafe { std::slice::from_raw_parts_mut(p, len) }));
                for i in (0..N).filter(|&i| written[i] && starts[i].1 != T::DTYPE) {
                    let (start, dtype) = starts[i];
                    // SAFETY: as above.
                    unsafe { store(dtype, start.at(from * dtype.size()), 1, len, buffers[i].as_ptr()) };
                }
            }
        });
        for ((t, d), _) in self.tensors.iter().zip(&dense).zip(written).filter(|((t, d), w)| *w && !t.same(d)) {
            t.copy_raw(d)?;
        }
        Ok(())
    }
    /// The step as one shader; the second tensor is the gradient, `changed` lists the others by index.
    fn run_gpu(&self, step: Step, changed: &[(&'static str, usize)], numbers: &[(&'static str, f64)]) -> Result<()> {
        // A buffer is bound once, and aliased (expanded) elements are not written in place.
        let all = &self.tensors;
        let bound =
            |i: usize| all[i].layout().is_dense() && !all[..i].iter().any(|t| t.storage().same(all[i].storage()));
        let own = |i: usize| if bound(i) { Ok(all[i].clone()) } else { cast_raw(&all[i], all[i].dtype()) };
        let dense = (0..all.len()).map(own).collect::<Result<Vec<_>>>()?;
        let views = changed.iter().map(|&(name, i)| Ok((name, dense[i].gpu_view()?))).collect::<Result<Vec<_>>>()?;
        gpu::update(step, &views, ("g", dense[1].gpu_view()?), numbers)?;
        for &(_, i) in changed.iter().filter(|&&(_, i)| !dense[i].storage().same(self.tensors[i].storage())) {
            self.tensors[i].copy_raw(&dense[i])?;
        }
        Ok(())
    }
    /// No two tensors may share memory: the step would read what it has just written.
    fn distinct(self) -> Result<Operands> {
        let all = &self.tensors;
        let shared = (0..all.len())
            .any(|i| (0..i).any(|j| all[i].storage().same(all[j].storage()) && overlap(&all[i], &all[j])));
        if shared {
            Err(Error::runtime("the parameter, its gradient and its state must not share memory"))
        } else {
            Ok(self)
        }
    }
}

fn overlap(a: &Tensor, b: &Tensor) -> bool {
    let span = |t: &Tensor| (t.layout().offset * t.dtype().size(), t.layout().end() * t.dtype().size());
    let ((a0, a1), (b0, b1)) = (span(a), span(b));
    a0 < b1 && b0 < a1
}

/// The parameters of `FUSED_ADAM_`.
mod adam_args {
    use crate::op::{Signature, sig};

    pub const SIG: Signature = sig(
        "_fused_adam_(Tensor! self, Tensor grad, Tensor! exp_avg, Tensor! exp_avg_sq, *, float lr, float beta1, float beta2, float eps, float weight_decay, float step, bool decoupled, bool maximize) -> Tensor",
    );
    pub const GRAD: usize = SIG.arg("grad");
    pub const EXP_AVG: usize = SIG.arg("exp_avg");
    pub const EXP_AVG_SQ: usize = SIG.arg("exp_avg_sq");
    pub const LR: usize = SIG.arg("lr");
    pub const BETA1: usize = SIG.arg("beta1");
    pub const BETA2: usize = SIG.arg("beta2");
    pub const EPS: usize = SIG.arg("eps");
    pub const WEIGHT_DECAY: usize = SIG.arg("weight_decay");
    pub const STEP: usize = SIG.arg("step");
    pub const DECOUPLED: usize = SIG.arg("decoupled");
    pub const MAXIMIZE: usize = SIG.arg("maximize");
}

pub static FUSED_ADAM_: Op = Op {
    sig: adam_args::SIG,
    doc: "One step of Adam (AdamW where `decoupled`): writes to the parameter, `exp_avg` and `exp_avg_sq`. `step` counts from 1.",
    forms: STEP,
    body: kernel_into(adam, Some(adam_gpu)),
    vjp: Vjp::None("an optimiser step"),
    samples: &[
        "f32[2,3](nograd), f32[2,3](nograd), f32[2,3](nograd), f32[2,3](pos, nograd), lr=0.1, beta1=0.9, beta2=0.99, eps=1e-08, weight_decay=0.1, step=3.0, decoupled=True, maximize=False",
    ],
    errors: &[(
        "f32[2](nograd), f32[3](nograd), f32[2](nograd), f32[2](nograd), lr=0.1, beta1=0.9, beta2=0.99, eps=1e-08, weight_decay=0.0, step=1.0, decoupled=False, maximize=False",
        "RuntimeError",
        "must have the shape",
    )],
    sharing: Some(Sharing::Any),
    ..OP
};

/// The parameters of an Adam step.
#[derive(Clone, Copy)]
struct Adam {
    lr: f64,
    beta1: f64,
    beta2: f64,
    eps: f64,
    decay: f64,
    decoupled: bool,
    maximize: bool,
    /// `lr / (1 - beta1^step)` and `sqrt(1 - beta2^step)`.
    size: f64,
    root: f64,
}

impl Adam {
    fn of(c: &Call) -> Result<Adam> {
        use adam_args::{BETA1, BETA2, DECOUPLED, EPS, LR, MAXIMIZE, STEP, WEIGHT_DECAY};
        let (lr, beta1, beta2, step) = (c.float(LR)?, c.float(BETA1)?, c.float(BETA2)?, c.float(STEP)?);
        Ok(Adam {
            lr,
            beta1,
            beta2,
            eps: c.float(EPS)?,
            decay: c.float(WEIGHT_DECAY)?,
            decoupled: c.flag(DECOUPLED),
            maximize: c.flag(MAXIMIZE),
            size: lr / (1.0 - beta1.powf(step)),
            root: (1.0 - beta2.powf(step)).sqrt(),
        })
    }
}

/// The gradient with weight decay, which is skipped if zero: zero times an infinite parameter would be NaN.
#[inline(always)]
fn decayed<T: Float>(g: T, p: T, decay: T, decays: bool) -> T {
    if decays { g.plus(p.times(decay)) } else { g }
}

struct AdamRun<'a, T>(Adam, [&'a mut [T]; 4]);

impl<T: Float> Kernel for AdamRun<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let AdamRun(s, [p, g, m, v]) = self;
        let n = T::from_f64;
        let sign = n(if s.maximize { -1.0 } else { 1.0 });
        let (shrink, decay) = if s.decoupled { (n(1.0 - s.lr * s.decay), T::ZERO) } else { (T::ONE, n(s.decay)) };
        let decays = !s.decoupled && s.decay != 0.0;
        let (w1, b2, w2) = (n(1.0 - s.beta1), n(s.beta2), n(1.0 - s.beta2));
        let (root, eps, size) = (n(s.root), n(s.eps), n(-s.size));
        for (((p, g), m), v) in p.iter_mut().zip(g.iter()).zip(m.iter_mut()).zip(v.iter_mut()) {
            let old = p.times(shrink);
            let g = decayed(g.times(sign), old, decay, decays);
            *m = m.plus(w1.times(g.minus(*m)));
            *v = v.times(b2).plus(w2.times(g).times(g));
            *p = old.plus(size.times(*m).divide(v.sqrt().divide(root).plus(eps)));
        }
    }
}

fn adam(c: &Call, out: &[Tensor]) -> Result<()> {
    let (s, states) = (Adam::of(c)?, [c.tensor(adam_args::EXP_AVG)?, c.tensor(adam_args::EXP_AVG_SQ)?]);
    let o = Operands::new(&out[0], &[c.tensor(adam_args::GRAD)?, states[0], states[1]])?.distinct()?;
    let written = [true, false, true, true];
    if out[0].dtype() == DType::F64 {
        o.run::<f64, 4>(written, |t| simd::run(AdamRun(s, t)))?;
    } else {
        o.run::<f32, 4>(written, |t| simd::run(AdamRun(s, t)))?;
    }
    Ok(())
}

fn adam_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let (s, states) = (Adam::of(c)?, [c.tensor(adam_args::EXP_AVG)?, c.tensor(adam_args::EXP_AVG_SQ)?]);
    let o = Operands::new(&out[0], &[c.tensor(adam_args::GRAD)?, states[0], states[1]])?.distinct()?;
    let numbers = [
        ("shrink", if s.decoupled { 1.0 - s.lr * s.decay } else { 1.0 }),
        ("decay", if s.decoupled { 0.0 } else { s.decay }),
        ("sign", if s.maximize { -1.0 } else { 1.0 }),
        ("w1", 1.0 - s.beta1),
        ("b2", s.beta2),
        ("w2", 1.0 - s.beta2),
        ("size", -s.size),
        ("root", s.root),
        ("eps", s.eps),
    ];
    o.run_gpu(Step::Adam, &[("x", 0), ("m", 2), ("v", 3)], &numbers)?;
    Ok(())
}

/// The parameters of `FUSED_SGD_`.
mod sgd_args {
    use crate::op::{Signature, sig};

    pub const SIG: Signature = sig(
        "_fused_sgd_(Tensor! self, Tensor grad, Tensor!? momentum_buffer, *, float lr, float momentum, float dampening, float weight_decay, bool nesterov, bool maximize, bool first=False) -> Tensor",
    );
    pub const GRAD: usize = SIG.arg("grad");
    pub const MOMENTUM_BUFFER: usize = SIG.arg("momentum_buffer");
    pub const LR: usize = SIG.arg("lr");
    pub const MOMENTUM: usize = SIG.arg("momentum");
    pub const DAMPENING: usize = SIG.arg("dampening");
    pub const WEIGHT_DECAY: usize = SIG.arg("weight_decay");
    pub const NESTEROV: usize = SIG.arg("nesterov");
    pub const MAXIMIZE: usize = SIG.arg("maximize");
    pub const FIRST: usize = SIG.arg("first");
}

pub static FUSED_SGD_: Op = Op {
    sig: sgd_args::SIG,
    doc: "One step of stochastic gradient descent: writes to the parameter and, with momentum, to `momentum_buffer`, which `first` fills.",
    forms: STEP,
    body: kernel_into(sgd, Some(sgd_gpu)),
    vjp: Vjp::None("an optimiser step"),
    samples: &[
        "f32[2,3](nograd), f32[2,3](nograd), None, lr=0.1, momentum=0.0, dampening=0.0, weight_decay=0.1, nesterov=False, maximize=False, first=False",
        "f32[2,3](nograd), f32[2,3](nograd), f32[2,3](nograd), lr=0.1, momentum=0.9, dampening=0.0, weight_decay=0.0, nesterov=True, maximize=True, first=False",
    ],
    errors: &[(
        "f32[2](nograd), f32[3](nograd), None, lr=0.1, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False, first=False",
        "RuntimeError",
        "must have the shape",
    )],
    sharing: Some(Sharing::Any),
    ..OP
};

#[derive(Clone, Copy)]
struct Sgd {
    lr: f64,
    momentum: f64,
    dampening: f64,
    decay: f64,
    nesterov: bool,
    maximize: bool,
    first: bool,
}

impl Sgd {
    fn of(c: &Call) -> Result<Sgd> {
        use sgd_args::{DAMPENING, FIRST, LR, MAXIMIZE, MOMENTUM, NESTEROV, WEIGHT_DECAY};
        Ok(Sgd {
            lr: c.float(LR)?,
            momentum: c.float(MOMENTUM)?,
            dampening: c.float(DAMPENING)?,
            decay: c.float(WEIGHT_DECAY)?,
            nesterov: c.flag(NESTEROV),
            maximize: c.flag(MAXIMIZE),
            first: c.flag(FIRST),
        })
    }
}

struct SgdRun<'a, T> {
    s: Sgd,
    p: &'a mut [T],
    g: &'a mut [T],
    buffer: Option<&'a mut [T]>,
}

impl<T: Float> Kernel for SgdRun<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let (s, n) = (self.s, T::from_f64);
        let (sign, decay, lr) = (n(if s.maximize { -1.0 } else { 1.0 }), n(s.decay), n(-s.lr));
        let decays = s.decay != 0.0;
        let Some(buffer) = self.buffer else {
            self.p
                .iter_mut()
                .zip(self.g.iter())
                .for_each(|(p, g)| *p = p.plus(lr.times(decayed(g.times(sign), *p, decay, decays))));
            return;
        };
        let (momentum, kept) = (n(s.momentum), n(1.0 - s.dampening));
        for ((p, g), b) in self.p.iter_mut().zip(self.g.iter()).zip(buffer.iter_mut()) {
            let g = decayed(g.times(sign), *p, decay, decays);
            *b = if s.first { g } else { b.times(momentum).plus(kept.times(g)) };
            *p = p.plus(lr.times(if s.nesterov { g.plus(momentum.times(*b)) } else { *b }));
        }
    }
}

fn sgd(c: &Call, out: &[Tensor]) -> Result<()> {
    let (s, g) = (Sgd::of(c)?, c.tensor(sgd_args::GRAD)?);
    let buffer = c.opt_tensor(sgd_args::MOMENTUM_BUFFER).filter(|_| s.momentum != 0.0);
    let wide = out[0].dtype() == DType::F64;
    let Some(b) = buffer else {
        let o = Operands::new(&out[0], &[g])?.distinct()?;
        return if wide {
            o.run::<f64, 2>([true, false], |[p, g]| simd::run(SgdRun { s, p, g, buffer: None }))
        } else {
            o.run::<f32, 2>([true, false], |[p, g]| simd::run(SgdRun { s, p, g, buffer: None }))
        };
    };
    let o = Operands::new(&out[0], &[g, b])?.distinct()?;
    let written = [true, false, true];
    if wide {
        o.run::<f64, 3>(written, |[p, g, b]| simd::run(SgdRun { s, p, g, buffer: Some(b) }))?;
    } else {
        o.run::<f32, 3>(written, |[p, g, b]| simd::run(SgdRun { s, p, g, buffer: Some(b) }))?;
    }
    Ok(())
}

fn sgd_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let (s, g) = (Sgd::of(c)?, c.tensor(sgd_args::GRAD)?);
    let buffer = c.opt_tensor(sgd_args::MOMENTUM_BUFFER).filter(|_| s.momentum != 0.0);
    let plain = [("lr", -s.lr), ("sign", if s.maximize { -1.0 } else { 1.0 }), ("decay", s.decay)];
    let Some(b) = buffer else {
        return Operands::new(&out[0], &[g])?.distinct()?.run_gpu(Step::Sgd, &[("x", 0)], &plain);
    };
    let flag = |on: bool| if on { 1.0 } else { 0.0 };
    let momentum =
        [("keep", flag(!s.first)), ("ahead", flag(s.nesterov)), ("momentum", s.momentum), ("kept", 1.0 - s.dampening)];
    let numbers: Vec<_> = plain.into_iter().chain(momentum).collect();
    Operands::new(&out[0], &[g, b])?.distinct()?.run_gpu(Step::SgdMomentum, &[("x", 0), ("b", 2)], &numbers)?;
    Ok(())
}
