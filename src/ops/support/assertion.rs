//! Checks of values that bodies of several ops make: ops without results, so that a recording of a call holds them.

use super::host_read::item;
use crate::error::Error;
use crate::op::*;
use crate::ops::reduce::any_all::ALL;

pub static OPS: &[&Op] = &[&ASSERT_ALL];

pub static ASSERT_ALL: Op = Op {
    sig: sig("_assert_all(Tensor condition, str message) -> Tensor[]"),
    doc: "An error with this message unless every element is true; no results. Waits for the device.",
    forms: HIDDEN,
    body: opaque(
        |_| Ok(Specs::new()),
        |c| match item(&ALL.call((c.tensor("condition")?,)).ok()?)?.to_bool() {
            true => Ok(Outputs::new()),
            false => Err(Error::runtime(c.str("message").unwrap_or_default())),
        },
    ),
    vjp: Vjp::None("a check"),
    samples: &["b8[3](= 1, 1, 1), 'no'", "f32[0], 'no'"],
    errors: &[("b8[2](= 1, 0), 'not all'", "RuntimeError", "not all")],
    reference: "[]",
    ..OP
};
