//! `torch.masked`: reductions, running sums and softmax over unmasked elements.
//!
//! A masked-out element is replaced by the identity of the operation (zero for a sum, minus infinity for a maximum),
//! then the plain op is applied: so gradients, devices and dtypes are those of the plain ops. Each signature ends in
//! `dtype` and `mask`. The result of a fully masked line is the identity too.

pub mod moments;
pub mod normalize;
pub mod reduce;

use super::elementwise::ternary::WHERE;
use super::reduce::sum_prod::reduced_dims;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::op::*;
use crate::tensor::Tensor;

/// The last argument but one: the requested compute dtype.
fn asked(c: &Call) -> Option<DType> {
    c.dtype(c.args.len() - 2)
}

/// The last argument as bools in the shape of the input; `None` if there is no mask.
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

/// The identity of an operation, for a dtype.
type Identity = fn(&Call, DType) -> Result<Scalar>;

/// The input, with the identity where the mask is False.
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

/// The smallest value of a dtype: the identity of a maximum.
fn least(c: &Call, dtype: DType) -> Result<Scalar> {
    bound(c, dtype, f64::NEG_INFINITY, dtype.int_range().0)
}
/// The largest value of a dtype: the identity of a minimum.
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

/// The dimensions of the argument `dim`, all if none are given.
fn dims(c: &Call) -> Result<Ints> {
    Ok(reduced_dims(c)?.iter().map(|&d| d as i64).collect())
}

use crate::op::Op;

pub static OPS: &[&[&Op]] = &[moments::OPS, normalize::OPS, reduce::OPS];
