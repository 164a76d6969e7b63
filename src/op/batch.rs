//! How a call is batched: what `vmap` runs for one call on every example of a batch at once.
//!
//! A batched tensor has the batch as its first dimension. The rule of an op is the slot `batch` of its declaration; most ops
//! leave it to the kind of their body.

use super::body::Call;
use super::value::{Arguments, Outputs, Value};
use super::{Body, Op};
use crate::error::Result;
use crate::tensor::Tensor;

/// The batch rule of an op.
#[derive(Clone, Copy)]
pub enum Batching {
    /// By the body: elementwise ops align their operands, views and kernels with `Dim` parameters shift them, other views
    /// take the batch as a leading dimension. What is none of these is a loop.
    ByBody,
    /// Operands broadcast: the batch comes before dimensions of size one.
    Align,
    /// Every dimension among the arguments is one further back; no dimensions (`dim=None`) are all but the batch.
    Shift,
    /// The same, but the tensor in this argument, an index, is one for all examples.
    ShiftWith(usize),
    /// The op takes any number of leading dimensions.
    Leading,
    /// The op takes `[N, ..]`, of this rank at least: examples are folded into N. The arguments are those that have N.
    Fold(usize, &'static [usize]),
    /// A reduction of everything: this op over the flattened examples.
    Whole(&'static Op),
    /// A loss of elements with the way to reduce it in this argument.
    Reduced(usize),
    Rule(fn(&BatchedCall) -> Result<Outputs>),
    /// The same for a view that goes by strides: the examples of its tensor have to lie in memory as one does alone.
    ByStrides(fn(&BatchedCall) -> Result<Outputs>),
    /// One call for each example; the results are stacked.
    Loop,
}

/// One call on every example of a batch.
pub struct BatchedCall<'a> {
    pub op: &'static Op,
    /// Batched tensors have the batch first; the others are the same for every example.
    pub args: &'a [Value<'a>],
    /// The call on one example, with its results.
    pub example: Call<'a>,
    pub results: &'a [Tensor],
    /// Which tensors are batched: for each argument a bit, for each item of a list one.
    pub batched: &'a [u64],
    pub size: usize,
}

impl Arguments for BatchedCall<'_> {
    fn arguments(&self) -> &[Value<'_>] {
        self.args
    }
    fn op(&self) -> &'static Op {
        self.op
    }
}

impl BatchedCall<'_> {
    pub fn is_batched(&self, i: usize) -> bool {
        self.batched[i] != 0
    }
    pub fn is_item_batched(&self, i: usize, item: usize) -> bool {
        self.batched[i] & (1 << item.min(63)) != 0
    }
    /// How many dimensions a tensor argument has for one example.
    pub fn ndim(&self, i: usize) -> usize {
        self.example.args[i].tensors().next().map_or(0, |t| t.ndim())
    }
    /// The shape of a tensor argument for one example.
    pub fn shape(&self, i: usize) -> &[usize] {
        self.example.args[i].tensors().next().map_or(&[], |t| t.shape())
    }
}

impl Op {
    /// Whether this is a view that goes by the strides of its tensor, not by its dimensions alone.
    pub fn views_by_strides(&self) -> bool {
        matches!((self.batch, &self.body), (Batching::ByStrides(_), _) | (Batching::ByBody, Body::ViewAs(_)))
    }
    /// The rule that `ByBody` stands for.
    pub fn batch_rule(&self) -> Batching {
        match (self.batch, &self.body) {
            (Batching::ByBody, Body::Elementwise(_)) => Batching::Align,
            (Batching::ByBody, Body::Unset | Body::Decompose(_)) => Batching::Loop,
            // What its results look like depends on values, which differ.
            (Batching::ByBody, _) if self.reads_host() => Batching::Loop,
            (Batching::ByBody, _) if self.sig.has_dims => Batching::Shift,
            (Batching::ByBody, Body::View(_) | Body::ViewAs(_) | Body::Views(_)) => Batching::Leading,
            (Batching::ByBody, _) => Batching::Loop,
            (rule, _) => rule,
        }
    }
}
