//! The multivariate log-gamma function.

use super::needs::quiet;
use super::special::{DIGAMMA, LGAMMA};
use crate::dtype::{Category, default_dtype};
use crate::error::{Error, Result};
use crate::op::*;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&MVLGAMMA];

/// `x - i / 2` for each i below p, in a new last dimension.
fn arguments(x: Term, p: i64) -> Term {
    let (dtype, device) = match x.get() {
        Some(t) => (t.dtype(), t.device()),
        None => return x,
    };
    let dtype = if dtype.category() < Category::Float { default_dtype() } else { dtype };
    let halves: Vec<f64> = (0..p).map(|i| i as f64 / 2.0).collect();
    let halves = Term(Tensor::from_slice(&halves, &[halves.len()])).to_device(device).to_dtype(dtype);
    x.to_dtype(dtype).unsqueeze(-1) - halves
}

fn multivariate(c: &Call) -> Result<Outputs> {
    let p = c.int(1)?;
    let constant = (p * (p - 1)) as f64 / 4.0 * std::f64::consts::PI.ln();
    (LGAMMA.call((arguments(c.tensor(0)?.into(), p),)).sum(&[-1], false) + constant).outputs()
}

pub static MVLGAMMA: Op = Op {
    sig: "mvlgamma(Tensor self, int p) -> Tensor",
    doc: "`p (p - 1) / 4 log(pi) + sum(lgamma(self - i / 2))` over i below `p`.",
    aliases: &["special.multigammaln"],
    forms: FMIO,
    body: composite(|c| {
        let (d, p) = (c.tensor(0)?.dtype(), c.int(1)?);
        if d == crate::dtype::DType::Bool {
            return Err(Error::runtime("The input tensor may not be a boolean tensor."));
        }
        if d.is_complex() {
            return Err(Error::not_implemented(format!("not implemented for '{}'", d.scalar_type_name())));
        }
        if !(1..=1 << 20).contains(&p) {
            return Err(Error::runtime(format!("p has to be greater than or equal to 1, and at most 2^20; got {p}")));
        }
        quiet(|| multivariate(c))
    }),
    vjp: Vjp::Each(&[d(0, A0, |c| {
        c.g() * DIGAMMA.call((arguments(c.arg(0), c.int(1).unwrap_or(1)),)).sum(&[-1], false)
    })]),
    samples: &["f32[2,3](pos), 1", "f32[4](pos), 3", "i64[4](3..9), 2"],
    errors: &[
        ("f32[2], 0", "RuntimeError", "p has to be greater than or equal to 1"),
        ("b8[2], 1", "RuntimeError", "The input tensor may not be a boolean tensor."),
        ("c64[2], 1", "NotImplementedError", "not implemented for 'ComplexFloat'"),
    ],
    reference: "sum(scipy.special.gammaln(x0 - i / 2) for i in range(p)) + p * (p - 1) / 4 * np.log(np.pi)",
    ..OP
};
