//! Bessel functions, including modified and spherical ones, and the Airy function. Computed in double precision.

use crate::cpu::bessel;
use crate::op::*;
use crate::ops::support::promotion::{FLOAT_UNARY, full_float, wide};

pub static OPS: &[&Op] =
    &[&I0, &I0E, &I1, &I1E, &J0, &J1, &Y0, &Y1, &MODIFIED_I0, &MODIFIED_I1, &K0, &K1, &K0E, &K1E, &SPHERICAL_J0, &AIRY];

/// Both sides of each piece, and its ends.
const EVERYWHERE: &str = "f64[10](= -30, -8.1, -3, -0.4, 0, 1e-9, 0.7, 7.9, 8.1, 120)";
const POSITIVE: &str = "f64[8](= 0.3, 1.9, 2.1, 5.5, 7.9, 8.1, 30, 120)";
const AT_ZERO: &str = "f64[4](= 0, -0.0, 1e-9, -1e-9, nograd)";
/// For functions with a kink at zero.
const AWAY: &str = "f64[8](= -30, -8.1, -3, -0.4, 0.7, 7.9, 8.1, 120)";

/// Functions of `special` that have no method and know no half precision.
const SPECIAL: Op = Op {
    forms: FO,
    promote: Promote::By(full_float),
    samples: &["f32[2,3]", EVERYWHERE, "i64[4]"],
    errors: &[("f16[2]", "NotImplementedError", "not implemented for 'Half'")],
    ..FLOAT_UNARY
};
/// Those of positive numbers; zero is a pole.
const OF_POSITIVE: Op = Op { samples: &["f32[2,3](pos)", POSITIVE, AT_ZERO, "i64[4](0..9)"], ..SPECIAL };

/// The gradient of a function y with the slope `rest - y / x`, which is a half at zero.
fn with_quotient(c: &VjpCtx, rest: Term) -> Term {
    let zero = c.arg(0).equals(0);
    let x = zero.clone().choose(1.0, c.arg(0));
    c.g() * zero.choose(0.5, rest - c.out(0) / x)
}

/// Those that half precision is known to.
const OF_ANY: Op = Op { forms: FO, samples: &["f32[2,3]", EVERYWHERE, "i64[4]", "f16[3]"], ..FLOAT_UNARY };

pub static I0: Op = Op {
    sig: sig("i0(Tensor self) -> Tensor"),
    doc: "The modified Bessel function of the first kind of order 0.",
    aliases: &["special.i0"],
    body: elementwise(&wide(bessel::i0, "i0_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() * I1.call((c.arg(0),)))]),
    forms: FMIO,
    reference: "scipy.special.i0(x0)",
    ..OF_ANY
};
pub static I0E: Op = Op {
    sig: sig("special.i0e(Tensor input) -> Tensor"),
    doc: "`exp(-|x|) i0(x)`.",
    body: elementwise(&wide(bessel::i0e, "i0e_(x)")),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| c.g() * (I1E.call((c.arg(0),)) - c.arg(0).sgn() * c.out(0)))]),
    samples: &["f32[2,3]", AWAY, AT_ZERO, "i64[4]", "f16[3]"],
    reference: "scipy.special.i0e(x0)",
    ..OF_ANY
};
pub static I1: Op = Op {
    sig: sig("special.i1(Tensor input) -> Tensor"),
    doc: "The modified Bessel function of the first kind of order 1.",
    body: elementwise(&wide(bessel::i1, "i1_(x)")),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| with_quotient(c, I0.call((c.arg(0),))))]),
    reference: "scipy.special.i1(x0)",
    ..OF_ANY
};
pub static I1E: Op = Op {
    sig: sig("special.i1e(Tensor input) -> Tensor"),
    doc: "`exp(-|x|) i1(x)`.",
    body: elementwise(&wide(bessel::i1e, "i1e_(x)")),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| with_quotient(c, I0E.call((c.arg(0),)) - c.arg(0).sgn() * c.out(0)))]),
    samples: &["f32[2,3]", AWAY, AT_ZERO, "i64[4]", "f16[3]"],
    reference: "scipy.special.i1e(x0)",
    ..OF_ANY
};

