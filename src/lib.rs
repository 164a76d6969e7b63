//! rustgrad: PyTorch's eager semantics in Rust. The map of the crate; each room uses only rooms above it.
pub mod cpu;
pub mod device;
pub mod dtype;
pub mod error;
pub mod layout;
