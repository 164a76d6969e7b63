//! Losses of class predictions: nll_loss, and cross_entropy, which is log_softmax and nll_loss.
//!
//! The input is `[classes]`, `[batch, classes]` or `[batch, classes, d1, ..]`, the target of class indices the same
//! without the classes. Reduced by the mean, the sum is divided by the total weight of the targets that count.

use super::{Reduction, reduction};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::needs::quiet;
use crate::ops::softmax::LOG_SOFTMAX;
use crate::tensor::Tensor;
use crate::with_dtype;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&NLL_LOSS, &NLL, &NLL_2D, &NLL_BACKWARD, &CROSS_ENTROPY];

/// Sizes of the input as `[batch, classes, rest]`.
struct Sizes {
    batch: usize,
    classes: usize,
    rest: usize,
}

impl Sizes {
    fn of(shape: &[usize]) -> Sizes {
        match shape {
            [classes] => Sizes { batch: 1, classes: *classes, rest: 1 },
            [batch, classes, rest @ ..] => Sizes { batch: *batch, classes: *classes, rest: rest.iter().product() },
            [] => Sizes { batch: 1, classes: 1, rest: 1 },
        }
    }
    fn positions(&self) -> usize {
        self.batch * self.rest
    }
    /// Where class `class` of a position lies in a dense input.
    fn at(&self, position: usize, class: usize) -> usize {
        (position / self.rest * self.classes + class) * self.rest + position % self.rest
    }
}

fn check(x: &Tensor, t: &Tensor, weight: Option<&Tensor>) -> Result<()> {
    if x.ndim() == 0 {
        return Err(Error::value("Expected 1 or more dimensions (got 0)"));
    }
    if x.ndim() > 1 && (t.ndim() == 0 || x.size(0) != t.size(0)) {
        let n = t.shape().first().copied().unwrap_or(0);
        return Err(Error::value(format!(
            "Expected input batch_size ({}) to match target batch_size ({n}).",
            x.size(0)
        )));
    }
    let classes = Sizes::of(x.shape()).classes;
    let want: Vec<usize> = if x.ndim() == 1 { vec![] } else { [&x.shape()[..1], &x.shape()[2..]].concat() };
    if t.shape() != want {
        return Err(Error::runtime(match x.ndim() {
            1 | 2 => "0D or 1D target tensor expected, multi-target not supported".to_string(),
            4 => format!("size mismatch (got input: {} , target: {}", Show(x.shape()), Show(t.shape())),
            _ => format!("Expected target size {}, got {}", Show(&want), Show(t.shape())),
        }));
    }
    if !matches!(t.dtype(), DType::I64 | DType::U8) {
        return Err(Error::runtime(format!(
            "expected target dtype to be Long or Byte, but got {}",
            t.dtype().scalar_type_name()
        )));
    }
    if !x.dtype().is_float() {
        return Err(Error::not_implemented(format!(
            "\"nll_loss_out_frame\" not implemented for '{}'",
            x.dtype().scalar_type_name()
        )));
    }
    match weight {
        Some(w) if w.shape() != [classes] => Err(Error::runtime(format!(
            "weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {}",
            Show(w.shape())
        ))),
        Some(w) if w.dtype() != x.dtype() => Err(Error::runtime(format!(
            "expected scalar type {} but found {}",
            x.dtype().scalar_type_name(),
            w.dtype().scalar_type_name()
        ))),
        _ => Ok(()),
    }
}

/// The targets that count, with their weights: `f(position, class, weight)`. Others are skipped.
fn for_targets(c: &Call, sizes: &Sizes, mut f: impl FnMut(usize, usize, f64)) -> Result<()> {
    let targets = c.tensor(1)?.dense_copy(DType::I64)?;
    let weights = c.opt_tensor(2).map(|w| w.dense_copy(DType::F64)).transpose()?;
    let ignored = c.int(4)?;
    let start = targets.ptr()?.cast::<i64>();
    let weight = weights.as_ref().map(|w| w.ptr()).transpose()?.map(|p| p.cast::<f64>());
    for position in 0..sizes.positions() {
        // SAFETY: the dense copies hold one target a position and one weight a class.
        let class = unsafe { *start.add(position) };
        if class == ignored {
            continue;
        }
        if class < 0 || class >= sizes.classes as i64 {
            return Err(Error::index(format!("Target {class} is out of bounds.")));
        }
        // SAFETY: as above; the class was checked.
        f(position, class as usize, weight.map_or(1.0, |w| unsafe { *w.add(class as usize) }));
    }
    Ok(())
}

