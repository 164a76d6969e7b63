//! Convolutions of bytes, summed in int32: what quantised layers compute.

use super::{Steps, check};
use crate::cpu::conv::Motion;
use crate::cpu::gemm;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::layout::{Format, Layout, to_shape};
use crate::op::*;
use crate::ops::linalg::byte_products::{bytes, zero_point};
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&BYTE_CONV2D];

fn steps(c: &Call) -> Result<Steps> {
    let each = |name: &str| Steps::each(c, name, 2);
    let (stride, padding, dilation) = (each("stride")?, each("padding")?, each("dilation")?);
    Ok(Steps { stride, padding, dilation, output_padding: smallvec![0; 2], groups: 1, transposed: false })
}

/// The result's channels lie side by side.
fn infer(c: &Call) -> Result<Specs> {
    let (x, weight, steps) = (c.tensor(0)?, c.tensor("weight")?, steps(c)?);
    bytes([x, weight])?;
    zero_point(c)?;
    if weight.ndim() != 4 {
        return Err(Error::runtime(format!("expected a weight of four dimensions, got {}", Show(weight.shape()))));
    }
    check(x, weight.shape(), &steps)?;
    let kernel = [weight.size(2) as i64, weight.size(3) as i64];
    let places = steps.places(x.shape(), &kernel)?;
    let shape = to_shape(&[x.size(0) as i64, weight.size(0) as i64, places[0], places[1]])?;
    let strides = Format::ChannelsLast.strides(&shape)?;
    Ok(smallvec![Spec { layout: Layout { shape, strides, offset: 0 }, dtype: DType::I32, device: x.device() }])
}

fn run(c: &Call, out: &[Tensor]) -> Result<()> {
    let last = |t: &Tensor| t.with_layout(t.layout().permute(&[0, 2, 3, 1]));
    let [x, weight] = [c.tensor(0)?, c.tensor("weight")?].map(|t| Term::from(&last(t)).contiguous().ok());
    let (x, weight, out, steps) = (x?, weight?, last(&out[0]), steps(c)?);
    let Steps { stride, padding, dilation, .. } = &steps;
    let motion = Motion { stride, padding, dilation, groups: 1, transposed: false };
    gemm::byte_conv2d(x.cpu_view()?, weight.cpu_view()?, &motion, zero_point(c)?, out.cpu_view()?)
}

pub static BYTE_CONV2D: Op = Op {
    sig: sig(
        "_byte_conv2d(Tensor self, Tensor weight, int[] stride, int[] padding, int[] dilation, int zero_point=0) -> Tensor",
    ),
    doc: "`conv2d` of uint8 or int8 images less their zero point, summed in int32. Images and weights are read with their channels side by side, as the result has them.",
    forms: Forms(Forms::HIDDEN),
    body: kernel(infer, run, None),
    vjp: Vjp::None("integers have no gradient"),
    samples: &[
        "u8[2,3,5,4], i8[4,3,3,2], (1, 1), (0, 0), (1, 1), 128",
        "i8[1,2,5,5], i8[3,2,2,2], (2, 1), (1, 0), (1, 2), -3",
        "u8[1,2,4,4], i8[3,2,2,2], (1,), (0,), (1,)",
    ],
    errors: &[
        ("u8[1,2,3,3], i8[2,3,2,2], (1, 1), (0, 0), (1, 1)", "RuntimeError", "to have 3 channels, but got 2"),
        ("u8[1,2,3,3], i8[2,2,4,2], (1, 1), (0, 0), (1, 1)", "RuntimeError", "Kernel size can't be greater"),
        ("u8[1,2,3,3], i8[2,2,2,2], (0, 1), (0, 0), (1, 1)", "RuntimeError", "non-positive stride"),
        ("u8[1,2,3,3], i8[2,2,0,2], (1, 1), (0, 0), (1, 1)", "RuntimeError", "kernel size should be greater than zero"),
        ("u8[2,3,3], i8[2,2,2], (1, 1), (0, 0), (1, 1)", "RuntimeError", "a weight of four dimensions"),
        ("f32[1,2,3,3], i8[2,2,2,2], (1, 1), (0, 0), (1, 1)", "RuntimeError", "expected uint8 or int8, got float32"),
    ],
    ..OP
};
