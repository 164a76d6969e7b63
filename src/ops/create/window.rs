//! Windows for spectral analysis: numbers of their place between -1 and 1, tabulated in double precision on the host.

use crate::cpu::bessel::i0;
use crate::dtype::default_dtype;
use crate::error::{Error, Result};
use crate::op::*;
use crate::rt::reserve::filled;
use crate::tensor::Tensor;
use std::f64::consts::PI;

pub static OPS: &[&Op] = &[&HANN, &HAMMING, &BARTLETT, &BLACKMAN, &KAISER];

/// What a window looks like.
fn line(c: &Call) -> Result<Specs> {
    let (n, name) = (c.int("window_length")?, c.op.base());
    let dtype = c.dtype("dtype").unwrap_or_else(default_dtype);
    if !dtype.is_float() {
        let got = dtype.name();
        return Err(Error::runtime(format!("{name} expects floating point dtypes, got: {got}")));
    }
    if n < 0 {
        return Err(Error::runtime(format!("{name} requires non-negative window_length, got window_length={n}")));
    }
    Ok(Spec::one(&[n as usize], dtype, c.device("device").unwrap_or_default()))
}

/// Writes the window. Of a periodic one (argument 1) the last element is left out.
fn window(c: &Call, out: &[Tensor], of: impl Fn(f64) -> f64) -> Result<()> {
    let n = out[0].numel();
    let mut values = filled(1f64, n)?;
    let last = if c.flag("periodic") { n as f64 } else { n as f64 - 1.0 };
    if n > 1 {
        values.iter_mut().enumerate().for_each(|(i, v)| *v = of(2.0 * i as f64 / last - 1.0));
    }
    let values = Term(Tensor::from_slice(&values, &[n])).to_dtype(out[0].dtype()).ok()?;
    out[0].copy_raw(&values)
}

const WINDOW: Op = Op {
    forms: F,
    vjp: Vjp::None("creation"),
    samples: &["5", "5, False", "4, dtype=float64", "1", "0", "3, dtype=float16"],
    errors: &[
        ("-1", "RuntimeError", "requires non-negative window_length"),
        ("4, dtype=int32", "RuntimeError", "expects floating point dtypes"),
    ],
    ..OP
};

pub static HANN: Op = Op {
    sig: sig(
        "hann_window(int window_length, bool periodic=True, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "Hann's window: a raised cosine.",
    body: factory(line, |c, out| window(c, out, |x| 0.5 + 0.5 * (PI * x).cos())),
    ..WINDOW
};
pub static HAMMING: Op = Op {
    sig: sig(
        "hamming_window(int window_length, bool periodic=True, float alpha=0.54, float beta=0.46, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "Hamming's window: a cosine times `beta` on a pedestal `alpha`.",
    body: factory(line, |c, out| {
        let (alpha, beta) = (c.float("alpha")?, c.float("beta")?);
        window(c, out, |x| alpha + beta * (PI * x).cos())
    }),
    samples: &["5", "5, False", "4, dtype=float64", "1", "0", "6, True, 0.5", "6, False, 0.5, 0.25"],
    ..WINDOW
};
pub static BARTLETT: Op = Op {
    sig: sig(
        "bartlett_window(int window_length, bool periodic=True, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "Bartlett's window: a triangle.",
    body: factory(line, |c, out| window(c, out, |x| 1.0 - x.abs())),
    ..WINDOW
};
pub static BLACKMAN: Op = Op {
    sig: sig(
        "blackman_window(int window_length, bool periodic=True, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "Blackman's window: two cosines on a pedestal.",
    body: factory(line, |c, out| window(c, out, |x| 0.42 + 0.5 * (PI * x).cos() + 0.08 * (2.0 * PI * x).cos())),
    ..WINDOW
};
pub static KAISER: Op = Op {
    sig: sig(
        "kaiser_window(int window_length, bool periodic=True, float beta=12.0, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "Kaiser's window: `i0(beta sqrt(1 - x^2)) / i0(beta)`.",
    body: factory(line, |c, out| {
        let beta = c.float("beta")?;
        window(c, out, |x| i0(beta * (1.0 - x * x).sqrt()) / i0(beta))
    }),
    samples: &["5", "5, False", "4, dtype=float64", "1", "0", "6, True, 3.0"],
    ..WINDOW
};
