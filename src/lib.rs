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
mod python;

#[cfg(feature = "python")]
#[global_allocator]
static HEAP: crate::rt::alloc::Heap = crate::rt::alloc::Heap;
