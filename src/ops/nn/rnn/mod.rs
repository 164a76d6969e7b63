//! Recurrent networks: `lstm`, `gru`, `rnn_tanh` and `rnn_relu` over padded or packed sequences.
//!
//! The input product of a layer is one product over all steps; what depends on the hidden state is `layer`.

pub mod cells;
pub mod fused;
pub mod layer;

use self::layer::RECURRENT_LAYER;
use super::linear::{DROPOUT, LINEAR};
use crate::error::{Error, Result};
use crate::kinds::Recurrence;
use crate::op::*;
use crate::ops::movement::cat::joined;
use crate::ops::support::host_read::int_list;
use crate::ops::view::split::UNBIND;
use crate::tensor::Tensor;

pub static OPS: &[&Op] =
    &[&LSTM, &LSTM_PACKED, &GRU, &GRU_PACKED, &RNN_TANH, &RNN_TANH_PACKED, &RNN_RELU, &RNN_RELU_PACKED];

/// The layers of a network and how they are run.
struct Network<'a> {
    mode: Recurrence,
    params: &'a [Tensor],
    biases: bool,
    layers: usize,
    dropout: f64,
    directions: usize,
    projected: bool,
}

/// The weights of one direction of a layer.
struct Weights<'a> {
    input: &'a Tensor,
    hidden: &'a Tensor,
    biases: Option<[&'a Tensor; 2]>,
    projection: Option<&'a Tensor>,
}

impl<'a> Network<'a> {
    /// From the arguments that follow the parameters.
    fn of(c: &Call, mode: Recurrence, params: &'a [Tensor], projected: bool) -> Result<Network<'a>> {
        let layers = usize::try_from(c.int("num_layers")?).ok().filter(|&n| n > 0);
        let Some(layers) = layers else { return Err(Error::runtime("num_layers must be greater than zero")) };
        let (dropout, directions) =
            (if c.flag("train") { c.float("dropout")? } else { 0.0 }, 1 + usize::from(c.flag("bidirectional")));
        let net = Network { mode, params, biases: c.flag("has_biases"), layers, dropout, directions, projected };
        if layers.checked_mul(directions).and_then(|n| n.checked_mul(net.stride())) != Some(params.len()) {
            return Err(Error::runtime("got an incorrect number of RNN parameters"));
        }
        Ok(net)
    }
    /// Number of parameters of one direction of a layer.
    fn stride(&self) -> usize {
        2 + 2 * usize::from(self.biases) + usize::from(self.projected)
    }
    fn weights(&self, i: usize) -> Weights<'a> {
        let p = &self.params[i * self.stride()..][..self.stride()];
        Weights {
            input: &p[0],
            hidden: &p[1],
            biases: if self.biases { Some([&p[2], &p[3]]) } else { None },
            projection: if self.projected { p.last() } else { None },
        }
    }
    /// All layers over packed steps `[N, I]`: the output, then the last states `[layers * directions, B, H]`.
    fn run(&self, input: Term, sizes: &[i64], states: &[&Tensor]) -> Result<Outputs> {
        let want = self.layers * self.directions;
        if let Some(t) = states.iter().find(|t| t.ndim() != 3 || t.size(0) != want) {
            let got = crate::error::Show(t.shape()).to_string();
            return Err(Error::runtime(format!("expected states of {want} layers and directions, got shape {got}")));
        }
        let starts: Vec<Outputs> = states.iter().map(|t| UNBIND.calls((*t, 0))).collect::<Result<_>>()?;
        let (mut x, mut lasts) = (input, [Vec::new(), Vec::new()]);
        for layer in 0..self.layers {
            let mut outputs = Vec::new();
            for direction in 0..self.directions {
                let i = layer * self.directions + direction;
                let start: Vec<&Tensor> = starts.iter().map(|s| &s[i]).collect();
                let mut found = self.direction(x.clone(), sizes, &start, self.weights(i), direction == 1)?.into_iter();
                outputs.extend(found.next().map(Term::from));
                lasts.iter_mut().zip(found).for_each(|(all, t)| all.push(t));
            }
            x = if self.directions == 1 { outputs.remove(0) } else { joined(outputs, 1) };
            if self.dropout > 0.0 && layer + 1 < self.layers {
                x = DROPOUT.call((x, self.dropout, true));
            }
        }
        let lasts = lasts.into_iter().take(states.len()).map(|all| crate::ops::movement::cat::STACK.call((all, 0)));
        std::iter::once(x).chain(lasts).map(Term::ok).collect()
    }
    fn direction(&self, x: Term, sizes: &[i64], start: &[&Tensor], w: Weights, reverse: bool) -> Result<Outputs> {
        let gru = self.mode == Recurrence::Gru;
        // Only in a GRU does a gate multiply the bias of the hidden state.
        let bias = w.biases.map(|[i, h]| if gru { Term::from(i) } else { Term::from(i) + Term::from(h) });
        let gates = match bias {
            Some(bias) => LINEAR.call((x, w.input, bias)),
            None => LINEAR.call((x, w.input)),
        };
        let name = Recurrence::VALUES.iter().find(|(_, m)| *m == self.mode).map_or("", |(name, _)| name);
        let args: Args = smallvec::smallvec![
            gates.into_arg()?,
            start[0].into(),
            start.get(1).copied().into(),
            w.hidden.into(),
            w.biases.filter(|_| gru).map(|b| b[1]).into(),
            w.projection.into(),
            sizes.into(),
            name.into(),
            reverse.into(),
        ];
        RECURRENT_LAYER.calls(args)
    }
}

