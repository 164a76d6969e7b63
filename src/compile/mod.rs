//! The static graph: what one call of a function computed, as a plan that runs again without the function.
//!
//! A `Recorder` watches a call through the tracer and numbers its tensors; a `Plan` is the list of primitives that were
//! called, backward and optimizer included, with the effects that others see: writes to tensors that were there before,
//! gradients that were set. Whether a call may be replaced by its plan is not decided here: `python` checks what the
//! function read.
//!
//! A plan can also be saved: `load` reads it back, and needs neither the function nor Python.

mod plan;
mod record;
mod recorded;
mod saved;

pub use self::plan::{Arg, Failure, Plan, Slot, Source, Step, Variant};
pub use self::record::Recorder;
pub use self::recorded::Recorded;
pub use self::saved::{Input, Naming, Program, SaveError, load, load_on, save};
