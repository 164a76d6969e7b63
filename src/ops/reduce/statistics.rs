//! Quantiles, covariances and correlations.

use super::any_all::ANY_DIM;
use super::sum_prod::{MEAN_DIM, SUM, SUM_DIM};
use crate::dtype::{Category, DType, Scalar, default_dtype};
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::elementwise::compare::ISNAN;
use crate::ops::elementwise::minmax::{CLAMP, CLAMP_MIN};
use crate::ops::elementwise::rounding::{CEIL, FLOOR, ROUND};
use crate::ops::indexing::gather_scatter::GATHER;
use crate::ops::order::sort::SORT;
use crate::ops::support::assertion::ASSERT_ALL;
use crate::ops::view::reshape::TRANSPOSE;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&QUANTILE, &QUANTILE_SCALAR, &NANQUANTILE, &NANQUANTILE_SCALAR, &COV, &CORRCOEF];

/// The value of a rank between two elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Interpolation {
    Linear,
    Lower,
    Higher,
    Midpoint,
    Nearest,
}
impl Enumerated for Interpolation {
    const VALUES: &'static [(&'static str, Interpolation)] = &[
        ("linear", Interpolation::Linear),
        ("lower", Interpolation::Lower),
        ("higher", Interpolation::Higher),
        ("midpoint", Interpolation::Midpoint),
        ("nearest", Interpolation::Nearest),
    ];
}

fn refuse<T>(text: impl AsRef<str>) -> Result<T> {
    Err(Error::runtime(format!("quantile() {}", text.as_ref())))
}

fn unknown_interpolation(_: &Op, given: &str) -> Error {
    let text = "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got";
    Error::runtime(format!("{text} {given}"))
}

/// Arguments (self, q, dim, keepdim, interpolation), q as a tensor.
fn quantile(c: &Call, q: &Tensor, skip_nan: bool) -> Result<Outputs> {
    let (t, way) = (c.tensor(0)?, c.choice("interpolation"));
    if t.numel() == 0 {
        return refuse("input tensor must be non-empty");
    }
    if q.ndim() > 1 {
        return refuse("q must be a scalar or 1D tensor");
    }
    if !matches!(t.dtype(), DType::F32 | DType::F64) {
        return refuse("input tensor must be either float or double dtype");
    }
    if q.dtype() != t.dtype() {
        return refuse("q tensor must be same dtype as the input tensor");
    }
    if q.device() != t.device() {
        return refuse("q tensor must be on the same device as the input tensor");
    }
    // The dimension comes last; all of them are one where none is given.
    let dim = c.opt_dim("dim");
    let goes = |d: usize| dim.is_none_or(|dim| dim == d);
    let rest =
        (0..t.ndim()).filter(|&d| c.flag("keepdim") || !goes(d)).map(|d| if goes(d) { 1 } else { t.size(d) as i64 });
    let shape: Ints = rest.chain([-1]).collect();
    let x = dim.map_or(t.into(), |d| TRANSPOSE.call((Term::from(t).unsqueeze(-1), d, -1)));
    let values = at_ranks(x.reshape(&shape), Term::from(q).reshape(&[-1]), skip_nan, way);
    // Several q come first.
    let values = if q.ndim() == 0 { values } else { TRANSPOSE.call((values.unsqueeze(0), 0, -1)) };
    crate::ops::linalg::matmul::DROP_DIM.calls((values, -1))
}

