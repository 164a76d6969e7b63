//! Transforms of two and of several dimensions.

use super::*;

pub static OPS: &[&Op] =
    &[&FFT2, &IFFT2, &RFFT2, &IRFFT2, &HFFT2, &IHFFT2, &FFTN, &IFFTN, &RFFTN, &IRFFTN, &HFFTN, &IHFFTN];

/// The dimensions to transform and the sizes there.
struct Plan {
    dims: Ints,
    shape: Ints,
    /// Whether the caller gave the size of the last one.
    last_given: bool,
}

impl Plan {
    fn of(c: &Call) -> Result<Plan> {
        let t = c.tensor(0)?;
        let (ndim, s) = (t.ndim(), c.opt_ints("s"));
        let dims: Ints = match (c.opt_dims("dim"), s) {
            (Some(dims), _) => {
                if ndim == 0 && !dims.is_empty() {
                    return Err(Error::index("Dimension specified as -1 but tensor has no dimensions"));
                }
                dims.iter().map(|&d| d as i64).collect()
            }
            (None, Some(s)) => (ndim.saturating_sub(s.len()) as i64..ndim as i64).collect(),
            (None, None) => (0..ndim as i64).collect(),
        };
        if (1..dims.len()).any(|i| dims[..i].contains(&dims[i])) {
            return Err(Error::runtime("FFT dims must be unique"));
        }
        let size = |d: i64| t.size(d as usize) as i64;
        let shape: Ints = match s {
            Some(s) if c.opt_ints("dim").is_some_and(|dims| dims.len() != s.len()) => {
                return Err(Error::runtime("When given, dim and shape arguments must have the same length"));
            }
            Some(s) if s.len() > ndim => {
                return Err(Error::runtime(format!(
                    "Got shape with {} values but input tensor only has {ndim} dimensions.",
                    s.len()
                )));
            }
            Some(s) => s.iter().zip(&dims).map(|(&n, &d)| if n == -1 { size(d) } else { n }).collect(),
            None => dims.iter().map(|&d| size(d)).collect(),
        };
        shape.iter().try_for_each(|&n| enough(n).map(drop))?;
        Ok(Plan { dims, shape, last_given: s.and_then(|s| s.last()).is_some_and(|&n| n != -1) })
    }
    /// The last dimension; an error where there is none.
    fn last(&self, c: &Call) -> Result<i64> {
        let none = || Error::runtime(format!("{} must transform at least one axis", c.op.base()));
        self.dims.last().copied().ok_or_else(none)
    }
    /// The dimensions but the last.
    fn rest(&self) -> &[i64] {
        &self.dims[..self.dims.len().saturating_sub(1)]
    }
    fn resized(&self, t: Term) -> Term {
        self.dims.iter().zip(&self.shape).fold(t, |t, (&d, &n)| super::resized(t, d, n))
    }
}

fn complex_to_complex(c: &Call, forward: bool) -> Result<Outputs> {
    let (plan, mode) = (Plan::of(c)?, norm_of(c, forward)?);
    C2C.calls((plan.resized(promoted(c.tensor(0)?, true)?), plan.dims, mode, forward))
}

fn real_to_complex(c: &Call, forward: bool) -> Result<Outputs> {
    let (plan, mode, t) = (Plan::of(c)?, norm_of(c, forward)?, c.tensor(0)?);
    let last = plan.last(c)?;
    if t.dtype().is_complex() {
        let (name, got) = (c.op.base(), t.dtype().scalar_type_name());
        return Err(Error::runtime(format!("{name} expects a real-valued input tensor, but got {got}")));
    }
    let x = plan.resized(promoted(t, false)?);
    if forward {
        return R2C.calls((x, &plan.dims[..], mode, true));
    }
    let half = R2C.call((x, [last], mode, true)).conj();
    if plan.rest().is_empty() { half.outputs() } else { C2C.calls((half, plan.rest(), mode, false)) }
}

