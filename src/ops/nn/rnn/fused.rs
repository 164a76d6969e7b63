//! The kernel for a layer of float32 or float64: all steps in one op, and its gradient in one op.
//!
//! Where the gradient is itself recorded, it goes through the steps of `layer`.

use super::layer::{check, steps};
use crate::cpu::rnn::{Gradients, Layer, backward, forward, saved_blocks};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::{self, Recurrent, RecurrentGradients};
use crate::kinds::Recurrence;
use crate::op::*;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&FUSED_RECURRENT_LAYER, &FUSED_RECURRENT_BACKWARD];

/// Whether the kernel computes this layer.
pub(crate) fn serves(c: &Call) -> bool {
    let Some(gates) = c.opt_tensor("gates") else { return false };
    let device = gates.device();
    plain(c) && device != Device::Meta && c.all_tensors().all(|t| t.device() == device) && gates.numel() > 0
}

/// Whether there is no projection, and one dtype that the kernel computes in.
fn plain(c: &Call) -> bool {
    let Some(dtype) = c.opt_tensor("gates").map(|t| t.dtype()) else { return false };
    let one = c.all_tensors().all(|t| t.dtype() == dtype);
    one && matches!(dtype, DType::F32 | DType::F64) && c.opt_tensor("projection").is_none()
}

/// The layer by the kernel, without what it saves for its gradient.
pub(crate) fn run(c: &Call) -> Result<Outputs> {
    let args: Args = c.args.iter().map(|v| v.reborrow()).collect();
    let mut found = FUSED_RECURRENT_LAYER.calls(args)?;
    found.truncate(2 + usize::from(c.opt_tensor("cx").is_some()));
    Ok(found)
}

fn infer(c: &Call) -> Result<Specs> {
    check(c)?;
    if !plain(c) {
        return Err(Error::runtime("the fused layer needs tensors of float32 or of float64, and no projection"));
    }
    let (gates, hx, mode) = (c.tensor("gates")?, c.tensor("hx")?, c.choice::<Recurrence>("mode"));
    let (rows, batch, hidden) = (gates.size(0), hx.size(0), hx.size(1));
    let (rows_of_cells, batch_of_cells) = if mode == Recurrence::Lstm { (rows, batch) } else { (0, 0) };
    let matrix = |m: usize, n: usize| Spec::new(&[m, n], gates.dtype(), gates.device());
    Ok(smallvec![
        matrix(rows, hidden),
        matrix(batch, hidden),
        matrix(batch_of_cells, hidden),
        matrix(rows, hidden * saved_blocks(mode)),
        matrix(rows_of_cells, hidden),
    ])
}

/// A row-major tensor of the same elements.
fn dense(t: &Tensor) -> Result<Tensor> {
    t.dense_copy(t.dtype())
}

fn run_forward(c: &Call, out: &[Tensor]) -> Result<()> {
    let (gates, hx, weight) = (dense(c.tensor("gates")?)?, dense(c.tensor("hx")?)?, dense(c.tensor("weight")?)?);
    let (cx, bias) = (c.opt_tensor("cx").map(dense).transpose()?, c.opt_tensor("bias").map(dense).transpose()?);
    let layer = Layer {
        sizes: c.ints("batch_sizes")?,
        mode: c.choice("mode"),
        reverse: c.flag("reverse"),
        hx: hx.cpu_view()?,
        cx: cx.as_ref().map(|t| t.cpu_view()).transpose()?,
        weight: weight.cpu_view()?,
        bias: bias.as_ref().map(|t| t.cpu_view()).transpose()?,
        output: out[0].cpu_view()?,
        saved: out[3].cpu_view()?,
        cells: out[4].cpu_view()?,
    };
    let last_cell = cx.is_some().then(|| out[2].cpu_view()).transpose()?;
    forward(&layer, gates.cpu_view()?, out[1].cpu_view()?, last_cell)
}

/// A row-major tensor of the same elements, on any device.
fn packed(t: &Tensor) -> Result<Tensor> {
    Term::from(t).contiguous().ok()
}

fn forward_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let (gates, hx, weight) = (packed(c.tensor("gates")?)?, packed(c.tensor("hx")?)?, packed(c.tensor("weight")?)?);
    let (cx, bias) = (c.opt_tensor("cx").map(packed).transpose()?, c.opt_tensor("bias").map(packed).transpose()?);
    let layer = Recurrent {
        sizes: c.ints("batch_sizes")?,
        mode: c.choice("mode"),
        reverse: c.flag("reverse"),
        hx: hx.gpu_view()?,
        cx: cx.as_ref().map(|t| t.gpu_view()).transpose()?,
        weight: weight.gpu_view()?,
        bias: bias.as_ref().map(|t| t.gpu_view()).transpose()?,
        output: out[0].gpu_view()?,
        saved: out[3].gpu_view()?,
        cells: out[4].gpu_view()?,
    };
    let last_cell = cx.is_some().then(|| out[2].gpu_view()).transpose()?;
    gpu::recurrent(&layer, &gates.gpu_view()?, &out[1].gpu_view()?, last_cell.as_ref())
}

