//! Sequences computed from the position: arange, linspace, logspace, eye.

use crate::cpu::sequence::{self, Sequence};
use crate::device::Device;
use crate::dtype::{DType, Scalar, default_dtype};
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::checked_numel;
use crate::op::*;
use crate::ops::elementwise::power::POW_SCALAR;
use crate::ops::support::host_read::item;
use crate::ops::support::promotion::no_kernel;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&ARANGE, &ARANGE_START, &ARANGE_STEP, &RANGE, &LINSPACE, &LOGSPACE, &EYE, &EYE_M];

/// The first numbers of a sequence.
struct Table {
    n: usize,
    dtype: DType,
    device: Device,
    rule: Sequence,
}

impl Table {
    fn new(n: usize, dtype: DType, device: Option<Device>, rule: Sequence) -> Result<Table> {
        checked_numel(&[n])?;
        Ok(Table { n, dtype, device: device.unwrap_or_default(), rule })
    }
    fn specs(&self) -> Specs {
        Spec::one(&[self.n], self.dtype, self.device)
    }
    fn fill(self, out: &Tensor) -> Result<()> {
        if !gpu::supports(out.device(), self.dtype) || self.n == 0 {
            return self.fill_from_host(out);
        }
        match self.rule {
            Sequence::Ints { start, step } => gpu::ramp(Scalar::Int(start), Scalar::Int(step), &out.gpu_view()?),
            Sequence::Floats { start, step } => gpu::ramp(Scalar::Float(start), Scalar::Float(step), &out.gpu_view()?),
            Sequence::Line { start, end, .. } if self.dtype.is_float() => gpu::line(start, end, &out.gpu_view()?),
            _ => self.fill_from_host(out),
        }
    }
    /// Computed on the CPU in float64, then uploaded: a table of powers, or a line rounded to integers.
    fn fill_from_host(self, out: &Tensor) -> Result<()> {
        let cpu = out.device() == Device::Cpu;
        let t = if cpu { out.clone() } else { Tensor::empty(&[self.n], self.dtype, Device::Cpu)? };
        sequence::fill(t.cpu_view()?, self.rule)?;
        if cpu { Ok(()) } else { out.copy_raw(&t) }
    }
}

/// The table of an `arange` of these numbers.
fn arange(c: &Call, start: Scalar, end: Scalar, step: Scalar) -> Result<Table> {
    let all = [start, end, step];
    if all.iter().any(|s| matches!(s, Scalar::Complex(..))) {
        return Err(Error::runtime("value cannot be converted to type double without overflow"));
    }
    let whole = all.iter().all(|s| matches!(s, Scalar::Int(_) | Scalar::Bool(_)));
    let dtype = c.dtype("dtype").unwrap_or_else(|| if whole { DType::I64 } else { default_dtype() });
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
        let rule = Sequence::Ints { start: a as i64, step: s as i64 };
        return Table::new(size(n as f64)?, dtype, c.device("device"), rule);
    }
    let n = size(((b - a) / s).ceil())?;
    // An integer dtype converts the bounds before it counts.
    let rule = match dtype.is_int() {
        true => Sequence::Ints { start: start.to_i64(), step: step.to_i64() },
        false => Sequence::Floats { start: a, step: s },
    };
    Table::new(n, dtype, c.device("device"), rule)
}

/// `arange` of one, two or three numbers, by how many arguments may be given by position.
fn numbers(c: &Call) -> Result<Table> {
    let zero_to = |end| arange(c, Scalar::Int(0), end, Scalar::Int(1));
    match c.op.sig.positional {
        1 => zero_to(c.scalar(0)?),
        2 => arange(c, c.scalar(0)?, c.scalar(1)?, Scalar::Int(1)),
        _ => arange(c, c.scalar(0)?, c.scalar(1)?, c.scalar(2)?),
    }
}

/// The numbers from `start` to `end`, the end included.
fn closed_range(c: &Call) -> Result<Table> {
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
    Table::new(n, c.dtype("dtype").unwrap_or_else(default_dtype), c.device("device"), Sequence::Floats { start, step })
}

