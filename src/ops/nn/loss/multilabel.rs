//! The margins between a sample's labels and its other classes: multilabel_margin.
//!
//! Loops over labels and classes on the CPU, which need no memory for their pairs; broadcast over the pairs on the GPU.

use super::multiclass::{check_targets, only_floats, rows};
use super::reduction;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::activation::smooth::RELU;
use crate::ops::elementwise::compare::GT;
use crate::ops::indexing::gather_scatter::{GATHER, SCATTER_ADD, SCATTER_VALUE};
use crate::ops::reduce::scan::CUMSUM;
use crate::ops::support::host_read::Dense;
use crate::ops::view::slice::NARROW;
use crate::rt::reserve::filled;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&MULTILABEL_MARGIN_LOSS, &MULTILABEL_MARGIN, &MULTILABEL_MARGIN_BACKWARD];

pub static MULTILABEL_MARGIN_LOSS: Op = Op {
    sig: sig(
        "nn.functional.multilabel_margin_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str{none|mean|sum} reduction='mean') -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: "The sum over labels l and other classes i of `max(0, 1 - (x[l] - x[i]))`, divided by the number of classes; averaged over samples, summed or as it is.\n\nThe input is [n, classes] or [classes]; the target, of the same shape, lists the labels of a sample, ended by -1.",
    forms: F,
    body: decompose(|c| {
        let how = reduction(c).number();
        super::warn_of_legacy(c)?;
        Ok(smallvec![MULTILABEL_MARGIN.calls((c.tensor(0)?, c.tensor("target")?, how))?.swap_remove(0)])
    }),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,4](gt1), i64[2,4](= 0, 2, -1, 1, 3, -1, -1, -1)",
        "f32[4](gt1), i64[4](= 3, 0, 1, 2), reduction='sum'",
        "f32[2,3](gt1), i64[2,3](= -1, 0, 1, 2, 2, -1), reduction='none'",
    ],
    errors: &[
        ("f32[2,3], i64[2,3](0..3), reduction='no'", "ValueError", "not a valid value for reduction"),
        ("f32[1,3], i64[1,3](= 0, 3, -1)", "RuntimeError", "target out of range"),
        ("f32[2,3], i64[2,2](0..3)", "RuntimeError", "inconsistent target size: [2, 2] for input of size: [2, 3]"),
    ],
    ..OP
};

fn check(x: &Tensor, target: &Tensor, how: i64) -> Result<[usize; 2]> {
    let [n, classes] = rows(x)?;
    let fits = if x.ndim() < 2 { target.ndim() < 2 && target.numel() == classes } else { target.shape() == x.shape() };
    if !fits {
        let (own, input) = (Show(target.shape()), Show(x.shape()));
        return Err(Error::runtime(format!("inconsistent target size: {own} for input of size: {input}")));
    }
    only_floats(x, "multilabel_margin_loss_forward_out_frame")?;
    match how {
        0..=2 => Ok([n, classes]),
        _ => Err(Error::value(format!("{how} is not a valid reduction"))),
    }
}

/// The loss of each sample is the result: no reduction, and samples to tell apart.
fn by_sample(target: &Tensor, how: i64) -> bool {
    how == 0 && target.ndim() > 1
}

pub static MULTILABEL_MARGIN: Op = Op {
    sig: sig("_multilabel_margin(Tensor self, Tensor target, int reduction) -> Tensor[]"),
    doc: "`multilabel_margin_loss` with `reduction` 0: none, 1: mean, 2: sum; and, for each class, 1 if it is a label.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let (x, target, how) = (c.tensor(0)?, c.tensor("target")?, c.int("reduction")?);
            let [n, _] = check(x, target, how)?;
            let shape: &[usize] = if by_sample(target, how) { &[n] } else { &[] };
            let [loss, marks] = [shape, target.shape()].map(|shape| Spec::new(shape, x.dtype(), x.device()));
            Ok(smallvec![loss, marks])
        },
        forward,
        Some(forward_gpu),
    ),
    vjp: Vjp::Each(&[d(0, A0 | A1 | OUT1, |c| {
        let (g, x, target, marks) = (c.g(), c.arg(0), c.arg(1), c.out(1));
        c.tie_requires_grad(MULTILABEL_MARGIN_BACKWARD.call((g, x, target, c.int("reduction"), marks)), &[0])
    })]),
    node: "MultilabelMarginLossBackward0",
    constant: &[1],
    keeps: Some("is_target=result1 reduction self target"),
    samples: &["f32[2,4](gt1), i64[2,4](= 0, 2, -1, 1, 3, -1, -1, -1), 1"],
    errors: &[("f32[1,3], i64[1,3](= 0, 3, -1), 1", "RuntimeError", "target out of range")],
    ..OP
};

