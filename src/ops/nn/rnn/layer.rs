//! One direction of a recurrent layer over packed steps, its input product computed already.
//!
//! Packed steps: first the rows of all sequences at step 0, then those at step 1, ..; sequences are sorted by length, so
//! that the sequences alive at step t are the first `batch_sizes[t]`. Padded sequences are the case of equal sizes.
//! Formulas: Hochreiter and Schmidhuber, "Long Short-Term Memory" (1997), with the forget gate of Gers et al. (2000);
//! Cho et al., arXiv:1406.1078, with the reset gate after the product, as in cuDNN.

use super::fused;
use crate::error::{Error, Result, Show};
use crate::kinds::Recurrence;
use crate::op::*;
use crate::ops::activation::smooth::RELU;
use crate::ops::movement::cat::joined;
use crate::ops::view::reshape::SLICE;
use crate::ops::view::split::UNSAFE_CHUNK;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&RECURRENT_LAYER];

impl Enumerated for Recurrence {
    const VALUES: &'static [(&'static str, Recurrence)] =
        &[("lstm", Recurrence::Lstm), ("gru", Recurrence::Gru), ("tanh", Recurrence::Tanh), ("relu", Recurrence::Relu)];
}

pub(crate) const SIG: Signature = sig(
    "_recurrent_layer(Tensor gates, Tensor hx, Tensor? cx, Tensor weight, Tensor? bias, Tensor? projection, int[] batch_sizes, str{lstm|gru|tanh|relu} mode, bool reverse) -> Tensor[]",
);

