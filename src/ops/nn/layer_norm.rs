//! Layer normalisation: checks, the fused kernel with its gradient, and the composite for higher-order gradients.
//!
//! `(x - mean) / sqrt(var + eps) * weight + bias` over the last dimensions; the variance is divided by n.

use crate::cpu::norm::layer_grad::{Operands, layer_norm_backward};
use crate::cpu::norm::layer_norm;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::gpu::{self, NormGrad};
use crate::layout::{Dims, Layout};
use crate::op::*;
use crate::ops::reduce::sum_prod::MEAN_DIM;
use crate::ops::support::batch_nn;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&LAYER_NORM, &NATIVE_LAYER_NORM, &LAYER_NORM_BACKWARD];

fn check(c: &Call) -> Result<()> {
    let (x, shape) = (c.tensor(0)?, c.ints("normalized_shape")?);
    if shape.is_empty() {
        return Err(Error::runtime(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []",
        ));
    }
    for name in ["weight", "bias"] {
        if let Some(t) = c.opt_tensor(name)
            && !t.shape().iter().map(|&d| d as i64).eq(shape.iter().copied())
        {
            return Err(Error::runtime(format!(
                "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {} and normalized_shape = {}",
                Show(t.shape()),
                Show(shape)
            )));
        }
    }
    let fits = x.ndim() >= shape.len()
        && x.shape()[x.ndim() - shape.len()..].iter().map(|&d| d as i64).eq(shape.iter().copied());
    if !fits {
        let want: String = shape.iter().map(|d| format!(", {d}")).collect();
        return Err(Error::runtime(format!(
            "Given normalized_shape={}, expected input with shape [*{want}], but got input of size{}",
            Show(shape),
            Show(x.shape())
        )));
    }
    if !x.dtype().is_float() {
        let name = x.dtype().scalar_type_name();
        return Err(Error::not_implemented(format!("\"LayerNormKernelImpl\" not implemented for '{name}'")));
    }
    Ok(())
}

/// Rows and columns of the input for `k` normalised dimensions.
fn matrix(x: &Tensor, k: usize) -> [usize; 2] {
    let (rows, cols) = x.shape().split_at(x.ndim() - k);
    [rows.iter().product(), cols.iter().product()]
}

/// A tensor, made dense, viewed as a matrix or a vector.
fn dense_view(t: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let t = Term::from(t).contiguous().ok()?;
    let layout = Layout { offset: t.layout().offset, ..Layout::contiguous(shape) };
    Ok(t.with_layout(layout))
}

fn infer(c: &Call) -> Result<Specs> {
    check(c)?;
    let x = c.tensor(0)?;
    let (wide, kept) = (x.ndim() - c.ints("normalized_shape")?.len(), x.shape());
    let stats: Dims = kept.iter().enumerate().map(|(i, &d)| if i < wide { d } else { 1 }).collect();
    // In the dtype of the input, or of the parameters if wider.
    let mixed = ["weight", "bias"].iter().any(|&name| c.opt_tensor(name).is_some_and(|t| t.dtype() == DType::F32));
    let dtype = if mixed && x.dtype() != DType::F64 { DType::F32 } else { x.dtype() };
    let stat = Spec::new(&stats, dtype, x.device());
    Ok(smallvec![Spec::like(x), stat.clone(), stat])
}

fn forward(c: &Call, out: &[Tensor]) -> Result<()> {
    let x = c.tensor(0)?;
    let shape = matrix(x, c.ints("normalized_shape")?.len());
    let [rows, cols] = shape;
    let vector = |name: &str| c.opt_tensor(name).map(|t| dense_view(t, &[cols])).transpose();
    let (x, weight, bias) = (dense_view(x, &shape)?, vector("weight")?, vector("bias")?);
    let (y, mean, rstd) = (dense_view(&out[0], &shape)?, dense_view(&out[1], &[rows])?, dense_view(&out[2], &[rows])?);
    if x.device().is_gpu() {
        let (weight, bias) =
            (weight.as_ref().map(|t| t.gpu_view()).transpose()?, bias.as_ref().map(|t| t.gpu_view()).transpose()?);
        let out = [&y.gpu_view()?, &mean.gpu_view()?, &rstd.gpu_view()?];
        return gpu::layer_norm(&x.gpu_view()?, weight, bias, c.float("eps")?, out);
    }
    let (weight, bias) =
        (weight.as_ref().map(|t| t.cpu_view()).transpose()?, bias.as_ref().map(|t| t.cpu_view()).transpose()?);
    layer_norm(x.cpu_view()?, weight, bias, c.float("eps")?, y.cpu_view()?, mean.cpu_view()?, rstd.cpu_view()?)
}

