//! The CPU: blocks of memory, threads, and kernels over raw memory described by dtype, shape and strides.
//!
//! Elementwise work: a rule (`num`) becomes loops (`loops`), which `map` runs over strided operands a tile at a time
//! (`tile`, `strided`, `convert`). Kernels here know no tensor; callers guarantee that memory is in bounds.

pub mod buffer;
pub mod cast;
pub mod convert;
pub mod copy;
mod distributions;
mod float;
mod float32;
mod float64;
mod half_float;
pub mod isa;
pub mod loops;
pub mod map;
pub mod math;
pub mod num;
pub mod parallel;
pub mod philox;
pub mod pool;
pub mod random;
pub mod special;
pub mod strided;
pub mod tile;

pub use buffer::CpuBuffer;

#[cfg(test)]
mod math_tests;
#[cfg(test)]
mod tests;
