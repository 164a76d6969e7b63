//! Sampling with tensors as parameters: bernoulli, normal, multinomial.

use super::distributions::{Draw, UNIT, draw, source};
use crate::dtype::{DType, default_dtype};
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::{broadcast, checked_numel};
use crate::op::generator::Generator;
use crate::op::*;
use crate::ops::elementwise::arith::DIV;
use crate::ops::elementwise::compare::{ISFINITE, ISNAN, LT};
use crate::ops::order::sort::TOPK;
use crate::ops::reduce::extrema::ARGMAX;
use crate::ops::support::batch_views;
use crate::rt::reserve::{filled, room};
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &BERNOULLI,
    &BERNOULLI_P,
    &BERNOULLI_,
    &BERNOULLI_TENSOR_,
    &NORMAL_TENSORS,
    &NORMAL_MEANS,
    &NORMAL_STDS,
    &NORMAL,
    &MULTINOMIAL,
];

/// One where a uniform number is below `p`; `p` has the output's shape or broadcasts to it.
fn flips(out: &Tensor, p: &Tensor, source: &Generator) -> Result<()> {
    if !p.dtype().is_float() {
        return Err(Error::not_implemented(format!(
            "\"bernoulli_tensor_cpu_p_\" not implemented for '{}'",
            p.dtype().scalar_type_name()
        )));
    }
    let p = crate::ops::indexing::mask::broadcast_view(&p.detach(), out.shape());
    let wild = LT.call((&p, 0)).or(LT.call((1, &p))).or(ISNAN.call((&p,)));
    if p.device().is_gpu() {
        gpu::refuse_where(&wild.ok()?.gpu_view()?, gpu::Refusal::NoChance)?;
    } else if wild.any_true()? {
        return Err(Error::runtime(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false: a probability is negative, more than one or NaN",
        ));
    }
    out.copy_raw(&LT.call((&chances(&p, source)?, &p)).ok()?)
}

impl Term {
    /// Whether any element is true, on the host.
    pub(crate) fn any_true(self) -> Result<bool> {
        Ok(crate::ops::support::host_read::item(&crate::ops::reduce::any_all::ANY.call((self,)).ok()?)?.to_bool())
    }
    fn or(self, other: Term) -> Term {
        crate::ops::elementwise::logical::LOGICAL_OR.call((self, other))
    }
}

fn chance(p: f64) -> Result<Draw> {
    if !(0.0..=1.0).contains(&p) {
        return Err(Error::runtime(format!("bernoulli_ expects p to be in [0, 1], but got p={p}")));
    }
    Ok(Draw::Bernoulli { p })
}

fn like_self(c: &Call) -> Result<Specs> {
    Ok(smallvec![Spec::like(c.tensor(0)?)])
}

const NO_SLOPE: Vjp = Vjp::Zero(&[0]);
type Run = fn(&Call, &[Tensor]) -> Result<()>;

const FLIP_EACH: Run = |c, out| {
    let p = c.tensor(0)?;
    flips(&out[0], p, source(c, p.device())?)
};

pub static BERNOULLI: Op = Op {
    sig: sig("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor"),
    doc: "Ones with the probabilities that self holds, else zeros.",
    forms: FMO,
    body: kernel(like_self, FLIP_EACH, Some(FLIP_EACH)),
    vjp: NO_SLOPE,
    samples: &["f32[2,3](zeros)", "f32[4](ones)"],
    errors: &[
        ("f32[2](= 2, 0)", "RuntimeError", "p_in >= 0 && p_in <= 1"),
        ("f32[](= 2)", "RuntimeError", "p_in >= 0 && p_in <= 1"),
        ("f32[2](= nan, 0)", "RuntimeError", "p_in >= 0 && p_in <= 1"),
    ],
    reference: "x0",
    alias_policy: Some(AliasPolicy::SameOnly),
    out_dtype: Some(OutDType::Every),
    batch: Batching::Leading,
    ..OP
};

pub static BERNOULLI_P: Op = Op {
    sig: sig("bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor"),
    doc: "Ones with probability `p`, else zeros, in the shape of self.",
    body: kernel(
        like_self,
        |c, out| draw(&out[0], chance(c.float("p")?)?, source(c, out[0].device())?),
        Some(|c, out| draw(&out[0], chance(c.float("p")?)?, source(c, out[0].device())?)),
    ),
    vjp: NO_SLOPE,
    node: "BernoulliBackward1",
    samples: &["f32[2,3], 0.0", "f32[4], 1.0"],
    errors: &[("f32[2], 2.0", "RuntimeError", "expects p to be in [0, 1]")],
    reference: "np.full_like(x0, p)",
    batch: Batching::Leading,
    ..OP
};