pub static RANGE: Op = Op {
    sig: sig(
        "range(Scalar start, Scalar end, Scalar step=1, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "The numbers from `start` to `end`, the end included: of the default float dtype. See `arange`.",
    forms: FO,
    body: factory(|c| Ok(closed_range(c)?.specs()), |c, out| closed_range(c)?.fill(&out[0])),
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
    body: factory(|c| Ok(numbers(c)?.specs()), |c, out| numbers(c)?.fill(&out[0])),
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
    body: factory(|c| Ok(numbers(c)?.specs()), |c, out| numbers(c)?.fill(&out[0])),
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
    body: factory(|c| Ok(numbers(c)?.specs()), |c, out| numbers(c)?.fill(&out[0])),
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

/// Whether a line has a complex end.
fn has_complex_end(c: &Call) -> bool {
    let complex = |i: usize| match c.opt_tensor(i) {
        Some(t) => t.dtype().is_complex(),
        None => matches!(c.opt_scalar(i), Some(Scalar::Complex(..))),
    };
    complex(0) || complex(1)
}

/// What a line looks like.
fn line_specs(c: &Call) -> Result<Specs> {
    let (steps, is_complex) = (c.int("steps")?, has_complex_end(c));
    check_limits(c)?;
    if steps < 0 {
        return Err(Error::runtime("number of steps must be non-negative"));
    }
    let dtype =
        c.dtype("dtype").unwrap_or_else(|| if is_complex { default_dtype().to_complex() } else { default_dtype() });
    if dtype == DType::Bool {
        return Err(no_kernel(&format!("{}_cpu", c.op.base()), dtype));
    }
    let device = c.device("device").or_else(|| c.all_tensors().next().map(|t| t.device()));
    checked_numel(&[steps as usize])?;
    Ok(Spec::one(&[steps as usize], dtype, device.unwrap_or_default()))
}

/// Real and, for complex bounds, imaginary line.
fn line(c: &Call, base: Option<f64>) -> Result<Outputs> {
    let spec = line_specs(c)?.swap_remove(0);
    let (dtype, device, n) = (spec.dtype, spec.device, spec.layout.shape[0]);
    let ([start, end], is_complex) = (limits(c)?, has_complex_end(c));
    let tabulate = |rule: Sequence| {
        let out = Tensor::empty(&[n], dtype, device)?;
        Table { n, dtype, device, rule }.fill(&out).map(|()| out)
    };
    let rule = |start: f64, end: f64| match base {
        None => Sequence::Line { start, end, n },
        Some(base) => Sequence::Powers { start, end, n, base },
    };
    if !is_complex {
        // An integer dtype converts the ends first.
        let end_of = |s: Scalar| if dtype.is_int() { s.to_i64() as f64 } else { s.to_f64() };
        return Ok(smallvec![tabulate(rule(end_of(start), end_of(end)))?]);
    }
    if !dtype.is_complex() {
        return Err(Error::runtime("value cannot be converted to type double without overflow"));
    }
    let (a, b) = (start.to_c128(), end.to_c128());
    let re = tabulate(Sequence::Line { start: a.re, end: b.re, n })?;
    let im = tabulate(Sequence::Line { start: a.im, end: b.im, n })?;
    let line = Term::from(&im) * Scalar::Complex(0.0, 1.0) + &re;
    base.map_or(line.clone(), |base| POW_SCALAR.call((base, line))).outputs()
}

/// An error where a line starts or ends with a tensor that has dimensions.
fn check_limits(c: &Call) -> Result<()> {
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
    Ok(())
}

/// Where a line starts and ends: numbers, or tensors of no dimension.
fn limits(c: &Call) -> Result<[Scalar; 2]> {
    let number = |i: usize| c.opt_tensor(i).map_or_else(|| c.scalar(i), item);
    Ok([number(0)?, number(1)?])
}

pub static LINSPACE: Op = Op {
    sig: sig(
        "linspace(Operand start, Operand end, int steps, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "`steps` numbers from `start` to `end`, both included, at equal distances.",
    forms: FO,
    body: opaque(line_specs, |c| line(c, None)),
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
    body: opaque(line_specs, |c| line(c, Some(c.float("base")?))),
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

/// A matrix of so many rows and columns.
fn eye(c: &Call, rows: i64, columns: i64) -> Result<Specs> {
    for (name, v) in [("n", rows), ("m", columns)] {
        if v < 0 {
            return Err(Error::runtime(format!("{name} must be greater or equal to 0, got {v}")));
        }
    }
    Ok(Spec::one(
        &[rows as usize, columns as usize],
        c.dtype("dtype").unwrap_or_else(default_dtype),
        c.device("device").unwrap_or_default(),
    ))
}
fn fill_eye(_: &Call, out: &[Tensor]) -> Result<()> {
    out[0].fill_raw(Scalar::Int(0))?;
    out[0].with_layout(out[0].layout().diagonal(0, 0, 1)?).fill_raw(Scalar::Int(1))
}

pub static EYE: Op = Op {
    sig: sig("eye(int n, *, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor"),
    doc: "The identity matrix.",
    forms: FO,
    body: factory(|c| eye(c, c.int("n")?, c.int("n")?), fill_eye),
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
    body: factory(|c| eye(c, c.int("n")?, c.int("m")?), fill_eye),
    vjp: Vjp::None("creation"),
    samples: &["2, 3", "3, 2, dtype=int64"],
    errors: &[("2, -1", "RuntimeError", "m must be greater or equal to 0, got -1")],
    reference: "np.eye(n, m)",
    out_dtype: Some(OutDType::Every),
    ..OP
};
