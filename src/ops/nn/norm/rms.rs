//! Normalisation of rows by their root mean square.

use super::check_float;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::movement::copy::CONTIGUOUS;
use crate::ops::reduce::sum_prod::MEAN_DIM;

pub static OPS: &[&Op] = &[&RMS_NORM];

fn check(c: &Call) -> Result<()> {
    let (x, shape) = (c.tensor(0)?, c.ints("normalized_shape")?);
    if shape.is_empty() {
        return Err(Error::runtime(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []",
        ));
    }
    let is = |dims: &[usize]| dims.iter().map(|&d| d as i64).eq(shape.iter().copied());
    if let Some(w) = c.opt_tensor("weight").filter(|w| !is(w.shape())) {
        return Err(Error::runtime(format!(
            "Expected weight to be of same shape as normalized_shape, but got weight of shape {} and normalized_shape = {}",
            Show(w.shape()),
            Show(shape)
        )));
    }
    if x.ndim() < shape.len() || !is(&x.shape()[x.ndim() - shape.len()..]) {
        let want = shape.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        return Err(Error::runtime(format!(
            "Given normalized_shape={}, expected input with shape [*{want}], but got input of size{}",
            Show(shape),
            Show(x.shape())
        )));
    }
    if x.dtype().is_complex() { Ok(()) } else { check_float(x, "rms_norm") }
}

fn run(c: &Call) -> Result<Outputs> {
    check(c)?;
    let x = c.tensor(0)?;
    let dims: Ints = (-(c.ints("normalized_shape")?.len() as i64)..0).collect();
    // Half precision is computed in float32.
    let (half, double) = (x.dtype().is_narrow_float(), matches!(x.dtype(), DType::F64 | DType::C128));
    let dense = CONTIGUOUS.call((x, Value::Format(x.layout().channels_format())));
    let wide = if half { dense.to_dtype(DType::F32) } else { dense };
    let eps = c.opt_float("eps").unwrap_or(if double { f64::EPSILON } else { f64::from(f32::EPSILON) });
    let scale = (MEAN_DIM.call((wide.clone().pow(2.0), dims, true)) + eps).rsqrt();
    let y = c.opt_tensor("weight").into_iter().fold(wide * scale, |y, w| y * w);
    let same = y.get().is_none_or(|y| y.dtype() == x.dtype());
    if same { y.outputs() } else { y.to_dtype(x.dtype()).outputs() }
}

pub static RMS_NORM: Op = Op {
    sig: sig("rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor"),
    doc: "Divides by the root of the mean square over the last dimensions, those of `normalized_shape`, to which `eps` is added, by default the distance from 1 to the next float; then scales.\n\nSource: Zhang, Sennrich, \"Root Mean Square Layer Normalization\", arXiv:1910.07467.",
    aliases: &["nn.functional.rms_norm"],
    forms: F,
    body: decompose(run),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], (3,)", "f32[4,5], (5,), f32[5], 1e-05", "f32[2,3,4], (3, 4), f32[3,4]", "bf16[2,4], (4,)"],
    errors: &[
        ("f32[2,3], (2,)", "RuntimeError", "Given normalized_shape"),
        ("f32[2,3], (3,), f32[2]", "RuntimeError", "Expected weight to be of same shape"),
        ("f32[2,3], ()", "RuntimeError", "at least 1-dimensional"),
        ("i64[2,3], (3,)", "NotImplementedError", "rms_norm"),
    ],
    ..OP
};
