//! Binary cross entropy, of probabilities and of logits.

use super::pointwise::STEP;
use super::{Reduction, reduced, reduction};
use crate::cpu::loops::Loops;
use crate::cpu::number_class::{MapReal, Real};
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::gpu;
use crate::op::*;
use crate::ops::reduce::extrema::{AMAX, AMIN};
use crate::ops::support::host_read::item;
use crate::ops::support::promotion::no_kernel;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&BCE, &CHECK_PROBABILITIES, &BCE_VALUES, &BCE_LOGITS, &BCE_LOGITS_VALUES];

struct Entropy;
impl MapReal<2> for Entropy {
    #[inline(always)]
    fn eval<T: Real>([x, y]: [T; 2]) -> T {
        let low = T::from_f64(-100.0);
        (y - T::one()) * (-x).log1p().maximum(low) - y * x.ln().maximum(low)
    }
}
static ENTROPY: Rule = Rule {
    operands: &[0, 1],
    loops: Loops::NONE.real::<2, Entropy>(),
    wgsl: "(y - T(1)) * max_(log1p_(-x), T(-100)) - y * max_(ln_(x), T(-100))",
};
pub static BCE_VALUES: Op = Op {
    sig: sig("_bce(Tensor self, Tensor target) -> Tensor"),
    doc: "`-(target log(self) + (1 - target) log(1 - self))`, logarithms no less than -100.",
    forms: HIDDEN,
    body: elementwise(&ENTROPY),
    vjp: STEP,
    samples: &["f32[2,3](unit), f32[2,3](unit)"],
    errors: &[("f32[2,3], f32[4]", "RuntimeError", "must match the size")],
    reference: "-(x1 * np.maximum(np.log(x0), -100) + (1 - x1) * np.maximum(np.log1p(-x0), -100))",
    ..OP
};

/// The gradient of each element: the reduction undone, the weight applied.
fn weighted(c: &VjpCtx) -> Term {
    let n: usize = c.shape(0).iter().product();
    let g = match reduction(&c.call) {
        Reduction::Mean => c.g() / n as f64,
        _ => c.g(),
    };
    if c.argument("weight").is_none() { g } else { g * c.arg("weight") }
}