const FLIP_ALL: Run = |c, out| draw(&out[0], chance(c.float("p")?)?, source(c, out[0].device())?);

pub static BERNOULLI_: Op = Op {
    sig: sig("bernoulli_(Tensor! self, float p=0.5, *, Generator? generator=None) -> Tensor"),
    doc: "Fills self with ones with probability `p`, else zeros.",
    forms: ONLY_INPLACE,
    body: kernel_into(FLIP_ALL, Some(FLIP_ALL)),
    vjp: NO_SLOPE,
    node: "BernoulliBackward2",
    samples: &["f32[2,3], 0.0", "i64[4], 1.0"],
    errors: &[("f32[2], 2.0", "RuntimeError", "expects p to be in [0, 1]")],
    reference: "np.full_like(x0, p)",
    keeps: Some(""),
    batch: Batching::Leading,
    ..OP
};

const FLIP_BY: Run = |c, out| {
    let p = c.tensor("p")?;
    if !broadcast(out[0].shape(), p.shape()).is_ok_and(|s| s.as_slice() == out[0].shape()) {
        p.layout().expand(&crate::ops::view::shape::sizes(&out[0]))?;
    }
    flips(&out[0], p, source(c, out[0].device())?)
};

pub static BERNOULLI_TENSOR_: Op = Op {
    sig: sig("bernoulli_.Tensor(Tensor! self, Tensor p, *, Generator? generator=None) -> Tensor"),
    doc: "Fills self with ones with the probabilities that `p` holds, else zeros.",
    forms: ONLY_INPLACE,
    body: kernel_into(FLIP_BY, Some(FLIP_BY)),
    vjp: Vjp::Zero(&[0, 1]),
    node: "BernoulliBackward1",
    samples: &["f32[2,3], f32[3](zeros)"],
    errors: &[("f32[2], f32[2](= 2, 0)", "RuntimeError", "p_in >= 0 && p_in <= 1")],
    reference: "np.zeros_like(x0)",
    alias_policy: Some(AliasPolicy::SameOnly),
    batch: Batching::Align,
    ..OP
};

/// `mean + std * z`, either of them a number or a tensor.
fn normal(c: &Call, out: &[Tensor]) -> Result<()> {
    let std = |v: &Value| v.as_tensor().map(|t| t.detach());
    if let Some(s) = std(c.argument("std"))
        && LT.call((&s, 0)).or(ISNAN.call((&s,))).any_true()?
    {
        return Err(Error::runtime("normal expects all elements of std >= 0.0"));
    }
    if let Some(s) = c.opt_float("std")
        && s < 0.0
    {
        return Err(Error::runtime(format!("normal expects std >= 0.0, but found std {s}")));
    }
    draw(&out[0], Draw::Normal { mean: 0.0, std: 1.0 }, source(c, out[0].device())?)?;
    let part = |v: &Value| match v.as_tensor() {
        Some(t) => Value::Owned(t.detach()),
        None => v.reborrow().into_owned(),
    };
    let scaled = Term::from(&out[0]) * part(c.argument("std")) + part(c.argument("mean"));
    out[0].copy_raw(&scaled.ok()?)
}

fn normal_spec(c: &Call) -> Result<Specs> {
    let mut shape = crate::layout::Dims::new();
    for t in c.all_tensors() {
        shape = broadcast(&shape, t.shape())?;
    }
    let first = c.all_tensors().next().ok_or_else(|| Error::internal("normal: no tensor"))?;
    if !first.dtype().is_differentiable() {
        return Err(Error::not_implemented(format!(
            "\"normal_kernel_cpu\" not implemented for '{}'",
            first.dtype().scalar_type_name()
        )));
    }
    Ok(Spec::one(&shape, first.dtype(), first.device()))
}

const GAUSS: Op = Op { forms: FO, body: kernel(normal_spec, normal, Some(normal)), ..OP };

