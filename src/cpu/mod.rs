//! The CPU: memory blocks, threads, and kernels over raw memory described by dtype, shape and strides.
//!
//! Elementwise execution: a rule (`num`) becomes loops (`loops`), which `map` runs over strided operands one tile at a
//! time (`tile`, `strided`, `convert`). Kernels do not depend on tensors; callers guarantee that memory is in bounds.
//! All other kernels take `view::View`s: reductions, products, scans, indexing, sorting.

pub mod cat;
pub mod contiguous;
pub mod discrete_random;
pub mod lanes;
pub mod lines;
pub(crate) mod nontemporal;
pub mod number_class;
pub mod scratch;
pub mod argreduce;
pub mod arith;
pub mod attention;
pub mod bessel;
pub mod buffer;
pub mod cast;
pub mod complex;
pub mod conv;
pub mod convert;
pub mod copy;
pub mod ctc;
pub mod distance;
mod distributions;
pub mod epilogue;
pub mod fft;
mod float;
pub mod flip;
mod float32;
mod float64;
pub mod gamma_draws;
pub mod gemm;
pub mod grid_sample;
mod half_float;
pub mod incomplete;
pub mod index;
pub mod isa;
pub mod linalg;
pub mod loops;
pub mod map;
pub mod math;
pub mod mersenne;
pub mod norm;
pub mod pad;
pub mod panel;
pub mod parallel;
pub mod pathwise;
pub mod philox;
pub mod polynomial;
pub mod pool;
pub mod pooling;
pub mod program;
pub mod reduce;
pub mod resample;
mod runs;
pub mod scan;
pub mod rnn;
mod row_copy;
pub mod search;
pub mod sequence;
pub mod shared;
pub mod simd;
pub mod softmax;
pub mod sort;
mod rows;
pub mod random;
pub mod special;
pub mod strided;
#[cfg(test)]
pub mod testing;
pub mod tile;
mod truth;
pub mod var;
pub mod view;

pub use self::buffer::CpuBuffer;

#[cfg(test)]
mod math_tests;
#[cfg(test)]
mod tests;
