//! Elementwise losses: mse, l1, smooth_l1, huber, kl_div.
//!
//! Each is one elementwise rule and a reduction, recorded as one node with a gradient formula.

use super::{Reduction, reduced, reduction, unreduced, warn_of_legacy, warn_of_sizes};
use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapReal, Real};
use crate::dtype::Category;
use crate::error::{Error, Result};
use crate::op::*;
use crate::ops::elementwise::arith::DIV;
use crate::ops::support::promotion::no_kernel;

pub static OPS: &[&Op] = &[
    &MSE_LOSS,
    &MSE_LOSS_WEIGHTED,
    &SQUARED_ERROR,
    &L1_LOSS,
    &L1_LOSS_WEIGHTED,
    &F_SMOOTH_L1_LOSS,
    &SMOOTH_L1_LOSS,
    &SMOOTH_L1,
    &HUBER_LOSS,
    &HUBER_LOSS_WEIGHTED,
    &HUBER,
    &KL_DIV,
];

pub(crate) const STEP: Vjp = Vjp::None("a step of a loss that has a gradient of its own");

struct SquaredError;
impl MapReal<2> for SquaredError {
    #[inline(always)]
    fn eval<T: Real>([x, y]: [T; 2]) -> T {
        (x - y) * (x - y)
    }
}
static SQUARED: Rule =
    Rule { operands: &[0, 1], loops: Loops::NONE.real::<2, SquaredError>(), wgsl: "(x - y) * (x - y)" };
pub static SQUARED_ERROR: Op = Op {
    sig: sig("_squared_error(Tensor self, Tensor target) -> Tensor"),
    doc: "`(self - target)^2`, element by element.",
    forms: HIDDEN,
    body: elementwise(&SQUARED),
    vjp: STEP,
    samples: &["f32[2,3], f32[2,3]"],
    errors: &[("f32[2,3], f32[4]", "RuntimeError", "must match the size")],
    reference: "(x0 - x1)**2",
    ..OP
};

fn difference(c: &VjpCtx) -> Term {
    c.arg(0) - c.arg(1)
}

