//! Connectionist temporal classification (Graves et al., ICML 2006). On a GPU the recursion over steps runs on the host.

use super::{Reduction, reduction};
use crate::cpu::ctc::Sequence;
use crate::cpu::parallel::try_par_for;
use crate::cpu::view::{SendPtr, ensure};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::layout::Layout;
use crate::op::*;
use crate::ops::reduce::sum_prod::{MEAN, SUM};
use crate::ops::support::host_read;
use crate::ops::support::host_read::Dense;
use crate::rt::reserve::{filled, list};
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&F_CTC_LOSS, &F_CTC_LOSS_LISTS, &CTC_LOSS, &CTC_LOSS_LISTS, &CTC, &CTC_BACKWARD];

/// The shape of `_ctc_loss`: sizes of the log probabilities, and where the labels of each sample begin.
struct Batch<'a> {
    steps: usize,
    samples: usize,
    classes: usize,
    input_lengths: &'a [i64],
    target_lengths: &'a [i64],
    starts: Vec<usize>,
    /// States of the longest sequence of labels.
    width: usize,
    blank: usize,
}

impl<'a> Batch<'a> {
    /// Checks the lengths and the blank of a call against the log probabilities and targets.
    fn new(c: &'a Call, x: &Tensor, targets: &Tensor) -> Result<Batch<'a>> {
        let &[steps, samples, classes] = x.shape() else {
            return Err(Error::runtime(format!(
                "Expected 3-dimensional tensor, but got {}-dimensional tensor for argument #1 'log_probs'",
                x.ndim()
            )));
        };
        if !x.dtype().is_float() {
            let own = x.dtype().scalar_type_name();
            return Err(Error::not_implemented(format!("\"ctc_loss_cpu\" not implemented for '{own}'")));
        }
        let (input_lengths, target_lengths, blank) =
            (c.ints("input_lengths")?, c.ints("target_lengths")?, c.int("blank")?);
        if blank < 0 || blank >= classes as i64 {
            return Err(Error::runtime(format!(
                "blank must be in label range; expected 0 <= blank < {classes}, got {blank}"
            )));
        }
        for (name, lengths) in [("input_lengths", input_lengths), ("target_lengths", target_lengths)] {
            if lengths.len() != samples {
                let got = lengths.len();
                return Err(Error::runtime(format!(
                    "{name} must be of size batch_size; expected {samples}, got {got}"
                )));
            }
            if let Some(n) = lengths.iter().find(|&&n| n < 0) {
                return Err(Error::runtime(format!("Expected {name} to have value at least 0, but got value {n}")));
            }
        }
        if let Some(n) = input_lengths.iter().find(|&&n| n > steps as i64) {
            return Err(Error::runtime(format!(
                "Expected input_lengths to have value at most {steps}, but got value {n}"
            )));
        }
        let longest = target_lengths.iter().max().map_or(0, |&n| n as usize);
        let starts = starts(targets, target_lengths, longest)?;
        let width = longest.checked_mul(2).map(|n| n + 1).ok_or_else(|| Error::runtime("target_lengths overflow"))?;
        Ok(Batch { steps, samples, classes, input_lengths, target_lengths, starts, width, blank: blank as usize })
    }
    /// One sample, of all log probabilities and labels.
    fn sequence<'b>(&self, i: usize, log_probs: &'b [f64], labels: &'b [i64]) -> Result<Sequence<'b>> {
        let from = (i * self.classes).min(log_probs.len());
        let sizes = [self.samples * self.classes, self.input_lengths[i] as usize, self.classes];
        let labels = &labels[self.starts[i]..][..self.target_lengths[i] as usize];
        if let Some(label) = labels.iter().find(|&&l| l < 0 || l >= self.classes as i64) {
            let classes = self.classes;
            return Err(Error::index(format!("target out of range; expected 0 <= target < {classes}, got {label}")));
        }
        Sequence::new(&log_probs[from..], sizes, labels, self.blank)
    }
}

/// Where the labels of each sample begin, in concatenated targets or in rows of them.
fn starts(targets: &Tensor, lengths: &[i64], longest: usize) -> Result<Vec<usize>> {
    match *targets.shape() {
        [n] => {
            let total = lengths.iter().try_fold(0i64, |sum, &n| sum.checked_add(n));
            if total != Some(n as i64) {
                return Err(Error::runtime(format!(
                    "Expected the concatenated targets to have as many labels as target_lengths says; expected {}, got {n}",
                    total.map_or("more than fit".into(), |n| n.to_string())
                )));
            }
            list(lengths.iter().scan(0, |end, &n| {
                let start = *end;
                *end += n as usize;
                Some(start)
            }))
        }
        [rows, n] if rows == lengths.len() && n >= longest => list((0..rows).map(|i| i * n)),
        _ => Err(Error::runtime(format!(
            "Expected targets of one dimension, or of shape [{}, {longest} or more], but got {}",
            lengths.len(),
            Show(targets.shape())
        ))),
    }
}

fn forward(c: &Call, out: &[Tensor]) -> Result<()> {
    let (x, targets) = (c.tensor("log_probs")?, c.tensor("targets")?);
    let b = Batch::new(c, x, targets)?;
    let (x, labels) = (Dense::<f64>::of(x)?, Dense::<i64>::copy_of(targets)?);
    let (x, labels) = (x.elements()?, labels.elements()?);
    let size = b.steps * b.width;
    let alpha = out[1].cpu_view()?;
    ensure(alpha.is_contiguous() && alpha.numel() == b.samples * size && alpha.dtype == DType::F64, "ctc")?;
    let alpha = SendPtr(alpha.ptr.cast::<f64>());
    let mut losses = filled(0.0, b.samples)?;
    let results = SendPtr(losses.as_mut_ptr());
    try_par_for(b.samples, 1, |range| {
        range.into_iter().try_for_each(|i| {
            // SAFETY: a new tensor of one block of `size` per sample; each is written by one task.
            let block = unsafe { std::slice::from_raw_parts_mut(alpha.at(i * size), size) };
            block.fill(0.0);
            let loss = b.sequence(i, x, labels)?.forward(block, b.width);
            // SAFETY: one element per sample, written by one task.
            unsafe { *results.at(i) = loss };
            Ok(())
        })
    })?;
    out[0].copy_raw(&Tensor::from_slice(&losses, &[b.samples])?)
}

fn backward(c: &Call, out: &[Tensor]) -> Result<()> {
    let (x, targets) = (c.tensor("log_probs")?, c.tensor("targets")?);
    let b = Batch::new(c, x, targets)?;
    let (g, losses, alpha) =
        (Dense::<f64>::of(c.tensor("grad")?)?, Dense::of(c.tensor("losses")?)?, Dense::of(c.tensor("log_alpha")?)?);
    let (x, labels) = (Dense::<f64>::of(x)?, Dense::<i64>::copy_of(targets)?);
    let (g, losses, alpha) = (g.elements()?, losses.elements()?, alpha.elements()?);
    let (x, labels, zero_infinity) = (x.elements()?, labels.elements()?, c.flag("zero_infinity"));
    let (size, states) = (b.steps * b.classes, b.steps * b.width);
    ensure([g.len(), losses.len()] == [b.samples; 2] && alpha.len() == b.samples * states, "ctc")?;
    // By sample: [samples, steps, classes].
    let mut grads = filled(0.0, b.samples * size)?;
    let start = SendPtr(grads.as_mut_ptr());
    try_par_for(b.samples, 1, |range| {
        let mut beta = filled(0.0, 2 * b.width)?;
        range.into_iter().try_for_each(|i| {
            if zero_infinity && losses[i] == f64::INFINITY {
                return Ok(());
            }
            // SAFETY: one block per sample, written by one task.
            let grad = unsafe { std::slice::from_raw_parts_mut(start.at(i * size), size) };
            let alpha = &alpha[i * states..][..states];
            b.sequence(i, x, labels)?.backward(alpha, b.width, losses[i], g[i], &mut beta, grad);
            Ok(())
        })
    })?;
    let grads = Tensor::from_slice(&grads, &[b.samples * size])?;
    let (shape, strides) = (smallvec![b.steps, b.samples, b.classes], smallvec![b.classes, size, 1]);
    out[0].copy_raw(&grads.with_layout(Layout { shape, strides, offset: 0 }))
}

/// Examples are further samples of one batch; the log probabilities are argument `AT`.
fn batched<const AT: usize>(c: &BatchedCall) -> Result<Outputs> {
    let size = c.size as i64;
    let mut args = c.mapped(|o| {
        let t = c.whole(o.arg)?;
        if o.arg != AT {
            return c.folded(&t);
        }
        let sizes: Ints = o.example.shape().iter().map(|&d| d as i64).collect();
        Term::from(t).transpose(0, 1).reshape(&[sizes[0], size * sizes[1], sizes[2]]).ok()
    })?;
    for i in [AT + 2, AT + 3] {
        let one = c.ints(i)?;
        args[i] = Value::Ints(one.iter().copied().cycle().take(one.len() * c.size).collect());
    }
    let (out, samples) = (c.again(&args)?, c.shape(AT)[1] as i64);
    if AT == 0 {
        return c.all_shaped(out);
    }
    let &[steps, _, classes] = out[0].shape() else { return Ok(out) };
    Term::from(&out[0]).reshape(&[steps as i64, size, samples, classes as i64]).transpose(0, 1).outputs()
}

pub static CTC: Op = Op {
    sig: sig(
        "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, bool zero_infinity=False) -> Tensor[]",
    ),
    doc: "The negative log likelihood of each sample, and the logarithms of the forward variables.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let x = c.tensor("log_probs")?;
            let b = Batch::new(c, x, c.tensor("targets")?)?;
            let losses = Spec::new(&[b.samples], x.dtype(), x.device());
            Ok(smallvec![losses, Spec::new(&[b.samples, b.steps, b.width], DType::F64, x.device())])
        },
        forward,
        None,
    ),
    vjp: Vjp::Each(&[d(0, A0 | A1 | OUT0 | OUT1, |c| {
        let (inputs, targets) =
            (Value::from(c.ints("input_lengths")).into_owned(), Value::from(c.ints("target_lengths")).into_owned());
        let tensors = [c.g(), c.arg(0), c.arg(1), c.out(0), c.out(1)].map(Term::ok);
        let [Ok(g), Ok(x), Ok(labels), Ok(losses), Ok(alpha)] = tensors else {
            return tensors.into_iter().find_map(Result::err).map_or_else(|| c.g(), Term::from);
        };
        let args: Args = smallvec![
            g.into(),
            x.into(),
            labels.into(),
            inputs,
            targets,
            c.int("blank").into(),
            losses.into(),
            alpha.into(),
            c.flag("zero_infinity").into()
        ];
        c.tie_requires_grad(CTC_BACKWARD.call(args), &[0])
    })]),
    node: "CtcLossBackward0",
    constant: &[1],
    keeps: Some("blank input_lengths log_probs result0 result1 target_lengths targets zero_infinity"),
    batch: Batching::Rule(batched::<0>),
    samples: &["f32[4,2,3](neg), i64[2,2](1..3), (4, 3), (2, 1)"],
    errors: &[("f32[4,2,3](neg), i64[2,2](= 1, 3, 1, 1), (4, 4), (2, 1)", "IndexError", "target out of range")],
    ..OP
};

