//! Running sums, products, maxima, minima and log-sum-exps along one dimension.
//!
//! The gradient of a running product or log-sum-exp is a linear recurrence `s[k] = b[k] + a[k] s[k + 1]`, an op whose
//! gradient is a recurrence again: it has no division, so it holds at zeros, and can be differentiated to any order.

use crate::cpu::parallel::par_for;
use crate::cpu::scan::{Scan, cumulative};
use crate::cpu::view::SendPtr;
use crate::dtype::{Category, DType, Element, c128};
use crate::error::{Error, Result};
use crate::gpu;
use crate::op::*;
use crate::ops::create::full::FULL;
use crate::ops::elementwise::exp::log_add_exp;
use crate::ops::indexing::along_dim::PUT_ALONG;
use crate::ops::movement::copy::COPY_;
use crate::ops::support::promotion::no_kernel;
use crate::ops::view::reshape::SLICE;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&CUMSUM, &CUMPROD, &CUMMAX, &CUMMIN, &LOGCUMSUMEXP, &RECURRENCE];

/// Integers and bools accumulate in int64 unless another dtype is requested.
fn infer_sum(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    let natural = if t.dtype().category() <= Category::Int { DType::I64 } else { t.dtype() };
    match c.dtype("dtype").unwrap_or(natural) {
        DType::Bool if t.numel() > 0 => Err(no_kernel(&format!("{}_out_cpu", c.op.base()), DType::Bool)),
        dtype => Ok(Spec::one(t.shape(), dtype, t.device())),
    }
}

fn run(kind: Scan, c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    let dim = c.dim("dim");
    if t.numel() == 0 {
        return Ok(());
    }
    let indices = out.get(1).map(|i| i.cpu_view()).transpose()?;
    cumulative(kind, t.cpu_view()?, dim, out[0].cpu_view()?, indices)
}

fn run_gpu(kind: gpu::Scan, c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    let dim = c.dim("dim");
    if t.numel() == 0 {
        return Ok(());
    }
    if t.ndim() == 0 {
        out.iter().skip(1).try_for_each(|i| i.fill_raw(crate::dtype::Scalar::Int(0)))?;
        return out[0].copy_raw(t);
    }
    let indices = out.get(1).map(|i| i.gpu_view()).transpose()?;
    gpu::cumulative(kind, &t.gpu_view()?, dim, &out[0].gpu_view()?, indices.as_ref())
}

pub static CUMSUM: Op = Op {
    sig: sig("cumsum(Tensor self, Dim dim, *, DType? dtype=None) -> Tensor"),
    doc: "The running sum along a dimension. Integers and bools accumulate in int64.",
    forms: FMIO,
    body: kernel(infer_sum, |c, out| run(Scan::Sum, c, out), Some(|c, out| run_gpu(gpu::Scan::Sum, c, out))),
    jvp: Jvp::Linear,
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let dim = c.int("dim");
        if c.ndim(0) == 0 { c.g() } else { CUMSUM.call((c.g().flip_(dim), dim)).flip_(dim) }
    })]),
    samples: &[
        "f32[2,3], 0",
        "f32[2,3], -1",
        "i32[4], 0",
        "b8[4], 0",
        "f32[3], 0, dtype=float64",
        "f32[], 0",
        "c64[3], 0",
    ],
    errors: &[
        ("f32[2,3], 2", "IndexError", "Dimension out of range"),
        ("b8[2], 0, dtype=bool", "NotImplementedError", "\"cumsum_out_cpu\" not implemented for 'Bool'"),
    ],
    reference: "np.cumsum(x0, axis=x1) if x0.ndim else x0",
    alias_policy: Some(AliasPolicy::SameOnly),
    out_dtype: Some(OutDType::Every),
    ..OP
};