/// The same as a composite: (output, mean, reciprocal deviation).
fn composed(x: Term, k: usize, weight: Option<Term>, bias: Option<Term>, eps: f64) -> [Term; 3] {
    let dims = last(k);
    let mean = MEAN_DIM.call((&x, dims.clone(), true));
    let centred = x - mean.clone();
    let rstd = (MEAN_DIM.call((centred.clone() * centred.clone(), dims, true)) + eps).rsqrt();
    let mut y = centred * rstd.clone();
    y = weight.into_iter().fold(y, |y, w| y * w);
    y = bias.into_iter().fold(y, |y, b| y + b);
    [y, mean, rstd]
}

fn last(k: usize) -> Ints {
    (-(k as i64)..0).collect()
}

pub static LAYER_NORM: Op = Op {
    sig: sig(
        "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
    ),
    doc: "Normalises over the last dimensions, those of `normalized_shape`, to mean 0 and variance 1; then scales and shifts.",
    aliases: &["nn.functional.layer_norm"],
    forms: F,
    body: decompose(|c| {
        let args: Args = c.args[..5].iter().map(|v| v.reborrow()).collect();
        Ok(smallvec![NATIVE_LAYER_NORM.calls(args)?.swap_remove(0)])
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3], (3,)",
        "f32[4,5], (5,), f32[5], f32[5]",
        "f32[2,3,4], (3, 4), f32[3,4], f32[3,4]",
        "f32[2,3], (3,), f32[3], eps=0.1",
        "f64[3,4], (4,)",
    ],
    errors: &[
        ("f32[2,3], (2,)", "RuntimeError", "Given normalized_shape"),
        ("f32[2,3], (3,), f32[2]", "RuntimeError", "Expected weight to be of same shape"),
        ("i64[2,3], (3,)", "NotImplementedError", "LayerNormKernelImpl"),
    ],
    ..OP
};

pub static NATIVE_LAYER_NORM: Op = Op {
    sig: sig(
        "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> Tensor[]",
    ),
    doc: "`layer_norm` with the mean and the reciprocal standard deviation of each row.",
    forms: F,
    body: Body::Kernel(Kernel { one_pass: true, ..Kernel::of(infer, forward, Some(forward)) }),
    vjp: Vjp::Joint(Joint { args: &[0, 2, 3], saves: A0 | A2 | OUT1 | OUT2, formula: gradients }),
    constant: &[1, 2],
    samples: &[
        "f32[2,3], (3,), None, None, 1e-05",
        "f32[4,5], (5,), f32[5], f32[5], 1e-05",
        "bf16[2,3], (3,), f32[3](nograd), f32[3](nograd), 1e-05",
        "f32[3,2,300], (300,), f32[300], f32[300], 1e-05",
    ],
    errors: &[("f32[2,3], (2,), None, None, 1e-05", "RuntimeError", "Given normalized_shape")],
    keeps: Some("input normalized_shape weight"),
    batch: Batching::Rule(batch_nn::layer_norm),
    ..OP
};

/// One kernel pass; if the gradient is recorded, formulas in which the statistics depend on the input.
fn gradients(c: &VjpCtx) -> Result<Vec<Option<Tensor>>> {
    let (x, g, k) = (c.arg(0), c.g(), c.ints("normalized_shape").len());
    let weight = c.opt_tensor("weight");
    if !crate::autograd::forward::differentiating() {
        let args: Args = smallvec![
            g.into_arg()?,
            x.into_arg()?,
            Value::Ints(c.ints("normalized_shape").into()),
            weight.map_or(Value::None, Value::from),
            c.out(1).into_arg()?,
            c.out(2).into_arg()?,
        ];
        let parts = LAYER_NORM_BACKWARD.calls(args)?;
        return Ok(parts
            .into_iter()
            .zip(["input", "weight", "bias"])
            .map(|(t, arg)| c.wants(arg).then_some(t))
            .collect());
    }
    let (eps, dims) = (c.float("eps"), last(k));
    let [h, _, rstd] = composed(x, k, None, None, eps);
    let gw = weight.into_iter().fold(g.clone(), |g, w| g * w);
    let mean = |t: Term| MEAN_DIM.call((t, dims.clone(), true));
    let dx = rstd * (gw.clone() - mean(gw.clone()) - h.clone() * mean(gw * h.clone()));
    let rows: Ints = (0..(c.ndim(0) - k) as i64).collect();
    let over_rows = |t: Term| if rows.is_empty() { t } else { t.sum(&rows, false) };
    let given = |name: &str, t: Term| if c.wants(name) { t.ok().map(Some) } else { Ok(None) };
    Ok(vec![
        given("input", dx)?,
        given("weight", over_rows(g.clone() * h))?,
        given("bias", c.tie_requires_grad(over_rows(g), &[0, 2]))?,
    ])
}