pub static J0: Op = Op {
    sig: sig("special.bessel_j0(Tensor input) -> Tensor"),
    doc: "The Bessel function of the first kind of order 0.",
    body: elementwise(&wide(bessel::j0, "j0_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| -(c.g() * J1.call((c.arg(0),))))]),
    reference: "scipy.special.j0(x0)",
    ..SPECIAL
};
pub static J1: Op = Op {
    sig: sig("special.bessel_j1(Tensor input) -> Tensor"),
    doc: "The Bessel function of the first kind of order 1.",
    body: elementwise(&wide(bessel::j1, "j1_(x)")),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| with_quotient(c, J0.call((c.arg(0),))))]),
    reference: "scipy.special.j1(x0)",
    ..SPECIAL
};
pub static Y0: Op = Op {
    sig: sig("special.bessel_y0(Tensor input) -> Tensor"),
    doc: "The Bessel function of the second kind of order 0.",
    body: elementwise(&wide(bessel::y0, "y0_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| -(c.g() * Y1.call((c.arg(0),))))]),
    reference: "scipy.special.y0(x0)",
    ..OF_POSITIVE
};
pub static Y1: Op = Op {
    sig: sig("special.bessel_y1(Tensor input) -> Tensor"),
    doc: "The Bessel function of the second kind of order 1.",
    body: elementwise(&wide(bessel::y1, "y1_(x)")),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| c.g() * (Y0.call((c.arg(0),)) - c.out(0) / c.arg(0)))]),
    reference: "scipy.special.y1(x0)",
    ..OF_POSITIVE
};

pub static MODIFIED_I0: Op = Op {
    sig: sig("special.modified_bessel_i0(Tensor input) -> Tensor"),
    doc: "The modified Bessel function of the first kind of order 0, as `i0`.",
    body: elementwise(&wide(bessel::i0, "i0_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| c.g() * MODIFIED_I1.call((c.arg(0),)))]),
    reference: "scipy.special.i0(x0)",
    ..SPECIAL
};
pub static MODIFIED_I1: Op = Op {
    sig: sig("special.modified_bessel_i1(Tensor input) -> Tensor"),
    doc: "The modified Bessel function of the first kind of order 1, as `special.i1`.",
    body: elementwise(&wide(bessel::i1, "i1_(x)")),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| with_quotient(c, MODIFIED_I0.call((c.arg(0),))))]),
    reference: "scipy.special.i1(x0)",
    ..SPECIAL
};
pub static K0: Op = Op {
    sig: sig("special.modified_bessel_k0(Tensor input) -> Tensor"),
    doc: "The modified Bessel function of the second kind of order 0.",
    body: elementwise(&wide(bessel::k0, "k0_(x)")),
    vjp: Vjp::Each(&[d(0, A0, |c| -(c.g() * K1.call((c.arg(0),))))]),
    reference: "scipy.special.k0(x0)",
    ..OF_POSITIVE
};
pub static K1: Op = Op {
    sig: sig("special.modified_bessel_k1(Tensor input) -> Tensor"),
    doc: "The modified Bessel function of the second kind of order 1.",
    body: elementwise(&wide(bessel::k1, "k1_(x)")),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| -(c.g() * (K0.call((c.arg(0),)) + c.out(0) / c.arg(0))))]),
    reference: "scipy.special.k1(x0)",
    ..OF_POSITIVE
};

const NONE: Vjp = Vjp::None("as in PyTorch");

pub static K0E: Op = Op {
    sig: sig("special.scaled_modified_bessel_k0(Tensor x) -> Tensor"),
    doc: "`exp(x)` times the modified Bessel function of the second kind of order 0.",
    body: elementwise(&wide(bessel::k0e, "k0e_(x)")),
    vjp: NONE,
    reference: "scipy.special.k0e(x0)",
    ..OF_POSITIVE
};
pub static K1E: Op = Op {
    sig: sig("special.scaled_modified_bessel_k1(Tensor x) -> Tensor"),
    doc: "`exp(x)` times the modified Bessel function of the second kind of order 1.",
    body: elementwise(&wide(bessel::k1e, "k1e_(x)")),
    vjp: NONE,
    reference: "scipy.special.k1e(x0)",
    ..OF_POSITIVE
};
pub static SPHERICAL_J0: Op = Op {
    sig: sig("special.spherical_bessel_j0(Tensor x) -> Tensor"),
    doc: "The spherical Bessel function of the first kind of order 0, `sin(x) / x`.",
    body: elementwise(&wide(bessel::spherical_j0, "spherical_j0_(x)")),
    vjp: NONE,
    reference: "np.where(np.isinf(x0) | (x0 == 0), x0 == 0, np.sin(x0) / x0)",
    ..SPECIAL
};
pub static AIRY: Op = Op {
    sig: sig("special.airy_ai(Tensor x) -> Tensor"),
    doc: "Airy's function Ai.",
    body: elementwise(&wide(bessel::airy, "airy_(x)")),
    vjp: NONE,
    samples: &["f32[2,3]", "f64[10](= -30, -8, -2.3, -2.2, 0, 1e-9, 2.2, 2.3, 8, 90)", "i64[4]"],
    reference: "scipy.special.airy(x0)[0]",
    ..SPECIAL
};