pub static CUMPROD: Op = Op {
    sig: sig("cumprod(Tensor self, Dim dim, *, DType? dtype=None) -> Tensor"),
    doc: "The running product along a dimension. Integers and bools accumulate in int64. The gradient holds at zeros too.",
    forms: FMIO,
    body: kernel(infer_sum, |c, out| run(Scan::Prod, c, out), Some(|c, out| run_gpu(gpu::Scan::Prod, c, out))),
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| {
        let (g, x, y, dim) = (c.g(), c.arg(0).conj(), c.out(0).conj(), c.dim("dim"));
        if c.ndim(0) == 0 {
            g
        } else {
            shifted(&y, dim, 1, 1.0) * RECURRENCE.call((shifted(&x, dim, -1, 0.0), g, dim, true))
        }
    })]),
    samples: &[
        "f32[2,3], 0",
        "f32[2,4](=1,0,2,3,0,2,0,1), 1",
        "i32[4], 0",
        "f32[3], 0, dtype=float64",
        "f32[], 0",
        "c64[3], 0",
    ],
    errors: &[("f32[2,3], 2", "IndexError", "Dimension out of range")],
    reference: "np.cumprod(x0, axis=x1) if x0.ndim else x0",
    alias_policy: Some(AliasPolicy::SameOnly),
    out_dtype: Some(OutDType::Every),
    ..OP
};

/// The term moved by one place along `dim` (up for 1, down for -1), `fill` in the place that is left.
fn shifted(t: &Term, dim: usize, by: i64, fill: f64) -> Term {
    let moved = t.clone().0.and_then(|t| {
        let whole = FULL.call((Term::from(&t).sizes(), fill, t.dtype(), t.device())).ok()?;
        let n = t.shape().get(dim).map_or(0, |&n| n as i64);
        if n > 1 {
            let (to, from) = if by > 0 { (1, 0) } else { (0, 1) };
            let source = SLICE.call((&t, dim, from, from + n - 1));
            COPY_.call_inplace((SLICE.call((&whole, dim, to, to + n - 1)), source))?;
        }
        Ok(whole)
    });
    Term(moved)
}

fn infer_extreme(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    if t.dtype().is_complex() {
        let (op, name) = (c.op.base(), t.dtype().scalar_type_name());
        return Err(Error::not_implemented(format!("\"{op}_cpu\" not implemented for '{name}'")));
    }
    Ok(smallvec![Spec::like(t), Spec::new(t.shape(), DType::I64, t.device())])
}
fn at_positions(c: &VjpCtx) -> Term {
    PUT_ALONG.call((c.g(), c.out(1), c.int("dim"), &*c.sizes(0)))
}

pub static CUMMAX: Op = Op {
    sig: sig("cummax(Tensor self, Dim dim) -> (Tensor values, Tensor indices)"),
    doc: "The running maximum along a dimension and its position, the last of equals.",
    forms: FMO,
    body: kernel(infer_extreme, |c, out| run(Scan::Max, c, out), Some(|c, out| run_gpu(gpu::Scan::Max, c, out))),
    vjp: Vjp::Each(&[d(0, OUT1, at_positions)]),
    samples: &["f32[2,3], 0", "f32[2,4](ties), 1", "i64[4], 0", "b8[4], 0", "f32[], 0"],
    errors: &[
        ("f32[2,3], 2", "IndexError", "Dimension out of range"),
        ("c64[2], 0", "NotImplementedError", "cummax_cpu"),
    ],
    keeps: Some("dim indices"),
    ..OP
};

pub static CUMMIN: Op = Op {
    sig: sig("cummin(Tensor self, Dim dim) -> (Tensor values, Tensor indices)"),
    doc: "The running minimum along a dimension and its position, the last of equals.",
    forms: FMO,
    body: kernel(infer_extreme, |c, out| run(Scan::Min, c, out), Some(|c, out| run_gpu(gpu::Scan::Min, c, out))),
    vjp: Vjp::Each(&[d(0, OUT1, at_positions)]),
    samples: &["f32[2,3], 0", "f32[2,4](ties), 1", "i64[4], 0", "b8[4], 0", "f32[], 0"],
    errors: &[
        ("f32[2,3], 2", "IndexError", "Dimension out of range"),
        ("c64[2], 0", "NotImplementedError", "cummin_cpu"),
    ],
    keeps: Some("dim indices"),
    ..OP
};

