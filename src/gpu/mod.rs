//! Kernels on any vendor's GPU through wgpu and WGSL.
//!
//! `kernels` turns calls into launches; `driver` runs them, the only part that knows wgpu. A buffer knows its device, and
//! a kernel runs on the device of its output. Every function appends to the ordered command stream of that device and
//! returns; program order is the semantics, so views and in-place writes need no care. `download` and `synchronize` wait.
//! Element strides and offsets travel as parameters, so any view of a buffer is an operand without a copy.

// Without the feature nothing can hold a launch, so nothing reads one.
#[cfg_attr(not(feature = "gpu"), allow(dead_code))]
mod driver;
mod fault;
#[cfg_attr(not(feature = "gpu"), allow(dead_code))]
mod kernels;

// Callers find the kinds of a family beside its kernels.
pub use self::driver::{
    GpuBuffer, device_count, device_name, empty_cache, is_available, memory, properties, reset_peak_memory, stats,
    supports, synchronize, unasked_software,
};
pub use self::fault::Refusal;
pub use self::kernels::*;
pub use crate::kinds::{Reduce, Scan, ScatterMode};
