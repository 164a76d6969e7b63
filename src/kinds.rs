//! Which computation of a family is meant: one enum for the kernels of both devices.

use crate::dtype::Scalar;

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
    /// A sum that the caller of the kernel divides by the number of contributions.
    Mean,
}

/// A distribution with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
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
        rate: f64,
    },
    Bernoulli {
        p: f64,
    },
    /// Integers of `[low, high)`; `low == high` stands for all 64-bit integers. On the CPU each takes two words if `long`.
    Int {
        low: i64,
        high: i64,
        long: bool,
    },
    /// What dropout multiplies by: `value` with probability `keep`, else zero.
    Mask {
        keep: f64,
        value: f64,
    },
    /// Normal numbers pair by pair, as the CPU makes few or strided ones.
    NormalPairs {
        mean: f64,
        std: f64,
    },
}

/// The cell of a recurrent layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recurrence {
    Lstm,
    Gru,
    Tanh,
    Relu,
}
impl Recurrence {
    /// How many blocks of the hidden size the rows of its weights have.
    pub fn gates(self) -> usize {
        match self {
            Recurrence::Lstm => 4,
            Recurrence::Gru => 3,
            Recurrence::Tanh | Recurrence::Relu => 1,
        }
    }
}
/// How an element between others is made of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    Bilinear,
    Nearest,
    Bicubic,
}

impl Sampling {
    /// The neighbours that are read in each dimension.
    pub fn count(self) -> usize {
        match self {
            Sampling::Bilinear => 2,
            Sampling::Nearest => 1,
            Sampling::Bicubic => 4,
        }
    }
}

/// What is read outside an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    Zeros,
    Border,
    Reflection,
}

/// What an elementwise rule of a program reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RuleInput {
    Number(Scalar),
    /// A tensor in memory, by its place in the list of operands.
    Operand(usize),
    /// The result of an earlier rule.
    Rule(usize),
}