pub static LAYER_NORM_BACKWARD: Op = Op {
    sig: sig(
        "_layer_norm_backward(Tensor grad, Tensor input, int[] normalized_shape, Tensor? weight, Tensor mean, Tensor rstd) -> Tensor[]",
    ),
    doc: "The gradients of `layer_norm` by input, weight and bias, in one pass.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let x = c.tensor("input")?;
            let shape = crate::layout::to_shape(c.ints("normalized_shape")?)?;
            if c.tensor("grad")?.shape() != x.shape() || !x.shape().ends_with(&shape) {
                return Err(Error::runtime("the gradient must have the shape of the input"));
            }
            let [rows, _] = matrix(x, shape.len());
            if c.opt_tensor("weight").is_some_and(|w| w.shape() != shape.as_slice()) {
                return Err(Error::runtime("the weight must have the shape that is normalised"));
            }
            if c.tensor("mean")?.numel() != rows || c.tensor("rstd")?.numel() != rows {
                return Err(Error::runtime("one mean and one deviation a row are needed"));
            }
            if c.all_tensors().any(|t| !t.dtype().is_float()) {
                return Err(Error::runtime("floating point tensors are needed"));
            }
            let one = Spec::new(&shape, c.opt_tensor("weight").map_or(x.dtype(), |w| w.dtype()), x.device());
            Ok(smallvec![Spec::like(x), one.clone(), one])
        },
        backward,
        Some(backward),
    ),
    vjp: Vjp::None("the composite gradient is recorded instead"),
    samples: &[
        "f32[2,3], f32[2,3], (3,), f32[3], f32[2,1], f32[2,1](pos)",
        "f32[130,20], f32[130,20], (20,), None, f32[130,1], f32[130,1](pos)",
    ],
    errors: &[("f32[2,3], f32[2,2], (2,), None, f32[2,1], f32[2,1]", "RuntimeError", "shape of the input")],
    batch: Batching::Rule(crate::ops::support::batch_layers::layer_norm_backward),
    ..OP
};

fn backward(c: &Call, out: &[Tensor]) -> Result<()> {
    let shape = matrix(c.tensor("input")?, c.ints("normalized_shape")?.len());
    let [rows, cols] = shape;
    let (g, x) = (dense_view(c.tensor("grad")?, &shape)?, dense_view(c.tensor("input")?, &shape)?);
    let (mean, rstd) = (dense_view(c.tensor("mean")?, &[rows])?, dense_view(c.tensor("rstd")?, &[rows])?);
    let weight = c.opt_tensor("weight").map(|t| dense_view(t, &[cols])).transpose()?;
    let (dx, dw, db) = (dense_view(&out[0], &shape)?, dense_view(&out[1], &[cols])?, dense_view(&out[2], &[cols])?);
    if x.device().is_gpu() {
        let from = NormGrad {
            grad: g.gpu_view()?,
            input: x.gpu_view()?,
            mean: mean.gpu_view()?,
            rstd: rstd.gpu_view()?,
            weight: weight.as_ref().map(|w| w.gpu_view()).transpose()?,
        };
        return gpu::layer_norm_backward(&from, &dx.gpu_view()?, &dw.gpu_view()?, &db.gpu_view()?);
    }
    let operands = Operands {
        grad: g.cpu_view()?,
        input: x.cpu_view()?,
        mean: mean.cpu_view()?,
        rstd: rstd.cpu_view()?,
        weight: weight.as_ref().map(|w| w.cpu_view()).transpose()?,
        dx: dx.cpu_view()?,
        dw: Some(dw.cpu_view()?),
        db: Some(db.cpu_view()?),
    };
    layer_norm_backward(&operands)?;
    Ok(())
}
