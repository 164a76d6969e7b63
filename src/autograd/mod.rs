//! The backward graph: nodes, saved tensors, the engine, grad mode, in-place and view history, hooks.
//!
//! Recording is a step of `dispatch`; nothing here wraps or repeats an op.

pub mod diagnostics;
pub(crate) mod drop;
pub mod final_callbacks;
pub mod forward;
pub mod foreign_refs;
pub mod saved_args;
pub mod saved_attrs;
pub mod engine;
pub mod history;
pub mod hooks;
pub mod mode;
pub mod node;
pub mod opaque;
pub mod saved;

pub use self::engine::{Request, run};
pub use self::mode::{GradGuard, grad_enabled, set_grad_enabled};
pub use self::node::{Custom, Node};

use crate::error::Result;
use crate::op::Op;
use crate::tensor::Tensor;

/// The ops that the engine itself needs. They are declared in `ops`, a later module.
pub struct EngineOps {
    pub add: fn(&Tensor, &Tensor) -> Result<Tensor>,
    pub add_: fn(&Tensor, &Tensor) -> Result<()>,
    /// Sums a gradient back over broadcast dimensions.
    pub sum_to: fn(&Tensor, &[usize]) -> Result<Tensor>,
    /// A view broadcast to a shape.
    pub expand: fn(&Tensor, &[usize]) -> Result<Tensor>,
    pub cast: fn(&Tensor, crate::dtype::DType) -> Result<Tensor>,
    /// The real part of a complex gradient of a real tensor.
    pub real: fn(&Tensor) -> Result<Tensor>,
    pub clone: fn(&Tensor) -> Result<Tensor>,
    /// A row-major copy.
    pub packed: fn(&Tensor) -> Result<Tensor>,
    pub zeros: fn(&crate::op::gradient::TensorMeta) -> Result<Tensor>,
    /// Uninitialised, of a layout, with the dtype and device of a tensor.
    pub empty: fn(&crate::layout::Layout, &Tensor) -> Result<Tensor>,
    pub has_nan: fn(&Tensor) -> Result<bool>,
    pub copy_: fn(&Tensor, &Tensor) -> Result<()>,
    pub zero_: fn(&Tensor) -> Result<()>,
    /// The op that `copy_` calls.
    pub copy_op: &'static Op,
    pub as_strided: &'static Op,
}

// Resolved at link time within this crate, so there is no initialisation that a caller could forget.
unsafe extern "Rust" {
    safe fn rustgrad_engine_ops() -> &'static EngineOps;
}

pub fn engine_ops() -> &'static EngineOps {
    rustgrad_engine_ops()
}