fn complex_to_real(c: &Call, forward: bool) -> Result<Outputs> {
    let (mut plan, mode, t) = (Plan::of(c)?, norm_of(c, forward)?, c.tensor(0)?);
    let last = plan.last(c)?;
    let n = match plan.shape.last() {
        Some(&n) if plan.last_given => n,
        _ => enough(2 * (t.size(last as usize) as i64 - 1))?,
    };
    if let Some(size) = plan.shape.last_mut() {
        *size = n / 2 + 1;
    }
    let x = plan.resized(promoted(t, true)?);
    if !forward {
        return C2R.calls((x, &plan.dims[..], mode, n));
    }
    let x = if plan.rest().is_empty() { x } else { C2C.call((x, plan.rest(), mode, true)) };
    C2R.calls((x.conj(), [last], mode, n))
}

const BAD_LENGTH: (&str, &str, &str) =
    ("f32[3,2], (0, 2)", "RuntimeError", "Invalid number of data points (0) specified");
const BAD_NORM: (&str, &str, &str) = ("f32[3,2], norm='none'", "RuntimeError", "Invalid normalization mode: \"none\"");
const TWICE: (&str, &str, &str) = ("f32[3,2], dim=(0, -2)", "RuntimeError", "FFT dims must be unique");
const LENGTHS: (&str, &str, &str) = ("f32[3,2], (2,), (0, 1)", "RuntimeError", "must have the same length");
const COMPLEX: (&str, &str, &str) =
    ("c64[3,2]", "RuntimeError", "expects a real-valued input tensor, but got ComplexFloat");
const TOO_MANY: (&str, &str, &str) =
    ("f32[3], (2, 2)", "RuntimeError", "Got shape with 2 values but input tensor only has 1");

/// Samples of complex or real numbers.
const ANY: &[&str] =
    &["c64[2,3,4]", "f32[3,4]", "c64[3,4,2], (3, 5), (0, 1), 'ortho'", "f64[2,3], (-1, 4), norm='forward'"];
const REAL_ONLY: &[&str] =
    &["f32[2,3,4]", "f64[3,5]", "f32[3,4,2], (3, 5), (0, 1), 'ortho'", "f64[2,3], (-1, 4), norm='forward'"];
const HALVES: &[&str] =
    &["c64[2,3,4]", "c128[3,3], (3, 5)", "c64[3,4,2], (3, 5), (0, 1), 'ortho'", "c128[2,3], (-1, -1), norm='forward'"];

