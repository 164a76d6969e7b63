//! The kernel of nll_loss and its gradient, which are transposed linear maps of each other.
//!
//! A loop over the targets on the CPU; gather and scatter on the GPU.

use super::cross_entropy::check;
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::Layout;
use crate::op::*;
use crate::ops::indexing::along_dim::TAKE_ALONG;
use crate::ops::support::batch_nn;
use crate::ops::view::reshape::EXPAND;
use crate::tensor::Tensor;
use crate::with_dtype;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&NLL, &NLL_2D, &NLL_BACKWARD];

/// Sizes of the input as `[batch, classes, rest]`.
pub(crate) struct Sizes {
    batch: usize,
    pub(crate) classes: usize,
    rest: usize,
}

impl Sizes {
    pub(crate) fn of(shape: &[usize]) -> Sizes {
        match shape {
            [classes] => Sizes { batch: 1, classes: *classes, rest: 1 },
            [batch, classes, rest @ ..] => Sizes { batch: *batch, classes: *classes, rest: rest.iter().product() },
            [] => Sizes { batch: 1, classes: 1, rest: 1 },
        }
    }
    fn positions(&self) -> usize {
        self.batch * self.rest
    }
    /// Offset of class `class` of a position in a dense input.
    fn at(&self, position: usize, class: usize) -> usize {
        match self.rest {
            1 => position * self.classes + class,
            rest => (position / rest * self.classes + class) * rest + position % rest,
        }
    }
}

