//! Optimizer steps as ops over lists of tensors: parameters and state change in one pass over memory.
//!
//! Names, arguments and arithmetic are those of PyTorch's fused optimizers.

pub mod foreach;
pub mod adagrad;
pub mod adam;
mod pass;
pub mod sgd;

use super::support::host_read;
use crate::cpu::arith::Float;
use crate::error::{Error, Result};
use crate::op::*;
use crate::tensor::Tensor;

/// What the steps have in common.
const STEP: Op =
    Op { forms: HIDDEN, vjp: Vjp::None("an optimizer step"), alias_policy: Some(AliasPolicy::MayAlias), ..OP };

/// The number of the step of each parameter, from a list of tensors of one element.
fn steps(c: &Call, list: usize) -> Result<Vec<f64>> {
    let number = |t: &Tensor| match t.numel() {
        1 => Ok(host_read::item(t)?.to_f64()),
        n => Err(Error::runtime(format!("a step count must have one element, got {n}"))),
    };
    let steps = crate::rt::reserve::try_list(c.args[list].tensors().map(number))?;
    match c.args[0].tensors().count() {
        n if n == steps.len() => Ok(steps),
        n => Err(Error::runtime(format!("expected one step count per parameter; expected {n}, got {}", steps.len()))),
    }
}

/// The sign of the gradient that is followed downwards.
fn sign(maximize: bool) -> f64 {
    if maximize { -1.0 } else { 1.0 }
}

/// The gradient with the decay, which is left out where it is zero: zero times an infinite parameter is no number.
#[inline(always)]
fn decayed<T: Float>(g: T, p: T, decay: T, decays: bool) -> T {
    if decays { g.plus(p.times(decay)) } else { g }
}

use crate::op::Op;

pub static OPS: &[&[&Op]] = &[adagrad::OPS, adam::OPS, foreach::OPS, sgd::OPS];
