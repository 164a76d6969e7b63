//! Gamma functions with two arguments: the multivariate log-gamma function, the incomplete gamma functions, zeta.

use super::erf_gamma::{DIGAMMA, LGAMMA};
use crate::cpu::{incomplete, special};
use crate::device::Device;
use crate::dtype::{Category, DType, default_dtype};
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::support::promotion::{BINARY, full_float, no_formula, refused, wide2};

pub static OPS: &[&Op] = &[&MVLGAMMA, &IGAMMA, &IGAMMAC, &ZETA, &ZETA_SCALAR_SELF, &ZETA_SCALAR_OTHER];

/// `x - i / 2` for each i below p, in a new last dimension.
fn arguments(x: Term, p: i64) -> Term {
    let (dtype, device) = match x.get() {
        Some(t) => (t.dtype(), t.device()),
        None => return x,
    };
    let dtype = if dtype.category() < Category::Float { default_dtype() } else { dtype };
    let halves =
        (crate::ops::create::range::ARANGE.call((p, DType::F64, Device::Cpu)) * 0.5).to_device(device).to_dtype(dtype);
    x.to_dtype(dtype).unsqueeze(-1) - halves
}

fn multivariate(c: &Call) -> Result<Outputs> {
    let p = c.int("p")?;
    let constant = p as f64 * (p as f64 - 1.0) / 4.0 * std::f64::consts::PI.ln();
    (LGAMMA.call((arguments(c.tensor(0)?.into(), p),)).sum(&[-1], false) + constant).outputs()
}

pub static MVLGAMMA: Op = Op {
    sig: sig("mvlgamma(Tensor self, int p) -> Tensor"),
    doc: "`p (p - 1) / 4 log(pi) + sum(lgamma(self - i / 2))` over i below `p`.",
    aliases: &["special.multigammaln"],
    forms: FMIO,
    body: decompose(|c| {
        let (d, p) = (c.tensor(0)?.dtype(), c.int("p")?);
        if d == DType::Bool {
            return Err(Error::runtime("The input tensor may not be a boolean tensor."));
        }
        if d.is_complex() {
            return Err(Error::not_implemented(format!("not implemented for '{}'", d.scalar_type_name())));
        }
        if !(1..=1 << 20).contains(&p) {
            return Err(Error::runtime(format!("p has to be greater than or equal to 1, and at most 2^20; got {p}")));
        }
        multivariate(c)
    }),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() * DIGAMMA.call((arguments(c.arg(0), c.int("p")),)).sum(&[-1], false))]),
    samples: &["f32[2,3](pos), 1", "f32[4](pos), 3", "i64[4](3..9), 2"],
    errors: &[
        ("f32[2], 0", "RuntimeError", "p has to be greater than or equal to 1"),
        ("b8[2], 1", "RuntimeError", "The input tensor may not be a boolean tensor."),
        ("c64[2], 1", "NotImplementedError", "not implemented for 'ComplexFloat'"),
    ],
    reference: "sum(scipy.special.gammaln(x0 - i / 2) for i in range(p)) + p * (p - 1) / 4 * np.log(np.pi)",
    batch: Batching::Leading,
    ..OP
};

/// The slope in x of P(a, x): `x^(a - 1) exp(-x) / gamma(a)`.
fn gamma_density(c: &VjpCtx) -> Term {
    let (a, x) = (c.arg(0), c.arg(1));
    ((a.clone() - 1) * x.clone().log() - x - LGAMMA.call((a,))).exp()
}