const MEAN: i64 = 1;
const NONE: i64 = 0;

fn infer(c: &Call) -> Result<Specs> {
    let (x, t) = (c.tensor(0)?, c.tensor(1)?);
    let shape = if c.int(3)? == NONE { t.shape() } else { &[] };
    Ok(smallvec![Spec::new(shape, x.dtype(), x.device()), Spec::new(&[], x.dtype(), x.device())])
}

fn forward(c: &Call, out: &[Tensor]) -> Result<()> {
    let x = c.tensor(0)?.dense_copy(c.tensor(0)?.dtype())?;
    let (sizes, how) = (Sizes::of(x.shape()), c.int(3)?);
    let values = Tensor::empty(&[sizes.positions()], DType::F64, x.device())?;
    let values_ptr = values.ptr()?.cast::<f64>();
    values.fill_raw(crate::dtype::Scalar::Int(0))?;
    let (mut sum, mut total) = (0.0, 0.0);
    with_dtype!(x.dtype(), T => {
        let start = x.ptr()?.cast::<T>();
        for_targets(c, &sizes, |position, class, weight| {
            // SAFETY: a dense tensor of these sizes; the class was checked.
            let v = -weight * unsafe { *start.add(sizes.at(position, class)) }.to_scalar().to_f64();
            // SAFETY: one value a position.
            unsafe { *values_ptr.add(position) = v };
            sum += v;
            total += weight;
        })?
    });
    out[1].fill_raw(crate::dtype::Scalar::Float(total))?;
    match how {
        NONE => out[0].copy_raw(&values.with_layout(crate::layout::Layout::contiguous(out[0].shape()))),
        MEAN => out[0].fill_raw(crate::dtype::Scalar::Float(sum / total)),
        _ => out[0].fill_raw(crate::dtype::Scalar::Float(sum)),
    }
}

fn grad_input(c: &Back) -> Term {
    let (how, ignored) = (c.int(3).unwrap_or(0), c.int(4).unwrap_or(0));
    let weight = c.opt_tensor(2).map_or(Value::None, Value::from);
    let (g, total) = match (c.g().ok(), c.out(1).ok()) {
        (Ok(g), Ok(total)) => (g, total),
        (Err(e), _) | (_, Err(e)) => return e.into(),
    };
    let target = match c.arg(1).ok() {
        Ok(t) => t,
        Err(e) => return e.into(),
    };
    let args: Args =
        smallvec![g.into(), target.into(), weight, how.into(), ignored.into(), total.into(), c.sizes(0).into()];
    NLL_BACKWARD.call(args)
}

/// The negative log likelihood with `reduction` 0: none, 1: mean, 2: sum; also the total weight.
pub static NLL: Op = Op {
    sig: "_nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor[]",
    doc: "`-weight[t] * self[t]` for each target class, reduced (0: not, 1: mean, 2: sum), and the total weight.",
    forms: HIDDEN,
    body: kernel(infer, forward, None),
    vjp: Vjp::Each(&[d(0, A1 | A2 | OUT1, grad_input)]),
    node: "NllLossBackward0",
    samples: &["f32[3,4], i64[3](0..4)", "f32[3,4], i64[3](0..4), f32[4](pos, nograd), 0"],
    errors: &[("f32[1,4], i64[1](=5)", "IndexError", "Target 5 is out of bounds")],
    ..OP
};

/// The same for inputs with dimensions after the classes: a node name of its own, as in PyTorch.
pub static NLL_2D: Op = Op {
    sig: "_nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor[]",
    doc: "`_nll_loss` of an input with more dimensions.",
    forms: HIDDEN,
    body: kernel(infer, forward, None),
    vjp: Vjp::Each(&[d(0, A1 | A2 | OUT1, grad_input)]),
    node: "NllLoss2DBackward0",
    samples: &["f32[2,4,3], i64[2,3](0..4)"],
    errors: &[("f32[1,4,1], i64[1,1](=5)", "IndexError", "Target 5 is out of bounds")],
    ..OP
};