pub static CTC_BACKWARD: Op = Op {
    sig: sig(
        "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank, Tensor losses, Tensor log_alpha, bool zero_infinity) -> Tensor",
    ),
    doc: "The gradient of `_ctc_loss` by the log probabilities.",
    forms: HIDDEN,
    body: kernel(
        |c| {
            let x = c.tensor("log_probs")?;
            let b = Batch::new(c, x, c.tensor("targets")?)?;
            let fits = [0, 6].into_iter().all(|i| c.tensor(i).is_ok_and(|t| t.shape() == [b.samples]));
            if !fits || c.tensor("log_alpha")?.shape() != [b.samples, b.steps, b.width] {
                return Err(Error::runtime("the gradient and the losses must have one element per sample"));
            }
            Ok(smallvec![Spec::like(x)])
        },
        backward,
        None,
    ),
    vjp: Vjp::Missing,
    batch: Batching::Rule(batched::<1>),
    samples: &[
        "f32[2], f32[3,2,3](neg, nograd), i64[2,1](1..3), (3, 3), (1, 1), 0, f32[2](pos, nograd), f64[2,3,3](neg, nograd), False",
    ],
    errors: &[(
        "f32[1], f32[3,2,3](neg, nograd), i64[2,1](1..3), (3, 3), (1, 1), 0, f32[2](pos, nograd), f64[2,3,3](neg, nograd), False",
        "RuntimeError",
        "one element per sample",
    )],
    ..OP
};

