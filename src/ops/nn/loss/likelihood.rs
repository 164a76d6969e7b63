//! The negative log likelihood of numbers under normal distributions: gaussian_nll.

use super::reduced;
use crate::autograd::GradGuard;
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::create::like::FULL_LIKE;
use crate::ops::elementwise::compare::LT;
use crate::ops::elementwise::minmax::CLAMP_MIN;
use crate::ops::movement::copy::CLONE;
use crate::ops::reduce::any_all::ANY;
use crate::ops::support::host_read;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&GAUSSIAN_NLL_LOSS, &CHECK_VARIANCES];

pub static CHECK_VARIANCES: Op = Op {
    sig: sig("_check_variances(Tensor var) -> Tensor[]"),
    doc: "An error where an element is negative; no results. Waits for the device.",
    forms: HIDDEN,
    body: opaque(
        |_| Ok(Specs::new()),
        |c| match host_read::item(&ANY.call((LT.call((c.tensor("var")?, 0)),)).ok()?)?.to_bool() {
            true => Err(negative()),
            false => Ok(Outputs::new()),
        },
    ),
    vjp: Vjp::None("a check"),
    samples: &["f32[3](pos)", "f32[0]"],
    errors: &[("f32[2](neg)", "ValueError", "var has negative entry/entries")],
    reference: "[]",
    ..OP
};

fn negative() -> Error {
    Error::value("var has negative entry/entries")
}

pub static GAUSSIAN_NLL_LOSS: Op = Op {
    sig: sig(
        "nn.functional.gaussian_nll_loss(Tensor input, Tensor target, Operand var, bool full=False, float eps=1e-06, str{none|mean|sum} reduction='mean') -> Tensor",
    ),
    unknown_choice: |_, given| Error::value(format!("{given} is not valid")),
    doc: "`(log v + (x - t)^2 / v) / 2` for the mean `input` and the variance `v = max(var, eps)`; averaged, summed or as it is.\n\n`var` is a number, has the shape of `input`, or lacks its last dimension, or has size one in one dimension. `full` adds `log(2 pi) / 2`.",
    forms: F,
    body: decompose(gaussian_nll),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3], f32[2,3](nograd), f32[2,3](pos)",
        "f32[2,3], f32[2,3](nograd), f32[2](pos), full=True",
        "f32[2,3], f32[2,3](nograd), f32[2,1](pos), reduction='sum'",
        "f32[2,3], f32[2,3](nograd), 0.5, reduction='none'",
    ],
    errors: &[
        ("f32[2], f32[2], f32[2](pos), reduction='no'", "ValueError", "no is not valid"),
        ("f32[2], f32[2], f32[2](neg)", "ValueError", "var has negative entry/entries"),
        ("f32[2,3], f32[2,3], f32[3](pos)", "ValueError", "var is of incorrect size"),
    ],
    ..OP
};

/// The variances, in a shape that broadcasts to the input.
fn variances(c: &Call) -> Result<Term> {
    let x = c.tensor(0)?;
    let Some(var) = c.opt_tensor("var") else {
        let var = c.scalar("var")?;
        return match var.to_f64() < 0.0 {
            true => Err(negative()),
            false => Ok(FULL_LIKE.call((x, var))),
        };
    };
    CHECK_VARIANCES.calls((var,))?;
    let one_differs = || {
        let differing = x.shape().iter().zip(var.shape()).filter(|(a, b)| a != b);
        x.ndim() == var.ndim() && differing.map(|(_, n)| n).sum::<usize>() == 1
    };
    if var.shape() == x.shape() || one_differs() {
        Ok(Term::from(var))
    } else if x.shape().split_last().is_some_and(|(_, rest)| rest == var.shape()) {
        Ok(Term::from(var).unsqueeze(-1))
    } else {
        Err(Error::value("var is of incorrect size"))
    }
}

/// A copy that is no less than `least`; the limit has no part in the gradient.
fn limited(var: Term, least: f64) -> Result<Tensor> {
    let copy = CLONE.call((var,)).ok()?;
    // As in PyTorch, no part of the graph that is recorded around it.
    let _unrecorded = GradGuard::new(false);
    CLAMP_MIN.call_inplace((&copy, Scalar::Float(least)))
}

fn gaussian_nll(c: &Call) -> Result<Outputs> {
    let [x, target] = [c.tensor(0)?, c.tensor("target")?];
    let var = limited(variances(c)?, c.float("eps")?)?;
    let squares = (Term::from(x) - target).pow(2.0);
    let mut loss = (Term::from(&var).log() + squares / &var) * 0.5;
    if c.flag("full") {
        loss = loss + 0.5 * (2.0 * std::f64::consts::PI).ln();
    }
    reduced(c, loss)
}