/// The values of each line of `x` at the shares `q` of its order.
fn at_ranks(x: Term, q: Term, skip_nan: bool, way: Interpolation) -> Term {
    let nan = ISNAN.call((x.clone(),));
    let Some(n) = x.get().map(|t| t.shape().last().copied().unwrap_or(1)) else { return x };
    let sorted = match SORT.calls((x, -1)) {
        Ok(both) => Term::from(&both[0]),
        Err(e) => return e.into(),
    };
    let last = n as f64 - 1.0;
    let ranks = match skip_nan {
        // NaNs are sorted to the end: they are not counted.
        true => CLAMP_MIN.call((SUM_DIM.call((nan.not(), [-1], true)) - 1.0, 0.0)) * q,
        // A line with a NaN is NaN.
        false => crate::ops::elementwise::ternary::WHERE.call((ANY_DIM.call((nan, [-1], true)), last, q * last)),
    };
    let exact = sorted.get().map_or(DType::F32, |t| t.dtype());
    let ranks = match way {
        Interpolation::Lower => FLOOR.call((ranks,)),
        Interpolation::Higher => CEIL.call((ranks,)),
        Interpolation::Nearest => ROUND.call((ranks,)),
        _ => ranks,
    }
    .to_dtype(exact);
    let below = FLOOR.call((ranks.clone(),));
    let pick = |at: Term| {
        let sizes = at.sizes();
        let wide: Ints =
            sorted.sizes().iter().take(sorted.ndim().saturating_sub(1)).copied().chain(sizes.last().copied()).collect();
        GATHER.call((sorted.clone(), -1, at.cut().to_dtype(DType::I64).expand(&wide)))
    };
    let low = pick(below.clone());
    match way {
        Interpolation::Linear => {
            crate::ops::elementwise::ternary::LERP.call((low, pick(CEIL.call((ranks.clone(),))), ranks - below))
        }
        Interpolation::Midpoint => {
            crate::ops::elementwise::ternary::LERP_SCALAR.call((low, pick(CEIL.call((ranks,))), 0.5))
        }
        _ => low,
    }
}

/// Checks that q is within [0, 1].
fn shares(q: &Tensor) -> Result<()> {
    let inside = Term::from(q).cut().at_least(0.0).both(Term::from(q).cut().at_most(1.0));
    ASSERT_ALL.calls((inside, "quantile() q values must be in the range [0, 1]")).map(drop)
}

fn by_tensor(c: &Call, skip_nan: bool) -> Result<Outputs> {
    shares(c.tensor("q")?)?;
    quantile(c, c.tensor("q")?, skip_nan)
}
fn by_number(c: &Call, skip_nan: bool) -> Result<Outputs> {
    let (q, t) = (c.float("q")?, c.tensor(0)?);
    if !(0.0..=1.0).contains(&q) {
        return refuse(format!("q must be in the range [0, 1] but got {q}"));
    }
    quantile(c, &crate::ops::create::like::SCALAR_TENSOR.call((q, t.dtype(), t.device())).ok()?, skip_nan)
}