/// The lengths in an argument, a list or a tensor of integers.
fn lengths(c: &Call, name: &str) -> Result<Vec<i64>> {
    match c.opt_tensor(name) {
        Some(t) if t.dtype().is_int() => host_read::int_list(t),
        Some(_) => Err(Error::runtime(format!("{name} must be integral"))),
        None => crate::rt::reserve::copied(c.ints(name)?),
    }
}

fn ctc_loss(c: &Call, how: Reduction) -> Result<Outputs> {
    let (x, targets) = (c.tensor("log_probs")?, c.tensor("targets")?);
    let (inputs, lengths) = (lengths(c, "input_lengths")?, lengths(c, "target_lengths")?);
    let (device, batched) = (x.device(), x.ndim() == 3);
    let host = |t: &Tensor| if device == Device::Cpu { Term::from(t) } else { Term::from(t).to_device(Device::Cpu) };
    let log_probs = if batched { host(x) } else { host(x).unsqueeze(1) };
    let (blank, zero_infinity) = (c.int("blank")?, c.flag("zero_infinity"));
    let args: Args = smallvec![
        Value::Owned(log_probs.ok()?),
        Value::Owned(Term::from(targets).to_device(Device::Cpu).to_dtype(DType::I64).ok()?),
        Value::from(&inputs[..]),
        Value::from(&lengths[..]),
        blank.into(),
        zero_infinity.into()
    ];
    let mut losses = Term::from(CTC.calls(args)?.swap_remove(0));
    if zero_infinity {
        let infinite = losses.clone().equals(f64::INFINITY);
        losses = losses.zero_where(infinite);
    }
    let losses = match how {
        Reduction::Mean => {
            let counts = list(lengths.iter().map(|&n| n.max(1) as f64))?;
            let counts = Term::from(Tensor::from_slice(&counts, &[counts.len()])?).to_dtype(x.dtype());
            MEAN.call((losses / counts,))
        }
        Reduction::Sum => SUM.call((losses,)),
        Reduction::None if batched => losses,
        Reduction::None => losses.squeeze(0),
    };
    if device == Device::Cpu { losses.outputs() } else { losses.to_device(device).outputs() }
}

