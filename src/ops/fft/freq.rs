//! Frequencies of transforms, and their order.

use super::*;
use crate::ops::movement::flip_roll::ROLL;
use crate::rt::reserve::filled;

pub static OPS: &[&Op] = &[&FFTFREQ, &RFFTFREQ, &FFTSHIFT, &IFFTSHIFT];

/// How many frequencies the op lists: as many as points, or half.
fn count(c: &Call) -> Result<usize> {
    let (n, all) = (c.int("n")?, c.op.base() == "fftfreq");
    usize::try_from(if all { n } else { n / 2 + 1 })
        .ok()
        .filter(|_| n >= 0)
        .ok_or_else(|| Error::runtime(format!("Trying to create tensor with negative dimension {n}: [{n}]")))
}

/// The dtype and the device that were asked for.
fn specs(c: &Call) -> Result<Specs> {
    let dtype = c.dtype("dtype").unwrap_or_else(default_dtype);
    if !dtype.is_differentiable() {
        return Err(Error::runtime(format!("{} requires a floating point or complex dtype", c.op.base())));
    }
    Ok(Spec::one(&[count(c)?], dtype, c.device("device").unwrap_or_default()))
}

/// `value` of each index, over `n d`.
fn table(c: &Call, value: impl Fn(i64) -> i64) -> Result<Outputs> {
    let spec = specs(c)?.swap_remove(0);
    let step = 1.0 / (c.int("n")? as f64 * c.float("d")?);
    let mut list = filled(0f64, count(c)?)?;
    list.iter_mut().enumerate().for_each(|(i, f)| *f = value(i as i64) as f64 * step);
    Term(Tensor::from_slice(&list, &[list.len()])).to_dtype(spec.dtype).to_device(spec.device).outputs()
}

const NEGATIVE: (&str, &str, &str) = ("-2", "RuntimeError", "negative dimension -2");
const WHOLE: (&str, &str, &str) = ("4, dtype=int64", "RuntimeError", "requires a floating point or complex dtype");

pub static FFTFREQ: Op = Op {
    sig: sig(
        "fft.fftfreq(int n, float d=1.0, *, DType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
    ),
    doc: "The frequencies of the numbers that `fft` of n points gives, `d` apart: `[0, 1 .., -2, -1] / (n d)`.",
    vjp: Vjp::None("creation"),
    out_dtype: Some(OutDType::Every),
    body: opaque(specs, |c| {
        let n = c.int("n")?;
        table(c, |i| if i < (n + 1) / 2 { i } else { i - n })
    }),
    samples: &["5", "4, 0.1, dtype=float64", "1", "0"],
    errors: &[NEGATIVE, WHOLE],
    reference: "np.fft.fftfreq(n, d) if n else np.zeros(0)",
    on_host: false,
    ..TRANSFORM
};
pub static RFFTFREQ: Op = Op {
    sig: sig(
        "fft.rfftfreq(int n, float d=1.0, *, DType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
    ),
    doc: "The frequencies of the numbers that `rfft` of n points gives, `d` apart: `[0, 1 .., n / 2] / (n d)`.",
    vjp: Vjp::None("creation"),
    out_dtype: Some(OutDType::Every),
    body: opaque(specs, |c| table(c, |i| i)),
    samples: &["5", "4, 0.1, dtype=float64", "1"],
    errors: &[NEGATIVE, WHOLE],
    reference: "np.fft.rfftfreq(n, d)",
    on_host: false,
    ..TRANSFORM
};

/// Rolls each dimension by a half of its size, `up` rounded up.
fn shifted(c: &Call, up: usize) -> Result<Outputs> {
    let t = c.tensor(0)?;
    let dims = match c.opt_dims("dim") {
        Some(dims) if t.ndim() > 0 || dims.is_empty() => dims,
        Some(_) => return Err(Error::index("Dimension specified as -1 but tensor has no dimensions")),
        None => (0..t.ndim()).collect(),
    };
    let shifts: Ints = dims.iter().map(|&d| ((t.size(d) + up) / 2) as i64).collect();
    let dims: Ints = dims.iter().map(|&d| d as i64).collect();
    ROLL.calls((t, shifts, dims))
}

const SHIFT: Op = Op {
    forms: F,
    vjp: Vjp::Composite,
    samples: &["f32[5]", "c64[2,4]", "i64[3,4], 0", "f32[3,4], (0, -1)"],
    errors: &[("f32[3], 1", "IndexError", "Dimension out of range"), ("f32[]", "RuntimeError", "`shifts` required")],
    ..OP
};
pub static FFTSHIFT: Op = Op {
    sig: sig("fft.fftshift(Tensor input, Dim[1]? dim=None) -> Tensor"),
    doc: "Moves the frequency zero from the front to the middle of each of `dim`, by default of all dimensions.",
    body: decompose(|c| shifted(c, 0)),
    reference: "np.fft.fftshift(x0, dim)",
    ..SHIFT
};
pub static IFFTSHIFT: Op = Op {
    sig: sig("fft.ifftshift(Tensor input, Dim[1]? dim=None) -> Tensor"),
    doc: "The inverse of `fftshift`.",
    body: decompose(|c| shifted(c, 1)),
    reference: "np.fft.ifftshift(x0, dim)",
    ..SHIFT
};
