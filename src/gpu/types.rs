//! What callers of the GPU room pass in: views of buffers, operands, and the kinds of each kernel family.
//!
//! Plain data, the same with and without the `gpu` feature. Strides and offsets count elements, never bytes;
//! a stride of zero repeats an element along that dimension.

use super::GpuBuffer;
use crate::dtype::{DType, Scalar};

/// A strided window on a buffer.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub buffer: &'a GpuBuffer,
    pub dtype: DType,
    pub shape: &'a [usize],
    pub strides: &'a [usize],
    pub offset: usize,
}

/// An operand of an elementwise kernel.
#[derive(Clone, Copy)]
pub enum Input<'a> {
    View(View<'a>),
    Scalar(Scalar),
}

/// Reductions over any set of dimensions. `Any` and `All` test for nonzero, NaN included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reduce {
    Sum,
    Mean,
    Prod,
    Max,
    Min,
    Any,
    All,
    /// The vector norm of this order; infinite orders and zero included.
    Norm(f64),
    LogSumExp,
}

/// Running results along one dimension. `LogSumExp` is the stable running log of a sum of exponentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    Sum,
    Prod,
    Max,
    Min,
    LogSumExp,
}

/// How a scattered value meets the one that is there. With `Set` and repeated indices one of the values wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScatterMode {
    Set,
    Add,
    Mul,
    Max,
    Min,
}

/// A distribution to fill a tensor from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Random {
    /// `[from, to)`.
    Uniform {
        from: f64,
        to: f64,
    },
    Normal {
        mean: f64,
        std: f64,
    },
    Exponential {
        lambda: f64,
    },
    /// Integers of `[low, high)`; `low == high` stands for all 64-bit integers.
    Int {
        low: i64,
        high: i64,
    },
    Bernoulli {
        p: f64,
    },
}

/// What an optimiser does to its parameter and state; formulas and their numbers are in `update`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Adam,
    AmsGrad,
    Adagrad,
    Sgd,
    SgdMomentum,
}

/// What the gradients of a layer normalisation are computed from: `grad` and `input` are dense `[rows, cols]`, the
/// statistics `[rows]`, the weight `[cols]`.
#[derive(Clone, Copy)]
pub struct NormGrad<'a> {
    pub grad: View<'a>,
    pub input: View<'a>,
    pub mean: View<'a>,
    pub rstd: View<'a>,
    pub weight: Option<View<'a>>,
}

/// What a kernel refuses beside indices: the text of a `RuntimeError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    NoProbability,
    NoChance,
    NoWeights,
    /// Where the tensor is zero, not where it is true.
    DivisionByZero,
}
impl Refusal {
    /// In the order of the variants.
    pub(super) const TEXTS: [&'static str; 4] = [
        "all elements of input should be between 0 and 1",
        "Expected p_in >= 0 && p_in <= 1 to be true, but got false.",
        "invalid multinomial distribution: expected finite weights that are not negative and have a positive sum",
        "ZeroDivisionError",
    ];
}

impl View<'_> {
    pub(super) fn numel(&self) -> usize {
        self.shape.iter().product()
    }
    /// The first element and one past the last that the view reaches.
    pub(super) fn span(&self) -> (usize, usize) {
        if self.shape.contains(&0) {
            return (self.offset, self.offset);
        }
        let last: usize = self.shape.iter().zip(self.strides).map(|(&d, &s)| (d - 1) * s).sum();
        (self.offset, self.offset + last + 1)
    }
}