const DOC: &str = "The negative log likelihood of sequences of labels, summed over all their alignments with the steps of the input; averaged (each divided by its number of labels), summed or as it is.\n\n`log_probs`: [steps, n, classes] or [steps, classes]. `targets`: [n, labels] or all of them one after another. `zero_infinity`: sequences that are too short for their labels count as zero, without gradient.";

const F_SAMPLES: &[&str] = &[
    "f32[5,2,4](neg), i64[2,3](1..4), i64[2](= 5, 4), i64[2](= 2, 1)",
    "f32[5,2,4](neg), i64[3](1..4), i64[2](= 5, 4), i64[2](= 2, 1), reduction='none'",
    "f32[2,2,4](neg), i64[2,3](= 1, 1, 2, 1, 2, 3), i64[2](= 2, 2), i64[2](= 3, 1), zero_infinity=True, reduction='sum'",
    "f32[5,4](neg), i32[2](0..3), i64[](= 5), i64[](= 2), 3",
];

pub static F_CTC_LOSS: Op = Op {
    sig: sig(
        "nn.functional.ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, str{none|mean|sum} reduction='mean', bool zero_infinity=False) -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: DOC,
    forms: F,
    body: reads_host(|c| ctc_loss(c, reduction(c))),
    vjp: Vjp::Composite,
    samples: F_SAMPLES,
    errors: &[
        ("f32[5,2,4], i64[2,3](1..4), i64[2](= 5, 4), i64[2](= 2, 1), reduction='no'", "ValueError", "not a valid"),
        (
            "f32[5,2,4], i64[2,3](1..4), i64[2](= 5, 6), i64[2](= 2, 1)",
            "RuntimeError",
            "value at most 5, but got value 6",
        ),
        ("f32[5,2,4], i64[2,3](1..4), i64[1](= 5), i64[2](= 2, 1)", "RuntimeError", "must be of size batch_size"),
        ("f32[5,2,4], i64[2,3](1..4), f32[2], i64[2](= 2, 1)", "RuntimeError", "input_lengths must be integral"),
        (
            "f32[5,2,4], i64[2,3](1..4), i64[2](= 5, 4), i64[2](= 2, 1), 4",
            "RuntimeError",
            "blank must be in label range",
        ),
        ("f32[5], i64[2](1..4), i64[](= 5), i64[](= 2)", "RuntimeError", "Expected 3-dimensional tensor"),
    ],
    ..OP
};

pub static F_CTC_LOSS_LISTS: Op = Op {
    sig: sig(
        "nn.functional.ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, str{none|mean|sum} reduction='mean', bool zero_infinity=False) -> Tensor",
    ),
    unknown_choice: super::unknown_reduction,
    doc: DOC,
    forms: F,
    body: reads_host(|c| ctc_loss(c, reduction(c))),
    vjp: Vjp::Composite,
    samples: &["f32[5,2,4](neg), i64[2,3](1..4), (5, 4), (2, 1)"],
    errors: &[("f32[5,2,4], i64[4](1..4), (5, 4), (2, 1)", "RuntimeError", "expected 3, got 4")],
    ..OP
};

pub static CTC_LOSS: Op = Op {
    sig: sig(
        "ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=0, bool zero_infinity=False) -> Tensor",
    ),
    doc: "See `nn.functional.ctc_loss`; `reduction` is 0 (none, as PyTorch has it by default), 1 (mean) or 2 (sum).",
    forms: F,
    body: reads_host(|c| ctc_loss(c, Reduction::numbered(c.int("reduction")?)?)),
    vjp: Vjp::Composite,
    samples: &["f32[5,2,4](neg), i64[2,3](1..4), i64[2](= 5, 4), i64[2](= 2, 1), 0, 2"],
    errors: &[("f32[5,2,4], i64[2,3](1..4), i64[2](= 5, 4), i64[2](= 2, -1)", "RuntimeError", "value at least 0")],
    ..OP
};

pub static CTC_LOSS_LISTS: Op = Op {
    sig: sig(
        "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int reduction=0, bool zero_infinity=False) -> Tensor",
    ),
    doc: "See `nn.functional.ctc_loss`; `reduction` is 0 (none, as PyTorch has it by default), 1 (mean) or 2 (sum).",
    forms: F,
    body: reads_host(|c| ctc_loss(c, Reduction::numbered(c.int("reduction")?)?)),
    vjp: Vjp::Composite,
    samples: &["f32[5,2,4](neg), i64[2,3](1..4), (5, 4), (2, 1), reduction=0"],
    errors: &[("f32[5,2,4], i64[2,3](1..4), (5, 4, 3), (2, 1)", "RuntimeError", "must be of size batch_size")],
    ..OP
};
