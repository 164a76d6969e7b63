//! Interpolation by area: the mean over what each output covers, which is adaptive average pooling.

use super::run::{Axes, resample};
use super::taps::{Axis, Method};
use super::upsample::formed;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::layout::{Dims, checked_numel};
use crate::op::*;
use crate::ops::rules::no_kernel;
use crate::ops::view::SQUEEZE_DIM;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&AREA, &AREA3D, &AREA_BACKWARD];

fn axes(from: &[usize], to: &[usize]) -> Axes {
    from.iter()
        .zip(to)
        .map(|(&from, &to)| Axis { from, to, align_corners: false, factor: None, snaps: false })
        .collect()
}

fn check(shape: &[usize], output: &[i64], dtype: DType) -> Result<()> {
    if !matches!(shape.len(), 3..=5) || output.len() + 2 != shape.len() {
        return Err(Error::runtime(format!(
            "expected an input of three to five dimensions and a size for all but two of them, got an input of shape {} and sizes {}",
            Show(shape),
            Show(output)
        )));
    }
    if output.iter().any(|&n| n < 0) {
        return Err(Error::runtime(format!(
            "elements of output_size must be greater than or equal to 0 but received {}",
            Show(output)
        )));
    }
    if shape[1..].contains(&0) {
        return Err(Error::runtime(format!(
            "Expected input to have non-zero size for non-batch dimensions, but input has sizes {}",
            Show(shape)
        )));
    }
    if dtype.is_float() { Ok(()) } else { Err(no_kernel("adaptive_avg_pool2d", dtype)) }
}

#[allow(clippy::declare_interior_mutable_const)]
const MEANS: Op = Op {
    doc: "The mean over the elements of the inner dimensions that each output covers, also in part.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let (t, output) = (c.tensor(0)?, c.ints(1)?);
            check(t.shape(), output, t.dtype())?;
            let shape: Dims = t.shape()[..2].iter().copied().chain(output.iter().map(|&n| n as usize)).collect();
            // Volumes do not keep their memory format, as in PyTorch.
            if t.ndim() < 5 {
                return formed(t, shape);
            }
            checked_numel(&shape)?;
            Ok(Spec::one(&shape, t.dtype(), t.device()))
        },
        mean,
        Some(mean),
    ),
    vjp: Vjp::Each(&[d(0, A0, |c| c.tied(AREA_BACKWARD.call((c.g(), c.sizes(0))), &[0]))]),
    keeps: Some("self"),
    errors: &[
        ("f32[2,3], (3,)", "RuntimeError", "three to five dimensions"),
        ("f32[2,3,4], (-1,)", "RuntimeError", "greater than or equal to 0"),
        ("f32[2,0,4], (2,)", "RuntimeError", "non-zero size"),
        ("u8[2,3,4], (2,)", "NotImplementedError", "not implemented for 'Byte'"),
    ],
    ..OP
};

pub static AREA: Op = Op {
    sig: sig("_upsample_area(Tensor self, int[] output_size) -> Tensor"),
    node: "AdaptiveAvgPool2DBackward0",
    samples: &["f32[2,3,7], (3,)", "f32[2,3,5,4], (2, 6)"],
    ..MEANS
};
pub static AREA3D: Op = Op {
    sig: sig("_upsample_area3d(Tensor self, int[] output_size) -> Tensor"),
    node: "AdaptiveAvgPool3DBackward0",
    samples: &["f32[1,2,3,4,5], (2, 2, 2)"],
    ..MEANS
};

/// The op of as many dimensions; a row is an image of height one.
pub fn area(t: &Tensor, size: &[i64]) -> Result<Outputs> {
    match size {
        &[n] => SQUEEZE_DIM.calls((AREA.call((Term::from(t).unsqueeze(2), [1, n])), 2)),
        [_, _, _] => AREA3D.calls((t, size)),
        _ => AREA.calls((t, size)),
    }
}

fn mean(c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    resample(t, &axes(&t.shape()[2..], &out[0].shape()[2..]), Method::Area, false, &out[0])
}

pub static AREA_BACKWARD: Op = Op {
    sig: sig("_upsample_area_backward(Tensor grad_output, int[] input_size) -> Tensor"),
    doc: "The gradient of `_upsample_area`.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let (g, input) = (c.tensor(0)?, crate::layout::to_shape(c.ints(1)?)?);
            let output: Ints = g.shape().iter().skip(2).map(|&n| n as i64).collect();
            check(&input, &output, g.dtype())?;
            if g.shape()[..2] != input[..2] {
                return Err(Error::runtime("the gradient must have batch and channels of the input"));
            }
            formed(g, input)
        },
        spread,
        Some(spread),
    ),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let size: Ints = c.sizes(0)[2..].into();
        AREA.call((c.g(), size))
    })]),
    samples: &["f32[2,3,3], (2, 3, 7)"],
    errors: &[("f32[2,3,3], (2, 4, 7)", "RuntimeError", "batch and channels")],
    ..OP
};

fn spread(c: &Call, out: &[Tensor]) -> Result<()> {
    let g = c.tensor(0)?;
    if g.numel() == 0 {
        return out[0].fill_raw(crate::dtype::Scalar::Int(0));
    }
    resample(g, &axes(&out[0].shape()[2..], &g.shape()[2..]), Method::Area, true, &out[0])
}
