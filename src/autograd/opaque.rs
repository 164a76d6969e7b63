//! Gradients whose elements the engine cannot see: sparse tensors are objects of Python, with a body on `meta`.
//!
//! Leaves get them as they are, formulas get all elements; their class adds them. Whoever does not make any pays a look at the device.

use super::engine_ops;
use crate::device::Device;
use crate::error::Result;
use crate::op::tracer;
use crate::tensor::Tensor;
use std::sync::OnceLock;

/// What the module that makes such gradients does with them.
pub trait Rules: Send + Sync {
    fn made(&self, t: &Tensor) -> bool;
    /// The sum of two gradients, of which at least one is opaque.
    fn add(&self, a: &Tensor, b: &Tensor) -> Result<Tensor>;
    /// Adds to the gradient of a leaf where it or the new one is opaque.
    fn accumulate(&self, leaf: &Tensor, grad: &Tensor) -> Result<()>;
    /// All elements of an opaque gradient.
    fn dense(&self, t: &Tensor) -> Result<Tensor>;
    /// The gradient of a table of `rows` rows that has `values` at the rows `index` but `padding`, and nothing elsewhere.
    fn of_rows(&self, index: &Tensor, values: &Tensor, rows: i64, padding: i64) -> Result<Tensor>;
}

static RULES: OnceLock<Box<dyn Rules>> = OnceLock::new();

/// Says who makes opaque gradients; the first one stays.
pub fn set_rules(rules: Box<dyn Rules>) {
    let _ = RULES.set(rules);
}

/// Whether the elements of a tensor lie where only its class finds them.
pub fn is_opaque(t: &Tensor) -> bool {
    t.device() == Device::Meta && RULES.get().is_some_and(|rules| rules.made(t))
}

/// The sum of two gradients of any kind.
pub(super) fn add(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    match RULES.get() {
        Some(rules) if is_opaque(a) || is_opaque(b) => rules.add(a, b),
        _ => (engine_ops().add)(a, b),
    }
}

/// Adds to `.grad` if the gradient there, `old`, or the new one is opaque; false if none is.
pub(super) fn accumulate(leaf: &Tensor, old: Option<&Tensor>, grad: &Tensor) -> Result<bool> {
    match RULES.get() {
        Some(rules) if is_opaque(grad) || old.is_some_and(is_opaque) => rules.accumulate(leaf, grad).map(|()| true),
        _ => Ok(false),
    }
}

/// What a formula takes: the elements of an opaque gradient.
pub(super) fn seen(grad: Tensor) -> Result<Tensor> {
    match RULES.get() {
        Some(rules) if is_opaque(&grad) => rules.dense(&grad),
        _ => Ok(grad),
    }
}

/// `Rules::of_rows`; none where there is nobody who makes such gradients. A capture takes it for a look at the indices.
pub fn of_rows(index: &Tensor, values: &Tensor, rows: i64, padding: i64) -> Option<Result<Tensor>> {
    let rules = RULES.get()?;
    tracer::notify(|t| t.host_reads(index));
    Some(rules.of_rows(index, values, rows, padding))
}
