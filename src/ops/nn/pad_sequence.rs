//! Packing sequences of several lengths into one tensor.

use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::movement::cat::STACK;
use crate::ops::movement::pad::CONSTANT_PAD_ND;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&PAD_SEQUENCE];

/// Where a sequence is padded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}
impl Enumerated for Side {
    const VALUES: &'static [(&'static str, Side)] = &[("left", Side::Left), ("right", Side::Right)];
}

fn pad_sequence(c: &Call) -> Result<Outputs> {
    let (sequences, batch_first, side) =
        (c.tensors("sequences"), c.flag("batch_first"), c.choice::<Side>("padding_side"));
    let Some(first) = sequences.first() else { return Err(Error::runtime("received an empty list of sequences")) };
    if let Some(i) = sequences.iter().position(|t| t.ndim() == 0) {
        return Err(Error::runtime(format!("expected sequences with a dimension of time, got a 0-d tensor at {i}")));
    }
    let longest = sequences.iter().map(|t| t.size(0)).max().unwrap_or(0);
    let padded = |t: &Tensor| {
        let rest = (longest - t.size(0)) as i64;
        let before_after = if side == Side::Left { [rest, 0] } else { [0, rest] };
        let pad: Ints = (1..t.ndim()).flat_map(|_| [0, 0]).chain(before_after).collect();
        CONSTANT_PAD_ND.call((Term::from(t).to_dtype(first.dtype()), pad, c.scalar("padding_value")?)).ok()
    };
    let all = sequences.iter().map(padded).collect::<Result<Vec<_>>>()?;
    STACK.calls((all, if batch_first { 0 } else { 1 }))
}

fn unknown_side(_: &Op, given: &str) -> Error {
    Error::runtime(format!("Expected padding_side to be one of left or right, but got {given}."))
}

pub static PAD_SEQUENCE: Op = Op {
    sig: sig(
        "nn.utils.rnn.pad_sequence(Tensor[] sequences, bool batch_first=False, Scalar padding_value=0.0, str{left|right} padding_side='right') -> Tensor",
    ),
    unknown_choice: unknown_side,
    doc: "Sequences of shape `(L_i, *)`, padded to the longest, as one tensor of shape `(L, B, *)`, or `(B, L, *)` where `batch_first`; of the dtype of the first.",
    forms: F,
    body: decompose(pad_sequence),
    vjp: Vjp::Composite,
    samples: &[
        "[f32[2,3], f32[4,3], f32[1,3]]",
        "[f32[2], f32[3]], True",
        "[f32[2,1], f32[3,1]], True, -1.5, padding_side='left'",
        "[i64[2], i64[1]], padding_value=7",
        "[f64[2], f32[0]]",
    ],
    errors: &[
        ("[]", "RuntimeError", "received an empty list of sequences"),
        ("[f32[2]], False, 0.0, 'up'", "RuntimeError", "padding_side to be one of left or right, but got up"),
        ("[f32[]]", "RuntimeError", "got a 0-d tensor at 0"),
        ("[f32[2,3], f32[2,2]]", "RuntimeError", "equal size"),
    ],
    reference: "np.stack([np.pad(x, [(0, max(map(len, x0)) - len(x)) if padding_side == 'right' else (max(map(len, x0)) - len(x), 0)] + [(0, 0)] * (x.ndim - 1), constant_values=padding_value) for x in x0], axis=0 if batch_first else 1)",
    ..OP
};