const BY_TENSOR: Op = Op {
    forms: FMO,
    out_dtype: Some(OutDType::Same),
    vjp: Vjp::Composite,
    samples: &[
        "f32[5], f32[3](unit)",
        "f32[2,5], f32[2](unit), 1",
        "f32[3,4], f32[2](unit), 0, True",
        "f32[2,3], f32[](unit), keepdim=True",
        "f32[4](= 1, nan, 3, 2), f32[2](unit)",
    ],
    errors: &[
        ("f32[3], f32[1](= 2)", "RuntimeError", "quantile() q values must be in the range [0, 1]"),
        ("f32[3], f64[1](unit)", "RuntimeError", "quantile() q tensor must be same dtype as the input tensor"),
        ("f32[3], f32[1,1](unit)", "RuntimeError", "quantile() q must be a scalar or 1D tensor"),
    ],
    ..OP
};
const BY_NUMBER: Op = Op {
    samples: &[
        "f32[5], 0.3",
        "f32[2,5], 0.5, 1, True",
        "f32[5], 0.3, interpolation='lower'",
        "f32[5], 0.3, interpolation='higher'",
        "f32[5], 0.3, interpolation='midpoint'",
        "f32[5], 0.3, interpolation='nearest'",
    ],
    errors: &[
        ("f32[3], 1.5", "RuntimeError", "quantile() q must be in the range [0, 1] but got 1.5"),
        ("i64[3], 0.5", "RuntimeError", "quantile() input tensor must be either float or double dtype"),
        ("f32[0], 0.5", "RuntimeError", "quantile() input tensor must be non-empty"),
        ("f32[3], 0.5, interpolation='x'", "RuntimeError", "interpolation must be one of linear, lower, higher"),
    ],
    ..BY_TENSOR
};
pub static QUANTILE: Op = Op {
    sig: sig(
        "quantile(Tensor self, Tensor q, Dim? dim=None, bool keepdim=False, *, str{linear|lower|higher|midpoint|nearest} interpolation='linear') -> Tensor",
    ),
    unknown_choice: unknown_interpolation,
    doc: "The values at the shares `q` (0 to 1) of the order of all elements or along a dimension; several q come first.",
    body: decompose(|c| by_tensor(c, false)),
    ..BY_TENSOR
};
pub static QUANTILE_SCALAR: Op = Op {
    sig: sig(
        "quantile.scalar(Tensor self, float q, Dim? dim=None, bool keepdim=False, *, str{linear|lower|higher|midpoint|nearest} interpolation='linear') -> Tensor",
    ),
    unknown_choice: unknown_interpolation,
    doc: "The value at the share `q` (0 to 1) of the order of all elements or along a dimension.",
    body: decompose(|c| by_number(c, false)),
    ..BY_NUMBER
};
pub static NANQUANTILE: Op = Op {
    sig: sig(
        "nanquantile(Tensor self, Tensor q, Dim? dim=None, bool keepdim=False, *, str{linear|lower|higher|midpoint|nearest} interpolation='linear') -> Tensor",
    ),
    unknown_choice: unknown_interpolation,
    doc: "As `quantile`; NaNs are left out.",
    body: decompose(|c| by_tensor(c, true)),
    ..BY_TENSOR
};
pub static NANQUANTILE_SCALAR: Op = Op {
    sig: sig(
        "nanquantile.scalar(Tensor self, float q, Dim? dim=None, bool keepdim=False, *, str{linear|lower|higher|midpoint|nearest} interpolation='linear') -> Tensor",
    ),
    unknown_choice: unknown_interpolation,
    doc: "As `quantile`; NaNs are left out.",
    body: decompose(|c| by_number(c, true)),
    ..BY_NUMBER
};

/// Weights of the observations, checked.
fn weights(t: Option<&Tensor>, count: usize, name: &str, whole: bool) -> Result<Option<Term>> {
    let Some(w) = t else { return Ok(None) };
    let (d, shown) = (w.dtype(), w.dtype().scalar_type_name());
    let (fits, kind) =
        if whole { (!d.is_differentiable() && d != DType::Bool, "integral") } else { (d.is_float(), "floating point") };
    if w.ndim() > 1 {
        let n = w.ndim();
        return Err(Error::runtime(format!(
            "cov(): expected {name} to have one or fewer dimensions but got {name} with {n} dimensions"
        )));
    }
    if !fits {
        return Err(Error::runtime(format!(
            "cov(): expected {name} to have {kind} dtype but got {name} with {shown} dtype"
        )));
    }
    if w.numel() != count {
        return Err(Error::runtime(format!(
            "cov(): expected {name} to have the same numel as there are observations in the input but got {} != {count}",
            w.numel()
        )));
    }
    let text = format!("cov(): {name} cannot be negative");
    ASSERT_ALL.calls((Term::from(w).cut().at_least(0), text.as_str()))?;
    Ok(Some(w.into()))
}