/// Padded sequences `[T, B, I]`, or `[B, T, I]`; the states start at argument 1.
fn padded(c: &Call, mode: Recurrence, states: &[&Tensor], projected: bool) -> Result<Outputs> {
    let (x, params) = (c.tensor(0)?, c.tensors("params"));
    let net = Network::of(c, mode, &params, projected)?;
    if x.ndim() != 3 {
        return Err(Error::runtime(format!("input must have 3 dimensions, got {}", x.ndim())));
    }
    let first = c.flag("batch_first");
    let x = if first { Term::from(x).transpose(0, 1) } else { Term::from(x) };
    let sizes = x.sizes();
    let (steps, batch) = (sizes[0], sizes[1]);
    if steps == 0 {
        return Err(Error::runtime("Expected sequence length to be larger than 0 in RNN"));
    }
    let flat = x.reshape(&[steps * batch, sizes[2]]);
    let per_step = if batch == 0 { Vec::new() } else { crate::rt::reserve::filled(batch, steps as usize)? };
    let mut found = net.run(flat, &per_step, states)?;
    let wide = found[0].size(1) as i64;
    let output = Term::from(&found[0]).reshape(&[steps, batch, wide]);
    found[0] = if first { output.transpose(0, 1).ok()? } else { output.ok()? };
    Ok(found)
}

/// Packed sequences `[N, I]` with the batch size of every step.
fn packed(c: &Call, mode: Recurrence, states: &[&Tensor], projected: bool) -> Result<Outputs> {
    let (x, sizes, params) = (c.tensor("data")?, c.tensor("batch_sizes")?, c.tensors("params"));
    let net = Network::of(c, mode, &params, projected)?;
    if sizes.ndim() != 1 || !sizes.dtype().is_int() {
        return Err(Error::runtime("batch_sizes tensor should be 1D"));
    }
    net.run(Term::from(x), &int_list(sizes)?, states)
}

/// The two states of an LSTM, and whether they differ in size: then there are projections.
fn lstm_states(c: &Call) -> Result<([Tensor; 2], bool)> {
    let Ok(states) = <[Tensor; 2]>::try_from(c.tensors("hx")) else {
        return Err(Error::runtime("lstm expects two hidden states"));
    };
    let width = |t: &Tensor| t.shape().last().copied();
    let projected = width(&states[0]) != width(&states[1]);
    Ok((states, projected))
}

fn lstm_padded(c: &Call) -> Result<Outputs> {
    let (states, projected) = lstm_states(c)?;
    padded(c, Recurrence::Lstm, &[&states[0], &states[1]], projected)
}
fn lstm_packed(c: &Call) -> Result<Outputs> {
    let (states, projected) = lstm_states(c)?;
    packed(c, Recurrence::Lstm, &[&states[0], &states[1]], projected)
}

/// What the networks share.
const NETWORK: Op = Op { forms: F, vjp: Vjp::Composite, ..OP };

pub static LSTM: Op = Op {
    sig: sig(
        "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> Tensor[]",
    ),
    doc: "A long short-term memory network: (output [T, B, D * H], last hidden states and last cells [layers * D, B, H]).\n\n\
          `hx` are the first hidden states and cells, `params` the weights of each layer and direction, in the order of \
          `nn.LSTM`. If hidden states and cells differ in size, the hidden states are projected.",
    body: decompose(lstm_padded),
    samples: &[
        "f32[3,2,2], [f32[1,2,3], f32[1,2,3]], [f32[12,2], f32[12,3], f32[12], f32[12]], True, 1, 0.0, False, False, False",
        "f32[2,3,2], [f32[2,2,3], f32[2,2,3]], [f32[12,2], f32[12,3], f32[12,2], f32[12,3]], False, 1, 0.0, True, True, True",
        "f32[2,2,2], [f32[1,2,1], f32[1,2,2]], [f32[8,2], f32[8,1], f32[1,2]], False, 1, 0.0, False, False, False",
    ],
    errors: &[
        (
            "f32[3,2,2], [f32[1,2,3]], [f32[12,2], f32[12,3]], False, 1, 0.0, False, False, False",
            "RuntimeError",
            "lstm expects two hidden states",
        ),
        (
            "f32[3,2,2], [f32[1,2,3], f32[1,2,3]], [f32[12,2]], False, 1, 0.0, False, False, False",
            "RuntimeError",
            "got an incorrect number of RNN parameters",
        ),
    ],
    ..NETWORK
};

