//! Dropout of whole channels, dropout that keeps mean and variance (alpha_dropout), and native_dropout.
//!
//! Source of alpha dropout: Klambauer et al., NeurIPS 2017, "Self-Normalizing Neural Networks".

use super::sampling::{BERNOULLI_, BERNOULLI_P};
use crate::dtype::{DType, Scalar};
use crate::error::{Class, Error, Result};
use crate::op::*;
use crate::ops::create::full::ZEROS;
use crate::ops::create::like::{EMPTY, EMPTY_LIKE};
use crate::ops::elementwise::arith::{ADD, MUL};
use crate::ops::movement::copy::CLONE;
use crate::ops::view::reshape::UNSQUEEZE;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[
    &FEATURE_DROPOUT,
    &FEATURE_DROPOUT_,
    &ALPHA_DROPOUT,
    &ALPHA_DROPOUT_,
    &FEATURE_ALPHA_DROPOUT,
    &FEATURE_ALPHA_DROPOUT_,
    &F_ALPHA_DROPOUT,
    &F_FEATURE_ALPHA_DROPOUT,
    &F_DROPOUT1D,
    &F_DROPOUT2D,
    &F_DROPOUT3D,
    &NATIVE_DROPOUT,
];

/// What is dropped: elements or channels, to zero or to the negative saturation of SELU.
#[derive(Clone, Copy)]
struct Kind {
    channels: bool,
    alpha: bool,
}
const FEATURE: Kind = Kind { channels: true, alpha: false };
const ALPHA: Kind = Kind { channels: false, alpha: true };
const FEATURE_ALPHA: Kind = Kind { channels: true, alpha: true };

/// The negated limit of SELU: scale times alpha.
const SATURATION: f64 = 1.758_099_340_847_376_6;

fn check_probability(p: f64, refusal: Class) -> Result<()> {
    if (0.0..=1.0).contains(&p) {
        return Ok(());
    }
    let p = Scalar::Float(p);
    Err(Error::new(refusal, format!("dropout probability has to be between 0 and 1, but got {p}")))
}

/// `x`, in place if asked, times `factor` and plus `shift`.
fn scaled(x: &Tensor, factor: Term, shift: Option<Term>, inplace: bool) -> Result<Outputs> {
    if !inplace {
        let product = Term::from(x) * factor;
        return match shift {
            Some(shift) => (product + shift).outputs(),
            None => product.outputs(),
        };
    }
    let product = MUL.call_inplace((x, factor))?;
    match shift {
        Some(shift) => Ok(smallvec![ADD.call_inplace((&product, shift))?]),
        None => Ok(smallvec![product]),
    }
}

fn dropped(x: &Tensor, kind: Kind, p: f64, train: bool, inplace: bool) -> Result<Outputs> {
    if !train || p == 0.0 || x.numel() == 0 {
        return Ok(smallvec![x.clone()]);
    }
    if p == 1.0 {
        let zero = ZEROS.call((Ints::new(), x.dtype(), x.device()));
        return scaled(x, zero, None, inplace);
    }
    if !x.dtype().is_differentiable() {
        let own = x.dtype().scalar_type_name();
        return Err(Error::runtime(format!("result type Float can't be cast to the desired output type {own}")));
    }
    let mut shape = crate::layout::Dims::from_slice(x.shape());
    if kind.channels {
        if shape.len() < 2 {
            let n = shape.len();
            return Err(Error::runtime(format!(
                "Feature dropout requires at least 2 dimensions in the input; expected [n, channels, ..], got {n}"
            )));
        }
        shape[2..].fill(1);
    }
    let kept = BERNOULLI_P.call((EMPTY.call((&shape[..], x.dtype(), x.device())), 1.0 - p));
    if !kind.alpha {
        return scaled(x, kept * (1.0 / (1.0 - p)), None, inplace);
    }
    let a = 1.0 / ((SATURATION * SATURATION * p + 1.0) * (1.0 - p)).sqrt();
    let shift = (kept.clone() - 1.0) * (SATURATION * a) + SATURATION * a * p;
    scaled(x, kept * a, Some(shift), inplace)
}

/// The body of a function of the top namespace: (input, p, train).
fn top(c: &Call, kind: Kind) -> Result<Outputs> {
    let p = c.float("p")?;
    check_probability(p, Class::Runtime)?;
    dropped(c.tensor(0)?, kind, p, c.flag("train"), false)
}

/// The body of a function of `nn.functional`: (input, p, training, inplace).
fn functional(c: &Call, kind: Kind) -> Result<Outputs> {
    let p = c.float("p")?;
    check_probability(p, Class::Value)?;
    dropped(c.tensor(0)?, kind, p, c.flag("training"), c.flag("inplace"))
}