pub static FUSED_RECURRENT_LAYER: Op = Op {
    sig: sig(
        "_fused_recurrent_layer(Tensor gates, Tensor hx, Tensor? cx, Tensor weight, Tensor? bias, Tensor? projection, int[] batch_sizes, str{lstm|gru|tanh|relu} mode, bool reverse) -> Tensor[]",
    ),
    doc: "`_recurrent_layer` in one kernel; last states and cells are followed by what the gradient needs of gates and cells.",
    forms: HIDDEN,
    body: kernel(infer, run_forward, Some(forward_gpu)),
    vjp: Vjp::Joint(Joint {
        args: &[0, 1, 2, 3, 4],
        saves: A0 | A1 | A2 | A3 | A4 | OUT0 | (OUT0 << 3) | (OUT0 << 4),
        formula: gradients,
    }),
    constant: &[3, 4],
    samples: &[
        "f32[5,8], f32[2,2], f32[2,2], f32[8,2], None, None, (2, 2, 1), 'lstm', False",
        "f32[5,8], f32[2,2], f32[2,2], f32[8,2], None, None, (2, 2, 1), 'lstm', True",
        "f32[5,6], f32[2,2], None, f32[6,2], f32[6], None, (2, 2, 1), 'gru', False",
        "f32[5,6], f32[2,2], None, f32[6,2], f32[6], None, (2, 2, 1), 'gru', True",
        "f32[5,2], f32[2,2], None, f32[2,2], None, None, (2, 2, 1), 'tanh', False",
        "f32[5,2], f32[2,2], None, f32[2,2], None, None, (2, 2, 1), 'relu', True",
    ],
    errors: &[(
        "f32[4,8], f32[2,1], f32[2,2], f32[8,1], None, f32[1,2], (2, 2), 'lstm', False",
        "RuntimeError",
        "no projection",
    )],
    ..OP
};

/// One kernel; if the gradient is recorded, through the steps.
fn gradients(c: &VjpCtx) -> Result<Vec<Option<Tensor>>> {
    if crate::autograd::forward::differentiating() {
        return c.through(steps);
    }
    let mode =
        Recurrence::VALUES.iter().find(|(_, m)| *m == c.choice::<Recurrence>("mode")).map_or("", |(name, _)| name);
    let grad = |i: usize| c.grads[i].as_ref();
    let args: Args = smallvec![
        grad(0).into(),
        grad(1).into(),
        grad(2).filter(|_| c.opt_tensor("cx").is_some()).into(),
        c.arg(1).into_arg()?,
        c.opt_tensor("cx").into(),
        c.arg("weight").into_arg()?,
        c.out(0).into_arg()?,
        c.out(3).into_arg()?,
        c.out(4).into_arg()?,
        Value::Ints(c.ints("batch_sizes").into()),
        mode.into(),
        c.flag("reverse").into(),
    ];
    let parts = FUSED_RECURRENT_BACKWARD.calls(args)?;
    let wanted = parts.into_iter().zip(["gates", "hx", "cx", "weight", "bias"]);
    Ok(wanted.map(|(t, arg)| c.wants(arg).then_some(t)).collect())
}

pub static FUSED_RECURRENT_BACKWARD: Op = Op {
    sig: BACKWARD,
    doc: "The gradients of `_fused_recurrent_layer` by gates, states, weight and bias.",
    forms: HIDDEN,
    body: kernel(infer_backward, run_backward, Some(backward_gpu)),
    vjp: Vjp::None("the steps are differentiated instead"),
    samples: &[
        "f32[5,2], None, f32[2,2], f32[2,2], f32[2,2], f32[8,2], f32[5,2], f32[5,8](unit), f32[5,2], (2, 2, 1), 'lstm', False",
        "f32[5,2], f32[2,2], None, f32[2,2], None, f32[6,2], f32[5,2], f32[5,8](unit), f32[0,2], (2, 2, 1), 'gru', True",
    ],
    errors: &[(
        "f32[4,2], None, None, f32[2,2], None, f32[6,2], f32[5,2], f32[5,8], f32[0,2], (2, 2, 1), 'gru', True",
        "RuntimeError",
        "do not fit together",
    )],
    ..OP
};
const BACKWARD: Signature = sig(
    "_fused_recurrent_backward(Tensor? grad_output, Tensor? grad_hn, Tensor? grad_cn, Tensor hx, Tensor? cx, Tensor weight, Tensor output, Tensor saved, Tensor cells, int[] batch_sizes, str{lstm|gru|tanh|relu} mode, bool reverse) -> Tensor[]",
);
const B_SIZES: usize = BACKWARD.arg("batch_sizes");