pub static MULTILABEL_MARGIN_BACKWARD: Op = Op {
    sig: sig(
        "_multilabel_margin_backward(Tensor grad, Tensor self, Tensor target, int reduction, Tensor is_target) -> Tensor",
    ),
    doc: "The gradient of `_multilabel_margin`.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let (x, target) = (c.tensor("self")?, c.tensor("target")?);
            let [n, _] = check(x, target, c.int("reduction")?)?;
            let wanted = if by_sample(target, c.int("reduction")?) { n } else { 1 };
            if c.tensor("grad")?.numel() != wanted || c.tensor("is_target")?.shape() != target.shape() {
                return Err(Error::runtime(
                    "the gradient must have the shape of the loss, the marks that of the target",
                ));
            }
            Ok(smallvec![Spec::like(x)])
        },
        backward,
        Some(backward_gpu),
    ),
    vjp: Vjp::Missing,
    samples: &["f32[], f32[1,4](nograd), i64[1,4](= 0, 2, -1, 1), 1, f32[1,4](= 1, 0, 1, 0, nograd)"],
    errors: &[(
        "f32[2], f32[1,3](nograd), i64[1,3](= 0, 1, -1), 1, f32[1,3](nograd)",
        "RuntimeError",
        "shape of the loss",
    )],
    ..OP
};

/// Calls `f(sample, label, class, excess)` for the pairs of a label and another class whose margin is too small.
fn for_pairs(x: &[f64], labels: &[i64], marks: &[f64], classes: usize, mut f: impl FnMut(usize, usize, usize, f64)) {
    for (i, row) in x.chunks_exact(classes).enumerate() {
        let at = i * classes;
        for label in labels[at..at + classes].iter().take_while(|&&l| l >= 0).map(|&l| l as usize) {
            for class in (0..classes).filter(|&class| marks[at + class] == 0.0) {
                let excess = 1.0 - row[label] + row[class];
                if excess > 0.0 {
                    f(i, label, class, excess);
                }
            }
        }
    }
}

/// What the sum over a sample is multiplied by.
fn share(how: i64, n: usize, classes: usize) -> f64 {
    1.0 / (classes as f64 * if how == 1 { n as f64 } else { 1.0 })
}

fn forward(c: &Call, out: &[Tensor]) -> Result<()> {
    let (x, target, how) = (c.tensor(0)?, c.tensor("target")?, c.int("reduction")?);
    let [n, classes] = check(x, target, how)?;
    check_targets(target, -1..classes as i64)?;
    let (x, labels) = (Dense::<f64>::of(x)?, Dense::<i64>::copy_of(target)?);
    let labels = labels.elements()?;
    // The copy is what is read from here on, so it is what must be in range.
    if labels.iter().any(|&l| l >= classes as i64) {
        return Err(Error::runtime("target out of range"));
    }
    let mut marks = filled(0.0, n * classes)?;
    for (i, row) in labels.chunks_exact(classes).enumerate() {
        row.iter().take_while(|&&l| l >= 0).for_each(|&l| marks[i * classes + l as usize] = 1.0);
    }
    let mut sums = filled(0.0, n)?;
    let share = share(how, n, classes);
    for_pairs(x.elements()?, labels, &marks, classes, |i, _, _, excess| sums[i] += excess * share);
    out[1].copy_raw(&Tensor::from_slice(&marks, out[1].shape())?)?;
    match out[0].ndim() {
        1 => out[0].copy_raw(&Tensor::from_slice(&sums, &[n])?),
        _ if how == 1 && n == 0 => out[0].fill_raw(Scalar::Float(f64::NAN)),
        _ => out[0].fill_raw(Scalar::Float(sums.iter().sum())),
    }
}