pub static RECURRENT_LAYER: Op = Op {
    sig: SIG,
    doc: "One direction of a recurrent layer: (hidden states of all steps [N, H], last hidden states [B, H], last cells [B, H]).\n\n\
          `gates` [N, G * H] are the input products of the packed steps with their biases, `weight` [G * H, H] and `bias` [G * H] \
          those of the hidden state. A `projection` [P, H] makes the hidden states [.., P]. Only an LSTM has cells.",
    forms: HIDDEN,
    body: decompose(|c| {
        check(c)?;
        if fused::serves(c) { fused::run(c) } else { steps(c) }
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[5,8], f32[2,2], f32[2,2], f32[8,2], None, None, (2, 2, 1), 'lstm', False",
        "f32[5,8], f32[2,2], f32[2,2], f32[8,2], None, None, (2, 2, 1), 'lstm', True",
        "f32[4,8], f32[2,1], f32[2,2], f32[8,1], None, f32[1,2], (2, 2), 'lstm', False",
        "f32[5,6], f32[2,2], None, f32[6,2], f32[6], None, (2, 2, 1), 'gru', False",
        "f32[5,6], f32[2,2], None, f32[6,2], None, None, (2, 2, 1), 'gru', True",
        "f32[5,2], f32[2,2], None, f32[2,2], None, None, (2, 2, 1), 'tanh', False",
        "f32[5,2], f32[2,2], None, f32[2,2], None, None, (2, 2, 1), 'relu', True",
    ],
    errors: &[
        (
            "f32[5,8], f32[2,2], f32[2,2], f32[8,2], None, None, (2, 2), 'lstm', False",
            "RuntimeError",
            "batch_sizes must be positive, not increase and add up to the number of rows",
        ),
        (
            "f32[4,8], f32[2,2], f32[2,2], f32[6,2], None, None, (2, 2), 'lstm', False",
            "RuntimeError",
            "do not fit a hidden state",
        ),
        ("f32[4,8], f32[2,2], None, f32[8,2], None, None, (2, 2), 'lstm', False", "RuntimeError", "an LSTM has cells"),
    ],
    ..OP
};

/// Refuses operands that do not fit together.
pub(crate) fn check(c: &Call) -> Result<()> {
    let (gates, hx, weight) = (c.tensor("gates")?, c.tensor("hx")?, c.tensor("weight")?);
    let mode: Recurrence = c.choice("mode");
    let (cx, projection, sizes) = (c.opt_tensor("cx"), c.opt_tensor("projection"), c.ints("batch_sizes")?);
    if (mode == Recurrence::Lstm) != cx.is_some() || (projection.is_some() && cx.is_none()) {
        return Err(Error::runtime("an LSTM has cells and may have a projection, other recurrent layers have neither"));
    }
    let matrices = [Some(gates), Some(hx), Some(weight), cx, projection];
    if matrices.iter().flatten().any(|t| t.ndim() != 2) {
        return Err(Error::runtime("gates, states and weights must be matrices"));
    }
    let (batch, state) = (hx.size(0), hx.size(1));
    let hidden = projection.map_or(state, |p| p.size(1));
    let wide = hidden.saturating_mul(mode.gates());
    let fits = gates.size(1) == wide
        && weight.shape() == [wide, state]
        && cx.is_none_or(|t| t.shape() == [batch, hidden])
        && projection.is_none_or(|t| t.shape() == [state, hidden])
        && c.opt_tensor("bias").is_none_or(|t| t.shape() == [wide]);
    if !fits {
        return Err(Error::runtime(format!(
            "gates of shape {} and a weight of shape {} do not fit a hidden state of shape {}",
            Show(gates.shape()),
            Show(weight.shape()),
            Show(hx.shape())
        )));
    }
    let total = sizes.iter().try_fold(0i64, |sum, &n| sum.checked_add(n));
    let falling = sizes.windows(2).all(|w| w[0] >= w[1]) && sizes.last().is_none_or(|&n| n > 0);
    if !falling || total != Some(gates.size(0) as i64) || sizes.first().is_some_and(|&n| n as usize != batch) {
        return Err(Error::runtime(
            "batch_sizes must be positive, not increase and add up to the number of rows of the input, and the first be the batch size",
        ));
    }
    Ok(())
}

/// Rows `from..to` of a matrix; the matrix itself where those are all.
fn rows(t: &Term, from: i64, to: i64) -> Term {
    if from == 0 && t.sizes().first() == Some(&to) { t.clone() } else { SLICE.call((t, 0, from, to)) }
}

/// The layer step by step, by other ops.
pub(crate) fn steps(c: &Call) -> Result<Outputs> {
    let cell = Cell {
        mode: c.choice("mode"),
        weight: Term::from(c.tensor("weight")?).t(),
        bias: c.opt_tensor("bias").map(Term::from),
        projection: c.opt_tensor("projection").map(|t| Term::from(t).t()),
    };
    let (gates, sizes) = (Term::from(c.tensor("gates")?), c.ints("batch_sizes")?);
    let start: Vec<Term> = [Some(c.tensor("hx")?), c.opt_tensor("cx")].into_iter().flatten().map(Term::from).collect();
    let (mut state, mut ended): (Vec<Term>, Vec<Vec<Term>>) = (start.clone(), Vec::new());
    let mut outputs = Vec::new();
    let order: Box<dyn Iterator<Item = usize>> =
        if c.flag("reverse") { Box::new((0..sizes.len()).rev()) } else { Box::new(0..sizes.len()) };
    let mut at = if c.flag("reverse") { c.tensor("gates")?.size(0) as i64 } else { 0 };
    let mut alive = if c.flag("reverse") { 0 } else { c.tensor("hx")?.size(0) as i64 };
    for t in order {
        let n = sizes[t];
        if n < alive {
            ended.push(state.iter().map(|s| rows(s, n, alive)).collect());
            state = state.iter().map(|s| rows(s, 0, n)).collect();
        } else if alive == 0 {
            state = start.iter().map(|s| rows(s, 0, n)).collect();
        } else if n > alive {
            state = state.iter().zip(&start).map(|(s, all)| joined([s.clone(), rows(all, alive, n)], 0)).collect();
        }
        alive = n;
        let from = if c.flag("reverse") { at - n } else { at };
        state = cell.step(rows(&gates, from, from + n), state);
        outputs.push(state[0].clone());
        at = if c.flag("reverse") { from } else { from + n };
    }
    ended.push(state);
    if c.flag("reverse") {
        outputs.reverse();
    }
    // Of no rows too the output depends on the weights.
    let none = || cell.step(rows(&gates, 0, 0), start.iter().map(|s| rows(s, 0, 0)).collect()).swap_remove(0);
    let output = if outputs.is_empty() { none() } else { joined(outputs, 0) };
    let last = (0..start.len()).map(|i| match ended.as_slice() {
        [all] => all[i].clone(),
        parts => joined(parts.iter().rev().map(|p| p[i].clone()), 0),
    });
    std::iter::once(output).chain(last).map(Term::ok).collect()
}

/// The weights of the hidden state, transposed.
struct Cell {
    mode: Recurrence,
    weight: Term,
    bias: Option<Term>,
    projection: Option<Term>,
}

impl Cell {
    /// The next state from the input's gates and this state.
    fn step(&self, gates: Term, state: Vec<Term>) -> Vec<Term> {
        let mut own = state[0].clone().mm(self.weight.clone());
        if let Some(bias) = &self.bias {
            own = own + bias.clone();
        }
        match self.mode {
            Recurrence::Tanh => vec![(gates + own).tanh()],
            Recurrence::Relu => vec![RELU.call((gates + own,))],
            Recurrence::Lstm => {
                let [i, f, g, o] = parts(gates + own);
                let cell = f.sigmoid() * state[1].clone() + i.sigmoid() * g.tanh();
                let hidden = o.sigmoid() * cell.clone().tanh();
                let hidden = self.projection.iter().fold(hidden, |h, p| h.mm(p.clone()));
                vec![hidden, cell]
            }
            Recurrence::Gru => {
                let ([r, z, n], [own_r, own_z, own_n]) = (parts(gates), parts(own));
                let (reset, update) = ((r + own_r).sigmoid(), (z + own_z).sigmoid());
                let new = (n + reset * own_n).tanh();
                vec![new.clone() + update * (state[0].clone() - new)]
            }
        }
    }
}

/// Equal parts of the columns.
fn parts<const N: usize>(t: Term) -> [Term; N] {
    match t.ok().and_then(|t| UNSAFE_CHUNK.calls((&t, N, 1))) {
        Ok(found) if found.len() == N => {
            let mut found: Vec<Tensor> = found.into_iter().collect();
            std::array::from_fn(|_| Term::from(found.remove(0)))
        }
        Ok(_) => std::array::from_fn(|_| Error::internal("as many parts as gates were expected").into()),
        Err(e) => std::array::from_fn(|_| Error::new(e.class(), e.to_string()).into()),
    }
}
