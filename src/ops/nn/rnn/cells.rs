//! One step of a recurrent network: `lstm_cell`, `gru_cell`, `rnn_tanh_cell`, `rnn_relu_cell`.

use super::layer::RECURRENT_LAYER;
use crate::error::{Error, Result};
use crate::kinds::Recurrence;
use crate::op::*;
use crate::ops::nn::linear::LINEAR;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&LSTM_CELL, &GRU_CELL, &RNN_TANH_CELL, &RNN_RELU_CELL];

/// A step from the input [B, I] and the states [B, H]; the weights start at argument 2.
fn step(c: &Call, mode: Recurrence, name: &'static str, states: &[&Tensor]) -> Result<Outputs> {
    let [x, w_ih, w_hh] = [c.tensor(0)?, c.tensor("w_ih")?, c.tensor("w_hh")?];
    check(x, states, w_ih, w_hh, mode.gates())?;
    let (b_ih, b_hh) = (c.opt_tensor("b_ih"), c.opt_tensor("b_hh"));
    let gru = mode == Recurrence::Gru;
    let bias = match (b_ih, b_hh) {
        (Some(i), Some(h)) if !gru => Some(Term::from(i) + Term::from(h)),
        (Some(i), _) => Some(Term::from(i)),
        (None, Some(h)) if !gru => Some(Term::from(h)),
        (None, _) => None,
    };
    let gates = match bias {
        Some(bias) => LINEAR.call((x, w_ih, bias)),
        None => LINEAR.call((x, w_ih)),
    };
    let batch = x.size(0) as i64;
    let sizes: Ints = if batch == 0 { Ints::new() } else { Ints::from_elem(batch, 1) };
    let args: Args = smallvec::smallvec![
        gates.into_arg()?,
        states[0].into(),
        states.get(1).copied().into(),
        w_hh.into(),
        b_hh.filter(|_| gru).into(),
        Value::None,
        sizes.into(),
        name.into(),
        false.into(),
    ];
    let mut found = RECURRENT_LAYER.calls(args)?;
    found.remove(0);
    Ok(found)
}

/// Refuses sizes that do not fit together.
fn check(x: &Tensor, states: &[&Tensor], w_ih: &Tensor, w_hh: &Tensor, gates: usize) -> Result<()> {
    if x.ndim() != 2 || w_ih.ndim() != 2 || w_hh.ndim() != 2 {
        return Err(Error::runtime("input and weights must be matrices"));
    }
    if x.size(1) != w_ih.size(1) {
        return Err(Error::runtime(format!(
            "input has inconsistent input_size: got {} expected {}",
            x.size(1),
            w_ih.size(1)
        )));
    }
    let hidden = w_hh.size(1);
    for (i, t) in states.iter().enumerate() {
        if t.ndim() != 2 || t.size(0) != x.size(0) {
            let got = t.shape().first().copied().unwrap_or(0);
            return Err(Error::runtime(format!(
                "Input batch size {} doesn't match hidden{i} batch size {got}",
                x.size(0)
            )));
        }
        if t.size(1) != hidden {
            return Err(Error::runtime(format!(
                "hidden{i} has inconsistent hidden_size: got {}, expected {hidden}",
                t.size(1)
            )));
        }
    }
    if w_hh.size(0) != hidden.saturating_mul(gates) || w_ih.size(0) != w_hh.size(0) {
        return Err(Error::runtime(format!("the weights must have {gates} times hidden_size={hidden} rows")));
    }
    Ok(())
}

pub static LSTM_CELL: Op = Op {
    sig: sig(
        "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor[]",
    ),
    doc: "One step of an LSTM: (hidden state, cell), both [B, H], from the input [B, I] and `hx`, both of the step before.",
    forms: F,
    body: decompose(|c| {
        let Ok([h, cell]) = <[Tensor; 2]>::try_from(c.tensors("hx")) else {
            return Err(Error::runtime("lstm_cell expects two hidden states"));
        };
        step(c, Recurrence::Lstm, "lstm", &[&h, &cell])
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3], [f32[2,2], f32[2,2]], f32[8,3], f32[8,2], f32[8], f32[8]",
        "f32[2,3], [f32[2,2], f32[2,2]], f32[8,3], f32[8,2]",
    ],
    errors: &[
        ("f32[2,3], [f32[2,2]], f32[8,3], f32[8,2]", "RuntimeError", "lstm_cell expects two hidden states"),
        (
            "f32[2,4], [f32[2,2], f32[2,2]], f32[8,3], f32[8,2]",
            "RuntimeError",
            "inconsistent input_size: got 4 expected 3",
        ),
        (
            "f32[2,3], [f32[2,3], f32[2,3]], f32[8,3], f32[8,2]",
            "RuntimeError",
            "inconsistent hidden_size: got 3, expected 2",
        ),
    ],
    ..OP
};

pub static GRU_CELL: Op = Op {
    sig: sig(
        "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
    ),
    doc: "One step of a gated recurrent unit: the hidden state [B, H] from the input [B, I] and the state before.",
    forms: F,
    body: decompose(|c| step(c, Recurrence::Gru, "gru", &[c.tensor("hx")?])),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], f32[2,2], f32[6,3], f32[6,2], f32[6], f32[6]", "f32[2,3], f32[2,2], f32[6,3], f32[6,2]"],
    errors: &[
        ("f32[2,4], f32[2,2], f32[6,3], f32[6,2]", "RuntimeError", "inconsistent input_size: got 4 expected 3"),
        (
            "f32[2,3], f32[3,2], f32[6,3], f32[6,2]",
            "RuntimeError",
            "Input batch size 2 doesn't match hidden0 batch size 3",
        ),
    ],
    ..OP
};

const ELMAN: Op = Op {
    forms: F,
    vjp: Vjp::Composite,
    samples: &["f32[2,3], f32[2,2], f32[2,3], f32[2,2], f32[2], f32[2]", "f32[2,3], f32[2,2], f32[2,3], f32[2,2]"],
    errors: &[("f32[2,4], f32[2,2], f32[2,3], f32[2,2]", "RuntimeError", "inconsistent input_size: got 4 expected 3")],
    ..OP
};

pub static RNN_TANH_CELL: Op = Op {
    sig: sig(
        "rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
    ),
    doc: "`tanh(input @ w_ih^T + b_ih + hx @ w_hh^T + b_hh)`: the hidden state [B, H] of an Elman network.",
    body: decompose(|c| step(c, Recurrence::Tanh, "tanh", &[c.tensor("hx")?])),
    ..ELMAN
};

pub static RNN_RELU_CELL: Op = Op {
    sig: sig(
        "rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
    ),
    doc: "`relu(input @ w_ih^T + b_ih + hx @ w_hh^T + b_hh)`: the hidden state [B, H] of an Elman network.",
    body: decompose(|c| step(c, Recurrence::Relu, "relu", &[c.tensor("hx")?])),
    ..ELMAN
};
