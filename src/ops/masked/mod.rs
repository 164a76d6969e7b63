//! `torch.masked`: reductions, running sums and softmax over the elements that a mask lets through.
//!
//! An element that is masked out is replaced by the number that does not change the result (zero in a sum, minus
//! infinity in a maximum), and the plain op does the rest: so gradients, devices and dtypes are those of the plain ops.
//! Each signature ends in `dtype` and `mask`. Where no element of a line is let through the result is that number too.

pub mod moments;
pub mod normalize;
pub mod reduce;

use super::choose::WHERE;
use super::reduce::reduced_dims;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::op::*;
use crate::tensor::Tensor;

/// The argument before the last: in which dtype to compute.
fn asked(c: &Call) -> Option<DType> {
    c.dtype(c.args.len() - 2)
}

/// The last argument as bools in the shape of the input; `None` where every element counts.
fn mask(c: &Call) -> Result<Option<Term>> {
    match c.args.last().and_then(Value::as_tensor) {
        Some(mask) => spread(mask, c.tensor(0)?).map(Some),
        None => Ok(None),
    }
}

/// A mask as bools in the shape of `input`.
fn spread(mask: &Tensor, input: &Tensor) -> Result<Term> {
    if mask.ndim() > input.ndim() {
        return Err(Error::index(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)",
        ));
    }
    let sizes: Ints = input.shape().iter().map(|&d| d as i64).collect();
    Ok(Term::from(mask).to_dtype(DType::Bool).expand(&sizes).ok()?.into())
}

/// What masked-out elements are replaced by, for a dtype.
type Identity = fn(&Call, DType) -> Result<Scalar>;

/// The input, with that number where the mask is False.
fn kept(c: &Call, identity: Identity) -> Result<Term> {
    let input = c.tensor(0)?;
    Ok(match mask(c)? {
        Some(mask) => WHERE.call((mask, input, identity(c, input.dtype())?)),
        None => input.into(),
    })
}

fn zero(_: &Call, dtype: DType) -> Result<Scalar> {
    Ok(number(dtype, 0))
}
fn one(_: &Call, dtype: DType) -> Result<Scalar> {
    Ok(number(dtype, 1))
}
fn number(dtype: DType, n: i64) -> Scalar {
    if dtype == DType::Bool { Scalar::Bool(n != 0) } else { Scalar::Int(n) }
}

/// The least value of a dtype, which no maximum is below.
fn least(c: &Call, dtype: DType) -> Result<Scalar> {
    bound(c, dtype, f64::NEG_INFINITY, dtype.int_range().0)
}
/// The greatest value of a dtype, which no minimum is above.
fn greatest(c: &Call, dtype: DType) -> Result<Scalar> {
    bound(c, dtype, f64::INFINITY, dtype.int_range().1)
}
fn bound(c: &Call, dtype: DType, float: f64, int: i128) -> Result<Scalar> {
    match (dtype.is_float(), i64::try_from(int)) {
        (true, _) => Ok(Scalar::Float(float)),
        (false, Ok(int)) if dtype.is_int() => Ok(Scalar::Int(int)),
        _ => {
            let (op, dtype) = (c.op.base(), dtype.name());
            Err(Error::not_implemented(format!("identity of {op} on torch.{dtype} input")))
        }
    }
}

/// The dimensions in argument `at`, all where none are given.
fn dims(c: &Call, at: usize) -> Result<Ints> {
    Ok(reduced_dims(c, Some(at))?.iter().map(|&d| d as i64).collect())
}
