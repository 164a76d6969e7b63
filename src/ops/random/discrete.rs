//! Random counts whose parameters are tensors: poisson and binomial.
//!
//! They are drawn only on the CPU, where how many numbers a sample takes may depend on chance.

use super::distributions::source;
use crate::cpu::discrete_random;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::broadcast;
use crate::op::*;
use crate::ops::indexing::mask::broadcast_view;
use crate::ops::support::host_read::Dense;
use crate::ops::support::promotion::no_kernel;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&POISSON, &BINOMIAL];

/// Draws, written to the output in its dtype.
pub(crate) fn written(out: &Tensor, draw: impl FnOnce(&mut [f64])) -> Result<()> {
    let mut drawn = crate::rt::reserve::filled(0.0, out.numel())?;
    draw(&mut drawn);
    out.copy_raw(&Term(Tensor::from_slice(&drawn, out.shape())).to_dtype(out.dtype()).ok()?)
}

fn poisson(c: &Call, out: &[Tensor]) -> Result<()> {
    let rates = c.tensor(0)?.detach();
    // Rejects NaN too.
    if Term::from(&rates).at_least(0).not().any_true()? {
        return Err(Error::runtime("invalid Poisson rate, expected rate to be non-negative"));
    }
    let rates = Dense::<f64>::of(&rates)?;
    let (rates, source) = (rates.elements()?, source(c, out[0].device())?);
    written(&out[0], |drawn| source.draw(|m| discrete_random::poisson(rates, drawn, m)))
}

pub static POISSON: Op = Op {
    sig: sig("poisson(Tensor self, Generator? generator=None) -> Tensor"),
    doc: "Random counts of the Poisson distributions with the rates that self holds.",
    forms: F,
    body: kernel(
        |c| {
            let t = c.tensor(0)?;
            if t.dtype().is_float() { Ok(smallvec![Spec::like(t)]) } else { Err(no_kernel("poisson_cpu", t.dtype())) }
        },
        poisson,
        None,
    ),
    vjp: Vjp::Zero(&[0]),
    keeps: Some(""),
    samples: &["f32[2,3](zeros)", "f64[2,0]"],
    errors: &[
        ("f32[2](= 1, -1)", "RuntimeError", "invalid Poisson rate, expected rate to be non-negative"),
        ("f32[](= nan)", "RuntimeError", "invalid Poisson rate"),
        ("i64[2]", "NotImplementedError", "\"poisson_cpu\" not implemented for 'Long'"),
    ],
    reference: "x0",
    batch: Batching::Leading,
    ..OP
};

fn trials(c: &Call) -> Result<Specs> {
    let (count, prob) = (c.tensor("count")?, c.tensor("prob")?);
    for (t, name) in [(count, "count"), (prob, "prob")] {
        if !t.dtype().is_float() {
            let got = t.dtype().scalar_type_name();
            return Err(Error::value(format!("binomial only supports floating-point dtypes for {name}, got: {got}")));
        }
    }
    let shape = broadcast(count.shape(), prob.shape())?;
    let [wanted, got] = [count, prob].map(|t| t.dtype());
    if got != wanted {
        let (got, wanted) = (got.scalar_type_name(), wanted.scalar_type_name());
        return Err(Error::runtime(format!("Found dtype {got} but expected {wanted}")));
    }
    if !matches!(wanted, DType::F32 | DType::F64) {
        return Err(no_kernel("binomial_cpu", wanted));
    }
    Ok(Spec::one(&shape, wanted, count.device()))
}

fn binomial(c: &Call, out: &[Tensor]) -> Result<()> {
    let wide = |i: usize| Dense::<f64>::of(&broadcast_view(&c.tensor(i)?.detach(), out[0].shape()));
    let (count, prob) = (wide(0)?, wide(1)?);
    let (count, prob, source) = (count.elements()?, prob.elements()?, source(c, out[0].device())?);
    written(&out[0], |drawn| source.draw(|m| discrete_random::binomial(count, prob, drawn, m)))
}

pub static BINOMIAL: Op = Op {
    sig: sig("binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor"),
    doc: "How many of `count` trials succeed that each do with probability `prob`.",
    forms: F,
    body: kernel(trials, binomial, None),
    vjp: Vjp::Missing,
    samples: &[
        "f32[2,3](= 3, 4, 1, 0, 100, 7, nograd), f32[3](ones, nograd)",
        "f64[3](= 3, 4, 1e9, nograd), f64[2,1](zeros, nograd)",
        "f32[4](= 0, -1, -2.5, 3, nograd), f32[4](= 0.5, 0.5, 0.5, -1, nograd)",
    ],
    errors: &[
        ("i64[2], f32[2]", "ValueError", "binomial only supports floating-point dtypes for count, got: Long"),
        ("f32[2], i64[2]", "ValueError", "binomial only supports floating-point dtypes for prob, got: Long"),
        ("f32[2], f64[2]", "RuntimeError", "Found dtype Double but expected Float"),
        ("f16[2], f16[2]", "NotImplementedError", "\"binomial_cpu\" not implemented for 'Half'"),
        ("f32[2], f32[3]", "RuntimeError", "must match the size"),
    ],
    reference: "np.where(x1 >= 1, np.maximum(x0, 0), 0) + 0 * x1",
    batch: Batching::Leading,
    ..OP
};