/// Calls `f(position, class, weight)` for each target that is not ignored.
fn for_targets(c: &Call, sizes: &Sizes, mut f: impl FnMut(usize, usize, f64)) -> Result<()> {
    let targets = c.tensor("target")?.dense_copy(DType::I64)?;
    let weights = c.opt_tensor("weight").map(|w| w.dense_copy(DType::F64)).transpose()?;
    let ignored = c.int("ignore_index")?;
    let start = targets.ptr()?.cast::<i64>();
    let weight = weights.as_ref().map(|w| w.ptr()).transpose()?.map(|p| p.cast::<f64>());
    for position in 0..sizes.positions() {
        // SAFETY: one target a position and one weight a class; read once, as Note [Racing indices] has it.
        let class = unsafe { start.add(position).read_volatile() };
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

pub(crate) const MEAN: i64 = 1;
pub(crate) const NONE: i64 = 0;
pub(crate) const SUM: i64 = 2;

fn check_reduction(how: i64) -> Result<()> {
    if (NONE..=SUM).contains(&how) { Ok(()) } else { Err(Error::value(format!("{how} is not a valid reduction"))) }
}

fn infer(c: &Call) -> Result<Specs> {
    let (x, t) = (c.tensor(0)?, c.tensor("target")?);
    check(x.shape(), x.dtype(), t, c.opt_tensor("weight"))?;
    check_reduction(c.int("reduction")?)?;
    let shape = if c.int("reduction")? == NONE { t.shape() } else { &[] };
    Ok(smallvec![Spec::new(shape, x.dtype(), x.device()), Spec::new(&[], x.dtype(), x.device())])
}

fn forward(c: &Call, out: &[Tensor]) -> Result<()> {
    let x = c.tensor(0)?.dense_copy(c.tensor(0)?.dtype())?;
    let (sizes, how) = (Sizes::of(x.shape()), c.int("reduction")?);
    // Each value where it is wanted, else one after the other.
    let kept = if how == NONE { sizes.positions() } else { 1 };
    let values = Tensor::empty(&[kept], DType::F64, x.device())?;
    let values_ptr = values.ptr()?.cast::<f64>();
    if how == NONE {
        values.fill_raw(Scalar::Int(0))?;
    }
    let (mut sum, mut total) = (0.0, 0.0);
    with_dtype!(x.dtype(), T => {
        let start = x.ptr()?.cast::<T>();
        for_targets(c, &sizes, |position, class, weight| {
            // SAFETY: a dense tensor of these sizes; the class was checked.
            let v = -weight * unsafe { *start.add(sizes.at(position, class)) }.to_scalar().to_f64();
            // SAFETY: one value a position, or one.
            unsafe { *values_ptr.add(if how == NONE { position } else { 0 }) = v };
            sum += v;
            total += weight;
        })?
    });
    out[1].fill_raw(Scalar::Float(total))?;
    match how {
        NONE => out[0].copy_raw(&values.with_layout(Layout::contiguous(out[0].shape()))),
        MEAN => out[0].fill_raw(Scalar::Float(sum / total)),
        _ => out[0].fill_raw(Scalar::Float(sum)),
    }
}

fn grad_input(c: &VjpCtx) -> Term {
    let (how, ignored) = (c.int("reduction"), c.int("ignore_index"));
    let weight = c.opt_tensor("weight").map_or(Value::None, Value::from);
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
    c.tie_requires_grad(NLL_BACKWARD.call(args), &[0])
}

/// The negative log likelihood with `reduction` 0: none, 1: mean, 2: sum; also the total weight.
pub static NLL: Op = Op {
    sig: sig(
        "_nll_loss(Tensor self, Tensor target, Tensor~? weight=None, int reduction=1, int ignore_index=-100) -> Tensor[]",
    ),
    doc: "`-weight[t] * self[t]` for each target class, reduced (0: not, 1: mean, 2: sum), and the total weight.",
    forms: HIDDEN,
    body: kernel(infer, forward, Some(forward_gpu)),
    vjp: Vjp::Each(&[d(0, A0 | A1 | A2 | OUT1, grad_input)]),
    node: "NllLossBackward0",
    constant: &[1],
    samples: &["f32[3,4], i64[3](0..4)", "f32[3,4], i64[3](0..4), f32[4](pos, nograd), 0"],
    errors: &[("f32[1,4], i64[1](=5)", "IndexError", "Target 5 is out of bounds")],
    batch: Batching::Rule(batch_nn::nll_loss),
    ..OP
};

/// The same for inputs with dimensions after the classes, with its own node name, as in PyTorch.
pub static NLL_2D: Op = Op {
    sig: sig(
        "_nll_loss2d(Tensor self, Tensor target, Tensor~? weight=None, int reduction=1, int ignore_index=-100) -> Tensor[]",
    ),
    doc: "`_nll_loss` of an input with more dimensions.",
    forms: HIDDEN,
    body: kernel(infer, forward, Some(forward_gpu)),
    vjp: Vjp::Each(&[d(0, A0 | A1 | A2 | OUT1, grad_input)]),
    node: "NllLoss2DBackward0",
    constant: &[1],
    samples: &["f32[2,4,3], i64[2,3](0..4)"],
    errors: &[("f32[1,4,1], i64[1,1](=5)", "IndexError", "Target 5 is out of bounds")],
    batch: Batching::Rule(batch_nn::nll_loss),
    ..OP
};

/// nll_loss is linear in its input, so the gradient of its gradient is nll_loss again.
pub static NLL_BACKWARD: Op = Op {
    sig: sig(
        "_nll_loss_backward(Tensor grad, Tensor target, Tensor? weight, int reduction, int ignore_index, Tensor total_weight, int[] size) -> Tensor",
    ),
    doc: "The gradient of `_nll_loss`: `-weight[t] * grad` at each target class, zero elsewhere.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let (g, t, how) = (c.tensor("grad")?, c.tensor("target")?, c.int("reduction")?);
            let shape = crate::layout::to_shape(c.ints("size")?)?;
            check(&shape, g.dtype(), t, c.opt_tensor("weight"))?;
            check_reduction(how)?;
            let fits = if how == NONE { g.shape() == t.shape() } else { g.ndim() == 0 };
            if !fits || c.tensor("total_weight")?.ndim() != 0 {
                return Err(Error::runtime("the gradient must have the shape of the loss, the total weight none"));
            }
            Ok(Spec::one(&shape, g.dtype(), g.device()))
        },
        backward,
        Some(backward_gpu),
    ),
    vjp: Vjp::Each(&[d(0, A1 | A2, |c| {
        let weight = c.opt_tensor("weight").map_or(Value::None, Value::from);
        let target = match c.tensor("target") {
            Ok(t) => Value::from(t),
            Err(e) => return e.into(),
        };
        let h = match c.g().ok() {
            Ok(h) => Value::from(h),
            Err(e) => return e.into(),
        };
        let args: Args = smallvec![h, target, weight, c.int("reduction").into(), c.int("ignore_index").into()];
        Term(NLL.calls(args).map(|mut out| out.swap_remove(0)))
    })]),
    samples: &["f32[], i64[3](0..4), None, 1, -100, f32[](=3), (3, 4)"],
    errors: &[("f32[], i64[1](=5), None, 1, -100, f32[](nograd), (1, 4)", "IndexError", "Target 5 is out of bounds")],
    batch: Batching::Rule(batch_nn::nll_loss_backward),
    ..OP
};