pub static BCE: Op = Op {
    sig: sig(
        "nn.functional.binary_cross_entropy(Tensor input, Tensor target, Tensor~? weight=None, bool? size_average=None, bool? reduce=None, str{none|mean|sum} reduction='mean') -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "The cross entropy of probabilities `input` and `target`: `-w (t log x + (1 - t) log(1 - x))`; averaged, summed or as it is.",
    forms: F,
    body: decompose(|c| {
        let (x, t) = (c.tensor(0)?, c.tensor("target")?);
        check_fit(x, t)?;
        CHECK_PROBABILITIES.calls((x,))?;
        let values = BCE_VALUES.call((x, t));
        reduced(
            c,
            match c.opt_tensor("weight") {
                Some(w) => values * w,
                None => values,
            },
        )
    }),
    vjp: Vjp::Each(&[
        d(0, A0 | A1 | A2, |c| {
            let x = c.arg(0);
            weighted(c) * (x.clone() - c.arg(1)) / ((1.0 - x.clone()) * x).clamp_min_(1e-12)
        }),
        d(1, A0 | A2, |c| {
            weighted(c) * ((1.0 - c.arg(0)).log().clamp_min_(-100.0) - c.arg(0).log().clamp_min_(-100.0))
        }),
    ]),
    samples: &[
        "f32[2,3](unit), f32[2,3](unit)",
        "f32[2,3](unit), f32[2,3](unit), f32[3](pos, nograd), reduction='sum'",
        "f32[4](unit), f32[4](unit), reduction='none'",
    ],
    errors: &[
        ("f32[2](=1.5,0.5), f32[2](unit)", "RuntimeError", "between 0 and 1"),
        ("f32[2](unit), f32[3](unit)", "ValueError", "Using a target size"),
    ],
    keeps: Some("reduction self=input target weight"),
    ..OP
};

fn check_fit(x: &Tensor, t: &Tensor) -> Result<()> {
    if x.shape() != t.shape() {
        return Err(Error::value(format!(
            "Using a target size (torch.Size({})) that is different to the input size (torch.Size({})) is deprecated. Please ensure they have the same size.",
            Show(t.shape()),
            Show(x.shape())
        )));
    }
    if x.dtype() != t.dtype() {
        let (a, b) = (t.dtype().scalar_type_name(), x.dtype().scalar_type_name());
        return Err(Error::runtime(format!("Found dtype {a} but expected {b}")));
    }
    Ok(())
}

pub static CHECK_PROBABILITIES: Op = Op {
    sig: sig("_check_probabilities(Tensor self) -> Tensor[]"),
    doc: "An error unless every element is between 0 and 1; no results. On the GPU the error comes when the host waits.",
    forms: HIDDEN,
    body: opaque(|_| Ok(Specs::new()), |c| check_probabilities(c.tensor(0)?).map(|()| Outputs::new())),
    vjp: Vjp::None("a check"),
    samples: &["f32[2,3](unit)"],
    errors: &[("f32[2](=1.5,0.5)", "RuntimeError", "between 0 and 1")],
    reference: "[]",
    ..OP
};

fn check_probabilities(x: &Tensor) -> Result<()> {
    if x.numel() == 0 || !x.dtype().is_float() {
        return Ok(());
    }
    if x.device().is_gpu() {
        // Rejects NaN too.
        let inside = |t: Term| t.clone().at_least(0.0).both(t.at_most(1.0)).not().ok();
        return gpu::refuse_where(&inside(Term::from(x))?.gpu_view()?, gpu::Refusal::NoProbability);
    }
    let number = |op: &'static Op| op.call((x,)).ok().and_then(|t| item(&t));
    let (low, high) = (number(&AMIN)?.to_f64(), number(&AMAX)?.to_f64());
    if low >= 0.0 && high <= 1.0 {
        Ok(())
    } else {
        Err(Error::runtime("all elements of input should be between 0 and 1"))
    }
}

struct LogitEntropy;
impl MapReal<3> for LogitEntropy {
    #[inline(always)]
    fn eval<T: Real>([x, y, p]: [T; 3]) -> T {
        let scale = T::one() + (p - T::one()) * y;
        (T::one() - y) * x + scale * ((-x.abs()).exp().log1p() + (-x).maximum(T::zero()))
    }
}
static LOGIT_ENTROPY: Rule = Rule {
    operands: &[0, 1, 2],
    loops: Loops::NONE.real::<3, LogitEntropy>(),
    wgsl: "(T(1) - y) * x + (T(1) + (z - T(1)) * y) * (log1p_(exp_(-abs_(x))) + max_(-x, T(0)))",
};
pub static BCE_LOGITS_VALUES: Op = Op {
    sig: sig("_bce_with_logits(Tensor self, Tensor target, Operand pos_weight) -> Tensor"),
    doc: "`(1 - t) x + (1 + (p - 1) t) log(1 + exp(-x))`, without overflow.",
    forms: HIDDEN,
    body: elementwise(&LOGIT_ENTROPY),
    vjp: STEP,
    samples: &["f32[2,3], f32[2,3](unit), 1.0"],
    errors: &[("f32[2,3], f32[4], 1.0", "RuntimeError", "must match the size")],
    reference: "(1 - x1) * x0 + (1 + (x2 - 1) * x1) * np.log1p(np.exp(-x0))",
    ..OP
};

pub static BCE_LOGITS: Op = Op {
    sig: sig(
        "nn.functional.binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor~? weight=None, bool? size_average=None, bool? reduce=None, str{none|mean|sum} reduction='mean', Tensor~? pos_weight=None) -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "The cross entropy of `sigmoid(input)` and `target`, stable for large logits; `pos_weight` scales the positive part.",
    forms: F,
    body: decompose(|c| {
        let (x, t) = (c.tensor(0)?, c.tensor("target")?);
        if x.shape() != t.shape() {
            return Err(Error::value(format!(
                "Target size (torch.Size({})) must be the same as input size (torch.Size({}))",
                Show(t.shape()),
                Show(x.shape())
            )));
        }
        if !x.dtype().is_float() {
            return Err(no_kernel("log_sigmoid_cpu", x.dtype()));
        }
        if t.dtype() == DType::Bool {
            let text = "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` \
                        operator instead.";
            return Err(Error::not_implemented(text));
        }
        if !t.dtype().is_float() {
            return Err(super::not_castable(x.dtype(), t.dtype()));
        }
        let p = c.opt_tensor("pos_weight").map_or(Value::from(1.0), Value::from);
        let values = BCE_LOGITS_VALUES.call(smallvec::smallvec![Value::from(x), Value::from(t), p] as Args);
        reduced(
            c,
            match c.opt_tensor("weight") {
                Some(w) => values * w,
                None => values,
            },
        )
    }),
    vjp: Vjp::Each(&[
        d(0, A0 | A1 | A2 | POS, |c| {
            let (s, t) = (c.arg(0).sigmoid_(), c.arg(1));
            let slope =
                if c.argument("pos_weight").is_none() { s - t } else { positive(c, t.clone()) * s - c.arg(6) * t };
            weighted(c) * slope
        }),
        d(1, A0 | A2 | POS, |c| {
            let x = c.arg(0);
            let plain = c.argument("pos_weight").is_none();
            let slope = if plain { -x } else { (-x.clone()).sigmoid_().log() - c.arg(6) * x.sigmoid_().log() };
            weighted(c) * slope
        }),
    ]),
    samples: &[
        "f32[2,3], f32[2,3](unit)",
        "f32[2,3], f32[2,3](unit), f32[3](pos, nograd), reduction='sum', pos_weight=f32[3](pos, nograd)",
        "f32[4](big), f32[4](unit), reduction='none'",
    ],
    errors: &[
        ("f32[2], f32[3]", "ValueError", "must be the same as input size"),
        ("f32[2], i64[2]", "RuntimeError", "result type Float can't be cast to the desired output type Long"),
        ("f32[2], b8[2]", "NotImplementedError", "Subtraction, the `-` operator"),
        ("i64[2], i64[2]", "NotImplementedError", "\"log_sigmoid_cpu\" not implemented for 'Long'"),
    ],
    keeps: Some("pos_weight reduction self=input target weight"),
    ..OP
};
const POS: u32 = 1 << 6;

/// `p t + 1 - t`: the weight of the sigmoid.
fn positive(c: &VjpCtx, t: Term) -> Term {
    1.0 + (c.arg(6) - 1.0) * t
}
