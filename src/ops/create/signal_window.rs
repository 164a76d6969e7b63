//! `torch.signal.windows`: tapers for filters and spectra, tabulated in double precision on the host.
//!
//! A periodic window (`sym=False`) of length n is a symmetric one of length n + 1 without its last element. Formulas
//! as in SciPy's `signal.windows`.

use crate::cpu::bessel::i0e;
use crate::dtype::{DType, default_dtype};
use crate::error::{Error, Result};
use crate::op::*;
use crate::rt::reserve::{filled, list};
use crate::tensor::Tensor;
use std::f64::consts::{PI, SQRT_2};

pub static OPS: &[&Op] = &[
    &BARTLETT,
    &BLACKMAN,
    &COSINE,
    &EXPONENTIAL,
    &GAUSSIAN,
    &GENERAL_COSINE,
    &GENERAL_HAMMING,
    &HAMMING,
    &HANN,
    &KAISER,
    &NUTTALL,
];

/// The common arguments of all windows: the length first; `sym`, `dtype`, `device`, `requires_grad` last.
struct Window {
    n: usize,
    sym: bool,
    dtype: DType,
    device: crate::device::Device,
}

impl Window {
    fn of(c: &Call) -> Result<Window> {
        let (n, name, end) = (c.int("M")?, c.op.base(), c.args.len());
        let dtype = c.dtype(end - 3).unwrap_or_else(default_dtype);
        if n < 0 {
            return Err(Error::value(format!("{name} requires non-negative window length, got M={n}")));
        }
        if !matches!(dtype, DType::F32 | DType::F64) {
            let got = dtype.name();
            return Err(Error::value(format!("{name} expects float32 or float64 dtypes, got: torch.{got}")));
        }
        Ok(Window { n: n as usize, sym: c.flag(end - 4), dtype, device: c.device(end - 2).unwrap_or_default() })
    }
    fn specs(c: &Call) -> Result<Specs> {
        let w = Window::of(c)?;
        Ok(Spec::one(&[w.n], w.dtype, w.device))
    }
    /// Number of steps between the first and the last element of the symmetric window.
    fn steps(&self) -> f64 {
        if self.sym || self.n < 2 { self.n as f64 - 1.0 } else { self.n as f64 }
    }
    /// `value` of every integer from 0 on.
    fn table(&self, value: impl Fn(f64) -> f64) -> Result<Outputs> {
        let mut values = filled(1f64, self.n)?;
        values.iter_mut().enumerate().for_each(|(i, v)| *v = value(i as f64));
        let values = Term(Tensor::from_slice(&values, &[values.len()])).to_dtype(self.dtype);
        values.to_device(self.device).outputs()
    }
    /// `value` at positions from -1 to 1; one for a single element.
    fn between(&self, value: impl Fn(f64) -> f64) -> Result<Outputs> {
        let steps = self.steps();
        self.table(|i| if self.n == 1 { 1.0 } else { value((2.0 * i / steps - 1.0).min(1.0)) })
    }
    /// `sum((-1)^k a[k] cos(k x))` over a period; one for a single element.
    fn cosines(&self, a: &[f64]) -> Result<Outputs> {
        self.between(|x| a.iter().enumerate().map(|(k, w)| w * (k as f64 * PI * x).cos()).sum())
    }
}

const WINDOW: Op = Op {
    forms: F,
    vjp: Vjp::None("creation"),
    samples: &["5", "6, sym=False", "4, dtype=float64", "1", "1, sym=False", "0"],
    errors: &[
        ("-1", "ValueError", "requires non-negative window length, got M=-1"),
        ("4, dtype=float16", "ValueError", "expects float32 or float64 dtypes, got: torch.float16"),
    ],
    ..OP
};