pub static MSE_LOSS: Op = Op {
    sig: sig(
        "nn.functional.mse_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str{none|mean|sum} reduction='mean') -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "The mean squared error: `(input - target)^2`, averaged, summed or as it is.",
    forms: F,
    body: decompose(|c| {
        only_floats(c, "mse_cpu")?;
        reduced(c, SQUARED_ERROR.call((c.tensor(0)?, c.tensor("target")?)))
    }),
    vjp: Vjp::Each(&[
        d(0, A0 | A1, |c| unreduced(c) * 2.0 * difference(c)),
        d(1, A0 | A1, |c| unreduced(c) * -2.0 * difference(c)),
    ]),
    warns: Some(warn_of_sizes),
    samples: &["f32[2,3], f32[2,3]", "f32[2,3], f32[3], reduction='none'", "f32[4], f32[4], reduction='sum'"],
    errors: &[
        ("f32[2], f32[2], reduction='no'", "ValueError", "not a valid value for reduction"),
        ("f32[2,3], f32[4]", "RuntimeError", "must match the size"),
        ("i64[2], i64[2]", "NotImplementedError", "\"mse_cpu\" not implemented for 'Long'"),
    ],
    keeps: Some("reduction self=input target"),
    batch: Batching::Reduced(4),
    ..OP
};

fn weighted(c: &Call, values: Term, by_weight: bool) -> Result<Outputs> {
    let Some(w) = c.opt_tensor("weight") else { return reduced(c, values) };
    if w.shape() != c.tensor(0)?.shape() {
        return Err(Error::value("Weights and input must have the same size."));
    }
    let values = values * w;
    if by_weight && reduction(c) == Reduction::Mean {
        warn_of_legacy(c)?;
        return (values.sum_all() / Term::from(w).sum_all()).outputs();
    }
    reduced(c, values)
}

pub static MSE_LOSS_WEIGHTED: Op = Op {
    sig: sig(
        "nn.functional.mse_loss.weighted(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str{none|mean|sum} reduction='mean', Tensor? weight=None) -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "The squared error with a weight for each element; the mean is over the sum of the weights.",
    forms: F,
    body: decompose(|c| {
        let difference = Term::from(c.tensor(0)?) - c.tensor("target")?;
        weighted(c, difference.square(), true)
    }),
    vjp: Vjp::Composite,
    warns: Some(warn_of_sizes),
    samples: &["f32[2,3], f32[2,3], weight=f32[2,3](pos, nograd)"],
    errors: &[("f32[2,3], f32[2,3], weight=f32[3](nograd)", "ValueError", "must have the same size")],
    ..OP
};

pub static L1_LOSS_WEIGHTED: Op = Op {
    sig: sig(
        "nn.functional.l1_loss.weighted(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str{none|mean|sum} reduction='mean', Tensor? weight=None) -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "The absolute error with a weight for each element; the mean is over the sum of the weights.",
    forms: F,
    body: decompose(|c| weighted(c, (Term::from(c.tensor(0)?) - c.tensor("target")?).abs(), true)),
    vjp: Vjp::Composite,
    warns: Some(warn_of_sizes),
    samples: &["f32[2,3], f32[2,3], weight=f32[2,3](pos, nograd)"],
    errors: &[("f32[2,3], f32[2,3], weight=f32[3](nograd)", "ValueError", "must have the same size")],
    ..OP
};

pub static L1_LOSS: Op = Op {
    sig: sig(
        "nn.functional.l1_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str{none|mean|sum} reduction='mean') -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "The mean absolute error: `|input - target|`, averaged, summed or as it is.",
    forms: F,
    body: decompose(|c| reduced(c, (Term::from(c.tensor(0)?) - c.tensor("target")?).abs())),
    vjp: Vjp::Composite,
    warns: Some(warn_of_sizes),
    samples: &["f32[2,3], f32[2,3]", "f32[2,3], f32[3], reduction='none'", "f32[4], f32[4], reduction='sum'"],
    errors: &[("f32[2], f32[2], reduction='no'", "ValueError", "not a valid value for reduction")],
    ..OP
};

struct Smooth;
impl MapReal<3> for Smooth {
    #[inline(always)]
    fn eval<T: Real>([x, y, beta]: [T; 3]) -> T {
        let (d, half) = ((x - y).abs(), T::from_f64(0.5));
        if d < beta { half * d * d / beta } else { d - half * beta }
    }
}
static SMOOTH: Rule = Rule {
    operands: &[0, 1, 2],
    loops: Loops::NONE.real::<3, Smooth>(),
    wgsl: "where_(lt_(abs_(x - y), z), T(0.5) * (x - y) * (x - y) / z, abs_(x - y) - T(0.5) * z)",
};
pub static SMOOTH_L1: Op = Op {
    sig: sig("_smooth_l1(Tensor self, Tensor target, Scalar beta) -> Tensor"),
    doc: "`d^2 / (2 beta)` where `d = |self - target|` is less than `beta`, else `d - beta / 2`.",
    forms: HIDDEN,
    body: elementwise(&SMOOTH),
    vjp: STEP,
    samples: &["f32[2,3], f32[2,3], 0.5"],
    errors: &[("f32[2,3], f32[4], 0.5", "RuntimeError", "must match the size")],
    reference: "np.where(abs(x0 - x1) < x2, (x0 - x1)**2 / (2 * x2), abs(x0 - x1) - x2 / 2)",
    ..OP
};

/// Numbers next to integer tensors would promote them to floats, for which PyTorch has no kernel.
fn only_floats(c: &Call, kernel: &str) -> Result<()> {
    let (x, t) = (c.tensor(0)?.dtype(), c.tensor("target")?.dtype());
    if x.is_float() || t.is_float() { Ok(()) } else { Err(no_kernel(kernel, x)) }
}

fn smooth_slope(c: &VjpCtx) -> Term {
    DIV.call((difference(c), c.float("beta"))).clamp_(-1.0, 1.0)
}

pub static SMOOTH_L1_LOSS: Op = Op {
    sig: sig(
        "_smooth_l1_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str{none|mean|sum} reduction='mean', float beta=1.0) -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "The smooth L1 loss for a positive `beta`.",
    forms: HIDDEN,
    body: decompose(|c| {
        only_floats(c, "smooth_l1_cpu")?;
        reduced(c, SMOOTH_L1.call((c.tensor(0)?, c.tensor("target")?, c.float("beta")?)))
    }),
    vjp: Vjp::Each(&[
        d(0, A0 | A1, |c| unreduced(c) * smooth_slope(c)),
        d(1, A0 | A1, |c| -unreduced(c) * smooth_slope(c)),
    ]),
    samples: &["f32[2,3], f32[2,3]"],
    errors: &[
        ("f32[2,3], f32[4]", "RuntimeError", "must match the size"),
        ("i64[2], i64[2]", "NotImplementedError", "\"smooth_l1_cpu\" not implemented for 'Long'"),
    ],
    keeps: Some("beta reduction self=input target"),
    batch: Batching::Reduced(4),
    ..OP
};

pub static F_SMOOTH_L1_LOSS: Op = Op {
    sig: sig(
        "nn.functional.smooth_l1_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str{none|mean|sum} reduction='mean', float beta=1.0) -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "Squared below `beta`, absolute above: `d^2 / (2 beta)` where `d < beta`, else `d - beta / 2`; averaged, summed or as it is.",
    forms: F,
    body: decompose(|c| {
        let beta = c.float("beta")?;
        if beta < 0.0 {
            return Err(Error::runtime("smooth_l1_loss does not support negative values for beta."));
        }
        if beta == 0.0 {
            return reduced(c, (Term::from(c.tensor(0)?) - c.tensor("target")?).abs());
        }
        SMOOTH_L1_LOSS.calls(c.args.iter().map(|v| v.reborrow()).collect::<Args>())
    }),
    vjp: Vjp::Composite,
    warns: Some(warn_of_sizes),
    samples: &["f32[2,3], f32[2,3]", "f32[2,3], f32[2,3], reduction='none', beta=0.5", "f32[4], f32[4], beta=0.0"],
    errors: &[("f32[2], f32[2], beta=-1.0", "RuntimeError", "negative values for beta")],
    keeps: Some("beta reduction self=input target"),
    ..OP
};

struct Huber;
impl MapReal<3> for Huber {
    #[inline(always)]
    fn eval<T: Real>([x, y, delta]: [T; 3]) -> T {
        let (d, half) = ((x - y).abs(), T::from_f64(0.5));
        if d <= delta { half * d * d } else { delta * (d - half * delta) }
    }
}
static HUBER_RULE: Rule = Rule {
    operands: &[0, 1, 2],
    loops: Loops::NONE.real::<3, Huber>(),
    wgsl: "where_(le_(abs_(x - y), z), T(0.5) * (x - y) * (x - y), z * (abs_(x - y) - T(0.5) * z))",
};
pub static HUBER: Op = Op {
    sig: sig("_huber(Tensor self, Tensor target, Scalar delta) -> Tensor"),
    doc: "`d^2 / 2` where `d = |self - target|` is at most `delta`, else `delta (d - delta / 2)`.",
    forms: HIDDEN,
    body: elementwise(&HUBER_RULE),
    vjp: STEP,
    samples: &["f32[2,3], f32[2,3], 0.5"],
    errors: &[("f32[2,3], f32[4], 0.5", "RuntimeError", "must match the size")],
    reference: "np.where(abs(x0 - x1) <= x2, (x0 - x1)**2 / 2, x2 * (abs(x0 - x1) - x2 / 2))",
    ..OP
};

fn huber_slope(c: &VjpCtx) -> Term {
    let delta = c.float("delta");
    let [own, other] = [0, 1].map(|i| c.meta_of(i).dtype);
    if own != other {
        let (got, wanted) = (other.scalar_type_name(), own.scalar_type_name());
        return Error::runtime(format!("Found dtype {got} but expected {wanted}")).into();
    }
    difference(c).clamp_(-delta, delta)
}

pub static HUBER_LOSS: Op = Op {
    sig: sig(
        "nn.functional.huber_loss(Tensor input, Tensor target, str{none|mean|sum} reduction='mean', float delta=1.0) -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "Half the square below `delta`, `delta` times the distance above; averaged, summed or as it is.",
    forms: F,
    body: decompose(|c| {
        let delta = c.float("delta")?;
        if delta <= 0.0 {
            return Err(Error::runtime("huber_loss does not support non-positive values for delta."));
        }
        only_floats(c, "huber_cpu")?;
        let own = c.tensor(0)?.dtype();
        if !own.is_float() {
            return Err(super::not_castable(c.tensor("target")?.dtype(), own));
        }
        reduced(c, HUBER.call((c.tensor(0)?, c.tensor("target")?, delta)).to_dtype(own))
    }),
    vjp: Vjp::Each(&[
        d(0, A0 | A1, |c| unreduced(c) * huber_slope(c)),
        d(1, A0 | A1, |c| -unreduced(c) * huber_slope(c)),
    ]),
    warns: Some(warn_of_sizes),
    samples: &[
        "f32[2,3], f32[2,3]",
        "f32[2,3], f32[2,3], reduction='none', delta=0.5",
        "f32[4](nograd), f64[4](nograd)",
    ],
    errors: &[
        ("i64[2], f32[2]", "RuntimeError", "result type Float can't be cast to the desired output type Long"),
        ("f32[2], f32[2], delta=0.0", "RuntimeError", "non-positive values for delta"),
        ("i64[2], i64[2]", "NotImplementedError", "\"huber_cpu\" not implemented for 'Long'"),
    ],
    batch: Batching::Reduced(2),
    ..OP
};

pub static HUBER_LOSS_WEIGHTED: Op = Op {
    sig: sig(
        "nn.functional.huber_loss.weighted(Tensor input, Tensor target, str{none|mean|sum} reduction='mean', float delta=1.0, Tensor? weight=None) -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "The Huber loss with a weight for each element.",
    forms: F,
    body: decompose(|c| {
        let values = HUBER_LOSS.call((c.tensor(0)?, c.tensor("target")?, "none", c.float("delta")?));
        weighted(c, values, false)
    }),
    vjp: Vjp::Composite,
    warns: Some(warn_of_sizes),
    samples: &["f32[2,3], f32[2,3], weight=f32[2,3](pos, nograd)"],
    errors: &[("f32[2,3], f32[2,3], weight=f32[3](nograd)", "ValueError", "must have the same size")],
    ..OP
};

/// The reductions of `kl_div`: those of all losses, and the sum over the size of the batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KlReduction {
    None,
    Mean,
    Sum,
    BatchMean,
}
impl Enumerated for KlReduction {
    const VALUES: &'static [(&'static str, KlReduction)] = &[
        ("none", KlReduction::None),
        ("mean", KlReduction::Mean),
        ("sum", KlReduction::Sum),
        ("batchmean", KlReduction::BatchMean),
    ];
}

pub static KL_DIV: Op = Op {
    sig: sig(
        "nn.functional.kl_div(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str{none|mean|sum|batchmean} reduction='mean', bool log_target=False) -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "The Kullback-Leibler divergence of a distribution from that whose logarithm is `input`: `target (log target - input)`.",
    forms: F,
    body: decompose(kl_div),
    vjp: Vjp::Composite,
    warns: Some(|c| {
        (c.choice::<KlReduction>("reduction") == KlReduction::Mean).then(|| {
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only by the \
             batch size, and aligns with the KL div math definition.'mean' will be changed to behave the same as 'batchmean' \
             in the next major release."
                .into()
        })
    }),
    samples: &[
        "f32[2,3], f32[2,3](unit)",
        "f32[2,3], f32[2,3](unit), reduction='batchmean'",
        "f32[2,3], f32[2,3], reduction='none', log_target=True",
    ],
    errors: &[
        ("f32[2], f32[2], reduction='no'", "ValueError", "not a valid value for reduction"),
        ("i64[2], i64[2]", "RuntimeError", "kl_div: Integral inputs not supported."),
        ("f32[2], i64[2]", "RuntimeError", "kl_div: Integral inputs not supported."),
        ("c64[2], f32[2]", "RuntimeError", "kl_div: Complex inputs not supported."),
    ],
    ..OP
};

fn kl_div(c: &Call) -> Result<Outputs> {
    let kinds = [c.tensor(0)?.dtype().category(), c.tensor("target")?.dtype().category()];
    if kinds.contains(&Category::Complex) {
        return Err(Error::runtime("Complex inputs not supported."));
    }
    if kinds.iter().any(|k| *k < Category::Float) {
        return Err(Error::runtime("Integral inputs not supported."));
    }
    let (x, t) = (c.tensor(0)?, Term::from(c.tensor("target")?));
    let values = if c.flag("log_target") { t.clone().exp() * (t - x) } else { t.clone().xlogy_(t.clone()) - t * x };
    if c.choice::<KlReduction>("reduction") == KlReduction::BatchMean {
        let batch = x.shape().first().copied().unwrap_or(1);
        return (values.sum_all() / batch).outputs();
    }
    reduced(c, values)
}