pub static LOGCUMSUMEXP: Op = Op {
    sig: sig("logcumsumexp(Tensor self, Dim dim) -> Tensor"),
    doc: "The logarithm of the running sum of exponentials along a dimension, without overflow.",
    forms: FMO,
    body: kernel(
        |c| {
            let t = c.tensor(0)?;
            if !t.dtype().is_differentiable() {
                let name = t.dtype().scalar_type_name();
                return Err(Error::not_implemented(format!("\"logcumsumexp_out_cpu\" not implemented for '{name}'")));
            }
            Ok(smallvec![Spec::like(t)])
        },
        |c, out| match c.tensor(0)?.dtype().is_complex() {
            true => complex_logcumsumexp(c, out),
            false => run(Scan::LogSumExp, c, out),
        },
        Some(|c, out| run_gpu(gpu::Scan::LogSumExp, c, out)),
    ),
    // With r[k] = sum over i >= k of g[i] exp(y[k] - y[i]) the gradient is exp(x - y) r: every exponent is <= 0.
    vjp: Vjp::Each(&[d(0, A0 | OUT0, |c| {
        let (g, x, y, dim) = (c.g(), c.arg(0), c.out(0), c.dim("dim"));
        let decay = last_set(&(y.clone() - shifted(&y, dim, -1, 0.0)), dim, f64::NEG_INFINITY).exp();
        if c.ndim(0) == 0 { g } else { (x - y).exp().conj() * RECURRENCE.call((decay.conj(), g, dim, true)) }
    })]),
    samples: &["f32[2,3], 0", "f32[2,3](big), 1", "f64[4], 0", "f32[], 0", "c64[2,4], 1"],
    errors: &[
        ("f32[2,3], 2", "IndexError", "Dimension out of range"),
        ("i64[3], 0", "NotImplementedError", "logcumsumexp_out_cpu"),
    ],
    alias_policy: Some(AliasPolicy::SameOnly),
    ..OP
};

fn complex_logcumsumexp(c: &Call, out: &[Tensor]) -> Result<()> {
    let x = c.tensor(0)?.dense_copy(DType::C128)?;
    let s = Tensor::empty(x.shape(), DType::C128, crate::device::Device::Cpu)?;
    let nothing = c128::new(f64::NEG_INFINITY, 0.0);
    Lines::along(x.shape(), c.dim("dim"), false).run(&x, &x, &s, nothing, |sum, x, _| log_add_exp(sum, x))?;
    out[0].copy_raw(&s)
}

/// The last place along `dim` set to a number.
fn last_set(t: &Term, dim: usize, fill: f64) -> Term {
    shifted(&shifted(t, dim, 1, 0.0), dim, -1, fill)
}

/// `s[k] = b[k] + a[k] s[k + 1]` from the end, or `s[k] = b[k] + a[k] s[k - 1]` from the start.
pub static RECURRENCE: Op = Op {
    sig: sig("_linear_recurrence(Tensor a, Tensor b, Dim(b) dim, bool reverse=True) -> Tensor"),
    doc: "The linear recurrence `s[k] = b[k] + a[k] s[k + 1]` along a dimension, from its end; from its start where not `reverse`.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let (a, b) = (c.tensor("a")?, c.tensor("b")?);
            if a.shape() != b.shape() {
                return Err(Error::runtime("factors and terms must have one shape"));
            }
            let dtype = crate::dtype::promote(a.dtype(), b.dtype())?;
            Ok(Spec::one(b.shape(), dtype, b.device()))
        },
        recurrence,
        Some(|c, out| {
            let dim = c.dim("dim");
            let b = c.tensor("b")?;
            let a = crate::ops::view::reshape::EXPAND.call((c.tensor("a")?, b.shape())).ok()?;
            gpu::recurrence(&a.gpu_view()?, &b.gpu_view()?, dim, c.flag("reverse"), &out[0].gpu_view()?)
        }),
    ),
    vjp: Vjp::Joint(Joint { args: &[0, 1], saves: A0 | OUT0, formula: recurrence_backward }),
    samples: &["f32[2,4], f32[2,4], 1", "f32[3,2], f32[3,2], 0, False"],
    errors: &[("f32[2], f32[2], 3", "IndexError", "Dimension out of range")],
    ..OP
};