const INCOMPLETE: Op = Op {
    promote: Promote::By(|c, common| if common.is_float() { Ok((common, common)) } else { Err(refused(c, common)) }),
    samples: &[
        "f32[2,3](pos, nograd), f32[3](pos)",
        "f64[9](= 0.01, 0.5, 1, 3, 9, 12, 50, 300, 2e5, nograd), f64[9](= 0.3, 2, 1, 2.5, 20, 11, 49, 330, 200300)",
        "f64[8](= 0, 0, 1, 1, inf, 1, -1, 1, nograd), f64[8](= 0, 1, 0, inf, 1, -1, 1, nan, nograd)",
    ],
    errors: &[
        ("i64[2], i64[2]", "NotImplementedError", "not implemented for 'Long'"),
        ("f32[2,3], f32[4]", "RuntimeError", "must match the size"),
    ],
    ..BINARY
};
pub static IGAMMA: Op = Op {
    sig: sig("igamma(Tensor self, Tensor other) -> Tensor"),
    doc: "The regularised lower incomplete gamma function of order `self` at `other`.",
    aliases: &["special.gammainc"],
    body: elementwise(&wide2(incomplete::lower, "igamma_(x, y)")),
    vjp: Vjp::Each(&[d(0, A0 | A1, |_| no_formula("igamma: input")), d(1, A0 | A1, |c| c.g() * gamma_density(c))]),
    reference: "scipy.special.gammainc(x0, x1)",
    ..INCOMPLETE
};
pub static IGAMMAC: Op = Op {
    sig: sig("igammac(Tensor self, Tensor other) -> Tensor"),
    doc: "The regularised upper incomplete gamma function of order `self` at `other`.",
    aliases: &["special.gammaincc"],
    body: elementwise(&wide2(incomplete::upper, "igammac_(x, y)")),
    vjp: Vjp::Each(&[d(0, A0 | A1, |_| no_formula("igammac: input")), d(1, A0 | A1, |c| -(c.g() * gamma_density(c)))]),
    reference: "scipy.special.gammaincc(x0, x1)",
    ..INCOMPLETE
};

fn zeta_slope(c: &VjpCtx) -> Term {
    -(c.g() * c.arg(0) * ZETA.call((c.arg(0) + 1, c.arg(1))))
}
static HURWITZ: Rule = wide2(special::zeta, "zeta_(x, y)");
const OF_TWO: Op = Op {
    doc: "Hurwitz's zeta function, the sum of `(k + other)^-input` over k from 0 on.",
    forms: FO,
    promote: Promote::By(full_float),
    body: elementwise(&HURWITZ),
    ..BINARY
};
pub static ZETA: Op = Op {
    sig: sig("special.zeta(Tensor input, Tensor other) -> Tensor"),
    vjp: Vjp::Each(&[d(0, A0 | A1, |_| no_formula("zeta")), d(1, A0 | A1, zeta_slope)]),
    samples: &[
        "f32[3](= 1.5, 2, 4, nograd), f32[2,3](pos)",
        "f64[7](= 1.1, 2, 2, 3, 30, 1, 0.5, nograd), f64[7](= 0.3, 1, -1.5, 0, 0.5, 1, 1, nograd)",
    ],
    errors: &[("f16[2], f16[2]", "NotImplementedError", "not implemented for 'Half'")],
    ..OF_TWO
};
pub static ZETA_SCALAR_SELF: Op = Op {
    sig: sig("special.zeta.self_scalar(Scalar input, Tensor other) -> Tensor"),
    vjp: Vjp::Each(&[d(1, A1, zeta_slope)]),
    node: "SpecialZetaBackward1",
    samples: &["2, f32[2,3](pos)", "1.5, f64[3](pos)"],
    errors: &[("2, f16[2]", "NotImplementedError", "not implemented for 'Half'")],
    ..OF_TWO
};
pub static ZETA_SCALAR_OTHER: Op = Op {
    sig: sig("special.zeta.other_scalar(Tensor input, Scalar other) -> Tensor"),
    vjp: Vjp::Each(&[d(0, 0, |_| no_formula("zeta"))]),
    node: "SpecialZetaBackward2",
    keeps: Some(""),
    samples: &["f32[2,3](2..6, nograd), 1", "f64[3](= 2, 3, 4, nograd), 2.5"],
    errors: &[("f16[2], 2", "NotImplementedError", "not implemented for 'Half'")],
    ..OF_TWO
};