pub static NORMAL_TENSORS: Op = Op {
    sig: sig("normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor"),
    doc: "Normal random numbers with these means and standard deviations.",
    vjp: Vjp::Zero(&[0, 1]),
    node: "NormalBackward3",
    samples: &["f32[2,3], f32[3](zeros)"],
    errors: &[("f32[2], f32[2](= -1, 0)", "RuntimeError", "normal expects all elements of std >= 0.0")],
    reference: "x0",
    alias_policy: Some(AliasPolicy::SameOnly),
    out_dtype: Some(OutDType::Castable),
    keeps: Some("mean_sym_sizes std_sym_sizes"),
    batch: Batching::Align,
    ..GAUSS
};
pub static NORMAL_MEANS: Op = Op {
    sig: sig("normal.Tensor_float(Tensor mean, float std=1.0, *, Generator? generator=None) -> Tensor"),
    doc: "Normal random numbers with these means and one standard deviation.",
    vjp: NO_SLOPE,
    node: "NormalBackward1",
    samples: &["f32[2,3], 0.0"],
    errors: &[("f32[2], -1.0", "RuntimeError", "normal expects std >= 0.0")],
    reference: "x0",
    alias_policy: Some(AliasPolicy::SameOnly),
    out_dtype: Some(OutDType::Castable),
    keeps: Some("mean_sym_sizes"),
    batch: Batching::Align,
    ..GAUSS
};
pub static NORMAL_STDS: Op = Op {
    sig: sig("normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor"),
    doc: "Normal random numbers with one mean and these standard deviations.",
    vjp: Vjp::Zero(&[1]),
    node: "NormalBackward2",
    samples: &["2.0, f32[2,3](zeros)"],
    errors: &[
        ("0.0, f32[2](= -1, 0)", "RuntimeError", "normal expects all elements of std >= 0.0"),
        ("0.0, f32[2](= nan, 0)", "RuntimeError", "normal expects all elements of std >= 0.0"),
    ],
    reference: "np.full_like(x1, 2)",
    alias_policy: Some(AliasPolicy::SameOnly),
    out_dtype: Some(OutDType::Castable),
    keeps: Some("std_sym_sizes"),
    batch: Batching::Align,
    ..GAUSS
};

pub static NORMAL: Op = Op {
    sig: sig(
        "normal(float mean, float std, int[] size, *, Generator? generator=None, DType? dtype=None, Device? device=None, bool? requires_grad=False) -> Tensor",
    ),
    doc: "Normal random numbers of a shape.",
    forms: FO,
    body: factory(
        |c| crate::ops::create::full::created(c, c.dtype("dtype").unwrap_or_else(default_dtype)),
        |c, out| {
            let (mean, std) = (c.float("mean")?, c.float("std")?);
            if std < 0.0 {
                return Err(Error::runtime(format!("normal expects std >= 0.0, but found std {std}")));
            }
            draw(&out[0], Draw::Normal { mean, std }, source(c, out[0].device())?)
        },
    ),
    vjp: Vjp::None("random numbers"),
    samples: &["2.0, 0.0, (2, 3)"],
    errors: &[("0.0, -1.0, (2,)", "RuntimeError", "normal expects std >= 0.0")],
    reference: "np.full(size, mean)",
    batch: Batching::Rule(batch_views::sized),
    ..OP
};

/// Uniform numbers in the shape of `p`, in the float dtype in which probabilities are compared.
pub(crate) fn chances(p: &Tensor, source: &Generator) -> Result<Tensor> {
    let dtype = if p.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let t = Tensor::empty(p.shape(), dtype, p.device())?;
    draw(&t, UNIT, source)?;
    Ok(t)
}

/// Checks the weights of each row.
fn check_weights(p: &Tensor) -> Result<()> {
    let wild = ISFINITE.call((p,)).not().or(LT.call((p, 0)));
    if wild.any_true()? {
        return Err(Error::runtime("probability tensor contains either `inf`, `nan` or element < 0"));
    }
    let wide = if p.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let sums = Term::from(p).to_dtype(wide).sum(&[-1], false);
    if sums.at_most(0.0).any_true()? {
        return Err(Error::runtime("invalid multinomial distribution (sum of probabilities <= 0)"));
    }
    Ok(())
}

/// The first `k` categories of each row to ring in a race of exponential clocks: a sample without replacement.
fn race(p: &Tensor, k: usize, source: &Generator) -> Result<Outputs> {
    let clocks = Tensor::empty(p.shape(), p.dtype(), p.device())?;
    draw(&clocks, Draw::Exponential { rate: 1.0 }, source)?;
    // A clock that rounds to zero rings first, but not where the weight is zero.
    let least = if p.dtype() == DType::F16 { 6e-8 } else { f64::from(f32::MIN_POSITIVE) };
    let speeds = DIV.call((p, Term::from(&clocks).clamp_min_(least)));
    match k {
        1 => ARGMAX.calls((speeds, -1, true)),
        _ => Ok(smallvec![TOPK.calls((speeds, k, -1))?.swap_remove(1)]),
    }
}

