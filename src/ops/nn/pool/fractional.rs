//! Fractional max pooling: windows of one size at random starts, which overlap little.
//!
//! Source: Graham, "Fractional Max-Pooling", arXiv:1412.6071. The starts are those of PyTorch for the same samples.

use super::max::{by_places, flat, picked};
use super::{check_input, each};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::create::range::ARANGE;
use crate::ops::elementwise::rounding::TRUNC;
use crate::ops::reduce::extrema::MAX_DIM;
use crate::ops::support::promotion::no_kernel;
use crate::ops::view::reshape::SLICE;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&FRACTIONAL2D, &FRACTIONAL3D];

/// The first elements of the windows along a dimension of `size`: `[planes, out]` for a sample of each plane.
fn starts(sample: Term, size: usize, kernel: i64, out: i64) -> Term {
    let last = (size as i64 - kernel) as f64;
    let planes = sample.sizes()[0];
    let device = sample.get().map(|t| t.device());
    let at = ARANGE.call((out, DType::F64, device));
    if out <= 1 {
        return (sample.clone() * 0.0 + last).reshape(&[planes, 1]).expand(&[planes, out]).to_dtype(DType::I64);
    }
    // In the dtype of the samples, as PyTorch computes them.
    let alpha = last / (out - 1) as f64;
    let sample = sample.reshape(&[planes, 1]);
    let whole = |t: Term| TRUNC.call((t,));
    let dtype = sample.get().map_or(DType::F32, |t| t.dtype());
    let inner = whole((sample.clone() + at.clone().to_dtype(dtype)) * alpha) - whole(sample * alpha);
    let is_last = at.equals(out - 1);
    (inner.clone() * 0.0 + last).where_else(is_last, inner).to_dtype(DType::I64)
}

/// The maxima and their places.
fn run<const D: usize>(c: &Call) -> Result<Outputs> {
    let (x, samples) = (c.tensor(0)?, c.tensor("random_samples")?);
    check_input::<D>(x)?;
    let exactly = |list: &[i64], what: &str| match list.len() == D {
        true => each::<D>(list, what),
        false => each::<D>(&[], what),
    };
    let kernel = exactly(c.ints("kernel_size")?, "kernel_size must either")?;
    let out = exactly(c.ints("output_size")?, "output_size must either")?;
    let lead = x.ndim() - D;
    let planes = x.shape()[..lead].iter().product::<usize>() as i64;
    let names = ["time", "height", "width"];
    // In three dimensions PyTorch wants one element more.
    let spare = D as i64 - 2;
    for i in 0..D {
        let n = x.size(lead + i) as i64;
        if kernel[i] < 1 || out[i] < 0 || out[i] + kernel[i] - 1 + spare > n {
            let name = names[3 - D + i];
            return Err(Error::runtime(format!("pool {name} {} too large relative to input {name} {n}", kernel[i])));
        }
    }
    let batch = if lead == 2 { x.size(0) } else { 1 };
    if samples.ndim() != 3 {
        return Err(Error::runtime(format!("Expect _random_samples to have 3 dimensions, got {}", samples.ndim())));
    }
    // More samples than the batch needs may be given.
    let problem = match [samples.size(0) < batch, samples.size(1) != x.size(lead - 1), samples.size(2) != D] {
        [true, ..] => "size(0) no less then input batch size",
        [_, true, _] => "size(1) equals to input channel size",
        [.., true] => "size(2) equals to the number of pooled dimensions",
        _ => "",
    };
    if !problem.is_empty() {
        return Err(Error::runtime(format!("Expect _random_samples.{problem}.")));
    }
    if samples.dtype() != x.dtype() {
        return Err(Error::runtime("Expect _random_samples to have the same dtype as input"));
    }
    if samples.device() != x.device() {
        let (a, b) = (x.device(), samples.device());
        return Err(Error::runtime(format!("Expected input and _random_samples on the same device, got {a} and {b}")));
    }
    if !x.dtype().is_float() {
        return Err(no_kernel(&format!("fractional_max_pool{D}d_out_frame"), x.dtype()));
    }
    let samples = SLICE.call((Term::from(samples).reshape(&[-1, D as i64]), 0, 0, planes));
    // The place of every element of every window: [planes, out of the first, kernel of the first, out of the second, ..].
    let mut places = ARANGE.call((1, DType::I64, Some(x.device())));
    for i in 0..D {
        // PyTorch's first sample is of the last dimension in two dimensions, of the first in three.
        let column = if D == 2 { D - 1 - i } else { i };
        let size = x.size(lead + i);
        let first = starts(samples.clone().select(1, column as i64), size, kernel[i], out[i]);
        let within = ARANGE.call((kernel[i], DType::I64, Some(x.device())));
        let mut shape: Ints = smallvec![1; 1 + 2 * D];
        (shape[0], shape[1 + 2 * i]) = (planes, out[i]);
        let mut steps: Ints = smallvec![1; 1 + 2 * D];
        steps[2 + 2 * i] = kernel[i];
        places = places * size as i64 + (first.reshape(&shape) + within.reshape(&steps));
    }
    let order: Ints =
        [0].into_iter().chain((0..D as i64).map(|i| 1 + 2 * i)).chain((0..D as i64).map(|i| 2 + 2 * i)).collect();
    let (results, each_window): (i64, i64) = (out.iter().product(), kernel.iter().product());
    let places = crate::ops::view::reshape::PERMUTE.call((places, order)).reshape(&[planes, results * each_window]);
    let values = picked(Term::from(x).reshape(&flat(&Term::from(x).sizes(), D)), places.clone(), 1);
    let best = MAX_DIM.calls((values.reshape(&[planes * results, each_window]), 1))?;
    let whole: Ints = x.shape()[..lead].iter().map(|&n| n as i64).chain(out).collect();
    let own = picked(
        places.reshape(&[planes * results, each_window]),
        Term::from(&best[1]).reshape(&[planes * results, 1]),
        1,
    );
    let values = Term::from(&best[0]).reshape(&whole).ok()?;
    Ok(smallvec![values, own.reshape(&whole).ok()?])
}