fn backward(c: &Call, out: &[Tensor]) -> Result<()> {
    let (x, target, how) = (c.tensor("self")?, c.tensor("target")?, c.int("reduction")?);
    let [n, classes] = check(x, target, how)?;
    let (g, x, marks) =
        (Dense::<f64>::of(c.tensor("grad")?)?, Dense::<f64>::of(x)?, Dense::<f64>::of(c.tensor("is_target")?)?);
    let labels = Dense::<i64>::copy_of(target)?;
    let (g, labels) = (g.elements()?, labels.elements()?);
    if labels.iter().any(|&l| l >= classes as i64) {
        return Err(Error::runtime("target out of range"));
    }
    let mut slopes = filled(0.0, n * classes)?;
    let share = share(how, n, classes);
    for_pairs(x.elements()?, labels, marks.elements()?, classes, |i, label, class, _| {
        let slope = g[if g.len() == 1 { 0 } else { i }] * share;
        slopes[i * classes + label] -= slope;
        slopes[i * classes + class] += slope;
    });
    out[0].copy_raw(&Tensor::from_slice(&slopes, out[0].shape())?)
}

/// (labels with 0 for what is none, whether each is one, whether each class is one), all [n, classes].
fn labelled(target: &Tensor, [n, classes]: [usize; 2]) -> Result<[Term; 3]> {
    let rows = [n as i64, classes as i64];
    let labels = Term::from(target).reshape(&rows);
    let ended = CUMSUM.call((labels.clone().less(0).to_dtype(DType::I64), 1));
    let none = GT.call((ended, 0));
    // What is no label marks a column of its own.
    let places = none.clone().choose(classes as i64, labels.clone());
    let zeros = Tensor::zeros(&[n, classes + 1], DType::F32, target.device())?;
    let marks = NARROW.call((SCATTER_VALUE.call((&zeros, 1, places, 1)), 1, 0, classes));
    Ok([labels.zero_where(none.clone()), none.equals(false), marks])
}

/// The excess of each pair (label, class) of a sample, [n, classes, classes], zero where there is none.
fn pairs(x: &Term, labels: &Term, own: &Term, marks: &Term) -> Term {
    let of_labels = GATHER.call((x, 1, labels)).unsqueeze(2);
    let excess = RELU.call((1.0 - of_labels + x.clone().unsqueeze(1),));
    excess.zero_where(own.clone().equals(false).unsqueeze(2)).zero_where(marks.clone().greater(0).unsqueeze(1))
}

fn forward_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let (x, target, how) = (c.tensor(0)?, c.tensor("target")?, c.int("reduction")?);
    let [n, classes] = check(x, target, how)?;
    check_targets(target, -1..classes as i64)?;
    let [labels, own, marks] = labelled(target, [n, classes])?;
    let x = Term::from(x).reshape(&[n as i64, classes as i64]);
    let sums = pairs(&x, &labels, &own, &marks).sum(&[1, 2], false) * share(how, n, classes);
    out[1].copy_raw(&marks.reshape(&Term::from(&out[1]).sizes()).ok()?)?;
    out[0].copy_raw(&if out[0].ndim() == 1 { sums } else { sums.sum_all() }.ok()?)
}

fn backward_gpu(c: &Call, out: &[Tensor]) -> Result<()> {
    let (x, target, how) = (c.tensor("self")?, c.tensor("target")?, c.int("reduction")?);
    let [n, classes] = check(x, target, how)?;
    check_targets(target, -1..classes as i64)?;
    let [labels, own, marks] = labelled(target, [n, classes])?;
    let x = Term::from(x).reshape(&[n as i64, classes as i64]);
    let short = GT.call((pairs(&x, &labels, &own, &marks), 0)).to_dtype(out[0].dtype());
    let g = Term::from(c.tensor("grad")?).reshape(&[-1, 1]) * share(how, n, classes);
    let up = short.clone().sum(&[1], false);
    let slopes = SCATTER_ADD.call((up, 1, labels, -short.sum(&[2], false))) * g;
    out[0].copy_raw(&slopes.reshape(&Term::from(&out[0]).sizes()).ok()?)
}
