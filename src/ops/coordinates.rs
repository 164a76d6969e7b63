//! Coordinates of positions in a flattened tensor: `unravel_index`.

use super::division::{FLOOR_DIVIDE, REMAINDER_NUMBER};
use crate::dtype::{Category, DType};
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&UNRAVEL_INDEX];

pub static UNRAVEL_INDEX: Op = Op {
    sig: "unravel_index(Tensor indices, int[1] shape) -> Tensor[]",
    doc: "The coordinates, one tensor for each dimension of `shape`, of positions in a flattened tensor of that shape.",
    forms: F,
    body: composite(unravel_index),
    vjp: Vjp::None("integers"),
    samples: &["i64[5](0..20), (4, 5)", "i64[2,3](0..24), (2, 3, 4)", "i32[4](0..7), 7", "u8[3](0..6), (2, 3)"],
    errors: &[
        ("f32[2], (4, 5)", "TypeError", "expected 'indices' to be integer dtype, but got torch.float32"),
        ("b8[2], (4, 5)", "TypeError", "expected 'indices' to be integer dtype, but got torch.bool"),
        ("i64[2], (4, -5)", "ValueError", "'shape' cannot have negative values, but got (4, -5)"),
    ],
    reference: "list(np.stack([c.reshape(x0.shape) for c in np.unravel_index(x0.astype(np.int64).reshape(-1), shape)]))",
    ..OP
};

fn unravel_index(c: &Call) -> Result<Outputs> {
    let (indices, shape) = (c.tensor(0)?, c.ints(1)?);
    let dtype = indices.dtype();
    if dtype.category() != Category::Int {
        return Err(Error::type_(format!("expected 'indices' to be integer dtype, but got torch.{dtype}")));
    }
    if shape.iter().any(|&n| n < 0) {
        return Err(Error::value(format!(
            "'shape' cannot have negative values, but got ({})",
            Show(shape).to_string().trim_matches(['[', ']'])
        )));
    }
    let mut rest = Term::from(indices).to_dtype(DType::I64);
    let mut found: Vec<Tensor> = Vec::new();
    for &n in shape.iter().rev() {
        found.push(REMAINDER_NUMBER.call((rest.dup(), n)).ok()?);
        rest = FLOOR_DIVIDE.call((rest, n));
    }
    Ok(found.into_iter().rev().collect())
}