/// nll_loss is linear in its input, so the gradient of its gradient is nll_loss again.
pub static NLL_BACKWARD: Op = Op {
    sig: "_nll_loss_backward(Tensor grad, Tensor target, Tensor? weight, int reduction, int ignore_index, Tensor total_weight, int[] size) -> Tensor",
    doc: "The gradient of `_nll_loss`: `-weight[t] * grad` at each target class, zero elsewhere.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let g = c.tensor(0)?;
            Ok(Spec::one(&crate::layout::to_shape(c.ints(6)?)?, g.dtype(), g.device()))
        },
        backward,
        None,
    ),
    vjp: Vjp::Each(&[d(0, A1 | A2, |c| {
        let weight = c.opt_tensor(2).map_or(Value::None, Value::from);
        let target = match c.tensor(1) {
            Ok(t) => Value::from(t),
            Err(e) => return e.into(),
        };
        let h = match c.g().ok() {
            Ok(h) => Value::from(h),
            Err(e) => return e.into(),
        };
        let args: Args = smallvec![h, target, weight, c.int(3).unwrap_or(0).into(), c.int(4).unwrap_or(0).into()];
        Term(NLL.calls(args).map(|mut out| out.swap_remove(0)))
    })]),
    samples: &["f32[], i64[3](0..4), None, 1, -100, f32[](=3,nograd), (3, 4)"],
    errors: &[("f32[], i64[1](=5), None, 1, -100, f32[](nograd), (1, 4)", "IndexError", "Target 5 is out of bounds")],
    ..OP
};

fn backward(c: &Call, out: &[Tensor]) -> Result<()> {
    let out = &out[0];
    out.fill_raw(crate::dtype::Scalar::Int(0))?;
    let (sizes, how) = (Sizes::of(out.shape()), c.int(3)?);
    let g = c.tensor(0)?.dense_copy(DType::F64)?;
    let number = |t: &Tensor| t.dense_copy(DType::F64).and_then(|t| t.element(t.layout().offset)).map(|s| s.to_f64());
    let scale = if how == MEAN { 1.0 / number(c.tensor(5)?)? } else { 1.0 };
    let grads = g.ptr()?.cast::<f64>();
    with_dtype!(out.dtype(), T => {
        let start = out.ptr()?.cast::<T>();
        for_targets(c, &sizes, |position, class, weight| {
            // SAFETY: the gradient holds one number, or one a position.
            let g = unsafe { *grads.add(if how == NONE { position } else { 0 }) };
            let v = T::from_scalar(crate::dtype::Scalar::Float(-weight * scale * g));
            // SAFETY: the output is new, dense and of these sizes; the class was checked.
            unsafe { *start.add(sizes.at(position, class)) = v };
        })
    })
}

/// (loss, total weight) after the checks of `nll_loss`.
fn nll(c: &Call, x: &Tensor, weight: usize, how: Reduction, ignored: i64) -> Result<Outputs> {
    let (t, w) = (c.tensor(1)?, c.opt_tensor(weight));
    check(x, t, w)?;
    let how = match how {
        Reduction::None => NONE,
        Reduction::Mean => MEAN,
        Reduction::Sum => 2,
    };
    let op = if x.ndim() > 2 { &NLL_2D } else { &NLL };
    op.calls((x, t, w, how, ignored))
}

pub static NLL_LOSS: Op = Op {
    sig: "nn.functional.nll_loss(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool? reduce=None, str reduction='mean') -> Tensor",
    doc: "The negative log likelihood of class indices: `-weight[t] * input[t]`, averaged by weight, summed or as it is.",
    forms: F,
    body: composite(|c| Ok(smallvec![nll(c, c.tensor(0)?, 2, reduction(c)?, c.int(4)?)?.swap_remove(0)])),
    vjp: Vjp::Composite,
    samples: &[
        "f32[3,4], i64[3](0..4)",
        "f32[3,4], i64[3](0..4), f32[4](pos, nograd)",
        "f32[2,4,3], i64[2,3](0..4), reduction='none'",
        "f32[4], i64[](0..4)",
        "f32[3,4], i64[3](=0,-100,3), reduction='sum'",
    ],
    errors: &[
        ("f32[1,4], i64[1](=5)", "IndexError", "Target 5 is out of bounds"),
        ("f32[2,4], i64[3](0..4)", "ValueError", "batch_size"),
        ("f32[2,4], f32[2]", "RuntimeError", "expected target dtype"),
    ],
    ..OP
};