/// What the functions of the top namespace have in common, and those in place.
const TOP: Op = Op {
    forms: F,
    vjp: Vjp::Composite,
    samples: &["f32[2,3], 0.0, True", "f32[2,3], 0.5, False", "f32[2,3], 1.0, True"],
    errors: &[("f32[2,3], 1.5, True", "RuntimeError", "between 0 and 1")],
    ..OP
};
const TOP_: Op = Op { forms: Forms(Forms::FUNCTION | Forms::ONLY_INPLACE), ..TOP };

pub static FEATURE_DROPOUT: Op = Op {
    sig: sig("feature_dropout(Tensor input, float p, bool train) -> Tensor"),
    doc: "Zeroes whole channels of [n, channels, ..] with probability `p` and scales the others by `1 / (1 - p)`, where `train` is set.",
    body: decompose(|c| top(c, FEATURE)),
    errors: &[
        ("f32[2,3], 1.5, True", "RuntimeError", "between 0 and 1"),
        ("f32[3], 0.5, True", "RuntimeError", "Feature dropout requires at least 2 dimensions in the input"),
    ],
    ..TOP
};
pub static FEATURE_DROPOUT_: Op = Op {
    sig: sig("feature_dropout_(Tensor! input, float p, bool train) -> Tensor"),
    doc: "`feature_dropout` in place.",
    body: decompose(|c| top(c, FEATURE)),
    ..TOP_
};

pub static ALPHA_DROPOUT: Op = Op {
    sig: sig("alpha_dropout(Tensor input, float p, bool train) -> Tensor"),
    doc: "Sets elements to the negative limit of SELU with probability `p`, then restores mean 0 and variance 1 by an affine map, where `train` is set.",
    body: decompose(|c| top(c, ALPHA)),
    ..TOP
};
pub static ALPHA_DROPOUT_: Op = Op {
    sig: sig("alpha_dropout_(Tensor! input, float p, bool train) -> Tensor"),
    doc: "`alpha_dropout` in place.",
    body: decompose(|c| top(c, ALPHA)),
    ..TOP_
};

pub static FEATURE_ALPHA_DROPOUT: Op = Op {
    sig: sig("feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor"),
    doc: "`alpha_dropout` of whole channels of [n, channels, ..].",
    body: decompose(|c| top(c, FEATURE_ALPHA)),
    ..TOP
};
pub static FEATURE_ALPHA_DROPOUT_: Op = Op {
    sig: sig("feature_alpha_dropout_(Tensor! input, float p, bool train) -> Tensor"),
    doc: "`feature_alpha_dropout` in place.",
    body: decompose(|c| top(c, FEATURE_ALPHA)),
    ..TOP_
};

/// What the functions of `nn.functional` have in common.
const FUNCTIONAL: Op = Op {
    forms: F,
    vjp: Vjp::Composite,
    samples: &["f32[2,3], 0.0, True", "f32[2,3], 0.5, False", "f32[2,3], 1.0, True"],
    errors: &[("f32[2,3], 1.5", "ValueError", "between 0 and 1")],
    ..OP
};

pub static F_ALPHA_DROPOUT: Op = Op {
    sig: sig(
        "nn.functional.alpha_dropout(Tensor input, float p=0.5, bool training=False, bool inplace=False) -> Tensor",
    ),
    doc: "See `alpha_dropout`.",
    body: decompose(|c| functional(c, ALPHA)),
    ..FUNCTIONAL
};
pub static F_FEATURE_ALPHA_DROPOUT: Op = Op {
    sig: sig(
        "nn.functional.feature_alpha_dropout(Tensor input, float p=0.5, bool training=False, bool inplace=False) -> Tensor",
    ),
    doc: "See `feature_alpha_dropout`.",
    body: decompose(|c| functional(c, FEATURE_ALPHA)),
    ..FUNCTIONAL
};

/// Channels of an input that has a batch if it has `rank` dimensions; otherwise its first dimension is that of the channels.
fn by_rank(c: &Call, rank: usize) -> Result<Outputs> {
    let (x, p) = (c.tensor(0)?, c.float("p")?);
    check_probability(p, Class::Value)?;
    if x.ndim() == rank {
        return dropped(x, FEATURE, p, c.flag("training"), c.flag("inplace"));
    }
    let one = UNSQUEEZE.call((x, 0)).ok()?;
    let out = dropped(&one, FEATURE, p, c.flag("training"), c.flag("inplace"))?.swap_remove(0);
    if c.flag("inplace") { Ok(smallvec![x.clone()]) } else { Term::from(out).squeeze(0).outputs() }
}

