//! Convolutions of floats by kernels of their own; the composition is their oracle.

use super::{Steps, check, motion};
use crate::cpu::conv::{convolution, convolution_then, weight_gradient};
use crate::cpu::epilogue::Epilogue;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::gpu;
use crate::layout::window::Motion;
use crate::layout::{Format, Layout, to_shape};
use crate::op::*;
use crate::ops::support::promotion::no_kernel;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&CONVOLUTION_KERNEL, &WEIGHT_GRADIENT];

/// Whether a call of `convolution` has a kernel.
pub(crate) fn fits(c: &Call) -> bool {
    c.tensor(0).is_ok_and(|x| x.dtype().is_float())
}

impl Steps {
    /// The channels of a result, and its other sizes.
    fn result(&self, x: &Tensor, weight: &[usize]) -> Result<(i64, Ints)> {
        let shape: Ints = weight.iter().map(|&n| n as i64).collect();
        Ok(match self.transposed {
            false => (shape[0], self.places(x.shape(), &shape[2..])?),
            true => (shape[1].saturating_mul(self.groups), self.spread(x.shape(), &shape[2..])?.1),
        })
    }
    fn motion(&self) -> Motion<'_> {
        Motion {
            stride: &self.stride,
            padding: &self.padding,
            dilation: &self.dilation,
            groups: self.groups as usize,
            transposed: self.transposed,
        }
    }
}

fn infer(c: &Call) -> Result<Specs> {
    let (steps, format) = motion(c)?;
    let (x, w) = (c.tensor(0)?, c.tensor("weight")?);
    let (filters, places) = steps.result(x, w.shape())?;
    let sizes: Ints = [x.size(0) as i64, filters].into_iter().chain(places).collect();
    let layout = Layout::contiguous(&to_shape(&sizes)?);
    let layout = if format == Format::Contiguous { layout } else { layout.formed(format)? };
    Ok(smallvec![Spec { layout, dtype: x.dtype(), device: x.device() }])
}

fn run(c: &Call, out: &[Tensor]) -> Result<()> {
    let (x, w) = (c.tensor(0)?, c.tensor("weight")?);
    let steps = Steps::of(c, w.ndim() - 2)?;
    let bias = c.opt_tensor("bias").map(|b| b.cpu_view()).transpose()?;
    convolution(x.cpu_view()?, w.cpu_view()?, bias, out[0].cpu_view()?, &steps.motion())
}

fn run_then(c: &Call, out: &[Tensor], then: &Epilogue) -> Result<()> {
    let (x, w) = (c.tensor(0)?, c.tensor("weight")?);
    let steps = Steps::of(c, w.ndim() - 2)?;
    let bias = c.opt_tensor("bias").map(|b| b.cpu_view()).transpose()?;
    convolution_then(x.cpu_view()?, w.cpu_view()?, bias, out[0].cpu_view()?, &steps.motion(), Some(then))
}

fn run_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let (x, w) = (c.tensor(0)?, c.tensor("weight")?);
    let steps = Steps::of(c, w.ndim() - 2)?;
    let bias = c.opt_tensor("bias").map(|b| b.gpu_view()).transpose()?;
    gpu::convolution(&x.gpu_view()?, &w.gpu_view()?, bias.as_ref(), &out[0].gpu_view()?, &steps.motion())
}

pub static CONVOLUTION_KERNEL: Op = Op {
    sig: sig(
        "_convolution(Tensor input, Tensor weight, Tensor? bias, int[1] stride, int[1] padding, int[1] dilation, bool transposed, int[1] output_padding, int groups) -> Tensor",
    ),
    doc: "`convolution` of floats as one kernel.",
    forms: HIDDEN,
    body: Body::Kernel(Kernel { then: Some(run_then), ..Kernel::of(infer, run, Some(run_gpu)) }),
    vjp: Vjp::None("a kernel of `convolution`, which has the gradient"),
    samples: &[
        "f32[2,2,5], f32[3,2,3], f32[3], (2,), (1,), (1,), False, (0,), 1",
        "f32[2,4,4,5], f32[4,2,2,3], f32[4], (1, 2), (1, 0), (2, 1), False, (0, 0), 2",
        "f64[2,2,3,3], f64[2,3,2,3], f64[3], (2, 3), (1, 0), (1, 2), True, (1, 2), 1",
    ],
    errors: &[(
        "f32[1,2,4], f32[2,3,2], None, (1,), (0,), (1,), False, (0,), 1",
        "RuntimeError",
        "to have 3 channels, but got 2 channels instead",
    )],
    reference: "shape",
    ..OP
};

