//! Arithmetic functions whose first argument is a number: `add(1, x)`, `mul(2, x)`.
//!
//! Operators on a number and a tensor do not use these (`2 - x` is `rsub`); only the functions do, because PyTorch lets
//! a few of them take a number for a tensor. Two numbers give a 0-d tensor.

use super::arith::{ALPHA, MINUS, MINUS_SCALED, PLUS, PLUS_SCALED, QUOTIENT, TIMES, by_alpha, no_bool, without_alpha};
use crate::op::*;

pub static OPS: &[&Op] = &[&ADD_SCALAR, &SUB_SCALAR, &MUL_SCALAR, &DIV_SCALAR];

const _: () = assert!(ADD_SCALAR.sig.arg("alpha") == ALPHA && SUB_SCALAR.sig.arg("alpha") == ALPHA);

const NUMBER_FIRST: Op = Op {
    forms: FO,
    samples: &["2, f32[2,3]", "2.5, f32[3]", "3, i64[4](1..5)", "2.5, i64[4](1..5)"],
    errors: &[("2, 'a'", "TypeError", "invalid combination")],
    ..OP
};
pub static ADD_SCALAR: Op = Op {
    sig: sig("add.scalar(Scalar self, Operand other, *, Scalar alpha=1) -> Tensor"),
    doc: "Adds each element, scaled by `alpha`, to a number.",
    promote: Promote::By(without_alpha),
    body: elementwise_by(|c| by_alpha(c, &PLUS, &PLUS_SCALED), &[&PLUS, &PLUS_SCALED]),
    vjp: Vjp::Each(&[d(1, 0, |c| c.g_times(2)).for_any(A0 | A2)]),
    node: "AddBackward0",
    reference: "x0 + alpha * x1",
    keeps: Some("alpha"),
    ..NUMBER_FIRST
};
pub static SUB_SCALAR: Op = Op {
    sig: sig("sub.scalar(Scalar self, Operand other, *, Scalar alpha=1) -> Tensor"),
    doc: "Subtracts each element, scaled by `alpha`, from a number. Bool is refused.",
    aliases: &["subtract"],
    promote: Promote::By(no_bool),
    body: elementwise_by(|c| by_alpha(c, &MINUS, &MINUS_SCALED), &[&MINUS, &MINUS_SCALED]),
    vjp: Vjp::Each(&[d(1, 0, |c| -c.g_times(2)).for_any(A0 | A2)]),
    node: "SubBackward0",
    reference: "x0 - alpha * x1",
    keeps: Some("alpha"),
    ..NUMBER_FIRST
};
pub static MUL_SCALAR: Op = Op {
    sig: sig("mul.scalar(Scalar self, Operand other) -> Tensor"),
    doc: "Multiplies a number by each element.",
    aliases: &["multiply"],
    body: elementwise(&TIMES),
    vjp: Vjp::Each(&[d(1, 0, |c| c.g_times(0)).for_any(A0)]),
    node: "MulBackward0",
    reference: "x0 * x1",
    keeps: Some("other=None self"),
    ..NUMBER_FIRST
};
pub static DIV_SCALAR: Op = Op {
    sig: sig("div.scalar(Scalar self, Operand other) -> Tensor"),
    doc: "Divides a number by each element.",
    aliases: &["divide", "true_divide"],
    promote: Promote::Float,
    body: elementwise(&QUOTIENT),
    vjp: Vjp::Each(&[d(1, A1, |c| -c.g_times(0) / c.arg(1).square().conj())]),
    node: "DivBackward0",
    reference: "x0 / x1",
    samples: &["2, f32[2,3](nonzero)", "2.5, f32[3](nonzero)", "3, i64[4](1..5)", "2.5, i64[4](1..5)"],
    ..NUMBER_FIRST
};
