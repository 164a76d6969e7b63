//! Transforms of one dimension.

use super::*;

pub static OPS: &[&Op] = &[&FFT, &IFFT, &RFFT, &IRFFT, &HFFT, &IHFFT];

/// The dimension to transform; a 0-d tensor has none.
fn dim_of(c: &Call) -> Result<i64> {
    let dim = c.int("dim")?;
    if c.tensor(0)?.ndim() > 0 {
        return Ok(dim);
    }
    Err(Error::index(format!("Dimension specified as {dim} but tensor has no dimensions")))
}

/// `n`, or the size of the dimension.
fn length(c: &Call) -> Result<i64> {
    let dim = dim_of(c)?;
    let t = c.tensor(0)?;
    enough(c.opt_int("n").unwrap_or(t.size(from_front(dim, t.ndim())) as i64))
}

fn complex_to_complex(c: &Call, forward: bool) -> Result<Outputs> {
    let (dim, n, mode, t) = (dim_of(c)?, length(c)?, norm_of(c, forward)?, c.tensor(0)?);
    if t.dtype().is_complex() {
        return C2C.calls((resized(promoted(t, true)?, dim, n), [dim], mode, forward));
    }
    let whole = R2C.call((resized(promoted(t, false)?, dim, n), [dim], mode, false));
    if forward { whole.outputs() } else { whole.conj().outputs() }
}

fn real_to_complex(c: &Call, forward: bool) -> Result<Outputs> {
    let (dim, n, mode, t) = (dim_of(c)?, length(c)?, norm_of(c, forward)?, c.tensor(0)?);
    if t.dtype().is_complex() {
        let (name, got) = (c.op.base(), t.dtype().scalar_type_name());
        return Err(Error::runtime(format!("{name} expects a real input tensor, but got {got}")));
    }
    let half = R2C.call((resized(promoted(t, false)?, dim, n), [dim], mode, true));
    if forward { half.outputs() } else { half.conj().outputs() }
}

fn complex_to_real(c: &Call, forward: bool) -> Result<Outputs> {
    let (dim, mode, t) = (dim_of(c)?, norm_of(c, forward)?, c.tensor(0)?);
    let size = t.size(from_front(dim, t.ndim())) as i64;
    let n = enough(c.opt_int("n").unwrap_or(2 * (size - 1)))?;
    let half = resized(promoted(t, true)?, dim, n / 2 + 1);
    C2R.calls((if forward { half.conj() } else { half }, [dim], mode, n))
}

const BAD_LENGTH: (&str, &str, &str) = ("f32[3], 0", "RuntimeError", "Invalid number of data points (0) specified");
const BAD_NORM: (&str, &str, &str) = ("f32[3], norm='none'", "RuntimeError", "Invalid normalization mode: \"none\"");
const HALF: (&str, &str, &str) = ("f16[3]", "RuntimeError", "Unsupported dtype Half");

pub static FFT: Op = Op {
    sig: sig("fft.fft(Tensor input, int? n=None, Dim dim=-1, str? norm=None) -> Tensor"),
    doc: "The discrete Fourier transform of one dimension, `X[k] = sum_j x[j] exp(-2 pi i j k / n)`. `norm`: 'backward' (the default) divides the inverse by n, 'forward' the transform, 'ortho' both by its root.",
    body: decompose(|c| complex_to_complex(c, true)),
    samples: &[
        "c64[5]",
        "f32[2,6]",
        "c64[3,4], 3, 0",
        "f64[4], 7, norm='ortho'",
        "i64[4], norm='forward'",
        "c128[2,0,3]",
    ],
    errors: &[
        BAD_LENGTH,
        BAD_NORM,
        HALF,
        ("f32[]", "IndexError", "tensor has no dimensions"),
        ("f32[2], None, 3", "IndexError", "Dimension out of range"),
    ],
    reference: "np.fft.fft(x0, n, dim, norm)",
    ..TRANSFORM
};
pub static IFFT: Op = Op {
    sig: sig("fft.ifft(Tensor input, int? n=None, Dim dim=-1, str? norm=None) -> Tensor"),
    doc: "The inverse of `fft`.",
    body: decompose(|c| complex_to_complex(c, false)),
    samples: &["c64[5]", "f32[2,6]", "c64[3,4], 3, 0", "f64[4], 7, norm='ortho'", "i64[4], norm='forward'"],
    errors: &[BAD_LENGTH, BAD_NORM, HALF],
    reference: "np.fft.ifft(x0, n, dim, norm)",
    ..TRANSFORM
};
pub static RFFT: Op = Op {
    sig: sig("fft.rfft(Tensor input, int? n=None, Dim dim=-1, str? norm=None) -> Tensor"),
    doc: "The first `n / 2 + 1` numbers of the transform of a real signal; the others are their conjugates.",
    body: decompose(|c| real_to_complex(c, true)),
    samples: &["f32[5]", "f32[2,6]", "f32[3,4], 3, 0", "f64[4], 7, norm='ortho'", "i64[4], norm='forward'"],
    errors: &[
        BAD_LENGTH,
        BAD_NORM,
        HALF,
        ("c64[3]", "RuntimeError", "rfft expects a real input tensor, but got ComplexFloat"),
    ],
    reference: "np.fft.rfft(x0, n, dim, norm)",
    ..TRANSFORM
};
pub static IRFFT: Op = Op {
    sig: sig("fft.irfft(Tensor input, int? n=None, Dim dim=-1, str? norm=None) -> Tensor"),
    doc: "The inverse of `rfft`: a real signal of length n, by default `2 (input.size(dim) - 1)`.",
    body: decompose(|c| complex_to_real(c, false)),
    samples: &["c64[4]", "c64[2,4], 5", "c64[3,4], 4, 0", "c128[4], 9, norm='ortho'", "f32[4], norm='forward'"],
    errors: &[BAD_LENGTH, BAD_NORM, HALF, ("c64[1]", "RuntimeError", "Invalid number of data points (0) specified")],
    reference: "np.fft.irfft(x0, n, dim, norm)",
    ..TRANSFORM
};
pub static HFFT: Op = Op {
    sig: sig("fft.hfft(Tensor input, int? n=None, Dim dim=-1, str? norm=None) -> Tensor"),
    doc: "The transform, which is real, of a Hermitian signal of length n that is given by its first half.",
    body: decompose(|c| complex_to_real(c, true)),
    samples: &["c64[4]", "c64[2,4], 5", "c64[3,4], 4, 0", "c128[4], 9, norm='ortho'", "f32[4], norm='forward'"],
    errors: &[BAD_LENGTH, BAD_NORM, HALF],
    reference: "np.fft.hfft(x0, n, dim, norm)",
    ..TRANSFORM
};
pub static IHFFT: Op = Op {
    sig: sig("fft.ihfft(Tensor input, int? n=None, Dim dim=-1, str? norm=None) -> Tensor"),
    doc: "The inverse of `hfft`: half of a Hermitian signal.",
    body: decompose(|c| real_to_complex(c, false)),
    samples: &["f32[5]", "f32[2,6]", "f32[3,4], 3, 0", "f64[4], 7, norm='ortho'", "i64[4], norm='forward'"],
    errors: &[BAD_LENGTH, BAD_NORM, HALF, ("c64[3]", "RuntimeError", "ihfft expects a real input tensor")],
    reference: "np.fft.ihfft(x0, n, dim, norm)",
    ..TRANSFORM
};