/// For each of `k` uniform numbers the first category up to which the weights' running sum, in their dtype, reaches it.
fn with_replacement(p: &Tensor, shape: &[usize], source: &Generator) -> Result<Outputs> {
    let k = shape[p.ndim() - 1];
    let single = p.dtype() != DType::F64;
    let weights = p.dense_copy(if single { DType::F32 } else { DType::F64 })?;
    let n = p.shape().last().copied().unwrap_or(0);
    let mut picked = room(checked_numel(shape)?)?;
    let mut sums = filled(0.0f64, n)?;
    source.draw(|m| -> Result<()> {
        for row in 0..weights.numel().checked_div(n).unwrap_or(0) {
            let mut sum = 0.0;
            let rounded = |x: f64| if single { x as f32 as f64 } else { x };
            for (i, s) in sums.iter_mut().enumerate() {
                sum = rounded(sum + weights.element(weights.layout().offset + row * n + i)?.to_f64());
                *s = sum;
            }
            sums.iter_mut().for_each(|s| *s = rounded(*s / sum));
            sums[n - 1] = 1.0;
            picked.extend((0..k).map(|_| {
                let u = m.unit();
                sums.partition_point(|s| *s < u) as i64
            }));
        }
        Ok(())
    })?;
    Term(Tensor::from_slice(&picked, shape)).outputs()
}

/// The places that `multinomial` fills, after a check of its arguments.
fn picks(c: &Call) -> Result<Specs> {
    let (p, k, replacement) = (c.tensor(0)?, c.int("num_samples")?, c.flag("replacement"));
    if p.ndim() == 0 || p.ndim() > 2 {
        return Err(Error::runtime("prob_dist must be 1 or 2 dim"));
    }
    if !p.dtype().is_float() {
        return Err(Error::runtime(format!(
            "multinomial only supports floating-point dtypes for input, got: {}",
            p.dtype().scalar_type_name()
        )));
    }
    if k <= 0 {
        return Err(Error::runtime("cannot sample n_sample <= 0 samples"));
    }
    // As in PyTorch, of any dtype: float32 counts no further.
    if p.size(p.ndim() - 1) > 1 << 24 {
        return Err(Error::runtime("number of categories cannot exceed 2^24"));
    }
    if !replacement && k as usize > p.size(p.ndim() - 1) {
        return Err(Error::runtime("cannot sample n_sample > prob_dist.size(-1) samples without replacement"));
    }
    let mut shape: crate::layout::Dims = p.shape().into();
    shape[p.ndim() - 1] = k as usize;
    Ok(Spec::one(&shape, DType::I64, p.device()))
}

fn multinomial(c: &Call) -> Result<Outputs> {
    let (shape, p, replacement) = (picks(c)?.swap_remove(0).layout.shape, c.tensor(0)?.detach(), c.flag("replacement"));
    let (k, source) = (shape[p.ndim() - 1], source(c, p.device())?);
    if p.device().is_gpu() {
        return Ok(smallvec![crate::ops::order::search_gpu::multinomial(&p, k, replacement, source)?]);
    }
    let (rows, n) = p.shape().split_at(p.ndim() - 1);
    if n == [0] && !rows.contains(&0) {
        return Err(Error::runtime("invalid multinomial distribution (sum of probabilities <= 0)"));
    }
    if shape.contains(&0) {
        return Ok(smallvec![Tensor::zeros(&shape, DType::I64, p.device())?]);
    }
    check_weights(&p)?;
    if replacement && k > 1 { with_replacement(&p, &shape, source) } else { race(&p, k, source) }
}

pub static MULTINOMIAL: Op = Op {
    sig: sig(
        "multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
    ),
    doc: "Draws categories with the weights of each row, which need not sum to one. Returns their indices.",
    forms: FMO,
    body: opaque(picks, multinomial),
    vjp: Vjp::None("indices"),
    batch: Batching::Fold(2, &[0]),
    samples: &["f32[3](= 0, 1, 0), 1", "f32[2,2](= 0, 1, 2, 0), 3, True"],
    errors: &[
        ("f32[2](= 1, 1), 3", "RuntimeError", "without replacement"),
        ("f32[2](= -1, 1), 1", "RuntimeError", "element < 0"),
        ("f32[2](= 0, 0), 1", "RuntimeError", "sum of probabilities <= 0"),
        ("f32[2](= 1, 1), 0", "RuntimeError", "n_sample <= 0"),
    ],
    out_dtype: Some(OutDType::Same),
    ..OP
};
