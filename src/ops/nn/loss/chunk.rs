//! The cross entropy of a linear layer's output without keeping that output: what `linear_cross_entropy` does to each chunk
//! of its rows.

use super::Reduction;
use super::cross_entropy::CROSS_ENTROPY;
use crate::error::Result;
use crate::op::gradient::Saves;
use crate::op::*;
use crate::ops::nn::linear::LINEAR;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&LINEAR_CROSS_ENTROPY_CHUNK];

/// The class weights are argument 4.
const WEIGHTS: Saves = 1 << 4;

pub static LINEAR_CROSS_ENTROPY_CHUNK: Op = Op {
    sig: sig(
        "_linear_cross_entropy_chunk(Tensor input, Tensor linear_weight, Tensor target, Tensor? linear_bias=None, Tensor? weight=None, int reduction=2, int ignore_index=-100) -> Tensor",
    ),
    doc: "`cross_entropy(linear(input, linear_weight, linear_bias), target)` with `reduction` 0 (none) or 2 (sum). The logits are computed again for the gradient.",
    forms: HIDDEN,
    body: decompose(steps),
    vjp: Vjp::Joint(Joint { args: &[0, 1, 3], saves: A0 | A1 | A2 | A3 | WEIGHTS, formula: |c| c.through(steps) }),
    samples: &[
        "f32[3,2], f32[4,2], i64[3](0..4)",
        "f32[3,2], f32[4,2], i64[3](= 0, 3, 1), f32[4], f32[4](pos, nograd), 0, 3",
    ],
    errors: &[("f32[3,2], f32[4,3], i64[3](0..4)", "RuntimeError", "shapes cannot be multiplied")],
    ..OP
};

fn steps(c: &Call) -> Result<Outputs> {
    let a = |i: usize| c.args[i].reborrow();
    let logits = LINEAR.call((a(0), a(1), a(3))).ok()?;
    let how = Reduction::numbered(c.int("reduction")?)?.name();
    let args: Args = smallvec![logits.into(), a(2), a(4), Value::None, a(6), Value::None, how.into()];
    CROSS_ENTROPY.calls(args)
}