fn covariance(t: &Tensor, correction: i64, fweights: Option<&Tensor>, aweights: Option<&Tensor>) -> Result<Term> {
    if t.ndim() > 2 {
        let n = t.ndim();
        return Err(Error::runtime(format!(
            "cov(): expected input to have two or fewer dimensions but got an input with {n} dimensions"
        )));
    }
    if t.dtype() == DType::Bool {
        return Err(Error::not_implemented("cov(): bool dtype is not supported for input"));
    }
    let x = if t.ndim() < 2 { Term::from(t).reshape(&[1, -1]) } else { t.into() };
    let count = x.get().map_or(0, |x| x.size(1));
    let f = weights(fweights, count, "fweights", true)?;
    let a = weights(aweights, count, "aweights", false)?;
    let x = if t.dtype().category() < Category::Float { x.to_dtype(default_dtype()) } else { x };
    let w = match (&f, &a) {
        (Some(f), Some(a)) => Some(f.clone() * a),
        (f, a) => f.as_ref().or(a.as_ref()).cloned(),
    };
    let total = w.as_ref().map(|w| SUM.call((w,)));
    let mean = match (&w, &total) {
        (Some(w), Some(total)) => SUM_DIM.call((x.clone() * w, [1], true)) / total,
        _ => MEAN_DIM.call((x.clone(), [1], true)),
    };
    let freedom = match (&w, &total, &a) {
        (Some(w), Some(total), Some(a)) if correction != 0 => {
            total.clone() - SUM.call((w.clone() * a,)) / total * correction as f64
        }
        (Some(_), Some(total), _) => total.clone() - correction as f64,
        _ => Term::number(Scalar::Float(count as f64 - correction as f64)),
    };
    let centred = x - mean;
    let weighted = w.map_or(centred.clone(), |w| centred.clone() * w);
    Ok(crate::ops::view::reshape::SQUEEZE.call((centred.mm(weighted.t().conj()) / CLAMP_MIN.call((freedom, 0.0)),)))
}

pub static COV: Op = Op {
    sig: sig("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor"),
    doc: "The covariances of variables (rows) over observations (columns), which may be weighted.",
    body: decompose(|c| {
        covariance(c.tensor(0)?, c.int("correction")?, c.opt_tensor("fweights"), c.opt_tensor("aweights"))?.outputs()
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,4]",
        "f32[5]",
        "f32[2,4], correction=0",
        "f32[2,4], fweights=i64[4](1..4), aweights=f32[4](pos)",
        "i64[2,3]",
        "c64[2,3]",
    ],
    errors: &[
        ("f32[1,2,3]", "RuntimeError", "cov(): expected input to have two or fewer dimensions"),
        ("b8[2,3]", "NotImplementedError", "cov(): bool dtype is not supported for input"),
        ("f32[2,3], fweights=f32[3]", "RuntimeError", "expected fweights to have integral dtype"),
        ("f32[2,3], aweights=f32[3](neg)", "RuntimeError", "cov(): aweights cannot be negative"),
        ("f32[2,3], fweights=i64[2](pos)", "RuntimeError", "the same numel as there are observations"),
    ],
    ..OP
};

pub static CORRCOEF: Op = Op {
    sig: sig("corrcoef(Tensor self) -> Tensor"),
    doc: "The correlation coefficients of variables (rows) over observations (columns).",
    body: decompose(|c| {
        let t = c.tensor(0)?;
        if t.ndim() > 2 {
            let n = t.ndim();
            return Err(Error::runtime(format!(
                "corrcoef(): expected input to have two or fewer dimensions but got an input with {n} dimensions"
            )));
        }
        let cov = covariance(t, 1, None, None)?;
        if cov.ndim() == 0 {
            return (cov.clone() / cov).outputs();
        }
        let deviation = crate::ops::view::slice::DIAGONAL.call((cov.clone(),)).real_part().sqrt();
        let found = cov / deviation.clone().unsqueeze(1) / deviation.unsqueeze(0);
        if !found.is_complex() {
            return CLAMP.calls((found, -1.0, 1.0));
        }
        let clipped = |t: Term| CLAMP.call((t, -1.0, 1.0));
        crate::ops::elementwise::complex::COMPLEX
            .calls((clipped(found.clone().real_part()), clipped(crate::ops::view::alias::IMAG.call((found,)))))
    }),
    vjp: Vjp::Composite,
    samples: &["f32[2,4]", "f32[5]", "i64[2,3]", "c64[2,3]"],
    errors: &[("f32[1,2,3]", "RuntimeError", "corrcoef(): expected input to have two or fewer dimensions")],
    ..OP
};