pub static FFT2: Op = Op {
    sig: sig("fft.fft2(Tensor input, int[1]? s=None, Dim[1] dim=[-2, -1], str? norm=None) -> Tensor"),
    doc: "The discrete Fourier transform of two dimensions, cut or padded with zeros to the sizes `s`.",
    body: decompose(|c| complex_to_complex(c, true)),
    samples: ANY,
    errors: &[BAD_LENGTH, BAD_NORM, TWICE, LENGTHS, ("f32[3]", "IndexError", "Dimension out of range")],
    reference: "np.fft.fft2(x0, None if s is None else [x0.shape[d] if n == -1 else n for n, d in zip(s, dim)], dim, norm)",
    ..TRANSFORM
};
pub static IFFT2: Op = Op {
    sig: sig("fft.ifft2(Tensor input, int[1]? s=None, Dim[1] dim=[-2, -1], str? norm=None) -> Tensor"),
    doc: "The inverse of `fft2`.",
    body: decompose(|c| complex_to_complex(c, false)),
    samples: ANY,
    errors: &[BAD_LENGTH, BAD_NORM],
    reference: "np.fft.ifft2(x0, None if s is None else [x0.shape[d] if n == -1 else n for n, d in zip(s, dim)], dim, norm)",
    ..TRANSFORM
};
pub static RFFT2: Op = Op {
    sig: sig("fft.rfft2(Tensor input, int[1]? s=None, Dim[1] dim=[-2, -1], str? norm=None) -> Tensor"),
    doc: "`fft2` of a real signal: the first half along the last dimension.",
    body: decompose(|c| real_to_complex(c, true)),
    samples: REAL_ONLY,
    errors: &[BAD_LENGTH, COMPLEX],
    reference: "np.fft.rfft2(x0, None if s is None else [x0.shape[d] if n == -1 else n for n, d in zip(s, dim)], dim, norm)",
    ..TRANSFORM
};
pub static IRFFT2: Op = Op {
    sig: sig("fft.irfft2(Tensor input, int[1]? s=None, Dim[1] dim=[-2, -1], str? norm=None) -> Tensor"),
    doc: "The inverse of `rfft2`.",
    body: decompose(|c| complex_to_real(c, false)),
    samples: HALVES,
    errors: &[BAD_LENGTH, BAD_NORM],
    ..TRANSFORM
};
pub static HFFT2: Op = Op {
    sig: sig("fft.hfft2(Tensor input, int[1]? s=None, Dim[1] dim=[-2, -1], str? norm=None) -> Tensor"),
    doc: "The transform, which is real, of a signal that is Hermitian in two dimensions and given by its half.",
    body: decompose(|c| complex_to_real(c, true)),
    samples: HALVES,
    errors: &[BAD_LENGTH, BAD_NORM],
    ..TRANSFORM
};
pub static IHFFT2: Op = Op {
    sig: sig("fft.ihfft2(Tensor input, int[1]? s=None, Dim[1] dim=[-2, -1], str? norm=None) -> Tensor"),
    doc: "The inverse of `hfft2`.",
    body: decompose(|c| real_to_complex(c, false)),
    samples: REAL_ONLY,
    errors: &[BAD_LENGTH, COMPLEX],
    ..TRANSFORM
};
pub static FFTN: Op = Op {
    sig: sig("fft.fftn(Tensor input, int[1]? s=None, Dim[1]? dim=None, str? norm=None) -> Tensor"),
    doc: "The discrete Fourier transform of several dimensions: `dim`, or the last `len(s)`, or all.",
    body: decompose(|c| complex_to_complex(c, true)),
    samples: ANY,
    errors: &[BAD_LENGTH, BAD_NORM, TWICE, LENGTHS, TOO_MANY],
    ..TRANSFORM
};
pub static IFFTN: Op = Op {
    sig: sig("fft.ifftn(Tensor input, int[1]? s=None, Dim[1]? dim=None, str? norm=None) -> Tensor"),
    doc: "The inverse of `fftn`.",
    body: decompose(|c| complex_to_complex(c, false)),
    samples: ANY,
    errors: &[BAD_LENGTH, BAD_NORM],
    ..TRANSFORM
};
pub static RFFTN: Op = Op {
    sig: sig("fft.rfftn(Tensor input, int[1]? s=None, Dim[1]? dim=None, str? norm=None) -> Tensor"),
    doc: "`fftn` of a real signal: the first half along the last dimension.",
    body: decompose(|c| real_to_complex(c, true)),
    samples: REAL_ONLY,
    errors: &[BAD_LENGTH, COMPLEX, ("f32[]", "RuntimeError", "rfftn must transform at least one axis")],
    ..TRANSFORM
};
pub static IRFFTN: Op = Op {
    sig: sig("fft.irfftn(Tensor input, int[1]? s=None, Dim[1]? dim=None, str? norm=None) -> Tensor"),
    doc: "The inverse of `rfftn`: a real signal, by default of size `2 (input.size(-1) - 1)` in the last dimension.",
    body: decompose(|c| complex_to_real(c, false)),
    samples: HALVES,
    errors: &[BAD_LENGTH, BAD_NORM, ("c64[]", "RuntimeError", "irfftn must transform at least one axis")],
    ..TRANSFORM
};
pub static HFFTN: Op = Op {
    sig: sig("fft.hfftn(Tensor input, int[1]? s=None, Dim[1]? dim=None, str? norm=None) -> Tensor"),
    doc: "The transform, which is real, of a Hermitian signal that is given by its first half in the last dimension.",
    body: decompose(|c| complex_to_real(c, true)),
    samples: HALVES,
    errors: &[BAD_LENGTH, BAD_NORM],
    ..TRANSFORM
};
pub static IHFFTN: Op = Op {
    sig: sig("fft.ihfftn(Tensor input, int[1]? s=None, Dim[1]? dim=None, str? norm=None) -> Tensor"),
    doc: "The inverse of `hfftn`.",
    body: decompose(|c| real_to_complex(c, false)),
    samples: REAL_ONLY,
    errors: &[BAD_LENGTH, COMPLEX],
    ..TRANSFORM
};
