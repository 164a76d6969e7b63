//! rustgrad: PyTorch's eager semantics in Rust. The map of the crate; each room uses only rooms above it.
pub mod autograd;
pub mod cpu;
pub mod device;
pub mod dispatch;
pub mod dtype;
pub mod error;
pub mod gpu;
pub mod layout;
pub mod op;
pub mod ops;
pub mod storage;
pub mod tensor;
