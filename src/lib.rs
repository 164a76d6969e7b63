//! rustgrad: PyTorch's eager semantics in Rust. Each module uses only modules declared above it.
pub mod error;
pub mod observe;
pub mod place;
pub mod retire;
pub mod series;
pub mod sync;
pub mod thread;
pub mod heap;
pub mod reserve;
pub mod tally;
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
#[cfg(feature = "python")]
mod python;

#[cfg(feature = "python")]
#[global_allocator]
static HEAP: heap::Heap = heap::Heap;
