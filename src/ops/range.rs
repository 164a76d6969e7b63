//! Sequences computed from the position: arange, linspace, logspace, eye.

use super::host::item;
use super::power::POW_SCALAR;
use super::rules::no_kernel;
use crate::cpu::sequence::{self, Sequence};
use crate::device::Device;
use crate::dtype::{DType, Scalar, default_dtype};
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::checked_numel;
use crate::op::*;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&ARANGE, &ARANGE_START, &ARANGE_STEP, &RANGE, &LINSPACE, &LOGSPACE, &EYE, &EYE_M];

/// The first `n` numbers of a sequence.
fn tabulate(n: usize, dtype: DType, device: Option<Device>, rule: Sequence) -> Result<Outputs> {
    checked_numel(&[n])?;
    let device = device.unwrap_or_default();
    if gpu::supports(device, dtype) && n > 0 {
        let t = Tensor::empty(&[n], dtype, device)?;
        let out = t.gpu_view()?;
        match rule {
            Sequence::Ints { start, step } => gpu::ramp(Scalar::Int(start), Scalar::Int(step), &out)?,
            Sequence::Floats { start, step } => gpu::ramp(Scalar::Float(start), Scalar::Float(step), &out)?,
            Sequence::Line { start, end, .. } if dtype.is_float() => gpu::line(start, end, &out)?,
            _ => return from_host(n, dtype, device, rule),
        }
        return Ok(smallvec![t]);
    }
    from_host(n, dtype, device, rule)
}

/// Computed on the CPU in float64, then uploaded: a table of powers, or a line rounded to integers.
fn from_host(n: usize, dtype: DType, device: Device, rule: Sequence) -> Result<Outputs> {
    let t = Tensor::empty(&[n], dtype, Device::Cpu)?;
    sequence::fill(t.cpu_view()?, rule)?;
    Term(Ok(t)).to_device(device).outputs()
}

/// Arguments (.., dtype, device, requires_grad), the dtype being at `at`.
fn arange(c: &Call, at: usize, start: Scalar, end: Scalar, step: Scalar) -> Result<Outputs> {
    let all = [start, end, step];
    if all.iter().any(|s| matches!(s, Scalar::Complex(..))) {
        return Err(Error::runtime("value cannot be converted to type double without overflow"));
    }
    let whole = all.iter().all(|s| matches!(s, Scalar::Int(_) | Scalar::Bool(_)));
    let dtype = c.dtype(at).unwrap_or_else(|| if whole { DType::I64 } else { default_dtype() });
    if dtype == DType::Bool || dtype.is_complex() || dtype.is_storage_only() {
        return Err(Error::not_implemented(format!(
            "\"arange_cpu\" not implemented for '{}'",
            dtype.scalar_type_name()
        )));
    }
    let [a, b, s] = all.map(Scalar::to_f64);
    if !s.is_finite() {
        return Err(Error::runtime(format!("step must be finite but got {s}").replace("NaN", "nan")));
    }
    if s == 0.0 {
        return Err(Error::runtime("step must be nonzero"));
    }
    if !a.is_finite() || !b.is_finite() {
        return Err(Error::runtime(format!("unsupported range: {a} -> {b}")));
    }
    if (s > 0.0 && b < a) || (s < 0.0 && b > a) {
        return Err(Error::runtime("upper bound and lower bound inconsistent with step sign"));
    }
    if whole {
        let [a, b, s] = all.map(|x| i128::from(x.to_i64()));
        let n = (b - a + s - s.signum()) / s;
        return tabulate(size(n as f64)?, dtype, c.device(at + 1), Sequence::Ints { start: a as i64, step: s as i64 });
    }
    let n = size(((b - a) / s).ceil())?;
    // An integer dtype converts the bounds before it counts.
    let rule = match dtype.is_int() {
        true => Sequence::Ints { start: start.to_i64(), step: step.to_i64() },
        false => Sequence::Floats { start: a, step: s },
    };
    tabulate(n, dtype, c.device(at + 1), rule)
}

/// The numbers from `start` to `end`, the end included.
fn closed_range(c: &Call) -> Result<Outputs> {
    let [start, end, step] = [0, 1, 2].map(|i| c.float(i));
    let (start, end, step) = (start?, end?, step?);
    if step == 0.0 {
        return Err(Error::runtime("step must be nonzero"));
    }
    if !start.is_finite() || !end.is_finite() {
        return Err(Error::runtime(format!("unsupported range: {start} -> {end}")));
    }
    if (step > 0.0 && end < start) || (step < 0.0 && end > start) {
        return Err(Error::runtime("upper bound and lower bound inconsistent with step sign"));
    }
    let n = size(((end - start) / step).floor() + 1.0)?;
    tabulate(n, c.dtype(3).unwrap_or_else(default_dtype), c.device(4), Sequence::Floats { start, step })
}