/// The shape of the weight, if it is that of a convolution whose result has the gradient's shape.
fn infer_weights(c: &Call) -> Result<Specs> {
    let (grad, x) = (c.tensor("grad")?, c.tensor("input")?);
    let shape = to_shape(c.ints("size")?)?;
    let ranks = (3..=5).contains(&shape.len()) && grad.ndim() == shape.len() && x.ndim() == shape.len();
    if !ranks || grad.dtype() != x.dtype() {
        return Err(Error::runtime("gradient, input and weight must have the same three to five dimensions and dtype"));
    }
    if !x.dtype().is_float() {
        return Err(no_kernel("convolution_backward", x.dtype()));
    }
    let steps = Steps::of(c, shape.len() - 2)?;
    check(x, &shape, &steps)?;
    let (filters, places) = steps.result(x, &shape)?;
    let sizes: Ints = [x.size(0) as i64, filters].into_iter().chain(places).collect();
    if *Term::from(grad).sizes() != *sizes {
        return Err(Error::runtime(format!(
            "a weight of size {} and an input of size {} give a result of size {}, but the gradient has {}",
            Show(&shape),
            Show(x.shape()),
            Show(&sizes),
            Show(grad.shape())
        )));
    }
    Ok(Spec::one(&shape, x.dtype(), x.device()))
}

fn run_weights(c: &Call, out: &[Tensor]) -> Result<()> {
    let (grad, x) = (c.tensor("grad")?, c.tensor("input")?);
    let steps = Steps::of(c, x.ndim() - 2)?;
    weight_gradient(grad.cpu_view()?, x.cpu_view()?, out[0].cpu_view()?, &steps.motion())
}

fn run_weights_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let (grad, x) = (c.tensor("grad")?, c.tensor("input")?);
    let steps = Steps::of(c, x.ndim() - 2)?;
    gpu::convolution_weight_gradient(&grad.gpu_view()?, &x.gpu_view()?, &out[0].gpu_view()?, &steps.motion())
}

pub static WEIGHT_GRADIENT: Op = Op {
    sig: sig(
        "_convolution_weight_gradient(Tensor grad, Tensor input, int[] size, int[1] stride, int[1] padding, int[1] dilation, bool transposed, int[1] output_padding, int groups) -> Tensor",
    ),
    doc: "The gradient of `convolution` by a weight of this size, as one kernel.",
    forms: HIDDEN,
    body: kernel(infer_weights, run_weights, Some(run_weights_gpu)),
    vjp: Vjp::None("a kernel of the gradient of `convolution`, whose formula has one"),
    samples: &["f32[2,3,3], f32[2,2,5], (3, 2, 3), (2,), (1,), (1,), False, (0,), 1"],
    errors: &[
        (
            "f32[2,3,3], f32[2,2,5], (3, 2), (2,), (1,), (1,), False, (0,), 1",
            "RuntimeError",
            "the same three to five dimensions",
        ),
        (
            "f32[2,3,4], f32[2,2,5], (3, 2, 3), (2,), (1,), (1,), False, (0,), 1",
            "RuntimeError",
            "give a result of size [2, 3, 3], but the gradient has [2, 3, 4]",
        ),
    ],
    reference: "shape",
    batch: Batching::Rule(crate::ops::support::batch_layers::weight_gradient),
    ..OP
};

/// Whether the gradient of the weight has a kernel: where it is not recorded itself.
pub(crate) fn weights_fit(x: &Tensor) -> bool {
    let dtype: DType = x.dtype();
    dtype.is_float() && !crate::autograd::forward::differentiating()
}