pub static F_DROPOUT1D: Op = Op {
    sig: sig("nn.functional.dropout1d(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor"),
    doc: "Zeroes whole channels of [n, channels, l] or [channels, l] with probability `p` and scales the others by `1 / (1 - p)`, where `training` is set.",
    body: decompose(|c| match c.tensor(0)?.ndim() {
        2 | 3 => by_rank(c, 3),
        n => {
            check_probability(c.float("p")?, Class::Value)?;
            Err(Error::runtime(format!(
                "dropout1d: Expected 2D or 3D input, but received a {n}D input. Note that dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
            )))
        }
    }),
    errors: &[
        ("f32[2,3], 1.5", "ValueError", "between 0 and 1"),
        ("f32[3], 0.5", "RuntimeError", "dropout1d: Expected 2D or 3D input, but received a 1D input"),
    ],
    ..FUNCTIONAL
};

/// PyTorch's warning of an input that has another number of dimensions than the function is for.
fn warn_of_rank(name: &str, n: usize, spatial: usize) -> String {
    let (low, high) = (spatial + 1, spatial + 2);
    format!(
        "{name}: Received a {n}-D input to {name}, which is deprecated and will result in an error in a future release. To retain the behavior and silence this warning, please use dropout instead. Note that {name} exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, a channel dimension, and an optional batch dimension (i.e. {low}D or {high}D inputs)."
    )
}

pub static F_DROPOUT2D: Op = Op {
    sig: sig("nn.functional.dropout2d(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor"),
    doc: "Zeroes whole channels of [n, channels, h, w] with probability `p` and scales the others by `1 / (1 - p)`, where `training` is set. As in PyTorch, three dimensions are read as [n, channels, l].",
    body: decompose(|c| functional(c, FEATURE)),
    warns: Some(|c| {
        match c.tensor(0).ok()?.ndim() {
        4 => None,
        3 => Some(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout behavior, please switch to using dropout1d instead."
                .into(),
        ),
        n => Some(warn_of_rank("dropout2d", n, 2)),
    }
    }),
    samples: &["f32[2,3,2,2], 0.0", "f32[2,3,2,2], 0.5, False", "f32[2,3,2,2], 1.0"],
    ..FUNCTIONAL
};

pub static F_DROPOUT3D: Op = Op {
    sig: sig("nn.functional.dropout3d(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor"),
    doc: "Zeroes whole channels of [n, channels, d, h, w] or [channels, d, h, w] with probability `p` and scales the others by `1 / (1 - p)`, where `training` is set.",
    body: decompose(|c| by_rank(c, 5)),
    warns: Some(|c| match c.tensor(0).ok()?.ndim() {
        4 | 5 => None,
        n => Some(warn_of_rank("dropout3d", n, 3)),
    }),
    samples: &["f32[2,3,2,1,2], 0.0", "f32[3,2,1,2], 0.5, False", "f32[3,2,1,2], 1.0"],
    ..FUNCTIONAL
};

/// What the kept elements are multiplied by.
fn scale(p: f64, train: bool) -> f64 {
    match p {
        _ if !train => 1.0,
        1.0 => 0.0,
        p => 1.0 / (1.0 - p),
    }
}

/// Whether argument 2 of `native_dropout` says to drop: None does.
fn trains(c: &impl Arguments) -> bool {
    c.opt_scalar("train").is_none_or(|train| train.to_bool())
}

pub static NATIVE_DROPOUT: Op = Op {
    sig: sig("native_dropout(Tensor input, float p, bool? train) -> Tensor[]"),
    doc: "`dropout`, and which elements are kept, as a mask of bools.",
    forms: F,
    body: decompose(|c| {
        let (x, p) = (c.tensor(0)?, c.float("p")?);
        check_probability(p, Class::Runtime)?;
        let like = EMPTY_LIKE.call((x,)).ok()?;
        let kept = Term::from(BERNOULLI_.call_inplace((&like, if trains(c) { 1.0 - p } else { 1.0 }))?);
        let out = if trains(c) { Term::from(x) * kept.clone() * scale(p, true) } else { CLONE.call((x,)) };
        Ok(smallvec![out.ok()?, kept.to_dtype(DType::Bool).ok()?])
    }),
    vjp: Vjp::Each(&[d(0, OUT1, |c| c.g() * c.out(1) * scale(c.float("p"), trains(&c.call)))]),
    constant: &[1],
    keeps: Some("p result1"),
    samples: &["f32[2,3], 0.0, True", "f32[2,3], 0.5, False", "f32[2,3], 1.0, True"],
    errors: &[("f32[2,3], 1.5, True", "RuntimeError", "between 0 and 1")],
    ..OP
};