fn infer_backward(c: &Call) -> Result<Specs> {
    let (hx, output, mode) = (c.tensor("hx")?, c.tensor("output")?, c.choice::<Recurrence>("mode"));
    let refused = || Error::runtime("the operands of the gradient of a recurrent layer do not fit together");
    let (&[batch, hidden], &[rows, _]) = (hx.shape(), output.shape()) else { return Err(refused()) };
    let (lstm, wide) = (mode == Recurrence::Lstm, hidden.saturating_mul(mode.gates()));
    let has = |name: &str, m: usize, n: usize| c.opt_tensor(name).is_none_or(|t| t.shape() == [m, n]);
    let sizes = c.ints("batch_sizes")?;
    let fits = has("grad_output", rows, hidden)
        && has("grad_hn", batch, hidden)
        && has("grad_cn", batch, hidden)
        && has("cx", batch, hidden)
        && has("weight", wide, hidden)
        && has("output", rows, hidden)
        && has("saved", rows, hidden.saturating_mul(saved_blocks(mode)))
        && has("cells", if lstm { rows } else { 0 }, hidden)
        && c.opt_tensor("cx").is_some() == lstm
        && (lstm || c.opt_tensor("grad_cn").is_none())
        && sizes.windows(2).all(|w| w[0] >= w[1])
        && sizes.iter().all(|&n| n > 0)
        && sizes.iter().try_fold(0i64, |sum, &n| sum.checked_add(n)) == Some(rows as i64)
        && sizes.first().is_none_or(|&n| n as usize == batch)
        && matches!(hx.dtype(), DType::F32 | DType::F64)
        && c.all_tensors().all(|t| t.dtype() == hx.dtype() && t.device() == hx.device());
    if !fits {
        return Err(refused());
    }
    let spec = |shape: &[usize]| Spec::new(shape, hx.dtype(), hx.device());
    let bias = if mode == Recurrence::Gru { wide } else { 0 };
    Ok(smallvec![
        spec(&[rows, wide]),
        spec(&[batch, hidden]),
        spec(&[if lstm { batch } else { 0 }, hidden]),
        spec(&[wide, hidden]),
        spec(&[bias]),
    ])
}

fn run_backward(c: &Call, out: &[Tensor]) -> Result<()> {
    let tensors: Vec<Option<Tensor>> =
        (0..B_SIZES).map(|i| c.opt_tensor(i).map(dense).transpose()).collect::<Result<_>>()?;
    let view = |name: &str| tensors[name.position(&BACKWARD)].as_ref().map(|t| t.cpu_view()).transpose();
    let needed = |name: &str| view(name)?.ok_or_else(|| Error::internal("an operand of the gradient is missing"));
    let lstm = c.opt_tensor("cx").is_some();
    let gru = c.choice::<Recurrence>("mode") == Recurrence::Gru;
    let layer = Layer {
        sizes: c.ints("batch_sizes")?,
        mode: c.choice("mode"),
        reverse: c.flag("reverse"),
        hx: needed("hx")?,
        cx: view("cx")?,
        weight: needed("weight")?,
        bias: None,
        output: needed("output")?,
        saved: needed("saved")?,
        cells: needed("cells")?,
    };
    let gradients = Gradients {
        output: view("grad_output")?,
        last: view("grad_hn")?,
        last_cell: view("grad_cn")?,
        gates: out[0].cpu_view()?,
        hx: out[1].cpu_view()?,
        cx: lstm.then(|| out[2].cpu_view()).transpose()?,
        weight: out[3].cpu_view()?,
        bias: gru.then(|| out[4].cpu_view()).transpose()?,
    };
    backward(&layer, &gradients)
}

fn backward_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let tensors: Vec<Option<Tensor>> =
        (0..B_SIZES).map(|i| c.opt_tensor(i).map(packed).transpose()).collect::<Result<_>>()?;
    let view = |name: &str| tensors[name.position(&BACKWARD)].as_ref().map(|t| t.gpu_view()).transpose();
    let needed = |name: &str| view(name)?.ok_or_else(|| Error::internal("an operand of the gradient is missing"));
    let lstm = c.opt_tensor("cx").is_some();
    let gru = c.choice::<Recurrence>("mode") == Recurrence::Gru;
    let layer = Recurrent {
        sizes: c.ints("batch_sizes")?,
        mode: c.choice("mode"),
        reverse: c.flag("reverse"),
        hx: needed("hx")?,
        cx: view("cx")?,
        weight: needed("weight")?,
        bias: None,
        output: needed("output")?,
        saved: needed("saved")?,
        cells: needed("cells")?,
    };
    let gradients = RecurrentGradients {
        output: view("grad_output")?,
        last: view("grad_hn")?,
        last_cell: view("grad_cn")?,
        gates: out[0].gpu_view()?,
        hx: out[1].gpu_view()?,
        cx: lstm.then(|| out[2].gpu_view()).transpose()?,
        weight: out[3].gpu_view()?,
        bias: gru.then(|| out[4].gpu_view()).transpose()?,
    };
    gpu::recurrent_backward(&layer, &gradients)
}
