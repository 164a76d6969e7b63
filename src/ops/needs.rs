//! Ops of other families that the formulas of reductions, losses and contraction call.
//!
//! Found by public name once and remembered, so that a family does not depend on the file another one lives in.

use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::op::*;
use crate::tensor::Tensor;
use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

static BY_NAME: LazyLock<HashMap<&'static str, &'static Op>> =
    LazyLock::new(|| super::all().map(|op| (op.name(), op)).collect());

/// The op of this full name (`scatter.src`), or an error that says what is missing.
pub(super) fn named(name: &str) -> Result<&'static Op> {
    BY_NAME.get(name).copied().ok_or_else(|| Error::not_implemented(format!("the op '{name}' is not available")))
}

/// An op that is looked up at its first use.
pub(super) struct Need {
    name: &'static str,
    op: OnceLock<Option<&'static Op>>,
}

impl Need {
    const fn new(name: &'static str) -> Need {
        Need { name, op: OnceLock::new() }
    }
    pub(super) fn call<'a>(&self, args: impl IntoArgs<'a>) -> Term {
        match self.op.get_or_init(|| BY_NAME.get(self.name).copied()) {
            Some(op) => op.call(args),
            None => Term(named(self.name).and_then(|op| op.call(args).ok())),
        }
    }
}

static EXP: Need = Need::new("exp");
static LOG: Need = Need::new("log");
static SQRT: Need = Need::new("sqrt");
static ABS: Need = Need::new("abs");
static SGN: Need = Need::new("sgn");
static ISNAN: Need = Need::new("isnan");
static EQ: Need = Need::new("eq");
static NE: Need = Need::new("ne");
static POW: Need = Need::new("pow");
static FLIP: Need = Need::new("flip");
static CLAMP: Need = Need::new("clamp");
static CLAMP_MIN: Need = Need::new("clamp_min");
static WHERE: Need = Need::new("where");
static SIGMOID: Need = Need::new("sigmoid");
static XLOGY: Need = Need::new("xlogy");
pub(super) static MAXIMUM: Need = Need::new("maximum");
pub(super) static MINIMUM: Need = Need::new("minimum");
pub(super) static SVDVALS: Need = Need::new("linalg.svdvals");
pub(super) static KTHVALUE: Need = Need::new("kthvalue");

impl Term {
    pub(super) fn exp_(self) -> Term {
        EXP.call((self,))
    }
    pub(super) fn log_(self) -> Term {
        LOG.call((self,))
    }
    pub(super) fn sqrt_(self) -> Term {
        SQRT.call((self,))
    }
    pub(super) fn abs_(self) -> Term {
        ABS.call((self,))
    }
    pub(super) fn sgn_(self) -> Term {
        SGN.call((self,))
    }
    pub(super) fn isnan_(self) -> Term {
        ISNAN.call((self,))
    }
    pub(super) fn eq_<'a>(self, other: impl IntoArg<'a>) -> Term {
        EQ.call((self, other))
    }
    pub(super) fn ne_<'a>(self, other: impl IntoArg<'a>) -> Term {
        NE.call((self, other))
    }
    pub(super) fn pow_<'a>(self, exponent: impl IntoArg<'a>) -> Term {
        POW.call((self, exponent))
    }
    pub(super) fn flip_(self, dim: i64) -> Term {
        FLIP.call((self, [dim]))
    }
    pub(super) fn clamp_(self, low: f64, high: f64) -> Term {
        CLAMP.call((self, low, high))
    }
    pub(super) fn clamp_min_(self, low: f64) -> Term {
        CLAMP_MIN.call((self, low))
    }
    pub(super) fn masked_fill_(self, mask: Term, value: f64) -> Term {
        WHERE.call((mask, value, self))
    }
    pub(super) fn sigmoid_(self) -> Term {
        SIGMOID.call((self,))
    }
    pub(super) fn xlogy_(self, other: Term) -> Term {
        XLOGY.call((self, other))
    }
}

/// One number everywhere, in the shape of `like`.
pub(super) fn full_like(like: &Tensor, dtype: DType, value: f64) -> Result<Tensor> {
    let t = Tensor::empty(like.shape(), dtype, like.device())?;
    t.fill_raw(Scalar::Float(value))?;
    Ok(t)
}

/// Runs a body unrecorded: its op has a gradient formula and a node of its own.
pub(super) fn quiet<R>(body: impl FnOnce() -> R) -> R {
    let _guard = crate::autograd::GradGuard::new(false);
    body()
}

impl Back<'_> {
    /// How many elements each result folds.
    pub(super) fn folded(&self) -> f64 {
        let n = |shape: &[usize]| shape.iter().product::<usize>();
        n(&self.shape(0)) as f64 / n(&self.output_facts[0].shape).max(1) as f64
    }
}
