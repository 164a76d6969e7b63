//! Samples of the gamma and Dirichlet distributions, and their derivatives in the parameters.
//!
//! Drawn only on the CPU, as the counts are (`discrete.rs`).

use super::discrete::written;
use super::distributions::source;
use crate::cpu::{gamma_draws, pathwise};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::*;
use crate::ops::support::host_read::Dense;
use crate::ops::support::promotion::{no_kernel, wide2, wide3};
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&STANDARD_GAMMA, &STANDARD_GAMMA_GRAD, &SAMPLE_DIRICHLET, &DIRICHLET_GRAD];

fn floats(c: &Call, name: &str) -> Result<Specs> {
    let t = c.tensor(0)?;
    if t.dtype().is_float() { Ok(smallvec![Spec::like(t)]) } else { Err(no_kernel(name, t.dtype())) }
}

/// The smallest positive normal number: samples that underflow are raised to it, so that their logarithms are finite.
fn tiny(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::MIN_POSITIVE,
        DType::F16 => half::f16::MIN_POSITIVE.to_f64(),
        _ => f32::MIN_POSITIVE as f64,
    }
}

/// The largest number below one: samples of the simplex lie inside it.
fn below_one(dtype: DType) -> f64 {
    let bits = match dtype {
        DType::F64 => 53,
        DType::F16 => 11,
        DType::BF16 => 8,
        _ => 24,
    };
    1.0 - 2f64.powi(-bits)
}

pub static STANDARD_GAMMA: Op = Op {
    sig: sig("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor"),
    doc: "Samples of the gamma distributions with the shapes that self holds and unit rate.",
    forms: HIDDEN,
    body: kernel(
        |c| floats(c, "gamma"),
        |c, out| {
            let shapes = Dense::<f64>::of(&c.tensor(0)?.detach())?;
            let (shapes, least) = (shapes.elements()?, tiny(out[0].dtype()));
            let source = source(c, out[0].device())?;
            written(&out[0], |drawn| {
                source.draw(|m| gamma_draws::gamma(shapes, drawn, m));
                drawn.iter_mut().filter(|x| **x < least).for_each(|x| *x = least);
            })
        },
        None,
    ),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| c.g() * STANDARD_GAMMA_GRAD.call((c.arg(0), c.out(0))))]),
    samples: &["f32[2,3](zeros, nograd)", "f64[2,0]"],
    errors: &[("i64[2]", "NotImplementedError", "not implemented for 'Long'")],
    reference: "np.full_like(x0, np.finfo(x0.dtype).tiny)",
    batch: Batching::Leading,
    ..OP
};

pub static STANDARD_GAMMA_GRAD: Op = Op {
    sig: sig("_standard_gamma_grad(Tensor self, Tensor output) -> Tensor"),
    doc: "The derivative of a sample `output` of `_standard_gamma` in the shape `self`, at a fixed quantile.",
    forms: HIDDEN,
    body: elementwise(&wide2(pathwise::gamma_slope, "")),
    vjp: Vjp::Missing,
    row_major: true,
    samples: &[
        "f64[3](= 0.5, 1, 20, nograd), f64[3](= 0.1, 3, 19, nograd)",
        "f32[2,3](pos, nograd), f32[3](pos, nograd)",
    ],
    errors: &[("f32[2], f32[3]", "RuntimeError", "must match the size")],
    reference: "(scipy.special.gammainc(x0 * (1 - 1e-5), x1) - scipy.special.gammainc(x0 * (1 + 1e-5), x1)) / (x0 * 2e-5) / scipy.stats.gamma.pdf(x1, x0)",
    ..OP
};

/// The rows of all examples; a number alone is no row.
fn simplices(c: &BatchedCall) -> Result<Outputs> {
    if c.ndim(0) == 0 {
        return Err(crate::ops::support::batch::no_rule());
    }
    c.again(&c.mapped(|o| c.whole(o.arg))?)
}

pub static SAMPLE_DIRICHLET: Op = Op {
    sig: sig("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor"),
    doc: "Samples of the Dirichlet distributions whose concentrations are the rows of self.",
    forms: HIDDEN,
    body: kernel(
        |c| floats(c, "dirichlet"),
        |c, out| {
            let t = c.tensor(0)?.detach();
            let concentrations = Dense::<f64>::of(&t)?;
            let (concentrations, source) = (concentrations.elements()?, source(c, out[0].device())?);
            written(&out[0], |drawn| {
                let rows = t.shape().last().copied().unwrap_or(1);
                source.draw(|m| gamma_draws::dirichlet(concentrations, rows, drawn, m));
                let (least, most) = (tiny(out[0].dtype()), below_one(out[0].dtype()));
                // NaN stays.
                drawn.iter_mut().for_each(|x| *x = x.clamp(least, most));
            })
        },
        None,
    ),
    // `distributions.Dirichlet` has the gradient, by `_dirichlet_grad`.
    vjp: Vjp::Missing,
    batch: Batching::Rule(simplices),
    samples: &["f32[2,1](ones, nograd)", "f64[2,0](nograd)"],
    errors: &[("i64[2]", "NotImplementedError", "not implemented for 'Long'")],
    reference: "np.ones_like(x0)",
    ..OP
};

pub static DIRICHLET_GRAD: Op = Op {
    sig: sig("_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor"),
    doc: "The derivative of a coordinate `x` of a Dirichlet sample in its concentration, divided by `1 - x`.",
    forms: HIDDEN,
    body: elementwise(&wide3(pathwise::dirichlet_slope, "")),
    vjp: Vjp::Missing,
    samples: &[
        "f64[4](= 0.1, 0.5, 0.9, 0.31, nograd), f64[4](= 0.5, 1, 20, 30, nograd), f64[4](= 1, 3, 22, 100, nograd)",
        "f32[3](= 0.1, 0.5, 0.9, nograd), f32[1](= 2, nograd), f32[2,1](= 3, 5, nograd)",
    ],
    errors: &[("f32[2], f32[3], f32[2]", "RuntimeError", "must match the size")],
    reference: "(scipy.special.betainc(x1 * (1 - 1e-5), x2 - x1, x0) - scipy.special.betainc(x1 * (1 + 1e-5), x2 - x1, x0)) / (x1 * 2e-5) / scipy.stats.beta.pdf(x0, x1, x2 - x1) / (1 - x0)",
    ..OP
};
