//! Orthogonal polynomials: Chebyshev (four kinds and their shifted forms), Hermite (two), Laguerre, Legendre.

use crate::cpu::polynomial as cpu;
use crate::error::Error;
use crate::op::*;
use crate::ops::support::promotion::{full_float, wide2};

pub static OPS: &[&Op] = &[
    &CHEBYSHEV_T,
    &CHEBYSHEV_U,
    &CHEBYSHEV_V,
    &CHEBYSHEV_W,
    &SHIFTED_T,
    &SHIFTED_U,
    &SHIFTED_V,
    &SHIFTED_W,
    &HERMITE_H,
    &HERMITE_HE,
    &LAGUERRE,
    &LEGENDRE,
];

/// A function of x and of the degree n: tensors, or one of them a number.
const POLYNOMIAL: Op = Op {
    forms: FO,
    promote: Promote::By(|c, common| match c.all_tensors().next() {
        Some(_) => full_float(c, common),
        None => {
            Err(Error::type_("received an invalid combination of arguments - got two numbers, but expected a tensor"))
        }
    }),
    vjp: Vjp::None("as in PyTorch"),
    samples: &[
        "f32[2,3](unit), i64[3](-1..9)",
        "f64[6](= -1.5, -1, -0.3, 0, 0.7, 1), i64[6](= 3, 4, 7, 5, 20, 9)",
        "f64[6](= -1, -0.5, 0, 0.2, 0.9, 3), 4",
        "0.3, i64[5](= 0, 1, 2, 7, 12)",
        "i64[3](= -1, 0, 2), i64[3](= 3, 2, 4)",
    ],
    errors: &[
        ("1.5, 2.5", "TypeError", "invalid combination of arguments"),
        ("f16[2], 2", "NotImplementedError", "not implemented for 'Half'"),
    ],
    ..OP
};

pub static CHEBYSHEV_T: Op = Op {
    sig: sig("special.chebyshev_polynomial_t(Operand x, Operand n) -> Tensor"),
    doc: "Chebyshev's polynomial of the first kind of degree `n`.",
    body: elementwise(&wide2(cpu::chebyshev_t, "chebyshev_(x, y, x)")),
    ..POLYNOMIAL
};
pub static CHEBYSHEV_U: Op = Op {
    sig: sig("special.chebyshev_polynomial_u(Operand x, Operand n) -> Tensor"),
    doc: "Chebyshev's polynomial of the second kind of degree `n`.",
    body: elementwise(&wide2(cpu::chebyshev_u, "chebyshev_(x, y, x + x)")),
    ..POLYNOMIAL
};
pub static CHEBYSHEV_V: Op = Op {
    sig: sig("special.chebyshev_polynomial_v(Operand x, Operand n) -> Tensor"),
    doc: "Chebyshev's polynomial of the third kind of degree `n`.",
    body: elementwise(&wide2(cpu::chebyshev_v, "chebyshev_(x, y, x + x - T(1))")),
    ..POLYNOMIAL
};
pub static CHEBYSHEV_W: Op = Op {
    sig: sig("special.chebyshev_polynomial_w(Operand x, Operand n) -> Tensor"),
    doc: "Chebyshev's polynomial of the fourth kind of degree `n`.",
    body: elementwise(&wide2(cpu::chebyshev_w, "chebyshev_(x, y, x + x + T(1))")),
    ..POLYNOMIAL
};
pub static SHIFTED_T: Op = Op {
    sig: sig("special.shifted_chebyshev_polynomial_t(Operand x, Operand n) -> Tensor"),
    doc: "Chebyshev's polynomial of the first kind of degree `n`, of `2 x - 1`.",
    body: elementwise(&wide2(cpu::shifted_t, "chebyshev_(x + x - T(1), y, x + x - T(1))")),
    ..POLYNOMIAL
};
pub static SHIFTED_U: Op = Op {
    sig: sig("special.shifted_chebyshev_polynomial_u(Operand x, Operand n) -> Tensor"),
    doc: "Chebyshev's polynomial of the second kind of degree `n`, of `2 x - 1`.",
    body: elementwise(&wide2(cpu::shifted_u, "chebyshev_(x + x - T(1), y, T(4) * x - T(2))")),
    ..POLYNOMIAL
};
pub static SHIFTED_V: Op = Op {
    sig: sig("special.shifted_chebyshev_polynomial_v(Operand x, Operand n) -> Tensor"),
    doc: "Chebyshev's polynomial of the third kind of degree `n`, of `2 x - 1`.",
    body: elementwise(&wide2(cpu::shifted_v, "chebyshev_(x + x - T(1), y, T(4) * x - T(3))")),
    ..POLYNOMIAL
};
pub static SHIFTED_W: Op = Op {
    sig: sig("special.shifted_chebyshev_polynomial_w(Operand x, Operand n) -> Tensor"),
    doc: "Chebyshev's polynomial of the fourth kind of degree `n`, of `2 x - 1`.",
    body: elementwise(&wide2(cpu::shifted_w, "chebyshev_(x + x - T(1), y, T(4) * x - T(1))")),
    ..POLYNOMIAL
};
pub static HERMITE_H: Op = Op {
    sig: sig("special.hermite_polynomial_h(Operand x, Operand n) -> Tensor"),
    doc: "The physicist's Hermite polynomial of degree `n`.",
    body: elementwise(&wide2(cpu::hermite_h, "hermite_(x, y, T(2))")),
    ..POLYNOMIAL
};
pub static HERMITE_HE: Op = Op {
    sig: sig("special.hermite_polynomial_he(Operand x, Operand n) -> Tensor"),
    doc: "The probabilist's Hermite polynomial of degree `n`.",
    body: elementwise(&wide2(cpu::hermite_he, "hermite_(x, y, T(1))")),
    ..POLYNOMIAL
};
pub static LAGUERRE: Op = Op {
    sig: sig("special.laguerre_polynomial_l(Operand x, Operand n) -> Tensor"),
    doc: "Laguerre's polynomial of degree `n`.",
    body: elementwise(&wide2(cpu::laguerre, "laguerre_(x, y)")),
    ..POLYNOMIAL
};
pub static LEGENDRE: Op = Op {
    sig: sig("special.legendre_polynomial_p(Operand x, Operand n) -> Tensor"),
    doc: "Legendre's polynomial of degree `n`.",
    body: elementwise(&wide2(cpu::legendre, "legendre_(x, y)")),
    ..POLYNOMIAL
};
