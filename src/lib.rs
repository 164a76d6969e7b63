//! rustgrad: PyTorch's eager semantics in Rust. Each module uses only modules declared above it.
pub mod chebyshev;
pub mod rt;
pub mod error;
pub mod observe;
pub mod sync;
pub mod dtype;
pub mod kinds;
pub mod layout;
pub mod device;
pub mod cpu;
pub mod gpu;
pub mod storage;
pub mod tensor;
pub mod op;
pub mod autograd;
pub mod dispatch;
pub mod ops;
pub mod compile;
pub mod transform;
#[cfg(feature = "python")]
#[path = "python/lib.rs"]
mod python;

// The module calls the library by its name, whether it is a part of it or a crate of its own.
#[cfg(feature = "python")]
extern crate self as rustgrad;