pub static CROSS_ENTROPY: Op = Op {
    sig: "nn.functional.cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool? reduce=None, str reduction='mean', float label_smoothing=0.0) -> Tensor",
    doc: "The cross entropy of the softmax of logits and class indices or class probabilities: `-log(softmax(input))[t]`.",
    forms: F,
    body: composite(cross_entropy),
    vjp: Vjp::Composite,
    samples: &[
        "f32[3,4], i64[3](0..4)",
        "f32[3,4], f32[3,4](unit)",
        "f32[3,4], i64[3](0..4), label_smoothing=0.1",
        "f32[2,4,3], i64[2,3](0..4), f32[4](pos, nograd), reduction='none'",
        "f32[3,4], f32[3,4](unit), f32[4](pos, nograd), label_smoothing=0.2",
        "f32[3,4], i64[3](=0,-100,3), f32[4](pos, nograd), label_smoothing=0.2",
    ],
    errors: &[
        ("f32[1,4], i64[1](=5)", "IndexError", "Target 5 is out of bounds"),
        ("f32[2,4], i64[2](0..4), label_smoothing=1.5", "RuntimeError", "between 0.0 and 1.0"),
    ],
    ..OP
};

fn cross_entropy(c: &Call) -> Result<Outputs> {
    let (x, t, smoothing) = (c.tensor(0)?, c.tensor(1)?, c.float(7)?);
    let class_dim = i64::from(x.ndim() > 1);
    if x.shape() == t.shape() {
        return probabilities(c, class_dim, smoothing);
    }
    let p = LOG_SOFTMAX.call((x, class_dim)).ok()?;
    if !(0.0..=1.0).contains(&smoothing) {
        return Err(Error::runtime(format!("label_smoothing must be between 0.0 and 1.0. Got: {smoothing}")));
    }
    let how = reduction(c)?;
    let mut parts = nll(c, &p, 2, how, c.int(4)?)?;
    if smoothing == 0.0 {
        return Ok(smallvec![parts.swap_remove(0)]);
    }
    let weighted = match c.opt_tensor(2) {
        Some(w) => Term::from(&p) * along_classes(w, x.ndim()),
        None => Term::from(&p),
    };
    let ignored = quiet(|| Term::from(t).equals(c.int(4).unwrap_or(-100)));
    let spread = (-weighted.sum(&[class_dim], false)).zero_where(ignored);
    let spread = match how {
        Reduction::None => spread,
        Reduction::Sum => spread.sum_all(),
        Reduction::Mean => spread.sum_all() / &parts[1],
    };
    let classes = Sizes::of(x.shape()).classes as f64;
    ((1.0 - smoothing) * Term::from(&parts[0]) + spread * (smoothing / classes)).outputs()
}

/// One number a class, shaped to broadcast against `[batch, classes, ..]`.
fn along_classes(w: &Tensor, ndim: usize) -> Term {
    let mut sizes: Ints = smallvec![1; ndim];
    sizes[usize::from(ndim > 1)] = w.numel() as i64;
    Term::from(w).reshape(&sizes)
}

fn probabilities(c: &Call, class_dim: i64, smoothing: f64) -> Result<Outputs> {
    let (x, t) = (c.tensor(0)?, c.tensor(1)?);
    if !t.dtype().is_float() {
        let name = t.dtype().scalar_type_name();
        return Err(Error::runtime(format!(
            "Expected floating point type for target with class probabilities, got {name}"
        )));
    }
    if c.int(4)? >= 0 {
        return Err(Error::runtime("ignore_index is not supported for floating point target"));
    }
    if !(0.0..=1.0).contains(&smoothing) {
        return Err(Error::runtime(format!("label_smoothing must be between 0.0 and 1.0. Got: {smoothing}")));
    }
    let p = LOG_SOFTMAX.call((x, class_dim));
    let classes = Sizes::of(x.shape()).classes.max(1);
    let target =
        if smoothing > 0.0 { Term::from(t) * (1.0 - smoothing) + smoothing / classes as f64 } else { Term::from(t) };
    let values = match c.opt_tensor(2) {
        Some(w) => p * target * along_classes(w, x.ndim()),
        None => p * target,
    };
    match reduction(c)? {
        Reduction::None => (-values.sum(&[class_dim], false)).outputs(),
        Reduction::Sum => (-values.sum_all()).outputs(),
        Reduction::Mean => (-values.sum_all() / (x.numel() / classes) as f64).outputs(),
    }
}
