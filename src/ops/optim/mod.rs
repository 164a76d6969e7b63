//! Optimizer steps as ops over lists of tensors: parameters and state change in one pass over memory.
//!
//! Names, arguments and arithmetic are those of PyTorch's fused optimizers; where it has none, those of its functions.

pub mod foreach;
pub mod adadelta;
pub mod adagrad;
pub mod adam;
pub mod adamax;
pub mod asgd;
pub mod nadam;
mod pass;
pub mod radam;
pub mod rmsprop;
pub mod rprop;
pub mod sgd;

use super::support::host_read;
use crate::cpu::arith::Float;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::*;
use crate::tensor::Tensor;

/// What the steps have in common.
const STEP: Op =
    Op { forms: HIDDEN, vjp: Vjp::None("an optimizer step"), alias_policy: Some(AliasPolicy::MayAlias), ..OP };

/// The number of the step of each parameter, from a list of tensors of one element.
fn steps(c: &Call) -> Result<Vec<f64>> {
    numbers(c, "state_steps", "step count")
}

/// A number of each parameter, from such a list.
fn numbers(c: &Call, list: &str, what: &str) -> Result<Vec<f64>> {
    let number = |t: &Tensor| match t.numel() {
        1 => Ok(host_read::item(t)?.to_f64()),
        n => Err(Error::runtime(format!("a {what} must have one element, got {n}"))),
    };
    let numbers = crate::rt::reserve::try_list(c.argument(list).tensors().map(number))?;
    match c.args[0].tensors().count() {
        n if n == numbers.len() => Ok(numbers),
        n => Err(Error::runtime(format!("expected one {what} per parameter; expected {n}, got {}", numbers.len()))),
    }
}

/// A number as a tensor holds it.
fn rounded(t: &Tensor, number: f64) -> f64 {
    if t.dtype() == DType::F32 { number as f32 as f64 } else { number }
}

/// Powers of the two factors of running averages at the step of a parameter. Parameters nearly always count the same
/// steps: two powers for all of them.
struct Powers {
    betas: [f64; 2],
    step: f64,
    powers: [f64; 2],
}

impl Powers {
    fn of(betas: [f64; 2]) -> Powers {
        Powers { betas, step: f64::NAN, powers: [f64::NAN; 2] }
    }
    fn at(&mut self, step: f64) -> [f64; 2] {
        if step != self.step {
            (self.step, self.powers) = (step, self.betas.map(|beta| beta.powf(step)));
        }
        self.powers
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

pub static OPS: &[&[&Op]] = &[
    adadelta::OPS,
    adagrad::OPS,
    adam::OPS,
    adamax::OPS,
    asgd::OPS,
    foreach::OPS,
    nadam::OPS,
    radam::OPS,
    rmsprop::OPS,
    rprop::OPS,
    sgd::OPS,
];