pub static LSTM_PACKED: Op = Op {
    sig: sig(
        "lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> Tensor[]",
    ),
    doc: "`lstm` of packed sequences [N, I].",
    body: reads_host(lstm_packed),
    samples: &[
        "f32[5,2], i64[3](=2,2,1), [f32[2,2,3], f32[2,2,3]], [f32[12,2], f32[12,3], f32[12,2], f32[12,3]], False, 1, 0.0, False, True",
    ],
    errors: &[(
        "f32[5,2], f32[3], [f32[1,2,3], f32[1,2,3]], [f32[12,2], f32[12,3]], False, 1, 0.0, False, False",
        "RuntimeError",
        "batch_sizes tensor should be 1D",
    )],
    ..NETWORK
};

pub static GRU: Op = Op {
    sig: sig(
        "gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> Tensor[]",
    ),
    doc: "A network of gated recurrent units: (output [T, B, D * H], last hidden states [layers * D, B, H]).\n\n\
          `params` are the weights of each layer and direction, in the order of `nn.GRU`.",
    body: decompose(|c| padded(c, Recurrence::Gru, &[c.tensor("hx")?], false)),
    samples: &[
        "f32[3,2,2], f32[1,2,3], [f32[9,2], f32[9,3], f32[9], f32[9]], True, 1, 0.0, False, False, False",
        "f32[2,3,2], f32[2,2,3], [f32[9,2], f32[9,3], f32[9,2], f32[9,3]], False, 1, 0.0, True, True, True",
    ],
    errors: &[(
        "f32[3,2,2], f32[1,2,3], [f32[9,2]], False, 1, 0.0, False, False, False",
        "RuntimeError",
        "got an incorrect number of RNN parameters",
    )],
    ..NETWORK
};

pub static GRU_PACKED: Op = Op {
    sig: sig(
        "gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> Tensor[]",
    ),
    doc: "`gru` of packed sequences [N, I].",
    body: reads_host(|c| packed(c, Recurrence::Gru, &[c.tensor("hx")?], false)),
    samples: &[
        "f32[5,2], i64[3](=2,2,1), f32[2,2,3], [f32[9,2], f32[9,3], f32[9,2], f32[9,3]], False, 1, 0.0, False, True",
    ],
    errors: &[(
        "f32[5,2], f32[3], f32[1,2,3], [f32[9,2], f32[9,3]], False, 1, 0.0, False, False",
        "RuntimeError",
        "batch_sizes tensor should be 1D",
    )],
    ..NETWORK
};

const ELMAN: Op = Op {
    samples: &["f32[3,2,2], f32[1,2,3], [f32[3,2], f32[3,3], f32[3], f32[3]], True, 1, 0.0, False, False, False"],
    errors: &[(
        "f32[3,2,2], f32[1,2,3], [f32[3,2]], False, 1, 0.0, False, False, False",
        "RuntimeError",
        "got an incorrect number of RNN parameters",
    )],
    ..NETWORK
};
const ELMAN_PACKED: Op = Op {
    samples: &["f32[5,2], i64[3](=2,2,1), f32[1,2,3], [f32[3,2], f32[3,3]], False, 1, 0.0, False, False"],
    errors: &[(
        "f32[5,2], f32[3], f32[1,2,3], [f32[3,2], f32[3,3]], False, 1, 0.0, False, False",
        "RuntimeError",
        "batch_sizes tensor should be 1D",
    )],
    ..NETWORK
};

pub static RNN_TANH: Op = Op {
    sig: sig(
        "rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> Tensor[]",
    ),
    doc: "An Elman network with tanh: (output [T, B, D * H], last hidden states [layers * D, B, H]).",
    body: decompose(|c| padded(c, Recurrence::Tanh, &[c.tensor("hx")?], false)),
    ..ELMAN
};

pub static RNN_TANH_PACKED: Op = Op {
    sig: sig(
        "rnn_tanh.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> Tensor[]",
    ),
    doc: "`rnn_tanh` of packed sequences [N, I].",
    body: reads_host(|c| packed(c, Recurrence::Tanh, &[c.tensor("hx")?], false)),
    ..ELMAN_PACKED
};

pub static RNN_RELU: Op = Op {
    sig: sig(
        "rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> Tensor[]",
    ),
    doc: "An Elman network with relu: (output [T, B, D * H], last hidden states [layers * D, B, H]).",
    body: decompose(|c| padded(c, Recurrence::Relu, &[c.tensor("hx")?], false)),
    ..ELMAN
};

pub static RNN_RELU_PACKED: Op = Op {
    sig: sig(
        "rnn_relu.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> Tensor[]",
    ),
    doc: "`rnn_relu` of packed sequences [N, I].",
    body: reads_host(|c| packed(c, Recurrence::Relu, &[c.tensor("hx")?], false)),
    ..ELMAN_PACKED
};