fn recurrence(c: &Call, out: &[Tensor]) -> Result<()> {
    let dtype = if out[0].dtype().is_complex() { DType::C128 } else { DType::F64 };
    let dense = |i: usize| c.tensor(i).and_then(|t| t.dense_copy(dtype));
    let (a, b, s) = (dense(0)?, dense(1)?, Tensor::empty(out[0].shape(), dtype, crate::device::Device::Cpu)?);
    let dim = c.dim("dim");
    let job = Lines::along(b.shape(), dim, c.flag("reverse"));
    if dtype == DType::F64 {
        job.run(&a, &b, &s, 0.0, |sum, a: f64, b| b + a * sum)?
    } else {
        job.run(&a, &b, &s, c128::default(), |sum, a: c128, b| b + a * sum)?
    }
    out[0].copy_raw(&s)
}

struct Lines {
    outer: usize,
    length: usize,
    inner: usize,
    reverse: bool,
}

impl Lines {
    fn along(shape: &[usize], dim: usize, reverse: bool) -> Lines {
        let product = |dims: &[usize]| dims.iter().product();
        let after = shape.get(dim + 1..).unwrap_or(&[]);
        let outer = product(&shape[..dim.min(shape.len())]);
        Lines { length: shape.get(dim).copied().unwrap_or(1), inner: product(after), outer, reverse }
    }
    /// `s[k] = step(s[k - 1], a[k], b[k])`, or from the end; `start` comes before the first.
    fn run<T: Element>(
        &self,
        a: &Tensor,
        b: &Tensor,
        s: &Tensor,
        start: T,
        step: impl Fn(T, T, T) -> T + Sync,
    ) -> Result<()> {
        let [a, b, s] = [SendPtr(a.ptr()?.cast::<T>()), SendPtr(b.ptr()?.cast::<T>()), SendPtr(s.ptr()?.cast::<T>())];
        par_for(self.outer * self.inner, (1 << 14) / self.length.max(1), |lines| {
            for line in lines {
                let first = line / self.inner * self.inner * self.length + line % self.inner;
                let mut acc = start;
                for k in 0..self.length {
                    let k = if self.reverse { self.length - 1 - k } else { k };
                    let at = first + k * self.inner;
                    // SAFETY: the three blocks are dense, of one shape, and lines are disjoint.
                    unsafe {
                        acc = step(acc, *a.at(at), *b.at(at));
                        *s.at(at) = acc;
                    }
                }
            }
        });
        Ok(())
    }
}

/// With `t` the recurrence of the other direction over the gradient: `db = t`, `da[k] = t[k] s[k + 1]`.
fn recurrence_backward(c: &VjpCtx) -> Result<Vec<Option<Tensor>>> {
    let (dim, reverse) = (c.dim("dim"), c.flag("reverse"));
    let by = if reverse { 1 } else { -1 };
    let t = RECURRENCE.call((shifted(&c.arg(0).conj(), dim, by, 0.0), c.g(), dim, !reverse));
    let da = t.clone() * shifted(&c.out(0), dim, -by, 0.0).conj();
    Ok(vec![Some(da.ok()?), Some(t.ok()?)])
}