const FRACTIONAL: Op = Op {
    doc: "The largest element of each of `output_size` windows of size `kernel_size`, and its place among the elements of its channel. The windows start where `random_samples` [batch, channels, dimensions], in [0, 1), says.",
    forms: HIDDEN,
    constant: &[1],
    keeps: Some("kernel_size output_size result1"),
    ..OP
};

pub static FRACTIONAL2D: Op = Op {
    sig: sig(
        "_fractional_max_pool2d(Tensor self, int[1] kernel_size, int[1] output_size, Tensor~ random_samples) -> Tensor[]",
    ),
    body: decompose(run::<2>),
    vjp: Vjp::Each(&[d(0, OUT1, by_places::<2>)]),
    samples: &[
        "f32[2,3,7,6], (2, 2), (3, 3), f32[2,3,2](unit, nograd)",
        "f32[2,5,7], (3, 2), (1, 4), f32[1,2,2](unit, nograd)",
    ],
    errors: &[
        ("f32[1,1,4,4], (2, 2), (4, 4), f32[1,1,2](unit)", "RuntimeError", "too large relative to input height"),
        ("c64[1,1,4,4], (2, 2), (2, 2), c64[1,1,2]", "NotImplementedError", "not implemented for 'ComplexFloat'"),
        ("f32[1,1,4,4], (2, 2), (2, 2), f32[1,2,2](unit)", "RuntimeError", "Expect _random_samples"),
        ("f32[1,1,4,4], (2,), (2, 2), f32[1,1,2](unit)", "RuntimeError", "kernel_size must either be a single int"),
    ],
    ..FRACTIONAL
};
pub static FRACTIONAL3D: Op = Op {
    sig: sig(
        "_fractional_max_pool3d(Tensor self, int[1] kernel_size, int[1] output_size, Tensor~ random_samples) -> Tensor[]",
    ),
    body: decompose(run::<3>),
    vjp: Vjp::Each(&[d(0, OUT1, by_places::<3>)]),
    samples: &["f32[1,2,5,5,6], (2, 2, 2), (2, 3, 3), f32[1,2,3](unit, nograd)"],
    errors: &[(
        "f32[1,1,4,4,4], (2, 2, 2), (3, 2, 2), f32[1,1,3](unit)",
        "RuntimeError",
        "too large relative to input time",
    )],
    ..FRACTIONAL
};