pub static RANGE: Op = Op {
    sig: sig(
        "range(Scalar start, Scalar end, Scalar step=1, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "The numbers from `start` to `end`, the end included: of the default float dtype. See `arange`.",
    forms: FO,
    body: composite(closed_range),
    vjp: Vjp::None("creation"),
    warns: Some(|_| {
        Some(
            "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with \
             Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
                .into(),
        )
    }),
    samples: &["1, 4", "1, 2, 0.5", "0, 3, dtype=int32", "3, 1, -1"],
    errors: &[
        ("3, 1", "RuntimeError", "inconsistent with step sign"),
        ("1, 3, 0", "RuntimeError", "step must be nonzero"),
    ],
    out_dtype: Some(OutDType::Every),
    fills_out: true,
    ..OP
};

fn size(n: f64) -> Result<usize> {
    if n > isize::MAX as f64 / 16.0 {
        return Err(Error::runtime("invalid size, possible overflow?"));
    }
    Ok(n.max(0.0) as usize)
}

pub static ARANGE: Op = Op {
    sig: sig("arange(Scalar end, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor"),
    doc: "The numbers 0, 1, .. below `end`: int64 for an integer, the default float otherwise.",
    forms: FO,
    body: composite(|c| arange(c, 1, Scalar::Int(0), c.scalar(0)?, Scalar::Int(1))),
    vjp: Vjp::None("creation"),
    samples: &["5", "3.5", "4, dtype=float32", "0"],
    errors: &[
        ("-1", "RuntimeError", "inconsistent with step sign"),
        ("inf", "RuntimeError", "unsupported range"),
        ("3, dtype=bool", "NotImplementedError", "not implemented for 'Bool'"),
    ],
    reference: "np.arange(end, dtype=dtype or ('int64' if isinstance(end, int) else 'float32'))",
    out_dtype: Some(OutDType::Every),
    fills_out: true,
    ..OP
};

pub static ARANGE_START: Op = Op {
    sig: sig(
        "arange.start(Scalar start, Scalar end, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "The numbers from `start` on, below `end`, in steps of one.",
    forms: F,
    body: composite(|c| arange(c, 2, c.scalar(0)?, c.scalar(1)?, Scalar::Int(1))),
    vjp: Vjp::None("creation"),
    samples: &["2, 5", "0.5, 3", "-2, 2"],
    errors: &[("5, 0", "RuntimeError", "inconsistent with step sign")],
    reference: "np.arange(start, end)",
    out_dtype: Some(OutDType::Every),
    fills_out: true,
    ..OP
};

pub static ARANGE_STEP: Op = Op {
    sig: sig(
        "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "The numbers `start + i * step` before `end`.",
    forms: FO,
    body: composite(|c| arange(c, 3, c.scalar(0)?, c.scalar(1)?, c.scalar(2)?)),
    vjp: Vjp::None("creation"),
    samples: &["0, 6, 2", "3, 0, -1", "0, 1, 0.3", "0, 5, 2.5", "1, 10, 3, dtype=float64"],
    errors: &[
        ("0, 5, 0", "RuntimeError", "step must be nonzero"),
        ("0, 5, -1", "RuntimeError", "inconsistent with step sign"),
        ("0, 5, nan", "RuntimeError", "step must be finite"),
    ],
    reference: "np.arange(start, end, step)",
    out_dtype: Some(OutDType::Every),
    fills_out: true,
    ..OP
};

/// A real line and, for complex bounds, an imaginary one: arguments (start, end, steps, ..), with dtype at `at`.
fn line(c: &Call, at: usize, base: Option<f64>) -> Result<Outputs> {
    let ([start, end], steps) = (limits(c)?, c.int(2)?);
    if steps < 0 {
        return Err(Error::runtime("number of steps must be non-negative"));
    }
    let is_complex = [start, end].iter().any(|s| matches!(s, Scalar::Complex(..)));
    let dtype = c.dtype(at).unwrap_or_else(|| if is_complex { default_dtype().to_complex() } else { default_dtype() });
    if dtype == DType::Bool {
        return Err(no_kernel(if base.is_some() { "logspace_cpu" } else { "linspace_cpu" }, dtype));
    }
    let device = c.device(at + 1).or_else(|| c.all_tensors().next().map(|t| t.device()));
    let n = steps as usize;
    let rule = |start: f64, end: f64| match base {
        None => Sequence::Line { start, end, n },
        Some(base) => Sequence::Powers { start, end, n, base },
    };
    if !is_complex {
        // An integer dtype converts the ends first.
        let end_of = |s: Scalar| if dtype.is_int() { s.to_i64() as f64 } else { s.to_f64() };
        return tabulate(n, dtype, device, rule(end_of(start), end_of(end)));
    }
    if !dtype.is_complex() {
        return Err(Error::runtime("value cannot be converted to type double without overflow"));
    }
    let (a, b) = (start.to_c128(), end.to_c128());
    let re = tabulate(n, dtype, device, Sequence::Line { start: a.re, end: b.re, n })?;
    let im = tabulate(n, dtype, device, Sequence::Line { start: a.im, end: b.im, n })?;
    let line = Term::from(&im[0]) * Scalar::Complex(0.0, 1.0) + &re[0];
    base.map_or(line.dup(), |base| POW_SCALAR.call((base, line))).outputs()
}

/// The limits of a line: numbers, or 0-d tensors.
fn limits(c: &Call) -> Result<[Scalar; 2]> {
    let ends = [("start", 0), ("end", 1)];
    if c.all_tensors().any(|t| t.ndim() > 0) {
        let shown = |(name, i): (&str, usize)| Some(format!("{name} with {} dimension(s)", c.opt_tensor(i)?.ndim()));
        let given: Vec<String> = ends.into_iter().filter_map(shown).collect();
        return Err(Error::runtime(format!(
            "{} only supports 0-dimensional start and end tensors, but got {}.",
            c.op.base(),
            given.join(" and ")
        )));
    }
    let number = |i: usize| c.opt_tensor(i).map_or_else(|| c.scalar(i), item);
    Ok([number(0)?, number(1)?])
}

pub static LINSPACE: Op = Op {
    sig: sig(
        "linspace(Operand start, Operand end, int steps, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "`steps` numbers from `start` to `end`, both included, at equal distances.",
    forms: FO,
    body: composite(|c| line(c, 3, None)),
    vjp: Vjp::None("creation"),
    samples: &[
        "0, 1, 5",
        "-3, 3, 4, dtype=int64",
        "4.3, -3, 8, dtype=int64",
        "2, 1, 1",
        "0, 1, 0",
        "f32[](= 1, nograd), 3, 3",
    ],
    errors: &[
        (
            "f32[1], 1, 2",
            "RuntimeError",
            "linspace only supports 0-dimensional start and end tensors, but got start with 1 dimension(s).",
        ),
        ("f32[](= 1), f32[2], 2", "RuntimeError", "got start with 0 dimension(s) and end with 1 dimension(s)."),
        ("0, 1, -1", "RuntimeError", "number of steps must be non-negative"),
        ("0, 1, 2, dtype=bool", "NotImplementedError", "\"linspace_cpu\" not implemented for 'Bool'"),
    ],
    out_dtype: Some(OutDType::Every),
    fills_out: true,
    ..OP
};

pub static LOGSPACE: Op = Op {
    sig: sig(
        "logspace(Operand start, Operand end, int steps, float base=10.0, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "`base` to the powers of `steps` numbers from `start` to `end` at equal distances.",
    forms: FO,
    body: composite(|c| line(c, 4, Some(c.float(3)?))),
    vjp: Vjp::None("creation"),
    samples: &["0, 2, 3", "0, 3, 4, base=2", "-1, 1, 5, dtype=float64", "0, 1.2, 4, dtype=int64"],
    errors: &[
        ("0, 1, -1", "RuntimeError", "number of steps must be non-negative"),
        (
            "0, f32[1], 2",
            "RuntimeError",
            "logspace only supports 0-dimensional start and end tensors, but got end with 1",
        ),
    ],
    out_dtype: Some(OutDType::Every),
    fills_out: true,
    ..OP
};

/// Zeros with ones on the diagonal, the dtype at `at`.
fn eye(c: &Call, at: usize, rows: i64, columns: i64) -> Result<Outputs> {
    for (name, v) in [("n", rows), ("m", columns)] {
        if v < 0 {
            return Err(Error::runtime(format!("{name} must be greater or equal to 0, got {v}")));
        }
    }
    let t = Tensor::zeros(
        &[rows as usize, columns as usize],
        c.dtype(at).unwrap_or_else(default_dtype),
        c.device(at + 1).unwrap_or_default(),
    )?;
    t.with_layout(t.layout().diagonal(0, 0, 1)?).fill_raw(Scalar::Int(1))?;
    Ok(smallvec![t])
}

pub static EYE: Op = Op {
    sig: sig("eye(int n, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor"),
    doc: "The identity matrix.",
    forms: FO,
    body: composite(|c| eye(c, 1, c.int(0)?, c.int(0)?)),
    vjp: Vjp::None("creation"),
    samples: &["3", "0", "2, dtype=bool"],
    errors: &[("-1", "RuntimeError", "n must be greater or equal to 0, got -1")],
    reference: "np.eye(n)",
    out_dtype: Some(OutDType::Every),
    ..OP
};

pub static EYE_M: Op = Op {
    sig: sig("eye.m(int n, int m, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor"),
    doc: "A matrix of zeros with ones on its diagonal.",
    forms: FO,
    body: composite(|c| eye(c, 2, c.int(0)?, c.int(1)?)),
    vjp: Vjp::None("creation"),
    samples: &["2, 3", "3, 2, dtype=int64"],
    errors: &[("2, -1", "RuntimeError", "m must be greater or equal to 0, got -1")],
    reference: "np.eye(n, m)",
    out_dtype: Some(OutDType::Every),
    ..OP
};