fn backward(c: &Call, out: &[Tensor]) -> Result<()> {
    let out = &out[0];
    out.fill_raw(Scalar::Int(0))?;
    let (sizes, how) = (Sizes::of(out.shape()), c.int("reduction")?);
    let number = |i: usize| c.tensor(i).and_then(|t| t.element(t.layout().offset)).map(|s| s.to_f64());
    let scale = if how == MEAN { 1.0 / number(5)? } else { 1.0 };
    let each = if how == NONE { Some(c.tensor("grad")?.dense_copy(DType::F64)?) } else { None };
    let grads = each.as_ref().map(|g| g.ptr()).transpose()?.map(|p| p.cast::<f64>());
    let one = if how == NONE { 0.0 } else { number(0)? };
    with_dtype!(out.dtype(), T => {
        let start = out.ptr()?.cast::<T>();
        for_targets(c, &sizes, |position, class, weight| {
            // SAFETY: the gradient holds one number a position.
            let g = grads.map_or(one, |grads| unsafe { *grads.add(position) });
            let v = T::from_scalar(Scalar::Float(-weight * scale * g));
            // SAFETY: the output is new, dense and of these sizes; the class was checked.
            unsafe { *start.add(sizes.at(position, class)) = v };
        })
    })
}

/// Targets as positions along the classes (zero for ignored ones), and the weight of each target.
fn located(c: &Call, ndim: usize) -> Result<(Term, Term)> {
    let (t, dtype) = (c.tensor("target")?, c.tensor(0)?.dtype());
    let ignored = Term::from(t).equals(c.int("ignore_index")?);
    let at = Term::from(t).to_dtype(DType::I64).zero_where(ignored.clone()).ok()?;
    let weight = match c.opt_tensor("weight") {
        Some(w) => TAKE_ALONG.call((w, Term::from(&at).reshape(&[-1]), 0)).reshape(&Term::from(&at).sizes()),
        None => Term(Tensor::empty(t.shape(), dtype, t.device())).filled(1.0),
    };
    let dim = i64::from(ndim > 1);
    Ok((Term::from(&at).unsqueeze(dim), weight.zero_where(ignored)))
}

fn forward_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let x = c.tensor(0)?;
    let dim = i64::from(x.ndim() > 1);
    let (at, weight) = located(c, x.ndim())?;
    let at = at.ok()?;
    let picked = Tensor::empty(at.shape(), x.dtype(), x.device())?;
    gpu::pick_class(&x.gpu_view()?, dim as usize, &at.gpu_view()?, &picked.gpu_view()?)?;
    let picked = Term::from(&picked).squeeze(dim);
    let (values, total) = (-(picked * weight.clone()), weight.sum_all());
    out[1].copy_raw(&total.clone().ok()?)?;
    out[0].copy_raw(&match c.int("reduction")? {
        NONE => values.ok()?,
        MEAN => (values.sum_all() / total).ok()?,
        _ => values.sum_all().ok()?,
    })
}

fn backward_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let (out, how) = (&out[0], c.int("reduction")?);
    let dim = i64::from(out.ndim() > 1);
    let (at, weight) = located(c, out.ndim())?;
    let mut g = -(weight * c.tensor("grad")?);
    if how == MEAN {
        g = g / c.tensor("total_weight")?;
    }
    let (g, at) = (EXPAND.call((g, c.tensor("target")?.shape())).unsqueeze(dim).ok()?, at.ok()?);
    out.fill_raw(Scalar::Int(0))?;
    gpu::put_class(&out.gpu_view()?, dim as usize, &at.gpu_view()?, &g.gpu_view()?)
}