pub static BARTLETT: Op = Op {
    sig: sig(
        "signal.windows.bartlett(int M, *, bool sym=True, DType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
    ),
    doc: "Bartlett's window: a triangle, `1 - |2 n / (M - 1) - 1|`.",
    body: opaque(Window::specs, |c| Window::of(c)?.between(|x| 1.0 - x.abs())),
    reference: "np.bartlett(x0) if sym or x0 < 2 else np.bartlett(x0 + 1)[:-1]",
    ..WINDOW
};
pub static BLACKMAN: Op = Op {
    sig: sig(
        "signal.windows.blackman(int M, *, bool sym=True, DType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
    ),
    doc: "Blackman's window: `general_cosine` with the coefficients 0.42, 0.5 and 0.08.",
    body: opaque(Window::specs, |c| Window::of(c)?.cosines(&[0.42, 0.5, 0.08])),
    reference: "np.blackman(x0) if sym or x0 < 2 else np.blackman(x0 + 1)[:-1]",
    ..WINDOW
};
pub static COSINE: Op = Op {
    sig: sig(
        "signal.windows.cosine(int M, *, bool sym=True, DType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
    ),
    doc: "Half a period of a sine, `sin(pi (n + 0.5) / M)`.",
    body: opaque(Window::specs, |c| {
        let w = Window::of(c)?;
        w.table(|i| (PI * (i + 0.5) / (w.steps() + 1.0)).sin())
    }),
    reference: "np.sin(np.pi * (np.arange(x0) + 0.5) / (x0 if sym or x0 < 2 else x0 + 1))",
    ..WINDOW
};
pub static EXPONENTIAL: Op = Op {
    sig: sig(
        "signal.windows.exponential(int M, *, float? center=None, float tau=1.0, bool sym=True, DType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
    ),
    doc: "Exponential decay on both sides of the centre, `exp(-|n - center| / tau)`; also known as Poisson's window.",
    body: opaque(Window::specs, |c| {
        let (w, tau) = (Window::of(c)?, c.float("tau")?);
        if tau.is_nan() || tau <= 0.0 {
            return Err(Error::value(format!("Tau must be positive, got: {tau} instead.")));
        }
        if w.sym && c.opt_float("center").is_some() {
            return Err(Error::value("Center must be None for symmetric windows"));
        }
        let center = c.opt_float("center").unwrap_or(w.steps() / 2.0);
        w.table(|i| (-(i - center).abs() / tau).exp())
    }),
    samples: &["5", "6, sym=False", "4, tau=2.5, dtype=float64", "5, center=1.0, sym=False", "1", "0"],
    errors: &[
        ("-1", "ValueError", "requires non-negative window length, got M=-1"),
        ("4, dtype=float16", "ValueError", "expects float32 or float64 dtypes, got: torch.float16"),
        ("4, tau=-1", "ValueError", "Tau must be positive, got: -1 instead."),
        ("4, center=1.0", "ValueError", "Center must be None for symmetric windows"),
    ],
    reference: "np.exp(-np.abs(np.arange(x0) - ((x0 - (sym or x0 < 2)) / 2 if center is None else center)) / tau)",
    ..WINDOW
};
pub static GAUSSIAN: Op = Op {
    sig: sig(
        "signal.windows.gaussian(int M, *, float std=1.0, bool sym=True, DType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
    ),
    doc: "A Gaussian around the middle, `exp(-((n - (M - 1) / 2) / std)^2 / 2)`.",
    body: opaque(Window::specs, |c| {
        let (w, std) = (Window::of(c)?, c.float("std")?);
        if std.is_nan() || std <= 0.0 {
            return Err(Error::value(format!("Standard deviation must be positive, got: {std} instead.")));
        }
        w.table(|i| (-((i - w.steps() / 2.0) / (std * SQRT_2)).powi(2)).exp())
    }),
    samples: &["5", "6, sym=False", "4, std=2.5, dtype=float64", "1", "0"],
    errors: &[
        ("-1", "ValueError", "requires non-negative window length, got M=-1"),
        ("4, dtype=float16", "ValueError", "expects float32 or float64 dtypes, got: torch.float16"),
        ("4, std=-1", "ValueError", "Standard deviation must be positive, got: -1 instead."),
    ],
    reference: "np.exp(-(((np.arange(x0) - (x0 - (sym or x0 < 2)) / 2) / std) ** 2) / 2)",
    ..WINDOW
};
pub static GENERAL_COSINE: Op = Op {
    sig: sig(
        "signal.windows.general_cosine(int M, *, float[] a, bool sym=True, DType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
    ),
    doc: "A sum of cosines, `sum((-1)^k a[k] cos(2 pi k n / (M - 1)))`.",
    body: opaque(Window::specs, |c| {
        let w = Window::of(c)?;
        let Value::Scalars(a) = c.argument("a") else { return Err(Error::type_("Coefficients must be a list/tuple")) };
        let a = list(a.iter().map(|s| s.to_f64()))?;
        if a.is_empty() && w.n > 1 {
            return Err(Error::value("Coefficients cannot be empty"));
        }
        w.cosines(&a)
    }),
    samples: &[
        "5, a=[0.46, 0.23, 0.31]",
        "6, a=[0.5], sym=False",
        "4, a=[0.4, 0.6], dtype=float64",
        "1, a=[0.4]",
        "0, a=[0.4]",
    ],
    errors: &[
        ("-1, a=[0.5]", "ValueError", "requires non-negative window length, got M=-1"),
        ("4, a=[0.5], dtype=float16", "ValueError", "expects float32 or float64 dtypes, got: torch.float16"),
        ("4, a=[]", "ValueError", "Coefficients cannot be empty"),
        ("4, a=1", "TypeError", "argument 'a'"),
    ],
    reference: "sum(w * (-1) ** k * np.cos(2 * np.pi * k * np.arange(x0) / (x0 - bool(sym))) for k, w in enumerate(a)) if x0 > 1 else np.ones(x0)",
    ..WINDOW
};
pub static GENERAL_HAMMING: Op = Op {
    sig: sig(
        "signal.windows.general_hamming(int M, *, float alpha=0.54, bool sym=True, DType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
    ),
    doc: "A cosine on a pedestal, `alpha - (1 - alpha) cos(2 pi n / (M - 1))`.",
    body: opaque(Window::specs, |c| {
        let alpha = c.float("alpha")?;
        Window::of(c)?.cosines(&[alpha, 1.0 - alpha])
    }),
    samples: &["5", "6, sym=False", "4, alpha=0.7, dtype=float64", "1", "0"],
    reference: "alpha - (1 - alpha) * np.cos(2 * np.pi * np.arange(x0) / (x0 - bool(sym))) if x0 > 1 else np.ones(x0)",
    ..WINDOW
};
pub static HAMMING: Op = Op {
    sig: sig(
        "signal.windows.hamming(int M, *, bool sym=True, DType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
    ),
    doc: "Hamming's window: `general_hamming` with alpha 0.54.",
    body: opaque(Window::specs, |c| Window::of(c)?.cosines(&[0.54, 0.46])),
    reference: "np.hamming(x0) if sym or x0 < 2 else np.hamming(x0 + 1)[:-1]",
    ..WINDOW
};
pub static HANN: Op = Op {
    sig: sig(
        "signal.windows.hann(int M, *, bool sym=True, DType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
    ),
    doc: "Hann's window, a raised cosine: `general_hamming` with alpha 0.5.",
    body: opaque(Window::specs, |c| Window::of(c)?.cosines(&[0.5, 0.5])),
    reference: "np.hanning(x0) if sym or x0 < 2 else np.hanning(x0 + 1)[:-1]",
    ..WINDOW
};
pub static KAISER: Op = Op {
    sig: sig(
        "signal.windows.kaiser(int M, *, float beta=12.0, bool sym=True, DType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
    ),
    doc: "Kaiser's window, `i0(beta sqrt(1 - x^2)) / i0(beta)` for x from -1 to 1.",
    body: opaque(Window::specs, |c| {
        let (w, beta) = (Window::of(c)?, c.float("beta")?);
        if beta.is_nan() || beta < 0.0 {
            return Err(Error::value(format!("beta must be non-negative, got: {beta} instead.")));
        }
        // Scaled, because i0 of a large beta overflows.
        w.between(|x| {
            let at = beta * (1.0 - x * x).sqrt();
            i0e(at) / i0e(beta) * (at - beta).exp()
        })
    }),
    samples: &["5", "6, sym=False", "4, beta=2.5, dtype=float64", "5, beta=0.0", "1", "0"],
    errors: &[
        ("-1", "ValueError", "requires non-negative window length, got M=-1"),
        ("4, dtype=float16", "ValueError", "expects float32 or float64 dtypes, got: torch.float16"),
        ("4, beta=-1", "ValueError", "beta must be non-negative, got: -1 instead."),
    ],
    reference: "np.kaiser(x0, beta) if sym or x0 < 2 else np.kaiser(x0 + 1, beta)[:-1]",
    ..WINDOW
};
pub static NUTTALL: Op = Op {
    sig: sig(
        "signal.windows.nuttall(int M, *, bool sym=True, DType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
    ),
    doc: "Nuttall's window of least sidelobes: `general_cosine` with 0.3635819, 0.4891775, 0.1365995 and 0.0106411.",
    body: opaque(Window::specs, |c| Window::of(c)?.cosines(&[0.3635819, 0.4891775, 0.1365995, 0.0106411])),
    reference: "sum(w * (-1) ** k * np.cos(2 * np.pi * k * np.arange(x0) / (x0 - bool(sym))) for k, w in enumerate([0.3635819, 0.4891775, 0.1365995, 0.0106411])) if x0 > 1 else np.ones(x0)",
    ..WINDOW
};
