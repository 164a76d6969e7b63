//! Coordinates of positions in a flattened tensor: `unravel_index`.

use crate::dtype::{Category, DType};
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::create::like::SCALAR_TENSOR;
use crate::ops::elementwise::division::{FLOOR_DIVIDE, REMAINDER};
use crate::ops::movement::cat::STACK;
use crate::ops::view::split::UNBIND;
use crate::rt::reserve;

pub static OPS: &[&Op] = &[&UNRAVEL_INDEX];

pub static UNRAVEL_INDEX: Op = Op {
    sig: sig("unravel_index(Tensor indices, int[1] shape) -> Tensor[]"),
    doc: "The coordinates, one tensor for each dimension of `shape`, of positions in a flattened tensor of that shape.",
    forms: F,
    body: decompose(unravel_index),
    vjp: Vjp::None("integers"),
    samples: &["i64[5](0..20), (4, 5)", "i64[2,3](0..24), (2, 3, 4)", "i32[4](0..7), 7", "u8[3](0..6), (2, 3)"],
    errors: &[
        ("f32[2], (4, 5)", "TypeError", "expected 'indices' to be integer dtype, but got torch.float32"),
        ("b8[2], (4, 5)", "TypeError", "expected 'indices' to be integer dtype, but got torch.bool"),
        (
            "i64[2], (4, 0)",
            "ValueError",
            "'shape' cannot have zero dimensions when 'indices' is non-empty, but got (4, 0)",
        ),
        ("i64[2], (4, -5)", "ValueError", "'shape' cannot have negative values, but got (4, -5)"),
    ],
    reference: "list(np.stack([c.reshape(x0.shape) for c in np.unravel_index(x0.astype(np.int64).reshape(-1), shape)]))",
    ..OP
};

fn unravel_index(c: &Call) -> Result<Outputs> {
    let (indices, shape) = (c.tensor("indices")?, c.ints("shape")?);
    let dtype = indices.dtype();
    if dtype.category() != Category::Int {
        return Err(Error::type_(format!("expected 'indices' to be integer dtype, but got torch.{dtype}")));
    }
    if shape.iter().any(|&n| n < 0) {
        return Err(Error::value(format!("'shape' cannot have negative values, but got {}", shown(shape))));
    }
    if shape.contains(&0) && indices.numel() > 0 {
        let shape = shown(shape);
        return Err(Error::value(format!(
            "'shape' cannot have zero dimensions when 'indices' is non-empty, but got {shape}"
        )));
    }
    if shape.is_empty() {
        return Ok(Outputs::new());
    }
    let row = |numbers: &[i64]| -> Result<Term> {
        let numbers = numbers.iter().map(|&n| SCALAR_TENSOR.call((n, DType::I64, indices.device())).ok());
        Ok(STACK.call((reserve::try_list(numbers)?, 0)))
    };
    let rows = FLOOR_DIVIDE.call((Term::from(indices).unsqueeze(-1), row(&row_major(shape)?)?));
    UNBIND.calls((REMAINDER.call((rows, row(shape)?)), -1))
}

/// The strides, in elements, of a row-major tensor of the shape.
fn row_major(shape: &[i64]) -> Result<Vec<i64>> {
    let mut strides = reserve::filled(1, shape.len())?;
    for d in (1..shape.len()).rev() {
        strides[d - 1] = shape[d].checked_mul(strides[d]).ok_or_else(|| Error::runtime("the shape overflows int64"))?;
    }
    Ok(strides)
}

fn shown(shape: &[i64]) -> String {
    format!("({})", Show(shape).to_string().trim_matches(['[', ']']))
}
