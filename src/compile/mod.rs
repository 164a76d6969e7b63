//! The static graph: what one call of a function computed, as a plan that runs again without the function.
//!
//! A `Recorder` watches a call through the tracer and numbers its tensors; a `Plan` is the list of primitives that were
//! called, backward and optimizer included, with the effects that others see: writes to tensors that were there before,
//! gradients that were set. Passes (`passes/`) replace steps by what does the same in less time. Whether a call may be
//! replaced by its plan is not decided here: `python` checks what the function read.
//!
//! A plan can also be saved: `load` reads it back, and needs neither the function nor Python.

mod fused;
mod joined;
mod look;
mod passes;
mod plan;
mod prepared;
mod record;
mod recorded;
mod saved;
mod step;

pub use self::look::Look;
pub use self::passes::Passes;
pub use self::plan::{Failure, Plan, Ran};
pub use self::record::Recorder;
pub use self::recorded::Recorded;
pub use self::saved::{Input, Naming, Program, SaveError, load, load_on, save};
pub use self::step::{Arg, Slot, Source, Step, Variant};
pub use crate::op::number::{Arithmetic, Number, Numbers, Question, pass, pass_again, passed};
